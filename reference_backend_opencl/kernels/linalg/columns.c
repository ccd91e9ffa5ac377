/* Hermitian matrices that are worth more than a work-group become tridiagonal, on a GPU: see columns.cl. */
#include "kernels/linalg/linalg.h"

enum { FIND_SCALE, BEGIN, TAKE_COLUMN, FINISH, KERNELS };
enum { LEAST = 64, ITEMS = 256, ROWS_EACH = 8, COLUMN_BYTES = 8 << 10, LOCAL_BYTES = 44 << 10 };

static int64_t longest_of(const graft_exec *exec, const graft_tensor_desc *a) {
  return COLUMN_BYTES / (int64_t)ocl_dtype_of(exec->device, a->dl.dtype)->bytes;
}

bool ocl_columns_serves(const graft_exec *exec, const graft_tensor_desc *a) {
  return !exec->device->is_cpu && exec->device->local_bytes >= LOCAL_BYTES && exec->device->largest_group >= ITEMS &&
         ocl_stack_size(a, 1) >= LEAST && ocl_stack_size(a, 1) <= longest_of(exec, a) && ocl_elements(a) > 0;
}

static graft_status get_kernels(const graft_exec *exec, const graft_tensor_desc *a, ocl_kernel **kernels) {
  static const char *const entries[] = {
      [FIND_SCALE] = "find_scale", [BEGIN] = "begin", [TAKE_COLUMN] = "take_column", [FINISH] = "finish"};
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, a->dl.dtype);
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, ITEMS);
  ocl_text_add(&head, "#define D %s\n#define LONGEST %d\n", dtype->name, (int)longest_of(exec, a));
  graft_status status = GRAFT_OK;
  for (int k = 0; k < KERNELS && status == GRAFT_OK; k++) {
    status = ocl_kernel_shared(&kernels[k], exec->device, &head,
                               "core/direct linalg/stacks linalg/reflector linalg/columns", entries[k], ITEMS);
  }
  ocl_text_free(&head);
  return status;
}

graft_status ocl_columns(const graft_exec *exec, const graft_tensor_desc *a, int64_t upper, ocl_place diagonal,
                         ocl_place reflectors, ocl_place factors, ocl_place work) {
  const int64_t size = ocl_stack_size(a, 1), matrices = ocl_stack_count(a, 2), elements = ocl_elements(a);
  const ocl_place steps = ocl_stack_behind(exec, a, work, elements);
  ocl_kernel *kernels[KERNELS];
  graft_status status = get_kernels(exec, a, kernels);
  if (status != GRAFT_OK) return status;
  const ocl_argument scale[] = {OCL_PLACE(diagonal), OCL_TENSOR(a), OCL_VALUE(size), OCL_VALUE(upper)};
  const ocl_argument begin[] = {OCL_PLACE(work), OCL_PLACE(diagonal), OCL_TENSOR(a),
                                OCL_VALUE(size), OCL_VALUE(upper),    OCL_VALUE(elements)};
  status = ocl_launch_groups(kernels[FIND_SCALE], exec->stream, (size_t)matrices, OCL_ALL(scale));
  if (status == GRAFT_OK)
    status = ocl_launch_groups(kernels[BEGIN], exec->stream, (size_t)ocl_ceil_divide(elements, ITEMS), OCL_ALL(begin));
  for (int64_t k = 0; k + 1 < size && status == GRAFT_OK; k++) {
    const int64_t parts = ocl_ceil_divide(size - k - 1, ROWS_EACH);
    const ocl_argument column[] = {OCL_PLACE(work),    OCL_PLACE(steps), OCL_PLACE(diagonal), OCL_PLACE(reflectors),
                                   OCL_PLACE(factors), OCL_VALUE(size),  OCL_VALUE(parts),    OCL_VALUE(k)};
    status = ocl_launch_groups(kernels[TAKE_COLUMN], exec->stream, (size_t)(matrices * parts), OCL_ALL(column));
  }
  const ocl_argument finish[] = {OCL_PLACE(work),    OCL_PLACE(steps), OCL_PLACE(diagonal),
                                 OCL_PLACE(factors), OCL_VALUE(size),  OCL_VALUE(matrices)};
  if (status != GRAFT_OK) return status;
  return ocl_launch_groups(kernels[FINISH], exec->stream, (size_t)ocl_ceil_divide(matrices, ITEMS), OCL_ALL(finish));
}
