/* Elementary functions, remainders, and bounds and weights that are tensors: reference kernels and gradients. */
#include "ops/pointwise/gradients.h"
#include "ops/pointwise/kernels.h"

#define LN2  0.693147180559945309417232121458176568L
#define LN10 2.302585092994045684017991454684364208L

REAL(acos, acosl(x[0]))
REAL(acosh, acoshl(x[0]))
REAL(asin, asinl(x[0]))
REAL(asinh, asinhl(x[0]))
REAL(atan, atanl(x[0]))
REAL(atanh, atanhl(x[0]))
REAL(cosh, coshl(x[0]))
REAL(sinh, sinhl(x[0]))
REAL(tan, tanl(x[0]))
REAL(exp2, exp2l(x[0]))
REAL(expm1, expm1l(x[0]))
REAL(log1p, log1pl(x[0]))
REAL(log2, log2l(x[0]))
REAL(log10, log10l(x[0]))
REAL(erfc, erfcl(x[0]))
REAL(atan2, atan2l(x[0], x[1]))
REAL(hypot, hypotl(x[0], x[1]))
REAL(copysign, copysignl(x[0], x[1]))
COMPLEX(acos, cacosl(x))
COMPLEX(acosh, cacoshl(x))
COMPLEX(asin, casinl(x))
COMPLEX(asinh, casinhl(x))
COMPLEX(atan, catanl(x))
COMPLEX(atanh, catanhl(x))
COMPLEX(cosh, ccoshl(x))
COMPLEX(sinh, csinhl(x))
COMPLEX(tan, ctanl(x))
COMPLEX(exp2, cexpl(LN2 *x))
COMPLEX(log1p, clogl(1 + x))
COMPLEX(log2, clogl(x) / LN2)
COMPLEX(log10, clogl(x) / LN10)

/* exp(a) cos(b) - 1 without cancellation near 0 */
static dt_value c_expm1(const dt_value *x, pw_context *c) {
  (void)c;
  long double half = sinl(x->im / 2);
  return (dt_value){expm1l(x->re) * cosl(x->im) - 2 * half * half, expl(x->re) * sinl(x->im)};
}

/* --- whole numbers, signs, infinities --- */

REAL(ceil, ceill(x[0]))
REAL(trunc, truncl(x[0]))
REAL(round, rintl(x[0])) /* halves to even */
REAL(sign, x[0] > 0 ? 1 : x[0] < 0 ? -1 : 0)
REAL(signbit, signbit(x[0]) != 0)
REAL(isinf, isinf(x[0]) != 0)
INTEGER(ceil, x[0])
INTEGER(trunc, x[0])
INTEGER(round, x[0])
INTEGER(sign, c->is_u64 ? x[0] != 0 : (x[0] > 0) - (x[0] < 0))
COMPLEX(sgn, x == 0 ? 0 : x / cabsl(x))
COMPLEX(isinf, isinf(creall(x)) || isinf(cimagl(x)))

/* --- logic, bits --- */

REAL(logical_or, x[0] != 0 || x[1] != 0)
REAL(logical_xor, (x[0] != 0) != (x[1] != 0))
COMPLEX(logical_or, x != 0 || y != 0)
COMPLEX(logical_xor, (x != 0) != (y != 0))
INTEGER(bitwise_or, x[0] | x[1])
INTEGER(bitwise_xor, x[0] ^ x[1])

/* As PyTorch has it: by a negative number or by the width or more, nothing is left but the sign of a right shift. */
static bool shifts_out(const int64_t *x, const pw_context *c) {
  return x[1] < 0 || x[1] >= (int64_t)(8 * dt_bytes(c->compute));
}
INTEGER(left_shift, shifts_out(x, c) ? 0 : (int64_t)((uint64_t)x[0] << x[1]))
static int64_t i_right_shift(const int64_t *x, pw_context *c) {
  if (c->is_u64) return shifts_out(x, c) ? 0 : (int64_t)((uint64_t)x[0] >> x[1]);
  return x[0] >> (shifts_out(x, c) ? 63 : x[1]);
}

/* --- Python's % and // --- */

static long double r_remainder(const long double *x, pw_context *c) {
  (void)c;
  long double rest = fmodl(x[0], x[1]);
  return rest != 0 && (rest < 0) != (x[1] < 0) ? rest + x[1] : rest;
}

static int64_t i_remainder(const int64_t *x, pw_context *c) {
  int64_t rest = pw_integer_fmod(x, c);
  return !c->is_u64 && rest && (rest < 0) != (x[1] < 0) ? rest + x[1] : rest;
}

REAL(floor_divide, pw_floor_divide(x, c))
INTEGER(floor_divide, pw_integer_floor_divide(x, c))

/* --- bounds and weights --- */

/* A NaN on either side is the result. */
static long double greater(long double a, long double b) {
  return isnan(a) || a > b ? a : b;
}
static long double smaller(long double a, long double b) {
  return isnan(a) || a < b ? a : b;
}
#define LESS(a, b) (c->is_u64 ? (uint64_t)(a) < (uint64_t)(b) : (a) < (b))

static long double r_clamp_tensor(const long double *x, pw_context *c) {
  long double y = c->present[1] ? greater(x[0], x[1]) : x[0];
  return c->present[2] ? smaller(y, x[2]) : y;
}
static int64_t i_clamp_tensor(const int64_t *x, pw_context *c) {
  int64_t y = c->present[1] && LESS(x[0], x[1]) ? x[1] : x[0];
  return c->present[2] && LESS(x[2], y) ? x[2] : y;
}
REAL(clamp_min, greater(x[0], P(0)))
REAL(clamp_min_tensor, greater(x[0], x[1]))
INTEGER(clamp_min, LESS(x[0], (int64_t)P(0)) ? (int64_t)P(0) : x[0])
INTEGER(clamp_min_tensor, LESS(x[0], x[1]) ? x[1] : x[0])
REAL(lerp_tensor, fabsl(x[2]) < 0.5L ? x[0] + x[2] * (x[1] - x[0]) : x[1] - (x[1] - x[0]) * (1 - x[2]))
COMPLEX(lerp_tensor, cabsl(z) < 0.5L ? x + z * (y - x) : y - (y - x) * (1 - z))

static const pw_kernel kernels[] = {
    RC(ACOS, acos) RC(ACOSH, acosh) RC(ASIN, asin) RC(ASINH, asinh) RC(ATAN, atan) RC(ATANH, atanh) RC(COSH, cosh)
        RC(SINH, sinh) RC(TAN, tan) RC(EXP2, exp2) RC(EXPM1, expm1) RC(LOG1P, log1p) RC(LOG2, log2) RC(LOG10, log10)
            RO(ERFC, erfc) RO(ATAN2, atan2) RO(HYPOT, hypot) RO(COPYSIGN_TENSOR, copysign) RI(CEIL, ceil)
                RI(TRUNC, trunc) RI(ROUND, round) RI(SIGN, sign){GRAFT_OP_SGN, r_sign, i_sign, c_sgn},
    RO(SIGNBIT, signbit) RC(ISINF, isinf) RC(LOGICAL_OR, logical_or) RC(LOGICAL_XOR, logical_xor)
        IO(BITWISE_OR_TENSOR, bitwise_or) IO(BITWISE_XOR_TENSOR, bitwise_xor) IO(BITWISE_LEFT_SHIFT_TENSOR, left_shift)
            IO(BITWISE_RIGHT_SHIFT_TENSOR, right_shift) RI(REMAINDER_TENSOR, remainder) RI(FLOOR_DIVIDE, floor_divide)
                RI(CLAMP_TENSOR, clamp_tensor) RI(CLAMP_MIN, clamp_min) RI(CLAMP_MIN_TENSOR, clamp_min_tensor)
                    RC(LERP_TENSOR, lerp_tensor)};
PW_KERNELS(elementary);

/* --- gradients --- */

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
