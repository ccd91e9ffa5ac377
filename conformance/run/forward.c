/* A forward case: builds its inputs between red zones, runs the op on the backend with poisoned outputs, runs the
 * oracle, compares. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/judge/tolerance.h"
#include "conformance/run/call.h"
#include "conformance/run/dump.h"
#include "conformance/run/guard.h"
#include "conformance/run/oracle.h"
#include "conformance/run/run.h"
#include "dispatch/dispatch.h"

/* ---- the backend's side ---- */

typedef struct cf_run_state {
  const cf_backend *backend;
  cf_call *call;
  cf_result *result;
  uint32_t nouts;
  bool guarded; /* outputs are ours: the out form */
  graft_meta metas[CF_MAX_TENSORS];
  cf_guarded in[CF_MAX_TENSORS], out[2][CF_MAX_TENSORS];
  unsigned char *after[2][CF_MAX_TENSORS];
  cf_array results[3][CF_MAX_TENSORS], mutated[CF_MAX_TENSORS];
  uint64_t draws; /* how far the generator moved */
} cf_run_state;

/* Not at offset 0, so that a plugin which forgets the offset is seen. */
static void cf_seed_generator(graft_rt_device *device, const cf_call *call) {
  graft_generator_set_state(graft_generator_default(device), UINT64_C(0x243F6A8885A308D3) ^ call->c->variant, 40);
}

static bool cf_build_inputs(cf_run_state *s) {
  for (uint32_t i = 0; i < s->call->ntensors; i++) {
    graft_status status = cf_guard_input(s->backend->device, &s->call->specs[i], &s->call->in[i], &s->in[i]);
    if (status == GRAFT_OK) continue;
    cf_fail(s->result, "input %u cannot be made: %s", i, graft_last_error());
    return false;
  }
  return true;
}

static void cf_free_inputs(cf_run_state *s) {
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) cf_guard_free(&s->in[i]);
}

static void cf_device_args(cf_run_state *s, graft_value *args, graft_tensor **items) {
  graft_tensor *tensors[CF_MAX_TENSORS];
  for (uint32_t i = 0; i < s->call->ntensors; i++) tensors[i] = s->in[i].view;
  cf_call_args(s->call, s->backend->device, tensors, args, items);
}

/* Shapes of the outputs; whether they can be given (the out form) or come from the op. */
static bool cf_plan_outputs(cf_run_state *s) {
  const op_schema *schema = s->call->schema;
  graft_value args[OP_MAX_ARGS];
  graft_tensor *items[CF_MAX_TENSORS];
  uint32_t count = 0;
  s->nouts = cf_call_outs(s->call);
  if (s->nouts > CF_MAX_TENSORS) return cf_fail(s->result, "more than %d outputs", CF_MAX_TENSORS);
  s->guarded = schema->route == OPROUTE_SLOT && !(schema->flags & OPF_DYNAMIC);
  for (uint32_t r = 0; r < schema->nrets; r++) s->guarded &= !(schema->rets[r].flags & (OPR_ALIASED | OPR_DYNAMIC));
  if (!s->guarded) return true;
  cf_device_args(s, args, items);
  graft_status status = graft_infer(schema->id, args, schema->nargs, s->metas, CF_MAX_TENSORS, &count);
  if (!cf_succeeded(s->result, status, "infer")) return false;
  if (count != s->nouts) s->guarded = false; /* an output mask, say: the host knows better which are there */
  return true;
}

static bool cf_in_place_fits(const cf_run_state *s) {
  const graft_meta *m = &s->metas[0];
  const txt_tensor *t = &s->call->specs[0];
  return s->nouts == 1 && m->dtype == t->dtype && m->ndim == t->ndim &&
         memcmp(m->sizes, t->sizes, (size_t)m->ndim * sizeof *m->sizes) == 0;
}

static bool cf_build_outputs(cf_run_state *s, int run, graft_tensor **outs) {
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
    if (cf_guard_output(s->backend->device, &s->metas[i], gaps, run, g) != GRAFT_OK)
      return cf_fail(s->result, "output %u cannot be made: %s", i, graft_last_error());
    outs[i] = g->view;
  }
  return true;
}

/* After the call: zones, gaps and inputs as they were; the elements as arrays. */
static bool cf_check_guards(cf_run_state *s, int run) {
  char problem[160];
  bool in_place = s->call->c->layout == CF_IN_PLACE;
  for (uint32_t i = 0; i < s->call->ntensors; i++) {
    bool may = cf_call_mutates(s->call, i) || (in_place && i == 0);
    unsigned char *after = NULL;
    if (!cf_guard_check(&s->in[i], may, &after, problem, sizeof problem))
      return cf_fail(s->result, "input %u (%s) %s", i, s->call->schema->args[s->call->spec_arg[i]].name, problem);
    cf_array *to = in_place && i == 0 ? &s->results[run][0] : &s->mutated[i];
    if (may && !to->v) cf_guard_values(&s->in[i], after, to);
    free(after);
  }
  for (uint32_t i = 0; s->guarded && !in_place && i < s->nouts; i++) {
    unsigned char **after = &s->after[run & 1][i];
    if (!s->out[run & 1][i].view) continue;
    free(*after), *after = NULL;
    if (!cf_guard_check(&s->out[run & 1][i], true, after, problem, sizeof problem))
      return cf_fail(s->result, "output %u %s", i, problem);
    cf_guard_values(&s->out[run & 1][i], *after, &s->results[run][i]);
  }
  return true;
}

/* Results that the op made itself. A view shares the input's storage. */
static bool cf_take_results(cf_run_state *s, int run, graft_tensor **outs) {
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

static bool cf_run_once(cf_run_state *s, int run) {
  graft_value args[OP_MAX_ARGS];
  graft_tensor *items[CF_MAX_TENSORS], *outs[CF_MAX_TENSORS] = {0};
  graft_rt_device *device = s->backend->device;
  bool again = run > 0;
  if (again) cf_free_inputs(s);
  if (again && !cf_build_inputs(s)) return false;
  for (uint32_t i = 0; run == 2 && i < s->nouts; i++) cf_guard_free(&s->out[0][i]);
  if (!cf_build_outputs(s, run, outs)) return false;
  cf_device_args(s, args, items);
  cf_seed_generator(device, s->call);
  uint64_t before = cf_fallback_total(), seed, offset;
  dsp_set_exec_flags(s->call->c->layout == CF_DETERMINISTIC ? GRAFT_EXEC_DETERMINISTIC : 0);
  graft_status status = graft_call(s->call->schema->id, args, s->call->schema->nargs, outs, s->nouts);
  dsp_route route = dsp_last_route();
  dsp_set_exec_flags(0);
  if (status == GRAFT_OK) status = graft_device_synchronize(device);
  s->result->route = (uint8_t)route;
  s->result->fallback |= cf_fallback_total() > before;
  graft_generator_state(graft_generator_default(device), &seed, &offset);
  s->draws = offset - 40;
  bool ok = cf_succeeded(s->result, status, "");
  if (ok && !s->guarded) ok = cf_take_results(s, run, outs);
  for (uint32_t i = 0; !s->guarded && i < s->nouts; i++) graft_tensor_release(outs[i]);
  return ok && cf_check_guards(s, run);
}

static bool cf_check_unwritten(cf_run_state *s) {
  for (uint32_t i = 0; i < s->nouts && s->guarded; i++) {
    if (!s->after[0][i] || !s->after[1][i]) continue;
    int64_t at = cf_guard_unwritten(&s->out[0][i], s->after[0][i], &s->out[1][i], s->after[1][i]);
    if (at >= 0) return cf_fail(s->result, "output %u: element %lld was not written", i, (long long)at);
  }
  return true;
}

static bool cf_check_identical(cf_run_state *s, int runs) {
  for (int run = 1; run < runs; run++)
    for (uint32_t i = 0; i < s->nouts; i++) {
      const cf_array *a = &s->results[0][i], *b = &s->results[run][i];
      for (int64_t k = 0; k < a->numel && k < b->numel; k++) {
        bool same = a->v[k].re == b->v[k].re || (isnan(a->v[k].re) && isnan(b->v[k].re));
        if (!same)
          return cf_fail(s->result,
                         "output %u: element %lld differs from run to run (%.9Lg, %.9Lg), although "
                         "determinism was asked for",
                         i, (long long)k, a->v[k].re, b->v[k].re);
      }
    }
  return true;
}

/* ---- against the oracle ---- */

typedef struct cf_truth {
  cf_array outs[CF_MAX_TENSORS], mutated[CF_MAX_TENSORS], absolute[CF_MAX_TENSORS], ones[CF_MAX_TENSORS];
  bool has_absolute, has_ones;
} cf_truth;

static void cf_truth_free(cf_truth *t) {
  cf_array *all[] = {t->outs, t->mutated, t->absolute, t->ones};
  for (size_t k = 0; k < 4; k++)
    for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) cf_array_free(&all[k][i]);
}

static bool cf_ask_oracle(cf_run_state *s, cf_truth *t) {
  const cf_call *call = s->call;
  const cf_rule *rule = &call->op->rule;
  cf_seed_generator(graft_device_reference(), call);
  bool floating = false;
  for (uint32_t i = 0; i < s->nouts; i++) floating |= cf_mantissa(s->results[0][i].dtype) > 0;
  bool integers = floating && dt_is_integral(call->c->dtype, false);
  graft_status status = cf_oracle_run(call, CF_AS_IS, integers, s->nouts, t->outs, t->mutated);
  if (status != GRAFT_OK) return cf_fail(s->result, "the oracle cannot compute it: %s", graft_last_error());
  uint64_t seed, offset;
  graft_generator_state(graft_generator_default(graft_device_reference()), &seed, &offset);
  if (offset - 40 != s->draws)
    return cf_fail(s->result, "drew %llu random words, not %llu", (unsigned long long)s->draws,
                   (unsigned long long)(offset - 40));
  if (cf_rule_needs_absolute(rule) && floating) {
    status = cf_oracle_run(call, CF_ABSOLUTE, integers, s->nouts, t->absolute, NULL);
    t->has_absolute = true;
  }
  if (status == GRAFT_OK && rule->klass == CF_SUM && rule->terms == CF_TERMS_ONES && floating) {
    status = cf_oracle_run(call, CF_ONES, integers, s->nouts, t->ones, NULL);
    t->has_ones = true;
  }
  if (status != GRAFT_OK) cf_fail(s->result, "the oracle cannot compute the limits: %s", graft_last_error());
  return status == GRAFT_OK;
}

static void cf_dump_output(cf_run_state *s, const cf_truth *t, uint32_t i, const long double *limits) {
  const char *folder = s->backend->dump;
  cf_array limit;
  if (!folder || !cf_array_new(&limit, GRAFT_F64, t->outs[i].ndim, t->outs[i].sizes)) return;
  for (int64_t k = 0; k < limit.numel; k++) limit.v[k] = (dt_value){limits[k], 0};
  cf_dump(folder, "output", i, &s->results[0][i]);
  cf_dump(folder, "oracle", i, &t->outs[i]);
  cf_dump(folder, "limit", i, &limit);
  cf_array_free(&limit);
}

static void cf_compare_output(cf_run_state *s, const cf_check *check, const cf_truth *t, uint32_t i, int runs,
                              cf_verdict *v) {
  const cf_op *op = s->call->op;
  graft_dtype dtype = check->dtypes[i];
  char what[24];
  snprintf(what, sizeof what, s->nouts > 1 ? "output %u" : "result", i);
  long double *limits = calloc((size_t)t->outs[i].numel + 1, sizeof *limits);
  if (!limits) return;
  bool permuted = op->rule.klass == CF_PERMUTED;
  cf_comparison how = {.limits = limits,
                       .exact = cf_is_exact(s->call, dtype),
                       .any_zero = op->flags & CF_ANY_ZERO,
                       .flushes = s->backend->flushes,
                       .what = what};
  cf_limits(check, i, limits);
  cf_dump_output(s, t, i, limits);
  for (int run = 0; run < runs && v->ok; run++) {
    if (permuted && i == 1)
      cf_check_permutation(s->call, &s->results[run][0], &s->results[run][1], v);
    else
      cf_compare(&s->results[run][i], &t->outs[i], &how, v);
  }
  free(limits);
}

/* What the op wrote into its inputs is held to the last outputs' rule with an output number of its own. */
static void cf_compare_mutated(cf_run_state *s, const cf_truth *t, cf_verdict *v) {
  for (uint32_t i = 0; i < s->call->ntensors && v->ok; i++) {
    const cf_array *r = &s->mutated[i], *o = &t->mutated[i];
    if (!r->v || !o->v) continue;
    long double *limits = calloc((size_t)o->numel + 1, sizeof *limits);
    const char *name = s->call->schema->args[s->call->spec_arg[i]].name;
    cf_check check = {.call = s->call, .in = s->call->in, .nouts = s->nouts, .outs = t->outs};
    graft_dtype dtypes[CF_MAX_TENSORS];
    for (uint32_t k = 0; k < s->nouts; k++) dtypes[k] = s->results[0][k].dtype;
    check.dtypes = dtypes;
    if (limits && s->call->op->rule.klass == CF_CUSTOM) s->call->op->rule.limit(&check, CF_MAX_TENSORS + i, limits);
    cf_comparison how = {.limits = limits,
                         .exact = s->call->op->rule.klass != CF_CUSTOM,
                         .any_zero = true,
                         .flushes = s->backend->flushes,
                         .what = name};
    if (limits) cf_compare(r, o, &how, v);
    free(limits);
  }
}

static void cf_judge(cf_run_state *s, int runs) {
  cf_truth *t = calloc(1, sizeof *t);
  if (!t) {
    cf_fail(s->result, "no memory for the oracle");
    return;
  }
  if (cf_ask_oracle(s, t)) {
    cf_verdict v = {.ok = true};
    graft_dtype dtypes[CF_MAX_TENSORS];
    for (uint32_t i = 0; i < s->nouts; i++) dtypes[i] = s->results[0][i].dtype;
    cf_check check = {.call = s->call,
                      .in = s->call->in,
                      .nouts = s->nouts,
                      .outs = t->outs,
                      .dtypes = dtypes,
                      .absolute = t->has_absolute ? t->absolute : NULL,
                      .ones = t->has_ones ? t->ones : NULL};
    for (uint32_t i = 0; i < s->nouts && v.ok; i++) {
      if (!s->results[0][i].v && !t->outs[i].v) continue; /* an output that the call does not produce */
      if (!s->results[0][i].v || !t->outs[i].v) {
        cf_fail(s->result, "output %u is there on one side only", i), v.ok = false;
        break;
      }
      cf_compare_output(s, &check, t, i, runs, &v);
    }
    if (v.ok) cf_compare_mutated(s, t, &v);
    if (s->result->outcome == CF_PASS) s->result->ratio = v.ratio, s->result->error = v.error;
    if (!v.ok && s->result->outcome == CF_PASS) cf_fail(s->result, "%s", v.text), s->result->ratio = v.ratio;
  }
  cf_truth_free(t);
  free(t);
}

void cf_run_forward(const cf_backend *backend, cf_call *call, cf_result *result) {
  cf_run_state *s = calloc(1, sizeof *s);
  if (!s) {
    cf_fail(result, "no memory for the case");
    return;
  }
  *s = (cf_run_state){.backend = backend, .call = call, .result = result};
  int runs = call->c->layout == CF_DETERMINISTIC ? 3 : 2;
  bool ok = cf_build_inputs(s) && cf_plan_outputs(s);
  for (int run = 0; ok && run < runs; run++) ok = cf_run_once(s, run);
  ok = ok && cf_check_unwritten(s);
  if (ok && call->c->layout == CF_DETERMINISTIC) ok = cf_check_identical(s, runs);
  if (ok) cf_judge(s, runs);
  cf_free_inputs(s);
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) {
    for (int run = 0; run < 2; run++) cf_guard_free(&s->out[run][i]), free(s->after[run][i]);
    for (int run = 0; run < 3; run++) cf_array_free(&s->results[run][i]);
    cf_array_free(&s->mutated[i]);
  }
  free(s);
}
