/* What the ways of a matrix product share: matmul.c plans those of portable OpenCL, f32.c chooses among those of f32 on
 * GPUs, nvidia.c has that of tensor cores. */
#ifndef OCL_MATMUL_H
#define OCL_MATMUL_H

#include "kernels/core/registers.h"

/* The last two dimensions of a tensor, perhaps turned, and the one before them. */
typedef struct ocl_matrix {
  int64_t batches, rows, columns, batch_stride, row_stride, column_stride;
} ocl_matrix;

/* How a product is cut. */
typedef struct ocl_tile {
  int64_t vec, m, v, n; /* lanes of a vector, rows, vectors in a row of a CPU's tile, columns */
} ocl_tile;

/* Whether tensor cores serve out = a b, all of one dtype whose first elements lie at these byte offsets; then *tile is
 * how. */
bool ocl_tensor_tile(graft_device *device, const ocl_dtype *dtype, const ocl_matrix *a, uint64_t a_offset,
                     const ocl_matrix *b, uint64_t b_offset, const ocl_matrix *out, ocl_tile *tile);
/* Adds to the head what nvidia.cl asks for beside TILE_M and TILE_N. */
void ocl_tensor_head(ocl_text *head, const ocl_dtype *dtype, const ocl_matrix *a, const ocl_matrix *b,
                     const ocl_tile *tile);

/* How a GPU makes a product of f32. */
typedef struct ocl_f32_way {
  ocl_tile tile;
  bool rows; /* by rows.cl, else by registers.cl */
  ocl_registers registers;
  int64_t lanes, splits; /* work-items of a group; parts of K side by side */
} ocl_f32_way;

/* The way in tiles. */
ocl_f32_way ocl_f32_tiles(const graft_device *device, const ocl_matrix *out, int64_t k);
/* Whether there are so few rows that b's elements are hardly used twice, and b lies so that they come fast; then *way
 * is how. */
bool ocl_f32_rows(const graft_device *device, const ocl_matrix *b, const ocl_matrix *out, ocl_f32_way *way);
/* Adds to the head what the way's file asks for. The first elements lie at these byte offsets.
 */
void ocl_f32_head(ocl_text *head, const ocl_f32_way *way, const ocl_matrix *a, uint64_t a_offset, const ocl_matrix *b,
                  uint64_t b_offset);

#endif
