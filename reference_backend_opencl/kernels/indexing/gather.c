/* Gathers of all kinds, by one kernel. */
#include <string.h>

#include "kernels/core/indexed.h"

typedef struct memo {
  ocl_kernel kernel;
} memo;

/* Lanes of a vector. Where rows are moved, a GPU's work-item has 16 bytes of what is narrow. */
static unsigned lanes_of(const graft_device *device, const ocl_dtype *bits, bool moves_rows) {
  if (bits->class == OCL_CLASS_COMPLEX) return 1;
  const bool narrow = moves_rows && bits->bytes <= 2 && !device->is_cpu && device->vector_width <= 8;
  return narrow ? 2 * device->vector_width : device->vector_width;
}

static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, const ocl_indexed *call) {
  const ocl_dtype *bits = ocl_dtype_of_bits(device, call->picked->dl.dtype);
  ocl_geometry geometry;
  ocl_indexed_geometry(call, &geometry);
  bool rows = true;
  for (int k = 0; k < call->indices; k++) rows = rows && geometry.stride[OCL_INDEX + k][0] == 0;
  bool contiguous = geometry.stride[OCL_PLAIN][0] == 1 && geometry.stride[OCL_PICKED][0] == 1;
  if (ocl_geometry_is_small(&geometry)) ocl_geometry_widen(&geometry);
  size_t local = device->is_cpu ? 1 : 128;
  const unsigned lanes = lanes_of(device, bits, rows && contiguous);
  ocl_text head = {0};
  ocl_head_types(&head, bits, lanes, local);
  ocl_text_add(&head, "#define D %s\n#define RANK %d\n%s%s", bits->name, geometry.rank, rows ? "#define ROWS\n" : "",
               contiguous ? "#define CONTIGUOUS\n" : "");
  ocl_indexed_head(&head, call);
  graft_status status = ocl_kernel_make(kernel, device, &head, "indexing/indexing", "gather");
  if (status != GRAFT_OK) return status;
  int64_t space[OCL_GEOMETRY_NUMBERS + 2 * OCL_INDICES_MAX + 4];
  int n = ocl_geometry_numbers(&geometry, space);
  for (int k = 0; k < call->indices; k++) space[n++] = call->bound[k];
  for (int k = 0; k < call->indices; k++) space[n++] = call->step[k];
  ocl_cut cut;
  ocl_kernel_size(kernel, ocl_geometry_cut(device, &geometry, ocl_larger(lanes, device->vector_width), &cut), local);
  memcpy(space + n, &cut, sizeof cut);
  return ocl_kernel_set(kernel, 1, &(ocl_argument){sizeof *space * (size_t)(n + 4), space});
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  const ocl_indexed *call = from;
  if (!ocl_dtype_of_bits(device, call->picked->dl.dtype) || call->rank > OCL_DIMS_MAX ||
      call->plain->dl.dtype != call->picked->dl.dtype) {
    return GRAFT_UNIMPLEMENTED;
  }
  for (int k = 0; k < call->indices; k++) {
    if (call->index[k]->dl.dtype != GRAFT_I64) return GRAFT_UNIMPLEMENTED;
  }
  return make_kernel(&((memo *)pointer)->kernel, device, call);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

graft_status ocl_gather(const graft_exec *exec, const ocl_indexed *call) {
  memo *memo;
  cl_mem faults;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status == GRAFT_OK) status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  ocl_argument arguments[OCL_ARGUMENTS_MAX] = {OCL_TENSOR(call->plain), OCL_TENSOR(call->picked), OCL_VALUE(faults)};
  cl_uint n = 5;
  for (int k = 0; k < call->indices; k++) {
    arguments[n++] = (ocl_argument){sizeof(cl_mem), &call->index[k]->dl.data->handle};
    arguments[n++] = (ocl_argument){sizeof(uint64_t), &call->index[k]->dl.byte_offset};
  }
  return ocl_launch(&memo->kernel, exec->stream, n, arguments);
}

graft_status ocl_op_index_select(const graft_exec *exec, const graft_args_index_select *args) {
  ocl_indexed call = {.op_id = args->head.op_id, .plain = args->out, .picked = args->self};
  ocl_indexed_along(&call, args->index, args->dim);
  return ocl_gather(exec, &call);
}

graft_status ocl_op_gather(const graft_exec *exec, const graft_args_gather *args) {
  ocl_indexed call = {.op_id = args->head.op_id, .plain = args->out, .picked = args->self};
  ocl_indexed_each(&call, args->index, args->dim);
  return ocl_gather(exec, &call);
}

graft_status ocl_op_index_Tensor(const graft_exec *exec, const graft_args_index_Tensor *args) {
  ocl_indexed call = {.op_id = args->head.op_id, .plain = args->out, .picked = args->self, .wraps = true};
  return ocl_indexed_list(&call, args->indices) ? ocl_gather(exec, &call) : GRAFT_UNIMPLEMENTED;
}

graft_status ocl_op_take(const graft_exec *exec, const graft_args_take *args) {
  ocl_indexed call = {.op_id = args->head.op_id, .plain = args->out, .picked = args->self, .wraps = true};
  ocl_indexed_add(&call, args->index, ocl_elements(args->self), 1);
  ocl_indexed_push(&call, ocl_elements(args->index), 1, 0);
  call.stride[OCL_INDEX][0] = 1;
  return ocl_gather(exec, &call);
}
