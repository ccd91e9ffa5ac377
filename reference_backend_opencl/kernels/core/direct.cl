/* What kernels over contiguous tensors begin with; see direct.h. The head defines D, the dtype of their values. */
typedef struct {
  long of[62]; /* sizes and the like, as the family counts them */
  long per_item, units;
} numbers;

/* A number of CT among them, which is float or double there. */
#define BITS_AS_float(bits) as_float((int)(bits))
#define BITS_AS_double(bits) as_double(bits)
#define NUMBER(i) CAT(BITS_AS_, CT)(n.of[i])


/* A place as elements of a dtype, and of D. */
#define ELEMENTS(name) POINTER(D, name)
#define GET(p) LOAD(D, __global, p)
#define PUT(p, v) STORE(D, __global, p, v)

/* The quotient of numbers that are not below 0; where both fit in 32 bits, in which devices divide sooner. */
static long divided(long a, long b) { return (a | b) >> 32 ? a / b : (long)((uint)a / (uint)b); }

/* The pieces of this work-item. */
#define EACH_UNIT(i)                                                                                    \
  const long first_unit = (long)get_global_id(0) * n.per_item;                                          \
  const long last_unit = min(first_unit + n.per_item, n.units);                                         \
  for (long i = first_unit; i < last_unit; i++)
