/* The pointwise family. An op is one row (PW and its short forms) in the file of its topic, with its reference kernel
 * and its gradient before it: arithmetic.c, comparison.c, elementary.c, activations.c, special.c. What rows share: the
 * rule in rules.c, the loop of the kernels in kernels.c.
 *
 * Shapes broadcast, strides are TensorIterator's; a row says how dtypes promote and what is refused. The forms with a
 * number for a tensor decompose into the tensor form, which takes numbers. */
#ifndef GRAFT_SDK_POINTWISE_H
#define GRAFT_SDK_POINTWISE_H

#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* How the result's dtype follows from the promoted one. */
typedef enum pw_promo {
  PW_SAME,    /* computed in and returned as the promoted dtype */
  PW_FLOAT,   /* integers and bool as the default float */
  PW_BOOL,    /* computed in the promoted dtype, returned as bool */
  PW_LOGICAL, /* operands keep their dtypes; bool */
  PW_REAL,    /* a complex operand gives a real result */
  PW_ANGLE,   /* both PW_FLOAT and PW_REAL */
  PW_COMPLEX, /* two real operands give a complex result */
  PW_SECOND   /* computed in the promoted dtype, returned as the second operand's */
} pw_promo;

/* Which arguments promote: what stands in a tensor's place, or so many from the first on, numbers too; or two behind
 * it. */
typedef enum pw_operands { PW_TENSORS, PW_FIRST, PW_FIRST_TWO, PW_FIRST_THREE, PW_BEHIND_FIRST } pw_operands;

/* What is refused, by the category of the promoted dtype; how the result's strides differ from TensorIterator's for
 * these operands: those of empty_like(first operand), or row-major; that it is alpha's opposite which integers must
 * hold; and that the numbers are bounds of the elements, which floating dtypes must hold, too. */
enum {
  PW_NO_BOOL = 1,
  PW_NO_INT = 2,
  PW_NO_FLOAT = 4,
  PW_NO_COMPLEX = 8,
  PW_FLOATS = PW_NO_BOOL | PW_NO_INT | PW_NO_COMPLEX,
  PW_INTEGERS = PW_NO_FLOAT | PW_NO_COMPLEX,
  PW_NUMBERS = PW_NO_BOOL | PW_NO_COMPLEX,
  PW_LIKE = 16,
  PW_CONTIGUOUS = 32,
  PW_OPPOSITE = 64,
  PW_BOUNDS = 128
};

/* --- reference kernels: one function a value --- */

/* What a function sees beside its operands. Numbers are found by their argument: c->p[ARG_elu_alpha]. */
enum { PW_ARGS = 8 };
typedef struct pw_context {
  graft_dtype compute;
  bool is_double; /* f64: + - x / sqrt are rounded once, in double itself */
  bool is_u64;
  uint32_t mode;   /* the value of a str argument, or of a bool */
  bool present[3]; /* which operands are given */
  bool has[PW_ARGS];
  long double p[PW_ARGS], pi[PW_ARGS];
  const char *error; /* set by a kernel: an integer division by zero */
} pw_context;

typedef long double (*pw_real)(const long double *v, pw_context *c);
typedef int64_t (*pw_int)(const int64_t *v, pw_context *c);
typedef dt_value (*pw_complex)(const dt_value *v, pw_context *c);

/* Functions of one expression in the operands x, y and z. */
#define REAL(name, expression)                                       \
  static long double r_##name(const long double *v, pw_context *c) { \
    long double x = v[0], y = v[1], z = v[2];                        \
    (void)c, (void)x, (void)y, (void)z;                              \
    return expression;                                               \
  }
#define INTEGER(name, expression)                            \
  static int64_t i_##name(const int64_t *v, pw_context *c) { \
    int64_t x = v[0], y = v[1], z = v[2];                    \
    (void)c, (void)x, (void)y, (void)z;                      \
    return expression;                                       \
  }
#define COMPLEX(name, expression)                                                                         \
  static dt_value c_##name(const dt_value *v, pw_context *c) {                                            \
    ref_complex x = CMPLXL(v[0].re, v[0].im), y = CMPLXL(v[1].re, v[1].im), z = CMPLXL(v[2].re, v[2].im); \
    (void)c, (void)x, (void)y, (void)z;                                                                   \
    ref_complex r = expression;                                                                           \
    return (dt_value){creall(r), cimagl(r)};                                                              \
  }
/* 1 / z by R. Smith's quotient, as PyTorch has it: NaN where both parts are infinite, or one is beside NaN. */
static inline ref_complex pw_one_over(ref_complex z) {
  long double a = creall(z), b = cimagl(z), ratio, scale;
  if (a == 0 && b == 0) return CMPLXL(INFINITY, NAN);
  if (fabsl(a) >= fabsl(b)) {
    ratio = b / a, scale = 1 / (a + b * ratio);
    return CMPLXL(scale, (0 - ratio) * scale);
  }
  ratio = a / b, scale = 1 / (a * ratio + b);
  return CMPLXL((ratio + 0) * scale, (0 * ratio - 1) * scale);
}

/* A number argument as a complex one. */
static inline ref_complex pw_number(const pw_context *c, int arg) {
  return CMPLXL(c->p[arg], c->pi[arg]);
}
/* A number argument as the compute dtype, one of whole numbers, has it. */
static inline int64_t pw_whole(const pw_context *c, int arg) {
  long double value = c->p[arg];
  if (c->compute == GRAFT_BOOL) return value != 0;
  return c->is_u64 && value >= 0 ? (int64_t)(uint64_t)value : (int64_t)value;
}
/* a < b of integers, which may be u64. */
static inline bool pw_less(const pw_context *c, int64_t a, int64_t b) {
  return c->is_u64 ? (uint64_t)a < (uint64_t)b : a < b;
}

/* In a row: which of real, integer and complex there are. */
#define RIC(name) .real = r_##name, .integer = i_##name, .complex_ = c_##name
#define RC(name)  .real = r_##name, .complex_ = c_##name
#define RI(name)  .real = r_##name, .integer = i_##name
#define RO(name)  .real = r_##name
#define IO(name)  .integer = i_##name
#define CO(name)  .complex_ = c_##name

/* --- gradients --- */

/* Of an op with one operand, in one expression: s is the scope, g the cotangent, x the operand, y the result. */
typedef graft_tensor *(*pw_gradient)(fx *s, graft_tensor *g, graft_tensor *x, graft_tensor *y, const graft_value *args);
#define GRADIENT(name, expression)                                                               \
  static graft_tensor *gradient_##name(fx *s, graft_tensor *g, graft_tensor *x, graft_tensor *y, \
                                       const graft_value *args) {                                \
    (void)x, (void)y, (void)args;                                                                \
    return expression;                                                                           \
  }

/* --- compositions: what serves a call that no slot takes --- */

/* In one expression: s is the scope, v the arguments. */
typedef graft_tensor *(*pw_composition)(fx *s, const graft_value *v);
#define COMPOSE(name, expression)                                    \
  static graft_tensor *compose_##name(fx *s, const graft_value *v) { \
    return expression;                                               \
  }
static inline graft_tensor *pw_tensor(const graft_value *v, int arg) {
  return v[arg].as.tensor;
}
/* Relations and sums with numbers, which may be arguments. */
static inline graft_tensor *pw_op(fx *s, uint32_t op_id, graft_tensor *a, graft_value b) {
  return fx_binary(s, op_id, fx_tensor(a), b);
}
/* The larger, and the smaller, of both; NaN stays. A limit that is not given is none. */
static inline graft_tensor *pw_at_least(fx *s, graft_tensor *t, graft_value limit) {
  return limit.kind == GRAFT_VALUE_NONE ? t : pw_op(s, GRAFT_OP_MAXIMUM, t, limit);
}
static inline graft_tensor *pw_at_most(fx *s, graft_tensor *t, graft_value limit) {
  return limit.kind == GRAFT_VALUE_NONE ? t : pw_op(s, GRAFT_OP_MINIMUM, t, limit);
}
/* 1 - t */
static inline graft_tensor *pw_rest(fx *s, graft_tensor *t) {
  return fx_adds(s, fx_neg(s, t), 1);
}

/* Where the operands of most ops stand. */
enum { X = ARG_addcmul_self, Y = ARG_addcmul_tensor1, Z = ARG_addcmul_tensor2 };
#define SAVE_X   OP_SAVE_ARG(addcmul, self)
#define SAVE_Y   OP_SAVE_ARG(addcmul, tensor1)
#define SAVE_Z   OP_SAVE_ARG(addcmul, tensor2)
#define SAVE_OUT OP_SAVE_OUT(addcmul, out)

/* A number, or the conjugate of a tensor. */
graft_value pw_conj(op_vjp *v, int arg);
/* t times the conjugate of an argument. */
graft_tensor *pw_scaled(op_vjp *v, graft_tensor *t, int arg);
/* The op of the cotangent: the gradient for its first operand, in which it is linear. */
graft_tensor *pw_again(op_vjp *v);
static inline graft_tensor *pw_times(fx *s, graft_tensor *a, graft_value b) {
  return fx_binary(s, GRAFT_OP_MUL_TENSOR, fx_tensor(a), b);
}
static inline graft_tensor *pw_over(fx *s, graft_tensor *a, graft_value b) {
  return fx_binary(s, GRAFT_OP_DIV_TENSOR, fx_tensor(a), b);
}

void pw_vjp_unary(op_vjp *v);  /* by the row's gradient */
void pw_vjp_zero(op_vjp *v);   /* of steps: 0 */
void pw_vjp_linear(op_vjp *v); /* pw_again for the first operand, 0 for the second */

/* --- rows --- */

typedef struct pw_row {
  pw_promo promo;
  pw_operands operands;
  uint32_t refuse;
  uint32_t tensor_form; /* X.Scalar: the op it is with a number in the tensor's place */
  op_infer_fn check;    /* further conditions */
  pw_real real;
  pw_int integer;
  pw_complex complex_;
  pw_gradient gradient;
  pw_composition compose;
} pw_row;

graft_status pw_infer(op_call *call);
graft_status pw_bind(const op_call *call, const graft_value *args, int arg, const graft_value *number);
void pw_decompose_form(fx *s, const op_call *call, graft_tensor **outs);
void pw_decompose_composed(fx *s, const op_call *call, graft_tensor **outs);
graft_status pw_reference(const graft_exec *exec, const void *args);

/* The rest are fields of pw_row. */
#define PW_BY(op, decompose_, roles_, flags_, vjp_, saves_, ...)                                                    \
  {                                                                                                                 \
    .op_id = GRAFT_OP_##op, .roles = roles_, .flags = OP_ELEMENTWISE | OP_PROMOTES_NUMBERS | (flags_), .vjp = vjp_, \
    .saves = saves_, .infer = pw_infer, .bind = pw_bind, .reference = pw_reference, .decompose = decompose_,        \
    .row = &(const pw_row) {                                                                                        \
      __VA_ARGS__                                                                                                   \
    }                                                                                                               \
  }
#define PW(op, roles_, flags_, vjp_, saves_, ...) PW_BY(op, NULL, roles_, flags_, vjp_, saves_, __VA_ARGS__)
#define PW_COMPOSED(op, roles_, flags_, vjp_, saves_, ...) \
  PW_BY(op, pw_decompose_composed, roles_, flags_, vjp_, saves_, __VA_ARGS__)
#define PW_UNARY(op, flags_, promo_, refuse_, kernels, formula, saves_) \
  PW(op, "b", flags_, pw_vjp_unary, saves_, .promo = promo_, .refuse = refuse_, kernels, .gradient = gradient_##formula)
#define PW_FORM(op, form, vjp_, ...)                                                                             \
  {                                                                                                              \
    .op_id = GRAFT_OP_##op, .roles = "b",                                                                        \
    .flags = OP_ELEMENTWISE | OP_PROMOTES_NUMBERS | OP_NO_WIDEN | OP_NUMBER_FORM | OP_LATE_NUMBERS, .vjp = vjp_, \
    .infer = pw_infer, .bind = pw_bind, .decompose = pw_decompose_form, .row = &(const pw_row) {                 \
      .tensor_form = GRAFT_OP_##form, .operands = PW_FIRST_TWO, __VA_ARGS__                                      \
    }                                                                                                            \
  }

/* Checks that several topics have. */
graft_status pw_check_one_dtype(op_call *call);

/* Parts that kernels share: Python's //, and C's % of whole numbers; the slope of log Gamma. */
long double pw_digamma(long double x);
long double pw_floor_divide(const long double *v, const pw_context *c);
int64_t pw_integer_floor_divide(const int64_t *v, pw_context *c);
int64_t pw_integer_fmod(const int64_t *v, pw_context *c);

#endif
