/* Scaled dot product attention, after random.cl (for philox) and direct.cl. A piece is a block of up to BLOCK rows of
 * scores of one head, or of as many of their columns; keys and values are read once for the block. The head defines
 * WIDTH and VALUE_WIDTH, CAUSAL, HAS_BIAS, D_LSE, UNIT (last dims are dense) and DROPOUT; FORWARD, or WANTS_QUERY and so on
 * for a backward.
 *
 * Weights are made a few columns at a time with the largest score so far; when a larger one comes, what was summed is
 * scaled down. Backward makes them again from logsumexp. */
#define HEADS n.of[0]
#define ROWS n.of[1]
#define COLUMNS n.of[2]

/* Strides of tensors, four each: batch, head, row, element. */
#define QUERY 0
#define KEY 1
#define VALUE 2
#define OUT 3
#define BIAS 4
#define GRAD 5
#define TO_QUERY 6
#define TO_KEY 7
#define TO_VALUE 8
#define TO_BIAS 9
#define LSE 10
#define BIAS_SIZES 11
#define STRIDE(tensor, dim) n.of[4 + 4 * (tensor) + (dim)]
#define SCALE NUMBER(52)
#define KEEP NUMBER(53) /* what is kept is multiplied by it */
#define THRESHOLD ((uint)n.of[54])

/* Where row i of a head begins. */
#define START(tensor, head, i) \
  ((head) / HEADS * STRIDE(tensor, 0) + (head) % HEADS * STRIDE(tensor, 1) + (i) * STRIDE(tensor, 2))

#define COLUMNS_AT_ONCE 32

#ifdef UNIT
#define ELEMENT(e, stride) (e)
#else
#define ELEMENT(e, stride) ((e) * (stride))
#endif

/* Rows in private memory are vectors of 16, the last one filled up with zeros. GPUs keep them in registers, if every index
 * is known when the kernel is compiled; on CPUs so long a code costs seconds of building and gains nothing. */
#ifdef REGISTERS
#define EACH_ELEMENT _Pragma("unroll")
#else
#define EACH_ELEMENT _Pragma("unroll 1")
#endif
#define VECTOR CAT(CT, 16)
#define VECTORS(width) (((width) + 15) / 16 + ((width) == 0))

static void read_row(VECTOR *to, __global const RAW(D) *from, int width, long stride) {
  CT *lanes = (CT *)to;
  if (width % 16) to[VECTORS(width) - 1] = 0;
  EACH_ELEMENT
  for (int e = 0; e < width; e++) lanes[e] = GET(from + ELEMENT(e, stride));
}

static CT dot_rows(const VECTOR *a, const VECTOR *b, int width) {
  VECTOR sum = 0;
  EACH_ELEMENT
  for (int i = 0; i < VECTORS(width); i++) sum = fma(a[i], b[i], sum);
  /* Halves are read as memory: Oclgrind takes those of a vector (.lo, .hi) for uninitialised. */
  const CAT(CT, 8) eight = vload8(0, (const CT *)&sum) + vload8(1, (const CT *)&sum);
  const CAT(CT, 4) four = vload4(0, (const CT *)&eight) + vload4(1, (const CT *)&eight);
  return (four.x + four.z) + (four.y + four.w);
}

static void add_row(VECTOR *to, CT factor, const VECTOR *from, int width) {
  EACH_ELEMENT
  for (int i = 0; i < VECTORS(width); i++) to[i] = fma((VECTOR)factor, from[i], to[i]);
}

static void clear_row(VECTOR *to, int width) {
  EACH_ELEMENT
  for (int i = 0; i < VECTORS(width); i++) to[i] = 0;
}

static void scale_row(VECTOR *to, CT factor, int width) {
  EACH_ELEMENT
  for (int i = 0; i < VECTORS(width); i++) to[i] *= factor;
}

static void write_row(__global RAW(D) *to, const VECTOR *from, CT divisor, int width, long stride) {
  const CT *lanes = (const CT *)from;
  EACH_ELEMENT
  for (int e = 0; e < width; e++) PUT(to + ELEMENT(e, stride), lanes[e] / divisor);
}

#ifdef DROPOUT
/* 0, or KEEP, for a weight. */
static CT mask_of(__global const ulong *seed, __global const ulong *offset, ulong element, uint threshold, CT keep) {
  uint4 words = philox(*offset / 4 + element / 4, *seed);
  uint word = element % 4 == 0 ? words.x : element % 4 == 1 ? words.y : element % 4 == 2 ? words.z : words.w;
  return (word >> 8) < threshold ? keep : (CT)0;
}
#define MASK(head, i, j)                                                                            \
  mask_of((__global const ulong *)POINTER(u64, seed), (__global const ulong *)POINTER(u64, offset), \
          (ulong)(((head) * ROWS + (i)) * COLUMNS + (j)), THRESHOLD, KEEP)
#else
#define MASK(head, i, j) ((CT)1)
#endif

#if HAS_BIAS
#define BIASED(s, head, i, j) ((s) + GET(ELEMENTS(bias) + START(BIAS, head, i) + (j) * STRIDE(BIAS, 3)))
#else
#define BIASED(s, head, i, j) (s)
#endif
#if CAUSAL
#define SEEN(i, j) ((j) <= (i))
#else
#define SEEN(i, j) 1
#endif
#define SCORE(head, i, j, q, k) (SEEN(i, j) ? BIASED(SCALE * dot_rows(q, k, WIDTH), head, i, j) : (CT)-INFINITY)

/* The block of this piece: its head, its first row (or column), and how many. */
#define BLOCK_OF(length)                                            \
  const long blocks = ((length) + BLOCK - 1) / BLOCK;               \
  const long head = piece / blocks, first = piece % blocks * BLOCK; \
  const int count = (int)min((long)BLOCK, (length)-first)

#if defined(FORWARD) && BLOCK % 16 == 0
/* On a CPU, where there are rows enough: lanes are rows of scores. A query's element is turned into vectors once, elements of
 * keys and values are read one by one as they lie, and nothing is summed across lanes. */
#define LANES (BLOCK / 16)
#define TILE 8 /* columns, or elements of values, whose sums are in registers at a time */
#define MASKS CAT(MT, 16)

#ifdef IS_DOUBLE
static VECTOR exp_of(VECTOR x) {
  CT *lanes = (CT *)&x;
  for (int i = 0; i < 16; i++) lanes[i] = exp(lanes[i]);
  return x;
}
#else
/* Of what is not above 0, to 2 ulp; below the normal numbers it is 0. x = n log(2) + r, and e^r is its series. */
static VECTOR exp_of(VECTOR x) {
  const MASKS is_low = x < (VECTOR)-87;
  const VECTOR at = is_low ? (VECTOR)0 : x, shift = (VECTOR)12582912.0f; /* 1.5 * 2^23: rounds to a whole number */
  const VECTOR shifted = fma(at, (VECTOR)1.44269504f, shift), n = shifted - shift;
  const VECTOR r = fma(n, (VECTOR)2.12194440e-4f, fma(n, (VECTOR)-0.693359375f, at));
  VECTOR p = fma((VECTOR)1.98412698e-4f, r, (VECTOR)1.38888889e-3f);
  p = fma(p, r, (VECTOR)8.33333333e-3f);
  p = fma(p, r, (VECTOR)4.16666667e-2f);
  p = fma(p, r, (VECTOR)1.66666667e-1f);
  p = fma(p, r, (VECTOR)0.5f);
  p = fma(p, r, (VECTOR)1);
  p = fma(p, r, (VECTOR)1);
  union {
    VECTOR number;
    MASKS bits;
  } scale = {.number = shifted};
  scale.bits = (scale.bits << 23) + 0x3f800000;
  return is_low ? (VECTOR)0 : p * scale.number;
}
#endif

/* Sums over `count` steps of the products of vectors, `vectors` of one step after the other, and single elements: sums[c]
 * takes those that lie at from[c], `step` further on each time. */
static INLINED void add_products(VECTOR sums[TILE][LANES], const VECTOR (*vectors)[LANES],
                                 __global const RAW(D) *const from[TILE], int count, long step) {
  for (int i = 0; i < count; i++) {
#pragma unroll
    for (int c = 0; c < TILE; c++) {
      const VECTOR x = (VECTOR)GET(from[c] + i * step);
#pragma unroll
      for (int l = 0; l < LANES; l++) sums[c][l] = fma(vectors[i][l], x, sums[c][l]);
    }
  }
}

KERNEL attention(PLACE(out), PLACE(lse), PLACE(seed), PLACE(offset), PLACE(query), PLACE(key), PLACE(value),
                 PLACE(bias), numbers n) {
#ifndef DROPOUT
  if (get_global_id(0) == 0) *POINTER(i64, seed) = *POINTER(i64, offset) = 0;
#endif
  CT lane_numbers[16];
  for (int r = 0; r < 16; r++) lane_numbers[r] = r;
  const VECTOR lane_number = vload16(0, lane_numbers);
  EACH_UNIT(piece) {
    BLOCK_OF(ROWS);
    VECTOR q[WIDTH + 1][LANES], sums[VALUE_WIDTH + TILE][LANES], weights[COLUMNS_AT_ONCE][LANES];
    VECTOR most[LANES], total[LANES];
    for (int r = 0; r < BLOCK; r++) {
      __global const RAW(D) *from = ELEMENTS(query) + START(QUERY, head, first + min(r, count - 1));
      for (int e = 0; e < WIDTH; e++) ((CT *)q)[e * BLOCK + r] = GET(from + ELEMENT(e, STRIDE(QUERY, 3)));
    }
    for (int e = 0; e < VALUE_WIDTH + TILE; e++) {
      for (int l = 0; l < LANES; l++) sums[e][l] = (VECTOR)0;
    }
    for (int l = 0; l < LANES; l++) most[l] = (VECTOR)-INFINITY, total[l] = (VECTOR)0;
    const long end = CAUSAL ? min(first + count, COLUMNS) : COLUMNS;
    for (long column = 0; column < end; column += COLUMNS_AT_ONCE) {
      const int wide = (int)min((long)COLUMNS_AT_ONCE, end - column);
      for (int j = 0; j < wide; j += TILE) {
        __global const RAW(D) *keys[TILE]; /* beyond the last, the last again */
        VECTOR scores[TILE][LANES];
#pragma unroll
        for (int c = 0; c < TILE; c++) {
          keys[c] = ELEMENTS(key) + START(KEY, head, column + min(j + c, wide - 1));
#pragma unroll
          for (int l = 0; l < LANES; l++) scores[c][l] = (VECTOR)0;
        }
        add_products(scores, q, keys, WIDTH, ELEMENT(1, STRIDE(KEY, 3)));
#pragma unroll
        for (int c = 0; c < TILE; c++) {
#pragma unroll
          for (int l = 0; l < LANES; l++) weights[j + c][l] = (VECTOR)SCALE * scores[c][l];
        }
      }
#if HAS_BIAS
      for (int j = 0; j < wide; j++) {
        CT *lanes = (CT *)weights[j];
        for (int r = 0; r < count; r++) lanes[r] = BIASED(lanes[r], head, first + r, column + j);
      }
#endif
      for (int l = 0; l < LANES; l++) {
        VECTOR now = most[l];
        for (int j = 0; j < wide; j++) {
#if CAUSAL
          const CT seen_from = (CT)(column + j - first - 16 * l); /* the first lane that sees this column */
          weights[j][l] = lane_number >= (VECTOR)seen_from ? weights[j][l] : (VECTOR)-INFINITY;
#endif
          const VECTOR score = weights[j][l];
          now = (score > now) | (score != score) ? score : now;
        }
        const VECTOR shift = now == (VECTOR)-INFINITY ? (VECTOR)0 : now, less = exp_of(most[l] - shift);
        most[l] = now;
        total[l] *= less;
        for (int e = 0; e < VALUE_WIDTH; e++) sums[e][l] *= less;
        for (int j = 0; j < wide; j++) {
          weights[j][l] = exp_of(weights[j][l] - shift);
          total[l] += weights[j][l];
        }
      }
#ifdef DROPOUT
      for (int j = 0; j < wide; j++) {
        CT *lanes = (CT *)weights[j];
        for (int r = 0; r < count; r++) lanes[r] *= MASK(head, first + r, column + j);
      }
#endif
      for (int e = 0; e < VALUE_WIDTH; e += TILE) {
        __global const RAW(D) *values[TILE];
        VECTOR parts[TILE][LANES];
#pragma unroll
        for (int c = 0; c < TILE; c++) {
          values[c] = ELEMENTS(value) + START(VALUE, head, column) + ELEMENT(min(e + c, VALUE_WIDTH - 1), STRIDE(VALUE, 3));
#pragma unroll
          for (int l = 0; l < LANES; l++) parts[c][l] = sums[e + c][l];
        }
        add_products(parts, weights, values, wide, STRIDE(VALUE, 2));
#pragma unroll
        for (int c = 0; c < TILE; c++) {
#pragma unroll
          for (int l = 0; l < LANES; l++) sums[e + c][l] = parts[c][l];
        }
      }
    }
    for (int r = 0; r < count; r++) {
      __global RAW(D) *to = ELEMENTS(out) + START(OUT, head, first + r);
      const CT largest = ((CT *)most)[r], all = ((CT *)total)[r];
      const bool nothing = largest == -INFINITY;
      for (int e = 0; e < VALUE_WIDTH; e++)
        PUT(to + ELEMENT(e, STRIDE(OUT, 3)), ((CT *)sums)[e * BLOCK + r] / (nothing ? (CT)1 : all));
      STORE(D_LSE, __global, POINTER(D_LSE, lse) + START(LSE, head, first + r),
            nothing ? (CT)-INFINITY : largest + log(all));
    }
  }
}

#elif defined(FORWARD)
KERNEL attention(PLACE(out), PLACE(lse), PLACE(seed), PLACE(offset), PLACE(query), PLACE(key), PLACE(value),
                 PLACE(bias), numbers n) {
#ifndef DROPOUT
  if (get_global_id(0) == 0) *POINTER(i64, seed) = *POINTER(i64, offset) = 0;
#endif
  EACH_UNIT(piece) {
    BLOCK_OF(ROWS);
    VECTOR q[BLOCK][VECTORS(WIDTH)], sums[BLOCK][VECTORS(VALUE_WIDTH)];
    VECTOR row[VECTORS(WIDTH > VALUE_WIDTH ? WIDTH : VALUE_WIDTH)];
    CT most[BLOCK], total[BLOCK], weights[BLOCK][COLUMNS_AT_ONCE];
    for (int r = 0; r < count; r++) {
      read_row(q[r], ELEMENTS(query) + START(QUERY, head, first + r), WIDTH, STRIDE(QUERY, 3));
      clear_row(sums[r], VALUE_WIDTH);
      most[r] = -INFINITY;
      total[r] = 0;
    }
    const long end = CAUSAL ? min(first + count, COLUMNS) : COLUMNS;
    for (long from = 0; from < end; from += COLUMNS_AT_ONCE) {
      const int wide = (int)min((long)COLUMNS_AT_ONCE, end - from);
      for (int j = 0; j < wide; j++) {
        read_row(row, ELEMENTS(key) + START(KEY, head, from + j), WIDTH, STRIDE(KEY, 3));
        for (int r = 0; r < count; r++) weights[r][j] = SCORE(head, first + r, from + j, q[r], row);
      }
      for (int r = 0; r < count; r++) {
        CT now = most[r];
        for (int j = 0; j < wide; j++) {
          const CT score = weights[r][j];
          now = score > now || score != score ? score : now;
        }
        const CT shift = now == -INFINITY ? 0 : now, less = exp(most[r] - shift);
        most[r] = now;
        total[r] *= less;
        scale_row(sums[r], less, VALUE_WIDTH);
        for (int j = 0; j < wide; j++) {
          const CT w = exp(weights[r][j] - shift);
          total[r] += w;
          weights[r][j] = w * MASK(head, first + r, from + j);
        }
      }
      for (int j = 0; j < wide; j++) {
        read_row(row, ELEMENTS(value) + START(VALUE, head, from + j), VALUE_WIDTH, STRIDE(VALUE, 3));
        for (int r = 0; r < count; r++) add_row(sums[r], weights[r][j], row, VALUE_WIDTH);
      }
    }
    for (int r = 0; r < count; r++) {
      __global RAW(D) *to = ELEMENTS(out) + START(OUT, head, first + r);
      const bool nothing = most[r] == -INFINITY;
      write_row(to, sums[r], nothing ? (CT)1 : total[r], VALUE_WIDTH, STRIDE(OUT, 3));
      STORE(D_LSE, __global, POINTER(D_LSE, lse) + START(LSE, head, first + r),
            nothing ? (CT)-INFINITY : most[r] + log(total[r]));
    }
  }
}

#else
#define BACKWARD_PLACES                                                                                        \
  PLACE(to_query), PLACE(to_key), PLACE(to_value), PLACE(to_bias), PLACE(delta), PLACE(grad), PLACE(query),    \
      PLACE(key), PLACE(value), PLACE(bias), PLACE(out), PLACE(lse), PLACE(seed), PLACE(offset)

#define DELTA(head, i) (((__global CT *)(delta + offset_delta))[(head) * ROWS + (i)])
#define LSE_OF(head, i) LOAD(D_LSE, __global, POINTER(D_LSE, lse) + START(LSE, head, i))

static CT weight_of(CT score, CT lse) { return score == -INFINITY || lse == -INFINITY ? (CT)0 : exp(score - lse); }

/* By rows: the sums of grad * out, which the other kernels need, and the gradient of the query. */
KERNEL attention_rows(BACKWARD_PLACES, numbers n) {
  EACH_UNIT(piece) {
    BLOCK_OF(ROWS);
    VECTOR q[BLOCK][VECTORS(WIDTH)], g[BLOCK][VECTORS(VALUE_WIDTH)], sums[BLOCK][VECTORS(WIDTH)];
    VECTOR row[VECTORS(WIDTH)], value_row[VECTORS(VALUE_WIDTH)];
    CT deltas[BLOCK];
    for (int r = 0; r < count; r++) {
      const long i = first + r;
      read_row(q[r], ELEMENTS(query) + START(QUERY, head, i), WIDTH, STRIDE(QUERY, 3));
      read_row(g[r], ELEMENTS(grad) + START(GRAD, head, i), VALUE_WIDTH, STRIDE(GRAD, 3));
      read_row(value_row, ELEMENTS(out) + START(OUT, head, i), VALUE_WIDTH, STRIDE(OUT, 3));
      DELTA(head, i) = deltas[r] = dot_rows(g[r], value_row, VALUE_WIDTH);
      clear_row(sums[r], WIDTH);
    }
#if WANTS_QUERY
    const long end = CAUSAL ? min(first + count, COLUMNS) : COLUMNS;
    for (long j = 0; j < end; j++) {
      read_row(row, ELEMENTS(key) + START(KEY, head, j), WIDTH, STRIDE(KEY, 3));
      read_row(value_row, ELEMENTS(value) + START(VALUE, head, j), VALUE_WIDTH, STRIDE(VALUE, 3));
      for (int r = 0; r < count; r++) {
        const CT w = weight_of(SCORE(head, first + r, j, q[r], row), LSE_OF(head, first + r));
        const CT slope = w * (dot_rows(g[r], value_row, VALUE_WIDTH) * MASK(head, first + r, j) - deltas[r]);
        add_row(sums[r], slope, row, WIDTH);
      }
    }
    for (int r = 0; r < count; r++) {
      __global RAW(D) *to = ELEMENTS(to_query) + START(TO_QUERY, head, first + r);
      scale_row(sums[r], SCALE, WIDTH);
      write_row(to, sums[r], 1, WIDTH, STRIDE(TO_QUERY, 3));
    }
#endif
  }
}

/* By columns: the gradients of key and value. */
KERNEL attention_columns(BACKWARD_PLACES, numbers n) {
  EACH_UNIT(piece) {
    BLOCK_OF(COLUMNS);
    VECTOR k[BLOCK][VECTORS(WIDTH)], v[BLOCK][VECTORS(VALUE_WIDTH)];
    VECTOR sums[BLOCK][VECTORS(WIDTH)], value_sums[BLOCK][VECTORS(VALUE_WIDTH)];
    VECTOR q[VECTORS(WIDTH)], g[VECTORS(VALUE_WIDTH)];
    for (int c = 0; c < count; c++) {
      read_row(k[c], ELEMENTS(key) + START(KEY, head, first + c), WIDTH, STRIDE(KEY, 3));
      read_row(v[c], ELEMENTS(value) + START(VALUE, head, first + c), VALUE_WIDTH, STRIDE(VALUE, 3));
      clear_row(sums[c], WIDTH);
      clear_row(value_sums[c], VALUE_WIDTH);
    }
    for (long i = CAUSAL ? first : 0; i < ROWS; i++) {
      const CT row_lse = LSE_OF(head, i), row_delta = DELTA(head, i);
      read_row(q, ELEMENTS(query) + START(QUERY, head, i), WIDTH, STRIDE(QUERY, 3));
      read_row(g, ELEMENTS(grad) + START(GRAD, head, i), VALUE_WIDTH, STRIDE(GRAD, 3));
      for (int c = 0; c < count; c++) {
        const CT w = weight_of(SCORE(head, i, first + c, q, k[c]), row_lse), mask = MASK(head, i, first + c);
        const CT slope = w * (dot_rows(g, v[c], VALUE_WIDTH) * mask - row_delta);
        add_row(sums[c], slope, q, WIDTH);
        add_row(value_sums[c], w * mask, g, VALUE_WIDTH);
      }
    }
    for (int c = 0; c < count; c++) {
#if WANTS_KEY
      __global RAW(D) *to = ELEMENTS(to_key) + START(TO_KEY, head, first + c);
      scale_row(sums[c], SCALE, WIDTH);
      write_row(to, sums[c], 1, WIDTH, STRIDE(TO_KEY, 3));
#endif
#if WANTS_VALUE
      __global RAW(D) *to_v = ELEMENTS(to_value) + START(TO_VALUE, head, first + c);
      write_row(to_v, value_sums[c], 1, VALUE_WIDTH, STRIDE(TO_VALUE, 3));
#endif
    }
  }
}

#if HAS_BIAS
/* One number of the bias: the sum of what it was added to. */
KERNEL attention_bias(BACKWARD_PLACES, numbers n) {
  EACH_UNIT(piece) {
    long at[4], last[4], rest = piece;
    const long all[4] = {n.of[3], HEADS, ROWS, COLUMNS};
    for (int d = 3; d >= 0; d--) {
      const long size = STRIDE(BIAS_SIZES, d);
      at[d] = size == 1 ? 0 : rest % size;
      last[d] = size == 1 ? all[d] : at[d] + 1;
      rest /= size;
    }
    VECTOR q[VECTORS(WIDTH)], k[VECTORS(WIDTH)], g[VECTORS(VALUE_WIDTH)], v[VECTORS(VALUE_WIDTH)];
    CT sum = 0;
    for (long b = at[0]; b < last[0]; b++) {
      for (long h = at[1]; h < last[1]; h++) {
        const long head = b * HEADS + h;
        for (long i = at[2]; i < last[2]; i++) {
          read_row(q, ELEMENTS(query) + START(QUERY, head, i), WIDTH, STRIDE(QUERY, 3));
          read_row(g, ELEMENTS(grad) + START(GRAD, head, i), VALUE_WIDTH, STRIDE(GRAD, 3));
          for (long j = at[3]; j < last[3]; j++) {
            read_row(k, ELEMENTS(key) + START(KEY, head, j), WIDTH, STRIDE(KEY, 3));
            read_row(v, ELEMENTS(value) + START(VALUE, head, j), VALUE_WIDTH, STRIDE(VALUE, 3));
            const CT w = weight_of(SCORE(head, i, j, q, k), LSE_OF(head, i));
            sum += w * (dot_rows(g, v, VALUE_WIDTH) * MASK(head, i, j) - DELTA(head, i));
          }
        }
      }
    }
    const long to = at[0] * STRIDE(TO_BIAS, 0) + at[1] * STRIDE(TO_BIAS, 1) + at[2] * STRIDE(TO_BIAS, 2);
    PUT(ELEMENTS(to_bias) + to + at[3] * STRIDE(TO_BIAS, 3), sum);
  }
}
#endif
#endif
