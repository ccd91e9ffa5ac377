/* masked_scatter: elements in a row, put where a mask is true. */
#include "kernels/indexing/search.h"

graft_status ocl_op_masked_scatter(const graft_exec *exec, const graft_args_masked_scatter *args) {
  const ocl_search search = {.in = args->mask, .value = args->self, .entry = "put_masked", .op_id = args->head.op_id};
  ocl_found *found;
  ocl_place work;
  cl_mem faults;
  if (args->mask->dl.dtype != GRAFT_BOOL || args->source->dl.dtype != args->out->dl.dtype) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_stream_faults(exec->stream, &faults);
  if (status == GRAFT_OK) status = ocl_search_run(exec, &search, &found, &work);
  if (status != GRAFT_OK) return status;
  int64_t available = ocl_elements(args->source);
  const ocl_argument put[] = {OCL_TENSOR(args->mask),   OCL_PLACE(work),        OCL_VALUE(found->elements),
                              OCL_VALUE(found->chunk),  OCL_TENSOR(args->self), OCL_TENSOR(args->out),
                              OCL_TENSOR(args->source), OCL_VALUE(available),   OCL_VALUE(faults)};
  return ocl_launch(&found->fill, exec->stream, OCL_ALL(put));
}
