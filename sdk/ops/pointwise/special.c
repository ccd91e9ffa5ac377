/* Special functions, parts of complex numbers, and what becomes of NaN and infinities: reference kernels and gradients.
 */
#include <float.h>

#include "ops/pointwise/gradients.h"
#include "ops/pointwise/kernels.h"

#define PI 3.141592653589793238462643383279502884L

REAL(isneginf, x[0] == -INFINITY)
REAL(isposinf, x[0] == INFINITY)
REAL(frac, x[0] - truncl(x[0]))
REAL(heaviside, x[0] == 0 ? x[1] : x[0] > 0)
REAL(xlogy, isnan(x[1]) ? x[1] : x[0] == 0 ? 0 : x[0] * logl(x[1]))
REAL(sinc, x[0] == 0 ? 1 : sinl(PI * x[0]) / (PI * x[0]))
REAL(angle, isnan(x[0]) ? x[0] : x[0] < 0 ? PI : 0)
INTEGER(isneginf, 0 * x[0])
INTEGER(isposinf, 0 * x[0])
INTEGER(heaviside, x[0] == 0 ? x[1] : c->is_u64 || x[0] > 0)
INTEGER(nan_to_num, x[0])
COMPLEX(sinc, x == 0 ? 1 : csinl(PI * x) / (PI * x))

/* --- parts --- */

static dt_value c_complex(const dt_value *x, pw_context *c) {
  (void)c;
  return (dt_value){x[0].re, x[1].re};
}
static dt_value c_polar(const dt_value *x, pw_context *c) {
  (void)c;
  return (dt_value){x[0].re * cosl(x[1].re), x[0].re * sinl(x[1].re)};
}
static dt_value c_angle(const dt_value *x, pw_context *c) {
  (void)c;
  return (dt_value){atan2l(x[0].im, x[0].re), 0};
}

/* --- NaN and infinities --- */

static long double largest(graft_dtype dtype) {
  switch (dt_real(dtype)) {
    case GRAFT_F16: return 65504;
    case GRAFT_BF16: return 0x1.fep127L;
    case GRAFT_F32: return FLT_MAX;
    case GRAFT_F64: return DBL_MAX;
    default: return LDBL_MAX;
  }
}

/* P: what takes the place of NaN, infinity and -infinity */
static long double made_finite(long double x, const pw_context *c) {
  if (isnan(x)) return c->has[0] ? P(0) : 0;
  if (isinf(x)) return x > 0 ? (c->has[1] ? P(1) : largest(c->compute)) : c->has[2] ? P(2) : -largest(c->compute);
  return x;
}
REAL(nan_to_num, made_finite(x[0], c))
static dt_value c_nan_to_num(const dt_value *x, pw_context *c) {
  return (dt_value){made_finite(x->re, c), made_finite(x->im, c)};
}

/* --- logit: P is eps, within which of 0 and 1 x is kept --- */

static long double r_logit(const long double *x, pw_context *c) {
  long double low = c->has[0] ? P(0) : 0, y = x[0];
  if (c->has[0]) y = y < low ? low : y > 1 - low ? 1 - low : y;
  return logl(y / (1 - y));
}

static long double r_logit_backward(const long double *x, pw_context *c) {
  long double low = c->has[0] ? P(0) : 0, y = x[1];
  if (y < low || y > 1 - low) return c->has[0] ? 0 : NAN;
  return y == 0 || y == 1 ? x[0] * INFINITY : x[0] / (y * (1 - y));
}

/* --- sums of exponentials: the larger operand, and what the smaller one adds --- */

static long double exponentials(const long double *x, long double base) {
  if (isnan(x[0]) || isnan(x[1])) return NAN;
  if (isinf(x[0]) && x[0] == x[1]) return x[0];
  long double most = fmaxl(x[0], x[1]);
  return most + log1pl(expl(-fabsl(x[0] - x[1]) * base)) / base;
}
#define LN2 0.693147180559945309417232121458176568L
REAL(logaddexp, exponentials(x, 1))
REAL(logaddexp2, exponentials(x, LN2))
static dt_value c_logaddexp(const dt_value *v, pw_context *c) {
  (void)c;
  ref_complex x = v[0].re + v[0].im * I, y = v[1].re + v[1].im * I, most = v[0].re < v[1].re ? y : x;
  if (x == y && isinf(v[0].re)) return v[0];
  ref_complex r = most + clogl(1 + cexpl(most == x ? y - x : x - y));
  return (dt_value){creall(r), cimagl(r)};
}

/* --- gamma functions --- */

/* Bernoulli numbers B2, B4, ... */
static const long double bernoulli[] = {1 / 6.0L,       -1 / 30.0L,       1 / 42.0L,      -1 / 30.0L,
                                        5 / 66.0L,      -691 / 2730.0L,   7 / 6.0L,       -3617 / 510.0L,
                                        43867 / 798.0L, -174611 / 330.0L, 854513 / 138.0L};
enum { BERNOULLIS = sizeof bernoulli / sizeof *bernoulli };
static const long double FAR = 24; /* from here on the expansions at infinity have all digits */

static long double r_lgamma(const long double *x, pw_context *c) {
  int sign;
  (void)c;
  return lgammal_r(x[0], &sign);
}

/* psi(x): by reflection left of 0, by recurrence up to FAR, then log x - 1/2x - sum B2k / (2k x^2k). */
static long double digamma(long double x) {
  if (x == 0) return copysignl(INFINITY, -x);
  if (x < 0) {
    if (x == floorl(x)) return NAN;
    long double r = x - rintl(x); /* tan has period 1 here */
    return digamma(1 - x) - PI / tanl(PI * r);
  }
  if (isinf(x)) return x;
  long double sum = 0;
  for (; x < FAR; x += 1) sum -= 1 / x;
  sum += logl(x) - 0.5L / x;
  long double square = 1 / (x * x), power = square;
  for (int k = 0; k < BERNOULLIS; k++, power *= square) sum -= bernoulli[k] / (2 * (k + 1)) * power;
  return sum;
}

/* zeta(s, q) = sum (q + k)^-s, by Euler and Maclaurin from FAR on; s > 1, whole. */
static long double hurwitz(long double s, long double q) {
  if (q <= 0 && q == floorl(q)) return INFINITY;
  if (q < -1e7L) return NAN; /* too far to walk */
  long double sum = 0;
  for (; q < FAR; q += 1) sum += powl(q, -s);
  long double power = powl(q, -s);
  sum += q * power / (s - 1) + power / 2;
  long double factor = s / 2 * power / q; /* s (s+1) ... (s+2k-2) / (2k)! q^(-s-2k+1) */
  for (int k = 1; k <= BERNOULLIS; k++) {
    sum += bernoulli[k - 1] * factor;
    factor *= (s + 2 * k - 1) * (s + 2 * k) / ((2 * k + 1) * (2 * k + 2) * q * q);
  }
  return sum;
}

/* The n-th derivative of digamma: (-1)^(n+1) n! zeta(n+1, x). The first, by reflection, also left of 0. */
static long double polygamma(long double n, long double x) {
  if (n == 0) return digamma(x);
  if (n == 1 && x < 0.5L) {
    long double s = sinl(PI * (x - rintl(x)));
    return PI / s * (PI / s) - polygamma(1, 1 - x);
  }
  long double size = tgammal(n + 1) * hurwitz(n + 1, x);
  return fmodl(n, 2) == 0 ? -size : size;
}
REAL(digamma, digamma(x[0]))
REAL(polygamma, polygamma(P(0), x[0]))

/* --- the inverse of erf: a first guess, then Newton's steps on whichever of erf and erfc is small there --- */
static long double r_erfinv(const long double *v, pw_context *c) {
  (void)c;
  long double y = fabsl(v[0]);
  if (!(y < 1)) return y == 1 ? copysignl(INFINITY, v[0]) : NAN;
  long double t = logl((1 - y) * (1 + y)), k = 2 / (PI * 0.147L) + t / 2; /* Winitzki's approximation */
  long double x = sqrtl(sqrtl(k * k - t / 0.147L) - k);
  for (int step = 0; step < 5; step++) {
    long double miss = y < 0.5L ? erfl(x) - y : (1 - y) - erfcl(x);
    x -= miss / (1.128379167095512573896158903121545172L * expl(-x * x));
  }
  return y == 0 ? v[0] : copysignl(x, v[0]);
}

static const pw_kernel kernels[] = {
    RI(ISNEGINF, isneginf) RI(ISPOSINF, isposinf) RO(FRAC, frac) RI(HEAVISIDE, heaviside) RO(XLOGY_TENSOR, xlogy)
        RC(SINC, sinc) RC(ANGLE, angle) CO(COMPLEX, complex) CO(POLAR, polar) RIC(NAN_TO_NUM, nan_to_num)
            RO(LOGIT, logit) RO(LOGIT_BACKWARD, logit_backward) RC(LOGADDEXP, logaddexp) RO(LOGADDEXP2, logaddexp2)
                RO(LGAMMA, lgamma) RO(DIGAMMA, digamma) RO(POLYGAMMA, polygamma) RO(ERFINV, erfinv)};
PW_KERNELS(special);

/* --- gradients --- */

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
