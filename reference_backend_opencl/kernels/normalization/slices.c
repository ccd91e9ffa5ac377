/* Ops on what lies along one dim of a tensor and shares a length: renorm, weight_norm and its gradient. */
#include "kernels/core/lengths.h"
#include "kernels/normalization/normalization.h"

typedef struct operands {
  const char *entry;
  const graft_tensor_desc *out, *lengths, *in, *weight, *grad, *to_weight;
  int64_t dim;
  double p, most;
} operands;

typedef struct memo {
  ocl_kernel kernel;
  const ocl_dtype *compute;
} memo;

/* A slice is a row, of a run for each place of the dims before; or, where there are none behind, slices are columns. */
static ocl_norm slices_of(const graft_device *device, const operands *call) {
  ocl_norm norm = {.kind = OCL_NORM_BATCH};
  const ocl_lines along = ocl_lines_of(device, &call->in->dl, call->dim);
  if (along.inner == 1) {
    norm.lines = (ocl_lines){.outer = 1, .size = along.outer, .inner = along.size};
    norm.rows = (ocl_norm_rows){.segments = 1, .groups = 1};
    ocl_lines_plan_columns(device, &norm.lines);
    return norm;
  }
  norm.lines = (ocl_lines){.outer = along.size, .size = along.inner, .inner = 1};
  norm.rows = (ocl_norm_rows){
      .segments = along.outer, .segment_stride = along.size * along.inner, .row_stride = along.inner, .groups = 1};
  ocl_lines_plan(device, &norm.lines);
  return norm;
}

static bool is_served(const graft_device *device, const operands *call) {
  const graft_tensor_desc *const values[] = {call->out, call->weight, call->grad, call->to_weight};
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype);
  const ocl_dtype *length = call->lengths ? ocl_dtype_of(device, call->lengths->dl.dtype) : dtype;
  if (!dtype || !length || dtype->class != OCL_CLASS_FLOAT || length->class != OCL_CLASS_FLOAT) return false;
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    if (values[i] && values[i]->dl.dtype != dtype->code) return false;
  }
  return length->code != GRAFT_F64 || dtype->code == GRAFT_F64;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const operands *call = from;
  if (!is_served(device, call)) return GRAFT_UNIMPLEMENTED;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype);
  memo->compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  const ocl_norm norm = slices_of(device, call);
  ocl_text head = {0};
  ocl_norm_head(&head, &norm, dtype, memo->compute, NULL, NULL);
  const ocl_dtype *length = call->lengths ? ocl_dtype_of(device, call->lengths->dl.dtype) : dtype;
  ocl_text_add(&head, "#define D_STATISTIC %s\n#define D_LENGTH %s\n", dtype->name, length->name);
  ocl_length_head(&head, call->p);
  graft_status status =
      ocl_kernel_make(&memo->kernel, device, &head,
                      "core/lines core/lengths normalization/normalization normalization/slices", call->entry);
  return status == GRAFT_OK ? ocl_norm_set(&memo->kernel, &norm) : status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

static graft_status run(const graft_exec *exec, const operands *call, cl_uint count, const ocl_argument *arguments) {
  memo *memo;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  return status == GRAFT_OK ? ocl_launch(&memo->kernel, exec->stream, count, arguments) : status;
}

graft_status ocl_op_renorm(const graft_exec *exec, const graft_args_renorm *args) {
  const operands call = {
      .entry = "renorm", .out = args->out, .in = args->self, .dim = args->dim, .p = ocl_real_of_scalar(args->p, 2)};
  const ocl_dtype *compute = ocl_dtype_of(exec->device, args->self->dl.dtype == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  if (!compute) return GRAFT_UNIMPLEMENTED;
  ocl_value p, most;
  size_t bytes = ocl_number_as(&(ocl_number){.re = call.p}, compute, &p);
  ocl_number_as(&(ocl_number){.re = ocl_real_of_scalar(args->maxnorm, 0)}, compute, &most);
  const ocl_argument arguments[] = {OCL_TENSOR(args->out), OCL_TENSOR(args->self), {bytes, &p}, {bytes, &most}};
  return run(exec, &call, OCL_ALL(arguments));
}

graft_status ocl_op_weight_norm_interface(const graft_exec *exec, const graft_args_weight_norm_interface *args) {
  if (!args->out0 || !args->out1) return GRAFT_UNIMPLEMENTED;
  const operands call = {.entry = "weight_norm",
                         .out = args->out0,
                         .lengths = args->out1,
                         .in = args->v,
                         .weight = args->g,
                         .dim = args->dim,
                         .p = 2};
  const ocl_argument arguments[] = {OCL_TENSOR(args->out0), OCL_TENSOR(args->out1), OCL_TENSOR(args->v),
                                    OCL_TENSOR(args->g)};
  return run(exec, &call, OCL_ALL(arguments));
}

graft_status ocl_op_weight_norm_interface_backward(const graft_exec *exec,
                                                   const graft_args_weight_norm_interface_backward *args) {
  if (!args->out0 || !args->out1) return GRAFT_UNIMPLEMENTED;
  const operands call = {.entry = "weight_norm_backward",
                         .out = args->out0,
                         .to_weight = args->out1,
                         .grad = args->grad_w,
                         .in = args->saved_v,
                         .weight = args->saved_g,
                         .lengths = args->saved_norms,
                         .dim = args->dim,
                         .p = 2};
  const ocl_argument arguments[] = {OCL_TENSOR(args->out0),    OCL_TENSOR(args->out1),
                                    OCL_TENSOR(args->grad_w),  OCL_TENSOR(args->saved_v),
                                    OCL_TENSOR(args->saved_g), OCL_TENSOR(args->saved_norms)};
  return run(exec, &call, OCL_ALL(arguments));
}
