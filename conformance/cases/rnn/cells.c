/* Recurrent cells. Limits follow the formulas (near.h) through sigmoid, 4 ulp, and tanh, 5 ulp. */
#include "conformance/judge/near.h"

#include <stdlib.h>

#include "conformance/cases/rows.h"

enum { CF_LSTM = 4, CF_GRU = 3 };

typedef struct cf_cell {
  const cf_array *input, *hidden, *state, *input_bias, *hidden_bias;
  int64_t width;
  int gates;
} cf_cell;

static cf_cell cf_cell_of(const cf_check *k, int gates) {
  cf_cell c = {cf_arg_array(k, "input_gates"),
               cf_arg_array(k, "hidden_gates"),
               cf_arg_array(k, gates == CF_LSTM ? "cx" : "hx"),
               cf_arg_array(k, "input_bias"),
               cf_arg_array(k, "hidden_bias"),
               1,
               gates};
  c.width = c.state->sizes[1];
  return c;
}

static cf_near cf_side_of(const cf_cell *c, const cf_array *x, const cf_array *bias, int64_t i, int gate,
                          long double u) {
  int64_t column = i % c->width, row = i / c->width, at = (row * c->gates + gate) * c->width + column;
  cf_near v = cf_exactly(x->v[at].re);
  return bias ? cf_near_add(u, v, cf_exactly(bias->v[gate * c->width + column].re)) : v;
}
static cf_near cf_input_of(const cf_cell *c, int64_t i, int gate, long double u) {
  return cf_side_of(c, c->input, c->input_bias, i, gate, u);
}
static cf_near cf_hidden_of(const cf_cell *c, int64_t i, int gate, long double u) {
  return cf_side_of(c, c->hidden, c->hidden_bias, i, gate, u);
}

/* A gate before its nonlinearity: up to four terms in any order. */
static cf_near cf_gate_of(const cf_cell *c, int64_t i, int gate, long double u) {
  cf_near a = cf_input_of(c, i, gate, u), b = cf_hidden_of(c, i, gate, u), sum = cf_near_add(u, a, b);
  int64_t column = gate * c->width + i % c->width;
  if (!c->input_bias) return sum;
  sum.e += 2 * u * (fabsl(c->input_bias->v[column].re) + fabsl(c->hidden_bias->v[column].re) + fabsl(a.v) + fabsl(b.v));
  return sum;
}

/* One number of the state: what is kept of it (up to five values), and the results. */
typedef struct cf_step {
  cf_near kept[5], out, state;
} cf_step;

static cf_step cf_step_of(const cf_cell *c, int64_t i, long double u) {
  cf_step s = {0};
  cf_near old = cf_exactly(c->state->v[i].re);
  if (c->gates == CF_LSTM) {
    for (int g = 0; g < CF_LSTM; g++) {
      cf_near x = cf_gate_of(c, i, g, u);
      s.kept[g] = g == 2 ? cf_near_tanh(u, x) : cf_near_sigmoid(u, x);
    }
    s.state = cf_near_add(u, cf_near_mul(u, s.kept[1], old), cf_near_mul(u, s.kept[0], s.kept[2]));
    s.out = cf_near_mul(u, s.kept[3], cf_near_tanh(u, s.state));
    return s;
  }
  s.kept[0] = cf_near_sigmoid(u, cf_gate_of(c, i, 0, u));
  s.kept[1] = cf_near_sigmoid(u, cf_gate_of(c, i, 1, u));
  s.kept[4] = cf_hidden_of(c, i, 2, u);
  cf_near x = cf_near_add(u, cf_input_of(c, i, 2, u), cf_near_mul(u, s.kept[0], s.kept[4]));
  s.kept[2] = cf_near_tanh(u, x);
  s.kept[3] = old;
  s.out = cf_near_add(u, s.kept[2], cf_near_mul(u, s.kept[1], cf_near_sub(u, old, s.kept[2])));
  return s;
}

static long double cf_stored_limit(graft_dtype dtype, cf_near v) {
  return v.e + cf_ulp(dtype, v.v) / 2;
}

static void cf_cell_limits(const cf_check *k, uint32_t out, int gates, long double *limits) {
  cf_cell c = cf_cell_of(k, gates);
  graft_dtype dtype = k->dtypes[out];
  bool workspace = out == k->nouts - 1;
  int kept = gates == CF_LSTM ? 4 : 5;
  for (int64_t i = 0; i < c.state->numel; i++) {
    cf_step s = cf_step_of(&c, i, cf_u_acc(dtype));
    if (!workspace) limits[i] = cf_stored_limit(dtype, out ? s.state : s.out);
    for (int g = 0; workspace && g < kept; g++)
      limits[(i / c.width * kept + g) * c.width + i % c.width] = cf_stored_limit(dtype, s.kept[g]);
  }
}
static void cf_l_lstm(const cf_check *k, uint32_t out, long double *l) {
  cf_cell_limits(k, out, CF_LSTM, l);
}
static void cf_l_gru(const cf_check *k, uint32_t out, long double *l) {
  cf_cell_limits(k, out, CF_GRU, l);
}

/* ---- backward ---- */

/* What reaches one number: the gates (as seen from the input, then from the hidden side), and the old state. */
typedef struct cf_slopes {
  cf_near input[4], hidden[4], state;
} cf_slopes;

/* g * factor * (1 - y) y, and with 1 - y^2. */
static cf_near cf_through_sigmoid(long double u, cf_near g, cf_near y) {
  return cf_near_mul(u, cf_near_mul(u, g, cf_near_sub(u, cf_exactly(1), y)), y);
}
static cf_near cf_through_tanh(long double u, cf_near g, cf_near y) {
  return cf_near_mul(u, g, cf_near_sub(u, cf_exactly(1), cf_near_mul(u, y, y)));
}

static cf_slopes cf_lstm_slopes(long double u, const cf_near *kept, cf_near cx, cf_near cy, cf_near gh, cf_near gc) {
  cf_slopes s;
  cf_near t = cf_near_tanh(u, cy);
  gc = cf_near_add(u, gc, cf_through_tanh(u, cf_near_mul(u, gh, kept[3]), t));
  s.input[0] = cf_through_sigmoid(u, cf_near_mul(u, gc, kept[2]), kept[0]);
  s.input[1] = cf_through_sigmoid(u, cf_near_mul(u, gc, cx), kept[1]);
  s.input[2] = cf_through_tanh(u, cf_near_mul(u, gc, kept[0]), kept[2]);
  s.input[3] = cf_through_sigmoid(u, cf_near_mul(u, gh, t), kept[3]);
  for (int g = 0; g < 4; g++) s.hidden[g] = s.input[g];
  s.state = cf_near_mul(u, gc, kept[1]);
  return s;
}

static cf_slopes cf_gru_slopes(long double u, const cf_near *kept, cf_near g) {
  cf_slopes s = {0};
  cf_near rest = cf_near_mul(u, g, cf_near_sub(u, cf_exactly(1), kept[1]));
  s.input[2] = cf_through_tanh(u, rest, kept[2]);
  s.input[1] = cf_through_sigmoid(u, cf_near_mul(u, g, cf_near_sub(u, kept[3], kept[2])), kept[1]);
  s.input[0] = cf_through_sigmoid(u, cf_near_mul(u, s.input[2], kept[4]), kept[0]);
  s.hidden[0] = s.input[0], s.hidden[1] = s.input[1];
  s.hidden[2] = cf_near_mul(u, s.input[2], kept[0]);
  s.state = cf_near_mul(u, g, kept[1]);
  return s;
}

/* Where a number's slopes go: side 0 the input's gates, 1 the hidden's, 2 the state, 3 and 4 sums of the first two by
 * column, whose terms each count once more for the additions. */
static void cf_put_slopes(const cf_slopes *s, int side, int gates, int64_t i, int64_t width, long double sum_u,
                          long double *e) {
  int64_t column = i % width, row = i / width;
  if (side == 2) e[i] = s->state.e;
  for (int g = 0; side != 2 && g < gates; g++) {
    cf_near v = side % 3 ? s->hidden[g] : s->input[g];
    if (side < 2)
      e[(row * gates + g) * width + column] = v.e;
    else
      e[g * width + column] += v.e + sum_u * fabsl(v.v);
  }
}

static cf_near cf_value(const cf_array *a, int64_t i) {
  return a ? cf_exactly(a->v[i].re) : cf_exactly(0);
}

static void cf_slot_limits(const cf_check *k, int side, uint32_t out, int gates, long double *limits) {
  const cf_array *gh = cf_arg_array(k, "grad_hy"), *gc = cf_arg_array(k, "grad_cy"), *ws = cf_arg_array(k, "workspace");
  const cf_array *cx = cf_arg_array(k, "cx"), *cy = cf_arg_array(k, "cy"), *o = &k->outs[out];
  const cf_array *state = cx ? cx : gh;
  int64_t width = state->sizes[1];
  graft_dtype dtype = k->dtypes[out];
  int kept = gates == CF_LSTM ? 4 : 5;
  long double u = cf_u_acc(dtype), sum_u = cf_growth((long double)state->sizes[0]) * u;
  for (int64_t i = 0; i < state->numel; i++) {
    cf_near v[5];
    for (int g = 0; g < kept; g++) v[g] = cf_value(ws, (i / width * kept + g) * width + i % width);
    cf_slopes s = gates == CF_LSTM
                      ? cf_lstm_slopes(u, v, cf_value(cx, i), cf_value(cy, i), cf_value(gh, i), cf_value(gc, i))
                      : cf_gru_slopes(u, v, cf_value(gh, i));
    cf_put_slopes(&s, side, gates, i, width, sum_u, limits);
  }
  for (int64_t i = 0; i < o->numel; i++) limits[i] += cf_limit_of(k, out, i, 0);
}
static void cf_l_lstm_backward(const cf_check *k, uint32_t out, long double *l) {
  static const int sides[] = {0, 2, 3};
  cf_slot_limits(k, sides[out], out, CF_LSTM, l);
}
static void cf_l_gru_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_slot_limits(k, (int)out, out, CF_GRU, l);
}

/* Gradients: the propagated error for a unit roundoff of 1 is the S that roundings are multiples of. Everything that
 * forward keeps is rounded to the dtype before backward reads it, so each begins with an error of its size. */
static void cf_cell_terms(const cf_check *k, uint32_t in, int gates, long double *terms) {
  const long double small = 0x1p-40L; /* so that products of errors vanish, and only the first order is left */
  cf_cell c = cf_cell_of(k, gates);
  const cf_array *of = &k->in[in];
  int side = of == c.input ? 0 : of == c.hidden ? 1 : of == c.state ? 2 : of == c.input_bias ? 3 : 4;
  for (int64_t i = 0; i < c.state->numel; i++) {
    cf_step s = cf_step_of(&c, i, small);
    for (int g = 0; g < 5; g++) s.kept[g] = cf_near_stored(small, s.kept[g]);
    cf_near gh = cf_value(k->g[0].v ? &k->g[0] : NULL, i),
            gc = cf_value(gates == CF_LSTM && k->g[1].v ? &k->g[1] : NULL, i);
    cf_slopes slopes = gates == CF_LSTM
                           ? cf_lstm_slopes(small, s.kept, cf_value(c.state, i), cf_near_stored(small, s.state), gh, gc)
                           : cf_gru_slopes(small, s.kept, gh);
    cf_put_slopes(&slopes, side, gates, i, c.width, small, terms);
  }
  for (int64_t i = 0; i < of->numel; i++) terms[i] /= small;
}
static void cf_g_lstm(const cf_check *k, uint32_t in, long double *t) {
  cf_cell_terms(k, in, CF_LSTM, t);
}
static void cf_g_gru(const cf_check *k, uint32_t in, long double *t) {
  cf_cell_terms(k, in, CF_GRU, t);
}

static const cf_op cf_rnn_ops[] = {
    {"aten::_thnn_fused_lstm_cell",
     CF_TEXTS("s T[5,68] T[5,68] T[5,17] T[68] T[68]", "m T[3,132] T[3,132] T[3,33]",
              "m T[1,4] T[1,4] T[1,1] T[4] T[4]", "m T[129,12] T[129,12] T[129,3] T[12] T[12]",
              "m T[0,12] T[0,12] T[0,3] T[12] T[12]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_lstm), CF_VALUES, CF_ORDERED, CF_G_PROPAGATED(cf_g_lstm)},
    {"aten::_thnn_fused_lstm_cell_backward_impl",
     CF_TEXTS("s T[5,17] T[5,17] T[5,17] T[5,17] T[5,68] true", "m T[5,17] _ T[5,17] T[5,17] T[5,68] true",
              "m _ T[33,3] T[33,3] T[33,3] T[33,12] false", "m T[129,1] T[129,1] T[129,1] T[129,1] T[129,4] true"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_lstm_backward), CF_UNIT, CF_ORDERED, CF_G_NONE},
    {"aten::_thnn_fused_gru_cell",
     CF_TEXTS("s T[5,51] T[5,51] T[5,17] T[51] T[51]", "m T[3,99] T[3,99] T[3,33]", "m T[1,3] T[1,3] T[1,1] T[3] T[3]",
              "m T[129,9] T[129,9] T[129,3] T[9] T[9]", "m T[0,9] T[0,9] T[0,3] T[9] T[9]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_gru), CF_VALUES, CF_ORDERED, CF_G_PROPAGATED(cf_g_gru)},
    {"aten::_thnn_fused_gru_cell_backward",
     CF_TEXTS("s T[5,17] T[5,85] true", "m T[33,3] T[33,15] false", "m T[129,1] T[129,5] true"), CF_FLOATS,
     CF_R_CUSTOM(cf_l_gru_backward), CF_UNIT, CF_ORDERED, CF_G_NONE},
};

CF_TOPIC(rnn_cells, "rnn", cf_rnn_ops);
