/* Scatter: writing or adding elements where index tensors say. */
#include "ops/scatter/scatter.h"

#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

/* The one index, where it is a mask and what it says is overwritten with one value. */
static graft_tensor *mask_of_one_value(const op_call *c) {
  const in_index_put in = in_index_put_of(c->args);
  const graft_value *list = &c->args[ARG_index_put_indices];
  graft_tensor *mask = list->count == 1 && in.self->ndim ? list->as.tensors[0] : NULL;
  return mask && idx_is_mask(mask) && in.values->numel == 1 && !in.accumulate ? mask : NULL;
}

/* A mask of rank 0 says whether all of self becomes the one value. */
static graft_tensor *lone_mask(const op_call *c) {
  graft_tensor *mask = mask_of_one_value(c);
  return mask && !mask->ndim ? mask : NULL;
}

static bool writes(const idx_shape *s) {
  return s->count && tns_numel(s->ndim, s->sizes) > 0;
}

static graft_status infer_index_put(op_call *c) {
  const in_index_put in = in_index_put_of(c->args);
  graft_status status = op_check_same_dtype(c, ARG_index_put_self, ARG_index_put_values);
  if (status) return status;
  idx_shape s;
  c->compute = in.self->dtype;
  op_out_like(c, OUT, in.self->dtype, in.self);
  if (lone_mask(c)) {
    c->decompose_only = true;
    return GRAFT_OK;
  }
  status = idx_resolve(c, &s);
  if (status) return status;
  bool fits = in.values->ndim <= s.result_ndim;
  for (int32_t i = 0; fits && i < in.values->ndim; i++) {
    int32_t at = s.result_ndim - in.values->ndim + i;
    bool bound = s.open && at >= s.at && at < s.at + s.ndim; /* of a mask: what is true in it may be fewer */
    fits =
        in.values->sizes[i] == 1 || (bound ? in.values->sizes[i] <= s.result[at] : in.values->sizes[i] == s.result[at]);
  }
  if (!fits) return op_error(c, "values do not broadcast to what is indexed (%s)", op_show_tensors(c));
  c->decompose_only = s.masked || !writes(&s);
  return GRAFT_OK;
}

graft_status sct_infer(op_call *c) {
  const in_scatter_src in = in_scatter_src_of(c->args);
  int64_t dim;
  graft_status status = idx_check_line(c, &dim);
  if (!status) status = op_check_same_dtype(c, ARG_scatter_src_self, ARG_scatter_src_src);
  if (status) return status;
  bool fits = !in.index->numel || (in.index->ndim ? in.index->ndim : 1) == (in.src->ndim ? in.src->ndim : 1);
  for (int32_t i = 0; fits && in.index->numel && i < in.index->ndim; i++) {
    fits = in.index->sizes[i] <= (in.src->ndim ? in.src->sizes[i] : 1);
  }
  if (!fits) return op_error(c, "index must have as many dims as src, and be no larger (%s)", op_show_tensors(c));
  c->compute = in.self->dtype;
  op_out(c, OUT, in.self->dtype, in.self->ndim, in.self->sizes);
  return GRAFT_OK;
}

static graft_status infer_scatter_value(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_scatter_value_self);
  int64_t dim;
  graft_status status = idx_check_line(c, &dim);
  if (status) return status;
  c->compute = self->dtype;
  op_out(c, OUT, self->dtype, self->ndim, self->sizes);
  return op_number_fits(c, ARG_scatter_value_value, self->dtype);
}

/* --- kernels --- */

static void put(ref_array *y, int64_t at, const ref_array *x, int64_t from, bool add, graft_dtype dtype) {
  if (add)
    ref_add_element(dtype, y, at, x, from);
  else
    ref_take(y, at, x, from);
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

graft_status kernel_index_put(const graft_exec *exec, const graft_args_index_put *a) {
  graft_status status;
  int64_t count, *at = idx_places("aten::index_put", a->self, &a->indices, &count, &status);
  if (!at) return status;
  REF_OWNED ref_array y = ref_read(a->self), x = ref_read(a->values);
  if (!x.re || !y.re) status = ref_no_memory();
  spread s = spread_of(a);
  for (int64_t i = 0; i < count && !status; i++) put(&y, at[i], &x, spread_at(&s, i), a->accumulate, a->self->dl.dtype);
  if (!status) ref_write(a->out, &y);
  free(at);
  return status;
}

static graft_status scatter(const char *op, const graft_args_scatter_src *a, bool add) {
  REF_OWNED ref_array y = ref_read(a->self), x = ref_read(a->src), index = ref_read(a->index);
  graft_status status = x.re && y.re && index.re ? GRAFT_OK : ref_no_memory();
  idx_line line = idx_line_of(op, a->self, a->index, a->dim), source = idx_line_of(op, a->src, a->index, 0);
  for (int64_t i = 0; i < index.count && !status; i++) {
    int64_t at = idx_line_at(&line, i, (int64_t)index.re[i], &status);
    int64_t row = a->index->dl.ndim ? i / (index.count / a->index->dl.shape[0]) : 0; /* i's own place along dim 0 */
    int64_t from = status ? 0 : idx_line_at(&source, i, row, &status);
    if (!status) put(&y, at, &x, from, add, a->self->dl.dtype);
  }
  if (!status) ref_write(a->out, &y);
  return status;
}

graft_status kernel_scatter_src(const graft_exec *exec, const graft_args_scatter_src *a) {
  return scatter("aten::scatter.src", a, false);
}

graft_status kernel_scatter_add(const graft_exec *exec, const graft_args_scatter_add *a) {
  graft_args_scatter_src same = {.self = a->self, .dim = a->dim, .index = a->index, .src = a->src, .out = a->out};
  return scatter("aten::scatter_add", &same, true);
}

/* --- decompositions --- */

/* Rows of self as a matrix, written or added to along dim 0. */
static void put_rows(fx *s, const op_call *c, const idx_shape *shape, graft_tensor **outs) {
  const in_index_put in = in_index_put_of(c->args);
  graft_tensor *values = in.values;
  idx_rows r = idx_to_rows(s, c, shape);
  if (s->status) return;
  int64_t order[GRAFT_MAX_DIMS], back[GRAFT_MAX_DIMS], size[2] = {r.row->numel, r.matrix->sizes[1]};
  for (int32_t i = 0; i < shape->result_ndim; i++) { /* the indices' shape first, then the rest */
    order[i] = i < shape->ndim ? shape->at + i : i < shape->ndim + shape->at ? i - shape->ndim : i;
  }
  for (int32_t i = 0; i < in.self->ndim; i++) back[r.order[i]] = i;
  values = fx_expand(s, values, shape->result, (uint32_t)shape->result_ndim, false);
  values = fx_reshape(s, fx_permute(s, values, order, (uint32_t)shape->result_ndim), 2, size);
  graft_tensor *row = fx_expand(s, fx_unsqueeze(s, r.row, 1), size, 2, false);
  graft_tensor *out =
      in.accumulate ? fx_scatter_add(s, r.matrix, 0, row, values) : fx_scatter_src(s, r.matrix, 0, row, values);
  outs[OUT] = fx_permute(s, fx_reshape(s, out, in.self->ndim, r.sizes), back, (uint32_t)in.self->ndim);
}

/* Chosen where the mask, of self's first dims, is true: no place need be found. */
static graft_tensor *put_where(fx *s, graft_tensor *self, graft_tensor *mask, graft_tensor *values) {
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < self->ndim; i++) sizes[i] = i < mask->ndim ? mask->sizes[i] : 1;
  graft_tensor *value = fx_reshape(s, values, 0, &values->numel), *where = fx_cast(s, mask, GRAFT_BOOL);
  return fx_where_self(s, mask->ndim ? fx_reshape(s, where, self->ndim, sizes) : where, value, self);
}

static void decompose_index_put(fx *s, const op_call *c, graft_tensor **outs) {
  const in_index_put in = in_index_put_of(c->args);
  idx_shape shape;
  graft_tensor *mask = mask_of_one_value(c);
  if (mask) {
    outs[OUT] = put_where(s, in.self, mask, in.values);
    return;
  }
  graft_status status = idx_resolve(c, &shape);
  if (status) {
    fx_fail(s, status);
  } else if (!writes(&shape)) {
    outs[OUT] = fx_clone(s, in.self, GRAFT_FORMAT_PRESERVE);
  } else if (shape.masked || c->schema->id != GRAFT_OP_INDEX_PUT) {
    graft_tensor *list[GRAFT_MAX_DIMS];
    uint32_t count = idx_without_masks(s, &c->args[ARG_index_put_indices], list);
    outs[OUT] = fx_index_put(s, in.self, list, count, in.values, in.accumulate);
  } else {
    put_rows(s, c, &shape, outs);
  }
}

static void decompose_scatter_value(fx *s, const op_call *c, graft_tensor **outs) {
  const in_scatter_value in = in_scatter_value_of(c->args);
  graft_tensor *src = fx_full(s, in.index->sizes, (uint32_t)in.index->ndim, in.value, in.self->dtype, in.self->device);
  outs[OUT] = fx_scatter_src(s, in.self, in.dim, in.index, src);
}

/* --- gradients --- */

static void vjp_index_put(op_vjp *v) {
  const in_index_put in = in_index_put_of(v->args);
  graft_tensor *const *indices = in.indices;
  if (in.indices_count == 1 && indices[0] && !indices[0]->ndim &&
      idx_is_mask(indices[0])) { /* all of self or nothing */
    graft_tensor *mask = fx_cast(v->s, indices[0], GRAFT_BOOL);
    v->results[ARG_index_put_self] = fx_not_where(v->s, mask, v->g[OUT]);
    graft_tensor *taken = fx_only_where(v->s, mask, v->g[OUT]);
    if (taken)
      v->results[ARG_index_put_values] =
          fx_reshape(v->s, fx_sum(v->s, taken, (1u << taken->ndim) - 1, false), in.values->ndim, in.values->sizes);
    return;
  }
  if (vjp_needs(v, ARG_index_put_self)) {
    graft_tensor *zero = in.accumulate ? NULL : fx_filled(v->s, v->g[OUT], 0, NULL, 0, v->g[OUT]->dtype);
    v->results[ARG_index_put_self] =
        in.accumulate ? v->g[OUT] : fx_index_put(v->s, v->g[OUT], indices, in.indices_count, zero, false);
  }
  if (!vjp_needs(v, ARG_index_put_values)) return;
  v->results[ARG_index_put_values] =
      fx_sum_to(v->s, fx_index_Tensor(v->s, v->g[OUT], indices, in.indices_count), in.values->ndim, in.values->sizes);
}

graft_tensor *sct_padded(op_vjp *v, graft_tensor *g) {
  const graft_tensor *index = vjp_arg(v, ARG_scatter_src_index), *src = vjp_arg(v, ARG_scatter_src_src);
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
  graft_tensor *index = vjp_arg(v, ARG_scatter_src_index), *src = vjp_arg(v, ARG_scatter_src_src);
  if (!index->numel) return fx_filled(v->s, g, src->ndim, src->sizes, 0, g->dtype);
  return sct_padded(v, fx_gather(v->s, g, v->args[ARG_scatter_src_dim].as.i, index, false));
}

static void vjp_scatter_add(op_vjp *v) {
  if (vjp_needs(v, ARG_scatter_add_self)) v->results[ARG_scatter_add_self] = v->g[OUT];
  if (vjp_needs(v, ARG_scatter_add_src)) v->results[ARG_scatter_add_src] = sct_to_src(v, v->g[OUT]);
}

static void vjp_scatter(op_vjp *v) {
  if (vjp_needs(v, ARG_scatter_src_self)) {
    v->results[ARG_scatter_src_self] = fx_scatter_value(v->s, v->g[OUT], v->args[ARG_scatter_src_dim].as.i,
                                                        vjp_arg(v, ARG_scatter_src_index), graft_scalar_int(0));
  }
  bool has_src = v->schema->id == GRAFT_OP_SCATTER_SRC;
  if (has_src && vjp_needs(v, ARG_scatter_src_src)) v->results[ARG_scatter_src_src] = sct_to_src(v, v->g[OUT]);
}

/* --- masked_scatter: the elements of source, one after the other, where mask is true --- */

static graft_status infer_masked_scatter(op_call *c) {
  const in_masked_scatter in = in_masked_scatter_of(c->args);
  graft_status status = op_check_dtype(c, ARG_masked_scatter_mask, GRAFT_BOOL);
  if (!status) status = op_check_same_dtype(c, ARG_masked_scatter_self, ARG_masked_scatter_source);
  if (status) return status;
  c->compute = in.self->dtype;
  status = op_out_broadcast(c, OUT, in.self->dtype);
  if (!status) op_out(c, OUT, in.self->dtype, c->out[OUT].ndim, c->out[OUT].sizes);
  return status;
}

graft_status kernel_masked_scatter(const graft_exec *exec, const graft_args_masked_scatter *a) {
  REF_OWNED ref_array x = ref_read(a->self), mask = ref_read(a->mask), source = ref_read(a->source);
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
  return status;
}

static void vjp_masked_scatter(op_vjp *v) {
  const in_masked_scatter in = in_masked_scatter_of(v->args);
  graft_tensor *g = v->g[OUT];
  if (vjp_needs(v, ARG_masked_scatter_self)) v->results[ARG_masked_scatter_self] = fx_not_where(v->s, in.mask, g);
  if (!vjp_needs(v, ARG_masked_scatter_source)) return;
  graft_tensor *taken = fx_masked_select(v->s, g, in.mask); /* elements of in.source beyond those went nowhere */
  if (!taken || v->s->status) return;
  taken = fx_constant_pad_nd(v->s, taken, (int64_t[]){0, in.source->numel - taken->numel}, 2, graft_scalar_int(0));
  v->results[ARG_masked_scatter_source] = fx_reshape(v->s, taken, in.source->ndim, in.source->sizes);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(index_put),
     .roles = "viv",
     .infer = infer_index_put,
     .decompose = decompose_index_put,
     .vjp = vjp_index_put,
     .saves = OP_SAVE_ARG(index_put, indices),
     .flags = OP_NO_WIDEN},
    {.op_id = GRAFT_OP_INDEX_PUT_IMPL,
     .roles = "viv",
     .infer = infer_index_put,
     .decompose = decompose_index_put,
     .vjp = vjp_index_put,
     .saves = OP_SAVE_ARG(index_put_impl, indices),
     .flags = OP_NO_WIDEN},
    {.op_id = OP_WITH_KERNEL(scatter_src),
     .roles = "viv",
     .infer = sct_infer,
     .vjp = vjp_scatter,
     .saves = OP_SAVE_ARG(scatter_src, index),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(scatter_add),
     .roles = "viv",
     .infer = sct_infer,
     .vjp = vjp_scatter_add,
     .saves = OP_SAVE_ARG(scatter_add, index),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = GRAFT_OP_SCATTER_VALUE,
     .roles = "vi",
     .infer = infer_scatter_value,
     .decompose = decompose_scatter_value,
     .vjp = vjp_scatter,
     .saves = OP_SAVE_ARG(scatter_value, index),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(masked_scatter),
     .roles = "bcv",
     .infer = infer_masked_scatter,
     .vjp = vjp_masked_scatter,
     .saves = OP_SAVE_ARG(masked_scatter, mask),
     .flags = OP_NO_WIDEN},
};
OP_TABLE(scatter_elements, defs)
