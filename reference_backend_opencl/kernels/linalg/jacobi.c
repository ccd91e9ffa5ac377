/* Singular values. */
#include "kernels/linalg/linalg.h"

/* The numbers of jacobi.cl. */
enum { ROWS, COLUMNS, VECTORS, WORK, U_COLUMNS, VH_ROWS, NUMBERS };

graft_status ocl_op_linalg_svd(const graft_exec *exec, const graft_args_linalg_svd *args) {
  ocl_place work;
  bool vectors = args->compute_uv && args->U && args->Vh;
  if (!args->S || (args->compute_uv && !vectors) || !ocl_stack_serves(exec, args->A)) return GRAFT_UNIMPLEMENTED;
  int64_t rows = ocl_stack_size(args->A, 2), columns = ocl_stack_size(args->A, 1);
  int64_t longer = rows > columns ? rows : columns, shorter = rows > columns ? columns : rows;
  int64_t numbers[NUMBERS] = {[ROWS] = rows,
                              [COLUMNS] = columns,
                              [VECTORS] = vectors,
                              [WORK] = longer * shorter + shorter * shorter + shorter + 4,
                              [U_COLUMNS] = vectors ? ocl_stack_size(args->U, 1) : 0,
                              [VH_ROWS] = vectors ? ocl_stack_size(args->Vh, 2) : 0};
  graft_status status = ocl_stack_work(exec, args->A, ocl_stack_count(args->A, 2) * numbers[WORK], &work);
  if (status != GRAFT_OK) return status;
  const ocl_place places[] = {vectors ? ocl_place_of(args->U) : work, ocl_place_of(args->S),
                              vectors ? ocl_place_of(args->Vh) : work, work, ocl_place_of(args->A)};
  ocl_direct call = {.file = "core/direct linalg/stacks linalg/jacobi",
                     .dtype = args->A->dl.dtype,
                     .numbers = numbers,
                     .count = NUMBERS,
                     .places = 5};
  ocl_stack_stage(exec, &call, "svd", ocl_stack_count(args->A, 2), places);
  return ocl_direct_run(exec, &call);
}
