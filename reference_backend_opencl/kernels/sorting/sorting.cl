/* Sorting lines of outer x size x inner, and taking `kept` of each behind the first `skipped`. After items.cl.
 *
 * Equal elements stay in the order of their places. Values are copied at the end, so that they keep their bits. Where the
 * head has CHOSEN, one of those below, that function says which item of a line in order is the one that is kept (with
 * VALUES_ONLY without its place).
 *
 * On a CPU a work-item sorts whole lines: of few kept, by insertion, else by the keys' digits from the last on. On
 * other devices work-groups do (radix.c), and where not all comes out that they sort, this takes what is kept. */
typedef struct {
  long lines, size, inner, skipped, kept, per_item;
} space_t;

/* Where a line begins, in a tensor with `size` elements along it. */
static long line_start(long line, long size, long inner) { return line / inner * size * inner + line % inner; }

static ITEM item_of(__global const RAW(D) * from, long i, long inner) {
  CT v = LOAD(D, __global, from + i * inner);
  return MAKE_ITEM(key_of(v), i);
}

/* The item's value and place as result `i` of its line. */
static void put(__global RAW(D) * values, __global long *indices, __global const RAW(D) * from, long i, long inner,
                ITEM item) {
  long place = (long)PLACE_OF(item);
  values[i * inner] = from[place * inner];
#ifndef VALUES_ONLY
  indices[i * inner] = place;
#endif
}

#ifdef CHOSEN
#ifdef CLASS_FLOAT
#define IS_NAN(item) (KEY(item) == NAN_KEY)
#else
#define IS_NAN(item) 0
#endif
/* The lower one in the middle; a NaN where there is one. */
static long median_of(__global const ITEM *items, long size) {
  return IS_NAN(items[size - 1]) ? size - 1 : (size - 1) / 2;
}

static long nanmedian_of(__global const ITEM *items, long size) {
  long low = 0, high = size; /* the first NaN */
  while (low < high) {
    long middle = low + (high - low) / 2;
    if (IS_NAN(items[middle])) high = middle;
    else low = middle + 1;
  }
  return low > 0 ? (low - 1) / 2 : 0;
}

/* The last of the first longest run of equals; a NaN equals nothing. */
static long mode_of(__global const ITEM *items, long size) {
  long best = 0, most = 0, length = 0;
  for (long i = 0; i < size; i++) {
    length = i > 0 && KEY(items[i]) == KEY(items[i - 1]) && !IS_NAN(items[i]) ? length + 1 : 1;
    if (length <= most) continue;
    most = length;
    best = i;
  }
  return best;
}
#define KEPT(items, size, i) CHOSEN(items, size)
#else
#define KEPT(items, size, i) (space.skipped + (i))
#endif

#if LOCAL == 1
static void insert(__global const RAW(D) * from, __global ITEM *best, space_t space) {
  long have = 0, wanted = space.skipped + space.kept;
  for (long i = 0; i < space.size; i++) {
    ITEM item = item_of(from, i, space.inner);
    if (have == wanted && !LESS(item, best[have - 1])) continue;
    long at = have < wanted ? have++ : have - 1;
    for (; at > 0 && LESS(item, best[at - 1]); at--) best[at] = best[at - 1];
    best[at] = item;
  }
}

/* `work` is 2 * size items for each work-item. */
KERNEL_OF(1, 1) sort_lines(
    PLACE(values), PLACE(indices), CONST_PLACE(in), PLACE(work), space_t space) {
  __global ITEM *items = (__global ITEM *)(work + offset_work) + 2 * space.size * get_global_id(0);
  long first = (long)get_global_id(0) * space.per_item, last = min(first + space.per_item, space.lines);
  for (long line = first; line < last; line++) {
    __global const RAW(D) *from =
        CONST_POINTER(D, in) + line_start(line, space.size, space.inner);
    long start = line_start(line, space.kept, space.inner);
#ifdef FEW
    insert(from, items, space);
    __global ITEM *sorted = items;
#else
    for (long i = 0; i < space.size; i++) items[i] = item_of(from, i, space.inner);
    __global ITEM *sorted = by_digits(items, items + space.size, space.size);
#endif
    for (long i = 0; i < space.kept; i++) {
      put(POINTER(D, values) + start, (__global long *)(indices + offset_indices) + start, from,
          i, space.inner, sorted[KEPT(sorted, space.size, i)]);
    }
  }
}
#else

KERNEL store_items(PLACE(values), PLACE(indices), CONST_PLACE(in), CONST_PLACE(work), space_t space) {
  long at = get_global_id(0), line = at / space.kept, i = at % space.kept;
  if (line >= space.lines) return;
  __global const RAW(D) *from = CONST_POINTER(D, in) + line_start(line, space.size, space.inner);
  long start = line_start(line, space.kept, space.inner);
  __global const ITEM *sorted = (__global const ITEM *)(work + offset_work) + line * space.size;
  put(POINTER(D, values) + start, (__global long *)(indices + offset_indices) + start, from, i, space.inner,
      sorted[KEPT(sorted, space.size, i)]);
}
#endif
