/* Singular values: reflectors from both sides leave a real bidiagonal matrix (Golub and Kahan, SIAM J. Numer. Anal. 2,
 * 1965), and rotations that make it diagonal turn their products; after orthogonal.cl. The longer side is that of the
 * rows: of a wide matrix the adjoint is taken. Of the numbers (singular.c has them, too), beside those of
 * orthogonal.cl, of which RIGHTS are the columns of the longer side's vectors, 0 where none are wanted: */
#define U_COLUMNS n.of[14]
#define VH_ROWS   n.of[15]
#define SWEEPS    60 /* for one singular value, at most */

/* What a matrix needs beside itself: two rows, the diagonal and what is beside it, and what all is smaller by. */
#define BESIDE(count) (4 * (count) + 1)

/* z = v^H g for the columns behind k; v lies in column k, and has 1 in row k. Its reflection leaves w^H of row k. */
static void project_rows(matrix z, matrix w, const_matrix g, CT factor, long k, long length, long count) {
  EACH_STRIP(j, k + 1, count) {
    const strip to = strip_of(z, 0, 1, j, count), row = strip_of(w, 0, 1, j, count);
    const strip from = strip_of((matrix)g, count, 1, j, count);
    group sum[GROUPS];
    AT_THE_SAME_TIME for (int p = 0; p < GROUPS; p++) sum[p] = load_group(from, k, p);
    for (long i = k + 1; i < length; i++) {
      const group part = (group)(CONJ(g[i * count + k]));
      AT_THE_SAME_TIME for (int p = 0; p < GROUPS; p++) sum[p] = MULTIPLY_ADD(part, load_group(from, i, p), sum[p]);
    }
    AT_THE_SAME_TIME for (int p = 0; p < GROUPS; p++) {
      store_group(sum[p], to, 0, p);
      store_group(CONJ(MULTIPLY_ADD((group)(-CONJ(factor)), sum[p], load_group(from, k, p))), row, 0, p);
    }
  }
}

/* A row loses z times a factor, and what it then is is reflected by w, a row's reflector. */
static void reflect_row(matrix row, const_matrix z, CT left, const_matrix w, CT right, long count) {
  group sum = (group)(0);
  for (long j = 0; j < count; j += LANES) {
    const int wide = (int)min((long)LANES, count - j);
    const group now = MULTIPLY_ADD((group)(-left), load_lanes(z + j, 1, wide), load_lanes(row + j, 1, wide));
    store_lanes(now, row + j, 1, wide);
    sum = MULTIPLY_ADD(now, load_lanes(w + j, 1, wide), sum);
  }
  const CT dot = -MUL(right, sum_of_lanes(sum));
  for (long j = 0; j < count; j += LANES) {
    const int wide = (int)min((long)LANES, count - j);
    const group now = load_lanes(row + j, 1, wide);
    store_lanes(MULTIPLY_ADD((group)(dot), CONJ(load_lanes(w + j, 1, wide)), now), row + j, 1, wide);
  }
}

/* Column k becomes a reflector, and d[k] what it leaves there. */
static void reduce_column(matrix g, matrix factors, __global RT *d, long k, long length, long count) {
  const reflector by = reflector_of(g, k, length, count);
  SYNC;
  if (LANE == 0) {
    d[k] = by.beta;
    factors[k] = by.factor;
  }
  if (by.below != 0) {
    EACH_LANE(i, k + 1, length) g[i * count + k] = reflected_part(by, g[i * count + k]);
  }
  SYNC;
}

/* What column k has become takes the columns behind it, and then row k becomes a reflector: w, and a column of `right`.
 * z is work. */
static void reduce_row(matrix g, matrix right, matrix factors, matrix z, __global RT *e, CT factor, long k, long length,
                       long count) {
  matrix w = z + count;
  project_rows(z, w, g, factor, k, length, count);
  SYNC;
  const reflector by = reflector_of(w + k + 1, 0, count - k - 1, 1);
  SYNC;
  if (LANE == 0) {
    e[k] = by.beta;
    factors[k] = by.factor;
  }
  EACH_LANE(j, k + 1, count) {
    const CT part = by.below != 0 ? reflected_part(by, w[j]) : (CT)0;
    w[j] = j == k + 1 ? FROM_REAL(1) : part;
    right[(j - 1) * (count - 1) + k] = part;
  }
  SYNC;
  EACH_LANE(i, k + 1, length) {
    reflect_row(g + i * count + k + 1, z + k + 1, MUL(CONJ(factor), g[i * count + k]), w + k + 1, by.factor,
                count - k - 1);
  }
  SYNC;
}

/* Of each matrix, which is not empty: the diagonal, what is beside it, and what all is smaller by, so that no square
 * overflows: NaN where a number is not finite. */
KERNEL bidiagonal(PLACE(beside), PLACE(reflectors), PLACE(tau), PLACE(right), CONST_PLACE(in), numbers n) {
  const long rows = ROWS, columns = COLUMNS, length = max(rows, columns), count = min(rows, columns);
  const long units = n.units / LOCAL;
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(in) + b * rows * columns;
    matrix g = MATRIX(reflectors) + b * length * count, r = MATRIX(right) + b * (count - 1) * (count - 1);
    matrix left_factors = MATRIX(tau) + b * count, right_factors = MATRIX(tau) + units * count + b * (count - 1);
    matrix z = MATRIX(beside) + b * BESIDE(count);
    __global RT *d = (__global RT *)(z + 2 * count);
    RT most = 0;
    for (long i = 0; i < rows * columns; i++) most = fmax(most, LARGEST_PART(from[i]));
    const bool good = most <= MAXIMUM;
    const RT scale = good && most > 0 ? most : (RT)1;
    EACH_LANE(i, 0, length)
    for (long j = 0; j < count; j++) {
      const CT given = rows >= columns ? from[i * columns + j] : CONJ(from[j * columns + i]);
      g[i * count + j] = good ? given / scale : (CT)0;
    }
    SYNC;
    for (long k = 0; k < count - 1; k++) {
      reduce_column(g, left_factors, d, k, length, count);
      reduce_row(g, r, right_factors, z, d + count, left_factors[k], k, length, count);
    }
    reduce_column(g, left_factors, d, count - 1, length, count);
    if (LANE == 0) {
      d[2 * count - 1] = 0;
      d[2 * count] = good ? scale : (RT)NAN;
    }
    SYNC;
  }
}

/* Of columns i and i + 1 a step has two rotations, of the right vectors and of the left ones: `turns` holds `size` cos
 * of the first, as many sin, and likewise those of the second. */
static void keep(__global RT *turns, long size, long i, rotation right, rotation left) {
  turns[i] = right.c;
  turns[size + i] = right.s;
  turns[2 * size + i] = left.c;
  turns[3 * size + i] = left.s;
}

/* Where the block that ends with row m begins: what is beside the diagonal there is as good as 0, by its neighbours or
 * by the matrix, whose largest part is 1. */
static long begin_of_block(__global const RT *d, __global const RT *e, long m) {
  while (m > 0 && fabs(e[m - 1]) > EPSILON * (fabs(d[m - 1]) + fabs(d[m]) + EPSILON)) m--;
  return m;
}

/* On the diagonal, where the largest part of the matrix is 1. */
static bool is_nothing(RT d) { return fabs(d) <= EPSILON * EPSILON; }

/* The smaller singular value of the last two rows; 0 where the block is singular, whose last value a step without a
 * shift then finds (Demmel and Kahan, SIAM J. Sci. Stat. Comput. 11, 1990). */
static RT shift_of(__global const RT *d, __global const RT *e, long l, long m) {
  for (long i = l; i <= m; i++) {
    if (is_nothing(d[i])) return 0;
  }
  const RT a = fabs(d[m - 1]), b = fabs(d[m]), beside = e[m - 1];
  const RT shift = 2 * a * b / (hypot(a + b, beside) + hypot(a - b, beside)), ratio = shift / d[l];
  return ratio * ratio < EPSILON ? 0 : shift;
}

static void step_without_shift(__global RT *d, __global RT *e, __global RT *turns, long size, long l, long m) {
  rotation right = {1, 0, 0}, left = {1, 0, 0};
  for (long i = l; i < m; i++) {
    const RT now = is_nothing(d[i]) ? (RT)0 : d[i];
    right = rotation_of(now * right.c, e[i]);
    if (i > l) e[i - 1] = left.s * right.r;
    left = rotation_of(left.c * right.r, d[i + 1] * right.s);
    d[i] = left.r;
    keep(turns, size, i, right, left);
  }
  const RT last = is_nothing(d[m]) ? (RT)0 : d[m] * right.c;
  d[m] = last * left.c;
  e[m - 1] = last * left.s;
}

static void step_with_shift(__global RT *d, __global RT *e, __global RT *turns, long size, RT shift, long l, long m) {
  RT f = (fabs(d[l]) - shift) * (copysign((RT)1, d[l]) + shift / d[l]), g = e[l];
  for (long i = l; i < m; i++) {
    const rotation right = rotation_of(f, g);
    if (i > l) e[i - 1] = right.r;
    f = fma(right.c, d[i], right.s * e[i]);
    e[i] = fma(right.c, e[i], -right.s * d[i]);
    g = right.s * d[i + 1];
    d[i + 1] *= right.c;
    const rotation left = rotation_of(f, g);
    d[i] = left.r;
    f = fma(left.c, e[i], left.s * d[i + 1]);
    d[i + 1] = fma(left.c, d[i + 1], -left.s * e[i]);
    if (i + 1 < m) {
      g = left.s * e[i + 1];
      e[i + 1] *= left.c;
    }
    keep(turns, size, i, right, left);
  }
  e[m - 1] = f;
}

static void take_step(__global RT *d, __global RT *e, __global RT *turns, long size, long l, long m) {
  const RT shift = shift_of(d, e, l, m);
  if (shift == 0)
    step_without_shift(d, e, turns, size, l, m);
  else
    step_with_shift(d, e, turns, size, shift, l, m);
}

/* How many are to stand before value i: larger ones, whatever their signs. */
static long place_by_size(__global const RT *values, long count, long i) {
  const RT here = fabs(values[i]);
  long before = 0;
  for (long j = 0; j < count; j++) {
    const RT there = fabs(values[j]);
    before += there > here || (there == here && j < i);
  }
  return before;
}

/* Where the vectors of a matrix go: its left ones, or its right ones. */
typedef struct {
  matrix to;
  long component, vector;
  bool conjugated;
} vectors;

/* The left vectors of a part, `lefts` columns, and the right ones behind them. */
static void turn_vectors(matrix z, sweeps taken, long wide, long lefts, long here) {
  EACH_STRIP(j, 0, lefts) turn_strip(strip_of(z, wide, 1, j, lefts), taken, 1, false);
  EACH_STRIP(j, lefts, here) turn_strip(strip_of(z, wide, 1, j, here), taken, 0, false);
}

/* A part has some rows of the left vectors, and then of the right ones, which it turns as columns; the steps each part
 * takes for itself. Work: these columns, d, e and the rotations. Given: the products of the reflectors, and what is
 * beside each matrix. */
KERNEL diagonal(PLACE(u), PLACE(s), PLACE(vh), PLACE(work), CONST_PLACE(given), numbers n) {
  const long rows = ROWS, columns = COLUMNS, length = max(rows, columns), count = min(rows, columns);
  const long matrices = n.units / LOCAL / PARTS, below = max(count - 1, 0L), rights = RIGHTS;
  const long all = rights ? length + count : 0, wide = (all + PARTS - 1) / PARTS;
  const bool tall = rows >= columns;
  EACH_MATRIX(piece) {
    const long b = piece / PARTS, first = piece % PARTS * wide;
    const long here = min(max(all - first, 0L), wide), lefts = min(max(length - first, 0L), here);
    const_matrix left = CONST_MATRIX(given), right = left + matrices * length * rights;
    const_matrix beside = right + matrices * below * below + b * BESIDE(count);
    __global const RT *from = (__global const RT *)(beside + 2 * count);
    matrix z = MATRIX(work) + piece * count * (wide + 2 + 4 * TOGETHER);
    __global RT *d = (__global RT *)(z + count * wide), *e = d + count;
    sweeps taken = {.turns = e + count, .size = count, .kinds = 2};
    const RT scale = count > 0 ? from[2 * count] : (RT)1;
    left += b * length * rights;
    right += b * below * below;
    EACH_LANE(i, 0, count) {
      d[i] = from[i];
      e[i] = from[count + i];
      for (long k = 0; k < here; k++) {
        const long row = k < lefts ? first + k : first + k - length;
        z[i * wide + k] = k < lefts  ? left[row * rights + i]
                          : i && row ? right[(row - 1) * below + i - 1]
                                     : FROM_REAL(i == row);
      }
    }
    SYNC;
    for (long done = 0, tries = 0; done < count;) {
      const long m = count - 1 - done, l = begin_of_block(d, e, m);
      const bool more = l < m && tries < SWEEPS, turn = more && !goes_with(taken, l, m);
      SYNC;
      if (turn) turn_vectors(z, taken, wide, lefts, here);
      if (turn) taken.count = 0;
      SYNC;
      if (LANE == 0 && more) take_step(d, e, turns_of(taken, taken.count, 0), count, l, m);
      if (more) taken = with_sweep(taken, l, m);
      SYNC;
      tries = more ? tries + 1 : 0;
      done += !more;
    }
    turn_vectors(z, taken, wide, lefts, here);
    SYNC;
    const vectors of_u = {MATRIX(u) + b * rows * U_COLUMNS, U_COLUMNS, 1, false};
    const vectors of_v = {MATRIX(vh) + b * VH_ROWS * columns, 1, columns, true};
    const vectors longer = tall ? of_u : of_v, shorter = tall ? of_v : of_u;
    EACH_LANE(i, 0, count) {
      const long at = place_by_size(d, count, i);
      const RT sign = d[i] < 0 ? -1 : 1;
      if (first == 0) REALS(s)[b * count + at] = fabs(d[i]) * scale;
      for (long k = 0; k < here; k++) {
        const vectors to = k < lefts ? longer : shorter;
        const long row = k < lefts ? first + k : first + k - length;
        const CT part = k < lefts ? z[i * wide + k] : z[i * wide + k] * sign;
        to.to[row * to.component + at * to.vector] = scale == scale ? CONJ_IF(to.conjugated, part) : (CT)NAN;
      }
    }
    EACH_LANE(k, 0, lefts) /* vectors beyond those of the values */
    for (long i = count; i < rights; i++) {
      const CT part = left[(first + k) * rights + i];
      longer.to[(first + k) * longer.component + i * longer.vector] =
          scale == scale ? CONJ_IF(longer.conjugated, part) : (CT)NAN;
    }
    SYNC;
  }
}
