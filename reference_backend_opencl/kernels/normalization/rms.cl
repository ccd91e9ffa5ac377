/* Root mean square normalization and its gradient. The head defines D (values and weight), D_RSTD and HAS_WEIGHT, and
 * which kernel it is: BACKWARD, or COLUMNS for the gradient of the weight, which is not made after lines.cl but takes
 * 16 columns a work-item. */
#ifndef COLUMNS
DEFINE_ACCESS(value, D)
DEFINE_ACCESS(rstd, D_RSTD)

static VT weight_at(__global const RAW(D) * weights, long i, int n) {
#if HAS_WEIGHT
  return get_value(weights + i, n);
#else
  return (VT)1;
#endif
}

#ifndef BACKWARD
KERNEL rms_norm(PLACE(out), PLACE(rstds), CONST_PLACE(in), CONST_PLACE(weight), CT epsilon, lines space) {
  GROUP_ARRAY(CT, shared);
  __global const RAW(D) *x = CONST_POINTER(D, in), *weights = CONST_POINTER(D, weight);
  __global RAW(D) *to = POINTER(D, out);
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    __global const RAW(D) *row = x + unit * space.size;
    VT squares = (VT)0;
    SUM(squares, i, n, space.size, get_value(row + i, n) * get_value(row + i, n))
    const VT rstd = (VT)1 / sqrt(total_sum(squares, shared) / (VT)(CT)space.size + epsilon);
    EACH(i, n, 0, space.size,
         put_value(to + unit * space.size + i, get_value(row + i, n) * rstd * weight_at(weights, i, n), n))
    if (get_local_id(0) == 0) put_rstd(POINTER(D_RSTD, rstds) + unit, rstd, 1);
  }
}
#else
KERNEL rms_norm_backward(PLACE(out), CONST_PLACE(grad), CONST_PLACE(in), CONST_PLACE(rstds), CONST_PLACE(weight),
                         lines space) {
  GROUP_ARRAY(CT, shared);
  __global const RAW(D) *x = CONST_POINTER(D, in), *weights = CONST_POINTER(D, weight);
  __global const RAW(D) *g = CONST_POINTER(D, grad);
  __global RAW(D) *to = POINTER(D, out);
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    __global const RAW(D) *row = x + unit * space.size, *g_row = g + unit * space.size;
    const VT rstd = get_rstd(CONST_POINTER(D_RSTD, rstds) + unit, 1);
    VT sum = (VT)0;
    SUM(sum, i, n, space.size, get_value(g_row + i, n) * weight_at(weights, i, n) * get_value(row + i, n))
    const VT slope = total_sum(sum, shared) / (VT)(CT)space.size * rstd * rstd;
    EACH(i, n, 0, space.size,
         VT part = get_value(g_row + i, n) * weight_at(weights, i, n) - get_value(row + i, n) * slope;
         put_value(to + unit * space.size + i, rstd * part, n))
  }
}
#endif
#else
KERNEL rms_norm_weight(PLACE(out), CONST_PLACE(grad), CONST_PLACE(in), CONST_PLACE(rstds), long rows, long columns) {
  __global const RAW(D) *x = CONST_POINTER(D, in);
  __global const RAW(D) *g = CONST_POINTER(D, grad);
  const long first = (long)get_global_id(0) * 16;
  const int count = (int)min(16L, columns - first);
  CT sums[16];
  for (int k = 0; k < 16; k++) sums[k] = 0;
  for (long stretch = 0; stretch < rows && count > 0; stretch += 64 * 64) {
    CT blocks[16];
    for (int k = 0; k < 16; k++) blocks[k] = 0;
    for (long block = stretch; block < min(stretch + 64 * 64, rows); block += 64) {
      CT part[16];
      for (int k = 0; k < 16; k++) part[k] = 0;
      for (long row = block; row < min(block + 64, rows); row++) {
        const CT rstd = LOAD(D_RSTD, __global, CONST_POINTER(D_RSTD, rstds) + row);
        const long at = row * columns + first;
        for (int k = 0; k < count; k++) part[k] += LOAD(D, __global, g + at + k) * LOAD(D, __global, x + at + k) * rstd;
      }
      for (int k = 0; k < 16; k++) blocks[k] += part[k];
    }
    for (int k = 0; k < 16; k++) sums[k] += blocks[k];
  }
  for (int k = 0; k < count; k++) STORE(D, __global, POINTER(D, out) + first + k, sums[k]);
}
#endif
