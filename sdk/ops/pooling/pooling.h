/* What the files of the pooling family share. An op of it is a row: how many dims its planes have, where its windows
 * lie, and what it makes of each. */
#ifndef GRAFT_SDK_POOLING_H
#define GRAFT_SDK_POOLING_H

#include "ops/core/op.h"

enum { POOL_DIMS = 3 }; /* of a plane, at most */

typedef enum pool_windows {
  POOL_SLIDING,    /* of one size, a stride apart */
  POOL_ADAPTIVE,   /* as many as the result has places, of about the same size */
  POOL_FRACTIONAL, /* of one size; random numbers say where they begin */
  POOL_NONE        /* each element goes where its index says: the way back from a maximum */
} pool_windows;

typedef struct pool_row {
  uint32_t other; /* its gradient, or what it is the gradient of; 0: no op of the family */
  int8_t dims;
  pool_windows windows;
  bool maximum, backward;
} pool_row;

/* Sliding windows as a call gives them, a number a dim. */
typedef struct pool_sliding {
  const int64_t *kernel, *stride, *padding, *dilation;
  bool ceil;
} pool_sliding;
pool_sliding pool_sliding_of(const op_schema *schema, const graft_value *args);

graft_status pool_kernel(const graft_exec *exec, const void *args);
void pool_decompose_average(fx *s, const op_call *c, graft_tensor **outs);
void pool_decompose_average_backward(fx *s, const op_call *c, graft_tensor **outs);
void pool_decompose_maximum_backward(fx *s, const op_call *c, graft_tensor **outs);
void pool_decompose_unpool(fx *s, const op_call *c, graft_tensor **outs);
void pool_vjp(op_vjp *v);
void pool_vjp_average_backward(op_vjp *v);
void pool_vjp_maximum_backward(op_vjp *v);

#endif
