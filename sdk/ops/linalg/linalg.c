/* Linear algebra beyond products. */
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

static graft_status infer_trace(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_trace_self);
  if (self->ndim != 2) return op_refuse(c, ARG_trace_self, "a matrix");
  if (dt_is_float8(self->dtype) || self->dtype == GRAFT_BOOL) return op_refuse(c, ARG_trace_self, "numbers");
  c->compute = dt_is_integral(self->dtype, true) ? GRAFT_I64 : self->dtype;
  op_out(c, OUT, c->compute, 0, NULL);
  return GRAFT_OK;
}

/* The diagonal is a view, so that this is one kernel. */
static void decompose_trace(fx *s, const op_call *c, graft_tensor **outs) {
  outs[OUT] = fx_sum(s, fx_diagonal(s, op_tensor(c, ARG_trace_self), 0, 0, 1), 1, false);
}

static void vjp_trace(op_vjp *v) {
  graft_tensor *self = vjp_arg(v, ARG_trace_self), *g = v->g[OUT];
  graft_tensor *eye = fx_eye_m(v->s, self->sizes[0], self->sizes[1], g->dtype, g->device);
  v->results[ARG_trace_self] = fx_mul(v->s, eye, g);
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_TRACE,
     .roles = "v",
     .infer = infer_trace,
     .decompose = decompose_trace,
     .vjp = vjp_trace,
     .flags = OP_NO_WIDEN},
};
OP_TABLE(linalg, defs)
