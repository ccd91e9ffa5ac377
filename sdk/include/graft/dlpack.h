/* libgraft: exchange of tensors with other libraries through DLPack 1.x, without a copy.
 *
 * The managed structs are DLPack's own (its header is not needed here, and may be included beside this one). Both sides
 * then see the same memory; a change made by the other side is not counted by graft_tensor_version, and plugins are
 * told to cache nothing of such memory, also when the other side is done with it. */
#ifndef GRAFT_DLPACK_H
#define GRAFT_DLPACK_H

#include "graft/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;          /* before DLPack 1.0 */
struct DLManagedTensorVersioned; /* DLPack 1.x */

/* Export. The managed tensor keeps the memory alive until its deleter is called, by whoever owns it then; work
 * submitted to the device's current stream has been done when the call returns. A tensor of the reference device is CPU
 * memory. Errors: INVALID_ARGUMENT for an unresolved conjugate or negative, a tensor that requires grad, a dtype of
 * Graft's own. */
GRAFT_EXPORT graft_status graft_tensor_to_dlpack(graft_tensor *tensor, struct DLManagedTensorVersioned **managed);
GRAFT_EXPORT graft_status graft_tensor_to_dlpack_old(graft_tensor *tensor, struct DLManagedTensor **managed);

/* Import. CPU memory becomes a tensor of the reference device; what graft_tensor_to_dlpack of this library made, of
 * any device, becomes a tensor of its device again. On success the tensor owns `managed` and calls its deleter when its
 * memory is no longer used; on failure it stays the caller's. Errors: INVALID_ARGUMENT for another major version,
 * another device, a dtype that tensors can't have, negative strides, read-only memory. */
GRAFT_EXPORT graft_status graft_tensor_from_dlpack(struct DLManagedTensorVersioned *managed, graft_tensor **tensor);
GRAFT_EXPORT graft_status graft_tensor_from_dlpack_old(struct DLManagedTensor *managed, graft_tensor **tensor);

/* Import to a device, of memory that the CPU can reach or that this library exported: over the same memory where the
 * device can work there (the reference device; or its plugin takes host memory in, GRAFT_MEMORY_IMPORT, and its
 * alignment and granularity fit), else a copy, and the deleter of `managed` has been called when this returns. On
 * failure `managed` stays the caller's. Errors: as above; memory of another library's device can't be taken in by a
 * plugin of ABI 1.x. (0.x: may still change.) */
GRAFT_EXPORT graft_status graft_tensor_from_dlpack_to(graft_rt_device *device, struct DLManagedTensorVersioned *managed,
                                                      graft_tensor **tensor);

#ifdef __cplusplus
}
#endif

#endif
