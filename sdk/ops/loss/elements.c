/* Losses of two tensors, element by element, and their mean or sum: one row of `losses` a loss. In its formulas x is
 * self, y is target, d = x - y and z the number that the loss is about (beta, delta). */
#include <string.h>

#include "ops/core/families.h"
#include "ops/core/ref.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"
#include "ops/loss/loss.h"

enum { NO_OP = 0 };
typedef struct pair_loss {
  uint32_t forward, backward;
  int weight, reduction, number; /* arguments of the forward op; of the backward op the same plus 1. -1: none */
  bool one_dtype;                /* self and target must have it, and one shape */
  bool of_self;                  /* the result is of self's dtype, and laid out like self */
  ref_real (*loss)(ref_real x, ref_real y, ref_real z);
  ref_real (*slope)(ref_real x, ref_real y, ref_real z); /* d loss / d x */
  graft_tensor *(*compose_loss)(fx *s, graft_tensor *x, graft_tensor *y, double z);
  graft_tensor *(*compose_slope)(fx *s, graft_tensor *x, graft_tensor *y, double z);
  graft_tensor *(*compose_bend)(fx *s, graft_tensor *x, graft_tensor *y, double z); /* d slope / d x */
} pair_loss;

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
  graft_tensor *out;
  fx_call(s, GRAFT_OP_WHERE_SELF, (graft_value[]){fx_tensor(condition), fx_tensor(a), fx_tensor(b)}, 3, &out, 1);
  return out;
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

static graft_tensor *log_kept(fx *s, graft_tensor *x) {
  return fx_clamp(s, fx_log(s, x), graft_scalar_float(-100), graft_scalar_none());
}
COMPOSE(compose_entropy) {
  (void)z;
  graft_tensor *missed = fx_mul(s, fx_adds(s, y, -1), log_kept(s, one_minus(s, x)));
  return fx_sub(s, missed, fx_mul(s, y, log_kept(s, x)));
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

static const pair_loss losses[] = {
    {GRAFT_OP_MSE_LOSS, GRAFT_OP_MSE_LOSS_BACKWARD, -1, 2, -1, false, false, mse_loss, mse_slope, compose_mse,
     compose_mse_slope, compose_mse_bend},
    {GRAFT_OP_SMOOTH_L1_LOSS, GRAFT_OP_SMOOTH_L1_LOSS_BACKWARD, -1, 2, 3, false, false, smooth_loss, smooth_slope,
     compose_smooth, compose_smooth_slope, compose_smooth_bend},
    {GRAFT_OP_HUBER_LOSS, GRAFT_OP_HUBER_LOSS_BACKWARD, -1, 2, 3, false, true, huber_loss, huber_slope, compose_huber,
     compose_huber_slope, compose_huber_bend},
    {GRAFT_OP_BINARY_CROSS_ENTROPY, GRAFT_OP_BINARY_CROSS_ENTROPY_BACKWARD, 2, 3, -1, true, true, entropy_loss,
     entropy_slope, compose_entropy, compose_entropy_slope, compose_entropy_bend},
    {NO_OP, GRAFT_OP_SOFT_MARGIN_LOSS_BACKWARD, -1, 2, -1, false, false, NULL, soft_slope, NULL, compose_soft_slope,
     compose_soft_bend}, /* PyTorch composes the loss itself */
};

/* The row of an op; *offset: where its arguments stand against those of the forward op. */
static const pair_loss *loss_of(uint32_t op_id, int *offset) {
  for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
    *offset = losses[i].backward == op_id;
    if (losses[i].forward == op_id || *offset) return &losses[i];
  }
  return NULL;
}

/* --- rules --- */

/* The broadcast shape of two operands into out[0], with TensorIterator's strides. Their roles are 'v': for a mean or a
 * sum they do not take the result's shape. */
static graft_status out_of_both(op_call *c, graft_dtype dtype, const graft_tensor *a, const graft_tensor *b) {
  int64_t sizes[GRAFT_MAX_DIMS];
  int32_t ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
  for (int32_t i = 0; i < ndim; i++) {
    int32_t at = i - (ndim - a->ndim), other = i - (ndim - b->ndim);
    int64_t m = at < 0 ? 1 : a->sizes[at], n = other < 0 ? 1 : b->sizes[other];
    if (m != n && m != 1 && n != 1) return op_error(c, "shapes do not broadcast: %s", op_show_tensors(c));
    sizes[i] = m == 1 ? n : m;
  }
  op_out(c, 0, dtype, ndim, sizes);
  op_iterator_strides(&c->out[0], (const graft_tensor *const[]){a, b}, 2);
  return GRAFT_OK;
}

static graft_status check_number(const op_call *c, const pair_loss *p, int offset) {
  if (p->number < 0) return GRAFT_OK;
  double z = op_float(c, p->number + offset);
  bool huber = p->forward == GRAFT_OP_HUBER_LOSS;
  if (huber ? z > 0 : z >= 0) return GRAFT_OK;
  return op_error(c, "%s is %g; expected %s", c->schema->args[p->number + offset].name, z,
                  huber ? "a number above 0" : "0 or more");
}

/* Whether `t` broadcasts to a shape as it stands. */
static bool fits_into(const graft_tensor *t, int32_t ndim, const int64_t *sizes) {
  bool fits = t->ndim <= ndim;
  for (int32_t i = 1; fits && i <= t->ndim; i++) {
    fits = t->sizes[t->ndim - i] == 1 || t->sizes[t->ndim - i] == sizes[ndim - i];
  }
  return fits;
}

/* binary_cross_entropy(self, target, weight, reduction): self and target alike, in shape and dtype. (PyTorch's own
 * kernel looks at the target's shape with its ones left out, and its module refuses what is not self's.) */
static graft_status infer_entropy(op_call *c, const graft_tensor *self, const graft_tensor *target) {
  const graft_tensor *weight = op_tensor(c, 2);
  if (!dt_is_float(self->dtype) || dt_is_float8(self->dtype)) return op_refuse_dtype(c, 0, "a floating dtype");
  if (self->dtype != target->dtype) return op_error(c, "expected one dtype (%s)", op_show_tensors(c));
  if (!tns_same_sizes(self, target)) return op_error(c, "self and target differ in shape (%s)", op_show_tensors(c));
  if (weight && !fits_into(weight, self->ndim, self->sizes)) {
    return op_error(c, "weight does not broadcast to self's shape (%s)", op_show_tensors(c));
  }
  c->compute = self->dtype;
  c->decompose_only = weight && !tns_same_sizes(weight, self);
  if (op_int(c, 3) == LOSS_NONE)
    op_out_like(c, 0, self->dtype, self);
  else
    op_out(c, 0, self->dtype, 0, NULL);
  return GRAFT_OK;
}

/* X(self, target, ...). A slot sees operands of one shape; others are decomposed. */
static graft_status infer_forward(op_call *c) {
  int offset;
  const pair_loss *p = loss_of(c->schema->id, &offset);
  const graft_tensor *self = op_tensor(c, 0), *target = op_tensor(c, 1);
  graft_status status = check_reduction(c, p->reduction);
  if (!status) status = check_number(c, p, 0);
  if (status) return status;
  if (p->one_dtype) return infer_entropy(c, self, target);
  c->compute = op_promote_tensors(c, 0);
  if (!c->compute) return op_error(c, "these dtypes do not promote to a common one: %s", op_show_tensors(c));
  graft_dtype dtype = p->of_self ? self->dtype : c->compute;
  if (!dt_is_float(c->compute) || !dt_is_float(dtype))
    return op_error(c, "expected a floating dtype (%s)", op_show_tensors(c));
  bool same = tns_same_sizes(self, target);
  c->decompose_only = !same;
  status = out_of_both(c, dtype, self, target);
  if (!status && same && p->of_self) op_out_like(c, 0, dtype, self);
  if (!status && op_int(c, p->reduction) != LOSS_NONE) op_out(c, 0, dtype, 0, NULL);
  return status;
}

/* X_backward(grad_output, self, target, ...): in self's shape */
static graft_status infer_backward(op_call *c) {
  int offset;
  const pair_loss *p = loss_of(c->schema->id, &offset);
  const graft_tensor *self = op_tensor(c, 1);
  graft_status status = check_reduction(c, p->reduction + 1);
  if (!status) status = op_out_broadcast(c, 0, self->dtype);
  if (status) return status;
  bool fits = c->out[0].ndim == self->ndim;
  for (int32_t i = 0; fits && i < self->ndim; i++) fits = c->out[0].sizes[i] == self->sizes[i];
  if (!fits) return op_error(c, "grad_output and target do not broadcast to self's shape (%s)", op_show_tensors(c));
  c->compute = op_promote_tensors(c, 0);
  if (!c->compute || c->compute == GRAFT_BOOL || dt_is_complex(c->compute)) {
    return op_error(c, "expected real dtypes that promote to a common one (%s)", op_show_tensors(c));
  }
  if (p->of_self && !dt_is_float(self->dtype)) return op_refuse_dtype(c, 1, "a floating dtype");
  bool differ = op_tensor(c, 0)->dtype != self->dtype || op_tensor(c, 2)->dtype != self->dtype;
  if (p->one_dtype && differ) return op_error(c, "expected one dtype (%s)", op_show_tensors(c));
  if (p->one_dtype)
    op_out_like(c, 0, self->dtype, self);
  else
    op_out(c, 0, self->dtype, self->ndim, self->sizes);
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
  const graft_args *head = args;
  const op_schema *schema = op_schema_of(head->op_id);
  int offset;
  pair_args a = {.p = loss_of(head->op_id, &offset)};
  const char *base = args;
#define READ(to, place) memcpy(&a.to, base + schema->args[place].offset, sizeof a.to)
  if (offset) READ(grad, 0);
  READ(self, offset);
  READ(target, 1 + offset);
  if (a.p->weight >= 0) READ(weight, a.p->weight + offset);
  if (a.p->number >= 0) READ(number, a.p->number + offset);
  READ(reduction, a.p->reduction + offset);
#undef READ
  memcpy(&a.out, base + schema->rets[0].offset, sizeof a.out);
  return a;
}

/* A probability that is none is an error, as in PyTorch. */
static graft_status check_probabilities(const pair_args *a, const ref_array *x) {
  if (a->p->forward != GRAFT_OP_BINARY_CROSS_ENTROPY || a->grad) return GRAFT_OK;
  for (int64_t i = 0; i < x->count; i++) {
    if (!(x->re[i] >= 0 && x->re[i] <= 1)) {
      return err_set(GRAFT_INVALID_ARGUMENT, "self holds %Lg; expected numbers from 0 to 1", x->re[i]);
    }
  }
  return GRAFT_OK;
}

static graft_status ref_pair(const graft_exec *exec, const void *args) {
  (void)exec;
  pair_args a = read_args(args);
  ref_array x = ref_read(a.self), y = ref_read(a.target), g = ref_read(a.grad), w = ref_read(a.weight);
  graft_status status = x.re && y.re && (!a.grad || g.re) && (!a.weight || w.re) ? GRAFT_OK : ref_no_memory();
  if (!status) status = check_probabilities(&a, &x);
  ref_real count = (ref_real)x.count, z = dt_round(dt_accumulate(a.self->dl.dtype), a.number);
  for (int64_t i = 0; !status && i < x.count; i++) {
    ref_real value = a.grad ? a.p->slope(x.re[i], y.re[i], z) : a.p->loss(x.re[i], y.re[i], z);
    if (a.weight) value *= w.re[i];
    if (a.grad) value *= a.reduction == LOSS_MEAN ? g.re[i] / count : g.re[i];
    x.re[i] = value;
  }
  if (!status && !a.grad && a.reduction != LOSS_NONE) {
    ref_real sum = ref_sum(a.self->dl.dtype, x.re, 1, x.count);
    ref_write(a.out, &(ref_array){1, &(ref_real){a.reduction == LOSS_MEAN ? sum / count : sum}, NULL});
  } else if (!status) {
    ref_write(a.out, &x);
  }
  ref_free(&x);
  ref_free(&y);
  ref_free(&g);
  ref_free(&w);
  return status;
}

/* --- decompositions, gradients --- */

static uint32_t all_dims(const graft_tensor *t) {
  return t->ndim ? (1u << t->ndim) - 1 : 0;
}

static graft_tensor *weighted(fx *s, graft_tensor *t, graft_tensor *weight) {
  return weight ? fx_mul(s, t, weight) : t;
}

static double number_of(const pair_loss *p, const graft_value *args, int offset) {
  return p->number < 0 ? 0 : args[p->number + offset].as.f;
}
static graft_tensor *weight_of(const pair_loss *p, const graft_value *args, int offset) {
  bool given = p->weight >= 0 && args[p->weight + offset].kind == GRAFT_VALUE_TENSOR;
  return given ? args[p->weight + offset].as.tensor : NULL;
}

/* With the weight in self's shape the op can be a slot's. */
static void entropy_of_expanded(fx *s, const op_call *c, graft_tensor **outs) {
  const graft_tensor *self = op_tensor(c, 0);
  graft_value args[] = {c->args[0], c->args[1], c->args[2], c->args[3]};
  args[2] = fx_tensor(fx_expand(s, op_tensor(c, 2), self->sizes, (uint32_t)self->ndim, false));
  if (!s->status) fx_call(s, GRAFT_OP_BINARY_CROSS_ENTROPY, args, 4, outs, 1);
}

static void decompose_forward(fx *s, const op_call *c, graft_tensor **outs) {
  if (!c->decompose_only && op_ran_wider(s, c, outs)) return;
  int offset;
  const pair_loss *p = loss_of(c->schema->id, &offset);
  if (p->one_dtype && c->decompose_only) return entropy_of_expanded(s, c, outs);
  graft_tensor *each = p->compose_loss(s, op_tensor(c, 0), op_tensor(c, 1), number_of(p, c->args, 0));
  each = weighted(s, each, weight_of(p, c->args, 0));
  if (s->status) return;
  int64_t reduction = op_int(c, p->reduction);
  outs[0] = reduction == LOSS_NONE   ? each
            : reduction == LOSS_MEAN ? fx_mean_dim(s, each, NULL, 0, false, GRAFT_DTYPE_NONE)
                                     : fx_sum(s, each, all_dims(each), false);
}

/* value * weight * g, divided by the number of elements for a mean */
static graft_tensor *times_cotangent(fx *s, graft_tensor *value, graft_tensor *weight, graft_tensor *g,
                                     int64_t reduction) {
  value = weighted(s, value, weight);
  if (s->status || !value || !g) return NULL;
  int64_t count = value->numel;
  graft_tensor *product = fx_mul(s, value, g);
  return reduction == LOSS_MEAN ? fx_muls(s, product, 1 / (double)count) : product;
}

static void decompose_backward(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  int offset;
  const pair_loss *p = loss_of(c->schema->id, &offset);
  graft_tensor *slope = p->compose_slope(s, op_tensor(c, 1), op_tensor(c, 2), number_of(p, c->args, 1));
  outs[0] = times_cotangent(s, slope, weight_of(p, c->args, 1), op_tensor(c, 0), op_int(c, p->reduction + 1));
}

/* The backward op on operands of one shape and dtype, its formula on others. */
static graft_tensor *slope_of(op_vjp *v, const pair_loss *p, graft_tensor *x, graft_tensor *y) {
  graft_value args[OP_MAX_ARGS] = {fx_tensor(v->g[0])};
  bool alike = tns_same_sizes(vjp_arg(v, 0), vjp_arg(v, 1)) && x->dtype == y->dtype;
  int64_t reduction = v->args[p->reduction].as.i;
  graft_tensor *out, *weight = weight_of(p, v->args, 0);
  if (!alike) {
    graft_tensor *slope = p->compose_slope(v->s, x, y, number_of(p, v->args, 0));
    return times_cotangent(v->s, slope, weight, v->g[0], reduction);
  }
  for (uint32_t i = 0; i < v->schema->nargs; i++) args[i + 1] = v->args[i];
  args[1] = fx_tensor(x);
  args[2] = fx_tensor(y);
  fx_call(v->s, p->backward, args, v->schema->nargs + 1u, &out, 1);
  return out;
}

static void vjp_forward(op_vjp *v) {
  int offset;
  const pair_loss *p = loss_of(v->schema->id, &offset);
  graft_tensor *self = vjp_arg(v, 0), *target = vjp_arg(v, 1), *both = fx_sub(v->s, self, target);
  if (v->s->status) return;
  graft_tensor *x = fx_expand(v->s, self, both->sizes, (uint32_t)both->ndim, false);
  graft_tensor *y = fx_expand(v->s, target, both->sizes, (uint32_t)both->ndim, false);
  if (v->s->status) return;
  bool entropy = p->forward == GRAFT_OP_BINARY_CROSS_ENTROPY;
  graft_tensor *slope = vjp_needs(v, 0) || !entropy ? slope_of(v, p, x, y) : NULL;
  if (vjp_needs(v, 0)) v->results[0] = fx_sum_to(v->s, slope, self->ndim, self->sizes);
  if (!vjp_needs(v, 1)) return;
  if (entropy) { /* linear in the target: log(1 - x) - log(x) */
    graft_tensor *odds = fx_sub(v->s, fx_log(v->s, one_minus(v->s, x)), fx_log(v->s, x));
    odds = times_cotangent(v->s, odds, weight_of(p, v->args, 0), v->g[0], v->args[p->reduction].as.i);
    v->results[1] = fx_sum_to(v->s, odds, target->ndim, target->sizes);
    return;
  }
  v->results[1] = fx_neg(v->s, fx_sum_to(v->s, slope, target->ndim, target->sizes));
}

static void vjp_backward(op_vjp *v) {
  int offset;
  const pair_loss *p = loss_of(v->schema->id, &offset);
  graft_tensor *g = vjp_arg(v, 0), *self = vjp_arg(v, 1), *target = vjp_arg(v, 2), *weight = weight_of(p, v->args, 1);
  double z = number_of(p, v->args, 1);
  int64_t reduction = v->args[p->reduction + 1].as.i;
  fx *s = v->s;
  bool entropy = p->forward == GRAFT_OP_BINARY_CROSS_ENTROPY;
  if (vjp_needs(v, 0)) {
    graft_tensor *slope =
        entropy ? fx_div(s, fx_sub(s, self, target), variance_off_zero(s, self)) : p->compose_slope(s, self, target, z);
    v->results[0] = times_cotangent(s, slope, weight, v->g[0], reduction);
  }
  graft_tensor *both = fx_mul(s, v->g[0], g);
  if (vjp_needs(v, 1)) {
    v->results[1] = times_cotangent(s, p->compose_bend(s, self, target, z), weight, both, reduction);
  }
  if (!vjp_needs(v, 2)) return;
  graft_tensor *bend = entropy ? fx_reciprocal(s, variance(s, self)) : p->compose_bend(s, self, target, z);
  v->results[2] = fx_neg(s, times_cotangent(s, bend, weight, both, reduction));
}

/* --- soft_margin_loss_backward(grad_output, self, target, reduction): log(1 + exp(-x y)), of a product, not a
 * difference; self and target may have different shapes, and a mean is one over self's elements --- */

static graft_status infer_soft_margin(op_call *c) {
  const graft_tensor *g = op_tensor(c, 0), *self = op_tensor(c, 1), *target = op_tensor(c, 2);
  graft_status status = check_reduction(c, 3);
  if (status) return status;
  c->compute = op_promote_tensors(c, 0);
  if (!c->compute || !(dt_is_float(c->compute) || dt_is_complex(c->compute))) {
    return op_error(c, "expected floating dtypes that promote to a common one (%s)", op_show_tensors(c));
  }
  status = out_of_both(c, c->compute, target, self);
  if (status) return status;
  if (!fits_into(g, c->out[0].ndim, c->out[0].sizes)) {
    return op_error(c, "grad_output does not broadcast to the shape of self and target (%s)", op_show_tensors(c));
  }
  c->decompose_only = !tns_same_sizes(self, target) || dt_is_complex(c->compute);
  return GRAFT_OK;
}

static graft_tensor *over_elements(fx *s, graft_tensor *value, const graft_tensor *self, int64_t reduction) {
  return reduction == LOSS_MEAN ? fx_muls(s, value, 1 / (double)self->numel) : value;
}

static void decompose_soft_margin(fx *s, const op_call *c, graft_tensor **outs) {
  if (!c->decompose_only && op_ran_wider(s, c, outs)) return;
  graft_tensor *self = op_tensor(c, 1), *slope = compose_soft_slope(s, self, op_tensor(c, 2), 0);
  outs[0] = over_elements(s, fx_mul(s, slope, op_tensor(c, 0)), self, op_int(c, 3));
}

static void vjp_soft_margin(op_vjp *v) {
  graft_tensor *g = vjp_arg(v, 0), *self = vjp_arg(v, 1), *target = vjp_arg(v, 2), *both;
  int64_t reduction = v->args[3].as.i;
  fx *s = v->s;
  if (vjp_needs(v, 0)) {
    both = fx_mul(s, compose_soft_slope(s, self, target, 0), v->g[0]);
    v->results[0] = over_elements(s, both, self, reduction);
  }
  if (!vjp_needs(v, 1)) return;
  both = fx_mul(s, fx_mul(s, compose_soft_bend(s, self, target, 0), v->g[0]), g);
  v->results[1] = fx_sum_to(s, over_elements(s, both, self, reduction), self->ndim, self->sizes);
}

#define ARG OP_SAVE_ARG
#define PAIR(op, op_roles, op_saves)                                                                              \
  {.op_id = GRAFT_OP_##op,                                                                                        \
   .roles = op_roles,                                                                                             \
   .infer = infer_forward,                                                                                        \
   .decompose = decompose_forward,                                                                                \
   .vjp = vjp_forward,                                                                                            \
   .saves = op_saves,                                                                                             \
   .reference = ref_pair},                                                                                        \
  {                                                                                                               \
    .op_id = GRAFT_OP_##op##_BACKWARD, .roles = "bbbb", .infer = infer_backward, .decompose = decompose_backward, \
    .vjp = vjp_backward, .saves = ARG(0) | ARG(1) | ARG(2) | (op_saves) << 1, .flags = OP_ELEMENTWISE,            \
    .reference = ref_pair                                                                                         \
  }

static const op_def defs[] = {
    PAIR(MSE_LOSS, "vv", ARG(0) | ARG(1)),
    PAIR(SMOOTH_L1_LOSS, "vv", ARG(0) | ARG(1)),
    PAIR(HUBER_LOSS, "vv", ARG(0) | ARG(1)),
    PAIR(BINARY_CROSS_ENTROPY, "vvv", ARG(0) | ARG(1) | ARG(2)),
    {.op_id = GRAFT_OP_SOFT_MARGIN_LOSS_BACKWARD,
     .roles = "bvv",
     .infer = infer_soft_margin,
     .decompose = decompose_soft_margin,
     .vjp = vjp_soft_margin,
     .saves = ARG(0) | ARG(1) | ARG(2),
     .flags = OP_ELEMENTWISE,
     .reference = ref_pair},
};
OP_TABLE(loss_elements, defs)
