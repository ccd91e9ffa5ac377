/* Root mean square normalization: x / sqrt(mean(x^2) + eps) times a weight, over the last dims; and its gradient. */
#include <float.h>

#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

/* normalized_shape, in argument `arg`, is that of the last dims of argument `input`. */
static graft_status check_shape(const op_call *c, int input, int arg) {
  const graft_tensor *x = op_tensor(c, input);
  const graft_value *shape = &c->args[arg];
  int32_t lead = x->ndim - (int32_t)shape->count;
  bool fits = shape->count > 0 && lead >= 0;
  for (uint32_t i = 0; fits && i < shape->count; i++) fits = x->sizes[lead + (int32_t)i] == shape->as.ints[i];
  return fits ? GRAFT_OK : op_error(c, "normalized_shape is not that of the last dims of %s", op_show(c, input));
}

static graft_status check_weight(const op_call *c, int arg, const graft_value *shape) {
  const graft_tensor *w = op_tensor(c, arg);
  bool fits = !w || tns_has_sizes(w, (int32_t)shape->count, shape->as.ints);
  return fits ? GRAFT_OK : op_refuse(c, arg, "normalized_shape");
}

/* Tensors have the input's dtype, or some are f32 beside a half type: then all is computed in f32. */
static graft_status check_dtypes(op_call *c, int input, const int8_t *others, size_t count) {
  graft_dtype dtype = op_tensor(c, input)->dtype;
  graft_status status = op_check_floating(c, input);
  if (status) return status;
  c->compute = dtype;
  for (size_t i = 0; i < count; i++) {
    const graft_tensor *t = op_tensor(c, others[i]);
    if (!t || t->dtype == dtype) continue;
    if (!dt_is_half(dtype) || t->dtype != GRAFT_F32) return op_refuse(c, others[i], "the input's dtype");
    c->compute = GRAFT_F32;
    c->decompose_only = true;
  }
  return GRAFT_OK;
}

static graft_status infer_forward(op_call *c) {
  const in_fused_rms_norm in = in_fused_rms_norm_of(c->args);
  const graft_tensor *x = in.input;
  const int8_t others[] = {ARG_fused_rms_norm_weight};
  graft_status status = check_shape(c, ARG_fused_rms_norm_input, ARG_fused_rms_norm_normalized_shape);
  if (!status) status = check_weight(c, ARG_fused_rms_norm_weight, &c->args[ARG_fused_rms_norm_normalized_shape]);
  if (!status) status = check_dtypes(c, ARG_fused_rms_norm_input, others, sizeof others);
  if (status) return status;
  graft_dtype statistics = dt_is_half(x->dtype) ? GRAFT_F32 : x->dtype;
  if (op_absent(c, ARG_fused_rms_norm_eps)) {
    c->args[ARG_fused_rms_norm_eps] =
        (graft_value){GRAFT_VALUE_FLOAT, 0, {.f = statistics == GRAFT_F32 ? (double)FLT_EPSILON : DBL_EPSILON}};
  }
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < x->ndim; i++) sizes[i] = i < x->ndim - (int32_t)in.normalized_shape_count ? x->sizes[i] : 1;
  op_out_format(c, OUT_fused_rms_norm_out0, x->dtype, x->ndim, x->sizes, tns_suggest_format(x));
  op_out(c, OUT_fused_rms_norm_out1, statistics, x->ndim, sizes);
  return GRAFT_OK;
}

static graft_status infer_backward(op_call *c) {
  const in_fused_rms_norm_backward in = in_fused_rms_norm_backward_of(c->args);
  const graft_tensor *x = in.input, *g = in.grad_out, *w = in.weight;
  const int8_t others[] = {ARG_fused_rms_norm_backward_grad_out, ARG_fused_rms_norm_backward_weight};
  int shape = ARG_fused_rms_norm_backward_normalized_shape;
  graft_status status = check_shape(c, ARG_fused_rms_norm_backward_input, shape);
  if (!status) status = check_weight(c, ARG_fused_rms_norm_backward_weight, &c->args[shape]);
  if (!status) status = check_dtypes(c, ARG_fused_rms_norm_backward_input, others, sizeof others);
  if (status) return status;
  if (!tns_same_sizes(g, x)) return op_error(c, "grad_out and input differ in shape (%s)", op_show_tensors(c));
  int64_t each = tns_numel((int32_t)in.normalized_shape_count, in.normalized_shape),
          rows = each ? x->numel / each : in.rstd->numel;
  if (in.rstd->numel != rows || !dt_is_float(in.rstd->dtype)) {
    return op_refuse(c, ARG_fused_rms_norm_backward_rstd, "%lld statistics", (long long)rows);
  }
  c->nouts = 2;
  if (in.output_mask[0]) op_out(c, OUT_fused_rms_norm_backward_out0, x->dtype, x->ndim, x->sizes);
  if (in.output_mask[1] && w) op_out(c, OUT_fused_rms_norm_backward_out1, w->dtype, w->ndim, w->sizes);
  return GRAFT_OK;
}

/* --- kernels --- */

static int64_t elements_of(const graft_int_list *shape) {
  int64_t count = 1;
  for (uint64_t i = 0; i < shape->count; i++) count *= shape->items[i];
  return count;
}

graft_status kernel_fused_rms_norm(const graft_exec *exec, const graft_args_fused_rms_norm *a) {
  int64_t width = elements_of(&a->normalized_shape), rows = ref_numel(a->out1);
  graft_dtype dtype = a->input->dl.dtype;
  REF_OWNED ref_array x = ref_read(a->input), w = ref_read(a->weight), rstd = ref_new(rows, false);
  if (!x.re || !rstd.re || (a->weight && !w.re)) return ref_no_memory();
  for (int64_t r = 0; r < rows; r++) {
    ref_real *line = x.re + r * width;
    rstd.re[r] = 1 / sqrtl(ref_dot(dtype, line, 1, line, 1, width) / (ref_real)width + (a->eps ? *a->eps : 0));
    for (int64_t k = 0; k < width; k++) line[k] *= rstd.re[r] * (w.re ? w.re[k] : 1);
  }
  ref_write(a->out0, &x);
  ref_write(a->out1, &rstd);
  return GRAFT_OK;
}

/* One row: what is left of the gradient in place of x, and what the row adds to the weight's. */
static void row_back(graft_dtype dtype, const ref_real *g, ref_real *x, const ref_real *w, ref_real rstd, int64_t width,
                     ref_real *to_weight, ref_real *line) {
  for (int64_t k = 0; k < width; k++) {
    if (to_weight) ref_add(dtype, &to_weight[k], g[k] * x[k] * rstd);
    line[k] = g[k] * (w ? w[k] : 1);
  }
  ref_real slope = ref_dot(dtype, line, 1, x, 1, width) / (ref_real)width * rstd * rstd;
  for (int64_t k = 0; k < width; k++) x[k] = rstd * (line[k] - x[k] * slope);
}

graft_status kernel_fused_rms_norm_backward(const graft_exec *exec, const graft_args_fused_rms_norm_backward *a) {
  int64_t width = elements_of(&a->normalized_shape);
  REF_OWNED ref_array g = ref_read(a->grad_out), x = ref_read(a->input), w = ref_read(a->weight),
                      rstd = ref_read(a->rstd);
  REF_OWNED ref_array to_weight = a->out1 ? ref_new(width, false) : (ref_array){0}, line = ref_new(width, false);
  bool ok = g.re && x.re && rstd.re && line.re && (!a->weight || w.re) && (!a->out1 || to_weight.re);
  if (!ok) return ref_no_memory();
  for (int64_t r = 0; width && r < x.count / width; r++) {
    row_back(a->input->dl.dtype, g.re + r * width, x.re + r * width, w.re, rstd.re[r], width, to_weight.re, line.re);
  }
  ref_write(a->out0, &x);
  ref_write(a->out1, &to_weight);
  return GRAFT_OK;
}

/* --- on tensors --- */

/* Bits of the last `count` of ndim dims. */
static uint32_t last_dims(int32_t ndim, uint32_t count) {
  return ((1u << count) - 1) << (ndim - (int32_t)count);
}

static graft_tensor *mean_of(fx *s, graft_tensor *t, uint32_t mask, double count) {
  graft_tensor *sum = fx_sum(s, t, mask, true);
  return fx_binary(s, GRAFT_OP_DIV_TENSOR, fx_tensor(sum), fx_float(count));
}

static double count_of(const graft_value *shape) {
  return (double)tns_numel((int32_t)shape->count, shape->as.ints);
}

static graft_tensor *rstd_of(fx *s, graft_tensor *x, const graft_value *shape, double eps) {
  graft_tensor *mean = mean_of(s, fx_mul(s, x, x), last_dims(x->ndim, shape->count), count_of(shape));
  return fx_rsqrt(s, fx_adds(s, mean, eps));
}

static void decompose_forward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_fused_rms_norm in = in_fused_rms_norm_of(c->args);
  graft_tensor *x = in.input, *w = in.weight;
  if (op_ran_wider(s, c, outs)) return;
  outs[OUT_fused_rms_norm_out1] =
      rstd_of(s, x, &c->args[ARG_fused_rms_norm_normalized_shape], op_float(c, ARG_fused_rms_norm_eps));
  outs[OUT_fused_rms_norm_out0] = fx_mul(s, x, outs[OUT_fused_rms_norm_out1]);
  if (w) outs[OUT_fused_rms_norm_out0] = fx_mul(s, outs[OUT_fused_rms_norm_out0], w);
}

static void backward(fx *s, graft_tensor *g, graft_tensor *x, const graft_value *shape, graft_tensor *rstd,
                     graft_tensor *w, bool wants_x, bool wants_w, graft_tensor **to_x, graft_tensor **to_w) {
  uint32_t mask = last_dims(x->ndim, shape->count);
  graft_tensor *unit = fx_mul(s, x, rstd), *gw = w ? fx_mul(s, g, w) : g;
  if (wants_x) {
    graft_tensor *slope = mean_of(s, fx_mul(s, gw, unit), mask, count_of(shape));
    *to_x = fx_mul(s, rstd, fx_sub(s, gw, fx_mul(s, unit, slope)));
  }
  if (wants_w) *to_w = fx_sum(s, fx_mul(s, g, unit), (1u << x->ndim) - 1 - mask, false);
}

static void decompose_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_fused_rms_norm_backward in = in_fused_rms_norm_backward_of(c->args);
  graft_tensor *x = in.input, *rstd = fx_cast(s, in.rstd, x->dtype);
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < x->ndim; i++) sizes[i] = i < x->ndim - (int32_t)in.normalized_shape_count ? x->sizes[i] : 1;
  rstd = fx_reshape(s, rstd, x->ndim, sizes);
  if (s->status) return;
  backward(s, in.grad_out, x, &c->args[ARG_fused_rms_norm_backward_normalized_shape], rstd, in.weight,
           c->out_wanted[OUT_fused_rms_norm_backward_out0], c->out_wanted[OUT_fused_rms_norm_backward_out1],
           &outs[OUT_fused_rms_norm_backward_out0], &outs[OUT_fused_rms_norm_backward_out1]);
}

static void vjp_forward(op_vjp *v) {
  const in_fused_rms_norm in = in_fused_rms_norm_of(v->args);
  graft_tensor *g = v->g[OUT_fused_rms_norm_out0], *x = in.input, *w = in.weight,
               *rstd = v->outs[OUT_fused_rms_norm_out1], *to_x = NULL, *to_w = NULL;
  const graft_value *shape = &v->args[ARG_fused_rms_norm_normalized_shape];
  uint8_t mask[2] = {vjp_needs(v, ARG_fused_rms_norm_input), w && vjp_needs(v, ARG_fused_rms_norm_weight)};
  if (v->create_graph) rstd = rstd_of(v->s, x, shape, v->args[ARG_fused_rms_norm_eps].as.f);
  if (g && v->create_graph) {
    backward(v->s, g, x, shape, rstd, w, mask[0], mask[1], &to_x, &to_w);
  } else if (g) {
    fx_fused_rms_norm_backward(v->s, g, x, shape->as.ints, shape->count, v->outs[OUT_fused_rms_norm_out1], w, mask,
                               &to_x, &to_w);
  }
  if (mask[0] && v->g[OUT_fused_rms_norm_out1]) { /* of rstd itself: -rstd^3 x / count */
    graft_tensor *slope = fx_mul(v->s, fx_mul(v->s, v->g[OUT_fused_rms_norm_out1], fx_powi(v->s, rstd, 3)), x);
    slope = fx_muls(v->s, slope, -1 / count_of(shape));
    to_x = to_x ? fx_add(v->s, to_x, slope) : slope;
  }
  v->results[ARG_fused_rms_norm_input] = to_x;
  if (mask[1]) v->results[ARG_fused_rms_norm_weight] = to_w;
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(fused_rms_norm),
     .roles = "vv",
     .infer = infer_forward,
     .decompose = decompose_forward,
     .vjp = vjp_forward,
     .saves = OP_SAVE_ARGS(fused_rms_norm, input, weight) | OP_SAVE_OUT(fused_rms_norm, out1)},
    {.op_id = OP_WITH_KERNEL(fused_rms_norm_backward),
     .roles = "vvkv",
     .infer = infer_backward,
     .decompose = decompose_backward},
};
OP_TABLE(normalization_rms, defs)
