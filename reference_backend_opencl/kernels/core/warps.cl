/* NVIDIA's warps, of 32 work-items, by inline PTX: sm_70 and later, for heads that say WARPS. */
#ifdef WARPS
#define WARP 32

/* Of each work-item of the warp a bit: whether its `set` is not 0. */
static INLINED uint ballot(int set) {
  uint bits;
  __asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, -1; }" : "=r"(bits) : "r"(set));
  return bits;
}

/* The compiler is to have made this number here: one that it makes later keeps all that it is made of in registers. */
#define MADE(number) __asm volatile("" : "+r"(number))

/* The number of the work-item `step` before in the warp; the first ones get their own. */
static INLINED uint from_before(uint number, int step) {
  uint other;
  __asm volatile("shfl.sync.up.b32 %0, %1, %2, 0, -1;" : "=r"(other) : "r"(number), "r"(step));
  return other;
}

/* A barrier of the warp alone, for local memory, too. */
static INLINED void warp_barrier(void) { __asm volatile("bar.warp.sync -1;" : : : "memory"); }
#endif
