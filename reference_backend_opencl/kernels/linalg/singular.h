/* Singular values of a stack of matrices, for the ops that are made of them. */
#ifndef OCL_SINGULAR_H
#define OCL_SINGULAR_H

#include "kernels/linalg/linalg.h"
#include "kernels/linalg/reflectors.h"

/* What is decomposed, and where it goes: how many columns of U and rows of Vh are wanted, none where both are 0. */
typedef struct ocl_singular {
  const graft_tensor_desc *a;
  ocl_place u, s, vh;
  int64_t u_columns, vh_rows;
  int64_t numbers[VALUES_NUMBERS], of_left[VALUES_NUMBERS], of_right[VALUES_NUMBERS]; /* of its stages */
} ocl_singular;

enum { OCL_SINGULAR_PLACES = 5 };

/* Elements of workspace. */
int64_t ocl_singular_work(const graft_exec *exec, const ocl_singular *of);
/* Adds the stages, four at most, to a call with that many places; `of` is there until it has run. */
void ocl_singular_add(const graft_exec *exec, ocl_singular *of, ocl_place work, ocl_direct *call);

#endif
