/* What the files of the convolution family share. */
#ifndef GRAFT_SDK_CONVOLUTION_H
#define GRAFT_SDK_CONVOLUTION_H

#include "graft/abi/plugin.h"

enum { CONV_DIMS = 3 }; /* spatial dims at most */

graft_status ref_convolution(const graft_exec *exec, const graft_args_convolution *args);
graft_status ref_convolution_backward(const graft_exec *exec, const graft_args_convolution_backward *args);

#endif
