/* Where the elements are that are not 0, and what is then done with these: see indexing.cl. */
#ifndef OCL_SEARCH_H
#define OCL_SEARCH_H

#include "runtime/ocl.h"

typedef struct ocl_search {
  const graft_tensor_desc *in;    /* looked through */
  const graft_tensor_desc *value; /* moved, or NULL */
  const char *entry;              /* the kernel that does it */
  bool takes_shape;               /* of `in`, last */
  uint32_t op_id;
} ocl_search;

typedef struct ocl_found {
  ocl_kernel count, accumulate, fill; /* fill: `entry`, with its work size */
  uint64_t elements, chunk, chunks;
} ocl_found;

/* Finds in `work` where each chunk's elements begin in a row of all, and behind these their number. */
graft_status ocl_search_run(const graft_exec *exec, const ocl_search *search, ocl_found **found, ocl_place *work);

/* Reads a number that kernels leave, waiting for the event of the copy, not for the stream. */
graft_status ocl_read_total(graft_stream *stream, ocl_place from, int64_t *total);

#endif
