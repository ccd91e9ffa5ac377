/* The shape ops: one row an op. */
#include "kernels/pointwise/pointwise.h"

#define COPIES     .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE
#define ANY_LAYOUT (GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED)

static const ocl_op ops[] = {
    {OCL_OP(to_copy), COPIES, .fused = &ocl_cast_recipe,
     .flags = ANY_LAYOUT | GRAFT_CAP_IN_PLACE | GRAFT_CAP_MIXED_DTYPE},
    {OCL_OP(clone), COPIES, .flags = ANY_LAYOUT | GRAFT_CAP_IN_PLACE | GRAFT_CAP_MIXED_DTYPE},
    {OCL_OP(copy), COPIES, .flags = ANY_LAYOUT | GRAFT_CAP_IN_PLACE | GRAFT_CAP_MIXED_DTYPE},
    {OCL_OP(cat), COPIES, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(constant_pad_nd), COPIES, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(repeat), COPIES, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(flip), COPIES, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(select_scatter), COPIES, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(slice_scatter), COPIES, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(tril), COPIES, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(triu), COPIES, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(roll), COPIES, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(unfold_backward), .inputs = OCL_FLOATS | OCL_INTS | OCL_COMPLEX,
     .outputs = OCL_FLOATS | OCL_INTS | OCL_COMPLEX, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
};
OCL_FAMILY(shape, ops)
