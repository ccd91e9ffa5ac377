/* Radix sort of lines of items, by work-groups; after items.cl and sums.cl. Items go by the digits of their keys from the
 * last on. Each pass keeps the order of those whose digits are equal, so that equal keys stay in the order that they had.
 *
 * A line is cut into blocks, one for each work-group, and a block into tiles. A pass is three kernels: radix_count counts a
 * block's digits, radix_scan adds the counts of the blocks before each one up, and radix_move puts the items of each tile
 * in order and then where they belong. Lines of one tile take one kernel, radix_tile.
 *
 * The head defines LOCAL and EACH, how many items of a tile a work-item has. What stands in front of this may define
 *   SOURCE(from, at, i)   item `i` of the line that begins at SOURCE_LINE(line) of `from` and there has number
 *                         SOURCE_FIRST(line), else one of items in a row
 *   SINK_PARAMETERS, SINK(at, origin, i, item)   where item `i` of a line goes that is in order: `at` is SINK_LINE(line)
 *                         and `origin` SINK_ORIGIN(line); else to items in a row */
#define TILE (LOCAL * EACH)
#define BINS 256

typedef struct {
  long lines, size;
  /* For SOURCE and SINK: what lies between the elements of a line, how many it has, of how many parts, each of which is a
   * line here, and which are kept. */
  long inner, length, parts, skipped, kept;
  long stretch, blocks; /* items of a block, and blocks of a line */
} radix_space;

#ifndef SOURCE
#define SOURCE_LINE(line) ((line)*space.size)
#define SOURCE_FIRST(line) 0
#define SOURCE(from, at, i) (((__global const ITEM *)(from + offset_##from))[(at) + (i)])
#endif
#ifndef SINK
#define SINK_PARAMETERS PLACE(to)
#define SINK_LINE(line) ((line)*space.kept)
#define SINK_ORIGIN(line) 0
#define SINK(at, origin, i, item) \
  if ((i) < space.kept) ((__global ITEM *)(to + offset_to))[(at) + (i)] = item
#endif

static uint digit_of(ITEM item, int shift, int bits) {
#ifdef NARROW
  const uint key = (uint)KEY(item); /* in 32 bits, which a device shifts sooner */
#else
  const ulong key = KEY(item);
#endif
  return (uint)(key >> shift) & ((1u << bits) - 1u);
}

/* ---- A tile in order ---- */

/* One place more for every 16 items: work-items side by side, which read 16 places apart, then use different banks. */
#define AT(i) ((i) + (i) / 16)
#define PADDED (TILE + TILE / 16)
#ifdef WARPS /* core/warps.cl, in front */
/* A digit of up to 8 bits at a time, whose values each warp counts. */
#define SPLIT_BITS 8
#define COUNTERS (LOCAL / WARP * BINS)

/* Brings a tile in the order of a digit. A warp goes over EACH times 32 items side by side; which of the 32 have the same
 * digit is asked bit by bit. */
static INLINED void split_tile(__local ITEM *tile, __local uint *counters, __local uint *sums, int shift, int bits) {
  const int id = (int)get_local_id(0), lane = id % WARP, warp = id / WARP;
  __local uint *own_counters = counters + warp * BINS;
  const uint first = AT((uint)(warp * EACH * WARP + lane));
  ITEM own[EACH];
  uint found[EACH]; /* the digit, and below 16 bits how many of the warp's have it before */
  for (int i = id; i < COUNTERS; i += LOCAL) counters[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    own[k] = tile[first + k * AT(WARP)];
    const uint digit = digit_of(own[k], shift, bits);
    uint same = ~0u;
#pragma unroll
    for (int bit = 0; bit < SPLIT_BITS; bit++) {
      const int set = (int)(digit >> bit & 1u);
      const uint others = ballot(set);
      same &= set ? others : ~others;
    }
    const uint counted = own_counters[digit], before = popcount(same & ((1u << lane) - 1u));
    warp_barrier();
    if (before == 0) own_counters[digit] = counted + popcount(same);
    warp_barrier();
    found[k] = digit << 16 | (counted + before);
    MADE(found[k]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  /* Of each counter those before it, digit by digit and in that warp by warp. */
  const int each = BINS / LOCAL;
  uint sum = 0, total;
  for (int digit = id * each; digit < (id + 1) * each; digit++) {
    for (int i = digit; i < COUNTERS; i += BINS) sum += counters[i];
  }
  uint before = sum_before(sums, sum, &total);
  for (int digit = id * each; digit < (id + 1) * each; digit++) {
    for (int i = digit; i < COUNTERS; i += BINS) {
      const uint counted = counters[i];
      counters[i] = before;
      before += counted;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int k = 0; k < EACH; k++) tile[AT(own_counters[found[k] >> 16] + (found[k] & 0xffffu))] = own[k];
  barrier(CLK_LOCAL_MEM_FENCE);
}
#else
/* A digit of at most SPLIT_BITS bits has 16 values, which a work-item counts in 8 words of two counters each: the lower
 * values in the lower halves. A row has a word of each work-item. */
#define SPLIT_BITS 4
#define WORDS 8
#define ROW (LOCAL + 32)
#define COUNTERS (WORDS * ROW)
#define COUNTER(row, column) ((row)*ROW + (column) + (column) / 32)

/* Brings a tile in the order of a digit. Between barriers a work-item has EACH items that follow each other. */
static INLINED void split_tile(__local ITEM *tile, __local uint *counters, __local uint *sums, int shift, int bits) {
  const int id = (int)get_local_id(0);
  ITEM own[EACH];
  uint rank[EACH];
  for (int w = 0; w < WORDS; w++) counters[COUNTER(w, id)] = 0;
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    own[k] = tile[AT(id * EACH + k)];
    uint digit = digit_of(own[k], shift, bits), half_way = digit / WORDS * 16;
    __local uint *counter = counters + COUNTER(digit % WORDS, id);
    uint counted = *counter;
    rank[k] = counted >> half_way & 0xffffu;
    *counter = counted + (1u << half_way);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  /* Of each counter those before it: a work-item takes WORDS that follow each other. */
  const int row = id * WORDS / LOCAL, column = id * WORDS % LOCAL;
  uint sum = 0, total;
  for (int w = 0; w < WORDS; w++) sum += counters[COUNTER(row, column + w)];
  uint before = sum_before(sums, sum, &total);
  before += total << 16; /* before the upper halves are all the lower ones */
  for (int w = 0; w < WORDS; w++) {
    uint counted = counters[COUNTER(row, column + w)];
    counters[COUNTER(row, column + w)] = before;
    before += counted;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    uint digit = digit_of(own[k], shift, bits), half_way = digit / WORDS * 16;
    uint at = rank[k] + (counters[COUNTER(digit % WORDS, id)] >> half_way & 0xffffu);
    tile[AT(at)] = own[k];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
#endif

#ifdef ONE_TILE
KERNEL radix_tile(SINK_PARAMETERS, CONST_PLACE(from), int first_bit, int last_bit, radix_space space) {
  __local ITEM tile[PADDED];
  __local uint counters[COUNTERS], sums[LOCAL + SPANS];
  const long line = get_group_id(0);
  const int id = (int)get_local_id(0), size = (int)space.size;
  const long source = SOURCE_LINE(line), before = SOURCE_FIRST(line);
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int i = k * LOCAL + id;
    const ITEM item = SOURCE(from, source, before + min(i, size - 1)); /* no branch, so that all are on their way at once */
    tile[AT(id) + k * AT(LOCAL)] = i < size ? item : FILL;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int bit = first_bit; bit < last_bit; bit += SPLIT_BITS) {
    split_tile(tile, counters, sums, bit, min(SPLIT_BITS, last_bit - bit));
  }
  const long sink = SINK_LINE(line), origin = SINK_ORIGIN(line);
  for (int i = id; i < size; i += LOCAL) SINK(sink, origin, i, tile[AT(i)]);
}
#else

/* ---- A pass ---- */

#define COPIES 8 /* of a block's counters, so that equal digits side by side wait less for each other */

/* Of each digit how often it comes in each block: counts[line][digit][block]. */
KERNEL radix_count(PLACE(counts), CONST_PLACE(from), int shift, int bits, radix_space space) {
  __local uint bins[BINS * COPIES];
  const long line = get_group_id(0) / space.blocks, block = get_group_id(0) % space.blocks;
  const long begin = block * space.stretch, end = min(begin + space.stretch, space.size);
  const int id = (int)get_local_id(0);
  for (int i = id; i < BINS * COPIES; i += LOCAL) bins[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const long source = SOURCE_LINE(line);
#pragma unroll 4
  for (long i = begin + id; i < end; i += LOCAL) {
    uint digit = digit_of(SOURCE(from, source, i), shift, bits);
    atomic_inc(bins + digit * COPIES + id % COPIES);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  __global uint *to = (__global uint *)(counts + offset_counts) + line * BINS * space.blocks + block;
  for (int digit = id; digit < 1 << bits; digit += LOCAL) {
    uint sum = 0;
    for (int k = 0; k < COPIES; k++) sum += bins[digit * COPIES + k];
    to[digit * space.blocks] = sum;
  }
}

/* A digit's counts become those of the blocks before each one, and the digit's total goes behind all counts. A work-item
 * takes BLOCKS_EACH blocks that follow each other; with that a work-group has all. */
#define BLOCKS_EACH 4
KERNEL radix_scan(PLACE(counts), int bits, radix_space space) {
  __local uint sums[LOCAL + SPANS];
  const int id = (int)get_local_id(0);
  const long line = get_group_id(0) >> bits, digit = get_group_id(0) & ((1 << bits) - 1);
  __global uint *all = (__global uint *)(counts + offset_counts);
  __global uint *own = all + (line * BINS + digit) * space.blocks;
  uint counted[BLOCKS_EACH], sum = 0, total;
#pragma unroll
  for (int k = 0; k < BLOCKS_EACH; k++) {
    long block = (long)id * BLOCKS_EACH + k;
    counted[k] = block < space.blocks ? own[block] : 0;
    sum += counted[k];
  }
  uint before = sum_before(sums, sum, &total);
#pragma unroll
  for (int k = 0; k < BLOCKS_EACH; k++) {
    long block = (long)id * BLOCKS_EACH + k;
    if (block < space.blocks) own[block] = before;
    before += counted[k];
  }
  if (id == 0) all[space.lines * BINS * space.blocks + line * BINS + digit] = total;
}

/* Where each digit begins in a tile of `n` items that is in order, and behind all of them, n. An item says it for its
 * digit and for those that are missing before. */
static INLINED void find_starts(__local uint *start, __local const ITEM *tile, int n, int shift, int bits) {
  const int id = (int)get_local_id(0);
  for (int i = id; i <= n; i += LOCAL) {
    const int digit = i < n ? (int)digit_of(tile[AT(i)], shift, bits) : BINS;
    const int before = i > 0 ? (int)digit_of(tile[AT(i - 1)], shift, bits) : -1;
    for (int d = before + 1; d <= digit; d++) start[d] = (uint)i;
  }
}

KERNEL radix_move(SINK_PARAMETERS, CONST_PLACE(from), CONST_PLACE(counts), int shift, int bits, radix_space space) {
  __local ITEM tile[PADDED];
  __local uint counters[COUNTERS], sums[LOCAL + SPANS], base[BINS], way[BINS], start[BINS + 1];
  const long line = get_group_id(0) / space.blocks, block = get_group_id(0) % space.blocks;
  const long begin = block * space.stretch, end = min(begin + space.stretch, space.size);
  const int id = (int)get_local_id(0);
  __global const uint *all = (__global const uint *)(counts + offset_counts);
  __global const uint *totals = all + space.lines * BINS * space.blocks + line * BINS;
  /* Where the block's first item of each digit goes: a work-item looks at one digit, or at some that follow each other. */
  const int each = (BINS + LOCAL - 1) / LOCAL;
  uint own_total = 0, unused;
  for (int d = id * each; d < (id + 1) * each; d++) own_total += d < 1 << bits ? totals[d] : 0;
  uint before = sum_before(sums, own_total, &unused);
  for (int d = id * each; d < (id + 1) * each; d++) {
    const bool comes = d < 1 << bits;
    base[d] = comes ? before + all[(line * BINS + d) * space.blocks + block] : 0;
    before += comes ? totals[d] : 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const long source = SOURCE_LINE(line), sink = SINK_LINE(line), origin = SINK_ORIGIN(line);
  for (long first = begin; first < end; first += TILE) {
    const int n = (int)min((long)TILE, end - first);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const int i = k * LOCAL + id;
      const ITEM item = SOURCE(from, source, first + min(i, n - 1));
      tile[AT(id) + k * AT(LOCAL)] = i < n ? item : FILL;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int bit = 0; bit < bits; bit += SPLIT_BITS) {
      split_tile(tile, counters, sums, shift + bit, min(SPLIT_BITS, bits - bit));
    }
    /* How far the items of each digit go from where they are in the tile. */
    find_starts(start, tile, n, shift, bits);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = id * each; d < (id + 1) * each; d++) {
      const uint begins = start[d], ends = start[d + 1];
      way[d] = base[d] - begins;
      base[d] += ends - begins;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = id; i < n; i += LOCAL) {
      const ITEM item = tile[AT(i)];
      SINK(sink, origin, (long)(way[digit_of(item, shift, bits)] + (uint)i), item);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
#endif
