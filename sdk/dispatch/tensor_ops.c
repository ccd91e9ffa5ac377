/* Where a function on tensors is an op. */
#include "dispatch/dispatch.h"
#include "tensor/copy.h"

graft_status graft_tensor_to(graft_tensor *tensor, graft_rt_device *device, graft_dtype dtype, graft_tensor **result) {
  if (!tensor) return err_null(__func__, "tensor");
  if (!result) return err_null(__func__, "result");
  bool changes = (device && device != tensor->device) || (dtype && dtype != tensor->dtype);
  graft_value args[6] = {fx_tensor(tensor)};
  if (!changes || !(tns_recording || dsp_hooks.recording_wanted(args, 1))) return tns_to(tensor, device, dtype, result);
  /* As the op, so that it takes part in history. */
  if (dtype) args[1] = (graft_value){GRAFT_VALUE_DTYPE, 0, {.dtype = dtype}};
  if (device) args[3] = (graft_value){GRAFT_VALUE_DEVICE, 0, {.device = device}};
  graft_tensor *out = NULL;
  graft_status status = graft_call(GRAFT_OP_TO_COPY, args, 6, &out, 1);
  if (!status) *result = out;
  return status;
}

graft_status dsp_negate(graft_tensor *tensor) {
  graft_value self = {GRAFT_VALUE_TENSOR, 0, {.tensor = tensor}};
  bool grad = graft_grad_mode_set(false);
  graft_status status = graft_call(GRAFT_OP_NEG, &self, 1, &tensor, 1);
  graft_grad_mode_set(grad);
  return status;
}
