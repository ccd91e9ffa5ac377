/* Radix sort of lines of items (radix.cl), for devices with work-groups. */
#ifndef OCL_RADIX_H
#define OCL_RADIX_H

#include "runtime/ocl.h"

typedef struct ocl_radix_plan {
  int64_t lines, size;
  int64_t inner, length, parts, skipped, kept; /* for SOURCE and SINK */
  int64_t stretch, blocks;                     /* as radix.cl has them */
  int bits, passes;                            /* those of a key that differ, from the last on */
  bool narrow, one_tile;
  bool warps; /* of NVIDIA's */
  int each;
  size_t local;
  uint64_t items_bytes, counts_bytes; /* what an array of items and the counts take */
} ocl_radix_plan;

/* How many items, narrow ones or others, a work-group sorts at most: as many as its local memory has room for. */
int64_t ocl_radix_tile(const graft_device *device, bool narrow);
/* For `lines` lines of `size` items whose keys differ in the last `bits` bits. */
ocl_radix_plan ocl_radix_plan_of(const graft_device *device, int64_t lines, int64_t size, int bits, bool narrow);
/* The plan with so many bits instead: its kernels and its memory stay as they are. */
void ocl_radix_plan_bits(ocl_radix_plan *plan, int bits);
/* So many bits has a number. */
int ocl_radix_bits(uint64_t largest);

/* What radix.cl asks of the head beside LOCAL, which is the plan's. */
void ocl_radix_head(ocl_text *head, const ocl_radix_plan *plan);

/* The kernels of a pass; of lines of one tile there is only the last one, radix_tile. */
enum { OCL_RADIX_COUNT, OCL_RADIX_SCAN, OCL_RADIX_MOVE, OCL_RADIX_KERNELS };
graft_status ocl_radix_init(ocl_kernel kernels[OCL_RADIX_KERNELS], graft_device *device, const ocl_text *head,
                            const char *files, const ocl_radix_plan *plan);

/* A pass over what `from` has; it takes `sink`, the arguments of SINK_PARAMETERS. Where there is one tile it is all. */
graft_status ocl_radix_pass(const graft_exec *exec, ocl_kernel kernels[OCL_RADIX_KERNELS], const ocl_radix_plan *plan,
                            int pass, ocl_place from, ocl_place counts, cl_uint sinks, const ocl_argument *sink);

/* All passes, from `*items` to `*other` and back, which are the other way round behind an odd number of them. */
graft_status ocl_radix_sort(const graft_exec *exec, ocl_kernel kernels[OCL_RADIX_KERNELS], const ocl_radix_plan *plan,
                            ocl_place *items, ocl_place *other, ocl_place counts);

#endif
