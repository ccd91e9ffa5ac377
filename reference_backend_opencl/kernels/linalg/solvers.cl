/* Cholesky's and the LU factorization, determinants, and systems of their factors; after stacks.cl, blocks.cl and
 * systems.cl. Of the numbers (solvers.c has them, too): */
#define ROWS n.of[0]
#define COLUMNS n.of[1]
#define FLAG n.of[2] /* cholesky: the upper factor; lu: rows are exchanged; ldl: the matrix is Hermitian */

/* One triangle becomes the adjoint of the other, square by square, whose lines a cache keeps. */
static void mirror(matrix to, const_matrix from, long size, bool upper) {
  EACH_LANE(square, 0, (size + BLOCK - 1) / BLOCK) {
    const long top = square * BLOCK, bottom = min(top + BLOCK, size);
    for (long left = upper ? top : 0; left < (upper ? size : bottom); left += BLOCK) {
      const long right = min(left + BLOCK, size);
      for (long i = top; i < bottom; i++) {
        for (long j = upper ? max(left, i + 1) : left; j < (upper ? right : min(right, i)); j++) {
          to[i * size + j] = CONJ(from[j * size + i]);
        }
      }
    }
  }
}

/* Rows from row `begin` on of an upper factor, up to row `end`, in place. What row is at fault, from 1 on, or 0. */
static int factor_rows(matrix to, long begin, long end, long size) {
  int bad = 0;
  for (long k = begin; k < end && !bad; k++) {
    const RT pivot = REAL(to[k * size + k]);
    if (!(pivot > 0)) bad = (int)k + 1;
    const RT root = sqrt(pivot);
    SYNC;
    if (bad) continue;
    EACH_LANE(j, k, end) to[k * size + j] = j == k ? FROM_REAL(root) : to[k * size + j] / root;
    SYNC;
    group above[BLOCK / LANES];
    load_row(above, to + k * size + begin, (int)(end - begin));
    EACH_LANE(i, k + 1, end) {
      subtract_row(to + i * size + begin, above, CONJ(to[k * size + i]), (int)(i - begin), (int)(end - begin));
    }
    SYNC;
  }
  return bad;
}

/* The columns from `end` on of rows [begin, end), and what these leave of the rows behind them. */
static void factor_behind(matrix to, long begin, long end, long size) {
  const factor_matrix adjoint = {to, 1, size, true}, block = {to + begin * size, 1, size, true};
  const int count = (int)(end - begin);
  EACH_STRIP(j, end, size) {
    group rows[BLOCK][GROUPS];
    const strip x = strip_of(to, size, 1, j, size);
    load_rows(rows, x, begin, count);
    solve_rows(rows, adjoint, false, false, x, begin, count);
  }
  SYNC;
  EACH_STRIP(j, end, size) {
    group rows[BLOCK][GROUPS];
    const strip x = strip_of(to, size, 1, j, size);
    load_rows(rows, x, begin, count);
    subtract_rows(x, end, min(j + STRIP, size), block, rows, count);
  }
  SYNC;
}

/* An upper factor's blocks of rows; a lower one is its adjoint. */
KERNEL cholesky(PLACE(l), PLACE(info), CONST_PLACE(a), CONST_PLACE(none), __global long *faults, numbers n) {
  const long size = ROWS;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(a) + b * size * size;
    matrix to = MATRIX(l) + b * size * size;
    int bad = 0;
    if (!FLAG) mirror(to, from, size, true);
    EACH_LANE(i, 0, size) {
      /* Beside the diagonal vectors take along what is then thrown away. */
      for (long j = i / BLOCK * BLOCK; j < i; j++) to[i * size + j] = (CT)0;
      to[i * size + i] = FROM_REAL(REAL(from[i * size + i]));
      for (long j = i + 1; FLAG && j < size; j++) to[i * size + j] = from[i * size + j];
    }
    SYNC;
    for (long begin = 0, end; begin < size && !bad; begin = end) {
      end = min(begin + BLOCK, size);
      bad = factor_rows(to, begin, end, size);
      if (!bad) factor_behind(to, begin, end, size);
    }
    if (!FLAG) mirror(to, to, size, false);
    SYNC;
    EACH_LANE(i, 0, size) {
      const long first = FLAG ? 0 : i + 1, last = FLAG ? i : size;
      for (long j = first; j < last; j++) to[i * size + j] = (CT)0;
    }
    if (LANE == 0) WHOLE(info)[b] = bad;
  }
}

/* The row of the largest part of column k at and below row k; the first of equals. */
static long pivot_row(const_matrix a, long k, long rows, long columns) {
  long best = k;
  RT most = PIVOT_SIZE(a[k * columns + k]);
  for (long i = k + 1; i < rows; i++) {
    const RT size = PIVOT_SIZE(a[i * columns + k]);
    if (size > most) best = i, most = size;
  }
  return best;
}

/* Rows are exchanged, all of them, and columns [begin, end) become those of the factors. What pivot is 0, from 1 on. */
static int factor_columns(matrix to, __global int *pivots, bool exchanged, long begin, long end, long rows,
                          long columns) {
  int bad = 0;
  for (long k = begin; k < end; k++) {
    const long row = exchanged ? pivot_row(to, k, rows, columns) : k;
    SYNC;
    if (LANE == 0) pivots[k] = (int)row + 1;
    if (row != k) {
      EACH_LANE(j, 0, columns) {
        const CT kept = to[k * columns + j];
        to[k * columns + j] = to[row * columns + j];
        to[row * columns + j] = kept;
      }
    }
    SYNC;
    const CT head = to[k * columns + k];
    if (!NONZERO(head)) bad = bad ? bad : (int)k + 1;
    group above[BLOCK / LANES];
    load_row(above, to + k * columns + begin, (int)(end - begin));
    EACH_LANE(i, k + 1, rows) {
      if (is_changed(head, to[i * columns + k])) to[i * columns + k] = DIVIDE(to[i * columns + k], head);
    }
    EACH_LANE(i, k + 1, rows) { /* not at once: the vectors would wait for what was stored into them */
      if (!is_changed(head, to[i * columns + k])) continue;
      subtract_row(to + i * columns + begin, above, to[i * columns + k], (int)(k + 1 - begin), (int)(end - begin));
    }
    SYNC;
  }
  return bad;
}

KERNEL lu(PLACE(lu), PLACE(pivots), PLACE(info), CONST_PLACE(a), __global long *faults, numbers n) {
  const long rows = ROWS, columns = COLUMNS, steps = min(rows, columns);
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(a) + b * rows * columns;
    matrix to = MATRIX(lu) + b * rows * columns;
    int bad = 0;
    EACH_LANE(i, 0, rows)
    for (long j = 0; j < columns; j++) to[i * columns + j] = from[i * columns + j];
    SYNC;
    for (long begin = 0, end; begin < steps; begin = end) {
      end = min(begin + BLOCK, steps);
      const int zero = factor_columns(to, WHOLE(pivots) + b * steps, FLAG, begin, end, rows, columns);
      bad = bad ? bad : zero;
      EACH_STRIP(j, end, columns) {
        eliminate((factor_matrix){to, columns, 1, false}, false, true, strip_of(to, columns, 1, j, columns), begin,
                  (int)(end - begin), end, rows);
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
KERNEL determinant(PLACE(result), PLACE(none), CONST_PLACE(lu), PLACE(pivots), __global long *faults, numbers n) {
  const long size = ROWS;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(lu) + b * size * size;
    if (LANE) continue;
    CT product = FROM_REAL(parity(WHOLE(pivots) + b * size, size));
    for (long i = 0; i < size; i++) product = MUL(product, from[i * size + i]);
    MATRIX(result)[b] = product;
  }
}

KERNEL sign_and_logarithm(PLACE(sign), PLACE(logarithm), CONST_PLACE(lu), PLACE(pivots), __global long *faults, numbers n) {
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

/* Pivots are given: those that name no row are passed over, and reported. Of a pair it is the size that counts, by max:
 * rusticl in Mesa 22.3 takes the wrong side of a negation that is asked for. */
typedef struct {
  __global const int *at;
  __global long *faults;
  int op;
} pivot_list;

static long row_of(pivot_list pivots, long k, bool pairs, long size) {
  const long pivot = pivots.at[k], row = (pairs ? max(pivot, -pivot) : pivot) - 1;
  if (row >= 0 && row < size) return row;
  REPORT(pivots.faults, pivots.op, pivot, FAULT_PIVOT);
  return k;
}

static void exchange_row(matrix x, long step, pivot_list pivots, long size, long k) {
  swap(x, k * step, row_of(pivots, k, true, size) * step);
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
static void solve_ldl(const_matrix ld, long size, pivot_list pivots, bool hermitian, matrix x, long step) {
  for (long k = 0, last; k < size; k = last + 1) {
    last = k + (pivots.at[k] < 0 && k + 1 < size);
    if (last > k) row_of(pivots, k, true, size); /* of a pair the last one is read; both name a row */
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
    first = k - (pivots.at[k] < 0 && k > 0);
    for (long c = first; c <= k; c++) {
      for (long i = k + 1; i < size; i++) {
        x[c * step] = MULTIPLY_ADD(-CONJ_IF(hermitian, ld[i * size + c]), x[i * step], x[c * step]);
      }
    }
    exchange_row(x, step, pivots, size, k);
  }
}

/* A factor's exchanges of rows, or the same from the last on. */
static INLINED void exchange(strip x, pivot_list pivots, long size, bool back) {
  for (long done = 0; done < size; done++) {
    const long i = back ? size - 1 - done : done, row = row_of(pivots, i, false, size);
    if (row == i) continue;
    for (int g = 0; g < GROUPS; g++) {
      const group kept = load_group(x, i, g), other = load_group(x, row, g);
      store_group(other, x, i, g);
      store_group(kept, x, row, g);
    }
  }
}

/* A strip of right sides, in place, by a triangular factor, some of whose steps are taken at a time. */
static INLINED void solve_triangular(const_matrix t, long size, int how, strip x) {
  const factor_matrix f = {t, how & 1 ? 1 : size, how & 1 ? size : 1, (how & 8) != 0};
  const bool back = how & 2, unit = how & 4;
  for (long done = 0; done < size; done += BLOCK) {
    const long begin = back ? max(size - done - BLOCK, 0L) : done, end = back ? size - done : min(done + BLOCK, size);
    eliminate(f, back, unit, x, begin, (int)(end - begin), back ? 0 : end, back ? begin : size);
  }
}

/* A work-group has a part of a system's right sides, its lanes strips of them. */
KERNEL solve(PLACE(x), CONST_PLACE(factor), CONST_PLACE(pivots), CONST_PLACE(right), __global long *faults, numbers n) {
  const long size = SIZE, rights = RIGHTS, part = (rights + PARTS - 1) / PARTS;
  EACH_MATRIX(piece) {
    const long b = piece / PARTS, begin = piece % PARTS * part, end = min(begin + part, rights);
    long at[3];
    places_of(b, n, at);
    const_matrix t = CONST_MATRIX(factor) + at[0] * size * size;
    const pivot_list rows = {(__global const int *)(pivots + offset_pivots) + at[1] * size, faults, (int)OP};
    EACH_STRIP(first, begin, end) {
      const strip some = strip_of(MATRIX(x) + b * size * rights, X_STEP, X_NEXT, first, end);
      begin_with(some, CONST_MATRIX(right) + at[2] * size * rights + first * X_NEXT, size, IDENTITY, first);
      if (EXCHANGE == 1) exchange(some, rows, size, false);
      for (int s = 0; s < (int)STEPS; s++) solve_triangular(t, size, s ? SECOND_STEP : FIRST_STEP, some);
      if (EXCHANGE == 2) exchange(some, rows, size, true);
      for (int c = 0; EXCHANGE == 3 && c < some.wide; c++) {
        solve_ldl(t, size, rows, FLAG, some.at + c * X_NEXT, X_STEP);
      }
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
  if (!(own < alpha * column)) return k; /* NaN, too */
  RT beside = 0;
  for (long j = k; j < row; j++) beside = fmax(beside, PIVOT_SIZE(a[row * size + j]));
  for (long i = row + 1; i < size; i++) beside = fmax(beside, PIVOT_SIZE(a[i * size + row]));
  if (!(own < alpha * column * (column / beside))) return k;
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

/* A step's part of D: a number, or [[x, across], [y, z]] with p = x / across, q = z / y, and its determinant divided by
 * y and by across, as LAPACK scales it: products of its numbers overflow before it does. */
typedef struct {
  int steps;
  CT x, p, q, by_across, by_y;
} pivot_block;

static pivot_block pivot_block_of(const_matrix a, long size, long k, int steps, bool hermitian) {
  pivot_block d = {.steps = steps, .x = a[k * size + k]};
  if (steps == 2) {
    const CT y = a[(k + 1) * size + k], across = CONJ_IF(hermitian, y);
    d.p = DIVIDE(d.x, across);
    d.q = DIVIDE(a[(k + 1) * size + k + 1], y);
    const CT determinant = MULTIPLY_ADD(d.p, d.q, FROM_REAL(-1));
    d.by_across = MUL(across, determinant);
    d.by_y = MUL(y, determinant);
  }
  return d;
}

/* What a row of the columns becomes, by the inverse of that part. */
static CT first_factor(pivot_block d, CT left, CT right) {
  return d.steps == 2 ? DIVIDE(MUL(left, d.q) - right, d.by_across) : DIVIDE(left, d.x);
}
static CT second_factor(pivot_block d, CT left, CT right) {
  return d.steps == 2 ? DIVIDE(MUL(right, d.p) - left, d.by_y) : (CT)0;
}

KERNEL ldl(PLACE(ld), PLACE(pivots), PLACE(info), CONST_PLACE(in), __global long *faults, numbers n) {
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
      const pivot_block d = pivot_block_of(a, size, k, steps, hermitian);
      EACH_LANE(i, first, size) {
        const CT left = a[i * size + k], right = steps == 2 ? a[i * size + last] : (CT)0;
        for (long j = first; j <= i; j++) {
          const CT up = a[j * size + k], down = steps == 2 ? a[j * size + last] : (CT)0;
          const CT f = first_factor(d, up, down), s = second_factor(d, up, down);
          a[i * size + j] -= MUL(left, CONJ_IF(hermitian, f)) + MUL(right, CONJ_IF(hermitian, s));
        }
        if (hermitian) a[i * size + i] = FROM_REAL(REAL(a[i * size + i]));
      }
      SYNC;
      EACH_LANE(i, first, size) {
        const CT up = a[i * size + k], down = steps == 2 ? a[i * size + last] : (CT)0;
        a[i * size + k] = first_factor(d, up, down);
        if (steps == 2) a[i * size + last] = second_factor(d, up, down);
      }
      SYNC;
    }
    if (LANE == 0) WHOLE(info)[b] = bad;
  }
}
