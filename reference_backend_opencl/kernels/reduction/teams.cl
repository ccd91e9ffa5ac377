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
 * of D_IN, and AT_ONCE. After formula.cl. */
typedef struct {
  long kept_size[KEPT], kept_out[KEPT], kept_in[KEPT];
  /* Of each reduced dimension how many steps it has and how far they are, and what `depth` steps are in such digits. */
  long size[REDUCED], stride[REDUCED], advance[REDUCED];
  long steps, steps_per_split, rest, split_stride; /* rest: elements behind the last step, of ROWS */
  long units_per_row, units, width, depth;
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

/* `is_aligned` is a constant wherever this is inlined: a vector of a type that may lie anywhere is loaded in parts. */
static INLINED VT fetch(__global const RAW(D_IN) * at, int is_aligned, VT s) {
#if VEC > 1
  if (is_aligned) {
    VEC_OF(RAW(D_IN)) lanes = AS(RAW(D_IN), *(__global const PACKED *)at);
    return MAP(LOAD(D_IN, __private, (__private const RAW(D_IN) *)&lanes));
  }
#endif
  return MAP(LOAD(D_IN, __global, at));
}

/* The steps [at, last) that are this work-item's, of a team's. */
static INLINED VT total_of(__global const RAW(D_IN) * in, space shape, long at, long last, int is_aligned, VT s) {
  VT total = (VT)(INIT);
  steps next = step_at(shape, at);
  while (at < last) {
    long end = min(last, at + STRETCH * AT_ONCE * shape.depth);
    VT part[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) part[k] = (VT)(INIT);
    for (; at + (AT_ONCE - 1) * shape.depth < end; at += AT_ONCE * shape.depth) {
      VT v[AT_ONCE];
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) {
        v[k] = fetch(in + place_of(shape, next), is_aligned, s);
        next = steps_after(shape, next);
      }
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) part[k] = COMBINE(part[k], v[k]);
    }
    for (; at < end; at += shape.depth) {
      VT v = fetch(in + place_of(shape, next), is_aligned, s);
      *part = COMBINE(*part, v);
      next = steps_after(shape, next);
    }
#pragma unroll
    for (int k = 1; k < AT_ONCE; k++) *part = COMBINE(*part, part[k]);
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

KERNEL reduce(PLACE(out), CONST_PLACE(in), CONST_PLACE(shift), CT number, space shape) {
  __local SHARED shared[LOCAL];
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
  VT total = (VT)(INIT), s = (VT)0;
  if (is_there) {
#ifdef SHIFTED
    __global const CT *shifts = (__global const CT *)(shift + offset_shift) + row * shape.kept_size[0] + j;
#ifdef ROWS
    s = (VT)*shifts;
#else
    s = VLOAD(shifts);
#endif
#endif
    __global const RAW(D_IN) *from = CONST_POINTER(D_IN, in) + at_in;
    long first = (long)get_group_id(1) * shape.steps_per_split;
    long last = min(first + shape.steps_per_split, shape.steps);
    if (VEC > 1 && (ulong)(CONST_POINTER(D_IN, in)) % sizeof(PACKED) == 0)
      total = total_of(from, shape, first + place, last, 1, s);
    else
      total = total_of(from, shape, first + place, last, 0, s);
#if defined(ROWS) && VEC > 1
    if (shape.rest && place == 0 && last == shape.steps) {
      RAW(D_IN) lanes[VEC];
      for (int k = 0; k < VEC; k++) lanes[k] = from[shape.steps * VEC + (k < shape.rest ? k : 0)];
      VT v = first_lanes(MAP(LOAD(D_IN, __private, lanes)), (int)shape.rest);
      total = COMBINE(total, v);
    }
#endif
  }
  total = finished(together(total, width, depth, place, shared), (VT)number, s);
  if (!is_there || place != 0) return;
  RAW(D_OUT) lanes[VEC];
  STORE(D_OUT, __private, lanes, total);
#ifdef ROWS
  POINTER(D_OUT, out)[at_out] = lanes[0];
#else
  for (int k = 0; k < VEC; k++) POINTER(D_OUT, out)[at_out + k * shape.kept_out[0]] = lanes[k];
#endif
}
