/* Of the numbers of solvers.c, those of systems of factors; after stacks.cl. */
#define SIZE n.of[3] /* of a system; RIGHTS so many right sides */
#define RIGHTS n.of[4]
#define X_STEP n.of[5] /* from row to row of a system's unknowns, and from one right side to the next */
#define X_NEXT n.of[6]
#define IDENTITY n.of[7] /* the right sides are */
#define EXCHANGE n.of[8] /* rows: 1 before, 2 behind the solving, 0 not; 3 with each step of an LDL factor's */
#define STEPS n.of[9]
#define FIRST_STEP ((int)n.of[10]) /* bits: 1 the transposed factor, 2 from the last row on, 4 unit diagonal, 8 conjugated */
#define SECOND_STEP ((int)n.of[11])
#define BATCH n.of[12] /* dims, at most BATCH_DIMS, of these sizes, and what each operand steps in them */
#define BATCH_DIMS 8
#define BATCH_SIZE(d) n.of[13 + (d)]
#define BATCH_STEP(operand, d) n.of[21 + 8 * (operand) + (d)]
#define PARTS n.of[45] /* of the right sides, each a work-group's */
#define OP n.of[46]    /* that is told where a pivot names no row */

/* Where the operands of system b begin, in matrices (pivots: lists): the factors, the pivots, the right sides. */
static void places_of(long b, numbers n, long *at) {
  for (int k = 0; k < 3; k++) at[k] = 0;
  for (int d = BATCH_DIMS - 1; d >= 0; d--) { /* to the end: common.cl says why */
    if (d >= BATCH) continue;
    const long i = b % BATCH_SIZE(d);
    b /= BATCH_SIZE(d);
    for (int k = 0; k < 3; k++) at[k] += i * BATCH_STEP(k, d);
  }
}
