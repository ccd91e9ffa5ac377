/* The reductions: one row an op, and the formulas that they are made of. */
#include <math.h>

#include "kernels/reduction/reduction.h"

static const ocl_reduction any = {
    .init = "0", .map = "TRUTH(v)", .combine = "EITHER(a, b)", .finish = "v", .in = OCL_AS_INPUT, .asks = true};
static const ocl_reduction all = {
    .init = "ONE", .map = "TRUTH(v)", .combine = "BOTH(a, b)", .finish = "v", .in = OCL_AS_INPUT, .asks = true};
static const ocl_reduction sum = {
    .init = "0", .map = "v", .combine = "ADD(a, b)", .finish = "v", .in = OCL_AS_SUM, .of_truths = &any};
static const ocl_reduction mean = {
    .init = "0", .map = "v", .combine = "ADD(a, b)", .finish = "QUOTIENT(v, x)", .in = OCL_AS_SUM};
static const ocl_reduction product = {
    .init = "ONE", .map = "v", .combine = "MUL(a, b)", .finish = "v", .in = OCL_AS_SUM, .of_truths = &all};
static const ocl_reduction parity = {
    .init = "0", .map = "v", .combine = "((a) ^ (b))", .finish = "v", .in = OCL_AS_SUM};
static const ocl_reduction most = {
    .init = "LEAST", .map = "v", .combine = "MAXIMUM(a, b)", .finish = "v", .in = OCL_AS_INPUT};
static const ocl_reduction least = {
    .init = "MOST", .map = "v", .combine = "MINIMUM(a, b)", .finish = "v", .in = OCL_AS_INPUT};
static const ocl_reduction count = {
    .init = "0", .map = "TRUTH(v)", .combine = "ADD(a, b)", .finish = "v", .in = OCL_COUNTS, .asks = true};
static const ocl_reduction sum_of_numbers = {
    .init = "0", .map = "NUMBER(v)", .combine = "ADD(a, b)", .finish = "v", .in = OCL_AS_SUM};
static const ocl_reduction average = {
    .init = "0", .map = "v", .combine = "ADD(a, b)", .finish = "QUOTIENT(v, x)", .in = OCL_WIDEST};
/* A variance: the average in the accumulator, then squares of what is left; of complex numbers squares of both parts.
 * The average is found as a distance from the first element, so that elements that are all the same have exactly none:
 * their sum over their number would be rounded, and the gradient of a root divides by what that leaves. */
static const ocl_reduction leader = {
    .init = "0", .map = "v", .combine = "ADD(a, b)", .finish = "v", .in = OCL_WIDEST, .of_one = true};
static const ocl_reduction centre = {.init = "0",
                                     .map = "v - s",
                                     .combine = "ADD(a, b)",
                                     .finish = "s + QUOTIENT(v, x)",
                                     .in = OCL_WIDEST,
                                     .first = &leader,
                                     .alone = &average};
static const ocl_reduction squares = {.init = "0",
                                      .map = "(v - s) * (v - s)",
                                      .combine = "ADD(a, b)",
                                      .finish = "QUOTIENT(WHOLE(v), x)",
                                      .in = OCL_WIDEST,
                                      .first = &centre};
static const ocl_reduction deviation = {.init = "0",
                                        .map = "(v - s) * (v - s)",
                                        .combine = "ADD(a, b)",
                                        .finish = "sqrt(QUOTIENT(WHOLE(v), x))",
                                        .in = OCL_WIDEST,
                                        .first = &centre};
/* A sum of exponentials: shifted by the largest, so that it does not overflow. */
static const ocl_reduction largest = {
    .init = "LEAST", .map = "v", .combine = "MAXIMUM(a, b)", .finish = "FINITE(v)", .in = OCL_AS_SUM};
static const ocl_reduction log_sum = {
    .init = "0", .map = "EXP(v - s)", .combine = "a + b", .finish = "log(v) + s", .in = OCL_AS_SUM, .first = &largest};
static const ocl_reduction norm_0 = {
    .init = "0", .map = "TRUTH(v)", .combine = "a + b", .finish = "v", .in = OCL_WIDEST};
static const ocl_reduction norm_1 = {
    .init = "0", .map = "MODULUS(v)", .combine = "a + b", .finish = "v", .in = OCL_WIDEST};
static const ocl_reduction norm_2 = {
    .init = "0", .map = "v * v", .combine = "a + b", .finish = "sqrt(WHOLE(v))", .in = OCL_WIDEST};
static const ocl_reduction norm_p = {.init = "0",
                                     .map = "POWER(MODULUS(v), Y)",
                                     .combine = "a + b",
                                     .finish = "POWER(v, 1 / Y)",
                                     .in = OCL_WIDEST,
                                     .takes_y = true};
static const ocl_reduction norm_max = {
    .init = "0", .map = "MODULUS(v)", .combine = "MAXIMUM(a, b)", .finish = "v", .in = OCL_AS_INPUT};
static const ocl_reduction norm_min = {
    .init = "MOST", .map = "MODULUS(v)", .combine = "MINIMUM(a, b)", .finish = "v", .in = OCL_AS_INPUT};

const ocl_reduction *ocl_reduction_of_norm(double order) {
  if (isnan(order)) return NULL;
  if (isinf(order)) return order > 0 ? &norm_max : &norm_min;
  return order == 0 ? &norm_0 : order == 1 ? &norm_1 : order == 2 ? &norm_2 : &norm_p;
}

#define ANYTHING (OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX)
#define REALS    (OCL_FLOATS | OCL_INTS | OCL_BOOLS)
#define FLOATS   (OCL_FLOATS | OCL_COMPLEX)
#define TRUTHS   (OCL_BOOLS | OCL_BIT(U8))

#define LAYOUTS (GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY)
/* Takes a dtype argument: inputs come as they are. */
#define CONVERTS (LAYOUTS | GRAFT_CAP_MIXED_DTYPE)

#define REDUCTION(op, in, to, caps, ...)                                                           \
  {                                                                                                \
    OCL_ENGINE(op, ocl_reduce, ocl_reduction_reads, (&(const ocl_reduction_recipe){__VA_ARGS__})), \
        .inputs = in, .outputs = to, .flags = caps                                                 \
  }
#define EXTREMUM(op, is_largest, to)                                                                                  \
  {                                                                                                                   \
    OCL_ENGINE(op, ocl_find_extremum, ocl_extremum_reads, &(const bool){is_largest}), .inputs = REALS, .outputs = to, \
                                                                                      .flags = GRAFT_CAP_UNALIGNED    \
  }

static const ocl_op ops[] = {
    REDUCTION(sum_dim_IntList, ANYTHING, ANYTHING, CONVERTS, .out = &sum),
    REDUCTION(nansum, REALS, OCL_FLOATS | OCL_INTS, CONVERTS, .out = &sum_of_numbers),
    REDUCTION(mean_dim, ANYTHING, OCL_FLOATS | OCL_COMPLEX, CONVERTS, .out = &mean),
    REDUCTION(mean, ANYTHING, OCL_FLOATS | OCL_COMPLEX, CONVERTS, .out = &mean),
    REDUCTION(prod, ANYTHING, ANYTHING, CONVERTS, .out = &product),
    REDUCTION(prod_dim_int, ANYTHING, ANYTHING, CONVERTS, .out = &product),
    REDUCTION(prims_prod, ANYTHING, ANYTHING, CONVERTS, .out = &product, .empty_is_none = true),
    REDUCTION(prims_xor_sum, OCL_INTS, OCL_INTS, LAYOUTS, .out = &parity, .empty_is_none = true),
    REDUCTION(amax, REALS, REALS, LAYOUTS, .out = &most),
    REDUCTION(amin, REALS, REALS, LAYOUTS, .out = &least),
    REDUCTION(max, REALS, REALS, LAYOUTS, .out = &most),
    REDUCTION(min, REALS, REALS, LAYOUTS, .out = &least),
    REDUCTION(aminmax, REALS, REALS, LAYOUTS, .out = &least, .second = &most),
    REDUCTION(any, ANYTHING, TRUTHS, LAYOUTS, .out = &any),
    REDUCTION(any_dim, ANYTHING, TRUTHS, LAYOUTS, .out = &any),
    REDUCTION(any_dims, ANYTHING, TRUTHS, LAYOUTS, .out = &any, .empty_is_none = true),
    REDUCTION(all, ANYTHING, TRUTHS, LAYOUTS, .out = &all),
    REDUCTION(all_dim, ANYTHING, TRUTHS, LAYOUTS, .out = &all),
    REDUCTION(count_nonzero, ANYTHING, OCL_BIT(I64), LAYOUTS, .out = &count),
    REDUCTION(logsumexp, OCL_FLOATS, OCL_FLOATS, LAYOUTS, .out = &log_sum),
    REDUCTION(var_correction, FLOATS, OCL_FLOATS, LAYOUTS, .out = &squares),
    REDUCTION(std_correction, FLOATS, OCL_FLOATS, LAYOUTS, .out = &deviation),
    REDUCTION(var_mean_correction, FLOATS, FLOATS, LAYOUTS, .out = &squares, .second = &average),
    REDUCTION(std_mean_correction, FLOATS, FLOATS, LAYOUTS, .out = &deviation, .second = &average),
    REDUCTION(linalg_vector_norm, FLOATS, OCL_FLOATS, CONVERTS, .norm = true),
    REDUCTION(norm_ScalarOpt_dim, FLOATS, OCL_FLOATS, LAYOUTS, .norm = true),
    EXTREMUM(argmax, true, OCL_BIT(I64)),
    EXTREMUM(argmin, false, OCL_BIT(I64)),
    EXTREMUM(max_dim, true, REALS),
    EXTREMUM(min_dim, false, REALS),
    {OCL_OP(segment_reduce), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS,
     .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(histc), .inputs = OCL_FLOATS | OCL_INTS, .outputs = OCL_FLOATS | OCL_INTS,
     .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY | GRAFT_CAP_MEMO_IGNORES_SCALARS},
    {OCL_OP(bincount), .inputs = OCL_FLOATS | OCL_INTS, .outputs = OCL_BIT(I64) | OCL_BIT(F32) | OCL_BIT(F64),
     .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
};
OCL_FAMILY(reduction, ops)
