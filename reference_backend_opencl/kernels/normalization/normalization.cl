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

/* A weight or a bias: ALONG, at each element (HERE); else one for a segment (OF_SEGMENT). */
#ifdef ALONG
#define OF_SEGMENT(p) ((VT)0)
#define HERE(p, of_segment) get_value((p) + i, n)
#else
#define OF_SEGMENT(p) get_value((p) + place.weight + s * shape.weight_step, place.lanes)
#define HERE(p, of_segment) (of_segment)
#endif
#ifdef HAS_WEIGHT
#define WEIGHT(p, of_segment) HERE(p, of_segment)
#else
#define WEIGHT(p, of_segment) ((VT)1)
#endif
#ifdef HAS_BIAS
#define BIAS(p, of_segment) HERE(p, of_segment)
#else
#define BIAS(p, of_segment) ((VT)0)
#endif

/* Visits the segments s of the row at hand; in it, EACH and SUM find their vectors at AT. */
#define EACH_SEGMENT for (long s = 0, segment = place.start; s < shape.segments; s++, segment += shape.segment_stride)
#define AT (segment + PLACE(i))
#ifdef ROWS
#define IS_WRITER (get_local_id(0) == 0)
#else
#define IS_WRITER 1
#endif

static VT squared(VT v) { return v * v; }
