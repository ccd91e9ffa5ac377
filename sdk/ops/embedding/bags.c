/* Bags of embeddings: rows of a table picked by index, and for each bag their sum, mean or maximum.
 *
 * Offsets say where each bag begins in the list of indices, none of them before the one before it; the first has to be
 * 0, and indices before it count to the first bag. With include_last_offset one more says where the last bag ends. The
 * rows of the padding index are in no bag. All of it is composed of gathers and scatters. */
#include <math.h>

#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

enum { MODE_SUM, MODE_MEAN, MODE_MAX };

/* --- rules --- */

static graft_status check_whole(op_call *c, int arg) {
  const graft_tensor *t = op_tensor(c, arg);
  if (t->dtype != GRAFT_I64 && t->dtype != GRAFT_I32) return op_refuse(c, arg, "i64 or i32");
  return t->ndim == 1 ? GRAFT_OK : op_refuse(c, arg, "one dim");
}

static graft_status check_mode(const op_call *c, int64_t mode) {
  if (mode >= MODE_SUM && mode <= MODE_MAX) return GRAFT_OK;
  return op_error(c, "mode is %lld; expected 0 (sum), 1 (mean) or 2 (max)", (long long)mode);
}

static graft_status check_weights(const op_call *c, int arg, int64_t mode, int64_t count, graft_dtype dtype) {
  const graft_tensor *weights = op_tensor(c, arg);
  if (!weights) return GRAFT_OK;
  if (mode != MODE_SUM) return op_error(c, "per_sample_weights are for sums; mode is %lld", (long long)mode);
  if (weights->dtype != dtype) return op_refuse(c, arg, "the dtype of the rows");
  if (weights->ndim == 1 && weights->numel == count) return GRAFT_OK;
  return op_refuse(c, arg, "a number for each of %lld indices", (long long)count);
}

static graft_status check_table(op_call *c, int arg) {
  const graft_tensor *weight = op_tensor(c, arg);
  c->compute = weight->dtype;
  return weight->ndim == 2 ? op_check_floating(c, arg) : op_refuse(c, arg, "a matrix");
}

static int64_t bags_of_call(const in_embedding_bag *in) {
  return in->offsets->numel - in->include_last_offset;
}

/* The results: the bags, the bag of each index, sizes of bags, index of each maximum. */
static graft_status infer_bag(op_call *c) {
  const in_embedding_bag in = in_embedding_bag_of(c->args);
  graft_status status = check_table(c, ARG_embedding_bag_weight);
  if (!status) status = check_whole(c, ARG_embedding_bag_indices);
  if (!status) status = check_whole(c, ARG_embedding_bag_offsets);
  if (!status) status = check_mode(c, in.mode);
  if (status) return status;
  int64_t bags = bags_of_call(&in), count = in.indices->numel;
  if (bags < 0) return op_error(c, "offsets is empty; with include_last_offset it has at least one number");
  if (!bags && count) return op_error(c, "there are indices and no bag (%s)", op_show_tensors(c));
  if (!in.weight->sizes[0] && count)
    return op_out_of_range(c, "weight %s has no element to index", op_show(c, ARG_embedding_bag_weight));
  status = check_weights(c, ARG_embedding_bag_per_sample_weights, in.mode, count, in.weight->dtype);
  if (status) return status;
  const int64_t sizes[] = {bags, in.weight->sizes[1]}, none = 0;
  bool largest = in.mode == MODE_MAX;
  op_out(c, OUT_embedding_bag_out0, in.weight->dtype, 2, sizes);
  op_out(c, OUT_embedding_bag_out1, in.indices->dtype, 1, &count);
  op_out(c, OUT_embedding_bag_out2, in.indices->dtype, 1, &in.offsets->numel);
  op_out(c, OUT_embedding_bag_out3, in.indices->dtype, largest ? 2 : 1, largest ? sizes : &none);
  return GRAFT_OK;
}

/* The dense form is the other one without offsets and sparse. */
static in_embedding_bag_backward backward_of(const op_call *c) {
  if (c->schema->id == GRAFT_OP_EMBEDDING_BAG_BACKWARD) return in_embedding_bag_backward_of(c->args);
  const in_embedding_bag_dense_backward in = in_embedding_bag_dense_backward_of(c->args);
  return (in_embedding_bag_backward){.grad = in.grad,
                                     .indices = in.indices,
                                     .offset2bag = in.offset2bag,
                                     .bag_size = in.bag_size,
                                     .maximum_indices = in.maximum_indices,
                                     .num_weights = in.num_weights,
                                     .scale_grad_by_freq = in.scale_grad_by_freq,
                                     .mode = in.mode,
                                     .per_sample_weights = in.per_sample_weights,
                                     .padding_idx = in.padding_idx};
}

static graft_status check_bag_of_each(op_call *c, int arg, int64_t count) {
  graft_status status = check_whole(c, arg);
  if (status || op_tensor(c, arg)->numel == count) return status;
  return op_refuse(c, arg, "a bag for each of %lld indices", (long long)count);
}

static graft_status infer_backward(op_call *c) {
  const in_embedding_bag_backward in = backward_of(c);
  int size = op_arg_named(c->schema, "bag_size"), weights = op_arg_named(c->schema, "per_sample_weights");
  graft_status status = check_table(c, ARG_embedding_bag_backward_grad);
  if (!status) status = check_whole(c, ARG_embedding_bag_backward_indices);
  if (!status) status = check_mode(c, in.mode);
  if (!status) status = check_bag_of_each(c, op_arg_named(c->schema, "offset2bag"), in.indices->numel);
  if (!status) status = check_whole(c, size);
  if (!status) status = check_weights(c, weights, in.mode, in.indices->numel, in.grad->dtype);
  if (status) return status;
  if (in.sparse) return op_error(c, "sparse gradients are not served; use sparse=False");
  if (in.bag_size->numel < in.grad->sizes[0]) return op_error(c, "bag_size has fewer bags than grad");
  if (in.mode == MODE_MAX && in.maximum_indices->numel != in.grad->numel) {
    return op_error(c, "maximum_indices is not shaped like grad");
  }
  if (in.num_weights < 0) return op_error(c, "num_weights is %lld; expected at least 0", (long long)in.num_weights);
  op_out(c, OUT, in.grad->dtype, 2, (int64_t[]){in.num_weights, in.grad->sizes[1]});
  return GRAFT_OK;
}

static graft_status infer_weights_backward(op_call *c) {
  const in_embedding_bag_per_sample_weights_backward in = in_embedding_bag_per_sample_weights_backward_of(c->args);
  int weight = ARG_embedding_bag_per_sample_weights_backward_weight;
  graft_status status = check_table(c, weight);
  if (!status) status = check_whole(c, ARG_embedding_bag_per_sample_weights_backward_indices);
  if (!status) {
    status = check_bag_of_each(c, ARG_embedding_bag_per_sample_weights_backward_offset2bag, in.indices->numel);
  }
  if (!status && in.mode != MODE_SUM) status = op_error(c, "per_sample_weights are for sums");
  if (status) return status;
  if (in.grad->ndim != 2 || in.grad->sizes[1] != in.weight->sizes[1] || in.grad->dtype != in.weight->dtype) {
    return op_refuse(c, ARG_embedding_bag_per_sample_weights_backward_grad, "rows like those of weight %s",
                     op_show(c, weight));
  }
  op_out(c, OUT, in.grad->dtype, 1, &in.indices->numel);
  return GRAFT_OK;
}

/* --- decompositions --- */

static graft_tensor *column(fx *s, graft_tensor *t) {
  return fx_unsqueeze(s, t, 1);
}

/* A row for each index, by the number in `places`. */
static graft_tensor *picked(fx *s, graft_tensor *table, graft_tensor *places) {
  return fx_embedding(s, table, places, -1, false, false);
}

/* The bag of each index: how many of the bags after the first begin at or before it. */
static graft_tensor *bag_of_each(fx *s, const op_call *c, graft_tensor *offsets, int64_t bags, int64_t count) {
  const int64_t second = 1;
  graft_tensor *begins = fx_slice_Tensor(s, offsets, 0, &second, &bags, 1);
  return fx_searchsorted_Tensor(s, begins, fx_count_up(s, count, offsets->dtype, c->device), false, true, NULL, NULL);
}

/* true where an index is not the padding index; NULL: there is none. */
static graft_tensor *kept_of(fx *s, graft_tensor *indices, int64_t padding_idx) {
  return padding_idx < 0 ? NULL : fx_ne_Scalar(s, indices, graft_scalar_int(padding_idx));
}

static graft_tensor *rows_kept(fx *s, graft_tensor *kept, graft_tensor *rows, double other) {
  if (!kept || s->status) return rows;
  return fx_where_self(s, column(s, kept), rows, fx_filled(s, rows, 2, rows->sizes, other, rows->dtype));
}

/* Forward while it is composed. */
typedef struct bag_call {
  int64_t sizes[2], count;                      /* bags, width; indices */
  graft_tensor *indices, *kept, *rows, *places; /* places: the bag of each element of rows */
  graft_tensor *empty;                          /* [bags, 1]: nothing is in it */
} bag_call;

static graft_tensor *total(fx *s, const in_embedding_bag *in, const bag_call *b, graft_tensor *bag_size) {
  graft_tensor *rows = b->rows;
  if (in->per_sample_weights) rows = fx_mul(s, rows, column(s, in->per_sample_weights));
  graft_tensor *zeros = fx_filled(s, b->indices, 2, b->sizes, 0, in->weight->dtype);
  graft_tensor *sum = fx_scatter_add(s, zeros, 0, b->places, rows_kept(s, b->kept, rows, 0));
  if (in->mode == MODE_SUM) return sum;
  graft_tensor *divisor = fx_cast(s, fx_clamp_min(s, bag_size, graft_scalar_int(1)), in->weight->dtype);
  return fx_div(s, sum, column(s, divisor));
}

/* Of each element of a bag, the number of the first index in it that the mask holds for, or of the last index of all.
 */
static graft_tensor *first_of(fx *s, const op_call *c, const bag_call *b, graft_tensor *mask) {
  const int64_t shape[] = {b->count, b->sizes[1]};
  const double last = (double)(b->count - 1);
  graft_tensor *order = fx_expand(s, column(s, fx_count_up(s, b->count, GRAFT_I64, c->device)), shape, 2, false);
  if (mask) order = fx_where_self(s, mask, order, fx_filled(s, b->indices, 2, shape, last, GRAFT_I64));
  graft_tensor *none = fx_filled(s, b->indices, 2, b->sizes, last, GRAFT_I64);
  return fx_scatter_reduce_two(s, none, 0, b->places, order, "amin", true);
}

/* The largest of each bag, and the index of the first row that has it. As in PyTorch the first row is taken and then
 * each that is larger, so that a NaN is the largest where it comes first and is passed over where it does not. */
static void maximum(fx *s, const op_call *c, const bag_call *b, graft_tensor **outs) {
  const int64_t shape[] = {b->count, b->sizes[1]};
  graft_tensor *lowest =
      fx_filled(s, b->indices, 2, b->sizes, -INFINITY, op_tensor(c, ARG_embedding_bag_weight)->dtype);
  graft_tensor *kept = b->kept ? fx_expand(s, column(s, b->kept), shape, 2, false) : NULL;
  graft_tensor *rows = rows_kept(s, b->kept, b->rows, -INFINITY);
  graft_tensor *order = column(s, fx_count_up(s, b->count, GRAFT_I64, c->device));
  graft_tensor *leads = fx_eq_Tensor(s, fx_gather(s, first_of(s, c, b, kept), 0, b->places, false), order);
  graft_tensor *stays = fx_logical_or(s, leads, fx_logical_not(s, fx_isnan(s, rows)));
  if (s->status) return;
  rows = fx_where_self(s, stays, rows, fx_filled(s, rows, 2, shape, -INFINITY, rows->dtype));
  graft_tensor *top = fx_scatter_reduce_two(s, lowest, 0, b->places, rows, "amax", true);
  graft_tensor *hit = fx_eq_Tensor(s, rows, fx_gather(s, top, 0, b->places, false));
  hit = fx_logical_or(s, hit, fx_isnan(s, rows));
  if (kept) hit = fx_logical_and(s, hit, kept);
  graft_tensor *first = first_of(s, c, b, hit);
  top = fx_gather(s, rows, 0, first, false); /* of zeros the one that comes first */
  outs[OUT_embedding_bag_out0] = fx_where_self(s, b->empty, fx_zeros_like(s, top), top);
  graft_tensor *flat = fx_reshape(s, first, 1, (int64_t[]){b->sizes[0] * b->sizes[1]});
  graft_tensor *words = fx_reshape(s, fx_index_select(s, b->indices, 0, flat), 2, b->sizes);
  outs[OUT_embedding_bag_out3] = fx_where_self(s, b->empty, fx_zeros_like(s, words), words);
}

/* Bags begin between the indices, none before the one before it: an offset elsewhere, or a step back, is out of range,
 * as index_select says. */
static void check_offsets(fx *s, const op_call *c, graft_tensor *offsets, int64_t count) {
  const int64_t second = 1, last = offsets->numel - 1;
  graft_tensor *places = fx_count_up(s, count + 1, GRAFT_I64, c->device);
  fx_index_select(s, places, 0, offsets);
  if (last < 1) return;
  graft_tensor *later = fx_slice_Tensor(s, offsets, 0, &second, NULL, 1);
  fx_index_select(s, places, 0, fx_sub(s, later, fx_slice_Tensor(s, offsets, 0, NULL, &last, 1)));
}

static void decompose_bag(fx *s, const op_call *c, graft_tensor **outs) {
  const in_embedding_bag in = in_embedding_bag_of(c->args);
  bag_call b = {.sizes = {bags_of_call(&in), in.weight->sizes[1]}, .indices = in.indices, .count = in.indices->numel};
  graft_dtype whole = in.indices->dtype;
  check_offsets(s, c, in.offsets, b.count);
  if (!b.count) {
    for (int i = 0; i < 4; i++) {
      outs[i] = fx_filled(s, in.weight, c->out[i].ndim, c->out[i].sizes, 0, c->out[i].dtype);
    }
    return;
  }
  graft_tensor *bag = bag_of_each(s, c, in.offsets, b.sizes[0], b.count);
  b.kept = kept_of(s, b.indices, in.padding_idx);
  b.rows = picked(s, in.weight, b.indices);
  b.places = fx_expand(s, column(s, bag), (int64_t[]){b.count, b.sizes[1]}, 2, false);
  graft_tensor *ones = b.kept ? fx_cast(s, b.kept, GRAFT_I64) : fx_filled(s, bag, 1, &b.count, 1, GRAFT_I64);
  graft_tensor *counts = fx_scatter_add(s, fx_filled(s, bag, 1, &in.offsets->numel, 0, GRAFT_I64), 0, bag, ones);
  graft_tensor *bag_size = fx_slice_Tensor(s, counts, 0, NULL, &b.sizes[0], 1);
  b.empty = column(s, fx_eq_Scalar(s, bag_size, graft_scalar_int(0)));
  outs[OUT_embedding_bag_out1] = fx_cast(s, bag, whole);
  outs[OUT_embedding_bag_out2] = fx_cast(s, counts, whole);
  if (s->status) return;
  if (in.mode == MODE_MAX) {
    maximum(s, c, &b, outs);
  } else {
    outs[OUT_embedding_bag_out0] = total(s, &in, &b, bag_size);
    outs[OUT_embedding_bag_out3] = fx_filled(s, bag, 1, (int64_t[]){0}, 0, whole);
  }
}

/* The gradient of maxima goes to the rows that had them. */
static graft_tensor *to_maxima(fx *s, const op_call *c, graft_tensor *grad, graft_tensor *bag_size,
                               graft_tensor *maximum) {
  graft_tensor *sizes = fx_slice_Tensor(s, bag_size, 0, NULL, &grad->sizes[0], 1);
  graft_tensor *empty = column(s, fx_eq_Scalar(s, sizes, graft_scalar_int(0)));
  grad = fx_where_self(s, empty, fx_zeros_like(s, grad), grad);
  graft_tensor *zeros = fx_filled(s, grad, 2, c->out[OUT].sizes, 0, grad->dtype);
  return fx_scatter_add(s, zeros, 0, fx_cast(s, maximum, GRAFT_I64), grad);
}

static void decompose_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_embedding_bag_backward in = backward_of(c);
  graft_tensor *grad = in.grad;
  if (!in.indices->numel) {
    outs[OUT] = fx_filled(s, grad, 2, c->out[OUT].sizes, 0, grad->dtype);
  } else if (in.mode == MODE_MAX) {
    outs[OUT] = to_maxima(s, c, grad, in.bag_size, in.maximum_indices);
  } else {
    graft_tensor *rows = picked(s, grad, in.offset2bag);
    if (in.mode == MODE_MEAN) {
      graft_tensor *divisor = fx_clamp_min(s, fx_index_select(s, in.bag_size, 0, in.offset2bag), graft_scalar_int(1));
      rows = fx_div(s, rows, column(s, fx_cast(s, divisor, grad->dtype)));
    }
    if (in.per_sample_weights) rows = fx_mul(s, rows, column(s, in.per_sample_weights));
    outs[OUT] = fx_embedding_dense_backward(s, rows, in.indices, in.num_weights, in.padding_idx, in.scale_grad_by_freq);
  }
}

static void decompose_weights_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_embedding_bag_per_sample_weights_backward in = in_embedding_bag_per_sample_weights_backward_of(c->args);
  graft_tensor *product = fx_mul(s, picked(s, in.grad, in.offset2bag), picked(s, in.weight, in.indices));
  outs[OUT] = fx_sum(s, rows_kept(s, kept_of(s, in.indices, in.padding_idx), product, 0), 1u << 1, false);
}

/* --- gradient --- */

static void vjp_bag(op_vjp *v) {
  const in_embedding_bag in = in_embedding_bag_of(v->args);
  graft_tensor *g = v->g[OUT_embedding_bag_out0], *bag = v->outs[OUT_embedding_bag_out1],
               *bag_size = v->outs[OUT_embedding_bag_out2], *largest = v->outs[OUT_embedding_bag_out3];
  if (vjp_needs(v, ARG_embedding_bag_weight)) {
    v->results[ARG_embedding_bag_weight] =
        fx_embedding_bag_backward(v->s, g, in.indices, in.offsets, bag, bag_size, largest, in.weight->sizes[0],
                                  in.scale_grad_by_freq, in.mode, false, in.per_sample_weights, in.padding_idx);
  }
  if (vjp_needs(v, ARG_embedding_bag_per_sample_weights)) {
    v->results[ARG_embedding_bag_per_sample_weights] = fx_embedding_bag_per_sample_weights_backward(
        v->s, g, in.weight, in.indices, in.offsets, bag, in.mode, in.padding_idx);
  }
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_EMBEDDING_BAG,
     .roles = "viiv",
     .infer = infer_bag,
     .decompose = decompose_bag,
     .vjp = vjp_bag,
     .saves = OP_SAVE_ARGS(embedding_bag, weight, indices, offsets, per_sample_weights) |
              OP_SAVE_OUT(embedding_bag, out1) | OP_SAVE_OUT(embedding_bag, out2) | OP_SAVE_OUT(embedding_bag, out3)},
    {.op_id = GRAFT_OP_EMBEDDING_BAG_BACKWARD,
     .roles = "viiiiiv",
     .infer = infer_backward,
     .decompose = decompose_backward},
    {.op_id = GRAFT_OP_EMBEDDING_BAG_DENSE_BACKWARD,
     .roles = "viiiiv",
     .infer = infer_backward,
     .decompose = decompose_backward},
    {.op_id = GRAFT_OP_EMBEDDING_BAG_PER_SAMPLE_WEIGHTS_BACKWARD,
     .roles = "vviii",
     .infer = infer_weights_backward,
     .decompose = decompose_weights_backward},
};
OP_TABLE(embedding_bags, defs)
