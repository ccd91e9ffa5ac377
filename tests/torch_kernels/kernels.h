/* An op of the tables by PyTorch's own kernel, on the CPU or on a CUDA device. The plugin is C, PyTorch's side C++. */
#ifndef GRAFT_TESTS_TORCH_KERNELS_H
#define GRAFT_TESTS_TORCH_KERNELS_H

#include "graft/abi/exec.h"
#include "graft/abi/host.h"
#include "ops/core/schema.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Before the first call. `device` is where PyTorch computes, "cpu" or "cuda" (its first device, which a process takes
 * at its first call): arguments are copied there and results back, with their strides. GRAFT_INVALID_ARGUMENT for
 * another. */
graft_status tk_start(const graft_host *host, const char *device);
/* Whether PyTorch has an op of that name. */
bool tk_has(const op_schema *schema);
/* Calls it and copies its results to the outputs. UNIMPLEMENTED where PyTorch refuses the call or gives results of
 * other shapes and dtypes, OUT_OF_RANGE for a bad index; with PyTorch's text. */
graft_status tk_call(const op_schema *schema, const graft_exec *exec, const graft_args *args);
/* The first element of a tensor in host memory; NULL where it has no memory. */
void *tk_data(const graft_tensor_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
