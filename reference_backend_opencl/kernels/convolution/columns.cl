/* im2col and col2im, after direct.cl: columns are [planes, kernel rows, kernel columns, places along rows, places along
 * columns]. A piece is a row of the result, of places or of pixels. */
#define SIZE(d) n.of[d]
#define PLACES(d) n.of[2 + (d)]
#define WINDOW(d) n.of[4 + (d)]
#define DILATION(d) n.of[6 + (d)]
#define PADDING(d) n.of[8 + (d)]
#define STRIDE(d) n.of[10 + (d)]

#if LOCAL > 1
/* On a GPU a work-group has a tap of a plane's columns, or a plane of pixels. */
KERNEL im2col_groups(PLACE(out), PLACE(in), numbers n) {
  const long tap = get_group_id(0), plane = tap / WINDOW(1) / WINDOW(0);
  const int top = (int)(tap / WINDOW(1) % WINDOW(0) * DILATION(0) - PADDING(0));
  const int left = (int)(tap % WINDOW(1) * DILATION(1) - PADDING(1));
  const int width = (int)PLACES(1), places = (int)PLACES(0) * width, high = (int)SIZE(0), wide = (int)SIZE(1);
  __global const RAW(D) *from = ELEMENTS(in) + plane * SIZE(0) * SIZE(1);
  __global RAW(D) *to = ELEMENTS(out) + tap * places;
  for (int i = get_local_id(0); i < places; i += LOCAL) {
    const int row = i / width, y = row * (int)STRIDE(0) + top, x = (i - row * width) * (int)STRIDE(1) + left;
    CT v = (CT)(0);
    if (y >= 0 && y < high && x >= 0 && x < wide) v = GET(from + y * wide + x);
    PUT(to + i, v);
  }
}
#endif

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

#if LOCAL > 1
/* The same of numbers that fit. */
static int int_place_of(int at, int stride, int places) {
  const int place = at / stride;
  return at < 0 || place * stride != at || place >= places ? -1 : place;
}
#endif

#if LOCAL > 1
KERNEL col2im_groups(PLACE(out), PLACE(in), numbers n) {
  const long plane = get_group_id(0);
  const int wide = (int)SIZE(1), size = (int)SIZE(0) * wide, places = (int)PLACES(0) * (int)PLACES(1);
  __global const RAW(D) *from = ELEMENTS(in) + plane * WINDOW(0) * WINDOW(1) * places;
  for (int at = get_local_id(0); at < size; at += LOCAL) {
    const int y = at / wide, x = at - y * wide;
    CT sum = (CT)(0);
    for (int a = 0; a < WINDOW(0); a++) {
      const int i = int_place_of(y + (int)PADDING(0) - a * (int)DILATION(0), (int)STRIDE(0), (int)PLACES(0));
      CT line = (CT)(0);
      for (int b = 0; i >= 0 && b < WINDOW(1); b++) {
        const int j = int_place_of(x + (int)PADDING(1) - b * (int)DILATION(1), (int)STRIDE(1), (int)PLACES(1));
        const long tap = a * WINDOW(1) + b;
        if (j >= 0) line = ADD(line, GET(from + tap * places + i * (int)PLACES(1) + j));
      }
      sum = ADD(sum, line);
    }
    PUT(ELEMENTS(out) + plane * size + at, sum);
  }
}
#endif

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
