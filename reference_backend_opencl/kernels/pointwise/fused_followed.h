/* A matrix product, a convolution or the gradient of a norm that calls follow in its kernel: what a group's executable
 * has of it. */
#ifndef OCL_FUSED_FOLLOWED_H
#define OCL_FUSED_FOLLOWED_H

#include "kernels/pointwise/fused.h"

/* Factors and a matrix to add; input, weight and bias; or what the gradient reads, which writes sums beside. */
enum { OCL_FOLLOWED_READS = OCL_NORM_GRADIENT_READS, OCL_FOLLOWED_SUMS = OCL_NORM_GRADIENT_SUMS };

typedef struct ocl_followed {
  ocl_product *product;
  ocl_forward *convolution;
  ocl_norm_gradient *gradient; /* one of the three, or none */
  ocl_product_call call;
  ocl_norm_gradient_call slopes;           /* of the gradient; without a result: it is none */
  const graft_args_convolution *convolves; /* while it is made; NULL: a product */
  int inputs[OCL_FOLLOWED_READS];          /* which of the group's inputs they are; -1: none */
  int sums[OCL_FOLLOWED_SUMS];             /* which of its outputs; -1: nobody sees it */
  int main_output;                         /* what the first call's kernel writes by itself */
  int64_t space[3 * OCL_FUSED_TENSORS];
  size_t space_bytes;
} ocl_followed;

/* Whether that output of the group is a sum that the gradient of a norm writes beside; it is then known. */
bool ocl_followed_take_sum(ocl_followed *f, const graft_tensor_desc *output, int number);
/* Its kernels, with what `kernel` has of the other calls. UNIMPLEMENTED: they run one by one. */
graft_status ocl_followed_make(ocl_followed *f, const graft_exec *exec, ocl_fused_kernel *kernel);
/* Whether its kernels ask how tensors begin. */
bool ocl_followed_asks(const ocl_followed *f);
/* `to` is the main output; `arguments` are the other operands, and the numbers; one more has room. */
graft_status ocl_followed_run(const graft_exec *exec, ocl_followed *f, const graft_graph_run_args *args,
                              const graft_tensor_desc *to, cl_uint count, ocl_argument *arguments);
void ocl_followed_destroy(ocl_followed *f);

#endif
