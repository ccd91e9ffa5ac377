/* index.cl for lines that lie side by side, on a GPU. After candidates.cl. A team of work-items, `width` of them side by
 * side and `depth` behind each other, takes as many lines; a group has several teams, or several groups, the splits, share
 * a line, and leave a candidate each: a second launch, GIVEN those as rows of lines, chooses. The head defines what
 * index.cl wants of it. */
typedef struct {
  long size, inner, units_per_row, units, width, depth, size_of_split;
  long source_size, source_inner; /* of the tensor itself, where lines are of candidates */
} columns;
DEFINE_ACCESS(in, D_IN)

KERNEL find(PLACE(indices), PLACE(values), CONST_PLACE(in), CONST_PLACE(given), CONST_PLACE(source), columns space) {
  __local CT shared_values[LOCAL];
  __local long shared_places[LOCAL];
  const int width = (int)space.width, depth = (int)space.depth, id = (int)get_local_id(0), place = id / width % depth;
  const long unit = (long)get_group_id(0) * (LOCAL / (width * depth)) + id / (width * depth);
  const long row = unit / space.units_per_row, j = unit % space.units_per_row * width + id % width;
  const long start = row * space.size * space.inner + j, begin = (long)get_group_id(1) * space.size_of_split;
  const long end = unit < space.units && j < space.inner ? min(begin + space.size_of_split, space.size) : 0;
  __global const RAW(D_IN) *from = CONST_POINTER(D_IN, in) + start;
  candidate best = {(CT)0, -1};
#pragma unroll 8
  for (long i = begin + place; i < end; i += depth) {
    CT v = one_in(from + i * space.inner);
    bool wins = best.at < 0 || GOES_BEFORE(v, best.value);
    best.value = wins ? v : best.value;
    best.at = wins ? i : best.at;
  }
  shared_values[id] = best.value;
  shared_places[id] = best.at;
  for (int half_depth = depth / 2; half_depth > 0; half_depth /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (place < half_depth) {
      candidate other = {shared_values[id + half_depth * width], shared_places[id + half_depth * width]};
      best = better(best, other);
      shared_values[id] = best.value;
      shared_places[id] = best.at;
    }
  }
  if (place != 0 || best.at < 0) return;
  long out = row * space.inner + j, at = best.at;
#ifdef GIVEN
  at = ((__global const long *)(given + offset_given))[start + at * space.inner];
#endif
#ifdef PARTIAL
  out += (long)get_group_id(1) * (space.units / space.units_per_row * space.inner);
  ((__global CT *)(values + offset_values))[out] = best.value;
#elif defined(WITH_VALUES)
  const long outer = out / space.source_inner;
  POINTER(D_VALUES, values)[out] = CONST_POINTER(D_VALUES, source)[
    (outer * space.source_size + at) * space.source_inner + (out - outer * space.source_inner)];
#endif
  ((__global long *)(indices + offset_indices))[out] = at;
}
