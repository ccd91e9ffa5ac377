/* The sorting ops: one row an op. */
#include "runtime/ocl.h"

#define NUMBERS (OCL_FLOATS | OCL_INTS)
#define REALS   (NUMBERS | OCL_BOOLS)
#define PLACES  (OCL_BIT(I64) | OCL_BIT(I32))

static const ocl_op ops[] = {
    {OCL_OP(sort), .inputs = REALS, .outputs = REALS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(sort_stable), .inputs = REALS, .outputs = REALS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(topk), .inputs = REALS, .outputs = REALS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(kthvalue), .inputs = REALS, .outputs = REALS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(median), .inputs = NUMBERS, .outputs = NUMBERS, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(nanmedian), .inputs = NUMBERS, .outputs = NUMBERS, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(mode), .inputs = REALS, .outputs = REALS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(searchsorted_Tensor), .inputs = NUMBERS, .outputs = PLACES, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(bucketize_Tensor), .inputs = NUMBERS, .outputs = PLACES, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(isin_Tensor_Tensor), .inputs = NUMBERS, .outputs = OCL_BOOLS,
     .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(unique2), .inputs = REALS, .outputs = REALS, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(unique_dim), .inputs = REALS, .outputs = REALS, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(unique_consecutive), .inputs = REALS, .outputs = REALS, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
};
OCL_FAMILY(sorting, ops)
