/* Vectors of 16 that attention.cl computes with, and how scores become weights. */
#define VECTOR CAT(CT, 16)
#define COLUMNS_AT_ONCE 32 /* of scores of a row */

static CT across(VECTOR sum) {
  /* Halves are read as memory: Oclgrind takes those of a vector (.lo, .hi) for uninitialised. */
  const CAT(CT, 8) eight = vload8(0, (const CT *)&sum) + vload8(1, (const CT *)&sum);
  const CAT(CT, 4) four = vload4(0, (const CT *)&eight) + vload4(1, (const CT *)&eight);
  return (four.x + four.z) + (four.y + four.w);
}

#ifdef IS_CPU
#ifdef IS_DOUBLE
static VECTOR exp_of(VECTOR x) {
  CT *lanes = (CT *)&x;
  for (int i = 0; i < 16; i++) lanes[i] = exp(lanes[i]);
  return x;
}
#else
#define exp_of(x) EXP(x) /* the head says: of 16 lanes */
#endif

/* Scores of a row become weights; gives their sum. */
static CT weigh(CT *scores, int wide, CT shift) {
  VECTOR sum = 0;
  for (int j = wide; j < COLUMNS_AT_ONCE; j++) scores[j] = -INFINITY;
  for (int j = 0; j < COLUMNS_AT_ONCE; j += 16) {
    const VECTOR weights = exp_of(vload16(0, scores + j) - (VECTOR)shift);
    vstore16(weights, 0, scores + j);
    sum += weights;
  }
  return across(sum);
}
#else
static CT weigh(CT *scores, int wide, CT shift) {
  CT sum = 0;
  for (int j = 0; j < wide; j++) sum += scores[j] = exp(scores[j] - shift);
  return sum;
}
#endif
