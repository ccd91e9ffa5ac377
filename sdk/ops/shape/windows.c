/* unfold_backward: the windows along a dim, each `size` long and `step` after the one before, added back into the
 * tensor they are windows of. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* unfold_backward: grad_in has a size for the windows at dim, and the places in
 * a window last. */
static graft_status infer_unfold_backward(op_call *c) {
  const in_unfold_backward in = in_unfold_backward_of(c->args);
  const graft_tensor *grad = in.grad_in;
  const int64_t *sizes = in.input_sizes;
  int32_t ndim = (int32_t)in.input_sizes_count;
  int64_t dim = in.dim;
  graft_status status = op_check_sizes(c, ARG_unfold_backward_input_sizes);
  if (!status) status = op_wrap_dim(c, &dim, ndim);
  if (status) return status;
  int64_t length = ndim ? sizes[dim] : 1;
  if (in.step < 1) return op_error(c, "step is %lld; expected 1 or more", (long long)in.step);
  if (in.size < 0 || in.size > length) {
    return op_error(c, "size is %lld; expected 0 to %lld, the size of dim %lld", (long long)in.size, (long long)length,
                    (long long)dim);
  }
  int64_t windows = (length - in.size) / in.step + 1;
  bool fits = grad->ndim == ndim + 1 && grad->sizes[ndim] == in.size;
  for (int32_t i = 0; fits && i < ndim; i++) fits = grad->sizes[i] == (i == dim ? windows : sizes[i]);
  if (!fits) {
    return op_refuse(c, ARG_unfold_backward_grad_in, "%lld windows of %lld at dim %lld, and input_sizes for the others",
                     (long long)windows, (long long)in.size, (long long)dim);
  }
  if (dt_is_float8(grad->dtype)) return op_refuse(c, ARG_unfold_backward_grad_in, "a dtype that adds");
  op_set_int(c, ARG_unfold_backward_dim, dim);
  c->compute = grad->dtype;
  op_out(c, OUT, grad->dtype, ndim, sizes);
  return GRAFT_OK;
}

/* The sums of the places of all windows that cover place i of the line, in order of the windows. */
static ref_real sum_of(const graft_args_unfold_backward *a, const ref_real *g, int64_t i, int64_t windows,
                       const ref_split *s, int64_t outer, int64_t inner) {
  graft_dtype dtype = a->out->dl.dtype;
  int64_t first = i < a->size ? 0 : (i - a->size) / a->step + 1, last = i / a->step;
  if (last >= windows) last = windows - 1;
  if (!a->size || last < first) return 0;
  const ref_real *at = g + ((outer * windows + first) * s->inner + inner) * a->size + (i - first * a->step);
  return ref_sum(dtype, at, s->inner * a->size - a->step, last - first + 1);
}

graft_status kernel_unfold_backward(const graft_exec *exec, const graft_args_unfold_backward *a) {
  REF_OWNED ref_array g = ref_read(a->grad_in), out = ref_new(ref_numel(a->out), g.im != NULL);
  if (!(g.re && out.re)) return ref_no_memory();
  ref_split s = ref_split_at(a->out, a->dim);
  int64_t windows = (s.size - a->size) / a->step + 1;
  for (int64_t at = 0; at < out.count; at++) {
    int64_t outer = at / s.inner / s.size, i = at / s.inner % s.size, inner = at % s.inner;
    out.re[at] = sum_of(a, g.re, i, windows, &s, outer, inner);
    if (g.im) out.im[at] = sum_of(a, g.im, i, windows, &s, outer, inner);
  }
  ref_write(a->out, &out);
  return GRAFT_OK;
}

/* The windows' places side by side along dim are added to those of the tensor they stand for. */
static void decompose_unfold_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_unfold_backward in = in_unfold_backward_of(c->args);
  graft_tensor *g = in.grad_in;
  int64_t dims[GRAFT_MAX_DIMS], sizes[GRAFT_MAX_DIMS];
  int32_t ndim = g->ndim - 1;
  graft_tensor *zeros = fx_filled(s, g, c->out[OUT].ndim, c->out[OUT].sizes, 0, g->dtype);
  if (!ndim) { /* of a number: one window of it, or of nothing */
    outs[OUT] = in.size ? fx_reshape(s, g, 0, NULL) : zeros;
    return;
  }
  int64_t windows = g->sizes[in.dim], count = windows * in.size;
  for (int32_t i = 0, to = 0; i < ndim; i++) {
    dims[to++] = i;
    if (i == in.dim) dims[to++] = ndim;
  }
  for (int32_t i = 0; i < ndim; i++) sizes[i] = i == in.dim ? count : g->sizes[i];
  graft_tensor *places = fx_reshape(s, fx_permute(s, g, dims, (uint32_t)g->ndim), ndim, sizes);
  graft_tensor *starts = fx_arange_start_step(s, graft_scalar_int(0), graft_scalar_int(windows * in.step),
                                              graft_scalar_int(in.step), GRAFT_I64, c->device);
  graft_tensor *offsets = fx_count_up(s, in.size, GRAFT_I64, c->device);
  graft_tensor *index = fx_add(s, fx_reshape(s, starts, 2, (int64_t[]){windows, 1}), offsets);
  outs[OUT] = fx_index_add(s, zeros, in.dim, fx_reshape(s, index, 1, &count), places, graft_scalar_int(1));
}

/* Linear: the gradient is the windows of the cotangent, a view. */
static void vjp_unfold_backward(op_vjp *v) {
  const in_unfold_backward in = in_unfold_backward_of(v->args);
  graft_tensor *g = v->g[OUT], *windows = in.grad_in;
  int64_t strides[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < g->ndim; i++) strides[i] = i == in.dim ? g->strides[i] * in.step : g->strides[i];
  strides[g->ndim] = g->ndim ? g->strides[in.dim] : 1;
  v->results[ARG_unfold_backward_grad_in] =
      fx_as_strided(v->s, g, windows->sizes, (uint32_t)windows->ndim, strides, (uint32_t)windows->ndim, NULL);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(unfold_backward),
     .roles = "v",
     .infer = infer_unfold_backward,
     .decompose = decompose_unfold_backward,
     .vjp = vjp_unfold_backward},
};
OP_TABLE(shape_windows, defs)
