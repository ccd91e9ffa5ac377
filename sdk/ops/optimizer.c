/* Optimizer steps and other ops on lists of tensors. */
#include "ops/families.h"
#include "ops/generated/fx_ops.h"
#include "ops/ref.h"

/* --- foreach: an op of single tensors, item by item ---
 * That op has the same arguments in the same order; where the foreach op has a list, it has one of the items. */

enum { EACH_MOST = 8 };

static uint32_t item_op_of(const op_call *c) { return (uint32_t)c->def->extra; }

/* The length all list arguments have; an empty list is refused, as PyTorch does. */
static graft_status check_lists(const op_call *c) {
  uint32_t count = 0;
  for (uint32_t i = 0, seen = 0; i < c->schema->nargs; i++) {
    const graft_value *v = &c->args[i];
    if (v->kind != GRAFT_VALUE_TENSORS && v->kind != GRAFT_VALUE_SCALARS) continue;
    if (!v->count) return op_error(c, "%s is empty; expected at least one tensor", c->schema->args[i].name);
    if (seen++ && v->count != count) {
      return op_error(c, "%s has %u items; expected %u, as the lists before it", c->schema->args[i].name, v->count, count);
    }
    count = v->count;
    for (uint32_t j = 0; v->kind == GRAFT_VALUE_TENSORS && j < count; j++) {
      if (!v->as.tensors[j]) return op_error(c, "item %u of %s is absent", j, c->schema->args[i].name);
    }
  }
  return GRAFT_OK;
}

/* The arguments of item i. */
static uint32_t item_args(const op_call *c, uint32_t i, graft_value *args) {
  for (uint32_t a = 0; a < c->schema->nargs; a++) {
    args[a] = c->args[a];
    if (args[a].kind == GRAFT_VALUE_TENSORS) args[a] = fx_tensor(c->args[a].as.tensors[i]);
    else if (args[a].kind == GRAFT_VALUE_SCALARS) args[a] = fx_number(c->args[a].as.scalars[i]);
  }
  return c->schema->nargs;
}

static graft_status each_item(const op_call *c, uint32_t ret, uint32_t item, graft_meta *meta) {
  (void)ret;
  graft_value args[EACH_MOST];
  uint32_t count, nargs = item_args(c, item, args);
  return graft_infer(item_op_of(c), args, nargs, meta, 1, &count);
}

static graft_status infer_each(op_call *c) {
  graft_status status = check_lists(c);
  int like = 0;
  while (c->args[like].kind != GRAFT_VALUE_TENSORS) like++;
  op_out_list(c, 0, like);
  /* A slot takes lists whose items keep their dtype. */
  for (uint32_t i = 0; !status && i < c->args[like].count; i++) {
    graft_meta meta;
    status = each_item(c, 0, i, &meta);
    if (!status && meta.dtype != c->args[like].as.tensors[i]->dtype) c->decompose_only = true;
  }
  return status;
}

static void decompose_each(fx *s, const op_call *c, graft_tensor **outs) {
  uint32_t count = 0;
  for (uint32_t a = 0; a < c->schema->nargs; a++) {
    if (c->args[a].kind == GRAFT_VALUE_TENSORS) count = c->args[a].count;
  }
  for (uint32_t i = 0; i < count; i++) {
    graft_value args[EACH_MOST];
    uint32_t nargs = item_args(c, i, args);
    fx_call(s, item_op_of(c), args, nargs, &outs[i], 1);
  }
}

static graft_status ref_foreach_add_Scalar(const graft_exec *exec, const graft_args_foreach_add_Scalar *a) {
  (void)exec;
  dt_value number = dt_scalar_value(a->scalar);
  for (uint64_t i = 0; i < a->self.count; i++) {
    const graft_tensor_desc *self = a->self.items[i];
    graft_dtype dtype = self->dl.dtype;
    ref_array x = ref_read(self);
    if (!x.re) return ref_no_memory();
    bool rounds = dt_is_float(dt_real(dtype));
    ref_real re = rounds ? dt_round(dt_accumulate(dt_real(dtype)), number.re) : number.re;
    ref_real im = rounds ? dt_round(dt_accumulate(dt_real(dtype)), number.im) : number.im;
    for (int64_t j = 0; j < x.count; j++) {
      /* f64 itself, which long double would round twice */
      x.re[j] = dtype == GRAFT_F64 ? (double)x.re[j] + (double)re : x.re[j] + re;
      if (x.im) x.im[j] += im;
    }
    ref_write(a->out.items[i], &x);
    ref_free(&x);
  }
  return GRAFT_OK;
}

static void vjp_foreach_add(op_vjp *v) {
  for (uint32_t i = 0; i < v->args[0].count; i++) v->list_results[0][i] = v->g[i];
}

/* --- Adam and AdamW ---
 * _fused_adamw(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps,
 * amsgrad, maximize, grad_scale, found_inf) -> the first five lists, new. state_steps count the step to be made. */
enum { SELF, GRADS, EXP_AVGS, EXP_AVG_SQS, MAX_EXP_AVG_SQS, STATE_STEPS, LR, BETA1, BETA2, WEIGHT_DECAY, EPS, AMSGRAD,
       MAXIMIZE, GRAD_SCALE, FOUND_INF, OUT_LISTS = 5 };

static graft_status check_state(const op_call *c, int list, uint32_t i) {
  const graft_tensor *self = c->args[SELF].as.tensors[i], *t = c->args[list].as.tensors[i];
  const char *name = c->schema->args[list].name;
  if (!t) return op_error(c, "item %u of %s is absent", i, name);
  if (list == STATE_STEPS) return t->numel == 1 ? GRAFT_OK : op_error(c, "item %u of %s is not one number", i, name);
  bool same = t->ndim == self->ndim && t->dtype == self->dtype;
  for (int32_t d = 0; same && d < t->ndim; d++) same = t->sizes[d] == self->sizes[d];
  if (same) return GRAFT_OK;
  char has[160], wants[160];
  return op_error(c, "item %u of %s is %s; expected the shape and dtype of self's, %s", i, name,
                  tns_describe(t, has, sizeof has), tns_describe(self, wants, sizeof wants));
}

static graft_status check_one_number(const op_call *c, int arg) {
  const graft_tensor *t = op_tensor(c, arg);
  return !t || t->numel == 1 ? GRAFT_OK : op_error(c, "%s is %s; expected one number", c->schema->args[arg].name,
                                                   op_show(c, arg));
}

static graft_status infer_adam(op_call *c) {
  uint32_t count = c->args[SELF].count;
  c->compute = count && c->args[SELF].as.tensors[0] ? c->args[SELF].as.tensors[0]->dtype : GRAFT_DTYPE_NONE;
  for (int list = SELF; list <= STATE_STEPS; list++) {
    bool unused = list == MAX_EXP_AVG_SQS && !op_bool(c, AMSGRAD);
    if (c->args[list].count != count && !(unused && !c->args[list].count)) {
      return op_error(c, "%s has %u items; expected %u, as self", c->schema->args[list].name, c->args[list].count, count);
    }
    if (list < OUT_LISTS) op_out_list(c, list, list);
    for (uint32_t i = 0; i < c->args[list].count; i++) {
      graft_status status = list == SELF && !c->args[SELF].as.tensors[i]
                                ? op_error(c, "item %u of self is absent", i)
                                : check_state(c, list, i);
      if (status) return status;
    }
  }
  for (uint32_t i = 0; i < count; i++) {
    graft_dtype dtype = c->args[SELF].as.tensors[i]->dtype;
    if (!dt_is_float(dtype)) return op_refuse_dtype(c, SELF, "floating dtypes");
    if (dtype != c->compute) c->compute = GRAFT_DTYPE_NONE; /* each its own */
  }
  graft_status status = check_one_number(c, GRAD_SCALE);
  return status ? status : check_one_number(c, FOUND_INF);
}

/* What the two kernels and their decompositions share. */
typedef struct adam {
  double lr, beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize, decoupled; /* decoupled: AdamW's weight decay */
} adam;

/* The lists of one item. */
typedef struct adam_item {
  ref_array self, grad, avg, square, most;
} adam_item;

static void step_element(const adam *how, adam_item *t, int64_t i, ref_real scale, ref_real correction1,
                         ref_real correction2) {
  ref_real grad = t->grad.re[i] /= scale, self = t->self.re[i];
  if (how->maximize) grad = -grad;
  if (how->decoupled) self -= (ref_real)how->lr * how->weight_decay * self;
  else grad += how->weight_decay * self;
  ref_real avg = t->avg.re[i] += (grad - t->avg.re[i]) * (1 - (ref_real)how->beta1);
  ref_real square = t->square.re[i] = how->beta2 * t->square.re[i] + (1 - (ref_real)how->beta2) * grad * grad;
  if (how->amsgrad) {
    if (!(t->most.re[i] >= square || isnan(t->most.re[i]))) t->most.re[i] = square;
    square = t->most.re[i];
  }
  t->self.re[i] = self - how->lr / correction1 * avg / (sqrtl(square / correction2) + how->eps);
}

static ref_real number_at(const graft_tensor_desc *d, ref_real fallback) {
  ref_array one = ref_read(d);
  ref_real value = one.re ? one.re[0] : fallback;
  ref_free(&one);
  return value;
}

/* Adam's and AdamW's arguments are laid out alike. */
typedef graft_args_fused_adamw adam_args;
_Static_assert(sizeof(graft_args_fused_adam) == sizeof(adam_args), "one kernel for both");

static const graft_tensor_desc *item_of(graft_tensor_list list, uint64_t i) { return i < list.count ? list.items[i] : NULL; }

static graft_status adam_step(const adam *how, const adam_args *a, uint64_t i, ref_real scale, bool skip) {
  adam_item t = {ref_read(a->self.items[i]), ref_read(a->grads.items[i]), ref_read(a->exp_avgs.items[i]),
                 ref_read(a->exp_avg_sqs.items[i]), ref_read(item_of(a->max_exp_avg_sqs, i))};
  bool read = t.self.re && t.grad.re && t.avg.re && t.square.re && (t.most.re || !how->amsgrad);
  if (read) {
    ref_real step = number_at(a->state_steps.items[i], 1);
    ref_real correction1 = 1 - powl(how->beta1, step), correction2 = 1 - powl(how->beta2, step);
    for (int64_t j = 0; !skip && j < t.self.count; j++) step_element(how, &t, j, scale, correction1, correction2);
    ref_write(item_of(a->self_out, i), &t.self);
    ref_write(item_of(a->grads_out, i), &t.grad);
    ref_write(item_of(a->exp_avgs_out, i), &t.avg);
    ref_write(item_of(a->exp_avg_sqs_out, i), &t.square);
    ref_write(item_of(a->max_exp_avg_sqs_out, i), &t.most);
  }
  ref_free(&t.self);
  ref_free(&t.grad);
  ref_free(&t.avg);
  ref_free(&t.square);
  ref_free(&t.most);
  return read ? GRAFT_OK : ref_no_memory();
}

static graft_status adam_steps(const adam_args *a, bool decoupled) {
  adam how = {a->lr, a->beta1, a->beta2, a->weight_decay, a->eps, a->amsgrad != 0, a->maximize != 0, decoupled};
  ref_real scale = number_at(a->grad_scale, 1);
  bool skip = number_at(a->found_inf, 0) == 1;
  graft_status status = GRAFT_OK;
  for (uint64_t i = 0; !status && i < a->self.count; i++) status = adam_step(&how, a, i, scale, skip);
  return status;
}

static graft_status ref_fused_adamw(const graft_exec *exec, const graft_args_fused_adamw *a) {
  (void)exec;
  return adam_steps(a, true);
}

static graft_status ref_fused_adam(const graft_exec *exec, const graft_args_fused_adam *a) {
  (void)exec;
  return adam_steps((const adam_args *)(const void *)a, false);
}

/* --- the same as single ops --- */

/* 1 - beta^step as 2u / (1 + u) with u = tanh(-step log(beta) / 2): in the first steps, where beta^step is close to 1,
 * the difference itself would keep few digits. */
static graft_tensor *correction(fx *s, graft_tensor *step, double beta) {
  graft_tensor *u = fx_tanh(s, fx_muls(s, step, -log(beta) / 2));
  return fx_div(s, fx_muls(s, u, 2), fx_adds(s, u, 1));
}

/* The number that a tensor with one element holds, as rank 0. */
static graft_tensor *one_number(fx *s, graft_tensor *t, graft_dtype dtype) {
  if (s->status || !t) return NULL;
  return fx_cast(s, t->ndim ? fx_reshape(s, t, 0, (int64_t[]){0}) : t, dtype);
}

/* new receives item i of each list. */
static void step_item(fx *s, const op_call *c, const adam *how, uint32_t i, graft_tensor *skip, graft_tensor **new) {
  graft_tensor *old[OUT_LISTS] = {NULL};
  for (int list = SELF; list < OUT_LISTS; list++) {
    if (i < c->args[list].count) new[list] = old[list] = c->args[list].as.tensors[i];
  }
  graft_tensor *self = old[SELF], *scale = op_tensor(c, GRAD_SCALE);
  graft_tensor *step = one_number(s, c->args[STATE_STEPS].as.tensors[i], self->dtype);
  if (scale) new[GRADS] = fx_div(s, old[GRADS], one_number(s, scale, self->dtype));
  graft_tensor *grad = how->maximize ? fx_neg(s, new[GRADS]) : new[GRADS];
  if (how->decoupled) self = fx_muls(s, self, 1 - how->lr * how->weight_decay);
  else if (how->weight_decay != 0) grad = fx_add(s, grad, fx_muls(s, self, how->weight_decay));
  new[EXP_AVGS] = fx_lerp_Scalar(s, old[EXP_AVGS], grad, graft_scalar_float(1 - how->beta1));
  new[EXP_AVG_SQS] = fx_add(s, fx_muls(s, old[EXP_AVG_SQS], how->beta2),
                            fx_muls(s, fx_mul(s, grad, grad), 1 - how->beta2));
  graft_tensor *square = new[EXP_AVG_SQS];
  if (how->amsgrad) square = new[MAX_EXP_AVG_SQS] = fx_maximum(s, old[MAX_EXP_AVG_SQS], square);
  graft_tensor *root = fx_sqrt(s, fx_div(s, square, correction(s, step, how->beta2)));
  graft_tensor *move = fx_div(s, new[EXP_AVGS], fx_adds(s, root, how->eps));
  graft_tensor *rate = fx_muls(s, fx_reciprocal(s, correction(s, step, how->beta1)), how->lr);
  new[SELF] = fx_sub(s, self, fx_mul(s, move, rate));
  for (int list = SELF; list < OUT_LISTS; list++) {
    if (skip && new[list] != old[list]) new[list] = fx_where_self(s, skip, old[list], new[list]);
  }
}

/* A scope for each item: what lies between needs memory for one item only. */
static void step_alone(fx *s, const op_call *c, const adam *how, uint32_t i, graft_tensor *skip, graft_tensor **outs) {
  graft_tensor *new[OUT_LISTS] = {NULL};
  fx inner;
  fx_begin(&inner);
  step_item(&inner, c, how, i, skip, new);
  for (uint32_t list = SELF; list < OUT_LISTS; list++) {
    if (new[list]) outs[list * c->args[SELF].count + i] = fx_own(s, fx_keep(&inner, new[list]));
  }
  fx_fail(s, fx_end(&inner));
}

static void decompose_steps(fx *s, const op_call *c, graft_tensor **outs, bool decoupled) {
  adam how = {op_float(c, LR), op_float(c, BETA1), op_float(c, BETA2), op_float(c, WEIGHT_DECAY), op_float(c, EPS),
              op_bool(c, AMSGRAD), op_bool(c, MAXIMIZE), decoupled};
  graft_tensor *found = op_tensor(c, FOUND_INF), *skip = NULL;
  if (found) skip = fx_eq_Scalar(s, one_number(s, found, found->dtype), graft_scalar_float(1));
  for (uint32_t i = 0; i < c->args[SELF].count && !s->status; i++) step_alone(s, c, &how, i, skip, outs);
}

static void decompose_adamw(fx *s, const op_call *c, graft_tensor **outs) { decompose_steps(s, c, outs, true); }
static void decompose_adam(fx *s, const op_call *c, graft_tensor **outs) { decompose_steps(s, c, outs, false); }

/* --- _foreach_norm.Scalar(self, ord, dtype) --- */

static graft_status norm_item(const op_call *c, uint32_t ret, uint32_t item, graft_meta *meta) {
  (void)ret;
  const graft_value args[] = {fx_tensor(c->args[0].as.tensors[item]), c->args[1], {0}, {0}, c->args[2]};
  uint32_t count;
  return graft_infer(GRAFT_OP_LINALG_VECTOR_NORM, args, 5, meta, 1, &count);
}

static graft_status infer_norms(op_call *c) {
  graft_status status = check_lists(c);
  op_out_list(c, 0, 0);
  for (uint32_t i = 0; !status && i < c->args[0].count; i++) { /* a slot takes tensors that keep their dtype */
    graft_meta meta;
    status = norm_item(c, 0, i, &meta);
    if (!status && meta.dtype != c->args[0].as.tensors[i]->dtype) c->decompose_only = true;
  }
  return status;
}

static void decompose_norms(fx *s, const op_call *c, graft_tensor **outs) {
  for (uint32_t i = 0; i < c->args[0].count; i++) {
    outs[i] = fx_linalg_vector_norm(s, c->args[0].as.tensors[i], op_scalar(c, 1), NULL, 0, false, op_dtype(c, 2));
  }
}

/* --- _amp_update_scale(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval)
 * --- Less after a step that was skipped; more after so many that were not; and how many those are by now. */

static graft_status infer_update_scale(op_call *c) {
  static const graft_dtype dtypes[] = {GRAFT_F32, GRAFT_I32, GRAFT_F32};
  for (int i = 0; i < 3; i++) {
    const graft_tensor *t = op_tensor(c, i);
    if (t->numel != 1) return op_error(c, "%s is %s; expected one number", c->schema->args[i].name, op_show(c, i));
    bool oracle = dtypes[i] == GRAFT_F32 && t->dtype == GRAFT_WIDE;
    if (t->dtype != dtypes[i] && !oracle) return op_refuse_dtype(c, i, graft_dtype_name(dtypes[i]));
  }
  for (int i = 0; i < 2; i++) op_out_like(c, i, op_tensor(c, i)->dtype, op_tensor(c, i));
  return GRAFT_OK;
}

static graft_status ref_amp_update_scale(const graft_exec *exec, const graft_args_amp_update_scale *a) {
  (void)exec;
  ref_array scale = ref_read(a->self), tracker = ref_read(a->growth_tracker);
  graft_status status = scale.re && tracker.re ? GRAFT_OK : ref_no_memory();
  bool skipped = number_at(a->found_inf, 0) != 0;
  if (!status) {
    ref_real steps = skipped ? 0 : tracker.re[0] + 1, grown = scale.re[0] * a->scale_growth_factor;
    if (skipped) scale.re[0] *= a->scale_backoff_factor;
    if (!skipped && steps == (ref_real)a->growth_interval) {
      if (isfinite((double)dt_round(GRAFT_F32, grown))) scale.re[0] = grown;
      steps = 0;
    }
    tracker.re[0] = steps;
    ref_write(a->out0, &scale);
    ref_write(a->growth_tracker_out, &tracker);
  }
  ref_free(&scale);
  ref_free(&tracker);
  return status;
}

static graft_tensor *either(fx *s, graft_tensor *condition, graft_value yes, graft_value no) {
  graft_tensor *out;
  fx_call(s, GRAFT_OP_WHERE_SELF, (graft_value[]){fx_tensor(condition), yes, no}, 3, &out, 1);
  return out;
}

static void decompose_update_scale(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *scale = op_tensor(c, 0), *tracker = op_tensor(c, 1), *found = op_tensor(c, 2);
  graft_tensor *skipped = fx_reshape(s, fx_ne_Scalar(s, found, graft_scalar_int(0)), 0, (int64_t[]){0});
  graft_tensor *steps = fx_add_Scalar(s, tracker, graft_scalar_int(1), graft_scalar_int(1));
  graft_tensor *due = fx_eq_Scalar(s, steps, graft_scalar_int(op_int(c, 5)));
  graft_tensor *grown = fx_muls(s, scale, op_float(c, 3));
  graft_tensor *finite = fx_lt_Scalar(s, fx_abs(s, grown), graft_scalar_float(INFINITY));
  graft_tensor *grows =
      fx_logical_and(s, fx_reshape(s, due, 0, (int64_t[]){0}), fx_reshape(s, finite, 0, (int64_t[]){0}));
  graft_tensor *kept = either(s, grows, fx_tensor(grown), fx_tensor(scale));
  outs[0] = either(s, skipped, fx_tensor(fx_muls(s, scale, op_float(c, 4))), fx_tensor(kept));
  const graft_value zero = fx_number(graft_scalar_int(0));
  outs[1] = either(s, skipped, zero, fx_tensor(either(s, due, zero, fx_tensor(steps))));
}

#define EACH(name, roles_, item)                                                                   \
  {.op_id = GRAFT_OP_FOREACH_##name, .roles = roles_, .infer = infer_each, .decompose = decompose_each, \
   .extra = GRAFT_OP_##item, .list_item = each_item}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_FUSED_ADAMW,
     .roles = "vvvvvkkk",
     .infer = infer_adam,
     .decompose = decompose_adamw,
     .flags = OP_READS_FIRST,
     .reference = OP_REF(fused_adamw)},
    {.op_id = GRAFT_OP_FUSED_ADAM,
     .roles = "vvvvvkkk",
     .infer = infer_adam,
     .decompose = decompose_adam,
     .flags = OP_READS_FIRST,
     .reference = OP_REF(fused_adam)},
    {.op_id = GRAFT_OP_FOREACH_ADD_SCALAR,
     .roles = "k",
     .infer = infer_each,
     .decompose = decompose_each,
     .vjp = vjp_foreach_add,
     .flags = OP_READS_FIRST,
     .reference = OP_REF(foreach_add_Scalar),
     .extra = GRAFT_OP_ADD_TENSOR,
     .list_item = each_item},
    EACH(ABS, "k", ABS),
    EACH(ADD_LIST, "kk", ADD_TENSOR),
    EACH(ADD_SCALARLIST, "k", ADD_TENSOR),
    EACH(ADDCDIV_SCALAR, "kkk", ADDCDIV),
    EACH(ADDCDIV_SCALARLIST, "kkk", ADDCDIV),
    EACH(ADDCMUL_SCALAR, "kkk", ADDCMUL),
    EACH(DIV_LIST, "kk", DIV_TENSOR),
    EACH(DIV_SCALAR, "k", DIV_TENSOR),
    EACH(DIV_SCALARLIST, "k", DIV_TENSOR),
    EACH(DIV_TENSOR, "kk", DIV_TENSOR),
    EACH(LERP_LIST, "kkk", LERP_TENSOR),
    EACH(LERP_SCALAR, "kk", LERP_SCALAR),
    EACH(MAXIMUM_LIST, "kk", MAXIMUM),
    EACH(MUL_LIST, "kk", MUL_TENSOR),
    EACH(MUL_SCALAR, "k", MUL_TENSOR),
    EACH(MUL_SCALARLIST, "k", MUL_TENSOR),
    EACH(MUL_TENSOR, "kk", MUL_TENSOR),
    EACH(NEG, "k", NEG),
    EACH(POW_SCALARANDTENSOR, "k", POW_SCALAR),
    EACH(RECIPROCAL, "k", RECIPROCAL),
    EACH(RSQRT, "k", RSQRT),
    EACH(SIGN, "k", SIGN),
    EACH(SQRT, "k", SQRT),
    EACH(SUB_LIST, "kk", SUB_TENSOR),
    {.op_id = GRAFT_OP_FOREACH_NORM_SCALAR,
     .roles = "k",
     .infer = infer_norms,
     .decompose = decompose_norms,
     .list_item = norm_item},
    {.op_id = GRAFT_OP_AMP_UPDATE_SCALE,
     .roles = "kkk",
     .infer = infer_update_scale,
     .decompose = decompose_update_scale,
     .flags = OP_READS_FIRST,
     .reference = OP_REF(amp_update_scale)},
};
OP_FAMILY_END(optimizer, defs)
