/* randperm: a sort by random keys. */
#include "runtime/ocl.h"

/* As random.cl has it. */
typedef struct permutation {
  uint64_t n, per_item, buckets;
  uint64_t shift, buckets_per_item, run;
} permutation;

typedef struct memo {
  ocl_kernel count, begin, place, sort;
  permutation space;
  uint64_t pairs_bytes, counts_bytes; /* in the workspace: pairs, and behind them counts of buckets, thrice */
} memo;

/* Pairs in a bucket, at most in the mean: a work-item of a GPU waits for each; and work-groups of one that look where
 * buckets begin, each of which reads the counts of all buckets before its own. */
enum { PER_BUCKET = 16, PER_BUCKET_OF_GPU = 8, SCAN_GROUP = 256, SCAN_GROUPS = 64 };

static graft_status make_kernels(memo *memo, graft_device *device, const ocl_dtype *dtype) {
  const char *const entries[] = {"count_keys", "begin_buckets", "place_pairs", "sort_buckets"};
  ocl_kernel *const kernels[] = {&memo->count, &memo->begin, &memo->place, &memo->sort};
  const permutation *space = &memo->space;
  const size_t local = device->is_cpu ? 1 : 64;
  const ocl_argument last = OCL_VALUE(*space);
  graft_status status = GRAFT_OK;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define PERMUTE\n#define D %s\n", dtype->name);
  for (int i = 0; i < 4 && status == GRAFT_OK; i++) {
    status = ocl_kernel_init(kernels[i], device, &head, "random/random", entries[i]);
    if (status == GRAFT_OK) status = ocl_kernel_set(kernels[i], 1, &last);
  }
  ocl_text_free(&head);
  const int64_t blocks = ocl_ceil_divide((int64_t)space->n, 2);
  ocl_kernel_size(&memo->count, ocl_ceil_divide(blocks, (int64_t)space->per_item), local);
  const size_t scan = device->is_cpu ? 1 : SCAN_GROUP;
  ocl_kernel_size(&memo->begin, ocl_ceil_divide((int64_t)space->buckets, (int64_t)space->run) * (int64_t)scan, scan);
  ocl_kernel_size(&memo->place, ocl_ceil_divide(blocks, (int64_t)space->per_item), local);
  ocl_kernel_size(&memo->sort, ocl_ceil_divide((int64_t)space->buckets, (int64_t)space->buckets_per_item), local);
  return status;
}

/* Two buckets at least, since a key can't be shifted by all of its bits. */
static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const graft_tensor_desc *desc = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, desc->dl.dtype);
  if (!dtype || dtype->class == OCL_CLASS_COMPLEX || dtype->class == OCL_CLASS_BOOL) return GRAFT_UNIMPLEMENTED;
  uint64_t n = (uint64_t)desc->dl.shape[0];
  if (n > UINT32_MAX) return GRAFT_UNIMPLEMENTED;
  memo->space =
      (permutation){.n = n, .per_item = device->is_cpu ? 1024 : 1, .buckets = 2, .shift = 63, .buckets_per_item = 1};
  permutation *space = &memo->space;
  const uint64_t each = device->is_cpu ? PER_BUCKET : PER_BUCKET_OF_GPU;
  for (; space->buckets * each < n; space->buckets *= 2) space->shift--;
  if (device->is_cpu) space->buckets_per_item = 128;
  const uint64_t least = 4 * SCAN_GROUP, run = space->buckets / SCAN_GROUPS;
  space->run = device->is_cpu ? space->buckets : run > least ? run : least;
  memo->pairs_bytes = n * 2 * sizeof(uint64_t);
  memo->counts_bytes = space->buckets * sizeof(uint32_t);
  return make_kernels(memo, device, dtype);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 4, .prepare = prepare};

static graft_status permute(const graft_exec *exec, const graft_philox *philox, const graft_tensor_desc *out) {
  memo *memo;
  ocl_place pairs;
  const uint32_t zero = 0;
  if (!philox) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &memo_type, out, &memo);
  if (status != GRAFT_OK) return status;
  status = ocl_workspace(exec, memo->pairs_bytes + 3 * memo->counts_bytes, &pairs);
  if (status != GRAFT_OK) return status;
  const ocl_place counts = {pairs.buffer, pairs.offset + memo->pairs_bytes};
  const uint64_t first_block = philox->offset / 4;
  status = ocl_fill(exec->stream, counts.buffer, counts.offset, memo->counts_bytes, &zero, sizeof zero);
  const ocl_argument count[] = {OCL_PLACE(counts), OCL_VALUE(philox->seed), OCL_VALUE(first_block)};
  if (status == GRAFT_OK) status = ocl_launch(&memo->count, exec->stream, OCL_ALL(count));
  const ocl_argument begin[] = {OCL_PLACE(counts)};
  if (status == GRAFT_OK) status = ocl_launch(&memo->begin, exec->stream, OCL_ALL(begin));
  const ocl_argument place[] = {OCL_PLACE(pairs), OCL_PLACE(counts), OCL_VALUE(philox->seed), OCL_VALUE(first_block)};
  if (status == GRAFT_OK) status = ocl_launch(&memo->place, exec->stream, OCL_ALL(place));
  const ocl_argument sort[] = {OCL_TENSOR(out), OCL_PLACE(pairs), OCL_PLACE(counts)};
  return status == GRAFT_OK ? ocl_launch(&memo->sort, exec->stream, OCL_ALL(sort)) : status;
}

graft_status ocl_op_randperm(const graft_exec *exec, const graft_args_randperm *args) {
  return permute(exec, args->philox, args->out);
}

graft_status ocl_op_randperm_generator(const graft_exec *exec, const graft_args_randperm_generator *args) {
  return permute(exec, args->philox, args->out);
}
