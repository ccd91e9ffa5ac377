/* The index space of a fused kernel with reductions: lines of `length` elements, one for each place of `size`. Lines are
 * rows, each of elements side by side, or columns, of which a work-item takes some that lie side by side. Sums are made
 * as reduction.cl makes them: in segments, whose subtotals are added in a tree of 16 each. The head defines RANK,
 * OPERANDS and SLOTS. */
typedef struct {
  long size[RANK];
  STRIDES(RANK) stride[OPERANDS];
  long inner[OPERANDS]; /* from element to element of a row, or from column to column */
  long length, lines, per_item;
  long scratch;     /* bytes of a work-item's own memory, */
  long slot[SLOTS]; /* and where in it each value lies */
} space;

#define SLOT_AT(dtype, number) \
  ((__global RAW(dtype) *)(scratch + offset_scratch + get_global_id(0) * shape.scratch + shape.slot[number]))

/* 16 subtotals of one level make one of the next; the last takes as many as come. `total` is the lowest one. To join
 * nothing and a subtotal changes nothing, so that levels above are not looked at before there are 16. */
#define LEVELS 4
#define CLEAR(levels, nothing) for (int l = 0; l < LEVELS; l++) levels[l] = nothing();
#define RAISE(levels, total, nothing, join, segment)                                            \
  if (((segment + 1) & 15) == 0) {                                                              \
    levels[0] = join(levels[0], total);                                                         \
    total = nothing();                                                                          \
    for (int l = 1; l < LEVELS; l++) {                                                          \
      if (((segment + 1) & ((1L << 4 * (l + 1)) - 1)) == 0) {                                   \
        levels[l] = join(levels[l], levels[l - 1]);                                             \
        levels[l - 1] = nothing();                                                              \
      }                                                                                         \
    }                                                                                           \
  }
#define BRING_TOGETHER(levels, total, join, segments)                                           \
  if (segments > 15) {                                                                          \
    for (int l = 0; l < LEVELS; l++) total = join(levels[l], total);                            \
  }
