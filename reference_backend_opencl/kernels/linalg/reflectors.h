/* The numbers that orthogonal.cl takes, in its order, and behind them those of tridiagonal.cl and of singular.cl. */
#ifndef OCL_REFLECTORS_H
#define OCL_REFLECTORS_H

#include <stdint.h>

enum {
  ROWS,
  COLUMNS,
  COUNT,
  HEIGHT,
  RIGHTS,
  C_STEP,
  C_NEXT,
  IDENTITY,
  FORWARD,
  TURNED,
  PARTS,
  WIDTH,
  REFLECTOR_NUMBERS,
  UPPER = REFLECTOR_NUMBERS,
  VECTORS,
  TRIDIAGONAL_NUMBERS,
  U_COLUMNS = TRIDIAGONAL_NUMBERS,
  VH_ROWS,
  SINGULAR_NUMBERS
};

/* What the kernel `reflect` takes to make the product of so many reflectors, columns of a matrix of rows x columns:
 * `rights` columns of it, row by row, in so many parts. Sets no other numbers (orthogonal.c). */
void ocl_reflectors_product(int64_t *numbers, int64_t rows, int64_t columns, int64_t count, int64_t rights,
                            int64_t parts);

#endif
