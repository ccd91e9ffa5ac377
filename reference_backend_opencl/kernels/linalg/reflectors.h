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
  MATRICES, /* systems may share them */
  STACK_DIMS,
  STACK, /* of each dim its size, and what a step along it is in the matrices and in the right sides */
  STACK_PARTS = 3,
  VALUES_NUMBERS = STACK + STACK_PARTS * (OCL_DIMS_MAX - 2)
};
_Static_assert((int)VALUES_NUMBERS <= (int)OCL_DIRECT_NUMBERS, "a kernel takes them");

/* What the kernel `reflect` takes to make the product of so many reflectors, columns of a matrix of rows x columns:
 * `rights` columns of it, row by row, in so many parts. Sets no other numbers (orthogonal.c). */
void ocl_reflectors_product(int64_t *numbers, int64_t rows, int64_t columns, int64_t count, int64_t rights,
                            int64_t parts);

/* Least squares: how many systems there are where matrices and right sides are broadcast to each other, and STACK_DIMS
 * and STACK, that say which of both a system has; those of matrices of full rank; and the residuals of any: none where
 * `sides` is 0. */
int64_t ocl_lstsq_systems(const graft_args_linalg_lstsq *args, int64_t *numbers);
graft_status ocl_lstsq_by_reflectors(const graft_exec *exec, const graft_args_linalg_lstsq *args);
graft_status ocl_lstsq_residuals(const graft_exec *exec, const graft_args_linalg_lstsq *args, int64_t sides,
                                 const graft_tensor_desc **residuals);

#endif
