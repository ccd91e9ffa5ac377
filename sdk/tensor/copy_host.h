/* Copies between elements in memory that this process can touch. */
#ifndef GRAFT_SDK_COPY_HOST_H
#define GRAFT_SDK_COPY_HOST_H

#include "tensor/tensor.h"

/* Strides count elements. */
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
