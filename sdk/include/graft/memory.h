/* libgraft: the caching allocator of a device, seen from outside.
 *
 * Tensors take their memory from it. It asks the plugin for segments, splits them into blocks, reuses a block on the
 * stream that freed it at once and on others when its work is done, and gives segments back when asked to, or when the
 * device has no memory left (then it tries again). Thread-safe. */
#ifndef GRAFT_MEMORY_H
#define GRAFT_MEMORY_H

#include "graft/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One statistic: what torch.cuda.memory_stats calls NAME.current, NAME.peak, NAME.allocated, NAME.freed. */
typedef struct graft_memory_stat {
  int64_t current;
  int64_t peak;
  int64_t allocated;
  int64_t freed;
} graft_memory_stat;

/* Statistics under the names of torch.cuda.memory_stats (pool "all"). Sized by the caller. Bytes where the name says.
 */
typedef struct graft_memory_statistics {
  size_t struct_size;
  graft_memory_stat allocation;     /* blocks handed out */
  graft_memory_stat segment;        /* buffers held from the plugin */
  graft_memory_stat active;         /* blocks handed out, or freed but still in use by a stream */
  graft_memory_stat inactive_split; /* free parts of split segments */
  graft_memory_stat allocated_bytes;
  graft_memory_stat reserved_bytes;
  graft_memory_stat active_bytes;
  graft_memory_stat inactive_split_bytes;
  graft_memory_stat requested_bytes; /* before rounding */
  int64_t num_alloc_retries;
  int64_t num_ooms;
  int64_t num_device_alloc; /* calls of the plugin's allocate */
  int64_t num_device_free;
} graft_memory_statistics;

GRAFT_EXPORT graft_status graft_memory_stats(graft_rt_device *device, graft_memory_statistics *statistics);
GRAFT_EXPORT void graft_memory_reset_peak(graft_rt_device *device) GRAFT_NULL_GIVES(nothing);

/* Gives all unused segments back to the plugin. */
GRAFT_EXPORT graft_status graft_memory_empty_cache(graft_rt_device *device);

/* Limits reserved bytes; 0: no limit. A request beyond it is OUT_OF_MEMORY. */
GRAFT_EXPORT void graft_memory_set_limit(graft_rt_device *device, uint64_t bytes) GRAFT_NULL_GIVES(nothing);

/* Page-locked host memory for fast copies, cached likewise; ordinary memory where the device offers none. Freed memory
 * is reused when the copies recorded on it are done. */
GRAFT_EXPORT graft_status graft_pinned_allocate(graft_rt_device *device, uint64_t bytes, void **pointer);
GRAFT_EXPORT graft_status graft_pinned_free(graft_rt_device *device, GRAFT_NULLABLE void *pointer);

#ifdef __cplusplus
}
#endif

#endif
