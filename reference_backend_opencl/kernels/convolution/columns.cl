/* im2col and col2im, after direct.cl: columns are [planes, kernel rows, kernel columns, places along rows, places along
 * columns]. A piece is a row of the result, of places or of pixels. */
#define SIZE(d) n.of[d]
#define PLACES(d) n.of[2 + (d)]
#define WINDOW(d) n.of[4 + (d)]
#define DILATION(d) n.of[6 + (d)]
#define PADDING(d) n.of[8 + (d)]
#define STRIDE(d) n.of[10 + (d)]

KERNEL im2col(PLACE(out), PLACE(in), numbers n) {
  EACH_UNIT(row) {
    const long place = row % PLACES(0), tap = row / PLACES(0), plane = tap / WINDOW(1) / WINDOW(0);
    const long y = place * STRIDE(0) - PADDING(0) + tap / WINDOW(1) % WINDOW(0) * DILATION(0);
    const long x0 = tap % WINDOW(1) * DILATION(1) - PADDING(1);
    __global const RAW(D) *from = ELEMENTS(in) + (plane * SIZE(0) + y) * SIZE(1);
    for (long i = 0; i < PLACES(1); i++) {
      const long x = x0 + i * STRIDE(1);
      CT v = (CT)(0);
      if (y >= 0 && y < SIZE(0) && x >= 0 && x < SIZE(1)) v = GET(from + x);
      PUT(ELEMENTS(out) + row * PLACES(1) + i, v);
    }
  }
}

/* Which place of the kernel along a dim has a tap on `at`, or -1. */
static long place_of(long at, long stride, long places) {
  return at < 0 || at % stride || at / stride >= places ? -1 : at / stride;
}

KERNEL col2im(PLACE(out), PLACE(in), numbers n) {
  EACH_UNIT(row) {
    const long y = row % SIZE(0), plane = row / SIZE(0);
    for (long x = 0; x < SIZE(1); x++) {
      CT sum = (CT)(0);
      for (long a = 0; a < WINDOW(0); a++) {
        const long i = place_of(y + PADDING(0) - a * DILATION(0), STRIDE(0), PLACES(0));
        CT line = (CT)(0);
        for (long b = 0; i >= 0 && b < WINDOW(1); b++) {
          const long j = place_of(x + PADDING(1) - b * DILATION(1), STRIDE(1), PLACES(1));
          const long tap = (plane * WINDOW(0) + a) * WINDOW(1) + b;
          if (j >= 0) line = ADD(line, GET(ELEMENTS(in) + (tap * PLACES(0) + i) * PLACES(1) + j));
        }
        sum = ADD(sum, line);
      }
      PUT(ELEMENTS(out) + row * SIZE(1) + x, sum);
    }
  }
}
