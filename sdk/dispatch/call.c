/* graft_call: the one way into every op. */
#include <stdlib.h>
#include <string.h>

#include "base/row.h"
#include "dispatch/capture.h"
#include "dispatch/custom.h"
#include "dispatch/state.h"

static _Thread_local dsp_route last_route;
static _Thread_local uint32_t depth;

dsp_route dsp_last_route(void) {
  return last_route;
}

/* --- which op, which device --- */

/* A call as it came, and then as the op that serves it takes it. */
typedef struct asked {
  const op_schema *schema;
  const graft_value *args;
  uint32_t nargs;
  graft_value mapped[OP_MAX_ARGS]; /* room for arguments that are not those given */
} asked;

static graft_status ask(asked *call, uint32_t op_id, const graft_value *args, uint32_t nargs) {
  call->schema = op_schema_of(op_id);
  call->args = args;
  call->nargs = nargs;
  if (!call->schema) return err_set(GRAFT_INVALID_ARGUMENT, "op id %u names no op", op_id);
  graft_status status = dsp_check_count(call->schema, nargs);
  return !status && call->schema->equal ? dsp_check_given(call->schema, args, nargs) : status;
}

/* A prim that equals an aten op is that op: its arguments in the other order, the rest constants. */
static void resolve_equal(asked *call) {
  const op_equal *equal = call->schema->equal;
  if (!equal) return;
  for (uint32_t i = 0; i < equal->count; i++) {
    const op_equal_arg *arg = &equal->args[i];
    const graft_value *from = arg->constant;
    if (arg->source >= 0) {
      bool given = (uint32_t)arg->source < call->nargs;
      from = given ? &call->args[arg->source] : call->schema->args[arg->source].fallback;
    }
    call->mapped[i] = from ? *from : (graft_value){0};
  }
  call->args = call->mapped;
  call->nargs = equal->count;
  call->schema = op_schema_of(equal->op_id);
}

/* --- inference --- */

static graft_meta meta_of(const graft_tensor *t) {
  graft_meta meta = {.dtype = t->dtype, .ndim = t->ndim};
  memcpy(meta.sizes, t->sizes, (size_t)t->ndim * sizeof *t->sizes);
  memcpy(meta.strides, t->strides, (size_t)t->ndim * sizeof *t->strides);
  return meta;
}

/* A view says what it is by being made. */
static graft_status describe_host_op(op_call *call, graft_meta *metas, uint32_t count) {
  graft_tensor **outs = arena_take(call->lists, count * sizeof *outs);
  if (!outs) return op_fail(call, GRAFT_OUT_OF_MEMORY, "no host memory for %u results", count);
  call->device = graft_device_reference();
  if (!call->device) return err_attribute(GRAFT_OUT_OF_MEMORY, call->schema->name);
  call->nouts = count;
  graft_status status = call->def->host(call, outs);
  for (uint32_t i = 0; !status && i < count; i++) {
    metas[i] = meta_of(outs[i]);
    graft_tensor_release(outs[i]);
  }
  return status ? err_attribute(status, call->schema->name) : GRAFT_OK;
}

static graft_status describe(op_call *call, const op_schema *schema, const graft_value *args, uint32_t nargs,
                             fx_step *step) {
  const op_def *def = op_def_of(schema->id);
  bool host = def && def->host;
  graft_status status =
      host ? dsp_complete_planless(call, def, schema, args, nargs) : dsp_infer(call, schema, args, nargs);
  if (status) return status;
  if (!host)
    step->nresults = op_flat_count(call);
  else
    step->nresults = schema->rets[0].kind == OPK_TENSORS ? call->args[1].count : 1;
  step->device = call->device;
  graft_meta *metas = arena_take(call->lists, step->nresults * sizeof *metas);
  if (!metas) return op_fail(call, GRAFT_OUT_OF_MEMORY, "no host memory for %u results", step->nresults);
  step->results = metas;
  if (host)
    status = describe_host_op(call, metas, step->nresults);
  else
    status = op_flat_outputs(call, metas, NULL, step->nresults);
  step->args = arena_copy(call->lists, call->args, schema->nargs * sizeof *call->args);
  step->nargs = schema->nargs;
  return step->args || status ? status : op_fail(call, GRAFT_OUT_OF_MEMORY, "no host memory for its arguments");
}

/* How many tensors an op that has a rule gives. */
static graft_status count_outs(const op_schema *schema, const graft_value *args, uint32_t nargs, uint32_t *count) {
  dsp_room room;
  arena lists = ARENA_IN(room.bytes);
  op_call call = {.lists = &lists};
  graft_status status = dsp_infer(&call, schema, args, nargs);
  if (!status) *count = op_flat_count(&call);
  arena_free(&lists);
  return status;
}

graft_status dsp_describe(uint32_t op_id, const graft_value *args, uint32_t nargs, arena *memory, fx_step *step) {
  asked asks;
  graft_status status = ask(&asks, op_id, args, nargs);
  if (status) return status;
  resolve_equal(&asks);
  step->op_id = asks.schema->id;
  op_call call = {.lists = memory};
  return describe(&call, asks.schema, asks.args, asks.nargs, step);
}

graft_status graft_infer(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_meta *metas, size_t meta_bytes,
                         uint32_t capacity, uint32_t *count) {
  if (nargs && !args) return err_null(__func__, "args");
  if (capacity && !metas) return err_null(__func__, "metas");
  if (!count) return err_null(__func__, "count");
  if (capacity && !meta_bytes) {
    return err_about(GRAFT_INVALID_ARGUMENT, __func__, "meta_bytes is 0; expected sizeof(graft_meta)");
  }
  dsp_room room;
  arena memory = ARENA_IN(room.bytes);
  fx_step step;
  graft_status status = dsp_describe(op_id, args, nargs, &memory, &step);
  if (!status) *count = step.nresults;
  for (uint32_t i = 0; !status && i < capacity && i < step.nresults; i++) {
    row_copy((char *)metas + i * meta_bytes, meta_bytes, &step.results[i], sizeof *step.results);
  }
  arena_free(&memory);
  return status;
}

/* OP_LIKE for another device than its tensor's: one like it stands in. */
static graft_status stand_in(asked *call, graft_tensor **like) {
  graft_rt_device *device = NULL;
  for (uint32_t i = 0; i < call->nargs; i++) {
    if (call->args[i].kind == GRAFT_VALUE_DEVICE) device = call->args[i].as.device;
  }
  const graft_tensor *t = call->nargs && call->args[0].kind == GRAFT_VALUE_TENSOR ? call->args[0].as.tensor : NULL;
  if (!t || !device || t->device == device) return GRAFT_OK;
  graft_status status = graft_tensor_empty_strided(device, t->dtype, t->ndim, t->sizes, t->strides, like);
  if (status) return status;
  if (call->args != call->mapped) memcpy(call->mapped, call->args, call->nargs * sizeof *call->mapped);
  call->mapped[0] = fx_tensor(*like);
  call->args = call->mapped;
  return GRAFT_OK;
}

/* --- running --- */

static graft_status nothing_serves(const dsp_plan *plan, const graft_value *args) {
  op_call call = plan->call;
  memcpy(call.args, args, call.schema->nargs * sizeof *args);
  const dsp_custom *custom = dsp_custom_of(call.schema);
  if (custom)
    return err_about(
        GRAFT_UNIMPLEMENTED, call.schema->name,
        "nothing serves %s on %s: it is an op of the plugin %s, on whose devices its tensors belong; there "
        "its kernel, in host memory its reference function has to take these dtypes",
        op_show_tensors(&call), graft_device_text(plan->device), custom->plugin);
  return err_about(GRAFT_UNIMPLEMENTED, call.schema->name,
                   "nothing serves %s on %s: neither the plugin nor a decomposition nor a reference kernel",
                   op_show_tensors(&call), graft_device_text(plan->device));
}

static bool reads_device(const dsp_plan *plan, const graft_value *args) {
  for (uint32_t i = 0; i < plan->call.schema->nargs; i++) {
    if (args[i].kind == GRAFT_VALUE_TENSOR && args[i].as.tensor->numel) return true;
    if (args[i].kind == GRAFT_VALUE_TENSORS && args[i].count) return true;
  }
  return false;
}

static graft_status run_reference(dsp_plan *plan, const graft_value *args, graft_tensor **outs) {
  dsp_capture *capture = dsp_capture_of(plan->device);
  if (capture) return dsp_capture_refuse(capture, plan->call.schema->name, "it runs in host memory on this device");
  graft_status status = GRAFT_OK;
  if (reads_device(plan, args) || (plan->call.schema->flags & OPF_RANDOM)) status = dsp_allow_fallback(plan, args);
  return status ? status : dsp_run_reference(plan, args, outs);
}

static graft_status run_empty(dsp_plan *plan, graft_tensor **outs) {
  for (uint32_t i = 0; i < plan->nouts; i++) {
    if (outs[i] || !plan->out_wanted[i]) continue;
    graft_status status = dsp_new_output(plan, i, &outs[i]);
    if (status) return status;
  }
  return GRAFT_OK;
}

static graft_status run_route(dsp_plan *plan, dsp_route route, const graft_value *args, graft_tensor **outs) {
  switch (route) {
    case DSP_ROUTE_PLUGIN:
    case DSP_ROUTE_EQUAL: return dsp_run_slot(plan, args, outs);
    case DSP_ROUTE_DECOMPOSITION: return dsp_run_decomposition(plan, args, outs);
    case DSP_ROUTE_REFERENCE: return run_reference(plan, args, outs);
    case DSP_ROUTE_HOST: return run_empty(plan, outs);
    default: return nothing_serves(plan, args);
  }
}

/* Whether UNIMPLEMENTED sends a call on: a slot said so, or a decomposition had a part in a dtype that the device
 * lacks.
 */
static bool has_next(const dsp_plan *plan, dsp_route route) {
  if (route == DSP_ROUTE_PLUGIN || route == DSP_ROUTE_EQUAL) return true;
  return route == DSP_ROUTE_DECOMPOSITION && plan->device->dtypes && dsp_inside.refused;
}

graft_status dsp_run_plan(dsp_plan *plan, const graft_value *args, graft_tensor **outs, dsp_route *taken) {
  dsp_philox_override before = dsp_philox;
  graft_status status;
  for (;;) {
    dsp_route route = (dsp_route)atomic_load_explicit(&plan->route, memory_order_relaxed);
    *taken = route;
    status = run_route(plan, route, args, outs);
    if (status != GRAFT_UNIMPLEMENTED || !has_next(plan, route)) break;
    dsp_next_route(plan, route);
  }
  dsp_philox = before;
  return status;
}

static graft_status record_plan(const dsp_plan *plan, const graft_value *args, graft_tensor **outs) {
  op_call call = plan->call;
  memcpy(call.args, args, call.schema->nargs * sizeof *args);
  const dsp_recorded recorded = {&call, plan->out_metas, plan->out_wanted, plan->nouts, plan->empty};
  return dsp_recording()->take(dsp_recording(), &recorded, outs);
}

static bool any_out(graft_tensor *const *outs, uint32_t nouts) {
  for (uint32_t i = 0; i < nouts; i++) {
    if (outs[i]) return true;
  }
  return false;
}

static graft_status call_slot_op(const op_schema *schema, const op_def *def, const graft_value *args, uint32_t nargs,
                                 graft_tensor **outs, uint32_t nouts, dsp_route *taken) {
  dsp_plan *plan;
  graft_status status = dsp_find_plan(schema, def, args, nargs, outs, nouts, &plan);
  if (status) return status;
  if (plan->lacking && dsp_inside.device == plan->device) {
    dsp_inside.refused = true;
    dsp_plan_release(plan);
    return err_about(GRAFT_UNIMPLEMENTED, schema->name, "the device lacks the dtype");
  }
  graft_value full[OP_MAX_ARGS];
  dsp_full_args(plan, args, nargs, full);
  bool record = dsp_hooks.recording_wanted(full, schema->nargs);
  status = dsp_check_bound(plan, full, args, nargs, depth == 1);
  if (!status && any_out(outs, nouts)) status = dsp_hooks.check_writes(schema, full, schema->nargs, outs, nouts);
  if (!status) status = dsp_recording() ? record_plan(plan, full, outs) : dsp_run_plan(plan, full, outs, taken);
  if (!status && record) status = dsp_hooks.record(schema, plan->call.def, full, schema->nargs, outs, plan->nouts);
  dsp_plan_release(plan);
  return status;
}

static graft_status run_copy_op(op_call *call, const op_schema *schema, graft_tensor **outs) {
  if (dev_forked(call->device)) return dev_forked_error(call->device);
  bool record = dsp_hooks.recording_wanted(call->args, schema->nargs);
  graft_status status = dsp_hooks.check_writes(schema, call->args, schema->nargs, outs, 1);
  if (!status) status = dsp_recording() ? dsp_record_copy(call, outs) : dsp_run_copy(call, outs);
  return !status && record ? dsp_hooks.record(schema, call->def, call->args, schema->nargs, outs, 1) : status;
}

static graft_status run_host_op(op_call *call, const op_schema *schema, graft_tensor **outs, uint32_t nouts) {
  if (any_out(outs, nouts)) return op_error(call, "a view can't be written to a given output");
  call->nouts = nouts;
  graft_status status = call->def->host(call, outs);
  if (status) return err_attribute(status, schema->name); /* the makers of views do not know which op they serve */
  if (!dsp_hooks.recording_wanted(call->args, schema->nargs)) return GRAFT_OK;
  return dsp_hooks.record(schema, call->def, call->args, schema->nargs, outs, nouts);
}

static bool is_planless(const op_def *def) {
  return def && (def->host || def->flags & OP_COPY);
}

static graft_status check_planless(const asked *asks, const op_def *def) {
  dsp_room room;
  arena lists = ARENA_IN(room.bytes);
  op_call call = {.lists = &lists};
  graft_status status = dsp_complete_planless(&call, def, asks->schema, asks->args, asks->nargs);
  arena_free(&lists);
  return status;
}

graft_status graft_prepare(uint32_t op_id, const graft_value *args, uint32_t nargs) {
  if (nargs && !args) return err_null(__func__, "args");
  asked asks;
  graft_status status = ask(&asks, op_id, args, nargs);
  if (status) return status;
  resolve_equal(&asks);
  const op_schema *schema = asks.schema;
  const op_def *def = op_def_of(schema->id);
  if (is_planless(def)) return check_planless(&asks, def); /* there is nothing to compile */
  uint32_t nouts = 0;
  status = count_outs(schema, asks.args, asks.nargs, &nouts);
  graft_tensor **outs = status ? NULL : calloc(nouts + 1, sizeof *outs);
  if (!status && !outs) status = err_about(GRAFT_OUT_OF_MEMORY, schema->name, "no host memory for results");
  dsp_plan *plan = NULL;
  if (!status) status = dsp_find_plan(schema, def, asks.args, asks.nargs, outs, nouts, &plan);
  if (!status) status = dsp_prepare(plan);
  if (plan) dsp_plan_release(plan);
  free(outs);
  return status;
}

/* How many items a list of results has, its op knows. */
static graft_status check_room(const op_schema *schema, uint32_t nouts) {
  bool list = schema->nrets && schema->rets[0].kind == OPK_TENSORS;
  if (list || nouts >= schema->nrets) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT, "%s has %u outputs here, room for %u was given", schema->name, schema->nrets,
                 nouts);
}

/* A copy or a host op: neither has a plan. */
static graft_status call_planless_op(const asked *asks, const op_def *def, graft_tensor **outs, uint32_t nouts) {
  dsp_room room;
  arena lists = ARENA_IN(room.bytes);
  op_call call = {.def = def, .lists = &lists};
  graft_status status = dsp_complete_planless(&call, def, asks->schema, asks->args, asks->nargs);
  if (!status) status = check_room(asks->schema, nouts);
  if (!status) {
    status = def->host ? run_host_op(&call, asks->schema, outs, nouts) : run_copy_op(&call, asks->schema, outs);
  }
  arena_free(&lists);
  return status;
}

static graft_status call_op(asked *asks, graft_tensor **outs, uint32_t nouts, dsp_route *taken) {
  const op_def *def = op_def_of(asks->schema->id);
  uint32_t flags = def ? def->flags : 0;
  bool planless = is_planless(def);
  graft_tensor *like = NULL;
  graft_status status = flags & OP_LIKE ? stand_in(asks, &like) : GRAFT_OK;
  *taken = flags & OP_COPY ? DSP_ROUTE_PLUGIN : DSP_ROUTE_HOST;
  if (!status && planless) status = call_planless_op(asks, def, outs, nouts);
  if (!status && !planless) status = call_slot_op(asks->schema, def, asks->args, asks->nargs, outs, nouts, taken);
  graft_tensor_release(like);
  return status;
}

/* prims::copy_to(a!, b) and atan2.out(…, out!) return the argument that they write. */
static graft_tensor *returned_argument(const op_schema *schema, const graft_value *args, uint32_t nargs) {
  if (!schema->nrets || !(schema->rets[0].flags & OPR_ALIASED)) return NULL;
  for (uint32_t i = 0; i < nargs; i++) {
    if ((schema->args[i].flags & OPA_MUTATED) && args[i].kind == GRAFT_VALUE_TENSOR) return args[i].as.tensor;
  }
  return NULL;
}

graft_status graft_call(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor **outs, uint32_t nouts) {
  if (nargs && !args) return err_null(__func__, "args");
  if (nouts && !outs) return err_null(__func__, "outs");
  dsp_recorder *recorder = dsp_recording();
  if (recorder && recorder->call) return recorder->call(recorder, op_id, args, nargs, outs, nouts);
  asked asks;
  graft_status status = ask(&asks, op_id, args, nargs);
  if (status) return status;
  graft_tensor *returned = nouts && !outs[0] ? returned_argument(asks.schema, args, nargs) : NULL;
  if (returned) outs[0] = returned;
  resolve_equal(&asks);
  dsp_route taken;
  depth++;
  status = call_op(&asks, outs, nouts, &taken);
  depth--;
  if (!depth) last_route = taken;
  if (returned && status) outs[0] = NULL;
  if (returned && !status) graft_tensor_retain(returned);
  return status;
}
