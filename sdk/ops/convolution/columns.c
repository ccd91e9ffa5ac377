/* im2col and col2im: the blocks of an image that a kernel sees, as the columns of a matrix, and such columns added up
 * where they came from. Each is the other's gradient. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

enum { IMAGE_DIMS = 2 };

/* An image and the places of a kernel in it: along rows, then along columns. */
typedef struct blocks {
  const int64_t *kernel, *dilation, *padding, *stride;
  int64_t size[IMAGE_DIMS], places[IMAGE_DIMS];
} blocks;

/* --- rules --- */

static graft_status check_pair(op_call *c, const char *name, int64_t lowest) {
  const graft_value *list = op_value_named(c->schema, c->args, name);
  if (list->count != IMAGE_DIMS) return op_error(c, "%s has %u numbers; expected %d", name, list->count, IMAGE_DIMS);
  for (int i = 0; i < IMAGE_DIMS; i++) {
    graft_status status = op_check_step(c, name, list->as.ints[i], lowest);
    if (status) return status;
  }
  return GRAFT_OK;
}

static int64_t places_of(const blocks *b, int d) {
  int64_t room = b->size[d] + 2 * b->padding[d] - b->dilation[d] * (b->kernel[d] - 1) - 1;
  return room < 0 ? 0 : room / b->stride[d] + 1;
}

/* `size` is that of the image. */
static graft_status infer_blocks(op_call *c, const int64_t *size, blocks *b) {
  graft_status status = check_pair(c, "kernel_size", 1);
  if (!status) status = check_pair(c, "dilation", 1);
  if (!status) status = check_pair(c, "padding", 0);
  if (!status) status = check_pair(c, "stride", 1);
  if (status) return status;
  *b = (blocks){.kernel = op_value_named(c->schema, c->args, "kernel_size")->as.ints,
                .dilation = op_value_named(c->schema, c->args, "dilation")->as.ints,
                .padding = op_value_named(c->schema, c->args, "padding")->as.ints,
                .stride = op_value_named(c->schema, c->args, "stride")->as.ints};
  for (int d = 0; d < IMAGE_DIMS; d++) {
    b->size[d] = size[d];
    b->places[d] = places_of(b, d);
    if (b->places[d] < 1)
      return op_error(c, "the kernel has no place in an image of %lld x %lld (%s)", (long long)size[0],
                      (long long)size[1], op_show_tensors(c));
  }
  return GRAFT_OK;
}

/* Sizes behind a batch, which may be empty or missing. */
static graft_status self_of_rank(op_call *c, int32_t ndim) {
  const graft_tensor *self = op_tensor(c, ARG_im2col_self);
  graft_dtype dtype = self->dtype;
  bool fits = self->ndim == ndim || self->ndim == ndim + 1;
  for (int32_t i = self->ndim - ndim; fits && i < self->ndim; i++) fits = self->sizes[i] > 0;
  if (!fits) return op_refuse(c, ARG_im2col_self, "rank %d or %d, empty in the batch at most", ndim, ndim + 1);
  bool known = (dt_is_float(dtype) && !dt_is_float8(dtype)) || dt_is_complex(dtype) || dtype == GRAFT_BOOL;
  return known ? GRAFT_OK : op_refuse(c, ARG_im2col_self, "a floating or complex dtype, or bool");
}

static void out_of(op_call *c, int32_t own, const int64_t *sizes) {
  const graft_tensor *self = op_tensor(c, ARG_im2col_self);
  int64_t all[4] = {self->sizes[0]};
  bool batched = self->ndim > (c->schema->id == GRAFT_OP_IM2COL ? 3 : 2);
  for (int32_t i = 0; i < own; i++) all[batched + i] = sizes[i];
  c->compute = self->dtype;
  op_out(c, OUT, self->dtype, own + batched, all);
}

static graft_status infer_im2col(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_im2col_self);
  blocks b;
  graft_status status = self_of_rank(c, 3);
  if (!status) status = infer_blocks(c, self->sizes + self->ndim - 2, &b);
  if (status) return status;
  int64_t rows = self->sizes[self->ndim - 3] * b.kernel[0] * b.kernel[1];
  out_of(c, 2, (int64_t[]){rows, b.places[0] * b.places[1]});
  return GRAFT_OK;
}

static graft_status infer_col2im(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_col2im_self);
  blocks b;
  graft_status status = self_of_rank(c, 2);
  if (!status) status = check_pair(c, "output_size", 1);
  if (!status) status = infer_blocks(c, op_value_named(c->schema, c->args, "output_size")->as.ints, &b);
  if (status) return status;
  int64_t rows = self->sizes[self->ndim - 2], area = b.kernel[0] * b.kernel[1], places;
  const bool counted = !__builtin_mul_overflow(b.places[0], b.places[1], &places);
  if (rows % area || !counted || self->sizes[self->ndim - 1] != places)
    return op_refuse(c, ARG_col2im_self, "a multiple of %lld rows and %lld columns, one a place of the kernel",
                     (long long)area, (long long)places);
  out_of(c, 3, (int64_t[]){rows / area, b.size[0], b.size[1]});
  return GRAFT_OK;
}

/* --- kernels --- */

/* Where in the image element i of the columns lies, [planes, kernel rows, kernel columns, places...]; -1: in the
 * padding. */
static int64_t pixel_of(const blocks *b, int64_t i) {
  int64_t at[IMAGE_DIMS], tap[IMAGE_DIMS];
  for (int d = IMAGE_DIMS - 1; d >= 0; i /= b->places[d--]) at[d] = i % b->places[d] * b->stride[d] - b->padding[d];
  for (int d = IMAGE_DIMS - 1; d >= 0; i /= b->kernel[d--]) tap[d] = i % b->kernel[d] * b->dilation[d];
  for (int d = 0; d < IMAGE_DIMS; d++) {
    at[d] += tap[d];
    if (at[d] < 0 || at[d] >= b->size[d]) return -1;
  }
  return (i * b->size[0] + at[0]) * b->size[1] + at[1];
}

static graft_status columns(const graft_tensor_desc *self, const graft_tensor_desc *result, blocks b, bool gather) {
  const graft_dl_tensor *image = &(gather ? self : result)->dl;
  REF_OWNED ref_array from = ref_read(self), to = ref_new(ref_numel(result), from.im != NULL);
  if (!(from.re && to.re)) return ref_no_memory();
  for (int d = 0; d < IMAGE_DIMS; d++) {
    b.size[d] = image->shape[image->ndim - IMAGE_DIMS + d];
    b.places[d] = places_of(&b, d);
  }
  for (int64_t i = 0; i < (gather ? to : from).count; i++) {
    int64_t pixel = pixel_of(&b, i);
    if (pixel < 0) continue;
    if (gather)
      ref_take(&to, i, &from, pixel);
    else
      ref_add_element(result->dl.dtype, &to, pixel, &from, i);
  }
  ref_write(result, &to);
  return GRAFT_OK;
}

graft_status kernel_im2col(const graft_exec *exec, const graft_args_im2col *a) {
  blocks b = {a->kernel_size.items, a->dilation.items, a->padding.items, a->stride.items, {0}, {0}};
  return columns(a->self, a->out, b, true);
}

graft_status kernel_col2im(const graft_exec *exec, const graft_args_col2im *a) {
  blocks b = {a->kernel_size.items, a->dilation.items, a->padding.items, a->stride.items, {0}, {0}};
  return columns(a->self, a->out, b, false);
}

/* --- gradients --- */

static void vjp_im2col(op_vjp *v) {
  const in_im2col in = in_im2col_of(v->args);
  const int64_t *size = in.self->sizes + in.self->ndim - IMAGE_DIMS;
  v->results[ARG_im2col_self] = fx_col2im(v->s, v->g[OUT], size, IMAGE_DIMS, in.kernel_size, IMAGE_DIMS, in.dilation,
                                          IMAGE_DIMS, in.padding, IMAGE_DIMS, in.stride, IMAGE_DIMS);
}

static void vjp_col2im(op_vjp *v) {
  const in_col2im in = in_col2im_of(v->args);
  v->results[ARG_col2im_self] = fx_im2col(v->s, v->g[OUT], in.kernel_size, IMAGE_DIMS, in.dilation, IMAGE_DIMS,
                                          in.padding, IMAGE_DIMS, in.stride, IMAGE_DIMS);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(im2col), .roles = "v", .infer = infer_im2col, .vjp = vjp_im2col},
    {.op_id = OP_WITH_KERNEL(col2im), .roles = "v", .infer = infer_col2im, .vjp = vjp_col2im},
};
OP_TABLE(convolution_columns, defs)
