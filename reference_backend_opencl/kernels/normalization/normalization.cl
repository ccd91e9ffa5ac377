/* What the kernels of normalizations share. After lines.cl.
 *
 * A row is what shares a mean and a variance: `segments` runs of space.size elements, segment_stride apart, the first at
 * row * row_stride. Its weights begin at row % groups * per_group and go on by weight_step for each segment.
 *   ALONG      one segment, and a weight for each element of it: layer norm
 *   ROWS       a work-group takes a row: group norm, batch norm
 *   otherwise  a work-item takes VEC channels side by side: batch norm without inner dimensions
 *
 * The head defines D (values, weight and bias), D_STATISTIC (mean and rstd), HAS_WEIGHT and HAS_BIAS. */
typedef struct {
  long segments, segment_stride, row_stride, groups, per_group, weight_step;
} rows;

DEFINE_ACCESS(value, D)
DEFINE_ACCESS(statistic, D_STATISTIC)

/* Where a unit begins, its first statistic and weight, and over how many lanes these differ. */
typedef struct {
  long start, statistic, weight;
  int lanes;
} unit_place;

static unit_place place_of(lines space, rows shape, long unit) {
#ifdef ROWS
  unit_place place = {unit * shape.row_stride, unit, unit % shape.groups * shape.per_group, 1};
#else
  unit_place place = {unit * VEC, unit * VEC, unit * VEC, unit_lanes(space, unit)};
#endif
  return place;
}

/* A weight or a bias: ALONG, at each element (`at_element`); else one for a segment (`of_segment`). */
static INLINED VT of_segment(__global const RAW(D) * p, unit_place place, rows shape, long s) {
#ifdef ALONG
  return (VT)0;
#else
  return get_value(p + place.weight + s * shape.weight_step, place.lanes);
#endif
}
static INLINED VT at_element(__global const RAW(D) * p, VT segments_own, long i, int n) {
#ifdef ALONG
  return get_value(p + i, n);
#else
  return segments_own;
#endif
}
#ifdef HAS_WEIGHT
#define WEIGHT(p, segments_own, i, n) at_element(p, segments_own, i, n)
#else
#define WEIGHT(p, segments_own, i, n) ((VT)1)
#endif
#ifdef HAS_BIAS
#define BIAS(p, segments_own, i, n) at_element(p, segments_own, i, n)
#else
#define BIAS(p, segments_own, i, n) ((VT)0)
#endif

/* Visits the segments of the row at `place`: the one numbered s begins at `segment`. */
#define EACH_SEGMENT(s, segment, place, shape) \
  for (long s = 0, segment = (place).start; s < (shape).segments; s++, segment += (shape).segment_stride)
#ifdef ROWS
#define IS_WRITER (get_local_id(0) == 0)
#else
#define IS_WRITER 1
#endif

static VT squared(VT v) { return v * v; }
