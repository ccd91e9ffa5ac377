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

KERNEL reduce(PLACE(out), CONST_PLACE(in), CONST_PLACE(shift), CT number, space shape) {
  VT x = (VT)number;
  long first = (long)get_global_id(0) * shape.per_item;
  long last = min(first + shape.per_item, shape.units);
  for (long unit = first; unit < last; unit++) {
    long split = unit / shape.units_per_split;
    long outer = unit % shape.units_per_split / shape.units_per_row;
    long unit_row = outer;
    long j = unit % shape.units_per_row * shape.outputs_per_unit;
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
    VT s[WIDTH], totals[WIDTH];
    for (int w = 0; w < WIDTH; w++) s[w] = (VT)0;
#ifdef SHIFTED
    __global const CT *shifts = (__global const CT *)(shift + offset_shift) + unit_row * shape.kept_size[0] + j;
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
