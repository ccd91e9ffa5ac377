/* In front of every kernel: types, loads and stores. The head above it defines
 *   VEC         lanes a work-item handles at a time: 1, 4, 8 or 16
 *   CT, UT, MT  compute type; the unsigned and the signed integer of its size
 *   CLASS_*     FLOAT, INT or COMPLEX: what CT is
 *   LOCAL       the work-group size, fixed, since each other size costs a compilation
 * Half types are loaded to f32 and rounded once, at the store. + - x stay what IEEE says they are: no contraction. */
#pragma OPENCL FP_CONTRACT OFF
#ifdef HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

#if VEC == 1
#define VEC_OF(type) type
#define VLOAD(p) (*(p))
#define VSTORE(v, p) (*(p) = (v))
#define VLOAD_HALF vload_half
#define VSTORE_HALF vstore_half_rte
#else
#define VEC_OF(type) CAT(type, VEC)
#define VLOAD(p) CAT(vload, VEC)(0, p)
#define VSTORE(v, p) CAT(vstore, VEC)(v, 0, p)
#define VLOAD_HALF CAT(vload_half, VEC)
#define VSTORE_HALF CAT(CAT(vstore_half, VEC), _rte)
#endif
#define CONVERT(type, v) CAT(convert_, VEC_OF(type))(v)
#define AS(type, v) CAT(as_, VEC_OF(type))(v)

/* The larger of two numbers, lane by lane, and NaN where one of them is. */
#define LARGER(a, b) (((a) > (b)) | ((a) != (a)) ? (a) : (b))

/* In front of a loop over lanes. Where the head says SMALL, the call is small, and so should be the code of its kernel: most
 * of what a compiler takes goes into loops that it unrolls or makes vectors of. */
#ifdef SMALL
#define OVER_LANES _Pragma("clang loop unroll(disable) vectorize(disable)")
#else
#define OVER_LANES
#endif

/* In front of a loop of a few rounds that a GPU is to have on their way together, or whose places are to be registers. Where
 * a processor runs kernels for GPUs, speed is not what is asked, and most of the time goes into compiling their code: it is
 * kept short. */
#ifdef GPU_KERNELS_ON_CPU
#define AT_THE_SAME_TIME _Pragma("clang loop unroll(disable) vectorize(disable)")
#else
#define AT_THE_SAME_TIME _Pragma("unroll")
#endif

/* Of a function that is given local memory. PoCL 3.1 makes a kernel's local variables each work-group's own only where the
 * kernel itself names them; but a function that is not inlined at once and always gets the same one comes to name it,
 * and work-groups on several threads then share it. */
#define INLINED __attribute__((always_inline))

/* An array that a work-group shares, one place for each work-item. One that is alone asks nobody, and gets none: PoCL 5
 * aborts where a kernel's local array is of no use once it is optimized. */
#if LOCAL > 1
#define GROUP_ARRAY(type, name) __local type name[LOCAL]
#else
#define GROUP_ARRAY(type, name) __local type *const name = 0
#endif

/* Where p points is read soon. OpenCL C's own prefetch does nothing on a CPU. */
#ifdef LIB_PREFETCH
#define PREFETCH(p) LIB_PREFETCH(p)
#else
#define PREFETCH(p)
#endif

/* A constant of the compute type. */
#ifdef IS_DOUBLE
#define K(x) x
#else
#define K(x) x##f
#endif
/* The strides of an operand, in a struct that is an argument: `STRIDES(rank) stride[operands]`. Not an array of arrays,
 * as rusticl in Mesa 22.3 takes the size of a struct that has one to be less than it is. Its llvmpipe crashes where an
 * argument is indexed by what is not known once loops are unrolled: such loops run to their end, without break. */
#define STRIDES(rank) \
  struct {            \
    long along[rank]; \
  }

#define VT VEC_OF(CT) /* a vector of values */
#define VM VEC_OF(MT) /* a vector of masks, 0 or -1 */
/* Whether a comparison is true in some lane. Of scalars it is 1, which any() takes for false. */
#if VEC == 1
#define SOME(mask) (mask)
#else
#define SOME(mask) any(mask)
#endif

/* How an element lies in memory. */
#define R_bool uchar
#define R_u8 uchar
#define R_i8 char
#define R_i16 short
#define R_i32 int
#define R_i64 long
#define R_u16 ushort
#define R_u32 uint
#define R_u64 ulong
#define R_f16 ushort
#define R_bf16 ushort
#define R_f8_e4m3fn uchar
#define R_f8_e5m2 uchar
#define R_f32 float
#define R_f64 double
#define R_c64 float2
#define R_c128 double2
#define RAW(dtype) CAT(R_, dtype)

/* VEC elements from `p`, a pointer to raw elements in `space`. */
#define LOAD_bool(space, p) VLOAD(p)
#define LOAD_u8(space, p) VLOAD(p)
#define LOAD_i8(space, p) VLOAD(p)
#define LOAD_i16(space, p) VLOAD(p)
#define LOAD_i32(space, p) VLOAD(p)
#define LOAD_i64(space, p) VLOAD(p)
#define LOAD_u16(space, p) VLOAD(p)
#define LOAD_u32(space, p) VLOAD(p)
#define LOAD_u64(space, p) VLOAD(p)
#define LOAD_f16(space, p) from_f16(VLOAD(p))
#define LOAD_bf16(space, p) AS(float, CONVERT(uint, VLOAD(p)) << 16)
#define LOAD_f8_e4m3fn(space, p) from_e4m3fn(VLOAD(p))
#define LOAD_f8_e5m2(space, p) from_f16(CONVERT(ushort, VLOAD(p)) << (VEC_OF(ushort))8)
#define LOAD_f32(space, p) VLOAD(p)
#define LOAD_f64(space, p) VLOAD(p)
#define LOAD_c64(space, p) VLOAD(p)
#define LOAD_c128(space, p) VLOAD(p)
#if !defined(CLASS_COMPLEX)
#define LOAD(dtype, space, p) CONVERT(CT, CAT(LOAD_, dtype)(space, p))
#else
/* Of complex numbers there is one lane. Real elements get an imaginary part of 0. */
#ifdef IS_DOUBLE
#define PART double
#define WIDEN_float2 convert_double2
#define WIDEN_double2 convert_double2
#else
#define PART float
#define WIDEN_float2 convert_float2
#define WIDEN_double2 convert_float2
#endif
#define FROM_PART(v) (CT)((PART)(v), 0)
#define WIDEN_uchar FROM_PART
#define WIDEN_char FROM_PART
#define WIDEN_short FROM_PART
#define WIDEN_int FROM_PART
#define WIDEN_long FROM_PART
#define WIDEN_ushort FROM_PART
#define WIDEN_uint FROM_PART
#define WIDEN_ulong FROM_PART
#define WIDEN_float FROM_PART
#define WIDEN_double FROM_PART
#define LOAD(dtype, space, p) CAT(WIDEN_, RAW(dtype))(CAT(LOAD_, dtype)(space, p))
#endif

/* The driver's conversions, but on a variable: PoCL's vstore_half needs more alignment than OpenCL lets it ask for. */
static VEC_OF(float) from_f16(VEC_OF(ushort) bits) { return VLOAD_HALF(0, (__private const half *)&bits); }
static VEC_OF(ushort) to_f16(VEC_OF(float) x) {
  VEC_OF(ushort) bits;
  VSTORE_HALF(x, 0, (__private half *)&bits);
  return bits;
}

/* Round to nearest, ties to even; a NaN stays one. */
#ifdef CONVERTS_BF16 /* NVIDIA's own instruction, sm_80 and later, by inline PTX: two numbers, the first in the upper half */
static uint two_bf16(float upper, float lower) {
  uint bits;
  __asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(upper), "f"(lower));
  return bits;
}
#if VEC == 1
static ushort to_bf16(float x) { return (ushort)two_bf16(0, x); }
#elif VEC == 2
static ushort2 to_bf16(float2 x) { return as_ushort2(two_bf16(x.y, x.x)); }
#else
static uint2 four_bf16(float4 x) { return (uint2)(two_bf16(x.y, x.x), two_bf16(x.w, x.z)); }
#if VEC == 4
static ushort4 to_bf16(float4 x) { return as_ushort4(four_bf16(x)); }
#elif VEC == 8
static ushort8 to_bf16(float8 x) { return as_ushort8((uint4)(four_bf16(x.lo), four_bf16(x.hi))); }
#else
static ushort16 to_bf16(float16 x) {
  return as_ushort16((uint8)(four_bf16(x.lo.lo), four_bf16(x.lo.hi), four_bf16(x.hi.lo), four_bf16(x.hi.hi)));
}
#endif
#endif
#else
static VEC_OF(ushort) to_bf16(VEC_OF(float) x) {
  VEC_OF(uint) bits = AS(uint, x);
  VEC_OF(uint) rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  VEC_OF(uint) nan = (bits >> 16) | 0x40u;
  return CONVERT(ushort, x != x ? nan : rounded);
}
#endif

/* Float8: below the normal numbers in units of the smallest one. e4m3fn has no infinity and saturates; a NaN of either has
 * all bits set but the sign's. */
static VEC_OF(float) from_e4m3fn(VEC_OF(uchar) x) {
  VEC_OF(uint) bits = CONVERT(uint, x), size = bits & 0x7fu, sign = (bits & 0x80u) << 24;
  VEC_OF(uint) small = AS(uint, CONVERT(float, size) * 0x1p-9f), normal = (size << 20) + 0x3c000000u;
  VEC_OF(uint) wide = size < 8u ? small : normal;
  return AS(float, (size == 0x7fu ? (VEC_OF(uint))0x7fc00000u : wide) | sign);
}
static VEC_OF(uchar) to_float8(VEC_OF(float) x, uint dropped, uint least, float units, uint most, uint beyond) {
  VEC_OF(uint) bits = AS(uint, x), size = bits & 0x7fffffffu;
  VEC_OF(uint) small = CONVERT(uint, rint(fmin(AS(float, size), AS(float, (VEC_OF(uint))least)) * units));
  VEC_OF(uint) normal = ((size + ((1u << (dropped - 1u)) - 1u) + ((size >> dropped) & 1u)) >> dropped);
  normal -= (least >> dropped) - (1u << (23u - dropped));
  VEC_OF(uint) to = size < least ? small : normal > most ? (VEC_OF(uint))beyond : normal;
  to = size > 0x7f800000u ? (VEC_OF(uint))0x7fu : to;
  return CONVERT(uchar, to | (bits >> 24 & 0x80u));
}
static VEC_OF(uchar) to_e4m3fn(VEC_OF(float) x) { return to_float8(x, 20, 0x3c800000u, 0x1p9f, 0x7e, 0x7e); }
static VEC_OF(uchar) to_e5m2(VEC_OF(float) x) { return to_float8(x, 21, 0x38800000u, 0x1p16f, 0x7b, 0x7c); }

/* Values on their way to an integer: truncated as C does, then wrapped to the size. */
#if defined(CLASS_FLOAT)
#define INTEGER(v) CONVERT(long, v)
#define REAL(v) (v)
#define NONZERO(v) ((v) != (VT)0)
#elif defined(CLASS_INT)
#define INTEGER(v) (v)
#define REAL(v) (v)
#define NONZERO(v) ((v) != (VT)0)
#else
#define REAL(v) ((v).x)
#define INTEGER(v) convert_long((v).x)
#define NONZERO(v) (((v).x != 0) | ((v).y != 0))
#endif

#define STORE_bool(space, p, v) VSTORE(CONVERT(uchar, NONZERO(v)) & (uchar)1, p)
#define STORE_u8(space, p, v) VSTORE(CONVERT(uchar, INTEGER(v)), p)
#define STORE_i8(space, p, v) VSTORE(CONVERT(char, INTEGER(v)), p)
#define STORE_i16(space, p, v) VSTORE(CONVERT(short, INTEGER(v)), p)
#define STORE_i32(space, p, v) VSTORE(CONVERT(int, INTEGER(v)), p)
#define STORE_i64(space, p, v) VSTORE(CONVERT(long, INTEGER(v)), p)
#define STORE_u16(space, p, v) VSTORE(CONVERT(ushort, INTEGER(v)), p)
#define STORE_u32(space, p, v) VSTORE(CONVERT(uint, INTEGER(v)), p)
#define STORE_u64(space, p, v) VSTORE(CONVERT(ulong, INTEGER(v)), p)
#define STORE_f16(space, p, v) VSTORE(to_f16(CONVERT(float, REAL(v))), p)
#define STORE_bf16(space, p, v) VSTORE(to_bf16(CONVERT(float, REAL(v))), p)
#define STORE_f8_e4m3fn(space, p, v) VSTORE(to_e4m3fn(CONVERT(float, REAL(v))), p)
#define STORE_f8_e5m2(space, p, v) VSTORE(to_e5m2(CONVERT(float, REAL(v))), p)
#define STORE_f32(space, p, v) VSTORE(CONVERT(float, REAL(v)), p)
#define STORE_f64(space, p, v) VSTORE(CONVERT(double, REAL(v)), p)
#ifdef CLASS_COMPLEX
#define STORE_c64(space, p, v) VSTORE(convert_float2(v), p)
#define STORE_c128(space, p, v) VSTORE(convert_double2(v), p)
#else
#define STORE_c64(space, p, v) VSTORE((float2)((float)(v), 0), p)
#define STORE_c128(space, p, v) VSTORE((double2)((double)(v), 0), p)
#endif
#define STORE(dtype, space, p, v) CAT(STORE_, dtype)(space, p, v)

/* A kernel's head (KERNEL_OF work-groups of another size) and, among its parameters, a buffer with the place where a
 * tensor begins in it; then as elements. */
#define KERNEL_OF(width, height) __kernel __attribute__((reqd_work_group_size(width, height, 1))) void
#define KERNEL KERNEL_OF(LOCAL, 1)
#define PLACE(name) __global uchar *name, ulong offset_##name
#define CONST_PLACE(name) __global const uchar *name, ulong offset_##name
#define POINTER(dtype, name) ((__global RAW(dtype) *)(name + offset_##name))
#define CONST_POINTER(dtype, name) ((__global const RAW(dtype) *)(name + offset_##name))

#if VEC == 1
#define LANE_0(v) (v)
#else
#define LANE_0(v) ((v).s0)
#endif

/* DEFINE_ACCESS(name, dtype): get_name(p, n) and put_name(p, v, n) of n lanes; lanes beyond are copies of the first. And
 * one_name(p): one number, whatever VEC is. It stands in all lanes, of which compilers then leave one. */
#define DEFINE_ACCESS(name, dtype)                                              \
  static VT get_##name(__global const RAW(dtype) * p, int n) {                  \
    if (n == VEC) return LOAD(dtype, __global, p);                              \
    RAW(dtype) lanes[VEC];                                                      \
    for (int j = 0; j < VEC; j++) lanes[j] = p[j < n ? j : 0];                  \
    return LOAD(dtype, __private, lanes);                                       \
  }                                                                             \
  static void put_##name(__global RAW(dtype) * p, VT v, int n) {                \
    if (n == VEC) {                                                             \
      STORE(dtype, __global, p, v);                                             \
      return;                                                                   \
    }                                                                           \
    RAW(dtype) lanes[VEC];                                                      \
    STORE(dtype, __private, lanes, v);                                          \
    for (int j = 0; j < n; j++) p[j] = lanes[j];                                \
  }                                                                             \
  static CT one_##name(__global const RAW(dtype) * p) {                         \
    const VEC_OF(RAW(dtype)) same = *p;                                         \
    return LANE_0(LOAD(dtype, __private, (__private const RAW(dtype) *)&same)); \
  }

/* Arithmetic that every class has; integers wrap, which C leaves undefined for signed ones. (CT)(ONE) is 1. */
#if defined(CLASS_COMPLEX)
#define ONE 1, 0
#else
#define ONE 1
#endif
#if defined(CLASS_INT)
#define ADD(a, b) AS(CT, AS(UT, a) + AS(UT, b))
#define SUB(a, b) AS(CT, AS(UT, a) - AS(UT, b))
#define MUL(a, b) AS(CT, AS(UT, a) * AS(UT, b))
#define MULTIPLY_ADD(a, b, c) ADD(c, MUL(a, b))
#define NEG(a) SUB((VT)0, a)
#elif defined(CLASS_FLOAT)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define MULTIPLY_ADD(a, b, c) fma(a, b, c)
#define NEG(a) (-(a))
/* PoCL 3.1's pow of double vectors is wrong where lanes differ in kind (one of them 0 or 1, say): lane by lane. */
#if defined(IS_DOUBLE) && VEC > 1
static VT pow_by_lanes(VT a, VT b) {
  CT bases[VEC], powers[VEC];
  VSTORE(a, bases);
  VSTORE(b, powers);
  for (int i = 0; i < VEC; i++) bases[i] = pow(bases[i], powers[i]);
  return VLOAD(bases);
}
#define POW(a, b) pow_by_lanes(a, b)
#else
#define POW(a, b) pow(a, b)
#endif
#else
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) complex_mul(a, b)
#define MULTIPLY_ADD(a, b, c) ADD(c, MUL(a, b))
#define NEG(a) (-(a))
static VT complex_mul(VT a, VT b) { return (VT)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
#endif

/* Leaves the first fault of a stream in its words: an index and the size that it should lie below, or one of these in
 * the size's place (fault.h). */
#define FAULT_WEIGHTS -1
#define FAULT_PROBABILITY -2
#define FAULT_DIVISION -3
#define FAULT_SEGMENTS -4
#define FAULT_PIVOT -5
#define FAULT_RANGE -6
#define REPORT(words, op_id, index, size) report_fault(words, op_id, index, size)
static void report_fault(__global long *words, int op_id, long index, long size) {
  if (atomic_cmpxchg((volatile __global int *)words, 0, op_id) != 0) return;
  words[1] = index;
  words[2] = size;
}
