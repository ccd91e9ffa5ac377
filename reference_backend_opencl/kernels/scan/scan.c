/* Scans: sums, products and extrema that run along a line. */
#include <stdlib.h>

#include "kernels/families.h"

bool ocl_scan_caps(uint32_t op_id, ocl_op_caps *caps) {
  switch (op_id) {
    case GRAFT_OP_CUMSUM:
    case GRAFT_OP_CUMPROD: caps->inputs = caps->outputs = OCL_FLOATS | OCL_INTS; break;
    case GRAFT_OP_CUMMAX:
    case GRAFT_OP_CUMMIN:
    case GRAFT_OP_CUMMAX_HELPER: caps->inputs = caps->outputs = OCL_FLOATS | OCL_INTS | OCL_BOOLS; break;
    default: return false;
  }
  caps->flags = GRAFT_CAP_UNALIGNED;
  return true;
}

typedef struct call {
  const graft_tensor_desc *self, *out, *indices; /* indices: of an extremum */
  int64_t dim;
  const char *defines;
} call;

static void destroy_memo(void *pointer) {
  ocl_kernel_destroy(pointer);
  free(pointer);
}

static graft_status prepare(ocl_kernel *kernel, graft_device *device, const call *call, const ocl_dtype *dtype) {
  ocl_lines lines = ocl_lines_of(device, &call->self->dl, call->self->dl.ndim ? call->dim : -1);
  if (call->indices) ocl_lines_plan_columns(device, &lines);
  if (lines.rows || call->indices) lines.vec = 1;
  ocl_text head = {0};
  ocl_lines_head(&head, &lines, dtype);
  ocl_text_add(&head, "#define D_OUT %s\n#define D_IN %s\n%s", dtype->name, dtype->name, call->defines);
  graft_status status = head.failed ? GRAFT_OUT_OF_MEMORY
                                    : ocl_kernel_init(kernel, device, head.items, "core/lines scan/scan",
                                                      call->indices ? "scan_extremum" : "scan");
  ocl_text_free(&head);
  return status == GRAFT_OK ? ocl_lines_set(kernel, &lines, call->indices ? 6 : 4) : status;
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *call_pointer, void **memo) {
  const call *call = call_pointer;
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, call->self->dl.dtype);
  (void)args;
  if (!dtype || call->out->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  bool number = dtype->class == OCL_CLASS_FLOAT || dtype->class == OCL_CLASS_INT;
  if (!number && !(call->indices && dtype->class == OCL_CLASS_BOOL)) return GRAFT_UNIMPLEMENTED;
  ocl_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel) return GRAFT_OUT_OF_MEMORY;
  graft_status status = prepare(kernel, exec->device, call, dtype);
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
  if (!call->indices) {
    const ocl_argument arguments[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->self)};
    return ocl_launch(kernel, exec->stream, 4, arguments);
  }
  const ocl_argument arguments[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->indices), OCL_TENSOR(call->self)};
  return ocl_launch(kernel, exec->stream, 6, arguments);
}

graft_status ocl_op_cumsum(const graft_exec *exec, const graft_args_cumsum *args) {
  const call call = {args->self, args->out, NULL, args->dim, "#define JOIN(a, b) ADD(a, b)\n#define NOTHING 0\n"};
  return run(exec, &call);
}

graft_status ocl_op_cumprod(const graft_exec *exec, const graft_args_cumprod *args) {
  const call call = {args->self, args->out, NULL, args->dim, "#define JOIN(a, b) MUL(a, b)\n#define NOTHING 1\n"};
  return run(exec, &call);
}

#define EXTREMUM(op, defines)                                                        \
  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args) {    \
    const call call = {args->self, args->values, args->indices, args->dim, defines}; \
    return args->values && args->indices ? run(exec, &call) : GRAFT_UNIMPLEMENTED;   \
  }
EXTREMUM(cummax, "#define EXTREMUM\n#define LARGEST\n")
EXTREMUM(cummin, "#define EXTREMUM\n")
EXTREMUM(cummax_helper, "#define EXTREMUM\n#define LARGEST\n")
