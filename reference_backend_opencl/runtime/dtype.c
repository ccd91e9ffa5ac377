/* The element types, and how each is computed with. */
#include <string.h>

#include "runtime/ocl.h"

#define DTYPE(code, class, name, compute, needs_f64) \
  { GRAFT_##code, GRAFT_NUMBER_##code, GRAFT_DTYPE_BYTES(GRAFT_##code), OCL_CLASS_##class, name, compute, needs_f64 }

static const ocl_dtype dtypes[] = {
    DTYPE(BOOL, BOOL, "bool", "int", false),
    DTYPE(U8, INT, "u8", "int", false),
    DTYPE(I8, INT, "i8", "int", false),
    DTYPE(I16, INT, "i16", "int", false),
    DTYPE(I32, INT, "i32", "int", false),
    DTYPE(I64, INT, "i64", "long", false),
    DTYPE(U16, INT, "u16", "int", false),
    DTYPE(U32, INT, "u32", "uint", false),
    DTYPE(U64, INT, "u64", "ulong", false),
    DTYPE(F16, FLOAT, "f16", "float", false),
    DTYPE(BF16, FLOAT, "bf16", "float", false),
    DTYPE(F32, FLOAT, "f32", "float", false),
    DTYPE(F64, FLOAT, "f64", "double", true),
    DTYPE(C64, COMPLEX, "c64", "float2", false),
    DTYPE(C128, COMPLEX, "c128", "double2", true),
    DTYPE(F8_E4M3FN, FLOAT, "f8_e4m3fn", "float", false),
    DTYPE(F8_E5M2, FLOAT, "f8_e5m2", "float", false),
};

const ocl_dtype *ocl_dtype_of(const graft_device *device, graft_dtype code) {
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    if (dtypes[i].code == code) return dtypes[i].needs_f64 && !device->has_f64 ? NULL : &dtypes[i];
  }
  return NULL;
}

/* What kernels call the integers of the compute type's size; see common.cl. */
static const char *mask_type(const ocl_dtype *dtype) {
  return dtype->compute[0] == 'd' || dtype->code == GRAFT_I64 || dtype->code == GRAFT_U64 ? "long" : "int";
}

void ocl_head_types(ocl_text *head, const ocl_dtype *dtype, unsigned vec, size_t local) {
  const char *mask = mask_type(dtype);
  const char *class = dtype->class == OCL_CLASS_FLOAT ? "FLOAT" : dtype->class == OCL_CLASS_COMPLEX ? "COMPLEX" : "INT";
  ocl_text_add(head, "#define CT %s\n#define MT %s\n#define UT u%s\n#define CLASS_%s\n", dtype->compute, mask, mask,
               class);
  if (dtype->code == GRAFT_BOOL) ocl_text_add(head, "#define IS_BOOL\n");
  if (dtype->compute[0] == 'u') ocl_text_add(head, "#define IS_UNSIGNED\n");
  if (dtype->compute[0] == 'd') ocl_text_add(head, "#define IS_DOUBLE\n");
  ocl_text_add(head, "#define VEC %u\n#define LOCAL %zu\n", vec, local);
}

/* ---- Numbers ---- */

static float bits_to_float(uint32_t bits) {
  union {
    uint32_t u;
    float f;
  } both = {bits};
  return both.f;
}

static uint32_t float_to_bits(float value) {
  union {
    float f;
    uint32_t u;
  } both = {value};
  return both.u;
}

static float half_to_float(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = h & 0x7fff;
  if (magnitude >= 0x7c00) return bits_to_float(sign | 0x7f800000u | (magnitude & 0x3ff) << 13);
  float value = (float)magnitude * (magnitude < 0x400 ? 0x1p-24f : 0); /* a denormal counts in units of 2^-24 */
  if (magnitude >= 0x400) value = bits_to_float((magnitude << 13) + 0x38000000u);
  return sign ? -value : value;
}

/* To the nearest value with that many mantissa bits, ties to even: done on a float's bits. */
static float round_mantissa(float value, int dropped) {
  uint32_t bits = float_to_bits(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  uint32_t half = 1u << (dropped - 1);
  bits += half - 1 + (bits >> dropped & 1);
  return bits_to_float(bits & ~((1u << dropped) - 1));
}

static float round_to_half(float value) {
  float magnitude = value < 0 ? -value : value;
  if (magnitude >= 0x1p-14f || magnitude != magnitude) {
    float rounded = round_mantissa(value, 13);
    return rounded >= 65536.0f    ? bits_to_float(0x7f800000u)
           : rounded <= -65536.0f ? bits_to_float(0xff800000u)
                                  : rounded;
  }
  volatile float shifted = magnitude + 0.5f; /* 0.5 has steps of 2^-24, as denormal halves do */
  return bits_to_float(float_to_bits(shifted - 0.5f) | (float_to_bits(value) & 0x80000000u)); /* of -0, too */
}

float ocl_round_to(graft_dtype dtype, float value) {
  return dtype == GRAFT_F16 ? round_to_half(value) : dtype == GRAFT_BF16 ? round_mantissa(value, 16) : value;
}

static uint16_t half_bits(float value) {
  float rounded = round_to_half(value), magnitude = rounded < 0 ? -rounded : rounded;
  uint32_t bits = float_to_bits(rounded), sign = bits >> 16 & 0x8000;
  if (rounded != rounded) return (uint16_t)(sign | 0x7e00);
  if (magnitude > 65504.0f) return (uint16_t)(sign | 0x7c00);
  if (magnitude < 0x1p-14f) return (uint16_t)(sign | (uint32_t)(magnitude * 0x1p24f));
  return (uint16_t)(sign | ((bits & 0x7fffffff) - 0x38000000u) >> 13);
}

/* To float8, by the formula and the constants of to_float8 in common.cl. */
static uint8_t float8_bits(float value, uint32_t dropped, uint32_t least, float units, uint32_t most, uint32_t beyond) {
  const uint32_t bits = float_to_bits(value), size = bits & 0x7fffffffu, sign = bits >> 24 & 0x80;
  if (size > 0x7f800000u) return (uint8_t)(sign | 0x7f);
  uint32_t normal = (size + ((1u << (dropped - 1)) - 1) + (size >> dropped & 1)) >> dropped;
  normal -= (least >> dropped) - (1u << (23 - dropped));
  if (size >= least) return (uint8_t)(sign | (normal > most ? beyond : normal));
  volatile float shifted = bits_to_float(size) * units + 0x1p23f; /* whose steps are 1 */
  return (uint8_t)(sign | (uint32_t)(shifted - 0x1p23f));
}

static bool number_is_true(const ocl_number *number) {
  return number->re != 0 || number->im != 0 || (number->is_int && number->i != 0);
}

void ocl_number_store(const ocl_number *number, const ocl_dtype *dtype, void *element) {
  float f[2] = {number->is_int ? (float)number->i : (float)number->re, (float)number->im};
  double d[2] = {number->re, number->im};
  uint16_t half;
  uint8_t truth = number_is_true(number), eight;
  switch (dtype->code) {
    case GRAFT_BOOL: memcpy(element, &truth, 1); return;
    case GRAFT_F16:
      half = half_bits(f[0]);
      memcpy(element, &half, 2);
      return;
    case GRAFT_BF16:
      half = f[0] != f[0] ? 0x7fc0 : (uint16_t)(float_to_bits(round_mantissa(f[0], 16)) >> 16);
      memcpy(element, &half, 2);
      return;
    case GRAFT_F8_E4M3FN:
      eight = float8_bits(f[0], 20, 0x3c800000u, 0x1p9f, 0x7e, 0x7e);
      memcpy(element, &eight, 1);
      return;
    case GRAFT_F8_E5M2:
      eight = float8_bits(f[0], 21, 0x38800000u, 0x1p16f, 0x7b, 0x7c);
      memcpy(element, &eight, 1);
      return;
    case GRAFT_F32:
    case GRAFT_C64: memcpy(element, f, dtype->bytes); return;
    case GRAFT_F64:
    case GRAFT_C128: memcpy(element, d, dtype->bytes); return;
    default: memcpy(element, &number->i, dtype->bytes); /* little-endian: the low bytes come first */
  }
}

bool ocl_number_of_tensor(const graft_tensor_desc *desc, ocl_number *number) {
  const void *at = desc->dl.data;
  const char *bytes = (const char *)at + desc->dl.byte_offset;
  *number = (ocl_number){0};
#define READ(type) (*(const type *)(const void *)bytes)
  switch (desc->dl.dtype) {
    case GRAFT_BOOL:
    case GRAFT_U8: number->i = READ(uint8_t); break;
    case GRAFT_I8: number->i = READ(int8_t); break;
    case GRAFT_I16: number->i = READ(int16_t); break;
    case GRAFT_U16: number->i = READ(uint16_t); break;
    case GRAFT_I32: number->i = READ(int32_t); break;
    case GRAFT_U32: number->i = READ(uint32_t); break;
    case GRAFT_I64: number->i = READ(int64_t); break;
    case GRAFT_U64:
      number->i = READ(int64_t);
      number->re = (double)READ(uint64_t);
      return true;
    case GRAFT_F16: number->re = half_to_float(READ(uint16_t)); goto floating;
    case GRAFT_BF16: number->re = bits_to_float((uint32_t)READ(uint16_t) << 16); goto floating;
    case GRAFT_F32: number->re = READ(float); goto floating;
    case GRAFT_F64: number->re = READ(double); goto floating;
    case GRAFT_C64:
      number->re = READ(float);
      number->im = ((const float *)(const void *)bytes)[1];
      goto floating;
    case GRAFT_C128:
      number->re = READ(double);
      number->im = ((const double *)(const void *)bytes)[1];
      goto floating;
    default: return false;
  }
#undef READ
  number->re = (double)number->i;
  number->is_int = true;
  return true;
floating:
  number->i = number->re >= -0x1p63 && number->re < 0x1p63 ? (int64_t)number->re : INT64_MIN;
  return true;
}

void ocl_number_of_scalar(const graft_scalar *scalar, ocl_number *number) {
  *number = (ocl_number){0};
  switch (scalar->dtype) {
    case GRAFT_F64: number->re = scalar->value.f; break;
    case GRAFT_C128:
      number->re = scalar->value.c[0];
      number->im = scalar->value.c[1];
      break;
    case GRAFT_U64:
      number->i = scalar->value.i;
      number->re = (double)(uint64_t)scalar->value.i;
      return;
    default:
      number->i = scalar->value.i;
      number->re = (double)scalar->value.i;
      number->is_int = true;
      return;
  }
  number->i = number->re >= -0x1p63 && number->re < 0x1p63 ? (int64_t)number->re : INT64_MIN;
}

double ocl_real_of_scalar(const graft_scalar *scalar, double absent) {
  ocl_number number = {.re = absent};
  if (scalar) ocl_number_of_scalar(scalar, &number);
  return number.re;
}

size_t ocl_number_as(const ocl_number *number, const ocl_dtype *dtype, ocl_value *value) {
  /* An integer goes to f32 in one rounding, not by way of f64. */
  float re = number->is_int ? (float)number->i : (float)number->re;
  if (dtype->code == GRAFT_BOOL) {
    value->i64 = number_is_true(number);
    return 4;
  }
  switch (dtype->compute[0]) {
    case 'f':
      value->f[0] = re;
      value->f[1] = (float)number->im;
      return dtype->class == OCL_CLASS_COMPLEX ? 8 : 4;
    case 'd':
      value->d[0] = number->re;
      value->d[1] = number->im;
      return dtype->class == OCL_CLASS_COMPLEX ? 16 : 8;
    case 'l': value->i64 = number->i; return 8;
    case 'u': value->i64 = number->i; return dtype->code == GRAFT_U64 ? 8 : 4;
    default: value->i64 = (int64_t)(int32_t)(uint32_t)(uint64_t)number->i; return 4;
  }
}
