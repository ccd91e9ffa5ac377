/* randperm by a CPU: see keys.cl. */
#include "kernels/random/random.h"

/* As keys.cl has it. */
typedef struct permutation {
  uint64_t n, per_item, parts;
  uint64_t buckets, shift;
  uint64_t shares, share_shift;
} permutation;

typedef struct memo {
  ocl_kernel draw, begin, place, sort;
  uint64_t bytes; /* of the workspace */
} memo;

enum {
  DRAWN_AT_ONCE = 16,
  PART_LEAST = 4096,
  BUCKET = 2048, /* items of 16 KiB: some buckets are begun at once, and one is put in order in a core's own cache */
  BUCKETS_MOST = 4096,
  SHARE = 8,
  SHARES_MOST = 4096 /* as keys.cl has it */
};

/* The least power of two, two at least, by which n is no more than `each`; or the greatest there may be. */
static uint64_t power_for(uint64_t n, uint64_t each, uint64_t most) {
  uint64_t power = 2;
  while (power < most && power * each < n) power *= 2;
  return power;
}

static uint64_t bits_of(uint64_t power) {
  uint64_t bits = 0;
  while (power >> bits > 1) bits++;
  return bits;
}

static permutation space_of(const graft_device *device, int64_t n) {
  const int64_t parts = 8 * (int64_t)device->compute_units;
  const int64_t per_item = ocl_round_up(ocl_larger(ocl_ceil_divide(n, parts), PART_LEAST), DRAWN_AT_ONCE);
  permutation space = {
      .n = (uint64_t)n, .per_item = (uint64_t)per_item, .parts = (uint64_t)ocl_ceil_divide(n, per_item)};
  space.buckets = power_for(space.n, BUCKET, BUCKETS_MOST);
  space.shift = 64 - bits_of(space.buckets);
  space.shares = power_for(space.n, space.buckets * SHARE, SHARES_MOST);
  space.share_shift = 64 - bits_of(space.shares);
  return space;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const graft_tensor_desc *out = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, out->dl.dtype);
  const permutation space = space_of(device, out->dl.shape[0]);
  const struct {
    ocl_kernel *kernel;
    const char *entry;
    uint64_t items;
  } kernels[] = {{&memo->draw, "draw_keys", space.parts},
                 {&memo->begin, "begin_buckets", 1},
                 {&memo->place, "place_items", space.parts},
                 {&memo->sort, "sort_items", space.buckets}};
  graft_status status = GRAFT_OK;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, 1);
  ocl_text_add(&head, "#define D %s\n", dtype->name);
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels && status == GRAFT_OK; i++) {
    status = ocl_kernel_init(kernels[i].kernel, device, &head, OCL_RANDOM_FILES " random/keys", kernels[i].entry);
    if (status == GRAFT_OK) status = ocl_kernel_set(kernels[i].kernel, 1, &(ocl_argument)OCL_VALUE(space));
    ocl_kernel_size(kernels[i].kernel, (int64_t)kernels[i].items, 1);
  }
  ocl_text_free(&head);
  memo->bytes = 3 * space.n * sizeof(uint64_t) + space.parts * space.buckets * sizeof(uint32_t);
  return status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 4, .prepare = prepare};

graft_status ocl_permute_by_keys(const graft_exec *exec, const graft_philox *philox, const graft_tensor_desc *out) {
  memo *memo;
  ocl_place work;
  graft_status status = ocl_memo_get(exec, &memo_type, out, &memo);
  if (status == GRAFT_OK) status = ocl_workspace(exec, memo->bytes, &work);
  if (status != GRAFT_OK) return status;
  const uint64_t first_block = philox->offset / 4;
  const ocl_argument draw[] = {OCL_PLACE(work), OCL_VALUE(philox->seed), OCL_VALUE(first_block)};
  const ocl_argument own[] = {OCL_PLACE(work)};
  const ocl_argument sort[] = {OCL_TENSOR(out), OCL_PLACE(work)};
  status = ocl_launch(&memo->draw, exec->stream, OCL_ALL(draw));
  if (status == GRAFT_OK) status = ocl_launch(&memo->begin, exec->stream, OCL_ALL(own));
  if (status == GRAFT_OK) status = ocl_launch(&memo->place, exec->stream, OCL_ALL(own));
  return status == GRAFT_OK ? ocl_launch(&memo->sort, exec->stream, OCL_ALL(sort)) : status;
}
