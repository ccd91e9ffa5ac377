/* The gradient of a cross entropy, with the dtype, the target and the weights of likelihood.cl, behind which it stands:
 * what nll_gradient and the gradient of a logarithm of softmax (softmax.cl) give, one after the other. `result` is that
 * of the latter's forward. */
static CT rounded(CT v) {
  RAW(D) kept[VEC];
  CT lanes[VEC];
  STORE(D, __private, kept, (VT)v);
  VSTORE(LOAD(D, __private, kept), lanes);
  return lanes[0];
}

KERNEL class_gradient(PLACE(out), CONST_PLACE(grad), CONST_PLACE(total), CONST_PLACE(target), CONST_PLACE(weight),
                      CONST_PLACE(result), __global long *faults, likelihood shape, lines space) {
  __global const RAW(D) *weights = CONST_POINTER(D, weight);
  __global const RAW(D) *grads = CONST_POINTER(D, grad);
  const CT divisor = REDUCTION == MEAN ? one_value(CONST_POINTER(D, total)) : (CT)1;
  const long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    __global const RAW(D) *from = CONST_POINTER(D, result) + unit * space.size;
    __global RAW(D) *to = POINTER(D, out) + unit * space.size;
    const long class = class_of(CONST_POINTER(D_TARGET, target), unit, shape, faults);
    const CT g =
        class >= 0 ? rounded(-one_value(grads + (EACH_ROW ? unit : 0)) * weight_of(weights, class) / divisor) : (CT)0;
    const VT sum = (VT)(g + (CT)0); /* of the row: zeros beside g */
    EACH(i, n, 0, space.size, VT v = (VT)0; if (class >= i && class < i + n) {
      CT lanes[VEC];
      VSTORE(v, lanes);
      lanes[class - i] = g;
      v = VLOAD(lanes);
    } put_value(to + i, v - exp(get_value(from + i, n)) * sum, n))
  }
}
