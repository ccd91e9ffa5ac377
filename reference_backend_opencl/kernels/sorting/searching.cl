/* Values looked for in a sequence. The head defines D, of both, D_OUT, and SORTER where the sequence is in order only by
 * it. A row of `per_row` values belongs to a row of `size` elements; per_row 0: all to the only one. */
typedef struct {
  long values, per_row, size, chunk, flag;
} search_space;

/* So many values are looked for at once: a processor guesses no comparison's outcome, but need not wait for one before it
 * begins that of another value. */
#define LANES (LOCAL == 1 ? 8 : 1)

/* How many come before a value, or with `flag` before and with it: `low` at least, and `high` at most. */
KERNEL search(PLACE(out), CONST_PLACE(in), CONST_PLACE(sequence), CONST_PLACE(sorter), search_space space) {
  const long first = (long)get_global_id(0) * space.chunk, end = min(first + space.chunk, space.values);
  for (long i = first; i < end; i += LANES) {
    CT value[LANES];
    long row[LANES], low[LANES], high[LANES];
#pragma unroll
    for (int j = 0; j < LANES; j++) {
      const long at = min(i + j, end - 1);
      value[j] = LOAD(D, __global, CONST_POINTER(D, in) + at);
      row[j] = space.per_row ? at / space.per_row * space.size : 0;
      low[j] = 0;
      high[j] = space.size;
    }
    for (int open = space.size > 0; open;) {
      open = 0;
#pragma unroll
      for (int j = 0; j < LANES; j++) {
        const long middle = low[j] + (high[j] - low[j]) / 2;
        long at = min(middle, space.size - 1); /* which is it, where the value's place is not known yet */
#ifdef SORTER
        at = ((__global const long *)(sorter + offset_sorter))[row[j] + at];
        at = clamp(at, 0L, space.size - 1);
#endif
        const CT there = LOAD(D, __global, CONST_POINTER(D, sequence) + row[j] + at);
        const int known = low[j] >= high[j], before = !(space.flag ? there > value[j] : there >= value[j]);
        low[j] = !known & before ? middle + 1 : low[j];
        high[j] = !known & !before ? middle : high[j];
        open |= low[j] < high[j];
      }
    }
#pragma unroll
    for (int j = 0; j < LANES; j++) {
      if (i + j < end) (POINTER(D_OUT, out))[i + j] = (RAW(D_OUT))low[j];
    }
  }
}

/* Whether a value is among them, or with `flag` is not. */
KERNEL contains(PLACE(out), CONST_PLACE(in), CONST_PLACE(sequence), CONST_PLACE(unused), search_space space) {
  __global const RAW(D) *list = CONST_POINTER(D, sequence);
  long i = (long)get_global_id(0) * space.chunk, end = min(i + space.chunk, space.values);
  for (; i < end; i++) {
    CT value = LOAD(D, __global, CONST_POINTER(D, in) + i);
    int found = 0;
    for (long k = 0; k < space.size && !found; k++) found = LOAD(D, __global, list + k) == value;
    out[offset_out + i] = found != (int)space.flag;
  }
}

/* The list in order, each work-item putting one of it where it belongs: a NaN behind all. */
KERNEL order_list(PLACE(to), CONST_PLACE(sequence), search_space space) {
  __global const RAW(D) *list = CONST_POINTER(D, sequence);
  long i = (long)get_global_id(0), place = 0;
  if (i >= space.size) return;
  CT own = LOAD(D, __global, list + i);
  for (long k = 0; k < space.size; k++) {
    CT other = LOAD(D, __global, list + k);
    int level = own == own ? other == own : other != other;
    place += (own == own ? other < own : other == other) | (level & (k < i));
  }
  ((__global CT *)(to + offset_to))[place] = own;
}

/* The same as contains, for such a list: by halves, of LANES values at once, which need not wait for each other. */
KERNEL contains_in_order(PLACE(out), CONST_PLACE(in), CONST_PLACE(sequence), CONST_PLACE(unused), search_space space) {
  __global const CT *list = (__global const CT *)(sequence + offset_sequence);
  __global const RAW(D) *from = CONST_POINTER(D, in);
  long first = (long)get_global_id(0) * space.chunk, end = min(first + space.chunk, space.values);
  for (long i = first; i < end; i += LANES) {
    CT value[LANES];
    int less[LANES]; /* so many of the list are for sure, but for its last */
#pragma unroll
    for (int j = 0; j < LANES; j++) {
      value[j] = LOAD(D, __global, from + min(i + j, end - 1));
      less[j] = 0;
    }
    for (int left = (int)space.size; left > 1;) {
      int half_way = left / 2;
#pragma unroll
      for (int j = 0; j < LANES; j++) less[j] += list[less[j] + half_way - 1] < value[j] ? half_way : 0;
      left -= half_way;
    }
#pragma unroll
    for (int j = 0; j < LANES; j++) {
      int found = list[less[j]] == value[j];
      if (i + j < end) out[offset_out + i + j] = found != (int)space.flag;
    }
  }
}
