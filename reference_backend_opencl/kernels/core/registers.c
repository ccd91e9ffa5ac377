/* The tiles of registers.cl. */
#include "kernels/core/registers.h"

/* How many multiplications a unit makes at a time in each, relative to each other, and of how many groups that takes at
 * once. */
static const struct {
  int64_t m, n, item_m, item_n;
  double speed;
  int64_t groups;
} sizes[] = {{128, 128, 8, 8, 100, 1}, {64, 64, 8, 4, 80, 2}, {32, 128, 4, 8, 60, 2}, {16, 128, 4, 8, 45, 4}};

/* Of K, in a part; what it takes to write and read a sum of a part, in multiplications of the device in the largest
 * tile, and to launch the kernel that does, in those of a unit. */
enum { SPLIT_LEAST = 128, KEPT_COST = 64, COMBINE_COST = 600000 };

bool ocl_registers_serve(const graft_device *device, const ocl_dtype *dtype) {
  return !device->is_cpu && dtype->code == GRAFT_F32;
}

static double cost_of(const graft_device *device, const int64_t result[3], int64_t k, int which, int64_t splits) {
  const int64_t units = device->compute_units;
  const int64_t tiles =
      ocl_ceil_divide(result[0], sizes[which].m) * ocl_ceil_divide(result[1], sizes[which].n) * result[2] * splits;
  int64_t rounds = ocl_ceil_divide(tiles, units);
  if (rounds < sizes[which].groups) rounds = sizes[which].groups;
  const double size = (double)(sizes[which].m * sizes[which].n);
  const double product = (double)rounds * size * (double)ocl_ceil_divide(k, splits) * 100 / sizes[which].speed;
  return product + (splits > 1 ? (double)tiles * size * KEPT_COST / (double)units + COMBINE_COST : 0);
}

ocl_registers ocl_registers_for(const graft_device *device, int64_t rows, int64_t columns, int64_t batches, int64_t k,
                                int64_t splits_most) {
  const int64_t result[3] = {rows, columns, batches};
  int best = 0;
  int64_t best_splits = 1;
  double least = cost_of(device, result, k, 0, 1);
  for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
    for (int64_t splits = 1; splits <= splits_most && (splits == 1 || splits * SPLIT_LEAST <= k); splits++) {
      const double cost = cost_of(device, result, k, i, splits);
      if (cost < least) least = cost, best = i, best_splits = splits;
    }
  }
  return (ocl_registers){.m = sizes[best].m,
                         .n = sizes[best].n,
                         .item_m = sizes[best].item_m,
                         .item_n = sizes[best].item_n,
                         .lanes = sizes[best].m / sizes[best].item_m * (sizes[best].n / sizes[best].item_n),
                         .splits = best_splits};
}

void ocl_head_registers(ocl_text *head, const ocl_registers *r) {
  ocl_text_add(head, "#define TILE_M %d\n#define TILE_N %d\n#define ITEM_M %d\n#define ITEM_N %d\n", (int)r->m,
               (int)r->n, (int)r->item_m, (int)r->item_n);
}
