/* What the files of the family shape share. */
#ifndef GRAFT_SDK_OPS_SHAPE_H
#define GRAFT_SDK_OPS_SHAPE_H

#include "ops/core/op.h"

/* Output 0 as self is written over: its very strides, gaps included, where no two of its elements are one. */
void shape_out_over(op_call *call, const graft_tensor *self);
/* A new tensor as the rule promised output 0; and a copy into a view of one. */
graft_tensor *shape_new_out(fx *s, const op_call *call);
/* Zeros in the shape of `like`, and of the cotangent's dtype. */
graft_tensor *shape_zeros_for(op_vjp *v, const graft_tensor *like);
/* The gradient of what only copies: the cotangent. */
void shape_vjp_same(op_vjp *v);

#endif
