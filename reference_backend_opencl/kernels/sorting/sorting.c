/* sort, sort.stable, topk and kthvalue: all stable, all sorted; median, nanmedian and mode, which choose among what is
 * sorted. Searching in what is sorted is in searching.c. */
#include <math.h>

#include "kernels/core/lines.h"
#include "kernels/sorting/radix.h"
#include "kernels/sorting/select.h"

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
  int64_t lines, size, inner, skipped, kept, per_item;
} space;

typedef struct memo {
  ocl_kernel sort;       /* a CPU's */
  ocl_kernel merge;      /* and where cores sort parts of one line */
  ocl_kernel store;      /* others', where items come out of the ordering */
  ocl_ordering ordering; /* others' */
  space space;
  int64_t part; /* items that a core sorts, of one line; 0: lines are sorted whole */
  uint64_t work_bytes;
} memo;

enum {
  FEW = 128,         /* as many are inserted one by one */
  PART_LEAST = 16384 /* below, merging costs what is saved */
};

static bool is_wide(const ocl_dtype *dtype) {
  return dtype->bytes > 4;
}

/* Of sorting.cl. */
static void write_head(ocl_text *head, const memo *memo, const operands *call, const ocl_dtype *dtype) {
  ocl_text_add(head, "%s%s", is_wide(dtype) ? "" : "#define NARROW\n",
               memo->space.skipped + memo->space.kept <= FEW && !call->chosen ? "#define FEW\n" : "");
  if (call->chosen) {
    ocl_text_add(head, "#define CHOSEN %s\n%s", call->chosen, call->indices ? "" : "#define VALUES_ONLY\n");
  }
}

/* Parts that a line is sorted in: a power of two, as two are merged at a time. */
static int64_t parts_of(const graft_device *device, const space *s) {
  int64_t parts = 1;
  while (2 * parts <= (int64_t)device->compute_units && 2 * parts * PART_LEAST <= s->size) parts *= 2;
  return parts;
}

static void write_cpu_head(ocl_text *head, const memo *memo, const operands *call, const ocl_dtype *dtype) {
  ocl_head_types(head, dtype, 1, 1);
  ocl_text_add(head, "#define D %s\n#define as_key as_%s\n%s", dtype->name, is_wide(dtype) ? "ulong" : "uint",
               call->descending ? "#define DESCENDING\n" : "");
  write_head(head, memo, call, dtype);
}

/* The cores sort parts of one line, and merge them. */
static graft_status make_parts(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype,
                               int64_t parts) {
  const space *s = &memo->space;
  static const char *const files = "core/items sorting/items sorting/sorting sorting/parts";
  memo->part = ocl_ceil_divide(s->size, parts);
  memo->work_bytes = 2 * (uint64_t)s->size * (is_wide(dtype) ? 16 : 8);
  ocl_text head = {0};
  write_cpu_head(&head, memo, call, dtype);
  ocl_kernel_size(&memo->sort, parts, 1);
  ocl_kernel_size(&memo->merge, parts, 1);
  graft_status status = ocl_kernel_init(&memo->sort, device, &head, files, "sort_parts");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->merge, device, &head, files, "merge_parts");
  ocl_text_free(&head);
  if (status == GRAFT_OK) status = ocl_kernel_set(&memo->sort, 1, &(ocl_argument)OCL_VALUE(*s));
  return status == GRAFT_OK ? ocl_kernel_set(&memo->merge, 1, &(ocl_argument)OCL_VALUE(*s)) : status;
}

/* A work-item sorts lines in memory of its own. */
static graft_status make_lines(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype) {
  space *s = &memo->space;
  int64_t items = 4 * (int64_t)device->compute_units;
  const int64_t parts = parts_of(device, s);
  if (s->lines == 1 && s->kept == s->size && parts > 1) return make_parts(memo, device, call, dtype, parts);
  s->per_item = ocl_ceil_divide(s->lines, items);
  items = ocl_ceil_divide(s->lines, s->per_item);
  memo->work_bytes = 2 * (uint64_t)(s->size * items) * (is_wide(dtype) ? 16 : 8);
  ocl_text head = {0};
  write_cpu_head(&head, memo, call, dtype);
  ocl_kernel_size(&memo->sort, items, 1);
  graft_status status =
      ocl_kernel_make(&memo->sort, device, &head, "core/items sorting/items sorting/sorting", "sort_lines");
  return status == GRAFT_OK ? ocl_kernel_set(&memo->sort, 1, &(ocl_argument)OCL_VALUE(*s)) : status;
}

static graft_status make_store(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype) {
  const space *s = &memo->space;
  const size_t local = 64;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_order_head(&head, dtype, call->descending);
  write_head(&head, memo, call, dtype);
  ocl_kernel_size(&memo->store, s->lines * s->kept, local);
  graft_status status =
      ocl_kernel_make(&memo->store, device, &head, "core/items sorting/items sorting/sorting", "store_items");
  return status == GRAFT_OK ? ocl_kernel_set(&memo->store, 1, &(ocl_argument)OCL_VALUE(*s)) : status;
}

/* Work-groups sort lines. */
static graft_status make_ordering(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype) {
  const space *s = &memo->space;
  const bool few = ocl_order_keeps_few(device, dtype, s->size, s->skipped + s->kept);
  const ocl_order order = {.lines = s->lines,
                           .size = s->size,
                           .inner = s->inner,
                           .skipped = s->skipped,
                           .kept = s->kept,
                           .descending = call->descending,
                           .to_results = !call->chosen && (few || s->kept == s->size)};
  graft_status status = ocl_order_prepare(&memo->ordering, device, dtype, &order);
  memo->work_bytes = memo->ordering.work_bytes;
  return status == GRAFT_OK && !order.to_results ? make_store(memo, device, call, dtype) : status;
}

static graft_status make_kernels(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype) {
  ocl_lines lines = ocl_lines_of(device, &call->in->dl, call->in->dl.ndim ? call->dim : -1);
  if (call->whole) lines = (ocl_lines){.outer = 1, .size = ocl_elements(call->in), .inner = 1};
  if (lines.size >= INT32_MAX) return GRAFT_UNIMPLEMENTED;
  memo->space = (space){.lines = lines.outer * lines.inner,
                        .size = lines.size,
                        .inner = lines.inner,
                        .skipped = call->skipped,
                        .kept = call->kept == ALL ? lines.size : call->kept,
                        .per_item = 1};
  if (memo->space.kept == 0) return GRAFT_OK; /* nothing to do */
  return device->is_cpu ? make_lines(memo, device, call, dtype) : make_ordering(memo, device, call, dtype);
}

static graft_status prepare(void *memo, graft_device *device, const void *from) {
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype);
  if (!dtype || call->values->dl.dtype != dtype->code || dtype->class == OCL_CLASS_COMPLEX) return GRAFT_UNIMPLEMENTED;
  return make_kernels(memo, device, call, dtype);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 3 + OCL_ORDERING_KERNELS, .prepare = prepare};

/* Where indices are not wanted, the kernel is told so and given anything. */
static const graft_tensor_desc *places_of(const operands *call) {
  return call->indices ? call->indices : call->values;
}

static graft_status run_ordering(const graft_exec *exec, memo *memo, const operands *call, ocl_place work) {
  const graft_tensor_desc *places = places_of(call);
  ocl_place items = work;
  graft_status status = ocl_order_run(exec, &memo->ordering, call->in, call->values, places, work, &items);
  if (status != GRAFT_OK || memo->ordering.to_results) return status;
  const ocl_argument store[] = {OCL_TENSOR(call->values), OCL_TENSOR(places), OCL_TENSOR(call->in), OCL_PLACE(items)};
  return ocl_launch(&memo->store, exec->stream, OCL_ALL(store));
}

static graft_status run_parts(const graft_exec *exec, memo *memo, const operands *call, ocl_place work) {
  ocl_place from = work, to = {work.buffer, work.offset + memo->work_bytes / 2};
  const int64_t part = memo->part, size = memo->space.size;
  const ocl_argument sort[] = {OCL_TENSOR(call->in), OCL_PLACE(work), OCL_VALUE(part)};
  graft_status status = ocl_launch(&memo->sort, exec->stream, OCL_ALL(sort));
  for (int64_t run = part; run < size && status == GRAFT_OK; run *= 2) {
    const cl_int is_last = 2 * run >= size;
    const ocl_argument merge[] = {OCL_TENSOR(call->values),
                                  OCL_TENSOR(call->indices),
                                  OCL_TENSOR(call->in),
                                  OCL_PLACE(from),
                                  OCL_PLACE(to),
                                  OCL_VALUE(part),
                                  OCL_VALUE(run),
                                  OCL_VALUE(is_last)};
    status = ocl_launch(&memo->merge, exec->stream, OCL_ALL(merge));
    const ocl_place swap = from;
    from = to;
    to = swap;
  }
  return status;
}

static graft_status run(const graft_exec *exec, const operands *call) {
  memo *memo;
  ocl_place work = ocl_place_of(call->values);
  if (!call->values || (!call->indices && !call->whole)) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status != GRAFT_OK || memo->space.kept == 0) return status;
  if (memo->work_bytes > 0) status = ocl_workspace(exec, memo->work_bytes, &work);
  if (status != GRAFT_OK) return status;
  if (!memo->sort.handle) return run_ordering(exec, memo, call, work);
  if (memo->part) return run_parts(exec, memo, call, work);
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

static graft_status median(const graft_exec *exec, const graft_tensor_desc *in, const graft_tensor_desc *out,
                           bool passes_nan) {
  if (ocl_select_serves(exec->device, in)) {
    return ocl_select_run(exec, &(ocl_selection){.in = in, .out = out, .passes_nan = passes_nan});
  }
  return run_median(
      exec,
      &(operands){
          .in = in, .values = out, .kept = 1, .whole = true, .chosen = passes_nan ? "nanmedian_of" : "median_of"});
}

graft_status ocl_op_median(const graft_exec *exec, const graft_args_median *args) {
  return median(exec, args->self, args->out, false);
}

graft_status ocl_op_nanmedian(const graft_exec *exec, const graft_args_nanmedian *args) {
  return median(exec, args->self, args->out, true);
}

graft_status ocl_op_mode(const graft_exec *exec, const graft_args_mode *args) {
  return run(exec, &(operands){.in = args->self,
                               .values = args->values,
                               .indices = args->indices,
                               .dim = args->dim,
                               .kept = 1,
                               .chosen = "mode_of"});
}
