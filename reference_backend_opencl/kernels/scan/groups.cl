/* Scans of lines of which a work-group takes one, or one of the `blocks` that a long one is cut into: then a launch finds
 * what each block makes, one what all blocks before it make, and the last one goes on from there. The head defines D_OUT,
 * D_IN, VEC 1, EACH (elements of a work-item side by side), and, after joins.cl, AT_LEAST(a, b) for extrema, which have
 * indices beside their values, else JOIN(a, b) and NOTHING. */
typedef struct {
  long size, inner, block, blocks;
} group_space;

#ifdef AT_LEAST
typedef struct {
  CT value;
  long at; /* -1: nothing */
} state;

/* Of equals the last, and a NaN before all. */
static state join(state a, state b) {
  int nan_a = a.value != a.value, nan_b = b.value != b.value, later = b.at > a.at;
  int b_wins = nan_a | nan_b ? nan_b && (!nan_a || later)
                             : AT_LEAST(b.value, a.value) && (later || !AT_LEAST(a.value, b.value));
  if (a.at < 0 || (b.at >= 0 && b_wins)) return b;
  return a;
}
static state nothing(void) {
  state none = {0, -1};
  return none;
}
static state state_of(__global const RAW(D_IN) * from, long i, long inner) {
  state own = {LOAD(D_IN, __global, from + i * inner), i};
  return own;
}
static void put(__global RAW(D_OUT) * to, __global long *at, __global const RAW(D_IN) * from, long i, long inner,
                state s) {
  to[i * inner] = from[s.at * inner];
  at[i * inner] = s.at;
}
#else
typedef CT state;
#define join(a, b) JOIN(a, b)
static state nothing(void) { return (CT)(NOTHING); }
static state state_of(__global const RAW(D_IN) * from, long i, long inner) {
  return LOAD(D_IN, __global, from + i * inner);
}
static void put(__global RAW(D_OUT) * to, __global long *unused, __global const RAW(D_IN) * from, long i, long inner,
                state s) {
  STORE(D_OUT, __global, to + i * inner, s);
}
#endif

static long line_start(group_space space, long line) {
  return line / space.inner * space.size * space.inner + line % space.inner;
}

/* Each work-item's state becomes what it and those before it make. */
static INLINED void join_up(__local state *shared, state own) {
  int id = (int)get_local_id(0);
  shared[id] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 1; step < LOCAL; step *= 2) {
    state left = id >= step ? shared[id - step] : nothing();
    barrier(CLK_LOCAL_MEM_FENCE);
    shared[id] = join(left, shared[id]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

/* What each block makes. */
KERNEL block_totals(PLACE(work), CONST_PLACE(in), group_space space) {
  __local state shared[LOCAL];
  long group = get_group_id(0), begin = group % space.blocks * space.block, end = min(begin + space.block, space.size);
  __global const RAW(D_IN) *from = CONST_POINTER(D_IN, in) + line_start(space, group / space.blocks);
  state own = nothing();
#pragma unroll 4
  for (long i = begin + (long)get_local_id(0); i < end; i += LOCAL) own = join(own, state_of(from, i, space.inner));
  join_up(shared, own);
  if (get_local_id(0) == LOCAL - 1) ((__global state *)(work + offset_work))[group] = shared[LOCAL - 1];
}

/* What the blocks before each one of its line make; a work-group takes a line. */
KERNEL before_blocks(PLACE(work), group_space space) {
  __local state shared[LOCAL];
  int id = (int)get_local_id(0);
  __global state *totals = (__global state *)(work + offset_work) + get_group_id(0) * space.blocks;
  state before = nothing();
  for (long stretch = 0; stretch < space.blocks; stretch += LOCAL) {
    long k = stretch + id;
    join_up(shared, k < space.blocks ? totals[k] : nothing());
    if (k < space.blocks) totals[k] = id > 0 ? join(before, shared[id - 1]) : before;
    before = join(before, shared[LOCAL - 1]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

/* A stretch is EACH elements for each work-item, which lie side by side; they come by way of local memory, so that
 * work-items read and write what lies side by side, too. Sums have no indices, and `work` is not read where a block is the
 * whole line. */
#define TILE (LOCAL * EACH)
#define AT(i) ((i) + (i) / 32) /* work-items, which read EACH places apart, then use different banks */
KERNEL scan_blocks(PLACE(out), PLACE(indices), CONST_PLACE(in), CONST_PLACE(work), group_space space) {
  __local state shared[LOCAL], tile[TILE + TILE / 32];
  int id = (int)get_local_id(0);
  long group = get_group_id(0), begin = group % space.blocks * space.block, end = min(begin + space.block, space.size);
  long start = line_start(space, group / space.blocks);
  __global const RAW(D_IN) *from = CONST_POINTER(D_IN, in) + start;
  __global RAW(D_OUT) *to = POINTER(D_OUT, out) + start;
  __global long *at = (__global long *)(indices + offset_indices) + start;
  state before = space.blocks > 1 ? ((__global const state *)(work + offset_work))[group] : nothing();
  for (long stretch = begin; stretch < end; stretch += TILE) {
    const int n = (int)min((long)TILE, end - stretch);
    state own[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) { /* no branch, so that all are on their way at once */
      const int i = k * LOCAL + id;
      const state there = state_of(from, stretch + min(i, n - 1), space.inner);
      tile[AT(i)] = i < n ? there : nothing();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const state next = tile[AT(id * EACH + k)];
      own[k] = k > 0 ? join(own[k - 1], next) : next;
    }
    join_up(shared, own[EACH - 1]);
    const state left = id > 0 ? join(before, shared[id - 1]) : before;
#pragma unroll
    for (int k = 0; k < EACH; k++) tile[AT(id * EACH + k)] = join(left, own[k]);
    before = join(before, shared[LOCAL - 1]);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const int i = k * LOCAL + id;
      if (i < n) put(to, at, from, stretch + i, space.inner, tile[AT(i)]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
