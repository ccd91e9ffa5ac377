/* Ops along one dimension of outer x size x inner, and how they are laid over the device (lines.cl). */
#ifndef OCL_LINES_H
#define OCL_LINES_H

#include "runtime/ocl.h"

typedef struct ocl_lines {
  int64_t outer, size, inner;
  bool rows, small; /* small: on a CPU, where it shares a program with lines of any length */
  unsigned vec;
  size_t local;
  int64_t together; /* work-items that share a line that is no row; 0: none do */
} ocl_lines;

ocl_lines ocl_lines_of(const graft_device *device, const graft_dl_tensor *tensor, int64_t dim);
void ocl_lines_plan(const graft_device *device, ocl_lines *lines);         /* once outer, size and inner are known */
void ocl_lines_plan_columns(const graft_device *device, ocl_lines *lines); /* even where inner is 1 */
/* For kernels that say so: where columns are too few for a GPU, work-items share them. */
void ocl_lines_share(const graft_device *device, ocl_lines *lines);
/* Where rows are too few to keep a GPU busy, they get larger work-groups, of `most` work-items at most. */
void ocl_lines_widen(const graft_device *device, ocl_lines *lines, size_t most);
/* Elements of a part of one long line, whose sum is made in parts, a work-group each, and then of these (parts.cl). */
int64_t ocl_lines_part(const graft_device *device, int64_t elements);
void ocl_lines_head(ocl_text *head, const ocl_lines *lines, const ocl_dtype *compute);

/* The `lines` that kernels take, as lines.cl has it. */
typedef struct ocl_lines_space {
  int64_t size, inner, units_per_row, units, per_item;
} ocl_lines_space;

/* Sets the kernel's work sizes. */
ocl_lines_space ocl_lines_lay(ocl_kernel *kernel, const ocl_lines *lines);
/* The same, and sets the kernel's last parameter, which is the lines. */
graft_status ocl_lines_set(ocl_kernel *kernel, const ocl_lines *lines);

#endif
