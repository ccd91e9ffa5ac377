/* What cells and whole layers share: how gates lie side by side in a row, and a step on tensors, as decompositions and
 * gradients of gradients write it. */
#ifndef GRAFT_SDK_RNN_H
#define GRAFT_SDK_RNN_H

#include "ops/core/fx.h"

enum { INPUT_GATE, FORGET_GATE, CELL_GATE, OUTPUT_GATE, LSTM_GATES };
enum { RESET_GATE, UPDATE_GATE, NEW_GATE, GRU_GATES };

/* The gates behind their nonlinearity, and the new cell. */
typedef struct rnn_lstm {
  graft_tensor *gates[LSTM_GATES], *cy;
} rnn_lstm;
/* The gates behind their nonlinearity, the old state, and what the reset gate multiplies. */
typedef struct rnn_gru {
  graft_tensor *r, *z, *new, *hx, *hidden;
} rnn_gru;

/* Columns of part k of a matrix whose rows are parts of `width`. */
graft_tensor *rnn_part(fx *s, graft_tensor *t, int64_t k, int64_t width);
graft_tensor *rnn_tanh_slope(fx *s, graft_tensor *y); /* 1 - y^2 */

/* A step from all that adds to the gates, and the new state; its gradient from that of the new state and cell, either
 * of which may be NULL. */
rnn_lstm rnn_lstm_of(fx *s, graft_tensor *sum, graft_tensor *cx);
graft_tensor *rnn_lstm_output(fx *s, const rnn_lstm *l);
void rnn_lstm_backward(fx *s, const rnn_lstm *l, graft_tensor *cx, graft_tensor *gh, graft_tensor *gc,
                       graft_tensor **gates, graft_tensor **to_cx);

/* Likewise; to_hx is without what comes through the gates. */
rnn_gru rnn_gru_of(fx *s, graft_tensor *input, graft_tensor *hidden, graft_tensor *hx);
graft_tensor *rnn_gru_output(fx *s, const rnn_gru *g);
void rnn_gru_backward(fx *s, const rnn_gru *g, graft_tensor *grad, graft_tensor **to_input, graft_tensor **to_hidden,
                      graft_tensor **to_hx);

#endif
