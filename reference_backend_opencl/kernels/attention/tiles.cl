/* Attention on a GPU, after attention.cl: a work-group of MINE work-items has as many rows of scores, one each, or for
 * the gradients of key and value as many columns. Of the other side THEIRS at a time lie in local memory, where all
 * read them. A work-item's own rows are in registers: the gradients of key and value are two kernels, so that they fit.
 *
 * FEW rows: a work-group has one, and each work-item every MINE-th column of it. */
#define MINE 64
#define THEIRS (WIDTH + VALUE_WIDTH > 128 ? 8 : 16)
#define FOUR CAT(CT, 4)
#define FOURS(width) (((width) + 3) / 4)
#define W FOURS(WIDTH)
#define V FOURS(VALUE_WIDTH)

/* A work-item's own row of a tensor; zeros where it has none, and past its width. */
static INLINED void own_row(FOUR *to, __global const RAW(D) *from, int width, long stride, bool present) {
#pragma unroll
  for (int i = 0; i < FOURS(width); i++) {
    CT lanes[4];
#pragma unroll
    for (int j = 0; j < 4; j++) lanes[j] = present && i * 4 + j < width ? GET(from + (i * 4 + j) * stride) : (CT)0;
    to[i] = vload4(0, lanes);
  }
}

/* `tile` rows to local memory, by all work-items; zeros past the last one. */
static INLINED void bring_rows(__local FOUR *to, __global const RAW(D) *from, long row_stride, long stride, int tile,
                               long rows, int width, int lane) {
  __local CT *lanes = (__local CT *)to;
  for (int at = lane; at < tile * FOURS(width) * 4; at += MINE) {
    int row = at / (FOURS(width) * 4), e = at % (FOURS(width) * 4);
    lanes[at] = row < rows && e < width ? GET(from + row * row_stride + e * stride) : (CT)0;
  }
}
#define BRING(to, name, tensor, head, first, rows, width)                                                   \
  bring_rows(to, ELEMENTS(name) + START(tensor, head, first), STRIDE(tensor, 2), STRIDE(tensor, 3), THEIRS, \
             (rows) - (first), width, lane)

/* Keys and values of THEIRS columns. */
#define BRING_COLUMNS(column)                          \
  BRING(keys, key, KEY, head, column, COLUMNS, WIDTH); \
  BRING(values, value, VALUE, head, column, COLUMNS, VALUE_WIDTH)

static INLINED CT dot(const FOUR *a, __local const FOUR *b, int count) {
  FOUR sum = (FOUR)0;
#pragma unroll
  for (int i = 0; i < count; i++) sum = fma(a[i], b[i], sum);
  return (sum.x + sum.z) + (sum.y + sum.w);
}
static INLINED void add_scaled(FOUR *to, CT factor, __local const FOUR *from, int count) {
#pragma unroll
  for (int i = 0; i < count; i++) to[i] = fma((FOUR)factor, from[i], to[i]);
}
static INLINED void clear(FOUR *to, int count) {
#pragma unroll
  for (int i = 0; i < count; i++) to[i] = (FOUR)0;
}
static INLINED void put_own(__global RAW(D) *to, long stride, const FOUR *from, CT factor, int width) {
#pragma unroll
  for (int i = 0; i < FOURS(width); i++) {
    CT lanes[4];
    vstore4(from[i] * (FOUR)factor, 0, lanes);
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (i * 4 + j < width) PUT(to + (i * 4 + j) * stride, lanes[j]);
  }
}

/* What the score of row i and column j is, of their product. */
#define SCORED(product, head, i, j) \
  ((i) < ROWS && (j) < COLUMNS && SEEN(i, j) ? BIASED(SCALE * (product), head, i, j) : (CT)-INFINITY)

/* The tile of a group. */
#define TILE_OF(length)                                                                            \
  const int lane = get_local_id(0);                                                                \
  const long tiles = ((length) + MINE - 1) / MINE, head = get_group_id(0) / tiles;                 \
  const long first = get_group_id(0) % tiles * MINE, own = first + lane, at = min(own, (length)-1)

#if defined(FORWARD) && defined(FEW)
KERNEL_OF(MINE, 1) attention(PLACE(out), PLACE(lse), PLACE(seed), PLACE(offset), PLACE(query), PLACE(key), PLACE(value),
                             PLACE(bias), numbers n) {
  __local FOUR q[W], parts[MINE * V];
  __local CT mosts[MINE], totals[MINE];
#ifndef DROPOUT
  if (get_global_id(0) == 0) *POINTER(i64, seed) = *POINTER(i64, offset) = 0;
#endif
  const int lane = get_local_id(0);
  const long head = get_group_id(0) / ROWS, row = get_group_id(0) % ROWS;
  __global const RAW(D) *own = ELEMENTS(query) + START(QUERY, head, row);
  for (int e = lane; e < W * 4; e += MINE)
    ((__local CT *)q)[e] = e < WIDTH ? GET(own + e * STRIDE(QUERY, 3)) : (CT)0;
  barrier(CLK_LOCAL_MEM_FENCE);
  FOUR k[W], v[V], sums[V];
  CT most = -INFINITY, total = 0;
  clear(sums, V);
  for (long column = lane; column < (CAUSAL ? min(row + 1, COLUMNS) : COLUMNS); column += MINE) {
    own_row(k, ELEMENTS(key) + START(KEY, head, column), WIDTH, STRIDE(KEY, 3), true);
    own_row(v, ELEMENTS(value) + START(VALUE, head, column), VALUE_WIDTH, STRIDE(VALUE, 3), true);
    const CT score = SCORED(dot(k, q, W), head, row, column);
    const CT now = score > most || score != score ? score : most, shift = now == -INFINITY ? 0 : now;
    const CT less = exp(most - shift), w = exp(score - shift);
    most = now;
    total = total * less + w;
    const CT kept = w * MASK(head, row, column);
#pragma unroll
    for (int i = 0; i < V; i++) sums[i] = fma((FOUR)kept, v[i], sums[i] * (FOUR)less);
  }
  mosts[lane] = most;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < MINE; i++) most = mosts[i] > most || mosts[i] != mosts[i] ? mosts[i] : most;
  const CT shift = most == -INFINITY ? 0 : most, less = exp(mosts[lane] - shift);
  totals[lane] = total * less;
#pragma unroll
  for (int i = 0; i < V; i++) parts[lane * V + i] = sums[i] * (FOUR)less;
  barrier(CLK_LOCAL_MEM_FENCE);
  total = 0;
  for (int i = 0; i < MINE; i++) total += totals[i];
  const bool nothing = most == -INFINITY;
  for (int e = lane; e < VALUE_WIDTH; e += MINE) {
    CT sum = 0;
    for (int i = 0; i < MINE; i++) sum += ((__local const CT *)parts)[i * V * 4 + e];
    PUT(ELEMENTS(out) + START(OUT, head, row) + e * STRIDE(OUT, 3), sum / (nothing ? (CT)1 : total));
  }
  if (lane == 0)
    STORE(D_LSE, __global, POINTER(D_LSE, lse) + START(LSE, head, row), nothing ? (CT)-INFINITY : most + log(total));
}

#elif defined(FORWARD)
KERNEL_OF(MINE, 1) attention(PLACE(out), PLACE(lse), PLACE(seed), PLACE(offset), PLACE(query), PLACE(key), PLACE(value),
                             PLACE(bias), numbers n) {
  __local FOUR keys[THEIRS * W], values[THEIRS * V];
#ifndef DROPOUT
  if (get_global_id(0) == 0) *POINTER(i64, seed) = *POINTER(i64, offset) = 0;
#endif
  TILE_OF(ROWS);
  FOUR q[W], sums[V];
  CT most = -INFINITY, total = 0;
  own_row(q, ELEMENTS(query) + START(QUERY, head, at), WIDTH, STRIDE(QUERY, 3), own < ROWS);
  clear(sums, V);
  const long end = CAUSAL ? min(first + MINE, COLUMNS) : COLUMNS;
  for (long column = 0; column < end; column += THEIRS) {
    barrier(CLK_LOCAL_MEM_FENCE);
    BRING_COLUMNS(column);
    barrier(CLK_LOCAL_MEM_FENCE);
    CT weights[THEIRS], now = most;
#pragma unroll
    for (int j = 0; j < THEIRS; j++) {
      weights[j] = SCORED(dot(q, keys + j * W, W), head, own, column + j);
      now = weights[j] > now || weights[j] != weights[j] ? weights[j] : now;
    }
    const CT shift = now == -INFINITY ? 0 : now, less = exp(most - shift);
    most = now;
    total *= less;
#pragma unroll
    for (int i = 0; i < V; i++) sums[i] *= (FOUR)less;
#pragma unroll
    for (int j = 0; j < THEIRS; j++) {
      const CT w = exp(weights[j] - shift);
      total += w;
      add_scaled(sums, w * MASK(head, at, min(column + j, COLUMNS - 1)), values + j * V, V);
    }
  }
  if (own >= ROWS) return;
  const bool nothing = most == -INFINITY;
  put_own(ELEMENTS(out) + START(OUT, head, own), STRIDE(OUT, 3), sums, 1 / (nothing ? (CT)1 : total), VALUE_WIDTH);
  STORE(D_LSE, __global, POINTER(D_LSE, lse) + START(LSE, head, own), nothing ? (CT)-INFINITY : most + log(total));
}

#else
/* By rows: the sums of grad * out, which the other kernels need, and the gradient of the query. */
KERNEL_OF(MINE, 1) attention_rows(BACKWARD_PLACES, numbers n) {
  __local FOUR keys[THEIRS * W], values[THEIRS * V];
  TILE_OF(ROWS);
  FOUR g[V];
  own_row(g, ELEMENTS(grad) + START(GRAD, head, at), VALUE_WIDTH, STRIDE(GRAD, 3), own < ROWS);
  FOUR products = (FOUR)0;
  {
    FOUR result[V];
    own_row(result, ELEMENTS(out) + START(OUT, head, at), VALUE_WIDTH, STRIDE(OUT, 3), own < ROWS);
#pragma unroll
    for (int i = 0; i < V; i++) products = fma(g[i], result[i], products);
  }
  const CT delta_of_row = (products.x + products.z) + (products.y + products.w);
  if (own < ROWS) DELTA(head, own) = delta_of_row;
#if WANTS_QUERY
  FOUR q[W], sums[W];
  own_row(q, ELEMENTS(query) + START(QUERY, head, at), WIDTH, STRIDE(QUERY, 3), own < ROWS);
  clear(sums, W);
  const CT lse_of_row = LSE_OF(head, at);
  const long end = CAUSAL ? min(first + MINE, COLUMNS) : COLUMNS;
  for (long column = 0; column < end; column += THEIRS) {
    barrier(CLK_LOCAL_MEM_FENCE);
    BRING_COLUMNS(column);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < THEIRS; j++) {
      const CT w = weight_of(SCORED(dot(q, keys + j * W, W), head, own, column + j), lse_of_row);
      const CT change = dot(g, values + j * V, V) * MASK(head, at, min(column + j, COLUMNS - 1)) - delta_of_row;
      add_scaled(sums, w * change, keys + j * W, W);
    }
  }
  if (own < ROWS)
    put_own(ELEMENTS(to_query) + START(TO_QUERY, head, own), STRIDE(TO_QUERY, 3), sums, SCALE, WIDTH);
#endif
}

/* By columns: rows of queries and of gradients pass by, with what belongs to each. */
#define FIRST_ROW (CAUSAL ? first / THEIRS * THEIRS : 0)
#define BRING_ROWS(row)                                                    \
  BRING(queries, query, QUERY, head, row, ROWS, WIDTH);                    \
  BRING(grads, grad, GRAD, head, row, ROWS, VALUE_WIDTH);                  \
  if (lane < THEIRS) lses[lane] = LSE_OF(head, min(row + lane, ROWS - 1)); \
  if (lane < THEIRS) deltas[lane] = DELTA(head, min(row + lane, ROWS - 1))

#if WANTS_KEY
KERNEL_OF(MINE, 1) attention_keys(BACKWARD_PLACES, numbers n) {
  __local FOUR queries[THEIRS * W], grads[THEIRS * V];
  __local CT lses[THEIRS], deltas[THEIRS];
  TILE_OF(COLUMNS);
  FOUR k[W], v[V], sums[W];
  own_row(k, ELEMENTS(key) + START(KEY, head, at), WIDTH, STRIDE(KEY, 3), own < COLUMNS);
  own_row(v, ELEMENTS(value) + START(VALUE, head, at), VALUE_WIDTH, STRIDE(VALUE, 3), own < COLUMNS);
  clear(sums, W);
  for (long row = FIRST_ROW; row < ROWS; row += THEIRS) {
    barrier(CLK_LOCAL_MEM_FENCE);
    BRING_ROWS(row);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < THEIRS; i++) {
      const CT w = weight_of(SCORED(dot(k, queries + i * W, W), head, row + i, own), lses[i]);
      const CT change = dot(v, grads + i * V, V) * MASK(head, min(row + i, ROWS - 1), at) - deltas[i];
      add_scaled(sums, w * change, queries + i * W, W);
    }
  }
  if (own < COLUMNS) put_own(ELEMENTS(to_key) + START(TO_KEY, head, own), STRIDE(TO_KEY, 3), sums, SCALE, WIDTH);
}
#endif

#if WANTS_VALUE
KERNEL_OF(MINE, 1) attention_values(BACKWARD_PLACES, numbers n) {
  __local FOUR queries[THEIRS * W], grads[THEIRS * V];
  __local CT lses[THEIRS], deltas[THEIRS];
  TILE_OF(COLUMNS);
  FOUR k[W], sums[V];
  own_row(k, ELEMENTS(key) + START(KEY, head, at), WIDTH, STRIDE(KEY, 3), own < COLUMNS);
  clear(sums, V);
  for (long row = FIRST_ROW; row < ROWS; row += THEIRS) {
    barrier(CLK_LOCAL_MEM_FENCE);
    BRING_ROWS(row);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < THEIRS; i++) {
      const CT w = weight_of(SCORED(dot(k, queries + i * W, W), head, row + i, own), lses[i]);
      add_scaled(sums, w * MASK(head, min(row + i, ROWS - 1), at), grads + i * V, V);
    }
  }
  if (own < COLUMNS)
    put_own(ELEMENTS(to_value) + START(TO_VALUE, head, own), STRIDE(TO_VALUE, 3), sums, 1, VALUE_WIDTH);
}
#endif
#endif
