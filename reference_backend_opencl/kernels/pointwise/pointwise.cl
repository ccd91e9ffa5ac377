/* One kernel for every op whose output element depends on the input elements at its place. The head defines
 *   INPUTS, SCALARS   how many (0 to 3 each); operands are a, b, c, numbers x, y, z
 *   D_OUT, D_0 ...    dtypes                  INNER_OUT, INNER_0 ...  whether the innermost `stride` is 1: 0, 1, or asked for
 *   VALUE_0 ...       operand is a number     MASK                    which operand is a mask: 0 or 1
 *   RANK              after joining dimensions
 *   EXPRESSION        the op; MODE, HAS_X, HAS_Y: arguments it asks about
 *   LONG              the expression is compiled once, since that takes longer than the tests of a loop for steps and rests
 *   SMALL             so is a small call's, whose program serves all ranks up to RANK and all strides
 *   SECOND            what a second output gets, of D_SECOND and the same shape; its innermost stride is INNER_SECOND
 *   CASES             in place of EXPRESSION, in a program that many ops share: the ops, each a case of a switch; the call
 *                     says which one, which of the operands are in memory, and what the others are
 * The innermost dimension is cut into chunks; a work-item takes `per_item` chunks, each in steps of VEC and one rest. */

/* A vector of a type that may lie anywhere is moved in parts. On a GPU one that lies at a multiple of its size, as all of
 * a row do where one does, is moved as one. */
#if defined(IS_CPU) || defined(SMALL) || VEC == 1
#define IS_WHOLE(p) 0
#else
#define IS_WHOLE(p) ((ulong)(p) % (VEC * sizeof(*(p))) == 0)
#endif

/* Whether one number stands along the row, which is then read once. A small call asks no more than it must. */
#ifdef SMALL
#define IS_REPEATED(stride) 0
#else
#define IS_REPEATED(stride) ((stride) == 0)
#endif

/* n elements of a row from place i on; lanes beyond them repeat the first, which is as safe as the real ones. */
#define DEFINE_FETCH(k)                                                                       \
  static TYPE_##k fetch_##k(__global const RAW(D_##k) * row, long stride, long i, int n) {    \
    if (INNER_##k && n == VEC && IS_WHOLE(row + i)) {                                         \
      const VEC_OF(RAW(D_##k)) whole = *(__global const VEC_OF(RAW(D_##k)) *)(row + i);       \
      return TAKE_##k(__private, (__private const RAW(D_##k) *)&whole);                       \
    }                                                                                         \
    if (INNER_##k && n == VEC) return TAKE_##k(__global, row + i);                            \
    if (!INNER_##k && IS_REPEATED(stride)) {                                                  \
      const VEC_OF(RAW(D_##k)) same = *row;                                                   \
      return TAKE_##k(__private, (__private const RAW(D_##k) *)&same);                        \
    }                                                                                         \
    RAW(D_##k) lanes[VEC];                                                                    \
    OVER_LANES                                                                                \
    for (int j = 0; j < VEC; j++) lanes[j] = row[(j < n ? i + j : i) * stride];               \
    return TAKE_##k(__private, lanes);                                                        \
  }

#define DEFINE_PUT(name, dtype, inner, result, store)                                        \
  static void name(__global RAW(dtype) * row, long stride, long i, int n, result v) {        \
    if (inner && n == VEC && IS_WHOLE(row + i)) {                                            \
      VEC_OF(RAW(dtype)) whole;                                                              \
      store(__private, (__private RAW(dtype) *)&whole, v);                                   \
      *(__global VEC_OF(RAW(dtype)) *)(row + i) = whole;                                     \
      return;                                                                                \
    }                                                                                        \
    if (inner && n == VEC) {                                                                 \
      store(__global, row + i, v);                                                           \
      return;                                                                                \
    }                                                                                        \
    RAW(dtype) lanes[VEC];                                                                   \
    store(__private, lanes, v);                                                              \
    OVER_LANES                                                                               \
    for (int j = 0; j < n; j++) row[(i + j) * stride] = lanes[j];                            \
  }
DEFINE_PUT(put, D_OUT, INNER_OUT, RESULT, STORE_RESULT)

#ifdef SECOND
#define STORE_SECOND(space, p, v) STORE(D_SECOND, space, p, v)
DEFINE_PUT(put_second, D_SECOND, INNER_SECOND, VT, STORE_SECOND)
#define OPERANDS (INPUTS + 2)
#define PARAMETER_SECOND , __global uchar *second
#define ROW_SECOND __global RAW(D_SECOND) *row_second = (__global RAW(D_SECOND) *)(second + given.at[1]) + start[INPUTS + 1];
#define PUT_SECOND(i, n) put_second(row_second, shape.stride[INPUTS + 1].along[0], i, n, (SECOND));
#else
#define OPERANDS (INPUTS + 1)
#define PARAMETER_SECOND
#define ROW_SECOND
#define PUT_SECOND(i, n)
#endif

#define IN_MEMORY(k) , __global const uchar *in_##k
#define ROW_IN_MEMORY(k) \
  __global const RAW(D_##k) *row_##k = (__global const RAW(D_##k) *)(in_##k + given.at[k + 2]) + start[k + 1];

#ifdef CASES
DEFINE_FETCH(0)
DEFINE_FETCH(1)
DEFINE_FETCH(2)
#define PARAMETER_0 IN_MEMORY(0)
#define PARAMETER_1 IN_MEMORY(1)
#define PARAMETER_2 IN_MEMORY(2)
#define ROW_0 ROW_IN_MEMORY(0)
#define ROW_1 ROW_IN_MEMORY(1)
#define ROW_2 ROW_IN_MEMORY(2)
#define GET_OR_VALUE(k, i, n) \
  (shape.in_memory >> k & 1 ? fetch_##k(row_##k, shape.stride[k + 1].along[0], i, n) : (VT)given.value[k])
#define GET_0(i, n) GET_OR_VALUE(0, i, n)
#define GET_1(i, n) GET_OR_VALUE(1, i, n)
#define GET_2(i, n) GET_OR_VALUE(2, i, n)
#define SPACE_OF_CASES long op, in_memory, given, mode;
#define MODE mode
#define CLAMP_NUMBERS(a) clamp_given(a, x, y, given)
#define CLAMP_TENSORS(a) clamp_given(a, b, c, given >> 2)
static VT clamp_given(VT a, VT least, VT most, long given) {
  VT result = given & 1 ? MAXIMUM(a, least) : a;
  return given & 2 ? MINIMUM(result, most) : result;
}
static RESULT picked(VT a, VT b, VT c, CT number_x, CT number_y, CT number_z, long op, long given, long mode) {
  VT x = (VT)number_x, y = (VT)number_y, z = (VT)number_z;
  switch (op) { CASES }
  return (RESULT)0;
}
#define EXPRESSION picked(a, b, c, number_x, number_y, number_z, shape.op, shape.given, shape.mode)
#else
#define SPACE_OF_CASES
#endif

#ifdef CASES
#elif defined(VALUE_0)
#define PARAMETER_0
#define ROW_0
#define GET_0(i, n) (VT) given.value[0]
#elif INPUTS > 0
DEFINE_FETCH(0)
#define PARAMETER_0 IN_MEMORY(0)
#define ROW_0 ROW_IN_MEMORY(0)
#define GET_0(i, n) fetch_0(row_0, shape.stride[1].along[0], i, n)
#else
#define PARAMETER_0
#define ROW_0
#endif

#ifdef CASES
#elif defined(VALUE_1)
#define PARAMETER_1
#define ROW_1
#define GET_1(i, n) (VT) given.value[1]
#elif INPUTS > 1
DEFINE_FETCH(1)
#define PARAMETER_1 IN_MEMORY(1)
#define ROW_1 ROW_IN_MEMORY(1)
#define GET_1(i, n) fetch_1(row_1, shape.stride[2].along[0], i, n)
#else
#define PARAMETER_1
#define ROW_1
#endif

#ifdef CASES
#elif defined(VALUE_2)
#define PARAMETER_2
#define ROW_2
#define GET_2(i, n) (VT) given.value[2]
#elif INPUTS > 2
DEFINE_FETCH(2)
#define PARAMETER_2 IN_MEMORY(2)
#define ROW_2 ROW_IN_MEMORY(2)
#define GET_2(i, n) fetch_2(row_2, shape.stride[3].along[0], i, n)
#else
#define PARAMETER_2
#define ROW_2
#endif

#if INPUTS > 2
#define GET(i, n) TYPE_0 a = GET_0(i, n); TYPE_1 b = GET_1(i, n); VT c = GET_2(i, n);
#elif INPUTS > 1
#define GET(i, n) TYPE_0 a = GET_0(i, n); TYPE_1 b = GET_1(i, n);
#elif INPUTS > 0
#define GET(i, n) TYPE_0 a = GET_0(i, n);
#else
#define GET(i, n)
#endif

/* An integer divisor in memory is looked at; one given as a number, the host has seen. */
#ifdef DIVISOR
#define PARAMETER_FAULTS __global long *faults,
#define CHECK if (SOME((DIVISOR) == (VT)0)) REPORT(faults, OP_ID, 0, FAULT_DIVISION);
#else
#define PARAMETER_FAULTS
#define CHECK
#endif

#define STEP(i, n)                                              \
  {                                                             \
    GET(i, n)                                                   \
    CHECK                                                       \
    put(row_out, shape.stride[0].along[0], i, n, (EXPRESSION)); \
    PUT_SECOND(i, n)                                            \
  }

/* ---- The kernel ---- */

typedef struct {
  long size[RANK];
  STRIDES(RANK) stride[OPERANDS];
  long chunk, chunks_per_row, chunks, per_item;
  SPACE_OF_CASES
} space;

/* What a launch says beside buffers, in one: drivers take a while for each argument. */
typedef struct {
  CT number[3], value[3]; /* x, y, z; operands that are numbers */
  ulong at[5];            /* where the result, the second one and the operands begin, in bytes */
} call;

KERNEL pointwise(__global uchar *out PARAMETER_SECOND PARAMETER_0 PARAMETER_1 PARAMETER_2, call given,
                 PARAMETER_FAULTS space shape) {
  const CT number_x = given.number[0], number_y = given.number[1], number_z = given.number[2];
  VT x = (VT)number_x, y = (VT)number_y, z = (VT)number_z;
  long first = (long)get_global_id(0) * shape.per_item;
  long last = min(first + shape.per_item, shape.chunks);
  for (long at = first; at < last; at++) {
    long outer = RANK > 1 ? at / shape.chunks_per_row : 0;
    long i = (at - outer * shape.chunks_per_row) * shape.chunk;
    long end = min(i + shape.chunk, shape.size[0]);
    long start[OPERANDS];
    for (int k = 0; k < OPERANDS; k++) start[k] = 0;
    for (int d = 1; d < RANK; d++) {
      long place = outer % shape.size[d];
      outer /= shape.size[d];
      for (int k = 0; k < OPERANDS; k++) start[k] += place * shape.stride[k].along[d];
    }
    __global RAW(D_OUT) *row_out = (__global RAW(D_OUT) *)(out + given.at[0]) + start[0];
    ROW_SECOND ROW_0 ROW_1 ROW_2
#if defined(LONG) || defined(SMALL)
    for (; i < end; i += VEC) STEP(i, (int)min((long)VEC, end - i))
#else
    for (; i + VEC <= end; i += VEC) STEP(i, VEC)
    if (i < end) STEP(i, (int)(end - i))
#endif
  }
}
