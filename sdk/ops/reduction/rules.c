/* Reductions over dims: rules and decompositions. */
#include "ops/reduction/reduction.h"

#include <math.h>

#include "ops/core/table.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

/* The shape without the dims in mask, or with size 1 there. */
static int32_t reduced_sizes(const graft_tensor *t, uint32_t mask, bool keepdim, int64_t *sizes) {
  int32_t ndim = 0;
  for (int32_t i = 0; i < t->ndim; i++) {
    if (!(mask >> i & 1))
      sizes[ndim++] = t->sizes[i];
    else if (keepdim)
      sizes[ndim++] = 1;
  }
  return ndim;
}

/* PyTorch's structured reductions allocate contiguous results, whatever the layout of the input. */
static void out_reduced(op_call *c, int n, graft_dtype dtype, uint32_t mask, bool keepdim) {
  int64_t sizes[GRAFT_MAX_DIMS];
  int32_t ndim = reduced_sizes(op_tensor(c, ARG_any_self), mask, keepdim, sizes);
  op_out(c, n, dtype, ndim, sizes);
}

/* The dims argument in canonical form. */
static graft_status wrap_dims(op_call *c, const red_row *rule, uint32_t *mask) {
  int32_t ndim = op_tensor(c, ARG_any_self)->ndim;
  if (rule->flags & RED_LIST) return op_wrap_dims(c, rule->dims, ndim, !(rule->flags & RED_LITERAL), mask);
  if (rule->dims >= 0 && !op_absent(c, rule->dims)) {
    int64_t dim = op_int(c, rule->dims);
    graft_status status = op_wrap_dim(c, &dim, ndim);
    if (status) return status;
    op_set_int(c, rule->dims, dim);
  }
  *mask = red_mask(c->schema->id, c->args, ndim);
  return GRAFT_OK;
}

/* `refusal`: as PyTorch has it, an index is out of range for some ops, and for others an argument is invalid. */
static graft_status check_nonempty(const op_call *c, uint32_t mask, graft_status refusal) {
  const graft_tensor *self = op_tensor(c, ARG_any_self);
  for (int32_t i = 0; i < self->ndim; i++) {
    if ((mask >> i & 1) && !self->sizes[i]) {
      return op_fail(c, refusal, "self is %s: dim %d has size 0, and the result of nothing is not defined",
                     op_show(c, ARG_any_self), i);
    }
  }
  return GRAFT_OK;
}

/* The dtype computed in, and the result's. */
static graft_status choose_dtype(op_call *c, const red_row *rule, graft_dtype *out) {
  const in_any in = in_any_of(c->args);
  graft_dtype self = in.self->dtype;
  graft_dtype asked = rule->dtype >= 0 ? op_dtype(c, rule->dtype) : GRAFT_DTYPE_NONE;
  graft_dtype dtype = asked ? asked : self;
  bool whole = dt_is_integral(dtype, true), complex = dt_is_complex(dtype);
  *out = dtype;
  switch (rule->kind) {
    case RED_NANSUM:
      if (dt_is_complex(self)) return op_refuse(c, ARG_any_self, "a real dtype");
      if (complex && dt_is_float(self)) {
        return op_error(c, "dtype is %s; expected a real dtype", graft_dtype_name(asked));
      }
      /* fall through */
    case RED_SUM:
      if (!asked && whole) *out = dtype = GRAFT_I64;
      break;
    case RED_MEAN:
      if (whole && asked)
        return op_error(c, "dtype is %s; expected a floating or complex dtype", graft_dtype_name(asked));
      if (whole) return op_refuse(c, ARG_any_self, "a floating or complex dtype, or the dtype argument");
      break;
    case RED_SAME:
      if (complex && in.self->numel) return op_refuse(c, ARG_any_self, "a real dtype"); /* of nothing: as PyTorch */
      break;
    case RED_VAR:
      if (whole || (dt_is_float8(dtype) && in.self->numel))
        return op_refuse(c, ARG_any_self, "a floating or complex dtype");
      *out = dt_real(dtype);
      break;
    case RED_NORM:
      if (dt_is_integral(self, true)) return op_refuse(c, ARG_any_self, "a floating or complex dtype");
      if (dt_is_complex(self) != complex || dt_promote(self, dtype) != dtype) {
        return op_error(c, "dtype is %s; expected one that holds every value of self (%s)", graft_dtype_name(dtype),
                        op_show(c, ARG_any_self));
      }
      *out = dt_real(dtype);
      break;
    case RED_ANY: *out = self == GRAFT_U8 ? GRAFT_U8 : GRAFT_BOOL; break;
    case RED_INDEX:
      if (complex || self == GRAFT_BOOL) return op_refuse(c, ARG_any_self, "a real dtype that is not bool");
      *out = GRAFT_I64;
      break;
    case RED_COUNT: *out = GRAFT_I64; break;
    case RED_BITS:
      if (!dt_is_integral(self, false) || !dt_is_integral(dtype, false)) return op_refuse(c, ARG_any_self, "integers");
      break;
    case RED_FLOAT:
      if (whole) *out = dtype = dt_default();
      break;
  }
  c->compute = dtype;
  if (rule->dtype >= 0) op_set_dtype(c, rule->dtype, dtype);
  return GRAFT_OK;
}

static graft_status infer_reduction(op_call *c) {
  const red_row *rule = c->def->row;
  uint32_t mask;
  graft_dtype dtype;
  graft_status status = choose_dtype(c, rule, &dtype);
  if (!status) status = wrap_dims(c, rule, &mask);
  if (!status && (rule->flags & RED_NONEMPTY)) status = check_nonempty(c, mask, GRAFT_OUT_OF_RANGE);
  if (status) return status;
  out_reduced(c, OUT, dtype, mask, red_keepdim(c->schema->id, c->args));
  return GRAFT_OK;
}

/* max.dim and min.dim: values and indices */
static graft_status infer_pick(op_call *c) {
  if (dt_is_complex(op_tensor(c, ARG_max_dim_self)->dtype)) return op_refuse(c, ARG_max_dim_self, "a real dtype");
  graft_status status = infer_reduction(c);
  if (status) return status;
  op_out(c, OUT_max_dim_indices, GRAFT_I64, c->out[OUT_max_dim_values].ndim, c->out[OUT_max_dim_values].sizes);
  return GRAFT_OK;
}

/* The smallest and the largest, alike. */
static graft_status infer_aminmax(op_call *c) {
  if (dt_is_complex(op_tensor(c, ARG_aminmax_self)->dtype)) return op_refuse(c, ARG_aminmax_self, "a real dtype");
  graft_status status = infer_reduction(c);
  if (status) return status;
  op_out(c, OUT_aminmax_max, c->out[OUT_aminmax_min].dtype, c->out[OUT_aminmax_min].ndim,
         c->out[OUT_aminmax_min].sizes);
  return GRAFT_OK;
}

static graft_status infer_var(op_call *c) {
  if (op_absent(c, ARG_var_correction_correction)) c->args[ARG_var_correction_correction] = fx_int(1);
  if (dt_is_complex(op_scalar(c, ARG_var_correction_correction).dtype))
    return op_error(c, "correction is complex; expected a real number");
  return infer_reduction(c);
}

/* The spread, which is real, and the mean. */
static graft_status infer_var_mean(op_call *c) {
  graft_status status = infer_var(c);
  if (status) return status;
  op_out(c, OUT_var_mean_correction_out1, c->compute, c->out[OUT_var_mean_correction_out0].ndim,
         c->out[OUT_var_mean_correction_out0].sizes);
  return GRAFT_OK;
}

static graft_status infer_norm(op_call *c) {
  const red_row *row = c->def->row;
  if (op_absent(c, row->order)) c->args[row->order] = fx_int(2); /* norm's p may be */
  graft_scalar order = op_scalar(c, row->order);
  if (dt_is_complex(order.dtype))
    return op_error(c, "%s is complex; expected a real number", c->schema->args[row->order].name);
  graft_status status = infer_reduction(c);
  long double p = dt_scalar_value(&order).re;
  if (status || (p >= 0 && !isinf((double)p))) return status;
  const uint32_t mask = red_mask(c->schema->id, c->args, op_tensor(c, ARG_linalg_vector_norm_self)->ndim);
  return check_nonempty(c, mask, GRAFT_INVALID_ARGUMENT);
}

/* --- decompositions --- */

static graft_tensor *divided(fx *s, graft_tensor *a, double by) {
  return fx_binary(s, GRAFT_OP_DIV_TENSOR, fx_tensor(a), fx_float(by));
}

static void decompose_mean(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *self = op_tensor(c, ARG_mean_self);
  uint32_t mask = red_mask(c->schema->id, c->args, self->ndim);
  outs[OUT] = divided(s, fx_sum(s, self, mask, red_keepdim(c->schema->id, c->args)), (double)red_count(self, mask));
}

/* The dims of a mask, as a list. */
static uint32_t dims_of(uint32_t mask, int32_t ndim, int64_t *dims) {
  uint32_t count = 0;
  for (int32_t i = 0; i < ndim; i++) {
    if (mask >> i & 1) dims[count++] = i;
  }
  return count;
}

/* That of the real parts and that of the imaginary ones, so that values that are all the same have exactly none. */
static graft_tensor *complex_variance(fx *s, const in_var_correction *in, uint32_t mask) {
  graft_tensor *self = in->self->ndim ? in->self : fx_reshape(s, in->self, 1, (int64_t[]){1});
  if (!self) return NULL;
  int64_t dims[GRAFT_MAX_DIMS];
  uint32_t count = dims_of(in->self->ndim ? mask : 1, self->ndim, dims);
  bool keepdim = in->keepdim && in->self->ndim;
  graft_tensor *parts = fx_var_correction(s, fx_view_as_real(s, self), dims, count, in->correction, keepdim);
  return parts ? fx_sum(s, parts, 1u << (parts->ndim - 1), false) : NULL;
}

/* Elements less their mean, which is found as a distance from the first of them: elements that are all the same have
 * exactly none, where a rounded mean would leave some. */
static graft_tensor *deviations(fx *s, graft_tensor *self, uint32_t mask) {
  const int64_t start = 0, end = 1;
  graft_tensor *first = self;
  for (int32_t d = 0; self->numel && d < self->ndim; d++) {
    if (mask >> d & 1) first = fx_slice_Tensor(s, first, d, &start, &end, 1);
  }
  graft_tensor *away = fx_sub(s, self, first);
  return fx_sub(s, away, divided(s, fx_sum(s, away, mask, true), (double)red_count(self, mask)));
}

static void decompose_var(fx *s, const op_call *c, graft_tensor **outs) {
  const in_var_correction in = in_var_correction_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  uint32_t mask = red_mask(c->schema->id, c->args, in.self->ndim);
  if (dt_is_complex(in.self->dtype)) {
    outs[OUT] = complex_variance(s, &in, mask);
    return;
  }
  graft_scalar correction = in.correction;
  double count = (double)red_count(in.self, mask), freedom = count - (double)dt_scalar_value(&correction).re;
  graft_tensor *away = deviations(s, in.self, mask);
  outs[OUT] = divided(s, fx_sum(s, fx_mul(s, away, away), mask, in.keepdim), freedom > 0 ? freedom : 0);
}

static void decompose_prod(fx *s, const op_call *c, graft_tensor **outs) {
  const in_prod in = in_prod_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *self = in.self;
  outs[OUT] = fx_prod_dim_int(s, fx_reshape(s, self, 1, &self->numel), 0, false, in.dtype);
}

/* How many are true; amax has no answer for nothing. */
static void decompose_any(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, ARG_any_self), *truth = fx_ne_Scalar(s, self, graft_scalar_int(0));
  uint32_t mask = red_mask(c->schema->id, c->args, self->ndim);
  graft_tensor *count = fx_sum(s, fx_cast(s, truth, GRAFT_I64), mask, red_keepdim(c->schema->id, c->args));
  outs[OUT] = fx_cast(s, fx_ne_Scalar(s, count, graft_scalar_int(0)), c->out[OUT].dtype);
}

static void decompose_pick(fx *s, const op_call *c, graft_tensor **outs) {
  const in_max_dim in = in_max_dim_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  bool largest = c->schema->id == GRAFT_OP_MAX_DIM;
  graft_tensor *ordered = in.self->dtype == GRAFT_BOOL ? fx_cast(s, in.self, GRAFT_U8) : in.self; /* argmax wants one */
  graft_tensor *at = (largest ? fx_argmax : fx_argmin)(s, ordered, &in.dim, true);
  /* The value that stands there: of a 0 and a -0, which are equal, that of the index. */
  graft_tensor *value = fx_gather(s, in.self, in.dim, at, false);
  outs[OUT_max_dim_values] = in.keepdim ? value : fx_squeeze_dim(s, value, in.dim);
  outs[OUT_max_dim_indices] = in.keepdim ? at : fx_squeeze_dim(s, at, in.dim);
}

/* None is false. */
static void decompose_all(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, ARG_all_self), *falsehood = fx_eq_Scalar(s, self, graft_scalar_int(0));
  uint32_t mask = red_mask(c->schema->id, c->args, self->ndim);
  graft_tensor *count = fx_sum(s, fx_cast(s, falsehood, GRAFT_I64), mask, red_keepdim(c->schema->id, c->args));
  outs[OUT] = fx_cast(s, fx_eq_Scalar(s, count, graft_scalar_int(0)), c->out[OUT].dtype);
}

static void decompose_count(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, ARG_count_nonzero_self), *truth = fx_ne_Scalar(s, self, graft_scalar_int(0));
  outs[OUT] = fx_sum(s, fx_cast(s, truth, GRAFT_I64), red_mask(c->schema->id, c->args, self->ndim), false);
}

static void decompose_extremes(fx *s, const op_call *c, graft_tensor **outs) {
  const in_max in = in_max_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  uint32_t op = c->schema->id, n = 0;
  int64_t dims[GRAFT_MAX_DIMS];
  uint32_t count = dims_of(red_mask(op, c->args, in.self->ndim), in.self->ndim, dims);
  bool keepdim = red_keepdim(op, c->args);
  if (op != GRAFT_OP_MAX) outs[n++] = fx_amin(s, in.self, dims, count, keepdim);
  if (op != GRAFT_OP_MIN) outs[n++] = fx_amax(s, in.self, dims, count, keepdim);
}

static graft_tensor *variance(fx *s, const in_std_correction *in) {
  return fx_var_correction(s, in->self, in->dim, in->dim_count, in->correction, in->keepdim);
}
static graft_tensor *mean_beside(fx *s, const in_std_correction *in) {
  return fx_mean_dim(s, in->self, in->dim, in->dim_count, in->keepdim, GRAFT_DTYPE_NONE);
}

static void decompose_std(fx *s, const op_call *c, graft_tensor **outs) {
  const in_std_correction in = in_std_correction_of(c->args);
  if (!op_ran_wider(s, c, outs)) outs[OUT] = fx_sqrt(s, variance(s, &in));
}

/* Their arguments stand like those of std. */
static void decompose_var_mean(fx *s, const op_call *c, graft_tensor **outs) {
  const in_std_correction in = in_std_correction_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  bool root = c->schema->id == GRAFT_OP_STD_MEAN_CORRECTION;
  graft_tensor *spread = variance(s, &in);
  outs[OUT_var_mean_correction_out0] = root ? fx_sqrt(s, spread) : spread;
  outs[OUT_var_mean_correction_out1] = mean_beside(s, &in);
}

static void decompose_nansum(fx *s, const op_call *c, graft_tensor **outs) {
  const in_nansum in = in_nansum_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  bool has_nan = dt_is_float(in.self->dtype);
  graft_tensor *numbers = has_nan ? fx_not_where(s, fx_isnan(s, in.self), in.self) : in.self;
  outs[OUT] = fx_sum(s, numbers, red_mask(c->schema->id, c->args, in.self->ndim), in.keepdim);
}

/* Shifted by the largest, which then can't overflow; not by an infinity, which would leave NaN. */
static void decompose_logsumexp(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *self = op_tensor(c, ARG_logsumexp_self), *shift = NULL;
  uint32_t mask = red_mask(c->schema->id, c->args, self->ndim);
  int64_t dims[GRAFT_MAX_DIMS];
  uint32_t count = dims_of(mask, self->ndim, dims);
  if (self->numel) { /* of complex numbers the real parts say how large their exponentials are */
    const graft_value whole = fx_tensor(self);
    graft_tensor *real = self;
    if (dt_is_complex(self->dtype)) fx_call(s, GRAFT_OP_PRIMS_REAL, &whole, 1, &real, 1);
    shift = fx_amax(s, real, dims, count, true);
    graft_tensor *endless = fx_eq_Scalar(s, fx_abs(s, shift), graft_scalar_float(INFINITY));
    shift = fx_not_where(s, endless, shift);
  }
  graft_tensor *sum = fx_log(s, fx_sum(s, fx_exp(s, shift ? fx_sub(s, self, shift) : self), mask, true));
  if (shift) sum = fx_add(s, sum, shift);
  outs[OUT] = fx_reshape(s, sum, c->out[OUT].ndim, c->out[OUT].sizes);
}

static void decompose_old_norm(fx *s, const op_call *c, graft_tensor **outs) {
  const in_norm_ScalarOpt_dim in = in_norm_ScalarOpt_dim_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  const graft_value *dims = &c->args[ARG_norm_ScalarOpt_dim_dim];
  outs[OUT] = fx_linalg_vector_norm(s, in.self, in.p, dims->as.ints, dims->count, in.keepdim, GRAFT_DTYPE_NONE);
}

static void decompose_norm(fx *s, const op_call *c, graft_tensor **outs) {
  const in_linalg_vector_norm in = in_linalg_vector_norm_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  graft_scalar order = in.ord;
  double p = (double)dt_scalar_value(&order).re;
  graft_tensor *size = fx_abs(s, in.self);
  uint32_t mask = red_mask(c->schema->id, c->args, in.self->ndim);
  const graft_value *dims = &c->args[ARG_linalg_vector_norm_dim];
  if (p == 0) {
    outs[OUT] = fx_sum(s, fx_cast(s, fx_ne_Scalar(s, size, graft_scalar_int(0)), c->out[OUT].dtype), mask, in.keepdim);
  } else if (isinf(p)) {
    outs[OUT] = (p > 0 ? fx_amax : fx_amin)(s, size, dims->as.ints, dims->count, in.keepdim);
  } else if (p == 1) {
    outs[OUT] = fx_sum(s, size, mask, in.keepdim);
  } else if (p == 2) {
    outs[OUT] = fx_sqrt(s, fx_sum(s, fx_mul(s, size, size), mask, in.keepdim));
  } else {
    graft_tensor *sum = fx_sum(s, fx_pow_Tensor_Scalar(s, size, graft_scalar_float(p)), mask, in.keepdim);
    outs[OUT] = fx_pow_Tensor_Scalar(s, sum, graft_scalar_float(1 / p));
  }
}

#define AT_NONE(op)      .dims = -1, .keepdim = -1, .dtype = -1
#define AT_DTYPE(op)     .dims = -1, .keepdim = -1, .dtype = ARG_##op##_dtype
#define AT_DIM_ONLY(op)  .dims = ARG_##op##_dim, .keepdim = -1, .dtype = -1
#define AT_DIM(op)       .dims = ARG_##op##_dim, .keepdim = ARG_##op##_keepdim, .dtype = -1
#define AT_DIM_DTYPE(op) .dims = ARG_##op##_dim, .keepdim = ARG_##op##_keepdim, .dtype = ARG_##op##_dtype

#define AT_DIMS_OF_PRIM(op) .dims = ARG_##op##_dims, .keepdim = -1, .dtype = ARG_##op##_output_dtype

#define AT_NORM(op)     AT_DIM_DTYPE(op), .order = ARG_##op##_ord
#define AT_OLD_NORM(op) AT_DIM(op), .order = ARG_##op##_p

#define ROW(op, kind_, flags_, at, ...)                                               \
  {                                                                                   \
    .op_id = OP_WITH_KERNEL(op), .roles = "v", __VA_ARGS__, .row = &(const red_row) { \
      .kind = kind_, .flags = flags_, at                                              \
    }                                                                                 \
  }
#define RULE(decompose_, vjp_) .infer = infer_reduction, .decompose = decompose_, .vjp = vjp_
#define NORM(decompose_)       .infer = infer_norm, .decompose = decompose_, .vjp = red_vjp_norm
#define SELF(op)               OP_SAVE_ARG(op, self)
#define BOTH(op)               OP_SAVE_ARG(op, self) | OP_SAVE_OUT(op, out)

static const op_def defs[] = {
    ROW(sum_dim_IntList, RED_SUM, RED_LIST, AT_DIM_DTYPE(sum_dim_IntList), RULE(NULL, red_vjp_sum)),
    ROW(mean_dim, RED_MEAN, RED_LIST, AT_DIM_DTYPE(mean_dim), RULE(decompose_mean, red_vjp_mean)),
    {.op_id = GRAFT_OP_MEAN,
     .roles = "v",
     RULE(decompose_mean, red_vjp_mean),
     .row = &(const red_row){.kind = RED_MEAN, AT_DTYPE(mean)}},
    ROW(amax, RED_SAME, RED_LIST | RED_NONEMPTY, AT_DIM(amax), RULE(NULL, red_vjp_extremum), .flags = OP_EXACT_OUT,
        .saves = BOTH(amax)),
    ROW(amin, RED_SAME, RED_LIST | RED_NONEMPTY, AT_DIM(amin), RULE(NULL, red_vjp_extremum), .flags = OP_EXACT_OUT,
        .saves = BOTH(amin)),
    ROW(argmax, RED_INDEX, RED_NONEMPTY, AT_DIM(argmax), RULE(NULL, NULL), .flags = OP_EXACT_OUT),
    ROW(argmin, RED_INDEX, RED_NONEMPTY, AT_DIM(argmin), RULE(NULL, NULL), .flags = OP_EXACT_OUT),
    ROW(any, RED_ANY, 0, AT_NONE(any), RULE(decompose_any, NULL), .flags = OP_EXACT_OUT),
    ROW(any_dim, RED_ANY, 0, AT_DIM(any_dim), RULE(decompose_any, NULL), .flags = OP_EXACT_OUT),
    ROW(any_dims, RED_ANY, RED_LIST | RED_LITERAL, AT_DIM(any_dims), RULE(decompose_any, NULL), .flags = OP_EXACT_OUT),
    ROW(all, RED_ANY, 0, AT_NONE(all), RULE(decompose_all, NULL), .flags = OP_EXACT_OUT),
    ROW(all_dim, RED_ANY, 0, AT_DIM(all_dim), RULE(decompose_all, NULL), .flags = OP_EXACT_OUT),
    ROW(prod, RED_SUM, 0, AT_DTYPE(prod), RULE(decompose_prod, red_vjp_prod), .saves = SELF(prod)),
    ROW(prod_dim_int, RED_SUM, 0, AT_DIM_DTYPE(prod_dim_int), RULE(NULL, red_vjp_prod), .saves = SELF(prod_dim_int)),
    ROW(prims_prod, RED_SUM, RED_LIST | RED_LITERAL, AT_DIMS_OF_PRIM(prims_prod), RULE(NULL, NULL)),
    ROW(prims_xor_sum, RED_BITS, RED_LIST | RED_LITERAL, AT_DIMS_OF_PRIM(prims_xor_sum), RULE(NULL, NULL)),
    ROW(max_dim, RED_SAME, RED_NONEMPTY, AT_DIM(max_dim), .infer = infer_pick, .decompose = decompose_pick,
        .vjp = red_vjp_pick, .saves = OP_SAVE_OUT(max_dim, indices)),
    ROW(min_dim, RED_SAME, RED_NONEMPTY, AT_DIM(min_dim), .infer = infer_pick, .decompose = decompose_pick,
        .vjp = red_vjp_pick, .saves = OP_SAVE_OUT(min_dim, indices)),
    ROW(max, RED_SAME, RED_NONEMPTY, AT_NONE(max), RULE(decompose_extremes, red_vjp_extremum), .saves = BOTH(max)),
    ROW(min, RED_SAME, RED_NONEMPTY, AT_NONE(min), RULE(decompose_extremes, red_vjp_extremum), .saves = BOTH(min)),
    ROW(aminmax, RED_SAME, RED_NONEMPTY, AT_DIM(aminmax), .infer = infer_aminmax, .decompose = decompose_extremes,
        .vjp = red_vjp_extremum, .saves = SELF(aminmax) | OP_SAVE_OUT(aminmax, min) | OP_SAVE_OUT(aminmax, max)),
    ROW(var_correction, RED_VAR, RED_LIST, AT_DIM(var_correction), .infer = infer_var, .decompose = decompose_var,
        .vjp = red_vjp_var, .saves = SELF(var_correction)),
    ROW(std_correction, RED_VAR, RED_LIST, AT_DIM(std_correction), .infer = infer_var, .decompose = decompose_std,
        .vjp = red_vjp_var, .saves = BOTH(std_correction)),
    ROW(var_mean_correction, RED_VAR, RED_LIST, AT_DIM(var_mean_correction), .infer = infer_var_mean,
        .decompose = decompose_var_mean, .vjp = red_vjp_var, .saves = SELF(var_mean_correction)),
    ROW(std_mean_correction, RED_VAR, RED_LIST, AT_DIM(std_mean_correction), .infer = infer_var_mean,
        .decompose = decompose_var_mean, .vjp = red_vjp_var,
        .saves = SELF(std_mean_correction) | OP_SAVE_OUT(std_mean_correction, out0)),
    ROW(linalg_vector_norm, RED_NORM, RED_LIST, AT_NORM(linalg_vector_norm), NORM(decompose_norm),
        .flags = OP_EXACT_OUT, .saves = BOTH(linalg_vector_norm)),
    ROW(norm_ScalarOpt_dim, RED_NORM, RED_LIST, AT_OLD_NORM(norm_ScalarOpt_dim), NORM(decompose_old_norm),
        .saves = BOTH(norm_ScalarOpt_dim)),
    ROW(nansum, RED_NANSUM, RED_LIST, AT_DIM_DTYPE(nansum), RULE(decompose_nansum, red_vjp_nansum),
        .saves = SELF(nansum)),
    ROW(count_nonzero, RED_COUNT, 0, AT_DIM_ONLY(count_nonzero), RULE(decompose_count, NULL)),
    ROW(logsumexp, RED_FLOAT, RED_LIST, AT_DIM(logsumexp), RULE(decompose_logsumexp, red_vjp_logsumexp),
        .saves = BOTH(logsumexp)),
};
OP_TABLE(reduction, defs)
