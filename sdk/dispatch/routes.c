/* Which way a device would go for an op, and what the ways are called. */
#include "dispatch/state.h"
#include "graft/bridge.h"

const char *dsp_route_name(dsp_route route) {
  static const char *const names[] = {"unsupported", "plugin", "equal", "decomposition", "reference", "host"};
  return names[route];
}

dsp_route dsp_static_route(graft_rt_device *device, const op_schema *schema, uint32_t *equal) {
  *equal = 0;
  op_slot slot;
  graft_op_caps caps;
  const op_schema *meaning = schema->equal ? op_schema_of(schema->equal->op_id) : schema;
  if (schema->route == OPROUTE_HOST) return DSP_ROUTE_HOST;
  if (dsp_caps(device, schema, &slot, &caps)) return DSP_ROUTE_PLUGIN;
  if (meaning && meaning != schema && dsp_caps(device, meaning, &slot, &caps)) {
    *equal = meaning->id;
    return DSP_ROUTE_EQUAL;
  }
  for (uint32_t nth = 0; meaning; nth++) {
    const op_schema *prim = dsp_equal_prim(meaning, nth);
    if (!prim) break;
    if (prim == schema || !dsp_caps(device, prim, &slot, &caps)) continue;
    *equal = prim->id;
    return DSP_ROUTE_EQUAL;
  }
  const op_def *def = meaning ? op_def_of(meaning->id) : NULL;
  if (!def) return DSP_ROUTE_NONE;
  if (def->flags & OP_COPY) return dsp_copy_route(device, equal);
  if (def->decompose) return DSP_ROUTE_DECOMPOSITION;
  return def->reference ? DSP_ROUTE_REFERENCE : DSP_ROUTE_NONE;
}

const char *graft_op_route(graft_rt_device *device, uint32_t op_id) {
  if (err_is_null(device, __func__, "device")) return NULL;
  const op_schema *schema = op_schema_of(op_id);
  uint32_t equal;
  if (!schema) return dsp_route_name(DSP_ROUTE_NONE);
  return schema->route == OPROUTE_COMPOSITE ? "composite" : dsp_route_name(dsp_static_route(device, schema, &equal));
}
