/* Indexing ops. nonzero so far: the pattern for an output whose size depends on data. */
#include <stdlib.h>

#include "families.h"

bool ocl_indexing_caps(uint32_t op_id, ocl_op_caps *caps) {
  if (op_id != GRAFT_OP_NONZERO) return false;
  caps->inputs = OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX;
  caps->outputs = OCL_BIT(I64);
  caps->flags = GRAFT_CAP_UNALIGNED;
  return true;
}

typedef struct memo {
  ocl_kernel count, accumulate, fill;
  uint64_t elements, chunk, chunks;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->count);
  ocl_kernel_destroy(&memo->accumulate);
  ocl_kernel_destroy(&memo->fill);
  free(memo);
}

static graft_status prepare(memo *memo, graft_device *device, const graft_dl_tensor *in, const ocl_dtype *dtype) {
  size_t local = device->is_cpu ? 1 : 64;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define D %s\n#define RANK %d\n", dtype->name, in->ndim);
  graft_status status = head.failed ? GRAFT_OUT_OF_MEMORY : GRAFT_OK;
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->count, device, head.items, "indexing", "count");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->accumulate, device, head.items, "indexing", "accumulate");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->fill, device, head.items, "indexing", "fill");
  ocl_text_free(&head);
  if (status != GRAFT_OK) return status;
  memo->elements = 1;
  for (int d = 0; d < in->ndim; d++) memo->elements *= (uint64_t)in->shape[d];
  /* One work-item adds the counts up, so there are never many. */
  memo->chunk = memo->elements / 4096 + 1;
  if (device->is_cpu && memo->chunk < 4096) memo->chunk = 4096;
  memo->chunks = (memo->elements + memo->chunk - 1) / memo->chunk;
  memo->count.local[0] = memo->fill.local[0] = local;
  memo->count.global[0] = memo->fill.global[0] = (memo->chunks + local - 1) / local * local;
  return ocl_kernel_constant(&memo->fill, 8, sizeof *in->shape * (size_t)in->ndim, in->shape);
}

static graft_status make_memo(const graft_exec *exec, const void *pointer, const void *row, void **out) {
  const graft_args_nonzero *args = pointer;
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, args->self->dl.dtype);
  (void)row;
  if (!dtype || args->self->dl.ndim == 0 || args->self->dl.ndim > OCL_DIMS_MAX) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  graft_status status = prepare(memo, exec->device, &args->self->dl, dtype);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

/* Waits for the total on the event of its own copy, not for the stream. */
static graft_status read_total(graft_stream *stream, graft_buffer *work, uint64_t offset, int64_t *total) {
  cl_event done;
  cl_int error =
      clEnqueueReadBuffer(stream->queue, work->handle, CL_FALSE, offset, sizeof *total, total, 0, NULL, &done);
  if (error != CL_SUCCESS) return ocl_stream_result(stream, error, "clEnqueueReadBuffer");
  error = clWaitForEvents(1, &done);
  clReleaseEvent(done);
  return ocl_stream_result(stream, error, "clWaitForEvents");
}

graft_status ocl_op_nonzero(const graft_exec *exec, const graft_args_nonzero *args) {
  const graft_host *host = exec->device->plugin->host;
  void *pointer;
  graft_status status = ocl_memo_get(exec, args, NULL, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  graft_buffer *work;
  uint64_t at;
  status = host->workspace(exec, sizeof(int64_t) * (memo->chunks + 1), 0, &work, &at);
  if (status != GRAFT_OK) return status;

  const ocl_argument count[] = {OCL_TENSOR(args->self), OCL_BUFFER(work), OCL_VALUE(at), OCL_VALUE(memo->elements),
                                OCL_VALUE(memo->chunk)};
  const ocl_argument accumulate[] = {OCL_BUFFER(work), OCL_VALUE(at), OCL_VALUE(memo->chunks)};
  int64_t total = 0;
  status = ocl_launch(&memo->count, exec->stream, 6, count);
  if (status == GRAFT_OK) status = ocl_launch(&memo->accumulate, exec->stream, 3, accumulate);
  if (status == GRAFT_OK) status = read_total(exec->stream, work, at + sizeof total * memo->chunks, &total);
  if (status != GRAFT_OK) return status;

  const int64_t shape[] = {total, args->self->dl.ndim};
  const graft_tensor_desc *out;
  status = host->output_shape(exec, args->out, 2, shape, &out);
  if (status != GRAFT_OK || total == 0) return status;
  const ocl_argument fill[] = {OCL_TENSOR(args->self),    OCL_BUFFER(work),       OCL_VALUE(at),
                               OCL_VALUE(memo->elements), OCL_VALUE(memo->chunk), OCL_TENSOR(out)};
  return ocl_launch(&memo->fill, exec->stream, 8, fill);
}
