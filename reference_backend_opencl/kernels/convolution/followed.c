/* Convolutions that calls follow in one kernel (kernels/pointwise/fused_epilogue.c). */
#include "kernels/convolution/convolution.h"

#include <stdlib.h>
#include <string.h>

/* ---- The kernel that writes results ---- */

graft_status ocl_results_make(const ocl_forward *f, ocl_kernel *kernel, graft_device *device, ocl_text *head,
                              bool mends, const char *files, const char *entry) {
  if (!f->followed) return ocl_kernel_make(kernel, device, head, files, entry);
  if (mends) ocl_text_add(head, "#define MENDS\n");
  graft_status status = ocl_followed_init(kernel, device, f->epilogue, head, files, "convolution/followed", entry);
  ocl_text_free(head);
  return status;
}

graft_status ocl_results_set(const ocl_forward *f, ocl_kernel *kernel) {
  if (!f->followed) return GRAFT_OK;
  const int64_t *strides = f->epilogue->to->dl.strides;
  const ocl_result_strides to = {strides[0], strides[1], strides[2]};
  return ocl_kernel_set(kernel, 1, &(ocl_argument)OCL_VALUE(to));
}

graft_status ocl_results_launch(const graft_exec *exec, ocl_forward *f, const ocl_forward_call *call, cl_uint count,
                                const ocl_argument *arguments) {
  ocl_argument all[OCL_WRITING_ARGUMENTS_MAX];
  memcpy(all, arguments, count * sizeof *all);
  if (call->count > 0) memcpy(all + count, call->arguments, call->count * sizeof *all);
  return ocl_launch(&f->convolve, exec->stream, count + call->count, all);
}

/* ---- The convolution ---- */

static bool is_dense(const graft_tensor_desc *desc) {
  return !desc || ocl_is_dense(&desc->dl);
}

bool ocl_convolution_is_followed(const graft_exec *exec, const graft_args_convolution *args) {
  graft_device *device = exec->device;
  const ocl_dtype *dtype = args->out ? ocl_convolution_dtype(device, args->input, args->weight) : NULL;
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || args->out->dl.dtype != dtype->code) return false;
  if (args->bias && args->bias->dl.dtype != dtype->code) return false;
  if (!is_dense(args->input) || !is_dense(args->weight) || !is_dense(args->bias) || !is_dense(args->out)) return false;
  if (ocl_elements(args->out) == 0 || ocl_elements(args->weight) == 0) return false;
  const ocl_space s = ocl_convolution_space(args);
  return !ocl_tensor_serves_forward(device, dtype, &s) && !ocl_f32_serves_forward(device, dtype, &s);
}

graft_status ocl_convolution_make(graft_device *device, const graft_args_convolution *args,
                                  const ocl_epilogue *epilogue, ocl_forward **made) {
  ocl_forward *f = *made = calloc(1, sizeof *f);
  if (!f) return GRAFT_OUT_OF_MEMORY;
  f->followed = true;
  f->epilogue = epilogue;
  const ocl_dtype *dtype = ocl_convolution_dtype(device, args->input, args->weight);
  graft_status status = ocl_forward_prepare(f, device, dtype, ocl_convolution_space(args), args->bias != NULL);
  f->epilogue = NULL;
  return status;
}

bool ocl_convolution_is_turned(const ocl_forward *f) {
  return f->product && ocl_product_is_turned(f->product);
}

void ocl_convolution_destroy(ocl_forward *f) {
  if (!f) return;
  ocl_forward_destroy(f);
  free(f);
}
