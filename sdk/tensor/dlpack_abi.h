/* DLPack 1.1 as memory layout, written for this tree from the published specification
 * (https://dmlc.github.io/dlpack/latest/c_api.html). Only the two managed structs carry DLPack's names, which
 * graft/dlpack.h shows to applications as opaque. Never include this beside DLPack's own header. */
#ifndef GRAFT_SDK_DLPACK_ABI_H
#define GRAFT_SDK_DLPACK_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { DLP_MAJOR = 1, DLP_MINOR = 1 };

/* DLDeviceType */
enum {
  DLP_CPU = 1,
  DLP_CUDA = 2,
  DLP_CUDA_HOST = 3,
  DLP_OPENCL = 4,
  DLP_VULKAN = 7,
  DLP_METAL = 8,
  DLP_VPI = 9,
  DLP_ROCM = 10,
  DLP_ROCM_HOST = 11,
  DLP_EXT_DEV = 12,
  DLP_CUDA_MANAGED = 13,
  DLP_ONEAPI = 14,
  DLP_WEBGPU = 15,
  DLP_HEXAGON = 16,
  DLP_MAIA = 17
};

/* DLDataTypeCode */
enum {
  DLP_INT = 0,
  DLP_UINT = 1,
  DLP_FLOAT = 2,
  DLP_OPAQUE_HANDLE = 3,
  DLP_BFLOAT = 4,
  DLP_COMPLEX = 5,
  DLP_BOOL = 6,
  DLP_FLOAT8_E3M4 = 7,
  DLP_FLOAT8_E4M3 = 8,
  DLP_FLOAT8_E4M3B11FNUZ = 9,
  DLP_FLOAT8_E4M3FN = 10,
  DLP_FLOAT8_E4M3FNUZ = 11,
  DLP_FLOAT8_E5M2 = 12,
  DLP_FLOAT8_E5M2FNUZ = 13,
  DLP_FLOAT8_E8M0FNU = 14,
  DLP_FLOAT6_E2M3FN = 15,
  DLP_FLOAT6_E3M2FN = 16,
  DLP_FLOAT4_E2M1FN = 17
};

enum { DLP_FLAG_READ_ONLY = 1, DLP_FLAG_IS_COPIED = 2, DLP_FLAG_SUBBYTE_PADDED = 4 };

typedef struct dlp_tensor {
  void *data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape;
  int64_t *strides; /* elements; NULL: contiguous */
  uint64_t byte_offset;
} dlp_tensor;

struct DLManagedTensor {
  dlp_tensor tensor;
  void *context;
  void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void *context;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  dlp_tensor tensor;
};

_Static_assert(sizeof(dlp_tensor) == 48 && offsetof(dlp_tensor, shape) == 24, "layout of DLTensor");
_Static_assert(sizeof(struct DLManagedTensor) == 64, "layout of DLManagedTensor");
_Static_assert(sizeof(struct DLManagedTensorVersioned) == 80 && offsetof(struct DLManagedTensorVersioned, tensor) == 32,
               "layout of DLManagedTensorVersioned");

#endif
