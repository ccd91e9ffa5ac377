/* Root mean square normalization and its gradient. */
#include <stdlib.h>

#include "kernels/core/direct.h"
#include "kernels/families.h"

bool ocl_normalization_rms_caps(uint32_t op_id, ocl_op_caps *caps) {
  if (op_id != GRAFT_OP_FUSED_RMS_NORM && op_id != GRAFT_OP_FUSED_RMS_NORM_BACKWARD) return false;
  caps->inputs = caps->outputs = OCL_FLOATS;
  caps->flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY;
  return true;
}

typedef struct call {
  const graft_tensor_desc *out, *to_weight, *grad, *in, *rstd, *weight;
  graft_int_list shape;
  double epsilon;
} call;

typedef struct memo {
  ocl_kernel rows, columns;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->rows);
  ocl_kernel_destroy(&memo->columns);
  free(memo);
}

static void add_head(ocl_text *head, const call *call, const ocl_dtype *dtype, const ocl_dtype *rstd) {
  ocl_text_add(head, "#define D %s\n#define D_RSTD %s\n#define HAS_WEIGHT %d\n", dtype->name, rstd->name,
               call->weight != NULL);
}

static graft_status prepare_rows(memo *memo, graft_device *device, const call *call, const ocl_dtype *dtype,
                                 const ocl_dtype *rstd, const ocl_lines *lines) {
  const ocl_dtype *compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  ocl_text head = {0};
  ocl_lines_head(&head, lines, compute);
  add_head(&head, call, dtype, rstd);
  if (call->grad) ocl_text_add(&head, "#define BACKWARD\n");
  graft_status status = head.failed ? GRAFT_OUT_OF_MEMORY
                                    : ocl_kernel_init(&memo->rows, device, head.items, "core/lines normalization/rms",
                                                      call->grad ? "rms_norm_backward" : "rms_norm");
  ocl_text_free(&head);
  ocl_number number = {.re = call->epsilon};
  ocl_value epsilon;
  size_t bytes = ocl_number_as(&number, compute, &epsilon);
  if (status == GRAFT_OK && !call->grad) status = ocl_kernel_constant(&memo->rows, 8, bytes, &epsilon);
  return status == GRAFT_OK ? ocl_lines_set(&memo->rows, lines, call->grad ? 10 : 9) : status;
}

static graft_status prepare_columns(memo *memo, graft_device *device, const call *call, const ocl_dtype *dtype,
                                    const ocl_dtype *rstd, const ocl_lines *lines) {
  size_t local = device->is_cpu ? 1 : 64, items = (size_t)(lines->size + 15) / 16;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  add_head(&head, call, dtype, rstd);
  ocl_text_add(&head, "#define COLUMNS\n");
  graft_status status =
      head.failed ? GRAFT_OUT_OF_MEMORY
                  : ocl_kernel_init(&memo->columns, device, head.items, "normalization/rms", "rms_norm_weight");
  ocl_text_free(&head);
  memo->columns.local[0] = local;
  memo->columns.global[0] = (items + local - 1) / local * local;
  if (status == GRAFT_OK) status = ocl_kernel_constant(&memo->columns, 8, sizeof lines->outer, &lines->outer);
  return status == GRAFT_OK ? ocl_kernel_constant(&memo->columns, 9, sizeof lines->size, &lines->size) : status;
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *pointer, void **out) {
  const call *call = pointer;
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, call->in->dl.dtype),
                  *rstd = ocl_dtype_of(exec->device, call->rstd->dl.dtype);
  (void)args;
  if (!dtype || !rstd || rstd->class != OCL_CLASS_FLOAT) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  ocl_lines lines = {.size = 1, .inner = 1};
  for (uint64_t i = 0; i < call->shape.count; i++) lines.size *= call->shape.items[i];
  lines.outer = lines.size ? ocl_elements(call->in) / lines.size : 0;
  ocl_lines_plan(exec->device, &lines);
  graft_status status = GRAFT_OK;
  if (!lines.size) status = GRAFT_UNIMPLEMENTED;
  if (status == GRAFT_OK && call->out && lines.outer)
    status = prepare_rows(memo, exec->device, call, dtype, rstd, &lines);
  if (status == GRAFT_OK && call->to_weight) status = prepare_columns(memo, exec->device, call, dtype, rstd, &lines);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

graft_status ocl_op_fused_rms_norm(const graft_exec *exec, const graft_args_fused_rms_norm *args) {
  call call = {.out = args->out0,
               .rstd = args->out1,
               .in = args->input,
               .weight = args->weight,
               .shape = args->normalized_shape,
               .epsilon = args->eps ? *args->eps : 0};
  void *pointer;
  if (!args->out0 || !args->out1 || !args->eps) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, NULL, &call, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  const graft_tensor_desc *weight = call.weight ? call.weight : call.in;
  const ocl_argument arguments[] = {OCL_TENSOR(call.out), OCL_TENSOR(call.rstd), OCL_TENSOR(call.in),
                                    OCL_TENSOR(weight)};
  memo *memo = pointer;
  return memo->rows.handle ? ocl_launch(&memo->rows, exec->stream, 8, arguments) : GRAFT_OK;
}

graft_status ocl_op_fused_rms_norm_backward(const graft_exec *exec, const graft_args_fused_rms_norm_backward *args) {
  call call = {.out = args->out0,
               .to_weight = args->out1,
               .grad = args->grad_out,
               .in = args->input,
               .rstd = args->rstd,
               .weight = args->weight,
               .shape = args->normalized_shape};
  void *pointer;
  graft_status status = ocl_memo_get(exec, NULL, &call, make_memo, destroy_memo, &pointer);
  if (status == GRAFT_OK && ((memo *)pointer)->rows.handle) {
    const graft_tensor_desc *weight = call.weight ? call.weight : call.in;
    const ocl_argument rows[] = {OCL_TENSOR(call.out), OCL_TENSOR(call.grad), OCL_TENSOR(call.in),
                                 OCL_TENSOR(call.rstd), OCL_TENSOR(weight)};
    status = ocl_launch(&((memo *)pointer)->rows, exec->stream, 10, rows);
  }
  if (status == GRAFT_OK && call.to_weight) {
    const ocl_argument columns[] = {OCL_TENSOR(call.to_weight), OCL_TENSOR(call.grad), OCL_TENSOR(call.in),
                                    OCL_TENSOR(call.rstd)};
    status = ocl_launch(&((memo *)pointer)->columns, exec->stream, 8, columns);
  }
  return status;
}
