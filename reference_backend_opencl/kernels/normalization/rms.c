/* Root mean square normalization and its gradient. */
#include "kernels/core/lines.h"

typedef struct operands {
  const graft_tensor_desc *out, *to_weight, *grad, *in, *rstd, *weight;
  graft_int_list shape;
  double epsilon;
} operands;

typedef struct memo {
  ocl_kernel rows, columns;
} memo;

static void add_head(ocl_text *head, const operands *call, const ocl_dtype *dtype, const ocl_dtype *rstd) {
  ocl_text_add(head, "#define D %s\n#define D_RSTD %s\n#define HAS_WEIGHT %d\n", dtype->name, rstd->name,
               call->weight != NULL);
}

static graft_status prepare_rows(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype,
                                 const ocl_dtype *rstd, const ocl_lines *lines) {
  const ocl_dtype *compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  ocl_text head = {0};
  ocl_lines_head(&head, lines, compute);
  add_head(&head, call, dtype, rstd);
  if (call->grad) ocl_text_add(&head, "#define BACKWARD\n");
  graft_status status = ocl_kernel_make(&memo->rows, device, &head, "core/lines normalization/rms",
                                        call->grad ? "rms_norm_backward" : "rms_norm");
  ocl_number number = {.re = call->epsilon};
  ocl_value epsilon;
  size_t bytes = ocl_number_as(&number, compute, &epsilon);
  if (status != GRAFT_OK) return status;
  const ocl_lines_space space = ocl_lines_lay(&memo->rows, lines);
  const ocl_argument constants[] = {{bytes, &epsilon}, OCL_VALUE(space)};
  return call->grad ? ocl_kernel_set(&memo->rows, 1, &constants[1]) : ocl_kernel_set(&memo->rows, OCL_ALL(constants));
}

static graft_status prepare_columns(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype,
                                    const ocl_dtype *rstd, const ocl_lines *lines) {
  size_t local = device->is_cpu ? 1 : 64;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  add_head(&head, call, dtype, rstd);
  ocl_text_add(&head, "#define COLUMNS\n");
  graft_status status = ocl_kernel_make(&memo->columns, device, &head, "normalization/rms", "rms_norm_weight");
  ocl_kernel_size(&memo->columns, ocl_ceil_divide(lines->size, 16), local);
  const ocl_argument sizes[] = {OCL_VALUE(lines->outer), OCL_VALUE(lines->size)};
  return status == GRAFT_OK ? ocl_kernel_set(&memo->columns, OCL_ALL(sizes)) : status;
}

static graft_status prepare(void *memo, graft_device *device, const void *from) {
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype), *rstd = ocl_dtype_of(device, call->rstd->dl.dtype);
  if (!dtype || !rstd || rstd->class != OCL_CLASS_FLOAT) return GRAFT_UNIMPLEMENTED;
  ocl_lines lines = {.size = 1, .inner = 1};
  for (uint64_t i = 0; i < call->shape.count; i++) lines.size *= call->shape.items[i];
  if (!lines.size) return GRAFT_UNIMPLEMENTED;
  lines.outer = ocl_elements(call->in) / lines.size;
  ocl_lines_plan(device, &lines);
  graft_status status = GRAFT_OK;
  if (call->out && lines.outer) status = prepare_rows(memo, device, call, dtype, rstd, &lines);
  return status == GRAFT_OK && call->to_weight ? prepare_columns(memo, device, call, dtype, rstd, &lines) : status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 2, .prepare = prepare};

graft_status ocl_op_fused_rms_norm(const graft_exec *exec, const graft_args_fused_rms_norm *args) {
  operands call = {.out = args->out0,
                   .rstd = args->out1,
                   .in = args->input,
                   .weight = args->weight,
                   .shape = args->normalized_shape,
                   .epsilon = args->eps ? *args->eps : 0};
  memo *memo;
  if (!args->out0 || !args->out1 || !args->eps) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &memo_type, &call, &memo);
  if (status != GRAFT_OK) return status;
  const graft_tensor_desc *weight = call.weight ? call.weight : call.in;
  const ocl_argument arguments[] = {OCL_TENSOR(call.out), OCL_TENSOR(call.rstd), OCL_TENSOR(call.in),
                                    OCL_TENSOR(weight)};
  return memo->rows.handle ? ocl_launch(&memo->rows, exec->stream, OCL_ALL(arguments)) : GRAFT_OK;
}

graft_status ocl_op_fused_rms_norm_backward(const graft_exec *exec, const graft_args_fused_rms_norm_backward *args) {
  operands call = {.out = args->out0,
                   .to_weight = args->out1,
                   .grad = args->grad_out,
                   .in = args->input,
                   .rstd = args->rstd,
                   .weight = args->weight,
                   .shape = args->normalized_shape};
  memo *memo;
  graft_status status = ocl_memo_get(exec, &memo_type, &call, &memo);
  if (status == GRAFT_OK && memo->rows.handle) {
    const graft_tensor_desc *weight = call.weight ? call.weight : call.in;
    const ocl_argument rows[] = {OCL_TENSOR(call.out), OCL_TENSOR(call.grad), OCL_TENSOR(call.in),
                                 OCL_TENSOR(call.rstd), OCL_TENSOR(weight)};
    status = ocl_launch(&memo->rows, exec->stream, OCL_ALL(rows));
  }
  if (status == GRAFT_OK && call.to_weight) {
    const ocl_argument columns[] = {OCL_TENSOR(call.to_weight), OCL_TENSOR(call.grad), OCL_TENSOR(call.in),
                                    OCL_TENSOR(call.rstd)};
    status = ocl_launch(&memo->columns, exec->stream, OCL_ALL(columns));
  }
  return status;
}
