/* Gradients of movement and of views. Each is made of recorded ops only (nothing is written into a view), so that
 * gradients of gradients come of themselves: the gradient of a part is a tensor of zeros with the part scattered into
 * it. */
#include "ops/shape/shape.h"

#include <stdlib.h>

#include "ops/generated/fx_ops.h"
#include "tensor/view.h"

#define G         v->g[0]
#define S         v->s
#define SELF      vjp_arg(v, 0)
#define VJP(name) void shape_vjp_##name(op_vjp *v)

static graft_tensor *zeros_for(op_vjp *v, const graft_tensor *like) {
  return fx_filled(S, G, like->ndim, like->sizes, 0, G->dtype);
}

VJP(same) {
  v->results[0] = G;
}

VJP(copy) {
  if (vjp_needs(v, 0)) v->results[0] = fx_zeros_like(S, G);
  if (!vjp_needs(v, 1)) return;
  graft_tensor *source = vjp_arg(v, 1);
  v->results[1] = fx_sum_to(S, G, source->ndim, source->sizes);
}

VJP(view) {
  v->results[0] = fx_reshape(S, G, SELF->ndim, SELF->sizes);
}
VJP(expand) {
  v->results[0] = fx_sum_to(S, G, SELF->ndim, SELF->sizes);
}

VJP(permute) {
  int64_t inverse[GRAFT_MAX_DIMS];
  int32_t ndim = SELF->ndim;
  for (int32_t i = 0; i < ndim; i++) {
    int64_t dim = v->args[1].as.ints[i];
    inverse[dim < 0 ? dim + ndim : dim] = i;
  }
  v->results[0] = fx_permute(S, G, inverse, (uint32_t)ndim);
}

/* prims::broadcast_in_dim(a, shape, broadcast_dimensions) */
VJP(broadcast_in_dim) {
  uint32_t mask = (1u << v->args[1].count) - 1;
  for (uint32_t i = 0; i < v->args[2].count; i++) {
    int64_t dim = v->args[2].as.ints[i];
    if (SELF->sizes[i] != 1 || v->args[1].as.ints[dim] == 1) mask &= ~(1u << dim);
  }
  v->results[0] = fx_reshape(S, fx_sum(S, G, mask, true), SELF->ndim, SELF->sizes);
}

/* --- parts --- */

/* Runs the op of a view or of its scatter: `first` (one or two tensors), then the arguments from `from` on. */
static graft_tensor *with_rest(op_vjp *v, uint32_t op_id, graft_tensor *first, graft_tensor *second, uint32_t from) {
  graft_value args[OP_MAX_ARGS];
  uint32_t n = 0;
  args[n++] = fx_tensor(first);
  if (second) args[n++] = fx_tensor(second);
  for (uint32_t i = from; i < v->schema->nargs; i++) args[n++] = v->args[i];
  graft_tensor *out;
  fx_call(S, op_id, args, n, &out, 1);
  return out;
}

static void part_vjp(op_vjp *v, uint32_t scatter) {
  v->results[0] = with_rest(v, scatter, zeros_for(v, SELF), G, 1);
}

/* self with src written over a part: the part of g is src's, the rest self's. */
static void scatter_vjp(op_vjp *v, uint32_t scatter, uint32_t view, graft_tensor *g) {
  if (vjp_needs(v, 0)) v->results[0] = with_rest(v, scatter, g, zeros_for(v, vjp_arg(v, 1)), 2);
  if (vjp_needs(v, 1)) v->results[1] = with_rest(v, view, g, NULL, 2);
}

VJP(select) {
  part_vjp(v, GRAFT_OP_SELECT_SCATTER);
}
VJP(slice) {
  part_vjp(v, GRAFT_OP_SLICE_SCATTER);
}
VJP(select_scatter) {
  scatter_vjp(v, GRAFT_OP_SELECT_SCATTER, GRAFT_OP_SELECT_INT, G);
}
VJP(slice_scatter) {
  scatter_vjp(v, GRAFT_OP_SLICE_SCATTER, GRAFT_OP_SLICE_TENSOR, G);
}

/* Positions are counted in memory order: the cotangent is brought to the layout of self, at offset 0. */
VJP(as_strided_scatter) {
  graft_tensor *g = graft_tensor_is_contiguous(G) && !G->offset ? G : fx_clone(S, G, GRAFT_FORMAT_CONTIGUOUS);
  scatter_vjp(v, GRAFT_OP_PRIMS_AS_STRIDED_SCATTER, GRAFT_OP_AS_STRIDED, g);
}

static graft_tensor *as_strided_scatter(fx *s, graft_tensor *base, graft_tensor *part, const graft_tensor *like,
                                        int64_t offset) {
  graft_value args[] = {fx_tensor(base), fx_tensor(part), wrap_ints(like->sizes, (uint32_t)like->ndim),
                        wrap_ints(like->strides, (uint32_t)like->ndim), wrap_int(offset)};
  graft_tensor *out;
  fx_call(s, GRAFT_OP_PRIMS_AS_STRIDED_SCATTER, args, 5, &out, 1);
  return out;
}

VJP(diagonal) {
  int64_t strides[GRAFT_MAX_DIMS];
  graft_tensor *whole = NULL, *part = NULL; /* shapes only */
  tns_contiguous_strides(SELF->ndim, SELF->sizes, strides);
  graft_status status = tns_new(NULL, G->device, G->dtype, SELF->ndim, SELF->sizes, strides, 0, &whole);
  if (!status) status = tns_diagonal(fx_own(S, whole), v->args[1].as.i, v->args[2].as.i, v->args[3].as.i, &part);
  if (status)
    fx_fail(S, status);
  else
    fx_own(S, part);
  if (!S->status) v->results[0] = as_strided_scatter(S, zeros_for(v, SELF), G, part, part->offset);
}

VJP(split) {
  uint32_t count = v->args[1].count;
  graft_tensor **pieces = calloc(count + 1u, sizeof *pieces), *some = NULL;
  if (!pieces) fx_fail(S, err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the gradient of a split"));
  for (uint32_t i = 0; i < count; i++) some = some ? some : v->g[i];
  for (uint32_t i = 0; i < count && !S->status; i++) {
    int64_t sizes[GRAFT_MAX_DIMS];
    for (int32_t d = 0; d < SELF->ndim; d++) sizes[d] = SELF->sizes[d];
    sizes[v->args[2].as.i] = v->args[1].as.ints[i];
    pieces[i] = v->g[i] ? v->g[i] : fx_filled(S, some, SELF->ndim, sizes, 0, some->dtype);
  }
  if (!S->status) v->results[0] = fx_cat(S, pieces, count, v->args[2].as.i);
  free(pieces);
}

/* --- as_strided --- */

static int64_t last_of(const graft_tensor *t) {
  int64_t last = 0;
  for (int32_t i = 0; i < t->ndim; i++) last += (t->sizes[i] - 1) * t->strides[i];
  return last;
}

/* Where each element of a strided tensor lies, in row-major order: i64[numel]. */
static graft_tensor *positions(op_vjp *v, const graft_tensor *t, int64_t offset) {
  graft_tensor *at = fx_full(S, t->sizes, (uint32_t)t->ndim, graft_scalar_int(offset), GRAFT_I64, G->device);
  for (int32_t i = 0; i < t->ndim; i++) {
    int64_t column[GRAFT_MAX_DIMS] = {t->sizes[i]};
    for (int32_t d = 1; d < t->ndim - i; d++) column[d] = 1;
    if (t->sizes[i] < 2 || !t->strides[i]) continue;
    graft_tensor *steps = fx_arange_start_step(S, graft_scalar_int(0), graft_scalar_int(t->sizes[i]),
                                               graft_scalar_int(1), GRAFT_I64, G->device);
    steps = fx_scale(S, steps, graft_scalar_int(t->strides[i]));
    at = fx_add(S, at, fx_view(S, steps, column, (uint32_t)(t->ndim - i)));
  }
  return fx_reshape(S, at, 1, (int64_t[]){t->numel});
}

/* `values` of tensor t added into a base of zeros, each where it lies. */
static graft_tensor *lay_out(op_vjp *v, int64_t size, graft_tensor *values, const graft_tensor *t, int64_t offset) {
  graft_tensor *base = fx_filled(S, G, 1, &size, 0, G->dtype);
  if (!t->numel) return base;
  if (!shape_may_overlap(t->ndim, t->sizes, t->strides)) return as_strided_scatter(S, base, values, t, offset);
  graft_tensor *where = positions(v, t, offset);
  return fx_index_put(S, base, &where, 1, fx_reshape(S, values, 1, &t->numel), true);
}

/* as_strided(self, size, stride, storage_offset): g is laid out in memory as the result was, elements that share memory
 * added up, and read as self was; where elements of self share memory, each takes an equal part. */
VJP(as_strided) {
  graft_tensor out = {.ndim = (int32_t)v->args[1].count, .numel = G->numel};
  for (int32_t i = 0; i < out.ndim; i++) {
    out.sizes[i] = v->args[1].as.ints[i];
    out.strides[i] = v->args[2].as.ints[i];
  }
  if (!SELF->numel || !out.numel) {
    v->results[0] = zeros_for(v, SELF);
    return;
  }
  int64_t out_offset = v->args[3].as.i, self_offset = SELF->offset;
  int64_t first = out_offset < self_offset ? out_offset : self_offset;
  int64_t out_end = out_offset + last_of(&out), self_end = self_offset + last_of(SELF);
  int64_t size = (out_end > self_end ? out_end : self_end) - first + 1;
  self_offset -= first;
  graft_tensor *base = lay_out(v, size, G, &out, out_offset - first);
  graft_tensor *grad =
      fx_as_strided(S, base, SELF->sizes, (uint32_t)SELF->ndim, SELF->strides, (uint32_t)SELF->ndim, &self_offset);
  if (!S->status && shape_may_overlap(SELF->ndim, SELF->sizes, SELF->strides)) {
    graft_tensor *ones = fx_filled(S, G, SELF->ndim, SELF->sizes, 1, G->dtype);
    graft_tensor *count = lay_out(v, size, ones, SELF, self_offset);
    count =
        fx_as_strided(S, count, SELF->sizes, (uint32_t)SELF->ndim, SELF->strides, (uint32_t)SELF->ndim, &self_offset);
    grad = fx_div(S, grad, count);
  }
  v->results[0] = grad;
}

/* --- joining, padding, repeating --- */

VJP(cat) {
  int64_t dim = v->args[1].as.i, start = 0;
  for (uint32_t i = 0; i < v->args[0].count && !S->status; i++) {
    const graft_tensor *t = v->args[0].as.tensors[i];
    if (t->ndim != G->ndim) { /* an empty tensor that was passed over */
      v->list_results[0][i] = zeros_for(v, t);
      continue;
    }
    int64_t end = start + t->sizes[dim];
    v->list_results[0][i] = fx_slice_Tensor(S, G, dim, &start, &end, 1);
    start = end;
  }
}

VJP(pad) {
  int64_t opposite[2 * GRAFT_MAX_DIMS];
  for (uint32_t i = 0; i < v->args[1].count; i++) opposite[i] = -v->args[1].as.ints[i];
  v->results[0] = fx_constant_pad_nd(S, G, opposite, v->args[1].count, graft_scalar_int(0));
}

VJP(repeat) {
  int64_t base[GRAFT_MAX_DIMS], full[GRAFT_MAX_DIMS];
  uint32_t mask;
  int32_t ndim =
      shape_interleave(SELF->ndim, SELF->sizes, (int32_t)v->args[1].count, v->args[1].as.ints, base, full, &mask);
  if (ndim < 0) {
    fx_fail(S, err_about(GRAFT_UNIMPLEMENTED, "aten::repeat", "its gradient takes at most %d dims, repeats counted",
                         GRAFT_MAX_DIMS));
    return;
  }
  graft_tensor *sum = fx_sum(S, fx_reshape(S, G, ndim, full), mask, false);
  v->results[0] = fx_reshape(S, sum, SELF->ndim, SELF->sizes);
}

VJP(triangle) {
  int64_t diagonal = v->args[1].as.i;
  v->results[0] = (v->schema->id == GRAFT_OP_TRIL ? fx_tril : fx_triu)(S, G, diagonal);
}
VJP(roll) {
  int64_t back[GRAFT_MAX_DIMS];
  for (uint32_t i = 0; i < v->args[1].count; i++) back[i] = -v->args[1].as.ints[i];
  v->results[0] = fx_roll(S, G, back, v->args[1].count, v->args[2].as.ints, v->args[2].count);
}
VJP(flip) {
  v->results[0] = fx_flip(S, G, v->args[1].as.ints, v->args[1].count);
}

/* --- complex numbers --- */

static graft_tensor *view_of_dtype(fx *s, graft_tensor *x, graft_dtype dtype) {
  graft_tensor *out;
  fx_call(s, GRAFT_OP_PRIMS_VIEW_OF_DTYPE, (graft_value[]){fx_tensor(x), wrap_dtype(dtype)}, 2, &out, 1);
  return out;
}

/* Pairs of real numbers, [..., 2], as complex ones in the shape of `like`; no arithmetic, so that no NaN comes of it.
 */
static graft_tensor *from_pairs(fx *s, graft_tensor *pairs, const graft_tensor *like) {
  if (s->status || !pairs) return NULL;
  graft_tensor *out = view_of_dtype(s, fx_contiguous(s, pairs), dt_complex(pairs->dtype));
  return fx_reshape(s, out, like->ndim, like->sizes);
}

static graft_tensor *to_pairs(fx *s, graft_tensor *x) {
  if (s->status || !x) return NULL;
  if (x->flags & (TNS_CONJ | TNS_NEG)) x = fx_clone(s, x, GRAFT_FORMAT_PRESERVE);
  return fx_view_as_real(s, x);
}

VJP(view_as_real) {
  v->results[0] = from_pairs(S, G, SELF);
}
VJP(conj) {
  v->results[0] = fx_conj(S, G);
}
VJP(real) {
  v->results[0] = G;
} /* brought to self's dtype by the caller */

VJP(imag) {
  graft_tensor *parts[] = {fx_unsqueeze(S, fx_zeros_like(S, G), -1), fx_unsqueeze(S, G, -1)};
  v->results[0] = from_pairs(S, fx_cat(S, parts, 2, -1), SELF);
}

/* A change between complex numbers and pairs of their parts is linear; bits seen as other bits are not. */
VJP(view_of_dtype) {
  graft_dtype dtype = v->args[1].as.dtype;
  if (dtype == SELF->dtype) {
    v->results[0] = G;
  } else if (dt_is_complex(SELF->dtype) && dtype == dt_real(SELF->dtype)) {
    v->results[0] = fx_reshape(S, view_of_dtype(S, fx_contiguous(S, G), SELF->dtype), SELF->ndim, SELF->sizes);
  } else if (dt_is_complex(dtype) && SELF->dtype == dt_real(dtype)) {
    v->results[0] = fx_reshape(S, to_pairs(S, G), SELF->ndim, SELF->sizes);
  } else {
    fx_fail(S, err_about(GRAFT_UNIMPLEMENTED, "prims::view_of_dtype", "no gradient of %s seen as %s",
                         graft_dtype_name(SELF->dtype), graft_dtype_name(dtype)));
  }
}
