/* Pooling composed of other ops: averages as convolutions with ones, gradients of maxima as sums by index; and the
 * gradients. The arguments of a backward op from self on are those of its forward op. */
#include "ops/pooling/pooling.h"

#include "ops/generated/fx_ops.h"

enum { INPUT = ARG_avg_pool2d_self, BACK_INPUT = ARG_avg_pool2d_backward_self, LONGEST = 9 };

static int dims_of(const op_schema *schema) {
  return ((const pool_row *)op_row(schema->id))->dims;
}

pool_sliding pool_sliding_of(const op_schema *schema, const graft_value *args) {
  static const int64_t no_dilation[POOL_DIMS] = {1, 1, 1};
  const graft_value *dilation = op_value_named(schema, args, "dilation");
  return (pool_sliding){.kernel = op_value_named(schema, args, "kernel_size")->as.ints,
                        .stride = op_value_named(schema, args, "stride")->as.ints,
                        .padding = op_value_named(schema, args, "padding")->as.ints,
                        .dilation = dilation->kind == GRAFT_VALUE_INTS ? dilation->as.ints : no_dilation,
                        .ceil = op_value_named(schema, args, "ceil_mode")->as.i != 0};
}

/* --- averages as convolutions with ones --- */

/* An average, in all its calls. */
typedef struct averaging {
  fx *s;
  pool_sliding w;
  uint32_t dims;
  const int64_t *size, *pooled; /* of a plane of the input, and of the result */
  int64_t more[POOL_DIMS];      /* what the last windows reach beyond the padded input, which may also be larger */
  bool count_padding;
  const int64_t *divisor;
} averaging;

static averaging averaging_of(fx *s, const op_call *c, const graft_tensor *self, const int64_t *pooled_sizes) {
  const graft_value *divisor = op_value_named(c->schema, c->args, "divisor_override");
  averaging a = {.s = s, .w = pool_sliding_of(c->schema, c->args), .dims = (uint32_t)dims_of(c->schema)};
  a.size = self->sizes + self->ndim - a.dims;
  a.pooled = pooled_sizes + self->ndim - a.dims;
  a.count_padding = op_value_named(c->schema, c->args, "count_include_pad")->as.i != 0;
  a.divisor = divisor->kind == GRAFT_VALUE_INT ? &divisor->as.i : NULL;
  for (uint32_t i = 0; i < a.dims; i++)
    a.more[i] = (a.pooled[i] - 1) * a.w.stride[i] + a.w.kernel[i] - (a.size[i] + 2 * a.w.padding[i]);
  return a;
}

/* [1, 1] and the plane. */
static graft_tensor *ones(const averaging *a, graft_tensor *like, const int64_t *plane) {
  int64_t sizes[2 + POOL_DIMS] = {1, 1};
  for (uint32_t i = 0; i < a->dims; i++) sizes[2 + i] = plane[i];
  return fx_filled(a->s, like, (int32_t)a->dims + 2, sizes, 1, like ? like->dtype : GRAFT_F32);
}

/* Each plane as a batch of one channel. */
static graft_tensor *as_planes(const averaging *a, graft_tensor *x) {
  if (!x) return NULL;
  int64_t sizes[2 + POOL_DIMS] = {x->numel, 1};
  for (uint32_t i = 0; i < a->dims; i++) {
    sizes[2 + i] = x->sizes[x->ndim - (int32_t)a->dims + (int32_t)i];
    sizes[0] /= sizes[2 + i];
  }
  return fx_reshape(a->s, x, (int32_t)a->dims + 2, sizes);
}

static graft_tensor *pad(const averaging *a, graft_tensor *x, const int64_t *before, const int64_t *after,
                         int64_t value) {
  int64_t list[2 * POOL_DIMS];
  bool any = false;
  for (uint32_t i = 0; i < a->dims; i++) {
    list[2 * (a->dims - 1 - i)] = before[i];
    list[2 * (a->dims - 1 - i) + 1] = after[i];
    any = any || before[i] || after[i];
  }
  return any ? fx_constant_pad_nd(a->s, x, list, 2 * a->dims, graft_scalar_int(value)) : x;
}

static const int64_t zeros[POOL_DIMS];

static graft_tensor *sum_windows(const averaging *a, graft_tensor *x, bool transposed) {
  static const int64_t one[POOL_DIMS] = {1, 1, 1};
  uint32_t n = a->dims;
  return fx_convolution(a->s, x, ones(a, x, a->w.kernel), NULL, a->w.stride, n, zeros, n, one, n, transposed, zeros, n,
                        1);
}

/* How many elements each window counts, [1, 1] and a plane of the result; padding counts or not, the overhang never. */
static graft_tensor *window_counts(const averaging *a, graft_tensor *like) {
  graft_tensor *inside = pad(a, ones(a, like, a->size), a->w.padding, a->w.padding, a->count_padding);
  graft_tensor *counts = sum_windows(a, pad(a, inside, zeros, a->more, 0), false);
  return fx_binary(a->s, GRAFT_OP_MAXIMUM, fx_tensor(counts), fx_int(1));
}

/* x by the divisor of each window. */
static graft_tensor *by_divisor(const averaging *a, graft_tensor *x) {
  bool whole = true;
  int64_t kernel = 1;
  for (uint32_t i = 0; i < a->dims; i++) {
    whole = whole && a->more[i] <= 0 && (a->count_padding || !a->w.padding[i]);
    kernel *= a->w.kernel[i];
  }
  graft_value divisor = fx_int(kernel);
  if (a->divisor)
    divisor = fx_int(*a->divisor);
  else if (!whole)
    divisor = fx_tensor(window_counts(a, x));
  if (!x) return NULL;
  if (dt_is_float(x->dtype)) return fx_binary(a->s, GRAFT_OP_DIV_TENSOR, fx_tensor(x), divisor);
  return fx_divide(a->s, fx_tensor(x), divisor, "trunc");
}

void pool_decompose_average(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, INPUT);
  const graft_meta *out = &c->out[OUT];
  averaging a = averaging_of(s, c, self, out->sizes);
  int64_t after[POOL_DIMS];
  for (uint32_t i = 0; i < a.dims; i++) after[i] = a.w.padding[i] + a.more[i];
  graft_tensor *sums = sum_windows(&a, pad(&a, as_planes(&a, self), a.w.padding, after, 0), false);
  outs[OUT] = fx_reshape(s, by_divisor(&a, sums), out->ndim, out->sizes);
}

void pool_decompose_average_backward(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *grad = op_tensor(c, INPUT), *self = op_tensor(c, BACK_INPUT);
  averaging a = averaging_of(s, c, self, grad->sizes);
  int64_t before[POOL_DIMS], after[POOL_DIMS];
  for (uint32_t i = 0; i < a.dims; i++) {
    before[i] = -a.w.padding[i];
    after[i] = -a.w.padding[i] - a.more[i];
  }
  graft_tensor *shares = by_divisor(&a, as_planes(&a, grad));
  outs[OUT] = fx_reshape(s, pad(&a, sum_windows(&a, shares, true), before, after, 0), self->ndim, self->sizes);
}

/* --- maximum: gradients go where the indices say --- */

/* The dims of a plane as one. */
static graft_tensor *flat_planes(fx *s, graft_tensor *x, int dims) {
  if (!x) return NULL;
  int64_t sizes[GRAFT_MAX_DIMS];
  int32_t lead = x->ndim - dims;
  for (int32_t i = 0; i < lead; i++) sizes[i] = x->sizes[i];
  sizes[lead] = 1;
  for (int32_t i = lead; i < x->ndim; i++) sizes[lead] *= x->sizes[i];
  return fx_reshape(s, x, lead + 1, sizes);
}

typedef graft_tensor *(*scatter)(fx *s, graft_tensor *self, int64_t dim, graft_tensor *index, graft_tensor *src);

/* The first argument, put where the indices say. */
static graft_tensor *scattered(fx *s, const op_call *c, scatter put) {
  graft_tensor *from = op_tensor(c, INPUT), *indices = op_tensor(c, op_arg_named(c->schema, "indices"));
  const graft_meta *out = &c->out[OUT];
  int dims = dims_of(c->schema);
  graft_tensor *empty = flat_planes(s, fx_filled(s, from, out->ndim, out->sizes, 0, from->dtype), dims);
  graft_tensor *filled = put(s, empty, -1, flat_planes(s, indices, dims), flat_planes(s, from, dims));
  return fx_reshape(s, filled, out->ndim, out->sizes);
}

void pool_decompose_maximum_backward(fx *s, const op_call *c, graft_tensor **outs) {
  outs[OUT] = scattered(s, c, fx_scatter_add);
}

void pool_decompose_unpool(fx *s, const op_call *c, graft_tensor **outs) {
  outs[OUT] = scattered(s, c, fx_scatter_src);
}

void pool_vjp_maximum_backward(op_vjp *v) {
  graft_tensor *grad = vjp_arg(v, INPUT), *indices = vjp_arg(v, op_arg_named(v->schema, "indices"));
  int dims = dims_of(v->schema);
  if (vjp_needs(v, INPUT)) {
    graft_tensor *picked =
        fx_gather(v->s, flat_planes(v->s, v->g[OUT], dims), -1, flat_planes(v->s, indices, dims), false);
    v->results[INPUT] = fx_reshape(v->s, picked, grad->ndim, grad->sizes);
  }
  if (vjp_needs(v, BACK_INPUT)) v->results[BACK_INPUT] = fx_zeros_like(v->s, v->g[OUT]);
}

/* --- the others: calls of each other with the same windows --- */

/* What a backward op takes of its forward op's arguments: not what the shape of grad_output or the indices say. */
static bool is_taken(const op_schema *schema, uint32_t i) {
  const pool_row *row = op_row(schema->id);
  if (row->windows == POOL_ADAPTIVE) return i == INPUT;
  return (int)i != op_arg_named(schema, "random_samples");
}

void pool_vjp(op_vjp *v) {
  const pool_row *row = op_row(v->schema->id);
  graft_value args[LONGEST] = {fx_tensor(v->g[OUT])};
  uint32_t count = 1;
  if (!v->g[OUT]) return;
  for (uint32_t i = 0; i < v->schema->nargs; i++)
    if (is_taken(v->schema, i)) args[count++] = v->args[i];
  if (row->maximum) args[count++] = fx_tensor(v->outs[OUT_max_pool2d_with_indices_out1]);
  v->results[INPUT] = fx_one(v->s, row->other, args, count);
}

void pool_vjp_average_backward(op_vjp *v) {
  const pool_row *row = op_row(v->schema->id);
  graft_value args[LONGEST] = {fx_tensor(v->g[OUT])};
  uint32_t count = 1;
  for (uint32_t i = BACK_INPUT + 1; i < v->schema->nargs; i++) args[count++] = v->args[i];
  if (vjp_needs(v, INPUT)) v->results[INPUT] = fx_one(v->s, row->other, args, count);
  if (vjp_needs(v, BACK_INPUT)) v->results[BACK_INPUT] = fx_zeros_like(v->s, v->g[OUT]);
}
