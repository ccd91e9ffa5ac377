/* Root mean square normalization and its gradient. */
#include "kernels/core/held.h"
#include "kernels/core/lines.h"
#include "kernels/reduction/reduction.h"

typedef struct operands {
  const graft_tensor_desc *out, *to_weight, *grad, *in, *rstd, *weight;
  graft_int_list shape;
  double epsilon;
} operands;

typedef struct memo {
  ocl_kernel rows, columns, add; /* add: what brings partial sums of the columns together, on a GPU */
  uint64_t partial_bytes;
  const ocl_dtype *compute;
} memo;

static void add_head(ocl_text *head, const operands *call, const ocl_dtype *dtype, const ocl_dtype *rstd) {
  ocl_text_add(head, "#define D %s\n#define D_RSTD %s\n#define HAS_WEIGHT %d\n", dtype->name, rstd->name,
               call->weight != NULL);
}

static graft_status prepare_rows(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype,
                                 const ocl_dtype *rstd, const ocl_lines *lines) {
  const ocl_dtype *compute = memo->compute;
  const char *entry = call->grad ? "rms_norm_backward" : "rms_norm";
  const char *backward = call->grad ? "#define BACKWARD\n" : "";
  ocl_number number = {.re = call->epsilon};
  ocl_value epsilon;
  const ocl_argument constant = {ocl_number_as(&number, compute, &epsilon), &epsilon};
  ocl_held held;
  ocl_text head = {0};
  const bool is_held = ocl_held_plan(device, lines->outer, lines->size, compute, call->grad ? 2 : 1, &held);
  if (is_held)
    ocl_held_head(&head, &held, compute);
  else
    ocl_lines_head(&head, lines, compute);
  add_head(&head, call, dtype, rstd);
  ocl_text_append(&head, backward);
  graft_status status = ocl_kernel_make(
      &memo->rows, device, &head, is_held ? "core/held normalization/rms_held" : "core/lines normalization/rms", entry);
  if (status == GRAFT_OK) status = is_held ? ocl_held_set(&memo->rows, &held) : ocl_lines_set(&memo->rows, lines);
  return status == GRAFT_OK && !call->grad ? ocl_kernel_set(&memo->rows, 1, &constant) : status;
}

/* On a GPU: partial sums, of so many rows each that all of the device has some, and their sum. */
static graft_status prepare_parts(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype,
                                  const ocl_dtype *rstd, const ocl_lines *lines) {
  enum { LOCAL = 256, WIDTH = 32, ROWS_LEAST = 32, GROUPS_A_UNIT = 8 };
  const int64_t tiles = ocl_ceil_divide(lines->size, WIDTH), rows = lines->outer;
  const int64_t wanted = GROUPS_A_UNIT * (int64_t)device->compute_units / tiles + 1, most = rows / ROWS_LEAST + 1;
  const int64_t rows_of_part = ocl_ceil_divide(ocl_larger(rows, 1), wanted < most ? wanted : most);
  const int64_t parts = ocl_ceil_divide(ocl_larger(rows, 1), rows_of_part);
  ocl_text head = {0};
  ocl_head_types(&head, memo->compute, 1, LOCAL);
  add_head(&head, call, dtype, rstd);
  graft_status status =
      ocl_kernel_make(&memo->columns, device, &head, "normalization/rms_columns", "rms_norm_weight_parts");
  ocl_kernel_size(&memo->columns, tiles * LOCAL, LOCAL);
  memo->columns.global[1] = (size_t)parts;
  memo->partial_bytes = (uint64_t)(parts * lines->size) * memo->compute->bytes;
  const ocl_argument sizes[] = {OCL_VALUE(lines->outer), OCL_VALUE(lines->size), OCL_VALUE(rows_of_part)};
  if (status == GRAFT_OK) status = ocl_kernel_set(&memo->columns, OCL_ALL(sizes));
  const ocl_reduction_pass sum = {
      .kept = {.rank = 1, .operands = 2, .size = {lines->size}, .stride = {{1}, {1}}},
      .reduced = {.rank = 1, .operands = 1, .size = {parts}, .stride = {{lines->size}}},
      .out = dtype,
      .in = memo->compute,
      .accumulator = memo->compute,
      .formula = {.init = "0", .map = "v", .combine = "ADD(a, b)", .finish = "v"},
      .rows = lines->size < COLUMNS_LEAST,
      .splits = 1,
  };
  return status == GRAFT_OK ? ocl_reduction_prepare_teams(&memo->add, device, &sum) : status;
}

static graft_status prepare_columns(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype,
                                    const ocl_dtype *rstd, const ocl_lines *lines) {
  const size_t local = 1;
  ocl_text head = {0};
  if (!device->is_cpu) return prepare_parts(memo, device, call, dtype, rstd, lines);
  ocl_head_types(&head, dtype, 1, local);
  add_head(&head, call, dtype, rstd);
  ocl_text_add(&head, "#define COLUMNS\n");
  graft_status status = ocl_kernel_make(&memo->columns, device, &head, "normalization/rms", "rms_norm_weight");
  ocl_kernel_size(&memo->columns, ocl_ceil_divide(lines->size, 16), local);
  const ocl_argument sizes[] = {OCL_VALUE(lines->outer), OCL_VALUE(lines->size)};
  return status == GRAFT_OK ? ocl_kernel_set(&memo->columns, OCL_ALL(sizes)) : status;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype), *rstd = ocl_dtype_of(device, call->rstd->dl.dtype);
  if (!dtype || !rstd || rstd->class != OCL_CLASS_FLOAT) return GRAFT_UNIMPLEMENTED;
  memo->compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  ocl_lines lines = {.size = 1, .inner = 1};
  for (uint64_t i = 0; i < call->shape.count; i++) lines.size *= call->shape.items[i];
  if (!lines.size) return GRAFT_UNIMPLEMENTED;
  lines.outer = ocl_elements(call->in) / lines.size;
  ocl_lines_plan(device, &lines);
  graft_status status = GRAFT_OK;
  if (call->out && lines.outer) status = prepare_rows(memo, device, call, dtype, rstd, &lines);
  return status == GRAFT_OK && call->to_weight ? prepare_columns(memo, device, call, dtype, rstd, &lines) : status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 3, .prepare = prepare};

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

static graft_status sum_columns(const graft_exec *exec, memo *memo, const operands *call) {
  const ocl_place out = ocl_place_of(call->to_weight);
  ocl_place sums = out;
  graft_status status = memo->partial_bytes ? ocl_workspace(exec, memo->partial_bytes, &sums) : GRAFT_OK;
  if (status != GRAFT_OK) return status;
  const ocl_argument columns[] = {OCL_PLACE(sums), OCL_TENSOR(call->grad), OCL_TENSOR(call->in),
                                  OCL_TENSOR(call->rstd)};
  status = ocl_launch(&memo->columns, exec->stream, OCL_ALL(columns));
  if (status != GRAFT_OK || !memo->partial_bytes) return status;
  ocl_value none;
  const size_t bytes = ocl_number_as(&(ocl_number){.re = 0}, memo->compute, &none);
  const ocl_argument add[] = {OCL_PLACE(out), OCL_PLACE(sums), OCL_PLACE(sums), {bytes, &none}};
  return ocl_launch(&memo->add, exec->stream, OCL_ALL(add));
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
  return status == GRAFT_OK && call.to_weight ? sum_columns(exec, memo, &call) : status;
}
