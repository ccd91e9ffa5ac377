/* What kernels that work along one dimension share. A tensor is outer x size x inner; a line runs along `size`.
 *   ROWS      inner is 1: a work-group takes a line, its lanes and work-items share it
 *   TOGETHER  so many work-items share a line, of which a work-group has some side by side; all of them take part, those
 *             without a line of their own in one of size 0
 *   otherwise a work-item takes VEC lines side by side
 *   ONE_VECTOR  with ROWS, of a kernel whose EACH and SUM visit whole lines: a line is VEC long
 * Both are written once: EACH and SUM visit the places of the lines at hand, and TOTAL brings what lanes and work-items
 * have found together. On a CPU a work-group is one work-item. */
typedef struct {
  long size, inner, units_per_row, units, per_item;
} lines;

#define added(a, b) ((a) + (b))

#ifdef ROWS
#define STEP (VEC * LOCAL)
#define BLOCK (64 * STEP)
#ifdef ONE_VECTOR
/* A line is one vector: no loops, and what is read twice is read once. */
#define EACH(i, n, first, end, body) \
  {                                  \
    const long i = 0;                \
    const int n = VEC;               \
    body;                            \
  }
#else
/* `body` for each vector of [first, end): it begins at i and has n lanes, whatever names the caller has for them. An
 * argument, not a block after a head, since whole vectors and the remainder each have a copy, in which n is known. */
#define EACH(i, n, first, end, body)                \
  {                                                 \
    long i = (first) + (long)get_local_id(0) * VEC; \
    for (; i + VEC <= (end); i += STEP) {           \
      const int n = VEC;                            \
      body;                                         \
    }                                               \
    if (i < (end)) {                                \
      const int n = (int)((end)-i);                 \
      body;                                         \
    }                                               \
  }
#endif
#define AT(space, i) (i)

/* The first n lanes of v; the others as if there were nothing. */
static VT only(VT v, int n, CT nothing) {
#if VEC > 1
  if (n < VEC) {
    CT lanes[VEC];
    VSTORE(v, lanes);
    for (int j = n; j < VEC; j++) lanes[j] = nothing;
    v = VLOAD(lanes);
  }
#endif
  return v;
}

/* All lanes of all work-items into one, and that into each lane. */
#if LOCAL > 1
#define DEFINE_ACROSS(name, combine)                                        \
  static INLINED CT name(CT v, __local CT *shared) {                        \
    int id = (int)get_local_id(0);                                          \
    shared[id] = v;                                                         \
    for (int step = LOCAL / 2; step > 0; step /= 2) {                       \
      barrier(CLK_LOCAL_MEM_FENCE);                                         \
      if (id < step) shared[id] = combine(shared[id], shared[id + step]);   \
    }                                                                       \
    barrier(CLK_LOCAL_MEM_FENCE);                                           \
    CT total = shared[0];                                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                           \
    return total;                                                           \
  }
#endif
/* Each lane becomes what the lane `step` away and itself make: after all steps, each is what all have made. */
#if VEC == 16
#define ACROSS_LANES(v, combine)        \
  v = combine(v, v.s89abcdef01234567); \
  v = combine(v, v.s45670123cdef89ab); \
  v = combine(v, v.s23016745ab89efcd); \
  v = combine(v, v.s1032547698badcfe);
#elif VEC == 8
#define ACROSS_LANES(v, combine) \
  v = combine(v, v.s45670123);  \
  v = combine(v, v.s23016745);  \
  v = combine(v, v.s10325476);
#elif VEC == 4
#define ACROSS_LANES(v, combine) \
  v = combine(v, v.s2301);      \
  v = combine(v, v.s1032);
#elif VEC == 2
#define ACROSS_LANES(v, combine) v = combine(v, v.s10);
#else
#define ACROSS_LANES(v, combine)
#endif
#if LOCAL > 1
static CT first_lane(VT v) {
  CT lanes[VEC];
  VSTORE(v, lanes);
  return lanes[0];
}
#define DEFINE_TOTAL(name, combine)                  \
  DEFINE_ACROSS(across_##name, combine)              \
  static INLINED VT name(VT v, __local CT *shared) { \
    ACROSS_LANES(v, combine)                         \
    return (VT)across_##name(first_lane(v), shared); \
  }
#else
#define DEFINE_TOTAL(name, combine)                  \
  static INLINED VT name(VT v, __local CT *shared) { \
    ACROSS_LANES(v, combine)                         \
    return v;                                        \
  }
#endif
DEFINE_TOTAL(total_sum, added)
DEFINE_TOTAL(total_max, LARGER)
#define UNIT_ID get_group_id(0)
#else
#ifdef TOGETHER
#define WIDE (LOCAL / TOGETHER)
#define MEMBER ((long)get_local_id(0) / WIDE)
#else
#define TOGETHER 1
#define MEMBER 0
#endif
#define BLOCK (64 * TOGETHER)
/* Of a GPU's work-item, which goes along a line alone, several elements are to be on their way at once. */
#ifdef IS_CPU
#define AT_ONCE
#else
#define AT_ONCE _Pragma("unroll 8")
#endif
#define EACH(i, n, first, end, body)                                       \
  AT_ONCE for (long i = (first) + MEMBER; i < (end); i += TOGETHER) {      \
    body;                                                                  \
  }
#define AT(space, i) ((i) * (space).inner)
#define only(v, n, nothing) (v)
#if TOGETHER > 1
/* What all of a line have found, for each of them. */
#define DEFINE_TOTAL(name, combine)                                                                 \
  static INLINED VT name(VT v, __local CT *shared) {                                                \
    const int id = (int)get_local_id(0);                                                            \
    shared[id] = v;                                                                                 \
    for (int half_way = TOGETHER / 2; half_way > 0; half_way /= 2) {                                \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                 \
      if (id < half_way * WIDE) shared[id] = combine(shared[id], shared[id + half_way * WIDE]);     \
    }                                                                                               \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                   \
    const CT total = shared[id % WIDE];                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                   \
    return total;                                                                                   \
  }
DEFINE_TOTAL(total_sum, added)
DEFINE_TOTAL(total_max, LARGER)
#define UNIT_ID (get_group_id(0) * WIDE + get_local_id(0) % WIDE)
#else
#define total_sum(v, shared) (v)
#define total_max(v, shared) (v)
#define UNIT_ID get_global_id(0)
#endif
#endif

/* Adds `value`, said in terms of i and n as EACH has them, over the line to `total`: in blocks, and these in stretches
 * of 64, so that rounding errors do not grow with the whole length; and of two vectors at a time, so that additions need
 * not wait for each other. */
#define STRETCH (64 * BLOCK)
#if defined(ROWS) && !defined(ONE_VECTOR)
#define SUM_BLOCK(sum, i, n, block, block_end, value)          \
  {                                                            \
    VT part = (VT)0, part_2 = (VT)0;                           \
    long from = block;                                         \
    for (; from + 2 * STEP <= (block_end); from += 2 * STEP) { \
      const int n = VEC;                                       \
      long i = from + (long)get_local_id(0) * VEC;             \
      part += value;                                           \
      i += STEP;                                               \
      part_2 += value;                                         \
    }                                                          \
    EACH(i, n, from, block_end, part += only(value, n, 0));    \
    sum += part + part_2;                                      \
  }
#else
#define SUM_BLOCK(sum, i, n, block, block_end, value) \
  {                                                   \
    VT part = (VT)0;                                  \
    EACH(i, n, block, block_end, part += (value));    \
    sum += part;                                      \
  }
#endif
#ifdef ONE_VECTOR
#define SUM(total, i, n, size, value) EACH(i, n, 0, size, total += (value))
#else
#define SUM(total, i, n, size, value)                                                \
  for (long stretch = 0; stretch < (size); stretch += STRETCH) {                     \
    VT sum_of_blocks = (VT)0;                                                        \
    for (long block = stretch; block < min(stretch + STRETCH, size); block += BLOCK) \
      SUM_BLOCK(sum_of_blocks, i, n, block, min(block + BLOCK, size), value)         \
    total += sum_of_blocks;                                                          \
  }
#endif

/* The largest `value` of the line, or a NaN, into `most`, which is less than any; two vectors at a time, as SUM. */
#ifdef ROWS
#define MOST(most, i, n, size, value)                                 \
  {                                                                   \
    VT most_2 = most;                                                 \
    long from = 0;                                                    \
    for (; from + 2 * STEP <= (size); from += 2 * STEP) {             \
      const int n = VEC;                                              \
      long i = from + (long)get_local_id(0) * VEC;                    \
      VT v = value;                                                   \
      most = LARGER(v, most);                                         \
      i += STEP;                                                      \
      v = value;                                                      \
      most_2 = LARGER(v, most_2);                                     \
    }                                                                 \
    EACH(i, n, from, size, VT v = only(value, n, -INFINITY); most = LARGER(v, most)) \
    most = LARGER(most, most_2);                                      \
  }
#else
#define MOST(most, i, n, size, value) EACH(i, n, 0, size, VT v = value; most = LARGER(v, most))
#endif

/* Two sums at once, each as SUM has it, of values that are made of the same elements: `given` declares what both are made
 * of, which is then read once, and a line's two sources come from memory side by side. */
#ifdef ROWS
#define SUM_BOTH_BLOCK(sum, other_sum, i, n, block, block_end, given, value, other)                        \
  {                                                                                                        \
    VT part = (VT)0, part_2 = (VT)0, other_part = (VT)0, other_part_2 = (VT)0;                             \
    long from = block;                                                                                     \
    for (; from + 2 * STEP <= (block_end); from += 2 * STEP) {                                             \
      const int n = VEC;                                                                                   \
      long i = from + (long)get_local_id(0) * VEC;                                                         \
      { given; part += value; other_part += other; }                                                       \
      i += STEP;                                                                                           \
      { given; part_2 += value; other_part_2 += other; }                                                   \
    }                                                                                                      \
    EACH(i, n, from, block_end, given; part += only(value, n, 0); other_part += only(other, n, 0));        \
    sum += part + part_2;                                                                                  \
    other_sum += other_part + other_part_2;                                                                \
  }
#else
#define SUM_BOTH_BLOCK(sum, other_sum, i, n, block, block_end, given, value, other)                        \
  {                                                                                                        \
    VT part = (VT)0, other_part = (VT)0;                                                                   \
    EACH(i, n, block, block_end, given; part += (value); other_part += (other));                           \
    sum += part;                                                                                           \
    other_sum += other_part;                                                                               \
  }
#endif
#define SUM_BOTH(total, other_total, i, n, size, given, value, other)                                      \
  for (long stretch = 0; stretch < (size); stretch += STRETCH) {                                           \
    VT sum_of_blocks = (VT)0, other_of_blocks = (VT)0;                                                     \
    for (long block = stretch; block < min(stretch + STRETCH, size); block += BLOCK)                       \
      SUM_BOTH_BLOCK(sum_of_blocks, other_of_blocks, i, n, block, min(block + BLOCK, size), given, value,  \
                     other)                                                                                \
    total += sum_of_blocks;                                                                                \
    other_total += other_of_blocks;                                                                        \
  }

/* A work-item's units, and the lines as it sees them. Where work-items share a line all of a group go on: who has no unit
 * takes the last one, and nothing of it. */
typedef struct {
  long first, last;
  lines space;
  int is_there;
} own_units;

static INLINED own_units units_of(lines space) {
  own_units own;
  own.first = (long)UNIT_ID * space.per_item;
  own.last = min(own.first + space.per_item, space.units);
  own.space = space;
  own.is_there = own.first < own.last;
#if !defined(ROWS) && TOGETHER > 1
  if (!own.is_there) own.space.size = 0;
  own.first = min(own.first, space.units - 1);
  own.last = own.first + 1;
#endif
  return own;
}

/* Where the lines of a unit begin, and how many lanes they have. */
static long unit_start(lines space, long unit) {
#ifdef ROWS
  return unit * space.size;
#else
  return unit / space.units_per_row * space.size * space.inner + unit % space.units_per_row * VEC;
#endif
}
static int unit_lanes(lines space, long unit) {
#ifdef ROWS
  return VEC;
#else
  return (int)min((long)VEC, space.inner - unit % space.units_per_row * VEC);
#endif
}
