/* im2col and col2im: the blocks of an image that a kernel sees, as the columns of a matrix, and back. */
#include "kernels/core/direct.h"

enum { LANES = 64 }; /* of a GPU's work-group */

/* What both ops have: the image's side and the columns' side of a call, and the four lists. */
typedef struct operands {
  const graft_tensor_desc *image, *columns;
  const int64_t *kernel, *dilation, *padding, *stride;
} operands;

/* Whether all that a plane has is counted in 32 bits, places beyond its edges too. */
static bool is_counted(const int64_t numbers[12]) {
  double most = 1;
  for (int d = 0; d < 2; d++)
    most *= (double)numbers[d] + (double)numbers[2 + d] * (double)numbers[10 + d] +
            (double)numbers[4 + d] * (double)numbers[6 + d] + (double)numbers[8 + d];
  return most < 0x1p30;
}

static graft_status run(const graft_exec *exec, const operands *call, const graft_tensor_desc *to,
                        const graft_tensor_desc *from, const char *entry, const char *entry_of_groups) {
  const graft_dl_tensor *image = &call->image->dl;
  const int64_t *size = image->shape + image->ndim - 2;
  int64_t places[2], elements = ocl_elements(to);
  if (to->dl.dtype != from->dl.dtype) return GRAFT_UNIMPLEMENTED;
  if (!elements) return GRAFT_OK;
  for (int d = 0; d < 2; d++)
    places[d] = (size[d] + 2 * call->padding[d] - call->dilation[d] * (call->kernel[d] - 1) - 1) / call->stride[d] + 1;
  const int64_t numbers[] = {size[0],          size[1],          places[0],         places[1],
                             call->kernel[0],  call->kernel[1],  call->dilation[0], call->dilation[1],
                             call->padding[0], call->padding[1], call->stride[0],   call->stride[1]};
  ocl_direct direct = {.file = "core/direct convolution/columns",
                       .dtype = to->dl.dtype,
                       .numbers = numbers,
                       .count = sizeof numbers / sizeof *numbers,
                       .places = 2};
  const int64_t width = to == call->image ? size[1] : places[1], height = to == call->image ? size[0] : places[0];
  const bool groups = !exec->device->is_cpu && is_counted(numbers);
  direct.stages[0] = (ocl_stage){.entry = groups ? entry_of_groups : entry,
                                 .units = elements / width / (groups ? height : 1), /* rows of the result, or planes */
                                 .together = groups ? LANES : 0,
                                 .places = {ocl_place_of(to), ocl_place_of(from)}};
  return ocl_direct_run(exec, &direct);
}

graft_status ocl_op_im2col(const graft_exec *exec, const graft_args_im2col *args) {
  const operands call = {.image = args->self,
                         .columns = args->out,
                         .kernel = args->kernel_size.items,
                         .dilation = args->dilation.items,
                         .padding = args->padding.items,
                         .stride = args->stride.items};
  return run(exec, &call, args->out, args->self, "im2col", "im2col_groups");
}

graft_status ocl_op_col2im(const graft_exec *exec, const graft_args_col2im *args) {
  const operands call = {.image = args->out,
                         .columns = args->self,
                         .kernel = args->kernel_size.items,
                         .dilation = args->dilation.items,
                         .padding = args->padding.items,
                         .stride = args->stride.items};
  return run(exec, &call, args->out, args->self, "col2im", "col2im_groups");
}
