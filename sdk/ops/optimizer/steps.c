/* Fused optimizer steps over lists of tensors: Adam, AdamW, SGD, Adagrad. Each has lists of one length, of which the
 * first ones come out new; numbers; and at the end grad_scale, which gradients are divided by, and found_inf: where it
 * is 1 the step is not made. The learning rate is a number or, in the forms tensor_lr, a tensor. */
#include <math.h>

#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"
#include "ops/optimizer/optimizer.h"

/* The lists, which all steps begin with, and those of each; the number of an argument is that of its list. */
enum { SELF = ARG_fused_adam_self, GRADS = ARG_fused_adam_grads, LISTS_MOST = 6, OUTS_MOST = 5 };
enum {
  EXP_AVGS = ARG_fused_adam_exp_avgs,
  EXP_AVG_SQS = ARG_fused_adam_exp_avg_sqs,
  MAX_EXP_AVG_SQS = ARG_fused_adam_max_exp_avg_sqs,
  MOMENTUM_BUFFERS = ARG_fused_sgd_momentum_buffer_list,
  STATE_SUMS = ARG_fused_adagrad_state_sums
};

struct item;
/* Where arguments stand. 0: there is none, since self comes first. The forms with a tensor as lr have them alike. */
typedef struct layout {
  void (*compose)(struct item *);
  uint8_t last_list, last_out; /* the first arguments are lists, and of these the first come out */
  uint8_t steps;               /* a list with the number of the step to be made, one for each item */
  uint8_t optional;            /* a list that may be empty */
  uint8_t lr, weight_decay, eps, maximize;
  uint8_t beta1, beta2, amsgrad;                /* Adam */
  uint8_t momentum, dampening, nesterov, first; /* SGD */
  uint8_t lr_decay;                             /* Adagrad */
} layout;

static const layout *layout_of(const op_call *c) {
  return c->def->row;
}
static int grad_scale_of(const op_call *c) {
  return c->schema->nargs - 2;
}
static int found_inf_of(const op_call *c) {
  return c->schema->nargs - 1;
}

/* --- rule --- */

static graft_status check_item(const op_call *c, uint32_t list, uint32_t i) {
  const graft_tensor *self = c->args[SELF].as.tensors[i], *t = c->args[list].as.tensors[i];
  const char *name = c->schema->args[list].name;
  if (layout_of(c)->steps && list == layout_of(c)->steps) {
    return t->numel == 1 ? GRAFT_OK : op_error(c, "item %u of %s is not one number", i, name);
  }
  if (t->dtype == self->dtype && tns_same_sizes(t, self)) return GRAFT_OK;
  char has[160], wants[160];
  return op_error(c, "item %u of %s is %s; expected the shape and dtype of self's, %s", i, name,
                  tns_describe(t, has, sizeof has), tns_describe(self, wants, sizeof wants));
}

static graft_status check_one_number(const op_call *c, int arg) {
  const graft_tensor *t = op_tensor(c, arg);
  return !t || t->numel == 1 ? GRAFT_OK : op_refuse(c, arg, "one number");
}

/* As long as self; Adam's greatest averages may be empty without amsgrad, SGD's buffers are without momentum. */
static graft_status check_length(const op_call *c, uint32_t list) {
  const layout *l = layout_of(c);
  uint32_t count = c->args[SELF].count, wanted = count, has = c->args[list].count;
  if (l->optional && list == l->optional) {
    bool unused = l->amsgrad ? !op_bool(c, l->amsgrad) : op_float(c, l->momentum) == 0;
    if (unused && (l->momentum || !has)) wanted = 0;
  }
  if (has == wanted) return GRAFT_OK;
  return op_error(c, "%s has %u items; expected %u%s", c->schema->args[list].name, has, wanted,
                  wanted ? ", as self" : "");
}

static graft_status check_lists(op_call *c) {
  const layout *l = layout_of(c);
  for (uint32_t list = SELF; list <= l->last_list; list++) {
    graft_status status = check_length(c, list);
    if (status) return status;
    if (list <= l->last_out) op_out_list(c, (int)list, (int)list);
    for (uint32_t i = 0; i < c->args[list].count; i++)
      if ((status = check_item(c, list, i))) return status;
  }
  return GRAFT_OK;
}

static graft_status infer_step(op_call *c) {
  uint32_t count = c->args[SELF].count;
  graft_status status = check_lists(c);
  if (status) return status;
  c->compute = count ? c->args[SELF].as.tensors[0]->dtype : GRAFT_DTYPE_NONE;
  for (uint32_t i = 0; i < count; i++) {
    graft_dtype dtype = c->args[SELF].as.tensors[i]->dtype;
    if (!dt_is_float(dtype)) return op_refuse(c, SELF, "floating dtypes");
    if (dtype != c->compute) c->compute = GRAFT_DTYPE_NONE; /* each its own */
  }
  status = check_one_number(c, layout_of(c)->lr);
  if (!status) status = check_one_number(c, grad_scale_of(c));
  return status ? status : check_one_number(c, found_inf_of(c));
}

/* --- kernels --- */

typedef struct step {
  double lr, weight_decay, eps, beta1, beta2, momentum, dampening, lr_decay;
  bool maximize, amsgrad, decoupled, nesterov, first; /* decoupled: AdamW's weight decay */
  ref_real scale, number;                             /* number: of the step to be made */
  bool skip;
} step;

/* Element i of an item of each list. */
typedef void (*step_fn)(const step *how, ref_array *item, int64_t i);

static ref_real gradient(const step *how, ref_array *item, int64_t i) {
  ref_real grad = item[GRADS].re[i] /= how->scale;
  return how->maximize ? -grad : grad;
}

static void adam(const step *how, ref_array *item, int64_t i) {
  ref_real grad = gradient(how, item, i), self = item[SELF].re[i];
  ref_real correction1 = 1 - powl(how->beta1, how->number), correction2 = 1 - powl(how->beta2, how->number);
  if (how->decoupled)
    self -= (ref_real)how->lr * how->weight_decay * self;
  else
    grad += how->weight_decay * self;
  ref_real avg = item[EXP_AVGS].re[i] += (grad - item[EXP_AVGS].re[i]) * (1 - (ref_real)how->beta1);
  ref_real square = how->beta2 * item[EXP_AVG_SQS].re[i] + (1 - (ref_real)how->beta2) * grad * grad;
  item[EXP_AVG_SQS].re[i] = square;
  if (how->amsgrad) {
    ref_real *most = &item[MAX_EXP_AVG_SQS].re[i];
    if (!(*most >= square || isnan(*most))) *most = square;
    square = *most;
  }
  item[SELF].re[i] = self - how->lr / correction1 * avg / (sqrtl(square / correction2) + how->eps);
}

static void sgd(const step *how, ref_array *item, int64_t i) {
  ref_real grad = gradient(how, item, i) + how->weight_decay * item[SELF].re[i];
  if (how->momentum != 0) {
    ref_real *buffer = &item[MOMENTUM_BUFFERS].re[i];
    *buffer = how->first ? grad : how->momentum * *buffer + (1 - (ref_real)how->dampening) * grad;
    grad = how->nesterov ? grad + how->momentum * *buffer : *buffer;
  }
  item[SELF].re[i] -= how->lr * grad;
}

static void adagrad(const step *how, ref_array *item, int64_t i) {
  ref_real grad = gradient(how, item, i) + how->weight_decay * item[SELF].re[i];
  ref_real rate = how->lr / (1 + (how->number - 1) * how->lr_decay);
  ref_real sum = item[STATE_SUMS].re[i] += grad * grad;
  item[SELF].re[i] -= rate * grad / (sqrtl(sum) + how->eps);
}

typedef struct step_lists {
  uint32_t count; /* of lists */
  graft_tensor_list in[OUTS_MOST], out[OUTS_MOST], numbers;
} step_lists;

static const graft_tensor_desc *item_of(graft_tensor_list list, uint64_t i) {
  return i < list.count ? list.items[i] : NULL;
}

static graft_status step_item(step *how, const step_lists *lists, uint64_t i, step_fn element) {
  ref_array item[OUTS_MOST];
  bool read = true;
  for (uint32_t list = 0; list < lists->count; list++) {
    item[list] = ref_read(item_of(lists->in[list], i));
    read &= item[list].re || i >= lists->in[list].count;
  }
  how->number = opt_number(item_of(lists->numbers, i), 1);
  for (int64_t j = 0; read && !how->skip && j < item[SELF].count; j++) element(how, item, j);
  for (uint32_t list = 0; list < lists->count; list++) {
    if (read) ref_write(item_of(lists->out[list], i), &item[list]);
    ref_free(&item[list]);
  }
  return read ? GRAFT_OK : ref_no_memory();
}

static graft_status run_steps(step how, const step_lists *lists, const graft_tensor_desc *grad_scale,
                              const graft_tensor_desc *found_inf, step_fn element) {
  graft_status status = GRAFT_OK;
  how.scale = opt_number(grad_scale, 1);
  how.skip = opt_number(found_inf, 0) == 1;
  for (uint64_t i = 0; !status && i < lists->in[SELF].count; i++) status = step_item(&how, lists, i, element);
  return status;
}

#define REF_ADAM(op, lr_, decoupled_)                                                             \
  graft_status kernel_##op(const graft_exec *exec, const graft_args_##op *a) {                    \
    const step how = {.lr = lr_,                                                                  \
                      .weight_decay = a->weight_decay,                                            \
                      .eps = a->eps,                                                              \
                      .beta1 = a->beta1,                                                          \
                      .beta2 = a->beta2,                                                          \
                      .maximize = a->maximize,                                                    \
                      .amsgrad = a->amsgrad,                                                      \
                      .decoupled = decoupled_};                                                   \
    const step_lists lists = {                                                                    \
        5,                                                                                        \
        {a->self, a->grads, a->exp_avgs, a->exp_avg_sqs, a->max_exp_avg_sqs},                     \
        {a->self_out, a->grads_out, a->exp_avgs_out, a->exp_avg_sqs_out, a->max_exp_avg_sqs_out}, \
        a->state_steps};                                                                          \
    return run_steps(how, &lists, a->grad_scale, a->found_inf, adam);                             \
  }
REF_ADAM(fused_adam, a->lr, false)
REF_ADAM(fused_adam_tensor_lr, (double)opt_number(a->lr, 0), false)
REF_ADAM(fused_adamw, a->lr, true)
REF_ADAM(fused_adamw_tensor_lr, (double)opt_number(a->lr, 0), true)

#define REF_SGD(op, lr_)                                                                \
  graft_status kernel_##op(const graft_exec *exec, const graft_args_##op *a) {          \
    const step how = {.lr = lr_,                                                        \
                      .weight_decay = a->weight_decay,                                  \
                      .momentum = a->momentum,                                          \
                      .dampening = a->dampening,                                        \
                      .maximize = a->maximize,                                          \
                      .nesterov = a->nesterov,                                          \
                      .first = a->is_first_step};                                       \
    const step_lists lists = {3,                                                        \
                              {a->self, a->grads, a->momentum_buffer_list},             \
                              {a->self_out, a->grads_out, a->momentum_buffer_list_out}, \
                              {NULL, 0}};                                               \
    return run_steps(how, &lists, a->grad_scale, a->found_inf, sgd);                    \
  }
REF_SGD(fused_sgd, a->lr)
REF_SGD(fused_sgd_tensor_lr, (double)opt_number(a->lr, 0))

graft_status kernel_fused_adagrad(const graft_exec *exec, const graft_args_fused_adagrad *a) {
  const step how = {
      .lr = a->lr, .lr_decay = a->lr_decay, .weight_decay = a->weight_decay, .eps = a->eps, .maximize = a->maximize};
  const step_lists lists = {4,
                            {a->self, a->grads, a->state_sums, a->state_steps},
                            {a->self_out, a->grads_out, a->state_sums_out, a->state_steps_out},
                            a->state_steps};
  return run_steps(how, &lists, a->grad_scale, a->found_inf, adagrad);
}

/* --- the same as single ops --- */

/* One item of each list, as it was and as it becomes. */
typedef struct item {
  fx *s;
  const op_call *c;
  const layout *l;
  graft_tensor *old[OUTS_MOST], *new[OUTS_MOST];
  graft_tensor *number; /* of the step, in the item's dtype; NULL: the optimizer has none */
} item;

/* The number that a tensor with one element holds, as rank 0. */
static graft_tensor *one_number(fx *s, graft_tensor *t, graft_dtype dtype) {
  if (!t) return NULL;
  return fx_cast(s, t->ndim ? fx_reshape(s, t, 0, (int64_t[]){0}) : t, dtype);
}

static graft_tensor *times_lr(const item *t, graft_tensor *x) {
  graft_tensor *lr = op_tensor(t->c, t->l->lr);
  return lr ? fx_mul(t->s, x, one_number(t->s, lr, t->old[SELF]->dtype)) : fx_muls(t->s, x, op_float(t->c, t->l->lr));
}

/* The gradient as the step takes it; what comes out is only unscaled. */
static graft_tensor *take_gradient(item *t, bool decays) {
  graft_tensor *scale = op_tensor(t->c, grad_scale_of(t->c));
  if (scale) t->new[GRADS] = fx_div(t->s, t->old[GRADS], one_number(t->s, scale, t->old[SELF]->dtype));
  graft_tensor *grad = op_bool(t->c, t->l->maximize) ? fx_neg(t->s, t->new[GRADS]) : t->new[GRADS];
  double decay = op_float(t->c, t->l->weight_decay);
  return decays && decay != 0 ? fx_add(t->s, grad, fx_muls(t->s, t->old[SELF], decay)) : grad;
}

/* 1 - beta^step as 2u / (1 + u) with u = tanh(-step log / 2): in the first steps, where beta^step is close to 1,
 * the difference itself would keep few digits. */
static graft_tensor *correction(const item *t, double beta) {
  graft_tensor *u = fx_tanh(t->s, fx_muls(t->s, t->number, -log(beta) / 2));
  return fx_div(t->s, fx_muls(t->s, u, 2), fx_adds(t->s, u, 1));
}

static void compose_adam(item *t) {
  fx *s = t->s;
  uint32_t id = t->c->schema->id;
  bool decoupled = id == GRAFT_OP_FUSED_ADAMW || id == GRAFT_OP_FUSED_ADAMW_TENSOR_LR;
  double beta1 = op_float(t->c, t->l->beta1), beta2 = op_float(t->c, t->l->beta2);
  graft_tensor *grad = take_gradient(t, !decoupled), *self = t->old[SELF];
  if (decoupled) self = fx_sub(s, self, times_lr(t, fx_muls(s, self, op_float(t->c, t->l->weight_decay))));
  t->new[EXP_AVGS] = fx_lerp_Scalar(s, t->old[EXP_AVGS], grad, graft_scalar_float(1 - beta1));
  t->new[EXP_AVG_SQS] = fx_add(s, fx_muls(s, t->old[EXP_AVG_SQS], beta2), fx_muls(s, fx_mul(s, grad, grad), 1 - beta2));
  graft_tensor *square = t->new[EXP_AVG_SQS];
  if (op_bool(t->c, t->l->amsgrad)) {
    square = t->new[MAX_EXP_AVG_SQS] = fx_maximum(s, t->old[MAX_EXP_AVG_SQS], square);
  }
  graft_tensor *root = fx_sqrt(s, fx_div(s, square, correction(t, beta2)));
  graft_tensor *move = fx_div(s, t->new[EXP_AVGS], fx_adds(s, root, op_float(t->c, t->l->eps)));
  graft_tensor *rate = times_lr(t, fx_reciprocal(s, correction(t, beta1)));
  t->new[SELF] = fx_sub(s, self, fx_mul(s, move, rate));
}

static void compose_sgd(item *t) {
  fx *s = t->s;
  graft_tensor *grad = take_gradient(t, true);
  double momentum = op_float(t->c, t->l->momentum), dampening = op_float(t->c, t->l->dampening);
  if (momentum != 0) {
    graft_tensor *buffer = t->old[MOMENTUM_BUFFERS];
    if (op_bool(t->c, t->l->first))
      buffer = fx_clone(s, grad, GRAFT_FORMAT_PRESERVE);
    else
      buffer = fx_add(s, fx_muls(s, buffer, momentum), fx_muls(s, grad, 1 - dampening));
    t->new[MOMENTUM_BUFFERS] = buffer;
    grad = op_bool(t->c, t->l->nesterov) ? fx_add(s, grad, fx_muls(s, buffer, momentum)) : buffer;
  }
  t->new[SELF] = fx_sub(s, t->old[SELF], times_lr(t, grad));
}

static void compose_adagrad(item *t) {
  fx *s = t->s;
  graft_tensor *grad = take_gradient(t, true);
  t->new[STATE_SUMS] = fx_add(s, t->old[STATE_SUMS], fx_mul(s, grad, grad));
  graft_tensor *root = fx_adds(s, fx_sqrt(s, t->new[STATE_SUMS]), op_float(t->c, t->l->eps));
  graft_tensor *slower = fx_adds(s, fx_muls(s, fx_adds(s, t->number, -1), op_float(t->c, t->l->lr_decay)), 1);
  graft_tensor *rate = times_lr(t, fx_reciprocal(s, slower));
  t->new[SELF] = fx_sub(s, t->old[SELF], fx_mul(s, fx_div(s, grad, root), rate));
}

/* A scope for each item: what lies between needs memory for one item only. */
static void compose_item(fx *s, const op_call *c, uint32_t i, graft_tensor *skip, graft_tensor **outs) {
  fx inner;
  fx_begin(&inner, s->sink);
  item t = {.s = &inner, .c = c, .l = layout_of(c)};
  for (uint32_t list = SELF; list <= t.l->last_out; list++) {
    if (i < c->args[list].count) t.new[list] = t.old[list] = c->args[list].as.tensors[i];
  }
  if (t.l->steps) t.number = one_number(&inner, c->args[t.l->steps].as.tensors[i], t.old[SELF]->dtype);
  t.l->compose(&t);
  uint32_t at = i;
  for (uint32_t list = SELF; list <= t.l->last_out; at += c->args[list].count, list++) {
    if (skip && t.new[list] != t.old[list]) t.new[list] = fx_where_self(&inner, skip, t.old[list], t.new[list]);
    if (t.new[list]) outs[at] = fx_own(s, fx_keep(&inner, t.new[list]));
  }
  fx_fail(s, fx_end(&inner));
}

static void decompose_step(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *found = op_tensor(c, found_inf_of(c)), *skip = NULL;
  if (found) skip = fx_eq_Scalar(s, one_number(s, found, found->dtype), graft_scalar_float(1));
  for (uint32_t i = 0; i < c->args[SELF].count && !s->status; i++) compose_item(s, c, i, skip, outs);
}

static const layout adam_layout = {.compose = compose_adam,
                                   .last_list = ARG_fused_adam_state_steps,
                                   .last_out = MAX_EXP_AVG_SQS,
                                   .steps = ARG_fused_adam_state_steps,
                                   .optional = MAX_EXP_AVG_SQS,
                                   .lr = ARG_fused_adam_lr,
                                   .beta1 = ARG_fused_adam_beta1,
                                   .beta2 = ARG_fused_adam_beta2,
                                   .weight_decay = ARG_fused_adam_weight_decay,
                                   .eps = ARG_fused_adam_eps,
                                   .amsgrad = ARG_fused_adam_amsgrad,
                                   .maximize = ARG_fused_adam_maximize};
static const layout sgd_layout = {.compose = compose_sgd,
                                  .last_list = MOMENTUM_BUFFERS,
                                  .last_out = MOMENTUM_BUFFERS,
                                  .optional = MOMENTUM_BUFFERS,
                                  .weight_decay = ARG_fused_sgd_weight_decay,
                                  .momentum = ARG_fused_sgd_momentum,
                                  .lr = ARG_fused_sgd_lr,
                                  .dampening = ARG_fused_sgd_dampening,
                                  .nesterov = ARG_fused_sgd_nesterov,
                                  .maximize = ARG_fused_sgd_maximize,
                                  .first = ARG_fused_sgd_is_first_step};
static const layout adagrad_layout = {.compose = compose_adagrad,
                                      .last_list = ARG_fused_adagrad_state_steps,
                                      .last_out = ARG_fused_adagrad_state_steps,
                                      .steps = ARG_fused_adagrad_state_steps,
                                      .lr = ARG_fused_adagrad_lr,
                                      .lr_decay = ARG_fused_adagrad_lr_decay,
                                      .weight_decay = ARG_fused_adagrad_weight_decay,
                                      .eps = ARG_fused_adagrad_eps,
                                      .maximize = ARG_fused_adagrad_maximize};

#define STEP(op, roles_, layout, reads)                                                             \
  {                                                                                                 \
    .op_id = OP_WITH_KERNEL(op), .roles = roles_, .infer = infer_step, .decompose = decompose_step, \
    .flags = OP_READS_FIRST | OP_LATE_NUMBERS, .rule_reads = reads, .row = &layout                  \
  }

static const op_def defs[] = {
    STEP(fused_adamw, "vvvvvkkk", adam_layout, 0),
    STEP(fused_adamw_tensor_lr, "vvvvvkkkk", adam_layout, 0),
    STEP(fused_adam, "vvvvvkkk", adam_layout, 0),
    STEP(fused_adam_tensor_lr, "vvvvvkkkk", adam_layout, 0),
    STEP(fused_sgd, "vvvkk", sgd_layout, OP_SAVE_ARG(fused_sgd, momentum)),
    STEP(fused_sgd_tensor_lr, "vvvkkk", sgd_layout, OP_SAVE_ARG(fused_sgd, momentum)),
    STEP(fused_adagrad, "vvvkkk", adagrad_layout, 0),
};
OP_TABLE(optimizer_steps, defs)
