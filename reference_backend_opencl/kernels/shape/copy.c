/* Copies, casts and fills. Where memory is one run and the dtype stays, the driver's own commands serve, and nothing is
 * compiled; everything else is a pointwise op. */
#include <string.h>

#include "kernels/families.h"
#include "kernels/shape/shape.h"

static bool is_one_run(const graft_dl_tensor *t, uint64_t *elements) {
  int64_t expected = 1;
  for (int d = t->ndim - 1; d >= 0; d--) {
    if (t->shape[d] != 1 && t->strides[d] != expected) return false;
    expected *= t->shape[d];
  }
  *elements = (uint64_t)expected;
  return true;
}

static graft_status copy(const graft_exec *exec, const void *args, uint32_t op_id, const graft_tensor_desc *from,
                         const graft_tensor_desc *to) {
  uint64_t elements;
  const graft_dl_tensor *source = &from->dl, *target = &to->dl;
  bool whole = source->dtype == target->dtype && is_one_run(source, &elements) && is_one_run(target, &elements);
  /* copy and its source may be the same memory: then there is nothing to do, and the driver would call it an overlap.
   */
  if (whole && source->data == target->data && source->byte_offset == target->byte_offset) return GRAFT_OK;
  if (!ocl_dtype_of(exec->device, source->dtype) || source->dtype != target->dtype) {
    return ocl_pointwise(exec, args, op_id);
  }
  if (!whole) return ocl_move_whole(exec, from, to);
  return ocl_memory_api.copy(exec->stream, target->data, target->byte_offset, source->data, source->byte_offset,
                             elements * GRAFT_DTYPE_BYTES(source->dtype));
}

graft_status ocl_op_to_copy(const graft_exec *exec, const graft_args_to_copy *args) {
  return copy(exec, args, args->head.op_id, args->self, args->out);
}

graft_status ocl_op_clone(const graft_exec *exec, const graft_args_clone *args) {
  return copy(exec, args, args->head.op_id, args->self, args->out);
}

graft_status ocl_op_copy(const graft_exec *exec, const graft_args_copy *args) {
  return copy(exec, args, args->head.op_id, args->src, args->out);
}

/* Small fills need no kernel, and zeros, which most fills are, never do. */
static graft_status fill(const graft_exec *exec, const void *args, uint32_t op_id, const graft_scalar *scalar,
                         const graft_tensor_desc *to) {
  uint64_t elements;
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, to->dl.dtype);
  const uint64_t small = 4096;
  ocl_number number;
  ocl_number_of_scalar(scalar, &number);
  if (!dtype || !is_one_run(&to->dl, &elements)) return ocl_pointwise(exec, args, op_id);
  uint64_t element[2] = {0};
  ocl_number_store(&number, dtype, element);
  bool is_zero = element[0] == 0 && element[1] == 0;
  if (!is_zero && elements > small) return ocl_pointwise(exec, args, op_id);
  return ocl_memory_api.fill(exec->stream, to->dl.data, to->dl.byte_offset, elements * dtype->bytes, element,
                             is_zero ? 1 : dtype->bytes);
}

graft_status ocl_op_fill_Scalar(const graft_exec *exec, const graft_args_fill_Scalar *args) {
  return fill(exec, args, args->head.op_id, args->value, args->out);
}

graft_status ocl_op_scalar_tensor(const graft_exec *exec, const graft_args_scalar_tensor *args) {
  return ocl_dtype_of(exec->device, args->out->dl.dtype) ? fill(exec, args, 0, args->s, args->out)
                                                         : GRAFT_UNIMPLEMENTED;
}

graft_status ocl_op_full(const graft_exec *exec, const graft_args_full *args) {
  return fill(exec, args, args->head.op_id, args->fill_value, args->out);
}

graft_status ocl_op_full_like(const graft_exec *exec, const graft_args_full_like *args) {
  return fill(exec, args, args->head.op_id, args->fill_value, args->out);
}

/* Not one run of memory: the pointwise fill, which reads its arguments where fill.Scalar has them. */
graft_status ocl_op_zero(const graft_exec *exec, const graft_args_zero *args) {
  const graft_scalar none = {.dtype = GRAFT_I64};
  const graft_args_fill_Scalar as_fill = {.self = args->self, .value = &none, .out = args->out};
  return fill(exec, &as_fill, GRAFT_OP_FILL_SCALAR, &none, args->out);
}
