/* Scans: cumsum. */
#include <stdlib.h>

#include "families.h"

bool ocl_scan_caps(uint32_t op_id, ocl_op_caps *caps) {
  if (op_id != GRAFT_OP_CUMSUM) return false;
  caps->inputs = caps->outputs = OCL_FLOATS | OCL_INTS;
  caps->flags = GRAFT_CAP_UNALIGNED;
  return true;
}

static void destroy_memo(void *pointer) {
  ocl_kernel_destroy(pointer);
  free(pointer);
}

static graft_status prepare(ocl_kernel *kernel, graft_device *device, const graft_args_cumsum *args,
                            const ocl_dtype *dtype) {
  ocl_lines lines = ocl_lines_of(device, &args->self->dl, args->self->dl.ndim ? args->dim : -1);
  if (lines.rows) lines.vec = 1;
  ocl_text head = {0};
  ocl_lines_head(&head, &lines, dtype);
  ocl_text_add(&head, "#define D_OUT %s\n#define D_IN %s\n", dtype->name, dtype->name);
  graft_status status =
      head.failed ? GRAFT_OUT_OF_MEMORY : ocl_kernel_init(kernel, device, head.items, "lines scan", "scan");
  ocl_text_free(&head);
  return status == GRAFT_OK ? ocl_lines_set(kernel, &lines, 4) : status;
}

static graft_status make_memo(const graft_exec *exec, const void *pointer, const void *row, void **memo) {
  const graft_args_cumsum *args = pointer;
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, args->self->dl.dtype);
  (void)row;
  if (!dtype || args->out->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  if (dtype->class != OCL_CLASS_FLOAT && dtype->class != OCL_CLASS_INT) return GRAFT_UNIMPLEMENTED;
  ocl_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel) return GRAFT_OUT_OF_MEMORY;
  graft_status status = prepare(kernel, exec->device, args, dtype);
  if (status != GRAFT_OK) {
    destroy_memo(kernel);
    return status;
  }
  *memo = kernel;
  return GRAFT_OK;
}

graft_status ocl_op_cumsum(const graft_exec *exec, const graft_args_cumsum *args) {
  void *kernel;
  graft_status status = ocl_memo_get(exec, args, NULL, make_memo, destroy_memo, &kernel);
  if (status != GRAFT_OK) return status;
  const ocl_argument arguments[] = {OCL_TENSOR(args->out), OCL_TENSOR(args->self)};
  return ocl_launch(kernel, exec->stream, 4, arguments);
}
