/* Special functions, parts of complex numbers, and what becomes of NaN and infinities. */

#include "ops/pointwise/pointwise.h"

#define PI  3.141592653589793238462643383279502884L
#define LN2 0.693147180559945309417232121458176568L

REAL(xlogy, isnan(y) ? y : x == 0 ? 0 : x * logl(y))
REAL(entr, isnan(x) ? x : x > 0 ? -x * logl(x) : x == 0 ? 0 : -INFINITY)
REAL(sinc, x == 0 ? 1 : sinl(PI * x) / (PI * x))
REAL(angle, isnan(x) ? x : x < 0 ? PI : 0)
COMPLEX(sinc, x == 0 ? 1 : csinl(PI * x) / (PI * x))

/* --- parts of complex numbers --- */

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

/* --- what takes the place of NaN and infinities --- */

static long double made_finite(long double x, const pw_context *c) {
  if (isnan(x)) return c->has[ARG_nan_to_num_nan] ? c->p[ARG_nan_to_num_nan] : 0;
  if (isinf(x))
    return x > 0 ? (c->has[ARG_nan_to_num_posinf] ? c->p[ARG_nan_to_num_posinf] : dt_largest(c->compute))
           : c->has[ARG_nan_to_num_neginf] ? c->p[ARG_nan_to_num_neginf]
                                           : -dt_largest(c->compute);
  return x;
}
REAL(nan_to_num, made_finite(x, c))
INTEGER(nan_to_num, x)
static dt_value c_nan_to_num(const dt_value *x, pw_context *c) {
  return (dt_value){made_finite(x->re, c), made_finite(x->im, c)};
}

/* --- logit: eps is how near to 0 and 1 x may come --- */

static long double r_logit(const long double *x, pw_context *c) {
  long double low = c->has[ARG_logit_eps] ? c->p[ARG_logit_eps] : 0, y = x[0];
  if (c->has[ARG_logit_eps]) y = y < low ? low : y > 1 - low ? 1 - low : y;
  return logl(y / (1 - y));
}

static long double r_logit_backward(const long double *x, pw_context *c) {
  long double low = c->has[ARG_logit_backward_eps] ? c->p[ARG_logit_backward_eps] : 0, y = x[1];
  if (y < low || y > 1 - low) return c->has[ARG_logit_backward_eps] ? 0 : NAN;
  return y == 0 || y == 1 ? x[0] * INFINITY : x[0] / (y * (1 - y));
}

/* --- sums of exponentials: the larger operand, and what the smaller one adds --- */

static long double exponentials(const long double *x, long double base) {
  if (isnan(x[0]) || isnan(x[1])) return NAN;
  if (isinf(x[0]) && x[0] == x[1]) return x[0];
  long double most = fmaxl(x[0], x[1]);
  return most + log1pl(expl(-fabsl(x[0] - x[1]) * base)) / base;
}
REAL(logaddexp, exponentials(v, 1))
REAL(logaddexp2, exponentials(v, LN2))
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

/* zeta = sum (q + k)^-s, by Euler and Maclaurin from FAR on; s > 1, whole. */
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

/* Gamma of many dims: pi^(p (p - 1) / 4) times the product of Gamma(x - j/2). */
static long double mvlgamma(long double p, long double x, pw_context *c) {
  long double sum = p * (p - 1) / 4 * logl(PI);
  for (long double j = 0; j < p; j++) sum += r_lgamma(&(long double){x - j / 2}, c);
  return sum;
}
REAL(mvlgamma, mvlgamma(c->p[ARG_mvlgamma_p], x, c))
REAL(digamma, digamma(x))
REAL(polygamma, polygamma(c->p[ARG_polygamma_n], x))

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

static graft_status check_polygamma(op_call *c) {
  int64_t n = op_int(c, ARG_polygamma_n);
  return n >= 0 ? GRAFT_OK : op_error(c, "n is %lld; expected 0 or more", (long long)n);
}

static graft_status check_mvlgamma(op_call *c) {
  int64_t p = op_int(c, ARG_mvlgamma_p);
  return p >= 1 ? GRAFT_OK : op_error(c, "p is %lld; expected 1 or more", (long long)p);
}

/* Real and imaginary part, or modulus and angle. */
static graft_status check_parts(op_call *c) {
  graft_status status = pw_check_one_dtype(c);
  if (status || !dt_is_half(c->compute)) return status;
  return op_fail(c, GRAFT_UNIMPLEMENTED, "there is no complex dtype of halves (%s)", op_show_tensors(c));
}

/* --- gradients --- */

#define HALF_SQRT_PI 0.88622692545275801364908374167057259

static graft_tensor *is_zero(fx *s, graft_tensor *t) {
  return fx_is(s, GRAFT_OP_EQ_TENSOR, t, 0);
}

/* Poles leave the range of half types before the gradient does. The slope of erfinv grows with the square of the
 * result, so that a rounding of that is too much: it is computed again. */
static graft_tensor *erfinv_slope(fx *s, graft_tensor *x) {
  graft_tensor *y = fx_erfinv(s, x);
  return fx_muls(s, fx_exp(s, fx_mul(s, y, y)), HALF_SQRT_PI);
}
GRADIENT(lgamma, fx_mul(s, g, fx_digamma(s, fx_widened(s, x))))
GRADIENT(digamma, fx_mul(s, g, fx_polygamma(s, 1, fx_widened(s, x))))
GRADIENT(erfinv, fx_mul(s, g, erfinv_slope(s, fx_widened(s, x))))
GRADIENT(entr, fx_neg(s, fx_mul(s, g, fx_adds(s, fx_log(s, x), 1))))
GRADIENT(logit, fx_logit_backward(s, g, x, in_logit_of(args).eps))
/* A number that is not finite does not give 0 less itself. */
GRADIENT(nan_to_num, fx_only_where(s, is_zero(s, fx_sub(s, x, x)), g))

/* (cos(pi x) - sinc) / x, which near 0 does not overflow; 0 at 0 */
static graft_tensor *gradient_sinc(fx *s, graft_tensor *g, graft_tensor *x, graft_tensor *y, const graft_value *args) {
  (void)args;
  graft_tensor *slope = fx_div(s, fx_sub(s, fx_cos(s, fx_muls(s, x, PI)), y), x);
  return fx_not_where(s, is_zero(s, x), fx_mul(s, g, fx_conj(s, slope)));
}

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

static void vjp_xlogy(op_vjp *v) {
  fx *s = v->s;
  graft_value x = v->args[X], y = v->args[Y];
  if (vjp_needs(v, X)) {
    graft_tensor *slope = fx_binary(s, GRAFT_OP_XLOGY_TENSOR, fx_tensor(v->g[OUT]), y);
    graft_tensor *left = fx_binary(s, GRAFT_OP_EQ_TENSOR, x, fx_int(0));
    graft_tensor *right = fx_binary(s, GRAFT_OP_LE_TENSOR, y, fx_int(0));
    v->results[X] = fx_not_where(s, fx_logical_and(s, left, right), slope);
  }
  if (vjp_needs(v, Y)) v->results[Y] = pw_over(s, pw_times(s, v->g[OUT], x), y);
}

/* d/dx of 1 / (x (1 - x)) is (2 x - 1) / (x (1 - x))^2. */
static void vjp_logit_backward(op_vjp *v) {
  const in_logit_backward in = in_logit_backward_of(v->args);
  fx *s = v->s;
  graft_tensor *x = in.self;
  if (vjp_needs(v, X)) v->results[X] = pw_again(v);
  if (!vjp_needs(v, Y)) return;
  graft_tensor *product = fx_mul(s, x, fx_adds(s, fx_neg(s, x), 1));
  graft_tensor *bend = fx_div(s, fx_adds(s, fx_muls(s, x, 2), -1), fx_mul(s, product, product));
  bend = fx_mul(s, fx_mul(s, v->g[OUT], in.grad_output), bend);
  if (in.eps) {
    graft_tensor *above = fx_is(s, GRAFT_OP_GE_TENSOR, x, *in.eps);
    graft_tensor *below = fx_is(s, GRAFT_OP_LE_TENSOR, x, 1 - *in.eps);
    bend = fx_only_where(s, fx_logical_and(s, above, below), bend);
  }
  v->results[Y] = bend;
}

/* g / (1 + exp((b - a) k)): the share of a in the sum */
static graft_tensor *share(op_vjp *v, int a, int b, double k) {
  fx *s = v->s;
  graft_tensor *away = fx_muls(s, fx_binary(s, GRAFT_OP_SUB_TENSOR, pw_conj(v, b), pw_conj(v, a)), k);
  return fx_div(s, v->g[OUT], fx_adds(s, fx_exp(s, away), 1));
}
static void shares(op_vjp *v, double k) {
  if (vjp_needs(v, X)) v->results[X] = share(v, X, Y, k);
  if (vjp_needs(v, Y)) v->results[Y] = share(v, Y, X, k);
}
static void vjp_logaddexp(op_vjp *v) {
  shares(v, 1);
}
static void vjp_logaddexp2(op_vjp *v) {
  shares(v, LN2);
}

/* Re and Im of a complex tensor. */
static graft_tensor *part(fx *s, graft_tensor *z, int64_t which) {
  return fx_select_int(s, fx_view_as_real(s, fx_contiguous(s, z)), -1, which);
}

static void vjp_complex(op_vjp *v) {
  if (vjp_needs(v, X)) v->results[X] = part(v->s, v->g[OUT], 0);
  if (vjp_needs(v, Y)) v->results[Y] = part(v->s, v->g[OUT], 1);
}

/* r (cos t + i sin t) */
static void vjp_polar(op_vjp *v) {
  const in_polar in = in_polar_of(v->args);
  fx *s = v->s;
  graft_tensor *re = part(s, v->g[OUT], 0), *im = part(s, v->g[OUT], 1);
  graft_tensor *cosine = fx_cos(s, in.angle), *sine = fx_sin(s, in.angle);
  if (vjp_needs(v, X)) v->results[X] = fx_add(s, fx_mul(s, re, cosine), fx_mul(s, im, sine));
  if (vjp_needs(v, Y)) v->results[Y] = fx_mul(s, in.abs, fx_sub(s, fx_mul(s, im, cosine), fx_mul(s, re, sine)));
}

/* i z / |z|^2, 0 at 0; of real numbers the angle is constant */
static graft_tensor *gradient_angle(fx *s, graft_tensor *g, graft_tensor *x, graft_tensor *y, const graft_value *args) {
  (void)y, (void)args;
  if (!dt_is_complex(x->dtype)) return fx_zeros_like(s, g);
  graft_tensor *re = part(s, x, 0), *im = part(s, x, 1);
  graft_tensor *size = fx_add(s, fx_mul(s, re, re), fx_mul(s, im, im));
  graft_tensor *by = fx_not_where(s, is_zero(s, size), fx_div(s, g, size));
  return fx_complex(s, fx_neg(s, fx_mul(s, im, by)), fx_mul(s, re, by));
}

static const op_def defs[] = {
    PW(XLOGY_TENSOR, "bb", 0, vjp_xlogy, SAVE_X | SAVE_Y, .promo = PW_FLOAT, .refuse = PW_NO_COMPLEX, RO(xlogy)),
    PW_UNARY(SINC, 0, PW_FLOAT, 0, RC(sinc), sinc, SAVE_X | SAVE_OUT),
    PW_UNARY(ANGLE, 0, PW_ANGLE, 0, RC(angle), angle, SAVE_X),
    PW(COMPLEX, "bb", 0, vjp_complex, 0, .promo = PW_COMPLEX, .refuse = PW_FLOATS, .check = check_parts, CO(complex)),
    PW(POLAR, "bb", 0, vjp_polar, SAVE_X | SAVE_Y, .promo = PW_COMPLEX, .refuse = PW_FLOATS, .check = check_parts,
       CO(polar)),
    PW_UNARY(NAN_TO_NUM, OP_EXACT_OUT, PW_SAME, PW_LIKE, RIC(nan_to_num), nan_to_num, SAVE_X),
    PW_UNARY(LOGIT, 0, PW_FLOAT, PW_NO_COMPLEX, RO(logit), logit, SAVE_X),
    PW(LOGIT_BACKWARD, "bb", 0, vjp_logit_backward, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_FLOATS,
       RO(logit_backward)),
    PW(LOGADDEXP, "bb", 0, vjp_logaddexp, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_NO_BOOL | PW_NO_INT,
       RC(logaddexp)),
    PW(LOGADDEXP2, "bb", 0, vjp_logaddexp2, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_FLOATS, RO(logaddexp2)),
    PW_UNARY(LGAMMA, 0, PW_FLOAT, PW_NO_COMPLEX, RO(lgamma), lgamma, SAVE_X),
    PW_UNARY(DIGAMMA, 0, PW_FLOAT, PW_NO_COMPLEX, RO(digamma), digamma, SAVE_X),
    PW(POLYGAMMA, "b", 0, vjp_polygamma, SAVE_Y, .promo = PW_FLOAT, .refuse = PW_NO_COMPLEX, .check = check_polygamma,
       RO(polygamma)),
    PW(MVLGAMMA, "b", 0, pw_vjp_unary, SAVE_X, .promo = PW_FLOAT, .refuse = PW_NO_BOOL | PW_NO_COMPLEX | PW_CONTIGUOUS,
       .check = check_mvlgamma, RO(mvlgamma), .gradient = gradient_mvlgamma),
    PW_UNARY(SPECIAL_ENTR, 0, PW_FLOAT, PW_NO_COMPLEX, RO(entr), entr, SAVE_X),
    PW_UNARY(ERFINV, 0, PW_FLOAT, PW_NO_COMPLEX, RO(erfinv), erfinv, SAVE_X),
};
OP_TABLE(pointwise_special, defs)
