/* Gradients of special functions and of the parts of complex numbers. */
#include "ops/pointwise_vjp.h"

#define PI  3.1415926535897932384626433832795029
#define LN2 0.69314718055994530941723212145817657

/* Re and Im of a complex tensor. */
static graft_tensor *part(op_vjp *v, graft_tensor *z, int64_t which) {
  return fx_select_int(S, fx_view_as_real(S, fx_contiguous(S, z)), -1, which);
}

/* An optional float argument. */
static const double *float_arg(op_vjp *v, int arg) {
  return v->args[arg].kind == GRAFT_VALUE_FLOAT ? &v->args[arg].as.f : NULL;
}

static graft_tensor *is_zero(op_vjp *v, graft_tensor *t) {
  return compare(v, GRAFT_OP_EQ_TENSOR, fx_tensor(t), number(0));
}

VJP(frac) {
  SELF G;
}
VJP(lgamma) {
  SELF fx_mul(S, G, fx_digamma(S, X));
}
VJP(digamma) {
  SELF fx_mul(S, G, fx_polygamma(S, 1, X));
}
VJP(polygamma) {
  OTHER fx_mul(S, G, fx_polygamma(S, v->args[0].as.i + 1, Y));
}

/* sqrt(pi)/2 exp(y y) */
VJP(erfinv) {
  const double half_sqrt_pi = 0.88622692545275801364908374167057259;
  SELF fx_mul(S, G, fx_muls(S, fx_exp(S, fx_mul(S, OUT, OUT)), half_sqrt_pi));
}

/* A number that is not finite does not give 0 less itself. */
VJP(nan_to_num) {
  SELF pick(v, is_zero(v, fx_sub(S, X, X)), fx_tensor(G), number(0));
}

VJP(xlogy) {
  if (vjp_needs(v, 0)) {
    graft_tensor *slope = fx_binary(S, GRAFT_OP_XLOGY_TENSOR, fx_tensor(G), vjp_value(v, 1));
    graft_tensor *left = compare(v, GRAFT_OP_EQ_TENSOR, vjp_value(v, 0), number(0));
    graft_tensor *right = compare(v, GRAFT_OP_LE_TENSOR, vjp_value(v, 1), number(0));
    v->results[0] = pick(v, fx_logical_and(S, left, right), number(0), fx_tensor(slope));
  }
  OTHER over(v, times(v, G, vjp_value(v, 0)), vjp_value(v, 1));
}

VJP(logit) {
  SELF fx_logit_backward(S, G, X, float_arg(v, 1));
}

/* d/dx of 1 / (x (1 - x)) is (2 x - 1) / (x (1 - x))^2. */
VJP(logit_backward) {
  const double *eps = float_arg(v, 2);
  SELF fx_logit_backward(S, G, Y, eps);
  if (!vjp_needs(v, 1)) return;
  graft_tensor *product = fx_mul(S, Y, fx_adds(S, fx_neg(S, Y), 1));
  graft_tensor *bend = fx_div(S, fx_adds(S, fx_muls(S, Y, 2), -1), fx_mul(S, product, product));
  bend = fx_mul(S, fx_mul(S, G, X), bend);
  if (eps) {
    graft_tensor *above = compare(v, GRAFT_OP_GE_TENSOR, fx_tensor(Y), number(*eps));
    graft_tensor *below = compare(v, GRAFT_OP_LE_TENSOR, fx_tensor(Y), number(1 - *eps));
    bend = pick(v, fx_logical_and(S, above, below), fx_tensor(bend), number(0));
  }
  v->results[1] = bend;
}

/* g / (1 + exp((b - a) k)): the share of a in the sum */
static graft_tensor *share(op_vjp *v, int a, int b, double k) {
  graft_tensor *away = fx_muls(S, fx_binary(S, GRAFT_OP_SUB_TENSOR, conj_value(v, b), conj_value(v, a)), k);
  return fx_div(S, G, fx_adds(S, fx_exp(S, away), 1));
}
VJP(logaddexp) {
  SELF share(v, 0, 1, 1);
  OTHER share(v, 1, 0, 1);
}
VJP(logaddexp2) {
  SELF share(v, 0, 1, LN2);
  OTHER share(v, 1, 0, LN2);
}

/* (cos(pi x) - sinc(x)) / x, which near 0 does not overflow; 0 at 0 */
VJP(sinc) {
  if (!vjp_needs(v, 0)) return;
  graft_tensor *slope = fx_div(S, fx_sub(S, fx_cos(S, fx_muls(S, X, PI)), OUT), X);
  v->results[0] = pick(v, is_zero(v, X), number(0), fx_tensor(fx_mul(S, G, fx_conj(S, slope))));
}

/* --- parts --- */

VJP(complex) {
  SELF part(v, G, 0);
  OTHER part(v, G, 1);
}

/* r (cos t + i sin t) */
VJP(polar) {
  graft_tensor *re = part(v, G, 0), *im = part(v, G, 1), *cosine = fx_cos(S, Y), *sine = fx_sin(S, Y);
  SELF fx_add(S, fx_mul(S, re, cosine), fx_mul(S, im, sine));
  OTHER fx_mul(S, X, fx_sub(S, fx_mul(S, im, cosine), fx_mul(S, re, sine)));
}

/* i z / |z|^2, 0 at 0; of real numbers the angle is constant */
VJP(angle) {
  if (!vjp_needs(v, 0)) return;
  if (!dt_is_complex(X->dtype)) {
    v->results[0] = fx_zeros_like(S, G);
    return;
  }
  graft_tensor *re = part(v, X, 0), *im = part(v, X, 1);
  graft_tensor *size = fx_add(S, fx_mul(S, re, re), fx_mul(S, im, im));
  graft_tensor *by = pick(v, is_zero(v, size), number(0), fx_tensor(fx_div(S, G, size)));
  v->results[0] = fx_complex(S, fx_neg(S, fx_mul(S, im, by)), fx_mul(S, re, by));
}
