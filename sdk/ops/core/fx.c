/* See fx.h. */
#include "ops/core/fx.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "graft/abi/op_ids.h"
#include "ops/generated/fx_ops.h"
#include "tensor/tensor.h"

void fx_begin(fx *s, const fx_sink *sink) {
  s->sink = sink;
  s->status = GRAFT_OK;
  s->count = 0;
  s->capacity = sizeof s->local / sizeof *s->local;
  s->owned = s->local;
}

graft_status fx_end(fx *s) {
  for (uint32_t i = 0; i < s->count; i++) graft_tensor_release(s->owned[i]);
  if (s->owned != s->local) free(s->owned);
  s->count = 0;
  s->owned = s->local;
  return s->status;
}

void fx_fail(fx *s, graft_status status) {
  if (!s->status) s->status = status;
}

/* What calls give behind a failure. Each size is 1, so that one may divide by it, and the rank is one that formulas of
 * images, matrices and lines alike count down from. Nobody writes to it, and no reference to it is counted. */
static graft_tensor unmade = {.refs = 1,
                              .dtype = GRAFT_F32,
                              .ndim = 4,
                              .numel = 1,
                              .sizes = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                              .strides = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
_Static_assert(GRAFT_MAX_DIMS == 16, "each size of what is not made is 1");

/* In place of a result that there is not. */
static graft_tensor *missing(const fx *s) {
  return s->status ? &unmade : NULL;
}

static bool grow(fx *s) {
  uint32_t capacity = s->capacity * 2;
  graft_tensor **owned = malloc(capacity * sizeof *owned);
  if (!owned) return false;
  memcpy(owned, s->owned, s->count * sizeof *owned);
  if (s->owned != s->local) free(s->owned);
  s->owned = owned;
  s->capacity = capacity;
  return true;
}

graft_tensor *fx_own(fx *s, graft_tensor *tensor) {
  if (!tensor) return missing(s);
  if (s->count == s->capacity && !grow(s)) {
    graft_tensor_release(tensor);
    fx_fail(s, err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a list of intermediate tensors"));
    return missing(s);
  }
  s->owned[s->count++] = tensor;
  return tensor;
}

graft_tensor *fx_keep(fx *s, graft_tensor *tensor) {
  if (s->status || !tensor) return NULL;
  graft_tensor_retain(tensor);
  return tensor;
}

static graft_status execute(void *self, const fx_step *step, graft_tensor **outs, uint32_t nouts) {
  (void)self;
  return fx_hooks.call(step->op_id, step->args, step->nargs, outs, nouts);
}

const fx_sink fx_execute = {.take = execute};

static graft_status take_described(const fx_sink *sink, fx_step *step, graft_tensor **outs, uint32_t nouts) {
  arena memory = {0};
  graft_status status = fx_hooks.describe(step->op_id, step->args, step->nargs, &memory, step);
  if (!status) status = sink->take(sink->self, step, outs, nouts);
  arena_free(&memory);
  return status;
}

static void emit(fx *s, uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor **outs, uint32_t nouts) {
  if (s->status) return;
  fx_step step = {.op_id = op_id, .args = args, .nargs = nargs};
  const fx_sink *sink = s->sink;
  fx_fail(s, sink->described ? take_described(sink, &step, outs, nouts) : sink->take(sink->self, &step, outs, nouts));
}

void fx_call(fx *s, uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor **outs, uint32_t nouts) {
  for (uint32_t i = 0; i < nouts; i++) outs[i] = NULL;
  emit(s, op_id, args, nargs, outs, nouts);
  for (uint32_t i = 0; i < nouts; i++) outs[i] = s->status ? missing(s) : fx_own(s, outs[i]);
}

void fx_call_into(fx *s, uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor *out) {
  emit(s, op_id, args, nargs, &out, 1);
}

void fx_copy_into(fx *s, graft_tensor *to, graft_tensor *from) {
  fx_call_into(s, GRAFT_OP_COPY, (graft_value[]){fx_tensor(to), fx_tensor(from)}, 2, to);
}

graft_tensor *fx_one(fx *s, uint32_t op_id, const graft_value *args, uint32_t nargs) {
  graft_tensor *out;
  fx_call(s, op_id, args, nargs, &out, 1);
  return out;
}

graft_tensor *fx_binary(fx *s, uint32_t op_id, graft_value a, graft_value b) {
  return fx_one(s, op_id, (graft_value[]){a, b}, 2);
}

graft_tensor *fx_is(fx *s, uint32_t relation, graft_tensor *t, double number) {
  return fx_binary(s, relation, fx_tensor(t), fx_float(number));
}

graft_tensor *fx_divide(fx *s, graft_value a, graft_value b, const char *mode) {
  return fx_one(s, GRAFT_OP_DIV_TENSOR_MODE, (graft_value[]){a, b, wrap_str(mode)}, 3);
}

graft_tensor *fx_where(fx *s, graft_tensor *condition, graft_value a, graft_value b) {
  return fx_one(s, GRAFT_OP_WHERE_SELF, (graft_value[]){fx_tensor(condition), a, b}, 3);
}
graft_tensor *fx_only_where(fx *s, graft_tensor *condition, graft_tensor *t) {
  return fx_where(s, condition, fx_tensor(t), fx_int(0));
}
graft_tensor *fx_not_where(fx *s, graft_tensor *condition, graft_tensor *t) {
  return fx_where(s, condition, fx_int(0), fx_tensor(t));
}

graft_tensor *fx_add(fx *s, graft_tensor *a, graft_tensor *b) {
  return fx_binary(s, GRAFT_OP_ADD_TENSOR, fx_tensor(a), fx_tensor(b));
}
graft_tensor *fx_sub(fx *s, graft_tensor *a, graft_tensor *b) {
  return fx_binary(s, GRAFT_OP_SUB_TENSOR, fx_tensor(a), fx_tensor(b));
}
graft_tensor *fx_mul(fx *s, graft_tensor *a, graft_tensor *b) {
  return fx_binary(s, GRAFT_OP_MUL_TENSOR, fx_tensor(a), fx_tensor(b));
}
graft_tensor *fx_div(fx *s, graft_tensor *a, graft_tensor *b) {
  return fx_binary(s, GRAFT_OP_DIV_TENSOR, fx_tensor(a), fx_tensor(b));
}
graft_tensor *fx_adds(fx *s, graft_tensor *a, double b) {
  return fx_binary(s, GRAFT_OP_ADD_TENSOR, fx_tensor(a), fx_float(b));
}
graft_tensor *fx_muls(fx *s, graft_tensor *a, double b) {
  return fx_binary(s, GRAFT_OP_MUL_TENSOR, fx_tensor(a), fx_float(b));
}
graft_tensor *fx_scale(fx *s, graft_tensor *a, graft_scalar b) {
  return fx_binary(s, GRAFT_OP_MUL_TENSOR, fx_tensor(a), fx_number(b));
}
graft_tensor *fx_powi(fx *s, graft_tensor *a, int n) {
  return fx_pow_Tensor_Scalar(s, a, graft_scalar_int(n));
}

graft_tensor *fx_cast(fx *s, graft_tensor *a, graft_dtype dtype) {
  if (!a || a->dtype == dtype) return a;
  return fx_to_copy(s, a, dtype, NULL, GRAFT_FORMAT_PRESERVE);
}

graft_tensor *fx_filled(fx *s, graft_tensor *like, int32_t ndim, const int64_t *sizes, double value,
                        graft_dtype dtype) {
  if (!like) return missing(s);
  static const int64_t none = 0;
  return fx_full(s, sizes ? sizes : &none, (uint32_t)ndim, graft_scalar_float(value), dtype, like->device);
}

graft_tensor *fx_count_up(fx *s, int64_t count, graft_dtype dtype, graft_rt_device *device) {
  return fx_arange_start_step(s, graft_scalar_int(0), graft_scalar_int(count), graft_scalar_int(1), dtype, device);
}

graft_tensor *fx_add_steps(fx *s, graft_tensor *at, int32_t ndim, const int64_t *sizes, int32_t dim, int64_t step) {
  int64_t column[GRAFT_MAX_DIMS] = {sizes[dim]};
  for (int32_t d = 1; d < ndim - dim; d++) column[d] = 1;
  graft_tensor *steps = fx_scale(s, fx_count_up(s, sizes[dim], GRAFT_I64, at->device), graft_scalar_int(step));
  return fx_add(s, at, fx_view(s, steps, column, (uint32_t)(ndim - dim)));
}

graft_tensor *fx_widened(fx *s, graft_tensor *a) {
  return a && dt_is_half(a->dtype) ? fx_cast(s, a, GRAFT_F32) : a;
}

graft_tensor *fx_zeros_like(fx *s, graft_tensor *a) {
  return a ? fx_filled(s, a, a->ndim, a->sizes, 0.0, a->dtype) : missing(s);
}

graft_tensor *fx_contiguous(fx *s, graft_tensor *a) {
  if (!a || graft_tensor_is_contiguous(a)) return a;
  return fx_clone(s, a, GRAFT_FORMAT_CONTIGUOUS);
}

graft_tensor *fx_reshape(fx *s, graft_tensor *a, int32_t ndim, const int64_t *sizes) {
  if (!a) return missing(s);
  return fx_view(s, fx_contiguous(s, a), sizes, (uint32_t)ndim);
}

graft_tensor *fx_transpose(fx *s, graft_tensor *a, int32_t dim0, int32_t dim1) {
  if (!a) return missing(s);
  int64_t dims[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < a->ndim; i++) dims[i] = i;
  dims[dim0] = dim1;
  dims[dim1] = dim0;
  return fx_permute(s, a, dims, (uint32_t)a->ndim);
}

graft_tensor *fx_conj(fx *s, graft_tensor *a) {
  if (!a || !dt_is_complex(a->dtype)) return a;
  return fx_one(s, GRAFT_OP_PRIMS_CONJ, (graft_value[]){fx_tensor(a)}, 1);
}

graft_tensor *fx_turned(fx *s, graft_tensor *a) {
  return a ? fx_transpose(s, a, a->ndim - 2, a->ndim - 1) : missing(s);
}

graft_tensor *fx_adjoint(fx *s, graft_tensor *a) {
  return fx_conj(s, fx_turned(s, a));
}

graft_tensor *fx_sum(fx *s, graft_tensor *a, uint32_t dims_mask, bool keepdim) {
  if (!a) return missing(s);
  if (!dims_mask) return a;
  int64_t dims[GRAFT_MAX_DIMS];
  uint32_t count = 0;
  for (int32_t i = 0; i < a->ndim; i++) {
    if (dims_mask >> i & 1) dims[count++] = i;
  }
  return fx_sum_dim_IntList(s, a, dims, count, keepdim, a->dtype);
}

graft_tensor *fx_sum_to(fx *s, graft_tensor *a, int32_t ndim, const int64_t *sizes) {
  if (!a) return missing(s);
  int32_t extra = a->ndim - ndim;
  uint32_t mask = 0;
  for (int32_t i = 0; i < a->ndim; i++) {
    if (i < extra || (sizes[i - extra] == 1 && a->sizes[i] != 1)) mask |= 1u << i;
  }
  if (!mask) return a;
  graft_tensor *sum = fx_sum(s, a, mask, true);
  return extra ? fx_reshape(s, sum, ndim, sizes) : sum;
}

graft_tensor *fx_unreduce(fx *s, graft_tensor *a, uint32_t dims_mask, bool keepdim, int32_t ndim,
                          const int64_t *sizes) {
  if (!a) return missing(s);
  if (!keepdim) {
    for (int32_t i = 0; i < ndim; i++) {
      if (dims_mask >> i & 1) a = fx_unsqueeze(s, a, i);
    }
  }
  return fx_expand(s, a, sizes, (uint32_t)ndim, false);
}

graft_tensor *fx_unpick(fx *s, graft_tensor *a, graft_tensor *index, int64_t dim, int32_t ndim, const int64_t *sizes) {
  if (!a) return missing(s);
  graft_tensor *zeros = fx_filled(s, a, ndim, sizes, 0, a->dtype);
  if (a->ndim < ndim) {
    a = fx_unsqueeze(s, a, dim);
    index = fx_unsqueeze(s, index, dim);
  }
  return fx_scatter_src(s, zeros, dim, index, a);
}
