/* DLPack in both directions. The two managed structs differ in their head only, so all of it works on the DLTensor. */
#include "graft/dlpack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graft/autograd.h"
#include "tensor/copy.h"
#include "tensor/dlpack_abi.h"
#include "tensor/recorder.h"
#include "tensor/view.h"

/* --- export --- */

/* What one exported struct keeps alive; it is its `context`. Shape and strides are copies, because a tensor may be
 * resized in place. */
typedef struct exported {
  graft_tensor *tensor;
  int64_t shape[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
  union {
    struct DLManagedTensor old;
    struct DLManagedTensorVersioned versioned;
  } managed;
} exported;

static void exported_free(exported *e) {
  graft_tensor_release(e->tensor);
  free(e);
}

static void delete_versioned(struct DLManagedTensorVersioned *self) {
  if (self) exported_free(self->context);
}

static void delete_old(struct DLManagedTensor *self) {
  if (self) exported_free(self->context);
}

static graft_status check_export(const graft_tensor *tensor) {
  graft_status status = tns_check_memory(tensor, "DLPack");
  if (status) return status;
  if (tensor->flags & (TNS_CONJ | TNS_NEG)) {
    return err_set(GRAFT_INVALID_ARGUMENT, "DLPack: %s is an unresolved %s, which DLPack can't say; copy it first",
                   TNS_SHAPE(tensor), tensor->flags & TNS_CONJ ? "conjugate" : "negative");
  }
  if ((tensor->dtype & 0xff) >= 128) {
    return err_set(GRAFT_INVALID_ARGUMENT, "DLPack: %s is a dtype of Graft's own; convert it first",
                   graft_dtype_name(tensor->dtype));
  }
  if (tensor->autograd && tns_hooks.requires_grad(tensor)) {
    return err_set(GRAFT_INVALID_ARGUMENT, "DLPack: %s requires grad, which DLPack can't carry; detach it first",
                   TNS_SHAPE(tensor));
  }
  return GRAFT_OK;
}

static void fill_tensor(const exported *e, dlp_tensor *dl) {
  const graft_tensor *t = e->tensor;
  bool reference = t->device->is_reference;
  /* An address of a reserved range is no pointer, but arithmetic on it still holds. */
  uint64_t address = t->storage->address + (uint64_t)t->offset * dt_bytes(t->dtype);
  dl->data = t->numel == 0 ? NULL : (void *)(uintptr_t)address;
  dl->device_type = reference ? DLP_CPU : t->device->dlpack_type;
  dl->device_id = reference ? 0 : t->device->index;
  dl->ndim = t->ndim;
  dl->code = (uint8_t)t->dtype;
  dl->bits = (uint8_t)(t->dtype >> 8);
  dl->lanes = (uint16_t)(t->dtype >> 16);
  dl->shape = (int64_t *)e->shape;
  dl->strides = (int64_t *)e->strides;
}

static graft_status export_tensor(graft_tensor *tensor, exported **result) {
  graft_status status = check_export(tensor);
  if (!status) status = graft_stream_synchronize(graft_stream_current(tensor->device));
  if (status) return status;
  exported *e = calloc(1, sizeof *e);
  if (!e) return err_set(GRAFT_OUT_OF_MEMORY, "DLPack: no host memory left for the description of a tensor");
  graft_tensor_retain(tensor);
  tns_storage_expose(tensor->storage);
  e->tensor = tensor;
  for (int32_t i = 0; i < tensor->ndim; i++) {
    e->shape[i] = tensor->sizes[i];
    e->strides[i] = tensor->sizes[i] < 2 ? 1 : tensor->strides[i]; /* where it means nothing, consumers expect 1 */
  }
  *result = e;
  return GRAFT_OK;
}

graft_status graft_tensor_to_dlpack(graft_tensor *tensor, struct DLManagedTensorVersioned **managed) {
  if (!tensor) return err_null(__func__, "tensor");
  if (!managed) return err_null(__func__, "managed");
  exported *e;
  graft_status status = export_tensor(tensor, &e);
  if (status) return status;
  struct DLManagedTensorVersioned *m = &e->managed.versioned;
  m->major = DLP_MAJOR, m->minor = DLP_MINOR;
  m->context = e;
  m->deleter = delete_versioned;
  fill_tensor(e, &m->tensor);
  *managed = m;
  return GRAFT_OK;
}

graft_status graft_tensor_to_dlpack_old(graft_tensor *tensor, struct DLManagedTensor **managed) {
  if (!tensor) return err_null(__func__, "tensor");
  if (!managed) return err_null(__func__, "managed");
  exported *e;
  graft_status status = export_tensor(tensor, &e);
  if (status) return status;
  struct DLManagedTensor *m = &e->managed.old;
  m->context = e;
  m->deleter = delete_old;
  fill_tensor(e, &m->tensor);
  *managed = m;
  return GRAFT_OK;
}

/* --- import --- */

/* Memory of another library and how to give it back. */
typedef struct imported {
  graft_rt_device *device;
  graft_buffer *buffer;
  struct DLManagedTensor *old; /* one of the two */
  struct DLManagedTensorVersioned *versioned;
} imported;

static void give_back(struct DLManagedTensor *old, struct DLManagedTensorVersioned *versioned) {
  if (old && old->deleter) old->deleter(old);
  if (versioned && versioned->deleter) versioned->deleter(versioned);
}

static void imported_release(void *context) {
  imported *m = context;
  if (m->buffer && !dev_forked(m->device)) {
    dev_wait_for_work(m->device);
    m->device->backend->memory.release(m->device->handle, m->buffer);
  }
  give_back(m->old, m->versioned);
  free(m);
}

static const char *device_type_name(int32_t type) {
  static const char *const names[] = {[DLP_CPU] = "CPU",
                                      [DLP_CUDA] = "CUDA",
                                      [DLP_CUDA_HOST] = "CUDA host",
                                      [DLP_OPENCL] = "OpenCL",
                                      [DLP_VULKAN] = "Vulkan",
                                      [DLP_METAL] = "Metal",
                                      [DLP_VPI] = "VPI",
                                      [DLP_ROCM] = "ROCm",
                                      [DLP_ROCM_HOST] = "ROCm host",
                                      [DLP_EXT_DEV] = "extension",
                                      [DLP_CUDA_MANAGED] = "CUDA managed",
                                      [DLP_ONEAPI] = "oneAPI",
                                      [DLP_WEBGPU] = "WebGPU",
                                      [DLP_HEXAGON] = "Hexagon",
                                      [DLP_MAIA] = "MAIA"};
  bool known = type > 0 && type < (int32_t)(sizeof names / sizeof *names) && names[type];
  return known ? names[type] : "unknown";
}

static graft_status check_import(const dlp_tensor *dl, uint64_t flags, graft_dtype *dtype) {
  if (dl->device_type != DLP_CPU) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "DLPack: memory of device type %d (%s) can't be imported, only CPU memory; copy "
                   "it to the CPU first",
                   dl->device_type, device_type_name(dl->device_type));
  }
  *dtype = dl->code | (graft_dtype)dl->bits << 8 | (graft_dtype)dl->lanes << 16;
  if (dl->code >= 128 || dt_number(*dtype) < 0) {
    return err_set(GRAFT_INVALID_ARGUMENT, "DLPack: type code %u with %u bits and %u lanes is no dtype of tensors here",
                   dl->code, dl->bits, dl->lanes);
  }
  if (flags & DLP_FLAG_READ_ONLY) {
    return err_set(GRAFT_INVALID_ARGUMENT, "DLPack: the memory is read-only, which tensors can't be; copy it first");
  }
  if (dl->ndim < 0 || dl->ndim > GRAFT_MAX_DIMS || (dl->ndim > 0 && !dl->shape)) {
    return err_set(GRAFT_INVALID_ARGUMENT, "DLPack: %d dimensions%s; expected 0 to %d of them with a shape", dl->ndim,
                   dl->ndim > 0 && !dl->shape ? " without a shape" : "", GRAFT_MAX_DIMS);
  }
  return GRAFT_OK;
}

static graft_status import_geometry(const dlp_tensor *dl, graft_dtype dtype, int64_t *strides, uint64_t *bytes) {
  if (tns_numel(dl->ndim, dl->shape) < 0) {
    return err_set(GRAFT_INVALID_ARGUMENT, "DLPack: shape %s has a negative size or too many elements",
                   TNS_INTS(dl->ndim, dl->shape));
  }
  tns_contiguous_strides(dl->ndim, dl->shape, strides);
  for (int32_t i = 0; i < dl->ndim; i++) {
    if (dl->strides && dl->shape[i] > 1) strides[i] = dl->strides[i];
    if (strides[i] < 0) {
      return err_set(GRAFT_INVALID_ARGUMENT, "DLPack: strides %s are negative, which tensors can't have; copy it first",
                     TNS_INTS(dl->ndim, dl->strides));
    }
  }
  int64_t extent = tns_extent_bytes(dtype, dl->ndim, dl->shape, strides, 0);
  if (extent < 0 || (extent > 0 && !dl->data)) {
    return err_set(GRAFT_INVALID_ARGUMENT, "DLPack: shape %s with strides %s %s", TNS_INTS(dl->ndim, dl->shape),
                   TNS_INTS(dl->ndim, strides), extent < 0 ? "overflows" : "needs memory, but data is NULL");
  }
  *bytes = (uint64_t)extent;
  return GRAFT_OK;
}

/* A plugin's buffer over host memory. That of the reference plugin begins where alignment says, before the first
 * element if need be: so an unaligned pointer becomes an unaligned offset, which dispatch knows how to treat. */
static graft_status import_buffer(imported *m, void *pointer, tns_foreign *memory) {
  uint64_t alignment = m->device->alignment ? m->device->alignment : 1;
  uint64_t address = (uint64_t)(uintptr_t)pointer, skipped = address % alignment;
  graft_allocation request = {.struct_size = sizeof request, .kind = GRAFT_MEMORY_IMPORT};
  request.bytes = memory->bytes + skipped;
  request.host_pointer = (char *)pointer - skipped;
  graft_status status = m->device->backend->memory.allocate(m->device->handle, &request);
  if (status) return dev_status(m->device, status, "importing host memory");
  m->buffer = memory->buffer = request.buffer;
  memory->offset = skipped;
  memory->address = request.device_address ? request.device_address + skipped : address;
  memory->host_pointer = request.host_pointer ? pointer : NULL;
  return GRAFT_OK;
}

static graft_status import_storage(imported *m, const dlp_tensor *dl, uint64_t bytes, graft_storage **storage) {
  tns_foreign memory = {.bytes = bytes, .release = imported_release, .context = m};
  graft_status status = bytes > 0 ? import_buffer(m, (char *)dl->data + dl->byte_offset, &memory) : GRAFT_OK;
  if (!status) status = tns_storage_foreign(m->device, &memory, storage);
  if (status && m->buffer) m->device->backend->memory.release(m->device->handle, m->buffer);
  return status;
}

/* On failure the managed tensor stays the caller's: so it is put into `m` last. */
static graft_status import_tensor(graft_rt_device *device, const dlp_tensor *dl, uint64_t flags,
                                  struct DLManagedTensor *old, struct DLManagedTensorVersioned *versioned,
                                  graft_tensor **tensor) {
  graft_dtype dtype = GRAFT_DTYPE_NONE;
  int64_t strides[GRAFT_MAX_DIMS];
  uint64_t bytes = 0;
  if (!device) return GRAFT_OUT_OF_MEMORY; /* the reference device, which says why */
  graft_status status = check_import(dl, flags, &dtype);
  if (!status) status = import_geometry(dl, dtype, strides, &bytes);
  if (status) return status;
  imported *m = calloc(1, sizeof *m);
  if (!m) return err_set(GRAFT_OUT_OF_MEMORY, "DLPack: no host memory left for the description of a tensor");
  m->device = device;
  graft_storage *storage;
  status = import_storage(m, dl, bytes, &storage);
  if (status) {
    free(m);
    return status;
  }
  status = tns_new(storage, m->device, dtype, dl->ndim, dl->shape, strides, 0, tensor);
  if (!status) m->old = old, m->versioned = versioned;
  tns_storage_release(storage);
  return status;
}

/* What this library exported comes back as a tensor over the same storage. */
static graft_status reimport(const exported *e, graft_tensor **tensor) {
  return tns_alias(e->tensor, tensor);
}

/* Whether a device can work in host memory where it lies. A plugin takes whole units, and what lies around foreign
 * memory is not ours to give. */
static bool takes_in(const graft_rt_device *device, const dlp_tensor *dl) {
  int64_t strides[GRAFT_MAX_DIMS];
  uint64_t bytes = 0, address = (uint64_t)(uintptr_t)dl->data + dl->byte_offset;
  graft_dtype dtype = GRAFT_DTYPE_NONE;
  if (device->is_reference) return true;
  if (!(device->memory_kinds >> GRAFT_MEMORY_IMPORT & 1)) return false;
  if (check_import(dl, 0, &dtype) || import_geometry(dl, dtype, strides, &bytes)) return false;
  return address % device->alignment == 0 && bytes % device->granularity == 0;
}

static graft_status check_version(const struct DLManagedTensorVersioned *managed) {
  if (managed->major == DLP_MAJOR) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT, "DLPack: version %" PRIu32 ".%" PRIu32 "; only major version %d is known",
                 managed->major, managed->minor, DLP_MAJOR);
}

/* `managed` has been given away once the result no longer reads its memory. */
static graft_status import_moved(graft_rt_device *device, struct DLManagedTensorVersioned *managed,
                                 graft_tensor **tensor) {
  graft_tensor *there;
  graft_status status = managed->deleter == delete_versioned ? reimport(managed->context, &there)
                                                             : import_tensor(graft_device_reference(), &managed->tensor,
                                                                             managed->flags, NULL, NULL, &there);
  if (status) return status;
  status = tns_to(there, device, GRAFT_DTYPE_NONE, tensor);
  graft_tensor_release(there);
  if (!status) give_back(NULL, managed);
  return status;
}

graft_status graft_tensor_from_dlpack_to(graft_rt_device *device, struct DLManagedTensorVersioned *managed,
                                         graft_tensor **tensor) {
  if (!device) return err_null(__func__, "device");
  if (!managed) return err_null(__func__, "managed");
  if (!tensor) return err_null(__func__, "tensor");
  if (dev_forked(device)) return dev_forked_error(device);
  graft_status status = check_version(managed);
  if (status) return status;
  if (managed->deleter == delete_versioned || !takes_in(device, &managed->tensor)) {
    return import_moved(device, managed, tensor);
  }
  return import_tensor(device, &managed->tensor, managed->flags, NULL, managed, tensor);
}

graft_status graft_tensor_from_dlpack(struct DLManagedTensorVersioned *managed, graft_tensor **tensor) {
  if (!managed) return err_null(__func__, "managed");
  if (!tensor) return err_null(__func__, "tensor");
  graft_status status = check_version(managed);
  if (status) return status;
  if (managed->deleter != delete_versioned) {
    return import_tensor(graft_device_reference(), &managed->tensor, managed->flags, NULL, managed, tensor);
  }
  status = reimport(managed->context, tensor);
  if (!status) give_back(NULL, managed);
  return status;
}

graft_status graft_tensor_from_dlpack_old(struct DLManagedTensor *managed, graft_tensor **tensor) {
  if (!managed) return err_null(__func__, "managed");
  if (!tensor) return err_null(__func__, "tensor");
  if (managed->deleter != delete_old) {
    return import_tensor(graft_device_reference(), &managed->tensor, 0, managed, NULL, tensor);
  }
  graft_status status = reimport(managed->context, tensor);
  if (!status) give_back(managed, NULL);
  return status;
}
