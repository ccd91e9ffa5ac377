/* Gradients of layer, group and batch normalization. After lines.cl and normalization.cl. With unit = (x - mean) rstd,
 *   dx = rstd (g w - average(g w) - unit average(g w unit)),  dweight = sum(g unit),  dbias = sum(g)
 * where averages go over a row and sums over all elements of a weight.
 *
 * The head defines WANT_X, WANT_W, WANT_B; FIXED: the statistics are given ones, a mean and a variance, and have no part
 * in the gradient; and who sums for weight and bias:
 *   SUMS_OF_ROWS       a row has one weight, and it is the only row that has it: batch norm
 *   SUMS_OF_SEGMENTS   each segment leaves what it adds, for add_partials: group norm
 *   SUMS_BESIDE        each work-item leaves what its rows add, for add_partials: layer norm on a CPU
 * FOLLOWED, of SUMS_BESIDE or nothing: calls that take dx stand before this file, after core/followed.cl. An element's
 * place is its row's and its own.
 * D_SUM is what they write: partial sums, or the gradients themselves. COLUMN_KERNELS: the other two kernels. */
DEFINE_ACCESS(sum, D_SUM)

#ifndef COLUMN_KERNELS
/* Where the gradient of the input goes, of element i of a row the one at `at`; or what calls that follow make of it. */
#ifdef FOLLOWED
typedef struct {
  long row, element;
} result_strides;
typedef struct {
  __global RAW(D_TO) *to;
  result_strides strides;
  extras more;
} target;
#define FOLLOWED_PARAMETERS EPILOGUE_PARAMETERS, result_strides to
#define TARGET {(__global RAW(D_TO) *)(out + offset_out), to, EXTRAS_WITH(grad + offset_grad)}
static INLINED void take_x(const target *t, long at, long row, long i, VT v, int n) {
  const long stride = t->strides.element;
  __global RAW(D_TO) *to = t->to + row * t->strides.row + i * stride;
  v = followed_by(v, row, i, 0, n, t->more);
  if (stride == 1 && n == VEC) {
    STORE(D_TO, __global, to, v);
    return;
  }
  RAW(D_TO) lanes[VEC];
  STORE(D_TO, __private, lanes, v);
  for (int j = 0; j < n; j++) to[j * stride] = lanes[j];
}
#else
typedef struct {
  __global RAW(D) *dx;
} target;
#define FOLLOWED_PARAMETERS
#define TARGET {POINTER(D, out)}
static INLINED void take_x(const target *t, long at, long row, long i, VT v, int n) {
#ifdef WANT_X
  put_value(t->dx + at, v, n);
#endif
}
#endif
/* What an element adds to its weight's and its bias's sums. */
static INLINED void take_beside(__global RAW(D_SUM) * dw, __global RAW(D_SUM) * db, VT gradient, VT unit_value, int n) {
#ifdef SUMS_BESIDE
  put_sum(dw, get_sum(dw, n) + gradient * unit_value, n);
  put_sum(db, get_sum(db, n) + gradient, n);
#endif
}

KERNEL gradient(PLACE(out), PLACE(weight_out), PLACE(bias_out), CONST_PLACE(grad), CONST_PLACE(in), CONST_PLACE(means),
                CONST_PLACE(rstds), CONST_PLACE(weight), CT epsilon FOLLOWED_PARAMETERS, lines space, rows shape) {
  GROUP_ARRAY(CT, shared);
  const target target_x = TARGET;
  __global const RAW(D) *g = CONST_POINTER(D, grad);
  __global const RAW(D) *x = CONST_POINTER(D, in);
  __global const RAW(D) *weights = CONST_POINTER(D, weight);
  __global RAW(D_SUM) *dw = POINTER(D_SUM, weight_out);
  __global RAW(D_SUM) *db = POINTER(D_SUM, bias_out);
  const VT count = (VT)(CT)(space.size * shape.segments);
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
#ifdef SUMS_BESIDE
  dw += UNIT_ID * space.size;
  db += UNIT_ID * space.size;
  EACH(i, n, 0, space.size, put_sum(dw + i, (VT)0, n); put_sum(db + i, (VT)0, n))
#endif
  for (long unit = first; unit < last; unit++) {
    const unit_place place = place_of(space, shape, unit);
    const int n = place.lanes;
    VT mean = get_statistic(CONST_POINTER(D_STATISTIC, means) + place.statistic, n);
    VT rstd = get_statistic(CONST_POINTER(D_STATISTIC, rstds) + place.statistic, n);
#ifdef FIXED
    rstd = (VT)1 / sqrt(rstd + epsilon);
#endif
    /* Sums over the row, weighted; and of g and g * unit as they are. */
    VT all = (VT)0, all_units = (VT)0, plain = (VT)0, plain_units = (VT)0;
    EACH_SEGMENT(s, segment, place, shape) {
#ifdef ALONG
#ifndef FIXED
      SUM_BOTH(all, all_units, i, n, space.size,
               VT weighted = get_value(g + segment + AT(space, i), n) * WEIGHT(weights, (VT)0, i, n), weighted,
               weighted * ((get_value(x + segment + AT(space, i), n) - mean) * rstd))
#endif
#else
      VT some = (VT)0, some_units = (VT)0, w = of_segment(weights, place, shape, s);
      SUM_BOTH(some, some_units, i, n, space.size, VT gradient = get_value(g + segment + AT(space, i), n), gradient,
               gradient * ((get_value(x + segment + AT(space, i), n) - mean) * rstd))
      all += some * WEIGHT(weights, w, 0, n);
      all_units += some_units * WEIGHT(weights, w, 0, n);
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
    EACH_SEGMENT(s, segment, place, shape) {
      VT w = of_segment(weights, place, shape, s);
      EACH(i, n, 0, space.size, long at = segment + AT(space, i);
           VT unit_value = (get_value(x + at, n) - mean) * rstd; VT gradient = get_value(g + at, n);
           take_beside(dw + i, db + i, gradient, unit_value, n);
           take_x(&target_x, at, unit, i, rstd * (gradient * WEIGHT(weights, w, i, n) - all - unit_value * all_units),
                  n))
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
KERNEL column_sums(PLACE(weight_out), PLACE(bias_out), CONST_PLACE(grad), CONST_PLACE(in), CONST_PLACE(means),
                   CONST_PLACE(rstds), long row_count, lines space) {
  __global const RAW(D_STATISTIC) *mean = CONST_POINTER(D_STATISTIC, means);
  __global const RAW(D_STATISTIC) *rstd = CONST_POINTER(D_STATISTIC, rstds);
  GROUP_ARRAY(CT, shared);
  const own_units own = units_of(space);
  for (long unit = own.first; unit < own.last; unit++) {
    const int n = unit_lanes(space, unit);
    long range = unit / space.units_per_row, column = unit % space.units_per_row * VEC, row = range * space.size;
    long size = min(own.space.size, row_count - row), start = row * space.inner + column;
    __global const RAW(D) *g = CONST_POINTER(D, grad) + start;
    __global const RAW(D) *x = CONST_POINTER(D, in) + start;
    VT sum = (VT)0, sum_units = (VT)0;
    SUM_BOTH(sum, sum_units, i, n, size, VT gradient = get_value(g + AT(space, i), n), gradient, gradient *
             ((get_value(x + AT(space, i), n) - get_statistic(mean + row + i, 1)) * get_statistic(rstd + row + i, 1)))
    sum = total_sum(sum, shared);
    sum_units = total_sum(sum_units, shared);
    if (!own.is_there || MEMBER != 0) continue;
    put_sum(POINTER(D_SUM, bias_out) + range * space.inner + column, sum, n);
    put_sum(POINTER(D_SUM, weight_out) + range * space.inner + column, sum_units, n);
  }
}

/* Sums of partial sums, which are D_SUM, over `size`. */
KERNEL add_partials(PLACE(weight_out), PLACE(bias_out), CONST_PLACE(weight_parts), CONST_PLACE(bias_parts),
                    lines space) {
  __global const RAW(D_SUM) *weights = CONST_POINTER(D_SUM, weight_parts);
  __global const RAW(D_SUM) *biases = CONST_POINTER(D_SUM, bias_parts);
  GROUP_ARRAY(CT, shared);
  const own_units own = units_of(space);
  for (long unit = own.first; unit < own.last; unit++) {
    const int n = unit_lanes(space, unit);
    const bool writes = own.is_there && MEMBER == 0;
    long column = unit * VEC;
    VT sum = (VT)0;
#ifdef WANT_W
    SUM(sum, i, n, own.space.size, get_sum(weights + column + AT(space, i), n))
    sum = total_sum(sum, shared);
    if (writes) put_value(POINTER(D, weight_out) + column, sum, n);
#endif
#ifdef WANT_B
    sum = (VT)0;
    SUM(sum, i, n, own.space.size, get_sum(biases + column + AT(space, i), n))
    sum = total_sum(sum, shared);
    if (writes) put_value(POINTER(D, bias_out) + column, sum, n);
#endif
  }
}
#endif
