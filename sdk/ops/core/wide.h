/* Half types in decompositions. */
#ifndef GRAFT_SDK_WIDE_H
#define GRAFT_SDK_WIDE_H

#include "ops/core/op.h"

/* First step of a decomposition: where the call's result is of a half type, its inputs have been widened to f32 by
 * now, and the op itself may have a slot for them. So the same op runs on f32, and its decomposition only if it has
 * none. */
static inline bool op_ran_wider(fx *s, const op_call *call, graft_tensor **outs) {
  if (!dt_is_half(call->out[OUT].dtype) || call->compute != GRAFT_F32) return false;
  graft_value args[OP_MAX_ARGS];
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    args[i] = call->args[i];
    if (args[i].kind == GRAFT_VALUE_DTYPE && dt_is_half(args[i].as.dtype)) args[i].as.dtype = GRAFT_F32;
  }
  fx_call(s, call->schema->id, args, call->schema->nargs, outs, call->schema->nrets);
  return true;
}

#endif
