/* Histograms: how many elements lie in each of so many equal parts of an interval, and how often each whole number
 * occurs. */
#include <math.h>

#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"

static graft_status infer_histc(op_call *c) {
  const in_histc in = in_histc_of(c->args);
  int64_t bins = in.bins;
  graft_scalar low = in.min, high = in.max;
  bool whole = dt_is_integral(in.self->dtype, false),
       real = dt_is_float(in.self->dtype) && !dt_is_float8(in.self->dtype);
  if (!whole && !real) return op_refuse(c, ARG_histc_self, "a real dtype other than bool");
  if (bins < 1) return op_error(c, "bins is %lld; expected 1 or more", (long long)bins);
  long double from = dt_scalar_value(&low).re, to = dt_scalar_value(&high).re;
  if (!isfinite((double)from) || !isfinite((double)to))
    return op_error(c, "from %Lg to %Lg is no finite interval", from, to);
  if (from > to) return op_error(c, "min is %Lg, max is %Lg; expected no more", from, to);
  c->compute = in.self->dtype;
  op_out(c, OUT, in.self->dtype, 1, &bins);
  return GRAFT_OK;
}

/* The bounds as rank-0 tensors; equal ones stand for those of the data, and these, where they are equal, for one more
 * on either side. */
static void histogram_bounds(fx *s, const op_call *c, graft_tensor *x, graft_tensor *bound[2]) {
  const in_histc in = in_histc_of(c->args);
  graft_scalar given[2] = {in.min, in.max};
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
    bound[i] = fx_where(s, equal, fx_tensor(beside), fx_tensor(bound[i]));
  }
}

/* What lies in no part is counted in one more, which is cut off. Whole numbers are divided in
 * f64, where quotients of those below 2^53 are cut rightly. */
static void decompose_histc(fx *s, const op_call *c, graft_tensor **outs) {
  const in_histc in = in_histc_of(c->args);
  if (op_ran_wider(s, c, outs)) return;
  graft_tensor *self = in.self, *bound[2];
  int64_t bins = in.bins, more = bins + 1;
  graft_tensor *x = fx_reshape(s, self, 1, &self->numel);
  bool whole = dt_is_integral(self->dtype, false);
  if (whole) x = fx_cast(s, x, GRAFT_F64);
  if (!x) return;
  histogram_bounds(s, c, x, bound);
  graft_tensor *inside = fx_logical_and(s, fx_ge_Tensor(s, x, bound[0]), fx_le_Tensor(s, x, bound[1]));
  const graft_value number[] = {fx_int(bins), fx_int(0)};
  x = fx_where(s, inside, fx_tensor(x), fx_tensor(bound[0]));
  graft_tensor *above = fx_scale(s, fx_sub(s, x, bound[0]), graft_scalar_int(bins)),
               *width = fx_sub(s, bound[1], bound[0]);
  graft_tensor *part = fx_cast(s, fx_div(s, above, width), GRAFT_I64);
  part = fx_where(s, fx_ge_Scalar(s, part, graft_scalar_int(bins)), fx_int(bins - 1), fx_tensor(part));
  part = fx_where(s, inside, fx_tensor(part), number[0]);
  graft_tensor *zeros = fx_full(s, &more, 1, graft_scalar_int(0), self->dtype, c->device);
  graft_tensor *ones = fx_full(s, &self->numel, 1, graft_scalar_int(1), self->dtype, c->device);
  outs[OUT] = fx_slice_Tensor(s, fx_scatter_add(s, zeros, 0, part, ones), 0, NULL, &bins, 1);
}

/* --- bincount: as long as the largest number asks --- */

#define BINS_MOST (INT64_C(1) << 40) /* the result says its size; this is a bound on it */

static graft_status infer_bincount(op_call *c) {
  const in_bincount in = in_bincount_of(c->args);
  const int64_t most = BINS_MOST;
  if (in.self->ndim != 1) return op_refuse(c, ARG_bincount_self, "rank 1");
  if (in.minlength < 0) return op_error(c, "minlength is %lld; expected 0 or more", (long long)in.minlength);
  if (in.minlength > most) return op_error(c, "minlength is %lld; expected less", (long long)in.minlength);
  bool whole = dt_is_integral(in.self->dtype, false);
  if (!whole && in.self->numel) return op_refuse(c, ARG_bincount_self, "integers");
  if (in.weights && !tns_same_sizes(in.weights, in.self))
    return op_error(c, "expected one weight for each element (%s)", op_show_tensors(c));
  graft_dtype dtype = !in.weights || !in.self->numel                                      ? GRAFT_I64
                      : in.weights->dtype == GRAFT_F32 || in.weights->dtype == GRAFT_WIDE ? in.weights->dtype
                                                                                          : GRAFT_F64;
  c->dynamic = true;
  c->compute = in.weights && in.self->numel ? dtype : GRAFT_DTYPE_NONE;
  op_out(c, OUT, dtype, 1, &most);
  return GRAFT_OK;
}

graft_status kernel_bincount(const graft_exec *exec, const graft_args_bincount *a) {
  REF_OWNED ref_array x = ref_read(a->self), weights = ref_read(a->weights);
  if (!x.re || (a->weights && !weights.re)) return ref_no_memory();
  int64_t bins = a->minlength;
  for (int64_t i = 0; i < x.count; i++) {
    if (x.re[i] < 0 || x.re[i] >= (ref_real)BINS_MOST)
      return err_about(GRAFT_INVALID_ARGUMENT, "aten::bincount", "self has the number %.0Lf; expected 0 to 2^40 - 1",
                       x.re[i]);
    if ((int64_t)x.re[i] >= bins) bins = (int64_t)x.re[i] + 1;
  }
  const graft_tensor_desc *out;
  graft_status status = ref_host()->output_shape(exec, a->out, 1, &bins, &out);
  if (status) return status;
  REF_OWNED ref_array y = ref_new(bins, false);
  if (!y.re) return ref_no_memory();
  for (int64_t i = 0; i < x.count; i++)
    ref_add(out->dl.dtype, &y.re[(int64_t)x.re[i]], weights.re && a->weights ? weights.re[i] : 1);
  ref_write(out, &y);
  return GRAFT_OK;
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(bincount), .roles = "kv", .infer = infer_bincount, .flags = OP_NO_WIDEN},
    {.op_id = GRAFT_OP_HISTC, .flags = OP_EXACT_OUT, .roles = "v", .infer = infer_histc, .decompose = decompose_histc},
};
OP_TABLE(reduction_histogram, defs)
