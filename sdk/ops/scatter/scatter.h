/* The ops of the family scatter that stand in files of their own: whole slices along a dim and put (scatter_along.c),
 * and scatter_reduce (scatter_reduce.c). Their rows are in scatter.c. */
#ifndef GRAFT_SDK_OPS_SCATTER_H
#define GRAFT_SDK_OPS_SCATTER_H

#include "ops/indexing/indexing.h"

/* scatter.src, scatter_add, scatter_reduce: the rule of self, dim, index and src. */
graft_status sct_infer(op_call *call);
/* A gradient in index's shape, in src's: where src is larger than index, the rest of it went nowhere. */
graft_tensor *sct_padded(op_vjp *v, graft_tensor *g);
/* Their gradient for src: what index names of g, padded. */
graft_tensor *sct_to_src(op_vjp *v, graft_tensor *g);

graft_status sct_infer_along(op_call *call);
graft_status sct_infer_index_fill(op_call *call);
graft_status sct_infer_put(op_call *call);
void sct_decompose_index_add(fx *s, const op_call *call, graft_tensor **outs);
void sct_decompose_index_copy(fx *s, const op_call *call, graft_tensor **outs);
void sct_decompose_index_fill(fx *s, const op_call *call, graft_tensor **outs);
void sct_decompose_put(fx *s, const op_call *call, graft_tensor **outs);
void sct_vjp_index_add(op_vjp *v);
void sct_vjp_index_copy(op_vjp *v);
void sct_vjp_index_fill(op_vjp *v);
void sct_vjp_put(op_vjp *v);
graft_status ref_index_add(const graft_exec *exec, const graft_args_index_add *a);
graft_status ref_index_copy(const graft_exec *exec, const graft_args_index_copy *a);
graft_status ref_index_fill_int_Tensor(const graft_exec *exec, const graft_args_index_fill_int_Tensor *a);
graft_status ref_put(const graft_exec *exec, const graft_args_put *a);

graft_status sct_infer_reduce(op_call *call);
void sct_decompose_reduce(fx *s, const op_call *call, graft_tensor **outs);
void sct_vjp_reduce(op_vjp *v);
graft_status ref_scatter_reduce_two(const graft_exec *exec, const graft_args_scatter_reduce_two *a);

#endif
