/* Eigenvalues of symmetric matrices and singular values, by Jacobi's rotations; after stacks.cl. In a round every index
 * is in one pair, as in a tournament, so that the lanes rotate pairs side by side. Of the numbers (jacobi.c has them,
 * too): */
#define ROWS n.of[0]
#define COLUMNS n.of[1]
#define UPPER n.of[2]   /* the triangle that is read */
#define VECTORS n.of[3] /* they are wanted */
#define WORK n.of[4]    /* numbers of work for each matrix */
#define U_COLUMNS n.of[5]
#define VH_ROWS n.of[6]
#define SWEEPS 40

#ifdef IS_DOUBLE
#define EPSILON DBL_EPSILON
#define MAXIMUM DBL_MAX
#else
#define EPSILON FLT_EPSILON
#define MAXIMUM FLT_MAX
#endif

/* Pair t of a round among `players`, an even number; the last one stays where it is. */
static void pair_of(long players, long round, long t, long *p, long *q) {
  const long circle = players - 1;
  const long a = t == 0 ? circle : (round + t) % circle, b = (round + circle - t) % circle;
  *p = min(a, b);
  *q = max(a, b);
}

/* cos and sin of the rotation that takes b to 0 in [[a, b], [b, d]]. */
static void rotation(CT a, CT b, CT d, CT *c, CT *s) {
  const CT theta = (d - a) / (2 * b);
  const CT t = (theta >= 0 ? (CT)1 : (CT)-1) / (fabs(theta) + hypot(theta, (CT)1));
  *c = 1 / sqrt(fma(t, t, (CT)1));
  *s = t * *c;
}

/* Numbers step apart, of p and of q. */
static void rotate(matrix p, matrix q, long count, long step, CT c, CT s) {
  for (long i = 0; i < count; i++) {
    const CT x = p[i * step], y = q[i * step];
    p[i * step] = fma(c, x, -s * y);
    q[i * step] = fma(s, x, c * y);
  }
}

/* How many are to stand before value i. */
static long place_in_order(const_matrix values, long count, long i, bool descending) {
  long before = 0;
  for (long j = 0; j < count; j++) {
    const bool first = descending ? values[j] > values[i] : values[j] < values[i];
    before += first || (values[j] == values[i] && j < i);
  }
  return before;
}

/* Work: the matrix, the vectors' rows, cos and sin of each pair, the values, and whether a sweep turned anything. */
KERNEL eigh(PLACE(values), PLACE(vectors), PLACE(work), CONST_PLACE(in), numbers n) {
  const long size = ROWS, players = size + (size & 1);
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(in) + b * size * size;
    matrix a = MATRIX(work) + b * WORK, v = a + size * size, turns = v + size * size, found = turns + players;
    matrix turned = found + size;
    CT norm = 0;
    EACH_LANE(i, 0, size)
    for (long j = 0; j < size; j++) {
      a[i * size + j] = (UPPER ? i <= j : i >= j) ? from[i * size + j] : from[j * size + i];
      v[i * size + j] = i == j;
    }
    SYNC;
    for (long i = 0; i < size * size; i++) norm = fmax(norm, a[i] == a[i] ? fabs(a[i]) : (CT)INFINITY);
    const CT tiny = norm * EPSILON / 64;
    bool more = norm <= MAXIMUM;
    for (int sweep = 0; sweep < SWEEPS && more; sweep++) {
      SYNC;
      if (LANE == 0) turned[0] = 0;
      SYNC;
      for (long round = 0; round < players - 1; round++) {
        EACH_LANE(t, 0, players / 2) {
          long p, q;
          CT c = 1, s = 0;
          pair_of(players, round, t, &p, &q);
          if (q < size && fabs(a[p * size + q]) > tiny) {
            rotation(a[p * size + p], a[p * size + q], a[q * size + q], &c, &s);
            turned[0] = 1;
          }
          turns[2 * t] = c;
          turns[2 * t + 1] = s;
        }
        SYNC;
        EACH_LANE(t, 0, players / 2) {
          long p, q;
          pair_of(players, round, t, &p, &q);
          if (turns[2 * t + 1] == 0) continue;
          rotate(a + p, a + q, size, size, turns[2 * t], turns[2 * t + 1]);
          rotate(v + p * size, v + q * size, size, 1, turns[2 * t], turns[2 * t + 1]);
        }
        SYNC;
        EACH_LANE(t, 0, players / 2) {
          long p, q;
          pair_of(players, round, t, &p, &q);
          if (turns[2 * t + 1] == 0) continue;
          rotate(a + p * size, a + q * size, size, 1, turns[2 * t], turns[2 * t + 1]);
          a[p * size + q] = a[q * size + p] = 0;
        }
        SYNC;
      }
      more = turned[0] != 0;
    }
    SYNC;
    EACH_LANE(i, 0, size) found[i] = a[i * size + i];
    SYNC;
    EACH_LANE(i, 0, size) {
      const bool good = norm <= MAXIMUM;
      const long at = good ? place_in_order(found, size, i, false) : i;
      MATRIX(values)[b * size + at] = good ? found[i] : (CT)NAN;
      for (long k = 0; VECTORS && k < size; k++) {
        MATRIX(vectors)[(b * size + k) * size + at] = good ? v[i * size + k] : (CT)NAN;
      }
    }
    SYNC;
  }
}

/* A basis: component i of vector j. */
typedef struct {
  matrix at;
  long component, vector;
} basis;

/* Vectors [have, count) become unit vectors orthogonal to all before them. */
static void complete(basis q, long have, long count, long length) {
  long unit = 0;
  for (long j = have; j < count && unit < length; unit++) {
    matrix x = q.at + j * q.vector;
    for (long i = 0; i < length; i++) x[i * q.component] = i == unit;
    for (int twice = 0; twice < 2; twice++) {
      for (long k = 0; k < j; k++) {
        CT dot = 0;
        for (long i = 0; i < length; i++) dot = fma(q.at[i * q.component + k * q.vector], x[i * q.component], dot);
        for (long i = 0; i < length; i++) {
          x[i * q.component] = fma(-dot, q.at[i * q.component + k * q.vector], x[i * q.component]);
        }
      }
    }
    CT squares = 0;
    for (long i = 0; i < length; i++) squares = fma(x[i * q.component], x[i * q.component], squares);
    if (squares * length < (CT)0.5) continue; /* some unit vector keeps at least so much */
    const CT scale = 1 / sqrt(squares);
    for (long i = 0; i < length; i++) x[i * q.component] *= scale;
    j++;
  }
}

/* Rows p and q, of so many numbers, become orthogonal; the same is done to those of v. Whether they were not. */
static bool orthogonalize(matrix g, matrix v, long p, long q, long length, long count) {
  CT a = 0, d = 0, dot = 0, c, s;
  for (long i = 0; i < length; i++) {
    const CT x = g[p * length + i], y = g[q * length + i];
    a = fma(x, x, a);
    d = fma(y, y, d);
    dot = fma(x, y, dot);
  }
  if (!(fabs(dot) > 2 * EPSILON * sqrt(a) * sqrt(d))) return false;
  rotation(a, dot, d, &c, &s);
  rotate(g + p * length, g + q * length, length, 1, c, s);
  rotate(v + p * count, v + q * count, count, 1, c, s);
  return true;
}

/* The shorter side's vectors make those of the longer side orthogonal. Work: the matrix by its shorter side, the
 * vectors' rows, the values, and whether a sweep turned anything. */
KERNEL svd(PLACE(u), PLACE(s), PLACE(vh), PLACE(work), CONST_PLACE(in), numbers n) {
  const long rows = ROWS, columns = COLUMNS, tall = rows >= columns;
  const long length = tall ? rows : columns, count = tall ? columns : rows, players = count + (count & 1);
  EACH_MATRIX(b) {
    const_matrix from = CONST_MATRIX(in) + b * rows * columns;
    matrix g = MATRIX(work) + b * WORK, v = g + length * count, found = v + count * count, turned = found + count;
    CT most = 0;
    for (long i = 0; i < rows * columns; i++) most = fmax(most, from[i] == from[i] ? fabs(from[i]) : (CT)INFINITY);
    const bool good = most <= MAXIMUM;
    const CT scale = good && most > 0 ? most : (CT)1;
    EACH_LANE(j, 0, count) {
      for (long i = 0; i < length; i++) g[j * length + i] = (tall ? from[i * columns + j] : from[j * columns + i]) / scale;
      for (long i = 0; i < count; i++) v[j * count + i] = i == j;
    }
    bool more = good;
    for (int sweep = 0; sweep < SWEEPS && more; sweep++) {
      SYNC;
      if (LANE == 0) turned[0] = 0;
      SYNC;
      for (long round = 0; round < players - 1; round++) {
        EACH_LANE(t, 0, players / 2) {
          long p, q;
          pair_of(players, round, t, &p, &q);
          if (q < count && orthogonalize(g, v, p, q, length, count)) turned[0] = 1;
        }
        SYNC;
      }
      more = turned[0] != 0;
    }
    SYNC;
    EACH_LANE(j, 0, count) {
      CT squares = 0;
      for (long i = 0; i < length; i++) squares = fma(g[j * length + i], g[j * length + i], squares);
      found[j] = sqrt(squares);
    }
    SYNC;
    const basis left = {MATRIX(u) + b * rows * U_COLUMNS, U_COLUMNS, 1};
    const basis right = {MATRIX(vh) + b * VH_ROWS * columns, 1, columns};
    const basis longer = tall ? left : right, shorter = tall ? right : left;
    EACH_LANE(j, 0, count) {
      const long at = good ? place_in_order(found, count, j, true) : j;
      MATRIX(s)[b * count + at] = good ? found[j] * scale : (CT)NAN;
      for (long i = 0; VECTORS && i < count; i++) {
        shorter.at[i * shorter.component + at * shorter.vector] = good ? v[j * count + i] : (CT)NAN;
      }
      for (long i = 0; VECTORS && i < length; i++) {
        longer.at[i * longer.component + at * longer.vector] = !good ? (CT)NAN : found[j] > 0 ? g[j * length + i] / found[j] : 0;
      }
    }
    SYNC;
    if (VECTORS && LANE == 0) {
      long rank = 0;
      for (long j = 0; j < count; j++) rank += !good || found[j] > 0;
      complete(longer, rank, tall ? U_COLUMNS : VH_ROWS, length);
    }
    SYNC;
  }
}
