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
