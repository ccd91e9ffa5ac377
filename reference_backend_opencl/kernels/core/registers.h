/* Tiles of products of f32 that GPUs keep in registers (registers.cl): which there are, and which one suits a product.
 */
#ifndef OCL_REGISTERS_H
#define OCL_REGISTERS_H

#include "runtime/ocl.h"

typedef struct ocl_registers {
  int64_t m, n, item_m, item_n; /* of the tile, and of a work-item's part */
  int64_t lanes, splits;        /* work-items of a group; parts of K side by side */
  bool copies;                  /* strips come by nvidia_copies.cl, else by strips.cl */
  int64_t step, stages;         /* of K in a strip; strips in local memory at a time */
} ocl_registers;

typedef struct ocl_product_size {
  int64_t rows, columns, batches, k;
  int64_t splits_most; /* parts of K */
  bool along;          /* elements of a column follow each other, and are copied one by one */
} ocl_product_size;

bool ocl_registers_serve(const graft_device *device, const ocl_dtype *dtype);
/* The tile in which so many results, summed over k, are made fastest, with K in as many parts as may be; by copies, if
 * the family has its part of them and the device can. */
ocl_registers ocl_registers_for(const graft_device *device, const ocl_product_size *size, bool copies);
/* Adds to a head what registers.cl, and the file by which strips come, ask for. */
void ocl_head_registers(ocl_text *head, const ocl_registers *r);

#endif
