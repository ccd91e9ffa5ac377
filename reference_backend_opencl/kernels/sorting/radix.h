/* Lines of elements in order, for devices with work-groups: a radix sort that begins with elements (radix.cl). */
#ifndef OCL_SORTING_RADIX_H
#define OCL_SORTING_RADIX_H

#include "kernels/core/radix.h"

/* What is sorted, and what of it is kept. */
typedef struct ocl_order {
  int64_t lines, size, inner, skipped, kept;
  bool descending;
  bool to_results; /* values and places come out, else items */
} ocl_order;

typedef struct ocl_ordering {
  ocl_kernel first[OCL_RADIX_KERNELS], middle[OCL_RADIX_KERNELS], last[OCL_RADIX_KERNELS];
  ocl_radix_plan plan;
  ocl_radix_plan second; /* of what is left of a line's parts, where these are sorted first, each in a tile */
  bool to_results, in_parts;
  uint64_t work_bytes; /* what the workspace takes */
} ocl_ordering;

enum { OCL_ORDERING_KERNELS = 3 * OCL_RADIX_KERNELS };

/* D, as_key and the like of items.cl, for the head. */
void ocl_order_head(ocl_text *head, const ocl_dtype *dtype, bool descending);
/* Whether the first `kept` of such lines come out without an order of all: of one tile, or of few from each. */
bool ocl_order_keeps_few(const graft_device *device, const ocl_dtype *dtype, int64_t size, int64_t kept);
graft_status ocl_order_prepare(ocl_ordering *ordering, graft_device *device, const ocl_dtype *dtype,
                               const ocl_order *order);
/* Into values and indices, or, where these are not wanted, into `*items`, which is in the workspace `work`. */
graft_status ocl_order_run(const graft_exec *exec, ocl_ordering *ordering, const graft_tensor_desc *in,
                           const graft_tensor_desc *values, const graft_tensor_desc *indices, ocl_place work,
                           ocl_place *items);

#endif
