/* dot and vdot of long vectors of floats that lie in a row. Others are a product and a sum (the host's decomposition),
 * whose programs small calls have anyway. */
#include "kernels/core/lines.h"

typedef struct operands {
  const graft_tensor_desc *a, *b, *out;
} operands;

typedef struct memo {
  ocl_kernel parts, sum;
  int64_t count; /* of parts */
  uint64_t bytes;
} memo;

static graft_status make_kernels(memo *memo, graft_device *device, const ocl_dtype *dtype, const ocl_dtype *compute,
                                 const ocl_lines *lines) {
  static const char *const files = "core/cascade core/lines core/parts matmul/dot";
  ocl_text head = {0};
  ocl_lines_head(&head, lines, compute);
  ocl_text_add(&head, "#define D %s\n", dtype->name);
  graft_status status = ocl_kernel_init(&memo->parts, device, &head, files, "dot_parts");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->sum, device, &head, files, "dot_sum");
  ocl_text_free(&head);
  return status;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->a->dl.dtype);
  if (!dtype) return GRAFT_UNIMPLEMENTED;
  const ocl_dtype *compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  const int64_t elements = ocl_elements(call->a);
  ocl_lines lines = {.outer = 1, .size = elements, .inner = 1};
  ocl_lines_plan(device, &lines);
  const int64_t part = ocl_lines_part(device, elements);
  memo->count = ocl_ceil_divide(elements, part);
  memo->bytes = (uint64_t)memo->count * compute->bytes;
  graft_status status = make_kernels(memo, device, dtype, compute, &lines);
  if (status != GRAFT_OK) return status;
  ocl_kernel_size(&memo->parts, memo->count * (int64_t)lines.local, lines.local);
  ocl_kernel_size(&memo->sum, (int64_t)lines.local, lines.local);
  const ocl_argument sizes[] = {OCL_VALUE(elements), OCL_VALUE(part)}, count = OCL_VALUE(memo->count);
  status = ocl_kernel_set(&memo->parts, OCL_ALL(sizes));
  return status == GRAFT_OK ? ocl_kernel_set(&memo->sum, 1, &count) : status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 2, .prepare = prepare};

static graft_status run(const graft_exec *exec, const operands *call) {
  const graft_dl_tensor *a = &call->a->dl, *b = &call->b->dl;
  if (ocl_elements(call->a) <= OCL_SMALL || !ocl_is_dense(a) || !ocl_is_dense(b)) return GRAFT_UNIMPLEMENTED;
  memo *memo;
  ocl_place parts;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status == GRAFT_OK) status = ocl_workspace(exec, memo->bytes, &parts);
  if (status != GRAFT_OK) return status;
  const ocl_argument first[] = {OCL_PLACE(parts), OCL_TENSOR(call->a), OCL_TENSOR(call->b)};
  status = ocl_launch(&memo->parts, exec->stream, OCL_ALL(first));
  const ocl_argument second[] = {OCL_TENSOR(call->out), OCL_PLACE(parts)};
  return status == GRAFT_OK ? ocl_launch(&memo->sum, exec->stream, OCL_ALL(second)) : status;
}

graft_status ocl_op_dot(const graft_exec *exec, const graft_args_dot *args) {
  return run(exec, &(operands){.a = args->self, .b = args->tensor, .out = args->out});
}

graft_status ocl_op_vdot(const graft_exec *exec, const graft_args_vdot *args) {
  return run(exec, &(operands){.a = args->self, .b = args->other, .out = args->out});
}
