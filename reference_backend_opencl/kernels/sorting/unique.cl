/* What is there once, of n elements or of n slices of `width` elements each, which lie outer x n x inner. After items.cl.
 * The head defines D, and ORDERED where equal ones are brought side by side first.
 *
 * An item has the key of a slice's first element and the slice's place; where keys are equal the other elements decide,
 * and at last the place, so that no two items are equal. Runs are sorted by a work-item each, then merged. */
typedef struct {
  long n, inner, width, chunk, chunks; /* a work-item looks at `chunk` slices */
  long run, step;                      /* and sorts a run, or makes `step` places where two are merged */
} unique_space;

static CT element(__global const RAW(D) * from, long slice, long j, const unique_space *space) {
  return LOAD(D, __global, from + (j / space->inner * space->n + slice) * space->inner + j % space->inner);
}

/* Whether two slices differ, from element `j` on; a NaN does from all. */
static int differ(__global const RAW(D) * from, long a, long b, long j, const unique_space *space) {
  int found = 0;
  for (; j < space->width && !found; j++) found = element(from, a, j, space) != element(from, b, j, space);
  return found;
}

#ifdef ORDERED
static int before(ITEM a, ITEM b, __global const RAW(D) * from, const unique_space *space) {
  if (space->width == 1 || KEY(a) != KEY(b)) return LESS(a, b);
  for (long j = 1; j < space->width; j++) {
    UT key_a = key_of(element(from, (long)PLACE_OF(a), j, space));
    UT key_b = key_of(element(from, (long)PLACE_OF(b), j, space));
    if (key_a != key_b) return key_a < key_b;
  }
  return PLACE_OF(a) < PLACE_OF(b);
}

/* Elements of long runs go by their digits, for which `other` has room, too. */
KERNEL sort_runs(PLACE(items), PLACE(other), CONST_PLACE(in), unique_space space) {
  __global ITEM *to = (__global ITEM *)(items + offset_items);
  __global const RAW(D) *from = CONST_POINTER(D, in);
  long begin = (long)get_global_id(0) * space.run, end = min(begin + space.run, space.n);
#if LOCAL == 1
  if (space.width == 1) {
    __global ITEM *own = to + begin;
    for (long i = begin; i < end; i++) to[i] = MAKE_ITEM(key_of(LOAD(D, __global, from + i)), i);
    __global ITEM *sorted = by_digits(own, (__global ITEM *)(other + offset_other) + begin, end - begin);
    for (long i = 0; sorted != own && i < end - begin; i++) own[i] = sorted[i];
    return;
  }
#endif
  for (long i = begin; i < end; i++) {
    ITEM item = MAKE_ITEM(key_of(element(from, i, 0, &space)), i);
    long at = i;
    for (; at > begin && before(item, to[at - 1], from, &space); at--) to[at] = to[at - 1];
    to[at] = item;
  }
}

/* Pairs of runs become one each; the places that a work-item makes lie in one of them. */
KERNEL merge_runs(__global uchar *items, ulong offset_to, ulong offset_from, CONST_PLACE(in), long run,
                  unique_space space) {
  __global const RAW(D) *from = CONST_POINTER(D, in);
  long first = (long)get_global_id(0) * space.step;
  if (first >= space.n) return;
  long begin = first / (2 * run) * (2 * run), middle = min(begin + run, space.n), end = min(begin + 2 * run, space.n);
  __global const ITEM *a = (__global const ITEM *)(items + offset_from) + begin;
  __global const ITEM *b = (__global const ITEM *)(items + offset_from) + middle;
  __global ITEM *to = (__global ITEM *)(items + offset_to);
  long na = middle - begin, nb = end - middle, skip = first - begin;
  long low = skip > nb ? skip - nb : 0, high = min(skip, na); /* how many of the skipped ones are a's */
  while (low < high) {
    long half_way = (low + high) / 2;
    if (before(a[half_way], b[skip - half_way - 1], from, &space)) low = half_way + 1;
    else high = half_way;
  }
  long i = low, j = skip - low, last = min(first + space.step, end);
  for (long at = first; at < last; at++) {
    int take_a = j >= nb || (i < na && before(a[i], b[j], from, &space));
    to[at] = take_a ? a[i] : b[j];
    i += take_a;
    j += !take_a;
  }
}

static long place_of(__global const ITEM *items, long i) { return (long)PLACE_OF(items[i]); }
static int begins(__global const ITEM *items, __global const RAW(D) * from, long i, const unique_space *space) {
  if (i == 0) return 1;
  ITEM last = items[i - 1], own = items[i];
#ifdef CLASS_FLOAT
  if (KEY(own) == NAN_KEY) return 1;
#endif
  return KEY(last) != KEY(own) || differ(from, (long)PLACE_OF(last), (long)PLACE_OF(own), 1, space);
}
#else
static long place_of(__global const ITEM *unused, long i) { return i; }
static int begins(__global const ITEM *unused, __global const RAW(D) * from, long i, const unique_space *space) {
  return i == 0 || differ(from, i - 1, i, 0, space);
}
#endif

/* A group is a run of equal ones. Of some elements side by side: how many groups begin there, and where the last one does, or
 * -1; and of these and others behind them. */
static long2 follow(long2 before, long2 own) { return (long2)(before.x + own.x, max(before.y, own.y)); }

/* The same of all chunks before each one, and behind these of all. One work-group. */
KERNEL add_up_chunks(PLACE(chunks), unique_space space) {
  __global long2 *found = (__global long2 *)(chunks + offset_chunks);
  __local long2 totals[LOCAL];
  long id = (long)get_local_id(0), each = (space.chunks + LOCAL - 1) / LOCAL;
  long first = min(id * each, space.chunks), last = min(first + each, space.chunks);
  long2 total = (long2)(0, -1), before = (long2)(0, -1);
  for (long k = first; k < last; k++) total = follow(total, found[k]);
  totals[id] = total;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long k = 0; k < id; k++) before = follow(before, totals[k]);
  for (long k = first; k < last; k++) {
    long2 own = found[k];
    found[k] = before;
    before = follow(before, own);
  }
  if (id == LOCAL - 1) found[space.chunks] = before;
}

#define INVERSE 1
#define COUNTS 2
typedef struct {
  __global const RAW(D) *from;
  __global RAW(D) *values;
  __global long *inverse, *counts, *places;
} results;

/* The first of each group as a value, or of slices its place; a group's count is known where the next one begins. `group`
 * begins at i, and the one before it began at `start`. */
static void write_group(const results *to, long wanted, long group, long i, long start, long place, long width) {
  if (wanted & COUNTS && group > 0) to->counts[group - 1] = i - start;
  if (width == 1) to->values[group] = to->from[place];
  else to->places[group] = place;
}

#define RESULTS                                                                                                   \
  const results to = {CONST_POINTER(D, in), POINTER(D, values), (__global long *)(inverse + offset_inverse),      \
                      (__global long *)(counts + offset_counts), (__global long *)(places + offset_places)};

#if LOCAL == 1
/* Of each chunk, which a work-item has. */
KERNEL count_groups(PLACE(chunks), CONST_PLACE(items), CONST_PLACE(in), unique_space space) {
  __global const ITEM *order = (__global const ITEM *)(items + offset_items);
  long i = (long)get_global_id(0) * space.chunk, end = min(i + space.chunk, space.n);
  long2 found = (long2)(0, -1);
  if (i >= space.n) return;
  for (; i < end; i++) {
    if (begins(order, CONST_POINTER(D, in), i, &space)) found = (long2)(found.x + 1, i);
  }
  ((__global long2 *)(chunks + offset_chunks))[get_global_id(0)] = found;
}

/* What is wanted of a chunk. */
KERNEL write_groups(CONST_PLACE(chunks), CONST_PLACE(items), CONST_PLACE(in), PLACE(values), PLACE(inverse),
                    PLACE(counts), PLACE(places), long wanted, unique_space space) {
  __global const ITEM *order = (__global const ITEM *)(items + offset_items);
  RESULTS
  long i = (long)get_global_id(0) * space.chunk, end = min(i + space.chunk, space.n);
  if (i >= space.n) return;
  long2 before = ((__global const long2 *)(chunks + offset_chunks))[get_global_id(0)];
  for (; i < end; i++) {
    const long place = place_of(order, i);
    if (begins(order, to.from, i, &space)) {
      write_group(&to, wanted, before.x, i, before.y, place, space.width);
      before = (long2)(before.x + 1, i);
    }
    if (wanted & INVERSE) to.inverse[place] = before.x - 1;
  }
  if (wanted & COUNTS && end == space.n) to.counts[before.x - 1] = space.n - before.y;
}
#else
/* A work-group has a chunk, and its work-items elements side by side: what those up to each one have. */
static long2 widened(int2 v) { return (long2)(v.x, v.y); }
static INLINED long2 followed(__local int2 *all, long2 own) {
  const int id = (int)get_local_id(0);
  all[id] = (int2)((int)own.x, (int)own.y);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 1; step < LOCAL; step *= 2) {
    const int2 before = id >= step ? all[id - step] : (int2)(0, -1), now = all[id];
    barrier(CLK_LOCAL_MEM_FENCE);
    all[id] = (int2)(before.x + now.x, max(before.y, now.y));
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return widened(all[id]);
}

KERNEL count_groups(PLACE(chunks), CONST_PLACE(items), CONST_PLACE(in), unique_space space) {
  GROUP_ARRAY(int2, all);
  __global const ITEM *order = (__global const ITEM *)(items + offset_items);
  const long begin = (long)get_group_id(0) * space.chunk, end = min(begin + space.chunk, space.n);
  long2 found = (long2)(0, -1);
  for (long i = begin + (long)get_local_id(0); i < end; i += LOCAL) {
    if (begins(order, CONST_POINTER(D, in), i, &space)) found = (long2)(found.x + 1, i);
  }
  found = followed(all, found);
  if (get_local_id(0) == LOCAL - 1) ((__global long2 *)(chunks + offset_chunks))[get_group_id(0)] = found;
}

KERNEL write_groups(CONST_PLACE(chunks), CONST_PLACE(items), CONST_PLACE(in), PLACE(values), PLACE(inverse),
                    PLACE(counts), PLACE(places), long wanted, unique_space space) {
  GROUP_ARRAY(int2, all);
  __global const ITEM *order = (__global const ITEM *)(items + offset_items);
  RESULTS
  const long begin = (long)get_group_id(0) * space.chunk, end = min(begin + space.chunk, space.n);
  long2 before = ((__global const long2 *)(chunks + offset_chunks))[get_group_id(0)];
  for (long first = begin; first < end; first += LOCAL) {
    const long i = first + (long)get_local_id(0);
    const bool is_there = i < end, is_first = is_there && begins(order, to.from, i, &space);
    const long2 here = follow(before, followed(all, is_first ? (long2)(1, i) : (long2)(0, -1)));
    const long place = is_there ? place_of(order, i) : 0;
    if (is_first) {
      const int2 last = get_local_id(0) ? all[get_local_id(0) - 1] : (int2)(0, -1);
      write_group(&to, wanted, here.x - 1, i, last.y >= 0 ? last.y : before.y, place, space.width);
    }
    if (is_there && wanted & INVERSE) to.inverse[place] = here.x - 1;
    if (wanted & COUNTS && i == space.n - 1) to.counts[here.x - 1] = space.n - here.y;
    before = follow(before, widened(all[LOCAL - 1]));
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
#endif

/* Slices at these places, side by side; `per_item` elements for a work-item. */
KERNEL copy_slices(PLACE(values), CONST_PLACE(in), CONST_PLACE(places), long groups, long per_item, unique_space space) {
  __global const long *place = (__global const long *)(places + offset_places);
  long e = (long)get_global_id(0) * per_item, end = min(e + per_item, groups * space.width);
  for (; e < end; e++) {
    long row = e / space.inner, group = row % groups, outer = row / groups;
    (POINTER(D, values))[e] = (CONST_POINTER(D, in))[(outer * space.n + place[group]) * space.inner + e % space.inner];
  }
}
