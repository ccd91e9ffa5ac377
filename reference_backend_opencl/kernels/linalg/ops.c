/* The ops of this family, and the cross product. */
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

#define REALS   (OCL_BIT(F32) | OCL_BIT(F64))
#define NUMBERS (OCL_FLOATS | OCL_INTS | OCL_COMPLEX)
#define REAL_OP(op) \
  { OCL_OP(op), .inputs = REALS, .outputs = REALS, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY }

static const ocl_op ops[] = {
    {OCL_OP(linalg_cross), .inputs = NUMBERS, .outputs = NUMBERS, .flags = GRAFT_CAP_UNALIGNED},
    REAL_OP(linalg_cholesky_ex),
    REAL_OP(cholesky_inverse),
    REAL_OP(cholesky_solve),
    REAL_OP(linalg_solve_triangular),
    REAL_OP(linalg_lu_factor_ex),
    REAL_OP(linalg_lu_solve),
    REAL_OP(linalg_inv_ex),
    REAL_OP(linalg_solve_ex),
    REAL_OP(linalg_det),
    REAL_OP(linalg_slogdet),
    REAL_OP(linalg_ldl_factor_ex),
    REAL_OP(geqrf),
    REAL_OP(linalg_householder_product),
    REAL_OP(ormqr),
    REAL_OP(linalg_qr),
    REAL_OP(linalg_eigh),
    REAL_OP(linalg_svd),
    REAL_OP(linalg_matrix_exp),
};
OCL_FAMILY(linalg, ops)
