/* Conversions of single values between dtypes, with one rounding. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor/dtype.h"

/* A binary format narrower than f64: sign, exponent, fraction from the top of `bits` bits. */
typedef struct dt_format {
  int bits, fraction; /* widths */
  int bias;
  uint32_t largest;  /* magnitude bits of the largest finite value */
  uint32_t overflow; /* magnitude bits that a larger value becomes: infinity, or `largest` where there is none */
  uint32_t nan;      /* magnitude bits of NaN as it is written */
  bool has_infinity;
} dt_format;

static const dt_format format_f16 = {16, 10, 15, 0x7bff, 0x7c00, 0x7e00, true};
static const dt_format format_bf16 = {16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, true};
/* No infinity; what is too large saturates, infinities included, as PyTorch's cast does from 2.13 on. */
static const dt_format format_e4m3fn = {8, 3, 7, 0x7e, 0x7e, 0x7f, false};
static const dt_format format_e5m2 = {8, 2, 15, 0x7b, 0x7c, 0x7f, true};

static uint64_t double_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static double bits_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* To double, rounded to odd: rounding that once more to a format with at least two bits fewer gives what rounding
 * `value` itself would. */
static uint64_t round_to_odd(long double value) {
  double nearest = (double)value;
  uint64_t bits = double_bits(nearest);
  if ((long double)nearest == value || isnan(nearest)) return bits;
  if (fabsl((long double)nearest) > fabsl(value)) bits--; /* towards zero; from infinity, the largest double */
  return bits | 1;
}

/* The nearest value, ties to even, of the double with these bits. */
static uint32_t narrow(const dt_format *f, uint64_t bits) {
  uint32_t sign = (uint32_t)(bits >> 63) << (f->bits - 1);
  uint64_t magnitude = bits & ~(UINT64_C(1) << 63);
  if (magnitude > UINT64_C(0x7ff) << 52) return sign | f->nan;
  if (magnitude == UINT64_C(0x7ff) << 52) return sign | f->overflow;
  int exponent = (int)(magnitude >> 52) - 1023 + f->bias; /* biased as in the target; below 1: denormal there */
  uint64_t significand = (magnitude & ((UINT64_C(1) << 52) - 1)) | (UINT64_C(1) << 52);
  int shift = 52 - f->fraction;
  if (exponent < 1) {
    if (exponent < -f->fraction) return sign; /* below half of the smallest; a double's own denormals come here too */
    shift += 1 - exponent;
    exponent = 1;
  }
  uint64_t kept = significand >> shift, rest = significand & ((UINT64_C(1) << shift) - 1);
  uint64_t half = UINT64_C(1) << (shift - 1);
  if (rest > half || (rest == half && (kept & 1))) kept++;
  /* kept holds the implicit bit where there is one, which adds 1 to the exponent field; so does a carry. */
  uint64_t encoded = kept + ((uint64_t)(exponent - 1) << f->fraction);
  return sign | (encoded > f->largest ? f->overflow : (uint32_t)encoded);
}

static double widen(const dt_format *f, uint32_t bits) {
  uint64_t sign = (uint64_t)(bits >> (f->bits - 1)) << 63;
  uint32_t magnitude = bits & ((1u << (f->bits - 1)) - 1);
  if (magnitude > f->largest) {
    bool infinite = f->has_infinity && magnitude == f->overflow;
    return bits_double(sign | UINT64_C(0x7ff) << 52 | (infinite ? 0 : UINT64_C(1) << 51));
  }
  uint32_t exponent = magnitude >> f->fraction, fraction = magnitude & ((1u << f->fraction) - 1);
  if (exponent == 0) {
    double unit = bits_double((uint64_t)(1023 + 1 - f->bias - f->fraction) << 52);
    return bits_double(double_bits(fraction * unit) | sign);
  }
  return bits_double(sign | (uint64_t)((int)exponent - f->bias + 1023) << 52 |
                     (uint64_t)fraction << (52 - f->fraction));
}

static const dt_format *format_f8(graft_dtype dtype) {
  return dtype == GRAFT_F8_E5M2 ? &format_e5m2 : &format_e4m3fn;
}

static uint32_t round_narrow(const dt_format *f, long double value) {
  return narrow(f, round_to_odd(value));
}

/* Towards zero, then modulo 2^64. What fits neither i64 nor u64, NaN too, is 2^63, as x86 converts it. */
static uint64_t to_integer(long double value) {
  if (value > -0x1p63L - 1 && value < 0x1p63L) return (uint64_t)(int64_t)value;
  if (value >= 0x1p63L && value < 0x1p64L) return (uint64_t)value;
  return UINT64_C(1) << 63;
}

/* An element, out of memory where it need not be aligned. Storing the low bytes of an integer is wrapping. */
typedef union raw_element {
  uint8_t u8;
  int8_t i8;
  uint16_t u16;
  int16_t i16;
  uint32_t u32;
  int32_t i32;
  uint64_t u64;
  int64_t i64;
  float f32[2];
  double f64[2];
  long double wide[2];
} raw_element;

/* Inlined where the dtype is a constant. */
#define DT_INLINED static inline __attribute__((always_inline))

/* clang-format off */
DT_INLINED dt_value load(graft_dtype dtype, const void *element) {
  raw_element raw;
  switch (dtype) {
    case GRAFT_BOOL: memcpy(&raw, element, 1); return (dt_value){raw.u8 != 0, 0};
    case GRAFT_U8: memcpy(&raw, element, 1); return (dt_value){raw.u8, 0};
    case GRAFT_I8: memcpy(&raw, element, 1); return (dt_value){raw.i8, 0};
    case GRAFT_I16: memcpy(&raw, element, 2); return (dt_value){raw.i16, 0};
    case GRAFT_I32: memcpy(&raw, element, 4); return (dt_value){raw.i32, 0};
    case GRAFT_I64: memcpy(&raw, element, 8); return (dt_value){raw.i64, 0};
    case GRAFT_U16: memcpy(&raw, element, 2); return (dt_value){raw.u16, 0};
    case GRAFT_U32: memcpy(&raw, element, 4); return (dt_value){raw.u32, 0};
    case GRAFT_U64: memcpy(&raw, element, 8); return (dt_value){raw.u64, 0};
    case GRAFT_F16: memcpy(&raw, element, 2); return (dt_value){widen(&format_f16, raw.u16), 0};
    case GRAFT_BF16: memcpy(&raw, element, 2); return (dt_value){widen(&format_bf16, raw.u16), 0};
    case GRAFT_F32: memcpy(&raw, element, 4); return (dt_value){raw.f32[0], 0};
    case GRAFT_F64: memcpy(&raw, element, 8); return (dt_value){raw.f64[0], 0};
    case GRAFT_WIDE: memcpy(&raw, element, 16); return (dt_value){raw.wide[0], 0};
    case GRAFT_C64: memcpy(&raw, element, 8); return (dt_value){raw.f32[0], raw.f32[1]};
    case GRAFT_C128: memcpy(&raw, element, 16); return (dt_value){raw.f64[0], raw.f64[1]};
    case GRAFT_WIDE_COMPLEX: memcpy(&raw, element, 32); return (dt_value){raw.wide[0], raw.wide[1]};
    case GRAFT_F8_E4M3FN:
    case GRAFT_F8_E5M2: memcpy(&raw, element, 1); return (dt_value){widen(format_f8(dtype), raw.u8), 0};
    default: return (dt_value){0, 0};
  }
}

DT_INLINED void store(graft_dtype dtype, void *element, dt_value value) {
  raw_element raw;
  switch (dtype) {
    case GRAFT_BOOL: raw.u8 = value.re != 0 || value.im != 0; memcpy(element, &raw, 1); return;
    case GRAFT_U8:
    case GRAFT_I8: raw.u8 = (uint8_t)to_integer(value.re); memcpy(element, &raw, 1); return;
    case GRAFT_U16:
    case GRAFT_I16: raw.u16 = (uint16_t)to_integer(value.re); memcpy(element, &raw, 2); return;
    case GRAFT_U32:
    case GRAFT_I32: raw.u32 = (uint32_t)to_integer(value.re); memcpy(element, &raw, 4); return;
    case GRAFT_U64:
    case GRAFT_I64: raw.u64 = to_integer(value.re); memcpy(element, &raw, 8); return;
    case GRAFT_F16: raw.u16 = round_narrow(&format_f16, value.re); memcpy(element, &raw, 2); return;
    case GRAFT_BF16: raw.u16 = round_narrow(&format_bf16, value.re); memcpy(element, &raw, 2); return;
    case GRAFT_F32: raw.f32[0] = (float)value.re; memcpy(element, &raw, 4); return;
    case GRAFT_F64: raw.f64[0] = (double)value.re; memcpy(element, &raw, 8); return;
    case GRAFT_WIDE: raw.wide[0] = value.re; memcpy(element, &raw, 16); return;
    case GRAFT_C64: raw.f32[0] = (float)value.re; raw.f32[1] = (float)value.im; memcpy(element, &raw, 8); return;
    case GRAFT_C128: raw.f64[0] = (double)value.re; raw.f64[1] = (double)value.im; memcpy(element, &raw, 16); return;
    case GRAFT_WIDE_COMPLEX: raw.wide[0] = (long double)value.re; raw.wide[1] = (long double)value.im; memcpy(element, &raw, 32); return;
    case GRAFT_F8_E4M3FN:
    case GRAFT_F8_E5M2: raw.u8 = (uint8_t)round_narrow(format_f8(dtype), value.re); memcpy(element, &raw, 1); return;
    default: return;
  }
}

/* A row of elements chooses once between the dtypes, and each has a loop of its own. */
#define CASE(name, loop) case GRAFT_##name: loop(GRAFT_##name); return;
#define LOOP_OF(dtype, loop) \
  switch (dtype) { \
    CASE(BOOL, loop) CASE(U8, loop) CASE(I8, loop) CASE(I16, loop) CASE(I32, loop) CASE(I64, loop) CASE(U16, loop) \
    CASE(U32, loop) CASE(U64, loop) CASE(F16, loop) CASE(BF16, loop) CASE(F32, loop) CASE(F64, loop) CASE(C64, loop) \
    CASE(C128, loop) CASE(F8_E4M3FN, loop) CASE(F8_E5M2, loop) CASE(WIDE_COMPLEX, loop) \
    default: return; \
  }
/* clang-format on */

dt_value dt_load(graft_dtype dtype, const void *element) {
  return load(dtype, element);
}

void dt_store(graft_dtype dtype, void *element, dt_value value) {
  store(dtype, element, value);
}

/* Nothing is converted, so bytes are copied: an x87 unit takes long to load and to store ten of them. */
static void load_wide(const char *from, int64_t bytes, int64_t count, dt_parts to) {
  for (int64_t i = 0; i < count; i++) memcpy(&to.re[i * to.step], from + i * bytes, sizeof *to.re);
  for (int64_t i = 0; to.im && i < count; i++) to.im[i * to.step] = 0;
}

static void store_wide(char *to, int64_t bytes, int64_t count, dt_parts from) {
  for (int64_t i = 0; i < count; i++) memcpy(to + i * bytes, &from.re[i * from.step], sizeof *from.re);
}

void dt_load_row(graft_dtype dtype, const void *row, int64_t bytes, int64_t count, dt_parts to) {
  const char *from = row;
  if (dtype == GRAFT_WIDE) {
    load_wide(from, bytes, count, to);
    return;
  }
#define LOAD(constant)                                       \
  for (int64_t i = 0; i < count; i++) {                      \
    const dt_value value = load(constant, from + i * bytes); \
    to.re[i * to.step] = value.re;                           \
    if (to.im) to.im[i * to.step] = value.im;                \
  }
  LOOP_OF(dtype, LOAD)
}

void dt_store_row(graft_dtype dtype, void *row, int64_t bytes, int64_t count, dt_parts from) {
  char *to = row;
  if (dtype == GRAFT_WIDE) {
    store_wide(to, bytes, count, from);
    return;
  }
#define STORE(constant)                                                                                        \
  for (int64_t i = 0; i < count; i++) {                                                                        \
    store(constant, to + i * bytes, (dt_value){from.re[i * from.step], from.im ? from.im[i * from.step] : 0}); \
  }
  LOOP_OF(dtype, STORE)
}

long double dt_largest(graft_dtype dtype) {
  switch (dt_real(dtype)) {
    case GRAFT_F16: return 65504;
    case GRAFT_BF16: return 0x1.fep127L;
    case GRAFT_F32: return FLT_MAX;
    case GRAFT_F64: return DBL_MAX;
    case GRAFT_F8_E4M3FN: return 448;
    case GRAFT_F8_E5M2: return 57344;
    case GRAFT_BOOL: return 1;
    default: break;
  }
  if (!dt_is_integral(dtype, false)) return LDBL_MAX; /* what only the oracle knows */
  return ldexpl(1, (int)(8 * dt_bytes(dtype)) - !dt_is_unsigned(dtype)) - 1;
}

long double dt_round(graft_dtype dtype, long double value) {
  if (dtype == GRAFT_F32) return (float)value;
  if (dtype == GRAFT_F64) return (double)value;
  unsigned char element[32];
  dt_store(dtype, element, (dt_value){value, 0});
  return dt_load(dtype, element).re;
}

dt_value dt_scalar_value(const graft_scalar *scalar) {
  dt_value value = {0, 0};
  switch (scalar->dtype) {
    case GRAFT_BOOL: value.re = scalar->value.i != 0; break;
    case GRAFT_I64: value.re = (long double)scalar->value.i; break;
    case GRAFT_U64: value.re = (long double)(uint64_t)scalar->value.i; break;
    case GRAFT_F64: value.re = scalar->value.f; break;
    case GRAFT_C128: value.re = scalar->value.c[0], value.im = scalar->value.c[1]; break;
    default: break;
  }
  return value;
}

graft_scalar dt_item(graft_dtype dtype, const void *element) {
  graft_scalar scalar = {GRAFT_DTYPE_NONE, 0, {0}};
  dt_value value = dt_load(dtype, element);
  switch (dt_category_of(dtype)) {
    case DT_BOOL: scalar.dtype = GRAFT_BOOL, scalar.value.i = value.re != 0; break;
    case DT_INTEGER:
      scalar.dtype = dtype == GRAFT_U64 ? GRAFT_U64 : GRAFT_I64;
      scalar.value.i = (int64_t)to_integer(value.re);
      break;
    case DT_FLOAT: scalar.dtype = GRAFT_F64, scalar.value.f = (double)value.re; break;
    case DT_COMPLEX:
      scalar.dtype = GRAFT_C128;
      scalar.value.c[0] = (double)value.re, scalar.value.c[1] = (double)value.im;
      break;
  }
  return scalar;
}
