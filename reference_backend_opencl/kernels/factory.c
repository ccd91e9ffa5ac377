/* Factories: arange. Those that repeat one number are in copy.c. */
#include <stdlib.h>

#include "families.h"

bool ocl_factory_caps(uint32_t op_id, ocl_op_caps *caps) {
  if (op_id == GRAFT_OP_ZERO) {
    caps->inputs = caps->outputs = OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX;
    caps->flags = GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED | GRAFT_CAP_IN_PLACE;
    return true;
  }
  if (op_id != GRAFT_OP_ARANGE_START_STEP && op_id != GRAFT_OP_SCALAR_TENSOR) return false;
  caps->outputs = OCL_FLOATS | OCL_INTS;
  if (op_id == GRAFT_OP_SCALAR_TENSOR) caps->outputs |= OCL_BOOLS | OCL_COMPLEX;
  caps->flags = GRAFT_CAP_UNALIGNED;
  return true;
}

typedef struct memo {
  ocl_kernel kernel;
  const ocl_dtype *numbers; /* what start and step are given in: the widest there is, so that only the result is rounded */
  int64_t elements, chunk;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->kernel);
  free(memo);
}

static graft_status make_memo(const graft_exec *exec, const void *pointer, const void *row, void **out) {
  const graft_args_arange_start_step *args = pointer;
  graft_device *device = exec->device;
  const ocl_dtype *dtype = ocl_dtype_of(device, args->out->dl.dtype);
  (void)row;
  if (!dtype || dtype->class == OCL_CLASS_COMPLEX || dtype->class == OCL_CLASS_BOOL) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  size_t local = device->is_cpu ? 1 : 64;
  memo->numbers = ocl_dtype_of(device, dtype->class == OCL_CLASS_INT ? GRAFT_I64
                                       : device->has_f64             ? GRAFT_F64
                                                                     : GRAFT_F32);
  memo->elements = args->out->dl.shape[0];
  memo->chunk = device->is_cpu ? 8192 : 1;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define D %s\n#define NT %s\n", dtype->name, memo->numbers->compute);
  graft_status status =
      head.failed ? GRAFT_OUT_OF_MEMORY : ocl_kernel_init(&memo->kernel, device, head.items, "factory", "arange");
  ocl_text_free(&head);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  size_t items = (size_t)((memo->elements + memo->chunk - 1) / memo->chunk);
  memo->kernel.local[0] = local;
  memo->kernel.global[0] = (items + local - 1) / local * local;
  *out = memo;
  return GRAFT_OK;
}

graft_status ocl_op_arange_start_step(const graft_exec *exec, const graft_args_arange_start_step *args) {
  void *pointer;
  graft_status status = ocl_memo_get(exec, args, NULL, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  ocl_number start_number, step_number = {.is_int = true, .i = 1, .re = 1};
  ocl_number_of_scalar(args->start, &start_number);
  if (args->step) ocl_number_of_scalar(args->step, &step_number);
  ocl_value start, step;
  size_t bytes = ocl_number_as(&start_number, memo->numbers, &start);
  ocl_number_as(&step_number, memo->numbers, &step);
  const ocl_argument arguments[] = {OCL_TENSOR(args->out), {bytes, &start},           {bytes, &step},
                                    OCL_VALUE(memo->elements), OCL_VALUE(memo->chunk)};
  return ocl_launch(&memo->kernel, exec->stream, 6, arguments);
}
