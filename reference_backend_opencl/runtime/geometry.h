/* Index spaces: which dimensions a kernel really has, and how they are cut into work. */
#ifndef OCL_GEOMETRY_H
#define OCL_GEOMETRY_H

#include "runtime/device.h"

#define OCL_DIMS_MAX     16 /* the rank that graft/tensor.h ends at */
#define OCL_OPERANDS_MAX 12
/* Elements of what is small: some ten microseconds of a core, where a program takes a quarter of a second to compile.
 */
#define OCL_SMALL 32768

/* How many parts of b cover a; and what these make together. */
static inline int64_t ocl_ceil_divide(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
static inline int64_t ocl_round_up(int64_t a, int64_t b) {
  return ocl_ceil_divide(a, b) * b;
}

static inline int64_t ocl_larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static inline int64_t ocl_smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* So many lanes, or fewer where a row has fewer elements: those of the next smaller vector. */
static inline unsigned ocl_lanes_within(unsigned lanes, int64_t row) {
  while (lanes > 1 && lanes > row) lanes = lanes > 4 ? lanes / 2 : 1;
  return lanes;
}

/* The product of the sizes. */
int64_t ocl_elements(const graft_tensor_desc *desc);
/* Whether its elements are one run of memory, in logical order. */
bool ocl_is_dense(const graft_dl_tensor *tensor);

/* The index space of a kernel: dimension 0 is the innermost. Strides count elements; operand 0 is the output. */
typedef struct ocl_geometry {
  int rank; /* at least 1 */
  int operands;
  int64_t size[OCL_DIMS_MAX];
  int64_t stride[OCL_OPERANDS_MAX][OCL_DIMS_MAX];
} ocl_geometry;

/* Adds a dimension outside the existing ones. Size 1 is left out. */
void ocl_geometry_push_outer(ocl_geometry *geometry, int64_t size, const int64_t *strides);
/* Orders dimensions by the stride of operand 0 (then 1, ...), for ops that do not care which element comes first. */
void ocl_geometry_sort(ocl_geometry *geometry);
/* Joins neighbours that are one run of memory in every operand. Leaves at least one dimension. */
void ocl_geometry_collapse(ocl_geometry *geometry);

/* Whether elements that follow each other along a dimension lie side by side. */
static inline int ocl_is_unit(int64_t stride) {
  return stride == 1;
}

/* The number of places. */
int64_t ocl_geometry_elements(const ocl_geometry *geometry);
/* Whether compiling a program for just this rank and these strides would take far longer than it could ever save: a
 * small index space takes a program that many share. */
bool ocl_geometry_is_small(const ocl_geometry *geometry);
/* Gives it outer dimensions of size 1 up to the next of few ranks, so that it can take a program that many share. */
void ocl_geometry_widen(ocl_geometry *geometry);

/* How an index space is cut: on a CPU into a few long pieces for each core, on a GPU into one vector a work-item. The
 * innermost dimension is cut into chunks; a work-item takes per_item chunks. Laid out as the kernels' structs end. */
typedef struct ocl_cut {
  int64_t chunk, chunks_per_row, chunks, per_item;
} ocl_cut;
/* `lanes`: of that vector. Returns how many work-items that takes. */
int64_t ocl_geometry_cut(const graft_device *device, const ocl_geometry *geometry, int64_t lanes, ocl_cut *cut);
/* Sizes, then the strides of each operand: as the kernels' structs begin. Returns how many numbers that is. */
int ocl_geometry_numbers(const ocl_geometry *geometry, int64_t *numbers);
#define OCL_GEOMETRY_NUMBERS ((OCL_OPERANDS_MAX + 1) * OCL_DIMS_MAX)

#endif
