/* Negative log likelihood and its gradient. Losses of two tensors of one shape are in pairs.c. */
#include <stdlib.h>

#include "kernels/families.h"

enum { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM };

static bool is_likelihood(uint32_t op_id) {
  return op_id == GRAFT_OP_NLL_LOSS_FORWARD || op_id == GRAFT_OP_NLL_LOSS_BACKWARD ||
         op_id == GRAFT_OP_NLL_LOSS2D_FORWARD || op_id == GRAFT_OP_NLL_LOSS2D_BACKWARD;
}

bool ocl_loss_caps(uint32_t op_id, ocl_op_caps *caps) {
  if (!is_likelihood(op_id)) return false;
  caps->inputs = caps->outputs = OCL_FLOATS;
  caps->flags = GRAFT_CAP_UNALIGNED;
  return true;
}

typedef struct memo {
  ocl_kernel kernel;
  const ocl_dtype *compute;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->kernel);
  free(memo);
}

static const ocl_dtype *compute_of(const graft_device *device, const ocl_dtype *dtype) {
  return ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
}

typedef graft_status (*prepare_fn)(memo *memo, graft_device *device, const ocl_dtype *dtype, const void *call);

/* What all of them begin with: dtypes that are served, and a memo that is filled by `prepare`. */
static graft_status make(graft_device *device, graft_dtype code, prepare_fn prepare, const void *call, void **out) {
  const ocl_dtype *dtype = ocl_dtype_of(device, code);
  if (!dtype || dtype->class != OCL_CLASS_FLOAT) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  memo->compute = compute_of(device, dtype);
  graft_status status = prepare(memo, device, dtype, call);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

/* ---- Negative log likelihood ---- */

typedef struct likelihood {
  const graft_tensor_desc *values, *target, *weight; /* values: the argument self */
  const graft_tensor_desc *out, *total, *grad;       /* grad: backward only */
  int64_t reduction, ignored;
  uint32_t op_id;
} likelihood;

static bool each_row(const likelihood *call) {
  return call->reduction == REDUCE_NONE && call->values->dl.ndim > 1;
}

static void write_head(ocl_text *head, const likelihood *call, const ocl_lines *lines, const ocl_dtype *dtype,
                       const ocl_dtype *target, const ocl_dtype *compute) {
  ocl_lines_head(head, lines, compute);
  ocl_text_add(head, "#define D %s\n#define D_TARGET %s\n#define OP_ID %u\n#define REDUCTION %d\n#define EACH_ROW %d\n",
               dtype->name, target->name, call->op_id, (int)call->reduction, each_row(call));
  if (call->weight) ocl_text_add(head, "#define WEIGHTED\n");
}

static graft_status prepare_likelihood(memo *memo, graft_device *device, const ocl_dtype *dtype, const void *pointer) {
  const likelihood *call = pointer;
  const graft_dl_tensor *values = &call->values->dl;
  const ocl_dtype *target = ocl_dtype_of(device, call->target->dl.dtype);
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
  if (call->grad && inner > 1) ocl_text_add(&head, "#define INNER\n");
  const char *entry = call->grad ? "nll_gradient" : each_row(call) ? "nll_rows" : "nll_sum";
  graft_status status = head.failed ? GRAFT_OUT_OF_MEMORY
                                    : ocl_kernel_init(kernel, device, head.items, "core/lines loss/likelihood", entry);
  ocl_text_free(&head);
  if (status == GRAFT_OK) status = ocl_kernel_constant(kernel, 11, sizeof shape, shape);
  if (status != GRAFT_OK || call->grad) return status == GRAFT_OK ? ocl_lines_set(kernel, &lines, 12) : status;
  size_t items = device->is_cpu ? 4 * device->compute_units : (size_t)(rows < 1 << 20 ? rows : 1 << 20);
  kernel->local[0] = lines.local;
  kernel->global[0] = each_row(call) ? (items + lines.local - 1) / lines.local * lines.local : lines.local;
  return GRAFT_OK;
}

static graft_status make_likelihood(const graft_exec *exec, const void *args, const void *call, void **out) {
  (void)args;
  return make(exec->device, ((const likelihood *)call)->values->dl.dtype, prepare_likelihood, call, out);
}

static graft_status run_likelihood(const graft_exec *exec, const likelihood *call) {
  void *pointer;
  cl_mem faults;
  if (!call->out || !call->total) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, NULL, call, make_likelihood, destroy_memo, &pointer);
  if (status == GRAFT_OK) status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  const graft_tensor_desc *weight = call->weight ? call->weight : call->values;
  /* Forward writes the total and reads the values; backward reads the total and the gradient. */
  const graft_tensor_desc *second = call->grad ? call->grad : call->total,
                          *third = call->grad ? call->total : call->values;
  const ocl_argument arguments[] = {OCL_TENSOR(call->out),    OCL_TENSOR(second), OCL_TENSOR(third),
                                    OCL_TENSOR(call->target), OCL_TENSOR(weight), OCL_VALUE(faults)};
  return ocl_launch(&memo->kernel, exec->stream, 11, arguments);
}

#define LIKELIHOOD_SLOTS(forward, backward, FORWARD, BACKWARD)                                                \
  graft_status ocl_op_##forward(const graft_exec *exec, const graft_args_##forward *args) {                   \
    likelihood call = {args->self, args->target,    args->weight,       args->output, args->total_weight,     \
                       NULL,       args->reduction, args->ignore_index, FORWARD};                             \
    return run_likelihood(exec, &call);                                                                       \
  }                                                                                                           \
  graft_status ocl_op_##backward(const graft_exec *exec, const graft_args_##backward *args) {                 \
    likelihood call = {args->self,        args->target,    args->weight,       args->out, args->total_weight, \
                       args->grad_output, args->reduction, args->ignore_index, BACKWARD};                     \
    return run_likelihood(exec, &call);                                                                       \
  }
LIKELIHOOD_SLOTS(nll_loss_forward, nll_loss_backward, GRAFT_OP_NLL_LOSS_FORWARD, GRAFT_OP_NLL_LOSS_BACKWARD)
LIKELIHOOD_SLOTS(nll_loss2d_forward, nll_loss2d_backward, GRAFT_OP_NLL_LOSS2D_FORWARD, GRAFT_OP_NLL_LOSS2D_BACKWARD)
