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

#if VEC == 1
#define LANES_AT(p) (*(p))
#define LANES_TO(v, p) (*(p) = (v))
#else
#define LANES_AT(p) CAT(vload, VEC)(0, p)
#define LANES_TO(v, p) CAT(vstore, VEC)(v, 0, p)
#endif

/* n elements of a row from place i on, as they lie in memory; lanes beyond repeat the first. */
#define FETCH(value, dtype, row, inner, step, i)                                                   \
  if (inner == 1 && n == VEC) {                                                                 \
    value = LANES_AT(row + i);                                                                  \
  } else {                                                                                      \
    RAW(dtype) lanes[VEC];                                                                      \
    for (int lane = 0; lane < VEC; lane++) lanes[lane] = row[(lane < n ? i + lane : i) * (step)]; \
    value = LANES_AT(lanes);                                                                    \
  }
#define PUT(value, dtype, row, inner, step, i)                                                     \
  if (inner == 1 && n == VEC) {                                                                 \
    LANES_TO(value, row + i);                                                                   \
  } else {                                                                                      \
    RAW(dtype) lanes[VEC];                                                                      \
    LANES_TO(value, lanes);                                                                     \
    for (int lane = 0; lane < n; lane++) row[(i + lane) * (step)] = lanes[lane];                \
  }
