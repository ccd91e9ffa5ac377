/* equal: whether two tensors have the same shape and the same values. The result of its slot is a byte of host memory,
 * for which a plugin would have to wait; so no slot is asked, and the result is a tensor of rank 0 that its reader
 * waits for. */
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

static graft_status infer_equal(op_call *c) {
  c->decompose_only = true;
  op_out(c, OUT, GRAFT_BOOL, 0, NULL);
  return GRAFT_OK;
}

static void decompose_equal(fx *s, const op_call *c, graft_tensor **outs) {
  const in_equal in = in_equal_of(c->args);
  bool same = tns_same_sizes(in.self, in.other);
  if (same && in.self->numel)
    outs[OUT] = fx_all(s, fx_eq_Tensor(s, in.self, in.other));
  else
    outs[OUT] = fx_full(s, NULL, 0, graft_scalar_bool(same), GRAFT_BOOL, c->device);
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_EQUAL, .roles = "kk", .infer = infer_equal, .decompose = decompose_equal},
};
OP_TABLE(reduction_equal, defs)
