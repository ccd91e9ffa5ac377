/* Layer, group and batch normalization: forward. They differ in which elements share a mean, and which a weight. */
#include "kernels/normalization/normalization.h"

/* ---- Geometry ---- */

ocl_norm ocl_norm_layer(const graft_device *device, const graft_tensor_desc *input, uint64_t normalized_ndim) {
  ocl_norm norm = {.kind = OCL_NORM_LAYER, .lines = {.outer = 1, .size = 1, .inner = 1}};
  int lead = input->dl.ndim - (int)normalized_ndim;
  for (int d = 0; d < input->dl.ndim; d++) *(d < lead ? &norm.lines.outer : &norm.lines.size) *= input->dl.shape[d];
  norm.rows = (ocl_norm_rows){.segments = 1, .row_stride = norm.lines.size, .groups = 1};
  ocl_lines_plan(device, &norm.lines);
  return norm;
}

ocl_norm ocl_norm_group(const graft_device *device, int64_t n, int64_t channels, int64_t area, int64_t groups) {
  int64_t each = channels / groups;
  ocl_norm norm = {.kind = OCL_NORM_GROUP, .lines = {.outer = n * groups, .size = area, .inner = 1}};
  norm.rows = (ocl_norm_rows){each, area, each * area, groups, each, 1};
  ocl_lines_plan(device, &norm.lines);
  return norm;
}

ocl_norm ocl_norm_batch(const graft_device *device, const graft_tensor_desc *input) {
  int64_t n = input->dl.shape[0], channels = input->dl.shape[1], area = 1;
  for (int d = 2; d < input->dl.ndim; d++) area *= input->dl.shape[d];
  ocl_norm norm = {.kind = OCL_NORM_BATCH, .lines = {.outer = channels, .size = area, .inner = 1}};
  norm.rows = (ocl_norm_rows){n, channels * area, area, channels, 1, 0};
  if (area > 1) {
    ocl_lines_plan(device, &norm.lines);
    return norm;
  }
  norm.lines = (ocl_lines){.outer = 1, .size = n, .inner = channels};
  norm.rows.segments = 1;
  ocl_lines_plan_columns(device, &norm.lines);
  return norm;
}

void ocl_norm_head(ocl_text *head, const ocl_norm *norm, const ocl_dtype *dtype, const ocl_dtype *compute,
                   const graft_tensor_desc *weight, const graft_tensor_desc *bias) {
  ocl_lines_head(head, &norm->lines, compute);
  ocl_text_add(head, "#define D %s\n%s%s%s", dtype->name, norm->kind == OCL_NORM_LAYER ? "#define ALONG\n" : "",
               weight ? "#define HAS_WEIGHT\n" : "", bias ? "#define HAS_BIAS\n" : "");
}

graft_status ocl_norm_set(ocl_kernel *kernel, const ocl_norm *norm) {
  const ocl_lines_space space = ocl_lines_lay(kernel, &norm->lines);
  const ocl_argument constants[] = {OCL_VALUE(space), OCL_VALUE(norm->rows)};
  return ocl_kernel_set(kernel, OCL_ALL(constants));
}

/* ---- Ops ---- */

typedef struct operands {
  const graft_tensor_desc *out, *mean, *rstd, *in, *weight, *bias, *running_mean, *running_var;
  bool fixed; /* the running statistics are used as they are */
  double epsilon, momentum;
  ocl_norm (*norm)(const graft_device *device, const void *args);
  const void *args;
} operands;

typedef struct memo {
  ocl_kernel kernel;
  const ocl_dtype *compute;
} memo;

static const ocl_dtype *floating(const graft_device *device, const graft_tensor_desc *desc) {
  const ocl_dtype *dtype = ocl_dtype_of(device, desc->dl.dtype);
  return dtype && dtype->class == OCL_CLASS_FLOAT ? dtype : NULL;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const operands *call = from;
  const ocl_dtype *dtype = floating(device, call->in), *statistic = floating(device, call->mean);
  const ocl_dtype *running = call->running_mean ? floating(device, call->running_mean) : statistic;
  if (!dtype || !statistic || !running || call->out->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  if (call->weight && call->weight->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  if (call->bias && call->bias->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  if (!call->running_mean != !call->running_var) return GRAFT_UNIMPLEMENTED;
  memo->compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  ocl_norm norm = call->norm(device, call->args);
  ocl_text head = {0};
  ocl_norm_head(&head, &norm, dtype, memo->compute, call->weight, call->bias);
  ocl_text_add(&head, "#define D_STATISTIC %s\n#define D_RUNNING %s\n%s%s", statistic->name, running->name,
               call->fixed ? "#define FIXED\n" : "", call->running_mean ? "#define UPDATES\n" : "");
  graft_status status = ocl_kernel_make(&memo->kernel, device, &head,
                                        "core/lines normalization/normalization normalization/forward", "forward");
  return status == GRAFT_OK ? ocl_norm_set(&memo->kernel, &norm) : status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

static graft_status run(const graft_exec *exec, const operands *call) {
  memo *memo;
  if (!call->out || !call->mean || !call->rstd) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status != GRAFT_OK) return status;
  const double numbers[3] = {call->epsilon, call->momentum, 1 - call->momentum};
  ocl_value values[3];
  size_t bytes = 0;
  for (int i = 0; i < 3; i++) bytes = ocl_number_as(&(ocl_number){.re = numbers[i]}, memo->compute, &values[i]);
  /* What is absent is never read; something must stand there. */
  const graft_tensor_desc *weight = call->weight ? call->weight : call->in, *bias = call->bias ? call->bias : call->in;
  const graft_tensor_desc *running_mean = call->running_mean ? call->running_mean : call->mean;
  const graft_tensor_desc *running_var = call->running_var ? call->running_var : call->rstd;
  const ocl_argument arguments[] = {OCL_TENSOR(call->out),    OCL_TENSOR(call->mean),  OCL_TENSOR(call->rstd),
                                    OCL_TENSOR(call->in),     OCL_TENSOR(weight),      OCL_TENSOR(bias),
                                    OCL_TENSOR(running_mean), OCL_TENSOR(running_var), {bytes, &values[0]},
                                    {bytes, &values[1]},      {bytes, &values[2]}};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

/* ---- Slots ---- */

static ocl_norm layer(const graft_device *device, const void *pointer) {
  const graft_args_native_layer_norm *args = pointer;
  return ocl_norm_layer(device, args->input, args->normalized_shape.count);
}

graft_status ocl_op_native_layer_norm(const graft_exec *exec, const graft_args_native_layer_norm *args) {
  const operands call = {.out = args->out0,
                         .mean = args->out1,
                         .rstd = args->out2,
                         .in = args->input,
                         .weight = args->weight,
                         .bias = args->bias,
                         .epsilon = args->eps,
                         .norm = layer,
                         .args = args};
  return run(exec, &call);
}

static ocl_norm group(const graft_device *device, const void *pointer) {
  const graft_args_native_group_norm *args = pointer;
  return ocl_norm_group(device, args->N, args->C, args->HxW, args->group);
}

graft_status ocl_op_native_group_norm(const graft_exec *exec, const graft_args_native_group_norm *args) {
  const operands call = {.out = args->out0,
                         .mean = args->out1,
                         .rstd = args->out2,
                         .in = args->input,
                         .weight = args->weight,
                         .bias = args->bias,
                         .epsilon = args->eps,
                         .norm = group,
                         .args = args};
  return run(exec, &call);
}

static ocl_norm batch(const graft_device *device, const void *pointer) {
  return ocl_norm_batch(device, ((const graft_args_native_batch_norm *)pointer)->input);
}

graft_status ocl_op_native_batch_norm(const graft_exec *exec, const graft_args_native_batch_norm *args) {
  const operands call = {.out = args->out0,
                         .mean = args->out1,
                         .rstd = args->out2,
                         .in = args->input,
                         .weight = args->weight,
                         .bias = args->bias,
                         .running_mean = args->running_mean,
                         .running_var = args->running_var,
                         .fixed = !args->training,
                         .epsilon = args->eps,
                         .momentum = args->momentum,
                         .norm = batch,
                         .args = args};
  return run(exec, &call);
}
