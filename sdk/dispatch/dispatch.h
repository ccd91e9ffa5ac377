/* dispatch/: from a boxed call to a plugin's slot.
 *
 * - call.c: graft_call finds the plan, goes its way, and tells autograd; what a call would be, without running it
 * - complete.c: arguments in full: defaults, numbers as the kind they stand for
 * - find.c: from arguments to a plan: key.c names the case, cache.c holds what was made
 * - resolve.c: makes a plan: geometry of operands, capabilities (caps.c), the way (policy), the args struct (args.c)
 * - overlap.c: whether what a call writes lies across its other tensors
 * - run.c: runs a plan's slot: descriptors, temporaries; what it may ask meanwhile is in host_callbacks.c
 * - ways.c: the other ways: decomposition, the reference device; fallback.c counts what leaves the device
 * - groups.c: calls that a plugin compiles together, for graph/ (groups.h)
 * - capture.c, launch.c: what a stream is given as a list of launches, for graph/ (capture.h)
 * - zones.c: red zones around workspaces, for the conformance suite
 * - copy.c: ops that are copies, and the kernel that tensor/copy.c asks for; tensor_ops.c the rest for tensor/
 * - routes.c: which way a device would go, for reports; cost.c: what that way costs
 * - custom.c, custom_adopt.c, custom_rules.c: ops that plugins bring (custom.h)
 * - state.c: what is kept of a device and of a thread
 * - bridge.c: graft/bridge.h, storages and borrowed tensors for frameworks with tensors of their own
 *
 * The policy for an op: the plugin's slot; an equal slot (aten to prims); the decomposition; the reference kernel in
 * host memory; an error. Internal to libgraft. */
#ifndef GRAFT_SDK_DISPATCH_H
#define GRAFT_SDK_DISPATCH_H

#include "graft/autograd.h"
#include "ops/core/op.h"
#include "tensor/recorder.h"

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

/* What a call would cost by that way, and what one kernel would that reads each tensor and writes each result once: for
 * `graft ops --cost`. Parts that go by decompositions of their own are counted by their parts. Tensors need no memory.
 */
typedef struct dsp_cost {
  uint32_t launches;
  uint64_t bytes;
} dsp_cost;
graft_status dsp_cost_of(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_rt_device *device,
                         dsp_cost *cost, dsp_cost *one_kernel);

/* What leaves the device: allowed, allowed with one warning an op, or an error. From GRAFT_FALLBACK. */
typedef enum dsp_fallback { DSP_FALLBACK_ALLOW, DSP_FALLBACK_WARN, DSP_FALLBACK_ERROR } dsp_fallback;
dsp_fallback dsp_fallback_policy(void);

/* The decomposition that this thread is in, for a device that names its dtypes: its parts in other dtypes are refused
 * with UNIMPLEMENTED, which is noted, and the whole then takes its next way. */
typedef struct dsp_decomposing {
  graft_rt_device *device; /* NULL: none, or the device names no dtypes */
  bool refused;
} dsp_decomposing;
extern _Thread_local dsp_decomposing dsp_inside;

/* The way that this thread's calls of one op on one device go, if they can: so that tests and the conformance suite
 * come to ways which a device's slots hide. A call that has no such way goes its own; dsp_last_route tells. The op's
 * calls inside its own decomposition are among them, since a device without the slot would send them the same way. */
typedef struct dsp_forced {
  graft_rt_device *device;
  uint32_t op_id; /* of the aten op, where a prim equals one */
  dsp_route way;  /* DSP_ROUTE_NONE: nothing is forced */
} dsp_forced;
extern _Thread_local dsp_forced dsp_forcing;

/* For the conformance suite: workspaces of this thread's calls lie between zones of so many bytes, 0 for none, and hold
 * nothing but the byte `inside`. What is written into zones, which are all ones, is described in `broken`. */
typedef struct dsp_zone_watch {
  uint64_t bytes;
  unsigned char inside;
  char broken[128];
} dsp_zone_watch;
extern _Thread_local dsp_zone_watch dsp_zones;

/* What stands above dispatch/ and is needed here: autograd, which records calls; wiring.c fills it in. */
typedef struct dsp_hooks_table {
  /* Whether a call would be recorded: grad mode is on, and a tensor among args (lists included) requires grad. Cheap:
   * no lock, no allocation. */
  bool (*recording_wanted)(const graft_value *args, uint32_t nargs);
  /* Before a call writes into given outputs (others are NULL): refuses what would falsify a gradient, with the op's
   * name. */
  graft_status (*check_writes)(const op_schema *schema, const graft_value *args, uint32_t nargs,
                               graft_tensor *const *outs, uint32_t nouts);
  /* Records a call that has run. */
  graft_status (*record)(const op_schema *schema, const op_def *def, const graft_value *args, uint32_t nargs,
                         graft_tensor **outs, uint32_t nouts);
} dsp_hooks_table;
extern const dsp_hooks_table dsp_hooks;

/* What a call would be, without running it: fills in all of *step, of which `memory` has what is pointed to. A hook of
 * ops/; see sink.h. */
graft_status dsp_describe(uint32_t op_id, const graft_value *args, uint32_t nargs, arena *memory, fx_step *step);

/* Emits the decomposition of a call whose rule has been applied: results receives one tensor a flat output, owned by
 * the scope; where a tensor stands there already, the call may be written to it. Half types are widened once before,
 * and the results are then as wide; the caller rounds once. call->lists and call->args are used up. */
void dsp_decompose(fx *s, op_call *call, graft_tensor **results, uint32_t nresults);

/* Where a thread's calls go that are recorded (tensor/recorder.h), after all that is checked before they would run, and
 * before their history is recorded. */
typedef struct dsp_recorded {
  const op_call *call;     /* in full: canonical values, this call's tensors */
  const graft_meta *metas; /* one a flat output */
  const bool *wanted;      /* likewise; NULL: all */
  uint32_t nouts;
  bool nothing_to_run; /* no output has an element */
} dsp_recorded;
typedef struct dsp_recorder {
  tns_recorder base;
  /* outs receive new tensors where NULL and wanted. */
  graft_status (*take)(struct dsp_recorder *self, const dsp_recorded *recorded, graft_tensor **outs);
  /* graft_call as the thread says it, before anything is looked at; NULL: of no interest. */
  graft_status (*call)(struct dsp_recorder *self, uint32_t op_id, const graft_value *args, uint32_t nargs,
                       graft_tensor **outs, uint32_t nouts);
} dsp_recorder;
static inline dsp_recorder *dsp_recording(void) {
  return (dsp_recorder *)(void *)tns_recording;
}

/* What is kept of a device, from when it is opened. */
graft_status dsp_device_create(graft_rt_device *device, dsp_device **state);
/* Ends it, and the memos of its plans. */
void dsp_device_destroy(dsp_device *state);

/* What tensor/ asks of ops; see tns_hooks. */
graft_status dsp_copy_kernel(graft_tensor *to, graft_tensor *from);
graft_status dsp_negate(graft_tensor *tensor);

/* Exec flags of this thread: GRAFT_EXEC_DETERMINISTIC and hints. */
void dsp_set_exec_flags(graft_exec_flags flags);
graft_exec_flags dsp_exec_flags(void);

#endif
