/* What lies along one dim and shares a length: slices that are shortened to a bound, and weights that are a direction and
 * a length. After lines.cl, lengths.cl and normalization.cl; a row is a slice. The head defines also D_LENGTH, the dtype of
 * the lengths that a weight norm gives. */
DEFINE_ACCESS(length, D_LENGTH)

#define EACH_ROW(unit)                                              \
  const long first_unit = (long)UNIT_ID * space.per_item;           \
  const long last_unit = min(first_unit + space.per_item, space.units); \
  for (long unit = first_unit; unit < last_unit; unit++)

/* The length of the row at `place`. */
#define ROW_LENGTH(length, x, place, p)                                                              \
  VT length = LENGTH_OF_NONE;                                                                        \
  EACH_SEGMENT(s, segment, place, shape) {                                                           \
    ADD_LENGTH(length, i, n, space.size, get_value(x + segment + AT(space, i), n), p)                \
  }                                                                                                  \
  length = length_of(LENGTH_TOTAL(length, shared), p);

KERNEL renorm(PLACE(out), CONST_PLACE(in), CT p, CT most, lines space, rows shape) {
  GROUP_ARRAY(CT, shared);
  __global const RAW(D) *x = CONST_POINTER(D, in);
  __global RAW(D) *to = POINTER(D, out);
  EACH_ROW(unit) {
    const unit_place place = place_of(space, shape, unit);
    const int n = place.lanes;
    ROW_LENGTH(length, x, place, p)
    const VT factor = shortening(length, most);
    EACH_SEGMENT(s, segment, place, shape) {
      EACH(i, n, 0, space.size, long at = segment + AT(space, i); put_value(to + at, get_value(x + at, n) * factor, n))
    }
  }
}

KERNEL weight_norm(PLACE(out), PLACE(lengths), CONST_PLACE(in), CONST_PLACE(weight), lines space, rows shape) {
  GROUP_ARRAY(CT, shared);
  __global const RAW(D) *x = CONST_POINTER(D, in);
  __global RAW(D) *to = POINTER(D, out);
  EACH_ROW(unit) {
    const unit_place place = place_of(space, shape, unit);
    const int n = place.lanes;
    ROW_LENGTH(length, x, place, 2)
    const VT factor = get_value(CONST_POINTER(D, weight) + place.statistic, n) / length;
    EACH(i, n, 0, space.size, long at = place.start + AT(space, i); put_value(to + at, get_value(x + at, n) * factor, n))
    if (IS_WRITER) put_length(POINTER(D_LENGTH, lengths) + place.statistic, length, n);
  }
}

KERNEL weight_norm_backward(PLACE(out), PLACE(to_weight), CONST_PLACE(grad), CONST_PLACE(in), CONST_PLACE(weight),
                            CONST_PLACE(lengths), lines space, rows shape) {
  GROUP_ARRAY(CT, shared);
  __global const RAW(D) *x = CONST_POINTER(D, in), *g = CONST_POINTER(D, grad);
  __global RAW(D) *to = POINTER(D, out);
  EACH_ROW(unit) {
    const unit_place place = place_of(space, shape, unit);
    const int n = place.lanes;
    __global const RAW(D) *x_row = x + place.start, *g_row = g + place.start;
    VT dots = (VT)0;
    SUM(dots, i, n, space.size, get_value(g_row + AT(space, i), n) * get_value(x_row + AT(space, i), n))
    dots = total_sum(dots, shared);
    const VT length = get_length(CONST_POINTER(D_LENGTH, lengths) + place.statistic, n);
    const VT factor = get_value(CONST_POINTER(D, weight) + place.statistic, n) / length;
    const VT along = dots / (length * length);
    EACH(i, n, 0, space.size, long at = AT(space, i);
         put_value(to + place.start + at, factor * (get_value(g_row + at, n) - get_value(x_row + at, n) * along), n))
    if (IS_WRITER) put_value(POINTER(D, to_weight) + place.statistic, dots / length, n);
  }
}
