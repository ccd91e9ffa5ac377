/* Products that calls follow in one kernel (kernels/pointwise/fused_epilogue.c). */
#include "kernels/matmul/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ocl_product_read(const ocl_call *call, ocl_product_call *p) {
  const ocl_slot slot = call->op->slot;
  if (slot == (ocl_slot)ocl_op_mm) {
    const graft_args_mm *args = call->args;
    *p = (ocl_product_call){.a = args->self, .b = args->mat2, .out = args->out};
  } else if (slot == (ocl_slot)ocl_op_bmm) {
    const graft_args_bmm *args = call->args;
    *p = (ocl_product_call){.a = args->self, .b = args->mat2, .out = args->out};
  } else if (slot == (ocl_slot)ocl_op_addmm) {
    const graft_args_addmm *args = call->args;
    *p = (ocl_product_call){.a = args->mat1,
                            .b = args->mat2,
                            .out = args->out,
                            .addend = args->self,
                            .alpha = args->alpha,
                            .beta = args->beta};
  } else if (slot == (ocl_slot)ocl_op_baddbmm) {
    const graft_args_baddbmm *args = call->args;
    *p = (ocl_product_call){.a = args->batch1,
                            .b = args->batch2,
                            .out = args->out,
                            .addend = args->self,
                            .alpha = args->alpha,
                            .beta = args->beta};
  } else {
    return false;
  }
  return true;
}

/* ---- Kernels ---- */

graft_status ocl_followed_init(ocl_kernel *kernel, graft_device *device, const ocl_epilogue *epilogue,
                               const ocl_text *head, const char *files, const char *name, const char *entry) {
  ocl_text whole = {0};
  if (head->failed) return GRAFT_OUT_OF_MEMORY;
  ocl_text_add(&whole, "%s#define FOLLOWED\n%s%s%s", epilogue->before->items, head->items,
               ocl_kernel_source("core/common"), ocl_kernel_source("core/followed"));
  for (const char *at = files; *at; at += strspn(at, " ")) {
    char file[64];
    const size_t length = strcspn(at, " ");
    snprintf(file, sizeof file, "%.*s", (int)length, at);
    ocl_text_append(&whole, ocl_kernel_source(file));
    at += length;
  }
  graft_status status = ocl_kernel_init_whole(kernel, device, &whole, name, entry);
  ocl_text_free(&whole);
  return status;
}

graft_status ocl_writing_init(ocl_kernel *kernel, graft_device *device, const ocl_operands *call, const ocl_text *head,
                              const char *files, const char *entry) {
  return call->epilogue ? ocl_followed_init(kernel, device, call->epilogue, head, files, "matmul/followed", entry)
                        : ocl_kernel_init(kernel, device, head, files, entry);
}

cl_uint ocl_with_followers(ocl_argument *all, const ocl_operands *call, cl_uint before, const ocl_argument *common,
                           cl_uint behind) {
  memcpy(all, common, before * sizeof *all);
  if (call->count > 0) memcpy(all + before, call->arguments, call->count * sizeof *all);
  memcpy(all + before + call->count, common + before, behind * sizeof *all);
  return before + call->count + behind;
}

/* ---- The product ---- */

static ocl_operands operands_of(const ocl_product_call *call) {
  return (ocl_operands){.a = call->a,
                        .b = call->b,
                        .out = call->out,
                        .addend = call->addend,
                        .alpha = call->alpha,
                        .beta = call->beta,
                        .sums = call->sums,
                        .row_sums_to = call->row_sums_to,
                        .row_sums_pass = call->row_sums_pass};
}

bool ocl_product_sums_rows(graft_device *device, const ocl_product_call *call) {
  const ocl_reduction_pass *pass = call->row_sums_pass;
  const ocl_operands operands = operands_of(call);
  const graft_dl_tensor *a = &call->a->dl;
  const ocl_dtype *dtype = ocl_dtype_of(device, a->dtype);
  const bool alike = a->ndim == 2 && pass->in == dtype && pass->out == dtype && pass->accumulator == dtype &&
                     call->b->dl.dtype == a->dtype && call->out->dl.dtype == a->dtype;
  if (!device->is_cpu || !alike || dtype->class != OCL_CLASS_FLOAT || pass->rows || pass->kept.rank != 1 ||
      pass->reduced.rank != 1 || ocl_reduction_splits(device, pass) != 1) {
    return false;
  }
  return pass->kept.size[0] == a->shape[0] && pass->kept.stride[1][0] == a->strides[0] && a->strides[0] == 1 &&
         pass->reduced.size[0] == a->shape[1] && pass->reduced.stride[0][0] == a->strides[1] &&
         ocl_product_packs_parts(device, &operands);
}

static graft_status make(graft_device *device, const ocl_operands *operands, ocl_product **product) {
  *product = calloc(1, sizeof **product);
  return *product ? ocl_product_prepare(*product, device, operands) : GRAFT_OUT_OF_MEMORY;
}

graft_status ocl_product_make(const graft_exec *exec, const ocl_product_call *call, const ocl_epilogue *epilogue,
                              ocl_product **product) {
  ocl_operands operands = operands_of(call);
  operands.tf32 = exec->flags & GRAFT_EXEC_ALLOW_TF32;
  operands.epilogue = epilogue;
  return make(exec->device, &operands, product);
}

graft_status ocl_product_make_alone(graft_device *device, const ocl_product_call *call, const ocl_epilogue *epilogue,
                                    ocl_product **product) {
  ocl_operands operands = operands_of(call);
  operands.epilogue = epilogue;
  return make(device, &operands, product);
}

bool ocl_product_is_turned(const ocl_product *product) {
  return product->swapped;
}

graft_status ocl_product_run(const graft_exec *exec, ocl_product *product, const ocl_product_call *call,
                             const graft_tensor_desc *to, cl_uint count, const ocl_argument *arguments) {
  ocl_operands operands = operands_of(call);
  operands.out = to;
  operands.arguments = arguments;
  operands.count = count;
  return ocl_product_launch(exec, product, &operands);
}

void ocl_product_destroy(ocl_product *product) {
  if (!product) return;
  ocl_kernel *const kernels[] = {&product->pack_a,  &product->pack_b, &product->multiply,
                                 &product->combine, &product->scale,  &product->subtotals};
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) ocl_kernel_destroy(kernels[i]);
  free(product);
}
