/* Ops that are one kernel, or a few in a row, over contiguous tensors: each work-item makes some of the `units` pieces
 * of what is written, one after the other. For families that need no engine of their own. */
#ifndef OCL_DIRECT_H
#define OCL_DIRECT_H

#include "runtime/ocl.h"

enum { OCL_DIRECT_STAGES = 7, OCL_DIRECT_PLACES = 14, OCL_DIRECT_NUMBERS = 62 };

/* Of what is absent the place has no buffer; the kernel is then given another one, and the head tells it not to look.
 */
typedef struct ocl_stage {
  const char *entry;
  int64_t units;   /* 0: the stage is left out */
  size_t together; /* work-items of a group that makes one unit; 0: each makes units of its own */
  ocl_place places[OCL_DIRECT_PLACES];
  const int64_t *numbers; /* as many as the call's, for this stage alone; NULL: the call's */
  const char *file;       /* likewise */
} ocl_stage;

typedef struct ocl_direct {
  const char *file;
  graft_dtype dtype;                            /* D, and what CT follows from */
  unsigned lanes;                               /* VEC; 0: 1 */
  void (*head)(ocl_text *head, const void *of); /* what the case at hand defines beside D; NULL: nothing */
  const void *of;
  const int64_t *numbers; /* of all stages: sizes and the like, so that they make no program of their own */
  int count;
  bool reports; /* kernels take `faults` before the numbers */
  int places;   /* of every stage */
  ocl_stage stages[OCL_DIRECT_STAGES];
} ocl_direct;

/* How many lanes serve kernels that take elements side by side: a GPU's work-items take one each. */
static inline unsigned ocl_direct_lanes(const graft_device *device) {
  return device->is_cpu ? (unsigned)device->vector_width : 1;
}

graft_status ocl_direct_run(const graft_exec *exec, const ocl_direct *call);

/* The same for a group of calls, which keeps its kernels itself: made of a call without places, and run with them. */
typedef struct ocl_direct_kernels ocl_direct_kernels;
graft_status ocl_direct_make(graft_device *device, const ocl_direct *call, ocl_direct_kernels **made);
graft_status ocl_direct_run_made(const graft_exec *exec, const ocl_direct *call, ocl_direct_kernels *made);
void ocl_direct_destroy(ocl_direct_kernels *made);

/* A number of the compute type among `numbers`, where kernels read it as NUMBER(i): one in the head would be a program
 * for each value. */
int64_t ocl_direct_number(graft_dtype dtype, double value);

#endif
