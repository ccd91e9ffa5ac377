/* A sum over the work-items of a group. The head may define SUM, its type. */
#if defined(WARPS) && !defined(SUM) /* core/warps.cl, in front */
#define SUM_BY_WARPS
#endif
#ifndef SUM
#define SUM uint
#endif
#define SPAN (LOCAL > 64 ? 16 : 8)
#define SPANS (LOCAL / SPAN)

/* What those before have together; *total: what all have. `sums` has LOCAL + SPANS numbers, and is free again behind the
 * next barrier. */
#ifdef SUM_BY_WARPS
static INLINED SUM sum_before(__local SUM *sums, SUM own, SUM *total) {
  const int id = (int)get_local_id(0), lane = id % WARP, warp = id / WARP;
  SUM sum = own, all = 0;
#pragma unroll
  for (int step = 1; step < WARP; step *= 2) {
    const SUM other = from_before(sum, step);
    sum += lane >= step ? other : 0;
  }
  if (lane == WARP - 1) sums[warp] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  SUM before = sum - own;
  for (int k = 0; k < LOCAL / WARP; k++) {
    before += k < warp ? sums[k] : 0;
    all += sums[k];
  }
  *total = all;
  return before;
}
#else
static INLINED SUM sum_before(__local SUM *sums, SUM own, SUM *total) {
  const int id = (int)get_local_id(0), span = id / SPAN;
  __local SUM *spans = sums + LOCAL;
  sums[id] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (id < SPANS) {
    SUM sum = 0;
    for (int j = 0; j < SPAN; j++) sum += sums[id * SPAN + j];
    spans[id] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  SUM before = 0, all = 0;
  for (int k = 0; k < SPANS; k++) {
    before += k < span ? spans[k] : 0;
    all += spans[k];
  }
  for (int j = 0; j < SPAN; j++) before += span * SPAN + j < id ? sums[span * SPAN + j] : 0;
  *total = all;
  return before;
}
#endif
