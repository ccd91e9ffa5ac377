/* One pass of a reduction on a GPU: what reduction.cl is for a CPU. A work-group is cut into teams, each of which makes a
 * unit: a team is `width` work-items side by side along the kept dimension, and `depth` that share the steps.
 *   ROWS      a step is VEC elements along the innermost reduced dimension, and a unit one output: width is 1
 *   otherwise a step is a place of the reduced dimensions, and a work-item has VEC outputs side by side
 * Where a few outputs have many steps these are split, too: each split leaves a row of partial results.
 *
 * Every order is fixed, so that equal calls give equal bits. A work-item adds up AT_ONCE totals side by side, in
 * stretches, and what a team has comes together in a tree: no chain of additions is as long as a stretch and the number
 * of stretches together.
 *
 * The head defines what reduction.cl wants of it, but the strides, and PACKED, an integer type as wide as VEC elements
 * of D_IN, and AT_ONCE. With FIRST_MAP(v) and FIRST_FINISH(v) a team finds s itself before, by the same steps; with
 * D_FIRST that is a result, too, in the place of `shift`. After formula.cl. */
typedef struct {
  long kept_size[KEPT], kept_out[KEPT], kept_in[KEPT];
  /* Of each reduced dimension how many steps it has and how far they are, and what `depth` steps are in such digits. */
  long size[REDUCED], stride[REDUCED], advance[REDUCED];
  long steps, steps_per_split, rest, split_stride; /* rest: elements behind the last step, of ROWS */
  long units_per_row, units, width, depth, count; /* count: elements that an output is made of */
} space;

#define STRETCH 64

static long quotient(long a, long b) { return (a | b) >> 32 ? a / b : (long)((uint)a / (uint)b); }

/* ---- Steps ---- */

typedef struct {
  long digit[REDUCED];
} steps;

static steps step_at(space shape, long at) {
  steps s;
#pragma unroll
  for (int d = 0; d < REDUCED - 1; d++) {
    long rest = quotient(at, shape.size[d]);
    s.digit[d] = at - rest * shape.size[d];
    at = rest;
  }
  s.digit[REDUCED - 1] = at;
  return s;
}

static steps steps_after(space shape, steps s) {
#pragma unroll
  for (int d = 0; d < REDUCED; d++) s.digit[d] += shape.advance[d];
#pragma unroll
  for (int d = 0; d < REDUCED - 1; d++) {
    long carry = s.digit[d] >= shape.size[d] ? 1 : 0;
    s.digit[d] -= carry ? shape.size[d] : 0;
    s.digit[d + 1] += carry;
  }
  return s;
}

static long place_of(space shape, steps s) {
  long place = 0;
#pragma unroll
  for (int d = 0; d < REDUCED; d++) place += s.digit[d] * shape.stride[d];
  return place;
}

#ifdef FIRST_MAP
static INLINED VT mapped(VT v, int is_first, VT s) { return is_first ? FIRST_MAP(v) : MAP(v); }
#else
static INLINED VT mapped(VT v, int is_first, VT s) { return MAP(v); }
#endif

/* `is_aligned` and `is_first` are constants wherever this is inlined: a vector of a type that may lie anywhere is loaded
 * in parts. */
static INLINED VT fetch(__global const RAW(D_IN) * at, int is_aligned, int is_first, VT s) {
#if VEC > 1
  if (is_aligned) {
    VEC_OF(RAW(D_IN)) lanes = AS(RAW(D_IN), *(__global const PACKED *)at);
    return mapped(LOAD(D_IN, __private, (__private const RAW(D_IN) *)&lanes), is_first, s);
  }
#endif
  return mapped(LOAD(D_IN, __global, at), is_first, s);
}

/* The steps [at, last) that are this work-item's, of a team's. */
static INLINED VT total_of(__global const RAW(D_IN) * in, space shape, long at, long last, int is_aligned, int is_first,
                           VT s) {
  VT total = (VT)(INIT);
  steps next = step_at(shape, at);
  while (at < last) {
    long end = min(last, at + STRETCH * AT_ONCE * shape.depth);
    VT part[AT_ONCE];
    AT_THE_SAME_TIME for (int k = 0; k < AT_ONCE; k++) part[k] = (VT)(INIT);
    for (; at + (AT_ONCE - 1) * shape.depth < end; at += AT_ONCE * shape.depth) {
      VT v[AT_ONCE];
      AT_THE_SAME_TIME for (int k = 0; k < AT_ONCE; k++) {
        v[k] = fetch(in + place_of(shape, next), is_aligned, is_first, s);
        next = steps_after(shape, next);
      }
      AT_THE_SAME_TIME for (int k = 0; k < AT_ONCE; k++) part[k] = COMBINE(part[k], v[k]);
    }
    if (at < end) { /* the last few, at once, too: those beyond the end read the first of them */
      const long first_of_last = place_of(shape, next);
      VT v[AT_ONCE - 1];
      AT_THE_SAME_TIME for (int k = 0; k < AT_ONCE - 1; k++) {
        const long place = at + k * shape.depth < end ? place_of(shape, next) : first_of_last;
        v[k] = fetch(in + place, is_aligned, is_first, s);
        next = steps_after(shape, next);
      }
      AT_THE_SAME_TIME for (int k = 0; k < AT_ONCE - 1; k++) {
        if (at + k * shape.depth < end) *part = COMBINE(*part, v[k]);
      }
      at = end;
    }
    AT_THE_SAME_TIME for (int k = 1; k < AT_ONCE; k++) *part = COMBINE(*part, part[k]);
    total = COMBINE(total, *part);
  }
  return total;
}

/* ---- A team ---- */

/* In local memory a work-item of ROWS has one number: its lanes are together. */
#ifdef ROWS
#define SHARED CT
#define TO_SHARED(v) first_lane(v)
#else
#define SHARED VT
#define TO_SHARED(v) (v)
#endif

/* What all of a team have, for those of depth 0. */
static INLINED VT together(VT v, int width, int depth, int place, __local SHARED *shared) {
  int id = (int)get_local_id(0);
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
  return (VT)shared[id]; /* its own: it wrote that last */
}

static VT finished(VT v, VT x, VT s) { return FINISH(v); }

/* Where a team finds its elements. */
typedef struct {
  __global const RAW(D_IN) *from;
  int is_there, is_aligned, place, width, depth;
} team;

/* What the whole team makes of its steps, for those of depth 0. */
static INLINED VT reduced(team t, space shape, int is_first, VT s, __local SHARED *shared) {
  VT total = (VT)(INIT);
  if (t.is_there) {
    const long first = (long)get_group_id(1) * shape.steps_per_split;
    const long last = min(first + shape.steps_per_split, shape.steps);
    if (VEC > 1 && t.is_aligned)
      total = total_of(t.from, shape, first + t.place, last, 1, is_first, s);
    else
      total = total_of(t.from, shape, first + t.place, last, 0, is_first, s);
#if defined(ROWS) && VEC > 1
    if (shape.rest && t.place == 0 && last == shape.steps) {
      RAW(D_IN) lanes[VEC];
      for (int k = 0; k < VEC; k++) lanes[k] = t.from[shape.steps * VEC + (k < shape.rest ? k : 0)];
      VT v = first_lanes(mapped(LOAD(D_IN, __private, lanes), is_first, s), (int)shape.rest);
      total = COMBINE(total, v);
    }
#endif
  }
  return together(total, t.width, t.depth, t.place, shared);
}

/* ---- The kernel ---- */

#define PUT_OUTPUTS(dtype, name, at, stride, v)                                               \
  {                                                                                           \
    RAW(dtype) lanes[VEC];                                                                    \
    STORE(dtype, __private, lanes, v);                                                        \
    for (int k = 0; k < OUTPUTS; k++) POINTER(dtype, name)[(at) + k * (stride)] = lanes[k];   \
  }
#ifdef ROWS
#define OUTPUTS 1
#else
#define OUTPUTS VEC
#endif

#ifdef FIRST_MAP
static VT first_finished(VT v, VT x, VT s) { return FIRST_FINISH(v); }

/* s, for each of a team. */
static INLINED VT found_first(team t, space shape, __local SHARED *shared) {
  const int id = (int)get_local_id(0);
  const VT total = reduced(t, shape, 1, (VT)0, shared);
  const VT s = first_finished(total, (VT)(CT)shape.count, (VT)0);
  if (t.place == 0) shared[id] = TO_SHARED(s);
  barrier(CLK_LOCAL_MEM_FENCE);
  const VT own = (VT)shared[id - t.place * t.width];
  barrier(CLK_LOCAL_MEM_FENCE);
  return own;
}
#endif

#ifdef D_FIRST
#define PARAMETER_SHIFT PLACE(shift)
#else
#define PARAMETER_SHIFT CONST_PLACE(shift)
#endif

KERNEL reduce(PLACE(out), CONST_PLACE(in), PARAMETER_SHIFT, CT number, space shape) {
  GROUP_ARRAY(SHARED, shared);
  const int width = (int)shape.width, depth = (int)shape.depth, id = (int)get_local_id(0);
  const int column = id % width, place = id / width % depth;
  long unit = (long)get_group_id(0) * (LOCAL / (width * depth)) + id / (width * depth);
  long row = KEPT > 1 ? quotient(unit, shape.units_per_row) : 0, outer = row;
#ifdef ROWS
  long j = unit - row * shape.units_per_row;
#else
  long j = ((unit - row * shape.units_per_row) * width + column) * VEC;
#endif
  bool is_there = unit < shape.units && j < shape.kept_size[0];
  long at_out = (long)get_group_id(1) * shape.split_stride + j * shape.kept_out[0], at_in = j * shape.kept_in[0];
  for (int d = 1; d < KEPT; d++) {
    long rest = quotient(outer, shape.kept_size[d]), kept = outer - rest * shape.kept_size[d];
    outer = rest;
    at_out += kept * shape.kept_out[d];
    at_in += kept * shape.kept_in[d];
  }
  const team t = {CONST_POINTER(D_IN, in) + at_in, is_there, (ulong)(CONST_POINTER(D_IN, in)) % sizeof(PACKED) == 0,
                  place, width, depth};
  VT s = (VT)0;
#ifdef FIRST_MAP
  s = found_first(t, shape, shared);
#endif
#ifdef SHIFTED
  if (is_there) {
    __global const CT *shifts = (__global const CT *)(shift + offset_shift) + row * shape.kept_size[0] + j;
#ifdef ROWS
    s = (VT)*shifts;
#else
    s = VLOAD(shifts);
#endif
  }
#endif
  const VT total = finished(reduced(t, shape, 0, s, shared), (VT)number, s);
  if (!is_there || place != 0) return;
  PUT_OUTPUTS(D_OUT, out, at_out, shape.kept_out[0], total)
#ifdef D_FIRST
  PUT_OUTPUTS(D_FIRST, shift, at_out, shape.kept_out[0], s)
#endif
}
