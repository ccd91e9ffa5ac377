/* What the files of the convolution family share. */
#ifndef GRAFT_SDK_CONVOLUTION_H
#define GRAFT_SDK_CONVOLUTION_H

#include "graft/abi/plugin.h"

enum { CONV_DIMS = 3 }; /* spatial dims at most */

#endif
