/* What the families of ops show each other and ops.c. */
#ifndef OCL_FAMILIES_H
#define OCL_FAMILIES_H

#include "../ocl.h"
#include "optimizer_table.h"
#include "pointwise_table.h"

/* Each family answers for its own ops; false for another's. */
typedef bool (*ocl_family_caps)(uint32_t op_id, ocl_op_caps *caps);
bool ocl_pointwise_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_reduction_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_matmul_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_random_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_indexing_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_optimizer_caps(uint32_t op_id, ocl_op_caps *caps);

/* The pointwise op of this id, for families that come to it in the end. */
graft_status ocl_pointwise(const graft_exec *exec, const void *args, uint32_t op_id);

#define OCL_DECLARE(op)                  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args);
#define OCL_DECLARE_ROW(fields, op, ...) OCL_DECLARE(op)

#define OCL_REDUCTION_CORE(X)                                                                                     \
  X(sum_dim_IntList) X(mean_dim) X(mean) X(amax) X(amin) X(var_correction) X(any) X(any_dim) X(any_dims) X(prod) \
  X(prod_dim_int)
#define OCL_REDUCTION_TRAIN(X) X(linalg_vector_norm)

#define OCL_OTHER_CORE(X)  X(mm) X(bmm) X(addmm) X(native_dropout) X(nonzero)
#define OCL_OTHER_TRAIN(X) X(baddbmm)

#define OCL_DECLARE_FIRST(op, ...)       OCL_DECLARE(op)

#define OCL_FUSED(X)                                                                                     \
  X(fused_adam) X(fused_adam_tensor_lr) X(fused_adamw) X(fused_adamw_tensor_lr) X(fused_sgd)             \
  X(fused_sgd_tensor_lr) X(fused_adagrad) X(amp_foreach_non_finite_check_and_unscale)

OCL_FUSED(OCL_DECLARE)
OCL_FOREACH(OCL_DECLARE_FIRST)
OCL_POINTWISE_CORE(OCL_DECLARE_ROW)
OCL_POINTWISE_TRAIN(OCL_DECLARE_ROW)
OCL_POINTWISE_COPY(OCL_DECLARE_ROW)
OCL_REDUCTION_CORE(OCL_DECLARE)
OCL_REDUCTION_TRAIN(OCL_DECLARE)
OCL_OTHER_CORE(OCL_DECLARE)
OCL_OTHER_TRAIN(OCL_DECLARE)

#endif
