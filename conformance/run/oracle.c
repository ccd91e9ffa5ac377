#include "conformance/run/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/judge/tolerance.h"
#include "conformance/run/call.h"

cf_precision cf_precision_of(const cf_call *call) {
  return (cf_precision){.native = call->op->flags & CF_NATIVE, .doubles = call->schema->table == OPT_CUSTOM};
}

static graft_dtype cf_wide_of(graft_dtype dtype, cf_precision precision) {
  graft_dtype wide = precision.doubles ? GRAFT_F64 : GRAFT_WIDE;
  if (dt_is_complex(dtype)) return precision.doubles ? GRAFT_C128 : GRAFT_WIDE_COMPLEX;
  if (dt_is_float(dtype)) return wide;
  return precision.widen_integers && dtype != GRAFT_BOOL ? wide : dtype;
}

static dt_value cf_transformed(dt_value v, cf_transform transform) {
  if (transform == CF_ONES) return (dt_value){1, 0};
  if (transform == CF_ABSOLUTE) return (dt_value){cf_modulus(v), 0}; /* products of two moduli do not cancel */
  return v;
}

static void cf_store_transformed(const cf_array *a, cf_transform transform, graft_dtype dtype, unsigned char *bytes) {
  enum { TOGETHER = 64 };
  const int64_t each = (int64_t)dt_bytes(dtype);
  dt_value some[TOGETHER];
  if (transform == CF_AS_IS) {
    dt_store_row(dtype, bytes, each, a->numel, dt_parts_of(a->v));
    return;
  }
  for (int64_t from = 0, count; from < a->numel; from += count) {
    count = a->numel - from < TOGETHER ? a->numel - from : TOGETHER;
    for (int64_t i = 0; i < count; i++) some[i] = cf_transformed(a->v[from + i], transform);
    dt_store_row(dtype, bytes + from * each, each, count, dt_parts_of(some));
  }
}

graft_status cf_oracle_tensor(const cf_array *a, cf_transform transform, cf_precision precision,
                              graft_tensor **tensor) {
  graft_dtype dtype = precision.native ? a->dtype : cf_wide_of(a->dtype, precision);
  if (dtype == a->dtype && !dt_is_float(dtype) && !dt_is_complex(dtype)) transform = CF_AS_IS; /* indices and masks */
  uint64_t each = dt_bytes(dtype);
  unsigned char *bytes = calloc((size_t)a->numel + 1, each);
  if (!bytes) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the oracle's tensor");
  cf_store_transformed(a, transform, dtype, bytes);
  graft_status s = graft_tensor_from_host(graft_device_reference(), dtype, a->ndim, a->sizes, bytes, tensor);
  free(bytes);
  return s;
}

/* Python numbers reach a kernel in the precision in which it computes: f32 for half types and f32. The oracle must use
 * the same number. */
static graft_scalar cf_rounded_scalar(const cf_call *call, graft_scalar s, cf_transform transform) {
  bool single = dt_is_half(call->c->dtype) || call->c->dtype == GRAFT_F32 || call->c->dtype == GRAFT_C64;
  if (s.dtype == GRAFT_F64) {
    if (single) s.value.f = (double)(float)s.value.f;
    if (transform == CF_ABSOLUTE) s.value.f = fabs(s.value.f);
  }
  if (s.dtype == GRAFT_I64 && transform == CF_ABSOLUTE && s.value.i < 0) s.value.i = -s.value.i;
  if (s.dtype == GRAFT_C128) {
    for (int k = 0; k < 2 && single; k++) s.value.c[k] = (double)(float)s.value.c[k];
    if (transform == CF_ABSOLUTE) return graft_scalar_float(hypot(s.value.c[0], s.value.c[1]));
  }
  return s;
}

static void cf_oracle_numbers(const cf_call *call, cf_transform transform, cf_side *side) {
  cf_precision precision = cf_precision_of(call);
  bool difference = transform == CF_ABSOLUTE && call->op->flags & CF_DIFFERENCE;
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    graft_value *v = &side->args[i];
    if (v->kind == GRAFT_VALUE_DTYPE && !precision.native) v->as.dtype = cf_wide_of(v->as.dtype, precision);
    if (v->kind == GRAFT_VALUE_SCALAR) v->as.scalar = cf_rounded_scalar(call, v->as.scalar, transform);
    if (difference && v->kind == GRAFT_VALUE_SCALAR && strcmp(call->schema->args[i].name, "alpha") == 0) {
      if (v->as.scalar.dtype == GRAFT_F64)
        v->as.scalar.value.f = -v->as.scalar.value.f;
      else
        v->as.scalar.value.i = -v->as.scalar.value.i;
    }
    if (v->kind != GRAFT_VALUE_SCALARS || side->nscalars + v->count > 64) continue;
    graft_scalar *to = side->scalars + side->nscalars;
    for (uint32_t k = 0; k < v->count; k++) to[k] = cf_rounded_scalar(call, v->as.scalars[k], transform);
    side->nscalars += v->count;
    v->as.scalars = to;
  }
}

graft_status cf_oracle_open(const cf_call *call, cf_transform transform, bool integers, cf_side *side) {
  memset(side, 0, sizeof *side);
  for (uint32_t i = 0; i < call->ntensors; i++) {
    cf_precision precision = cf_precision_of(call);
    precision.widen_integers = integers && call->notes[i].tested;
    graft_status s = cf_oracle_tensor(&call->in[i], transform, precision, &side->in[i]);
    if (s != GRAFT_OK) return cf_side_close(side), s;
  }
  cf_call_args(call, graft_device_reference(), side->in, side->args, side->items);
  cf_oracle_numbers(call, transform, side);
  return GRAFT_OK;
}

void cf_side_close(cf_side *side) {
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) graft_tensor_release(side->in[i]);
  memset(side, 0, sizeof *side);
}

graft_status cf_oracle_run(const cf_call *call, cf_transform transform, bool integers, uint32_t nouts, cf_array *outs,
                           cf_array *mutated) {
  const cf_question question = {.inputs = transform,
                                .widen_integers = integers,
                                .values = cf_answers_values(0, call->in, call->ntensors),
                                .wants_second = mutated != NULL,
                                .count = nouts};
  cf_side side;
  graft_tensor *results[CF_MAX_TENSORS] = {0};
  if (cf_answers_recall(&question, outs, mutated)) return GRAFT_OK;
  graft_status s = cf_oracle_open(call, transform, integers, &side);
  if (s != GRAFT_OK) return s;
  if (cf_call_returns_input(call)) graft_tensor_retain(results[0] = side.in[0]);
  s = graft_call(call->schema->id, side.args, call->schema->nargs, results, nouts);
  for (uint32_t i = 0; s == GRAFT_OK && i < nouts; i++)
    if (results[i] && !cf_array_read(&outs[i], results[i])) s = GRAFT_INTERNAL;
  for (uint32_t i = 0; s == GRAFT_OK && mutated && i < call->ntensors; i++)
    if (cf_call_mutates(call, i) && !cf_array_read(&mutated[i], side.in[i])) s = GRAFT_INTERNAL;
  for (uint32_t i = 0; i < nouts; i++) graft_tensor_release(results[i]);
  cf_side_close(&side);
  if (s == GRAFT_OK) cf_answers_keep(&question, outs, mutated);
  return s;
}
