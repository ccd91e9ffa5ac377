/* Arithmetic: sums, products, quotients, remainders, powers, common divisors. */
#include "ops/pointwise/pointwise.h"

/* f64 itself where one correctly rounded operation is asked for: long double would round twice. */
static long double plus(const pw_context *c, long double a, long double b) {
  return c->is_double ? (long double)((double)a + (double)b) : a + b;
}
static long double product(const pw_context *c, long double a, long double b) {
  return c->is_double ? (long double)((double)a * (double)b) : a * b;
}
static long double quotient(const pw_context *c, long double a, long double b) {
  return c->is_double ? (long double)((double)a / (double)b) : a / b;
}

/* --- sums, products, quotients --- */

REAL(add, plus(c, x, c->p[ARG_add_Tensor_alpha] == 1 ? y : c->p[ARG_add_Tensor_alpha] * y))
REAL(sub, plus(c, x, c->p[ARG_sub_Tensor_alpha] == 1 ? -y : -c->p[ARG_sub_Tensor_alpha] * y))
REAL(mul, product(c, x, y))
REAL(div, quotient(c, x, y))
REAL(addcmul, x + c->p[ARG_addcmul_value] * y * z)
REAL(addcdiv, x + c->p[ARG_addcdiv_value] * (y / z))
REAL(lerp, fabsl(c->p[ARG_lerp_Scalar_weight]) < 0.5L ? x + c->p[ARG_lerp_Scalar_weight] * (y - x)
                                                      : y - (y - x) * (1 - c->p[ARG_lerp_Scalar_weight]))
REAL(lerp_tensor, fabsl(z) < 0.5L ? x + z * (y - x) : y - (y - x) * (1 - z))

#define U(v) ((uint64_t)(v)) /* in which arithmetic wraps */
INTEGER(add, (int64_t)(U(x) + U(pw_whole(c, ARG_add_Tensor_alpha)) * U(y)))
INTEGER(sub, (int64_t)(U(x) - U(pw_whole(c, ARG_sub_Tensor_alpha)) * U(y)))
INTEGER(mul, (int64_t)(U(x) * U(y)))
INTEGER(addcmul, (int64_t)(U(x) + U(pw_whole(c, ARG_addcmul_value)) * U(y) * U(z)))
COMPLEX(add, x + pw_number(c, ARG_add_Tensor_alpha) * y)
COMPLEX(sub, x - pw_number(c, ARG_sub_Tensor_alpha) * y)
COMPLEX(mul, x *y)
COMPLEX(div, x / y)
COMPLEX(addcmul, x + pw_number(c, ARG_addcmul_value) * y * z)
COMPLEX(addcdiv, x + pw_number(c, ARG_addcdiv_value) * (y / z))
COMPLEX(lerp, cabsl(pw_number(c, ARG_lerp_Scalar_weight)) < 0.5L
                  ? x + pw_number(c, ARG_lerp_Scalar_weight) * (y - x)
                  : y - (y - x) * (1 - pw_number(c, ARG_lerp_Scalar_weight)))
COMPLEX(lerp_tensor, cabsl(z) < 0.5L ? x + z * (y - x) : y - (y - x) * (1 - z))

static bool is_bool(const op_call *c, int arg) {
  const graft_value *value = &c->args[arg];
  if (value->kind == GRAFT_VALUE_SCALAR) return value->as.scalar.dtype == GRAFT_BOOL;
  return value->kind == GRAFT_VALUE_TENSOR && value->as.tensor->dtype == GRAFT_BOOL;
}

static graft_status check_alpha(op_call *c) {
  graft_scalar alpha = op_scalar(c, ARG_add_Tensor_alpha);
  if (alpha.dtype == GRAFT_BOOL && c->compute != GRAFT_BOOL) {
    return op_error(c, "alpha is a bool; that is for bool tensors only (%s)", op_show_tensors(c));
  }
  if (dt_is_integral(c->compute, true) && !dt_is_integral(alpha.dtype, true)) {
    return op_error(c, "alpha must be an integer for integer operands (%s)", op_show_tensors(c));
  }
  return GRAFT_OK;
}

static graft_status check_sub(op_call *c) {
  if (is_bool(c, X) || is_bool(c, Y)) {
    return op_error(c, "subtraction with bool is not defined (%s); use logical_xor or bitwise_not", op_show_tensors(c));
  }
  return check_alpha(c);
}

static graft_status check_addcdiv(op_call *c) {
  const in_addcdiv in = in_addcdiv_of(c->args);
  if (in.tensor1 && in.tensor2 && dt_is_integral(in.tensor1->dtype, true) && dt_is_integral(in.tensor2->dtype, true)) {
    return op_error(c, "integer division is not defined here (%s); convert tensor1 or tensor2 to floating",
                    op_show_tensors(c));
  }
  return GRAFT_OK;
}

static graft_status check_lerp(op_call *c) {
  return op_check_same_dtype(c, ARG_lerp_Tensor_self, ARG_lerp_Tensor_end);
}

/* A weight of rank 0 is brought to the others' dtype. */
static graft_status check_lerp_tensor(op_call *c) {
  const graft_tensor *weight = op_tensor(c, ARG_lerp_Tensor_weight);
  graft_status status = GRAFT_OK;
  if (weight && weight->ndim) status = op_check_same_dtype(c, ARG_lerp_Tensor_self, ARG_lerp_Tensor_weight);
  return status ? status : check_lerp(c);
}

static void vjp_add(op_vjp *v) {
  if (vjp_needs(v, X)) v->results[X] = v->g[OUT];
  if (vjp_needs(v, Y)) v->results[Y] = pw_scaled(v, v->g[OUT], ARG_add_Tensor_alpha);
}

static void vjp_sub(op_vjp *v) {
  if (vjp_needs(v, X)) v->results[X] = v->g[OUT];
  if (vjp_needs(v, Y)) v->results[Y] = fx_neg(v->s, pw_scaled(v, v->g[OUT], ARG_sub_Tensor_alpha));
}

static void vjp_mul(op_vjp *v) {
  if (vjp_needs(v, X)) v->results[X] = pw_scaled(v, v->g[OUT], Y);
  if (vjp_needs(v, Y)) v->results[Y] = pw_scaled(v, v->g[OUT], X);
}

static void vjp_div(op_vjp *v) {
  fx *s = v->s;
  if (vjp_needs(v, X)) v->results[X] = pw_over(s, v->g[OUT], pw_conj(v, Y));
  if (!vjp_needs(v, Y)) return;
  graft_tensor *quotient = fx_binary(s, GRAFT_OP_DIV_TENSOR, pw_conj(v, X), pw_conj(v, Y));
  v->results[Y] = fx_neg(s, fx_mul(s, v->g[OUT], pw_over(s, quotient, pw_conj(v, Y))));
}

static void vjp_addcmul(op_vjp *v) {
  if (vjp_needs(v, X)) v->results[X] = v->g[OUT];
  if (vjp_needs(v, Y)) v->results[Y] = pw_scaled(v, pw_scaled(v, v->g[OUT], Z), ARG_addcmul_value);
  if (vjp_needs(v, Z)) v->results[Z] = pw_scaled(v, pw_scaled(v, v->g[OUT], Y), ARG_addcmul_value);
}

static void vjp_addcdiv(op_vjp *v) {
  fx *s = v->s;
  graft_value divisor = pw_conj(v, Z);
  if (vjp_needs(v, X)) v->results[X] = v->g[OUT];
  if (vjp_needs(v, Y)) v->results[Y] = pw_scaled(v, pw_over(s, v->g[OUT], divisor), ARG_addcdiv_value);
  if (!vjp_needs(v, Z)) return;
  graft_tensor *slope = pw_over(s, pw_over(s, pw_scaled(v, v->g[OUT], Y), divisor), divisor);
  v->results[Z] = fx_neg(s, pw_scaled(v, slope, ARG_addcdiv_value));
}

/* a (1 - w) + b w */
static void vjp_lerp(op_vjp *v) {
  const graft_scalar weight = pw_conj(v, ARG_lerp_Scalar_weight).as.scalar;
  const dt_value w = dt_scalar_value(&weight);
  graft_scalar rest = graft_scalar_float(1 - (double)w.re);
  if (w.im != 0) rest = (graft_scalar){GRAFT_C128, 0, {.c = {1 - (double)w.re, -(double)w.im}}};
  if (vjp_needs(v, X)) v->results[X] = pw_times(v->s, v->g[OUT], fx_number(rest));
  if (vjp_needs(v, Y)) v->results[Y] = pw_scaled(v, v->g[OUT], ARG_lerp_Scalar_weight);
}

/* a + w (b - a) */
static void vjp_lerp_tensor(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *g = v->g[OUT];
  if (vjp_needs(v, X)) v->results[X] = fx_sub(s, g, pw_scaled(v, g, Z));
  if (vjp_needs(v, Y)) v->results[Y] = pw_scaled(v, g, Z);
  if (!vjp_needs(v, Z)) return;
  v->results[Z] = fx_mul(s, g, fx_binary(s, GRAFT_OP_SUB_TENSOR, pw_conj(v, Y), pw_conj(v, X)));
}

/* --- rounded division, decimals, remainders --- */

long double pw_floor_divide(const long double *x, const pw_context *c) {
  long double a = x[0], b = x[1];
  if (b == 0) return quotient(c, a, b);
  long double rest = fmodl(a, b), whole = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) whole -= 1;
  if (whole == 0) return copysignl(0, a / b);
  long double down = floorl(whole);
  return whole - down > 0.5L ? down + 1 : down;
}

/* Rounded division as PyTorch defines it: trunc of the quotient as the dtype computes it; floor through fmod, so that
 * the result is exact. */
static long double r_div_mode(const long double *x, pw_context *c) {
  if (c->mode == GRAFT_STR_ROUNDING_MODE_FLOOR) return pw_floor_divide(x, c);
  return truncl(dt_round(dt_accumulate(c->compute), quotient(c, x[0], x[1])));
}

static bool division_fails(const int64_t *x, pw_context *c) {
  if (x[1] == 0) c->error = "integer division by zero";
  return x[1] == 0;
}

int64_t pw_integer_floor_divide(const int64_t *x, pw_context *c) {
  if (division_fails(x, c)) return 0;
  if (c->is_u64) return (int64_t)(U(x[0]) / U(x[1]));
  if (x[1] == -1) return (int64_t)-U(x[0]);
  return x[0] / x[1] - (x[0] % x[1] && (x[0] < 0) != (x[1] < 0));
}

static int64_t i_div_mode(const int64_t *x, pw_context *c) {
  if (division_fails(x, c)) return 0;
  if (c->is_u64) return (int64_t)(U(x[0]) / U(x[1]));
  if (x[1] == -1) return (int64_t)-U(x[0]);
  return c->mode == GRAFT_STR_ROUNDING_MODE_FLOOR ? pw_integer_floor_divide(x, c) : x[0] / x[1];
}

int64_t pw_integer_fmod(const int64_t *x, pw_context *c) {
  if (division_fails(x, c)) return 0;
  if (c->is_u64) return (int64_t)(U(x[0]) % U(x[1]));
  return x[1] == -1 ? 0 : x[0] % x[1];
}

/* Rounded to the dtype that is computed in, as the steps of an op are whose last one jumps. */
static long double stepwise(const pw_context *c, long double value) {
  return dt_round(dt_accumulate(c->compute), value);
}

static long double r_round_decimals(const long double *x, pw_context *c) {
  long double decimals = c->p[ARG_round_decimals_decimals], power = stepwise(c, powl(10, fabsl(decimals)));
  if (decimals < 0) return product(c, rintl(stepwise(c, quotient(c, x[0], power))), power);
  return quotient(c, rintl(stepwise(c, product(c, x[0], power))), power);
}

REAL(fmod, fmodl(x, y))
REAL(floor_divide, pw_floor_divide(v, c))
INTEGER(floor_divide, pw_integer_floor_divide(v, c))

/* Python's %. */
static long double r_remainder(const long double *x, pw_context *c) {
  (void)c;
  long double rest = fmodl(x[0], x[1]);
  return rest != 0 && (rest < 0) != (x[1] < 0) ? rest + x[1] : rest;
}

static int64_t i_remainder(const int64_t *x, pw_context *c) {
  int64_t rest = pw_integer_fmod(x, c);
  return !c->is_u64 && rest && (rest < 0) != (x[1] < 0) ? rest + x[1] : rest;
}

static void decompose_div_mode(fx *s, const op_call *c, graft_tensor **outs) {
  outs[OUT] = fx_one(s, GRAFT_OP_DIV_TENSOR, c->args, ARG_div_Tensor_other + 1);
}

/* Without a mode it is plain division, which slots of this op need not know. */
static graft_status check_div_mode(op_call *c) {
  c->decompose_only = op_absent(c, ARG_div_Tensor_mode_rounding_mode);
  if (c->decompose_only) {
    if (dt_is_integral(c->compute, true)) c->compute = c->out[OUT].dtype = dt_default();
    return GRAFT_OK;
  }
  c->no_decompose = c->def->decompose == decompose_div_mode;
  if (dt_is_complex(c->compute))
    return op_error(c, "rounding is not defined for complex operands (%s)", op_show_tensors(c));
  if (c->compute == GRAFT_BOOL) return op_error(c, "rounded division is not defined for bool (%s)", op_show_tensors(c));
  return GRAFT_OK;
}

static void vjp_div_mode(op_vjp *v) {
  if (v->args[ARG_div_Tensor_mode_rounding_mode].kind == GRAFT_VALUE_NONE) {
    vjp_div(v);
    return;
  }
  if (vjp_needs(v, X)) v->results[X] = fx_zeros_like(v->s, v->g[OUT]);
  if (vjp_needs(v, Y)) v->results[Y] = fx_zeros_like(v->s, v->g[OUT]);
}

/* Of x - y round(x / y), with the quotient rounded as `mode` says. */
static void remainder_vjp(op_vjp *v, const char *mode) {
  if (vjp_needs(v, X)) v->results[X] = v->g[OUT];
  if (!vjp_needs(v, Y)) return;
  graft_tensor *whole = fx_divide(v->s, v->args[X], v->args[Y], mode);
  v->results[Y] = fx_neg(v->s, fx_mul(v->s, v->g[OUT], whole));
}
static void vjp_fmod(op_vjp *v) {
  remainder_vjp(v, "trunc");
}
static void vjp_remainder(op_vjp *v) {
  remainder_vjp(v, "floor");
}

/* --- powers --- */

static int64_t power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, factor = U(base);
  for (; exponent; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return (int64_t)result;
}
REAL(pow, powl(x, y))
REAL(pow_scalar, powl(x, c->p[ARG_pow_Tensor_Scalar_exponent]))
REAL(pow_base, powl(c->p[ARG_pow_Scalar_self], x))
INTEGER(pow, power(x, y))
INTEGER(pow_scalar, power(x, (int64_t)c->p[ARG_pow_Tensor_Scalar_exponent]))
INTEGER(pow_base, power((int64_t)c->p[ARG_pow_Scalar_self], x))
COMPLEX(pow, x == 0 && y == 0 ? 1 : cpowl(x, y))
COMPLEX(pow_scalar, x == 0 && pw_number(c, ARG_pow_Tensor_Scalar_exponent) == 0 ? 1
                    : pw_number(c, ARG_pow_Tensor_Scalar_exponent) == 2
                        ? x * x
                        : cpowl(x, pw_number(c, ARG_pow_Tensor_Scalar_exponent)))
COMPLEX(pow_base, x == 0 && pw_number(c, ARG_pow_Scalar_self) == 0 ? 1 : cpowl(pw_number(c, ARG_pow_Scalar_self), x))

static graft_status check_pow(op_call *c) {
  graft_scalar exponent = op_scalar(c, Y);
  bool of_bool = c->schema->id == GRAFT_OP_POW_TENSOR_SCALAR; /* to the power of true or false */
  if (c->compute == GRAFT_BOOL && !of_bool) return op_error(c, "pow is not defined for bool (%s)", op_show_tensors(c));
  if (dt_is_integral(c->compute, true) && exponent.dtype && dt_scalar_value(&exponent).re < 0) {
    return op_error(c, "an integer to a negative integer power is not an integer");
  }
  return GRAFT_OK;
}

static graft_scalar less_one(graft_scalar x) {
  if (x.dtype == GRAFT_C128)
    x.value.c[0] -= 1;
  else if (x.dtype == GRAFT_F64)
    x.value.f -= 1;
  else
    x.value.i -= 1;
  return x;
}

/* exponent * x^(exponent - 1), with 0 where the exponent is 0 (x may be 0 there). */
static graft_tensor *gradient_pow_scalar(fx *s, graft_tensor *g, graft_tensor *x, graft_tensor *y,
                                         const graft_value *args) {
  (void)y;
  graft_scalar exponent = args[ARG_pow_Tensor_Scalar_exponent].as.scalar;
  dt_value e = dt_scalar_value(&exponent);
  if (e.re == 0 && e.im == 0) return fx_zeros_like(s, g);
  graft_tensor *slope = fx_scale(s, fx_pow_Tensor_Scalar(s, x, less_one(exponent)), exponent);
  return fx_mul(s, g, fx_conj(s, slope));
}

/* d/dx of x^y */
static graft_tensor *power_slope(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *y = vjp_arg(v, Y);
  graft_tensor *slope =
      fx_mul(s, y, fx_binary(s, GRAFT_OP_POW_TENSOR_TENSOR, v->args[X], fx_tensor(fx_adds(s, y, -1))));
  return fx_not_where(s, fx_is(s, GRAFT_OP_EQ_TENSOR, y, 0), fx_mul(s, v->g[OUT], fx_conj(s, slope)));
}

/* out * log(x), taken as 0 where x is 0 and y is not negative. */
static graft_tensor *exponent_slope(op_vjp *v, graft_tensor *log_base, graft_tensor *no_slope) {
  graft_tensor *slope = fx_mul(v->s, v->g[OUT], fx_conj(v->s, fx_mul(v->s, v->outs[OUT], log_base)));
  return no_slope ? fx_not_where(v->s, no_slope, slope) : slope;
}

static void vjp_pow_tensor(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *x = vjp_arg(v, X), *y = vjp_arg(v, Y);
  if (vjp_needs(v, X)) v->results[X] = power_slope(v);
  if (!vjp_needs(v, Y)) return;
  graft_tensor *none = fx_is(s, GRAFT_OP_EQ_TENSOR, x, 0);
  if (!dt_is_complex(y->dtype)) none = fx_logical_and(s, none, fx_is(s, GRAFT_OP_GE_TENSOR, y, 0));
  v->results[Y] = exponent_slope(v, fx_log(s, x), none);
}

static void vjp_pow_base(op_vjp *v) {
  fx *s = v->s;
  if (!vjp_needs(v, Y)) return;
  graft_tensor *g = v->g[OUT], *out = v->outs[OUT];
  graft_scalar base = v->args[X].as.scalar;
  dt_value b = dt_scalar_value(&base);
  if (b.re == 0 && b.im == 0 && dt_is_complex(v->args[Y].as.tensor->dtype)) {
    v->results[Y] = fx_zeros_like(s, g); /* as of a tensor with that number */
  } else if (b.re == 0 && b.im == 0) {
    graft_tensor *none = fx_is(s, GRAFT_OP_GE_TENSOR, vjp_arg(v, Y), 0);
    v->results[Y] = fx_not_where(s, none, fx_muls(s, fx_mul(s, g, out), -(double)INFINITY));
  } else if (b.im == 0 && b.re > 0) {
    v->results[Y] = fx_muls(s, fx_mul(s, g, fx_conj(s, out)), (double)logl(b.re));
  } else {
    graft_tensor *number = fx_full(s, g->sizes, 0, base, out->dtype, g->device);
    v->results[Y] = exponent_slope(v, fx_log(s, number), NULL);
  }
}

/* --- common divisors and multiples --- */

static uint64_t size_of(const pw_context *c, int64_t x) {
  return x < 0 && !c->is_u64 ? -U(x) : U(x);
}

/* The same where the dtype has it: the least number stays as it is, as in PyTorch. */
static int64_t size_if_held(const pw_context *c, int64_t x) {
  return size_of(c, x) <= U(dt_largest(c->compute)) ? (int64_t)size_of(c, x) : x;
}

/* Of the sizes; the rests of the least number are below 0, and so may the divisor be. */
static int64_t common_divisor(const pw_context *c, int64_t x, int64_t y) {
  int64_t rest = size_if_held(c, x), divisor = size_if_held(c, y);
  while (rest) { /* which is never -1 beside the least number: rests are smaller than sizes */
    int64_t next = c->is_u64 ? (int64_t)(U(divisor) % U(rest)) : divisor % rest;
    divisor = rest;
    rest = next;
  }
  return divisor;
}

/* A product that does not fit wraps in the dtype, and in 32 bits at least, before its sign goes. */
static int64_t common_multiple(const pw_context *c, int64_t x, int64_t y) {
  uint64_t divisor = size_of(c, common_divisor(c, x, y));
  if (!divisor) return 0;
  uint64_t product = size_of(c, x) / divisor * size_of(c, y);
  return c->is_u64 ? (int64_t)product : llabs(c->compute == GRAFT_I64 ? (int64_t)product : (int32_t)product);
}
INTEGER(gcd, common_divisor(c, x, y))
INTEGER(lcm, common_multiple(c, x, y))

/* --- compositions --- */

COMPOSE(pow, fx_binary(s, GRAFT_OP_POW_TENSOR_TENSOR, v[X], v[Y]))

/* Of bools, which have no pow, to the power of one: themselves, or all true. */
static graft_tensor *compose_pow_scalar(fx *s, const graft_value *v) {
  graft_tensor *x = pw_tensor(v, X);
  if (x->dtype != GRAFT_BOOL) return compose_pow(s, v);
  return v[Y].as.scalar.value.i
             ? fx_clone(s, x, GRAFT_FORMAT_PRESERVE)
             : fx_full_like(s, x, graft_scalar_bool(true), GRAFT_DTYPE_NONE, NULL, GRAFT_FORMAT_PRESERVE);
}
COMPOSE(addcmul,
        fx_add(s, pw_tensor(v, X), fx_mul(s, pw_times(s, pw_tensor(v, Y), v[ARG_addcmul_value]), pw_tensor(v, Z))))
COMPOSE(addcdiv,
        fx_add(s, pw_tensor(v, X), pw_times(s, fx_div(s, pw_tensor(v, Y), pw_tensor(v, Z)), v[ARG_addcdiv_value])))

static graft_tensor *compose_lerp(fx *s, const graft_value *v) {
  const in_lerp_Scalar in = in_lerp_Scalar_of(v);
  graft_scalar number = in.weight;
  dt_value weight = dt_scalar_value(&number);
  graft_tensor *way = fx_sub(s, in.end, in.self);
  if (hypotl(weight.re, weight.im) < 0.5L) return fx_add_Tensor(s, in.self, way, number);
  if (weight.im != 0) return fx_sub(s, in.end, fx_sub_Tensor(s, way, way, number));
  return fx_sub_Tensor(s, in.end, way, graft_scalar_float(1 - (double)weight.re));
}

static const op_def defs[] = {
    PW(ADD_TENSOR, "bb", OP_LATE_NUMBERS, vjp_add, 0, .promo = PW_SAME, .check = check_alpha, RIC(add)),
    PW(SUB_TENSOR, "bb", OP_LATE_NUMBERS, vjp_sub, 0, .promo = PW_SAME, .refuse = PW_OPPOSITE, .check = check_sub,
       RIC(sub)),
    PW(MUL_TENSOR, "bb", 0, vjp_mul, SAVE_X | SAVE_Y, .promo = PW_SAME, RIC(mul)),
    PW(DIV_TENSOR, "bb", 0, vjp_div, SAVE_X | SAVE_Y, .promo = PW_FLOAT, RC(div)),
    PW_BY(DIV_TENSOR_MODE, decompose_div_mode, "bb", 0, vjp_div_mode, SAVE_X | SAVE_Y, .promo = PW_SAME,
          .check = check_div_mode, .real = r_div_mode, .integer = i_div_mode, .complex_ = c_div),
    PW(PRIMS_DIV, "bb", 0, vjp_div, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_NO_BOOL, .real = r_div,
       .integer = i_div_mode, .complex_ = c_div), /* without a mode integers are cut, like C's */
    PW(GCD, "bb", 0, NULL, 0, .promo = PW_SAME, .refuse = PW_INTEGERS | PW_NO_BOOL, IO(gcd)),
    PW(LCM, "bb", 0, NULL, 0, .promo = PW_SAME, .refuse = PW_INTEGERS | PW_NO_BOOL, IO(lcm)),
    PW(FMOD_TENSOR, "bb", 0, vjp_fmod, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_NUMBERS, .real = r_fmod,
       .integer = pw_integer_fmod),
    PW(REMAINDER_TENSOR, "bb", 0, vjp_remainder, SAVE_X | SAVE_Y, .promo = PW_SAME, .refuse = PW_NUMBERS,
       RI(remainder)),
    PW(ROUND_DECIMALS, "b", 0, pw_vjp_zero, 0, .promo = PW_SAME, .refuse = PW_FLOATS, RO(round_decimals)),
    PW(FLOOR_DIVIDE, "bb", 0, NULL, 0, .promo = PW_SAME, .refuse = PW_NUMBERS, RI(floor_divide)),
    PW(POW_TENSOR_TENSOR, "bb", 0, vjp_pow_tensor, SAVE_X | SAVE_Y | SAVE_OUT, .promo = PW_SAME, .check = check_pow,
       RIC(pow)),
    PW_COMPOSED(POW_TENSOR_SCALAR, "b", 0, pw_vjp_unary, SAVE_X, .promo = PW_SAME, .operands = PW_FIRST_TWO,
                .check = check_pow, RIC(pow_scalar), .gradient = gradient_pow_scalar, .compose = compose_pow_scalar),
    PW_COMPOSED(POW_SCALAR, "b", 0, vjp_pow_base, SAVE_Y | SAVE_OUT, .promo = PW_SAME, .refuse = PW_CONTIGUOUS,
                .operands = PW_FIRST_TWO, .check = check_pow, RIC(pow_base), .compose = compose_pow),
    PW_COMPOSED(ADDCMUL, "bbb", OP_LATE_NUMBERS, vjp_addcmul, SAVE_Y | SAVE_Z, .promo = PW_SAME, .refuse = PW_NO_BOOL,
                RIC(addcmul), .compose = compose_addcmul),
    PW_COMPOSED(ADDCDIV, "bbb", OP_LATE_NUMBERS, vjp_addcdiv, SAVE_Y | SAVE_Z, .promo = PW_SAME,
                .refuse = PW_NO_BOOL | PW_NO_INT, .check = check_addcdiv, RC(addcdiv), .compose = compose_addcdiv),
    PW_COMPOSED(LERP_SCALAR, "bb", OP_LATE_NUMBERS, vjp_lerp, 0, .promo = PW_SAME, .refuse = PW_NO_BOOL | PW_NO_INT,
                .check = check_lerp, RC(lerp), .compose = compose_lerp),
    PW(LERP_TENSOR, "bbb", 0, vjp_lerp_tensor, SAVE_X | SAVE_Y | SAVE_Z, .promo = PW_SAME,
       .refuse = PW_NO_BOOL | PW_NO_INT, .check = check_lerp_tensor, RC(lerp_tensor)),
    PW_FORM(ADD_SCALAR, ADD_TENSOR, vjp_add, .promo = PW_SAME, .check = check_alpha),
    PW_FORM(SUB_SCALAR, SUB_TENSOR, vjp_sub, .promo = PW_SAME, .refuse = PW_OPPOSITE, .check = check_sub),
    PW_FORM(MUL_SCALAR, MUL_TENSOR, vjp_mul, .promo = PW_SAME),
    PW_FORM(DIV_SCALAR, DIV_TENSOR, vjp_div, .promo = PW_FLOAT),
    PW_FORM(DIV_SCALAR_MODE, DIV_TENSOR_MODE, vjp_div_mode, .promo = PW_SAME, .check = check_div_mode),
    PW_FORM(FMOD_SCALAR, FMOD_TENSOR, vjp_fmod, .promo = PW_SAME, .refuse = PW_NUMBERS),
    PW_FORM(REMAINDER_SCALAR, REMAINDER_TENSOR, vjp_remainder, .promo = PW_SAME, .refuse = PW_NUMBERS),
};
OP_TABLE(pointwise_arithmetic, defs)
