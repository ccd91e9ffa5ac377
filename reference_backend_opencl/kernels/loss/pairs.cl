/* Losses of two tensors of one shape, and their gradients. After cascade.cl and lines.cl, all rows. The head defines
 *   D         the dtype               LOSS, SLOPE  the loss of x and y with the number z, and its derivative by x
 *   WEIGHTED  a third tensor scales each element
 *   CHECKED   OP_ID: x must lie in [0, 1]
 *   ONE_GRADIENT  the cotangent is one number */
DEFINE_ACCESS(value, D)

typedef struct {
  long elements, part;
} pairs;

#define D_SIZE fabs(x - y)
/* A logarithm above -100, so that a certain mistake does not cost infinitely much. */
#define KEPT(v) fmax(v, (VT)(-100))

static VT loss(VT x, VT y, VT z) { return LOSS; }
static VT slope(VT x, VT y, VT z) { return SLOPE; }

static VT weight_at(__global const RAW(D) * weights, long i, int n) {
#ifdef WEIGHTED
  return get_value(weights + i, n);
#else
  return (VT)1;
#endif
}
/* Of n lanes; those beyond are copies of the first. NaN is no probability, either. */
static VT checked(VT v, __global long *faults) {
#ifdef CHECKED
  if (SOME(!((v >= (VT)0) & (v <= (VT)1)))) REPORT(faults, OP_ID, 0, FAULT_PROBABILITY);
#endif
  return v;
}

#define OPERANDS                                       \
  PLACE(out), CONST_PLACE(a), __global const uchar *b, \
      ulong offset_b, CONST_PLACE(weight)

/* Where the part of a work-group begins, and how long it is. */
static long part_start(pairs shape) { return (long)get_group_id(0) * shape.part; }
static long part_size(pairs shape) { return min(shape.part, shape.elements - part_start(shape)); }

/* Each unit sums a part. */
KERNEL pair_parts(OPERANDS, __global long *faults, pairs shape, CT number) {
  GROUP_ARRAY(CT, shared);
  long start = part_start(shape), size = part_size(shape);
  __global const RAW(D) *p = CONST_POINTER(D, a) + start, *q = CONST_POINTER(D, b) + start;
  __global const RAW(D) *w = CONST_POINTER(D, weight) + start;
  VT sum = (VT)0;
#ifdef CHECKED
  EACH(i, n, 0, size, checked(get_value(p + i, n), faults))
#endif
  SUM(sum, i, n, size, loss(get_value(p + i, n), get_value(q + i, n), (VT)number) * weight_at(w, i, n))
  put_part((__global CT *)(out + offset_out), total_sum(sum, shared));
}

/* The parts' sum, divided by the number of elements for the mean. One work-group. */
KERNEL pair_finish(PLACE(out), CONST_PLACE(parts), long count, CT divisor) {
  GROUP_ARRAY(CT, shared);
  const CT sum = sum_of_parts((__global const CT *)(parts + offset_parts), count, shared);
  if (get_local_id(0) == 0) put_value(POINTER(D, out), (VT)(sum / divisor), 1);
}

KERNEL pair_each(OPERANDS, __global long *faults, pairs shape, CT number) {
  long start = part_start(shape), size = part_size(shape);
  __global const RAW(D) *p = CONST_POINTER(D, a) + start, *q = CONST_POINTER(D, b) + start;
  __global const RAW(D) *w = CONST_POINTER(D, weight) + start;
  __global RAW(D) *to = POINTER(D, out) + start;
  EACH(i, n, 0, size, VT x = checked(get_value(p + i, n), faults);
       put_value(to + i, loss(x, get_value(q + i, n), (VT)number) * weight_at(w, i, n), n))
}

KERNEL pair_gradient(OPERANDS, CONST_PLACE(grad), pairs shape, CT number, CT factor) {
  long start = part_start(shape), size = part_size(shape);
  __global const RAW(D) *p = CONST_POINTER(D, a) + start, *q = CONST_POINTER(D, b) + start;
  __global const RAW(D) *w = CONST_POINTER(D, weight) + start;
  __global const RAW(D) *g = CONST_POINTER(D, grad);
  __global RAW(D) *to = POINTER(D, out) + start;
#ifdef ONE_GRADIENT
  RAW(D) lanes[VEC];
  for (int j = 0; j < VEC; j++) lanes[j] = g[0];
  VT same = LOAD(D, __private, lanes);
#define GRADIENT(i, n) same
#else
#define GRADIENT(i, n) get_value(g + start + i, n)
#endif
  EACH(i, n, 0, size, VT slopes = slope(get_value(p + i, n), get_value(q + i, n), (VT)number);
       put_value(to + i, (VT)factor * slopes * weight_at(w, i, n) * GRADIENT(i, n), n))
}
