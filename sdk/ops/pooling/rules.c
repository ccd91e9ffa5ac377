/* Pooling: rules, decompositions, gradients. Kernels are in pooling_kernels.c. */
#include "ops/pooling/pooling.h"

#include "ops/core/families.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

static graft_status pair(op_call *c, int arg, int64_t lowest) {
  const graft_value *list = &c->args[arg];
  const char *name = c->schema->args[arg].name;
  if (list->count != 2) return op_error(c, "%s has %u numbers; expected one or two", name, list->count);
  for (int i = 0; i < 2; i++) {
    if (list->as.ints[i] >= lowest) continue;
    return op_error(c, "%s holds %lld; expected at least %lld", name, (long long)list->as.ints[i], (long long)lowest);
  }
  return GRAFT_OK;
}

/* Kernel, stride, padding and (where there is one) dilation stand from argument `first` on; no stride means the kernel.
 */
typedef struct windows {
  const int64_t *kernel, *stride, *padding, *dilation;
  bool ceil;
} windows;

static graft_status infer_windows(op_call *c, int first, bool dilated, windows *w) {
  static const int64_t ones[2] = {1, 1};
  graft_status status = pair(c, first, 1);
  if (!status && !c->args[first + 1].count) status = op_set_ints(c, first + 1, c->args[first].as.ints, 2);
  if (!status) status = pair(c, first + 1, 1);
  if (!status) status = pair(c, first + 2, 0);
  if (!status && dilated) status = pair(c, first + 3, 1);
  const graft_value *args = c->args + first;
  *w = (windows){args[0].as.ints, args[1].as.ints, args[2].as.ints, dilated ? args[3].as.ints : ones,
                 op_bool(c, first + 3 + dilated)};
  for (int i = 0; !status && i < 2; i++) {
    if (w->padding[i] <= w->kernel[i] / 2) continue;
    status = op_error(c, "padding %lld is more than half of kernel size %lld", (long long)w->padding[i],
                      (long long)w->kernel[i]);
  }
  return status;
}

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t pooled_size(const windows *w, int i, int64_t size) {
  int64_t room = size + 2 * w->padding[i] - w->dilation[i] * (w->kernel[i] - 1) - 1;
  int64_t out = floor_div(room + (w->ceil ? w->stride[i] - 1 : 0), w->stride[i]) + 1;
  /* The last window begins inside the input or the padding before it. */
  if (w->ceil && (out - 1) * w->stride[i] >= size + w->padding[i]) out--;
  return out;
}

/* The result's sizes for the input that is argument `arg`. */
static graft_status infer_sizes(op_call *c, int arg, const windows *w, int64_t *sizes) {
  const graft_tensor *self = op_tensor(c, arg);
  bool fits = self->ndim == 3 || self->ndim == 4;
  for (int32_t i = self->ndim == 4; fits && i < self->ndim; i++) fits = self->sizes[i] > 0;
  if (!fits) {
    return op_error(c, "%s is %s; expected rank 3 or 4, empty in the batch at most", c->schema->args[arg].name,
                    op_show(c, arg));
  }
  for (int32_t i = 0; i < self->ndim - 2; i++) sizes[i] = self->sizes[i];
  for (int i = 0; i < 2; i++) {
    int64_t *size = &sizes[self->ndim - 2 + i];
    *size = pooled_size(w, i, self->sizes[self->ndim - 2 + i]);
    if (*size < 1) return op_error(c, "the result would have a size of %lld (%s)", (long long)*size, op_show(c, arg));
  }
  return GRAFT_OK;
}

static void out_pooled(op_call *c, int n, graft_dtype dtype, const int64_t *sizes) {
  const graft_tensor *self = op_tensor(c, 0);
  op_out_format(c, n, dtype, self->ndim, sizes, tns_suggest_format(self));
}

/* max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode) -> (values, positions in a plane) */
static graft_status infer_max(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  if (dt_is_complex(self->dtype) || self->dtype == GRAFT_BOOL)
    return op_refuse_dtype(c, 0, "a floating or integer dtype");
  windows w;
  int64_t sizes[4];
  graft_status status = infer_windows(c, 1, true, &w);
  if (!status) status = infer_sizes(c, 0, &w, sizes);
  if (status) return status;
  c->compute = self->dtype;
  out_pooled(c, 0, self->dtype, sizes);
  out_pooled(c, 1, GRAFT_I64, sizes);
  return GRAFT_OK;
}

static graft_status average_dtype(op_call *c, int arg) {
  graft_dtype dtype = op_tensor(c, arg)->dtype;
  return dt_is_float(dtype) || dtype == GRAFT_I64 ? GRAFT_OK : op_refuse_dtype(c, arg, "a floating dtype or i64");
}

static graft_status average_divisor(const op_call *c, int arg) {
  if (op_absent(c, arg) || op_int(c, arg)) return GRAFT_OK;
  return op_error(c, "divisor_override is 0");
}

/* avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) */
static graft_status infer_avg(op_call *c) {
  windows w;
  int64_t sizes[4];
  graft_status status = average_dtype(c, 0);
  if (!status) status = infer_windows(c, 1, false, &w);
  if (!status) status = average_divisor(c, 6);
  if (!status) status = infer_sizes(c, 0, &w, sizes);
  if (status) return status;
  c->compute = op_tensor(c, 0)->dtype;
  out_pooled(c, 0, c->compute, sizes);
  return GRAFT_OK;
}

/* grad_output and self of a backward, and the result like self. */
static graft_status infer_backward(op_call *c, const windows *w) {
  const graft_tensor *grad = op_tensor(c, 0), *self = op_tensor(c, 1);
  int64_t sizes[4];
  graft_status status = infer_sizes(c, 1, w, sizes);
  if (status) return status;
  bool same = grad->ndim == self->ndim;
  for (int32_t i = 0; same && i < grad->ndim; i++) same = grad->sizes[i] == sizes[i];
  if (!same) return op_error(c, "grad_output has not the shape of the pooled self (%s)", op_show_tensors(c));
  if (grad->dtype != self->dtype) return op_error(c, "grad_output and self differ in dtype (%s)", op_show_tensors(c));
  c->compute = self->dtype;
  op_out_format(c, 0, self->dtype, self->ndim, self->sizes, tns_suggest_format(self));
  return GRAFT_OK;
}

/* avg_pool2d_backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
 */
static graft_status infer_avg_backward(op_call *c) {
  windows w;
  graft_status status = average_dtype(c, 1);
  if (!status) status = infer_windows(c, 2, false, &w);
  if (!status) status = average_divisor(c, 7);
  return status ? status : infer_backward(c, &w);
}

/* max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices) */
static graft_status infer_max_backward(op_call *c) {
  const graft_tensor *grad = op_tensor(c, 0), *indices = op_tensor(c, 7);
  windows w;
  if (!dt_is_float(op_tensor(c, 1)->dtype)) return op_refuse_dtype(c, 1, "a floating dtype");
  graft_status status = infer_windows(c, 2, true, &w);
  if (!status) status = infer_backward(c, &w);
  if (status) return status;
  bool same = indices->ndim == grad->ndim && indices->dtype == GRAFT_I64;
  for (int32_t i = 0; same && i < grad->ndim; i++) same = indices->sizes[i] == grad->sizes[i];
  return same ? GRAFT_OK : op_error(c, "indices is %s; expected i64 in grad_output's shape", op_show(c, 7));
}

/* --- averages as convolutions with ones --- */

static graft_tensor *ones(fx *s, graft_tensor *like, int64_t rows, int64_t columns) {
  return fx_filled(s, like, 4, (int64_t[]){1, 1, rows, columns}, 1, like ? like->dtype : GRAFT_F32);
}

/* Each plane as a batch of one channel. */
static graft_tensor *as_planes(fx *s, graft_tensor *x) {
  if (s->status || !x) return NULL;
  const int64_t *plane = x->sizes + x->ndim - 2;
  return fx_reshape(s, x, 4, (int64_t[]){x->numel / (plane[0] * plane[1]), 1, plane[0], plane[1]});
}

static graft_tensor *pad(fx *s, graft_tensor *x, const int64_t before[2], const int64_t after[2], int64_t value) {
  if (!before[0] && !before[1] && !after[0] && !after[1]) return x;
  const int64_t list[4] = {before[1], after[1], before[0], after[0]};
  return fx_constant_pad_nd(s, x, list, 4, graft_scalar_int(value));
}

static graft_tensor *sum_windows(fx *s, const windows *w, graft_tensor *x, bool transposed) {
  static const int64_t zero[2], one[2] = {1, 1};
  return fx_convolution(s, x, ones(s, x, w->kernel[0], w->kernel[1]), NULL, w->stride, 2, zero, 2, one, 2, transposed,
                        zero, 2, 1);
}

/* What the last windows reach beyond the padded input, which may also be larger than all windows. */
static void overhang(const windows *w, const int64_t *size, const int64_t *out, int64_t *more) {
  for (int i = 0; i < 2; i++) more[i] = (out[i] - 1) * w->stride[i] + w->kernel[i] - (size[i] + 2 * w->padding[i]);
}

/* How many elements each window counts, [1, 1, rows, columns]; padding counts or not, the overhang never. */
static graft_tensor *window_counts(fx *s, const windows *w, graft_tensor *like, const int64_t *size,
                                   const int64_t *more, bool count_padding) {
  static const int64_t zero[2];
  graft_tensor *inside = pad(s, ones(s, like, size[0], size[1]), w->padding, w->padding, count_padding);
  graft_tensor *counts = sum_windows(s, w, pad(s, inside, zero, more, 0), false);
  return fx_binary(s, GRAFT_OP_MAXIMUM, fx_tensor(counts), fx_number(graft_scalar_int(1)));
}

/* x by the divisor of each window; args are count_include_pad and divisor_override. */
static graft_tensor *by_divisor(fx *s, const windows *w, graft_tensor *x, const graft_value *args, const int64_t *size,
                                const int64_t *more) {
  bool whole = more[0] <= 0 && more[1] <= 0 && (args[0].as.i || (!w->padding[0] && !w->padding[1]));
  graft_value divisor = fx_number(graft_scalar_int(w->kernel[0] * w->kernel[1]));
  if (args[1].kind == GRAFT_VALUE_INT)
    divisor = fx_number(graft_scalar_int(args[1].as.i));
  else if (!whole)
    divisor = fx_tensor(window_counts(s, w, x, size, more, args[0].as.i != 0));
  if (s->status || !x) return NULL;
  if (dt_is_float(x->dtype)) return fx_binary(s, GRAFT_OP_DIV_TENSOR, fx_tensor(x), divisor);
  graft_tensor *out;
  graft_value mode = {GRAFT_VALUE_STR, 0, {.str = "trunc"}};
  fx_call(s, GRAFT_OP_DIV_TENSOR_MODE, (graft_value[]){fx_tensor(x), divisor, mode}, 3, &out, 1);
  return out;
}

static windows windows_of(const graft_value *args) {
  return (windows){args[0].as.ints, args[1].as.ints, args[2].as.ints, NULL, args[3].as.i != 0};
}

static void decompose_avg(fx *s, const op_call *c, graft_tensor **outs) {
  windows w = windows_of(c->args + 1);
  graft_tensor *self = op_tensor(c, 0);
  const graft_meta *out = &c->out[0];
  const int64_t *size = self->sizes + self->ndim - 2;
  int64_t more[2], after[2];
  overhang(&w, size, out->sizes + out->ndim - 2, more);
  for (int i = 0; i < 2; i++) after[i] = w.padding[i] + more[i];
  graft_tensor *sums = sum_windows(s, &w, pad(s, as_planes(s, self), w.padding, after, 0), false);
  outs[0] = fx_reshape(s, by_divisor(s, &w, sums, c->args + 5, size, more), out->ndim, out->sizes);
}

static void decompose_avg_backward(fx *s, const op_call *c, graft_tensor **outs) {
  windows w = windows_of(c->args + 2);
  graft_tensor *grad = op_tensor(c, 0), *self = op_tensor(c, 1);
  const int64_t *size = self->sizes + self->ndim - 2;
  int64_t more[2], before[2], after[2];
  overhang(&w, size, grad->sizes + grad->ndim - 2, more);
  for (int i = 0; i < 2; i++) {
    before[i] = -w.padding[i];
    after[i] = -w.padding[i] - more[i];
  }
  graft_tensor *shares = by_divisor(s, &w, as_planes(s, grad), c->args + 6, size, more);
  outs[0] = fx_reshape(s, pad(s, sum_windows(s, &w, shares, true), before, after, 0), self->ndim, self->sizes);
}

/* --- max: gradients go where the indices say --- */

/* The last two dims as one. */
static graft_tensor *flat_planes(fx *s, graft_tensor *x) {
  if (s->status || !x) return NULL;
  int64_t sizes[3] = {x->sizes[0], x->sizes[1]};
  sizes[x->ndim - 2] = x->sizes[x->ndim - 2] * x->sizes[x->ndim - 1];
  return fx_reshape(s, x, x->ndim - 1, sizes);
}

static void decompose_max_backward(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *grad = op_tensor(c, 0), *self = op_tensor(c, 1), *indices = op_tensor(c, 7);
  graft_tensor *zeros = flat_planes(s, fx_filled(s, grad, self->ndim, self->sizes, 0, grad->dtype));
  graft_tensor *sums = fx_scatter_add(s, zeros, -1, flat_planes(s, indices), flat_planes(s, grad));
  outs[0] = fx_reshape(s, sums, self->ndim, self->sizes);
}

static void vjp_max_backward(op_vjp *v) {
  graft_tensor *grad = vjp_arg(v, 0), *indices = vjp_arg(v, 7);
  if (vjp_needs(v, 0)) {
    graft_tensor *picked = fx_gather(v->s, flat_planes(v->s, v->g[0]), -1, flat_planes(v->s, indices), false);
    v->results[0] = fx_reshape(v->s, picked, grad->ndim, grad->sizes);
  }
  if (vjp_needs(v, 1)) v->results[1] = fx_zeros_like(v->s, v->g[0]);
}

/* --- gradients of the others: calls of each other with the same windows --- */

enum { LONGEST = 8 };

static graft_tensor *call_backward(op_vjp *v, uint32_t op_id, uint32_t rest, const graft_tensor *indices) {
  graft_value args[LONGEST] = {fx_tensor(v->g[0]), v->args[0]};
  for (uint32_t i = 0; i < rest; i++) args[2 + i] = v->args[1 + i];
  uint32_t count = 2 + rest;
  if (indices) args[count++] = fx_tensor((graft_tensor *)indices);
  graft_tensor *out;
  fx_call(v->s, op_id, args, count, &out, 1);
  return out;
}

static void vjp_max(op_vjp *v) {
  if (v->g[0]) v->results[0] = call_backward(v, GRAFT_OP_MAX_POOL2D_WITH_INDICES_BACKWARD, 5, v->outs[1]);
}

static void vjp_avg(op_vjp *v) {
  v->results[0] = call_backward(v, GRAFT_OP_AVG_POOL2D_BACKWARD, 6, NULL);
}

static void vjp_avg_backward(op_vjp *v) {
  if (vjp_needs(v, 0)) {
    graft_value args[LONGEST - 1] = {fx_tensor(v->g[0])};
    for (uint32_t i = 1; i < LONGEST - 1; i++) args[i] = v->args[1 + i];
    fx_call(v->s, GRAFT_OP_AVG_POOL2D, args, LONGEST - 1, &v->results[0], 1);
  }
  if (vjp_needs(v, 1)) v->results[1] = fx_zeros_like(v->s, v->g[0]);
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_MAX_POOL2D_WITH_INDICES,
     .roles = "v",
     .infer = infer_max,
     .vjp = vjp_max,
     .saves = OP_SAVE_ARG(0) | OP_SAVE_OUT(1),
     .reference = OP_REF(max_pool2d_with_indices)},
    {.op_id = GRAFT_OP_MAX_POOL2D_WITH_INDICES_BACKWARD,
     .roles = "vvi",
     .infer = infer_max_backward,
     .decompose = decompose_max_backward,
     .vjp = vjp_max_backward,
     .saves = OP_SAVE_ARG(7),
     .reference = OP_REF(max_pool2d_with_indices_backward)},
    {.op_id = GRAFT_OP_AVG_POOL2D,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_avg,
     .decompose = decompose_avg,
     .vjp = vjp_avg,
     .saves = OP_SAVE_ARG(0),
     .reference = OP_REF(avg_pool2d)},
    {.op_id = GRAFT_OP_AVG_POOL2D_BACKWARD,
     .roles = "vv",
     .infer = infer_avg_backward,
     .decompose = decompose_avg_backward,
     .vjp = vjp_avg_backward,
     .reference = OP_REF(avg_pool2d_backward)},
};
OP_TABLE(pooling, defs)
