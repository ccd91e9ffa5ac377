/* Groups that begin with a matrix product, a convolution or the gradient of a norm: its kernels, made with what
 * follows, and their runs. */
#include "kernels/pointwise/fused_followed.h"

#include <string.h>

/* The last output of a dtype that is computed in as the first call's is; -1: none. */
static int find_main_output(const ocl_fused_kernel *k) {
  const ocl_dtype *product = k->values[k->product_value].dtype;
  int i = k->noutputs - 1;
  for (; i >= 0; i--) {
    const ocl_dtype *dtype = k->values[k->outputs[i].value].dtype;
    if (dtype->class == OCL_CLASS_FLOAT && dtype->bytes > 1 && !strcmp(dtype->compute, product->compute)) break;
  }
  return i;
}

static void lay_follower(ocl_followed *f, const ocl_fused_kernel *k) {
  enum { BATCH, ROW, COLUMN };
  const bool turned =
      f->convolution ? ocl_convolution_is_turned(f->convolution) : f->product && ocl_product_is_turned(f->product);
  const int order[] = {BATCH, turned ? COLUMN : ROW, turned ? ROW : COLUMN}, operands = k->geometry.operands;
  for (int i = 0; i < operands; i++) {
    for (int d = 0; d < 3; d++) f->space[d * operands + i] = ocl_fused_operand(k, i)->view.strides[order[d]];
  }
  f->space_bytes = 3 * (size_t)operands * sizeof *f->space;
}

/* The matrix to add as the product's slot would get it: spread over the result. */
static graft_tensor_desc spread(const graft_tensor_desc *addend, const graft_tensor_desc *out,
                                int64_t strides[OCL_DIMS_MAX]) {
  graft_tensor_desc wide = *addend;
  const graft_dl_tensor *t = &addend->dl;
  const int more = out->dl.ndim - t->ndim;
  for (int d = 0; d < out->dl.ndim; d++) strides[d] = d < more || t->shape[d - more] == 1 ? 0 : t->strides[d - more];
  wide.dl.ndim = out->dl.ndim;
  wide.dl.shape = out->dl.shape;
  wide.dl.strides = strides;
  return wide;
}

/* The main output in the shape of the product's. */
static graft_status make_product(ocl_followed *f, const graft_exec *exec, const ocl_fused_tensor *output,
                                 const ocl_text *before) {
  ocl_product_call call = f->call;
  const int ndim = call.out->dl.ndim;
  graft_tensor_desc to = *call.out, addend;
  int64_t strides[OCL_DIMS_MAX], of_addend[OCL_DIMS_MAX];
  memcpy(strides, output->view.strides + 3 - ndim, (size_t)ndim * sizeof *strides);
  to.dl.strides = strides;
  to.dl.dtype = output->desc->dl.dtype;
  if (call.addend) {
    addend = spread(call.addend, call.out, of_addend);
    call.addend = &addend;
  }
  return ocl_product_make(exec, &call, &(ocl_epilogue){.before = before, .to = &to}, &f->product);
}

/* Of images, channels and places. Its kernel has a struct of its own beside what the calls take. */
static graft_status make_convolution(ocl_followed *f, const ocl_fused_kernel *k, graft_device *device,
                                     const ocl_fused_tensor *output, const ocl_text *before) {
  enum { OWN_PLACES = 5, OWN_NUMBERS = 16 };
  const size_t places = OWN_PLACES + (size_t)k->geometry.operands, numbers = OWN_NUMBERS + (size_t)k->nnumbers;
  const size_t bytes = places * (sizeof(cl_mem) + sizeof(uint64_t)) + numbers * sizeof(int64_t) + f->space_bytes;
  if (bytes + sizeof(ocl_space) > device->parameter_bytes) return GRAFT_UNIMPLEMENTED;
  graft_tensor_desc to = *output->desc;
  to.dl.ndim = 3;
  to.dl.shape = (int64_t *)k->space.shape;
  to.dl.strides = (int64_t *)output->view.strides;
  return ocl_convolution_make(device, f->convolves, &(ocl_epilogue){.before = before, .to = &to}, &f->convolution);
}

bool ocl_followed_take_sum(ocl_followed *f, const graft_tensor_desc *output, int number) {
  bool is = false;
  for (int i = 0; i < OCL_FOLLOWED_SUMS && f->slopes.out && !is; i++) {
    is = f->slopes.sums[i] == output;
    if (is) f->sums[i] = number;
  }
  return is;
}

/* Of rows and their elements; sums that nobody sees are not made. */
static graft_status make_gradient(ocl_followed *f, const ocl_fused_kernel *k, graft_device *device,
                                  const ocl_fused_tensor *output, const ocl_text *before) {
  graft_tensor_desc to = *output->desc;
  to.dl.ndim = 3;
  to.dl.shape = (int64_t *)k->space.shape;
  to.dl.strides = (int64_t *)output->view.strides;
  for (int i = 0; i < OCL_FOLLOWED_SUMS; i++) {
    if (f->sums[i] < 0) f->slopes.sums[i] = NULL;
  }
  return ocl_norm_gradient_make(device, &f->slopes, &(ocl_epilogue){.before = before, .to = &to}, &f->gradient);
}

graft_status ocl_followed_make(ocl_followed *f, const graft_exec *exec, ocl_fused_kernel *k) {
  k->local = k->device->is_cpu ? 1 : 128;
  k->geometry.operands = k->noutputs + k->ninputs;
  k->main_output = f->main_output = find_main_output(k);
  if (k->main_output < 0) return GRAFT_UNIMPLEMENTED;
  const ocl_fused_tensor *output = &k->outputs[k->main_output];
  ocl_text text = {0};
  ocl_fused_write_before_product(&text, k);
  f->space_bytes = 3 * (size_t)k->geometry.operands * sizeof *f->space;
  graft_status status = GRAFT_OUT_OF_MEMORY;
  if (!text.failed)
    status = f->slopes.out  ? make_gradient(f, k, exec->device, output, &text)
             : f->convolves ? make_convolution(f, k, exec->device, output, &text)
                            : make_product(f, exec, output, &text);
  ocl_text_free(&text);
  f->convolves = NULL;
  if (status == GRAFT_OK) lay_follower(f, k);
  return status;
}

bool ocl_followed_asks(const ocl_followed *f) {
  return f->product || (f->convolution && f->convolution->product);
}

static graft_status run_gradient(const graft_exec *exec, const ocl_followed *f, const graft_graph_run_args *args,
                                 const graft_tensor_desc *const *reads, const graft_tensor_desc *to, cl_uint count,
                                 const ocl_argument *arguments) {
  ocl_norm_gradient_call call = {.out = to};
  memcpy(call.reads, reads, sizeof call.reads);
  for (int i = 0; i < OCL_FOLLOWED_SUMS; i++) call.sums[i] = f->sums[i] >= 0 ? args->outputs[f->sums[i]] : NULL;
  return ocl_norm_gradient_run(exec, f->gradient, &call, count, arguments);
}

graft_status ocl_followed_run(const graft_exec *exec, ocl_followed *f, const graft_graph_run_args *args,
                              const graft_tensor_desc *to, cl_uint count, ocl_argument *arguments) {
  const graft_tensor_desc *reads[OCL_FOLLOWED_READS];
  for (int i = 0; i < OCL_FOLLOWED_READS; i++) reads[i] = f->inputs[i] >= 0 ? args->inputs[f->inputs[i]] : NULL;
  arguments[count++] = (ocl_argument){f->space_bytes, f->space};
  if (f->gradient) return run_gradient(exec, f, args, reads, to, count, arguments);
  if (f->convolution) {
    const ocl_forward_call call = {
        .in = reads[0], .weight = reads[1], .bias = reads[2], .out = to, .count = count, .arguments = arguments};
    return ocl_forward_run(exec, f->convolution, &call);
  }
  ocl_product_call call = f->call;
  call.a = reads[0];
  call.b = reads[1];
  call.addend = reads[2];
  return ocl_product_run(exec, f->product, &call, to, count, arguments);
}

void ocl_followed_destroy(ocl_followed *f) {
  ocl_product_destroy(f->product);
  ocl_convolution_destroy(f->convolution);
  ocl_norm_gradient_destroy(f->gradient);
}
