/* Reference kernels of pooling. Tensors are dense here: planes of height x width, whatever the rank. */
#include "base/error.h"
#include "ops/core/ref.h"
#include "ops/pooling/pooling.h"

typedef struct planes {
  int64_t count, size[2], out[2]; /* size of the input's planes and of the result's */
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

graft_status ref_max_pool2d_with_indices(const graft_exec *exec, const graft_args_max_pool2d_with_indices *a) {
  (void)exec;
  planes p = planes_of(a->self, a->out0);
  int64_t size = p.size[0] * p.size[1];
  ref_array x = ref_read(a->self), values = ref_new(ref_numel(a->out0), false), indices = ref_new(values.count, false);
  graft_status status = x.re && values.re && indices.re ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < values.count; i++) {
    const ref_real *plane = x.re + i / (p.out[0] * p.out[1]) * size;
    reach rows = reach_of(a, &p, 0, i / p.out[1] % p.out[0]), columns = reach_of(a, &p, 1, i % p.out[1]);
    indices.re[i] = (ref_real)largest(plane, p.size[1], rows, columns, &values.re[i]);
  }
  if (!status) {
    ref_write(a->out0, &values);
    ref_write(a->out1, &indices);
  }
  ref_free(&x);
  ref_free(&values);
  ref_free(&indices);
  return status;
}

graft_status ref_max_pool2d_with_indices_backward(const graft_exec *exec,
                                                  const graft_args_max_pool2d_with_indices_backward *a) {
  (void)exec;
  planes p = planes_of(a->self, a->grad_output);
  int64_t size = p.size[0] * p.size[1], windows = p.out[0] * p.out[1];
  graft_dtype dtype = a->out->dl.dtype;
  ref_array grad = ref_read(a->grad_output), indices = ref_read(a->indices), out = ref_new(ref_numel(a->out), false);
  graft_status status = grad.re && indices.re && out.re ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < grad.count; i++) {
    int64_t at = (int64_t)indices.re[i];
    if (at < 0 || at >= size) {
      status = err_about(GRAFT_OUT_OF_RANGE, "aten::max_pool2d_with_indices_backward",
                         "index %lld is out of range for a plane of %lld", (long long)at, (long long)size);
      break;
    }
    ref_real *to = &out.re[i / windows * size + at];
    *to = ref_sum(dtype, (ref_real[]){*to, grad.re[i]}, 1, 2);
  }
  if (!status) ref_write(a->out, &out);
  ref_free(&grad);
  ref_free(&indices);
  ref_free(&out);
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
  ref_array x = ref_read(self), out = ref_new(ref_numel(result), false);
  ref_array line = ref_new(a->kernel.items[0] * a->kernel.items[1], false);
  graft_status status = x.re && out.re && line.re ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < out.count; i++) {
    const ref_real *plane = x.re + i / (p.out[0] * p.out[1]) * p.size[0] * p.size[1];
    window w = window_of(a, &p, i / p.out[1] % p.out[0], i % p.out[1]);
    int64_t terms = 0;
    for (int64_t y = w.first[0]; y < w.end[0]; y++) {
      for (int64_t c = w.first[1]; c < w.end[1]; c++) line.re[terms++] = plane[y * p.size[1] + c];
    }
    out.re[i] = terms ? divide(dtype, ref_sum(dtype, line.re, 1, terms), w.divisor) : 0;
  }
  if (!status) ref_write(result, &out);
  ref_free(&x);
  ref_free(&out);
  ref_free(&line);
  return status;
}

static graft_status average_backward(const average *a, const graft_tensor_desc *grad_output,
                                     const graft_tensor_desc *result) {
  planes p = planes_of(result, grad_output);
  graft_dtype dtype = result->dl.dtype;
  ref_array grad = ref_read(grad_output), out = ref_new(ref_numel(result), false);
  graft_status status = grad.re && out.re ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < grad.count; i++) {
    ref_real *plane = out.re + i / (p.out[0] * p.out[1]) * p.size[0] * p.size[1];
    window w = window_of(a, &p, i / p.out[1] % p.out[0], i % p.out[1]);
    ref_real share = divide(dtype, grad.re[i], w.divisor);
    for (int64_t y = w.first[0]; y < w.end[0]; y++) {
      for (int64_t c = w.first[1]; c < w.end[1]; c++) {
        ref_real *to = &plane[y * p.size[1] + c];
        *to = ref_sum(dtype, (ref_real[]){*to, share}, 1, 2);
      }
    }
  }
  if (!status) ref_write(result, &out);
  ref_free(&grad);
  ref_free(&out);
  return status;
}

graft_status ref_avg_pool2d(const graft_exec *exec, const graft_args_avg_pool2d *a) {
  (void)exec;
  average how = {a->kernel_size, a->stride, a->padding, a->count_include_pad != 0, a->divisor_override};
  return average_forward(&how, a->self, a->out);
}

graft_status ref_avg_pool2d_backward(const graft_exec *exec, const graft_args_avg_pool2d_backward *a) {
  (void)exec;
  average how = {a->kernel_size, a->stride, a->padding, a->count_include_pad != 0, a->divisor_override};
  return average_backward(&how, a->grad_output, a->out);
}
