/* What the ops of this family share: stacks of matrices, row by row, one kernel for each step of an op. */
#ifndef OCL_LINALG_H
#define OCL_LINALG_H

#include "kernels/core/direct.h"

/* The product of the sizes before the last `tail` dims, and the size of dim `from_end` (1 is the last). */
int64_t ocl_stack_count(const graft_tensor_desc *desc, int32_t tail);
int64_t ocl_stack_size(const graft_tensor_desc *desc, int32_t from_end);
/* Adds a stage that gives each matrix a work-group (stacks.cl), with call->places places. */
void ocl_stack_stage(const graft_exec *exec, ocl_direct *call, const char *entry, int64_t matrices,
                     const ocl_place *places);
/* Memory for so many elements of this dtype (or of int32) while the op runs, and what stands behind so many in it. */
graft_status ocl_stack_work(const graft_exec *exec, const graft_tensor_desc *like, int64_t elements, ocl_place *work);
ocl_place ocl_stack_behind(const graft_exec *exec, const graft_tensor_desc *like, ocl_place place, int64_t elements);
/* Whether the kernels here serve this dtype. */
bool ocl_stack_serves(const graft_exec *exec, const graft_tensor_desc *desc);

#endif
