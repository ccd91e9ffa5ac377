/* Parts of a dim, which lengths or offsets cut, each brought together to one element. The head defines D, its dtype, and
 * OP_ID. */
typedef struct {
  long outer, size, inner, parts;
  long by_offsets, checks; /* checks: lengths add up to the size */
} segment_space;

enum { SUM = 1, MEAN, MOST, LEAST, PRODUCT }; /* GRAFT_STR_SEGMENT_REDUCE_* */

/* Where the parts of a row begin and end, one after the other; a part that lies elsewhere counts as one of nothing. */
KERNEL bounds(PLACE(work), CONST_PLACE(divider), __global long *faults, segment_space space) {
  long row = (long)get_global_id(0), sum = 0;
  if (row >= space.outer) return;
  __global const long *from = (__global const long *)(divider + offset_divider) + row * (space.parts + space.by_offsets);
  __global long2 *to = (__global long2 *)(work + offset_work) + row * space.parts;
  int sound = 1;
  for (long i = 0; i < space.parts; i++) {
    long begin = space.by_offsets ? from[i] : sum, end = space.by_offsets ? from[i + 1] : sum + from[i];
    int inside = begin >= 0 && begin <= end && end <= space.size;
    sound &= inside;
    sum = inside ? end : sum;
    to[i] = inside ? (long2)(begin, end) : (long2)(0, 0);
  }
  if (!sound || (space.checks && sum != space.size)) REPORT(faults, OP_ID, row, FAULT_SEGMENTS);
}

static CT joined(CT y, CT x, long how) {
  if (how == MOST) return y != y || y > x ? y : x;
  if (how == LEAST) return y != y || y < x ? y : x;
  return how == PRODUCT ? y * x : y + x;
}

/* An element of the result for each work-item. */
KERNEL reduce(PLACE(out), CONST_PLACE(in), CONST_PLACE(work), long how, CT begin_with, long has_initial,
              segment_space space) {
  long i = (long)get_global_id(0);
  if (i >= space.outer * space.parts * space.inner) return;
  long part = i / space.inner, row = part / space.parts;
  long2 bounds = ((__global const long2 *)(work + offset_work))[part];
  __global const RAW(D) *from = CONST_POINTER(D, in) + (row * space.size) * space.inner + i % space.inner;
  CT y = begin_with;
  for (long k = bounds.x; k < bounds.y; k++) y = joined(y, LOAD(D, __global, from + k * space.inner), how);
  long count = bounds.y - bounds.x;
  if (how == MEAN) y = count ? y / (CT)count : has_initial ? y : (CT)NAN;
  STORE(D, __global, POINTER(D, out) + i, y);
}
