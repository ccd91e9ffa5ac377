/* rrelu: in training what is not positive is scaled by a slope drawn for its element, which is left in `noise` (1 for
 * what is positive); else by the mean slope, as leaky_relu does it. */
#include "ops/core/families.h"
#include "ops/core/ref.h"
#include "ops/generated/fx_ops.h"

static double slope_of(graft_scalar bound) {
  return (double)dt_scalar_value(&bound).re;
}

static graft_status check_bounds(const op_call *c, int lower_arg) {
  double lower = slope_of(op_scalar(c, lower_arg)), upper = slope_of(op_scalar(c, lower_arg + 1));
  if (lower <= upper && isfinite(lower) && isfinite(upper)) return GRAFT_OK;
  return op_error(c, "lower is %g and upper %g; expected finite numbers, upper no less than lower", lower, upper);
}

/* rrelu_with_noise(self, noise, lower, upper, training, generator) */
static graft_status infer_rrelu(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0), *noise = op_tensor(c, 1);
  bool training = op_bool(c, 4);
  if (!dt_is_float(self->dtype) || dt_is_float8(self->dtype)) return op_refuse_dtype(c, 0, "a floating dtype");
  if (!tns_same_sizes(self, noise)) return op_error(c, "noise has not self's shape (%s)", op_show_tensors(c));
  if (training && noise->dtype != self->dtype)
    return op_error(c, "noise has not self's dtype (%s)", op_show_tensors(c));
  graft_status status = training ? check_bounds(c, 2) : GRAFT_OK;
  if (status) return status;
  bool wide = self->dtype == GRAFT_F64 || self->dtype == GRAFT_WIDE;
  uint64_t per_block = wide ? 2 : 4, n = (uint64_t)self->numel;
  c->compute = self->dtype;
  c->draws = training ? 4 * ((n + per_block - 1) / per_block) : 0;
  c->decompose_only = !training;
  c->no_decompose = training;
  op_out(c, 0, self->dtype, self->ndim, self->sizes);
  return GRAFT_OK;
}

/* rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result) */
static graft_status infer_rrelu_backward(op_call *c) {
  c->compute = op_promote_tensors(c, 0);
  if (!c->compute) return op_error(c, "these dtypes do not promote to a common one: %s", op_show_tensors(c));
  if (!op_bool(c, 5) && !dt_is_float(c->compute)) /* in training a product, of any dtype */
    return op_error(c, "expected a floating dtype (%s)", op_show_tensors(c));
  return op_out_broadcast(c, 0, c->compute);
}

/* lower + (upper - lower) u, of bounds rounded to the dtype that u is drawn in, as one difference and one fused product
 * and sum: every backend finds the same bits. */
static ref_real draw_slope(const graft_philox *p, graft_dtype dtype, uint64_t i, double lower, double upper) {
  if (dt_is_half(dtype)) dtype = GRAFT_F32;
  ref_real u = ref_philox_uniform(p, dtype, i);
  float low = (float)lower, range = (float)upper - low;
  if (dtype == GRAFT_F32) return fmaf((float)u, range, low);
  if (dtype == GRAFT_F64) return fma((double)u, upper - lower, lower);
  return lower + (ref_real)(upper - lower) * u;
}

static graft_status ref_rrelu_with_noise(const graft_exec *exec, const graft_args_rrelu_with_noise *a) {
  (void)exec;
  graft_dtype dtype = a->self->dl.dtype;
  double lower = (double)ref_scalar(a->lower, 0.125L), upper = (double)ref_scalar(a->upper, 1 / 3.0L);
  ref_array x = ref_read(a->self), noise = ref_new(x.count, false);
  graft_status status = x.re && noise.re ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < x.count; i++) {
    bool scaled = x.re[i] <= 0;
    noise.re[i] = scaled ? dt_round(dtype, draw_slope(a->philox, dtype, (uint64_t)i, lower, upper)) : 1;
    if (scaled) x.re[i] *= noise.re[i];
  }
  if (!status) {
    ref_write(a->noise, &noise);
    ref_write(a->out, &x);
  }
  ref_free(&x);
  ref_free(&noise);
  return status;
}

static graft_scalar mean_slope(graft_scalar lower, graft_scalar upper) {
  return graft_scalar_float((slope_of(lower) + slope_of(upper)) / 2);
}

static void decompose_rrelu(fx *s, const op_call *c, graft_tensor **outs) {
  outs[0] = fx_leaky_relu(s, op_tensor(c, 0), mean_slope(op_scalar(c, 2), op_scalar(c, 3)));
  if (!s->status) outs[0] = fx_contiguous(s, outs[0]);
}

static void decompose_rrelu_backward(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *g = op_tensor(c, 0), *self = op_tensor(c, 1), *noise = op_tensor(c, 2);
  outs[0] = op_bool(c, 5)
                ? fx_mul(s, noise, g)
                : fx_leaky_relu_backward(s, g, self, mean_slope(op_scalar(c, 3), op_scalar(c, 4)), op_bool(c, 6));
}

static graft_tensor *backward(op_vjp *v, graft_tensor *self, graft_tensor *noise, int first, bool training) {
  graft_scalar lower = v->args[first].as.scalar, upper = v->args[first + 1].as.scalar;
  return fx_rrelu_with_noise_backward(v->s, v->g[0], self, noise, lower, upper, training, false);
}

static void vjp_rrelu(op_vjp *v) {
  v->results[0] = backward(v, vjp_arg(v, 0), vjp_arg(v, 1), 2, v->args[4].as.i);
}

static void vjp_rrelu_backward(op_vjp *v) {
  if (vjp_needs(v, 0)) v->results[0] = backward(v, vjp_arg(v, 1), vjp_arg(v, 2), 3, v->args[5].as.i);
  if (vjp_needs(v, 1)) v->results[1] = fx_zeros_like(v->s, v->g[0]);
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_RRELU_WITH_NOISE,
     .roles = "vk",
     .infer = infer_rrelu,
     .decompose = decompose_rrelu,
     .vjp = vjp_rrelu,
     .saves = OP_SAVE_ARG(0) | OP_SAVE_ARG(1),
     .flags = OP_NO_WIDEN,
     .reference = OP_REF(rrelu_with_noise)},
    {.op_id = GRAFT_OP_RRELU_WITH_NOISE_BACKWARD,
     .roles = "bbb",
     .infer = infer_rrelu_backward,
     .decompose = decompose_rrelu_backward,
     .vjp = vjp_rrelu_backward,
     .saves = OP_SAVE_ARG(1) | OP_SAVE_ARG(2),
     .flags = OP_ELEMENTWISE | OP_NO_WIDEN},
};
OP_TABLE(random_rrelu, defs)
