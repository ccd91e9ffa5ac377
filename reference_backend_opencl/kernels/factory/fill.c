/* Factories that repeat one number. Small fills need no kernel, and zeros, which most fills are, never do; the rest is
 * a pointwise op. */
#include "kernels/pointwise/pointwise.h"

static const ocl_pointwise_recipe repeated = {.dtypes = OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX,
                                              .expression = "x"};

static graft_status fill(const graft_exec *exec, uint32_t op_id, const graft_scalar *scalar,
                         const graft_tensor_desc *to) {
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, to->dl.dtype);
  const ocl_operands operands = {.op_id = op_id, .out = to, .scalar = {scalar}, .scalars = 1};
  const int64_t small = 4096;
  ocl_number number;
  ocl_number_of_scalar(scalar, &number);
  if (!dtype || !ocl_is_dense(&to->dl)) return ocl_pointwise(exec, &repeated, &operands);
  uint64_t element[2] = {0};
  ocl_number_store(&number, dtype, element);
  int64_t elements = ocl_elements(to);
  bool is_zero = element[0] == 0 && element[1] == 0;
  if (!is_zero && elements > small) return ocl_pointwise(exec, &repeated, &operands);
  return ocl_memory_api.fill(exec->stream, to->dl.data, to->dl.byte_offset, (uint64_t)elements * dtype->bytes, element,
                             is_zero ? 1 : dtype->bytes);
}

graft_status ocl_op_fill_Scalar(const graft_exec *exec, const graft_args_fill_Scalar *args) {
  return fill(exec, args->head.op_id, args->value, args->out);
}

graft_status ocl_op_scalar_tensor(const graft_exec *exec, const graft_args_scalar_tensor *args) {
  return fill(exec, args->head.op_id, args->s, args->out);
}

graft_status ocl_op_full(const graft_exec *exec, const graft_args_full *args) {
  return fill(exec, args->head.op_id, args->fill_value, args->out);
}

graft_status ocl_op_full_like(const graft_exec *exec, const graft_args_full_like *args) {
  return fill(exec, args->head.op_id, args->fill_value, args->out);
}

graft_status ocl_op_zero(const graft_exec *exec, const graft_args_zero *args) {
  static const graft_scalar none = {.dtype = GRAFT_I64};
  return fill(exec, args->head.op_id, &none, args->out);
}
