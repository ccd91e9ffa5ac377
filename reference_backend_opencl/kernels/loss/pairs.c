/* The engine of losses of two tensors of one shape, and of their gradients. */
#include "kernels/core/lines.h"
#include "kernels/loss/loss.h"

typedef struct pair {
  uint32_t op_id;
  const ocl_pair_loss *recipe;
  const graft_tensor_desc *out, *a, *b, *weight, *grad; /* grad: backward only */
  int64_t reduction;
  double number;
} pair;

typedef struct memo {
  ocl_kernel kernel[2];
  const ocl_dtype *compute;
  int64_t elements, parts;
} memo;

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
    if (dense[i] && (dense[i]->dl.dtype != dtype || !ocl_is_dense(&dense[i]->dl))) return false;
  }
  if (!call->grad) return true;
  return call->grad->dl.dtype == dtype && (ocl_is_dense(&call->grad->dl) || is_one_number(&call->grad->dl));
}

static graft_status make_kernels(memo *memo, graft_device *device, const pair *call, const ocl_lines *lines) {
  static const char *const files = "core/cascade core/lines core/parts loss/pairs";
  const ocl_pair_loss *recipe = call->recipe;
  bool sums = !call->grad && call->reduction != OCL_LOSS_EACH;
  ocl_text head = {0};
  ocl_lines_head(&head, lines, memo->compute);
  ocl_text_add(&head, "#define D %s\n#define LOSS %s\n#define SLOPE %s\n",
               ocl_dtype_of(device, call->a->dl.dtype)->name, recipe->loss, recipe->slope);
  if (call->weight) ocl_text_add(&head, "#define WEIGHTED\n");
  if (recipe->checked && !call->grad) ocl_text_add(&head, "#define CHECKED\n#define OP_ID %u\n", call->op_id);
  if (call->grad && is_one_number(&call->grad->dl)) ocl_text_add(&head, "#define ONE_GRADIENT\n");
  const char *entry = call->grad ? "pair_gradient" : sums ? "pair_parts" : "pair_each";
  graft_status status = ocl_kernel_init(&memo->kernel[0], device, &head, files, entry);
  if (status == GRAFT_OK && sums) {
    status = ocl_kernel_init(&memo->kernel[1], device, &head, files, "pair_finish");
  }
  ocl_text_free(&head);
  return status;
}

static graft_status set_constants(memo *memo, const pair *call, int64_t part, size_t local) {
  ocl_kernel *kernel = &memo->kernel[0];
  const int64_t shape[] = {memo->elements, part};
  ocl_number number = {.re = call->number}, factor = {.re = call->recipe->factor};
  ocl_value z, slope;
  if (call->reduction == OCL_LOSS_MEAN) factor.re /= (double)memo->elements;
  ocl_kernel_size(kernel, memo->parts * (int64_t)local, local);
  ocl_kernel_size(&memo->kernel[1], (int64_t)local, local);
  size_t bytes = ocl_number_as(&number, memo->compute, &z);
  ocl_number_as(&factor, memo->compute, &slope);
  const ocl_argument constants[] = {{sizeof shape, shape}, {bytes, &z}, {bytes, &slope}};
  return ocl_kernel_set(kernel, call->grad ? 3 : 2, constants);
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const pair *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->a->dl.dtype);
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || !is_served(call)) return GRAFT_UNIMPLEMENTED;
  memo->compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  memo->elements = ocl_elements(call->a);
  ocl_lines lines = {.outer = 1, .size = memo->elements, .inner = 1};
  ocl_lines_plan(device, &lines);
  const int64_t part = ocl_lines_part(device, memo->elements);
  memo->parts = ocl_ceil_divide(memo->elements, part);
  graft_status status = make_kernels(memo, device, call, &lines);
  return status == GRAFT_OK ? set_constants(memo, call, part, lines.local) : status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 2, .prepare = prepare};

/* The sum or mean: parts into a workspace, then those into one number. */
static graft_status run_reduced(const graft_exec *exec, const pair *call, memo *memo, const graft_tensor_desc *weight,
                                cl_mem faults) {
  ocl_place parts;
  graft_status status = ocl_workspace(exec, (uint64_t)memo->parts * memo->compute->bytes, &parts);
  if (status != GRAFT_OK) return status;
  const ocl_argument first[] = {OCL_PLACE(parts), OCL_TENSOR(call->a), OCL_TENSOR(call->b), OCL_TENSOR(weight),
                                OCL_VALUE(faults)};
  status = ocl_launch(&memo->kernel[0], exec->stream, OCL_ALL(first));
  if (status != GRAFT_OK) return status;
  ocl_number count = {.is_int = true, .i = 1, .re = 1};
  if (call->reduction == OCL_LOSS_MEAN)
    count = (ocl_number){.is_int = true, .i = memo->elements, .re = (double)memo->elements};
  ocl_value divisor;
  size_t bytes = ocl_number_as(&count, memo->compute, &divisor);
  const ocl_argument second[] = {OCL_TENSOR(call->out), OCL_PLACE(parts), OCL_VALUE(memo->parts), {bytes, &divisor}};
  return ocl_launch(&memo->kernel[1], exec->stream, OCL_ALL(second));
}

static graft_status run(const graft_exec *exec, const pair *call) {
  memo *memo;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status != GRAFT_OK) return status;
  const graft_tensor_desc *weight = call->weight ? call->weight : call->a; /* not looked at */
  if (call->grad) {
    const ocl_argument gradient[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->a), OCL_TENSOR(call->b),
                                     OCL_TENSOR(weight), OCL_TENSOR(call->grad)};
    return ocl_launch(&memo->kernel[0], exec->stream, OCL_ALL(gradient));
  }
  cl_mem faults = NULL;
  if (call->recipe->checked) status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  if (call->reduction != OCL_LOSS_EACH) return run_reduced(exec, call, memo, weight, faults);
  const ocl_argument each[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->a), OCL_TENSOR(call->b), OCL_TENSOR(weight),
                               OCL_VALUE(faults)};
  return ocl_launch(&memo->kernel[0], exec->stream, OCL_ALL(each));
}

enum { SELF, TARGET, WEIGHT, GRAD_OUTPUT, REDUCTION, BETA, DELTA, OUT, READS };
const char *const ocl_pair_reads[] = {
    [SELF] = "self",           [TARGET] = "target", [WEIGHT] = "weight", [BETA] = "beta", [GRAD_OUTPUT] = "grad_output",
    [REDUCTION] = "reduction", [DELTA] = "delta",   [OUT] = "out",       [READS] = NULL};

graft_status ocl_pair(const ocl_call *call) {
  return run(call->exec, &(pair){.op_id = call->op->id,
                                 .recipe = call->op->recipe,
                                 .out = ocl_read_tensor(call, OUT),
                                 .a = ocl_read_tensor(call, SELF),
                                 .b = ocl_read_tensor(call, TARGET),
                                 .weight = ocl_read_tensor(call, WEIGHT),
                                 .grad = ocl_read_tensor(call, GRAD_OUTPUT),
                                 .reduction = ocl_read_int(call, REDUCTION, OCL_LOSS_EACH),
                                 .number = ocl_read_float(call, BETA, ocl_read_float(call, DELTA, 0))});
}
