#include "conformance/run/attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/run/call.h"
#include "conformance/run/grouped.h"
#include "dispatch/dispatch.h"

void cf_seed_generator(graft_rt_device *device, const cf_call *call) {
  graft_generator_set_state(graft_generator_default(device), CF_PHILOX_SEED ^ call->c->variant, CF_PHILOX_OFFSET);
}

static bool cf_build_inputs(cf_attempt *s) {
  for (uint32_t i = 0; i < s->call->ntensors; i++) {
    graft_status status = cf_guard_input(s->backend->device, &s->call->specs[i], &s->call->in[i], s->zone, &s->in[i]);
    if (status == GRAFT_OK) continue;
    cf_fail(s->result, "input %u cannot be made: %s", i, graft_last_error());
    return false;
  }
  return true;
}

static void cf_free_inputs(cf_attempt *s) {
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) cf_guard_free(&s->in[i]);
}

static void cf_device_args(cf_attempt *s, graft_value *args, graft_tensor **items) {
  graft_tensor *tensors[CF_MAX_TENSORS];
  for (uint32_t i = 0; i < s->call->ntensors; i++) tensors[i] = s->in[i].view;
  cf_call_args(s->call, s->backend->device, tensors, args, items);
}

/* Shapes of the outputs; whether they can be given (the out form) or come from the op. */
static bool cf_plan_outputs(cf_attempt *s) {
  const op_schema *schema = s->call->schema;
  graft_value args[OP_MAX_ARGS];
  graft_tensor *items[CF_MAX_TENSORS];
  uint32_t count = 0;
  s->nouts = cf_call_outs(s->call);
  if (s->nouts > CF_MAX_TENSORS) return cf_fail(s->result, "more than %d outputs", CF_MAX_TENSORS);
  s->guarded = schema->route == OPROUTE_SLOT && !(schema->flags & OPF_DYNAMIC) && s->call->c->mode != CF_GROUPED;
  for (uint32_t r = 0; r < schema->nrets; r++) s->guarded &= !(schema->rets[r].flags & (OPR_ALIASED | OPR_DYNAMIC));
  if (!s->guarded) return true;
  cf_device_args(s, args, items);
  graft_status status =
      graft_infer(schema->id, args, schema->nargs, s->metas, sizeof *s->metas, CF_MAX_TENSORS, &count);
  if (!cf_succeeded(s->result, status, "infer")) return false;
  if (count != s->nouts) s->guarded = false; /* an output mask, say: the host knows better which are there */
  return true;
}

static bool cf_in_place_fits(const cf_attempt *s) {
  const graft_meta *m = &s->metas[0];
  const txt_tensor *t = &s->call->specs[0];
  return s->nouts == 1 && m->dtype == t->dtype && m->ndim == t->ndim &&
         memcmp(m->sizes, t->sizes, (size_t)m->ndim * sizeof *m->sizes) == 0;
}

static bool cf_build_outputs(cf_attempt *s, int run, graft_tensor **outs) {
  bool in_place = s->call->c->layout == CF_IN_PLACE;
  if (in_place && !cf_in_place_fits(s)) return cf_fail(s->result, "the row is not fit for in place");
  if (cf_call_returns_input(s->call)) graft_tensor_retain(outs[0] = s->in[0].view);
  for (uint32_t i = 0; s->guarded && i < s->nouts; i++) {
    if (in_place) {
      outs[0] = s->in[0].view;
      return true;
    }
    if (s->metas[i].dtype == GRAFT_DTYPE_NONE) continue; /* not wanted, by an output mask */
    cf_guarded *g = &s->out[run & 1][i];
    bool gaps = s->call->c->layout == CF_OUT;
    if (cf_guard_output(s->backend->device, &s->metas[i], gaps, s->one_poison ? 1 : run, g) != GRAFT_OK)
      return cf_fail(s->result, "output %u cannot be made: %s", i, graft_last_error());
    outs[i] = g->view;
  }
  return true;
}

/* After the call: zones, gaps and inputs as they were; the elements as arrays. */
static bool cf_check_guards(cf_attempt *s, int run) {
  char problem[160];
  if (dsp_zones.broken[0]) return cf_fail(s->result, "%s", dsp_zones.broken);
  bool in_place = s->call->c->layout == CF_IN_PLACE;
  for (uint32_t i = 0; i < s->call->ntensors; i++) {
    bool may = cf_call_mutates(s->call, i) || (in_place && i == 0);
    unsigned char *after = NULL;
    if (!cf_guard_check(&s->in[i], may, &after, problem, sizeof problem))
      return cf_fail(s->result, "input %u (%s) %s", i, s->call->schema->args[s->call->spec_arg[i]].name, problem);
    cf_array *to = in_place && i == 0 ? &s->results[run][0] : &s->mutated[i];
    bool kept = !may || to->v || cf_guard_values(&s->in[i], after, to);
    free(after);
    if (!kept) return cf_fail(s->result, "no memory for what was written into input %u", i);
  }
  for (uint32_t i = 0; s->guarded && !in_place && i < s->nouts; i++) {
    unsigned char **after = &s->after[run & 1][i];
    if (!s->out[run & 1][i].view) continue;
    free(*after), *after = NULL;
    if (!cf_guard_check(&s->out[run & 1][i], true, after, problem, sizeof problem))
      return cf_fail(s->result, "output %u %s", i, problem);
    if (!cf_guard_values(&s->out[run & 1][i], *after, &s->results[run][i]))
      return cf_fail(s->result, "no memory for output %u", i);
  }
  return true;
}

/* Results that the op made itself. A view shares the input's storage. */
static bool cf_take_results(cf_attempt *s, int run, graft_tensor **outs) {
  for (uint32_t i = 0; i < s->nouts; i++) {
    if (!outs[i]) continue;
    bool view = s->call->schema->strides == OPS_VIEW && s->call->ntensors > 0;
    if (view && graft_tensor_storage_id(outs[i]) != graft_tensor_storage_id(s->in[0].view))
      return cf_fail(s->result, "output %u is no view: it has memory of its own", i);
    if (!cf_array_read(&s->results[run][i], outs[i]))
      return cf_fail(s->result, "output %u cannot be read: %s", i, graft_last_error());
  }
  return true;
}

bool cf_attempt_begin(cf_attempt *s) {
  return cf_build_inputs(s) && cf_plan_outputs(s);
}

bool cf_attempt_prepare(cf_attempt *s, int run, graft_tensor **outs) {
  bool again = run > 0;
  s->run = run;
  if (again) cf_free_inputs(s);
  if (again && !cf_build_inputs(s)) return false;
  for (uint32_t i = 0; run == 2 && i < s->nouts; i++) cf_guard_free(&s->out[0][i]);
  return cf_build_outputs(s, run, outs);
}

static graft_exec_flags cf_flags_of(const cf_case *c) {
  return c->layout == CF_DETERMINISTIC ? GRAFT_EXEC_DETERMINISTIC : c->layout == CF_TF32 ? GRAFT_EXEC_ALLOW_TF32 : 0;
}

/* In a graph: joined with its neighbours, or not run at all. */
static graft_status cf_attempt_group(cf_attempt *s, graft_tensor **outs, bool *joined) {
  graft_tensor *inputs[CF_MAX_TENSORS];
  for (uint32_t i = 0; i < s->call->ntensors; i++) inputs[i] = s->in[i].view;
  return cf_grouped_call(s->call, s->backend->device, inputs, outs, s->nouts, joined);
}

graft_status cf_attempt_call(cf_attempt *s, graft_tensor **outs) {
  graft_value args[OP_MAX_ARGS];
  graft_tensor *items[CF_MAX_TENSORS];
  graft_rt_device *device = s->backend->device;
  cf_device_args(s, args, items);
  cf_seed_generator(device, s->call);
  uint64_t before = cf_fallback_total(), seed, offset;
  dsp_forcing = (dsp_forced){device, s->call->schema->id, (dsp_route)s->call->c->way};
  dsp_zones = (dsp_zone_watch){.bytes = cf_zone_bytes(device), .inside = cf_poison_of(s->one_poison ? 0 : s->run)};
  dsp_set_exec_flags(cf_flags_of(s->call->c));
  bool grouped = s->call->c->mode == CF_GROUPED, joined = true;
  graft_status status = grouped ? cf_attempt_group(s, outs, &joined)
                                : graft_call(s->call->schema->id, args, s->call->schema->nargs, outs, s->nouts);
  dsp_route route = grouped ? DSP_ROUTE_PLUGIN : dsp_last_route();
  dsp_set_exec_flags(0);
  dsp_forcing = (dsp_forced){0};
  dsp_zones.bytes = 0;
  if (status == GRAFT_OK) status = graft_device_synchronize(device);
  s->result->route = (uint8_t)route;
  s->absent = (!joined && !status) || (s->call->c->way != DSP_ROUTE_NONE && route != (dsp_route)s->call->c->way);
  s->result->fallback |= cf_fallback_total() > before;
  graft_generator_state(graft_generator_default(device), &seed, &offset);
  s->draws = offset - CF_PHILOX_OFFSET;
  return status;
}

bool cf_attempt_collect(cf_attempt *s, int run, graft_tensor **outs) {
  bool ok = s->guarded || cf_take_results(s, run, outs);
  return ok && cf_check_guards(s, run);
}

void cf_attempt_release(const cf_attempt *s, graft_tensor **outs) {
  for (uint32_t i = 0; !s->guarded && i < s->nouts; i++) graft_tensor_release(outs[i]);
}

void cf_attempt_end(cf_attempt *s) {
  cf_free_inputs(s);
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) {
    for (int run = 0; run < 2; run++) cf_guard_free(&s->out[run][i]), free(s->after[run][i]);
    for (int run = 0; run < 3; run++) cf_array_free(&s->results[run][i]);
    cf_array_free(&s->mutated[i]);
  }
}
