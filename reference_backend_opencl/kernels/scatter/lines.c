/* Scatters of lines that fit in a tile, for devices with work-groups: see lines.cl. */
#include "kernels/scatter/scatter.h"

static int64_t range_of(const ocl_indexed *call) {
  int64_t range = 1;
  for (int k = 0; k < call->indices; k++) range *= call->bound[k];
  return range;
}

/* Where indices are the same along a dimension, its rows are sorted once for all (sorted.c). */
bool ocl_sorted_lines_serve(const graft_device *device, const ocl_scatter *call, const ocl_scatter_spaces *spaces) {
  if (device->is_cpu || spaces->rows || spaces->scans <= OCL_SORTED_FEW || spaces->scans > ocl_radix_tile(device, true))
    return false;
  const int64_t range = range_of(&call->indexed);
  return range > 0 && range < UINT32_MAX;
}

graft_status ocl_sorted_lines_prepare(ocl_sorted *sorted, graft_device *device, const ocl_scatter *call,
                                      const ocl_scatter_types *types, const ocl_scatter_spaces *spaces) {
  const ocl_indexed *indexed = &call->indexed;
  const int64_t lines = ocl_geometry_elements(&spaces->free), range = range_of(indexed);
  const int bits = ocl_radix_bits((uint64_t)range);
  sorted->plan = ocl_radix_plan_of(device, lines, spaces->scans, bits, true);
  ocl_text head = {0};
  ocl_head_types(&head, types->target, 1, sorted->plan.local);
  ocl_radix_head(&head, &sorted->plan);
  ocl_text_add(&head, "#define FREE %d\n#define SCAN %d\n%s%s", spaces->free.rank, spaces->scan.rank,
               call->mode == OCL_SCATTER_SET ? "#define SETS\n" : "", call->replaces ? "#define REPLACES\n" : "");
  ocl_scatter_head(&head, call, types, false);
  graft_status status = ocl_kernel_make(
      &sorted->combine, device, &head,
      "core/items core/warps core/sums core/radix scatter/joins scatter/fresh scatter/lines", "combine_lines");
  if (status != GRAFT_OK) return status;
  int64_t space[2 * OCL_GEOMETRY_NUMBERS + 2 * OCL_INDICES_MAX + 4];
  int n = ocl_geometry_numbers(&spaces->free, space);
  n += ocl_geometry_numbers(&spaces->scan, space + n);
  for (int k = 0; k < indexed->indices; k++) space[n++] = indexed->bound[k];
  for (int k = 0; k < indexed->indices; k++) space[n++] = indexed->step[k];
  space[n++] = call->skip;
  space[n++] = spaces->scans;
  space[n++] = range;
  space[n++] = bits;
  ocl_kernel_size(&sorted->combine, lines * (int64_t)sorted->plan.local, sorted->plan.local);
  return ocl_kernel_set(&sorted->combine, 1, &(ocl_argument){sizeof *space * (size_t)n, space});
}

graft_status ocl_sorted_lines_run(const graft_exec *exec, ocl_sorted *sorted, const ocl_scatter *call,
                                  ocl_argument number, ocl_argument none) {
  const ocl_indexed *indexed = &call->indexed;
  const graft_tensor_desc *source = indexed->plain ? indexed->plain : indexed->picked; /* not looked at for a number */
  cl_mem faults;
  graft_status status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  ocl_argument arguments[OCL_ARGUMENTS_MAX] = {OCL_TENSOR(indexed->picked), OCL_TENSOR(source), number, none,
                                               OCL_VALUE(faults)};
  cl_uint n = 7;
  for (int k = 0; k < indexed->indices; k++) {
    arguments[n++] = (ocl_argument){sizeof(cl_mem), &indexed->index[k]->dl.data->handle};
    arguments[n++] = (ocl_argument){sizeof(uint64_t), &indexed->index[k]->dl.byte_offset};
  }
  return ocl_launch(&sorted->combine, exec->stream, n, arguments);
}
