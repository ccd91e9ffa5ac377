/* The numbers that orthogonal.cl takes, in its order, and behind them those of tridiagonal.cl and of singular.cl. */
#ifndef OCL_REFLECTORS_H
#define OCL_REFLECTORS_H

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

#endif
