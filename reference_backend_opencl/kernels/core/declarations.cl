/* What a kernel may call of OpenCL C's library, declared in few words. In front of common.cl where a driver can be told to
 * leave out a header of its own that takes longer to read than most kernels take to compile (program.c). Names, types and
 * attributes are those of OpenCL 1.2, section 6.12, as clang's opencl-c.h has them, so that the code is the same; of the
 * widths only those that the head asks for: 1 and VEC, or all where it says none, since a program that is made of several
 * parts has another VEC in each. A function that is missing here costs time and nothing else: its
 * program is built again with the driver's header. Macros begin with LIB_, as those of the head and of kernels may have
 * any other name. */

/* --- types and constants --- */

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef uint cl_mem_fence_flags;

#ifdef HAS_F64
#define LIB_EACH_FLOAT(each) each(float) each(double)
#else
#define LIB_EACH_FLOAT(each) each(float)
#endif
#define LIB_EACH_INTEGER(each) \
  each(char) each(uchar) each(short) each(ushort) each(int) each(uint) each(long) each(ulong)
#define LIB_VECTORS(type)                                   \
  typedef type type##2 __attribute__((ext_vector_type(2))); \
  typedef type type##4 __attribute__((ext_vector_type(4))); \
  typedef type type##8 __attribute__((ext_vector_type(8))); \
  typedef type type##16 __attribute__((ext_vector_type(16)));
LIB_EACH_INTEGER(LIB_VECTORS)
LIB_EACH_FLOAT(LIB_VECTORS)

#define NULL ((void *)0)
#define INFINITY (__builtin_inff())
#define NAN as_float(0x7fffffff)
#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 0xffffffffU
#define LONG_MAX 0x7fffffffffffffffL
#define LONG_MIN (-0x7fffffffffffffffL - 1)
#define ULONG_MAX 0xffffffffffffffffUL
#define FLT_MANT_DIG 24
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1.0p-126f
#define FLT_EPSILON 0x1.0p-23f
#define DBL_MANT_DIG 53
#define DBL_MAX 0x1.fffffffffffffp1023
#define DBL_MIN 0x1.0p-1022
#define DBL_EPSILON 0x1.0p-52
#define M_PI_F 3.14159265358979323846264338327950288f
#define M_PI 3.14159265358979323846264338327950288
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2

/* --- how a declaration is made --- */

#define LIB_FUNCTION __attribute__((overloadable, const))
#define LIB_READER __attribute__((overloadable, pure))
#define LIB_WRITER __attribute__((overloadable))
#define LIB_BARRIER __attribute__((overloadable, convergent))

/* form(name, type, other), for one number and for vectors of VEC: `other` is a type that goes with the first. A driver may
 * rename functions by macros; `name` follows them. */
#ifndef VEC
#define LIB_VECTOR(form, name, type, other)                                                                 \
  form(name, type##2, other##2) form(name, type##4, other##4) form(name, type##8, other##8)                 \
  form(name, type##16, other##16)
#elif VEC == 1
#define LIB_VECTOR(form, name, type, other)
#elif VEC == 2
#define LIB_VECTOR(form, name, type, other) form(name, type##2, other##2)
#elif VEC == 4
#define LIB_VECTOR(form, name, type, other) form(name, type##4, other##4)
#elif VEC == 8
#define LIB_VECTOR(form, name, type, other) form(name, type##8, other##8)
#else
#define LIB_VECTOR(form, name, type, other) form(name, type##16, other##16)
#endif
#define LIB_WIDTHS(form, name, type, other) form(name, type, other) LIB_VECTOR(form, name, type, other)
#define LIB_SIGNED(form, name)                                                                                \
  LIB_WIDTHS(form, name, char, char) LIB_WIDTHS(form, name, short, short) LIB_WIDTHS(form, name, int, int)    \
  LIB_WIDTHS(form, name, long, long)
#define LIB_UNSIGNED(form, name)                                                                              \
  LIB_WIDTHS(form, name, uchar, char) LIB_WIDTHS(form, name, ushort, short) LIB_WIDTHS(form, name, uint, int) \
  LIB_WIDTHS(form, name, ulong, long)
#define LIB_INTEGERS(form, name) LIB_SIGNED(form, name) LIB_UNSIGNED(form, name)
#ifdef HAS_F64
#define LIB_FLOATS(form, name) LIB_WIDTHS(form, name, float, int) LIB_WIDTHS(form, name, double, long)
#define LIB_FLOATS_AND_INT(form, name) LIB_WIDTHS(form, name, float, int) LIB_WIDTHS(form, name, double, int)
#else
#define LIB_FLOATS(form, name) LIB_WIDTHS(form, name, float, int)
#define LIB_FLOATS_AND_INT(form, name) LIB_FLOATS(form, name)
#endif

#define LIB_UNARY(name, type, mask) type LIB_FUNCTION name(type);
#define LIB_BINARY(name, type, mask) type LIB_FUNCTION name(type, type);
#define LIB_TERNARY(name, type, mask) type LIB_FUNCTION name(type, type, type);
#define LIB_TEST(name, type, mask) int LIB_FUNCTION name(type);
#define LIB_EXPONENT(name, type, integer) integer LIB_FUNCTION name(type);
#define LIB_SCALED(name, type, integer) type LIB_FUNCTION name(type, integer);
#define LIB_SPLIT_EXPONENT(name, type, integer) type LIB_WRITER name(type, __private integer *);

/* --- work-items --- */

size_t LIB_FUNCTION get_global_size(uint);
size_t LIB_FUNCTION get_global_id(uint);
size_t LIB_FUNCTION get_local_id(uint);
size_t LIB_FUNCTION get_group_id(uint);
size_t LIB_FUNCTION get_num_groups(uint);
void LIB_BARRIER barrier(cl_mem_fence_flags);

/* --- mathematics --- */

LIB_FLOATS(LIB_UNARY, acos) LIB_FLOATS(LIB_UNARY, acosh) LIB_FLOATS(LIB_UNARY, asin) LIB_FLOATS(LIB_UNARY, asinh)
LIB_FLOATS(LIB_UNARY, atan) LIB_FLOATS(LIB_UNARY, atanh) LIB_FLOATS(LIB_UNARY, cbrt) LIB_FLOATS(LIB_UNARY, ceil)
LIB_FLOATS(LIB_UNARY, cos) LIB_FLOATS(LIB_UNARY, cosh) LIB_FLOATS(LIB_UNARY, cospi) LIB_FLOATS(LIB_UNARY, erf)
LIB_FLOATS(LIB_UNARY, erfc) LIB_FLOATS(LIB_UNARY, exp) LIB_FLOATS(LIB_UNARY, exp2) LIB_FLOATS(LIB_UNARY, expm1)
LIB_FLOATS(LIB_UNARY, fabs) LIB_FLOATS(LIB_UNARY, floor) LIB_FLOATS(LIB_UNARY, lgamma) LIB_FLOATS(LIB_UNARY, log)
LIB_FLOATS(LIB_UNARY, log2) LIB_FLOATS(LIB_UNARY, log10) LIB_FLOATS(LIB_UNARY, log1p) LIB_FLOATS(LIB_UNARY, rint)
LIB_FLOATS(LIB_UNARY, rsqrt) LIB_FLOATS(LIB_UNARY, sin) LIB_FLOATS(LIB_UNARY, sinh) LIB_FLOATS(LIB_UNARY, sinpi)
LIB_FLOATS(LIB_UNARY, sqrt) LIB_FLOATS(LIB_UNARY, tan) LIB_FLOATS(LIB_UNARY, tanh) LIB_FLOATS(LIB_UNARY, trunc)
LIB_FLOATS(LIB_BINARY, atan2) LIB_FLOATS(LIB_BINARY, copysign) LIB_FLOATS(LIB_BINARY, fmax)
LIB_FLOATS(LIB_BINARY, fmin) LIB_FLOATS(LIB_BINARY, fmod) LIB_FLOATS(LIB_BINARY, hypot) LIB_FLOATS(LIB_BINARY, max)
LIB_FLOATS(LIB_BINARY, min) LIB_FLOATS(LIB_BINARY, nextafter) LIB_FLOATS(LIB_BINARY, pow)
LIB_FLOATS(LIB_TERNARY, clamp) LIB_FLOATS(LIB_TERNARY, fma)
#ifdef QUICK_FUNCTIONS
LIB_WIDTHS(LIB_UNARY, native_exp2, float, int) LIB_WIDTHS(LIB_UNARY, native_recip, float, int)
#endif

/* A test of one number is an int; of a vector, a mask. */
#ifdef HAS_F64
#define LIB_TESTS(name)                                                           \
  int LIB_FUNCTION name(float); LIB_VECTOR(LIB_EXPONENT, name, float, int)        \
  int LIB_FUNCTION name(double); LIB_VECTOR(LIB_EXPONENT, name, double, long)
#else
#define LIB_TESTS(name) LIB_WIDTHS(LIB_EXPONENT, name, float, int)
#endif
LIB_TESTS(isfinite) LIB_TESTS(isinf) LIB_TESTS(isnan)

LIB_FLOATS_AND_INT(LIB_EXPONENT, ilogb) LIB_FLOATS_AND_INT(LIB_SCALED, ldexp)
LIB_FLOATS_AND_INT(LIB_SPLIT_EXPONENT, frexp)

/* --- integers --- */

LIB_INTEGERS(LIB_BINARY, max) LIB_INTEGERS(LIB_BINARY, min) LIB_INTEGERS(LIB_BINARY, mul_hi)
LIB_INTEGERS(LIB_BINARY, rotate) LIB_INTEGERS(LIB_TERNARY, clamp)
#define LIB_MAGNITUDE(name, type, magnitude) magnitude LIB_FUNCTION name(type);
LIB_WIDTHS(LIB_MAGNITUDE, abs, char, uchar) LIB_WIDTHS(LIB_MAGNITUDE, abs, short, ushort)
LIB_WIDTHS(LIB_MAGNITUDE, abs, int, uint) LIB_WIDTHS(LIB_MAGNITUDE, abs, long, ulong)
LIB_UNSIGNED(LIB_UNARY, abs)
LIB_SIGNED(LIB_TEST, any)
uint LIB_FUNCTION popcount(uint);

/* Kernels of attention and of random numbers have vectors of widths of their own, for which they call these. */
#define LIB_OTHER_WIDTHS(form, name, type) \
  form(name, type##2, ) form(name, type##4, ) form(name, type##8, ) form(name, type##16, )
#define LIB_OF_OTHER_WIDTHS(type)                                                            \
  LIB_OTHER_WIDTHS(LIB_TERNARY, fma, type) LIB_OTHER_WIDTHS(LIB_BINARY, fmax, type)          \
  LIB_OTHER_WIDTHS(LIB_UNARY, log, type) LIB_OTHER_WIDTHS(LIB_UNARY, log1p, type)            \
  LIB_OTHER_WIDTHS(LIB_UNARY, sqrt, type) LIB_OTHER_WIDTHS(LIB_UNARY, tan, type)             \
  LIB_OTHER_WIDTHS(LIB_UNARY, sinpi, type) LIB_OTHER_WIDTHS(LIB_UNARY, cospi, type)          \
  LIB_OTHER_WIDTHS(LIB_UNARY, exp, type) LIB_OTHER_WIDTHS(LIB_UNARY, ceil, type)
LIB_EACH_FLOAT(LIB_OF_OTHER_WIDTHS)
LIB_OTHER_WIDTHS(LIB_BINARY, mul_hi, uint)

/* --- conversions --- */

#ifdef HAS_F64
#define LIB_FROM_DOUBLE(to, width) to##width LIB_FUNCTION convert_##to##width(double##width);
#else
#define LIB_FROM_DOUBLE(to, width)
#endif
#define LIB_CONVERT(to, width)                                                                               \
  to##width LIB_FUNCTION convert_##to##width(char##width); to##width LIB_FUNCTION convert_##to##width(uchar##width);   \
  to##width LIB_FUNCTION convert_##to##width(short##width); to##width LIB_FUNCTION convert_##to##width(ushort##width); \
  to##width LIB_FUNCTION convert_##to##width(int##width); to##width LIB_FUNCTION convert_##to##width(uint##width);     \
  to##width LIB_FUNCTION convert_##to##width(long##width); to##width LIB_FUNCTION convert_##to##width(ulong##width);   \
  to##width LIB_FUNCTION convert_##to##width(float##width); LIB_FROM_DOUBLE(to, width)
#ifndef VEC
#define LIB_CONVERSIONS(to) \
  LIB_CONVERT(to, ) LIB_CONVERT(to, 2) LIB_CONVERT(to, 4) LIB_CONVERT(to, 8) LIB_CONVERT(to, 16)
#elif VEC == 1
#define LIB_CONVERSIONS(to) LIB_CONVERT(to, )
#elif VEC == 2
#define LIB_CONVERSIONS(to) LIB_CONVERT(to, ) LIB_CONVERT(to, 2)
#elif VEC == 4
#define LIB_CONVERSIONS(to) LIB_CONVERT(to, ) LIB_CONVERT(to, 4)
#elif VEC == 8
#define LIB_CONVERSIONS(to) LIB_CONVERT(to, ) LIB_CONVERT(to, 8)
#else
#define LIB_CONVERSIONS(to) LIB_CONVERT(to, ) LIB_CONVERT(to, 16)
#endif
LIB_EACH_INTEGER(LIB_CONVERSIONS)
LIB_EACH_FLOAT(LIB_CONVERSIONS)
/* complex numbers; words of random bits */
float2 LIB_FUNCTION convert_float2(float2);
#ifdef HAS_F64
float2 LIB_FUNCTION convert_float2(double2);
double2 LIB_FUNCTION convert_double2(float2);
double2 LIB_FUNCTION convert_double2(double2);
#endif

#define as_char(x) __builtin_astype((x), char)
#define as_uchar(x) __builtin_astype((x), uchar)
#define as_short(x) __builtin_astype((x), short)
#define as_ushort(x) __builtin_astype((x), ushort)
#define as_int(x) __builtin_astype((x), int)
#define as_uint(x) __builtin_astype((x), uint)
#define as_long(x) __builtin_astype((x), long)
#define as_ulong(x) __builtin_astype((x), ulong)
#define as_float(x) __builtin_astype((x), float)
#define as_double(x) __builtin_astype((x), double)
#define as_char2(x) __builtin_astype((x), char2)
#define as_uchar2(x) __builtin_astype((x), uchar2)
#define as_short2(x) __builtin_astype((x), short2)
#define as_ushort2(x) __builtin_astype((x), ushort2)
#define as_int2(x) __builtin_astype((x), int2)
#define as_uint2(x) __builtin_astype((x), uint2)
#define as_long2(x) __builtin_astype((x), long2)
#define as_ulong2(x) __builtin_astype((x), ulong2)
#define as_float2(x) __builtin_astype((x), float2)
#define as_double2(x) __builtin_astype((x), double2)
#define as_char4(x) __builtin_astype((x), char4)
#define as_uchar4(x) __builtin_astype((x), uchar4)
#define as_short4(x) __builtin_astype((x), short4)
#define as_ushort4(x) __builtin_astype((x), ushort4)
#define as_int4(x) __builtin_astype((x), int4)
#define as_uint4(x) __builtin_astype((x), uint4)
#define as_long4(x) __builtin_astype((x), long4)
#define as_ulong4(x) __builtin_astype((x), ulong4)
#define as_float4(x) __builtin_astype((x), float4)
#define as_double4(x) __builtin_astype((x), double4)
#define as_char8(x) __builtin_astype((x), char8)
#define as_uchar8(x) __builtin_astype((x), uchar8)
#define as_short8(x) __builtin_astype((x), short8)
#define as_ushort8(x) __builtin_astype((x), ushort8)
#define as_int8(x) __builtin_astype((x), int8)
#define as_uint8(x) __builtin_astype((x), uint8)
#define as_long8(x) __builtin_astype((x), long8)
#define as_ulong8(x) __builtin_astype((x), ulong8)
#define as_float8(x) __builtin_astype((x), float8)
#define as_double8(x) __builtin_astype((x), double8)
#define as_char16(x) __builtin_astype((x), char16)
#define as_uchar16(x) __builtin_astype((x), uchar16)
#define as_short16(x) __builtin_astype((x), short16)
#define as_ushort16(x) __builtin_astype((x), ushort16)
#define as_int16(x) __builtin_astype((x), int16)
#define as_uint16(x) __builtin_astype((x), uint16)
#define as_long16(x) __builtin_astype((x), long16)
#define as_ulong16(x) __builtin_astype((x), ulong16)
#define as_float16(x) __builtin_astype((x), float16)
#define as_double16(x) __builtin_astype((x), double16)

/* --- memory --- */

/* Loads and stores of vectors are defined here, as accesses of a vector that lies at a multiple of its elements' size.
 * PoCL 3.1's are made of pairs of elements, out of which LLVM does not always make one access again: it then computes, and
 * converts half types, pair by pair. */
#define LIB_INLINE static inline __attribute__((overloadable, always_inline))
#define LIB_VLOAD(type, space, n)                                                \
  LIB_INLINE type##n vload##n(size_t i, const space type *p) {                   \
    typedef type##n loose __attribute__((aligned(sizeof(type))));                \
    return *(const space loose *)(p + n * i);                                    \
  }
#define LIB_VSTORE(type, space, n)                                               \
  LIB_INLINE void vstore##n(type##n v, size_t i, space type *p) {                \
    typedef type##n loose __attribute__((aligned(sizeof(type))));                \
    *(space loose *)(p + n * i) = v;                                             \
  }
#define LIB_VLOADS(type, space) \
  LIB_VLOAD(type, space, 2) LIB_VLOAD(type, space, 4) LIB_VLOAD(type, space, 8) LIB_VLOAD(type, space, 16)
#define LIB_VSTORES(type, space) \
  LIB_VSTORE(type, space, 2) LIB_VSTORE(type, space, 4) LIB_VSTORE(type, space, 8) LIB_VSTORE(type, space, 16)
#define LIB_MEMORY(type)                                                                                     \
  LIB_VLOADS(type, __global) LIB_VLOADS(type, __local) LIB_VLOADS(type, __private)                           \
  LIB_VSTORES(type, __global) LIB_VSTORES(type, __local) LIB_VSTORES(type, __private)
LIB_EACH_INTEGER(LIB_MEMORY)
LIB_EACH_FLOAT(LIB_MEMORY)

#define LIB_HALVES(space)                                                                                    \
  float LIB_READER vload_half(size_t, const space half *); float2 LIB_READER vload_half2(size_t, const space half *); \
  float4 LIB_READER vload_half4(size_t, const space half *);                                                   \
  float8 LIB_READER vload_half8(size_t, const space half *); float16 LIB_READER vload_half16(size_t, const space half *);
LIB_HALVES(__global) LIB_HALVES(__local) LIB_HALVES(__private)
#define LIB_STORE_HALVES(rounding, space)                                                                    \
  void LIB_WRITER vstore_half##rounding(float, size_t, space half *);                                        \
  void LIB_WRITER vstore_half2##rounding(float2, size_t, space half *);                                      \
  void LIB_WRITER vstore_half4##rounding(float4, size_t, space half *);                                      \
  void LIB_WRITER vstore_half8##rounding(float8, size_t, space half *);                                      \
  void LIB_WRITER vstore_half16##rounding(float16, size_t, space half *);
#define LIB_ROUNDED_HALVES(space) \
  LIB_STORE_HALVES(, space) LIB_STORE_HALVES(_rte, space) LIB_STORE_HALVES(_rtz, space)
LIB_ROUNDED_HALVES(__global) LIB_ROUNDED_HALVES(__local) LIB_ROUNDED_HALVES(__private)

#define LIB_ATOMICS(type, space)                                                                             \
  type LIB_WRITER atomic_add(volatile space type *, type); type LIB_WRITER atomic_sub(volatile space type *, type); \
  type LIB_WRITER atomic_xchg(volatile space type *, type); type LIB_WRITER atomic_inc(volatile space type *); \
  type LIB_WRITER atomic_min(volatile space type *, type); type LIB_WRITER atomic_max(volatile space type *, type); \
  type LIB_WRITER atomic_and(volatile space type *, type); type LIB_WRITER atomic_or(volatile space type *, type); \
  type LIB_WRITER atomic_cmpxchg(volatile space type *, type, type);
LIB_ATOMICS(int, __global) LIB_ATOMICS(uint, __global) LIB_ATOMICS(int, __local) LIB_ATOMICS(uint, __local)
float LIB_WRITER atomic_xchg(volatile __global float *, float);

#define LIB_PREFETCH(p) __builtin_prefetch((const void *)(ulong)(p))
