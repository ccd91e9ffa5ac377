/* Values looked for in a sequence. The head defines D, of both, D_OUT, and SORTER where the sequence is in order only by
 * it. A row of `per_row` values belongs to a row of `size` elements; per_row 0: all to the only one. */
typedef struct {
  long values, per_row, size, chunk, flag;
} search_space;

/* How many come before a value, or with `flag` before and with it. */
KERNEL search(PLACE(out), CONST_PLACE(in), CONST_PLACE(sequence), CONST_PLACE(sorter), search_space space) {
  long i = (long)get_global_id(0) * space.chunk, end = min(i + space.chunk, space.values);
  for (; i < end; i++) {
    long row = space.per_row ? i / space.per_row * space.size : 0, low = 0, high = space.size;
    CT value = LOAD(D, __global, CONST_POINTER(D, in) + i);
    while (low < high) {
      long middle = low + (high - low) / 2, at = middle;
#ifdef SORTER
      at = ((__global const long *)(sorter + offset_sorter))[row + middle];
      at = clamp(at, 0L, space.size - 1);
#endif
      CT there = LOAD(D, __global, CONST_POINTER(D, sequence) + row + at);
      if (space.flag ? there > value : there >= value) high = middle;
      else low = middle + 1;
    }
    (POINTER(D_OUT, out))[i] = (RAW(D_OUT))low;
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
