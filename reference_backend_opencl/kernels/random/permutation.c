/* randperm: a sort by random keys. */
#include "runtime/ocl.h"

enum { RUN = 32 }; /* pairs that one work-item sorts by itself */

typedef struct memo {
  ocl_kernel keys, merge, places;
  uint64_t n, chunk;
} memo;

static graft_status make_kernels(memo *memo, graft_device *device, const ocl_dtype *dtype) {
  size_t local = device->is_cpu ? 1 : 64;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define PERMUTE\n#define D %s\n", dtype->name);
  graft_status status = ocl_kernel_init(&memo->keys, device, &head, "random/random", "keys");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->merge, device, &head, "random/random", "merge");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->places, device, &head, "random/random", "places");
  ocl_text_free(&head);
  memo->chunk = device->is_cpu ? 2048 : 2 * RUN;
  int64_t n = (int64_t)memo->n;
  ocl_kernel_size(&memo->keys, ocl_ceil_divide(n, RUN), local);
  ocl_kernel_size(&memo->places, ocl_ceil_divide(n, (int64_t)memo->chunk), local);
  /* Shorter chunks while runs are short: a chunk lies in one pair of runs. */
  ocl_kernel_size(&memo->merge, ocl_ceil_divide(n, 2 * RUN), local);
  return status;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const graft_tensor_desc *desc = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, desc->dl.dtype);
  if (!dtype || dtype->class == OCL_CLASS_COMPLEX || dtype->class == OCL_CLASS_BOOL) return GRAFT_UNIMPLEMENTED;
  memo->n = (uint64_t)desc->dl.shape[0];
  return make_kernels(memo, device, dtype);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 3, .prepare = prepare};

static graft_status permute(const graft_exec *exec, const graft_philox *philox, const graft_tensor_desc *out) {
  memo *memo;
  ocl_place from;
  if (!philox) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &memo_type, out, &memo);
  if (status != GRAFT_OK) return status;
  uint64_t half = memo->n * 16, run = RUN, chunk = 2 * RUN, first_block = philox->offset / 4;
  status = ocl_workspace(exec, 2 * half, &from);
  if (status != GRAFT_OK) return status;
  ocl_place to = {from.buffer, from.offset + half};
  const ocl_argument keys[] = {OCL_PLACE(from), OCL_VALUE(philox->seed), OCL_VALUE(first_block), OCL_VALUE(memo->n),
                               OCL_VALUE(run)};
  status = ocl_launch(&memo->keys, exec->stream, OCL_ALL(keys));
  for (; run < memo->n && status == GRAFT_OK; run *= 2) {
    const ocl_argument merge[] = {OCL_BUFFER(to.buffer), OCL_VALUE(to.offset), OCL_VALUE(from.offset),
                                  OCL_VALUE(memo->n),    OCL_VALUE(run),       OCL_VALUE(chunk)};
    status = ocl_launch(&memo->merge, exec->stream, OCL_ALL(merge));
    ocl_place other = from;
    from = to;
    to = other;
  }
  if (status != GRAFT_OK) return status;
  const ocl_argument places[] = {OCL_TENSOR(out), OCL_PLACE(from), OCL_VALUE(memo->n), OCL_VALUE(memo->chunk)};
  return ocl_launch(&memo->places, exec->stream, OCL_ALL(places));
}

graft_status ocl_op_randperm(const graft_exec *exec, const graft_args_randperm *args) {
  return permute(exec, args->philox, args->out);
}

graft_status ocl_op_randperm_generator(const graft_exec *exec, const graft_args_randperm_generator *args) {
  return permute(exec, args->philox, args->out);
}
