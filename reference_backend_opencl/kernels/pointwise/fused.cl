/* Numbers, and elements that are read and written: what fused_kernel.c writes calls these. The head defines NUMBERS. */
typedef struct {
  long at[NUMBERS];
} numbers;

#define NUMBER_int(v) ((int)(v))
#define NUMBER_uint(v) ((uint)(v))
#define NUMBER_long(v) (v)
#define NUMBER_ulong(v) ((ulong)(v))
#define NUMBER_float(v) as_float((int)(v))
#define NUMBER_double(v) as_double(v)

/* Where row `at` begins in each operand. */
#define BEGIN_ROW(at)                                                                           \
  long outer = at, start[OPERANDS];                                                             \
  for (int k = 0; k < OPERANDS; k++) start[k] = 0;                                              \
  for (int d = 0; d < RANK; d++) {                                                              \
    long place = outer;                                                                         \
    if (d + 1 < RANK) {                                                                         \
      place = outer % shape.size[d];                                                            \
      outer /= shape.size[d];                                                                   \
    }                                                                                           \
    for (int k = 0; k < OPERANDS; k++) start[k] += place * shape.stride[k].along[d];            \
  }

#if VEC == 1
#define LANES_AT(p) (*(p))
#define LANES_TO(v, p) (*(p) = (v))
#else
#define LANES_AT(p) CAT(vload, VEC)(0, p)
#define LANES_TO(v, p) CAT(vstore, VEC)(v, 0, p)
#endif

/* A vector in memory. A GPU loads one of a type that may lie anywhere in parts. */
#if LOCAL > 1 && VEC > 1
#define VECTOR(dtype, p) (*(__global VEC_OF(RAW(dtype)) *)(p))
#define IS_ALIGNED(dtype, p) ((ulong)(p) % sizeof(VEC_OF(RAW(dtype))) == 0)
#define ROW_LANES(value, dtype, p) \
  value = IS_ALIGNED(dtype, p) ? *(__global const VEC_OF(RAW(dtype)) *)(p) : LANES_AT(p);
#define ROW_LANES_TO(value, dtype, p) \
  if (IS_ALIGNED(dtype, p)) {         \
    VECTOR(dtype, p) = value;         \
  } else {                            \
    LANES_TO(value, p);               \
  }
#else
#define ROW_LANES(value, dtype, p) value = LANES_AT(p);
#define ROW_LANES_TO(value, dtype, p) LANES_TO(value, p);
#endif

/* n elements of a row from place i on, as they lie in memory; lanes beyond repeat the first. */
#define FETCH(value, dtype, row, inner, step, i)                                                   \
  if (inner == 1 && n == VEC) {                                                                 \
    ROW_LANES(value, dtype, row + i)                                                            \
  } else {                                                                                      \
    RAW(dtype) lanes[VEC];                                                                      \
    for (int lane = 0; lane < VEC; lane++) lanes[lane] = row[(lane < n ? i + lane : i) * (step)]; \
    value = LANES_AT(lanes);                                                                    \
  }
/* The same where `step` may be 0: a bias of rows or of channels. */
#define FETCH_SPREAD(value, dtype, row, inner, step, i)                                            \
  if (inner == 0) {                                                                             \
    value = (VEC_OF(RAW(dtype)))(*row);                                                         \
  } else                                                                                        \
    FETCH(value, dtype, row, inner, step, i)
#define PUT(value, dtype, row, inner, step, i)                                                     \
  if (inner == 1 && n == VEC) {                                                                 \
    ROW_LANES_TO(value, dtype, row + i)                                                         \
  } else {                                                                                      \
    RAW(dtype) lanes[VEC];                                                                      \
    LANES_TO(value, lanes);                                                                     \
    for (int lane = 0; lane < n; lane++) row[(i + lane) * (step)] = lanes[lane];                \
  }
