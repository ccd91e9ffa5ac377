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

/* A group is a run of equal ones. Of each chunk: how many groups begin there, and where the last one does, or -1. */
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

static long2 follow(long2 before, long2 own) { return (long2)(before.x + own.x, own.y >= 0 ? own.y : before.y); }

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
/* The first of each group as a value, or of slices its place, and what is wanted beside it. A group's count is known where
 * the next one begins. */
KERNEL write_groups(CONST_PLACE(chunks), CONST_PLACE(items), CONST_PLACE(in), PLACE(values), PLACE(inverse),
                    PLACE(counts), PLACE(places), long wanted, unique_space space) {
  __global const ITEM *order = (__global const ITEM *)(items + offset_items);
  __global const RAW(D) *from = CONST_POINTER(D, in);
  __global long *numbers = (__global long *)(inverse + offset_inverse), *how_many = (__global long *)(counts + offset_counts);
  long i = (long)get_global_id(0) * space.chunk, end = min(i + space.chunk, space.n);
  if (i >= space.n) return;
  long2 before = ((__global const long2 *)(chunks + offset_chunks))[get_global_id(0)];
  long group = before.x - 1, start = before.y;
  for (; i < end; i++) {
    long place = place_of(order, i);
    if (begins(order, from, i, &space)) {
      if (wanted & COUNTS && group >= 0) how_many[group] = i - start;
      group++;
      start = i;
      if (space.width == 1) (POINTER(D, values))[group] = from[place];
      else ((__global long *)(places + offset_places))[group] = place;
    }
    if (wanted & INVERSE) numbers[place] = group;
  }
  if (wanted & COUNTS && end == space.n) how_many[group] = space.n - start;
}

/* Slices at these places, side by side; `per_item` elements for a work-item. */
KERNEL copy_slices(PLACE(values), CONST_PLACE(in), CONST_PLACE(places), long groups, long per_item, unique_space space) {
  __global const long *place = (__global const long *)(places + offset_places);
  long e = (long)get_global_id(0) * per_item, end = min(e + per_item, groups * space.width);
  for (; e < end; e++) {
    long row = e / space.inner, group = row % groups, outer = row / groups;
    (POINTER(D, values))[e] = (CONST_POINTER(D, in))[(outer * space.n + place[group]) * space.inner + e % space.inner];
  }
}
