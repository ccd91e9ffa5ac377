/* Layer, group and batch norm are one computation. Elements fall into rows that share a mean and a variance, and across
 * rows into those that share a weight and a bias; the three differ only in which. */
#ifndef GRAFT_SDK_NORMALIZATION_H
#define GRAFT_SDK_NORMALIZATION_H

#include "ops/core/op.h"

typedef enum norm_kind { NORM_LAYER, NORM_GROUP, NORM_BATCH } norm_kind;

/* Where an op's arguments stand, -1 for none; the row of its op_def. Momentum and eps are asked for only where running
 * statistics are updated, and where a deviation's inverse is computed. */
typedef struct norm_args {
  norm_kind kind;
  bool fixed; /* running statistics only */
  int8_t grad, input, weight, bias, mean, rstd, running_mean, running_var, train, momentum, eps, mask;
  int8_t shape, n, channels, area, groups; /* normalized_shape of layer norm; the others of group norm */
} norm_args;
static inline const norm_args *norm_args_of(uint32_t op_id) {
  return op_row(op_id);
}

/* An optional tensor argument; NULL where there is none. */
static inline graft_tensor *norm_tensor(const graft_value *args, int at) {
  return at >= 0 && args[at].kind == GRAFT_VALUE_TENSOR ? args[at].as.tensor : NULL;
}
/* Whether the statistics are given ones: batch norm in evaluation. */
static inline bool norm_fixed(const norm_args *at, const graft_value *args) {
  return at->fixed || (at->train >= 0 && !args[at->train].as.i);
}

void norm_decompose_forward(fx *s, const op_call *call, graft_tensor **outs);
void norm_decompose_backward(fx *s, const op_call *call, graft_tensor **outs);
void norm_decompose_legit(fx *s, const op_call *call, graft_tensor **outs); /* to native_batch_norm */
/* Reference kernels of all three. */
graft_status norm_ref_forward(const graft_exec *exec, const void *args);
graft_status norm_ref_backward(const graft_exec *exec, const void *args);
void norm_vjp_forward(op_vjp *v);
void norm_vjp_backward(op_vjp *v);

#endif
