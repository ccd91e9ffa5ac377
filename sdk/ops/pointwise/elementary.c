/* Elementary functions, rounding and signs. */
#include <string.h>

#include "ops/pointwise/pointwise.h"

#define LN2  0.693147180559945309417232121458176568L
#define LN10 2.302585092994045684017991454684364208L

static long double root(const pw_context *c, long double a) {
  return c->is_double ? (long double)sqrt((double)a) : sqrtl(a); /* long double would round twice */
}

REAL(abs, fabsl(x))
REAL(neg, -x)
REAL(exp, expl(x))
REAL(exp2, exp2l(x))
REAL(expm1, expm1l(x))
REAL(log, logl(x))
REAL(log1p, log1pl(x))
REAL(log2, log2l(x))
REAL(log10, log10l(x))
REAL(sqrt, root(c, x))
REAL(rsqrt, 1 / sqrtl(x))
REAL(cbrt, cbrtl(x))
REAL(reciprocal, c->is_double ? (long double)(1 / (double)x) : 1 / x)
REAL(sin, sinl(x))
REAL(cos, cosl(x))
REAL(tan, tanl(x))
REAL(asin, asinl(x))
REAL(acos, acosl(x))
REAL(atan, atanl(x))
REAL(sinh, sinhl(x))
REAL(cosh, coshl(x))
REAL(tanh, tanhl(x))
REAL(asinh, asinhl(x))
REAL(acosh, acoshl(x))
REAL(atanh, atanhl(x))
REAL(erf, erfl(x))
REAL(erfc, erfcl(x))
REAL(atan2, atan2l(x, y))
REAL(hypot, hypotl(x, y))
REAL(copysign, copysignl(x, y))
COMPLEX(abs, cabsl(x))
COMPLEX(neg, -x)
COMPLEX(exp, cexpl(x))
COMPLEX(exp2, cexpl(LN2 *x))
COMPLEX(log, clogl(x))
COMPLEX(log2, clogl(x) / LN2)
COMPLEX(log10, clogl(x) / LN10)
COMPLEX(sqrt, csqrtl(x))
COMPLEX(rsqrt, pw_one_over(csqrtl(x)))
COMPLEX(reciprocal, pw_one_over(x))
COMPLEX(sin, csinl(x))
COMPLEX(cos, ccosl(x))
COMPLEX(tan, ctanl(x))
COMPLEX(asin, casinl(x))
COMPLEX(acos, cacosl(x))
COMPLEX(atan, catanl(x))
COMPLEX(sinh, csinhl(x))
COMPLEX(cosh, ccoshl(x))
COMPLEX(tanh, ctanhl(x))
COMPLEX(asinh, casinhl(x))
COMPLEX(acosh, cacoshl(x))
COMPLEX(atanh, catanhl(x))

/* Near 0 the sum with 1 would lose the real part, whose sign is kept where it is 0. */
static dt_value c_log1p(const dt_value *x, pw_context *c) {
  (void)c;
  long double a = x->re, b = x->im;
  bool is_small = fabsl(a) < 0.5L && fabsl(b) < 0.5L;
  if (isnan(a) || isnan(b)) return (dt_value){NAN, NAN};
  ref_complex far = clogl(CMPLXL(1 + a, b));
  long double less = a * (2 + a) + b * b;
  return (dt_value){!is_small ? creall(far) : less == 0 ? a : log1pl(less) / 2, cimagl(far)};
}

/* exp(a) cos(b) - 1 without cancellation near 0 */
static dt_value c_expm1(const dt_value *x, pw_context *c) {
  (void)c;
  long double half = sinl(x->im / 2);
  return (dt_value){expm1l(x->re) * cosl(x->im) - 2 * half * half, expl(x->re) * sinl(x->im)};
}
INTEGER(abs, x < 0 && !c->is_u64 ? (int64_t) - (uint64_t)x : x)
INTEGER(neg, (int64_t) - (uint64_t)x)

COMPLEX(conj_physical, conjl(x))

/* --- neighbours, and the parts of a number --- */

/* The next number of the dtype from x towards y: of one sign, numbers stand in the order of their bits. */
static long double r_nextafter(const long double *v, pw_context *c) {
  long double x = v[0], y = v[1];
  if (isnan(x) || isnan(y)) return NAN;
  if (c->compute == GRAFT_WIDE) return nextafterl(x, y);
  if (x == y) return y;
  uint64_t bits = 0;
  dt_store(c->compute, &bits, (dt_value){x, 0});
  bits = x == 0 ? 1 : (x < y) == (x > 0) ? bits + 1 : bits - 1;
  long double next = dt_load(c->compute, &bits).re;
  return x == 0 ? copysignl(next, y) : next;
}

static graft_status infer_frexp(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_frexp_Tensor_self);
  graft_status status = op_check_floating(c, ARG_frexp_Tensor_self);
  if (status) return status;
  c->compute = self->dtype;
  op_out_like(c, OUT_frexp_Tensor_mantissa, self->dtype, self);
  op_out_like(c, OUT_frexp_Tensor_exponent, GRAFT_I32, self);
  return GRAFT_OK;
}

graft_status kernel_frexp_Tensor(const graft_exec *exec, const graft_args_frexp_Tensor *a) {
  REF_OWNED ref_array x = ref_read(a->self), exponent = ref_new(x.count, false);
  if (!(x.re && exponent.re)) return ref_no_memory();
  for (int64_t i = 0; i < x.count; i++) {
    int power = 0;
    if (isfinite(x.re[i])) x.re[i] = frexpl(x.re[i], &power);
    exponent.re[i] = power;
  }
  ref_write(a->mantissa, &x);
  ref_write(a->exponent, &exponent);
  return GRAFT_OK;
}

/* The mantissa is self times a power of two, which is constant almost everywhere. */
static void vjp_frexp(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *g = v->g[OUT_frexp_Tensor_mantissa];
  if (!g) return;
  graft_tensor *exponent = fx_cast(s, v->outs[OUT_frexp_Tensor_exponent], g->dtype);
  v->results[ARG_frexp_Tensor_self] = fx_div(s, g, fx_exp2(s, exponent));
}

/* --- whole numbers, signs --- */

REAL(floor, floorl(x))
REAL(ceil, ceill(x))
REAL(trunc, truncl(x))
REAL(round, rintl(x)) /* halves to even */
REAL(frac, x - truncl(x))
REAL(sign, x > 0 ? 1 : x < 0 ? -1 : 0)
INTEGER(floor, x)
INTEGER(ceil, x)
INTEGER(trunc, x)
INTEGER(round, x)
INTEGER(sign, c->is_u64 ? x != 0 : (x > 0) - (x < 0))
COMPLEX(sgn, x == 0 ? 0 : x / cabsl(x))

REAL(tanh_backward, x *(1 - y * y))
COMPLEX(tanh_backward, x *conjl(1 - y * y))

/* --- gradients: textbook; where PyTorch has a convention it is PyTorch's --- */

GRADIENT(neg, fx_neg(s, g))
GRADIENT(exp, fx_mul(s, g, fx_conj(s, y)))
GRADIENT(exp2, fx_mul(s, g, fx_conj(s, fx_muls(s, y, LN2))))
GRADIENT(expm1, fx_mul(s, g, fx_conj(s, fx_adds(s, y, 1))))
GRADIENT(log, fx_div(s, g, fx_conj(s, x)))
GRADIENT(log1p, fx_div(s, g, fx_conj(s, fx_adds(s, x, 1))))
GRADIENT(log2, fx_div(s, g, fx_conj(s, fx_muls(s, x, LN2))))
GRADIENT(log10, fx_div(s, g, fx_conj(s, fx_muls(s, x, LN10))))
GRADIENT(sqrt, fx_div(s, g, fx_muls(s, fx_conj(s, y), 2)))
/* Powers of a result leave the range of half types where the gradient, times a small cotangent, does not. */
static graft_tensor *conj_power(fx *s, graft_tensor *y, int n) {
  graft_tensor *wide = fx_widened(s, y);
  return fx_conj(s, n == 2 ? fx_mul(s, wide, wide) : fx_powi(s, wide, n));
}
GRADIENT(rsqrt, fx_muls(s, fx_mul(s, g, conj_power(s, y, 3)), -0.5))
GRADIENT(reciprocal, fx_neg(s, fx_mul(s, g, conj_power(s, y, 2))))
GRADIENT(sin, fx_mul(s, g, fx_conj(s, fx_cos(s, x))))
GRADIENT(cos, fx_neg(s, fx_mul(s, g, fx_conj(s, fx_sin(s, x)))))
GRADIENT(tan, fx_mul(s, g, fx_adds(s, conj_power(s, y, 2), 1)))
GRADIENT(sinh, fx_mul(s, g, fx_conj(s, fx_cosh(s, x))))
GRADIENT(cosh, fx_mul(s, g, fx_conj(s, fx_sinh(s, x))))
GRADIENT(tanh, fx_tanh_backward(s, g, y))
GRADIENT(frac, g)
GRADIENT(conj_physical, fx_conj(s, g))

/* sign x x + by */
static graft_tensor *square_and(fx *s, graft_tensor *x, double sign, double by) {
  return fx_adds(s, fx_muls(s, fx_mul(s, x, x), sign), by);
}
GRADIENT(acos, fx_neg(s, fx_mul(s, g, fx_conj(s, fx_rsqrt(s, square_and(s, x, -1, 1))))))
GRADIENT(asin, fx_mul(s, g, fx_conj(s, fx_rsqrt(s, square_and(s, x, -1, 1)))))
GRADIENT(asinh, fx_mul(s, g, fx_conj(s, fx_rsqrt(s, square_and(s, x, 1, 1)))))
GRADIENT(atan, fx_div(s, g, fx_conj(s, square_and(s, x, 1, 1))))
GRADIENT(atanh, fx_div(s, g, fx_conj(s, square_and(s, x, -1, 1))))

/* Of complex numbers the branch cuts of sqrt(x - 1) sqrt(x + 1) are those of acosh, of sqrt(x x - 1) they are not. */
static graft_tensor *acosh_slope(fx *s, graft_tensor *x) {
  graft_tensor *left = fx_adds(s, x, -1), *right = fx_adds(s, x, 1);
  bool real = !dt_is_complex(left->dtype);
  return real ? fx_rsqrt(s, fx_mul(s, left, right)) : fx_mul(s, fx_rsqrt(s, left), fx_rsqrt(s, right));
}
GRADIENT(acosh, fx_mul(s, g, fx_conj(s, acosh_slope(s, x))))

#define TWO_OVER_SQRT_PI 1.1283791670955125738961589031215452
static graft_tensor *bell(fx *s, graft_tensor *g, graft_tensor *x) {
  return fx_mul(s, g, fx_exp(s, fx_neg(s, fx_mul(s, x, x))));
}
GRADIENT(erf, fx_muls(s, bell(s, g, x), TWO_OVER_SQRT_PI))
GRADIENT(erfc, fx_muls(s, bell(s, g, x), -TWO_OVER_SQRT_PI))

static graft_tensor *gradient_abs(fx *s, graft_tensor *g, graft_tensor *x, graft_tensor *y, const graft_value *args) {
  (void)y, (void)args;
  if (dt_is_complex(x->dtype)) { /* g x / |x|, 0 at 0 */
    graft_tensor *size = fx_abs(s, x);
    return fx_not_where(s, fx_is(s, GRAFT_OP_EQ_TENSOR, size, 0), fx_mul(s, g, fx_div(s, x, size)));
  }
  graft_tensor *rest = fx_only_where(s, fx_is(s, GRAFT_OP_LT_TENSOR, x, 0), fx_neg(s, g));
  return fx_where(s, fx_is(s, GRAFT_OP_GT_TENSOR, x, 0), fx_tensor(g), fx_tensor(rest));
}

/* Complex x / |x| turns with x: what of g is along the result does not count. */
static graft_tensor *gradient_sgn(fx *s, graft_tensor *g, graft_tensor *x, graft_tensor *y, const graft_value *args) {
  (void)args;
  if (!dt_is_complex(x->dtype)) return fx_zeros_like(s, g);
  graft_tensor *size = fx_abs(s, x), *turned = fx_contiguous(s, fx_mul(s, g, fx_conj(s, y)));
  graft_tensor *along = fx_mul(s, y, fx_select_int(s, fx_view_as_real(s, turned), -1, 0));
  graft_tensor *zero = fx_is(s, GRAFT_OP_EQ_TENSOR, size, 0);
  return fx_not_where(s, zero, fx_div(s, fx_sub(s, g, along), size));
}

/* (y, x) to angle: x / (x x + y y), -y / (x x + y y) */
static void vjp_atan2(op_vjp *v) {
  fx *s = v->s;
  graft_value y = v->args[ARG_atan2_self], x = v->args[ARG_atan2_other];
  graft_tensor *size = fx_add(s, fx_binary(s, GRAFT_OP_MUL_TENSOR, y, y), fx_binary(s, GRAFT_OP_MUL_TENSOR, x, x));
  graft_tensor *share = fx_div(s, v->g[OUT], size);
  if (vjp_needs(v, ARG_atan2_self)) v->results[ARG_atan2_self] = pw_times(s, share, x);
  if (vjp_needs(v, ARG_atan2_other)) v->results[ARG_atan2_other] = fx_neg(s, pw_times(s, share, y));
}

static void vjp_hypot(op_vjp *v) {
  graft_tensor *share = fx_div(v->s, v->g[OUT], v->outs[OUT]);
  if (vjp_needs(v, X)) v->results[X] = pw_times(v->s, share, v->args[X]);
  if (vjp_needs(v, Y)) v->results[Y] = pw_times(v->s, share, v->args[Y]);
}

/* The ratio of result and self is the change of sign; at 0 there is none. */
static void vjp_copysign(op_vjp *v) {
  fx *s = v->s;
  if (vjp_needs(v, X)) {
    graft_tensor *zero = fx_binary(s, GRAFT_OP_EQ_TENSOR, v->args[X], fx_int(0));
    v->results[X] = fx_not_where(s, zero, fx_mul(s, v->g[OUT], pw_over(s, v->outs[OUT], v->args[X])));
  }
  if (vjp_needs(v, Y)) v->results[Y] = fx_zeros_like(s, v->g[OUT]);
}

static void vjp_nextafter(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *same = fx_binary(s, GRAFT_OP_EQ_TENSOR, v->args[X], v->args[Y]);
  if (vjp_needs(v, X)) v->results[X] = fx_not_where(s, same, v->g[OUT]);
  if (vjp_needs(v, Y)) v->results[Y] = fx_zeros_like(s, v->g[OUT]);
}

/* g (1 - y^2) */
static void vjp_tanh_backward(op_vjp *v) {
  const in_tanh_backward in = in_tanh_backward_of(v->args);
  fx *s = v->s;
  graft_tensor *g = v->g[OUT], *y = in.output;
  if (vjp_needs(v, X)) v->results[X] = fx_tanh_backward(s, g, fx_conj(s, y));
  if (!vjp_needs(v, Y)) return;
  v->results[Y] = fx_muls(s, fx_mul(s, fx_mul(s, fx_conj(s, g), in.grad_output), fx_conj(s, y)), -2);
}

#define SIGNS .real = r_sign, .integer = i_sign, .complex_ = c_sgn

/* --- compositions --- */

COMPOSE(ceil, fx_neg(s, fx_floor(s, fx_neg(s, pw_tensor(v, X)))))
COMPOSE(tanh_backward, fx_mul(s, pw_tensor(v, X), fx_conj(s, pw_rest(s, fx_mul(s, pw_tensor(v, Y), pw_tensor(v, Y))))))

static const op_def defs[] = {
    PW_UNARY(ABS, OP_EXACT_OUT, PW_REAL, PW_NO_BOOL, RIC(abs), abs, SAVE_X),
    PW_UNARY(NEG, OP_EXACT_OUT, PW_SAME, PW_NO_BOOL, RIC(neg), neg, 0),
    PW_UNARY(EXP, 0, PW_FLOAT, 0, RC(exp), exp, SAVE_OUT),
    PW_UNARY(EXP2, 0, PW_FLOAT, 0, RC(exp2), exp2, SAVE_OUT),
    PW_UNARY(EXPM1, 0, PW_FLOAT, 0, RC(expm1), expm1, SAVE_OUT),
    PW_UNARY(LOG, 0, PW_FLOAT, 0, RC(log), log, SAVE_X),
    PW_UNARY(LOG1P, 0, PW_FLOAT, 0, RC(log1p), log1p, SAVE_X),
    PW_UNARY(LOG2, 0, PW_FLOAT, 0, RC(log2), log2, SAVE_X),
    PW_UNARY(LOG10, 0, PW_FLOAT, 0, RC(log10), log10, SAVE_X),
    PW_UNARY(SQRT, 0, PW_FLOAT, 0, RC(sqrt), sqrt, SAVE_OUT),
    PW_UNARY(RSQRT, 0, PW_FLOAT, 0, RC(rsqrt), rsqrt, SAVE_OUT),
    PW(PRIMS_CBRT, "b", 0, NULL, 0, .promo = PW_FLOAT, .refuse = PW_NO_COMPLEX, RO(cbrt)),
    PW_UNARY(PRIMS_CONJ_PHYSICAL, 0, PW_SAME, PW_NO_BOOL | PW_NO_INT | PW_NO_FLOAT, CO(conj_physical), conj_physical,
             0),
    PW_UNARY(RECIPROCAL, 0, PW_FLOAT, 0, RC(reciprocal), reciprocal, SAVE_OUT),
    PW_UNARY(SIN, 0, PW_FLOAT, 0, RC(sin), sin, SAVE_X),
    PW_UNARY(COS, 0, PW_FLOAT, 0, RC(cos), cos, SAVE_X),
    PW_UNARY(TAN, 0, PW_FLOAT, 0, RC(tan), tan, SAVE_OUT),
    PW_UNARY(ASIN, 0, PW_FLOAT, 0, RC(asin), asin, SAVE_X),
    PW_UNARY(ACOS, 0, PW_FLOAT, 0, RC(acos), acos, SAVE_X),
    PW_UNARY(ATAN, 0, PW_FLOAT, 0, RC(atan), atan, SAVE_X),
    PW_UNARY(SINH, 0, PW_FLOAT, 0, RC(sinh), sinh, SAVE_X),
    PW_UNARY(COSH, 0, PW_FLOAT, 0, RC(cosh), cosh, SAVE_X),
    PW_UNARY(TANH, 0, PW_FLOAT, 0, RC(tanh), tanh, SAVE_OUT),
    PW_UNARY(ASINH, 0, PW_FLOAT, 0, RC(asinh), asinh, SAVE_X),
    PW_UNARY(ACOSH, 0, PW_FLOAT, 0, RC(acosh), acosh, SAVE_X),
    PW_UNARY(ATANH, 0, PW_FLOAT, 0, RC(atanh), atanh, SAVE_X),
    PW_UNARY(ERF, 0, PW_FLOAT, PW_NO_COMPLEX, RO(erf), erf, SAVE_X),
    PW_UNARY(ERFC, 0, PW_FLOAT, PW_NO_COMPLEX, RO(erfc), erfc, SAVE_X),
    PW(ATAN2, "bb", 0, vjp_atan2, SAVE_X | SAVE_Y, .promo = PW_FLOAT, .refuse = PW_NO_COMPLEX, RO(atan2)),
    PW(HYPOT, "bb", 0, vjp_hypot, SAVE_X | SAVE_Y | SAVE_OUT, .promo = PW_SAME, .refuse = PW_FLOATS, RO(hypot)),
    PW(COPYSIGN_TENSOR, "bb", 0, vjp_copysign, SAVE_X | SAVE_OUT, .promo = PW_FLOAT, .refuse = PW_NO_COMPLEX,
       RO(copysign)),
    PW(FLOOR, "b", OP_EXACT_OUT, pw_vjp_zero, 0, .promo = PW_SAME, .refuse = PW_NUMBERS, RI(floor)),
    PW_COMPOSED(CEIL, "b", OP_EXACT_OUT, pw_vjp_zero, 0, .promo = PW_SAME, .refuse = PW_NUMBERS, RI(ceil),
                .compose = compose_ceil),
    PW(TRUNC, "b", OP_EXACT_OUT, pw_vjp_zero, 0, .promo = PW_SAME, .refuse = PW_NUMBERS, RI(trunc)),
    PW(ROUND, "b", OP_EXACT_OUT, pw_vjp_zero, 0, .promo = PW_SAME, .refuse = PW_NUMBERS, RI(round)),
    PW_UNARY(FRAC, OP_EXACT_OUT, PW_SAME, PW_FLOATS, RO(frac), frac, 0),
    PW(SIGN, "b", OP_EXACT_OUT, pw_vjp_zero, 0, .promo = PW_SAME, .refuse = PW_NO_COMPLEX, RI(sign)),
    PW_UNARY(SGN, OP_EXACT_OUT, PW_SAME, 0, SIGNS, sgn, SAVE_X | SAVE_OUT),
    PW(NEXTAFTER, "bb", 0, vjp_nextafter, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_FLOATS, RO(nextafter)),
    {.op_id = OP_WITH_KERNEL(frexp_Tensor),
     .roles = "v",
     .infer = infer_frexp,
     .vjp = vjp_frexp,
     .saves = OP_SAVE_OUT(frexp_Tensor, exponent)},
    PW_COMPOSED(TANH_BACKWARD, "bb", 0, vjp_tanh_backward, SAVE_X | SAVE_Y, .promo = PW_SAME,
                .refuse = PW_NO_BOOL | PW_NO_INT, RC(tanh_backward), .compose = compose_tanh_backward),
};
OP_TABLE(pointwise_elementary, defs)
