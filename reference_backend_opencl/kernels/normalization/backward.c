/* Gradients of layer, group and batch normalization. The gradient of the input and the sums for weight and bias go over
 * the same rows once; where many rows share a weight, partial sums are added in a launch of their own. */
#include "kernels/normalization/normalization.h"

#include <stdlib.h>
#include <string.h>

typedef struct operands {
  const graft_tensor_desc *out, *weight_out, *bias_out; /* NULL: not wanted */
  const graft_tensor_desc *grad, *in, *mean, *rstd, *weight;
  bool fixed; /* mean and rstd are given statistics, a mean and a variance */
  double epsilon;
  const ocl_call *call;
  const ocl_epilogue *epilogue; /* of calls that follow, or NULL; with its arguments, where the call runs */
  cl_uint count;
  const ocl_argument *arguments;
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

static const char files[] = "core/lines normalization/normalization normalization/backward";

static graft_status prepare_followed(memo *memo, graft_device *device, const operands *call, const ocl_norm *norm,
                                     ocl_text *head) {
  const int64_t *strides = call->epilogue->to->dl.strides;
  const struct { int64_t row, element; } to = {strides[1], strides[2]};
  graft_status status =
      ocl_followed_init(&memo->rows, device, call->epilogue, head, files, "normalization/followed", "gradient");
  ocl_text_free(head);
  if (status == GRAFT_OK) status = ocl_norm_set(&memo->rows, norm);
  return status == GRAFT_OK ? ocl_kernel_set(&memo->rows, 1, &(ocl_argument)OCL_VALUE(to)) : status;
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
  if (call->epilogue) return prepare_followed(memo, device, call, norm, &head);
  graft_status status = ocl_kernel_make(&memo->rows, device, &head, files, "gradient");
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
  graft_status status = ocl_kernel_make(kernel, device, &head, files, entry);
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

static graft_status prepare_all(memo *memo, graft_device *device, const operands *call, const ocl_norm *norm) {
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype),
                  *statistic = ocl_dtype_of(device, call->mean->dl.dtype);
  if (!dtype || !statistic || dtype->class != OCL_CLASS_FLOAT || statistic->class != OCL_CLASS_FLOAT ||
      call->grad->dl.dtype != dtype->code || call->rstd->dl.dtype != statistic->code ||
      (call->weight && call->weight->dl.dtype != dtype->code)) {
    return GRAFT_UNIMPLEMENTED;
  }
  memo->compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  bool added = wants_sums(call) && norm->kind != OCL_NORM_BATCH;
  const graft_tensor_desc *sums[] = {call->weight_out, call->bias_out};
  for (int i = 0; i < 2; i++) {
    if (added && sums[i] && sums[i]->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  }
  graft_status status = prepare_rows(memo, device, call, norm, dtype, statistic);
  return status == GRAFT_OK && added ? prepare_sums(memo, device, call, norm, dtype, statistic) : status;
}

static graft_status prepare(void *memo, graft_device *device, const void *from) {
  const operands *call = from;
  const ocl_norm norm = ocl_norm_of(device, call->call);
  return prepare_all(memo, device, call, &norm);
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

static graft_status launch_rows(const graft_exec *exec, memo *memo, const operands *call, cl_uint count,
                                const ocl_argument *arguments) {
  ocl_argument all[OCL_WRITING_ARGUMENTS_MAX];
  if (!call->count) return ocl_launch(&memo->rows, exec->stream, count, arguments);
  memcpy(all, arguments, count * sizeof *all);
  memcpy(all + count, call->arguments, call->count * sizeof *all);
  return ocl_launch(&memo->rows, exec->stream, count + call->count, all);
}

static graft_status launch(const graft_exec *exec, memo *memo, const operands *call) {
  graft_status status = GRAFT_OK;
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
  status = launch_rows(exec, memo, call, OCL_ALL(rows));
  if (status == GRAFT_OK && memo->columns.handle) {
    const ocl_argument columns[] = {OCL_PLACE(weight_sums),    OCL_PLACE(bias_sums),   OCL_TENSOR(call->grad),
                                    OCL_TENSOR(call->in),      OCL_TENSOR(call->mean), OCL_TENSOR(call->rstd),
                                    OCL_VALUE(memo->row_count)};
    status = ocl_launch(&memo->columns, exec->stream, OCL_ALL(columns));
  }
  return status == GRAFT_OK && memo->partial_bytes ? add_partials(exec, memo, call, weight_sums, bias_sums) : status;
}

static graft_status run(const graft_exec *exec, const operands *call) {
  memo *memo;
  if (!call->out && !wants_sums(call)) return GRAFT_OK;
  if (!call->mean || !call->rstd) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  return status == GRAFT_OK ? launch(exec, memo, call) : status;
}

/* ---- With calls that follow ---- */

enum { GRAD, IN, MEAN, RSTD, WEIGHT };

bool ocl_norm_read_gradient(const ocl_call *call, ocl_norm_gradient_call *g) {
  const graft_device *device = call->exec->device;
  if (call->op->engine != ocl_norm_backward || *(const ocl_norm_kind *)call->op->recipe != OCL_NORM_LAYER) return false;
  *g = (ocl_norm_gradient_call){.reads = {[GRAD] = ocl_read_tensor(call, OCL_NORM_GRAD),
                                          [IN] = ocl_read_tensor(call, OCL_NORM_INPUT),
                                          [MEAN] = ocl_read_tensor(call, OCL_NORM_MEAN),
                                          [RSTD] = ocl_read_tensor(call, OCL_NORM_RSTD),
                                          [WEIGHT] = ocl_read_tensor(call, OCL_NORM_WEIGHT)},
                                .out = ocl_result(call, 0),
                                .sums = {ocl_result(call, 1), ocl_result(call, 2)}};
  const ocl_dtype *dtype = g->out ? ocl_dtype_of(device, g->out->dl.dtype) : NULL;
  if (!device->is_cpu || !dtype || dtype->class != OCL_CLASS_FLOAT || !ocl_is_dense(&g->out->dl)) return false;
  for (int i = 0; i < OCL_NORM_GRADIENT_READS; i++) {
    const graft_tensor_desc *desc = g->reads[i];
    if (!desc && i == WEIGHT) continue;
    if (!desc || !ocl_is_dense(&desc->dl) || desc->storage_id == g->out->storage_id) return false;
    if (desc->dl.dtype != (i == MEAN || i == RSTD ? g->reads[MEAN] : g->out)->dl.dtype) return false;
  }
  if (ocl_elements(g->reads[IN]) == 0) return false;
  g->norm = ocl_norm_of(device, call);
  return g->norm.lines.outer > 1; /* the gradient of a weight would be in the shape of the input's */
}

struct ocl_norm_gradient {
  memo memo;
};

static operands operands_of(const ocl_norm_gradient_call *call) {
  return (operands){.out = call->out,
                    .weight_out = call->sums[0],
                    .bias_out = call->sums[1],
                    .grad = call->reads[GRAD],
                    .in = call->reads[IN],
                    .mean = call->reads[MEAN],
                    .rstd = call->reads[RSTD],
                    .weight = call->reads[WEIGHT]};
}

graft_status ocl_norm_gradient_make(graft_device *device, const ocl_norm_gradient_call *call,
                                    const ocl_epilogue *epilogue, ocl_norm_gradient **made) {
  *made = calloc(1, sizeof **made);
  if (!*made) return GRAFT_OUT_OF_MEMORY;
  operands operands = operands_of(call);
  operands.epilogue = epilogue;
  return prepare_all(&(*made)->memo, device, &operands, &call->norm);
}

graft_status ocl_norm_gradient_run(const graft_exec *exec, ocl_norm_gradient *gradient,
                                   const ocl_norm_gradient_call *call, cl_uint count, const ocl_argument *arguments) {
  operands operands = operands_of(call);
  operands.count = count;
  operands.arguments = arguments;
  return launch(exec, &gradient->memo, &operands);
}

void ocl_norm_gradient_destroy(ocl_norm_gradient *gradient) {
  if (!gradient) return;
  ocl_kernel_destroy(&gradient->memo.rows);
  ocl_kernel_destroy(&gradient->memo.columns);
  ocl_kernel_destroy(&gradient->memo.add);
  free(gradient);
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
