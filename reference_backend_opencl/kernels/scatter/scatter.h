/* What scatter.c and sorted.c share. */
#ifndef OCL_SCATTER_H
#define OCL_SCATTER_H

#include "kernels/core/indexed.h"
#include "kernels/core/radix.h"

/* The index space in two: dimensions along which the target runs, and those that are gone through. */
typedef struct ocl_scatter_spaces {
  ocl_geometry free, scan;
  bool rows,
      contiguous; /* indices are the same along the innermost free dimension; along it elements lie side by side */
  int64_t scans;
} ocl_scatter_spaces;

void ocl_scatter_split(const ocl_indexed *call, ocl_scatter_spaces *spaces);

/* What a call computes with. */
typedef struct ocl_scatter_types {
  const ocl_dtype *target, *source; /* of the elements; those that are moved alone are bits */
} ocl_scatter_types;

/* COMBINE(a, b), SOURCE and the index tensors, for the head. `sets`: whatever the call's mode is. */
void ocl_scatter_head(ocl_text *head, const ocl_scatter *call, const ocl_scatter_types *types, bool sets);

/* By sorted places: see sorted.cl. */
typedef struct ocl_sorted {
  ocl_kernel keys, radix[OCL_RADIX_KERNELS], combine, join;
  ocl_radix_plan plan;
  int64_t parts; /* of lines in blocks, else 0 */
} ocl_sorted;

enum { OCL_SORTED_KERNELS = 3 + OCL_RADIX_KERNELS };

/* Whether this serves better than that each element of the target looks through its `scans` indices. */
enum { OCL_SORTED_FEW = 64 }; /* so few indices are looked through sooner than sorted, in kernels of their own */
bool ocl_sorted_serves(const graft_device *device, const ocl_scatter *call, int64_t scans);
graft_status ocl_sorted_prepare(ocl_sorted *sorted, graft_device *device, const ocl_scatter *call,
                                const ocl_scatter_types *types);
/* `number`: the source, or its factor; `none`: what is picked counts as before the first element comes, where the call
 * replaces. */
graft_status ocl_sorted_run(const graft_exec *exec, ocl_sorted *sorted, const ocl_scatter *call, ocl_argument number,
                            ocl_argument none);

/* Where a line of places fits in a tile, one kernel (`combine`) sorts and combines, and where it is longer and goes to
 * few elements, one more (`join`) brings its blocks together: see lines.cl. */
bool ocl_sorted_lines_serve(const graft_device *device, const ocl_scatter *call, const ocl_scatter_spaces *spaces);
graft_status ocl_sorted_lines_prepare(ocl_sorted *sorted, graft_device *device, const ocl_scatter *call,
                                      const ocl_scatter_types *types, const ocl_scatter_spaces *spaces);
graft_status ocl_sorted_lines_run(const graft_exec *exec, ocl_sorted *sorted, const ocl_scatter *call,
                                  ocl_argument number, ocl_argument none);

#endif
