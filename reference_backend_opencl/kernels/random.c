/* Random ops. Dropout so far. */
#include <math.h>
#include <stdlib.h>

#include "families.h"

bool ocl_random_caps(uint32_t op_id, ocl_op_caps *caps) {
  if (op_id != GRAFT_OP_NATIVE_DROPOUT) return false;
  caps->inputs = OCL_FLOATS;
  caps->outputs = OCL_FLOATS | OCL_BOOLS;
  caps->flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_IN_PLACE;
  return true;
}

typedef struct memo {
  ocl_kernel kernel;
  const ocl_dtype *dtype;
  uint64_t elements, blocks_per_item;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->kernel);
  free(memo);
}

static graft_status make_memo(const graft_exec *exec, const void *pointer, const void *row, void **out) {
  const graft_args_native_dropout *args = pointer;
  graft_device *device = exec->device;
  const ocl_dtype *dtype = ocl_dtype_of(device, args->input->dl.dtype);
  (void)row;
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || args->out0->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  size_t local = device->is_cpu ? 1 : 64;
  memo->dtype = dtype;
  memo->elements = 1;
  for (int d = 0; d < args->input->dl.ndim; d++) memo->elements *= (uint64_t)args->input->dl.shape[d];
  memo->blocks_per_item = device->is_cpu ? 1024 : 1;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define D %s\n%s", dtype->name, dtype->code == GRAFT_F64 ? "#define WIDE\n" : "");
  graft_status status =
      head.failed ? GRAFT_OUT_OF_MEMORY : ocl_kernel_init(&memo->kernel, device, head.items, "random", "dropout");
  ocl_text_free(&head);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  uint64_t per_block = dtype->code == GRAFT_F64 ? 2 : 4, blocks = (memo->elements + per_block - 1) / per_block;
  uint64_t items = (blocks + memo->blocks_per_item - 1) / memo->blocks_per_item;
  memo->kernel.local[0] = local;
  memo->kernel.global[0] = (items + local - 1) / local * local;
  *out = memo;
  return GRAFT_OK;
}

graft_status ocl_op_native_dropout(const graft_exec *exec, const graft_args_native_dropout *args) {
  bool trains = !args->train || *args->train;
  /* Without training the output is the input and the mask is whole: the host composes that better. */
  if (!trains || !args->out0 || !args->out1 || !args->philox || GRAFT_HAS(args->philox, graft_philox, state)) {
    return GRAFT_UNIMPLEMENTED;
  }
  void *pointer;
  graft_status status = ocl_memo_get(exec, args, NULL, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  double keep = 1 - args->p;
  bool wide = memo->dtype->code == GRAFT_F64;
  uint64_t first_block = args->philox->offset / 4, threshold = (uint64_t)ceil(keep * (wide ? 0x1p53 : 0x1p24));
  ocl_number scale_number = {.re = keep > 0 ? 1 / keep : 0};
  ocl_value scale;
  size_t scale_bytes = ocl_number_as(&scale_number, memo->dtype, &scale);
  const ocl_argument arguments[] = {
      OCL_TENSOR(args->out0),        OCL_TENSOR(args->out1),    OCL_TENSOR(args->input),
      OCL_VALUE(args->philox->seed), OCL_VALUE(first_block),    OCL_VALUE(threshold),
      {scale_bytes, &scale},         OCL_VALUE(memo->elements), OCL_VALUE(memo->blocks_per_item)};
  return ocl_launch(&memo->kernel, exec->stream, sizeof arguments / sizeof *arguments, arguments);
}
