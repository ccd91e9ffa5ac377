/* The sums of a tile by wgmma; after core/nvidia_tile.cl, which says what the head defines. */
struct factors {
  share a, b;
  long depth;
};
static INLINED void bring_strip(struct factors *f, uint a, uint b, long i) {
  int left = (int)min(f->depth - i * STRIP, (long)STRIP);
  bring(&f->a, a, TILE_M, A_ALONG, left, LANES);
  bring(&f->b, b, TILE_N, B_ALONG, left, LANES);
}

/* The factors begin at the tile; of it so many rows and columns are there. The sums go to `strips`, in lines of
 * TILE_PITCH. */
static INLINED void make_tile(__local uchar *strips, __global const FACTOR_TYPE *a, __global const FACTOR_TYPE *b, product p,
                              long rows, long columns, long depth, int lane) {
  struct factors f;
  f.depth = depth;
#if A_ALONG
  f.a = share_along(a, p.a_row, rows, lane, LANES);
#else
  f.a = share_across(a, p.a_depth, rows, TILE_M, lane, LANES);
#endif
#if B_ALONG
  f.b = share_along(b, p.b_column, columns, lane, LANES);
#else
  f.b = share_across(b, p.b_depth, columns, TILE_N, lane, LANES);
#endif
  SUM_TYPE sum[TILE_N / 2];
  multiply_strips(sum, &f, local_address(strips), (depth + STRIP - 1) / STRIP, lane);
  keep_tile((__local SUM_TYPE *)strips, sum, lane);
}
