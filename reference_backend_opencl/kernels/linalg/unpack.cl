/* The parts of an LU factorization, each in a matrix of its own, after direct.cl: a piece is an element, of P a column. */
#define ROWS n.of[0]
#define COLUMNS n.of[1]
#define OP n.of[2] /* that is told where a pivot names no row */
#define STEPS min(ROWS, COLUMNS)

/* Where the exchanges, undone from the last on, leave the one of the column. */
KERNEL exchanges(PLACE(p), CONST_PLACE(pivots), __global long *faults, numbers n) {
  EACH_UNIT(at) {
    const long b = at / ROWS, column = at % ROWS;
    __global const int *pivot = (__global const int *)(pivots + offset_pivots) + b * STEPS;
    long place = column;
    for (long k = STEPS - 1; k >= 0; k--) {
      const long row = (long)pivot[k] - 1;
      if (row < 0 || row >= ROWS) {
        REPORT(faults, (int)OP, row + 1, FAULT_PIVOT);
        continue;
      }
      place = place == k ? row : place == row ? k : place;
    }
    for (long i = 0; i < ROWS; i++) PUT(ELEMENTS(p) + (b * ROWS + i) * ROWS + column, i == place ? (CT)(ONE) : (CT)0);
  }
}

KERNEL lower(PLACE(l), CONST_PLACE(lu), __global long *faults, numbers n) {
  EACH_UNIT(at) {
    const long j = at % STEPS, row = at / STEPS, i = row % ROWS;
    if (j < i)
      ELEMENTS(l)[at] = CONST_POINTER(D, lu)[row * COLUMNS + j];
    else
      PUT(ELEMENTS(l) + at, j == i ? (CT)(ONE) : (CT)0);
  }
}

KERNEL upper(PLACE(u), CONST_PLACE(lu), __global long *faults, numbers n) {
  EACH_UNIT(at) {
    const long j = at % COLUMNS, row = at / COLUMNS, i = row % STEPS, b = row / STEPS;
    if (j >= i)
      ELEMENTS(u)[at] = CONST_POINTER(D, lu)[(b * ROWS + i) * COLUMNS + j];
    else
      PUT(ELEMENTS(u) + at, (CT)0);
  }
}
