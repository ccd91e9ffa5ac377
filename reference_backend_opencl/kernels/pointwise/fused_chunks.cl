/* The index space of a fused kernel without reductions, and its cut: those of pointwise.cl. The head defines RANK and
 * OPERANDS. */
typedef struct {
  long size[RANK];
  STRIDES(RANK) stride[OPERANDS];
  long chunk, chunks_per_row, chunks, per_item;
} space;

/* Where the rows of chunk `at` begin. */
#define BEGIN_CHUNK(at)                                                                         \
  long outer = at / shape.chunks_per_row;                                                       \
  long i = (at - outer * shape.chunks_per_row) * shape.chunk;                                   \
  long end = min(i + shape.chunk, shape.size[0]);                                               \
  long start[OPERANDS];                                                                         \
  for (int k = 0; k < OPERANDS; k++) start[k] = 0;                                              \
  for (int d = 1; d < RANK; d++) {                                                              \
    long place = outer % shape.size[d];                                                         \
    outer /= shape.size[d];                                                                     \
    for (int k = 0; k < OPERANDS; k++) start[k] += place * shape.stride[k].along[d];            \
  }
