/* Resampling of planes, after direct.cl: an element of the result is a sum over taps, which each dim has in a table:
 * those of place o are entries first[o] to first[o + 1] - 1 of indices and weights, which all dims share. A gradient is
 * the same with the tables transposed. A piece is a row of the result. The head defines WT, the type of weights. */
#define FROM(d) n.of[d]
#define TO(d) n.of[3 + (d)]

/* A sum of which `term` is the first, which counts as it is, -0 too, or one more. */
static CT joined(bool first, CT sum, CT term) { return first ? term : ADD(sum, term); }

/* The taps of a line from k to end. Sums are of at most SPAN terms, then of such sums, of lines and of planes, so that
 * rounding errors do not grow with the number of taps. */
#define SPAN 64
static CT line_sum(__global const RAW(D) * line, __global const int *indices, __global const WT *weights, WT weight,
                   int k, int end) {
  CT sum = 0;
  for (int begin = k; k < end;) {
    CT part = 0;
    const int first = k, stop = min(k + SPAN, end);
    for (; k < stop; k++) part = joined(k == first, part, GET(line + indices[k]) * (weight * weights[k]));
    sum = joined(first == begin, sum, part);
  }
  return sum;
}

KERNEL resample(PLACE(out), PLACE(in), __global const int *table, numbers n) {
  __global const int *first0 = table, *first1 = first0 + TO(0) + 1, *first2 = first1 + TO(1) + 1;
  __global const int *indices = first2 + TO(2) + 1;
  const long ints = (indices - table) + first2[TO(2)];
  __global const WT *weights = (__global const WT *)(table + (ints + 1) / 2 * 2);
  EACH_UNIT(row) {
    const long b = row % TO(1), a = row / TO(1) % TO(0), plane = row / TO(1) / TO(0);
    __global const RAW(D) *from = ELEMENTS(in) + plane * FROM(0) * FROM(1) * FROM(2);
    __global RAW(D) *to = ELEMENTS(out) + row * TO(2);
    const int a0 = first0[a], a1 = first0[a + 1], b0 = first1[b], b1 = first1[b + 1];
    for (long c = 0; c < TO(2); c++) {
      CT sum = 0;
      for (int i = a0; i < a1; i++) {
        CT lines = 0;
        for (int j = b0; j < b1; j++) {
          const long line = ((long)indices[i] * FROM(1) + indices[j]) * FROM(2);
          lines = joined(j == b0, lines, line_sum(from + line, indices, weights, weights[i] * weights[j], first2[c],
                                                  first2[c + 1]));
        }
        sum = joined(i == a0, sum, lines);
      }
      PUT(to + c, sum);
    }
  }
}
