/* Recurrent layers. Limits follow the formulas (near.h) step by step: what a step is off by goes through its products
 * and gates into the next. Kept in full precision from step to step, or rounded where a tensor of the dtype is read. */
#include <stdlib.h>
#include <string.h>

#include "conformance/cases/rows.h"
#include "conformance/judge/near.h"

enum { CF_LSTM, CF_GRU, CF_TANH, CF_RELU, CF_RNN_MODES };
static const struct {
  const char *name;
  int64_t gates, kept;
} cf_modes[CF_RNN_MODES] = {{"lstm", 4, 5}, {"gru", 3, 4}, {"tanh", 1, 1}, {"relu", 1, 1}};

/* A call, and all its steps: lists as the tensors lie, kept as the reserve does (tanh and relu: the sum). What is found
 * on the way has one owner. */
typedef struct cf_layer {
  int mode;
  bool reverse;
  int64_t steps, batch, width, gates, kept;
  const cf_array *x, *hx, *cx, *weight, *bias;
  long double u, stored; /* unit roundoffs: of the arithmetic, and of what is kept in a tensor between two calls */
  cf_near *out, *rows;   /* after each step; and the reserve */
  cf_near *state, *cell; /* between steps; backward: their gradients */
  cf_near *to, *hidden;  /* gradients of gates, as seen from the input and from the state */
} cf_layer;

static cf_near *cf_nears(int64_t count) {
  cf_near *list = calloc((size_t)count + 1, sizeof *list);
  if (!list) abort();
  return list;
}

static cf_layer cf_layer_of(const cf_check *k, const char *rows, long double u, long double stored) {
  cf_layer l = {.x = cf_arg_array(k, "input_gates"),
                .hx = cf_arg_array(k, "hx"),
                .cx = cf_arg_array(k, "cx"),
                .weight = cf_arg_array(k, "weight"),
                .bias = cf_arg_array(k, "bias"),
                .reverse = cf_arg_bool(k->call, "reverse", false),
                .u = u,
                .stored = stored};
  const op_schema *schema = k->call->text.schema;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    if (strcmp(schema->args[i].name, "mode") != 0) continue;
    while (strcmp(cf_modes[l.mode].name, k->call->text.args[i].as.str) != 0) l.mode++;
  }
  l.steps = cf_arg_array(k, rows)->sizes[0], l.batch = l.hx->sizes[0], l.width = l.hx->sizes[1];
  l.gates = cf_modes[l.mode].gates, l.kept = cf_modes[l.mode].kept;
  int64_t numbers = l.batch * l.width;
  l.out = cf_nears(l.steps * numbers), l.rows = cf_nears(l.steps * numbers * l.kept);
  l.state = cf_nears(numbers), l.cell = cf_nears(numbers);
  l.to = cf_nears(l.steps * numbers * l.gates), l.hidden = cf_nears(l.steps * numbers * l.gates);
  return l;
}

static void cf_layer_free(cf_layer *l) {
  cf_near *all[] = {l->out, l->rows, l->state, l->cell, l->to, l->hidden};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static cf_near cf_value_at(const cf_array *a, int64_t i) {
  return cf_exactly(a && a->v ? a->v[i].re : 0);
}

static int64_t cf_step_at(const cf_layer *l, int64_t n) {
  return l->reverse ? l->steps - 1 - n : n;
}

/* A sum of products in any order, with fused multiply-adds or without. */
static cf_near cf_dot(long double u, const cf_near *a, int64_t by, const dt_value *w, int64_t step, int64_t count) {
  cf_near sum = {0, 0};
  long double size = 0;
  for (int64_t i = 0; i < count; i++) {
    sum.v += a[i * by].v * w[i * step].re;
    sum.e += a[i * by].e * fabsl(w[i * step].re);
    size += fabsl(a[i * by].v * w[i * step].re);
  }
  sum.e += cf_growth((long double)count) * u * size;
  return sum;
}

static void cf_keep(const cf_layer *l, int64_t row, int64_t column, const cf_near *kept) {
  for (int64_t g = 0; g < l->kept; g++) l->rows[(row * l->kept + g) * l->width + column] = kept[g];
}

/* Number `column` of one row's step: from `old`, all of that row's states, to its new state. */
static cf_near cf_layer_number(cf_layer *l, int64_t row, int64_t column, const cf_near *old, cf_near *cell) {
  const long double u = l->u;
  cf_near x[4], h[4], sum[4], kept[5], out;
  for (int64_t g = 0; g < l->gates; g++) {
    int64_t gate = g * l->width + column;
    x[g] = cf_value_at(l->x, row * l->gates * l->width + gate);
    h[g] = cf_dot(u, old, 1, l->weight->v + gate * l->width, 1, l->width);
    if (l->bias) h[g] = cf_near_add(u, h[g], cf_value_at(l->bias, gate));
    sum[g] = cf_near_add(u, x[g], h[g]);
    if (l->bias) sum[g].e += u * (fabsl(x[g].v) + fabsl(h[g].v) + fabsl(l->bias->v[gate].re));
  }
  if (l->mode == CF_LSTM) {
    for (int g = 0; g < 4; g++) kept[g] = g == 2 ? cf_near_tanh(u, sum[g]) : cf_near_sigmoid(u, sum[g]);
    *cell = kept[4] = cf_near_add(u, cf_near_mul(u, kept[1], *cell), cf_near_mul(u, kept[0], kept[2]));
    out = cf_near_mul(u, kept[3], cf_near_tanh(u, *cell));
  } else if (l->mode == CF_GRU) {
    kept[0] = cf_near_sigmoid(u, sum[0]), kept[1] = cf_near_sigmoid(u, sum[1]), kept[3] = h[2];
    kept[2] = cf_near_tanh(u, cf_near_add(u, x[2], cf_near_mul(u, kept[0], h[2])));
    out = cf_near_add(u, kept[2], cf_near_mul(u, kept[1], cf_near_sub(u, old[column], kept[2])));
  } else {
    kept[0] = sum[0];
    out = l->mode == CF_TANH ? cf_near_tanh(u, sum[0]) : (cf_near){fmaxl(sum[0].v, 0), sum[0].e};
  }
  cf_keep(l, row, column, kept);
  return out;
}

static void cf_layer_forward(cf_layer *l) {
  for (int64_t i = 0; i < l->batch * l->width; i++) {
    l->state[i] = cf_value_at(l->hx, i);
    l->cell[i] = cf_value_at(l->cx, i);
  }
  for (int64_t n = 0; n < l->steps; n++) {
    int64_t first = cf_step_at(l, n) * l->batch;
    for (int64_t i = 0; i < l->batch * l->width; i++) {
      int64_t r = i / l->width;
      l->out[first * l->width + i] = cf_layer_number(l, first + r, i % l->width, l->state + r * l->width, &l->cell[i]);
    }
    for (int64_t i = 0; i < l->batch * l->width; i++) l->state[i] = l->out[first * l->width + i];
  }
}

static long double cf_stored(graft_dtype dtype, cf_near v) {
  return v.e + cf_ulp(dtype, v.v) / 2;
}

static void cf_l_layer(const cf_check *k, uint32_t out, long double *limits) {
  graft_dtype dtype = k->dtypes[out];
  cf_layer l = cf_layer_of(k, "input_gates", cf_u_acc(dtype), 0);
  cf_layer_forward(&l);
  const cf_near *of[] = {l.out, l.state, l.cell, l.rows};
  for (int64_t i = 0; i < k->outs[out].numel; i++) limits[i] = cf_stored(dtype, of[out][i]);
  cf_layer_free(&l);
}

/* ---- backward ---- */

/* What a tensor gives back of what was kept in it. */
static cf_near cf_read(const cf_layer *l, cf_near v) {
  return cf_near_stored(l->stored, v);
}

static cf_near cf_through_sigmoid(long double u, cf_near g, cf_near y) {
  return cf_near_mul(u, cf_near_mul(u, g, cf_near_sub(u, cf_exactly(1), y)), y);
}
static cf_near cf_through_tanh(long double u, cf_near g, cf_near y) {
  return cf_near_mul(u, g, cf_near_sub(u, cf_exactly(1), cf_near_mul(u, y, y)));
}

/* The gradients of number i's gates in step n, from that of its new state; l->state becomes what goes to the old one
 * beside them. */
static void cf_slopes_of(cf_layer *l, int64_t n, int64_t i, cf_near *to, cf_near *hidden) {
  const long double u = l->u;
  int64_t w = l->width, row = cf_step_at(l, n) * l->batch + i / w, column = i % w;
  int64_t before = n ? cf_step_at(l, n - 1) * l->batch + i / w : 0;
  cf_near g = l->state[i], kept[5], out = cf_read(l, l->out[row * w + column]);
  for (int64_t p = 0; p < l->kept; p++) kept[p] = cf_read(l, l->rows[(row * l->kept + p) * w + column]);
  l->state[i] = cf_exactly(0);
  if (l->mode == CF_LSTM) {
    cf_near old = n ? cf_read(l, l->rows[(before * 5 + 4) * w + column]) : cf_value_at(l->cx, i);
    cf_near t = cf_near_tanh(u, kept[4]);
    cf_near gc = cf_near_add(u, l->cell[i], cf_through_tanh(u, cf_near_mul(u, g, kept[3]), t));
    to[0] = cf_through_sigmoid(u, cf_near_mul(u, gc, kept[2]), kept[0]);
    to[w] = cf_through_sigmoid(u, cf_near_mul(u, gc, old), kept[1]);
    to[2 * w] = cf_through_tanh(u, cf_near_mul(u, gc, kept[0]), kept[2]);
    to[3 * w] = cf_through_sigmoid(u, cf_near_mul(u, g, t), kept[3]);
    l->cell[i] = cf_near_mul(u, gc, kept[1]);
  } else if (l->mode == CF_GRU) {
    cf_near old = n ? cf_read(l, l->out[before * w + column]) : cf_value_at(l->hx, i);
    to[2 * w] = cf_through_tanh(u, cf_near_mul(u, g, cf_near_sub(u, cf_exactly(1), kept[1])), kept[2]);
    to[w] = cf_through_sigmoid(u, cf_near_mul(u, g, cf_near_sub(u, old, kept[2])), kept[1]);
    to[0] = cf_through_sigmoid(u, cf_near_mul(u, to[2 * w], kept[3]), kept[0]);
    l->state[i] = cf_near_mul(u, g, kept[1]);
    for (int p = 0; p < 3; p++) hidden[p * w] = p == 2 ? cf_near_mul(u, to[2 * w], kept[0]) : to[p * w];
    return;
  } else if (l->mode == CF_TANH) {
    to[0] = cf_through_tanh(u, g, out);
  } else {
    to[0] = out.v > 0 ? g : cf_exactly(0);
    /* a sum as near to 0 as it is off may fall on either side */
    if (fabsl(out.v) <= out.e && kept[0].e >= fabsl(kept[0].v)) to[0].e += fabsl(g.v) + g.e;
  }
  for (int64_t p = 0; p < l->gates; p++) hidden[p * w] = to[p * w];
}

static void cf_layer_backward(cf_layer *l, const cf_array *grad, const cf_array *grad_hy, const cf_array *grad_cy) {
  const int64_t numbers = l->batch * l->width, row = l->gates * l->width;
  for (int64_t i = 0; i < numbers; i++) l->state[i] = cf_value_at(grad_hy, i), l->cell[i] = cf_value_at(grad_cy, i);
  for (int64_t n = l->steps - 1; n >= 0; n--) {
    int64_t first = cf_step_at(l, n) * l->batch;
    for (int64_t i = 0; i < numbers; i++) {
      int64_t at = (first + i / l->width) * row + i % l->width;
      l->state[i] = cf_near_add(l->u, l->state[i], cf_value_at(grad, first * l->width + i));
      cf_slopes_of(l, n, i, l->to + at, l->hidden + at);
    }
    for (int64_t i = 0; i < numbers; i++) {
      const cf_near *from = l->hidden + (first + i / l->width) * row;
      cf_near sum = cf_dot(l->u, from, 1, l->weight->v + i % l->width, l->width, row);
      l->state[i] = cf_near_add(l->u, l->state[i], sum);
    }
  }
}

static void cf_take_given(cf_near *to, const cf_array *from, int64_t count) {
  for (int64_t i = 0; i < count; i++) to[i] = cf_value_at(from, i);
}

static void cf_l_layer_backward(const cf_check *k, uint32_t out, long double *limits) {
  graft_dtype dtype = k->dtypes[out];
  cf_layer l = cf_layer_of(k, "output", cf_u_acc(dtype), 0);
  int64_t numbers = l.steps * l.batch * l.width;
  cf_take_given(l.out, cf_arg_array(k, "output"), numbers);
  if (l.mode < CF_TANH) cf_take_given(l.rows, cf_arg_array(k, "reserve"), numbers * l.kept);
  cf_layer_backward(&l, cf_arg_array(k, "grad_output"), cf_arg_array(k, "grad_hy"), cf_arg_array(k, "grad_cy"));
  const cf_near *of[] = {l.to, l.hidden, l.state, l.cell};
  for (int64_t i = 0; i < k->outs[out].numel; i++) limits[i] = cf_stored(dtype, of[out][i]);
  cf_layer_free(&l);
}

/* ---- gradients ---- */

/* A sum over all steps and rows of the gradient of gate `gate`, times the state that the step began with, of `column`;
 * below 0: times 1. */
static long double cf_over_steps(const cf_layer *l, int64_t gate, int64_t column) {
  const int64_t row = l->gates * l->width, count = l->steps * l->batch;
  long double e = 0, size = 0;
  for (int64_t n = 0; n < l->steps; n++) {
    for (int64_t r = 0; r < l->batch; r++) {
      int64_t before = n ? cf_step_at(l, n - 1) * l->batch + r : r;
      cf_near d = cf_read(l, l->hidden[(cf_step_at(l, n) * l->batch + r) * row + gate]), h = cf_exactly(1);
      if (column >= 0)
        h = n ? cf_read(l, l->out[before * l->width + column]) : cf_value_at(l->hx, before * l->width + column);
      e += fabsl(d.v) * h.e + fabsl(h.v) * d.e;
      size += fabsl(d.v * h.v);
    }
  }
  /* two products of all steps, whose sum is rounded in between */
  return e + (cf_growth((long double)count) + 2) * l->u * size;
}

/* The propagated error for a unit roundoff of 1, as for cells. */
static void cf_g_layer(const cf_check *k, uint32_t in, long double *terms) {
  const long double small = 0x1p-40L; /* so that products of errors vanish, and only the first order is left */
  cf_layer l = cf_layer_of(k, "input_gates", small, small);
  const cf_array *of = &k->in[in], *none = NULL;
  cf_layer_forward(&l);
  cf_layer_backward(&l, k->g[0].v ? &k->g[0] : none, k->g[1].v ? &k->g[1] : none,
                    l.mode == CF_LSTM && k->g[2].v ? &k->g[2] : none);
  for (int64_t i = 0; i < of->numel; i++) {
    if (of == l.x) terms[i] = l.to[i].e;
    if (of == l.hx) terms[i] = l.state[i].e;
    if (of == l.cx) terms[i] = l.cell[i].e;
    if (of == l.weight) terms[i] = cf_over_steps(&l, i / l.width, i % l.width);
    if (of == l.bias) terms[i] = cf_over_steps(&l, i, -1);
    terms[i] /= small;
  }
  cf_layer_free(&l);
}

/* Widths are no multiples of a vector's or a chunk's; one is wider than a group has work-items for. Batches have one
 * row a group and several, with a tail. Without elements: no steps, and no rows. */
static const cf_op cf_rnn_layer_ops[] = {
    {"graft::rnn_layer",
     CF_TEXTS("s T[3,5,68] T[5,17] T[5,17] T[68,17] T[68] 'lstm' false true",
              "s T[3,2,27] T[2,9] _ T[27,9] T[27] 'gru' true true",
              "m T[4,9,132] T[9,33] T[9,33] T[132,33] _ 'lstm' true false",
              "m T[2,3,520] T[3,130] T[3,130] T[520,130] _ 'lstm' false true", "m T[3,9,51] T[9,17] _ T[51,17] _ 'gru'",
              "m T[2,5,201] T[5,67] _ T[201,67] T[201] 'gru' false true",
              "m T[3,3,288] T[3,72] T[3,72] T[288,72] T[288] 'lstm' true true",
              "m T[4,5,17] T[5,17] _ T[17,17] T[17] 'tanh' false true", "m T[3,9,3] T[9,3] _ T[3,3] _ 'relu' true true",
              "m T[1,1,1] T[1,1] _ T[1,1] T[1] 'relu'", "m T[1,1,4] T[1,1] T[1,1] T[4,1] T[4] 'lstm' true true",
              "m T[0,2,12] T[2,3] T[2,3] T[12,3] T[12] 'lstm' false true", "m T[0,2,9] T[2,3] _ T[9,3] T[9] 'gru'",
              "m T[3,0,9] T[0,3] _ T[9,3] T[9] 'gru' false true"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_layer), CF_UNIT, CF_ORDERED, CF_G_PROPAGATED(cf_g_layer)},
    {"graft::rnn_layer_backward",
     CF_TEXTS("s T[3,5,17] T[5,17] T[5,17] T[3,5,17] T[5,17] T[5,17] T[68,17] T[3,5,85] 'lstm'",
              "s T[3,2,9] _ _ T[3,2,9] T[2,9] _ T[27,9] T[3,2,36] 'gru' true",
              "m _ T[9,33] _ T[3,9,33] T[9,33] T[9,33] T[132,33] T[3,9,165] 'lstm' true",
              "m _ _ T[5,17] T[3,5,17] T[5,17] T[5,17] T[68,17] T[3,5,85] 'lstm'",
              "m T[2,3,130] _ _ T[2,3,130] T[3,130] T[3,130] T[520,130] T[2,3,650] 'lstm'",
              "s T[3,3,72] _ _ T[3,3,72] T[3,72] T[3,72] T[288,72] T[3,3,360] 'lstm'",
              "m T[3,9,17] T[9,17] _ T[3,9,17] T[9,17] _ T[51,17] T[3,9,68] 'gru'",
              "m T[2,5,67] _ _ T[2,5,67] T[5,67] _ T[201,67] T[2,5,268] 'gru'",
              "m T[4,5,17] T[5,17] _ T[4,5,17] T[5,17] _ T[17,17] _ 'tanh'",
              "m T[3,9,3] _ _ T[3,9,3] T[9,3] _ T[3,3] _ 'relu' true", "m _ _ _ T[2,3,3] T[3,3] _ T[3,3] _ 'tanh'",
              "m T[0,2,3] T[2,3] _ T[0,2,3] T[2,3] _ T[9,3] T[0,2,12] 'gru'"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_layer_backward), CF_UNIT, CF_ORDERED, CF_G_NONE},
};

CF_TOPIC(rnn_layers, "rnn", cf_rnn_layer_ops);
