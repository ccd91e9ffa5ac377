/* The engine of the _foreach ops: each asks for one expression of the engine in optimizer.c. */
#include "kernels/optimizer/lists.h"

void ocl_foreach_read(const ocl_call *call, ocl_lists *lists) {
  const ocl_foreach_recipe *recipe = call->op->recipe;
  const ocl_field *fields = call->signature->fields;
  *lists = (ocl_lists){
      .operands = 1, .owns = 1, .dtypes = call->op->inputs, .defines = "", .expression = recipe->expression};
  /* The first list of a copy is only what is written to. */
  for (uint16_t i = recipe->casts ? 1 : 0; i < call->signature->count; i++) {
    const void *place = ocl_field_in(call->args, &fields[i]);
    switch ((ocl_field_kind)fields[i].kind) {
      case OCL_FIELD_TENSORS: {
        bool is_result = fields[i].flags & OCL_FIELD_RESULT;
        lists->list[is_result ? 0 : lists->operands++] = *(const graft_tensor_list *)place;
        break;
      }
      case OCL_FIELD_TENSOR: lists->single[lists->operands++] = *(const graft_tensor_desc *const *)place; break;
      case OCL_FIELD_SCALAR: lists->own[0].items = *(const graft_scalar *const *)place; break;
      case OCL_FIELD_SCALARS: lists->own[0] = (ocl_list_number){((const graft_scalar_list *)place)->items, true}; break;
      default: break;
    }
  }
}

graft_status ocl_foreach(const ocl_call *call) {
  ocl_lists lists;
  ocl_foreach_read(call, &lists);
  return ocl_lists_run(call->exec, &lists);
}
