/* Losses that ask the right classes of a row to score above the others by a margin. A row of self is the scores of its
 * classes; self is [C], [N,C] or a number, which is one row of one class. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"
#include "ops/loss/loss.h"

/* --- rules --- */

static int64_t classes_in(const graft_tensor *self) {
  return self->ndim ? self->sizes[self->ndim - 1] : 1;
}
static int64_t rows_in(const graft_tensor *self) {
  return self->ndim == 2 ? self->sizes[0] : 1;
}

static graft_status check_scores(op_call *c, int at, int target_at) {
  const graft_tensor *self = op_tensor(c, at);
  graft_status status = op_check_floating(c, at);
  if (status) return status;
  if (self->ndim > 2 || !classes_in(self)) {
    return op_refuse(c, at, "rank 2 at most, empty in the batch at most");
  }
  c->compute = self->dtype;
  return op_check_dtype(c, target_at, GRAFT_I64);
}

static double number_of(graft_scalar x) {
  return (double)dt_scalar_value(&x).re;
}

/* The loss itself, with a row's each where nothing is reduced. */
static void out_loss(op_call *c, const graft_tensor *self, bool each) {
  int64_t rows = rows_in(self);
  op_out(c, OUT, self->dtype, each, &rows);
}

/* From argument `at` on stand those of multi_margin_loss. */
static graft_status check_margin(op_call *c, int at) {
  const in_multi_margin_loss in = in_multi_margin_loss_of(&c->args[at]);
  const graft_tensor *self = in.self, *target = in.target, *weight = in.weight;
  graft_status status = check_reduction(c, at + ARG_multi_margin_loss_reduction);
  if (!status) status = check_scores(c, at, at + ARG_multi_margin_loss_target);
  if (status) return status;
  double p = number_of(in.p);
  if (p != 1 && p != 2) return op_error(c, "p is %g; expected 1 or 2", p);
  if (target->ndim > 1 || target->numel != rows_in(self))
    return op_error(c, "expected one target for each row of self (%s)", op_show_tensors(c));
  status = op_check_same_dtype(c, at, at + ARG_multi_margin_loss_weight);
  if (status) return status;
  if (weight && (weight->ndim > 1 || weight->numel != classes_in(self))) {
    return op_error(c, "expected one weight for each of the %lld classes (%s)", (long long)classes_in(self),
                    op_show_tensors(c));
  }
  return GRAFT_OK;
}

/* A cotangent is one number, or one a row. */
static graft_status check_cotangent(op_call *c, bool each) {
  const graft_tensor *g = op_tensor(c, ARG_multi_margin_loss_backward_grad_output),
                     *self = op_tensor(c, ARG_multi_margin_loss_backward_self);
  bool fits = each && g->ndim ? g->ndim == 1 && g->numel == rows_in(self) : g->numel == 1;
  if (!fits) return op_error(c, "expected a grad_output of the loss's shape (%s)", op_show_tensors(c));
  op_out(c, OUT, self->dtype, self->ndim, self->sizes);
  return op_check_same_dtype(c, ARG_multi_margin_loss_backward_grad_output, ARG_multi_margin_loss_backward_self);
}

static graft_status infer_multi_margin(op_call *c) {
  const in_multi_margin_loss in = in_multi_margin_loss_of(c->args);
  graft_status status = check_margin(c, ARG_multi_margin_loss_self);
  if (!status) out_loss(c, in.self, in.reduction == LOSS_NONE && in.target->ndim);
  return status;
}

static graft_status infer_multi_margin_backward(op_call *c) {
  graft_status status = check_margin(c, ARG_multi_margin_loss_backward_self);
  return status ? status : check_cotangent(c, op_int(c, ARG_multi_margin_loss_backward_reduction) == LOSS_NONE);
}

static graft_status check_labels(op_call *c, int at) {
  const in_multilabel_margin_loss_forward in = in_multilabel_margin_loss_forward_of(&c->args[at]);
  const graft_tensor *self = in.self, *target = in.target;
  graft_status status = check_reduction(c, at + ARG_multilabel_margin_loss_forward_reduction);
  if (!status) status = check_scores(c, at, at + ARG_multilabel_margin_loss_forward_target);
  if (status) return status;
  bool same = self->ndim > 1 ? tns_same_sizes(self, target) : target->ndim <= 1 && target->numel == self->numel;
  return same ? GRAFT_OK : op_error(c, "target has not self's shape (%s)", op_show_tensors(c));
}

static graft_status infer_multilabel(op_call *c) {
  const in_multilabel_margin_loss_forward in = in_multilabel_margin_loss_forward_of(c->args);
  graft_status status = check_labels(c, ARG_multilabel_margin_loss_forward_self);
  if (status) return status;
  out_loss(c, in.self, in.reduction == LOSS_NONE && in.self->ndim == 2);
  op_out(c, OUT_multilabel_margin_loss_forward_is_target, in.self->dtype, in.target->ndim, in.target->sizes);
  return GRAFT_OK;
}

static graft_status infer_multilabel_backward(op_call *c) {
  const in_multilabel_margin_loss_backward in = in_multilabel_margin_loss_backward_of(c->args);
  graft_status status = check_labels(c, ARG_multilabel_margin_loss_backward_self);
  if (status) return status;
  if (in.is_target->dtype != in.self->dtype || !tns_same_sizes(in.is_target, in.target)) {
    return op_refuse(c, ARG_multilabel_margin_loss_backward_is_target, "%s in target's shape",
                     graft_dtype_name(in.self->dtype));
  }
  return check_cotangent(c, in.reduction == LOSS_NONE && in.self->ndim == 2);
}

/* --- kernels --- */

typedef struct rows {
  int64_t count, classes, reduction;
  graft_dtype dtype;
  ref_array x, target, extra, grad, out; /* extra: weight or is_target; grad and out: backward, the losses else */
} rows;

static graft_status rows_begin(rows *r, const graft_tensor_desc *self, const graft_tensor_desc *target,
                               const graft_tensor_desc *extra, const graft_tensor_desc *grad, int64_t reduction) {
  const graft_dl_tensor *t = &self->dl;
  *r = (rows){.count = t->ndim == 2 ? t->shape[0] : 1,
              .classes = t->ndim ? t->shape[t->ndim - 1] : 1,
              .reduction = reduction,
              .dtype = t->dtype};
  r->x = ref_read(self);
  r->target = ref_read(target);
  r->extra = ref_read(extra);
  r->grad = ref_read(grad);
  r->out = ref_new(grad ? r->x.count : r->count, false);
  bool whole = r->x.re && r->target.re && (!extra || r->extra.re) && (!grad || r->grad.re) && r->out.re;
  return whole ? GRAFT_OK : ref_no_memory();
}

static void rows_end(rows *r) {
  ref_free(&r->x);
  ref_free(&r->target);
  ref_free(&r->extra);
  ref_free(&r->grad);
  ref_free(&r->out);
}

/* What a row's slopes are scaled by: its cotangent and the divisors of the loss. */
static ref_real scale_of(const rows *r, int64_t row) {
  ref_real g = r->grad.re[r->grad.count > 1 ? row : 0] / (ref_real)r->classes;
  return r->reduction == LOSS_MEAN ? g / (ref_real)r->count : g;
}

static void write_losses(const rows *r, const graft_tensor_desc *out) {
  if (out->dl.ndim || r->reduction == LOSS_NONE) return ref_write(out, &r->out);
  ref_real sum = ref_sum(r->dtype, r->out.re, 1, r->count);
  ref_write(out, &(ref_array){1, &(ref_real){r->reduction == LOSS_MEAN ? sum / (ref_real)r->count : sum}, NULL});
}

static graft_status class_at(const rows *r, int64_t at, int64_t least, int64_t *class) {
  *class = (int64_t)r->target.re[at];
  if (*class >= least && *class < r->classes) return GRAFT_OK;
  return err_set(GRAFT_OUT_OF_RANGE, "target[%lld] is %lld; expected %lld to %lld", (long long)at, (long long)*class,
                 (long long)least, (long long)r->classes - 1);
}

/* One row of multi_margin_loss: its loss, or with a cotangent its slopes. */
static graft_status margin_row(rows *r, int64_t row, bool squared, ref_real margin) {
  int64_t class;
  graft_status status = class_at(r, row, 0, &class);
  if (status) return status;
  const ref_real *x = r->x.re + row * r->classes;
  ref_real weight = r->extra.re ? r->extra.re[class] : 1, sum = 0;
  ref_real *to = r->grad.re ? r->out.re + row * r->classes : NULL;
  for (int64_t d = 0; d < r->classes; d++) {
    ref_real z = margin - x[class] + x[d];
    if (d == class || !(z > 0)) continue;
    ref_real value = to ? scale_of(r, row) * (squared ? 2 * z : 1) : squared ? z * z : z;
    if (to) to[d] = value * weight;
    sum += value * weight;
  }
  if (to)
    to[class] = -sum;
  else
    r->out.re[row] = sum / (ref_real)r->classes;
  return GRAFT_OK;
}

graft_status kernel_multi_margin_loss(const graft_exec *exec, const graft_args_multi_margin_loss *a) {
  __attribute__((cleanup(rows_end))) rows r;
  graft_status status = rows_begin(&r, a->self, a->target, a->weight, NULL, a->reduction);
  for (int64_t i = 0; !status && i < r.count; i++)
    status = margin_row(&r, i, ref_scalar(a->p, 1) == 2, ref_scalar(a->margin, 1));
  if (!status) write_losses(&r, a->out);
  return status;
}

graft_status kernel_multi_margin_loss_backward(const graft_exec *exec, const graft_args_multi_margin_loss_backward *a) {
  __attribute__((cleanup(rows_end))) rows r;
  graft_status status = rows_begin(&r, a->self, a->target, a->weight, a->grad_output, a->reduction);
  for (int64_t i = 0; !status && i < r.count; i++)
    status = margin_row(&r, i, ref_scalar(a->p, 1) == 2, ref_scalar(a->margin, 1));
  if (!status) ref_write(a->out, &r.out);
  return status;
}

/* One row of multilabel_margin_loss: its classes are those up to the first negative one; `is_target` marks them. */
static graft_status label_row(rows *r, int64_t row, const ref_real *is_target) {
  const ref_real *x = r->x.re + row * r->classes;
  ref_real *to = r->grad.re ? r->out.re + row * r->classes : NULL, sum = 0;
  for (int64_t j = 0; j < r->classes; j++) {
    int64_t class;
    graft_status status = class_at(r, row * r->classes + j, -1, &class);
    if (status) return status;
    if (class < 0) break;
    for (int64_t d = 0; d < r->classes; d++) {
      ref_real z = 1 - x[class] + x[d];
      if (is_target[d] != 0 || !(z > 0)) continue;
      if (to) to[class] -= scale_of(r, row);
      if (to) to[d] += scale_of(r, row);
      sum += z;
    }
  }
  if (!to) r->out.re[row] = sum / (ref_real)r->classes;
  return GRAFT_OK;
}

static graft_status mark_targets(const rows *r, int64_t row, ref_real *is_target) {
  for (int64_t j = 0; j < r->classes; j++) {
    int64_t class;
    graft_status status = class_at(r, row * r->classes + j, -1, &class);
    if (status || class < 0) return status;
    is_target[class] = 1;
  }
  return GRAFT_OK;
}

graft_status kernel_multilabel_margin_loss_forward(const graft_exec *exec,
                                                   const graft_args_multilabel_margin_loss_forward *a) {
  __attribute__((cleanup(rows_end))) rows r;
  graft_status status = rows_begin(&r, a->self, a->target, NULL, NULL, a->reduction);
  REF_OWNED ref_array is_target = ref_new(r.x.count, false);
  if (!status && !is_target.re) status = ref_no_memory();
  for (int64_t i = 0; !status && i < r.count; i++) {
    status = mark_targets(&r, i, is_target.re + i * r.classes);
    if (!status) status = label_row(&r, i, is_target.re + i * r.classes);
  }
  if (!status) {
    write_losses(&r, a->output);
    ref_write(a->is_target, &is_target);
  }
  return status;
}

graft_status kernel_multilabel_margin_loss_backward(const graft_exec *exec,
                                                    const graft_args_multilabel_margin_loss_backward *a) {
  __attribute__((cleanup(rows_end))) rows r;
  graft_status status = rows_begin(&r, a->self, a->target, a->is_target, a->grad_output, a->reduction);
  for (int64_t i = 0; !status && i < r.count; i++) status = label_row(&r, i, r.extra.re + i * r.classes);
  if (!status) ref_write(a->out, &r.out);
  return status;
}

/* --- decompositions --- */

static graft_tensor *matrix(fx *s, graft_tensor *t, const graft_tensor *self) {
  return fx_reshape(s, t, 2, (int64_t[]){rows_in(self), classes_in(self)});
}
static graft_tensor *column(fx *s, graft_tensor *t, const graft_tensor *self) {
  return fx_reshape(s, t, 2, (int64_t[]){rows_in(self), 1});
}

static graft_tensor *positive(fx *s, graft_tensor *z, graft_dtype dtype) {
  return fx_cast(s, fx_gt_Scalar(s, z, graft_scalar_int(0)), dtype);
}

/* Losses of rows [N] to the result, its divisor included. */
static graft_tensor *reduced(fx *s, const op_call *c, graft_tensor *each, const graft_tensor *self, int64_t reduction) {
  each = fx_muls(s, each, 1 / (double)classes_in(self));
  if (reduction == LOSS_MEAN) return fx_mean_dim(s, each, NULL, 0, false, GRAFT_DTYPE_NONE);
  return reduction == LOSS_SUM ? fx_sum(s, each, 1, false) : fx_reshape(s, each, c->out[OUT].ndim, c->out[OUT].sizes);
}

/* The cotangent as a column or one number, with the loss's divisors. */
static graft_tensor *cotangent(fx *s, graft_tensor *g, const graft_tensor *self, int64_t reduction) {
  double divisor = (double)classes_in(self) * (reduction == LOSS_MEAN ? (double)rows_in(self) : 1);
  return fx_muls(s, g->numel > 1 ? column(s, g, self) : fx_reshape(s, g, 0, NULL), 1 / divisor);
}

/* How far the other classes reach above the class less the margin, [N,C], -1 at the class itself. *weight is a column,
 * NULL without. */
static graft_tensor *reach(fx *s, const in_multi_margin_loss *in, graft_tensor **class, graft_tensor **weight) {
  graft_tensor *self = in->self, *x = matrix(s, self, self), *weights = in->weight;
  *class = column(s, in->target, self);
  int64_t classes = classes_in(self), rows = rows_in(self);
  graft_tensor *own = fx_gather(s, x, 1, *class, false);
  graft_tensor *z = fx_adds(s, fx_sub(s, x, own), number_of(in->margin));
  *weight = NULL;
  if (weights) {
    graft_tensor *picked = fx_index_select(s, fx_reshape(s, weights, 1, &classes), 0, fx_reshape(s, *class, 1, &rows));
    *weight = column(s, picked, self);
  }
  return fx_scatter_value(s, z, 1, *class, graft_scalar_int(-1));
}

static void decompose_multi_margin(fx *s, const op_call *c, graft_tensor **outs) {
  const in_multi_margin_loss in = in_multi_margin_loss_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *class, *weight, *z = fx_relu(s, reach(s, &in, &class, &weight));
  if (number_of(in.p) == 2) z = fx_mul(s, z, z);
  if (weight) z = fx_mul(s, z, weight);
  outs[OUT] = reduced(s, c, fx_sum(s, z, 2, false), in.self, in.reduction);
}

static void decompose_multi_margin_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_multi_margin_loss in = in_multi_margin_loss_of(&c->args[ARG_multi_margin_loss_backward_self]);
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *class, *weight, *z = reach(s, &in, &class, &weight);
  graft_tensor *slope = number_of(in.p) == 2 ? fx_muls(s, fx_relu(s, z), 2) : positive(s, z, in.self->dtype);
  if (weight) slope = fx_mul(s, slope, weight);
  slope =
      fx_mul(s, slope, cotangent(s, op_tensor(c, ARG_multi_margin_loss_backward_grad_output), in.self, in.reduction));
  graft_tensor *own = fx_neg(s, fx_sum(s, slope, 2, true));
  outs[OUT] = fx_reshape(s, fx_scatter_src(s, slope, 1, class, own), in.self->ndim, in.self->sizes);
}

/* For each row its classes [N,C] (0 where the list has ended), and 1 where it has not. Only -1 ends a list: another
 * negative is a class that who looks for it refuses. */
static graft_tensor *labels(fx *s, graft_tensor *self, graft_tensor *target, graft_tensor **listed) {
  graft_tensor *t = matrix(s, target, self), *in_list = fx_cast(s, fx_ne_Scalar(s, t, graft_scalar_int(-1)), GRAFT_I64);
  graft_tensor *run = fx_cumprod(s, in_list, 1, GRAFT_DTYPE_NONE);
  *listed = s->status ? NULL : fx_cast(s, run, self->dtype);
  return fx_mul(s, t, run);
}

/* 1 - x[class] + x[d] for the listed class j and the other class d, [N,C,C], 0 where they are no such pair. */
static graft_tensor *pairs(fx *s, graft_tensor *self, graft_tensor *class, graft_tensor *listed,
                           graft_tensor *is_target) {
  graft_tensor *x = matrix(s, self, self);
  graft_tensor *own = fx_adds(s, fx_neg(s, fx_gather(s, x, 1, class, false)), 1);
  graft_tensor *z = fx_add(s, fx_unsqueeze(s, own, 2), fx_unsqueeze(s, x, 1));
  graft_tensor *other = fx_cast(s, fx_eq_Scalar(s, matrix(s, is_target, self), graft_scalar_int(0)), self->dtype);
  return fx_mul(s, fx_mul(s, fx_relu(s, z), fx_unsqueeze(s, listed, 2)), fx_unsqueeze(s, other, 1));
}

static void decompose_multilabel(fx *s, const op_call *c, graft_tensor **outs) {
  const in_multilabel_margin_loss_forward in = in_multilabel_margin_loss_forward_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *listed, *class = labels(s, in.self, in.target, &listed);
  if (s->status) return;
  graft_tensor *counts = fx_scatter_add(s, fx_zeros_like(s, listed), 1, class, listed);
  outs[OUT_multilabel_margin_loss_forward_is_target] =
      fx_reshape(s, positive(s, counts, in.self->dtype), in.target->ndim, in.target->sizes);
  graft_tensor *each =
      fx_sum(s, pairs(s, in.self, class, listed, outs[OUT_multilabel_margin_loss_forward_is_target]), 6, false);
  outs[OUT_multilabel_margin_loss_forward_output] = reduced(s, c, each, in.self, in.reduction);
}

static void decompose_multilabel_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_multilabel_margin_loss_backward in = in_multilabel_margin_loss_backward_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *listed, *class = labels(s, in.self, in.target, &listed);
  graft_tensor *counted = positive(s, pairs(s, in.self, class, listed, in.is_target), in.self->dtype);
  graft_tensor *against = fx_sum(s, counted, 2, false), *own = fx_sum(s, counted, 4, false);
  graft_tensor *slope = fx_scatter_add(s, against, 1, class, fx_neg(s, own));
  slope = fx_mul(s, slope, cotangent(s, in.grad_output, in.self, in.reduction));
  outs[OUT] = fx_reshape(s, slope, in.self->ndim, in.self->sizes);
}

/* --- gradients: first ones only, as in PyTorch --- */

static void vjp_multi_margin(op_vjp *v) {
  const in_multi_margin_loss in = in_multi_margin_loss_of(v->args);
  if (!vjp_needs(v, ARG_multi_margin_loss_self)) return;
  v->results[ARG_multi_margin_loss_self] =
      fx_multi_margin_loss_backward(v->s, v->g[OUT], in.self, in.target, in.p, in.margin, in.weight, in.reduction);
}

static void vjp_multilabel(op_vjp *v) {
  const in_multilabel_margin_loss_forward in = in_multilabel_margin_loss_forward_of(v->args);
  if (!v->g[OUT_multilabel_margin_loss_forward_output] || !vjp_needs(v, ARG_multilabel_margin_loss_forward_self))
    return;
  v->results[ARG_multilabel_margin_loss_forward_self] =
      fx_multilabel_margin_loss_backward(v->s, v->g[OUT_multilabel_margin_loss_forward_output], in.self, in.target,
                                         in.reduction, v->outs[OUT_multilabel_margin_loss_forward_is_target]);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(multi_margin_loss),
     .roles = "vkv",
     .infer = infer_multi_margin,
     .decompose = decompose_multi_margin,
     .vjp = vjp_multi_margin,
     .saves = OP_SAVE_ARGS(multi_margin_loss, self, target, weight)},
    {.op_id = OP_WITH_KERNEL(multi_margin_loss_backward),
     .roles = "vvkv",
     .infer = infer_multi_margin_backward,
     .decompose = decompose_multi_margin_backward},
    {.op_id = OP_WITH_KERNEL(multilabel_margin_loss_forward),
     .roles = "vk",
     .infer = infer_multilabel,
     .decompose = decompose_multilabel,
     .vjp = vjp_multilabel,
     .saves = OP_SAVE_ARGS(multilabel_margin_loss_forward, self, target) |
              OP_SAVE_OUT(multilabel_margin_loss_forward, is_target),
     .without_grad = OP_OUT_BIT(multilabel_margin_loss_forward, is_target)},
    {.op_id = OP_WITH_KERNEL(multilabel_margin_loss_backward),
     .roles = "vvkv",
     .infer = infer_multilabel_backward,
     .decompose = decompose_multilabel_backward},
};
OP_TABLE(loss_margin, defs)
