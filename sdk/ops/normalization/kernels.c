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

static geometry geometry_of(const void *args, const graft_tensor_desc *x) {
  graft_int_list shape = {0};
  int64_t n = 0, channels = 0, area = 0, groups = 0;
  switch (norm_args_of(((const graft_args *)args)->op_id)->kind) {
    case NORM_LAYER: ref_field(args, "normalized_shape", &shape, sizeof shape); return layer(x, shape.count);
    case NORM_GROUP:
      ref_field(args, "N", &n, sizeof n);
      ref_field(args, "C", &channels, sizeof channels);
      ref_field(args, "HxW", &area, sizeof area);
      ref_field(args, "group", &groups, sizeof groups);
      return group(n, channels, area, groups);
    default: return batch(x);
  }
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

graft_status norm_ref_forward(const graft_exec *exec, const void *args) {
  forward f = {0};
  uint8_t training = 1;
  double momentum = 0, eps = 0;
  ref_field(args, "input", &f.x, sizeof f.x);
  ref_field(args, "weight", &f.weight, sizeof f.weight);
  ref_field(args, "bias", &f.bias, sizeof f.bias);
  ref_field(args, "out0", &f.y, sizeof f.y);
  ref_field(args, "out1", &f.mean, sizeof f.mean);
  ref_field(args, "out2", &f.rstd, sizeof f.rstd);
  ref_field(args, "running_mean", &f.running_mean, sizeof f.running_mean);
  ref_field(args, "running_var", &f.running_var, sizeof f.running_var);
  ref_field(args, "training", &training, sizeof training);
  ref_field(args, "momentum", &momentum, sizeof momentum);
  ref_field(args, "eps", &eps, sizeof eps);
  f.g = geometry_of(args, f.x);
  f.fixed = !training;
  f.momentum = momentum;
  f.eps = eps;
  return run_forward(&f);
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

graft_status norm_ref_backward(const graft_exec *exec, const void *args) {
  backward b = {0};
  uint8_t train = 1;
  double eps = 0;
  ref_field(args, "grad_out", &b.grad, sizeof b.grad);
  ref_field(args, "input", &b.x, sizeof b.x);
  ref_field(args, "weight", &b.weight, sizeof b.weight);
  ref_field(args, "out0", &b.dx, sizeof b.dx);
  ref_field(args, "out1", &b.dweight, sizeof b.dweight);
  ref_field(args, "out2", &b.dbias, sizeof b.dbias);
  ref_field(args, "train", &train, sizeof train);
  ref_field(args, "eps", &eps, sizeof eps);
  ref_field(args, "mean", &b.mean, sizeof b.mean);
  ref_field(args, "rstd", &b.rstd, sizeof b.rstd);
  ref_field(args, train ? "save_mean" : "running_mean", &b.mean, sizeof b.mean);
  ref_field(args, train ? "save_invstd" : "running_var", &b.rstd, sizeof b.rstd);
  b.g = geometry_of(args, b.x);
  b.fixed = !train;
  b.eps = eps;
  return run_backward(&b);
}
