/* Softmax, its logarithm, and the gradients of both. After lines.cl. The head defines OP, D_OUT and D_IN,
 * the dtype of a and b: a is the input, or the gradient and b the result. MASKED: where the mask is set, both count as 0. */
DEFINE_ACCESS(out, D_OUT)
DEFINE_ACCESS(a, D_IN)
DEFINE_ACCESS(b, D_IN)
DEFINE_ACCESS(mask, bool)

/* What OP may be. */
#define SOFTMAX 0
#define LOG_SOFTMAX 1
#define SAFE_SOFTMAX 2
#define SOFTMAX_BACKWARD 3
#define LOG_SOFTMAX_BACKWARD 4

/* exp(a - most) on the first visit, and again: KEEPS, where the output holds it as exactly as it was computed; ASIDE, so
 * many of a line that the work-item has room for. */
#ifndef ASIDE
#define ASIDE 0
#endif
static VT first_term(__global RAW(D_OUT) * out, CT *aside, VT a, VT most, int n) {
  VT term = EXP(a - most);
#ifdef KEEPS
  put_out(out, term, n);
#elif ASIDE
  VSTORE(term, aside);
#endif
  return term;
}
static VT term(__global const RAW(D_OUT) * out, const CT *aside, __global const RAW(D_IN) * a, VT most, int n) {
#ifdef KEEPS
  return get_out(out, n);
#elif ASIDE
  return VLOAD(aside);
#else
  return EXP(get_a(a, n) - most);
#endif
}

/* v, which has n lanes, or 0 where it is masked. */
static VT left(VT v, __global const uchar *mask, int n) {
#ifdef MASKED
  return get_mask(mask, n) == (VT)0 ? v : (VT)0;
#else
  return v;
#endif
}

/* While terms are made, which takes long, a CPU asks for the next row and for what this one's results go to. */
#if defined(ROWS) && LOCAL == 1
static void ask_for(__global const RAW(D_OUT) * out, __global const RAW(D_IN) * next) {
  PREFETCH(out);
  PREFETCH(next);
}
#define WITH_NEXT(out, a, size, i, term) (ask_for((out) + (i), (a) + (size) + (i)), term)
#else
#define WITH_NEXT(out, a, size, i, term) (term)
#endif

static VT safe(VT y, VT most) {
#if OP == SAFE_SOFTMAX
  return most == (VT)(-INFINITY) ? (VT)0 : y;
#else
  return y;
#endif
}

#define KEPT_AT(i) (ASIDE ? (i) : 0)

static INLINED void line(__global RAW(D_OUT) * out, __global const RAW(D_IN) * a, __global const RAW(D_IN) * b,
                         __global const uchar *mask, lines space, int n, __local CT *shared) {
  VT sum = (VT)0;
  long size = space.size;
#if OP == SOFTMAX_BACKWARD
  SUM(sum, i, n, size,
      left(get_a(a + AT(space, i), n), mask + AT(space, i), n) * left(get_b(b + AT(space, i), n), mask + AT(space, i), n))
  sum = total_sum(sum, shared);
  EACH(i, n, 0, size, long at = AT(space, i); VT g = left(get_a(a + at, n), mask + at, n);
       put_out(out + at, left(get_b(b + at, n), mask + at, n) * (g - sum), n))
#elif OP == LOG_SOFTMAX_BACKWARD
  SUM(sum, i, n, size, get_a(a + AT(space, i), n))
  sum = total_sum(sum, shared);
  EACH(i, n, 0, size, long at = AT(space, i); put_out(out + at, get_a(a + at, n) - EXP(get_b(b + at, n)) * sum, n))
#else
  VT most = (VT)(-INFINITY);
  MOST(most, i, n, size, get_a(a + AT(space, i), n))
  most = total_max(most, shared);
#if OP == LOG_SOFTMAX
  SUM(sum, i, n, size, WITH_NEXT(out, a, size, i, EXP(get_a(a + AT(space, i), n) - most)))
  sum = log(total_sum(sum, shared));
  EACH(i, n, 0, size, long at = AT(space, i); put_out(out + at, get_a(a + at, n) - most - sum, n))
#else
  CT aside[ASIDE + VEC];
  SUM(sum, i, n, size,
      WITH_NEXT(out, a, size, i,
                first_term(out + AT(space, i), aside + KEPT_AT(i), get_a(a + AT(space, i), n), most, n)))
  sum = total_sum(sum, shared);
  EACH(i, n, 0, size, long at = AT(space, i); put_out(out + at, safe(term(out + at, aside + KEPT_AT(i), a + at, most, n) / sum, most), n))
#endif
#endif
}

KERNEL softmax(PLACE(out), CONST_PLACE(a), CONST_PLACE(b), CONST_PLACE(mask), lines space) {
  GROUP_ARRAY(CT, shared);
  const own_units own = units_of(space);
  for (long unit = own.first; unit < own.last; unit++) {
    long start = unit_start(space, unit);
    line(POINTER(D_OUT, out) + start, CONST_POINTER(D_IN, a) + start,
         CONST_POINTER(D_IN, b) + start, mask + offset_mask + start, own.space, unit_lanes(space, unit), shared);
  }
}
