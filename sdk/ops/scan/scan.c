/* Scans: results that run along a dim. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

static graft_status infer_cumulative(op_call *c) {
  const in_cumsum in = in_cumsum_of(c->args);
  graft_dtype dtype = in.dtype;
  int64_t dim = in.dim;
  graft_status status = op_wrap_dim(c, &dim, in.self->ndim);
  if (status) return status;
  if (!dtype) dtype = dt_is_integral(in.self->dtype, true) ? GRAFT_I64 : in.self->dtype;
  if (dtype == GRAFT_BOOL) return op_error(c, "dtype is bool; expected a dtype of numbers");
  if (dt_is_float8(dtype) && in.self->numel && in.self->ndim)
    return op_refuse(c, ARG_cumsum_self, "a dtype of numbers");
  c->compute = dtype;
  op_set_int(c, ARG_cumsum_dim, dim);
  op_set_dtype(c, ARG_cumsum_dtype, dtype);
  op_out(c, OUT, dtype, in.self->ndim, in.self->sizes);
  return GRAFT_OK;
}

/* Runs along a line of n elements, `step` apart; im NULL for real dtypes. Integers wrap, and the store cuts. */
typedef void (*line_fn)(graft_dtype dtype, ref_real *re, ref_real *im, int64_t n, int64_t step);

static graft_status scan_lines(const graft_tensor_desc *self, int64_t dim, const graft_tensor_desc *out, line_fn fn) {
  REF_OWNED ref_array x = ref_read(self);
  if (!x.re) return ref_no_memory();
  ref_split s = ref_split_at(self, dim);
  for (int64_t line = 0; line < s.outer * s.inner; line++) {
    int64_t start = line / s.inner * s.size * s.inner + line % s.inner;
    fn(self->dl.dtype, x.re + start, x.im ? x.im + start : NULL, s.size, s.inner);
  }
  ref_write(out, &x);
  return GRAFT_OK;
}

static void sum_line(graft_dtype dtype, ref_real *re, ref_real *im, int64_t n, int64_t step) {
  for (int64_t i = step; i < n * step; i += step) {
    ref_add(dt_real(dtype), &re[i], re[i - step]);
    if (im) ref_add(dt_real(dtype), &im[i], im[i - step]);
  }
}

graft_status kernel_cumsum(const graft_exec *exec, const graft_args_cumsum *a) {
  return scan_lines(a->self, a->dim, a->out, sum_line);
}

/* The sums of t from the other end. */
static graft_tensor *sums_after(op_vjp *v, graft_tensor *t, int64_t dim) {
  graft_tensor *sums = fx_cumsum(v->s, fx_flip(v->s, t, &dim, 1), dim, t ? t->dtype : GRAFT_DTYPE_NONE);
  return fx_flip(v->s, sums, &dim, 1);
}

/* Each element is in all sums from its own on: the sums of the cotangent from the other end. */
static void vjp_cumsum(op_vjp *v) {
  graft_tensor *g = v->g[OUT];
  v->results[ARG_cumsum_self] = g->ndim ? sums_after(v, g, v->args[ARG_cumsum_dim].as.i) : g;
}

/* --- cumprod --- */

static void multiply_line(graft_dtype dtype, ref_real *re, ref_real *im, int64_t n, int64_t step) {
  for (int64_t i = step; i < n * step; i += step) {
    ref_real a = re[i - step], b = im ? im[i - step] : 0, c = re[i], d = im ? im[i] : 0;
    re[i] = im ? a * c - b * d : dt_is_integral(dtype, true) ? ref_of_bits(dtype, ref_bits(a) * ref_bits(c)) : a * c;
    if (im) im[i] = a * d + b * c;
    if (ref_mode & REF_NARROW) re[i] = dt_round(dt_accumulate(dt_real(dtype)), re[i]);
  }
}

graft_status kernel_cumprod(const graft_exec *exec, const graft_args_cumprod *a) {
  return scan_lines(a->self, a->dim, a->out, multiply_line);
}

/* Before the first zero of a line, the sum of g out from the element on, over the element. At that zero, the same with
 * it taken for 1, since all other products there have it as a factor. Behind it nothing. */
static void vjp_cumprod(op_vjp *v) {
  const in_cumprod in = in_cumprod_of(v->args);
  graft_tensor *g = v->g[OUT], *x = in.self;
  const graft_value zero = fx_int(0), one = fx_int(1);
  if (!g->ndim || !g->numel) {
    v->results[ARG_cumprod_self] = g;
    return;
  }
  bool half = dt_is_half(g->dtype); /* products leave their range where a quotient of two does not */
  g = fx_widened(v->s, g);
  if (x->dtype != g->dtype) x = fx_cast(v->s, x, g->dtype);
  graft_tensor *products = half ? fx_cumprod(v->s, x, in.dim, g->dtype) : v->outs[OUT];
  graft_tensor *is_zero = fx_eq_Scalar(v->s, x, graft_scalar_int(0));
  graft_tensor *zeros = fx_cumsum(v->s, is_zero, in.dim, GRAFT_I64);
  graft_tensor *before = fx_eq_Scalar(v->s, zeros, graft_scalar_int(0));
  graft_tensor *first = fx_logical_and(v->s, is_zero, fx_eq_Scalar(v->s, zeros, graft_scalar_int(1)));
  graft_tensor *terms = fx_mul(v->s, g, fx_conj(v->s, products));
  graft_tensor *divisor = fx_where(v->s, is_zero, one, fx_tensor(x));
  graft_tensor *usual = fx_div(v->s, sums_after(v, terms, in.dim), fx_conj(v->s, divisor));
  graft_tensor *without = fx_cumprod(v->s, fx_where(v->s, first, one, fx_tensor(x)), in.dim, g->dtype);
  graft_tensor *at_zero = sums_after(v, fx_mul(v->s, g, fx_conj(v->s, without)), in.dim);
  graft_tensor *rest = fx_where(v->s, first, fx_tensor(at_zero), zero);
  v->results[ARG_cumprod_self] = fx_where(v->s, before, fx_tensor(usual), fx_tensor(rest));
}

/* --- logcumsumexp --- */

static graft_status infer_logcumsumexp(op_call *c) {
  const in_logcumsumexp in = in_logcumsumexp_of(c->args);
  int64_t dim = in.dim;
  graft_status status = op_wrap_dim(c, &dim, in.self->ndim);
  if (status) return status;
  bool computed = dt_is_complex(in.self->dtype) || (dt_is_float(in.self->dtype) && !dt_is_float8(in.self->dtype));
  if (!computed) return op_refuse(c, ARG_logcumsumexp_self, "a floating or complex dtype");
  c->compute = in.self->dtype;
  op_set_int(c, ARG_logcumsumexp_dim, dim);
  op_out(c, OUT, in.self->dtype, in.self->ndim, in.self->sizes);
  return GRAFT_OK;
}

static ref_real log_add(ref_real a, ref_real b) {
  if (isnan(a) || isnan(b)) return NAN;
  ref_real most = fmaxl(a, b), least = fminl(a, b);
  return most == least && isinf(most) ? most : most + log1pl(expl(least - most));
}

/* Of two infinities without a difference, the first stays as it is. */
static ref_complex log_add_complex(ref_complex a, ref_complex b) {
  bool swap = creall(b) > creall(a);
  ref_complex most = swap ? b : a, least = swap ? a : b;
  if (creall(most) == creall(least) && isinf(creall(most)) && (creall(most) < 0 || cimagl(a) == cimagl(b))) return a;
  return most + clogl(1 + cexpl(least - most));
}

static void log_sum_line(graft_dtype dtype, ref_real *re, ref_real *im, int64_t n, int64_t step) {
  for (int64_t i = step; i < n * step; i += step) {
    if (im) {
      ref_complex sum = log_add_complex(CMPLXL(re[i - step], im[i - step]), CMPLXL(re[i], im[i]));
      re[i] = creall(sum);
      im[i] = cimagl(sum);
    } else {
      re[i] = log_add(re[i - step], re[i]);
    }
    if (ref_mode & REF_NARROW) re[i] = dt_round(dt_accumulate(dt_real(dtype)), re[i]);
  }
}

graft_status kernel_logcumsumexp(const graft_exec *exec, const graft_args_logcumsumexp *a) {
  return scan_lines(a->self, a->dim, a->out, log_sum_line);
}

/* The sum of g exp(x - out) from the element on: its logarithm is such a scan, too, from the other end. This is the
 * part of it that the cotangents t where `taken` give. */
static graft_tensor *flow(fx *s, graft_tensor *x, graft_tensor *out, graft_tensor *taken, graft_tensor *t,
                          int64_t dim) {
  if (s->status) return NULL;
  const graft_value one = fx_int(1), none = fx_float(-(double)dt_largest(dt_real(x->dtype)));
  graft_tensor *log_g = fx_log(s, fx_where(s, taken, fx_tensor(t), one)); /* no NaN that a gradient would meet */
  graft_tensor *terms = fx_sub(s, fx_where(s, taken, fx_tensor(log_g), none), out);
  graft_tensor *sums = fx_logcumsumexp(s, fx_flip(s, terms, &dim, 1), dim);
  return fx_exp(s, fx_add(s, fx_flip(s, sums, &dim, 1), x));
}

/* Half types would lose in a logarithm what the exponential needs. */
static void vjp_logcumsumexp(op_vjp *v) {
  const in_logcumsumexp in = in_logcumsumexp_of(v->args);
  fx *s = v->s;
  graft_tensor *g = v->g[OUT], *x = fx_widened(s, in.self);
  const graft_scalar zero = graft_scalar_int(0);
  if (!g->ndim || !g->numel) {
    v->results[ARG_logcumsumexp_self] = g;
    return;
  }
  graft_tensor *out = x == in.self ? v->outs[OUT] : fx_logcumsumexp(s, x, in.dim);
  g = fx_widened(s, g);
  if (dt_is_complex(g->dtype)) {
    graft_tensor *t = fx_conj(s, g);
    v->results[ARG_logcumsumexp_self] = fx_conj(s, flow(s, x, out, fx_ne_Scalar(s, t, zero), t, in.dim));
  } else {
    graft_tensor *up = flow(s, x, out, fx_gt_Scalar(s, g, zero), g, in.dim),
                 *down = flow(s, x, out, fx_lt_Scalar(s, g, zero), fx_neg(s, g), in.dim);
    v->results[ARG_logcumsumexp_self] = fx_sub(s, up, down);
  }
}

/* --- cummax, cummin: the extremum so far, the last of equals; a NaN goes before all --- */

static graft_status infer_extremum(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_cummax_self);
  bool helper = !c->schema->nrets;
  int dim_arg = helper ? ARG_cummax_helper_dim : ARG_cummax_dim;
  int64_t dim = op_int(c, dim_arg);
  graft_status status = self->numel ? op_wrap_dim(c, &dim, self->ndim) : GRAFT_OK; /* of nothing: as PyTorch */
  if (status) return status;
  if (!self->numel) dim = 0;
  bool real = !dt_is_complex(self->dtype) && !dt_is_float8(self->dtype);
  if (!real && self->numel && (self->ndim || helper))
    return op_refuse(c, ARG_cummax_self, "a real dtype, which has an order");
  c->compute = self->dtype;
  op_set_int(c, dim_arg, dim);
  if (!helper) {
    op_out(c, OUT_cummax_values, self->dtype, self->ndim, self->sizes);
    op_out(c, OUT_cummax_indices, GRAFT_I64, self->ndim, self->sizes);
    return GRAFT_OK;
  }
  for (int i = ARG_cummax_helper_values; i <= ARG_cummax_helper_indices; i++) { /* what it writes */
    const graft_tensor *t = op_tensor(c, i);
    graft_dtype wanted = i == ARG_cummax_helper_values ? self->dtype : GRAFT_I64;
    if (t->dtype != wanted || !tns_same_sizes(t, self)) {
      return op_refuse(c, i, "the shape of self %s, and %s", op_show(c, ARG_cummax_self),
                       i == ARG_cummax_helper_values ? "its dtype" : "i64");
    }
  }
  return GRAFT_OK;
}

static graft_status scan_extremum(const graft_tensor_desc *self, int64_t dim, int sign, const graft_tensor_desc *values,
                                  const graft_tensor_desc *indices) {
  REF_OWNED ref_array x = ref_read(self), at = ref_new(x.count, false);
  if (!(x.re && at.re)) return ref_no_memory();
  ref_split s = ref_split_at(self, dim);
  for (int64_t line = 0; line < s.outer * s.inner; line++) {
    int64_t start = line / s.inner * s.size * s.inner + line % s.inner, best = 0;
    for (int64_t i = 0; i < s.size; i++) {
      ref_real value = x.re[start + i * s.inner], most = x.re[start + best * s.inner];
      if (isnan(value) || (!isnan(most) && (sign > 0 ? value >= most : value <= most))) best = i;
      at.re[start + i * s.inner] = (ref_real)best;
    }
    for (int64_t i = s.size - 1; i >= 0; i--) {
      x.re[start + i * s.inner] = x.re[start + (int64_t)at.re[start + i * s.inner] * s.inner];
    }
  }
  ref_write(values, &x);
  ref_write(indices, &at);
  return GRAFT_OK;
}

#define EXTREMUM(name, sign)                                                       \
  graft_status kernel_##name(const graft_exec *exec, const graft_args_##name *a) { \
    return scan_extremum(a->self, a->dim, sign, a->values, a->indices);            \
  }
EXTREMUM(cummax, 1)
EXTREMUM(cummin, -1)
EXTREMUM(cummax_helper, 1)

static void vjp_extremum(op_vjp *v) {
  const in_cummax in = in_cummax_of(v->args);
  if (!v->g[OUT_cummax_values]) return;
  graft_tensor *zeros =
      fx_filled(v->s, v->g[OUT_cummax_values], in.self->ndim, in.self->sizes, 0, v->g[OUT_cummax_values]->dtype);
  v->results[ARG_cummax_self] =
      fx_scatter_add(v->s, zeros, in.dim, v->outs[OUT_cummax_indices], v->g[OUT_cummax_values]);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(cumsum), .roles = "v", .infer = infer_cumulative, .vjp = vjp_cumsum},
    {.op_id = OP_WITH_KERNEL(cumprod),
     .roles = "v",
     .infer = infer_cumulative,
     .vjp = vjp_cumprod,
     .saves = OP_SAVE_ARG(cumprod, self) | OP_SAVE_OUT(cumprod, out)},
    {.op_id = OP_WITH_KERNEL(logcumsumexp),
     .roles = "v",
     .infer = infer_logcumsumexp,
     .vjp = vjp_logcumsumexp,
     .saves = OP_SAVE_ARG(logcumsumexp, self) | OP_SAVE_OUT(logcumsumexp, out)},
    {.op_id = OP_WITH_KERNEL(cummax),
     .roles = "v",
     .infer = infer_extremum,
     .vjp = vjp_extremum,
     .saves = OP_SAVE_OUT(cummax, indices),
     .flags = OP_NO_WIDEN},
    {.op_id = OP_WITH_KERNEL(cummin),
     .roles = "v",
     .infer = infer_extremum,
     .vjp = vjp_extremum,
     .saves = OP_SAVE_OUT(cummin, indices),
     .flags = OP_NO_WIDEN},
    {.op_id = OP_WITH_KERNEL(cummax_helper), .roles = "vkk", .infer = infer_extremum, .flags = OP_NO_WIDEN},
};
OP_TABLE(scan, defs)
