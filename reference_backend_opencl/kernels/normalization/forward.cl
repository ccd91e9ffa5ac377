/* Layer, group and batch normalization. After lines.cl and normalization.cl. The head defines also D_RUNNING; FIXED: the
 * running statistics are used, else UPDATES: they are brought up to date. */
DEFINE_ACCESS(running, D_RUNNING)

KERNEL forward(PLACE(out), PLACE(means), PLACE(rstds), CONST_PLACE(in), CONST_PLACE(weight), CONST_PLACE(bias),
               PLACE(running_mean), PLACE(running_var), CT epsilon, CT momentum, CT keep, lines space, rows shape) {
  GROUP_ARRAY(CT, shared);
  __global const RAW(D) *x = CONST_POINTER(D, in);
  __global const RAW(D) *weights = CONST_POINTER(D, weight);
  __global const RAW(D) *biases = CONST_POINTER(D, bias);
  __global RAW(D) *to = POINTER(D, out);
  const VT count = (VT)(CT)(space.size * shape.segments);
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    const unit_place place = place_of(space, shape, unit);
    const int n = place.lanes;
    __global RAW(D_RUNNING) *old_mean = POINTER(D_RUNNING, running_mean) + place.statistic;
    __global RAW(D_RUNNING) *old_var = POINTER(D_RUNNING, running_var) + place.statistic;
#ifdef FIXED
    VT mean = get_running(old_mean, n), var = get_running(old_var, n);
#else
    VT mean = (VT)0, squares = (VT)0;
    EACH_SEGMENT(s, segment, place, shape) {
      SUM(mean, i, n, space.size, get_value(x + segment + AT(space, i), n))
    }
    mean = total_sum(mean, shared) / count;
    EACH_SEGMENT(s, segment, place, shape) {
      SUM(squares, i, n, space.size, squared(get_value(x + segment + AT(space, i), n) - mean))
    }
    squares = total_sum(squares, shared);
    VT var = squares / count;
#endif
    VT rstd = (VT)1 / sqrt(var + epsilon);
    EACH_SEGMENT(s, segment, place, shape) {
      VT w = of_segment(weights, place, shape, s), b = of_segment(biases, place, shape, s);
      EACH(i, n, 0, space.size, long at = segment + AT(space, i); VT v = (get_value(x + at, n) - mean) * rstd;
           put_value(to + at, v * WEIGHT(weights, w, i, n) + BIAS(biases, b, i, n), n))
    }
    if (IS_WRITER) {
      put_statistic(POINTER(D_STATISTIC, means) + place.statistic, mean, n);
      put_statistic(POINTER(D_STATISTIC, rstds) + place.statistic, rstd, n);
#if defined(UPDATES) && !defined(FIXED)
      put_running(old_mean, momentum * mean + keep * get_running(old_mean, n), n);
      put_running(old_var, momentum * (squares / (count - (VT)1)) + keep * get_running(old_var, n), n);
#endif
    }
  }
}
