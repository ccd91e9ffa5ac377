/* Elements that are not 0, in order: nonzero and masked_select, the pattern for an output whose size depends on data.
 */
#include "kernels/indexing/search.h"

#include "kernels/core/indexed.h"

enum { GROUP = 256, TILE = 16 * GROUP, CHUNKS_MAX = 4 * GROUP, CHUNKS_PER_UNIT = 4 }; /* the first as compact.cl */

/* A CPU's work-items take long chunks, and one adds the counts up; elsewhere a work-group takes a chunk of some tiles.
 */
static void cut(ocl_found *found, const graft_device *device, int64_t elements) {
  int64_t chunk = ocl_larger(elements / 4096 + 1, 4096);
  if (!device->is_cpu) {
    int64_t chunks = CHUNKS_PER_UNIT * (int64_t)device->compute_units;
    chunk = ocl_round_up(ocl_larger(ocl_ceil_divide(elements, chunks < CHUNKS_MAX ? chunks : CHUNKS_MAX), 1), TILE);
  }
  found->elements = (uint64_t)elements;
  found->chunk = (uint64_t)chunk;
  found->chunks = (uint64_t)ocl_ceil_divide(elements, chunk);
}

static graft_status make_kernels(ocl_found *memo, graft_device *device, const ocl_search *search,
                                 const ocl_dtype *dtype) {
  const graft_dl_tensor *in = &search->in->dl;
  const ocl_dtype *bits = search->value ? ocl_dtype_of_bits(device, search->value->dl.dtype) : dtype;
  const size_t local = device->is_cpu ? 1 : GROUP;
  const char *files = device->is_cpu ? "indexing/indexing" : "core/sums indexing/compact";
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define SUM ulong\n#define D %s\n#define D_VALUE %s\n#define RANK %d\n#define OP_ID %u\n",
               dtype->name, bits->name, search->takes_shape && in->ndim ? in->ndim : 1, search->op_id);
  graft_status status = ocl_kernel_init(&memo->count, device, &head, files, "count");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->accumulate, device, &head, files, "accumulate");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->fill, device, &head, files, search->entry);
  ocl_text_free(&head);
  if (status != GRAFT_OK) return status;
  cut(memo, device, ocl_elements(search->in));
  const int64_t groups = (int64_t)(memo->chunks * local);
  ocl_kernel_size(&memo->count, groups, local);
  ocl_kernel_size(&memo->accumulate, (int64_t)local, local);
  ocl_kernel_size(&memo->fill, groups, local);
  if (!search->takes_shape || in->ndim == 0) return GRAFT_OK;
  return ocl_kernel_set(&memo->fill, 1, &(ocl_argument){sizeof *in->shape * (size_t)in->ndim, in->shape});
}

static graft_status prepare(void *memo, graft_device *device, const void *from) {
  const ocl_search *search = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, search->in->dl.dtype);
  if (!dtype || (search->value && !ocl_dtype_of_bits(device, search->value->dl.dtype))) return GRAFT_UNIMPLEMENTED;
  if (search->takes_shape && search->in->dl.ndim > OCL_DIMS_MAX) return GRAFT_UNIMPLEMENTED;
  return make_kernels(memo, device, search, dtype);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(ocl_found), .kernels = 3, .prepare = prepare};

graft_status ocl_search_run(const graft_exec *exec, const ocl_search *search, ocl_found **found, ocl_place *work) {
  graft_status status = ocl_memo_get(exec, &memo_type, search, found);
  if (status != GRAFT_OK) return status;
  ocl_found *memo = *found;
  status = ocl_workspace(exec, sizeof(int64_t) * (memo->chunks + 1), work);
  if (status != GRAFT_OK) return status;
  const ocl_argument count[] = {OCL_TENSOR(search->in), OCL_PLACE(*work), OCL_VALUE(memo->elements),
                                OCL_VALUE(memo->chunk)};
  const ocl_argument accumulate[] = {OCL_PLACE(*work), OCL_VALUE(memo->chunks)};
  status = ocl_launch(&memo->count, exec->stream, OCL_ALL(count));
  return status == GRAFT_OK ? ocl_launch(&memo->accumulate, exec->stream, OCL_ALL(accumulate)) : status;
}

graft_status ocl_read_total(graft_stream *stream, ocl_place from, int64_t *total) {
  cl_event done;
  const ocl_command command = ocl_command_begin(stream, GRAFT_RECORD_COPY_TO_HOST, sizeof *total);
  cl_int error = clEnqueueReadBuffer(command.queue, from.buffer->handle, CL_FALSE, from.offset, sizeof *total, total, 0,
                                     NULL, &done);
  if (error != CL_SUCCESS) return ocl_stream_result(stream, error, "clEnqueueReadBuffer");
  error = clWaitForEvents(1, &done);
  ocl_command_end(&command, done, NULL);
  return ocl_stream_result(stream, error, "clWaitForEvents");
}

/* The total stands behind the places of chunks. */
static graft_status read_found(graft_stream *stream, const ocl_found *found, ocl_place work, int64_t *total) {
  return ocl_read_total(stream, (ocl_place){work.buffer, work.offset + sizeof *total * found->chunks}, total);
}

graft_status ocl_op_nonzero(const graft_exec *exec, const graft_args_nonzero *args) {
  const ocl_search search = {.in = args->self, .entry = "fill", .takes_shape = true, .op_id = args->head.op_id};
  ocl_found *found;
  ocl_place work;
  int64_t total = 0;
  graft_status status = ocl_search_run(exec, &search, &found, &work);
  if (status == GRAFT_OK) status = read_found(exec->stream, found, work, &total);
  if (status != GRAFT_OK) return status;

  const int64_t shape[] = {total, args->self->dl.ndim};
  const graft_tensor_desc *out;
  status = exec->device->plugin->host->output_shape(exec, args->out, 2, shape, &out);
  if (status != GRAFT_OK || total == 0 || args->self->dl.ndim == 0) return status; /* of rank 0: rows of no numbers */
  const ocl_argument fill[] = {OCL_TENSOR(args->self),  OCL_PLACE(work), OCL_VALUE(found->elements),
                               OCL_VALUE(found->chunk), OCL_TENSOR(out), OCL_VALUE(total)};
  return ocl_launch(&found->fill, exec->stream, OCL_ALL(fill));
}

/* All of the output is filled first: how many rows there are need not be waited for. */
graft_status ocl_op_nonzero_static(const graft_exec *exec, const graft_args_nonzero_static *args) {
  const ocl_search search = {.in = args->self, .entry = "fill", .takes_shape = true, .op_id = args->head.op_id};
  ocl_found *found;
  ocl_place work;
  int64_t numbers = args->size * args->self->dl.ndim;
  if (numbers == 0) return GRAFT_OK;
  graft_status status =
      ocl_memory_api.fill(exec->stream, args->out->dl.data, args->out->dl.byte_offset,
                          (uint64_t)numbers * sizeof(int64_t), &args->fill_value, sizeof args->fill_value);
  if (status != GRAFT_OK || ocl_elements(args->self) == 0) return status;
  status = ocl_search_run(exec, &search, &found, &work);
  if (status != GRAFT_OK) return status;
  const ocl_argument fill[] = {OCL_TENSOR(args->self),  OCL_PLACE(work),       OCL_VALUE(found->elements),
                               OCL_VALUE(found->chunk), OCL_TENSOR(args->out), OCL_VALUE(args->size)};
  return ocl_launch(&found->fill, exec->stream, OCL_ALL(fill));
}

graft_status ocl_op_masked_select(const graft_exec *exec, const graft_args_masked_select *args) {
  const ocl_search search = {.in = args->mask, .value = args->self, .entry = "take_masked", .op_id = args->head.op_id};
  ocl_found *found;
  ocl_place work;
  int64_t total = 0;
  if (args->mask->dl.dtype != GRAFT_BOOL) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_search_run(exec, &search, &found, &work);
  if (status == GRAFT_OK) status = read_found(exec->stream, found, work, &total);
  if (status != GRAFT_OK) return status;
  const graft_tensor_desc *out;
  status = exec->device->plugin->host->output_shape(exec, args->out, 1, &total, &out);
  if (status != GRAFT_OK || total == 0) return status;
  const ocl_argument take[] = {OCL_TENSOR(args->mask),  OCL_PLACE(work),        OCL_VALUE(found->elements),
                               OCL_VALUE(found->chunk), OCL_TENSOR(args->self), OCL_TENSOR(out)};
  return ocl_launch(&found->fill, exec->stream, OCL_ALL(take));
}
