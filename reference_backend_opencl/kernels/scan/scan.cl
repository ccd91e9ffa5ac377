/* What runs along a line of which a work-item takes all, or some side by side. After lines.cl and joins.cl. The head
 * defines D_OUT, D_IN, and either AT_LEAST(a, b), which of two goes first, or JOIN(a, b) and NOTHING, which joined with
 * anything changes nothing; rows have VEC 1.
 * Sums are made in stretches, so that rounding errors do not grow with the whole length; SCAN_STRETCH may be all of it. */
#ifdef AT_LEAST
/* The extremum so far and where it stands: of equals the last, and a NaN before all. A work-item takes a line; values
 * are moved as they are, `in` and `values` having one dtype. */
KERNEL scan_extremum(PLACE(values), PLACE(indices), CONST_PLACE(in), lines space) {
  long first = (long)get_global_id(0) * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    long start = unit / space.inner * space.size * space.inner + unit % space.inner, best = 0;
    __global const RAW(D_IN) *from = CONST_POINTER(D_IN, in) + start;
    __global RAW(D_IN) *to = POINTER(D_IN, values) + start;
    __global long *at = (__global long *)(indices + offset_indices) + start;
    CT most = LOAD(D_IN, __global, from);
    for (long i = 0; i < space.size; i++) {
      CT v = LOAD(D_IN, __global, from + i * space.inner);
      if (v != v || (most == most && AT_LEAST(v, most))) {
        most = v;
        best = i;
      }
      at[i * space.inner] = best;
      to[i * space.inner] = from[best * space.inner];
    }
  }
}
#else
#ifndef SCAN_STRETCH
#define SCAN_STRETCH 64
#endif
DEFINE_ACCESS(out, D_OUT)
DEFINE_ACCESS(in, D_IN)

KERNEL scan(PLACE(out), CONST_PLACE(in), lines space) {
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    const int n = unit_lanes(space, unit);
    long start = unit_start(space, unit);
    __global RAW(D_OUT) *to = POINTER(D_OUT, out) + start;
    __global const RAW(D_IN) *from = CONST_POINTER(D_IN, in) + start;
    VT before = (VT)(NOTHING);
    for (long stretch = 0; stretch < space.size; stretch += SCAN_STRETCH) {
      VT sum = (VT)(NOTHING);
      long end = min(stretch + SCAN_STRETCH, space.size);
      for (long i = stretch; i < end; i++) {
        sum = JOIN(sum, get_in(from + AT(space, i), n));
        put_out(to + AT(space, i), JOIN(before, sum), n);
      }
      before = JOIN(before, sum);
    }
  }
}
#endif
