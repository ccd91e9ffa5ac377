/* Copies between tensors; the public face is graft_tensor_copy and graft_tensor_to. */
#ifndef GRAFT_SDK_COPY_H
#define GRAFT_SDK_COPY_H

#include "tensor/tensor.h"

/* graft_tensor_copy and graft_tensor_to without history and without a change of `to`'s version: for libgraft itself. */
graft_status tns_copy(graft_tensor *to, graft_tensor *from);
graft_status tns_to(graft_tensor *tensor, graft_rt_device *device, graft_dtype dtype, graft_tensor **result);

/* Plain host memory as a contiguous tensor of the reference device, on the stack: shaped like a tensor, its values in
 * row-major order at `data`. Never retained, never released. */
typedef struct tns_host_tensor {
  graft_storage storage;
  graft_tensor tensor;
} tns_host_tensor;
void tns_host_tensor_init(tns_host_tensor *host, const graft_tensor *like, void *data);

/* copy_host.c: elements in memory that this process can touch. Strides count elements. */
typedef struct tns_host_copy {
  void *to;
  const void *from; /* may be `to`, with equal strides and element sizes */
  graft_dtype to_dtype, from_dtype;
  int32_t ndim;
  const int64_t *sizes, *to_strides, *from_strides;
  bool conj, neg; /* what happens to each value on the way */
} tns_host_copy;
void tns_copy_host(const tns_host_copy *copy);
/* Between two tensors of equal sizes whose first elements lie at `to_data` and `from_data`. */
void tns_copy_elements(const graft_tensor *to, void *to_data, const graft_tensor *from, const void *from_data,
                       bool conj, bool neg);

#endif
