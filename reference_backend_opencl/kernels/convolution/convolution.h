/* What the ways of a convolution share: convolution.c plans that of portable OpenCL, nvidia.c that of tensor cores. */
#ifndef OCL_CONVOLUTION_H
#define OCL_CONVOLUTION_H

#include "kernels/matmul/matmul.h"
#include "runtime/op.h"

/* As in convolution.cl. */
typedef struct ocl_plane {
  int64_t pitch, width, height, in_width, in_height;
  int64_t rows, top, left, start, down, across;
} ocl_plane;

typedef struct ocl_space {
  int64_t batch, groups, out_channels, in_channels, steps;
  int64_t out_size[3], in_size[3], taps[3];
  int64_t mul[3], off[3], tap[3], div[3];
  int64_t step[3], move[3];
  int64_t weight_group, weight_out, weight_in;
  int64_t phase, row, first;
  int64_t segments, blocks, units, per_item, images, splits, row_splits;
  ocl_plane plane;
} ocl_space;

/* Places of a box: of an image, of a window. */
static inline int64_t ocl_volume(const int64_t size[3]) {
  return size[0] * size[1] * size[2];
}

/* What so many values take of a workspace, up to where its next part may begin. Nothing is computed in less than four
 * bytes. */
static inline uint64_t ocl_values_bytes(int64_t values, const ocl_dtype *dtype) {
  return ((uint64_t)values * (dtype->bytes < 4 ? 4 : dtype->bytes) + 255) / 256 * 256;
}

/* Strides of what calls that follow give. */
typedef struct ocl_result_strides {
  int64_t image, channel, place;
} ocl_result_strides;

/* What a run of a convolution gets: the bias or NULL; where calls follow, `out` is what they write, and these are the
 * epilogue's arguments. */
typedef struct ocl_forward_call {
  const graft_tensor_desc *in, *weight, *bias, *out;
  cl_uint count;
  const ocl_argument *arguments;
  const ocl_place *work; /* f->bytes that the caller has; NULL: it has none */
} ocl_forward_call;

/* A convolution of either kind. */
typedef struct ocl_forward ocl_forward;
struct ocl_forward {
  bool followed;                                 /* by calls, in `convolve` or in the product */
  bool portable;                                 /* convolution.cl's `convolve` ... */
  int64_t mends;                                 /* ... which does itself what gaps.cl is for */
  const ocl_epilogue *epilogue;                  /* while it is made */
  ocl_kernel rows, weights, convolve, sum, mend; /* sum (of f32.c) and mend (gaps.cl): only where there is a need */
  uint64_t skip_weights, bytes;                  /* the packed weights begin skip_weights bytes after the rows */
  uint64_t skip_sums;                            /* of f32.c */
  bool exact;                                    /* nothing is multiplied but elements */
  ocl_product *product;                          /* all that is done, or NULL */
  /* Of a way without packed rows; else NULL. */
  graft_status (*run)(const graft_exec *exec, ocl_forward *f, ocl_place work, const ocl_forward_call *call);
};

/* The gradient of the weight: of a forward convolution with it, which takes `in` to `out`. */
typedef struct ocl_weight_gradient ocl_weight_gradient;
struct ocl_weight_gradient {
  ocl_kernel rows, outs, gradient, sum, mend;
  uint64_t skip_outs, skip_sums, skip_parts, bytes; /* skip_sums: of channels.c */
  int64_t out_row;
  bool sums;  /* parts, by `sum` */
  bool exact; /* as above */
  ocl_product *product;
  graft_status (*run)(const graft_exec *exec, ocl_weight_gradient *g, ocl_place work, const graft_tensor_desc *in,
                      const graft_tensor_desc *out, const graft_tensor_desc *weight);
};

/* Whether tensor cores serve a convolution of `dtype`: then its packing, its product and its sum are planned. Else
 * GRAFT_UNIMPLEMENTED, and nothing is. */
graft_status ocl_tensor_forward(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, const ocl_space *s);
graft_status ocl_tensor_weight(ocl_weight_gradient *g, graft_device *device, const ocl_dtype *dtype,
                               const ocl_space *s);

/* The same for the kernels of f32 on GPUs. */
graft_status ocl_f32_forward(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, const ocl_space *s);
graft_status ocl_f32_weight(ocl_weight_gradient *g, graft_device *device, const ocl_dtype *dtype, const ocl_space *s);

/* Whether these would serve. Calls can't follow in their kernels. */
bool ocl_tensor_serves_forward(graft_device *device, const ocl_dtype *dtype, const ocl_space *s);
bool ocl_f32_serves_forward(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s);

/* The same for those that CPUs make strip by strip, in vectors of `vec`; they mend what zeros have spoiled, too. */
graft_status ocl_strips_forward(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, ocl_space s, int64_t vec);
graft_status ocl_strips_weight(ocl_weight_gradient *g, graft_device *device, const ocl_dtype *dtype, ocl_space s,
                               int64_t vec);

/* ---- What a way costs on CPUs, in multiplications of a vector ---- */

/* Where a weight is read for one vector alone, a multiplication counts for more. */
#define OCL_NARROW 1.4

/* How many pairs there are, along a dimension, of an output and a tap that meets an element there. */
double ocl_met_taps(const ocl_space *s, int d);
/* A convolution of packed rows, and the gradient of a weight of those, once they are laid out: by tiles of so many
 * channels, and `wide` vectors of `vec` lanes. `wide` is 1 where each tap counts for one of several. */
double ocl_rows_cost(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s, int64_t vec, int64_t wide,
                     int64_t tile);
double ocl_squares_cost(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s, const ocl_space *outs,
                        int64_t vec, int64_t tile);

/* A forward convolution that is a matrix product; 0: this is none. */
double ocl_products_cost(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s);

/* The same for those that CPUs make with images side by side, where that costs less than `other`. */
graft_status ocl_images_forward(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, ocl_space s,
                                double other);

/* The same for gradients of weights that CPUs make tap by tap. */
graft_status ocl_channels_weight(ocl_weight_gradient *g, graft_device *device, const ocl_dtype *dtype, ocl_space s,
                                 double other);

/* The same for those that are matrix products on CPUs. */
graft_status ocl_products_forward(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, const ocl_space *s,
                                  bool has_bias);
graft_status ocl_products_weight(ocl_weight_gradient *g, graft_device *device, const ocl_dtype *dtype,
                                 const ocl_space *s);

/* Whether zeros may make results NaN, of a convolution and of the gradient of its weight: those of places where a
 * window meets no element. */
bool ocl_forward_has_gaps(const ocl_dtype *dtype, const ocl_space *s);
bool ocl_weight_has_gaps(const ocl_dtype *dtype, const ocl_space *s);
/* Sizes the kernel that mends them, of a program for vectors of `vec`; and makes it in a program of its own, after any
 * product's kernels. */
graft_status ocl_gaps_set(ocl_kernel *mend, graft_device *device, ocl_space s, bool forward, int64_t vec);
graft_status ocl_gaps_make(ocl_kernel *mend, graft_device *device, const ocl_dtype *dtype, const ocl_space *s,
                           bool forward);

/* What a call of the op is: its dtype, or NULL where that is not served; and its sizes. */
const ocl_dtype *ocl_convolution_dtype(const graft_device *device, const graft_tensor_desc *a,
                                       const graft_tensor_desc *b);
ocl_space ocl_convolution_space(const graft_args_convolution *args);
graft_status ocl_forward_prepare(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, ocl_space s,
                                 bool has_bias);
graft_status ocl_forward_run(const graft_exec *exec, ocl_forward *f, const ocl_forward_call *call);
void ocl_forward_destroy(ocl_forward *f);

/* ---- A convolution with calls that follow it in its kernel (followed.cl, kernels/pointwise/fused_epilogue.c) ---- */

/* The kernel that writes results, behind the text of calls that follow, if any do; it then mends what zeros have
 * spoiled where `mends`. Frees the head. */
graft_status ocl_results_make(const ocl_forward *f, ocl_kernel *kernel, graft_device *device, ocl_text *head,
                              bool mends, const char *files, const char *entry);
/* Then sets where the kernel writes, in front of the constant arguments that it has. */
graft_status ocl_results_set(const ocl_forward *f, ocl_kernel *kernel);
/* Launches `convolve`, with the epilogue's arguments behind these. */
graft_status ocl_results_launch(const graft_exec *exec, ocl_forward *f, const ocl_forward_call *call, cl_uint count,
                                const ocl_argument *arguments);

/* Whether calls can follow this one. */
bool ocl_convolution_is_followed(const graft_exec *exec, const graft_args_convolution *args);
/* The kernels of such a convolution. */
graft_status ocl_convolution_make(graft_device *device, const graft_args_convolution *args,
                                  const ocl_epilogue *epilogue, ocl_forward **made);
/* Whether channels and places change roles in its kernel. */
bool ocl_convolution_is_turned(const ocl_forward *f);
void ocl_convolution_destroy(ocl_forward *f);

#endif
