/* The factory ops: one row an op. */
#include "runtime/ocl.h"

#define ALL        (OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX)
#define NUMBERS    (OCL_FLOATS | OCL_INTS)
#define ANY_LAYOUT (GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED)
#define FILLS      (ANY_LAYOUT | GRAFT_CAP_IN_PLACE | GRAFT_CAP_MIXED_DTYPE | GRAFT_CAP_HOST_VALUE)

static const ocl_op ops[] = {
    {OCL_OP(fill_Scalar), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = FILLS},
    {OCL_OP(full), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = FILLS},
    {OCL_OP(full_like), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = FILLS},
    {OCL_OP(zero), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = ANY_LAYOUT | GRAFT_CAP_IN_PLACE},
    {OCL_OP(scalar_tensor), .outputs = ALL, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(arange_start_step), .outputs = NUMBERS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(linspace), .outputs = NUMBERS | OCL_COMPLEX, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(logspace), .outputs = NUMBERS | OCL_COMPLEX, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(eye_m), .outputs = ALL, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(tril_indices), .outputs = NUMBERS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(triu_indices), .outputs = NUMBERS, .flags = GRAFT_CAP_UNALIGNED},
};
OCL_FAMILY(factory, ops)
