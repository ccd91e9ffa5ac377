/* Recurrent cells: what an LSTM or GRU step does after its two matrix products, and its gradient.
 *
 * Gates lie side by side in a row: input, forget, cell, output for an LSTM; reset, update, new for a GRU. The workspace
 * of an LSTM holds the four after their nonlinearity. That of a GRU holds the three, the old state, and what the reset
 * gate multiplies. */
#include "graft/autograd.h"
#include "ops/core/families.h"
#include "ops/core/ref.h"
#include "ops/generated/fx_ops.h"

enum { LSTM_GATES = 4, GRU_GATES = 3, GRU_KEPT = 5 };

/* --- rules --- */

static graft_status check_matrix(op_call *c, int arg, int64_t rows, int64_t columns) {
  const graft_tensor *t = op_tensor(c, arg);
  if (!t || (t->ndim == 2 && t->sizes[0] == rows && t->sizes[1] == columns)) return GRAFT_OK;
  return op_error(c, "%s is %s; expected [%lld,%lld]", c->schema->args[arg].name, op_show(c, arg), (long long)rows,
                  (long long)columns);
}

static graft_status check_bias(op_call *c, int arg, int64_t columns) {
  const graft_tensor *t = op_tensor(c, arg);
  if (!t || (t->ndim == 1 && t->sizes[0] == columns)) return GRAFT_OK;
  return op_error(c, "%s is %s; expected [%lld]", c->schema->args[arg].name, op_show(c, arg), (long long)columns);
}

/* One floating dtype for all of the first `count` arguments. */
static graft_status check_dtypes(op_call *c, int count) {
  for (int i = 0; i < count; i++) {
    const graft_tensor *t = op_tensor(c, i);
    if (!t) continue;
    if (!dt_is_float(t->dtype) || dt_is_float8(t->dtype)) return op_refuse_dtype(c, i, "a floating dtype");
    if (!c->compute) c->compute = t->dtype;
    if (t->dtype != c->compute) return op_error(c, "dtypes differ (%s)", op_show_tensors(c));
  }
  return GRAFT_OK;
}

/* cell(input_gates, hidden_gates, state, input_bias, hidden_bias) */
static graft_status check_cell(op_call *c, int64_t gates, int64_t *rows, int64_t *width) {
  const graft_tensor *input = op_tensor(c, 0);
  graft_status status = check_dtypes(c, 5);
  if (status) return status;
  if (input->ndim != 2 || input->sizes[1] % gates) {
    return op_error(c, "input_gates is %s; expected a matrix of rows of %lld gates", op_show(c, 0), (long long)gates);
  }
  if (op_absent(c, 3) != op_absent(c, 4)) return op_error(c, "expected both biases or none");
  *rows = input->sizes[0];
  *width = input->sizes[1] / gates;
  status = check_matrix(c, 1, *rows, input->sizes[1]);
  if (!status) status = check_matrix(c, 2, *rows, *width);
  if (!status) status = check_bias(c, 3, input->sizes[1]);
  return status ? status : check_bias(c, 4, input->sizes[1]);
}

static void out_matrix(op_call *c, int n, int64_t rows, int64_t columns) {
  op_out(c, n, c->compute, 2, (int64_t[]){rows, columns});
}

/* _thnn_fused_lstm_cell -> (hy, cy, workspace) */
static graft_status infer_lstm(op_call *c) {
  int64_t rows = 0, width = 0;
  graft_status status = check_cell(c, LSTM_GATES, &rows, &width);
  if (status) return status;
  out_matrix(c, 0, rows, width);
  out_matrix(c, 1, rows, width);
  out_matrix(c, 2, rows, width * LSTM_GATES);
  return GRAFT_OK;
}

/* _thnn_fused_gru_cell -> (hy, workspace) */
static graft_status infer_gru(op_call *c) {
  int64_t rows = 0, width = 0;
  graft_status status = check_cell(c, GRU_GATES, &rows, &width);
  if (status) return status;
  out_matrix(c, 0, rows, width);
  out_matrix(c, 1, rows, width * GRU_KEPT);
  return GRAFT_OK;
}

/* _thnn_fused_lstm_cell_backward_impl(grad_hy, grad_cy, cx, cy, workspace, has_bias) -> (gates, cx, bias); nothing
 * comes of no gradient. */
static graft_status infer_lstm_backward(op_call *c) {
  const graft_tensor *cx = op_tensor(c, 2);
  c->nouts = 3;
  graft_status status = check_dtypes(c, 5);
  if (!status && cx->ndim != 2) status = op_error(c, "cx is %s; expected a matrix", op_show(c, 2));
  for (int i = 0; !status && i < 4; i++) status = check_matrix(c, i, cx->sizes[0], cx->sizes[1]);
  if (!status) status = check_matrix(c, 4, cx->sizes[0], cx->sizes[1] * LSTM_GATES);
  if (status || (op_absent(c, 0) && op_absent(c, 1))) return status;
  out_matrix(c, 0, cx->sizes[0], cx->sizes[1] * LSTM_GATES);
  out_matrix(c, 1, cx->sizes[0], cx->sizes[1]);
  if (op_bool(c, 5)) op_out(c, 2, c->compute, 1, (int64_t[]){cx->sizes[1] * LSTM_GATES});
  return GRAFT_OK;
}

/* _thnn_fused_gru_cell_backward(grad_hy, workspace, has_bias) -> (input gates, hidden gates, hx, both biases) */
static graft_status infer_gru_backward(op_call *c) {
  const graft_tensor *grad = op_tensor(c, 0);
  c->nouts = 5;
  graft_status status = check_dtypes(c, 2);
  if (!status && grad->ndim != 2) status = op_error(c, "grad_hy is %s; expected a matrix", op_show(c, 0));
  if (!status) status = check_matrix(c, 1, grad->sizes[0], grad->sizes[1] * GRU_KEPT);
  if (status) return status;
  int64_t gates = grad->sizes[1] * GRU_GATES;
  out_matrix(c, 0, grad->sizes[0], gates);
  out_matrix(c, 1, grad->sizes[0], gates);
  out_matrix(c, 2, grad->sizes[0], grad->sizes[1]);
  for (int i = 3; op_bool(c, 2) && i < 5; i++) op_out(c, i, c->compute, 1, &gates);
  return GRAFT_OK;
}

/* --- kernels --- */

enum { MOST_ARRAYS = 10 };

/* The arrays of a kernel: `in` are read (absent ones stay empty), `out` begin as zeros. False: no memory. */
static bool open_arrays(ref_array *a, const graft_tensor_desc *const *in, int ins, const graft_tensor_desc *const *out,
                        int outs) {
  bool ok = true;
  for (int i = 0; i < ins; i++) {
    a[i] = ref_read(in[i]);
    ok &= !in[i] || a[i].re;
  }
  for (int i = 0; i < outs; i++) {
    a[ins + i] = out[i] ? ref_new(ref_numel(out[i]), false) : (ref_array){0};
    ok &= !out[i] || a[ins + i].re;
  }
  return ok;
}

static graft_status close_arrays(ref_array *a, int ins, const graft_tensor_desc *const *out, int outs, bool ok) {
  for (int i = 0; ok && i < outs; i++) ref_write(out[i], &a[ins + i]);
  for (int i = 0; i < ins + outs; i++) ref_free(&a[i]);
  return ok ? GRAFT_OK : ref_no_memory();
}

static ref_real sigmoid(ref_real x) {
  return 1 / (1 + expl(-x));
}

/* A gate before its nonlinearity. */
static ref_real gate(const ref_array *a, int64_t at, int64_t column) {
  ref_real bias = a[3].re ? a[3].re[column] + a[4].re[column] : 0;
  return a[0].re[at] + a[1].re[at] + bias;
}

static graft_status ref_thnn_fused_lstm_cell(const graft_exec *exec, const graft_args_thnn_fused_lstm_cell *args) {
  (void)exec;
  const graft_tensor_desc *in[] = {args->input_gates, args->hidden_gates, args->cx, args->input_bias,
                                   args->hidden_bias};
  const graft_tensor_desc *out[] = {args->out0, args->out1, args->out2};
  ref_array a[MOST_ARRAYS];
  bool ok = open_arrays(a, in, 5, out, 3);
  int64_t width = args->cx->dl.shape[1];
  for (int64_t i = 0; ok && i < a[2].count; i++) {
    int64_t column = i % width, row = i / width * LSTM_GATES * width;
    ref_real *kept = a[7].re + row + column, g[LSTM_GATES];
    for (int k = 0; k < LSTM_GATES; k++) {
      ref_real x = gate(a, row + k * width + column, k * width + column);
      g[k] = kept[k * width] = k == 2 ? tanhl(x) : sigmoid(x);
    }
    ref_real cy = g[1] * a[2].re[i] + g[0] * g[2];
    a[6].re[i] = cy;
    a[5].re[i] = g[3] * tanhl(cy);
  }
  return close_arrays(a, 5, out, 3, ok);
}

static void sum_columns(graft_dtype dtype, const ref_array *from, ref_array *to) {
  int64_t columns = to->count, rows = columns ? from->count / columns : 0;
  for (int64_t j = 0; j < columns; j++) to->re[j] = ref_sum(dtype, from->re + j, columns, rows);
}

static graft_status ref_thnn_fused_lstm_cell_backward_impl(const graft_exec *exec,
                                                           const graft_args_thnn_fused_lstm_cell_backward_impl *args) {
  (void)exec;
  const graft_tensor_desc *in[] = {args->grad_hy, args->grad_cy, args->cx, args->cy, args->workspace};
  const graft_tensor_desc *out[] = {args->out0, args->out1, args->out2};
  ref_array a[MOST_ARRAYS];
  bool ok = open_arrays(a, in, 5, out, 3);
  int64_t width = args->cx->dl.shape[1];
  for (int64_t i = 0; ok && i < a[2].count; i++) {
    int64_t at = i / width * LSTM_GATES * width + i % width;
    ref_real g[LSTM_GATES], *d = a[5].re + at, t = tanhl(a[3].re[i]);
    for (int k = 0; k < LSTM_GATES; k++) g[k] = a[4].re[at + k * width];
    ref_real gh = a[0].re ? a[0].re[i] : 0, gc = (a[1].re ? a[1].re[i] : 0) + gh * g[3] * (1 - t * t);
    d[0] = gc * g[2] * (1 - g[0]) * g[0];
    d[width] = gc * a[2].re[i] * (1 - g[1]) * g[1];
    d[2 * width] = gc * g[0] * (1 - g[2] * g[2]);
    d[3 * width] = gh * t * (1 - g[3]) * g[3];
    a[6].re[i] = gc * g[1];
  }
  if (ok && args->out2) sum_columns(args->out0->dl.dtype, &a[5], &a[7]);
  return close_arrays(a, 5, out, 3, ok);
}

static graft_status ref_thnn_fused_gru_cell(const graft_exec *exec, const graft_args_thnn_fused_gru_cell *args) {
  (void)exec;
  const graft_tensor_desc *in[] = {args->input_gates, args->hidden_gates, args->hx, args->input_bias,
                                   args->hidden_bias};
  const graft_tensor_desc *out[] = {args->out0, args->out1};
  ref_array a[MOST_ARRAYS];
  bool ok = open_arrays(a, in, 5, out, 2);
  int64_t width = args->hx->dl.shape[1];
  for (int64_t i = 0; ok && i < a[2].count; i++) {
    int64_t column = i % width, row = i / width, at = row * GRU_GATES * width + column, last = 2 * width;
    ref_real r = sigmoid(gate(a, at, column)), z = sigmoid(gate(a, at + width, column + width));
    ref_real hidden = a[1].re[at + last] + (a[4].re ? a[4].re[column + last] : 0);
    ref_real new = tanhl(a[0].re[at + last] + (a[3].re ? a[3].re[column + last] : 0) + r * hidden), hx = a[2].re[i];
    ref_real kept[GRU_KEPT] = {r, z, new, hx, hidden};
    for (int k = 0; k < GRU_KEPT; k++) a[6].re[(row * GRU_KEPT + k) * width + column] = kept[k];
    a[5].re[i] = new + z *(hx - new);
  }
  return close_arrays(a, 5, out, 2, ok);
}

static graft_status ref_thnn_fused_gru_cell_backward(const graft_exec *exec,
                                                     const graft_args_thnn_fused_gru_cell_backward *args) {
  (void)exec;
  const graft_tensor_desc *in[] = {args->grad_hy, args->workspace};
  const graft_tensor_desc *out[] = {args->out0, args->out1, args->out2, args->out3, args->out4};
  ref_array a[MOST_ARRAYS];
  bool ok = open_arrays(a, in, 2, out, 5);
  int64_t width = args->grad_hy->dl.shape[1];
  for (int64_t i = 0; ok && i < a[0].count; i++) {
    int64_t column = i % width, row = i / width, at = row * GRU_GATES * width + column;
    ref_real kept[GRU_KEPT], g = a[0].re[i];
    for (int k = 0; k < GRU_KEPT; k++) kept[k] = a[1].re[(row * GRU_KEPT + k) * width + column];
    ref_real r = kept[0], z = kept[1], new = kept[2];
    ref_real dn = g * (1 - z) * (1 - new *new), dz = g * (kept[3] - new) * (1 - z) * z;
    ref_real dr = dn * kept[4] * (1 - r) * r;
    ref_real to_input[] = {dr, dz, dn}, to_hidden[] = {dr, dz, dn * r};
    for (int k = 0; k < GRU_GATES; k++) {
      a[2].re[at + k * width] = to_input[k];
      a[3].re[at + k * width] = to_hidden[k];
    }
    a[4].re[i] = g * z;
  }
  for (int k = 0; ok && k < 2 && args->out3; k++) sum_columns(args->out0->dl.dtype, &a[2 + k], &a[5 + k]);
  return close_arrays(a, 2, out, 5, ok);
}

/* --- the same on tensors, for decompositions and for gradients of gradients --- */

static graft_tensor *part(fx *s, graft_tensor *t, int64_t k, int64_t width) {
  int64_t from = k * width, to = from + width;
  return s->status || !t ? NULL : fx_slice_Tensor(s, t, 1, &from, &to, 1);
}

static graft_tensor *plus(fx *s, graft_tensor *a, graft_tensor *b) {
  return a && b ? fx_add(s, a, b) : a ? a : b;
}

/* y (1 - y) and 1 - y^2: the slopes of sigmoid and tanh. */
static graft_tensor *sigmoid_slope(fx *s, graft_tensor *y) {
  return fx_sub(s, y, fx_mul(s, y, y));
}
static graft_tensor *tanh_slope(fx *s, graft_tensor *y) {
  return fx_adds(s, fx_neg(s, fx_mul(s, y, y)), 1);
}

typedef struct lstm {
  graft_tensor *gates[LSTM_GATES], *cy;
} lstm;

static lstm lstm_of(fx *s, const graft_value *args) {
  graft_tensor *cx = args[2].as.tensor, *sum = fx_add(s, args[0].as.tensor, args[1].as.tensor);
  if (args[3].kind == GRAFT_VALUE_TENSOR) sum = fx_add(s, sum, fx_add(s, args[3].as.tensor, args[4].as.tensor));
  lstm l;
  for (int k = 0; k < LSTM_GATES; k++) {
    graft_tensor *x = part(s, sum, k, cx->sizes[1]);
    l.gates[k] = k == 2 ? fx_tanh(s, x) : fx_sigmoid(s, x);
  }
  l.cy = fx_add(s, fx_mul(s, l.gates[1], cx), fx_mul(s, l.gates[0], l.gates[2]));
  return l;
}

static void decompose_lstm(fx *s, const op_call *c, graft_tensor **outs) {
  lstm l = lstm_of(s, c->args);
  outs[0] = fx_mul(s, l.gates[3], fx_tanh(s, l.cy));
  outs[1] = l.cy;
  if (!s->status) outs[2] = fx_cat(s, l.gates, LSTM_GATES, 1);
}

static void lstm_backward(fx *s, const lstm *l, graft_tensor *cx, graft_tensor *gh, graft_tensor *gc,
                          graft_tensor **gates, graft_tensor **to_cx) {
  graft_tensor *const *g = l->gates, *t = fx_tanh(s, l->cy), *d[LSTM_GATES];
  if (gh) gc = plus(s, gc, fx_mul(s, fx_mul(s, gh, g[3]), tanh_slope(s, t)));
  d[0] = fx_mul(s, fx_mul(s, gc, g[2]), sigmoid_slope(s, g[0]));
  d[1] = fx_mul(s, fx_mul(s, gc, cx), sigmoid_slope(s, g[1]));
  d[2] = fx_mul(s, fx_mul(s, gc, g[0]), tanh_slope(s, g[2]));
  d[3] = gh ? fx_mul(s, fx_mul(s, gh, t), sigmoid_slope(s, g[3])) : fx_zeros_like(s, d[0]);
  if (!s->status) *gates = fx_cat(s, d, LSTM_GATES, 1);
  *to_cx = fx_mul(s, gc, g[1]);
}

static void decompose_lstm_backward(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *cx = op_tensor(c, 2);
  lstm l = {.cy = op_tensor(c, 3)};
  for (int k = 0; k < LSTM_GATES; k++) l.gates[k] = part(s, op_tensor(c, 4), k, cx->sizes[1]);
  lstm_backward(s, &l, cx, op_tensor(c, 0), op_tensor(c, 1), &outs[0], &outs[1]);
  if (c->out_wanted[2]) outs[2] = fx_sum(s, outs[0], 1, false);
}

typedef struct gru {
  graft_tensor *r, *z, *new, *hx, *hidden;
} gru;

static gru gru_of(fx *s, const graft_value *args) {
  graft_tensor *input = args[0].as.tensor, *hidden = args[1].as.tensor, *hx = args[2].as.tensor;
  if (args[3].kind == GRAFT_VALUE_TENSOR) {
    input = fx_add(s, input, args[3].as.tensor);
    hidden = fx_add(s, hidden, args[4].as.tensor);
  }
  graft_tensor *both = fx_add(s, input, hidden);
  int64_t width = hx->sizes[1];
  gru g = {fx_sigmoid(s, part(s, both, 0, width)), fx_sigmoid(s, part(s, both, 1, width)), NULL, hx,
           part(s, hidden, 2, width)};
  g.new = fx_tanh(s, fx_add(s, part(s, input, 2, width), fx_mul(s, g.r, g.hidden)));
  return g;
}

static void decompose_gru(fx *s, const op_call *c, graft_tensor **outs) {
  gru g = gru_of(s, c->args);
  outs[0] = fx_add(s, g.new, fx_mul(s, g.z, fx_sub(s, g.hx, g.new)));
  graft_tensor *kept[] = {g.r, g.z, g.new, g.hx, g.hidden};
  if (!s->status) outs[1] = fx_cat(s, kept, GRU_KEPT, 1);
}

static void gru_backward(fx *s, const gru *g, graft_tensor *grad, graft_tensor **to_input, graft_tensor **to_hidden,
                         graft_tensor **to_hx) {
  graft_tensor *kept = fx_mul(s, grad, g->z);
  graft_tensor *dn = fx_mul(s, fx_sub(s, grad, kept), tanh_slope(s, g->new));
  graft_tensor *dz = fx_mul(s, fx_mul(s, grad, fx_sub(s, g->hx, g->new)), sigmoid_slope(s, g->z));
  graft_tensor *dr = fx_mul(s, fx_mul(s, dn, g->hidden), sigmoid_slope(s, g->r)), *dh = fx_mul(s, dn, g->r);
  *to_hx = kept;
  if (s->status) return;
  *to_input = fx_cat(s, (graft_tensor *[]){dr, dz, dn}, GRU_GATES, 1);
  *to_hidden = fx_cat(s, (graft_tensor *[]){dr, dz, dh}, GRU_GATES, 1);
}

static void decompose_gru_backward(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *kept[GRU_KEPT];
  for (int k = 0; k < GRU_KEPT; k++) kept[k] = part(s, op_tensor(c, 1), k, op_tensor(c, 0)->sizes[1]);
  gru g = {kept[0], kept[1], kept[2], kept[3], kept[4]};
  gru_backward(s, &g, op_tensor(c, 0), &outs[0], &outs[1], &outs[2]);
  for (int i = 3; i < 5 && c->out_wanted[i]; i++) outs[i] = fx_sum(s, outs[i - 3], 1, false);
}

/* --- gradients: by the backward op, or by formula where they are to be differentiated again --- */

static void vjp_lstm(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *gates = NULL, *to_cx = NULL, *bias = NULL, *cx = vjp_arg(v, 2);
  bool wants_bias = vjp_needs(v, 3) || vjp_needs(v, 4);
  if (graft_grad_mode()) {
    lstm l = lstm_of(s, v->args);
    lstm_backward(s, &l, cx, v->g[0], v->g[1], &gates, &to_cx);
    if (wants_bias) bias = fx_sum(s, gates, 1, false);
  } else {
    fx_thnn_fused_lstm_cell_backward_impl(s, v->g[0], v->g[1], cx, v->outs[1], v->outs[2], wants_bias, &gates, &to_cx,
                                          &bias);
  }
  graft_tensor *results[] = {gates, gates, to_cx, bias, bias};
  for (int i = 0; i < 5; i++) v->results[i] = vjp_needs(v, i) ? results[i] : NULL;
}

static void vjp_gru(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *d[5] = {NULL};
  bool wants_bias = vjp_needs(v, 3) || vjp_needs(v, 4);
  if (!v->g[0]) return;
  if (graft_grad_mode()) {
    gru g = gru_of(s, v->args);
    gru_backward(s, &g, v->g[0], &d[0], &d[1], &d[2]);
    for (int i = 3; i < 5 && wants_bias; i++) d[i] = fx_sum(s, d[i - 3], 1, false);
  } else {
    fx_thnn_fused_gru_cell_backward(s, v->g[0], v->outs[1], wants_bias, &d[0], &d[1], &d[2], &d[3], &d[4]);
  }
  for (int i = 0; i < 5; i++) v->results[i] = vjp_needs(v, i) ? d[i] : NULL;
}

#define CELL_ARGS (OP_SAVE_ARG(0) | OP_SAVE_ARG(1) | OP_SAVE_ARG(2) | OP_SAVE_ARG(3) | OP_SAVE_ARG(4))

static const op_def defs[] = {
    {.op_id = GRAFT_OP_THNN_FUSED_LSTM_CELL,
     .roles = "vvvvv",
     .infer = infer_lstm,
     .decompose = decompose_lstm,
     .vjp = vjp_lstm,
     .saves = CELL_ARGS | OP_SAVE_OUT(1) | OP_SAVE_OUT(2),
     .without_grad = 1u << 2,
     .reference = OP_REF(thnn_fused_lstm_cell)},
    {.op_id = GRAFT_OP_THNN_FUSED_LSTM_CELL_BACKWARD_IMPL,
     .roles = "vvvvv",
     .infer = infer_lstm_backward,
     .decompose = decompose_lstm_backward,
     .reference = OP_REF(thnn_fused_lstm_cell_backward_impl)},
    {.op_id = GRAFT_OP_THNN_FUSED_GRU_CELL,
     .roles = "vvvvv",
     .infer = infer_gru,
     .decompose = decompose_gru,
     .vjp = vjp_gru,
     .saves = CELL_ARGS | OP_SAVE_OUT(1),
     .without_grad = 1u << 1,
     .reference = OP_REF(thnn_fused_gru_cell)},
    {.op_id = GRAFT_OP_THNN_FUSED_GRU_CELL_BACKWARD,
     .roles = "vv",
     .infer = infer_gru_backward,
     .decompose = decompose_gru_backward,
     .reference = OP_REF(thnn_fused_gru_cell_backward)},
};
OP_TABLE(rnn, defs)
