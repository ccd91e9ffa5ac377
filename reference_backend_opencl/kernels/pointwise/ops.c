/* The pointwise ops: one row an op. To add one, add its row; pointwise.h says what it means. */
#include "kernels/pointwise/pointwise.h"

#define REAL_SET   (OCL_FLOATS | OCL_INTS | OCL_BOOLS)
#define WHOLE_SET  (OCL_INTS | OCL_BOOLS)
#define NUMBER_SET (OCL_FLOATS | OCL_INTS)
#define ARITH_SET  (REAL_SET | OCL_COMPLEX)
#define FLOAT_SET  OCL_FLOATS

#define ANY_LAYOUT (GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED)
/* A second output is written while inputs are still read. */
#define CAPS_OF(flag)                                                   \
  (ANY_LAYOUT | GRAFT_CAP_HOST_VALUE | GRAFT_CAP_MEMO_IGNORES_SCALARS | \
   ((flag)&OCL_TWO_RESULTS ? 0 : GRAFT_CAP_IN_PLACE) |                  \
   ((flag) & (OCL_BOOL_RESULT | OCL_MASK_A | OCL_MASK_B) ? 0 : GRAFT_CAP_MIXED_DTYPE))

#define POINTWISE_ROW(op, set, flag, ...)                                                   \
  {                                                                                         \
    OCL_ENGINE(op, ocl_pointwise_engine, NULL,                                              \
               (&(const ocl_pointwise_recipe){.dtypes = set, .flags = flag, __VA_ARGS__})), \
        .inputs = (set) | ((flag)&OCL_FLOAT_RESULT ? WHOLE_SET : 0),                        \
        .outputs = (flag)&OCL_BOOL_RESULT ? OCL_BOOLS : (set), .flags = CAPS_OF(flag)       \
  }
#define POINTWISE(op, set, flag, expression_) POINTWISE_ROW(op, set, flag, .expression = expression_)
/* Where complex numbers need another expression; and where it is that of complex_<op>. */
#define POINTWISE_COMPLEX(op, set, flag, expression_, complex_) \
  POINTWISE_ROW(op, (set) | OCL_COMPLEX, flag, .expression = expression_, .complex = complex_)
#define ELEMENTARY_OF(op, flag, expression) \
  POINTWISE_COMPLEX(op, FLOAT_SET, OCL_FLOAT_RESULT | OCL_FUNCTION | (flag), expression, "complex_" #op "(a)")
#define ELEMENTARY(op, expression) ELEMENTARY_OF(op, 0, expression)
#define POINTWISE2(op, set, flag, expression_, other) \
  POINTWISE_ROW(op, set, flag, .expression = expression_, .second = other)
/* Of ops that share a program: what its y and z are. */
#define POINTWISE_WITH(op, set, flag, y, z, expression_) \
  POINTWISE_ROW(op, set, flag, .expression = expression_, .numbers = (const double[]){1, y, z})

/* By its number in polynomials.cl, and whether of 2 x - 1. */
#define POLYNOMIAL(op, kind, is_shifted)                                                        \
  POINTWISE_WITH(special_##op, FLOAT_SET, OCL_FLOAT_RESULT | OCL_POLYNOMIALS, kind, is_shifted, \
                 "polynomial(a, b, number_y, number_z)")

/* By order, and whether scaled by an exponential. */
#define BESSEL(op, order, is_scaled, expression) \
  POINTWISE_WITH(op, FLOAT_SET, OCL_FLOAT_RESULT | OCL_BESSEL, order, is_scaled, expression)
#define BESSEL_I(op, order, is_scaled) BESSEL(op, order, is_scaled, "modified_bessel(a, number_y, number_z)")
#define BESSEL_K(op, order, is_scaled) BESSEL(op, order, is_scaled, "modified_bessel_k(a, number_y, number_z)")

static const ocl_op ops[] = {
    POINTWISE_COMPLEX(abs, NUMBER_SET, OCL_CAST, "ABS(a)", "(VT)(hypot(a.x, a.y), 0)"),
    POINTWISE(neg, NUMBER_SET | OCL_COMPLEX, 0, "NEG(a)"),
    POINTWISE(sign, REAL_SET, 0, "SIGN(a)"),
    POINTWISE(relu, NUMBER_SET, 0, "a <= (VT)0 ? (VT)0 : a"),
    POINTWISE(floor, NUMBER_SET, 0, "FLOOR(a)"),
    POINTWISE(ceil, NUMBER_SET, 0, "CEIL(a)"),
    POINTWISE(trunc, NUMBER_SET, 0, "TRUNC(a)"),
    POINTWISE(round, NUMBER_SET, 0, "ROUND(a)"),
    ELEMENTARY(exp, "EXP(a)"),
    ELEMENTARY(expm1, "expm1(a)"),
    ELEMENTARY(log, "log(a)"),
    ELEMENTARY(log1p, "log1p(a)"),
    POINTWISE_COMPLEX(log2, FLOAT_SET, OCL_FLOAT_RESULT | OCL_FUNCTION, "log2(a)",
                      "complex_log(a) * K(1.44269504088896340736)"),
    POINTWISE_COMPLEX(log10, FLOAT_SET, OCL_FLOAT_RESULT | OCL_FUNCTION, "log10(a)",
                      "complex_log(a) * K(0.434294481903251827651)"),
    ELEMENTARY(sqrt, "sqrt(a)"),
    POINTWISE_COMPLEX(rsqrt, FLOAT_SET, OCL_FLOAT_RESULT | OCL_FUNCTION, "rsqrt(a)",
                      "complex_reciprocal(complex_sqrt(a))"),
    ELEMENTARY(reciprocal, "(VT)1 / a"),
    POINTWISE(prims_cbrt, FLOAT_SET, OCL_FLOAT_RESULT | OCL_FUNCTION, "cbrt(a)"),
    POINTWISE(prims_conj_physical, OCL_COMPLEX, 0, "(VT)(a.x, -a.y)"),
    POINTWISE(nextafter, FLOAT_SET, OCL_SPECIAL, "next_after(a, NARROWED(b))"),
    POINTWISE2(frexp_Tensor, FLOAT_SET, OCL_TWO_RESULTS | OCL_SPECIAL, "mantissa_of(a)", "exponent_of(a)"),
    ELEMENTARY_OF(sin, OCL_LANES, "apart_sin(a)"),
    ELEMENTARY_OF(cos, OCL_LANES, "apart_cos(a)"),
    ELEMENTARY_OF(tan, OCL_LANES, "apart_tan(a)"),
    ELEMENTARY(asin, "asin(a)"),
    ELEMENTARY(acos, "acos(a)"),
    ELEMENTARY(atan, "atan(a)"),
    ELEMENTARY(sinh, "sinh(a)"),
    ELEMENTARY(cosh, "cosh(a)"),
    ELEMENTARY(tanh, "whole_tanh(a)"),
    ELEMENTARY(asinh, "asinh(a)"),
    ELEMENTARY(acosh, "acosh(a)"),
    ELEMENTARY(atanh, "atanh(a)"),
    POINTWISE(erf, FLOAT_SET, OCL_FLOAT_RESULT | OCL_FUNCTION, "ERF(a)"),
    ELEMENTARY(sigmoid, "sigmoid(a)"),
    POINTWISE(gelu, FLOAT_SET, OCL_FUNCTION, "MODE == 2 ? gelu_tanh(a) : gelu_erf(a)"),
    POINTWISE(elu, FLOAT_SET, OCL_FUNCTION, "a <= (VT)0 ? expm1(a * z) * x * y : a * y"),
    POINTWISE(hardtanh, NUMBER_SET, 0, "MINIMUM(MAXIMUM(a, x), y)"),
    POINTWISE(leaky_relu, FLOAT_SET, 0, "a > (VT)0 ? a : a * x"),
    POINTWISE_COMPLEX(isnan, REAL_SET, OCL_BOOL_RESULT, "a != a", "is_nan(a)"),
    POINTWISE_COMPLEX(prims_isfinite, REAL_SET, OCL_BOOL_RESULT, "a - a == (VT)0", "is_finite(a)"),
    POINTWISE_COMPLEX(isinf, REAL_SET, OCL_BOOL_RESULT, "IS_INF(a)", "is_infinite(a)"),
    POINTWISE_COMPLEX(logical_not, REAL_SET, OCL_BOOL_RESULT, "a == (VT)0", "!NONZERO(a)"),
    POINTWISE(bitwise_not, WHOLE_SET, 0, "BITNOT(a)"),

    POINTWISE_COMPLEX(add_Tensor, REAL_SET, 0, "ADD(a, MUL(x, b))", "a + complex_scaled(x, b)"),
    POINTWISE_COMPLEX(add_Scalar, REAL_SET, 0, "ADD(a, MUL(y, x))", "a + complex_scaled(y, x)"),
    POINTWISE_COMPLEX(sub_Tensor, NUMBER_SET, 0, "SUB(a, MUL(x, b))", "a - complex_scaled(x, b)"),
    POINTWISE_COMPLEX(sub_Scalar, NUMBER_SET, 0, "SUB(a, MUL(y, x))", "a - complex_scaled(y, x)"),
    POINTWISE(mul_Tensor, ARITH_SET, 0, "MUL(a, b)"),
    POINTWISE(mul_Scalar, ARITH_SET, 0, "MUL(a, x)"),
    POINTWISE_COMPLEX(div_Tensor, FLOAT_SET, OCL_FLOAT_RESULT, "a / b", "complex_div(a, b)"),
    POINTWISE_COMPLEX(div_Scalar, FLOAT_SET, OCL_FLOAT_RESULT, "a / x", "complex_div(a, x)"),
    POINTWISE(div_Tensor_mode, NUMBER_SET, OCL_DIVIDES, "DIVIDE(a, b)"),
    POINTWISE(div_Scalar_mode, NUMBER_SET, OCL_DIVIDES, "DIVIDE(a, x)"),
    POINTWISE_COMPLEX(prims_div, NUMBER_SET, OCL_DIVIDES, "QUOTIENT(a, b)", "complex_div(a, b)"),
    POINTWISE(gcd, OCL_INTS, 0, "common_divisor(HELD_SIZE(a), HELD_SIZE(b))"),
    POINTWISE(lcm, OCL_INTS, 0, "common_multiple(a, b)"),
    POINTWISE(fmod_Tensor, NUMBER_SET, OCL_DIVIDES, "FMOD(a, b)"),
    POINTWISE(fmod_Scalar, NUMBER_SET, OCL_DIVIDES, "FMOD(a, x)"),
    POINTWISE(remainder_Tensor, NUMBER_SET, OCL_DIVIDES, "python_mod(a, b)"),
    POINTWISE(remainder_Scalar, NUMBER_SET, OCL_DIVIDES, "python_mod(a, x)"),
    POINTWISE_COMPLEX(pow_Tensor_Tensor, NUMBER_SET, OCL_POWERS, "POW(a, b)", "complex_pow(a, b)"),
    POINTWISE_COMPLEX(pow_Tensor_Scalar, NUMBER_SET, OCL_POWERS, "to_the(a, number_x)", "complex_pow(a, x)"),
    POINTWISE_COMPLEX(pow_Scalar, NUMBER_SET, OCL_POWERS, "POW(x, a)", "complex_pow(x, a)"),
    POINTWISE(atan2, FLOAT_SET, OCL_FLOAT_RESULT | OCL_FUNCTION, "atan2(a, b)"),
    POINTWISE(maximum, REAL_SET, 0, "MAXIMUM(a, b)"),
    POINTWISE(minimum, REAL_SET, 0, "MINIMUM(a, b)"),
    POINTWISE(fmax, REAL_SET, 0, "(a > b) | (b != b) ? a : b"),
    POINTWISE(fmin, REAL_SET, 0, "(a < b) | (b != b) ? a : b"),
    POINTWISE(clamp, NUMBER_SET, 0, "CLAMP_NUMBERS(a)"),
    POINTWISE(clamp_Tensor, REAL_SET, 0, "CLAMP_TENSORS(a)"),

    POINTWISE_COMPLEX(eq_Tensor, REAL_SET, OCL_BOOL_RESULT, "a == b", "(a.x == b.x) & (a.y == b.y)"),
    POINTWISE_COMPLEX(ne_Tensor, REAL_SET, OCL_BOOL_RESULT, "a != b", "(a.x != b.x) | (a.y != b.y)"),
    POINTWISE(lt_Tensor, REAL_SET, OCL_BOOL_RESULT, "a < b"),
    POINTWISE(le_Tensor, REAL_SET, OCL_BOOL_RESULT, "a <= b"),
    POINTWISE(gt_Tensor, REAL_SET, OCL_BOOL_RESULT, "a > b"),
    POINTWISE(ge_Tensor, REAL_SET, OCL_BOOL_RESULT, "a >= b"),
    POINTWISE_COMPLEX(eq_Scalar, REAL_SET, OCL_BOOL_RESULT, "a == x", "(a.x == x.x) & (a.y == x.y)"),
    POINTWISE_COMPLEX(ne_Scalar, REAL_SET, OCL_BOOL_RESULT, "a != x", "(a.x != x.x) | (a.y != x.y)"),
    POINTWISE(lt_Scalar, REAL_SET, OCL_BOOL_RESULT, "a < x"),
    POINTWISE(le_Scalar, REAL_SET, OCL_BOOL_RESULT, "a <= x"),
    POINTWISE(gt_Scalar, REAL_SET, OCL_BOOL_RESULT, "a > x"),
    POINTWISE(ge_Scalar, REAL_SET, OCL_BOOL_RESULT, "a >= x"),
    POINTWISE_COMPLEX(logical_and, REAL_SET, OCL_BOOL_RESULT | OCL_LOGICAL, "(a != (VT)0) & (b != (VT)0)",
                      "NONZERO(a) & NONZERO(b)"),
    POINTWISE_COMPLEX(logical_or, REAL_SET, OCL_BOOL_RESULT | OCL_LOGICAL, "(a != (VT)0) | (b != (VT)0)",
                      "NONZERO(a) | NONZERO(b)"),
    POINTWISE_COMPLEX(logical_xor, REAL_SET, OCL_BOOL_RESULT | OCL_LOGICAL, "(a != (VT)0) ^ (b != (VT)0)",
                      "NONZERO(a) ^ NONZERO(b)"),
    POINTWISE(bitwise_and_Tensor, WHOLE_SET, 0, "a & b"),
    POINTWISE(bitwise_or_Tensor, WHOLE_SET, 0, "a | b"),
    POINTWISE(bitwise_xor_Tensor, WHOLE_SET, 0, "a ^ b"),
    POINTWISE(bitwise_and_Scalar, WHOLE_SET, 0, "a & x"),
    POINTWISE(bitwise_or_Scalar, WHOLE_SET, 0, "a | x"),
    POINTWISE(bitwise_xor_Scalar, WHOLE_SET, 0, "a ^ x"),
    POINTWISE(where_self, ARITH_SET, OCL_MASK_A, "a ? b : c"),
    POINTWISE_COMPLEX(silu, FLOAT_SET, OCL_FUNCTION, "a * sigmoid(a)", "complex_silu(a)"),
    ELEMENTARY(exp2, "exp2(a)"),
    POINTWISE(erfc, FLOAT_SET, OCL_FLOAT_RESULT | OCL_FUNCTION, "erfc(a)"),
    POINTWISE(hardswish, FLOAT_SET, 0, "a * clamp(a + (VT)3, (VT)0, (VT)6) / (VT)6"),
    POINTWISE(hardsigmoid, FLOAT_SET, 0, "MINIMUM(MAXIMUM(a + (VT)3, (VT)0), (VT)6) / (VT)6"),
    POINTWISE_COMPLEX(sgn, REAL_SET, 0, "SIGN(a)", "complex_sign(a)"),
    POINTWISE(signbit, REAL_SET, OCL_BOOL_RESULT, "SIGNBIT(a)"),
    POINTWISE(softplus, FLOAT_SET, OCL_FUNCTION, "a * x > y ? a : log1p(EXP(a * x)) / x"),
    POINTWISE(clamp_min, NUMBER_SET, 0, "MAXIMUM(a, x)"),
    POINTWISE(clamp_min_Tensor, REAL_SET, 0, "MAXIMUM(a, b)"),
    POINTWISE(bitwise_left_shift_Tensor, OCL_INTS, 0, "SHIFT_LEFT(a, b)"),
    POINTWISE(bitwise_right_shift_Tensor, OCL_INTS, 0, "SHIFT_RIGHT(a, b)"),
    POINTWISE(floor_divide, NUMBER_SET, OCL_DIVIDES, "floor_divide(a, b)"),
    POINTWISE(copysign_Tensor, FLOAT_SET, OCL_FLOAT_RESULT, "copysign(a, b)"),
    POINTWISE(hypot, FLOAT_SET, OCL_FUNCTION, "hypot(a, b)"),
    POINTWISE_COMPLEX(addcmul, NUMBER_SET, 0, "ADD(a, MUL(MUL(x, b), c))", "a + complex_scaled(x, complex_mul(b, c))"),
    POINTWISE_COMPLEX(addcdiv, FLOAT_SET, 0, "a + x * b / c", "a + complex_scaled(x, complex_div(b, c))"),
    POINTWISE_COMPLEX(lerp_Scalar, FLOAT_SET, 0, "LERP(a, b, x)", "complex_lerp(a, b, x)"),
    POINTWISE_COMPLEX(lerp_Tensor, FLOAT_SET, 0, "LERP(a, b, c)", "complex_lerp(a, b, c)"),
    POINTWISE(masked_fill_Scalar, ARITH_SET, OCL_MASK_B, "b ? x : a"),
    POINTWISE(masked_fill_Tensor, ARITH_SET, OCL_MASK_B, "b ? c : a"),
    POINTWISE_COMPLEX(sigmoid_backward, FLOAT_SET, 0, "a * ((VT)1 - b) * b",
                      "complex_mul(a, conjugate(complex_mul((VT)(1, 0) - b, b)))"),
    POINTWISE_COMPLEX(tanh_backward, FLOAT_SET, 0, "a * ((VT)1 - b * b)",
                      "complex_mul(a, conjugate((VT)(1, 0) - complex_mul(b, b)))"),
    POINTWISE(threshold_backward, NUMBER_SET, 0, "b <= x ? (VT)0 : a"),
    POINTWISE_COMPLEX(silu_backward, FLOAT_SET, OCL_FUNCTION, "silu_grad(a, b)",
                      "complex_mul(a, complex_silu_slope(b))"),
    POINTWISE(gelu_backward, FLOAT_SET, OCL_FUNCTION, "MODE == 2 ? gelu_tanh_grad(a, b) : gelu_erf_grad(a, b)"),

    /* Activations of more kinds, their gradients, special functions. */
    POINTWISE(celu, FLOAT_SET, OCL_FUNCTION, "a <= (VT)0 ? expm1(a / x) * x : a"),
    POINTWISE(mish, FLOAT_SET, OCL_SPECIAL, "a * mish_gate(a)"),
    POINTWISE(threshold, NUMBER_SET, 0, "a <= x ? y : a"),
    POINTWISE(hardshrink, FLOAT_SET, 0, "(a >= -x) & (a <= x) ? (VT)0 : a"),
    /* a * 0, which Mesa 22.3 takes for 0 also where it is NaN */
    POINTWISE(softshrink, FLOAT_SET, 0,
              "a > x ? a - x : a < -x ? a + x : fabs(a) < (VT)INFINITY ? copysign((VT)0, a) : (VT)NAN"),
    POINTWISE(prelu_kernel, FLOAT_SET, 0, "a > (VT)0 ? a : b * a"),
    POINTWISE2(log_sigmoid_forward, FLOAT_SET, OCL_TWO_RESULTS, "MINIMUM(a, (VT)0) - log1p(EXP(-fabs(a)))",
               "EXP(-fabs(a))"),
    POINTWISE(elu_backward, FLOAT_SET, OCL_FUNCTION,
              "b <= (VT)0 ? a * z * (MODE ? b + x * y : x * y * EXP(b * z)) : a * y"),
    POINTWISE(hardtanh_backward, FLOAT_SET, 0, "(b <= x) | (b >= y) ? (VT)0 : a"),
    POINTWISE(leaky_relu_backward, FLOAT_SET, 0, "b > (VT)0 ? a : a * x"),
    POINTWISE(hardswish_backward, FLOAT_SET, 0, "b <= (VT)(-3) ? (VT)0 : b < (VT)3 ? a * (b / (VT)3 + (VT)0.5f) : a"),
    POINTWISE(hardsigmoid_backward, FLOAT_SET, 0, "(b > (VT)(-3)) & (b < (VT)3) ? a / (VT)6 : (VT)0"),
    POINTWISE(softplus_backward, FLOAT_SET, OCL_FUNCTION, "b * x > y ? a : a * sigmoid(b * x)"),
    POINTWISE(log_sigmoid_backward, FLOAT_SET, OCL_FUNCTION, "a * ((b < (VT)0 ? (VT)1 : c) / ((VT)1 + c))"),
    POINTWISE(mish_backward, FLOAT_SET, OCL_SPECIAL, "a * mish_slope(b, sigmoid(b))"),
    POINTWISE(hardshrink_backward, FLOAT_SET, 0, "(b >= -x) & (b <= x) ? (VT)0 : a"),
    POINTWISE(softshrink_backward, FLOAT_SET, 0, "(b >= -x) & (b <= x) ? (VT)0 : a"),
    POINTWISE2(prelu_kernel_backward, FLOAT_SET, OCL_TWO_RESULTS, "b > (VT)0 ? a : c * a", "b > (VT)0 ? (VT)0 : b * a"),
    POINTWISE(isneginf, REAL_SET, OCL_BOOL_RESULT | OCL_SPECIAL, "IS_INFINITE(a, -)"),
    POINTWISE(isposinf, REAL_SET, OCL_BOOL_RESULT | OCL_SPECIAL, "IS_INFINITE(a, +)"),
    POINTWISE(nan_to_num, ARITH_SET, OCL_SPECIAL, "MADE_FINITE(a)"),
    POINTWISE(xlogy_Tensor, FLOAT_SET, OCL_FLOAT_RESULT | OCL_FUNCTION, "b != b ? b : a == (VT)0 ? (VT)0 : a * log(b)"),
    POINTWISE(special_xlog1py, FLOAT_SET, OCL_FLOAT_RESULT | OCL_FUNCTION,
              "b != b ? b : a == (VT)0 ? (VT)0 : a * log1p(b)"),
    POINTWISE(logit, FLOAT_SET, OCL_FLOAT_RESULT | OCL_SPECIAL, "logit(KEPT_OFF(a, x))"),
    POINTWISE(logit_backward, FLOAT_SET, OCL_SPECIAL, "LOGIT_SLOPE(a, b, x)"),
    POINTWISE(lgamma, FLOAT_SET, OCL_FLOAT_RESULT | OCL_GAMMA, "log_gamma(a)"),
    POINTWISE(digamma, FLOAT_SET, OCL_FLOAT_RESULT | OCL_GAMMA, "digamma(a)"),
    POINTWISE(polygamma, FLOAT_SET, OCL_FLOAT_RESULT | OCL_GAMMA, "polygamma(a)"),
    POINTWISE_COMPLEX(logaddexp, FLOAT_SET, OCL_SPECIAL, "add_exponentials(a, b, (VT)1)", "complex_log_add(a, b)"),
    POINTWISE(logaddexp2, FLOAT_SET, OCL_SPECIAL, "add_exponentials(a, b, (VT)K(0.69314718055994530942))"),
    POINTWISE(frac, FLOAT_SET, 0, "a - trunc(a)"),
    POINTWISE(heaviside, REAL_SET, 0, "a == (VT)0 ? b : a > (VT)0 ? (VT)1 : (VT)0"),
    POINTWISE_COMPLEX(sinc, FLOAT_SET, OCL_FLOAT_RESULT | OCL_SPECIAL, "sinc(a)", "complex_sinc(a)"),
    POINTWISE(mvlgamma, FLOAT_SET, OCL_FLOAT_RESULT | OCL_GAMMA, "log_gamma_of_dims(a)"),
    POINTWISE(special_entr, FLOAT_SET, OCL_FLOAT_RESULT | OCL_FUNCTION,
              "a > (VT)0 ? -a * log(a) : a == (VT)0 ? (VT)0 : a != a ? a : (VT)(-INFINITY)"),
    POINTWISE(erfinv, FLOAT_SET, OCL_FLOAT_RESULT | OCL_SPECIAL, "erfinv(a)"),
    POINTWISE(special_erfcx, FLOAT_SET, OCL_FLOAT_RESULT | OCL_SPECIAL, "erfcx(a)"),
    POINTWISE(special_ndtri, FLOAT_SET, OCL_FLOAT_RESULT | OCL_SPECIAL, "ndtri(a)"),
    POINTWISE(special_log_ndtr, FLOAT_SET, OCL_FLOAT_RESULT | OCL_SPECIAL, "log_ndtr(a)"),
    POINTWISE(special_zeta, FLOAT_SET, OCL_FLOAT_RESULT | OCL_GAMMA, "zeta(a, b)"),
    POINTWISE_WITH(igamma, FLOAT_SET, OCL_GAMMA, 0, 0, "incomplete_gamma(a, b, number_y)"),
    POINTWISE_WITH(igammac, FLOAT_SET, OCL_GAMMA, 1, 0, "incomplete_gamma(a, b, number_y)"),
    BESSEL_I(i0, 0, 0),
    BESSEL_I(special_i0e, 0, 1),
    BESSEL_I(special_i1, 1, 0),
    BESSEL_I(special_i1e, 1, 1),
    BESSEL_I(special_modified_bessel_i0, 0, 0),
    BESSEL_I(special_modified_bessel_i1, 1, 0),
    BESSEL_K(special_modified_bessel_k0, 0, 0),
    BESSEL_K(special_modified_bessel_k1, 1, 0),
    BESSEL_K(special_scaled_modified_bessel_k0, 0, 1),
    BESSEL_K(special_scaled_modified_bessel_k1, 1, 1),
    BESSEL(special_bessel_j0, 0, 0, "bessel_j(a, number_y)"),
    BESSEL(special_bessel_j1, 1, 0, "bessel_j(a, number_y)"),
    BESSEL(special_bessel_y0, 0, 0, "bessel_y(a, number_y)"),
    BESSEL(special_bessel_y1, 1, 0, "bessel_y(a, number_y)"),
    POINTWISE(special_airy_ai, FLOAT_SET, OCL_FLOAT_RESULT | OCL_BESSEL, "airy_ai(a)"),
    POINTWISE(special_spherical_bessel_j0, FLOAT_SET, OCL_FLOAT_RESULT | OCL_LANES,
              "a == (VT)0 ? (VT)1 : fabs(a) == (VT)INFINITY ? (VT)0 : apart_sin(a) / a"),

    POLYNOMIAL(chebyshev_polynomial_t, 0, 0),
    POLYNOMIAL(chebyshev_polynomial_u, 1, 0),
    POLYNOMIAL(chebyshev_polynomial_v, 2, 0),
    POLYNOMIAL(chebyshev_polynomial_w, 3, 0),
    POLYNOMIAL(shifted_chebyshev_polynomial_t, 0, 1),
    POLYNOMIAL(shifted_chebyshev_polynomial_u, 1, 1),
    POLYNOMIAL(shifted_chebyshev_polynomial_v, 2, 1),
    POLYNOMIAL(shifted_chebyshev_polynomial_w, 3, 1),
    POLYNOMIAL(hermite_polynomial_h, 4, 0),
    POLYNOMIAL(hermite_polynomial_he, 5, 0),
    POLYNOMIAL(laguerre_polynomial_l, 6, 0),
    POLYNOMIAL(legendre_polynomial_p, 7, 0),

    /* Whose operands are parts of tensors, or made from numbers (parts.c). */
    {OCL_OP(round_decimals), .inputs = FLOAT_SET, .outputs = FLOAT_SET, .flags = ANY_LAYOUT | GRAFT_CAP_IN_PLACE},
    {OCL_OP(glu), .inputs = FLOAT_SET, .outputs = FLOAT_SET, .flags = ANY_LAYOUT},
    {OCL_OP(glu_backward), .inputs = FLOAT_SET, .outputs = FLOAT_SET, .flags = ANY_LAYOUT},
    {OCL_OP(polar), .inputs = OCL_BIT(F32) | OCL_BIT(F64), .outputs = OCL_COMPLEX, .flags = ANY_LAYOUT},
    {OCL_OP(complex), .inputs = OCL_BIT(F32) | OCL_BIT(F64), .outputs = OCL_COMPLEX, .flags = ANY_LAYOUT},
    {OCL_OP(angle), .inputs = ARITH_SET, .outputs = FLOAT_SET, .flags = ANY_LAYOUT},
};
OCL_FAMILY(pointwise, ops)
