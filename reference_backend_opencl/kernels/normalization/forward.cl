/* Layer, group and batch normalization. After lines.cl and normalization.cl. The head defines also D_RUNNING; FIXED: the
 * running statistics are used, else UPDATES: they are brought up to date. */
DEFINE_ACCESS(running, D_RUNNING)

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void forward(
    __global uchar *out, ulong offset_out, __global uchar *means, ulong offset_means, __global uchar *rstds,
    ulong offset_rstds, __global const uchar *in, ulong offset_in, __global const uchar *weight, ulong offset_weight,
    __global const uchar *bias, ulong offset_bias, __global uchar *running_mean, ulong offset_running_mean,
    __global uchar *running_var, ulong offset_running_var, CT epsilon, CT momentum, CT keep, lines space, rows shape) {
  __local CT shared[LOCAL];
  __global const RAW(D) *x = CONST_POINTER(D, in, offset_in);
  __global const RAW(D) *weights = CONST_POINTER(D, weight, offset_weight);
  __global const RAW(D) *biases = CONST_POINTER(D, bias, offset_bias);
  __global RAW(D) *to = POINTER(D, out, offset_out);
  const VT count = (VT)(CT)(space.size * shape.segments);
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    const unit_place place = place_of(space, shape, unit);
    const int n = place.lanes;
    __global RAW(D_RUNNING) *old_mean = POINTER(D_RUNNING, running_mean, offset_running_mean) + place.statistic;
    __global RAW(D_RUNNING) *old_var = POINTER(D_RUNNING, running_var, offset_running_var) + place.statistic;
#ifdef FIXED
    VT mean = get_running(old_mean, n), var = get_running(old_var, n);
#else
    VT mean = (VT)0, squares = (VT)0;
    EACH_SEGMENT SUM(mean, space.size, get_value(x + AT, n))
    mean = total_sum(mean, shared) / count;
    EACH_SEGMENT SUM(squares, space.size, squared(get_value(x + AT, n) - mean))
    squares = total_sum(squares, shared);
    VT var = squares / count;
#endif
    VT rstd = (VT)1 / sqrt(var + epsilon);
    EACH_SEGMENT {
      VT w = OF_SEGMENT(weights), b = OF_SEGMENT(biases);
      EACH(0, space.size, VT v = (get_value(x + AT, n) - mean) * rstd;
           put_value(to + AT, v * WEIGHT(weights, w) + BIAS(biases, b), n))
    }
    if (IS_WRITER) {
      put_statistic(POINTER(D_STATISTIC, means, offset_means) + place.statistic, mean, n);
      put_statistic(POINTER(D_STATISTIC, rstds, offset_rstds) + place.statistic, rstd, n);
#if defined(UPDATES) && !defined(FIXED)
      put_running(old_mean, momentum * mean + keep * get_running(old_mean, n), n);
      put_running(old_var, momentum * (squares / (count - (VT)1)) + keep * get_running(old_var, n), n);
#endif
    }
  }
}
