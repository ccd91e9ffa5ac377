/* Relations, logic and bits; choices, extrema and bounds. */
#include "ops/pointwise/pointwise.h"

/* --- relations, logic, bits --- */

REAL(eq, x == y)
REAL(ne, x != y)
REAL(lt, x < y)
REAL(le, x <= y)
REAL(gt, x > y)
REAL(ge, x >= y)
INTEGER(eq, x == y)
INTEGER(ne, x != y)
INTEGER(lt, pw_less(c, x, y))
INTEGER(le, !pw_less(c, y, x))
INTEGER(gt, pw_less(c, y, x))
INTEGER(ge, !pw_less(c, x, y))
COMPLEX(eq, x == y)
COMPLEX(ne, x != y)
REAL(logical_not, x == 0)
REAL(logical_and, x != 0 && y != 0)
REAL(logical_or, x != 0 || y != 0)
REAL(logical_xor, (x != 0) != (y != 0))
COMPLEX(logical_not, x == 0)
COMPLEX(logical_and, x != 0 && y != 0)
COMPLEX(logical_or, x != 0 || y != 0)
COMPLEX(logical_xor, (x != 0) != (y != 0))
REAL(isnan, isnan(x))
COMPLEX(isnan, isnan(creall(x)) || isnan(cimagl(x)))
REAL(isfinite, isfinite(x) != 0)
COMPLEX(isfinite, isfinite(creall(x)) && isfinite(cimagl(x)))
REAL(isinf, isinf(x) != 0)
COMPLEX(isinf, isinf(creall(x)) || isinf(cimagl(x)))
REAL(isneginf, x == -INFINITY)
REAL(isposinf, x == INFINITY)
INTEGER(isneginf, 0 * x)
INTEGER(isposinf, 0 * x)
REAL(signbit, signbit(x) != 0)
INTEGER(bitwise_not, c->compute == GRAFT_BOOL ? !x : ~x)
INTEGER(bitwise_and, x &y)
INTEGER(bitwise_or, x | y)
INTEGER(bitwise_xor, x ^ y)

/* As PyTorch has it: by a negative number or by the width or more, nothing is left but the sign of a right shift. */
static bool shifts_out(const int64_t *x, const pw_context *c) {
  return x[1] < 0 || x[1] >= (int64_t)(8 * dt_bytes(c->compute));
}
INTEGER(left_shift, shifts_out(v, c) ? 0 : (int64_t)((uint64_t)x << y))
static int64_t i_right_shift(const int64_t *x, pw_context *c) {
  if (c->is_u64) return shifts_out(x, c) ? 0 : (int64_t)((uint64_t)x[0] >> x[1]);
  return x[0] >> (shifts_out(x, c) ? 63 : x[1]);
}

/* --- choices --- */

REAL(where, x != 0 ? y : z)
INTEGER(where, x ? y : z)
COMPLEX(where, x != 0 ? y : z)
REAL(masked_fill, y != 0 ? c->p[ARG_masked_fill_Scalar_value] : x)
REAL(masked_fill_tensor, y != 0 ? z : x)
COMPLEX(masked_fill, y != 0 ? pw_number(c, ARG_masked_fill_Scalar_value) : x)
COMPLEX(masked_fill_tensor, y != 0 ? z : x)

INTEGER(masked_fill, y ? pw_whole(c, ARG_masked_fill_Scalar_value) : x)
INTEGER(masked_fill_tensor, y ? z : x)

static graft_status check_where(op_call *c) {
  graft_tensor *condition = op_tensor(c, ARG_where_self_condition);
  bool fits = condition && (condition->dtype == GRAFT_BOOL || condition->dtype == GRAFT_U8);
  return fits ? GRAFT_OK : op_refuse(c, ARG_where_self_condition, "bool");
}

/* The value becomes self's dtype, whatever it is. */
static graft_status check_masked_fill(op_call *c) {
  const in_masked_fill_Tensor in = in_masked_fill_Tensor_of(c->args);
  if (!in.mask || in.mask->dtype != GRAFT_BOOL) return op_refuse(c, ARG_masked_fill_Tensor_mask, "bool");
  if (in.value && in.value->ndim) return op_refuse(c, ARG_masked_fill_Tensor_value, "one number, of rank 0");
  return op_number_fits(c, ARG_masked_fill_Tensor_value, c->compute);
}

static void vjp_where(op_vjp *v) {
  graft_tensor *condition = vjp_arg(v, X);
  if (vjp_needs(v, Y)) v->results[Y] = fx_only_where(v->s, condition, v->g[OUT]);
  if (vjp_needs(v, Z)) v->results[Z] = fx_not_where(v->s, condition, v->g[OUT]);
}

static void vjp_masked_fill(op_vjp *v) {
  graft_tensor *mask = vjp_arg(v, ARG_masked_fill_Tensor_mask);
  if (vjp_needs(v, X)) v->results[X] = fx_not_where(v->s, mask, v->g[OUT]);
  if (vjp_needs(v, ARG_masked_fill_Tensor_value))
    v->results[ARG_masked_fill_Tensor_value] = fx_only_where(v->s, mask, v->g[OUT]);
}

/* --- extrema and bounds --- */

REAL(maximum, isnan(x) || x > y ? x : y)
REAL(minimum, isnan(x) || x < y ? x : y)
REAL(fmax, isnan(y) || x > y ? x : y) /* of a number and NaN: the number */
REAL(fmin, isnan(y) || x < y ? x : y)
INTEGER(maximum, pw_less(c, x, y) ? y : x)
INTEGER(minimum, pw_less(c, x, y) ? x : y)
REAL(heaviside, x == 0 ? y : x > 0)
INTEGER(heaviside, x == 0 ? y : c->is_u64 || x > 0)

/* A NaN on either side is the result. */
static long double greater(long double a, long double b) {
  return isnan(a) || a > b ? a : b;
}
static long double smaller(long double a, long double b) {
  return isnan(a) || a < b ? a : b;
}

static long double r_clamp(const long double *x, pw_context *c) {
  long double y = x[0];
  if (isnan(y)) return y;
  if (c->has[ARG_clamp_min] && !(y >= c->p[ARG_clamp_min])) y = c->p[ARG_clamp_min];
  if (c->has[ARG_clamp_max] && !(y <= c->p[ARG_clamp_max])) y = c->p[ARG_clamp_max];
  return y;
}

static int64_t i_clamp(const int64_t *x, pw_context *c) {
  int64_t y = x[0];
  if (c->has[ARG_clamp_min] && pw_less(c, y, (int64_t)c->p[ARG_clamp_min])) y = (int64_t)c->p[ARG_clamp_min];
  if (c->has[ARG_clamp_max] && pw_less(c, (int64_t)c->p[ARG_clamp_max], y)) y = (int64_t)c->p[ARG_clamp_max];
  return y;
}

static long double r_clamp_tensor(const long double *x, pw_context *c) {
  long double y = c->present[Y] ? greater(x[0], x[1]) : x[0];
  return c->present[Z] ? smaller(y, x[2]) : y;
}

static int64_t i_clamp_tensor(const int64_t *x, pw_context *c) {
  int64_t y = c->present[Y] && pw_less(c, x[0], x[1]) ? x[1] : x[0];
  return c->present[Z] && pw_less(c, x[2], y) ? x[2] : y;
}
REAL(clamp_min, greater(x, c->p[ARG_clamp_min_min]))
REAL(clamp_min_tensor, greater(x, y))
INTEGER(clamp_min, pw_less(c, x, (int64_t)c->p[ARG_clamp_min_min]) ? (int64_t)c->p[ARG_clamp_min_min] : x)
INTEGER(clamp_min_tensor, pw_less(c, x, y) ? y : x)

static graft_status check_clamp(op_call *c) {
  bool none = op_absent(c, ARG_clamp_min) && op_absent(c, ARG_clamp_max);
  return none ? op_error(c, "at least one of min and max must be given") : GRAFT_OK;
}

/* With one bound it is a maximum or a minimum, which bools have too. */
static graft_status check_clamp_tensor(op_call *c) {
  if (c->compute == GRAFT_BOOL && !op_absent(c, ARG_clamp_Tensor_min) && !op_absent(c, ARG_clamp_Tensor_max)) {
    return op_error(c, "not defined between two bounds for bool operands (%s)", op_show_tensors(c));
  }
  return check_clamp(c);
}

/* t where one value stands in this relation to another, else 0 */
static graft_tensor *only_if(fx *s, graft_tensor *t, uint32_t relation, graft_value a, graft_value b) {
  return fx_only_where(s, fx_binary(s, relation, a, b), t);
}

/* The greater (or smaller) operand takes the gradient; equal ones half each. */
static void extremum(op_vjp *v, uint32_t loses_first, uint32_t loses_second) {
  fx *s = v->s;
  graft_value x = v->args[X], y = v->args[Y];
  graft_tensor *tie = fx_binary(s, GRAFT_OP_EQ_TENSOR, x, y);
  graft_tensor *shared = fx_where(s, tie, fx_tensor(fx_muls(s, v->g[OUT], 0.5)), fx_tensor(v->g[OUT]));
  if (vjp_needs(v, X)) v->results[X] = fx_not_where(s, fx_binary(s, loses_first, x, y), shared);
  if (vjp_needs(v, Y)) v->results[Y] = fx_not_where(s, fx_binary(s, loses_second, x, y), shared);
}
static void vjp_maximum(op_vjp *v) {
  extremum(v, GRAFT_OP_LT_TENSOR, GRAFT_OP_GT_TENSOR);
}
static void vjp_minimum(op_vjp *v) {
  extremum(v, GRAFT_OP_GT_TENSOR, GRAFT_OP_LT_TENSOR);
}

/* The operand that is the result takes the gradient; of equal ones the first. */
static void chosen(op_vjp *v, uint32_t relation) {
  fx *s = v->s;
  graft_tensor *holds = fx_binary(s, relation, v->args[X], v->args[Y]);
  graft_tensor *first = fx_logical_or(s, holds, fx_isnan(s, vjp_arg(v, Y)));
  if (vjp_needs(v, X)) v->results[X] = fx_only_where(s, first, v->g[OUT]);
  if (vjp_needs(v, Y)) v->results[Y] = fx_not_where(s, first, v->g[OUT]);
}
static void vjp_fmax(op_vjp *v) {
  chosen(v, GRAFT_OP_GE_TENSOR);
}
static void vjp_fmin(op_vjp *v) {
  chosen(v, GRAFT_OP_LE_TENSOR);
}

static void vjp_clamp_min(op_vjp *v) {
  graft_value x = v->args[X], low = v->args[Y];
  if (vjp_needs(v, X)) v->results[X] = only_if(v->s, v->g[OUT], GRAFT_OP_GE_TENSOR, x, low);
  if (low.kind == GRAFT_VALUE_TENSOR && vjp_needs(v, Y)) {
    v->results[Y] = only_if(v->s, v->g[OUT], GRAFT_OP_LT_TENSOR, x, low);
  }
}

/* Bounds are numbers or tensors. Where they cross, the upper one is the result. */
static void vjp_clamp(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *g = v->g[OUT];
  graft_value x = v->args[X], low = v->args[ARG_clamp_min], high = v->args[ARG_clamp_max];
  bool has_low = low.kind != GRAFT_VALUE_NONE, has_high = high.kind != GRAFT_VALUE_NONE;
  if (vjp_needs(v, X)) {
    graft_tensor *kept = has_low ? only_if(s, g, GRAFT_OP_GE_TENSOR, x, low) : g;
    v->results[X] = has_high ? only_if(s, kept, GRAFT_OP_LE_TENSOR, x, high) : kept;
  }
  if (has_low && vjp_needs(v, ARG_clamp_min)) {
    graft_tensor *below = only_if(s, g, GRAFT_OP_LT_TENSOR, x, low);
    v->results[ARG_clamp_min] = has_high ? only_if(s, below, GRAFT_OP_LT_TENSOR, low, high) : below;
  }
  if (has_high && vjp_needs(v, ARG_clamp_max)) {
    graft_tensor *above = fx_binary(s, GRAFT_OP_GT_TENSOR, x, high);
    if (has_low) above = fx_logical_or(s, above, fx_binary(s, GRAFT_OP_LT_TENSOR, high, low));
    v->results[ARG_clamp_max] = fx_only_where(s, above, g);
  }
}

/* --- compositions --- */

COMPOSE(logical_or, fx_bitwise_or_Tensor(s, fx_is(s, GRAFT_OP_NE_TENSOR, pw_tensor(v, X), 0),
                                         fx_is(s, GRAFT_OP_NE_TENSOR, pw_tensor(v, Y), 0)))
COMPOSE(logical_xor, fx_bitwise_xor_Tensor(s, fx_is(s, GRAFT_OP_NE_TENSOR, pw_tensor(v, X), 0),
                                           fx_is(s, GRAFT_OP_NE_TENSOR, pw_tensor(v, Y), 0)))
COMPOSE(isnan, pw_op(s, GRAFT_OP_NE_TENSOR, pw_tensor(v, X), v[X]))
COMPOSE(masked_fill, fx_where(s, pw_tensor(v, Y), v[Z], v[X]))
COMPOSE(masked_fill_tensor,
        fx_where(s, pw_tensor(v, Y), fx_tensor(fx_cast(s, pw_tensor(v, Z), pw_tensor(v, X)->dtype)), v[X]))
COMPOSE(clamp, pw_at_most(s, pw_at_least(s, pw_tensor(v, X), v[ARG_clamp_min]), v[ARG_clamp_max]))
COMPOSE(clamp_min, pw_at_least(s, pw_tensor(v, X), v[ARG_clamp_min_min]))

static const op_def defs[] = {
    PW(EQ_TENSOR, "bb", 0, NULL, 0, .promo = PW_BOOL, RIC(eq)),
    PW(NE_TENSOR, "bb", 0, NULL, 0, .promo = PW_BOOL, RIC(ne)),
    PW(LT_TENSOR, "bb", 0, NULL, 0, .promo = PW_BOOL, .refuse = PW_NO_COMPLEX, RI(lt)),
    PW(LE_TENSOR, "bb", 0, NULL, 0, .promo = PW_BOOL, .refuse = PW_NO_COMPLEX, RI(le)),
    PW(GT_TENSOR, "bb", 0, NULL, 0, .promo = PW_BOOL, .refuse = PW_NO_COMPLEX, RI(gt)),
    PW(GE_TENSOR, "bb", 0, NULL, 0, .promo = PW_BOOL, .refuse = PW_NO_COMPLEX, RI(ge)),
    PW_FORM(EQ_SCALAR, EQ_TENSOR, NULL, .promo = PW_BOOL),
    PW_FORM(NE_SCALAR, NE_TENSOR, NULL, .promo = PW_BOOL),
    PW_FORM(LT_SCALAR, LT_TENSOR, NULL, .promo = PW_BOOL, .refuse = PW_NO_COMPLEX),
    PW_FORM(LE_SCALAR, LE_TENSOR, NULL, .promo = PW_BOOL, .refuse = PW_NO_COMPLEX),
    PW_FORM(GT_SCALAR, GT_TENSOR, NULL, .promo = PW_BOOL, .refuse = PW_NO_COMPLEX),
    PW_FORM(GE_SCALAR, GE_TENSOR, NULL, .promo = PW_BOOL, .refuse = PW_NO_COMPLEX),
    PW(LOGICAL_NOT, "c", 0, NULL, 0, .promo = PW_LOGICAL, RC(logical_not)),
    PW(LOGICAL_AND, "cc", 0, NULL, 0, .promo = PW_LOGICAL, RC(logical_and)),
    PW_COMPOSED(LOGICAL_OR, "cc", 0, NULL, 0, .promo = PW_LOGICAL, RC(logical_or), .compose = compose_logical_or),
    PW_COMPOSED(LOGICAL_XOR, "cc", 0, NULL, 0, .promo = PW_LOGICAL, RC(logical_xor), .compose = compose_logical_xor),
    PW_COMPOSED(ISNAN, "c", 0, NULL, 0, .promo = PW_LOGICAL, RC(isnan), .compose = compose_isnan),
    PW(PRIMS_ISFINITE, "c", 0, NULL, 0, .promo = PW_LOGICAL, RC(isfinite)),
    PW(ISINF, "c", 0, NULL, 0, .promo = PW_LOGICAL, RC(isinf)),
    PW(ISNEGINF, "c", OP_EXACT_OUT, NULL, 0, .promo = PW_LOGICAL, .refuse = PW_NO_COMPLEX, RI(isneginf)),
    PW(ISPOSINF, "c", OP_EXACT_OUT, NULL, 0, .promo = PW_LOGICAL, .refuse = PW_NO_COMPLEX, RI(isposinf)),
    PW(SIGNBIT, "c", OP_EXACT_OUT, NULL, 0, .promo = PW_LOGICAL, .refuse = PW_NO_COMPLEX, RO(signbit)),
    PW(BITWISE_NOT, "b", 0, NULL, 0, .promo = PW_SAME, .refuse = PW_INTEGERS, IO(bitwise_not)),
    PW(BITWISE_AND_TENSOR, "bb", 0, NULL, 0, .promo = PW_SAME, .refuse = PW_INTEGERS, IO(bitwise_and)),
    PW(BITWISE_OR_TENSOR, "bb", 0, NULL, 0, .promo = PW_SAME, .refuse = PW_INTEGERS, IO(bitwise_or)),
    PW(BITWISE_XOR_TENSOR, "bb", 0, NULL, 0, .promo = PW_SAME, .refuse = PW_INTEGERS, IO(bitwise_xor)),
    PW_FORM(BITWISE_AND_SCALAR, BITWISE_AND_TENSOR, NULL, .promo = PW_SAME, .refuse = PW_INTEGERS),
    PW_FORM(BITWISE_OR_SCALAR, BITWISE_OR_TENSOR, NULL, .promo = PW_SAME, .refuse = PW_INTEGERS),
    PW_FORM(BITWISE_XOR_SCALAR, BITWISE_XOR_TENSOR, NULL, .promo = PW_SAME, .refuse = PW_INTEGERS),
    PW(BITWISE_LEFT_SHIFT_TENSOR, "bb", 0, NULL, 0, .promo = PW_SAME, .refuse = PW_INTEGERS | PW_NO_BOOL,
       IO(left_shift)),
    PW(BITWISE_RIGHT_SHIFT_TENSOR, "bb", 0, NULL, 0, .promo = PW_SAME, .refuse = PW_INTEGERS | PW_NO_BOOL,
       IO(right_shift)),
    PW(WHERE_SELF, "cbb", OP_EXACT_OUT, vjp_where, SAVE_X, .promo = PW_SAME, .operands = PW_BEHIND_FIRST,
       .check = check_where, RIC(where)),
    PW_COMPOSED(MASKED_FILL_SCALAR, "bc", 0, vjp_masked_fill, SAVE_Y, .promo = PW_SAME, .refuse = PW_CONTIGUOUS,
                .operands = PW_FIRST, .check = check_masked_fill, RIC(masked_fill), .compose = compose_masked_fill),
    PW_COMPOSED(MASKED_FILL_TENSOR, "bcb", OP_HOLDS_LAST, vjp_masked_fill, SAVE_Y, .promo = PW_SAME,
                .refuse = PW_CONTIGUOUS, .operands = PW_FIRST, .check = check_masked_fill, RIC(masked_fill_tensor),
                .compose = compose_masked_fill_tensor),
    PW(MAXIMUM, "bb", 0, vjp_maximum, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_NO_COMPLEX, RI(maximum)),
    PW(MINIMUM, "bb", 0, vjp_minimum, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_NO_COMPLEX, RI(minimum)),
    PW(FMAX, "bb", 0, vjp_fmax, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_NO_COMPLEX, .real = r_fmax,
       .integer = i_maximum),
    PW(FMIN, "bb", 0, vjp_fmin, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_NO_COMPLEX, .real = r_fmin,
       .integer = i_minimum),
    PW(HEAVISIDE, "bb", OP_EXACT_OUT, NULL, 0, .promo = PW_SAME, .refuse = PW_NO_COMPLEX, .check = pw_check_one_dtype,
       RI(heaviside)),
    PW_COMPOSED(CLAMP, "b", 0, vjp_clamp, SAVE_X, .promo = PW_SAME, .refuse = PW_NUMBERS | PW_BOUNDS,
                .operands = PW_FIRST_THREE, .check = check_clamp, RI(clamp), .compose = compose_clamp),
    PW_COMPOSED(CLAMP_TENSOR, "bbb", 0, vjp_clamp, SAVE_X | SAVE_Y | SAVE_Z, .promo = PW_SAME, .refuse = PW_NO_COMPLEX,
                .check = check_clamp_tensor, RI(clamp_tensor), .compose = compose_clamp),
    PW_COMPOSED(CLAMP_MIN, "b", 0, vjp_clamp_min, SAVE_X, .promo = PW_SAME, .refuse = PW_NUMBERS | PW_BOUNDS,
                .operands = PW_FIRST_TWO, RI(clamp_min), .compose = compose_clamp_min),
    PW_COMPOSED(CLAMP_MIN_TENSOR, "bb", 0, vjp_clamp_min, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_NO_COMPLEX,
                RI(clamp_min_tensor), .compose = compose_clamp_min),
};
OP_TABLE(pointwise_comparison, defs)
