/* QR, and what reflectors make, by many work-groups (householder.c): of matrices that are large enough, on a GPU. */
#ifndef OCL_HOUSEHOLDER_H
#define OCL_HOUSEHOLDER_H

#include "kernels/linalg/linalg.h"

/* Whether so many reflectors, columns of such matrices, are served, and whether such matrices are factorized. */
bool ocl_householder_reflects(const graft_exec *exec, const graft_tensor_desc *vectors, int64_t count);
bool ocl_householder_factors(const graft_exec *exec, const graft_tensor_desc *a);

/* So many reflectors, columns of so many matrices. */
typedef struct ocl_reflectors_shape {
  int64_t matrices, rows, columns, count;
} ocl_reflectors_shape;

/* Reflectors and their factors, to places of such matrices. */
graft_status ocl_householder_geqrf(const graft_exec *exec, const graft_tensor_desc *from, ocl_place a, ocl_place tau);
/* Q and R; q NULL: R alone. */
graft_status ocl_householder_qr(const graft_exec *exec, const graft_tensor_desc *from, const graft_tensor_desc *q,
                                const graft_tensor_desc *r);
/* c's columns (or, not `left`, its rows) become those of `from`, or where that is NULL of the identity, reflected. */
graft_status ocl_householder_apply(const graft_exec *exec, const graft_tensor_desc *vectors,
                                   const graft_tensor_desc *tau, const graft_tensor_desc *c,
                                   const graft_tensor_desc *from, bool left, bool forward);
/* Their product, of as many columns as rows; `like` has the dtype. */
graft_status ocl_householder_product(const graft_exec *exec, const graft_tensor_desc *like, ocl_reflectors_shape shape,
                                     ocl_place vectors, ocl_place tau, ocl_place product);

#endif
