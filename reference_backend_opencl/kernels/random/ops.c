/* The random ops: one row an op. */
#include "kernels/random/random.h"

#define REALS    (OCL_FLOATS | OCL_INTS | OCL_BOOLS)
#define IN_PLACE (GRAFT_CAP_UNALIGNED | GRAFT_CAP_IN_PLACE)

static const ocl_op ops[] = {
    {OCL_OP(native_dropout), .fused = &ocl_dropout_recipe, .inputs = OCL_FLOATS, .outputs = OCL_FLOATS | OCL_BOOLS,
     .flags = IN_PLACE},
    {OCL_OP(native_dropout_backward), .fused = &ocl_dropout_backward_recipe, .inputs = OCL_FLOATS,
     .outputs = OCL_FLOATS, .flags = IN_PLACE},
    {OCL_OP(rrelu_with_noise), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = IN_PLACE},
    {OCL_OP(uniform), .inputs = OCL_FLOATS | OCL_COMPLEX, .outputs = OCL_FLOATS | OCL_COMPLEX, .flags = IN_PLACE},
    {OCL_OP(exponential), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = IN_PLACE},
    {OCL_OP(cauchy), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = IN_PLACE},
    {OCL_OP(geometric), .inputs = OCL_FLOATS | OCL_INTS, .outputs = OCL_FLOATS | OCL_INTS, .flags = IN_PLACE},
    {OCL_OP(log_normal), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = IN_PLACE},
    {OCL_OP(standard_gamma), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = IN_PLACE},
    {OCL_OP(standard_gamma_grad), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = IN_PLACE},
    {OCL_OP(prims_uniform), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS | OCL_COMPLEX, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(bernoulli_p), .inputs = REALS, .outputs = REALS, .flags = IN_PLACE},
    {OCL_OP(bernoulli_Tensor), .inputs = REALS, .outputs = REALS, .flags = IN_PLACE},
    {OCL_OP(random_from), .inputs = REALS, .outputs = REALS, .flags = IN_PLACE},
    {OCL_OP(randint_low), .inputs = OCL_FLOATS, .outputs = REALS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(multinomial), .inputs = OCL_FLOATS, .outputs = OCL_BIT(I64), .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(normal_float_float), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS | OCL_COMPLEX,
     .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(rand), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS | OCL_COMPLEX, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(randn), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS | OCL_COMPLEX, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(randperm), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS | OCL_INTS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(randperm_generator), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS | OCL_INTS, .flags = GRAFT_CAP_UNALIGNED},
};
OCL_FAMILY(random, ops)
