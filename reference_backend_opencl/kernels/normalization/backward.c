/* Gradients of layer, group and batch normalization. The gradient of the input and the sums for weight and bias go over
 * the same rows once; where many rows share a weight, partial sums are added in a launch of their own. */
#include <stdlib.h>

#include "kernels/core/indexed.h"
#include "kernels/normalization/normalization.h"

typedef struct call {
  const graft_tensor_desc *out, *weight_out, *bias_out; /* NULL: not wanted */
  const graft_tensor_desc *grad, *in, *mean, *rstd, *weight;
  bool fixed; /* mean and rstd are given statistics, a mean and a variance */
  double epsilon;
  ocl_norm (*norm)(const graft_device *device, const void *args);
  const void *args;
} call;

typedef struct memo {
  ocl_kernel rows, columns, add;
  const ocl_dtype *compute;
  uint64_t partial_bytes; /* of one of the two; 0: none are needed */
  int64_t row_count;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->rows);
  ocl_kernel_destroy(&memo->columns);
  ocl_kernel_destroy(&memo->add);
  free(memo);
}

static bool wants_sums(const call *call) {
  return call->weight_out || call->bias_out;
}

static void add_wants(ocl_text *head, const call *call) {
  ocl_text_add(head, "%s%s%s", call->out ? "#define WANT_X\n" : "", call->weight_out ? "#define WANT_W\n" : "",
               call->bias_out ? "#define WANT_B\n" : "");
}

/* How the sums for weight and bias come about, as the head says it, and the dtype in which `gradient` writes them. */
static const char *sums_of(const graft_device *device, const call *call, const ocl_norm *norm, const memo *memo,
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

static graft_status prepare_rows(memo *memo, graft_device *device, const call *call, const ocl_norm *norm,
                                 const ocl_dtype *dtype, const ocl_dtype *statistic) {
  const ocl_dtype *sum;
  const char *sums = sums_of(device, call, norm, memo, &sum);
  if (!sum) return GRAFT_UNIMPLEMENTED;
  ocl_text head = {0};
  ocl_norm_head(&head, norm, dtype, memo->compute, call->weight, NULL);
  ocl_text_add(&head, "#define D_STATISTIC %s\n#define D_SUM %s\n%s%s", statistic->name, sum->name, sums,
               call->fixed ? "#define FIXED\n" : "");
  add_wants(&head, call);
  graft_status status =
      head.failed ? GRAFT_OUT_OF_MEMORY
                  : ocl_kernel_init(&memo->rows, device, head.items,
                                    "core/lines normalization/normalization normalization/backward", "gradient");
  ocl_text_free(&head);
  if (status == GRAFT_OK) status = ocl_lines_set(&memo->rows, &norm->lines, 17);
  return status == GRAFT_OK ? ocl_kernel_constant(&memo->rows, 18, sizeof norm->rows, &norm->rows) : status;
}

static graft_status prepare_columns(ocl_kernel *kernel, graft_device *device, const call *call, const ocl_lines *lines,
                                    const memo *memo, const ocl_dtype *dtype, const ocl_dtype *statistic,
                                    const char *entry, cl_uint argument) {
  ocl_text head = {0};
  ocl_lines_head(&head, lines, memo->compute);
  ocl_text_add(&head, "#define D %s\n#define D_STATISTIC %s\n#define D_SUM %s\n#define COLUMN_KERNELS\n", dtype->name,
               statistic->name, memo->compute->name);
  add_wants(&head, call);
  graft_status status = head.failed
                            ? GRAFT_OUT_OF_MEMORY
                            : ocl_kernel_init(kernel, device, head.items,
                                              "core/lines normalization/normalization normalization/backward", entry);
  ocl_text_free(&head);
  return status == GRAFT_OK ? ocl_lines_set(kernel, lines, argument) : status;
}

/* Partial sums: from `parts` places, each of `columns` numbers. */
static graft_status prepare_sums(memo *memo, graft_device *device, const call *call, const ocl_norm *norm,
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
    int64_t count = wanted < most ? wanted : most, range = (norm->lines.outer + count - 1) / count;
    ocl_lines lines = {.outer = (norm->lines.outer + range - 1) / range, .size = range, .inner = norm->lines.size};
    parts = lines.outer;
    columns = lines.inner;
    ocl_lines_plan_columns(device, &lines);
    status = prepare_columns(&memo->columns, device, call, &lines, memo, dtype, statistic, "column_sums", 13);
    memo->row_count = norm->lines.outer;
  }
  memo->partial_bytes = (uint64_t)(parts * columns) * memo->compute->bytes;
  ocl_lines lines = {.outer = 1, .size = parts, .inner = columns};
  ocl_lines_plan_columns(device, &lines);
  if (status != GRAFT_OK) return status;
  return prepare_columns(&memo->add, device, call, &lines, memo, dtype, statistic, "add_partials", 8);
}

static graft_status prepare(memo *memo, graft_device *device, const call *call) {
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype),
                  *statistic = ocl_dtype_of(device, call->mean->dl.dtype);
  if (!dtype || !statistic || dtype->class != OCL_CLASS_FLOAT || statistic->class != OCL_CLASS_FLOAT ||
      call->grad->dl.dtype != dtype->code || call->rstd->dl.dtype != statistic->code ||
      (call->weight && call->weight->dl.dtype != dtype->code)) {
    return GRAFT_UNIMPLEMENTED;
  }
  memo->compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  ocl_norm norm = call->norm(device, call->args);
  bool added = wants_sums(call) && norm.kind != OCL_NORM_BATCH;
  const graft_tensor_desc *sums[] = {call->weight_out, call->bias_out};
  for (int i = 0; i < 2; i++) {
    if (added && sums[i] && sums[i]->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  }
  graft_status status = prepare_rows(memo, device, call, &norm, dtype, statistic);
  return status == GRAFT_OK && added ? prepare_sums(memo, device, call, &norm, dtype, statistic) : status;
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *call, void **out) {
  (void)args;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  graft_status status = prepare(memo, exec->device, call);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

/* ---- A launch ---- */

typedef struct place {
  graft_buffer *buffer;
  uint64_t offset;
} place;

#define PLACE(p) OCL_BUFFER((p).buffer), OCL_VALUE((p).offset)

static place place_of(const graft_tensor_desc *desc, const graft_tensor_desc *other) {
  const graft_dl_tensor *dl = desc ? &desc->dl : &other->dl;
  return (place){dl->data, dl->byte_offset};
}

static graft_status add_partials(const graft_exec *exec, memo *memo, const call *call, place weight, place bias) {
  place weight_out = place_of(call->weight_out, call->in), bias_out = place_of(call->bias_out, call->in);
  const ocl_argument arguments[] = {PLACE(weight_out), PLACE(bias_out), PLACE(weight), PLACE(bias)};
  return ocl_launch(&memo->add, exec->stream, 8, arguments);
}

static graft_status run(const graft_exec *exec, const call *call) {
  const graft_host *host = exec->device->plugin->host;
  void *pointer;
  if (!call->out && !wants_sums(call)) return GRAFT_OK;
  if (!call->mean || !call->rstd) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, NULL, call, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  place weight_sums = place_of(call->weight_out, call->in), bias_sums = place_of(call->bias_out, call->in);
  if (memo->partial_bytes) {
    status = host->workspace(exec, memo->partial_bytes, 0, &weight_sums.buffer, &weight_sums.offset);
    if (status == GRAFT_OK)
      status = host->workspace(exec, memo->partial_bytes, 0, &bias_sums.buffer, &bias_sums.offset);
    if (status != GRAFT_OK) return status;
  }
  place out = place_of(call->out, call->in), weight = place_of(call->weight, call->in);
  ocl_value epsilon;
  size_t bytes = ocl_number_as(&(ocl_number){.re = call->epsilon}, memo->compute, &epsilon);
  const ocl_argument rows[] = {
      PLACE(out),           PLACE(weight_sums),     PLACE(bias_sums),       OCL_TENSOR(call->grad),
      OCL_TENSOR(call->in), OCL_TENSOR(call->mean), OCL_TENSOR(call->rstd), PLACE(weight),
      {bytes, &epsilon}};
  status = ocl_launch(&memo->rows, exec->stream, 17, rows);
  if (status == GRAFT_OK && memo->columns.handle) {
    const ocl_argument columns[] = {PLACE(weight_sums),        PLACE(bias_sums),       OCL_TENSOR(call->grad),
                                    OCL_TENSOR(call->in),      OCL_TENSOR(call->mean), OCL_TENSOR(call->rstd),
                                    OCL_VALUE(memo->row_count)};
    status = ocl_launch(&memo->columns, exec->stream, 13, columns);
  }
  return status == GRAFT_OK && memo->partial_bytes ? add_partials(exec, memo, call, weight_sums, bias_sums) : status;
}

/* ---- Slots ---- */

static ocl_norm layer(const graft_device *device, const void *pointer) {
  const graft_args_native_layer_norm_backward *args = pointer;
  return ocl_norm_layer(device, args->input, args->normalized_shape.count);
}

static graft_status clear(graft_stream *stream, const graft_tensor_desc *out) {
  if (!out || ocl_elements(out) == 0) return GRAFT_OK;
  const cl_uchar zero = 0;
  size_t bytes = (size_t)ocl_elements(out) * ocl_dtype_of(stream->device, out->dl.dtype)->bytes;
  cl_int error = clEnqueueFillBuffer(stream->queue, out->dl.data->handle, &zero, sizeof zero, out->dl.byte_offset,
                                     bytes, 0, NULL, NULL);
  return ocl_stream_result(stream, error, "clEnqueueFillBuffer");
}

/* Of an input without elements: sums of nothing. */
static graft_status clear_both(graft_stream *stream, const graft_tensor_desc *weight, const graft_tensor_desc *bias) {
  graft_status status = clear(stream, weight);
  return status == GRAFT_OK ? clear(stream, bias) : status;
}

graft_status ocl_op_native_layer_norm_backward(const graft_exec *exec,
                                               const graft_args_native_layer_norm_backward *args) {
  if (ocl_elements(args->input) == 0) return clear_both(exec->stream, args->out1, args->out2);
  call call = {args->out0,   args->out1, args->out2, args->grad_out, args->input, args->mean, args->rstd,
               args->weight, false,      0,          layer,          args};
  return run(exec, &call);
}

static ocl_norm group(const graft_device *device, const void *pointer) {
  const graft_args_native_group_norm_backward *args = pointer;
  return ocl_norm_group(device, args->N, args->C, args->HxW, args->group);
}

graft_status ocl_op_native_group_norm_backward(const graft_exec *exec,
                                               const graft_args_native_group_norm_backward *args) {
  if (ocl_elements(args->input) == 0) return clear_both(exec->stream, args->out1, args->out2);
  call call = {args->out0,   args->out1, args->out2, args->grad_out, args->input, args->mean, args->rstd,
               args->weight, false,      0,          group,          args};
  return run(exec, &call);
}

static ocl_norm batch(const graft_device *device, const void *pointer) {
  return ocl_norm_batch(device, ((const graft_args_native_batch_norm_backward *)pointer)->input);
}

graft_status ocl_op_native_batch_norm_backward(const graft_exec *exec,
                                               const graft_args_native_batch_norm_backward *args) {
  bool trains = args->train;
  call call = {args->out0,
               args->out1,
               args->out2,
               args->grad_out,
               args->input,
               trains ? args->save_mean : args->running_mean,
               trains ? args->save_invstd : args->running_var,
               args->weight,
               !trains,
               args->eps,
               batch,
               args};
  return run(exec, &call);
}
