/* dispatch/: from a boxed call to a plugin's slot.
 *
 * call.c      graft_call: completes arguments, finds the device, the plan, and tells autograd
 * plan.c      a plan: one call resolved once; the cache of plans by key
 * overlap.c   whether what a call writes lies across its other tensors
 * resolve.c   makes a plan: infer, geometry of operands, capabilities, the way (policy)
 * args.c      the args struct of a plan's slot, but for its tensors
 * run.c       runs a plan: descriptors, temporaries, the slot
 * ways.c      the other ways: decomposition, the reference device; what was counted
 * host_ops.c  views and metadata, done by the host alone
 * bridge.c    graft/bridge.h: storages and borrowed tensors for frameworks with tensors of their own
 *
 * The policy for an op: the plugin's slot; an equal slot (aten to prims); the decomposition; the reference kernel in
 * host memory; an error. Internal to libgraft. */
#ifndef GRAFT_SDK_DISPATCH_H
#define GRAFT_SDK_DISPATCH_H

#include "graft/autograd.h"
#include "ops/core/op.h"

typedef enum dsp_route {
  DSP_ROUTE_NONE,
  DSP_ROUTE_PLUGIN,
  DSP_ROUTE_EQUAL,
  DSP_ROUTE_DECOMPOSITION,
  DSP_ROUTE_REFERENCE,
  DSP_ROUTE_HOST
} dsp_route;

/* The way that this thread's latest outermost graft_call took. */
dsp_route dsp_last_route(void);
const char *dsp_route_name(dsp_route route);

/* Which way a device would go for an op, judged by its tables alone: for `graft ops`. *equal receives the id of the
 * equal slot. */
dsp_route dsp_static_route(graft_rt_device *device, const op_schema *schema, uint32_t *equal);

/* What leaves the device: allowed, allowed with one warning an op, or an error. From GRAFT_FALLBACK. */
typedef enum dsp_fallback { DSP_FALLBACK_ALLOW, DSP_FALLBACK_WARN, DSP_FALLBACK_ERROR } dsp_fallback;
dsp_fallback dsp_fallback_policy(void);

/* How many times a call of the hot path had to allocate memory of the host; see tests. */
uint64_t dsp_malloc_count(void);

/* Exec flags of this thread: GRAFT_EXEC_DETERMINISTIC and hints. */
void dsp_set_exec_flags(graft_exec_flags flags);
graft_exec_flags dsp_exec_flags(void);

#endif
