/* What is there once: elements, or slices along a dim, in order (_unique2, unique_dim, whatever `sorted` says) or as
 * they come, where equal ones count as one only side by side (unique_consecutive). Their results: what is unique, for
 * each element the number of what it equals, and how often each occurs. */
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

static graft_status check_ordered(op_call *c, const graft_tensor *self) {
  if (dt_is_complex(self->dtype) || dt_is_float8(self->dtype))
    return op_refuse(c, ARG_unique2_self, "a real dtype, which has an order");
  c->dynamic = true;
  c->compute = self->dtype;
  return GRAFT_OK;
}

/* Of elements; `inverse` and `counts` say what is wanted. */
static graft_status infer_elements(op_call *c, const graft_tensor *self, bool inverse, bool counts) {
  const int64_t none = 0;
  graft_status status = check_ordered(c, self);
  if (status) return status;
  op_out(c, OUT_unique2_out0, self->dtype, 1, &self->numel);
  if (inverse)
    op_out(c, OUT_unique2_out1, GRAFT_I64, self->ndim, self->sizes);
  else
    op_out(c, OUT_unique2_out1, GRAFT_I64, 1, &none);
  op_out(c, OUT_unique2_out2, GRAFT_I64, 1, counts ? &self->numel : &none);
  return GRAFT_OK;
}

/* Of slices; all three results always come. */
static graft_status infer_slices(op_call *c, const graft_tensor *self, int64_t dim, int dim_arg) {
  graft_status status = check_ordered(c, self);
  if (!status && !self->ndim) status = op_refuse(c, ARG_unique_dim_self, "a tensor with dims");
  if (!status) status = op_wrap_dim(c, &dim, self->ndim);
  if (status) return status;
  for (int32_t i = 0; i < self->ndim; i++) {
    if (i != dim && !self->sizes[i] && self->sizes[dim])
      return op_error(c, "the slices of self %s along dim %lld are empty", op_show(c, ARG_unique_dim_self),
                      (long long)dim);
  }
  op_set_int(c, dim_arg, dim);
  op_out(c, OUT_unique_dim_out0, self->dtype, self->ndim, self->sizes);
  op_out(c, OUT_unique_dim_out1, GRAFT_I64, 1, &self->sizes[dim]);
  op_out(c, OUT_unique_dim_out2, GRAFT_I64, 1, &self->sizes[dim]);
  return GRAFT_OK;
}

static graft_status infer_unique2(op_call *c) {
  const in_unique2 in = in_unique2_of(c->args);
  return infer_elements(c, in.self, in.return_inverse, in.return_counts);
}

static graft_status infer_unique_dim(op_call *c) {
  const in_unique_dim in = in_unique_dim_of(c->args);
  return infer_slices(c, in.self, in.dim, ARG_unique_dim_dim);
}

static graft_status infer_unique_consecutive(op_call *c) {
  const in_unique_consecutive in = in_unique_consecutive_of(c->args);
  return in.dim ? infer_slices(c, in.self, *in.dim, ARG_unique_consecutive_dim)
                : infer_elements(c, in.self, in.return_inverse, in.return_counts);
}

/* --- decompositions --- */

static graft_tensor *nothing(fx *s, const op_call *c) {
  return fx_full(s, (int64_t[]){0}, 1, graft_scalar_int(0), GRAFT_I64, c->device);
}

/* Which of n slices along dim differ from the one before; the first does. */
static graft_tensor *fresh_slices(fx *s, const op_call *c, graft_tensor *t, int64_t dim) {
  if (!t) return NULL;
  int64_t one = 1, but_last = t->sizes[dim] - 1, dims[GRAFT_MAX_DIMS];
  uint32_t count = 0;
  for (int32_t i = 0; i < t->ndim; i++) {
    if (i != dim) dims[count++] = i;
  }
  graft_tensor *differs =
      fx_ne_Tensor(s, fx_slice_Tensor(s, t, dim, &one, NULL, 1), fx_slice_Tensor(s, t, dim, NULL, &but_last, 1));
  if (count) differs = fx_any_dims(s, differs, dims, count, false);
  graft_tensor *first = fx_full(s, &one, 1, graft_scalar_bool(true), GRAFT_BOOL, c->device);
  return fx_cat(s, (graft_tensor *[]){first, differs}, 2, 0);
}

/* From where slices begin to differ: the number of each, in the order that they had before `order` (NULL: the same),
 * which is how many began until then; and how many there are of each. */
static graft_tensor *inverse_of(fx *s, graft_tensor *fresh, graft_tensor *order) {
  graft_tensor *number = fx_add_Scalar(s, fx_cumsum(s, fresh, 0, GRAFT_I64), graft_scalar_int(-1), graft_scalar_int(1));
  return order ? fx_scatter_src(s, fx_zeros_like(s, number), 0, order, number) : number;
}

static graft_tensor *counts_of(fx *s, const op_call *c, graft_tensor *starts, int64_t n) {
  const int64_t one = 1;
  graft_tensor *end = fx_full(s, &one, 1, graft_scalar_int(n), GRAFT_I64, c->device);
  graft_tensor *ends = fx_cat(s, (graft_tensor *[]){fx_slice_Tensor(s, starts, 0, &one, NULL, 1), end}, 2, 0);
  return fx_sub(s, ends, starts);
}

static graft_tensor *starts_of(fx *s, graft_tensor *fresh) {
  return fx_select_int(s, fx_nonzero(s, fresh), 1, 0);
}

/* Elements in a line, sorted or not. */
static void unique_elements(fx *s, const op_call *c, graft_tensor *line, graft_tensor *order, const in_unique2 *in,
                            graft_tensor **outs) {
  int64_t n = in->self->numel;
  graft_tensor *fresh = n ? fresh_slices(s, c, line, 0) : NULL;
  outs[OUT_unique2_out0] = n ? fx_masked_select(s, line, fresh) : line;
  outs[OUT_unique2_out1] = outs[OUT_unique2_out2] = nothing(s, c);
  if (in->return_inverse) {
    graft_tensor *inverse = n ? inverse_of(s, fresh, order) : outs[OUT_unique2_out1];
    outs[OUT_unique2_out1] = fx_reshape(s, inverse, in->self->ndim, in->self->sizes);
  }
  if (in->return_counts && n) outs[OUT_unique2_out2] = counts_of(s, c, starts_of(s, fresh), n);
}

static void decompose_unique2(fx *s, const op_call *c, graft_tensor **outs) {
  const in_unique2 in = in_unique2_of(c->args);
  graft_tensor *line = fx_reshape(s, in.self, 1, &in.self->numel), *order = NULL;
  if (in.self->numel) fx_sort(s, line, 0, false, &line, &order);
  unique_elements(s, c, line, order, &in, outs);
}

static void unique_slices(fx *s, const op_call *c, graft_tensor *slices, graft_tensor *order, int64_t dim,
                          graft_tensor **outs) {
  if (!slices) return;
  int64_t n = slices->sizes[dim];
  if (!n || !slices->numel) {
    outs[OUT_unique_dim_out0] = slices;
    outs[OUT_unique_dim_out1] = outs[OUT_unique_dim_out2] = nothing(s, c);
    return;
  }
  graft_tensor *fresh = fresh_slices(s, c, slices, dim), *starts = starts_of(s, fresh);
  outs[OUT_unique_dim_out0] = fx_index_select(s, slices, dim, starts);
  outs[OUT_unique_dim_out1] = inverse_of(s, fresh, order);
  outs[OUT_unique_dim_out2] = counts_of(s, c, starts, n);
}

/* The order of slices, each a row of numbers of which the first that differ decide: sorted, stably, by the last ones
 * first. */
static graft_tensor *order_of(fx *s, const op_call *c, graft_tensor *self, int64_t dim) {
  int64_t n = self->sizes[dim], sizes[] = {n, n ? self->numel / n : 0}, dims[GRAFT_MAX_DIMS] = {dim};
  for (int32_t i = 0, at = 1; i < self->ndim; i++) {
    if (i != dim) dims[at++] = i;
  }
  graft_tensor *rows = fx_reshape(s, fx_permute(s, self, dims, (uint32_t)self->ndim), 2, sizes);
  graft_tensor *order = fx_count_up(s, n, GRAFT_I64, c->device);
  for (int64_t i = sizes[1] - 1; i >= 0 && !s->status; i--) {
    graft_tensor *column = fx_select_int(s, rows, 1, i), *sorted, *places;
    fx_sort_stable(s, fx_index_select(s, column, 0, order), &(const bool){true}, 0, false, &sorted, &places);
    order = fx_index_select(s, order, 0, places);
  }
  return order;
}

static void decompose_unique_dim(fx *s, const op_call *c, graft_tensor **outs) {
  const in_unique_dim in = in_unique_dim_of(c->args);
  graft_tensor *slices = in.self, *order = NULL;
  if (in.self->numel) {
    order = order_of(s, c, in.self, in.dim);
    slices = fx_index_select(s, in.self, in.dim, order);
  }
  unique_slices(s, c, slices, order, in.dim, outs);
}

static void decompose_unique_consecutive(fx *s, const op_call *c, graft_tensor **outs) {
  const in_unique_consecutive in = in_unique_consecutive_of(c->args);
  const in_unique2 elements = {.self = in.self, .return_inverse = in.return_inverse, .return_counts = in.return_counts};
  if (in.dim)
    unique_slices(s, c, in.self, NULL, *in.dim, outs);
  else
    unique_elements(s, c, fx_reshape(s, in.self, 1, &in.self->numel), NULL, &elements, outs);
}

#define UNIQUE(op, name) \
  { .op_id = op, .roles = "v", .infer = infer_##name, .decompose = decompose_##name, .flags = OP_NO_WIDEN }

static const op_def defs[] = {
    UNIQUE(GRAFT_OP_UNIQUE2, unique2),
    UNIQUE(GRAFT_OP_UNIQUE_DIM, unique_dim),
    UNIQUE(GRAFT_OP_UNIQUE_CONSECUTIVE, unique_consecutive),
};
OP_TABLE(sorting_unique, defs)
