/* Scatters by sorted places, for devices with work-groups: see sorted.cl. */
#include "kernels/scatter/scatter.h"

/* The index space in two: dimensions along which all indices stay the same, which make the row of a place, and those of
 * places, in logical order. */
typedef struct spaces {
  ocl_geometry row, place, keys; /* source and target; source; target and indices */
  bool by_rows;                  /* places differ in their indices alone */
  int64_t width, count, range;
} spaces;

static void split(const ocl_indexed *call, spaces *spaces) {
  *spaces = (struct spaces){.by_rows = true, .width = 1, .count = 1};
  spaces->row.operands = 2;
  spaces->place.operands = 1;
  spaces->keys.operands = 1 + call->indices;
  for (int d = call->rank - 1; d >= 0; d--) {
    int64_t row[] = {call->stride[OCL_PLAIN][d], call->stride[OCL_PICKED][d]}, keys[OCL_OPERANDS_MAX] = {row[1]};
    bool is_row = row[1] != 0;
    for (int k = 0; k < call->indices; k++) {
      keys[1 + k] = call->stride[OCL_INDEX + k][d];
      is_row = is_row && keys[1 + k] == 0;
    }
    if (is_row) {
      ocl_geometry_push_outer(&spaces->row, call->size[d], row);
      spaces->width *= call->size[d];
      continue;
    }
    ocl_geometry_push_outer(&spaces->place, call->size[d], row);
    ocl_geometry_push_outer(&spaces->keys, call->size[d], keys);
    spaces->count *= call->size[d];
    spaces->by_rows = spaces->by_rows && (row[1] == 0 || call->size[d] == 1);
  }
  ocl_geometry_collapse(&spaces->row);
  ocl_geometry_collapse(&spaces->place);
  ocl_geometry_collapse(&spaces->keys);
  spaces->range = spaces->by_rows ? 1 : ocl_elements(call->picked);
  for (int k = 0; k < call->indices && spaces->by_rows; k++) spaces->range *= call->bound[k];
}

bool ocl_sorted_serves(const graft_device *device, const ocl_scatter *call, int64_t scans) {
  if (device->is_cpu || scans <= OCL_SORTED_FEW) return false;
  spaces spaces;
  split(&call->indexed, &spaces);
  return spaces.count < UINT32_MAX && spaces.range > 0 && spaces.range < UINT32_MAX;
}

static graft_status make_keys(ocl_sorted *sorted, graft_device *device, const ocl_scatter *call, const spaces *spaces) {
  const ocl_indexed *indexed = &call->indexed;
  const ocl_dtype *dtype = ocl_dtype_of(device, GRAFT_I64);
  const size_t local = 256;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define NARROW\n#define KEYS_RANK %d\n%s", spaces->keys.rank,
               spaces->by_rows ? "#define BY_ROWS\n" : "");
  ocl_indexed_head(&head, indexed);
  graft_status status = ocl_kernel_make(&sorted->keys, device, &head, "core/items scatter/sorted", "make_keys");
  if (status != GRAFT_OK) return status;
  int64_t space[OCL_GEOMETRY_NUMBERS + 2 * OCL_INDICES_MAX + 3];
  int n = ocl_geometry_numbers(&spaces->keys, space);
  for (int k = 0; k < indexed->indices; k++) space[n++] = indexed->bound[k];
  for (int k = 0; k < indexed->indices; k++) space[n++] = indexed->step[k];
  space[n++] = spaces->count;
  space[n++] = spaces->range;
  space[n++] = call->skip;
  ocl_kernel_size(&sorted->keys, spaces->count, local);
  return ocl_kernel_set(&sorted->keys, 1, &(ocl_argument){sizeof *space * (size_t)n, space});
}

static graft_status make_radix(ocl_sorted *sorted, graft_device *device) {
  ocl_text head = {0};
  ocl_head_types(&head, ocl_dtype_of(device, GRAFT_I64), 1, sorted->plan.local);
  ocl_radix_head(&head, &sorted->plan);
  graft_status status =
      ocl_radix_init(sorted->radix, device, &head, "core/items core/warps core/sums core/radix", &sorted->plan);
  ocl_text_free(&head);
  return status;
}

/* Items for each element of the target, in the mean, from which on it looks for them itself. */
enum { MANY = 4 };

static graft_status make_combine(ocl_sorted *sorted, graft_device *device, const ocl_scatter *call,
                                 const ocl_scatter_types *types, const spaces *spaces) {
  const ocl_indexed *indexed = &call->indexed;
  const int parts = spaces->by_rows ? indexed->indices : 1;
  const int64_t one = 1;
  const size_t local = 128;
  const bool by_target = call->mode != OCL_SCATTER_SET && spaces->count / MANY >= spaces->range;
  ocl_text head = {0};
  ocl_head_types(&head, types->target, 1, local);
  if (by_target) ocl_text_add(&head, "#define BY_TARGET\n");
  ocl_text_add(&head, "#define NARROW\n#define ROW_RANK %d\n#define PLACE_RANK %d\n#define KEY_PARTS %d\n%s%s",
               spaces->row.rank, spaces->place.rank, parts, call->mode == OCL_SCATTER_SET ? "#define SETS\n" : "",
               call->replaces ? "#define REPLACES\n" : "");
  ocl_scatter_head(&head, call, types, false);
  graft_status status = ocl_kernel_make(&sorted->combine, device, &head,
                                        "core/items scatter/joins scatter/fresh scatter/sorted", "combine");
  if (status != GRAFT_OK) return status;
  int64_t space[2 * OCL_GEOMETRY_NUMBERS + 2 * OCL_INDICES_MAX + 3];
  int n = ocl_geometry_numbers(&spaces->row, space);
  n += ocl_geometry_numbers(&spaces->place, space + n);
  const int64_t *bound = spaces->by_rows ? indexed->bound : &spaces->range;
  const int64_t *step = spaces->by_rows ? indexed->step : &one;
  for (int k = 0; k < parts; k++) space[n++] = bound[k];
  for (int k = 0; k < parts; k++) space[n++] = step[k];
  space[n++] = spaces->count;
  space[n++] = spaces->range;
  space[n++] = spaces->width;
  ocl_kernel_size(&sorted->combine, (by_target ? spaces->range : spaces->count) * spaces->width, local);
  return ocl_kernel_set(&sorted->combine, 1, &(ocl_argument){sizeof *space * (size_t)n, space});
}

graft_status ocl_sorted_prepare(ocl_sorted *sorted, graft_device *device, const ocl_scatter *call,
                                const ocl_scatter_types *types) {
  spaces spaces;
  split(&call->indexed, &spaces);
  sorted->plan = ocl_radix_plan_of(device, 1, spaces.count, ocl_radix_bits((uint64_t)spaces.range), true);
  graft_status status = make_keys(sorted, device, call, &spaces);
  if (status == GRAFT_OK) status = make_radix(sorted, device);
  return status == GRAFT_OK ? make_combine(sorted, device, call, types, &spaces) : status;
}

graft_status ocl_sorted_run(const graft_exec *exec, ocl_sorted *sorted, const ocl_scatter *call, ocl_argument number,
                            ocl_argument none) {
  const ocl_indexed *indexed = &call->indexed;
  const graft_tensor_desc *source = indexed->plain ? indexed->plain : indexed->picked; /* not looked at for a number */
  const ocl_radix_plan *plan = &sorted->plan;
  graft_stream *stream = exec->stream;
  cl_mem faults;
  ocl_place items;
  graft_status status = ocl_stream_faults(stream, &faults);
  if (status == GRAFT_OK) status = ocl_workspace(exec, 2 * plan->items_bytes + plan->counts_bytes, &items);
  if (status != GRAFT_OK) return status;
  ocl_place other = {items.buffer, items.offset + plan->items_bytes};
  const ocl_place counts = {items.buffer, other.offset + plan->items_bytes};
  ocl_argument keys[OCL_ARGUMENTS_MAX] = {OCL_PLACE(items), OCL_VALUE(faults)};
  cl_uint n = 3;
  for (int k = 0; k < indexed->indices; k++) {
    keys[n++] = (ocl_argument){sizeof(cl_mem), &indexed->index[k]->dl.data->handle};
    keys[n++] = (ocl_argument){sizeof(uint64_t), &indexed->index[k]->dl.byte_offset};
  }
  status = ocl_launch(&sorted->keys, stream, n, keys);
  if (status == GRAFT_OK) status = ocl_radix_sort(exec, sorted->radix, plan, &items, &other, counts);
  const ocl_argument combine[] = {OCL_TENSOR(indexed->picked), OCL_TENSOR(source), OCL_PLACE(items), number, none};
  return status == GRAFT_OK ? ocl_launch(&sorted->combine, stream, OCL_ALL(combine)) : status;
}
