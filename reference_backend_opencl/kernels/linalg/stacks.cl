/* Stacks of matrices, after direct.cl: a work-group has a matrix, its lanes the rows or columns of a step. On a CPU it
 * is one work-item, and a matrix is a piece of its work. Matrices lie row by row. */
#if LOCAL == 1
#define LANE 0L
#define SYNC
#define EACH_MATRIX(b) EACH_UNIT(b)
#else
#define LANE ((long)get_local_id(0))
#define SYNC barrier(CLK_GLOBAL_MEM_FENCE)
#define EACH_MATRIX(b) for (long b = (long)get_group_id(0); b < n.units / LOCAL; b += n.units)
#endif
#define EACH_LANE(i, from, to) for (long i = (from) + LANE; i < (to); i += LOCAL)

typedef __global CT *matrix;
typedef __global const CT *const_matrix;
#define MATRIX(name) ((matrix)(name + offset_##name))
#define CONST_MATRIX(name) ((const_matrix)(name + offset_##name))
#define WHOLE(name) ((__global int *)(name + offset_##name))
#define REALS(name) ((__global RT *)(name + offset_##name))

/* Rows that are in local memory at a time: ocl_stack_tall of linalg.h. */
#if defined(CLASS_COMPLEX) && defined(IS_DOUBLE)
#define TALL 32
#else
#define TALL 64
#endif

/* What the algorithms ask of an element beside common.cl, so that they stand once for real and for complex numbers: its
 * real type RT; a real number as an element; the conjugate, also where a flag asks for it; the modulus, and the sizes by
 * which LAPACK picks pivots; the largest of a number's parts, infinity where one is NaN; sums of |z|^2 and of r z, r
 * real; quotients; z / |z|. An element is scaled by a real number with plain operators. */
#ifdef IS_DOUBLE
#define RT double
#else
#define RT float
#endif
#ifdef CLASS_COMPLEX
#define FROM_REAL(r) (CT)((RT)(r), 0)
#define IMAGINARY(z) ((z).y)
#define CONJ_IF(flag, z) complex_conj_if(flag, z)
#define MODULUS(z) complex_modulus(z)
#define PIVOT_SIZE(z) complex_pivot_size(z)
#define LARGEST_PART(z) complex_largest_part(z)
#define ADD_SQUARE(z, sum) complex_add_square(z, sum)
#define SCALE_ADD(r, z, c) complex_scale_add(r, z, c)
#define DIVIDE(a, b) complex_divide(a, b)
#define DIRECTION(z) complex_direction(z)
static CT complex_conj_if(bool flag, CT z) { return (CT)(z.x, flag ? -z.y : z.y); }
static RT complex_modulus(CT z) { return hypot(z.x, z.y); }
static RT complex_pivot_size(CT z) { return fabs(z.x) + fabs(z.y); }
static RT complex_largest_part(CT z) { return z.x == z.x && z.y == z.y ? fmax(fabs(z.x), fabs(z.y)) : (RT)INFINITY; }
static RT complex_add_square(CT z, RT sum) { return fma(z.x, z.x, fma(z.y, z.y, sum)); }
static CT complex_scale_add(RT r, CT z, CT c) { return (CT)(fma(r, z.x, c.x), fma(r, z.y, c.y)); }
/* Smith's, Communications of the ACM 5, 1962: no square of b, which overflows before b does. */
static CT complex_divide(CT a, CT b) {
  const bool upright = fabs(b.x) < fabs(b.y);
  const RT large = upright ? b.y : b.x, small = upright ? b.x : b.y;
  const RT ratio = large == 0 ? 0 : small / large, whole = fma(small, ratio, large);
  if (upright) return (CT)(fma(a.x, ratio, a.y) / whole, fma(a.y, ratio, -a.x) / whole);
  return (CT)(fma(a.y, ratio, a.x) / whole, fma(-a.x, ratio, a.y) / whole);
}
static CT complex_direction(CT z) {
  const RT size = complex_modulus(z);
  return size == 0 ? (CT)0 : z / size;
}
#else
#define FROM_REAL(r) ((CT)(r))
#define IMAGINARY(z) 0
#define CONJ_IF(flag, z) (z)
#define MODULUS(z) fabs(z)
#define PIVOT_SIZE(z) fabs(z)
#define LARGEST_PART(z) ((z) == (z) ? fabs(z) : (CT)INFINITY)
#define ADD_SQUARE(z, sum) fma(z, z, sum)
#define SCALE_ADD(r, z, c) fma(r, z, c)
#define DIVIDE(a, b) ((a) / (b))
#define DIRECTION(z) ((z) > 0 ? (CT)1 : (z) < 0 ? (CT)-1 : (z))
#endif
#define CONJ(z) CONJ_IF(true, z)

static RT larger_size(RT a, RT b) { return LARGER(b, a); }

/* Whether a row is changed by the pivot `head` of an LU factorization: one of 0 has zeros below, or NaN, of which all of
 * its row become. */
static bool is_changed(CT head, CT below) { return NONZERO(head) || PIVOT_SIZE(below) != PIVOT_SIZE(below); }

#ifdef IS_DOUBLE
#define EPSILON DBL_EPSILON
#define MAXIMUM DBL_MAX
#define MINIMUM DBL_MIN
#else
#define EPSILON FLT_EPSILON
#define MAXIMUM FLT_MAX
#define MINIMUM FLT_MIN
#endif

/* cos and sin that turn (f, g) to (r, 0). */
typedef struct {
  RT c, s, r;
} rotation;

static rotation rotation_of(RT f, RT g) {
  const RT r = sqrt(fma(f, f, g * g));
  if (r >= sqrt(MINIMUM) / EPSILON) return (rotation){f / r, g / r, r};
  if (f == 0 && g == 0) return (rotation){1, 0, 0};
  /* The squares are too small, and among denormals lengths are too coarse. */
  const RT a = f / MINIMUM, b = g / MINIMUM, length = hypot(a, b);
  return (rotation){a / length, b / length, length * MINIMUM};
}
