/* A tile of a product of f32, on GPUs: LANES work-items make TILE_M rows of TILE_N columns, each ITEM_M x ITEM_N sums
 * of it, in registers. Step by step along K, strips of both factors come to local memory, where a strip's elements of
 * one k lie side by side. While work-items multiply one strip, the next is on its way to their registers; it is put
 * down in the other half of local memory, so that a step has one barrier.
 *
 * A work-item's rows and columns are vectors of four, spread evenly over the tile, and the 32 work-items that run
 * together are 8 across and 4 down: what they read of a strip at a time are 8 and 4 neighbouring vectors.
 *
 * The head defines TILE_M, TILE_N, ITEM_M and ITEM_N; VEC is 4. */
#define STEP 8 /* of K in a strip */
#define ACROSS (TILE_N / ITEM_N)
#define LANES (TILE_M / ITEM_M * ACROSS)
#define PITCH_A (TILE_M + 4) /* of a k in local memory: what is stored along K goes to different banks */
#define PITCH_B (TILE_N + 4)
#define STRIP_A (STEP * PITCH_A)
#define STRIPS (2 * STEP * (PITCH_A + PITCH_B)) /* floats of local memory */
#define VECTORS_M (ITEM_M / 4)
#define VECTORS_N (ITEM_N / 4)

/* Where in the tile a work-item's first row and column are, and those of its vector v. */
static INLINED int item_row(int lane) { return (lane / 32 / (ACROSS / 8) * 4 + lane % 32 / 8) * 4; }
static INLINED int item_column(int lane) { return (lane / 32 % (ACROSS / 8) * 8 + lane % 8) * 4; }
#define VECTOR_ROW(v) ((v) * (TILE_M / VECTORS_M))
#define VECTOR_COLUMN(v) ((v) * (TILE_N / VECTORS_N))

/* What the family brings: its structs, how a work-item's part of the strip from k on comes to its registers (called in
 * order), and from there to local memory. */
struct factors;
struct parts;
static void bring_strip(struct factors *from, struct parts *to, long k);
static void place_strip(const struct factors *of, const struct parts *from, __local float *a, __local float *b);

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

/* The sums over K from `begin` to `end`. No work-item reads local memory any more when one returns. */
static INLINED void sum_strips(float4 sum[ITEM_M][VECTORS_N], struct factors *from, struct parts *parts,
                               __local float *strips, long begin, long end, int lane) {
  const int row = item_row(lane), column = item_column(lane);
  int now = 0;
#pragma unroll
  for (int r = 0; r < ITEM_M; r++) {
#pragma unroll
    for (int v = 0; v < VECTORS_N; v++) sum[r][v] = (float4)0;
  }
  bring_strip(from, parts, begin);
  place_strip(from, parts, strips, strips + STRIP_A);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long k = begin; k < end; k += STEP) {
    __local float *strip = strips + now * (STRIPS / 2), *next = strips + (STRIPS / 2 - now * (STRIPS / 2));
    bring_strip(from, parts, k + STEP); /* of nothing, after the last */
    multiply_strip(sum, strip + row, strip + STRIP_A + column);
    place_strip(from, parts, next, next + STRIP_A);
    barrier(CLK_LOCAL_MEM_FENCE);
    now = 1 - now;
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
