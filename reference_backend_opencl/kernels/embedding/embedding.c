/* The ops of this family. Embedding: a gather of rows, and its gradient, a scatter of rows. */
#include "kernels/core/indexed.h"

/* One row of `rows` for each index. */
static void set_rows(ocl_indexed *call, const graft_tensor_desc *index, int64_t count) {
  int64_t width = call->picked->dl.shape[1];
  ocl_indexed_add(call, index, count, width);
  ocl_indexed_push(call, ocl_elements(index), width, 0);
  call->stride[OCL_INDEX][0] = 1;
  ocl_indexed_push(call, width, 1, 1);
}

graft_status ocl_op_embedding(const graft_exec *exec, const graft_args_embedding *args) {
  ocl_indexed call = {.op_id = args->head.op_id, .plain = args->out, .picked = args->weight};
  set_rows(&call, args->indices, args->weight->dl.shape[0]);
  return ocl_gather(exec, &call);
}

graft_status ocl_op_embedding_dense_backward(const graft_exec *exec, const graft_args_embedding_dense_backward *args) {
  if (args->scale_grad_by_freq) return GRAFT_UNIMPLEMENTED; /* the host divides by the frequencies first */
  ocl_scatter call = {.indexed = {.op_id = args->head.op_id, .plain = args->grad_output, .picked = args->out},
                      .mode = OCL_SCATTER_ADD,
                      .skip = args->padding_idx < 0 ? -1 : args->padding_idx};
  set_rows(&call.indexed, args->indices, args->num_weights);
  return ocl_scatter_run(exec, &call);
}

static const ocl_op ops[] = {
    {OCL_OP(embedding), .inputs = OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX,
     .outputs = OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(embedding_dense_backward), .inputs = OCL_FLOATS | OCL_COMPLEX, .outputs = OCL_FLOATS | OCL_COMPLEX,
     .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(embedding_bag), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS | OCL_BIT(I32) | OCL_BIT(I64),
     .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(embedding_bag_per_sample_weights_backward), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS,
     .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(embedding_renorm), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS,
     .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY | GRAFT_CAP_IN_PLACE | GRAFT_CAP_INDEX_I32},
};
OCL_FAMILY(embedding, ops)
