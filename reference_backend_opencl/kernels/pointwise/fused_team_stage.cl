/* A reduction of a fused kernel on a GPU as functions: what fused_stage.cl is for a CPU, with the templates of teams.cl.
 * A total has the lanes of a step; with ROWS those come together at the end, else each is a column of its own. */
typedef VT CAT(team_, STAGE);
#ifdef ROWS
typedef CT CAT(shared_, STAGE); /* lanes are together */
#define TO_SHARED(v) first_lane(v)
#define RESULTS 1
#else
typedef VT CAT(shared_, STAGE);
#define TO_SHARED(v) (v)
#define RESULTS VEC
#endif
static VT CAT(nothing_, STAGE)(void) { return (VT)(INIT); }
static VT CAT(join_, STAGE)(VT a, VT b) { return COMBINE(a, b); }
static VT CAT(take_, STAGE)(VT total, __private const RAW(D_IN) * in, VT s) {
  VT v = LOAD(D_IN, __private, in);
  v = MAP(v);
  return COMBINE(total, v);
}
/* What all of a team have, for each of it. */
static INLINED VT CAT(together_, STAGE)(VT v, int width, int depth, int place, __local CAT(shared_, STAGE) * shared) {
  const int id = (int)get_local_id(0);
#ifdef ROWS
  v = across(v);
#endif
  shared[id] = TO_SHARED(v);
  for (int half_depth = depth / 2; half_depth > 0; half_depth /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (place < half_depth) {
      VT a = (VT)shared[id], b = (VT)shared[id + half_depth * width];
      a = COMBINE(a, b);
      shared[id] = TO_SHARED(a);
    }
  }
  if (depth > 1) barrier(CLK_LOCAL_MEM_FENCE);
  return (VT)shared[id - place * width];
}
static VT CAT(total_, STAGE)(VT v, VT s, CT number) {
  VT x = (VT)number;
  return FINISH(v);
}
static void CAT(give_, STAGE)(__private RAW(D_OUT) * out, VT v) { STORE(D_OUT, __private, out, v); }
/* A total that is not finished, as teams.cl leaves it to a second pass. */
static void CAT(leave_, STAGE)(__global uchar *partial, long at, VT v) {
  __global RAW(D_TOTAL) *to = (__global RAW(D_TOTAL) *)partial + at;
  RAW(D_TOTAL) lanes[VEC];
  STORE(D_TOTAL, __private, lanes, v);
  for (int k = 0; k < RESULTS; k++) to[k] = lanes[k];
}
