/* A square of VEC vectors, of values where the head defines no other SQUARE, turned in registers: vector i then holds lane
 * i of all. Each round puts the lanes of a vector and of the one half a square below it in turn, which rotates the bits of
 * an element's number by one; after as many rounds as a lane's number has bits, row and column have changed places. */
#ifndef SQUARE
#define SQUARE VT
#endif
/* Lanes of two vectors in turn, of their first halves and of their second ones. One literal each: where halves are assigned
 * to `.even` and `.odd`, compilers make several shuffles of it. */
#if VEC == 16
#define LOWER_IN_TURN(a, b)                                                               \
  (SQUARE)((a).s0, (b).s0, (a).s1, (b).s1, (a).s2, (b).s2, (a).s3, (b).s3, \
           (a).s4, (b).s4, (a).s5, (b).s5, (a).s6, (b).s6, (a).s7, (b).s7)
#define UPPER_IN_TURN(a, b)                                                               \
  (SQUARE)((a).s8, (b).s8, (a).s9, (b).s9, (a).sa, (b).sa, (a).sb, (b).sb, \
           (a).sc, (b).sc, (a).sd, (b).sd, (a).se, (b).se, (a).sf, (b).sf)
#elif VEC == 8
#define LOWER_IN_TURN(a, b) (SQUARE)((a).s0, (b).s0, (a).s1, (b).s1, (a).s2, (b).s2, (a).s3, (b).s3)
#define UPPER_IN_TURN(a, b) (SQUARE)((a).s4, (b).s4, (a).s5, (b).s5, (a).s6, (b).s6, (a).s7, (b).s7)
#elif VEC == 4
#define LOWER_IN_TURN(a, b) (SQUARE)((a).s0, (b).s0, (a).s1, (b).s1)
#define UPPER_IN_TURN(a, b) (SQUARE)((a).s2, (b).s2, (a).s3, (b).s3)
#elif VEC == 2
#define LOWER_IN_TURN(a, b) (SQUARE)((a).s0, (b).s0)
#define UPPER_IN_TURN(a, b) (SQUARE)((a).s1, (b).s1)
#endif

#if VEC > 1
static INLINED void turn_square(SQUARE square[VEC]) {
#pragma unroll
  for (int round = 1; round < VEC; round *= 2) {
    SQUARE mixed[VEC];
#pragma unroll
    for (int i = 0; i < VEC / 2; i++) {
      mixed[2 * i] = LOWER_IN_TURN(square[i], square[i + VEC / 2]);
      mixed[2 * i + 1] = UPPER_IN_TURN(square[i], square[i + VEC / 2]);
    }
#pragma unroll
    for (int i = 0; i < VEC; i++) square[i] = mixed[i];
  }
}
#endif
