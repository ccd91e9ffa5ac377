/* sort, sort.stable and topk: all stable, all sorted. Searching in what is sorted is in searching.c. */
#include <stdlib.h>

#include "kernels/families.h"

bool ocl_sorting_caps(uint32_t op_id, ocl_op_caps *caps) {
  if (op_id != GRAFT_OP_SORT && op_id != GRAFT_OP_SORT_STABLE && op_id != GRAFT_OP_TOPK) return false;
  caps->inputs = caps->outputs = OCL_FLOATS | OCL_INTS | OCL_BOOLS;
  caps->flags = GRAFT_CAP_UNALIGNED;
  return true;
}

typedef struct call {
  const graft_tensor_desc *in, *values, *indices;
  int64_t dim, kept; /* kept -1: all */
  bool descending;
} call;

/* As sorting.cl has it. */
typedef struct space {
  int64_t lines, size, inner, kept, padded, per_item;
} space;

typedef struct memo {
  ocl_kernel sort;              /* a CPU's */
  ocl_kernel load, step, store; /* others' */
  space space;
  uint64_t work_bytes;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->sort);
  ocl_kernel_destroy(&memo->load);
  ocl_kernel_destroy(&memo->step);
  ocl_kernel_destroy(&memo->store);
  free(memo);
}

enum { FEW = 128 }; /* as many are inserted one by one */

static void write_head(ocl_text *head, const memo *memo, const call *call, const ocl_dtype *dtype, size_t local,
                       bool narrow) {
  ocl_head_types(head, dtype, 1, local);
  ocl_text_add(head, "#define D %s\n#define as_key as_%s\n%s%s%s", dtype->name, narrow ? "uint" : "ulong",
               narrow ? "#define NARROW\n" : "", call->descending ? "#define DESCENDING\n" : "",
               memo->space.kept <= FEW ? "#define FEW\n" : "");
}

static void set_size(ocl_kernel *kernel, int64_t items, size_t local) {
  kernel->local[0] = local;
  kernel->global[0] = ((size_t)items + local - 1) / local * local;
}

static graft_status prepare(memo *memo, graft_device *device, const call *call, const ocl_dtype *dtype) {
  size_t local = device->is_cpu ? 1 : 64;
  bool narrow = dtype->bytes <= 4;
  uint64_t item_bytes = narrow ? 8 : 16;
  ocl_lines lines = ocl_lines_of(device, &call->in->dl, call->in->dl.ndim ? call->dim : -1);
  if (lines.size >= INT32_MAX) return GRAFT_UNIMPLEMENTED;
  space *s = &memo->space;
  *s = (space){lines.outer * lines.inner, lines.size, lines.inner, call->kept < 0 ? lines.size : call->kept, 1, 1};
  while (s->padded < s->size) s->padded *= 2;
  ocl_text head = {0};
  write_head(&head, memo, call, dtype, local, narrow);
  graft_status status = head.failed ? GRAFT_OUT_OF_MEMORY : GRAFT_OK;
  if (device->is_cpu) {
    int64_t items = 4 * (int64_t)device->compute_units;
    s->per_item = (s->lines + items - 1) / items;
    items = (s->lines + s->per_item - 1) / s->per_item;
    memo->work_bytes = 2 * (uint64_t)(s->size * items) * item_bytes;
    if (status == GRAFT_OK) status = ocl_kernel_init(&memo->sort, device, head.items, "sorting/sorting", "sort_lines");
    if (status == GRAFT_OK) status = ocl_kernel_constant(&memo->sort, 8, sizeof *s, s);
    set_size(&memo->sort, items, 1);
  } else {
    memo->work_bytes = (uint64_t)(s->lines * s->padded) * item_bytes;
    if (status == GRAFT_OK) status = ocl_kernel_init(&memo->load, device, head.items, "sorting/sorting", "load_items");
    if (status == GRAFT_OK) status = ocl_kernel_init(&memo->step, device, head.items, "sorting/sorting", "exchange");
    if (status == GRAFT_OK)
      status = ocl_kernel_init(&memo->store, device, head.items, "sorting/sorting", "store_items");
    if (status == GRAFT_OK) status = ocl_kernel_constant(&memo->load, 4, sizeof *s, s);
    if (status == GRAFT_OK) status = ocl_kernel_constant(&memo->step, 4, sizeof *s, s);
    if (status == GRAFT_OK) status = ocl_kernel_constant(&memo->store, 8, sizeof *s, s);
    set_size(&memo->load, s->lines * s->padded, local);
    set_size(&memo->step, s->lines * s->padded / 2 > 0 ? s->lines * s->padded / 2 : 1, local);
    set_size(&memo->store, s->lines * s->kept, local);
  }
  ocl_text_free(&head);
  return status;
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *pointer, void **out) {
  const call *call = pointer;
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, call->in->dl.dtype);
  (void)args;
  if (!dtype || call->values->dl.dtype != dtype->code || dtype->class == OCL_CLASS_COMPLEX) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  graft_status status = prepare(memo, exec->device, call, dtype);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

static graft_status run_network(const graft_exec *exec, memo *memo, const call *call, graft_buffer *work, uint64_t at) {
  const ocl_argument load[] = {OCL_BUFFER(work), OCL_VALUE(at), OCL_TENSOR(call->in)};
  graft_status status = ocl_launch(&memo->load, exec->stream, 4, load);
  for (int64_t run = 2; run <= memo->space.padded; run *= 2) {
    for (int64_t distance = run / 2; distance > 0 && status == GRAFT_OK; distance /= 2) {
      const ocl_argument step[] = {OCL_BUFFER(work), OCL_VALUE(at), OCL_VALUE(run), OCL_VALUE(distance)};
      status = ocl_launch(&memo->step, exec->stream, 4, step);
    }
  }
  if (status != GRAFT_OK) return status;
  const ocl_argument store[] = {OCL_TENSOR(call->values), OCL_TENSOR(call->indices), OCL_TENSOR(call->in),
                                OCL_BUFFER(work), OCL_VALUE(at)};
  return ocl_launch(&memo->store, exec->stream, 8, store);
}

static graft_status run(const graft_exec *exec, const call *call) {
  void *pointer;
  if (!call->values || !call->indices) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, NULL, call, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  graft_buffer *work;
  uint64_t at;
  if (memo->space.kept == 0) return GRAFT_OK;
  status = exec->device->plugin->host->workspace(exec, memo->work_bytes, 0, &work, &at);
  if (status != GRAFT_OK) return status;
  if (!memo->sort.handle) return run_network(exec, memo, call, work, at);
  const ocl_argument sort[] = {OCL_TENSOR(call->values), OCL_TENSOR(call->indices), OCL_TENSOR(call->in),
                               OCL_BUFFER(work), OCL_VALUE(at)};
  return ocl_launch(&memo->sort, exec->stream, 8, sort);
}

/* ---- Slots ---- */

graft_status ocl_op_sort(const graft_exec *exec, const graft_args_sort *args) {
  call call = {args->self, args->values, args->indices, args->dim, -1, args->descending};
  return run(exec, &call);
}

graft_status ocl_op_sort_stable(const graft_exec *exec, const graft_args_sort_stable *args) {
  call call = {args->self, args->values, args->indices, args->dim, -1, args->descending};
  return run(exec, &call);
}

graft_status ocl_op_topk(const graft_exec *exec, const graft_args_topk *args) {
  int64_t kept = args->self->dl.ndim ? args->k : 1;
  call call = {args->self, args->values, args->indices, args->dim, kept, args->largest};
  return run(exec, &call);
}
