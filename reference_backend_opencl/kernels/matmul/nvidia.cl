/* Matrix product on Hopper's tensor cores, of 16-bit floats with sums in f32; after core/nvidia.cl, which says what
 * the head defines. */
struct factors {
  share a, b;
  long depth;
};
static INLINED void bring_strip(struct factors *f, uint a, uint b, long i) {
  int left = (int)min(f->depth - i * STRIP, (long)STRIP);
  bring(&f->a, a, TILE_M, A_ALONG, left, LANES);
  bring(&f->b, b, TILE_N, B_ALONG, left, LANES);
}

/* VEC neighbouring sums go out, or to the workspace. */
static INLINED void leave(VT sum, long i, long j, product p, bool whole, CT alpha, CT beta, __global uchar *out,
                          __global const uchar *addend, __global CT *sums) {
  if (i >= p.m || j >= p.n) return;
  long batch = get_group_id(2) / p.splits;
  if (p.splits > 1) {
    VSTORE(sum, sums + kept_at(get_group_id(2), i, j, p));
  } else if (whole) {
    RAW(D) lanes[VEC];
    STORE(D, __private, lanes, finished(sum, i, j, p, batch, alpha, beta, addend));
    *(__global VEC_OF(RAW(D)) *)((__global RAW(D) *)out + batch * p.out_batch + i * p.out_row + j) = VLOAD(lanes);
  } else {
    finish(sum, i, j, p, batch, alpha, beta, out, addend);
  }
}

KERNEL_OF(LANES, 1) multiply(
    CONST_PLACE(factor_a), CONST_PLACE(factor_b), PLACE(partial), PLACE(out), CONST_PLACE(addend), CT alpha, CT beta,
    long k_begin, long k_end, product p) {
  __local uchar strips[STRIPS_BYTES] __attribute__((aligned(1024)));
  int lane = get_local_id(0);
  long row, column, batch = get_group_id(2) / p.splits;
  find_tile(p.panels_m, p.panels_n, &row, &column);
  if (p.splits > 1) {
    k_begin = get_group_id(2) % p.splits * p.split_depth;
    k_end = min(k_begin + p.split_depth, p.k);
  }
  __global const ushort *from_a = CONST_POINTER(D, factor_a) + batch * p.a_batch + row * p.a_row + k_begin * p.a_depth;
  __global const ushort *from_b =
      CONST_POINTER(D, factor_b) + batch * p.b_batch + column * p.b_column + k_begin * p.b_depth;
  struct factors f;
  f.depth = max(k_end - k_begin, (long)0);
#if A_ALONG
  f.a = share_along(from_a, p.a_row, p.m - row, lane, LANES);
#else
  f.a = share_across(from_a, p.a_depth, p.m - row, TILE_M, lane, LANES);
#endif
#if B_ALONG
  f.b = share_along(from_b, p.b_column, p.n - column, lane, LANES);
#else
  f.b = share_across(from_b, p.b_depth, p.n - column, TILE_N, lane, LANES);
#endif
  float sum[TILE_N / 2];
  multiply_strips(sum, &f, local_address(strips), (f.depth + STRIP - 1) / STRIP, lane);
  __local float *tile = (__local float *)strips;
  keep_tile(tile, sum, lane);
  bool whole = p.n % VEC == 0 && p.out_column == 1 && p.out_row % VEC == 0 && p.out_batch % VEC == 0 &&
               offset_out % (2 * VEC) == 0;
  __global CT *sums = (__global CT *)(partial + offset_partial);
#pragma unroll 1
  for (int at = lane * VEC; at < TILE_M * TILE_N; at += LANES * VEC) {
    int i = at / TILE_N, j = at % TILE_N;
    leave(*(__local VT *)(tile + i * TILE_PITCH + j), row + i, column + j, p, whole, alpha, beta, out + offset_out,
          addend + offset_addend, sums);
  }
}
