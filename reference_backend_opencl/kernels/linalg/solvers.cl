/* Cholesky's and the LU factorization, determinants, and systems of their factors; after stacks.cl. Of the numbers
 * (solvers.c has them, too): */
#define ROWS n.of[0]
#define COLUMNS n.of[1]
#define FLAG n.of[2] /* cholesky: the upper factor; lu: rows are exchanged; ldl: the matrix is Hermitian */
#define SIZE n.of[3] /* of a system; RIGHTS so many right sides */
#define RIGHTS n.of[4]
#define X_STEP n.of[5] /* from row to row of a system's unknowns, and from one right side to the next */
#define X_NEXT n.of[6]
#define IDENTITY n.of[7] /* the right sides are */
#define EXCHANGE n.of[8] /* rows: 1 before, 2 behind the solving, 0 not; 3 with each step of an LDL factor's */
#define STEPS n.of[9]
#define STEP_OF(s) ((int)n.of[10 + (s)]) /* bits: 1 the transposed factor, 2 from the last row on, 4 unit diagonal, 8 conjugated */
#define BATCH n.of[12]                   /* dims, of these sizes, and what each operand steps in them */
#define BATCH_SIZE(d) n.of[13 + (d)]
#define BATCH_STEP(operand, d) n.of[21 + 8 * (operand) + (d)]

/* Lower, in place; a factor's row is a column of the upper one. */
KERNEL cholesky(PLACE(l), PLACE(info), CONST_PLACE(a), CONST_PLACE(none), numbers n) {
  const long size = ROWS, down = FLAG ? 1 : size, right = FLAG ? size : 1;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(a) + b * size * size;
    matrix to = MATRIX(l) + b * size * size;
    int bad = 0;
    EACH_LANE(i, 0, size)
    for (long j = 0; j < size; j++) {
      const CT given = from[i * down + j * right];
      to[i * down + j * right] = j < i ? given : j == i ? FROM_REAL(REAL(given)) : (CT)0;
    }
    SYNC;
    for (long k = 0; k < size && !bad; k++) {
      const RT pivot = REAL(to[k * down + k * right]);
      if (!(pivot > 0)) bad = (int)k + 1;
      const RT root = sqrt(pivot);
      SYNC;
      if (bad) continue;
      if (LANE == 0) to[k * down + k * right] = FROM_REAL(root);
      EACH_LANE(i, k + 1, size) to[i * down + k * right] /= root;
      SYNC;
      EACH_LANE(i, k + 1, size) {
        const CT factor = -to[i * down + k * right];
        for (long j = k + 1; j <= i; j++) {
          to[i * down + j * right] = MULTIPLY_ADD(factor, CONJ(to[j * down + k * right]), to[i * down + j * right]);
        }
      }
      SYNC;
    }
    if (LANE == 0) WHOLE(info)[b] = bad;
  }
}

/* The row of the largest part of column k at and below row k; the first of equals. */
static long pivot_row(const_matrix a, long k, long rows, long columns) {
  long best = k;
  for (long i = k + 1; i < rows; i++) {
    if (PIVOT_SIZE(a[i * columns + k]) > PIVOT_SIZE(a[best * columns + k])) best = i;
  }
  return best;
}

KERNEL lu(PLACE(lu), PLACE(pivots), PLACE(info), CONST_PLACE(a), numbers n) {
  const long rows = ROWS, columns = COLUMNS, steps = min(rows, columns);
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(a) + b * rows * columns;
    matrix to = MATRIX(lu) + b * rows * columns;
    int bad = 0;
    EACH_LANE(i, 0, rows)
    for (long j = 0; j < columns; j++) to[i * columns + j] = from[i * columns + j];
    SYNC;
    for (long k = 0; k < steps; k++) {
      const long row = FLAG ? pivot_row(to, k, rows, columns) : k;
      SYNC;
      if (LANE == 0) WHOLE(pivots)[b * steps + k] = (int)row + 1;
      if (row != k) {
        EACH_LANE(j, 0, columns) {
          const CT kept = to[k * columns + j];
          to[k * columns + j] = to[row * columns + j];
          to[row * columns + j] = kept;
        }
      }
      SYNC;
      const CT head = to[k * columns + k];
      if (!NONZERO(head)) {
        bad = bad ? bad : (int)k + 1;
        continue;
      }
      EACH_LANE(i, k + 1, rows) {
        const CT factor = to[i * columns + k] = DIVIDE(to[i * columns + k], head);
        for (long j = k + 1; j < columns; j++) {
          to[i * columns + j] = MULTIPLY_ADD(-factor, to[k * columns + j], to[i * columns + j]);
        }
      }
      SYNC;
    }
    if (LANE == 0) WHOLE(info)[b] = bad;
  }
}

/* The sign that a factor's exchanges leave. */
static RT parity(__global const int *pivots, long size) {
  bool odd = false;
  for (long i = 0; i < size; i++) odd ^= pivots[i] != i + 1;
  return odd ? -1 : 1;
}

/* A matrix is a lane's. */
KERNEL determinant(PLACE(result), PLACE(none), CONST_PLACE(lu), PLACE(pivots), numbers n) {
  const long size = ROWS;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(lu) + b * size * size;
    if (LANE) continue;
    CT product = FROM_REAL(parity(WHOLE(pivots) + b * size, size));
    for (long i = 0; i < size; i++) product = MUL(product, from[i * size + i]);
    MATRIX(result)[b] = product;
  }
}

KERNEL sign_and_logarithm(PLACE(sign), PLACE(logarithm), CONST_PLACE(lu), PLACE(pivots), numbers n) {
  const long size = ROWS;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(lu) + b * size * size;
    if (LANE) continue;
    CT turned = FROM_REAL(parity(WHOLE(pivots) + b * size, size));
    RT sum = 0;
    for (long i = 0; i < size; i++) {
      const CT pivot = from[i * size + i];
      turned = MUL(turned, DIRECTION(pivot));
      sum += log(MODULUS(pivot));
    }
    MATRIX(sign)[b] = turned;
    REALS(logarithm)[b] = sum;
  }
}

static void swap(matrix a, long x, long y) {
  const CT kept = a[x];
  a[x] = a[y];
  a[y] = kept;
}

static void exchange_row(matrix x, long step, __global const int *pivots, long size, long k) {
  const long row = (long)abs(pivots[k]) - 1;
  if (row >= 0 && row < size) swap(x, k * step, row * step);
}

static void exchange(matrix x, long step, __global const int *pivots, long size, bool back) {
  for (long i = 0; i < size; i++) exchange_row(x, step, pivots, size, back ? size - 1 - i : i);
}

static void solve_one(const_matrix t, long size, int how, matrix x, long step) {
  const long down = how & 1 ? 1 : size, right = how & 1 ? size : 1;
  const bool back = how & 2, unit = how & 4, conjugated = how & 8;
  for (long done = 0; done < size; done++) {
    const long i = back ? size - 1 - done : done;
    CT sum = x[i * step];
    for (long k = back ? i + 1 : 0; k < (back ? size : i); k++) {
      sum = MULTIPLY_ADD(-CONJ_IF(conjugated, t[i * down + k * right]), x[k * step], sum);
    }
    x[i * step] = unit ? sum : DIVIDE(sum, CONJ_IF(conjugated, t[i * down + i * right]));
  }
}

/* Rows k and k + 1 by the inverse of their part of D, scaled by what is beside its diagonal, the largest there is. */
static void divide_by_two(const_matrix ld, long size, long k, bool hermitian, matrix x, long step) {
  const CT beside = ld[(k + 1) * size + k], across = CONJ_IF(hermitian, beside);
  const CT p = DIVIDE(ld[k * size + k], across), q = DIVIDE(ld[(k + 1) * size + k + 1], beside);
  const CT above = DIVIDE(x[k * step], across), below = DIVIDE(x[(k + 1) * step], beside);
  const CT denominator = MULTIPLY_ADD(p, q, FROM_REAL(-1));
  x[k * step] = DIVIDE(MUL(q, above) - below, denominator);
  x[(k + 1) * step] = DIVIDE(MUL(p, below) - above, denominator);
}

/* P L D first, step by step, then what is left of P L D L^T P^T, or of P L D L^H P^T, from the last step on; a negative
 * pivot has two rows. */
static void solve_ldl(const_matrix ld, long size, __global const int *pivots, bool hermitian, matrix x, long step) {
  for (long k = 0, last; k < size; k = last + 1) {
    last = k + (pivots[k] < 0 && k + 1 < size);
    exchange_row(x, step, pivots, size, last);
    for (long i = last + 1; i < size; i++) {
      for (long c = k; c <= last; c++) x[i * step] = MULTIPLY_ADD(-ld[i * size + c], x[c * step], x[i * step]);
    }
    const CT d = ld[k * size + k];
    if (last > k)
      divide_by_two(ld, size, k, hermitian, x, step);
    else
      x[k * step] = DIVIDE(x[k * step], hermitian ? FROM_REAL(REAL(d)) : d);
  }
  for (long k = size - 1, first; k >= 0; k = first - 1) {
    first = k - (pivots[k] < 0 && k > 0);
    for (long c = first; c <= k; c++) {
      for (long i = k + 1; i < size; i++) {
        x[c * step] = MULTIPLY_ADD(-CONJ_IF(hermitian, ld[i * size + c]), x[i * step], x[c * step]);
      }
    }
    exchange_row(x, step, pivots, size, k);
  }
}

/* Each lane solves for some of the right sides. */
KERNEL solve(PLACE(x), CONST_PLACE(factor), CONST_PLACE(pivots), CONST_PLACE(right), numbers n) {
  const long size = SIZE, rights = RIGHTS;
  EACH_MATRIX(b) {
    long at[3] = {0, 0, 0}, rest = b;
    for (int d = (int)BATCH - 1; d >= 0; d--) {
      const long i = rest % BATCH_SIZE(d);
      rest /= BATCH_SIZE(d);
      for (int k = 0; k < 3; k++) at[k] += i * BATCH_STEP(k, d);
    }
    const_matrix t = CONST_MATRIX(factor) + at[0] * size * size;
    __global const int *rows = (__global const int *)(pivots + offset_pivots) + at[1] * size;
    EACH_LANE(c, 0, rights) {
      matrix to = MATRIX(x) + b * size * rights + c * X_NEXT;
      const_matrix from = CONST_MATRIX(right) + at[2] * size * rights + c * X_NEXT;
      for (long i = 0; i < size; i++) to[i * X_STEP] = IDENTITY ? FROM_REAL(i == c) : from[i * X_STEP];
      if (EXCHANGE == 1) exchange(to, X_STEP, rows, size, false);
      for (int s = 0; s < (int)STEPS; s++) solve_one(t, size, STEP_OF(s), to, X_STEP);
      if (EXCHANGE == 2) exchange(to, X_STEP, rows, size, true);
      if (EXCHANGE == 3) solve_ldl(t, size, rows, FLAG, to, X_STEP);
    }
  }
}

/* Bunch and Kaufman's pivot of column k, as LAPACK's sytf2 picks it: its row, and 1 or 2 columns; 0: the column is 0. */
static long pivot_of(const_matrix a, long k, long size, int *steps) {
  const RT alpha = (1 + sqrt((RT)17)) / 8;
  long row = k + 1;
  for (long i = k + 2; i < size; i++) {
    if (PIVOT_SIZE(a[i * size + k]) > PIVOT_SIZE(a[row * size + k])) row = i;
  }
  const RT own = PIVOT_SIZE(a[k * size + k]), column = k + 1 < size ? PIVOT_SIZE(a[row * size + k]) : (RT)0;
  *steps = own == 0 && column == 0 ? 0 : 1;
  if (own >= alpha * column) return k;
  RT beside = 0;
  for (long j = k; j < row; j++) beside = fmax(beside, PIVOT_SIZE(a[row * size + j]));
  for (long i = row + 1; i < size; i++) beside = fmax(beside, PIVOT_SIZE(a[i * size + row]));
  if (own >= alpha * column * (column / beside)) return k;
  if (PIVOT_SIZE(a[row * size + row]) < alpha * beside) *steps = 2;
  return row;
}

/* Rows and columns p < q of the lower triangle that is left from column k on; what changes triangles is conjugated where
 * the matrix is Hermitian. */
static void exchange_both(matrix a, long size, long k, long p, long q, bool hermitian) {
  for (long i = q + 1; i < size; i++) swap(a, i * size + p, i * size + q);
  for (long i = p + 1; i < q; i++) {
    const CT kept = CONJ_IF(hermitian, a[i * size + p]);
    a[i * size + p] = CONJ_IF(hermitian, a[q * size + i]);
    a[q * size + i] = kept;
  }
  a[q * size + p] = CONJ_IF(hermitian, a[q * size + p]);
  swap(a, p * size + p, q * size + q);
  if (p > k) swap(a, p * size + k, q * size + k);
}

KERNEL ldl(PLACE(ld), PLACE(pivots), PLACE(info), CONST_PLACE(in), numbers n) {
  const long size = ROWS;
  const bool hermitian = FLAG;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(in) + b * size * size;
    matrix a = MATRIX(ld) + b * size * size;
    __global int *rows = WHOLE(pivots) + b * size;
    int bad = 0, steps = 1;
    EACH_LANE(i, 0, size)
    for (long j = 0; j < size; j++) {
      const CT given = from[i * size + j];
      a[i * size + j] = j < i || (j == i && !hermitian) ? given : j == i ? FROM_REAL(REAL(given)) : (CT)0;
    }
    SYNC;
    for (long k = 0; k < size; k += max(steps, 1)) {
      const long row = pivot_of(a, k, size, &steps), last = steps == 2 ? k + 1 : k, first = last + 1;
      SYNC;
      if (LANE == 0) {
        if (row != last) exchange_both(a, size, k, last, row, hermitian);
        for (long i = k; i <= last; i++) rows[i] = steps == 2 ? -(int)row - 1 : (int)row + 1;
      }
      SYNC;
      if (steps == 0) {
        bad = bad ? bad : (int)k + 1;
        continue;
      }
      /* A column's factors are those of the inverse of D = [[x, across], [y, z]]. */
      const CT x = a[k * size + k], y = steps == 2 ? a[last * size + k] : (CT)0, across = CONJ_IF(hermitian, y);
      const CT z = steps == 2 ? a[last * size + last] : FROM_REAL(1), determinant = MUL(x, z) - MUL(y, across);
      EACH_LANE(i, first, size) {
        const CT left = a[i * size + k], right = steps == 2 ? a[i * size + last] : (CT)0;
        for (long j = first; j <= i; j++) {
          const CT up = a[j * size + k], down = steps == 2 ? a[j * size + last] : (CT)0;
          const CT f = steps == 2 ? DIVIDE(MUL(up, z) - MUL(down, y), determinant) : DIVIDE(up, x);
          const CT s = steps == 2 ? DIVIDE(MUL(down, x) - MUL(up, across), determinant) : (CT)0;
          a[i * size + j] -= MUL(left, CONJ_IF(hermitian, f)) + MUL(right, CONJ_IF(hermitian, s));
        }
        if (hermitian) a[i * size + i] = FROM_REAL(REAL(a[i * size + i]));
      }
      SYNC;
      EACH_LANE(i, first, size) {
        const CT up = a[i * size + k], down = steps == 2 ? a[i * size + last] : (CT)0;
        a[i * size + k] = steps == 2 ? DIVIDE(MUL(up, z) - MUL(down, y), determinant) : DIVIDE(up, x);
        if (steps == 2) a[i * size + last] = DIVIDE(MUL(down, x) - MUL(up, across), determinant);
      }
      SYNC;
    }
    if (LANE == 0) WHOLE(info)[b] = bad;
  }
}
