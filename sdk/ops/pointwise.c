/* Pointwise ops: one row an op. Shapes broadcast, strides are TensorIterator's; a row says how dtypes promote, what is
 * refused, and which gradient there is. The forms with a number for a tensor decompose into the tensor form, which
 * takes numbers. */
#include "ops/pointwise.h"

#include "ops/families.h"

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

/* op, roles, promotion, refused, tensor form, check, gradient, what it saves */
#define POINTWISE_OPS(X)                                                                                          \
  X(ABS, "b", PW_REAL, PW_NO_BOOL, 0, NULL, pw_vjp_abs, A0)                                                       \
  X(NEG, "b", PW_SAME, PW_NO_BOOL, 0, NULL, pw_vjp_neg, 0)                                                        \
  X(EXP, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_exp, R0)                                                               \
  X(LOG, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_log, A0)                                                               \
  X(SQRT, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_sqrt, R0)                                                             \
  X(RSQRT, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_rsqrt, R0)                                                           \
  X(SIN, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_sin, A0)                                                               \
  X(COS, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_cos, A0)                                                               \
  X(TANH, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_tanh, R0)                                                             \
  X(SIGMOID, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_sigmoid, R0)                                                       \
  X(ERF, "b", PW_FLOAT, PW_NO_COMPLEX, 0, NULL, pw_vjp_erf, A0)                                                   \
  X(RECIPROCAL, "b", PW_FLOAT, 0, 0, NULL, pw_vjp_reciprocal, R0)                                                 \
  X(RELU, "b", PW_SAME, PW_NO_BOOL | PW_NO_COMPLEX, 0, NULL, pw_vjp_relu, R0)                                     \
  X(GELU, "b", PW_SAME, PW_NO_BOOL | PW_NO_INT | PW_NO_COMPLEX, 0, NULL, pw_vjp_gelu, A0)                         \
  X(SILU, "b", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, NULL, pw_vjp_silu, A0)                                         \
  X(FLOOR, "b", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL, 0, NULL, pw_vjp_zero, 0)                                     \
  X(ISNAN, "c", PW_LOGICAL, 0, 0, NULL, NULL, 0)                                                                  \
  X(LOGICAL_NOT, "c", PW_LOGICAL, 0, 0, NULL, NULL, 0)                                                            \
  X(LOGICAL_AND, "cc", PW_LOGICAL, 0, 0, NULL, NULL, 0)                                                           \
  X(BITWISE_NOT, "b", PW_SAME, PW_NO_FLOAT | PW_NO_COMPLEX, 0, NULL, NULL, 0)                                     \
  X(BITWISE_AND_TENSOR, "bb", PW_SAME, PW_NO_FLOAT | PW_NO_COMPLEX, 0, NULL, NULL, 0)                             \
  X(ADD_TENSOR, "bb", PW_SAME, 0, 0, check_alpha, pw_vjp_add, 0)                                                  \
  X(SUB_TENSOR, "bb", PW_SAME, 0, 0, check_sub, pw_vjp_sub, 0)                                                    \
  X(MUL_TENSOR, "bb", PW_SAME, 0, 0, NULL, pw_vjp_mul, A0 | A1)                                                   \
  X(DIV_TENSOR, "bb", PW_FLOAT, 0, 0, NULL, pw_vjp_div, A0 | A1)                                                  \
  X(DIV_TENSOR_MODE, "bb", PW_SAME, 0, 0, check_div_mode, pw_vjp_div_mode, A0 | A1)                               \
  X(ADD_SCALAR, "b", PW_SAME, 0, GRAFT_OP_ADD_TENSOR, check_alpha, pw_vjp_add, 0)                                 \
  X(SUB_SCALAR, "b", PW_SAME, 0, GRAFT_OP_SUB_TENSOR, check_sub, pw_vjp_sub, 0)                                   \
  X(MUL_SCALAR, "b", PW_SAME, 0, GRAFT_OP_MUL_TENSOR, NULL, pw_vjp_mul, 0)                                        \
  X(DIV_SCALAR, "b", PW_FLOAT, 0, GRAFT_OP_DIV_TENSOR, NULL, pw_vjp_div, 0)                                       \
  X(POW_TENSOR_TENSOR, "bb", PW_SAME, 0, 0, check_pow, pw_vjp_pow_tensor, A0 | A1 | R0)                           \
  X(POW_TENSOR_SCALAR, "b", PW_SAME, 0, 0, check_pow, pw_vjp_pow_scalar, A0)                                      \
  X(POW_SCALAR, "b", PW_SAME, 0, 0, check_pow, pw_vjp_pow_base, A1 | R0)                                          \
  X(MAXIMUM, "bb", PW_SAME, PW_NO_COMPLEX, 0, NULL, pw_vjp_maximum, A0 | A1)                                      \
  X(MINIMUM, "bb", PW_SAME, PW_NO_COMPLEX, 0, NULL, pw_vjp_minimum, A0 | A1)                                      \
  X(FMOD_TENSOR, "bb", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL, 0, NULL, pw_vjp_fmod, A0 | A1)                        \
  X(WHERE_SELF, "cbb", PW_SAME, 0, 0, check_where, pw_vjp_where, A0)                                              \
  X(MASKED_FILL_SCALAR, "bc", PW_SAME, 0, 0, check_masked_fill, pw_vjp_masked_fill, A1)                           \
  X(MASKED_FILL_TENSOR, "bcb", PW_SAME, 0, 0, check_masked_fill, pw_vjp_masked_fill, A1)                          \
  X(CLAMP, "b", PW_SAME, PW_NO_COMPLEX | PW_NO_BOOL, 0, check_clamp, pw_vjp_clamp, A0)                            \
  X(EQ_TENSOR, "bb", PW_BOOL, 0, 0, NULL, NULL, 0)                                                                \
  X(NE_TENSOR, "bb", PW_BOOL, 0, 0, NULL, NULL, 0)                                                                \
  X(LT_TENSOR, "bb", PW_BOOL, PW_NO_COMPLEX, 0, NULL, NULL, 0)                                                    \
  X(LE_TENSOR, "bb", PW_BOOL, PW_NO_COMPLEX, 0, NULL, NULL, 0)                                                    \
  X(GT_TENSOR, "bb", PW_BOOL, PW_NO_COMPLEX, 0, NULL, NULL, 0)                                                    \
  X(GE_TENSOR, "bb", PW_BOOL, PW_NO_COMPLEX, 0, NULL, NULL, 0)                                                    \
  X(EQ_SCALAR, "b", PW_BOOL, 0, GRAFT_OP_EQ_TENSOR, NULL, NULL, 0)                                                \
  X(NE_SCALAR, "b", PW_BOOL, 0, GRAFT_OP_NE_TENSOR, NULL, NULL, 0)                                                \
  X(LT_SCALAR, "b", PW_BOOL, PW_NO_COMPLEX, GRAFT_OP_LT_TENSOR, NULL, NULL, 0)                                    \
  X(LE_SCALAR, "b", PW_BOOL, PW_NO_COMPLEX, GRAFT_OP_LE_TENSOR, NULL, NULL, 0)                                    \
  X(GT_SCALAR, "b", PW_BOOL, PW_NO_COMPLEX, GRAFT_OP_GT_TENSOR, NULL, NULL, 0)                                    \
  X(GE_SCALAR, "b", PW_BOOL, PW_NO_COMPLEX, GRAFT_OP_GE_TENSOR, NULL, NULL, 0)                                    \
  X(ADDCMUL, "bbb", PW_SAME, PW_NO_BOOL, 0, NULL, pw_vjp_addcmul, A1 | A2)                                        \
  X(ADDCDIV, "bbb", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, check_addcdiv, pw_vjp_addcdiv, A1 | A2)                   \
  X(LERP_SCALAR, "bb", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, check_lerp, pw_vjp_lerp, 0)                            \
  X(TANH_BACKWARD, "bb", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, NULL, pw_vjp_tanh_backward, A0 | A1)                 \
  X(SIGMOID_BACKWARD, "bb", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, NULL, pw_vjp_sigmoid_backward, A0 | A1)           \
  X(THRESHOLD_BACKWARD, "bb", PW_SAME, PW_NO_BOOL | PW_NO_COMPLEX, 0, NULL, pw_vjp_threshold_backward, A1)        \
  X(GELU_BACKWARD, "bb", PW_SAME, PW_NO_BOOL | PW_NO_INT | PW_NO_COMPLEX, 0, NULL, pw_vjp_gelu_backward, A0 | A1) \
  X(SILU_BACKWARD, "bb", PW_SAME, PW_NO_BOOL | PW_NO_INT, 0, NULL, pw_vjp_silu_backward, A0 | A1)

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
    if (dt_is_integral(c->compute, true)) c->compute = c->out[0].dtype = DT_DEFAULT;
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

/* Numbers that take part in promotion: those in a tensor's place, and the Scalar that the op is about. */
static int promoted_args(const op_call *c, const pw_rule *rule) {
  if (rule->tensor_form) return 2;
  switch (c->schema->id) {
    case GRAFT_OP_MASKED_FILL_SCALAR:
    case GRAFT_OP_MASKED_FILL_TENSOR:
      return 1;
    case GRAFT_OP_POW_TENSOR_SCALAR:
    case GRAFT_OP_POW_SCALAR:
      return 2;
    case GRAFT_OP_CLAMP:
      return 3;
    default:
      return c->schema->nargs < 3 ? c->schema->nargs : 3;
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

static graft_status infer_pointwise(op_call *c) {
  const pw_rule *rule = &rules[c->def->extra];
  int first = c->schema->id == GRAFT_OP_WHERE_SELF ? 1 : 0;
  int count = promoted_args(c, rule);
  if (c->schema->id == GRAFT_OP_ADD_TENSOR || c->schema->id == GRAFT_OP_SUB_TENSOR ||
      c->schema->id == GRAFT_OP_LERP_SCALAR || c->schema->id == GRAFT_OP_THRESHOLD_BACKWARD) {
    count = 2; /* alpha, weight and threshold do not promote */
  }
  graft_dtype dtype = op_promote(c, first, count);
  if (!dtype) return op_error(c, "these dtypes do not promote to a common one: %s", op_show_tensors(c));
  c->compute = dtype;
  graft_status status = refuse(c, rule->refuse);
  if (status) return status;
  if (rule->promo == PW_FLOAT && dt_is_integral(dtype, true)) c->compute = dtype = DT_DEFAULT;
  c->out[0].dtype = dtype;
  if ((status = check_real_numbers(c))) return status;
  if (rule->check && (status = rule->check(c))) return status;
  dtype = rule->promo == PW_REAL ? dt_real(c->compute) : c->compute;
  if (rule->promo == PW_BOOL || rule->promo == PW_LOGICAL) dtype = GRAFT_BOOL;
  if (rule->promo == PW_LOGICAL) c->compute = GRAFT_DTYPE_NONE;
  status = op_out_broadcast(c, 0, dtype);
  bool contiguous = c->schema->id == GRAFT_OP_POW_SCALAR || c->schema->id == GRAFT_OP_MASKED_FILL_SCALAR ||
                    c->schema->id == GRAFT_OP_MASKED_FILL_TENSOR;
  if (!status && contiguous) { /* PyTorch asks for it there */
    tns_contiguous_strides(c->out[0].ndim, c->out[0].sizes, c->out[0].strides);
  }
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

#define DEF(op, roles_, promo, refuse, form, check, vjp_, saves_)                 \
  {.op_id = GRAFT_OP_##op,                                                        \
   .roles = roles_,                                                               \
   .infer = infer_pointwise,                                                      \
   .decompose = (form) ? decompose_scalar : NULL,                                 \
   .vjp = vjp_,                                                                   \
   .saves = saves_,                                                               \
   .flags = OP_ELEMENTWISE | ((form) ? OP_NO_WIDEN | OP_NUMBER_FORM : 0) |        \
            (GRAFT_OP_##op == GRAFT_OP_THRESHOLD_BACKWARD ? OP_SECOND_FIRST : 0), \
   .reference = (form) ? NULL : ref_pointwise,                                    \
   .extra = PW_INDEX_##op},
static const op_def defs[] = {POINTWISE_OPS(DEF)};
OP_FAMILY_END(pointwise, defs)
