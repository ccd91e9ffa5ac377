/* Where something lies among places that rise. */

/* The last of the places with numbers from `first` to `end` - 1 that is `at` or before it; `first` - 1 where none is. */
static long last_place_before(__global const long *places, long first, long end, long at) {
  while (first < end) {
    long middle = (first + end) / 2;
    if (places[middle] <= at)
      first = middle + 1;
    else
      end = middle;
  }
  return first - 1;
}
