/* Gradients of layer, group and batch normalization. The gradient of the input and the sums for weight and bias go over
 * the same rows once; where many rows share a weight, partial sums are added in a launch of their own. */
#include "kernels/normalization/normalization.h"

typedef struct operands {
  const graft_tensor_desc *out, *weight_out, *bias_out; /* NULL: not wanted */
  const graft_tensor_desc *grad, *in, *mean, *rstd, *weight;
  bool fixed; /* mean and rstd are given statistics, a mean and a variance */
  double epsilon;
  const ocl_call *call;
} operands;

typedef struct memo {
  ocl_kernel rows, columns, add;
  const ocl_dtype *compute;
  uint64_t partial_bytes; /* of one of the two; 0: none are needed */
  int64_t row_count;
} memo;

static bool wants_sums(const operands *call) {
  return call->weight_out || call->bias_out;
}

static void add_wants(ocl_text *head, const operands *call) {
  ocl_text_add(head, "%s%s%s", call->out ? "#define WANT_X\n" : "", call->weight_out ? "#define WANT_W\n" : "",
               call->bias_out ? "#define WANT_B\n" : "");
}

/* How the sums for weight and bias come about, as the head says it, and the dtype in which `gradient` writes them. */
static const char *sums_of(const graft_device *device, const operands *call, const ocl_norm *norm, const memo *memo,
                           const ocl_dtype **sum) {
  *sum = memo->compute;
  if (!wants_sums(call)) return "";
  switch (norm->kind) {
    case OCL_NORM_LAYER: return device->is_cpu ? "#define SUMS_BESIDE\n" : "";
    case OCL_NORM_GROUP: return "#define SUMS_OF_SEGMENTS\n";
    default:
      *sum = ocl_dtype_of(device, (call->weight_out ? call->weight_out : call->bias_out)->dl.dtype);
      return "#define SUMS_OF_ROWS\n";
  }
}

static graft_status prepare_rows(memo *memo, graft_device *device, const operands *call, const ocl_norm *norm,
                                 const ocl_dtype *dtype, const ocl_dtype *statistic) {
  const ocl_dtype *sum;
  const char *sums = sums_of(device, call, norm, memo, &sum);
  if (!sum) return GRAFT_UNIMPLEMENTED;
  ocl_text head = {0};
  ocl_held held;
  if (call->out && ocl_norm_is_held(device, norm, memo->compute, &held)) {
    ocl_held_head(&head, &held, memo->compute);
    ocl_norm_values_head(&head, norm, dtype, call->weight, NULL);
    ocl_text_add(&head, "#define D_STATISTIC %s\n#define BACKWARD\n", statistic->name);
    graft_status status = ocl_kernel_make(&memo->rows, device, &head, OCL_NORM_HELD_FILES, "gradient");
    return status == GRAFT_OK ? ocl_held_set(&memo->rows, &held) : status;
  }
  ocl_norm_head(&head, norm, dtype, memo->compute, call->weight, NULL);
  ocl_text_add(&head, "#define D_STATISTIC %s\n#define D_SUM %s\n%s%s", statistic->name, sum->name, sums,
               call->fixed ? "#define FIXED\n" : "");
  add_wants(&head, call);
  graft_status status = ocl_kernel_make(&memo->rows, device, &head,
                                        "core/lines normalization/normalization normalization/backward", "gradient");
  return status == GRAFT_OK ? ocl_norm_set(&memo->rows, norm) : status;
}

static graft_status prepare_columns(ocl_kernel *kernel, graft_device *device, const operands *call,
                                    const ocl_lines *lines, const memo *memo, const ocl_dtype *dtype,
                                    const ocl_dtype *statistic, const char *entry) {
  ocl_text head = {0};
  ocl_lines_head(&head, lines, memo->compute);
  ocl_text_add(&head, "#define D %s\n#define D_STATISTIC %s\n#define D_SUM %s\n#define COLUMN_KERNELS\n", dtype->name,
               statistic->name, memo->compute->name);
  add_wants(&head, call);
  graft_status status =
      ocl_kernel_make(kernel, device, &head, "core/lines normalization/normalization normalization/backward", entry);
  return status == GRAFT_OK ? ocl_lines_set(kernel, lines) : status;
}

/* Partial sums: from `parts` places, each of `columns` numbers. */
static graft_status prepare_sums(memo *memo, graft_device *device, const operands *call, const ocl_norm *norm,
                                 const ocl_dtype *dtype, const ocl_dtype *statistic) {
  int64_t parts, columns;
  graft_status status = GRAFT_OK;
  if (norm->kind == OCL_NORM_GROUP) {
    parts = norm->lines.outer / norm->rows.groups;
    columns = norm->rows.groups * norm->rows.segments;
  } else if (device->is_cpu) {
    parts = (int64_t)(memo->rows.global[0] / memo->rows.local[0]);
    columns = norm->lines.size;
  } else {
    int64_t wanted = 64 * (int64_t)device->compute_units * 16 / norm->lines.size + 1, most = norm->lines.outer / 32 + 1;
    int64_t count = wanted < most ? wanted : most, range = ocl_ceil_divide(norm->lines.outer, count);
    ocl_lines lines = {.outer = ocl_ceil_divide(norm->lines.outer, range), .size = range, .inner = norm->lines.size};
    parts = lines.outer;
    columns = lines.inner;
    ocl_lines_plan_columns(device, &lines);
    ocl_lines_share(device, &lines);
    status = prepare_columns(&memo->columns, device, call, &lines, memo, dtype, statistic, "column_sums");
    memo->row_count = norm->lines.outer;
  }
  memo->partial_bytes = (uint64_t)(parts * columns) * memo->compute->bytes;
  ocl_lines lines = {.outer = 1, .size = parts, .inner = columns};
  ocl_lines_plan_columns(device, &lines);
  ocl_lines_share(device, &lines);
  if (status != GRAFT_OK) return status;
  return prepare_columns(&memo->add, device, call, &lines, memo, dtype, statistic, "add_partials");
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype),
                  *statistic = ocl_dtype_of(device, call->mean->dl.dtype);
  if (!dtype || !statistic || dtype->class != OCL_CLASS_FLOAT || statistic->class != OCL_CLASS_FLOAT ||
      call->grad->dl.dtype != dtype->code || call->rstd->dl.dtype != statistic->code ||
      (call->weight && call->weight->dl.dtype != dtype->code)) {
    return GRAFT_UNIMPLEMENTED;
  }
  memo->compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  ocl_norm norm = ocl_norm_of(device, call->call);
  bool added = wants_sums(call) && norm.kind != OCL_NORM_BATCH;
  const graft_tensor_desc *sums[] = {call->weight_out, call->bias_out};
  for (int i = 0; i < 2; i++) {
    if (added && sums[i] && sums[i]->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  }
  graft_status status = prepare_rows(memo, device, call, &norm, dtype, statistic);
  return status == GRAFT_OK && added ? prepare_sums(memo, device, call, &norm, dtype, statistic) : status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 3, .prepare = prepare};

/* ---- A launch ---- */

/* What is absent is not looked at; something must stand there. */
static ocl_place place_of(const graft_tensor_desc *desc, const graft_tensor_desc *other) {
  return ocl_place_of(desc ? desc : other);
}

static graft_status add_partials(const graft_exec *exec, memo *memo, const operands *call, ocl_place weight,
                                 ocl_place bias) {
  ocl_place weight_out = place_of(call->weight_out, call->in), bias_out = place_of(call->bias_out, call->in);
  const ocl_argument arguments[] = {OCL_PLACE(weight_out), OCL_PLACE(bias_out), OCL_PLACE(weight), OCL_PLACE(bias)};
  return ocl_launch(&memo->add, exec->stream, OCL_ALL(arguments));
}

static graft_status run(const graft_exec *exec, const operands *call) {
  memo *memo;
  if (!call->out && !wants_sums(call)) return GRAFT_OK;
  if (!call->mean || !call->rstd) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status != GRAFT_OK) return status;
  ocl_place weight_sums = place_of(call->weight_out, call->in), bias_sums = place_of(call->bias_out, call->in);
  if (memo->partial_bytes) {
    status = ocl_workspace(exec, memo->partial_bytes, &weight_sums);
    if (status == GRAFT_OK) status = ocl_workspace(exec, memo->partial_bytes, &bias_sums);
    if (status != GRAFT_OK) return status;
  }
  ocl_place out = place_of(call->out, call->in), weight = place_of(call->weight, call->in);
  ocl_value epsilon;
  size_t bytes = ocl_number_as(&(ocl_number){.re = call->epsilon}, memo->compute, &epsilon);
  const ocl_argument rows[] = {OCL_PLACE(out),         OCL_PLACE(weight_sums), OCL_PLACE(bias_sums),
                               OCL_TENSOR(call->grad), OCL_TENSOR(call->in),   OCL_TENSOR(call->mean),
                               OCL_TENSOR(call->rstd), OCL_PLACE(weight),      {bytes, &epsilon}};
  status = ocl_launch(&memo->rows, exec->stream, OCL_ALL(rows));
  if (status == GRAFT_OK && memo->columns.handle) {
    const ocl_argument columns[] = {OCL_PLACE(weight_sums),    OCL_PLACE(bias_sums),   OCL_TENSOR(call->grad),
                                    OCL_TENSOR(call->in),      OCL_TENSOR(call->mean), OCL_TENSOR(call->rstd),
                                    OCL_VALUE(memo->row_count)};
    status = ocl_launch(&memo->columns, exec->stream, OCL_ALL(columns));
  }
  return status == GRAFT_OK && memo->partial_bytes ? add_partials(exec, memo, call, weight_sums, bias_sums) : status;
}

/* ---- The engine ---- */

static graft_status clear(graft_stream *stream, const graft_tensor_desc *out) {
  if (!out || ocl_elements(out) == 0) return GRAFT_OK;
  const cl_uchar zero = 0;
  uint64_t bytes = (uint64_t)ocl_elements(out) * ocl_dtype_of(stream->device, out->dl.dtype)->bytes;
  return ocl_fill(stream, out->dl.data, out->dl.byte_offset, bytes, &zero, sizeof zero);
}

/* Of an input without elements: sums of nothing. */
static graft_status clear_both(graft_stream *stream, const graft_tensor_desc *weight, const graft_tensor_desc *bias) {
  graft_status status = clear(stream, weight);
  return status == GRAFT_OK ? clear(stream, bias) : status;
}

graft_status ocl_norm_backward(const ocl_call *call) {
  bool batch = *(const ocl_norm_kind *)call->op->recipe == OCL_NORM_BATCH;
  bool fixed = batch && !ocl_read_bool(call, OCL_NORM_TRAIN);
  const operands operands = {.out = ocl_result(call, 0),
                             .weight_out = ocl_result(call, 1),
                             .bias_out = ocl_result(call, 2),
                             .grad = ocl_read_tensor(call, OCL_NORM_GRAD),
                             .in = ocl_read_tensor(call, OCL_NORM_INPUT),
                             .mean = ocl_read_tensor(call, fixed   ? OCL_NORM_RUNNING_MEAN
                                                           : batch ? OCL_NORM_SAVE_MEAN
                                                                   : OCL_NORM_MEAN),
                             .rstd = ocl_read_tensor(call, fixed   ? OCL_NORM_RUNNING_VAR
                                                           : batch ? OCL_NORM_SAVE_INVSTD
                                                                   : OCL_NORM_RSTD),
                             .weight = ocl_read_tensor(call, OCL_NORM_WEIGHT),
                             .fixed = fixed,
                             .epsilon = ocl_read_float(call, OCL_NORM_EPS, 0),
                             .call = call};
  if (!batch && ocl_elements(operands.in) == 0) {
    return clear_both(call->exec->stream, operands.weight_out, operands.bias_out);
  }
  return run(call->exec, &operands);
}
