/* searchsorted, bucketize and isin: where values stand in a sequence, and whether in it at all. */
#include <stdlib.h>

#include "kernels/core/indexed.h"
#include "kernels/families.h"

bool ocl_searching_caps(uint32_t op_id, ocl_op_caps *caps) {
  switch (op_id) {
    case GRAFT_OP_SEARCHSORTED_TENSOR:
    case GRAFT_OP_BUCKETIZE_TENSOR: caps->outputs = OCL_BIT(I64) | OCL_BIT(I32); break;
    case GRAFT_OP_ISIN_TENSOR_TENSOR: caps->outputs = OCL_BOOLS; break;
    default: return false;
  }
  caps->inputs = OCL_FLOATS | OCL_INTS;
  caps->flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY;
  return true;
}

typedef struct call {
  const graft_tensor_desc *sequence, *values, *sorter, *out; /* sorter may be NULL */
  const char *entry;
  int64_t flag; /* right, or invert */
} call;

typedef struct memo {
  ocl_kernel kernel;
  int64_t numbers[5]; /* values, of which so many belong to one row of so long a sequence (0: to the only one); chunk */
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->kernel);
  free(memo);
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *call_pointer, void **out) {
  const call *call = call_pointer;
  graft_device *device = exec->device;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->values->dl.dtype),
                  *to = ocl_dtype_of(device, call->out->dl.dtype);
  (void)args;
  if (!dtype || !to || call->sequence->dl.dtype != dtype->code || dtype->class == OCL_CLASS_COMPLEX) {
    return GRAFT_UNIMPLEMENTED;
  }
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  const graft_dl_tensor *sequence = &call->sequence->dl, *values = &call->values->dl;
  size_t local = device->is_cpu ? 1 : 64;
  int64_t n = ocl_elements(call->values), chunk = device->is_cpu ? 1024 : 1;
  int64_t size = sequence->ndim == 1 ? sequence->shape[0] : ocl_elements(call->sequence), per_row = 0;
  if (sequence->ndim > 1 && !(call->flag & 2)) {
    size = sequence->shape[sequence->ndim - 1];
    per_row = values->shape[values->ndim - 1];
  }
  memo->numbers[0] = n;
  memo->numbers[1] = per_row;
  memo->numbers[2] = size;
  memo->numbers[3] = chunk;
  memo->numbers[4] = call->flag & 1;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define D %s\n#define D_OUT %s\n%s", dtype->name, to->name,
               call->sorter ? "#define SORTER\n" : "");
  graft_status status = head.failed
                            ? GRAFT_OUT_OF_MEMORY
                            : ocl_kernel_init(&memo->kernel, device, head.items, "sorting/searching", call->entry);
  ocl_text_free(&head);
  if (status == GRAFT_OK) status = ocl_kernel_constant(&memo->kernel, 8, sizeof memo->numbers, memo->numbers);
  memo->kernel.local[0] = local;
  memo->kernel.global[0] = ((size_t)((n + chunk - 1) / chunk) + local - 1) / local * local;
  if (status != GRAFT_OK)
    destroy_memo(memo);
  else
    *out = memo;
  return status;
}

static graft_status run(const graft_exec *exec, const call *call) {
  void *pointer;
  if (ocl_elements(call->values) == 0) return GRAFT_OK;
  graft_status status = ocl_memo_get(exec, NULL, call, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  /* A sequence of nothing is never read. */
  const graft_tensor_desc *sequence = call->sequence->dl.data ? call->sequence : call->values;
  const graft_tensor_desc *sorter = call->sorter && call->sorter->dl.data ? call->sorter : call->values;
  const ocl_argument arguments[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->values), OCL_TENSOR(sequence),
                                    OCL_TENSOR(sorter)};
  return ocl_launch(&memo->kernel, exec->stream, 8, arguments);
}

graft_status ocl_op_searchsorted_Tensor(const graft_exec *exec, const graft_args_searchsorted_Tensor *args) {
  bool right = args->right || args->side == GRAFT_STR_SIDE_RIGHT;
  return run(exec, &(call){args->sorted_sequence, args->self, args->sorter, args->out, "search", right});
}

graft_status ocl_op_bucketize_Tensor(const graft_exec *exec, const graft_args_bucketize_Tensor *args) {
  return run(exec, &(call){args->boundaries, args->self, NULL, args->out, "search", args->right != 0});
}

enum { LIST_MAX = 1024 }; /* longer ones are sorted first, by the decomposition */

graft_status ocl_op_isin_Tensor_Tensor(const graft_exec *exec, const graft_args_isin_Tensor_Tensor *args) {
  if (ocl_elements(args->test_elements) > LIST_MAX) return GRAFT_UNIMPLEMENTED;
  return run(exec, &(call){args->test_elements, args->elements, NULL, args->out, "contains", 2 | (args->invert != 0)});
}
