/* Reference kernels of elementary functions, of rounding and signs, of remainders and shifts, and of bounds that are
 * tensors. */
#include "ops/pointwise_kernels.h"

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
