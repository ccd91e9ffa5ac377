/* The scale of losses in half types: unscaling gradients, looking for those that overflowed, and the next scale. */
#include <math.h>

#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"
#include "ops/optimizer/optimizer.h"

/* --- _amp_foreach_non_finite_check_and_unscale -> self * inv_scale, and found_inf, or 1
 * where an element of self is not finite --- */

static graft_status check_f32_number(const op_call *c, int arg) {
  const graft_tensor *t = op_tensor(c, arg);
  if (t->numel != 1) return op_refuse(c, arg, "one number");
  return t->dtype == GRAFT_F32 || t->dtype == GRAFT_WIDE ? GRAFT_OK : op_refuse(c, arg, "f32");
}

static graft_status infer_unscale(op_call *c) {
  const in_amp_foreach_non_finite_check_and_unscale in = in_amp_foreach_non_finite_check_and_unscale_of(c->args);
  graft_status status = check_f32_number(c, ARG_amp_foreach_non_finite_check_and_unscale_found_inf);
  if (!status) status = check_f32_number(c, ARG_amp_foreach_non_finite_check_and_unscale_inv_scale);
  for (uint32_t i = 0; !status && i < in.self_count; i++) {
    const graft_tensor *t = in.self[i];
    if (!dt_is_float(t->dtype) || dt_is_float8(t->dtype))
      status = op_refuse(c, ARG_amp_foreach_non_finite_check_and_unscale_self, "floating dtypes");
  }
  if (status) return status;
  op_out_list(c, OUT_amp_foreach_non_finite_check_and_unscale_self_out,
              ARG_amp_foreach_non_finite_check_and_unscale_self);
  op_out_like(c, OUT_amp_foreach_non_finite_check_and_unscale_found_inf_out, in.found_inf->dtype, in.found_inf);
  return GRAFT_OK;
}

graft_status kernel_amp_foreach_non_finite_check_and_unscale(
    const graft_exec *exec, const graft_args_amp_foreach_non_finite_check_and_unscale *a) {
  ref_array found = ref_read(a->found_inf);
  ref_real scale = opt_number(a->inv_scale, 1);
  graft_status status = found.re ? GRAFT_OK : ref_no_memory();
  for (uint64_t i = 0; !status && i < a->self.count; i++) {
    ref_array x = ref_read(a->self.items[i]);
    if (!x.re) status = ref_no_memory();
    for (int64_t j = 0; !status && j < x.count; j++) {
      if (!isfinite(x.re[j])) found.re[0] = 1;
      if (scale != 1) x.re[j] *= scale;
    }
    if (!status) ref_write(a->self_out.items[i], &x);
    ref_free(&x);
  }
  if (!status) ref_write(a->found_inf_out, &found);
  ref_free(&found);
  return status;
}

/* Whether all of t is finite, as rank 0. NaN is the largest of all, and not below infinity. */
static graft_tensor *all_finite(fx *s, graft_tensor *t) {
  return fx_lt_Scalar(s, fx_amax(s, fx_abs(s, t), NULL, 0, false), graft_scalar_float(INFINITY));
}

static void decompose_unscale(fx *s, const op_call *c, graft_tensor **outs) {
  const in_amp_foreach_non_finite_check_and_unscale in = in_amp_foreach_non_finite_check_and_unscale_of(c->args);
  graft_tensor *found = in.found_inf, *finite = NULL;
  uint32_t count = in.self_count;
  for (uint32_t i = 0; i < count && !s->status; i++) {
    graft_tensor *x = in.self[i];
    graft_dtype dtype = dt_is_half(x->dtype) ? GRAFT_F32 : x->dtype;
    graft_tensor *scale = fx_cast(s, fx_reshape(s, in.inv_scale, 0, (int64_t[]){0}), dtype);
    outs[i] = fx_cast(s, fx_mul(s, fx_cast(s, x, dtype), scale), x->dtype);
    if (!x->numel) continue;
    finite = finite ? fx_logical_and(s, finite, all_finite(s, x)) : all_finite(s, x);
  }
  if (finite) {
    outs[count] = fx_where(s, finite, fx_tensor(found), fx_int(1));
  } else {
    outs[count] = found;
  }
}

/* --- _amp_update_scale
 * --- Less after a step that was skipped; more after so many that were not; and how many those are by now. */

static graft_status infer_update_scale(op_call *c) {
  static const graft_dtype dtypes[] = {GRAFT_F32, GRAFT_I32, GRAFT_F32};
  for (int i = 0; i < 3; i++) {
    const graft_tensor *t = op_tensor(c, i);
    if (t->numel != 1) return op_refuse(c, i, "one number");
    bool oracle = dtypes[i] == GRAFT_F32 && t->dtype == GRAFT_WIDE;
    if (t->dtype != dtypes[i] && !oracle) return op_refuse(c, i, "%s", graft_dtype_name(dtypes[i]));
  }
  for (int i = 0; i < 2; i++) op_out_like(c, i, op_tensor(c, i)->dtype, op_tensor(c, i));
  return GRAFT_OK;
}

graft_status kernel_amp_update_scale(const graft_exec *exec, const graft_args_amp_update_scale *a) {
  REF_OWNED ref_array scale = ref_read(a->self), tracker = ref_read(a->growth_tracker);
  if (!(scale.re && tracker.re)) return ref_no_memory();
  bool skipped = opt_number(a->found_inf, 0) != 0;
  ref_real steps = skipped ? 0 : tracker.re[0] + 1, grown = scale.re[0] * a->scale_growth_factor;
  if (skipped) scale.re[0] *= a->scale_backoff_factor;
  if (!skipped && steps == (ref_real)a->growth_interval) {
    if (isfinite((double)dt_round(GRAFT_F32, grown))) scale.re[0] = grown;
    steps = 0;
  }
  tracker.re[0] = steps;
  ref_write(a->out0, &scale);
  ref_write(a->growth_tracker_out, &tracker);
  return GRAFT_OK;
}

/* The factor is a double, and the product is rounded once: in f64, where the device has that. */
static graft_tensor *times(fx *s, const op_call *c, graft_tensor *scale, double factor) {
  bool finer = scale->dtype == GRAFT_F32 && c->device->dtypes & dt_bit(GRAFT_F64);
  return fx_cast(s, fx_muls(s, finer ? fx_cast(s, scale, GRAFT_F64) : scale, factor), scale->dtype);
}

static void decompose_update_scale(fx *s, const op_call *c, graft_tensor **outs) {
  const in_amp_update_scale in = in_amp_update_scale_of(c->args);
  graft_tensor *scale = in.self, *tracker = in.growth_tracker, *found = in.found_inf;
  graft_tensor *skipped = fx_reshape(s, fx_ne_Scalar(s, found, graft_scalar_int(0)), 0, (int64_t[]){0});
  graft_tensor *steps = fx_add_Scalar(s, tracker, graft_scalar_int(1), graft_scalar_int(1));
  graft_tensor *due = fx_eq_Scalar(s, steps, graft_scalar_int(in.growth_interval));
  graft_tensor *grown = times(s, c, scale, in.scale_growth_factor);
  graft_tensor *finite = fx_lt_Scalar(s, fx_abs(s, grown), graft_scalar_float(INFINITY));
  graft_tensor *grows =
      fx_logical_and(s, fx_reshape(s, due, 0, (int64_t[]){0}), fx_reshape(s, finite, 0, (int64_t[]){0}));
  graft_tensor *kept = fx_where(s, grows, fx_tensor(grown), fx_tensor(scale));
  outs[OUT_amp_update_scale_out0] =
      fx_where(s, skipped, fx_tensor(times(s, c, scale, in.scale_backoff_factor)), fx_tensor(kept));
  outs[OUT_amp_update_scale_growth_tracker_out] = fx_not_where(s, skipped, fx_not_where(s, due, steps));
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(amp_update_scale),
     .roles = "kkk",
     .infer = infer_update_scale,
     .decompose = decompose_update_scale,
     .flags = OP_READS_FIRST},
    {.op_id = OP_WITH_KERNEL(amp_foreach_non_finite_check_and_unscale),
     .roles = "kkk",
     .infer = infer_unscale,
     .decompose = decompose_unscale,
     .flags = OP_READS_FIRST},
};
OP_TABLE(optimizer_scale, defs)
