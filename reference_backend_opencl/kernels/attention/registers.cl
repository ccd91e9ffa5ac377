/* Attention in f32 on a GPU, after attention.cl: a work-group, 8 across and DOWN down, makes the scores of MINE rows and
 * THEIRS columns at a time, four by four in the registers of each work-item, and what their weights make of the other
 * factor's rows. For the gradients of key and value, columns are MINE and rows are THEIRS.
 *
 * Rows of tensors lie in local memory as they are, PITCH apart, so that neighbours' begin in other banks: a work-item's
 * own are DOWN apart, and its four columns 8. Weights lie there by columns, a work-item's four rows side by side. */
#ifdef FORWARD
#define MINE 64
#else
#define MINE 32
#endif
#define THEIRS 32
#define ACROSS 8
#define DOWN (MINE / 4)
#define LANES (DOWN * ACROSS)
#define FOURS(width) (((width) + 3) / 4)
#define PITCH(width) (FOURS(width) * 4 + 4)
#define OWN_VECTORS(width) (((width) + 4 * ACROSS - 1) / (4 * ACROSS)) /* of four elements of a row, each work-item's */
#define ROW_ROOM(width) (OWN_VECTORS(width) * 4 * ACROSS) /* elements after a row's first that may be read */
#define W OWN_VECTORS(WIDTH)
#define V OWN_VECTORS(VALUE_WIDTH)
#define PITCH_WEIGHTS (MINE + 4)
#define LOCAL_ROWS(name, rows, width) __local float name[(rows) * PITCH(width) + ROW_ROOM(width)] __attribute__((aligned(16)))
#define LOCAL_WEIGHTS(name) __local float name[THEIRS * PITCH_WEIGHTS] __attribute__((aligned(16)))

/* Four elements of a row from `e` on; zeros past its width. ALIGNED: rows begin at multiples of 16 bytes, and end so. */
static INLINED float4 four_of(__global const float *row, int e, long stride, int width) {
#ifdef ALIGNED
  return *(__global const float4 *)(row + e);
#else
  return (float4)(row[ELEMENT(e, stride)], e + 1 < width ? row[ELEMENT(e + 1, stride)] : 0,
                  e + 2 < width ? row[ELEMENT(e + 2, stride)] : 0, e + 3 < width ? row[ELEMENT(e + 3, stride)] : 0);
#endif
}

/* Rows of a tensor on their way to local memory: `fetch` asks for a work-item's part of them, all at once, and `keep`
 * puts it there. Past the last row there are zeros. */
#define FETCHED(count, width) (((count) * FOURS(width) + LANES - 1) / LANES)
static INLINED void fetch(float4 *to, __global const float *from, long row_stride, long stride, int count, long rows,
                          int width, int lane) {
#pragma unroll
  for (int k = 0; k < FETCHED(count, width); k++) {
    const int at = k * LANES + lane, r = at / FOURS(width), e = (at - r * FOURS(width)) * 4;
    to[k] = r < count && r < rows ? four_of(from + r * row_stride, e, stride, width) : (float4)0;
  }
}
static INLINED void keep(__local float *to, const float4 *from, int count, int width, int lane) {
#pragma unroll
  for (int k = 0; k < FETCHED(count, width); k++) {
    const int at = k * LANES + lane, r = at / FOURS(width), e = (at - r * FOURS(width)) * 4;
    if (r < count) *(__local float4 *)(to + r * PITCH(width) + e) = from[k];
  }
}
/* Where the work-items' vectors read on behind a row, into the next one or past all, nothing is left as it was. `keep`
 * writes nothing there. */
static INLINED void clear_behind(__local float *to, int count, int width, int lane) {
  if (width == ROW_ROOM(width)) return;
  for (int r = lane; r < count; r += LANES) *(__local float4 *)(to + r * PITCH(width) + FOURS(width) * 4) = (float4)0;
  for (int at = count * PITCH(width) + lane; at < (count - 1) * PITCH(width) + ROW_ROOM(width); at += LANES) to[at] = 0;
}
#define FETCH(to, name, tensor, first, count, length, width)                                                      \
  fetch(to, ELEMENTS(name) + START(tensor, head, first), STRIDE(tensor, 2), STRIDE(tensor, 3), count, (length) - (first), \
        width, lane)
#define BRING(to, name, tensor, first, count, length, width)           \
  {                                                                    \
    float4 own[FETCHED(count, width)];                                 \
    FETCH(own, name, tensor, first, count, length, width);             \
    keep(to, own, count, width, lane);                                 \
  }

/* The products of rows y + DOWN r of one side and x + ACROSS c of the other. */
static INLINED void multiply_rows(float product[4][4], __local const float *mine, __local const float *theirs, int width,
                                  int x, int y) {
#pragma unroll
  for (int i = 0; i < 16; i++) product[i / 4][i % 4] = 0;
  mine += y * PITCH(width);
  theirs += x * PITCH(width);
#pragma unroll 4
  for (int e = 0; e < FOURS(width); e++) {
    float4 a[4], b[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      a[i] = *(__local const float4 *)(mine + i * DOWN * PITCH(width) + e * 4);
      b[i] = *(__local const float4 *)(theirs + i * ACROSS * PITCH(width) + e * 4);
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
#pragma unroll
      for (int c = 0; c < 4; c++)
        product[r][c] = fma(a[r].w, b[c].w, fma(a[r].z, b[c].z, fma(a[r].y, b[c].y, fma(a[r].x, b[c].x, product[r][c]))));
    }
  }
}

/* Adds rows, each times its weight: to the work-item's four sums, of `count` vectors of elements each. */
static INLINED void add_rows(float4 *sum, int count, __local const float *weights, __local const float *rows, int width, int x,
                             int y) {
#pragma unroll 8
  for (int j = 0; j < THEIRS; j++) {
    const float4 w = *(__local const float4 *)(weights + j * PITCH_WEIGHTS + y * 4);
#pragma unroll
    for (int v = 0; v < count; v++) {
      const float4 row = *(__local const float4 *)(rows + j * PITCH(width) + (v * ACROSS + x) * 4);
      sum[v] = fma((float4)w.x, row, sum[v]);
      sum[count + v] = fma((float4)w.y, row, sum[count + v]);
      sum[2 * count + v] = fma((float4)w.z, row, sum[2 * count + v]);
      sum[3 * count + v] = fma((float4)w.w, row, sum[3 * count + v]);
    }
  }
}

static INLINED void keep_weights(__local float *weights, const float w[4][4], int x, int y) {
#pragma unroll
  for (int c = 0; c < 4; c++)
    *(__local float4 *)(weights + (x + c * ACROSS) * PITCH_WEIGHTS + y * 4) = (float4)(w[0][c], w[1][c], w[2][c], w[3][c]);
}

static INLINED void clear(float4 *sum, int count) {
#pragma unroll
  for (int i = 0; i < 4 * count; i++) sum[i] = (float4)0;
}

/* A row of results, of which a work-item has some vectors. */
static INLINED void put_vectors(__global float *to, long stride, const float4 *sum, int count, float factor, int width, int x) {
#pragma unroll
  for (int v = 0; v < count; v++) {
    float lanes[4];
    vstore4(sum[v] * (float4)factor, 0, lanes);
#pragma unroll
    for (int l = 0; l < 4; l++) {
      const int e = (v * ACROSS + x) * 4 + l;
      if (e < width) to[ELEMENT(e, stride)] = lanes[l];
    }
  }
}

/* What the score of row i and column j is, of their product. */
#define SCORED(product, head, i, j) \
  ((i) < ROWS && (j) < COLUMNS && SEEN(i, j) ? BIASED(SCALE * (product), head, i, j) : -INFINITY)

/* The tile of a group: those that see most begin first. */
#define TILE_OF(length, which)                                                                                           \
  const int lane = get_local_id(0), x = lane % ACROSS, y = lane / ACROSS;                                                \
  const long tiles = ((length) + MINE - 1) / MINE, heads = get_global_size(0) / LANES / tiles, head = get_group_id(0) % heads; \
  const long number = get_group_id(0) / heads, first = (which) * MINE
#define FROM_THE_LAST (tiles - 1 - number)
#define FROM_THE_FIRST number

/* The next rows of the other side, which are on their way while those before are worked on. */
#define FETCH_COLUMNS(column)                                                \
  {                                                                          \
    FETCH(next, key, KEY, column, THEIRS, COLUMNS, WIDTH);                   \
    FETCH(next_values, value, VALUE, column, THEIRS, COLUMNS, VALUE_WIDTH);  \
  }
#define FETCH_ROWS(row)                                               \
  {                                                                   \
    FETCH(next, query, QUERY, row, THEIRS, ROWS, WIDTH);              \
    FETCH(next_grads, grad, GRAD, row, THEIRS, ROWS, VALUE_WIDTH);    \
  }

#ifdef FORWARD
/* The larger of two, or the one that is no number. */
static INLINED float larger(float a, float b) { return LARGER(b, a); }

KERNEL_OF(LANES, 1) attention(PLACE(out), PLACE(lse), PLACE(seed), PLACE(offset), PLACE(query), PLACE(key), PLACE(value),
                              PLACE(bias), numbers n) {
  LOCAL_ROWS(queries, MINE, WIDTH);
  LOCAL_ROWS(keys, THEIRS, WIDTH);
  LOCAL_ROWS(values, THEIRS, VALUE_WIDTH);
  LOCAL_WEIGHTS(weights);
  __local float of_parts[MINE * ACROSS]; /* the most of a work-item's scores of a row, then its part of the total */
#ifndef DROPOUT
  if (get_global_id(0) == 0) *POINTER(i64, seed) = *POINTER(i64, offset) = 0;
#endif
  TILE_OF(ROWS, FROM_THE_LAST);
  float4 sum[4 * V];
  float most[4], total[4];
  clear(sum, V);
#pragma unroll
  for (int r = 0; r < 4; r++) most[r] = -INFINITY, total[r] = 0;
  BRING(queries, query, QUERY, first, MINE, ROWS, WIDTH);
  clear_behind(values, THEIRS, VALUE_WIDTH, lane);
  const long end = CAUSAL ? min(first + MINE, COLUMNS) : COLUMNS;
  float4 next[FETCHED(THEIRS, WIDTH)], next_values[FETCHED(THEIRS, VALUE_WIDTH)];
  FETCH_COLUMNS(0);
  for (long column = 0; column < end; column += THEIRS) {
    barrier(CLK_LOCAL_MEM_FENCE);
    keep(keys, next, THEIRS, WIDTH, lane);
    keep(values, next_values, THEIRS, VALUE_WIDTH, lane);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (column + THEIRS < end) FETCH_COLUMNS(column + THEIRS);
    float w[4][4];
    multiply_rows(w, queries, keys, WIDTH, x, y);
#pragma unroll
    for (int r = 0; r < 4; r++) {
#pragma unroll
      for (int c = 0; c < 4; c++) w[r][c] = SCORED(w[r][c], head, first + y + r * DOWN, column + x + c * ACROSS);
      of_parts[(y + r * DOWN) * ACROSS + x] = larger(larger(w[r][0], w[r][1]), larger(w[r][2], w[r][3]));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int r = 0; r < 4; r++) {
      float now = most[r];
#pragma unroll
      for (int i = 0; i < ACROSS; i++) now = larger(now, of_parts[(y + r * DOWN) * ACROSS + i]);
      const float shift = now == -INFINITY ? 0 : now, less = exp(most[r] - shift);
      most[r] = now;
      total[r] *= less;
#pragma unroll
      for (int c = 0; c < 4; c++) {
        w[r][c] = exp(w[r][c] - shift);
        total[r] += w[r][c];
        w[r][c] *= MASK(head, min(first + y + r * DOWN, ROWS - 1), min(column + x + c * ACROSS, COLUMNS - 1));
      }
#pragma unroll
      for (int v = 0; v < V; v++) sum[r * V + v] *= (float4)less;
    }
    keep_weights(weights, w, x, y);
    barrier(CLK_LOCAL_MEM_FENCE);
    add_rows(sum, V, weights, values, VALUE_WIDTH, x, y);
  }
#pragma unroll
  for (int r = 0; r < 4; r++) of_parts[(y + r * DOWN) * ACROSS + x] = total[r];
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int r = 0; r < 4; r++) {
    const long i = first + y + r * DOWN;
    float all = 0;
#pragma unroll
    for (int l = 0; l < ACROSS; l++) all += of_parts[(y + r * DOWN) * ACROSS + l];
    if (i >= ROWS) continue;
    const bool nothing = most[r] == -INFINITY;
    put_vectors(ELEMENTS(out) + START(OUT, head, i), STRIDE(OUT, 3), sum + r * V, V, 1 / (nothing ? 1 : all), VALUE_WIDTH, x);
    if (x == 0) STORE(D_LSE, __global, POINTER(D_LSE, lse) + START(LSE, head, i), nothing ? -INFINITY : most[r] + log(all));
  }
}

#else
/* One row: the sum of grad * out, which the other kernels need. */
KERNEL_OF(64, 1) attention_deltas(BACKWARD_PLACES, numbers n) {
  EACH_UNIT(piece) {
    const long head = piece / ROWS, i = piece % ROWS;
    __global const float *g = ELEMENTS(grad) + START(GRAD, head, i), *o = ELEMENTS(out) + START(OUT, head, i);
    float4 sum = (float4)0;
#pragma unroll 8
    for (int e = 0; e < VALUE_WIDTH; e += 4)
      sum = fma(four_of(g, e, STRIDE(GRAD, 3), VALUE_WIDTH), four_of(o, e, STRIDE(OUT, 3), VALUE_WIDTH), sum);
    DELTA(head, i) = (sum.x + sum.z) + (sum.y + sum.w);
  }
}

#if WANTS_QUERY
KERNEL_OF(LANES, 1) attention_rows(BACKWARD_PLACES, numbers n) {
  LOCAL_ROWS(queries, MINE, WIDTH);
  LOCAL_ROWS(grads, MINE, VALUE_WIDTH);
  LOCAL_ROWS(keys, THEIRS, WIDTH);
  LOCAL_ROWS(values, THEIRS, VALUE_WIDTH);
  LOCAL_WEIGHTS(slopes);
  TILE_OF(ROWS, FROM_THE_LAST);
  float4 sum[4 * W];
  float lses[4], deltas[4];
  clear(sum, W);
#pragma unroll
  for (int r = 0; r < 4; r++) {
    const long i = min(first + y + r * DOWN, ROWS - 1);
    lses[r] = LSE_OF(head, i);
    deltas[r] = DELTA(head, i);
  }
  BRING(queries, query, QUERY, first, MINE, ROWS, WIDTH);
  BRING(grads, grad, GRAD, first, MINE, ROWS, VALUE_WIDTH);
  clear_behind(keys, THEIRS, WIDTH, lane);
  const long end = CAUSAL ? min(first + MINE, COLUMNS) : COLUMNS;
  float4 next[FETCHED(THEIRS, WIDTH)], next_values[FETCHED(THEIRS, VALUE_WIDTH)];
  FETCH_COLUMNS(0);
  for (long column = 0; column < end; column += THEIRS) {
    barrier(CLK_LOCAL_MEM_FENCE);
    keep(keys, next, THEIRS, WIDTH, lane);
    keep(values, next_values, THEIRS, VALUE_WIDTH, lane);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (column + THEIRS < end) FETCH_COLUMNS(column + THEIRS);
    float w[4][4], slope[4][4];
    multiply_rows(w, queries, keys, WIDTH, x, y);
    multiply_rows(slope, grads, values, VALUE_WIDTH, x, y);
#pragma unroll
    for (int at = 0; at < 16; at++) {
      const int r = at / 4, c = at % 4;
      const long i = first + y + r * DOWN, j = column + x + c * ACROSS;
      const float kept = weight_of(SCORED(w[r][c], head, i, j), lses[r]);
      slope[r][c] = kept * (slope[r][c] * MASK(head, min(i, ROWS - 1), min(j, COLUMNS - 1)) - deltas[r]);
    }
    keep_weights(slopes, slope, x, y);
    barrier(CLK_LOCAL_MEM_FENCE);
    add_rows(sum, W, slopes, keys, WIDTH, x, y);
  }
#pragma unroll
  for (int r = 0; r < 4; r++) {
    const long i = first + y + r * DOWN;
    if (i < ROWS)
      put_vectors(ELEMENTS(to_query) + START(TO_QUERY, head, i), STRIDE(TO_QUERY, 3), sum + r * W, W, SCALE, WIDTH, x);
  }
}
#endif

#if WANTS_KEY || WANTS_VALUE
KERNEL_OF(LANES, 1) attention_columns(BACKWARD_PLACES, numbers n) {
  LOCAL_ROWS(keys, MINE, WIDTH);
  LOCAL_ROWS(values, MINE, VALUE_WIDTH);
  LOCAL_ROWS(queries, THEIRS, WIDTH);
  LOCAL_ROWS(grads, THEIRS, VALUE_WIDTH);
  LOCAL_WEIGHTS(weights);
  LOCAL_WEIGHTS(slopes);
  TILE_OF(COLUMNS, FROM_THE_FIRST);
  float4 sum[4 * W], value_sum[4 * V];
  clear(sum, W);
  clear(value_sum, V);
  BRING(keys, key, KEY, first, MINE, COLUMNS, WIDTH);
  BRING(values, value, VALUE, first, MINE, COLUMNS, VALUE_WIDTH);
  clear_behind(queries, THEIRS, WIDTH, lane);
  clear_behind(grads, THEIRS, VALUE_WIDTH, lane);
  float4 next[FETCHED(THEIRS, WIDTH)], next_grads[FETCHED(THEIRS, VALUE_WIDTH)];
  const long begin = CAUSAL ? first : 0;
  if (begin < ROWS) FETCH_ROWS(begin);
  for (long row = begin; row < ROWS; row += THEIRS) {
    barrier(CLK_LOCAL_MEM_FENCE);
    keep(queries, next, THEIRS, WIDTH, lane);
    keep(grads, next_grads, THEIRS, VALUE_WIDTH, lane);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row + THEIRS < ROWS) FETCH_ROWS(row + THEIRS);
    float w[4][4], slope[4][4], lses[4], deltas[4];
#pragma unroll
    for (int c = 0; c < 4; c++) {
      const long i = min(row + x + c * ACROSS, ROWS - 1);
      lses[c] = LSE_OF(head, i);
      deltas[c] = DELTA(head, i);
    }
    multiply_rows(w, keys, queries, WIDTH, x, y);
    multiply_rows(slope, values, grads, VALUE_WIDTH, x, y);
#pragma unroll
    for (int c = 0; c < 4; c++) {
      const long i = row + x + c * ACROSS, within = min(i, ROWS - 1);
#pragma unroll
      for (int r = 0; r < 4; r++) {
        const long j = first + y + r * DOWN;
        const float kept = weight_of(SCORED(w[r][c], head, i, j), lses[c]);
        const float mask = MASK(head, within, min(j, COLUMNS - 1));
        slope[r][c] = kept * (slope[r][c] * mask - deltas[c]);
        w[r][c] = kept * mask;
      }
    }
    keep_weights(weights, w, x, y);
    keep_weights(slopes, slope, x, y);
    barrier(CLK_LOCAL_MEM_FENCE);
#if WANTS_KEY
    add_rows(sum, W, slopes, queries, WIDTH, x, y);
#endif
#if WANTS_VALUE
    add_rows(value_sum, V, weights, grads, VALUE_WIDTH, x, y);
#endif
  }
#pragma unroll
  for (int r = 0; r < 4; r++) {
    const long j = first + y + r * DOWN;
    if (j >= COLUMNS) continue;
#if WANTS_KEY
    put_vectors(ELEMENTS(to_key) + START(TO_KEY, head, j), STRIDE(TO_KEY, 3), sum + r * W, W, SCALE, WIDTH, x);
#endif
#if WANTS_VALUE
    put_vectors(ELEMENTS(to_value) + START(TO_VALUE, head, j), STRIDE(TO_VALUE, 3), value_sum + r * V, V, 1, VALUE_WIDTH, x);
#endif
  }
}
#endif
#endif
