/* Bytes of dense tensors through a plugin's memory functions: inside a device, between devices, to and from the host.
 */
#ifndef GRAFT_SDK_TRANSFER_H
#define GRAFT_SDK_TRANSFER_H

#include "tensor/tensor.h"

/* Where this process finds the tensor's first element; only for tensors of the reference device. */
void *tns_host_data(const graft_tensor *tensor);

/* Both copy all bytes between tensors that are dense with equal strides and dtype.
 * inside: one device, not the reference; UNIMPLEMENTED where the ranges do not fit the device's copy granularity. */
graft_status tns_transfer_inside(graft_tensor *to, graft_tensor *from);
/* across: two devices, of which one may be the reference. Waits only where the host takes part. */
graft_status tns_transfer_across(graft_tensor *to, graft_tensor *from);

/* tns_transfer_across for dense tensors of one shape and dtype of which one lies in pinned host memory of the other's
 * device: returns while the copy may be under way. UNIMPLEMENTED, without text, for all others. */
graft_status tns_copy_unwaited(graft_tensor *to, graft_tensor *from);

/* Copies inside a device by way of host memory, any strides and dtypes: where the plugin can't. */
graft_status tns_copy_staged(graft_tensor *to, graft_tensor *from, bool conj, bool neg);

#endif
