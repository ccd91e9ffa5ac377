/* What the families of ops show each other and ops.c. */
#ifndef OCL_FAMILIES_H
#define OCL_FAMILIES_H

#include "kernels/optimizer/table.h"
#include "kernels/pointwise/table.h"
#include "runtime/ocl.h"

/* Each family answers for its own ops; false for another's. */
typedef bool (*ocl_family_caps)(uint32_t op_id, ocl_op_caps *caps);
bool ocl_pointwise_parts_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_pointwise_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_reduction_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_reduction_index_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_loss_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_loss_pairs_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_loss_margin_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_normalization_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_pooling_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_scan_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_sorting_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_searching_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_softmax_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_matmul_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_random_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_indexing_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_optimizer_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_embedding_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_scatter_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_shape_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_shape_windows_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_factory_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_convolution_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_rnn_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_attention_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_normalization_rms_caps(uint32_t op_id, ocl_op_caps *caps);
bool ocl_resample_caps(uint32_t op_id, ocl_op_caps *caps);

/* An op along one dimension of outer x size x inner, and how it is laid over the device (lines.c, lines.cl). */
typedef struct ocl_lines {
  int64_t outer, size, inner;
  bool rows;
  unsigned vec;
  size_t local;
} ocl_lines;

ocl_lines ocl_lines_of(const graft_device *device, const graft_dl_tensor *tensor, int64_t dim);
void ocl_lines_plan(const graft_device *device, ocl_lines *lines);         /* once outer, size and inner are known */
void ocl_lines_plan_columns(const graft_device *device, ocl_lines *lines); /* even where inner is 1 */
void ocl_lines_head(ocl_text *head, const ocl_lines *lines, const ocl_dtype *compute);
/* Sets the kernel's `lines` argument and its work sizes. */
graft_status ocl_lines_set(ocl_kernel *kernel, const ocl_lines *lines, cl_uint argument);

/* The pointwise op of this id, for families that come to it in the end. */
graft_status ocl_pointwise(const graft_exec *exec, const void *args, uint32_t op_id);

/* The args struct of the rows OCL_POINTWISE_PARTS. */
typedef struct ocl_parts {
  graft_args head;
  const graft_tensor_desc *a, *b, *c, *out, *second;
} ocl_parts;

#define OCL_DECLARE(op)                  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args);
#define OCL_DECLARE_ROW(fields, op, ...) OCL_DECLARE(op)

/* clang-format off */
#define OCL_REDUCTION_CORE(X)                                                                                     \
  X(sum_dim_IntList) X(mean_dim) X(mean) X(amax) X(amin) X(var_correction) X(any) X(any_dim) X(any_dims) X(prod) \
  X(prod_dim_int) X(argmax) X(argmin) X(max_dim) X(min_dim)
#define OCL_REDUCTION_TRAIN(X)                                                                                \
  X(linalg_vector_norm) X(all) X(all_dim) X(max) X(min) X(aminmax) X(nansum) X(count_nonzero) X(logsumexp)    \
  X(std_correction) X(var_mean_correction) X(std_mean_correction) X(norm_ScalarOpt_dim)

#define OCL_SOFTMAX_CORE(X)  X(softmax) X(log_softmax)
#define OCL_SOFTMAX_TRAIN(X) X(safe_softmax) X(softmax_backward_data) X(log_softmax_backward_data)

#define OCL_LOSS_TRAIN(X)                                                                                       \
  X(nll_loss_forward) X(nll_loss_backward) X(nll_loss2d_forward) X(nll_loss2d_backward) OCL_LOSS_PAIRS(X) \
  OCL_LOSS_MARGIN(X)
#define OCL_LOSS_PAIRS(X)                                                                                       \
  X(mse_loss) X(mse_loss_backward) X(smooth_l1_loss) X(smooth_l1_loss_backward) X(huber_loss)                   \
  X(huber_loss_backward) X(binary_cross_entropy) X(binary_cross_entropy_backward)                               \
  X(soft_margin_loss_backward)
#define OCL_LOSS_MARGIN(X)                                                                                      \
  X(multi_margin_loss) X(multi_margin_loss_backward) X(multilabel_margin_loss_forward)                          \
  X(multilabel_margin_loss_backward)

#define OCL_NORMALIZATION_CORE(X) \
  X(native_layer_norm) X(native_layer_norm_backward) X(native_group_norm) X(native_group_norm_backward)
#define OCL_NORMALIZATION_TRAIN(X) X(native_batch_norm) X(native_batch_norm_backward)

#define OCL_POOLING_CORE(X) \
  X(max_pool2d_with_indices) X(max_pool2d_with_indices_backward) X(avg_pool2d) X(avg_pool2d_backward)

/* The ops that work along dimensions. */
#define OCL_LINES_CORE(X)                                                                                  \
  OCL_REDUCTION_CORE(X) OCL_SOFTMAX_CORE(X) OCL_NORMALIZATION_CORE(X) OCL_POOLING_CORE(X) X(cumsum) X(sort) \
  X(topk)
#define OCL_LINES_TRAIN(X)                                                                                  \
  OCL_REDUCTION_TRAIN(X) OCL_SOFTMAX_TRAIN(X) OCL_LOSS_TRAIN(X) OCL_NORMALIZATION_TRAIN(X) X(sort_stable) \
  X(cumprod) X(cummax) X(cummin) X(cummax_helper)
/* clang-format on */

#define OCL_OTHER_CORE(X)  X(mm) X(bmm) X(addmm) X(native_dropout) X(nonzero)
#define OCL_OTHER_TRAIN(X) X(baddbmm) X(searchsorted_Tensor) X(bucketize_Tensor) X(isin_Tensor_Tensor)

#define OCL_DECLARE_FIRST(op, ...) OCL_DECLARE(op)

/* clang-format off */
#define OCL_FUSED(X)                                                                                     \
  X(fused_adam) X(fused_adam_tensor_lr) X(fused_adamw) X(fused_adamw_tensor_lr) X(fused_sgd)             \
  X(fused_sgd_tensor_lr) X(fused_adagrad) X(amp_foreach_non_finite_check_and_unscale)                    \
  X(foreach_norm_Scalar) X(amp_update_scale)

#define OCL_INDEXED_CORE(X)                                                                               \
  X(embedding) X(embedding_dense_backward) X(index_select) X(index_Tensor) X(gather) X(scatter_src)       \
  X(scatter_value) X(scatter_add) X(scatter_reduce_two) X(index_put) X(masked_scatter)
/* clang-format on */
#define OCL_INDEXED_TRAIN(X) \
  X(masked_select) X(take) X(put) X(index_put_impl) X(index_add) X(index_copy) X(index_fill_int_Tensor)

#define OCL_SHAPE_CORE(X)    X(cat) X(constant_pad_nd) X(repeat) X(flip) X(select_scatter) X(slice_scatter)
#define OCL_SHAPE_TRAIN(X)   X(tril) X(triu) X(roll) X(unfold_backward)
#define OCL_FACTORY_CORE(X)  X(arange_start_step) X(scalar_tensor)
#define OCL_FACTORY_TRAIN(X) X(linspace) X(eye_m) X(tril_indices) X(triu_indices)
#define OCL_RANDOM_CORE(X)   X(rand) X(randn) X(randperm)
/* clang-format off */
#define OCL_RANDOM_TRAIN(X)                                                                                  \
  X(uniform) X(randperm_generator) X(native_dropout_backward) X(bernoulli_p) X(bernoulli_Tensor)             \
  X(normal_float_float) X(exponential) X(random_from) X(randint_low) X(multinomial) X(rrelu_with_noise)
#define OCL_CONVOLUTION_CORE(X) X(convolution) X(convolution_backward)
#define OCL_RNN_TRAIN(X) \
  X(thnn_fused_lstm_cell) X(thnn_fused_lstm_cell_backward_impl) X(thnn_fused_gru_cell) X(thnn_fused_gru_cell_backward)
#define OCL_ATTENTION_TRAIN(X) \
  X(scaled_dot_product_fused_attention_overrideable) X(scaled_dot_product_fused_attention_overrideable_backward)
#define OCL_RESAMPLE_CORE(X) \
  X(adaptive_avg_pool2d) X(adaptive_avg_pool2d_backward) X(adaptive_avg_pool3d) X(reflection_pad1d) \
  X(reflection_pad2d) X(reflection_pad3d) X(replication_pad2d) X(replication_pad3d)
#define OCL_RESAMPLE_TRAIN(X) \
  X(adaptive_avg_pool3d_backward) X(upsample_nearest1d) X(upsample_nearest1d_backward) \
  X(upsample_nearest2d) X(upsample_nearest2d_backward) X(upsample_nearest3d) X(upsample_nearest3d_backward) \
  X(upsample_nearest_exact2d) X(upsample_nearest_exact2d_backward) X(upsample_linear1d) \
  X(upsample_linear1d_backward) X(upsample_bilinear2d) X(upsample_bilinear2d_backward) \
  X(upsample_trilinear3d) X(upsample_trilinear3d_backward) X(reflection_pad1d_backward) \
  X(reflection_pad2d_backward) X(reflection_pad3d_backward) X(replication_pad1d) \
  X(replication_pad1d_backward) X(replication_pad2d_backward) X(replication_pad3d_backward)
/* clang-format on */
#define OCL_NORMALIZATION_RMS_TRAIN(X) X(fused_rms_norm) X(fused_rms_norm_backward)

OCL_NORMALIZATION_RMS_TRAIN(OCL_DECLARE)
OCL_RESAMPLE_CORE(OCL_DECLARE)
OCL_RESAMPLE_TRAIN(OCL_DECLARE)
OCL_ATTENTION_TRAIN(OCL_DECLARE)
OCL_RNN_TRAIN(OCL_DECLARE)
OCL_SHAPE_CORE(OCL_DECLARE)
OCL_SHAPE_TRAIN(OCL_DECLARE)
OCL_FACTORY_CORE(OCL_DECLARE)
OCL_FACTORY_TRAIN(OCL_DECLARE)
OCL_RANDOM_CORE(OCL_DECLARE)
OCL_RANDOM_TRAIN(OCL_DECLARE)
OCL_CONVOLUTION_CORE(OCL_DECLARE)
OCL_INDEXED_CORE(OCL_DECLARE)
OCL_INDEXED_TRAIN(OCL_DECLARE)
OCL_FUSED(OCL_DECLARE)
OCL_FOREACH(OCL_DECLARE_FIRST)
OCL_POINTWISE_CORE(OCL_DECLARE_ROW)
OCL_POINTWISE_TRAIN(OCL_DECLARE_ROW)
OCL_POINTWISE_PARTS(OCL_DECLARE_ROW)
OCL_POINTWISE_COMPLEX(OCL_DECLARE_ROW)
OCL_POINTWISE_COPY(OCL_DECLARE_ROW)
OCL_DECLARE(zero)
OCL_LINES_CORE(OCL_DECLARE)
OCL_LINES_TRAIN(OCL_DECLARE)
OCL_OTHER_CORE(OCL_DECLARE)
OCL_OTHER_TRAIN(OCL_DECLARE)

#endif
