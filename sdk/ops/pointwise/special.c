/* Error functions and other special ones, parts of complex numbers, and what becomes of NaN and infinities. */

#include "ops/pointwise/pointwise.h"

#define PI               3.141592653589793238462643383279502884L
#define LN2              0.693147180559945309417232121458176568L
#define TWO_OVER_SQRT_PI 1.128379167095512573896158903121545172L

REAL(xlogy, isnan(y) ? y : x == 0 ? 0 : x * logl(y))
REAL(xlog1py, isnan(y) ? y : x == 0 ? 0 : x * log1pl(y))
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
  ref_complex x = CMPLXL(v[0].re, v[0].im), y = CMPLXL(v[1].re, v[1].im), most = v[0].re < v[1].re ? y : x;
  if (x == y && isinf(v[0].re)) return v[0];
  ref_complex r = most + clogl(1 + cexpl(most == x ? y - x : x - y));
  return (dt_value){creall(r), cimagl(r)};
}

/* --- error functions. Numbers in brackets are equations of the Digital Library of Mathematical Functions,
 * dlmf.nist.gov --- */

/* e^(x^2), with what is lost of the square. */
static long double exp_of_square(long double x) {
  long double square = x * x, power = expl(square);
  return isinf(power) ? power : power + power * fmal(x, x, -square);
}

/* e^(x^2) erfc(x); far out by a continued fraction (7.9.1). */
static long double erfcx(long double x) {
  if (x < 0) return 2 * exp_of_square(x) - erfcx(-x);
  if (!(x >= 3)) return exp_of_square(x) * erfcl(x);
  long double fraction = x;
  for (int k = 48; k > 0; k--) fraction = x + k / 2.0L / fraction;
  return 1 / (sqrtl(PI) * fraction);
}
REAL(erfcx, erfcx(x))

/* The x whose erf is `inside` and whose erfc is `rest`; both are given, since one of them has more digits. From a first
 * guess by Newton's steps, for small x on erf and for others on log erfc, which is nearly straight. */
static long double inverse_erf(long double inside, long double rest) {
  long double t = logl(rest * (1 + inside)), k = 2 / (PI * 0.147L) + t / 2; /* Winitzki's approximation */
  long double x = sqrtl(sqrtl(k * k - t / 0.147L) - k);
  for (int step = 0; step < 6; step++) {
    if (inside < 0.5L)
      x -= (erfl(x) - inside) / (TWO_OVER_SQRT_PI * expl(-x * x));
    else
      x += (logl(erfcx(x)) - x * x - logl(rest)) * erfcx(x) / TWO_OVER_SQRT_PI;
  }
  return x;
}

static long double r_erfinv(const long double *v, pw_context *c) {
  (void)c;
  long double y = fabsl(v[0]);
  if (!(y < 1)) return y == 1 ? copysignl(INFINITY, v[0]) : NAN;
  return y == 0 ? v[0] : copysignl(inverse_erf(y, 1 - y), v[0]);
}

/* Where the standard normal distribution function is p. */
static long double r_ndtri(const long double *v, pw_context *c) {
  (void)c;
  long double p = v[0], tail = p < 0.5L ? p : 1 - p;
  if (!(p > 0 && p < 1)) return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
  return p == 0.5L ? 0 : copysignl(sqrtl(2) * inverse_erf(1 - 2 * tail, 2 * tail), p - 0.5L);
}

/* The logarithm of that function. */
static long double log_ndtr(long double x) {
  long double y = x / sqrtl(2);
  return x < -1 ? logl(erfcx(-y) / 2) - x * x / 2 : log1pl(-erfcl(y) / 2);
}
REAL(log_ndtr, log_ndtr(x))

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

/* Slopes leave the range of half types before the gradient does. That of erfinv grows with the square of the
 * result, so that a rounding of that is too much: it is computed again. */
static graft_tensor *erfinv_slope(fx *s, graft_tensor *x) {
  graft_tensor *y = fx_erfinv(s, x);
  return fx_muls(s, fx_exp(s, fx_mul(s, y, y)), HALF_SQRT_PI);
}
GRADIENT(erfinv, fx_mul(s, g, erfinv_slope(s, fx_widened(s, x))))
/* 2 x y - 2 / sqrt(pi) */
GRADIENT(erfcx, fx_mul(s, g, fx_adds(s, fx_muls(s, fx_mul(s, x, y), 2), -(double)TWO_OVER_SQRT_PI)))
#define SQRT_2 1.41421356237309504880168872420969808
/* sqrt(2 pi) e^(y^2 / 2), of a result that is computed again, too */
static graft_tensor *ndtri_slope(fx *s, graft_tensor *x) {
  graft_tensor *y = fx_special_ndtri(s, x);
  return fx_muls(s, fx_exp(s, fx_muls(s, fx_mul(s, y, y), 0.5)), 2 * SQRT_2 * HALF_SQRT_PI);
}
GRADIENT(ndtri, fx_mul(s, g, ndtri_slope(s, fx_widened(s, x))))
/* The density over the distribution function, sqrt(2 / pi) / erfcx(-x / sqrt 2), neither of which is 0 too soon. */
static graft_tensor *log_ndtr_slope(fx *s, graft_tensor *x) {
  graft_tensor *rest = fx_special_erfcx(s, fx_muls(s, x, -1 / SQRT_2));
  return fx_muls(s, fx_reciprocal(s, rest), 1 / (SQRT_2 * HALF_SQRT_PI));
}
GRADIENT(log_ndtr, fx_mul(s, g, log_ndtr_slope(s, fx_widened(s, x))))
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

/* Of x log(y - pole): x has no gradient where it is 0 and the logarithm is not a number. */
static void log_times(op_vjp *v, double pole) {
  fx *s = v->s;
  graft_value x = v->args[X], y = v->args[Y];
  if (vjp_needs(v, X)) {
    graft_tensor *left = fx_binary(s, GRAFT_OP_EQ_TENSOR, x, fx_int(0));
    graft_tensor *right = fx_binary(s, GRAFT_OP_LE_TENSOR, y, fx_float(pole));
    v->results[X] = fx_not_where(s, fx_logical_and(s, left, right), pw_again(v));
  }
  if (!vjp_needs(v, Y)) return;
  graft_value divisor = pole ? fx_tensor(fx_adds(s, vjp_arg(v, Y), -pole)) : y;
  v->results[Y] = pw_over(s, pw_times(s, v->g[OUT], x), divisor);
}
static void vjp_xlogy(op_vjp *v) {
  log_times(v, 0);
}
static void vjp_xlog1py(op_vjp *v) {
  log_times(v, -1);
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
    PW(SPECIAL_XLOG1PY, "bb", 0, vjp_xlog1py, SAVE_X | SAVE_Y, .promo = PW_FLOAT, .refuse = PW_NO_COMPLEX, RO(xlog1py)),
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
    PW_UNARY(SPECIAL_ERFCX, 0, PW_FLOAT, PW_NO_COMPLEX, RO(erfcx), erfcx, SAVE_X | SAVE_OUT),
    PW_UNARY(SPECIAL_NDTRI, 0, PW_FLOAT, PW_NO_COMPLEX, RO(ndtri), ndtri, SAVE_X),
    PW_UNARY(SPECIAL_LOG_NDTR, 0, PW_FLOAT, PW_NO_COMPLEX, RO(log_ndtr), log_ndtr, SAVE_X),
    PW_UNARY(SPECIAL_ENTR, 0, PW_FLOAT, PW_NO_COMPLEX, RO(entr), entr, SAVE_X),
    PW_UNARY(ERFINV, 0, PW_FLOAT, PW_NO_COMPLEX, RO(erfinv), erfinv, SAVE_X),
};
OP_TABLE(pointwise_special, defs)
