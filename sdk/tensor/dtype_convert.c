/* Conversions of single values between dtypes, with one rounding. */
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

uint16_t dt_f16_from(long double value) {
  return (uint16_t)narrow(&format_f16, round_to_odd(value));
}
long double dt_f16_to(uint16_t bits) {
  return widen(&format_f16, bits);
}
uint16_t dt_bf16_from(long double value) {
  return (uint16_t)narrow(&format_bf16, round_to_odd(value));
}
long double dt_bf16_to(uint16_t bits) {
  return widen(&format_bf16, bits);
}
uint8_t dt_f8_from(long double value, graft_dtype dtype) {
  return (uint8_t)narrow(format_f8(dtype), round_to_odd(value));
}
long double dt_f8_to(uint8_t bits, graft_dtype dtype) {
  return widen(format_f8(dtype), bits);
}

/* Towards zero, then modulo 2^64. What fits neither i64 nor u64, NaN too, is 2^63, as x86 converts it. */
static uint64_t to_integer(long double value) {
  if (value > -0x1p63L - 1 && value < 0x1p63L) return (uint64_t)(int64_t)value;
  if (value >= 0x1p63L && value < 0x1p64L) return (uint64_t)value;
  return UINT64_C(1) << 63;
}

#define LOAD(type)                     \
  do {                                 \
    type raw;                          \
    memcpy(&raw, element, sizeof raw); \
    value.re = (long double)raw;       \
  } while (0)
#define LOAD_PAIR(type)                   \
  do {                                    \
    type raw[2];                          \
    memcpy(raw, element, sizeof raw);     \
    value.re = raw[0], value.im = raw[1]; \
  } while (0)

dt_value dt_load(graft_dtype dtype, const void *element) {
  dt_value value = {0, 0};
  uint16_t half;
  switch (dtype) {
    case GRAFT_BOOL: value.re = *(const uint8_t *)element != 0; break;
    case GRAFT_U8: LOAD(uint8_t); break;
    case GRAFT_I8: LOAD(int8_t); break;
    case GRAFT_I16: LOAD(int16_t); break;
    case GRAFT_I32: LOAD(int32_t); break;
    case GRAFT_I64: LOAD(int64_t); break;
    case GRAFT_U16: LOAD(uint16_t); break;
    case GRAFT_U32: LOAD(uint32_t); break;
    case GRAFT_U64: LOAD(uint64_t); break;
    case GRAFT_F16: memcpy(&half, element, 2), value.re = widen(&format_f16, half); break;
    case GRAFT_BF16: memcpy(&half, element, 2), value.re = widen(&format_bf16, half); break;
    case GRAFT_F32: LOAD(float); break;
    case GRAFT_F64: LOAD(double); break;
    case GRAFT_WIDE: LOAD(long double); break;
    case GRAFT_C64: LOAD_PAIR(float); break;
    case GRAFT_C128: LOAD_PAIR(double); break;
    case GRAFT_WIDE_COMPLEX: LOAD_PAIR(long double); break;
    case GRAFT_F8_E4M3FN:
    case GRAFT_F8_E5M2: value.re = widen(format_f8(dtype), *(const uint8_t *)element); break;
    default: break;
  }
  return value;
}

#define STORE(type, number)            \
  do {                                 \
    type raw = (type)(number);         \
    memcpy(element, &raw, sizeof raw); \
  } while (0)
#define STORE_PAIR(type)                            \
  do {                                              \
    type raw[2] = {(type)value.re, (type)value.im}; \
    memcpy(element, raw, sizeof raw);               \
  } while (0)

void dt_store(graft_dtype dtype, void *element, dt_value value) {
  switch (dtype) {
    case GRAFT_BOOL: *(uint8_t *)element = value.re != 0 || value.im != 0; break;
    case GRAFT_U8: /* storing the low bytes is wrapping, signed or not */
    case GRAFT_I8: STORE(uint8_t, to_integer(value.re)); break;
    case GRAFT_U16:
    case GRAFT_I16: STORE(uint16_t, to_integer(value.re)); break;
    case GRAFT_U32:
    case GRAFT_I32: STORE(uint32_t, to_integer(value.re)); break;
    case GRAFT_U64:
    case GRAFT_I64: STORE(uint64_t, to_integer(value.re)); break;
    case GRAFT_F16: STORE(uint16_t, dt_f16_from(value.re)); break;
    case GRAFT_BF16: STORE(uint16_t, dt_bf16_from(value.re)); break;
    case GRAFT_F32: STORE(float, value.re); break;
    case GRAFT_F64: STORE(double, value.re); break;
    case GRAFT_WIDE: STORE(long double, value.re); break;
    case GRAFT_C64: STORE_PAIR(float); break;
    case GRAFT_C128: STORE_PAIR(double); break;
    case GRAFT_WIDE_COMPLEX: STORE_PAIR(long double); break;
    case GRAFT_F8_E4M3FN:
    case GRAFT_F8_E5M2: *(uint8_t *)element = dt_f8_from(value.re, dtype); break;
    default: break;
  }
}

long double dt_round(graft_dtype dtype, long double value) {
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
