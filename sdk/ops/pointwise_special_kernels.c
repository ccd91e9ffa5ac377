/* Reference kernels of special functions, of parts of complex numbers and of what becomes of NaN and infinities. */
#include <float.h>

#include "ops/pointwise_kernels.h"

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
