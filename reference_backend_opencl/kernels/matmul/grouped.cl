/* Products of groups, after direct.cl: a piece is a row of the result, and in it STRIP columns. */
enum { BY_ROWS, BY_COLUMNS, BY_DEPTH, STACKS };
enum { KIND, GROUPS, ROWS, COLUMNS, DEPTH };
#define STRIP 16

/* Where group g ends: none before the one in front of it, none behind the size. */
static long end_of(__global const int *offsets, long g, long size) {
  long end = 0;
  for (long i = 0; i <= g; i++) end = clamp((long)offsets[i], end, size);
  return end;
}

/* The group that has `place`, or `groups` where none does. */
static long group_of(__global const int *offsets, long groups, long place, long size) {
  long g = 0, end = 0;
  for (; g < groups; g++) {
    end = clamp((long)offsets[g], end, size);
    if (place < end) break;
  }
  return g;
}

static void check_offsets(__global const int *offsets, long groups, long size, __global long *faults) {
  long end = 0;
  for (long g = 0; g < groups; g++) {
    if (offsets[g] < end || offsets[g] > size) REPORT(faults, OP_ID, 0, FAULT_SEGMENTS);
    end = offsets[g];
  }
}

KERNEL multiply_groups(PLACE(out), CONST_PLACE(first), CONST_PLACE(second), CONST_PLACE(offs), __global long *faults,
                       numbers n) {
  const long kind = n.of[KIND], groups = n.of[GROUPS], rows = n.of[ROWS], columns = n.of[COLUMNS], depth = n.of[DEPTH];
  const long strips = (columns + STRIP - 1) / STRIP, size = kind == BY_ROWS ? rows : kind == BY_COLUMNS ? columns : depth;
  __global const int *offsets = (__global const int *)(offs + offset_offs);
  if (get_global_id(0) == 0 && kind != STACKS) check_offsets(offsets, groups, size, faults);
  EACH_UNIT(unit) {
    const long row = unit / strips, column = unit % strips * STRIP, within = row % rows;
    const int count = (int)min((long)STRIP, columns - column);
    long g = row / rows, begin = 0, end = depth;
    if (kind == BY_ROWS) g = group_of(offsets, groups, row, rows);
    if (kind == BY_DEPTH) begin = g ? end_of(offsets, g - 1, depth) : 0, end = end_of(offsets, g, depth);
    CT sums[STRIP];
    for (int j = 0; j < STRIP; j++) sums[j] = 0;
    if (kind == BY_COLUMNS) {
      for (int j = 0; j < count; j++) {
        g = group_of(offsets, groups, column + j, columns);
        __global const RAW(D) *a = CONST_POINTER(D, first) + (g * rows + within) * depth;
        __global const RAW(D) *b = CONST_POINTER(D, second) + column + j;
        for (long k = 0; g < groups && k < depth; k++)
          sums[j] = fma(LOAD(D, __global, a + k), LOAD(D, __global, b + k * columns), sums[j]);
      }
    } else if (g < groups) {
      __global const RAW(D) *a = CONST_POINTER(D, first) + (kind == STACKS ? row : within) * depth;
      __global const RAW(D) *b = CONST_POINTER(D, second) + (kind == BY_DEPTH ? 0 : g * depth * columns) + column;
      for (long k = begin; k < end; k++) {
        const CT x = LOAD(D, __global, a + k);
        if (count == STRIP)
          for (int j = 0; j < STRIP; j++) sums[j] = fma(x, LOAD(D, __global, b + k * columns + j), sums[j]);
        else
          for (int j = 0; j < count; j++) sums[j] = fma(x, LOAD(D, __global, b + k * columns + j), sums[j]);
      }
    }
    for (int j = 0; j < count; j++) PUT(ELEMENTS(out) + row * columns + column + j, sums[j]);
  }
}
