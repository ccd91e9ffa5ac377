/* What indexing.cl does by chunks of a work-item, for devices with work-groups: a work-group takes a chunk, tile by tile, and
 * its work-items go over elements side by side. After core/sums.cl. Heads and parameters are those of indexing.cl. */
#define EACH 16
#define TILE (LOCAL * EACH)
/* Two places more for every 16: work-items side by side, which read 16 places apart, then use different banks. */
#define AT(i) ((i) + (i) / 16 * 2)
#define PADDED (TILE + TILE / 16 * 2)
#define IS_SET 0x8000u
#define RANK_OF(state) ((state)&0x7fffu)

static int is_set(__global const RAW(D) * at) {
  CT v = LOAD(D, __global, at);
  return NONZERO(v);
}

KERNEL count(CONST_PLACE(in), PLACE(work), ulong n, ulong chunk) {
  __local SUM sums[LOCAL + SPANS];
  __global const RAW(D) *from = CONST_POINTER(D, in);
  const ulong begin = get_group_id(0) * chunk, end = min(begin + chunk, n);
  SUM found = 0, total;
  for (ulong i = begin + get_local_id(0); i < end; i += LOCAL) found += is_set(from + i);
  sum_before(sums, found, &total);
  if (get_local_id(0) == 0) ((__global SUM *)(work + offset_work))[get_group_id(0) + 1] = total;
}

/* A work-item takes CHUNKS_EACH chunks; with that a work-group has all. */
#define CHUNKS_EACH 4
KERNEL accumulate(PLACE(work), ulong chunks) {
  __local SUM sums[LOCAL + SPANS];
  __global SUM *places = (__global SUM *)(work + offset_work);
  const ulong first = get_local_id(0) * CHUNKS_EACH + 1;
  SUM found[CHUNKS_EACH], sum = 0, total;
#pragma unroll
  for (int k = 0; k < CHUNKS_EACH; k++) {
    found[k] = first + k <= chunks ? places[first + k] : 0;
    sum += found[k];
  }
  SUM before = sum_before(sums, sum, &total);
#pragma unroll
  for (int k = 0; k < CHUNKS_EACH; k++) {
    before += found[k];
    if (first + k <= chunks) places[first + k] = before;
  }
  if (get_local_id(0) == 0) places[0] = 0;
}

/* Of each element of a tile whether it is set, and how many before it are; returns how many all are. */
static INLINED SUM rank_tile(__local ushort *states, __local SUM *sums, __global const RAW(D) * from, int n) {
  const int id = (int)get_local_id(0);
#pragma unroll
  for (int k = 0; k < EACH; k++) { /* no branch, so that all are on their way at once */
    const int i = k * LOCAL + id, set = is_set(from + min(i, n - 1));
    states[AT(i)] = (ushort)(i < n ? set : 0);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  SUM sum = 0, total;
#pragma unroll
  for (int k = 0; k < EACH; k++) sum += states[AT(id * EACH + k)];
  uint before = (uint)sum_before(sums, sum, &total);
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    uint set = states[AT(id * EACH + k)];
    states[AT(id * EACH + k)] = (ushort)(before | (set ? IS_SET : 0));
    before += set;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return total;
}

/* In a kernel: its chunk, and the number of the chunk's first set element among all. */
#define CHUNK                                                                                      \
  __local ushort states[PADDED];                                                                   \
  __local SUM sums[LOCAL + SPANS];                                                                 \
  const ulong begin = get_group_id(0) * chunk, end = min(begin + chunk, n);                        \
  const int id = (int)get_local_id(0);                                                             \
  long next = (long)((__global const SUM *)(work + offset_work))[get_group_id(0)];

typedef struct {
  long size[RANK]; /* outermost first */
} shape_t;

KERNEL fill(CONST_PLACE(in), CONST_PLACE(work), ulong n, ulong chunk, PLACE(out), long rows, shape_t shape) {
  CHUNK
  for (ulong first = begin; first < end; first += TILE) {
    const int tile = (int)min((ulong)TILE, end - first);
    long found = (long)rank_tile(states, sums, CONST_POINTER(D, in) + first, tile);
    for (int i = id; i < tile; i += LOCAL) {
      const uint state = states[AT(i)];
      const long row = next + RANK_OF(state);
      if (!(state & IS_SET) || row >= rows) continue;
      __global long *to = (__global long *)(out + offset_out) + RANK * row;
      long rest = (long)first + i;
      for (int d = RANK - 1; d >= 0; d--) {
        to[d] = d > 0 ? rest % shape.size[d] : rest;
        if (d > 0) rest /= shape.size[d];
      }
    }
    next += found;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

KERNEL take_masked(CONST_PLACE(mask), CONST_PLACE(work), ulong n, ulong chunk, CONST_PLACE(in), PLACE(out)) {
  CHUNK
  for (ulong first = begin; first < end; first += TILE) {
    const int tile = (int)min((ulong)TILE, end - first);
    __global const RAW(D_VALUE) *from = CONST_POINTER(D_VALUE, in) + first;
    long found = (long)rank_tile(states, sums, CONST_POINTER(D, mask) + first, tile);
    for (int i = id; i < tile; i += LOCAL) {
      const uint state = states[AT(i)];
      if (state & IS_SET) (POINTER(D_VALUE, out))[next + RANK_OF(state)] = from[i];
    }
    next += found;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

KERNEL put_masked(CONST_PLACE(mask), CONST_PLACE(work), ulong n, ulong chunk, CONST_PLACE(in), PLACE(out),
                  CONST_PLACE(source), long available, __global long *faults) {
  CHUNK
  __global const RAW(D_VALUE) *from = CONST_POINTER(D_VALUE, in), *fresh = CONST_POINTER(D_VALUE, source);
  for (ulong first = begin; first < end; first += TILE) {
    const int tile = (int)min((ulong)TILE, end - first);
    long found = (long)rank_tile(states, sums, CONST_POINTER(D, mask) + first, tile);
    for (int i = id; i < tile; i += LOCAL) {
      const uint state = states[AT(i)];
      const long at = next + RANK_OF(state);
      const bool fits = state & IS_SET && at < available;
      if (state & IS_SET && !fits) REPORT(faults, OP_ID, at, available);
      (POINTER(D_VALUE, out))[first + i] = fits ? fresh[at] : from[first + i];
    }
    next += found;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
