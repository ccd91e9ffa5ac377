/* What kernels that combine by sorted keys share: what comes to the target from the source, and where in the target a key
 * is. After joins.cl; the head is that of scatter.cl. */
DEFINE_ACCESS(target, D_TARGET)
DEFINE_ACCESS(source, D_SOURCE)

#define LANES 1 /* of VEC, which is 1 */
#if defined(IS_VALUE)
#define FRESH(p) number
#elif defined(IS_SCALED)
#define FRESH(p) MUL(get_source(p, LANES), number)
#else
#define FRESH(p) get_source(p, LANES)
#endif

/* Where the element with this number is, of a key of `parts` parts. */
static long target_at(long key, const long *bound, const long *step, int parts) {
  long at = 0;
  for (int k = parts - 1; k >= 0; k--) {
    long i = k > 0 ? key % bound[k] : key;
    if (k > 0) key /= bound[k];
    at += i * step[k];
  }
  return at;
}

/* Combines with `all` what the items from number `i` on bring whose key is `key`; RUN elements are on their way at a
 * time. The file says what ITEM_AT(i) is, and where an item's source is: SOURCE_OF(item). */
#define RUN 4
#define COMBINE_RUN(all, i, count, key)                                             \
  for (long next = (i), goes_on = 1; goes_on; next += RUN) {                        \
    CT fresh[RUN];                                                                  \
    int same[RUN];                                                                  \
    _Pragma("unroll") for (int j = 0; j < RUN; j++) {                               \
      const ITEM item_j = ITEM_AT(min(next + j, (long)(count)-1));                  \
      same[j] = next + j < (long)(count) && (long)KEY(item_j) == (key);             \
      if (same[j]) fresh[j] = FRESH(SOURCE_OF(item_j));                             \
    }                                                                               \
    _Pragma("unroll") for (int j = 0; j < RUN; j++) {                               \
      if (same[j]) all = COMBINE(all, fresh[j]);                                    \
    }                                                                               \
    goes_on = same[RUN - 1];                                                        \
  }
