/* What the files of the attention family share. */
#ifndef OCL_ATTENTION_H
#define OCL_ATTENTION_H

#include "kernels/core/direct.h"

/* A gradient that adds zero to each element that it gives, on a CPU and in f32 or f64: its kernels, for tensors that
 * lie as these do, and a run of them. */
graft_status ocl_attention_make_placed(const graft_exec *exec,
                                       const graft_args_scaled_dot_product_fused_attention_overrideable_backward *args,
                                       ocl_direct_kernels **made);
graft_status ocl_attention_run_placed(const graft_exec *exec,
                                      const graft_args_scaled_dot_product_fused_attention_overrideable_backward *args,
                                      ocl_direct_kernels *made);

#endif
