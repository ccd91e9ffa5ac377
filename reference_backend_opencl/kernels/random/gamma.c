/* Gamma variates and their slopes: a work-item an element. */
#include "kernels/random/random.h"

typedef struct memo {
  ocl_kernel kernel;
  uint64_t elements;
} memo;

/* `kind` is the head's word, DRAWS or SLOPES. */
static graft_status prepare(memo *memo, graft_device *device, const graft_tensor_desc *out, const char *kind,
                            const char *files, const char *entry) {
  const ocl_dtype *dtype = ocl_dtype_of(device, out->dl.dtype);
  if (!dtype || dtype->class != OCL_CLASS_FLOAT) return GRAFT_UNIMPLEMENTED;
  size_t local = device->is_cpu ? 16 : 64;
  memo->elements = (uint64_t)ocl_elements(out);
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define D %s\n#define %s\n%s", dtype->name, kind,
               dtype->code == GRAFT_F64 ? "#define WIDE\n" : "");
  ocl_kernel_size(&memo->kernel, (int64_t)memo->elements, local);
  return ocl_kernel_make(&memo->kernel, device, &head, files, entry);
}

static graft_status prepare_draws(void *memo, graft_device *device, const void *from) {
  const graft_args_standard_gamma *args = from;
  return prepare(memo, device, args->out, "DRAWS", OCL_RANDOM_FILES " random/gamma", "draw_gamma");
}

static graft_status prepare_slopes(void *memo, graft_device *device, const void *from) {
  const graft_args_standard_gamma_grad *args = from;
  return prepare(memo, device, args->out, "SLOPES", "random/gamma", "slopes");
}

static const ocl_memo_type draws_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare_draws};
static const ocl_memo_type slopes_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare_slopes};

graft_status ocl_op_standard_gamma(const graft_exec *exec, const graft_args_standard_gamma *args) {
  memo *memo;
  if (!args->philox) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &draws_type, args, &memo);
  if (status != GRAFT_OK) return status;
  uint64_t first_block = args->philox->offset / 4;
  const ocl_argument arguments[] = {OCL_TENSOR(args->out), OCL_TENSOR(args->self), OCL_VALUE(args->philox->seed),
                                    OCL_VALUE(first_block), OCL_VALUE(memo->elements)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

graft_status ocl_op_standard_gamma_grad(const graft_exec *exec, const graft_args_standard_gamma_grad *args) {
  memo *memo;
  graft_status status = ocl_memo_get(exec, &slopes_type, args, &memo);
  if (status != GRAFT_OK) return status;
  const ocl_argument arguments[] = {OCL_TENSOR(args->out), OCL_TENSOR(args->self), OCL_TENSOR(args->output),
                                    OCL_VALUE(memo->elements)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}
