/* Copies between tensors; the public face is graft_tensor_copy and graft_tensor_to. */
#ifndef GRAFT_SDK_COPY_H
#define GRAFT_SDK_COPY_H

#include "tensor/tensor.h"

/* graft_tensor_copy and graft_tensor_to without history and without a change of `to`'s version: for libgraft itself. */
graft_status tns_copy(graft_tensor *to, graft_tensor *from);
graft_status tns_to(graft_tensor *tensor, graft_rt_device *device, graft_dtype dtype, graft_tensor **result);

/* Whether tns_copy would refuse them for how they lie: of tensors that may be without memory. */
graft_status tns_check_copy(graft_tensor *to, graft_tensor *from);

/* Plain host memory as a contiguous tensor of the reference device, on the stack: shaped like a tensor, its values in
 * row-major order at `data`. Never retained, never released. */
typedef struct tns_host_tensor {
  graft_storage storage;
  graft_tensor tensor;
} tns_host_tensor;
void tns_host_tensor_init(tns_host_tensor *host, const graft_tensor *like, void *data);

#endif
