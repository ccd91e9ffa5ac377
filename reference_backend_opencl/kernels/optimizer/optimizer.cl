/* Ops over lists of tensors that treat each element apart, after lists.cl. The operands of a tensor lie at p0, p1, ...
 *
 * The head defines, beside what lists.cl asks for, D_0 ... (dtypes), SINGLE_2 (operand 2 has one element, for all) and
 * the op: MODE_ADAM, MODE_SGD, MODE_ADAGRAD, MODE_UNSCALE; or EXPRESSION, in which a, b, c are the operands after the
 * output and x the number of this tensor; or CHAIN, which is a STEP that chain.c writes, with its NUMBERS_OF_CHAIN. */

typedef struct {
  long begin, end; /* of the index space: the places of the tensors in the table */
  long span;       /* places a work-group takes */
  long flags, tensors;
} space;

#define HAS_LR 1 /* the learning rate is a tensor */
#define HAS_SCALE 2
#define HAS_FOUND 4
#define MAXIMIZE 8
#define DECOUPLED 16 /* weight decay apart from the gradient */
#define NESTEROV 32
#define FIRST_STEP 64

#define DEFINE_OPERAND(k)                                                            \
  static VT get_##k(__global const uchar *base, long i, int n) {                     \
    __global const RAW(D_##k) *at = (__global const RAW(D_##k) *)base;               \
    if (!SINGLE_##k && n == VEC) return LOAD(D_##k, __global, at + i);               \
    RAW(D_##k) lanes[VEC];                                                           \
    for (int j = 0; j < VEC; j++) lanes[j] = at[SINGLE_##k ? 0 : j < n ? i + j : i]; \
    return LOAD(D_##k, __private, lanes);                                            \
  }                                                                                  \
  static void put_##k(__global uchar *base, long i, int n, VT v) {                   \
    __global RAW(D_##k) *at = (__global RAW(D_##k) *)base;                           \
    if (n == VEC) {                                                                  \
      STORE(D_##k, __global, at + i, v);                                             \
      return;                                                                        \
    }                                                                                \
    RAW(D_##k) lanes[VEC];                                                           \
    STORE(D_##k, __private, lanes, v);                                               \
    for (int j = 0; j < n; j++) at[i + j] = lanes[j];                                \
  }
DEFINE_OPERAND(0)
#if OPERANDS > 1
DEFINE_OPERAND(1)
#endif
#if OPERANDS > 2
DEFINE_OPERAND(2)
#endif
#if OPERANDS > 3
DEFINE_OPERAND(3)
#endif
#if OPERANDS > 4
DEFINE_OPERAND(4)
#endif
#if OPERANDS > 5
DEFINE_OPERAND(5)
#endif
#if OPERANDS > 6
DEFINE_OPERAND(6)
#endif
#if OPERANDS > 7
DEFINE_OPERAND(7)
#endif
#if OPERANDS > 8
DEFINE_OPERAND(8)
#endif
#if OPERANDS > 9
DEFINE_OPERAND(9)
#endif
#if OPERANDS > 10
DEFINE_OPERAND(10)
#endif
#if OPERANDS > 11
DEFINE_OPERAND(11)
#endif
#if OPERANDS > 12
DEFINE_OPERAND(12)
#endif
#if OPERANDS > 13
DEFINE_OPERAND(13)
#endif
#if OPERANDS > 14
DEFINE_OPERAND(14)
#endif
#if OPERANDS > 15
DEFINE_OPERAND(15)
#endif
#if OPERANDS > 16
DEFINE_OPERAND(16)
#endif
#if OPERANDS > 17
DEFINE_OPERAND(17)
#endif
#if OPERANDS > 18
DEFINE_OPERAND(18)
#endif
#if OPERANDS > 19
DEFINE_OPERAND(19)
#endif

#if defined(MODE_ADAM) || defined(MODE_SGD) || defined(MODE_ADAGRAD)
#define IS_FUSED
#endif

#ifdef CLASS_FLOAT
/* The number in a tensor of one element. */
#define ONE_f16(p) vload_half(0, (__global const half *)(p))
#define ONE_bf16(p) as_float((uint) * (__global const ushort *)(p) << 16)
#define ONE_f32(p) (*(__global const float *)(p))
#define ONE_f64(p) (*(__global const double *)(p))
#define ONE_OF(dtype, p) ((CT)CAT(ONE_, dtype)(p))
#endif

/* 1 - beta^t, without cancellation and without double. */
#ifdef MODE_ADAM
static CT bias_correction(CT log_beta, CT t) { return t == (CT)0 ? (CT)0 : -expm1(t * log_beta); }
#endif

/* The numbers, as lists.h counts them. */
#define LR number[0]
#define WEIGHT_DECAY number[1]
#define ADAM_BETA1 number[2]
#define ADAM_BETA2 number[3]
#define ADAM_LOG_BETA1 number[4]
#define ADAM_LOG_BETA2 number[5]
#define ADAM_REST1 number[6]
#define ADAM_REST2 number[7]
#define ADAM_EPS number[8]
#define SGD_MOMENTUM number[2]
#define SGD_NEW number[3]
#define ADAGRAD_LR_DECAY number[2]
#define ADAGRAD_EPS number[3]

/* Operands: parameter, gradient, average, average of squares, step, greatest average of squares. */
#ifdef MODE_ADAM
#define PREPARE                                           \
  CT t = ONE_OF(D_4, p4);                                    \
  CT step_size = lr / bias_correction(ADAM_LOG_BETA1, t); \
  CT root = sqrt(bias_correction(ADAM_LOG_BETA2, t));     \
  CT decay = WEIGHT_DECAY, keep = (CT)1 - lr * decay;
#define STEP(i, n)                                                                         \
  {                                                                                        \
    VT p = get_0(p0, i, n), g = get_1(p1, i, n), m = get_2(p2, i, n), v = get_3(p3, i, n); \
    UNSCALE(i, n)                                                                          \
    if (flags & DECOUPLED) p = p * keep; else g = decay == (CT)0 ? g : g + p * decay;      \
    m = ADAM_REST1 < (CT)0.5f ? m + ADAM_REST1 * (g - m) : g - (g - m) * ADAM_BETA1;       \
    v = ADAM_BETA2 * v + ADAM_REST2 * g * g;                                               \
    put_2(p2, i, n, m);                                                                    \
    put_3(p3, i, n, v);                                                                    \
    GREATEST(i, n)                                                                         \
    put_0(p0, i, n, p - step_size * m / (sqrt(v) / root + ADAM_EPS));                      \
  }
#if OPERANDS > 5
#define GREATEST(i, n)                          \
  {                                             \
    VT past = get_5(p5, i, n);                  \
    v = (past > v) | (past != past) ? past : v; \
    put_5(p5, i, n, v);                         \
  }
#else
#define GREATEST(i, n)
#endif
#endif

/* Operands: parameter, gradient, momentum buffer. */
#ifdef MODE_SGD
#define PREPARE CT decay = WEIGHT_DECAY;
#if OPERANDS > 2
#define MOMENTUM(i, n)                                                            \
  {                                                                               \
    VT m = flags & FIRST_STEP ? g : SGD_MOMENTUM * get_2(p2, i, n) + SGD_NEW * g; \
    put_2(p2, i, n, m);                                                           \
    g = flags & NESTEROV ? g + SGD_MOMENTUM * m : m;                              \
  }
#else
#define MOMENTUM(i, n)
#endif
#define STEP(i, n)                                       \
  {                                                      \
    VT p = get_0(p0, i, n), g = get_1(p1, i, n);         \
    UNSCALE(i, n)                                        \
    g = decay == (CT)0 ? g : g + p * decay;              \
    MOMENTUM(i, n)                                       \
    put_0(p0, i, n, p - lr * g);                         \
  }
#endif

/* Operands: parameter, gradient, sum of squares, step. */
#ifdef MODE_ADAGRAD
#define PREPARE CT decay = WEIGHT_DECAY, rate = lr / ((CT)1 + (ONE_OF(D_3, p3) - (CT)1) * ADAGRAD_LR_DECAY);
#define STEP(i, n)                                                             \
  {                                                                            \
    VT p = get_0(p0, i, n), g = get_1(p1, i, n), sum = get_2(p2, i, n);        \
    UNSCALE(i, n)                                                              \
    g = decay == (CT)0 ? g : g + p * decay;                                    \
    sum = sum + g * g;                                                         \
    put_2(p2, i, n, sum);                                                      \
    put_0(p0, i, n, p - rate * g / (sqrt(sum) + ADAGRAD_EPS));                 \
  }
#endif

#ifdef IS_FUSED
#define UNSCALE(i, n)                \
  if (flags & HAS_SCALE) {           \
    g = g / scale;                   \
    put_1(p1, i, n, g);              \
  }                                  \
  if (flags & MAXIMIZE) g = -g;
#endif

/* shared 0: 1 where a gradient was not finite; shared 1: what gradients are multiplied with. Many work-items may find one
 * that was not: an atomic write, though all write the same. */
#ifdef MODE_UNSCALE
#define FOUND atomic_xchg((volatile __global int *)(shared0 + offset0), as_int(1.0f));
#define STEP(i, n)                                                              \
  {                                                                             \
    VT a = get_1(p1, i, n);                                                     \
    if (any(!isfinite(a))) FOUND                                                \
    put_0(p0, i, n, scale == (CT)1 ? a : a * scale);                            \
  }
#if VEC == 1
#define any(x) (x)
#endif
#endif

#if defined(EXPRESSION) || defined(CHAIN)
#ifdef CLASS_FLOAT
#define ABS(a) fabs(a)
#else
#define ABS(a) ((a) < (VT)0 ? NEG(a) : (a))
#endif
#define SIGN(a) ((a) > (VT)0 ? (VT)1 : (a) < (VT)0 ? (VT)-1 : (VT)0)
#define MAXIMUM(a, b) (((a) > (b)) | ((a) != (a)) ? (a) : (b))
#define MINIMUM(a, b) (((a) < (b)) | ((a) != (a)) ? (a) : (b))
#define LERP(a, b, w) ((w) < (VT)0.5f ? (a) + (w) * ((b) - (a)) : (b) - ((b) - (a)) * ((VT)1 - (w)))
#endif

#ifdef CHAIN
/* As an op of the chain would read what the one before it wrote; and as a function of a call of single tensors would. */
#define DEFINE_ROUND(dtype)                                   \
  static VT CAT(round_, dtype)(VT v) {                        \
    RAW(dtype) lanes[VEC];                                    \
    STORE(dtype, __private, lanes, v);                        \
    return LOAD(dtype, __private, lanes);                     \
  }                                                           \
  static VEC_OF(RAW(dtype)) CAT(raw_, dtype)(VT v) {          \
    RAW(dtype) lanes[VEC];                                    \
    STORE(dtype, __private, lanes, v);                        \
    return VLOAD(lanes);                                      \
  }                                                           \
  static VT CAT(of_, dtype)(VEC_OF(RAW(dtype)) v) {           \
    return LOAD(dtype, __private, (__private RAW(dtype) *)&v); \
  }
#define raw_f32(v) (v)
#define of_f32(v) (v)
#define raw_f64(v) (v)
#define of_f64(v) (v)
#define raw_bool(v) (CONVERT(uchar, (v) != (VT)0) & (uchar)1)
#define of_bool(v) CONVERT(CT, v)
ROUNDS
#define STEP(i, n) CHAIN(i, n)
#endif

#ifdef EXPRESSION
#if OPERANDS > 3
#define GET(i, n) VT a = get_1(p1, i, n), b = get_2(p2, i, n), c = get_3(p3, i, n);
#elif OPERANDS > 2
#define GET(i, n) VT a = get_1(p1, i, n), b = get_2(p2, i, n);
#elif OPERANDS > 1
#define GET(i, n) VT a = get_1(p1, i, n);
#else
#define GET(i, n)
#endif
#define STEP(i, n)                       \
  {                                      \
    GET(i, n)                            \
    put_0(p0, i, n, (EXPRESSION));       \
  }
#endif

KERNEL optimize(PARAMETERS, __global uchar *shared0, ulong offset0, __global const uchar *shared1, ulong offset1,
                __global const uchar *shared2, ulong offset2, space shape) {
  long flags = shape.flags, at = shape.begin + (long)get_group_id(0) * shape.span;
  long stop = min(at + shape.span, shape.end);
  int tensors = (int)shape.tensors;
  __global const long *first = FIRST(table);
#ifdef IS_FUSED
  CT number[NUMBERS];
  for (int k = 0; k < NUMBERS; k++) number[k] = ((__global const CT *)table)[k];
  if (flags & HAS_FOUND && *(__global const float *)(shared0 + offset0) == 1.0f) return;
  CT scale = flags & HAS_SCALE ? (CT) * (__global const float *)(shared1 + offset1) : (CT)1;
  CT lr = flags & HAS_LR ? ONE_OF(D_LR, shared2 + offset2) : LR;
#elif defined(MODE_UNSCALE)
  CT scale = (CT) * (__global const float *)(shared1 + offset1);
#endif
  for (int tensor = tensor_at(first, tensors, at); tensor < tensors && first[tensor] < stop; tensor++) {
    __global const long *record = RECORD(first, tensors, tensor);
    __global uchar *p[20] = {0};
    for (int k = 0; k < OPERANDS; k++) LOCATE(p[k], record, k)
    __global uchar *p0 = p[0], *p1 = p[1], *p2 = p[2], *p3 = p[3], *p4 = p[4], *p5 = p[5];
    __global uchar *p6 = p[6], *p7 = p[7], *p8 = p[8], *p9 = p[9], *p10 = p[10], *p11 = p[11];
    __global uchar *p12 = p[12], *p13 = p[13], *p14 = p[14], *p15 = p[15];
    __global uchar *p16 = p[16], *p17 = p[17], *p18 = p[18], *p19 = p[19];
#ifdef IS_FUSED
    PREPARE
#elif defined(CHAIN)
    NUMBERS_OF_CHAIN(record)
#elif defined(EXPRESSION)
    VT x = (VT)OWN_NUMBER(record, 0);
#endif
    long from = max(at - first[tensor], 0L), end = min(stop - first[tensor], SIZE(record));
    long i = from + (long)get_local_id(0) * VEC;
    for (; i + VEC <= end; i += LOCAL * VEC) STEP(i, VEC)
    if (i < end) STEP(i, (int)(end - i))
  }
}
