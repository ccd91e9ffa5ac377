/* Negative log likelihood and its gradient. Losses of two tensors of one shape are in pairs.c. */
#include "kernels/core/lines.h"
#include "kernels/loss/loss.h"

typedef struct memo {
  ocl_kernel kernel;
  const ocl_dtype *compute;
} memo;

/* ---- Negative log likelihood ---- */

typedef struct likelihood {
  const graft_tensor_desc *values, *target, *weight; /* values: the argument self */
  const graft_tensor_desc *out, *total, *grad;       /* grad: backward only */
  int64_t reduction, ignored;
  uint32_t op_id;
} likelihood;

static bool each_row(const likelihood *call) {
  return call->reduction == OCL_LOSS_EACH && call->values->dl.ndim > 1;
}

static void write_head(ocl_text *head, const likelihood *call, const ocl_lines *lines, const ocl_dtype *dtype,
                       const ocl_dtype *target, const ocl_dtype *compute) {
  ocl_lines_head(head, lines, compute);
  ocl_text_add(head, "#define D %s\n#define D_TARGET %s\n#define OP_ID %u\n#define REDUCTION %d\n#define EACH_ROW %d\n",
               dtype->name, target->name, call->op_id, (int)call->reduction, each_row(call));
  if (call->weight) ocl_text_add(head, "#define WEIGHTED\n");
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const likelihood *call = from;
  const graft_dl_tensor *values = &call->values->dl;
  const ocl_dtype *dtype = ocl_dtype_of(device, values->dtype), *target = ocl_dtype_of(device, call->target->dl.dtype);
  if (!dtype || dtype->class != OCL_CLASS_FLOAT) return GRAFT_UNIMPLEMENTED;
  memo->compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  if (!target || (target->code != GRAFT_I64 && target->code != GRAFT_U8 && target->code != GRAFT_I32)) {
    return GRAFT_UNIMPLEMENTED;
  }
  if (call->weight && call->weight->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  int class_dim = values->ndim > 1 ? 1 : 0;
  int64_t classes = values->shape[class_dim], inner = 1, rows = ocl_elements(call->values) / classes;
  for (int d = class_dim + 1; d < values->ndim; d++) inner *= values->shape[d];
  const int64_t shape[] = {rows, classes, inner, call->ignored};
  ocl_lines lines = {.outer = 1, .size = 4096, .inner = 1};
  if (call->grad)
    lines = (ocl_lines){
        .outer = inner > 1 ? rows / inner * classes : rows, .size = inner > 1 ? inner : classes, .inner = 1};
  ocl_lines_plan(device, &lines);
  ocl_kernel *kernel = &memo->kernel;
  ocl_text head = {0};
  write_head(&head, call, &lines, dtype, target, memo->compute);
  if (inner > 1) ocl_text_add(&head, "#define INNER\n");
  const char *entry = call->grad ? "nll_gradient" : each_row(call) ? "nll_rows" : "nll_sum";
  graft_status status = ocl_kernel_make(kernel, device, &head, "core/cascade core/lines loss/likelihood", entry);
  if (status != GRAFT_OK) return status;
  if (call->grad) {
    const ocl_lines_space space = ocl_lines_lay(kernel, &lines);
    const ocl_argument constants[] = {{sizeof shape, shape}, OCL_VALUE(space)};
    return ocl_kernel_set(kernel, OCL_ALL(constants));
  }
  int64_t items = device->is_cpu ? 4 * (int64_t)device->compute_units : rows < 1 << 20 ? rows : 1 << 20;
  ocl_kernel_size(kernel, each_row(call) ? items : 1, lines.local);
  return ocl_kernel_set(kernel, 1, &(ocl_argument){sizeof shape, shape});
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

static graft_status run_likelihood(const graft_exec *exec, const likelihood *call) {
  memo *memo;
  cl_mem faults;
  if (!call->out || !call->total) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status == GRAFT_OK) status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  const graft_tensor_desc *weight = call->weight ? call->weight : call->values;
  /* Forward writes the total and reads the values; backward reads the total and the gradient. */
  const graft_tensor_desc *second = call->grad ? call->grad : call->total,
                          *third = call->grad ? call->total : call->values;
  const ocl_argument arguments[] = {OCL_TENSOR(call->out),    OCL_TENSOR(second), OCL_TENSOR(third),
                                    OCL_TENSOR(call->target), OCL_TENSOR(weight), OCL_VALUE(faults)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

graft_status ocl_op_nll_loss_forward(const graft_exec *exec, const graft_args_nll_loss_forward *args) {
  return run_likelihood(exec, &(likelihood){.op_id = args->head.op_id,
                                            .values = args->self,
                                            .target = args->target,
                                            .weight = args->weight,
                                            .out = args->output,
                                            .total = args->total_weight,
                                            .reduction = args->reduction,
                                            .ignored = args->ignore_index});
}

graft_status ocl_op_nll_loss_backward(const graft_exec *exec, const graft_args_nll_loss_backward *args) {
  return run_likelihood(exec, &(likelihood){.op_id = args->head.op_id,
                                            .values = args->self,
                                            .target = args->target,
                                            .weight = args->weight,
                                            .out = args->out,
                                            .total = args->total_weight,
                                            .grad = args->grad_output,
                                            .reduction = args->reduction,
                                            .ignored = args->ignore_index});
}

graft_status ocl_op_nll_loss2d_forward(const graft_exec *exec, const graft_args_nll_loss2d_forward *args) {
  return run_likelihood(exec, &(likelihood){.op_id = args->head.op_id,
                                            .values = args->self,
                                            .target = args->target,
                                            .weight = args->weight,
                                            .out = args->output,
                                            .total = args->total_weight,
                                            .reduction = args->reduction,
                                            .ignored = args->ignore_index});
}

graft_status ocl_op_nll_loss2d_backward(const graft_exec *exec, const graft_args_nll_loss2d_backward *args) {
  return run_likelihood(exec, &(likelihood){.op_id = args->head.op_id,
                                            .values = args->self,
                                            .target = args->target,
                                            .weight = args->weight,
                                            .out = args->out,
                                            .total = args->total_weight,
                                            .grad = args->grad_output,
                                            .reduction = args->reduction,
                                            .ignored = args->ignore_index});
}
