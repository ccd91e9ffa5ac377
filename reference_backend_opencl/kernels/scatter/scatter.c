/* Scatters of all kinds, by one kernel (see scatter.cl and indexed.h), or of many elements by sorted places (sorted.c):
 * the output begins as a copy of what is scattered into. */
#include <math.h>
#include <string.h>

#include "kernels/scatter/scatter.h"

typedef struct memo {
  ocl_kernel first, scatter, widen, narrow; /* `first` makes what is replaced count as nothing */
  ocl_sorted sorted;                        /* instead of these */
  bool is_sorted, in_lines, replaces, is_wide;
  const ocl_dtype *target;
  int64_t elements, chunk;
} memo;

/* ---- The index space ---- */

void ocl_scatter_split(const ocl_indexed *call, ocl_scatter_spaces *spaces) {
  *spaces = (ocl_scatter_spaces){.scans = 1};
  spaces->free.operands = spaces->scan.operands = OCL_INDEX + call->indices;
  for (int d = call->rank - 1; d >= 0; d--) {
    int64_t strides[OCL_OPERANDS_MAX];
    for (int k = 0; k < spaces->free.operands; k++) strides[k] = call->stride[k][d];
    bool is_free = strides[OCL_PICKED] != 0;
    ocl_geometry_push_outer(is_free ? &spaces->free : &spaces->scan, call->size[d], strides);
    if (!is_free) spaces->scans *= call->size[d];
  }
  ocl_geometry_collapse(&spaces->free);
  ocl_geometry_collapse(&spaces->scan);
  spaces->rows = true;
  for (int k = 0; k < call->indices; k++) spaces->rows = spaces->rows && spaces->free.stride[OCL_INDEX + k][0] == 0;
  spaces->contiguous =
      spaces->free.stride[OCL_PICKED][0] == 1 && (spaces->free.stride[OCL_PLAIN][0] == 1 || spaces->free.size[0] == 1);
  if (spaces->free.size[0] == 1) spaces->rows = spaces->rows && spaces->free.rank == 1;
}

/* How the work is shared out; the numbers that end the kernel's struct. */
static int64_t cut(const graft_device *device, const ocl_indexed *call, const ocl_scatter_spaces *spaces, int64_t vec,
                   int64_t numbers[7]) {
  int64_t size = spaces->free.size[0], rows = 1, range = 1;
  int64_t items = device->is_cpu ? 2 * (int64_t)device->compute_units : 256 * (int64_t)device->compute_units;
  for (int d = 1; d < spaces->free.rank; d++) rows *= spaces->free.size[d];
  for (int k = 0; k < call->indices; k++) range *= call->bound[k];
  int64_t width = device->is_cpu ? 4096 : vec;
  if (device->is_cpu && !spaces->rows) {
    /* A cache line of f32: narrower ones would go to and fro between cores. And what a processor still reads ahead of
     * where lines are apart, where that leaves each core one. */
    enum { NARROWEST = 16, READ_AHEAD = 32, WIDEST = 1024 };
    const int64_t share = ocl_ceil_divide(size * rows, items);
    const int64_t narrowest = size / READ_AHEAD * rows >= (int64_t)device->compute_units ? READ_AHEAD : NARROWEST;
    const bool along_memory = spaces->free.stride[OCL_PICKED][0] == 1; /* else a scan each */
    width = !along_memory ? 1 : share > WIDEST ? WIDEST : share < narrowest ? narrowest : share;
  }
  if (width > size) width = size;
  int64_t per_row = ocl_ceil_divide(size, width), units = per_row * rows, parts = 1;
  const bool balanced = device->is_cpu && units > 0 && units % (int64_t)device->compute_units == 0; /* one each, say */
  if (units < items && !balanced && spaces->scans > 64) {
    parts = ocl_ceil_divide(items, units);
    if (parts > range) parts = range > 0 ? range : 1;
    if (device->is_cpu && parts > 4 * items) parts = 4 * items;
  }
  int64_t per_item = device->is_cpu && units > items ? ocl_ceil_divide(units, 4 * items) : 1;
  int64_t values[7] = {width,        per_row, units, per_item, parts, ocl_ceil_divide(range > 0 ? range : 1, parts),
                       spaces->scans};
  memcpy(numbers, values, sizeof values);
  return ocl_ceil_divide(units, per_item) * parts;
}

/* ---- Kernels ---- */

static const char *combination(ocl_scatter_mode mode) {
  static const char *const texts[] = {
      [OCL_SCATTER_SET] = "(b)",
      [OCL_SCATTER_ADD] = "ADD(a, b)",
      [OCL_SCATTER_MULTIPLY] = "MUL(a, b)",
      [OCL_SCATTER_MAXIMUM] = "MAXIMUM(a, b)",
      [OCL_SCATTER_MINIMUM] = "MINIMUM(a, b)",
  };
  return texts[mode];
}

void ocl_scatter_head(ocl_text *head, const ocl_scatter *call, const ocl_scatter_types *types, bool sets) {
  ocl_text_add(head, "#define D_TARGET %s\n#define D_SOURCE %s\n#define COMBINE(a, b) %s\n%s%s", types->target->name,
               types->source->name, combination(sets ? OCL_SCATTER_SET : call->mode),
               call->value || sets ? "#define IS_VALUE\n" : "", call->alpha && !sets ? "#define IS_SCALED\n" : "");
  ocl_indexed_head(head, &call->indexed);
}

static graft_status make_scatter(ocl_kernel *kernel, const memo *memo, graft_device *device, const ocl_scatter *call,
                                 const ocl_dtype *source, const ocl_scatter_spaces *spaces, bool only_sets) {
  const ocl_indexed *indexed = &call->indexed;
  size_t local = device->is_cpu ? 1 : 64;
  bool vectors = spaces->rows && spaces->contiguous && memo->target->class != OCL_CLASS_COMPLEX;
  unsigned vec = vectors ? device->vector_width : 1;
  ocl_text head = {0};
  ocl_head_types(&head, memo->target, vec, local);
  ocl_text_add(&head, "#define FREE %d\n#define SCAN %d\n%s", spaces->free.rank, spaces->scan.rank,
               spaces->rows ? "#define ROWS\n" : "");
  ocl_scatter_head(&head, call, &(ocl_scatter_types){memo->target, source}, only_sets);
  graft_status status = ocl_kernel_make(kernel, device, &head, "scatter/joins scatter/scatter", "scatter");
  if (status != GRAFT_OK) return status;
  int64_t space[2 * OCL_GEOMETRY_NUMBERS + 2 * OCL_INDICES_MAX + 8];
  int n = ocl_geometry_numbers(&spaces->free, space);
  n += ocl_geometry_numbers(&spaces->scan, space + n);
  for (int k = 0; k < indexed->indices; k++) space[n++] = indexed->bound[k];
  for (int k = 0; k < indexed->indices; k++) space[n++] = indexed->step[k];
  space[n++] = call->skip;
  ocl_kernel_size(kernel, cut(device, indexed, spaces, vec, space + n), local);
  return ocl_kernel_set(kernel, 1, &(ocl_argument){sizeof *space * (size_t)(n + 7), space});
}

/* Conversions between the half type and f32; from the same program text, with the indices left out of it. */
static graft_status make_conversion(ocl_kernel *kernel, const memo *memo, graft_device *device, const char *name,
                                    const ocl_dtype *source) {
  size_t local = device->is_cpu ? 1 : 64;
  ocl_text head = {0};
  ocl_head_types(&head, memo->target, device->vector_width, local);
  ocl_text_add(&head, "#define D_TARGET %s\n#define D_SOURCE %s\n#define CONVERSIONS\n#define FREE 1\n#define SCAN 1\n",
               memo->target->name, source->name);
  ocl_text_add(&head, "#define INDICES 1\n#define WRAPS 0\n#define OP_ID 0\n#define COMBINE(a, b) b\n");
  ocl_text_add(&head, "#define INDEX_PARAMETERS __global const long *index_0\n#define INDEX_POINTERS index_0\n");
  graft_status status = ocl_kernel_make(kernel, device, &head, "scatter/joins scatter/scatter", name);
  ocl_kernel_size(kernel, ocl_ceil_divide(memo->elements, memo->chunk), local);
  return status;
}

static bool is_half(const ocl_dtype *dtype) {
  return dtype->class == OCL_CLASS_FLOAT && dtype->bytes == 2;
}

static bool prepares(const ocl_scatter *call, const graft_device *device) {
  const ocl_indexed *indexed = &call->indexed;
  const ocl_dtype *dtype = ocl_dtype_of(device, indexed->picked->dl.dtype);
  if (!dtype || indexed->rank > OCL_DIMS_MAX) return false;
  if (indexed->plain && indexed->plain->dl.dtype != dtype->code) return false;
  if (dtype->class == OCL_CLASS_COMPLEX && call->mode > OCL_SCATTER_MULTIPLY) return false;
  for (int k = 0; k < indexed->indices; k++) {
    if (indexed->index[k]->dl.dtype != GRAFT_I64) return false;
  }
  return true;
}

static graft_status fill_memo(memo *memo, graft_device *device, const ocl_scatter *call) {
  const ocl_dtype *dtype = ocl_dtype_of(device, call->indexed.picked->dl.dtype), *source = dtype;
  bool moves = call->mode == OCL_SCATTER_SET && !call->value;
  if (moves) source = ocl_dtype_of_bits(device, dtype->code);
  ocl_scatter_spaces spaces;
  ocl_scatter_split(&call->indexed, &spaces);
  memo->in_lines = ocl_sorted_lines_serve(device, call, &spaces);
  memo->is_sorted = memo->in_lines || ocl_sorted_serves(device, call, spaces.scans);
  memo->is_wide = !memo->is_sorted && is_half(dtype) && call->mode != OCL_SCATTER_SET;
  memo->target = memo->is_wide ? ocl_dtype_of(device, GRAFT_F32) : source;
  memo->elements = ocl_elements(call->indexed.picked);
  memo->chunk = device->is_cpu ? 16384 : 16;
  memo->replaces = call->replaces;
  if (memo->in_lines) {
    return ocl_sorted_lines_prepare(&memo->sorted, device, call, &(ocl_scatter_types){memo->target, source}, &spaces);
  }
  if (memo->is_sorted) {
    return ocl_sorted_prepare(&memo->sorted, device, call, &(ocl_scatter_types){memo->target, source});
  }
  graft_status status = GRAFT_OK;
  if (memo->replaces) status = make_scatter(&memo->first, memo, device, call, source, &spaces, true);
  if (status == GRAFT_OK) status = make_scatter(&memo->scatter, memo, device, call, source, &spaces, false);
  if (status == GRAFT_OK && memo->is_wide) status = make_conversion(&memo->widen, memo, device, "widen", source);
  if (status == GRAFT_OK && memo->is_wide) status = make_conversion(&memo->narrow, memo, device, "narrow", source);
  return status;
}

static graft_status prepare(void *memo, graft_device *device, const void *call) {
  return prepares(call, device) ? fill_memo(memo, device, call) : GRAFT_UNIMPLEMENTED;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 4 + OCL_SORTED_KERNELS, .prepare = prepare};

/* ---- A call ---- */

/* What an element begins as that counts as nothing, and what leaves any number as it is: of a sum that is -0, while one
 * that takes an element's place begins at 0. */
static ocl_number nothing(const ocl_dtype *dtype, const ocl_scatter *call) {
  bool is_float = dtype->class == OCL_CLASS_FLOAT, is_unsigned = dtype->name[0] == 'u';
  int bits = 8 * (int)dtype->bytes;
  switch (call->mode) {
    case OCL_SCATTER_ADD: return call->replaces ? (ocl_number){.is_int = true} : (ocl_number){.re = -0.0, .im = -0.0};
    case OCL_SCATTER_MULTIPLY: return (ocl_number){.is_int = true, .i = 1, .re = 1};
    case OCL_SCATTER_MAXIMUM:
      if (is_float) return (ocl_number){.re = -INFINITY};
      if (is_unsigned || dtype->class == OCL_CLASS_BOOL) return (ocl_number){.is_int = true};
      return (ocl_number){.is_int = true, .i = bits == 64 ? INT64_MIN : -(INT64_C(1) << (bits - 1))};
    case OCL_SCATTER_MINIMUM:
      if (is_float) return (ocl_number){.re = INFINITY};
      if (dtype->class == OCL_CLASS_BOOL) return (ocl_number){.is_int = true, .i = 1};
      if (is_unsigned) return (ocl_number){.is_int = true, .i = bits == 64 ? -1 : (INT64_C(1) << bits) - 1};
      return (ocl_number){.is_int = true, .i = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1};
    default: return (ocl_number){.is_int = true};
  }
}

/* The output begins as `base`, or as zeros. */
static graft_status begin(graft_stream *stream, const ocl_scatter *call) {
  const graft_dl_tensor *to = &call->indexed.picked->dl;
  uint64_t bytes = (uint64_t)ocl_elements(call->indexed.picked) * GRAFT_DTYPE_BYTES(to->dtype);
  if (!call->base) {
    uint8_t zero = 0;
    return ocl_memory_api.fill(stream, to->data, to->byte_offset, bytes, &zero, 1);
  }
  const graft_dl_tensor *from = &call->base->dl;
  if (from->data == to->data && from->byte_offset == to->byte_offset) return GRAFT_OK;
  return ocl_memory_api.copy(stream, to->data, to->byte_offset, from->data, from->byte_offset, bytes);
}

static graft_status launch_scatter(ocl_kernel *kernel, graft_stream *stream, const memo *memo, const ocl_scatter *call,
                                   ocl_place target, const ocl_number *number) {
  const ocl_indexed *indexed = &call->indexed;
  const graft_tensor_desc *source = indexed->plain ? indexed->plain : indexed->picked; /* not looked at for a number */
  cl_mem faults;
  graft_status status = ocl_stream_faults(stream, &faults);
  if (status != GRAFT_OK) return status;
  ocl_value value;
  size_t bytes = ocl_number_as(number, memo->target, &value);
  ocl_argument arguments[OCL_ARGUMENTS_MAX] = {
      OCL_PLACE(target), OCL_TENSOR(source), {bytes, &value}, OCL_VALUE(faults)};
  cl_uint n = 6;
  for (int k = 0; k < indexed->indices; k++) {
    arguments[n++] = (ocl_argument){sizeof(cl_mem), &indexed->index[k]->dl.data->handle};
    arguments[n++] = (ocl_argument){sizeof(uint64_t), &indexed->index[k]->dl.byte_offset};
  }
  return ocl_launch(kernel, stream, n, arguments);
}

static graft_status convert(ocl_kernel *kernel, graft_stream *stream, const memo *memo, ocl_place to, ocl_place from) {
  const ocl_argument arguments[] = {OCL_PLACE(to), OCL_PLACE(from), OCL_VALUE(memo->elements), OCL_VALUE(memo->chunk)};
  return ocl_launch(kernel, stream, OCL_ALL(arguments));
}

static graft_status run_sorted(const graft_exec *exec, memo *memo, const ocl_scatter *call, const ocl_number *number,
                               const ocl_number *none) {
  ocl_value values[2];
  const size_t bytes = ocl_number_as(number, memo->target, &values[0]);
  ocl_number_as(none, memo->target, &values[1]);
  const ocl_argument first = {bytes, &values[0]}, second = {bytes, &values[1]};
  return (memo->in_lines ? ocl_sorted_lines_run : ocl_sorted_run)(exec, &memo->sorted, call, first, second);
}

/* Which are moved, and not computed in. */
static bool is_float8(const graft_tensor_desc *desc) {
  return desc->dl.dtype == GRAFT_F8_E4M3FN || desc->dl.dtype == GRAFT_F8_E5M2;
}

graft_status ocl_scatter_run(const graft_exec *exec, const ocl_scatter *call) {
  const ocl_indexed *indexed = &call->indexed;
  graft_stream *stream = exec->stream;
  if (call->mode != OCL_SCATTER_SET && is_float8(indexed->picked)) return GRAFT_UNIMPLEMENTED;
  for (int k = 0; k < indexed->indices; k++) {
    if (ocl_elements(indexed->index[k]) == 0) return begin(stream, call);
  }
  if (indexed->plain && ocl_elements(indexed->plain) == 0) return begin(stream, call);
  memo *memo;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status != GRAFT_OK) return status;
  ocl_place out = ocl_place_of(indexed->picked), target = out;
  if (memo->is_wide) status = ocl_workspace(exec, (uint64_t)memo->elements * sizeof(float), &target);
  if (status != GRAFT_OK) return status;
  status = begin(stream, call);
  if (status == GRAFT_OK && memo->is_wide) status = convert(&memo->widen, stream, memo, target, out);
  ocl_number number = {.is_int = true, .i = 1, .re = 1};
  if (call->value) ocl_number_of_scalar(call->value, &number);
  if (call->alpha) ocl_number_of_scalar(call->alpha, &number);
  ocl_number none = nothing(memo->target, call);
  if (status == GRAFT_OK && memo->is_sorted) return run_sorted(exec, memo, call, &number, &none);
  if (status == GRAFT_OK && memo->replaces) status = launch_scatter(&memo->first, stream, memo, call, target, &none);
  if (status == GRAFT_OK) status = launch_scatter(&memo->scatter, stream, memo, call, target, &number);
  if (status == GRAFT_OK && memo->is_wide) status = convert(&memo->narrow, stream, memo, out, target);
  return status;
}
