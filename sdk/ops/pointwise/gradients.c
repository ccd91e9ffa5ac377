/* Gradients of pointwise ops. Sources: the derivatives are textbook; at ties and kinks they follow PyTorch (maximum and
 * minimum share the gradient between equal operands, clamp passes it at its limits, relu and abs give 0 at 0). */
#include <math.h>

#include "ops/pointwise/gradients.h"

VJP(neg) {
  SELF fx_neg(S, G);
}
VJP(exp) {
  SELF fx_mul(S, G, fx_conj(S, OUT));
}
VJP(log) {
  SELF fx_div(S, G, fx_conj(S, X));
}
VJP(sqrt) {
  SELF fx_div(S, G, fx_muls(S, fx_conj(S, OUT), 2));
}
VJP(rsqrt) {
  SELF fx_muls(S, fx_mul(S, G, fx_conj(S, fx_powi(S, OUT, 3))), -0.5);
}
VJP(sin) {
  SELF fx_mul(S, G, fx_conj(S, fx_cos(S, X)));
}
VJP(cos) {
  SELF fx_neg(S, fx_mul(S, G, fx_conj(S, fx_sin(S, X))));
}
VJP(tanh) {
  SELF fx_tanh_backward(S, G, OUT);
}
VJP(sigmoid) {
  SELF fx_sigmoid_backward(S, G, OUT);
}
VJP(reciprocal) {
  SELF fx_neg(S, fx_mul(S, G, fx_conj(S, fx_mul(S, OUT, OUT))));
}
VJP(relu) {
  SELF fx_threshold_backward(S, G, OUT, graft_scalar_int(0));
}
VJP(gelu) {
  SELF fx_gelu_backward(S, G, X, v->args[1].as.str);
}
VJP(zero) {
  SELF fx_zeros_like(S, G);
}

VJP(erf) {
  const double two_over_sqrt_pi = 1.1283791670955125738961589031215452;
  SELF fx_muls(S, fx_mul(S, G, fx_exp(S, fx_neg(S, fx_mul(S, X, X)))), two_over_sqrt_pi);
}

VJP(silu) {
  SELF fx_silu_backward(S, G, X);
}

VJP(abs) {
  if (!vjp_needs(v, 0)) return;
  if (dt_is_complex(X->dtype)) { /* g x / |x|, 0 at 0 */
    graft_tensor *size = fx_abs(S, X);
    graft_tensor *zero = compare(v, GRAFT_OP_EQ_TENSOR, fx_tensor(size), number(0));
    v->results[0] = pick(v, zero, number(0), fx_tensor(fx_mul(S, G, fx_div(S, X, size))));
    return;
  }
  graft_tensor *positive = compare(v, GRAFT_OP_GT_TENSOR, fx_tensor(X), number(0));
  graft_tensor *negative = compare(v, GRAFT_OP_LT_TENSOR, fx_tensor(X), number(0));
  graft_tensor *rest = pick(v, negative, fx_tensor(fx_neg(S, G)), number(0));
  v->results[0] = pick(v, positive, fx_tensor(G), fx_tensor(rest));
}

VJP(add) {
  SELF G;
  OTHER scale(v, G, 2);
}

VJP(sub) {
  SELF G;
  OTHER fx_neg(S, scale(v, G, 2));
}

VJP(mul) {
  SELF times(v, G, conj_value(v, 1));
  OTHER times(v, G, conj_value(v, 0));
}

VJP(div) {
  SELF over(v, G, conj_value(v, 1));
  if (!vjp_needs(v, 1)) return;
  graft_tensor *quotient = fx_binary(S, GRAFT_OP_DIV_TENSOR, conj_value(v, 0), conj_value(v, 1));
  v->results[1] = fx_neg(S, fx_mul(S, G, over(v, quotient, conj_value(v, 1))));
}

VJP(div_mode) {
  if (v->args[2].kind == GRAFT_VALUE_NONE) {
    pw_vjp_div(v);
    return;
  }
  SELF fx_zeros_like(S, G);
  OTHER fx_zeros_like(S, G);
}

/* exponent * x^(exponent - 1), with 0 where the exponent is 0 (x may be 0 there). */
VJP(pow_scalar) {
  graft_scalar exponent = scalar_arg(v, 1);
  dt_value e = dt_scalar_value(&exponent);
  if (!vjp_needs(v, 0)) return;
  if (e.re == 0 && e.im == 0) {
    v->results[0] = fx_zeros_like(S, G);
    return;
  }
  graft_scalar less = exponent;
  if (less.dtype == GRAFT_C128)
    less.value.c[0] -= 1;
  else if (less.dtype == GRAFT_F64)
    less.value.f -= 1;
  else
    less.value.i -= 1;
  graft_tensor *slope = fx_scale(S, fx_pow_Tensor_Scalar(S, X, less), exponent);
  v->results[0] = fx_mul(S, G, fx_conj(S, slope));
}

static graft_tensor *power_slope(op_vjp *v) { /* d/dx of x^y */
  graft_value less = fx_tensor(fx_adds(S, Y, -1));
  graft_tensor *slope = fx_mul(S, Y, fx_binary(S, GRAFT_OP_POW_TENSOR_TENSOR, vjp_value(v, 0), less));
  return pick(v, compare(v, GRAFT_OP_EQ_TENSOR, fx_tensor(Y), number(0)), number(0),
              fx_tensor(fx_mul(S, G, fx_conj(S, slope))));
}

/* out * log(x), taken as 0 where x is 0 and y is not negative. */
static graft_tensor *exponent_slope(op_vjp *v, graft_tensor *log_base, graft_tensor *no_slope) {
  graft_tensor *slope = fx_mul(S, G, fx_conj(S, fx_mul(S, OUT, log_base)));
  return no_slope ? pick(v, no_slope, number(0), fx_tensor(slope)) : slope;
}

VJP(pow_tensor) {
  SELF power_slope(v);
  if (!vjp_needs(v, 1)) return;
  graft_tensor *zero = compare(v, GRAFT_OP_EQ_TENSOR, fx_tensor(X), number(0));
  graft_tensor *none = zero;
  if (!dt_is_complex(Y->dtype)) {
    none = fx_logical_and(S, zero, compare(v, GRAFT_OP_GE_TENSOR, fx_tensor(Y), number(0)));
  }
  v->results[1] = exponent_slope(v, fx_log(S, X), none);
}

VJP(pow_base) {
  if (!vjp_needs(v, 1)) return;
  graft_scalar base = scalar_arg(v, 0);
  dt_value b = dt_scalar_value(&base);
  if (b.re == 0 && b.im == 0) {
    graft_tensor *none = compare(v, GRAFT_OP_GE_TENSOR, fx_tensor(Y), number(0));
    v->results[1] = pick(v, none, number(0), fx_tensor(fx_muls(S, fx_mul(S, G, OUT), -(double)INFINITY)));
    return;
  }
  if (b.im == 0 && b.re > 0) {
    v->results[1] = fx_muls(S, fx_mul(S, G, fx_conj(S, OUT)), (double)logl(b.re));
    return;
  }
  graft_tensor *log_base = fx_log(S, fx_filled(S, G, 0, NULL, (double)b.re, dt_real(OUT->dtype)));
  v->results[1] = exponent_slope(v, log_base, NULL);
}

/* The greater (or smaller) operand takes the gradient; equal ones half each. */
static void extremum(op_vjp *v, uint32_t loses_first, uint32_t loses_second) {
  graft_tensor *tie = compare(v, GRAFT_OP_EQ_TENSOR, vjp_value(v, 0), vjp_value(v, 1));
  graft_tensor *shared = pick(v, tie, fx_tensor(fx_muls(S, G, 0.5)), fx_tensor(G));
  SELF pick(v, compare(v, loses_first, vjp_value(v, 0), vjp_value(v, 1)), number(0), fx_tensor(shared));
  OTHER pick(v, compare(v, loses_second, vjp_value(v, 0), vjp_value(v, 1)), number(0), fx_tensor(shared));
}
VJP(maximum) {
  extremum(v, GRAFT_OP_LT_TENSOR, GRAFT_OP_GT_TENSOR);
}
VJP(minimum) {
  extremum(v, GRAFT_OP_GT_TENSOR, GRAFT_OP_LT_TENSOR);
}

VJP(fmod) {
  SELF G;
  if (!vjp_needs(v, 1)) return;
  graft_tensor *whole;
  graft_value mode = {GRAFT_VALUE_STR, 0, {.str = "trunc"}};
  fx_call(S, GRAFT_OP_DIV_TENSOR_MODE, (graft_value[]){vjp_value(v, 0), vjp_value(v, 1), mode}, 3, &whole, 1);
  v->results[1] = fx_neg(S, fx_mul(S, G, whole));
}

VJP(where) {
  OTHER pick(v, X, fx_tensor(G), number(0));
  THIRD pick(v, X, number(0), fx_tensor(G));
}

VJP(masked_fill) {
  SELF pick(v, Y, number(0), fx_tensor(G));
  if (vjp_needs(v, 2)) v->results[2] = pick(v, Y, fx_tensor(G), number(0));
}

VJP(clamp) {
  if (!vjp_needs(v, 0)) return;
  graft_tensor *g = G;
  if (scalar_arg(v, 1).dtype) {
    g = pick(v, compare(v, GRAFT_OP_GE_TENSOR, fx_tensor(X), v->args[1]), fx_tensor(g), number(0));
  }
  if (scalar_arg(v, 2).dtype) {
    g = pick(v, compare(v, GRAFT_OP_LE_TENSOR, fx_tensor(X), v->args[2]), fx_tensor(g), number(0));
  }
  v->results[0] = g;
}

VJP(addcmul) {
  SELF G;
  OTHER scale(v, times(v, G, conj_value(v, 2)), 3);
  THIRD scale(v, times(v, G, conj_value(v, 1)), 3);
}

VJP(addcdiv) {
  SELF G;
  graft_value divisor = conj_value(v, 2);
  OTHER scale(v, over(v, G, divisor), 3);
  THIRD fx_neg(S, scale(v, over(v, over(v, times(v, G, conj_value(v, 1)), divisor), divisor), 3));
}

VJP(lerp) {
  graft_scalar weight = scalar_arg(v, 2);
  SELF fx_muls(S, G, 1 - (double)dt_scalar_value(&weight).re);
  OTHER scale(v, G, 2);
}

/* g (1 - y^2) */
VJP(tanh_backward) {
  SELF fx_tanh_backward(S, G, fx_conj(S, Y));
  OTHER fx_muls(S, fx_mul(S, fx_mul(S, fx_conj(S, G), X), fx_conj(S, Y)), -2);
}

/* g y (1 - y) */
VJP(sigmoid_backward) {
  SELF fx_sigmoid_backward(S, G, fx_conj(S, Y));
  OTHER fx_mul(S, fx_mul(S, fx_conj(S, G), X), fx_conj(S, fx_adds(S, fx_muls(S, Y, -2), 1)));
}

VJP(threshold_backward) {
  SELF fx_threshold_backward(S, G, Y, scalar_arg(v, 2));
  OTHER fx_zeros_like(S, G);
}

/* gelu'' = phi(x) (2 - x^2) */
static graft_tensor *gelu_curvature(op_vjp *v) {
  const double one_over_sqrt_2pi = 0.39894228040143267793994605993438187;
  graft_tensor *square = fx_mul(S, Y, Y);
  graft_tensor *density = fx_muls(S, fx_exp(S, fx_muls(S, square, -0.5)), one_over_sqrt_2pi);
  return fx_mul(S, density, fx_adds(S, fx_neg(S, square), 2));
}

/* The same for 0.5 x (1 + t), t = tanh(u), u = c (x + k x^3):
 * t' = (1 - t^2) u', and the curvature is t' + 0.5 x (t'' ), t'' = (1 - t^2)(u'' - 2 t u'^2). */
static graft_tensor *gelu_tanh_curvature(op_vjp *v) {
  const double c = 0.79788456080286535587989211986876373, k = 0.044715;
  graft_tensor *square = fx_mul(S, Y, Y);
  graft_tensor *u = fx_muls(S, fx_mul(S, Y, fx_adds(S, fx_muls(S, square, k), 1)), c);
  graft_tensor *slope = fx_muls(S, fx_adds(S, fx_muls(S, square, 3 * k), 1), c);
  graft_tensor *bend = fx_muls(S, Y, 6 * k * c);
  graft_tensor *t = fx_tanh(S, u);
  graft_tensor *rest = fx_adds(S, fx_neg(S, fx_mul(S, t, t)), 1);
  graft_tensor *second = fx_sub(S, bend, fx_muls(S, fx_mul(S, t, fx_mul(S, slope, slope)), 2));
  return fx_mul(S, rest, fx_add(S, slope, fx_muls(S, fx_mul(S, Y, second), 0.5)));
}

VJP(gelu_backward) {
  const char *kind = v->args[2].as.str;
  SELF fx_gelu_backward(S, G, Y, kind);
  if (!vjp_needs(v, 1)) return;
  graft_tensor *bend = kind && kind[0] == 't' ? gelu_tanh_curvature(v) : gelu_curvature(v);
  v->results[1] = fx_mul(S, fx_mul(S, G, X), bend);
}

/* silu'' = s (1 - s) (2 + x (1 - 2 s)) */
VJP(silu_backward) {
  SELF fx_silu_backward(S, G, fx_conj(S, Y));
  if (!vjp_needs(v, 1)) return;
  graft_tensor *s = fx_sigmoid(S, Y);
  graft_tensor *inner = fx_adds(S, fx_mul(S, Y, fx_adds(S, fx_muls(S, s, -2), 1)), 2);
  graft_tensor *bend = fx_mul(S, fx_mul(S, s, fx_adds(S, fx_neg(S, s), 1)), inner);
  v->results[1] = fx_mul(S, fx_mul(S, fx_conj(S, G), X), fx_conj(S, bend));
}
