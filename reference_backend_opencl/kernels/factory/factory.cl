/* Numbers that follow from their place. The head defines D, and NT: what start, end and step are given in. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void arange(__global uchar *out, ulong offset_out, NT start,
                                                                        NT step, long n, long chunk) {
  __global RAW(D) *to = (__global RAW(D) *)(out + offset_out);
  long i = (long)get_global_id(0) * chunk, end = min(i + chunk, n);
  for (; i < end; i++) {
#ifdef CLASS_FLOAT
    CT v = (CT)fma((NT)i, step, start);
#else
    CT v = (CT)((ulong)start + (ulong)i * (ulong)step);
#endif
    STORE(D, __global, to + i, v);
  }
}

#ifdef CLASS_FLOAT
/* From both ends, so that the last is `end` itself. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void linspace(__global uchar *out, ulong offset_out,
                                                                          NT start, NT end, NT step, long n,
                                                                          long chunk) {
  __global RAW(D) *to = (__global RAW(D) *)(out + offset_out);
  long i = (long)get_global_id(0) * chunk, last = min(i + chunk, n);
  for (; i < last; i++) {
    CT v = (CT)(i < n / 2 || n == 1 ? fma((NT)i, step, start) : fma((NT)(i + 1 - n), step, end));
    STORE(D, __global, to + i, v);
  }
}
#endif

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void eye(__global uchar *out, ulong offset_out,
                                                                     long columns, long n, long chunk) {
  __global RAW(D) *to = (__global RAW(D) *)(out + offset_out);
  long i = (long)get_global_id(0) * chunk, end = min(i + chunk, n);
  for (; i < end; i++) {
    int one = i / columns == i % columns;
#ifdef CLASS_COMPLEX
    VT v = (VT)(one, 0);
#else
    CT v = (CT)one;
#endif
    STORE(D, __global, to + i, v);
  }
}

#ifdef CLASS_INT
/* The sum over i below `row` of i + offset, each held to 0 .. columns. */
static long columns_before(long row, long columns, long offset) {
  long first = clamp(-offset, 0L, row), full = clamp(columns - offset, first, row); /* rows that have some, and all */
  long rising = (full - first) * (first + offset) + (full - first) * (full - first - 1) / 2;
  return rising + (row - full) * columns;
}

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void triangle_indices(__global uchar *out, ulong offset_out,
                                                                                  long count, long columns, long offset,
                                                                                  long lower, long rows, long chunk) {
  __global RAW(D) *to = (__global RAW(D) *)(out + offset_out);
  long row = (long)get_global_id(0) * chunk, last = min(row + chunk, rows);
  for (; row < last; row++) {
    long cut = clamp(row + offset + lower, 0L, columns), before = columns_before(row, columns, offset + lower);
    long at = lower ? before : row * columns - before;
    for (long column = lower ? 0 : cut; column < (lower ? cut : columns); column++, at++) {
      STORE(D, __global, to + at, (CT)row);
      STORE(D, __global, to + count + at, (CT)column);
    }
  }
}
#endif
