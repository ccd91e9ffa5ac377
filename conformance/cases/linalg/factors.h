/* Factorizations by what they are: products that give the matrix back, orthogonal columns, triangles, values in order.
 * Signs and phases, which algorithms choose, are free. Each property function is for rows' `property` (row.h) and names
 * the source of its limit. */
#ifndef GRAFT_CF_FACTORS_H
#define GRAFT_CF_FACTORS_H

#include "conformance/judge/compare.h"
#include "conformance/judge/tolerance.h"

/* LU and pivots, of ops that have outputs of these names: rows exchanged as LAPACK says it, no multiplier above 1, and
 * the product of the factors is the matrix. */
void cf_lu_property(const cf_check *check, const cf_array *results, cf_verdict *v);

/* The same of a determinant's factors, which may be those of the transposed matrix. */
void cf_det_property(const cf_check *check, const cf_array *results, cf_verdict *v);

/* Orthogonal columns, a triangle, and the product (linalg_qr); the same by the reflectors (geqrf). */
void cf_qr_property(const cf_check *check, const cf_array *results, cf_verdict *v);
void cf_geqrf_property(const cf_check *check, const cf_array *results, cf_verdict *v);
/* Values in order, near the oracle's, with orthogonal vectors that belong to them. */
void cf_eigh_property(const cf_check *check, const cf_array *results, cf_verdict *v);
void cf_svd_property(const cf_check *check, const cf_array *results, cf_verdict *v);
/* L, D and pivots as LAPACK has them, whose product is the matrix. */
void cf_ldl_property(const cf_check *check, const cf_array *results, cf_verdict *v);
/* Vectors of length 1 that belong to their values, and values whose sum is the trace, whatever their order. */
void cf_eig_property(const cf_check *check, const cf_array *results, cf_verdict *v);
/* Where singular values are cut off, so that others near by would be cut elsewhere: as many and as large ones as the
 * oracle's, and the x that is the oracle's within what they let it move. */
void cf_lstsq_property(const cf_check *check, const cf_array *results, cf_verdict *v);

#endif
