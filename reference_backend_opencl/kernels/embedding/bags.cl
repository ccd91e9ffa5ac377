/* Bags of embeddings. After direct.cl and places.cl. Bag b has the indices from offset b to the next offset, the first bag
 * those before, too, and the last one all that are left; but not those that are the padding index. The head defines MODE,
 * WEIGHTED (each row has a weight), WIDE, how many vectors of a row a work-item sums side by side, D_WHOLE, the dtype of
 * results that count or name, and OP_ID. */
#define WIDTH n.of[0]
#define BAGS n.of[1]
#define COUNT n.of[2]   /* of indices */
#define TABLE n.of[3]   /* rows that they name */
#define PADDING n.of[4] /* -1: none */
#define OFFSETS n.of[5] /* how many there are: one more than bags where one says where the last bag ends */
#define WHOLE(name) ((__global const long *)(name + offset_##name))

#define SUM_OF_ROWS 0 /* what MODE may be */
#define MEAN_OF_ROWS 1
#define LARGEST_OF_ROWS 2

DEFINE_ACCESS(value, D)

typedef struct {
  long begin, end;
} stretch_of_bag;

/* What lies elsewhere than between indices is reported by `places`. */
static stretch_of_bag stretch_of(__global const long *offsets, long bag, long bags, long count) {
  stretch_of_bag s = {0, count};
  if (bag > 0) s.begin = clamp(offsets[bag], 0L, count);
  if (bag + 1 < bags) s.end = clamp(offsets[bag + 1], 0L, count);
  s.end = max(s.begin, s.end);
  return s;
}

static long size_of(__global const long *indices, stretch_of_bag s, long padding) {
  if (padding < 0) return s.end - s.begin;
  long size = 0;
  for (long k = s.begin; k < s.end; k++) size += indices[k] != padding;
  return size;
}

/* Of each index its bag, looked for once by each work-item, and then of each offset the size of its bag. */
KERNEL places(PLACE(bag_of), PLACE(sizes), PLACE(indices), PLACE(offsets), PLACE(unused), PLACE(unused2),
              __global long *faults, numbers n) {
  long last = -1;
  EACH_UNIT(unit) {
    if (unit < COUNT) {
      if (last < 0) last = last_place_before(WHOLE(offsets), 1, BAGS, unit);
      while (last + 1 < BAGS && WHOLE(offsets)[last + 1] <= unit) last++;
      POINTER(D_WHOLE, bag_of)[unit] = (RAW(D_WHOLE))last;
      continue;
    }
    long bag = unit - COUNT;
    long offset = WHOLE(offsets)[bag];
    if (offset < 0 || offset > COUNT) REPORT(faults, OP_ID, offset, COUNT + 1);
    if (bag > 0 && offset < WHOLE(offsets)[bag - 1]) REPORT(faults, OP_ID, 0, FAULT_SEGMENTS);
    long size = bag < BAGS ? size_of(WHOLE(indices), stretch_of(WHOLE(offsets), bag, BAGS, COUNT), PADDING) : 0;
    POINTER(D_WHOLE, sizes)[bag] = (RAW(D_WHOLE))size;
  }
}

/* Whether the index names a row that counts. */
static bool counts(long index, long table, long padding, __global long *faults) {
  bool named = index >= 0 && index < table;
  if (!named) REPORT(faults, OP_ID, index, table);
  return named && index != padding;
}

#if MODE == LARGEST_OF_ROWS
/* The largest in each lane, and the first row that has it. The first row is taken, and then each that is larger: a NaN
 * stays where it comes first. */
KERNEL bags(PLACE(out), PLACE(largest), PLACE(weight), PLACE(indices), PLACE(offsets), PLACE(scales),
            __global long *faults, numbers n) {
  const long chunks = (WIDTH + VEC - 1) / VEC;
  EACH_UNIT(unit) {
    long bag = unit / chunks, c = unit % chunks * VEC;
    int lanes = (int)min((long)VEC, WIDTH - c), some = 0;
    stretch_of_bag s = stretch_of(WHOLE(offsets), bag, BAGS, COUNT);
    __global const long *index = WHOLE(indices) + s.begin;
    VT most = (VT)(-INFINITY);
    VM where = (VM)0;
    for (long k = 0; k < s.end - s.begin; k++) {
      if (!counts(index[k], TABLE, PADDING, faults)) continue;
      VT v = get_value(ELEMENTS(weight) + index[k] * WIDTH + c, lanes);
      VM better = some ? (VM)(v > most) : (VM)(-1);
      most = better ? v : most;
      where = better ? (VM)(MT)k : where;
      some = 1;
    }
    put_value(ELEMENTS(out) + bag * WIDTH + c, some ? most : (VT)0, lanes);
    MT places[VEC];
    VSTORE(where, places);
    __global RAW(D_WHOLE) *to = POINTER(D_WHOLE, largest) + bag * WIDTH + c;
    for (int l = 0; l < lanes; l++) to[l] = some ? (RAW(D_WHOLE))index[places[l]] : 0;
  }
}
#else
static VT row_at(__global const RAW(D) * weight, __global const RAW(D) * scale, int lanes) {
#if WEIGHTED
  return get_value(weight, lanes) * one_value(scale);
#else
  return get_value(weight, lanes);
#endif
}

/* Asks for the row that comes ROWS_AHEAD later, maybe in a later bag: rows lie anywhere, and no processor guesses where the
 * next one is. `left` indices are there from this one on. */
#define ROWS_AHEAD 16
#define LINE_BYTES 64
static INLINED void row_ahead(__global const RAW(D) * rows, const int vectors, __global const long *index, long left, long width,
                              long table) {
#ifdef LIB_PREFETCH
  __global const RAW(D) *row = rows + clamp(index[min((long)ROWS_AHEAD, left - 1)], 0L, max(table - 1, 0L)) * width;
#pragma unroll
  for (int b = 0; b < vectors * VEC; b += LINE_BYTES / sizeof(RAW(D))) PREFETCH(row + b);
#endif
}

/* Sums so many vectors of the rows of a bag: in blocks, and these in stretches, as SUM of lines.cl does. */
#define BLOCK 64L
#define STRETCH (64 * BLOCK)
static INLINED void add_rows(VT total[WIDE], const int vectors, int lanes, __global const RAW(D) * rows,
                             __global const RAW(D) * scale, __global const long *index, long size, long left, long width,
                             long table, long padding, __global long *faults) {
  for (int w = 0; w < vectors; w++) total[w] = (VT)0;
  for (long stretch = 0; stretch < size; stretch += STRETCH) {
    VT blocks[WIDE];
    for (int w = 0; w < vectors; w++) blocks[w] = (VT)0;
    for (long block = stretch; block < min(stretch + STRETCH, size); block += BLOCK) {
      VT part[WIDE];
      for (int w = 0; w < vectors; w++) part[w] = (VT)0;
      for (long k = block; k < min(block + BLOCK, size); k++) {
        row_ahead(rows, vectors, index + k, left - k, width, table);
        if (!counts(index[k], table, padding, faults)) continue;
        __global const RAW(D) *row = rows + index[k] * width;
#pragma unroll
        for (int w = 0; w < vectors; w++) part[w] += row_at(row + w * VEC, scale + k, lanes);
      }
      for (int w = 0; w < vectors; w++) blocks[w] += part[w];
    }
    for (int w = 0; w < vectors; w++) total[w] += blocks[w];
  }
}

KERNEL bags(PLACE(out), PLACE(largest), PLACE(weight), PLACE(indices), PLACE(offsets), PLACE(scales),
            __global long *faults, numbers n) {
  const long chunks = (WIDTH + WIDE * VEC - 1) / (WIDE * VEC);
  EACH_UNIT(unit) {
    long bag = chunks == 1 ? unit : unit / chunks, c = (unit - bag * chunks) * WIDE * VEC;
    stretch_of_bag s = stretch_of(WHOLE(offsets), bag, BAGS, COUNT);
    __global const long *index = WHOLE(indices) + s.begin;
    __global const RAW(D) *rows = ELEMENTS(weight), *scale = ELEMENTS(scales) + s.begin;
    __global RAW(D) *to = ELEMENTS(out) + bag * WIDTH;
#if MODE == MEAN_OF_ROWS
    const VT size = (VT)(CT)max(size_of(WHOLE(indices), s, PADDING), 1L);
#define FINISH(total) ((total) / size)
#else
#define FINISH(total) (total)
#endif
    VT total[WIDE];
    if (WIDTH - c >= WIDE * VEC) {
      add_rows(total, WIDE, VEC, rows + c, scale, index, s.end - s.begin, COUNT - s.begin, WIDTH, TABLE, PADDING, faults);
      for (int w = 0; w < WIDE; w++) put_value(to + c + w * VEC, FINISH(total[w]), VEC);
      continue;
    }
    for (; c < WIDTH; c += VEC) {
      int lanes = (int)min((long)VEC, WIDTH - c);
      add_rows(total, 1, lanes, rows + c, scale, index, s.end - s.begin, COUNT - s.begin, WIDTH, TABLE, PADDING, faults);
      put_value(to + c, FINISH(total[0]), lanes);
    }
  }
}
#endif
