/* Matrix product on NVIDIA's tensor cores: where a tile of sums comes from and goes. A file before it has make_tile,
 * LANES, STRIPS_BYTES and TILE_PITCH. */

/* VEC neighbouring sums go out, or to the workspace. */
static INLINED void leave(VT sum, long i, long j, long part, product p, bool whole, CT alpha, CT beta, __global uchar *out,
                          extras more, __global CT *sums) {
  if (i >= p.m || j >= p.n) return;
  const long batch = part / p.splits;
  if (p.splits > 1) {
    VSTORE(sum, sums + kept_at(part, i, j, p));
  } else if (whole) {
    RAW(D_TO) lanes[VEC];
    STORE(D_TO, __private, lanes, finished(sum, i, j, p, batch, alpha, beta, more));
    *(__global VEC_OF(RAW(D_TO)) *)((__global RAW(D_TO) *)out + batch * p.out_batch + i * p.out_row + j) = VLOAD(lanes);
  } else {
    finish(sum, i, j, p, batch, alpha, beta, out, more);
  }
}

/* A tile that lies in the matrix as a whole goes out. A work-item's results are in one column, some rows apart. What they
 * take beside the sums is read for AT_ONCE of them before any of these is written: so the reads wait together. */
#define AT_ONCE 4
#define APART (LANES * VEC / TILE_N)

static INLINED void leave_whole(__local const CT *tile, __global RAW(D_TO) *out, long row, long column, product p, long batch,
                                CT alpha, CT beta, extras more, int lane) {
  const int j = lane * VEC % TILE_N;
  out += batch * p.out_batch + row * p.out_row + column + j;
#pragma unroll 1
  for (int i = lane * VEC / TILE_N; i < TILE_M; i += AT_ONCE * APART) {
    VEC_OF(RAW(D_TO)) results[AT_ONCE];
#pragma unroll
    for (int r = 0; r < AT_ONCE; r++) {
      const int line = i + r * APART;
      RAW(D_TO) lanes[VEC];
      STORE(D_TO, __private, lanes,
            finished(*(__local const VT *)(tile + line * TILE_PITCH + j), row + line, column + j, p, batch, alpha, beta, more));
      results[r] = VLOAD(lanes);
    }
#pragma unroll
    for (int r = 0; r < AT_ONCE; r++) *(__global VEC_OF(RAW(D_TO)) *)(out + (i + r * APART) * p.out_row) = results[r];
  }
}

KERNEL_OF(LANES, 1) multiply(
    CONST_PLACE(factor_a), CONST_PLACE(factor_b), PLACE(partial), PLACE(out), CONST_PLACE(addend) EPILOGUE_PARAMETERS, CT alpha, CT beta,
    long k_begin, long k_end, product p) {
  __local uchar strips[STRIPS_BYTES] __attribute__((aligned(1024)));
  int lane = get_local_id(0);
  const long tiles = p.panels_m * p.panels_n, part = get_group_id(0) / tiles, batch = part / p.splits;
  long row, column;
  find_tile((int)(get_group_id(0) - part * tiles), (int)p.panels_m, (int)p.panels_n, &row, &column);
  if (p.splits > 1) {
    k_begin = part % p.splits * p.split_depth;
    k_end = min(k_begin + p.split_depth, p.k);
  }
  __global const FACTOR_TYPE *a = (__global const FACTOR_TYPE *)(factor_a + offset_factor_a) + batch * p.a_batch +
                              row * p.a_row + k_begin * p.a_depth;
  __global const FACTOR_TYPE *b = (__global const FACTOR_TYPE *)(factor_b + offset_factor_b) + batch * p.b_batch +
                              column * p.b_column + k_begin * p.b_depth;
  make_tile(strips, a, b, p, p.m - row, p.n - column, max(k_end - k_begin, (long)0), lane);
  __local CT *tile = (__local CT *)strips;
  bool whole = p.n % VEC == 0 && p.out_column == 1 && p.out_row % VEC == 0 && p.out_batch % VEC == 0 &&
               offset_out % (sizeof(RAW(D_TO)) * VEC) == 0;
  __global CT *sums = (__global CT *)(partial + offset_partial);
  if (whole && p.splits == 1 && row + TILE_M <= p.m && column + TILE_N <= p.n) {
    leave_whole(tile, (__global RAW(D_TO) *)(out + offset_out), row, column, p, batch, alpha, beta, EXTRAS, lane);
    return;
  }
#pragma unroll 1
  for (int at = lane * VEC; at < TILE_M * TILE_N; at += LANES * VEC) {
    int i = at / TILE_N, j = at % TILE_N;
    leave(*(__local VT *)(tile + i * TILE_PITCH + j), row + i, column + j, part, p, whole, alpha, beta, out + offset_out,
          EXTRAS, sums);
  }
}
