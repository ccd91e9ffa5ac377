/* What the typed functions of graft/ops.h (generated/wrappers.c) end in: graft_call with results that go to pointers of
 * their own. What these point to on entry is not looked at, and nothing is stored on failure. */
#ifndef GRAFT_SDK_TYPED_H
#define GRAFT_SDK_TYPED_H

#include "graft/value.h"

/* One result. */
graft_status dsp_call_one(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor **out);

/* Several, each a tensor. */
graft_status dsp_call_each(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor **const *outs,
                           uint32_t nouts);

/* Results that are lists, outs[i] of counts[i] tensors. */
graft_status dsp_call_lists(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor **const *outs,
                            const uint32_t *counts, uint32_t nouts);

#endif
