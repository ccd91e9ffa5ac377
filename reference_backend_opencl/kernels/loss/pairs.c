/* Losses of two tensors of one shape, and their gradients: one row of `rows` a loss. */
#include <stdlib.h>

#include "kernels/core/indexed.h"
#include "kernels/families.h"

enum { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM };

enum { NO_OP = 0 }; /* PyTorch composes the loss itself */

/* In OpenCL C over x (self), y (target), z (beta or delta); D_SIZE is |x - y|. The slope is by x. */
typedef struct row {
  uint32_t forward, backward;
  const char *loss, *slope;
  double factor; /* of the slope */
  bool checked;  /* x is a probability */
} row;

static const row rows[] = {
    {GRAFT_OP_MSE_LOSS, GRAFT_OP_MSE_LOSS_BACKWARD, "(x - y) * (x - y)", "(x - y)", 2, false},
    {GRAFT_OP_SMOOTH_L1_LOSS, GRAFT_OP_SMOOTH_L1_LOSS_BACKWARD,
     "D_SIZE < z ? (VT)0.5f * D_SIZE * D_SIZE / z : D_SIZE - (VT)0.5f * z",
     "x - y <= -z ? (VT)(-1) : x - y >= z ? (VT)1 : (x - y) / z", 1, false},
    {GRAFT_OP_HUBER_LOSS, GRAFT_OP_HUBER_LOSS_BACKWARD,
     "D_SIZE <= z ? (VT)0.5f * D_SIZE * D_SIZE : z * (D_SIZE - (VT)0.5f * z)",
     "x - y <= -z ? -z : x - y >= z ? z : x - y", 1, false},
    {GRAFT_OP_BINARY_CROSS_ENTROPY, GRAFT_OP_BINARY_CROSS_ENTROPY_BACKWARD,
     "(y - (VT)1) * KEPT(log1p(-x)) - y * KEPT(log(x))", "(x - y) / fmax(((VT)1 - x) * x, (VT)1e-12f)", 1, true},
    {NO_OP, GRAFT_OP_SOFT_MARGIN_LOSS_BACKWARD, "x", "-y / ((VT)1 + exp(y * x))", 1, false},
};

static const row *row_of(uint32_t op_id) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (op_id != NO_OP && (rows[i].forward == op_id || rows[i].backward == op_id)) return &rows[i];
  }
  return NULL;
}

bool ocl_loss_pairs_caps(uint32_t op_id, ocl_op_caps *caps) {
  const row *row = row_of(op_id);
  if (!row) return false;
  caps->inputs = caps->outputs = OCL_FLOATS;
  caps->flags = GRAFT_CAP_UNALIGNED;
  /* A gradient of the reduced loss is one number, expanded. */
  if (op_id == row->backward) caps->flags |= GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED;
  return true;
}

typedef struct pair {
  uint32_t op_id;
  const graft_tensor_desc *out, *a, *b, *weight, *grad; /* grad: backward only */
  int64_t reduction;
  double number;
} pair;

typedef struct memo {
  ocl_kernel kernel[2];
  const ocl_dtype *compute;
  int64_t elements, parts;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->kernel[0]);
  ocl_kernel_destroy(&memo->kernel[1]);
  free(memo);
}

static bool is_dense(const graft_dl_tensor *t) {
  int64_t run = 1;
  for (int d = t->ndim - 1; d >= 0; d--) {
    if (t->shape[d] != 1 && t->strides[d] != run) return false;
    run *= t->shape[d];
  }
  return true;
}

static bool is_one_number(const graft_dl_tensor *t) {
  for (int d = 0; d < t->ndim; d++) {
    if (t->shape[d] != 1 && t->strides[d] != 0) return false;
  }
  return true;
}

static bool is_served(const pair *call) {
  graft_dtype dtype = call->a->dl.dtype;
  const graft_tensor_desc *dense[] = {call->a, call->b, call->out, call->weight};
  for (size_t i = 0; i < sizeof dense / sizeof *dense; i++) {
    if (dense[i] && (dense[i]->dl.dtype != dtype || !is_dense(&dense[i]->dl))) return false;
  }
  if (!call->grad) return true;
  return call->grad->dl.dtype == dtype && (is_dense(&call->grad->dl) || is_one_number(&call->grad->dl));
}

static graft_status make_kernels(memo *memo, graft_device *device, const pair *call, const ocl_lines *lines) {
  const row *row = row_of(call->op_id);
  bool sums = !call->grad && call->reduction != REDUCE_NONE;
  ocl_text head = {0};
  ocl_lines_head(&head, lines, memo->compute);
  ocl_text_add(&head, "#define D %s\n#define LOSS %s\n#define SLOPE %s\n",
               ocl_dtype_of(device, call->a->dl.dtype)->name, row->loss, row->slope);
  if (call->weight) ocl_text_add(&head, "#define WEIGHTED\n");
  if (row->checked && !call->grad) ocl_text_add(&head, "#define CHECKED\n#define OP_ID %u\n", call->op_id);
  if (call->grad && is_one_number(&call->grad->dl)) ocl_text_add(&head, "#define ONE_GRADIENT\n");
  const char *entry = call->grad ? "pair_gradient" : sums ? "pair_parts" : "pair_each";
  graft_status status = GRAFT_OUT_OF_MEMORY;
  if (!head.failed) status = ocl_kernel_init(&memo->kernel[0], device, head.items, "core/lines loss/pairs", entry);
  if (status == GRAFT_OK && sums) {
    status = ocl_kernel_init(&memo->kernel[1], device, head.items, "core/lines loss/pairs", "pair_finish");
  }
  ocl_text_free(&head);
  return status;
}

static graft_status set_constants(memo *memo, const pair *call, int64_t part, size_t local) {
  ocl_kernel *kernel = &memo->kernel[0];
  const int64_t shape[] = {memo->elements, part};
  ocl_number number = {.re = call->number}, factor = {.re = row_of(call->op_id)->factor};
  ocl_value value;
  if (call->reduction == REDUCE_MEAN) factor.re /= (double)memo->elements;
  kernel->local[0] = local;
  kernel->global[0] = (size_t)memo->parts * local;
  cl_uint at = call->grad ? 10 : 9; /* behind four tensors, and the cotangent or the fault words */
  graft_status status = ocl_kernel_constant(kernel, at, sizeof shape, shape);
  size_t bytes = ocl_number_as(&number, memo->compute, &value);
  if (status == GRAFT_OK) status = ocl_kernel_constant(kernel, at + 1, bytes, &value);
  ocl_number_as(&factor, memo->compute, &value);
  if (status == GRAFT_OK && call->grad) status = ocl_kernel_constant(kernel, at + 2, bytes, &value);
  return status;
}

static graft_status make(const graft_exec *exec, const void *args, const void *pointer, void **out) {
  const pair *call = pointer;
  graft_device *device = exec->device;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->a->dl.dtype);
  (void)args;
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || !is_served(call)) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  memo->compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  memo->elements = ocl_elements(call->a);
  ocl_lines lines = {.outer = 1, .size = memo->elements, .inner = 1};
  ocl_lines_plan(device, &lines);
  int64_t wanted = (device->is_cpu ? 4 : 16) * (int64_t)device->compute_units, least = 4096;
  int64_t part = (memo->elements + wanted - 1) / wanted;
  part = ((part < least ? least : part) + 63) / 64 * 64;
  memo->parts = (memo->elements + part - 1) / part;
  graft_status status = make_kernels(memo, device, call, &lines);
  if (status == GRAFT_OK) status = set_constants(memo, call, part, lines.local);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

/* The sum or mean: parts into a workspace, then those into one number. */
static graft_status run_reduced(const graft_exec *exec, const pair *call, memo *memo, const graft_tensor_desc *weight,
                                cl_mem faults) {
  graft_buffer *parts;
  uint64_t at;
  graft_status status =
      exec->device->plugin->host->workspace(exec, (uint64_t)memo->parts * memo->compute->bytes, 0, &parts, &at);
  if (status != GRAFT_OK) return status;
  const ocl_argument first[] = {OCL_BUFFER(parts),   OCL_VALUE(at),      OCL_TENSOR(call->a),
                                OCL_TENSOR(call->b), OCL_TENSOR(weight), OCL_VALUE(faults)};
  status = ocl_launch(&memo->kernel[0], exec->stream, 9, first);
  if (status != GRAFT_OK) return status;
  ocl_number count = {.is_int = true, .i = 1, .re = 1};
  if (call->reduction == REDUCE_MEAN) count = (ocl_number){true, memo->elements, (double)memo->elements, 0};
  ocl_value divisor;
  size_t bytes = ocl_number_as(&count, memo->compute, &divisor);
  const ocl_argument second[] = {
      OCL_TENSOR(call->out), OCL_BUFFER(parts), OCL_VALUE(at), OCL_VALUE(memo->parts), {bytes, &divisor}};
  return ocl_launch(&memo->kernel[1], exec->stream, 6, second);
}

static graft_status run(const graft_exec *exec, const pair *call) {
  void *pointer;
  graft_status status = ocl_memo_get(exec, NULL, call, make, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  const graft_tensor_desc *weight = call->weight ? call->weight : call->a; /* not looked at */
  if (call->grad) {
    const ocl_argument gradient[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->a), OCL_TENSOR(call->b),
                                     OCL_TENSOR(weight), OCL_TENSOR(call->grad)};
    return ocl_launch(&memo->kernel[0], exec->stream, 10, gradient);
  }
  cl_mem faults = NULL;
  if (row_of(call->op_id)->checked) status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  if (call->reduction != REDUCE_NONE) return run_reduced(exec, call, memo, weight, faults);
  const ocl_argument each[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->a), OCL_TENSOR(call->b), OCL_TENSOR(weight),
                               OCL_VALUE(faults)};
  return ocl_launch(&memo->kernel[0], exec->stream, 9, each);
}

#define SLOTS(op, weight, number)                                                                               \
  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args) {                               \
    pair call = {args->head.op_id, args->out, args->self, args->target, weight, NULL, args->reduction, number}; \
    return run(exec, &call);                                                                                    \
  }                                                                                                             \
  graft_status ocl_op_##op##_backward(const graft_exec *exec, const graft_args_##op##_backward *args) {         \
    pair call = {args->head.op_id, args->out,         args->self,      args->target,                            \
                 weight,           args->grad_output, args->reduction, number};                                 \
    return run(exec, &call);                                                                                    \
  }
SLOTS(mse_loss, NULL, 0)
SLOTS(smooth_l1_loss, NULL, args->beta)
SLOTS(huber_loss, NULL, args->delta)
SLOTS(binary_cross_entropy, args->weight, 0)
graft_status ocl_op_soft_margin_loss_backward(const graft_exec *exec,
                                              const graft_args_soft_margin_loss_backward *args) {
  pair call = {args->head.op_id, args->out, args->self, args->target, NULL, args->grad_output, args->reduction, 0};
  return run(exec, &call);
}
