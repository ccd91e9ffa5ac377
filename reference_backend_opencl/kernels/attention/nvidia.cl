/* Attention on Hopper's tensor cores, of 16-bit floats; after attention.cl, whose tensors and numbers it takes. A
 * group of two warpgroups makes MINE rows of scores, or for the gradients of key and value MINE columns; of the other
 * side THEIRS come to local memory at a time, and the next while these are worked on. Scores never leave registers.
 *
 * The head defines three products (runtime/nvidia.h): multiply_scores(sums, a, b) of two strips;
 * multiply_values(sums, a, b) and multiply_keys(sums, a, b), of weights in registers with a strip of VALUE_BLOCKS or
 * KEY_BLOCKS x 64 columns; and THEIRS.
 *
 * A weight is f32, and tensor cores take 16 bits: it goes in as the sum of two numbers, its rounding and what that
 * left. */
#define LANES 256
#define MINE 128
#define KEY_BLOCKS ((WIDTH + 63) / 64)
#define VALUE_BLOCKS ((VALUE_WIDTH + 63) / 64)
#define MINE_BYTES(blocks) ((blocks) * MINE * ROW_BYTES)
#define THEIRS_BYTES(blocks) ((blocks) * THEIRS * ROW_BYTES)
#define SCORES (THEIRS / 2) /* of a work-item */

/* Brings `tile` rows of `width` elements, a block of 64 after the other. */
static INLINED void bring_rows(uint to, __global const ushort *from, long stride, long rows, int tile, int width,
                               int lane) {
#pragma unroll
  for (int block = 0; block < (width + 63) / 64; block++) {
    share s = share_along(from + block * 64, stride, rows, lane, LANES);
    bring(&s, to + block * tile * ROW_BYTES, tile, 1, width - block * 64, LANES);
  }
}
#define BRING(to, name, tensor, head, first, rows, tile, width) \
  bring_rows(to, ELEMENTS(name) + START(tensor, head, first), STRIDE(tensor, 2), (rows) - (first), tile, width, lane)

/* Keys and values of THEIRS columns. */
#define BRING_COLUMNS(to, column)                                \
  BRING(to, key, KEY, head, column, COLUMNS, THEIRS, WIDTH);     \
  BRING((to) + THEIRS_BYTES(KEY_BLOCKS), value, VALUE, head, column, COLUMNS, THEIRS, VALUE_WIDTH)

/* sums = the products of this warpgroup's 64 rows of `mine` and all of `theirs`. */
static INLINED void score(float *sums, uint mine, uint theirs, int blocks) {
#pragma unroll
  for (int i = 0; i < SCORES; i++) sums[i] = 0;
  tensor_begin();
#pragma unroll
  for (int step = 0; step < blocks * 4; step++)
    multiply_scores(sums, descriptor(mine + step / 4 * (MINE * ROW_BYTES) + step % 4 * 32, 0),
                    descriptor(theirs + step / 4 * (THEIRS * ROW_BYTES) + step % 4 * 32, 0));
  tensor_commit();
}

/* Two numbers rounded into a register, and as numbers again. */
#define ROUND_bf16 "cvt.rn.bf16x2.f32"
#define ROUND_f16 "cvt.rn.f16x2.f32"
static INLINED uint pair_of(float x, float y) {
  uint pair;
  __asm(CAT(ROUND_, D) " %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
  return pair;
}
static INLINED float2 numbers_of(uint pair) {
  RAW(D) low = (ushort)pair, high = (ushort)(pair >> 16);
  return (float2)(LOAD(D, __private, &low), LOAD(D, __private, &high));
}

/* Weights, as two terms each, in the order of a product's first factor: of 16 steps of K after each other. */
typedef struct {
  uint rounded[SCORES / 2], rest[SCORES / 2];
} terms;

static INLINED void split(terms *t, const float *weights) {
#pragma unroll
  for (int i = 0; i < SCORES / 2; i++) {
    t->rounded[i] = pair_of(weights[2 * i], weights[2 * i + 1]);
    float2 back = numbers_of(t->rounded[i]);
    /* Of what is not finite nothing is left. */
    t->rest[i] = pair_of(isfinite(back.x) ? weights[2 * i] - back.x : 0,
                         isfinite(back.y) ? weights[2 * i + 1] - back.y : 0);
  }
}

/* Adds to sums, of `blocks` x 64 columns, the weights times rows of `theirs`. */
static INLINED void add_weighted(float *sums, const terms *t, uint theirs, int blocks) {
  tensor_begin();
#pragma unroll
  for (int step = 0; step < THEIRS / 16; step++) {
    const ulong rows = descriptor(theirs + step * 16 * ROW_BYTES, THEIRS * ROW_BYTES);
    if (blocks == KEY_BLOCKS) {
      multiply_keys(sums, t->rounded + step * 4, rows);
      multiply_keys(sums, t->rest + step * 4, rows);
    } else {
      multiply_values(sums, t->rounded + step * 4, rows);
      multiply_values(sums, t->rest + step * 4, rows);
    }
  }
  tensor_commit();
  TENSOR_WAIT(0);
}

/* Which of a tile's rows and columns score i of this work-item is of. */
#define ROW_OF(i) (lane / 32 * 16 + lane % 32 / 4 + (i) / 2 % 2 * 8)
#define COLUMN_OF(i) ((i) / 4 * 8 + lane % 4 * 2 + (i) % 2)

/* The rest of 2^x is as good as zero. */
static INLINED float power_of_two(float x) {
  float y;
  __asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#define QUICK_EXP(x) power_of_two((x)*1.44269504f)

static INLINED float of_lane(float x, int distance) {
  float y;
  __asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=f"(y) : "f"(x), "r"(distance));
  return y;
}
/* Of the four work-items that share a row. */
static INLINED float most_of_four(float x) {
  x = fmax(x, of_lane(x, 1));
  return fmax(x, of_lane(x, 2));
}
static INLINED float sum_of_four(float x) {
  x += of_lane(x, 1);
  return x + of_lane(x, 2);
}

/* Products become scores: scaled, biased, and -inf where there are none. `inside`: all of the tile is seen. */
static INLINED float score_of(float product, long head, long i, long j, bool inside, float scale, numbers n,
                              __global const ushort *bias) {
  if (!inside && (i >= ROWS || j >= COLUMNS || !SEEN(i, j))) return -INFINITY;
  float s = product * scale;
#if HAS_BIAS
  s += GET(bias + START(BIAS, head, i) + j * STRIDE(BIAS, 3));
#endif
  return s;
}
#if HAS_BIAS
#define BIAS_PLACE ELEMENTS(bias)
#else
#define BIAS_PLACE 0
#endif

/* Rows of sums go out: `width` columns of them, times a factor for each of a work-item's two rows. */
static INLINED void put_sums(__global ushort *to, long stride, const float *sums, long rows, int width, float factor0,
                             float factor1, int lane) {
#pragma unroll
  for (int i = 0; i < (width + 63) / 64 * 32; i += 2) {
    const float factor = i / 2 % 2 ? factor1 : factor0;
    if (ROW_OF(i) < rows && COLUMN_OF(i) < width)
      *(__global uint *)(to + ROW_OF(i) * stride + COLUMN_OF(i)) = pair_of(sums[i] * factor, sums[i + 1] * factor);
  }
}
#define PUT_SUMS(name, tensor, sums, head, first, rows, width, factor0, factor1)                            \
  put_sums(ELEMENTS(name) + START(tensor, head, first), STRIDE(tensor, 2), sums, (rows) - (first), width, factor0, \
           factor1, lane)

/* The tile of a group: heads one after the other; of CAUSAL ones those with most to do first. */
#define TILE_OF(length)                                                                    \
  const long tiles = ((length) + MINE - 1) / MINE, head = get_group_id(0) / tiles;         \
  const long turn = get_group_id(0) % tiles

#ifdef FORWARD
/* What weights, which are KEEP at most, are multiplied by: f16 has few powers of two below 1. */
static INLINED float unit_of(float keep) {
#ifdef NARROW
  return as_float((127 + 14 - max((as_int(keep) >> 23) - 127, 0)) << 23);
#else
  return 1;
#endif
}

KERNEL_OF(LANES, 1) attention(PLACE(out), PLACE(lse), PLACE(seed), PLACE(offset), PLACE(query), PLACE(key),
                              PLACE(value), PLACE(bias), numbers n) {
  __local uchar strips[MINE_BYTES(KEY_BLOCKS) + 2 * THEIRS_BYTES(KEY_BLOCKS + VALUE_BLOCKS)]
      __attribute__((aligned(1024)));
#ifndef DROPOUT
  if (get_global_id(0) == 0) *POINTER(i64, seed) = *POINTER(i64, offset) = 0;
#endif
  const int lane = get_local_id(0);
  TILE_OF(ROWS);
  const long first = (CAUSAL ? tiles - 1 - turn : turn) * MINE;
  const uint queries = local_address(strips), keys = queries + MINE_BYTES(KEY_BLOCKS);
  const uint mine = queries + lane / 128 * 64 * ROW_BYTES;
  const float scale = SCALE, unit = unit_of(KEEP);
  BRING(queries, query, QUERY, head, first, ROWS, MINE, WIDTH);
  float sums[VALUE_BLOCKS * 32], most[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < VALUE_BLOCKS * 32; i++) sums[i] = 0;
  const long end = CAUSAL ? min(first + MINE, COLUMNS) : COLUMNS;
  for (long column = -THEIRS; column < end; column += THEIRS) {
    const long next = column + THEIRS;
    if (next < end) {
      const uint to = keys + next / THEIRS % 2 * THEIRS_BYTES(KEY_BLOCKS + VALUE_BLOCKS);
      BRING_COLUMNS(to, next);
    }
    copy_commit();
    if (column < 0) continue;
    COPIES_ARRIVE(1);
    const uint theirs = keys + column / THEIRS % 2 * THEIRS_BYTES(KEY_BLOCKS + VALUE_BLOCKS);
    const bool inside = column + THEIRS <= COLUMNS && first + MINE <= ROWS && (!CAUSAL || column + THEIRS - 1 <= first);
    float weights[SCORES], now[2] = {most[0], most[1]};
    score(weights, mine, theirs, KEY_BLOCKS);
    TENSOR_WAIT(0);
#pragma unroll
    for (int i = 0; i < SCORES; i++) {
      weights[i] = score_of(weights[i], head, first + ROW_OF(i), column + COLUMN_OF(i), inside, scale, n, BIAS_PLACE);
      now[i / 2 % 2] = fmax(now[i / 2 % 2], weights[i]);
    }
    float less[2], shift[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      now[r] = most_of_four(now[r]);
      shift[r] = now[r] == -INFINITY ? 0 : now[r];
      less[r] = QUICK_EXP(most[r] - shift[r]);
      most[r] = now[r];
      total[r] *= less[r];
    }
#pragma unroll
    for (int i = 0; i < VALUE_BLOCKS * 32; i++) sums[i] *= less[i / 2 % 2];
#pragma unroll
    for (int i = 0; i < SCORES; i++) {
      weights[i] = QUICK_EXP(weights[i] - shift[i / 2 % 2]);
      total[i / 2 % 2] += weights[i];
#ifdef DROPOUT
      weights[i] *= MASK(head, first + ROW_OF(i), column + COLUMN_OF(i));
#endif
      weights[i] *= unit;
    }
    terms t;
    split(&t, weights);
    add_weighted(sums, &t, theirs + THEIRS_BYTES(KEY_BLOCKS), VALUE_BLOCKS);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float factor[2];
#pragma unroll
  for (int r = 0; r < 2; r++) {
    total[r] = sum_of_four(total[r]);
    const bool nothing = most[r] == -INFINITY;
    factor[r] = 1 / ((nothing ? 1.0f : total[r]) * unit);
    const long row = first + ROW_OF(2 * r);
    const float value = nothing ? -INFINITY : most[r] + log(total[r]);
    if (lane % 4 == 0 && row < ROWS) STORE(D_LSE, __global, POINTER(D_LSE, lse) + START(LSE, head, row), value);
  }
  PUT_SUMS(out, OUT, sums, head, first, ROWS, VALUE_WIDTH, factor[0], factor[1]);
}

#else
/* The sums of grad * out of a row, which the other kernels need. */
KERNEL attention_deltas(BACKWARD_PLACES, numbers n) {
  EACH_UNIT(piece) {
    const long head = piece / ROWS, i = piece % ROWS;
    __global const ushort *g = ELEMENTS(grad) + START(GRAD, head, i), *o = ELEMENTS(out) + START(OUT, head, i);
    float sum = 0;
    for (int e = 0; e < VALUE_WIDTH; e += 2) {
      const float2 x = numbers_of(*(__global const uint *)(g + e)), y = numbers_of(*(__global const uint *)(o + e));
      sum = fma(x.x, y.x, fma(x.y, y.y, sum));
    }
    DELTA(head, i) = sum;
  }
}

/* f16 has few powers of two: factors are made as large as they may be, row by row, and the sums of `blocks` x 64
 * columns follow where larger ones come. power is 0 until there is a factor that is not. */
static INLINED void level(float *factors, float *sums, int blocks, float *power) {
#ifdef NARROW
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float most = 0;
#pragma unroll
    for (int i = 0; i < SCORES; i += 4) most = fmax(most, fmax(fabs(factors[i + 2 * r]), fabs(factors[i + 2 * r + 1])));
    most = most_of_four(most);
    const int exponent = as_int(most) >> 23;
    const float wanted = as_float(clamp(266 - exponent, 1, 254) << 23); /* most * wanted lies in [2^12, 2^13) */
    const bool lowers = exponent > 0 && exponent < 255 && (power[r] == 0 || wanted < power[r]);
    const float factor = lowers && power[r] > 0 ? wanted / power[r] : 1;
    power[r] = lowers ? wanted : power[r];
    const float up = power[r] > 0 ? power[r] : 1;
#pragma unroll
    for (int i = 0; i < blocks * 32; i += 4) sums[i + 2 * r] *= factor, sums[i + 2 * r + 1] *= factor;
#pragma unroll
    for (int i = 0; i < SCORES; i += 4) factors[i + 2 * r] *= up, factors[i + 2 * r + 1] *= up;
  }
#endif
}
static INLINED float levelled(float factor, float power) { return power > 0 ? factor / power : factor; }

/* What a product becomes: a weight, and what the sum changes with its score. */
static INLINED void weights_of(float *weight, float *slope, float lse, float delta, float mask) {
  const float w = *weight == -INFINITY || lse == -INFINITY ? 0 : QUICK_EXP(*weight - lse);
  *slope = w * (*slope * mask - delta);
  *weight = w * mask;
}

/* By rows: the gradient of the query. */
#if WANTS_QUERY
KERNEL_OF(LANES, 1) attention_rows(BACKWARD_PLACES, numbers n) {
  __local uchar strips[MINE_BYTES(KEY_BLOCKS + VALUE_BLOCKS) + 2 * THEIRS_BYTES(KEY_BLOCKS + VALUE_BLOCKS)]
      __attribute__((aligned(1024)));
  const int lane = get_local_id(0);
  TILE_OF(ROWS);
  const long first = (CAUSAL ? tiles - 1 - turn : turn) * MINE;
  const uint queries = local_address(strips), keys = queries + MINE_BYTES(KEY_BLOCKS + VALUE_BLOCKS);
  const uint mine = queries + lane / 128 * 64 * ROW_BYTES;
  const float scale = SCALE;
  BRING(queries, query, QUERY, head, first, ROWS, MINE, WIDTH);
  BRING(queries + MINE_BYTES(KEY_BLOCKS), grad, GRAD, head, first, ROWS, MINE, VALUE_WIDTH);
  float sums[KEY_BLOCKS * 32], lses[2], deltas[2], power[2] = {0, 0};
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const long row = min(first + ROW_OF(2 * r), ROWS - 1);
    lses[r] = LSE_OF(head, row);
    deltas[r] = DELTA(head, row);
  }
#pragma unroll
  for (int i = 0; i < KEY_BLOCKS * 32; i++) sums[i] = 0;
  const long end = CAUSAL ? min(first + MINE, COLUMNS) : COLUMNS;
  for (long column = -THEIRS; column < end; column += THEIRS) {
    const long next = column + THEIRS;
    if (next < end) {
      const uint to = keys + next / THEIRS % 2 * THEIRS_BYTES(KEY_BLOCKS + VALUE_BLOCKS);
      BRING_COLUMNS(to, next);
    }
    copy_commit();
    if (column < 0) continue;
    COPIES_ARRIVE(1);
    const uint theirs = keys + column / THEIRS % 2 * THEIRS_BYTES(KEY_BLOCKS + VALUE_BLOCKS);
    const bool inside = column + THEIRS <= COLUMNS && first + MINE <= ROWS && (!CAUSAL || column + THEIRS - 1 <= first);
    float weights[SCORES], slopes[SCORES];
    score(weights, mine, theirs, KEY_BLOCKS);
    score(slopes, mine + MINE_BYTES(KEY_BLOCKS), theirs + THEIRS_BYTES(KEY_BLOCKS), VALUE_BLOCKS);
    TENSOR_WAIT(0);
#pragma unroll
    for (int i = 0; i < SCORES; i++) {
      const long row = first + ROW_OF(i), j = column + COLUMN_OF(i);
      weights[i] = score_of(weights[i], head, row, j, inside, scale, n, BIAS_PLACE);
      weights_of(&weights[i], &slopes[i], lses[i / 2 % 2], deltas[i / 2 % 2], MASK(head, row, j));
    }
    terms t;
    level(slopes, sums, KEY_BLOCKS, power);
    split(&t, slopes);
    add_weighted(sums, &t, theirs, KEY_BLOCKS);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  PUT_SUMS(to_query, TO_QUERY, sums, head, first, ROWS, WIDTH, levelled(scale, power[0]),
           levelled(scale, power[1]));
}
#endif

/* By columns: the gradients of key and value. The scores are turned: a row of them is a column here. */
#if WANTS_KEY || WANTS_VALUE
KERNEL_OF(LANES, 1) attention_columns(BACKWARD_PLACES, numbers n) {
  __local uchar strips[MINE_BYTES(KEY_BLOCKS + VALUE_BLOCKS) + 2 * THEIRS_BYTES(KEY_BLOCKS + VALUE_BLOCKS)]
      __attribute__((aligned(1024)));
  __local float lses[2][THEIRS], deltas[2][THEIRS];
  const int lane = get_local_id(0);
  TILE_OF(COLUMNS);
  const long first = turn * MINE;
  const uint keys = local_address(strips), queries = keys + MINE_BYTES(KEY_BLOCKS + VALUE_BLOCKS);
  const uint mine = keys + lane / 128 * 64 * ROW_BYTES;
  const float scale = SCALE;
  BRING(keys, key, KEY, head, first, COLUMNS, MINE, WIDTH);
  BRING(keys + MINE_BYTES(KEY_BLOCKS), value, VALUE, head, first, COLUMNS, MINE, VALUE_WIDTH);
  float sums[KEY_BLOCKS * 32], value_sums[VALUE_BLOCKS * 32], power[2] = {0, 0}, value_power[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < KEY_BLOCKS * 32; i++) sums[i] = 0;
#pragma unroll
  for (int i = 0; i < VALUE_BLOCKS * 32; i++) value_sums[i] = 0;
  const long begin = CAUSAL ? first / THEIRS * THEIRS : 0;
  for (long row = begin - THEIRS; row < ROWS; row += THEIRS) {
    const long next = row + THEIRS, half_ = next / THEIRS % 2;
    if (next < ROWS) {
      const uint to = queries + half_ * THEIRS_BYTES(KEY_BLOCKS + VALUE_BLOCKS);
      BRING(to, query, QUERY, head, next, ROWS, THEIRS, WIDTH);
      BRING(to + THEIRS_BYTES(KEY_BLOCKS), grad, GRAD, head, next, ROWS, THEIRS, VALUE_WIDTH);
      if (lane < THEIRS) {
        const long i = min(next + lane, ROWS - 1);
        lses[half_][lane] = LSE_OF(head, i);
        deltas[half_][lane] = DELTA(head, i);
      }
    }
    copy_commit();
    if (row < begin) continue;
    COPIES_ARRIVE(1);
    const uint theirs = queries + row / THEIRS % 2 * THEIRS_BYTES(KEY_BLOCKS + VALUE_BLOCKS);
    const bool inside = first + MINE <= COLUMNS && row + THEIRS <= ROWS && (!CAUSAL || first + MINE - 1 <= row);
    float weights[SCORES], slopes[SCORES];
    score(weights, mine, theirs, KEY_BLOCKS);
    score(slopes, mine + MINE_BYTES(KEY_BLOCKS), theirs + THEIRS_BYTES(KEY_BLOCKS), VALUE_BLOCKS);
    TENSOR_WAIT(0);
#pragma unroll
    for (int i = 0; i < SCORES; i++) {
      const long j = first + ROW_OF(i), of = row + COLUMN_OF(i);
      weights[i] = score_of(weights[i], head, of, j, inside, scale, n, BIAS_PLACE);
      weights_of(&weights[i], &slopes[i], lses[row / THEIRS % 2][COLUMN_OF(i)], deltas[row / THEIRS % 2][COLUMN_OF(i)],
                 MASK(head, of, j));
    }
    terms t;
#if WANTS_VALUE
    level(weights, value_sums, VALUE_BLOCKS, value_power);
    split(&t, weights);
    add_weighted(value_sums, &t, theirs + THEIRS_BYTES(KEY_BLOCKS), VALUE_BLOCKS);
#endif
#if WANTS_KEY
    level(slopes, sums, KEY_BLOCKS, power);
    split(&t, slopes);
    add_weighted(sums, &t, theirs, KEY_BLOCKS);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#if WANTS_KEY
  PUT_SUMS(to_key, TO_KEY, sums, head, first, COLUMNS, WIDTH, levelled(scale, power[0]),
           levelled(scale, power[1]));
#endif
#if WANTS_VALUE
  PUT_SUMS(to_value, TO_VALUE, value_sums, head, first, COLUMNS, VALUE_WIDTH, levelled(1, value_power[0]),
           levelled(1, value_power[1]));
#endif
}
#endif
#endif
