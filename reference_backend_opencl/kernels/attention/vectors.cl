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
#define MASKS CAT(MT, 16)
#ifdef IS_DOUBLE
static VECTOR exp_of(VECTOR x) {
  CT *lanes = (CT *)&x;
  for (int i = 0; i < 16; i++) lanes[i] = exp(lanes[i]);
  return x;
}
#else
/* To 2 ulp; below the normal numbers it is 0. x = n log(2) + r, and e^r is its series. */
static VECTOR exp_of(VECTOR x) {
  const MASKS is_low = x < (VECTOR)-87, is_high = x > (VECTOR)88.72f;
  const VECTOR at = is_low | is_high ? (VECTOR)0 : x, shift = (VECTOR)12582912.0f; /* 1.5 * 2^23: rounds to a whole */
  const VECTOR shifted = fma(at, (VECTOR)1.44269504f, shift), n = shifted - shift;
  const VECTOR r = fma(n, (VECTOR)2.12194440e-4f, fma(n, (VECTOR)-0.693359375f, at));
  VECTOR p = fma((VECTOR)1.98412698e-4f, r, (VECTOR)1.38888889e-3f);
  p = fma(p, r, (VECTOR)8.33333333e-3f);
  p = fma(p, r, (VECTOR)4.16666667e-2f);
  p = fma(p, r, (VECTOR)1.66666667e-1f);
  p = fma(p, r, (VECTOR)0.5f);
  p = fma(p, r, (VECTOR)1);
  p = fma(p, r, (VECTOR)1);
  union {
    VECTOR number;
    MASKS bits;
  } scale = {.number = shifted};
  scale.bits = (scale.bits << 23) + 0x3f000000; /* half of it: 2^128 is no number */
  return is_low ? (VECTOR)0 : is_high ? (VECTOR)INFINITY : (p + p) * scale.number;
}
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
