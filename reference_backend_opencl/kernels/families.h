/* What the families of ops show each other and ops.c. */
#ifndef OCL_FAMILIES_H
#define OCL_FAMILIES_H

#include "../ocl.h"
#include "pointwise_table.h"

/* Each family answers for its own ops; false for another's. */
typedef bool (*ocl_family_caps)(uint32_t op_id, ocl_op_caps *caps);
bool ocl_pointwise_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_reduction_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_matmul_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_random_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_indexing_caps(uint32_t op_id, ocl_op_caps *caps);

/* The pointwise op of this id, for families that come to it in the end. */
graft_status ocl_pointwise(const graft_exec *exec, const void *args, uint32_t op_id);

#define OCL_DECLARE(op)                  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args);
#define OCL_DECLARE_ROW(fields, op, ...) OCL_DECLARE(op)

#define OCL_OTHER_CORE(X)  X(sum_dim_IntList) X(mm) X(bmm) X(addmm) X(native_dropout) X(nonzero)
#define OCL_OTHER_TRAIN(X) X(baddbmm)

OCL_POINTWISE_CORE(OCL_DECLARE_ROW)
OCL_POINTWISE_TRAIN(OCL_DECLARE_ROW)
OCL_POINTWISE_COPY(OCL_DECLARE_ROW)
OCL_OTHER_CORE(OCL_DECLARE)
OCL_OTHER_TRAIN(OCL_DECLARE)

#endif
