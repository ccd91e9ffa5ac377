/* The pointwise family: rules in pointwise.c, reference kernels in pointwise_kernels.c (activations and special
 * functions in files of their own), gradients in pointwise_vjp.c (likewise). One row an op in POINTWISE_OPS; the same
 * names in all. What has two outputs, or halves, is in pointwise_pairs.c. */
#ifndef GRAFT_SDK_POINTWISE_H
#define GRAFT_SDK_POINTWISE_H

#include "ops/core/op.h"

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

/* What is refused, by the category of the promoted dtype; and how the result's strides differ from TensorIterator's for
 * these operands: those of empty_like(first operand), or with the second operand first; and OP_EXACT_OUT. */
enum {
  PW_NO_BOOL = 1,
  PW_NO_INT = 2,
  PW_NO_FLOAT = 4,
  PW_NO_COMPLEX = 8,
  PW_FLOATS = PW_NO_BOOL | PW_NO_INT | PW_NO_COMPLEX,
  PW_LIKE = 16,
  PW_SECOND_FIRST = 32,
  PW_EXACT_OUT = 64
};

/* Kernel functions on the operands' values; p are the number arguments in schema order. */
typedef struct pw_context {
  graft_dtype compute;
  bool is_double; /* f64: + - x / sqrt are rounded once, in double itself */
  bool is_u64;
  uint32_t mode;           /* the value of a str argument, or of a bool */
  bool has[4], present[3]; /* which numbers and which operands are given */
  long double p[4], pi[4];
  const char *error; /* set by a kernel: an integer division by zero */
} pw_context;

typedef long double (*pw_real)(const long double *x, pw_context *c);
typedef int64_t (*pw_int)(const int64_t *x, pw_context *c);
typedef struct pw_kernel {
  uint32_t op_id;
  pw_real real;
  pw_int integer;
  dt_value (*complex_)(const dt_value *x, pw_context *c);
} pw_kernel;

typedef struct pw_kernels {
  const pw_kernel *items;
  size_t count;
} pw_kernels;
extern const pw_kernels pw_basic_kernels, pw_activation_kernels, pw_special_kernels, pw_elementary_kernels;
const pw_kernel *pw_kernel_of(uint32_t op_id);
/* Parts that kernels share: Python's //, and C's % of whole numbers. */
long double pw_floor_divide(const long double *x, const pw_context *c);
int64_t pw_integer_floor_divide(const int64_t *x, pw_context *c);
int64_t pw_integer_fmod(const int64_t *x, pw_context *c);
graft_status ref_pointwise(const graft_exec *exec, const void *args);

/* clang-format off */
#define PW_VJPS(X)                                                                                                   \
  X(abs) X(neg) X(exp) X(log) X(sqrt) X(rsqrt) X(sin) X(cos) X(tanh) X(sigmoid) X(erf) X(relu) X(gelu) X(silu)       \
  X(reciprocal) X(zero) X(add) X(sub) X(mul) X(div) X(div_mode) X(pow_tensor) X(pow_scalar) X(pow_base) X(maximum)   \
  X(minimum) X(fmod) X(where) X(masked_fill) X(clamp) X(addcmul) X(addcdiv) X(lerp) X(tanh_backward) X(sigmoid_backward)            \
  X(threshold_backward) X(gelu_backward) X(silu_backward)                                                            \
  X(elu) X(elu_backward) X(celu) X(hardtanh) X(hardtanh_backward) X(leaky_relu) X(leaky_relu_backward) X(hardswish)  \
  X(hardswish_backward) X(hardsigmoid) X(hardsigmoid_backward) X(softplus) X(softplus_backward)                      \
  X(log_sigmoid_backward) X(mish) X(mish_backward) X(threshold) X(hardshrink) X(hardshrink_backward) X(softshrink)   \
  X(softshrink_backward) X(prelu) X(nan_to_num) X(xlogy) X(logit) X(logit_backward) X(lgamma) X(digamma)             \
  X(polygamma) X(polar) X(angle) X(complex) X(logaddexp) X(logaddexp2) X(frac) X(sinc) X(erfinv)  \
  X(acos) X(acosh) X(asin) X(asinh) X(atan) X(atanh) X(cosh) X(sinh) X(tan) X(exp2) X(expm1) X(log1p) X(log2) X(log10) \
  X(erfc) X(atan2) X(hypot) X(copysign) X(sgn) X(remainder) X(clamp_tensor) X(clamp_min) X(lerp_tensor)
/* clang-format on */
#define PW_DECLARE(name) void pw_vjp_##name(op_vjp *v);
PW_VJPS(PW_DECLARE)
#undef PW_DECLARE

#endif
