/* Negative log likelihood. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"
#include "ops/loss/loss.h"

/* --- negative log likelihood: rules --- */

/* self [N,C,H,W] and target [N,H,W] (nll_loss2d). */
static bool is_plane(const op_call *c) {
  return c->schema->id == GRAFT_OP_NLL_LOSS2D_FORWARD || c->schema->id == GRAFT_OP_NLL_LOSS2D_BACKWARD;
}

static graft_status check_targets(const op_call *c, const graft_tensor *self, const graft_tensor *target, int at) {
  bool one = self->ndim == 1, fits;
  if (is_plane(c)) {
    if (self->ndim != 4) return op_refuse(c, at, "[N,C,H,W]");
    fits = target->ndim == 3 && target->sizes[0] == self->sizes[0] && target->sizes[1] == self->sizes[2] &&
           target->sizes[2] == self->sizes[3];
  } else {
    if (self->ndim < 1 || self->ndim > 2) return op_refuse(c, at, "[C] or [N,C]");
    fits = one ? target->numel == 1 && target->ndim <= 1 : target->ndim == 1 && target->sizes[0] == self->sizes[0];
  }
  return fits ? GRAFT_OK : op_error(c, "expected one target for each row of self (%s)", op_show_tensors(c));
}

static int32_t class_dim(const graft_tensor *self) {
  return self->ndim > 1;
}

/* self [N,C] or [C], target [N] or []; the weights are one a class. `at` is where self stands, `of` target. */
static graft_status check_nll(op_call *c, int at, int of, const graft_tensor *weight, bool exact_weight) {
  const graft_tensor *self = op_tensor(c, at), *target = op_tensor(c, of);
  graft_status status = op_check_floating(c, at);
  if (status) return status;
  bool byte = target->dtype == GRAFT_U8 && !is_plane(c);
  if (target->dtype != GRAFT_I64 && !byte) return op_refuse(c, of, is_plane(c) ? "i64" : "i64 or u8");
  status = check_targets(c, self, target, at);
  if (status) return status;
  if (weight && weight->dtype != self->dtype)
    return op_error(c, "self and weight differ in dtype (%s)", op_show_tensors(c));
  int64_t classes = self->sizes[class_dim(self)];
  if (weight && (weight->numel != classes || (exact_weight && weight->ndim != 1))) {
    return op_error(c, "expected one weight for each of the %lld classes (%s)", (long long)classes, op_show_tensors(c));
  }
  c->compute = self->dtype;
  return GRAFT_OK;
}

static graft_status infer_nll_forward(op_call *c) {
  const in_nll_loss_forward in = in_nll_loss_forward_of(c->args);
  graft_status status = check_reduction(c, ARG_nll_loss_forward_reduction);
  if (!status) status = check_nll(c, ARG_nll_loss_forward_self, ARG_nll_loss_forward_target, in.weight, true);
  if (status) return status;
  const graft_tensor *rows = in.reduction == LOSS_NONE && in.self->ndim > 1 ? in.target : NULL;
  op_out(c, OUT_nll_loss_forward_output, in.self->dtype, rows ? rows->ndim : 0, rows ? rows->sizes : NULL);
  op_out(c, OUT_nll_loss_forward_total_weight, in.self->dtype, 0, NULL);
  return GRAFT_OK;
}

static graft_status infer_nll_backward(op_call *c) {
  const in_nll_loss_backward in = in_nll_loss_backward_of(c->args);
  const graft_tensor *g = in.grad_output, *total = in.total_weight;
  graft_status status = check_reduction(c, ARG_nll_loss_backward_reduction);
  if (!status) status = check_nll(c, ARG_nll_loss_backward_self, ARG_nll_loss_backward_target, in.weight, false);
  if (status) return status;
  if (g->dtype != in.self->dtype) return op_error(c, "grad_output and self differ in dtype (%s)", op_show_tensors(c));
  if (in.self->ndim == 1 && in.target->ndim) return op_refuse(c, ARG_nll_loss_backward_target, "one number, of rank 0");
  bool rows = in.reduction == LOSS_NONE && in.self->ndim > 1;
  bool fits = rows ? tns_same_sizes(g, in.target) : g->ndim <= 1 && g->numel == 1;
  if (!fits) return op_error(c, "expected a grad_output of the loss's shape (%s)", op_show_tensors(c));
  if (in.reduction != LOSS_NONE && total->dtype != in.self->dtype)
    return op_error(c, "total_weight and self differ in dtype (%s)", op_show_tensors(c));
  if (total->numel != 1) return op_error(c, "expected one number as total_weight (%s)", op_show_tensors(c));
  op_out(c, OUT, in.self->dtype, in.self->ndim, in.self->sizes);
  return GRAFT_OK;
}

/* --- negative log likelihood: kernels --- */

typedef struct nll {
  int64_t rows, classes, inner, ignored; /* self is outer x classes x inner, rows = outer x inner */
  ref_array target, weight;              /* weight.re NULL: all 1 */
} nll;

static graft_status nll_begin(nll *n, const graft_tensor_desc *self, const graft_tensor_desc *target,
                              const graft_tensor_desc *weight, int64_t ignored) {
  ref_split s = ref_split_at(self, self->dl.ndim > 1);
  *n = (nll){s.outer * s.inner, s.size, s.inner, ignored, ref_read(target), ref_read(weight)};
  return n->target.re && (!weight || n->weight.re) ? GRAFT_OK : ref_no_memory();
}

/* Where self has the value of a row's class. */
static int64_t nll_at(const nll *n, int64_t row, int64_t class) {
  return (row / n->inner * n->classes + class) * n->inner + row % n->inner;
}

static void nll_end(nll *n) {
  ref_free(&n->target);
  ref_free(&n->weight);
}

/* The class of a row, -1 where it is ignored, and its weight. */
static graft_status nll_row(const nll *n, int64_t row, int64_t *class, ref_real *weight) {
  int64_t target = (int64_t)n->target.re[row];
  *class = -1;
  if (target == n->ignored) return GRAFT_OK;
  if (target < 0 || target >= n->classes) {
    return err_set(GRAFT_OUT_OF_RANGE, "target[%lld] is %lld; expected 0 to %lld, or ignore_index (%lld)",
                   (long long)row, (long long)target, (long long)n->classes - 1, (long long)n->ignored);
  }
  *class = target;
  *weight = n->weight.re ? n->weight.re[target] : 1;
  return GRAFT_OK;
}

static void nll_reduce(const graft_args_nll_loss_forward *a, const ref_array *losses, const ref_array *weights) {
  graft_dtype dtype = a->self->dl.dtype;
  bool rows = a->output->dl.ndim > 0;
  ref_real sum = ref_sum(dtype, losses->re, 1, losses->count), total = ref_sum(dtype, weights->re, 1, weights->count);
  ref_real loss = a->reduction == LOSS_MEAN ? sum / total : sum, zero = 0;
  ref_write(a->output, rows ? losses : &(ref_array){1, &loss, NULL});
  ref_write(a->total_weight, &(ref_array){1, rows ? &zero : &total, NULL});
}

graft_status kernel_nll_loss_forward(const graft_exec *exec, const graft_args_nll_loss_forward *a) {
  __attribute__((cleanup(nll_end))) nll n;
  graft_status status = nll_begin(&n, a->self, a->target, a->weight, a->ignore_index);
  REF_OWNED ref_array x = ref_read(a->self), losses = ref_new(n.rows, false), weights = ref_new(n.rows, false);
  if (!x.re || !losses.re || !weights.re) status = ref_no_memory();
  for (int64_t i = 0; !status && i < n.rows; i++) {
    int64_t class;
    status = nll_row(&n, i, &class, &weights.re[i]);
    if (!status && class >= 0) losses.re[i] = -x.re[nll_at(&n, i, class)] * weights.re[i];
  }
  if (!status) nll_reduce(a, &losses, &weights);
  return status;
}

graft_status kernel_nll_loss_backward(const graft_exec *exec, const graft_args_nll_loss_backward *a) {
  __attribute__((cleanup(nll_end))) nll n;
  graft_status status = nll_begin(&n, a->self, a->target, a->weight, a->ignore_index);
  REF_OWNED ref_array g = ref_read(a->grad_output), total = ref_read(a->total_weight),
                      out = ref_new(ref_numel(a->out), false);
  if (!g.re || !total.re || !out.re) status = ref_no_memory();
  bool each = a->reduction == LOSS_NONE && a->self->dl.ndim > 1;
  for (int64_t i = 0; !status && i < n.rows; i++) {
    int64_t class;
    ref_real weight = 0;
    status = nll_row(&n, i, &class, &weight);
    ref_real scale = a->reduction == LOSS_MEAN ? 1 / total.re[0] : 1;
    if (!status && class >= 0) out.re[nll_at(&n, i, class)] = -g.re[each ? i : 0] * scale * weight;
  }
  if (!status) ref_write(a->out, &out);
  return status;
}

/* Those of nll_loss2d have their arguments laid out alike. */
_Static_assert(sizeof(graft_args_nll_loss2d_forward) == sizeof(graft_args_nll_loss_forward), "one kernel for both");
_Static_assert(sizeof(graft_args_nll_loss2d_backward) == sizeof(graft_args_nll_loss_backward), "one kernel for both");

graft_status kernel_nll_loss2d_forward(const graft_exec *exec, const graft_args_nll_loss2d_forward *a) {
  return kernel_nll_loss_forward(exec, (const graft_args_nll_loss_forward *)(const void *)a);
}

graft_status kernel_nll_loss2d_backward(const graft_exec *exec, const graft_args_nll_loss2d_backward *a) {
  return kernel_nll_loss_backward(exec, (const graft_args_nll_loss_backward *)(const void *)a);
}

/* --- negative log likelihood: decompositions, gradients --- */

/* What both directions start from: the class of each row (0 where ignored), and its weight (0 there), both [N]. */
typedef struct nll_rows {
  graft_tensor *x, *class, *weight, *skip; /* x as [N,C] */
} nll_rows;

static const int64_t classes_last[] = {0, 2, 3, 1}, classes_second[] = {0, 3, 1, 2};

static nll_rows nll_split(fx *s, graft_tensor *self, graft_tensor *target, graft_tensor *weight, int64_t ignored) {
  int64_t classes_in = self->sizes[class_dim(self)], rows = target->numel, matrix[] = {rows, classes_in};
  graft_tensor *x = self->ndim == 4 ? fx_permute(s, self, classes_last, 4) : self;
  nll_rows r = {fx_reshape(s, x, 2, matrix), NULL, NULL, NULL};
  graft_tensor *given = fx_cast(s, fx_reshape(s, target, 1, &rows), GRAFT_I64);
  r.skip = fx_eq_Scalar(s, given, graft_scalar_int(ignored));
  r.class = fx_not_where(s, r.skip, given);
  int64_t classes = weight ? weight->numel : 0;
  graft_tensor *all = weight ? fx_index_select(s, fx_reshape(s, weight, 1, &classes), 0, r.class)
                             : fx_filled(s, self, 1, &rows, 1, self->dtype);
  r.weight = fx_not_where(s, r.skip, all);
  return r;
}

static void decompose_nll_forward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_nll_loss_forward in = in_nll_loss_forward_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  nll_rows r = nll_split(s, in.self, in.target, in.weight, in.ignore_index);
  graft_tensor *picked = fx_gather(s, r.x, 1, s->status ? NULL : fx_unsqueeze(s, r.class, 1), false);
  graft_tensor *loss = fx_neg(s, fx_mul(s, fx_squeeze_dim(s, picked, 1), r.weight));
  loss = fx_not_where(s, r.skip, loss); /* 0 times inf is not 0 */
  bool rows = c->out[OUT_nll_loss_forward_output].ndim > 0;
  if (s->status) return;
  graft_tensor *sum =
      rows ? fx_reshape(s, loss, c->out[OUT_nll_loss_forward_output].ndim, c->out[OUT_nll_loss_forward_output].sizes)
           : fx_sum(s, loss, 1, false);
  outs[OUT_nll_loss_forward_total_weight] =
      rows ? fx_filled(s, loss, 0, NULL, 0, c->compute) : fx_sum(s, r.weight, 1, false);
  outs[OUT_nll_loss_forward_output] =
      in.reduction == LOSS_MEAN ? fx_div(s, sum, outs[OUT_nll_loss_forward_total_weight]) : sum;
}

static void decompose_nll_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_nll_loss_backward in = in_nll_loss_backward_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *g = in.grad_output;
  nll_rows r = nll_split(s, in.self, in.target, in.weight, in.ignore_index);
  if (in.reduction == LOSS_MEAN) g = fx_div(s, g, in.total_weight);
  if (!s->status && g->ndim > 1) g = fx_reshape(s, g, 1, &g->numel);
  graft_tensor *slope = fx_neg(s, fx_mul(s, r.weight, g));
  if (s->status) return;
  graft_tensor *zeros = fx_filled(s, in.self, 2, r.x->sizes, 0, c->compute);
  graft_tensor *out = fx_scatter_src(s, zeros, 1, fx_unsqueeze(s, r.class, 1), fx_unsqueeze(s, slope, 1));
  if (in.self->ndim == 4) {
    const int64_t last[] = {in.self->sizes[0], in.self->sizes[2], in.self->sizes[3], in.self->sizes[1]};
    outs[OUT] = fx_permute(s, fx_reshape(s, out, 4, last), classes_second, 4);
  } else {
    outs[OUT] = fx_reshape(s, out, in.self->ndim, in.self->sizes);
  }
}

/* nll_loss2d's arguments stand like nll_loss's. */
static void vjp_nll_forward(op_vjp *v) {
  const in_nll_loss_forward in = in_nll_loss_forward_of(v->args);
  graft_tensor *g = v->g[OUT_nll_loss_forward_output], *total = v->outs[OUT_nll_loss_forward_total_weight];
  if (!g || !vjp_needs(v, ARG_nll_loss_forward_self)) return;
  graft_tensor *target = in.self->ndim == 1 ? fx_reshape(v->s, in.target, 0, (const int64_t[]){0}) : in.target;
  bool plane = v->schema->id == GRAFT_OP_NLL_LOSS2D_FORWARD;
  v->results[ARG_nll_loss_forward_self] = (plane ? fx_nll_loss2d_backward : fx_nll_loss_backward)(
      v->s, g, in.self, target, in.weight, in.reduction, in.ignore_index, total);
}

/* The loss is linear: the adjoint of its gradient is the loss itself. */
static void vjp_nll_backward(op_vjp *v) {
  const in_nll_loss_backward in = in_nll_loss_backward_of(v->args);
  if (!vjp_needs(v, ARG_nll_loss_backward_grad_output)) return;
  graft_tensor *loss = NULL, *total = NULL, *g = in.grad_output;
  bool plane = v->schema->id == GRAFT_OP_NLL_LOSS2D_BACKWARD;
  (plane ? fx_nll_loss2d_forward : fx_nll_loss_forward)(v->s, v->g[OUT], in.target, in.weight, in.reduction,
                                                        in.ignore_index, &loss, &total);
  v->results[ARG_nll_loss_backward_grad_output] = fx_reshape(v->s, loss, g->ndim, g->sizes);
}

#define NLL(op)                                                                                                        \
  {.op_id = OP_WITH_KERNEL(op##_forward),                                                                              \
   .roles = "viv",                                                                                                     \
   .infer = infer_nll_forward,                                                                                         \
   .decompose = decompose_nll_forward,                                                                                 \
   .vjp = vjp_nll_forward,                                                                                             \
   .saves = OP_SAVE_ARGS(op##_forward, self, target, weight) | OP_SAVE_OUT(op##_forward, total_weight)},               \
  {                                                                                                                    \
    .op_id = OP_WITH_KERNEL(op##_backward), .roles = "vvivv", .infer = infer_nll_backward,                             \
    .decompose = decompose_nll_backward, .vjp = vjp_nll_backward, .saves = OP_SAVE_ARGS(op##_backward, target, weight) \
  }

static const op_def defs[] = {NLL(nll_loss), NLL(nll_loss2d)};
OP_TABLE(loss_nll, defs)
