/* Compiled, not run: the DLTensor inside a descriptor has the layout of DLPack's own, and dtypes the codes of
 * DLPack 1.x (the installed header may be older and lack some, so the codes stand here as in DLPack 1.1). */
#include <dlpack/dlpack.h>

#include "graft/abi/tensor.h"

#define SAME(ours, theirs) _Static_assert(offsetof(graft_dl_tensor, ours) == offsetof(DLTensor, theirs), #ours)
SAME(data, data);
SAME(device_type, device.device_type);
SAME(device_id, device.device_id);
SAME(ndim, ndim);
SAME(dtype, dtype);
SAME(shape, shape);
SAME(strides, strides);
SAME(byte_offset, byte_offset);
_Static_assert(sizeof(graft_dl_tensor) == sizeof(DLTensor), "size");

enum { INT = 0, UINT = 1, FLOAT = 2, BFLOAT = 4, COMPLEX = 5, BOOLEAN = 6, FLOAT8_E4M3FN = 10, FLOAT8_E5M2 = 12 };
_Static_assert(INT == (int)kDLInt && UINT == (int)kDLUInt && FLOAT == (int)kDLFloat && BFLOAT == (int)kDLBfloat,
               "codes");

#define DTYPE(dtype, code, bits) _Static_assert((dtype) == ((code) | (bits) << 8 | 1 << 16), #dtype)
DTYPE(GRAFT_BOOL, BOOLEAN, 8);
DTYPE(GRAFT_U8, UINT, 8);
DTYPE(GRAFT_I8, INT, 8);
DTYPE(GRAFT_I16, INT, 16);
DTYPE(GRAFT_I32, INT, 32);
DTYPE(GRAFT_I64, INT, 64);
DTYPE(GRAFT_U16, UINT, 16);
DTYPE(GRAFT_U32, UINT, 32);
DTYPE(GRAFT_U64, UINT, 64);
DTYPE(GRAFT_F16, FLOAT, 16);
DTYPE(GRAFT_BF16, BFLOAT, 16);
DTYPE(GRAFT_F32, FLOAT, 32);
DTYPE(GRAFT_F64, FLOAT, 64);
DTYPE(GRAFT_C64, COMPLEX, 64);
DTYPE(GRAFT_C128, COMPLEX, 128);
DTYPE(GRAFT_F8_E4M3FN, FLOAT8_E4M3FN, 8);
DTYPE(GRAFT_F8_E5M2, FLOAT8_E5M2, 8);
