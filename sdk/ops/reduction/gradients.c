/* Gradients of reductions. */
#include "ops/reduction/reduction.h"

#include <math.h>

#include "ops/generated/fx_ops.h"

static graft_tensor *self_of(const op_vjp *v) {
  return vjp_arg(v, ARG_sum_dim_IntList_self);
}

static uint32_t mask_of(const op_vjp *v) {
  return red_mask(v->schema->id, v->args, self_of(v)->ndim);
}
static bool keepdim_of(const op_vjp *v) {
  return red_keepdim(v->schema->id, v->args);
}

/* A result or a cotangent, seen in self's shape. */
static graft_tensor *spread(op_vjp *v, graft_tensor *t) {
  return fx_unreduce(v->s, t, mask_of(v), keepdim_of(v), self_of(v)->ndim, self_of(v)->sizes);
}

static graft_tensor *is_zero(op_vjp *v, graft_tensor *t) {
  return fx_eq_Scalar(v->s, t, graft_scalar_int(0));
}
static graft_tensor *power(op_vjp *v, graft_tensor *t, double p) {
  return fx_pow_Tensor_Scalar(v->s, t, graft_scalar_float(p));
}

void red_vjp_sum(op_vjp *v) {
  v->results[ARG_sum_dim_IntList_self] = spread(v, v->g[OUT]);
}

void red_vjp_mean(op_vjp *v) {
  double count = (double)red_count(self_of(v), mask_of(v));
  graft_value share = fx_float(count);
  v->results[ARG_mean_self] = spread(v, fx_binary(v->s, GRAFT_OP_DIV_TENSOR, fx_tensor(v->g[OUT]), share));
}

/* The elements equal to the extremum, output n, share its gradient. `size` are the values compared. */
static graft_tensor *shared(op_vjp *v, graft_tensor *size, int n) {
  graft_tensor *equal = fx_cast(v->s, fx_eq_Tensor(v->s, size, spread(v, v->outs[n])), v->g[n]->dtype);
  return fx_mul(v->s, equal, fx_div(v->s, spread(v, v->g[n]), fx_sum(v->s, equal, mask_of(v), true)));
}

static void add_result(op_vjp *v, graft_tensor *t) {
  v->results[ARG_max_self] = v->results[ARG_max_self] ? fx_add(v->s, v->results[ARG_max_self], t) : t;
}

void red_vjp_extremum(op_vjp *v) {
  for (uint32_t n = 0; n < v->schema->nrets; n++) {
    if (v->g[n]) add_result(v, shared(v, self_of(v), (int)n));
  }
}

void red_vjp_pick(op_vjp *v) {
  graft_tensor *self = self_of(v);
  v->results[ARG_max_dim_self] = fx_unpick(v->s, v->g[OUT_max_dim_values], v->outs[OUT_max_dim_indices],
                                           v->args[ARG_max_dim_dim].as.i, self->ndim, self->sizes);
}

/* d var = 2 (x - mean) / (n - correction); d std = d var / (2 std), 0 where std is 0. */
static graft_tensor *spread_gradient(op_vjp *v) {
  uint32_t mask = mask_of(v), op = v->schema->id;
  bool root = op == GRAFT_OP_STD_CORRECTION || op == GRAFT_OP_STD_MEAN_CORRECTION;
  graft_scalar correction = v->args[ARG_var_correction_correction].as.scalar;
  double count = (double)red_count(self_of(v), mask), freedom = count - (double)dt_scalar_value(&correction).re;
  graft_tensor *mean =
      fx_binary(v->s, GRAFT_OP_DIV_TENSOR, fx_tensor(fx_sum(v->s, self_of(v), mask, true)), fx_float(count));
  graft_tensor *slope = fx_muls(v->s, fx_sub(v->s, self_of(v), mean), (root ? 1 : 2) / (freedom > 0 ? freedom : 0));
  graft_tensor *g = v->g[OUT_std_mean_correction_out0], *std = v->outs[OUT_std_mean_correction_out0];
  if (root) g = fx_not_where(v->s, is_zero(v, std), fx_div(v->s, g, std));
  return fx_mul(v->s, spread(v, g), slope);
}

void red_vjp_var(op_vjp *v) {
  if (v->g[OUT_var_mean_correction_out0]) add_result(v, spread_gradient(v));
  graft_tensor *g = v->schema->nrets > 1 ? v->g[OUT_var_mean_correction_out1] : NULL;
  if (!g) return;
  graft_value count = fx_float((double)red_count(self_of(v), mask_of(v)));
  add_result(v, spread(v, fx_binary(v->s, GRAFT_OP_DIV_TENSOR, fx_tensor(g), count)));
}

void red_vjp_nansum(op_vjp *v) {
  v->results[ARG_nansum_self] = fx_not_where(v->s, fx_isnan(v->s, self_of(v)), spread(v, v->g[OUT]));
}

/* The share of each element in the sum: the softmax of self. */
void red_vjp_logsumexp(op_vjp *v) {
  graft_tensor *x = self_of(v)->dtype == v->g[OUT]->dtype ? self_of(v) : fx_cast(v->s, self_of(v), v->g[OUT]->dtype);
  graft_tensor *share = fx_exp(v->s, fx_sub(v->s, x, spread(v, v->outs[OUT])));
  v->results[ARG_logsumexp_self] = fx_mul(v->s, spread(v, v->g[OUT]), fx_conj(v->s, share));
}

/* --- products --- */

static graft_tensor *ones(op_vjp *v, graft_tensor *like, int64_t dim, int64_t count) {
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < like->ndim; i++) sizes[i] = i == dim ? count : like->sizes[i];
  return fx_filled(v->s, like, like->ndim, sizes, 1, like->dtype);
}

/* x moved by `by` places along dim, with ones moved in: towards the end, or towards the beginning. */
static graft_tensor *shifted(op_vjp *v, graft_tensor *x, int64_t dim, int64_t by, bool to_end) {
  if (!x) return NULL;
  int64_t size = x->sizes[dim], start = to_end ? 0 : by, end = to_end ? size - by : size;
  graft_tensor *part = fx_slice_Tensor(v->s, x, dim, &start, &end, 1), *fresh = ones(v, x, dim, by);
  return fx_cat(v->s, (graft_tensor *[]){to_end ? fresh : part, to_end ? part : fresh}, 2, dim);
}

/* The product of all elements before (or after) each, by doubling. */
static graft_tensor *product_beside(op_vjp *v, graft_tensor *x, int64_t dim, bool before) {
  graft_tensor *product = shifted(v, x, dim, 1, before);
  for (int64_t reach = 1; !v->s->status && reach < x->sizes[dim]; reach *= 2) {
    product = fx_mul(v->s, product, shifted(v, product, dim, reach, before));
  }
  return product;
}

/* The product of the other elements, without a division: it is right with zeros, and so is its own gradient. */
void red_vjp_prod(op_vjp *v) {
  const red_row *row = op_row(v->schema->id);
  graft_tensor *self = self_of(v), *x = self;
  bool all = row->dims < 0;
  if (!self->numel || !self->ndim) {
    v->results[ARG_prod_self] = self->ndim ? fx_zeros_like(v->s, self) : v->g[OUT];
    return;
  }
  if (x->dtype != v->g[OUT]->dtype) x = fx_cast(v->s, x, v->g[OUT]->dtype);
  if (all) x = fx_reshape(v->s, x, 1, &self->numel);
  int64_t dim = all ? 0 : v->args[row->dims].as.i;
  graft_tensor *others = fx_mul(v->s, product_beside(v, x, dim, true), product_beside(v, x, dim, false));
  if (all) others = fx_reshape(v->s, others, self->ndim, self->sizes);
  v->results[ARG_prod_self] = fx_mul(v->s, spread(v, v->g[OUT]), fx_conj(v->s, others));
}

/* --- norms --- */

/* x / |x|, 0 at 0, where its own gradient must not divide by 0 either. */
static graft_tensor *direction(op_vjp *v, graft_tensor *x, graft_tensor *size) {
  graft_tensor *zero = is_zero(v, size);
  return fx_where(v->s, zero, fx_float(0),
                  fx_tensor(fx_div(v->s, x, fx_where(v->s, zero, fx_float(1), fx_tensor(size)))));
}

void red_vjp_norm(op_vjp *v) {
  const red_row *row = op_row(v->schema->id);
  graft_scalar order = v->args[row->order].as.scalar;
  double p = (double)dt_scalar_value(&order).re;
  graft_dtype dtype = row->dtype >= 0 ? v->args[row->dtype].as.dtype : self_of(v)->dtype;
  graft_tensor *x = fx_cast(v->s, self_of(v), dtype), *norm = spread(v, v->outs[OUT]), *g = spread(v, v->g[OUT]);
  if (p == 0) {
    v->results[ARG_linalg_vector_norm_self] = fx_zeros_like(v->s, x);
  } else if (p == 2) {
    v->results[ARG_linalg_vector_norm_self] =
        fx_mul(v->s, g, fx_not_where(v->s, is_zero(v, norm), fx_div(v->s, x, norm)));
  } else if (p == 1) {
    v->results[ARG_linalg_vector_norm_self] = fx_mul(v->s, g, direction(v, x, fx_abs(v->s, x)));
  } else if (isinf(p)) {
    graft_tensor *size = fx_abs(v->s, x);
    v->results[ARG_linalg_vector_norm_self] = fx_mul(v->s, direction(v, x, size), shared(v, size, OUT));
  } else if (p < 1) {
    graft_tensor *size = fx_abs(v->s, x), *slope = fx_not_where(v->s, is_zero(v, size), power(v, size, p - 1));
    v->results[ARG_linalg_vector_norm_self] =
        fx_mul(v->s, fx_mul(v->s, direction(v, x, size), slope), fx_mul(v->s, g, power(v, norm, 1 - p)));
  } else {
    graft_tensor *size = fx_abs(v->s, x),
                 *scale = fx_not_where(v->s, is_zero(v, norm), fx_div(v->s, g, power(v, norm, p - 1)));
    graft_tensor *slope =
        p < 2 ? fx_mul(v->s, direction(v, x, size), power(v, size, p - 1)) : fx_mul(v->s, x, power(v, size, p - 2));
    v->results[ARG_linalg_vector_norm_self] = fx_mul(v->s, slope, scale);
  }
}
