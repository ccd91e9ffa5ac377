/* unfold_backward: windows along a dim added back into what they are windows of. */
#include "kernels/core/direct.h"

graft_status ocl_op_unfold_backward(const graft_exec *exec, const graft_args_unfold_backward *args) {
  const graft_dl_tensor *in = &args->grad_in->dl, *out = &args->out->dl;
  int64_t inner = 1, elements = ocl_elements(args->out);
  if (in->dtype != out->dtype) return GRAFT_UNIMPLEMENTED;
  if (!elements) return GRAFT_OK;
  for (int d = (int)args->dim + 1; d < out->ndim; d++) inner *= out->shape[d];
  int64_t length = out->ndim ? out->shape[args->dim] : 1;
  const int64_t numbers[] = {length, (length - args->size) / args->step + 1, args->size, args->step, inner};
  ocl_direct call = {.file = "core/direct shape/windows",
                     .dtype = out->dtype,
                     .numbers = numbers,
                     .count = sizeof numbers / sizeof *numbers,
                     .places = 2};
  call.stages[0] = (ocl_stage){
      .entry = "unfold_backward", .units = elements, .places = {ocl_place_of(args->out), ocl_place_of(args->grad_in)}};
  return ocl_direct_run(exec, &call);
}
