/* Root mean square normalization: x / sqrt(mean(x^2) + eps) times a weight, over the last dims; and its gradient. */
#include <float.h>

#include "graft/autograd.h"
#include "ops/core/families.h"
#include "ops/core/ref.h"
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
  bool fits = !w || (uint32_t)w->ndim == shape->count;
  for (uint32_t i = 0; fits && w && i < shape->count; i++) fits = w->sizes[i] == shape->as.ints[i];
  return fits ? GRAFT_OK : op_error(c, "weight is %s; expected normalized_shape", op_show(c, arg));
}

/* Tensors have the input's dtype, or some are f32 beside a half type: then all is computed in f32. */
static graft_status check_dtypes(op_call *c, int input, const int8_t *others, int count) {
  graft_dtype dtype = op_tensor(c, input)->dtype;
  if (!dt_is_float(dtype) || dt_is_float8(dtype)) return op_refuse_dtype(c, input, "a floating dtype");
  c->compute = dtype;
  for (int i = 0; i < count; i++) {
    const graft_tensor *t = op_tensor(c, others[i]);
    if (!t || t->dtype == dtype) continue;
    if (!dt_is_half(dtype) || t->dtype != GRAFT_F32) return op_refuse_dtype(c, others[i], "the input's dtype");
    c->compute = GRAFT_F32;
    c->decompose_only = true;
  }
  return GRAFT_OK;
}

/* _fused_rms_norm(input, normalized_shape, weight, eps) -> (out, rstd) */
static graft_status infer_forward(op_call *c) {
  const graft_tensor *x = op_tensor(c, 0);
  graft_status status = check_shape(c, 0, 1);
  if (!status) status = check_weight(c, 2, &c->args[1]);
  if (!status) status = check_dtypes(c, 0, (const int8_t[]){2}, 1);
  if (status) return status;
  graft_dtype statistics = dt_is_half(x->dtype) ? GRAFT_F32 : x->dtype;
  if (op_absent(c, 3)) {
    c->args[3] =
        (graft_value){GRAFT_VALUE_FLOAT, 0, {.f = statistics == GRAFT_F32 ? (double)FLT_EPSILON : DBL_EPSILON}};
  }
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < x->ndim; i++) sizes[i] = i < x->ndim - (int32_t)c->args[1].count ? x->sizes[i] : 1;
  op_out_format(c, 0, x->dtype, x->ndim, x->sizes, tns_suggest_format(x));
  op_out(c, 1, statistics, x->ndim, sizes);
  return GRAFT_OK;
}

/* _fused_rms_norm_backward(grad_out, input, normalized_shape, rstd, weight, output_mask) -> (input's, weight's) */
static graft_status infer_backward(op_call *c) {
  const graft_tensor *x = op_tensor(c, 1), *g = op_tensor(c, 0), *rstd = op_tensor(c, 3), *w = op_tensor(c, 4);
  if (c->args[5].count < 2) return op_error(c, "output_mask must be 2 bools");
  graft_status status = check_shape(c, 1, 2);
  if (!status) status = check_weight(c, 4, &c->args[2]);
  if (!status) status = check_dtypes(c, 1, (const int8_t[]){0, 4}, 2);
  if (status) return status;
  bool same = g->ndim == x->ndim;
  for (int32_t i = 0; same && i < x->ndim; i++) same = g->sizes[i] == x->sizes[i];
  if (!same) return op_error(c, "grad_out and input differ in shape (%s)", op_show_tensors(c));
  int64_t each = tns_numel((int32_t)c->args[2].count, c->args[2].as.ints), rows = each ? x->numel / each : rstd->numel;
  if (rstd->numel != rows || !dt_is_float(rstd->dtype)) {
    return op_error(c, "rstd is %s; expected %lld statistics", op_show(c, 3), (long long)rows);
  }
  c->nouts = 2;
  if (c->args[5].as.mask[0]) op_out(c, 0, x->dtype, x->ndim, x->sizes);
  if (c->args[5].as.mask[1] && w) op_out(c, 1, w->dtype, w->ndim, w->sizes);
  return GRAFT_OK;
}

/* --- kernels --- */

static int64_t elements_of(const graft_int_list *shape) {
  int64_t count = 1;
  for (uint64_t i = 0; i < shape->count; i++) count *= shape->items[i];
  return count;
}

static graft_status ref_fused_rms_norm(const graft_exec *exec, const graft_args_fused_rms_norm *a) {
  (void)exec;
  int64_t width = elements_of(&a->normalized_shape), rows = ref_numel(a->out1);
  graft_dtype dtype = a->input->dl.dtype;
  ref_array x = ref_read(a->input), w = ref_read(a->weight), rstd = ref_new(rows, false);
  bool ok = x.re && rstd.re && (!a->weight || w.re);
  for (int64_t r = 0; ok && r < rows; r++) {
    ref_real *line = x.re + r * width;
    rstd.re[r] = 1 / sqrtl(ref_dot(dtype, line, 1, line, 1, width) / (ref_real)width + (a->eps ? *a->eps : 0));
    for (int64_t k = 0; k < width; k++) line[k] *= rstd.re[r] * (w.re ? w.re[k] : 1);
  }
  if (ok) {
    ref_write(a->out0, &x);
    ref_write(a->out1, &rstd);
  }
  ref_free(&x);
  ref_free(&w);
  ref_free(&rstd);
  return ok ? GRAFT_OK : ref_no_memory();
}

/* One row: what is left of the gradient in place of x, and what the row adds to the weight's. */
static void row_back(graft_dtype dtype, const ref_real *g, ref_real *x, const ref_real *w, ref_real rstd, int64_t width,
                     ref_real *to_weight, ref_real *line) {
  for (int64_t k = 0; k < width; k++) {
    if (to_weight) to_weight[k] = ref_sum(dtype, (ref_real[]){to_weight[k], g[k] * x[k] * rstd}, 1, 2);
    line[k] = g[k] * (w ? w[k] : 1);
  }
  ref_real slope = ref_dot(dtype, line, 1, x, 1, width) / (ref_real)width * rstd * rstd;
  for (int64_t k = 0; k < width; k++) x[k] = rstd * (line[k] - x[k] * slope);
}

static graft_status ref_fused_rms_norm_backward(const graft_exec *exec, const graft_args_fused_rms_norm_backward *a) {
  (void)exec;
  int64_t width = elements_of(&a->normalized_shape);
  ref_array g = ref_read(a->grad_out), x = ref_read(a->input), w = ref_read(a->weight), rstd = ref_read(a->rstd);
  ref_array to_weight = a->out1 ? ref_new(width, false) : (ref_array){0}, line = ref_new(width, false);
  bool ok = g.re && x.re && rstd.re && line.re && (!a->weight || w.re) && (!a->out1 || to_weight.re);
  for (int64_t r = 0; ok && width && r < x.count / width; r++) {
    row_back(a->input->dl.dtype, g.re + r * width, x.re + r * width, w.re, rstd.re[r], width, to_weight.re, line.re);
  }
  if (ok) {
    ref_write(a->out0, &x);
    ref_write(a->out1, &to_weight);
  }
  ref_array *all[] = {&g, &x, &w, &rstd, &to_weight, &line};
  for (int i = 0; i < 6; i++) ref_free(all[i]);
  return ok ? GRAFT_OK : ref_no_memory();
}

/* --- on tensors --- */

/* Bits of the last `count` of ndim dims. */
static uint32_t last_dims(int32_t ndim, uint32_t count) {
  return ((1u << count) - 1) << (ndim - (int32_t)count);
}

static graft_tensor *mean_of(fx *s, graft_tensor *t, uint32_t mask, double count) {
  graft_tensor *sum = fx_sum(s, t, mask, true);
  return fx_binary(s, GRAFT_OP_DIV_TENSOR, fx_tensor(sum), fx_number(graft_scalar_float(count)));
}

static double count_of(const graft_value *shape) {
  return (double)tns_numel((int32_t)shape->count, shape->as.ints);
}

static graft_tensor *rstd_of(fx *s, graft_tensor *x, const graft_value *shape, double eps) {
  graft_tensor *mean = mean_of(s, fx_mul(s, x, x), last_dims(x->ndim, shape->count), count_of(shape));
  return fx_rsqrt(s, fx_adds(s, mean, eps));
}

static void decompose_forward(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *x = op_tensor(c, 0), *w = op_tensor(c, 2);
  if (op_ran_wider(s, c, outs)) return;
  outs[1] = rstd_of(s, x, &c->args[1], op_float(c, 3));
  outs[0] = fx_mul(s, x, outs[1]);
  if (w) outs[0] = fx_mul(s, outs[0], w);
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
  graft_tensor *x = op_tensor(c, 1), *rstd = fx_cast(s, op_tensor(c, 3), x->dtype);
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < x->ndim; i++) sizes[i] = i < x->ndim - (int32_t)c->args[2].count ? x->sizes[i] : 1;
  rstd = fx_reshape(s, rstd, x->ndim, sizes);
  if (s->status) return;
  backward(s, op_tensor(c, 0), x, &c->args[2], rstd, op_tensor(c, 4), c->out_wanted[0], c->out_wanted[1], &outs[0],
           &outs[1]);
}

static void vjp_forward(op_vjp *v) {
  graft_tensor *g = v->g[0], *x = vjp_arg(v, 0), *w = vjp_arg(v, 2), *rstd = v->outs[1], *to_x = NULL, *to_w = NULL;
  const graft_value *shape = &v->args[1];
  uint8_t mask[2] = {vjp_needs(v, 0), w && vjp_needs(v, 2)};
  if (graft_grad_mode()) rstd = rstd_of(v->s, x, shape, v->args[3].as.f);
  if (g && graft_grad_mode()) {
    backward(v->s, g, x, shape, rstd, w, mask[0], mask[1], &to_x, &to_w);
  } else if (g) {
    fx_fused_rms_norm_backward(v->s, g, x, shape->as.ints, shape->count, v->outs[1], w, mask, &to_x, &to_w);
  }
  if (mask[0] && v->g[1]) { /* of rstd itself: -rstd^3 x / count */
    graft_tensor *slope = fx_mul(v->s, fx_mul(v->s, v->g[1], fx_powi(v->s, rstd, 3)), x);
    slope = fx_muls(v->s, slope, -1 / count_of(shape));
    to_x = to_x ? fx_add(v->s, to_x, slope) : slope;
  }
  v->results[0] = to_x;
  if (mask[1]) v->results[2] = to_w;
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_FUSED_RMS_NORM,
     .roles = "vv",
     .infer = infer_forward,
     .decompose = decompose_forward,
     .vjp = vjp_forward,
     .saves = OP_SAVE_ARG(0) | OP_SAVE_ARG(2) | OP_SAVE_OUT(1),
     .reference = OP_REF(fused_rms_norm)},
    {.op_id = GRAFT_OP_FUSED_RMS_NORM_BACKWARD,
     .roles = "vvkv",
     .infer = infer_backward,
     .decompose = decompose_backward,
     .reference = OP_REF(fused_rms_norm_backward)},
};
OP_TABLE(normalization_rms, defs)
