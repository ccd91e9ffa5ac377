/* libgraft: tensors.
 *
 * A tensor is a view (dtype, sizes, strides, offset) of a storage on one device. Tensors are reference-counted: whoever
 * receives one from a function through `graft_tensor **` owns a reference and gives it back with
 * graft_tensor_release; NULL is accepted there. Reference counts are atomic; a tensor's contents and autograd state are
 * used by one thread at a time. */
#ifndef GRAFT_TENSOR_H
#define GRAFT_TENSOR_H

#include <stdbool.h>

#include "graft/abi/dtype.h"
#include "graft/abi/tensor.h"
#include "graft/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRAFT_MAX_DIMS 16 /* the largest rank of a tensor */

typedef struct graft_tensor graft_tensor;

typedef uint32_t graft_memory_format;
enum {
  GRAFT_FORMAT_DEFAULT = 0, /* an op's own default */
  GRAFT_FORMAT_CONTIGUOUS = 1,
  GRAFT_FORMAT_PRESERVE = 2,
  GRAFT_FORMAT_CHANNELS_LAST = 3,   /* rank 4: NHWC */
  GRAFT_FORMAT_CHANNELS_LAST_3D = 4 /* rank 5: NDHWC */
};

/* Creation. sizes has ndim items; strides count elements, NULL means contiguous. Memory is not initialised. */
GRAFT_EXPORT graft_status graft_tensor_empty(graft_rt_device *device, graft_dtype dtype, int32_t ndim,
                                             const int64_t *sizes, graft_tensor **tensor);
GRAFT_EXPORT graft_status graft_tensor_empty_strided(graft_rt_device *device, graft_dtype dtype, int32_t ndim,
                                                     const int64_t *sizes, GRAFT_NULLABLE const int64_t *strides,
                                                     graft_tensor **tensor);

/* A contiguous tensor with the values at `data` (host memory), copied before the call returns. */
GRAFT_EXPORT graft_status graft_tensor_from_host(graft_rt_device *device, graft_dtype dtype, int32_t ndim,
                                                 const int64_t *sizes, const void *data, graft_tensor **tensor);

/* Writes the tensor's values in row-major order to host memory of numel * element size bytes; waits for the device. */
GRAFT_EXPORT graft_status graft_tensor_to_host(graft_tensor *tensor, void *data);

GRAFT_EXPORT void graft_tensor_retain(graft_tensor *tensor) GRAFT_NULL_GIVES(nothing);
GRAFT_EXPORT void graft_tensor_release(GRAFT_NULLABLE graft_tensor *tensor);

/* Queries. Pointers stay valid while the tensor lives. */
GRAFT_EXPORT graft_dtype graft_tensor_dtype(const graft_tensor *tensor) GRAFT_NULL_GIVES(GRAFT_DTYPE_NONE);
GRAFT_EXPORT int32_t graft_tensor_ndim(const graft_tensor *tensor) GRAFT_NULL_GIVES(0);
GRAFT_EXPORT const int64_t *graft_tensor_sizes(const graft_tensor *tensor) GRAFT_NULL_GIVES(NULL);
GRAFT_EXPORT const int64_t *graft_tensor_strides(const graft_tensor *tensor) GRAFT_NULL_GIVES(NULL);
GRAFT_EXPORT int64_t graft_tensor_offset(const graft_tensor *tensor) GRAFT_NULL_GIVES(0); /* elements */
GRAFT_EXPORT int64_t graft_tensor_numel(const graft_tensor *tensor) GRAFT_NULL_GIVES(0);
GRAFT_EXPORT graft_rt_device *graft_tensor_device(const graft_tensor *tensor) GRAFT_NULL_GIVES(NULL);
/* Grows with every in-place change. */
GRAFT_EXPORT uint64_t graft_tensor_version(const graft_tensor *tensor) GRAFT_NULL_GIVES(0);
GRAFT_EXPORT uint64_t graft_tensor_storage_id(const graft_tensor *tensor) GRAFT_NULL_GIVES(0);
GRAFT_EXPORT bool graft_tensor_is_contiguous(const graft_tensor *tensor) GRAFT_NULL_GIVES(false);
GRAFT_EXPORT bool graft_tensor_is_conj(const graft_tensor *tensor) GRAFT_NULL_GIVES(false);
GRAFT_EXPORT bool graft_tensor_is_neg(const graft_tensor *tensor) GRAFT_NULL_GIVES(false);

/* Copies values of `from` into `to`: converts the dtype (on the narrower side of a transfer), honours strides and the
 * conjugate and negative bits of both, broadcasts, and crosses devices and plugins. Asynchronous on the current streams
 * unless one side is host memory. Errors: shapes that do not broadcast; `to` with overlapping elements. */
GRAFT_EXPORT graft_status graft_tensor_copy(graft_tensor *to, graft_tensor *from);

/* The tensor on another device and/or in another dtype (0: its own); the same tensor, retained, where nothing changes.
 */
GRAFT_EXPORT graft_status graft_tensor_to(graft_tensor *tensor, GRAFT_NULLABLE graft_rt_device *device,
                                          graft_dtype dtype, graft_tensor **result);

/* The single element of a tensor with one element, as a number. Waits for the device. */
GRAFT_EXPORT graft_status graft_tensor_item(graft_tensor *tensor, graft_scalar *value);

/* A dtype's short name ("f32", "bf16", "i64", "bool", "c64", "f8_e4m3fn") and back (NONE when unknown). */
GRAFT_EXPORT const char *graft_dtype_name(graft_dtype dtype);
GRAFT_EXPORT graft_dtype graft_dtype_parse(const char *name) GRAFT_NULL_GIVES(GRAFT_DTYPE_NONE);

#ifdef __cplusplus
}
#endif

#endif
