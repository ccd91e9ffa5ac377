/* Ops over lists of tensors. A launch serves up to GROUP of them, whose buffers are so many arguments; each tensor has
 * `OPERANDS` of them: p0 of tensor 3 is buffer BUFFER_3_0. The tensors are cut into chunks, numbered through.
 *
 * The head defines OPERANDS, D_0 ... (dtypes), SINGLE_2 (operand 2 has one element, for all), PARAMETERS (the buffers),
 * CHOOSE (a `case` for each tensor, which sets p0, p1, ...) and the op: MODE_ADAM, MODE_SGD, MODE_ADAGRAD, MODE_UNSCALE,
 * or else EXPRESSION, in which a, b, c are the operands after the output and x the number of this tensor. */

typedef struct {
  CT x[16];
} numbers;

typedef struct {
  long first[GROUP]; /* chunk each tensor begins with */
  long size[GROUP];  /* elements */
  long chunk, chunks, flags;
} space;

#define HAS_LR 1 /* the learning rate is a tensor */
#define HAS_SCALE 2
#define HAS_FOUND 4
#define MAXIMIZE 8
#define DECOUPLED 16 /* weight decay apart from the gradient */
#define NESTEROV 32
#define FIRST_STEP 64

#define DEFINE_OPERAND(k)                                                        \
  static VT get_##k(__global const uchar *base, long i, int n) {                 \
    __global const RAW(D_##k) *at = (__global const RAW(D_##k) *)base;           \
    if (!SINGLE_##k && n == VEC) return LOAD(D_##k, __global, at + i);           \
    RAW(D_##k) lanes[VEC];                                                       \
    for (int j = 0; j < VEC; j++) lanes[j] = at[SINGLE_##k ? 0 : j < n ? i + j : i]; \
    return LOAD(D_##k, __private, lanes);                                        \
  }                                                                              \
  static void put_##k(__global uchar *base, long i, int n, VT v) {               \
    __global RAW(D_##k) *at = (__global RAW(D_##k) *)base;                       \
    if (n == VEC) {                                                              \
      STORE(D_##k, __global, at + i, v);                                         \
      return;                                                                    \
    }                                                                            \
    RAW(D_##k) lanes[VEC];                                                       \
    STORE(D_##k, __private, lanes, v);                                           \
    for (int j = 0; j < n; j++) at[i + j] = lanes[j];                            \
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

#if defined(MODE_ADAM) || defined(MODE_SGD) || defined(MODE_ADAGRAD)
#define IS_FUSED
#endif

#ifdef CLASS_FLOAT
/* The number in a tensor of one element. */
#define ONE_f16(p) vload_half(0, (__global const half *)(p))
#define ONE_bf16(p) as_float((uint) * (__global const ushort *)(p) << 16)
#define ONE_f32(p) (*(__global const float *)(p))
#define ONE_f64(p) (*(__global const double *)(p))
#define ONE(dtype, p) ((CT)CAT(ONE_, dtype)(p))
#endif

/* 1 - beta^t, without cancellation and without double. */
#ifdef MODE_ADAM
static CT bias_correction(CT log_beta, CT t) { return t == (CT)0 ? (CT)0 : -expm1(t * log_beta); }
#endif

/* x: lr, beta1, beta2, log beta1, log beta2, weight decay, eps, 1 - beta1, 1 - beta2
 * operands: parameter, gradient, average, average of squares, step, greatest average of squares */
#ifdef MODE_ADAM
#define PREPARE                                                                             \
  CT t = ONE(D_4, p4);                                                                      \
  CT step_size = lr / bias_correction(number.x[3], t);                                      \
  CT root = sqrt(bias_correction(number.x[4], t));                                          \
  CT decay = number.x[5], keep = (CT)1 - lr * decay;
#define STEP(i, n)                                                                          \
  {                                                                                         \
    VT p = get_0(p0, i, n), g = get_1(p1, i, n), m = get_2(p2, i, n), v = get_3(p3, i, n);  \
    UNSCALE(i, n)                                                                           \
    if (flags & DECOUPLED) p = p * keep; else g = decay == (CT)0 ? g : g + p * decay;       \
    m = number.x[7] < (CT)0.5f ? m + number.x[7] * (g - m) : g - (g - m) * number.x[1];     \
    v = number.x[2] * v + number.x[8] * g * g;                                              \
    put_2(p2, i, n, m);                                                                     \
    put_3(p3, i, n, v);                                                                     \
    GREATEST(i, n)                                                                          \
    put_0(p0, i, n, p - step_size * m / (sqrt(v) / root + number.x[6]));                    \
  }
#if OPERANDS > 5
#define GREATEST(i, n)                  \
  {                                     \
    VT past = get_5(p5, i, n);          \
    v = (past > v) | (past != past) ? past : v; \
    put_5(p5, i, n, v);                 \
  }
#else
#define GREATEST(i, n)
#endif
#endif

/* x: lr, momentum, 1 - dampening, weight decay; operands: parameter, gradient, momentum buffer */
#ifdef MODE_SGD
#define PREPARE CT decay = number.x[3];
#if OPERANDS > 2
#define MOMENTUM(i, n)                                                                           \
  {                                                                                              \
    VT m = flags & FIRST_STEP ? g : number.x[1] * get_2(p2, i, n) + number.x[2] * g;             \
    put_2(p2, i, n, m);                                                                          \
    g = flags & NESTEROV ? g + number.x[1] * m : m;                                              \
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

/* x: lr, decay of lr, weight decay, eps; operands: parameter, gradient, sum of squares, step */
#ifdef MODE_ADAGRAD
#define PREPARE CT decay = number.x[2], rate = lr / ((CT)1 + (ONE(D_3, p3) - (CT)1) * number.x[1]);
#define STEP(i, n)                                                             \
  {                                                                            \
    VT p = get_0(p0, i, n), g = get_1(p1, i, n), sum = get_2(p2, i, n);        \
    UNSCALE(i, n)                                                              \
    g = decay == (CT)0 ? g : g + p * decay;                                    \
    sum = sum + g * g;                                                         \
    put_2(p2, i, n, sum);                                                      \
    put_0(p0, i, n, p - rate * g / (sqrt(sum) + number.x[3]));                 \
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

/* shared 0: 1 where a gradient was not finite; shared 1: what gradients are multiplied with */
#ifdef MODE_UNSCALE
#define STEP(i, n)                                                              \
  {                                                                             \
    VT a = get_1(p1, i, n);                                                     \
    if (any(!isfinite(a))) *(__global float *)(shared0 + offset0) = 1;          \
    put_0(p0, i, n, scale == (CT)1 ? a : a * scale);                            \
  }
#if VEC == 1
#define any(x) (x)
#endif
#endif

#ifdef EXPRESSION
#ifdef CLASS_FLOAT
#define ABS(a) fabs(a)
#define SIGN(a) ((a) > (VT)0 ? (VT)1 : (a) < (VT)0 ? (VT)-1 : (a))
#else
#define ABS(a) ((a) < (VT)0 ? NEG(a) : (a))
#define SIGN(a) ((a) > (VT)0 ? (VT)1 : (a) < (VT)0 ? (VT)-1 : (VT)0)
#endif
#define MAXIMUM(a, b) (((a) > (b)) | ((a) != (a)) ? (a) : (b))
#define LERP(a, b, w) (fabs(w) < (VT)0.5f ? (a) + (w) * ((b) - (a)) : (b) - ((b) - (a)) * ((VT)1 - (w)))
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

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void optimize(
    PARAMETERS, __global uchar *shared0, ulong offset0, __global const uchar *shared1, ulong offset1,
    __global const uchar *shared2, ulong offset2, numbers number, space shape) {
  long at = get_global_id(0);
  if (at >= shape.chunks) return;
  int tensor = 0;
  long flags = shape.flags, first = shape.first[0], size = shape.size[0];
  CT own = number.x[0];
  for (int k = 1; k < GROUP; k++) {
    if (at < shape.first[k]) continue;
    tensor = k;
    first = shape.first[k];
    size = shape.size[k];
    own = number.x[k];
  }
  __global uchar *p0 = 0, *p1 = 0, *p2 = 0, *p3 = 0, *p4 = 0, *p5 = 0;
  switch (tensor) { CHOOSE }
#ifdef IS_FUSED
  if (flags & HAS_FOUND && *(__global const float *)(shared0 + offset0) == 1.0f) return;
  CT scale = flags & HAS_SCALE ? (CT) * (__global const float *)(shared1 + offset1) : (CT)1;
  CT lr = flags & HAS_LR ? ONE(D_LR, shared2 + offset2) : number.x[0];
  PREPARE
#elif defined(MODE_UNSCALE)
  CT scale = (CT) * (__global const float *)(shared1 + offset1);
#else
  VT x = (VT)own;
#endif
  long i = (at - first) * shape.chunk, end = min(i + shape.chunk, size);
  for (; i + VEC <= end; i += VEC) STEP(i, VEC)
  if (i < end) STEP(i, (int)(end - i))
}
