/* The three functions of graft_host that belong to the call of an op; plugin/host.c puts them into the table. */
#ifndef GRAFT_SDK_HOST_CALLBACKS_H
#define GRAFT_SDK_HOST_CALLBACKS_H

#include "graft/abi/host.h"

graft_status dsp_host_workspace(const graft_exec *exec, uint64_t bytes, uint64_t alignment, graft_buffer **buffer,
                                uint64_t *byte_offset);

graft_status dsp_host_output_shape(const graft_exec *exec, graft_output *output, int32_t ndim, const int64_t *shape,
                                   const graft_tensor_desc **desc);

graft_status dsp_host_memo_publish(const graft_exec *exec, void *value, void (*destroy)(void *value), void **winner);

#endif
