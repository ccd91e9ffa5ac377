/* Graft plugin ABI: element types.
 *
 * A graft_dtype is the four bytes of a DLDataType (code, bits, lanes) read as a little-endian integer. The values are
 * literals, so that binding generators see them and they can stand in a switch. Codes 128 to 191 are Graft's own; they
 * never leave through DLPack and no plugin is ever sent one. Codes from GRAFT_DTYPE_VENDOR_CODES on are the vendors': a
 * host makes no tensors of them.
 *
 * Storage: bool is one byte, 0 or 1. Half types are two bytes. Complex is real part, imaginary part. A dtype of several
 * lanes is one element: two floats of 4 bits are a byte, the first in its low bits. Elements of less than a byte are
 * packed in row-major order without gaps, the first in the low bits; such a tensor is contiguous, and begins and ends
 * on a byte. */
#ifndef GRAFT_ABI_DTYPE_H
#define GRAFT_ABI_DTYPE_H

#include "graft/abi/base.h"

typedef uint32_t graft_dtype;
enum {
  GRAFT_DTYPE_NONE = 0,
  GRAFT_BOOL = 0x00010806,
  GRAFT_U8 = 0x00010801,
  GRAFT_I8 = 0x00010800,
  GRAFT_I16 = 0x00011000,
  GRAFT_I32 = 0x00012000,
  GRAFT_I64 = 0x00014000,
  GRAFT_U16 = 0x00011001,
  GRAFT_U32 = 0x00012001,
  GRAFT_U64 = 0x00014001,
  GRAFT_F16 = 0x00011002,
  GRAFT_BF16 = 0x00011004,
  GRAFT_F32 = 0x00012002,
  GRAFT_F64 = 0x00014002,
  GRAFT_C64 = 0x00014005,  /* two f32 */
  GRAFT_C128 = 0x00018005, /* two f64 */
  GRAFT_F8_E4M3FN = 0x0001080A,
  GRAFT_F8_E5M2 = 0x0001080C
};

/* The first of the codes that are the vendors'; the last is 255. */
#define GRAFT_DTYPE_VENDOR_CODES 192

/* Frozen numbers of the dtypes above: bit n of a capability's dtype set speaks of number n. */
typedef uint32_t graft_dtype_number;
enum {
  GRAFT_NUMBER_BOOL = 0,
  GRAFT_NUMBER_U8 = 1,
  GRAFT_NUMBER_I8 = 2,
  GRAFT_NUMBER_I16 = 3,
  GRAFT_NUMBER_I32 = 4,
  GRAFT_NUMBER_I64 = 5,
  GRAFT_NUMBER_U16 = 6,
  GRAFT_NUMBER_U32 = 7,
  GRAFT_NUMBER_U64 = 8,
  GRAFT_NUMBER_F16 = 9,
  GRAFT_NUMBER_BF16 = 10,
  GRAFT_NUMBER_F32 = 11,
  GRAFT_NUMBER_F64 = 12,
  GRAFT_NUMBER_C64 = 13,
  GRAFT_NUMBER_C128 = 14,
  GRAFT_NUMBER_F8_E4M3FN = 15,
  GRAFT_NUMBER_F8_E5M2 = 16
};

/* A set of dtypes: GRAFT_DTYPE_BIT(GRAFT_NUMBER_F32) | GRAFT_DTYPE_BIT(GRAFT_NUMBER_F16). */
#define GRAFT_DTYPE_BIT(number) (UINT64_C(1) << (number))

/* The size of one element, with all its lanes, in bits. */
#define GRAFT_DTYPE_BITS(dtype) ((uint64_t)(((dtype) >> 8) & 0xffu) * ((dtype) >> 16))

/* The same in bytes; 0 where that is no whole number: then n elements take GRAFT_DTYPE_BITS(dtype) * n / 8. */
#define GRAFT_DTYPE_BYTES(dtype) (GRAFT_DTYPE_BITS(dtype) % 8u ? 0u : GRAFT_DTYPE_BITS(dtype) / 8u)

#endif
