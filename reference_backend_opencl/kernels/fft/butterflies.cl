/* What kernels of Fourier transforms share: points that are vectors, lanes being lines, and the butterflies of a tile of
 * such. */
/* Of the flags of a transform: real and imaginary parts change places. */
#define SWAP_LOADED 8
#define SWAP_STORED 256

typedef struct {
  CT re, im;
} pair;

typedef struct {
  VT re, im;
} point;

#if LOCAL == 1
#define SPACE __global
#define SYNC
#else
#define SPACE __local
#define SYNC barrier(CLK_LOCAL_MEM_FENCE)
#endif

/* Where element i of a lane stands in a tile. */
static int element(int i, int lane, int lanes) { return LOCAL == 1 ? i : i * lanes + lane; }

static pair pair_at(__global const CT *table, long i) { return (pair){table[2 * i], table[2 * i + 1]}; }

#if VEC > 1
/* VEC complex numbers side by side, as a vector of each part. */
static INLINED point load_points(__global const CT *from) {
  VT low = CAT(vload, VEC)(0, from), high = CAT(vload, VEC)(1, from);
  return (point){(VT)(low.even, high.even), (VT)(low.odd, high.odd)};
}
static INLINED void store_points(__global CT *to, point v) {
  CAT(vstore, VEC)(LOWER_IN_TURN(v.re, v.im), 0, to);
  CAT(vstore, VEC)(UPPER_IN_TURN(v.re, v.im), 1, to);
}
#endif

static INLINED point get(SPACE const VT *tile, int i) { return (point){tile[2 * i], tile[2 * i + 1]}; }
static INLINED void put(SPACE VT *tile, int i, point v) {
  tile[2 * i] = v.re;
  tile[2 * i + 1] = v.im;
}
static INLINED point plus(point a, point b) { return (point){a.re + b.re, a.im + b.im}; }
static INLINED point minus(point a, point b) { return (point){a.re - b.re, a.im - b.im}; }
static INLINED point swapped_if(point v, int swaps) { return swaps ? (point){v.im, v.re} : v; }
static INLINED point quarter(point a) { return (point){a.im, -a.re}; } /* times -i */
static INLINED point stretched(point a, CT by) { return (point){a.re * by, a.im * by}; }
static INLINED point times(point a, pair w) {
  return (point){a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re};
}

/* A butterfly: column q of group p, in one lane. Its points are before * behind apart, and its results, which go in
 * order to every before-th element, are times the powers of root p * before. */
typedef struct {
  int p, q, lane;
} butterfly;

/* One stage of a tile, and the roots. */
typedef struct {
  SPACE const VT *x;
  SPACE VT *y;
  __global const CT *table;
  int radix, before, behind, lanes;
} stage;

#define POINT(j) get(s.x, element(at.q + s.before * (at.p + (j)*s.behind), at.lane, s.lanes))
#define RESULT(j, v)                                                                      \
  put(s.y, element(at.q + s.before * (s.radix * at.p + (j)), at.lane, s.lanes),           \
      at.p && (j) ? times(v, pair_at(s.table, (long)(j)*at.p * s.before)) : (v))

static INLINED void radix_2(stage s, butterfly at) {
  point a = POINT(0), b = POINT(1);
  RESULT(0, plus(a, b));
  RESULT(1, minus(a, b));
}

static INLINED void radix_3(stage s, butterfly at) {
  point a = POINT(0), b = POINT(1), c = POINT(2), sum = plus(b, c);
  point middle = minus(a, stretched(sum, K(0.5)));
  point side = quarter(stretched(minus(b, c), K(0.866025403784438646763723170752936183)));
  RESULT(0, plus(a, sum));
  RESULT(1, plus(middle, side));
  RESULT(2, minus(middle, side));
}

static INLINED void radix_4(stage s, butterfly at) {
  point a = POINT(0), b = POINT(1), c = POINT(2), d = POINT(3);
  point even = plus(a, c), odd = plus(b, d), left = minus(a, c), right = quarter(minus(b, d));
  RESULT(0, plus(even, odd));
  RESULT(1, plus(left, right));
  RESULT(2, minus(even, odd));
  RESULT(3, minus(left, right));
}

/* Cosines and sines of a fifth of a turn and of two. */
static INLINED void radix_5(stage s, butterfly at) {
  const CT c1 = K(0.309016994374947424102293417182819059), c2 = K(-0.809016994374947424102293417182819059);
  const CT s1 = K(0.951056516295153572116439333379382143), s2 = K(0.587785252292473129168705954639072769);
  point a = POINT(0), b = POINT(1), c = POINT(2), d = POINT(3), e = POINT(4);
  point outer = plus(b, e), inner = plus(c, d), wide = minus(b, e), narrow = minus(c, d);
  point middle_1 = plus(a, plus(stretched(outer, c1), stretched(inner, c2)));
  point middle_2 = plus(a, plus(stretched(outer, c2), stretched(inner, c1)));
  point side_1 = quarter(plus(stretched(wide, s1), stretched(narrow, s2)));
  point side_2 = quarter(minus(stretched(wide, s2), stretched(narrow, s1)));
  RESULT(0, plus(a, plus(outer, inner)));
  RESULT(1, plus(middle_1, side_1));
  RESULT(2, plus(middle_2, side_2));
  RESULT(3, minus(middle_2, side_2));
  RESULT(4, minus(middle_1, side_1));
}

/* From two of radix 4. h: the cosine of an eighth of a turn. */
static INLINED void radix_8(stage s, butterfly at) {
  const CT h = K(0.707106781186547524400844362104849039);
  point a = POINT(0), b = POINT(1), c = POINT(2), d = POINT(3), e = POINT(4), f = POINT(5), g = POINT(6), i = POINT(7);
  point ae = plus(a, e), cg = plus(c, g), left = minus(a, e), right = quarter(minus(c, g));
  point bf = plus(b, f), di = plus(d, i), left_odd = minus(b, f), right_odd = quarter(minus(d, i));
  point odd_1 = plus(left_odd, right_odd), odd_3 = minus(left_odd, right_odd);
  point turned_1 = stretched((point){odd_1.re + odd_1.im, odd_1.im - odd_1.re}, h);
  point turned_2 = quarter(minus(bf, di));
  point turned_3 = stretched((point){odd_3.im - odd_3.re, -odd_3.re - odd_3.im}, h);
  point even_0 = plus(ae, cg), even_1 = plus(left, right), even_2 = minus(ae, cg), even_3 = minus(left, right);
  point odd_0 = plus(bf, di);
  RESULT(0, plus(even_0, odd_0));
  RESULT(1, plus(even_1, turned_1));
  RESULT(2, plus(even_2, turned_2));
  RESULT(3, plus(even_3, turned_3));
  RESULT(4, minus(even_0, odd_0));
  RESULT(5, minus(even_1, turned_1));
  RESULT(6, minus(even_2, turned_2));
  RESULT(7, minus(even_3, turned_3));
}

/* Any other prime: each result is a sum over the points. root: the step between roots of this order in the table. */
static INLINED void radix_any(stage s, butterfly at) {
  const int root = s.before * s.behind;
  for (int k = 0; k < s.radix; k++) {
    point sum = POINT(0);
    for (int j = 1, r = k; j < s.radix; j++, r = r + k < s.radix ? r + k : r + k - s.radix) {
      sum = plus(sum, times(POINT(j), pair_at(s.table, (long)r * root)));
    }
    RESULT(k, sum);
  }
}

/* A CPU's stage: all butterflies of a radix. */
#define FROM_GROUP(first, radix)                                       \
  for (int p = (first); p < s.behind; p++) {                           \
    for (int q = 0; q < s.before; q++) radix(s, (butterfly){p, q, 0}); \
  }
/* Group 0, which takes no roots, has code of its own where it is the usual one. */
#define WITHOUT_ROOTS(radix) \
  for (int q = 0; q < s.before; q++) radix(s, (butterfly){0, q, 0});
