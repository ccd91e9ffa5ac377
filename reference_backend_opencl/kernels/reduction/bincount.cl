/* How often each whole number occurs, or what the weights of its places add up to. The head defines D, the dtype of the
 * numbers, and with weights WEIGHT, their type and that of the sums. Sums of weights are made in an order that follows from the
 * shapes and the number of bins alone: on a CPU stretches of numbers have bins of their own, or, where bins are many, each work-item goes over all
 * numbers for its own part of them; elsewhere places are sorted first (after core/items.cl).
 * Counts are whole numbers, so that it is all the same in which order they grow. */
typedef struct {
  long n, chunk; /* a work-group has `chunk` numbers */
} bincount_space;

DEFINE_ACCESS(in, D)

/* The greatest number, read without a sign: a negative one is then greater than all that can be counted. */
KERNEL greatest(PLACE(work), CONST_PLACE(in), bincount_space space) {
  __global const RAW(D) *from = CONST_POINTER(D, in);
  const int id = (int)get_local_id(0);
  const long begin = (long)get_group_id(0) * space.chunk, end = min(begin + space.chunk, space.n);
  __global ulong *found = (__global ulong *)(work + offset_work) + get_group_id(0);
  ulong most = 0;
  for (long i = begin + id; i < end; i += LOCAL) most = max(most, (ulong)one_in(from + i));
#if LOCAL > 1
  __local ulong shared[LOCAL];
  shared[id] = most;
  for (int step = LOCAL / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < step) shared[id] = max(shared[id], shared[id + step]);
  }
  if (id == 0) *found = shared[0];
#else
  *found = most;
#endif
}

/* Of all groups, behind what these found. */
KERNEL greatest_of_all(PLACE(work), long groups) {
  __global ulong *found = (__global ulong *)(work + offset_work);
  ulong most = 0;
  if (get_global_id(0) != 0) return;
  for (long i = 0; i < groups; i++) most = max(most, found[i]);
  found[groups] = most;
}

#if LOCAL == 1
#ifdef WEIGHT
#define SUM WEIGHT
#define FRESH(i) weight[i]
#else
#define SUM long
#define FRESH(i) 1
#endif
/* A work-item has `part` bins. */
KERNEL add_parts(PLACE(out), CONST_PLACE(in), CONST_PLACE(weights), long bins, long part, bincount_space space) {
  __global const RAW(D) *from = CONST_POINTER(D, in);
  const long first = (long)get_global_id(0) * part, size = min(part, bins - first);
  __global SUM *to = (__global SUM *)(out + offset_out) + first;
#ifdef WEIGHT
  __global const WEIGHT *weight = (__global const WEIGHT *)(weights + offset_weights);
#endif
  for (long bin = 0; bin < size; bin++) to[bin] = 0;
  for (long i = 0; i < space.n; i++) {
    const long bin = (long)one_in(from + i) - first;
    if (bin >= 0 && bin < size) to[bin] += FRESH(i);
  }
}

/* A work-item has `stretch` numbers, none of them beyond the bins. */
KERNEL count_stretches(PLACE(work), CONST_PLACE(in), CONST_PLACE(weights), long bins, long stretch, bincount_space space) {
  __global const RAW(D) *from = CONST_POINTER(D, in);
  const long id = (long)get_global_id(0), begin = id * stretch, end = min(begin + stretch, space.n);
  __global SUM *to = (__global SUM *)(work + offset_work) + id * bins;
#ifdef WEIGHT
  __global const WEIGHT *weight = (__global const WEIGHT *)(weights + offset_weights);
#endif
  for (long bin = 0; bin < bins; bin++) to[bin] = 0;
  for (long i = begin; i < end; i++) to[(long)one_in(from + i)] += FRESH(i);
}

/* All stretches' bins into one, in their order; a work-item has `part` bins. */
KERNEL join_stretches(PLACE(out), CONST_PLACE(work), long bins, long part, long stretches) {
  const long first = (long)get_global_id(0) * part, size = min(part, bins - first);
  __global SUM *to = (__global SUM *)(out + offset_out) + first;
  for (long k = 0; k < stretches; k++) {
    __global const SUM *of = (__global const SUM *)(work + offset_work) + k * bins + first;
    for (long bin = 0; bin < size; bin++) to[bin] = k ? to[bin] + of[bin] : of[bin];
  }
}
#elif !defined(WEIGHT)
/* To a count of 64 bits, of which devices need not have atomics: the low half tells its carry but once. */
#ifdef __ENDIAN_LITTLE__
#define LOW 0
#else
#define LOW 1
#endif
static void grow(__global long *out, long bin, uint more) {
  __global uint *half_of = (__global uint *)(out + bin);
  const uint before = atomic_add(half_of + LOW, more);
  if (before + more < before) atomic_inc(half_of + 1 - LOW);
}

KERNEL count_global(PLACE(out), CONST_PLACE(in), bincount_space space) {
  __global const RAW(D) *from = CONST_POINTER(D, in);
  const long begin = (long)get_group_id(0) * space.chunk, end = min(begin + space.chunk, space.n);
  for (long i = begin + get_local_id(0); i < end; i += LOCAL) {
    grow((__global long *)(out + offset_out), (long)one_in(from + i), 1);
  }
}

/* The same where a work-group has room for all bins: it counts for itself first. */
KERNEL count_local(PLACE(out), CONST_PLACE(in), int bins, bincount_space space) {
  __local uint row[LOCAL_BINS];
  __global const RAW(D) *from = CONST_POINTER(D, in);
  const long begin = (long)get_group_id(0) * space.chunk, end = min(begin + space.chunk, space.n);
  const int id = (int)get_local_id(0);
  for (int k = id; k < bins; k += LOCAL) row[k] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long i = begin + id; i < end; i += LOCAL) atomic_inc(row + (int)one_in(from + i));
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = id; k < bins; k += LOCAL) {
    if (row[k]) grow((__global long *)(out + offset_out), k, row[k]);
  }
}
#else
KERNEL make_items(PLACE(items), CONST_PLACE(in), bincount_space space) {
  const long i = (long)get_global_id(0);
  if (i >= space.n) return;
  ((__global ITEM *)(items + offset_items))[i] = MAKE_ITEM((long)one_in(CONST_POINTER(D, in) + i), i);
}

/* Of the places of one number, the first does the work. */
KERNEL add_sorted(PLACE(out), CONST_PLACE(items), CONST_PLACE(weights), bincount_space space) {
  __global const ITEM *item = (__global const ITEM *)(items + offset_items);
  __global const WEIGHT *weight = (__global const WEIGHT *)(weights + offset_weights);
  long i = (long)get_global_id(0);
  if (i >= space.n) return;
  const long bin = (long)KEY(item[i]);
  if (i > 0 && (long)KEY(item[i - 1]) == bin) return;
  WEIGHT sum = 0;
  for (; i < space.n && (long)KEY(item[i]) == bin; i++) sum += weight[PLACE_OF(item[i])];
  ((__global WEIGHT *)(out + offset_out))[bin] = sum;
}
#endif
