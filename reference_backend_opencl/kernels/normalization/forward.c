/* Layer, group and batch normalization: forward. They differ in which elements share a mean, and which a weight. */
#include "kernels/normalization/normalization.h"

/* ---- Geometry ---- */

static void plan_layer(const graft_device *device, const ocl_call *call, ocl_norm *norm) {
  const graft_dl_tensor *in = &ocl_read_tensor(call, OCL_NORM_INPUT)->dl;
  int lead = in->ndim - (int)ocl_read_ints(call, OCL_NORM_SHAPE).count;
  norm->lines = (ocl_lines){.outer = 1, .size = 1, .inner = 1};
  for (int d = 0; d < in->ndim; d++) *(d < lead ? &norm->lines.outer : &norm->lines.size) *= in->shape[d];
  norm->rows = (ocl_norm_rows){.segments = 1, .row_stride = norm->lines.size, .groups = 1};
  ocl_lines_plan(device, &norm->lines);
}

static void plan_group(const graft_device *device, const ocl_call *call, ocl_norm *norm) {
  int64_t groups = ocl_read_int(call, OCL_NORM_GROUPS, 1), area = ocl_read_int(call, OCL_NORM_AREA, 1);
  int64_t each = ocl_read_int(call, OCL_NORM_C, 1) / groups;
  norm->lines = (ocl_lines){.outer = ocl_read_int(call, OCL_NORM_N, 1) * groups, .size = area, .inner = 1};
  norm->rows = (ocl_norm_rows){each, area, each * area, groups, each, 1};
  ocl_lines_plan(device, &norm->lines);
}

static void plan_batch(const graft_device *device, const ocl_call *call, ocl_norm *norm) {
  const graft_dl_tensor *in = &ocl_read_tensor(call, OCL_NORM_INPUT)->dl;
  int64_t n = in->shape[0], channels = in->shape[1], area = 1;
  for (int d = 2; d < in->ndim; d++) area *= in->shape[d];
  norm->lines = (ocl_lines){.outer = channels, .size = area, .inner = 1};
  norm->rows = (ocl_norm_rows){n, channels * area, area, channels, 1, 0};
  if (area > 1) {
    ocl_lines_plan(device, &norm->lines);
    return;
  }
  norm->lines = (ocl_lines){.outer = 1, .size = n, .inner = channels};
  norm->rows.segments = 1;
  ocl_lines_plan_columns(device, &norm->lines);
}

enum { GROUP_MOST = 512 }; /* of twice as many some kernels have too few registers */

ocl_norm ocl_norm_of(const graft_device *device, const ocl_call *call) {
  ocl_norm norm = {.kind = *(const ocl_norm_kind *)call->op->recipe};
  switch (norm.kind) {
    case OCL_NORM_LAYER: plan_layer(device, call, &norm); break;
    case OCL_NORM_GROUP: plan_group(device, call, &norm); break;
    case OCL_NORM_BATCH: plan_batch(device, call, &norm); break;
  }
  ocl_lines_widen(device, &norm.lines, GROUP_MOST);
  return norm;
}

bool ocl_norm_is_held(const graft_device *device, const ocl_norm *norm, const ocl_dtype *compute, ocl_held *held) {
  enum { ARRAYS = 2 }; /* the row, and its weights or what else is made of it */
  return norm->kind == OCL_NORM_LAYER &&
         ocl_held_plan(device, norm->lines.outer, norm->lines.size, compute, ARRAYS, held);
}

void ocl_norm_head(ocl_text *head, const ocl_norm *norm, const ocl_dtype *dtype, const ocl_dtype *compute,
                   const graft_tensor_desc *weight, const graft_tensor_desc *bias) {
  ocl_lines_head(head, &norm->lines, compute);
  ocl_norm_values_head(head, norm, dtype, weight, bias);
}

void ocl_norm_values_head(ocl_text *head, const ocl_norm *norm, const ocl_dtype *dtype, const graft_tensor_desc *weight,
                          const graft_tensor_desc *bias) {
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
  const ocl_call *call;
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
  ocl_norm norm = ocl_norm_of(device, call->call);
  ocl_text head = {0};
  ocl_held held;
  if (ocl_norm_is_held(device, &norm, memo->compute, &held)) {
    ocl_held_head(&head, &held, memo->compute);
    ocl_norm_values_head(&head, &norm, dtype, call->weight, call->bias);
    ocl_text_add(&head, "#define D_STATISTIC %s\n", statistic->name);
    graft_status status = ocl_kernel_make(&memo->kernel, device, &head, OCL_NORM_HELD_FILES, "forward");
    return status == GRAFT_OK ? ocl_held_set(&memo->kernel, &held) : status;
  }
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

/* ---- The engine ---- */

const char *const ocl_norm_reads[] = {[OCL_NORM_INPUT] = "input",
                                      [OCL_NORM_SHAPE] = "normalized_shape",
                                      [OCL_NORM_N] = "N",
                                      [OCL_NORM_C] = "C",
                                      [OCL_NORM_AREA] = "HxW",
                                      [OCL_NORM_GROUPS] = "group",
                                      [OCL_NORM_WEIGHT] = "weight",
                                      [OCL_NORM_BIAS] = "bias",
                                      [OCL_NORM_RUNNING_MEAN] = "running_mean",
                                      [OCL_NORM_RUNNING_VAR] = "running_var",
                                      [OCL_NORM_TRAINING] = "training",
                                      [OCL_NORM_TRAIN] = "train",
                                      [OCL_NORM_MOMENTUM] = "momentum",
                                      [OCL_NORM_EPS] = "eps",
                                      [OCL_NORM_GRAD] = "grad_out",
                                      [OCL_NORM_MEAN] = "mean",
                                      [OCL_NORM_RSTD] = "rstd",
                                      [OCL_NORM_SAVE_MEAN] = "save_mean",
                                      [OCL_NORM_SAVE_INVSTD] = "save_invstd",
                                      [OCL_NORM_READS] = NULL};

static operands operands_of(const ocl_call *call) {
  const bool batch = *(const ocl_norm_kind *)call->op->recipe == OCL_NORM_BATCH;
  return (operands){.out = ocl_result(call, 0),
                    .mean = ocl_result(call, 1),
                    .rstd = ocl_result(call, 2),
                    .in = ocl_read_tensor(call, OCL_NORM_INPUT),
                    .weight = ocl_read_tensor(call, OCL_NORM_WEIGHT),
                    .bias = ocl_read_tensor(call, OCL_NORM_BIAS),
                    .running_mean = ocl_read_tensor(call, OCL_NORM_RUNNING_MEAN),
                    .running_var = ocl_read_tensor(call, OCL_NORM_RUNNING_VAR),
                    .fixed = batch && !ocl_read_bool(call, OCL_NORM_TRAINING),
                    .epsilon = ocl_read_float(call, OCL_NORM_EPS, 0),
                    .momentum = ocl_read_float(call, OCL_NORM_MOMENTUM, 0),
                    .call = call};
}

graft_status ocl_norm_forward(const ocl_call *call) {
  const operands operands = operands_of(call);
  return run(call->exec, &operands);
}

/* ---- In groups ---- */

/* As forward.cl has it. */
const ocl_pointwise_recipe ocl_norm_fixed_recipe = {.dtypes = OCL_FLOATS,
                                                    .expression = "(a - b) * ((VT)1 / sqrt(c + x)) * d + e"};

bool ocl_norm_read_fixed(const ocl_call *call, ocl_norm_fixed *norm) {
  if (call->op->engine != ocl_norm_forward) return false;
  const operands o = operands_of(call);
  if (!o.fixed || !o.out) return false;
  *norm = (ocl_norm_fixed){
      .in = o.in, .out = o.out, .of_channels = {o.running_mean, o.running_var, o.weight, o.bias}, .epsilon = o.epsilon};
  bool plain = o.in->dl.dtype == o.out->dl.dtype;
  for (int i = 0; i < OCL_NORM_OF_CHANNELS && plain; i++)
    plain = norm->of_channels[i] && norm->of_channels[i]->dl.dtype == o.out->dl.dtype;
  return plain;
}
