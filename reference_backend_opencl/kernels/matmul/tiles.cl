/* Matrix product on a GPU. A work-group of SIDE x SIDE makes a tile of TILE x TILE: step by step along K it brings a strip
 * of both factors into local memory, from whatever strides and dtype, and each work-item holds its sums in registers.
 * While it works on one strip, the next is on its way.
 *
 * A work-item's rows and columns are TILE_V vectors each, SPAN apart, so that neighbours read neighbouring vectors.
 *
 * A long K is summed in blocks, so that rounding errors do not grow with it: where there are too few tiles for the
 * device side by side (splits.cl), else launch after launch. */
#define SIDE 16
#define SPAN (SIDE * VEC)
#define TILE (SPAN * TILE_V)
#define STRIP 16 /* steps of K */
#define PITCH (TILE + VEC) /* of a step in local memory: not a multiple of the banks */
#define SHARE (TILE * STRIP / (SIDE * SIDE)) /* what a work-item brings of a strip */

/* Element `s` of a work-item's share: its row and its step. Neighbours take what is contiguous in memory. */
#define STEP_OF(s, along) ((along) ? ((s) * SIDE * SIDE + lane) % STRIP : ((s) * SIDE * SIDE + lane) / TILE)
#define ROW_OF(s, along) ((along) ? ((s) * SIDE * SIDE + lane) / STRIP : ((s) * SIDE * SIDE + lane) % TILE)

static void fetch(CT share[SHARE], __global const RAW(D) * from, long row_stride, long depth_stride, long rows,
                  long depth, int lane) {
  bool along = depth_stride == 1;
#pragma unroll
  for (int s = 0; s < SHARE; s++) {
    long row = ROW_OF(s, along), step = STEP_OF(s, along);
    share[s] = (CT)0;
    if (row < rows && step < depth) share[s] = LOAD_ONE(from + row * row_stride + step * depth_stride);
  }
}

static INLINED void place(__local CT *strip, const CT share[SHARE], bool along, int lane) {
#pragma unroll
  for (int s = 0; s < SHARE; s++) strip[STEP_OF(s, along) * PITCH + ROW_OF(s, along)] = share[s];
}

KERNEL_OF(SIDE, SIDE) multiply(
    CONST_PLACE(factor_a), CONST_PLACE(factor_b), PLACE(partial), PLACE(out), CONST_PLACE(addend) EPILOGUE_PARAMETERS, CT alpha, CT beta,
    long k_begin, long k_end, product p) {
  __local VT strip_a[STRIP * PITCH / VEC], strip_b[STRIP * PITCH / VEC];
  int x = get_local_id(0), y = get_local_id(1), lane = y * SIDE + x;
  const long tiles = p.panels_m * p.panels_n, part = get_group_id(0) / tiles, batch = part / p.splits;
  const long tile = get_group_id(0) - part * tiles, row = tile / p.panels_n * TILE, column = tile % p.panels_n * TILE;
  __global const RAW(D) *a = CONST_POINTER(D, factor_a) + batch * p.a_batch + row * p.a_row;
  __global const RAW(D) *b = CONST_POINTER(D, factor_b) + batch * p.b_batch + column * p.b_column;
  if (p.splits > 1) {
    k_begin = part % p.splits * p.split_depth;
    k_end = min(k_begin + p.split_depth, p.k);
  }
  CT share_a[SHARE], share_b[SHARE];
  VT sum[TILE_V * VEC][TILE_V];
#pragma unroll
  for (int r = 0; r < TILE_V * VEC; r++) {
#pragma unroll
    for (int v = 0; v < TILE_V; v++) sum[r][v] = (VT)0;
  }
  fetch(share_a, a + k_begin * p.a_depth, p.a_row, p.a_depth, p.m - row, k_end - k_begin, lane);
  fetch(share_b, b + k_begin * p.b_depth, p.b_column, p.b_depth, p.n - column, k_end - k_begin, lane);
  for (long k = k_begin; k < k_end; k += STRIP) {
    barrier(CLK_LOCAL_MEM_FENCE);
    place((__local CT *)strip_a, share_a, p.a_depth == 1, lane);
    place((__local CT *)strip_b, share_b, p.b_depth == 1, lane);
    barrier(CLK_LOCAL_MEM_FENCE);
    long next = k + STRIP;
    fetch(share_a, a + next * p.a_depth, p.a_row, p.a_depth, p.m - row, k_end - next, lane);
    fetch(share_b, b + next * p.b_depth, p.b_column, p.b_depth, p.n - column, k_end - next, lane);
#pragma unroll
    for (int step = 0; step < STRIP; step++) {
      union {
        VT v[TILE_V];
        CT one[TILE_V * VEC];
      } rows;
      VT columns[TILE_V];
#pragma unroll
      for (int v = 0; v < TILE_V; v++) {
        rows.v[v] = strip_a[step * PITCH / VEC + v * SIDE + y];
        columns[v] = strip_b[step * PITCH / VEC + v * SIDE + x];
      }
#pragma unroll
      for (int r = 0; r < TILE_V * VEC; r++) {
#pragma unroll
        for (int v = 0; v < TILE_V; v++) sum[r][v] = MULTIPLY_ADD((VT)rows.one[r], columns[v], sum[r][v]);
      }
    }
  }
  __global CT *sums = (__global CT *)(partial + offset_partial);
#pragma unroll
  for (int r = 0; r < TILE_V * VEC; r++) {
#pragma unroll
    for (int v = 0; v < TILE_V; v++) {
      long i = row + r / VEC * SPAN + y * VEC + r % VEC, j = column + v * SPAN + x * VEC;
      __global CT *kept = sums + kept_at(part, i, j, p);
      if (p.splits == 1 && k_begin > 0) sum[r][v] += VLOAD(kept);
      if (p.splits > 1 || k_end < p.k)
        VSTORE(sum[r][v], kept);
      else
        finish(sum[r][v], i, j, p, batch, alpha, beta, out + offset_out, EXTRAS);
    }
  }
}
