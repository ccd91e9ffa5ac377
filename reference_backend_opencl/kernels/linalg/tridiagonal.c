/* Eigenvalues of Hermitian matrices. */
#include "kernels/linalg/householder.h"
#include "kernels/linalg/reflectors.h"

enum { PLACES = 5 };

/* Where the parts of the workspace lie: the reflectors, their factors and product, the tridiagonal matrix, and what the
 * kernels have to themselves, one after the other. */
typedef struct layout {
  int64_t reflectors, factors, product, diagonal, work;
} layout;

static layout layout_of(const graft_device *device, int64_t matrices, int64_t size, int64_t parts) {
  int64_t rows = size ? size - 1 : 0, wide = ocl_ceil_divide(size, parts);
  int64_t tall = ocl_round_up(size, OCL_STACK_BLOCK);
  int64_t reduction = matrices * (device->is_cpu ? tall * (tall + 4 * OCL_STACK_BLOCK) : size * (size + 4)),
          steps = matrices * parts * size * (wide + 2 + 2 * OCL_STACK_TOGETHER);
  int64_t blocks = matrices * parts * ocl_stack_block_work(rows, rows);
  return (layout){.reflectors = matrices * rows * size,
                  .factors = matrices * rows,
                  .product = matrices * rows * rows,
                  .diagonal = matrices * (2 * size + 1),
                  .work = ocl_larger(reduction, ocl_larger(steps, blocks))};
}

graft_status ocl_op_linalg_eigh(const graft_exec *exec, const graft_args_linalg_eigh *args) {
  ocl_place reflectors;
  bool vectors = args->compute_v && args->eigenvectors;
  if (!args->eigenvalues || !ocl_stack_serves(exec, args->A)) return GRAFT_UNIMPLEMENTED;
  int64_t size = ocl_stack_size(args->A, 1), rows = size ? size - 1 : 0, matrices = ocl_stack_count(args->A, 2);
  int64_t parts = vectors ? ocl_stack_parts_of_steps(exec, matrices, size) : 1;
  const layout sizes = layout_of(exec->device, matrices, size, parts);
  int64_t numbers[TRIDIAGONAL_NUMBERS] = {[UPPER] = args->UPLO == GRAFT_STR_UPLO_U, [VECTORS] = vectors};
  ocl_reflectors_product(numbers, rows, size, rows, rows, parts);
  graft_status status = ocl_stack_work(
      exec, args->A, sizes.reflectors + sizes.factors + sizes.product + sizes.diagonal + sizes.work, &reflectors);
  if (status != GRAFT_OK) return status;
  ocl_place factors = ocl_stack_behind(exec, args->A, reflectors, sizes.reflectors);
  ocl_place product = ocl_stack_behind(exec, args->A, factors, sizes.factors);
  ocl_place diagonal = ocl_stack_behind(exec, args->A, product, sizes.product);
  ocl_place work = ocl_stack_behind(exec, args->A, diagonal, sizes.diagonal);
  ocl_direct call = ocl_stack_call(
      exec, args->A, "core/direct linalg/stacks linalg/blocks linalg/orthogonal linalg/tridiagonal linalg/panels",
      PLACES);
  call.numbers = numbers;
  call.count = TRIDIAGONAL_NUMBERS;
  const bool by_columns = ocl_columns_serves(exec, args->A);
  if (by_columns) {
    const ocl_reflectors_shape shape = {matrices, rows, size, rows};
    status = ocl_columns(exec, args->A, numbers[UPPER], diagonal, reflectors, factors, work);
    if (status == GRAFT_OK && vectors)
      status = ocl_householder_product(exec, args->A, shape, reflectors, factors, product);
    if (status != GRAFT_OK) return status;
  } else {
    ocl_stack_stage(exec, &call, "tridiagonal", size ? matrices : 0,
                    (const ocl_place[PLACES]){diagonal, reflectors, work, factors, ocl_place_of(args->A)});
  }
  if (!by_columns && vectors && rows) {
    ocl_stack_stage(exec, &call, "reflect", matrices * parts,
                    (const ocl_place[PLACES]){product, reflectors, work, factors, product});
  }
  ocl_stack_stage(
      exec, &call, "ql", size ? matrices * parts : 0,
      (const ocl_place[PLACES]){ocl_place_of(args->eigenvalues), vectors ? ocl_place_of(args->eigenvectors) : work,
                                work, diagonal, product});
  return ocl_direct_run(exec, &call);
}
