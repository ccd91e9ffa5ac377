/* Bags of embeddings: rows of a table picked by index, and for each bag their sum, mean or maximum.
 *
 * Offsets say where each bag begins in the list of indices; the first has to be 0, and indices before it count to the
 * first bag. With include_last_offset one more says where the last bag ends. The rows of the padding index are in no
 * bag. All of it is composed of gathers and scatters. */
#include <math.h>

#include "ops/core/families.h"
#include "ops/generated/fx_ops.h"

enum { MODE_SUM, MODE_MEAN, MODE_MAX };

/* --- rules --- */

static graft_status check_whole(op_call *c, int arg) {
  const graft_tensor *t = op_tensor(c, arg);
  if (t->dtype != GRAFT_I64 && t->dtype != GRAFT_I32) return op_refuse_dtype(c, arg, "i64 or i32");
  return t->ndim == 1 ? GRAFT_OK : op_refuse_dtype(c, arg, "one dim");
}

static graft_status check_mode(const op_call *c, int64_t mode) {
  if (mode >= MODE_SUM && mode <= MODE_MAX) return GRAFT_OK;
  return op_error(c, "mode is %lld; expected 0 (sum), 1 (mean) or 2 (max)", (long long)mode);
}

static graft_status check_weights(const op_call *c, int arg, int64_t mode, int64_t count, graft_dtype dtype) {
  const graft_tensor *weights = op_tensor(c, arg);
  if (!weights) return GRAFT_OK;
  if (mode != MODE_SUM) return op_error(c, "per_sample_weights are for sums; mode is %lld", (long long)mode);
  if (weights->dtype != dtype) return op_refuse_dtype(c, arg, "the dtype of the rows");
  if (weights->ndim == 1 && weights->numel == count) return GRAFT_OK;
  return op_error(c, "per_sample_weights is %s; expected a number for each of %lld indices", op_show(c, arg),
                  (long long)count);
}

static graft_status check_table(op_call *c, int arg) {
  const graft_tensor *weight = op_tensor(c, arg);
  c->compute = weight->dtype;
  if (!dt_is_float(weight->dtype) || dt_is_float8(weight->dtype)) return op_refuse_dtype(c, arg, "a floating dtype");
  return weight->ndim == 2 ? GRAFT_OK : op_error(c, "weight is %s; expected a matrix", op_show(c, arg));
}

enum { WEIGHT, INDICES, OFFSETS, SCALE, MODE, SPARSE, SAMPLE_WEIGHTS, LAST, PADDING };

static int64_t bags_of_call(const graft_value *args) {
  return args[OFFSETS].as.tensor->numel - (args[LAST].as.i != 0);
}

/* _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
 * padding_idx) -> (result, the bag of each index, sizes of bags, index of each maximum) */
static graft_status infer_bag(op_call *c) {
  graft_status status = check_table(c, WEIGHT);
  for (int i = INDICES; !status && i <= OFFSETS; i++) status = check_whole(c, i);
  if (!status) status = check_mode(c, op_int(c, MODE));
  if (status) return status;
  const graft_tensor *weight = op_tensor(c, WEIGHT), *indices = op_tensor(c, INDICES);
  int64_t bags = bags_of_call(c->args), mode = op_int(c, MODE);
  if (bags < 0) return op_error(c, "offsets is empty; with include_last_offset it has at least one number");
  if (!bags && indices->numel) return op_error(c, "there are indices and no bag (%s)", op_show_tensors(c));
  status = check_weights(c, SAMPLE_WEIGHTS, mode, indices->numel, weight->dtype);
  if (status) return status;
  const int64_t sizes[] = {bags, weight->sizes[1]};
  op_out(c, 0, weight->dtype, 2, sizes);
  op_out(c, 1, indices->dtype, 1, &indices->numel);
  op_out(c, 2, indices->dtype, 1, &op_tensor(c, OFFSETS)->numel);
  op_out(c, 3, indices->dtype, mode == MODE_MAX ? 2 : 1, mode == MODE_MAX ? sizes : (int64_t[]){0});
  return GRAFT_OK;
}

/* The backward ops: where each has its arguments; -1 where it has not. */
typedef struct places {
  int8_t offsets, bag, size, maximum, rows, scale, mode, sparse, weights, padding;
} places;
static const places of_backward = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const places of_dense = {-1, 2, 3, 4, 5, 6, 7, -1, 8, 9};

static const places *places_of(const op_call *c) {
  return c->schema->id == GRAFT_OP_EMBEDDING_BAG_BACKWARD ? &of_backward : &of_dense;
}

static graft_status check_bag_of_each(op_call *c, int arg, int64_t count) {
  graft_status status = check_whole(c, arg);
  if (status || op_tensor(c, arg)->numel == count) return status;
  return op_error(c, "offset2bag is %s; expected a bag for each of %lld indices", op_show(c, arg), (long long)count);
}

static graft_status infer_backward(op_call *c) {
  const places *at = places_of(c);
  const graft_tensor *grad = op_tensor(c, 0), *indices = op_tensor(c, 1), *maximum = op_tensor(c, at->maximum);
  int64_t mode = op_int(c, at->mode), rows = op_int(c, at->rows);
  graft_status status = check_table(c, 0);
  if (!status) status = check_whole(c, 1);
  if (!status) status = check_mode(c, mode);
  if (!status) status = check_bag_of_each(c, at->bag, indices->numel);
  if (!status) status = check_whole(c, at->size);
  if (!status) status = check_weights(c, at->weights, mode, indices->numel, grad->dtype);
  if (status) return status;
  if (at->sparse >= 0 && op_bool(c, at->sparse))
    return op_error(c, "sparse gradients are not served; use sparse=False");
  if (op_tensor(c, at->size)->numel < grad->sizes[0]) return op_error(c, "bag_size has fewer bags than grad");
  if (mode == MODE_MAX && maximum->numel != grad->numel) return op_error(c, "maximum_indices is not shaped like grad");
  if (rows < 0) return op_error(c, "num_weights is %lld; expected at least 0", (long long)rows);
  op_out(c, 0, grad->dtype, 2, (int64_t[]){rows, grad->sizes[1]});
  return GRAFT_OK;
}

/* (grad, weight, indices, offsets, offset2bag, mode, padding_idx) */
static graft_status infer_weights_backward(op_call *c) {
  const graft_tensor *grad = op_tensor(c, 0), *weight = op_tensor(c, 1), *indices = op_tensor(c, 2);
  graft_status status = check_table(c, 1);
  if (!status) status = check_whole(c, 2);
  if (!status) status = check_bag_of_each(c, 4, indices->numel);
  if (!status && op_int(c, 5) != MODE_SUM) status = op_error(c, "per_sample_weights are for sums");
  if (status) return status;
  if (grad->ndim != 2 || grad->sizes[1] != weight->sizes[1] || grad->dtype != weight->dtype) {
    return op_error(c, "grad is %s; expected rows like those of weight %s", op_show(c, 0), op_show(c, 1));
  }
  op_out(c, 0, grad->dtype, 1, &indices->numel);
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

static graft_tensor *counting(fx *s, const op_call *c, int64_t count, graft_dtype dtype) {
  return fx_arange_start_step(s, graft_scalar_int(0), graft_scalar_int(count), graft_scalar_int(1), dtype, c->device);
}

/* The bag of each index: how many of the bags after the first begin at or before it. */
static graft_tensor *bag_of_each(fx *s, const op_call *c, graft_tensor *offsets, int64_t bags, int64_t count) {
  const int64_t second = 1;
  graft_tensor *begins = fx_slice_Tensor(s, offsets, 0, &second, &bags, 1);
  return fx_searchsorted_Tensor(s, begins, counting(s, c, count, offsets->dtype), false, true, NULL, NULL);
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

static graft_tensor *total(fx *s, const op_call *c, const bag_call *b, graft_tensor *bag_size) {
  graft_tensor *rows = b->rows, *weights = op_tensor(c, SAMPLE_WEIGHTS);
  graft_dtype dtype = op_tensor(c, WEIGHT)->dtype;
  if (weights) rows = fx_mul(s, rows, column(s, weights));
  graft_tensor *zeros = fx_filled(s, b->indices, 2, b->sizes, 0, dtype);
  graft_tensor *sum = fx_scatter_add(s, zeros, 0, b->places, rows_kept(s, b->kept, rows, 0));
  if (op_int(c, MODE) == MODE_SUM) return sum;
  graft_tensor *divisor = fx_cast(s, fx_clamp_min(s, bag_size, graft_scalar_int(1)), dtype);
  return fx_div(s, sum, column(s, divisor));
}

/* The largest of each bag, and the index of the first row that has it. */
static void maximum(fx *s, const op_call *c, const bag_call *b, graft_tensor **outs) {
  graft_tensor *lowest = fx_filled(s, b->indices, 2, b->sizes, -INFINITY, op_tensor(c, WEIGHT)->dtype);
  graft_tensor *rows = rows_kept(s, b->kept, b->rows, -INFINITY);
  graft_tensor *top = fx_scatter_reduce_two(s, lowest, 0, b->places, rows, "amax", true);
  outs[0] = fx_where_self(s, b->empty, fx_zeros_like(s, top), top);
  graft_tensor *hit = fx_eq_Tensor(s, rows, fx_gather(s, top, 0, b->places, false));
  if (b->kept) hit = fx_where_self(s, column(s, b->kept), hit, fx_zeros_like(s, hit));
  const int64_t shape[] = {b->count, b->sizes[1]};
  graft_tensor *last = fx_filled(s, b->indices, 2, shape, (double)(b->count - 1), GRAFT_I64);
  graft_tensor *order = fx_expand(s, column(s, counting(s, c, b->count, GRAFT_I64)), shape, 2, false);
  graft_tensor *none = fx_filled(s, b->indices, 2, b->sizes, (double)(b->count - 1), GRAFT_I64);
  graft_tensor *first = fx_scatter_reduce_two(s, none, 0, b->places, fx_where_self(s, hit, order, last), "amin", true);
  graft_tensor *flat = fx_reshape(s, first, 1, (int64_t[]){b->sizes[0] * b->sizes[1]});
  graft_tensor *words = fx_reshape(s, fx_index_select(s, b->indices, 0, flat), 2, b->sizes);
  outs[3] = fx_where_self(s, b->empty, fx_zeros_like(s, words), words);
}

/* Bags begin between the indices: an offset elsewhere is out of range, as index_select says. */
static void check_offsets(fx *s, const op_call *c, graft_tensor *offsets, int64_t count) {
  fx_index_select(s, counting(s, c, count + 1, GRAFT_I64), 0, offsets);
}

static void decompose_bag(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *weight = op_tensor(c, WEIGHT), *offsets = op_tensor(c, OFFSETS);
  bag_call b = {.sizes = {bags_of_call(c->args), weight->sizes[1]}, .indices = op_tensor(c, INDICES)};
  b.count = b.indices->numel;
  graft_dtype whole = b.indices->dtype;
  check_offsets(s, c, offsets, b.count);
  if (!b.count) {
    const graft_dtype dtypes[] = {weight->dtype, whole, whole, whole};
    for (int i = 0; i < 4; i++) outs[i] = fx_filled(s, weight, c->out[i].ndim, c->out[i].sizes, 0, dtypes[i]);
    return;
  }
  graft_tensor *bag = bag_of_each(s, c, offsets, b.sizes[0], b.count);
  b.kept = kept_of(s, b.indices, op_int(c, PADDING));
  b.rows = picked(s, weight, b.indices);
  b.places = fx_expand(s, column(s, bag), (int64_t[]){b.count, b.sizes[1]}, 2, false);
  graft_tensor *ones = b.kept ? fx_cast(s, b.kept, GRAFT_I64) : fx_filled(s, bag, 1, &b.count, 1, GRAFT_I64);
  graft_tensor *counts = fx_scatter_add(s, fx_filled(s, bag, 1, &offsets->numel, 0, GRAFT_I64), 0, bag, ones);
  graft_tensor *bag_size = fx_slice_Tensor(s, counts, 0, NULL, &b.sizes[0], 1);
  b.empty = column(s, fx_eq_Scalar(s, bag_size, graft_scalar_int(0)));
  outs[1] = fx_cast(s, bag, whole);
  outs[2] = fx_cast(s, counts, whole);
  if (op_int(c, MODE) == MODE_MAX) {
    maximum(s, c, &b, outs);
  } else {
    outs[0] = total(s, c, &b, bag_size);
    outs[3] = fx_filled(s, bag, 1, (int64_t[]){0}, 0, whole);
  }
}

/* The gradient of maxima goes to the rows that had them. */
static graft_tensor *to_maxima(fx *s, const op_call *c, graft_tensor *grad, graft_tensor *bag_size,
                               graft_tensor *maximum) {
  graft_tensor *sizes = fx_slice_Tensor(s, bag_size, 0, NULL, &grad->sizes[0], 1);
  graft_tensor *empty = column(s, fx_eq_Scalar(s, sizes, graft_scalar_int(0)));
  grad = fx_where_self(s, empty, fx_zeros_like(s, grad), grad);
  graft_tensor *zeros = fx_filled(s, grad, 2, c->out[0].sizes, 0, grad->dtype);
  return fx_scatter_add(s, zeros, 0, fx_cast(s, maximum, GRAFT_I64), grad);
}

static void decompose_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const places *at = places_of(c);
  graft_tensor *grad = op_tensor(c, 0), *indices = op_tensor(c, 1), *weights = op_tensor(c, at->weights);
  graft_tensor *bag = op_tensor(c, at->bag), *bag_size = op_tensor(c, at->size);
  int64_t mode = op_int(c, at->mode);
  if (!indices->numel) {
    outs[0] = fx_filled(s, grad, 2, c->out[0].sizes, 0, grad->dtype);
  } else if (mode == MODE_MAX) {
    outs[0] = to_maxima(s, c, grad, bag_size, op_tensor(c, at->maximum));
  } else {
    graft_tensor *rows = picked(s, grad, bag);
    if (mode == MODE_MEAN) {
      graft_tensor *divisor = fx_clamp_min(s, fx_index_select(s, bag_size, 0, bag), graft_scalar_int(1));
      rows = fx_div(s, rows, column(s, fx_cast(s, divisor, grad->dtype)));
    }
    if (weights) rows = fx_mul(s, rows, column(s, weights));
    outs[0] = fx_embedding_dense_backward(s, rows, indices, op_int(c, at->rows), op_int(c, at->padding),
                                          op_bool(c, at->scale));
  }
}

static void decompose_weights_backward(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *indices = op_tensor(c, 2);
  graft_tensor *product = fx_mul(s, picked(s, op_tensor(c, 0), op_tensor(c, 4)), picked(s, op_tensor(c, 1), indices));
  outs[0] = fx_sum(s, rows_kept(s, kept_of(s, indices, op_int(c, 6)), product, 0), 1u << 1, false);
}

/* --- gradient --- */

static void vjp_bag(op_vjp *v) {
  const graft_value *a = v->args;
  graft_tensor *weight = vjp_arg(v, WEIGHT), *indices = vjp_arg(v, INDICES), *offsets = vjp_arg(v, OFFSETS);
  if (vjp_needs(v, WEIGHT)) {
    v->results[WEIGHT] =
        fx_embedding_bag_backward(v->s, v->g[0], indices, offsets, v->outs[1], v->outs[2], v->outs[3], weight->sizes[0],
                                  a[SCALE].as.i != 0, a[MODE].as.i, false, vjp_arg(v, SAMPLE_WEIGHTS), a[PADDING].as.i);
  }
  if (vjp_needs(v, SAMPLE_WEIGHTS)) {
    v->results[SAMPLE_WEIGHTS] = fx_embedding_bag_per_sample_weights_backward(
        v->s, v->g[0], weight, indices, offsets, v->outs[1], a[MODE].as.i, a[PADDING].as.i);
  }
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_EMBEDDING_BAG,
     .roles = "viiv",
     .infer = infer_bag,
     .decompose = decompose_bag,
     .vjp = vjp_bag,
     .saves = OP_SAVE_ARG(WEIGHT) | OP_SAVE_ARG(INDICES) | OP_SAVE_ARG(OFFSETS) | OP_SAVE_ARG(SAMPLE_WEIGHTS) |
              OP_SAVE_OUT(1) | OP_SAVE_OUT(2) | OP_SAVE_OUT(3)},
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
