/* Pointwise ops: one row an op. Shapes broadcast, strides are TensorIterator's; a row says how dtypes promote, what is
 * refused, and which gradient there is. The forms with a number for a tensor decompose into the tensor form, which
 * takes numbers. */
#include "ops/pointwise/pointwise.h"

#include <math.h>

#include "ops/core/families.h"

typedef struct pw_rule {
  pw_promo promo;
  uint32_t refuse;
  uint32_t tensor_form; /* X.Scalar: the op it is with a number in the tensor's place */
  op_infer_fn check;    /* further conditions */
} pw_rule;

#define A0 OP_SAVE_ARG(0)
#define A1 OP_SAVE_ARG(1)
#define A2 OP_SAVE_ARG(2)
#define R0 OP_SAVE_OUT(0)

/* op, roles, promotion, refused (and strides), tensor form, check, gradient, what it saves */
#define POINTWISE_OPS(X)                                                                                               \
  X(ABS, "b", PW_REAL, PW_NO_BOOL | PW_EXACT_OUT, 0, NULL, pw_vjp_abs, A0)                                             \
  X(NEG, "b", PW_SAME, PW_NO_BOOL | PW_EXACT_OUT, 0, NULL, pw_vjp_neg, 0)                                              \
  X(EXP, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_exp, R0)                                                                    \
  X(LOG, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_log, A0)                                                                    \
  X(SQRT, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_sqrt, R0)                                                                  \
  X(RSQRT, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_rsqrt, R0)                                                                \
  X(SIN, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_sin, A0)                                                                    \
  X(COS, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_cos, A0)                                                                    \
  X(TANH, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_tanh, R0)                                                                  \
  X(SIGMOID, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_sigmoid, R0)                                                            \
  X(ERF, "b", PW_FLOAT, PW_NO_COMPLEX, 0, NULL, pw_vjp_erf, A0)                                                        \
  X(RECIPROCAL, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_reciprocal, R0)                                                      \
  X(RELU, "b", PW_SAME, PW_NO_BOOL | PW_NO_COMPLEX, 0, NULL, pw_vjp_relu, R0)                                          \
  X(GELU, "b", PW_SAME, PW_NO_BOOL | PW_NO_INT | PW_NO_COMPLEX | PW_EXACT_OUT, 0, NULL, pw_vjp_gelu, A0)               \
  X(SILU, "b", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, NULL, pw_vjp_silu, A0)                                              \
  X(FLOOR, "b", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL | PW_EXACT_OUT, 0, NULL, pw_vjp_zero, 0)                           \
  X(ISNAN, "c", PW_LOGICAL, 0, 0, NULL, NULL, 0)                                                                       \
  X(LOGICAL_NOT, "c", PW_LOGICAL, 0, 0, NULL, NULL, 0)                                                                 \
  X(LOGICAL_AND, "cc", PW_LOGICAL, 0, 0, NULL, NULL, 0)                                                                \
  X(BITWISE_NOT, "b", PW_SAME, PW_NO_FLOAT | PW_NO_COMPLEX, 0, NULL, NULL, 0)                                          \
  X(BITWISE_AND_TENSOR, "bb", PW_SAME, PW_NO_FLOAT | PW_NO_COMPLEX, 0, NULL, NULL, 0)                                  \
  X(ADD_TENSOR, "bb", PW_SAME, 0, 0, check_alpha, pw_vjp_add, 0)                                                       \
  X(SUB_TENSOR, "bb", PW_SAME, 0, 0, check_sub, pw_vjp_sub, 0)                                                         \
  X(MUL_TENSOR, "bb", PW_SAME, 0, 0, NULL, pw_vjp_mul, A0 | A1)                                                        \
  X(DIV_TENSOR, "bb", PW_FLOAT, 0, 0, NULL, pw_vjp_div, A0 | A1)                                                       \
  X(DIV_TENSOR_MODE, "bb", PW_SAME, 0, 0, check_div_mode, pw_vjp_div_mode, A0 | A1)                                    \
  X(ADD_SCALAR, "b", PW_SAME, 0, GRAFT_OP_ADD_TENSOR, check_alpha, pw_vjp_add, 0)                                      \
  X(SUB_SCALAR, "b", PW_SAME, 0, GRAFT_OP_SUB_TENSOR, check_sub, pw_vjp_sub, 0)                                        \
  X(MUL_SCALAR, "b", PW_SAME, 0, GRAFT_OP_MUL_TENSOR, NULL, pw_vjp_mul, 0)                                             \
  X(DIV_SCALAR, "b", PW_FLOAT, 0, GRAFT_OP_DIV_TENSOR, NULL, pw_vjp_div, 0)                                            \
  X(POW_TENSOR_TENSOR, "bb", PW_SAME, 0, 0, check_pow, pw_vjp_pow_tensor, A0 | A1 | R0)                                \
  X(POW_TENSOR_SCALAR, "b", PW_SAME, 0, 0, check_pow, pw_vjp_pow_scalar, A0)                                           \
  X(POW_SCALAR, "b", PW_SAME, 0, 0, check_pow, pw_vjp_pow_base, A1 | R0)                                               \
  X(MAXIMUM, "bb", PW_SAME, PW_NO_COMPLEX, 0, NULL, pw_vjp_maximum, A0 | A1)                                           \
  X(MINIMUM, "bb", PW_SAME, PW_NO_COMPLEX, 0, NULL, pw_vjp_minimum, A0 | A1)                                           \
  X(FMOD_TENSOR, "bb", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL, 0, NULL, pw_vjp_fmod, A0 | A1)                             \
  X(WHERE_SELF, "cbb", PW_SAME, PW_EXACT_OUT, 0, check_where, pw_vjp_where, A0)                                        \
  X(MASKED_FILL_SCALAR, "bc", PW_SAME, 0, 0, check_masked_fill, pw_vjp_masked_fill, A1)                                \
  X(MASKED_FILL_TENSOR, "bcb", PW_SAME, 0, 0, check_masked_fill, pw_vjp_masked_fill, A1)                               \
  X(CLAMP, "b", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL, 0, check_clamp, pw_vjp_clamp, A0)                                 \
  X(EQ_TENSOR, "bb", PW_BOOL, 0, 0, NULL, NULL, 0)                                                                     \
  X(NE_TENSOR, "bb", PW_BOOL, 0, 0, NULL, NULL, 0)                                                                     \
  X(LT_TENSOR, "bb", PW_BOOL, PW_NO_COMPLEX, 0, NULL, NULL, 0)                                                         \
  X(LE_TENSOR, "bb", PW_BOOL, PW_NO_COMPLEX, 0, NULL, NULL, 0)                                                         \
  X(GT_TENSOR, "bb", PW_BOOL, PW_NO_COMPLEX, 0, NULL, NULL, 0)                                                         \
  X(GE_TENSOR, "bb", PW_BOOL, PW_NO_COMPLEX, 0, NULL, NULL, 0)                                                         \
  X(EQ_SCALAR, "b", PW_BOOL, 0, GRAFT_OP_EQ_TENSOR, NULL, NULL, 0)                                                     \
  X(NE_SCALAR, "b", PW_BOOL, 0, GRAFT_OP_NE_TENSOR, NULL, NULL, 0)                                                     \
  X(LT_SCALAR, "b", PW_BOOL, PW_NO_COMPLEX, GRAFT_OP_LT_TENSOR, NULL, NULL, 0)                                         \
  X(LE_SCALAR, "b", PW_BOOL, PW_NO_COMPLEX, GRAFT_OP_LE_TENSOR, NULL, NULL, 0)                                         \
  X(GT_SCALAR, "b", PW_BOOL, PW_NO_COMPLEX, GRAFT_OP_GT_TENSOR, NULL, NULL, 0)                                         \
  X(GE_SCALAR, "b", PW_BOOL, PW_NO_COMPLEX, GRAFT_OP_GE_TENSOR, NULL, NULL, 0)                                         \
  X(ADDCMUL, "bbb", PW_SAME, PW_NO_BOOL, 0, NULL, pw_vjp_addcmul, A1 | A2)                                             \
  X(ADDCDIV, "bbb", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, check_addcdiv, pw_vjp_addcdiv, A1 | A2)                        \
  X(LERP_SCALAR, "bb", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, check_lerp, pw_vjp_lerp, 0)                                 \
  X(TANH_BACKWARD, "bb", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, NULL, pw_vjp_tanh_backward, A0 | A1)                      \
  X(SIGMOID_BACKWARD, "bb", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, NULL, pw_vjp_sigmoid_backward, A0 | A1)                \
  X(THRESHOLD_BACKWARD, "bb", PW_SAME, PW_NO_BOOL | PW_NO_COMPLEX | PW_SECOND_FIRST, 0, NULL,                          \
    pw_vjp_threshold_backward, A1)                                                                                     \
  X(GELU_BACKWARD, "bb", PW_SAME, PW_NO_BOOL | PW_NO_INT | PW_NO_COMPLEX, 0, NULL, pw_vjp_gelu_backward, A0 | A1)      \
  X(SILU_BACKWARD, "bb", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, NULL, pw_vjp_silu_backward, A0 | A1)                      \
  X(ELU, "b", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_elu, A0)                                                             \
  X(CELU, "b", PW_SAME, PW_FLOATS, 0, check_celu, pw_vjp_celu, A0)                                                     \
  X(HARDTANH, "b", PW_SAME, PW_NO_BOOL | PW_NO_COMPLEX | PW_LIKE, 0, check_hardtanh, pw_vjp_hardtanh, A0)              \
  X(LEAKY_RELU, "b", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_leaky_relu, A0)                                               \
  X(HARDSWISH, "b", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_hardswish, A0)                                                 \
  X(HARDSIGMOID, "b", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_hardsigmoid, A0)                                             \
  X(SOFTPLUS, "b", PW_SAME, PW_FLOATS | PW_EXACT_OUT, 0, NULL, pw_vjp_softplus, A0)                                    \
  X(MISH, "b", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_mish, A0)                                                           \
  X(THRESHOLD, "b", PW_SAME, PW_NO_BOOL | PW_NO_COMPLEX, 0, check_threshold, pw_vjp_threshold, A0)                     \
  X(HARDSHRINK, "b", PW_SAME, PW_FLOATS | PW_EXACT_OUT, 0, NULL, pw_vjp_hardshrink, A0)                                \
  X(SOFTSHRINK, "b", PW_SAME, PW_FLOATS | PW_EXACT_OUT, 0, check_softshrink, pw_vjp_softshrink, A0)                    \
  X(PRELU_KERNEL, "bb", PW_SAME, PW_FLOATS | PW_LIKE, 0, check_one_dtype, pw_vjp_prelu, A0 | A1)                       \
  X(ELU_BACKWARD, "bb", PW_SAME, PW_FLOATS, 0, check_elu_backward, pw_vjp_elu_backward, A0 | OP_SAVE_ARG(5))           \
  X(HARDTANH_BACKWARD, "bb", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_hardtanh_backward, A1)                                \
  X(LEAKY_RELU_BACKWARD, "bb", PW_SAME, PW_FLOATS | PW_SECOND_FIRST, 0, check_leaky_relu_backward,                     \
    pw_vjp_leaky_relu_backward, A1)                                                                                    \
  X(HARDSWISH_BACKWARD, "bb", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_hardswish_backward, A0 | A1)                         \
  X(HARDSIGMOID_BACKWARD, "bb", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_hardsigmoid_backward, A1)                          \
  X(SOFTPLUS_BACKWARD, "bb", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_softplus_backward, A0 | A1)                           \
  X(LOG_SIGMOID_BACKWARD, "bbb", PW_SAME, PW_FLOATS | PW_LIKE | PW_SECOND_FIRST, 0, NULL, pw_vjp_log_sigmoid_backward, \
    A0 | A1 | A2)                                                                                                      \
  X(MISH_BACKWARD, "bb", PW_SECOND, PW_FLOATS, 0, check_second, pw_vjp_mish_backward, A0 | A1)                         \
  X(HARDSHRINK_BACKWARD, "bb", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_hardshrink_backward, A1)                            \
  X(SOFTSHRINK_BACKWARD, "bb", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_softshrink_backward, A1)                            \
  X(ISNEGINF, "c", PW_LOGICAL, PW_NO_COMPLEX | PW_EXACT_OUT, 0, NULL, NULL, 0)                                         \
  X(ISPOSINF, "c", PW_LOGICAL, PW_NO_COMPLEX | PW_EXACT_OUT, 0, NULL, NULL, 0)                                         \
  X(NAN_TO_NUM, "b", PW_SAME, PW_LIKE | PW_EXACT_OUT, 0, NULL, pw_vjp_nan_to_num, A0)                                  \
  X(XLOGY_TENSOR, "bb", PW_FLOAT, PW_NO_COMPLEX, 0, NULL, pw_vjp_xlogy, A0 | A1)                                       \
  X(LOGIT, "b", PW_FLOAT, PW_NO_COMPLEX, 0, NULL, pw_vjp_logit, A0)                                                    \
  X(LOGIT_BACKWARD, "bb", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_logit_backward, A0 | A1)                                 \
  X(LGAMMA, "b", PW_FLOAT, PW_NO_COMPLEX, 0, NULL, pw_vjp_lgamma, A0)                                                  \
  X(DIGAMMA, "b", PW_FLOAT, PW_NO_COMPLEX, 0, NULL, pw_vjp_digamma, A0)                                                \
  X(POLYGAMMA, "b", PW_FLOAT, PW_NO_COMPLEX, 0, check_polygamma, pw_vjp_polygamma, A1)                                 \
  X(POLAR, "bb", PW_COMPLEX, PW_FLOATS, 0, check_parts, pw_vjp_polar, A0 | A1)                                         \
  X(COMPLEX, "bb", PW_COMPLEX, PW_FLOATS, 0, check_parts, pw_vjp_complex, 0)                                           \
  X(ANGLE, "b", PW_ANGLE, 0, 0, NULL, pw_vjp_angle, A0)                                                                \
  X(LOGADDEXP, "bb", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, NULL, pw_vjp_logaddexp, A0 | A1)                              \
  X(LOGADDEXP2, "bb", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_logaddexp2, A0 | A1)                                         \
  X(FRAC, "b", PW_SAME, PW_FLOATS | PW_EXACT_OUT, 0, NULL, pw_vjp_frac, 0)                                             \
  X(HEAVISIDE, "bb", PW_SAME, PW_NO_COMPLEX | PW_EXACT_OUT, 0, check_one_dtype, NULL, 0)                               \
  X(SINC, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_sinc, A0 | R0)                                                             \
  X(ERFINV, "b", PW_FLOAT, PW_NO_COMPLEX, 0, NULL, pw_vjp_erfinv, R0)                                                  \
  X(ACOS, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_acos, A0)                                                                  \
  X(ACOSH, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_acosh, A0)                                                                \
  X(ASIN, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_asin, A0)                                                                  \
  X(ASINH, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_asinh, A0)                                                                \
  X(ATAN, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_atan, A0)                                                                  \
  X(ATANH, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_atanh, A0)                                                                \
  X(COSH, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_cosh, A0)                                                                  \
  X(SINH, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_sinh, A0)                                                                  \
  X(TAN, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_tan, R0)                                                                    \
  X(EXP2, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_exp2, R0)                                                                  \
  X(EXPM1, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_expm1, R0)                                                                \
  X(LOG1P, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_log1p, A0)                                                                \
  X(LOG2, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_log2, A0)                                                                  \
  X(LOG10, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_log10, A0)                                                                \
  X(ERFC, "b", PW_FLOAT, PW_NO_COMPLEX, 0, NULL, pw_vjp_erfc, A0)                                                      \
  X(ATAN2, "bb", PW_FLOAT, PW_NO_COMPLEX, 0, NULL, pw_vjp_atan2, A0 | A1)                                              \
  X(HYPOT, "bb", PW_SAME, PW_FLOATS, 0, NULL, pw_vjp_hypot, A0 | A1 | R0)                                              \
  X(COPYSIGN_TENSOR, "bb", PW_FLOAT, PW_NO_COMPLEX, 0, NULL, pw_vjp_copysign, A0 | R0)                                 \
  X(CEIL, "b", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL | PW_EXACT_OUT, 0, NULL, pw_vjp_zero, 0)                            \
  X(TRUNC, "b", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL | PW_EXACT_OUT, 0, NULL, pw_vjp_zero, 0)                           \
  X(ROUND, "b", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL | PW_EXACT_OUT, 0, NULL, pw_vjp_zero, 0)                           \
  X(SIGN, "b", PW_SAME, PW_NO_COMPLEX | PW_EXACT_OUT, 0, NULL, pw_vjp_zero, 0)                                         \
  X(SGN, "b", PW_SAME, PW_EXACT_OUT, 0, NULL, pw_vjp_sgn, A0 | R0)                                                     \
  X(SIGNBIT, "c", PW_LOGICAL, PW_NO_COMPLEX | PW_EXACT_OUT, 0, NULL, NULL, 0)                                          \
  X(ISINF, "c", PW_LOGICAL, 0, 0, NULL, NULL, 0)                                                                       \
  X(LOGICAL_OR, "cc", PW_LOGICAL, 0, 0, NULL, NULL, 0)                                                                 \
  X(LOGICAL_XOR, "cc", PW_LOGICAL, 0, 0, NULL, NULL, 0)                                                                \
  X(BITWISE_OR_TENSOR, "bb", PW_SAME, PW_NO_FLOAT | PW_NO_COMPLEX, 0, NULL, NULL, 0)                                   \
  X(BITWISE_XOR_TENSOR, "bb", PW_SAME, PW_NO_FLOAT | PW_NO_COMPLEX, 0, NULL, NULL, 0)                                  \
  X(BITWISE_AND_SCALAR, "b", PW_SAME, PW_NO_FLOAT | PW_NO_COMPLEX, GRAFT_OP_BITWISE_AND_TENSOR, NULL, NULL, 0)         \
  X(BITWISE_OR_SCALAR, "b", PW_SAME, PW_NO_FLOAT | PW_NO_COMPLEX, GRAFT_OP_BITWISE_OR_TENSOR, NULL, NULL, 0)           \
  X(BITWISE_XOR_SCALAR, "b", PW_SAME, PW_NO_FLOAT | PW_NO_COMPLEX, GRAFT_OP_BITWISE_XOR_TENSOR, NULL, NULL, 0)         \
  X(BITWISE_LEFT_SHIFT_TENSOR, "bb", PW_SAME, PW_NO_FLOAT | PW_NO_COMPLEX | PW_NO_BOOL, 0, NULL, NULL, 0)              \
  X(BITWISE_RIGHT_SHIFT_TENSOR, "bb", PW_SAME, PW_NO_FLOAT | PW_NO_COMPLEX | PW_NO_BOOL, 0, NULL, NULL, 0)             \
  X(REMAINDER_TENSOR, "bb", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL, 0, NULL, pw_vjp_remainder, A0 | A1)                   \
  X(REMAINDER_SCALAR, "b", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL, GRAFT_OP_REMAINDER_TENSOR, NULL, pw_vjp_remainder, 0)  \
  X(FMOD_SCALAR, "b", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL, GRAFT_OP_FMOD_TENSOR, NULL, pw_vjp_fmod, 0)                 \
  X(FLOOR_DIVIDE, "bb", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL, 0, NULL, NULL, 0)                                         \
  X(DIV_SCALAR_MODE, "b", PW_SAME, 0, GRAFT_OP_DIV_TENSOR_MODE, check_div_mode, pw_vjp_div_mode, 0)                    \
  X(CLAMP_TENSOR, "bbb", PW_SAME, PW_NO_COMPLEX, 0, check_clamp_tensor, pw_vjp_clamp_tensor, A0 | A1 | A2)             \
  X(CLAMP_MIN, "b", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL, 0, NULL, pw_vjp_clamp_min, A0)                                \
  X(CLAMP_MIN_TENSOR, "bb", PW_SAME, PW_NO_COMPLEX, 0, NULL, pw_vjp_clamp_min, A0 | A1)                                \
  X(LERP_TENSOR, "bbb", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, check_lerp_tensor, pw_vjp_lerp_tensor, A0 | A1 | A2)

/* --- further conditions --- */

static bool is_number_of(const op_call *c, int arg, graft_dtype dtype) {
  return c->args[arg].kind == GRAFT_VALUE_SCALAR && c->args[arg].as.scalar.dtype == dtype;
}

static graft_status check_alpha(op_call *c) {
  graft_scalar alpha = op_scalar(c, 2);
  if (alpha.dtype == GRAFT_BOOL && c->compute != GRAFT_BOOL) {
    return op_error(c, "alpha is a bool; that is for bool tensors only (%s)", op_show_tensors(c));
  }
  if (dt_is_integral(c->compute, true) && !dt_is_integral(alpha.dtype, true)) {
    return op_error(c, "alpha must be an integer for integer operands (%s)", op_show_tensors(c));
  }
  return GRAFT_OK;
}

static bool is_bool(const op_call *c, int arg) {
  return is_number_of(c, arg, GRAFT_BOOL) || (op_tensor(c, arg) && op_tensor(c, arg)->dtype == GRAFT_BOOL);
}

static graft_status check_sub(op_call *c) {
  if (is_bool(c, 0) || is_bool(c, 1)) {
    return op_error(c, "subtraction with bool is not defined (%s); use logical_xor or bitwise_not", op_show_tensors(c));
  }
  return check_alpha(c);
}

static graft_status check_div_mode(op_call *c) {
  if (op_absent(c, 2)) {
    if (dt_is_integral(c->compute, true)) c->compute = c->out[0].dtype = dt_default();
    return GRAFT_OK;
  }
  if (dt_is_complex(c->compute))
    return op_error(c, "rounding is not defined for complex operands (%s)", op_show_tensors(c));
  if (c->compute == GRAFT_BOOL) return op_error(c, "rounded division is not defined for bool (%s)", op_show_tensors(c));
  return GRAFT_OK;
}

static graft_status check_pow(op_call *c) {
  graft_scalar exponent = op_scalar(c, 1);
  if (c->compute == GRAFT_BOOL) return op_error(c, "pow is not defined for bool (%s)", op_show_tensors(c));
  if (dt_is_integral(c->compute, true) && exponent.dtype && dt_scalar_value(&exponent).re < 0) {
    return op_error(c, "an integer to a negative integer power is not an integer");
  }
  return GRAFT_OK;
}

static graft_status check_where(op_call *c) {
  graft_tensor *condition = op_tensor(c, 0);
  if (!condition || (condition->dtype != GRAFT_BOOL && condition->dtype != GRAFT_U8))
    return op_refuse_dtype(c, 0, "bool");
  return GRAFT_OK;
}

/* The value becomes self's dtype, whatever it is. */
static graft_status check_masked_fill(op_call *c) {
  const graft_tensor *mask = op_tensor(c, 1), *value = op_tensor(c, 2);
  if (!mask || mask->dtype != GRAFT_BOOL) return op_refuse_dtype(c, 1, "bool");
  if (value && value->ndim) return op_refuse_dtype(c, 2, "one number, of rank 0");
  if (value && dt_is_complex(value->dtype) && !dt_is_complex(c->compute)) {
    return op_error(c, "a complex value does not fit into real self (%s)", op_show_tensors(c));
  }
  return op_number_fits(c, 2, c->compute);
}

static graft_status check_clamp(op_call *c) {
  if (op_absent(c, 1) && op_absent(c, 2)) return op_error(c, "at least one of min and max must be given");
  return GRAFT_OK;
}

/* With one bound it is a maximum or a minimum, which bools have too. */
static graft_status check_clamp_tensor(op_call *c) {
  if (c->compute == GRAFT_BOOL && !op_absent(c, 1) && !op_absent(c, 2)) {
    return op_error(c, "not defined between two bounds for bool operands (%s)", op_show_tensors(c));
  }
  return check_clamp(c);
}

static graft_status check_addcdiv(op_call *c) {
  const graft_tensor *numerator = op_tensor(c, 1), *divisor = op_tensor(c, 2);
  if (numerator && divisor && dt_is_integral(numerator->dtype, true) && dt_is_integral(divisor->dtype, true)) {
    return op_error(c, "integer division is not defined here (%s); convert tensor1 or tensor2 to floating",
                    op_show_tensors(c));
  }
  return GRAFT_OK;
}

static graft_status check_lerp(op_call *c) {
  if (op_tensor(c, 0) && op_tensor(c, 1) && op_tensor(c, 0)->dtype != op_tensor(c, 1)->dtype) {
    return op_error(c, "self and end differ in dtype (%s)", op_show_tensors(c));
  }
  return GRAFT_OK;
}

/* A weight of rank 0 is brought to the others' dtype. */
static graft_status check_lerp_tensor(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0), *weight = op_tensor(c, 2);
  if (self && weight && weight->ndim && weight->dtype != self->dtype) {
    return op_error(c, "self and weight differ in dtype (%s)", op_show_tensors(c));
  }
  return check_lerp(c);
}

static graft_status check_celu(op_call *c) {
  graft_scalar alpha = op_scalar(c, 1);
  return dt_scalar_value(&alpha).re == 0 ? op_error(c, "alpha is 0; expected another number") : GRAFT_OK;
}

static graft_status check_hardtanh(op_call *c) {
  graft_scalar low = op_scalar(c, 1), high = op_scalar(c, 2);
  bool negative = dt_scalar_value(&low).re <= -1 || dt_scalar_value(&high).re <= -1;
  if (!dt_is_unsigned(c->compute) || !negative) return GRAFT_OK;
  return op_error(c, "min_val and max_val must not be negative for an unsigned dtype (%s)", op_show_tensors(c));
}

static graft_status check_threshold(op_call *c) {
  graft_status status = op_number_fits(c, 1, c->compute);
  return status ? status : op_number_fits(c, 2, c->compute);
}

static graft_status check_softshrink(op_call *c) {
  graft_scalar lambda = op_scalar(c, 1);
  long double width = dt_scalar_value(&lambda).re;
  return width >= 0 ? GRAFT_OK : op_error(c, "lambd is %Lg; expected 0 or more", width);
}

/* From the result of an in-place forward the sign of its input must be seen. */
static graft_status check_slope(op_call *c, int is_result, int slope) {
  graft_scalar number = op_scalar(c, slope);
  if (!op_bool(c, is_result) || dt_scalar_value(&number).re >= 0) return GRAFT_OK;
  return op_error(c, "a negative %s loses the sign that the gradient is found by; call the op out of place",
                  c->schema->args[slope].name);
}
static graft_status check_elu_backward(op_call *c) {
  return check_slope(c, 4, 1);
}
static graft_status check_leaky_relu_backward(op_call *c) {
  return check_slope(c, 3, 2);
}

static graft_status check_polygamma(op_call *c) {
  return op_int(c, 0) >= 0 ? GRAFT_OK : op_error(c, "n is %lld; expected 0 or more", (long long)op_int(c, 0));
}

static graft_status check_one_dtype(op_call *c) {
  const graft_tensor *a = op_tensor(c, 0), *b = op_tensor(c, 1);
  return a && b && a->dtype == b->dtype ? GRAFT_OK : op_error(c, "expected one dtype (%s)", op_show_tensors(c));
}

/* Real and imaginary part, or modulus and angle. */
static graft_status check_parts(op_call *c) {
  graft_status status = check_one_dtype(c);
  if (status || !dt_is_half(c->compute)) return status;
  return op_fail(c, GRAFT_UNIMPLEMENTED, "there is no complex dtype of halves (%s)", op_show_tensors(c));
}

static graft_status check_second(op_call *c) {
  const graft_tensor *second = op_tensor(c, 1);
  return second && dt_is_float(second->dtype) ? GRAFT_OK : op_refuse_dtype(c, 1, "a floating dtype");
}

/* --- the rule --- */

#define RULE(op, roles, promo, refuse, form, check, vjp, saves) {promo, refuse, form, check},
static const pw_rule rules[] = {POINTWISE_OPS(RULE)};

static graft_status refuse(const op_call *c, uint32_t refused) {
  static const uint32_t bits[] = {
      [DT_BOOL] = PW_NO_BOOL, [DT_INTEGER] = PW_NO_INT, [DT_FLOAT] = PW_NO_FLOAT, [DT_COMPLEX] = PW_NO_COMPLEX};
  static const char *const names[] = {"bool", "integer", "floating", "complex"};
  dt_category category = dt_category_of(c->compute);
  if (!(refused & bits[category])) return GRAFT_OK;
  return op_error(c, "not defined for %s operands (%s)", names[category], op_show_tensors(c));
}

/* Of numbers only those in a tensor's place take part in promotion, and the Scalars that clamp and pow are about. */
static graft_dtype promoted(const op_call *c, const pw_rule *rule) {
  switch (c->schema->id) {
    case GRAFT_OP_MASKED_FILL_SCALAR:
    case GRAFT_OP_MASKED_FILL_TENSOR: return op_promote(c, 0, 1); /* self decides */
    case GRAFT_OP_POW_TENSOR_SCALAR:
    case GRAFT_OP_POW_SCALAR:
    case GRAFT_OP_CLAMP_MIN: return op_promote(c, 0, 2);
    case GRAFT_OP_CLAMP: return op_promote(c, 0, 3);
    case GRAFT_OP_WHERE_SELF: return op_promote_tensors(c, 1);
    default: return rule->tensor_form ? op_promote(c, 0, 2) : op_promote_tensors(c, 0);
  }
}

/* Scalars that do not promote (alpha, value, threshold, weight) must not be complex where the operands are real. */
static graft_status check_real_numbers(const op_call *c) {
  for (int i = 0; i < c->schema->nargs; i++) {
    bool complex_number = c->schema->args[i].kind == OPK_SCALAR && dt_is_complex(op_scalar(c, i).dtype);
    if (complex_number && !dt_is_complex(c->compute)) {
      return op_error(c, "%s is complex, but the operands are real (%s)", c->schema->args[i].name, op_show_tensors(c));
    }
  }
  return GRAFT_OK;
}

/* As PyTorch has it where it begins with empty_like(first) and the shape stays. */
static void keep_strides(op_call *c, const graft_tensor *first, graft_dtype dtype) {
  bool same = first && first->ndim == c->out[0].ndim;
  for (int32_t i = 0; same && i < first->ndim; i++) same = first->sizes[i] == c->out[0].sizes[i];
  if (same) op_out_like(c, 0, dtype, first);
}

static graft_status infer_pointwise(op_call *c) {
  const pw_rule *rule = &rules[c->def->extra];
  graft_dtype dtype = promoted(c, rule);
  if (!dtype) return op_error(c, "these dtypes do not promote to a common one: %s", op_show_tensors(c));
  c->compute = dtype;
  graft_status status = refuse(c, rule->refuse);
  if (status) return status;
  bool to_float = rule->promo == PW_FLOAT || rule->promo == PW_ANGLE;
  if (to_float && dt_is_integral(dtype, true)) c->compute = dtype = dt_default();
  c->out[0].dtype = dtype;
  if ((status = check_real_numbers(c))) return status;
  if (rule->check && (status = rule->check(c))) return status;
  dtype = rule->promo == PW_REAL || rule->promo == PW_ANGLE ? dt_real(c->compute) : c->compute;
  if (rule->promo == PW_SECOND) dtype = op_tensor(c, 1)->dtype;
  if (rule->promo == PW_COMPLEX) dtype = dt_complex(c->compute);
  if (rule->promo == PW_BOOL || rule->promo == PW_LOGICAL) dtype = GRAFT_BOOL;
  if (rule->promo == PW_LOGICAL) c->compute = GRAFT_DTYPE_NONE;
  status = op_out_broadcast(c, 0, dtype);
  bool contiguous = c->schema->id == GRAFT_OP_POW_SCALAR || c->schema->id == GRAFT_OP_MASKED_FILL_SCALAR ||
                    c->schema->id == GRAFT_OP_MASKED_FILL_TENSOR;
  if (!status && contiguous) { /* PyTorch asks for it there */
    tns_contiguous_strides(c->out[0].ndim, c->out[0].sizes, c->out[0].strides);
  }
  if (!status && rule->refuse & PW_LIKE) keep_strides(c, op_tensor(c, 0), dtype);
  return status;
}

/* X.Scalar(self, other, …) is X.Tensor(self, other, …): a tensor argument takes a number. */
static void decompose_scalar(fx *s, const op_call *c, graft_tensor **outs) {
  fx_call(s, rules[c->def->extra].tensor_form, c->args, c->schema->nargs, outs, 1);
}

enum {
#define INDEX(op, roles, promo, refuse, form, check, vjp, saves) PW_INDEX_##op,
  POINTWISE_OPS(INDEX)
};

#define DEF(op, roles_, promo, refuse, form, check, vjp_, saves_)                                          \
  {.op_id = GRAFT_OP_##op,                                                                                 \
   .roles = roles_,                                                                                        \
   .infer = infer_pointwise,                                                                               \
   .decompose = (form) ? decompose_scalar : NULL,                                                          \
   .vjp = vjp_,                                                                                            \
   .saves = saves_,                                                                                        \
   .flags = OP_ELEMENTWISE | ((form) ? OP_NO_WIDEN | OP_NUMBER_FORM : 0) |                                 \
            ((refuse)&PW_SECOND_FIRST ? OP_SECOND_FIRST : 0) | ((refuse)&PW_EXACT_OUT ? OP_EXACT_OUT : 0), \
   .reference = (form) ? NULL : ref_pointwise,                                                             \
   .extra = PW_INDEX_##op},
static const op_def defs[] = {POINTWISE_OPS(DEF)};
OP_TABLE(pointwise, defs)
