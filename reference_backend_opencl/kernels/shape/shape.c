/* Movement: joining, padding, repeating, turning round, writing into a part. Each is a few regions that are copied from
 * one place to another. */
#include <stdlib.h>
#include <string.h>

#include "kernels/core/indexed.h"
#include "kernels/shape/shape.h"

/* ---- Kernels ---- */

static void geometry_of(const ocl_region *region, ocl_geometry *geometry) {
  *geometry = (ocl_geometry){.operands = 2};
  for (int d = region->rank - 1; d >= 0; d--) {
    int64_t strides[OCL_OPERANDS_MAX] = {region->to[d], region->from[d]};
    ocl_geometry_push_outer(geometry, region->size[d], strides);
  }
  ocl_geometry_sort(geometry);
  ocl_geometry_collapse(geometry);
}

/* Where the source runs along another dimension than the target: that one comes second. False: not worth tiles. */
static bool arrange_tiles(ocl_geometry *geometry) {
  const int64_t least = 8;
  if (geometry->stride[0][0] != 1 || geometry->stride[1][0] == 1 || geometry->size[0] < least) return false;
  for (int d = 1; d < geometry->rank; d++) {
    if (geometry->stride[1][d] != 1 || geometry->size[d] < least) continue;
    ocl_geometry before = *geometry;
    geometry->size[1] = before.size[d];
    geometry->size[d] = before.size[1];
    for (int k = 0; k < 2; k++) {
      geometry->stride[k][1] = before.stride[k][d];
      geometry->stride[k][d] = before.stride[k][1];
    }
    return true;
  }
  return false;
}

/* How a region is moved. */
typedef struct plan {
  const ocl_dtype *bits;
  ocl_geometry geometry;
  size_t local;
  bool contiguous, tiled;
  bool squares;        /* tiles are turned in registers */
  bool by_groups;      /* work-items of a GPU take `of_group` elements of a row side by side */
  int64_t tile, tiles; /* a tile's side, and how many are a work-item's, side by side in the source */
  int64_t of_group;
} plan;

static plan plan_of(graft_device *device, graft_dtype code, const ocl_region *region) {
  plan p = {.bits = ocl_dtype_of_bits(device, code), .local = device->is_cpu ? 1 : 64, .tiles = 1};
  geometry_of(region, &p.geometry);
  p.contiguous = p.geometry.stride[0][0] == 1 && p.geometry.stride[1][0] == 1;
  p.tiled = arrange_tiles(&p.geometry);
  p.of_group = 4 * (int64_t)p.local;
  p.by_groups = !device->is_cpu && !p.contiguous && !p.tiled && p.geometry.size[0] >= p.of_group / 2;
  p.tile = device->is_cpu ? 16 : 4;
  const bool small = ocl_geometry_is_small(&p.geometry);
  /* For a small call squares are too much to compile. */
  if (p.tiled && device->is_cpu && !small && device->vector_width > 1 && p.bits->class != OCL_CLASS_COMPLEX) {
    p.squares = true;
    p.tile = (int64_t)device->vector_width;
    p.tiles = 4;
  }
  if (small) ocl_geometry_widen(&p.geometry);
  return p;
}

static graft_status compile(ocl_kernel *kernel, graft_device *device, const plan *p) {
  const bool vectors = p->squares || (p->contiguous && p->bits->class != OCL_CLASS_COMPLEX);
  ocl_text head = {0};
  ocl_head_types(&head, p->bits, vectors ? device->vector_width : 1, p->local);
  ocl_text_add(&head, "#define D %s\n#define RANK %d\n#define TILE %d\n#define TILES %d\n", p->bits->name,
               p->geometry.rank, (int)p->tile, (int)p->tiles);
  if (p->contiguous) ocl_text_add(&head, "#define CONTIGUOUS\n");
  if (p->squares) ocl_text_add(&head, "#define SQUARE VEC_OF(RAW(D))\n");
  if (p->by_groups) ocl_text_add(&head, "#define BY_GROUPS\n");
  return ocl_kernel_make(kernel, device, &head, p->squares ? "core/square shape/shape" : "shape/shape",
                         p->tiled ? "transpose" : "move");
}

static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, graft_dtype code, const ocl_region *region) {
  const plan p = plan_of(device, code, region);
  graft_status status = compile(kernel, device, &p);
  if (status != GRAFT_OK) return status;
  int64_t space[OCL_GEOMETRY_NUMBERS + 6];
  int n = ocl_geometry_numbers(&p.geometry, space);
  space[n++] = region->start_to;
  space[n++] = region->start_from;
  if (p.tiled) {
    int64_t items = 1;
    for (int d = 0; d < p.geometry.rank; d++) {
      int64_t count = p.geometry.size[d];
      if (d < 2) space[n++] = count = ocl_ceil_divide(count, d == 0 ? p.tile : p.tile * p.tiles);
      items *= count;
    }
    ocl_kernel_size(kernel, items, p.local);
  } else {
    ocl_cut cut;
    ocl_kernel_size(kernel, ocl_geometry_cut(device, &p.geometry, device->vector_width, &cut), p.local);
    if (p.by_groups) {
      cut.chunk = p.of_group;
      cut.chunks_per_row = ocl_ceil_divide(p.geometry.size[0], p.of_group);
      cut.chunks = ocl_geometry_elements(&p.geometry) / p.geometry.size[0] * cut.chunks_per_row;
      ocl_kernel_size(kernel, cut.chunks * (int64_t)p.local, p.local);
    }
    memcpy(space + n, &cut, sizeof cut);
    n += 4;
  }
  return ocl_kernel_set(kernel, 1, &(ocl_argument){sizeof *space * (size_t)n, space});
}

/* ---- Moving regions of one output ---- */

typedef struct call {
  const graft_tensor_desc *to;
  const graft_tensor_desc *const *from;
  const ocl_region *regions;
  uint32_t count;
} call;

static bool is_empty(const ocl_region *region) {
  for (int d = 0; d < region->rank; d++) {
    if (region->size[d] <= 0) return true;
  }
  return false;
}

/* A kernel for each region that is not empty. */
typedef struct memo {
  uint32_t count;
  ocl_kernel *kernels;
} memo;

static void release(void *pointer) {
  memo *memo = pointer;
  for (uint32_t i = 0; i < memo->count; i++) ocl_kernel_destroy(&memo->kernels[i]);
  free(memo->kernels);
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const call *call = from;
  memo->kernels = calloc(call->count + 1, sizeof *memo->kernels);
  if (!memo->kernels) return GRAFT_OUT_OF_MEMORY;
  memo->count = call->count;
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < call->count && status == GRAFT_OK; i++) {
    if (is_empty(&call->regions[i])) continue;
    status = make_kernel(&memo->kernels[i], device, call->to->dl.dtype, &call->regions[i]);
  }
  return status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .prepare = prepare, .release = release};

static bool is_served(const graft_exec *exec, const call *call) {
  if (!ocl_dtype_of_bits(exec->device, call->to->dl.dtype)) return false;
  for (uint32_t i = 0; i < call->count; i++) {
    if (call->regions[i].rank > OCL_DIMS_MAX || call->from[i]->dl.dtype != call->to->dl.dtype) return false;
  }
  return true;
}

static graft_status move(const graft_exec *exec, const call *call) {
  memo *memo;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  for (uint32_t i = 0; i < call->count && status == GRAFT_OK; i++) {
    if (!memo->kernels[i].handle) continue;
    const ocl_argument arguments[] = {OCL_TENSOR(call->to), OCL_TENSOR(call->from[i])};
    status = ocl_launch(&memo->kernels[i], exec->stream, OCL_ALL(arguments));
  }
  return status;
}

/* Nothing is submitted for a call that is not served. */
static graft_status move_one(const graft_exec *exec, const graft_tensor_desc *to, const graft_tensor_desc *from,
                             const ocl_region *region) {
  return move(exec, &(call){.to = to, .from = &from, .regions = region, .count = 1});
}

/* The dimensions of `part`, at their strides in `whole`, from its beginning. */
static ocl_region region_of(const graft_dl_tensor *part, const graft_dl_tensor *whole) {
  ocl_region region = {.rank = part->ndim};
  for (int d = 0; d < part->ndim; d++) {
    region.size[d] = part->shape[d];
    region.from[d] = part->strides[d];
    region.to[d] = whole->strides[d];
  }
  return region;
}

graft_status ocl_move_whole(const graft_exec *exec, const graft_tensor_desc *from, const graft_tensor_desc *to) {
  ocl_region region = region_of(&from->dl, &to->dl);
  return move_one(exec, to, from, &region);
}

static uint64_t bytes_of(const graft_tensor_desc *desc) {
  return (uint64_t)ocl_elements(desc) * GRAFT_DTYPE_BYTES(desc->dl.dtype);
}

static graft_status copy_all(graft_stream *stream, const graft_tensor_desc *from, const graft_tensor_desc *to) {
  return ocl_memory_api.copy(stream, to->dl.data, to->dl.byte_offset, from->dl.data, from->dl.byte_offset,
                             bytes_of(from));
}

/* ---- Slots ---- */

/* Where everything before the joined dimension is one, the parts lie one behind the other. */
static graft_status join_runs(const graft_exec *exec, const graft_args_cat *args) {
  uint64_t at = args->out->dl.byte_offset;
  graft_status status = GRAFT_OK;
  for (uint64_t i = 0; i < args->tensors.count && status == GRAFT_OK; i++) {
    const graft_tensor_desc *part = args->tensors.items[i];
    status =
        ocl_memory_api.copy(exec->stream, args->out->dl.data, at, part->dl.data, part->dl.byte_offset, bytes_of(part));
    at += bytes_of(part);
  }
  return status;
}

graft_status ocl_op_cat(const graft_exec *exec, const graft_args_cat *args) {
  const graft_dl_tensor *out = &args->out->dl;
  enum { FEW = 16 };
  ocl_region few[FEW], *regions = few;
  int64_t outer = 1, start = 0;
  uint64_t count = args->tensors.count;
  for (int64_t d = 0; d < args->dim; d++) outer *= out->shape[d];
  for (uint64_t i = 0; i < count; i++) {
    if (args->tensors.items[i]->dl.dtype != out->dtype) return GRAFT_UNIMPLEMENTED;
  }
  if (!ocl_dtype_of(exec->device, out->dtype)) return GRAFT_UNIMPLEMENTED;
  if (!exec->device->is_cpu && ocl_elements(args->out)) return ocl_join(exec, args);
  if (outer == 1 && ocl_joins_listed(exec->device, args)) return ocl_join_listed(exec, args);
  if (outer == 1) return join_runs(exec, args);
  if (count > FEW && !(regions = calloc(count, sizeof *regions))) return GRAFT_OUT_OF_MEMORY;
  for (uint64_t i = 0; i < count; i++) {
    const graft_dl_tensor *part = &args->tensors.items[i]->dl;
    bool is_nothing = ocl_elements(args->tensors.items[i]) == 0;
    regions[i] = is_nothing ? (ocl_region){.rank = 1} : region_of(part, out);
    regions[i].start_to = start * out->strides[args->dim];
    if (!is_nothing) start += part->shape[args->dim];
  }
  call call = {.to = args->out, .from = args->tensors.items, .regions = regions, .count = (uint32_t)count};
  graft_status status = is_served(exec, &call) ? move(exec, &call) : GRAFT_UNIMPLEMENTED;
  if (regions != few) free(regions);
  return status;
}

/* The number that is put around; zero where none is given. */
static void padding_of(const graft_args_constant_pad_nd *args, const ocl_dtype *dtype, uint64_t element[2]) {
  ocl_number number = {.is_int = true};
  if (args->value) ocl_number_of_scalar(args->value, &number);
  ocl_number_store(&number, dtype, element);
}

graft_status ocl_op_constant_pad_nd(const graft_exec *exec, const graft_args_constant_pad_nd *args) {
  const graft_dl_tensor *in = &args->self->dl, *out = &args->out->dl;
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, out->dtype);
  ocl_region region = region_of(in, out);
  if (!dtype || in->dtype != out->dtype || in->ndim > OCL_DIMS_MAX) return GRAFT_UNIMPLEMENTED;
  uint64_t element[2] = {0};
  padding_of(args, dtype, element);
  if (exec->device->is_cpu) return ocl_pad(exec, args, element);
  for (uint64_t i = 0; i + 1 < args->pad.count; i += 2) { /* the last dimension comes first */
    int d = in->ndim - 1 - (int)(i / 2);
    int64_t before = args->pad.items[i], after = args->pad.items[i + 1];
    if (before > 0) region.start_to += before * out->strides[d];
    if (before < 0) region.start_from -= before * in->strides[d];
    region.size[d] += (before < 0 ? before : 0) + (after < 0 ? after : 0);
  }
  graft_status status =
      ocl_memory_api.fill(exec->stream, out->data, out->byte_offset, bytes_of(args->out), element, dtype->bytes);
  if (status != GRAFT_OK || is_empty(&region)) return status;
  return move_one(exec, args->out, args->self, &region);
}

graft_status ocl_op_repeat(const graft_exec *exec, const graft_args_repeat *args) {
  const graft_dl_tensor *in = &args->self->dl, *out = &args->out->dl;
  ocl_region region = {0};
  int added = out->ndim - in->ndim;
  for (int d = 0; d < out->ndim; d++) {
    int64_t repeats = args->repeats.items[d], size = d < added ? 1 : in->shape[d - added];
    if (region.rank + 2 > OCL_DIMS_MAX) return GRAFT_UNIMPLEMENTED;
    if (repeats != 1) {
      region.size[region.rank] = repeats;
      region.to[region.rank++] = size * out->strides[d];
    }
    if (size != 1) {
      region.size[region.rank] = size;
      region.to[region.rank] = out->strides[d];
      region.from[region.rank++] = in->strides[d - added];
    }
  }
  const graft_tensor_desc *from = args->self;
  call call = {.to = args->out, .from = &from, .regions = &region, .count = 1};
  return is_served(exec, &call) ? move(exec, &call) : GRAFT_UNIMPLEMENTED;
}

graft_status ocl_op_flip(const graft_exec *exec, const graft_args_flip *args) {
  ocl_region region = region_of(&args->self->dl, &args->out->dl);
  for (uint64_t i = 0; i < args->dims.count; i++) {
    int64_t d = args->dims.items[i];
    if (region.rank == 0) break;
    region.start_from += (region.size[d] - 1) * region.from[d];
    region.from[d] = -region.from[d];
  }
  const graft_tensor_desc *from = args->self;
  call call = {.to = args->out, .from = &from, .regions = &region, .count = 1};
  return is_served(exec, &call) ? move(exec, &call) : GRAFT_UNIMPLEMENTED;
}

static graft_status write_part(const graft_exec *exec, const graft_tensor_desc *self, const graft_tensor_desc *src,
                               const graft_tensor_desc *out, const ocl_region *region) {
  call call = {.to = out, .from = &src, .regions = region, .count = 1};
  if (!is_served(exec, &call) || self->dl.dtype != out->dl.dtype) return GRAFT_UNIMPLEMENTED;
  graft_status status = copy_all(exec->stream, self, out);
  return status == GRAFT_OK && !is_empty(region) ? move(exec, &call) : status;
}

graft_status ocl_op_select_scatter(const graft_exec *exec, const graft_args_select_scatter *args) {
  const graft_dl_tensor *out = &args->out->dl, *src = &args->src->dl;
  ocl_region region = {.rank = src->ndim, .start_to = args->index * out->strides[args->dim]};
  for (int d = 0; d < src->ndim; d++) {
    region.size[d] = src->shape[d];
    region.from[d] = src->strides[d];
    region.to[d] = out->strides[d < args->dim ? d : d + 1];
  }
  return write_part(exec, args->self, args->src, args->out, &region);
}

graft_status ocl_op_slice_scatter(const graft_exec *exec, const graft_args_slice_scatter *args) {
  const graft_dl_tensor *out = &args->out->dl;
  ocl_region region = region_of(&args->src->dl, out);
  region.start_to = (args->start ? *args->start : 0) * out->strides[args->dim];
  region.to[args->dim] *= args->step;
  return write_part(exec, args->self, args->src, args->out, &region);
}

/* ---- tril, triu ---- */

/* Of the columns of row r those before `first + r` are kept, or those from there on. */
typedef struct triangle {
  const graft_tensor_desc *self, *out;
  int64_t first, lower;
} triangle;

typedef struct triangle_memo {
  ocl_kernel kernel;
} triangle_memo;

static graft_status prepare_triangle(void *memo, graft_device *device, const void *from) {
  const triangle *call = from;
  const graft_tensor_desc *desc = call->out;
  const ocl_dtype *bits = ocl_dtype_of_bits(device, desc->dl.dtype);
  if (!bits || call->self->dl.dtype != desc->dl.dtype) return GRAFT_UNIMPLEMENTED;
  ocl_kernel *kernel = &((triangle_memo *)memo)->kernel;
  size_t local = device->is_cpu ? 1 : 64;
  int64_t columns = desc->dl.shape[desc->dl.ndim - 1], rows = ocl_elements(desc) / (columns ? columns : 1);
  const int64_t at_once = 4, groups_most = 65535, blocks = ocl_ceil_divide(rows, at_once);
  int64_t per_item = device->is_cpu ? 8192 / (columns + 1) + 1 : at_once;
  ocl_kernel_size(kernel, device->is_cpu ? ocl_ceil_divide(rows, per_item) : columns, local);
  if (!device->is_cpu) kernel->global[1] = (size_t)(blocks < groups_most ? blocks : groups_most);
  ocl_text head = {0};
  ocl_head_types(&head, bits, 1, local);
  ocl_text_add(&head, "#define D %s\n#define TRIANGLE\n#define RANK 1\n#define ROWS_AT_ONCE %d\n", bits->name,
               (int)at_once);
  graft_status status = ocl_kernel_make(kernel, device, &head, "shape/shape", "triangle");
  const int64_t space[] = {rows, desc->dl.shape[desc->dl.ndim - 2], columns, per_item};
  return status == GRAFT_OK ? ocl_kernel_set(kernel, 1, &(ocl_argument){sizeof space, space}) : status;
}

static const ocl_memo_type triangle_type = {.bytes = sizeof(triangle_memo), .kernels = 1, .prepare = prepare_triangle};

static graft_status keep_triangle(const graft_exec *exec, const triangle *call) {
  triangle_memo *memo;
  if (ocl_elements(call->out) == 0) return GRAFT_OK;
  graft_status status = ocl_memo_get(exec, &triangle_type, call, &memo);
  if (status != GRAFT_OK) return status;
  const ocl_argument arguments[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->self), OCL_VALUE(call->first),
                                    OCL_VALUE(call->lower)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

graft_status ocl_op_tril(const graft_exec *exec, const graft_args_tril *args) {
  return keep_triangle(exec,
                       &(triangle){.self = args->self, .out = args->out, .first = args->diagonal + 1, .lower = true});
}

graft_status ocl_op_triu(const graft_exec *exec, const graft_args_triu *args) {
  return keep_triangle(exec, &(triangle){.self = args->self, .out = args->out, .first = args->diagonal});
}

/* ---- roll ---- */

enum { ROLL_DIMS_MAX = 4 };

/* Along each rolled dimension there are two parts, so that the whole is up to 2^n of them. */
graft_status ocl_op_roll(const graft_exec *exec, const graft_args_roll *args) {
  ocl_region whole = region_of(&args->self->dl, &args->out->dl), regions[1 << ROLL_DIMS_MAX];
  const graft_tensor_desc *from[1 << ROLL_DIMS_MAX];
  int64_t shift[OCL_DIMS_MAX] = {0};
  if (args->self->dl.ndim > OCL_DIMS_MAX || args->dims.count > ROLL_DIMS_MAX) return GRAFT_UNIMPLEMENTED;
  if (!args->dims.count) { /* all elements in a row, and both sides are contiguous */
    whole = (ocl_region){.rank = 1, .size = {ocl_elements(args->self)}, .from = {1}, .to = {1}};
    shift[0] = args->shifts.items[0];
  }
  for (uint64_t i = 0; i < args->dims.count; i++) {
    int64_t d = args->dims.items[i], size = whole.size[d];
    shift[d] = size ? (shift[d] + args->shifts.items[i]) % size : 0;
  }
  uint32_t count = 1;
  regions[0] = whole;
  for (int d = 0; d < whole.rank; d++) {
    if (shift[d] == 0) continue;
    for (uint32_t i = 0; i < count; i++) { /* what is moved on, and what begins anew */
      ocl_region *first = &regions[i], *second = &regions[count + i];
      *second = *first;
      first->size[d] -= shift[d];
      first->start_to += shift[d] * first->to[d];
      second->size[d] = shift[d];
      second->start_from += (whole.size[d] - shift[d]) * second->from[d];
    }
    count *= 2;
  }
  for (uint32_t i = 0; i < count; i++) from[i] = args->self;
  call call = {.to = args->out, .from = from, .regions = regions, .count = count};
  return is_served(exec, &call) ? move(exec, &call) : GRAFT_UNIMPLEMENTED;
}
