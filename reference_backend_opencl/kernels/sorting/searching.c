/* searchsorted, bucketize and isin: where values stand in a sequence, and whether in it at all. */
#include "runtime/ocl.h"

typedef struct operands {
  const graft_tensor_desc *sequence, *values, *sorter, *out; /* sorter may be NULL */
  const char *entry;
  bool flag;   /* right, or invert */
  bool whole;  /* the sequence is one row, whatever its shape */
  bool orders; /* and is brought in order first */
} operands;

typedef struct memo {
  ocl_kernel kernel, order;
} memo;

/* As searching.cl has it. */
typedef struct space {
  int64_t values, per_row; /* so many values belong to one row of the sequence; 0: there is only one row */
  int64_t size, chunk, flag;
} space;

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->values->dl.dtype),
                  *to = ocl_dtype_of(device, call->out->dl.dtype);
  if (!dtype || !to || call->sequence->dl.dtype != dtype->code || dtype->class == OCL_CLASS_COMPLEX) {
    return GRAFT_UNIMPLEMENTED;
  }
  const graft_dl_tensor *sequence = &call->sequence->dl, *values = &call->values->dl;
  bool rows = sequence->ndim > 1 && !call->whole;
  const space space = {.values = ocl_elements(call->values),
                       .per_row = rows ? values->shape[values->ndim - 1] : 0,
                       .size = rows ? sequence->shape[sequence->ndim - 1] : ocl_elements(call->sequence),
                       .chunk = device->is_cpu ? 1024 : 1,
                       .flag = call->flag};
  size_t local = device->is_cpu ? 1 : 64;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define D %s\n#define D_OUT %s\n%s", dtype->name, to->name,
               call->sorter ? "#define SORTER\n" : "");
  const ocl_argument last = OCL_VALUE(space);
  graft_status status = ocl_kernel_init(&memo->kernel, device, &head, "sorting/searching", call->entry);
  if (status == GRAFT_OK && call->orders) {
    status = ocl_kernel_init(&memo->order, device, &head, "sorting/searching", "order_list");
    if (status == GRAFT_OK) status = ocl_kernel_set(&memo->order, 1, &last);
  }
  ocl_text_free(&head);
  ocl_kernel_size(&memo->kernel, ocl_ceil_divide(space.values, space.chunk), local);
  ocl_kernel_size(&memo->order, space.size, local);
  return status == GRAFT_OK ? ocl_kernel_set(&memo->kernel, 1, &last) : status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 2, .prepare = prepare};

static graft_status run(const graft_exec *exec, const operands *call) {
  memo *memo;
  if (ocl_elements(call->values) == 0) return GRAFT_OK;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status != GRAFT_OK) return status;
  /* A sequence of nothing is never read. */
  const graft_tensor_desc *given = call->sequence->dl.data ? call->sequence : call->values;
  const graft_tensor_desc *sorter = call->sorter && call->sorter->dl.data ? call->sorter : call->values;
  ocl_place sequence = ocl_place_of(given);
  if (call->orders) {
    status = ocl_workspace(exec, (uint64_t)ocl_elements(given) * sizeof(int64_t), &sequence);
    const ocl_argument order[] = {OCL_PLACE(sequence), OCL_TENSOR(given)};
    if (status == GRAFT_OK) status = ocl_launch(&memo->order, exec->stream, OCL_ALL(order));
    if (status != GRAFT_OK) return status;
  }
  const ocl_argument arguments[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->values), OCL_PLACE(sequence),
                                    OCL_TENSOR(sorter)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

graft_status ocl_op_searchsorted_Tensor(const graft_exec *exec, const graft_args_searchsorted_Tensor *args) {
  bool right = args->right || args->side == GRAFT_STR_SIDE_RIGHT;
  return run(exec, &(operands){.sequence = args->sorted_sequence,
                               .values = args->self,
                               .sorter = args->sorter,
                               .out = args->out,
                               .entry = "search",
                               .flag = right});
}

graft_status ocl_op_bucketize_Tensor(const graft_exec *exec, const graft_args_bucketize_Tensor *args) {
  return run(exec, &(operands){.sequence = args->boundaries,
                               .values = args->self,
                               .out = args->out,
                               .entry = "search",
                               .flag = args->right});
}

enum {
  LIST_FEW = 16,   /* as many are compared one by one */
  LIST_MAX = 1024, /* more are sorted by the decomposition */
};

graft_status ocl_op_isin_Tensor_Tensor(const graft_exec *exec, const graft_args_isin_Tensor_Tensor *args) {
  int64_t size = ocl_elements(args->test_elements);
  if (size > LIST_MAX) return GRAFT_UNIMPLEMENTED;
  return run(exec, &(operands){.sequence = args->test_elements,
                               .values = args->elements,
                               .out = args->out,
                               .entry = size > LIST_FEW ? "contains_in_order" : "contains",
                               .flag = args->invert,
                               .whole = true,
                               .orders = size > LIST_FEW});
}
