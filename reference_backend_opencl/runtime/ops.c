/* Which op lies in which slot. The lists are the families' own (kernels/families.h). */
#include "kernels/families.h"

#define SLOT(op)                  .op = ocl_op_##op,
#define ROW_SLOT(fields, op, ...) SLOT(op)
#define FIRST_SLOT(op, ...)       SLOT(op)

const graft_core_ops ocl_core_ops = {.struct_size = sizeof ocl_core_ops,
                                     OCL_POINTWISE_CORE(ROW_SLOT) OCL_POINTWISE_COPY(ROW_SLOT) OCL_LINES_CORE(SLOT)
                                         OCL_OTHER_CORE(SLOT) OCL_INDEXED_CORE(SLOT) OCL_SHAPE_CORE(SLOT)
                                             OCL_CONVOLUTION_CORE(SLOT) OCL_FACTORY_CORE(SLOT) OCL_RANDOM_CORE(SLOT)
                                                 OCL_RESAMPLE_CORE(SLOT)};

const graft_train_ops ocl_train_ops = {
    .struct_size = sizeof ocl_train_ops,
    OCL_POINTWISE_TRAIN(ROW_SLOT) OCL_POINTWISE_PARTS(ROW_SLOT) OCL_LINES_TRAIN(SLOT) OCL_OTHER_TRAIN(SLOT)
        OCL_FUSED(SLOT) OCL_FOREACH(FIRST_SLOT) OCL_INDEXED_TRAIN(SLOT) OCL_RANDOM_TRAIN(SLOT) OCL_SHAPE_TRAIN(SLOT)
            OCL_FACTORY_TRAIN(SLOT) OCL_RNN_TRAIN(SLOT) OCL_ATTENTION_TRAIN(SLOT) OCL_RESAMPLE_TRAIN(SLOT)
                OCL_NORMALIZATION_RMS_TRAIN(SLOT) SLOT(zero)
                    .complex_ = ocl_op_complex};

const graft_prims_ops ocl_prims_ops = {.struct_size = sizeof ocl_prims_ops};

graft_status ocl_op_caps_of(graft_device *device, uint32_t op_id, graft_op_caps *out) {
  static const ocl_family_caps families[] = {ocl_pointwise_parts_caps,
                                             ocl_pointwise_caps,
                                             ocl_reduction_caps,
                                             ocl_reduction_index_caps,
                                             ocl_softmax_caps,
                                             ocl_loss_caps,
                                             ocl_loss_pairs_caps,
                                             ocl_normalization_caps,
                                             ocl_pooling_caps,
                                             ocl_scan_caps,
                                             ocl_sorting_caps,
                                             ocl_searching_caps,
                                             ocl_matmul_caps,
                                             ocl_random_caps,
                                             ocl_indexing_caps,
                                             ocl_optimizer_caps,
                                             ocl_embedding_caps,
                                             ocl_scatter_caps,
                                             ocl_shape_caps,
                                             ocl_convolution_caps,
                                             ocl_factory_caps,
                                             ocl_rnn_caps,
                                             ocl_attention_caps,
                                             ocl_resample_caps,
                                             ocl_normalization_rms_caps,
                                             ocl_loss_margin_caps,
                                             ocl_shape_windows_caps};
  const uint64_t f64 = OCL_BIT(F64) | OCL_BIT(C128);
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
    ocl_op_caps caps = {0};
    if (!families[i](op_id, &caps)) continue;
    uint64_t served = device->has_f64 ? UINT64_MAX : ~f64;
    if (GRAFT_SIZE_TO(graft_op_caps, max_ndim) > out->struct_size) return GRAFT_INVALID_ARGUMENT;
    out->input_dtypes = caps.inputs & served;
    out->output_dtypes = caps.outputs & served;
    /* In-order queues and fixed orders of summation: every op here gives the same bits each time. */
    out->flags = caps.flags | GRAFT_CAP_DETERMINISTIC;
    out->exec_flags_known = GRAFT_EXEC_DETERMINISTIC;
    out->max_ndim = OCL_DIMS_MAX;
    return GRAFT_OK;
  }
  return GRAFT_UNIMPLEMENTED;
}
