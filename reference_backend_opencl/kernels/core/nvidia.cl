/* Tensor cores of NVIDIA's Hopper, from OpenCL C: what families' nvidia.cl build on. The instructions are inline PTX.
 * Those that only target sm_90a has stand behind a mark, which is a comment to the driver's OpenCL compiler;
 * runtime/ptx.c takes the mark away in the PTX that comes out, and gives it to the driver again.
 *
 * Elements are of 16 bits. A strip of a factor lies in local memory in rows of 128 bytes, swizzled as the hardware
 * does it: of row r, the 16 bytes c lie at c ^ r % 8, and eight rows are aligned to 1024 bytes. A row is 64 elements
 * of what lies contiguously in global memory: K, or the factor's own rows ("along" and "across" K). */
#define ROW_BYTES 128
#define STRIP 64 /* steps of K in a strip */
#define EIGHT_ROWS (8 * ROW_BYTES)

static INLINED uint local_address(__local const uchar *p) { return (uint)(size_t)p; }

/* 16 bytes from global to local memory, of which the first `bytes` are read and the others are zeros. */
static INLINED void copy_async(uint to, __global const ushort *from, int bytes) {
  __asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(bytes) : "memory");
}
static INLINED void copy_commit(void) { __asm volatile("cp.async.commit_group;" : : : "memory"); }
#define COPY_WAIT(pending) __asm volatile("cp.async.wait_group " #pending ";" : : : "memory")

/* What this work-item wrote to local memory becomes visible to the tensor cores. */
static INLINED void tensor_fence(void) { __asm volatile("//@ fence.proxy.async.shared::cta;" : : : "memory"); }
static INLINED void tensor_begin(void) { __asm volatile("//@ wgmma.fence.sync.aligned;" : : : "memory"); }
static INLINED void tensor_commit(void) { __asm volatile("//@ wgmma.commit_group.sync.aligned;" : : : "memory"); }
#define TENSOR_WAIT(pending) __asm volatile("//@ wgmma.wait_group.sync.aligned " #pending ";" : : : "memory")

/* What all but the newest `pending` commits brought is there, for all of the group and for the tensor cores. */
#define COPIES_ARRIVE(pending) \
  COPY_WAIT(pending);          \
  tensor_fence();              \
  barrier(CLK_LOCAL_MEM_FENCE)

/* Where in a strip the 16 bytes `chunk` of a row lie. */
static INLINED uint swizzled(int row, int chunk) { return row * ROW_BYTES + ((chunk ^ row % 8) << 4); }

/* How the tensor cores find a strip's rows: PTX ISA, "matrix descriptor", with the 128-byte swizzle. Along K, eight
 * rows follow eight; across, blocks of 64 rows lie `block` bytes apart. */
static INLINED ulong descriptor(uint address, uint block) {
  return (ulong)1 << 62 | (ulong)(EIGHT_ROWS >> 4) << 32 | (ulong)(block >> 4) << 16 | (address & 0x3ffff) >> 4;
}
/* How far 16 steps of K are. */
#define SIXTEEN_STEPS(along) ((along) ? 32 : 16 * ROW_BYTES)

/* Where a work-item takes its share of each strip of a factor of `tile` rows, and brings it to. */
typedef struct {
  __global const ushort *from;
  long strip, pass; /* elements to the next strip, and to the next pass of the work-items over this one */
  uint to;          /* in the strip */
  int rows;         /* along: how many rows are left from this work-item's; across: the step of K it begins at */
  int bytes;        /* along: the steps of K before it, in a strip; across: what is there of its 16 bytes */
} share;

/* A pass along K takes 8 x 16 bytes of rows / 8 rows. */
static INLINED share share_along(__global const ushort *from, long row_stride, long rows, int lane, int lanes) {
  int row = lane / 8, chunk = lane % 8;
  share s;
  s.from = from + row * row_stride + chunk * 8;
  s.strip = STRIP;
  s.pass = lanes / 8 * row_stride;
  s.to = swizzled(row, chunk);
  s.rows = (int)min(rows - row, (long)1 << 30);
  s.bytes = chunk * 8;
  return s;
}
/* A pass across K takes all of a few steps. */
static INLINED share share_across(__global const ushort *from, long depth_stride, long rows, int tile, int lane,
                                  int lanes) {
  int chunks = tile / 8, chunk = lane % chunks, step = lane / chunks;
  share s;
  s.from = from + step * depth_stride + chunk * 8;
  s.strip = STRIP * depth_stride;
  s.pass = lanes / chunks * depth_stride;
  s.to = chunk / 8 * (STRIP * ROW_BYTES) + swizzled(step, chunk % 8);
  s.rows = step;
  s.bytes = (int)clamp((rows - chunk * 8) * 2, (long)0, (long)16);
  return s;
}
/* Begins to bring a strip of which `left` steps are there. */
static INLINED void bring(share *s, uint strip, int tile, int along, int left, int lanes) {
  if (along) {
    int bytes = clamp((left - s->bytes) * 2, 0, 16), rows = lanes / 8;
#pragma unroll
    for (int i = 0; i < tile / rows; i++)
      copy_async(strip + s->to + i * rows * ROW_BYTES, s->from + i * s->pass, i * rows < s->rows ? bytes : 0);
  } else {
    int steps = lanes / (tile / 8);
#pragma unroll
    for (int i = 0; i < STRIP / steps; i++)
      copy_async(strip + s->to + i * steps * ROW_BYTES, s->from + i * s->pass,
                 i * steps + s->rows < left ? s->bytes : 0);
  }
  s->from += s->strip;
}

#ifdef TILE_N
/* ---- A tile of a product ----
 *
 * WARPGROUPS x 128 work-items make TILE_M = 64 WARPGROUPS rows of TILE_N columns: each warpgroup has the sums of 64
 * rows in registers. Strips of both factors come to local memory STAGES - 2 ahead: one more is being read, and one
 * may still be. The head defines multiply_tensor(sums, a, b), and A_ALONG and B_ALONG. */
#define LANES (128 * WARPGROUPS)
#define A_BYTES (TILE_M * ROW_BYTES)
#define B_BYTES (TILE_N * ROW_BYTES)
#define STAGE_BYTES (A_BYTES + B_BYTES)
#define STAGES 4
#define AHEAD (STAGES - 2)
#define STRIPS_BYTES (STAGES * STAGE_BYTES)
#define TILE_PITCH (TILE_N + 8) /* of sums in local memory: neighbouring rows lie in other banks */
#define BAND 16 /* rows of tiles that run at about the same time, so that their strips are found in the cache */

/* Which tile a group makes: down a band, then to the next column. */
static INLINED void find_tile(long panels_m, long panels_n, long *row, long *column) {
  int group = get_group_id(0), band = group / (BAND * (int)panels_n), first = band * BAND;
  int height = min(BAND, (int)panels_m - first), within = group - first * (int)panels_n;
  *row = (long)(first + within % height) * TILE_M;
  *column = (long)(within / height) * TILE_N;
}

/* What the family brings: its struct, and how strip `i` comes to `a` and `b` in local memory. Called in order, once
 * each. */
struct factors;
static void bring_strip(struct factors *from, uint a, uint b, long i);

/* Adds `count` strips to the sums, and leaves no work-item of the group behind in local memory. */
static INLINED void multiply_strips(float *sum, struct factors *from, uint strips, long count, int lane) {
  uint now = 0, later = AHEAD;
#pragma unroll
  for (int i = 0; i < TILE_N / 2; i++) sum[i] = 0;
#pragma unroll
  for (int i = 0; i < AHEAD; i++) {
    if (i < count) bring_strip(from, strips + i * STAGE_BYTES, strips + i * STAGE_BYTES + A_BYTES, i);
    copy_commit();
  }
  for (long i = 0; i < count; i++) {
    COPIES_ARRIVE(1); /* AHEAD - 1: this strip is there */
    uint a = strips + now * STAGE_BYTES + lane / 128 * (64 * ROW_BYTES), b = strips + now * STAGE_BYTES + A_BYTES;
    tensor_begin();
#pragma unroll
    for (int part = 0; part < STRIP / 16; part++)
      multiply_tensor(sum, descriptor(a + part * SIXTEEN_STEPS(A_ALONG), STRIP * ROW_BYTES),
                      descriptor(b + part * SIXTEEN_STEPS(B_ALONG), STRIP * ROW_BYTES));
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
static INLINED void keep_tile(__local float *tile, const float *sum, int lane) {
  int i = lane / 32 * 16 + lane % 32 / 4, j = lane % 4 * 2;
#pragma unroll
  for (int v = 0; v < TILE_N / 4; v++)
    vstore2((float2)(sum[v * 2], sum[v * 2 + 1]), 0, tile + (i + v % 2 * 8) * TILE_PITCH + j + v / 2 * 8);
  barrier(CLK_LOCAL_MEM_FENCE);
}
#endif
