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
#define PARAMETER_SECOND , PLACE(second)
#define ROW_SECOND __global RAW(D_SECOND) *row_second = POINTER(D_SECOND, second) + start[INPUTS + 1];
#define PUT_SECOND(i, n) put_second(row_second, shape.stride[INPUTS + 1].along[0], i, n, (SECOND));
#else
#define OPERANDS (INPUTS + 1)
#define PARAMETER_SECOND
#define ROW_SECOND
#define PUT_SECOND(i, n)
#endif

#ifdef CASES
DEFINE_FETCH(0)
DEFINE_FETCH(1)
DEFINE_FETCH(2)
#define PARAMETER_0 , CONST_PLACE(in_0)
#define PARAMETER_1 , CONST_PLACE(in_1)
#define PARAMETER_2 , CONST_PLACE(in_2), CT value_0, CT value_1, CT value_2
#define ROW_0 __global const RAW(D_0) *row_0 = CONST_POINTER(D_0, in_0) + start[1];
#define ROW_1 __global const RAW(D_1) *row_1 = CONST_POINTER(D_1, in_1) + start[2];
#define ROW_2 __global const RAW(D_2) *row_2 = CONST_POINTER(D_2, in_2) + start[3];
#define GET_OR_VALUE(k, i, n) \
  (shape.in_memory >> k & 1 ? fetch_##k(row_##k, shape.stride[k + 1].along[0], i, n) : (VT)value_##k)
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
#define PARAMETER_0 , CT in_0, ulong unused_0
#define ROW_0
#define GET_0(i, n) (VT) in_0
#elif INPUTS > 0
DEFINE_FETCH(0)
#define PARAMETER_0 , CONST_PLACE(in_0)
#define ROW_0 __global const RAW(D_0) *row_0 = CONST_POINTER(D_0, in_0) + start[1];
#define GET_0(i, n) fetch_0(row_0, shape.stride[1].along[0], i, n)
#else
#define PARAMETER_0
#define ROW_0
#endif

#ifdef CASES
#elif defined(VALUE_1)
#define PARAMETER_1 , CT in_1, ulong unused_1
#define ROW_1
#define GET_1(i, n) (VT) in_1
#elif INPUTS > 1
DEFINE_FETCH(1)
#define PARAMETER_1 , CONST_PLACE(in_1)
#define ROW_1 __global const RAW(D_1) *row_1 = CONST_POINTER(D_1, in_1) + start[2];
#define GET_1(i, n) fetch_1(row_1, shape.stride[2].along[0], i, n)
#else
#define PARAMETER_1
#define ROW_1
#endif

#ifdef CASES
#elif defined(VALUE_2)
#define PARAMETER_2 , CT in_2, ulong unused_2
#define ROW_2
#define GET_2(i, n) (VT) in_2
#elif INPUTS > 2
DEFINE_FETCH(2)
#define PARAMETER_2 , CONST_PLACE(in_2)
#define ROW_2 __global const RAW(D_2) *row_2 = CONST_POINTER(D_2, in_2) + start[3];
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

KERNEL pointwise(PLACE(out) PARAMETER_SECOND PARAMETER_0 PARAMETER_1 PARAMETER_2, CT number_x, CT number_y, CT number_z,
                 PARAMETER_FAULTS space shape) {
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
    __global RAW(D_OUT) *row_out = POINTER(D_OUT, out) + start[0];
    ROW_SECOND ROW_0 ROW_1 ROW_2
#if defined(LONG) || defined(SMALL)
    for (; i < end; i += VEC) STEP(i, (int)min((long)VEC, end - i))
#else
    for (; i + VEC <= end; i += VEC) STEP(i, VEC)
    if (i < end) STEP(i, (int)(end - i))
#endif
  }
}
