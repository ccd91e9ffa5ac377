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

#endif
