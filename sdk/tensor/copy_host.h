/* Copies between elements in memory that this process can touch. */
#ifndef GRAFT_SDK_COPY_HOST_H
#define GRAFT_SDK_COPY_HOST_H

#include "tensor/tensor.h"

/* Between two tensors of equal sizes whose first elements lie at `to_data` and `from_data`. */
void tns_copy_elements(const graft_tensor *to, void *to_data, const graft_tensor *from, const void *from_data,
                       bool conj, bool neg);

#endif
