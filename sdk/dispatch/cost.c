/* What a call costs a device by the way that its tables give: how many launches, and how many bytes these read and
 * write. Nothing runs: decompositions are recorded over shapes. */
#include "dispatch/state.h"

typedef struct counter {
  graft_rt_device *device;
  dsp_cost cost;
} counter;

static uint64_t bytes_of(const graft_tensor *t) {
  return t ? (uint64_t)t->numel * dt_bytes(t->dtype) : 0;
}

static uint64_t bytes_of_values(const graft_value *args, uint32_t nargs) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < nargs; i++) {
    if (args[i].kind == GRAFT_VALUE_TENSOR) bytes += bytes_of(args[i].as.tensor);
    for (uint32_t k = 0; args[i].kind == GRAFT_VALUE_TENSORS && k < args[i].count; k++)
      bytes += bytes_of(args[i].as.tensors[k]);
  }
  return bytes;
}

static uint64_t bytes_of_results(const graft_meta *results, uint32_t count) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (results[i].dtype) bytes += (uint64_t)tns_numel(results[i].ndim, results[i].sizes) * dt_bytes(results[i].dtype);
  }
  return bytes;
}

static graft_status count_parts(counter *c, const op_schema *schema, const graft_value *args, uint32_t nargs);

/* The results of a step that is not run: shapes. */
static graft_status take(void *self, const fx_step *step, graft_tensor **outs, uint32_t nouts) {
  counter *c = self;
  const op_schema *schema = op_schema_of(step->op_id);
  const op_def *def = op_def_of(step->op_id);
  for (uint32_t i = 0; i < nouts && i < step->nresults; i++) {
    const graft_meta *m = &step->results[i];
    if (outs[i] || !m->dtype) continue;
    graft_status status = tns_new(NULL, c->device, m->dtype, m->ndim, m->sizes, m->strides, 0, &outs[i]);
    if (status) return status;
  }
  if (def->host) return GRAFT_OK;
  uint32_t equal;
  if (dsp_static_route(c->device, schema, &equal) == DSP_ROUTE_DECOMPOSITION)
    return count_parts(c, schema, step->args, step->nargs);
  c->cost.launches++;
  c->cost.bytes += bytes_of_values(step->args, step->nargs) + bytes_of_results(step->results, step->nresults);
  return GRAFT_OK;
}

static graft_status count_parts(counter *c, const op_schema *schema, const graft_value *args, uint32_t nargs) {
  const fx_sink sink = {.take = take, .self = c, .described = true};
  arena lists = {0};
  op_call call = {.lists = &lists};
  graft_tensor *results[OP_MAX_OUTS] = {NULL};
  graft_status status = dsp_infer(&call, schema, args, nargs);
  if (!status && op_flat_count(&call) > OP_MAX_OUTS) status = GRAFT_UNIMPLEMENTED; /* a long list of tensors */
  if (!status) {
    fx s;
    fx_begin(&s, &sink);
    dsp_decompose(&s, &call, results, op_flat_count(&call));
    status = fx_end(&s);
  }
  arena_free(&lists);
  return status;
}

graft_status dsp_cost_of(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_rt_device *device,
                         dsp_cost *cost, dsp_cost *one_kernel) {
  counter c = {.device = device};
  arena memory = {0};
  fx_step step = {0};
  graft_status status = dsp_describe(op_id, args, nargs, &memory, &step);
  if (!status) {
    *one_kernel = (dsp_cost){1, bytes_of_values(step.args, step.nargs) + bytes_of_results(step.results, step.nresults)};
    graft_tensor *outs[OP_MAX_OUTS] = {NULL};
    uint32_t nouts = step.nresults < OP_MAX_OUTS ? step.nresults : OP_MAX_OUTS;
    status = take(&c, &step, outs, nouts);
    for (uint32_t i = 0; i < nouts; i++) graft_tensor_release(outs[i]);
  }
  arena_free(&memory);
  *cost = c.cost;
  return status;
}
