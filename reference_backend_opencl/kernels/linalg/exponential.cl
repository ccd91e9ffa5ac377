/* exp(A): Taylor's polynomial of A / 2^s, squared s times; after stacks.cl. Each squaring doubles what rounding took, so
 * that the norm of A / 2^s is as large as the polynomial allows. n.of[0] is the size of a matrix. */
#define SIZE n.of[0]
#define DEGREE 18
#define NORM   (sizeof(RT) == sizeof(float) ? 2 : 1) /* 2^19 / 19! is 4e-12, 1 / 19! is 8e-18 */

#ifdef CLASS_COMPLEX
#define BY_POWER_OF_2(z, power) (CT)(ldexp((z).x, power), ldexp((z).y, power))
#else
#define BY_POWER_OF_2(z, power) ldexp(z, power)
#endif

/* TILE columns of row i of to = a b / divisor + diagonal, from column j on; past the last one it is made again. */
#define TILE 4
static INLINED void multiply_tile(matrix to, const_matrix a, const_matrix b, long size, long i, long j, RT divisor,
                                  RT diagonal) {
  const long columns[TILE] = {j, min(j + 1, size - 1), min(j + 2, size - 1), min(j + 3, size - 1)};
  /* By name: Mesa 22.3 did not unroll loops over an array of them. */
  CT sum_0 = 0, sum_1 = 0, sum_2 = 0, sum_3 = 0;
  for (long k = 0; k < size; k++) {
    const CT factor = a[i * size + k];
    const_matrix row = b + k * size;
    sum_0 = MULTIPLY_ADD(factor, row[columns[0]], sum_0);
    sum_1 = MULTIPLY_ADD(factor, row[columns[1]], sum_1);
    sum_2 = MULTIPLY_ADD(factor, row[columns[2]], sum_2);
    sum_3 = MULTIPLY_ADD(factor, row[columns[3]], sum_3);
  }
  const CT sums[TILE] = {sum_0, sum_1, sum_2, sum_3};
#pragma unroll
  for (int c = 0; c < TILE; c++) {
    if (j + c < size) to[i * size + j + c] = sums[c] / divisor + FROM_REAL(i == j + c ? diagonal : 0);
  }
}

/* The whole product, each tile a lane's. */
static void multiply(matrix to, const_matrix a, const_matrix b, long size, RT divisor, RT diagonal) {
  const long tiles = (size + TILE - 1) / TILE;
  EACH_LANE(p, 0, size * tiles) multiply_tile(to, a, b, size, p / tiles, p % tiles * TILE, divisor, diagonal);
}

/* The largest sum of sizes in a column. */
static RT norm_of(const_matrix a, long size) {
  RT most = 0;
  for (long j = 0; j < size; j++) {
    RT sum = 0;
    for (long i = 0; i < size; i++) sum += MODULUS(a[i * size + j]);
    most = sum > most || sum != sum ? sum : most;
  }
  return most;
}

KERNEL exponential(PLACE(out), PLACE(work), CONST_PLACE(in), numbers n) {
  const long size = SIZE, each = size * size;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(in) + b * each;
    matrix to = MATRIX(out) + b * each, a = MATRIX(work) + 2 * b * each, now = to, next = a + each;
    const RT norm = norm_of(from, size);
    const int squarings = isfinite(norm) && norm > NORM ? ilogb(norm / NORM) + 1 : 0;
    EACH_LANE(i, 0, size)
    for (long j = 0; j < size; j++) {
      a[i * size + j] = BY_POWER_OF_2(from[i * size + j], -squarings);
      now[i * size + j] = FROM_REAL(i == j);
    }
    SYNC;
    for (int step = 0; step < DEGREE + squarings; step++) {
      if (step < DEGREE)
        multiply(next, a, now, size, DEGREE - step, 1);
      else
        multiply(next, now, now, size, 1, 0);
      SYNC;
      matrix kept = now;
      now = next;
      next = kept;
    }
    if (now != to) {
      EACH_LANE(i, 0, size)
      for (long j = 0; j < size; j++) to[i * size + j] = now[i * size + j];
    }
    SYNC;
  }
}
