/* rrelu: in training what is not positive is scaled by a slope drawn for its element, which is left in `noise` (1 for
 * what is positive); else by the mean slope, as leaky_relu does it. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

static double slope_of(graft_scalar bound) {
  return (double)dt_scalar_value(&bound).re;
}

static graft_status check_bounds(const op_call *c, double lower, double upper) {
  if (lower <= upper && isfinite(lower) && isfinite(upper)) return GRAFT_OK;
  return op_error(c, "lower is %g and upper %g; expected finite numbers, upper no less than lower", lower, upper);
}

static graft_status infer_rrelu(op_call *c) {
  const in_rrelu_with_noise in = in_rrelu_with_noise_of(c->args);
  graft_status status = op_check_floating(c, ARG_rrelu_with_noise_self);
  if (status) return status;
  if (!tns_same_sizes(in.self, in.noise)) return op_error(c, "noise has not self's shape (%s)", op_show_tensors(c));
  if (in.training && in.noise->dtype != in.self->dtype)
    return op_error(c, "noise has not self's dtype (%s)", op_show_tensors(c));
  status = in.training ? check_bounds(c, slope_of(in.lower), slope_of(in.upper)) : GRAFT_OK;
  if (status) return status;
  bool wide = in.self->dtype == GRAFT_F64 || in.self->dtype == GRAFT_WIDE;
  uint64_t per_block = wide ? 2 : 4, n = (uint64_t)in.self->numel;
  c->compute = in.self->dtype;
  c->draws = in.training ? 4 * ((n + per_block - 1) / per_block) : 0;
  c->decompose_only = !in.training;
  c->no_decompose = in.training;
  op_out(c, OUT, in.self->dtype, in.self->ndim, in.self->sizes);
  return GRAFT_OK;
}

static graft_status infer_rrelu_backward(op_call *c) {
  c->compute = op_promote_tensors(c);
  if (!c->compute) return op_error(c, "these dtypes do not promote to a common one: %s", op_show_tensors(c));
  if (!op_bool(c, ARG_rrelu_with_noise_backward_training) &&
      !dt_is_float(c->compute)) /* in training a product, of any dtype */
    return op_error(c, "expected a floating dtype (%s)", op_show_tensors(c));
  return op_out_broadcast(c, OUT, c->compute);
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

graft_status kernel_rrelu_with_noise(const graft_exec *exec, const graft_args_rrelu_with_noise *a) {
  graft_dtype dtype = a->self->dl.dtype;
  double lower = (double)ref_scalar(a->lower, 0.125L), upper = (double)ref_scalar(a->upper, 1 / 3.0L);
  REF_OWNED ref_array x = ref_read(a->self), noise = ref_new(x.count, false);
  if (!(x.re && noise.re)) return ref_no_memory();
  for (int64_t i = 0; i < x.count; i++) {
    bool scaled = x.re[i] <= 0;
    noise.re[i] = scaled ? dt_round(dtype, draw_slope(a->philox, dtype, (uint64_t)i, lower, upper)) : 1;
    if (scaled) x.re[i] *= noise.re[i];
  }
  ref_write(a->noise, &noise);
  ref_write(a->out, &x);
  return GRAFT_OK;
}

static graft_scalar mean_slope(graft_scalar lower, graft_scalar upper) {
  return graft_scalar_float((slope_of(lower) + slope_of(upper)) / 2);
}

static void decompose_rrelu(fx *s, const op_call *c, graft_tensor **outs) {
  const in_rrelu_with_noise in = in_rrelu_with_noise_of(c->args);
  outs[OUT] = fx_leaky_relu(s, in.self, mean_slope(in.lower, in.upper));
  if (!s->status) outs[OUT] = fx_contiguous(s, outs[OUT]);
}

static void decompose_rrelu_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_rrelu_with_noise_backward in = in_rrelu_with_noise_backward_of(c->args);
  graft_tensor *g = in.grad_output;
  outs[OUT] = in.training ? fx_mul(s, in.noise, g)
                          : fx_leaky_relu_backward(s, g, in.self, mean_slope(in.lower, in.upper), in.self_is_result);
}

static graft_tensor *backward(op_vjp *v, graft_tensor *self, graft_tensor *noise, int first, bool training) {
  graft_scalar lower = v->args[first].as.scalar, upper = v->args[first + 1].as.scalar;
  return fx_rrelu_with_noise_backward(v->s, v->g[OUT], self, noise, lower, upper, training, false);
}

static void vjp_rrelu(op_vjp *v) {
  const in_rrelu_with_noise in = in_rrelu_with_noise_of(v->args);
  v->results[ARG_rrelu_with_noise_self] = backward(v, in.self, in.noise, 2, in.training);
}

static void vjp_rrelu_backward(op_vjp *v) {
  const in_rrelu_with_noise_backward in = in_rrelu_with_noise_backward_of(v->args);
  if (vjp_needs(v, ARG_rrelu_with_noise_backward_grad_output))
    v->results[ARG_rrelu_with_noise_backward_grad_output] = backward(v, in.self, in.noise, 3, in.training);
  if (vjp_needs(v, ARG_rrelu_with_noise_backward_self))
    v->results[ARG_rrelu_with_noise_backward_self] = fx_zeros_like(v->s, v->g[OUT]);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(rrelu_with_noise),
     .roles = "vk",
     .infer = infer_rrelu,
     .decompose = decompose_rrelu,
     .vjp = vjp_rrelu,
     .saves = OP_SAVE_ARGS(rrelu_with_noise, self, noise),
     .flags = OP_NO_WIDEN},
    {.op_id = GRAFT_OP_RRELU_WITH_NOISE_BACKWARD,
     .roles = "bbb",
     .infer = infer_rrelu_backward,
     .decompose = decompose_rrelu_backward,
     .vjp = vjp_rrelu_backward,
     .saves = OP_SAVE_ARGS(rrelu_with_noise_backward, self, noise),
     .flags = OP_ELEMENTWISE | OP_NO_WIDEN},
};
OP_TABLE(random_rrelu, defs)
