/* All steps of one direction of a recurrent layer in one op, and its gradient but for what products over all steps
 * give: those of weight and bias are made of the gradients of the gates. What the ops are is said in the headers, above
 * the table train. */
#include <string.h>

#include "base/arena.h"
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"
#include "ops/rnn/rnn.h"

/* As GRAFT_STR_RNN_MODE_* count them. */
enum { LSTM = GRAFT_STR_RNN_MODE_LSTM, GRU = GRAFT_STR_RNN_MODE_GRU, TANH = GRAFT_STR_RNN_MODE_TANH };
enum { RELU = GRAFT_STR_RNN_MODE_RELU, MODES };

static const struct {
  const char *name;
  int gates, kept; /* how many parts rows of gates and of the reserve have */
} modes[MODES] = {[LSTM] = {"lstm", 4, 5}, [GRU] = {"gru", 3, 4}, [TANH] = {"tanh", 1, 0}, [RELU] = {"relu", 1, 0}};

/* Behind the gates in a row of the reserve. */
enum { KEPT_CELL = LSTM_GATES, KEPT_HIDDEN = GRU_GATES };

#define ARG(name)  ARG_rnn_layer_##name
#define BACK(name) ARG_rnn_layer_backward_##name
enum { OUTPUT = OUT_rnn_layer_output, HY = OUT_rnn_layer_hy, CY = OUT_rnn_layer_cy, RESERVE = OUT_rnn_layer_reserve };
enum {
  TO_INPUT = OUT_rnn_layer_backward_grad_input_gates,
  TO_HIDDEN = OUT_rnn_layer_backward_grad_hidden_gates,
  TO_HX = OUT_rnn_layer_backward_grad_hx,
  TO_CX = OUT_rnn_layer_backward_grad_cx,
  OUTS
};

static int mode_of(const char *name) {
  for (int mode = LSTM; mode < MODES; mode++) {
    if (name && !strcmp(name, modes[mode].name)) return mode;
  }
  return 0;
}

/* Where step number n stands. */
static int64_t place_of(int64_t n, int64_t steps, bool reverse) {
  return reverse ? steps - 1 - n : n;
}

/* --- rules --- */

typedef struct sizes {
  int mode;
  int64_t steps, batch, width;
} sizes;

static graft_status check_sizes(const op_call *c, int arg, int32_t ndim, const int64_t *of) {
  const graft_tensor *t = op_tensor(c, arg);
  bool same = !t || t->ndim == ndim;
  for (int i = 0; t && same && i < ndim; i++) same = t->sizes[i] == of[i];
  if (same) return GRAFT_OK;
  if (ndim == 1) return op_refuse(c, arg, "[%lld]", (long long)of[0]);
  if (ndim == 2) return op_refuse(c, arg, "[%lld,%lld]", (long long)of[0], (long long)of[1]);
  return op_refuse(c, arg, "[%lld,%lld,%lld]", (long long)of[0], (long long)of[1], (long long)of[2]);
}

/* The mode, one floating dtype for all of the first `count` arguments, and the sizes: `steps` names a tensor whose
 * first dim they are. */
static graft_status check_layer(op_call *c, const char *mode, int count, int steps, int hx, int cx, sizes *s) {
  s->mode = mode_of(mode);
  for (int i = 0; i < count; i++) {
    const graft_tensor *t = op_tensor(c, i);
    if (!t) continue;
    graft_status status = op_check_floating(c, i);
    if (status) return status;
    if (!c->compute) c->compute = t->dtype;
    if (t->dtype != c->compute) return op_error(c, "dtypes differ (%s)", op_show_tensors(c));
  }
  const graft_tensor *state = op_tensor(c, hx), *of = op_tensor(c, steps);
  if (state->ndim != 2) return op_refuse(c, hx, "a matrix");
  if (of->ndim != 3) return op_refuse(c, steps, "three dims");
  s->steps = of->sizes[0], s->batch = state->sizes[0], s->width = state->sizes[1];
  if (op_absent(c, cx) == (s->mode == LSTM)) return op_error(c, "expected cx for lstm, and for no other mode");
  return check_sizes(c, cx, 2, state->sizes);
}

static graft_status infer_layer(op_call *c) {
  const in_rnn_layer in = in_rnn_layer_of(c->args);
  sizes s;
  graft_status status = check_layer(c, in.mode, ARG(mode), ARG(input_gates), ARG(hx), ARG(cx), &s);
  if (status) return status;
  const int64_t gates = modes[s.mode].gates * s.width, kept = modes[s.mode].kept * s.width;
  status = check_sizes(c, ARG(input_gates), 3, (int64_t[]){s.steps, s.batch, gates});
  if (!status) status = check_sizes(c, ARG(weight), 2, (int64_t[]){gates, s.width});
  if (!status) status = check_sizes(c, ARG(bias), 1, &gates);
  if (status) return status;
  c->nouts = RESERVE + 1;
  op_out(c, OUTPUT, c->compute, 3, (int64_t[]){s.steps, s.batch, s.width});
  op_out(c, HY, c->compute, 2, in.hx->sizes);
  if (in.cx) op_out(c, CY, c->compute, 2, in.hx->sizes);
  if (kept && in.train) op_out(c, RESERVE, c->compute, 3, (int64_t[]){s.steps, s.batch, kept});
  return GRAFT_OK;
}

static graft_status infer_backward(op_call *c) {
  const in_rnn_layer_backward in = in_rnn_layer_backward_of(c->args);
  sizes s;
  graft_status status = check_layer(c, in.mode, BACK(mode), BACK(output), BACK(hx), BACK(cx), &s);
  if (status) return status;
  const int64_t gates = modes[s.mode].gates * s.width, kept = modes[s.mode].kept * s.width;
  const int64_t output[] = {s.steps, s.batch, s.width};
  if (op_absent(c, BACK(reserve)) != !kept)
    return op_error(c, "expected a reserve for lstm and gru, and no other mode");
  if (s.mode != LSTM && in.grad_cy) return op_error(c, "expected grad_cy for lstm alone");
  status = check_sizes(c, BACK(output), 3, output);
  if (!status) status = check_sizes(c, BACK(grad_output), 3, output);
  if (!status) status = check_sizes(c, BACK(grad_hy), 2, in.hx->sizes);
  if (!status) status = check_sizes(c, BACK(grad_cy), 2, in.hx->sizes);
  if (!status) status = check_sizes(c, BACK(weight), 2, (int64_t[]){gates, s.width});
  if (!status) status = check_sizes(c, BACK(reserve), 3, (int64_t[]){s.steps, s.batch, kept});
  if (status) return status;
  c->nouts = OUTS;
  op_out(c, TO_INPUT, c->compute, 3, (int64_t[]){s.steps, s.batch, gates});
  if (s.mode == GRU) op_out(c, TO_HIDDEN, c->compute, 3, (int64_t[]){s.steps, s.batch, gates});
  op_out(c, TO_HX, c->compute, 2, in.hx->sizes);
  if (in.cx) op_out(c, TO_CX, c->compute, 2, in.hx->sizes);
  return GRAFT_OK;
}

/* --- kernels --- */

enum { MOST_ARRAYS = 13, LAYER_INS = ARG(mode), BACK_INS = BACK(mode) };

/* What both directions of a kernel know: arrays as the arguments and results stand, the state that goes from step to
 * step, and what comes to the gates, or to their gradients. */
typedef struct run {
  int mode;
  bool reverse;
  int64_t steps, batch, width, gates, kept;
  graft_dtype dtype;
  ref_array a[MOST_ARRAYS], state, cell, sums;
} run;

static bool run_open(run *r, const graft_tensor_desc *output, int mode, bool reverse) {
  const int64_t *shape = output->dl.shape;
  r->mode = mode, r->reverse = reverse, r->dtype = output->dl.dtype;
  r->steps = shape[0], r->batch = shape[1], r->width = shape[2];
  r->gates = modes[mode].gates * r->width, r->kept = modes[mode].kept * r->width;
  r->state = ref_new(r->batch * r->width, false);
  r->cell = ref_new(r->batch * r->width, false);
  r->sums = ref_new(r->batch * r->gates, false);
  return r->state.re && r->cell.re && r->sums.re;
}

static graft_status run_close(run *r, int ins, const graft_tensor_desc *const *out, int outs, bool ok) {
  ref_free(&r->state), ref_free(&r->cell), ref_free(&r->sums);
  return ref_arrays_close(r->a, ins, out, outs, ok);
}

static ref_real sigmoid(ref_real x) {
  return 1 / (1 + expl(-x));
}

/* One number of the state: its gates from x and h, what the input and the state add to them. */
static void step_number(run *r, const ref_real *x, const ref_real *h, ref_real *kept, ref_real *state, ref_real *cell) {
  const int64_t w = r->width;
  if (r->mode == LSTM) {
    ref_real g[LSTM_GATES];
    for (int k = 0; k < LSTM_GATES; k++)
      g[k] = k == CELL_GATE ? tanhl(x[k * w] + h[k * w]) : sigmoid(x[k * w] + h[k * w]);
    *cell = g[FORGET_GATE] * *cell + g[INPUT_GATE] * g[CELL_GATE];
    *state = g[OUTPUT_GATE] * tanhl(*cell);
    for (int k = 0; kept && k < LSTM_GATES; k++) kept[k * w] = g[k];
    if (kept) kept[KEPT_CELL * w] = *cell;
  } else if (r->mode == GRU) {
    ref_real reset = sigmoid(x[0] + h[0]), update = sigmoid(x[w] + h[w]), hidden = h[NEW_GATE * w];
    ref_real new = tanhl(x[NEW_GATE * w] + reset * hidden);
    *state = new + update *(*state - new);
    const ref_real all[] = {reset, update, new, hidden};
    for (int k = 0; kept && k <= KEPT_HIDDEN; k++) kept[k * w] = all[k];
  } else {
    *state = r->mode == TANH ? tanhl(x[0] + h[0]) : x[0] + h[0] < 0 ? 0 : x[0] + h[0];
  }
}

graft_status kernel_rnn_layer(const graft_exec *exec, const graft_args_rnn_layer *args) {
  const graft_tensor_desc *in[] = {args->input_gates, args->hx, args->cx, args->weight, args->bias};
  const graft_tensor_desc *out[] = {args->output, args->hy, args->cy, args->reserve};
  run r;
  bool opened = run_open(&r, args->output, (int)args->mode, args->reverse);
  bool ok = ref_arrays_open(r.a, in, LAYER_INS, out, RESERVE + 1) && opened;
  ref_array *outs = r.a + LAYER_INS;
  for (int64_t i = 0; ok && i < r.state.count; i++) {
    r.state.re[i] = r.a[ARG(hx)].re[i];
    if (r.mode == LSTM) r.cell.re[i] = r.a[ARG(cx)].re[i];
  }
  for (int64_t n = 0; ok && n < r.steps; n++) {
    int64_t t = place_of(n, r.steps, r.reverse);
    for (int64_t i = 0; i < r.batch * r.gates; i++) {
      int64_t row = i / r.gates, gate = i % r.gates;
      r.sums.re[i] = ref_dot(r.dtype, r.state.re + row * r.width, 1, r.a[ARG(weight)].re + gate * r.width, 1, r.width);
      if (args->bias) r.sums.re[i] += r.a[ARG(bias)].re[gate];
    }
    for (int64_t i = 0; i < r.batch * r.width; i++) {
      int64_t row = i / r.width, column = i % r.width, at = t * r.batch + row;
      ref_real *kept = args->reserve ? outs[RESERVE].re + at * r.kept + column : NULL;
      step_number(&r, r.a[ARG(input_gates)].re + at * r.gates + column, r.sums.re + row * r.gates + column, kept,
                  &r.state.re[i], &r.cell.re[i]);
      outs[OUTPUT].re[at * r.width + column] = r.state.re[i];
    }
  }
  for (int64_t i = 0; ok && i < r.state.count; i++) {
    outs[HY].re[i] = r.state.re[i];
    if (r.mode == LSTM) outs[CY].re[i] = r.cell.re[i];
  }
  return run_close(&r, LAYER_INS, out, RESERVE + 1, ok);
}

/* Number i of the batch before step n, of what goes from step to step: `first`, then of each step's row a column. */
static ref_real before(const run *r, int64_t n, int64_t i, const ref_array *first, const ref_array *rows, int64_t size,
                       int64_t part) {
  if (n == 0) return first->re[i];
  int64_t t = place_of(n - 1, r->steps, r->reverse);
  return rows->re[(t * r->batch + i / r->width) * size + part * r->width + i % r->width];
}

/* The gradients of one number's gates from those of the new state and cell, which become those of the old ones but for
 * what comes through the gates. */
static void slope_number(const run *r, int64_t n, int64_t i, ref_real *to, ref_real *hidden) {
  int64_t t = place_of(n, r->steps, r->reverse), row = t * r->batch + i / r->width, column = i % r->width, w = r->width;
  const ref_real *kept = r->kept ? r->a[BACK(reserve)].re + row * r->kept + column : NULL;
  ref_real g = r->state.re[i], out = r->a[BACK(output)].re[row * w + column];
  if (r->a[BACK(grad_output)].re) g += r->a[BACK(grad_output)].re[row * w + column];
  r->state.re[i] = 0;
  if (r->mode == LSTM) {
    ref_real in = kept[0], forget = kept[w], cell = kept[2 * w], o = kept[3 * w], tanh = tanhl(kept[KEPT_CELL * w]);
    ref_real old = before(r, n, i, &r->a[BACK(cx)], &r->a[BACK(reserve)], r->kept, KEPT_CELL);
    ref_real gc = r->cell.re[i] + g * o * (1 - tanh * tanh);
    to[0] = gc * cell * (1 - in) * in;
    to[w] = gc * old * (1 - forget) * forget;
    to[2 * w] = gc * in * (1 - cell * cell);
    to[3 * w] = g * tanh * (1 - o) * o;
    r->cell.re[i] = gc * forget;
  } else if (r->mode == GRU) {
    ref_real reset = kept[0], update = kept[w], new = kept[2 * w], part = kept[KEPT_HIDDEN * w];
    ref_real old = before(r, n, i, &r->a[BACK(hx)], &r->a[BACK(output)], w, 0);
    to[2 * w] = g * (1 - update) * (1 - new *new);
    to[w] = g * (old - new) * (1 - update) * update;
    to[0] = to[2 * w] * part * (1 - reset) * reset;
    r->state.re[i] = g * update;
    if (hidden) hidden[0] = to[0], hidden[w] = to[w], hidden[2 * w] = to[2 * w] * reset;
  } else {
    to[0] = r->mode == TANH ? g * (1 - out * out) : out <= 0 ? 0 : g;
  }
}

graft_status kernel_rnn_layer_backward(const graft_exec *exec, const graft_args_rnn_layer_backward *args) {
  const graft_tensor_desc *in[] = {args->grad_output, args->grad_hy, args->grad_cy, args->output,
                                   args->hx,          args->cx,      args->weight,  args->reserve};
  const graft_tensor_desc *out[] = {args->grad_input_gates, args->grad_hidden_gates, args->grad_hx, args->grad_cx};
  run r;
  bool opened = run_open(&r, args->output, (int)args->mode, args->reverse);
  bool ok = ref_arrays_open(r.a, in, BACK_INS, out, OUTS) && opened;
  ref_array *outs = r.a + BACK_INS, *through = &outs[r.mode == GRU ? TO_HIDDEN : TO_INPUT];
  for (int64_t i = 0; ok && i < r.state.count; i++) {
    if (args->grad_hy) r.state.re[i] = r.a[BACK(grad_hy)].re[i];
    if (args->grad_cy) r.cell.re[i] = r.a[BACK(grad_cy)].re[i];
  }
  for (int64_t n = r.steps - 1; ok && n >= 0; n--) {
    int64_t first = place_of(n, r.steps, r.reverse) * r.batch * r.gates;
    for (int64_t i = 0; i < r.state.count; i++) {
      int64_t at = first + i / r.width * r.gates + i % r.width;
      slope_number(&r, n, i, outs[TO_INPUT].re + at, r.mode == GRU ? outs[TO_HIDDEN].re + at : NULL);
    }
    for (int64_t i = 0; i < r.state.count; i++) {
      r.state.re[i] += ref_dot(r.dtype, through->re + first + i / r.width * r.gates, 1,
                               r.a[BACK(weight)].re + i % r.width, r.width, r.gates);
    }
  }
  for (int64_t i = 0; ok && i < r.state.count; i++) {
    outs[TO_HX].re[i] = r.state.re[i];
    if (r.mode == LSTM) outs[TO_CX].re[i] = r.cell.re[i];
  }
  return run_close(&r, BACK_INS, out, OUTS, ok);
}

/* --- the same on tensors --- */

/* A layer, step by step; `room` has the lists. */
typedef struct layer {
  fx *s;
  int mode;
  bool reverse;
  int64_t steps, width;
  graft_tensor *weight, *transposed, *bias;
  arena room;
} layer;

static layer layer_of(fx *s, const char *mode, bool reverse, graft_tensor *all, graft_tensor *weight,
                      graft_tensor *bias) {
  return (layer){.s = s,
                 .mode = mode_of(mode),
                 .reverse = reverse,
                 .steps = all->sizes[0],
                 .width = weight->sizes[1],
                 .weight = weight,
                 .transposed = fx_transpose(s, weight, 0, 1),
                 .bias = bias};
}

static graft_tensor **list_of(layer *l) {
  graft_tensor **list = arena_take(&l->room, (size_t)l->steps * sizeof *list);
  if (!list) fx_fail(l->s, GRAFT_OUT_OF_MEMORY);
  return list;
}

static graft_tensor *at_step(layer *l, graft_tensor *t, int64_t n) {
  return t && !l->s->status ? fx_select_int(l->s, t, 0, place_of(n, l->steps, l->reverse)) : NULL;
}

static void put_step(layer *l, graft_tensor **list, int64_t n, graft_tensor *t) {
  if (list && t) list[place_of(n, l->steps, l->reverse)] = fx_unsqueeze(l->s, t, 0);
}

static graft_tensor *all_steps(layer *l, graft_tensor **list, graft_tensor *like, int64_t columns) {
  if (!list) return NULL;
  if (l->steps) return fx_cat(l->s, list, (uint32_t)l->steps, 0);
  return fx_filled(l->s, like, 3, (int64_t[]){0, like->sizes[0], columns}, 0, like->dtype);
}

static graft_tensor *hidden_of(layer *l, graft_tensor *state) {
  if (!l->bias) return fx_mm(l->s, state, l->transposed);
  return fx_addmm(l->s, l->bias, state, l->transposed, graft_scalar_int(1), graft_scalar_int(1));
}

/* A step by the fused cells: the new state, the new cell, and a row of the reserve. */
static graft_tensor *fused_step(layer *l, graft_tensor *input, graft_tensor *state, graft_tensor **cell,
                                graft_tensor **kept) {
  fx *s = l->s;
  graft_tensor *hidden = hidden_of(l, state), *hy = NULL, *workspace = NULL;
  if (l->mode == LSTM) {
    fx_thnn_fused_lstm_cell(s, input, hidden, *cell, NULL, NULL, &hy, cell, &workspace);
    if (kept && !s->status) *kept = fx_cat(s, (graft_tensor *[]){workspace, *cell}, 2, 1);
  } else if (l->mode == GRU) {
    fx_thnn_fused_gru_cell(s, input, hidden, state, NULL, NULL, &hy, &workspace);
    /* without the old state, which is in the output */
    graft_tensor *gates = NULL;
    int64_t end = GRU_GATES * l->width, zero = 0;
    if (kept && !s->status) gates = fx_slice_Tensor(s, workspace, 1, &zero, &end, 1);
    if (kept && !s->status)
      *kept = fx_cat(s, (graft_tensor *[]){gates, rnn_part(s, workspace, GRU_GATES + 1, l->width)}, 2, 1);
  } else {
    graft_tensor *sum = fx_add(s, input, hidden);
    hy = l->mode == TANH ? fx_tanh(s, sum) : fx_relu(s, sum);
  }
  return hy;
}

static void decompose_layer(fx *s, const op_call *c, graft_tensor **outs) {
  const in_rnn_layer in = in_rnn_layer_of(c->args);
  layer l = layer_of(s, in.mode, in.reverse, in.input_gates, in.weight, in.bias);
  graft_tensor **output = list_of(&l), **reserve = c->out_wanted[RESERVE] ? list_of(&l) : NULL;
  graft_tensor *state = in.hx, *cell = in.cx, *kept = NULL;
  for (int64_t n = 0; n < l.steps && !s->status; n++) {
    state = fused_step(&l, at_step(&l, in.input_gates, n), state, &cell, reserve ? &kept : NULL);
    put_step(&l, output, n, state);
    put_step(&l, reserve, n, kept);
  }
  outs[OUTPUT] = all_steps(&l, output, in.hx, l.width);
  outs[HY] = l.steps ? state : fx_clone(s, in.hx, GRAFT_FORMAT_PRESERVE);
  if (in.cx) outs[CY] = l.steps ? cell : fx_clone(s, in.cx, GRAFT_FORMAT_PRESERVE);
  if (reserve) outs[RESERVE] = all_steps(&l, reserve, in.hx, modes[l.mode].kept * l.width);
  arena_free(&l.room);
}

/* What a step's gradient is made of. */
typedef struct step {
  graft_tensor *old_cell, *output;
  rnn_lstm lstm;
  rnn_gru gru;
} step;

/* What goes back from step to step, and what comes out at each. */
typedef struct slopes {
  graft_tensor *state, *cell, *input, *hidden;
} slopes;

static graft_tensor *sum_of(fx *s, graft_tensor *a, graft_tensor *b) {
  return a && b ? fx_add(s, a, b) : a ? a : b;
}

static void step_back(layer *l, const step *k, slopes *d) {
  fx *s = l->s;
  graft_tensor *kept = NULL;
  if (l->mode == LSTM) {
    rnn_lstm_backward(s, &k->lstm, k->old_cell, d->state, d->cell, &d->input, &d->cell);
    d->hidden = d->input;
  } else if (l->mode == GRU) {
    rnn_gru_backward(s, &k->gru, d->state, &d->input, &d->hidden, &kept);
  } else {
    d->input = l->mode == TANH ? fx_mul(s, d->state, rnn_tanh_slope(s, k->output))
                               : fx_not_where(s, fx_is(s, GRAFT_OP_LE_TENSOR, k->output, 0), d->state);
    d->hidden = d->input;
  }
  d->state = sum_of(s, fx_mm(s, d->hidden, l->weight), kept);
}

/* The gradients of the gates of all steps, and in d those of the first state and cell. */
static void back(layer *l, const step *steps, graft_tensor *grad_output, slopes *d, graft_tensor *like,
                 graft_tensor **to_input, graft_tensor **to_hidden) {
  graft_tensor **input = list_of(l), **hidden = list_of(l);
  for (int64_t n = l->steps - 1; n >= 0 && !l->s->status; n--) {
    d->state = sum_of(l->s, d->state, at_step(l, grad_output, n));
    step_back(l, &steps[n], d);
    put_step(l, input, n, d->input);
    put_step(l, hidden, n, d->hidden);
  }
  const int64_t columns = modes[l->mode].gates * l->width;
  *to_input = all_steps(l, input, like, columns);
  *to_hidden = l->mode == GRU ? all_steps(l, hidden, like, columns) : *to_input;
}

/* The steps as the reserve keeps them. */
static step *steps_kept(layer *l, const in_rnn_layer_backward *in) {
  fx *s = l->s;
  step *steps = arena_take(&l->room, (size_t)l->steps * sizeof *steps);
  if (!steps) fx_fail(s, GRAFT_OUT_OF_MEMORY);
  for (int64_t n = 0; n < l->steps && !s->status; n++) {
    graft_tensor *row = at_step(l, in->reserve, n);
    step *k = &steps[n];
    k->output = at_step(l, in->output, n);
    if (l->mode == LSTM) {
      for (int g = 0; g < LSTM_GATES; g++) k->lstm.gates[g] = rnn_part(s, row, g, l->width);
      k->lstm.cy = rnn_part(s, row, KEPT_CELL, l->width);
      k->old_cell = n ? steps[n - 1].lstm.cy : in->cx;
    } else if (l->mode == GRU) {
      k->gru = (rnn_gru){rnn_part(s, row, RESET_GATE, l->width), rnn_part(s, row, UPDATE_GATE, l->width),
                         rnn_part(s, row, NEW_GATE, l->width), n ? steps[n - 1].output : in->hx,
                         rnn_part(s, row, KEPT_HIDDEN, l->width)};
    }
  }
  return steps;
}

/* The steps made once more, of ops that have gradients. */
static step *steps_again(layer *l, const in_rnn_layer *in) {
  fx *s = l->s;
  graft_tensor *state = in->hx, *cell = in->cx;
  step *steps = arena_take(&l->room, (size_t)l->steps * sizeof *steps);
  if (!steps) fx_fail(s, GRAFT_OUT_OF_MEMORY);
  for (int64_t n = 0; n < l->steps && !s->status; n++) {
    graft_tensor *input = at_step(l, in->input_gates, n), *hidden = hidden_of(l, state);
    step *k = &steps[n];
    if (l->mode == LSTM) {
      k->old_cell = cell;
      k->lstm = rnn_lstm_of(s, fx_add(s, input, hidden), cell);
      cell = k->lstm.cy;
      state = rnn_lstm_output(s, &k->lstm);
    } else if (l->mode == GRU) {
      k->gru = rnn_gru_of(s, input, hidden, state);
      state = rnn_gru_output(s, &k->gru);
    } else {
      graft_tensor *sum = fx_add(s, input, hidden);
      state = l->mode == TANH ? fx_tanh(s, sum) : fx_relu(s, sum);
    }
    k->output = state;
  }
  return steps;
}

static graft_tensor *or_zeros(fx *s, graft_tensor *t, graft_tensor *like) {
  return t || !like ? t : fx_zeros_like(s, like);
}

static void decompose_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_rnn_layer_backward in = in_rnn_layer_backward_of(c->args);
  layer l = layer_of(s, in.mode, in.reverse, in.output, in.weight, NULL);
  /* without any gradient those of the gates are zeros */
  slopes d = {.state = in.grad_output || in.grad_cy ? in.grad_hy : or_zeros(s, in.grad_hy, in.hx), .cell = in.grad_cy};
  graft_tensor *to_hidden = NULL;
  back(&l, steps_kept(&l, &in), in.grad_output, &d, in.hx, &outs[TO_INPUT], &to_hidden);
  if (l.mode == GRU) outs[TO_HIDDEN] = to_hidden;
  graft_tensor *state = or_zeros(s, d.state, in.hx), *cell = or_zeros(s, d.cell, in.cx);
  outs[TO_HX] = l.steps || !in.grad_hy ? state : fx_clone(s, state, GRAFT_FORMAT_PRESERVE);
  if (in.cx) outs[TO_CX] = l.steps || !in.grad_cy ? cell : fx_clone(s, cell, GRAFT_FORMAT_PRESERVE);
  arena_free(&l.room);
}

/* --- gradient --- */

/* Steps of t, as rows of one matrix. */
static graft_tensor *rows_of(fx *s, graft_tensor *t, int64_t from, int64_t to) {
  graft_tensor *steps = t ? fx_slice_Tensor(s, t, 0, &from, &to, 1) : NULL;
  if (!steps) return NULL;
  return fx_reshape(s, steps, 2, (int64_t[]){steps->sizes[0] * steps->sizes[1], steps->sizes[2]});
}

/* The states that the steps begin with are the first one and the outputs of all steps but the last. */
static graft_tensor *weight_gradient(fx *s, const in_rnn_layer *in, graft_tensor *output, graft_tensor *gates) {
  if (s->status) return NULL;
  const int64_t steps = gates->sizes[0], begin = in->reverse ? steps - 1 : 0, others = in->reverse ? 0 : 1;
  if (!steps) return fx_zeros_like(s, in->weight);
  graft_tensor *first = fx_transpose(s, rows_of(s, gates, begin, begin + 1), 0, 1);
  graft_tensor *sum = fx_mm(s, first, in->hx);
  if (steps == 1) return sum;
  graft_tensor *rest = fx_transpose(s, rows_of(s, gates, others, others + steps - 1), 0, 1);
  graft_tensor *states = rows_of(s, output, 1 - others, steps - others);
  return fx_addmm(s, sum, rest, states, graft_scalar_int(1), graft_scalar_int(1));
}

static void vjp_layer(op_vjp *v) {
  fx *s = v->s;
  const in_rnn_layer in = in_rnn_layer_of(v->args);
  graft_tensor *to_input = NULL, *to_hidden = NULL, *output = v->outs[OUTPUT];
  slopes d = {.state = v->g[HY], .cell = v->g[CY]};
  if (!v->g[OUTPUT] && !v->g[HY] && !v->g[CY]) return;
  if (v->create_graph || (modes[mode_of(in.mode)].kept && !in.train)) {
    layer l = layer_of(s, in.mode, in.reverse, in.input_gates, in.weight, in.bias);
    step *steps = steps_again(&l, &in);
    graft_tensor **list = list_of(&l);
    for (int64_t n = 0; n < l.steps && !s->status; n++) put_step(&l, list, n, steps[n].output);
    output = all_steps(&l, list, in.hx, l.width);
    back(&l, steps, v->g[OUTPUT], &d, in.hx, &to_input, &to_hidden);
    arena_free(&l.room);
  } else {
    fx_rnn_layer_backward(s, v->g[OUTPUT], v->g[HY], v->g[CY], output, in.hx, in.cx, in.weight, v->outs[RESERVE],
                          in.mode, in.reverse, &to_input, &to_hidden, &d.state, &d.cell);
    if (!to_hidden) to_hidden = to_input;
  }
  if (vjp_needs(v, ARG(input_gates))) v->results[ARG(input_gates)] = to_input;
  if (vjp_needs(v, ARG(hx))) v->results[ARG(hx)] = d.state;
  if (vjp_needs(v, ARG(cx))) v->results[ARG(cx)] = d.cell;
  if (vjp_needs(v, ARG(weight))) v->results[ARG(weight)] = weight_gradient(s, &in, output, to_hidden);
  if (vjp_needs(v, ARG(bias))) v->results[ARG(bias)] = to_hidden ? fx_sum(s, to_hidden, 3, false) : NULL;
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(rnn_layer),
     .roles = "vvvvv",
     .infer = infer_layer,
     .decompose = decompose_layer,
     .vjp = vjp_layer,
     .saves = OP_SAVE_ARGS(rnn_layer, input_gates, hx, cx, weight, bias) | OP_SAVE_OUT(rnn_layer, output) |
              OP_SAVE_OUT(rnn_layer, reserve),
     .without_grad = OP_OUT_BIT(rnn_layer, reserve)},
    {.op_id = OP_WITH_KERNEL(rnn_layer_backward),
     .roles = "vvvvvvvv",
     .infer = infer_backward,
     .decompose = decompose_backward},
};
OP_TABLE(rnn_layer, defs)
