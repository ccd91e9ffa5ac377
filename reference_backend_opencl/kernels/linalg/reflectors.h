/* The numbers that orthogonal.cl takes, in its order, and behind them those of tridiagonal.cl, and those of singular.cl
 * and least_squares.cl. */
#ifndef OCL_REFLECTORS_H
#define OCL_REFLECTORS_H

#include "kernels/linalg/linalg.h"

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
  SINGULAR_NUMBERS,
  RCOND = SINGULAR_NUMBERS,
  VALUES_NUMBERS
};

/* What the kernel `reflect` takes to make the product of so many reflectors, columns of a matrix of rows x columns:
 * `rights` columns of it, row by row, in so many parts. Sets no other numbers (orthogonal.c). */
void ocl_reflectors_product(int64_t *numbers, int64_t rows, int64_t columns, int64_t count, int64_t rights,
                            int64_t parts);

/* Least squares of matrices of full rank, and the residuals of any: none where `sides` is 0. */
graft_status ocl_lstsq_by_reflectors(const graft_exec *exec, const graft_args_linalg_lstsq *args);
graft_status ocl_lstsq_residuals(const graft_exec *exec, const graft_args_linalg_lstsq *args, int64_t sides,
                                 const graft_tensor_desc **residuals);

#endif
