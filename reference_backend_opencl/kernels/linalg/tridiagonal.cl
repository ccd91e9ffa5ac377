/* Eigenvalues of Hermitian matrices: reflectors leave a real tridiagonal matrix, and rotations that make it diagonal
 * turn their product; after orthogonal.cl, whose matrix of reflectors has the rows from the second on. Of the numbers
 * (tridiagonal.c has them, too): */
#define UPPER n.of[12]   /* the triangle that is read */
#define VECTORS n.of[13] /* they are wanted */
#define SIZE COLUMNS
#define SWEEPS 60 /* for one eigenvalue, at most */

/* The largest part of a number of the triangle that is read: infinity where one is NaN. */
static RT largest_of_triangle(const_matrix from, long size, bool upper) {
  RT most = 0;
  for (long i = 0; i < size; i++) {
    for (long j = upper ? i : 0; j < (upper ? size : i + 1); j++) most = fmax(most, LARGEST_PART(from[i * size + j]));
  }
  return most;
}

/* The number in row i of column j of the Hermitian matrix by its largest part; 0 where one is not finite. */
static CT part_by(const_matrix from, long size, long i, long j, RT norm, bool upper) {
  const CT given = (upper ? i <= j : i >= j) ? from[i * size + j] : CONJ(from[j * size + i]);
  const RT scale = norm > 0 ? norm : 1;
  return !(norm <= MAXIMUM) ? (CT)0 : i == j ? FROM_REAL(REAL(given) / scale) : given / scale;
}

#if LOCAL > 1
/* y = factor * a x for a Hermitian matrix, from column `first` on, of rows from there on; x is 0 before. */
static void multiply(matrix y, const_matrix a, const_matrix x, CT factor, long first, long size) {
  EACH_STRIP(j, first / STRIP * STRIP, size) {
    const strip to = strip_of(y, 0, 1, j, size), from = strip_of((matrix)a, size, 1, j, size);
    group sum[GROUPS];
    AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) sum[g] = (group)(0);
    for (long i = first; i < size; i++) {
      AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++)
        sum[g] = MULTIPLY_ADD((group)(x[i]), CONJ(load_group(from, i, g)), sum[g]);
    }
    AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) store_group(MUL((group)(factor), sum[g]), to, 0, g);
  }
}

/* a -= x y^H + y x^H, as far. */
static void update(matrix a, matrix x, matrix y, long first, long size) {
  EACH_STRIP(j, first / STRIP * STRIP, size) {
    const strip to = strip_of(a, size, 1, j, size);
    const strip left = strip_of(x, 0, 1, j, size), right = strip_of(y, 0, 1, j, size);
    group xs[GROUPS], ys[GROUPS];
    AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) {
      xs[g] = CONJ(load_group(left, 0, g));
      ys[g] = CONJ(load_group(right, 0, g));
    }
    for (long i = first; i < size; i++) {
      AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) {
        const group less = MULTIPLY_ADD((group)(-x[i]), ys[g], load_group(to, i, g));
        store_group(MULTIPLY_ADD((group)(-y[i]), xs[g], less), to, i, g);
      }
    }
  }
}

/* Column k becomes tridiagonal; x is the reflector, y is work. */
static void reduce_column(matrix a, matrix v, matrix factors, matrix x, matrix y, __global RT *d, long k,
                          long size) {
  const reflector by = reflector_of(a + size, k, size - 1, size);
  SYNC;
  EACH_LANE(i, 0, size) {
    x[i] = i == k + 1 ? FROM_REAL(1) : i > k && by.below != 0 ? reflected_part(by, a[i * size + k]) : (CT)0;
    if (i > k + 1) v[(i - 1) * size + k] = x[i];
    if (i == k) {
      d[k] = REAL(a[k * size + k]);
      d[size + k] = by.beta;
      factors[k] = by.factor;
    }
  }
  SYNC;
  multiply(y, a, x, by.factor, k + 1, size);
  SYNC;
  CT dot = 0;
  for (long i = k + 1; i < size; i++) dot = MULTIPLY_ADD(CONJ(y[i]), x[i], dot);
  dot = MUL(by.factor, dot) / 2;
  SYNC;
  EACH_LANE(i, 0, size) y[i] = i > k ? MULTIPLY_ADD(-dot, x[i], y[i]) : (CT)0;
  SYNC;
  update(a, x, y, k + 1, size);
  SYNC;
}

/* d, e, and what they and the eigenvalues are smaller by, so that no square overflows: NaN where one is not finite. */
KERNEL tridiagonal(PLACE(diagonal), PLACE(reflectors), PLACE(work), PLACE(tau), CONST_PLACE(in), numbers n) {
  const long size = SIZE;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(in) + b * size * size;
    matrix a = MATRIX(work) + b * size * (size + 2), x = a + size * size, y = x + size;
    matrix v = MATRIX(reflectors) + b * (size - 1) * size, factors = MATRIX(tau) + b * (size - 1);
    __global RT *d = REALS(diagonal) + b * (2 * size + 1);
    const RT norm = largest_of_triangle(from, size, UPPER), scale = norm > 0 && norm <= MAXIMUM ? norm : 1;
    EACH_LANE(i, 0, size)
    for (long j = 0; j < size; j++) a[i * size + j] = part_by(from, size, i, j, norm, UPPER);
    SYNC;
    for (long k = 0; k < size - 1; k++) reduce_column(a, v, factors, x, y, d, k, size);
    if (LANE == 0) {
      d[size - 1] = REAL(a[size * size - 1]);
      d[2 * size - 1] = 0;
      d[2 * size] = norm <= MAXIMUM ? scale : (RT)NAN;
    }
    SYNC;
  }
}

#endif

/* Where the block that begins with row l ends: what is beside the diagonal there is as good as 0, by its neighbours or
 * by the matrix, whose largest part is 1. Products of what is left do not underflow. */
static long end_of_block(__global const RT *d, __global const RT *e, long l, long size) {
  while (l < size - 1 && fabs(e[l]) > EPSILON * (fabs(d[l]) + fabs(d[l + 1]) + EPSILON)) l++;
  return l;
}

/* An implicit QL step on rows l to m: cos and sin of the rotations of rows i and i + 1, the last ones first. */
static void sweep(__global RT *d, __global RT *e, __global RT *cosines, __global RT *sines, long l, long m) {
  const RT ratio = (d[l + 1] - d[l]) / (2 * e[l]);
  RT g = d[m] - d[l] + e[l] / (ratio + copysign(hypot(ratio, (RT)1), ratio)), s = 1, c = 1, p = 0;
  long i = m - 1;
  for (; i >= l; i--) {
    const RT f = s * e[i], beside = c * e[i];
    const rotation by = rotation_of(g, f);
    e[i + 1] = by.r;
    if (by.r == 0) break;
    s = by.s;
    c = by.c;
    g = d[i + 1] - p;
    const RT r = fma(d[i] - g, s, 2 * c * beside);
    p = s * r;
    d[i + 1] = g + p;
    g = fma(c, r, -beside);
    cosines[i] = c;
    sines[i] = s;
  }
  d[i < l ? l : i + 1] -= p;
  if (i < l) e[l] = g;
  e[m] = 0;
  for (; i >= l; i--) {
    cosines[i] = 1;
    sines[i] = 0;
  }
}

/* How many are to stand before value i: smaller ones. */
static long place_in_order(__global const RT *values, long count, long i) {
  long before = 0;
  for (long j = 0; j < count; j++) before += values[j] < values[i] || (values[j] == values[i] && j < i);
  return before;
}

/* A part has some rows of the eigenvectors, which it turns as columns; the steps each part takes for itself. Work:
 * these columns, d, e, cos and sin. */
KERNEL ql(PLACE(values), PLACE(vectors), PLACE(work), CONST_PLACE(diagonal), CONST_PLACE(q), numbers n) {
  const long size = SIZE, wide = (size + PARTS - 1) / PARTS;
  EACH_MATRIX(piece) {
    const long b = piece / PARTS, first = piece % PARTS * wide, count = VECTORS ? min(wide, size - first) : 0;
    const_matrix given = CONST_MATRIX(q) + b * (size - 1) * (size - 1);
    __global const RT *from = (__global const RT *)(diagonal + offset_diagonal) + b * (2 * size + 1);
    matrix z = MATRIX(work) + piece * size * (wide + 2 + 2 * TOGETHER);
    __global RT *d = (__global RT *)(z + size * wide), *e = d + size;
    sweeps taken = {.turns = e + size, .size = size, .kinds = 1};
    const RT scale = from[2 * size];
    EACH_LANE(i, 0, size) {
      d[i] = from[i];
      e[i] = from[size + i];
      for (long k = 0; k < count; k++) {
        const long row = first + k;
        z[i * wide + k] = i && row ? given[(row - 1) * (size - 1) + i - 1] : FROM_REAL(i == row);
      }
    }
    SYNC;
    for (long l = 0, tries = 0; l < size;) {
      const long m = end_of_block(d, e, l, size);
      const bool more = m > l && tries < SWEEPS, turn = more && !goes_with(taken, l, m);
      SYNC;
      EACH_STRIP(j, 0, turn ? count : 0) turn_strip(strip_of(z, wide, 1, j, count), taken, 0, true);
      if (turn) taken.count = 0;
      SYNC;
      if (LANE == 0 && more) sweep(d, e, turns_of(taken, taken.count, 0), turns_of(taken, taken.count, 1), l, m);
      if (more) taken = with_sweep(taken, l, m);
      SYNC;
      tries = more ? tries + 1 : 0;
      l += !more;
    }
    EACH_STRIP(j, 0, count) turn_strip(strip_of(z, wide, 1, j, count), taken, 0, true);
    SYNC;
    EACH_LANE(i, 0, size) {
      const long at = place_in_order(d, size, i);
      if (first == 0) REALS(values)[b * size + at] = d[i] * scale;
      for (long k = 0; k < count; k++) {
        MATRIX(vectors)[(b * size + first + k) * size + at] = scale == scale ? z[i * wide + k] : (CT)NAN;
      }
    }
    SYNC;
  }
}
