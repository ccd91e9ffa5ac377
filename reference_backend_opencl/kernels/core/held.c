/* How rows that are held in registers are laid over a GPU: see held.cl. */
#include "kernels/core/held.h"

enum {
  WARP = 32,
  GROUP = 256,
  GROUP_MOST = 1024,
  VECTORS = 4,     /* that a work-item holds, before a row gets more work-items than a warp */
  VECTORS_MOST = 8 /* where more work-items there are none */
};

/* A row gets work-items as long as each has a vector, and then more vectors for each; more than a warp's only when
 * these are many: they then wait for each other. */
bool ocl_held_plan(const graft_device *device, int64_t rows, int64_t size, const ocl_dtype *compute, int arrays,
                   ocl_held *held) {
  size_t group = 0;
  if (device->is_cpu || size == 0 ||
      clGetDeviceInfo(device->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof group, &group, NULL) != CL_SUCCESS) {
    return false;
  }
  const int64_t group_most = group < GROUP ? 0 : group < GROUP_MOST ? GROUP : GROUP_MOST;
  const int64_t vec = compute->bytes == 4 && size % 4 == 0 ? 4 : 1, wanted = ocl_ceil_divide(size, vec);
  int64_t team = 1;
  int vectors = 1;
  while (team < wanted && team < WARP) team *= 2;
  while (team * vectors < wanted) {
    if (vectors < VECTORS)
      vectors *= 2;
    else if (team < group_most)
      team *= 2;
    else if (vectors < VECTORS_MOST && arrays == 1)
      vectors *= 2;
    else
      return false;
  }
  if (team > group_most) return false;
  *held = (ocl_held){
      .space = {rows, size, team}, .vec = (unsigned)vec, .vectors = vectors, .local = (size_t)ocl_larger(team, GROUP)};
  return true;
}

void ocl_held_head(ocl_text *head, const ocl_held *held, const ocl_dtype *compute) {
  ocl_head_types(head, compute, held->vec, held->local);
  ocl_text_add(head, "#define VECTORS %d\n", held->vectors);
}

graft_status ocl_held_set(ocl_kernel *kernel, const ocl_held *held) {
  ocl_kernel_size(kernel, held->space.rows * held->space.team, held->local);
  return ocl_kernel_set(kernel, 1, &(ocl_argument)OCL_VALUE(held->space));
}
