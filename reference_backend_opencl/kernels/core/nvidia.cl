/* Tensor cores of NVIDIA's Hopper, from OpenCL C: what families' nvidia.cl build on. The instructions are inline PTX.
 * Those that only target sm_90a has stand behind a mark, which is a comment to the driver's OpenCL compiler;
 * runtime/ptx.c takes the mark away in the PTX that comes out, and gives it to the driver again.
 *
 * A strip of a factor lies in local memory in rows of 128 bytes, swizzled as the hardware does it: of row r, the 16
 * bytes c lie at c ^ r % 8, and eight rows are aligned to 1024 bytes. A row is 128 bytes of what lies contiguously in
 * global memory: K, or the factor's own rows ("along" and "across" K). The latter is for elements of 16 bits alone,
 * which are what the head says if it says nothing. */
#ifndef FACTOR_TYPE
#define FACTOR_TYPE ushort
#define FACTOR_BYTES 2
#endif
#define ROW_BYTES 128
#define STRIP (ROW_BYTES / FACTOR_BYTES) /* steps of K in a strip */
#define PIECE (16 / FACTOR_BYTES) /* elements that are copied together */
#define EIGHT_ROWS (8 * ROW_BYTES)

static INLINED uint local_address(__local const uchar *p) { return (uint)(size_t)p; }

/* 16 bytes from global to local memory, of which the first `bytes` are read and the others are zeros. */
static INLINED void copy_async(uint to, __global const FACTOR_TYPE *from, int bytes) {
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
/* The steps of K that one instruction takes, 32 bytes of them, and how far they are. */
#define STEPS (32 / FACTOR_BYTES)
#define STEPS_BYTES(along) ((along) ? 32 : STEPS * ROW_BYTES)

/* Where a work-item takes its share of each strip of a factor of `tile` rows, and brings it to. */
typedef struct {
  __global const FACTOR_TYPE *from;
  long strip, pass; /* elements to the next strip, and to the next pass of the work-items over this one */
  uint to;          /* in the strip */
  int rows;         /* along: how many rows are left from this work-item's; across: the step of K it begins at */
  int bytes;        /* along: the steps of K before it, in a strip; across: what is there of its 16 bytes */
} share;

/* A pass along K takes 8 x 16 bytes of rows / 8 rows. */
static INLINED share share_along(__global const FACTOR_TYPE *from, long row_stride, long rows, int lane, int lanes) {
  int row = lane / 8, chunk = lane % 8;
  share s;
  s.from = from + row * row_stride + chunk * PIECE;
  s.strip = STRIP;
  s.pass = lanes / 8 * row_stride;
  s.to = swizzled(row, chunk);
  s.rows = (int)min(rows - row, (long)1 << 30);
  s.bytes = chunk * PIECE;
  return s;
}
/* A pass across K takes all of a few steps; of 16-bit elements. */
static INLINED share share_across(__global const FACTOR_TYPE *from, long depth_stride, long rows, int tile, int lane,
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
    int bytes = clamp((left - s->bytes) * FACTOR_BYTES, 0, 16), rows = lanes / 8;
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
