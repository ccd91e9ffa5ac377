/* The indexing ops: one row an op. */
#include "runtime/ocl.h"

#define ALL     (OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX)
#define LAYOUTS (GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED)

static const ocl_op ops[] = {
    {OCL_OP(index_select), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = LAYOUTS},
    {OCL_OP(index_Tensor), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = LAYOUTS},
    {OCL_OP(gather), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = LAYOUTS},
    {OCL_OP(take), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(nonzero), .inputs = ALL, .outputs = OCL_BIT(I64), .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(nonzero_static), .inputs = ALL, .outputs = OCL_BIT(I64), .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(masked_select), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = GRAFT_CAP_UNALIGNED},
};
OCL_FAMILY(indexing, ops)
