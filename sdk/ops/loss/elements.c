/* Losses of two tensors, element by element, and their mean or sum: one row of `losses` a loss. In its formulas x is
 * self, y is target, d = x - y and z the number that the loss is about (beta, delta). */
#include <string.h>

#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"
#include "ops/loss/loss.h"

typedef struct pair_loss {
  uint32_t backward;
  const char *number; /* the argument that is z; NULL: none */
  bool entropy;       /* binary cross entropy: with a weight, self and target alike, the result laid out like them */
  bool huber;         /* the result is of self's dtype and laid out like self; z is not 0 */
  ref_real (*loss)(ref_real x, ref_real y, ref_real z);
  ref_real (*slope)(ref_real x, ref_real y, ref_real z); /* d loss / d x */
  graft_tensor *(*compose_loss)(fx *s, graft_tensor *x, graft_tensor *y, double z);
  graft_tensor *(*compose_slope)(fx *s, graft_tensor *x, graft_tensor *y, double z);
  graft_tensor *(*compose_bend)(fx *s, graft_tensor *x, graft_tensor *y, double z); /* d slope / d x */
} pair_loss;

/* What a loss, or the op of its gradient, is called with. */
typedef struct operands {
  const pair_loss *p;
  graft_tensor *grad, *self, *target, *weight; /* NULL where absent */
  int64_t reduction;
  double z;
} operands;

static operands operands_of(const op_schema *schema, const graft_value *args) {
  operands in = {.p = op_row(schema->id)};
  in.grad = unwrap_tensor(op_value_named(schema, args, "grad_output"));
  in.self = unwrap_tensor(op_value_named(schema, args, "self"));
  in.target = unwrap_tensor(op_value_named(schema, args, "target"));
  in.weight = unwrap_tensor(op_value_named(schema, args, "weight"));
  in.reduction = op_value_named(schema, args, "reduction")->as.i;
  if (in.p->number) in.z = op_value_named(schema, args, in.p->number)->as.f;
  return in;
}

/* --- the formulas --- */

#define LOSS(name, expression)                               \
  static ref_real name(ref_real x, ref_real y, ref_real z) { \
    ref_real d = x - y, size = fabsl(d);                     \
    (void)z, (void)d, (void)size;                            \
    return expression;                                       \
  }
LOSS(mse_loss, d *d)
LOSS(mse_slope, 2 * d)
LOSS(smooth_loss, size < z ? 0.5L * d * d / z : size - 0.5L * z)
LOSS(smooth_slope, d <= -z ? -1 : d >= z ? 1 : d / z)
LOSS(huber_loss, size <= z ? 0.5L * d * d : z * (size - 0.5L * z))
LOSS(huber_slope, d <= -z ? -z : d >= z ? z : d)
/* Logarithms are kept above -100, so that a certain mistake does not cost infinitely much. */
LOSS(entropy_loss, (y - 1) * fmaxl(log1pl(-x), -100) - y * fmaxl(logl(x), -100))
LOSS(entropy_slope, d / fmaxl((1 - x) * x, 1e-12f)) /* in PyTorch, too, a float in all dtypes */
LOSS(soft_slope, -y / (1 + expl(y * x)))

static graft_tensor *choose(fx *s, graft_tensor *condition, graft_tensor *a, graft_tensor *b) {
  return fx_where(s, condition, fx_tensor(a), fx_tensor(b));
}
static graft_tensor *one_minus(fx *s, graft_tensor *x) {
  return fx_adds(s, fx_neg(s, x), 1);
}
static graft_tensor *square(fx *s, graft_tensor *x) {
  return fx_mul(s, x, x);
}
static graft_tensor *clamp(fx *s, graft_tensor *x, double z) {
  return fx_clamp(s, x, graft_scalar_float(-z), graft_scalar_float(z));
}
/* 1 where the two are less than z apart, else 0, in their dtype */
static graft_tensor *near_by(fx *s, graft_tensor *x, graft_tensor *y, double z) {
  graft_tensor *d = fx_sub(s, x, y), *near_enough = fx_lt_Scalar(s, fx_abs(s, d), graft_scalar_float(z));
  return s->status ? NULL : fx_cast(s, near_enough, d->dtype);
}

#define COMPOSE(name) static graft_tensor *name(fx *s, graft_tensor *x, graft_tensor *y, double z)
COMPOSE(compose_mse) {
  return (void)z, square(s, fx_sub(s, x, y));
}
COMPOSE(compose_mse_slope) {
  return (void)z, fx_muls(s, fx_sub(s, x, y), 2);
}
COMPOSE(compose_mse_bend) {
  (void)z;
  graft_tensor *d = fx_sub(s, x, y);
  return s->status ? NULL : fx_filled(s, d, d->ndim, d->sizes, 2, d->dtype);
}

COMPOSE(compose_smooth) {
  graft_tensor *size = fx_abs(s, fx_sub(s, x, y)), *far = fx_adds(s, size, -0.5 * z);
  if (z == 0) return far;
  return choose(s, fx_lt_Scalar(s, size, graft_scalar_float(z)), fx_muls(s, square(s, size), 0.5 / z), far);
}
COMPOSE(compose_smooth_slope) {
  return clamp(s, fx_div_Scalar(s, fx_sub(s, x, y), graft_scalar_float(z)), 1);
}
COMPOSE(compose_smooth_bend) {
  return z == 0 ? near_by(s, x, y, 0) : fx_muls(s, near_by(s, x, y, z), 1 / z);
}

COMPOSE(compose_huber) {
  graft_tensor *size = fx_abs(s, fx_sub(s, x, y)), *far = fx_muls(s, fx_adds(s, size, -0.5 * z), z);
  return choose(s, fx_le_Scalar(s, size, graft_scalar_float(z)), fx_muls(s, square(s, size), 0.5), far);
}
COMPOSE(compose_huber_slope) {
  return clamp(s, fx_sub(s, x, y), z);
}
COMPOSE(compose_huber_bend) {
  return near_by(s, x, y, z);
}

static graft_tensor *kept(fx *s, graft_tensor *logarithm) {
  return fx_clamp(s, logarithm, graft_scalar_float(-100), graft_scalar_none());
}
COMPOSE(compose_entropy) {
  (void)z;
  graft_tensor *missed = fx_mul(s, fx_adds(s, y, -1), kept(s, fx_log1p(s, fx_neg(s, x))));
  return fx_sub(s, missed, fx_mul(s, y, kept(s, fx_log(s, x))));
}
static graft_tensor *variance(fx *s, graft_tensor *x) {
  return fx_clamp(s, fx_mul(s, one_minus(s, x), x), graft_scalar_float(1e-12f), graft_scalar_none());
}
COMPOSE(compose_entropy_slope) {
  return (void)z, fx_div(s, fx_sub(s, x, y), variance(s, x));
}
/* x (1 - x), kept off 0 as PyTorch does it in second derivatives */
static graft_tensor *variance_off_zero(fx *s, graft_tensor *x) {
  return fx_mul(s, fx_adds(s, x, 1e-12), fx_adds(s, one_minus(s, x), 1e-12));
}
/* (x^2 - 2 x y + y) / (x (1 - x))^2 */
COMPOSE(compose_entropy_bend) {
  (void)z;
  graft_tensor *top = fx_add(s, fx_sub(s, square(s, x), fx_muls(s, fx_mul(s, x, y), 2)), y);
  return fx_div(s, top, square(s, variance_off_zero(s, x)));
}

/* -y / (1 + exp(x y)), and y^2 / ((1 + exp(x y)) (1 + exp(-x y))) */
COMPOSE(compose_soft_slope) {
  return (void)z, fx_neg(s, fx_mul(s, y, fx_sigmoid(s, fx_neg(s, fx_mul(s, x, y)))));
}
COMPOSE(compose_soft_bend) {
  graft_tensor *slope = compose_soft_slope(s, x, y, z);
  return fx_neg(s, fx_mul(s, slope, fx_add(s, y, slope)));
}

static const pair_loss mse = {.backward = GRAFT_OP_MSE_LOSS_BACKWARD,
                              .loss = mse_loss,
                              .slope = mse_slope,
                              .compose_loss = compose_mse,
                              .compose_slope = compose_mse_slope,
                              .compose_bend = compose_mse_bend};
static const pair_loss smooth = {.backward = GRAFT_OP_SMOOTH_L1_LOSS_BACKWARD,
                                 .number = "beta",
                                 .loss = smooth_loss,
                                 .slope = smooth_slope,
                                 .compose_loss = compose_smooth,
                                 .compose_slope = compose_smooth_slope,
                                 .compose_bend = compose_smooth_bend};
static const pair_loss huber = {.backward = GRAFT_OP_HUBER_LOSS_BACKWARD,
                                .number = "delta",
                                .huber = true,
                                .loss = huber_loss,
                                .slope = huber_slope,
                                .compose_loss = compose_huber,
                                .compose_slope = compose_huber_slope,
                                .compose_bend = compose_huber_bend};
static const pair_loss entropy = {.backward = GRAFT_OP_BINARY_CROSS_ENTROPY_BACKWARD,
                                  .entropy = true,
                                  .loss = entropy_loss,
                                  .slope = entropy_slope,
                                  .compose_loss = compose_entropy,
                                  .compose_slope = compose_entropy_slope,
                                  .compose_bend = compose_entropy_bend};
/* PyTorch composes the loss itself. */
static const pair_loss soft_margin = {
    .slope = soft_slope, .compose_slope = compose_soft_slope, .compose_bend = compose_soft_bend};

/* --- rules --- */

/* The broadcast shape of two operands into the result, with TensorIterator's strides. Their roles are 'v': for a mean
 * or a sum they do not take the result's shape. */
static graft_status out_of_both(op_call *c, graft_dtype dtype, const graft_tensor *a, const graft_tensor *b) {
  int64_t sizes[GRAFT_MAX_DIMS];
  int32_t ndim = 0;
  bool joins =
      tns_broadcast_sizes(&ndim, sizes, a->ndim, a->sizes) && tns_broadcast_sizes(&ndim, sizes, b->ndim, b->sizes);
  if (!joins) return op_error(c, "shapes do not broadcast: %s", op_show_tensors(c));
  op_out(c, OUT, dtype, ndim, sizes);
  op_iterator_strides(&c->out[OUT], (const graft_tensor *const[]){a, b}, 2);
  return GRAFT_OK;
}

static graft_status check_number(const op_call *c, const operands *in) {
  bool fits = in->p->huber ? in->z > 0 : in->z >= 0;
  if (fits || !in->p->number) return GRAFT_OK;
  return op_error(c, "%s is %g; expected %s", in->p->number, in->z, in->p->huber ? "a number above 0" : "0 or more");
}

/* self and target alike, in shape and dtype. (PyTorch's own kernel looks at the target's shape with its ones left out,
 * and its module refuses what is not self's.) */
static graft_status infer_entropy(op_call *c) {
  const in_binary_cross_entropy in = in_binary_cross_entropy_of(c->args);
  const graft_tensor *self = in.self, *weight = in.weight;
  graft_status status = op_check_floating(c, ARG_binary_cross_entropy_self);
  if (status) return status;
  if (self->dtype != in.target->dtype) return op_error(c, "expected one dtype (%s)", op_show_tensors(c));
  if (!tns_same_sizes(self, in.target)) return op_error(c, "self and target differ in shape (%s)", op_show_tensors(c));
  if (weight && !tns_broadcasts_to(weight, self->ndim, self->sizes)) {
    return op_error(c, "weight does not broadcast to self's shape (%s)", op_show_tensors(c));
  }
  if (weight && dt_is_complex(weight->dtype)) return op_refuse(c, ARG_binary_cross_entropy_weight, "a real dtype");
  c->compute = self->dtype;
  c->decompose_only = weight && !tns_same_sizes(weight, self);
  if (in.reduction == LOSS_NONE)
    op_out_like(c, OUT, self->dtype, self);
  else
    op_out(c, OUT, self->dtype, 0, NULL);
  return GRAFT_OK;
}

/* A slot sees operands of one shape; others are decomposed. */
static graft_status infer_forward(op_call *c) {
  const operands in = operands_of(c->schema, c->args);
  graft_status status = check_reduction(c, op_arg_named(c->schema, "reduction"));
  if (!status) status = check_number(c, &in);
  if (status) return status;
  if (in.p->entropy) return infer_entropy(c);
  c->compute = op_promote_tensors(c);
  if (!c->compute) return op_error(c, "these dtypes do not promote to a common one: %s", op_show_tensors(c));
  graft_dtype dtype = in.p->huber ? in.self->dtype : c->compute;
  if (!dt_is_float(c->compute) || !dt_is_float(dtype))
    return op_error(c, "expected a floating dtype (%s)", op_show_tensors(c));
  bool same = tns_same_sizes(in.self, in.target);
  c->decompose_only = !same;
  status = out_of_both(c, dtype, in.self, in.target);
  if (!status && same && in.p->huber) op_out_like(c, OUT, dtype, in.self);
  if (!status && in.reduction != LOSS_NONE) op_out(c, OUT, dtype, 0, NULL);
  return status;
}

/* In self's shape. */
static graft_status infer_backward(op_call *c) {
  const operands in = operands_of(c->schema, c->args);
  const graft_tensor *self = in.self;
  graft_status status = check_reduction(c, op_arg_named(c->schema, "reduction"));
  if (!status) status = op_out_broadcast(c, OUT, self->dtype);
  if (status) return status;
  if (!tns_has_sizes(self, c->out[OUT].ndim, c->out[OUT].sizes))
    return op_error(c, "grad_output and target do not broadcast to self's shape (%s)", op_show_tensors(c));
  c->compute = op_promote_tensors(c);
  if (!c->compute || c->compute == GRAFT_BOOL || dt_is_complex(c->compute)) {
    return op_error(c, "expected real dtypes that promote to a common one (%s)", op_show_tensors(c));
  }
  if ((in.p->huber || in.p->entropy) && !dt_is_float(self->dtype))
    return op_refuse(c, op_arg_named(c->schema, "self"), "a floating dtype");
  bool differ = in.grad->dtype != self->dtype || in.target->dtype != self->dtype;
  if ((in.p->huber || in.p->entropy) && differ) return op_error(c, "expected one dtype (%s)", op_show_tensors(c));
  if (dt_category_of(c->compute) > dt_category_of(self->dtype))
    return op_error(c, "the gradient has self's dtype, which does not hold these numbers (%s)", op_show_tensors(c));
  if (in.p->entropy)
    op_out_like(c, OUT, self->dtype, self);
  else
    op_out(c, OUT, self->dtype, self->ndim, self->sizes);
  return GRAFT_OK;
}

/* --- kernels --- */

typedef struct pair_args {
  const pair_loss *p;
  const graft_tensor_desc *grad, *self, *target, *weight, *out; /* grad: backward only */
  int64_t reduction;
  double number;
} pair_args;

static pair_args read_args(const void *args) {
  pair_args a = {.p = op_row(((const graft_args *)args)->op_id)};
  ref_field(args, "grad_output", &a.grad, sizeof a.grad);
  ref_field(args, "self", &a.self, sizeof a.self);
  ref_field(args, "target", &a.target, sizeof a.target);
  ref_field(args, "weight", &a.weight, sizeof a.weight);
  ref_field(args, "reduction", &a.reduction, sizeof a.reduction);
  if (a.p->number) ref_field(args, a.p->number, &a.number, sizeof a.number);
  ref_field(args, "out", &a.out, sizeof a.out);
  return a;
}

/* A probability that is none is an error, as in PyTorch. */
static graft_status check_probabilities(const pair_args *a, const ref_array *x) {
  if (!a->p->entropy || a->grad) return GRAFT_OK;
  for (int64_t i = 0; i < x->count; i++) {
    if (!(x->re[i] >= 0 && x->re[i] <= 1)) {
      return err_set(GRAFT_INVALID_ARGUMENT, "self holds %Lg; expected numbers from 0 to 1", x->re[i]);
    }
  }
  return GRAFT_OK;
}

static graft_status ref_pair(const graft_exec *exec, const void *args) {
  pair_args a = read_args(args);
  REF_OWNED ref_array x = ref_read(a.self), y = ref_read(a.target), g = ref_read(a.grad), w = ref_read(a.weight);
  if (!x.re || !y.re || (a.grad && !g.re) || (a.weight && !w.re)) return ref_no_memory();
  graft_status status = check_probabilities(&a, &x);
  if (status) return status;
  ref_real count = (ref_real)x.count, z = dt_round(dt_accumulate(a.self->dl.dtype), a.number);
  for (int64_t i = 0; i < x.count; i++) {
    ref_real value = a.grad ? a.p->slope(x.re[i], y.re[i], z) : a.p->loss(x.re[i], y.re[i], z);
    if (a.weight) value *= w.re[i];
    if (a.grad) value *= a.reduction == LOSS_MEAN ? g.re[i] / count : g.re[i];
    x.re[i] = value;
  }
  if (!a.grad && a.reduction != LOSS_NONE) {
    ref_real sum = ref_sum(a.self->dl.dtype, x.re, 1, x.count);
    ref_write(a.out, &(ref_array){1, &(ref_real){a.reduction == LOSS_MEAN ? sum / count : sum}, NULL});
  } else {
    ref_write(a.out, &x);
  }
  return GRAFT_OK;
}

/* --- decompositions, gradients --- */

static uint32_t all_dims(const graft_tensor *t) {
  return t->ndim ? (1u << t->ndim) - 1 : 0;
}

static graft_tensor *weighted(fx *s, graft_tensor *t, graft_tensor *weight) {
  return weight ? fx_mul(s, t, weight) : t;
}

/* With the weight in self's shape the op can be a slot's. */
static void entropy_of_expanded(fx *s, const operands *in, graft_tensor **outs) {
  graft_tensor *weight = fx_expand(s, in->weight, in->self->sizes, (uint32_t)in->self->ndim, false);
  outs[OUT] = fx_binary_cross_entropy(s, in->self, in->target, weight, in->reduction);
}

static void decompose_forward(fx *s, const op_call *c, graft_tensor **outs) {
  if (!c->decompose_only && op_ran_wider(s, c, outs)) return;
  const operands in = operands_of(c->schema, c->args);
  if (in.p->entropy && c->decompose_only) return entropy_of_expanded(s, &in, outs);
  graft_tensor *each = weighted(s, in.p->compose_loss(s, in.self, in.target, in.z), in.weight);
  if (s->status) return;
  outs[OUT] = in.reduction == LOSS_NONE   ? each
              : in.reduction == LOSS_MEAN ? fx_mean_dim(s, each, NULL, 0, false, GRAFT_DTYPE_NONE)
                                          : fx_sum(s, each, all_dims(each), false);
}

/* value * weight * g, divided by the number of elements for a mean */
static graft_tensor *times_cotangent(fx *s, const operands *in, graft_tensor *value, graft_tensor *g) {
  value = weighted(s, value, in->weight);
  if (!value || !g) return NULL;
  int64_t count = value->numel;
  graft_tensor *product = fx_mul(s, value, g);
  return in->reduction == LOSS_MEAN ? fx_muls(s, product, 1 / (double)count) : product;
}

static void decompose_backward(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  const operands in = operands_of(c->schema, c->args);
  outs[OUT] = times_cotangent(s, &in, in.p->compose_slope(s, in.self, in.target, in.z), in.grad);
}

/* The backward op on operands of one shape and dtype, its formula on others. */
static graft_tensor *slope_of(op_vjp *v, const operands *in, graft_tensor *x, graft_tensor *y) {
  bool alike = tns_same_sizes(in->self, in->target) && x->dtype == y->dtype;
  if (!alike) return times_cotangent(v->s, in, in->p->compose_slope(v->s, x, y, in->z), v->g[OUT]);
  graft_value args[OP_MAX_ARGS] = {fx_tensor(v->g[OUT])}; /* its arguments are the cotangent, then the same */
  for (uint32_t i = 0; i < v->schema->nargs; i++) args[i + 1] = v->args[i];
  args[ARG_mse_loss_backward_self] = fx_tensor(x);
  args[ARG_mse_loss_backward_target] = fx_tensor(y);
  return fx_one(v->s, in->p->backward, args, v->schema->nargs + 1u);
}

static void vjp_forward(op_vjp *v) {
  const operands in = operands_of(v->schema, v->args);
  graft_tensor *self = in.self, *target = in.target, *both = fx_sub(v->s, self, target);
  if (v->s->status) return;
  graft_tensor *x = fx_expand(v->s, self, both->sizes, (uint32_t)both->ndim, false);
  graft_tensor *y = fx_expand(v->s, target, both->sizes, (uint32_t)both->ndim, false);
  if (v->s->status) return;
  graft_tensor *slope = vjp_needs(v, ARG_mse_loss_self) || !in.p->entropy ? slope_of(v, &in, x, y) : NULL;
  if (vjp_needs(v, ARG_mse_loss_self)) v->results[ARG_mse_loss_self] = fx_sum_to(v->s, slope, self->ndim, self->sizes);
  if (!vjp_needs(v, ARG_mse_loss_target)) return;
  if (in.p->entropy) { /* linear in the target: log(1 - x) - log(x) */
    graft_tensor *odds = fx_sub(v->s, fx_log(v->s, one_minus(v->s, x)), fx_log(v->s, x));
    odds = times_cotangent(v->s, &in, odds, v->g[OUT]);
    v->results[ARG_mse_loss_target] = fx_sum_to(v->s, odds, target->ndim, target->sizes);
    return;
  }
  v->results[ARG_mse_loss_target] = fx_neg(v->s, fx_sum_to(v->s, slope, target->ndim, target->sizes));
}

static void vjp_backward(op_vjp *v) {
  const operands in = operands_of(v->schema, v->args);
  graft_tensor *self = in.self, *target = in.target;
  const pair_loss *p = in.p;
  fx *s = v->s;
  if (vjp_needs(v, ARG_mse_loss_backward_grad_output)) {
    graft_tensor *slope = p->entropy ? fx_div(s, fx_sub(s, self, target), variance_off_zero(s, self))
                                     : p->compose_slope(s, self, target, in.z);
    v->results[ARG_mse_loss_backward_grad_output] = times_cotangent(s, &in, slope, v->g[OUT]);
  }
  graft_tensor *both = fx_mul(s, v->g[OUT], in.grad);
  if (vjp_needs(v, ARG_mse_loss_backward_self)) {
    v->results[ARG_mse_loss_backward_self] = times_cotangent(s, &in, p->compose_bend(s, self, target, in.z), both);
  }
  if (!vjp_needs(v, ARG_mse_loss_backward_target)) return;
  graft_tensor *bend = p->entropy ? fx_reciprocal(s, variance(s, self)) : p->compose_bend(s, self, target, in.z);
  v->results[ARG_mse_loss_backward_target] = fx_neg(s, times_cotangent(s, &in, bend, both));
}

/* --- soft_margin_loss_backward: log(1 + exp(-x y)), of a product, not a
 * difference; self and target may have different shapes, and a mean is one over self's elements --- */

static graft_status infer_soft_margin(op_call *c) {
  const in_soft_margin_loss_backward in = in_soft_margin_loss_backward_of(c->args);
  const graft_tensor *g = in.grad_output;
  graft_status status = check_reduction(c, ARG_soft_margin_loss_backward_reduction);
  if (status) return status;
  c->compute = op_promote_tensors(c);
  if (!c->compute || !(dt_is_float(c->compute) || dt_is_complex(c->compute))) {
    return op_error(c, "expected floating dtypes that promote to a common one (%s)", op_show_tensors(c));
  }
  status = out_of_both(c, c->compute, in.target, in.self);
  if (status) return status;
  if (!tns_broadcasts_to(g, c->out[OUT].ndim, c->out[OUT].sizes)) {
    return op_error(c, "grad_output does not broadcast to the shape of self and target (%s)", op_show_tensors(c));
  }
  c->decompose_only = !tns_same_sizes(in.self, in.target) || dt_is_complex(c->compute);
  return GRAFT_OK;
}

static graft_tensor *over_elements(fx *s, graft_tensor *value, const graft_tensor *self, int64_t reduction) {
  return reduction == LOSS_MEAN ? fx_muls(s, value, 1 / (double)self->numel) : value;
}

static void decompose_soft_margin(fx *s, const op_call *c, graft_tensor **outs) {
  const in_soft_margin_loss_backward in = in_soft_margin_loss_backward_of(c->args);
  if (!c->decompose_only && op_ran_wider(s, c, outs)) return;
  graft_tensor *slope = compose_soft_slope(s, in.self, in.target, 0);
  outs[OUT] = over_elements(s, fx_mul(s, slope, in.grad_output), in.self, in.reduction);
}

static void vjp_soft_margin(op_vjp *v) {
  const in_soft_margin_loss_backward in = in_soft_margin_loss_backward_of(v->args);
  graft_tensor *g = in.grad_output, *both;
  fx *s = v->s;
  if (vjp_needs(v, ARG_soft_margin_loss_backward_grad_output)) {
    both = fx_mul(s, compose_soft_slope(s, in.self, in.target, 0), v->g[OUT]);
    v->results[ARG_soft_margin_loss_backward_grad_output] = over_elements(s, both, in.self, in.reduction);
  }
  if (!vjp_needs(v, ARG_soft_margin_loss_backward_self)) return;
  both = fx_mul(s, fx_mul(s, compose_soft_bend(s, in.self, in.target, 0), v->g[OUT]), g);
  v->results[ARG_soft_margin_loss_backward_self] =
      fx_sum_to(s, over_elements(s, both, in.self, in.reduction), in.self->ndim, in.self->sizes);
}

/* The arguments of a backward op are the cotangent and those of its forward op. */
#define PAIR(op, op_roles, op_saves, op_row)                                                                      \
  {.op_id = GRAFT_OP_##op,                                                                                        \
   .roles = op_roles,                                                                                             \
   .infer = infer_forward,                                                                                        \
   .decompose = decompose_forward,                                                                                \
   .vjp = vjp_forward,                                                                                            \
   .saves = op_saves,                                                                                             \
   .reference = ref_pair,                                                                                         \
   .row = &op_row},                                                                                               \
  {                                                                                                               \
    .op_id = GRAFT_OP_##op##_BACKWARD, .roles = "bbbb", .infer = infer_backward, .decompose = decompose_backward, \
    .vjp = vjp_backward, .saves = OP_SAVE_ARG(mse_loss_backward, grad_output) | (op_saves) << 1,                  \
    .flags = OP_ELEMENTWISE, .reference = ref_pair, .row = &op_row                                                \
  }

static const op_def defs[] = {
    PAIR(MSE_LOSS, "vv", OP_SAVE_ARGS(mse_loss, self, target), mse),
    PAIR(SMOOTH_L1_LOSS, "vv", OP_SAVE_ARGS(smooth_l1_loss, self, target), smooth),
    PAIR(HUBER_LOSS, "vv", OP_SAVE_ARGS(huber_loss, self, target), huber),
    PAIR(BINARY_CROSS_ENTROPY, "vvv", OP_SAVE_ARGS(binary_cross_entropy, self, target, weight), entropy),
    {.op_id = GRAFT_OP_SOFT_MARGIN_LOSS_BACKWARD,
     .roles = "bvv",
     .infer = infer_soft_margin,
     .decompose = decompose_soft_margin,
     .vjp = vjp_soft_margin,
     .saves = OP_SAVE_ARGS(soft_margin_loss_backward, grad_output, self, target),
     .flags = OP_ELEMENTWISE,
     .reference = ref_pair,
     .row = &soft_margin},
};
OP_TABLE(loss_elements, defs)
