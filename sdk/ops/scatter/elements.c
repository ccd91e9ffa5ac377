/* Scatter: writing or adding elements where index tensors say. */
#include "ops/scatter/scatter.h"

#include "ops/core/families.h"
#include "ops/core/ref.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

/* A mask of rank 0 says whether all of self becomes the one value. */
static graft_tensor *lone_mask(const op_call *c) {
  const graft_value *list = &c->args[1];
  graft_tensor *mask = list->count == 1 && op_tensor(c, 0)->ndim ? list->as.tensors[0] : NULL;
  return mask && !mask->ndim && idx_is_mask(mask) && op_tensor(c, 2)->numel == 1 && !op_bool(c, 3) ? mask : NULL;
}

static bool writes(const idx_shape *s) {
  return s->count && tns_numel(s->ndim, s->sizes) > 0;
}

/* index_put(self, indices, values, accumulate), _index_put_impl(…, unsafe) */
static graft_status infer_index_put(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0), *values = op_tensor(c, 2);
  if (values->dtype != self->dtype) return op_error(c, "self and values differ in dtype (%s)", op_show_tensors(c));
  idx_shape s;
  c->compute = self->dtype;
  op_out_like(c, 0, self->dtype, self);
  if (lone_mask(c)) {
    c->decompose_only = true;
    return GRAFT_OK;
  }
  graft_status status = idx_resolve(c, &s);
  if (status) return status;
  bool fits = values->ndim <= s.result_ndim;
  for (int32_t i = 0; fits && i < values->ndim; i++) {
    int32_t at = s.result_ndim - values->ndim + i;
    bool bound = s.open && at >= s.at && at < s.at + s.ndim; /* of a mask: what is true in it may be fewer */
    fits = values->sizes[i] == 1 || (bound ? values->sizes[i] <= s.result[at] : values->sizes[i] == s.result[at]);
  }
  if (!fits) return op_error(c, "values do not broadcast to what is indexed (%s)", op_show_tensors(c));
  c->decompose_only = s.masked || !writes(&s);
  return GRAFT_OK;
}

/* scatter.src, scatter_add(self, dim, index, src) */
graft_status sct_infer(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0), *index = op_tensor(c, 2), *src = op_tensor(c, 3);
  int64_t dim;
  graft_status status = idx_check_line(c, &dim);
  if (status) return status;
  if (src->dtype != self->dtype) return op_error(c, "self and src differ in dtype (%s)", op_show_tensors(c));
  bool fits = !index->numel || (index->ndim ? index->ndim : 1) == (src->ndim ? src->ndim : 1);
  for (int32_t i = 0; fits && index->numel && i < index->ndim; i++) {
    fits = index->sizes[i] <= (src->ndim ? src->sizes[i] : 1);
  }
  if (!fits) return op_error(c, "index must have as many dims as src, and be no larger (%s)", op_show_tensors(c));
  c->compute = self->dtype;
  op_out(c, 0, self->dtype, self->ndim, self->sizes);
  return GRAFT_OK;
}

/* scatter.value(self, dim, index, value) */
static graft_status infer_scatter_value(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  int64_t dim;
  graft_status status = idx_check_line(c, &dim);
  if (status) return status;
  c->compute = self->dtype;
  op_out(c, 0, self->dtype, self->ndim, self->sizes);
  return op_number_fits(c, 3, self->dtype);
}

/* --- kernels --- */

static void put(ref_array *y, int64_t at, const ref_array *x, int64_t from, bool add, graft_dtype dtype) {
  y->re[at] = add ? ref_sum(dtype, (ref_real[]){y->re[at], x->re[from]}, 1, 2) : x->re[from];
  if (y->im) y->im[at] = add ? ref_sum(dtype, (ref_real[]){y->im[at], x->im[from]}, 1, 2) : x->im[from];
}

/* Where element i of the result of x[indices] finds its value in `values`, which broadcast to it. The shape of the
 * result is not known here, only how many elements lie inside of each dim of values: their sizes are those of the
 * result or 1. */
typedef struct spread {
  int32_t ndim;
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
} spread;

static void result_sizes(const graft_args_index_put *a, spread *s) {
  int32_t first = -1, last = -1, indexed = 0, bdims = 0, n = 0;
  int64_t b[GRAFT_MAX_DIMS];
  for (int32_t d = 0; d < GRAFT_MAX_DIMS; d++) b[d] = 1;
  for (uint64_t i = 0; i < a->indices.count; i++) {
    const graft_tensor_desc *t = a->indices.items[i];
    if (!t) continue;
    if (first < 0) first = (int32_t)i;
    last = (int32_t)i;
    indexed++;
    if (t->dl.ndim > bdims) bdims = t->dl.ndim;
    for (int32_t d = 0; d < t->dl.ndim; d++) { /* counted from the last dim */
      if (t->dl.shape[t->dl.ndim - 1 - d] != 1) b[d] = t->dl.shape[t->dl.ndim - 1 - d];
    }
  }
  int32_t at = last - first == indexed - 1 ? first : 0, rest = 0;
  for (int32_t i = 0; i <= a->self->dl.ndim; i++) {
    if (rest == at && bdims >= 0) {
      for (int32_t d = bdims - 1; d >= 0; d--) s->sizes[n++] = b[d];
      bdims = -1;
    }
    if (i == a->self->dl.ndim || ((uint64_t)i < a->indices.count && a->indices.items[i])) continue;
    s->sizes[n++] = a->self->dl.shape[i];
    rest++;
  }
  s->ndim = n;
}

static spread spread_of(const graft_args_index_put *a) {
  spread s = {0, {0}, {0}};
  result_sizes(a, &s);
  int64_t own[GRAFT_MAX_DIMS] = {0};
  int32_t lead = s.ndim - a->values->dl.ndim;
  tns_contiguous_strides(a->values->dl.ndim, a->values->dl.shape, own);
  for (int32_t i = lead; i < s.ndim; i++) s.strides[i] = a->values->dl.shape[i - lead] == 1 ? 0 : own[i - lead];
  return s;
}

static int64_t spread_at(const spread *s, int64_t i) {
  int64_t at = 0;
  for (int32_t d = s->ndim - 1; d >= 0; d--) {
    at += i % s->sizes[d] * s->strides[d];
    i /= s->sizes[d];
  }
  return at;
}

static graft_status ref_index_put(const graft_exec *exec, const graft_args_index_put *a) {
  (void)exec;
  graft_status status;
  int64_t count, *at = idx_places("aten::index_put", a->self, &a->indices, &count, &status);
  if (!at) return status;
  ref_array y = ref_read(a->self), x = ref_read(a->values);
  if (!x.re || !y.re) status = ref_no_memory();
  spread s = spread_of(a);
  for (int64_t i = 0; i < count && !status; i++) put(&y, at[i], &x, spread_at(&s, i), a->accumulate, a->self->dl.dtype);
  if (!status) ref_write(a->out, &y);
  ref_free(&x);
  ref_free(&y);
  free(at);
  return status;
}

static graft_status scatter(const char *op, const graft_args_scatter_src *a, bool add) {
  ref_array y = ref_read(a->self), x = ref_read(a->src), index = ref_read(a->index);
  graft_status status = x.re && y.re && index.re ? GRAFT_OK : ref_no_memory();
  idx_line line = idx_line_of(op, a->self, a->index, a->dim), source = idx_line_of(op, a->src, a->index, 0);
  for (int64_t i = 0; i < index.count && !status; i++) {
    int64_t at = idx_line_at(&line, i, (int64_t)index.re[i], &status);
    int64_t row = a->index->dl.ndim ? i / (index.count / a->index->dl.shape[0]) : 0; /* i's own place along dim 0 */
    int64_t from = status ? 0 : idx_line_at(&source, i, row, &status);
    if (!status) put(&y, at, &x, from, add, a->self->dl.dtype);
  }
  if (!status) ref_write(a->out, &y);
  ref_free(&x);
  ref_free(&y);
  ref_free(&index);
  return status;
}

static graft_status ref_scatter_src(const graft_exec *exec, const graft_args_scatter_src *a) {
  (void)exec;
  return scatter("aten::scatter.src", a, false);
}

static graft_status ref_scatter_add(const graft_exec *exec, const graft_args_scatter_add *a) {
  (void)exec;
  graft_args_scatter_src same = {.self = a->self, .dim = a->dim, .index = a->index, .src = a->src, .out = a->out};
  return scatter("aten::scatter_add", &same, true);
}

/* --- decompositions --- */

/* Rows of self as a matrix, written or added to along dim 0. */
static void put_rows(fx *s, const op_call *c, const idx_shape *shape, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, 0), *values = op_tensor(c, 2);
  idx_rows r = idx_to_rows(s, c, shape);
  if (s->status) return;
  int64_t order[GRAFT_MAX_DIMS], back[GRAFT_MAX_DIMS], size[2] = {r.row->numel, r.matrix->sizes[1]};
  for (int32_t i = 0; i < shape->result_ndim; i++) { /* the indices' shape first, then the rest */
    order[i] = i < shape->ndim ? shape->at + i : i < shape->ndim + shape->at ? i - shape->ndim : i;
  }
  for (int32_t i = 0; i < self->ndim; i++) back[r.order[i]] = i;
  values = fx_expand(s, values, shape->result, (uint32_t)shape->result_ndim, false);
  values = fx_reshape(s, fx_permute(s, values, order, (uint32_t)shape->result_ndim), 2, size);
  graft_tensor *row = fx_expand(s, fx_unsqueeze(s, r.row, 1), size, 2, false);
  graft_tensor *out =
      op_bool(c, 3) ? fx_scatter_add(s, r.matrix, 0, row, values) : fx_scatter_src(s, r.matrix, 0, row, values);
  outs[0] = fx_permute(s, fx_reshape(s, out, self->ndim, r.sizes), back, (uint32_t)self->ndim);
}

static void decompose_index_put(fx *s, const op_call *c, graft_tensor **outs) {
  idx_shape shape;
  graft_tensor *lone = lone_mask(c);
  if (lone) {
    graft_tensor *value = fx_reshape(s, op_tensor(c, 2), 0, &op_tensor(c, 2)->numel);
    outs[0] = fx_where_self(s, fx_cast(s, lone, GRAFT_BOOL), value, op_tensor(c, 0));
    return;
  }
  graft_status status = idx_resolve(c, &shape);
  if (status) {
    fx_fail(s, status);
  } else if (!writes(&shape)) {
    outs[0] = fx_clone(s, op_tensor(c, 0), GRAFT_FORMAT_PRESERVE);
  } else if (shape.masked || c->schema->id != GRAFT_OP_INDEX_PUT) {
    graft_tensor *list[GRAFT_MAX_DIMS];
    uint32_t count = idx_without_masks(s, &c->args[1], list);
    outs[0] = fx_index_put(s, op_tensor(c, 0), list, count, op_tensor(c, 2), op_bool(c, 3));
  } else {
    put_rows(s, c, &shape, outs);
  }
}

static void decompose_scatter_value(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, 0), *index = op_tensor(c, 2);
  graft_tensor *src = fx_full(s, index->sizes, (uint32_t)index->ndim, op_scalar(c, 3), self->dtype, self->device);
  outs[0] = fx_scatter_src(s, self, op_int(c, 1), index, src);
}

/* --- gradients --- */

static void vjp_index_put(op_vjp *v) {
  graft_tensor *values = vjp_arg(v, 2);
  graft_tensor *const *indices = v->args[1].as.tensors;
  bool accumulate = v->args[3].as.i;
  if (v->args[1].count == 1 && indices[0] && !indices[0]->ndim &&
      idx_is_mask(indices[0])) { /* all of self or nothing */
    graft_value mask = fx_tensor(fx_cast(v->s, indices[0], GRAFT_BOOL)), zero = fx_number(graft_scalar_int(0)),
                g = fx_tensor(v->g[0]);
    graft_tensor *kept, *taken;
    fx_call(v->s, GRAFT_OP_WHERE_SELF, (graft_value[]){mask, zero, g}, 3, &kept, 1);
    fx_call(v->s, GRAFT_OP_WHERE_SELF, (graft_value[]){mask, g, zero}, 3, &taken, 1);
    v->results[0] = kept;
    if (taken)
      v->results[2] =
          fx_reshape(v->s, fx_sum(v->s, taken, (1u << taken->ndim) - 1, false), values->ndim, values->sizes);
    return;
  }
  if (vjp_needs(v, 0)) {
    graft_tensor *zero = accumulate ? NULL : fx_filled(v->s, v->g[0], 0, NULL, 0, v->g[0]->dtype);
    v->results[0] = accumulate ? v->g[0] : fx_index_put(v->s, v->g[0], indices, v->args[1].count, zero, false);
  }
  if (!vjp_needs(v, 2)) return;
  v->results[2] =
      fx_sum_to(v->s, fx_index_Tensor(v->s, v->g[0], indices, v->args[1].count), values->ndim, values->sizes);
}

graft_tensor *sct_padded(op_vjp *v, graft_tensor *g) {
  const graft_tensor *index = vjp_arg(v, 2), *src = vjp_arg(v, 3);
  int64_t pad[2 * GRAFT_MAX_DIMS] = {0};
  bool larger = false;
  if (index->ndim != src->ndim) return fx_reshape(v->s, g, src->ndim, src->sizes);
  for (int32_t i = 0; i < src->ndim; i++) {
    pad[2 * (src->ndim - 1 - i) + 1] = src->sizes[i] - index->sizes[i];
    larger |= src->sizes[i] > index->sizes[i];
  }
  return larger ? fx_constant_pad_nd(v->s, g, pad, 2 * (uint32_t)src->ndim, graft_scalar_int(0)) : g;
}

graft_tensor *sct_to_src(op_vjp *v, graft_tensor *g) {
  graft_tensor *index = vjp_arg(v, 2), *src = vjp_arg(v, 3);
  if (!index->numel) return fx_filled(v->s, g, src->ndim, src->sizes, 0, g->dtype);
  return sct_padded(v, fx_gather(v->s, g, v->args[1].as.i, index, false));
}

static void vjp_scatter_add(op_vjp *v) {
  if (vjp_needs(v, 0)) v->results[0] = v->g[0];
  if (vjp_needs(v, 3)) v->results[3] = sct_to_src(v, v->g[0]);
}

static void vjp_scatter(op_vjp *v) {
  if (vjp_needs(v, 0)) {
    v->results[0] = fx_scatter_value(v->s, v->g[0], v->args[1].as.i, vjp_arg(v, 2), graft_scalar_int(0));
  }
  if (v->schema->id == GRAFT_OP_SCATTER_SRC && vjp_needs(v, 3)) v->results[3] = sct_to_src(v, v->g[0]);
}

/* --- masked_scatter(self, mask, source): the elements of source, one after the other, where mask is true --- */

static graft_status infer_masked_scatter(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0), *mask = op_tensor(c, 1), *source = op_tensor(c, 2);
  if (mask->dtype != GRAFT_BOOL) return op_refuse_dtype(c, 1, "bool");
  if (source->dtype != self->dtype) return op_error(c, "self and source differ in dtype (%s)", op_show_tensors(c));
  c->compute = self->dtype;
  graft_status status = op_out_broadcast(c, 0, self->dtype);
  if (!status) op_out(c, 0, self->dtype, c->out[0].ndim, c->out[0].sizes);
  return status;
}

static graft_status ref_masked_scatter(const graft_exec *exec, const graft_args_masked_scatter *a) {
  (void)exec;
  ref_array x = ref_read(a->self), mask = ref_read(a->mask), source = ref_read(a->source);
  graft_status status = x.re && mask.re && source.re ? GRAFT_OK : ref_no_memory();
  int64_t next = 0;
  for (int64_t i = 0; !status && i < x.count; i++) {
    if (mask.re[i] == 0) continue;
    if (next == source.count) {
      status = err_about(GRAFT_INVALID_ARGUMENT, "aten::masked_scatter",
                         "mask has more true elements than source has elements, %lld", (long long)source.count);
      break;
    }
    if (x.im) x.im[i] = source.im[next];
    x.re[i] = source.re[next++];
  }
  if (!status) ref_write(a->out, &x);
  ref_free(&x);
  ref_free(&mask);
  ref_free(&source);
  return status;
}

static void vjp_masked_scatter(op_vjp *v) {
  graft_tensor *g = v->g[0], *mask = vjp_arg(v, 1), *source = vjp_arg(v, 2);
  const graft_value args[] = {fx_tensor(mask), fx_number(graft_scalar_int(0)), fx_tensor(g)};
  if (vjp_needs(v, 0)) fx_call(v->s, GRAFT_OP_WHERE_SELF, args, 3, &v->results[0], 1);
  if (!vjp_needs(v, 2)) return;
  graft_tensor *taken = fx_masked_select(v->s, g, mask); /* elements of source beyond those went nowhere */
  if (!taken || v->s->status) return;
  taken = fx_constant_pad_nd(v->s, taken, (int64_t[]){0, source->numel - taken->numel}, 2, graft_scalar_int(0));
  v->results[2] = fx_reshape(v->s, taken, source->ndim, source->sizes);
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_INDEX_PUT,
     .roles = "viv",
     .infer = infer_index_put,
     .decompose = decompose_index_put,
     .vjp = vjp_index_put,
     .saves = OP_SAVE_ARG(1),
     .flags = OP_NO_WIDEN,
     .reference = OP_REF(index_put)},
    {.op_id = GRAFT_OP_INDEX_PUT_IMPL,
     .roles = "viv",
     .infer = infer_index_put,
     .decompose = decompose_index_put,
     .vjp = vjp_index_put,
     .saves = OP_SAVE_ARG(1),
     .flags = OP_NO_WIDEN},
    {.op_id = GRAFT_OP_SCATTER_SRC,
     .roles = "viv",
     .infer = sct_infer,
     .vjp = vjp_scatter,
     .saves = OP_SAVE_ARG(2),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT,
     .reference = OP_REF(scatter_src)},
    {.op_id = GRAFT_OP_SCATTER_ADD,
     .roles = "viv",
     .infer = sct_infer,
     .vjp = vjp_scatter_add,
     .saves = OP_SAVE_ARG(2),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT,
     .reference = OP_REF(scatter_add)},
    {.op_id = GRAFT_OP_SCATTER_VALUE,
     .roles = "vi",
     .infer = infer_scatter_value,
     .decompose = decompose_scatter_value,
     .vjp = vjp_scatter,
     .saves = OP_SAVE_ARG(2),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = GRAFT_OP_MASKED_SCATTER,
     .roles = "bcv",
     .infer = infer_masked_scatter,
     .vjp = vjp_masked_scatter,
     .saves = OP_SAVE_ARG(1),
     .flags = OP_NO_WIDEN,
     .reference = OP_REF(masked_scatter)},
    {.op_id = GRAFT_OP_SCATTER_REDUCE_TWO,
     .flags = OP_EXACT_OUT,
     .roles = "viv",
     .infer = sct_infer_reduce,
     .decompose = sct_decompose_reduce,
     .vjp = sct_vjp_reduce,
     .saves = OP_SAVE_ARG(0) | OP_SAVE_ARG(2) | OP_SAVE_ARG(3) | OP_SAVE_OUT(0),
     .reference = OP_REF(scatter_reduce_two)},
    {.op_id = GRAFT_OP_INDEX_ADD,
     .flags = OP_EXACT_OUT,
     .roles = "viv",
     .infer = sct_infer_along,
     .decompose = sct_decompose_index_add,
     .vjp = sct_vjp_index_add,
     .saves = OP_SAVE_ARG(2),
     .reference = OP_REF(index_add)},
    {.op_id = GRAFT_OP_INDEX_COPY,
     .roles = "viv",
     .infer = sct_infer_along,
     .decompose = sct_decompose_index_copy,
     .vjp = sct_vjp_index_copy,
     .saves = OP_SAVE_ARG(2),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT,
     .reference = OP_REF(index_copy)},
    {.op_id = GRAFT_OP_INDEX_FILL_INT_TENSOR,
     .roles = "viv",
     .infer = sct_infer_index_fill,
     .decompose = sct_decompose_index_fill,
     .vjp = sct_vjp_index_fill,
     .saves = OP_SAVE_ARG(2),
     .flags = OP_NO_WIDEN | OP_TAKES_NUMBER,
     .reference = OP_REF(index_fill_int_Tensor)},
    {.op_id = GRAFT_OP_PUT,
     .roles = "viv",
     .infer = sct_infer_put,
     .decompose = sct_decompose_put,
     .vjp = sct_vjp_put,
     .saves = OP_SAVE_ARG(1),
     .flags = OP_NO_WIDEN,
     .reference = OP_REF(put)},
};
OP_TABLE(scatter, defs)
