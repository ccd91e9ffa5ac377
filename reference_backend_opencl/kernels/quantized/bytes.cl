/* Products of matrices of i8 on a processor with AVX-512 VNNI, after direct.cl and square.cl: vpdpbusd adds to each lane
 * four products of bytes, exactly. One of its factors is unsigned: B's numbers are, with 128 added; 128 times the sum of a
 * row of A is too much then, and goes off again.
 *
 * A piece is a panel of 32 columns, of which quads of four numbers along K lie side by side, STEP numbers of K at a time,
 * and CHUNK rows, of which TILE at a time are copied. Rows beyond the last are the last again, and are not written. */
#define PANEL 32
#define STEP 1024
#define SIGNS 0x80808080u

static INLINED int16 dot_bytes(int16 sum, uint16 b, int16 a) {
  __asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(b), "v"(a));
  return sum;
}

static INLINED uint16 bytes_of(__global const char *p) {
  return convert_uint16(as_uchar16(vload16(0, p)));
}

/* Quads from number k of K on, of `count` columns: what is beyond those or beyond `depth` is 0. */
static void pack_some(uint16 to[2], __global const char *b, long k, long depth, long count, numbers n) {
  uint lanes[PANEL];
  for (int j = 0; j < PANEL; j++) {
    uint quad = 0;
    for (int i = 0; i < 4; i++) {
      if (j < count && k + i < depth) quad |= (uint)(uchar)b[(k + i) * B_DEPTH + j * B_COLUMN] << 8 * i;
    }
    lanes[j] = quad ^ SIGNS;
  }
  to[0] = vload16(0, lanes);
  to[1] = vload16(1, lanes);
}

static void pack_panel(uint16 panel[STEP / 4][2], __global const char *b, long depth, long count, numbers n) {
  long k = 0;
  if (count == PANEL && B_COLUMN == 1) {
    for (; k + 4 <= depth; k += 4) {
      __global const char *from = b + k * B_DEPTH;
#pragma unroll
      for (int v = 0; v < 2; v++, from += 16) {
        panel[k / 4][v] = (bytes_of(from) | bytes_of(from + B_DEPTH) << 8 | bytes_of(from + 2 * B_DEPTH) << 16 |
                           bytes_of(from + 3 * B_DEPTH) << 24) ^ SIGNS;
      }
    }
  }
  if (count == PANEL && B_DEPTH == 1) {
    for (; k + 64 <= depth; k += 64) {
      for (int v = 0; v < 2; v++) {
        VT square[VEC]; /* a column each, then a quad each */
#pragma unroll
        for (int i = 0; i < VEC; i++) {
          __global const char *from = b + (v * 16 + i) * B_COLUMN + k;
          square[i] = (int16)(as_int4(vload16(0, from)), as_int4(vload16(1, from)), as_int4(vload16(2, from)),
                              as_int4(vload16(3, from)));
        }
        turn_square(square);
#pragma unroll
        for (int i = 0; i < VEC; i++) panel[k / 4 + i][v] = as_uint16(square[i]) ^ SIGNS;
      }
    }
  }
  for (; k < depth; k += 4) pack_some(panel[k / 4], b, k, depth, count, n);
}

/* Copies a part of a row, with zeros up to a whole quad. Returns the sum of its numbers, of most of which the processor makes
 * four products with 1 at a time. */
static int copy_row(char *to, __global const char *a, long depth, numbers n) {
  typedef int16 loose __attribute__((aligned(1)));
  const uint16 ones = (uint16)(0x01010101u);
  int16 sums = (int16)0;
  int sum = 0;
  long k = 0;
  for (; A_DEPTH == 1 && k + 64 <= depth; k += 64) {
    const int16 quads = *(__global const loose *)(a + k);
    *(loose *)(to + k) = quads;
    sums = dot_bytes(sums, ones, quads);
  }
  for (; k < depth; k++) sum += to[k] = a[k * A_DEPTH];
  for (; k % 4 != 0; k++) to[k] = 0;
  int lanes[16];
  vstore16(sums, 0, lanes);
  for (int i = 0; i < 16; i++) sum += lanes[i];
  return sum;
}

/* Puts 16 sums of a row, or adds them to those of the K before. */
static void put_sums(__global int *to, int16 v, int count, bool adds, numbers n) {
  if (count >= 16 && OUT_COLUMN == 1) {
    vstore16(adds ? vload16(0, to) + v : v, 0, to);
    return;
  }
  int lanes[16];
  vstore16(v, 0, lanes);
  for (int j = 0; j < 16 && j < count; j++) to[j * OUT_COLUMN] = adds ? to[j * OUT_COLUMN] + lanes[j] : lanes[j];
}

KERNEL multiply_bytes(CONST_PLACE(a), CONST_PLACE(b), PLACE(out), numbers n) {
  const long panels = (COLUMNS + PANEL - 1) / PANEL;
  EACH_UNIT(unit) {
    const long column = unit % panels * PANEL, first = unit / panels * CHUNK, last = min(first + CHUNK, ROWS);
    const int count = (int)min((long)PANEL, COLUMNS - column);
    for (long begin = 0; begin < DEPTH; begin += STEP) {
      const long depth = min((long)STEP, DEPTH - begin), quads = (depth + 3) / 4;
      uint16 panel[STEP / 4][2];
      pack_panel(panel, (__global const char *)(b + offset_b) + begin * B_DEPTH + column * B_COLUMN, depth, count, n);
      for (long row = first; row < last; row += TILE) {
        int rows[TILE][STEP / 4], excess[TILE];
        int16 sums[TILE][2];
#pragma unroll
        for (int r = 0; r < TILE; r++) {
          __global const char *from = (__global const char *)(a + offset_a) + min(row + r, last - 1) * A_ROW;
          excess[r] = 128 * copy_row((char *)rows[r], from + begin * A_DEPTH, depth, n);
          sums[r][0] = sums[r][1] = (int16)0;
        }
        for (long q = 0; q < quads; q++) {
          const uint16 left = panel[q][0], right = panel[q][1];
#pragma unroll
          for (int r = 0; r < TILE; r++) {
            const int16 quad = (int16)rows[r][q];
            sums[r][0] = dot_bytes(sums[r][0], left, quad);
            sums[r][1] = dot_bytes(sums[r][1], right, quad);
          }
        }
#pragma unroll
        for (int r = 0; r < TILE; r++) {
          if (row + r >= last) continue;
          __global int *to = (__global int *)(out + offset_out) + (row + r) * OUT_ROW + column * OUT_COLUMN;
          put_sums(to, sums[r][0] - excess[r], count, begin > 0, n);
          put_sums(to + 16 * OUT_COLUMN, sums[r][1] - excess[r], count - 16, begin > 0, n);
        }
      }
    }
  }
}
