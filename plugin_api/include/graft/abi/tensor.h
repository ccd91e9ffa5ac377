/* Graft plugin ABI: what an op sees of a tensor, of numbers and of lists.
 *
 * All of it belongs to the host and lives until the slot returns: descriptors, shapes, strides, lists and the numbers
 * they point to. A plugin that needs a shape later copies it. */
#ifndef GRAFT_ABI_TENSOR_H
#define GRAFT_ABI_TENSOR_H

#include "graft/abi/dtype.h"

/* Opaque objects. The first four are the plugin's, and never cross from one plugin instance to another. */
typedef struct graft_device graft_device; /* an opened device */
typedef struct graft_buffer graft_buffer; /* device memory; addressed as buffer plus byte offset */
typedef struct graft_stream graft_stream; /* a queue of work, done in order */
typedef struct graft_event graft_event;   /* a point in a stream */
typedef struct graft_output graft_output; /* the host's: an output whose shape the op itself finds */

/* Exactly a DLTensor of DLPack 1.x with data as a graft_buffer; frozen. Shape and strides count elements, strides are
 * never NULL, byte_offset counts bytes and is a multiple of the element size. Strides of inputs may be 0 (expanded)
 * where the op's capabilities allow it, and are never negative. */
typedef struct graft_dl_tensor {
  graft_buffer *data;
  int32_t device_type; /* a DLDeviceType */
  int32_t device_id;   /* the plugin's own index */
  int32_t ndim;
  graft_dtype dtype;
  const int64_t *shape;
  const int64_t *strides;
  uint64_t byte_offset;
} graft_dl_tensor;

typedef uint32_t graft_tensor_flags;
enum {
  /* dl.data is a pointer to one element in host memory, readable until the slot returns, to be used as a number; ndim
   * is 0. Only sent for an op whose capabilities say GRAFT_CAP_HOST_VALUE. Where the op computes in an integer dtype,
   * an integer is one of that dtype's: the host wraps others, 300 beside u8 to 44. */
  GRAFT_TENSOR_HOST_VALUE = 0x1
};

/* A tensor as an op sees it. (storage_id, storage_version) names the contents: a plugin may cache what it derives from
 * them, such as a repacked weight, under that pair. An id is never used again in a process; the version changes with
 * every write the host knows of. Version 0 means unknown: do not cache. The host sends it from the moment on when
 * somebody else may write the memory unseen: it was exported (through DLPack, say), imported, or a pointer to it was
 * handed out. */
typedef struct graft_tensor_desc {
  size_t struct_size;
  graft_dl_tensor dl;
  uint64_t storage_id;
  uint64_t storage_version;
  graft_tensor_flags flags;
  uint32_t reserved;
} graft_tensor_desc;

/* A list of tensors. An item is NULL where an optional tensor is absent. */
typedef struct graft_tensor_list {
  const graft_tensor_desc *const *items;
  uint64_t count;
} graft_tensor_list;

/* Lists of numbers. items is NULL where an optional list is absent; an empty list has items non-NULL and count 0. */
typedef struct graft_int_list {
  const int64_t *items;
  uint64_t count;
} graft_int_list;

typedef struct graft_f64_list {
  const double *items;
  uint64_t count;
} graft_f64_list;

/* A number of no tensor: dtype is one of GRAFT_BOOL, GRAFT_I64, GRAFT_U64, GRAFT_F64, GRAFT_C128 and says which member
 * of value counts (BOOL and I64: i; U64: the bits of i; F64: f; C128: c). An optional number that is absent is NULL. */
typedef struct graft_scalar {
  graft_dtype dtype;
  uint32_t reserved;
  union {
    int64_t i;
    double f;
    double c[2];
  } value;
} graft_scalar;

typedef struct graft_scalar_list {
  const graft_scalar *items;
  uint64_t count;
} graft_scalar_list;

#endif
