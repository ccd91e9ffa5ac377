/* The median of a large tensor on a CPU, digit by digit of the keys from the first on: work-items count the next digit's
 * values among keys that begin as the median's does, each in a part of the tensor; then one finds which value it has. The
 * element is the one that a stable sort would have in the middle. After items.cl; the head defines BITS, of a digit, and
 * PASSES_NAN where NaN do not count. */
#define BINS (1 << BITS)
/* Counters side by side, so that equal digits that follow each other do not wait for each other. */
#define TABLES 4
#define ITEM_COUNTERS (TABLES * BINS + 16)
#define NANS (TABLES * BINS)

/* What the digits so far are, and which of those that begin so is looked for. */
typedef struct {
  ulong prefix, rank;
} found;

typedef struct {
  long size, part, items;
} parts;

/* The state comes first in `work`, then the counters of each item. */
#define FOUND(work) ((__global found *)(work + offset_work))
#define COUNTERS(work) ((__global uint *)(FOUND(work) + 1))

static UT key_at(__global const RAW(D) * from, long i) { return key_of((CT)LOAD(D, __global, from + i)); }

/* `shift`: of the digit in a key; a first one has no others before it. */
KERNEL count_digit(CONST_PLACE(in), PLACE(work), parts space, int shift, int bits) {
  const long id = (long)get_global_id(0), begin = id * space.part, end = min(begin + space.part, space.size);
  __global const RAW(D) *from = CONST_POINTER(D, in);
  __global uint *counters = COUNTERS(work) + id * ITEM_COUNTERS;
  const bool is_first = shift + bits == TYPE_BITS;
  const UT mask = ((UT)1 << bits) - 1;
  for (int k = 0; k < ITEM_COUNTERS; k++) counters[k] = 0;
  if (is_first) {
    uint nans = 0;
    for (long i = begin; i < end; i++) {
      const UT key = key_at(from, i);
      counters[(int)(i & (TABLES - 1)) * BINS + (int)(key >> shift)]++;
      nans += key == NAN_KEY;
    }
    counters[NANS] = nans;
    return;
  }
  const UT prefix = (UT)FOUND(work)->prefix;
  for (long i = begin; i < end; i++) {
    const UT key = key_at(from, i);
    if (key >> (shift + bits) == prefix) counters[(int)(i & (TABLES - 1)) * BINS + (int)(key >> shift & mask)]++;
  }
}

static ulong count_of(__global const uint *counters, long item, int digit) {
  ulong sum = 0;
  for (int t = 0; t < TABLES; t++) sum += counters[item * ITEM_COUNTERS + t * BINS + digit];
  return sum;
}

/* Where the median stands among all, by the first counts. Integers have no NaN. */
static ulong rank_of(__global const uint *counters, parts space) {
#ifdef CLASS_FLOAT
  ulong nans = 0;
  for (long item = 0; item < space.items; item++) nans += counters[item * ITEM_COUNTERS + NANS];
#ifdef PASSES_NAN
  const ulong numbers = (ulong)space.size - nans;
  return numbers > 0 ? (numbers - 1) / 2 : 0;
#else
  if (nans > 0) return (ulong)space.size - 1;
#endif
#endif
  return ((ulong)space.size - 1) / 2;
}

/* Of elements with this key, which differ in their bits, the one of this rank: the digit's counts say in which part. */
static long place_of(__global const RAW(D) * from, __global const uint *counters, parts space, UT key, ulong rank, int digit) {
  long item = 0;
  for (; item < space.items - 1; item++) {
    const ulong here = count_of(counters, item, digit);
    if (rank < here) break;
    rank -= here;
  }
  long i = item * space.part;
  for (; i < space.size - 1; i++) {
    if (key_at(from, i) != key) continue;
    if (rank == 0) break;
    rank--;
  }
  return i;
}

KERNEL choose_digit(PLACE(out), CONST_PLACE(in), PLACE(work), parts space, int shift, int bits) {
  __global found *state = FOUND(work);
  __global const uint *counters = COUNTERS(work);
  const bool is_first = shift + bits == TYPE_BITS;
  ulong rank = is_first ? rank_of(counters, space) : state->rank;
  int digit = 0;
  for (; digit < (1 << bits) - 1; digit++) {
    ulong here = 0;
    for (long item = 0; item < space.items; item++) here += count_of(counters, item, digit);
    if (rank < here) break;
    rank -= here;
  }
  const UT key = (is_first ? 0 : (UT)state->prefix << bits) | (UT)digit;
  state->prefix = key;
  state->rank = rank;
  if (shift > 0) return;
  __global const RAW(D) *from = CONST_POINTER(D, in);
  __global RAW(D) *to = POINTER(D, out);
  if (is_ambiguous(key)) *to = from[place_of(from, counters, space, key, rank, digit)];
  else STORE(D, __global, to, value_of(key));
}
