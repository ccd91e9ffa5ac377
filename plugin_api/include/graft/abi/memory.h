/* Graft plugin ABI: memory.
 *
 * Memory is a buffer and a byte offset. The host keeps a caching allocator above these functions: it asks for large
 * buffers, divides them (unless GRAFT_DEVICE_INDIVISIBLE), and gives them back rarely (unless GRAFT_DEVICE_UNCACHED).
 * Copies are ordered on a stream like ops are. `allocate` and `release` are thread-safe; the others name a stream and
 * are serialised on it by the host. The host holds no lock of its own allocator while it calls any of them. */
#ifndef GRAFT_ABI_MEMORY_H
#define GRAFT_ABI_MEMORY_H

#include "graft/abi/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t graft_memory_kind;
enum {
  GRAFT_MEMORY_DEVICE = 0,  /* the device's own memory */
  GRAFT_MEMORY_PINNED = 1,  /* page-locked host memory that the device copies from and to at full speed */
  GRAFT_MEMORY_MANAGED = 2, /* one address for both sides; reserved: hosts of 1.x ask for none */
  GRAFT_MEMORY_IMPORT = 3   /* host memory at host_pointer made visible to the device; the host keeps owning it */
};

/* The first of the kinds that are the vendors'; the last is 31. The host asks for none of them. */
#define GRAFT_MEMORY_VENDOR_KINDS 24

/* A request for memory and its answer. Zero means the default in every field. */
typedef struct graft_allocation {
  size_t struct_size;
  uint64_t bytes;         /* more than 0, a multiple of GRAFT_DEVICE_GRANULARITY */
  uint64_t alignment;     /* bytes, a power of two; 0: GRAFT_DEVICE_ALIGNMENT */
  graft_memory_kind kind; /* one of GRAFT_DEVICE_MEMORY_KINDS; another is GRAFT_UNIMPLEMENTED */
  uint32_t flags;         /* none defined in this version */
  /* In for an import; out where the host may read and write the memory directly. Such memory is coherent: what the host
   * wrote before it submits work, that work sees; what the device wrote, the host sees as soon as an event recorded
   * after it is done. Memory that would need more (a map, a flush) gives no pointer. */
  void *host_pointer;
  graft_buffer *buffer;    /* out */
  uint64_t device_address; /* out, 0 for none; a real address becomes the tensor's data pointer */
  /* From 1.2: the stream whose work uses the memory first, or NULL. It comes where the device says
   * GRAFT_DEVICE_UNCACHED and there is release_on; the memory may then be what was released on that stream before,
   * since the host has other streams wait for this one before they use it. The call is serialised on the stream. */
  graft_stream *stream;
} graft_allocation;

typedef uint32_t graft_copy_flags;
enum {
  /* copy_from_host: the source may be reused as soon as the call returns. Without it the source stays untouched until
   * an event recorded after the copy is done. Always understood; not among GRAFT_DEVICE_MEMORY_FLAGS. */
  GRAFT_COPY_SOURCE_REUSABLE = 0x1
};

typedef struct graft_memory_api {
  size_t struct_size;

  /* Allocates *request. Mandatory. Errors: OUT_OF_MEMORY (the host releases its cache and tries again), UNIMPLEMENTED
   * for a kind not offered, INVALID_ARGUMENT. Does not block on streams. */
  graft_status (*allocate)(graft_device *device, graft_allocation *request) GRAFT_TABLE_NOEXCEPT;

  /* Gives a buffer back. Mandatory. Called when no submitted work refers to it, or the device is lost, and then it
   * succeeds; never blocks on a stream. */
  graft_status (*release)(graft_device *device, graft_buffer *buffer) GRAFT_TABLE_NOEXCEPT;

  /* Copies `bytes` from host memory to a buffer, asynchronously; see graft_copy_flags for when `from` is free again.
   * Mandatory. */
  graft_status (*copy_from_host)(graft_stream *stream, graft_buffer *to, uint64_t offset, const void *from,
                                 uint64_t bytes, graft_copy_flags flags) GRAFT_TABLE_NOEXCEPT;

  /* Copies from a buffer to host memory, asynchronously: `to` is complete when an event recorded after it is done.
   * Mandatory. */
  graft_status (*copy_to_host)(graft_stream *stream, void *to, graft_buffer *from, uint64_t offset, uint64_t bytes,
                               graft_copy_flags flags) GRAFT_TABLE_NOEXCEPT;

  /* Copies inside a device. The two ranges never overlap. Mandatory. */
  graft_status (*copy)(graft_stream *stream, graft_buffer *to, uint64_t to_offset, graft_buffer *from,
                       uint64_t from_offset, uint64_t bytes) GRAFT_TABLE_NOEXCEPT;

  /* Copies between two devices of this instance, ordered on `stream`, a stream of to_device. The plugin orders nothing
   * on from_device: before the call the host has `stream` wait for what is submitted there (or waits itself), and until
   * `stream` has passed the copy it neither writes the source nor gives it back. Optional: without it, or between
   * devices that are not peers, the host stages through its own memory. */
  graft_status (*copy_peer)(graft_stream *stream, graft_device *to_device, graft_buffer *to, uint64_t to_offset,
                            graft_device *from_device, graft_buffer *from, uint64_t from_offset,
                            uint64_t bytes) GRAFT_TABLE_NOEXCEPT;

  /* Fills a range with a pattern of 1, 2, 4, 8 or 16 bytes; `offset` and `bytes` are multiples of pattern_bytes. The
   * pattern is read before the call returns. Mandatory. */
  graft_status (*fill)(graft_stream *stream, graft_buffer *to, uint64_t offset, uint64_t bytes, const void *pattern,
                       uint32_t pattern_bytes) GRAFT_TABLE_NOEXCEPT;

  /* From 1.2. Gives a buffer back in the order of a stream, the one it was allocated for or, if that is gone, another
   * one: work submitted to the stream before still uses it, later work does not. The host has the stream wait for other
   * streams' work on it. Blocks on nothing; where it fails, the host waits and calls release. Optional. */
  graft_status (*release_on)(graft_stream *stream, graft_buffer *buffer) GRAFT_TABLE_NOEXCEPT;
} graft_memory_api;

#ifdef __cplusplus
}
#endif

#endif
