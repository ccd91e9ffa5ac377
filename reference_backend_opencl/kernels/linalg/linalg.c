/* What the ops of this family share. */
#include "kernels/linalg/linalg.h"

int64_t ocl_stack_count(const graft_tensor_desc *desc, int32_t tail) {
  int64_t count = 1;
  for (int32_t d = 0; d < desc->dl.ndim - tail; d++) count *= desc->dl.shape[d];
  return count;
}

int64_t ocl_stack_size(const graft_tensor_desc *desc, int32_t from_end) {
  return desc->dl.shape[desc->dl.ndim - from_end];
}

static int64_t units_of(const graft_exec *exec, int64_t matrices) {
  return exec->device->is_cpu ? matrices : 64 * matrices;
}

bool ocl_stack_serves(const graft_exec *exec, const graft_tensor_desc *desc) {
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, desc->dl.dtype);
  return dtype && (dtype->class == OCL_CLASS_COMPLEX || (dtype->class == OCL_CLASS_FLOAT && dtype->bytes >= 4));
}

void ocl_stack_stage(const graft_exec *exec, ocl_direct *call, const char *entry, int64_t matrices,
                     const ocl_place *places) {
  ocl_stage *stage = call->stages;
  while (stage->entry) stage++;
  *stage = (ocl_stage){.entry = entry, .units = units_of(exec, matrices)};
  for (int i = 0; i < call->places; i++) stage->places[i] = places[i];
}

static uint64_t bytes_of(const graft_exec *exec, const graft_tensor_desc *like, int64_t elements) {
  return (uint64_t)elements * ocl_dtype_of(exec->device, like->dl.dtype)->bytes;
}

graft_status ocl_stack_work(const graft_exec *exec, const graft_tensor_desc *like, int64_t elements, ocl_place *work) {
  return ocl_workspace(exec, bytes_of(exec, like, elements) + 8, work); /* memory, where there are no elements, too */
}

ocl_place ocl_stack_behind(const graft_exec *exec, const graft_tensor_desc *like, ocl_place place, int64_t elements) {
  return (ocl_place){place.buffer, place.offset + bytes_of(exec, like, elements)};
}
