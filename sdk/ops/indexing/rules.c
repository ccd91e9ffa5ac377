/* Indexing: elements picked by where they are or by index tensors. */
#include "ops/indexing/indexing.h"

#include <string.h>

#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

bool idx_is_mask(const graft_tensor *t) {
  return t->dtype == GRAFT_BOOL || t->dtype == GRAFT_U8;
}
bool idx_is_index(const graft_tensor *t) {
  return t->dtype == GRAFT_I64 || t->dtype == GRAFT_I32;
}

/* --- the shape of x[indices] --- */

static graft_status add_index(const op_call *c, idx_shape *s, uint32_t item, const graft_tensor *t, int32_t *dim) {
  const graft_tensor *self = op_tensor(c, ARG_index_Tensor_self);
  bool mask = idx_is_mask(t);
  if (!mask && !idx_is_index(t)) {
    return op_out_of_range(c, "index %u is %s; expected i64, i32, or a mask of bool or u8", item,
                           graft_dtype_name(t->dtype));
  }
  int32_t covered = mask ? t->ndim : 1;
  if (*dim + covered > self->ndim)
    return op_out_of_range(c, "too many indices for self %s", op_show(c, ARG_index_Tensor_self));
  for (int32_t i = 0; i < covered; i++) {
    if (mask && t->sizes[i] != self->sizes[*dim + i]) {
      return op_out_of_range(c, "mask %u differs in size from self %s at dim %d", item,
                             op_show(c, ARG_index_Tensor_self), *dim + i);
    }
    s->dims[s->count] = *dim + i;
    s->from[s->count++] = t;
  }
  s->masked |= mask;
  s->open |= mask && t->storage;
  *dim += covered;
  return GRAFT_OK;
}

static graft_status join_shape(const op_call *c, idx_shape *s, int32_t ndim, const int64_t *sizes) {
  if (tns_broadcast_sizes(&s->ndim, s->sizes, ndim, sizes)) return GRAFT_OK;
  return op_out_of_range(c, "the indices do not broadcast: %s", op_show_tensors(c));
}

/* Broadcasting. How many elements of a mask are true is not known yet, only that they are no more than it has: this
 * gives the most that there can be, and no two masks differ in size for certain. */
static graft_status join_shapes(const op_call *c, idx_shape *s) {
  for (int32_t i = 0; i < s->count; i++) {
    const graft_tensor *t = s->from[i];
    bool mask = idx_is_mask(t);
    if (mask && t->storage) continue;
    graft_status status = join_shape(c, s, mask ? 1 : t->ndim, mask ? &t->numel : t->sizes);
    if (status) return status;
  }
  if (!s->open) return GRAFT_OK;
  graft_status status = join_shape(c, s, 1, &(int64_t){1});
  int64_t *last = &s->sizes[s->ndim - 1];
  bool known = *last != 1, first = true;
  for (int32_t i = 0; i < s->count && !known; i++) {
    const graft_tensor *t = s->from[i];
    if (!idx_is_mask(t)) continue;
    if (first || t->numel > *last) *last = t->numel;
    first = false;
  }
  return status;
}

static graft_status place_shape(const op_call *c, idx_shape *s) {
  const graft_tensor *self = op_tensor(c, ARG_index_Tensor_self);
  bool neighbours = s->dims[s->count - 1] - s->dims[0] == s->count - 1;
  uint32_t indexed = 0;
  for (int32_t i = 0; i < s->count; i++) indexed |= 1u << s->dims[i];
  s->at = neighbours ? s->dims[0] : 0;
  for (int32_t i = 0; i < self->ndim; i++) {
    if (!(indexed >> i & 1)) s->rest[s->nrest++] = i;
  }
  s->result_ndim = s->nrest + s->ndim;
  if (s->result_ndim > GRAFT_MAX_DIMS) {
    return op_error(c, "the result has %d dims; expected at most %d", s->result_ndim, GRAFT_MAX_DIMS);
  }
  int32_t n = 0;
  for (int32_t i = 0; i < s->at; i++) s->result[n++] = self->sizes[s->rest[i]];
  for (int32_t i = 0; i < s->ndim; i++) s->result[n++] = s->sizes[i];
  for (int32_t i = s->at; i < s->nrest; i++) s->result[n++] = self->sizes[s->rest[i]];
  return GRAFT_OK;
}

graft_status idx_resolve(const op_call *c, idx_shape *s) {
  const graft_tensor *self = op_tensor(c, ARG_index_Tensor_self);
  const graft_value *list = &c->args[ARG_index_Tensor_indices];
  memset(s, 0, sizeof *s);
  if (list->count > (uint32_t)self->ndim)
    return op_out_of_range(c, "too many indices for self %s", op_show(c, ARG_index_Tensor_self));
  int32_t dim = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    graft_status status = GRAFT_OK;
    if (list->as.tensors[i])
      status = add_index(c, s, i, list->as.tensors[i], &dim);
    else if (++dim > self->ndim)
      status = op_out_of_range(c, "too many indices for self %s", op_show(c, ARG_index_Tensor_self));
    if (status) return status;
  }
  if (!s->count) {
    if (self->numel || !list->count)
      return op_error(c, "no index is given for self %s", op_show(c, ARG_index_Tensor_self));
    for (int32_t i = 0; i < self->ndim; i++) s->result[i] = self->sizes[i];
    s->result_ndim = self->ndim;
    return GRAFT_OK;
  }
  graft_status status = join_shapes(c, s);
  if (status) return status;
  int64_t elements = tns_numel(s->ndim, s->sizes);
  for (int32_t i = 0; i < s->count && !s->open; i++) {
    if (!self->sizes[s->dims[i]] && elements) {
      return op_out_of_range(c, "dim %d of self %s has no element to index", s->dims[i],
                             op_show(c, ARG_index_Tensor_self));
    }
  }
  return place_shape(c, s);
}

/* --- the strides of x[indices] ---
 * TensorIterator sees self with the indexed dims replaced by the indices' shape at stride 0, then each index in its
 * place. */

static void seen_self(const graft_tensor *self, const idx_shape *s, graft_tensor *seen) {
  *seen = (graft_tensor){.dtype = self->dtype, .ndim = s->result_ndim};
  memcpy(seen->sizes, s->result, sizeof s->result);
  for (int32_t i = 0; i < s->nrest; i++) seen->strides[i < s->at ? i : i + s->ndim] = self->strides[s->rest[i]];
}

static void seen_index(const idx_shape *s, const graft_tensor *t, graft_tensor *seen) {
  int32_t after = s->nrest - s->at, own = idx_is_mask(t) ? 1 : t->ndim, lead = s->ndim - own;
  *seen = (graft_tensor){.dtype = GRAFT_I64, .ndim = s->ndim + after};
  for (int32_t i = 0; i < s->ndim; i++) {
    int64_t size = i < lead ? 1 : own == t->ndim && !idx_is_mask(t) ? t->sizes[i - lead] : t->numel;
    int64_t stride = i < lead ? 0 : idx_is_mask(t) ? t->ndim : t->strides[i - lead];
    seen->sizes[i] = s->sizes[i];
    seen->strides[i] = size == 1 && s->sizes[i] != 1 ? 0 : stride;
  }
  for (int32_t i = 0; i < after; i++) {
    seen->sizes[s->ndim + i] = 1;
    seen->strides[s->ndim + i] = 1;
  }
}

static graft_status infer_index(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_index_Tensor_self);
  idx_shape s;
  graft_status status = idx_resolve(c, &s);
  if (status) return status;
  c->compute = self->dtype;
  op_out(c, OUT, self->dtype, s.result_ndim, s.result);
  if (!s.count) {
    c->decompose_only = true;
    return GRAFT_OK;
  }
  c->dynamic = c->decompose_only = s.masked;
  graft_tensor seen[GRAFT_MAX_DIMS + 1];
  const graft_tensor *operands[GRAFT_MAX_DIMS + 1];
  seen_self(self, &s, &seen[0]);
  for (int32_t i = 0; i < s.count; i++) seen_index(&s, s.from[i], &seen[i + 1]);
  for (int32_t i = 0; i <= s.count; i++) operands[i] = &seen[i];
  op_iterator_strides(&c->out[OUT], operands, s.count + 1);
  return GRAFT_OK;
}

/* --- decompositions --- */

uint32_t idx_without_masks(fx *s, const graft_value *indices, graft_tensor **list) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < indices->count; i++) {
    graft_tensor *t = indices->as.tensors[i];
    if (!t || !idx_is_mask(t)) {
      list[n++] = t;
      continue;
    }
    graft_tensor *where = t->ndim ? fx_nonzero(s, t) : NULL;
    for (int32_t d = 0; d < t->ndim; d++) list[n++] = fx_select_int(s, where, 1, d);
  }
  return n;
}

/* `place`, but `outside` where the index is not one of `size`: flattening would turn a wrong index into the place of
 * another element, and this one is refused by whatever reads there. */
static graft_tensor *only_inside(fx *s, graft_tensor *place, graft_tensor *index, int64_t size, int64_t outside) {
  graft_tensor *above = fx_ge_Scalar(s, index, graft_scalar_int(0));
  graft_tensor *inside = fx_logical_and(s, above, fx_lt_Scalar(s, index, graft_scalar_int(size)));
  return fx_where(s, inside, fx_tensor(place), fx_int(outside));
}

idx_rows idx_to_rows(fx *s, const op_call *c, const idx_shape *shape) {
  graft_tensor *self = op_tensor(c, ARG_index_Tensor_self);
  idx_rows r = {NULL, NULL, {0}, {0}};
  for (int32_t i = 0; i < shape->count; i++) r.order[i] = shape->dims[i];
  for (int32_t i = 0; i < shape->nrest; i++) r.order[shape->count + i] = shape->rest[i];
  for (int32_t i = 0; i < self->ndim; i++) r.sizes[i] = self->sizes[r.order[i]];
  int64_t rows = tns_numel(shape->count, r.sizes), columns = tns_numel(shape->nrest, r.sizes + shape->count);
  graft_tensor *first = fx_permute(s, self, r.order, (uint32_t)self->ndim);
  r.matrix = fx_reshape(s, first, 2, (int64_t[]){rows, columns});
  int64_t stride = rows;
  for (int32_t i = 0; i < shape->count && !s->status; i++) {
    graft_tensor *index = fx_cast(s, (graft_tensor *)shape->from[i], GRAFT_I64);
    graft_tensor *negative = fx_lt_Scalar(s, index, graft_scalar_int(0));
    graft_tensor *wrapped = fx_add_Scalar(s, index, graft_scalar_int(r.sizes[i]), graft_scalar_int(1));
    index = fx_where_self(s, negative, wrapped, index);
    stride = r.sizes[i] ? stride / r.sizes[i] : 0;
    index = only_inside(s, fx_scale(s, index, graft_scalar_int(stride)), index, r.sizes[i], rows);
    r.row = r.row ? fx_add(s, r.row, index) : index;
  }
  r.row = fx_expand(s, r.row, shape->sizes, (uint32_t)shape->ndim, false);
  r.row = fx_reshape(s, r.row, 1, (int64_t[]){tns_numel(shape->ndim, shape->sizes)});
  return r;
}

static void decompose_index(fx *s, const op_call *c, graft_tensor **outs) {
  const in_index_Tensor in = in_index_Tensor_of(c->args);
  idx_shape shape;
  graft_status status = idx_resolve(c, &shape);
  if (status) {
    fx_fail(s, status);
  } else if (!shape.count) { /* an empty self, whole */
    outs[OUT] = fx_clone(s, in.self, GRAFT_FORMAT_CONTIGUOUS);
  } else if (shape.masked) {
    graft_tensor *list[GRAFT_MAX_DIMS];
    uint32_t count = idx_without_masks(s, &c->args[ARG_index_Tensor_indices], list);
    outs[OUT] = fx_index_Tensor(s, in.self, list, count);
  } else {
    idx_rows r = idx_to_rows(s, c, &shape);
    graft_tensor *picked = fx_index_select(s, r.matrix, 0, r.row);
    int64_t sizes[GRAFT_MAX_DIMS], order[GRAFT_MAX_DIMS];
    int32_t n = 0;
    for (int32_t i = 0; i < shape.ndim; i++) sizes[n++] = shape.sizes[i];
    for (int32_t i = 0; i < shape.nrest; i++) sizes[n++] = in.self->sizes[shape.rest[i]];
    for (int32_t i = 0; i < n; i++) { /* the rest's first dims move before the indices' */
      order[i] = i < shape.at ? shape.ndim + i : i < shape.at + shape.ndim ? i - shape.at : i;
    }
    outs[OUT] = fx_permute(s, fx_reshape(s, picked, n, sizes), order, (uint32_t)n);
  }
}

/* --- index_select, gather, nonzero --- */

graft_status idx_check_elements(const op_call *c, int self_arg, int64_t dim, const graft_tensor *index) {
  const graft_tensor *self = op_tensor(c, self_arg);
  if (!index->numel || !self->ndim || self->sizes[dim]) return GRAFT_OK;
  return op_out_of_range(c, "dim %lld of self %s has no element to index", (long long)dim, op_show(c, self_arg));
}

static graft_status infer_index_select(op_call *c) {
  const in_index_select in = in_index_select_of(c->args);
  int64_t dim = in.dim, sizes[GRAFT_MAX_DIMS];
  graft_status status = op_wrap_dim(c, &dim, in.self->ndim);
  if (status) return status;
  if (in.index->ndim > 1) return op_refuse(c, ARG_index_select_index, "rank 0 or 1");
  if (!idx_is_index(in.index)) return op_refuse(c, ARG_index_select_index, "i64 or i32");
  if (!in.self->ndim && in.index->numel != 1)
    return op_error(c, "self has rank 0, so index must be one element (%s)", op_show_tensors(c));
  status = idx_check_elements(c, ARG_index_select_self, dim, in.index);
  if (status) return status;
  for (int32_t i = 0; i < in.self->ndim; i++) sizes[i] = i == dim ? in.index->numel : in.self->sizes[i];
  c->compute = in.self->dtype;
  op_set_int(c, ARG_index_select_dim, dim);
  op_out(c, OUT, in.self->dtype, in.self->ndim, sizes);
  return GRAFT_OK;
}

static int64_t extent(const graft_tensor *t, int32_t dim) {
  return t->ndim ? t->sizes[dim] : 1;
}
static int32_t rank(const graft_tensor *t) {
  return t->ndim ? t->ndim : 1;
}

graft_status idx_check_line(op_call *c, int64_t *dim) {
  const in_gather in = in_gather_of(c->args);
  *dim = in.dim;
  graft_status status = op_wrap_dim(c, dim, in.self->ndim);
  if (status) return status;
  op_set_int(c, ARG_gather_dim, *dim);
  if (!in.index->numel) return GRAFT_OK;
  if (!idx_is_index(in.index)) return op_refuse(c, ARG_gather_index, "i64 or i32");
  bool fits = rank(in.self) == rank(in.index);
  for (int32_t i = 0; fits && i < rank(in.self); i++) fits = i == *dim || extent(in.index, i) <= extent(in.self, i);
  if (!fits) {
    return op_error(c, "index must have as many dims as self, and be no larger but along dim %lld (%s)",
                    (long long)*dim, op_show_tensors(c));
  }
  return idx_check_elements(c, ARG_gather_self, *dim, in.index);
}

static graft_status infer_gather(op_call *c) {
  const in_gather in = in_gather_of(c->args);
  int64_t dim;
  graft_status status = idx_check_line(c, &dim);
  if (status) return status;
  if (in.index->numel && !idx_is_index(in.index)) return op_refuse(c, ARG_gather_index, "i64 or i32");
  c->compute = in.self->dtype;
  op_out(c, OUT, in.self->dtype, in.index->ndim, in.index->sizes);
  return GRAFT_OK;
}

/* An index_select of all elements of self in a row. */
static void decompose_gather(fx *s, const op_call *c, graft_tensor **outs) {
  const in_gather in = in_gather_of(c->args);
  graft_tensor *self = in.self, *index = fx_cast(s, in.index, GRAFT_I64);
  int64_t strides[GRAFT_MAX_DIMS] = {1};
  tns_contiguous_strides(self->ndim, self->sizes, strides);
  graft_tensor *at = fx_scale(s, index, graft_scalar_int(strides[in.dim]));
  at = only_inside(s, at, index, self->ndim ? self->sizes[in.dim] : 1, self->numel);
  for (int32_t i = 0; i < self->ndim && !s->status; i++) {
    if (i == in.dim || index->sizes[i] < 2) continue;
    at = fx_add_steps(s, at, self->ndim, index->sizes, i, strides[i]);
  }
  if (s->status) return;
  graft_tensor *row = fx_reshape(s, at, 1, &at->numel);
  outs[OUT] = fx_reshape(s, fx_index_select(s, fx_reshape(s, self, 1, &self->numel), 0, row), at->ndim, at->sizes);
}

/* take: index counts the elements of self in a row, from the end where it is negative. */
static graft_status infer_take(op_call *c) {
  const in_take in = in_take_of(c->args);
  if (in.index->dtype != GRAFT_I64) return op_refuse(c, ARG_take_index, "i64");
  if (!in.self->numel && in.index->numel) return op_error(c, "self has no element to take (%s)", op_show_tensors(c));
  c->compute = in.self->dtype;
  op_out(c, OUT, in.self->dtype, in.index->ndim, in.index->sizes);
  return GRAFT_OK;
}

graft_tensor *idx_from_the_end(fx *s, graft_tensor *index, int64_t size) {
  graft_tensor *negative = fx_lt_Scalar(s, index, graft_scalar_int(0));
  return fx_where_self(s, negative, fx_add_Scalar(s, index, graft_scalar_int(size), graft_scalar_int(1)), index);
}

static void decompose_take(fx *s, const op_call *c, graft_tensor **outs) {
  const in_take in = in_take_of(c->args);
  graft_tensor *self = in.self, *index = in.index;
  graft_tensor *row = fx_reshape(s, idx_from_the_end(s, index, self->numel), 1, &index->numel);
  graft_tensor *picked = fx_index_select(s, fx_reshape(s, self, 1, &self->numel), 0, row);
  outs[OUT] = fx_reshape(s, picked, index->ndim, index->sizes);
}

static graft_status infer_nonzero(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_nonzero_self);
  c->dynamic = true;
  op_out(c, OUT, GRAFT_I64, 2, (int64_t[]){self->numel, self->ndim});
  return GRAFT_OK;
}

/* nonzero_static: as many rows as asked for; what there is not is filled */
static graft_status infer_nonzero_static(op_call *c) {
  const in_nonzero_static in = in_nonzero_static_of(c->args);
  if (in.size < 0) return op_error(c, "size is %lld; expected 0 or more", (long long)in.size);
  op_out(c, OUT, GRAFT_I64, 2, (int64_t[]){in.size, in.self->ndim});
  return GRAFT_OK;
}

/* masked_select: one dim, whose size is found by the op. Operands that must be broadcast are, first. */
static graft_status infer_masked_select(op_call *c) {
  const in_masked_select in = in_masked_select_of(c->args);
  idx_shape s = {0};
  graft_status status = op_check_dtype(c, ARG_masked_select_mask, GRAFT_BOOL);
  if (!status) status = join_shape(c, &s, in.self->ndim, in.self->sizes);
  if (!status) status = join_shape(c, &s, in.mask->ndim, in.mask->sizes);
  if (status) return status;
  int64_t most = tns_numel(s.ndim, s.sizes);
  c->dynamic = true;
  c->compute = in.self->dtype;
  c->decompose_only = !tns_same_sizes(in.self, in.mask);
  op_out(c, OUT, in.self->dtype, 1, &most);
  return GRAFT_OK;
}

/* The shape that self and mask broadcast to; they were found to. */
static int32_t joint_shape(const graft_tensor *a, const graft_tensor *b, int64_t *sizes) {
  int32_t ndim = 0;
  tns_broadcast_sizes(&ndim, sizes, a->ndim, a->sizes);
  tns_broadcast_sizes(&ndim, sizes, b->ndim, b->sizes);
  return ndim;
}

static void decompose_masked_select(fx *s, const op_call *c, graft_tensor **outs) {
  const in_masked_select in = in_masked_select_of(c->args);
  graft_tensor *self = in.self, *mask = in.mask;
  int64_t sizes[GRAFT_MAX_DIMS];
  uint32_t ndim = (uint32_t)joint_shape(self, mask, sizes);
  if (c->decompose_only) {
    outs[OUT] = fx_masked_select(s, fx_expand(s, self, sizes, ndim, false), fx_expand(s, mask, sizes, ndim, false));
    return;
  }
  graft_tensor *where = fx_nonzero(s, fx_reshape(s, mask, 1, &mask->numel));
  outs[OUT] = fx_index_select(s, fx_reshape(s, self, 1, &self->numel), 0, fx_select_int(s, where, 1, 0));
}

/* --- gradients: what was picked is added where it came from --- */

static graft_tensor *zeros_like_self(op_vjp *v) {
  graft_tensor *self = vjp_arg(v, ARG_take_self);
  return fx_filled(v->s, v->g[OUT], self->ndim, self->sizes, 0, v->g[OUT]->dtype);
}

static void vjp_index(op_vjp *v) {
  const in_index_Tensor in = in_index_Tensor_of(v->args);
  v->results[ARG_index_Tensor_self] =
      fx_index_put(v->s, zeros_like_self(v), in.indices, in.indices_count, v->g[OUT], true);
}

static void vjp_index_select(op_vjp *v) {
  const in_index_select in = in_index_select_of(v->args);
  graft_tensor *list[GRAFT_MAX_DIMS] = {NULL};
  if (!in.self->ndim) {
    v->results[ARG_index_select_self] = v->g[OUT];
    return;
  }
  list[in.dim] = in.index->ndim ? in.index : fx_unsqueeze(v->s, in.index, 0);
  v->results[ARG_index_select_self] =
      fx_index_put(v->s, zeros_like_self(v), list, (uint32_t)in.dim + 1, v->g[OUT], true);
}

static void vjp_gather(op_vjp *v) {
  const in_gather in = in_gather_of(v->args);
  v->results[ARG_gather_self] = fx_scatter_add(v->s, zeros_like_self(v), in.dim, in.index, v->g[OUT]);
}

static void vjp_take(op_vjp *v) {
  v->results[ARG_take_self] = fx_put(v->s, zeros_like_self(v), vjp_arg(v, ARG_take_index), v->g[OUT], true);
}

static void vjp_masked_select(op_vjp *v) {
  const in_masked_select in = in_masked_select_of(v->args);
  int64_t sizes[GRAFT_MAX_DIMS];
  int32_t ndim = joint_shape(in.self, in.mask, sizes);
  graft_tensor *zeros = fx_filled(v->s, v->g[OUT], ndim, sizes, 0, v->g[OUT]->dtype);
  v->results[ARG_masked_select_self] =
      fx_sum_to(v->s, fx_masked_scatter(v->s, zeros, in.mask, v->g[OUT]), in.self->ndim, in.self->sizes);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(masked_select),
     .roles = "vk",
     .infer = infer_masked_select,
     .decompose = decompose_masked_select,
     .vjp = vjp_masked_select,
     .saves = OP_SAVE_ARG(masked_select, mask),
     .flags = OP_NO_WIDEN},
    {.op_id = OP_WITH_KERNEL(take),
     .roles = "vi",
     .infer = infer_take,
     .decompose = decompose_take,
     .vjp = vjp_take,
     .saves = OP_SAVE_ARG(take, index),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(nonzero), .roles = "k", .infer = infer_nonzero},
    {.op_id = OP_WITH_KERNEL(nonzero_static), .roles = "k", .infer = infer_nonzero_static},
    {.op_id = OP_WITH_KERNEL(index_Tensor),
     .roles = "vi",
     .infer = infer_index,
     .decompose = decompose_index,
     .vjp = vjp_index,
     .saves = OP_SAVE_ARG(index_Tensor, indices),
     .flags = OP_NO_WIDEN},
    {.op_id = OP_WITH_KERNEL(index_select),
     .roles = "vi",
     .infer = infer_index_select,
     .vjp = vjp_index_select,
     .saves = OP_SAVE_ARG(index_select, index),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(gather),
     .roles = "vi",
     .infer = infer_gather,
     .decompose = decompose_gather,
     .vjp = vjp_gather,
     .saves = OP_SAVE_ARG(gather, index),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
};
OP_TABLE(indexing, defs)
