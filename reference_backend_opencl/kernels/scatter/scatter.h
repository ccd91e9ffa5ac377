/* What scatter.c and sorted.c share. */
#ifndef OCL_SCATTER_H
#define OCL_SCATTER_H

#include "kernels/core/indexed.h"
#include "kernels/core/radix.h"

/* What a call computes with. */
typedef struct ocl_scatter_types {
  const ocl_dtype *target, *source; /* of the elements; those that are moved alone are bits */
} ocl_scatter_types;

/* COMBINE(a, b), SOURCE and the index tensors, for the head. `sets`: whatever the call's mode is. */
void ocl_scatter_head(ocl_text *head, const ocl_scatter *call, const ocl_scatter_types *types, bool sets);

/* By sorted places: see sorted.cl. */
typedef struct ocl_sorted {
  ocl_kernel keys, radix[OCL_RADIX_KERNELS], combine;
  ocl_radix_plan plan;
} ocl_sorted;

enum { OCL_SORTED_KERNELS = 2 + OCL_RADIX_KERNELS };

/* Whether this serves better than that each element of the target looks through its `scans` indices. */
bool ocl_sorted_serves(const graft_device *device, const ocl_scatter *call, int64_t scans);
graft_status ocl_sorted_prepare(ocl_sorted *sorted, graft_device *device, const ocl_scatter *call,
                                const ocl_scatter_types *types);
/* `number`: the source, or its factor; `none`: what is picked counts as before the first element comes, where the call
 * replaces. */
graft_status ocl_sorted_run(const graft_exec *exec, ocl_sorted *sorted, const ocl_scatter *call, ocl_argument number,
                            ocl_argument none);

#endif
