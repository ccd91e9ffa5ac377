/* Reductions over dims: rules and decompositions. */
#include "ops/reduction/reduction.h"

#include <math.h>

#include "ops/core/families.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"

/* --- where arguments stand --- */

typedef enum red_dtype {
  RED_SUM,    /* integers and bool as i64; or the dtype argument */
  RED_MEAN,   /* as it is, or the dtype argument; refuses integers */
  RED_SAME,   /* as it is; refuses complex */
  RED_VAR,    /* floating or complex; the result is real */
  RED_NORM,   /* likewise, with a dtype argument that does not narrow */
  RED_ANY,    /* bool, of u8 u8 */
  RED_INDEX,  /* i64; refuses complex and bool */
  RED_COUNT,  /* i64, of anything */
  RED_NANSUM, /* as RED_SUM; refuses complex */
  RED_FLOAT   /* integers and bool as the default float */
} red_dtype;

enum { RED_LIST = 1, RED_NONEMPTY = 2, RED_LITERAL = 4 }; /* LITERAL: an empty list of dims reduces none */

typedef struct red_rule {
  uint32_t op_id;
  red_args args;
  red_dtype dtype;
  uint32_t flags;
} red_rule;

static const red_rule rules[] = {
    {GRAFT_OP_SUM_DIM_INTLIST, {1, 2, 3}, RED_SUM, RED_LIST},
    {GRAFT_OP_MEAN_DIM, {1, 2, 3}, RED_MEAN, RED_LIST},
    {GRAFT_OP_MEAN, {-1, -1, 1}, RED_MEAN, 0},
    {GRAFT_OP_AMAX, {1, 2, -1}, RED_SAME, RED_LIST | RED_NONEMPTY},
    {GRAFT_OP_AMIN, {1, 2, -1}, RED_SAME, RED_LIST | RED_NONEMPTY},
    {GRAFT_OP_ARGMAX, {1, 2, -1}, RED_INDEX, RED_NONEMPTY},
    {GRAFT_OP_ARGMIN, {1, 2, -1}, RED_INDEX, RED_NONEMPTY},
    {GRAFT_OP_VAR_CORRECTION, {1, 3, -1}, RED_VAR, RED_LIST},
    {GRAFT_OP_ANY, {-1, -1, -1}, RED_ANY, 0},
    {GRAFT_OP_ANY_DIM, {1, 2, -1}, RED_ANY, 0},
    {GRAFT_OP_ANY_DIMS, {1, 2, -1}, RED_ANY, RED_LIST | RED_LITERAL},
    {GRAFT_OP_PROD, {-1, -1, 1}, RED_SUM, 0},
    {GRAFT_OP_PROD_DIM_INT, {1, 2, 3}, RED_SUM, 0},
    {GRAFT_OP_LINALG_VECTOR_NORM, {2, 3, 4}, RED_NORM, RED_LIST},
    {GRAFT_OP_MAX_DIM, {1, 2, -1}, RED_SAME, RED_NONEMPTY},
    {GRAFT_OP_MIN_DIM, {1, 2, -1}, RED_SAME, RED_NONEMPTY},
    {GRAFT_OP_ALL, {-1, -1, -1}, RED_ANY, 0},
    {GRAFT_OP_ALL_DIM, {1, 2, -1}, RED_ANY, 0},
    {GRAFT_OP_MAX, {-1, -1, -1}, RED_SAME, RED_NONEMPTY},
    {GRAFT_OP_MIN, {-1, -1, -1}, RED_SAME, RED_NONEMPTY},
    {GRAFT_OP_AMINMAX, {1, 2, -1}, RED_SAME, RED_NONEMPTY},
    {GRAFT_OP_STD_CORRECTION, {1, 3, -1}, RED_VAR, RED_LIST},
    {GRAFT_OP_VAR_MEAN_CORRECTION, {1, 3, -1}, RED_VAR, RED_LIST},
    {GRAFT_OP_STD_MEAN_CORRECTION, {1, 3, -1}, RED_VAR, RED_LIST},
    {GRAFT_OP_NORM_SCALAROPT_DIM, {2, 3, -1}, RED_NORM, RED_LIST},
    {GRAFT_OP_NANSUM, {1, 2, 3}, RED_NANSUM, RED_LIST},
    {GRAFT_OP_COUNT_NONZERO, {1, -1, -1}, RED_COUNT, 0},
    {GRAFT_OP_LOGSUMEXP, {1, 2, -1}, RED_FLOAT, RED_LIST},
};

static const red_rule *rule_of(uint32_t op_id) {
  const red_rule *rule = rules;
  while (rule->op_id != op_id) rule++;
  return rule;
}

const red_args *red_args_of(uint32_t op_id) {
  return &rule_of(op_id)->args;
}

uint32_t red_mask(uint32_t op_id, const graft_value *args, int32_t ndim) {
  int at = red_args_of(op_id)->dims;
  uint32_t all = ndim ? (1u << ndim) - 1 : 0;
  if (at < 0 || args[at].kind == GRAFT_VALUE_NONE) return all;
  if (args[at].kind == GRAFT_VALUE_INT) return all & 1u << args[at].as.i;
  uint32_t mask = 0;
  for (uint32_t i = 0; i < args[at].count; i++) mask |= 1u << args[at].as.ints[i];
  return mask;
}

bool red_keepdim(uint32_t op_id, const graft_value *args) {
  int at = red_args_of(op_id)->keepdim;
  return at >= 0 && args[at].kind == GRAFT_VALUE_BOOL && args[at].as.i;
}

int64_t red_count(const graft_tensor *self, uint32_t mask) {
  int64_t count = 1;
  for (int32_t i = 0; i < self->ndim; i++) count *= mask >> i & 1 ? self->sizes[i] : 1;
  return count;
}

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
  int32_t ndim = reduced_sizes(op_tensor(c, 0), mask, keepdim, sizes);
  op_out(c, n, dtype, ndim, sizes);
}

/* The dims argument in canonical form. */
static graft_status wrap_dims(op_call *c, const red_rule *rule, uint32_t *mask) {
  int32_t ndim = op_tensor(c, 0)->ndim;
  if (rule->flags & RED_LIST) return op_wrap_dims(c, rule->args.dims, ndim, !(rule->flags & RED_LITERAL), mask);
  if (rule->args.dims >= 0 && !op_absent(c, rule->args.dims)) {
    int64_t dim = op_int(c, rule->args.dims);
    graft_status status = op_wrap_dim(c, &dim, ndim);
    if (status) return status;
    op_set_int(c, rule->args.dims, dim);
  }
  *mask = red_mask(c->schema->id, c->args, ndim);
  return GRAFT_OK;
}

static graft_status check_nonempty(const op_call *c, uint32_t mask) {
  const graft_tensor *self = op_tensor(c, 0);
  for (int32_t i = 0; i < self->ndim; i++) {
    if ((mask >> i & 1) && !self->sizes[i]) {
      return op_error(c, "self is %s: dim %d has size 0, and the result of nothing is not defined", op_show(c, 0), i);
    }
  }
  return GRAFT_OK;
}

/* The dtype computed in, and the result's. */
static graft_status choose_dtype(op_call *c, const red_rule *rule, graft_dtype *out) {
  graft_dtype self = op_tensor(c, 0)->dtype;
  graft_dtype asked = rule->args.dtype >= 0 ? op_dtype(c, rule->args.dtype) : GRAFT_DTYPE_NONE;
  graft_dtype dtype = asked ? asked : self;
  bool whole = dt_is_integral(dtype, true), complex = dt_is_complex(dtype);
  *out = dtype;
  switch (rule->dtype) {
    case RED_NANSUM:
      if (dt_is_complex(self)) return op_refuse_dtype(c, 0, "a real dtype");
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
      if (whole) return op_refuse_dtype(c, 0, "a floating or complex dtype, or the dtype argument");
      break;
    case RED_SAME:
      if (complex && op_tensor(c, 0)->numel) return op_refuse_dtype(c, 0, "a real dtype"); /* of nothing: as PyTorch */
      break;
    case RED_VAR:
      if (whole || (dt_is_float8(dtype) && op_tensor(c, 0)->numel))
        return op_refuse_dtype(c, 0, "a floating or complex dtype");
      *out = dt_real(dtype);
      break;
    case RED_NORM:
      if (dt_is_integral(self, true)) return op_refuse_dtype(c, 0, "a floating or complex dtype");
      if (dt_is_complex(self) != complex || dt_promote(self, dtype) != dtype) {
        return op_error(c, "dtype is %s; expected one that holds every value of self (%s)", graft_dtype_name(dtype),
                        op_show(c, 0));
      }
      *out = dt_real(dtype);
      break;
    case RED_ANY: *out = self == GRAFT_U8 ? GRAFT_U8 : GRAFT_BOOL; break;
    case RED_INDEX:
      if (complex || self == GRAFT_BOOL) return op_refuse_dtype(c, 0, "a real dtype that is not bool");
      *out = GRAFT_I64;
      break;
    case RED_COUNT: *out = GRAFT_I64; break;
    case RED_FLOAT:
      if (whole) *out = dtype = dt_default();
      break;
  }
  c->compute = dtype;
  if (rule->args.dtype >= 0) op_set_dtype(c, rule->args.dtype, dtype);
  return GRAFT_OK;
}

static graft_status infer_reduction(op_call *c) {
  const red_rule *rule = rule_of(c->schema->id);
  uint32_t mask;
  graft_dtype dtype;
  graft_status status = choose_dtype(c, rule, &dtype);
  if (!status) status = wrap_dims(c, rule, &mask);
  if (!status && (rule->flags & RED_NONEMPTY)) status = check_nonempty(c, mask);
  if (status) return status;
  out_reduced(c, 0, dtype, mask, red_keepdim(c->schema->id, c->args));
  return GRAFT_OK;
}

/* max.dim and min.dim: values and indices */
static graft_status infer_pick(op_call *c) {
  if (dt_is_complex(op_tensor(c, 0)->dtype)) return op_refuse_dtype(c, 0, "a real dtype");
  graft_status status = infer_reduction(c);
  if (status) return status;
  op_out(c, 1, GRAFT_I64, c->out[0].ndim, c->out[0].sizes);
  return GRAFT_OK;
}

/* The smallest and the largest, alike. */
static graft_status infer_aminmax(op_call *c) {
  if (dt_is_complex(op_tensor(c, 0)->dtype)) return op_refuse_dtype(c, 0, "a real dtype");
  graft_status status = infer_reduction(c);
  if (status) return status;
  op_out(c, 1, c->out[0].dtype, c->out[0].ndim, c->out[0].sizes);
  return GRAFT_OK;
}

static graft_status infer_var(op_call *c) {
  if (op_absent(c, 2)) c->args[2] = fx_number(graft_scalar_int(1));
  if (dt_is_complex(op_scalar(c, 2).dtype)) return op_error(c, "correction is complex; expected a real number");
  return infer_reduction(c);
}

/* The spread, which is real, and the mean. */
static graft_status infer_var_mean(op_call *c) {
  graft_status status = infer_var(c);
  if (status) return status;
  op_out(c, 1, c->compute, c->out[0].ndim, c->out[0].sizes);
  return GRAFT_OK;
}

static graft_status infer_norm(op_call *c) {
  if (op_absent(c, 1)) c->args[1] = fx_number(graft_scalar_int(2)); /* norm's p may be */
  graft_scalar order = op_scalar(c, 1);
  if (dt_is_complex(order.dtype)) return op_error(c, "%s is complex; expected a real number", c->schema->args[1].name);
  graft_status status = infer_reduction(c);
  long double p = dt_scalar_value(&order).re;
  if (status || (p >= 0 && !isinf((double)p))) return status;
  return check_nonempty(c, red_mask(c->schema->id, c->args, op_tensor(c, 0)->ndim));
}

/* --- decompositions --- */

static graft_tensor *divided(fx *s, graft_tensor *a, double by) {
  return fx_binary(s, GRAFT_OP_DIV_TENSOR, fx_tensor(a), fx_number(graft_scalar_float(by)));
}

static void decompose_mean(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *self = op_tensor(c, 0);
  uint32_t mask = red_mask(c->schema->id, c->args, self->ndim);
  outs[0] = divided(s, fx_sum(s, self, mask, red_keepdim(c->schema->id, c->args)), (double)red_count(self, mask));
}

static void decompose_var(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *self = op_tensor(c, 0);
  uint32_t mask = red_mask(c->schema->id, c->args, self->ndim);
  graft_scalar correction = op_scalar(c, 2);
  double count = (double)red_count(self, mask), freedom = count - (double)dt_scalar_value(&correction).re;
  graft_tensor *away = fx_sub(s, self, divided(s, fx_sum(s, self, mask, true), count));
  if (dt_is_complex(self->dtype)) away = fx_abs(s, away);
  outs[0] = divided(s, fx_sum(s, fx_mul(s, away, away), mask, op_bool(c, 3)), freedom > 0 ? freedom : 0);
}

static void decompose_prod(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *self = op_tensor(c, 0);
  outs[0] = fx_prod_dim_int(s, fx_reshape(s, self, 1, &self->numel), 0, false, op_dtype(c, 1));
}

/* How many are true; amax has no answer for nothing. */
static void decompose_any(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, 0), *truth = fx_ne_Scalar(s, self, graft_scalar_int(0));
  uint32_t mask = red_mask(c->schema->id, c->args, self->ndim);
  graft_tensor *count = fx_sum(s, fx_cast(s, truth, GRAFT_I64), mask, red_keepdim(c->schema->id, c->args));
  outs[0] = fx_cast(s, fx_ne_Scalar(s, count, graft_scalar_int(0)), c->out[0].dtype);
}

static void decompose_pick(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *self = op_tensor(c, 0);
  int64_t dim = op_int(c, 1);
  bool keepdim = op_bool(c, 2), largest = c->schema->id == GRAFT_OP_MAX_DIM;
  outs[0] = (largest ? fx_amax : fx_amin)(s, self, &dim, 1, keepdim);
  outs[1] = (largest ? fx_argmax : fx_argmin)(s, self, &dim, keepdim);
}

/* None is false. */
static void decompose_all(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, 0), *falsehood = fx_eq_Scalar(s, self, graft_scalar_int(0));
  uint32_t mask = red_mask(c->schema->id, c->args, self->ndim);
  graft_tensor *count = fx_sum(s, fx_cast(s, falsehood, GRAFT_I64), mask, red_keepdim(c->schema->id, c->args));
  outs[0] = fx_cast(s, fx_eq_Scalar(s, count, graft_scalar_int(0)), c->out[0].dtype);
}

static void decompose_count(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, 0), *truth = fx_ne_Scalar(s, self, graft_scalar_int(0));
  outs[0] = fx_sum(s, fx_cast(s, truth, GRAFT_I64), red_mask(c->schema->id, c->args, self->ndim), false);
}

/* The dims that a call reduces, as a list. */
static uint32_t reduced_dims(const op_call *c, int64_t *dims) {
  uint32_t count = 0, mask = red_mask(c->schema->id, c->args, op_tensor(c, 0)->ndim);
  for (int32_t i = 0; i < op_tensor(c, 0)->ndim; i++) {
    if (mask >> i & 1) dims[count++] = i;
  }
  return count;
}

static void decompose_extremes(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  uint32_t op = c->schema->id, n = 0;
  int64_t dims[GRAFT_MAX_DIMS];
  uint32_t count = reduced_dims(c, dims);
  bool keepdim = red_keepdim(op, c->args);
  if (op != GRAFT_OP_MAX) outs[n++] = fx_amin(s, op_tensor(c, 0), dims, count, keepdim);
  if (op != GRAFT_OP_MIN) outs[n++] = fx_amax(s, op_tensor(c, 0), dims, count, keepdim);
}

static void decompose_spread(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  uint32_t op = c->schema->id;
  graft_tensor *self = op_tensor(c, 0);
  const graft_value *dims = &c->args[1];
  outs[0] = fx_var_correction(s, self, dims->as.ints, dims->count, op_scalar(c, 2), op_bool(c, 3));
  if (op != GRAFT_OP_VAR_MEAN_CORRECTION) outs[0] = fx_sqrt(s, outs[0]);
  if (op == GRAFT_OP_STD_CORRECTION) return;
  outs[1] = fx_mean_dim(s, self, dims->as.ints, dims->count, op_bool(c, 3), GRAFT_DTYPE_NONE);
}

static void decompose_nansum(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *self = op_tensor(c, 0), *numbers = self;
  const graft_value args[] = {fx_tensor(fx_isnan(s, self)), fx_number(graft_scalar_int(0)), fx_tensor(self)};
  if (dt_is_float(self->dtype)) fx_call(s, GRAFT_OP_WHERE_SELF, args, 3, &numbers, 1);
  outs[0] = fx_sum(s, numbers, red_mask(c->schema->id, c->args, self->ndim), op_bool(c, 2));
}

/* Shifted by the largest, which then can't overflow; not by an infinity, which would leave NaN. */
static void decompose_logsumexp(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *self = op_tensor(c, 0), *shift = NULL;
  uint32_t mask = red_mask(c->schema->id, c->args, self->ndim);
  int64_t dims[GRAFT_MAX_DIMS];
  uint32_t count = reduced_dims(c, dims);
  if (self->numel) { /* of complex numbers the real parts say how large their exponentials are */
    const graft_value whole = fx_tensor(self);
    graft_tensor *real = self;
    if (dt_is_complex(self->dtype)) fx_call(s, GRAFT_OP_PRIMS_REAL, &whole, 1, &real, 1);
    shift = fx_amax(s, real, dims, count, true);
    graft_tensor *endless = fx_eq_Scalar(s, fx_abs(s, shift), graft_scalar_float(INFINITY));
    const graft_value args[] = {fx_tensor(endless), fx_number(graft_scalar_float(0)), fx_tensor(shift)};
    fx_call(s, GRAFT_OP_WHERE_SELF, args, 3, &shift, 1);
  }
  graft_tensor *sum = fx_log(s, fx_sum(s, fx_exp(s, shift ? fx_sub(s, self, shift) : self), mask, true));
  if (shift) sum = fx_add(s, sum, shift);
  outs[0] = fx_reshape(s, sum, c->out[0].ndim, c->out[0].sizes);
}

static void decompose_old_norm(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  const graft_value *dims = &c->args[2];
  outs[0] = fx_linalg_vector_norm(s, op_tensor(c, 0), op_scalar(c, 1), dims->as.ints, dims->count, op_bool(c, 3),
                                  GRAFT_DTYPE_NONE);
}

static void decompose_norm(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_scalar order = op_scalar(c, 1);
  double p = (double)dt_scalar_value(&order).re;
  graft_tensor *size = fx_abs(s, op_tensor(c, 0));
  uint32_t mask = red_mask(c->schema->id, c->args, op_tensor(c, 0)->ndim);
  const graft_value *dims = &c->args[2];
  bool keepdim = op_bool(c, 3);
  if (p == 0) {
    outs[0] = fx_sum(s, fx_cast(s, fx_ne_Scalar(s, size, graft_scalar_int(0)), c->out[0].dtype), mask, keepdim);
  } else if (isinf(p)) {
    outs[0] = (p > 0 ? fx_amax : fx_amin)(s, size, dims->as.ints, dims->count, keepdim);
  } else if (p == 1) {
    outs[0] = fx_sum(s, size, mask, keepdim);
  } else if (p == 2) {
    outs[0] = fx_sqrt(s, fx_sum(s, fx_mul(s, size, size), mask, keepdim));
  } else {
    graft_tensor *sum = fx_sum(s, fx_pow_Tensor_Scalar(s, size, graft_scalar_float(p)), mask, keepdim);
    outs[0] = fx_pow_Tensor_Scalar(s, sum, graft_scalar_float(1 / p));
  }
}

#define A0 OP_SAVE_ARG(0)
#define R0 OP_SAVE_OUT(0)
#define R1 OP_SAVE_OUT(1)

static const op_def defs[] = {
    {.op_id = GRAFT_OP_SUM_DIM_INTLIST,
     .roles = "v",
     .infer = infer_reduction,
     .vjp = red_vjp_sum,
     .reference = OP_REF(sum_dim_IntList)},
    {.op_id = GRAFT_OP_MEAN_DIM,
     .roles = "v",
     .infer = infer_reduction,
     .decompose = decompose_mean,
     .vjp = red_vjp_mean,
     .reference = OP_REF(mean_dim)},
    {.op_id = GRAFT_OP_MEAN, .roles = "v", .infer = infer_reduction, .decompose = decompose_mean, .vjp = red_vjp_mean},
    {.op_id = GRAFT_OP_AMAX,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_reduction,
     .vjp = red_vjp_extremum,
     .saves = A0 | R0,
     .reference = OP_REF(amax)},
    {.op_id = GRAFT_OP_AMIN,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_reduction,
     .vjp = red_vjp_extremum,
     .saves = A0 | R0,
     .reference = OP_REF(amin)},
    {.op_id = GRAFT_OP_ARGMAX,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_reduction,
     .reference = OP_REF(argmax)},
    {.op_id = GRAFT_OP_ARGMIN,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_reduction,
     .reference = OP_REF(argmin)},
    {.op_id = GRAFT_OP_VAR_CORRECTION,
     .roles = "v",
     .infer = infer_var,
     .decompose = decompose_var,
     .vjp = red_vjp_var,
     .saves = A0,
     .reference = OP_REF(var_correction)},
    {.op_id = GRAFT_OP_ANY,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_reduction,
     .decompose = decompose_any,
     .reference = OP_REF(any)},
    {.op_id = GRAFT_OP_ANY_DIM,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_reduction,
     .decompose = decompose_any,
     .reference = OP_REF(any_dim)},
    {.op_id = GRAFT_OP_ANY_DIMS,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_reduction,
     .decompose = decompose_any,
     .reference = OP_REF(any_dims)},
    {.op_id = GRAFT_OP_PROD,
     .roles = "v",
     .infer = infer_reduction,
     .decompose = decompose_prod,
     .vjp = red_vjp_prod,
     .saves = A0,
     .reference = OP_REF(prod)},
    {.op_id = GRAFT_OP_PROD_DIM_INT,
     .roles = "v",
     .infer = infer_reduction,
     .vjp = red_vjp_prod,
     .saves = A0,
     .reference = OP_REF(prod_dim_int)},
    {.op_id = GRAFT_OP_LINALG_VECTOR_NORM,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_norm,
     .decompose = decompose_norm,
     .vjp = red_vjp_norm,
     .saves = A0 | R0,
     .reference = OP_REF(linalg_vector_norm)},
    {.op_id = GRAFT_OP_MAX_DIM,
     .roles = "v",
     .infer = infer_pick,
     .decompose = decompose_pick,
     .vjp = red_vjp_pick,
     .saves = R1,
     .reference = OP_REF(max_dim)},
    {.op_id = GRAFT_OP_MIN_DIM,
     .roles = "v",
     .infer = infer_pick,
     .decompose = decompose_pick,
     .vjp = red_vjp_pick,
     .saves = R1,
     .reference = OP_REF(min_dim)},
    {.op_id = GRAFT_OP_ALL,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_reduction,
     .decompose = decompose_all,
     .reference = OP_REF(all)},
    {.op_id = GRAFT_OP_ALL_DIM,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_reduction,
     .decompose = decompose_all,
     .reference = OP_REF(all_dim)},
    {.op_id = GRAFT_OP_MAX,
     .roles = "v",
     .infer = infer_reduction,
     .decompose = decompose_extremes,
     .vjp = red_vjp_extremum,
     .saves = A0 | R0,
     .reference = OP_REF(max)},
    {.op_id = GRAFT_OP_MIN,
     .roles = "v",
     .infer = infer_reduction,
     .decompose = decompose_extremes,
     .vjp = red_vjp_extremum,
     .saves = A0 | R0,
     .reference = OP_REF(min)},
    {.op_id = GRAFT_OP_AMINMAX,
     .roles = "v",
     .infer = infer_aminmax,
     .decompose = decompose_extremes,
     .vjp = red_vjp_extremum,
     .saves = A0 | R0 | R1,
     .reference = OP_REF(aminmax)},
    {.op_id = GRAFT_OP_STD_CORRECTION,
     .roles = "v",
     .infer = infer_var,
     .decompose = decompose_spread,
     .vjp = red_vjp_var,
     .saves = A0 | R0,
     .reference = OP_REF(std_correction)},
    {.op_id = GRAFT_OP_VAR_MEAN_CORRECTION,
     .roles = "v",
     .infer = infer_var_mean,
     .decompose = decompose_spread,
     .vjp = red_vjp_var,
     .saves = A0,
     .reference = OP_REF(var_mean_correction)},
    {.op_id = GRAFT_OP_STD_MEAN_CORRECTION,
     .roles = "v",
     .infer = infer_var_mean,
     .decompose = decompose_spread,
     .vjp = red_vjp_var,
     .saves = A0 | R0,
     .reference = OP_REF(std_mean_correction)},
    {.op_id = GRAFT_OP_NORM_SCALAROPT_DIM,
     .roles = "v",
     .infer = infer_norm,
     .decompose = decompose_old_norm,
     .vjp = red_vjp_norm,
     .saves = A0 | R0,
     .reference = OP_REF(norm_ScalarOpt_dim)},
    {.op_id = GRAFT_OP_NANSUM,
     .roles = "v",
     .infer = infer_reduction,
     .decompose = decompose_nansum,
     .vjp = red_vjp_nansum,
     .saves = A0,
     .reference = OP_REF(nansum)},
    {.op_id = GRAFT_OP_COUNT_NONZERO,
     .roles = "v",
     .infer = infer_reduction,
     .decompose = decompose_count,
     .reference = OP_REF(count_nonzero)},
    {.op_id = GRAFT_OP_LOGSUMEXP,
     .roles = "v",
     .infer = infer_reduction,
     .decompose = decompose_logsumexp,
     .vjp = red_vjp_logsumexp,
     .saves = A0 | R0,
     .reference = OP_REF(logsumexp)},
    {.op_id = GRAFT_OP_HISTC,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = red_infer_histc,
     .decompose = red_decompose_histc},
};
OP_TABLE(reduction, defs)
