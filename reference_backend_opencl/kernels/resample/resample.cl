/* Resampling of planes, after direct.cl: an element of the result is a sum over taps, which each dim has in a table:
 * those of place o are entries first[o] to first[o + 1] - 1 of indices and weights, which all dims share. A gradient is
 * the same with the tables transposed. The head defines WT, the type of weights. */
#define FROM(d) n.of[d]
#define TO(d) n.of[3 + (d)]
#define PLANES n.of[6]
#define MOVES n.of[8] /* each element of the result is one of the input: a tap of weight 1 along each dim */

/* A sum of which `term` is the first, which counts as it is, -0 too, or one more. */
static CT joined(bool first, CT sum, CT term) { return first ? term : ADD(sum, term); }

/* Sums are of at most SPAN terms, then of such sums, of lines and of planes, so that rounding errors do not grow with the
 * number of taps. */
#define SPAN 64

/* The taps of all dims, as the table holds them. */
typedef struct {
  __global const int *first[3], *indices;
  __global const WT *weights;
} taps;

static taps taps_of(__global const int *table, const numbers *n) {
  taps t;
  t.first[0] = table;
  t.first[1] = t.first[0] + n->of[3] + 1;
  t.first[2] = t.first[1] + n->of[4] + 1;
  t.indices = t.first[2] + n->of[5] + 1;
  const long ints = (t.indices - table) + t.first[2][n->of[5]];
  t.weights = (__global const WT *)(table + (ints + 1) / 2 * 2);
  return t;
}

#if LOCAL == 1
/* The taps of a line from k to end. */
static CT line_sum(__global const RAW(D) * line, __global const int *indices, __global const WT *weights, WT weight,
                   int k, int end) {
  CT sum = 0;
  for (int begin = k; k < end;) {
    CT part = 0;
    const int first = k, stop = min(k + SPAN, end);
    for (; k < stop; k++) part = joined(k == first, part, GET(line + indices[k]) * (weight * weights[k]));
    sum = joined(first == begin, sum, part);
  }
  return sum;
}

/* Elements c to last - 1 of a row, each from the lines that entries a0 to a1 - 1 and b0 to b1 - 1 name. */
static void row_of_sums(__global RAW(D) * to, __global const RAW(D) * from, long rows, long columns, const taps *t, int a0,
                        int a1, int b0, int b1, long c, long last) {
  for (; c < last; c++) {
    CT sum = 0;
    for (int i = a0; i < a1; i++) {
      CT lines = 0;
      for (int j = b0; j < b1; j++) {
        const long line = ((long)t->indices[i] * rows + t->indices[j]) * columns;
        lines = joined(j == b0, lines, line_sum(from + line, t->indices, t->weights, t->weights[i] * t->weights[j],
                                                t->first[2][c], t->first[2][c + 1]));
      }
      sum = joined(i == a0, sum, lines);
    }
    PUT(to + c, sum);
  }
}

/* On a CPU a piece is a row of the result. A stretch of a row is made in two steps, where its taps lie in a stretch of the input and are few: the lines
 * are joined, side by side, and then what the taps name of that. */
#define STRETCH 256
#define REACH 1024
#define LINES 16

/* Where the taps of elements c to last - 1 begin in a line, and how far they reach; 0: too far, or too many. */
static int reach_of(const taps *t, long c, long last, int *low) {
  int high = -1;
  *low = INT_MAX;
  for (; c < last; c++) {
    if (t->first[2][c + 1] - t->first[2][c] > SPAN) return 0;
    for (int k = t->first[2][c]; k < t->first[2][c + 1]; k++) {
      *low = min(*low, t->indices[k]);
      high = max(high, t->indices[k]);
    }
  }
  return high < *low || high - *low >= REACH ? 0 : high - *low + 1;
}

/* So many elements of two taps each, as all but those at the ends have where a picture grows, go at once. */
#define PAIRS 16

static int are_pairs(__global const int *first) {
  int others = first[PAIRS] - first[0] != 2 * PAIRS;
  for (int j = 0; j < PAIRS && !others; j++) others = first[j + 1] - first[j] != 2;
  return !others;
}

static INLINED void sum_pairs(__global RAW(D) * to, const CT *lines, int low, __global const int *indices,
                              __global const WT *weights) {
  CT sums[PAIRS];
#pragma unroll
  for (int j = 0; j < PAIRS; j++) {
    const CT term = lines[indices[2 * j] - low] * weights[2 * j];
    sums[j] = ADD(term, lines[indices[2 * j + 1] - low] * weights[2 * j + 1]);
  }
#pragma unroll
  for (int j = 0; j < PAIRS; j++) PUT(to + j, sums[j]);
}

/* How the elements of a stretch come from the lines, once for all rows of a work-item: so many at a time from PAIRS numbers of
 * the lines, by vpermps, where PERMUTES says that it may stand in a kernel; those left over one by one. */
#ifdef PERMUTES
typedef struct {
  long at;    /* of the first element */
  int number; /* of the first of the lines' numbers */
  uint16 left, right;
  float16 left_weights, right_weights;
} permutation;

typedef struct {
  int permutations, singles;
  permutation permutation[2 * STRETCH / PAIRS];
  long single[STRETCH];
} recipe;

static float16 permuted(float16 v, uint16 places) {
  float16 to;
  __asm("vpermps %2, %1, %0" : "=v"(to) : "v"(places), "v"(v));
  return to;
}

/* Whether the elements from c on can be made at once; then *p is how. */
static int permutes(permutation *p, const taps *t, long c, int low) {
  if (!are_pairs(t->first[2] + c)) return 0;
  __global const int *indices = t->indices + t->first[2][c];
  __global const WT *weights = t->weights + t->first[2][c];
  int lowest = INT_MAX, highest = 0;
  for (int k = 0; k < 2 * PAIRS; k++) lowest = min(lowest, indices[k]), highest = max(highest, indices[k]);
  if (highest - lowest >= PAIRS) return 0;
  uint places[2][PAIRS];
  float by[2][PAIRS];
  for (int k = 0; k < 2 * PAIRS; k++) {
    places[k % 2][k / 2] = (uint)(indices[k] - lowest);
    by[k % 2][k / 2] = weights[k];
  }
  p->at = c;
  p->number = lowest - low;
  p->left = vload16(0, places[0]);
  p->right = vload16(0, places[1]);
  p->left_weights = vload16(0, by[0]);
  p->right_weights = vload16(0, by[1]);
  return 1;
}

/* The last ones of a run of pairs may go with some before them, which are then made twice. */
static void recipe_of(recipe *r, const taps *t, long c, long last, int low) {
  const long begin = c;
  r->permutations = r->singles = 0;
  while (c < last) {
    permutation *next = r->permutation + r->permutations;
    long end = c;
    while (end < last && end < c + PAIRS && t->first[2][end + 1] - t->first[2][end] == 2) end++;
    if (end > c && end - PAIRS >= begin && permutes(next, t, end - PAIRS, low)) {
      r->permutations++;
      c = end;
    } else if (end == c + PAIRS && permutes(next, t, c, low)) {
      r->permutations++;
      c = end;
    } else {
      r->single[r->singles++] = c++;
    }
  }
}

static INLINED void permute(__global RAW(D) * to, const CT *lines, const permutation *p) {
  const float16 numbers = vload16(0, lines + p->number);
  CT sums[PAIRS];
  vstore16(ADD(permuted(numbers, p->left) * p->left_weights, permuted(numbers, p->right) * p->right_weights), 0, sums);
#pragma unroll
  for (int j = 0; j < PAIRS; j++) PUT(to + p->at + j, sums[j]);
}
#endif

static CT sum_one(const CT *lines, const taps *t, long c, int low) {
  int k = t->first[2][c];
  const int end = t->first[2][c + 1];
  CT sum = 0;
  if (k < end) sum = lines[t->indices[k] - low] * t->weights[k];
  for (k++; k < end; k++) sum = ADD(sum, lines[t->indices[k] - low] * t->weights[k]);
  return sum;
}

#ifdef PERMUTES
#define RECIPE , const recipe *recipe
#define BY_RECIPE , &recipe
#else
#define RECIPE
#define BY_RECIPE
#endif

static void row_in_two_steps(__global RAW(D) * to, __global const RAW(D) * from, long rows, long columns, const taps *t,
                             int a0, int a1, int b0, int b1, long c, long last, int low, int reach RECIPE) {
  CT lines[REACH + PAIRS];
  for (int x = reach; x < reach + PAIRS; x++) lines[x] = 0; /* read, but never asked for */
  for (int i = a0; i < a1; i++) {
    for (int j = b0; j < b1; j++) {
      __global const RAW(D) *line = from + ((long)t->indices[i] * rows + t->indices[j]) * columns + low;
      const WT weight = t->weights[i] * t->weights[j];
      if (i == a0 && j == b0) {
        for (int x = 0; x < reach; x++) lines[x] = GET(line + x) * weight;
      } else {
        for (int x = 0; x < reach; x++) lines[x] = ADD(lines[x], GET(line + x) * weight);
      }
    }
  }
#ifdef PERMUTES
  for (int i = 0; i < recipe->permutations; i++) permute(to, lines, recipe->permutation + i);
  for (int i = 0; i < recipe->singles; i++) PUT(to + recipe->single[i], sum_one(lines, t, recipe->single[i], low));
#else
  __global const int *first = t->first[2];
  while (c < last) {
    if (c + PAIRS <= last && are_pairs(first + c)) {
      sum_pairs(to + c, lines, low, t->indices + first[c], t->weights + first[c]);
      c += PAIRS;
      continue;
    }
    PUT(to + c, sum_one(lines, t, c, low));
    c++;
  }
#endif
}

/* So many elements that lie side by side on either side go at once. */
#define RUN 16

static INLINED void copy_run(__global RAW(D) * to, __global const RAW(D) * from) {
  RAW(D) run[RUN];
#pragma unroll
  for (int k = 0; k < RUN; k++) run[k] = from[k];
#pragma unroll
  for (int k = 0; k < RUN; k++) to[k] = run[k];
}

/* The elements of a line that the taps name. */
static void pick(__global RAW(D) * to, __global const RAW(D) * line, __global const int *indices, long count) {
  long c = 0;
  for (; c + RUN <= count; c += RUN) {
    int apart = 0;
    for (int k = 0; k < RUN; k++) apart |= indices[c + k] ^ (indices[c] + k);
    if (!apart) {
      copy_run(to + c, line + indices[c]);
    } else {
      for (int k = 0; k < RUN; k++) to[c + k] = line[indices[c + k]];
    }
  }
  for (; c < count; c++) to[c] = line[indices[c]];
}

/* Elements of a line that lie side by side on either side, in as long stretches as there are; all rows have the same. */
#define RUNS_MOST 16
typedef struct {
  int count; /* 0: too many */
  long at[RUNS_MOST], from[RUNS_MOST], elements[RUNS_MOST];
} long_runs;

static void find_runs(long_runs *r, __global const int *indices, long count) {
  r->count = 0;
  for (long c = 0; c < count;) {
    long end = c + 1;
    while (end < count && indices[end] == indices[end - 1] + 1) end++;
    if (r->count == RUNS_MOST) {
      r->count = 0;
      return;
    }
    r->at[r->count] = c;
    r->from[r->count] = indices[c];
    r->elements[r->count++] = end - c;
    c = end;
  }
}

/* The last ones of a run go with some before them, if there are as many. */
static void move_runs(__global RAW(D) * to, __global const RAW(D) * line, const long_runs *r) {
  for (int i = 0; i < r->count; i++) {
    __global RAW(D) *at = to + r->at[i];
    __global const RAW(D) *from = line + r->from[i];
    const long count = r->elements[i];
    long k = 0;
    for (; k + RUN <= count; k += RUN) copy_run(at + k, from + k);
    if (k < count && count >= RUN) copy_run(at + count - RUN, from + count - RUN);
    else for (; k < count; k++) at[k] = from[k];
  }
}

/* Rows of single elements; one from the same line as the row before is copied from there. Rows follow each other, so that
 * only the first one's place is divided for. */
static void move_rows(__global RAW(D) * out, __global const RAW(D) * in, const taps *t, numbers n) {
  const long size = TO(2), high = TO(0), wide = TO(1);
  __global const int *above = t->indices + t->first[0][0], *beside = t->indices + t->first[1][0];
  long before = -1, next = -1, plane = 0, a = 0, b = 0;
  long_runs runs;
  find_runs(&runs, t->indices + t->first[2][0], size);
  EACH_UNIT(row) {
    if (row != next) {
      const long lines = divided(row, wide);
      plane = divided(lines, high);
      a = lines - plane * high;
      b = row - lines * wide;
    }
    const long line = (plane * FROM(0) + above[a]) * FROM(1) + beside[b];
    next = row + 1;
    if (++b == wide) {
      b = 0;
      if (++a == high) a = 0, plane++;
    }
    __global RAW(D) *to = out + row * size;
    if (line == before) {
      long c = 0;
      for (; c + RUN <= size; c += RUN) copy_run(to + c, to - size + c);
      for (; c < size; c++) to[c] = to[c - size];
    } else if (runs.count > 0) {
      move_runs(to, in + line * FROM(2), &runs);
    } else {
      pick(to, in + line * FROM(2), t->indices + t->first[2][0], size);
    }
    before = line;
  }
}

KERNEL resample(PLACE(out), PLACE(in), __global const int *table, numbers n) {
  const taps t = taps_of(table, &n);
  if (MOVES) {
    move_rows(ELEMENTS(out), ELEMENTS(in), &t, n);
    return;
  }
  for (long c = 0; c < TO(2); c += STRETCH) {
    const long last = min(c + STRETCH, TO(2));
    int low;
    const int reach = reach_of(&t, c, last, &low);
#ifdef PERMUTES
    recipe recipe;
    if (reach > 0) recipe_of(&recipe, &t, c, last, low);
#endif
    EACH_UNIT(row) {
      const long above = divided(row, TO(1)), plane = divided(above, TO(0)), b = row - above * TO(1);
      const long a = above - plane * TO(0);
      __global const RAW(D) *from = ELEMENTS(in) + plane * FROM(0) * FROM(1) * FROM(2);
      __global RAW(D) *to = ELEMENTS(out) + row * TO(2);
      const int a0 = t.first[0][a], a1 = t.first[0][a + 1], b0 = t.first[1][b], b1 = t.first[1][b + 1];
      if (reach > 0 && a1 > a0 && b1 > b0 && (a1 - a0) * (b1 - b0) <= LINES) {
        row_in_two_steps(to, from, FROM(1), FROM(2), &t, a0, a1, b0, b1, c, last, low, reach BY_RECIPE);
        continue;
      }
      row_of_sums(to, from, FROM(1), FROM(2), &t, a0, a1, b0, b1, c, last);
    }
  }
}
#else
/* Else a work-item makes the elements at one place of up to AT_ONCE planes, for which it reads the table once; those of
 * neighbours lie side by side. A piece is a place of `each` planes that follow each other. */
#define AT_ONCE 8
#define EACH_OF_PIECE n.of[7]
#define IN_PIECE(p) for (int p = 0; p < AT_ONCE; p++)

/* The taps of a line from k to end, for the planes that there are. */
static void line_sums(CT *sums, __global const RAW(D) * line, long plane, int planes, const taps *t, WT weight, int k,
                      int end) {
  IN_PIECE(p) sums[p] = 0;
  for (int begin = k; k < end;) {
    CT parts[AT_ONCE];
    const int first = k, stop = min(k + SPAN, end);
    IN_PIECE(p) parts[p] = 0;
    for (; k < stop; k++) {
      const WT by = weight * t->weights[k];
      __global const RAW(D) *at = line + t->indices[k];
#pragma unroll
      IN_PIECE(p) {
        if (p < planes) parts[p] = joined(k == first, parts[p], GET(at + p * plane) * by);
      }
    }
    IN_PIECE(p) sums[p] = joined(first == begin, sums[p], parts[p]);
  }
}

KERNEL resample(PLACE(out), PLACE(in), __global const int *table, numbers n) {
  const long unit = get_global_id(0), places = TO(0) * TO(1) * TO(2);
  if (unit >= n.units) return;
  const taps t = taps_of(table, &n);
  const long piece = divided(unit, places), place = unit - piece * places, line = divided(place, TO(2));
  const long c = place - line * TO(2), a = divided(line, TO(1)), b = line - a * TO(1);
  const int a0 = t.first[0][a], a1 = t.first[0][a + 1], b0 = t.first[1][b], b1 = t.first[1][b + 1];
  const int c0 = t.first[2][c], c1 = t.first[2][c + 1];
  const long first = piece * EACH_OF_PIECE, plane = FROM(0) * FROM(1) * FROM(2);
  const int planes = (int)min(EACH_OF_PIECE, PLANES - first);
  __global const RAW(D) *from = ELEMENTS(in) + first * plane;
  CT sums[AT_ONCE], rows[AT_ONCE], columns[AT_ONCE];
  IN_PIECE(p) sums[p] = 0;
  for (int i = a0; i < a1; i++) {
    IN_PIECE(p) rows[p] = 0;
    for (int j = b0; j < b1; j++) {
      const long at = ((long)t.indices[i] * FROM(1) + t.indices[j]) * FROM(2);
      line_sums(columns, from + at, plane, planes, &t, t.weights[i] * t.weights[j], c0, c1);
      IN_PIECE(p) rows[p] = joined(j == b0, rows[p], columns[p]);
    }
    IN_PIECE(p) sums[p] = joined(i == a0, sums[p], rows[p]);
  }
  __global RAW(D) *to = ELEMENTS(out) + first * places + place;
#pragma unroll
  IN_PIECE(p) {
    if (p < planes) PUT(to + p * places, sums[p]);
  }
}
#endif
