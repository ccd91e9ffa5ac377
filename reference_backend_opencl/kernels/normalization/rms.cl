/* Root mean square normalization and its gradient. The head defines D (values and weight), D_RSTD and HAS_WEIGHT, and
 * which kernel it is: BACKWARD, or COLUMNS for the gradient of the weight, which is not made after lines.cl but takes
 * 16 columns a work-item. */
#ifndef COLUMNS
DEFINE_ACCESS(value, D)
DEFINE_ACCESS(rstd, D_RSTD)

#if HAS_WEIGHT
#define W get_value(weights + i, n)
#else
#define W ((VT)1)
#endif
#define X get_value(x + start + i, n)
#define G get_value(g + start + i, n)

#ifndef BACKWARD
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void rms_norm(
    __global uchar *out, ulong offset_out, __global uchar *rstds, ulong offset_rstds, __global const uchar *in,
    ulong offset_in, __global const uchar *weight, ulong offset_weight, CT epsilon, lines space) {
  __local CT shared[LOCAL];
  __global const RAW(D) *x = CONST_POINTER(D, in, offset_in), *weights = CONST_POINTER(D, weight, offset_weight);
  __global RAW(D) *to = POINTER(D, out, offset_out);
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    const long start = unit * space.size;
    VT squares = (VT)0;
    SUM(squares, space.size, X * X)
    const VT rstd = (VT)1 / sqrt(total_sum(squares, shared) / (VT)(CT)space.size + epsilon);
    EACH(0, space.size, put_value(to + start + i, X * rstd * W, n))
    if (get_local_id(0) == 0) put_rstd(POINTER(D_RSTD, rstds, offset_rstds) + unit, rstd, 1);
  }
}
#else
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void rms_norm_backward(
    __global uchar *out, ulong offset_out, __global const uchar *grad, ulong offset_grad, __global const uchar *in,
    ulong offset_in, __global const uchar *rstds, ulong offset_rstds, __global const uchar *weight, ulong offset_weight,
    lines space) {
  __local CT shared[LOCAL];
  __global const RAW(D) *x = CONST_POINTER(D, in, offset_in), *weights = CONST_POINTER(D, weight, offset_weight);
  __global const RAW(D) *g = CONST_POINTER(D, grad, offset_grad);
  __global RAW(D) *to = POINTER(D, out, offset_out);
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    const long start = unit * space.size;
    const VT rstd = get_rstd(CONST_POINTER(D_RSTD, rstds, offset_rstds) + unit, 1);
    VT sum = (VT)0;
    SUM(sum, space.size, G * W * X)
    const VT slope = total_sum(sum, shared) / (VT)(CT)space.size * rstd * rstd;
    EACH(0, space.size, put_value(to + start + i, rstd * (G * W - X * slope), n))
  }
}
#endif
#else
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void rms_norm_weight(
    __global uchar *out, ulong offset_out, __global const uchar *grad, ulong offset_grad, __global const uchar *in,
    ulong offset_in, __global const uchar *rstds, ulong offset_rstds, long rows, long columns) {
  __global const RAW(D) *x = (__global const RAW(D) *)(in + offset_in);
  __global const RAW(D) *g = (__global const RAW(D) *)(grad + offset_grad);
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
        const CT rstd = LOAD(D_RSTD, __global, (__global const RAW(D_RSTD) *)(rstds + offset_rstds) + row);
        const long at = row * columns + first;
        for (int k = 0; k < count; k++) part[k] += LOAD(D, __global, g + at + k) * LOAD(D, __global, x + at + k) * rstd;
      }
      for (int k = 0; k < 16; k++) blocks[k] += part[k];
    }
    for (int k = 0; k < 16; k++) sums[k] += blocks[k];
  }
  for (int k = 0; k < count; k++) STORE(D, __global, (__global RAW(D) *)(out + offset_out) + first + k, sums[k]);
}
#endif
