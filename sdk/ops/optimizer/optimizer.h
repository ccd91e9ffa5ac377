/* What the files of the family optimizer share. */
#ifndef GRAFT_SDK_OPS_OPTIMIZER_H
#define GRAFT_SDK_OPS_OPTIMIZER_H

#include "ops/core/op.h"
#include "ops/core/ref.h"

/* The number that a tensor with one element holds; `fallback` where there is no tensor. */
static inline ref_real opt_number(const graft_tensor_desc *d, ref_real fallback) {
  if (!d) return fallback;
  return ref_numel(d) ? dt_load(d->dl.dtype, ref_data(d)).re : 0;
}

#endif
