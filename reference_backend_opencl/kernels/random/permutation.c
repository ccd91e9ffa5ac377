/* randperm: a sort by random keys. */
#include <stdlib.h>

#include "kernels/families.h"

enum { RUN = 32 }; /* pairs that one work-item sorts by itself */

typedef struct memo {
  ocl_kernel keys, merge, places;
  uint64_t n, chunk;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->keys);
  ocl_kernel_destroy(&memo->merge);
  ocl_kernel_destroy(&memo->places);
  free(memo);
}

static void set_items(ocl_kernel *kernel, size_t local, uint64_t items) {
  kernel->local[0] = local;
  kernel->global[0] = (items + local - 1) / local * local;
}

static graft_status prepare(memo *memo, graft_device *device, const ocl_dtype *dtype) {
  size_t local = device->is_cpu ? 1 : 64;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define PERMUTE\n#define D %s\n", dtype->name);
  graft_status status = head.failed ? GRAFT_OUT_OF_MEMORY : GRAFT_OK;
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->keys, device, head.items, "random/random", "keys");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->merge, device, head.items, "random/random", "merge");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->places, device, head.items, "random/random", "places");
  ocl_text_free(&head);
  memo->chunk = device->is_cpu ? 2048 : 2 * RUN;
  set_items(&memo->keys, local, (memo->n + RUN - 1) / RUN);
  set_items(&memo->places, local, (memo->n + memo->chunk - 1) / memo->chunk);
  /* Shorter chunks while runs are short: a chunk lies in one pair of runs. */
  set_items(&memo->merge, local, (memo->n + 2 * RUN - 1) / (2 * RUN));
  return status;
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *desc_pointer, void **out) {
  const graft_tensor_desc *desc = desc_pointer;
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, desc->dl.dtype);
  (void)args;
  if (!dtype || dtype->class == OCL_CLASS_COMPLEX || dtype->class == OCL_CLASS_BOOL) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  memo->n = (uint64_t)desc->dl.shape[0];
  graft_status status = prepare(memo, exec->device, dtype);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

static graft_status permute(const graft_exec *exec, const graft_philox *philox, const graft_tensor_desc *out) {
  void *pointer;
  if (!philox || GRAFT_HAS(philox, graft_philox, state)) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, NULL, out, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  graft_buffer *work;
  uint64_t from, half = memo->n * 16, run = RUN, chunk = 2 * RUN, first_block = philox->offset / 4;
  status = exec->device->plugin->host->workspace(exec, 2 * half, 64, &work, &from);
  if (status != GRAFT_OK) return status;
  uint64_t to = from + half;
  const ocl_argument keys[] = {OCL_BUFFER(work),       OCL_VALUE(from),    OCL_VALUE(philox->seed),
                               OCL_VALUE(first_block), OCL_VALUE(memo->n), OCL_VALUE(run)};
  status = ocl_launch(&memo->keys, exec->stream, 6, keys);
  for (; run < memo->n && status == GRAFT_OK; run *= 2) {
    const ocl_argument merge[] = {OCL_BUFFER(work),   OCL_VALUE(to),  OCL_VALUE(from),
                                  OCL_VALUE(memo->n), OCL_VALUE(run), OCL_VALUE(chunk)};
    status = ocl_launch(&memo->merge, exec->stream, 6, merge);
    uint64_t other = from;
    from = to;
    to = other;
  }
  if (status != GRAFT_OK) return status;
  const ocl_argument places[] = {OCL_TENSOR(out), OCL_BUFFER(work), OCL_VALUE(from), OCL_VALUE(memo->n),
                                 OCL_VALUE(memo->chunk)};
  return ocl_launch(&memo->places, exec->stream, 6, places);
}

graft_status ocl_op_randperm(const graft_exec *exec, const graft_args_randperm *args) {
  return permute(exec, args->philox, args->out);
}

graft_status ocl_op_randperm_generator(const graft_exec *exec, const graft_args_randperm_generator *args) {
  return permute(exec, args->philox, args->out);
}
