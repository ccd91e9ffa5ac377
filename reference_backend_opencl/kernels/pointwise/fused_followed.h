/* A matrix product or a convolution that calls follow in its kernel: what a group's executable has of it. */
#ifndef OCL_FUSED_FOLLOWED_H
#define OCL_FUSED_FOLLOWED_H

#include "kernels/pointwise/fused.h"

enum { OCL_FOLLOWED_READS = 3 }; /* factors and a matrix to add; input, weight and bias */

typedef struct ocl_followed {
  ocl_product *product;
  ocl_forward *convolution; /* one of the two, or none */
  ocl_product_call call;
  const graft_args_convolution *convolves; /* while it is made; NULL: a product */
  int inputs[OCL_FOLLOWED_READS];          /* which of the group's inputs they are; -1: none */
  int main_output;                         /* what the first call's kernel writes by itself */
  int64_t space[3 * OCL_FUSED_TENSORS];
  size_t space_bytes;
} ocl_followed;

/* Its kernels, with what `kernel` has of the other calls. UNIMPLEMENTED: they run one by one. */
graft_status ocl_followed_make(ocl_followed *f, const graft_exec *exec, ocl_fused_kernel *kernel);
/* Whether its kernels ask how tensors begin. */
bool ocl_followed_asks(const ocl_followed *f);
/* `arguments` are the operands but the main output, and the numbers; one more has room. */
graft_status ocl_followed_run(const graft_exec *exec, ocl_followed *f, const graft_graph_run_args *args, cl_uint count,
                              ocl_argument *arguments);
void ocl_followed_destroy(ocl_followed *f);

#endif
