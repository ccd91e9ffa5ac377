/* unfold_backward, after direct.cl: a piece is an element of the result, the sum of its places in all windows that cover
 * it, in order of the windows. A window is n.of[2] long and n.of[3] after the one before. */
KERNEL unfold_backward(PLACE(out), PLACE(in), numbers n) {
  const long length = n.of[0], windows = n.of[1], size = n.of[2], step = n.of[3], inner = n.of[4];
  EACH_UNIT(at) {
    const long i = at / inner % length, lane = at % inner, outer = at / inner / length;
    const long first = i < size ? 0 : (i - size) / step + 1, last = size ? min(i / step, windows - 1) : -1;
    CT sum = (CT)(0);
    for (long w = first; w <= last; w++) {
      sum = ADD(sum, GET(ELEMENTS(in) + ((outer * windows + w) * inner + lane) * size + (i - w * step)));
    }
    PUT(ELEMENTS(out) + at, sum);
  }
}
