/* Values of tensors from and to host memory. */
#include "base/error.h"
#include "tensor/copy.h"
#include "tensor/recorder.h"

graft_status graft_tensor_from_host(graft_rt_device *device, graft_dtype dtype, int32_t ndim, const int64_t *sizes,
                                    const void *data, graft_tensor **tensor) {
  if (!device) return err_null(__func__, "device");
  if (ndim && !sizes) return err_null(__func__, "sizes");
  if (tns_numel(ndim, sizes) != 0 && !data) return err_null(__func__, "data");
  if (!tensor) return err_null(__func__, "tensor");
  if (tns_recording && tns_recording->device == device) {
    return tns_recording->refuse(tns_recording, "graft_tensor_from_host");
  }
  graft_tensor *made;
  graft_status status = graft_tensor_empty(device, dtype, ndim, sizes, &made);
  if (status) return status;
  tns_host_tensor host;
  tns_host_tensor_init(&host, made, (void *)data);
  status = tns_copy(made, &host.tensor);
  if (status)
    graft_tensor_release(made);
  else
    *tensor = made;
  return status;
}

graft_status graft_tensor_to_host(graft_tensor *tensor, void *data) {
  if (!tensor) return err_null(__func__, "tensor");
  if (tensor->numel && !data) return err_null(__func__, "data");
  graft_status status = tns_check_memory(tensor, "graft_tensor_to_host");
  if (status) return status;
  tns_host_tensor host;
  tns_host_tensor_init(&host, tensor, data);
  return tns_copy(&host.tensor, tensor);
}

graft_status graft_tensor_item(graft_tensor *tensor, graft_scalar *value) {
  if (!tensor) return err_null(__func__, "tensor");
  if (!value) return err_null(__func__, "value");
  unsigned char element[32];
  if (tensor->numel != 1) {
    return err_set(GRAFT_INVALID_ARGUMENT, "item: only a tensor with one element is a number, but got %s",
                   TNS_SHAPE(tensor));
  }
  graft_status status = tns_check_memory(tensor, "graft_tensor_item");
  if (!status) status = graft_tensor_to_host(tensor, element);
  if (!status) *value = dt_item(tensor->dtype, element);
  return status;
}
