/* libgraft: what a bridge to another framework needs beside the other headers: storages whose lifetime the framework
 * decides, tensors described in memory of the caller, and a few questions about ops.
 *
 * Made for sdk/torch; a framework that has its own tensors binds to Graft through this. Thread-safe as said in
 * tensor.h. */
#ifndef GRAFT_BRIDGE_H
#define GRAFT_BRIDGE_H

#include "graft/abi/exec.h"
#include "graft/value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Device memory with an identity and a version, reference-counted. */
typedef struct graft_storage graft_storage;

/* New memory of at least `bytes` bytes (0: none) from the device's caching allocator, ordered on the current stream.
 * The caller owns a reference. Errors: OUT_OF_MEMORY, with a text that names sizes and limits. */
GRAFT_EXPORT graft_status graft_storage_new(graft_rt_device *device, uint64_t bytes, graft_storage **storage);
GRAFT_EXPORT void graft_storage_retain(graft_storage *storage) GRAFT_NULL_GIVES(nothing);
GRAFT_EXPORT void graft_storage_release(GRAFT_NULLABLE graft_storage *storage);

/* The first byte's address: of the device, or of a reserved unreadable range; NULL for a storage without memory. It
 * names the memory: who writes through it asks for the host pointer first. */
GRAFT_EXPORT void *graft_storage_address(const graft_storage *storage) GRAFT_NULL_GIVES(NULL);
/* Where the host may touch the memory directly, or NULL. From then on plugins are told that the contents may change at
 * any time (version 0), so that they cache nothing of them. */
GRAFT_EXPORT void *graft_storage_host_pointer(graft_storage *storage) GRAFT_NULL_GIVES(NULL);
GRAFT_EXPORT uint64_t graft_storage_bytes(const graft_storage *storage) GRAFT_NULL_GIVES(0);
GRAFT_EXPORT graft_rt_device *graft_storage_device(const graft_storage *storage) GRAFT_NULL_GIVES(NULL);

/* Work on `stream` uses the memory too: it is not reused before that is done. */
GRAFT_EXPORT graft_status graft_storage_record_stream(graft_storage *storage, graft_rt_stream *stream);
/* Whether it named a stream for this storage that is not the memory's own. */
GRAFT_EXPORT bool graft_storage_has_recorded(const graft_storage *storage) GRAFT_NULL_GIVES(false);

/* The storage under a tensor, borrowed. */
GRAFT_EXPORT graft_storage *graft_tensor_storage(const graft_tensor *tensor) GRAFT_NULL_GIVES(NULL);

/* A view, as graft_tensor_borrow takes it. sizes and strides have ndim items (at most GRAFT_MAX_DIMS), offset counts
 * elements. */
typedef struct graft_view {
  graft_dtype dtype;
  int32_t ndim;
  const int64_t *sizes;
  const int64_t *strides;
  int64_t offset;
  bool conj;
  bool neg;
} graft_view;

/* What a result is made of, for a framework that makes its own tensor of it. */
typedef struct graft_tensor_parts {
  graft_storage *storage; /* a reference that the caller owns */
  graft_rt_device *device;
  void *address;   /* of the storage, as graft_storage_address gives it */
  uint64_t bytes;  /* of the storage */
  graft_view view; /* its sizes and strides are those below */
  int64_t sizes[GRAFT_MAX_DIMS];
  int64_t strides[GRAFT_MAX_DIMS];
} graft_tensor_parts;

/* Fills `parts` and releases the tensor. Costs less than a question for each part. */
GRAFT_EXPORT void graft_tensor_unpack(graft_tensor *tensor, graft_tensor_parts *parts) GRAFT_NULL_GIVES(nothing);

/* Memory for one tensor description. */
typedef struct graft_tensor_space {
  uint64_t words[56];
} graft_tensor_space;

/* Describes a tensor in `space`: valid while space and storage live, for arguments and outs of graft_call and for
 * graft_tensor_copy; never retained beyond the call, never released. Allocates nothing, takes no reference. */
GRAFT_EXPORT graft_tensor *graft_tensor_borrow(graft_tensor_space *space, graft_storage *storage,
                                               const graft_view *view) GRAFT_NULL_GIVES(NULL);

/* Likewise for host memory at `data` (the view's offset is 0): a tensor of the reference device. */
GRAFT_EXPORT graft_tensor *graft_tensor_borrow_host(graft_tensor_space *space, void *data, uint64_t bytes,
                                                    const graft_view *view) GRAFT_NULL_GIVES(NULL);

/* graft_tensor_copy that may return before host memory has been read or written, where one side is host memory that
 * graft_pinned_allocate gave out for the device of the other; else it is graft_tensor_copy. */
GRAFT_EXPORT graft_status graft_tensor_copy_async(graft_tensor *to, graft_tensor *from);

/* Whether all of the memory is page-locked memory that graft_pinned_allocate gave out for the device. */
GRAFT_EXPORT bool graft_pinned_owns(graft_rt_device *device, GRAFT_NULLABLE const void *pointer, uint64_t bytes)
    GRAFT_NULL_GIVES(false);
/* Work on `stream` reads or writes pinned memory at `pointer`: it is not reused before that is done. */
GRAFT_EXPORT graft_status graft_pinned_record_stream(graft_rt_device *device, GRAFT_NULLABLE const void *pointer,
                                                     graft_rt_stream *stream);

/* Whether libgraft knows an op's rule, so that graft_call can run it on every backend. */
GRAFT_EXPORT bool graft_op_known(uint32_t op_id);

/* Whether the shape of an op's results depends on its inputs' values: such results can't be written to given tensors.
 */
GRAFT_EXPORT bool graft_op_is_dynamic(uint32_t op_id);

/* Whether what an op's rule refused (INVALID_ARGUMENT) is the dtype of the values: it takes the same call in another
 * one. For frameworks that have an exception of its own for that. graft_last_error is another text afterwards. */
GRAFT_EXPORT bool graft_refuses_dtype(uint32_t op_id, const graft_value *args, uint32_t nargs) GRAFT_NULL_GIVES(false);

/* The name of an op's overload, "aten::add.Tensor"; NULL when unknown. */
GRAFT_EXPORT const char *graft_op_name(uint32_t op_id);

/* Who would run an op on a device, judged by the tables of its plugin, as `graft ops` lists it: "plugin", a slot of its
 * own; "equal", the slot of an op that is the same thing; "decomposition", other ops of the device; "reference", host
 * memory; "host", a view or metadata, which needs no kernel; "composite", what frameworks make of other ops;
 * "unsupported", also where the id is unknown. A call of a dtype or shape that a slot leaves out may go another way. */
GRAFT_EXPORT const char *graft_op_route(graft_rt_device *device, uint32_t op_id) GRAFT_NULL_GIVES(NULL);

/* What GRAFT_FALLBACK says of work that leaves the device. */
typedef uint32_t graft_fallback_policy;
enum {
  GRAFT_FALLBACK_ALLOW = 0,
  GRAFT_FALLBACK_WARN = 1, /* the default: a warning on stderr the first time an op does */
  GRAFT_FALLBACK_ERROR = 2
};
GRAFT_EXPORT graft_fallback_policy graft_fallback_policy_get(void);

/* Flags sent with every op of this thread: GRAFT_EXEC_DETERMINISTIC, hints. Returns what they were. */
GRAFT_EXPORT graft_exec_flags graft_exec_flags_set(graft_exec_flags flags);

/* The dtype that this thread's ops give to floating results of integer inputs, and to numbers with a fraction beside
 * integers: GRAFT_F32 at first. The dtype must be a real floating one of at least 16 bits, else GRAFT_INVALID_ARGUMENT
 * and nothing changes. */
GRAFT_EXPORT graft_dtype graft_default_dtype_get(void);
GRAFT_EXPORT graft_status graft_default_dtype_set(graft_dtype dtype);

/* Whether this process is the child of a fork and a driver had been in use before: then every device call fails. */
GRAFT_EXPORT bool graft_is_forked(void);

#ifdef __cplusplus
}
#endif

#endif
