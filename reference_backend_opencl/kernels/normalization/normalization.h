/* What the files of the normalization family share. */
#ifndef OCL_NORMALIZATION_H
#define OCL_NORMALIZATION_H

#include "kernels/core/lines.h"

typedef enum ocl_norm_kind { OCL_NORM_LAYER, OCL_NORM_GROUP, OCL_NORM_BATCH } ocl_norm_kind;

/* `rows` of normalization.cl. */
typedef struct ocl_norm_rows {
  int64_t segments, segment_stride, row_stride, groups, per_group, weight_step;
} ocl_norm_rows;

/* Which elements share a mean, and which a weight. */
typedef struct ocl_norm {
  ocl_norm_kind kind;
  ocl_lines lines;
  ocl_norm_rows rows;
} ocl_norm;

ocl_norm ocl_norm_layer(const graft_device *device, const graft_tensor_desc *input, uint64_t normalized_ndim);
ocl_norm ocl_norm_group(const graft_device *device, int64_t n, int64_t channels, int64_t area, int64_t groups);
ocl_norm ocl_norm_batch(const graft_device *device, const graft_tensor_desc *input);
/* Sets the kernel's work sizes, and its last parameters, which are the lines and the rows. */
graft_status ocl_norm_set(ocl_kernel *kernel, const ocl_norm *norm);
/* The head of normalization.cl, but for the dtypes of statistics. */
void ocl_norm_head(ocl_text *head, const ocl_norm *norm, const ocl_dtype *dtype, const ocl_dtype *compute,
                   const graft_tensor_desc *weight, const graft_tensor_desc *bias);

#endif
