/* A square of VEC vectors, of values where the head defines no other SQUARE, turned in registers: vector i then holds lane
 * i of all. Each round puts the lanes of a vector and of the one half a square below it in turn, which rotates the bits of
 * an element's number by one; after as many rounds as a lane's number has bits, row and column have changed places. */
#ifndef SQUARE
#define SQUARE VT
#endif
#if VEC > 1
static INLINED void turn_square(SQUARE square[VEC]) {
#pragma unroll
  for (int round = 1; round < VEC; round *= 2) {
    SQUARE mixed[VEC];
#pragma unroll
    for (int i = 0; i < VEC / 2; i++) {
      mixed[2 * i].even = square[i].lo;
      mixed[2 * i].odd = square[i + VEC / 2].lo;
      mixed[2 * i + 1].even = square[i].hi;
      mixed[2 * i + 1].odd = square[i + VEC / 2].hi;
    }
#pragma unroll
    for (int i = 0; i < VEC; i++) square[i] = mixed[i];
  }
}
#endif
