/* The scatter ops: what each asks of the engine in scatter.c, and one row for each. */
#include "kernels/core/indexed.h"

/* Into `out`, which begins as `self`. */
static ocl_scatter begin_with(uint32_t op_id, const graft_tensor_desc *self, const graft_tensor_desc *out,
                              const graft_tensor_desc *source, ocl_scatter_mode mode) {
  return (ocl_scatter){
      .indexed = {.op_id = op_id, .plain = source, .picked = out}, .mode = mode, .base = self, .skip = -1};
}

graft_status ocl_op_scatter_src(const graft_exec *exec, const graft_args_scatter_src *args) {
  ocl_scatter call = begin_with(args->head.op_id, args->self, args->out, args->src, OCL_SCATTER_SET);
  ocl_indexed_each(&call.indexed, args->index, args->dim);
  return ocl_scatter_run(exec, &call);
}

graft_status ocl_op_scatter_value(const graft_exec *exec, const graft_args_scatter_value *args) {
  ocl_scatter call = begin_with(args->head.op_id, args->self, args->out, NULL, OCL_SCATTER_SET);
  call.value = args->value;
  ocl_indexed_each(&call.indexed, args->index, args->dim);
  return ocl_scatter_run(exec, &call);
}

graft_status ocl_op_scatter_add(const graft_exec *exec, const graft_args_scatter_add *args) {
  ocl_scatter call = begin_with(args->head.op_id, args->self, args->out, args->src, OCL_SCATTER_ADD);
  ocl_indexed_each(&call.indexed, args->index, args->dim);
  return ocl_scatter_run(exec, &call);
}

/* A mean is a sum and a division: not here. */
graft_status ocl_op_scatter_reduce_two(const graft_exec *exec, const graft_args_scatter_reduce_two *args) {
  static const ocl_scatter_mode modes[] = {[GRAFT_STR_SCATTER_REDUCE_SUM] = OCL_SCATTER_ADD,
                                           [GRAFT_STR_SCATTER_REDUCE_PROD] = OCL_SCATTER_MULTIPLY,
                                           [GRAFT_STR_SCATTER_REDUCE_AMAX] = OCL_SCATTER_MAXIMUM,
                                           [GRAFT_STR_SCATTER_REDUCE_AMIN] = OCL_SCATTER_MINIMUM};
  if (args->reduce == GRAFT_STR_SCATTER_REDUCE_MEAN) return GRAFT_UNIMPLEMENTED;
  ocl_scatter call = begin_with(args->head.op_id, args->self, args->out, args->src, modes[args->reduce]);
  call.replaces = !args->include_self;
  ocl_indexed_each(&call.indexed, args->index, args->dim);
  return ocl_scatter_run(exec, &call);
}

static graft_status put(const graft_exec *exec, ocl_scatter call, graft_tensor_list indices, bool accumulates) {
  if (accumulates) call.mode = OCL_SCATTER_ADD;
  call.indexed.wraps = true;
  return ocl_indexed_list(&call.indexed, indices) ? ocl_scatter_run(exec, &call) : GRAFT_UNIMPLEMENTED;
}

graft_status ocl_op_index_put(const graft_exec *exec, const graft_args_index_put *args) {
  ocl_scatter call = begin_with(args->head.op_id, args->self, args->out, args->values, OCL_SCATTER_SET);
  return put(exec, call, args->indices, args->accumulate);
}

graft_status ocl_op_index_put_impl(const graft_exec *exec, const graft_args_index_put_impl *args) {
  ocl_scatter call = begin_with(args->head.op_id, args->self, args->out, args->values, OCL_SCATTER_SET);
  return put(exec, call, args->indices, args->accumulate);
}

graft_status ocl_op_put(const graft_exec *exec, const graft_args_put *args) {
  ocl_scatter call = begin_with(args->head.op_id, args->self, args->out, args->source,
                                args->accumulate ? OCL_SCATTER_ADD : OCL_SCATTER_SET);
  call.indexed.wraps = true;
  ocl_indexed_add(&call.indexed, args->index, ocl_elements(args->self), 1);
  ocl_indexed_push(&call.indexed, ocl_elements(args->index), 1, 0);
  call.indexed.stride[OCL_INDEX][0] = 1;
  return ocl_scatter_run(exec, &call);
}

graft_status ocl_op_index_add(const graft_exec *exec, const graft_args_index_add *args) {
  ocl_scatter call = begin_with(args->head.op_id, args->self, args->out, args->source, OCL_SCATTER_ADD);
  call.alpha = args->alpha;
  ocl_indexed_along(&call.indexed, args->index, args->dim);
  return ocl_scatter_run(exec, &call);
}

graft_status ocl_op_index_reduce(const graft_exec *exec, const graft_args_index_reduce *args) {
  static const ocl_scatter_mode modes[] = {[GRAFT_STR_INDEX_REDUCE_PROD] = OCL_SCATTER_MULTIPLY,
                                           [GRAFT_STR_INDEX_REDUCE_AMAX] = OCL_SCATTER_MAXIMUM,
                                           [GRAFT_STR_INDEX_REDUCE_AMIN] = OCL_SCATTER_MINIMUM};
  if (args->reduce == GRAFT_STR_INDEX_REDUCE_MEAN) return GRAFT_UNIMPLEMENTED;
  ocl_scatter call = begin_with(args->head.op_id, args->self, args->out, args->source, modes[args->reduce]);
  call.replaces = !args->include_self;
  ocl_indexed_along(&call.indexed, args->index, args->dim);
  return ocl_scatter_run(exec, &call);
}

graft_status ocl_op_index_copy(const graft_exec *exec, const graft_args_index_copy *args) {
  ocl_scatter call = begin_with(args->head.op_id, args->self, args->out, args->source, OCL_SCATTER_SET);
  ocl_indexed_along(&call.indexed, args->index, args->dim);
  return ocl_scatter_run(exec, &call);
}

/* The value is a tensor of one element: broadcast over the places. */
graft_status ocl_op_index_fill_int_Tensor(const graft_exec *exec, const graft_args_index_fill_int_Tensor *args) {
  ocl_scatter call = begin_with(args->head.op_id, args->self, args->out, args->value, OCL_SCATTER_SET);
  const graft_dl_tensor *out = &args->out->dl, *index = &args->index->dl;
  call.indexed.wraps = true;
  ocl_indexed_add(&call.indexed, args->index, out->ndim ? out->shape[args->dim] : 1,
                  out->ndim ? out->strides[args->dim] : 0);
  if (out->ndim == 0) ocl_indexed_push(&call.indexed, index->ndim ? index->shape[0] : 1, 0, 0);
  for (int d = 0; d < out->ndim; d++) {
    bool is_dim = d == args->dim;
    ocl_indexed_push(&call.indexed, is_dim ? ocl_elements(args->index) : out->shape[d], 0,
                     is_dim ? 0 : out->strides[d]);
    if (is_dim && index->ndim) call.indexed.stride[OCL_INDEX][d] = index->strides[0];
  }
  return ocl_scatter_run(exec, &call);
}

#define ALL     (OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX)
#define LAYOUTS (GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY)

static const ocl_op ops[] = {
    {OCL_OP(scatter_src), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = LAYOUTS | GRAFT_CAP_IN_PLACE},
    {OCL_OP(scatter_value), .inputs = ALL, .outputs = ALL, .flags = LAYOUTS | GRAFT_CAP_IN_PLACE},
    {OCL_OP(scatter_add), .inputs = ALL, .outputs = ALL, .flags = LAYOUTS | GRAFT_CAP_IN_PLACE},
    {OCL_OP(scatter_reduce_two), .inputs = ALL, .outputs = ALL, .flags = LAYOUTS | GRAFT_CAP_IN_PLACE},
    {OCL_OP(index_put), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = LAYOUTS | GRAFT_CAP_IN_PLACE},
    {OCL_OP(index_put_impl), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = LAYOUTS | GRAFT_CAP_IN_PLACE},
    {OCL_OP(put), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = LAYOUTS | GRAFT_CAP_IN_PLACE},
    {OCL_OP(index_add), .inputs = ALL, .outputs = ALL, .flags = LAYOUTS | GRAFT_CAP_IN_PLACE},
    {OCL_OP(index_reduce), .inputs = ALL, .outputs = ALL, .flags = LAYOUTS | GRAFT_CAP_IN_PLACE},
    {OCL_OP(index_copy), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = LAYOUTS | GRAFT_CAP_IN_PLACE},
    {OCL_OP(index_fill_int_Tensor), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE,
     .flags = LAYOUTS | GRAFT_CAP_IN_PLACE},
    {OCL_OP(masked_scatter), .inputs = OCL_MOVABLE, .outputs = OCL_MOVABLE, .flags = LAYOUTS},
};
OCL_FAMILY(scatter, ops)
