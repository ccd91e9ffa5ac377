/* A fused kernel: what fused.c generates calls these. The index space and its cut are those of pointwise.cl. The head
 * defines RANK, OPERANDS and NUMBERS. */
typedef struct {
  long size[RANK];
  STRIDES(RANK) stride[OPERANDS];
  long chunk, chunks_per_row, chunks, per_item;
} space;

typedef struct {
  long at[NUMBERS];
} numbers;

#define NUMBER_int(v) ((int)(v))
#define NUMBER_uint(v) ((uint)(v))
#define NUMBER_long(v) (v)
#define NUMBER_ulong(v) ((ulong)(v))
#define NUMBER_float(v) as_float((int)(v))
#define NUMBER_double(v) as_double(v)

#if VEC == 1
#define LANES_AT(p) (*(p))
#define LANES_TO(v, p) (*(p) = (v))
#else
#define LANES_AT(p) CAT(vload, VEC)(0, p)
#define LANES_TO(v, p) CAT(vstore, VEC)(v, 0, p)
#endif

/* n elements of a row from place i on, as they lie in memory; lanes beyond repeat the first. */
#define FETCH(value, dtype, row, inner, operand, i)                                                \
  if (inner == 1 && n == VEC) {                                                                 \
    value = LANES_AT(row + i);                                                                  \
  } else {                                                                                      \
    RAW(dtype) lanes[VEC];                                                                      \
    long step = shape.stride[operand].along[0];                                                 \
    for (int j = 0; j < VEC; j++) lanes[j] = row[(j < n ? i + j : i) * step];                   \
    value = LANES_AT(lanes);                                                                    \
  }
#define PUT(value, dtype, row, inner, operand, i)                                                  \
  if (inner == 1 && n == VEC) {                                                                 \
    LANES_TO(value, row + i);                                                                   \
  } else {                                                                                      \
    RAW(dtype) lanes[VEC];                                                                      \
    long step = shape.stride[operand].along[0];                                                 \
    LANES_TO(value, lanes);                                                                     \
    for (int j = 0; j < n; j++) row[(i + j) * step] = lanes[j];                                 \
  }

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
