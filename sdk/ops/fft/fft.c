/* Fourier transforms. Each dim of `dim` is transformed in its turn; the last one is that of which r2c makes, and c2r
 * takes, the half that says all: bins 0 to n / 2 of n. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* What a result is divided by: nothing, the root of the number of points, the number of points. */
enum { BY_NOTHING, BY_ROOT, BY_COUNT };

/* --- rules --- */

/* The dims that are transformed, in the order that matters, and where each op has its list. */
typedef struct dims {
  int64_t at[GRAFT_MAX_DIMS];
  uint32_t count;
} dims;

static int64_t last_of(const dims *d) {
  return d->at[d->count - 1];
}

/* self, dim and normalization stand alike in all three. */
static graft_status check(op_call *c, dims *d) {
  const in_fft_c2c in = in_fft_c2c_of(c->args);
  uint32_t seen = 0;
  if (dt_is_half(dt_real(in.self->dtype)) || dt_is_float8(in.self->dtype))
    return op_refuse(c, ARG_fft_c2c_self, "f32, f64 or a complex dtype of these");
  if (!in.self->numel) return op_refuse(c, ARG_fft_c2c_self, "a tensor that has elements");
  if (in.normalization < BY_NOTHING || in.normalization > BY_COUNT)
    return op_error(c,
                    "normalization is %lld; expected 0 (none), 1 (by the root of the number of points) or 2 (by the "
                    "number of points)",
                    (long long)in.normalization);
  if (in.dim_count > (uint32_t)in.self->ndim)
    return op_error(c, "dim has %u entries; expected each dim of self %s at most once", in.dim_count,
                    op_show(c, ARG_fft_c2c_self));
  d->count = in.dim_count;
  for (uint32_t i = 0; i < in.dim_count; i++) {
    d->at[i] = in.dim[i];
    graft_status status = op_wrap_dim(c, &d->at[i], in.self->ndim);
    if (status) return status;
    if (seen >> d->at[i] & 1) return op_error(c, "dim %lld is listed twice", (long long)d->at[i]);
    seen |= 1u << d->at[i];
  }
  c->compute = in.self->dtype;
  return op_set_ints(c, ARG_fft_c2c_dim, d->at, d->count);
}

/* By falling stride, equal ones in the order that they have. */
static void sort_by_stride(int64_t *dims, uint32_t count, const int64_t *strides) {
  for (uint32_t i = 1; i < count; i++) {
    int64_t dim = dims[i];
    uint32_t to = i;
    for (; to > 0 && strides[dims[to - 1]] < strides[dim]; to--) dims[to] = dims[to - 1];
    dims[to] = dim;
  }
}

/* PyTorch lays a result out as its transforms have it: the dims that are not transformed first, by falling stride of
 * the input, then the transformed ones as sorted, the last of them innermost. */
static void lay_out(graft_meta *out, const int64_t *strides, const dims *d, uint32_t sorted) {
  int64_t order[GRAFT_MAX_DIMS], transformed[GRAFT_MAX_DIMS], step = 1;
  int32_t batch = 0;
  for (uint32_t i = 0; i < d->count; i++) transformed[i] = d->at[i];
  sort_by_stride(transformed, sorted, strides);
  for (int64_t k = 0; k < out->ndim; k++) {
    bool is_batch = true;
    for (uint32_t i = 0; i < d->count; i++) is_batch &= d->at[i] != k;
    if (is_batch) order[batch++] = k;
  }
  sort_by_stride(order, (uint32_t)batch, strides);
  for (uint32_t i = 0; i < d->count; i++) order[batch + (int32_t)i] = transformed[i];
  for (int32_t i = out->ndim - 1; i >= 0; i--) {
    out->strides[order[i]] = step;
    step *= out->sizes[order[i]];
  }
}

/* Without dims it is a copy. */
static graft_status infer_c2c(op_call *c) {
  dims d;
  const graft_tensor *self = op_tensor(c, ARG_fft_c2c_self);
  if (!dt_is_complex(self->dtype)) return op_refuse(c, ARG_fft_c2c_self, "a complex dtype");
  if (!in_fft_c2c_of(c->args).dim_count) {
    c->decompose_only = true;
    c->compute = self->dtype;
    op_out_like(c, OUT, self->dtype, self);
    return GRAFT_OK;
  }
  c->no_decompose = true;
  graft_status status = check(c, &d);
  if (status) return status;
  op_out(c, OUT, self->dtype, self->ndim, self->sizes);
  lay_out(&c->out[OUT], self->strides, &d, d.count);
  return GRAFT_OK;
}

static graft_status check_last(op_call *c, dims *d) {
  graft_status status = check(c, d);
  return status || d->count ? status : op_error(c, "dim is empty; expected one dim or more");
}

static graft_status infer_r2c(op_call *c) {
  dims d;
  const in_fft_r2c in = in_fft_r2c_of(c->args);
  if (!dt_is_float(in.self->dtype)) return op_refuse(c, ARG_fft_r2c_self, "a floating dtype");
  graft_status status = check_last(c, &d);
  if (status) return status;
  graft_meta *out = &c->out[OUT];
  op_out(c, OUT, dt_complex(in.self->dtype), in.self->ndim, in.self->sizes);
  if (in.onesided) out->sizes[last_of(&d)] = in.self->sizes[last_of(&d)] / 2 + 1;
  lay_out(out, in.self->strides, &d, d.count - 1);
  return GRAFT_OK;
}

/* The other dims have a transform of their own, whose result the last one reads. */
static graft_status infer_c2r(op_call *c) {
  dims d;
  const in_fft_c2r in = in_fft_c2r_of(c->args);
  if (!dt_is_complex(in.self->dtype)) return op_refuse(c, ARG_fft_c2r_self, "a complex dtype");
  graft_status status = check_last(c, &d);
  if (status) return status;
  int64_t last = last_of(&d), bins = in.self->sizes[last];
  if (in.last_dim_size < 1 || in.last_dim_size / 2 + 1 != bins)
    return op_error(c,
                    "last_dim_size is %lld and dim %lld of self %s has %lld bins; expected last_dim_size / 2 + 1 of "
                    "them",
                    (long long)in.last_dim_size, (long long)last, op_show(c, ARG_fft_c2r_self), (long long)bins);
  graft_meta *out = &c->out[OUT];
  const dims only = {{last}, 1};
  op_out(c, OUT, dt_real(in.self->dtype), in.self->ndim, in.self->sizes);
  graft_meta half = *out;
  d.count--;
  if (d.count) lay_out(&half, in.self->strides, &d, d.count);
  out->sizes[last] = in.last_dim_size;
  lay_out(out, d.count ? half.strides : in.self->strides, &only, 1);
  return GRAFT_OK;
}

/* --- kernels --- */

/* The line of one dim: n points whose roots exp(-2 pi i k / n) are root[k]; backward ones are their conjugates. */
typedef struct line {
  graft_dtype dtype; /* real: how sums are made */
  int64_t n;
  ref_array root, term, power; /* term, power: a sum's factors, as many as the largest prime of n */
  ref_array work;
} line;

static int64_t smallest_factor(int64_t n) {
  for (int64_t p = 2; p * p <= n; p++) {
    if (n % p == 0) return p;
  }
  return n;
}

/* exp(-2 pi i k / n), of an angle of at most an eighth of a turn, where the functions are exact to the last bit. */
static ref_complex root_of(int64_t k, int64_t n) {
  const ref_real turn = 6.283185307179586476925286766559005768L;
  bool below = 2 * k > n, back, swap;
  if (below) k = n - k; /* in the upper half */
  back = 4 * k > n;
  int64_t twice = back ? n - 2 * k : 2 * k; /* in the first quarter, counted in halves of a step */
  swap = 4 * twice > n;
  ref_real angle =
      swap ? turn * (ref_real)(n - 2 * twice) / (ref_real)(4 * n) : turn * (ref_real)twice / (ref_real)(2 * n);
  ref_real c = swap ? sinl(angle) : cosl(angle), s = swap ? cosl(angle) : sinl(angle);
  return (back ? -c : c) + (below ? s : -s) * I;
}

static bool open_line(line *l, graft_dtype dtype, int64_t n) {
  int64_t largest = 1;
  for (int64_t rest = n; rest > 1; rest /= smallest_factor(rest)) {
    int64_t p = smallest_factor(rest);
    largest = p > largest ? p : largest;
  }
  *l = (line){.dtype = dtype,
              .n = n,
              .root = ref_new(n, true),
              .work = ref_new(2 * n, true),
              .term = ref_new(largest, true),
              .power = ref_new(largest, true)};
  bool ok = l->root.re && l->work.re && l->term.re && l->power.re;
  for (int64_t k = 0; ok && k < n; k++) {
    ref_complex root = root_of(k, n);
    l->root.re[k] = creall(root), l->root.im[k] = cimagl(root);
  }
  return ok;
}

static void close_line(line *l) {
  ref_free(&l->root);
  ref_free(&l->work);
  ref_free(&l->term);
  ref_free(&l->power);
}

/* Sum of term[j] power[j]. */
static ref_complex sum_of(const line *l, int64_t count) {
  const ref_array *a = &l->term, *b = &l->power;
  ref_real re = ref_dot(l->dtype, a->re, 1, b->re, 1, count) - ref_dot(l->dtype, a->im, 1, b->im, 1, count);
  ref_real im = ref_dot(l->dtype, a->re, 1, b->im, 1, count) + ref_dot(l->dtype, a->im, 1, b->re, 1, count);
  return CMPLXL(re, im);
}

/* count points of `in`, `step` apart, to as many of work from `out` on, by way of transforms of every p-th of them;
 * these leave the other half of work as it is needed no more. */
static void transform(line *l, const ref_array *in, int64_t from, int64_t step, int64_t out, int64_t count) {
  ref_array *work = &l->work;
  if (count == 1) {
    ref_take(work, out, in, from);
    return;
  }
  int64_t p = smallest_factor(count), m = count / p, stride = l->n / count;
  for (int64_t j = 0; j < p; j++) transform(l, in, from + j * step, step * p, out + j * m, m);
  for (int64_t k = 0; k < m; k++) {
    for (int64_t j = 0; j < p; j++) {
      ref_complex value = ref_at(work, out + j * m + k) * ref_at(&l->root, j * k * stride);
      l->term.re[j] = creall(value), l->term.im[j] = cimagl(value);
    }
    for (int64_t t = 0; t < p; t++) {
      for (int64_t j = 0; j < p; j++) ref_take(&l->power, j, &l->root, j * t % p * (l->n / p));
      ref_complex sum = sum_of(l, p);
      work->re[l->n + k + m * t] = creall(sum), work->im[l->n + k + m * t] = cimagl(sum);
    }
  }
  for (int64_t i = 0; i < count; i++) ref_take(work, out + i, work, l->n + i);
}

static void conjugate(ref_array *a) {
  for (int64_t i = 0; i < a->count; i++) a->im[i] = -a->im[i];
}

/* All lines of a dim, forward, in place. */
static bool transform_dim(graft_dtype dtype, ref_array *x, ref_split s) {
  line l;
  bool ok = open_line(&l, dtype, s.size);
  for (int64_t i = 0; ok && i < s.outer * s.inner; i++) {
    int64_t start = i / s.inner * s.size * s.inner + i % s.inner;
    transform(&l, x, start, s.inner, 0, s.size);
    for (int64_t k = 0; k < s.size; k++) ref_take(x, start + k * s.inner, &l.work, k);
  }
  close_line(&l);
  return ok;
}

/* Bin k of n, where only the first half is there: the other is its mirror image; what is its own image is real. */
static ref_complex bin_of(const ref_array *half, int64_t start, int64_t inner, int64_t k, int64_t n) {
  bool mirrored = 2 * k > n, real = k == 0 || 2 * k == n;
  ref_complex value = ref_at(half, start + (mirrored ? n - k : k) * inner);
  return real ? creall(value) : mirrored ? conjl(value) : value;
}

/* x with `to` points along dim in place of s.size: cut, or filled up as bin_of says. */
static bool resize_dim(ref_array *x, ref_split s, int64_t to) {
  ref_array y = ref_new(s.outer * to * s.inner, true);
  if (!y.re) return false;
  for (int64_t i = 0; i < s.outer * s.inner; i++) {
    int64_t outer = i / s.inner, inner = i % s.inner, start = outer * s.size * s.inner + inner;
    for (int64_t k = 0; k < to; k++) {
      int64_t at = (outer * to + k) * s.inner + inner;
      ref_complex value = to < s.size ? ref_at(x, start + k * s.inner) : bin_of(x, start, s.inner, k, to);
      y.re[at] = creall(value), y.im[at] = cimagl(value);
    }
  }
  ref_free(x);
  *x = y;
  return true;
}

typedef struct operands {
  const graft_tensor_desc *self, *out;
  graft_int_list dim;
  int64_t normalization;
  bool backward;
} operands;

static graft_status run(const operands *a) {
  REF_OWNED ref_array x = ref_read(a->self);
  bool from_real = x.re && !x.im, to_real = !dt_is_complex(a->out->dl.dtype), ok = true;
  if (from_real) x.im = ref_zeros(x.count, sizeof *x.im);
  if (!x.re || !x.im) return ref_no_memory();
  ref_real points = 1;
  if (a->backward) conjugate(&x);
  for (uint64_t i = 0; ok && i < a->dim.count; i++) {
    int64_t dim = a->dim.items[i], bins = a->out->dl.shape[dim];
    ref_split s = ref_split_at(a->self, dim);
    bool last = i + 1 == a->dim.count;
    if (last && to_real) {
      ok = resize_dim(&x, s, bins);
      s.size = bins;
    }
    points *= (ref_real)s.size;
    ok = ok && transform_dim(dt_real(a->self->dl.dtype), &x, s);
    if (last && from_real && bins < s.size) ok = ok && resize_dim(&x, s, bins);
  }
  if (!ok) return ref_no_memory();
  if (a->backward) conjugate(&x);
  ref_real by = a->normalization == BY_NOTHING ? 1 : a->normalization == BY_ROOT ? sqrtl(points) : points;
  for (int64_t i = 0; i < x.count; i++) x.re[i] /= by, x.im[i] /= by;
  ref_write(a->out, &x);
  return GRAFT_OK;
}

graft_status kernel_fft_c2c(const graft_exec *exec, const graft_args_fft_c2c *a) {
  return run(&(operands){a->self, a->out, a->dim, a->normalization, !a->forward});
}

graft_status kernel_fft_r2c(const graft_exec *exec, const graft_args_fft_r2c *a) {
  return run(&(operands){a->self, a->out, a->dim, a->normalization, false});
}

graft_status kernel_fft_c2r(const graft_exec *exec, const graft_args_fft_c2r *a) {
  return run(&(operands){a->self, a->out, a->dim, a->normalization, true});
}

/* Of no dim it is a copy. */
static void decompose_c2c(fx *s, const op_call *c, graft_tensor **outs) {
  outs[OUT] = fx_clone(s, op_tensor(c, ARG_fft_c2c_self), GRAFT_FORMAT_PRESERVE);
}

/* --- gradients --- */

static void vjp_c2c(op_vjp *v) {
  const in_fft_c2c in = in_fft_c2c_of(v->args);
  v->results[ARG_fft_c2c_self] = fx_fft_c2c(v->s, v->g[OUT], in.dim, in.dim_count, in.normalization, !in.forward);
}

/* The bins that forward left out have a cotangent of zero. */
static void vjp_r2c(op_vjp *v) {
  const in_fft_r2c in = in_fft_r2c_of(v->args);
  fx *s = v->s;
  graft_tensor *g = v->g[OUT];
  int64_t last = in.dim[in.dim_count - 1], missing = in.self->sizes[last] - g->sizes[last];
  if (missing > 0) {
    int64_t pad[2 * GRAFT_MAX_DIMS] = {0}, places = 2 * (in.self->ndim - last);
    pad[places - 1] = missing;
    g = fx_constant_pad_nd(s, g, pad, (uint32_t)places, graft_scalar_int(0));
  }
  g = fx_fft_c2c(s, g, in.dim, in.dim_count, in.normalization, false);
  v->results[ARG_fft_r2c_self] = fx_one(s, GRAFT_OP_PRIMS_REAL, (graft_value[]){fx_tensor(g)}, 1);
}

static graft_tensor *part_of(fx *s, graft_tensor *t, int64_t dim, int64_t from, int64_t to) {
  return fx_slice_Tensor(s, t, dim, &from, &to, 1);
}

/* Bins that stand for a mirror image, too, count twice: all from 1 on that have one. */
static void vjp_c2r(op_vjp *v) {
  const in_fft_c2r in = in_fft_c2r_of(v->args);
  fx *s = v->s;
  graft_tensor *g = fx_fft_r2c(s, v->g[OUT], in.dim, in.dim_count, in.normalization, true);
  int64_t last = in.dim[in.dim_count - 1], bins = in.last_dim_size / 2 + 1, twice = in.last_dim_size - bins;
  if (twice > 0) {
    graft_tensor *parts[] = {part_of(s, g, last, 0, 1), fx_muls(s, part_of(s, g, last, 1, 1 + twice), 2),
                             part_of(s, g, last, 1 + twice, bins)};
    g = fx_cat(s, parts, bins > 1 + twice ? 3 : 2, last);
  }
  v->results[ARG_fft_c2r_self] = g;
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(fft_c2c),
     .roles = "v",
     .infer = infer_c2c,
     .decompose = decompose_c2c,
     .vjp = vjp_c2c,
     .flags = OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(fft_r2c), .roles = "v", .infer = infer_r2c, .vjp = vjp_r2c, .flags = OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(fft_c2r), .roles = "v", .infer = infer_c2r, .vjp = vjp_c2r},
};
OP_TABLE(fft, defs)
