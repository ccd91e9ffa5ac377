/* Matrix product on a CPU. A work-item takes TILE_N columns of B and some rows of A, and keeps a tile of TILE_M x TILE_N
 * sums in registers while it walks along K, or along one block of a long K.
 *
 * Factors are copied into panels of TILE_N rows that lie side by side along K: cast to the compute type, freed of strides
 * and remainders (which become zeros). A factor that serves as it lies is not copied: of A single elements are read, so
 * it may have any strides, and had better have a contiguous K; B must give whole vectors, and is worth its copy where it
 * is read more than once.
 *
 * The head defines TILE_M and TILE_V (vectors in a tile's row), too. */
#define TILE_N (TILE_V * VEC)

/* ---- Packing ---- */

/* A factor: `rows` counts along the output, `depth` along K; strides in elements. K may be that of several products, which
 * have `part` each and lie part_stride apart. */
typedef struct {
  long rows, depth, row_stride, depth_stride, batch_stride, part, part_stride;
} factor;

/* A work-item packs STEP steps of depth of one panel: long enough to read whole cache lines either way round. */
#define STEP 64

#if VEC > 1
/* Of a whole panel whose K is contiguous, the part that fills whole vectors. Returns where it ends. */
static long pack_transposed(__global CT *to, __global const RAW(D) *from, long k, long end, long row_stride) {
  for (; k + VEC <= end; k += VEC) {
    for (int v = 0; v < TILE_V; v++) {
      VT block[VEC];
#pragma unroll
      for (int i = 0; i < VEC; i++) block[i] = LOAD(D, __global, from + (v * VEC + i) * row_stride + k);
      turn_square(block);
#pragma unroll
      for (int i = 0; i < VEC; i++) VSTORE(block[i], to + (k + i) * TILE_N + v * VEC);
    }
  }
  return k;
}
#else
static long pack_transposed(__global CT *to, __global const RAW(D) *from, long k, long end, long row_stride) {
  return k;
}
#endif

/* Of a whole panel whose rows lie side by side, all. */
static long pack_straight(__global CT *to, __global const RAW(D) *from, long k, long end, long depth_stride) {
  for (; k < end; k++) {
#pragma unroll
    for (int v = 0; v < TILE_V; v++) {
      VSTORE(LOAD(D, __global, from + k * depth_stride + v * VEC), to + k * TILE_N + v * VEC);
    }
  }
  return k;
}

KERNEL_OF(1, 1) pack(
    PLACE(work), __global const uchar *in, ulong offset, factor f) {
  long k = (long)get_global_id(0) * STEP, panel = get_global_id(1), batch = get_global_id(2);
  long end = min(k + STEP, f.depth), first = panel * TILE_N, count = min((long)TILE_N, f.rows - first);
  __global const RAW(D) *from =
      (__global const RAW(D) *)(in + offset) + batch * f.batch_stride + first * f.row_stride;
  __global CT *to =
      (__global CT *)(work + offset_work) + (batch * (long)get_global_size(1) + panel) * f.depth * TILE_N;
  from += k / f.part * (f.part_stride - f.part * f.depth_stride);
  while (k < end) {
    const long stop = min(end, (k / f.part + 1) * f.part);
    if (count == TILE_N && f.row_stride == 1) k = pack_straight(to, from, k, stop, f.depth_stride);
    if (count == TILE_N && f.depth_stride == 1) k = pack_transposed(to, from, k, stop, f.row_stride);
    for (; k < stop; k++) {
      __global const RAW(D) *row = from + k * f.depth_stride;
      for (long r = 0; r < count; r++) to[k * TILE_N + r] = LOAD_ONE(row + r * f.row_stride);
      for (long r = count; r < TILE_N; r++) to[k * TILE_N + r] = (CT)0;
    }
    from += f.part_stride - f.part * f.depth_stride;
  }
}

/* ---- The product ---- */

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

/* Where calls follow, a tile goes out in a loop that stays one, since their code is long; and always by rows. */
#ifdef FOLLOWED
#define BY_COLUMNS(p) false
static void finish_tile(const VT sum[TILE_M * TILE_V], long row, long column, product p, long batch, CT alpha, CT beta,
                        __global uchar *out, extras more) {
#pragma clang loop unroll(disable)
  for (int at = 0; at < TILE_M * TILE_V; at++)
    finish(sum[at], row + at / TILE_V, column + at % TILE_V * VEC, p, batch, alpha, beta, out, more);
}
#define FINISH_TILE(row, column)                                                                     \
  {                                                                                                  \
    VT left[TILE_M * TILE_V];                                                                        \
    _Pragma("unroll") for (int at = 0; at < TILE_M * TILE_V; at++) left[at] = sum[at / TILE_V][at % TILE_V]; \
    finish_tile(left, row, column, p, batch, alpha, beta, out + offset_out, EXTRAS);                 \
  }
#else
#define BY_COLUMNS(p) ((p).out_row == 1 && (p).out_column != 1)
#define FINISH_TILE(row, column)                                                                     \
  _Pragma("unroll") for (int r = 0; r < TILE_M; r++) {                                               \
    _Pragma("unroll") for (int v = 0; v < TILE_V; v++)                                               \
      finish(sum[r][v], row + r, column + v * VEC, p, batch, alpha, beta, out + offset_out, EXTRAS); \
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

#define SPAN 256L /* of K, in registers */

/* The sums over K from k_begin to k_end, onto those that an earlier launch left in `partial`. */
KERNEL_OF(1, 1) multiply(
    CONST_PLACE(factor_a), CONST_PLACE(factor_b), PLACE(partial), PLACE(out), CONST_PLACE(addend) EPILOGUE_PARAMETERS, CT alpha, CT beta,
    long k_begin, long k_end, product p) {
  long panel_n = get_global_id(0), batch = get_global_id(2);
  long panel_m = get_global_id(1) * p.panels_per_item, last = min(panel_m + p.panels_per_item, p.panels_m);
  for (; panel_m < last; panel_m++) {
    long row = panel_m * TILE_M;
    __global const CT *a =
        (__global const CT *)(factor_a + offset_factor_a) + batch * p.a_batch + k_begin * p.a_depth;
    __global const CT *b =
        (__global const CT *)(factor_b + offset_factor_b) + batch * p.b_batch + panel_n * p.b_panel + k_begin * p.b_depth;
    __global CT *sums = (__global CT *)(partial + offset_partial) +
                        ((batch * p.panels_m + panel_m) * p.panels_n + panel_n) * TILE_M * TILE_N;
    long at[TILE_M]; /* of the rows */
    VT sum[TILE_M][TILE_V];
#pragma unroll
    for (int r = 0; r < TILE_M; r++) {
      long i = min(row + r, p.m - 1); /* beyond the last, the last again */
      at[r] = i / TILE_N * p.a_panel + i % TILE_N * p.a_row;
#pragma unroll
      for (int v = 0; v < TILE_V; v++) sum[r][v] = (VT)0;
    }
    if (k_end == p.k) tile_ahead(row, panel_n * TILE_N, p, batch, EXTRAS);
    /* Sums of a span are added to those of the others: rounding errors grow with the longer of the two, not with K. */
    VT total[TILE_M][TILE_V];
    bool many = k_end - k_begin > SPAN;
    for (int r = 0; many && r < TILE_M; r++) {
      for (int v = 0; v < TILE_V; v++) total[r][v] = (VT)0;
    }
    for (long k = k_begin; k < k_end;) {
      for (long stop = min(k + SPAN, k_end); k < stop; k++, a += p.a_depth, b += p.b_depth) {
        VT column[TILE_V];
#pragma unroll
        for (int v = 0; v < TILE_V; v++) column[v] = VLOAD(b + v * VEC);
#pragma unroll
        for (int r = 0; r < TILE_M; r++) {
#pragma unroll
          for (int v = 0; v < TILE_V; v++) sum[r][v] = MULTIPLY_ADD((VT)a[at[r]], column[v], sum[r][v]);
        }
      }
#pragma unroll
      for (int r = 0; r < TILE_M; r++) {
#pragma unroll
        for (int v = 0; many && v < TILE_V; v++) {
          total[r][v] = ADD(total[r][v], sum[r][v]);
          sum[r][v] = k < k_end ? (VT)0 : total[r][v];
        }
      }
    }
    if (k_end == p.k && k_begin == 0 && BY_COLUMNS(p)) {
      finish_by_columns(sum, row, panel_n * TILE_N, p, batch, alpha, beta, out + offset_out, EXTRAS);
      continue;
    }
#pragma unroll
    for (int r = 0; r < TILE_M; r++) {
#pragma unroll
      for (int v = 0; v < TILE_V; v++) {
        if (k_begin > 0) sum[r][v] = ADD(VLOAD(sums + r * TILE_N + v * VEC), sum[r][v]);
        if (k_end < p.k) VSTORE(sum[r][v], sums + r * TILE_N + v * VEC);
      }
    }
    if (k_end == p.k) FINISH_TILE(row, panel_n * TILE_N)
  }
}

/* ---- The product at once ---- */

/* Of a K of at most AT_ONCE: a work-item makes its own panel of B, and A's elements are read as they lie. One launch, and
 * no core waits for what another has packed. */
#define AT_ONCE 512

static INLINED void pack_own(VT panel[AT_ONCE][TILE_V], __global const RAW(D) *b, product p, long count) {
  long k = 0;
  if (count == TILE_N && p.b_column == 1) {
    for (; k < p.k; k++) {
#pragma unroll
      for (int v = 0; v < TILE_V; v++) panel[k][v] = LOAD(D, __global, b + k * p.b_depth + v * VEC);
    }
  }
#if VEC > 1
  for (; count == TILE_N && p.b_depth == 1 && k + VEC <= p.k; k += VEC) {
#pragma unroll
    for (int v = 0; v < TILE_V; v++) {
      VT block[VEC];
#pragma unroll
      for (int i = 0; i < VEC; i++) block[i] = LOAD(D, __global, b + (v * VEC + i) * p.b_column + k);
      turn_square(block);
#pragma unroll
      for (int i = 0; i < VEC; i++) panel[k + i][v] = block[i];
    }
  }
#endif
  CT *to = (CT *)panel;
  for (; k < p.k; k++) {
    for (long r = 0; r < count; r++) to[k * TILE_N + r] = LOAD_ONE(b + k * p.b_depth + r * p.b_column);
    for (long r = count; r < TILE_N; r++) to[k * TILE_N + r] = (CT)0;
  }
}

KERNEL_OF(1, 1) multiply_at_once(
    CONST_PLACE(factor_a), CONST_PLACE(factor_b), PLACE(partial), PLACE(out), CONST_PLACE(addend) EPILOGUE_PARAMETERS, CT alpha, CT beta,
    long k_begin, long k_end, product p) {
  const long column = (long)get_global_id(0) * TILE_N, batch = get_global_id(2);
  __global const RAW(D) *a = CONST_POINTER(D, factor_a) + batch * p.a_batch;
  VT panel[AT_ONCE][TILE_V];
  pack_own(panel, CONST_POINTER(D, factor_b) + batch * p.b_batch + column * p.b_column, p, min((long)TILE_N, p.n - column));
  long panel_m = get_global_id(1) * p.panels_per_item, last = min(panel_m + p.panels_per_item, p.panels_m);
  for (; panel_m < last; panel_m++) {
    const long row = panel_m * TILE_M;
    long at[TILE_M];
    VT total[TILE_M][TILE_V], sum[TILE_M][TILE_V];
#pragma unroll
    for (int r = 0; r < TILE_M; r++) {
      at[r] = min(row + r, p.m - 1) * p.a_row; /* beyond the last, the last again */
#pragma unroll
      for (int v = 0; v < TILE_V; v++) sum[r][v] = (VT)0;
    }
    tile_ahead(row, column, p, batch, EXTRAS);
    __global const RAW(D) *from = a;
    for (long k = 0; k < p.k;) {
      const long stop = min(k + SPAN, p.k);
      const bool more = stop < p.k, started = k > 0;
      for (; k < stop; k++, from += p.a_depth) {
        VT columns[TILE_V];
#pragma unroll
        for (int v = 0; v < TILE_V; v++) columns[v] = panel[k][v];
#pragma unroll
        for (int r = 0; r < TILE_M; r++) {
          const VT x = (VT)LOAD_ONE(from + at[r]);
#pragma unroll
          for (int v = 0; v < TILE_V; v++) sum[r][v] = MULTIPLY_ADD(x, columns[v], sum[r][v]);
        }
      }
#pragma unroll
      for (int r = 0; r < TILE_M; r++) {
#pragma unroll
        for (int v = 0; v < TILE_V; v++) {
          if (started) sum[r][v] = ADD(total[r][v], sum[r][v]);
          if (more) {
            total[r][v] = sum[r][v];
            sum[r][v] = (VT)0;
          }
        }
      }
    }
    if (BY_COLUMNS(p)) {
      finish_by_columns(sum, row, column, p, batch, alpha, beta, out + offset_out, EXTRAS);
      continue;
    }
    FINISH_TILE(row, column)
  }
}
