/* Joining many parts on a CPU that lie one behind the other in the result: a copy of each would cost more than its
 * bytes, and one launch over a list of them does it. */
#include <stdlib.h>

#include "kernels/core/indexed.h"
#include "kernels/optimizer/lists.h"
#include "kernels/shape/shape.h"

/* From so many parts on, each of at most so many bytes: larger ones the copies of memory.c share between cores. */
enum { PARTS_MIN = 4, PART_BYTES_MAX = 1 << 20 };

bool ocl_joins_listed(const graft_device *device, const graft_args_cat *args) {
  const graft_tensor_list *parts = &args->tensors;
  const ocl_dtype *bits = ocl_dtype_of_bits(device, args->out->dl.dtype);
  if (parts->count < PARTS_MIN || !bits || bits->class == OCL_CLASS_COMPLEX) return false;
  int64_t largest = 0;
  for (uint64_t i = 0; i < parts->count; i++) largest = ocl_larger(largest, ocl_elements(parts->items[i]));
  return largest * (int64_t)bits->bytes <= PART_BYTES_MAX;
}

/* A part, and where it goes. */
typedef struct pair {
  graft_tensor_desc to, from;
} pair;

graft_status ocl_join_listed(const graft_exec *exec, const graft_args_cat *args) {
  const uint64_t count = args->tensors.count;
  const ocl_dtype *bits = ocl_dtype_of_bits(exec->device, args->out->dl.dtype);
  pair *pairs = malloc(count * (sizeof *pairs + 2 * sizeof(graft_tensor_desc *)));
  if (!pairs) return GRAFT_OUT_OF_MEMORY;
  const graft_tensor_desc **to = (const graft_tensor_desc **)(pairs + count), **from = to + count;
  uint64_t at = args->out->dl.byte_offset;
  for (uint64_t i = 0; i < count; i++) {
    pairs[i] = (pair){*args->tensors.items[i], *args->tensors.items[i]};
    pairs[i].from.dl.dtype = pairs[i].to.dl.dtype = bits->code;
    pairs[i].to.dl.data = args->out->dl.data;
    pairs[i].to.dl.byte_offset = at;
    at += (uint64_t)ocl_elements(&pairs[i].to) * bits->bytes;
    to[i] = &pairs[i].to;
    from[i] = &pairs[i].from;
  }
  const ocl_lists call = {.operands = 2,
                          .list = {{to, count}, {from, count}},
                          .dtypes = UINT64_MAX,
                          .same_dtype = true,
                          .defines = "",
                          .expression = "a"};
  const graft_status status = ocl_lists_run(exec, &call);
  free(pairs);
  return status;
}
