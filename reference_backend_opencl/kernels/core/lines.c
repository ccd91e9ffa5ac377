/* How ops along one dimension are laid over a device: see lines.cl. */
#include "kernels/core/lines.h"

/* On a CPU whether whole vectors serve however short a line is, so that small calls share a program. Lanes that stand
 * empty change no bit: where a shorter vector would take a line in two steps, its lanes add what the upper half holds
 * here. */
static bool is_small(const graft_device *device, const ocl_lines *lines) {
  int64_t lanes = device->vector_width, size = lines->rows ? ocl_round_up(lines->size, lanes) : lines->size;
  int64_t inner = lines->rows ? 1 : ocl_round_up(lines->inner, lanes);
  return device->is_cpu && lines->outer * size * inner <= OCL_SMALL;
}

static void choose(const graft_device *device, ocl_lines *lines) {
  int64_t side = lines->rows ? lines->size : lines->inner;
  lines->vec = ocl_lanes_within(lines->rows || device->is_cpu ? device->vector_width : 1, side);
  lines->small = is_small(device, lines);
  if (lines->small) lines->vec = device->vector_width;
  lines->local = device->is_cpu ? 1 : lines->rows && lines->size >= 2048 ? 256 : 64;
}

ocl_lines ocl_lines_of(const graft_device *device, const graft_dl_tensor *tensor, int64_t dim) {
  ocl_lines lines = {.outer = 1, .size = 1, .inner = 1};
  for (int64_t d = 0; d < tensor->ndim; d++) {
    *(d < dim ? &lines.outer : d == dim ? &lines.size : &lines.inner) *= tensor->shape[d];
  }
  ocl_lines_plan(device, &lines);
  return lines;
}

void ocl_lines_plan(const graft_device *device, ocl_lines *lines) {
  lines->rows = lines->inner == 1;
  choose(device, lines);
}

void ocl_lines_plan_columns(const graft_device *device, ocl_lines *lines) {
  lines->rows = false;
  choose(device, lines);
}

/* As in lines.cl: as many lines side by side as a warp has work-items. */
enum { WIDE = 32, ITEMS_OF_UNIT = 2048, STEPS_LEAST = 8, TOGETHER_MOST = 32 };

void ocl_lines_share(const graft_device *device, ocl_lines *lines) {
  if (device->is_cpu || lines->rows || lines->vec > 1) return;
  const int64_t units = ocl_round_up(lines->outer * lines->inner, WIDE);
  int64_t together = 1;
  while (together < TOGETHER_MOST && 2 * together * WIDE <= (int64_t)device->largest_group &&
         2 * together * units <= ITEMS_OF_UNIT * (int64_t)device->compute_units &&
         2 * together * STEPS_LEAST <= lines->size)
    together *= 2;
  if (together == 1) return;
  lines->together = together;
  lines->local = (size_t)(WIDE * together);
}

void ocl_lines_widen(const graft_device *device, ocl_lines *lines, size_t most) {
  if (device->is_cpu || !lines->rows) return;
  if (most > device->largest_group) most = device->largest_group;
  const int64_t items = ITEMS_OF_UNIT * (int64_t)device->compute_units;
  while (2 * lines->local <= most && lines->outer * 2 * (int64_t)lines->local <= items &&
         (int64_t)(lines->local * lines->vec) < lines->size)
    lines->local *= 2;
}

int64_t ocl_lines_part(const graft_device *device, int64_t elements) {
  enum { LEAST = 4096, UNIT = 64, GROUPS_CPU = 4, GROUPS_GPU = 16 }; /* elements; work-groups for each unit */
  const int64_t groups = (device->is_cpu ? GROUPS_CPU : GROUPS_GPU) * (int64_t)device->compute_units;
  return ocl_round_up(ocl_larger(ocl_ceil_divide(elements, groups), LEAST), UNIT);
}

void ocl_lines_head(ocl_text *head, const ocl_lines *lines, const ocl_dtype *compute) {
  ocl_head_types(head, compute, lines->vec, lines->local);
  if (lines->rows) ocl_text_add(head, "#define ROWS\n");
  if (lines->together) ocl_text_add(head, "#define TOGETHER %d\n", (int)lines->together);
}

ocl_lines_space ocl_lines_lay(ocl_kernel *kernel, const ocl_lines *lines) {
  int64_t items = kernel->device->is_cpu ? 8 * (int64_t)kernel->device->compute_units : INT32_MAX;
  ocl_lines_space space = {.size = lines->size, .inner = lines->inner};
  space.units_per_row = ocl_ceil_divide(lines->inner, lines->rows ? 1 : lines->vec);
  space.units = lines->outer * space.units_per_row;
  space.per_item = space.units > items ? ocl_ceil_divide(space.units, items) : 1;
  const int64_t sharing = lines->rows ? (int64_t)lines->local : lines->together ? lines->together : 1;
  ocl_kernel_size(kernel, ocl_ceil_divide(space.units, space.per_item) * sharing, lines->local);
  return space;
}

graft_status ocl_lines_set(ocl_kernel *kernel, const ocl_lines *lines) {
  const ocl_lines_space space = ocl_lines_lay(kernel, lines);
  return ocl_kernel_set(kernel, 1, &(ocl_argument)OCL_VALUE(space));
}
