/* Householder's reflectors; after stacks.cl and blocks.cl. Some in a row are a block, I - V T V^H with an upper
 * triangular T (Schreiber and Van Loan, SIAM J. Sci. Stat. Comput. 10, 1989). Of the numbers (orthogonal.c has them,
 * too): */
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
#define PARTS n.of[10]   /* of the vectors that are reflected, each a work-group's */
#define WIDTH n.of[11]   /* of a block of reflectors */

/* So many reflectors: V, row by row, and T; their rows have `width` numbers. */
typedef struct {
  matrix v, t;
  long width;
  int count;
} block;

static block block_in(matrix work, long piece, long rows, long width) {
  matrix v = work + piece * (rows + width) * width;
  return (block){v, v + rows * width, width, 0};
}

/* T from the factors; its lower triangle holds V^H V, by columns. */
static void combine(block of, const_matrix factors, bool turned) {
  EACH_LANE(i, 0, of.count) {
    matrix row = of.t + i * of.width;
    for (long k = i; k < of.count; k++) {
      const_matrix products = of.t + k * of.width;
      CT sum = FROM_REAL(k == i ? -1 : 0);
      for (long j = i; j < k; j++) sum = MULTIPLY_ADD(row[j], products[j], sum);
      row[k] = -MUL(CONJ_IF(turned, factors[k]), sum);
    }
  }
}

/* The block of reflectors [begin, begin + of.count) of a matrix of them; conjugated if they are turned. */
static void gather(block of, const_matrix a, const_matrix factors, long begin, long rows, long columns, bool turned) {
  const long length = rows - begin;
  SYNC;
  EACH_LANE(i, 0, length)
  for (long k = 0; k < of.width; k++) {
    const bool given = k < of.count && k < i;
    of.v[i * of.width + k] =
        given ? CONJ_IF(turned, a[(begin + i) * columns + begin + k]) : FROM_REAL(i == k && k < of.count);
  }
  SYNC;
  EACH_STRIP(j, 0, of.width) {
    group products[BLOCK][GROUPS];
    project(products, of.v, of.width, of.count, strip_of(of.v, of.width, 1, j, of.width), length);
    const strip column = strip_of(of.t, 1, of.width, j, of.width);
    for (int k = 0; k < of.count; k++) {
      for (int g = 0; g < GROUPS; g++) store_group(products[k][g], column, k, g);
    }
  }
  SYNC;
  combine(of, factors + begin, turned);
  SYNC;
}

/* The strip's rows that a block reaches, by I - V T V^H, or by its adjoint. */
static INLINED void reflect_strip(block by, bool adjoint, strip x, long length) {
  group rows[BLOCK][GROUPS];
  project(rows, by.v, by.width, by.count, x, length);
  for (int done = 0; done < by.count; done++) { /* in place: those that a row is made of are still what they were */
    const int i = adjoint ? by.count - 1 - done : done, end = adjoint ? i + 1 : by.count;
    group sum[GROUPS];
    AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) sum[g] = (group)(0);
    for (int k = adjoint ? 0 : i; k < end; k++) {
      const group factor = (group)(adjoint ? CONJ(by.t[k * by.width + i]) : by.t[i * by.width + k]);
      AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) sum[g] = MULTIPLY_ADD(factor, rows[k][g], sum[g]);
    }
    AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) rows[i][g] = sum[g];
  }
  subtract_rows(x, 0, length, (factor_matrix){by.v, by.width, 1, false}, rows, by.count);
}

/* Columns [first, ...) of `wide` ones, at most BLOCK, by one reflector that has 1 in row 0 and below it this column. */
static INLINED void reflect_columns(const_matrix column, CT factor, matrix to, long step, long length, int first,
                                    int wide) {
  for (long j = STRIP * LANE; j < wide; j += STRIP * LOCAL) {
    const strip x = strip_of(to, step, 1, j, wide);
    group sum[GROUPS];
    if (j + STRIP <= first) continue;
    AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) sum[g] = load_group(x, 0, g);
    for (long i = 1; i < length; i++) {
      const group part = (group)(CONJ(column[i * step]));
      AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) sum[g] = MULTIPLY_ADD(part, load_group(x, i, g), sum[g]);
    }
    AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) sum[g] = MUL(sum[g], (group)(-factor));
    for (long i = 0; i < length; i++) {
      const group part = (group)(i ? column[i * step] : FROM_REAL(1));
      AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) {
        const group now = load_group(x, i, g);
        store_group(keep_before(first - (int)j - g * LANES, now, MULTIPLY_ADD(part, sum[g], now)), x, i, g);
      }
    }
  }
}

/* The reflector that leaves `beta` of column k from row k on: below its 1 is the column over scale and divisor. */
typedef struct {
  RT beta, below, scale;
  CT factor, divisor;
} reflector;

/* The length of the column is taken by its largest number, so that no square overflows, and where that is next to
 * nothing by a scale, since lengths among denormals are too coarse for a reflection. */
static reflector reflector_of(const_matrix a, long k, long rows, long columns) {
  RT most = 0, sum = 0;
  for (long i = k + 1; i < rows; i++) most = larger_size(most, MODULUS(a[i * columns + k]));
  for (long i = k + 1; i < rows && most != 0; i++) {
    const CT part = a[i * columns + k] / most;
    sum = ADD_SQUARE(part, sum);
  }
  const RT scale = fmax(most, MODULUS(a[k * columns + k])) < MINIMUM / EPSILON ? (RT)MINIMUM : (RT)1;
  const CT alpha = a[k * columns + k] / scale;
  const RT below = most / scale * sqrt(sum), length = hypot(MODULUS(alpha), below);
  const RT beta = REAL(alpha) >= 0 ? -length : length;
  if (below == 0 && IMAGINARY(alpha) == 0) return (reflector){REAL(alpha) * scale, 0, 1, (CT)0, FROM_REAL(1)};
  return (reflector){beta * scale, below, scale, (FROM_REAL(beta) - alpha) / beta, alpha - FROM_REAL(beta)};
}
static CT reflected_part(reflector by, CT part) { return DIVIDE(part / by.scale, by.divisor); }

/* Columns [begin, end) become reflectors, and R's. */
static void factor_columns(matrix to, matrix factors, long begin, long end, long rows, long columns) {
  for (long k = begin; k < end; k++) {
    const reflector by = reflector_of(to, k, rows, columns);
    SYNC;
    if (LANE == 0) to[k * columns + k] = FROM_REAL(by.beta), factors[k] = by.factor;
    if (by.below != 0) {
      EACH_LANE(i, k + 1, rows) to[i * columns + k] = reflected_part(by, to[i * columns + k]);
    }
    SYNC;
    reflect_columns(to + k * columns + k, CONJ(by.factor), to + k * columns + begin, columns, rows - k,
                    (int)(k + 1 - begin), (int)(end - begin));
    SYNC;
  }
}

KERNEL geqrf(PLACE(a), PLACE(tau), PLACE(work), CONST_PLACE(in), CONST_PLACE(none), numbers n) {
  const long rows = ROWS, columns = COLUMNS, count = COUNT;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(in) + b * rows * columns;
    matrix to = MATRIX(a) + b * rows * columns, factors = MATRIX(tau) + b * count;
    block some = block_in(MATRIX(work), b, rows, WIDTH);
    EACH_LANE(i, 0, rows)
    for (long j = 0; j < columns; j++) to[i * columns + j] = from[i * columns + j];
    SYNC;
    for (long begin = 0, end; begin < count; begin = end) {
      end = min(begin + BLOCK, count);
      factor_columns(to, factors, begin, end, rows, columns);
      if (end == columns) continue;
      some.count = (int)(end - begin);
      gather(some, to, factors, begin, rows, columns, false);
      EACH_STRIP(j, end, columns) {
        reflect_strip(some, true, strip_of(to + begin * columns, columns, 1, j, columns), rows - begin);
      }
      SYNC;
    }
  }
}

/* A work-group has a part of the vectors, its lanes strips of them. */
KERNEL reflect(PLACE(c), CONST_PLACE(a), PLACE(work), CONST_PLACE(tau), CONST_PLACE(in), numbers n) {
  const long rows = ROWS, columns = COLUMNS, count = COUNT, rights = RIGHTS, part = (rights + PARTS - 1) / PARTS;
  EACH_MATRIX(piece) {
    const long b = piece / PARTS, first = piece % PARTS * part, last = min(first + part, rights);
    const_matrix vectors = CONST_MATRIX(a) + b * rows * columns, factors = CONST_MATRIX(tau) + b * count;
    matrix to = MATRIX(c) + b * rows * rights;
    block some = block_in(MATRIX(work), piece, rows, WIDTH);
    EACH_STRIP(j, first, last) {
      const strip x = strip_of(to, C_STEP, C_NEXT, j, last);
      begin_with(x, (matrix)(CONST_MATRIX(in) + b * rows * rights + j * C_NEXT), rows, IDENTITY, j);
    }
    for (long done = 0; done < count; done += BLOCK) {
      const long begin = FORWARD ? done : (count - 1 - done) / BLOCK * BLOCK;
      some.count = (int)min((long)BLOCK, count - begin);
      gather(some, vectors, factors, begin, rows, columns, TURNED);
      EACH_STRIP(j, first, last) {
        if (IDENTITY && j + STRIP <= begin) continue; /* still the identity's */
        reflect_strip(some, FORWARD, strip_of(to + begin * C_STEP, C_STEP, C_NEXT, j, last), rows - begin);
      }
    }
  }
}

KERNEL upper_triangle(PLACE(r), CONST_PLACE(a), CONST_PLACE(x), CONST_PLACE(y), CONST_PLACE(z), numbers n) {
  const long rows = ROWS, columns = COLUMNS, height = HEIGHT;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(a) + b * rows * columns;
    matrix to = MATRIX(r) + b * height * columns;
    EACH_LANE(i, 0, height)
    for (long j = 0; j < columns; j++) to[i * columns + j] = j >= i ? from[i * columns + j] : (CT)0;
  }
}
