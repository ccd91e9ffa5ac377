/* Recurrent layers, after direct.cl: a work-group takes ROWS rows of the batch through all steps. A step is a product of
 * `sources`, what these rows hold, with the weight, which comes from a cache, into `sums`; and pieces of VEC numbers of
 * the state, made of these. On a CPU a work-group is one work-item, and what it holds lies in a buffer.
 *
 * Forward, sources are the states and sums what they add to the gates; backward sources are the gradients of the gates
 * and sums what they add to that of the state. The head defines MODE, as GRAFT_STR_RNN_MODE_*, BACKWARD, ROWS, TOGETHER,
 * SLICES (parts of a sum, by different work-items), NEAR_SIZE, and what there is of what may be absent. With ONE_PIECE no
 * work-item has more than one piece, so that what it reads of a step can come before the product; with OWN each has the
 * first OWN chunks of its part of the weight in registers, for all steps. */
#define LSTM 1
#define GRU 2
#define TANH 3
#define RELU 4

#define STEPS n.of[0]
#define BATCH n.of[1]
#define WIDTH n.of[2]
#define INNER n.of[3]
#define OUTER n.of[4]
#define INNER_PAD n.of[5]
#define OUTER_PAD n.of[6]
#define WIDTH_PAD n.of[7]
#define REVERSE n.of[8]
#define SCRATCH_SIZE n.of[9]
#define PER_ROW ((WIDTH + VEC - 1) / VEC)

#if MODE == LSTM
#define GATES 4
#define KEPT 5
#elif MODE == GRU
#define GATES 3
#define KEPT 4
#else
#define GATES 1
#define KEPT 1
#endif

DEFINE_ACCESS(value, D)

#if LOCAL == 1
#define NEAR __global
#define EACH_BLOCK EACH_UNIT(block)
#define ITEM 0
#define SYNC
#define CHUNK 1
#define CHUNK_OF CT
#else
#define NEAR __local
#define EACH_BLOCK const long block = get_group_id(0);
#define ITEM ((long)get_local_id(0))
#define SYNC barrier(CLK_LOCAL_MEM_FENCE);
#define CHUNK 4
#define CHUNK_OF CAT(CT, 4)
#endif

/* VEC numbers near by, of which the first `lanes` are stored. Rows of `cells` and `states` have room for all, and all are
 * read again. */
static INLINED VT get_near(NEAR const CT *p) { return VLOAD(p); }
static INLINED void put_near(NEAR CT *p, VT v, int lanes) {
  if (lanes == VEC) {
    VSTORE(v, p);
    return;
  }
  CT all[VEC];
  VSTORE(v, all);
  for (int j = 0; j < lanes; j++) p[j] = all[j];
}

/* Both tails without overflow. */
static VT sigmoid(VT x) {
  VT e = EXP(-fabs(x)), y = (VT)1 / ((VT)1 + e);
  return x < (VT)0 ? e * y : y;
}

#if BACKWARD
#define PLACES_HERE                                                                                        \
  PLACE(grad_input), PLACE(grad_hidden), PLACE(grad_hx), PLACE(grad_cx), PLACE(grad_output), PLACE(grad_hy), \
      PLACE(grad_cy), PLACE(output), PLACE(hx), PLACE(cx), PLACE(weight), PLACE(reserve), PLACE(packed), PLACE(scratch)
#else
#define PLACES_HERE                                                                                            \
  PLACE(output), PLACE(hy), PLACE(cy), PLACE(reserve), PLACE(no), PLACE(no_more), PLACE(none), PLACE(input),   \
      PLACE(hx), PLACE(cx), PLACE(weight), PLACE(bias), PLACE(packed), PLACE(scratch)
#endif

/* The weight as products read it: CHUNK factors of a sum side by side, then those of the next sum, and zeros beyond. */
KERNEL pack(PLACES_HERE, numbers n) {
  __global CT *to = (__global CT *)(packed + offset_packed);
  EACH_UNIT(i) {
    const long outer = i / CHUNK % OUTER_PAD, inner = i / (CHUNK * OUTER_PAD) * CHUNK + i % CHUNK;
    const long at = BACKWARD ? inner * WIDTH + outer : outer * WIDTH + inner;
    to[i] = outer < OUTER && inner < INNER ? one_value(ELEMENTS(weight) + at) : (CT)0;
  }
}

#if LOCAL == 1
static void multiply(__global const CT *factors, const CT *own, __global const CT *sources, __global CT *sums,
                     numbers n) {
  for (long outer = 0; outer < OUTER_PAD; outer += 2 * VEC) {
    VT a[ROWS], b[ROWS];
    for (int r = 0; r < ROWS; r++) a[r] = b[r] = (VT)0;
    for (long i = 0; i < INNER; i++) {
      const VT x = VLOAD(factors + i * OUTER_PAD + outer), y = VLOAD(factors + i * OUTER_PAD + outer + VEC);
#pragma unroll
      for (int r = 0; r < ROWS; r++) {
        const VT source = (VT)sources[r * INNER_PAD + i];
        a[r] = fma(x, source, a[r]);
        b[r] = fma(y, source, b[r]);
      }
    }
    for (int r = 0; r < ROWS; r++) {
      VSTORE(a[r], sums + r * OUTER_PAD + outer);
      VSTORE(b[r], sums + r * OUTER_PAD + outer + VEC);
    }
  }
}
#else
enum { LANES = TOGETHER / SLICES };

#define MULTIPLY_CHUNK(four, c)                                                                 \
  for (int r = 0; r < ROWS; r++) {                                                              \
    const CHUNK_OF source = *(__local const CHUNK_OF *)(sources + r * inner + (c) * CHUNK);     \
    sum[r] = fma((four).x, source.x, sum[r]);                                                        \
    sum[r] = fma((four).y, source.y, sum[r]);                                                        \
    sum[r] = fma((four).z, source.z, sum[r]);                                                        \
    sum[r] = fma((four).w, source.w, sum[r]);                                                        \
  }

static INLINED void multiply(__global const CT *factors, const CHUNK_OF *own, __local const CT *sources,
                             __local CT *sums, numbers n) {
  const int chunks = (int)(INNER_PAD / CHUNK), inner = (int)INNER_PAD, width = (int)OUTER_PAD;
  const int slice = (int)ITEM / LANES, part = (chunks + SLICES - 1) / SLICES;
  const int first = slice * part, last = min(first + part, chunks);
  for (int outer = (int)ITEM % LANES; outer < width; outer += LANES) {
    __global const CHUNK_OF *factor = (__global const CHUNK_OF *)factors + (long)(first + OWN) * width + outer;
    CT sum[ROWS];
    for (int r = 0; r < ROWS; r++) sum[r] = 0;
#if OWN
#pragma unroll
    for (int c = 0; c < OWN; c++) MULTIPLY_CHUNK(own[c], first + c)
#endif
#pragma unroll 8
    for (int c = first + OWN; c < last; c++) {
      const CHUNK_OF x = *factor;
      factor += width;
      MULTIPLY_CHUNK(x, c)
    }
    for (int r = 0; r < ROWS; r++) sums[(slice * ROWS + r) * width + outer] = sum[r];
  }
}
#endif

/* A sum of row r, from its parts. */
static INLINED VT sum_near(NEAR const CT *sums, long r, long at, numbers n) {
  VT sum = get_near(sums + r * OUTER_PAD + at);
  for (int s = 1; s < SLICES; s++) sum += get_near(sums + (s * ROWS + r) * OUTER_PAD + at);
  return sum;
}

/* The pieces of this work-item: `lanes` numbers from `column` of row r here, which is row `row` of the batch. Names what
 * the group holds and clears it, once a kernel: `near_of_group` is that. */
#define EACH_PIECE                                                                        \
  for (long piece = ITEM; piece < ROWS * PER_ROW; piece += TOGETHER)                      \
    if (block * ROWS + piece / PER_ROW < BATCH)
#define PIECE                                                                             \
  const long r = piece / PER_ROW, row = block * ROWS + r, column = piece % PER_ROW * VEC; \
  const int lanes = (int)min((long)VEC, WIDTH - column);                                  \
  const long at = row * WIDTH + column;
#define NEAR_OF_GROUP                                                       \
  NEAR CT *sources = near_of_group, *sums = sources + ROWS * INNER_PAD;      \
  NEAR CT *cells = sums + SLICES * ROWS * OUTER_PAD, *states = cells + ROWS * WIDTH_PAD; \
  for (long i = ITEM; i < ROWS * INNER_PAD; i += TOGETHER) sources[i] = 0;   \
  SYNC
#if LOCAL == 1
#define TAKE_NEAR                                                                                       \
  __global CT *near_of_group = (__global CT *)(scratch + offset_scratch) + block * SCRATCH_SIZE;        \
  NEAR_OF_GROUP
#define LOCAL_ARRAY
#else
#define TAKE_NEAR NEAR_OF_GROUP
#define LOCAL_ARRAY __local CT near_of_group[NEAR_SIZE] __attribute__((aligned(32)));
#endif
#define STEP_OF(s) (REVERSE ? STEPS - 1 - (s) : (s))
#if OWN
#define TAKE_OWN                                                                                          \
  CHUNK_OF own[OWN];                                                                                      \
  for (int c = 0; c < OWN; c++) {                                                                         \
    const long chunk = ITEM / LANES * (INNER_PAD / CHUNK / SLICES) + c, outer = min(ITEM % LANES, OUTER - 1); \
    own[c] = ((__global const CHUNK_OF *)factors)[chunk * OUTER_PAD + outer];                             \
  }
#else
#define TAKE_OWN const CHUNK_OF *own = NULL;
#endif

#if !BACKWARD
#define READ_GATES              \
  for (int k = 0; k < GATES; k++) \
    x[k] = get_value(ELEMENTS(input) + ((first + row) * GATES + k) * WIDTH + column, lanes);

KERNEL_OF(TOGETHER, 1) layer(PLACES_HERE, numbers n) {
  LOCAL_ARRAY
  __global const CT *factors = (__global const CT *)(packed + offset_packed);
  TAKE_OWN
  EACH_BLOCK {
    TAKE_NEAR
    EACH_PIECE {
      PIECE
      put_near(sources + r * INNER_PAD + column, get_value(ELEMENTS(hx) + at, lanes), lanes);
#if MODE == LSTM
      put_near(cells + r * WIDTH_PAD + column, get_value(ELEMENTS(cx) + at, lanes), VEC);
#endif
    }
    SYNC
    for (long s = 0; s < STEPS; s++) {
      const long first = STEP_OF(s) * BATCH;
      VT x[GATES];
#if ONE_PIECE
      EACH_PIECE {
        PIECE
        READ_GATES
      }
#endif
      multiply(factors, own, sources, sums, n);
      SYNC
      EACH_PIECE {
        PIECE
#if !ONE_PIECE
        READ_GATES
#endif
        VT h[GATES];
        for (int k = 0; k < GATES; k++) {
          h[k] = sum_near(sums, r, k * WIDTH + column, n);
#if HAS_BIAS
          h[k] += get_value(ELEMENTS(bias) + k * WIDTH + column, lanes);
#endif
        }
        NEAR CT *source = sources + r * INNER_PAD + column;
#if MODE == LSTM
        VT kept[KEPT];
        for (int k = 0; k < GATES; k++) kept[k] = k == 2 ? tanh(x[k] + h[k]) : sigmoid(x[k] + h[k]);
        kept[4] = kept[1] * get_near(cells + r * WIDTH_PAD + column) + kept[0] * kept[2];
        put_near(cells + r * WIDTH_PAD + column, kept[4], VEC);
        const VT state = kept[3] * tanh(kept[4]);
#elif MODE == GRU
        const VT reset = sigmoid(x[0] + h[0]), update = sigmoid(x[1] + h[1]), fresh = tanh(x[2] + reset * h[2]);
        const VT kept[KEPT] = {reset, update, fresh, h[2]};
        const VT state = fresh + update * (get_near(source) - fresh);
#elif MODE == TANH
        const VT state = tanh(x[0] + h[0]);
#else
        const VT sum = x[0] + h[0], state = sum < (VT)0 ? (VT)0 : sum;
#endif
        put_near(source, state, lanes);
        put_value(ELEMENTS(output) + first * WIDTH + at, state, lanes);
#if KEEPS
        for (int k = 0; k < KEPT; k++)
          put_value(ELEMENTS(reserve) + ((first + row) * KEPT + k) * WIDTH + column, kept[k], lanes);
#endif
      }
      SYNC
    }
    EACH_PIECE {
      PIECE
      put_value(ELEMENTS(hy) + at, get_near(sources + r * INNER_PAD + column), lanes);
#if MODE == LSTM
      put_value(ELEMENTS(cy) + at, get_near(cells + r * WIDTH_PAD + column), lanes);
#endif
    }
  }
}
#else

/* What a piece of step s is made of: `kept` and what the step began with, or the output; and the output's gradient. */
#if HAS_GRAD_OUTPUT
#define READ_GRADIENT(s) given = get_value(ELEMENTS(grad_output) + STEP_OF(s) * BATCH * WIDTH + at, lanes);
#else
#define READ_GRADIENT(s)
#endif
#if MODE == LSTM
#define READ_OLD(s)                                                                                            \
  if (s)                                                                                                       \
    old = get_value(ELEMENTS(reserve) + ((STEP_OF((s)-1) * BATCH + row) * KEPT + 4) * WIDTH + column, lanes);  \
  else                                                                                                         \
    old = get_value(ELEMENTS(cx) + at, lanes);
#elif MODE == GRU
#define READ_OLD(s)                                                                     \
  if (s)                                                                                \
    old = get_value(ELEMENTS(output) + STEP_OF((s)-1) * BATCH * WIDTH + at, lanes);     \
  else                                                                                  \
    old = get_value(ELEMENTS(hx) + at, lanes);
#else
#define READ_OLD(s) old = get_value(ELEMENTS(output) + STEP_OF(s) * BATCH * WIDTH + at, lanes);
#endif
#if MODE == LSTM || MODE == GRU
#define READ_KEPT(s)             \
  for (int k = 0; k < KEPT; k++) \
    kept[k] = get_value(ELEMENTS(reserve) + ((STEP_OF(s) * BATCH + row) * KEPT + k) * WIDTH + column, lanes);
#else
#define READ_KEPT(s)
#endif
#define READ_STEP(s) READ_GRADIENT(s) READ_OLD(s) READ_KEPT(s)

KERNEL_OF(TOGETHER, 1) layer(PLACES_HERE, numbers n) {
  LOCAL_ARRAY
  __global const CT *factors = (__global const CT *)(packed + offset_packed);
  TAKE_OWN
  EACH_BLOCK {
    TAKE_NEAR
    EACH_PIECE {
      PIECE
      VT state = (VT)0, cell = (VT)0;
#if HAS_GRAD_HY
      state = get_value(ELEMENTS(grad_hy) + at, lanes);
#endif
#if HAS_GRAD_CY
      cell = get_value(ELEMENTS(grad_cy) + at, lanes);
#endif
      put_near(states + r * WIDTH_PAD + column, state, VEC);
      put_near(cells + r * WIDTH_PAD + column, cell, VEC);
    }
    VT given = (VT)0, old, kept[KEPT];
#if ONE_PIECE
    EACH_PIECE {
      PIECE
      READ_STEP(STEPS - 1)
    }
#endif
    SYNC
    for (long s = STEPS - 1; s >= 0; s--) {
      const long first = STEP_OF(s) * BATCH;
      EACH_PIECE {
        PIECE
        VT g = get_near(states + r * WIDTH_PAD + column), to[GATES], hidden[GATES], rest = (VT)0;
        if (s < STEPS - 1) g += sum_near(sums, r, column, n);
#if !ONE_PIECE
        READ_STEP(s)
#endif
        g += given;
#if MODE == LSTM
        const VT t = tanh(kept[4]), gc = get_near(cells + r * WIDTH_PAD + column) + g * kept[3] * ((VT)1 - t * t);
        to[0] = gc * kept[2] * ((VT)1 - kept[0]) * kept[0];
        to[1] = gc * old * ((VT)1 - kept[1]) * kept[1];
        to[2] = gc * kept[0] * ((VT)1 - kept[2] * kept[2]);
        to[3] = g * t * ((VT)1 - kept[3]) * kept[3];
        put_near(cells + r * WIDTH_PAD + column, gc * kept[1], VEC);
#elif MODE == GRU
        const VT reset = kept[0], update = kept[1], fresh = kept[2];
        to[2] = g * ((VT)1 - update) * ((VT)1 - fresh * fresh);
        to[1] = g * (old - fresh) * ((VT)1 - update) * update;
        to[0] = to[2] * kept[3] * ((VT)1 - reset) * reset;
        rest = g * update;
#elif MODE == TANH
        to[0] = g * ((VT)1 - old * old);
#else
        to[0] = old <= (VT)0 ? (VT)0 : g;
#endif
        for (int k = 0; k < GATES; k++) {
          const long gate = ((first + row) * GATES + k) * WIDTH + column;
#if MODE == GRU
          hidden[k] = k == 2 ? to[k] * reset : to[k];
#else
          hidden[k] = to[k];
#endif
          put_value(ELEMENTS(grad_input) + gate, to[k], lanes);
#if MODE == GRU
          put_value(ELEMENTS(grad_hidden) + gate, hidden[k], lanes);
#endif
          put_near(sources + r * INNER_PAD + k * WIDTH + column, hidden[k], lanes);
        }
        put_near(states + r * WIDTH_PAD + column, rest, VEC);
      }
      SYNC
#if ONE_PIECE
      EACH_PIECE {
        PIECE
        READ_STEP(max(s - 1, 0L))
      }
#endif
      multiply(factors, own, sources, sums, n);
      SYNC
    }
    EACH_PIECE {
      PIECE
      VT state = get_near(states + r * WIDTH_PAD + column) + sum_near(sums, r, column, n);
      put_value(ELEMENTS(grad_hx) + at, state, lanes);
#if MODE == LSTM
      put_value(ELEMENTS(grad_cx) + at, get_near(cells + r * WIDTH_PAD + column), lanes);
#endif
    }
  }
}
#endif
