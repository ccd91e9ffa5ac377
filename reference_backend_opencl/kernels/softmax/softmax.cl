/* Softmax, its logarithm, and the gradients of both. After lines.cl. The head defines OP, D_OUT and D_IN,
 * the dtype of a and b: a is the input, or the gradient and b the result. */
DEFINE_ACCESS(out, D_OUT)
DEFINE_ACCESS(a, D_IN)
DEFINE_ACCESS(b, D_IN)

/* What OP may be. */
#define SOFTMAX 0
#define LOG_SOFTMAX 1
#define SAFE_SOFTMAX 2
#define SOFTMAX_BACKWARD 3
#define LOG_SOFTMAX_BACKWARD 4

/* Stores and hands on. */
static VT kept(__global RAW(D_OUT) * p, VT v, int n) {
  put_out(p, v, n);
  return v;
}

#define A get_a(a + PLACE(i), n)
#define B get_b(b + PLACE(i), n)
#define OUT(v) put_out(out + PLACE(i), v, n)

static INLINED void line(__global RAW(D_OUT) * out, __global const RAW(D_IN) * a, __global const RAW(D_IN) * b, lines space,
                 int n, __local CT *shared) {
  VT sum = (VT)0;
  long size = space.size;
#if OP == SOFTMAX_BACKWARD
  SUM(sum, size, A * B)
  sum = total_sum(sum, shared);
  EACH(0, size, OUT(B * (A - sum)))
#elif OP == LOG_SOFTMAX_BACKWARD
  SUM(sum, size, A)
  sum = total_sum(sum, shared);
  EACH(0, size, OUT(A - exp(B) * sum))
#else
  VT most = (VT)(-INFINITY);
  EACH(0, size, VT v = only(A, n, -INFINITY); most = (v > most) | (v != v) ? v : most)
  most = total_max(most, shared);
#if OP == LOG_SOFTMAX
  SUM(sum, size, exp(A - most))
  sum = log(total_sum(sum, shared));
  EACH(0, size, OUT(A - most - sum))
#else
#ifdef KEEPS /* the output holds what was computed as exactly as it was computed */
  SUM(sum, size, kept(out + PLACE(i), exp(A - most), n))
#define E get_out(out + PLACE(i), n)
#else
  SUM(sum, size, exp(A - most))
#define E exp(A - most)
#endif
  sum = total_sum(sum, shared);
#if OP == SAFE_SOFTMAX
  EACH(0, size, OUT(most == (VT)(-INFINITY) ? (VT)0 : E / sum))
#else
  EACH(0, size, OUT(E / sum))
#endif
#endif
#endif
}

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void softmax(
    __global uchar *out, ulong offset_out, __global const uchar *a, ulong offset_a, __global const uchar *b,
    ulong offset_b, lines space) {
  __local CT shared[LOCAL];
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    long start = unit_start(space, unit);
    line(POINTER(D_OUT, out, offset_out) + start, CONST_POINTER(D_IN, a, offset_a) + start,
         CONST_POINTER(D_IN, b, offset_b) + start, space, unit_lanes(space, unit), shared);
  }
}
