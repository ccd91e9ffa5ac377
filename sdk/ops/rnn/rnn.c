/* Recurrent cells: what an LSTM or GRU step does after its two matrix products, and its gradient. layer.c has all steps
 * of a layer in one op.
 *
 * The workspace of an LSTM holds its four gates after their nonlinearity. That of a GRU holds the three, the old state,
 * and what the reset gate multiplies. */
#include "ops/rnn/rnn.h"

#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

enum { OLD_STATE = GRU_GATES, RESET_PART, GRU_KEPT };

/* Where the arguments of both cells stand, of which all are saved. */
enum {
  INPUT = ARG_thnn_fused_lstm_cell_input_gates,
  HIDDEN = ARG_thnn_fused_lstm_cell_hidden_gates,
  STATE = ARG_thnn_fused_lstm_cell_cx,
  INPUT_BIAS = ARG_thnn_fused_lstm_cell_input_bias,
  HIDDEN_BIAS = ARG_thnn_fused_lstm_cell_hidden_bias,
  CELL_ARGS
};
/* The results, and how a kernel numbers its arrays: arguments, then results. */
enum { HY = OUT_thnn_fused_lstm_cell_out0, CY = OUT_thnn_fused_lstm_cell_out1, LSTM_WORKSPACE, LSTM_OUTS };
enum { GRU_WORKSPACE = OUT_thnn_fused_gru_cell_out1, GRU_OUTS };

/* --- rules --- */

static graft_status check_matrix(op_call *c, int arg, int64_t rows, int64_t columns) {
  const graft_tensor *t = op_tensor(c, arg);
  if (!t || (t->ndim == 2 && t->sizes[0] == rows && t->sizes[1] == columns)) return GRAFT_OK;
  return op_refuse(c, arg, "[%lld,%lld]", (long long)rows, (long long)columns);
}

static graft_status check_bias(op_call *c, int arg, int64_t columns) {
  const graft_tensor *t = op_tensor(c, arg);
  if (!t || (t->ndim == 1 && t->sizes[0] == columns)) return GRAFT_OK;
  return op_refuse(c, arg, "[%lld]", (long long)columns);
}

/* One floating dtype for all of the first `count` arguments. */
static graft_status check_dtypes(op_call *c, int count) {
  for (int i = 0; i < count; i++) {
    const graft_tensor *t = op_tensor(c, i);
    if (!t) continue;
    graft_status status = op_check_floating(c, i);
    if (status) return status;
    if (!c->compute) c->compute = t->dtype;
    if (t->dtype != c->compute) return op_error(c, "dtypes differ (%s)", op_show_tensors(c));
  }
  return GRAFT_OK;
}

static graft_status check_cell(op_call *c, int64_t gates, int64_t *rows, int64_t *width) {
  const graft_tensor *input = op_tensor(c, INPUT);
  graft_status status = check_dtypes(c, CELL_ARGS);
  if (status) return status;
  if (input->ndim != 2 || input->sizes[1] % gates) {
    return op_refuse(c, INPUT, "a matrix of rows of %lld gates", (long long)gates);
  }
  if (op_absent(c, INPUT_BIAS) != op_absent(c, HIDDEN_BIAS)) return op_error(c, "expected both biases or none");
  *rows = input->sizes[0];
  *width = input->sizes[1] / gates;
  status = check_matrix(c, HIDDEN, *rows, input->sizes[1]);
  if (!status) status = check_matrix(c, STATE, *rows, *width);
  if (!status) status = check_bias(c, INPUT_BIAS, input->sizes[1]);
  return status ? status : check_bias(c, HIDDEN_BIAS, input->sizes[1]);
}

static void out_matrix(op_call *c, int n, int64_t rows, int64_t columns) {
  op_out(c, n, c->compute, 2, (int64_t[]){rows, columns});
}

static graft_status infer_lstm(op_call *c) {
  int64_t rows = 0, width = 0;
  graft_status status = check_cell(c, LSTM_GATES, &rows, &width);
  if (status) return status;
  out_matrix(c, HY, rows, width);
  out_matrix(c, CY, rows, width);
  out_matrix(c, LSTM_WORKSPACE, rows, width * LSTM_GATES);
  return GRAFT_OK;
}

static graft_status infer_gru(op_call *c) {
  int64_t rows = 0, width = 0;
  graft_status status = check_cell(c, GRU_GATES, &rows, &width);
  if (status) return status;
  out_matrix(c, HY, rows, width);
  out_matrix(c, GRU_WORKSPACE, rows, width * GRU_KEPT);
  return GRAFT_OK;
}

/* The backward ops: their arguments and results. */
#define LSTM_BACK(name) ARG_thnn_fused_lstm_cell_backward_impl_##name
#define GRU_BACK(name)  ARG_thnn_fused_gru_cell_backward_##name
enum { TO_GATES, TO_CX, TO_BIAS, LSTM_BACK_OUTS };
enum { TO_INPUT, TO_HIDDEN, TO_HX, TO_INPUT_BIAS, TO_HIDDEN_BIAS, GRU_BACK_OUTS };

/* Nothing comes of no gradient. */
static graft_status infer_lstm_backward(op_call *c) {
  const in_thnn_fused_lstm_cell_backward_impl in = in_thnn_fused_lstm_cell_backward_impl_of(c->args);
  c->nouts = LSTM_BACK_OUTS;
  graft_status status = check_dtypes(c, LSTM_BACK(has_bias));
  if (!status && in.cx->ndim != 2) status = op_refuse(c, LSTM_BACK(cx), "a matrix");
  for (int i = 0; !status && i < LSTM_BACK(workspace); i++) {
    status = check_matrix(c, i, in.cx->sizes[0], in.cx->sizes[1]);
  }
  if (status) return status;
  int64_t rows = in.cx->sizes[0], width = in.cx->sizes[1], gates = width * LSTM_GATES;
  status = check_matrix(c, LSTM_BACK(workspace), rows, gates);
  if (status || (!in.grad_hy && !in.grad_cy)) return status;
  out_matrix(c, TO_GATES, rows, gates);
  out_matrix(c, TO_CX, rows, width);
  if (in.has_bias) op_out(c, TO_BIAS, c->compute, 1, &gates);
  return GRAFT_OK;
}

static graft_status infer_gru_backward(op_call *c) {
  const in_thnn_fused_gru_cell_backward in = in_thnn_fused_gru_cell_backward_of(c->args);
  const graft_tensor *grad = in.grad_hy;
  c->nouts = GRU_BACK_OUTS;
  graft_status status = check_dtypes(c, GRU_BACK(has_bias));
  if (!status && grad->ndim != 2) {
    status = op_refuse(c, GRU_BACK(grad_hy), "a matrix");
  }
  if (!status) status = check_matrix(c, GRU_BACK(workspace), grad->sizes[0], grad->sizes[1] * GRU_KEPT);
  if (status) return status;
  int64_t gates = grad->sizes[1] * GRU_GATES;
  out_matrix(c, TO_INPUT, grad->sizes[0], gates);
  out_matrix(c, TO_HIDDEN, grad->sizes[0], gates);
  out_matrix(c, TO_HX, grad->sizes[0], grad->sizes[1]);
  for (int i = TO_INPUT_BIAS; in.has_bias && i <= TO_HIDDEN_BIAS; i++) op_out(c, i, c->compute, 1, &gates);
  return GRAFT_OK;
}

/* --- kernels --- */

enum { MOST_ARRAYS = 10 };

static ref_real sigmoid(ref_real x) {
  return 1 / (1 + expl(-x));
}

/* A gate before its nonlinearity. */
static ref_real gate(const ref_array *a, int64_t at, int64_t column) {
  ref_real bias = a[INPUT_BIAS].re ? a[INPUT_BIAS].re[column] + a[HIDDEN_BIAS].re[column] : 0;
  return a[INPUT].re[at] + a[HIDDEN].re[at] + bias;
}

graft_status kernel_thnn_fused_lstm_cell(const graft_exec *exec, const graft_args_thnn_fused_lstm_cell *args) {
  const graft_tensor_desc *in[] = {args->input_gates, args->hidden_gates, args->cx, args->input_bias,
                                   args->hidden_bias};
  const graft_tensor_desc *out[] = {args->out0, args->out1, args->out2};
  ref_array a[MOST_ARRAYS];
  bool ok = ref_arrays_open(a, in, CELL_ARGS, out, LSTM_OUTS);
  int64_t width = args->cx->dl.shape[1];
  for (int64_t i = 0; ok && i < a[STATE].count; i++) {
    int64_t column = i % width, row = i / width * LSTM_GATES * width;
    ref_real *kept = a[CELL_ARGS + LSTM_WORKSPACE].re + row + column, g[LSTM_GATES];
    for (int k = 0; k < LSTM_GATES; k++) {
      ref_real x = gate(a, row + k * width + column, k * width + column);
      g[k] = kept[k * width] = k == CELL_GATE ? tanhl(x) : sigmoid(x);
    }
    ref_real cy = g[FORGET_GATE] * a[STATE].re[i] + g[INPUT_GATE] * g[CELL_GATE];
    a[CELL_ARGS + CY].re[i] = cy;
    a[CELL_ARGS + HY].re[i] = g[OUTPUT_GATE] * tanhl(cy);
  }
  return ref_arrays_close(a, CELL_ARGS, out, LSTM_OUTS, ok);
}

static void sum_columns(graft_dtype dtype, const ref_array *from, ref_array *to) {
  int64_t columns = to->count, rows = columns ? from->count / columns : 0;
  for (int64_t j = 0; j < columns; j++) to->re[j] = ref_sum(dtype, from->re + j, columns, rows);
}

graft_status kernel_thnn_fused_lstm_cell_backward_impl(const graft_exec *exec,
                                                       const graft_args_thnn_fused_lstm_cell_backward_impl *args) {
  enum { INS = LSTM_BACK(has_bias) };
  const graft_tensor_desc *in[] = {args->grad_hy, args->grad_cy, args->cx, args->cy, args->workspace};
  const graft_tensor_desc *out[] = {args->out0, args->out1, args->out2};
  ref_array a[MOST_ARRAYS];
  bool ok = ref_arrays_open(a, in, INS, out, LSTM_BACK_OUTS);
  int64_t width = args->cx->dl.shape[1];
  for (int64_t i = 0; ok && i < a[LSTM_BACK(cx)].count; i++) {
    int64_t at = i / width * LSTM_GATES * width + i % width;
    ref_real g[LSTM_GATES], *d = a[INS + TO_GATES].re + at, t = tanhl(a[LSTM_BACK(cy)].re[i]);
    for (int k = 0; k < LSTM_GATES; k++) g[k] = a[LSTM_BACK(workspace)].re[at + k * width];
    ref_real gh = a[LSTM_BACK(grad_hy)].re ? a[LSTM_BACK(grad_hy)].re[i] : 0,
             gc = (a[LSTM_BACK(grad_cy)].re ? a[LSTM_BACK(grad_cy)].re[i] : 0) + gh * g[OUTPUT_GATE] * (1 - t * t);
    d[INPUT_GATE * width] = gc * g[CELL_GATE] * (1 - g[INPUT_GATE]) * g[INPUT_GATE];
    d[FORGET_GATE * width] = gc * a[LSTM_BACK(cx)].re[i] * (1 - g[FORGET_GATE]) * g[FORGET_GATE];
    d[CELL_GATE * width] = gc * g[INPUT_GATE] * (1 - g[CELL_GATE] * g[CELL_GATE]);
    d[OUTPUT_GATE * width] = gh * t * (1 - g[OUTPUT_GATE]) * g[OUTPUT_GATE];
    a[INS + TO_CX].re[i] = gc * g[FORGET_GATE];
  }
  if (ok && args->out2) sum_columns(args->out0->dl.dtype, &a[INS + TO_GATES], &a[INS + TO_BIAS]);
  return ref_arrays_close(a, INS, out, LSTM_BACK_OUTS, ok);
}

graft_status kernel_thnn_fused_gru_cell(const graft_exec *exec, const graft_args_thnn_fused_gru_cell *args) {
  const graft_tensor_desc *in[] = {args->input_gates, args->hidden_gates, args->hx, args->input_bias,
                                   args->hidden_bias};
  const graft_tensor_desc *out[] = {args->out0, args->out1};
  ref_array a[MOST_ARRAYS];
  bool ok = ref_arrays_open(a, in, CELL_ARGS, out, GRU_OUTS);
  int64_t width = args->hx->dl.shape[1];
  for (int64_t i = 0; ok && i < a[STATE].count; i++) {
    int64_t column = i % width, row = i / width, at = row * GRU_GATES * width + column, last = NEW_GATE * width;
    ref_real r = sigmoid(gate(a, at, column)), z = sigmoid(gate(a, at + width, column + width));
    ref_real hidden = a[HIDDEN].re[at + last] + (a[HIDDEN_BIAS].re ? a[HIDDEN_BIAS].re[column + last] : 0);
    ref_real new =
        tanhl(a[INPUT].re[at + last] + (a[INPUT_BIAS].re ? a[INPUT_BIAS].re[column + last] : 0) + r * hidden),
             hx = a[STATE].re[i];
    ref_real kept[GRU_KEPT] = {r, z, new, hx, hidden};
    for (int k = 0; k < GRU_KEPT; k++) a[CELL_ARGS + GRU_WORKSPACE].re[(row * GRU_KEPT + k) * width + column] = kept[k];
    a[CELL_ARGS + HY].re[i] = new + z *(hx - new);
  }
  return ref_arrays_close(a, CELL_ARGS, out, GRU_OUTS, ok);
}

graft_status kernel_thnn_fused_gru_cell_backward(const graft_exec *exec,
                                                 const graft_args_thnn_fused_gru_cell_backward *args) {
  enum { INS = GRU_BACK(has_bias) };
  const graft_tensor_desc *in[] = {args->grad_hy, args->workspace};
  const graft_tensor_desc *out[] = {args->out0, args->out1, args->out2, args->out3, args->out4};
  ref_array a[MOST_ARRAYS];
  bool ok = ref_arrays_open(a, in, INS, out, GRU_BACK_OUTS);
  int64_t width = args->grad_hy->dl.shape[1];
  for (int64_t i = 0; ok && i < a[GRU_BACK(grad_hy)].count; i++) {
    int64_t column = i % width, row = i / width, at = row * GRU_GATES * width + column;
    ref_real kept[GRU_KEPT], g = a[GRU_BACK(grad_hy)].re[i];
    for (int k = 0; k < GRU_KEPT; k++) kept[k] = a[GRU_BACK(workspace)].re[(row * GRU_KEPT + k) * width + column];
    ref_real r = kept[RESET_GATE], z = kept[UPDATE_GATE], new = kept[NEW_GATE];
    ref_real dn = g * (1 - z) * (1 - new *new), dz = g * (kept[OLD_STATE] - new) * (1 - z) * z;
    ref_real dr = dn * kept[RESET_PART] * (1 - r) * r;
    ref_real to_input[] = {dr, dz, dn}, to_hidden[] = {dr, dz, dn * r};
    for (int k = 0; k < GRU_GATES; k++) {
      a[INS + TO_INPUT].re[at + k * width] = to_input[k];
      a[INS + TO_HIDDEN].re[at + k * width] = to_hidden[k];
    }
    a[INS + TO_HX].re[i] = g * z;
  }
  for (int k = 0; ok && k < 2 && args->out3; k++)
    sum_columns(args->out0->dl.dtype, &a[INS + TO_INPUT + k], &a[INS + TO_INPUT_BIAS + k]);
  return ref_arrays_close(a, INS, out, GRU_BACK_OUTS, ok);
}

/* --- the same on tensors, for decompositions and for gradients of gradients --- */

graft_tensor *rnn_part(fx *s, graft_tensor *t, int64_t k, int64_t width) {
  int64_t from = k * width, to = from + width;
  return t ? fx_slice_Tensor(s, t, 1, &from, &to, 1) : NULL;
}

static graft_tensor *plus(fx *s, graft_tensor *a, graft_tensor *b) {
  return a && b ? fx_add(s, a, b) : a ? a : b;
}

/* y (1 - y): the slope of sigmoid. */
static graft_tensor *sigmoid_slope(fx *s, graft_tensor *y) {
  return fx_sub(s, y, fx_mul(s, y, y));
}
graft_tensor *rnn_tanh_slope(fx *s, graft_tensor *y) {
  return fx_adds(s, fx_neg(s, fx_mul(s, y, y)), 1);
}

rnn_lstm rnn_lstm_of(fx *s, graft_tensor *sum, graft_tensor *cx) {
  rnn_lstm l;
  for (int k = 0; k < LSTM_GATES; k++) {
    graft_tensor *x = rnn_part(s, sum, k, cx ? cx->sizes[1] : 0);
    l.gates[k] = k == CELL_GATE ? fx_tanh(s, x) : fx_sigmoid(s, x);
  }
  graft_tensor *kept = fx_mul(s, l.gates[FORGET_GATE], cx);
  l.cy = fx_add(s, kept, fx_mul(s, l.gates[INPUT_GATE], l.gates[CELL_GATE]));
  return l;
}

graft_tensor *rnn_lstm_output(fx *s, const rnn_lstm *l) {
  return fx_mul(s, l->gates[OUTPUT_GATE], fx_tanh(s, l->cy));
}

static rnn_lstm lstm_of(fx *s, const graft_value *args) {
  const in_thnn_fused_lstm_cell in = in_thnn_fused_lstm_cell_of(args);
  graft_tensor *sum = fx_add(s, in.input_gates, in.hidden_gates);
  if (in.input_bias) sum = fx_add(s, sum, fx_add(s, in.input_bias, in.hidden_bias));
  return rnn_lstm_of(s, sum, in.cx);
}

static void decompose_lstm(fx *s, const op_call *c, graft_tensor **outs) {
  rnn_lstm l = lstm_of(s, c->args);
  outs[HY] = rnn_lstm_output(s, &l);
  outs[CY] = l.cy;
  if (!s->status) outs[LSTM_WORKSPACE] = fx_cat(s, l.gates, LSTM_GATES, 1);
}

void rnn_lstm_backward(fx *s, const rnn_lstm *l, graft_tensor *cx, graft_tensor *gh, graft_tensor *gc,
                       graft_tensor **gates, graft_tensor **to_cx) {
  graft_tensor *const *g = l->gates, *t = fx_tanh(s, l->cy), *d[LSTM_GATES];
  if (gh) gc = plus(s, gc, fx_mul(s, fx_mul(s, gh, g[OUTPUT_GATE]), rnn_tanh_slope(s, t)));
  d[INPUT_GATE] = fx_mul(s, fx_mul(s, gc, g[CELL_GATE]), sigmoid_slope(s, g[INPUT_GATE]));
  d[FORGET_GATE] = fx_mul(s, fx_mul(s, gc, cx), sigmoid_slope(s, g[FORGET_GATE]));
  d[CELL_GATE] = fx_mul(s, fx_mul(s, gc, g[INPUT_GATE]), rnn_tanh_slope(s, g[CELL_GATE]));
  d[OUTPUT_GATE] = gh ? fx_mul(s, fx_mul(s, gh, t), sigmoid_slope(s, g[OUTPUT_GATE])) : fx_zeros_like(s, d[INPUT_GATE]);
  if (!s->status) *gates = fx_cat(s, d, LSTM_GATES, 1);
  *to_cx = fx_mul(s, gc, g[FORGET_GATE]);
}

static void decompose_lstm_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_thnn_fused_lstm_cell_backward_impl in = in_thnn_fused_lstm_cell_backward_impl_of(c->args);
  rnn_lstm l = {.cy = in.cy};
  for (int k = 0; k < LSTM_GATES; k++) l.gates[k] = rnn_part(s, in.workspace, k, in.cx->sizes[1]);
  rnn_lstm_backward(s, &l, in.cx, in.grad_hy, in.grad_cy, &outs[TO_GATES], &outs[TO_CX]);
  if (c->out_wanted[TO_BIAS]) outs[TO_BIAS] = fx_sum(s, outs[TO_GATES], 1, false);
}

rnn_gru rnn_gru_of(fx *s, graft_tensor *input, graft_tensor *hidden, graft_tensor *hx) {
  graft_tensor *both = fx_add(s, input, hidden);
  int64_t width = hx ? hx->sizes[1] : 0;
  rnn_gru g = {.r = fx_sigmoid(s, rnn_part(s, both, RESET_GATE, width)),
               .z = fx_sigmoid(s, rnn_part(s, both, UPDATE_GATE, width)),
               .hx = hx,
               .hidden = rnn_part(s, hidden, NEW_GATE, width)};
  g.new = fx_tanh(s, fx_add(s, rnn_part(s, input, NEW_GATE, width), fx_mul(s, g.r, g.hidden)));
  return g;
}

graft_tensor *rnn_gru_output(fx *s, const rnn_gru *g) {
  return fx_add(s, g->new, fx_mul(s, g->z, fx_sub(s, g->hx, g->new)));
}

static rnn_gru gru_of(fx *s, const graft_value *args) {
  const in_thnn_fused_gru_cell in = in_thnn_fused_gru_cell_of(args);
  graft_tensor *input = in.input_gates, *hidden = in.hidden_gates;
  if (in.input_bias) {
    input = fx_add(s, input, in.input_bias);
    hidden = fx_add(s, hidden, in.hidden_bias);
  }
  return rnn_gru_of(s, input, hidden, in.hx);
}

static void decompose_gru(fx *s, const op_call *c, graft_tensor **outs) {
  rnn_gru g = gru_of(s, c->args);
  outs[HY] = rnn_gru_output(s, &g);
  graft_tensor *kept[] = {g.r, g.z, g.new, g.hx, g.hidden};
  if (!s->status) outs[GRU_WORKSPACE] = fx_cat(s, kept, GRU_KEPT, 1);
}

void rnn_gru_backward(fx *s, const rnn_gru *g, graft_tensor *grad, graft_tensor **to_input, graft_tensor **to_hidden,
                      graft_tensor **to_hx) {
  graft_tensor *kept = fx_mul(s, grad, g->z);
  graft_tensor *dn = fx_mul(s, fx_sub(s, grad, kept), rnn_tanh_slope(s, g->new));
  graft_tensor *dz = fx_mul(s, fx_mul(s, grad, fx_sub(s, g->hx, g->new)), sigmoid_slope(s, g->z));
  graft_tensor *dr = fx_mul(s, fx_mul(s, dn, g->hidden), sigmoid_slope(s, g->r)), *dh = fx_mul(s, dn, g->r);
  *to_hx = kept;
  if (s->status) return;
  *to_input = fx_cat(s, (graft_tensor *[]){dr, dz, dn}, GRU_GATES, 1);
  *to_hidden = fx_cat(s, (graft_tensor *[]){dr, dz, dh}, GRU_GATES, 1);
}

static void decompose_gru_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_thnn_fused_gru_cell_backward in = in_thnn_fused_gru_cell_backward_of(c->args);
  graft_tensor *kept[GRU_KEPT];
  for (int k = 0; k < GRU_KEPT; k++) kept[k] = rnn_part(s, in.workspace, k, in.grad_hy->sizes[1]);
  rnn_gru g = {kept[RESET_GATE], kept[UPDATE_GATE], kept[NEW_GATE], kept[OLD_STATE], kept[RESET_PART]};
  rnn_gru_backward(s, &g, in.grad_hy, &outs[TO_INPUT], &outs[TO_HIDDEN], &outs[TO_HX]);
  for (int i = 0; i < 2 && c->out_wanted[TO_INPUT_BIAS + i]; i++) {
    outs[TO_INPUT_BIAS + i] = fx_sum(s, outs[TO_INPUT + i], 1, false);
  }
}

/* --- gradients: by the backward op, or by formula where they are to be differentiated again --- */

static void vjp_lstm(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *gates = NULL, *to_cx = NULL, *bias = NULL, *cx = vjp_arg(v, STATE);
  bool wants_bias = vjp_needs(v, INPUT_BIAS) || vjp_needs(v, HIDDEN_BIAS);
  if (v->create_graph) {
    rnn_lstm l = lstm_of(s, v->args);
    rnn_lstm_backward(s, &l, cx, v->g[HY], v->g[CY], &gates, &to_cx);
    if (wants_bias) bias = fx_sum(s, gates, 1, false);
  } else {
    fx_thnn_fused_lstm_cell_backward_impl(s, v->g[HY], v->g[CY], cx, v->outs[CY], v->outs[LSTM_WORKSPACE], wants_bias,
                                          &gates, &to_cx, &bias);
  }
  graft_tensor *results[] = {gates, gates, to_cx, bias, bias};
  for (int i = 0; i < CELL_ARGS; i++) v->results[i] = vjp_needs(v, i) ? results[i] : NULL;
}

static void vjp_gru(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *d[GRU_BACK_OUTS] = {NULL};
  bool wants_bias = vjp_needs(v, INPUT_BIAS) || vjp_needs(v, HIDDEN_BIAS);
  if (!v->g[HY]) return;
  if (v->create_graph) {
    rnn_gru g = gru_of(s, v->args);
    rnn_gru_backward(s, &g, v->g[HY], &d[TO_INPUT], &d[TO_HIDDEN], &d[TO_HX]);
    for (int i = 0; i < 2 && wants_bias; i++) d[TO_INPUT_BIAS + i] = fx_sum(s, d[TO_INPUT + i], 1, false);
  } else {
    fx_thnn_fused_gru_cell_backward(s, v->g[HY], v->outs[GRU_WORKSPACE], wants_bias, &d[TO_INPUT], &d[TO_HIDDEN],
                                    &d[TO_HX], &d[TO_INPUT_BIAS], &d[TO_HIDDEN_BIAS]);
  }
  for (int i = 0; i < CELL_ARGS; i++) v->results[i] = vjp_needs(v, i) ? d[i] : NULL;
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(thnn_fused_lstm_cell),
     .roles = "vvvvv",
     .infer = infer_lstm,
     .decompose = decompose_lstm,
     .vjp = vjp_lstm,
     .saves = OP_SAVE_ARGS(thnn_fused_lstm_cell, input_gates, hidden_gates, cx, input_bias, hidden_bias) |
              OP_SAVE_OUT(thnn_fused_lstm_cell, out1) | OP_SAVE_OUT(thnn_fused_lstm_cell, out2),
     .without_grad = OP_OUT_BIT(thnn_fused_lstm_cell, out2)},
    {.op_id = OP_WITH_KERNEL(thnn_fused_lstm_cell_backward_impl),
     .roles = "vvvvv",
     .infer = infer_lstm_backward,
     .decompose = decompose_lstm_backward},
    {.op_id = OP_WITH_KERNEL(thnn_fused_gru_cell),
     .roles = "vvvvv",
     .infer = infer_gru,
     .decompose = decompose_gru,
     .vjp = vjp_gru,
     .saves = OP_SAVE_ARGS(thnn_fused_gru_cell, input_gates, hidden_gates, hx, input_bias, hidden_bias) |
              OP_SAVE_OUT(thnn_fused_gru_cell, out1),
     .without_grad = OP_OUT_BIT(thnn_fused_gru_cell, out1)},
    {.op_id = OP_WITH_KERNEL(thnn_fused_gru_cell_backward),
     .roles = "vv",
     .infer = infer_gru_backward,
     .decompose = decompose_gru_backward},
};
OP_TABLE(rnn, defs)
