/* The device's own copy kernel, for tensor/copy.c. */
#ifndef GRAFT_SDK_COPY_KERNEL_H
#define GRAFT_SDK_COPY_KERNEL_H

#include "tensor/tensor.h"

/* Copies on one device through the plugin's _to_copy slot: `from` has been expanded to `to`'s sizes; any strides, any
 * dtypes; conjugate and negative bits are the caller's to honour. UNIMPLEMENTED, without text, where the plugin takes
 * no such pair as it is: the caller then goes through host memory. */
graft_status dsp_copy_kernel(graft_tensor *to, graft_tensor *from);

#endif
