/* Joining on a GPU, where a copy of each part would cost more than its bytes. */
#include "kernels/core/indexed.h"
#include "kernels/shape/shape.h"

enum { PARTS = 8 /* as join.cl has it */, LOCAL = 128 };

typedef struct memo {
  ocl_kernel kernel;
  int vec; /* elements that a work-item moves */
} memo;

/* As join.cl has it. */
typedef struct joined {
  int64_t width, columns[PARTS], start[PARTS], pieces[PARTS], end[PARTS];
} joined;

/* The elements of a row: of the joined dim and those inside it. */
static int64_t columns_of(const graft_dl_tensor *tensor, int64_t dim) {
  int64_t columns = 1;
  for (int64_t d = dim; d < tensor->ndim; d++) columns *= tensor->shape[d];
  return columns;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  const graft_args_cat *args = from;
  const ocl_dtype *bits = ocl_dtype_of_bits(device, args->out->dl.dtype);
  memo *memo = pointer;
  memo->vec = bits->class == OCL_CLASS_COMPLEX ? 1 : (int)device->vector_width;
  ocl_text head = {0};
  ocl_head_types(&head, bits, (unsigned)memo->vec, LOCAL);
  ocl_text_add(&head, "#define D %s\n", bits->name);
  graft_status status = ocl_kernel_make(&memo->kernel, device, &head, "shape/join", "join");
  ocl_kernel_size(&memo->kernel, 1, LOCAL);
  return status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

/* The parts from number `first` on, as many as a launch has, whose rows begin at *start. Returns its work-items. */
static int64_t lay(const graft_args_cat *args, uint64_t first, int vec, int64_t *start, joined *shape) {
  const int64_t width = columns_of(&args->out->dl, args->dim), rows = ocl_elements(args->out) / width;
  int64_t end = 0;
  shape->width = width;
  for (uint64_t k = 0; k < PARTS; k++) {
    const graft_tensor_desc *part = first + k < args->tensors.count ? args->tensors.items[first + k] : NULL;
    shape->columns[k] = part && ocl_elements(part) ? columns_of(&part->dl, args->dim) : 0;
    shape->pieces[k] = ocl_ceil_divide(shape->columns[k], vec);
    shape->start[k] = *start;
    *start += shape->columns[k];
    shape->end[k] = end += rows * shape->pieces[k];
  }
  return end;
}

graft_status ocl_join(const graft_exec *exec, const graft_args_cat *args) {
  memo *memo;
  int64_t start = 0;
  graft_status status = ocl_memo_get(exec, &memo_type, args, &memo);
  for (uint64_t first = 0; first < args->tensors.count && status == GRAFT_OK; first += PARTS) {
    joined shape;
    const int64_t items = lay(args, first, memo->vec, &start, &shape);
    if (!items) continue;
    ocl_argument arguments[2 * (PARTS + 1) + 1] = {OCL_TENSOR(args->out)};
    cl_uint n = 2;
    for (uint64_t k = 0; k < PARTS; k++) { /* what has no elements may have no memory */
      const graft_tensor_desc *part = shape.columns[k] ? args->tensors.items[first + k] : args->out;
      arguments[n++] = (ocl_argument){sizeof(cl_mem), &part->dl.data->handle};
      arguments[n++] = (ocl_argument){sizeof(uint64_t), &part->dl.byte_offset};
    }
    arguments[n++] = (ocl_argument)OCL_VALUE(shape);
    status = ocl_launch_groups(&memo->kernel, exec->stream, (size_t)ocl_ceil_divide(items, LOCAL), n, arguments);
  }
  return status;
}
