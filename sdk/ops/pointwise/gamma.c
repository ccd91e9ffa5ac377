/* Gamma functions and what is made of them: their logarithm and its derivatives, Hurwitz's zeta, incomplete ones. */
#include "ops/pointwise/pointwise.h"

#define PI 3.141592653589793238462643383279502884L

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
long double pw_digamma(long double x) {
  if (x == 0) return copysignl(INFINITY, -x);
  if (x < 0) {
    if (x == floorl(x)) return NAN;
    long double r = x - rintl(x); /* tan has period 1 here */
    return pw_digamma(1 - x) - PI / tanl(PI * r);
  }
  if (isinf(x)) return x;
  long double sum = 0;
  for (; x < FAR; x += 1) sum -= 1 / x;
  sum += logl(x) - 0.5L / x;
  long double square = 1 / (x * x), power = square;
  for (int k = 0; k < BERNOULLIS; k++, power *= square) sum -= bernoulli[k] / (2 * (k + 1)) * power;
  return sum;
}

/* zeta = sum (q + k)^-s for s > 1, by Euler and Maclaurin (25.11.5) from FAR on, and after as many terms: of a great s
 * nothing is left then, or q is so large that the expansion converges. Left of 0 for whole s only. */
static long double hurwitz(long double s, long double q) {
  if (s == 1) return INFINITY;
  if (s < 1) return NAN;
  if (q <= 0 && q == floorl(q)) return INFINITY;
  if (!isfinite(s) || !isfinite(q) || (q <= 0 && s != floorl(s))) return NAN;
  if (q < -1e7L) return NAN; /* too far to walk */
  long double sum = 0;
  for (int n = 0; n < FAR || q < FAR; n++, q += 1) sum += powl(q, -s);
  long double power = powl(q, -s);
  sum += powl(q, 1 - s) / (s - 1) + power / 2;
  if (power == 0) return sum;
  long double factor = s / 2 * power / q; /* s (s+1) ... (s+2k-2) / (2k)! q^(-s-2k+1) */
  for (int k = 1; k <= BERNOULLIS; k++) {
    sum += bernoulli[k - 1] * factor;
    factor *= (s + 2 * k - 1) * (s + 2 * k) / ((2 * k + 1) * (2 * k + 2) * q * q);
  }
  return sum;
}

/* The n-th derivative of digamma: (-1)^(n+1) n! zeta(n+1, x). The first, by reflection, also left of 0. */
static long double polygamma(long double n, long double x) {
  if (n == 0) return pw_digamma(x);
  if (n == 1 && x < 0.5L) {
    long double s = sinl(PI * (x - rintl(x)));
    return PI / s * (PI / s) - polygamma(1, 1 - x);
  }
  long double size = tgammal(n + 1) * hurwitz(n + 1, x);
  return fmodl(n, 2) == 0 ? -size : size;
}

/* Gamma of many dims: pi^(p (p - 1) / 4) times the product of Gamma(x - j/2). */
static long double mvlgamma(long double p, long double x, pw_context *c) {
  long double sum = p * (p - 1) / 4 * logl(PI);
  for (long double j = 0; j < p; j++) sum += r_lgamma(&(long double){x - j / 2}, c);
  return sum;
}
REAL(mvlgamma, mvlgamma(c->p[ARG_mvlgamma_p], x, c))
REAL(zeta, hurwitz(x, y))
REAL(digamma, pw_digamma(x))
REAL(polygamma, polygamma(c->p[ARG_polygamma_n], x))

/* --- incomplete gamma functions. Numbers in brackets are equations of the Digital Library of Mathematical Functions,
 * dlmf.nist.gov --- */

/* log Gamma(1 + a) for a > 0, with what is lost of a in 1 + a. */
static long double lgamma_of_1_and(long double a, pw_context *c) {
  long double sum = 1 + a, lost = a < 1 ? a - (sum - 1) : 0;
  return r_lgamma(&sum, c) + (lost ? lost * pw_digamma(sum) : 0);
}

/* m - log(1 + m); by r = m / (2 + m), log(1 + m) = 2 (r + r^3/3 + ...), where that cancels. */
static long double log1p_less(long double m) {
  if (fabsl(m) > 0.25L) return m - log1pl(m);
  long double r = m / (2 + m), square = r * r, sum = 0;
  for (int k = 16; k > 0; k--) sum = sum * square + 1 / (2 * k + 1.0L);
  return r * (m - 2 * square * sum);
}

/* x^a e^-x / Gamma(a + 1); of a large a by Stirling's series (5.11.1), where the parts would cancel. */
static long double incomplete_factor(long double a, long double x, pw_context *c) {
  if (a < 100) return expl(a * logl(x) - x - lgamma_of_1_and(a, c));
  long double square = 1 / (a * a), power = 1 / a, series = 0;
  for (int k = 0; k < BERNOULLIS; k++, power *= square) series += bernoulli[k] / ((2 * k + 2) * (2 * k + 1)) * power;
  return expl(-a * log1p_less((x - a) / a) - series) / sqrtl(2 * PI * a);
}

/* What makes x^a e^-x / Gamma(a + 1) the lower one (8.11.4), and a times it the upper one (8.9.2, by Lentz's method).
 */
static long double incomplete_series(long double a, long double x) {
  long double sum = 1, term = 1;
  for (long double n = a + 1; term > 1e-21L * sum; n += 1) sum += term *= x / n;
  return sum;
}
static long double incomplete_fraction(long double a, long double x) {
  long double b = x + 1 - a, above = 1e300L, below = 1 / b, result = below, step = 0;
  for (int n = 1; n < 100000 && fabsl(step - 1) > 2e-19L; n++) {
    long double numerator = -n * (n - a);
    b += 2;
    below = 1 / (numerator * below + b);
    above = b + numerator / above;
    step = below * above;
    result *= step;
  }
  return result;
}

/* The upper one of small a and x, where it is what is left of 1 (8.7.3). */
static long double incomplete_rest(long double a, long double x, pw_context *c) {
  long double size = a * logl(x) - lgamma_of_1_and(a, c), term = 1, sum = 0;
  for (int n = 1; n < 40; n++) {
    term *= -x / n;
    sum += term * a / (a + n);
  }
  return -expm1l(size) - expl(size) * sum;
}

/* Of a large a near x: Temme's expansion (8.12.3, 8.12.4), its sum S over powers of eta alone. As the derivative of the
 * whole is known, eta S = S'/a + f/Gamma*(a) - 1, where f = eta / (x/a - 1): so the coefficients of S follow from those
 * of f, from the last one down. */
static long double incomplete_near(long double a, long double x, bool upper) {
  static const long double f[] = {
      1,
      -1 / 3.0L,
      1 / 12.0L,
      -2 / 135.0L,
      1 / 864.0L,
      1 / 2835.0L,
      -139 / 777600.0L,
      1 / 25515.0L,
      -571 / 261273600.0L,
      -281 / 151559100.0L,
      8.296711340953086005016242e-7L,
      -1.766595273682607930436005e-7L,
      6.707853543401498580369397e-9L,
      1.026180978424030804257396e-8L,
      -4.382036018453353186552975e-9L,
      9.147699582236790234182488e-10L,
  };
  long double half = log1p_less((x - a) / a), eta = copysignl(sqrtl(2 * half), x - a);
  long double sum = 0, now = 0, next = 0, first = 0;
  for (int n = sizeof f / sizeof *f - 1; n > 0; n--) {
    long double before = f[n] + (n + 1) / a * next;
    sum = sum * eta + before;
    if (n == 2) first = before;
    next = now;
    now = before;
  }
  long double rest = expl(-a * half) / sqrtl(2 * PI * a) * sum / (1 + first / a), y = eta * sqrtl(a / 2);
  return upper ? erfcl(y) / 2 + rest : erfcl(-y) / 2 - rest;
}

/* PyTorch's order: some limits come before what NaN there makes. */
static long double incomplete_gamma(long double a, long double x, bool upper, pw_context *c) {
  long double none = upper ? 1 : 0, whole = 1 - none; /* at x = 0, and at infinite x */
  if (a < 0 || x < 0) return NAN;
  if (a == 0) return x > 0 ? whole : NAN;
  if (x == 0) return none;
  if (isinf(a)) return isinf(x) ? NAN : none;
  if (isinf(x)) return whole;
  if (isnan(a) || isnan(x)) return NAN;
  if (a > 10000 && fabsl(x - a) < 0.1L * a) return incomplete_near(a, x, upper);
  if (upper && x <= 1.1L && (x < 0.5L ? -a * logl(x) < 0.4L : a < 0.75L * x)) return incomplete_rest(a, x, c);
  if (x <= 1 || x <= a) {
    long double lower = incomplete_series(a, x) * incomplete_factor(a, x, c);
    return upper ? 1 - lower : lower;
  }
  long double rest = incomplete_fraction(a, x) * a * incomplete_factor(a, x, c);
  return upper ? rest : 1 - rest;
}
REAL(igamma, incomplete_gamma(x, y, false, c))
REAL(igammac, incomplete_gamma(x, y, true, c))

static graft_status check_polygamma(op_call *c) {
  int64_t n = op_int(c, ARG_polygamma_n);
  return n >= 0 ? GRAFT_OK : op_error(c, "n is %lld; expected 0 or more", (long long)n);
}

static graft_status check_mvlgamma(op_call *c) {
  int64_t p = op_int(c, ARG_mvlgamma_p);
  return p >= 1 ? GRAFT_OK : op_error(c, "p is %lld; expected 1 or more", (long long)p);
}

/* --- gradients: poles leave the range of half types before the gradient does --- */

GRADIENT(lgamma, fx_mul(s, g, fx_digamma(s, fx_widened(s, x))))
GRADIENT(digamma, fx_mul(s, g, fx_polygamma(s, 1, fx_widened(s, x))))

static graft_tensor *gradient_mvlgamma(fx *s, graft_tensor *g, graft_tensor *x, graft_tensor *y,
                                       const graft_value *args) {
  (void)y;
  graft_tensor *wide = fx_widened(s, x), *sum = fx_digamma(s, wide);
  for (int64_t j = 1; j < in_mvlgamma_of(args).p && !s->status; j++)
    sum = fx_add(s, sum, fx_digamma(s, fx_adds(s, wide, -0.5 * (double)j)));
  return fx_mul(s, g, sum);
}

static void vjp_polygamma(op_vjp *v) {
  const in_polygamma in = in_polygamma_of(v->args);
  v->results[ARG_polygamma_self] = fx_mul(v->s, v->g[OUT], fx_polygamma(v->s, in.n + 1, fx_widened(v->s, in.self)));
}

/* PyTorch has no derivative of these by their first operand, either. */
static bool is_refused(op_vjp *v) {
  if (!vjp_needs(v, X)) return false;
  fx_fail(v->s,
          err_about(GRAFT_UNIMPLEMENTED, v->schema->name, "there is no gradient for %s", v->schema->args[X].name));
  return true;
}

/* An operand in the dtype that the op was computed in: formulas round it there, not in a narrower one of its own. */
static graft_tensor *promoted(op_vjp *v, int arg) {
  fx *s = v->s;
  graft_tensor *g = v->g[OUT];
  graft_value value = v->args[arg];
  if (value.kind != GRAFT_VALUE_SCALAR) return fx_widened(s, fx_cast(s, vjp_arg(v, arg), g->dtype));
  return fx_widened(s, fx_filled(s, g, 0, NULL, (double)dt_scalar_value(&value.as.scalar).re, g->dtype));
}

/* -s zeta(s + 1, q) */
static void vjp_zeta(op_vjp *v) {
  fx *s = v->s;
  if (is_refused(v) || !vjp_needs(v, Y)) return;
  graft_tensor *power = promoted(v, X), *slope = fx_special_zeta(s, fx_adds(s, power, 1), promoted(v, Y));
  v->results[Y] = fx_neg(s, fx_mul(s, v->g[OUT], fx_mul(s, slope, power)));
}

/* sign x^(a - 1) e^-x / Gamma(a) */
static void incomplete_slope(op_vjp *v, double sign) {
  fx *s = v->s;
  if (is_refused(v) || !vjp_needs(v, Y)) return;
  graft_tensor *a = promoted(v, X), *x = promoted(v, Y);
  graft_tensor *power = fx_mul(s, fx_adds(s, a, -1), fx_log(s, x));
  graft_tensor *slope = fx_exp(s, fx_sub(s, fx_sub(s, power, x), fx_lgamma(s, a)));
  v->results[Y] = fx_muls(s, fx_mul(s, v->g[OUT], slope), sign);
}
static void vjp_igamma(op_vjp *v) {
  incomplete_slope(v, 1);
}
static void vjp_igammac(op_vjp *v) {
  incomplete_slope(v, -1);
}

static const op_def defs[] = {
    PW_UNARY(LGAMMA, 0, PW_FLOAT, PW_NO_COMPLEX, RO(lgamma), lgamma, SAVE_X),
    PW_UNARY(DIGAMMA, 0, PW_FLOAT, PW_NO_COMPLEX, RO(digamma), digamma, SAVE_X),
    PW(POLYGAMMA, "b", 0, vjp_polygamma, SAVE_Y, .promo = PW_FLOAT, .refuse = PW_NO_COMPLEX, .check = check_polygamma,
       RO(polygamma)),
    PW(MVLGAMMA, "b", 0, pw_vjp_unary, SAVE_X, .promo = PW_FLOAT, .refuse = PW_NO_BOOL | PW_NO_COMPLEX | PW_CONTIGUOUS,
       .check = check_mvlgamma, RO(mvlgamma), .gradient = gradient_mvlgamma),
    PW(SPECIAL_ZETA, "bb", 0, vjp_zeta, SAVE_X | SAVE_Y, .promo = PW_FLOAT, .refuse = PW_NO_COMPLEX, RO(zeta)),
    PW(IGAMMA, "bb", 0, vjp_igamma, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_FLOATS, RO(igamma)),
    PW(IGAMMAC, "bb", 0, vjp_igammac, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_FLOATS, RO(igammac)),
};
OP_TABLE(pointwise_gamma, defs)
