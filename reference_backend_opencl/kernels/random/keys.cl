/* randperm by a CPU: places in the order of their keys, and of places where keys are equal. After random.cl. Keys are drawn
 * once, by some parts, each of which counts for itself how many of its keys each bucket gets by their highest bits. Then an
 * item for each goes there: the 32 bits of its key below those, and its place. A bucket's items are counted into shares of a
 * few by the highest bits of these, and put in order.
 * The workspace has the keys, the items twice, and a row of counts for each part. */
typedef struct {
  ulong n, per_item, parts; /* a part has so many keys, a multiple of those that are drawn at once */
  ulong buckets, shift;     /* which leaves of a key the number of its bucket */
  ulong shares, share_shift;
} permutation;

#define SHARES_MOST 4096
#define KEYS ((__global ulong *)(work + offset_work))
#define ITEMS (KEYS + space.n)
#define COUNTS ((__global uint *)(KEYS + 3 * space.n))

KERNEL draw_keys(PLACE(work), ulong seed, ulong first_block, permutation space) {
  const ulong part = get_global_id(0), first = part * space.per_item, last = min(first + space.per_item, space.n);
  __global uint *counts = COUNTS + part * space.buckets;
  for (ulong k = 0; k < space.buckets; k++) counts[k] = 0;
  for (ulong i = first; i < last; i += 2 * BLOCKS) {
    uint words[4 * BLOCKS];
    draw_blocks(first_block + i / 2, seed, words);
    const int count = (int)min(last - i, (ulong)2 * BLOCKS);
    for (int k = 0; k < count; k++) {
      const ulong key = (ulong)words[2 * k + 1] << 32 | words[2 * k];
      KEYS[i + k] = key;
      counts[key >> space.shift]++;
    }
  }
}

/* From how many items each part has for a bucket to where the first of them goes. */
KERNEL begin_buckets(PLACE(work), permutation space) {
  uint before = 0;
  for (ulong bucket = 0; bucket < space.buckets; bucket++) {
    for (ulong part = 0; part < space.parts; part++) {
      __global uint *count = COUNTS + part * space.buckets + bucket;
      const uint own = *count;
      *count = before;
      before += own;
    }
  }
}

KERNEL place_items(PLACE(work), permutation space) {
  const ulong part = get_global_id(0), first = part * space.per_item, last = min(first + space.per_item, space.n);
  __global uint *next = COUNTS + part * space.buckets;
  for (ulong i = first; i < last; i++) {
    const ulong key = KEYS[i], below = key << (64 - space.shift);
    ITEMS[next[key >> space.shift]++] = (below & 0xffffffff00000000ul) | i;
  }
}

/* Whether item a goes before b. What they have of their keys is seldom the same. */
static bool goes_before(ulong a, ulong b, __global const ulong *keys) {
  if ((a ^ b) >> 32) return a < b;
  const ulong key_a = keys[(uint)a], key_b = keys[(uint)b];
  return key_a < key_b || (key_a == key_b && a < b);
}

/* A bucket ends where the last part's next item would go. */
KERNEL sort_items(PLACE(out), PLACE(work), permutation space) {
  const ulong bucket = get_global_id(0);
  __global const uint *ends = COUNTS + (space.parts - 1) * space.buckets;
  const uint begin = bucket ? ends[bucket - 1] : 0, end = ends[bucket];
  __global const ulong *from = ITEMS;
  __global ulong *items = ITEMS + space.n;
  uint next[SHARES_MOST], before = begin;
  for (ulong k = 0; k < space.shares; k++) next[k] = 0;
  for (uint i = begin; i < end; i++) next[from[i] >> space.share_shift]++;
  for (ulong k = 0; k < space.shares; k++) {
    const uint own = next[k];
    next[k] = before;
    before += own;
  }
  for (uint i = begin; i < end; i++) items[next[from[i] >> space.share_shift]++] = from[i];
  for (uint i = begin; i < end; i++) {
    const ulong item = items[i];
    uint at = i;
    for (; at > begin && goes_before(item, items[at - 1], KEYS); at--) items[at] = items[at - 1];
    items[at] = item;
  }
  for (uint i = begin; i < end; i++) STORE(D, __global, POINTER(D, out) + i, (CT)(uint)items[i]);
}
