/* _unique2, unique_dim and unique_consecutive: what is there once, of elements or of slices. */
#include "kernels/core/lines.h"
#include "kernels/indexing/search.h"
#include "kernels/sorting/radix.h"

/* INVERSE and COUNTS, as unique.cl has them. */
enum { INVERSE = 1, COUNTS = 2 };

typedef struct operands {
  const graft_tensor_desc *in, *inverse;
  graft_output *values, *counts;
  int64_t dim;    /* of slices; ELEMENTS: of elements, in a line */
  bool ordered;   /* equal ones are brought side by side first */
  int64_t wanted; /* INVERSE, COUNTS */
} operands;

enum { ELEMENTS = -1 };

/* As unique.cl has it. */
typedef struct space {
  int64_t n, inner, width, chunk, chunks;
  int64_t run, step;
} space;

typedef struct memo {
  ocl_kernel sort, merge; /* where they are ordered */
  ocl_kernel count, add_up, write;
  ocl_kernel copy;       /* of slices */
  ocl_ordering ordering; /* in place of sort and merge */
  space space;
  bool by_groups;   /* the ordering serves */
  int64_t per_item; /* of copy */
  uint64_t item_bytes;
} memo;

enum { RUN = 32, LONG_RUN = 1024, CHUNK_BYTES = 16, GROUP = 256, GROUPS_PER_UNIT = 8, TILES = 8 };

static bool is_of_slices(const memo *memo) {
  return memo->space.width != 1;
}

static graft_status make_kernels(memo *memo, graft_device *device, const ocl_dtype *dtype, bool ordered) {
  const bool runs = ordered && !memo->by_groups;
  const struct {
    ocl_kernel *kernel;
    const char *entry;
    bool wanted;
  } rows[] = {{&memo->sort, "sort_runs", runs},     {&memo->merge, "merge_runs", runs},
              {&memo->count, "count_groups", true}, {&memo->add_up, "add_up_chunks", true},
              {&memo->write, "write_groups", true}, {&memo->copy, "copy_slices", is_of_slices(memo)}};
  const size_t local = device->is_cpu ? 1 : GROUP;
  const int64_t chunks = memo->space.chunks * (int64_t)local; /* a work-group has one */
  const ocl_argument last = OCL_VALUE(memo->space);
  graft_status status = GRAFT_OK;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  if (memo->by_groups)
    ocl_order_head(&head, dtype, false);
  else
    ocl_text_add(&head, "#define D %s\n#define as_key as_%s\n", dtype->name, dtype->bytes <= 4 ? "uint" : "ulong");
  ocl_text_add(&head, "%s%s", dtype->bytes <= 4 ? "#define NARROW\n" : "", ordered ? "#define ORDERED\n" : "");
  for (size_t i = 0; i < sizeof rows / sizeof *rows && status == GRAFT_OK; i++) {
    if (!rows[i].wanted) continue;
    status = ocl_kernel_init(rows[i].kernel, device, &head, "core/items sorting/items sorting/unique", rows[i].entry);
    if (status == GRAFT_OK) status = ocl_kernel_set(rows[i].kernel, 1, &last);
  }
  ocl_text_free(&head);
  ocl_kernel_size(&memo->sort, ocl_ceil_divide(memo->space.n, memo->space.run), local);
  ocl_kernel_size(&memo->merge, ocl_ceil_divide(memo->space.n, memo->space.step), local);
  ocl_kernel_size(&memo->count, chunks, local);
  ocl_kernel_size(&memo->add_up, (int64_t)local, local);
  ocl_kernel_size(&memo->write, chunks, local);
  ocl_kernel_size(&memo->copy, 1, local);
  return status;
}

/* A CPU's few work-items sort long runs of elements, by digits; slices are compared, wherever they are. A step divides
 * two runs. */
static void plan_order(memo *memo, const graft_device *device, const ocl_dtype *dtype) {
  space *s = &memo->space;
  bool by_digits = device->is_cpu && s->width == 1;
  s->run = by_digits ? ocl_round_up(ocl_ceil_divide(s->n, 2 * (int64_t)device->compute_units), LONG_RUN) : RUN;
  s->step = by_digits ? 2 * LONG_RUN : 2 * RUN;
  memo->item_bytes = dtype->bytes <= 4 ? 8 : 16;
}

/* Slices for a work-item of a CPU, and for a work-group of a GPU, whose work-items go over them side by side: some
 * times, or once where each is a slice of many elements. */
static int64_t chunk_of(const graft_device *device, const space *s) {
  if (device->is_cpu) return ocl_larger(s->n / 4096, 4096 / s->width) + 1;
  const int64_t each = ocl_ceil_divide(s->n, GROUPS_PER_UNIT * (int64_t)device->compute_units);
  return ocl_round_up(ocl_larger(each, s->width == 1 ? TILES * GROUP : GROUP), GROUP);
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype);
  if (!dtype || dtype->class == OCL_CLASS_COMPLEX) return GRAFT_UNIMPLEMENTED;
  ocl_lines lines = {.outer = 1, .size = ocl_elements(call->in), .inner = 1};
  if (call->dim != ELEMENTS) lines = ocl_lines_of(device, &call->in->dl, call->dim);
  space *s = &memo->space;
  *s = (space){.n = lines.size, .inner = lines.inner, .width = lines.outer * lines.inner};
  if (s->n >= INT32_MAX) return GRAFT_UNIMPLEMENTED;
  plan_order(memo, device, dtype);
  s->chunk = chunk_of(device, s);
  s->chunks = ocl_ceil_divide(s->n, s->chunk);
  memo->per_item = device->is_cpu ? 4096 : 1;
  memo->by_groups = call->ordered && !device->is_cpu && s->width == 1;
  graft_status status = make_kernels(memo, device, dtype, call->ordered);
  if (status != GRAFT_OK || !memo->by_groups) return status;
  const ocl_order order = {.lines = 1, .size = s->n, .inner = 1, .kept = s->n};
  return ocl_order_prepare(&memo->ordering, device, dtype, &order);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 6 + OCL_ORDERING_KERNELS, .prepare = prepare};

/* The workspace: items, the half that merging left them in first, and the other; chunks; places of slices. */
typedef struct room {
  ocl_place items, other, chunks, places;
} room;

static graft_status take_room(const graft_exec *exec, const memo *memo, const operands *call, room *room) {
  const space *s = &memo->space;
  uint64_t items = call->ordered ? (uint64_t)s->n * memo->item_bytes : 0,
           chunks = (uint64_t)(s->chunks + 1) * CHUNK_BYTES;
  uint64_t places = is_of_slices(memo) ? (uint64_t)s->n * sizeof(int64_t) : 0;
  ocl_place all;
  /* Chunks are counted when the ordering is done with the rest of its memory. */
  const int64_t bytes = (int64_t)(2 * items + chunks + places);
  graft_status status = ocl_workspace(exec, (uint64_t)ocl_larger(bytes, (int64_t)memo->ordering.work_bytes), &all);
  if (status != GRAFT_OK) return status;
  room->items = all;
  room->other = (ocl_place){all.buffer, all.offset + items};
  room->chunks = (ocl_place){all.buffer, all.offset + 2 * items};
  room->places = (ocl_place){all.buffer, room->chunks.offset + chunks};
  return GRAFT_OK;
}

static graft_status bring_in_order(const graft_exec *exec, memo *memo, const operands *call, room *room) {
  if (memo->by_groups) {
    return ocl_order_run(exec, &memo->ordering, call->in, NULL, NULL, room->items, &room->items);
  }
  const ocl_argument sort[] = {OCL_PLACE(room->items), OCL_PLACE(room->other), OCL_TENSOR(call->in)};
  graft_status status = ocl_launch(&memo->sort, exec->stream, OCL_ALL(sort));
  for (int64_t run = memo->space.run; run < memo->space.n && status == GRAFT_OK; run *= 2) {
    const ocl_argument merge[] = {OCL_BUFFER(room->other.buffer), OCL_VALUE(room->other.offset),
                                  OCL_VALUE(room->items.offset), OCL_TENSOR(call->in), OCL_VALUE(run)};
    status = ocl_launch(&memo->merge, exec->stream, OCL_ALL(merge));
    ocl_place other = room->items;
    room->items = room->other;
    room->other = other;
  }
  return status;
}

/* How many groups there are; waited for. */
static graft_status count_groups(const graft_exec *exec, memo *memo, const operands *call, const room *room,
                                 int64_t *groups) {
  const ocl_argument count[] = {OCL_PLACE(room->chunks), OCL_PLACE(room->items), OCL_TENSOR(call->in)};
  const ocl_argument add_up[] = {OCL_PLACE(room->chunks)};
  graft_status status = ocl_launch(&memo->count, exec->stream, OCL_ALL(count));
  if (status == GRAFT_OK) status = ocl_launch(&memo->add_up, exec->stream, OCL_ALL(add_up));
  const ocl_place at = {room->chunks.buffer, room->chunks.offset + (uint64_t)memo->space.chunks * CHUNK_BYTES};
  return status == GRAFT_OK ? ocl_read_total(exec->stream, at, groups) : status;
}

/* The results whose shape was not known. */
static graft_status say_shapes(const graft_exec *exec, const operands *call, int64_t groups,
                               const graft_tensor_desc **values, const graft_tensor_desc **counts) {
  const graft_host *host = exec->device->plugin->host;
  const graft_dl_tensor *in = &call->in->dl;
  const bool slices = call->dim != ELEMENTS;
  const int64_t counted = call->wanted & COUNTS ? groups : 0;
  int64_t shape[OCL_DIMS_MAX] = {groups};
  for (int64_t d = 0; slices && d < in->ndim; d++) shape[d] = d == call->dim ? groups : in->shape[d];
  graft_status status = host->output_shape(exec, call->values, slices ? in->ndim : 1, shape, values);
  return status == GRAFT_OK ? host->output_shape(exec, call->counts, 1, &counted, counts) : status;
}

static graft_status write_groups(const graft_exec *exec, memo *memo, const operands *call, const room *room,
                                 int64_t groups, const graft_tensor_desc *values, const graft_tensor_desc *counts) {
  /* What is not wanted is not written. */
  const graft_tensor_desc *inverse = call->wanted & INVERSE ? call->inverse : values;
  const graft_tensor_desc *counted = call->wanted & COUNTS ? counts : values;
  const ocl_argument write[] = {OCL_PLACE(room->chunks), OCL_PLACE(room->items), OCL_TENSOR(call->in),
                                OCL_TENSOR(values),      OCL_TENSOR(inverse),    OCL_TENSOR(counted),
                                OCL_PLACE(room->places), OCL_VALUE(call->wanted)};
  graft_status status = ocl_launch(&memo->write, exec->stream, OCL_ALL(write));
  if (status != GRAFT_OK || !is_of_slices(memo)) return status;
  int64_t items = ocl_ceil_divide(groups * memo->space.width, memo->per_item);
  size_t work_groups = (size_t)ocl_ceil_divide(items, (int64_t)memo->copy.local[0]);
  const ocl_argument copy[] = {OCL_TENSOR(values), OCL_TENSOR(call->in), OCL_PLACE(room->places), OCL_VALUE(groups),
                               OCL_VALUE(memo->per_item)};
  return ocl_launch_groups(&memo->copy, exec->stream, work_groups, OCL_ALL(copy));
}

static graft_status run(const graft_exec *exec, const operands *call) {
  const graft_tensor_desc *values, *counts;
  memo *memo;
  room room;
  int64_t groups = 0;
  if (!call->values || !call->inverse || !call->counts) return GRAFT_UNIMPLEMENTED;
  if (!ocl_dtype_of(exec->device, call->in->dl.dtype) || call->in->dl.ndim > OCL_DIMS_MAX) return GRAFT_UNIMPLEMENTED;
  if (ocl_elements(call->in) == 0) return say_shapes(exec, call, 0, &values, &counts);
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status == GRAFT_OK) status = take_room(exec, memo, call, &room);
  if (status == GRAFT_OK && call->ordered) status = bring_in_order(exec, memo, call, &room);
  if (status == GRAFT_OK) status = count_groups(exec, memo, call, &room, &groups);
  if (status == GRAFT_OK) status = say_shapes(exec, call, groups, &values, &counts);
  return status == GRAFT_OK ? write_groups(exec, memo, call, &room, groups, values, counts) : status;
}

/* ---- Slots ---- */

static int64_t wants(bool inverse, bool counts) {
  return (inverse ? INVERSE : 0) | (counts ? COUNTS : 0);
}

/* In order whatever `sorted` says, as PyTorch has it. */
graft_status ocl_op_unique2(const graft_exec *exec, const graft_args_unique2 *args) {
  return run(exec, &(operands){.in = args->self,
                               .inverse = args->out1,
                               .values = args->out0,
                               .counts = args->out2,
                               .dim = ELEMENTS,
                               .ordered = true,
                               .wanted = wants(args->return_inverse, args->return_counts)});
}

/* Of slices all results always come. */
graft_status ocl_op_unique_dim(const graft_exec *exec, const graft_args_unique_dim *args) {
  return run(exec, &(operands){.in = args->self,
                               .inverse = args->out1,
                               .values = args->out0,
                               .counts = args->out2,
                               .dim = args->dim,
                               .ordered = true,
                               .wanted = INVERSE | COUNTS});
}

graft_status ocl_op_unique_consecutive(const graft_exec *exec, const graft_args_unique_consecutive *args) {
  return run(exec,
             &(operands){.in = args->self,
                         .inverse = args->out1,
                         .values = args->out0,
                         .counts = args->out2,
                         .dim = args->dim ? *args->dim : ELEMENTS,
                         .wanted = args->dim ? INVERSE | COUNTS : wants(args->return_inverse, args->return_counts)});
}
