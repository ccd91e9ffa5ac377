/* Scans: results that run along a dim. */
#include "ops/families.h"
#include "ops/generated/fx_ops.h"
#include "ops/ref.h"

/* cumsum(self, dim, dtype) */
static graft_status infer_cumsum(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  graft_dtype dtype = op_dtype(c, 2);
  int64_t dim = op_int(c, 1);
  graft_status status = op_wrap_dim(c, &dim, self->ndim);
  if (status) return status;
  if (!dtype) dtype = dt_is_integral(self->dtype, true) ? GRAFT_I64 : self->dtype;
  if (dtype == GRAFT_BOOL) return op_error(c, "dtype is bool; expected a dtype that sums can be counted in");
  if (dt_is_float8(dtype) && self->numel && self->ndim)
    return op_refuse_dtype(c, 0, "a dtype that sums can be counted in");
  c->compute = dtype;
  op_set_int(c, 1, dim);
  op_set_dtype(c, 2, dtype);
  op_out(c, 0, dtype, self->ndim, self->sizes);
  return GRAFT_OK;
}

/* Integers wrap around in 64 bits; the store cuts to the dtype. */
static void scan_integers(ref_real *x, int64_t count, int64_t step) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; i++) {
    ref_real value = x[i * step];
    sum += value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
    x[i * step] = (ref_real)(int64_t)sum;
  }
}

static void scan_reals(graft_dtype dtype, ref_real *x, int64_t count, int64_t step) {
  for (int64_t i = 1; i < count; i++) {
    x[i * step] = ref_sum(dtype, (const ref_real[]){x[(i - 1) * step], x[i * step]}, 1, 2);
  }
}

static graft_status ref_cumsum(const graft_exec *exec, const graft_args_cumsum *a) {
  (void)exec;
  graft_dtype dtype = a->self->dl.dtype;
  ref_array x = ref_read(a->self);
  if (!x.re) return ref_no_memory();
  ref_split s = ref_split_at(a->self, a->dim);
  for (int64_t line = 0; line < s.outer * s.inner; line++) {
    int64_t start = line / s.inner * s.size * s.inner + line % s.inner;
    if (dt_is_integral(dtype, true))
      scan_integers(x.re + start, s.size, s.inner);
    else
      scan_reals(dt_real(dtype), x.re + start, s.size, s.inner);
    if (x.im) scan_reals(dt_real(dtype), x.im + start, s.size, s.inner);
  }
  ref_write(a->out, &x);
  ref_free(&x);
  return GRAFT_OK;
}

/* Each element is in all sums from its own on: the sums of the cotangent from the other end. */
static void vjp_cumsum(op_vjp *v) {
  int64_t dim = v->args[1].as.i;
  graft_tensor *g = v->g[0];
  if (g->ndim) {
    graft_tensor *sums = fx_cumsum(v->s, fx_flip(v->s, g, &dim, 1), dim, g->dtype);
    v->results[0] = fx_flip(v->s, sums, &dim, 1);
  } else {
    v->results[0] = g;
  }
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_CUMSUM, .roles = "v", .infer = infer_cumsum, .vjp = vjp_cumsum, .reference = OP_REF(cumsum)},
};
OP_FAMILY_END(scan, defs)
