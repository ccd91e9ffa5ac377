/* Scatters in which each line of the index space goes to a line of the target of its own, and fits in a tile: a work-group
 * sorts the places of a line by where they go, and combines what goes to one element in logical order. After
 * core/radix.cl and joins.cl; the head is that of scatter.cl. The same results as scatter.cl's. */
typedef struct {
  long line_size[FREE];
  STRIDES(FREE) line_stride[INDICES + 2]; /* the source's, the target's, then those of the indices */
  long place_size[SCAN];
  STRIDES(SCAN) place_stride[INDICES + 2];
  long bound[INDICES], step[INDICES], skip;
  long places, range, bits;
} lines_space;

/* Where operand `k` has a place of a line. */
static long place_at(long place, int k, const lines_space *space) {
  long at = 0;
  for (int d = 0; d < SCAN; d++) {
    long i = d < SCAN - 1 ? place % space->place_size[d] : place;
    if (d < SCAN - 1) place /= space->place_size[d];
    at += i * space->place_stride[k].along[d];
  }
  return at;
}

/* The number of the element that the indices name together; `range` for what is passed over. */
static uint key_at(__global const long *const *index, const long *at, long place, const lines_space *space,
                   __global long *faults) {
  long row = 0;
  int in_range = 1;
#pragma unroll
  for (int k = 0; k < INDICES; k++) {
    if (!in_range) continue;
    long v = index[k][at[k + 2] + place_at(place, k + 2, space)];
    long size = space->bound[k], wrapped = WRAPS && v < 0 ? v + size : v;
    in_range = wrapped >= 0 && wrapped < size;
    if (!in_range) REPORT(faults, OP_ID, v, size);
    row = row * size + wrapped;
  }
  return (uint)(in_range && row != space->skip ? row : space->range);
}

KERNEL combine_lines(PLACE(target), CONST_PLACE(source), CT number, CT none, __global long *faults, INDEX_PARAMETERS,
                     lines_space space) {
  __local ITEM tile[PADDED];
  __local uint counters[COUNTERS], sums[LOCAL + SPANS];
  __global const long *const index[INDICES] = {INDEX_POINTERS};
  const int id = (int)get_local_id(0), places = (int)space.places;
  long at[INDICES + 2], rest = get_group_id(0);
  for (int k = 0; k < INDICES + 2; k++) at[k] = 0;
  for (int d = 0; d < FREE; d++) {
    long i = d < FREE - 1 ? rest % space.line_size[d] : rest;
    if (d < FREE - 1) rest /= space.line_size[d];
    for (int k = 0; k < INDICES + 2; k++) at[k] += i * space.line_stride[k].along[d];
  }
  for (int i = id; i < TILE; i += LOCAL) {
    tile[AT(i)] = i < places ? MAKE_ITEM(key_at(index, at, i, &space, faults), i) : FILL;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int bit = 0; bit < (int)space.bits; bit += SPLIT_BITS) {
    split_tile(tile, counters, sums, bit, min(SPLIT_BITS, (int)space.bits - bit));
  }
  __global const RAW(D_SOURCE) *from = CONST_POINTER(D_SOURCE, source) + at[0];
  for (int i = id; i < places; i += LOCAL) {
    const long key = (long)KEY(tile[AT(i)]);
    if (key >= space.range) continue;
    __global RAW(D_TARGET) *to = POINTER(D_TARGET, target) + at[1] + target_at(key, space.bound, space.step, INDICES);
#ifdef SETS
    if (i + 1 < places && (long)KEY(tile[AT(i + 1)]) == key) continue;
    CT all = FRESH(from + place_at((long)PLACE_OF(tile[AT(i)]), 0, &space));
#else
    if (i > 0 && (long)KEY(tile[AT(i - 1)]) == key) continue;
#ifdef REPLACES
    CT all = none;
#else
    CT all = get_target(to, LANES);
#endif
    for (int j = i; j < places && (long)KEY(tile[AT(j)]) == key; j++) {
      all = COMBINE(all, FRESH(from + place_at((long)PLACE_OF(tile[AT(j)]), 0, &space)));
    }
#endif
    put_target(to, all, LANES);
  }
}
