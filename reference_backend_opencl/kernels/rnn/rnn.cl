/* Recurrent cells, after direct.cl. A piece is VEC numbers of a row of the state; their gates lie WIDTH apart. The
 * gradient of the biases is summed by column from what the first kernel computes, not from what it rounded. The head
 * defines OP, and HAS_BIAS, HAS_GRAD_HY, HAS_GRAD_CY (0 or 1). */
#define LSTM 0
#define GRU 1
#define ROWS n.of[0]
#define WIDTH n.of[1]
#define PER_ROW ((WIDTH + VEC - 1) / VEC)

DEFINE_ACCESS(value, D)

/* Both tails without overflow. */
static VT sigmoid(VT x) {
  VT e = EXP(-fabs(x)), y = (VT)1 / ((VT)1 + e);
  return x < (VT)0 ? e * y : y;
}

#if OP == LSTM
#define GATES 4
#define KEPT 4
#else
#define GATES 3
#define KEPT 5
#endif

/* a: gates from the input, b: from the hidden state, c: old state, d, e: biases */
KERNEL cell(PLACE(hy), PLACE(cy), PLACE(workspace), PLACE(a), PLACE(b), PLACE(c), PLACE(d), PLACE(e), numbers n) {
  EACH_UNIT(unit) {
    const long row = unit / PER_ROW, column = unit % PER_ROW * VEC, i = row * WIDTH + column;
    const long at = row * GATES * WIDTH + column;
    const int lanes = (int)min((long)VEC, WIDTH - column);
    VT input[GATES], hidden[GATES];
    for (int k = 0; k < GATES; k++) {
      input[k] = get_value(ELEMENTS(a) + at + k * WIDTH, lanes);
      hidden[k] = get_value(ELEMENTS(b) + at + k * WIDTH, lanes);
#if HAS_BIAS
      input[k] += get_value(ELEMENTS(d) + column + k * WIDTH, lanes);
      hidden[k] += get_value(ELEMENTS(e) + column + k * WIDTH, lanes);
#endif
    }
    const VT old = get_value(ELEMENTS(c) + i, lanes);
#if OP == LSTM
    VT kept[KEPT];
    for (int k = 0; k < GATES; k++) kept[k] = k == 2 ? tanh(input[k] + hidden[k]) : sigmoid(input[k] + hidden[k]);
    const VT state = kept[1] * old + kept[0] * kept[2];
    put_value(ELEMENTS(cy) + i, state, lanes);
    put_value(ELEMENTS(hy) + i, kept[3] * tanh(state), lanes);
#else
    const VT r = sigmoid(input[0] + hidden[0]), z = sigmoid(input[1] + hidden[1]);
    const VT fresh = tanh(input[2] + r * hidden[2]);
    const VT kept[KEPT] = {r, z, fresh, old, hidden[2]};
    put_value(ELEMENTS(hy) + i, fresh + z * (old - fresh), lanes);
#endif
    for (int k = 0; k < KEPT; k++) put_value(ELEMENTS(workspace) + (row * KEPT + k) * WIDTH + column, kept[k], lanes);
  }
}

/* The gradients of the gates of some numbers side by side; to[GATES] is that of the old state. LSTM: a is grad_hy, b
 * grad_cy, c cx, d cy, e the workspace. GRU: a is grad_hy, e the workspace, and hidden[] is for the hidden gates. */
static void gradients(__global const RAW(D) *a, __global const RAW(D) *b, __global const RAW(D) *c,
                      __global const RAW(D) *d, __global const RAW(D) *e, long row, long column, long width, int lanes,
                      VT *to, VT *hidden) {
  const long i = row * width + column;
  VT kept[KEPT];
  for (int k = 0; k < KEPT; k++) kept[k] = get_value(e + (row * KEPT + k) * width + column, lanes);
#if OP == LSTM
  VT gh = (VT)0, gc = (VT)0;
  const VT t = tanh(get_value(d + i, lanes));
#if HAS_GRAD_HY
  gh = get_value(a + i, lanes);
  gc = gh * kept[3] * ((VT)1 - t * t);
#endif
#if HAS_GRAD_CY
  gc += get_value(b + i, lanes);
#endif
  to[0] = gc * kept[2] * ((VT)1 - kept[0]) * kept[0];
  to[1] = gc * get_value(c + i, lanes) * ((VT)1 - kept[1]) * kept[1];
  to[2] = gc * kept[0] * ((VT)1 - kept[2] * kept[2]);
  to[3] = gh * t * ((VT)1 - kept[3]) * kept[3];
  to[4] = gc * kept[1];
#else
  const VT g = get_value(a + i, lanes), r = kept[0], z = kept[1], fresh = kept[2];
  const VT dn = g * ((VT)1 - z) * ((VT)1 - fresh * fresh);
  to[0] = hidden[0] = dn * kept[4] * ((VT)1 - r) * r;
  to[1] = hidden[1] = g * (kept[3] - fresh) * ((VT)1 - z) * z;
  to[2] = dn;
  hidden[2] = dn * r;
  to[3] = g * z;
#endif
}
#define GRADIENTS(row, column, lanes) \
  gradients(ELEMENTS(a), ELEMENTS(b), ELEMENTS(c), ELEMENTS(d), ELEMENTS(e), row, column, WIDTH, lanes, to, hidden)

#define BACKWARD_PLACES                                                                                           \
  PLACE(gates), PLACE(hidden_gates), PLACE(state), PLACE(bias), PLACE(hidden_bias), PLACE(a), PLACE(b), PLACE(c), \
      PLACE(d), PLACE(e)

KERNEL cell_backward(BACKWARD_PLACES, numbers n) {
  EACH_UNIT(unit) {
    const long row = unit / PER_ROW, column = unit % PER_ROW * VEC, at = row * GATES * WIDTH + column;
    const int lanes = (int)min((long)VEC, WIDTH - column);
    VT to[GATES + 1], hidden[GATES];
    GRADIENTS(row, column, lanes);
    for (int k = 0; k < GATES; k++) {
      put_value(ELEMENTS(gates) + at + k * WIDTH, to[k], lanes);
#if OP == GRU
      put_value(ELEMENTS(hidden_gates) + at + k * WIDTH, hidden[k], lanes);
#endif
    }
    put_value(ELEMENTS(state) + row * WIDTH + column, to[GATES], lanes);
  }
}

KERNEL bias_backward(BACKWARD_PLACES, numbers n) {
  EACH_UNIT(unit) {
    const long column = unit * VEC;
    const int lanes = (int)min((long)VEC, WIDTH - column);
    VT sum[GATES], hidden_sum[GATES];
    for (int k = 0; k < GATES; k++) sum[k] = hidden_sum[k] = (VT)0;
    for (long row = 0; row < ROWS; row++) {
      VT to[GATES + 1], hidden[GATES];
      GRADIENTS(row, column, lanes);
      for (int k = 0; k < GATES; k++) {
        sum[k] += to[k];
#if OP == GRU
        hidden_sum[k] += hidden[k];
#endif
      }
    }
    for (int k = 0; k < GATES; k++) {
      put_value(ELEMENTS(bias) + column + k * WIDTH, sum[k], lanes);
#if OP == GRU
      put_value(ELEMENTS(hidden_bias) + column + k * WIDTH, hidden_sum[k], lanes);
#endif
    }
  }
}
