/* An element becomes an item (core/items.cl): its key orders as the element should. Equal elements (0 and -0, all NaN) have
 * equal keys, and NaN is the largest. The head defines as_key, as_uint or as_ulong, and DESCENDING where the order is the
 * other one. KEY_BITS is how many of a key's bits, from the last on, may differ; the head defines it where they are fewer
 * than the compute type's, and IS_SIGNED with it. */
#define TYPE_BITS (8 * (int)sizeof(UT))
#ifndef KEY_BITS
#define KEY_BITS TYPE_BITS
#define IS_WHOLE 1
#else
#define IS_WHOLE 0
#endif
#define TOP ((UT)1 << (TYPE_BITS - 1))
#define ALL_BITS (~(UT)0 >> (TYPE_BITS - KEY_BITS))
#define NAN_KEY ALL_BITS

static UT key_of(CT v) {
#ifdef CLASS_FLOAT
  UT bits = as_key(v == 0 ? (CT)0 : v); /* -0 is 0 */
  UT key = bits & TOP ? ~bits : bits | TOP;
  key = (v != v ? ~(UT)0 : key) >> (TYPE_BITS - KEY_BITS); /* a half type leaves the last bits the same */
#elif defined(IS_UNSIGNED)
  UT key = v;
#elif defined(IS_SIGNED)
  UT key = (UT)v + ((UT)1 << (KEY_BITS - 1));
#else
  UT key = IS_WHOLE ? (UT)v ^ TOP : (UT)v;
#endif
#ifdef DESCENDING
  key = ~key & ALL_BITS;
#endif
  return key;
}

/* The element with this key; for 0 and NaN one of several. */
static CT value_of(UT key) {
#ifdef DESCENDING
  key = ~key & ALL_BITS;
#endif
#ifdef CLASS_FLOAT
  UT high = key << (TYPE_BITS - KEY_BITS), low = ~key << (TYPE_BITS - KEY_BITS);
  return CAT(as_, CT)(high & TOP ? high ^ TOP : low);
#elif defined(IS_UNSIGNED)
  return key;
#elif defined(IS_SIGNED)
  return (CT)(key - ((UT)1 << (KEY_BITS - 1)));
#else
  return IS_WHOLE ? (CT)(key ^ TOP) : (CT)key;
#endif
}

static int is_ambiguous(UT key) {
#ifdef CLASS_FLOAT
#ifdef DESCENDING
  key = ~key & ALL_BITS;
#endif
  return key == NAN_KEY || key == (UT)1 << (KEY_BITS - 1);
#else
  return 0;
#endif
}

#if LOCAL == 1
#define DIGIT(item, digit) ((uint)(KEY(item) >> (8 * (digit))) & 255)

/* Counts the values of all digits, which no order changes, and moves the items to their places by one digit after the
 * other; a digit that all share is passed over. `size` has 32 bits. */
static __global ITEM *by_digits(__global ITEM *items, __global ITEM *other, long size) {
  uint counts[DIGITS][256];
  for (int digit = 0; digit < DIGITS; digit++) {
    for (int k = 0; k < 256; k++) counts[digit][k] = 0;
  }
  for (long i = 0; i < size; i++) {
    const ITEM item = items[i];
#pragma unroll
    for (int digit = 0; digit < DIGITS; digit++) counts[digit][DIGIT(item, digit)]++;
  }
  for (int digit = 0; digit < DIGITS; digit++) {
    uint *begin = counts[digit];
    if (begin[DIGIT(items[0], digit)] == size) continue;
    uint sum = 0;
    for (int k = 0; k < 256; k++) {
      const uint count = begin[k];
      begin[k] = sum;
      sum += count;
    }
    for (long i = 0; i < size; i++) other[begin[DIGIT(items[i], digit)]++] = items[i];
    __global ITEM *swap = items;
    items = other;
    other = swap;
  }
  return items;
}
#endif
