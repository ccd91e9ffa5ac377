/* Dtypes, and numbers on their way to one. */
#ifndef OCL_DTYPE_H
#define OCL_DTYPE_H

#include "runtime/device.h"
#include "runtime/text.h"

/* How values are computed with. Half types and f32 share F32. */
typedef enum ocl_class { OCL_CLASS_NONE, OCL_CLASS_BOOL, OCL_CLASS_INT, OCL_CLASS_FLOAT, OCL_CLASS_COMPLEX } ocl_class;

typedef struct ocl_dtype {
  graft_dtype code;
  uint32_t number; /* GRAFT_NUMBER_* */
  uint32_t bytes;
  ocl_class class;
  const char *name;    /* as in LOAD_<name> of common.cl */
  const char *compute; /* the OpenCL type that arithmetic on it uses */
  bool needs_f64;
} ocl_dtype;

/* NULL for a dtype this backend does not know, or that the device can't serve. */
const ocl_dtype *ocl_dtype_of(const graft_device *device, graft_dtype code);
/* Whether products of it go two at a time: kernels/core/pairs.cl. */
static inline bool ocl_multiplies_pairs(const graft_device *device, const ocl_dtype *dtype) {
  return device->dots_bf16 && dtype->code == GRAFT_BF16;
}
static inline bool ocl_is_complex(graft_dtype code) {
  return code == GRAFT_C64 || code == GRAFT_C128;
}

/* Writes what common.cl asks of the head for this compute type. */
void ocl_head_types(ocl_text *head, const ocl_dtype *dtype, unsigned vec, size_t local);

/* A number from the host, and as a kernel argument of some dtype's compute type. */
typedef struct ocl_number {
  bool is_int;
  int64_t i;
  double re, im;
} ocl_number;

typedef union ocl_value {
  float f[2];
  double d[2];
  int64_t i64;
} ocl_value;

void ocl_number_of_scalar(const graft_scalar *scalar, ocl_number *number);
double ocl_real_of_scalar(const graft_scalar *scalar, double absent);         /* absent: for NULL */
bool ocl_number_of_tensor(const graft_tensor_desc *desc, ocl_number *number); /* a GRAFT_TENSOR_HOST_VALUE */
size_t ocl_number_as(const ocl_number *number, const ocl_dtype *dtype, ocl_value *value); /* returns its bytes */
/* The number as an element of a dtype in memory. */
void ocl_number_store(const ocl_number *number, const ocl_dtype *dtype, void *element);
/* To the nearest f16 or bf16; other dtypes leave it as it is. */
float ocl_round_to(graft_dtype dtype, float value);

#define OCL_BIT(number) GRAFT_DTYPE_BIT(GRAFT_NUMBER_##number)
#define OCL_HALVES      (OCL_BIT(F16) | OCL_BIT(BF16))
#define OCL_FLOATS      (OCL_HALVES | OCL_BIT(F32) | OCL_BIT(F64))
#define OCL_INTS \
  (OCL_BIT(U8) | OCL_BIT(I8) | OCL_BIT(I16) | OCL_BIT(I32) | OCL_BIT(I64) | OCL_BIT(U16) | OCL_BIT(U32) | OCL_BIT(U64))
#define OCL_BOOLS   OCL_BIT(BOOL)
#define OCL_FLOAT8  (OCL_BIT(F8_E4M3FN) | OCL_BIT(F8_E5M2)) /* converted and moved; nothing is computed in them */
#define OCL_COMPLEX (OCL_BIT(C64) | OCL_BIT(C128))
#define OCL_MOVABLE (OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX | OCL_FLOAT8)

#endif
