/* The exponential of matrices. */
#include "kernels/linalg/linalg.h"

graft_status ocl_op_linalg_matrix_exp(const graft_exec *exec, const graft_args_linalg_matrix_exp *args) {
  ocl_place work;
  if (!ocl_stack_serves(exec, args->self)) return GRAFT_UNIMPLEMENTED;
  int64_t size = ocl_stack_size(args->self, 1);
  uint64_t bytes = ocl_dtype_of(exec->device, args->self->dl.dtype)->bytes;
  graft_status status = ocl_workspace(exec, 2 * (uint64_t)ocl_elements(args->self) * bytes + 8, &work);
  if (status != GRAFT_OK) return status;
  ocl_direct call = {.file = "core/direct linalg/stacks linalg/exponential",
                     .dtype = args->self->dl.dtype,
                     .numbers = &size,
                     .count = 1,
                     .places = 3};
  call.stages[0] = (ocl_stage){.entry = "exponential",
                               .units = ocl_stack_units(exec, ocl_stack_count(args->self, 2)),
                               .places = {ocl_place_of(args->out), work, ocl_place_of(args->self)}};
  return ocl_direct_run(exec, &call);
}
