/* The tiles of registers.cl. */
#include "kernels/core/registers.h"

#include <math.h>

/* A tile; how many multiplications a unit makes at a time in it, relative to each other, where it has as many groups as
 * run on it at once, and how many of those it takes to come near. */
typedef struct tile {
  int64_t m, n, item_m, item_n, step, stages;
  double speed, groups;
} tile;

/* By way of registers, and by copies. The last has no speed. */
static const tile by_registers[] = {{128, 128, 8, 8, 8, 2, 100, 1},
                                    {64, 64, 8, 4, 8, 2, 80, 2},
                                    {32, 128, 4, 8, 8, 2, 60, 2},
                                    {16, 128, 4, 8, 8, 2, 45, 4},
                                    {0}};
static const tile by_copies[] = {{64, 256, 8, 8, 16, 3, 102, 1},   {128, 128, 8, 8, 16, 3, 100, 1},
                                 {32, 128, 8, 4, 16, 3, 100, 2.3}, {64, 64, 8, 4, 16, 3, 97, 2.3},
                                 {16, 128, 4, 8, 16, 3, 60, 4},    {0}};

/* Of K, in a part; what it takes to write and read a sum of a part, in multiplications of the device in the largest
 * tile, and to launch the kernel that does, in those of a unit. */
enum { SPLIT_LEAST = 128, KEPT_COST = 64, COMBINE_COST = 600000 };

bool ocl_registers_serve(const graft_device *device, const ocl_dtype *dtype) {
  return !device->is_cpu && dtype->code == GRAFT_F32;
}

/* Columns of a tile whose elements are copied one by one along K: measured on an H100. */
enum { ALONG_MOST = 128 };

static double cost_of(const graft_device *device, const ocl_product_size *size, const tile *t, int64_t splits) {
  const int64_t units = device->compute_units;
  const int64_t tiles =
      ocl_ceil_divide(size->rows, t->m) * ocl_ceil_divide(size->columns, t->n) * size->batches * splits;
  double rounds = (double)ocl_ceil_divide(tiles, units);
  if (rounds < t->groups) rounds = t->groups;
  const double sums = (double)(t->m * t->n);
  const double product = rounds * sums * (double)ocl_ceil_divide(size->k, splits) * 100 / t->speed;
  return product + (splits > 1 ? (double)tiles * sums * KEPT_COST / (double)units + COMBINE_COST : 0);
}

ocl_registers ocl_registers_for(const graft_device *device, const ocl_product_size *size, bool copies) {
  copies = copies && ocl_has_copies(device);
  const tile *const tiles = copies ? by_copies : by_registers, *best = tiles;
  int64_t best_splits = 1;
  double least = HUGE_VAL;
  for (const tile *t = tiles; t->speed > 0; t++) {
    if (size->along && t->n > ALONG_MOST) continue;
    for (int64_t splits = 1; splits <= size->splits_most && (splits == 1 || splits * SPLIT_LEAST <= size->k);
         splits++) {
      const double cost = cost_of(device, size, t, splits);
      if (cost < least) least = cost, best = t, best_splits = splits;
    }
  }
  return (ocl_registers){.m = best->m,
                         .n = best->n,
                         .item_m = best->item_m,
                         .item_n = best->item_n,
                         .lanes = best->m / best->item_m * (best->n / best->item_n),
                         .splits = best_splits,
                         .copies = copies,
                         .step = best->step,
                         .stages = best->stages};
}

void ocl_head_registers(ocl_text *head, const ocl_registers *r) {
  ocl_text_add(head, "#define TILE_M %d\n#define TILE_N %d\n#define ITEM_M %d\n#define ITEM_N %d\n", (int)r->m,
               (int)r->n, (int)r->item_m, (int)r->item_n);
  ocl_text_add(head, "#define COPIES %d\n#define STEP %d\n#define STAGES %d\n#define PENDING %d\n", r->copies,
               (int)r->step, (int)r->stages, (int)r->stages - 2);
}
