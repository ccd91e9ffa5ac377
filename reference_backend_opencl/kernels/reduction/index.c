/* argmax, argmin, max.dim and min.dim: where the extremum of a line stands. One launch, or two where a few rows are so
 * long that each is cut into parts, or a GPU has few lines side by side. */
#include <string.h>

#include "kernels/core/lines.h"
#include "kernels/reduction/reduction.h"

enum { SELF, DIM, OUT, VALUES, INDICES, READS };
const char *const ocl_extremum_reads[] = {
    [SELF] = "self", [DIM] = "dim", [OUT] = "out", [VALUES] = "values", [INDICES] = "indices", [READS] = NULL};

typedef struct operands {
  const graft_tensor_desc *in, *indices, *values; /* values may be NULL */
  bool largest;
  int64_t dim; /* -1: of all elements */
} operands;

typedef struct memo {
  ocl_kernel kernel[2];
  int64_t part, parts, size; /* of a row */
  uint64_t value_bytes, index_bytes;
} memo;

/* The dtype that lies in memory as this one is computed with. */
static const ocl_dtype *computed(const graft_device *device, const ocl_dtype *dtype) {
  static const graft_dtype codes[] = {GRAFT_F32, GRAFT_F64, GRAFT_I32, GRAFT_I64, GRAFT_U32, GRAFT_U64};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    const ocl_dtype *candidate = ocl_dtype_of(device, codes[i]);
    if (candidate && strcmp(candidate->compute, dtype->compute) == 0) return candidate;
  }
  return NULL;
}

static void add_head(ocl_text *head, const graft_device *device, const operands *call, const ocl_dtype *in,
                     const char *more) {
  ocl_text_add(head, "#define D_IN %s\n%s%s", in->name, call->largest ? "#define LARGEST\n" : "", more);
  if (call->values) {
    ocl_text_add(head, "#define WITH_VALUES\n#define D_VALUES %s\n",
                 ocl_dtype_of(device, call->values->dl.dtype)->name);
  }
}

static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, const operands *call, const ocl_lines *lines,
                                const ocl_dtype *in, const char *more) {
  ocl_text head = {0};
  ocl_lines_head(&head, lines, in);
  add_head(&head, device, call, in, more);
  return ocl_kernel_make(kernel, device, &head, "core/lines reduction/candidates reduction/index", "find");
}

/* A row in parts is so many units. */
static graft_status set_parts(ocl_kernel *kernel, const ocl_lines *lines, int64_t part, int64_t parts, int64_t size) {
  const ocl_lines_space space = ocl_lines_lay(kernel, lines);
  const ocl_argument constants[] = {OCL_VALUE(space), OCL_VALUE(part), OCL_VALUE(parts), OCL_VALUE(size)};
  return ocl_kernel_set(kernel, OCL_ALL(constants));
}

static int64_t choose_parts(const graft_device *device, const ocl_lines *lines) {
  const int64_t least = 16384;
  int64_t wanted = (device->is_cpu ? 2 : 8) * (int64_t)device->compute_units / lines->outer;
  int64_t most = ocl_ceil_divide(lines->size, least), forced = lines->size / INT32_MAX + 1;
  int64_t parts = wanted < most ? wanted : most;
  if (!lines->rows) return 1;
  return parts > forced ? parts : forced;
}

/* ---- Lines side by side, on a GPU ---- */

/* As index_columns.cl has it. */
typedef struct columns {
  int64_t size, inner, units_per_row, units, width, depth, size_of_split, source_size, source_inner;
} columns;

enum { COLUMNS_LOCAL = 256, SIDE_BY_SIDE = 32, DEPTH_LEAST = 4, GROUPS_A_UNIT = 8 };

static columns lay_columns(const ocl_lines *lines) {
  columns c = {.size = lines->size, .inner = lines->inner, .width = 1, .depth = 1, .size_of_split = lines->size};
  while (c.width < SIDE_BY_SIDE && c.width < lines->inner) c.width *= 2;
  while (c.width * c.depth < COLUMNS_LOCAL && c.depth * DEPTH_LEAST < lines->size) c.depth *= 2;
  c.units_per_row = ocl_ceil_divide(lines->inner, c.width);
  c.units = lines->outer * c.units_per_row;
  return c;
}

static graft_status make_columns(ocl_kernel *kernel, graft_device *device, const operands *call, const columns *space,
                                 int64_t splits, const ocl_dtype *in, const char *more) {
  ocl_text head = {0};
  ocl_head_types(&head, in, 1, COLUMNS_LOCAL);
  add_head(&head, device, call, in, more);
  graft_status status = ocl_kernel_make(kernel, device, &head, "reduction/candidates reduction/index_columns", "find");
  ocl_kernel_size(kernel, space->units * space->width * space->depth, COLUMNS_LOCAL);
  kernel->global[1] = (size_t)splits;
  return status == GRAFT_OK ? ocl_kernel_set(kernel, 1, &(ocl_argument){sizeof *space, space}) : status;
}

static graft_status prepare_columns(memo *memo, graft_device *device, const operands *call, const ocl_lines *lines,
                                    const ocl_dtype *in) {
  const ocl_dtype *compute = computed(device, in);
  columns first = lay_columns(lines);
  first.source_size = lines->size;
  first.source_inner = lines->inner;
  const int64_t groups = ocl_ceil_divide(first.units * first.width * first.depth, COLUMNS_LOCAL);
  const int64_t wanted = GROUPS_A_UNIT * (int64_t)device->compute_units / groups;
  const int64_t most = lines->size / (DEPTH_LEAST * first.depth), splits = wanted < most ? wanted : most;
  memo->parts = 1;
  if (splits <= 1) return make_columns(&memo->kernel[0], device, call, &first, 1, in, "");
  operands partial = *call;
  partial.values = NULL;
  first.size_of_split = ocl_ceil_divide(lines->size, splits);
  memo->parts = ocl_ceil_divide(lines->size, first.size_of_split);
  memo->value_bytes = (uint64_t)(memo->parts * lines->outer * lines->inner) * compute->bytes;
  memo->index_bytes = (uint64_t)(memo->parts * lines->outer * lines->inner) * sizeof(int64_t);
  graft_status status = make_columns(&memo->kernel[0], device, &partial, &first, memo->parts, in, "#define PARTIAL\n");
  if (status != GRAFT_OK) return status;
  const ocl_lines chosen = {.outer = 1, .size = memo->parts, .inner = lines->outer * lines->inner};
  columns second = lay_columns(&chosen);
  second.source_size = lines->size;
  second.source_inner = lines->inner;
  return make_columns(&memo->kernel[1], device, call, &second, 1, compute, "#define GIVEN\n");
}

static graft_status prepare_all(memo *memo, graft_device *device, const operands *call, const ocl_dtype *in) {
  ocl_lines lines = {.outer = 1, .size = 1, .inner = 1};
  if (call->dim >= 0) {
    lines = ocl_lines_of(device, &call->in->dl, call->dim);
  } else {
    for (int d = 0; d < call->in->dl.ndim; d++) lines.size *= call->in->dl.shape[d];
    ocl_lines_plan(device, &lines);
  }
  if (!lines.rows && !device->is_cpu) return prepare_columns(memo, device, call, &lines, in);
  if (!lines.rows && lines.size > INT32_MAX) return GRAFT_UNIMPLEMENTED;
  const ocl_dtype *compute = computed(device, in);
  memo->size = lines.size;
  memo->parts = choose_parts(device, &lines);
  memo->part = ocl_ceil_divide(lines.size, memo->parts);
  if (memo->parts > 1) memo->parts = ocl_ceil_divide(lines.size, memo->part);
  ocl_lines first = lines, second = lines;
  first.outer *= memo->parts; /* units; the kernel tells rows and parts apart */
  memo->value_bytes = (uint64_t)first.outer * compute->bytes;
  memo->index_bytes = (uint64_t)first.outer * sizeof(int64_t);
  operands partial = *call;
  if (memo->parts > 1) partial.values = NULL;
  graft_status status =
      make_kernel(&memo->kernel[0], device, &partial, &first, in, memo->parts > 1 ? "#define PARTIAL\n" : "");
  if (status == GRAFT_OK) status = set_parts(&memo->kernel[0], &first, memo->part, memo->parts, memo->size);
  if (memo->parts == 1 || status != GRAFT_OK) return status;
  second.size = memo->parts;
  ocl_lines_plan(device, &second);
  status = make_kernel(&memo->kernel[1], device, call, &second, compute, "#define GIVEN\n");
  return status == GRAFT_OK ? set_parts(&memo->kernel[1], &second, memo->parts, 1, memo->size) : status;
}

static graft_status prepare(void *memo, graft_device *device, const void *from) {
  const operands *call = from;
  const ocl_dtype *in = ocl_dtype_of(device, call->in->dl.dtype);
  if (!in || in->class == OCL_CLASS_COMPLEX) return GRAFT_UNIMPLEMENTED;
  if (call->values && call->values->dl.dtype != call->in->dl.dtype) return GRAFT_UNIMPLEMENTED;
  return prepare_all(memo, device, call, in);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 2, .prepare = prepare};

static graft_status run(const graft_exec *exec, const operands *call) {
  const graft_host *host = exec->device->plugin->host;
  memo *memo;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status != GRAFT_OK) return status;
  const graft_tensor_desc *values = call->values ? call->values : call->indices;
  if (memo->parts == 1) {
    const ocl_argument only[] = {OCL_TENSOR(call->indices), OCL_TENSOR(values), OCL_TENSOR(call->in),
                                 OCL_TENSOR(call->in), OCL_TENSOR(call->in)};
    return ocl_launch(&memo->kernel[0], exec->stream, OCL_ALL(only));
  }
  graft_buffer *indices, *found;
  uint64_t at_indices, at_found;
  status = host->workspace(exec, memo->index_bytes, 0, &indices, &at_indices);
  if (status == GRAFT_OK) status = host->workspace(exec, memo->value_bytes, 0, &found, &at_found);
  if (status != GRAFT_OK) return status;
  const ocl_argument first[] = {OCL_BUFFER(indices),  OCL_VALUE(at_indices), OCL_BUFFER(found),   OCL_VALUE(at_found),
                                OCL_TENSOR(call->in), OCL_TENSOR(call->in),  OCL_TENSOR(call->in)};
  status = ocl_launch(&memo->kernel[0], exec->stream, OCL_ALL(first));
  if (status != GRAFT_OK) return status;
  const ocl_argument second[] = {OCL_TENSOR(call->indices), OCL_TENSOR(values),  OCL_BUFFER(found),
                                 OCL_VALUE(at_found),       OCL_BUFFER(indices), OCL_VALUE(at_indices),
                                 OCL_TENSOR(call->in)};
  return ocl_launch(&memo->kernel[1], exec->stream, OCL_ALL(second));
}

/* The recipe says whether it is the largest. */
graft_status ocl_find_extremum(const ocl_call *call) {
  const graft_tensor_desc *self = ocl_read_tensor(call, SELF), *out = ocl_read_tensor(call, OUT);
  const operands operands = {.in = self,
                             .indices = out ? out : ocl_read_tensor(call, INDICES),
                             .values = ocl_read_tensor(call, VALUES),
                             .largest = *(const bool *)call->op->recipe,
                             .dim = self->dl.ndim ? ocl_read_int(call, DIM, -1) : -1};
  return operands.indices ? run(call->exec, &operands) : GRAFT_UNIMPLEMENTED;
}
