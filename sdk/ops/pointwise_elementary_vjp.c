/* Gradients of elementary functions, of remainders, and of bounds and weights that are tensors. */
#include "ops/pointwise_vjp.h"

#define LN2  0.69314718055994530941723212145817657
#define LN10 2.3025850929940456840179914546843642

/* g times the conjugate of a slope, and over it */
static graft_tensor *by_slope(op_vjp *v, graft_tensor *slope) {
  return fx_mul(S, G, fx_conj(S, slope));
}
static graft_tensor *over_slope(op_vjp *v, graft_tensor *slope) {
  return fx_div(S, G, fx_conj(S, slope));
}
/* x x sign + by */
static graft_tensor *square_and(op_vjp *v, double sign, double by) {
  return fx_adds(S, fx_muls(S, fx_mul(S, X, X), sign), by);
}

VJP(acos) {
  SELF fx_neg(S, by_slope(v, fx_rsqrt(S, square_and(v, -1, 1))));
}
VJP(asin) {
  SELF by_slope(v, fx_rsqrt(S, square_and(v, -1, 1)));
}
VJP(asinh) {
  SELF by_slope(v, fx_rsqrt(S, square_and(v, 1, 1)));
}
VJP(atan) {
  SELF over_slope(v, square_and(v, 1, 1));
}
VJP(atanh) {
  SELF over_slope(v, square_and(v, -1, 1));
}
VJP(cosh) {
  SELF by_slope(v, fx_sinh(S, X));
}
VJP(sinh) {
  SELF by_slope(v, fx_cosh(S, X));
}
VJP(tan) {
  SELF by_slope(v, fx_adds(S, fx_mul(S, OUT, OUT), 1));
}
VJP(exp2) {
  SELF by_slope(v, fx_muls(S, OUT, LN2));
}
VJP(expm1) {
  SELF by_slope(v, fx_adds(S, OUT, 1));
}
VJP(log1p) {
  SELF over_slope(v, fx_adds(S, X, 1));
}
VJP(log2) {
  SELF over_slope(v, fx_muls(S, X, LN2));
}
VJP(log10) {
  SELF over_slope(v, fx_muls(S, X, LN10));
}

/* Of complex numbers the branch cuts of sqrt(x - 1) sqrt(x + 1) are those of acosh, of sqrt(x x - 1) they are not. */
VJP(acosh) {
  if (!vjp_needs(v, 0)) return;
  graft_tensor *left = fx_adds(S, X, -1), *right = fx_adds(S, X, 1);
  bool real = !dt_is_complex(OUT->dtype);
  graft_tensor *slope = real ? fx_rsqrt(S, fx_mul(S, left, right)) : fx_mul(S, fx_rsqrt(S, left), fx_rsqrt(S, right));
  v->results[0] = by_slope(v, slope);
}

VJP(erfc) {
  const double two_over_sqrt_pi = 1.1283791670955125738961589031215452;
  SELF fx_muls(S, fx_mul(S, G, fx_exp(S, fx_neg(S, fx_mul(S, X, X)))), -two_over_sqrt_pi);
}

/* (y, x) to angle: x / (x x + y y), -y / (x x + y y) */
VJP(atan2) {
  graft_value y = vjp_value(v, 0), x = vjp_value(v, 1);
  graft_tensor *size = fx_add(S, fx_binary(S, GRAFT_OP_MUL_TENSOR, y, y), fx_binary(S, GRAFT_OP_MUL_TENSOR, x, x));
  graft_tensor *share = fx_div(S, G, size);
  SELF times(v, share, x);
  OTHER fx_neg(S, times(v, share, y));
}

VJP(hypot) {
  graft_tensor *share = fx_div(S, G, OUT);
  SELF times(v, share, vjp_value(v, 0));
  OTHER times(v, share, vjp_value(v, 1));
}

/* The ratio of result and self is the change of sign; at 0 there is none. */
VJP(copysign) {
  if (vjp_needs(v, 0)) {
    graft_tensor *zero = compare(v, GRAFT_OP_EQ_TENSOR, vjp_value(v, 0), number(0));
    v->results[0] = pick(v, zero, number(0), fx_tensor(fx_mul(S, G, over(v, OUT, vjp_value(v, 0)))));
  }
  OTHER fx_zeros_like(S, G);
}

/* Complex x / |x| turns with x: what of g is along the result does not count. */
VJP(sgn) {
  if (!vjp_needs(v, 0)) return;
  if (!dt_is_complex(X->dtype)) {
    v->results[0] = fx_zeros_like(S, G);
    return;
  }
  graft_tensor *size = fx_abs(S, X), *turned = fx_contiguous(S, fx_mul(S, G, fx_conj(S, OUT)));
  graft_tensor *along = fx_mul(S, OUT, fx_select_int(S, fx_view_as_real(S, turned), -1, 0));
  graft_tensor *zero = compare(v, GRAFT_OP_EQ_TENSOR, fx_tensor(size), number(0));
  v->results[0] = pick(v, zero, number(0), fx_tensor(fx_div(S, fx_sub(S, G, along), size)));
}

VJP(remainder) {
  SELF G;
  if (!vjp_needs(v, 1)) return;
  graft_tensor *whole;
  graft_value mode = {GRAFT_VALUE_STR, 0, {.str = "floor"}};
  fx_call(S, GRAFT_OP_DIV_TENSOR_MODE, (graft_value[]){vjp_value(v, 0), vjp_value(v, 1), mode}, 3, &whole, 1);
  v->results[1] = fx_neg(S, fx_mul(S, G, whole));
}

/* g where one value stands in this relation to another, else 0 */
static graft_tensor *where(op_vjp *v, graft_tensor *g, uint32_t relation, graft_value a, graft_value b) {
  return pick(v, compare(v, relation, a, b), fx_tensor(g), number(0));
}

VJP(clamp_min) {
  graft_value x = vjp_value(v, 0), low = vjp_value(v, 1);
  SELF where(v, G, GRAFT_OP_GE_TENSOR, x, low);
  if (v->args[1].kind == GRAFT_VALUE_TENSOR) OTHER where(v, G, GRAFT_OP_LT_TENSOR, x, low);
}

/* Where the bounds cross, the upper one is the result. */
VJP(clamp_tensor) {
  graft_value x = vjp_value(v, 0), low = vjp_value(v, 1), high = vjp_value(v, 2);
  bool has_low = low.kind != GRAFT_VALUE_NONE, has_high = high.kind != GRAFT_VALUE_NONE;
  if (vjp_needs(v, 0)) {
    graft_tensor *g = has_low ? where(v, G, GRAFT_OP_GE_TENSOR, x, low) : G;
    v->results[0] = has_high ? where(v, g, GRAFT_OP_LE_TENSOR, x, high) : g;
  }
  if (has_low && vjp_needs(v, 1)) {
    graft_tensor *g = where(v, G, GRAFT_OP_LT_TENSOR, x, low);
    v->results[1] = has_high ? where(v, g, GRAFT_OP_LT_TENSOR, low, high) : g;
  }
  if (has_high && vjp_needs(v, 2)) {
    graft_tensor *above = compare(v, GRAFT_OP_GT_TENSOR, x, high);
    if (has_low) above = fx_logical_or(S, above, compare(v, GRAFT_OP_LT_TENSOR, high, low));
    v->results[2] = pick(v, above, fx_tensor(G), number(0));
  }
}

/* a + w (b - a) */
VJP(lerp_tensor) {
  graft_value w = conj_value(v, 2);
  SELF fx_sub(S, G, times(v, G, w));
  OTHER times(v, G, w);
  THIRD times(v, G, fx_tensor(fx_binary(S, GRAFT_OP_SUB_TENSOR, conj_value(v, 1), conj_value(v, 0))));
}
