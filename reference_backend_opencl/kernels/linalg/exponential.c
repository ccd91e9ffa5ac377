/* The exponential of matrices. */
#include "kernels/linalg/linalg.h"

graft_status ocl_op_linalg_matrix_exp(const graft_exec *exec, const graft_args_linalg_matrix_exp *args) {
  ocl_place work;
  if (!ocl_stack_serves(exec, args->self)) return GRAFT_UNIMPLEMENTED;
  int64_t size = ocl_stack_size(args->self, 1);
  graft_status status = ocl_stack_work(exec, args->self, 2 * ocl_elements(args->self), &work);
  if (status != GRAFT_OK) return status;
  ocl_direct call = {.file = "core/direct linalg/stacks linalg/exponential",
                     .dtype = args->self->dl.dtype,
                     .numbers = &size,
                     .count = 1,
                     .places = 3};
  ocl_stack_stage(exec, &call, "exponential", ocl_stack_count(args->self, 2),
                  (const ocl_place[]){ocl_place_of(args->out), work, ocl_place_of(args->self)});
  return ocl_direct_run(exec, &call);
}
