/* Reference kernels of normalizations: one forward and one backward over a geometry. */
#include "ops/normalization/normalization.h"

#include "ops/core/ref.h"

/* Row r's element k is element r * row_stride + k / inner * outer_stride + k % inner of the dense input, and its weight
 * is number r % groups * per_group + k / area. */
typedef struct geometry {
  int64_t rows, outer, inner, row_stride, outer_stride;
  int64_t groups, per_group, area, params;
} geometry;

static geometry layer(const graft_tensor_desc *x, uint64_t normalized_ndim) {
  int64_t rows = 1, count = 1;
  for (int32_t i = 0; i < x->dl.ndim; i++)
    *(i < x->dl.ndim - (int32_t)normalized_ndim ? &rows : &count) *= x->dl.shape[i];
  return (geometry){rows, 1, count, count, 0, 1, 0, 1, count};
}

static geometry group(int64_t n, int64_t channels, int64_t area, int64_t groups) {
  int64_t each = channels / groups, count = each * area;
  return (geometry){n * groups, 1, count, count, 0, groups, each, area, channels};
}

static geometry batch(const graft_tensor_desc *x) {
  ref_split s = ref_split_at(x, 1);
  return (geometry){s.size, s.outer, s.inner, s.inner, s.size * s.inner, s.size, 1, INT64_MAX, s.size};
}

static int64_t element(const geometry *g, int64_t row, int64_t k) {
  return row * g->row_stride + k / g->inner * g->outer_stride + k % g->inner;
}

static int64_t param(const geometry *g, int64_t row, int64_t k) {
  return row % g->groups * g->per_group + k / g->area;
}

/* --- forward --- */

typedef struct forward {
  geometry g;
  const graft_tensor_desc *x, *weight, *bias, *y, *mean, *rstd, *running_mean, *running_var;
  bool fixed;
  ref_real momentum, eps;
} forward;

/* What a forward reads, and what it writes. */
enum { F_X, F_WEIGHT, F_BIAS, F_RUNNING_MEAN, F_RUNNING_VAR, F_INS };
enum { F_Y = F_INS, F_MEAN, F_RSTD, F_ARRAYS };

static void statistics(const forward *f, ref_array *a, int64_t row, ref_real *line, int64_t count) {
  graft_dtype dtype = f->x->dl.dtype;
  ref_real *running_mean = a[F_RUNNING_MEAN].re, *running_var = a[F_RUNNING_VAR].re;
  ref_real mean = running_mean ? running_mean[row] : 0, var;
  if (f->fixed) {
    var = running_var[row];
  } else {
    for (int64_t k = 0; k < count; k++) line[k] = a[F_X].re[element(&f->g, row, k)];
    mean = count ? ref_sum(dtype, line, 1, count) / (ref_real)count : 0; /* of nothing: as PyTorch */
    for (int64_t k = 0; k < count; k++) line[k] -= mean;
    ref_real squares = ref_dot(dtype, line, 1, line, 1, count), m = f->momentum;
    var = squares / (ref_real)count;
    if (running_mean) running_mean[row] = m * mean + (1 - m) * running_mean[row];
    if (running_var) running_var[row] = m * squares / (ref_real)(count - 1) + (1 - m) * running_var[row];
  }
  a[F_MEAN].re[row] = mean;
  a[F_RSTD].re[row] = 1 / sqrtl(var + f->eps);
}

static void normalise(const forward *f, ref_array *a, int64_t row, int64_t count) {
  for (int64_t k = 0; k < count; k++) {
    int64_t at = element(&f->g, row, k), p = param(&f->g, row, k);
    ref_real *y = &a[F_Y].re[at];
    *y = (a[F_X].re[at] - a[F_MEAN].re[row]) * a[F_RSTD].re[row];
    if (a[F_WEIGHT].re) *y *= a[F_WEIGHT].re[p];
    if (a[F_BIAS].re) *y += a[F_BIAS].re[p];
  }
}

static graft_status run_forward(const forward *f) {
  int64_t count = f->g.outer * f->g.inner;
  const graft_tensor_desc *in[F_INS] = {f->x, f->weight, f->bias, f->running_mean, f->running_var};
  const graft_tensor_desc *out[] = {f->y, f->mean, f->rstd};
  ref_array a[F_ARRAYS];
  REF_OWNED ref_array line = ref_new(count, false);
  bool ok = ref_arrays_open(a, in, F_INS, out, F_ARRAYS - F_INS) && line.re;
  for (int64_t row = 0; ok && row < f->g.rows; row++) {
    statistics(f, a, row, line.re, count);
    normalise(f, a, row, count);
  }
  for (int i = F_RUNNING_MEAN; ok && !f->fixed && i <= F_RUNNING_VAR; i++) ref_write(in[i], &a[i]);
  return ref_arrays_close(a, F_INS, out, F_ARRAYS - F_INS, ok);
}

graft_status kernel_native_layer_norm(const graft_exec *exec, const graft_args_native_layer_norm *a) {
  return run_forward(&(forward){.g = layer(a->input, a->normalized_shape.count),
                                .x = a->input,
                                .weight = a->weight,
                                .bias = a->bias,
                                .y = a->out0,
                                .mean = a->out1,
                                .rstd = a->out2,
                                .eps = a->eps});
}

graft_status kernel_native_group_norm(const graft_exec *exec, const graft_args_native_group_norm *a) {
  return run_forward(&(forward){.g = group(a->N, a->C, a->HxW, a->group),
                                .x = a->input,
                                .weight = a->weight,
                                .bias = a->bias,
                                .y = a->out0,
                                .mean = a->out1,
                                .rstd = a->out2,
                                .eps = a->eps});
}

graft_status kernel_native_batch_norm(const graft_exec *exec, const graft_args_native_batch_norm *a) {
  return run_forward(&(forward){.g = batch(a->input),
                                .x = a->input,
                                .weight = a->weight,
                                .bias = a->bias,
                                .y = a->out0,
                                .mean = a->out1,
                                .rstd = a->out2,
                                .running_mean = a->running_mean,
                                .running_var = a->running_var,
                                .fixed = !a->training,
                                .momentum = a->momentum,
                                .eps = a->eps});
}

/* --- backward --- */

typedef struct backward {
  geometry g;
  const graft_tensor_desc *grad, *x, *mean, *rstd, *weight, *dx, *dweight, *dbias;
  bool fixed; /* mean and rstd are running_mean and running_var */
  ref_real eps;
} backward;

enum { B_G, B_X, B_MEAN, B_RSTD, B_WEIGHT, B_INS };
enum { B_DX = B_INS, B_DWEIGHT, B_DBIAS, B_ARRAYS };

/* The row's gradients (times weight) and normalised values; what they add to weight and bias. */
static void gather(const backward *b, ref_array *a, int64_t row, ref_array *grads, ref_array *units) {
  graft_dtype dtype = b->x->dl.dtype;
  for (int64_t k = 0; k < grads->count; k++) {
    int64_t at = element(&b->g, row, k), p = param(&b->g, row, k);
    ref_real g = a[B_G].re[at], unit = (a[B_X].re[at] - a[B_MEAN].re[row]) * a[B_RSTD].re[row];
    if (a[B_DWEIGHT].re) ref_add(dtype, &a[B_DWEIGHT].re[p], g * unit);
    if (a[B_DBIAS].re) ref_add(dtype, &a[B_DBIAS].re[p], g);
    grads->re[k] = a[B_WEIGHT].re ? g * a[B_WEIGHT].re[p] : g;
    units->re[k] = unit;
  }
}

static void input_gradient(const backward *b, ref_array *a, int64_t row, const ref_array *grads,
                           const ref_array *units) {
  graft_dtype dtype = b->x->dl.dtype;
  int64_t count = grads->count;
  ref_real *g = grads->re, *unit = units->re, mean = 0, slope = 0;
  if (!b->fixed) {
    mean = ref_sum(dtype, g, 1, count) / (ref_real)count;
    slope = ref_dot(dtype, g, 1, unit, 1, count) / (ref_real)count;
  }
  for (int64_t k = 0; k < count; k++) {
    a[B_DX].re[element(&b->g, row, k)] = (g[k] - mean - unit[k] * slope) * a[B_RSTD].re[row];
  }
}

static graft_status run_backward(const backward *b) {
  int64_t count = b->g.outer * b->g.inner;
  const graft_tensor_desc *in[B_INS] = {b->grad, b->x, b->mean, b->rstd, b->weight};
  const graft_tensor_desc *out[] = {b->dx, b->dweight, b->dbias};
  ref_array a[B_ARRAYS];
  REF_OWNED ref_array grads = ref_new(count, false), units = ref_new(count, false);
  bool ok = ref_arrays_open(a, in, B_INS, out, B_ARRAYS - B_INS) && grads.re && units.re;
  for (int64_t row = 0; ok && row < b->g.rows; row++) {
    if (b->fixed) a[B_RSTD].re[row] = 1 / sqrtl(a[B_RSTD].re[row] + b->eps);
    gather(b, a, row, &grads, &units);
    if (a[B_DX].re) input_gradient(b, a, row, &grads, &units);
  }
  return ref_arrays_close(a, B_INS, out, B_ARRAYS - B_INS, ok);
}

graft_status kernel_native_layer_norm_backward(const graft_exec *exec, const graft_args_native_layer_norm_backward *a) {
  return run_backward(&(backward){.g = layer(a->input, a->normalized_shape.count),
                                  .grad = a->grad_out,
                                  .x = a->input,
                                  .mean = a->mean,
                                  .rstd = a->rstd,
                                  .weight = a->weight,
                                  .dx = a->out0,
                                  .dweight = a->out1,
                                  .dbias = a->out2});
}

graft_status kernel_native_group_norm_backward(const graft_exec *exec, const graft_args_native_group_norm_backward *a) {
  return run_backward(&(backward){.g = group(a->N, a->C, a->HxW, a->group),
                                  .grad = a->grad_out,
                                  .x = a->input,
                                  .mean = a->mean,
                                  .rstd = a->rstd,
                                  .weight = a->weight,
                                  .dx = a->out0,
                                  .dweight = a->out1,
                                  .dbias = a->out2});
}

graft_status kernel_native_batch_norm_backward(const graft_exec *exec, const graft_args_native_batch_norm_backward *a) {
  return run_backward(&(backward){.g = batch(a->input),
                                  .grad = a->grad_out,
                                  .x = a->input,
                                  .mean = a->train ? a->save_mean : a->running_mean,
                                  .rstd = a->train ? a->save_invstd : a->running_var,
                                  .weight = a->weight,
                                  .dx = a->out0,
                                  .dweight = a->out1,
                                  .dbias = a->out2,
                                  .fixed = !a->train,
                                  .eps = a->eps});
}
