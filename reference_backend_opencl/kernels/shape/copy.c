/* Copies and casts. Where memory is one run and the dtype stays, the driver's own commands serve, and nothing is
 * compiled; everything else is a movement or a pointwise op. */
#include "kernels/pointwise/pointwise.h"
#include "kernels/shape/shape.h"

const ocl_pointwise_recipe ocl_cast_recipe = {
    .dtypes = OCL_FLOATS | OCL_FLOAT8 | OCL_INTS | OCL_BOOLS | OCL_COMPLEX, .flags = OCL_CAST, .expression = "a"};

static graft_status copy(const graft_exec *exec, uint32_t op_id, const graft_tensor_desc *from,
                         const graft_tensor_desc *to) {
  const graft_dl_tensor *source = &from->dl, *target = &to->dl;
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, source->dtype);
  bool same_dtype = dtype && source->dtype == target->dtype;
  bool whole = same_dtype && ocl_is_dense(source) && ocl_is_dense(target);
  /* copy and its source may be the same memory: then there is nothing to do, and the driver would call it an overlap.
   */
  if (whole && source->data == target->data && source->byte_offset == target->byte_offset) return GRAFT_OK;
  if (!same_dtype) {
    return ocl_pointwise(exec, &ocl_cast_recipe,
                         &(ocl_operands){.op_id = op_id, .out = to, .input = {from}, .inputs = 1});
  }
  if (!whole) return ocl_move_whole(exec, from, to);
  return ocl_memory_api.copy(exec->stream, target->data, target->byte_offset, source->data, source->byte_offset,
                             (uint64_t)ocl_elements(to) * dtype->bytes);
}

graft_status ocl_op_to_copy(const graft_exec *exec, const graft_args_to_copy *args) {
  return copy(exec, args->head.op_id, args->self, args->out);
}

graft_status ocl_op_clone(const graft_exec *exec, const graft_args_clone *args) {
  return copy(exec, args->head.op_id, args->self, args->out);
}

graft_status ocl_op_copy(const graft_exec *exec, const graft_args_copy *args) {
  return copy(exec, args->head.op_id, args->src, args->out);
}
