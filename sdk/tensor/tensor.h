/* tensor/: storages, tensors and views; dtype facts; copies.
 *
 * Internal to libgraft. Depends on memory/. A storage is memory with an identity and a version; a tensor is a strided
 * view of it. Views are made here by the host alone (view.c); nothing here runs an op, except that copies which a
 * plugin's memory functions can't do ask the hooks below. Begin reading in make.c, then copy.c. */
#ifndef GRAFT_SDK_TENSOR_H
#define GRAFT_SDK_TENSOR_H

#include "graft/tensor.h"
#include "memory/memory.h"
#include "tensor/dtype.h"

typedef struct ag_meta ag_meta; /* autograd/'s state of a tensor: history, gradient, hooks; NULL for most */

typedef struct graft_storage {
  atomic_int refs;
  graft_rt_device *device;
  mem_block *block; /* NULL for memory owned by someone else (`release`) */
  graft_buffer *buffer;
  uint64_t offset; /* bytes: where the storage begins in buffer */
  uint64_t bytes;
  uint64_t address;               /* data pointer of the first byte */
  void *host_pointer;             /* readable by the host, or NULL */
  uint64_t id;                    /* never used again in this process */
  _Atomic(uint64_t) version;      /* from 1; changes with every write */
  atomic_bool unseen;             /* may be written without libgraft's knowing, and stays so: ops see version 0 */
  uint64_t symbol;                /* not 0: there is no memory, this is a place in a recording (recorder.h) */
  void (*release)(void *context); /* for imported memory */
  void *release_context;
} graft_storage;

enum { TNS_CONJ = 1, TNS_NEG = 2, TNS_INFERENCE = 4 };

struct graft_tensor {
  atomic_int refs;
  graft_dtype dtype;
  int32_t ndim;
  uint32_t flags;
  graft_storage *storage; /* NULL: a tensor of shape only, as shape inference and autograd use */
  graft_rt_device *device;
  int64_t offset; /* elements */
  int64_t numel;
  ag_meta *autograd;
  uint64_t traced; /* which value of a graph with open sizes it is; 0: none. See graph/script.h */
  int64_t sizes[GRAFT_MAX_DIMS];
  int64_t strides[GRAFT_MAX_DIMS];
};

/* What stands above tensor/ and is needed here; wiring.c fills it in. */
typedef struct tns_hooks_table {
  /* The end of autograd/'s part of a tensor, which is never NULL here; and whether one with it requires grad. */
  void (*history_release)(ag_meta *history);
  bool (*requires_grad)(const graft_tensor *tensor);
  /* Copies on one device through the plugin's _to_copy slot: `from` has been expanded to `to`'s sizes; any strides, any
   * dtypes; conjugate and negative bits are the caller's to honour. UNIMPLEMENTED, without text, where the plugin takes
   * no such pair as it is: the caller then goes through host memory. */
  graft_status (*copy_kernel)(graft_tensor *to, graft_tensor *from);
  /* Negates a tensor in place, on its device and without history. */
  graft_status (*negate)(graft_tensor *tensor);
} tns_hooks_table;
extern const tns_hooks_table tns_hooks;

graft_status tns_storage_new(graft_rt_device *device, uint64_t bytes, graft_storage **storage);
/* A storage over memory owned by someone else: `release` is called with `context` when the storage goes, not on
 * failure. */
typedef struct tns_foreign {
  graft_buffer *buffer;
  uint64_t offset, bytes, address;
  void *host_pointer;
  void (*release)(void *context);
  void *context;
} tns_foreign;
graft_status tns_storage_foreign(graft_rt_device *device, const tns_foreign *memory, graft_storage **storage);
void tns_storage_retain(graft_storage *storage);
void tns_storage_release(graft_storage *storage);

/* A tensor over `storage` (retained; NULL for a shape without memory). */
graft_status tns_new(graft_storage *storage, graft_rt_device *device, graft_dtype dtype, int32_t ndim,
                     const int64_t *sizes, const int64_t *strides, int64_t offset, graft_tensor **tensor);

/* A view of `base`: same storage, flags and dtype (or another dtype of the same size). No autograd history. */
graft_status tns_view(graft_tensor *base, int32_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                      graft_tensor **view);

/* Releases a tensor; the storage under it, or NULL, with a reference that is the caller's. */
graft_storage *tns_release_to_storage(graft_tensor *tensor);

/* Geometry. */
int64_t tns_numel(int32_t ndim, const int64_t *sizes); /* -1 when it overflows */
void tns_contiguous_strides(int32_t ndim, const int64_t *sizes, int64_t *strides);
bool tns_is_contiguous(int32_t ndim, const int64_t *sizes, const int64_t *strides);
bool tns_is_channels_last(int32_t ndim, const int64_t *sizes, const int64_t *strides); /* rank 4 or 5 */
bool tns_has_sizes(const graft_tensor *t, int32_t ndim, const int64_t *sizes);
/* Whether its elements, repeated but none left out, fill such a shape. */
bool tns_broadcasts_to(const graft_tensor *t, int32_t ndim, const int64_t *sizes);
/* Broadcasts a shape with another one, in place; sizes has room for GRAFT_MAX_DIMS. False: they do not fit. */
bool tns_broadcast_sizes(int32_t *ndim, int64_t *sizes, int32_t other_ndim, const int64_t *other);
bool tns_same_sizes(const graft_tensor *a, const graft_tensor *b);
bool tns_is_dense(int32_t ndim, const int64_t *sizes, const int64_t *strides); /* non-overlapping and without gaps */
void tns_channels_last_strides(int32_t ndim, const int64_t *sizes, int64_t *strides);
/* The strides of a dense copy that keeps the order of dims (empty_like with preserve_format): its own where it is
 * dense. */
void tns_preserve_strides(int32_t ndim, const int64_t *sizes, const int64_t *strides, int64_t *result);
/* PyTorch's suggest_memory_format: CHANNELS_LAST(_3D) or CONTIGUOUS. */
graft_memory_format tns_suggest_format(const graft_tensor *tensor);
/* Both dense, of one shape, with equal strides where they matter (sizes above 1). */
bool tns_dense_alike(const graft_tensor *a, const graft_tensor *b);
/* Bytes from the storage's first byte that a view needs; -1 when it overflows. */
int64_t tns_extent_bytes(graft_dtype dtype, int32_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset);
/* Whether two elements of the tensor share memory; with a size above 1 and stride 0, say. */
bool tns_overlaps_itself(const graft_tensor *tensor);
typedef enum tns_overlap { TNS_OVERLAP_NONE, TNS_OVERLAP_FULL, TNS_OVERLAP_PARTIAL, TNS_OVERLAP_MAYBE } tns_overlap;
/* PyTorch's get_overlap_status: FULL means the very same elements in the same order; PARTIAL is what PyTorch refuses;
 * MAYBE (its "too hard", views with gaps) is what it lets pass: the result must then be made in other memory first. */
tns_overlap tns_overlap_of(const graft_tensor *a, const graft_tensor *b);

/* Where the first element lies in its buffer, in bytes; of a tensor that has a storage. */
static inline uint64_t tns_first_byte(const graft_tensor *t) {
  return t->storage->offset + (uint64_t)t->offset * dt_bytes(t->dtype);
}

/* Whether a tensor has a shape and no memory: for shape inference, or as a value of a recording. */
static inline bool tns_lacks_memory(const graft_tensor *t) {
  return !t->storage || t->storage->symbol;
}

/* Marks the contents as changed. */
void tns_bump(graft_tensor *tensor);
/* A pointer to the memory is handed out. */
void tns_storage_expose(graft_storage *storage);

/* "f32[2,3]", "f32[2,3]:1,2" with strides where not contiguous; writes at most `capacity` bytes and returns buffer. */
char *tns_describe(const graft_tensor *tensor, char *buffer, size_t capacity);
char *tns_format_ints(char *buffer, size_t capacity, uint64_t count, const int64_t *items);
#define TNS_INTS(count, items) tns_format_ints((char[320]){0}, 320, (uint64_t)(count), (items))
#define TNS_SHAPE(tensor)      tns_describe((tensor), (char[480]){0}, 480)

#endif
