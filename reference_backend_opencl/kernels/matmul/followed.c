/* Products that calls may follow in one kernel (kernels/pointwise/fused_epilogue.c): which calls these are. */
#include "kernels/matmul/matmul.h"

bool ocl_product_read(const ocl_call *call, ocl_product_call *p) {
  const ocl_slot slot = call->op->slot;
  if (slot == (ocl_slot)ocl_op_mm) {
    const graft_args_mm *args = call->args;
    *p = (ocl_product_call){.a = args->self, .b = args->mat2, .out = args->out};
  } else if (slot == (ocl_slot)ocl_op_bmm) {
    const graft_args_bmm *args = call->args;
    *p = (ocl_product_call){.a = args->self, .b = args->mat2, .out = args->out};
  } else if (slot == (ocl_slot)ocl_op_addmm) {
    const graft_args_addmm *args = call->args;
    *p = (ocl_product_call){args->mat1, args->mat2, args->out, args->self, args->alpha, args->beta};
  } else if (slot == (ocl_slot)ocl_op_baddbmm) {
    const graft_args_baddbmm *args = call->args;
    *p = (ocl_product_call){args->batch1, args->batch2, args->out, args->self, args->alpha, args->beta};
  } else {
    return false;
  }
  return true;
}
