/* Few rows of f32 times a matrix, on a GPU: each element of B is read once, as it lies. The parameters are those of
 * registers.cl; TILE_M rows, at most, and TILE_N columns are a group's. The head says how B lies: B_ALONG, with K
 * contiguous, or with columns side by side; and A_WHOLE and B_WHOLE: in vectors that lie whole and aligned. */
#define SPAN 64L /* turns, after which sums are added to those of the turns before: so rounding errors don't grow with K */

/* The sums of VEC columns of a row go out, or to the workspace. */
static INLINED void leave(VT sum, long i, long j, long part, product p, CT alpha, CT beta, __global uchar *out,
                          extras more, __global CT *sums) {
  if (i >= p.m || j >= p.n) return;
  if (p.splits > 1)
    VSTORE(sum, sums + kept_at(part, i, j, p));
  else
    finish(sum, i, j, p, part / p.splits, alpha, beta, out, more);
}

#if B_ALONG
/* Four columns, of which all work-items of a group take four elements each in turn. What they summed is added up in
 * three steps. */
#define LANES 128
#define COLUMNS 4 /* TILE_N */
#define SUMS (TILE_M * COLUMNS)
#define TEAM (LANES / SUMS)

static INLINED void dots(float sum[TILE_M][COLUMNS], __global const float *const row[TILE_M],
                         __global const float *const column[COLUMNS], long a_depth, long k, long end) {
  const int n = (int)min(end - k, 4L);
  float4 y[COLUMNS];
#pragma unroll
  for (int c = 0; c < COLUMNS; c++) y[c] = take_four(column[c] + k, 1, n, B_WHOLE);
#pragma unroll
  for (int r = 0; r < TILE_M; r++) {
    const float4 x = take_four(row[r] + k * a_depth, a_depth, n, A_ALONG && A_WHOLE);
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
      sum[r][c] = fma(x.w, y[c].w, fma(x.z, y[c].z, fma(x.y, y[c].y, fma(x.x, y[c].x, sum[r][c]))));
  }
}

KERNEL_OF(LANES, 1) multiply(
    CONST_PLACE(factor_a), CONST_PLACE(factor_b), PLACE(partial), PLACE(out), CONST_PLACE(addend) EPILOGUE_PARAMETERS, CT alpha, CT beta,
    long k_begin, long k_end, product p) {
  __local float parts[SUMS * (LANES + 1)], fewer[SUMS * (TEAM + 1)], few[SUMS * 4];
  const int lane = get_local_id(0);
  const long part = get_group_id(0) / p.panels_n, batch = part / p.splits;
  const long first = (get_group_id(0) - part * p.panels_n) * COLUMNS;
  __global const float *row[TILE_M], *column[COLUMNS]; /* beyond the last, the last again */
#pragma unroll
  for (int r = 0; r < TILE_M; r++)
    row[r] = CONST_POINTER(D, factor_a) + batch * p.a_batch + min((long)r, p.m - 1) * p.a_row;
#pragma unroll
  for (int c = 0; c < COLUMNS; c++)
    column[c] = CONST_POINTER(D, factor_b) + batch * p.b_batch + min(first + c, p.n - 1) * p.b_column;
  if (p.splits > 1) {
    k_begin = part % p.splits * p.split_depth;
    k_end = min(k_begin + p.split_depth, p.k);
  }
  float total[TILE_M][COLUMNS], sum[TILE_M][COLUMNS];
#pragma unroll
  for (int s = 0; s < SUMS; s++) total[s / COLUMNS][s % COLUMNS] = 0;
  for (long span = k_begin; span < k_end; span += SPAN * LANES * 4) {
    const long end = min(span + SPAN * LANES * 4, k_end);
#pragma unroll
    for (int s = 0; s < SUMS; s++) sum[s / COLUMNS][s % COLUMNS] = 0;
#if TILE_M <= 2 /* registers for as many loads on their way */
#pragma unroll 4
#endif
    for (long k = span + lane * 4; k < end; k += LANES * 4) dots(sum, row, column, p.a_depth, k, end);
#pragma unroll
    for (int s = 0; s < SUMS; s++) total[s / COLUMNS][s % COLUMNS] += sum[s / COLUMNS][s % COLUMNS];
  }
#pragma unroll
  for (int s = 0; s < SUMS; s++) parts[s * (LANES + 1) + lane] = total[s / COLUMNS][s % COLUMNS];
  barrier(CLK_LOCAL_MEM_FENCE);
  float of_team = 0;
  for (int i = 0; i < SUMS; i++) of_team += parts[lane / TEAM * (LANES + 1) + i * TEAM + lane % TEAM];
  fewer[lane / TEAM * (TEAM + 1) + lane % TEAM] = of_team;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane < SUMS * 4) {
    float of_quarter = 0;
    for (int i = 0; i < TEAM / 4; i++) of_quarter += fewer[lane / 4 * (TEAM + 1) + i * 4 + lane % 4];
    few[lane] = of_quarter;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane >= TILE_M) return;
  float4 all = (float4)0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    __local const float *from = few + lane * COLUMNS * 4 + i;
    all += (float4)(from[0], from[4], from[8], from[12]);
  }
  leave(all, lane, first, part, p, alpha, beta, out + offset_out, EXTRAS,
        (__global CT *)(partial + offset_partial));
}

#else
/* As many vectors of columns as work-items run together, and some rows of B at a time, whose sums meet at the end. */
#define VECTORS 32 /* TILE_N / VEC */
#define DEEP 8
#define LANES (VECTORS * DEEP)

KERNEL_OF(LANES, 1) multiply(
    CONST_PLACE(factor_a), CONST_PLACE(factor_b), PLACE(partial), PLACE(out), CONST_PLACE(addend) EPILOGUE_PARAMETERS, CT alpha, CT beta,
    long k_begin, long k_end, product p) {
  __local float4 parts[TILE_M * LANES];
  const int lane = get_local_id(0), deep = lane / VECTORS;
  const long part = get_group_id(0) / p.panels_n, batch = part / p.splits;
  const long first = (get_group_id(0) - part * p.panels_n) * VECTORS * VEC, j = first + lane % VECTORS * VEC;
  const int n = (int)clamp(p.n - j, 0L, 4L);
  __global const float *a = CONST_POINTER(D, factor_a) + batch * p.a_batch;
  __global const float *b = CONST_POINTER(D, factor_b) + batch * p.b_batch + j;
  if (p.splits > 1) {
    k_begin = part % p.splits * p.split_depth;
    k_end = min(k_begin + p.split_depth, p.k);
  }
  long row[TILE_M]; /* beyond the last, the last again */
#pragma unroll
  for (int r = 0; r < TILE_M; r++) row[r] = min((long)r, p.m - 1) * p.a_row;
  float4 total[TILE_M], sum[TILE_M];
#pragma unroll
  for (int r = 0; r < TILE_M; r++) total[r] = (float4)0;
  for (long span = k_begin; span < k_end; span += SPAN * DEEP) {
    const long end = min(span + SPAN * DEEP, k_end);
#pragma unroll
    for (int r = 0; r < TILE_M; r++) sum[r] = (float4)0;
#pragma unroll 8
    for (long k = span + deep; k < end; k += DEEP) {
      const float4 y = take_four(b + k * p.b_depth, 1, n, B_WHOLE);
#pragma unroll
      for (int r = 0; r < TILE_M; r++) sum[r] = fma((float4)a[row[r] + k * p.a_depth], y, sum[r]);
    }
#pragma unroll
    for (int r = 0; r < TILE_M; r++) total[r] += sum[r];
  }
#pragma unroll
  for (int r = 0; r < TILE_M; r++) parts[r * LANES + lane] = total[r];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane >= TILE_M * VECTORS) return;
  float4 all = (float4)0;
#pragma unroll
  for (int i = 0; i < DEEP; i++) all += parts[lane / VECTORS * LANES + i * VECTORS + lane % VECTORS];
  leave(all, lane / VECTORS, j, part, p, alpha, beta, out + offset_out, EXTRAS,
        (__global CT *)(partial + offset_partial));
}
#endif
