/* Transposed convolutions on a CPU whose stride along a row, SPREAD, is short. An output meets only the taps of its phase,
 * which is what it leaves modulo SPREAD. So a vector is of outputs SPREAD apart, of which a work-item has as many side by
 * side as there are phases; each tap counts for one of these. Rows of the input are packed as they are, without zeros
 * between their elements.
 *
 * After core/square.cl and space.cl; the head defines FIRST_PHASE and NEXT_PHASE, which are the place of tap 0 for output 0, and the step to
 * the next tap, modulo SPREAD. */
#ifdef SPREAD
#define OUTS_APART SPREAD

/* Of the outputs that tap k of a row counts for. */
#define PHASE(k) ((SPREAD - (FIRST_PHASE + (k) * NEXT_PHASE) % SPREAD) % SPREAD)

static void add_tap_of(VT sum[TILE][WIDE], int phase, __global const CT *row, __global const CT *weights) {
  VT x = VLOAD(row);
#pragma unroll
  for (int b = 0; b < TILE; b++) sum[b][phase] = ADD_PRODUCTS(x, (VT)weights[b], sum[b][phase]);
}

/* From vectors of one phase each to vectors of outputs that lie side by side. */
static void join_phases(VT v[WIDE]) {
#if SPREAD & (SPREAD - 1)
  CT one[VEC], lanes[WIDE * VEC];
  for (int w = 0; w < WIDE; w++) {
    VSTORE(v[w], one);
    for (int j = 0; j < VEC; j++) lanes[j * SPREAD + w] = one[j];
  }
  for (int w = 0; w < WIDE; w++) v[w] = VLOAD(lanes + w * VEC);
#else
#pragma unroll
  for (int round = 1; round < SPREAD; round *= 2) { /* each rotates the bits of an element's number by one */
    VT mixed[WIDE];
#pragma unroll
    for (int i = 0; i < WIDE / 2; i++) {
      mixed[2 * i] = LOWER_IN_TURN(v[i], v[i + WIDE / 2]);
      mixed[2 * i + 1] = UPPER_IN_TURN(v[i], v[i + WIDE / 2]);
    }
#pragma unroll
    for (int i = 0; i < WIDE; i++) v[i] = mixed[i];
  }
#endif
}
#else
#define OUTS_APART 1
#endif
