/* Activations: reference kernels of those with a row in POINTWISE_OPS, and of their gradients, which take the cotangent
 * first, then what was saved; their gradients; and whole, with rows of their own, those with two outputs and the gated
 * linear unit, which takes its tensor apart along a dim. */
#include "ops/core/families.h"
#include "ops/core/wide.h"
#include "ops/pointwise/gradients.h"
#include "ops/pointwise/kernels.h"

static long double logistic(long double x) {
  return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}
/* NaN stays; where the limits cross, the upper one holds. */
static long double between(long double x, long double low, long double high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

/* P: alpha, scale, input_scale */
REAL(elu, x[0] <= 0 ? expm1l(x[0] * P(2)) * P(0) * P(1) : x[0] * P(1))
REAL(celu, x[0] <= 0 ? expm1l(x[0] / P(0)) * P(0) : x[0])
static long double r_elu_backward(const long double *x, pw_context *c) {
  if (!(x[1] <= 0)) return x[0] * P(1);
  bool is_result = c->mode;
  long double low = P(0) * P(1);
  return x[0] * P(2) * (is_result ? x[1] + low : low * expl(x[1] * P(2)));
}

REAL(hardtanh, between(x[0], P(0), P(1)))
REAL(hardtanh_backward, x[1] <= P(0) || x[1] >= P(1) ? 0 : x[0])
REAL(leaky_relu, x[0] > 0 ? x[0] : x[0] * P(0))
REAL(leaky_relu_backward, x[1] > 0 ? x[0] : x[0] * P(0))
REAL(hardswish, x[0] * between(x[0] + 3, 0, 6) / 6)
REAL(hardswish_backward, x[1] <= -3 ? 0 : x[1] < 3 ? x[0] * (x[1] / 3 + 0.5L) : x[0])
REAL(hardsigmoid, between(x[0] + 3, 0, 6) / 6)
REAL(hardsigmoid_backward, x[1] > -3 && x[1] < 3 ? x[0] / 6 : 0)
REAL(threshold, x[0] <= P(0) ? P(1) : x[0])
REAL(hardshrink, x[0] >= -P(0) && x[0] <= P(0) ? 0 : x[0])
REAL(softshrink, x[0] > P(0) ? x[0] - P(0) : x[0] < -P(0) ? x[0] + P(0) : x[0] * 0)
REAL(shrink_backward, x[1] >= -P(0) && x[1] <= P(0) ? 0 : x[0])
REAL(prelu, x[0] > 0 ? x[0] : x[1] * x[0])

/* P: beta, threshold */
REAL(softplus, x[0] * P(0) > P(1) ? x[0] : log1pl(expl(x[0] * P(0))) / P(0))
REAL(softplus_backward, x[1] * P(0) > P(1) ? x[0] : x[0] * logistic(x[1] * P(0)))

/* The third operand is what the forward has kept: exp(-|x|). */
static long double r_log_sigmoid_backward(const long double *x, pw_context *c) {
  (void)c;
  long double share = x[2] / (1 + x[2]);
  return x[0] * (x[1] < 0 ? 1 - share : share);
}

/* x tanh(log(1 + e^x)) */
static long double mish_gate(long double x) {
  return tanhl(x > 100 ? x : log1pl(expl(x)));
}
REAL(mish, x[0] * mish_gate(x[0]))
static long double r_mish_backward(const long double *x, pw_context *c) {
  (void)c;
  long double gate = mish_gate(x[1]);
  return x[0] * (gate + x[1] * logistic(x[1]) * (1 - gate * gate));
}

INTEGER(hardtanh, (int64_t)between(x[0], (int64_t)P(0), (int64_t)P(1)))
INTEGER(threshold, x[0] <= (int64_t)P(0) ? (int64_t)P(1) : x[0])

static const pw_kernel kernels[] = {
    RO(ELU, elu) RO(CELU, celu) RO(ELU_BACKWARD, elu_backward) RI(HARDTANH, hardtanh)
        RO(HARDTANH_BACKWARD, hardtanh_backward) RO(LEAKY_RELU, leaky_relu) RO(LEAKY_RELU_BACKWARD, leaky_relu_backward)
            RO(HARDSWISH, hardswish) RO(HARDSWISH_BACKWARD, hardswish_backward) RO(HARDSIGMOID, hardsigmoid)
                RO(HARDSIGMOID_BACKWARD, hardsigmoid_backward) RI(THRESHOLD, threshold) RO(HARDSHRINK, hardshrink)
                    RO(SOFTSHRINK, softshrink) RO(HARDSHRINK_BACKWARD, shrink_backward)
                        RO(SOFTSHRINK_BACKWARD, shrink_backward) RO(PRELU_KERNEL, prelu) RO(SOFTPLUS, softplus)
                            RO(SOFTPLUS_BACKWARD, softplus_backward) RO(LOG_SIGMOID_BACKWARD, log_sigmoid_backward)
                                RO(MISH, mish) RO(MISH_BACKWARD, mish_backward)};
PW_KERNELS(activation);

/* --- gradients --- */

static double real_arg(op_vjp *v, int arg) {
  graft_scalar scalar = scalar_arg(v, arg);
  return (double)dt_scalar_value(&scalar).re;
}

/* value where low < t < high, else 0 */
static graft_tensor *inside(op_vjp *v, graft_tensor *t, double low, double high, graft_tensor *value) {
  graft_tensor *above = compare(v, GRAFT_OP_GT_TENSOR, fx_tensor(t), number(low));
  graft_tensor *below = compare(v, GRAFT_OP_LT_TENSOR, fx_tensor(t), number(high));
  return pick(v, fx_logical_and(S, above, below), fx_tensor(value), number(0));
}

/* s (1 - s) */
static graft_tensor *sigmoid_slope(op_vjp *v, graft_tensor *s) {
  return fx_mul(S, s, fx_adds(S, fx_neg(S, s), 1));
}

VJP(elu) {
  SELF fx_elu_backward(S, G, scalar_arg(v, 1), scalar_arg(v, 2), scalar_arg(v, 3), false, X);
}

VJP(celu) {
  SELF fx_elu_backward(S, G, scalar_arg(v, 1), graft_scalar_int(1), graft_scalar_float(1 / real_arg(v, 1)), false, X);
}

/* elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result) */
VJP(elu_backward) {
  graft_tensor *at = vjp_arg(v, 5);
  double alpha = real_arg(v, 1), by = real_arg(v, 2), input_scale = real_arg(v, 3);
  bool is_result = v->args[4].as.i;
  SELF fx_elu_backward(S, G, scalar_arg(v, 1), scalar_arg(v, 2), scalar_arg(v, 3), is_result, at);
  if (!vjp_needs(v, 5)) return;
  graft_tensor *bend = fx_muls(S, fx_mul(S, G, X), input_scale);
  if (!is_result) {
    bend = fx_mul(S, fx_muls(S, bend, input_scale * alpha * by), fx_exp(S, fx_muls(S, at, input_scale)));
  }
  v->results[5] = pick(v, compare(v, GRAFT_OP_LT_TENSOR, fx_tensor(at), number(0)), fx_tensor(bend), number(0));
}

VJP(hardtanh) {
  SELF fx_hardtanh_backward(S, G, X, scalar_arg(v, 1), scalar_arg(v, 2));
}
VJP(leaky_relu) {
  SELF fx_leaky_relu_backward(S, G, X, scalar_arg(v, 1), false);
}
VJP(hardswish) {
  SELF fx_hardswish_backward(S, G, X);
}
VJP(hardsigmoid) {
  SELF fx_hardsigmoid_backward(S, G, X);
}
VJP(softplus) {
  SELF fx_softplus_backward(S, G, X, scalar_arg(v, 1), scalar_arg(v, 2));
}
VJP(mish) {
  SELF fx_mish_backward(S, G, X);
}
VJP(threshold) {
  SELF fx_threshold_backward(S, G, X, scalar_arg(v, 1));
}
VJP(hardshrink) {
  SELF fx_hardshrink_backward(S, G, X, scalar_arg(v, 1));
}
VJP(softshrink) {
  SELF fx_softshrink_backward(S, G, X, scalar_arg(v, 1));
}

VJP(prelu) {
  graft_tensor *of_self, *of_weight;
  fx_prelu_kernel_backward(S, G, X, Y, &of_self, &of_weight);
  SELF of_self;
  OTHER of_weight;
}

/* Those whose gradient is one factor here and another there. */
VJP(hardtanh_backward) {
  SELF fx_hardtanh_backward(S, G, Y, scalar_arg(v, 2), scalar_arg(v, 3));
  OTHER fx_zeros_like(S, G);
}
VJP(leaky_relu_backward) {
  SELF fx_leaky_relu_backward(S, G, Y, scalar_arg(v, 2), false);
  OTHER fx_zeros_like(S, G);
}
VJP(hardsigmoid_backward) {
  SELF fx_hardsigmoid_backward(S, G, Y);
  OTHER fx_zeros_like(S, G);
}
VJP(hardshrink_backward) {
  SELF fx_hardshrink_backward(S, G, Y, scalar_arg(v, 2));
  OTHER fx_zeros_like(S, G);
}
VJP(softshrink_backward) {
  SELF fx_softshrink_backward(S, G, Y, scalar_arg(v, 2));
  OTHER fx_zeros_like(S, G);
}

VJP(hardswish_backward) {
  SELF fx_hardswish_backward(S, G, Y);
  OTHER inside(v, Y, -3, 3, fx_muls(S, fx_mul(S, G, X), 1.0 / 3));
}

VJP(softplus_backward) {
  double beta = real_arg(v, 2), threshold = real_arg(v, 3);
  SELF fx_softplus_backward(S, G, Y, scalar_arg(v, 2), scalar_arg(v, 3));
  if (!vjp_needs(v, 1)) return;
  graft_tensor *t = fx_muls(S, Y, beta);
  graft_tensor *bend = fx_muls(S, fx_mul(S, fx_mul(S, G, X), sigmoid_slope(v, fx_sigmoid(S, t))), beta);
  v->results[1] = pick(v, compare(v, GRAFT_OP_LT_TENSOR, fx_tensor(t), number(threshold)), fx_tensor(bend), number(0));
}

/* The slope is sigmoid(-x); buffer says no more than self. */
VJP(log_sigmoid_backward) {
  SELF fx_log_sigmoid_backward(S, G, Y, vjp_arg(v, 2));
  OTHER fx_neg(S, fx_mul(S, fx_mul(S, G, X), sigmoid_slope(v, fx_sigmoid(S, Y))));
}

/* With t = tanh(softplus(x)) and s = sigmoid(x), t' = s (1 - t^2): the slope t + x t' has the derivative
 * t' (2 + x (1 - s - 2 t s)). */
VJP(mish_backward) {
  SELF fx_mish_backward(S, G, Y);
  if (!vjp_needs(v, 1)) return;
  graft_tensor *s = fx_sigmoid(S, Y);
  graft_tensor *t = fx_tanh(S, fx_softplus(S, Y, graft_scalar_int(1), graft_scalar_int(20)));
  graft_tensor *slope = fx_mul(S, s, fx_adds(S, fx_neg(S, fx_mul(S, t, t)), 1));
  graft_tensor *rest = fx_adds(S, fx_neg(S, fx_mul(S, s, fx_adds(S, fx_muls(S, t, 2), 1))), 1);
  graft_tensor *bend = fx_mul(S, slope, fx_adds(S, fx_mul(S, Y, rest), 2));
  v->results[1] = fx_mul(S, fx_mul(S, G, X), bend);
}

static graft_status check_float(op_call *c, int from) {
  c->compute = op_promote_tensors(c, from);
  if (!c->compute) return op_error(c, "these dtypes do not promote to a common one: %s", op_show_tensors(c));
  if (dt_is_float(c->compute) && !dt_is_float8(c->compute)) return GRAFT_OK;
  return op_error(c, "expected a floating dtype (%s)", op_show_tensors(c));
}

/* --- log_sigmoid_forward(self) -> (output, buffer): buffer is exp(-|self|), which the gradient is made of --- */

static graft_status infer_log_sigmoid(op_call *c) {
  graft_status status = check_float(c, 0);
  if (status) return status;
  const graft_tensor *self = op_tensor(c, 0);
  for (int i = 0; i < 2; i++) op_out(c, i, self->dtype, self->ndim, self->sizes);
  return GRAFT_OK;
}

static graft_status ref_log_sigmoid_forward(const graft_exec *exec, const graft_args_log_sigmoid_forward *a) {
  (void)exec;
  ref_array x = ref_read(a->self), buffer = ref_new(x.count, false);
  graft_status status = x.re && buffer.re ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < x.count; i++) {
    buffer.re[i] = expl(-fabsl(x.re[i]));
    x.re[i] = (x.re[i] > 0 ? 0 : x.re[i]) - log1pl(buffer.re[i]);
  }
  if (!status) {
    ref_write(a->output, &x);
    ref_write(a->buffer, &buffer);
  }
  ref_free(&x);
  ref_free(&buffer);
  return status;
}

static void decompose_log_sigmoid(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *self = op_tensor(c, 0), *zero = fx_filled(s, self, 0, NULL, 0, self->dtype);
  outs[1] = fx_exp(s, fx_neg(s, fx_abs(s, self)));
  outs[0] = fx_sub(s, fx_minimum(s, self, zero), fx_log(s, fx_adds(s, outs[1], 1)));
}

static void vjp_log_sigmoid(op_vjp *v) {
  if (v->g[0]) v->results[0] = fx_log_sigmoid_backward(v->s, v->g[0], vjp_arg(v, 0), v->outs[1]);
}

/* --- _prelu_kernel_backward(grad_output, self, weight) -> (of self, of weight), each in the broadcast shape --- */

static graft_status infer_prelu_backward(op_call *c) {
  graft_status status = check_float(c, 0);
  if (!status) status = op_out_broadcast(c, 0, c->compute);
  return status ? status : op_out_broadcast(c, 1, c->compute);
}

static graft_status ref_prelu_kernel_backward(const graft_exec *exec, const graft_args_prelu_kernel_backward *a) {
  (void)exec;
  ref_array g = ref_read(a->grad_output), x = ref_read(a->self), w = ref_read(a->weight);
  graft_status status = g.re && x.re && w.re ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < g.count; i++) {
    bool positive = x.re[i] > 0;
    ref_real of_weight = positive ? 0 : x.re[i] * g.re[i];
    g.re[i] = positive ? g.re[i] : w.re[i] * g.re[i];
    x.re[i] = of_weight;
  }
  if (!status) {
    ref_write(a->out0, &g);
    ref_write(a->out1, &x);
  }
  ref_free(&g);
  ref_free(&x);
  ref_free(&w);
  return status;
}

static graft_tensor *choose(fx *s, graft_tensor *condition, graft_tensor *a, graft_tensor *b) {
  graft_tensor *out;
  graft_value zero = fx_number(graft_scalar_float(0));
  fx_call(s, GRAFT_OP_WHERE_SELF,
          (graft_value[]){fx_tensor(condition), a ? fx_tensor(a) : zero, b ? fx_tensor(b) : zero}, 3, &out, 1);
  return out;
}

static void decompose_prelu_backward(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *g = op_tensor(c, 0), *self = op_tensor(c, 1);
  graft_tensor *positive = fx_gt_Scalar(s, self, graft_scalar_int(0));
  graft_tensor *of_self = fx_mul(s, op_tensor(c, 2), g), *of_weight = fx_mul(s, self, g);
  if (s->status) return;
  outs[0] = choose(s, positive, g, of_self);
  outs[1] = choose(s, positive, NULL, of_weight);
}

/* The two outputs are 1 and 0 times g where self is positive, else weight and self times g. */
static void vjp_prelu_backward(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *g = vjp_arg(v, 0), *self = vjp_arg(v, 1), *weight = vjp_arg(v, 2);
  graft_tensor *positive = fx_gt_Scalar(s, self, graft_scalar_int(0)), *first = v->g[0], *second = v->g[1];
  if (vjp_needs(v, 0)) {
    graft_tensor *by_weight = first ? fx_mul(s, first, weight) : NULL,
                 *by_self = second ? fx_mul(s, second, self) : NULL;
    graft_tensor *rest = first && second ? fx_add(s, by_weight, by_self) : first ? by_weight : by_self;
    v->results[0] = s->status ? NULL : choose(s, positive, first, rest);
  }
  if (vjp_needs(v, 1) && second) v->results[1] = choose(s, positive, NULL, fx_mul(s, g, second));
  if (vjp_needs(v, 2) && first) v->results[2] = choose(s, positive, NULL, fx_mul(s, g, first));
}

/* --- glu(self, dim): the first half times the sigmoid of the second --- */

/* `at`: where self stands; its dim is wrapped. */
static graft_status check_glu(op_call *c, int at, int dim_arg) {
  const graft_tensor *self = op_tensor(c, at);
  int64_t dim = op_int(c, dim_arg);
  graft_status status = check_float(c, 0);
  if (!status && self->ndim == 0) status = op_error(c, "self has no dims");
  if (!status) status = op_wrap_dim(c, &dim, self->ndim);
  if (status) return status;
  op_set_int(c, dim_arg, dim);
  if (self->sizes[dim] % 2 == 0) return GRAFT_OK;
  return op_error(c, "dim %lld has %lld elements; expected an even number (%s)", (long long)dim,
                  (long long)self->sizes[dim], op_show_tensors(c));
}

static graft_status infer_glu(op_call *c) {
  graft_status status = check_glu(c, 0, 1);
  if (status) return status;
  graft_tensor half = *op_tensor(c, 0);
  half.sizes[op_int(c, 1)] /= 2;
  half.numel /= 2;
  op_out(c, 0, half.dtype, half.ndim, half.sizes);
  op_iterator_strides(&c->out[0], (const graft_tensor *const[]){&half, &half}, 2);
  return GRAFT_OK;
}

/* glu_backward(grad_output, self, dim): a slot sees a grad_output that is not broadcast */
static graft_status infer_glu_backward(op_call *c) {
  const graft_tensor *g = op_tensor(c, 0), *self = op_tensor(c, 1);
  graft_status status = check_glu(c, 1, 2);
  if (status) return status;
  if (g->dtype != self->dtype) return op_error(c, "expected one dtype (%s)", op_show_tensors(c));
  bool fits = g->ndim <= self->ndim;
  c->decompose_only = g->ndim < self->ndim;
  for (int32_t i = 1; fits && i <= g->ndim; i++) {
    int64_t size = self->sizes[self->ndim - i] / (self->ndim - i == op_int(c, 2) ? 2 : 1),
            given = g->sizes[g->ndim - i];
    fits = given == size || given == 1;
    c->decompose_only |= given != size;
  }
  if (!fits) return op_error(c, "expected a grad_output of half of self (%s)", op_show_tensors(c));
  op_out(c, 0, self->dtype, self->ndim, self->sizes);
  return GRAFT_OK;
}

/* Where element i of the half tensor stands in the whole one, and the same element of the second half. */
static int64_t first_at(ref_split whole, int64_t i) {
  int64_t half = whole.size / 2 * whole.inner;
  return half ? i / half * whole.size * whole.inner + i % half : 0;
}

static graft_status ref_glu(const graft_exec *exec, const graft_args_glu *a) {
  (void)exec;
  ref_split whole = ref_split_at(a->self, a->dim);
  ref_array x = ref_read(a->self), out = ref_new(x.count / 2, false);
  graft_status status = x.re && out.re ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < out.count; i++) {
    int64_t at = first_at(whole, i);
    out.re[i] = x.re[at] * logistic(x.re[at + whole.size / 2 * whole.inner]);
  }
  if (!status) ref_write(a->out, &out);
  ref_free(&x);
  ref_free(&out);
  return status;
}

static graft_status ref_glu_backward(const graft_exec *exec, const graft_args_glu_backward *a) {
  (void)exec;
  ref_split whole = ref_split_at(a->self, a->dim);
  ref_array g = ref_read(a->grad_output), x = ref_read(a->self);
  graft_status status = g.re && x.re ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < g.count; i++) {
    int64_t at = first_at(whole, i), gate = at + whole.size / 2 * whole.inner;
    ref_real open = logistic(x.re[gate]);
    x.re[gate] = g.re[i] * x.re[at] * open * (1 - open);
    x.re[at] = g.re[i] * open;
  }
  if (!status) ref_write(a->out, &x);
  ref_free(&g);
  ref_free(&x);
  return status;
}

static graft_tensor *half_of(fx *s, graft_tensor *t, int64_t dim, int which) {
  if (s->status || !t) return NULL;
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
  if (op_ran_wider(s, c, outs)) return;
  gated x = take_apart(s, op_tensor(c, 0), op_int(c, 1));
  outs[0] = fx_mul(s, x.a, x.open);
}

static void decompose_glu_backward(fx *s, const op_call *c, graft_tensor **outs) {
  if (!c->decompose_only && op_ran_wider(s, c, outs)) return;
  gated x = take_apart(s, op_tensor(c, 1), op_int(c, 2));
  graft_tensor *g = op_tensor(c, 0), *gate = fx_sigmoid_backward(s, fx_mul(s, g, x.a), x.open);
  graft_tensor *halves[] = {fx_mul(s, g, x.open), gate};
  if (!s->status) outs[0] = fx_cat(s, halves, 2, op_int(c, 2));
}

static void vjp_glu(op_vjp *v) {
  v->results[0] = fx_glu_backward(v->s, v->g[0], vjp_arg(v, 0), v->args[1].as.i);
}

/* The outputs are g s and g a s', with s = sigmoid(b), s' = s (1 - s), s'' = s' (1 - 2 s); h and k are their
 * cotangents. */
static void vjp_glu_backward(op_vjp *v) {
  fx *s = v->s;
  int64_t dim = v->args[2].as.i;
  gated x = take_apart(s, vjp_arg(v, 1), dim);
  graft_tensor *g = vjp_arg(v, 0), *h = half_of(s, v->g[0], dim, 0), *k = half_of(s, v->g[0], dim, 1);
  graft_tensor *slope = fx_mul(s, x.open, fx_adds(s, fx_neg(s, x.open), 1));
  if (vjp_needs(v, 0)) v->results[0] = fx_add(s, fx_mul(s, h, x.open), fx_mul(s, fx_mul(s, k, x.a), slope));
  if (!vjp_needs(v, 1)) return;
  graft_tensor *bend = fx_adds(s, fx_muls(s, x.open, -2), 1);
  graft_tensor *of_b = fx_mul(s, fx_mul(s, g, slope), fx_add(s, h, fx_mul(s, fx_mul(s, k, x.a), bend)));
  graft_tensor *halves[] = {fx_mul(s, fx_mul(s, g, k), slope), of_b};
  if (!s->status) v->results[1] = fx_cat(s, halves, 2, dim);
}

#define ARG OP_SAVE_ARG

static const op_def defs[] = {
    {.op_id = GRAFT_OP_LOG_SIGMOID_FORWARD,
     .roles = "b",
     .infer = infer_log_sigmoid,
     .decompose = decompose_log_sigmoid,
     .vjp = vjp_log_sigmoid,
     .saves = ARG(0) | OP_SAVE_OUT(1),
     .flags = OP_ELEMENTWISE | OP_EXACT_OUT,
     .reference = OP_REF(log_sigmoid_forward)},
    {.op_id = GRAFT_OP_PRELU_KERNEL_BACKWARD,
     .roles = "bbb",
     .infer = infer_prelu_backward,
     .decompose = decompose_prelu_backward,
     .vjp = vjp_prelu_backward,
     .saves = ARG(0) | ARG(1) | ARG(2),
     .flags = OP_ELEMENTWISE | OP_SECOND_FIRST,
     .reference = OP_REF(prelu_kernel_backward)},
    {.op_id = GRAFT_OP_GLU,
     .roles = "v",
     .infer = infer_glu,
     .decompose = decompose_glu,
     .vjp = vjp_glu,
     .saves = ARG(0),
     .reference = OP_REF(glu)},
    {.op_id = GRAFT_OP_GLU_BACKWARD,
     .roles = "vv",
     .infer = infer_glu_backward,
     .decompose = decompose_glu_backward,
     .vjp = vjp_glu_backward,
     .saves = ARG(0) | ARG(1),
     .reference = OP_REF(glu_backward)},
};
OP_TABLE(pointwise_activations, defs)
