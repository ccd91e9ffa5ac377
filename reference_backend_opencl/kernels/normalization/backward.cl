/* Gradients of layer, group and batch normalization. After lines.cl and normalization.cl. With unit = (x - mean) rstd,
 *   dx = rstd (g w - average(g w) - unit average(g w unit)),  dweight = sum(g unit),  dbias = sum(g)
 * where averages go over a row and sums over all elements of a weight.
 *
 * The head defines WANT_X, WANT_W, WANT_B; FIXED: the statistics are given ones, a mean and a variance, and have no part
 * in the gradient; and who sums for weight and bias:
 *   SUMS_OF_ROWS       a row has one weight, and it is the only row that has it: batch norm
 *   SUMS_OF_SEGMENTS   each segment leaves what it adds, for add_partials: group norm
 *   SUMS_BESIDE        each work-item leaves what its rows add, for add_partials: layer norm on a CPU
 * D_SUM is what they write: partial sums, or the gradients themselves. COLUMN_KERNELS: the other two kernels. */
DEFINE_ACCESS(sum, D_SUM)

#ifndef COLUMN_KERNELS
#ifdef WANT_X
#define TAKE_X put_value(dx + AT, rstd * (gradient * WEIGHT(weights, w) - all - unit_value * all_units), n);
#else
#define TAKE_X
#endif
#ifdef SUMS_BESIDE
#define TAKE_BESIDE                                            \
  put_sum(dw + i, get_sum(dw + i, n) + gradient * unit_value, n); \
  put_sum(db + i, get_sum(db + i, n) + gradient, n);
#else
#define TAKE_BESIDE
#endif

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void gradient(
    __global uchar *out, ulong offset_out, __global uchar *weight_out, ulong offset_weight_out,
    __global uchar *bias_out, ulong offset_bias_out, __global const uchar *grad, ulong offset_grad,
    __global const uchar *in, ulong offset_in, __global const uchar *means, ulong offset_means,
    __global const uchar *rstds, ulong offset_rstds, __global const uchar *weight, ulong offset_weight, CT epsilon,
    lines space, rows shape) {
  __local CT shared[LOCAL];
  __global const RAW(D) *g = CONST_POINTER(D, grad, offset_grad);
  __global const RAW(D) *x = CONST_POINTER(D, in, offset_in);
  __global const RAW(D) *weights = CONST_POINTER(D, weight, offset_weight);
  __global RAW(D) *dx = POINTER(D, out, offset_out);
  __global RAW(D_SUM) *dw = POINTER(D_SUM, weight_out, offset_weight_out);
  __global RAW(D_SUM) *db = POINTER(D_SUM, bias_out, offset_bias_out);
  const VT count = (VT)(CT)(space.size * shape.segments);
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
#ifdef SUMS_BESIDE
  dw += UNIT_ID * space.size;
  db += UNIT_ID * space.size;
  EACH(0, space.size, put_sum(dw + i, (VT)0, n); put_sum(db + i, (VT)0, n))
#endif
  for (long unit = first; unit < last; unit++) {
    const unit_place place = place_of(space, shape, unit);
    const int n = place.lanes;
    VT mean = get_statistic(CONST_POINTER(D_STATISTIC, means, offset_means) + place.statistic, n);
    VT rstd = get_statistic(CONST_POINTER(D_STATISTIC, rstds, offset_rstds) + place.statistic, n);
#ifdef FIXED
    rstd = (VT)1 / sqrt(rstd + epsilon);
#endif
    /* Sums over the row, weighted; and of g and g * unit as they are. */
    VT all = (VT)0, all_units = (VT)0, plain = (VT)0, plain_units = (VT)0;
    EACH_SEGMENT {
#ifdef ALONG
#ifndef FIXED
      SUM(all, space.size, get_value(g + AT, n) * WEIGHT(weights, 0))
      SUM(all_units, space.size, get_value(g + AT, n) * WEIGHT(weights, 0) * ((get_value(x + AT, n) - mean) * rstd))
#endif
#else
      VT some = (VT)0, some_units = (VT)0, w = OF_SEGMENT(weights);
      SUM(some, space.size, get_value(g + AT, n))
      SUM(some_units, space.size, get_value(g + AT, n) * ((get_value(x + AT, n) - mean) * rstd))
      all += some * WEIGHT(weights, w);
      all_units += some_units * WEIGHT(weights, w);
      plain += some;
      plain_units += some_units;
#ifdef SUMS_OF_SEGMENTS
      some = total_sum(some, shared);
      some_units = total_sum(some_units, shared);
      if (IS_WRITER) {
        put_sum(db + unit * shape.segments + s, some, 1);
        put_sum(dw + unit * shape.segments + s, some_units, 1);
      }
#endif
#endif
    }
    all = total_sum(all, shared) / count;
    all_units = total_sum(all_units, shared) / count;
#ifdef FIXED
    all = all_units = (VT)0;
#endif
#if defined(WANT_X) || defined(SUMS_BESIDE)
    EACH_SEGMENT {
      VT w = OF_SEGMENT(weights);
      EACH(0, space.size, VT unit_value = (get_value(x + AT, n) - mean) * rstd; VT gradient = get_value(g + AT, n);
           TAKE_BESIDE TAKE_X)
    }
#endif
#ifdef SUMS_OF_ROWS
    plain = total_sum(plain, shared);
    plain_units = total_sum(plain_units, shared);
    if (IS_WRITER) {
#ifdef WANT_W
      put_sum(dw + place.weight, plain_units, n);
#endif
#ifdef WANT_B
      put_sum(db + place.weight, plain, n);
#endif
    }
#endif
  }
}

#else
/* Layer norm where work-items share rows: each column's sums over a range of rows, which is one of the `outer`. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void column_sums(
    __global uchar *weight_out, ulong offset_weight_out, __global uchar *bias_out, ulong offset_bias_out,
    __global const uchar *grad, ulong offset_grad, __global const uchar *in, ulong offset_in,
    __global const uchar *means, ulong offset_means, __global const uchar *rstds, ulong offset_rstds, long row_count,
    lines space) {
  __global const RAW(D_STATISTIC) *mean = CONST_POINTER(D_STATISTIC, means, offset_means);
  __global const RAW(D_STATISTIC) *rstd = CONST_POINTER(D_STATISTIC, rstds, offset_rstds);
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    const int n = unit_lanes(space, unit);
    long range = unit / space.units_per_row, column = unit % space.units_per_row * VEC, row = range * space.size;
    long size = min(space.size, row_count - row), start = row * space.inner + column;
    __global const RAW(D) *g = CONST_POINTER(D, grad, offset_grad) + start;
    __global const RAW(D) *x = CONST_POINTER(D, in, offset_in) + start;
    VT sum = (VT)0, sum_units = (VT)0;
    SUM(sum, size, get_value(g + PLACE(i), n))
    SUM(sum_units, size, get_value(g + PLACE(i), n) *
        ((get_value(x + PLACE(i), n) - get_statistic(mean + row + i, 1)) * get_statistic(rstd + row + i, 1)))
    put_sum(POINTER(D_SUM, bias_out, offset_bias_out) + range * space.inner + column, sum, n);
    put_sum(POINTER(D_SUM, weight_out, offset_weight_out) + range * space.inner + column, sum_units, n);
  }
}

/* Sums of partial sums, which are D_SUM, over `size`. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void add_partials(
    __global uchar *weight_out, ulong offset_weight_out, __global uchar *bias_out, ulong offset_bias_out,
    __global const uchar *weight_parts, ulong offset_weight_parts, __global const uchar *bias_parts,
    ulong offset_bias_parts, lines space) {
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    const int n = unit_lanes(space, unit);
    long column = unit * VEC;
    VT sum = (VT)0;
#ifdef WANT_W
    SUM(sum, space.size, get_sum(CONST_POINTER(D_SUM, weight_parts, offset_weight_parts) + column + PLACE(i), n))
    put_value(POINTER(D, weight_out, offset_weight_out) + column, sum, n);
#endif
#ifdef WANT_B
    sum = (VT)0;
    SUM(sum, space.size, get_sum(CONST_POINTER(D_SUM, bias_parts, offset_bias_parts) + column + PLACE(i), n))
    put_value(POINTER(D, bias_out, offset_bias_out) + column, sum, n);
#endif
  }
}
#endif
