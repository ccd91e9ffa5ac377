/* Scatters of many elements: places of the index space are sorted by where they go, and then what goes to one element of
 * the target is combined in its logical order. After core/items.cl. The same results as scatter.cl's.
 *
 * A place of the index space has an item (PLACE_OF) for each row of `width` elements side by side whose index is the
 * same. Its key is the number of the target's row (BY_ROWS), else that of the target's element itself; `range`, which
 * comes behind all, for what is passed over. The head is that of scatter.cl, without FREE, SCAN and ROWS. */

/* Where both fit in 32 bits, in which devices divide sooner. */
static long quotient(long a, long b) { return (a | b) >> 32 ? a / b : (long)((uint)a / (uint)b); }

#ifdef KEYS_RANK
typedef struct {
  long size[KEYS_RANK];
  STRIDES(KEYS_RANK) stride[INDICES + 1]; /* the target's own, then those of the indices */
  long bound[INDICES], step[INDICES];
  long count, range, skip;
} keys_space;

KERNEL make_keys(PLACE(items), __global long *faults, INDEX_PARAMETERS, keys_space space) {
  __global const long *const index[INDICES] = {INDEX_POINTERS};
  const long place = (long)get_global_id(0);
  if (place >= space.count) return;
  long at[INDICES + 1], rest = place, row = 0;
  for (int k = 0; k < INDICES + 1; k++) at[k] = 0;
  for (int d = 0; d < KEYS_RANK; d++) {
    const long outer = d < KEYS_RANK - 1 ? quotient(rest, space.size[d]) : 0, i = rest - outer * space.size[d];
    rest = outer;
    for (int k = 0; k < INDICES + 1; k++) at[k] += i * space.stride[k].along[d];
  }
  int in_range = 1;
#pragma unroll
  for (int k = 0; k < INDICES; k++) {
    if (!in_range) continue;
    long v = index[k][at[k + 1]], size = space.bound[k], wrapped = WRAPS && v < 0 ? v + size : v;
    in_range = wrapped >= 0 && wrapped < size;
    if (!in_range) {
      REPORT(faults, OP_ID, v, size);
      continue;
    }
    at[0] += wrapped * space.step[k];
    row = row * size + wrapped;
  }
#ifdef BY_ROWS
  long key = row;
#else
  long key = at[0];
#endif
  ((__global ITEM *)(items + offset_items))[place] =
      MAKE_ITEM(in_range && row != space.skip ? key : space.range, place);
}
#else

typedef struct {
  long row_size[ROW_RANK];
  STRIDES(ROW_RANK) row_stride[2]; /* the source's, then the target's */
  long place_size[PLACE_RANK];
  STRIDES(PLACE_RANK) place_stride[1]; /* the source's */
  long bound[KEY_PARTS], step[KEY_PARTS];
  long count, range, width;
} combine_space;

static long source_at(long place, const combine_space *space) {
  long at = 0;
  for (int d = 0; d < PLACE_RANK; d++) {
    const long outer = d < PLACE_RANK - 1 ? quotient(place, space->place_size[d]) : 0;
    at += (place - outer * space->place_size[d]) * space->place_stride[0].along[d];
    place = outer;
  }
  return at;
}

#define ITEM_AT(i) item[i]
#define SOURCE_OF(item) (from + source_at((long)PLACE_OF(item), &space))

/* The first item whose key is not below this one. */
static long first_item(__global const ITEM *item, long key, long count) {
  long low = 0, high = count;
  while (low < high) {
    const long middle = (low + high) / 2;
    if ((long)KEY(item[middle]) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* A work-item for each element of each place's row; of those that go to one element, the first does the work, or where
 * the last one stays (SETS), that one. BY_TARGET: a work-item for each element of each of the target's rows, which looks
 * for its first item: where many go to one element, all work-items then have something to do. */
KERNEL combine(PLACE(target), CONST_PLACE(source), CONST_PLACE(items), CT number, CT none, combine_space space) {
  __global const ITEM *item = (__global const ITEM *)(items + offset_items);
  const long unit = (long)get_global_id(0), row = space.width == 1 ? unit : quotient(unit, space.width);
#ifdef BY_TARGET
  const long key = row;
  if (key >= space.range) return;
  const long i = first_item(item, key, space.count);
  if (i == space.count || (long)KEY(item[i]) != key) return;
#else
  const long i = row;
  if (i >= space.count) return;
  const long key = (long)KEY(item[i]);
  if (key >= space.range) return;
#ifdef SETS
  if (i + 1 < space.count && (long)KEY(item[i + 1]) == key) return;
#else
  if (i > 0 && (long)KEY(item[i - 1]) == key) return;
#endif
#endif
  long rest = unit - row * space.width, from_row = 0, to_row = 0;
  for (int d = 0; d < ROW_RANK; d++) {
    const long outer = d < ROW_RANK - 1 ? quotient(rest, space.row_size[d]) : 0, k = rest - outer * space.row_size[d];
    rest = outer;
    from_row += k * space.row_stride[0].along[d];
    to_row += k * space.row_stride[1].along[d];
  }
  __global const RAW(D_SOURCE) *from = CONST_POINTER(D_SOURCE, source) + from_row;
  __global RAW(D_TARGET) *to = POINTER(D_TARGET, target) + target_at(key, space.bound, space.step, KEY_PARTS) + to_row;
#ifdef SETS
  CT all = FRESH(SOURCE_OF(item[i]));
#else
#ifdef REPLACES
  CT all = none;
#else
  CT all = get_target(to, LANES);
#endif
  COMBINE_RUN(all, i, space.count, key)
#endif
  put_target(to, all, LANES);
}
#endif
