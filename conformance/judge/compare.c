#include "conformance/judge/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/judge/tolerance.h"

static bool cf_same_number(long double a, long double b) {
  return isnan(a) || isnan(b) ? isnan(a) && isnan(b) : a == b && signbit(a) == signbit(b);
}

bool cf_same_value(dt_value a, dt_value b) {
  return cf_same_number(a.re, b.re) && cf_same_number(a.im, b.im);
}

bool cf_equal(long double a, long double b) {
  return a == b || (isnan(a) && isnan(b));
}

void cf_verdict_fail(cf_verdict *v, const char *text) {
  v->ok = false, v->ratio = INFINITY;
  snprintf(v->text, sizeof v->text, "%s", text);
}

/* The error over the limit; 0 for a hit, infinity for what no limit excuses. */
static double cf_ratio(graft_dtype dtype, long double r, long double o, long double limit, bool flushes) {
  if (limit == CF_UNJUDGED) return 0;
  if (isnan(o) || isnan(r)) return isnan(o) && isnan(r) ? 0 : INFINITY;
  if (r == o) return 0;
  if (flushes && r == 0 && fabsl(o) < cf_normal_min(dtype)) return 0;
  if (isinf(o) || !isfinite(limit)) return INFINITY; /* a limit that is no number is a fault of its derivation */
  long double most = cf_max(dtype);
  if (isinf(r)) { /* an overflow is right where the limit reaches past the largest number */
    bool reaches = fabsl(o) + limit >= most + cf_ulp(dtype, most) / 2 && (o > 0) == (r > 0);
    return reaches ? 0 : INFINITY;
  }
  return limit > 0 ? (double)(fabsl(r - o) / limit) : INFINITY;
}

static double cf_exact_ratio(graft_dtype dtype, long double r, long double o, const cf_comparison *how) {
  long double expected = dt_round(dtype, how->through_f32 && r != dt_round(dtype, o) ? dt_round(GRAFT_F32, o) : o);
  if (isnan(expected) || isnan(r)) return isnan(expected) && isnan(r) ? 0 : INFINITY;
  if (r == expected && (r != 0 || how->any_zero || cf_mantissa(dtype) == 0 || signbit(r) == signbit(expected)))
    return 0;
  return how->flushes && r == 0 && expected != 0 && fabsl(expected) < cf_normal_min(dtype) ? 0 : INFINITY;
}

static void cf_describe(const cf_array *r, const cf_array *o, int64_t i, long double limit, const cf_comparison *how,
                        cf_verdict *v) {
  const char *what = how->what;
  bool exact = how->exact;
  char at[96] = "", *to = at;
  int64_t rest = i, coordinates[GRAFT_MAX_DIMS];
  for (int32_t d = r->ndim - 1; d >= 0; d--) coordinates[d] = rest % r->sizes[d], rest /= r->sizes[d];
  for (int32_t d = 0; d < r->ndim && to < at + 80; d++)
    to += snprintf(to, (size_t)(at + sizeof at - to), d ? ",%lld" : "%lld", (long long)coordinates[d]);
  graft_dtype real = dt_real(r->dtype);
  dt_value right = o->v[i];
  if (exact) right.re = dt_round(real, right.re), right.im = dt_round(real, right.im);
  if (dt_is_complex(r->dtype))
    snprintf(v->text, sizeof v->text, "%s[%s] is %.9Lg%+.9Lgj, not %.9Lg%+.9Lgj within %.3Lg", what, at, r->v[i].re,
             r->v[i].im, right.re, right.im, limit);
  else if (exact)
    snprintf(v->text, sizeof v->text, "%s[%s] is %.17Lg, not %.17Lg (bit for bit)", what, at, r->v[i].re, right.re);
  else
    snprintf(v->text, sizeof v->text, "%s[%s] is %.17Lg, not %.17Lg within %.3Lg", what, at, r->v[i].re, right.re,
             limit);
}

static bool cf_same_shape(const cf_array *a, const cf_array *b) {
  return a->ndim == b->ndim && memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof *a->sizes) == 0;
}

static double cf_part_ratio(graft_dtype dtype, long double r, long double o, long double limit,
                            const cf_comparison *how) {
  return how->exact ? cf_exact_ratio(dtype, r, o, how) : cf_ratio(dtype, r, o, limit, how->flushes);
}

/* Whether a complex result is an infinity, as one part makes it (C11, G.3), where the modulus passes the largest
 * number. The parts of a product are differences of products, and none of these is larger than the modulus: where they
 * overflow, inf - inf is NaN, and a fused multiply-add leaves an infinity of either sign, as PyTorch's own loops do. */
static bool cf_overflows(graft_dtype dtype, dt_value r, dt_value o, const cf_comparison *how) {
  bool overflow = isfinite(o.re) && isfinite(o.im) && cf_modulus(o) > cf_max(dtype);
  return !how->exact && overflow && (isinf(r.re) || isinf(r.im));
}

static double cf_ratio_of(graft_dtype dtype, dt_value r, dt_value o, long double limit, const cf_comparison *how) {
  graft_dtype real = dt_real(dtype);
  if (!dt_is_complex(dtype)) return cf_part_ratio(dtype, r.re, o.re, limit, how);
  bool overflows = cf_overflows(real, r, o, how);
  double re = overflows && !isfinite(r.re) ? 0 : cf_part_ratio(real, r.re, o.re, limit, how);
  double im = overflows && !isfinite(r.im) ? 0 : cf_part_ratio(real, r.im, o.im, limit, how);
  return re > im ? re : im;
}

void cf_compare(const cf_array *r, const cf_array *o, const cf_comparison *how, cf_verdict *v) {
  if (!cf_same_shape(r, o)) {
    cf_verdict_fail(v, "the result has another shape than the oracle's");
    return;
  }
  for (int64_t i = 0; i < r->numel; i++) {
    long double limit = how->limits ? how->limits[i] : 0;
    double ratio = cf_ratio_of(r->dtype, r->v[i], o->v[i], limit, how);
    if (ratio <= v->ratio) continue;
    v->ratio = ratio, v->index = i;
    v->error = (double)fabsl(r->v[i].re - o->v[i].re);
    if (ratio <= 1) continue;
    v->ok = false;
    cf_describe(r, o, i, limit, how, v);
  }
}

void cf_check_permutation(const cf_call *call, const cf_array *values, const cf_array *indices, cf_verdict *v) {
  const cf_array *x = &call->in[0];
  int64_t dim = cf_arg_int(call, "dim", -1);
  cf_axis from = cf_axis_of(x, dim), to = cf_axis_of(values, dim);
  if (values->ndim < x->ndim) to = (cf_axis){.outer = from.outer, .length = 1, .inner = from.inner}; /* dim is gone */
  bool *used = calloc((size_t)from.length + 1, sizeof *used);
  if (!used) cf_verdict_fail(v, "no memory to check the indices");
  for (int64_t row = 0; v->ok && row < to.outer * to.inner; row++) {
    int64_t outer = row / to.inner, inner = row % to.inner;
    memset(used, 0, (size_t)from.length * sizeof *used);
    for (int64_t k = 0; v->ok && k < to.length; k++) {
      int64_t at = (outer * to.length + k) * to.inner + inner;
      long double index = indices->v[at].re, value = values->v[at].re;
      bool inside = index >= 0 && index < (long double)from.length;
      long double there = inside ? x->v[(outer * from.length + (int64_t)index) * from.inner + inner].re : 0;
      bool same = inside && cf_equal(there, value);
      if (same && !used[(int64_t)index]) {
        used[(int64_t)index] = true;
        continue;
      }
      v->ok = false, v->ratio = INFINITY, v->index = at;
      snprintf(v->text, sizeof v->text, "index %Lg at element %lld %s", index, (long long)at,
               !inside ? "lies outside the dim"
               : same  ? "is used twice"
                       : "does not pick the value beside it");
    }
  }
  free(used);
}

static void cf_swap(cf_array *a, int64_t i, int64_t j) {
  dt_value kept = a->v[i];
  a->v[i] = a->v[j];
  a->v[j] = kept;
}

static bool cf_is_tie(const cf_array *x, int64_t i, int64_t j) {
  return cf_equal(x->v[i].re, x->v[j].re);
}

void cf_order_ties(const cf_call *call, cf_array *gradient, cf_array *beside) {
  const cf_array *x = &call->in[0];
  cf_axis axis = cf_axis_of(x, cf_arg_int(call, "dim", -1));
  if (!gradient->v || !cf_same_shape(gradient, x)) return;
  for (int64_t row = 0; row < axis.outer * axis.inner; row++) {
    int64_t first = row / axis.inner * axis.length * axis.inner + row % axis.inner;
    int64_t end = first + axis.length * axis.inner;
    for (int64_t i = first; i < end; i += axis.inner) {
      for (int64_t j = i + axis.inner; j < end; j += axis.inner) {
        if (!cf_is_tie(x, i, j) || !(gradient->v[j].re < gradient->v[i].re)) continue;
        cf_swap(gradient, i, j);
        if (beside && beside->v) cf_swap(beside, i, j);
      }
    }
  }
}
