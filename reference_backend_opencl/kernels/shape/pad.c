/* Padding by a CPU, in one go. */
#include <string.h>

#include "kernels/core/indexed.h"
#include "kernels/shape/shape.h"

/* Innermost dimension first. */
typedef struct layout {
  int rank;
  int64_t out[OCL_DIMS_MAX], in[OCL_DIMS_MAX], before[OCL_DIMS_MAX];
} layout;

typedef struct memo {
  ocl_kernel kernel;
} memo;

static void push_outer(layout *to, int64_t out, int64_t in, int64_t before) {
  const int last = to->rank - 1;
  if (to->rank && to->out[last] == to->in[last] &&
      !to->before[last]) { /* nothing is added to it: one run with this one */
    to->before[last] = before * to->in[last];
    to->out[last] *= out;
    to->in[last] *= in;
    return;
  }
  to->out[to->rank] = out;
  to->in[to->rank] = in;
  to->before[to->rank++] = before;
}

static layout layout_of(const graft_args_constant_pad_nd *args) {
  const graft_dl_tensor *in = &args->self->dl, *out = &args->out->dl;
  layout made = {0};
  for (int d = in->ndim - 1; d >= 0; d--) {
    const uint64_t pair = 2 * (uint64_t)(in->ndim - 1 - d); /* the last dimension comes first */
    push_outer(&made, out->shape[d], in->shape[d], pair < args->pad.count ? args->pad.items[pair] : 0);
  }
  if (made.rank == 0) push_outer(&made, 1, 1, 0);
  return made;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const graft_args_constant_pad_nd *args = from;
  const ocl_dtype *bits = ocl_dtype_of_bits(device, args->out->dl.dtype);
  layout shape = layout_of(args);
  ocl_geometry geometry = {.rank = shape.rank, .operands = 1};
  memcpy(geometry.size, shape.out, sizeof shape.out);
  if (ocl_geometry_is_small(&geometry)) ocl_geometry_widen(&geometry);
  for (int d = shape.rank; d < geometry.rank; d++) shape.in[d] = 1;
  ocl_text head = {0};
  ocl_head_types(&head, bits, bits->class == OCL_CLASS_COMPLEX ? 1 : device->vector_width, 1);
  ocl_text_add(&head, "#define D %s\n#define RANK %d\n", bits->name, geometry.rank);
  graft_status status = ocl_kernel_make(&memo->kernel, device, &head, "shape/pad", "pad");
  if (status != GRAFT_OK) return status;
  ocl_cut cut;
  ocl_kernel_size(&memo->kernel, ocl_geometry_cut(device, &geometry, device->vector_width, &cut), 1);
  const int64_t row = geometry.size[0], cuts[] = {row, cut.chunk, cut.chunks, cut.per_item};
  geometry.size[0] = cut.chunks_per_row;
  int64_t space[3 * OCL_DIMS_MAX + 4];
  const int64_t *const parts[] = {geometry.size, shape.in, shape.before};
  const size_t rank = (size_t)geometry.rank;
  for (size_t i = 0; i < 3; i++) memcpy(space + i * rank, parts[i], rank * sizeof *space);
  memcpy(space + 3 * rank, cuts, sizeof cuts);
  return ocl_kernel_set(&memo->kernel, 1, &(ocl_argument){(3 * rank + 4) * sizeof *space, space});
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

graft_status ocl_pad(const graft_exec *exec, const graft_args_constant_pad_nd *args, const void *element) {
  memo *memo;
  if (ocl_elements(args->out) == 0) return GRAFT_OK;
  graft_status status = ocl_memo_get(exec, &memo_type, args, &memo);
  if (status != GRAFT_OK) return status;
  const size_t bytes = GRAFT_DTYPE_BYTES(args->out->dl.dtype);
  const ocl_argument arguments[] = {OCL_TENSOR(args->out), OCL_TENSOR(args->self), {bytes, element}};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}
