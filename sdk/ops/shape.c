/* Movement: copies and views. Views are made by dispatch/host_ops.c; here are their gradients. */
#include "ops/families.h"
#include "ops/generated/fx_ops.h"
#include "ops/ref.h"

/* --- copies --- */

static graft_memory_format format_arg(const op_call *c, int arg, graft_memory_format fallback) {
  return op_absent(c, arg) || !op_int(c, arg) ? fallback : (graft_memory_format)op_int(c, arg);
}

static void out_copy(op_call *c, graft_dtype dtype, const graft_tensor *self, graft_memory_format format) {
  if (format == GRAFT_FORMAT_PRESERVE) {
    op_out_like(c, 0, dtype, self);
  } else {
    op_out_format(c, 0, dtype, self->ndim, self->sizes, format);
  }
}

/* _to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format) */
static graft_status infer_to_copy(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  graft_dtype dtype = op_dtype(c, 1) ? op_dtype(c, 1) : self->dtype;
  op_set_dtype(c, 1, dtype);
  out_copy(c, dtype, self, format_arg(c, 6, GRAFT_FORMAT_PRESERVE));
  return GRAFT_OK;
}

/* clone(self, memory_format) */
static graft_status infer_clone(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  out_copy(c, self->dtype, self, format_arg(c, 1, GRAFT_FORMAT_PRESERVE));
  return GRAFT_OK;
}

/* copy(self, src, non_blocking): src in self's shape and dtype */
static graft_status infer_copy(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0), *source = op_tensor(c, 1);
  for (int32_t i = 0; i < source->ndim; i++) {
    int32_t at = self->ndim - source->ndim + i;
    if (at < 0 || (source->sizes[i] != 1 && source->sizes[i] != self->sizes[at])) {
      return op_error(c, "src does not broadcast to self (%s)", op_show_tensors(c));
    }
  }
  op_out_like(c, 0, self->dtype, self);
  return GRAFT_OK;
}

static graft_status copy_values(const graft_tensor_desc *from, const graft_tensor_desc *to) {
  ref_array x = ref_read(from);
  if (!x.re) return ref_no_memory();
  ref_write(to, &x);
  ref_free(&x);
  return GRAFT_OK;
}

static graft_status ref_to_copy(const graft_exec *exec, const graft_args_to_copy *a) {
  (void)exec;
  return copy_values(a->self, a->out);
}

/* --- gradients --- */

static void vjp_same(op_vjp *v) { v->results[0] = v->g[0]; }

static void vjp_copy(op_vjp *v) {
  if (vjp_needs(v, 0)) v->results[0] = fx_zeros_like(v->s, v->g[0]);
  if (!vjp_needs(v, 1)) return;
  graft_tensor *source = vjp_arg(v, 1);
  v->results[1] = fx_sum_to(v->s, v->g[0], source->ndim, source->sizes);
}

/* A gradient of zeros with g written into the view that `op_id` makes: for views whose inverse is no view. */
static graft_tensor *into_zeros(op_vjp *v, const graft_tensor *self, uint32_t op_id) {
  graft_tensor *zeros = fx_filled(v->s, v->g[0], self->ndim, self->sizes, 0, v->g[0]->dtype);
  if (v->s->status) return NULL;
  graft_value args[OP_MAX_ARGS];
  for (uint32_t i = 0; i < v->schema->nargs; i++) args[i] = v->args[i];
  args[0] = fx_tensor(zeros);
  graft_tensor *view;
  fx_call(v->s, op_id, args, v->schema->nargs, &view, 1);
  if (v->s->status) return NULL;
  graft_status status = graft_tensor_copy(view, v->g[0]);
  if (status) fx_fail(v->s, status);
  return zeros;
}

static void vjp_select(op_vjp *v) { v->results[0] = into_zeros(v, vjp_arg(v, 0), GRAFT_OP_SELECT_INT); }
static void vjp_slice(op_vjp *v) { v->results[0] = into_zeros(v, vjp_arg(v, 0), GRAFT_OP_SLICE_TENSOR); }

static void vjp_view(op_vjp *v) {
  graft_tensor *self = vjp_arg(v, 0);
  v->results[0] = fx_reshape(v->s, v->g[0], self->ndim, self->sizes);
}

static void vjp_expand(op_vjp *v) {
  graft_tensor *self = vjp_arg(v, 0);
  v->results[0] = fx_sum_to(v->s, v->g[0], self->ndim, self->sizes);
}

static void vjp_permute(op_vjp *v) {
  int64_t inverse[GRAFT_MAX_DIMS];
  int32_t ndim = vjp_arg(v, 0)->ndim;
  for (int32_t i = 0; i < ndim; i++) {
    int64_t dim = v->args[1].as.ints[i];
    inverse[dim < 0 ? dim + ndim : dim] = i;
  }
  v->results[0] = fx_permute(v->s, v->g[0], inverse, (uint32_t)ndim);
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_TO_COPY, .roles = "c", .infer = infer_to_copy, .vjp = vjp_same, .flags = OP_ELEMENTWISE,
     .reference = OP_REF(to_copy)},
    {.op_id = GRAFT_OP_CLONE, .roles = "c", .infer = infer_clone, .vjp = vjp_same, .flags = OP_ELEMENTWISE},
    {.op_id = GRAFT_OP_COPY, .roles = "kc", .infer = infer_copy, .vjp = vjp_copy, .flags = OP_ELEMENTWISE},
    {.op_id = GRAFT_OP_ALIAS, .roles = "k", .vjp = vjp_same},
    {.op_id = GRAFT_OP_SELECT_INT, .roles = "k", .vjp = vjp_select},
    {.op_id = GRAFT_OP_SLICE_TENSOR, .roles = "k", .vjp = vjp_slice},
    {.op_id = GRAFT_OP_VIEW, .roles = "k", .vjp = vjp_view},
    {.op_id = GRAFT_OP_UNSQUEEZE, .roles = "k", .vjp = vjp_view},
    {.op_id = GRAFT_OP_SQUEEZE_DIM, .roles = "k", .vjp = vjp_view},
    {.op_id = GRAFT_OP_SQUEEZE_DIMS, .roles = "k", .vjp = vjp_view},
    {.op_id = GRAFT_OP_EXPAND, .roles = "k", .vjp = vjp_expand},
    {.op_id = GRAFT_OP_PERMUTE, .roles = "k", .vjp = vjp_permute},
};
OP_FAMILY_END(shape, defs)
