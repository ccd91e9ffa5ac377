/* Every op whose output element depends on the input elements at its place: one row an op.
 *
 *   X(fields, op, ID, dtypes, flags, expression)
 *
 * fields: which arguments it reads (FIELDS_* in pointwise.c); tensors are a, b, c in the expression, numbers x, y, z.
 * dtypes: what it computes with. The expression is OpenCL C over the names of pointwise.cl, where ADD, MUL and so on
 * mean the right thing for floats, integers and complex numbers. To add an op, add a row. */
#ifndef OCL_POINTWISE_TABLE_H
#define OCL_POINTWISE_TABLE_H

/* Flags of a row. */
#define BOOL_RESULT  0x1  /* the output is bool; numbers are rounded to the inputs' dtype before they are compared */
#define FLOAT_RESULT 0x2  /* integer inputs give f32 */
#define MASK_FIRST   0x4  /* the first tensor is a bool mask */
#define CAST         0x8  /* computes in the input's dtype, stores in the output's */
#define SPECIAL      0x20 /* with the functions of special.cl */
#define LOGICAL      0x40 /* operands of any dtypes: only whether they are 0 counts */
#define DIVIDES      0x10 /* by its last operand or number, which must not be 0 for integers */

/* A row's expression and that of its second output. */
#define TWO(first, second) "(" first ")\n#define SECOND " second

#define REAL_SET   (OCL_FLOATS | OCL_INTS | OCL_BOOLS)
#define WHOLE_SET  (OCL_INTS | OCL_BOOLS)
#define NUMBER_SET (OCL_FLOATS | OCL_INTS)
#define ARITH_SET  (REAL_SET | OCL_COMPLEX)
#define FLOAT_SET  OCL_FLOATS

#define OCL_POINTWISE_CORE(X)                                                                         \
  X(UNARY, abs, ABS, NUMBER_SET, 0, "ABS(a)")                                                         \
  X(UNARY, neg, NEG, NUMBER_SET | OCL_COMPLEX, 0, "NEG(a)")                                           \
  X(UNARY, sign, SIGN, REAL_SET, 0, "SIGN(a)")                                                        \
  X(UNARY, relu, RELU, NUMBER_SET, 0, "a <= (VT)0 ? (VT)0 : a")                                       \
  X(UNARY, floor, FLOOR, NUMBER_SET, 0, "FLOOR(a)")                                                   \
  X(UNARY, ceil, CEIL, NUMBER_SET, 0, "CEIL(a)")                                                      \
  X(UNARY, trunc, TRUNC, NUMBER_SET, 0, "TRUNC(a)")                                                   \
  X(UNARY, round, ROUND, NUMBER_SET, 0, "ROUND(a)")                                                   \
  X(UNARY, exp, EXP, FLOAT_SET, FLOAT_RESULT, "exp(a)")                                               \
  X(UNARY, expm1, EXPM1, FLOAT_SET, FLOAT_RESULT, "expm1(a)")                                         \
  X(UNARY, log, LOG, FLOAT_SET, FLOAT_RESULT, "log(a)")                                               \
  X(UNARY, log1p, LOG1P, FLOAT_SET, FLOAT_RESULT, "log1p(a)")                                         \
  X(UNARY, log2, LOG2, FLOAT_SET, FLOAT_RESULT, "log2(a)")                                            \
  X(UNARY, log10, LOG10, FLOAT_SET, FLOAT_RESULT, "log10(a)")                                         \
  X(UNARY, sqrt, SQRT, FLOAT_SET, FLOAT_RESULT, "sqrt(a)")                                            \
  X(UNARY, rsqrt, RSQRT, FLOAT_SET, FLOAT_RESULT, "(VT)1 / sqrt(a)")                                  \
  X(UNARY, reciprocal, RECIPROCAL, FLOAT_SET, FLOAT_RESULT, "(VT)1 / a")                              \
  X(UNARY, sin, SIN, FLOAT_SET, FLOAT_RESULT, "apart_sin(a)")                                         \
  X(UNARY, cos, COS, FLOAT_SET, FLOAT_RESULT, "apart_cos(a)")                                         \
  X(UNARY, tan, TAN, FLOAT_SET, FLOAT_RESULT, "apart_tan(a)")                                         \
  X(UNARY, asin, ASIN, FLOAT_SET, FLOAT_RESULT, "asin(a)")                                            \
  X(UNARY, acos, ACOS, FLOAT_SET, FLOAT_RESULT, "acos(a)")                                            \
  X(UNARY, atan, ATAN, FLOAT_SET, FLOAT_RESULT, "atan(a)")                                            \
  X(UNARY, sinh, SINH, FLOAT_SET, FLOAT_RESULT, "sinh(a)")                                            \
  X(UNARY, cosh, COSH, FLOAT_SET, FLOAT_RESULT, "cosh(a)")                                            \
  X(UNARY, tanh, TANH, FLOAT_SET, FLOAT_RESULT, "tanh(a)")                                            \
  X(UNARY, asinh, ASINH, FLOAT_SET, FLOAT_RESULT, "asinh(a)")                                         \
  X(UNARY, acosh, ACOSH, FLOAT_SET, FLOAT_RESULT, "acosh(a)")                                         \
  X(UNARY, atanh, ATANH, FLOAT_SET, FLOAT_RESULT, "atanh(a)")                                         \
  X(UNARY, erf, ERF, FLOAT_SET, FLOAT_RESULT, "ERF(a)")                                               \
  X(UNARY, sigmoid, SIGMOID, FLOAT_SET, FLOAT_RESULT, "sigmoid(a)")                                   \
  X(GELU, gelu, GELU, FLOAT_SET, 0, "MODE == 2 ? gelu_tanh(a) : gelu_erf(a)")                         \
  X(ELU, elu, ELU, FLOAT_SET, 0, "a <= (VT)0 ? expm1(a * z) * x * y : a * y")                         \
  X(HARDTANH, hardtanh, HARDTANH, NUMBER_SET, 0, "MINIMUM(MAXIMUM(a, x), y)")                         \
  X(LEAKY, leaky_relu, LEAKY_RELU, FLOAT_SET, 0, "a > (VT)0 ? a : a * x")                             \
  X(UNARY, isnan, ISNAN, REAL_SET, BOOL_RESULT, "a != a")                                             \
  X(UNARY, isinf, ISINF, REAL_SET, BOOL_RESULT, "IS_INF(a)")                                          \
  X(UNARY, logical_not, LOGICAL_NOT, REAL_SET, BOOL_RESULT, "a == (VT)0")                             \
  X(UNARY, bitwise_not, BITWISE_NOT, WHOLE_SET, 0, "BITNOT(a)")                                       \
                                                                                                      \
  X(BINARY_ALPHA, add_Tensor, ADD_TENSOR, ARITH_SET, 0, "ADD(a, MUL(x, b))")                          \
  X(SCALAR_ALPHA, add_Scalar, ADD_SCALAR, ARITH_SET, 0, "ADD(a, MUL(y, x))")                          \
  X(BINARY_ALPHA, sub_Tensor, SUB_TENSOR, NUMBER_SET | OCL_COMPLEX, 0, "SUB(a, MUL(x, b))")           \
  X(SCALAR_ALPHA, sub_Scalar, SUB_SCALAR, NUMBER_SET | OCL_COMPLEX, 0, "SUB(a, MUL(y, x))")           \
  X(BINARY, mul_Tensor, MUL_TENSOR, ARITH_SET, 0, "MUL(a, b)")                                        \
  X(SCALAR, mul_Scalar, MUL_SCALAR, ARITH_SET, 0, "MUL(a, x)")                                        \
  X(BINARY, div_Tensor, DIV_TENSOR, FLOAT_SET, FLOAT_RESULT, "a / b")                                 \
  X(SCALAR, div_Scalar, DIV_SCALAR, FLOAT_SET, FLOAT_RESULT, "a / x")                                 \
  X(BINARY_MODE, div_Tensor_mode, DIV_TENSOR_MODE, NUMBER_SET, DIVIDES, "DIVIDE(a, b)")               \
  X(SCALAR_MODE, div_Scalar_mode, DIV_SCALAR_MODE, NUMBER_SET, DIVIDES, "DIVIDE(a, x)")               \
  X(BINARY, fmod_Tensor, FMOD_TENSOR, NUMBER_SET, DIVIDES, "FMOD(a, b)")                              \
  X(SCALAR, fmod_Scalar, FMOD_SCALAR, NUMBER_SET, DIVIDES, "FMOD(a, x)")                              \
  X(BINARY, remainder_Tensor, REMAINDER_TENSOR, NUMBER_SET, DIVIDES, "python_mod(a, b)")              \
  X(SCALAR, remainder_Scalar, REMAINDER_SCALAR, NUMBER_SET, DIVIDES, "python_mod(a, x)")              \
  X(POW, pow_Tensor_Tensor, POW_TENSOR_TENSOR, NUMBER_SET, 0, "POW(a, b)")                            \
  X(POW_EXPONENT, pow_Tensor_Scalar, POW_TENSOR_SCALAR, NUMBER_SET, 0, "POW(a, x)")                   \
  X(POW_BASE, pow_Scalar, POW_SCALAR, NUMBER_SET, 0, "POW(x, a)")                                     \
  X(BINARY, atan2, ATAN2, FLOAT_SET, FLOAT_RESULT, "atan2(a, b)")                                     \
  X(BINARY, maximum, MAXIMUM, REAL_SET, 0, "MAXIMUM(a, b)")                                           \
  X(BINARY, minimum, MINIMUM, REAL_SET, 0, "MINIMUM(a, b)")                                           \
  X(CLAMP, clamp, CLAMP, NUMBER_SET, 0, "CLAMP_NUMBERS(a)")                                           \
  X(CLAMP_TENSOR, clamp_Tensor, CLAMP_TENSOR, REAL_SET, 0, "CLAMP_TENSORS(a)")                        \
                                                                                                      \
  X(BINARY, eq_Tensor, EQ_TENSOR, REAL_SET, BOOL_RESULT, "a == b")                                    \
  X(BINARY, ne_Tensor, NE_TENSOR, REAL_SET, BOOL_RESULT, "a != b")                                    \
  X(BINARY, lt_Tensor, LT_TENSOR, REAL_SET, BOOL_RESULT, "a < b")                                     \
  X(BINARY, le_Tensor, LE_TENSOR, REAL_SET, BOOL_RESULT, "a <= b")                                    \
  X(BINARY, gt_Tensor, GT_TENSOR, REAL_SET, BOOL_RESULT, "a > b")                                     \
  X(BINARY, ge_Tensor, GE_TENSOR, REAL_SET, BOOL_RESULT, "a >= b")                                    \
  X(SCALAR, eq_Scalar, EQ_SCALAR, REAL_SET, BOOL_RESULT, "a == x")                                    \
  X(SCALAR, ne_Scalar, NE_SCALAR, REAL_SET, BOOL_RESULT, "a != x")                                    \
  X(SCALAR, lt_Scalar, LT_SCALAR, REAL_SET, BOOL_RESULT, "a < x")                                     \
  X(SCALAR, le_Scalar, LE_SCALAR, REAL_SET, BOOL_RESULT, "a <= x")                                    \
  X(SCALAR, gt_Scalar, GT_SCALAR, REAL_SET, BOOL_RESULT, "a > x")                                     \
  X(SCALAR, ge_Scalar, GE_SCALAR, REAL_SET, BOOL_RESULT, "a >= x")                                    \
  X(BINARY, logical_and, LOGICAL_AND, REAL_SET, BOOL_RESULT | LOGICAL, "(a != (VT)0) & (b != (VT)0)") \
  X(BINARY, logical_or, LOGICAL_OR, REAL_SET, BOOL_RESULT | LOGICAL, "(a != (VT)0) | (b != (VT)0)")   \
  X(BINARY, logical_xor, LOGICAL_XOR, REAL_SET, BOOL_RESULT | LOGICAL, "(a != (VT)0) ^ (b != (VT)0)") \
  X(BINARY, bitwise_and_Tensor, BITWISE_AND_TENSOR, WHOLE_SET, 0, "a & b")                            \
  X(BINARY, bitwise_or_Tensor, BITWISE_OR_TENSOR, WHOLE_SET, 0, "a | b")                              \
  X(BINARY, bitwise_xor_Tensor, BITWISE_XOR_TENSOR, WHOLE_SET, 0, "a ^ b")                            \
  X(SCALAR, bitwise_and_Scalar, BITWISE_AND_SCALAR, WHOLE_SET, 0, "a & x")                            \
  X(SCALAR, bitwise_or_Scalar, BITWISE_OR_SCALAR, WHOLE_SET, 0, "a | x")                              \
  X(SCALAR, bitwise_xor_Scalar, BITWISE_XOR_SCALAR, WHOLE_SET, 0, "a ^ x")                            \
  X(WHERE, where_self, WHERE_SELF, ARITH_SET, MASK_FIRST, "a ? b : c")

#define OCL_POINTWISE_TRAIN(X)                                                                                       \
  X(UNARY, silu, SILU, FLOAT_SET, 0, "a * sigmoid(a)")                                                               \
  X(UNARY, exp2, EXP2, FLOAT_SET, FLOAT_RESULT, "exp2(a)")                                                           \
  X(UNARY, erfc, ERFC, FLOAT_SET, FLOAT_RESULT, "erfc(a)")                                                           \
  X(UNARY, hardswish, HARDSWISH, FLOAT_SET, 0, "a * clamp(a + (VT)3, (VT)0, (VT)6) / (VT)6")                         \
  X(UNARY, hardsigmoid, HARDSIGMOID, FLOAT_SET, 0, "MINIMUM(MAXIMUM(a + (VT)3, (VT)0), (VT)6) / (VT)6")              \
  X(UNARY, sgn, SGN, ARITH_SET, 0, "SIGN(a)")                                                                        \
  X(UNARY, signbit, SIGNBIT, REAL_SET, BOOL_RESULT, "SIGNBIT(a)")                                                    \
  X(SOFTPLUS, softplus, SOFTPLUS, FLOAT_SET, 0, "a * x > y ? a : log1p(exp(a * x)) / x")                             \
  X(CLAMP_MIN, clamp_min, CLAMP_MIN, NUMBER_SET, 0, "MAXIMUM(a, x)")                                                 \
  X(CLAMP_MIN_TENSOR, clamp_min_Tensor, CLAMP_MIN_TENSOR, REAL_SET, 0, "MAXIMUM(a, b)")                              \
  X(BINARY, bitwise_left_shift_Tensor, BITWISE_LEFT_SHIFT_TENSOR, OCL_INTS, 0, "SHIFT_LEFT(a, b)")                   \
  X(BINARY, bitwise_right_shift_Tensor, BITWISE_RIGHT_SHIFT_TENSOR, OCL_INTS, 0, "SHIFT_RIGHT(a, b)")                \
  X(BINARY, floor_divide, FLOOR_DIVIDE, NUMBER_SET, DIVIDES, "floor_divide(a, b)")                                   \
  X(BINARY, copysign_Tensor, COPYSIGN_TENSOR, FLOAT_SET, FLOAT_RESULT, "copysign(a, b)")                             \
  X(BINARY, hypot, HYPOT, FLOAT_SET, 0, "hypot(a, b)")                                                               \
  X(ADDC, addcmul, ADDCMUL, NUMBER_SET, 0, "ADD(a, MUL(MUL(x, b), c))")                                              \
  X(ADDC, addcdiv, ADDCDIV, FLOAT_SET, 0, "a + x * b / c")                                                           \
  X(LERP, lerp_Scalar, LERP_SCALAR, FLOAT_SET, 0, "LERP(a, b, x)")                                                   \
  X(LERP_TENSOR, lerp_Tensor, LERP_TENSOR, FLOAT_SET, 0, "LERP(a, b, c)")                                            \
  X(MASKED_FILL, masked_fill_Scalar, MASKED_FILL_SCALAR, ARITH_SET, MASK_FIRST, "a ? x : b")                         \
  X(MASKED_FILL_TENSOR, masked_fill_Tensor, MASKED_FILL_TENSOR, ARITH_SET, MASK_FIRST, "a ? c : b")                  \
  X(OUTPUT_GRAD, sigmoid_backward, SIGMOID_BACKWARD, FLOAT_SET, 0, "a * ((VT)1 - b) * b")                            \
  X(OUTPUT_GRAD, tanh_backward, TANH_BACKWARD, FLOAT_SET, 0, "a * ((VT)1 - b * b)")                                  \
  X(THRESHOLD, threshold_backward, THRESHOLD_BACKWARD, NUMBER_SET, 0, "b <= x ? (VT)0 : a")                          \
  X(INPUT_GRAD, silu_backward, SILU_BACKWARD, FLOAT_SET, 0, "silu_grad(a, b)")                                       \
  X(GELU_GRAD, gelu_backward, GELU_BACKWARD, FLOAT_SET, 0, "MODE == 2 ? gelu_tanh_grad(a, b) : gelu_erf_grad(a, b)") \
  OCL_POINTWISE_MORE(X)

/* Activations of more kinds, their gradients, special functions. */
#define OCL_POINTWISE_MORE(X)                                                                                    \
  X(CELU, celu, CELU, FLOAT_SET, 0, "a <= (VT)0 ? expm1(a / x) * x : a")                                         \
  X(UNARY, mish, MISH, FLOAT_SET, SPECIAL, "a * mish_gate(a)")                                                   \
  X(REPLACE, threshold, THRESHOLD, NUMBER_SET, 0, "a <= x ? y : a")                                              \
  X(SHRINK, hardshrink, HARDSHRINK, FLOAT_SET, 0, "(a >= -x) & (a <= x) ? (VT)0 : a")                            \
  X(SHRINK, softshrink, SOFTSHRINK, FLOAT_SET, 0, "a > x ? a - x : a < -x ? a + x : a * (VT)0")                  \
  X(PRELU, prelu_kernel, PRELU_KERNEL, FLOAT_SET, 0, "a > (VT)0 ? a : b * a")                                    \
  X(LOG_SIGMOID, log_sigmoid_forward, LOG_SIGMOID_FORWARD, FLOAT_SET, 0,                                         \
    TWO("MINIMUM(a, (VT)0) - log1p(exp(-fabs(a)))", "exp(-fabs(a))"))                                            \
  X(ELU_GRAD, elu_backward, ELU_BACKWARD, FLOAT_SET, 0,                                                          \
    "b <= (VT)0 ? a * z * (MODE ? b + x * y : x * y * exp(b * z)) : a * y")                                      \
  X(HARDTANH_GRAD, hardtanh_backward, HARDTANH_BACKWARD, FLOAT_SET, 0, "(b <= x) | (b >= y) ? (VT)0 : a")        \
  X(LEAKY_GRAD, leaky_relu_backward, LEAKY_RELU_BACKWARD, FLOAT_SET, 0, "b > (VT)0 ? a : a * x")                 \
  X(INPUT_GRAD, hardswish_backward, HARDSWISH_BACKWARD, FLOAT_SET, 0,                                            \
    "b <= (VT)(-3) ? (VT)0 : b < (VT)3 ? a * (b / (VT)3 + (VT)0.5f) : a")                                        \
  X(INPUT_GRAD, hardsigmoid_backward, HARDSIGMOID_BACKWARD, FLOAT_SET, 0,                                        \
    "(b > (VT)(-3)) & (b < (VT)3) ? a / (VT)6 : (VT)0")                                                          \
  X(SOFTPLUS_GRAD, softplus_backward, SOFTPLUS_BACKWARD, FLOAT_SET, 0, "b * x > y ? a : a * sigmoid(b * x)")     \
  X(LOG_SIGMOID_GRAD, log_sigmoid_backward, LOG_SIGMOID_BACKWARD, FLOAT_SET, 0,                                  \
    "a * ((b < (VT)0 ? (VT)1 : c) / ((VT)1 + c))")                                                               \
  X(INPUT_GRAD, mish_backward, MISH_BACKWARD, FLOAT_SET, SPECIAL, "a * mish_slope(b, sigmoid(b))")               \
  X(HARDSHRINK_GRAD, hardshrink_backward, HARDSHRINK_BACKWARD, FLOAT_SET, 0, "(b >= -x) & (b <= x) ? (VT)0 : a") \
  X(SHRINK_GRAD, softshrink_backward, SOFTSHRINK_BACKWARD, FLOAT_SET, 0, "(b >= -x) & (b <= x) ? (VT)0 : a")     \
  X(PRELU_GRAD, prelu_kernel_backward, PRELU_KERNEL_BACKWARD, FLOAT_SET, 0,                                      \
    TWO("b > (VT)0 ? a : c * a", "b > (VT)0 ? (VT)0 : b * a"))                                                   \
  X(UNARY, isneginf, ISNEGINF, REAL_SET, BOOL_RESULT | SPECIAL, "IS_INFINITE(a, -)")                             \
  X(UNARY, isposinf, ISPOSINF, REAL_SET, BOOL_RESULT | SPECIAL, "IS_INFINITE(a, +)")                             \
  X(NAN_TO_NUM, nan_to_num, NAN_TO_NUM, ARITH_SET, SPECIAL, "MADE_FINITE(a)")                                    \
  X(BINARY, xlogy_Tensor, XLOGY_TENSOR, FLOAT_SET, FLOAT_RESULT, "b != b ? b : a == (VT)0 ? (VT)0 : a * log(b)") \
  X(LOGIT, logit, LOGIT, FLOAT_SET, FLOAT_RESULT | SPECIAL, "logit(KEPT_OFF(a, x))")                             \
  X(LOGIT_GRAD, logit_backward, LOGIT_BACKWARD, FLOAT_SET, SPECIAL, "LOGIT_SLOPE(a, b, x)")                      \
  X(UNARY, lgamma, LGAMMA, FLOAT_SET, FLOAT_RESULT | SPECIAL, "log_gamma(a)")                                    \
  X(UNARY, digamma, DIGAMMA, FLOAT_SET, FLOAT_RESULT | SPECIAL, "digamma(a)")                                    \
  X(POLYGAMMA, polygamma, POLYGAMMA, FLOAT_SET, FLOAT_RESULT | SPECIAL, "polygamma(a)")                          \
  X(BINARY, logaddexp, LOGADDEXP, FLOAT_SET, SPECIAL, "add_exponentials(a, b, (VT)1)")                           \
  X(BINARY, logaddexp2, LOGADDEXP2, FLOAT_SET, SPECIAL, "add_exponentials(a, b, (VT)K(0.69314718055994530942))") \
  X(UNARY, frac, FRAC, FLOAT_SET, 0, "a - trunc(a)")                                                             \
  X(HEAVISIDE, heaviside, HEAVISIDE, REAL_SET, 0, "a == (VT)0 ? b : a > (VT)0 ? (VT)1 : (VT)0")                  \
  X(UNARY, sinc, SINC, FLOAT_SET, FLOAT_RESULT | SPECIAL, "sinc(a)")                                             \
  X(UNARY, erfinv, ERFINV, FLOAT_SET, FLOAT_RESULT | SPECIAL, "erfinv(a)")

/* Slots of parts.c, which hands in halves of a tensor, or real and imaginary parts, as operands. */
#define OCL_POINTWISE_PARTS(X)                                                       \
  X(GATE, glu, GLU, FLOAT_SET, 0, "a * sigmoid(b)")                                  \
  X(PARTS3, glu_backward, GLU_BACKWARD, FLOAT_SET, SPECIAL,                          \
    TWO("c * sigmoid(b)", "c * a * sigmoid_slope(sigmoid(b))"))                      \
  X(PARTS2, polar, POLAR, FLOAT_SET, 0, TWO("a * apart_cos(b)", "a * apart_sin(b)")) \
  X(UNARY, angle, ANGLE, FLOAT_SET, FLOAT_RESULT, "a != a ? a : a < (VT)0 ? (VT)K(3.1415926535897932385) : (VT)0")

/* Whose slot is .complex_, since complex is a word of C. */
#define OCL_POINTWISE_COMPLEX(X) X(PARTS2, complex, COMPLEX, FLOAT_SET, 0, TWO("a", "b"))

/* Slots of copy.c, which takes a shorter way where memory is one run, and else comes here. */
#define OCL_POINTWISE_COPY(X)                          \
  X(UNARY, to_copy, TO_COPY, ARITH_SET, CAST, "a")     \
  X(UNARY, clone, CLONE, ARITH_SET, CAST, "a")         \
  X(COPY, copy, COPY, ARITH_SET, CAST, "a")            \
  X(FILL, fill_Scalar, FILL_SCALAR, ARITH_SET, 0, "x") \
  X(FULL, full, FULL, ARITH_SET, 0, "x")               \
  X(FULL, full_like, FULL_LIKE, ARITH_SET, 0, "x")

#endif
