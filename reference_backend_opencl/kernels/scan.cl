/* Running sums along a line. After lines.cl. The head defines D_OUT, D_IN; rows have VEC 1.
 * Sums are made in stretches, so that rounding errors do not grow with the whole length. */
DEFINE_ACCESS(out, D_OUT)
DEFINE_ACCESS(in, D_IN)

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void scan(__global uchar *out, ulong offset_out,
                                                                       __global const uchar *in, ulong offset_in,
                                                                       lines space) {
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
#if defined(ROWS) && LOCAL > 1
  __local CT shared[LOCAL];
  int id = (int)get_local_id(0);
#endif
  for (long unit = first; unit < last; unit++) {
    const int n = unit_lanes(space, unit);
    long start = unit_start(space, unit);
    __global RAW(D_OUT) *to = POINTER(D_OUT, out, offset_out) + start;
    __global const RAW(D_IN) *from = CONST_POINTER(D_IN, in, offset_in) + start;
    VT before = (VT)0;
#if defined(ROWS) && LOCAL > 1
    /* A stretch is one element for each work-item. */
    for (long stretch = 0; stretch < space.size; stretch += LOCAL) {
      long i = stretch + id;
      shared[id] = i < space.size ? get_in(from + i, 1) : (CT)0;
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int step = 1; step < LOCAL; step *= 2) {
        CT left = id >= step ? shared[id - step] : (CT)0;
        barrier(CLK_LOCAL_MEM_FENCE);
        shared[id] = ADD(shared[id], left);
        barrier(CLK_LOCAL_MEM_FENCE);
      }
      if (i < space.size) put_out(to + i, ADD(before, shared[id]), 1);
      before = ADD(before, shared[LOCAL - 1]);
      barrier(CLK_LOCAL_MEM_FENCE);
    }
#else
    for (long stretch = 0; stretch < space.size; stretch += 64) {
      VT sum = (VT)0;
      long end = min(stretch + 64, space.size);
      for (long i = stretch; i < end; i++) {
        sum = ADD(sum, get_in(from + PLACE(i), n));
        put_out(to + PLACE(i), ADD(before, sum), n);
      }
      before = ADD(before, sum);
    }
#endif
  }
}
