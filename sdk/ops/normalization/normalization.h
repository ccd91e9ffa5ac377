/* The normalization family: rules in normalization.c, reference kernels in normalization_kernels.c, decompositions and
 * gradients in normalization_vjp.c.
 *
 * Layer, group and batch norm are one computation. Elements fall into rows that share a mean and a variance, and across
 * rows into those that share a weight and a bias; the three differ only in which. */
#ifndef GRAFT_SDK_NORMALIZATION_H
#define GRAFT_SDK_NORMALIZATION_H

#include "ops/core/op.h"

typedef enum norm_kind { NORM_LAYER, NORM_GROUP, NORM_BATCH } norm_kind;

/* Where an op's arguments stand, -1 for none; one row an op. */
typedef struct norm_args {
  uint32_t op_id;
  norm_kind kind;
  int8_t grad, input, sizes; /* sizes: normalized_shape, or N of N, C, HxW, group */
  int8_t weight, bias, mean, rstd, running_mean, running_var;
  int8_t train, eps, mask; /* train -1: see `fixed` */
  bool fixed;              /* running statistics only */
} norm_args;
const norm_args *norm_args_of(uint32_t op_id);

/* An optional tensor argument; NULL where there is none. */
static inline graft_tensor *norm_tensor(const graft_value *args, int at) {
  return at >= 0 && args[at].kind == GRAFT_VALUE_TENSOR ? args[at].as.tensor : NULL;
}
/* Whether the statistics are given ones: batch norm in evaluation. */
static inline bool norm_fixed(const norm_args *at, const graft_value *args) {
  return at->fixed || (at->train >= 0 && !args[at->train].as.i);
}

/* clang-format off */
#define NORM_KERNELS(X)                                                                                 \
  X(native_layer_norm)                                                                                  \
  X(native_group_norm) X(native_batch_norm) X(native_layer_norm_backward) X(native_group_norm_backward) \
      X(native_batch_norm_backward)
/* clang-format on */
#define NORM_DECLARE(name) graft_status ref_##name(const graft_exec *exec, const graft_args_##name *args);
NORM_KERNELS(NORM_DECLARE)
#undef NORM_DECLARE

void norm_decompose_forward(fx *s, const op_call *call, graft_tensor **outs);
void norm_decompose_backward(fx *s, const op_call *call, graft_tensor **outs);
void norm_decompose_legit(fx *s, const op_call *call, graft_tensor **outs); /* to native_batch_norm */
void norm_vjp_forward(op_vjp *v);
void norm_vjp_backward(op_vjp *v);

#endif
