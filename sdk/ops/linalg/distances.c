/* Distances of points: between two sets (cdist), and within one (pdist, each pair once). */
#include "ops/linalg/distances.h"

#include <math.h>

#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

static graft_status check_order(const op_call *c, double p) {
  return p >= 0 ? GRAFT_OK : op_error(c, "p is %g; expected 0 or more", p);
}

/* x1 [..., n, m] and x2 [..., k, m]: the batch that both broadcast to, in sizes; *ndim counts it alone. */
static graft_status check_sets(op_call *c, int first, int32_t *ndim, int64_t *sizes) {
  graft_status status = GRAFT_OK;
  for (int i = first; i < first + 2 && !status; i++) {
    if (op_tensor(c, i)->ndim < 2) status = op_refuse(c, i, "[..., points, coordinates]");
    if (!status) status = op_check_floating(c, i);
  }
  if (!status) status = op_check_same_dtype(c, first, first + 1);
  if (status) return status;
  const graft_tensor *x1 = op_tensor(c, first), *x2 = op_tensor(c, first + 1);
  if (x1->sizes[x1->ndim - 1] != x2->sizes[x2->ndim - 1])
    return op_error(c, "expected points of as many coordinates (%s)", op_show_tensors(c));
  *ndim = 0;
  bool fits = tns_broadcast_sizes(ndim, sizes, x1->ndim - 2, x1->sizes) &&
              tns_broadcast_sizes(ndim, sizes, x2->ndim - 2, x2->sizes);
  if (!fits) return op_error(c, "the leading dims do not broadcast (%s)", op_show_tensors(c));
  c->compute = x1->dtype;
  return GRAFT_OK;
}

static graft_status infer_cdist(op_call *c) {
  const in_cdist_forward in = in_cdist_forward_of(c->args);
  int64_t sizes[GRAFT_MAX_DIMS];
  int32_t ndim;
  graft_status status = check_sets(c, ARG_cdist_forward_x1, &ndim, sizes);
  if (!status) status = check_order(c, in.p);
  if (status) return status;
  if (in.compute_mode && (*in.compute_mode < 0 || *in.compute_mode > 2))
    return op_error(c, "compute_mode is %lld; expected 0 to 2", (long long)*in.compute_mode);
  sizes[ndim] = in.x1->sizes[in.x1->ndim - 2];
  sizes[ndim + 1] = in.x2->sizes[in.x2->ndim - 2];
  op_out(c, OUT, in.x1->dtype, ndim + 2, sizes);
  return GRAFT_OK;
}

static graft_status infer_cdist_backward(op_call *c) {
  const in_cdist_backward in = in_cdist_backward_of(c->args);
  int64_t sizes[GRAFT_MAX_DIMS];
  int32_t ndim;
  graft_status status = check_sets(c, ARG_cdist_backward_x1, &ndim, sizes);
  if (status) return status;
  sizes[ndim] = in.x1->sizes[in.x1->ndim - 2];
  sizes[ndim + 1] = in.x2->sizes[in.x2->ndim - 2];
  if (!tns_has_sizes(in.grad, ndim + 2, sizes) || !tns_has_sizes(in.cdist, ndim + 2, sizes))
    return op_error(c, "expected grad and cdist of the distances' shape (%s)", op_show_tensors(c));
  sizes[ndim + 1] = in.x1->sizes[in.x1->ndim - 1];
  op_out(c, OUT, in.x1->dtype, ndim + 2, sizes);
  return GRAFT_OK;
}

static int64_t pairs_of(const graft_tensor *self) {
  return self->sizes[0] * (self->sizes[0] - 1) / 2;
}

static graft_status infer_pdist(op_call *c) {
  const in_pdist_forward in = in_pdist_forward_of(c->args);
  if (in.self->ndim != 2) return op_refuse(c, ARG_pdist_forward_self, "[points, coordinates]");
  graft_status status = op_check_floating(c, ARG_pdist_forward_self);
  if (!status) status = check_order(c, in.p);
  if (status) return status;
  int64_t pairs = pairs_of(in.self);
  c->compute = in.self->dtype;
  op_out(c, OUT, in.self->dtype, 1, &pairs);
  return GRAFT_OK;
}

static graft_status infer_pdist_backward(op_call *c) {
  const in_pdist_backward in = in_pdist_backward_of(c->args);
  if (in.self->ndim != 2) return op_refuse(c, ARG_pdist_backward_self, "[points, coordinates]");
  graft_status status = op_check_floating(c, ARG_pdist_backward_self);
  if (status) return status;
  int64_t pairs = pairs_of(in.self);
  if (!tns_has_sizes(in.grad, 1, &pairs) || !tns_has_sizes(in.pdist, 1, &pairs))
    return op_error(c, "expected grad and pdist of %lld pairs (%s)", (long long)pairs, op_show_tensors(c));
  c->compute = in.self->dtype;
  op_out(c, OUT, in.self->dtype, 2, in.self->sizes);
  return GRAFT_OK;
}

/* --- decompositions --- */

graft_tensor *dst_slope(fx *s, graft_tensor *d, graft_tensor *size, double p) {
  const graft_value zero = fx_int(0), one = fx_int(1);
  if (p == 1) return fx_sgn(s, d);
  if (p == 0) return fx_zeros_like(s, d);
  graft_tensor *length = p == 2 ? d : fx_abs(s, d);
  if (isinf(p)) return fx_where(s, fx_eq_Tensor(s, length, size), fx_tensor(fx_sgn(s, d)), zero);
  graft_tensor *none = fx_eq_Scalar(s, p < 2 ? length : size, graft_scalar_int(0));
  if (p < 2) none = fx_logical_or(s, none, fx_eq_Scalar(s, size, graft_scalar_int(0)));
  graft_tensor *divisor = fx_where(s, none, one, fx_tensor(size));
  if (p == 2) return fx_where(s, none, zero, fx_tensor(fx_div(s, d, divisor)));
  graft_tensor *share = fx_div(s, fx_where(s, none, one, fx_tensor(length)), divisor);
  share = fx_mul(s, fx_sgn(s, d), fx_pow_Tensor_Scalar(s, share, graft_scalar_float(p - 1)));
  return fx_where(s, none, zero, fx_tensor(share));
}

/* The difference of each point of x1 from each of x2: [..., n, k, m]. */
static graft_tensor *differences(fx *s, graft_tensor *x1, graft_tensor *x2) {
  return fx_sub(s, fx_unsqueeze(s, x1, x1->ndim - 1), fx_unsqueeze(s, x2, x2->ndim - 2));
}

/* |d|_p along the last dim. Points without coordinates are 0 apart. For p = 0 a difference that is no number makes the
 * count none, which a norm would count. */
static graft_tensor *lengths(fx *s, graft_tensor *d, double p) {
  if (!d) return NULL;
  int64_t last = d->ndim - 1;
  if (!d->sizes[last]) return fx_filled(s, d, d->ndim - 1, d->sizes, 0, d->dtype);
  if (p != 0) return fx_linalg_vector_norm(s, d, graft_scalar_float(p), &last, 1, false, GRAFT_DTYPE_NONE);
  graft_tensor *apart = fx_cast(s, fx_ne_Scalar(s, d, graft_scalar_int(0)), d->dtype);
  return fx_sum(s, fx_where_self(s, fx_isnan(s, d), d, apart), 1u << last, false);
}

/* What each coordinate of d adds to the gradient. */
static graft_tensor *flow(fx *s, graft_tensor *d, graft_tensor *size, graft_tensor *g, double p) {
  if (!d) return NULL;
  size = fx_expand(s, fx_unsqueeze(s, size, size->ndim), d->sizes, (uint32_t)d->ndim, false);
  return fx_mul(s, dst_slope(s, d, size, p), fx_unsqueeze(s, g, g->ndim));
}

static void decompose_cdist(fx *s, const op_call *c, graft_tensor **outs) {
  const in_cdist_forward in = in_cdist_forward_of(c->args);
  outs[OUT] = lengths(s, differences(s, in.x1, in.x2), in.p);
}

static void decompose_cdist_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_cdist_backward in = in_cdist_backward_of(c->args);
  const graft_meta *out = &c->out[OUT];
  graft_tensor *each = flow(s, differences(s, in.x1, in.x2), in.cdist, in.grad, in.p);
  if (each) outs[OUT] = fx_reshape(s, fx_sum(s, each, 1u << (each->ndim - 2), false), out->ndim, out->sizes);
}

/* The points of each pair, and their difference. */
typedef struct pairs {
  graft_tensor *first, *second, *difference;
} pairs;

static pairs pairs_in(fx *s, const op_call *c, graft_tensor *self) {
  pairs p;
  graft_tensor *both = fx_triu_indices(s, self->sizes[0], self->sizes[0], 1, GRAFT_I64, c->device);
  p.first = fx_contiguous(s, fx_select_int(s, both, 0, 0));
  p.second = fx_contiguous(s, fx_select_int(s, both, 0, 1));
  p.difference = fx_sub(s, fx_index_select(s, self, 0, p.first), fx_index_select(s, self, 0, p.second));
  return p;
}

static void decompose_pdist(fx *s, const op_call *c, graft_tensor **outs) {
  const in_pdist_forward in = in_pdist_forward_of(c->args);
  if (c->out[OUT].sizes[0])
    outs[OUT] = lengths(s, pairs_in(s, c, in.self).difference, in.p);
  else
    outs[OUT] = fx_filled(s, in.self, 1, c->out[OUT].sizes, 0, in.self->dtype);
}

static void decompose_pdist_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_pdist_backward in = in_pdist_backward_of(c->args);
  graft_tensor *sums = fx_zeros_like(s, in.self);
  if (in.grad->numel && in.self->numel) {
    pairs p = pairs_in(s, c, in.self);
    graft_tensor *each = flow(s, p.difference, in.pdist, in.grad, in.p);
    sums = fx_index_add(s, sums, 0, p.first, each, graft_scalar_int(1));
    sums = fx_index_add(s, sums, 0, p.second, each, graft_scalar_int(-1));
  }
  outs[OUT] = sums;
}

/* --- gradients --- */

static void vjp_cdist(op_vjp *v) {
  const in_cdist_forward in = in_cdist_forward_of(v->args);
  graft_tensor *g = v->g[OUT], *out = v->outs[OUT];
  if (vjp_needs(v, ARG_cdist_forward_x1)) {
    graft_tensor *to = fx_cdist_backward(v->s, fx_contiguous(v->s, g), in.x1, in.x2, in.p, out);
    v->results[ARG_cdist_forward_x1] = fx_sum_to(v->s, to, in.x1->ndim, in.x1->sizes);
  }
  if (!vjp_needs(v, ARG_cdist_forward_x2)) return;
  graft_tensor *across = fx_contiguous(v->s, fx_turned(v->s, g)), *sizes = fx_contiguous(v->s, fx_turned(v->s, out));
  graft_tensor *to = fx_cdist_backward(v->s, across, in.x2, in.x1, in.p, sizes);
  v->results[ARG_cdist_forward_x2] = fx_sum_to(v->s, to, in.x2->ndim, in.x2->sizes);
}

static void vjp_pdist(op_vjp *v) {
  const in_pdist_forward in = in_pdist_forward_of(v->args);
  v->results[ARG_pdist_forward_self] = fx_pdist_backward(v->s, v->g[OUT], in.self, in.p, v->outs[OUT]);
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_CDIST_FORWARD,
     .roles = "vv",
     .infer = infer_cdist,
     .decompose = decompose_cdist,
     .vjp = vjp_cdist,
     .saves = OP_SAVE_ARGS(cdist_forward, x1, x2) | OP_SAVE_OUT(cdist_forward, out)},
    {.op_id = GRAFT_OP_CDIST_BACKWARD,
     .roles = "vvvv",
     .infer = infer_cdist_backward,
     .decompose = decompose_cdist_backward},
    {.op_id = GRAFT_OP_PDIST_FORWARD,
     .roles = "v",
     .infer = infer_pdist,
     .decompose = decompose_pdist,
     .vjp = vjp_pdist,
     .saves = OP_SAVE_ARG(pdist_forward, self) | OP_SAVE_OUT(pdist_forward, out)},
    {.op_id = GRAFT_OP_PDIST_BACKWARD,
     .roles = "vvv",
     .infer = infer_pdist_backward,
     .decompose = decompose_pdist_backward},
};
OP_TABLE(linalg_distances, defs)
