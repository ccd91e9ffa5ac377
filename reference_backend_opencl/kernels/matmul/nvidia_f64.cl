/* The sums of a tile of f64 by mma.sync, which Hopper's tensor cores take and NVIDIA's OpenCL compiler does, too.
 *
 * A warp makes WARP_M x WARP_N of the tile, in blocks of 16 x 8, over 8 steps of K at a time. Strips of both factors
 * come to local memory STAGES - 1 ahead, element by element, so that they may lie anyhow. A factor that is contiguous
 * along K lies there in rows of 16 steps, else in steps of a tile's rows; of row r and step k, the 16 bytes c lie at
 * c ^ 2 (r % 4), or 2 (k % 4), so that the four rows and four steps that half a warp reads lie in all banks. */
#define STRIP 16 /* steps of K */
#define STAGES 4
#define LANES (2 * TILE_M)
#define WARP_M (TILE_M / 2)
#define WARP_N 32
#define BLOCKS_M (WARP_M / 16)
#define BLOCKS_N (WARP_N / 8)
#define STEPS 8 /* that an instruction takes */
#define TILE_PITCH (TILE_N + 8)
#define STAGE_BYTES ((TILE_M + TILE_N) * STRIP * 8)
#define TILE_BYTES (TILE_M * TILE_PITCH * 8)
#define STRIPS_BYTES (STAGES * STAGE_BYTES > TILE_BYTES ? STAGES * STAGE_BYTES : TILE_BYTES)

/* Where in a strip of a factor of `tile` rows an element lies, in elements. */
static INLINED int place_of(int row, int step, int tile, int along) {
  return along ? row * STRIP + ((step / 2 ^ row % 4 * 2) * 2 + step % 2)
               : step * tile + ((row / 2 ^ step % 4 * 2) * 2 + row % 2);
}

/* ---- To local memory ---- */

/* 8 bytes, or a zero. */
static INLINED void copy_one(uint to, __global const double *from, bool present) {
  __asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
                 :
                 : "r"(to), "l"(from), "r"(present ? 8 : 0)
                 : "memory");
}

#define PASSES 8 /* of all work-items over a strip of a factor, whose rows are half as many */
#define ROWS_OF_PASS (LANES / STRIP)

/* Where a work-item takes its share of each strip of a factor. Neighbours take what lies side by side. */
typedef struct {
  __global const double *from;
  long strip, pass; /* elements to the next strip, and to the next pass over this one */
  uint to[2];       /* of an even pass, of an odd one */
  int row, step, rows;
} share;

static INLINED share share_of(__global const double *from, long row_stride, long depth_stride, long rows, int tile,
                              int along, int lane) {
  share s;
  s.row = along ? lane / STRIP : lane % tile;
  s.step = along ? lane % STRIP : lane / tile;
  s.rows = (int)min(rows, (long)tile);
  s.from = from + s.row * row_stride + s.step * depth_stride;
  s.strip = STRIP * depth_stride;
  s.pass = along ? ROWS_OF_PASS * row_stride : 2 * depth_stride;
#pragma unroll
  for (int i = 0; i < 2; i++)
    s.to[i] = 8 * place_of(s.row + (along ? i * ROWS_OF_PASS : 0), s.step + (along ? 0 : 2 * i), tile, along);
  return s;
}
/* Begins to bring a strip of which `left` steps are there. */
static INLINED void bring(share *s, uint strip, long left, int tile, int along) {
  __global const double *from = s->from;
#pragma unroll
  for (int i = 0; i < PASSES; i++) {
    copy_one(strip + s->to[i % 2] + i / 2 * (along ? 2 * ROWS_OF_PASS * STRIP : 4 * tile) * 8, from,
             s->row + (along ? i * ROWS_OF_PASS : 0) < s->rows && s->step + (along ? 0 : 2 * i) < left);
    from += s->pass;
  }
  s->from += s->strip;
}

/* ---- To registers ---- */

/* Of the rows from `row` on, which a warp shares out: where its pieces of 8 rows and 4 steps begin. */
typedef struct {
  int at[4];
} pieces;
static INLINED pieces pieces_of(int row, int step, int tile, int along) {
  pieces p;
#pragma unroll
  for (int i = 0; i < 4; i++)
    p.at[i] = along ? place_of(row, i * 4 + step, tile, along) : place_of(row + i % 2 * 8, step, tile, along);
  return p;
}
static INLINED double piece(__local const double *strip, const pieces *p, int eights, int fours, int tile, int along) {
  return strip[along ? p->at[fours] + eights * 8 * STRIP : p->at[eights % 2] + eights / 2 * 16 + fours * 4 * tile];
}

static INLINED void multiply_block(double sum[4], const double a[4], const double b[2]) {
  __asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

/* As in nvidia_strips.cl. */
static INLINED void make_tile(__local uchar *strips, __global const FACTOR_TYPE *a, __global const FACTOR_TYPE *b, product p,
                              long rows, long columns, long depth, int lane) {
  const uint address = (uint)(size_t)strips;
  const int warp = lane / 32, first_m = warp % 2 * WARP_M, first_n = warp / 2 * WARP_N;
  const int group = lane % 32 / 4, within = lane % 4;
  share share_a = share_of(a, p.a_row, p.a_depth, rows, TILE_M, A_ALONG, lane);
  share share_b = share_of(b, p.b_column, p.b_depth, columns, TILE_N, B_ALONG, lane);
  const pieces of_a = pieces_of(first_m + group, within, TILE_M, A_ALONG);
  const pieces of_b = pieces_of(first_n + group, within, TILE_N, B_ALONG);
  double sum[BLOCKS_M][BLOCKS_N][4];
#pragma unroll
  for (int m = 0; m < BLOCKS_M; m++) {
#pragma unroll
    for (int n = 0; n < BLOCKS_N; n++) {
#pragma unroll
      for (int i = 0; i < 4; i++) sum[m][n][i] = 0;
    }
  }
  const int count = (int)((depth + STRIP - 1) / STRIP);
#pragma unroll 1
  for (int i = 1 - STAGES; i < count; i++) {
    if (i >= 0) {
      __asm volatile("cp.async.wait_group %0;" : : "n"(STAGES - 2) : "memory");
      barrier(CLK_LOCAL_MEM_FENCE); /* this strip is there, and all are done with the one before */
    }
    const int next = i + STAGES - 1;
    if (next < count) {
      const uint to = address + next % STAGES * STAGE_BYTES;
      const long left = depth - (long)next * STRIP;
      bring(&share_a, to, left, TILE_M, A_ALONG);
      bring(&share_b, to + TILE_M * STRIP * 8, left, TILE_N, B_ALONG);
    }
    __asm volatile("cp.async.commit_group;" : : : "memory");
    if (i < 0) continue;
    __local const double *strip_a = (__local const double *)(strips + i % STAGES * STAGE_BYTES);
    __local const double *strip_b = strip_a + TILE_M * STRIP;
#pragma unroll
    for (int k = 0; k < STRIP; k += STEPS) {
      double part_a[BLOCKS_M][4], part_b[BLOCKS_N][2];
#pragma unroll
      for (int m = 0; m < BLOCKS_M; m++) {
#pragma unroll
        for (int v = 0; v < 4; v++)
          part_a[m][v] = piece(strip_a, &of_a, m * 2 + v % 2, k / 4 + v / 2, TILE_M, A_ALONG);
      }
#pragma unroll
      for (int n = 0; n < BLOCKS_N; n++) {
#pragma unroll
        for (int v = 0; v < 2; v++) part_b[n][v] = piece(strip_b, &of_b, n, k / 4 + v, TILE_N, B_ALONG);
      }
#pragma unroll
      for (int m = 0; m < BLOCKS_M; m++) {
#pragma unroll
        for (int n = 0; n < BLOCKS_N; n++) multiply_block(sum[m][n], part_a[m], part_b[n]);
      }
    }
  }
  __asm volatile("cp.async.wait_group 0;" : : : "memory");
  barrier(CLK_LOCAL_MEM_FENCE);
  __local double *tile = (__local double *)strips;
#pragma unroll
  for (int m = 0; m < BLOCKS_M; m++) {
#pragma unroll
    for (int n = 0; n < BLOCKS_N; n++) {
#pragma unroll
      for (int i = 0; i < 2; i++)
        vstore2((double2)(sum[m][n][2 * i], sum[m][n][2 * i + 1]), 0,
                tile + (first_m + m * 16 + i * 8 + group) * TILE_PITCH + first_n + n * 8 + within * 2);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
