/* What an op costs a device, by the first call with elements that the conformance suite has of it. */
#include "cost.h"

#include "conformance/cases/cases.h"
#include "conformance/run/call.h"
#include "conformance/run/menu.h"

static bool has_elements(const cf_call *call) {
  for (uint32_t i = 0; i < call->ntensors; i++)
    if (!tns_numel(call->specs[i].ndim, call->specs[i].sizes)) return false;
  return true;
}

static bool cost_of_call(const cf_call *call, graft_rt_device *device, cli_cost *cost) {
  graft_tensor *tensors[CF_MAX_TENSORS] = {0}, *items[CF_MAX_TENSORS];
  graft_value args[OP_MAX_ARGS];
  graft_status status = has_elements(call) ? GRAFT_OK : GRAFT_UNIMPLEMENTED;
  for (uint32_t i = 0; i < call->ntensors && !status; i++) {
    const txt_tensor *t = &call->specs[i];
    status = tns_new(NULL, device, t->dtype, t->ndim, t->sizes, t->strides, t->offset, &tensors[i]);
  }
  cf_call_args(call, device, tensors, args, items);
  if (!status) {
    status = dsp_cost_of(call->schema->id, args, call->schema->nargs, device, &cost->way, &cost->one_kernel);
  }
  for (uint32_t i = 0; i < call->ntensors; i++) graft_tensor_release(tensors[i]);
  return !status;
}

static bool cost_of_row(cf_case row, const op_schema *schema, graft_rt_device *device, cli_cost *cost) {
  const cf_op *op = cf_case_op(&row);
  graft_dtype dtypes[GRAFT_NUMBER_WIDE];
  if (!cf_op_dtypes(op, dtypes)) return false;
  row.dtype = dtypes[0], row.op_id = schema->id;
  for (uint16_t text = 0; op->texts[text]; text++) {
    cf_call call;
    row.text = text;
    if (!cf_call_open(&row, &call)) continue;
    bool counted = cost_of_call(&call, device, cost);
    cf_call_close(&call);
    if (counted) return true;
  }
  return false;
}

bool cli_cost_of(const op_schema *schema, graft_rt_device *device, cli_cost *cost) {
  uint32_t meaning = schema->equal ? schema->equal->op_id : schema->id;
  for (uint32_t t = 0; t < cf_topic_count; t++) {
    for (uint32_t i = 0; i < cf_topics[t]->count; i++) {
      const op_schema *of = op_schema_find(cf_topics[t]->ops[i].name);
      const cf_case row = {.topic = (uint16_t)t, .op = (uint16_t)i};
      if (of && (of == schema || of->id == meaning) && cost_of_row(row, schema, device, cost)) return true;
    }
  }
  return false;
}
