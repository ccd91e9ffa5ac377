/* randperm: a sort by random keys; by a CPU in keys.c. */
#include "kernels/random/random.h"

/* As random.cl has it. */
typedef struct permutation {
  uint64_t n, per_item, buckets;
  uint64_t shift, run;
} permutation;

typedef struct memo {
  ocl_kernel count, runs, begin, place, rank;
  bool has_runs; /* several work-groups look where buckets begin */
  permutation space;
  /* In the workspace: pairs, and behind them what random.cl says of counts. */
  uint64_t pairs_bytes, counts_bytes, all_counts_bytes;
} memo;

/* Pairs in a bucket, at most in the mean; and work-groups of how many work-items look where the buckets of a run begin.
 */
enum { GROUP = 64, PER_BUCKET = 8, SCAN_GROUP = 256, RUN_LEAST = 4 * SCAN_GROUP, RUNS_MOST = 4096 };

static graft_status make_kernels(memo *memo, graft_device *device, const ocl_dtype *dtype) {
  const permutation *space = &memo->space;
  const int64_t blocks = ocl_ceil_divide(ocl_ceil_divide((int64_t)space->n, 2), (int64_t)space->per_item);
  const int64_t scans = ocl_ceil_divide((int64_t)space->buckets, (int64_t)space->run) * SCAN_GROUP;
  const struct {
    ocl_kernel *kernel;
    const char *entry;
    int64_t items;
    size_t local;
  } kernels[] = {{&memo->count, "count_keys", blocks, GROUP},
                 {&memo->runs, "sum_runs", scans, SCAN_GROUP},
                 {&memo->begin, "begin_buckets", scans, SCAN_GROUP},
                 {&memo->place, "place_pairs", blocks, GROUP},
                 {&memo->rank, "rank_pairs", (int64_t)space->n, GROUP}};
  const ocl_argument last = OCL_VALUE(*space);
  graft_status status = GRAFT_OK;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, GROUP);
  ocl_text_add(&head, "#define PERMUTE\n#define D %s\n", dtype->name);
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels && status == GRAFT_OK; i++) {
    status = ocl_kernel_init(kernels[i].kernel, device, &head, OCL_RANDOM_FILES, kernels[i].entry);
    if (status == GRAFT_OK) status = ocl_kernel_set(kernels[i].kernel, 1, &last);
    ocl_kernel_size(kernels[i].kernel, kernels[i].items, kernels[i].local);
  }
  ocl_text_free(&head);
  return status;
}

/* Two buckets at least, since a key can't be shifted by all of its bits. */
static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const graft_tensor_desc *desc = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, desc->dl.dtype);
  const uint64_t n = (uint64_t)desc->dl.shape[0];
  memo->space = (permutation){.n = n, .per_item = 1, .buckets = 2, .shift = 63};
  permutation *space = &memo->space;
  for (; space->buckets * PER_BUCKET < n; space->buckets *= 2) space->shift--;
  const uint64_t run = space->buckets / RUNS_MOST;
  space->run = run > RUN_LEAST ? run : RUN_LEAST;
  memo->has_runs = space->run < space->buckets;
  memo->pairs_bytes = n * 2 * sizeof(uint64_t);
  memo->counts_bytes = space->buckets * sizeof(uint32_t);
  memo->all_counts_bytes = 3 * memo->counts_bytes + (space->buckets / space->run + 1) * sizeof(uint32_t);
  return make_kernels(memo, device, dtype);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 5, .prepare = prepare};

static graft_status permute(const graft_exec *exec, const graft_philox *philox, const graft_tensor_desc *out) {
  memo *memo;
  ocl_place pairs;
  const uint32_t zero = 0;
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, out->dl.dtype);
  if (!philox || !dtype || dtype->class == OCL_CLASS_COMPLEX || dtype->class == OCL_CLASS_BOOL)
    return GRAFT_UNIMPLEMENTED;
  if (out->dl.shape[0] > UINT32_MAX) return GRAFT_UNIMPLEMENTED;
  if (exec->device->is_cpu) return ocl_permute_by_keys(exec, philox, out);
  graft_status status = ocl_memo_get(exec, &memo_type, out, &memo);
  if (status != GRAFT_OK) return status;
  status = ocl_workspace(exec, memo->pairs_bytes + memo->all_counts_bytes, &pairs);
  if (status != GRAFT_OK) return status;
  const ocl_place counts = {pairs.buffer, pairs.offset + memo->pairs_bytes};
  const uint64_t first_block = philox->offset / 4;
  status = ocl_fill(exec->stream, counts.buffer, counts.offset, memo->counts_bytes, &zero, sizeof zero);
  const ocl_argument count[] = {OCL_PLACE(counts), OCL_VALUE(philox->seed), OCL_VALUE(first_block)};
  if (status == GRAFT_OK) status = ocl_launch(&memo->count, exec->stream, OCL_ALL(count));
  const ocl_argument begin[] = {OCL_PLACE(counts)};
  if (status == GRAFT_OK && memo->has_runs) status = ocl_launch(&memo->runs, exec->stream, OCL_ALL(begin));
  if (status == GRAFT_OK) status = ocl_launch(&memo->begin, exec->stream, OCL_ALL(begin));
  const ocl_argument place[] = {OCL_PLACE(pairs), OCL_PLACE(counts), OCL_VALUE(philox->seed), OCL_VALUE(first_block)};
  if (status == GRAFT_OK) status = ocl_launch(&memo->place, exec->stream, OCL_ALL(place));
  const ocl_argument rank[] = {OCL_TENSOR(out), OCL_PLACE(pairs), OCL_PLACE(counts)};
  return status == GRAFT_OK ? ocl_launch(&memo->rank, exec->stream, OCL_ALL(rank)) : status;
}

graft_status ocl_op_randperm(const graft_exec *exec, const graft_args_randperm *args) {
  return permute(exec, args->philox, args->out);
}

graft_status ocl_op_randperm_generator(const graft_exec *exec, const graft_args_randperm_generator *args) {
  return permute(exec, args->philox, args->out);
}
