/* Least squares, after orthogonal.cl, with its numbers and one behind them and those of singular.cl: singular values up
 * to this part of the largest one are none. */
#define RCOND CAT(BITS_AS_, RT)(n.of[16])

enum { ADDED_AT_ONCE = 64 };

/* What is left of column j: the squares of the rows behind the first ones, in blocks. */
static RT squares_left(const_matrix reflected, long j, long first, long rows, long rights) {
  RT sum = 0;
  for (long begin = first; begin < rows; begin += ADDED_AT_ONCE) {
    RT part = 0;
    for (long i = begin; i < min(begin + ADDED_AT_ONCE, rows); i++) part = ADD_SQUARE(reflected[i * rights + j], part);
    sum += part;
  }
  return sum;
}

/* ---- By reflectors: full rank ---- */

/* From the reflectors of A, above them R, and the right sides that they were applied to: R x is their first rows, and
 * what the others have is what no x explains. A work-group has a part of a system's right sides. */
KERNEL solve_reflected(PLACE(x), CONST_PLACE(a), CONST_PLACE(reflected), PLACE(residuals), CONST_PLACE(none),
                       numbers n) {
  const long rows = ROWS, size = COLUMNS, rights = RIGHTS, part = (rights + PARTS - 1) / PARTS;
  EACH_MATRIX(piece) {
    const long b = piece / PARTS, first = piece % PARTS * part, last = min(first + part, rights);
    const factor_matrix upper = {CONST_MATRIX(a) + b * rows * size, size, 1, false};
    const_matrix from = CONST_MATRIX(reflected) + b * rows * rights;
    EACH_STRIP(j, first, last) {
      const strip some = strip_of(MATRIX(x) + b * size * rights, rights, 1, j, last);
      begin_with(some, from + j, size, false, j);
      for (long end = size; end > 0; end -= BLOCK) {
        const long begin = max(end - BLOCK, 0L);
        eliminate(upper, true, false, some, begin, (int)(end - begin), 0, begin);
      }
    }
    if (rows == size) continue; /* all is explained */
    EACH_LANE(j, first, last) REALS(residuals)[b * rights + j] = squares_left(from, j, size, rows, rights);
  }
}

/* ---- By singular values ---- */

/* What a call works in: U, Vh, and U^H B. */
typedef struct {
  matrix u, vh, parts;
} factors;

static factors factors_of(matrix work, long b, long matrices, long rows, long columns, long rights) {
  const long count = min(rows, columns);
  matrix vh = work + matrices * rows * count, parts = vh + matrices * count * columns;
  return (factors){work + b * rows * count, vh + b * count * columns, parts + b * count * rights};
}

/* Of a work-group's matrix. Where a value is NaN, so is every x. */
KERNEL solve_by_values(PLACE(x), PLACE(rank), PLACE(work), CONST_PLACE(values), CONST_PLACE(right), numbers n) {
  const long rows = ROWS, columns = COLUMNS, count = min(rows, columns), rights = RIGHTS;
  EACH_MATRIX(b) {
    const factors f = factors_of(MATRIX(work), b, n.units / LOCAL, rows, columns, rights);
    const_matrix given = CONST_MATRIX(right) + b * rows * rights;
    __global const RT *s = (__global const RT *)(values + offset_values) + b * count;
    const RT least = RCOND * s[0];
    EACH_LANE(at, 0, count * rights) {
      const long i = at / rights, j = at % rights;
      CT sum = FROM_REAL(0);
      for (long k = 0; k < rows; k++) sum = MULTIPLY_ADD(CONJ(f.u[k * count + i]), given[k * rights + j], sum);
      f.parts[at] = sum;
    }
    SYNC;
    EACH_LANE(at, 0, columns * rights) {
      const long i = at / rights, j = at % rights;
      CT sum = FROM_REAL(0);
      for (long k = 0; k < count; k++) {
        const CT part = f.parts[k * rights + j] * (s[k] > least ? 1 / s[k] : (RT)0);
        sum = MULTIPLY_ADD(CONJ(f.vh[k * columns + i]), part, sum);
      }
      (MATRIX(x) + b * columns * rights)[at] = sum;
    }
    if (LANE == 0) {
      long found = 0;
      for (long k = 0; k < count; k++) found += s[k] > least;
      ((__global long *)(rank + offset_rank))[b] = found;
    }
    SYNC;
  }
}

/* What U leaves of the right sides, and its squares. */
KERNEL square_what_is_left(PLACE(squares), PLACE(left), PLACE(work), CONST_PLACE(right), CONST_PLACE(none), numbers n) {
  const long rows = ROWS, columns = COLUMNS, count = min(rows, columns), rights = RIGHTS;
  EACH_MATRIX(b) {
    const factors f = factors_of(MATRIX(work), b, n.units / LOCAL, rows, columns, rights);
    const_matrix given = CONST_MATRIX(right) + b * rows * rights;
    matrix to = MATRIX(left) + b * rows * rights;
    EACH_LANE(at, 0, rows * rights) {
      CT explained = FROM_REAL(0);
      for (long k = 0; k < count; k++) {
        explained = MULTIPLY_ADD(f.u[at / rights * count + k], f.parts[k * rights + at % rights], explained);
      }
      to[at] = given[at] - explained;
    }
    SYNC;
    EACH_LANE(j, 0, rights) REALS(squares)[b * rights + j] = squares_left(to, j, 0, rows, rights);
    SYNC;
  }
}

/* How many matrices have full rank. */
KERNEL count_full(PLACE(full), PLACE(rank), CONST_PLACE(none), CONST_PLACE(neither), CONST_PLACE(nor), numbers n) {
  long found = 0;
  if (LANE != 0) return;
  for (long b = 0; b < HEIGHT; b++) found += ((__global const long *)(rank + offset_rank))[b] == COLUMNS;
  *(__global long *)(full + offset_full) = found;
}
