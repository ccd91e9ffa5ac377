/* Where the largest (or smallest) of a line stands, and the value itself. After lines.cl and candidates.cl.
 *
 * A long row is cut into parts, each with a candidate of its own; a
 * second launch, GIVEN those, chooses among them.
 *
 * The head defines D_IN, PARTIAL (candidates are written: values as CT, indices), GIVEN (candidates are
 * read), WITH_VALUES and D_VALUES: the values come from `source`, the tensor itself. */
DEFINE_ACCESS(in, D_IN)

/* The candidates of all lanes and work-items of a row; else those of the lanes, each its own. */
static INLINED void choose(VT best, VM place, candidate *lanes, __local CT *values, __local long *places) {
  CT best_lanes[VEC];
  MT place_lanes[VEC];
  VSTORE(best, best_lanes);
  VSTORE(place, place_lanes);
#ifdef ROWS
  candidate most = {best_lanes[0], place_lanes[0]};
  for (int j = 1; j < VEC; j++) {
    const candidate other = {best_lanes[j], place_lanes[j] < 0 ? -1L : (long)place_lanes[j] + j};
    most = better(most, other);
  }
#if LOCAL > 1
  int id = (int)get_local_id(0);
  values[id] = most.value;
  places[id] = most.at;
  for (int step = LOCAL / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < step) {
      candidate a = {values[id], places[id]}, b = {values[id + step], places[id + step]};
      a = better(a, b);
      values[id] = a.value;
      places[id] = a.at;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  most.value = values[0];
  most.at = places[0];
  barrier(CLK_LOCAL_MEM_FENCE);
#endif
  lanes[0] = most;
#else
  for (int j = 0; j < VEC; j++) {
    lanes[j].value = best_lanes[j];
    lanes[j].at = place_lanes[j];
  }
#endif
}

/* A unit is a part of a row (`parts` of `part` elements each), or VEC lines side by side. */
KERNEL find(PLACE(indices), PLACE(values), CONST_PLACE(in), CONST_PLACE(given), CONST_PLACE(source), lines space,
            long part, long parts, long source_size) {
  GROUP_ARRAY(CT, shared_values);
  GROUP_ARRAY(long, shared_places);
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
#ifdef ROWS
    long begin = unit % parts * part, start = unit / parts * space.size + begin, out = unit;
    long size = min(part, space.size - begin);
    int n = 1;
#else
    long begin = 0, start = unit_start(space, unit), size = space.size;
    long out = unit / space.units_per_row * space.inner + unit % space.units_per_row * VEC;
    int n = unit_lanes(space, unit);
#endif
    __global const RAW(D_IN) *from = CONST_POINTER(D_IN, in) + start;
    VT best = (VT)0;
    VM place = (VM)(-1);
    EACH(i, n, 0, size, VT v = get_in(from + AT(space, i), n); VM wins = GOES_BEFORE(v, best) | (place < (VM)0);
         best = wins ? v : best; place = wins ? (VM)(MT)i : place)
    candidate lanes[VEC];
    choose(best, place, lanes, shared_values, shared_places);
#ifdef ROWS
    if (get_local_id(0) != 0) n = 0;
#endif
    for (int j = 0; j < n; j++) {
      long at = begin + lanes[j].at;
#ifdef GIVEN
      at = ((__global const long *)(given + offset_given))[start + lanes[j].at];
#endif
      ((__global long *)(indices + offset_indices))[out + j] = at;
#ifdef PARTIAL
      ((__global CT *)(values + offset_values))[out + j] = lanes[j].value;
#elif defined(WITH_VALUES)
#ifdef ROWS
      long place_of_value = unit / parts * source_size + at;
#else
      long place_of_value = start + j + at * space.inner;
#endif
      POINTER(D_VALUES, values)[out + j] = CONST_POINTER(D_VALUES, source)[place_of_value];
#endif
    }
  }
}
