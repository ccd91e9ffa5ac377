/* Where K is cut into p.splits parts side by side, and the sums of each are kept. A tile is TILE_M x TILE_N. */
#define COMBINED 32 /* work-items that add up splits in a group */

/* Where in the workspace the sums of row i from column j on stand, of the tiles of a batch and a split. */
static INLINED long kept_at(long tiles, long i, long j, product p) {
  return (tiles * p.panels_m * TILE_M + i) * p.panels_n * TILE_N + j;
}

/* A work-item for each vector of the result. */
KERNEL_OF(COMBINED, 1) combine(PLACE(partial), PLACE(out), CONST_PLACE(addend) EPILOGUE_PARAMETERS, CT alpha, CT beta, product p) {
  const long across = (p.n + COMBINED * VEC - 1) / (COMBINED * VEC), line = get_group_id(0) / across;
  const long j = ((get_group_id(0) - line * across) * COMBINED + get_local_id(0)) * VEC, i = line % p.m, batch = line / p.m;
  if (j >= p.n) return;
  __global const CT *sums = (__global const CT *)(partial + offset_partial);
  VT sum = (VT)0;
  for (long split = 0; split < p.splits; split++) sum += VLOAD(sums + kept_at(batch * p.splits + split, i, j, p));
  finish(sum, i, j, p, batch, alpha, beta, out + offset_out, EXTRAS);
}
