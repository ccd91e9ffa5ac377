/* What the ops of this family share: stacks of matrices, row by row, one kernel for each step of an op. */
#ifndef OCL_LINALG_H
#define OCL_LINALG_H

#include "kernels/core/direct.h"

/* The product of the sizes before the last `tail` dims, and the size of dim `from_end` (1 is the last). */
int64_t ocl_stack_count(const graft_tensor_desc *desc, int32_t tail);
int64_t ocl_stack_size(const graft_tensor_desc *desc, int32_t from_end);
/* A call of kernels in blocks.cl, with so many places; numbers and stages are the caller's. */
ocl_direct ocl_stack_call(const graft_exec *exec, const graft_tensor_desc *like, const char *file, int places);
/* Into how many parts the columns of each matrix are cut, so that all of the machine has some. */
int64_t ocl_stack_parts(const graft_exec *exec, int64_t matrices, int64_t columns);
/* The same where each part takes all steps for itself: on a CPU no more parts than it has cores. */
int64_t ocl_stack_parts_of_steps(const graft_exec *exec, int64_t matrices, int64_t columns);
/* Steps that are taken at a time: BLOCK of blocks.cl. */
enum { OCL_STACK_BLOCK = 32 };
/* Sweeps of rotations that are taken before they turn vectors: TOGETHER of blocks.cl. */
enum { OCL_STACK_TOGETHER = 4 };
/* Of a matrix of reflectors, that many and of so many rows (orthogonal.cl): how wide a block of them is, and the
 * elements of work that a work-group has for one. */
int64_t ocl_stack_block_width(int64_t count);
int64_t ocl_stack_block_work(int64_t rows, int64_t count);
/* Rows of elements of so many bytes that kernels have in local memory at a time: TALL of stacks.cl. */
static inline uint64_t ocl_stack_tall(size_t element) {
  return element < 16 ? 64 : 32;
}
/* Adds a stage that gives each matrix a work-group (stacks.cl), with call->places places, and returns it. */
ocl_stage *ocl_stack_stage(const graft_exec *exec, ocl_direct *call, const char *entry, int64_t matrices,
                           const ocl_place *places);
/* Memory for so many elements of this dtype (or of int32) while the op runs, and what stands behind so many in it. */
graft_status ocl_stack_work(const graft_exec *exec, const graft_tensor_desc *like, int64_t elements, ocl_place *work);
ocl_place ocl_stack_behind(const graft_exec *exec, const graft_tensor_desc *like, ocl_place place, int64_t elements);
/* Whether the kernels here serve this dtype. */
bool ocl_stack_serves(const graft_exec *exec, const graft_tensor_desc *desc);
/* Cholesky's factorization by many work-groups: of matrices that are large enough, by a GPU. */
bool ocl_cholesky_serves(const graft_exec *exec, const graft_tensor_desc *a);
graft_status ocl_cholesky(const graft_exec *exec, const graft_args_linalg_cholesky_ex *args);
/* Likewise the LU factorization, of matrices whose columns fit a work-group; places as the kernel `lu` has them. */
bool ocl_lu_serves(const graft_exec *exec, const graft_tensor_desc *a);
graft_status ocl_lu(const graft_exec *exec, const graft_tensor_desc *a, bool exchanged, ocl_place lu, ocl_place pivots,
                    ocl_place info);
/* And Hermitian matrices become tridiagonal: places as the kernel `tridiagonal` has them. */
bool ocl_columns_serves(const graft_exec *exec, const graft_tensor_desc *a);
graft_status ocl_columns(const graft_exec *exec, const graft_tensor_desc *a, int64_t upper, ocl_place diagonal,
                         ocl_place reflectors, ocl_place factors, ocl_place work);

#endif
