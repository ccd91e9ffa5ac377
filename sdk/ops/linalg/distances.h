/* What distances and norms that are made of them share. */
#ifndef GRAFT_SDK_DISTANCES_H
#define GRAFT_SDK_DISTANCES_H

#include "ops/core/op.h"

/* The slope of |d|_p by each element of d, where size is |d|_p, in d's shape: 0 at 0. */
graft_tensor *dst_slope(fx *s, graft_tensor *d, graft_tensor *size, double p);

#endif
