/* Scatters of lines that fit in a tile, or are cut into blocks that do, for devices with work-groups: see lines.cl. */
#include "kernels/scatter/scatter.h"

static int64_t range_of(const ocl_indexed *call) {
  int64_t range = 1;
  for (int k = 0; k < call->indices; k++) range *= call->bound[k];
  return range;
}

/* Where nothing is left of what stood there, or by how an infinity is multiplied, what no block brings would show. */
static bool joins_blocks(const ocl_scatter *call) {
  const bool is_complex = ocl_is_complex(call->indexed.picked->dl.dtype);
  return call->mode != OCL_SCATTER_SET && !call->replaces && !(is_complex && call->mode == OCL_SCATTER_MULTIPLY);
}

bool ocl_sorted_lines_serve(const graft_device *device, const ocl_scatter *call, const ocl_scatter_spaces *spaces) {
  const int64_t tile = ocl_radix_tile(device, true), range = range_of(&call->indexed);
  if (device->is_cpu || spaces->scans <= OCL_SORTED_FEW || range == 0) return false;
  /* Where indices are the same along a dimension, its rows are sorted once for all (sorted.c). */
  if (spaces->rows && ocl_geometry_elements(&spaces->free) > 1) return false;
  if (spaces->scans <= tile) return range < UINT32_MAX;
  return range <= tile && joins_blocks(call); /* a block brings no more parts than it has places */
}

typedef struct lines {
  int64_t lines, range, blocks;
  int bits;
} lines;

static lines lines_of(const ocl_indexed *call, const ocl_scatter_spaces *spaces, int64_t tile) {
  const int64_t range = range_of(call);
  return (lines){ocl_geometry_elements(&spaces->free), range, ocl_ceil_divide(spaces->scans, tile),
                 ocl_radix_bits((uint64_t)range)};
}

/* As lines.cl has it. */
static graft_status set_space(ocl_kernel *kernel, const ocl_scatter *call, const ocl_scatter_spaces *spaces,
                              const lines *lines) {
  const ocl_indexed *indexed = &call->indexed;
  int64_t space[2 * OCL_GEOMETRY_NUMBERS + 2 * OCL_INDICES_MAX + 5];
  int n = ocl_geometry_numbers(&spaces->free, space);
  n += ocl_geometry_numbers(&spaces->scan, space + n);
  for (int k = 0; k < indexed->indices; k++) space[n++] = indexed->bound[k];
  for (int k = 0; k < indexed->indices; k++) space[n++] = indexed->step[k];
  const int64_t last[] = {call->skip, lines->lines, spaces->scans, lines->range, lines->bits};
  for (size_t k = 0; k < sizeof last / sizeof *last; k++) space[n++] = last[k];
  return ocl_kernel_set(kernel, 1, &(ocl_argument){sizeof *space * (size_t)n, space});
}

graft_status ocl_sorted_lines_prepare(ocl_sorted *sorted, graft_device *device, const ocl_scatter *call,
                                      const ocl_scatter_types *types, const ocl_scatter_spaces *spaces) {
  const char *files = "core/items core/warps core/sums core/radix scatter/joins scatter/fresh scatter/lines";
  const int64_t tile = ocl_radix_tile(device, true);
  const lines lines = lines_of(&call->indexed, spaces, tile);
  sorted->plan = ocl_radix_plan_of(device, lines.lines, ocl_smaller(spaces->scans, tile), lines.bits, true);
  sorted->parts = lines.blocks > 1 ? lines.blocks * lines.lines * lines.range : 0;
  ocl_text head = {0};
  ocl_head_types(&head, types->target, 1, sorted->plan.local);
  ocl_radix_head(&head, &sorted->plan);
  ocl_text_add(&head, "#define FREE %d\n#define SCAN %d\n%s%s%s", spaces->free.rank, spaces->scan.rank,
               call->mode == OCL_SCATTER_SET ? "#define SETS\n" : "", call->replaces ? "#define REPLACES\n" : "",
               sorted->parts ? "#define BLOCKS\n" : "");
  ocl_scatter_head(&head, call, types, false);
  graft_status status = ocl_kernel_init(&sorted->combine, device, &head, files, "combine_lines");
  if (status == GRAFT_OK && sorted->parts) {
    status = ocl_kernel_init(&sorted->join, device, &head, files, "join_blocks");
  }
  ocl_text_free(&head);
  if (status == GRAFT_OK) status = set_space(&sorted->combine, call, spaces, &lines);
  ocl_kernel_size(&sorted->combine, lines.lines * lines.blocks * (int64_t)sorted->plan.local, sorted->plan.local);
  if (status != GRAFT_OK || !sorted->parts) return status;
  ocl_kernel_size(&sorted->join, lines.lines * lines.range, sorted->plan.local);
  return set_space(&sorted->join, call, spaces, &lines);
}

graft_status ocl_sorted_lines_run(const graft_exec *exec, ocl_sorted *sorted, const ocl_scatter *call,
                                  ocl_argument number, ocl_argument none) {
  const ocl_indexed *indexed = &call->indexed;
  const graft_tensor_desc *source = indexed->plain ? indexed->plain : indexed->picked; /* not looked at for a number */
  cl_mem faults;
  ocl_place parts;
  graft_status status = ocl_stream_faults(exec->stream, &faults);
  if (status == GRAFT_OK && sorted->parts) status = ocl_workspace(exec, (uint64_t)sorted->parts * none.bytes, &parts);
  if (status != GRAFT_OK) return status;
  ocl_argument arguments[OCL_ARGUMENTS_MAX];
  cl_uint n = 0;
  if (sorted->parts) {
    arguments[n++] = (ocl_argument)OCL_BUFFER(parts.buffer);
    arguments[n++] = (ocl_argument)OCL_VALUE(parts.offset);
  }
  const ocl_argument always[] = {OCL_TENSOR(indexed->picked), OCL_TENSOR(source), number, none, OCL_VALUE(faults)};
  for (size_t k = 0; k < sizeof always / sizeof *always; k++) arguments[n++] = always[k];
  for (int k = 0; k < indexed->indices; k++) {
    arguments[n++] = (ocl_argument){sizeof(cl_mem), &indexed->index[k]->dl.data->handle};
    arguments[n++] = (ocl_argument){sizeof(uint64_t), &indexed->index[k]->dl.byte_offset};
  }
  status = ocl_launch(&sorted->combine, exec->stream, n, arguments);
  if (status != GRAFT_OK || !sorted->parts) return status;
  const ocl_argument join[] = {OCL_TENSOR(indexed->picked), OCL_PLACE(parts)};
  return ocl_launch(&sorted->join, exec->stream, OCL_ALL(join));
}
