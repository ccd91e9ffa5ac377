/* TILE x WIDE vectors of sums, which a work-item holds in registers. */
static INLINED void clear_tile(VT sum[TILE][WIDE]) {
#pragma unroll
  for (int t = 0; t < TILE; t++) {
#pragma unroll
    for (int w = 0; w < WIDE; w++) sum[t][w] = (VT)0;
  }
}

/* After core/pairs.cl: adds the products of WIDE vectors, side by side, with TILE numbers. */
static INLINED void add_to_tile(VT sum[TILE][WIDE], __global const CT *vectors, __global const CT *numbers) {
  VT v[WIDE];
#pragma unroll
  for (int w = 0; w < WIDE; w++) v[w] = VLOAD(vectors + w * VEC);
#pragma unroll
  for (int t = 0; t < TILE; t++) {
#pragma unroll
    for (int w = 0; w < WIDE; w++) sum[t][w] = ADD_PRODUCTS(v[w], (VT)numbers[t], sum[t][w]);
  }
}
