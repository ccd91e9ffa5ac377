/* Views, as the host makes them from canonical arguments (shapes are found by making one of a tensor without memory),
 * and their gradients. Each gradient is made of recorded ops only (nothing is written into a view), so that gradients
 * of gradients come of themselves: that of a part is a tensor of zeros with the part scattered into it. */
#include <stdlib.h>

#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"
#include "ops/shape/shape.h"
#include "tensor/view.h"

/* Canonical dims are non-negative, so that gradients need not wrap them again. */
static void wrap(op_call *call, int arg, int32_t rank) {
  int64_t dim = op_int(call, arg);
  if (dim < 0) op_set_int(call, arg, dim + (rank ? rank : 1));
}

static graft_status host_alias(op_call *call, graft_tensor **outs) {
  return tns_alias(op_tensor(call, ARG_alias_self), outs);
}

static graft_status host_expand(op_call *call, graft_tensor **outs) {
  const graft_value *size = &call->args[ARG_expand_size];
  return tns_expand(op_tensor(call, ARG_expand_self), (int32_t)size->count, size->as.ints, outs);
}

static graft_status host_permute(op_call *call, graft_tensor **outs) {
  const graft_value *dims = &call->args[ARG_permute_dims];
  return tns_permute(op_tensor(call, ARG_permute_self), (int32_t)dims->count, dims->as.ints, outs);
}

static graft_status host_view(op_call *call, graft_tensor **outs) {
  const graft_value *size = &call->args[ARG_view_size];
  return tns_view_sizes(op_tensor(call, ARG_view_self), (int32_t)size->count, size->as.ints, outs);
}

static graft_status host_squeeze_dims(op_call *call, graft_tensor **outs) {
  const graft_value *dims = &call->args[ARG_squeeze_dims_dim];
  return tns_squeeze_dims(op_tensor(call, ARG_squeeze_dims_self), dims->count, dims->as.ints, outs);
}

static graft_status host_view_as_real(op_call *call, graft_tensor **outs) {
  return tns_view_as_real(op_tensor(call, ARG_view_as_real_self), outs);
}

static graft_status host_conj(op_call *call, graft_tensor **outs) {
  return tns_conj(op_tensor(call, ARG_prims_conj_a), outs);
}

static graft_status host_real(op_call *call, graft_tensor **outs) {
  return tns_real(op_tensor(call, ARG_prims_real_self), outs);
}

static graft_status host_imag(op_call *call, graft_tensor **outs) {
  return tns_imag(op_tensor(call, ARG_prims_imag_self), outs);
}

static graft_status host_view_of_dtype(op_call *call, graft_tensor **outs) {
  const in_prims_view_of_dtype in = in_prims_view_of_dtype_of(call->args);
  return tns_view_of_dtype(in.a, in.dtype, outs);
}

static graft_status host_collapse_view(op_call *call, graft_tensor **outs) {
  const in_prims_collapse_view in = in_prims_collapse_view_of(call->args);
  return tns_collapse_view(in.a, in.start, in.end, outs);
}

static graft_status host_split_dim(op_call *call, graft_tensor **outs) {
  const in_prims_split_dim in = in_prims_split_dim_of(call->args);
  return tns_split_dim(in.a, in.dim, in.outer_length, outs);
}

static graft_status host_broadcast_in_dim(op_call *call, graft_tensor **outs) {
  const graft_value *shape = &call->args[ARG_prims_broadcast_in_dim_shape];
  const graft_value *dims = &call->args[ARG_prims_broadcast_in_dim_broadcast_dimensions];
  return tns_broadcast_in_dim(op_tensor(call, ARG_prims_broadcast_in_dim_a), (int32_t)shape->count, shape->as.ints,
                              dims->count, dims->as.ints, outs);
}

static graft_status host_as_strided(op_call *call, graft_tensor **outs) {
  const in_as_strided in = in_as_strided_of(call->args);
  if (in.size_count != in.stride_count)
    return op_error(call, "size has %u items, stride %u; expected as many", in.size_count, in.stride_count);
  if (op_absent(call, ARG_as_strided_storage_offset))
    op_set_int(call, ARG_as_strided_storage_offset,
               op_tensor(call, ARG_as_strided_self)->offset); /* gradients need to know */
  int64_t offset = op_int(call, ARG_as_strided_storage_offset);
  return tns_as_strided(op_tensor(call, ARG_as_strided_self), (int32_t)call->args[ARG_as_strided_size].count,
                        call->args[ARG_as_strided_size].as.ints, call->args[ARG_as_strided_stride].as.ints, &offset,
                        outs);
}

static graft_status host_diagonal(op_call *call, graft_tensor **outs) {
  const in_diagonal in = in_diagonal_of(call->args);
  graft_status status = tns_diagonal(in.self, in.offset, in.dim1, in.dim2, outs);
  wrap(call, ARG_diagonal_dim1, in.self->ndim);
  wrap(call, ARG_diagonal_dim2, in.self->ndim);
  return status;
}

static graft_status host_select(op_call *call, graft_tensor **outs) {
  const in_select_int in = in_select_int_of(call->args);
  graft_status status = tns_select(in.self, in.dim, in.index, outs);
  if (status) return status;
  wrap(call, ARG_select_int_dim, in.self->ndim);
  if (op_int(call, ARG_select_int_index) < 0)
    op_set_int(call, ARG_select_int_index,
               op_int(call, ARG_select_int_index) +
                   op_tensor(call, ARG_select_int_self)->sizes[op_int(call, ARG_select_int_dim)]);
  return GRAFT_OK;
}

static graft_status host_slice(op_call *call, graft_tensor **outs) {
  const in_slice_Tensor in = in_slice_Tensor_of(call->args);
  int64_t start = op_int(call, ARG_slice_Tensor_start), end = op_int(call, ARG_slice_Tensor_end);
  graft_status status = tns_slice(in.self, in.dim, op_absent(call, ARG_slice_Tensor_start) ? NULL : &start,
                                  op_absent(call, ARG_slice_Tensor_end) ? NULL : &end, in.step, outs);
  wrap(call, ARG_slice_Tensor_dim, in.self->ndim);
  return status;
}

static graft_status host_split_with_sizes(op_call *call, graft_tensor **outs) {
  const in_split_with_sizes in = in_split_with_sizes_of(call->args);
  if (call->nouts < in.split_sizes_count)
    return op_error(call, "room for %u outputs was given; expected %u", call->nouts, in.split_sizes_count);
  graft_status status = tns_split_with_sizes(in.self, in.split_sizes_count, in.split_sizes, in.dim, outs);
  wrap(call, ARG_split_with_sizes_dim, in.self->ndim);
  return status;
}

static graft_status host_squeeze_dim(op_call *call, graft_tensor **outs) {
  const in_squeeze_dim in = in_squeeze_dim_of(call->args);
  graft_status status = tns_squeeze_dim(in.self, in.dim, outs);
  wrap(call, ARG_squeeze_dim_dim, in.self->ndim);
  return status;
}

static graft_status host_unsqueeze(op_call *call, graft_tensor **outs) {
  const in_unsqueeze in = in_unsqueeze_of(call->args);
  graft_status status = tns_unsqueeze(in.self, in.dim, outs);
  wrap(call, ARG_unsqueeze_dim, in.self->ndim + 1);
  return status;
}

/* --- gradients --- */

graft_tensor *shape_zeros_for(op_vjp *v, const graft_tensor *like) {
  graft_tensor *g = v->g[OUT];
  return fx_filled(v->s, g, like->ndim, like->sizes, 0, g->dtype);
}

void shape_vjp_same(op_vjp *v) {
  v->results[ARG_alias_self] = v->g[OUT];
}

/* Two elements of a tensor of these strides may be one: PyTorch's conservative test. */
static bool may_overlap(int32_t ndim, const int64_t *sizes, const int64_t *strides) {
  int32_t order[GRAFT_MAX_DIMS], n = 0;
  for (int32_t i = 0; i < ndim; i++) {
    if (sizes[i] == 0) return false;
    if (sizes[i] == 1) continue;
    int32_t at = n++;
    for (; at > 0 && strides[order[at - 1]] > strides[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  int64_t reach = 0;
  for (int32_t i = 0; i < n; i++) {
    if (strides[order[i]] <= reach) return true;
    reach += strides[order[i]] * (sizes[order[i]] - 1);
  }
  return false;
}

static void vjp_view(op_vjp *v) {
  graft_tensor *self = vjp_arg(v, ARG_view_self);
  v->results[ARG_view_self] = fx_reshape(v->s, v->g[OUT], self->ndim, self->sizes);
}

static void vjp_expand(op_vjp *v) {
  graft_tensor *self = vjp_arg(v, ARG_expand_self);
  v->results[ARG_expand_self] = fx_sum_to(v->s, v->g[OUT], self->ndim, self->sizes);
}

static void vjp_permute(op_vjp *v) {
  const in_permute in = in_permute_of(v->args);
  int64_t inverse[GRAFT_MAX_DIMS];
  int32_t ndim = in.self->ndim;
  for (int32_t i = 0; i < ndim; i++) {
    int64_t dim = in.dims[i];
    inverse[dim < 0 ? dim + ndim : dim] = i;
  }
  v->results[ARG_permute_self] = fx_permute(v->s, v->g[OUT], inverse, (uint32_t)ndim);
}

static void vjp_broadcast_in_dim(op_vjp *v) {
  const in_prims_broadcast_in_dim in = in_prims_broadcast_in_dim_of(v->args);
  uint32_t mask = (1u << in.shape_count) - 1;
  for (uint32_t i = 0; i < in.broadcast_dimensions_count; i++) {
    int64_t dim = in.broadcast_dimensions[i];
    if (in.a->sizes[i] != 1 || in.shape[dim] == 1) mask &= ~(1u << dim);
  }
  v->results[ARG_prims_broadcast_in_dim_a] =
      fx_reshape(v->s, fx_sum(v->s, v->g[OUT], mask, true), in.a->ndim, in.a->sizes);
}

static graft_tensor *as_strided_scatter(fx *s, graft_tensor *base, graft_tensor *part, const graft_tensor *like,
                                        int64_t offset) {
  graft_value args[] = {fx_tensor(base), fx_tensor(part), graft_value_ints(like->sizes, (uint32_t)like->ndim),
                        graft_value_ints(like->strides, (uint32_t)like->ndim), graft_value_int(offset)};
  return fx_one(s, GRAFT_OP_PRIMS_AS_STRIDED_SCATTER, args, 5);
}

static void vjp_diagonal(op_vjp *v) {
  const in_diagonal in = in_diagonal_of(v->args);
  fx *s = v->s;
  graft_tensor *g = v->g[OUT];
  int64_t strides[GRAFT_MAX_DIMS];
  graft_tensor *whole = NULL, *part = NULL; /* shapes only */
  tns_contiguous_strides(in.self->ndim, in.self->sizes, strides);
  graft_status status = tns_new(NULL, g->device, g->dtype, in.self->ndim, in.self->sizes, strides, 0, &whole);
  if (!status) status = tns_diagonal(fx_own(s, whole), in.offset, in.dim1, in.dim2, &part);
  if (status)
    fx_fail(s, status);
  else
    fx_own(s, part);
  if (!s->status)
    v->results[ARG_diagonal_self] = as_strided_scatter(s, shape_zeros_for(v, in.self), g, part, part->offset);
}

static void vjp_split(op_vjp *v) {
  const in_split_with_sizes in = in_split_with_sizes_of(v->args);
  fx *s = v->s;
  uint32_t count = in.split_sizes_count;
  graft_tensor **pieces = calloc(count + 1u, sizeof *pieces), *some = NULL;
  if (!pieces) fx_fail(s, err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the gradient of a split"));
  for (uint32_t i = 0; i < count; i++) some = some ? some : v->g[i];
  for (uint32_t i = 0; i < count && !s->status; i++) {
    int64_t sizes[GRAFT_MAX_DIMS];
    for (int32_t d = 0; d < in.self->ndim; d++) sizes[d] = in.self->sizes[d];
    sizes[in.dim] = in.split_sizes[i];
    pieces[i] = v->g[i] ? v->g[i] : fx_filled(s, some, in.self->ndim, sizes, 0, some->dtype);
  }
  if (!s->status) v->results[ARG_split_with_sizes_self] = fx_cat(s, pieces, count, in.dim);
  free(pieces);
}

static int64_t last_of(const graft_tensor *t) {
  int64_t last = 0;
  for (int32_t i = 0; i < t->ndim; i++) last += (t->sizes[i] - 1) * t->strides[i];
  return last;
}

/* Where each element of a strided tensor lies, in row-major order: i64[numel]. */
static graft_tensor *positions(op_vjp *v, const graft_tensor *t, int64_t offset) {
  fx *s = v->s;
  graft_tensor *g = v->g[OUT];
  graft_tensor *at = fx_full(s, t->sizes, (uint32_t)t->ndim, graft_scalar_int(offset), GRAFT_I64, g->device);
  for (int32_t i = 0; i < t->ndim; i++) {
    if (t->sizes[i] > 1 && t->strides[i]) at = fx_add_steps(s, at, t->ndim, t->sizes, i, t->strides[i]);
  }
  return fx_reshape(s, at, 1, (int64_t[]){t->numel});
}

/* `values` of tensor t added into a base of zeros, each where it lies. */
static graft_tensor *lay_out(op_vjp *v, int64_t size, graft_tensor *values, const graft_tensor *t, int64_t offset) {
  fx *s = v->s;
  graft_tensor *g = v->g[OUT];
  graft_tensor *base = fx_filled(s, g, 1, &size, 0, g->dtype);
  if (!t->numel) return base;
  if (!may_overlap(t->ndim, t->sizes, t->strides)) return as_strided_scatter(s, base, values, t, offset);
  graft_tensor *where = positions(v, t, offset);
  return fx_index_put(s, base, &where, 1, fx_reshape(s, values, 1, &t->numel), true);
}

/* as_strided: g is laid out in memory as the result was, elements that share memory
 * added up, and read as self was; where elements of self share memory, each takes an equal part. */
static void vjp_as_strided(op_vjp *v) {
  const in_as_strided in = in_as_strided_of(v->args);
  fx *s = v->s;
  graft_tensor *g = v->g[OUT];
  graft_tensor out = {.ndim = (int32_t)in.size_count, .numel = g->numel};
  for (int32_t i = 0; i < out.ndim; i++) {
    out.sizes[i] = in.size[i];
    out.strides[i] = in.stride[i];
  }
  if (!in.self->numel || !out.numel) {
    v->results[ARG_as_strided_self] = shape_zeros_for(v, in.self);
    return;
  }
  int64_t out_offset = v->args[ARG_as_strided_storage_offset].as.i, self_offset = in.self->offset;
  int64_t first = out_offset < self_offset ? out_offset : self_offset;
  int64_t out_end = out_offset + last_of(&out), self_end = self_offset + last_of(in.self);
  int64_t size = (out_end > self_end ? out_end : self_end) - first + 1;
  self_offset -= first;
  graft_tensor *base = lay_out(v, size, g, &out, out_offset - first);
  graft_tensor *grad = fx_as_strided(s, base, in.self->sizes, (uint32_t)in.self->ndim, in.self->strides,
                                     (uint32_t)in.self->ndim, &self_offset);
  if (!s->status && may_overlap(in.self->ndim, in.self->sizes, in.self->strides)) {
    graft_tensor *ones = fx_filled(s, g, in.self->ndim, in.self->sizes, 1, g->dtype);
    graft_tensor *count = lay_out(v, size, ones, in.self, self_offset);
    count = fx_as_strided(s, count, in.self->sizes, (uint32_t)in.self->ndim, in.self->strides, (uint32_t)in.self->ndim,
                          &self_offset);
    grad = fx_div(s, grad, count);
  }
  v->results[ARG_as_strided_self] = grad;
}

static graft_tensor *view_of_dtype(fx *s, graft_tensor *x, graft_dtype dtype) {
  return fx_one(s, GRAFT_OP_PRIMS_VIEW_OF_DTYPE, (graft_value[]){fx_tensor(x), wrap_dtype(dtype)}, 2);
}

/* Pairs of real numbers, [..., 2], as complex ones in the shape of `like`; no arithmetic, and so no NaN of it. */
static graft_tensor *from_pairs(fx *s, graft_tensor *pairs, const graft_tensor *like) {
  if (!pairs) return NULL;
  graft_tensor *out = view_of_dtype(s, fx_contiguous(s, pairs), dt_complex(pairs->dtype));
  return fx_reshape(s, out, like->ndim, like->sizes);
}

static graft_tensor *to_pairs(fx *s, graft_tensor *x) {
  if (!x) return NULL;
  if (x->flags & (TNS_CONJ | TNS_NEG)) x = fx_clone(s, x, GRAFT_FORMAT_PRESERVE);
  return fx_view_as_real(s, x);
}

static void vjp_view_as_real(op_vjp *v) {
  v->results[ARG_view_as_real_self] = from_pairs(v->s, v->g[OUT], vjp_arg(v, ARG_view_as_real_self));
}

static void vjp_conj(op_vjp *v) {
  v->results[ARG_prims_conj_a] = fx_conj(v->s, v->g[OUT]);
}

static void vjp_real(op_vjp *v) {
  v->results[ARG_prims_real_self] = v->g[OUT];
} /* brought to self's dtype by the caller */

static void vjp_imag(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *g = v->g[OUT];
  graft_tensor *parts[] = {fx_unsqueeze(s, fx_zeros_like(s, g), -1), fx_unsqueeze(s, g, -1)};
  v->results[ARG_prims_imag_self] = from_pairs(s, fx_cat(s, parts, 2, -1), vjp_arg(v, ARG_prims_imag_self));
}

/* A change between complex numbers and pairs of their parts is linear; bits seen as other bits are not. */
static void vjp_view_of_dtype(op_vjp *v) {
  const in_prims_view_of_dtype in = in_prims_view_of_dtype_of(v->args);
  fx *s = v->s;
  graft_tensor *g = v->g[OUT], *self = in.a;
  if (in.dtype == self->dtype) {
    v->results[ARG_prims_view_of_dtype_a] = g;
  } else if (dt_is_complex(self->dtype) && in.dtype == dt_real(self->dtype)) {
    v->results[ARG_prims_view_of_dtype_a] =
        fx_reshape(s, view_of_dtype(s, fx_contiguous(s, g), self->dtype), self->ndim, self->sizes);
  } else if (dt_is_complex(in.dtype) && self->dtype == dt_real(in.dtype)) {
    v->results[ARG_prims_view_of_dtype_a] = fx_reshape(s, to_pairs(s, g), self->ndim, self->sizes);
  } else {
    fx_fail(s, err_about(GRAFT_UNIMPLEMENTED, "prims::view_of_dtype", "no gradient of %s seen as %s",
                         graft_dtype_name(self->dtype), graft_dtype_name(in.dtype)));
  }
}

static void vjp_select(op_vjp *v) {
  const in_select_int in = in_select_int_of(v->args);
  v->results[ARG_select_int_self] = fx_select_scatter(v->s, shape_zeros_for(v, in.self), v->g[OUT], in.dim, in.index);
}

static void vjp_slice(op_vjp *v) {
  const in_slice_Tensor in = in_slice_Tensor_of(v->args);
  v->results[ARG_slice_Tensor_self] =
      fx_slice_scatter(v->s, shape_zeros_for(v, in.self), v->g[OUT], in.dim, in.start, in.end, in.step);
}

#define VIEW(name, maker, formula) \
  { .op_id = GRAFT_OP_##name, .roles = "k", .host = host_##maker, .vjp = vjp_##formula }

static const op_def defs[] = {
    {.op_id = GRAFT_OP_ALIAS, .roles = "k", .host = host_alias, .vjp = shape_vjp_same},
    VIEW(AS_STRIDED, as_strided, as_strided),
    VIEW(DIAGONAL, diagonal, diagonal),
    VIEW(EXPAND, expand, expand),
    VIEW(PERMUTE, permute, permute),
    VIEW(SELECT_INT, select, select),
    VIEW(SLICE_TENSOR, slice, slice),
    VIEW(SPLIT_WITH_SIZES, split_with_sizes, split),
    VIEW(SQUEEZE_DIM, squeeze_dim, view),
    VIEW(SQUEEZE_DIMS, squeeze_dims, view),
    VIEW(UNSQUEEZE, unsqueeze, view),
    VIEW(VIEW, view, view),
    VIEW(VIEW_AS_REAL, view_as_real, view_as_real),
    VIEW(PRIMS_CONJ, conj, conj),
    VIEW(PRIMS_REAL, real, real),
    VIEW(PRIMS_IMAG, imag, imag),
    VIEW(PRIMS_BROADCAST_IN_DIM, broadcast_in_dim, broadcast_in_dim),
    VIEW(PRIMS_COLLAPSE_VIEW, collapse_view, view),
    VIEW(PRIMS_SPLIT_DIM, split_dim, view),
    VIEW(PRIMS_VIEW_OF_DTYPE, view_of_dtype, view_of_dtype),
};
OP_TABLE(shape_views, defs)
