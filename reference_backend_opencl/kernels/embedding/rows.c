/* Ops that go over rows of a table as indices name them: embedding_renorm, and the gradient of the weights in bags. */
#include "kernels/core/lengths.h"
#include "kernels/core/lines.h"

typedef struct operands {
  const char *entry;
  uint32_t op_id;
  const graft_tensor_desc *table, *indices, *other; /* other: what else has an element for each index, or NULL */
  double p;
} operands;

typedef struct memo {
  ocl_kernel kernel;
  const ocl_dtype *compute;
} memo;

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->table->dl.dtype);
  const ocl_dtype *index = ocl_dtype_of(device, call->indices->dl.dtype);
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || !index) return GRAFT_UNIMPLEMENTED;
  if (call->other && call->other->dl.dtype != index->code) return GRAFT_UNIMPLEMENTED;
  memo->compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  ocl_lines lines = {.outer = ocl_elements(call->indices), .size = call->table->dl.shape[1], .inner = 1};
  ocl_lines_plan(device, &lines);
  ocl_text head = {0};
  ocl_lines_head(&head, &lines, memo->compute);
  ocl_text_add(&head, "#define D %s\n#define D_INDEX %s\n#define OP_ID %u\n", dtype->name, index->name, call->op_id);
  ocl_length_head(&head, call->p);
  graft_status status =
      ocl_kernel_make(&memo->kernel, device, &head, "core/lines core/lengths embedding/rows", call->entry);
  return status == GRAFT_OK ? ocl_lines_set(&memo->kernel, &lines) : status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

/* What no index names stays as it is. */
static graft_status copy_table(const graft_exec *exec, const graft_tensor_desc *from, const graft_tensor_desc *to) {
  uint64_t bytes = (uint64_t)ocl_elements(from) * GRAFT_DTYPE_BYTES(from->dl.dtype);
  if (from->dl.data == to->dl.data && from->dl.byte_offset == to->dl.byte_offset) return GRAFT_OK;
  return ocl_memory_api.copy(exec->stream, to->dl.data, to->dl.byte_offset, from->dl.data, from->dl.byte_offset, bytes);
}

static graft_status shorten(const graft_exec *exec, const graft_args_embedding_renorm *args, memo *memo) {
  ocl_place taken;
  cl_mem faults;
  int64_t table = args->self->dl.shape[0];
  const uint32_t none = 0;
  ocl_value p, most;
  size_t bytes = ocl_number_as(&(ocl_number){.re = args->norm_type}, memo->compute, &p);
  ocl_number_as(&(ocl_number){.re = args->max_norm}, memo->compute, &most);
  graft_status status = ocl_workspace(exec, (uint64_t)table * sizeof none, &taken);
  if (status == GRAFT_OK)
    status = ocl_fill(exec->stream, taken.buffer, taken.offset, (uint64_t)table * sizeof none, &none, sizeof none);
  if (status == GRAFT_OK) status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  const ocl_argument arguments[] = {OCL_TENSOR(args->out), OCL_TENSOR(args->self), OCL_TENSOR(args->indices),
                                    OCL_PLACE(taken),      OCL_VALUE(faults),      {bytes, &p},
                                    {bytes, &most},        OCL_VALUE(table)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

graft_status ocl_op_embedding_renorm(const graft_exec *exec, const graft_args_embedding_renorm *args) {
  const operands call = {.entry = "renorm",
                         .op_id = args->head.op_id,
                         .table = args->self,
                         .indices = args->indices,
                         .p = args->norm_type};
  memo *memo;
  if (!ocl_elements(args->indices) || !ocl_elements(args->self)) return copy_table(exec, args->self, args->out);
  graft_status status = ocl_memo_get(exec, &memo_type, &call, &memo);
  if (status == GRAFT_OK) status = copy_table(exec, args->self, args->out);
  return status == GRAFT_OK ? shorten(exec, args, memo) : status;
}

graft_status ocl_op_embedding_bag_per_sample_weights_backward(
    const graft_exec *exec, const graft_args_embedding_bag_per_sample_weights_backward *args) {
  const operands call = {.entry = "weights_gradient",
                         .op_id = args->head.op_id,
                         .table = args->weight,
                         .indices = args->indices,
                         .other = args->offset2bag,
                         .p = 2};
  memo *memo;
  cl_mem faults;
  graft_status status = ocl_memo_get(exec, &memo_type, &call, &memo);
  if (status == GRAFT_OK) status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  int64_t table = args->weight->dl.shape[0], bags = args->grad->dl.shape[0];
  const ocl_argument arguments[] = {
      OCL_TENSOR(args->out),        OCL_TENSOR(args->grad), OCL_TENSOR(args->weight), OCL_TENSOR(args->indices),
      OCL_TENSOR(args->offset2bag), OCL_VALUE(faults),      OCL_VALUE(table),         OCL_VALUE(bags),
      OCL_VALUE(args->padding_idx)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}
