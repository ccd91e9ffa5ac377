/* Resampling of planes, after direct.cl: an element of the result is a sum over taps, which each dim has in a table:
 * those of place o are entries first[o] to first[o + 1] - 1 of indices and weights. A gradient is the same with the
 * tables transposed. A piece is a row of the result. The head defines WT, the type of weights, which lie behind the ints
 * of the table. */
#define FROM(d) n.of[d]
#define TO(d) n.of[3 + (d)]
#define FIRST(d) (table + n.of[6 + (d)])
#define INDICES(d) (table + n.of[9 + (d)])
#define WEIGHTS(d) (weights + n.of[12 + (d)])

KERNEL resample(PLACE(out), PLACE(in), __global const int *table, numbers n) {
  __global const WT *weights = (__global const WT *)(table + n.of[15]);
  __global const int *first2 = FIRST(2), *indices2 = INDICES(2);
  __global const WT *weights2 = WEIGHTS(2);
  EACH_UNIT(row) {
    const long b = row % TO(1), a = row / TO(1) % TO(0), plane = row / TO(1) / TO(0);
    __global const RAW(D) *from = ELEMENTS(in) + plane * FROM(0) * FROM(1) * FROM(2);
    __global RAW(D) *to = ELEMENTS(out) + row * TO(2);
    const int a1 = FIRST(0)[a + 1], b1 = FIRST(1)[b + 1];
    for (long c = 0; c < TO(2); c++) {
      CT sum = 0;
      bool begun = false; /* the first term counts as it is, -0 too */
      const int c1 = first2[c + 1];
      for (int i = FIRST(0)[a]; i < a1; i++) {
        for (int j = FIRST(1)[b]; j < b1; j++) {
          const WT weight = WEIGHTS(0)[i] * WEIGHTS(1)[j];
          const long line = ((long)INDICES(0)[i] * FROM(1) + INDICES(1)[j]) * FROM(2);
          for (int k = first2[c]; k < c1; k++) {
            const CT term = GET(from + line + indices2[k]) * (weight * weights2[k]);
            sum = begun ? ADD(sum, term) : term;
            begun = true;
          }
        }
      }
      PUT(to + c, sum);
    }
  }
}
