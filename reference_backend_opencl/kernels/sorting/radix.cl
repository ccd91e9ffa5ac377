/* What a radix sort (core/radix.cl, which comes behind this) reads and writes where lines of outer x size x inner are
 * sorted: with FROM_ELEMENTS it begins with elements, with TO_RESULTS it ends with values and places, of which it keeps
 * `kept` behind the first `skipped`. After items.cl. */
static long line_start(long line, long size, long inner) { return line / inner * size * inner + line % inner; }

#ifdef FROM_ELEMENTS
/* Beyond the line's last element there is nothing more in its last part. */
static ITEM item_of(__global const RAW(D) * from, long i, long length, long inner) {
  CT v = LOAD(D, __global, from + min(i, length - 1) * inner);
  return i < length ? MAKE_ITEM(key_of(v), i) : FILL;
}
#define SOURCE_LINE(line) line_start((line) / space.parts, space.length, space.inner)
#define SOURCE_FIRST(line) ((line) % space.parts * space.size)
#define SOURCE(from, at, i) item_of(CONST_POINTER(D, from) + (at), i, space.length, space.inner)
#endif

#ifdef TO_RESULTS
/* A value comes back from its key, but where elements with other bits have the same one. */
static void put_result(__global RAW(D) * values, __global long *indices, __global const RAW(D) * in, long inner,
                       ITEM item) {
  const long place = (long)PLACE_OF(item);
  const UT key = (UT)KEY(item);
  *indices = place;
  if (is_ambiguous(key)) *values = in[place * inner];
  else STORE(D, __global, values, value_of(key));
}
#define SINK_PARAMETERS PLACE(values), PLACE(indices), CONST_PLACE(in)
#define SINK_LINE(line) line_start(line, space.kept, space.inner)
#define SINK_ORIGIN(line) line_start(line, space.length, space.inner)
#define SINK(at, origin, i, item)                                                                        \
  do {                                                                                                   \
    const long kept_at = (i)-space.skipped, result = (at) + kept_at * space.inner;                       \
    if (kept_at >= 0 && kept_at < space.kept)                                                            \
      put_result(POINTER(D, values) + result, (__global long *)(indices + offset_indices) + result,      \
                 CONST_POINTER(D, in) + (origin), space.inner, item);                                    \
  } while (0)
#endif
