/* Gradients of activations, by the backward ops as PyTorch does it, and of these. Where PyTorch has no formula for a
 * backward op (mish, hardsigmoid), it is the derivative. */
#include "ops/pointwise_vjp.h"

static double real_arg(op_vjp *v, int arg) {
  graft_scalar scalar = scalar_arg(v, arg);
  return (double)dt_scalar_value(&scalar).re;
}

/* value where low < t < high, else 0 */
static graft_tensor *inside(op_vjp *v, graft_tensor *t, double low, double high, graft_tensor *value) {
  graft_tensor *above = compare(v, GRAFT_OP_GT_TENSOR, fx_tensor(t), number(low));
  graft_tensor *below = compare(v, GRAFT_OP_LT_TENSOR, fx_tensor(t), number(high));
  return pick(v, fx_logical_and(S, above, below), fx_tensor(value), number(0));
}

/* s (1 - s) */
static graft_tensor *sigmoid_slope(op_vjp *v, graft_tensor *s) {
  return fx_mul(S, s, fx_adds(S, fx_neg(S, s), 1));
}

VJP(elu) {
  SELF fx_elu_backward(S, G, scalar_arg(v, 1), scalar_arg(v, 2), scalar_arg(v, 3), false, X);
}

VJP(celu) {
  SELF fx_elu_backward(S, G, scalar_arg(v, 1), graft_scalar_int(1), graft_scalar_float(1 / real_arg(v, 1)), false, X);
}

/* elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result) */
VJP(elu_backward) {
  graft_tensor *at = vjp_arg(v, 5);
  double alpha = real_arg(v, 1), by = real_arg(v, 2), input_scale = real_arg(v, 3);
  bool is_result = v->args[4].as.i;
  SELF fx_elu_backward(S, G, scalar_arg(v, 1), scalar_arg(v, 2), scalar_arg(v, 3), is_result, at);
  if (!vjp_needs(v, 5)) return;
  graft_tensor *bend = fx_muls(S, fx_mul(S, G, X), input_scale);
  if (!is_result) {
    bend = fx_mul(S, fx_muls(S, bend, input_scale * alpha * by), fx_exp(S, fx_muls(S, at, input_scale)));
  }
  v->results[5] = pick(v, compare(v, GRAFT_OP_LT_TENSOR, fx_tensor(at), number(0)), fx_tensor(bend), number(0));
}

VJP(hardtanh) {
  SELF fx_hardtanh_backward(S, G, X, scalar_arg(v, 1), scalar_arg(v, 2));
}
VJP(leaky_relu) {
  SELF fx_leaky_relu_backward(S, G, X, scalar_arg(v, 1), false);
}
VJP(hardswish) {
  SELF fx_hardswish_backward(S, G, X);
}
VJP(hardsigmoid) {
  SELF fx_hardsigmoid_backward(S, G, X);
}
VJP(softplus) {
  SELF fx_softplus_backward(S, G, X, scalar_arg(v, 1), scalar_arg(v, 2));
}
VJP(mish) {
  SELF fx_mish_backward(S, G, X);
}
VJP(threshold) {
  SELF fx_threshold_backward(S, G, X, scalar_arg(v, 1));
}
VJP(hardshrink) {
  SELF fx_hardshrink_backward(S, G, X, scalar_arg(v, 1));
}
VJP(softshrink) {
  SELF fx_softshrink_backward(S, G, X, scalar_arg(v, 1));
}

VJP(prelu) {
  graft_tensor *of_self, *of_weight;
  fx_prelu_kernel_backward(S, G, X, Y, &of_self, &of_weight);
  SELF of_self;
  OTHER of_weight;
}

/* Those whose gradient is one factor here and another there. */
VJP(hardtanh_backward) {
  SELF fx_hardtanh_backward(S, G, Y, scalar_arg(v, 2), scalar_arg(v, 3));
  OTHER fx_zeros_like(S, G);
}
VJP(leaky_relu_backward) {
  SELF fx_leaky_relu_backward(S, G, Y, scalar_arg(v, 2), false);
  OTHER fx_zeros_like(S, G);
}
VJP(hardsigmoid_backward) {
  SELF fx_hardsigmoid_backward(S, G, Y);
  OTHER fx_zeros_like(S, G);
}
VJP(hardshrink_backward) {
  SELF fx_hardshrink_backward(S, G, Y, scalar_arg(v, 2));
  OTHER fx_zeros_like(S, G);
}
VJP(softshrink_backward) {
  SELF fx_softshrink_backward(S, G, Y, scalar_arg(v, 2));
  OTHER fx_zeros_like(S, G);
}

VJP(hardswish_backward) {
  SELF fx_hardswish_backward(S, G, Y);
  OTHER inside(v, Y, -3, 3, fx_muls(S, fx_mul(S, G, X), 1.0 / 3));
}

VJP(softplus_backward) {
  double beta = real_arg(v, 2), threshold = real_arg(v, 3);
  SELF fx_softplus_backward(S, G, Y, scalar_arg(v, 2), scalar_arg(v, 3));
  if (!vjp_needs(v, 1)) return;
  graft_tensor *t = fx_muls(S, Y, beta);
  graft_tensor *bend = fx_muls(S, fx_mul(S, fx_mul(S, G, X), sigmoid_slope(v, fx_sigmoid(S, t))), beta);
  v->results[1] = pick(v, compare(v, GRAFT_OP_LT_TENSOR, fx_tensor(t), number(threshold)), fx_tensor(bend), number(0));
}

/* The slope is sigmoid(-x); buffer says no more than self. */
VJP(log_sigmoid_backward) {
  SELF fx_log_sigmoid_backward(S, G, Y, vjp_arg(v, 2));
  OTHER fx_neg(S, fx_mul(S, fx_mul(S, G, X), sigmoid_slope(v, fx_sigmoid(S, Y))));
}

/* With t = tanh(softplus(x)) and s = sigmoid(x), t' = s (1 - t^2): the slope t + x t' has the derivative
 * t' (2 + x (1 - s - 2 t s)). */
VJP(mish_backward) {
  SELF fx_mish_backward(S, G, Y);
  if (!vjp_needs(v, 1)) return;
  graft_tensor *s = fx_sigmoid(S, Y);
  graft_tensor *t = fx_tanh(S, fx_softplus(S, Y, graft_scalar_int(1), graft_scalar_int(20)));
  graft_tensor *slope = fx_mul(S, s, fx_adds(S, fx_neg(S, fx_mul(S, t, t)), 1));
  graft_tensor *rest = fx_adds(S, fx_neg(S, fx_mul(S, s, fx_adds(S, fx_muls(S, t, 2), 1))), 1);
  graft_tensor *bend = fx_mul(S, slope, fx_adds(S, fx_mul(S, Y, rest), 2));
  v->results[1] = fx_mul(S, fx_mul(S, G, X), bend);
}
