/* One long line by all cores of a processor, after sorting.cl: each sorts a part of it, and then neighbours are merged, as
 * many rounds as it takes. `work` is 2 * size items: where they lie at first, and as many. */

/* Part p, in order, in the first half of `work`. */
KERNEL_OF(1, 1) sort_parts(CONST_PLACE(in), PLACE(work), long part, space_t space) {
  const long begin = (long)get_global_id(0) * part, count = min(part, space.size - begin);
  __global ITEM *items = (__global ITEM *)(work + offset_work) + begin;
  for (long i = 0; i < count; i++) items[i] = item_of(CONST_POINTER(D, in), begin + i, space.inner);
  __global const ITEM *sorted = by_digits(items, items + space.size, count);
  if (sorted == items) return;
  for (long i = 0; i < count; i++) items[i] = sorted[i];
}

/* How many of the first `together` items of two sequences in order are the first one's. */
static long taken_from(__global const ITEM *a, long a_size, __global const ITEM *b, long b_size, long together) {
  long low = max(together - b_size, 0L), high = min(together, a_size);
  while (low < high) {
    const long middle = low + (high - low) / 2;
    if (LESS(a[middle], b[together - 1 - middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Of runs of `run` items two become one; a work-item makes `part` of its items. In the last round they are results. */
KERNEL_OF(1, 1) merge_parts(PLACE(values), PLACE(indices), CONST_PLACE(in), CONST_PLACE(from), PLACE(to), long part,
                            long run, int is_last, space_t space) {
  const long begin = (long)get_global_id(0) * part, end = min(begin + part, space.size);
  const long start = begin / (2 * run) * 2 * run, middle = min(start + run, space.size);
  __global const ITEM *a = (__global const ITEM *)(from + offset_from) + start;
  __global const ITEM *b = (__global const ITEM *)(from + offset_from) + middle;
  const long a_size = middle - start, b_size = min(middle + run, space.size) - middle;
  long i = taken_from(a, a_size, b, b_size, begin - start), j = begin - start - i;
  for (long at = begin; at < end; at++) {
    const bool takes_a = j == b_size || (i < a_size && LESS(a[i], b[j]));
    const ITEM item = takes_a ? a[i] : b[j];
    i += takes_a;
    j += !takes_a;
    if (is_last)
      put(POINTER(D, values), (__global long *)(indices + offset_indices), CONST_POINTER(D, in), at, space.inner, item);
    else
      ((__global ITEM *)(to + offset_to))[at] = item;
  }
}
