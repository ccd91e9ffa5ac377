/* Memory: buffers, and the functions behind graft_memory_api. */
#ifndef OCL_MEMORY_H
#define OCL_MEMORY_H

#include "runtime/device.h"

struct graft_buffer {
  cl_mem handle;
  uint64_t bytes;
  void *mapped;      /* pinned memory: where the host sees it */
  const char *pages; /* the host's memory that it was made of, or NULL */
};

/* Gives back a reference to a buffer that kernels may have been given: they keep what they were given last, and must
 * not take a later buffer of the same handle for this one. */
void ocl_buffer_release(graft_device *device, cl_mem handle);

extern const graft_memory_api ocl_memory_api;

/* graft_memory_api.fill, for slots too. */
graft_status ocl_fill(graft_stream *stream, graft_buffer *to, uint64_t offset, uint64_t bytes, const void *pattern,
                      uint32_t pattern_bytes);

#endif
