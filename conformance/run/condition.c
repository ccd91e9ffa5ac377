#include "conformance/run/condition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/judge/tolerance.h"
#include "conformance/run/fill.h"

enum { CF_PROBES = 12 };

/* The change is small enough for the first order, large enough for 64 bits. And the root mean square of so few samples
 * is less than a fourth of what it measures once in 10^9 times. */
static const long double cf_step = 0x1p-26L, cf_safety = 4;

/* The cosine of an angle that is w of a whole turn, for w of [0, 1). Folded into an eighth, where the library has no
 * multiple of pi to take away, which takes it longer than the cosine. */
static long double cf_cosine_of_turn(long double w) {
  const long double turn = 6.28318530717958647692L;
  const long double half = w > 0.5L ? 1 - w : w, quarter = half > 0.25L ? 0.5L - half : half;
  const long double size = quarter > 0.125L ? sinl(turn * (0.25L - quarter)) : cosl(turn * quarter);
  return half > 0.25L ? -size : size;
}

static long double cf_normal(cf_random *r) {
  long double u = cf_random_unit(r), w = cf_random_unit(r);
  return sqrtl(-2 * logl(1 - u)) * cf_cosine_of_turn(w);
}

/* The values of one matrix at a time move by a part of its norm; those of a plugin's own op each by a part of itself,
 * since most such ops know no matrices, and a norm would excuse too much. */
static void cf_move(const cf_call *call, cf_array *a, cf_random *r) {
  bool alone = call->schema->table == OPT_CUSTOM;
  bool complex = dt_is_complex(a->dtype);
  int64_t each = 1;
  for (int32_t d = alone ? -1 : a->ndim - 1; d >= 0 && d >= a->ndim - 2; d--) each *= a->sizes[d];
  for (int64_t first = 0; first < a->numel; first += each) {
    long double squares = 0; /* of any dtype's numbers, no long double's range is too small for them */
    for (int64_t i = first; i < first + each; i++) squares += a->v[i].re * a->v[i].re + a->v[i].im * a->v[i].im;
    const long double norm = sqrtl(squares);
    for (int64_t i = first; i < first + each; i++) {
      a->v[i].re += cf_step * norm * cf_normal(r);
      if (complex) a->v[i].im += cf_step * norm * cf_normal(r);
    }
  }
}

static bool cf_moved(const cf_array *a) {
  return a->v && (dt_is_float(a->dtype) || dt_is_complex(a->dtype));
}

static bool cf_save(cf_array *arrays, cf_array *saved) {
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) {
    if (!cf_moved(&arrays[i])) continue;
    if (!cf_array_new(&saved[i], arrays[i].dtype, arrays[i].ndim, arrays[i].sizes)) return false;
    memcpy(saved[i].v, arrays[i].v, (size_t)arrays[i].numel * sizeof *arrays[i].v);
  }
  return true;
}

static void cf_restore(cf_array *arrays, const cf_array *saved) {
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++)
    if (saved[i].v) memcpy(arrays[i].v, saved[i].v, (size_t)saved[i].numel * sizeof *saved[i].v);
}

static void cf_add_squares(const cf_array *now, const cf_array *base, cf_array *moves) {
  for (int64_t k = 0; now->v && base->v && k < base->numel && k < now->numel; k++) {
    dt_value a = now->v[k], b = base->v[k];
    long double re = (a.re - b.re) / cf_step, im = (a.im - b.im) / cf_step;
    if (isfinite(re) && isfinite(im)) moves->v[k].re += re * re + im * im;
  }
}

/* One probe, of inputs that are moved for it. */
static bool cf_take_probe(cf_call *call, cf_array *others, cf_random *r, cf_probe_fn probe, void *context,
                          const cf_array *base, uint32_t count, cf_array *moves) {
  cf_array now[CF_MAX_TENSORS] = {{0}};
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) {
    cf_matrices kind = i < call->ntensors ? call->notes[i].matrices : CF_ANY_MATRIX;
    if (i < call->ntensors && cf_moved(&call->in[i])) cf_move(call, &call->in[i], r);
    if (kind == CF_HERMITIAN || kind == CF_DEFINITE) cf_fill_hermitian(&call->in[i]);
    if (others && cf_moved(&others[i])) cf_move(call, &others[i], r);
  }
  bool ok = probe(context, now) == GRAFT_OK;
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) {
    if (ok && i < count) cf_add_squares(&now[i], &base[i], &moves[i]);
    cf_array_free(&now[i]);
  }
  return ok;
}

bool cf_condition(cf_call *call, cf_array *others, cf_probe_fn probe, void *context, const cf_array *base,
                  uint32_t count, cf_array *moves) {
  cf_array in[CF_MAX_TENSORS] = {{0}}, other[CF_MAX_TENSORS] = {{0}};
  cf_random random = {cf_hash(call->op->name)};
  bool ok = cf_save(call->in, in) && (!others || cf_save(others, other));
  for (uint32_t i = 0; ok && i < count; i++)
    if (base[i].v) ok = cf_array_new(&moves[i], GRAFT_F64, base[i].ndim, base[i].sizes);
  for (int probes = 0; ok && probes < CF_PROBES; probes++) {
    ok = cf_take_probe(call, others, &random, probe, context, base, count, moves);
    cf_restore(call->in, in);
    if (others) cf_restore(others, other);
  }
  for (uint32_t i = 0; ok && i < count; i++)
    for (int64_t k = 0; moves[i].v && k < moves[i].numel; k++)
      moves[i].v[k].re = cf_safety * sqrtl(moves[i].v[k].re / CF_PROBES);
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) cf_array_free(&in[i]), cf_array_free(&other[i]);
  return ok;
}
