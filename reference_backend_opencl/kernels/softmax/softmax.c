/* Softmax, its logarithm, and their gradients. */
#include <stdlib.h>

#include "kernels/families.h"

/* As softmax.cl counts them. */
enum { SOFTMAX, LOG_SOFTMAX, SAFE_SOFTMAX, SOFTMAX_BACKWARD, LOG_SOFTMAX_BACKWARD };

bool ocl_softmax_caps(uint32_t op_id, ocl_op_caps *caps) {
  if (op_id != GRAFT_OP_SOFTMAX && op_id != GRAFT_OP_LOG_SOFTMAX && op_id != GRAFT_OP_SAFE_SOFTMAX &&
      op_id != GRAFT_OP_SOFTMAX_BACKWARD_DATA && op_id != GRAFT_OP_LOG_SOFTMAX_BACKWARD_DATA) {
    return false;
  }
  caps->inputs = caps->outputs = OCL_FLOATS;
  caps->flags = GRAFT_CAP_UNALIGNED;
  return true;
}

typedef struct call {
  int op;
  int64_t dim;
  const graft_tensor_desc *out, *a, *b;
} call;

static void destroy_memo(void *pointer) {
  ocl_kernel_destroy(pointer);
  free(pointer);
}

static graft_status prepare(ocl_kernel *kernel, graft_device *device, const call *call, const ocl_dtype *out,
                            const ocl_dtype *a, const ocl_dtype *b) {
  const ocl_dtype *compute = ocl_dtype_of(device, out->bytes == 8 ? GRAFT_F64 : GRAFT_F32);
  ocl_lines lines = ocl_lines_of(device, &call->a->dl, call->dim);
  ocl_text head = {0};
  ocl_lines_head(&head, &lines, compute);
  ocl_text_add(&head, "#define OP %d\n#define D_OUT %s\n#define D_A %s\n#define D_B %s\n%s", call->op, out->name,
               a->name, b->name, out == compute ? "#define KEEPS\n" : "");
  graft_status status = head.failed
                            ? GRAFT_OUT_OF_MEMORY
                            : ocl_kernel_init(kernel, device, head.items, "core/lines softmax/softmax", "softmax");
  ocl_text_free(&head);
  return status != GRAFT_OK ? status : ocl_lines_set(kernel, &lines, 6);
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *call_pointer, void **memo) {
  const call *call = call_pointer;
  graft_device *device = exec->device;
  const ocl_dtype *out = ocl_dtype_of(device, call->out->dl.dtype), *a = ocl_dtype_of(device, call->a->dl.dtype),
                  *b = ocl_dtype_of(device, call->b->dl.dtype);
  (void)args;
  if (!out || !a || !b || out->class != OCL_CLASS_FLOAT || a->class != OCL_CLASS_FLOAT || a != b) {
    return GRAFT_UNIMPLEMENTED;
  }
  if (a->bytes == 8 && out->bytes != 8) return GRAFT_UNIMPLEMENTED;
  ocl_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel) return GRAFT_OUT_OF_MEMORY;
  graft_status status = prepare(kernel, device, call, out, a, b);
  if (status != GRAFT_OK) {
    destroy_memo(kernel);
    return status;
  }
  *memo = kernel;
  return GRAFT_OK;
}

static graft_status run(const graft_exec *exec, const call *call) {
  void *kernel;
  graft_status status = ocl_memo_get(exec, NULL, call, make_memo, destroy_memo, &kernel);
  if (status != GRAFT_OK) return status;
  const ocl_argument arguments[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->a), OCL_TENSOR(call->b)};
  return ocl_launch(kernel, exec->stream, 6, arguments);
}

#define SLOT(name, op, a, b)                                                          \
  graft_status ocl_op_##name(const graft_exec *exec, const graft_args_##name *args) { \
    call call = {op, args->dim, args->out, args->a, args->b};                         \
    return run(exec, &call);                                                          \
  }
SLOT(softmax, SOFTMAX, self, self)
SLOT(log_softmax, LOG_SOFTMAX, self, self)
SLOT(safe_softmax, SAFE_SOFTMAX, self, self)
SLOT(softmax_backward_data, SOFTMAX_BACKWARD, grad_output, output)
SLOT(log_softmax_backward_data, LOG_SOFTMAX_BACKWARD, grad_output, output)
