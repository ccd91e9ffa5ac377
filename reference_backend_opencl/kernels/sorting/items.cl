/* An element becomes an item (core/items.cl): its key orders as the element should. Equal elements (0 and -0, all NaN) have
 * equal keys, and NaN is the largest. The head defines as_key, as_uint or as_ulong, and DESCENDING where the order is the
 * other one. */
#define TOP ((UT)1 << (8 * sizeof(UT) - 1))

static UT key_of(CT v) {
#ifdef CLASS_FLOAT
  UT bits = as_key(v == 0 ? (CT)0 : v); /* -0 is 0 */
  UT key = bits & TOP ? ~bits : bits | TOP;
  key = v != v ? ~(UT)0 : key;
#elif defined(IS_UNSIGNED)
  UT key = v;
#else
  UT key = (UT)v ^ TOP;
#endif
#ifdef DESCENDING
  key = ~key;
#endif
  return key;
}

#if LOCAL == 1
/* Counts a digit's values and moves the items to their places; a digit that all share is passed over. */
static __global ITEM *by_digits(__global ITEM *items, __global ITEM *other, long size) {
  for (int digit = 0; digit < DIGITS; digit++) {
    long begin[256];
    int shift = 8 * digit;
    for (int k = 0; k < 256; k++) begin[k] = 0;
    for (long i = 0; i < size; i++) begin[KEY(items[i]) >> shift & 255]++;
    if (begin[KEY(items[0]) >> shift & 255] == size) continue;
    long sum = 0;
    for (int k = 0; k < 256; k++) {
      long count = begin[k];
      begin[k] = sum;
      sum += count;
    }
    for (long i = 0; i < size; i++) other[begin[KEY(items[i]) >> shift & 255]++] = items[i];
    __global ITEM *swap = items;
    items = other;
    other = swap;
  }
  return items;
}
#endif
