/* graft/bridge.h: storages and borrowed tensors for frameworks that have tensors of their own. */
#include "graft/bridge.h"

#include <string.h>

#include "base/error.h"
#include "dispatch/dispatch.h"
#include "ops/core/ref.h"
#include "tensor/copy.h"
#include "tensor/recorder.h"
#include "tensor/transfer.h"

/* What a graft_tensor_space holds. */
typedef struct borrowed {
  tns_host_tensor host;
  graft_buffer buffer;
} borrowed;
_Static_assert(sizeof(graft_tensor_space) >= sizeof(borrowed), "room for a tensor and its storage");
_Static_assert(_Alignof(graft_tensor_space) >= _Alignof(borrowed), "aligned like a tensor");

/* --- storages --- */

graft_status graft_storage_new(graft_rt_device *device, uint64_t bytes, graft_storage **storage) {
  if (!device) return err_null(__func__, "device");
  if (!storage) return err_null(__func__, "storage");
  if (dev_forked(device)) return dev_forked_error(device);
  return tns_storage_new(device, bytes, storage);
}

void graft_storage_retain(graft_storage *storage) {
  if (err_is_null(storage, __func__, "storage")) return;
  tns_storage_retain(storage);
}
void graft_storage_release(graft_storage *storage) {
  tns_storage_release(storage);
}
void *graft_storage_address(const graft_storage *storage) {
  if (err_is_null(storage, __func__, "storage")) return NULL;
  return (void *)(uintptr_t)storage->address;
}
void *graft_storage_host_pointer(graft_storage *storage) {
  if (err_is_null(storage, __func__, "storage")) return NULL;
  if (storage->host_pointer) tns_storage_expose(storage);
  return storage->host_pointer;
}
uint64_t graft_storage_bytes(const graft_storage *storage) {
  if (err_is_null(storage, __func__, "storage")) return 0;
  return storage->bytes;
}
graft_rt_device *graft_storage_device(const graft_storage *storage) {
  if (err_is_null(storage, __func__, "storage")) return NULL;
  return storage->device;
}

graft_status graft_storage_record_stream(graft_storage *storage, graft_rt_stream *stream) {
  if (!storage) return err_null(__func__, "storage");
  if (!stream) return err_null(__func__, "stream");
  return storage->block ? mem_record_stream(storage->block, stream) : GRAFT_OK;
}

bool graft_storage_has_recorded(const graft_storage *storage) {
  if (err_is_null(storage, __func__, "storage")) return false;
  return storage->block && mem_has_recorded(storage->block);
}

graft_storage *graft_tensor_storage(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return NULL;
  return tensor->storage;
}

void graft_tensor_unpack(graft_tensor *tensor, graft_tensor_parts *parts) {
  if (err_is_null(tensor, __func__, "tensor") || err_is_null(parts, __func__, "parts")) return;
  const graft_storage *storage = tensor->storage;
  parts->device = tensor->device;
  parts->address = storage ? (void *)(uintptr_t)storage->address : NULL;
  parts->bytes = storage ? storage->bytes : 0;
  parts->view = (graft_view){.dtype = tensor->dtype,
                             .ndim = tensor->ndim,
                             .sizes = parts->sizes,
                             .strides = parts->strides,
                             .offset = tensor->offset,
                             .conj = tensor->flags & TNS_CONJ,
                             .neg = tensor->flags & TNS_NEG};
  for (int32_t i = 0; i < tensor->ndim; i++) {
    parts->sizes[i] = tensor->sizes[i];
    parts->strides[i] = tensor->strides[i];
  }
  parts->storage = tns_release_to_storage(tensor);
}

/* --- borrowed tensors --- */

static graft_tensor *describe(graft_tensor *tensor, graft_storage *storage, const graft_view *view) {
  atomic_init(&tensor->refs, 1);
  tensor->dtype = view->dtype;
  tensor->ndim = view->ndim;
  tensor->flags = (view->conj ? TNS_CONJ : 0u) | (view->neg ? TNS_NEG : 0u);
  tensor->storage = storage;
  tensor->device = storage->device;
  tensor->offset = view->offset;
  tensor->autograd = NULL;
  tensor->traced = 0;
  tensor->numel = 1;
  for (int32_t i = 0; i < view->ndim; i++) {
    tensor->sizes[i] = view->sizes[i];
    tensor->strides[i] = view->strides[i];
    tensor->numel *= view->sizes[i];
  }
  return tensor;
}

graft_tensor *graft_tensor_borrow(graft_tensor_space *space, graft_storage *storage, const graft_view *view) {
  if (err_is_null(space, __func__, "space")) return NULL;
  if (err_is_null(storage, __func__, "storage")) return NULL;
  if (err_is_null(view, __func__, "view")) return NULL;
  return describe(&((borrowed *)(void *)space)->host.tensor, storage, view);
}

graft_tensor *graft_tensor_borrow_host(graft_tensor_space *space, void *data, uint64_t bytes, const graft_view *view) {
  if (err_is_null(space, __func__, "space")) return NULL;
  if (bytes && err_is_null(data, __func__, "data")) return NULL;
  if (err_is_null(view, __func__, "view")) return NULL;
  borrowed *all = (borrowed *)(void *)space;
  graft_storage *storage = &all->host.storage;
  memset(storage, 0, sizeof *storage);
  atomic_init(&storage->refs, 1);
  atomic_init(&storage->version, 1);
  atomic_init(&storage->unseen, true);
  storage->device = graft_device_reference();
  if (!storage->device) return NULL;
  storage->host_pointer = data;
  storage->address = (uint64_t)(uintptr_t)data;
  storage->bytes = bytes;
  storage->buffer = ref_buffer_over(&all->buffer, data);
  return describe(&all->host.tensor, storage, view);
}

/* --- pinned memory --- */

bool graft_pinned_owns(graft_rt_device *device, const void *pointer, uint64_t bytes) {
  if (err_is_null(device, __func__, "device")) return false;
  return mem_is_pinned(device, pointer, bytes);
}

graft_status graft_pinned_record_stream(graft_rt_device *device, const void *pointer, graft_rt_stream *stream) {
  if (!device) return err_null(__func__, "device");
  if (!stream) return err_null(__func__, "stream");
  return mem_pinned_record(device, pointer, stream);
}

graft_status graft_tensor_copy_async(graft_tensor *to, graft_tensor *from) {
  if (!to) return err_null(__func__, "to");
  if (!from) return err_null(__func__, "from");
  if (tns_recording) return graft_tensor_copy(to, from);
  graft_status status = tns_check_memory(to, "copy");
  if (!status) status = tns_check_memory(from, "copy");
  if (!status) status = tns_copy_unwaited(to, from);
  if (status != GRAFT_UNIMPLEMENTED) {
    if (!status) tns_bump(to);
    return status;
  }
  return graft_tensor_copy(to, from);
}

/* --- questions --- */

bool graft_op_known(uint32_t op_id) {
  const op_def *def = op_def_of(op_id);
  return def && def->infer;
}

bool graft_op_is_dynamic(uint32_t op_id) {
  const op_schema *schema = op_schema_of(op_id);
  return schema && (schema->flags & OPF_DYNAMIC);
}

const char *graft_op_name(uint32_t op_id) {
  const op_schema *schema = op_schema_of(op_id);
  return schema ? schema->name : NULL;
}

_Static_assert((int)GRAFT_FALLBACK_ALLOW == DSP_FALLBACK_ALLOW && (int)GRAFT_FALLBACK_WARN == DSP_FALLBACK_WARN &&
                   (int)GRAFT_FALLBACK_ERROR == DSP_FALLBACK_ERROR,
               "one numbering");
graft_fallback_policy graft_fallback_policy_get(void) {
  return (graft_fallback_policy)dsp_fallback_policy();
}

graft_dtype graft_default_dtype_get(void) {
  return dt_default();
}

graft_status graft_default_dtype_set(graft_dtype dtype) {
  if (!dt_is_float(dtype) || dt_is_float8(dtype))
    return err_set(GRAFT_INVALID_ARGUMENT, "the default dtype can't be %s; expected f16, bf16, f32 or f64",
                   graft_dtype_name(dtype));
  dt_set_default(dtype);
  return GRAFT_OK;
}

graft_exec_flags graft_exec_flags_set(graft_exec_flags flags) {
  graft_exec_flags before = dsp_exec_flags();
  dsp_set_exec_flags(flags);
  return before;
}
