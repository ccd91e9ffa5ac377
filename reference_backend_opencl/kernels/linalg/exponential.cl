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

/* to = a b / divisor + diagonal, each row a lane's. */
static void multiply(matrix to, const_matrix a, const_matrix b, long size, RT divisor, RT diagonal) {
  EACH_LANE(i, 0, size)
  for (long j = 0; j < size; j++) {
    CT sum = 0;
    for (long k = 0; k < size; k++) sum = MULTIPLY_ADD(a[i * size + k], b[k * size + j], sum);
    to[i * size + j] = sum / divisor + FROM_REAL(i == j ? diagonal : 0);
  }
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
