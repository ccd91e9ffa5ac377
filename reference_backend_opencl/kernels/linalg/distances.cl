/* Distances of points, and their gradient. After lengths.cl and direct.cl. Each of n.of[1] points is paired with each of
 * n.of[2] others, in as many stacks as the BATCH numbers of dims say to which both sets are broadcast; or, WITHIN one
 * set, with those behind it, and the pairs lie in rows of a triangle. A point has n.of[0] coordinates. Lanes are others
 * side by side, for which these are first turned over, in panels of PANEL points; in the gradient they are coordinates. */
#define WIDTH n.of[0]
#define POINTS n.of[1]
#define OTHERS n.of[2]
#define P NUMBER(3)
DEFINE_ACCESS(value, D)

/* Lanes from `skip` on, before n. */
static void put_value_behind(__global RAW(D) *to, int skip, int n, VT v) {
  if (skip == 0) {
    put_value(to, v, n);
    return;
  }
  RAW(D) lanes[VEC];
  STORE(D, __private, lanes, v);
  for (int l = skip; l < n; l++) to[l] = lanes[l];
}

/* Which set of each the stack is of: size and steps of each dim stand behind the other numbers. */
static long2 sets_of(long stack, const numbers *n) {
  long2 at = (long2)(0, 0);
  for (int d = 0; d < BATCH; d++) {
    long place = stack % n->of[4 + 3 * d];
    stack /= n->of[4 + 3 * d];
    at.x += place * n->of[5 + 3 * d];
    at.y += place * n->of[6 + 3 * d];
  }
  return at;
}

/* A coordinate of a panel's points, and of those that its last panel lacks, 0. */
KERNEL turn(PLACE(out), PLACE(in), PLACE(unused), numbers n) {
  long panels = (OTHERS + PANEL - 1) / PANEL;
  EACH_UNIT(row) {
    long c = row % WIDTH, panel = row / WIDTH % panels, first = panel * PANEL;
    __global const RAW(D) *from = ELEMENTS(in) + (row / WIDTH / panels * OTHERS + first) * WIDTH + c;
    __global RAW(D) *to = ELEMENTS(out) + row * PANEL;
    for (long j = 0; j < PANEL; j++) to[j] = first + j < OTHERS ? from[j * WIDTH] : (RAW(D))0;
  }
}

/* What a coordinate adds to a distance. Of differences that are no numbers the count of those beside 0 is none, either, which
 * a norm counts. */
#if LENGTH == COUNTED
static VT one_apart(VT d) { return d == d ? length_term(d, (CT)0) : d; }
#define ADD_DISTANCE(total, i, n, size, value, p) SUM(total, i, n, size, one_apart(value))
#else
#define ADD_DISTANCE ADD_LENGTH
#endif

/* Where the pairs of point i with those behind it begin. */
static long pairs_of(long i, long points) { return i * points - i * (i + 1) / 2; }

KERNEL distances(PLACE(out), PLACE(first), PLACE(turned), numbers n) {
  long chunks = (OTHERS + VEC - 1) / VEC, panels = (OTHERS + PANEL - 1) / PANEL;
  EACH_UNIT(unit) {
    long row = unit / chunks, j = unit % chunks * VEC, i = row % POINTS;
    int lanes = (int)min((long)VEC, OTHERS - j), skip = WITHIN ? (int)clamp(i + 1 - j, 0L, (long)VEC) : 0;
    if (skip >= lanes) continue;
    long2 sets = sets_of(row / POINTS, &n);
    __global const RAW(D) *a = ELEMENTS(first) + (sets.x * POINTS + i) * WIDTH;
    __global const RAW(D) *b = ELEMENTS(turned) + (sets.y * panels + j / PANEL) * WIDTH * PANEL + j % PANEL;
    VT total = LENGTH_OF_NONE;
    ADD_DISTANCE(total, c, unused, WIDTH, one_value(a + c) - get_value(b + c * PANEL, VEC), P)
    __global RAW(D) *to = ELEMENTS(out) + (WITHIN ? pairs_of(i, POINTS) - i - 1 : row * OTHERS) + j;
    put_value_behind(to, skip, lanes, length_of(total, P));
  }
}

#if LOCAL == 1 && !WITHIN
/* Of some points at a time to VEC others, whose coordinates are read once for all of them. Beyond the last point is the
 * last again. A piece is such points and such others. */
#define POINTS_AT_ONCE 4
#define APART 256 /* coordinates whose terms are summed before they meet those of others */
#define EACH_POINT _Pragma("unroll") for (int r = 0; r < POINTS_AT_ONCE; r++)

static INLINED void add_apart(VT total[POINTS_AT_ONCE], __global const RAW(D) *const a[POINTS_AT_ONCE], __global const RAW(D) * b,
                              long begin, long end, CT p) {
  CT own[POINTS_AT_ONCE][APART];
  EACH_POINT {
    for (long c = begin; c < end; c += VEC)
      VSTORE(get_value(a[r] + c, (int)min((long)VEC, end - c)), own[r] + (c - begin));
  }
  for (long c = begin; c < end; c++) {
    const VT other = LOAD(D, __global, b + c * PANEL);
    EACH_POINT {
      const VT apart = (VT)own[r][c - begin] - other;
#if LENGTH == SQUARED
      total[r] = fma(apart, apart, total[r]);
#elif LENGTH == MOST || LENGTH == LEAST
      total[r] = LARGER(length_term(apart, p), total[r]);
#elif LENGTH == COUNTED
      total[r] += one_apart(apart);
#else
      total[r] += length_term(apart, p);
#endif
    }
  }
}

KERNEL distances_together(PLACE(out), PLACE(first), PLACE(turned), numbers n) {
  const long chunks = (OTHERS + VEC - 1) / VEC, panels = (OTHERS + PANEL - 1) / PANEL;
  const long groups = (POINTS + POINTS_AT_ONCE - 1) / POINTS_AT_ONCE;
  EACH_UNIT(unit) {
    const long j = unit % chunks * VEC, group = unit / chunks, stack = group / groups, i = group % groups * POINTS_AT_ONCE;
    const long2 sets = sets_of(stack, &n);
    __global const RAW(D) *b = ELEMENTS(turned) + (sets.y * panels + j / PANEL) * WIDTH * PANEL + j % PANEL;
    __global const RAW(D) *a[POINTS_AT_ONCE];
    VT total[POINTS_AT_ONCE];
    EACH_POINT a[r] = ELEMENTS(first) + (sets.x * POINTS + min(i + r, POINTS - 1)) * WIDTH;
    EACH_POINT total[r] = LENGTH_OF_NONE;
    for (long begin = 0; begin < WIDTH; begin += APART) {
      VT part[POINTS_AT_ONCE];
      EACH_POINT part[r] = LENGTH_OF_NONE;
      add_apart(part, a, b, begin, min(begin + APART, WIDTH), P);
#if LENGTH == MOST || LENGTH == LEAST
      EACH_POINT total[r] = LARGER(part[r], total[r]);
#else
      EACH_POINT total[r] += part[r];
#endif
    }
    const int lanes = (int)min((long)VEC, OTHERS - j);
    EACH_POINT {
      if (i + r < POINTS)
        put_value(ELEMENTS(out) + (stack * POINTS + i + r) * OTHERS + j, length_of(total[r], P), lanes);
    }
  }
}
#endif

#define SIGN(d) ((d) > (VT)0 ? (VT)1 : (d) < (VT)0 ? (VT)(-1) : (VT)0)
/* The slope of |d|_p = length by coordinates d: 0 at 0. */
static VT slope(VT d, VT length, CT p) {
#if LENGTH == COUNTED
  return (VT)0;
#elif LENGTH == ADDED
  return SIGN(d);
#elif LENGTH == SQUARED
  return length == (VT)0 ? (VT)0 : d / length;
#elif LENGTH == POWERS
  VT size = fabs(d);
  VT share = length == (VT)0 ? (VT)0 : size / length;
  VT power = POW(share, (VT)(p - (CT)1));
  return size == (VT)0 || length == (VT)0 ? (VT)0 : SIGN(d) * power;
#else
  return fabs(d) == length ? SIGN(d) : (VT)0;
#endif
}

/* What a pair adds to the gradient of some coordinates of its first point. */
static VT pull(VT d, CT length, CT grad, CT p) { return slope(d, (VT)length, p) * (VT)grad; }

KERNEL pulls(PLACE(out), PLACE(grad), PLACE(first), PLACE(second), PLACE(lengths), numbers n) {
  long chunks = (WIDTH + VEC - 1) / VEC;
  EACH_UNIT(unit) {
    long row = unit / chunks, c = unit % chunks * VEC, i = row % POINTS;
    int lanes = (int)min((long)VEC, WIDTH - c);
    long2 sets = sets_of(row / POINTS, &n);
    VT own = get_value(ELEMENTS(first) + (sets.x * POINTS + i) * WIDTH + c, lanes), total = (VT)0;
    __global const RAW(D) *b = ELEMENTS(second) + sets.y * OTHERS * WIDTH + c, *l = ELEMENTS(lengths), *g = ELEMENTS(grad);
#if WITHIN
#define PAIR(j) (j < i ? pairs_of(j, POINTS) + i - j - 1 : pairs_of(i, POINTS) + j - i - 1)
#define IS_PAIR(j) (j != i)
#else
#define PAIR(j) (row * OTHERS + j)
#define IS_PAIR(j) true
#endif
    SUM(total, j, unused, OTHERS,
        IS_PAIR(j) ? pull(own - get_value(b + j * WIDTH, lanes), one_value(l + PAIR(j)), one_value(g + PAIR(j)), P)
                   : (VT)0)
    put_value(ELEMENTS(out) + row * WIDTH + c, total, lanes);
  }
}
