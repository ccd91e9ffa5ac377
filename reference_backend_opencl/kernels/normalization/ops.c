/* The normalizations: one row an op. */
#include "kernels/normalization/normalization.h"

#define ROW(who, caps) \
  { who, .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = GRAFT_CAP_UNALIGNED | (caps) }
#define NORM(op, engine, kind, caps) ROW(OCL_ENGINE(op, engine, ocl_norm_reads, (&(const ocl_norm_kind){kind})), caps)
#define NORMS(op, kind, caps)        NORM(op, ocl_norm_forward, kind, 0), NORM(op##_backward, ocl_norm_backward, kind, caps)

static const ocl_op ops[] = {
    NORMS(native_layer_norm, OCL_NORM_LAYER, GRAFT_CAP_EMPTY),
    NORMS(native_group_norm, OCL_NORM_GROUP, GRAFT_CAP_EMPTY),
    NORMS(native_batch_norm, OCL_NORM_BATCH, 0),
    NORM(native_batch_norm_legit_no_training, ocl_norm_forward, OCL_NORM_BATCH, 0),
    ROW(OCL_OP(fused_rms_norm), GRAFT_CAP_EMPTY),
    ROW(OCL_OP(fused_rms_norm_backward), GRAFT_CAP_EMPTY),
    ROW(OCL_OP(renorm), 0),
    ROW(OCL_OP(weight_norm_interface), 0),
    ROW(OCL_OP(weight_norm_interface_backward), 0),
};
OCL_FAMILY(normalization, ops)
