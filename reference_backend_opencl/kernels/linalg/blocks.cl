/* Blocks of a factorization's steps, after stacks.cl: the steps are taken on a few columns, and then all at once on the
 * strips of columns that are left. A strip is GROUPS groups side by side, of LANES numbers (linalg.c says how many): on
 * a CPU a vector of real numbers, else one number. On a GPU each lane has a strip of one column. */
#if LOCAL > 1
#define GROUPS 1
#elif LANES == 1
#define GROUPS 4
#else
#define GROUPS 2
#endif
#define STRIP (GROUPS * LANES)
#define TOGETHER 4 /* sweeps of rotations that turn a strip at a time: linalg.h has it, too */
#define BLOCK 32 /* steps, a multiple of TILE: the rows of a strip whose sums are in registers */

typedef struct {
  matrix at;
  long step, next; /* from row to row, from column to column */
  int wide;        /* columns, at most STRIP */
} strip;

/* Those from column j on. */
static strip strip_of(matrix at, long step, long next, long j, long columns) {
  return (strip){at + j * next, step, next, (int)min((long)STRIP, columns - j)};
}
#define EACH_STRIP(j, from, to) for (long j = (from) + STRIP * LANE; j < (to); j += STRIP * LOCAL)

#if LANES == 1
typedef CT group;
static group scale_add(RT r, group z, group c) { return SCALE_ADD(r, z, c); }
static group load_lanes(const_matrix from, long next, int count) { return count > 0 ? *from : (CT)0; }
static void store_lanes(group v, matrix to, long next, int count) {
  if (count > 0) *to = v;
}
static group keep_before(int first, group kept, group changed) { return first > 0 ? kept : changed; }
#else
typedef CAT(CT, LANES) group;
static group scale_add(RT r, group z, group c) { return fma((group)(r), z, c); }
static INLINED group load_lanes(const_matrix from, long next, int count) {
  if (next == 1 && count >= LANES) return CAT(vload, LANES)(0, from);
  CT parts[LANES];
  for (int l = 0; l < LANES; l++) parts[l] = l < count ? from[l * next] : 0;
  return CAT(vload, LANES)(0, parts);
}
static INLINED void store_lanes(group v, matrix to, long next, int count) {
  if (next == 1 && count >= LANES) {
    CAT(vstore, LANES)(v, 0, to);
    return;
  }
  CT parts[LANES];
  CAT(vstore, LANES)(v, 0, parts);
  for (int l = 0; l < min(count, LANES); l++) to[l * next] = parts[l];
}
/* The lanes before `first` of one, the others of the other. */
static INLINED group keep_before(int first, group kept, group changed) {
  if (first <= 0) return changed;
  CT lanes[LANES];
  for (int l = 0; l < LANES; l++) lanes[l] = l;
  return CAT(vload, LANES)(0, lanes) < (group)first ? kept : changed;
}
#endif

/* By halves: one after the other, each would wait for the one before. */
static CT sum_of_lanes(group v) {
#if LANES == 1
  return v;
#else
#if LANES == 16
  const CAT(CT, 8) eight = v.lo + v.hi;
#elif LANES == 8
  const group eight = v;
#endif
#if LANES >= 8
  const CAT(CT, 4) four = eight.lo + eight.hi;
#elif LANES == 4
  const group four = v;
#endif
#if LANES >= 4
  const CAT(CT, 2) two = four.lo + four.hi;
#else
  const group two = v;
#endif
  return two.x + two.y;
#endif
}

static INLINED group load_group(strip x, long i, int g) {
  return load_lanes(x.at + i * x.step + g * LANES * x.next, x.next, x.wide - g * LANES);
}
static INLINED void store_group(group v, strip x, long i, int g) {
  store_lanes(v, x.at + i * x.step + g * LANES * x.next, x.next, x.wide - g * LANES);
}

/* The strip, of columns from `first` on, becomes what lies likewise from `from` on, or the identity. */
static INLINED void begin_with(strip x, const_matrix from, long length, bool identity, long first) {
  const strip given = {(matrix)from, x.step, x.next, x.wide};
  for (long i = 0; i < length; i++) {
    for (int g = 0; !identity && g < GROUPS; g++) store_group(load_group(given, i, g), x, i, g);
    for (int c = 0; identity && c < x.wide; c++) x.at[i * x.step + c * x.next] = FROM_REAL(i == first + c);
  }
}

/* From row `from` of the strip to row `to`, up or down, each row and the next are turned: rotation i is that of rows i and
 * i + 1, and takes from the row ahead what it adds to the one behind. */
static INLINED void turn_rows(strip x, __global const RT *cosines, __global const RT *sines, long from, long to) {
  const long ahead = from < to ? 1 : -1;
  group kept[GROUPS];
  AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) kept[g] = load_group(x, from, g);
  for (long i = from; i != to; i += ahead) {
    const long turn = min(i, i + ahead);
    const RT c = cosines[turn], s = sines[turn];
    AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) {
      const group next = load_group(x, i + ahead, g);
      store_group(scale_add(s, next, c * kept[g]), x, i, g);
      kept[g] = scale_add(c, next, -s * kept[g]);
    }
  }
  AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) store_group(kept[g], x, to, g);
}

/* Likewise by TOGETHER sweeps one behind the other, each a row behind the one before: a row that one has left is at once
 * the next one's, and stays in registers until all have turned it. The numbers of a sweep stand `size` behind those of
 * the one before. */
static INLINED void turn_rows_together(strip x, __global const RT *cosines, __global const RT *sines, long size,
                                       long from, long to) {
  const long ahead = from < to ? 1 : -1;
  for (int k = 0; k < TOGETHER - 1; k++)
    turn_rows(x, cosines + k * size, sines + k * size, from, from + ahead * (TOGETHER - 1 - k));
  group kept[TOGETHER][GROUPS];
  long i = from + ahead * (TOGETHER - 1);
  AT_THE_SAME_TIME for (int k = 0; k < TOGETHER; k++) {
    AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) kept[k][g] = load_group(x, i - ahead * k, g);
  }
  for (; i != to; i += ahead) {
    const long turn = min(i, i + ahead);
    group next[GROUPS];
    AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) next[g] = load_group(x, i + ahead, g);
    AT_THE_SAME_TIME for (int k = 0; k < TOGETHER; k++) {
      const RT c = cosines[k * size + turn - ahead * k], s = sines[k * size + turn - ahead * k];
      AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) {
        const group left = scale_add(s, next[g], c * kept[k][g]);
        kept[k][g] = scale_add(c, next[g], -s * kept[k][g]);
        next[g] = left;
      }
    }
    AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) store_group(next[g], x, i - ahead * (TOGETHER - 1), g);
  }
  AT_THE_SAME_TIME for (int k = 0; k < TOGETHER; k++) {
    AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) store_group(kept[k][g], x, to - ahead * k, g);
  }
  for (int k = 1; k < TOGETHER; k++) turn_rows(x, cosines + k * size, sines + k * size, to - ahead * k, to);
}

/* Sweeps whose rotations are still to turn rows. Of each there are `kinds` rows of cos and as many of sin, taking
 * turns, of which [low, high) count: a sweep that does not reach as far stands still there. */
typedef struct {
  __global RT *turns;
  long size, low, high;
  int kinds, count;
} sweeps;

static __global RT *turns_of(sweeps s, int sweep, int row) {
  return s.turns + (sweep * 2 * s.kinds + row) * s.size;
}

static void stand_still(sweeps s, int sweep, long from, long to) {
  for (int row = 0; row < 2 * s.kinds; row++) {
    EACH_LANE(i, from, to) turns_of(s, sweep, row)[i] = row % 2 == 0;
  }
}

/* Whether one over rows low to high goes with those before: most of their rows are its own, too. */
static bool goes_with(sweeps s, long low, long high) {
  const long shared = min(s.high, high) - max(s.low, low), all = max(s.high, high) - min(s.low, low);
  return s.count == 0 || (s.count < TOGETHER && 2 * shared >= all);
}

/* With one more, over rows low to high, whose rotations are in their place, or are being put there. */
static sweeps with_sweep(sweeps s, long low, long high) {
  const sweeps before = s;
  s.low = s.count ? min(before.low, low) : low;
  s.high = s.count ? max(before.high, high) : high;
  for (int k = 0; k < before.count; k++) {
    stand_still(s, k, s.low, before.low);
    stand_still(s, k, before.high, s.high);
  }
  stand_still(s, s.count, s.low, low);
  stand_still(s, s.count, high, s.high);
  s.count++;
  return s;
}

/* The strip is turned by all of them, in their order, by the rotations of one kind: upwards from their last row, or
 * downwards from their first. */
static void turn_strip(strip x, sweeps s, int kind, bool up) {
  const long from = up ? s.high : s.low, to = up ? s.low : s.high;
  if (s.count == TOGETHER && s.high - s.low >= TOGETHER) {
    turn_rows_together(x, turns_of(s, 0, 2 * kind), turns_of(s, 0, 2 * kind + 1), 2 * s.kinds * s.size, from, to);
  } else {
    for (int k = 0; k < s.count; k++) turn_rows(x, turns_of(s, k, 2 * kind), turns_of(s, k, 2 * kind + 1), from, to);
  }
}

/* `wide` columns of a row, at most BLOCK. */
static INLINED void load_row(group row[BLOCK / LANES], const_matrix from, int wide) {
  for (int g = 0; g < BLOCK / LANES; g++) row[g] = load_lanes(from + g * LANES, 1, wide - g * LANES);
}

/* Such a row, but for the columns before `first`, loses another one times a factor. */
static INLINED void subtract_row(matrix to, const group row[BLOCK / LANES], CT factor, int first, int wide) {
  for (int g = 0; g < BLOCK / LANES; g++) {
    const int from = g * LANES;
    if (from + LANES <= first) continue;
    const group now = load_lanes(to + from, 1, wide - from), less = MULTIPLY_ADD((group)(-factor), row[g], now);
    store_lanes(keep_before(first - from, now, less), to + from, 1, wide - from);
  }
}

/* A matrix of factors: where they lie, and whether conjugated. */
typedef struct {
  const_matrix at;
  long down, right;
  bool conjugated;
} factor_matrix;

/* Rows [first, last) of the strip lose `count` rows, each times its factor: those of a row of the strip are a row. */
static INLINED void subtract_rows(strip x, long first, long last, factor_matrix f, const group (*rows)[GROUPS],
                                  int count) {
  for (long i = first; i < last; i += TILE) {
    group sum[TILE][GROUPS];
    const_matrix from[TILE];
    AT_THE_SAME_TIME for (int r = 0; r < TILE; r++) {
      const long row = min(i + r, last - 1); /* beyond the last, the last again */
      from[r] = f.at + row * f.down;
      AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) sum[r][g] = load_group(x, row, g);
    }
    for (int k = 0; k < count; k++) {
      AT_THE_SAME_TIME for (int r = 0; r < TILE; r++) {
        const group factor = (group)(-CONJ_IF(f.conjugated, from[r][k * f.right]));
        AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) sum[r][g] = MULTIPLY_ADD(factor, rows[k][g], sum[r][g]);
      }
    }
    AT_THE_SAME_TIME for (int r = 0; r < TILE; r++) {
      AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) {
        if (i + r < last) store_group(sum[r][g], x, i + r, g);
      }
    }
  }
}

static INLINED void load_rows(group (*rows)[GROUPS], strip x, long begin, int count) {
  for (int i = 0; i < count; i++) {
    for (int g = 0; g < GROUPS; g++) rows[i][g] = load_group(x, begin + i, g);
  }
}

/* Steps [begin, begin + count) of solving with a triangular factor: the strip's rows of these, in `rows`, too. */
static INLINED void solve_rows(group (*rows)[GROUPS], factor_matrix f, bool back, bool unit, strip x, long begin,
                               int count) {
  const_matrix corner = f.at + begin * (f.down + f.right);
  for (int done = 0; done < count; done++) {
    const int k = back ? count - 1 - done : done;
    const CT pivot = CONJ_IF(f.conjugated, corner[k * (f.down + f.right)]);
    for (int g = 0; g < GROUPS; g++) {
      if (!unit) rows[k][g] = DIVIDE(rows[k][g], (group)(pivot));
      store_group(rows[k][g], x, begin + k, g);
    }
    for (int i = back ? 0 : k + 1; i < (back ? k : count); i++) {
      const group factor = (group)(-CONJ_IF(f.conjugated, corner[i * f.down + k * f.right]));
      for (int g = 0; g < GROUPS; g++) rows[i][g] = MULTIPLY_ADD(factor, rows[k][g], rows[i][g]);
    }
  }
}

/* Such steps, and rows [first, last) lose what is theirs of the unknowns found. */
static INLINED void eliminate(factor_matrix f, bool back, bool unit, strip x, long begin, int count, long first,
                              long last) {
  group rows[BLOCK][GROUPS];
  load_rows(rows, x, begin, count);
  solve_rows(rows, f, back, unit, x, begin, count);
  f.at += begin * f.right;
  subtract_rows(x, first, last, f, rows, count);
}

/* rows = v^H x, for `count` columns of v, whose rows have `width`, a multiple of TILE, and the strip, both so long. */
static INLINED void project(group (*rows)[GROUPS], const_matrix v, long width, int count, strip x, long length) {
  for (int first = 0; first < count; first += TILE) {
    group sum[TILE][GROUPS];
    AT_THE_SAME_TIME for (int r = 0; r < TILE; r++) {
      AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) sum[r][g] = (group)(0);
    }
    for (long i = 0; i < length; i++) {
      group now[GROUPS];
      AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) now[g] = load_group(x, i, g);
      AT_THE_SAME_TIME for (int r = 0; r < TILE; r++) {
        const group factor = (group)(CONJ(v[i * width + first + r]));
        AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) sum[r][g] = MULTIPLY_ADD(factor, now[g], sum[r][g]);
      }
    }
    AT_THE_SAME_TIME for (int r = 0; r < TILE; r++) {
      AT_THE_SAME_TIME for (int g = 0; g < GROUPS; g++) rows[first + r][g] = sum[r][g];
    }
  }
}
