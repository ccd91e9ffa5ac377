/* See ocl_scales_make in matmul.h. */
#include "kernels/matmul/matmul.h"

enum { LOCAL = 64 };
/* As scales.cl has it. */
typedef struct scales {
  int64_t rows, columns, step_a, step_b, step_bias;
} scales;

static int64_t even(int64_t count) {
  return ocl_round_up(count, OCL_TENSOR_VECTOR);
}

int64_t ocl_scales_count(int64_t rows, int64_t columns) {
  return even(rows) + 2 * even(columns) + 1;
}

/* Of one number for all: 0. */
static int64_t step_of(const graft_tensor_desc *scale, int dim) {
  return scale && ocl_elements(scale) > 1 ? scale->dl.strides[dim] : 0;
}

static void define(ocl_text *head, graft_device *device, const char *name, const graft_tensor_desc *tensor) {
  if (tensor) ocl_text_add(head, "#define %s %s\n", name, ocl_dtype_of(device, tensor->dl.dtype)->name);
}

graft_status ocl_scales_make(ocl_kernel *kernel, graft_device *device, const ocl_scales *of, int64_t rows,
                             int64_t columns) {
  ocl_text head = {0};
  ocl_head_types(&head, ocl_dtype_of(device, GRAFT_F32), 1, LOCAL);
  define(&head, device, "D_A", of->a);
  define(&head, device, "D_B", of->b);
  define(&head, device, "D_BIAS", of->bias);
  define(&head, device, "D_LAST", of->last);
  graft_status status = ocl_kernel_make(kernel, device, &head, "matmul/scales", "gather_scales");
  if (status != GRAFT_OK) return status;
  const scales s = {.rows = even(rows),
                    .columns = even(columns),
                    .step_a = step_of(of->a, 0),
                    .step_b = step_of(of->b, 1),
                    .step_bias = step_of(of->bias, 0)};
  ocl_kernel_size(kernel, ocl_scales_count(rows, columns), LOCAL);
  const ocl_argument constants[] = {OCL_VALUE(rows), OCL_VALUE(columns), OCL_VALUE(s)};
  return ocl_kernel_set(kernel, 3, constants);
}

graft_status ocl_scales_gather(ocl_kernel *kernel, graft_stream *stream, const ocl_scales *of, ocl_place to) {
  const graft_tensor_desc *bias = of->bias ? of->bias : of->a, *last = of->last ? of->last : of->a;
  const ocl_argument arguments[] = {OCL_PLACE(to), OCL_TENSOR(of->a), OCL_TENSOR(of->b), OCL_TENSOR(bias),
                                    OCL_TENSOR(last)};
  return ocl_launch(kernel, stream, OCL_ALL(arguments));
}
