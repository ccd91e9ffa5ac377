/* What NVIDIA's driver lets a kernel have beyond OpenCL: the tensor cores of Hopper, by inline PTX
 * (kernels/core/nvidia.cl). */
#ifndef OCL_NVIDIA_H
#define OCL_NVIDIA_H

#include "runtime/device.h"
#include "runtime/dtype.h"

/* Whether core/warps.cl serves; and core/nvidia_copies.cl. */
bool ocl_has_warps(const graft_device *device);
bool ocl_has_copies(const graft_device *device);
/* Whether an instruction rounds f32 to bf16 (to_bf16 in kernels/core/common.cl). */
bool ocl_converts_bf16(const graft_device *device);
/* Whether native_exp2 and native_recip of f32 are one instruction each, right to 2 ulp (as functions.cl takes them). */
bool ocl_has_quick_functions(const graft_device *device);

/* What factors of a product become before tensor cores read them (kernels/core/turn.cl). */
typedef enum ocl_turned { OCL_TURNED_NOT, OCL_TURNED_F16, OCL_TURNED_TF32 } ocl_turned;

/* Which way a product of two dtypes goes. The factors' elements lie in local memory as PTX names them. */
typedef struct ocl_tensor_way {
  graft_dtype a, b;
  const char *a_type, *b_type, *sum_type;
  int bytes; /* of such an element */
  ocl_turned turned;
} ocl_tensor_way;

/* NULL: none. F32 goes its way only where the application allows TF32 (GRAFT_EXEC_ALLOW_TF32). */
const ocl_tensor_way *ocl_tensor_way_of(graft_dtype a, graft_dtype b);
/* Of two factors of a dtype of 16 bits. */
const ocl_tensor_way *ocl_tensor_way_of_halves(graft_dtype dtype);

/* Whether tensor cores are worth asking for so many multiplications, and the device has ones that were seen to work.
 * The first call that comes so far compiles and runs a small product: ask it last. Thread-safe. No way is not served.
 */
bool ocl_tensor_cores_serve(graft_device *device, const ocl_tensor_way *way, double multiplications);

/* Where a factor of a product lies: in local memory, contiguous along K or across, or in registers. Across only what
 * has 16 bits. */
typedef enum ocl_factor { OCL_FACTOR_ALONG, OCL_FACTOR_ACROSS, OCL_FACTOR_REGISTERS } ocl_factor;

/* Adds to a head the function name(float *sums, ulong a, ulong b), or of int *sums: the work-items of a warpgroup add
 * to their sums, `columns` / 2 each, the product of 64 rows and `columns` columns over 32 bytes of K, of the factors
 * that the descriptors a and b show. With a in registers it is const uint *a: four of them, of two elements each. b
 * never is. */
void ocl_head_multiply(ocl_text *head, const char *name, const ocl_tensor_way *way, int columns, ocl_factor a,
                       ocl_factor b);

/* ---- A tile of a product: core/nvidia.cl ---- */

typedef struct ocl_tensor_size {
  int64_t m, n;
  bool alone; /* a unit has one group at most, which may take all of its local memory */
} ocl_tensor_size;

#define OCL_TENSOR_LANES(m) (2 * (m))  /* work-items of a group that makes m rows */
enum { OCL_TENSOR_STRIP_BYTES = 128 }; /* of K that come to local memory together */
enum { OCL_TENSOR_VECTOR = 4 };        /* VEC of such kernels */

/* The tile in which `batches` results of so many rows and columns are made fastest. */
ocl_tensor_size ocl_tensor_size_for(const graft_device *device, const ocl_tensor_way *way, int64_t rows,
                                    int64_t columns, int64_t batches);
/* Adds to a head what that part asks for beside TILE_M and TILE_N. */
void ocl_head_tensor_tile(ocl_text *head, const ocl_tensor_way *way, ocl_tensor_size size, ocl_factor a, ocl_factor b);

#endif
