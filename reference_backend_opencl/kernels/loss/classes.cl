/* A cross entropy, with the dtype, the target and the weights of likelihood.cl, behind which it stands: what nll_gradient
 * and the gradient of a logarithm of softmax (softmax.cl) give, one after the other, and of that logarithm what the
 * likelihood sums up. MADE: `values` are what the logarithm is made of, else they are the logarithm. */
static VT rounded_all(VT v) {
  RAW(D) kept[VEC];
  STORE(D, __private, kept, v);
  return LOAD(D, __private, kept);
}

static CT rounded(CT v) {
  CT lanes[VEC];
  VSTORE(rounded_all((VT)v), lanes);
  return lanes[0];
}

/* What softmax.cl takes off each value of a row, one after the other. */
typedef struct {
  VT most, sum;
} taken_off;

static VT logarithm(VT v, taken_off row) {
#ifdef MADE
  return rounded_all(v - row.most - row.sum);
#else
  return v;
#endif
}

/* While terms are made, which takes long, the next row is asked for. */
static VT term(__global const RAW(D) * from, long next, VT most, int n) {
  PREFETCH(from + next);
  return EXP(get_value(from, n) - most);
}

static INLINED taken_off taken_off_row(__global const RAW(D) * values, long size, __local CT *shared) {
  taken_off row = {(VT)0, (VT)0};
#ifdef MADE
  VT most = (VT)(-INFINITY), sum = (VT)0;
  MOST(most, i, n, size, get_value(values + i, n))
  row.most = total_max(most, shared);
  SUM(sum, i, n, size, term(values + i, size, row.most, n))
  row.sum = log(total_sum(sum, shared));
#endif
  return row;
}

/* The logarithm for each row's class; what is no class is reported where these are summed up. */
KERNEL class_values(PLACE(out), CONST_PLACE(target), CONST_PLACE(values), likelihood shape, lines space) {
  GROUP_ARRAY(CT, shared);
  const long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    __global const RAW(D) *from = CONST_POINTER(D, values) + unit * space.size;
    const long class = (long)(CONST_POINTER(D_TARGET, target))[unit];
    VT v = (VT)0;
    if (class >= 0 && class < shape.classes)
      v = logarithm(get_value(from + class, 1), taken_off_row(from, space.size, shared));
    put_value(POINTER(D, out) + unit, v, 1);
  }
}

KERNEL class_gradient(PLACE(out), CONST_PLACE(grad), CONST_PLACE(total), CONST_PLACE(target), CONST_PLACE(weight),
                      CONST_PLACE(values), __global long *faults, likelihood shape, lines space) {
  GROUP_ARRAY(CT, shared);
  __global const RAW(D) *weights = CONST_POINTER(D, weight);
  __global const RAW(D) *grads = CONST_POINTER(D, grad);
  const CT divisor = REDUCTION == MEAN ? one_value(CONST_POINTER(D, total)) : (CT)1;
  const long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    __global const RAW(D) *from = CONST_POINTER(D, values) + unit * space.size;
    __global RAW(D) *to = POINTER(D, out) + unit * space.size;
    const long class = class_of(CONST_POINTER(D_TARGET, target), unit, shape, faults);
    const CT g =
        class >= 0 ? rounded(-one_value(grads + (EACH_ROW ? unit : 0)) * weight_of(weights, class) / divisor) : (CT)0;
    const VT sum = (VT)(g + (CT)0); /* of the row: zeros beside g */
    const taken_off row = taken_off_row(from, space.size, shared);
    EACH(i, n, 0, space.size, VT v = (VT)0; if (class >= i && class < i + n) {
      CT lanes[VEC];
      VSTORE(v, lanes);
      lanes[class - i] = g;
      v = VLOAD(lanes);
    } put_value(to + i, v - EXP(logarithm(get_value(from + i, n), row)) * sum, n))
  }
}
