/* A tile of a product of f32, on GPUs: LANES work-items make TILE_M rows of TILE_N columns, each ITEM_M x ITEM_N sums
 * of it, in registers. Step by step along K, strips of both factors come to local memory, where a strip's elements of
 * one k lie side by side: by way of registers (strips.cl), or by themselves (nvidia_copies.cl).
 *
 * A work-item's rows and columns are vectors of four, spread evenly over the tile, and the 32 work-items that run
 * together are 8 across and 4 down: what they read of a strip at a time are 8 and 4 neighbouring vectors. Pairs of
 * neighbours read the same columns, and pairs of pairs the same rows: such reads of 16 bytes are made together.
 *
 * SPAN steps of K are summed before they are added to those before: so rounding errors do not grow with K. Of terms that
 * are alike each rounds as the one before it.
 *
 * The head defines TILE_M, TILE_N, ITEM_M, ITEM_N, and STEP, of K in a strip; VEC is 4. */
#define SPAN 128 /* a multiple of STEP */
#define ACROSS (TILE_N / ITEM_N)
#define LANES (TILE_M / ITEM_M * ACROSS)
#define PITCH_A (TILE_M + 4) /* of a k in local memory: what is stored along K goes to different banks */
#define PITCH_B (TILE_N + 4)
#define STRIP_A (STEP * PITCH_A)
#define STRIP (STRIP_A + STEP * PITCH_B) /* floats of local memory, of both factors */
#define VECTORS_M (ITEM_M / 4)
#define VECTORS_N (ITEM_N / 4)

/* Where in the tile a work-item's first row and column are, and those of its vector v. */
static INLINED int item_row(int lane) { return (lane / 32 / (ACROSS / 8) * 4 + lane % 2 + lane % 32 / 16 * 2) * 4; }
static INLINED int item_column(int lane) { return (lane / 32 % (ACROSS / 8) * 8 + lane % 16 / 2) * 4; }
#define VECTOR_ROW(v) ((v) * (TILE_M / VECTORS_M))
#define VECTOR_COLUMN(v) ((v) * (TILE_N / VECTORS_N))

static INLINED void clear_sums(float4 sum[ITEM_M][VECTORS_N]) {
#pragma unroll
  for (int r = 0; r < ITEM_M; r++) {
#pragma unroll
    for (int v = 0; v < VECTORS_N; v++) sum[r][v] = (float4)0;
  }
}

static INLINED void add_sums(float4 total[ITEM_M][VECTORS_N], float4 sum[ITEM_M][VECTORS_N]) {
#pragma unroll
  for (int r = 0; r < ITEM_M; r++) {
#pragma unroll
    for (int v = 0; v < VECTORS_N; v++) total[r][v] += sum[r][v];
  }
}

static INLINED void multiply_strip(float4 sum[ITEM_M][VECTORS_N], __local const float *a, __local const float *b) {
#pragma unroll
  for (int k = 0; k < STEP; k++) {
    float4 rows[VECTORS_M], columns[VECTORS_N];
#pragma unroll
    for (int v = 0; v < VECTORS_M; v++) rows[v] = *(__local const float4 *)(a + k * PITCH_A + VECTOR_ROW(v));
#pragma unroll
    for (int v = 0; v < VECTORS_N; v++) columns[v] = *(__local const float4 *)(b + k * PITCH_B + VECTOR_COLUMN(v));
#pragma unroll
    for (int r = 0; r < VECTORS_M; r++) {
#pragma unroll
      for (int v = 0; v < VECTORS_N; v++) {
        sum[4 * r][v] = fma((float4)rows[r].x, columns[v], sum[4 * r][v]);
        sum[4 * r + 1][v] = fma((float4)rows[r].y, columns[v], sum[4 * r + 1][v]);
        sum[4 * r + 2][v] = fma((float4)rows[r].z, columns[v], sum[4 * r + 2][v]);
        sum[4 * r + 3][v] = fma((float4)rows[r].w, columns[v], sum[4 * r + 3][v]);
      }
    }
  }
}
