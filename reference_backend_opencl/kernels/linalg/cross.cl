/* The cross product, after direct.cl: a piece is an element of the result; n.of[0] elements lie inside the dim. */
KERNEL cross_product(PLACE(out), PLACE(a), PLACE(b), numbers n) {
  const long inner = n.of[0];
  EACH_UNIT(at) {
    const long part = at / inner % 3, first = at - part * inner;
    const long p = first + (part + 1) % 3 * inner, q = first + (part + 2) % 3 * inner;
    const CT left = MUL(GET(ELEMENTS(a) + p), GET(ELEMENTS(b) + q));
    const CT right = MUL(GET(ELEMENTS(a) + q), GET(ELEMENTS(b) + p));
    PUT(ELEMENTS(out) + at, SUB(left, right));
  }
}
