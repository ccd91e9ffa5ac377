/* A tile of a product on tensor cores, after nvidia.cl and bands.cl.
 *
 * WARPGROUPS x 128 work-items make TILE_M = 64 WARPGROUPS rows of TILE_N columns: each warpgroup has the sums of 64
 * rows in registers. Strips of both factors come to local memory AHEAD of being read: of STAGES one more is being read,
 * and one may still be. The head defines multiply_tensor(sums, a, b), SUM_TYPE, A_ALONG and B_ALONG, STAGES, and
 * PENDING, which is AHEAD - 1 as a literal. */
#define LANES (128 * WARPGROUPS)
#define A_BYTES (TILE_M * ROW_BYTES)
#define B_BYTES (TILE_N * ROW_BYTES)
#define STAGE_BYTES (A_BYTES + B_BYTES)
#define AHEAD (STAGES - 2)
#define STRIPS_BYTES (STAGES * STAGE_BYTES)
#define TILE_PITCH (TILE_N + 8) /* of sums in local memory: neighbouring rows lie in other banks */

/* What the family brings: its struct, and how strip `i` comes to `a` and `b` in local memory. Called in order, once
 * each. */
struct factors;
static void bring_strip(struct factors *from, uint a, uint b, long i);

/* Adds `count` strips to the sums, and leaves no work-item of the group behind in local memory. */
static INLINED void multiply_strips(SUM_TYPE *sum, struct factors *from, uint strips, long count, int lane) {
  uint now = 0, later = AHEAD;
#pragma unroll
  for (int i = 0; i < TILE_N / 2; i++) sum[i] = 0;
#pragma unroll
  for (int i = 0; i < AHEAD; i++) {
    if (i < count) bring_strip(from, strips + i * STAGE_BYTES, strips + i * STAGE_BYTES + A_BYTES, i);
    copy_commit();
  }
  for (long i = 0; i < count; i++) {
    COPIES_ARRIVE(PENDING); /* but for these, all are there: this one, too */
    uint a = strips + now * STAGE_BYTES + lane / 128 * (64 * ROW_BYTES), b = strips + now * STAGE_BYTES + A_BYTES;
    tensor_begin();
#pragma unroll
    for (int part = 0; part < STRIP / STEPS; part++)
      multiply_tensor(sum, descriptor(a + part * STEPS_BYTES(A_ALONG), STRIP * ROW_BYTES),
                      descriptor(b + part * STEPS_BYTES(B_ALONG), STRIP * ROW_BYTES));
    tensor_commit();
    TENSOR_WAIT(1); /* the strip before is done with: here, and past the next barrier in all of the group */
    uint to = strips + later * STAGE_BYTES;
    if (i + AHEAD < count) bring_strip(from, to, to + A_BYTES, i + AHEAD);
    copy_commit();
    now = (now + 1) % STAGES;
    later = (later + 1) % STAGES;
  }
  TENSOR_WAIT(0);
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* Sums go to local memory, so that neighbours write side by side, and the code that does stands once. */
static INLINED void keep_tile(__local SUM_TYPE *tile, const SUM_TYPE *sum, int lane) {
  int i = lane / 32 * 16 + lane % 32 / 4, j = lane % 4 * 2;
#pragma unroll
  for (int v = 0; v < TILE_N / 4; v++)
    vstore2((CAT(SUM_TYPE, 2))(sum[v * 2], sum[v * 2 + 1]), 0, tile + (i + v % 2 * 8) * TILE_PITCH + j + v / 2 * 8);
  barrier(CLK_LOCAL_MEM_FENCE);
}
