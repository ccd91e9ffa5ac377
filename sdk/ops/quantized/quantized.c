/* Quantized arithmetic. */
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

static graft_status infer_int_mm(op_call *c) {
  const in_int_mm in = in_int_mm_of(c->args);
  if (in.self->ndim != 2 || in.mat2->ndim != 2) return op_error(c, "expected two matrices, got %s", op_show_tensors(c));
  if (in.self->sizes[1] != in.mat2->sizes[0]) return op_error(c, "the inner sizes differ: %s", op_show_tensors(c));
  for (int arg = ARG_int_mm_self; arg <= ARG_int_mm_mat2; arg++) {
    graft_dtype dtype = op_tensor(c, arg)->dtype;
    if (dtype != GRAFT_I8 && !(dtype == GRAFT_U8 && arg == ARG_int_mm_self))
      return op_refuse(c, arg, arg == ARG_int_mm_self ? "i8 or u8" : "i8");
  }
  op_out(c, OUT, GRAFT_I32, 2, (int64_t[]){in.self->sizes[0], in.mat2->sizes[1]});
  return GRAFT_OK;
}

static void decompose_int_mm(fx *s, const op_call *c, graft_tensor **outs) {
  const in_int_mm in = in_int_mm_of(c->args);
  outs[OUT] = fx_mm(s, fx_cast(s, in.self, GRAFT_I32), fx_cast(s, in.mat2, GRAFT_I32));
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_INT_MM,
     .flags = OP_EXACT_OUT,
     .roles = "kk",
     .infer = infer_int_mm,
     .decompose = decompose_int_mm},
};
OP_TABLE(quantized, defs)
