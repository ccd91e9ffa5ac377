/* Tensors: creation, reference counts, queries. */
#include "graft/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graft/autograd.h"
#include "tensor/tensor.h"

static graft_status check_shape(graft_dtype dtype, int32_t ndim, const int64_t *sizes, int64_t *numel) {
  if (dt_number(dtype) < 0) {
    return err_set(GRAFT_INVALID_ARGUMENT, "0x%08" PRIx32 " is not a dtype that tensors can have", dtype);
  }
  if (ndim < 0 || ndim > GRAFT_MAX_DIMS) {
    return err_set(GRAFT_INVALID_ARGUMENT, "a tensor of %d dimensions; at most %d are supported", ndim, GRAFT_MAX_DIMS);
  }
  *numel = tns_numel(ndim, sizes);
  if (*numel >= 0) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT, "%s%s is no shape: a size is negative, or the number of elements overflows",
                 graft_dtype_name(dtype), TNS_INTS(ndim, sizes));
}

static graft_status tensor_make(graft_storage *storage, graft_rt_device *device, graft_dtype dtype, int32_t ndim,
                                const int64_t *sizes, const int64_t *strides, int64_t offset, graft_tensor **tensor) {
  int64_t numel;
  graft_status status = check_shape(dtype, ndim, sizes, &numel);
  if (status) return status;
  graft_tensor *made = malloc(sizeof *made);
  if (!made) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory left for the description of a tensor");
  atomic_init(&made->refs, 1);
  made->dtype = dtype;
  made->ndim = ndim;
  made->flags = 0;
  made->storage = storage;
  made->device = device;
  made->offset = offset;
  made->numel = numel;
  made->autograd = NULL;
  made->traced = 0;
  if (ndim) { /* lists of rank 0 may be NULL */
    memcpy(made->sizes, sizes, (size_t)ndim * sizeof *sizes);
    memcpy(made->strides, strides, (size_t)ndim * sizeof *strides);
  }
  if (storage) tns_storage_retain(storage);
  *tensor = made;
  return GRAFT_OK;
}

graft_status tns_new(graft_storage *storage, graft_rt_device *device, graft_dtype dtype, int32_t ndim,
                     const int64_t *sizes, const int64_t *strides, int64_t offset, graft_tensor **tensor) {
  graft_status status = tensor_make(storage, device, dtype, ndim, sizes, strides, offset, tensor);
  if (!status && storage && graft_inference_mode()) (*tensor)->flags |= TNS_INFERENCE;
  return status;
}

graft_status tns_view(graft_tensor *base, int32_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                      graft_tensor **view) {
  graft_status status = tensor_make(base->storage, base->device, base->dtype, ndim, sizes, strides, offset, view);
  if (!status) (*view)->flags = base->flags;
  return status;
}

static graft_status check_strides(graft_dtype dtype, int32_t ndim, const int64_t *sizes, const int64_t *strides,
                                  int64_t *bytes) {
  for (int32_t i = 0; i < ndim; i++) {
    if (strides[i] < 0) {
      return err_set(GRAFT_INVALID_ARGUMENT, "negative strides are not supported, got strides %s",
                     TNS_INTS(ndim, strides));
    }
  }
  *bytes = tns_extent_bytes(dtype, ndim, sizes, strides, 0);
  if (*bytes >= 0) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT, "%s%s with strides %s: the size in bytes overflows", graft_dtype_name(dtype),
                 TNS_INTS(ndim, sizes), TNS_INTS(ndim, strides));
}

graft_status graft_tensor_empty_strided(graft_rt_device *device, graft_dtype dtype, int32_t ndim, const int64_t *sizes,
                                        const int64_t *strides, graft_tensor **tensor) {
  if (!device) return err_null(__func__, "device");
  if (ndim && !sizes) return err_null(__func__, "sizes");
  if (!tensor) return err_null(__func__, "tensor");
  int64_t numel, bytes = 0, contiguous[GRAFT_MAX_DIMS];
  graft_status status = check_shape(dtype, ndim, sizes, &numel);
  if (status) return status;
  if ((dtype == GRAFT_WIDE || dtype == GRAFT_WIDE_COMPLEX) && !device->is_reference) {
    return err_set(GRAFT_INVALID_ARGUMENT, "%s lives on the reference device only, not on %s", graft_dtype_name(dtype),
                   graft_device_text(device));
  }
  if (!strides) {
    tns_contiguous_strides(ndim, sizes, contiguous);
    strides = contiguous;
  }
  status = check_strides(dtype, ndim, sizes, strides, &bytes);
  if (status) return status;
  graft_storage *storage;
  status = tns_storage_new(device, (uint64_t)bytes, &storage);
  if (status) return status;
  status = tns_new(storage, device, dtype, ndim, sizes, strides, 0, tensor);
  tns_storage_release(storage);
  return status;
}

graft_status graft_tensor_empty(graft_rt_device *device, graft_dtype dtype, int32_t ndim, const int64_t *sizes,
                                graft_tensor **tensor) {
  if (!device) return err_null(__func__, "device");
  if (ndim && !sizes) return err_null(__func__, "sizes");
  if (!tensor) return err_null(__func__, "tensor");
  return graft_tensor_empty_strided(device, dtype, ndim, sizes, NULL, tensor);
}

void graft_tensor_retain(graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return;
  atomic_fetch_add_explicit(&tensor->refs, 1, memory_order_relaxed);
}

void graft_tensor_release(graft_tensor *tensor) {
  if (!tensor || atomic_fetch_sub_explicit(&tensor->refs, 1, memory_order_acq_rel) != 1) return;
  if (tensor->autograd) tns_hooks.history_release(tensor->autograd);
  tns_storage_release(tensor->storage);
  free(tensor);
}

graft_storage *tns_release_to_storage(graft_tensor *tensor) {
  graft_storage *storage = tensor->storage;
  if (atomic_load_explicit(&tensor->refs, memory_order_acquire) == 1) { /* its own reference is handed on */
    if (tensor->autograd) tns_hooks.history_release(tensor->autograd);
    free(tensor);
    return storage;
  }
  if (storage) tns_storage_retain(storage);
  graft_tensor_release(tensor);
  return storage;
}

graft_dtype graft_tensor_dtype(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return GRAFT_DTYPE_NONE;
  return tensor->dtype;
}
int32_t graft_tensor_ndim(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return 0;
  return tensor->ndim;
}
const int64_t *graft_tensor_sizes(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return NULL;
  return tensor->sizes;
}
const int64_t *graft_tensor_strides(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return NULL;
  return tensor->strides;
}
int64_t graft_tensor_offset(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return 0;
  return tensor->offset;
}
int64_t graft_tensor_numel(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return 0;
  return tensor->numel;
}
graft_rt_device *graft_tensor_device(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return NULL;
  return tensor->device;
}
bool graft_tensor_is_conj(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return false;
  return tensor->flags & TNS_CONJ;
}
bool graft_tensor_is_neg(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return false;
  return tensor->flags & TNS_NEG;
}

uint64_t graft_tensor_version(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return 0;
  return tensor->storage ? atomic_load_explicit(&tensor->storage->version, memory_order_acquire) : 0;
}

uint64_t graft_tensor_storage_id(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return 0;
  return tensor->storage ? tensor->storage->id : 0;
}

bool graft_tensor_is_contiguous(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return false;
  return tns_is_contiguous(tensor->ndim, tensor->sizes, tensor->strides);
}

void tns_bump(graft_tensor *tensor) {
  if (tensor->storage) atomic_fetch_add_explicit(&tensor->storage->version, 1, memory_order_acq_rel);
}
