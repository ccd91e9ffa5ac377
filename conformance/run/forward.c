/* A forward case: runs the op on the backend, runs the oracle, compares. */
#include "conformance/run/forward.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/judge/tolerance.h"
#include "conformance/run/attempt.h"
#include "conformance/run/condition.h"
#include "conformance/run/dump.h"
#include "conformance/run/oracle.h"

static bool cf_run_once(cf_attempt *s, int run) {
  graft_tensor *outs[CF_MAX_TENSORS] = {0};
  bool ok = cf_attempt_prepare(s, run, outs);
  graft_status status = ok ? cf_attempt_call(s, outs) : GRAFT_OK;
  if (ok && s->absent)
    ok = cf_has_no_way(s->result);
  else
    ok = ok && cf_succeeded(s->result, status, "") && cf_attempt_collect(s, run, outs);
  cf_attempt_release(s, outs);
  return ok;
}

static bool cf_check_unwritten(cf_attempt *s) {
  for (uint32_t i = 0; i < s->nouts && s->guarded; i++) {
    if (!s->after[0][i] || !s->after[1][i]) continue;
    int64_t at = cf_guard_unwritten(&s->out[0][i], s->after[0][i], &s->out[1][i], s->after[1][i]);
    if (at >= 0) return cf_fail(s->result, "output %u: element %lld was not written", i, (long long)at);
  }
  return true;
}

static bool cf_check_identical(cf_attempt *s, int runs) {
  for (int run = 1; run < runs; run++)
    for (uint32_t i = 0; i < s->nouts; i++) {
      const cf_array *a = &s->results[0][i], *b = &s->results[run][i];
      for (int64_t k = 0; k < a->numel && k < b->numel; k++) {
        if (cf_same_value(a->v[k], b->v[k])) continue;
        return cf_fail(s->result,
                       "output %u: element %lld differs from run to run (%.9Lg%+.9Lgj, %.9Lg%+.9Lgj), although "
                       "determinism was asked for",
                       i, (long long)k, a->v[k].re, a->v[k].im, b->v[k].re, b->v[k].im);
      }
    }
  return true;
}

/* ---- against the oracle ---- */

typedef struct cf_truth {
  cf_array outs[CF_MAX_TENSORS], mutated[CF_MAX_TENSORS], absolute[CF_MAX_TENSORS], ones[CF_MAX_TENSORS];
  cf_array moves[CF_MAX_TENSORS];
  bool has_absolute, has_ones;
} cf_truth;

static void cf_truth_free(cf_truth *t) {
  cf_array *all[] = {t->outs, t->mutated, t->absolute, t->ones, t->moves};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) cf_array_free(&all[k][i]);
}

static graft_status cf_probe_oracle(void *context, cf_array *outs) {
  const cf_attempt *s = context;
  return cf_oracle_run(s->call, CF_AS_IS, false, s->nouts, outs, NULL);
}

static bool cf_ask_oracle(cf_attempt *s, cf_truth *t) {
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
  if (offset - CF_PHILOX_OFFSET != s->draws)
    return cf_fail(s->result, "drew %llu random words, not %llu", (unsigned long long)s->draws,
                   (unsigned long long)(offset - CF_PHILOX_OFFSET));
  if (cf_rule_needs_absolute(rule) && floating) {
    status = cf_oracle_run(call, CF_ABSOLUTE, integers, s->nouts, t->absolute, NULL);
    t->has_absolute = true;
  }
  if (status == GRAFT_OK && rule->klass == CF_SUM && rule->terms == CF_TERMS_ONES && floating) {
    status = cf_oracle_run(call, CF_ONES, integers, s->nouts, t->ones, NULL);
    t->has_ones = true;
  }
  if (status == GRAFT_OK && (rule->klass == CF_BACKWARD || rule->klass == CF_PROPERTY) &&
      !cf_condition(s->call, NULL, cf_probe_oracle, s, t->outs, s->nouts, t->moves))
    status = GRAFT_INTERNAL;
  if (status != GRAFT_OK) cf_fail(s->result, "the oracle cannot compute the limits: %s", graft_last_error());
  return status == GRAFT_OK;
}

static void cf_dump_output(cf_attempt *s, const cf_truth *t, uint32_t i, const long double *limits) {
  const char *folder = s->backend->dump;
  cf_array limit;
  if (!folder || !cf_array_new(&limit, GRAFT_F64, t->outs[i].ndim, t->outs[i].sizes)) return;
  for (int64_t k = 0; k < limit.numel; k++) limit.v[k] = (dt_value){limits[k], 0};
  cf_dump(folder, "output", i, &s->results[0][i]);
  cf_dump(folder, "oracle", i, &t->outs[i]);
  cf_dump(folder, "limit", i, &limit);
  cf_array_free(&limit);
}

/* Whether a result is of a half type and something that the call reads of f64, as where it casts. */
static bool cf_narrows_doubles(const cf_call *call, graft_dtype result) {
  bool doubles = false;
  for (uint32_t i = 0; i < call->ntensors; i++) doubles = doubles || dt_real(call->specs[i].dtype) == GRAFT_F64;
  return doubles && (result == GRAFT_F16 || result == GRAFT_BF16);
}

static void cf_compare_output(cf_attempt *s, const cf_check *check, const cf_truth *t, uint32_t i, int runs,
                              cf_verdict *v) {
  const cf_op *op = s->call->op;
  graft_dtype dtype = check->dtypes[i];
  char what[24];
  snprintf(what, sizeof what, s->nouts > 1 ? "output %u" : "result", i);
  long double *limits = calloc((size_t)t->outs[i].numel + 1, sizeof *limits);
  if (!limits) {
    cf_verdict_fail(v, "no memory for the limits");
    return;
  }
  bool permuted = op->rule.klass == CF_PERMUTED;
  cf_comparison how = {.limits = limits,
                       .exact = cf_is_exact(s->call, dtype),
                       .any_zero = op->flags & CF_ANY_ZERO,
                       .flushes = s->backend->flushes,
                       .through_f32 = cf_narrows_doubles(s->call, dtype),
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
static void cf_compare_mutated(cf_attempt *s, const cf_check *check, const cf_truth *t, cf_verdict *v) {
  for (uint32_t i = 0; i < s->call->ntensors && v->ok; i++) {
    const cf_array *r = &s->mutated[i], *o = &t->mutated[i];
    if (!r->v && !o->v) continue;
    long double *limits = calloc((size_t)o->numel + 1, sizeof *limits);
    bool custom = s->call->op->rule.klass == CF_CUSTOM;
    cf_comparison how = {.limits = limits,
                         .exact = !custom,
                         .any_zero = true,
                         .flushes = s->backend->flushes,
                         .what = s->call->schema->args[s->call->spec_arg[i]].name};
    if (limits && custom) s->call->op->rule.limit(check, CF_MAX_TENSORS + i, limits);
    if (limits)
      cf_compare(r, o, &how, v);
    else
      cf_verdict_fail(v, "no memory for the limits");
    free(limits);
  }
}

static void cf_judge(cf_attempt *s, int runs) {
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
                      .ones = t->has_ones ? t->ones : NULL,
                      .moves = t->moves};
    const cf_rule *rule = &s->call->op->rule;
    for (int run = 0; run < runs && v.ok && rule->property; run++) rule->property(&check, s->results[run], &v);
    for (uint32_t i = 0; i < s->nouts && v.ok; i++) {
      if (rule->property && rule->covers >> i & 1) continue;
      if (!s->results[0][i].v && !t->outs[i].v) continue; /* an output that the call does not produce */
      if (!s->results[0][i].v || !t->outs[i].v) {
        cf_fail(s->result, "output %u is there on one side only", i), v.ok = false;
        break;
      }
      cf_compare_output(s, &check, t, i, runs, &v);
    }
    if (v.ok) cf_compare_mutated(s, &check, t, &v);
    if (s->result->outcome == CF_PASS) s->result->ratio = v.ratio, s->result->error = v.error;
    if (!v.ok && s->result->outcome == CF_PASS) cf_fail(s->result, "%s", v.text), s->result->ratio = v.ratio;
  }
  cf_truth_free(t);
  free(t);
}

void cf_run_forward(const cf_backend *backend, cf_call *call, cf_result *result) {
  cf_attempt *s = calloc(1, sizeof *s);
  if (!s) {
    cf_fail(result, "no memory for the case");
    return;
  }
  *s = (cf_attempt){.backend = backend, .call = call, .result = result, .zone = CF_ZONE};
  int runs = call->c->layout == CF_DETERMINISTIC ? 3 : 2;
  bool ok = cf_attempt_begin(s);
  for (int run = 0; ok && run < runs; run++) ok = cf_run_once(s, run);
  ok = ok && cf_check_unwritten(s);
  if (ok && call->c->layout == CF_DETERMINISTIC) ok = cf_check_identical(s, runs);
  if (ok) cf_judge(s, runs);
  cf_attempt_end(s);
  free(s);
}
