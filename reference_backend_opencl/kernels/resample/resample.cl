/* Resampling of planes, after direct.cl: an element of the result is a sum over taps, which each dim has in a table:
 * those of place o are entries first[o] to first[o + 1] - 1 of indices and weights, which all dims share. A gradient is
 * the same with the tables transposed. A piece is a row of the result. The head defines WT, the type of weights. */
#define FROM(d) n.of[d]
#define TO(d) n.of[3 + (d)]

KERNEL resample(PLACE(out), PLACE(in), __global const int *table, numbers n) {
  __global const int *first0 = table, *first1 = first0 + TO(0) + 1, *first2 = first1 + TO(1) + 1;
  __global const int *indices = first2 + TO(2) + 1;
  const long ints = (indices - table) + first2[TO(2)];
  __global const WT *weights = (__global const WT *)(table + (ints + 1) / 2 * 2);
  EACH_UNIT(row) {
    const long b = row % TO(1), a = row / TO(1) % TO(0), plane = row / TO(1) / TO(0);
    __global const RAW(D) *from = ELEMENTS(in) + plane * FROM(0) * FROM(1) * FROM(2);
    __global RAW(D) *to = ELEMENTS(out) + row * TO(2);
    const int a1 = first0[a + 1], b1 = first1[b + 1];
    for (long c = 0; c < TO(2); c++) {
      CT sum = 0;
      bool begun = false; /* the first term counts as it is, -0 too */
      const int c1 = first2[c + 1];
      for (int i = first0[a]; i < a1; i++) {
        for (int j = first1[b]; j < b1; j++) {
          const WT weight = weights[i] * weights[j];
          const long line = ((long)indices[i] * FROM(1) + indices[j]) * FROM(2);
          for (int k = first2[c]; k < c1; k++) {
            const CT term = GET(from + line + indices[k]) * (weight * weights[k]);
            sum = begun ? ADD(sum, term) : term;
            begun = true;
          }
        }
      }
      PUT(to + c, sum);
    }
  }
}
