/* Embedding: rows of a table picked by index, and the table's gradient. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"
#include "ops/indexing/indexing.h"

/* --- rules --- */

static graft_status check_indices(op_call *c) {
  graft_dtype dtype = op_tensor(c, ARG_embedding_indices)->dtype;
  return dtype == GRAFT_I64 || dtype == GRAFT_I32 ? GRAFT_OK : op_refuse(c, ARG_embedding_indices, "i64 or i32");
}

/* padding_idx, scale_grad_by_freq and sparse concern the gradient alone. */
static graft_status infer_embedding(op_call *c) {
  const in_embedding in = in_embedding_of(c->args);
  if (in.weight->ndim != 2) return op_refuse(c, ARG_embedding_weight, "a matrix");
  graft_status status = check_indices(c);
  if (status) return status;
  if (in.indices->ndim == GRAFT_MAX_DIMS)
    return op_error(c, "indices has %d dims, the most there can be", in.indices->ndim);
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < in.indices->ndim; i++) sizes[i] = in.indices->sizes[i];
  sizes[in.indices->ndim] = in.weight->sizes[1];
  c->compute = in.weight->dtype;
  op_out(c, OUT, in.weight->dtype, in.indices->ndim + 1, sizes);
  return GRAFT_OK;
}

static graft_status infer_backward(op_call *c) {
  const in_embedding_dense_backward in = in_embedding_dense_backward_of(c->args);
  const graft_tensor *grad = in.grad_output;
  graft_status status = check_indices(c);
  if (status) return status;
  int64_t width = grad->ndim ? grad->sizes[grad->ndim - 1] : -1;
  if (width < 0 || grad->numel != in.indices->numel * width) {
    return op_error(c, "grad_output has not one row for each index (%s)", op_show_tensors(c));
  }
  if (in.num_weights < 0) return op_error(c, "num_weights is %lld; expected at least 0", (long long)in.num_weights);
  c->compute = grad->dtype;
  op_out(c, OUT, grad->dtype, 2, (int64_t[]){in.num_weights, width});
  return GRAFT_OK;
}

/* --- kernels --- */

static graft_status check_range(const char *op, const ref_array *indices, int64_t rows) {
  for (int64_t i = 0; i < indices->count; i++) {
    if (indices->re[i] >= 0 && indices->re[i] < rows) continue;
    return err_about(GRAFT_OUT_OF_RANGE, op, "index %lld at position %lld is out of range for a table of %lld rows",
                     (long long)indices->re[i], (long long)i, (long long)rows);
  }
  return GRAFT_OK;
}

static void copy_row(const ref_array *from, int64_t from_row, ref_array *to, int64_t to_row, int64_t width) {
  for (int64_t j = 0; j < width; j++) {
    to->re[to_row * width + j] = from->re[from_row * width + j];
    if (to->im) to->im[to_row * width + j] = from->im[from_row * width + j];
  }
}

graft_status kernel_embedding(const graft_exec *exec, const graft_args_embedding *a) {
  int64_t width = a->weight->dl.shape[1];
  REF_OWNED ref_array weight = ref_read(a->weight), indices = ref_read(a->indices);
  REF_OWNED ref_array out = ref_new(ref_numel(a->out), weight.im != NULL);
  graft_status status = weight.re && indices.re && out.re ? GRAFT_OK : ref_no_memory();
  if (!status) status = check_range("aten::embedding", &indices, a->weight->dl.shape[0]);
  for (int64_t i = 0; !status && i < indices.count; i++) copy_row(&weight, (int64_t)indices.re[i], &out, i, width);
  if (!status) ref_write(a->out, &out);
  return status;
}

/* How often the index at `of` occurs. */
static int64_t frequency(const ref_array *indices, int64_t of) {
  int64_t count = 0;
  for (int64_t i = 0; i < indices->count; i++) count += indices->re[i] == indices->re[of];
  return count;
}

static void add_row(graft_dtype dtype, const ref_real *from, ref_real *to, int64_t width, ref_real divisor) {
  for (int64_t j = 0; j < width; j++) {
    ref_real share = divisor == 1 ? from[j] : from[j] / divisor;
    ref_add(dtype, &to[j], share);
  }
}

graft_status kernel_embedding_dense_backward(const graft_exec *exec, const graft_args_embedding_dense_backward *a) {
  int64_t width = a->out->dl.shape[1];
  graft_dtype dtype = a->out->dl.dtype;
  REF_OWNED ref_array grad = ref_read(a->grad_output), indices = ref_read(a->indices);
  REF_OWNED ref_array out = ref_new(ref_numel(a->out), grad.im != NULL);
  graft_status status = grad.re && indices.re && out.re ? GRAFT_OK : ref_no_memory();
  if (!status) status = check_range("aten::embedding_dense_backward", &indices, a->num_weights);
  for (int64_t i = 0; !status && i < indices.count; i++) {
    int64_t row = (int64_t)indices.re[i];
    if (row == a->padding_idx) continue;
    ref_real divisor = a->scale_grad_by_freq ? (ref_real)frequency(&indices, i) : 1;
    add_row(dtype, grad.re + i * width, out.re + row * width, width, divisor);
    if (out.im) add_row(dtype, grad.im + i * width, out.im + row * width, width, divisor);
  }
  if (!status) ref_write(a->out, &out);
  return status;
}

/* --- decompositions --- */

static graft_tensor *flat(fx *s, graft_tensor *indices) {
  return indices ? fx_reshape(s, indices, 1, &indices->numel) : NULL;
}

static graft_tensor *rows_of(fx *s, graft_tensor *table, graft_tensor *indices) {
  if (!table || !indices) return NULL;
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < indices->ndim; i++) sizes[i] = indices->sizes[i];
  sizes[indices->ndim] = table->sizes[1];
  return fx_reshape(s, fx_index_select(s, table, 0, flat(s, indices)), indices->ndim + 1, sizes);
}

static void decompose_embedding(fx *s, const op_call *c, graft_tensor **outs) {
  const in_embedding in = in_embedding_of(c->args);
  outs[OUT] = rows_of(s, in.weight, in.indices);
}

/* Rows [n, width] without those of the padding index, and by how often their index occurs. */
static graft_tensor *weighed(fx *s, graft_tensor *rows, graft_tensor *indices, int64_t num_weights, int64_t padding_idx,
                             bool by_frequency) {
  if (!rows) return NULL;
  if (by_frequency) {
    graft_tensor *ones = fx_filled(s, rows, 2, (int64_t[]){indices->numel, 1}, 1, rows->dtype);
    graft_tensor *counts = fx_embedding_dense_backward(s, ones, indices, num_weights, -1, false);
    rows = fx_div(s, rows, fx_embedding(s, counts, indices, -1, false, false));
  }
  if (padding_idx < 0 || padding_idx >= num_weights || s->status) return rows;
  graft_tensor *kept = fx_unsqueeze(s, fx_ne_Scalar(s, indices, graft_scalar_int(padding_idx)), 1);
  return fx_where_self(s, kept, rows, fx_zeros_like(s, rows));
}

static void decompose_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_embedding_dense_backward in = in_embedding_dense_backward_of(c->args);
  graft_tensor *grad = in.grad_output, *indices = flat(s, in.indices);
  int64_t width = c->out[OUT].sizes[1];
  if (s->status) return;
  graft_tensor *rows = fx_reshape(s, grad, 2, (int64_t[]){indices->numel, width});
  rows = weighed(s, rows, indices, in.num_weights, in.padding_idx, in.scale_grad_by_freq);
  graft_tensor *zeros = fx_filled(s, grad, 2, c->out[OUT].sizes, 0, grad->dtype);
  graft_tensor *column = fx_unsqueeze(s, fx_cast(s, indices, GRAFT_I64), 1);
  graft_tensor *places = fx_expand(s, column, (int64_t[]){indices->numel, width}, 2, false);
  outs[OUT] = fx_scatter_add(s, zeros, 0, places, rows);
}

/* --- embedding_renorm: rows that are named and longer than a bound are shortened to it --- */

static graft_status infer_renorm(op_call *c) {
  const in_embedding_renorm in = in_embedding_renorm_of(c->args);
  if (in.self->ndim != 2) return op_refuse(c, ARG_embedding_renorm_self, "a table of rows");
  graft_status status = dt_is_complex(in.self->dtype) ? GRAFT_OK : op_check_floating(c, ARG_embedding_renorm_self);
  if (status) return status;
  if (in.indices->dtype != GRAFT_I64 && in.indices->dtype != GRAFT_I32)
    return op_refuse(c, ARG_embedding_renorm_indices, "i64 or i32");
  c->compute = in.self->dtype;
  op_out_like(c, OUT, in.self->dtype, in.self);
  return GRAFT_OK;
}

/* A row that is named twice is written twice alike. */
static void decompose_renorm(fx *s, const op_call *c, graft_tensor **outs) {
  const in_embedding_renorm in = in_embedding_renorm_of(c->args);
  const int64_t along = 1;
  graft_tensor *indices = fx_cast(s, flat(s, in.indices), GRAFT_I64);
  outs[OUT] = in.self;
  if (!in.indices->numel || !in.self->numel) return;
  indices = idx_from_the_end(s, indices, in.self->sizes[0]);
  graft_tensor *rows = fx_index_select(s, in.self, 0, indices);
  graft_tensor *norms =
      fx_linalg_vector_norm(s, rows, graft_scalar_float(in.norm_type), &along, 1, true, GRAFT_DTYPE_NONE);
  const graft_value divisor = fx_tensor(fx_adds(s, norms, 1e-7)), one = fx_int(1);
  graft_tensor *factor = fx_binary(s, GRAFT_OP_DIV_TENSOR, fx_float(in.max_norm), divisor);
  graft_tensor *above = fx_is(s, GRAFT_OP_GT_TENSOR, norms, in.max_norm);
  rows = fx_mul(s, rows, fx_where(s, above, fx_tensor(factor), one));
  outs[OUT] = fx_index_copy(s, in.self, 0, indices, rows);
}

/* --- gradients --- */

static void vjp_embedding(op_vjp *v) {
  const in_embedding in = in_embedding_of(v->args);
  v->results[ARG_embedding_weight] = fx_embedding_dense_backward(v->s, v->g[OUT], in.indices, in.weight->sizes[0],
                                                                 in.padding_idx, in.scale_grad_by_freq != 0);
}

/* PyTorch's own formula forgets the frequencies here. */
static void vjp_backward(op_vjp *v) {
  const in_embedding_dense_backward in = in_embedding_dense_backward_of(v->args);
  graft_tensor *grad = in.grad_output, *indices = flat(v->s, in.indices);
  if (v->s->status) return;
  graft_tensor *rows = fx_embedding(v->s, v->g[OUT], indices, -1, false, false);
  rows = weighed(v->s, rows, indices, in.num_weights, in.padding_idx, in.scale_grad_by_freq != 0);
  v->results[ARG_embedding_dense_backward_grad_output] = fx_reshape(v->s, rows, grad->ndim, grad->sizes);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(embedding),
     .roles = "vi",
     .infer = infer_embedding,
     .decompose = decompose_embedding,
     .vjp = vjp_embedding,
     .saves = OP_SAVE_ARG(embedding, indices),
     .flags = OP_NO_WIDEN},
    {.op_id = OP_WITH_KERNEL(embedding_dense_backward),
     .roles = "vi",
     .infer = infer_backward,
     .decompose = decompose_backward,
     .vjp = vjp_backward,
     .saves = OP_SAVE_ARG(embedding_dense_backward, indices)},
    {.op_id = GRAFT_OP_EMBEDDING_RENORM, .roles = "vk", .infer = infer_renorm, .decompose = decompose_renorm},
};
OP_TABLE(embedding_rows, defs)
