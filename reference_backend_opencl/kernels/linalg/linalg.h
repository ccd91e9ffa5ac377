/* What the ops of this family share: stacks of real matrices, row by row, one kernel for each step of an op. */
#ifndef OCL_LINALG_H
#define OCL_LINALG_H

#include "kernels/core/direct.h"

/* The product of the sizes before the last `tail` dims, and the size of dim `from_end` (1 is the last). */
int64_t ocl_stack_count(const graft_tensor_desc *desc, int32_t tail);
int64_t ocl_stack_size(const graft_tensor_desc *desc, int32_t from_end);
/* Units of a stage that gives each matrix a work-group (stacks.cl). */
int64_t ocl_stack_units(const graft_exec *exec, int64_t matrices);
/* Whether the kernels here serve this dtype. */
bool ocl_stack_serves(const graft_exec *exec, const graft_tensor_desc *desc);

#endif
