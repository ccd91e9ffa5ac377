/* Pooling: rules, and the rows of all its ops. */
#include <string.h>

#include "ops/core/table.h"
#include "ops/pooling/pooling.h"

/* Where arguments and results stand in all of them. */
enum {
  SELF = ARG_avg_pool2d_self,
  GRAD_OUTPUT = ARG_avg_pool2d_backward_grad_output,
  BACK_SELF = ARG_avg_pool2d_backward_self,
  VALUES = OUT_max_pool2d_with_indices_out0,
  INDICES = OUT_max_pool2d_with_indices_out1
};

static const pool_row *row_of(const op_call *c) {
  return c->def->row;
}

/* The pooled side of forward and backward alike. */
static int self_of(const op_call *c) {
  return row_of(c)->backward ? BACK_SELF : SELF;
}

/* --- windows --- */

/* A list argument has a number a dim, none below `lowest`. */
static graft_status check_list(op_call *c, const char *name, int64_t lowest) {
  const graft_value *list = op_value_named(c->schema, c->args, name);
  int dims = row_of(c)->dims;
  if (list->count != (uint32_t)dims)
    return op_error(c, "%s has %u numbers; expected one or %d", name, list->count, dims);
  for (int i = 0; i < dims; i++) {
    graft_status status = op_check_step(c, name, list->as.ints[i], lowest);
    if (status) return status;
  }
  return GRAFT_OK;
}

/* No stride means the kernel. */
static graft_status infer_sliding(op_call *c, pool_sliding *w) {
  int stride = op_arg_named(c->schema, "stride"), dims = row_of(c)->dims;
  graft_status status = check_list(c, "kernel_size", 1);
  if (!status && !c->args[stride].count) {
    const graft_value *kernel = op_value_named(c->schema, c->args, "kernel_size");
    status = op_set_ints(c, stride, kernel->as.ints, kernel->count);
  }
  if (!status) status = check_list(c, "stride", 1);
  if (!status) status = check_list(c, "padding", 0);
  if (!status && row_of(c)->maximum) status = check_list(c, "dilation", 1);
  *w = pool_sliding_of(c->schema, c->args);
  for (int i = 0; !status && i < dims; i++) {
    if (w->padding[i] <= w->kernel[i] / 2) continue;
    status = op_error(c, "padding %lld is more than half of kernel size %lld", (long long)w->padding[i],
                      (long long)w->kernel[i]);
  }
  return status;
}

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t pooled_size(const pool_sliding *w, int i, int64_t size) {
  int64_t room = size + 2 * w->padding[i] - w->dilation[i] * (w->kernel[i] - 1) - 1;
  int64_t out = floor_div(room + (w->ceil ? w->stride[i] - 1 : 0), w->stride[i]) + 1;
  /* The last window begins inside the input or the padding before it. */
  if (w->ceil && (out - 1) * w->stride[i] >= size + w->padding[i]) out--;
  return out;
}

/* The result's sizes from those of self. PyTorch's average in three dims, unlike the others, wants the kernel to fit
 * into the input without its padding. */
static graft_status sliding_sizes(op_call *c, const pool_sliding *w, int64_t *sizes) {
  const pool_row *row = row_of(c);
  const graft_tensor *self = op_tensor(c, self_of(c));
  int32_t lead = self->ndim - row->dims;
  bool fits = lead == 1 || lead == 2;
  for (int32_t i = lead - 1; fits && i < self->ndim; i++) fits = self->sizes[i] > 0;
  if (!fits) return op_refuse(c, self_of(c), "rank %d or %d, empty in the batch at most", row->dims + 1, row->dims + 2);
  for (int32_t i = 0; i < lead; i++) sizes[i] = self->sizes[i];
  for (int i = 0; i < row->dims; i++) {
    int64_t in = self->sizes[lead + i], out = pooled_size(w, i, in);
    if (row->dims == 3 && !row->maximum && in < w->kernel[i])
      return op_error(c, "the kernel's size %lld is larger than the input's %lld (%s)", (long long)w->kernel[i],
                      (long long)in, op_show(c, self_of(c)));
    if (out < 1)
      return op_error(c, "the result would have a size of %lld (%s)", (long long)out, op_show(c, self_of(c)));
    sizes[lead + i] = out;
  }
  return GRAFT_OK;
}

/* Adaptive and fractional windows: the result's sizes are given. Dims behind the first may not be empty. */
static graft_status given_sizes(op_call *c, int64_t *sizes) {
  const pool_row *row = row_of(c);
  const graft_tensor *self = op_tensor(c, self_of(c));
  int32_t lead = self->ndim - row->dims;
  bool fits = lead == 1 || lead == 2;
  for (int32_t i = 1; fits && i < self->ndim; i++) fits = self->sizes[i] > 0;
  if (!fits)
    return op_refuse(c, self_of(c), "rank %d or %d, empty in the first dim at most", row->dims + 1, row->dims + 2);
  memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
  const graft_value *list = op_value_named(c->schema, c->args, "output_size");
  if (list->kind != GRAFT_VALUE_INTS) return GRAFT_OK;
  graft_status status = check_list(c, "output_size", 0);
  for (int i = 0; !status && i < row->dims; i++) sizes[lead + i] = list->as.ints[i];
  return status;
}

/* --- fractional --- */

static graft_status check_samples(op_call *c, const graft_tensor *self) {
  int dims = row_of(c)->dims, arg = op_arg_named(c->schema, "random_samples");
  const graft_tensor *samples = op_tensor(c, arg);
  bool batched = self->ndim == dims + 2;
  int64_t batch = batched ? self->sizes[0] : 1, channels = self->sizes[batched];
  if (samples->dtype != self->dtype) return op_error(c, "dtypes differ (%s)", op_show_tensors(c));
  if (samples->ndim == 3 && samples->sizes[0] >= batch && samples->sizes[1] == channels && samples->sizes[2] == dims)
    return GRAFT_OK;
  return op_refuse(c, arg, "sizes [batch, channels, %d] as self has them", dims);
}

static graft_status infer_fractional_windows(op_call *c, const graft_tensor *self, const int64_t *sizes) {
  int dims = row_of(c)->dims;
  graft_status status = check_list(c, "kernel_size", 1);
  const int64_t *kernel = op_value_named(c->schema, c->args, "kernel_size")->as.ints;
  for (int i = 0; !status && i < dims; i++) {
    int32_t at = self->ndim - dims + i;
    /* PyTorch wants one place more in three dims. */
    if (sizes[at] + kernel[i] - 1 + (dims == 3) <= self->sizes[at]) continue;
    status = op_error(c, "a kernel of %lld has no %lld places in a dim of %lld", (long long)kernel[i],
                      (long long)sizes[at], (long long)self->sizes[at]);
  }
  return status ? status : check_samples(c, self);
}

/* --- forward --- */

static void out_sizes(op_call *c, int n, graft_dtype dtype, const int64_t *sizes) {
  const graft_tensor *self = op_tensor(c, self_of(c));
  bool suggest = c->schema->strides == OPS_SUGGEST;
  op_out_format(c, n, dtype, self->ndim, sizes, suggest ? tns_suggest_format(self) : GRAFT_FORMAT_CONTIGUOUS);
}

static graft_status check_dtype(op_call *c) {
  const pool_row *row = row_of(c);
  graft_dtype dtype = op_tensor(c, self_of(c))->dtype;
  if (dt_is_float(dtype) && !dt_is_float8(dtype)) return GRAFT_OK;
  bool sliding = row->windows == POOL_SLIDING;
  if (sliding && !row->maximum && dtype == GRAFT_I64) return GRAFT_OK;
  if (sliding && row->maximum && !row->backward && !dt_is_complex(dtype) && dtype != GRAFT_BOOL) return GRAFT_OK;
  bool integers = sliding && !(row->maximum && row->backward);
  return op_refuse(c, self_of(c),
                   !integers      ? "a floating dtype"
                   : row->maximum ? "a floating or integer dtype"
                                  : "a floating dtype or i64");
}

static graft_status check_divisor(const op_call *c) {
  const graft_value *divisor = op_value_named(c->schema, c->args, "divisor_override");
  return divisor->kind != GRAFT_VALUE_INT || divisor->as.i ? GRAFT_OK : op_error(c, "divisor_override is 0");
}

/* The windows, and the result's sizes. */
static graft_status infer_sizes(op_call *c, int64_t *sizes) {
  const pool_row *row = row_of(c);
  if (row->windows != POOL_SLIDING) return given_sizes(c, sizes);
  pool_sliding w;
  graft_status status = infer_sliding(c, &w);
  if (!status) status = check_divisor(c);
  return status ? status : sliding_sizes(c, &w, sizes);
}

/* The results: values, and of a maximum their positions in a plane. */
static graft_status infer_forward(op_call *c) {
  const pool_row *row = row_of(c);
  const graft_tensor *self = op_tensor(c, SELF);
  int64_t sizes[GRAFT_MAX_DIMS];
  graft_status status = check_dtype(c);
  if (!status) status = infer_sizes(c, sizes);
  if (!status && row->windows == POOL_FRACTIONAL) status = infer_fractional_windows(c, self, sizes);
  if (status) return status;
  c->compute = self->dtype;
  out_sizes(c, VALUES, self->dtype, sizes);
  if (row->maximum) out_sizes(c, INDICES, GRAFT_I64, sizes);
  return GRAFT_OK;
}

/* --- backward --- */

static graft_status check_indices(op_call *c) {
  int arg = op_arg_named(c->schema, "indices");
  const graft_tensor *indices = op_tensor(c, arg);
  bool same = indices->dtype == GRAFT_I64 && tns_same_sizes(indices, op_tensor(c, GRAD_OUTPUT));
  return same ? GRAFT_OK : op_refuse(c, arg, "i64 in %s's shape", c->schema->args[GRAD_OUTPUT].name);
}

/* An adaptive gradient has no list of the result's sizes: those of grad_output are taken, if there is something. */
static graft_status adaptive_grad_sizes(op_call *c, int64_t *sizes) {
  const graft_tensor *grad = op_tensor(c, GRAD_OUTPUT), *self = op_tensor(c, BACK_SELF);
  bool fits = grad->ndim == self->ndim;
  for (int32_t i = 1; fits && i < grad->ndim; i++) fits = grad->sizes[i] > 0;
  if (!fits) return op_refuse(c, GRAD_OUTPUT, "self's rank, empty in the first dim at most");
  for (int32_t i = self->ndim - row_of(c)->dims; i < self->ndim; i++) sizes[i] = grad->sizes[i];
  return GRAFT_OK;
}

static graft_status infer_backward(op_call *c) {
  const pool_row *row = row_of(c);
  const graft_tensor *grad = op_tensor(c, GRAD_OUTPUT), *self = op_tensor(c, BACK_SELF);
  int64_t sizes[GRAFT_MAX_DIMS];
  graft_status status = check_dtype(c);
  if (!status) status = infer_sizes(c, sizes);
  if (!status && row->windows == POOL_ADAPTIVE) status = adaptive_grad_sizes(c, sizes);
  if (status) return status;
  if (!tns_has_sizes(grad, self->ndim, sizes))
    return op_error(c, "grad_output has not the shape of the pooled self (%s)", op_show_tensors(c));
  status = op_check_same_dtype(c, GRAD_OUTPUT, BACK_SELF);
  if (!status && row->maximum) status = check_indices(c);
  if (status) return status;
  c->compute = self->dtype;
  out_sizes(c, OUT, self->dtype, self->sizes);
  return GRAFT_OK;
}

/* --- unpooling --- */

/* Three dims come with the windows of the maximum, of which nothing but the stride's sign is looked at. */
static graft_status check_former_windows(op_call *c) {
  graft_status status = check_list(c, "stride", 1);
  return status ? status : check_list(c, "padding", INT64_MIN);
}

static graft_status infer_unpool(op_call *c) {
  int64_t sizes[GRAFT_MAX_DIMS];
  graft_status status = check_dtype(c);
  if (!status) status = given_sizes(c, sizes);
  if (!status && row_of(c)->dims == 3) status = check_former_windows(c);
  if (!status) status = check_indices(c);
  if (status) return status;
  c->compute = op_tensor(c, SELF)->dtype;
  out_sizes(c, OUT, c->compute, sizes);
  return GRAFT_OK;
}

/* --- rows --- */

#define MAXIMUM(name, upper, roles_, dims_, windows_)                                                                 \
  {.op_id = GRAFT_OP_##upper,                                                                                         \
   .flags = OP_EXACT_OUT,                                                                                             \
   .roles = roles_,                                                                                                   \
   .infer = infer_forward,                                                                                            \
   .vjp = pool_vjp,                                                                                                   \
   .saves = OP_SAVE_ARG(name, self) | OP_SAVE_OUT(name, out1),                                                        \
   .reference = pool_kernel,                                                                                          \
   .row =                                                                                                             \
       &(const pool_row){.other = GRAFT_OP_##upper##_BACKWARD, .dims = dims_, .windows = windows_, .maximum = true}}, \
  {                                                                                                                   \
    .op_id = GRAFT_OP_##upper##_BACKWARD, .roles = "vvi", .infer = infer_backward,                                    \
    .decompose = pool_decompose_maximum_backward, .vjp = pool_vjp_maximum_backward,                                   \
    .saves = OP_SAVE_ARG(name##_backward, indices), .reference = pool_kernel, .row = &(const pool_row) {              \
      .other = GRAFT_OP_##upper, .dims = dims_, .windows = windows_, .maximum = true, .backward = true                \
    }                                                                                                                 \
  }
#define AVERAGE(name, upper, dims_, windows_, decompose_, decompose_backward)                                      \
  {.op_id = GRAFT_OP_##upper,                                                                                      \
   .flags = OP_EXACT_OUT,                                                                                          \
   .roles = "v",                                                                                                   \
   .infer = infer_forward,                                                                                         \
   .decompose = decompose_,                                                                                        \
   .vjp = pool_vjp,                                                                                                \
   .saves = OP_SAVE_ARG(name, self),                                                                               \
   .reference = pool_kernel,                                                                                       \
   .row = &(const pool_row){.other = GRAFT_OP_##upper##_BACKWARD, .dims = dims_, .windows = windows_}},            \
  {                                                                                                                \
    .op_id = GRAFT_OP_##upper##_BACKWARD, .roles = "vv", .infer = infer_backward, .decompose = decompose_backward, \
    .vjp = pool_vjp_average_backward, .reference = pool_kernel, .row = &(const pool_row) {                         \
      .other = GRAFT_OP_##upper, .dims = dims_, .windows = windows_, .backward = true                              \
    }                                                                                                              \
  }
#define UNPOOL(name, dims_)                                                                          \
  {                                                                                                  \
    .op_id = ID_##name, .roles = "vi", .infer = infer_unpool, .decompose = pool_decompose_unpool,    \
    .vjp = pool_vjp_maximum_backward, .saves = OP_SAVE_ARG(name, indices), .reference = pool_kernel, \
    .row = &(const pool_row) {                                                                       \
      .dims = dims_, .windows = POOL_NONE, .maximum = true                                           \
    }                                                                                                \
  }

static const op_def defs[] = {
    MAXIMUM(max_pool2d_with_indices, MAX_POOL2D_WITH_INDICES, "v", 2, POOL_SLIDING),
    MAXIMUM(max_pool3d_with_indices, MAX_POOL3D_WITH_INDICES, "v", 3, POOL_SLIDING),
    MAXIMUM(adaptive_max_pool2d, ADAPTIVE_MAX_POOL2D, "v", 2, POOL_ADAPTIVE),
    MAXIMUM(adaptive_max_pool3d, ADAPTIVE_MAX_POOL3D, "v", 3, POOL_ADAPTIVE),
    MAXIMUM(fractional_max_pool2d, FRACTIONAL_MAX_POOL2D, "vv", 2, POOL_FRACTIONAL),
    MAXIMUM(fractional_max_pool3d, FRACTIONAL_MAX_POOL3D, "vv", 3, POOL_FRACTIONAL),
    AVERAGE(avg_pool2d, AVG_POOL2D, 2, POOL_SLIDING, pool_decompose_average, pool_decompose_average_backward),
    AVERAGE(avg_pool3d, AVG_POOL3D, 3, POOL_SLIDING, pool_decompose_average, pool_decompose_average_backward),
    UNPOOL(max_unpool2d, 2),
    UNPOOL(max_unpool3d, 3),
};
OP_TABLE(pooling, defs)
