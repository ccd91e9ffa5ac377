/* Softmax and its logarithm along a dim, and their gradients. */
#include "ops/core/families.h"
#include "ops/core/ref.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

static graft_status canonical_dim(op_call *c, int arg) {
  int64_t dim = op_int(c, arg);
  graft_status status = op_wrap_dim(c, &dim, op_tensor(c, 0)->ndim);
  op_set_int(c, arg, dim);
  return status;
}

/* PyTorch's kernels refuse other dtypes, and run for no empty tensor. */
static graft_status real_floating(op_call *c) {
  graft_dtype dtype = op_tensor(c, 0)->dtype;
  if (op_tensor(c, 0)->numel && (!dt_is_float(dtype) || dt_is_float8(dtype)))
    return op_refuse_dtype(c, 0, "a floating dtype");
  c->compute = dtype;
  return GRAFT_OK;
}

/* _softmax and _log_softmax(self, dim, half_to_float) */
static graft_status infer_softmax(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  graft_status status = real_floating(c);
  if (!status) status = canonical_dim(c, 1);
  if (status) return status;
  bool widen = op_bool(c, 2);
  /* PyTorch gives the logarithm of bf16 in bf16 only. */
  bool can = self->dtype == GRAFT_F16 || (self->dtype == GRAFT_BF16 && c->schema->id == GRAFT_OP_SOFTMAX);
  if (widen && !can)
    return op_error(c, "half_to_float is for f16%s; self is %s", c->schema->id == GRAFT_OP_SOFTMAX ? " and bf16" : "",
                    op_show(c, 0));
  op_out(c, 0, widen ? GRAFT_F32 : self->dtype, self->ndim, self->sizes);
  return GRAFT_OK;
}

/* _safe_softmax(self, dim, dtype): a row of -inf gives zeros */
static graft_status infer_safe_softmax(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  graft_dtype dtype = op_dtype(c, 2) ? op_dtype(c, 2) : self->dtype;
  if (!dt_is_float(dtype) || dt_is_complex(self->dtype)) {
    return op_refuse_dtype(c, 0, "a floating dtype, or another real one with the dtype argument");
  }
  graft_status status = canonical_dim(c, 1);
  if (status) return status;
  c->compute = dtype;
  op_set_dtype(c, 2, dtype);
  op_out(c, 0, dtype, self->ndim, self->sizes);
  return GRAFT_OK;
}

/* _softmax_backward_data and _log_softmax_backward_data(grad_output, output, dim, input_dtype) */
static graft_status infer_backward(op_call *c) {
  const graft_tensor *g = op_tensor(c, 0), *out = op_tensor(c, 1);
  graft_dtype dtype = op_dtype(c, 3);
  graft_status status = real_floating(c);
  if (!status) status = canonical_dim(c, 2);
  if (status) return status;
  bool same = g->ndim == out->ndim && g->dtype == out->dtype;
  for (int32_t i = 0; same && i < g->ndim; i++) same = g->sizes[i] == out->sizes[i];
  if (!same) return op_error(c, "grad_output and output differ (%s)", op_show_tensors(c));
  if (dtype != g->dtype && !(g->dtype == GRAFT_F32 && dt_is_half(dtype))) {
    return op_error(c, "input_dtype is %s; expected grad_output's, or f16 or bf16 for f32 (%s)",
                    graft_dtype_name(dtype), op_show_tensors(c));
  }
  op_out(c, 0, dtype, g->ndim, g->sizes);
  return GRAFT_OK;
}

/* --- kernels --- */

/* Visits the lines of a dim; x and, for the gradients, y are dense. A function of a line writes over x. */
typedef void (*line_fn)(graft_dtype dtype, ref_real *x, const ref_real *y, int64_t count);

static graft_status along(const graft_tensor_desc *x, const graft_tensor_desc *y, const graft_tensor_desc *out,
                          int64_t dim, line_fn fn) {
  ref_split s = ref_split_at(x, dim);
  ref_array xs = ref_read(x), ys = ref_read(y ? y : x), lines = ref_new(2 * s.size, false);
  graft_status status = xs.re && ys.re && lines.re ? GRAFT_OK : ref_no_memory();
  ref_real *a = lines.re, *b = lines.re + s.size;
  for (int64_t n = 0; !status && n < s.outer * s.inner; n++) {
    int64_t start = n / s.inner * s.size * s.inner + n % s.inner;
    for (int64_t i = 0; i < s.size; i++) {
      a[i] = xs.re[start + i * s.inner];
      b[i] = ys.re[start + i * s.inner];
    }
    fn(x->dl.dtype, a, b, s.size);
    for (int64_t i = 0; i < s.size; i++) xs.re[start + i * s.inner] = a[i];
  }
  if (!status) ref_write(out, &xs);
  ref_free(&xs);
  ref_free(&ys);
  ref_free(&lines);
  return status;
}

static ref_real largest(const ref_real *x, int64_t count) {
  ref_real most = count ? x[0] : 0;
  for (int64_t i = 1; i < count; i++) {
    if (x[i] > most || isnan(x[i])) most = x[i];
  }
  return most;
}

static void line_softmax(graft_dtype dtype, ref_real *x, const ref_real *y, int64_t count) {
  ref_real most = largest(y, count);
  for (int64_t i = 0; i < count; i++) x[i] = expl(x[i] - most);
  ref_real sum = ref_sum(dtype, x, 1, count);
  for (int64_t i = 0; i < count; i++) x[i] /= sum;
}

static void line_safe_softmax(graft_dtype dtype, ref_real *x, const ref_real *y, int64_t count) {
  bool masked = largest(y, count) == -INFINITY;
  line_softmax(dtype, x, y, count);
  for (int64_t i = 0; masked && i < count; i++) x[i] = 0;
}

static void line_log_softmax(graft_dtype dtype, ref_real *x, const ref_real *y, int64_t count) {
  ref_real most = largest(y, count);
  for (int64_t i = 0; i < count; i++) x[i] = expl(x[i] - most);
  ref_real shift = logl(ref_sum(dtype, x, 1, count));
  for (int64_t i = 0; i < count; i++) x[i] = y[i] - most - shift;
}

static void line_softmax_backward(graft_dtype dtype, ref_real *g, const ref_real *y, int64_t count) {
  ref_real sum = ref_dot(dtype, g, 1, y, 1, count);
  for (int64_t i = 0; i < count; i++) g[i] = y[i] * (g[i] - sum);
}

static void line_log_softmax_backward(graft_dtype dtype, ref_real *g, const ref_real *y, int64_t count) {
  ref_real sum = ref_sum(dtype, g, 1, count);
  for (int64_t i = 0; i < count; i++) g[i] -= expl(y[i]) * sum;
}

#define SLOT(name, x, y, fn)                                                           \
  static graft_status ref_##name(const graft_exec *exec, const graft_args_##name *a) { \
    (void)exec;                                                                        \
    return along(a->x, y, a->out, a->dim, fn);                                         \
  }
SLOT(softmax, self, NULL, line_softmax)
SLOT(log_softmax, self, NULL, line_log_softmax)
SLOT(safe_softmax, self, NULL, line_safe_softmax)
SLOT(softmax_backward_data, grad_output, a->output, line_softmax_backward)
SLOT(log_softmax_backward_data, grad_output, a->output, line_log_softmax_backward)

/* --- decompositions --- */

/* Sum along the dim, kept with size 1. */
static graft_tensor *sum_along(fx *s, graft_tensor *x, int64_t dim) {
  return s->status || !x || !x->ndim ? x : fx_sum(s, x, 1u << dim, true);
}

static graft_tensor *shifted(fx *s, graft_tensor *x, int64_t dim) {
  return fx_sub(s, x, x->ndim ? fx_amax(s, x, &dim, 1, true) : x);
}

/* Half types whose result is asked for in f32: they have been widened, and need no flag now. */
static bool already_wide(const op_call *c) {
  return op_bool(c, 2) && !dt_is_half(op_tensor(c, 0)->dtype);
}

static void decompose_softmax(fx *s, const op_call *c, graft_tensor **outs) {
  int64_t dim = op_int(c, 1);
  graft_tensor *self = op_tensor(c, 0);
  if (op_ran_wider(s, c, outs)) return;
  if (already_wide(c)) {
    outs[0] = fx_softmax(s, self, dim, false);
    return;
  }
  graft_tensor *e = fx_exp(s, shifted(s, self, dim));
  outs[0] = fx_div(s, e, sum_along(s, e, dim));
}

static void decompose_log_softmax(fx *s, const op_call *c, graft_tensor **outs) {
  int64_t dim = op_int(c, 1);
  graft_tensor *self = op_tensor(c, 0);
  if (op_ran_wider(s, c, outs)) return;
  if (already_wide(c)) {
    outs[0] = fx_log_softmax(s, self, dim, false);
    return;
  }
  graft_tensor *x = shifted(s, self, dim);
  outs[0] = fx_sub(s, x, fx_log(s, sum_along(s, fx_exp(s, x), dim)));
}

static void decompose_safe_softmax(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  int64_t dim = op_int(c, 1);
  graft_tensor *self = op_tensor(c, 0), *most = self->ndim ? fx_amax(s, self, &dim, 1, true) : self;
  graft_tensor *masked = fx_eq_Scalar(s, most, graft_scalar_float(-INFINITY));
  fx_call(
      s, GRAFT_OP_WHERE_SELF,
      (graft_value[]){fx_tensor(masked), fx_number(graft_scalar_float(0)), fx_tensor(fx_softmax(s, self, dim, false))},
      3, outs, 1);
}

static void decompose_softmax_backward(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *y = op_tensor(c, 1), *gy = fx_mul(s, op_tensor(c, 0), y);
  outs[0] = fx_sub(s, gy, fx_mul(s, y, sum_along(s, gy, op_int(c, 2))));
}

static void decompose_log_softmax_backward(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *g = op_tensor(c, 0);
  outs[0] = fx_sub(s, g, fx_mul(s, fx_exp(s, op_tensor(c, 1)), sum_along(s, g, op_int(c, 2))));
}

/* --- gradients --- */

static void vjp_softmax(op_vjp *v) {
  v->results[0] = fx_softmax_backward_data(v->s, v->g[0], v->outs[0], v->args[1].as.i, v->outs[0]->dtype);
}

static void vjp_log_softmax(op_vjp *v) {
  v->results[0] = fx_log_softmax_backward_data(v->s, v->g[0], v->outs[0], v->args[1].as.i, v->outs[0]->dtype);
}

/* y (g - <g, y>) is linear in g and its own adjoint. */
static void vjp_softmax_backward(op_vjp *v) {
  graft_tensor *g = vjp_arg(v, 0), *y = vjp_arg(v, 1), *u = fx_cast(v->s, v->g[0], g->dtype);
  int64_t dim = v->args[2].as.i;
  if (vjp_needs(v, 0)) v->results[0] = fx_softmax_backward_data(v->s, u, y, dim, y->dtype);
  if (!vjp_needs(v, 1)) return;
  graft_tensor *gy = sum_along(v->s, fx_mul(v->s, g, y), dim), *uy = sum_along(v->s, fx_mul(v->s, u, y), dim);
  graft_tensor *even = fx_sub(v->s, fx_mul(v->s, u, g), fx_mul(v->s, u, gy));
  v->results[1] = fx_sub(v->s, even, fx_mul(v->s, g, uy));
}

/* g - e^y <g, 1> */
static void vjp_log_softmax_backward(op_vjp *v) {
  graft_tensor *g = vjp_arg(v, 0), *y = vjp_arg(v, 1), *u = fx_cast(v->s, v->g[0], g->dtype);
  int64_t dim = v->args[2].as.i;
  graft_tensor *weighted = fx_mul(v->s, u, fx_exp(v->s, y));
  if (vjp_needs(v, 0)) v->results[0] = fx_sub(v->s, u, sum_along(v->s, weighted, dim));
  if (vjp_needs(v, 1)) v->results[1] = fx_neg(v->s, fx_mul(v->s, weighted, sum_along(v->s, g, dim)));
}

#define BOTH (OP_SAVE_ARG(0) | OP_SAVE_ARG(1))

static const op_def defs[] = {
    {.op_id = GRAFT_OP_SOFTMAX,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_softmax,
     .decompose = decompose_softmax,
     .vjp = vjp_softmax,
     .saves = OP_SAVE_OUT(0),
     .reference = OP_REF(softmax)},
    {.op_id = GRAFT_OP_LOG_SOFTMAX,
     .flags = OP_EXACT_OUT,
     .roles = "v",
     .infer = infer_softmax,
     .decompose = decompose_log_softmax,
     .vjp = vjp_log_softmax,
     .saves = OP_SAVE_OUT(0),
     .reference = OP_REF(log_softmax)},
    {.op_id = GRAFT_OP_SAFE_SOFTMAX,
     .roles = "v",
     .infer = infer_safe_softmax,
     .decompose = decompose_safe_softmax,
     .vjp = vjp_softmax,
     .saves = OP_SAVE_OUT(0),
     .reference = OP_REF(safe_softmax)},
    {.op_id = GRAFT_OP_SOFTMAX_BACKWARD_DATA,
     .roles = "vv",
     .infer = infer_backward,
     .decompose = decompose_softmax_backward,
     .vjp = vjp_softmax_backward,
     .saves = BOTH,
     .reference = OP_REF(softmax_backward_data)},
    {.op_id = GRAFT_OP_LOG_SOFTMAX_BACKWARD_DATA,
     .roles = "vv",
     .infer = infer_backward,
     .decompose = decompose_log_softmax_backward,
     .vjp = vjp_log_softmax_backward,
     .saves = BOTH,
     .reference = OP_REF(log_softmax_backward_data)},
};
OP_TABLE(softmax, defs)
