/* Scatters in which each line of the index space goes to a line of the target of its own: a work-group sorts the places
 * of a line by where they go, and combines what goes to one element in logical order. After core/radix.cl and fresh.cl;
 * the head is that of scatter.cl. A line that fits in a tile gets the results of scatter.cl.
 *
 * BLOCKS: a longer line is cut into blocks of a tile. A work-group leaves what its block brings to each element of the
 * line of the target in `parts`, `none` where that is nothing, and join_blocks combines the parts in the blocks' order. */
typedef struct {
  long line_size[FREE];
  STRIDES(FREE) line_stride[INDICES + 2]; /* the source's, the target's, then those of the indices */
  long place_size[SCAN];
  STRIDES(SCAN) place_stride[INDICES + 2];
  long bound[INDICES], step[INDICES], skip;
  long lines, places, range, bits;
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

/* Where operand `k` has a line. */
static long line_at(long line, int k, const lines_space *space) {
  long at = 0;
  for (int d = 0; d < FREE; d++) {
    long i = d < FREE - 1 ? line % space->line_size[d] : line;
    if (d < FREE - 1) line /= space->line_size[d];
    at += i * space->line_stride[k].along[d];
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

#define ITEM_AT(i) tile[AT(i)]
#define SOURCE_OF(item) (from + place_at(first + (long)PLACE_OF(item), 0, &space))

#ifdef BLOCKS
#define PARTS PLACE(parts),
static void put_nothing(__global CT *part, long begin, long end, CT none) {
  for (long i = begin; i < end; i++) part[i] = none;
}
#else
#define PARTS
#endif

KERNEL combine_lines(PARTS PLACE(target), CONST_PLACE(source), CT number, CT none, __global long *faults,
                     INDEX_PARAMETERS, lines_space space) {
  __local ITEM tile[PADDED];
  __local uint counters[COUNTERS], sums[LOCAL + SPANS];
  __global const long *const index[INDICES] = {INDEX_POINTERS};
  const int id = (int)get_local_id(0);
#ifdef BLOCKS
  const long line = get_group_id(0) % space.lines, first = get_group_id(0) / space.lines * TILE;
  const int places = (int)min(space.places - first, (long)TILE);
#else
  const long line = get_group_id(0), first = 0;
  const int places = (int)space.places;
#endif
  long at[INDICES + 2];
  for (int k = 0; k < INDICES + 2; k++) at[k] = line_at(line, k, &space);
  for (int i = id; i < TILE; i += LOCAL) {
    tile[AT(i)] = i < places ? MAKE_ITEM(key_at(index, at, first + i, &space, faults), i) : FILL;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int bit = 0; bit < (int)space.bits; bit += SPLIT_BITS) {
    split_tile(tile, counters, sums, bit, min(SPLIT_BITS, (int)space.bits - bit));
  }
  __global const RAW(D_SOURCE) *from = CONST_POINTER(D_SOURCE, source) + at[0];
#ifdef BLOCKS
  __global CT *part = (__global CT *)(parts + offset_parts) + get_group_id(0) * space.range;
#endif
  for (int i = id; i < places; i += LOCAL) {
    const long key = (long)KEY(tile[AT(i)]), before = i > 0 ? (long)KEY(tile[AT(i - 1)]) : -1;
#ifdef BLOCKS
    put_nothing(part, before + 1, min(key, space.range), none);
    if (i == places - 1) put_nothing(part, key + 1, space.range, none);
    if (key >= space.range || before == key) continue;
    CT all = none;
    COMBINE_RUN(all, i, places, key)
    part[key] = all;
#else
    if (key >= space.range) continue;
    __global RAW(D_TARGET) *to = POINTER(D_TARGET, target) + at[1] + target_at(key, space.bound, space.step, INDICES);
#ifdef SETS
    if (i + 1 < places && (long)KEY(tile[AT(i + 1)]) == key) continue;
    CT all = FRESH(SOURCE_OF(tile[AT(i)]));
#else
    if (before == key) continue;
#ifdef REPLACES
    CT all = none;
#else
    CT all = get_target(to, LANES);
#endif
    for (int j = i; j < places && (long)KEY(tile[AT(j)]) == key; j++) all = COMBINE(all, FRESH(SOURCE_OF(tile[AT(j)])));
#endif
    put_target(to, all, LANES);
#endif
  }
}

#ifdef BLOCKS
/* A work-item for each element of each line of the target. */
KERNEL join_blocks(PLACE(target), CONST_PLACE(parts), lines_space space) {
  const long unit = (long)get_global_id(0), units = space.lines * space.range;
  if (unit >= units) return;
  const long line = unit / space.range, key = unit - line * space.range;
  const long blocks = (space.places + TILE - 1) / TILE;
  __global const CT *part = (__global const CT *)(parts + offset_parts) + unit;
  __global RAW(D_TARGET) *to = POINTER(D_TARGET, target) + line_at(line, 1, &space) +
                               target_at(key, space.bound, space.step, INDICES);
  CT all = get_target(to, LANES);
#pragma unroll 8
  for (long block = 0; block < blocks; block++) all = COMBINE(all, part[block * units]);
  put_target(to, all, LANES);
}
#endif
