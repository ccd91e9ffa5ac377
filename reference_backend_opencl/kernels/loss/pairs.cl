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

#ifdef WEIGHTED
#define WEIGHT(i, n) get_value(w + i, n)
#else
#define WEIGHT(i, n) ((VT)1)
#endif
#ifdef CHECKED
/* Of n lanes; those beyond are copies of the first. NaN is no probability, either. */
#define CHECK(v) if (SOME(!((v >= (VT)0) & (v <= (VT)1)))) REPORT(faults, OP_ID, 0, FAULT_PROBABILITY);
#else
#define CHECK(v)
#endif

#define OPERANDS                                                                                              \
  __global uchar *out, ulong offset_out, __global const uchar *a, ulong offset_a, __global const uchar *b,     \
      ulong offset_b, __global const uchar *weight, ulong offset_weight
#define PLACES                                                                                                 \
  long start = (long)get_group_id(0) * shape.part, size = min(shape.part, shape.elements - start);             \
  VT z = (VT)number;                                                                                           \
  __global const RAW(D) *p = CONST_POINTER(D, a, offset_a) + start, *q = CONST_POINTER(D, b, offset_b) + start; \
  __global const RAW(D) *w = CONST_POINTER(D, weight, offset_weight) + start;

/* Each unit sums a part. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void pair_parts(OPERANDS, __global long *faults,
                                                                             pairs shape, CT number) {
  __local CT shared[LOCAL];
  PLACES
  VT sum = (VT)0;
#ifdef CHECKED
  EACH(0, size, VT x = get_value(p + i, n); CHECK(x))
#endif
  SUM(sum, size, loss(get_value(p + i, n), get_value(q + i, n), z) * WEIGHT(i, n))
  sum = total_sum(sum, shared);
  CT lanes[VEC];
  VSTORE(sum, lanes);
  if (get_local_id(0) == 0) ((__global CT *)(out + offset_out))[get_group_id(0)] = lanes[0];
}

/* The parts' sum, divided by the number of elements for the mean. One work-item: there are few. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void pair_finish(__global uchar *out, ulong offset_out,
                                                                          __global const uchar *parts,
                                                                          ulong offset_parts, long count, CT divisor) {
  cascade sum = cascade_of_none();
  for (long k = 0; k < count; k++) cascade_add(&sum, ((__global const CT *)(parts + offset_parts))[k]);
  put_value(POINTER(D, out, offset_out), (VT)(cascade_total(&sum) / divisor), 1);
}

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void pair_each(OPERANDS, __global long *faults,
                                                                            pairs shape, CT number) {
  PLACES
  __global RAW(D) *to = POINTER(D, out, offset_out) + start;
  EACH(0, size, VT x = get_value(p + i, n); CHECK(x) put_value(to + i, loss(x, get_value(q + i, n), z) * WEIGHT(i, n), n))
}

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void pair_gradient(OPERANDS, __global const uchar *grad,
                                                                                ulong offset_grad, pairs shape,
                                                                                CT number, CT factor) {
  PLACES
  __global const RAW(D) *g = CONST_POINTER(D, grad, offset_grad);
  __global RAW(D) *to = POINTER(D, out, offset_out) + start;
#ifdef ONE_GRADIENT
  RAW(D) lanes[VEC];
  for (int j = 0; j < VEC; j++) lanes[j] = g[0];
  VT same = LOAD(D, __private, lanes);
#define GRAD same
#else
#define GRAD get_value(g + start + i, n)
#endif
  EACH(0, size, put_value(to + i, (VT)factor * slope(get_value(p + i, n), get_value(q + i, n), z) * WEIGHT(i, n) * GRAD, n))
}
