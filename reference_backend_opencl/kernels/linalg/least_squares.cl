/* Least squares, after orthogonal.cl, with its numbers and one behind them and those of singular.cl: singular values up
 * to this part of the largest one are none. */
#define RCOND CAT(BITS_AS_, RT)(n.of[16])
#define MATRICES n.of[17] /* systems may share them, as they may share right sides: */
#define STACK_DIMS n.of[18]
#define STACK (n.of + 19) /* of each dim its size, and what a step along it is in the matrices and in the right sides */

enum { ADDED_AT_ONCE = 64, STACK_PARTS = 3 };

/* Which matrix and which right sides a system has, and whether it is the first one that has this matrix. */
typedef struct {
  long matrix_of, sides_of;
  bool first;
} operands;

static operands operands_of(long system, const long *stack, long dims) {
  operands found = {0, 0, true};
  for (long d = dims - 1; d >= 0; d--) {
    const long size = stack[d * STACK_PARTS], before = divided(system, size), at = system - before * size;
    const long step = stack[d * STACK_PARTS + 1];
    found.matrix_of += at * step;
    found.sides_of += at * stack[d * STACK_PARTS + 2];
    found.first &= at == 0 || step != 0;
    system = before;
  }
  return found;
}

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

/* The adjoints of matrices, of which each has as many rows as its reflectors' matrix has columns. */
KERNEL take_adjoint(PLACE(to), CONST_PLACE(from), CONST_PLACE(none), CONST_PLACE(neither), CONST_PLACE(nor),
                    numbers n) {
  const long rows = ROWS, columns = COLUMNS;
  EACH_MATRIX(b) {
    const_matrix given = CONST_MATRIX(from) + b * rows * columns;
    matrix adjoint = MATRIX(to) + b * rows * columns;
    EACH_LANE(i, 0, rows)
    for (long j = 0; j < columns; j++) adjoint[i * columns + j] = CONJ(given[j * rows + i]);
  }
}

/* To each system its reflectors, and behind all of them their factors, and its right sides. */
KERNEL spread(PLACE(to), CONST_PLACE(from), PLACE(sides_to), CONST_PLACE(sides_from), CONST_PLACE(none), numbers n) {
  const long each = ROWS * COLUMNS, count = COUNT, sides = HEIGHT * RIGHTS, systems = n.units / LOCAL;
  EACH_MATRIX(b) {
    const operands of = operands_of(b, STACK, STACK_DIMS);
    matrix to_each = MATRIX(to) + b * each, to_factors = MATRIX(to) + systems * each + b * count;
    const_matrix from_each = CONST_MATRIX(from) + of.matrix_of * each;
    const_matrix from_factors = CONST_MATRIX(from) + MATRICES * each + of.matrix_of * count;
    EACH_LANE(i, 0, each) to_each[i] = from_each[i];
    EACH_LANE(i, 0, count) to_factors[i] = from_factors[i];
    EACH_LANE(i, 0, sides) {
      (MATRIX(sides_to) + b * sides)[i] = (CONST_MATRIX(sides_from) + of.sides_of * sides)[i];
    }
  }
}

/* R^H y = b with R above the reflectors of A^H; behind y come as many zeros as reflecting it makes numbers of. */
KERNEL solve_wide(PLACE(x), CONST_PLACE(a), CONST_PLACE(right), CONST_PLACE(none), CONST_PLACE(neither), numbers n) {
  const long rows = ROWS, size = COLUMNS, rights = RIGHTS, part = (rights + PARTS - 1) / PARTS;
  EACH_MATRIX(piece) {
    const long b = piece / PARTS, first = piece % PARTS * part, last = min(first + part, rights);
    const factor_matrix lower = {CONST_MATRIX(a) + b * rows * size, 1, size, true};
    EACH_STRIP(j, first, last) {
      const strip some = strip_of(MATRIX(x) + b * rows * rights, rights, 1, j, last);
      begin_with(some, CONST_MATRIX(right) + b * size * rights + j, size, false, j);
      for (long i = size; i < rows; i++) {
        for (int g = 0; g < GROUPS; g++) store_group((group)(0), some, i, g);
      }
      for (long begin = 0; begin < size; begin += BLOCK) {
        const long end = min(begin + BLOCK, size);
        eliminate(lower, false, false, some, begin, (int)(end - begin), end, size);
      }
    }
  }
}

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

static factors factors_of(matrix work, long system, long b, long matrices, long rows, long columns, long rights) {
  const long count = min(rows, columns);
  matrix vh = work + matrices * rows * count, parts = vh + matrices * count * columns;
  return (factors){work + b * rows * count, vh + b * count * columns, parts + system * count * rights};
}

/* Of a work-group's system. Where a value is NaN, so is every x. */
KERNEL solve_by_values(PLACE(x), PLACE(rank), PLACE(work), CONST_PLACE(values), CONST_PLACE(right), numbers n) {
  const long rows = ROWS, columns = COLUMNS, count = min(rows, columns), rights = RIGHTS;
  EACH_MATRIX(system) {
    const operands of = operands_of(system, STACK, STACK_DIMS);
    const long b = of.matrix_of;
    const factors f = factors_of(MATRIX(work), system, b, MATRICES, rows, columns, rights);
    const_matrix given = CONST_MATRIX(right) + of.sides_of * rows * rights;
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
      (MATRIX(x) + system * columns * rights)[at] = sum;
    }
    if (LANE == 0 && of.first) {
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
  EACH_MATRIX(system) {
    const operands of = operands_of(system, STACK, STACK_DIMS);
    const factors f = factors_of(MATRIX(work), system, of.matrix_of, MATRICES, rows, columns, rights);
    const_matrix given = CONST_MATRIX(right) + of.sides_of * rows * rights;
    matrix to = MATRIX(left) + system * rows * rights;
    EACH_LANE(at, 0, rows * rights) {
      CT explained = FROM_REAL(0);
      for (long k = 0; k < count; k++) {
        explained = MULTIPLY_ADD(f.u[at / rights * count + k], f.parts[k * rights + at % rights], explained);
      }
      to[at] = given[at] - explained;
    }
    SYNC;
    EACH_LANE(j, 0, rights) REALS(squares)[system * rights + j] = squares_left(to, j, 0, rows, rights);
    SYNC;
  }
}

/* How many matrices have full rank. */
KERNEL count_full(PLACE(full), PLACE(rank), CONST_PLACE(none), CONST_PLACE(neither), CONST_PLACE(nor), numbers n) {
  long found = 0;
  if (LANE != 0) return;
  for (long b = 0; b < MATRICES; b++) found += ((__global const long *)(rank + offset_rank))[b] == COLUMNS;
  *(__global long *)(full + offset_full) = found;
}
