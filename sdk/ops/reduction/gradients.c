/* Gradients of reductions. */
#include "ops/reduction/reduction.h"

#include <math.h>

#include "ops/generated/fx_ops.h"

#define S    v->s
#define SELF vjp_arg(v, 0)

static uint32_t mask_of(const op_vjp *v) {
  return red_mask(v->schema->id, v->args, SELF->ndim);
}
static bool keepdim_of(const op_vjp *v) {
  return red_keepdim(v->schema->id, v->args);
}

/* A result or a cotangent, seen in self's shape. */
static graft_tensor *spread(op_vjp *v, graft_tensor *t) {
  return fx_unreduce(S, t, mask_of(v), keepdim_of(v), SELF->ndim, SELF->sizes);
}

static graft_tensor *pick(op_vjp *v, graft_tensor *condition, graft_value a, graft_value b) {
  graft_tensor *out;
  fx_call(S, GRAFT_OP_WHERE_SELF, (graft_value[]){fx_tensor(condition), a, b}, 3, &out, 1);
  return out;
}

static graft_value number(double x) {
  return fx_number(graft_scalar_float(x));
}

static graft_tensor *zero_where(op_vjp *v, graft_tensor *zero, graft_tensor *t) {
  return pick(v, zero, number(0), fx_tensor(t));
}

static graft_tensor *is_zero(op_vjp *v, graft_tensor *t) {
  return fx_eq_Scalar(S, t, graft_scalar_int(0));
}
static graft_tensor *power(op_vjp *v, graft_tensor *t, double p) {
  return fx_pow_Tensor_Scalar(S, t, graft_scalar_float(p));
}

void red_vjp_sum(op_vjp *v) {
  v->results[0] = spread(v, v->g[0]);
}

void red_vjp_mean(op_vjp *v) {
  double count = (double)red_count(SELF, mask_of(v));
  graft_value share = number(count);
  v->results[0] = spread(v, fx_binary(S, GRAFT_OP_DIV_TENSOR, fx_tensor(v->g[0]), share));
}

/* The elements equal to the extremum, output n, share its gradient. `size` are the values compared. */
static graft_tensor *shared(op_vjp *v, graft_tensor *size, int n) {
  graft_tensor *equal = fx_cast(S, fx_eq_Tensor(S, size, spread(v, v->outs[n])), v->g[n]->dtype);
  return fx_mul(S, equal, fx_div(S, spread(v, v->g[n]), fx_sum(S, equal, mask_of(v), true)));
}

static void add_result(op_vjp *v, graft_tensor *t) {
  v->results[0] = v->results[0] ? fx_add(S, v->results[0], t) : t;
}

void red_vjp_extremum(op_vjp *v) {
  for (uint32_t n = 0; n < v->schema->nrets; n++) {
    if (v->g[n]) add_result(v, shared(v, SELF, (int)n));
  }
}

void red_vjp_pick(op_vjp *v) {
  if (!v->g[0]) return;
  graft_tensor *g = v->g[0], *index = v->outs[1], *self = SELF;
  int64_t dim = v->args[1].as.i;
  if (self->ndim && !keepdim_of(v)) {
    g = fx_unsqueeze(S, g, dim);
    index = fx_unsqueeze(S, index, dim);
  }
  v->results[0] = fx_scatter_src(S, fx_filled(S, g, self->ndim, self->sizes, 0, v->g[0]->dtype), dim, index, g);
}

/* d var = 2 (x - mean) / (n - correction); d std = d var / (2 std), 0 where std is 0. */
static graft_tensor *spread_gradient(op_vjp *v) {
  uint32_t mask = mask_of(v), op = v->schema->id;
  bool root = op == GRAFT_OP_STD_CORRECTION || op == GRAFT_OP_STD_MEAN_CORRECTION;
  graft_scalar correction = v->args[2].as.scalar;
  double count = (double)red_count(SELF, mask), freedom = count - (double)dt_scalar_value(&correction).re;
  graft_tensor *mean = fx_binary(S, GRAFT_OP_DIV_TENSOR, fx_tensor(fx_sum(S, SELF, mask, true)), number(count));
  graft_tensor *slope = fx_muls(S, fx_sub(S, SELF, mean), (root ? 1 : 2) / (freedom > 0 ? freedom : 0));
  graft_tensor *g = v->g[0];
  if (root) g = zero_where(v, is_zero(v, v->outs[0]), fx_div(S, g, v->outs[0]));
  return fx_mul(S, spread(v, g), slope);
}

void red_vjp_var(op_vjp *v) {
  if (v->g[0]) add_result(v, spread_gradient(v));
  if (v->schema->nrets < 2 || !v->g[1]) return;
  graft_value count = number((double)red_count(SELF, mask_of(v)));
  add_result(v, spread(v, fx_binary(S, GRAFT_OP_DIV_TENSOR, fx_tensor(v->g[1]), count)));
}

void red_vjp_nansum(op_vjp *v) {
  v->results[0] = zero_where(v, fx_isnan(S, SELF), spread(v, v->g[0]));
}

/* The share of each element in the sum: the softmax of self. */
void red_vjp_logsumexp(op_vjp *v) {
  graft_tensor *x = SELF->dtype == v->g[0]->dtype ? SELF : fx_cast(S, SELF, v->g[0]->dtype);
  graft_tensor *share = fx_exp(S, fx_sub(S, x, spread(v, v->outs[0])));
  v->results[0] = fx_mul(S, spread(v, v->g[0]), fx_conj(S, share));
}

/* --- products --- */

static graft_tensor *ones(op_vjp *v, graft_tensor *like, int64_t dim, int64_t count) {
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < like->ndim; i++) sizes[i] = i == dim ? count : like->sizes[i];
  return fx_filled(S, like, like->ndim, sizes, 1, like->dtype);
}

/* x moved by `by` places along dim, with ones moved in: towards the end, or towards the beginning. */
static graft_tensor *shifted(op_vjp *v, graft_tensor *x, int64_t dim, int64_t by, bool to_end) {
  if (S->status || !x) return NULL;
  int64_t size = x->sizes[dim], start = to_end ? 0 : by, end = to_end ? size - by : size;
  graft_tensor *part = fx_slice_Tensor(S, x, dim, &start, &end, 1), *fresh = ones(v, x, dim, by);
  return fx_cat(S, (graft_tensor *[]){to_end ? fresh : part, to_end ? part : fresh}, 2, dim);
}

/* The product of all elements before (or after) each, by doubling. */
static graft_tensor *product_beside(op_vjp *v, graft_tensor *x, int64_t dim, bool before) {
  graft_tensor *product = shifted(v, x, dim, 1, before);
  for (int64_t reach = 1; !S->status && reach < x->sizes[dim]; reach *= 2) {
    product = fx_mul(S, product, shifted(v, product, dim, reach, before));
  }
  return product;
}

/* The product of the other elements, without a division: it is right with zeros, and so is its own gradient. */
void red_vjp_prod(op_vjp *v) {
  graft_tensor *self = SELF, *x = self;
  bool all = red_args_of(v->schema->id)->dims < 0;
  if (!self->numel || !self->ndim) {
    v->results[0] = self->ndim ? fx_zeros_like(S, self) : v->g[0];
    return;
  }
  if (x->dtype != v->g[0]->dtype) x = fx_cast(S, x, v->g[0]->dtype);
  if (all) x = fx_reshape(S, x, 1, &self->numel);
  int64_t dim = all ? 0 : v->args[1].as.i;
  graft_tensor *others = fx_mul(S, product_beside(v, x, dim, true), product_beside(v, x, dim, false));
  if (all) others = fx_reshape(S, others, self->ndim, self->sizes);
  v->results[0] = fx_mul(S, spread(v, v->g[0]), fx_conj(S, others));
}

/* --- norms --- */

/* x / |x|, 0 at 0, where its own gradient must not divide by 0 either. */
static graft_tensor *direction(op_vjp *v, graft_tensor *x, graft_tensor *size) {
  graft_tensor *zero = is_zero(v, size);
  return pick(v, zero, number(0), fx_tensor(fx_div(S, x, pick(v, zero, number(1), fx_tensor(size)))));
}

void red_vjp_norm(op_vjp *v) {
  graft_scalar order = v->args[1].as.scalar;
  double p = (double)dt_scalar_value(&order).re;
  int8_t dtype_arg = red_args_of(v->schema->id)->dtype;
  graft_dtype dtype = dtype_arg >= 0 ? v->args[dtype_arg].as.dtype : SELF->dtype;
  graft_tensor *x = fx_cast(S, SELF, dtype), *norm = spread(v, v->outs[0]), *g = spread(v, v->g[0]);
  if (p == 0) {
    v->results[0] = fx_zeros_like(S, x);
  } else if (p == 2) {
    v->results[0] = fx_mul(S, g, zero_where(v, is_zero(v, norm), fx_div(S, x, norm)));
  } else if (p == 1) {
    v->results[0] = fx_mul(S, g, direction(v, x, fx_abs(S, x)));
  } else if (isinf(p)) {
    graft_tensor *size = fx_abs(S, x);
    v->results[0] = fx_mul(S, direction(v, x, size), shared(v, size, 0));
  } else if (p < 1) {
    graft_tensor *size = fx_abs(S, x), *slope = zero_where(v, is_zero(v, size), power(v, size, p - 1));
    v->results[0] = fx_mul(S, fx_mul(S, direction(v, x, size), slope), fx_mul(S, g, power(v, norm, 1 - p)));
  } else {
    graft_tensor *size = fx_abs(S, x), *scale = zero_where(v, is_zero(v, norm), fx_div(S, g, power(v, norm, p - 1)));
    graft_tensor *slope =
        p < 2 ? fx_mul(S, direction(v, x, size), power(v, size, p - 1)) : fx_mul(S, x, power(v, size, p - 2));
    v->results[0] = fx_mul(S, slope, scale);
  }
}
