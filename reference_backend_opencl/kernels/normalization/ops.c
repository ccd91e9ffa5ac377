/* The normalizations: one row an op. */
#include "runtime/ocl.h"

#define NORMALIZATION(op, caps) \
  { OCL_OP(op), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = caps }

static const ocl_op ops[] = {
    NORMALIZATION(native_layer_norm, GRAFT_CAP_UNALIGNED),
    NORMALIZATION(native_layer_norm_backward, GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY),
    NORMALIZATION(native_group_norm, GRAFT_CAP_UNALIGNED),
    NORMALIZATION(native_group_norm_backward, GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY),
    NORMALIZATION(native_batch_norm, GRAFT_CAP_UNALIGNED),
    NORMALIZATION(native_batch_norm_backward, GRAFT_CAP_UNALIGNED),
    NORMALIZATION(fused_rms_norm, GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY),
    NORMALIZATION(fused_rms_norm_backward, GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY),
};
OCL_FAMILY(normalization, ops)
