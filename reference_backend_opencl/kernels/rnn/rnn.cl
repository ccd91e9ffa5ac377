/* Recurrent cells, after direct.cl. A piece is one number of the state; its gates lie WIDTH apart. The gradient of the
 * biases is summed by column from what the first kernel computes, not from what it rounded. The head defines OP, and
 * HAS_BIAS, HAS_GRAD_HY, HAS_GRAD_CY (0 or 1). */
#define LSTM 0
#define GRU 1
#define ROWS n.of[0]
#define WIDTH n.of[1]

/* Both tails without overflow. */
static CT sigmoid(CT x) {
  CT e = exp(-fabs(x)), y = 1 / (1 + e);
  return x < 0 ? e * y : y;
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
  EACH_UNIT(i) {
    const long column = i % WIDTH, row = i / WIDTH;
    const long at = row * GATES * WIDTH + column;
    CT input[GATES], hidden[GATES];
    for (int k = 0; k < GATES; k++) {
      input[k] = GET(ELEMENTS(a) + at + k * WIDTH);
      hidden[k] = GET(ELEMENTS(b) + at + k * WIDTH);
#if HAS_BIAS
      input[k] += GET(ELEMENTS(d) + column + k * WIDTH);
      hidden[k] += GET(ELEMENTS(e) + column + k * WIDTH);
#endif
    }
    const CT old = GET(ELEMENTS(c) + i);
#if OP == LSTM
    CT kept[KEPT];
    for (int k = 0; k < GATES; k++) kept[k] = k == 2 ? tanh(input[k] + hidden[k]) : sigmoid(input[k] + hidden[k]);
    const CT state = kept[1] * old + kept[0] * kept[2];
    PUT(ELEMENTS(cy) + i, state);
    PUT(ELEMENTS(hy) + i, kept[3] * tanh(state));
#else
    const CT r = sigmoid(input[0] + hidden[0]), z = sigmoid(input[1] + hidden[1]);
    const CT fresh = tanh(input[2] + r * hidden[2]);
    const CT kept[KEPT] = {r, z, fresh, old, hidden[2]};
    PUT(ELEMENTS(hy) + i, fresh + z * (old - fresh));
#endif
    for (int k = 0; k < KEPT; k++) PUT(ELEMENTS(workspace) + (row * KEPT + k) * WIDTH + column, kept[k]);
  }
}

/* The gradients of one number's gates; to[GATES] is that of the old state. LSTM: a is grad_hy, b grad_cy, c cx, d cy,
 * e the workspace. GRU: a is grad_hy, e the workspace, and hidden[] is for the hidden gates. */
static void gradients(__global const RAW(D) *a, __global const RAW(D) *b, __global const RAW(D) *c,
                      __global const RAW(D) *d, __global const RAW(D) *e, long row, long column, long width, CT *to,
                      CT *hidden) {
  const long i = row * width + column;
  CT kept[KEPT];
  for (int k = 0; k < KEPT; k++) kept[k] = GET(e + (row * KEPT + k) * width + column);
#if OP == LSTM
  CT gh = 0, gc = 0;
  const CT t = tanh(GET(d + i));
#if HAS_GRAD_HY
  gh = GET(a + i);
  gc = gh * kept[3] * (1 - t * t);
#endif
#if HAS_GRAD_CY
  gc += GET(b + i);
#endif
  to[0] = gc * kept[2] * (1 - kept[0]) * kept[0];
  to[1] = gc * GET(c + i) * (1 - kept[1]) * kept[1];
  to[2] = gc * kept[0] * (1 - kept[2] * kept[2]);
  to[3] = gh * t * (1 - kept[3]) * kept[3];
  to[4] = gc * kept[1];
#else
  const CT g = GET(a + i), r = kept[0], z = kept[1], fresh = kept[2];
  const CT dn = g * (1 - z) * (1 - fresh * fresh);
  to[0] = hidden[0] = dn * kept[4] * (1 - r) * r;
  to[1] = hidden[1] = g * (kept[3] - fresh) * (1 - z) * z;
  to[2] = dn;
  hidden[2] = dn * r;
  to[3] = g * z;
#endif
}
#define GRADIENTS(row, column)                                                                                \
  gradients(ELEMENTS(a), ELEMENTS(b), ELEMENTS(c), ELEMENTS(d), ELEMENTS(e), row, column, WIDTH, to, hidden)

#define BACKWARD_PLACES                                                                                           \
  PLACE(gates), PLACE(hidden_gates), PLACE(state), PLACE(bias), PLACE(hidden_bias), PLACE(a), PLACE(b), PLACE(c), \
      PLACE(d), PLACE(e)

KERNEL cell_backward(BACKWARD_PLACES, numbers n) {
  EACH_UNIT(i) {
    const long column = i % WIDTH, row = i / WIDTH;
    const long at = row * GATES * WIDTH + column;
    CT to[GATES + 1], hidden[GATES];
    GRADIENTS(row, column);
    for (int k = 0; k < GATES; k++) {
      PUT(ELEMENTS(gates) + at + k * WIDTH, to[k]);
#if OP == GRU
      PUT(ELEMENTS(hidden_gates) + at + k * WIDTH, hidden[k]);
#endif
    }
    PUT(ELEMENTS(state) + i, to[GATES]);
  }
}

KERNEL bias_backward(BACKWARD_PLACES, numbers n) {
  EACH_UNIT(column) {
    CT sum[GATES] = {0}, hidden_sum[GATES] = {0};
    for (long row = 0; row < ROWS; row++) {
      CT to[GATES + 1], hidden[GATES];
      GRADIENTS(row, column);
      for (int k = 0; k < GATES; k++) {
        sum[k] += to[k];
#if OP == GRU
        hidden_sum[k] += hidden[k];
#endif
      }
    }
    for (int k = 0; k < GATES; k++) {
      PUT(ELEMENTS(bias) + column + k * WIDTH, sum[k]);
#if OP == GRU
      PUT(ELEMENTS(hidden_bias) + column + k * WIDTH, hidden_sum[k]);
#endif
    }
  }
}
