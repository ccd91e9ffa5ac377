/* Memory: buffers, and the functions behind graft_memory_api. */
#ifndef OCL_MEMORY_H
#define OCL_MEMORY_H

#include "runtime/device.h"

struct graft_buffer {
  cl_mem handle;
  uint64_t bytes;
  void *mapped; /* pinned memory: where the host sees it */
};

extern const graft_memory_api ocl_memory_api;

/* graft_memory_api.fill, for slots too. */
graft_status ocl_fill(graft_stream *stream, graft_buffer *to, uint64_t offset, uint64_t bytes, const void *pattern,
                      uint32_t pattern_bytes);

#endif
