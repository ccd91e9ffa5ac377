/* The device's own copy kernel, a hook of tensor/; and the ops that are copies (_to_copy, clone, copy), which all end
 * in tensor/copy.c. */
#include "tensor/copy.h"
#include "dispatch/state.h"

graft_status dsp_find_conversion(graft_tensor *to, graft_tensor *from, dsp_plan **plan, graft_value *full) {
  const op_schema *schema = op_schema_of(GRAFT_OP_TO_COPY);
  graft_value args[2] = {fx_tensor(from), {GRAFT_VALUE_DTYPE, 0, {.dtype = to->dtype}}};
  graft_status status = dsp_find_plan(schema, op_def_of(schema->id), args, 2, &to, 1, plan);
  if (!status) dsp_full_args(*plan, args, 2, full);
  return status;
}

graft_status dsp_copy_kernel(graft_tensor *to, graft_tensor *from) {
  graft_tensor *outs[1] = {to};
  dsp_plan *plan;
  graft_value full[OP_MAX_ARGS];
  graft_status status = dsp_find_conversion(to, from, &plan, full);
  if (status) return status;
  int route = atomic_load(&plan->route);
  status = GRAFT_UNIMPLEMENTED;
  if (route == DSP_ROUTE_HOST) status = GRAFT_OK; /* nothing to copy */
  if (route == DSP_ROUTE_PLUGIN || route == DSP_ROUTE_EQUAL) status = dsp_run_slot(plan, full, outs);
  if (status == GRAFT_UNIMPLEMENTED) {
    atomic_store(&plan->route, (int)DSP_ROUTE_NONE);
    status = dsp_allow_fallback(plan, full); /* the caller goes through host memory */
    if (!status)
      status = GRAFT_UNIMPLEMENTED;
    else
      status = GRAFT_INVALID_ARGUMENT;
  }
  dsp_plan_release(plan);
  return status;
}

dsp_route dsp_copy_route(graft_rt_device *device, uint32_t *equal) {
  op_slot slot;
  graft_op_caps caps;
  if (!dsp_caps(device, op_schema_of(GRAFT_OP_TO_COPY), &slot, &caps)) return DSP_ROUTE_REFERENCE;
  *equal = GRAFT_OP_TO_COPY;
  return DSP_ROUTE_EQUAL;
}

/* The last tensor among the arguments. */
static graft_tensor *source_of(const op_call *call) {
  graft_tensor *from = NULL;
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    if (call->args[i].kind == GRAFT_VALUE_TENSOR) from = call->args[i].as.tensor;
  }
  return from;
}

graft_status dsp_record_copy(const op_call *call, graft_tensor **outs) {
  graft_status status = outs[0] ? tns_check_copy(outs[0], source_of(call)) : GRAFT_OK;
  if (status) return status;
  const dsp_recorded recorded = {call, call->out, NULL, 1, false};
  return dsp_recording()->take(dsp_recording(), &recorded, outs);
}

/* _to_copy(self, dtype, layout, device, …), clone(self, …), copy(self, src, …): infer has said what comes out. */
graft_status dsp_run_copy(const op_call *call, graft_tensor **outs) {
  graft_tensor *from = source_of(call);
  graft_rt_device *device = call->device;
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    if (call->args[i].kind == GRAFT_VALUE_DEVICE && call->args[i].as.device) device = call->args[i].as.device;
  }
  const graft_meta *meta = &call->out[0];
  if (outs[0]) return graft_tensor_copy(outs[0], from);
  graft_tensor *made;
  graft_status status = graft_tensor_empty_strided(device, meta->dtype, meta->ndim, meta->sizes, meta->strides, &made);
  if (status) return status;
  bool grad = graft_grad_mode_set(false);
  status = graft_tensor_copy(made, from);
  graft_grad_mode_set(grad);
  if (status)
    graft_tensor_release(made);
  else
    outs[0] = made;
  return status;
}
