/* WIDE columns of a matrix become reflectors, by one work-group, whose registers they fit; after direct.cl, stacks.cl
 * and reflector.cl. The head (householder.c) defines WIDE, and EACH, rows that a lane has. */
#define LANES 512
#define GROUPS (LANES / WIDE)

/* A lane has rows of one column. What a reflector needs of a column, and what it makes of the others, are the sums of one
 * pass over the rows: those of its own column are squares. */
KERNEL_OF(LANES, 1) panel(PLACE(a), PLACE(tau), long rows, long columns, long count, long first) {
  __local CT below[GROUPS][EACH + 1], parts[GROUPS][WIDE + 1], top[WIDE];
  __local RT mosts[GROUPS];
  const long b = (long)get_group_id(0);
  const int id = (int)get_local_id(0), j = id % WIDE, g = id / WIDE, length = (int)(rows - first);
  const int wide = (int)min((long)WIDE, count - first), behind = (int)min((long)WIDE, columns - first);
  matrix at = MATRIX(a) + b * rows * columns + first * columns + first + j;
  CT x[EACH];
  AT_THE_SAME_TIME for (int e = 0; e < EACH; e++) {
    const int row = g * EACH + e;
    x[e] = row < length && j < behind ? at[row * columns] : (CT)0;
  }
  for (int k = 0; k < wide; k++) {
    RT largest = 0;
    AT_THE_SAME_TIME for (int e = 0; e < EACH; e++) {
      const int row = g * EACH + e;
      if (row == k) top[j] = x[e];
      if (j == k) below[g][e] = row > k ? x[e] : (CT)0;
      if (row > k) largest = larger_size(largest, MODULUS(x[e]));
    }
    if (j == k) mosts[g] = largest;
    barrier(CLK_LOCAL_MEM_FENCE);
    RT most = 0;
    for (int i = 0; i < GROUPS; i++) most = larger_size(most, mosts[i]);
    for (int row = id; row < GROUPS * EACH; row += LANES) {
      const CT given = below[row / EACH][row % EACH];
      below[row / EACH][row % EACH] = most != 0 ? given / most : (CT)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    CT sum = 0;
    AT_THE_SAME_TIME for (int e = 0; e < EACH; e++) {
      const CT other = j == k ? below[g][e] : x[e];
      sum = MULTIPLY_ADD(CONJ(below[g][e]), other, sum);
    }
    parts[g][j] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    CT all = 0, squares = 0;
    for (int i = 0; i < GROUPS; i++) {
      all += parts[i][j];
      squares += parts[i][k];
    }
    const reflector by = reflector_of(top[k], most, REAL(squares));
    const CT less = MUL(CONJ(by.factor), MULTIPLY_ADD(CONJ(by.each), all, top[j])), each = MUL(by.each, less);
    AT_THE_SAME_TIME for (int e = 0; e < EACH; e++) {
      const int row = g * EACH + e;
      if (j > k) x[e] = row == k ? x[e] - less : MULTIPLY_ADD(-each, below[g][e], x[e]);
      if (j == k && row == k) x[e] = FROM_REAL(by.beta);
      if (j == k && row > k && NONZERO(by.each)) x[e] = MUL(by.each, below[g][e]);
    }
    if (id == 0) MATRIX(tau)[b * count + first + k] = by.factor;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  AT_THE_SAME_TIME for (int e = 0; e < EACH; e++) {
    const int row = g * EACH + e;
    if (row < length && j < behind) at[row * columns] = x[e];
  }
}
