/* Histograms: how many elements lie in each of so many equal parts of an interval. */
#include "ops/reduction/reduction.h"

#include <math.h>

#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"

/* histc(self, bins, min, max) */

graft_status red_infer_histc(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  int64_t bins = op_int(c, 1);
  graft_scalar low = op_scalar(c, 2), high = op_scalar(c, 3);
  bool whole = dt_is_integral(self->dtype, false), real = dt_is_float(self->dtype) && !dt_is_float8(self->dtype);
  if (!whole && !real) return op_refuse_dtype(c, 0, "a real dtype other than bool");
  if (bins < 1) return op_error(c, "bins is %lld; expected 1 or more", (long long)bins);
  long double from = dt_scalar_value(&low).re, to = dt_scalar_value(&high).re;
  if (!isfinite((double)from) || !isfinite((double)to))
    return op_error(c, "from %Lg to %Lg is no finite interval", from, to);
  if (from > to) return op_error(c, "min is %Lg, max is %Lg; expected no more", from, to);
  c->compute = self->dtype;
  op_out(c, 0, self->dtype, 1, &bins);
  return GRAFT_OK;
}

static graft_tensor *either(fx *s, graft_tensor *condition, graft_value yes, graft_value no) {
  graft_tensor *out;
  fx_call(s, GRAFT_OP_WHERE_SELF, (graft_value[]){fx_tensor(condition), yes, no}, 3, &out, 1);
  return out;
}

/* The bounds as rank-0 tensors; equal ones stand for those of the data, and these, where they are equal, for one more
 * on either side. */
static void histogram_bounds(fx *s, const op_call *c, graft_tensor *x, graft_tensor *bound[2]) {
  graft_scalar given[2] = {op_scalar(c, 2), op_scalar(c, 3)};
  bool from_data = dt_scalar_value(&given[0]).re == dt_scalar_value(&given[1]).re && x->numel;
  int64_t none = 0;
  for (int i = 0; i < 2; i++) {
    if (from_data)
      bound[i] = (i ? fx_amax : fx_amin)(s, x, &none, 1, false);
    else
      bound[i] = fx_full(s, &none, 0, given[i], x->dtype, c->device);
  }
  graft_tensor *equal = fx_eq_Tensor(s, bound[0], bound[1]);
  for (int i = 0; i < 2; i++) {
    graft_tensor *beside = fx_add_Scalar(s, bound[i], graft_scalar_int(i ? 1 : -1), graft_scalar_int(1));
    bound[i] = either(s, equal, fx_tensor(beside), fx_tensor(bound[i]));
  }
}

/* What lies in no part is counted in one more, which is cut off. Whole numbers are divided in
 * f64, where quotients of those below 2^53 are cut rightly. */
void red_decompose_histc(fx *s, const op_call *c, graft_tensor **outs) {
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *self = op_tensor(c, 0), *bound[2];
  int64_t bins = op_int(c, 1), more = bins + 1;
  graft_tensor *x = fx_reshape(s, self, 1, &self->numel);
  bool whole = dt_is_integral(self->dtype, false);
  if (whole) x = fx_cast(s, x, GRAFT_F64);
  histogram_bounds(s, c, x, bound);
  graft_tensor *inside = fx_logical_and(s, fx_ge_Tensor(s, x, bound[0]), fx_le_Tensor(s, x, bound[1]));
  const graft_value number[] = {fx_number(graft_scalar_int(bins)), fx_number(graft_scalar_int(0))};
  x = either(s, inside, fx_tensor(x), fx_tensor(bound[0]));
  graft_tensor *above = fx_scale(s, fx_sub(s, x, bound[0]), graft_scalar_int(bins)),
               *width = fx_sub(s, bound[1], bound[0]);
  graft_tensor *part = fx_cast(s, fx_div(s, above, width), GRAFT_I64);
  part =
      either(s, fx_ge_Scalar(s, part, graft_scalar_int(bins)), fx_number(graft_scalar_int(bins - 1)), fx_tensor(part));
  part = either(s, inside, fx_tensor(part), number[0]);
  graft_tensor *zeros = fx_full(s, &more, 1, graft_scalar_int(0), self->dtype, c->device);
  graft_tensor *ones = fx_full(s, &self->numel, 1, graft_scalar_int(1), self->dtype, c->device);
  outs[0] = fx_slice_Tensor(s, fx_scatter_add(s, zeros, 0, part, ones), 0, NULL, &bins, 1);
}
