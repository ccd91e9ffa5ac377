/* Least squares of matrices of full rank, after orthogonal.cl, with its numbers. */

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

/* From the reflectors of A, above them R, and the right sides that they were applied to: R x is their first rows, and what
 * the others have is what no x explains. A work-group has a part of a system's right sides. */
KERNEL solve_reflected(PLACE(x), CONST_PLACE(a), CONST_PLACE(reflected), PLACE(residuals), CONST_PLACE(none), numbers n) {
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
