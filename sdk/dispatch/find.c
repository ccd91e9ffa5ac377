/* From the arguments of a call to its plan: found by its key, or made. */
#include <string.h>

#include "dispatch/state.h"

graft_rt_device *dsp_device_of_call(const op_call *call) {
  graft_rt_device *number = NULL; /* a rank-0 tensor in host memory decides only if no other tensor does */
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    const graft_value *v = &call->args[i];
    uint32_t count = v->kind == GRAFT_VALUE_TENSOR ? 1 : v->kind == GRAFT_VALUE_TENSORS ? v->count : 0;
    for (uint32_t j = 0; j < count; j++) {
      const graft_tensor *t = v->kind == GRAFT_VALUE_TENSOR ? v->as.tensor : v->as.tensors[j];
      if (!t) continue;
      if (t->ndim || !t->device->is_reference) return t->device;
      number = t->device;
    }
  }
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    if (call->args[i].kind == GRAFT_VALUE_DEVICE && call->args[i].as.device) return call->args[i].as.device;
  }
  return number ? number : graft_device_reference();
}

static graft_status check_devices(const op_call *call) {
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    const graft_value *v = &call->args[i];
    uint32_t count = v->kind == GRAFT_VALUE_TENSOR ? 1 : v->kind == GRAFT_VALUE_TENSORS ? v->count : 0;
    for (uint32_t j = 0; j < count; j++) {
      const graft_tensor *t = v->kind == GRAFT_VALUE_TENSOR ? v->as.tensor : v->as.tensors[j];
      if (!t || t->device == call->device) continue;
      if (v->kind == GRAFT_VALUE_TENSOR && !t->ndim && t->device->is_reference &&
          op_role(call->schema, call->def, i) == 'b')
        continue;
      return op_error(call, "%s is on %s, but another tensor is on %s; move it there with graft_tensor_to",
                      call->schema->args[i].name, graft_device_text(t->device), graft_device_text(call->device));
    }
  }
  return GRAFT_OK;
}

/* A number takes a tensor's place where it promotes with the others or is compared with them, nowhere else. */
static graft_status check_numbers(const op_call *call) {
  bool promotes = call->def->flags & OP_PROMOTES_NUMBERS, last = call->def->flags & OP_TAKES_NUMBER;
  for (uint32_t i = call->schema->nargs; i-- > 0;) {
    if (call->schema->args[i].kind != OPK_TENSOR) continue;
    char role = op_role(call->schema, call->def, i);
    bool may_be = last || (promotes && (role == 'b' || role == 'c'));
    last = false;
    if (call->args[i].kind != GRAFT_VALUE_SCALAR || may_be) continue;
    return op_error(call, "%s is a number; expected a tensor", call->schema->args[i].name);
  }
  return GRAFT_OK;
}

graft_status dsp_complete_planless(op_call *call, const op_def *def, const op_schema *schema, const graft_value *args,
                                   uint32_t nargs) {
  if (!def->host) return dsp_infer(call, schema, args, nargs);
  graft_status status = dsp_complete(call, schema, args, nargs);
  if (status) return status;
  call->def = def;
  call->device = dsp_device_of_call(call);
  return call->device ? check_numbers(call) : err_attribute(GRAFT_OUT_OF_MEMORY, schema->name);
}

graft_status dsp_infer(op_call *call, const op_schema *schema, const graft_value *args, uint32_t nargs) {
  graft_status status = dsp_complete(call, schema, args, nargs);
  if (status) return status;
  call->def = op_def_of(schema->id);
  if (!call->def || !call->def->infer) {
    return err_about(GRAFT_UNIMPLEMENTED, schema->name, "libgraft has no rule for this op yet");
  }
  memset(call->list_like, -1, sizeof call->list_like);
  call->device = dsp_device_of_call(call);
  if (!call->device) return err_attribute(GRAFT_OUT_OF_MEMORY, schema->name);
  status = check_devices(call);
  if (!status) status = check_numbers(call);
  if (!status) status = call->def->infer(call);
  if (status) return err_attribute(status, schema->name); /* a list's rule asks that of its items' op */
  for (int i = 0; i < schema->nargs; i++) call->args[i] = op_wrapped_number(call, i, call->args[i]);
  return GRAFT_OK;
}

/* Arguments in full, for a plan that was found by its key: the plan's canonical values and this call's tensors. */
void dsp_full_args(const dsp_plan *plan, const graft_value *args, uint32_t nargs, graft_value *full) {
  const uint32_t data = 1u << OPK_TENSOR | 1u << OPK_TENSORS | 1u << OPK_GENERATOR | 1u << OPK_DEVICE;
  const op_schema *schema = plan->call.schema;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    uint8_t kind = schema->args[i].kind;
    if (!(data >> kind & 1)) {
      bool late = plan->late >> i & 1;
      full[i] = plan->call.args[i];
      if (late)
        full[i] =
            op_wrapped_number(&plan->call, (int)i, dsp_complete_number(&schema->args[i], i < nargs ? &args[i] : NULL));
      continue;
    }
    full[i] = i < nargs ? args[i] : (graft_value){0};
    if (kind == OPK_TENSOR && full[i].kind == GRAFT_VALUE_TENSOR && !full[i].as.tensor) full[i] = (graft_value){0};
    if (kind == OPK_TENSOR &&
        (full[i].kind == GRAFT_VALUE_INT || full[i].kind == GRAFT_VALUE_FLOAT || full[i].kind == GRAFT_VALUE_BOOL)) {
      full[i] = (graft_value){GRAFT_VALUE_SCALAR,
                              0,
                              {.scalar = full[i].kind == GRAFT_VALUE_FLOAT ? graft_scalar_float(args[i].as.f)
                                         : full[i].kind == GRAFT_VALUE_INT ? graft_scalar_int(args[i].as.i)
                                                                           : graft_scalar_bool(args[i].as.i != 0)}};
    }
    if (full[i].kind == GRAFT_VALUE_SCALAR) full[i] = op_wrapped_number(&plan->call, (int)i, full[i]);
  }
}

/* The device whose cache holds the plan: a guess from the raw arguments is enough, being the same for equal calls. */
static graft_rt_device *key_device(const graft_value *args, uint32_t nargs) {
  for (uint32_t i = 0; i < nargs; i++) {
    const graft_value *v = &args[i];
    if (v->kind == GRAFT_VALUE_TENSOR && v->as.tensor && (v->as.tensor->ndim || !v->as.tensor->device->is_reference)) {
      return v->as.tensor->device;
    }
    if (v->kind == GRAFT_VALUE_TENSORS) {
      for (uint32_t j = 0; j < v->count; j++) {
        if (v->as.tensors[j]) return v->as.tensors[j]->device;
      }
    }
    if (v->kind == GRAFT_VALUE_DEVICE && v->as.device) return v->as.device;
  }
  return graft_device_reference();
}

/* Tensors of two devices have one key if their shapes agree: such a call must not find the plan of a good one. */
static bool mixed_devices(const graft_value *args, uint32_t nargs, graft_tensor *const *outs, uint32_t nouts,
                          const graft_rt_device *device) {
  for (uint32_t i = 0; i < nouts; i++) {
    if (outs[i] && outs[i]->device != device) return true;
  }
  for (uint32_t i = 0; i < nargs; i++) {
    const graft_value *v = &args[i];
    if (v->kind == GRAFT_VALUE_TENSOR && v->as.tensor && v->as.tensor->device != device &&
        !(v->as.tensor->device->is_reference && !v->as.tensor->ndim)) {
      return true;
    }
    for (uint32_t j = 0; v->kind == GRAFT_VALUE_TENSORS && j < v->count; j++) {
      if (v->as.tensors[j] && v->as.tensors[j]->device != device) return true;
    }
  }
  return false;
}

/* The error of a call whose lists can't even be made a key of; OK: they can. */
static graft_status check_lists(const op_schema *schema, const graft_value *args, uint32_t nargs) {
  uint32_t i = 0;
  while (i < nargs && !dsp_lacks_items(&args[i])) i++;
  if (i == nargs) return GRAFT_OK;
  dsp_room room;
  arena lists = ARENA_IN(room.bytes);
  op_call call = {.lists = &lists};
  graft_status status = dsp_complete(&call, schema, args, nargs);
  arena_free(&lists);
  return status;
}

/* The plan of a call that none was found for. */
static graft_status make_plan(const op_schema *schema, const graft_value *args, uint32_t nargs, graft_tensor **outs,
                              uint32_t nouts, dsp_plan **plan) {
  dsp_room room;
  arena lists = ARENA_IN(room.bytes);
  op_call call = {.lists = &lists};
  graft_status status = dsp_infer(&call, schema, args, nargs);
  if (!status) status = dsp_resolve(&call, outs, nouts, plan);
  arena_free(&lists);
  return status;
}

static graft_status build_key(dsp_key *key, const op_schema *schema, const graft_value *args, uint32_t nargs,
                              graft_tensor **outs, uint32_t nouts, uint64_t late) {
  if (dsp_key_build(key, schema, args, nargs, outs, nouts, late)) return GRAFT_OK;
  return err_about(GRAFT_OUT_OF_MEMORY, schema->name, "no host memory for the key of a call");
}

/* *plan receives NULL where none has this key. */
static graft_status look_up(dsp_key *key, graft_rt_device *device, const op_schema *schema, const graft_value *args,
                            uint32_t nargs, graft_tensor **outs, uint32_t nouts, uint64_t late, dsp_plan **plan) {
  graft_status status = build_key(key, schema, args, nargs, outs, nouts, late);
  *plan = status ? NULL : dsp_plan_find(device, key);
  return status;
}

/* Which equal prim serves an op may depend on its numbers. */
static bool way_ignores_numbers(const dsp_plan *plan, const op_schema *schema) {
  int route = atomic_load(&plan->route);
  if (route == DSP_ROUTE_PLUGIN || route == DSP_ROUTE_HOST) return true;
  return route != DSP_ROUTE_EQUAL && !dsp_offers_prim(plan->device, schema);
}

graft_status dsp_find_plan(const op_schema *schema, const op_def *def, const graft_value *args, uint32_t nargs,
                           graft_tensor **outs, uint32_t nouts, dsp_plan **plan) {
  graft_status status = check_lists(schema, args, nargs);
  if (status) return status;
  graft_rt_device *device = key_device(args, nargs);
  if (!device) return err_attribute(GRAFT_OUT_OF_MEMORY, schema->name);
  if (dev_forked(device)) return dev_forked_error(device);
  /* Neither is in the key. */
  if (mixed_devices(args, nargs, outs, nouts, device) ||
      dsp_written_overlap(schema, args, nargs, outs, nouts) != TNS_OVERLAP_NONE) {
    return make_plan(schema, args, nargs, outs, nouts, plan);
  }
  dsp_key key;
  uint64_t late = dsp_late_numbers(device, schema, def);
  status = look_up(&key, device, schema, args, nargs, outs, nouts, late, plan);
  if (!status && !*plan && late) { /* a way that does depend on them */
    dsp_key_free(&key);
    status = look_up(&key, device, schema, args, nargs, outs, nouts, 0, plan);
  }
  dsp_plan *made = NULL;
  if (!status && !*plan) status = make_plan(schema, args, nargs, outs, nouts, &made);
  if (made && late && way_ignores_numbers(made, schema)) {
    made->late = late;
    dsp_key_free(&key);
    status = build_key(&key, schema, args, nargs, outs, nouts, late);
  }
  if (made && status) dsp_plan_free(made);
  if (made && !status) *plan = dsp_plan_insert(device, &key, made);
  dsp_key_free(&key);
  return status;
}
