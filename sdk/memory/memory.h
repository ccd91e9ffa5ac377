/* memory/: the caching allocator above a plugin's allocate and release, pinned staging and statistics.
 *
 * Internal to libgraft. Calls the plugin's memory and stream functions, never while holding its own lock. */
#ifndef GRAFT_SDK_MEMORY_H
#define GRAFT_SDK_MEMORY_H

#include "device/device.h"

/* Blocks begin at multiples of this, and of the device's alignment, in buffers. */
#define MEM_MIN_BLOCK UINT64_C(512)

/* A block handed out. The fields are read-only for users. */
typedef struct mem_block {
  graft_rt_device *device;
  graft_buffer *buffer;
  uint64_t offset;    /* bytes, in buffer; aligned to the device's alignment */
  uint64_t bytes;     /* at least what was asked for */
  uint64_t address;   /* what a tensor's data_ptr is: a device address, or one of a reserved unreadable range */
  void *host_pointer; /* where the host may touch the memory directly; else NULL */
} mem_block;

graft_status mem_create(graft_rt_device *device, mem_allocator **allocator);
int64_t mem_blocks(mem_allocator *allocator); /* handed out, and not freed or still in use by a stream */
/* The end comes in two steps, since events go before streams and buffers behind them. The first waits for all use. */
void mem_settle(mem_allocator *allocator);
void mem_destroy(mem_allocator *allocator);
/* GRAFT_NO_MEMORY_CACHING, not empty and not "0": each request has a buffer of its own, so that a tool that watches
 * buffers sees every access outside of a tensor. */
bool mem_is_uncached(void);

/* `bytes` may be 0: a block without memory (buffer NULL). Ordered on `stream`: memory freed on it is reused at once. */
graft_status mem_allocate(graft_rt_device *device, graft_rt_stream *stream, uint64_t bytes, mem_block **block);
void mem_free(mem_block *block);

/* The block is also used by work on `stream`: not reused before that is done. */
graft_status mem_record_stream(mem_block *block, graft_rt_stream *stream);
/* Whether a stream was recorded that is not its own. */
bool mem_has_recorded(mem_block *block);
/* Whether it is `stream`'s, and no other one was recorded. */
bool mem_is_of_stream(mem_block *block, graft_rt_stream *stream);

/* The stream is done and about to be destroyed: what was allocated on it belongs to the default stream from now on. */
void mem_stream_closing(graft_rt_stream *stream);

/* A pool for captures: while one names it (dev_capture.pool), memory of its streams comes from there, and what is freed
 * goes back there and nowhere else, so that launches find it as they left it. Its release waits for the device; its
 * memory is then the default stream's. */
graft_status mem_pool_create(graft_rt_device *device, mem_pool **pool);
void mem_pool_release(graft_rt_device *device, mem_pool *pool);
bool mem_is_of_pool(const mem_block *block, const mem_pool *pool);

/* A copy on `stream` reads or writes pinned memory at `pointer` (or inside): it is not reused before that is done.
 * Memory that is not pinned by us is ignored. */
graft_status mem_pinned_record(graft_rt_device *device, const void *pointer, graft_rt_stream *stream);
/* Whether all of it is page-locked memory that graft_pinned_allocate gave out for this device. */
bool mem_is_pinned(graft_rt_device *device, const void *pointer, uint64_t bytes);

/* Copies between host memory and a block through the device's stream, with staging where `host` is pageable. from_host
 * returns when `host` may be reused; to_host returns when `host` is complete. */
graft_status mem_from_host(graft_rt_stream *stream, graft_buffer *to, uint64_t offset, const void *host,
                           uint64_t bytes);
graft_status mem_to_host(graft_rt_stream *stream, void *host, graft_buffer *from, uint64_t offset, uint64_t bytes);

#endif
