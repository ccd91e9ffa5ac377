/* Rows so short that the work-items of a GPU hold them in registers, each element read once: see held.cl. */
#ifndef OCL_HELD_H
#define OCL_HELD_H

#include "runtime/ocl.h"

/* As held.cl has it. */
typedef struct ocl_held_space {
  int64_t rows, size, team;
} ocl_held_space;

typedef struct ocl_held {
  ocl_held_space space;
  unsigned vec;
  int vectors; /* of a row, that a work-item holds */
  size_t local;
} ocl_held;

/* How `arrays` such rows are held at a time, computed in this dtype. False: on a CPU, or too long. */
bool ocl_held_plan(const graft_device *device, int64_t rows, int64_t size, const ocl_dtype *compute, int arrays,
                   ocl_held *held);
void ocl_held_head(ocl_text *head, const ocl_held *held, const ocl_dtype *compute);
/* Sets the kernel's work sizes, and its last parameter, which is the space. */
graft_status ocl_held_set(ocl_kernel *kernel, const ocl_held *held);

#endif
