/* Matrix product on a CPU. A work-item takes TILE_N columns of B and some tiles of A's rows. It goes along K, or along one
 * block of a long K, span by span: the span's panel of B stays in the nearest cache while the tiles meet it in turn, each of
 * TILE_M x TILE_N sums in registers.
 *
 * Factors are copied into panels that lie side by side along K: cast to the compute type, freed of strides and remainders
 * (which become zeros). B's panel is the item's own where few others would make it again, else a launch packs all. An A that
 * serves as it lies is not copied: of it single elements are read, so it may have any strides; but where many columns
 * meet it, one that is packed comes faster.
 *
 * The head defines TILE_M, TILE_V (vectors in a tile's row), ROWS_A (rows in a panel of A) and STEP, too. Panels of A are as high
 * as a tile, so that it reads them from end to end; or higher, where a tile's columns, of which a work-item packs so many rows,
 * are no whole number of its rows: the least that holds both of them whole, so that neither goes on in another panel. */
#define TILE_N (TILE_V * VEC)

/* K goes step by step (pairs.cl). Of PAIRS both factors are packed; VEC steps of a row lie side by side in it. */
#ifdef PAIRS
#define STEPS_OF_ROW(p) load_pairs(p)
#else
#define STEPS_OF_ROW(p) LOAD(D, __global, p)
#define ONE_STEP(p, apart, has) LOAD_ONE(p)
#endif

/* ---- Packing ---- */

/* Beside a factor, subtotals of its rows, of STEP steps each: those that reduction.cl begins with. */
#ifdef SUMMED
#define SUBTOTALS , PLACE(subtotals)
#define ADD_UP(sum, value) sum += (value)
#else
#define SUBTOTALS
#define ADD_UP(sum, value)
#endif

#if VEC == 16
#define STORE_HALF(v, p) vstore8(v, 0, p)
#elif VEC == 8
#define STORE_HALF(v, p) vstore4(v, 0, p)
#else
#define STORE_HALF(v, p) vstore2(v, 0, p)
#endif

/* A factor: `rows` counts along the output, `depth` along K, in steps; strides in elements; `width` rows lie in a panel. K
 * may be that of several products, which have `part` each and lie part_stride apart. The last step of each is a single
 * element where `odd`. */
typedef struct {
  long rows, depth, row_stride, depth_stride, batch_stride, part, part_stride, width, odd;
} factor;

/* A work-item packs TILE_N rows, STEP steps of them: long enough to read whole cache lines either way round. */

/* Where row r of these is, at step k. */
static INLINED __global CT *packed_at(__global CT *to, long r, long k, const factor *f) {
  return to + r / f->width * f->width * f->depth + k * f->width + r % f->width;
}

/* The rows from r on, a multiple of VEC. A panel of A may have half as many. */
static INLINED void put_packed(__global CT *to, VT v, long r, long k, const factor *f) {
#if VEC == 2 * ROWS_A && VEC > 2
  if (f->width == ROWS_A) {
    STORE_HALF(v.lo, packed_at(to, r, k, f));
    STORE_HALF(v.hi, packed_at(to, r + ROWS_A, k, f));
    return;
  }
#endif
  VSTORE(v, packed_at(to, r, k, f));
}

#if VEC > 1
/* Of a whole panel whose K is contiguous, the part that fills whole vectors. Returns where it ends. */
static long pack_transposed(__global CT *to, __global const RAW(D) *from, long k, long end, const factor *f) {
  for (; k + VEC <= end; k += VEC) {
    for (int v = 0; v < TILE_V; v++) {
      VT block[VEC];
#pragma unroll
      for (int i = 0; i < VEC; i++) block[i] = STEPS_OF_ROW(from + (v * VEC + i) * f->row_stride + k * STEP_K);
      turn_square(block);
#pragma unroll
      for (int i = 0; i < VEC; i++) put_packed(to, block[i], v * VEC, k + i, f);
    }
  }
  return k;
}
#else
static long pack_transposed(__global CT *to, __global const RAW(D) *from, long k, long end, const factor *f) {
  return k;
}
#endif

/* Of a whole panel whose rows lie side by side, all. */
static long pack_straight(__global CT *to, __global const RAW(D) *from, long k, long end, const factor *f, VT sums[TILE_V]) {
  for (; k < end; k++) {
#pragma unroll
    for (int v = 0; v < TILE_V; v++) {
      const VT step = LOAD_STEP(from + k * f->depth_stride + v * VEC, f->depth_stride / STEP_K, true);
      put_packed(to, step, v * VEC, k, f);
      ADD_UP(sums[v], step);
    }
  }
  return k;
}

KERNEL_OF(1, 1) pack(
    PLACE(work) SUBTOTALS, __global const uchar *in, ulong offset, factor f) {
  long k = (long)get_global_id(0) * STEP, first = (long)get_global_id(1) * TILE_N, batch = get_global_id(2);
  long end = min(k + STEP, f.depth), count = min((long)TILE_N, f.rows - first);
  __global const RAW(D) *from =
      (__global const RAW(D) *)(in + offset) + batch * f.batch_stride + first * f.row_stride;
  __global CT *to = (__global CT *)(work + offset_work) + batch * (long)get_global_size(1) * f.depth * TILE_N +
                    first / f.width * f.width * f.depth + first % f.width;
  VT sums[TILE_V];
#pragma unroll
  for (int v = 0; v < TILE_V; v++) sums[v] = (VT)0;
  from += k / f.part * (f.part_stride - f.part * f.depth_stride);
  while (k < end) {
    const long ends = (k / f.part + 1) * f.part, stop = min(end, ends), whole = min(end, ends - f.odd);
    if (count == TILE_N && f.row_stride == 1) k = pack_straight(to, from, k, whole, &f, sums);
    if (count == TILE_N && f.depth_stride == STEP_K) k = pack_transposed(to, from, k, whole, &f);
    for (; k < stop; k++) {
      __global const RAW(D) *row = from + k * f.depth_stride;
      for (long r = 0; r < TILE_N; r++) {
        const CT step = r < count ? ONE_STEP(row + r * f.row_stride, f.depth_stride / STEP_K, k < whole) : (CT)0;
        *packed_at(to, r, k, &f) = step;
        ADD_UP(((CT *)sums)[r], step);
      }
    }
    from += f.part_stride - f.part * f.depth_stride;
  }
#ifdef SUMMED
  __global CT *row_sums = (__global CT *)(subtotals + offset_subtotals) + get_global_id(0) * f.rows + first;
  for (long r = 0; r < count; r++) row_sums[r] = ((CT *)sums)[r];
#endif
}

/* ---- The product ---- */

#define EACH_SUM                                     \
  _Pragma("unroll") for (int r = 0; r < TILE_M; r++) \
    _Pragma("unroll") for (int v = 0; v < TILE_V; v++)

/* A tile of sums goes out where the columns of the result lie side by side: each is written in one piece. */
static INLINED void finish_by_columns(VT sum[TILE_M][TILE_V], long row, long column, product p, long batch, CT alpha, CT beta,
                              __global uchar *out, extras more) {
  RAW(D_TO) tile[TILE_M * TILE_N];
  const int rows = (int)min((long)TILE_M, p.m - row), columns = (int)min((long)TILE_N, p.n - column);
#pragma unroll
  for (int r = 0; r < TILE_M; r++) {
#pragma unroll
    for (int v = 0; v < TILE_V; v++) {
      if (r >= rows || v * VEC >= columns) continue;
      const VT value = finished(sum[r][v], row + r, column + v * VEC, p, batch, alpha, beta, more);
      STORE(D_TO, __private, tile + r * TILE_N + v * VEC, value);
    }
  }
  __global RAW(D_TO) *to = (__global RAW(D_TO) *)out + batch * p.out_batch + row + column * p.out_column;
  for (int j = 0; j < columns; j++, to += p.out_column) {
    if (rows == TILE_M) {
#pragma unroll
      for (int r = 0; r < TILE_M; r++) to[r] = tile[r * TILE_N + j];
    } else {
      for (int r = 0; r < rows; r++) to[r] = tile[r * TILE_N + j];
    }
  }
}

/* A tile that is not whole goes out in a loop that stays one; where calls follow, whose code is long, each does, and always by
 * rows. */
static void finish_tile(const VT sum[TILE_M * TILE_V], long row, long column, product p, long batch, CT alpha, CT beta,
                        __global uchar *out, extras more) {
#pragma clang loop unroll(disable)
  for (int at = 0; at < TILE_M * TILE_V; at++)
    finish(sum[at], row + at / TILE_V, column + at % TILE_V * VEC, p, batch, alpha, beta, out, more);
}

#ifdef FOLLOWED
#define BY_COLUMNS(p) false
#define FINISH_TILE(row, column)                                                                     \
  {                                                                                                  \
    VT left[TILE_M * TILE_V];                                                                        \
    _Pragma("unroll") for (int at = 0; at < TILE_M * TILE_V; at++) left[at] = sum[at / TILE_V][at % TILE_V]; \
    finish_tile(left, row, column, p, batch, alpha, beta, out, more);                                \
  }
#else
#define BY_COLUMNS(p) ((p).out_row == 1 && (p).out_column != 1)
/* A whole tile, whose columns lie side by side, has nothing to ask for each vector. */
#define FINISH_TILE(row, column)                                                                                 \
  if (row + TILE_M <= p.m && column + TILE_N <= p.n && p.out_column == 1) {                                      \
    __global RAW(D_TO) *to = (__global RAW(D_TO) *)out + batch * p.out_batch + row * p.out_row + column;         \
    EACH_SUM STORE(D_TO, __global, to + r * p.out_row + v * VEC,                                                 \
                   finished(sum[r][v], row + r, column + v * VEC, p, batch, alpha, beta, more));                 \
  } else {                                                                                                       \
    VT left[TILE_M * TILE_V];                                                                                    \
    EACH_SUM left[r * TILE_V + v] = sum[r][v];                                                                   \
    finish_tile(left, row, column, p, batch, alpha, beta, out, more);                                            \
  }
#endif

/* Rows beyond the last are the last again, here too. */
static INLINED void tile_ahead(long row, long column, product p, long batch, extras more) {
#pragma unroll
  for (int r = 0; r < TILE_M; r++) {
#pragma unroll
    for (int v = 0; v < TILE_V; v++)
      ahead(min(row + r, p.m - 1), min(column + v * VEC, p.n - 1), p, batch, more);
  }
}

#define SPAN (256L / STEP_K) /* of K, in registers; the panel of B that it meets stays in the nearest cache */
#define TILES_MOST 32 /* of a work-item */
#define AHEAD 4 /* steps of K for which a line is asked for that a later span will read */
#define LINE_BYTES 64

/* What a later span will read of B: a line for every AHEAD steps, `step` elements apart. */
typedef struct {
  __global const RAW(D) *at;
  long step;
} lines_ahead;

/* Adds `count` steps of K to a tile; B's vectors lie b_depth apart. Of a packed A the steps are unrolled, where all places are
 * known; of another one, whose rows begin at these places, they would take more registers than there are. */
#define ADD_STEP(A_VALUE)                                                                                         \
  {                                                                                                               \
    VT column[TILE_V];                                                                                            \
    _Pragma("unroll") for (int v = 0; v < TILE_V; v++) column[v] = VLOAD(b + v * VEC);                            \
    _Pragma("unroll") for (int r = 0; r < TILE_M; r++) {                                                          \
      const VT x = (VT)(A_VALUE);                                                                                 \
      _Pragma("unroll") for (int v = 0; v < TILE_V; v++) sum[r][v] = ADD_PRODUCTS(x, column[v], sum[r][v]);       \
    }                                                                                                             \
  }
#define DEFINE_ADD(SPACE)                                                                                         \
  static INLINED void add_packed##SPACE(VT sum[TILE_M][TILE_V], __global const CT *a, SPACE const CT *b, long b_depth, \
                                        long count, lines_ahead lines) {                                          \
    long k = 0;                                                                                                   \
    for (; k + AHEAD <= count; k += AHEAD, lines.at += lines.step) {                                              \
      PREFETCH(lines.at);                                                                                         \
      _Pragma("unroll") for (int i = 0; i < AHEAD; i++, a += ROWS_A, b += b_depth) ADD_STEP(a[r])                 \
    }                                                                                                             \
    for (; k < count; k++, a += ROWS_A, b += b_depth) ADD_STEP(a[r])                                              \
  }                                                                                                               \
  static INLINED void add_raw##SPACE(VT sum[TILE_M][TILE_V], __global const RAW(D) *a, const long at[TILE_M], long a_depth, \
                                     SPACE const CT *b, long b_depth, long count) {                               \
    _Pragma("clang loop unroll(disable)") for (long k = 0; k < count; k++, a += a_depth, b += b_depth)            \
      ADD_STEP(LOAD_ONE(a + at[r]))                                                                               \
  }
DEFINE_ADD(__global)
DEFINE_ADD(__private)

/* A work-item's own panel of B, of so many columns and steps. */
static INLINED void pack_own(VT panel[SPAN][TILE_V], __global const RAW(D) *b, const product *p, long count, long steps,
                             long whole) {
  const long stride = p->b_depth / STEP_K;
  long k = 0;
  if (count == TILE_N && p->b_column == 1) {
    for (; k < whole; k++) {
#pragma unroll
      for (int v = 0; v < TILE_V; v++) panel[k][v] = LOAD_STEP(b + k * p->b_depth + v * VEC, stride, true);
    }
  }
#if VEC > 1
  for (; count == TILE_N && stride == 1 && k + VEC <= whole; k += VEC) {
#pragma unroll
    for (int v = 0; v < TILE_V; v++) {
      VT block[VEC];
#pragma unroll
      for (int i = 0; i < VEC; i++) block[i] = STEPS_OF_ROW(b + (v * VEC + i) * p->b_column + k * STEP_K);
      turn_square(block);
#pragma unroll
      for (int i = 0; i < VEC; i++) panel[k + i][v] = block[i];
    }
  }
#endif
  CT *to = (CT *)panel;
  for (; k < steps; k++) {
    for (long r = 0; r < count; r++)
      to[k * TILE_N + r] = ONE_STEP(b + k * p->b_depth + r * p->b_column, stride, k < whole);
    for (long r = count; r < TILE_N; r++) to[k * TILE_N + r] = (CT)0;
  }
}

/* Of the next span's part of B, the lines that tile `tile` of an item asks for. Of one whose K lies side by side, none: its
 * lines follow each other. */
static INLINED lines_ahead lines_of(__global const RAW(D) *next, const product *p, bool own, long tile) {
  const long line = LINE_BYTES / sizeof(RAW(D)), lines = (TILE_N + line - 1) / line, each = SPAN / AHEAD;
  lines_ahead l = {next, 0};
  if (own && p->b_column == 1) {
    l.step = p->b_depth / STEP_K;
    l.at += tile / lines * each * l.step + tile % lines * line;
  } else if (!own) {
    l.at = (__global const RAW(D) *)((__global const CT *)next + tile * each * (LINE_BYTES / sizeof(CT)));
    l.step = line;
  }
  return l;
}

/* The sums over K from k_begin to k_end, onto those that an earlier launch left in `partial`. A work-item goes from span to
 * span of K, and in each from tile to tile: they share the span's panel of B, which is packed, or which it makes of its
 * `own`. Sums of a span are added to those of the others: rounding errors grow with the longer of the two, not with K. */
static INLINED void multiply_tiles(const bool own, __global const uchar *factor_a, __global const uchar *factor_b,
                                   __global CT *partial, __global uchar *out, CT alpha, CT beta, long k_begin, long k_end,
                                   product p, extras more) {
  const long panel_n = get_global_id(0), batch = get_global_id(2), column = panel_n * TILE_N;
  const long first = get_global_id(1) * p.panels_per_item, last = min(first + p.panels_per_item, p.panels_m);
  __global const RAW(D) *raw_a = (__global const RAW(D) *)factor_a + batch * p.a_batch;
  __global const RAW(D) *raw_b = (__global const RAW(D) *)factor_b + batch * p.b_batch + column * p.b_column;
  __global const CT *packed_a = (__global const CT *)factor_a + batch * p.a_batch;
  __global const CT *packed_b = (__global const CT *)factor_b + batch * p.b_batch + panel_n * p.b_panel;
  VT panel[SPAN][TILE_V], totals[TILES_MOST][TILE_M][TILE_V];
  for (long k = k_begin; k == k_begin || k < k_end; k += SPAN) {
    const long stop = min(k + SPAN, k_end);
    const bool started = k > k_begin, ends = stop == k_end;
    if (own)
      pack_own(panel, raw_b + k * p.b_depth, &p, min((long)TILE_N, p.n - column), stop - k, min(stop, p.k - p.odd) - k);
    for (long panel_m = first; panel_m < last; panel_m++) {
      const long row = panel_m * TILE_M;
      VT sum[TILE_M][TILE_V];
      EACH_SUM sum[r][v] = (VT)0;
      if (stop == p.k) tile_ahead(row, column, p, batch, more);
      __global const CT *spans_b = packed_b + k * p.b_depth;
      if (p.packed_a) {
        __global const CT *a = packed_a + row / ROWS_A * p.a_panel + row % ROWS_A + k * ROWS_A;
        __global const RAW(D) *next = own ? raw_b + stop * p.b_depth : (__global const RAW(D) *)(packed_b + stop * p.b_depth);
        const lines_ahead lines = lines_of(next, &p, own, panel_m - first);
        if (own) add_packed__private(sum, a, (CT *)panel, TILE_N, stop - k, lines);
        else add_packed__global(sum, a, spans_b, p.b_depth, stop - k, lines);
      } else {
        __global const RAW(D) *a = raw_a + k * p.a_depth;
        long at[TILE_M]; /* of the rows */
#pragma unroll
        for (int r = 0; r < TILE_M; r++) at[r] = min(row + r, p.m - 1) * p.a_row; /* beyond the last, the last again */
        if (own) add_raw__private(sum, a, at, p.a_depth, (CT *)panel, TILE_N, stop - k);
        else add_raw__global(sum, a, at, p.a_depth, spans_b, p.b_depth, stop - k);
      }
      if (started) EACH_SUM sum[r][v] = ADD(totals[panel_m - first][r][v], sum[r][v]);
      if (!ends) {
        EACH_SUM totals[panel_m - first][r][v] = sum[r][v];
        continue;
      }
      if (k_end == p.k && k_begin == 0 && BY_COLUMNS(p)) {
        finish_by_columns(sum, row, column, p, batch, alpha, beta, out, more);
        continue;
      }
      __global CT *sums = partial + ((batch * p.panels_m + panel_m) * p.panels_n + panel_n) * TILE_M * TILE_N;
      if (k_begin > 0) EACH_SUM sum[r][v] = ADD(VLOAD(sums + r * TILE_N + v * VEC), sum[r][v]);
      if (k_end < p.k) EACH_SUM VSTORE(sum[r][v], sums + r * TILE_N + v * VEC);
      if (k_end == p.k) FINISH_TILE(row, column)
    }
  }
}

KERNEL_OF(1, 1) multiply(
    CONST_PLACE(factor_a), CONST_PLACE(factor_b), PLACE(partial), PLACE(out), CONST_PLACE(addend) EPILOGUE_PARAMETERS, CT alpha, CT beta,
    long k_begin, long k_end, product p) {
  multiply_tiles(false, factor_a + offset_factor_a, factor_b + offset_factor_b, (__global CT *)(partial + offset_partial),
                 out + offset_out, alpha, beta, k_begin, k_end, p, EXTRAS);
}

/* B as it lies: no launch packs it, and no core waits for what another has packed. */
KERNEL_OF(1, 1) multiply_own(
    CONST_PLACE(factor_a), CONST_PLACE(factor_b), PLACE(partial), PLACE(out), CONST_PLACE(addend) EPILOGUE_PARAMETERS, CT alpha, CT beta,
    long k_begin, long k_end, product p) {
  multiply_tiles(true, factor_a + offset_factor_a, factor_b + offset_factor_b, (__global CT *)(partial + offset_partial),
                 out + offset_out, alpha, beta, k_begin, k_end, p, EXTRAS);
}
