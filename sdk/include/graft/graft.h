/* libgraft: the host of Graft plugins. Includes the whole public API. */
#ifndef GRAFT_GRAFT_H
#define GRAFT_GRAFT_H

#include "graft/abi/op_ids.h"
#include "graft/autograd.h"
#include "graft/dlpack.h"
#include "graft/error.h"
#include "graft/graph.h"
#include "graft/memory.h"
#include "graft/ops.h"
#include "graft/profiler.h"
#include "graft/runtime.h"
#include "graft/tensor.h"
#include "graft/value.h"

#endif
