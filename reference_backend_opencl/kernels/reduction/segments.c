/* segment_reduce: first where the parts lie, in a workspace, then their elements. */
#include <math.h>

#include "runtime/ocl.h"

/* As segments.cl has it. */
typedef struct space {
  int64_t outer, size, inner, parts;
  int64_t by_offsets, checks;
} space;

typedef struct memo {
  ocl_kernel bounds, reduce;
  const ocl_dtype *dtype;
  space space;
} memo;

static int64_t product(const int64_t *sizes, int64_t count) {
  int64_t all = 1;
  for (int64_t i = 0; i < count; i++) all *= sizes[i];
  return all;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const graft_args_segment_reduce *args = from;
  const graft_dl_tensor *data = &args->data->dl, *out = &args->out->dl;
  const ocl_dtype *dtype = memo->dtype = ocl_dtype_of(device, data->dtype);
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || out->dtype != data->dtype || args->indices) {
    return GRAFT_UNIMPLEMENTED;
  }
  size_t local = device->is_cpu ? 16 : 64;
  int64_t axis = args->axis;
  memo->space = (space){.outer = product(data->shape, axis),
                        .size = data->shape[axis],
                        .inner = product(data->shape + axis + 1, data->ndim - axis - 1),
                        .parts = out->shape[axis],
                        .by_offsets = args->offsets != NULL,
                        .checks = !args->offsets && !args->unsafe};
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define D %s\n#define OP_ID %u\n", dtype->name, (unsigned)GRAFT_OP_SEGMENT_REDUCE);
  graft_status status = ocl_kernel_init(&memo->bounds, device, &head, "reduction/segments", "bounds");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->reduce, device, &head, "reduction/segments", "reduce");
  ocl_text_free(&head);
  if (status != GRAFT_OK) return status;
  ocl_kernel_size(&memo->bounds, memo->space.outer, local);
  ocl_kernel_size(&memo->reduce, ocl_elements(args->out), local);
  status = ocl_kernel_set(&memo->bounds, 1, &(ocl_argument)OCL_VALUE(memo->space));
  return status == GRAFT_OK ? ocl_kernel_set(&memo->reduce, 1, &(ocl_argument)OCL_VALUE(memo->space)) : status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 2, .prepare = prepare};

static ocl_number beginning(const graft_args_segment_reduce *args) {
  ocl_number number = {.re = 0};
  if (args->initial)
    ocl_number_of_scalar(args->initial, &number);
  else if (args->reduce == GRAFT_STR_SEGMENT_REDUCE_MAX || args->reduce == GRAFT_STR_SEGMENT_REDUCE_MIN)
    number.re = args->reduce == GRAFT_STR_SEGMENT_REDUCE_MAX ? -INFINITY : INFINITY;
  else if (args->reduce == GRAFT_STR_SEGMENT_REDUCE_PROD)
    number.re = 1;
  return number;
}

graft_status ocl_op_segment_reduce(const graft_exec *exec, const graft_args_segment_reduce *args) {
  memo *memo;
  if (ocl_elements(args->out) == 0) return GRAFT_OK;
  graft_status status = ocl_memo_get(exec, &memo_type, args, &memo);
  if (status != GRAFT_OK) return status;
  ocl_place work;
  cl_mem faults;
  status = ocl_workspace(exec, (uint64_t)(memo->space.outer * memo->space.parts) * 2 * sizeof(int64_t), &work);
  if (status == GRAFT_OK) status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  const graft_tensor_desc *divider = args->offsets ? args->offsets : args->lengths;
  const ocl_argument bounds[] = {OCL_PLACE(work), OCL_TENSOR(divider), OCL_VALUE(faults)};
  status = ocl_launch(&memo->bounds, exec->stream, OCL_ALL(bounds));
  if (status != GRAFT_OK) return status;
  const ocl_number number = beginning(args);
  ocl_value begin_with;
  size_t bytes = ocl_number_as(&number, memo->dtype, &begin_with);
  int64_t how = args->reduce, has_initial = args->initial != NULL;
  const graft_tensor_desc *data = args->data->dl.data ? args->data : args->out; /* of nothing nothing is read */
  const ocl_argument reduce[] = {OCL_TENSOR(args->out), OCL_TENSOR(data),     OCL_PLACE(work),
                                 OCL_VALUE(how),        {bytes, &begin_with}, OCL_VALUE(has_initial)};
  return ocl_launch(&memo->reduce, exec->stream, OCL_ALL(reduce));
}
