/* Householder's reflectors; after stacks.cl. Of the numbers (orthogonal.c has them, too): */
#define ROWS n.of[0] /* of the reflectors' matrix */
#define COLUMNS n.of[1]
#define COUNT n.of[2] /* reflectors */
#define HEIGHT n.of[3] /* of R, or of the matrix of an exponential */
#define RIGHTS n.of[4] /* vectors that are reflected; each steps C_STEP from row to row, C_NEXT to the next */
#define C_STEP n.of[5]
#define C_NEXT n.of[6]
#define IDENTITY n.of[7] /* the vectors are */
#define FORWARD n.of[8]  /* the first reflector goes first, and its adjoint */
#define TURNED n.of[9]   /* the vectors are conjugated, as rows are those of an adjoint */

/* The length of column k below row k, by its largest number, so that no square overflows. */
static RT length_below(const_matrix a, long k, long rows, long columns) {
  RT most = 0, sum = 0;
  for (long i = k + 1; i < rows; i++) most = fmax(most, MODULUS(a[i * columns + k]));
  if (most == 0) return 0;
  for (long i = k + 1; i < rows; i++) {
    const CT part = a[i * columns + k] / most;
    sum = ADD_SQUARE(part, sum);
  }
  return most * sqrt(sum);
}

KERNEL geqrf(PLACE(a), PLACE(tau), CONST_PLACE(in), CONST_PLACE(none), numbers n) {
  const long rows = ROWS, columns = COLUMNS, count = COUNT;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(in) + b * rows * columns;
    matrix to = MATRIX(a) + b * rows * columns, factors = MATRIX(tau) + b * count;
    EACH_LANE(i, 0, rows)
    for (long j = 0; j < columns; j++) to[i * columns + j] = from[i * columns + j];
    SYNC;
    for (long k = 0; k < count; k++) {
      const CT alpha = to[k * columns + k];
      const RT below = length_below(to, k, rows, columns);
      const bool done = below == 0 && IMAGINARY(alpha) == 0;
      const RT length = hypot(MODULUS(alpha), below), beta = REAL(alpha) >= 0 ? -length : length;
      const CT factor = done ? (CT)0 : (FROM_REAL(beta) - alpha) / beta;
      SYNC;
      if (LANE == 0) to[k * columns + k] = done ? alpha : FROM_REAL(beta), factors[k] = factor;
      if (below != 0) {
        EACH_LANE(i, k + 1, rows) to[i * columns + k] = DIVIDE(to[i * columns + k], alpha - FROM_REAL(beta));
      }
      SYNC;
      EACH_LANE(j, k + 1, columns) {
        CT sum = to[k * columns + j];
        for (long i = k + 1; i < rows; i++) sum = MULTIPLY_ADD(CONJ(to[i * columns + k]), to[i * columns + j], sum);
        sum = MUL(CONJ(factor), sum);
        to[k * columns + j] -= sum;
        for (long i = k + 1; i < rows; i++) {
          to[i * columns + j] = MULTIPLY_ADD(-to[i * columns + k], sum, to[i * columns + j]);
        }
      }
      SYNC;
    }
  }
}

/* Each lane reflects some of the vectors. */
KERNEL reflect(PLACE(c), CONST_PLACE(a), CONST_PLACE(tau), CONST_PLACE(in), numbers n) {
  const long rows = ROWS, columns = COLUMNS, count = COUNT, rights = RIGHTS;
  EACH_MATRIX(b) {
    const_matrix vectors = CONST_MATRIX(a) + b * rows * columns, factors = CONST_MATRIX(tau) + b * count;
    EACH_LANE(j, 0, rights) {
      matrix to = MATRIX(c) + b * rows * rights + j * C_NEXT;
      const_matrix from = CONST_MATRIX(in) + b * rows * rights + j * C_NEXT;
      for (long i = 0; i < rows; i++) to[i * C_STEP] = IDENTITY ? FROM_REAL(i == j) : from[i * C_STEP];
      for (long step = 0; step < count; step++) {
        const long k = FORWARD ? step : count - 1 - step;
        CT sum = to[k * C_STEP];
        for (long i = k + 1; i < rows; i++) {
          sum = MULTIPLY_ADD(CONJ_IF(!TURNED, vectors[i * columns + k]), to[i * C_STEP], sum);
        }
        sum = MUL(CONJ_IF(FORWARD != TURNED, factors[k]), sum);
        to[k * C_STEP] -= sum;
        for (long i = k + 1; i < rows; i++) {
          to[i * C_STEP] = MULTIPLY_ADD(-CONJ_IF(TURNED, vectors[i * columns + k]), sum, to[i * C_STEP]);
        }
      }
    }
  }
}

KERNEL upper_triangle(PLACE(r), CONST_PLACE(a), CONST_PLACE(none), CONST_PLACE(nothing), numbers n) {
  const long rows = ROWS, columns = COLUMNS, height = HEIGHT;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(a) + b * rows * columns;
    matrix to = MATRIX(r) + b * height * columns;
    EACH_LANE(i, 0, height)
    for (long j = 0; j < columns; j++) to[i * columns + j] = j >= i ? from[i * columns + j] : (CT)0;
  }
}
