/* The ops of this family, the cross product, and the parts of an LU factorization. */
#include "kernels/linalg/linalg.h"

graft_status ocl_op_linalg_cross(const graft_exec *exec, const graft_args_linalg_cross *args) {
  const graft_dl_tensor *out = &args->out->dl;
  int64_t inner = 1;
  if (args->self->dl.dtype != out->dtype || args->other->dl.dtype != out->dtype) return GRAFT_UNIMPLEMENTED;
  for (int32_t d = (int32_t)args->dim + 1; d < out->ndim; d++) inner *= out->shape[d];
  ocl_direct call = {
      .file = "core/direct linalg/cross", .dtype = out->dtype, .numbers = &inner, .count = 1, .places = 3};
  call.stages[0] =
      (ocl_stage){.entry = "cross_product",
                  .units = ocl_elements(args->out),
                  .places = {ocl_place_of(args->out), ocl_place_of(args->self), ocl_place_of(args->other)}};
  return ocl_direct_run(exec, &call);
}

/* Of what is not wanted, and of an empty one, there are no pieces. */
static int64_t pieces_of(const graft_tensor_desc *part, bool wanted) {
  return part && wanted ? ocl_elements(part) : 0;
}

graft_status ocl_op_lu_unpack(const graft_exec *exec, const graft_args_lu_unpack *args) {
  const graft_tensor_desc *lu = args->LU_data;
  const int64_t numbers[] = {ocl_stack_size(lu, 2), ocl_stack_size(lu, 1), GRAFT_OP_LU_UNPACK};
  int64_t columns = pieces_of(args->P, args->unpack_pivots) ? ocl_stack_count(lu, 2) * numbers[0] : 0;
  if (columns && args->LU_pivots->dl.dtype != GRAFT_I32) return GRAFT_UNIMPLEMENTED;
  ocl_direct call = {.file = "core/direct linalg/unpack",
                     .dtype = lu->dl.dtype,
                     .numbers = numbers,
                     .count = sizeof numbers / sizeof *numbers,
                     .reports = true,
                     .places = 2};
  call.stages[0] = (ocl_stage){
      .entry = "exchanges", .units = columns, .places = {ocl_place_of(args->P), ocl_place_of(args->LU_pivots)}};
  call.stages[1] = (ocl_stage){.entry = "lower",
                               .units = pieces_of(args->L, args->unpack_data),
                               .places = {ocl_place_of(args->L), ocl_place_of(lu)}};
  call.stages[2] = (ocl_stage){.entry = "upper",
                               .units = pieces_of(args->U, args->unpack_data),
                               .places = {ocl_place_of(args->U), ocl_place_of(lu)}};
  return ocl_direct_run(exec, &call);
}

#define STACKED (OCL_BIT(F32) | OCL_BIT(F64) | OCL_COMPLEX)
#define NUMBERS (OCL_FLOATS | OCL_INTS | OCL_COMPLEX)
#define STACK_OP(op) \
  { OCL_OP(op), .inputs = STACKED, .outputs = STACKED, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY }
#define DISTANCE_OP(op) \
  { OCL_OP(op), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY }

static const ocl_op ops[] = {
    {OCL_OP(linalg_cross), .inputs = NUMBERS, .outputs = NUMBERS, .flags = GRAFT_CAP_UNALIGNED},
    STACK_OP(linalg_cholesky_ex),
    STACK_OP(cholesky_inverse),
    STACK_OP(cholesky_solve),
    STACK_OP(linalg_solve_triangular),
    STACK_OP(linalg_lu_factor_ex),
    STACK_OP(linalg_lu_solve),
    STACK_OP(linalg_inv_ex),
    STACK_OP(linalg_solve_ex),
    STACK_OP(linalg_det),
    STACK_OP(linalg_slogdet),
    STACK_OP(linalg_ldl_factor_ex),
    STACK_OP(linalg_ldl_solve),
    {OCL_OP(lu_unpack), .inputs = NUMBERS, .outputs = NUMBERS, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    STACK_OP(geqrf),
    STACK_OP(linalg_householder_product),
    STACK_OP(ormqr),
    STACK_OP(linalg_qr),
    STACK_OP(linalg_lstsq),
    STACK_OP(linalg_eigh),
    STACK_OP(linalg_svd),
    STACK_OP(linalg_matrix_exp),
    DISTANCE_OP(cdist_forward),
    DISTANCE_OP(cdist_backward),
    DISTANCE_OP(pdist_forward),
    DISTANCE_OP(pdist_backward),
};
OCL_HEAVY_FAMILY(linalg, ops)
