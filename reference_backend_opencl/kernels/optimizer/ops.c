/* The optimizer ops: one row an op. */
#include "kernels/optimizer/lists.h"

#define NUMBERS (OCL_FLOATS | OCL_INTS)
#define LISTS   (GRAFT_CAP_UNALIGNED | GRAFT_CAP_IN_PLACE | GRAFT_CAP_EMPTY | GRAFT_CAP_MIXED_DTYPE)
/* Numbers go into the table of each launch. */
#define ELEMENTS (LISTS | GRAFT_CAP_MEMO_IGNORES_SCALARS)

#define FOREACH(op, set, ...)                                                                    \
  {                                                                                              \
    OCL_ENGINE(op, ocl_foreach, NULL, (&(const ocl_foreach_recipe){.expression = __VA_ARGS__})), \
        .inputs = set, .outputs = set, .flags = ELEMENTS | GRAFT_CAP_EXPANDED_ITEMS              \
  }
#define FUSED(op, engine, reads, recipe) \
  { OCL_ENGINE(op, engine, reads, recipe), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = ELEMENTS }

static const bool decoupled = true, coupled = false;

static const ocl_op ops[] = {
    /* The operands are a, b, c in the order of the schema, the number x. */
    FOREACH(foreach_abs, NUMBERS, "ABS(a)"),
    FOREACH(foreach_add_List, NUMBERS, "ADD(a, MUL(x, b))"),
    FOREACH(foreach_add_Scalar, NUMBERS, "ADD(a, x)"),
    FOREACH(foreach_add_ScalarList, NUMBERS, "ADD(a, x)"),
    FOREACH(foreach_sub_List, NUMBERS, "SUB(a, MUL(x, b))"),
    FOREACH(foreach_sub_Scalar, NUMBERS, "SUB(a, x)"),
    FOREACH(foreach_sub_ScalarList, NUMBERS, "SUB(a, x)"),
    FOREACH(foreach_mul_List, NUMBERS, "MUL(a, b)"),
    FOREACH(foreach_mul_Scalar, NUMBERS, "MUL(a, x)"),
    FOREACH(foreach_mul_ScalarList, NUMBERS, "MUL(a, x)"),
    FOREACH(foreach_mul_Tensor, NUMBERS, "MUL(a, b)"),
    FOREACH(foreach_div_List, OCL_FLOATS, "a / b"),
    FOREACH(foreach_div_Scalar, OCL_FLOATS, "a / x"),
    FOREACH(foreach_div_ScalarList, OCL_FLOATS, "a / x"),
    FOREACH(foreach_div_Tensor, OCL_FLOATS, "a / b"),
    FOREACH(foreach_addcdiv_Scalar, OCL_FLOATS, "a + x * (b / c)"),
    FOREACH(foreach_addcdiv_ScalarList, OCL_FLOATS, "a + x * (b / c)"),
    FOREACH(foreach_addcmul_Scalar, NUMBERS, "ADD(a, MUL(x, MUL(b, c)))"),
    FOREACH(foreach_lerp_List, OCL_FLOATS, "LERP(a, b, c)"),
    FOREACH(foreach_lerp_Scalar, OCL_FLOATS, "LERP(a, b, x)"),
    FOREACH(foreach_maximum_List, NUMBERS, "MAXIMUM(a, b)"),
    FOREACH(foreach_clamp_min_List, NUMBERS, "MAXIMUM(a, b)"),
    FOREACH(foreach_clamp_min_Scalar, NUMBERS, "MAXIMUM(a, x)"),
    FOREACH(foreach_clamp_min_ScalarList, NUMBERS, "MAXIMUM(a, x)"),
    FOREACH(foreach_clamp_max_List, NUMBERS, "MINIMUM(a, b)"),
    FOREACH(foreach_clamp_max_Scalar, NUMBERS, "MINIMUM(a, x)"),
    FOREACH(foreach_clamp_max_ScalarList, NUMBERS, "MINIMUM(a, x)"),
    FOREACH(foreach_neg, NUMBERS, "NEG(a)"),
    FOREACH(foreach_reciprocal, OCL_FLOATS, "(VT)1 / a"),
    FOREACH(foreach_rsqrt, OCL_FLOATS, "(VT)1 / sqrt(a)"),
    FOREACH(foreach_sign, NUMBERS, "SIGN(a)"),
    FOREACH(foreach_sqrt, OCL_FLOATS, "sqrt(a)"),
    FOREACH(foreach_pow_ScalarAndTensor, OCL_FLOATS, "pow(x, a)"),
    FOREACH(foreach_copy, NUMBERS, "a", .casts = true),
    FOREACH(foreach_zero, NUMBERS, "(VT)0"),

    FUSED(fused_adam, ocl_adam, ocl_adam_reads, &coupled),
    FUSED(fused_adam_tensor_lr, ocl_adam, ocl_adam_reads, &coupled),
    FUSED(fused_adamw, ocl_adam, ocl_adam_reads, &decoupled),
    FUSED(fused_adamw_tensor_lr, ocl_adam, ocl_adam_reads, &decoupled),
    FUSED(fused_sgd, ocl_sgd, ocl_sgd_reads, NULL),
    FUSED(fused_sgd_tensor_lr, ocl_sgd, ocl_sgd_reads, NULL),
    FUSED(fused_adagrad, ocl_adagrad, ocl_adagrad_reads, NULL),

    {OCL_OP(amp_foreach_non_finite_check_and_unscale), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = LISTS},
    {OCL_OP(foreach_norm_Scalar), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = LISTS},
    {OCL_OP(amp_update_scale), .inputs = OCL_BIT(F32) | OCL_BIT(I32), .outputs = OCL_BIT(F32) | OCL_BIT(I32),
     .flags = LISTS},
};
OCL_FAMILY(optimizer, ops)
