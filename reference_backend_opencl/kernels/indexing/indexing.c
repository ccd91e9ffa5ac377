/* Indexing ops: gathers of all kinds, by one kernel, and nonzero, the pattern for an output whose size depends on data.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/core/indexed.h"
#include "kernels/families.h"

#define ALL_DTYPES (OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX)

bool ocl_indexing_caps(uint32_t op_id, ocl_op_caps *caps) {
  caps->inputs = caps->outputs = ALL_DTYPES;
  caps->flags = GRAFT_CAP_UNALIGNED;
  switch (op_id) {
    case GRAFT_OP_NONZERO: caps->outputs = OCL_BIT(I64); return true;
    case GRAFT_OP_INDEX_SELECT:
    case GRAFT_OP_INDEX_TENSOR:
    case GRAFT_OP_GATHER: caps->flags |= GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED; return true;
    case GRAFT_OP_MASKED_SCATTER: caps->flags |= GRAFT_CAP_EMPTY; return true;
    case GRAFT_OP_TAKE:
    case GRAFT_OP_MASKED_SELECT: return true;
    default: return false;
  }
}

/* ---- Gathers ---- */

typedef struct gather_memo {
  ocl_kernel kernel;
} gather_memo;

static void destroy_gather(void *pointer) {
  gather_memo *memo = pointer;
  ocl_kernel_destroy(&memo->kernel);
  free(memo);
}

static graft_status prepare_gather(ocl_kernel *kernel, graft_device *device, const ocl_indexed *call) {
  const ocl_dtype *bits = ocl_dtype_of_bits(device, call->picked->dl.dtype);
  ocl_geometry geometry;
  ocl_indexed_geometry(call, &geometry);
  bool rows = true;
  for (int k = 0; k < call->indices; k++) rows = rows && geometry.stride[OCL_INDEX + k][0] == 0;
  bool contiguous = geometry.stride[OCL_PLAIN][0] == 1 && geometry.stride[OCL_PICKED][0] == 1;
  size_t local = device->is_cpu ? 1 : 64;
  ocl_text head = {0};
  ocl_head_types(&head, bits, bits->class == OCL_CLASS_COMPLEX ? 1 : device->vector_width, local);
  ocl_text_add(&head, "#define D %s\n#define RANK %d\n%s%s", bits->name, geometry.rank, rows ? "#define ROWS\n" : "",
               contiguous ? "#define CONTIGUOUS\n" : "");
  ocl_indexed_head(&head, call);
  graft_status status =
      head.failed ? GRAFT_OUT_OF_MEMORY : ocl_kernel_init(kernel, device, head.items, "indexing/indexing", "gather");
  ocl_text_free(&head);
  if (status != GRAFT_OK) return status;
  int64_t space[OCL_GEOMETRY_NUMBERS + 2 * OCL_INDICES_MAX + 4];
  int n = ocl_geometry_numbers(&geometry, space);
  for (int k = 0; k < call->indices; k++) space[n++] = call->bound[k];
  for (int k = 0; k < call->indices; k++) space[n++] = call->step[k];
  ocl_cut cut;
  ocl_geometry_cut(device, &geometry, local, &cut, &kernel->global[0]);
  memcpy(space + n, &cut, sizeof cut);
  kernel->local[0] = local;
  return ocl_kernel_constant(kernel, 5 + 2 * (cl_uint)call->indices, sizeof *space * (size_t)(n + 4), space);
}

static graft_status make_gather(const graft_exec *exec, const void *args, const void *call_pointer, void **out) {
  const ocl_indexed *call = call_pointer;
  (void)args;
  if (!ocl_dtype_of_bits(exec->device, call->picked->dl.dtype) || call->rank > OCL_DIMS_MAX ||
      call->plain->dl.dtype != call->picked->dl.dtype) {
    return GRAFT_UNIMPLEMENTED;
  }
  for (int k = 0; k < call->indices; k++) {
    if (call->index[k]->dl.dtype != GRAFT_I64) return GRAFT_UNIMPLEMENTED;
  }
  gather_memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  graft_status status = prepare_gather(&memo->kernel, exec->device, call);
  if (status != GRAFT_OK) {
    destroy_gather(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

graft_status ocl_gather(const graft_exec *exec, const ocl_indexed *call) {
  void *pointer;
  cl_mem faults;
  graft_status status = ocl_memo_get(exec, NULL, call, make_gather, destroy_gather, &pointer);
  if (status == GRAFT_OK) status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  gather_memo *memo = pointer;
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

/* ---- nonzero ---- */

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

/* What of it the ops at hand are: elements whose places are found, and what is then done with these. */
typedef struct search {
  const graft_tensor_desc *in;    /* looked through */
  const graft_tensor_desc *value; /* moved, or NULL */
  const char *entry;
  cl_uint shape_argument; /* where the kernel takes the shape of `in`; 0: it does not */
  uint32_t op_id;
} search;

static graft_status prepare(memo *memo, graft_device *device, const search *search, const ocl_dtype *dtype) {
  const graft_dl_tensor *in = &search->in->dl;
  const ocl_dtype *bits = search->value ? ocl_dtype_of_bits(device, search->value->dl.dtype) : dtype;
  size_t local = device->is_cpu ? 1 : 64;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define D %s\n#define D_VALUE %s\n#define RANK %d\n#define OP_ID %u\n", dtype->name, bits->name,
               search->shape_argument && in->ndim ? in->ndim : 1, search->op_id);
  graft_status status = head.failed ? GRAFT_OUT_OF_MEMORY : GRAFT_OK;
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->count, device, head.items, "indexing/indexing", "count");
  if (status == GRAFT_OK)
    status = ocl_kernel_init(&memo->accumulate, device, head.items, "indexing/indexing", "accumulate");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->fill, device, head.items, "indexing/indexing", search->entry);
  ocl_text_free(&head);
  if (status != GRAFT_OK) return status;
  memo->elements = (uint64_t)ocl_elements(search->in);
  /* One work-item adds the counts up, so there are never many. */
  memo->chunk = memo->elements / 4096 + 1;
  if (device->is_cpu && memo->chunk < 4096) memo->chunk = 4096;
  memo->chunks = (memo->elements + memo->chunk - 1) / memo->chunk;
  memo->count.local[0] = memo->fill.local[0] = local;
  memo->count.global[0] = memo->fill.global[0] = (memo->chunks + local - 1) / local * local;
  if (!search->shape_argument || in->ndim == 0) return GRAFT_OK;
  return ocl_kernel_constant(&memo->fill, search->shape_argument, sizeof *in->shape * (size_t)in->ndim, in->shape);
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *search_pointer, void **out) {
  const search *search = search_pointer;
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, search->in->dl.dtype);
  (void)args;
  if (!dtype || (search->value && !ocl_dtype_of_bits(exec->device, search->value->dl.dtype)))
    return GRAFT_UNIMPLEMENTED;
  if (search->shape_argument && search->in->dl.ndim > OCL_DIMS_MAX) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  graft_status status = prepare(memo, exec->device, search, dtype);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

/* Finds where each chunk's elements begin, in workspace, the total last. */
static graft_status find_places(const graft_exec *exec, const search *search, memo **out, graft_buffer **work,
                                uint64_t *at) {
  void *pointer;
  graft_status status = ocl_memo_get(exec, NULL, search, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = *out = pointer;
  status = exec->device->plugin->host->workspace(exec, sizeof(int64_t) * (memo->chunks + 1), 0, work, at);
  if (status != GRAFT_OK) return status;
  const ocl_argument count[] = {OCL_TENSOR(search->in), OCL_BUFFER(*work), OCL_VALUE(*at), OCL_VALUE(memo->elements),
                                OCL_VALUE(memo->chunk)};
  const ocl_argument accumulate[] = {OCL_BUFFER(*work), OCL_VALUE(*at), OCL_VALUE(memo->chunks)};
  status = ocl_launch(&memo->count, exec->stream, 6, count);
  return status == GRAFT_OK ? ocl_launch(&memo->accumulate, exec->stream, 3, accumulate) : status;
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
  const search search = {args->self, NULL, "fill", 8, args->head.op_id};
  memo *memo;
  graft_buffer *work;
  uint64_t at;
  int64_t total = 0;
  graft_status status = find_places(exec, &search, &memo, &work, &at);
  if (status == GRAFT_OK) status = read_total(exec->stream, work, at + sizeof total * memo->chunks, &total);
  if (status != GRAFT_OK) return status;

  const int64_t shape[] = {total, args->self->dl.ndim};
  const graft_tensor_desc *out;
  status = exec->device->plugin->host->output_shape(exec, args->out, 2, shape, &out);
  if (status != GRAFT_OK || total == 0 || args->self->dl.ndim == 0) return status; /* of rank 0: rows of no numbers */
  const ocl_argument fill[] = {OCL_TENSOR(args->self),    OCL_BUFFER(work),       OCL_VALUE(at),
                               OCL_VALUE(memo->elements), OCL_VALUE(memo->chunk), OCL_TENSOR(out)};
  return ocl_launch(&memo->fill, exec->stream, 8, fill);
}

/* ---- masked_select and masked_scatter: the mask's true elements in a row ---- */

graft_status ocl_op_masked_select(const graft_exec *exec, const graft_args_masked_select *args) {
  const search search = {args->mask, args->self, "take_masked", 0, args->head.op_id};
  memo *memo;
  graft_buffer *work;
  uint64_t at;
  int64_t total = 0;
  if (args->mask->dl.dtype != GRAFT_BOOL) return GRAFT_UNIMPLEMENTED;
  graft_status status = find_places(exec, &search, &memo, &work, &at);
  if (status == GRAFT_OK) status = read_total(exec->stream, work, at + sizeof total * memo->chunks, &total);
  if (status != GRAFT_OK) return status;
  const graft_tensor_desc *out;
  status = exec->device->plugin->host->output_shape(exec, args->out, 1, &total, &out);
  if (status != GRAFT_OK || total == 0) return status;
  const ocl_argument take[] = {
      OCL_TENSOR(args->mask), OCL_BUFFER(work),       OCL_VALUE(at),  OCL_VALUE(memo->elements),
      OCL_VALUE(memo->chunk), OCL_TENSOR(args->self), OCL_TENSOR(out)};
  return ocl_launch(&memo->fill, exec->stream, 10, take);
}

graft_status ocl_op_masked_scatter(const graft_exec *exec, const graft_args_masked_scatter *args) {
  const search search = {args->mask, args->self, "put_masked", 0, args->head.op_id};
  memo *memo;
  graft_buffer *work;
  uint64_t at;
  cl_mem faults;
  if (args->mask->dl.dtype != GRAFT_BOOL || args->source->dl.dtype != args->out->dl.dtype) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_stream_faults(exec->stream, &faults);
  if (status == GRAFT_OK) status = find_places(exec, &search, &memo, &work, &at);
  if (status != GRAFT_OK) return status;
  int64_t available = ocl_elements(args->source);
  const ocl_argument put[] = {OCL_TENSOR(args->mask),    OCL_BUFFER(work),         OCL_VALUE(at),
                              OCL_VALUE(memo->elements), OCL_VALUE(memo->chunk),   OCL_TENSOR(args->self),
                              OCL_TENSOR(args->out),     OCL_TENSOR(args->source), OCL_VALUE(available),
                              OCL_VALUE(faults)};
  return ocl_launch(&memo->fill, exec->stream, 14, put);
}
