/* Scans of whole numbers along rows, four at a time by a CPU: joined in whichever order, they make the same. What came
 * before is joined last, so that a step waits for the one before it no longer than one JOIN takes. VEC is 4. */
DEFINE_ACCESS(out, D_OUT)
DEFINE_ACCESS(in, D_IN)
#define NONE (CT)(NOTHING)

KERNEL scan_lanes(PLACE(out), CONST_PLACE(in), lines space) {
  const long first = (long)get_global_id(0) * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    __global RAW(D_OUT) *to = POINTER(D_OUT, out) + unit_start(space, unit);
    __global const RAW(D_IN) *from = CONST_POINTER(D_IN, in) + unit_start(space, unit);
    VT before = (VT)NONE;
    EACH(i, n, 0, space.size, {
      VT own = get_in(from + i, n);
      own = JOIN(own, (VT)(NONE, own.s0, NONE, own.s2));
      own = JOIN(own, (VT)(NONE, NONE, own.s11));
      put_out(to + i, JOIN(before, own), n);
      before = JOIN(before, (VT)own.s3);
    })
  }
}
