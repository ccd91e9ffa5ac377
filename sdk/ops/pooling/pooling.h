/* What the files of the pooling family share. */
#ifndef GRAFT_SDK_POOLING_H
#define GRAFT_SDK_POOLING_H

#include "graft/abi/plugin.h"

graft_status ref_max_pool2d_with_indices(const graft_exec *exec, const graft_args_max_pool2d_with_indices *args);
graft_status ref_max_pool2d_with_indices_backward(const graft_exec *exec,
                                                  const graft_args_max_pool2d_with_indices_backward *args);
graft_status ref_avg_pool2d(const graft_exec *exec, const graft_args_avg_pool2d *args);
graft_status ref_avg_pool2d_backward(const graft_exec *exec, const graft_args_avg_pool2d_backward *args);

#endif
