/* fx: composing ops without checking each call. A scope hands every call to its sink (sink.h), owns every intermediate
 * tensor and remembers the first failure; NULL inputs that an op needs are such a failure. After it every call is a
 * no-op that gives one and the same tensor without memory, whose sizes say nothing: so a formula may read the sizes of
 * what calls gave and need not ask for the status before. It reads as a formula: fx_mul(s, g, fx_cos(s, x)).
 * generated/fx_ops.h holds one function an op. */
#ifndef GRAFT_SDK_FX_H
#define GRAFT_SDK_FX_H

#include "ops/core/sink.h"

struct arena;

typedef struct fx {
  const fx_sink *sink;
  graft_status status;
  uint32_t count, capacity;
  graft_tensor **owned; /* `local` until it overflows */
  graft_tensor *local[24];
} fx;

/* What stands above ops/ and is needed here; wiring.c fills it in. */
typedef struct fx_hooks_table {
  graft_status (*call)(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor **outs, uint32_t nouts);
  graft_status (*infer)(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_meta *metas, size_t meta_bytes,
                        uint32_t capacity, uint32_t *count);
  /* Fills in a step of this call as a described sink gets it; lists has its memory. */
  graft_status (*describe)(uint32_t op_id, const graft_value *args, uint32_t nargs, struct arena *lists, fx_step *step);
} fx_hooks_table;
extern const fx_hooks_table fx_hooks;

void fx_begin(fx *s, const fx_sink *sink); /* which outlives the scope */
/* Releases all intermediates; those to keep were retained with fx_keep. Returns the status. */
graft_status fx_end(fx *s);

void fx_call(fx *s, uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor **outs, uint32_t nouts);
/* Writes the one result to a tensor that is there. */
void fx_call_into(fx *s, uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor *out);
/* Copies values into a tensor that is there: a running statistic, a part of a result that a view names. */
void fx_copy_into(fx *s, graft_tensor *to, graft_tensor *from);

/* Hands a reference to the scope, which releases it at the end; returns it, or what calls give behind a failure. */
graft_tensor *fx_own(fx *s, graft_tensor *tensor);
/* A new reference to an intermediate, for the caller; NULL after a failure. */
graft_tensor *fx_keep(fx *s, graft_tensor *tensor);
void fx_fail(fx *s, graft_status status);

/* Short forms of the most common ops; numbers are Python numbers. */
graft_tensor *fx_add(fx *s, graft_tensor *a, graft_tensor *b);
graft_tensor *fx_sub(fx *s, graft_tensor *a, graft_tensor *b);
graft_tensor *fx_mul(fx *s, graft_tensor *a, graft_tensor *b);
graft_tensor *fx_div(fx *s, graft_tensor *a, graft_tensor *b);
graft_tensor *fx_adds(fx *s, graft_tensor *a, double b);
graft_tensor *fx_muls(fx *s, graft_tensor *a, double b);
graft_tensor *fx_scale(fx *s, graft_tensor *a, graft_scalar b);
graft_tensor *fx_powi(fx *s, graft_tensor *a, int n);
/* An op with one result; any pointwise op on values that may be numbers. */
graft_tensor *fx_one(fx *s, uint32_t op_id, const graft_value *args, uint32_t nargs);
graft_tensor *fx_binary(fx *s, uint32_t op_id, graft_value a, graft_value b);
/* t compared with a number, as the tensor form of a relation does it: fx_is(s, GRAFT_OP_LT_TENSOR, t, 0). */
graft_tensor *fx_is(fx *s, uint32_t relation, graft_tensor *t, double number);
/* a / b, rounded as `mode` says: "trunc", "floor". */
graft_tensor *fx_divide(fx *s, graft_value a, graft_value b, const char *mode);
/* a where the condition holds, else b; and t with 0 in the place of the other. */
graft_tensor *fx_where(fx *s, graft_tensor *condition, graft_value a, graft_value b);
graft_tensor *fx_only_where(fx *s, graft_tensor *condition, graft_tensor *t);
graft_tensor *fx_not_where(fx *s, graft_tensor *condition, graft_tensor *t);
graft_tensor *fx_cast(fx *s, graft_tensor *a, graft_dtype dtype);
/* A half type as f32, all others as they are: for formulas whose parts leave the range of their result. */
graft_tensor *fx_widened(fx *s, graft_tensor *a);
graft_tensor *fx_zeros_like(fx *s, graft_tensor *a);
/* 0, 1, ... count - 1. */
graft_tensor *fx_count_up(fx *s, int64_t count, graft_dtype dtype, graft_rt_device *device);
/* at, plus along dim `dim` of `sizes` 0, 1, ... times the step: what at has is broadcast. */
graft_tensor *fx_add_steps(fx *s, graft_tensor *at, int32_t ndim, const int64_t *sizes, int32_t dim, int64_t step);
graft_tensor *fx_filled(fx *s, graft_tensor *like, int32_t ndim, const int64_t *sizes, double value, graft_dtype dtype);
graft_tensor *fx_reshape(fx *s, graft_tensor *a, int32_t ndim, const int64_t *sizes); /* a view, or a copy */
graft_tensor *fx_contiguous(fx *s, graft_tensor *a);
graft_tensor *fx_transpose(fx *s, graft_tensor *a, int32_t dim0, int32_t dim1);
/* The last two dims swapped. */
graft_tensor *fx_turned(fx *s, graft_tensor *a);
/* And conjugated where complex. */
graft_tensor *fx_adjoint(fx *s, graft_tensor *a);
graft_tensor *fx_conj(fx *s, graft_tensor *a);
/* Sums away what broadcasting from `sizes` added. */
graft_tensor *fx_sum_to(fx *s, graft_tensor *a, int32_t ndim, const int64_t *sizes);
/* Sum over dims in mask. */
graft_tensor *fx_sum(fx *s, graft_tensor *a, uint32_t dims_mask, bool keepdim);
/* Undoes the removal of reduced dims: a view with size 1 at each dim of mask, expanded to sizes. */
graft_tensor *fx_unreduce(fx *s, graft_tensor *a, uint32_t dims_mask, bool keepdim, int32_t ndim, const int64_t *sizes);
/* Undoes the picking of elements along dim: zeros of these sizes with a's elements at `index`. Both may lack dim. */
graft_tensor *fx_unpick(fx *s, graft_tensor *a, graft_tensor *index, int64_t dim, int32_t ndim, const int64_t *sizes);

static inline graft_value fx_tensor(graft_tensor *t) {
  graft_value v = {GRAFT_VALUE_NONE, 0, {0}};
  if (t) v.kind = GRAFT_VALUE_TENSOR, v.as.tensor = t;
  return v;
}
static inline graft_value fx_number(graft_scalar x) {
  graft_value v = {GRAFT_VALUE_NONE, 0, {0}};
  if (x.dtype) v.kind = GRAFT_VALUE_SCALAR, v.as.scalar = x;
  return v;
}
static inline graft_value fx_int(int64_t x) {
  return fx_number(graft_scalar_int(x));
}
static inline graft_value fx_float(double x) {
  return fx_number(graft_scalar_float(x));
}

#endif
