/* Products of matrices in few bits, after direct.cl. A piece is TILE rows of the result: weights are unpacked once for
 * these. Rows beyond the last are the last again, and are not written. Sums are of BLOCK terms, and of such sums.
 *
 * Integers of 8 bits are multiplied as f32, which processors do several times as fast as i32: their products have no more
 * than 15 bits, so BLOCK of them make a sum that f32 has exactly. */
#define BLOCK 64

#ifdef D_WEIGHT
DEFINE_ACCESS(self, D)

/* Numbers k, k + 1 and so on of a column of weights, whose rows lie one behind the other; of 4 bits, see exec.h. Those
 * beyond the last are 0. */
static VT load_weights(__global const RAW(D_WEIGHT) *weights, __global const RAW(D) *scales, long column, long k,
                       int count, numbers n) {
#ifdef FOUR_BITS
  const long pair = 2 * (k / GROUP * COLUMNS + column);
  const CAT(uchar, HALF) bytes = CAT(vload, HALF)(0, weights + (column * DEPTH + k) / 2);
  VEC_OF(uchar) bits;
  bits.even = bytes >> 4;
  bits.odd = bytes & (uchar)15;
  return (CONVERT(CT, bits) - 8) * one_self(scales + pair) + one_self(scales + pair + 1);
#else
  __global const RAW(D_WEIGHT) *from = weights + column * DEPTH + k;
  if (count == VEC) return LOAD(D_WEIGHT, __global, from);
  CT lanes[VEC];
  for (int j = 0; j < VEC; j++) lanes[j] = j < count ? (CT)from[j] : (CT)0;
  return VLOAD(lanes);
#endif
}

static CT sum_of(VT v) {
  CT lanes[VEC];
  VSTORE(v, lanes);
  for (int step = VEC / 2; step > 0; step /= 2)
    for (int j = 0; j < step; j++) lanes[j] += lanes[j + step];
  return lanes[0];
}

/* A piece is of one column. */
KERNEL multiply_weights(PLACE(out), CONST_PLACE(in), CONST_PLACE(weights), CONST_PLACE(scales), numbers n) {
  const long tiles = (ROWS + TILE - 1) / TILE;
  EACH_UNIT(unit) {
    const long column = unit / tiles, first = unit % tiles * TILE;
    __global const RAW(D) *x[TILE];
    VT sums[TILE];
#pragma unroll
    for (int r = 0; r < TILE; r++) {
      x[r] = CONST_POINTER(D, in) + min(first + r, ROWS - 1) * DEPTH;
      sums[r] = (VT)0;
    }
    for (long k = 0; k < DEPTH; k += VEC) {
      const int count = (int)min((long)VEC, DEPTH - k);
      const VT w = load_weights(CONST_POINTER(D_WEIGHT, weights), CONST_POINTER(D, scales), column, k, count, n);
      if (ROWS == 1) {
        sums[0] = fma(get_self(x[0] + k, count), w, sums[0]);
        continue;
      }
#pragma unroll
      for (int r = 0; r < TILE; r++) sums[r] = fma(get_self(x[r] + k, count), w, sums[r]);
    }
#pragma unroll
    for (int r = 0; r < TILE; r++) {
      CT sum = sum_of(sums[r]);
#ifndef FOUR_BITS
      sum *= one_self(CONST_POINTER(D, scales) + column);
#endif
      if (first + r < ROWS) put_self(ELEMENTS(out) + (first + r) * COLUMNS + column, (VT)sum, 1);
    }
  }
}
#else
/* Numbers of a line, `stride` apart; lanes beyond the last are copies of some. */
#define DEFINE_LINE(name, dtype)                                                             \
  DEFINE_ACCESS(name, dtype)                                                                 \
  static VT line_##name(__global const RAW(dtype) * p, long stride, int n) {                 \
    if (stride == 1) return get_##name(p, n);                                                \
    CT lanes[VEC];                                                                           \
    for (int j = 0; j < VEC; j++) lanes[j] = one_##name(p + (j < n ? j * stride : 0));       \
    return VLOAD(lanes);                                                                     \
  }
DEFINE_LINE(a, D_A)
DEFINE_LINE(b, D_B)
DEFINE_ACCESS(out, D_OUT)

#ifdef CLASS_INT
#define FACTOR float
#define PRODUCT_ADD(a, b, c) fma(a, b, c)
#else
#define FACTOR CT
#define PRODUCT_ADD(a, b, c) MULTIPLY_ADD(a, b, c)
#endif
typedef VEC_OF(FACTOR) factors;

static void put_line(__global RAW(D_OUT) * p, long stride, VT v, int n) {
  if (stride == 1) {
    put_out(p, v, n);
    return;
  }
  RAW(D_OUT) lanes[VEC];
  STORE(D_OUT, __private, lanes, v);
  for (int j = 0; j < n; j++) p[j * stride] = lanes[j];
}

/* What sums of a row from `column` on become. */
#ifdef D_SCALE_A
DEFINE_ACCESS(scale_a, D_SCALE_A)
DEFINE_LINE(scale_b, D_SCALE_B)
#ifdef D_BIAS
DEFINE_LINE(bias, D_BIAS)
#define BIAS(column, count) line_bias(CONST_POINTER(D_BIAS, bias) + (column)*STEP_BIAS, STEP_BIAS, count)
#else
#define BIAS(column, count) (VT)0
#endif
#ifdef D_LAST
DEFINE_ACCESS(last, D_LAST)
#define LAST one_last(CONST_POINTER(D_LAST, last))
#else
#define LAST 1
#endif
#define SCALE_B(column, count) line_scale_b(CONST_POINTER(D_SCALE_B, scale_b) + (column)*STEP_B, STEP_B, count)
#define SCALED(sum, row, column, count)                                                                       \
  (((sum)*one_scale_a(CONST_POINTER(D_SCALE_A, scale_a) + (row)*STEP_A) * SCALE_B(column, count) + BIAS(column, count)) * LAST)
#else
#define SCALED(sum, row, column, count) (sum)
#endif

/* A piece is of VEC columns. */
KERNEL multiply_matrices(CONST_PLACE(a), CONST_PLACE(b), PLACE(out), CONST_PLACE(scale_a), CONST_PLACE(scale_b),
                         CONST_PLACE(bias), CONST_PLACE(last), numbers n) {
  const long tiles = (ROWS + TILE - 1) / TILE;
  EACH_UNIT(unit) {
    const long column = unit / tiles * VEC, first = unit % tiles * TILE;
    const int count = (int)min((long)VEC, COLUMNS - column);
    __global const RAW(D_A) *x[TILE];
    VT totals[TILE];
#pragma unroll
    for (int r = 0; r < TILE; r++) {
      x[r] = CONST_POINTER(D_A, a) + min(first + r, ROWS - 1) * A_ROW;
      totals[r] = (VT)0;
    }
    for (long begin = 0; begin < DEPTH; begin += BLOCK) {
      const long end = min(begin + BLOCK, DEPTH);
      FACTOR part[TILE][BLOCK]; /* of the rows, so that a number is converted once */
      factors sums[TILE];
#pragma unroll
      for (int r = 0; r < TILE; r++) {
        sums[r] = (factors)0;
        for (long k = begin; k < end; k += VEC)
          VSTORE(CONVERT(FACTOR, line_a(x[r] + k * A_DEPTH, A_DEPTH, (int)min((long)VEC, end - k))), part[r] + (k - begin));
      }
      for (long k = begin; k < end; k++) {
        const VT w = line_b(CONST_POINTER(D_B, b) + k * B_DEPTH + column * B_COLUMN, B_COLUMN, count);
        const factors by = CONVERT(FACTOR, w);
#pragma unroll
        for (int r = 0; r < TILE; r++) sums[r] = PRODUCT_ADD((factors)part[r][k - begin], by, sums[r]);
      }
#pragma unroll
      for (int r = 0; r < TILE; r++) totals[r] = ADD(totals[r], CONVERT(CT, sums[r]));
    }
#pragma unroll
    for (int r = 0; r < TILE; r++) {
      const long row = first + r;
      if (row < ROWS)
        put_line(POINTER(D_OUT, out) + row * OUT_ROW + column * OUT_COLUMN, OUT_COLUMN,
                 SCALED(totals[r], row, column, count), count);
    }
  }
}
#endif
