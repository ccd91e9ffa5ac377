/* Reference kernels of pointwise ops: one function a value, in long double, int64 and complex. */
#include <string.h>

#include "ops/pointwise/kernels.h"

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
static long double root(const pw_context *c, long double a) {
  return c->is_double ? (long double)sqrt((double)a) : sqrtl(a);
}

REAL(abs, fabsl(x[0]))
REAL(neg, -x[0])
REAL(exp, expl(x[0]))
REAL(log, logl(x[0]))
REAL(sqrt, root(c, x[0]))
REAL(rsqrt, 1 / sqrtl(x[0]))
REAL(sin, sinl(x[0]))
REAL(cos, cosl(x[0]))
REAL(tanh, tanhl(x[0]))
REAL(sigmoid, 1 / (1 + expl(-x[0])))
REAL(erf, erfl(x[0]))
REAL(reciprocal, quotient(c, 1, x[0]))
REAL(relu, x[0] <= 0 ? 0 : x[0])
REAL(silu, x[0] / (1 + expl(-x[0])))
REAL(floor, floorl(x[0]))
REAL(isnan, isnan(x[0]))
REAL(logical_not, x[0] == 0)
REAL(logical_and, x[0] != 0 && x[1] != 0)
REAL(add, plus(c, x[0], P(0) == 1 ? x[1] : P(0) * x[1]))
REAL(sub, plus(c, x[0], P(0) == 1 ? -x[1] : -P(0) * x[1]))
REAL(mul, product(c, x[0], x[1]))
REAL(div, quotient(c, x[0], x[1]))
REAL(pow, powl(x[0], x[1]))
REAL(pow_scalar, powl(x[0], P(0)))
REAL(pow_base, powl(P(0), x[0]))
REAL(maximum, isnan(x[0]) || x[0] > x[1] ? x[0] : x[1])
REAL(minimum, isnan(x[0]) || x[0] < x[1] ? x[0] : x[1])
REAL(fmod, fmodl(x[0], x[1]))
REAL(where, x[0] != 0 ? x[1] : x[2])
REAL(masked_fill, x[1] != 0 ? P(0) : x[0])
REAL(masked_fill_tensor, x[1] != 0 ? x[2] : x[0])
REAL(eq, x[0] == x[1])
REAL(ne, x[0] != x[1])
REAL(lt, x[0] < x[1])
REAL(le, x[0] <= x[1])
REAL(gt, x[0] > x[1])
REAL(ge, x[0] >= x[1])
REAL(addcmul, x[0] + P(0) * x[1] * x[2])
REAL(addcdiv, x[0] + P(0) * (x[1] / x[2]))
REAL(lerp, fabsl(P(0)) < 0.5L ? x[0] + P(0) * (x[1] - x[0]) : x[1] - (x[1] - x[0]) * (1 - P(0)))
REAL(tanh_backward, x[0] * (1 - x[1] * x[1]))
REAL(sigmoid_backward, x[0] * (1 - x[1]) * x[1])
REAL(threshold_backward, x[1] <= P(0) ? 0 : x[0])

static long double r_clamp(const long double *x, pw_context *c) {
  long double y = x[0];
  if (isnan(y)) return y;
  if (c->has[0] && !(y >= P(0))) y = P(0);
  if (c->has[1] && !(y <= P(1))) y = P(1);
  return y;
}

/* tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); else x Phi(x), by erfc so that the left tail keeps its
 * digits. */
#define GELU_C 0.797884560802865355879892119868763737L
static long double gelu_tanh(long double x) {
  return tanhl(GELU_C * (x + 0.044715L * x * x * x));
}

static long double r_gelu(const long double *x, pw_context *c) {
  if (c->mode == GRAFT_STR_APPROXIMATE_TANH) return 0.5L * x[0] * (1 + gelu_tanh(x[0]));
  return 0.5L * x[0] * erfcl(-x[0] * M_SQRT1_2l);
}

static long double r_gelu_backward(const long double *x, pw_context *c) {
  long double g = x[0], y = x[1];
  if (c->mode == GRAFT_STR_APPROXIMATE_TANH) {
    long double t = gelu_tanh(y), slope = GELU_C * (1 + 3 * 0.044715L * y * y);
    return g * (0.5L * (1 + t) + 0.5L * y * (1 - t * t) * slope);
  }
  long double density = expl(-0.5L * y * y) * 0.398942280401432677939946059934381868L;
  return g * (0.5L * erfcl(-y * M_SQRT1_2l) + y * density);
}

static long double r_silu_backward(const long double *x, pw_context *c) {
  (void)c;
  long double s = 1 / (1 + expl(-x[1]));
  return x[0] * s * (1 + x[1] * (1 - s));
}

/* Rounded division as PyTorch defines it: trunc of the quotient as the dtype computes it; floor through fmod, so that
 * the result is exact. */
static long double r_div_mode(const long double *x, pw_context *c) {
  if (c->mode == GRAFT_STR_ROUNDING_MODE_FLOOR) return pw_floor_divide(x, c);
  bool truncates = c->mode == GRAFT_STR_ROUNDING_MODE_TRUNC;
  long double q = quotient(c, x[0], x[1]);
  return truncates ? truncl(dt_round(dt_accumulate(c->compute), q)) : q;
}

long double pw_floor_divide(const long double *x, const pw_context *c) {
  long double a = x[0], b = x[1];
  if (b == 0) return quotient(c, a, b);
  long double rest = fmodl(a, b), whole = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) whole -= 1;
  if (whole == 0) return copysignl(0, a / b);
  long double down = floorl(whole);
  return whole - down > 0.5L ? down + 1 : down;
}

/* --- integers; arithmetic wraps --- */

static int64_t wrapped(const pw_context *c, uint64_t value) {
  (void)c;
  return (int64_t)value;
}
/* A number as self's dtype has it. */
static int64_t number_in(const pw_context *c, long double value) {
  if (c->compute == GRAFT_BOOL) return value != 0;
  return c->is_u64 && value >= 0 ? (int64_t)(uint64_t)value : (int64_t)value;
}
#define U(v)       ((uint64_t)(v))
#define LESS(a, b) (c->is_u64 ? U(a) < U(b) : (a) < (b))

INTEGER(abs, x[0] < 0 && !c->is_u64 ? wrapped(c, -U(x[0])) : x[0])
INTEGER(neg, wrapped(c, -U(x[0])))
INTEGER(relu, !c->is_u64 && x[0] < 0 ? 0 : x[0])
INTEGER(floor, x[0])
INTEGER(bitwise_not, c->compute == GRAFT_BOOL ? !x[0] : ~x[0])
INTEGER(bitwise_and, x[0] & x[1])
INTEGER(add, wrapped(c, U(x[0]) + U((int64_t)P(0)) * U(x[1])))
INTEGER(sub, wrapped(c, U(x[0]) - U((int64_t)P(0)) * U(x[1])))
INTEGER(mul, wrapped(c, U(x[0]) * U(x[1])))
INTEGER(maximum, LESS(x[0], x[1]) ? x[1] : x[0])
INTEGER(minimum, LESS(x[0], x[1]) ? x[0] : x[1])
INTEGER(where, x[0] ? x[1] : x[2])
INTEGER(masked_fill, x[1] ? number_in(c, P(0)) : x[0])
INTEGER(masked_fill_tensor, x[1] ? x[2] : x[0])
INTEGER(eq, x[0] == x[1])
INTEGER(ne, x[0] != x[1])
INTEGER(lt, LESS(x[0], x[1]))
INTEGER(le, !LESS(x[1], x[0]))
INTEGER(gt, LESS(x[1], x[0]))
INTEGER(ge, !LESS(x[0], x[1]))
INTEGER(addcmul, wrapped(c, U(x[0]) + U((int64_t)P(0)) * U(x[1]) * U(x[2])))
INTEGER(threshold_backward, x[1] <= (int64_t)P(0) ? 0 : x[0])

static int64_t i_clamp(const int64_t *x, pw_context *c) {
  int64_t y = x[0];
  if (c->has[0] && LESS(y, (int64_t)P(0))) y = (int64_t)P(0);
  if (c->has[1] && LESS((int64_t)P(1), y)) y = (int64_t)P(1);
  return y;
}

static int64_t power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, factor = U(base);
  for (; exponent; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return (int64_t)result;
}
INTEGER(pow, power(x[0], x[1]))
INTEGER(pow_scalar, power(x[0], (int64_t)P(0)))
INTEGER(pow_base, power((int64_t)P(0), x[0]))

static bool division_fails(const int64_t *x, pw_context *c) {
  if (x[1] == 0) c->error = "integer division by zero";
  return x[1] == 0;
}

int64_t pw_integer_fmod(const int64_t *x, pw_context *c) {
  if (division_fails(x, c)) return 0;
  if (c->is_u64) return (int64_t)(U(x[0]) % U(x[1]));
  return x[1] == -1 ? 0 : x[0] % x[1];
}

static int64_t i_div_mode(const int64_t *x, pw_context *c) {
  if (division_fails(x, c)) return 0;
  if (c->is_u64) return (int64_t)(U(x[0]) / U(x[1]));
  if (x[1] == -1) return (int64_t)-U(x[0]);
  return c->mode == GRAFT_STR_ROUNDING_MODE_FLOOR ? pw_integer_floor_divide(x, c) : x[0] / x[1];
}

int64_t pw_integer_floor_divide(const int64_t *x, pw_context *c) {
  if (division_fails(x, c)) return 0;
  if (c->is_u64) return (int64_t)(U(x[0]) / U(x[1]));
  if (x[1] == -1) return (int64_t)-U(x[0]);
  return x[0] / x[1] - (x[0] % x[1] && (x[0] < 0) != (x[1] < 0));
}

/* --- complex --- */

COMPLEX(abs, cabsl(x))
COMPLEX(neg, -x)
COMPLEX(exp, cexpl(x))
COMPLEX(log, clogl(x))
COMPLEX(sqrt, csqrtl(x))
COMPLEX(rsqrt, 1 / csqrtl(x))
COMPLEX(sin, csinl(x))
COMPLEX(cos, ccosl(x))
COMPLEX(tanh, ctanhl(x))
COMPLEX(sigmoid, 1 / (1 + cexpl(-x)))
COMPLEX(silu, x / (1 + cexpl(-x)))
COMPLEX(reciprocal, 1 / x)
COMPLEX(isnan, isnan(creall(x)) || isnan(cimagl(x)))
COMPLEX(logical_not, x == 0)
COMPLEX(logical_and, x != 0 && y != 0)
COMPLEX(add, x + CP(0) * y)
COMPLEX(sub, x - CP(0) * y)
COMPLEX(mul, x *y)
COMPLEX(div, x / y)
COMPLEX(pow, x == 0 && y == 0 ? 1 : cpowl(x, y))
COMPLEX(pow_scalar, x == 0 && CP(0) == 0 ? 1 : CP(0) == 2 ? x * x : cpowl(x, CP(0)))
COMPLEX(pow_base, x == 0 && CP(0) == 0 ? 1 : cpowl(CP(0), x))
COMPLEX(where, x != 0 ? y : z)
COMPLEX(masked_fill, y != 0 ? CP(0) : x)
COMPLEX(masked_fill_tensor, y != 0 ? z : x)
COMPLEX(eq, x == y)
COMPLEX(ne, x != y)
COMPLEX(addcmul, x + CP(0) * y * z)
COMPLEX(addcdiv, x + CP(0) * (y / z))
COMPLEX(lerp, cabsl(CP(0)) < 0.5L ? x + CP(0) * (y - x) : y - (y - x) * (1 - CP(0)))
COMPLEX(tanh_backward, x *conjl(1 - y * y))
COMPLEX(sigmoid_backward, x *conjl((1 - y) * y))

static dt_value c_silu_backward(const dt_value *v, pw_context *c) {
  (void)c;
  ref_complex g = v[0].re + v[0].im * I, x = v[1].re + v[1].im * I, s = 1 / (1 + cexpl(-x));
  ref_complex r = g * conjl(s * (1 + x * (1 - s)));
  return (dt_value){creall(r), cimagl(r)};
}

static const pw_kernel kernels[] = {
    RIC(ABS, abs) RIC(NEG, neg) RC(EXP, exp) RC(LOG, log) RC(SQRT, sqrt) RC(RSQRT, rsqrt) RC(SIN, sin) RC(COS, cos)
        RC(TANH, tanh) RC(SIGMOID, sigmoid) RO(ERF, erf) RC(RECIPROCAL, reciprocal) RI(RELU, relu) RO(GELU, gelu) RC(
            SILU, silu) RI(FLOOR, floor) RC(ISNAN, isnan) RC(LOGICAL_NOT, logical_not) RC(LOGICAL_AND, logical_and)
            IO(BITWISE_NOT, bitwise_not) IO(BITWISE_AND_TENSOR, bitwise_and) RIC(ADD_TENSOR, add) RIC(SUB_TENSOR, sub)
                RIC(MUL_TENSOR, mul) RC(DIV_TENSOR, div){GRAFT_OP_DIV_TENSOR_MODE, r_div_mode, i_div_mode, c_div},
    RIC(POW_TENSOR_TENSOR, pow) RIC(POW_TENSOR_SCALAR, pow_scalar) RIC(POW_SCALAR, pow_base) RI(MAXIMUM, maximum)
        RI(MINIMUM, minimum){GRAFT_OP_FMOD_TENSOR, r_fmod, pw_integer_fmod, NULL},
    RIC(WHERE_SELF, where) RIC(MASKED_FILL_SCALAR, masked_fill) RIC(MASKED_FILL_TENSOR, masked_fill_tensor)
        RI(CLAMP, clamp) RIC(EQ_TENSOR, eq) RIC(NE_TENSOR, ne) RI(LT_TENSOR, lt) RI(LE_TENSOR, le) RI(GT_TENSOR, gt)
            RI(GE_TENSOR, ge) RIC(ADDCMUL, addcmul) RC(ADDCDIV, addcdiv) RC(LERP_SCALAR, lerp)
                RC(TANH_BACKWARD, tanh_backward) RC(SIGMOID_BACKWARD, sigmoid_backward)
                    RI(THRESHOLD_BACKWARD, threshold_backward) RO(GELU_BACKWARD, gelu_backward)
                        RC(SILU_BACKWARD, silu_backward)};

PW_KERNELS(basic);

const pw_kernel *pw_kernel_of(uint32_t op_id) {
  static const pw_kernels *const all[] = {&pw_basic_kernels, &pw_activation_kernels, &pw_special_kernels,
                                          &pw_elementary_kernels};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
    for (size_t i = 0; i < all[k]->count; i++) {
      if (all[k]->items[i].op_id == op_id) return &all[k]->items[i];
    }
  }
  return NULL;
}

/* --- the loop --- */

typedef struct pw_run {
  const pw_kernel *kernel;
  pw_context c;
  int count;
  const graft_tensor_desc *x[3];
  const graft_tensor_desc *out;
  char *at[4]; /* operands, then the output */
} pw_run;

static const void *field(const void *args, uint16_t offset) {
  const void *pointer;
  memcpy(&pointer, (const char *)args + offset, sizeof pointer);
  return pointer;
}

/* A number takes part in the precision that the dtype is computed in: 0.1 with f32 or bf16 is 0.1f. */
static long double as_number(const pw_run *r, long double value) {
  graft_dtype real = dt_real(r->c.compute);
  return dt_is_float(real) ? dt_round(dt_accumulate(real), value) : value;
}

/* The number at an argument's place; false where it is absent, or no number. */
static bool number_at(const op_arg *arg, const void *args, dt_value *value) {
  const char *at = (const char *)args + arg->offset;
  const void *pointer = NULL;
  double number;
  int64_t whole;
  if (arg->kind == OPK_INT) {
    memcpy(&whole, at, sizeof whole);
    *value = (dt_value){(long double)whole, 0};
    return true;
  }
  if (arg->kind == OPK_SCALAR || arg->flags & OPA_OPTIONAL) {
    pointer = field(args, arg->offset);
    if (!pointer) return false;
    at = pointer;
  }
  if (arg->kind == OPK_SCALAR) {
    *value = dt_scalar_value(pointer);
    return true;
  }
  memcpy(&number, at, sizeof number);
  *value = (dt_value){number, 0};
  return true;
}

/* Neither absent nor a number. */
static bool in_memory(const graft_tensor_desc *x) {
  return x && !(x->flags & GRAFT_TENSOR_HOST_VALUE);
}

static void collect(pw_run *r, const op_schema *schema, const void *args) {
  int numbers = 0;
  for (int i = 0; i < schema->nargs; i++) {
    const op_arg *arg = &schema->args[i];
    if (arg->kind == OPK_TENSOR) r->x[r->count++] = field(args, arg->offset);
    if (arg->kind == OPK_STR) memcpy(&r->c.mode, (const char *)args + arg->offset, sizeof r->c.mode);
    if (arg->kind == OPK_BOOL) r->c.mode = ((const uint8_t *)args)[arg->offset];
    if (arg->kind != OPK_SCALAR && arg->kind != OPK_FLOAT && arg->kind != OPK_INT) continue;
    dt_value value;
    if (number_at(arg, args, &value)) {
      r->c.has[numbers] = true;
      r->c.p[numbers] = value.re;
      r->c.pi[numbers] = value.im;
    }
    numbers++;
  }
  r->out = field(args, schema->rets[0].offset);
  r->c.compute = r->out->dl.dtype;
  for (int i = r->count - 1; i >= 0; i--) { /* a comparison is computed in the operands' dtype, not in bool */
    bool mask = schema->id == GRAFT_OP_WHERE_SELF && i == 0;
    r->c.present[i] = r->x[i] != NULL;
    if (!mask && in_memory(r->x[i])) r->c.compute = r->x[i]->dl.dtype;
  }
  r->c.is_double = r->c.compute == GRAFT_F64;
  r->c.is_u64 = r->c.compute == GRAFT_U64;
  for (int i = 0; i < 4; i++) {
    r->c.p[i] = as_number(r, r->c.p[i]);
    r->c.pi[i] = as_number(r, r->c.pi[i]);
  }
}

static int64_t as_integer(const pw_run *r, long double value) {
  return r->c.is_u64 && value >= 0 ? (int64_t)(uint64_t)value : (int64_t)value;
}

static dt_value compute_one(pw_run *r, const dt_value *x) {
  dt_category category = dt_category_of(r->c.compute);
  for (int i = 0; i < r->count; i++) {
    if (r->x[i] && dt_is_complex(r->x[i]->dl.dtype)) category = DT_COMPLEX; /* logical ops take operands as they are */
  }
  bool pairs = !r->kernel->real && !r->kernel->integer; /* of real operands, too */
  if ((category == DT_COMPLEX || pairs) && r->kernel->complex_) return r->kernel->complex_(x, &r->c);
  if (category <= DT_INTEGER && r->kernel->integer) {
    int64_t values[3];
    for (int i = 0; i < r->count; i++) values[i] = as_integer(r, x[i].re);
    int64_t result = r->kernel->integer(values, &r->c);
    return (dt_value){r->c.is_u64 ? (long double)(uint64_t)result : (long double)result, 0};
  }
  long double values[3];
  for (int i = 0; i < r->count; i++) values[i] = x[i].re;
  return (dt_value){r->kernel->real(values, &r->c), 0};
}

static void run_dim(pw_run *r, int32_t dim) {
  const graft_dl_tensor *out = &r->out->dl;
  if (dim == out->ndim) {
    dt_value x[3] = {{0, 0}, {0, 0}, {0, 0}};
    for (int i = 0; i < r->count; i++) {
      if (!r->x[i]) continue;
      x[i] = dt_load(r->x[i]->dl.dtype, r->at[i]);
      if (r->x[i]->flags & GRAFT_TENSOR_HOST_VALUE) x[i] = (dt_value){as_number(r, x[i].re), as_number(r, x[i].im)};
    }
    dt_store(out->dtype, r->at[3], compute_one(r, x));
    return;
  }
  char *start[4];
  memcpy(start, r->at, sizeof start);
  for (int64_t n = 0; n < out->shape[dim]; n++) {
    run_dim(r, dim + 1);
    for (int i = 0; i < r->count; i++) {
      if (!in_memory(r->x[i])) continue;
      r->at[i] += r->x[i]->dl.strides[dim] * (int64_t)dt_bytes(r->x[i]->dl.dtype);
    }
    r->at[3] += out->strides[dim] * (int64_t)dt_bytes(out->dtype);
  }
  memcpy(r->at, start, sizeof start);
}

graft_status ref_pointwise(const graft_exec *exec, const void *args) {
  (void)exec;
  const graft_args *head = args;
  pw_run r = {.kernel = pw_kernel_of(head->op_id)};
  if (!ref_texts_are_known(op_schema_of(head->op_id), args)) return GRAFT_UNIMPLEMENTED;
  collect(&r, op_schema_of(head->op_id), args);
  if (dt_category_of(r.c.compute) == DT_COMPLEX && !r.kernel->complex_) return GRAFT_UNIMPLEMENTED;
  for (int i = 0; i < r.count; i++) r.at[i] = r.x[i] ? ref_data(r.x[i]) : NULL;
  r.at[3] = ref_data(r.out);
  run_dim(&r, 0);
  return r.c.error ? err_about(GRAFT_INVALID_ARGUMENT, op_schema_of(head->op_id)->name, "%s", r.c.error) : GRAFT_OK;
}
