/* Strips of a register tile that come by way of registers, after registers.cl. While work-items multiply one strip, the
 * next is on its way to their registers; it is put down in the other half of local memory, so that a step has one
 * barrier. */
#define STRIPS (2 * STRIP)

/* What the family brings: its structs, how a work-item's part of the strip from k on comes to its registers (called in
 * order), and from there to local memory. */
struct factors;
struct parts;
static void bring_strip(struct factors *from, struct parts *to, long k);
static void place_strip(const struct factors *of, const struct parts *from, __local float *a, __local float *b);

/* The sums over K from `begin` to `end`. */
static INLINED void sum_strips(float4 total[ITEM_M][VECTORS_N], struct factors *from, struct parts *parts,
                               __local float *strips, long begin, long end, int lane) {
  const int row = item_row(lane), column = item_column(lane);
  float4 sum[ITEM_M][VECTORS_N];
  int now = 0;
  clear_sums(total);
  bring_strip(from, parts, begin);
  place_strip(from, parts, strips, strips + STRIP_A);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long span = begin; span < end; span += SPAN) {
    clear_sums(sum);
    for (long k = span; k < min(span + SPAN, end); k += STEP) {
      __local float *strip = strips + now * STRIP, *next = strips + (1 - now) * STRIP;
      bring_strip(from, parts, k + STEP); /* of nothing, after the last */
      multiply_strip(sum, strip + row, strip + STRIP_A + column);
      place_strip(from, parts, next, next + STRIP_A);
      barrier(CLK_LOCAL_MEM_FENCE);
      now = 1 - now;
    }
    add_sums(total, sum);
  }
}

/* ---- Factors that lie in a matrix ---- */

/* A work-item takes four elements of a strip at a time, along K or across: PASSES(tile) times, its last time perhaps
 * beyond the strip. */
#define FOURS(tile) ((tile) * STEP / 4)
#define PASSES(tile) ((FOURS(tile) + LANES - 1) / LANES)
#define ROWS_A_PASS (LANES / (STEP / 4))           /* along K */
#define STEPS_A_PASS(tile) (LANES / ((tile) / 4)) /* across */

typedef struct {
  __global const float *from; /* of the next strip */
  long strip, pass, stride;   /* elements to the next strip, to the next pass over one, and of four to each other */
  int rows;                   /* along: how many are left from this work-item's on; across: of its four */
  int step, row;              /* of the first four, in the strip */
} share;

static INLINED share share_of(__global const float *matrix, long row_stride, long depth_stride, long rows, int tile,
                              bool along, int lane) {
  share s;
  s.row = along ? lane / (STEP / 4) : lane % (tile / 4) * 4;
  s.step = along ? lane % (STEP / 4) * 4 : lane / (tile / 4);
  s.from = matrix + s.row * row_stride + s.step * depth_stride;
  s.strip = STEP * depth_stride;
  s.pass = along ? ROWS_A_PASS * row_stride : STEPS_A_PASS(tile) * depth_stride;
  s.stride = along ? depth_stride : row_stride;
  s.rows = (int)clamp(rows - s.row, (long)0, along ? (long)tile : (long)4);
  return s;
}

/* The part of a strip of which `left` steps are there. The family moves on to the next. */
static INLINED void bring_fours(const share *s, float4 *part, int tile, bool along, bool whole, int left, int lane) {
#pragma unroll
  for (int p = 0; p < PASSES(tile); p++) {
    int n = along ? (p * ROWS_A_PASS < s->rows ? min(left - s->step, 4) : 0)
                  : (p * STEPS_A_PASS(tile) + s->step < left ? s->rows : 0);
    if (FOURS(tile) % LANES != 0 && p * LANES + lane >= FOURS(tile)) n = 0;
    part[p] = take_four(s->from + p * s->pass, s->stride, n, whole);
  }
}

static INLINED void place_fours(const share *s, const float4 *part, __local float *strip, int tile, int pitch, bool along,
                                int lane) {
#pragma unroll
  for (int p = 0; p < PASSES(tile); p++) {
    if (FOURS(tile) % LANES != 0 && p * LANES + lane >= FOURS(tile)) continue;
    if (along) {
      __local float *to = strip + s->step * pitch + s->row + p * ROWS_A_PASS;
      to[0] = part[p].x;
      to[pitch] = part[p].y;
      to[2 * pitch] = part[p].z;
      to[3 * pitch] = part[p].w;
    } else {
      *(__local float4 *)(strip + (s->step + p * STEPS_A_PASS(tile)) * pitch + s->row) = part[p];
    }
  }
}
