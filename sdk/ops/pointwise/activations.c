/* Activations with one result, and their gradients. */
#include <string.h>

#include "ops/core/wide.h"
#include "ops/pointwise/pointwise.h"

static long double logistic(long double x) {
  return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}
/* NaN stays; where the limits cross, the upper one holds. */
static long double between(long double x, long double low, long double high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

static int64_t whole_between(const pw_context *c, int64_t x, int64_t low, int64_t high) {
  x = pw_less(c, x, low) ? low : x;
  return pw_less(c, high, x) ? high : x;
}

/* --- kernels; those of gradients take the cotangent first, then what was saved --- */

REAL(relu, x <= 0 ? 0 : x)
INTEGER(relu, !c->is_u64 && x < 0 ? 0 : x)
REAL(sigmoid, 1 / (1 + expl(-x)))
COMPLEX(sigmoid, pw_one_over(1 + cexpl(-x)))
REAL(silu, x / (1 + expl(-x)))
COMPLEX(silu, x / (1 + cexpl(-x)))
REAL(sigmoid_backward, x *(1 - y) * y)
COMPLEX(sigmoid_backward, x *conjl((1 - y) * y))
REAL(threshold_backward, y <= c->p[ARG_threshold_backward_threshold] ? 0 : x)
INTEGER(threshold_backward, pw_less(c, pw_whole(c, ARG_threshold_backward_threshold), y) ? x : 0)

/* tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); else x Phi(x), by erfc so that the left tail keeps its
 * digits. */
#define GELU_C 0.797884560802865355879892119868763737L
static long double gelu_tanh(long double x) {
  return tanhl(GELU_C * (x + 0.044715L * x * x * x));
}

static long double r_gelu(const long double *x, pw_context *c) {
  if (c->mode == GRAFT_STR_APPROXIMATE_TANH) return 0.5L * x[0] * (1 + gelu_tanh(x[0]));
  return 0.5L * x[0] * erfcl(-x[0] * M_SQRT1_2l);
}

static long double r_gelu_backward(const long double *x, pw_context *c) {
  long double g = x[0], y = x[1];
  if (c->mode == GRAFT_STR_APPROXIMATE_TANH) {
    long double t = gelu_tanh(y), slope = GELU_C * (1 + 3 * 0.044715L * y * y);
    return g * (0.5L * (1 + t) + 0.5L * y * (1 - t * t) * slope);
  }
  long double density = expl(-0.5L * y * y) * 0.398942280401432677939946059934381868L;
  return g * (0.5L * erfcl(-y * M_SQRT1_2l) + y * density);
}

static long double r_silu_backward(const long double *x, pw_context *c) {
  (void)c;
  long double s = 1 / (1 + expl(-x[1]));
  return x[0] * s * (1 + x[1] * (1 - s));
}

static dt_value c_silu_backward(const dt_value *v, pw_context *c) {
  (void)c;
  ref_complex g = CMPLXL(v[0].re, v[0].im), x = CMPLXL(v[1].re, v[1].im), s = 1 / (1 + cexpl(-x));
  ref_complex r = g * (s * (1 + x * (1 - s))); /* PyTorch has no conjugate here */
  return (dt_value){creall(r), cimagl(r)};
}
REAL(elu, x <= 0 ? expm1l(x * c->p[ARG_elu_input_scale]) * c->p[ARG_elu_alpha] * c->p[ARG_elu_scale]
                 : x * c->p[ARG_elu_scale])
REAL(celu, x <= 0 ? expm1l(x / c->p[ARG_celu_alpha]) * c->p[ARG_celu_alpha] : x)

static long double r_elu_backward(const long double *x, pw_context *c) {
  if (!(x[1] <= 0)) return x[0] * c->p[ARG_elu_backward_scale];
  bool is_result = c->mode;
  long double low = c->p[ARG_elu_backward_alpha] * c->p[ARG_elu_backward_scale];
  return x[0] * c->p[ARG_elu_backward_input_scale] *
         (is_result ? x[1] + low : low * expl(x[1] * c->p[ARG_elu_backward_input_scale]));
}
REAL(hardtanh, between(x, c->p[ARG_hardtanh_min_val], c->p[ARG_hardtanh_max_val]))
REAL(hardtanh_backward, y <= c->p[ARG_hardtanh_backward_min_val] || y >= c->p[ARG_hardtanh_backward_max_val] ? 0 : x)
REAL(leaky_relu, x > 0 ? x : x * c->p[ARG_leaky_relu_negative_slope])
REAL(leaky_relu_backward, y > 0 ? x : x * c->p[ARG_leaky_relu_backward_negative_slope])
REAL(hardswish, x *between(x + 3, 0, 6) / 6)
REAL(hardswish_backward, y <= -3 ? 0 : y < 3 ? x * (y / 3 + 0.5L) : x)
REAL(hardsigmoid, between(x + 3, 0, 6) / 6)
REAL(hardsigmoid_backward, y > -3 && y < 3 ? x / 6 : 0)
REAL(threshold, x <= c->p[ARG_threshold_threshold] ? c->p[ARG_threshold_value] : x)
REAL(hardshrink, x >= -c->p[ARG_hardshrink_lambd] && x <= c->p[ARG_hardshrink_lambd] ? 0 : x)
REAL(softshrink, x > c->p[ARG_softshrink_lambd]    ? x - c->p[ARG_softshrink_lambd]
                 : x < -c->p[ARG_softshrink_lambd] ? x + c->p[ARG_softshrink_lambd]
                                                   : x * 0)
REAL(shrink_backward, y >= -c->p[ARG_hardshrink_backward_lambd] && y <= c->p[ARG_hardshrink_backward_lambd] ? 0 : x)
REAL(prelu, x > 0 ? x : y * x)
INTEGER(hardtanh, whole_between(c, x, pw_whole(c, ARG_hardtanh_min_val), pw_whole(c, ARG_hardtanh_max_val)))
INTEGER(threshold, pw_less(c, pw_whole(c, ARG_threshold_threshold), x) ? x : pw_whole(c, ARG_threshold_value))
REAL(softplus, x * c->p[ARG_softplus_beta] > c->p[ARG_softplus_threshold]
                   ? x
                   : log1pl(expl(x * c->p[ARG_softplus_beta])) / c->p[ARG_softplus_beta])
REAL(softplus_backward, y * c->p[ARG_softplus_backward_beta] > c->p[ARG_softplus_backward_threshold]
                            ? x
                            : x * logistic(y * c->p[ARG_softplus_backward_beta]))

/* The third operand is what the forward has kept: exp(-|x|). */
static long double r_log_sigmoid_backward(const long double *x, pw_context *c) {
  (void)c;
  long double share = x[2] / (1 + x[2]);
  return x[0] * (x[1] < 0 ? 1 - share : share);
}

/* x tanh(log(1 + e^x)) */
static long double mish_gate(long double x) {
  return tanhl(x > 100 ? x : log1pl(expl(x)));
}
REAL(mish, x *mish_gate(x))
static long double r_mish_backward(const long double *x, pw_context *c) {
  (void)c;
  long double gate = mish_gate(x[1]);
  return x[0] * (gate + x[1] * logistic(x[1]) * (1 - gate * gate));
}

/* --- further conditions --- */

static graft_status check_celu(op_call *c) {
  graft_scalar alpha = op_scalar(c, ARG_celu_alpha);
  return dt_scalar_value(&alpha).re == 0 ? op_error(c, "alpha is 0; expected another number") : GRAFT_OK;
}

/* Integers are clamped to bounds that were cut to whole numbers before they are looked at. */
static void cut_bound(op_call *c, int arg) {
  dt_value bound = dt_scalar_value(&c->args[arg].as.scalar);
  if (fabsl(bound.re) < 0x1p63L) c->args[arg].as.scalar = graft_scalar_int((int64_t)bound.re);
}

static graft_status check_hardtanh(op_call *c) {
  if (dt_is_integral(c->compute, false)) {
    cut_bound(c, ARG_hardtanh_min_val);
    cut_bound(c, ARG_hardtanh_max_val);
  }
  const in_hardtanh in = in_hardtanh_of(c->args);
  graft_scalar low = in.min_val, high = in.max_val;
  bool negative = dt_scalar_value(&low).re <= -1 || dt_scalar_value(&high).re <= -1;
  if (!dt_is_unsigned(c->compute) || !negative) return GRAFT_OK;
  return op_error(c, "min_val and max_val must not be negative for an unsigned dtype (%s)", op_show_tensors(c));
}

static graft_status check_threshold(op_call *c) {
  graft_status status = op_number_fits(c, ARG_threshold_threshold, c->compute);
  return status ? status : op_number_fits(c, ARG_threshold_value, c->compute);
}

static graft_status check_softshrink(op_call *c) {
  graft_scalar lambda = op_scalar(c, ARG_softshrink_lambd);
  long double width = dt_scalar_value(&lambda).re;
  if (!(width >= 0)) return op_error(c, "lambd is %Lg; expected 0 or more", width);
  return isinf(width) ? op_error(c, "lambd is %Lg; expected a finite number", width) : GRAFT_OK;
}

/* From the result of an in-place forward the sign of its input must be seen. */
static graft_status check_slope(op_call *c, bool is_result, int slope) {
  graft_scalar number = op_scalar(c, slope);
  if (!is_result || dt_scalar_value(&number).re >= 0) return GRAFT_OK;
  return op_error(c, "a negative %s loses the sign that the gradient is found by; call the op out of place",
                  c->schema->args[slope].name);
}
static graft_status check_elu_backward(op_call *c) {
  return check_slope(c, op_bool(c, ARG_elu_backward_is_result), ARG_elu_backward_alpha);
}
static graft_status check_leaky_relu_backward(op_call *c) {
  return check_slope(c, op_bool(c, ARG_leaky_relu_backward_self_is_result), ARG_leaky_relu_backward_negative_slope);
}

static graft_status check_second(op_call *c) {
  const graft_tensor *second = op_tensor(c, Y);
  return second && dt_is_float(second->dtype) ? GRAFT_OK : op_refuse(c, Y, "a floating dtype");
}

/* --- gradients: by the backward ops as PyTorch does it, and of these. Where PyTorch has no formula for a backward op
 * (mish, hardsigmoid), it is the derivative --- */

static double real_of(graft_scalar x) {
  return (double)dt_scalar_value(&x).re;
}

GRADIENT(relu, fx_threshold_backward(s, g, y, graft_scalar_int(0)))
GRADIENT(gelu, fx_gelu_backward(s, g, x, in_gelu_of(args).approximate))
GRADIENT(silu, fx_silu_backward(s, g, fx_conj(s, x)))
GRADIENT(sigmoid, fx_sigmoid_backward(s, g, y))
GRADIENT(hardtanh, fx_hardtanh_backward(s, g, x, in_hardtanh_of(args).min_val, in_hardtanh_of(args).max_val))
GRADIENT(leaky_relu, fx_leaky_relu_backward(s, g, x, in_leaky_relu_of(args).negative_slope, false))
GRADIENT(hardswish, fx_hardswish_backward(s, g, x))
GRADIENT(hardsigmoid, fx_hardsigmoid_backward(s, g, x))
GRADIENT(softplus, fx_softplus_backward(s, g, x, in_softplus_of(args).beta, in_softplus_of(args).threshold))
GRADIENT(mish, fx_mish_backward(s, g, x))
GRADIENT(threshold, fx_threshold_backward(s, g, x, in_threshold_of(args).threshold))
GRADIENT(hardshrink, fx_hardshrink_backward(s, g, x, in_hardshrink_of(args).lambd))
GRADIENT(softshrink, fx_softshrink_backward(s, g, x, in_softshrink_of(args).lambd))

static graft_tensor *gradient_elu(fx *s, graft_tensor *g, graft_tensor *x, graft_tensor *y, const graft_value *args) {
  (void)y;
  const in_elu in = in_elu_of(args);
  return fx_elu_backward(s, g, in.alpha, in.scale, in.input_scale, false, x);
}

static graft_tensor *gradient_celu(fx *s, graft_tensor *g, graft_tensor *x, graft_tensor *y, const graft_value *args) {
  (void)y;
  graft_scalar alpha = in_celu_of(args).alpha;
  return fx_elu_backward(s, g, alpha, graft_scalar_int(1), graft_scalar_float(1 / real_of(alpha)), false, x);
}

static void vjp_elu_backward(op_vjp *v) {
  const in_elu_backward in = in_elu_backward_of(v->args);
  fx *s = v->s;
  graft_tensor *at = in.self_or_result;
  if (vjp_needs(v, X)) v->results[X] = pw_again(v);
  if (!vjp_needs(v, ARG_elu_backward_self_or_result)) return;
  double scale = real_of(in.input_scale);
  graft_tensor *bend = fx_muls(s, fx_mul(s, v->g[OUT], in.grad_output), scale);
  if (!in.is_result) {
    bend = fx_mul(s, fx_muls(s, bend, scale * real_of(in.alpha) * real_of(in.scale)), fx_exp(s, fx_muls(s, at, scale)));
  }
  v->results[ARG_elu_backward_self_or_result] = fx_only_where(s, fx_is(s, GRAFT_OP_LT_TENSOR, at, 0), bend);
}

static void vjp_prelu(op_vjp *v) {
  const in_prelu_kernel in = in_prelu_kernel_of(v->args);
  graft_tensor *of_self, *of_weight;
  fx_prelu_kernel_backward(v->s, v->g[OUT], in.self, in.weight, &of_self, &of_weight);
  if (vjp_needs(v, X)) v->results[X] = of_self;
  if (vjp_needs(v, Y)) v->results[Y] = of_weight;
}

/* The cotangents of both steps, multiplied: what the second derivative of an activation is multiplied by. */
static graft_tensor *both(op_vjp *v) {
  return fx_mul(v->s, v->g[OUT], vjp_arg(v, X));
}
/* y (1 - y) */
static graft_tensor *sigmoid_slope(fx *s, graft_tensor *y) {
  return fx_mul(s, y, fx_adds(s, fx_neg(s, y), 1));
}

/* g y (1 - y) */
static void vjp_sigmoid_backward(op_vjp *v) {
  const in_sigmoid_backward in = in_sigmoid_backward_of(v->args);
  fx *s = v->s;
  graft_tensor *g = v->g[OUT], *y = in.output;
  if (vjp_needs(v, X)) v->results[X] = fx_sigmoid_backward(s, g, fx_conj(s, y));
  if (!vjp_needs(v, Y)) return;
  graft_tensor *bend = fx_conj(s, fx_adds(s, fx_muls(s, y, -2), 1));
  v->results[Y] = fx_mul(s, fx_mul(s, fx_conj(s, g), in.grad_output), bend);
}

/* gelu'' = phi(x) (2 - x^2) */
static graft_tensor *gelu_curvature(fx *s, graft_tensor *x) {
  const double one_over_sqrt_2pi = 0.39894228040143267793994605993438187;
  graft_tensor *square = fx_mul(s, x, x);
  graft_tensor *density = fx_muls(s, fx_exp(s, fx_muls(s, square, -0.5)), one_over_sqrt_2pi);
  return fx_mul(s, density, fx_adds(s, fx_neg(s, square), 2));
}

/* 0.5 (1 + tanh(u)) and 0.5 (1 - tanh(u)), by sigmoids so that both tails keep their digits */
static graft_tensor *tanh_share(fx *s, graft_tensor *u) {
  return fx_sigmoid(s, fx_muls(s, u, 2));
}
static graft_tensor *tanh_rest(fx *s, graft_tensor *u) {
  return fx_sigmoid(s, fx_muls(s, u, -2));
}

/* The same for 0.5 x (1 + t), t = tanh(u), u = c (x + k x^3):
 * t' = (1 - t^2) u', and the curvature is t' + 0.5 x (t'' ), t'' = (1 - t^2)(u'' - 2 t u'^2). Of 1 - t^2 no digit may
 * be lost where t is near 1, as x^3 is a factor. */
static graft_tensor *gelu_tanh_curvature(fx *s, graft_tensor *x) {
  const double c = 0.79788456080286535587989211986876373, k = 0.044715;
  graft_tensor *square = fx_mul(s, x, x);
  graft_tensor *u = fx_muls(s, fx_mul(s, x, fx_adds(s, fx_muls(s, square, k), 1)), c);
  graft_tensor *slope = fx_muls(s, fx_adds(s, fx_muls(s, square, 3 * k), 1), c);
  graft_tensor *bend = fx_muls(s, x, 6 * k * c);
  graft_tensor *t = fx_tanh(s, u);
  graft_tensor *rest = fx_muls(s, fx_mul(s, tanh_share(s, u), tanh_rest(s, u)), 4);
  graft_tensor *second = fx_sub(s, bend, fx_muls(s, fx_mul(s, t, fx_mul(s, slope, slope)), 2));
  return fx_mul(s, rest, fx_add(s, slope, fx_muls(s, fx_mul(s, x, second), 0.5)));
}

static void vjp_gelu_backward(op_vjp *v) {
  const in_gelu_backward in = in_gelu_backward_of(v->args);
  bool by_tanh = in.approximate && in.approximate[0] == 't';
  if (vjp_needs(v, X)) v->results[X] = pw_again(v);
  if (!vjp_needs(v, Y)) return;
  v->results[Y] = fx_mul(v->s, both(v), (by_tanh ? gelu_tanh_curvature : gelu_curvature)(v->s, in.self));
}

/* silu'' = y (1 - y) (2 + x (1 - 2 y)), y = sigmoid(x) */
static void vjp_silu_backward(op_vjp *v) {
  const in_silu_backward in = in_silu_backward_of(v->args);
  fx *s = v->s;
  if (vjp_needs(v, X)) v->results[X] = fx_silu_backward(s, v->g[OUT], fx_conj(s, in.self));
  if (!vjp_needs(v, Y)) return;
  graft_tensor *y = fx_sigmoid(s, in.self);
  graft_tensor *inner = fx_adds(s, fx_mul(s, in.self, fx_adds(s, fx_muls(s, y, -2), 1)), 2);
  graft_tensor *bend = fx_mul(s, sigmoid_slope(s, y), inner);
  v->results[Y] = fx_mul(s, v->g[OUT], fx_conj(s, fx_mul(s, in.grad_output, bend)));
}

static void vjp_hardswish_backward(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *x = vjp_arg(v, Y);
  if (vjp_needs(v, X)) v->results[X] = pw_again(v);
  if (!vjp_needs(v, Y)) return;
  graft_tensor *above = fx_is(s, GRAFT_OP_GT_TENSOR, x, -3), *below = fx_is(s, GRAFT_OP_LT_TENSOR, x, 3);
  v->results[Y] = fx_only_where(s, fx_logical_and(s, above, below), fx_muls(s, both(v), 1.0 / 3));
}

static void vjp_softplus_backward(op_vjp *v) {
  const in_softplus_backward in = in_softplus_backward_of(v->args);
  fx *s = v->s;
  double beta = real_of(in.beta);
  if (vjp_needs(v, X)) v->results[X] = pw_again(v);
  if (!vjp_needs(v, Y)) return;
  graft_tensor *t = fx_muls(s, in.self, beta);
  graft_tensor *bend = fx_muls(s, fx_mul(s, both(v), sigmoid_slope(s, fx_sigmoid(s, t))), beta);
  v->results[Y] = fx_only_where(s, fx_is(s, GRAFT_OP_LT_TENSOR, t, real_of(in.threshold)), bend);
}

/* The slope is sigmoid(-x); buffer says no more than self. */
static void vjp_log_sigmoid_backward(op_vjp *v) {
  if (vjp_needs(v, X)) v->results[X] = pw_again(v);
  if (!vjp_needs(v, Y)) return;
  v->results[Y] = fx_neg(v->s, fx_mul(v->s, both(v), sigmoid_slope(v->s, fx_sigmoid(v->s, vjp_arg(v, Y)))));
}

/* With t = tanh(softplus) and y = sigmoid, t' = y (1 - t^2): the slope t + x t' has the derivative
 * t' (2 + x (1 - y - 2 t y)). */
static void vjp_mish_backward(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *x = vjp_arg(v, Y);
  if (vjp_needs(v, X)) v->results[X] = pw_again(v);
  if (!vjp_needs(v, Y)) return;
  graft_tensor *y = fx_sigmoid(s, x);
  graft_tensor *t = fx_tanh(s, fx_softplus(s, x, graft_scalar_int(1), graft_scalar_int(20)));
  graft_tensor *slope = fx_mul(s, y, fx_adds(s, fx_neg(s, fx_mul(s, t, t)), 1));
  graft_tensor *rest = fx_adds(s, fx_neg(s, fx_mul(s, y, fx_adds(s, fx_muls(s, t, 2), 1))), 1);
  v->results[Y] = fx_mul(s, both(v), fx_mul(s, slope, fx_adds(s, fx_mul(s, x, rest), 2)));
}

/* --- compositions: the formulas of the kernels --- */

#define GELU_TANH(approximate) (strcmp(approximate, "tanh") == 0)
/* sqrt(2/pi) (x + 0.044715 x^3) */
static graft_tensor *bent(fx *s, graft_tensor *x) {
  return fx_muls(s, fx_add(s, x, fx_muls(s, fx_powi(s, x, 3), 0.044715)), (double)GELU_C);
}
/* Phi(x), by erfc so that the left tail keeps its digits */
static graft_tensor *normal_share(fx *s, graft_tensor *x) {
  return fx_muls(s, fx_erfc(s, fx_muls(s, x, -(double)M_SQRT1_2l)), 0.5);
}

static graft_tensor *compose_gelu(fx *s, const graft_value *v) {
  const in_gelu in = in_gelu_of(v);
  if (!GELU_TANH(in.approximate)) return fx_mul(s, in.self, normal_share(s, in.self));
  return fx_mul(s, in.self, tanh_share(s, bent(s, in.self)));
}

static graft_tensor *compose_gelu_backward(fx *s, const graft_value *v) {
  const in_gelu_backward in = in_gelu_backward_of(v);
  graft_tensor *x = in.self, *square = fx_mul(s, x, x), *share, *slope;
  if (GELU_TANH(in.approximate)) {
    graft_tensor *u = bent(s, x);
    share = tanh_share(s, u);
    /* 0.5 (1 - tanh(u)^2) = 2 share rest, and u' = c (1 + 3 k x^2) */
    slope = fx_mul(s, fx_mul(s, share, tanh_rest(s, u)),
                   fx_adds(s, fx_muls(s, square, 6 * 0.044715 * (double)GELU_C), 2 * (double)GELU_C));
  } else {
    share = normal_share(s, x);
    slope = fx_muls(s, fx_exp(s, fx_muls(s, square, -0.5)), 0.398942280401432677939946059934381868);
  }
  return fx_mul(s, in.grad_output, fx_add(s, share, fx_mul(s, x, slope)));
}

COMPOSE(silu, fx_mul(s, pw_tensor(v, X), fx_sigmoid(s, pw_tensor(v, X))))
COMPOSE(sigmoid_backward,
        fx_mul(s, pw_tensor(v, X), fx_conj(s, fx_mul(s, pw_rest(s, pw_tensor(v, Y)), pw_tensor(v, Y)))))

static graft_tensor *compose_silu_backward(fx *s, const graft_value *v) {
  const in_silu_backward in = in_silu_backward_of(v);
  graft_tensor *open = fx_sigmoid(s, in.self), *bend = fx_adds(s, fx_mul(s, in.self, pw_rest(s, open)), 1);
  return fx_mul(s, in.grad_output, fx_mul(s, open, bend));
}

/* The number as an integer where the tensor is of integers. */
static graft_value number_for(const graft_tensor *t, graft_value number) {
  return dt_is_integral(t->dtype, true) ? fx_int((int64_t)dt_scalar_value(&number.as.scalar).re) : number;
}

static graft_tensor *compose_threshold(fx *s, const graft_value *v) {
  graft_tensor *x = pw_tensor(v, X);
  graft_tensor *low = pw_op(s, GRAFT_OP_LE_TENSOR, x, number_for(x, v[ARG_threshold_threshold]));
  return fx_where(s, low, number_for(x, v[ARG_threshold_value]), fx_tensor(x));
}

static graft_tensor *compose_threshold_backward(fx *s, const graft_value *v) {
  graft_tensor *y = pw_tensor(v, Y);
  return fx_not_where(s, pw_op(s, GRAFT_OP_LE_TENSOR, y, number_for(y, v[ARG_threshold_backward_threshold])),
                      pw_tensor(v, X));
}

static graft_tensor *compose_elu(fx *s, const graft_value *v) {
  const in_elu in = in_elu_of(v);
  graft_tensor *low = fx_scale(s, fx_expm1(s, fx_scale(s, in.self, in.input_scale)), in.alpha);
  return fx_scale(s, fx_where(s, fx_is(s, GRAFT_OP_LE_TENSOR, in.self, 0), fx_tensor(low), v[X]), in.scale);
}

static graft_tensor *compose_celu(fx *s, const graft_value *v) {
  graft_tensor *x = pw_tensor(v, X), *low = fx_expm1(s, pw_over(s, x, v[ARG_celu_alpha]));
  return fx_where(s, fx_is(s, GRAFT_OP_LE_TENSOR, x, 0), fx_tensor(pw_times(s, low, v[ARG_celu_alpha])), v[X]);
}

static graft_tensor *compose_elu_backward(fx *s, const graft_value *v) {
  const in_elu_backward in = in_elu_backward_of(v);
  graft_tensor *y = in.self_or_result, *g = in.grad_output;
  double deepest = real_of(in.alpha) * real_of(in.scale);
  graft_tensor *slope =
      in.is_result ? fx_adds(s, y, deepest) : fx_muls(s, fx_exp(s, fx_scale(s, y, in.input_scale)), deepest);
  graft_tensor *low = fx_mul(s, fx_scale(s, g, in.input_scale), slope);
  return fx_where(s, fx_is(s, GRAFT_OP_LE_TENSOR, y, 0), fx_tensor(low), fx_tensor(fx_scale(s, g, in.scale)));
}

COMPOSE(hardtanh, pw_at_most(s, pw_at_least(s, pw_tensor(v, X), number_for(pw_tensor(v, X), v[ARG_hardtanh_min_val])),
                             number_for(pw_tensor(v, X), v[ARG_hardtanh_max_val])))
COMPOSE(hardtanh_backward,
        fx_not_where(
            s,
            fx_bitwise_or_Tensor(s, pw_op(s, GRAFT_OP_LE_TENSOR, pw_tensor(v, Y), v[ARG_hardtanh_backward_min_val]),
                                 pw_op(s, GRAFT_OP_GE_TENSOR, pw_tensor(v, Y), v[ARG_hardtanh_backward_max_val])),
            pw_tensor(v, X)))
COMPOSE(leaky_relu, fx_where(s, fx_is(s, GRAFT_OP_GT_TENSOR, pw_tensor(v, X), 0), v[X],
                             fx_tensor(pw_times(s, pw_tensor(v, X), v[ARG_leaky_relu_negative_slope]))))
COMPOSE(leaky_relu_backward,
        fx_where(s, fx_is(s, GRAFT_OP_GT_TENSOR, pw_tensor(v, Y), 0), v[X],
                 fx_tensor(pw_times(s, pw_tensor(v, X), v[ARG_leaky_relu_backward_negative_slope]))))
COMPOSE(prelu, fx_where(s, fx_is(s, GRAFT_OP_GT_TENSOR, pw_tensor(v, X), 0), v[X],
                        fx_tensor(fx_mul(s, pw_tensor(v, X), pw_tensor(v, Y)))))

/* x + 3 between 0 and 6 */
static graft_tensor *hard_gate(fx *s, graft_tensor *x) {
  return pw_at_most(s, pw_at_least(s, fx_adds(s, x, 3), fx_float(0)), fx_float(6));
}
COMPOSE(hardswish, pw_over(s, fx_mul(s, pw_tensor(v, X), hard_gate(s, pw_tensor(v, X))), fx_float(6)))
COMPOSE(hardsigmoid, pw_over(s, hard_gate(s, pw_tensor(v, X)), fx_float(6)))

static graft_tensor *compose_hardswish_backward(fx *s, const graft_value *v) {
  const in_hardswish_backward in = in_hardswish_backward_of(v);
  graft_tensor *x = in.self, *g = in.grad_output;
  graft_tensor *between = fx_mul(s, g, fx_adds(s, pw_over(s, x, fx_float(3)), 0.5));
  graft_tensor *inner = fx_where(s, fx_is(s, GRAFT_OP_LT_TENSOR, x, 3), fx_tensor(between), fx_tensor(g));
  return fx_not_where(s, fx_is(s, GRAFT_OP_LE_TENSOR, x, -3), inner);
}

COMPOSE(hardsigmoid_backward, fx_only_where(s,
                                            fx_bitwise_and_Tensor(s, fx_is(s, GRAFT_OP_GT_TENSOR, pw_tensor(v, Y), -3),
                                                                  fx_is(s, GRAFT_OP_LT_TENSOR, pw_tensor(v, Y), 3)),
                                            pw_over(s, pw_tensor(v, X), fx_float(6))))

static graft_tensor *compose_softplus(fx *s, const graft_value *v) {
  graft_tensor *x = pw_tensor(v, X), *scaled = pw_times(s, x, v[ARG_softplus_beta]);
  graft_tensor *low = pw_over(s, fx_log1p(s, fx_exp(s, scaled)), v[ARG_softplus_beta]);
  return fx_where(s, pw_op(s, GRAFT_OP_GT_TENSOR, scaled, v[ARG_softplus_threshold]), v[X], fx_tensor(low));
}

static graft_tensor *compose_softplus_backward(fx *s, const graft_value *v) {
  graft_tensor *g = pw_tensor(v, X), *scaled = pw_times(s, pw_tensor(v, Y), v[ARG_softplus_backward_beta]);
  return fx_where(s, pw_op(s, GRAFT_OP_GT_TENSOR, scaled, v[ARG_softplus_backward_threshold]), v[X],
                  fx_tensor(fx_mul(s, g, fx_sigmoid(s, scaled))));
}

/* 1 - b / (1 + b) as 1 / (1 + b), in which nothing cancels */
static graft_tensor *compose_log_sigmoid_backward(fx *s, const graft_value *v) {
  const in_log_sigmoid_backward in = in_log_sigmoid_backward_of(v);
  graft_tensor *above = fx_where(s, fx_is(s, GRAFT_OP_LT_TENSOR, in.self, 0), fx_float(1), fx_tensor(in.buffer));
  return fx_mul(s, in.grad_output, fx_div(s, above, fx_adds(s, in.buffer, 1)));
}

static graft_tensor *composed_mish_gate(fx *s, graft_tensor *x) {
  graft_tensor *low = fx_log1p(s, fx_exp(s, x));
  return fx_tanh(s, fx_where(s, fx_is(s, GRAFT_OP_GT_TENSOR, x, 20), fx_tensor(x), fx_tensor(low)));
}
COMPOSE(mish, fx_mul(s, pw_tensor(v, X), composed_mish_gate(s, pw_tensor(v, X))))

static graft_tensor *compose_mish_backward(fx *s, const graft_value *v) {
  const in_mish_backward in = in_mish_backward_of(v);
  graft_tensor *gate = composed_mish_gate(s, in.self), *rest = pw_rest(s, fx_mul(s, gate, gate));
  graft_tensor *slope = fx_mul(s, fx_mul(s, in.self, fx_sigmoid(s, in.self)), rest);
  return fx_mul(s, in.grad_output, fx_add(s, gate, slope));
}

/* -lambda <= x <= lambda */
static graft_tensor *is_small(fx *s, graft_tensor *x, graft_scalar lambda) {
  double width = real_of(lambda);
  return fx_bitwise_and_Tensor(s, fx_is(s, GRAFT_OP_GE_TENSOR, x, -width), fx_is(s, GRAFT_OP_LE_TENSOR, x, width));
}
COMPOSE(hardshrink, fx_not_where(s, is_small(s, pw_tensor(v, X), in_hardshrink_of(v).lambd), pw_tensor(v, X)))
COMPOSE(shrink_backward,
        fx_not_where(s, is_small(s, pw_tensor(v, Y), in_hardshrink_backward_of(v).lambd), pw_tensor(v, X)))

static graft_tensor *compose_softshrink(fx *s, const graft_value *v) {
  graft_tensor *x = pw_tensor(v, X);
  double width = real_of(in_softshrink_of(v).lambd);
  graft_tensor *low = fx_where(s, fx_is(s, GRAFT_OP_LT_TENSOR, x, -width), fx_tensor(fx_adds(s, x, width)),
                               fx_tensor(fx_muls(s, x, 0)));
  return fx_where(s, fx_is(s, GRAFT_OP_GT_TENSOR, x, width), fx_tensor(fx_adds(s, x, -width)), fx_tensor(low));
}

static const op_def defs[] = {
    PW_UNARY(RELU, 0, PW_SAME, PW_NUMBERS, RI(relu), relu, SAVE_OUT),
    PW_UNARY(SIGMOID, 0, PW_FLOAT, 0, RC(sigmoid), sigmoid, SAVE_OUT),
    PW_COMPOSED(SILU, "b", 0, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .refuse = PW_NO_BOOL | PW_NO_INT, RC(silu),
                .gradient = gradient_silu, .compose = compose_silu),
    PW_COMPOSED(GELU, "b", OP_EXACT_OUT, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .refuse = PW_FLOATS, RO(gelu),
                .gradient = gradient_gelu, .compose = compose_gelu),
    PW_COMPOSED(ELU, "b", 0, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .refuse = PW_FLOATS, RO(elu),
                .gradient = gradient_elu, .compose = compose_elu),
    PW_COMPOSED(CELU, "b", 0, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .refuse = PW_FLOATS, .check = check_celu,
                RO(celu), .gradient = gradient_celu, .compose = compose_celu),
    PW_COMPOSED(HARDTANH, "b", 0, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .refuse = PW_NUMBERS | PW_LIKE | PW_BOUNDS,
                .check = check_hardtanh, RI(hardtanh), .gradient = gradient_hardtanh, .compose = compose_hardtanh),
    PW_COMPOSED(LEAKY_RELU, "b", 0, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .refuse = PW_FLOATS, RO(leaky_relu),
                .gradient = gradient_leaky_relu, .compose = compose_leaky_relu),
    PW_COMPOSED(HARDSWISH, "b", 0, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .refuse = PW_FLOATS, RO(hardswish),
                .gradient = gradient_hardswish, .compose = compose_hardswish),
    PW_COMPOSED(HARDSIGMOID, "b", 0, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .refuse = PW_FLOATS, RO(hardsigmoid),
                .gradient = gradient_hardsigmoid, .compose = compose_hardsigmoid),
    PW_COMPOSED(SOFTPLUS, "b", OP_EXACT_OUT, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .refuse = PW_FLOATS, RO(softplus),
                .gradient = gradient_softplus, .compose = compose_softplus),
    PW_COMPOSED(MISH, "b", 0, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .refuse = PW_FLOATS, RO(mish),
                .gradient = gradient_mish, .compose = compose_mish),
    PW_COMPOSED(THRESHOLD, "b", 0, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .refuse = PW_NUMBERS,
                .check = check_threshold, RI(threshold), .gradient = gradient_threshold, .compose = compose_threshold),
    PW_COMPOSED(HARDSHRINK, "b", OP_EXACT_OUT, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .refuse = PW_FLOATS | PW_BOUNDS,
                RO(hardshrink), .gradient = gradient_hardshrink, .compose = compose_hardshrink),
    PW_COMPOSED(SOFTSHRINK, "b", OP_EXACT_OUT, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .refuse = PW_FLOATS | PW_BOUNDS,
                .check = check_softshrink, RO(softshrink), .gradient = gradient_softshrink,
                .compose = compose_softshrink),
    PW_COMPOSED(PRELU_KERNEL, "bb", 0, vjp_prelu, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_FLOATS | PW_LIKE,
                .check = pw_check_one_dtype, RO(prelu), .compose = compose_prelu),
    PW_COMPOSED(SIGMOID_BACKWARD, "bb", 0, vjp_sigmoid_backward, SAVE_X | SAVE_Y, .promo = PW_SAME,
                .refuse = PW_NO_BOOL | PW_NO_INT, RC(sigmoid_backward), .compose = compose_sigmoid_backward),
    PW_COMPOSED(SILU_BACKWARD, "bb", 0, vjp_silu_backward, SAVE_X | SAVE_Y, .promo = PW_SAME,
                .refuse = PW_NO_BOOL | PW_NO_INT, RC(silu_backward), .compose = compose_silu_backward),
    PW_COMPOSED(GELU_BACKWARD, "bb", 0, vjp_gelu_backward, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_FLOATS,
                RO(gelu_backward), .compose = compose_gelu_backward),
    PW_COMPOSED(THRESHOLD_BACKWARD, "bb", OP_SECOND_FIRST, pw_vjp_linear, SAVE_Y, .promo = PW_SAME,
                .refuse = PW_NUMBERS, RI(threshold_backward), .compose = compose_threshold_backward),
    PW_COMPOSED(ELU_BACKWARD, "bb", 0, vjp_elu_backward,
                OP_SAVE_ARG(elu_backward, grad_output) | OP_SAVE_ARG(elu_backward, self_or_result), .promo = PW_SAME,
                .refuse = PW_FLOATS, .check = check_elu_backward, RO(elu_backward), .compose = compose_elu_backward),
    PW_COMPOSED(HARDTANH_BACKWARD, "bb", 0, pw_vjp_linear, SAVE_Y, .promo = PW_SAME, .refuse = PW_FLOATS,
                RO(hardtanh_backward), .compose = compose_hardtanh_backward),
    PW_COMPOSED(LEAKY_RELU_BACKWARD, "bb", OP_SECOND_FIRST, pw_vjp_linear, SAVE_Y, .promo = PW_SAME,
                .refuse = PW_FLOATS, .check = check_leaky_relu_backward, RO(leaky_relu_backward),
                .compose = compose_leaky_relu_backward),
    PW_COMPOSED(HARDSWISH_BACKWARD, "bb", 0, vjp_hardswish_backward, SAVE_X | SAVE_Y, .promo = PW_SAME,
                .refuse = PW_FLOATS, RO(hardswish_backward), .compose = compose_hardswish_backward),
    PW_COMPOSED(HARDSIGMOID_BACKWARD, "bb", 0, pw_vjp_linear, SAVE_Y, .promo = PW_SAME, .refuse = PW_FLOATS,
                RO(hardsigmoid_backward), .compose = compose_hardsigmoid_backward),
    PW_COMPOSED(SOFTPLUS_BACKWARD, "bb", 0, vjp_softplus_backward, SAVE_X | SAVE_Y, .promo = PW_SAME,
                .refuse = PW_FLOATS, RO(softplus_backward), .compose = compose_softplus_backward),
    PW_COMPOSED(LOG_SIGMOID_BACKWARD, "bbb", OP_SECOND_FIRST, vjp_log_sigmoid_backward, SAVE_X | SAVE_Y | SAVE_Z,
                .promo = PW_SAME, .refuse = PW_FLOATS | PW_LIKE, RO(log_sigmoid_backward),
                .compose = compose_log_sigmoid_backward),
    PW_COMPOSED(MISH_BACKWARD, "bb", 0, vjp_mish_backward, SAVE_X | SAVE_Y, .promo = PW_SECOND, .refuse = PW_FLOATS,
                .check = check_second, RO(mish_backward), .compose = compose_mish_backward),
    PW_COMPOSED(HARDSHRINK_BACKWARD, "bb", 0, pw_vjp_linear, SAVE_Y, .promo = PW_SAME, .refuse = PW_FLOATS,
                RO(shrink_backward), .compose = compose_shrink_backward),
    PW_COMPOSED(SOFTSHRINK_BACKWARD, "bb", 0, pw_vjp_linear, SAVE_Y, .promo = PW_SAME, .refuse = PW_FLOATS,
                RO(shrink_backward), .compose = compose_shrink_backward),
};
OP_TABLE(pointwise_activations, defs)
