/* Strips of a register tile that NVIDIA's GPUs copy to local memory by themselves, since compute capability 8, after
 * registers.cl: by cp.async, inline PTX, 4 or 16 bytes at a time. Of STAGES strips in local memory one is read while the
 * others are on their way. The head defines STAGES, and PENDING, which is STAGES - 2 as a literal. */
#define STRIPS (STAGES * STRIP)

static INLINED uint local_address(__local const float *p) { return (uint)(size_t)p; }
/* Zeros where nothing is there; then nothing is read. */
static INLINED void copy_one(__local float *to, __global const float *from, bool there) {
  __asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" : : "r"(local_address(to)), "l"(from), "r"(there ? 4 : 0) : "memory");
}
/* Of four that lie whole and aligned in both, the first `bytes`, and zeros for the others. */
static INLINED void copy_four(__local float *to, __global const float *from, int bytes) {
  __asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(local_address(to)), "l"(from), "r"(bytes) : "memory");
}
static INLINED void copy_commit(void) { __asm volatile("cp.async.commit_group;" : : : "memory"); }
#define COPY_WAIT(pending) __asm volatile("cp.async.wait_group " #pending ";" : : : "memory")
#define COPIES_ARRIVE(pending) \
  COPY_WAIT(pending);          \
  barrier(CLK_LOCAL_MEM_FENCE)

/* What the family brings: its struct, and how a strip, of which so many steps are there, begins to come to `a` and `b` in
 * local memory. Called in order. */
struct factors;
static void bring_strip(struct factors *from, __local float *a, __local float *b, int left);

/* The sums over K from `begin` to `end`. */
static INLINED void sum_strips(float4 total[ITEM_M][VECTORS_N], struct factors *from, __local float *strips, long begin,
                               long end, int lane) {
  const int row = item_row(lane), column = item_column(lane);
  float4 sum[ITEM_M][VECTORS_N];
  int now = 0, later = STAGES - 1;
  long next = begin; /* to be brought */
  clear_sums(total);
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) {
    bring_strip(from, strips + s * STRIP, strips + s * STRIP + STRIP_A, (int)clamp(end - next, 0L, (long)STEP));
    copy_commit();
    next += STEP;
  }
  for (long span = begin; span < end; span += SPAN) {
    clear_sums(sum);
    for (long k = span; k < min(span + SPAN, end); k += STEP) {
      COPIES_ARRIVE(PENDING); /* this strip; and no work-item reads the one before any more */
      __local float *strip = strips + now * STRIP, *to = strips + later * STRIP;
      multiply_strip(sum, strip + row, strip + STRIP_A + column);
      bring_strip(from, to, to + STRIP_A, (int)clamp(end - next, 0L, (long)STEP));
      copy_commit();
      next += STEP;
      now = now + 1 == STAGES ? 0 : now + 1;
      later = later + 1 == STAGES ? 0 : later + 1;
    }
    add_sums(total, sum);
  }
  COPY_WAIT(0);
}

/* ---- Factors that lie in a matrix ---- */

typedef struct {
  __global const float *from; /* of the next strip */
  long row_stride, depth_stride;
  int rows;     /* that are left from this work-item's first on */
  int to, step; /* where in a strip its first element goes to, and of which step it is */
} share;

/* How many elements of a line of neighbours a pass takes, and where in the line it begins, counted from the first. */
static INLINED share share_of(__global const float *matrix, long row_stride, long depth_stride, long rows, int tile,
                              int pitch, bool along, int each, int lane) {
  share s;
  const int first = lane * each, row = along ? first / STEP : first % tile;
  s.step = along ? first % STEP : first / tile;
  s.from = matrix + row * row_stride + s.step * depth_stride;
  s.row_stride = row_stride;
  s.depth_stride = depth_stride;
  s.rows = (int)clamp(rows - row, 0L, (long)tile);
  s.to = s.step * pitch + row;
  return s;
}

/* Begins to bring a strip, `each` elements at a time: one, or four that lie side by side across K. */
static INLINED void bring(share *s, __local float *strip, int tile, int pitch, bool along, int each, int left) {
  const int pass = LANES * each;
#pragma unroll
  for (int p = 0; p < tile * STEP / pass; p++) {
    const int row = along ? p * pass / STEP : pass < tile ? p % (tile / pass) * pass : 0;
    const int step = along ? 0 : p * pass / tile;
    __global const float *from = s->from + row * s->row_stride + step * s->depth_stride;
    const bool there = row < s->rows && s->step + step < left;
    if (each == 4)
      copy_four(strip + s->to + step * pitch + row, from, there ? min(s->rows - row, 4) * 4 : 0);
    else
      copy_one(strip + s->to + step * pitch + row, from, there);
  }
  s->from += STEP * s->depth_stride;
}
