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

#endif
