/* Pooling: rules, reference kernels, decompositions, gradients. The arguments of a backward op from self on are those
 * of its forward op. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
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

/* What the ops have in common; no stride means the kernel. */
typedef struct windows {
  const int64_t *kernel, *stride, *padding, *dilation;
  bool ceil;
} windows;

static const int64_t no_dilation[2] = {1, 1};

static windows windows_of_max(const graft_value *args) {
  const in_max_pool2d_with_indices in = in_max_pool2d_with_indices_of(args);
  return (windows){in.kernel_size, in.stride, in.padding, in.dilation, in.ceil_mode};
}
static windows windows_of_avg(const graft_value *args) {
  const in_avg_pool2d in = in_avg_pool2d_of(args);
  return (windows){in.kernel_size, in.stride, in.padding, no_dilation, in.ceil_mode};
}

/* kernel_size, stride and padding stand behind self, which is argument `at`, in average and maximum alike. */
static graft_status infer_windows(op_call *c, int at, bool dilated, windows *w) {
  int kernel = at + ARG_avg_pool2d_kernel_size, stride = at + ARG_avg_pool2d_stride;
  graft_status status = pair(c, kernel, 1);
  if (!status && !c->args[stride].count) status = op_set_ints(c, stride, c->args[kernel].as.ints, 2);
  if (!status) status = pair(c, stride, 1);
  if (!status) status = pair(c, at + ARG_avg_pool2d_padding, 0);
  if (!status && dilated) status = pair(c, at + ARG_max_pool2d_with_indices_dilation, 1);
  *w = (dilated ? windows_of_max : windows_of_avg)(&c->args[at]);
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
    return op_refuse(c, arg, "rank 3 or 4, empty in the batch at most");
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
  const graft_tensor *self = op_tensor(c, ARG_avg_pool2d_self);
  op_out_format(c, n, dtype, self->ndim, sizes, tns_suggest_format(self));
}

/* The results: values, and their positions in a plane. */
static graft_status infer_max(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_max_pool2d_with_indices_self);
  if (dt_is_complex(self->dtype) || self->dtype == GRAFT_BOOL)
    return op_refuse(c, ARG_max_pool2d_with_indices_self, "a floating or integer dtype");
  windows w;
  int64_t sizes[4];
  graft_status status = infer_windows(c, ARG_max_pool2d_with_indices_self, true, &w);
  if (!status) status = infer_sizes(c, ARG_max_pool2d_with_indices_self, &w, sizes);
  if (status) return status;
  c->compute = self->dtype;
  out_pooled(c, OUT_max_pool2d_with_indices_out0, self->dtype, sizes);
  out_pooled(c, OUT_max_pool2d_with_indices_out1, GRAFT_I64, sizes);
  return GRAFT_OK;
}

static graft_status average_dtype(op_call *c, int arg) {
  graft_dtype dtype = op_tensor(c, arg)->dtype;
  return dt_is_float(dtype) || dtype == GRAFT_I64 ? GRAFT_OK : op_refuse(c, arg, "a floating dtype or i64");
}

static graft_status average_divisor(const op_call *c, int arg) {
  if (op_absent(c, arg) || op_int(c, arg)) return GRAFT_OK;
  return op_error(c, "divisor_override is 0");
}

static graft_status infer_avg(op_call *c) {
  windows w;
  int64_t sizes[4];
  graft_status status = average_dtype(c, ARG_avg_pool2d_self);
  if (!status) status = infer_windows(c, ARG_avg_pool2d_self, false, &w);
  if (!status) status = average_divisor(c, ARG_avg_pool2d_divisor_override);
  if (!status) status = infer_sizes(c, ARG_avg_pool2d_self, &w, sizes);
  if (status) return status;
  c->compute = op_tensor(c, ARG_avg_pool2d_self)->dtype;
  out_pooled(c, OUT, c->compute, sizes);
  return GRAFT_OK;
}

/* grad_output and self of a backward, and the result like self. */
static graft_status infer_backward(op_call *c, const windows *w) {
  const graft_tensor *grad = op_tensor(c, ARG_avg_pool2d_backward_grad_output),
                     *self = op_tensor(c, ARG_avg_pool2d_backward_self);
  int64_t sizes[4];
  graft_status status = infer_sizes(c, ARG_avg_pool2d_backward_self, w, sizes);
  if (status) return status;
  if (!tns_has_sizes(grad, self->ndim, sizes))
    return op_error(c, "grad_output has not the shape of the pooled self (%s)", op_show_tensors(c));
  status = op_check_same_dtype(c, ARG_avg_pool2d_backward_grad_output, ARG_avg_pool2d_backward_self);
  if (status) return status;
  c->compute = self->dtype;
  op_out_format(c, OUT, self->dtype, self->ndim, self->sizes, tns_suggest_format(self));
  return GRAFT_OK;
}

static graft_status infer_avg_backward(op_call *c) {
  windows w;
  graft_status status = average_dtype(c, ARG_avg_pool2d_backward_self);
  if (!status) status = infer_windows(c, ARG_avg_pool2d_backward_self, false, &w);
  if (!status) status = average_divisor(c, ARG_avg_pool2d_backward_divisor_override);
  return status ? status : infer_backward(c, &w);
}

static graft_status infer_max_backward(op_call *c) {
  const in_max_pool2d_with_indices_backward in = in_max_pool2d_with_indices_backward_of(c->args);
  windows w;
  if (!dt_is_float(in.self->dtype)) return op_refuse(c, ARG_max_pool2d_with_indices_backward_self, "a floating dtype");
  graft_status status = infer_windows(c, ARG_max_pool2d_with_indices_backward_self, true, &w);
  if (!status) status = infer_backward(c, &w);
  if (status) return status;
  bool same = in.indices->dtype == GRAFT_I64 && tns_same_sizes(in.indices, in.grad_output);
  return same ? GRAFT_OK : op_refuse(c, ARG_max_pool2d_with_indices_backward_indices, "i64 in grad_output's shape");
}

/* --- kernels: tensors are dense here, planes of height x width, whatever the rank --- */

typedef struct planes {
  int64_t count, size[2], pooled[2]; /* size of the input's planes and of the result's */
} planes;

static planes planes_of(const graft_tensor_desc *in, const graft_tensor_desc *out) {
  int32_t ndim = in->dl.ndim;
  const int64_t *i = in->dl.shape + ndim - 2, *o = out->dl.shape + ndim - 2;
  planes p = {1, {i[0], i[1]}, {o[0], o[1]}};
  for (int32_t d = 0; d < ndim - 2; d++) p.count *= in->dl.shape[d];
  return p;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* --- max --- */

/* First and end of the rows (or columns) that a window sees, stepping by the dilation. */
typedef struct reach {
  int64_t first, end, step;
} reach;

static reach reach_of(const graft_args_max_pool2d_with_indices *a, const planes *p, int dim, int64_t at) {
  int64_t step = a->dilation.items[dim], first = at * a->stride.items[dim] - a->padding.items[dim];
  int64_t end = least(first + (a->kernel_size.items[dim] - 1) * step + 1, p->size[dim]);
  while (first < 0) first += step;
  return (reach){first, end, step};
}

/* The position of the first of the largest; a NaN counts as larger than all before it. Where wide dilation steps over
 * the whole plane, the window's corner, and -infinity. */
static int64_t largest(const ref_real *plane, int64_t width, reach rows, reach columns, ref_real *value_of) {
  int64_t best = rows.first * width + columns.first;
  ref_real most = -INFINITY;
  for (int64_t y = rows.first; y < rows.end; y += rows.step) {
    for (int64_t x = columns.first; x < columns.end; x += columns.step) {
      ref_real value = plane[y * width + x];
      if (!(value > most) && !isnan(value)) continue;
      most = value;
      best = y * width + x;
    }
  }
  *value_of = most;
  return best;
}

graft_status kernel_max_pool2d_with_indices(const graft_exec *exec, const graft_args_max_pool2d_with_indices *a) {
  planes p = planes_of(a->self, a->out0);
  int64_t size = p.size[0] * p.size[1];
  REF_OWNED ref_array x = ref_read(a->self), values = ref_new(ref_numel(a->out0), false),
                      indices = ref_new(values.count, false);
  if (!(x.re && values.re && indices.re)) return ref_no_memory();
  for (int64_t i = 0; i < values.count; i++) {
    const ref_real *plane = x.re + i / (p.pooled[0] * p.pooled[1]) * size;
    reach rows = reach_of(a, &p, 0, i / p.pooled[1] % p.pooled[0]), columns = reach_of(a, &p, 1, i % p.pooled[1]);
    indices.re[i] = (ref_real)largest(plane, p.size[1], rows, columns, &values.re[i]);
  }
  ref_write(a->out0, &values);
  ref_write(a->out1, &indices);
  return GRAFT_OK;
}

graft_status kernel_max_pool2d_with_indices_backward(const graft_exec *exec,
                                                     const graft_args_max_pool2d_with_indices_backward *a) {
  planes p = planes_of(a->self, a->grad_output);
  int64_t size = p.size[0] * p.size[1], windows = p.pooled[0] * p.pooled[1];
  graft_dtype dtype = a->out->dl.dtype;
  REF_OWNED ref_array grad = ref_read(a->grad_output), indices = ref_read(a->indices),
                      out = ref_new(ref_numel(a->out), false);
  graft_status status = grad.re && indices.re && out.re ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < grad.count; i++) {
    int64_t at = (int64_t)indices.re[i];
    if (at < 0 || at >= size) {
      status = err_about(GRAFT_OUT_OF_RANGE, "aten::max_pool2d_with_indices_backward",
                         "index %lld is out of range for a plane of %lld", (long long)at, (long long)size);
      break;
    }
    ref_add(dtype, &out.re[i / windows * size + at], grad.re[i]);
  }
  if (!status) ref_write(a->out, &out);
  return status;
}

/* --- average --- */

typedef struct average {
  graft_int_list kernel, stride, padding;
  bool count_padding;
  const int64_t *divisor;
} average;

typedef struct window {
  int64_t first[2], end[2]; /* inside the plane; empty where end <= first */
  ref_real divisor;
} window;

static window window_of(const average *a, const planes *p, int64_t row, int64_t column) {
  window w;
  int64_t at[2] = {row, column}, padded = 1, seen = 1;
  for (int d = 0; d < 2; d++) {
    w.first[d] = at[d] * a->stride.items[d] - a->padding.items[d];
    w.end[d] = least(w.first[d] + a->kernel.items[d], p->size[d] + a->padding.items[d]);
    padded *= w.end[d] - w.first[d];
    if (w.first[d] < 0) w.first[d] = 0;
    w.end[d] = least(w.end[d], p->size[d]);
    seen *= w.end[d] > w.first[d] ? w.end[d] - w.first[d] : 0;
  }
  w.divisor = (ref_real)(a->divisor ? *a->divisor : a->count_padding || !seen ? padded : seen);
  return w;
}

static ref_real divide(graft_dtype dtype, ref_real sum, ref_real divisor) {
  return dt_is_integral(dtype, true) ? truncl(sum / divisor) : sum / divisor;
}

static graft_status average_forward(const average *a, const graft_tensor_desc *self, const graft_tensor_desc *result) {
  planes p = planes_of(self, result);
  graft_dtype dtype = result->dl.dtype;
  REF_OWNED ref_array x = ref_read(self), out = ref_new(ref_numel(result), false);
  REF_OWNED ref_array line = ref_new(a->kernel.items[0] * a->kernel.items[1], false);
  if (!(x.re && out.re && line.re)) return ref_no_memory();
  for (int64_t i = 0; i < out.count; i++) {
    const ref_real *plane = x.re + i / (p.pooled[0] * p.pooled[1]) * p.size[0] * p.size[1];
    window w = window_of(a, &p, i / p.pooled[1] % p.pooled[0], i % p.pooled[1]);
    int64_t terms = 0;
    for (int64_t y = w.first[0]; y < w.end[0]; y++) {
      for (int64_t c = w.first[1]; c < w.end[1]; c++) line.re[terms++] = plane[y * p.size[1] + c];
    }
    out.re[i] = terms ? divide(dtype, ref_sum(dtype, line.re, 1, terms), w.divisor) : 0;
  }
  ref_write(result, &out);
  return GRAFT_OK;
}

static graft_status average_backward(const average *a, const graft_tensor_desc *grad_output,
                                     const graft_tensor_desc *result) {
  planes p = planes_of(result, grad_output);
  graft_dtype dtype = result->dl.dtype;
  REF_OWNED ref_array grad = ref_read(grad_output), out = ref_new(ref_numel(result), false);
  if (!(grad.re && out.re)) return ref_no_memory();
  for (int64_t i = 0; i < grad.count; i++) {
    ref_real *plane = out.re + i / (p.pooled[0] * p.pooled[1]) * p.size[0] * p.size[1];
    window w = window_of(a, &p, i / p.pooled[1] % p.pooled[0], i % p.pooled[1]);
    ref_real share = divide(dtype, grad.re[i], w.divisor);
    for (int64_t y = w.first[0]; y < w.end[0]; y++) {
      for (int64_t c = w.first[1]; c < w.end[1]; c++) ref_add(dtype, &plane[y * p.size[1] + c], share);
    }
  }
  ref_write(result, &out);
  return GRAFT_OK;
}

graft_status kernel_avg_pool2d(const graft_exec *exec, const graft_args_avg_pool2d *a) {
  average how = {a->kernel_size, a->stride, a->padding, a->count_include_pad != 0, a->divisor_override};
  return average_forward(&how, a->self, a->out);
}

graft_status kernel_avg_pool2d_backward(const graft_exec *exec, const graft_args_avg_pool2d_backward *a) {
  average how = {a->kernel_size, a->stride, a->padding, a->count_include_pad != 0, a->divisor_override};
  return average_backward(&how, a->grad_output, a->out);
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
  return fx_binary(s, GRAFT_OP_MAXIMUM, fx_tensor(counts), fx_int(1));
}

/* x by the divisor of each window. */
static graft_tensor *by_divisor(fx *s, const windows *w, const in_avg_pool2d *in, graft_tensor *x, const int64_t *size,
                                const int64_t *more) {
  bool whole = more[0] <= 0 && more[1] <= 0 && (in->count_include_pad || (!w->padding[0] && !w->padding[1]));
  graft_value divisor = fx_int(w->kernel[0] * w->kernel[1]);
  if (in->divisor_override)
    divisor = fx_int(*in->divisor_override);
  else if (!whole)
    divisor = fx_tensor(window_counts(s, w, x, size, more, in->count_include_pad));
  if (s->status || !x) return NULL;
  if (dt_is_float(x->dtype)) return fx_binary(s, GRAFT_OP_DIV_TENSOR, fx_tensor(x), divisor);
  return fx_divide(s, fx_tensor(x), divisor, "trunc");
}

static void decompose_avg(fx *s, const op_call *c, graft_tensor **outs) {
  const in_avg_pool2d in = in_avg_pool2d_of(c->args);
  windows w = windows_of_avg(c->args);
  graft_tensor *self = in.self;
  const graft_meta *out = &c->out[OUT];
  const int64_t *size = self->sizes + self->ndim - 2;
  int64_t more[2], after[2];
  overhang(&w, size, out->sizes + out->ndim - 2, more);
  for (int i = 0; i < 2; i++) after[i] = w.padding[i] + more[i];
  graft_tensor *sums = sum_windows(s, &w, pad(s, as_planes(s, self), w.padding, after, 0), false);
  outs[OUT] = fx_reshape(s, by_divisor(s, &w, &in, sums, size, more), out->ndim, out->sizes);
}

static void decompose_avg_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const graft_value *args = &c->args[ARG_avg_pool2d_backward_self];
  const in_avg_pool2d in = in_avg_pool2d_of(args);
  windows w = windows_of_avg(args);
  graft_tensor *grad = op_tensor(c, ARG_avg_pool2d_backward_grad_output);
  const int64_t *size = in.self->sizes + in.self->ndim - 2;
  int64_t more[2], before[2], after[2];
  overhang(&w, size, grad->sizes + grad->ndim - 2, more);
  for (int i = 0; i < 2; i++) {
    before[i] = -w.padding[i];
    after[i] = -w.padding[i] - more[i];
  }
  graft_tensor *shares = by_divisor(s, &w, &in, as_planes(s, grad), size, more);
  outs[OUT] = fx_reshape(s, pad(s, sum_windows(s, &w, shares, true), before, after, 0), in.self->ndim, in.self->sizes);
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
  const in_max_pool2d_with_indices_backward in = in_max_pool2d_with_indices_backward_of(c->args);
  graft_tensor *grad = in.grad_output;
  graft_tensor *zeros = flat_planes(s, fx_filled(s, grad, in.self->ndim, in.self->sizes, 0, grad->dtype));
  graft_tensor *sums = fx_scatter_add(s, zeros, -1, flat_planes(s, in.indices), flat_planes(s, grad));
  outs[OUT] = fx_reshape(s, sums, in.self->ndim, in.self->sizes);
}

static void vjp_max_backward(op_vjp *v) {
  const in_max_pool2d_with_indices_backward in = in_max_pool2d_with_indices_backward_of(v->args);
  graft_tensor *grad = in.grad_output;
  if (vjp_needs(v, ARG_max_pool2d_with_indices_backward_grad_output)) {
    graft_tensor *picked = fx_gather(v->s, flat_planes(v->s, v->g[OUT]), -1, flat_planes(v->s, in.indices), false);
    v->results[ARG_max_pool2d_with_indices_backward_grad_output] = fx_reshape(v->s, picked, grad->ndim, grad->sizes);
  }
  if (vjp_needs(v, ARG_max_pool2d_with_indices_backward_self))
    v->results[ARG_max_pool2d_with_indices_backward_self] = fx_zeros_like(v->s, v->g[OUT]);
}

/* --- gradients of the others: calls of each other with the same windows --- */

static void vjp_max(op_vjp *v) {
  const in_max_pool2d_with_indices in = in_max_pool2d_with_indices_of(v->args);
  graft_tensor *g = v->g[OUT_max_pool2d_with_indices_out0], *places = v->outs[OUT_max_pool2d_with_indices_out1];
  if (!g) return;
  v->results[ARG_max_pool2d_with_indices_self] = fx_max_pool2d_with_indices_backward(
      v->s, g, in.self, in.kernel_size, 2, in.stride, 2, in.padding, 2, in.dilation, 2, in.ceil_mode, places);
}

static void vjp_avg(op_vjp *v) {
  const in_avg_pool2d in = in_avg_pool2d_of(v->args);
  v->results[ARG_avg_pool2d_self] =
      fx_avg_pool2d_backward(v->s, v->g[OUT], in.self, in.kernel_size, 2, in.stride, 2, in.padding, 2, in.ceil_mode,
                             in.count_include_pad, in.divisor_override);
}

static void vjp_avg_backward(op_vjp *v) {
  const in_avg_pool2d in = in_avg_pool2d_of(&v->args[ARG_avg_pool2d_backward_self]);
  if (vjp_needs(v, ARG_avg_pool2d_backward_grad_output)) {
    v->results[ARG_avg_pool2d_backward_grad_output] =
        fx_avg_pool2d(v->s, v->g[OUT], in.kernel_size, 2, in.stride, 2, in.padding, 2, in.ceil_mode,
                      in.count_include_pad, in.divisor_override);
  }
  if (vjp_needs(v, ARG_avg_pool2d_backward_self))
    v->results[ARG_avg_pool2d_backward_self] = fx_zeros_like(v->s, v->g[OUT]);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(max_pool2d_with_indices),
     .roles = "v",
     .infer = infer_max,
     .vjp = vjp_max,
     .saves = OP_SAVE_ARG(max_pool2d_with_indices, self) | OP_SAVE_OUT(max_pool2d_with_indices, out1)},
    {.op_id = OP_WITH_KERNEL(max_pool2d_with_indices_backward),
     .roles = "vvi",
     .infer = infer_max_backward,
     .decompose = decompose_max_backward,
     .vjp = vjp_max_backward,
     .saves = OP_SAVE_ARG(max_pool2d_with_indices_backward, indices)},
    {.op_id = OP_WITH_KERNEL(avg_pool2d),
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_avg,
     .decompose = decompose_avg,
     .vjp = vjp_avg,
     .saves = OP_SAVE_ARG(avg_pool2d, self)},
    {.op_id = OP_WITH_KERNEL(avg_pool2d_backward),
     .roles = "vv",
     .infer = infer_avg_backward,
     .decompose = decompose_avg_backward,
     .vjp = vjp_avg_backward},
};
OP_TABLE(pooling, defs)
