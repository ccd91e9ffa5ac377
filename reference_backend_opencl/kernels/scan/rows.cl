/* Scans along rows, VEC of them side by side: a lane for each row. For those of which a step takes many instructions, and
 * rows enough. They come and go in squares (core/square.cl); steps, and so the bits, are those of scan.cl. */
#define SCAN_STRETCH 64
DEFINE_ACCESS(out, D_OUT)
DEFINE_ACCESS(in, D_IN)

/* Here `inner` counts rows. Lanes beyond the last one go over it again. */
KERNEL scan_rows(PLACE(out), CONST_PLACE(in), lines space) {
  long first = (long)get_global_id(0) * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    const int rows = unit_lanes(space, unit);
    __global RAW(D_OUT) *to = POINTER(D_OUT, out) + unit * VEC * space.size;
    __global const RAW(D_IN) *from = CONST_POINTER(D_IN, in) + unit * VEC * space.size;
    VT before = (VT)(NOTHING);
    for (long stretch = 0; stretch < space.size; stretch += SCAN_STRETCH) {
      VT sum = (VT)(NOTHING);
      for (long i = stretch; i < min(stretch + SCAN_STRETCH, space.size); i += VEC) {
        const int n = (int)min((long)VEC, space.size - i);
        VT square[VEC];
        for (int row = 0; row < VEC; row++) square[row] = get_in(from + min(row, rows - 1) * space.size + i, n);
        turn_square(square);
        for (int k = 0; k < n; k++) {
          sum = JOIN(sum, square[k]);
          square[k] = JOIN(before, sum);
        }
        turn_square(square);
        for (int row = 0; row < rows; row++) put_out(to + row * space.size + i, square[row], n);
      }
      before = JOIN(before, sum);
    }
  }
}
