/* Calls of the suite's cases with tensors that have a shape and no memory: what rules, decompositions and gradients say
 * of them, nothing of which runs. */
#ifndef GRAFT_TESTS_SHAPES_H
#define GRAFT_TESTS_SHAPES_H

#include "bad_input.h"
#include "conformance/run/call.h"
#include "conformance/run/case.h"
#include "device/device.h"
#include "dispatch/plan.h"
#include "suite.h"

static inline graft_tensor *shell(graft_rt_device *device, const graft_meta *m) {
  graft_tensor *t;
  OK(tns_new(NULL, device, m->dtype, m->ndim, m->sizes, m->strides, 0, &t));
  return t;
}

/* A case's call with arguments that have a shape only. */
typedef struct shapes {
  cf_call call;
  graft_value args[OP_MAX_ARGS];
  graft_tensor *in[CF_MAX_TENSORS], *items[CF_MAX_TENSORS];
} shapes;

static inline bool open_shapes(shapes *s, const cf_case *c, graft_rt_device *device) {
  *s = (shapes){0};
  if (!cf_call_open(c, &s->call)) return false;
  for (uint32_t i = 0; i < s->call.ntensors; i++) {
    const txt_tensor *t = &s->call.specs[i];
    OK(tns_new(NULL, device, t->dtype, t->ndim, t->sizes, t->strides, 0, &s->in[i]));
  }
  cf_call_args(&s->call, device, s->in, s->args, s->items);
  return true;
}

static inline void close_shapes(shapes *s) {
  for (uint32_t i = 0; i < s->call.ntensors; i++) graft_tensor_release(s->in[i]);
  cf_call_close(&s->call);
}

/* Arguments that may have a gradient, a bit each. */
static inline uint64_t needs_of(const shapes *s) {
  uint64_t needs = 0;
  for (uint32_t i = 0; i < s->call.ntensors; i++)
    if (dt_is_float(s->in[i]->dtype) || dt_is_complex(s->in[i]->dtype)) needs |= UINT64_C(1) << s->call.spec_arg[i];
  return needs;
}

static inline bool is_differentiable(const graft_meta *m) {
  return dt_is_float(m->dtype) || dt_is_complex(m->dtype);
}

static inline bool has_gradient(const fx_step *step) {
  bool any = false;
  for (uint32_t i = 0; i < step->nresults; i++) any |= is_differentiable(&step->results[i]);
  return any && step->nresults <= CF_MAX_TENSORS && op_def_of(step->op_id)->vjp;
}

#endif
