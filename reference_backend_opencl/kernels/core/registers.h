/* Tiles of products of f32 that GPUs keep in registers (registers.cl): which there are, and which one suits a product.
 */
#ifndef OCL_REGISTERS_H
#define OCL_REGISTERS_H

#include "runtime/ocl.h"

typedef struct ocl_registers {
  int64_t m, n, item_m, item_n; /* of the tile, and of a work-item's part */
  int64_t lanes, splits;        /* work-items of a group; parts of K side by side */
} ocl_registers;

bool ocl_registers_serve(const graft_device *device, const ocl_dtype *dtype);
/* The tile in which so many results, summed over k, are made fastest, with K in as many parts as may be. */
ocl_registers ocl_registers_for(const graft_device *device, int64_t rows, int64_t columns, int64_t batches, int64_t k,
                                int64_t splits_most);
/* Adds to a head what registers.cl asks for. */
void ocl_head_registers(ocl_text *head, const ocl_registers *r);

#endif
