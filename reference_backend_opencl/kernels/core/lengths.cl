/* How long a line is, |x|_p. After lines.cl. The head defines LENGTH, which says what p is (lengths.h). As with SUM, a line
 * may be added to `total` in several runs, which begins as LENGTH_OF_NONE:
 *   VT total = LENGTH_OF_NONE;
 *   ADD_LENGTH(total, i, n, size, value, p)
 *   total = length_of(LENGTH_TOTAL(total, shared), p); */
#define COUNTED 0 /* p is 0: how many there are beside 0 */
#define ADDED 1   /* 1 */
#define SQUARED 2 /* 2 */
#define POWERS 3  /* any other number */
#define MOST 4    /* infinity */
#define LEAST 5   /* -infinity */

static VT length_term(VT v, CT p) {
#if LENGTH == COUNTED
  return v != (VT)0 ? (VT)1 : (VT)0;
#elif LENGTH == SQUARED
  return v * v;
#elif LENGTH == POWERS
  return POW(fabs(v), (VT)p);
#elif LENGTH == LEAST
  return -fabs(v);
#else
  return fabs(v);
#endif
}

static VT length_of(VT total, CT p) {
#if LENGTH == SQUARED
  return sqrt(total);
#elif LENGTH == POWERS
  return POW(total, (VT)((CT)1 / p));
#elif LENGTH == LEAST
  return -total;
#else
  return total;
#endif
}

#if LENGTH == MOST || LENGTH == LEAST
#define LENGTH_OF_NONE (LENGTH == MOST ? (VT)0 : (VT)(-INFINITY))
#define ADD_LENGTH(total, i, n, size, value, p)                                \
  EACH(i, n, 0, size, VT term = only(length_term(value, p), n, -INFINITY);     \
       total = LARGER(term, total))
#define LENGTH_TOTAL(total, shared) total_max(total, shared)
#else
#define LENGTH_OF_NONE ((VT)0)
#define ADD_LENGTH(total, i, n, size, value, p) SUM(total, i, n, size, length_term(value, p))
#define LENGTH_TOTAL(total, shared) total_sum(total, shared)
#endif

/* What shortens a line of this length to `most`; 1 where it is not above that. */
static VT shortening(VT length, CT most) { return length > (VT)most ? (VT)most / (length + (VT)K(1e-7)) : (VT)1; }
