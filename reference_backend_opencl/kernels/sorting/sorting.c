/* sort, sort.stable, topk and kthvalue: all stable, all sorted; median, nanmedian and mode, which choose among what is
 * sorted. Searching in what is sorted is in searching.c. */
#include <math.h>

#include "kernels/core/lines.h"

enum { ALL = -1 };

typedef struct operands {
  const graft_tensor_desc *in, *values, *indices; /* indices may be NULL beside `chosen` */
  int64_t dim, kept;                              /* kept: so many of each line, or ALL */
  int64_t skipped;                                /* so many before these are not */
  bool descending, whole;                         /* whole: all of it is one line */
  const char *chosen;                             /* the function of sorting.cl that says which one is kept, or NULL */
} operands;

/* As sorting.cl has it. */
typedef struct space {
  int64_t lines, size, inner, skipped, kept, padded, per_item;
} space;

typedef struct memo {
  ocl_kernel sort;              /* a CPU's */
  ocl_kernel load, step, store; /* others' */
  space space;
  uint64_t work_bytes;
} memo;

enum { FEW = 128 }; /* as many are inserted one by one */

static void write_head(ocl_text *head, const memo *memo, const operands *call, const ocl_dtype *dtype, size_t local,
                       bool narrow) {
  ocl_head_types(head, dtype, 1, local);
  ocl_text_add(head, "#define D %s\n#define as_key as_%s\n%s%s%s", dtype->name, narrow ? "uint" : "ulong",
               narrow ? "#define NARROW\n" : "", call->descending ? "#define DESCENDING\n" : "",
               memo->space.skipped + memo->space.kept <= FEW && !call->chosen ? "#define FEW\n" : "");
  if (call->chosen) {
    ocl_text_add(head, "#define CHOSEN %s\n%s", call->chosen, call->indices ? "" : "#define VALUES_ONLY\n");
  }
}

static graft_status make_kernels(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype) {
  size_t local = device->is_cpu ? 1 : 64;
  bool narrow = dtype->bytes <= 4;
  uint64_t item_bytes = narrow ? 8 : 16;
  ocl_lines lines = ocl_lines_of(device, &call->in->dl, call->in->dl.ndim ? call->dim : -1);
  if (call->whole) lines = (ocl_lines){.outer = 1, .size = ocl_elements(call->in), .inner = 1};
  if (lines.size >= INT32_MAX) return GRAFT_UNIMPLEMENTED;
  space *s = &memo->space;
  *s = (space){.lines = lines.outer * lines.inner,
               .size = lines.size,
               .inner = lines.inner,
               .skipped = call->skipped,
               .kept = call->kept == ALL ? lines.size : call->kept,
               .padded = 1,
               .per_item = 1};
  while (s->padded < s->size) s->padded *= 2;
  ocl_text head = {0};
  write_head(&head, memo, call, dtype, local, narrow);
  graft_status status = GRAFT_OK;
  if (device->is_cpu) {
    int64_t items = 4 * (int64_t)device->compute_units;
    s->per_item = ocl_ceil_divide(s->lines, items);
    items = ocl_ceil_divide(s->lines, s->per_item);
    memo->work_bytes = 2 * (uint64_t)(s->size * items) * item_bytes;
    status = ocl_kernel_init(&memo->sort, device, &head, "core/items sorting/items sorting/sorting", "sort_lines");
    if (status == GRAFT_OK) status = ocl_kernel_set(&memo->sort, 1, &(ocl_argument)OCL_VALUE(*s));
    ocl_kernel_size(&memo->sort, items, 1);
  } else {
    memo->work_bytes = (uint64_t)(s->lines * s->padded) * item_bytes;
    status = ocl_kernel_init(&memo->load, device, &head, "core/items sorting/items sorting/sorting", "load_items");
    if (status == GRAFT_OK)
      status = ocl_kernel_init(&memo->step, device, &head, "core/items sorting/items sorting/sorting", "exchange");
    if (status == GRAFT_OK)
      status = ocl_kernel_init(&memo->store, device, &head, "core/items sorting/items sorting/sorting", "store_items");
    if (status == GRAFT_OK) status = ocl_kernel_set(&memo->load, 1, &(ocl_argument)OCL_VALUE(*s));
    if (status == GRAFT_OK) status = ocl_kernel_set(&memo->step, 1, &(ocl_argument)OCL_VALUE(*s));
    if (status == GRAFT_OK) status = ocl_kernel_set(&memo->store, 1, &(ocl_argument)OCL_VALUE(*s));
    ocl_kernel_size(&memo->load, s->lines * s->padded, local);
    ocl_kernel_size(&memo->step, s->lines * s->padded / 2 > 0 ? s->lines * s->padded / 2 : 1, local);
    ocl_kernel_size(&memo->store, s->lines * s->kept, local);
  }
  ocl_text_free(&head);
  return status;
}

static graft_status prepare(void *memo, graft_device *device, const void *from) {
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype);
  if (!dtype || call->values->dl.dtype != dtype->code || dtype->class == OCL_CLASS_COMPLEX) return GRAFT_UNIMPLEMENTED;
  return make_kernels(memo, device, call, dtype);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 4, .prepare = prepare};

/* Where indices are not wanted, the kernel is told so and given anything. */
static const graft_tensor_desc *places_of(const operands *call) {
  return call->indices ? call->indices : call->values;
}

static graft_status run_network(const graft_exec *exec, memo *memo, const operands *call, ocl_place work) {
  const graft_tensor_desc *places = places_of(call);
  const ocl_argument load[] = {OCL_PLACE(work), OCL_TENSOR(call->in)};
  graft_status status = ocl_launch(&memo->load, exec->stream, OCL_ALL(load));
  for (int64_t run = 2; run <= memo->space.padded; run *= 2) {
    for (int64_t distance = run / 2; distance > 0 && status == GRAFT_OK; distance /= 2) {
      const ocl_argument step[] = {OCL_PLACE(work), OCL_VALUE(run), OCL_VALUE(distance)};
      status = ocl_launch(&memo->step, exec->stream, OCL_ALL(step));
    }
  }
  if (status != GRAFT_OK) return status;
  const ocl_argument store[] = {OCL_TENSOR(call->values), OCL_TENSOR(places), OCL_TENSOR(call->in), OCL_PLACE(work)};
  return ocl_launch(&memo->store, exec->stream, OCL_ALL(store));
}

static graft_status run(const graft_exec *exec, const operands *call) {
  memo *memo;
  ocl_place work;
  if (!call->values || (!call->indices && !call->whole)) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status != GRAFT_OK || memo->space.kept == 0) return status;
  status = ocl_workspace(exec, memo->work_bytes, &work);
  if (status != GRAFT_OK) return status;
  if (!memo->sort.handle) return run_network(exec, memo, call, work);
  const graft_tensor_desc *places = places_of(call);
  const ocl_argument sort[] = {OCL_TENSOR(call->values), OCL_TENSOR(places), OCL_TENSOR(call->in), OCL_PLACE(work)};
  return ocl_launch(&memo->sort, exec->stream, OCL_ALL(sort));
}

/* ---- Slots ---- */

graft_status ocl_op_sort(const graft_exec *exec, const graft_args_sort *args) {
  return run(exec, &(operands){.in = args->self,
                               .values = args->values,
                               .indices = args->indices,
                               .dim = args->dim,
                               .kept = ALL,
                               .descending = args->descending});
}

graft_status ocl_op_sort_stable(const graft_exec *exec, const graft_args_sort_stable *args) {
  return run(exec, &(operands){.in = args->self,
                               .values = args->values,
                               .indices = args->indices,
                               .dim = args->dim,
                               .kept = ALL,
                               .descending = args->descending});
}

graft_status ocl_op_topk(const graft_exec *exec, const graft_args_topk *args) {
  return run(exec, &(operands){.in = args->self,
                               .values = args->values,
                               .indices = args->indices,
                               .dim = args->dim,
                               .kept = args->self->dl.ndim ? args->k : 1,
                               .descending = args->largest});
}

graft_status ocl_op_kthvalue(const graft_exec *exec, const graft_args_kthvalue *args) {
  return run(exec, &(operands){.in = args->self,
                               .values = args->values,
                               .indices = args->indices,
                               .dim = args->dim,
                               .kept = 1,
                               .skipped = args->k - 1});
}

/* The median of nothing is a NaN, which integers lack. */
static graft_status run_median(const graft_exec *exec, const operands *call) {
  const graft_dl_tensor *out = &call->values->dl;
  if (ocl_elements(call->in) > 0) return run(exec, call);
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, out->dtype);
  const ocl_number nan = {.re = NAN};
  uint64_t element = 0;
  if (!dtype || dtype->class != OCL_CLASS_FLOAT) return GRAFT_UNIMPLEMENTED;
  ocl_number_store(&nan, dtype, &element);
  return ocl_memory_api.fill(exec->stream, out->data, out->byte_offset, dtype->bytes, &element, dtype->bytes);
}

graft_status ocl_op_median(const graft_exec *exec, const graft_args_median *args) {
  return run_median(
      exec, &(operands){.in = args->self, .values = args->out, .kept = 1, .whole = true, .chosen = "median_of"});
}

graft_status ocl_op_nanmedian(const graft_exec *exec, const graft_args_nanmedian *args) {
  return run_median(
      exec, &(operands){.in = args->self, .values = args->out, .kept = 1, .whole = true, .chosen = "nanmedian_of"});
}

graft_status ocl_op_mode(const graft_exec *exec, const graft_args_mode *args) {
  return run(exec, &(operands){.in = args->self,
                               .values = args->values,
                               .indices = args->indices,
                               .dim = args->dim,
                               .kept = 1,
                               .chosen = "mode_of"});
}
