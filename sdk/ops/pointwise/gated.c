/* Activations with two results, and the gated linear unit, which takes its tensor apart along a dim. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"

static ref_real logistic(ref_real x) {
  return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

static graft_status check_float(op_call *c) {
  c->compute = op_promote_tensors(c);
  if (!c->compute) return op_error(c, "these dtypes do not promote to a common one: %s", op_show_tensors(c));
  if (dt_is_float(c->compute) && !dt_is_float8(c->compute)) return GRAFT_OK;
  return op_error(c, "expected a floating dtype (%s)", op_show_tensors(c));
}

/* --- log_sigmoid_forward -> (output, buffer): buffer is exp(-|self|), which the gradient is made of --- */

static graft_status infer_log_sigmoid(op_call *c) {
  graft_status status = check_float(c);
  if (status) return status;
  const graft_tensor *self = op_tensor(c, ARG_log_sigmoid_forward_self);
  for (int i = 0; i < 2; i++) op_out(c, i, self->dtype, self->ndim, self->sizes);
  return GRAFT_OK;
}

graft_status kernel_log_sigmoid_forward(const graft_exec *exec, const graft_args_log_sigmoid_forward *a) {
  REF_OWNED ref_array x = ref_read(a->self), buffer = ref_new(x.count, false);
  if (!(x.re && buffer.re)) return ref_no_memory();
  for (int64_t i = 0; i < x.count; i++) {
    buffer.re[i] = expl(-fabsl(x.re[i]));
    x.re[i] = (x.re[i] > 0 ? 0 : x.re[i]) - log1pl(buffer.re[i]);
  }
  ref_write(a->output, &x);
  ref_write(a->buffer, &buffer);
  return GRAFT_OK;
}

static void decompose_log_sigmoid(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *self = op_tensor(c, ARG_log_sigmoid_forward_self), *zero = fx_filled(s, self, 0, NULL, 0, self->dtype);
  outs[OUT_log_sigmoid_forward_buffer] = fx_exp(s, fx_neg(s, fx_abs(s, self)));
  outs[OUT_log_sigmoid_forward_output] =
      fx_sub(s, fx_minimum(s, self, zero), fx_log(s, fx_adds(s, outs[OUT_log_sigmoid_forward_buffer], 1)));
}

static void vjp_log_sigmoid(op_vjp *v) {
  if (v->g[OUT_log_sigmoid_forward_output])
    v->results[ARG_log_sigmoid_forward_self] =
        fx_log_sigmoid_backward(v->s, v->g[OUT_log_sigmoid_forward_output], vjp_arg(v, ARG_log_sigmoid_forward_self),
                                v->outs[OUT_log_sigmoid_forward_buffer]);
}

/* --- _prelu_kernel_backward -> (of self, of weight), each in the broadcast shape --- */

static graft_status infer_prelu_backward(op_call *c) {
  graft_status status = check_float(c);
  if (!status) status = op_out_broadcast(c, OUT_prelu_kernel_backward_out0, c->compute);
  return status ? status : op_out_broadcast(c, OUT_prelu_kernel_backward_out1, c->compute);
}

graft_status kernel_prelu_kernel_backward(const graft_exec *exec, const graft_args_prelu_kernel_backward *a) {
  REF_OWNED ref_array g = ref_read(a->grad_output), x = ref_read(a->self), w = ref_read(a->weight);
  if (!(g.re && x.re && w.re)) return ref_no_memory();
  for (int64_t i = 0; i < g.count; i++) {
    bool positive = x.re[i] > 0;
    ref_real of_weight = positive ? 0 : x.re[i] * g.re[i];
    g.re[i] = positive ? g.re[i] : w.re[i] * g.re[i];
    x.re[i] = of_weight;
  }
  ref_write(a->out0, &g);
  ref_write(a->out1, &x);
  return GRAFT_OK;
}

/* NULL is 0. */
static graft_tensor *choose(fx *s, graft_tensor *condition, graft_tensor *a, graft_tensor *b) {
  return fx_where(s, condition, a ? fx_tensor(a) : fx_int(0), b ? fx_tensor(b) : fx_int(0));
}

static void decompose_prelu_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_prelu_kernel_backward in = in_prelu_kernel_backward_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *g = in.grad_output;
  graft_tensor *positive = fx_is(s, GRAFT_OP_GT_TENSOR, in.self, 0);
  graft_tensor *of_self = fx_mul(s, in.weight, g), *of_weight = fx_mul(s, in.self, g);
  if (s->status) return;
  outs[OUT_prelu_kernel_backward_out0] = choose(s, positive, g, of_self);
  outs[OUT_prelu_kernel_backward_out1] = choose(s, positive, NULL, of_weight);
}

/* The two outputs are 1 and 0 times g where self is positive, else weight and self times g. */
static void vjp_prelu_backward(op_vjp *v) {
  const in_prelu_kernel_backward in = in_prelu_kernel_backward_of(v->args);
  fx *s = v->s;
  graft_tensor *g = in.grad_output;
  graft_tensor *positive = fx_is(s, GRAFT_OP_GT_TENSOR, in.self, 0), *first = v->g[OUT_prelu_kernel_backward_out0],
               *second = v->g[OUT_prelu_kernel_backward_out1];
  if (vjp_needs(v, ARG_prelu_kernel_backward_grad_output)) {
    graft_tensor *by_weight = first ? fx_mul(s, first, in.weight) : NULL,
                 *by_self = second ? fx_mul(s, second, in.self) : NULL;
    graft_tensor *rest = first && second ? fx_add(s, by_weight, by_self) : first ? by_weight : by_self;
    v->results[ARG_prelu_kernel_backward_grad_output] = s->status ? NULL : choose(s, positive, first, rest);
  }
  if (vjp_needs(v, ARG_prelu_kernel_backward_self) && second)
    v->results[ARG_prelu_kernel_backward_self] = choose(s, positive, NULL, fx_mul(s, g, second));
  if (vjp_needs(v, ARG_prelu_kernel_backward_weight) && first)
    v->results[ARG_prelu_kernel_backward_weight] = choose(s, positive, NULL, fx_mul(s, g, first));
}

/* --- glu: the first half times the sigmoid of the second --- */

/* `at`: where self stands; its dim is wrapped. */
static graft_status check_glu(op_call *c, int at, int dim_arg) {
  const graft_tensor *self = op_tensor(c, at);
  int64_t dim = op_int(c, dim_arg);
  graft_status status = check_float(c);
  if (!status && self->ndim == 0) status = op_error(c, "self has no dims");
  if (!status) status = op_wrap_dim(c, &dim, self->ndim);
  if (status) return status;
  op_set_int(c, dim_arg, dim);
  if (self->sizes[dim] % 2 == 0) return GRAFT_OK;
  return op_error(c, "dim %lld has %lld elements; expected an even number (%s)", (long long)dim,
                  (long long)self->sizes[dim], op_show_tensors(c));
}

static graft_status infer_glu(op_call *c) {
  graft_status status = check_glu(c, ARG_glu_self, ARG_glu_dim);
  if (status) return status;
  const in_glu in = in_glu_of(c->args);
  graft_tensor half = *in.self;
  half.sizes[in.dim] /= 2;
  half.numel /= 2;
  op_out(c, OUT, half.dtype, half.ndim, half.sizes);
  op_iterator_strides(&c->out[OUT], (const graft_tensor *const[]){&half, &half}, 2);
  return GRAFT_OK;
}

/* glu_backward: a slot sees a grad_output that is not broadcast */
static graft_status infer_glu_backward(op_call *c) {
  graft_status status = check_glu(c, ARG_glu_backward_self, ARG_glu_backward_dim);
  if (status) return status;
  const in_glu_backward in = in_glu_backward_of(c->args);
  const graft_tensor *g = in.grad_output;
  if (g->dtype != in.self->dtype) return op_error(c, "expected one dtype (%s)", op_show_tensors(c));
  bool fits = g->ndim <= in.self->ndim;
  c->decompose_only = g->ndim < in.self->ndim;
  for (int32_t i = 1; fits && i <= g->ndim; i++) {
    int64_t size = in.self->sizes[in.self->ndim - i] / (in.self->ndim - i == in.dim ? 2 : 1),
            given = g->sizes[g->ndim - i];
    fits = given == size || given == 1;
    c->decompose_only |= given != size;
  }
  if (!fits) return op_error(c, "expected a grad_output of half of self (%s)", op_show_tensors(c));
  op_out(c, OUT, in.self->dtype, in.self->ndim, in.self->sizes);
  return GRAFT_OK;
}

/* Where element i of the half tensor stands in the whole one, and the same element of the second half. */
static int64_t first_at(ref_split whole, int64_t i) {
  int64_t half = whole.size / 2 * whole.inner;
  return half ? i / half * whole.size * whole.inner + i % half : 0;
}

graft_status kernel_glu(const graft_exec *exec, const graft_args_glu *a) {
  ref_split whole = ref_split_at(a->self, a->dim);
  REF_OWNED ref_array x = ref_read(a->self), out = ref_new(x.count / 2, false);
  if (!(x.re && out.re)) return ref_no_memory();
  for (int64_t i = 0; i < out.count; i++) {
    int64_t at = first_at(whole, i);
    out.re[i] = x.re[at] * logistic(x.re[at + whole.size / 2 * whole.inner]);
  }
  ref_write(a->out, &out);
  return GRAFT_OK;
}

graft_status kernel_glu_backward(const graft_exec *exec, const graft_args_glu_backward *a) {
  ref_split whole = ref_split_at(a->self, a->dim);
  REF_OWNED ref_array g = ref_read(a->grad_output), x = ref_read(a->self);
  if (!(g.re && x.re)) return ref_no_memory();
  for (int64_t i = 0; i < g.count; i++) {
    int64_t at = first_at(whole, i), gate = at + whole.size / 2 * whole.inner;
    ref_real open = logistic(x.re[gate]);
    x.re[gate] = g.re[i] * x.re[at] * open * (1 - open);
    x.re[at] = g.re[i] * open;
  }
  ref_write(a->out, &x);
  return GRAFT_OK;
}

static graft_tensor *half_of(fx *s, graft_tensor *t, int64_t dim, int which) {
  if (!t) return NULL;
  int64_t half = t->sizes[dim] / 2, start = which ? half : 0, end = start + half;
  return fx_slice_Tensor(s, t, dim, &start, &end, 1);
}

/* Both halves and the sigmoid of the second. */
typedef struct gated {
  graft_tensor *a, *b, *open;
} gated;
static gated take_apart(fx *s, graft_tensor *t, int64_t dim) {
  gated x = {half_of(s, t, dim, 0), half_of(s, t, dim, 1), NULL};
  x.open = fx_sigmoid(s, x.b);
  return x;
}

static void decompose_glu(fx *s, const op_call *c, graft_tensor **outs) {
  const in_glu in = in_glu_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  gated x = take_apart(s, in.self, in.dim);
  outs[OUT] = fx_mul(s, x.a, x.open);
}

static void decompose_glu_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_glu_backward in = in_glu_backward_of(c->args);
  if (!c->decompose_only && op_ran_wider(s, c, outs)) return;
  gated x = take_apart(s, in.self, in.dim);
  graft_tensor *g = in.grad_output, *gate = fx_sigmoid_backward(s, fx_mul(s, g, x.a), x.open);
  graft_tensor *halves[] = {fx_mul(s, g, x.open), gate};
  if (!s->status) outs[OUT] = fx_cat(s, halves, 2, in.dim);
}

static void vjp_glu(op_vjp *v) {
  const in_glu in = in_glu_of(v->args);
  v->results[ARG_glu_self] = fx_glu_backward(v->s, v->g[OUT], in.self, in.dim);
}

/* The outputs are g s and g a s', with s = sigmoid, s' = s (1 - s), s'' = s' (1 - 2 s); h and k are their
 * cotangents. */
static void vjp_glu_backward(op_vjp *v) {
  const in_glu_backward in = in_glu_backward_of(v->args);
  fx *s = v->s;
  gated x = take_apart(s, in.self, in.dim);
  graft_tensor *g = in.grad_output, *h = half_of(s, v->g[OUT], in.dim, 0), *k = half_of(s, v->g[OUT], in.dim, 1);
  graft_tensor *slope = fx_mul(s, x.open, fx_adds(s, fx_neg(s, x.open), 1));
  if (vjp_needs(v, ARG_glu_backward_grad_output))
    v->results[ARG_glu_backward_grad_output] = fx_add(s, fx_mul(s, h, x.open), fx_mul(s, fx_mul(s, k, x.a), slope));
  if (!vjp_needs(v, ARG_glu_backward_self)) return;
  graft_tensor *bend = fx_adds(s, fx_muls(s, x.open, -2), 1);
  graft_tensor *of_b = fx_mul(s, fx_mul(s, g, slope), fx_add(s, h, fx_mul(s, fx_mul(s, k, x.a), bend)));
  graft_tensor *halves[] = {fx_mul(s, fx_mul(s, g, k), slope), of_b};
  if (!s->status) v->results[ARG_glu_backward_self] = fx_cat(s, halves, 2, in.dim);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(log_sigmoid_forward),
     .roles = "b",
     .infer = infer_log_sigmoid,
     .decompose = decompose_log_sigmoid,
     .vjp = vjp_log_sigmoid,
     .saves = OP_SAVE_ARG(log_sigmoid_forward, self) | OP_SAVE_OUT(log_sigmoid_forward, buffer),
     .flags = OP_ELEMENTWISE | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(prelu_kernel_backward),
     .roles = "bbb",
     .infer = infer_prelu_backward,
     .decompose = decompose_prelu_backward,
     .vjp = vjp_prelu_backward,
     .saves = OP_SAVE_ARG(prelu_kernel_backward, grad_output) | OP_SAVE_ARG(prelu_kernel_backward, self) |
              OP_SAVE_ARG(prelu_kernel_backward, weight),
     .flags = OP_ELEMENTWISE | OP_SECOND_FIRST},
    {.op_id = OP_WITH_KERNEL(glu),
     .roles = "v",
     .infer = infer_glu,
     .decompose = decompose_glu,
     .vjp = vjp_glu,
     .saves = OP_SAVE_ARG(glu, self)},
    {.op_id = OP_WITH_KERNEL(glu_backward),
     .roles = "vv",
     .infer = infer_glu_backward,
     .decompose = decompose_glu_backward,
     .vjp = vjp_glu_backward,
     .saves = OP_SAVE_ARG(glu_backward, grad_output) | OP_SAVE_ARG(glu_backward, self)},
};
OP_TABLE(pointwise_gated, defs)
