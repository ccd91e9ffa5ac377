/* The scale of losses in half types: unscaling gradients, looking for those that overflowed, and the next scale. */
#include "ops/optimizer/optimizer.h"

#include <math.h>

#include "ops/generated/fx_ops.h"

/* --- _amp_foreach_non_finite_check_and_unscale(self, found_inf, inv_scale) -> self * inv_scale, and found_inf, or 1
 * where an element of self is not finite --- */

static graft_status check_f32_number(const op_call *c, int arg) {
  const graft_tensor *t = op_tensor(c, arg);
  if (t->numel != 1) return op_error(c, "%s is %s; expected one number", c->schema->args[arg].name, op_show(c, arg));
  return t->dtype == GRAFT_F32 || t->dtype == GRAFT_WIDE ? GRAFT_OK : op_refuse_dtype(c, arg, "f32");
}

graft_status opt_infer_unscale(op_call *c) {
  graft_status status = check_f32_number(c, 1);
  if (!status) status = check_f32_number(c, 2);
  for (uint32_t i = 0; !status && i < c->args[0].count; i++) {
    const graft_tensor *t = c->args[0].as.tensors[i];
    if (!t)
      status = op_error(c, "item %u of self is absent", i);
    else if (!dt_is_float(t->dtype) || dt_is_float8(t->dtype))
      status = op_refuse_dtype(c, 0, "floating dtypes");
  }
  if (status) return status;
  op_out_list(c, 0, 0);
  op_out_like(c, 1, op_tensor(c, 1)->dtype, op_tensor(c, 1));
  return GRAFT_OK;
}

graft_status ref_amp_foreach_non_finite_check_and_unscale(
    const graft_exec *exec, const graft_args_amp_foreach_non_finite_check_and_unscale *a) {
  (void)exec;
  ref_array found = ref_read(a->found_inf);
  ref_real scale = opt_number(a->inv_scale, 1);
  graft_status status = found.re ? GRAFT_OK : ref_no_memory();
  for (uint64_t i = 0; !status && i < a->self.count; i++) {
    ref_array x = ref_read(a->self.items[i]);
    if (!x.re) status = ref_no_memory();
    for (int64_t j = 0; j < x.count; j++) {
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

void opt_decompose_unscale(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *found = op_tensor(c, 1), *finite = NULL;
  uint32_t count = c->args[0].count;
  for (uint32_t i = 0; i < count && !s->status; i++) {
    graft_tensor *x = c->args[0].as.tensors[i];
    graft_dtype dtype = dt_is_half(x->dtype) ? GRAFT_F32 : x->dtype;
    graft_tensor *scale = fx_cast(s, fx_reshape(s, op_tensor(c, 2), 0, (int64_t[]){0}), dtype);
    outs[i] = fx_cast(s, fx_mul(s, fx_cast(s, x, dtype), scale), x->dtype);
    if (!x->numel) continue;
    finite = finite ? fx_logical_and(s, finite, all_finite(s, x)) : all_finite(s, x);
  }
  if (finite) {
    fx_call(s, GRAFT_OP_WHERE_SELF,
            (graft_value[]){fx_tensor(finite), fx_tensor(found), fx_number(graft_scalar_int(1))}, 3, &outs[count], 1);
  } else {
    outs[count] = found;
  }
}

/* --- _amp_update_scale(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval)
 * --- Less after a step that was skipped; more after so many that were not; and how many those are by now. */

graft_status opt_infer_update_scale(op_call *c) {
  static const graft_dtype dtypes[] = {GRAFT_F32, GRAFT_I32, GRAFT_F32};
  for (int i = 0; i < 3; i++) {
    const graft_tensor *t = op_tensor(c, i);
    if (t->numel != 1) return op_error(c, "%s is %s; expected one number", c->schema->args[i].name, op_show(c, i));
    bool oracle = dtypes[i] == GRAFT_F32 && t->dtype == GRAFT_WIDE;
    if (t->dtype != dtypes[i] && !oracle) return op_refuse_dtype(c, i, graft_dtype_name(dtypes[i]));
  }
  for (int i = 0; i < 2; i++) op_out_like(c, i, op_tensor(c, i)->dtype, op_tensor(c, i));
  return GRAFT_OK;
}

graft_status ref_amp_update_scale(const graft_exec *exec, const graft_args_amp_update_scale *a) {
  (void)exec;
  ref_array scale = ref_read(a->self), tracker = ref_read(a->growth_tracker);
  graft_status status = scale.re && tracker.re ? GRAFT_OK : ref_no_memory();
  bool skipped = opt_number(a->found_inf, 0) != 0;
  if (!status) {
    ref_real steps = skipped ? 0 : tracker.re[0] + 1, grown = scale.re[0] * a->scale_growth_factor;
    if (skipped) scale.re[0] *= a->scale_backoff_factor;
    if (!skipped && steps == (ref_real)a->growth_interval) {
      if (isfinite((double)dt_round(GRAFT_F32, grown))) scale.re[0] = grown;
      steps = 0;
    }
    tracker.re[0] = steps;
    ref_write(a->out0, &scale);
    ref_write(a->growth_tracker_out, &tracker);
  }
  ref_free(&scale);
  ref_free(&tracker);
  return status;
}

static graft_tensor *either(fx *s, graft_tensor *condition, graft_value yes, graft_value no) {
  graft_tensor *out;
  fx_call(s, GRAFT_OP_WHERE_SELF, (graft_value[]){fx_tensor(condition), yes, no}, 3, &out, 1);
  return out;
}

void opt_decompose_update_scale(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *scale = op_tensor(c, 0), *tracker = op_tensor(c, 1), *found = op_tensor(c, 2);
  graft_tensor *skipped = fx_reshape(s, fx_ne_Scalar(s, found, graft_scalar_int(0)), 0, (int64_t[]){0});
  graft_tensor *steps = fx_add_Scalar(s, tracker, graft_scalar_int(1), graft_scalar_int(1));
  graft_tensor *due = fx_eq_Scalar(s, steps, graft_scalar_int(op_int(c, 5)));
  graft_tensor *grown = fx_muls(s, scale, op_float(c, 3));
  graft_tensor *finite = fx_lt_Scalar(s, fx_abs(s, grown), graft_scalar_float(INFINITY));
  graft_tensor *grows =
      fx_logical_and(s, fx_reshape(s, due, 0, (int64_t[]){0}), fx_reshape(s, finite, 0, (int64_t[]){0}));
  graft_tensor *kept = either(s, grows, fx_tensor(grown), fx_tensor(scale));
  outs[0] = either(s, skipped, fx_tensor(fx_muls(s, scale, op_float(c, 4))), fx_tensor(kept));
  const graft_value zero = fx_number(graft_scalar_int(0));
  outs[1] = either(s, skipped, zero, fx_tensor(either(s, due, zero, fx_tensor(steps))));
}
