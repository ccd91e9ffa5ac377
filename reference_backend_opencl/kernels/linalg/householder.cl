/* Blocks of reflectors, after direct.cl and stacks.cl: WIDE of them, which the head defines, are I - V T V^H (Schreiber
 * and Van Loan, SIAM J. Sci. Stat. Comput. 10, 1989), by which each work-group reflects a few vectors. */
#define ITEMS 256
#define ACROSS 8  /* vectors of a work-group */

KERNEL_OF(ITEMS, 1) begin(PLACE(to), CONST_PLACE(from), long elements) {
  const long i = (long)get_global_id(0);
  if (i < elements) MATRIX(to)[i] = CONST_MATRIX(from)[i];
}

/* Sizes and places, as householder.c has them: of the matrix of reflectors, and of what is reflected, whose vectors step
 * `step` from row to row and `next` to the next, `apart` from matrix to matrix. */
typedef struct {
  long rows, columns, count, blocks, turned;      /* turned: the vectors are conjugated */
  long rights, parts, step, next, apart, begins;  /* `begins`: where the first vector is */
  long forward, identity, copied, first, taken;   /* blocks from the first on, or so many up to the last */
} reflecting;

/* TALL rows of the block of reflectors that begins with row and column `begin`, from row begin + top on. */
static INLINED void load_block(__local CT (*v)[WIDE + 1], const_matrix a, const reflecting *of, long begin, long top) {
  for (int p = (int)get_local_id(0); p < TALL * WIDE; p += ITEMS) {
    const int k = p % WIDE;
    const long i = top + p / WIDE;
    const bool real = begin + k < of->count, given = real && k < i && begin + i < of->rows;
    v[p / WIDE][k] = given ? CONJ_IF(of->turned, a[(begin + i) * of->columns + begin + k])
                           : FROM_REAL(real && i == k && begin + i < of->rows);
  }
}

/* T of each block. */
#define PAIRS ((WIDE * WIDE + ITEMS - 1) / ITEMS)
KERNEL_OF(ITEMS, 1) combine(PLACE(t), CONST_PLACE(a), CONST_PLACE(tau), reflecting of) {
  __local CT v[TALL][WIDE + 1], products[WIDE][WIDE + 1];
  const long b = (long)get_group_id(0) / of.taken, which = of.first + (long)get_group_id(0) % of.taken;
  const long begin = which * WIDE, length = of.rows - begin;
  const int id = (int)get_local_id(0);
  const_matrix reflectors = CONST_MATRIX(a) + b * of.rows * of.columns, factors = CONST_MATRIX(tau) + b * of.count;
  CT sums[PAIRS];
  AT_THE_SAME_TIME for (int p = 0; p < PAIRS; p++) sums[p] = 0;
  for (long top = 0; top < length; top += TALL) {
    load_block(v, reflectors, &of, begin, top);
    barrier(CLK_LOCAL_MEM_FENCE);
    AT_THE_SAME_TIME for (int p = 0; p < PAIRS; p++) {
      const int at = id + p * ITEMS, i = at / WIDE % WIDE, k = at % WIDE;
      for (int r = 0; r < TALL; r++) sums[p] = MULTIPLY_ADD(CONJ(v[r][i]), v[r][k], sums[p]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  AT_THE_SAME_TIME for (int p = 0; p < PAIRS; p++) {
    const int at = id + p * ITEMS;
    if (at < WIDE * WIDE) products[at / WIDE][at % WIDE] = sums[p];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = 0; k < WIDE; k++) { /* column k of T, in the place of the rows below */
    const CT factor = begin + k < of.count ? CONJ_IF(of.turned, factors[begin + k]) : (CT)0;
    CT sum = FROM_REAL(id == k ? -1 : 0);
    for (int j = id; j < k; j++) sum = MULTIPLY_ADD(v[id][j], products[j][k], sum);
    if (id < WIDE) v[id][k] = id <= k ? -MUL(factor, sum) : (CT)0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int p = id; p < WIDE * WIDE; p += ITEMS) {
    MATRIX(t)[(b * of.blocks + which) * WIDE * WIDE + p] = v[p / WIDE][p % WIDE];
  }
}

/* V^H x of a block: a lane has the sums of two reflectors and two vectors, over the rows of its team. */
#define TEAM (WIDE / 2 * ACROSS / 2)
#define TEAMS (ITEMS / TEAM)
typedef struct {
  matrix at;
  long step, next;
  int wide;
} vectors;

static INLINED void project(__local CT (*v)[WIDE + 1], __local CT (*x)[ACROSS + 1],
                            __local CT (*parts)[WIDE][ACROSS], const_matrix a, const reflecting *of, long begin,
                            vectors to) {
  const int id = (int)get_local_id(0), team = id / TEAM, k = id % TEAM / (ACROSS / 2) * 2, c = id % (ACROSS / 2) * 2;
  const long length = of->rows - begin;
  CT sums[2][2] = {{0, 0}, {0, 0}};
  for (long top = 0; top < length; top += TALL) {
    load_block(v, a, of, begin, top);
    for (int p = id; p < TALL * ACROSS; p += ITEMS) {
      const int i = p / ACROSS, other = p % ACROSS;
      x[i][other] = top + i < length && other < to.wide ? to.at[(begin + top + i) * to.step + other * to.next] : (CT)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = team; r < TALL; r += TEAMS) {
      AT_THE_SAME_TIME for (int p = 0; p < 4; p++) {
        sums[p / 2][p % 2] = MULTIPLY_ADD(CONJ(v[r][k + p / 2]), x[r][c + p % 2], sums[p / 2][p % 2]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  AT_THE_SAME_TIME for (int p = 0; p < 4; p++) parts[team][k + p / 2][c + p % 2] = sums[p / 2][p % 2];
}

/* What is projected becomes T, or T^H, times it. */
static INLINED void multiply_by_t(__local CT (*v)[WIDE + 1], __local CT (*found)[ACROSS + 1],
                                  __local CT (*parts)[WIDE][ACROSS], const_matrix t, bool adjoint) {
  const int id = (int)get_local_id(0);
  for (int p = id; p < WIDE * WIDE; p += ITEMS) v[p / WIDE][p % WIDE] = t[p];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int p = id; p < WIDE * ACROSS; p += ITEMS) {
    CT sum = 0;
    for (int team = 0; team < TEAMS; team++) sum += parts[team][p / ACROSS][p % ACROSS];
    parts[0][p / ACROSS][p % ACROSS] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int p = id; p < WIDE * ACROSS; p += ITEMS) {
    const int i = p / ACROSS, c = p % ACROSS, from = adjoint ? 0 : i, last = adjoint ? i + 1 : WIDE;
    CT sum = 0;
    for (int k = from; k < last; k++) {
      sum = MULTIPLY_ADD(adjoint ? CONJ(v[k][i]) : v[i][k], parts[0][k][c], sum);
    }
    found[i][c] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* The vectors lose V times what was found. */
static INLINED void subtract_found(__local CT (*v)[WIDE + 1], __local CT (*found)[ACROSS + 1], const_matrix a,
                                   const reflecting *of, long begin, vectors to) {
  const int id = (int)get_local_id(0), c = id % ACROSS;
  const long length = of->rows - begin;
  CT own[WIDE];
  AT_THE_SAME_TIME for (int k = 0; k < WIDE; k++) own[k] = found[k][c];
  for (long top = 0; top < length; top += TALL) {
    load_block(v, a, of, begin, top);
    barrier(CLK_LOCAL_MEM_FENCE);
    AT_THE_SAME_TIME for (int r = 0; r < TALL; r += ITEMS / ACROSS) {
      const int i = r + id / ACROSS;
      if (top + i >= length || c >= to.wide) continue;
      const long at = (begin + top + i) * to.step + c * to.next;
      CT sum = to.at[at];
      AT_THE_SAME_TIME for (int k = 0; k < WIDE; k++) sum = MULTIPLY_ADD(-v[i][k], own[k], sum);
      to.at[at] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
}

/* Vectors of a work-group, by the blocks one after the other; they begin as those of `in`, or as the identity's. */
KERNEL_OF(ITEMS, 1) reflect_blocks(PLACE(c), CONST_PLACE(a), CONST_PLACE(t), CONST_PLACE(in), reflecting of) {
  __local CT v[TALL][WIDE + 1], x[TALL][ACROSS + 1], parts[TEAMS][WIDE][ACROSS];
  const long b = (long)get_group_id(0) / of.parts, first = (long)get_group_id(0) % of.parts * ACROSS;
  const vectors to = {MATRIX(c) + b * of.apart + of.begins + first * of.next, of.step, of.next,
                      (int)min((long)ACROSS, of.rights - first)};
  const_matrix reflectors = CONST_MATRIX(a) + b * of.rows * of.columns;
  const_matrix combined = CONST_MATRIX(t) + b * of.blocks * WIDE * WIDE;
  const_matrix from = CONST_MATRIX(in) + b * of.apart + first * of.next;
  for (long p = (long)get_local_id(0); of.copied && p < of.rows * ACROSS; p += ITEMS) {
    const int k = (int)(of.next == 1 ? p % ACROSS : p / of.rows);
    const long i = of.next == 1 ? p / ACROSS : p % of.rows;
    if (k >= to.wide) continue;
    to.at[i * of.step + k * of.next] = of.identity ? FROM_REAL(i == first + k) : from[i * of.step + k * of.next];
  }
  for (long done = 0; done < of.taken; done++) {
    const long which = of.first + (of.forward ? done : of.taken - 1 - done), begin = which * WIDE;
    if (of.identity && first + ACROSS <= begin) continue; /* still the identity's */
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    project(v, x, parts, reflectors, &of, begin, to);
    barrier(CLK_LOCAL_MEM_FENCE);
    multiply_by_t(v, x, parts, combined + which * WIDE * WIDE, of.forward);
    subtract_found(v, x, reflectors, &of, begin, to);
  }
}

/* R, of so many rows. */
KERNEL_OF(ITEMS, 1) upper_triangle(PLACE(r), CONST_PLACE(a), long rows, long columns, long height, long elements) {
  const long p = (long)get_global_id(0);
  if (p >= elements) return;
  const long row = divided(p, columns), j = p - row * columns, b = divided(row, height), i = row - b * height;
  MATRIX(r)[p] = j >= i ? CONST_MATRIX(a)[(b * rows + i) * columns + j] : (CT)0;
}
