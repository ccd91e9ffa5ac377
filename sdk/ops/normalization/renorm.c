/* Norms that are set: weight_norm, which gives a direction its length, and renorm and embedding_renorm, which bound
 * those of slices. */
#include <math.h>

#include "ops/core/table.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"
#include "ops/linalg/distances.h"

/* All dims of t but one. */
static uint32_t dims_beside(const graft_tensor *t, int64_t dim, int64_t *dims) {
  uint32_t count = 0;
  for (int32_t i = 0; i < t->ndim; i++) {
    if (i != dim) dims[count++] = i;
  }
  return count;
}

/* The norm of each slice along dim, with size 1 in the others. */
static graft_tensor *slice_norms(fx *s, graft_tensor *t, double p, int64_t dim) {
  int64_t dims[GRAFT_MAX_DIMS];
  uint32_t count = dims_beside(t, dim, dims);
  if (!count) return fx_abs(s, t); /* an empty list would mean all */
  return fx_linalg_vector_norm(s, t, graft_scalar_float(p), dims, count, true, GRAFT_DTYPE_NONE);
}

static graft_tensor *slice_sums(fx *s, graft_tensor *t, int64_t dim) {
  return t ? fx_sum(s, t, ((1u << t->ndim) - 1) & ~(1u << dim), true) : NULL;
}

/* --- weight norm: w = v g / |v| --- */

static graft_status check_weight(op_call *c, const graft_tensor *v, const graft_tensor *g, int64_t dim) {
  int at = c->schema->id == GRAFT_OP_WEIGHT_NORM_INTERFACE ? ARG_weight_norm_interface_v
                                                           : ARG_weight_norm_interface_backward_saved_v;
  graft_status status = op_check_floating(c, at);
  if (!status) status = op_check_same_dtype(c, at, at + 1);
  if (status) return status;
  if (!v->ndim) return op_refuse(c, at, "at least one dim");
  if (dim && dim != v->ndim - 1)
    return op_error(c, "dim is %lld; expected the first or the last of %s", (long long)dim, op_show(c, at));
  if (g->numel != v->sizes[dim])
    return op_error(c, "expected one length for each slice along dim %lld (%s)", (long long)dim, op_show_tensors(c));
  c->compute = v->dtype;
  return GRAFT_OK;
}

static graft_status infer_weight_norm(op_call *c) {
  const in_weight_norm_interface in = in_weight_norm_interface_of(c->args);
  graft_status status = check_weight(c, in.v, in.g, in.dim);
  if (status) return status;
  op_out(c, OUT_weight_norm_interface_out0, in.v->dtype, in.v->ndim, in.v->sizes);
  op_out(c, OUT_weight_norm_interface_out1, dt_is_half(in.g->dtype) ? GRAFT_F32 : in.g->dtype, in.g->ndim, in.g->sizes);
  return GRAFT_OK;
}

static graft_status infer_weight_norm_backward(op_call *c) {
  const in_weight_norm_interface_backward in = in_weight_norm_interface_backward_of(c->args);
  graft_status status = check_weight(c, in.saved_v, in.saved_g, in.dim);
  if (status) return status;
  if (!tns_same_sizes(in.grad_w, in.saved_v) || in.saved_norms->numel != in.saved_g->numel)
    return op_error(c, "expected what the forward op gives for these sizes (%s)", op_show_tensors(c));
  op_out(c, OUT_weight_norm_interface_backward_out0, in.saved_v->dtype, in.saved_v->ndim, in.saved_v->sizes);
  op_out(c, OUT_weight_norm_interface_backward_out1, in.saved_g->dtype, in.saved_g->ndim, in.saved_g->sizes);
  return GRAFT_OK;
}

/* One number a slice, with size 1 in the dims beside. */
static graft_tensor *along(fx *s, graft_tensor *t, const graft_tensor *v, int64_t dim) {
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < v->ndim; i++) sizes[i] = i == dim ? v->sizes[i] : 1;
  return fx_reshape(s, t, v->ndim, sizes);
}

static void decompose_weight_norm(fx *s, const op_call *c, graft_tensor **outs) {
  const in_weight_norm_interface in = in_weight_norm_interface_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *norms = slice_norms(s, in.v, 2, in.dim), *g = along(s, in.g, in.v, in.dim);
  outs[OUT_weight_norm_interface_out0] = fx_mul(s, in.v, fx_div(s, g, norms));
  outs[OUT_weight_norm_interface_out1] = fx_reshape(s, norms, in.g->ndim, in.g->sizes);
}

typedef struct weight_slopes {
  graft_tensor *v, *g;
} weight_slopes;

/* gv = g / |v| (gw - v (gw . v) / |v|^2), gg = (gw . v) / |v| */
static weight_slopes slopes(fx *s, graft_tensor *gw, graft_tensor *v, graft_tensor *g, graft_tensor *norms,
                            int64_t dim) {
  weight_slopes r = {NULL, NULL};
  graft_tensor *dots = slice_sums(s, fx_mul(s, gw, v), dim), *length = along(s, norms, v, dim);
  graft_tensor *across = fx_sub(s, gw, fx_mul(s, v, fx_div(s, dots, fx_mul(s, length, length))));
  r.v = fx_mul(s, fx_div(s, along(s, g, v, dim), length), across);
  r.g = fx_reshape(s, fx_div(s, dots, length), g->ndim, g->sizes);
  return r;
}

static void decompose_weight_norm_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_weight_norm_interface_backward in = in_weight_norm_interface_backward_of(c->args);
  weight_slopes r = slopes(s, in.grad_w, in.saved_v, in.saved_g, in.saved_norms, in.dim);
  outs[OUT_weight_norm_interface_backward_out0] = r.v;
  outs[OUT_weight_norm_interface_backward_out1] = r.g;
}

static void vjp_weight_norm(op_vjp *v) {
  const in_weight_norm_interface in = in_weight_norm_interface_of(v->args);
  graft_tensor *gw = v->g[OUT_weight_norm_interface_out0], *norms = v->outs[OUT_weight_norm_interface_out1];
  weight_slopes r = {NULL, NULL};
  if (!gw) return;
  if (v->create_graph) /* as PyTorch, which takes the norms for constants there */
    r = slopes(v->s, gw, in.v, in.g, fx_cast(v->s, norms, in.v->dtype), in.dim);
  else
    fx_weight_norm_interface_backward(v->s, fx_contiguous(v->s, gw), in.v, in.g, norms, in.dim, &r.v, &r.g);
  v->results[ARG_weight_norm_interface_v] = r.v;
  v->results[ARG_weight_norm_interface_g] = r.g;
}

/* --- renorm: slices longer than a bound are shortened to it --- */

#define LEAST_NORM 1e-7 /* added to what is divided by */

/* As of all norms: nothing has no largest element. */
static graft_status check_slices(const op_call *c, const graft_tensor *self, int64_t dim) {
  for (int32_t i = 0; i < self->ndim; i++) {
    if (i != dim && !self->sizes[i])
      return op_out_of_range(c,
                             "self is %s: slices along dim %d have no element, and the largest of none is not defined",
                             op_show(c, ARG_renorm_self), (int)dim);
  }
  return GRAFT_OK;
}

static graft_status infer_renorm(op_call *c) {
  const in_renorm in = in_renorm_of(c->args);
  graft_scalar p = in.p, bound = in.maxnorm;
  int64_t dim = in.dim;
  if (dt_is_complex(p.dtype) || !(dt_scalar_value(&p).re > 0))
    return op_error(c, "p is %Lg; expected a real number above 0", dt_scalar_value(&p).re);
  if (dt_is_complex(bound.dtype) || !(dt_scalar_value(&bound).re >= 0))
    return op_error(c, "maxnorm is %Lg; expected a real number of 0 or more", dt_scalar_value(&bound).re);
  if (in.self->ndim < 2) return op_refuse(c, ARG_renorm_self, "at least two dims");
  graft_status status = op_wrap_dim(c, &dim, in.self->ndim);
  if (!status && !dt_is_complex(in.self->dtype)) status = op_check_floating(c, ARG_renorm_self);
  if (!status && isinf((double)dt_scalar_value(&p).re)) status = check_slices(c, in.self, dim);
  if (status) return status;
  op_set_int(c, ARG_renorm_dim, dim);
  c->compute = in.self->dtype;
  op_out(c, OUT, in.self->dtype, in.self->ndim, in.self->sizes);
  return GRAFT_OK;
}

/* t times bound / norm where the norm is above it. */
static graft_tensor *bounded(fx *s, graft_tensor *t, graft_tensor *norms, double bound) {
  graft_tensor *factor = fx_binary(s, GRAFT_OP_DIV_TENSOR, fx_float(bound), fx_tensor(fx_adds(s, norms, LEAST_NORM)));
  graft_tensor *above = fx_is(s, GRAFT_OP_GT_TENSOR, norms, bound);
  return fx_mul(s, t, fx_where(s, above, fx_tensor(factor), fx_int(1)));
}

static double number(graft_scalar x) {
  return (double)dt_scalar_value(&x).re;
}

static void decompose_renorm(fx *s, const op_call *c, graft_tensor **outs) {
  const in_renorm in = in_renorm_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  if (!in.self->numel) {
    outs[OUT] = in.self;
    return;
  }
  outs[OUT] = bounded(s, in.self, slice_norms(s, in.self, number(in.p), in.dim), number(in.maxnorm));
}

/* Where a slice is shortened: bound / (norm + least) (g - slope (g . x) / (norm + least)) */
static void vjp_renorm(op_vjp *v) {
  const in_renorm in = in_renorm_of(v->args);
  fx *s = v->s;
  graft_tensor *x = fx_widened(s, in.self), *g = fx_widened(s, v->g[OUT]);
  double p = number(in.p), bound = number(in.maxnorm);
  if (!in.self->numel) {
    v->results[ARG_renorm_self] = v->g[OUT];
    return;
  }
  graft_tensor *norms = slice_norms(s, x, p, in.dim), *dots = slice_sums(s, fx_mul(s, g, fx_conj(s, x)), in.dim);
  graft_tensor *inverse = fx_reciprocal(s, fx_adds(s, norms, LEAST_NORM));
  if (s->status) return;
  if (dt_is_complex(dots->dtype)) dots = fx_one(s, GRAFT_OP_PRIMS_REAL, (graft_value[]){fx_tensor(dots)}, 1);
  graft_tensor *size = fx_expand(s, norms, x->sizes, (uint32_t)x->ndim, false);
  graft_tensor *pull = fx_mul(s, dst_slope(s, x, size, p), fx_mul(s, inverse, dots));
  graft_tensor *shortened = fx_mul(s, fx_muls(s, inverse, bound), fx_sub(s, g, pull));
  graft_tensor *above = fx_is(s, GRAFT_OP_GT_TENSOR, norms, bound);
  v->results[ARG_renorm_self] = fx_where(s, above, fx_tensor(shortened), fx_tensor(g));
}

/* --- rows --- */

static const op_def defs[] = {
    {.op_id = GRAFT_OP_WEIGHT_NORM_INTERFACE,
     .roles = "vv",
     .infer = infer_weight_norm,
     .decompose = decompose_weight_norm,
     .vjp = vjp_weight_norm,
     .saves = OP_SAVE_ARGS(weight_norm_interface, v, g) | OP_SAVE_OUT(weight_norm_interface, out1),
     .without_grad = OP_OUT_BIT(weight_norm_interface, out1)},
    {.op_id = GRAFT_OP_WEIGHT_NORM_INTERFACE_BACKWARD,
     .roles = "vvvv",
     .infer = infer_weight_norm_backward,
     .decompose = decompose_weight_norm_backward},
    {.op_id = GRAFT_OP_RENORM,
     .roles = "v",
     .infer = infer_renorm,
     .decompose = decompose_renorm,
     .vjp = vjp_renorm,
     .saves = OP_SAVE_ARG(renorm, self)},
};
OP_TABLE(normalization_renorm, defs)
