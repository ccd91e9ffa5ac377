/* Convolutions: rules, decompositions, gradients. A backward op's arguments from input on are those of convolution,
 * with the sizes of the bias in its place. */
#include "ops/convolution/convolution.h"

#include <stdlib.h>

#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

/* A list with one number a spatial dim, each at least `least`; a list of one stands for all. */
static graft_status window_list(op_call *c, int arg, int32_t dims, int64_t least) {
  const graft_value *list = &c->args[arg];
  if (list->count == 1 && dims > 1) {
    int64_t same[CONV_DIMS] = {list->as.ints[0], list->as.ints[0], list->as.ints[0]};
    graft_status status = op_set_ints(c, arg, same, (uint32_t)dims);
    if (status) return status;
  }
  if (list->count != (uint32_t)dims) {
    return op_error(c, "%s has %u numbers; expected %d, one a spatial dim (%s)", c->schema->args[arg].name, list->count,
                    dims, op_show_tensors(c));
  }
  for (int32_t i = 0; i < dims; i++) {
    graft_status status = op_check_step(c, c->schema->args[arg].name, list->as.ints[i], least);
    if (status) return status;
  }
  return GRAFT_OK;
}

typedef struct geometry {
  const int64_t *stride, *padding, *dilation, *output_padding;
  uint32_t dims;
  bool transposed;
  int64_t groups;
} geometry;

/* Of the arguments of convolution. */
static geometry geometry_of(const graft_value *args) {
  const in_convolution in = in_convolution_of(args);
  return (geometry){.stride = in.stride,
                    .padding = in.padding,
                    .dilation = in.dilation,
                    .output_padding = in.output_padding,
                    .dims = in.stride_count,
                    .transposed = in.transposed,
                    .groups = in.groups};
}

static graft_status check_lists(op_call *c, int at, int32_t dims) {
  graft_status status = window_list(c, at + ARG_convolution_stride, dims, 1);
  if (!status) status = window_list(c, at + ARG_convolution_padding, dims, 0);
  if (!status) status = window_list(c, at + ARG_convolution_dilation, dims, 1);
  if (!status) status = window_list(c, at + ARG_convolution_output_padding, dims, 0);
  if (status || geometry_of(&c->args[at]).transposed) return status;
  int64_t none[CONV_DIMS] = {0}; /* what pads a transposed one's result is ignored, as PyTorch does */
  return op_set_ints(c, at + ARG_convolution_output_padding, none, (uint32_t)dims);
}

static graft_status check_channels(op_call *c, const geometry *g, const graft_tensor *input,
                                   const graft_tensor *weight) {
  if (g->groups < 1) return op_error(c, "groups is %lld; expected at least 1", (long long)g->groups);
  if (weight->sizes[0] < g->groups || weight->sizes[0] % g->groups) {
    return op_error(c, "the weight's first size must be a multiple of groups %lld (%s)", (long long)g->groups,
                    op_show_tensors(c));
  }
  int64_t expected = g->transposed ? weight->sizes[0] : weight->sizes[1] * g->groups;
  if (input->sizes[1] == expected) return GRAFT_OK;
  return op_error(c, "the weight expects an input of %lld channels with groups %lld (%s)", (long long)expected,
                  (long long)g->groups, op_show_tensors(c));
}

static int64_t span(const geometry *g, const graft_tensor *weight, uint32_t dim) {
  return g->dilation[dim] * (weight->sizes[dim + 2] - 1) + 1;
}

static graft_status output_size(op_call *c, const geometry *g, const graft_tensor *input, const graft_tensor *weight,
                                uint32_t dim, int64_t *size) {
  int64_t in = input->sizes[dim + 2], extra = g->output_padding[dim];
  int64_t most = g->stride[dim] > g->dilation[dim] ? g->stride[dim] : g->dilation[dim];
  if (!g->transposed) {
    int64_t room = in + 2 * g->padding[dim] - span(g, weight, dim);
    *size = room / g->stride[dim] + 1;
    if (room >= 0) return GRAFT_OK;
    return op_error(c, "the window spans %lld and the padded input %lld in spatial dim %u (%s)",
                    (long long)span(g, weight, dim), (long long)(in + 2 * g->padding[dim]), dim, op_show_tensors(c));
  }
  *size = (in - 1) * g->stride[dim] - 2 * g->padding[dim] + span(g, weight, dim) + extra;
  if (extra >= most) {
    return op_error(c, "output_padding %lld must be smaller than stride or dilation", (long long)extra);
  }
  if (*size > 0) return GRAFT_OK;
  return op_error(c, "the result's size in spatial dim %u would be %lld (%s)", dim, (long long)*size,
                  op_show_tensors(c));
}

/* Checks everything but bias and gradient; the result's sizes. `at` is where input stands. */
static graft_status infer_sizes(op_call *c, int at, int64_t *sizes) {
  const graft_tensor *input = op_tensor(c, at), *weight = op_tensor(c, at + ARG_convolution_weight);
  int32_t dims = weight->ndim - 2;
  if (input->ndim != weight->ndim || dims < 1 || dims > CONV_DIMS) {
    return op_error(c, "expected input and weight of one rank, 3 to 5; a batch of one has a dim too (%s)",
                    op_show_tensors(c));
  }
  if (dt_is_complex(input->dtype) || input->dtype == GRAFT_BOOL || dt_is_float8(input->dtype)) {
    return op_refuse(c, at, "a floating or integer dtype");
  }
  graft_status status = op_check_same_dtype(c, at, at + ARG_convolution_weight);
  if (!status) status = check_lists(c, at, dims);
  if (status) return status;
  geometry g = geometry_of(&c->args[at]);
  status = check_channels(c, &g, input, weight);
  sizes[0] = input->sizes[0];
  sizes[1] = g.transposed ? weight->sizes[1] * g.groups : weight->sizes[0];
  if (!input->sizes[1]) sizes[1] = 0; /* as PyTorch has it */
  for (uint32_t i = 0; !status && i < g.dims; i++) status = output_size(c, &g, input, weight, i, &sizes[i + 2]);
  return status;
}

/* Channels last where the input or the weight is. */
static graft_memory_format format_of(const graft_tensor *input, const graft_tensor *weight) {
  graft_memory_format format = tns_suggest_format(input);
  return format == GRAFT_FORMAT_CONTIGUOUS ? tns_suggest_format(weight) : format;
}

/* A bias of another dtype is converted, except where PyTorch's library kernels refuse it. */
static graft_status check_bias(op_call *c, const graft_tensor *input, const graft_tensor *weight) {
  const graft_tensor *bias = op_tensor(c, ARG_convolution_bias);
  if (!bias) return GRAFT_OK;
  geometry g = geometry_of(c->args);
  int64_t channels = g.transposed ? weight->sizes[1] * g.groups : weight->sizes[0];
  if (bias->ndim != 1 || bias->sizes[0] != channels) {
    return op_refuse(c, ARG_convolution_bias, "one number for each of %lld channels", (long long)channels);
  }
  bool strict = input->dtype == GRAFT_F32 || input->dtype == GRAFT_BF16;
  return strict ? op_check_same_dtype(c, ARG_convolution_input, ARG_convolution_bias) : GRAFT_OK;
}

static graft_status infer_convolution(op_call *c) {
  const in_convolution in = in_convolution_of(c->args);
  int64_t sizes[CONV_DIMS + 2];
  graft_status status = infer_sizes(c, ARG_convolution_input, sizes);
  if (status) return status;
  status = check_bias(c, in.input, in.weight);
  c->compute = in.input->dtype;
  op_out_format(c, OUT, in.input->dtype, in.input->ndim, sizes, format_of(in.input, in.weight));
  return status;
}

static graft_status check_gradient(op_call *c, const int64_t *sizes) {
  const in_convolution_backward in = in_convolution_backward_of(c->args);
  if (!tns_has_sizes(in.grad_output, in.input->ndim, sizes))
    return op_error(c, "grad_output has not the shape of the convolution's result (%s)", op_show_tensors(c));
  return op_check_same_dtype(c, ARG_convolution_backward_grad_output, ARG_convolution_backward_input);
}

static void out_masked(op_call *c, int n, const graft_tensor *like, graft_memory_format format) {
  c->out[n] = (graft_meta){0};
  if (c->args[ARG_convolution_backward_output_mask].as.mask[n])
    op_out_format(c, n, like->dtype, like->ndim, like->sizes, format);
}

/* The results are the gradients of input, weight and bias. */
enum { TO_INPUT, TO_WEIGHT, TO_BIAS, GRADIENTS };

static graft_status infer_backward(op_call *c) {
  const in_convolution_backward in = in_convolution_backward_of(c->args);
  int64_t sizes[CONV_DIMS + 2];
  graft_status status = infer_sizes(c, ARG_convolution_backward_input, sizes);
  if (!status) status = check_gradient(c, sizes);
  if (status) return status;
  graft_memory_format format = format_of(in.input, in.weight);
  c->compute = in.input->dtype;
  out_masked(c, TO_INPUT, in.input, format);
  out_masked(c, TO_WEIGHT, in.weight, format);
  c->out[TO_BIAS] = (graft_meta){0};
  if (!in.output_mask[TO_BIAS]) return GRAFT_OK;
  int64_t channels = in.bias_sizes_count ? in.bias_sizes[0] : sizes[1];
  op_out(c, TO_BIAS, in.input->dtype, 1, &channels);
  return GRAFT_OK;
}

/* --- composing --- */

static graft_tensor *convolve(fx *s, const geometry *g, graft_tensor *x, graft_tensor *w, graft_tensor *bias) {
  uint32_t n = g->dims;
  return fx_convolution(s, x, w, bias, g->stride, n, g->padding, n, g->dilation, n, g->transposed, g->output_padding, n,
                        g->groups);
}

static void convolve_backward(fx *s, const geometry *g, graft_tensor *grad, graft_tensor *x, graft_tensor *w,
                              const bool wanted[GRADIENTS], graft_tensor *outs[GRADIENTS]) {
  uint32_t n = g->dims;
  const uint8_t mask[GRADIENTS] = {wanted[TO_INPUT], wanted[TO_WEIGHT], wanted[TO_BIAS]};
  for (int i = 0; i < GRADIENTS; i++) outs[i] = NULL;
  if (!grad) return;
  fx_convolution_backward(s, grad, x, w, &grad->sizes[1], 1, g->stride, n, g->padding, n, g->dilation, n, g->transposed,
                          g->output_padding, n, g->groups, mask, &outs[TO_INPUT], &outs[TO_WEIGHT], &outs[TO_BIAS]);
}

/* Pads or crops the spatial dims. */
static graft_tensor *pad(fx *s, graft_tensor *x, uint32_t dims, const int64_t *before, const int64_t *after) {
  int64_t list[2 * CONV_DIMS];
  bool any = false;
  for (uint32_t i = 0; i < dims; i++) {
    list[2 * i] = before[dims - 1 - i];
    list[2 * i + 1] = after[dims - 1 - i];
    any |= list[2 * i] || list[2 * i + 1];
  }
  return any ? fx_constant_pad_nd(s, x, list, 2 * dims, graft_scalar_int(0)) : x;
}

/* The first `sizes` elements of the spatial dims. */
static graft_tensor *crop(fx *s, graft_tensor *x, uint32_t dims, const int64_t *sizes) {
  for (uint32_t i = 0; x && i < dims; i++) {
    if (x->sizes[i + 2] != sizes[i]) x = fx_slice_Tensor(s, x, i + 2, NULL, &sizes[i], 1);
  }
  return x;
}

/* --- the decomposition of a plain convolution without padding: windows side by side, then one batched product --- */

/* Where tap `tap` of every window falls, as a view of the input. */
static graft_tensor *tap_view(fx *s, const geometry *g, graft_tensor *x, const graft_tensor *w, const int64_t *out,
                              int64_t tap) {
  for (int32_t i = (int32_t)g->dims - 1; i >= 0; i--) {
    int64_t start = tap % w->sizes[i + 2] * g->dilation[i], end = start + (out[i] - 1) * g->stride[i] + 1;
    x = fx_slice_Tensor(s, x, i + 2, &start, &end, g->stride[i]);
    tap /= w->sizes[i + 2];
  }
  return fx_unsqueeze(s, x, 2);
}

static graft_tensor *columns(fx *s, const geometry *g, graft_tensor *x, const graft_tensor *w, const int64_t *out,
                             int64_t taps) {
  graft_tensor **views = malloc((size_t)taps * sizeof *views);
  if (!views) {
    fx_fail(s, err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the taps of a convolution"));
    return NULL;
  }
  for (int64_t k = 0; k < taps; k++) views[k] = tap_view(s, g, x, w, out, k);
  graft_tensor *all = s->status ? NULL : taps == 1 ? views[0] : fx_cat(s, views, (uint32_t)taps, 2);
  free(views);
  return all;
}

static graft_tensor *by_product(fx *s, const geometry *g, graft_tensor *x, graft_tensor *w, const graft_meta *out) {
  int64_t n = x->sizes[0], groups = g->groups, positions = 1, taps = 1;
  for (uint32_t i = 0; i < g->dims; i++) positions *= out->sizes[i + 2], taps *= w->sizes[i + 2];
  int64_t channels = w->sizes[0] / groups, inner = w->sizes[1] * taps;
  graft_tensor *seen =
      fx_reshape(s, columns(s, g, x, w, out->sizes + 2, taps), 3, (int64_t[]){n * groups, inner, positions});
  w = fx_reshape(s, w, 4, (int64_t[]){1, groups, channels, inner});
  w = fx_expand(s, w, (int64_t[]){n, groups, channels, inner}, 4, false);
  w = fx_reshape(s, w, 3, (int64_t[]){n * groups, channels, inner});
  return fx_reshape(s, fx_bmm(s, w, seen), out->ndim, out->sizes);
}

/* --- of the others: tap by tap, over the places where it meets an element. Products with zeros in the padding, or
 * between the elements of a transposed one's input, would make NaN of infinities. Both grids and the weight are those
 * of kernels.c. --- */

/* What a tap relates: so many places of the coarse grid from `coarse` on, and every stride-th of the fine one from
 * `fine` on. */
typedef struct tap_range {
  int64_t coarse[CONV_DIMS], fine[CONV_DIMS], count[CONV_DIMS], places;
} tap_range;

static int64_t ceil_over(int64_t a, int64_t b) {
  return a > 0 ? (a + b - 1) / b : -(-a / b);
}

static int64_t count_of_taps(const graft_tensor *w) {
  int64_t taps = 1;
  for (int32_t i = 2; i < w->ndim; i++) taps *= w->sizes[i];
  return taps;
}

static tap_range range_of(const geometry *g, const graft_tensor *w, const int64_t *coarse, const int64_t *fine,
                          int64_t tap) {
  tap_range r = {.places = 1};
  for (int i = (int)g->dims - 1; i >= 0; i--) {
    int64_t shift = tap % w->sizes[i + 2] * g->dilation[i] - g->padding[i], last = fine[i] - 1 - shift;
    int64_t first = shift < 0 ? ceil_over(-shift, g->stride[i]) : 0;
    int64_t end = last < 0 ? 0 : last / g->stride[i] + 1;
    if (end > coarse[i]) end = coarse[i];
    r.coarse[i] = first;
    r.fine[i] = first * g->stride[i] + shift;
    r.count[i] = end > first ? end - first : 0;
    r.places *= r.count[i];
    tap /= w->sizes[i + 2];
  }
  return r;
}

/* Of the grid that steps by `step` (NULL: by 1) the places of a tap, [n * groups, channels, places]. */
static graft_tensor *places_of(fx *s, const geometry *g, graft_tensor *x, const int64_t *first, const int64_t *step,
                               const tap_range *r) {
  int64_t n = x->sizes[0], channels = x->sizes[1];
  for (uint32_t i = 0; i < g->dims; i++) {
    int64_t each = step ? step[i] : 1, end = first[i] + (r->count[i] - 1) * each + 1;
    x = fx_slice_Tensor(s, x, i + 2, &first[i], &end, each);
  }
  return fx_reshape(s, x, 3, (int64_t[]){n * g->groups, channels / g->groups, r->places});
}

/* The weight of a tap, [n * groups, coarse channels, fine channels]. */
static graft_tensor *weight_of(fx *s, const geometry *g, graft_tensor *w, int64_t n, int64_t tap) {
  int64_t channels = w->sizes[0] / g->groups, inner = w->sizes[1];
  w = fx_reshape(s, w, 4, (int64_t[]){g->groups, channels, inner, count_of_taps(w)});
  w = fx_unsqueeze(s, fx_select_int(s, w, 3, tap), 0);
  w = fx_expand(s, w, (int64_t[]){n, g->groups, channels, inner}, 4, false);
  return fx_reshape(s, w, 3, (int64_t[]){n * g->groups, channels, inner});
}

/* Zeros between the elements of a dim. */
static graft_tensor *spread(fx *s, graft_tensor *x, uint32_t dim, int64_t stride) {
  if (s->status || stride == 1) return x; /* what stands for x behind a failure has fewer dims */
  int32_t at = (int32_t)dim + 2, ndim = x->ndim;
  int64_t list[2 * CONV_DIMS + 2] = {0}, sizes[CONV_DIMS + 2], size = (x->sizes[at] - 1) * stride + 1;
  for (int32_t i = 0; i < ndim; i++) sizes[i] = x->sizes[i] * (i == at ? stride : 1);
  uint32_t pairs = (uint32_t)(ndim - at);
  list[2 * pairs - 1] = stride - 1;
  graft_tensor *wide = fx_constant_pad_nd(s, fx_unsqueeze(s, x, at + 1), list, 2 * pairs, graft_scalar_int(0));
  return fx_slice_Tensor(s, fx_reshape(s, wide, ndim, sizes), at, NULL, &size, 1);
}

/* What a tap gives, among zeros, where it belongs in the result. */
static graft_tensor *placed(fx *s, const geometry *g, graft_tensor *part, const int64_t *sizes, const tap_range *r,
                            bool to_fine) {
  int64_t own[CONV_DIMS + 2] = {sizes[0], sizes[1]}, after[CONV_DIMS];
  const int64_t *before = to_fine ? r->fine : r->coarse;
  for (uint32_t i = 0; i < g->dims; i++) own[i + 2] = r->count[i];
  part = fx_reshape(s, part, (int32_t)g->dims + 2, own);
  for (uint32_t i = 0; i < g->dims; i++) {
    int64_t step = to_fine ? g->stride[i] : 1;
    part = spread(s, part, i, step);
    after[i] = sizes[i + 2] - before[i] - ((r->count[i] - 1) * step + 1);
  }
  return pad(s, part, g->dims, before, after);
}

static graft_tensor *by_taps(fx *s, const geometry *g, graft_tensor *x, graft_tensor *w, const graft_meta *out) {
  const bool to_fine = g->transposed;
  const int64_t *coarse = to_fine ? x->sizes + 2 : out->sizes + 2, *fine = to_fine ? out->sizes + 2 : x->sizes + 2;
  graft_tensor *sum = NULL;
  for (int64_t k = 0, taps = count_of_taps(w); !s->status && k < taps; k++) {
    tap_range r = range_of(g, w, coarse, fine, k);
    if (!r.places) continue;
    graft_tensor *weight = weight_of(s, g, w, x->sizes[0], k);
    graft_tensor *seen = places_of(s, g, x, to_fine ? r.coarse : r.fine, to_fine ? NULL : g->stride, &r);
    graft_tensor *part = fx_bmm(s, to_fine ? fx_transpose(s, weight, 1, 2) : weight, seen);
    part = placed(s, g, part, out->sizes, &r, to_fine);
    sum = sum ? fx_add(s, sum, part) : part;
  }
  return sum || s->status ? sum : fx_filled(s, x, out->ndim, out->sizes, 0, x->dtype);
}

static void decompose_convolution(fx *s, const op_call *c, graft_tensor **outs) {
  const in_convolution in = in_convolution_of(c->args);
  geometry g = geometry_of(c->args);
  graft_tensor *x = in.input, *w = in.weight;
  bool padded = false;
  for (uint32_t i = 0; i < g.dims; i++) padded |= g.padding[i] > 0;
  outs[OUT] = (g.transposed || padded ? by_taps : by_product)(s, &g, x, w, &c->out[OUT]);
  if (!in.bias) return;
  int64_t sizes[CONV_DIMS + 2] = {1, in.bias->sizes[0], 1, 1, 1};
  outs[OUT] = fx_add(s, outs[OUT], fx_reshape(s, in.bias, x->ndim, sizes));
}

/* --- of the backward: both gradients are convolutions --- */

static graft_tensor *input_gradient(fx *s, const geometry *g, graft_tensor *grad, const graft_tensor *x,
                                    graft_tensor *w) {
  int64_t extra[CONV_DIMS] = {0};
  geometry turned = *g;
  turned.transposed = !g->transposed;
  turned.output_padding = extra;
  for (uint32_t i = 0; turned.transposed && i < g->dims; i++) {
    extra[i] = x->sizes[i + 2] - ((grad->sizes[i + 2] - 1) * g->stride[i] - 2 * g->padding[i] + span(g, w, i));
  }
  return crop(s, convolve(s, &turned, grad, w, NULL), g->dims, x->sizes + 2);
}

/* A factor of the weight's gradient, [groups, channels, n * places]. */
static graft_tensor *factor_of(fx *s, const geometry *g, graft_tensor *x, const int64_t *first, const int64_t *step,
                               const tap_range *r) {
  int64_t n = x->sizes[0], channels = x->sizes[1] / g->groups;
  x = fx_reshape(s, places_of(s, g, x, first, step, r), 4, (int64_t[]){n, g->groups, channels, r->places});
  x = fx_transpose(s, fx_transpose(s, x, 0, 1), 1, 2);
  return fx_reshape(s, x, 3, (int64_t[]){g->groups, channels, n * r->places});
}

static graft_tensor *tap_gradient(fx *s, const geometry *g, graft_tensor *coarse, graft_tensor *fine,
                                  const graft_tensor *w, int64_t tap) {
  tap_range r = range_of(g, w, coarse->sizes + 2, fine->sizes + 2, tap);
  int64_t sizes[] = {g->groups, w->sizes[0] / g->groups, w->sizes[1]};
  if (!r.places) return fx_unsqueeze(s, fx_filled(s, coarse, 3, sizes, 0, coarse->dtype), 3);
  graft_tensor *seen = fx_transpose(s, factor_of(s, g, fine, r.fine, g->stride, &r), 1, 2);
  return fx_unsqueeze(s, fx_bmm(s, factor_of(s, g, coarse, r.coarse, NULL, &r), seen), 3);
}

static graft_tensor *weight_gradient(fx *s, const geometry *g, graft_tensor *grad, graft_tensor *x,
                                     const graft_tensor *w) {
  graft_tensor *fine = g->transposed ? grad : x, *coarse = g->transposed ? x : grad;
  int64_t taps = count_of_taps(w);
  graft_tensor **parts = malloc((size_t)taps * sizeof *parts);
  if (!parts) {
    fx_fail(s, err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the taps of a convolution"));
    return NULL;
  }
  for (int64_t k = 0; k < taps; k++) parts[k] = s->status ? NULL : tap_gradient(s, g, coarse, fine, w, k);
  graft_tensor *all = s->status ? NULL : taps == 1 ? parts[0] : fx_cat(s, parts, (uint32_t)taps, 3);
  free(parts);
  return s->status ? NULL : fx_reshape(s, all, w->ndim, w->sizes);
}

/* Sums over nothing: of an empty batch, or of no channels. */
static graft_tensor *zeros_like(fx *s, graft_tensor *t) {
  return fx_full_like(s, t, graft_scalar_int(0), GRAFT_DTYPE_NONE, NULL, GRAFT_FORMAT_PRESERVE);
}

static void decompose_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_convolution_backward in = in_convolution_backward_of(c->args);
  geometry g = geometry_of(&c->args[ARG_convolution_backward_input]);
  graft_tensor *grad = in.grad_output, *x = in.input, *w = in.weight;
  bool nothing = !grad->numel || !x->numel || !w->numel;
  if (c->out_wanted[TO_INPUT]) outs[TO_INPUT] = nothing ? zeros_like(s, x) : input_gradient(s, &g, grad, x, w);
  if (c->out_wanted[TO_WEIGHT] && nothing) outs[TO_WEIGHT] = zeros_like(s, w);
  if (c->out_wanted[TO_WEIGHT] && !nothing) outs[TO_WEIGHT] = s->status ? NULL : weight_gradient(s, &g, grad, x, w);
  if (c->out_wanted[TO_BIAS]) outs[TO_BIAS] = fx_sum(s, grad, ((1u << grad->ndim) - 1) & ~2u, false);
}

/* --- gradients --- */

static void vjp_convolution(op_vjp *v) {
  const in_convolution in = in_convolution_of(v->args);
  geometry g = geometry_of(v->args);
  bool wanted[GRADIENTS] = {vjp_needs(v, ARG_convolution_input), vjp_needs(v, ARG_convolution_weight),
                            vjp_needs(v, ARG_convolution_bias)};
  convolve_backward(v->s, &g, v->g[OUT], in.input, in.weight, wanted, v->results);
}

static graft_tensor *plus(fx *s, graft_tensor *a, graft_tensor *b) {
  return a && b ? fx_add(s, a, b) : a ? a : b;
}

/* The backward is linear in the gradient and in each of input and weight, so that its own gradients are convolutions
 * and backwards of the same geometry. */
static void vjp_backward(op_vjp *v) {
  const in_convolution_backward in = in_convolution_backward_of(v->args);
  static const bool input_only[GRADIENTS] = {[TO_INPUT] = true}, weight_only[GRADIENTS] = {[TO_WEIGHT] = true};
  geometry g = geometry_of(&v->args[ARG_convolution_backward_input]);
  graft_tensor *grad = in.grad_output, *x = in.input, *w = in.weight, *outs[GRADIENTS];
  graft_tensor *to_x = v->g[TO_INPUT], *to_w = v->g[TO_WEIGHT], *to_bias = v->g[TO_BIAS];
  if (vjp_needs(v, ARG_convolution_backward_grad_output)) {
    graft_tensor *sum = to_x ? convolve(v->s, &g, to_x, w, NULL) : NULL;
    if (to_w) sum = plus(v->s, sum, convolve(v->s, &g, x, to_w, NULL));
    if (to_bias) {
      int64_t sizes[CONV_DIMS + 2] = {1, to_bias->sizes[0], 1, 1, 1};
      graft_tensor *spread_out = fx_reshape(v->s, to_bias, grad->ndim, sizes);
      sum = plus(v->s, sum, fx_expand(v->s, spread_out, grad->sizes, (uint32_t)grad->ndim, false));
    }
    v->results[ARG_convolution_backward_grad_output] = sum;
  }
  if (vjp_needs(v, ARG_convolution_backward_input) && to_w) {
    convolve_backward(v->s, &g, grad, x, to_w, input_only, outs);
    v->results[ARG_convolution_backward_input] = outs[TO_INPUT];
  }
  if (vjp_needs(v, ARG_convolution_backward_weight) && to_x) {
    convolve_backward(v->s, &g, grad, to_x, w, weight_only, outs);
    v->results[ARG_convolution_backward_weight] = outs[TO_WEIGHT];
  }
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(convolution),
     .roles = "vvv",
     .infer = infer_convolution,
     .decompose = decompose_convolution,
     .vjp = vjp_convolution,
     .saves = OP_SAVE_ARGS(convolution, input, weight)},
    {.op_id = OP_WITH_KERNEL(convolution_backward),
     .roles = "vvv",
     .infer = infer_backward,
     .decompose = decompose_backward,
     .vjp = vjp_backward,
     .saves = OP_SAVE_ARGS(convolution_backward, grad_output, input, weight)},
};
OP_TABLE(convolution, defs)
