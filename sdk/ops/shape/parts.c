/* Writing into a part that a view names. */
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"
#include "ops/shape/shape.h"

static graft_status out_scatter(op_call *c, const int64_t *part, int32_t part_ndim) {
  const graft_tensor *self = op_tensor(c, ARG_slice_scatter_self), *src = op_tensor(c, ARG_slice_scatter_src);
  if (!tns_has_sizes(src, part_ndim, part)) {
    int64_t strides[GRAFT_MAX_DIMS] = {0};
    graft_tensor wanted = {.dtype = self->dtype, .ndim = part_ndim};
    for (int32_t i = 0; i < part_ndim; i++) wanted.sizes[i] = part[i];
    tns_contiguous_strides(part_ndim, part, strides);
    for (int32_t i = 0; i < part_ndim; i++) wanted.strides[i] = strides[i];
    char text[160];
    return op_error(c, "src must have the shape of the part it is written to, %s (%s)",
                    tns_describe(&wanted, text, sizeof text), op_show_tensors(c));
  }
  c->compute = self->dtype;
  shape_out_over(c, self);
  return GRAFT_OK;
}

static graft_status infer_select_scatter(op_call *c) {
  const in_select_scatter in = in_select_scatter_of(c->args);
  int64_t dim = in.dim, part[GRAFT_MAX_DIMS];
  if (!in.self->ndim) return op_error(c, "self has rank 0: there is nothing to select");
  graft_status status = op_wrap_dim(c, &dim, in.self->ndim);
  if (status) return status;
  int64_t size = in.self->sizes[dim];
  if (in.index < -size || in.index >= size) {
    return op_out_of_range(c, "index %lld is out of range for dim %lld of self %s", (long long)in.index, (long long)dim,
                           op_show(c, ARG_select_scatter_self));
  }
  op_set_int(c, ARG_select_scatter_dim, dim);
  op_set_int(c, ARG_select_scatter_index, in.index < 0 ? in.index + size : in.index);
  int32_t n = 0;
  for (int32_t i = 0; i < in.self->ndim; i++) {
    if (i != dim) part[n++] = in.self->sizes[i];
  }
  return out_scatter(c, part, n);
}

static int64_t clamp_bound(int64_t bound, int64_t size) {
  if (bound < 0) bound += size;
  return bound < 0 ? 0 : bound > size ? size : bound;
}

static graft_status infer_slice_scatter(op_call *c) {
  const in_slice_scatter in = in_slice_scatter_of(c->args);
  int64_t dim = in.dim, part[GRAFT_MAX_DIMS];
  if (!in.self->ndim) return op_error(c, "self has rank 0: there is nothing to slice");
  graft_status status = op_wrap_dim(c, &dim, in.self->ndim);
  if (status) return status;
  if (in.step < 1) return op_error(c, "step is %lld; expected 1 or more", (long long)in.step);
  int64_t size = in.self->sizes[dim];
  int64_t start = op_absent(c, ARG_slice_scatter_start) ? 0 : clamp_bound(op_int(c, ARG_slice_scatter_start), size);
  int64_t end = op_absent(c, ARG_slice_scatter_end) ? size : clamp_bound(op_int(c, ARG_slice_scatter_end), size);
  if (end < start) end = start;
  op_set_int(c, ARG_slice_scatter_dim, dim);
  op_set_int(c, ARG_slice_scatter_start, start);
  op_set_int(c, ARG_slice_scatter_end, end);
  for (int32_t i = 0; i < in.self->ndim; i++) part[i] = in.self->sizes[i];
  part[dim] = (end - start) / in.step + ((end - start) % in.step != 0);
  return out_scatter(c, part, in.self->ndim);
}

/* A copy of self, and the part of it that `view_op` gives, with the arguments that follow src. */
static void decompose_scatter(fx *s, const op_call *c, uint32_t view_op, graft_tensor **outs) {
  graft_value args[OP_MAX_ARGS];
  outs[OUT] = shape_new_out(s, c);
  fx_copy_into(s, outs[OUT], op_tensor(c, ARG_slice_scatter_self));
  args[ARG_slice_Tensor_self] = fx_tensor(outs[OUT]);
  for (uint32_t i = ARG_slice_scatter_src + 1; i < c->schema->nargs; i++) args[i - 1] = c->args[i];
  graft_tensor *part = fx_one(s, view_op, args, c->schema->nargs - 1u);
  fx_copy_into(s, part, op_tensor(c, ARG_slice_scatter_src));
}

static void decompose_select_scatter(fx *s, const op_call *c, graft_tensor **outs) {
  decompose_scatter(s, c, GRAFT_OP_SELECT_INT, outs);
}
static void decompose_slice_scatter(fx *s, const op_call *c, graft_tensor **outs) {
  decompose_scatter(s, c, GRAFT_OP_SLICE_TENSOR, outs);
}
static void decompose_as_strided_scatter(fx *s, const op_call *c, graft_tensor **outs) {
  decompose_scatter(s, c, GRAFT_OP_AS_STRIDED, outs);
}

/* prims::as_strided_scatter: of a contiguous self only, so that where an
 * element is does not depend on memory that nobody sees. */
static graft_status infer_as_strided_scatter(op_call *c) {
  const in_prims_as_strided_scatter in = in_prims_as_strided_scatter_of(c->args);
  const graft_value *size = &c->args[ARG_prims_as_strided_scatter_size],
                    *stride = &c->args[ARG_prims_as_strided_scatter_stride];
  int64_t last = in.storage_offset;
  bool empty = false;
  if (!tns_is_contiguous(in.self->ndim, in.self->sizes, in.self->strides)) {
    return op_refuse(c, ARG_prims_as_strided_scatter_self, "a contiguous tensor");
  }
  if (size->count != stride->count)
    return op_error(c, "size has %u items, stride %u; expected as many", size->count, stride->count);
  if (size->count > GRAFT_MAX_DIMS) return op_error(c, "%u dims; expected at most %d", size->count, GRAFT_MAX_DIMS);
  for (uint32_t i = 0; i < size->count; i++) {
    if (size->as.ints[i] < 0 || stride->as.ints[i] < 0) return op_error(c, "a size or stride is negative");
    empty |= size->as.ints[i] == 0;
    last += (size->as.ints[i] - 1) * stride->as.ints[i];
  }
  if (in.storage_offset < 0 || (!empty && last >= in.self->numel)) {
    return op_error(c, "element %lld is beyond self %s", (long long)last,
                    op_show(c, ARG_prims_as_strided_scatter_self));
  }
  return out_scatter(c, size->as.ints, (int32_t)size->count);
}

/* --- gradients --- */

/* Runs the op of a view or of its scatter: `first` (one or two tensors), then the arguments from `from` on. */
static graft_tensor *with_rest(op_vjp *v, uint32_t op_id, graft_tensor *first, graft_tensor *second, uint32_t from) {
  graft_value args[OP_MAX_ARGS];
  uint32_t n = 0;
  args[n++] = fx_tensor(first);
  if (second) args[n++] = fx_tensor(second);
  for (uint32_t i = from; i < v->schema->nargs; i++) args[n++] = v->args[i];
  return fx_one(v->s, op_id, args, n);
}

/* self with src written over a part: the part of g is src's, the rest self's. */
static void scatter_vjp(op_vjp *v, uint32_t scatter, uint32_t view, graft_tensor *g) {
  if (vjp_needs(v, ARG_slice_scatter_self))
    v->results[ARG_slice_scatter_self] =
        with_rest(v, scatter, g, shape_zeros_for(v, vjp_arg(v, ARG_slice_scatter_src)), 2);
  if (vjp_needs(v, ARG_slice_scatter_src)) v->results[ARG_slice_scatter_src] = with_rest(v, view, g, NULL, 2);
}

static void vjp_select_scatter(op_vjp *v) {
  scatter_vjp(v, GRAFT_OP_SELECT_SCATTER, GRAFT_OP_SELECT_INT, v->g[OUT]);
}

static void vjp_slice_scatter(op_vjp *v) {
  scatter_vjp(v, GRAFT_OP_SLICE_SCATTER, GRAFT_OP_SLICE_TENSOR, v->g[OUT]);
}

/* Positions are counted in memory order: the cotangent is brought to the layout of self, at offset 0. */
static void vjp_as_strided_scatter(op_vjp *v) {
  graft_tensor *g = v->g[OUT];
  if (!graft_tensor_is_contiguous(g) || g->offset) g = fx_clone(v->s, g, GRAFT_FORMAT_CONTIGUOUS);
  scatter_vjp(v, GRAFT_OP_PRIMS_AS_STRIDED_SCATTER, GRAFT_OP_AS_STRIDED, g);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(select_scatter),
     .roles = "vv",
     .infer = infer_select_scatter,
     .decompose = decompose_select_scatter,
     .vjp = vjp_select_scatter,
     .flags = OP_NO_WIDEN},
    {.op_id = OP_WITH_KERNEL(slice_scatter),
     .roles = "vv",
     .infer = infer_slice_scatter,
     .decompose = decompose_slice_scatter,
     .vjp = vjp_slice_scatter,
     .flags = OP_NO_WIDEN},
    {.op_id = GRAFT_OP_PRIMS_AS_STRIDED_SCATTER,
     .roles = "vv",
     .infer = infer_as_strided_scatter,
     .decompose = decompose_as_strided_scatter,
     .vjp = vjp_as_strided_scatter,
     .flags = OP_NO_WIDEN},
};
OP_TABLE(shape_parts, defs)
