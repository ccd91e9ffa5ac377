/* arange. The head defines D. */
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
