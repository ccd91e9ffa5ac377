/* See radix.h. */
#include "kernels/core/radix.h"

#include "runtime/nvidia.h"

enum {
  BINS = 256,
  BITS_MAX = 8,
  GROUP = 256,
  SMALL_GROUP = 64,
  NARROW_BYTES = 8, /* of an item, as core/items.cl has it */
  WIDE_BYTES = 16,
  TILE_BYTES = 32 << 10,
  TILE_LOCAL_BYTES = 48 << 10, /* what takes such a tile takes, with padding and counters; half a tile takes 32 KiB */
  BLOCKS_PER_UNIT = 4,
  BLOCKS_MAX = 4 * GROUP
};

int ocl_radix_bits(uint64_t largest) {
  int bits = 1;
  while (bits < 64 && largest >> bits) bits++;
  return bits;
}

static int item_bytes(bool narrow) {
  return narrow ? NARROW_BYTES : WIDE_BYTES;
}

int64_t ocl_radix_tile(const graft_device *device, bool narrow) {
  const int64_t bytes = device->local_bytes >= TILE_LOCAL_BYTES ? TILE_BYTES : TILE_BYTES / 2;
  return bytes / item_bytes(narrow);
}

/* Smaller tiles cost more an item, but where there are too few for all units the others wait for them. */
static void plan_tile(ocl_radix_plan *plan, const graft_device *device) {
  const int most = (int)(ocl_radix_tile(device, plan->narrow) / GROUP), least = 4;
  plan->local = plan->size <= 4 * SMALL_GROUP ? SMALL_GROUP : GROUP;
  plan->each = 1;
  while (plan->each < most && plan->each * (int64_t)plan->local < plan->size) plan->each *= 2;
  plan->one_tile = plan->size <= plan->each * (int64_t)plan->local;
  while (!plan->one_tile && plan->each > least &&
         plan->lines * ocl_ceil_divide(plan->size, plan->each * (int64_t)plan->local) < (int64_t)device->compute_units)
    plan->each /= 2;
}

void ocl_radix_plan_bits(ocl_radix_plan *plan, int bits) {
  plan->bits = bits;
  plan->passes = plan->one_tile ? 1 : (int)ocl_ceil_divide(bits, BITS_MAX);
}

ocl_radix_plan ocl_radix_plan_of(const graft_device *device, int64_t lines, int64_t size, int bits, bool narrow) {
  ocl_radix_plan plan = {
      .lines = lines, .size = size, .inner = 1, .length = size, .parts = 1, .kept = size, .narrow = narrow};
  plan.warps = ocl_has_warps(device);
  plan_tile(&plan, device);
  ocl_radix_plan_bits(&plan, bits);
  /* As many blocks as work side by side, and radix_scan has work-items for. */
  const int64_t tile = plan.each * (int64_t)plan.local, tiles = ocl_ceil_divide(size, tile);
  const int64_t wanted = ocl_ceil_divide(BLOCKS_PER_UNIT * (int64_t)device->compute_units, lines);
  plan.stretch = ocl_ceil_divide(tiles, wanted < BLOCKS_MAX ? wanted : BLOCKS_MAX) * tile;
  plan.blocks = ocl_ceil_divide(size, plan.stretch);
  plan.items_bytes = (uint64_t)(lines * size * item_bytes(narrow));
  plan.counts_bytes = (uint64_t)(lines * BINS * (plan.blocks + 1)) * sizeof(uint32_t);
  return plan;
}

void ocl_radix_head(ocl_text *head, const ocl_radix_plan *plan) {
  ocl_text_add(head, "#define EACH %d\n%s%s%s", plan->each, plan->narrow ? "#define NARROW\n" : "",
               plan->one_tile ? "#define ONE_TILE\n" : "", plan->warps ? "#define WARPS\n" : "");
}

/* As radix.cl has it. */
typedef struct space {
  int64_t lines, size, inner, length, parts, skipped, kept, stretch, blocks;
} space;

graft_status ocl_radix_init(ocl_kernel kernels[OCL_RADIX_KERNELS], graft_device *device, const ocl_text *head,
                            const char *files, const ocl_radix_plan *plan) {
  static const char *const entries[] = {"radix_count", "radix_scan", "radix_move"};
  const space space = {plan->lines,   plan->size, plan->inner,   plan->length, plan->parts,
                       plan->skipped, plan->kept, plan->stretch, plan->blocks};
  graft_status status = GRAFT_OK;
  for (int k = plan->one_tile ? OCL_RADIX_MOVE : 0; k < OCL_RADIX_KERNELS && status == GRAFT_OK; k++) {
    status = ocl_kernel_init(&kernels[k], device, head, files, plan->one_tile ? "radix_tile" : entries[k]);
    if (status == GRAFT_OK) status = ocl_kernel_set(&kernels[k], 1, &(ocl_argument)OCL_VALUE(space));
    ocl_kernel_size(&kernels[k], plan->lines * plan->blocks * (int64_t)plan->local, plan->local);
  }
  return status;
}

graft_status ocl_radix_pass(const graft_exec *exec, ocl_kernel kernels[OCL_RADIX_KERNELS], const ocl_radix_plan *plan,
                            int pass, ocl_place from, ocl_place counts, cl_uint sinks, const ocl_argument *sink) {
  const cl_int shift = pass * plan->bits / plan->passes, end = (pass + 1) * plan->bits / plan->passes;
  const cl_int bits = end - shift;
  ocl_argument move[OCL_ARGUMENTS_MAX];
  cl_uint n = 0;
  for (; n < sinks; n++) move[n] = sink[n];
  move[n++] = (ocl_argument)OCL_BUFFER(from.buffer);
  move[n++] = (ocl_argument)OCL_VALUE(from.offset);
  if (plan->one_tile) {
    move[n++] = (ocl_argument)OCL_VALUE(shift);
    move[n++] = (ocl_argument)OCL_VALUE(end);
    return ocl_launch(&kernels[OCL_RADIX_MOVE], exec->stream, n, move);
  }
  const ocl_argument count[] = {OCL_PLACE(counts), OCL_PLACE(from), OCL_VALUE(shift), OCL_VALUE(bits)};
  graft_status status = ocl_launch(&kernels[OCL_RADIX_COUNT], exec->stream, OCL_ALL(count));
  const ocl_argument scan[] = {OCL_PLACE(counts), OCL_VALUE(bits)};
  if (status == GRAFT_OK) {
    status = ocl_launch_groups(&kernels[OCL_RADIX_SCAN], exec->stream, (size_t)plan->lines << bits, OCL_ALL(scan));
  }
  move[n++] = (ocl_argument)OCL_BUFFER(counts.buffer);
  move[n++] = (ocl_argument)OCL_VALUE(counts.offset);
  move[n++] = (ocl_argument)OCL_VALUE(shift);
  move[n++] = (ocl_argument)OCL_VALUE(bits);
  return status == GRAFT_OK ? ocl_launch(&kernels[OCL_RADIX_MOVE], exec->stream, n, move) : status;
}

graft_status ocl_radix_sort(const graft_exec *exec, ocl_kernel kernels[OCL_RADIX_KERNELS], const ocl_radix_plan *plan,
                            ocl_place *items, ocl_place *other, ocl_place counts) {
  graft_status status = GRAFT_OK;
  for (int pass = 0; pass < plan->passes && status == GRAFT_OK; pass++) {
    const ocl_argument to[] = {OCL_PLACE(*other)};
    status = ocl_radix_pass(exec, kernels, plan, pass, *items, counts, OCL_ALL(to));
    const ocl_place swap = *items;
    *items = *other;
    *other = swap;
  }
  return status;
}
