/* Scaled dot product attention, after philox.cl, blocks.cl, direct.cl and vectors.cl. A piece is a block of up to BLOCK rows of
 * scores of one head, or of as many of their columns; keys and values are read once for the block. The head defines
 * WIDTH and VALUE_WIDTH, CAUSAL, HAS_BIAS, D_LSE, ELSEWHERE (its kernels are in another file), UNIT (last dims are dense) and DROPOUT; FORWARD, or WANTS_QUERY and so on
 * for a backward. SHARED: widths up to WIDEST and all but dropout are told by the call, so that small ones take one program.
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

#ifdef SHARED
#define WIDTH ((int)n.of[55])
#define VALUE_WIDTH ((int)n.of[56])
#define TELLS(bit) ((int)(n.of[57] >> (bit)) & 1)
#define CAUSAL TELLS(0)
#define HAS_BIAS TELLS(1)
#define WANTS_QUERY TELLS(2)
#define WANTS_KEY TELLS(3)
#define WANTS_VALUE TELLS(4)
#define ROOM WIDEST
#define VALUE_ROOM WIDEST
#define HAS_BIAS_KERNEL
#else
#define ROOM WIDTH
#define VALUE_ROOM VALUE_WIDTH
#if HAS_BIAS
#define HAS_BIAS_KERNEL
#endif
#endif
#ifdef DROPOUT
#define DROPS 1
#else
#define DROPS 0
#endif

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
#define VECTORS(width) (((width) + 15) / 16 + ((width) == 0))

/* Vector i of a row. On a CPU one of the compute type is read as it lies: to put it together from parts is to wait for
 * them to reach memory. */
static VECTOR vector_of_row(__global const RAW(D) *from, int i, int width, long stride) {
#if defined(IS_CPU) && defined(UNIT)
  if (sizeof(RAW(D)) == sizeof(CT) && 16 * i + 16 <= width) return vload16(i, (__global const CT *)from);
#endif
  CT lanes[16];
  for (int e = 0; e < 16; e++) lanes[e] = 16 * i + e < width ? GET(from + ELEMENT(16 * i + e, stride)) : (CT)0;
  return vload16(0, lanes);
}
#ifdef IS_CPU
static void read_row(VECTOR *to, __global const RAW(D) *from, int width, long stride) {
  EACH_ELEMENT
  for (int i = 0; i < VECTORS(width); i++) to[i] = vector_of_row(from, i, width, stride);
}
#else
static void read_row(VECTOR *to, __global const RAW(D) *from, int width, long stride) {
  CT *lanes = (CT *)to;
  if (width % 16) to[VECTORS(width) - 1] = 0;
  EACH_ELEMENT
  for (int e = 0; e < width; e++) lanes[e] = GET(from + ELEMENT(e, stride));
}
#endif

static CT dot_rows(const VECTOR *a, const VECTOR *b, int width) {
  VECTOR sum = 0;
  EACH_ELEMENT
  for (int i = 0; i < VECTORS(width); i++) sum = fma(a[i], b[i], sum);
  return across(sum);
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

/* ADDS_ZERO: gradients are taken for parts of a sum (placed.h), where -0 becomes 0. */
#ifdef ADDS_ZERO
#define WRITTEN(x) ((x) + (CT)0)
#else
#define WRITTEN(x) (x)
#endif

static void write_row(__global RAW(D) *to, const VECTOR *from, CT divisor, int width, long stride) {
  const CT *lanes = (const CT *)from;
  EACH_ELEMENT
  for (int e = 0; e < width; e++) PUT(to + ELEMENT(e, stride), WRITTEN(lanes[e] / divisor));
}

#if BLOCK % 16 == 0
/* On a CPU, where there are rows and columns enough: lanes are rows of scores, or for the gradients of key and value columns.
 * What belongs to a lane is turned into vectors once, elements of the other tensors are read one by one as they lie, and
 * nothing is summed across lanes. */
#define LANES (BLOCK / 16)
#define TILE 8 /* vectors of scores, or of sums, that are in registers at a time */

static VECTOR lane_numbers(void) {
  CT lanes[16];
  for (int r = 0; r < 16; r++) lanes[r] = r;
  return vload16(0, lanes);
}

/* `count` rows as lanes; lanes beyond repeat the last. And back. */
static void read_lanes(VECTOR (*to)[LANES], __global const RAW(D) *from, long row, long step, int width, int count) {
  for (int r = 0; r < BLOCK; r++) {
    for (int e = 0; e < width; e++) ((CT *)to)[e * BLOCK + r] = GET(from + min(r, count - 1) * row + ELEMENT(e, step));
  }
}
static void write_lanes(__global RAW(D) *to, long row, long step, VECTOR (*from)[LANES], CT factor, int width, int count) {
  for (int r = 0; r < count; r++) {
    for (int e = 0; e < width; e++)
      PUT(to + r * row + ELEMENT(e, step), WRITTEN(((CT *)from)[e * BLOCK + r] * factor));
  }
}
static void clear_lanes(VECTOR (*to)[LANES], int width) {
  for (int e = 0; e < width; e++) {
    for (int l = 0; l < LANES; l++) to[e][l] = (VECTOR)0;
  }
}

/* Adds to `count` vectors, TILE at a time, the sums over `depth` steps of the products of vectors, one a step, and of single
 * elements: those of vector i begin `along` i after `from` and lie `step` apart. to[] has room for a whole tile at the end. */
static INLINED void add_products(VECTOR (*to)[LANES], int count, long along, const VECTOR (*vectors)[LANES], int depth,
                                 long step, __global const RAW(D) *from) {
  for (int i = 0; i < count; i += TILE) {
    __global const RAW(D) *at[TILE]; /* beyond the last, the last again */
    VECTOR sums[TILE][LANES];
#pragma unroll
    for (int c = 0; c < TILE; c++) {
      at[c] = from + min(i + c, count - 1) * along;
#pragma unroll
      for (int l = 0; l < LANES; l++) sums[c][l] = to[i + c][l];
    }
    for (int k = 0; k < depth; k++) {
#pragma unroll
      for (int c = 0; c < TILE; c++) {
        const VECTOR x = (VECTOR)GET(at[c] + k * step);
#pragma unroll
        for (int l = 0; l < LANES; l++) sums[c][l] = fma(vectors[k][l], x, sums[c][l]);
      }
    }
#pragma unroll
    for (int c = 0; c < TILE; c++) {
#pragma unroll
      for (int l = 0; l < LANES; l++) to[i + c][l] = sums[c][l];
    }
  }
}
/* Of elements of rows, and of rows of elements: the unit stride is known where it is one. */
#define ADD_DOTS(to, count, vectors, width, tensor, from) \
  add_products(to, count, STRIDE(tensor, 2), vectors, width, ELEMENT(1, STRIDE(tensor, 3)), from)
#define ADD_ROWS(to, width, vectors, count, tensor, from) \
  add_products(to, width, ELEMENT(1, STRIDE(tensor, 3)), vectors, count, STRIDE(tensor, 2), from)
#endif

#ifdef DROPOUT
/* 0, or KEEP, for a weight. */
static CT mask_of_word(uint word, uint threshold, CT keep) { return (word >> 8) < threshold ? keep : (CT)0; }
static CT mask_of(__global const ulong *seed, __global const ulong *offset, ulong element, uint threshold, CT keep) {
  uint4 words = philox(*offset / 4 + element / 4, *seed);
  uint word = element % 4 == 0 ? words.x : element % 4 == 1 ? words.y : element % 4 == 2 ? words.z : words.w;
  return mask_of_word(word, threshold, keep);
}
/* What these take for the weight of row i and column j. */
#define DRAWN_FOR(head, i, j)                                                               \
  (__global const ulong *)POINTER(u64, seed), (__global const ulong *)POINTER(u64, offset), \
      (ulong)(((head) * ROWS + (i)) * COLUMNS + (j)), THRESHOLD, KEEP
#define MASK(head, i, j) mask_of(DRAWN_FOR(head, i, j))

#if BLOCK % 16 == 0
/* Those of a row's COLUMNS_AT_ONCE weights, the first of which is this element, `step` apart. */
static void masks_of(CT *to, int step, __global const ulong *seed, __global const ulong *offset, ulong element,
                     uint threshold, CT keep) {
  uint words[2 * 4 * BLOCKS]; /* from the middle of a block on they end in one more */
  const ulong block = *offset / 4 + element / 4;
  draw_blocks(block, *seed, words);
  if (element % 4) draw_blocks(block + BLOCKS, *seed, words + 4 * BLOCKS);
  const uint *drawn = words + element % 4;
  for (int j = 0; j < COLUMNS_AT_ONCE; j++) to[j * step] = mask_of_word(drawn[j], threshold, keep);
}
#define MASKS_OF(to, step, head, i, j) masks_of(to, step, DRAWN_FOR(head, i, j))
#endif
#else
#define MASK(head, i, j) ((CT)1)
#define MASKS_OF(to, step, head, i, j)
#endif

#define BIASED(s, head, i, j) \
  (HAS_BIAS ? (s) + GET(ELEMENTS(bias) + START(BIAS, head, i) + (j) * STRIDE(BIAS, 3)) : (s))
#define SEEN(i, j) (!CAUSAL || (j) <= (i))
#define SCORE(head, i, j, q, k) (SEEN(i, j) ? BIASED(SCALE * dot_rows(q, k, WIDTH), head, i, j) : (CT)-INFINITY)

/* The block of this piece: its head, its first row (or column), and how many. */
#define BLOCK_OF(length)                                            \
  const long blocks = ((length) + BLOCK - 1) / BLOCK;               \
  const long head = piece / blocks, first = piece % blocks * BLOCK; \
  const int count = (int)min((long)BLOCK, (length)-first)

#if defined(FORWARD) && defined(ELSEWHERE)
/* In tiles.cl, or nvidia.cl. */
#elif defined(FORWARD) && BLOCK % 16 == 0
KERNEL attention(PLACE(out), PLACE(lse), PLACE(seed), PLACE(offset), PLACE(query), PLACE(key), PLACE(value),
                 PLACE(bias), numbers n) {
#ifndef DROPOUT
  if (get_global_id(0) == 0) *POINTER(i64, seed) = *POINTER(i64, offset) = 0;
#endif
  const VECTOR lane_number = lane_numbers();
  EACH_UNIT(piece) {
    BLOCK_OF(ROWS);
    VECTOR q[ROOM + 1][LANES], sums[VALUE_ROOM + TILE][LANES], weights[COLUMNS_AT_ONCE][LANES];
    VECTOR most[LANES], total[LANES], masks[COLUMNS_AT_ONCE][LANES];
    read_lanes(q, ELEMENTS(query) + START(QUERY, head, first), STRIDE(QUERY, 2), STRIDE(QUERY, 3), WIDTH, count);
    clear_lanes(sums, VALUE_WIDTH + TILE);
    if (DROPS) clear_lanes(masks, COLUMNS_AT_ONCE); /* lanes past the last row draw none */
    for (int l = 0; l < LANES; l++) most[l] = (VECTOR)-INFINITY, total[l] = (VECTOR)0;
    const long end = CAUSAL ? min(first + count, COLUMNS) : COLUMNS;
    for (long column = 0; column < end; column += COLUMNS_AT_ONCE) {
      const int wide = (int)min((long)COLUMNS_AT_ONCE, end - column);
      clear_lanes(weights, COLUMNS_AT_ONCE);
      ADD_DOTS(weights, wide, q, WIDTH, KEY, ELEMENTS(key) + START(KEY, head, column));
      for (int j = 0; j < wide; j++) {
        for (int l = 0; l < LANES; l++) weights[j][l] *= (VECTOR)SCALE;
      }
      for (int j = 0; HAS_BIAS && j < wide; j++) {
        CT *lanes = (CT *)weights[j];
        for (int r = 0; r < count; r++) lanes[r] = BIASED(lanes[r], head, first + r, column + j);
      }
      for (int l = 0; l < LANES; l++) {
        VECTOR now = most[l];
        for (int j = 0; j < wide; j++) {
          const CT seen_from = (CT)(column + j - first - 16 * l); /* the first lane that sees this column */
          if (CAUSAL) weights[j][l] = lane_number >= (VECTOR)seen_from ? weights[j][l] : (VECTOR)-INFINITY;
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
      for (int r = 0; r < count; r++) MASKS_OF((CT *)masks + r, BLOCK, head, first + r, column);
      for (int j = 0; j < wide; j++) {
        for (int l = 0; l < LANES; l++) weights[j][l] *= masks[j][l];
      }
#endif
      ADD_ROWS(sums, VALUE_WIDTH, weights, wide, VALUE, ELEMENTS(value) + START(VALUE, head, column));
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
    VECTOR q[BLOCK][VECTORS(ROOM)], sums[BLOCK][VECTORS(VALUE_ROOM)];
    VECTOR row[VECTORS(ROOM > VALUE_ROOM ? ROOM : VALUE_ROOM)];
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
        total[r] = total[r] * less + weigh(weights[r], wide, shift);
        scale_row(sums[r], less, VALUE_WIDTH);
        for (int j = 0; DROPS && j < wide; j++) weights[r][j] *= MASK(head, first + r, from + j);
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

#ifdef ELSEWHERE
/* In tiles.cl, or nvidia.cl. */
#elif BLOCK % 16 == 0
/* What lanes of scores become: weights, and how much the sum would change with each. The scores are given as products
 * without SCALE; dots are those of gradients and values, `deltas` the sums of grad * out. */
static INLINED void weights_of(VECTOR *weight, VECTOR *slope, VECTOR lse, VECTOR delta, VECTOR mask) {
  const VECTOR w = exp_of(*weight - lse);
  const VECTOR kept = (*weight == (VECTOR)-INFINITY) | (lse == (VECTOR)-INFINITY) ? (VECTOR)0 : w;
  *slope = kept * (*slope * mask - delta);
  *weight = kept * mask;
}

/* By rows: the sums of grad * out, which the other kernels need, and the gradient of the query. */
KERNEL attention_rows(BACKWARD_PLACES, numbers n) {
  const VECTOR lane_number = lane_numbers();
  EACH_UNIT(piece) {
    BLOCK_OF(ROWS);
    VECTOR deltas[LANES], lses[LANES], g_row[VECTORS(VALUE_ROOM)], out_row[VECTORS(VALUE_ROOM)];
    for (int l = 0; l < LANES; l++) deltas[l] = lses[l] = (VECTOR)0;
    for (int r = 0; r < count; r++) {
      read_row(g_row, ELEMENTS(grad) + START(GRAD, head, first + r), VALUE_WIDTH, STRIDE(GRAD, 3));
      read_row(out_row, ELEMENTS(out) + START(OUT, head, first + r), VALUE_WIDTH, STRIDE(OUT, 3));
      DELTA(head, first + r) = ((CT *)deltas)[r] = dot_rows(g_row, out_row, VALUE_WIDTH);
      ((CT *)lses)[r] = LSE_OF(head, first + r);
    }
    if (!WANTS_QUERY) continue;
    VECTOR q[ROOM + 1][LANES], g[VALUE_ROOM + 1][LANES], sums[ROOM + TILE][LANES];
    VECTOR weights[COLUMNS_AT_ONCE][LANES], slopes[COLUMNS_AT_ONCE][LANES], masks[COLUMNS_AT_ONCE][LANES];
    read_lanes(q, ELEMENTS(query) + START(QUERY, head, first), STRIDE(QUERY, 2), STRIDE(QUERY, 3), WIDTH, count);
    read_lanes(g, ELEMENTS(grad) + START(GRAD, head, first), STRIDE(GRAD, 2), STRIDE(GRAD, 3), VALUE_WIDTH, count);
    clear_lanes(sums, WIDTH + TILE);
    if (DROPS) clear_lanes(masks, COLUMNS_AT_ONCE);
    const long end = CAUSAL ? min(first + count, COLUMNS) : COLUMNS;
    for (long column = 0; column < end; column += COLUMNS_AT_ONCE) {
      const int wide = (int)min((long)COLUMNS_AT_ONCE, end - column);
      clear_lanes(weights, COLUMNS_AT_ONCE);
      clear_lanes(slopes, COLUMNS_AT_ONCE);
      ADD_DOTS(weights, wide, q, WIDTH, KEY, ELEMENTS(key) + START(KEY, head, column));
      ADD_DOTS(slopes, wide, g, VALUE_WIDTH, VALUE, ELEMENTS(value) + START(VALUE, head, column));
      for (int r = 0; DROPS && r < count; r++) MASKS_OF((CT *)masks + r, BLOCK, head, first + r, column);
      for (int j = 0; j < wide; j++) {
        for (int l = 0; l < LANES; l++) {
          weights[j][l] *= (VECTOR)SCALE;
          const CT seen_from = (CT)(column + j - first - 16 * l); /* the first lane that sees this column */
          if (CAUSAL) weights[j][l] = lane_number >= (VECTOR)seen_from ? weights[j][l] : (VECTOR)-INFINITY;
        }
        for (int r = 0; HAS_BIAS && r < count; r++)
          ((CT *)weights[j])[r] = BIASED(((CT *)weights[j])[r], head, first + r, column + j);
        for (int l = 0; l < LANES; l++)
          weights_of(&weights[j][l], &slopes[j][l], lses[l], deltas[l], DROPS ? masks[j][l] : (VECTOR)1);
      }
      ADD_ROWS(sums, WIDTH, slopes, wide, KEY, ELEMENTS(key) + START(KEY, head, column));
    }
    write_lanes(ELEMENTS(to_query) + START(TO_QUERY, head, first), STRIDE(TO_QUERY, 2), STRIDE(TO_QUERY, 3), sums, SCALE,
                WIDTH, count);
  }
}

/* By columns: the gradients of key and value. */
KERNEL attention_columns(BACKWARD_PLACES, numbers n) {
  const VECTOR lane_number = lane_numbers();
  EACH_UNIT(piece) {
    BLOCK_OF(COLUMNS);
    VECTOR k[ROOM + 1][LANES], v[VALUE_ROOM + 1][LANES], sums[ROOM + TILE][LANES], value_sums[VALUE_ROOM + TILE][LANES];
    VECTOR weights[COLUMNS_AT_ONCE][LANES], slopes[COLUMNS_AT_ONCE][LANES];
    read_lanes(k, ELEMENTS(key) + START(KEY, head, first), STRIDE(KEY, 2), STRIDE(KEY, 3), WIDTH, count);
    read_lanes(v, ELEMENTS(value) + START(VALUE, head, first), STRIDE(VALUE, 2), STRIDE(VALUE, 3), VALUE_WIDTH, count);
    clear_lanes(sums, WIDTH + TILE);
    clear_lanes(value_sums, VALUE_WIDTH + TILE);
    for (long row = CAUSAL ? first : 0; row < ROWS; row += COLUMNS_AT_ONCE) {
      const int high = (int)min((long)COLUMNS_AT_ONCE, ROWS - row);
      clear_lanes(weights, COLUMNS_AT_ONCE);
      clear_lanes(slopes, COLUMNS_AT_ONCE);
      ADD_DOTS(weights, high, k, WIDTH, QUERY, ELEMENTS(query) + START(QUERY, head, row));
      ADD_DOTS(slopes, high, v, VALUE_WIDTH, GRAD, ELEMENTS(grad) + START(GRAD, head, row));
      for (int i = 0; i < high; i++) {
        VECTOR masks[LANES];
        MASKS_OF((CT *)masks, 1, head, row + i, first);
        for (int l = 0; l < LANES; l++) {
          weights[i][l] *= (VECTOR)SCALE;
          const CT last_seen = (CT)(row + i - first - 16 * l); /* the last lane that this row sees */
          if (CAUSAL) weights[i][l] = lane_number <= (VECTOR)last_seen ? weights[i][l] : (VECTOR)-INFINITY;
        }
        for (int c = 0; HAS_BIAS && c < count; c++)
          ((CT *)weights[i])[c] = BIASED(((CT *)weights[i])[c], head, row + i, first + c);
        const VECTOR lse_of_row = (VECTOR)LSE_OF(head, row + i), delta_of_row = (VECTOR)DELTA(head, row + i);
        for (int l = 0; l < LANES; l++)
          weights_of(&weights[i][l], &slopes[i][l], lse_of_row, delta_of_row, DROPS ? masks[l] : (VECTOR)1);
      }
      ADD_ROWS(sums, WIDTH, slopes, high, QUERY, ELEMENTS(query) + START(QUERY, head, row));
      ADD_ROWS(value_sums, VALUE_WIDTH, weights, high, GRAD, ELEMENTS(grad) + START(GRAD, head, row));
    }
    if (WANTS_KEY)
      write_lanes(ELEMENTS(to_key) + START(TO_KEY, head, first), STRIDE(TO_KEY, 2), STRIDE(TO_KEY, 3), sums, SCALE, WIDTH,
                  count);
    if (WANTS_VALUE)
      write_lanes(ELEMENTS(to_value) + START(TO_VALUE, head, first), STRIDE(TO_VALUE, 2), STRIDE(TO_VALUE, 3), value_sums,
                  1, VALUE_WIDTH, count);
  }
}

#else
/* By rows: the sums of grad * out, which the other kernels need, and the gradient of the query. */
KERNEL attention_rows(BACKWARD_PLACES, numbers n) {
  EACH_UNIT(piece) {
    BLOCK_OF(ROWS);
    VECTOR q[BLOCK][VECTORS(ROOM)], g[BLOCK][VECTORS(VALUE_ROOM)], sums[BLOCK][VECTORS(ROOM)];
    VECTOR row[VECTORS(ROOM)], value_row[VECTORS(VALUE_ROOM)];
    CT deltas[BLOCK];
    for (int r = 0; r < count; r++) {
      const long i = first + r;
      read_row(q[r], ELEMENTS(query) + START(QUERY, head, i), WIDTH, STRIDE(QUERY, 3));
      read_row(g[r], ELEMENTS(grad) + START(GRAD, head, i), VALUE_WIDTH, STRIDE(GRAD, 3));
      read_row(value_row, ELEMENTS(out) + START(OUT, head, i), VALUE_WIDTH, STRIDE(OUT, 3));
      DELTA(head, i) = deltas[r] = dot_rows(g[r], value_row, VALUE_WIDTH);
      clear_row(sums[r], WIDTH);
    }
    if (!WANTS_QUERY) continue;
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
  }
}

/* By columns: the gradients of key and value. */
KERNEL attention_columns(BACKWARD_PLACES, numbers n) {
  EACH_UNIT(piece) {
    BLOCK_OF(COLUMNS);
    VECTOR k[BLOCK][VECTORS(ROOM)], v[BLOCK][VECTORS(VALUE_ROOM)];
    VECTOR sums[BLOCK][VECTORS(ROOM)], value_sums[BLOCK][VECTORS(VALUE_ROOM)];
    VECTOR q[VECTORS(ROOM)], g[VECTORS(VALUE_ROOM)];
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
      if (WANTS_KEY) {
        __global RAW(D) *to = ELEMENTS(to_key) + START(TO_KEY, head, first + c);
        scale_row(sums[c], SCALE, WIDTH);
        write_row(to, sums[c], 1, WIDTH, STRIDE(TO_KEY, 3));
      }
      if (WANTS_VALUE) {
        __global RAW(D) *to = ELEMENTS(to_value) + START(TO_VALUE, head, first + c);
        write_row(to, value_sums[c], 1, VALUE_WIDTH, STRIDE(TO_VALUE, 3));
      }
    }
  }
}
#endif

#ifdef HAS_BIAS_KERNEL
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
    VECTOR q[VECTORS(ROOM)], k[VECTORS(ROOM)], g[VECTORS(VALUE_ROOM)], v[VECTORS(VALUE_ROOM)];
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
