/* On CPUs, after tridiagonal.cl: a Hermitian matrix becomes tridiagonal by panels of BLOCK columns (Dongarra, Sorensen
 * and Hammarling, J. Comput. Appl. Math. 27, 1989). What a column's reflection takes from the matrix, x y^H + y x^H, is
 * taken when the panel is done: a column reads the matrix once, and only a panel writes it. A row is right from the
 * strip on in which its diagonal lies, and has zeros up to a multiple of BLOCK, so that there are no ends. */
#if LOCAL == 1

/* Rows of the panel, each a column's x or y from the matrix's first row on, and both negated as columns. */
typedef struct {
  matrix a, x, y, columns;
  long size, wide;
} panel;

/* Numbers of work for a matrix of so many rows: tridiagonal.c has that, too. */
#define PANELS_WORK(wide) ((wide) * ((wide) + 4 * BLOCK))

static group whole(const_matrix from) { return load_lanes(from, 1, LANES); }

/* y = a x from row `first` on, before which x is 0. What is right of a strip's rows counts for both halves. */
static void multiply_half(matrix y, const_matrix a, const_matrix x, long first, long wide) {
  const long begin = first / STRIP * STRIP;
  for (long j = begin; j < wide; j++) y[j] = 0;
  for (long i = begin; i < wide; i += TILE) {
    const long right = (i / STRIP + 1) * STRIP;
    group sum[TILE], parts[TILE];
    AT_THE_SAME_TIME for (int r = 0; r < TILE; r++) {
      parts[r] = (group)(x[i + r]);
      sum[r] = (group)(0);
    }
    for (long j = right - STRIP; j < right; j += LANES) {
      const group part = whole(x + j);
      AT_THE_SAME_TIME for (int r = 0; r < TILE; r++)
        sum[r] = MULTIPLY_ADD(part, whole(a + (i + r) * wide + j), sum[r]);
    }
    for (long j = right; j < wide; j += LANES) {
      const group part = whole(x + j);
      group below = whole(y + j);
      AT_THE_SAME_TIME for (int r = 0; r < TILE; r++) {
        const group given = whole(a + (i + r) * wide + j);
        sum[r] = MULTIPLY_ADD(part, given, sum[r]);
        below = MULTIPLY_ADD(parts[r], CONJ(given), below);
      }
      store_lanes(below, y + j, 1, LANES);
    }
    for (int r = 0; r < TILE; r++) y[i + r] += sum_of_lanes(sum[r]);
  }
}

/* From place `begin` on a row loses the first `count` of x and of y, each times its factor. */
static void subtract_rows_of(panel of, matrix row, const CT *of_x, const CT *of_y, int count, long begin) {
  for (long j = begin; j < of.wide; j += LANES) {
    group sum = whole(row + j);
    for (int p = 0; p < count; p++) {
      sum = MULTIPLY_ADD((group)(-of_x[p]), whole(of.x + p * of.wide + j), sum);
      sum = MULTIPLY_ADD((group)(-of_y[p]), whole(of.y + p * of.wide + j), sum);
    }
    store_lanes(sum, row + j, 1, LANES);
  }
}

/* x^H y. */
static CT product_of(const_matrix x, const_matrix y, long begin, long wide) {
  group sum = (group)(0);
  for (long j = begin; j < wide; j += LANES) sum = MULTIPLY_ADD(CONJ(whole(x + j)), whole(y + j), sum);
  return sum_of_lanes(sum);
}

/* Column k, of which c are before it in the panel: x is its reflector, y what it adds beside it. */
static void reduce_in_panel(panel of, matrix factors, __global RT *d, long k, int c) {
  const long wide = of.wide, here = k / LANES * LANES, below = (k + 1) / LANES * LANES;
  matrix x = of.x + c * wide, y = of.y + c * wide;
  CT of_x[BLOCK], of_y[BLOCK];
  for (long j = here; j < wide; j += LANES) store_lanes(CONJ(whole(of.a + k * wide + j)), x + j, 1, LANES);
  for (int p = 0; p < c; p++) {
    of_x[p] = CONJ(of.y[p * wide + k]);
    of_y[p] = CONJ(of.x[p * wide + k]);
  }
  subtract_rows_of(of, x, of_x, of_y, c, here);
  d[k] = REAL(x[k]);
  const reflector by = reflector_of(x + k + 1, 0, of.size - k - 1, 1);
  d[of.size + k] = by.beta;
  factors[k] = by.factor;
  for (long j = 0; j <= k; j++) x[j] = 0;
  for (long j = k + 2; j < of.size; j++) x[j] = by.below != 0 ? reflected_part(by, x[j]) : (CT)0;
  x[k + 1] = FROM_REAL(1);
  multiply_half(y, of.a, x, k + 1, wide);
  for (int p = 0; p < c; p++) {
    of_x[p] = product_of(of.y + p * wide, x, below, wide);
    of_y[p] = product_of(of.x + p * wide, x, below, wide);
  }
  subtract_rows_of(of, y, of_x, of_y, c, below);
  for (long j = 0; j <= k; j++) y[j] = 0;
  for (long j = k + 1; j < of.size; j++) y[j] = MUL(by.factor, y[j]);
  const CT dot = MUL(by.factor, product_of(y, x, below, wide)) / 2;
  for (long j = k + 1; j < of.size; j++) y[j] = MULTIPLY_ADD(-dot, x[j], y[j]);
}

/* The panel of `count` columns, as columns, from row `begin` on; and its reflectors where those of all columns lie. */
static void turn_panel(panel of, matrix reflectors, long k, int count, long begin) {
  for (long i = begin; i < of.wide; i++) {
    matrix row = of.columns + i * 2 * BLOCK;
    for (int c = 0; c < count; c++) {
      row[c] = -of.x[c * of.wide + i];
      row[BLOCK + c] = -of.y[c * of.wide + i];
    }
  }
  for (long i = k + 2; i < of.size; i++) {
    for (int c = 0; c < min((long)count, i - k - 1); c++) reflectors[(i - 1) * of.size + k + c] = of.x[c * of.wide + i];
  }
}

/* The matrix from row `begin` on, where a strip begins, loses what the panel's columns add to it. */
static void subtract_panel(panel of, int count, long begin) {
  const long wide = of.wide;
  for (long j = begin; j < wide; j += STRIP) {
    for (long i = begin; i < j + STRIP; i += TILE) {
      group sum[TILE][GROUPS];
      AT_THE_SAME_TIME for (int r = 0; r < TILE; r++) {
        AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) sum[r][g] = whole(of.a + (i + r) * wide + j + g * LANES);
      }
      for (int c = 0; c < count; c++) {
        group xs[GROUPS], ys[GROUPS];
        AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) {
          xs[g] = CONJ(whole(of.x + c * wide + j + g * LANES));
          ys[g] = CONJ(whole(of.y + c * wide + j + g * LANES));
        }
        AT_THE_SAME_TIME for (int r = 0; r < TILE; r++) {
          const_matrix row = of.columns + (i + r) * 2 * BLOCK + c;
          const group less_x = (group)(row[0]), less_y = (group)(row[BLOCK]);
          AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++)
            sum[r][g] = MULTIPLY_ADD(less_y, xs[g], MULTIPLY_ADD(less_x, ys[g], sum[r][g]));
        }
      }
      AT_THE_SAME_TIME for (int r = 0; r < TILE; r++) {
        AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++)
          store_lanes(sum[r][g], of.a + (i + r) * wide + j + g * LANES, 1, LANES);
      }
    }
  }
}

KERNEL tridiagonal(PLACE(diagonal), PLACE(reflectors), PLACE(work), PLACE(tau), CONST_PLACE(in), numbers n) {
  const long size = SIZE, wide = (size + BLOCK - 1) / BLOCK * BLOCK;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(in) + b * size * size;
    matrix a = MATRIX(work) + b * PANELS_WORK(wide), x = a + wide * wide, y = x + BLOCK * wide;
    const panel of = {a, x, y, y + BLOCK * wide, size, wide};
    matrix v = MATRIX(reflectors) + b * (size - 1) * size, factors = MATRIX(tau) + b * (size - 1);
    __global RT *d = REALS(diagonal) + b * (2 * size + 1);
    const RT norm = largest_of_triangle(from, size, UPPER), scale = norm > 0 && norm <= MAXIMUM ? norm : 1;
    for (long i = 0; i < wide; i++) {
      for (long j = 0; j < wide; j++)
        a[i * wide + j] = i < size && j < size ? part_by(from, size, i, j, norm, UPPER) : (CT)0;
    }
    for (long i = 0; i < 2 * BLOCK * wide; i++) x[i] = 0;
    for (long k = 0; k < size - 1; k += BLOCK) {
      const int count = (int)min((long)BLOCK, size - 1 - k);
      const long begin = (k + count) / STRIP * STRIP;
      for (int c = 0; c < count; c++) reduce_in_panel(of, factors, d, k + c, c);
      turn_panel(of, v, k, count, begin);
      subtract_panel(of, count, begin);
    }
    d[size - 1] = REAL(a[size * wide - wide + size - 1]);
    d[2 * size - 1] = 0;
    d[2 * size] = norm <= MAXIMUM ? scale : (RT)NAN;
  }
}
#endif
