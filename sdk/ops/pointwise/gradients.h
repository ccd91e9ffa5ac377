/* How the gradients of pointwise ops are written: names for what a formula reads, and what it is made of. */
#ifndef GRAFT_SDK_POINTWISE_VJP_H
#define GRAFT_SDK_POINTWISE_VJP_H

#include "ops/pointwise/pointwise.h"

#include "ops/generated/fx_ops.h"

#define G   v->g[0]
#define X   vjp_arg(v, 0)
#define Y   vjp_arg(v, 1)
#define OUT v->outs[0]
#define S   v->s
#define SELF \
  if (vjp_needs(v, 0)) v->results[0] =
#define OTHER \
  if (vjp_needs(v, 1)) v->results[1] =
#define THIRD \
  if (vjp_needs(v, 2)) v->results[2] =
#define VJP(name) void pw_vjp_##name(op_vjp *v)

/* A number or the conjugate of a tensor. */
static inline graft_value conj_value(op_vjp *v, int arg) {
  graft_value value = vjp_value(v, arg);
  if (value.kind == GRAFT_VALUE_TENSOR) return fx_tensor(fx_conj(S, value.as.tensor));
  if (value.kind == GRAFT_VALUE_SCALAR && value.as.scalar.dtype == GRAFT_C128) value.as.scalar.value.c[1] *= -1;
  return value;
}

static inline graft_tensor *times(op_vjp *v, graft_tensor *a, graft_value b) {
  return fx_binary(S, GRAFT_OP_MUL_TENSOR, fx_tensor(a), b);
}

static inline graft_tensor *over(op_vjp *v, graft_tensor *a, graft_value b) {
  return fx_binary(S, GRAFT_OP_DIV_TENSOR, fx_tensor(a), b);
}

static inline graft_tensor *compare(op_vjp *v, uint32_t op_id, graft_value a, graft_value b) {
  return fx_binary(S, op_id, a, b);
}

static inline graft_tensor *pick(op_vjp *v, graft_tensor *condition, graft_value a, graft_value b) {
  graft_tensor *out;
  fx_call(S, GRAFT_OP_WHERE_SELF, (graft_value[]){fx_tensor(condition), a, b}, 3, &out, 1);
  return out;
}

static inline graft_value number(double x) {
  return fx_number(graft_scalar_float(x));
}
static inline graft_scalar scalar_arg(op_vjp *v, int arg) {
  return v->args[arg].kind == GRAFT_VALUE_SCALAR ? v->args[arg].as.scalar : graft_scalar_none();
}
/* g * conj(number) */
static inline graft_tensor *scale(op_vjp *v, graft_tensor *g, int arg) {
  return times(v, g, conj_value(v, arg));
}

#endif
