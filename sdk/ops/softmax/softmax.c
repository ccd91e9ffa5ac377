/* Softmax and its logarithm along a dim, and their gradients. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

static graft_status canonical_dim(op_call *c, int arg) {
  int64_t dim = op_int(c, arg);
  graft_status status = op_wrap_dim(c, &dim, op_tensor(c, ARG_softmax_self)->ndim);
  op_set_int(c, arg, dim);
  return status;
}

/* PyTorch's kernels refuse other dtypes, and run for no empty tensor. The first argument is self, or grad_output. */
static graft_status real_floating(op_call *c) {
  const graft_tensor *first = op_tensor(c, ARG_softmax_self);
  c->compute = first->dtype;
  return first->numel ? op_check_floating(c, ARG_softmax_self) : GRAFT_OK;
}

static graft_status infer_softmax(op_call *c) {
  const in_softmax in = in_softmax_of(c->args);
  graft_status status = real_floating(c);
  if (!status) status = canonical_dim(c, ARG_softmax_dim);
  if (status) return status;
  bool widen = in.half_to_float;
  /* PyTorch gives the logarithm of bf16 in bf16 only. */
  bool can = in.self->dtype == GRAFT_F16 || (in.self->dtype == GRAFT_BF16 && c->schema->id == GRAFT_OP_SOFTMAX);
  if (widen && !can)
    return op_error(c, "half_to_float is for f16%s; self is %s", c->schema->id == GRAFT_OP_SOFTMAX ? " and bf16" : "",
                    op_show(c, ARG_softmax_self));
  op_out(c, OUT, widen ? GRAFT_F32 : in.self->dtype, in.self->ndim, in.self->sizes);
  return GRAFT_OK;
}

/* _safe_softmax: a row of -inf gives zeros */
static graft_status infer_safe_softmax(op_call *c) {
  const in_safe_softmax in = in_safe_softmax_of(c->args);
  graft_dtype dtype = in.dtype ? in.dtype : in.self->dtype;
  if (!dt_is_float(dtype) || dt_is_complex(in.self->dtype)) {
    return op_refuse(c, ARG_safe_softmax_self, "a floating dtype, or another real one with the dtype argument");
  }
  graft_status status = canonical_dim(c, ARG_safe_softmax_dim);
  if (status) return status;
  c->compute = dtype;
  op_set_dtype(c, ARG_safe_softmax_dtype, dtype);
  op_out(c, OUT, dtype, in.self->ndim, in.self->sizes);
  return GRAFT_OK;
}

static graft_status infer_backward(op_call *c) {
  const in_softmax_backward_data in = in_softmax_backward_data_of(c->args);
  const graft_tensor *g = in.grad_output, *out = in.output;
  graft_dtype dtype = in.input_dtype;
  graft_status status = real_floating(c);
  if (!status) status = canonical_dim(c, ARG_softmax_backward_data_dim);
  if (status) return status;
  if (g->dtype != out->dtype || !tns_same_sizes(g, out))
    return op_error(c, "grad_output and output differ (%s)", op_show_tensors(c));
  if (dtype != g->dtype && !(g->dtype == GRAFT_F32 && dt_is_half(dtype))) {
    return op_error(c, "input_dtype is %s; expected grad_output's, or f16 or bf16 for f32 (%s)",
                    graft_dtype_name(dtype), op_show_tensors(c));
  }
  op_out(c, OUT, dtype, g->ndim, g->sizes);
  return GRAFT_OK;
}

/* --- kernels --- */

/* Visits the lines of a dim; x and, for the gradients, y are dense. A function of a line writes over x. */
typedef void (*line_fn)(graft_dtype dtype, ref_real *x, const ref_real *y, int64_t count);

static graft_status along(const graft_tensor_desc *x, const graft_tensor_desc *y, const graft_tensor_desc *out,
                          int64_t dim, line_fn fn) {
  ref_split s = ref_split_at(x, dim);
  REF_OWNED ref_array xs = ref_read(x), ys = ref_read(y ? y : x), lines = ref_new(2 * s.size, false);
  if (!(xs.re && ys.re && lines.re)) return ref_no_memory();
  ref_real *a = lines.re, *b = lines.re + s.size;
  for (int64_t n = 0; n < s.outer * s.inner; n++) {
    int64_t start = n / s.inner * s.size * s.inner + n % s.inner;
    for (int64_t i = 0; i < s.size; i++) {
      a[i] = xs.re[start + i * s.inner];
      b[i] = ys.re[start + i * s.inner];
    }
    fn(x->dl.dtype, a, b, s.size);
    for (int64_t i = 0; i < s.size; i++) xs.re[start + i * s.inner] = a[i];
  }
  ref_write(out, &xs);
  return GRAFT_OK;
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

#define SLOT(name, x, y, fn)                                                       \
  graft_status kernel_##name(const graft_exec *exec, const graft_args_##name *a) { \
    return along(a->x, y, a->out, a->dim, fn);                                     \
  }
SLOT(softmax, self, NULL, line_softmax)
SLOT(log_softmax, self, NULL, line_log_softmax)
SLOT(safe_softmax, self, NULL, line_safe_softmax)
SLOT(softmax_backward_data, grad_output, a->output, line_softmax_backward)
SLOT(log_softmax_backward_data, grad_output, a->output, line_log_softmax_backward)

/* --- decompositions --- */

/* Sum along the dim, kept with size 1. */
static graft_tensor *sum_along(fx *s, graft_tensor *x, int64_t dim) {
  return x && x->ndim ? fx_sum(s, x, 1u << dim, true) : x;
}

static graft_tensor *shifted(fx *s, graft_tensor *x, int64_t dim) {
  return fx_sub(s, x, x->ndim ? fx_amax(s, x, &dim, 1, true) : x);
}

/* Half types whose result is asked for in f32: they have been widened, and need no flag now. */
static bool already_wide(const op_call *c) {
  const in_softmax in = in_softmax_of(c->args);
  return in.half_to_float && !dt_is_half(in.self->dtype);
}

static void decompose_softmax(fx *s, const op_call *c, graft_tensor **outs) {
  const in_softmax in = in_softmax_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  if (already_wide(c)) {
    outs[OUT] = fx_softmax(s, in.self, in.dim, false);
    return;
  }
  graft_tensor *e = fx_exp(s, shifted(s, in.self, in.dim));
  outs[OUT] = fx_div(s, e, sum_along(s, e, in.dim));
}

static void decompose_log_softmax(fx *s, const op_call *c, graft_tensor **outs) {
  const in_log_softmax in = in_log_softmax_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  if (already_wide(c)) {
    outs[OUT] = fx_log_softmax(s, in.self, in.dim, false);
    return;
  }
  graft_tensor *x = shifted(s, in.self, in.dim);
  outs[OUT] = fx_sub(s, x, fx_log(s, sum_along(s, fx_exp(s, x), in.dim)));
}

static void decompose_safe_softmax(fx *s, const op_call *c, graft_tensor **outs) {
  const in_safe_softmax in = in_safe_softmax_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  int64_t dim = in.dim;
  graft_tensor *most = in.self->ndim ? fx_amax(s, in.self, &dim, 1, true) : in.self;
  graft_tensor *masked = fx_eq_Scalar(s, most, graft_scalar_float(-INFINITY));
  outs[OUT] = fx_not_where(s, masked, fx_softmax(s, in.self, dim, false));
}

static void decompose_softmax_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_softmax_backward_data in = in_softmax_backward_data_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *y = in.output, *gy = fx_mul(s, in.grad_output, y);
  outs[OUT] = fx_sub(s, gy, fx_mul(s, y, sum_along(s, gy, in.dim)));
}

static void decompose_log_softmax_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_log_softmax_backward_data in = in_log_softmax_backward_data_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *g = in.grad_output;
  outs[OUT] = fx_sub(s, g, fx_mul(s, fx_exp(s, in.output), sum_along(s, g, in.dim)));
}

/* --- _masked_softmax: what is masked counts as -infinity, in its gradient as 0, and is 0 there --- */

/* What a mask stands beside: attention scores [B, H, L, L], or anything of its own shape. */
enum { MASK_SOURCES, MASK_PADDING, MASK_EACH }; /* [L, L]; [B, L]; one of the input's shape */

static graft_status infer_masked(op_call *c) {
  const in_masked_softmax in = in_masked_softmax_of(c->args);
  const graft_tensor *self = in.self, *mask = in.mask;
  int64_t dim = in.dim ? *in.dim : -1, kind = in.mask_type ? *in.mask_type : -1;
  graft_status status = op_check_dtype(c, ARG_masked_softmax_mask, GRAFT_BOOL);
  if (!status && self->numel) status = op_check_floating(c, ARG_masked_softmax_self);
  if (!status) status = op_wrap_dim(c, &dim, self->ndim);
  if (status) return status;
  if (mask->ndim != 2 || self->ndim != 4) kind = MASK_EACH;
  if (kind < MASK_SOURCES || kind > MASK_EACH) {
    return op_error(c, "mask_type is %s; expected 0 (L x L), 1 (B x L) or 2 (of self's shape)",
                    in.mask_type ? "another" : "missing");
  }
  bool fits = tns_same_sizes(self, mask);
  if (kind == MASK_SOURCES) fits = self->sizes[2] == mask->sizes[0] && self->sizes[2] == mask->sizes[1];
  if (kind == MASK_PADDING) fits = self->sizes[0] == mask->sizes[0] && self->sizes[2] == mask->sizes[1];
  /* PyTorch compares with the scores' rows, and then expands to their columns. */
  if (kind != MASK_EACH) fits = fits && self->sizes[2] == self->sizes[3];
  if (!fits) return op_error(c, "the mask does not fit mask_type %lld (%s)", (long long)kind, op_show_tensors(c));
  op_set_int(c, ARG_masked_softmax_dim, dim);
  op_set_int(c, ARG_masked_softmax_mask_type, kind);
  c->compute = self->dtype;
  op_out_like(c, OUT, self->dtype, self);
  return GRAFT_OK;
}

/* The mask with the input's dims, to be broadcast. */
static graft_tensor *mask_beside(fx *s, const in_masked_softmax *in) {
  if (*in->mask_type != MASK_PADDING) return in->mask;
  return fx_reshape(s, in->mask, 4, (int64_t[]){in->mask->sizes[0], 1, 1, in->mask->sizes[1]});
}

static void decompose_masked(fx *s, const op_call *c, graft_tensor **outs) {
  const in_masked_softmax in = in_masked_softmax_of(c->args);
  graft_tensor *left = fx_where(s, mask_beside(s, &in), fx_float(-INFINITY), fx_tensor(in.self));
  outs[OUT] = fx_softmax(s, left, *in.dim, false);
}

static void vjp_masked(op_vjp *v) {
  const in_masked_softmax in = in_masked_softmax_of(v->args);
  graft_tensor *mask = fx_expand(v->s, mask_beside(v->s, &in), in.self->sizes, (uint32_t)in.self->ndim, false);
  graft_tensor *gradient = fx_masked_softmax_backward(v->s, v->g[OUT], v->outs[OUT], mask, in.dim);
  /* That of a tensor without dims has one. */
  v->results[ARG_masked_softmax_self] = fx_reshape(v->s, gradient, in.self->ndim, in.self->sizes);
}

static graft_status infer_masked_backward(op_call *c) {
  const in_masked_softmax_backward in = in_masked_softmax_backward_of(c->args);
  const graft_tensor *g = in.grad_output;
  int64_t dim = in.dim ? *in.dim : -1, one = 1;
  graft_status status = op_wrap_dim(c, &dim, g->ndim);
  if (!status) status = op_check_floating(c, ARG_masked_softmax_backward_grad_output);
  if (!status)
    status = op_check_same_dtype(c, ARG_masked_softmax_backward_grad_output, ARG_masked_softmax_backward_output);
  if (!status) status = op_check_dtype(c, ARG_masked_softmax_backward_mask, GRAFT_BOOL);
  if (status) return status;
  if (!tns_same_sizes(g, in.output) || !tns_same_sizes(g, in.mask))
    return op_error(c, "expected output and mask of grad_output's shape (%s)", op_show_tensors(c));
  op_set_int(c, ARG_masked_softmax_backward_dim, dim);
  c->compute = g->dtype;
  op_out(c, OUT, g->dtype, g->ndim ? g->ndim : 1, g->ndim ? g->sizes : &one);
  return GRAFT_OK;
}

static void decompose_masked_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_masked_softmax_backward in = in_masked_softmax_backward_of(c->args);
  graft_tensor *g = fx_not_where(s, in.mask, in.grad_output), *y = fx_not_where(s, in.mask, in.output);
  graft_tensor *out = fx_softmax_backward_data(s, g, y, *in.dim, c->compute);
  outs[OUT] = fx_reshape(s, out, c->out[OUT].ndim, c->out[OUT].sizes);
}

/* --- gradients --- */

static void vjp_softmax(op_vjp *v) {
  v->results[ARG_softmax_self] =
      fx_softmax_backward_data(v->s, v->g[OUT], v->outs[OUT], v->args[ARG_softmax_dim].as.i, v->outs[OUT]->dtype);
}

static void vjp_log_softmax(op_vjp *v) {
  v->results[ARG_log_softmax_self] = fx_log_softmax_backward_data(
      v->s, v->g[OUT], v->outs[OUT], v->args[ARG_log_softmax_dim].as.i, v->outs[OUT]->dtype);
}

/* y (g - <g, y>) is linear in g and its own adjoint. */
static void vjp_softmax_backward(op_vjp *v) {
  const in_softmax_backward_data in = in_softmax_backward_data_of(v->args);
  graft_tensor *g = in.grad_output, *y = in.output, *u = fx_cast(v->s, v->g[OUT], g->dtype);
  if (vjp_needs(v, ARG_softmax_backward_data_grad_output))
    v->results[ARG_softmax_backward_data_grad_output] = fx_softmax_backward_data(v->s, u, y, in.dim, y->dtype);
  if (!vjp_needs(v, ARG_softmax_backward_data_output)) return;
  graft_tensor *gy = sum_along(v->s, fx_mul(v->s, g, y), in.dim), *uy = sum_along(v->s, fx_mul(v->s, u, y), in.dim);
  graft_tensor *even = fx_sub(v->s, fx_mul(v->s, u, g), fx_mul(v->s, u, gy));
  v->results[ARG_softmax_backward_data_output] = fx_sub(v->s, even, fx_mul(v->s, g, uy));
}

/* g - e^y <g, 1> */
static void vjp_log_softmax_backward(op_vjp *v) {
  const in_log_softmax_backward_data in = in_log_softmax_backward_data_of(v->args);
  graft_tensor *g = in.grad_output, *y = in.output, *u = fx_cast(v->s, v->g[OUT], g->dtype);
  graft_tensor *weighted = fx_mul(v->s, u, fx_exp(v->s, y));
  if (vjp_needs(v, ARG_log_softmax_backward_data_grad_output))
    v->results[ARG_log_softmax_backward_data_grad_output] = fx_sub(v->s, u, sum_along(v->s, weighted, in.dim));
  if (vjp_needs(v, ARG_log_softmax_backward_data_output))
    v->results[ARG_log_softmax_backward_data_output] = fx_neg(v->s, fx_mul(v->s, weighted, sum_along(v->s, g, in.dim)));
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(softmax),
     .flags = OP_EXACT_OUT | OP_BY_LINES,
     .roles = "v",
     .infer = infer_softmax,
     .decompose = decompose_softmax,
     .vjp = vjp_softmax,
     .saves = OP_SAVE_OUT(softmax, out)},
    {.op_id = OP_WITH_KERNEL(log_softmax),
     .flags = OP_EXACT_OUT | OP_BY_LINES,
     .roles = "v",
     .infer = infer_softmax,
     .decompose = decompose_log_softmax,
     .vjp = vjp_log_softmax,
     .saves = OP_SAVE_OUT(log_softmax, out)},
    {.op_id = OP_WITH_KERNEL(safe_softmax),
     .flags = OP_BY_LINES,
     .roles = "v",
     .infer = infer_safe_softmax,
     .decompose = decompose_safe_softmax,
     .vjp = vjp_softmax,
     .saves = OP_SAVE_OUT(safe_softmax, out)},
    {.op_id = OP_WITH_KERNEL(softmax_backward_data),
     .flags = OP_BY_LINES,
     .roles = "vv",
     .infer = infer_backward,
     .decompose = decompose_softmax_backward,
     .vjp = vjp_softmax_backward,
     .saves = OP_SAVE_ARGS(softmax_backward_data, grad_output, output)},
    {.op_id = OP_WITH_KERNEL(log_softmax_backward_data),
     .flags = OP_BY_LINES,
     .roles = "vv",
     .infer = infer_backward,
     .decompose = decompose_log_softmax_backward,
     .vjp = vjp_log_softmax_backward,
     .saves = OP_SAVE_ARGS(log_softmax_backward_data, grad_output, output)},
    {.op_id = GRAFT_OP_MASKED_SOFTMAX,
     .flags = OP_NO_WIDEN,
     .roles = "vk",
     .infer = infer_masked,
     .decompose = decompose_masked,
     .vjp = vjp_masked,
     .saves = OP_SAVE_ARGS(masked_softmax, mask) | OP_SAVE_OUT(masked_softmax, out)},
    {.op_id = GRAFT_OP_MASKED_SOFTMAX_BACKWARD,
     .roles = "vvk",
     .infer = infer_masked_backward,
     .decompose = decompose_masked_backward},
};
OP_TABLE(softmax, defs)
