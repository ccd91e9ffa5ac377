/* Systems of triangular factors that are worth many work-items, after direct.cl, stacks.cl and systems.cl: a work-group
 * has a few of the right sides and takes BLOCK steps at a time, of which what they leave to the other rows is a product. */
#define BLOCK 32
#define ACROSS 16 /* right sides of a work-group */
#define ITEMS 256
#define DOWN (ITEMS / ACROSS)
#define ROWS_EACH (TALL / DOWN)
#define MOST_ROWS 4096 /* of a factor with exchanges */

/* The right sides of a work-group, so many: x steps from row to row and from one to the next. Where rows are exchanged
 * behind the solving, each stands all along where it then belongs. */
typedef struct {
  matrix at;
  long step, next;
  int wide;
  bool moved;
} sides;
#define PART(x, i, c) ((x).at[((x).moved ? (long)from[i] : (i)) * (x).step + (c) * (x).next])

/* The factor, whose rows go down by one number and to the right by another. */
typedef struct {
  const_matrix at;
  long down, right, size;
  bool conjugated, back, unit;
} triangle;

/* Where each row has come from, after all exchanges. A pivot that names no row is passed over, and reported. */
static INLINED void find_rows(__local int *from, __local int *chosen, __global const int *pivots, long size, int op,
                              __global long *faults) {
  const int id = (int)get_local_id(0);
  for (long i = id; i < size; i += ITEMS) from[i] = (int)i;
  for (long begin = 0; begin < size; begin += ITEMS) {
    const long k = begin + id, row = k < size ? pivots[k] - 1L : 0;
    const bool named = row >= 0 && row < size;
    if (k < size && !named) REPORT(faults, op, row + 1, FAULT_PIVOT);
    chosen[id] = (int)(named ? row : k);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; id == 0 && i < ITEMS && begin + i < size; i++) {
      const int kept = from[begin + i];
      from[begin + i] = from[chosen[i]];
      from[chosen[i]] = kept;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

/* BLOCK steps from `begin` on, of so many that there are: each lane a right side; the first step is always the first row
 * of the square, which is turned about where the last row comes first. */
static INLINED void solve_square(__local CT (*factor)[BLOCK + 1], __local CT (*found)[ACROSS + 1],
                                 __local const int *from, triangle t, sides x, long begin, int count) {
  const int id = (int)get_local_id(0);
  for (int p = id; p < BLOCK * BLOCK; p += ITEMS) {
    const int i = t.right == 1 ? p / BLOCK : p % BLOCK, k = t.right == 1 ? p % BLOCK : p / BLOCK;
    const long row = begin + (t.back ? count - 1 - i : i), column = begin + (t.back ? count - 1 - k : k);
    const bool given = i < count && k < i + !t.unit;
    factor[i][k] = given ? CONJ_IF(t.conjugated, t.at[row * t.down + column * t.right]) : FROM_REAL(i == k);
  }
  for (int p = id; p < BLOCK * ACROSS; p += ITEMS) {
    const int i = p / ACROSS, c = p % ACROSS;
    const long row = begin + (t.back ? count - 1 - i : i);
    found[i][c] = i < count && c < x.wide ? PART(x, row, c) : (CT)0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (id < x.wide) {
    CT own[BLOCK];
    AT_THE_SAME_TIME for (int k = 0; k < BLOCK; k++) own[k] = found[k][id];
    AT_THE_SAME_TIME for (int k = 0; k < BLOCK; k++) {
      if (!t.unit) own[k] = DIVIDE(own[k], factor[k][k]);
      AT_THE_SAME_TIME for (int i = k + 1; i < BLOCK; i++) own[i] = MULTIPLY_ADD(-factor[i][k], own[k], own[i]);
    }
    AT_THE_SAME_TIME for (int k = 0; k < BLOCK; k++) {
      found[k][id] = own[k];
      if (k < count) PART(x, begin + (t.back ? count - 1 - k : k), id) = own[k];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* Rows [first, last) lose what is theirs of the unknowns found. */
static INLINED void subtract_found(__local CT (*factor)[BLOCK + 1], __local CT (*found)[ACROSS + 1],
                                   __local const int *from, triangle t, sides x, long begin, int count, long first,
                                   long last) {
  const int id = (int)get_local_id(0), c = id % ACROSS;
  CT known[BLOCK];
  AT_THE_SAME_TIME for (int k = 0; k < BLOCK; k++) known[k] = found[k][c];
  for (long top = first; top < last; top += TALL) {
    for (int p = id; p < TALL * BLOCK; p += ITEMS) {
      const int i = t.right == 1 ? p / BLOCK : p % TALL, k = t.right == 1 ? p % BLOCK : p / TALL;
      const long column = begin + (t.back ? count - 1 - k : k);
      const bool given = top + i < last && k < count;
      factor[i][k] = given ? CONJ_IF(t.conjugated, t.at[(top + i) * t.down + column * t.right]) : (CT)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    AT_THE_SAME_TIME for (int r = 0; r < ROWS_EACH; r++) {
      const int i = id / ACROSS + r * DOWN;
      if (top + i >= last || c >= x.wide) continue;
      CT sum = PART(x, top + i, c);
      AT_THE_SAME_TIME for (int k = 0; k < BLOCK; k++) sum = MULTIPLY_ADD(-factor[i][k], known[k], sum);
      PART(x, top + i, c) = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
}

static INLINED void solve_sides(__local CT (*factor)[BLOCK + 1], __local CT (*found)[ACROSS + 1],
                                __local const int *from, triangle t, sides x) {
  for (long done = 0; done < t.size; done += BLOCK) {
    const long begin = t.back ? max(t.size - done - BLOCK, 0L) : done;
    const long end = t.back ? t.size - done : min(done + BLOCK, t.size);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    solve_square(factor, found, from, t, x, begin, (int)(end - begin));
    subtract_found(factor, found, from, t, x, begin, (int)(end - begin), t.back ? 0 : end, t.back ? begin : t.size);
  }
}

KERNEL_OF(ITEMS, 1) solve_blocks(PLACE(x), CONST_PLACE(factors), CONST_PLACE(pivots), CONST_PLACE(right),
                                 __global long *faults, numbers n) {
  __local CT factor[TALL][BLOCK + 1], found[BLOCK][ACROSS + 1];
  __local int from[MOST_ROWS], chosen[ITEMS];
  const long size = SIZE, rights = RIGHTS, b = (long)get_group_id(0) / PARTS;
  const long first = (long)get_group_id(0) % PARTS * ACROSS;
  const int id = (int)get_local_id(0);
  long at[3];
  places_of(b, n, at);
  const_matrix t = CONST_MATRIX(factors) + at[0] * size * size;
  const_matrix given = CONST_MATRIX(right) + at[2] * size * rights + first * X_NEXT;
  const sides some = {MATRIX(x) + b * size * rights + first * X_NEXT, X_STEP, X_NEXT,
                      (int)min((long)ACROSS, rights - first), EXCHANGE == 2};
  if (EXCHANGE) {
    find_rows(from, chosen, (__global const int *)(pivots + offset_pivots) + at[1] * size, size, (int)OP, faults);
  }
  for (long p = id; p < size * ACROSS; p += ITEMS) {
    const int c = (int)(X_NEXT == 1 ? p % ACROSS : p / size);
    const long i = X_NEXT == 1 ? p / ACROSS : p % size, row = EXCHANGE == 1 ? from[i] : i;
    if (c >= some.wide) continue;
    PART(some, i, c) =
        IDENTITY ? FROM_REAL(row == first + c) : given[row * some.step + c * some.next];
  }
  for (int s = 0; s < (int)STEPS; s++) {
    const int how = s ? SECOND_STEP : FIRST_STEP;
    const triangle f = {t,          how & 1 ? 1 : size, how & 1 ? size : 1, size, (how & 8) != 0, (how & 2) != 0,
                        (how & 4) != 0};
    solve_sides(factor, found, from, f, some);
  }
}
