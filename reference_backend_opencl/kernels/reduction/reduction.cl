/* One pass of a reduction. The output's dimensions are the kept ones; each output combines all places of the reduced ones.
 *   ROWS      the vector runs along the innermost reduced dimension; its lanes are combined at the end
 *   otherwise it runs along the innermost kept dimension: VEC outputs side by side, or WIDTH vectors, which is as much of
 *             a row as is worth going to another page of memory for
 * Sums are made in segments, whose subtotals are added in a tree of 16 each: the rounding error grows with the logarithm
 * of the length. Several work-items may share an output: each is a split, with its own row of partial results.
 *
 * The head defines D_OUT, D_IN, KEPT and REDUCED (ranks), INNER_IN (whether the stride along the vector is 1), INNER_OUT
 * (the same of the output, asked of `stride` where the pass is small), and the op: INIT, MAP(v), COMBINE(a, b),
 * FINISH(v). These see x, a number, Y, a constant of the head, and with SHIFTED s, a number for each output. After
 * formula.cl. */
typedef struct {
  long kept_size[KEPT], kept_out[KEPT], kept_in[KEPT];
  long reduced_size[REDUCED], reduced_in[REDUCED];
  long segment, segments_per_row, segments, segments_per_split, split_stride;
  long outputs_per_unit, units_per_row, units_per_split, units, per_item;
} space;

/* n elements from `at` on; ROWS fills the lanes beyond with what changes nothing. */
static VT fetch(__global const RAW(D_IN) * at, long stride, int n, VT s) {
  if (INNER_IN && n == VEC) return MAP(LOAD(D_IN, __global, at));
  RAW(D_IN) lanes[VEC];
  OVER_LANES
  for (int j = 0; j < VEC; j++) lanes[j] = at[j < n ? j * stride : 0];
  return first_lanes(MAP(LOAD(D_IN, __private, lanes)), n);
}

/* As fetch, of the n elements before `end`, of a row of VEC or more: what lies in front of them is read, turned to the last
 * lanes, and left out. */
#if defined(ROWS) && VEC > 1 && INNER_IN
#if VEC == 16
#define PLACES (VM)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#elif VEC == 8
#define PLACES (VM)(0, 1, 2, 3, 4, 5, 6, 7)
#else
#define PLACES (VM)(0, 1, 2, 3)
#endif

static VT turned(VT v, int by) {
#if VEC == 16
  if (by & 8) v = v.s89abcdef01234567;
  if (by & 4) v = v.s456789abcdef0123;
  if (by & 2) v = v.s23456789abcdef01;
  if (by & 1) v = v.s123456789abcdef0;
#elif VEC == 8
  if (by & 4) v = v.s45670123;
  if (by & 2) v = v.s23456701;
  if (by & 1) v = v.s12345670;
#else
  if (by & 2) v = v.s2301;
  if (by & 1) v = v.s1230;
#endif
  return v;
}

static VT fetch_last(__global const RAW(D_IN) * end, int n, VT s) {
  const VT v = MAP(turned(LOAD(D_IN, __global, end - VEC), VEC - n));
  return PLACES < (VM)n ? v : (VT)(INIT);
}
#endif

/* Lanes from `skip` on, before n. */
static void put(__global RAW(D_OUT) * at, long stride, int n, int skip, VT v) {
  if (INNER_OUT && n == VEC && skip == 0) {
    STORE(D_OUT, __global, at, v);
    return;
  }
  RAW(D_OUT) lanes[VEC];
  STORE(D_OUT, __private, lanes, v);
  OVER_LANES
  for (int j = skip; j < n; j++) at[j * stride] = lanes[j];
}

static VT finished(VT v, VT x, VT s) { return FINISH(v); }

static void segment_totals(__global const RAW(D_IN) * row, space shape, long i, long end, int n, const VT s[WIDTH],
                           VT total[WIDTH]) {
#pragma unroll
  for (int w = 0; w < WIDTH; w++) total[w] = (VT)(INIT);
#ifdef ROWS
  long stride = shape.reduced_in[0];
#if INNER_IN
  /* Four totals side by side: with one, each combination waits for the one before. */
  VT totals[3] = {*total, *total, *total};
  for (; i + 4 * VEC <= end; i += 4 * VEC) {
    VT first = fetch(row + i, 1, VEC, *s), second = fetch(row + i + VEC, 1, VEC, *s);
    VT third = fetch(row + i + 2 * VEC, 1, VEC, *s), fourth = fetch(row + i + 3 * VEC, 1, VEC, *s);
    *total = COMBINE(*total, first);
    totals[0] = COMBINE(totals[0], second);
    totals[1] = COMBINE(totals[1], third);
    totals[2] = COMBINE(totals[2], fourth);
  }
  *total = COMBINE(*total, totals[0]);
  totals[1] = COMBINE(totals[1], totals[2]);
  *total = COMBINE(*total, totals[1]);
#endif
  for (; i + VEC <= end; i += VEC) {
    VT v = fetch(row + i * stride, stride, VEC, *s);
    *total = COMBINE(*total, v);
  }
#if VEC > 1 && INNER_IN
  if (i < end && end >= VEC) {
    VT v = fetch_last(row + end, (int)(end - i), *s);
    *total = COMBINE(*total, v);
    return;
  }
#endif
  if (i < end) {
    VT v = fetch(row + i * stride, stride, (int)(end - i), *s);
    *total = COMBINE(*total, v);
  }
#else
  for (; i < end; i++) {
#pragma unroll
    for (int w = 0; w < WIDTH; w++) {
      VT v = fetch(row + i * shape.reduced_in[0] + w * VEC, shape.kept_in[0], n, s[w]);
      total[w] = COMBINE(total[w], v);
    }
  }
#endif
}

/* 16 subtotals of one level make one of the next; the last takes as many as come. */
#define LEVELS 5
static void split_totals(__global const RAW(D_IN) * in, space shape, long split, int n, const VT s[WIDTH],
                         VT result[WIDTH]) {
  VT totals[LEVELS][WIDTH];
  for (int l = 0; l < LEVELS; l++) {
    for (int w = 0; w < WIDTH; w++) totals[l][w] = (VT)(INIT);
  }
  long first = split * shape.segments_per_split;
  long last = min(first + shape.segments_per_split, shape.segments);
  for (long at = first; at < last; at++) {
    long outer = at / shape.segments_per_row, start = 0;
    long i = (at - outer * shape.segments_per_row) * shape.segment;
    for (int d = 1; d < REDUCED; d++) {
      start += outer % shape.reduced_size[d] * shape.reduced_in[d];
      outer /= shape.reduced_size[d];
    }
    VT v[WIDTH];
    segment_totals(in + start, shape, i, min(i + shape.segment, shape.reduced_size[0]), n, s, v);
    for (int w = 0; w < WIDTH; w++) totals[0][w] = COMBINE(totals[0][w], v[w]);
    for (int l = 1; l < LEVELS; l++) {
      if (((at - first + 1) & ((1L << 4 * l) - 1)) == 0) {
        for (int w = 0; w < WIDTH; w++) {
          totals[l][w] = COMBINE(totals[l][w], totals[l - 1][w]);
          totals[l - 1][w] = (VT)(INIT);
        }
      }
    }
  }
  for (int w = 0; w < WIDTH; w++) {
    result[w] = totals[0][w];
    for (int l = 1; l < LEVELS; l++) result[w] = COMBINE(totals[l][w], result[w]);
  }
}

/* Rows of fewer than TOGETHER elements, VEC of them at a time: their lanes are brought together as `across` does it, those
 * of all rows side by side, and so are their results. */
#if defined(ROWS) && VEC > 1 && INNER_IN && !defined(SMALL)
#define TOGETHER (4 * VEC) /* from there on a row has several totals */
#define COMBINED(i, first, second)       \
  {                                      \
    const VT a = v[2 * i], b = v[2 * i + 1]; \
    const VT x = first, y = second;      \
    v[i] = COMBINE(x, y);                \
  }

static VT across_rows(VT v[VEC]) {
#pragma unroll
  for (int i = 0; i < VEC / 2; i++) COMBINED(i, (VT)(a.lo, b.lo), (VT)(a.hi, b.hi))
#if VEC == 16
#pragma unroll
  for (int i = 0; i < VEC / 4; i++)
    COMBINED(i, (VT)(a.s0123, a.s89ab, b.s0123, b.s89ab), (VT)(a.s4567, a.scdef, b.s4567, b.scdef))
#pragma unroll
  for (int i = 0; i < VEC / 8; i++)
    COMBINED(i, (VT)(a.s0145, a.s89cd, b.s0145, b.s89cd), (VT)(a.s2367, a.sabef, b.s2367, b.sabef))
#elif VEC == 8
#pragma unroll
  for (int i = 0; i < VEC / 4; i++) COMBINED(i, (VT)(a.s0145, b.s0145), (VT)(a.s2367, b.s2367))
#endif
  COMBINED(0, (VT)(a.even, b.even), (VT)(a.odd, b.odd))
  return *v;
}

static INLINED VT row_total(__global const RAW(D_IN) * row, long size, VT s) {
  VT total = (VT)(INIT);
  long i = 0;
  for (; i + VEC <= size; i += VEC) {
    const VT v = fetch(row + i, 1, VEC, s);
    total = COMBINE(total, v);
  }
  if (i < size) {
    const VT v = size < VEC ? fetch(row, 1, (int)size, s) : fetch_last(row + size, (int)(size - i), s);
    total = COMBINE(total, v);
  }
  return total;
}

static INLINED void reduce_rows(__global RAW(D_OUT) * to, __global const RAW(D_IN) * from, space shape, VT x,
                        __global const CT *shifts) {
  VT v[VEC], all_shifts = (VT)0;
  for (int k = 0; k < VEC; k++) {
#ifdef SHIFTED
    const VT s = (VT)shifts[k];
#else
    const VT s = (VT)0;
#endif
    v[k] = row_total(from + k * shape.kept_in[0], shape.reduced_size[0], s);
  }
#ifdef SHIFTED
  all_shifts = VLOAD(shifts);
#endif
  put(to, shape.kept_out[0], VEC, 0, finished(across_rows(v), x, all_shifts));
}
#endif

KERNEL reduce(PLACE(out), CONST_PLACE(in), CONST_PLACE(shift), CT number, space shape) {
  VT x = (VT)number;
  long first = (long)get_global_id(0) * shape.per_item;
  long last = min(first + shape.per_item, shape.units);
  for (long unit = first, step; unit < last; unit += step) {
    step = 1;
    /* Mostly neither is divided by less than it is: a division takes as long as a row of few elements. */
    const long split = unit < shape.units_per_split ? 0 : unit / shape.units_per_split;
    const long in_split = unit - split * shape.units_per_split;
    long outer = in_split < shape.units_per_row ? 0 : in_split / shape.units_per_row;
    const long unit_row = outer;
    long j = (in_split - outer * shape.units_per_row) * shape.outputs_per_unit;
    int n = (int)min(shape.outputs_per_unit, shape.kept_size[0] - j);
    int skip = 0; /* a wide unit that would reach beyond its row begins earlier, with what the one before writes */
    if (WIDTH > 1 && n < WIDTH * VEC) {
      skip = WIDTH * VEC - n;
      j -= skip;
    }
    long at_out = split * shape.split_stride + j * shape.kept_out[0], at_in = j * shape.kept_in[0];
    for (int d = 1; d < KEPT; d++) {
      long place = outer % shape.kept_size[d];
      outer /= shape.kept_size[d];
      at_out += place * shape.kept_out[d];
      at_in += place * shape.kept_in[d];
    }
    __global const CT *shifts = (__global const CT *)(shift + offset_shift) + unit_row * shape.kept_size[0] + j;
#ifdef TOGETHER
    if (shape.segments == 1 && shape.reduced_size[0] < TOGETHER && unit + VEC <= last && j + VEC <= shape.kept_size[0]) {
      reduce_rows(POINTER(D_OUT, out) + at_out, CONST_POINTER(D_IN, in) + at_in, shape, x, shifts);
      step = VEC;
      continue;
    }
#endif
    VT s[WIDTH], totals[WIDTH];
    for (int w = 0; w < WIDTH; w++) s[w] = (VT)0;
#ifdef SHIFTED
#ifdef ROWS
    *s = (VT)*shifts;
#else
    CT lanes[VEC];
    for (int w = 0; w < WIDTH; w++) {
      for (int k = 0; k < VEC; k++) lanes[k] = shifts[WIDTH > 1 || k < n ? w * VEC + k : 0];
      s[w] = VLOAD(lanes);
    }
#endif
#endif
    if (shape.segments == 1) /* which is all that would be added up */
      segment_totals(CONST_POINTER(D_IN, in) + at_in, shape, 0, shape.reduced_size[0], WIDTH > 1 ? VEC : n, s, totals);
    else
      split_totals(CONST_POINTER(D_IN, in) + at_in, shape, split, WIDTH > 1 ? VEC : n, s, totals);
#ifdef ROWS
    *totals = across(*totals);
#endif
    for (int w = 0; w < WIDTH; w++) {
      put(POINTER(D_OUT, out) + at_out + w * VEC * shape.kept_out[0], shape.kept_out[0], WIDTH > 1 ? VEC : n,
          max(skip - w * VEC, 0), finished(totals[w], x, s[w]));
    }
  }
}
