/* What the files of the normalization family share. */
#ifndef OCL_NORMALIZATION_H
#define OCL_NORMALIZATION_H

#include "kernels/core/held.h"
#include "kernels/core/lines.h"
#include "kernels/matmul/matmul.h"
#include "kernels/pointwise/pointwise.h"

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

/* What the engines read; their recipe is an ocl_norm_kind. The other files read the input's geometry by ocl_norm_of. */
enum {
  OCL_NORM_INPUT,
  OCL_NORM_SHAPE,
  OCL_NORM_N,
  OCL_NORM_C,
  OCL_NORM_AREA,
  OCL_NORM_GROUPS,
  OCL_NORM_WEIGHT,
  OCL_NORM_BIAS,
  OCL_NORM_RUNNING_MEAN,
  OCL_NORM_RUNNING_VAR,
  OCL_NORM_TRAINING,
  OCL_NORM_TRAIN,
  OCL_NORM_MOMENTUM,
  OCL_NORM_EPS,
  OCL_NORM_GRAD,
  OCL_NORM_MEAN,
  OCL_NORM_RSTD,
  OCL_NORM_SAVE_MEAN,
  OCL_NORM_SAVE_INVSTD,
  OCL_NORM_READS
};
extern const char *const ocl_norm_reads[];
graft_status ocl_norm_forward(const ocl_call *call);
graft_status ocl_norm_backward(const ocl_call *call);

/* A batch normalization by statistics that are given, which treats each element apart: recipes of groups
 * (kernels/pointwise) have it as an op of a = in and, of the channel, b = mean, c = variance, d = weight, e = bias; x
 * is added to the variance. */
enum { OCL_NORM_OF_CHANNELS = 4 };
typedef struct ocl_norm_fixed {
  const graft_tensor_desc *in, *out, *of_channels[OCL_NORM_OF_CHANNELS];
  double epsilon;
} ocl_norm_fixed;
extern const ocl_pointwise_recipe ocl_norm_fixed_recipe;
/* False: the call is none, or not all of these are there in one dtype. */
bool ocl_norm_read_fixed(const ocl_call *call, ocl_norm_fixed *norm);

ocl_norm ocl_norm_of(const graft_device *device, const ocl_call *call);

/* The gradient of a layer normalization, which calls may follow in its kernel (kernels/pointwise/fused_epilogue.c). */
enum { OCL_NORM_GRADIENT_READS = 5, OCL_NORM_GRADIENT_SUMS = 2 };
typedef struct ocl_norm_gradient_call {
  const graft_tensor_desc *reads[OCL_NORM_GRADIENT_READS];     /* of the result, input, mean, rstd; weight or NULL */
  const graft_tensor_desc *out, *sums[OCL_NORM_GRADIENT_SUMS]; /* of weight and bias; NULL: not wanted */
  ocl_norm norm;
} ocl_norm_gradient_call;
/* False: the call is none, or none of a CPU, and of several rows, in one dtype. */
bool ocl_norm_read_gradient(const ocl_call *call, ocl_norm_gradient_call *gradient);

typedef struct ocl_norm_gradient ocl_norm_gradient;
graft_status ocl_norm_gradient_make(graft_device *device, const ocl_norm_gradient_call *call,
                                    const ocl_epilogue *epilogue, ocl_norm_gradient **made);
/* `out` is what the calls that follow make, and `arguments` are those of the epilogue. */
graft_status ocl_norm_gradient_run(const graft_exec *exec, ocl_norm_gradient *gradient,
                                   const ocl_norm_gradient_call *call, cl_uint count, const ocl_argument *arguments);
void ocl_norm_gradient_destroy(ocl_norm_gradient *gradient);

/* Sets the kernel's work sizes, and its last parameters, which are the lines and the rows. */
graft_status ocl_norm_set(ocl_kernel *kernel, const ocl_norm *norm);
/* The head of normalization.cl, but for the dtypes of statistics. */
void ocl_norm_head(ocl_text *head, const ocl_norm *norm, const ocl_dtype *dtype, const ocl_dtype *compute,
                   const graft_tensor_desc *weight, const graft_tensor_desc *bias);

/* Layer norm's rows on a GPU, in registers where they fit: layer_held.cl. Its head is ocl_held_head's and the second's.
 */
#define OCL_NORM_HELD_FILES "core/held normalization/layer_held"
bool ocl_norm_is_held(const graft_device *device, const ocl_norm *norm, const ocl_dtype *compute, ocl_held *held);
void ocl_norm_values_head(ocl_text *head, const ocl_norm *norm, const ocl_dtype *dtype, const graft_tensor_desc *weight,
                          const graft_tensor_desc *bias);

#endif
