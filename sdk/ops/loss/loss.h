/* What all losses have: a reduction. */
#ifndef GRAFT_SDK_LOSS_H
#define GRAFT_SDK_LOSS_H

#include "ops/core/op.h"

enum { LOSS_NONE = 0, LOSS_MEAN = 1, LOSS_SUM = 2 };

static inline graft_status check_reduction(const op_call *c, int arg) {
  int64_t reduction = op_int(c, arg);
  if (reduction >= LOSS_NONE && reduction <= LOSS_SUM) return GRAFT_OK;
  return op_error(c, "reduction is %lld; expected 0 (none), 1 (mean) or 2 (sum)", (long long)reduction);
}

#endif
