/* Singular values, by Jacobi's rotations; after stacks.cl. In a round every index
 * is in one pair, as in a tournament, so that the lanes rotate pairs side by side. Of the numbers (jacobi.c has them,
 * too): */
#define ROWS n.of[0]
#define COLUMNS n.of[1]
#define VECTORS n.of[2] /* they are wanted */
#define WORK n.of[3]    /* numbers of work for each matrix */
#define U_COLUMNS n.of[4]
#define VH_ROWS n.of[5]
#define SWEEPS 40

/* Pair t of a round among `players`, an even number; the last one stays where it is. */
static void pair_of(long players, long round, long t, long *p, long *q) {
  const long circle = players - 1;
  const long a = t == 0 ? circle : (round + t) % circle, b = (round + circle - t) % circle;
  *p = min(a, b);
  *q = max(a, b);
}

/* A real number, of any sign where b is real, and a phase whose product is b. */
static RT without_phase(CT b, CT *phase) {
#ifdef CLASS_COMPLEX
  *phase = DIRECTION(b);
  return MODULUS(b);
#else
  *phase = 1;
  return b;
#endif
}

/* cos, and sin times the phase, of the rotation that takes b to 0 in [[a, b], [conj(b), d]]. */
static void rotation(RT a, CT b, RT d, RT *c, CT *s) {
  CT phase;
  const RT beside = without_phase(b, &phase), theta = (d - a) / (2 * beside);
  const RT t = (theta >= 0 ? (RT)1 : (RT)-1) / (fabs(theta) + hypot(theta, (RT)1));
  *c = 1 / sqrt(fma(t, t, (RT)1));
  *s = t * *c * phase;
}

/* Numbers step apart, of p and of q: columns times [[c, s], [-conj(s), c]]. */
static void rotate(matrix p, matrix q, long count, long step, RT c, CT s) {
  for (long i = 0; i < count; i++) {
    const CT x = p[i * step], y = q[i * step];
    p[i * step] = SCALE_ADD(c, x, MUL(-CONJ(s), y));
    q[i * step] = MULTIPLY_ADD(s, x, c * y);
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
    for (long i = 0; i < length; i++) x[i * q.component] = FROM_REAL(i == unit);
    for (int twice = 0; twice < 2; twice++) {
      for (long k = 0; k < j; k++) {
        CT dot = 0;
        for (long i = 0; i < length; i++) {
          dot = MULTIPLY_ADD(CONJ(q.at[i * q.component + k * q.vector]), x[i * q.component], dot);
        }
        for (long i = 0; i < length; i++) {
          x[i * q.component] = MULTIPLY_ADD(-dot, q.at[i * q.component + k * q.vector], x[i * q.component]);
        }
      }
    }
    RT squares = 0;
    for (long i = 0; i < length; i++) squares = ADD_SQUARE(x[i * q.component], squares);
    if (squares * length < (RT)0.5) continue; /* some unit vector keeps at least so much */
    const RT scale = 1 / sqrt(squares);
    for (long i = 0; i < length; i++) x[i * q.component] *= scale;
    j++;
  }
}

/* Rows p and q, of so many numbers, become orthogonal; the same is done to those of v. Whether they were not. */
static bool orthogonalize(matrix g, matrix v, long p, long q, long length, long count) {
  RT a = 0, d = 0, c;
  CT dot = 0, s;
  for (long i = 0; i < length; i++) {
    const CT x = g[p * length + i], y = g[q * length + i];
    a = ADD_SQUARE(x, a);
    d = ADD_SQUARE(y, d);
    dot = MULTIPLY_ADD(CONJ(x), y, dot);
  }
  if (!(MODULUS(dot) > 2 * EPSILON * sqrt(a) * sqrt(d))) return false;
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
    matrix g = MATRIX(work) + b * WORK, v = g + length * count;
    __global RT *found = (__global RT *)(v + count * count), *turned = found + count;
    RT most = 0;
    for (long i = 0; i < rows * columns; i++) most = fmax(most, LARGEST_PART(from[i]));
    const bool good = most <= MAXIMUM;
    const RT scale = good && most > 0 ? most : (RT)1;
    EACH_LANE(j, 0, count) {
      for (long i = 0; i < length; i++) g[j * length + i] = (tall ? from[i * columns + j] : from[j * columns + i]) / scale;
      for (long i = 0; i < count; i++) v[j * count + i] = FROM_REAL(i == j);
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
      RT squares = 0;
      for (long i = 0; i < length; i++) squares = ADD_SQUARE(g[j * length + i], squares);
      found[j] = sqrt(squares);
    }
    SYNC;
    const basis left = {MATRIX(u) + b * rows * U_COLUMNS, U_COLUMNS, 1};
    const basis right = {MATRIX(vh) + b * VH_ROWS * columns, 1, columns};
    const basis longer = tall ? left : right, shorter = tall ? right : left;
    EACH_LANE(j, 0, count) {
      const long at = good ? place_in_order(found, count, j, true) : j;
      REALS(s)[b * count + at] = good ? found[j] * scale : (RT)NAN;
      for (long i = 0; VECTORS && i < count; i++) {
        shorter.at[i * shorter.component + at * shorter.vector] = good ? CONJ(v[j * count + i]) : (CT)NAN;
      }
      for (long i = 0; VECTORS && i < length; i++) {
        const CT unit = found[j] > 0 ? g[j * length + i] / found[j] : (CT)0;
        longer.at[i * longer.component + at * longer.vector] = good ? unit : (CT)NAN;
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
