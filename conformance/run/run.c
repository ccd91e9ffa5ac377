#include "conformance/run/run.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "conformance/run/answers.h"
#include "conformance/run/call.h"
#include "conformance/run/case.h"
#include "conformance/run/dump.h"
#include "conformance/run/fill.h"
#include "conformance/run/forward.h"
#include "conformance/run/gradient.h"
#include "conformance/run/range.h"

static double cf_now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static uint64_t cf_case_seed(const cf_backend *backend, const cf_case *c) {
  char id[CF_ID_BYTES];
  cf_case_id(c, id);
  return cf_hash(id) ^ backend->seed * UINT64_C(0x9E3779B97F4A7C15);
}

static void cf_run_opened(const cf_backend *backend, cf_call *call, cf_result *result) {
  if (!cf_call_fill(call, cf_case_seed(backend, call->c), !backend->flushes)) {
    cf_fail(result, "no memory for the inputs");
    return;
  }
  for (uint32_t i = 0; i < call->ntensors; i++) cf_dump(backend->dump, "input", i, &call->in[i]);
  switch (call->c->mode) {
    case CF_FORWARD:
    case CF_GROUPED: cf_run_forward(backend, call, result); break;
    case CF_ADJOINT: cf_run_adjoint(call, result); break;
    case CF_RANGE_PAST:
    case CF_RANGE_BELOW:
    case CF_RANGE_FAR: cf_run_range(backend, call, result); break;
    default: cf_run_gradient(backend, call, result); break;
  }
}

static void cf_run_call(const cf_backend *backend, const cf_case *c, cf_result *result) {
  cf_call call;
  memset(result, 0, sizeof *result);
  result->c = *c;
  if (!cf_call_open(c, &call)) {
    cf_fail(result, "the row cannot be read: %s", graft_last_error());
    return;
  }
  cf_run_opened(backend, &call, result);
  cf_call_close(&call);
}

static void cf_add_name(cf_result *result, const char *name) {
  const size_t length = strlen(result->text);
  snprintf(result->text + length, sizeof result->text - length, " (%s)", name);
}

/* In each of them, until one is red. */
static void cf_run_arithmetics(const cf_backend *backend, const cf_case *c, cf_result *result) {
  const bool runs_plugin = c->mode != CF_ADJOINT;
  const uint32_t count = runs_plugin ? backend->arithmetics->count : 1;
  cf_answers_begin(count > 1);
  for (uint32_t i = 0; i < count && !cf_is_red(result); i++) {
    const char *name = backend->arithmetics->choose(i);
    cf_run_call(backend, c, result);
    if (cf_is_red(result)) cf_add_name(result, name);
  }
  cf_answers_begin(false);
}

void cf_run(const cf_backend *backend, const cf_case *c, cf_result *result) {
  double from = cf_now_ms();
  memset(result, 0, sizeof *result);
  if (backend->arithmetics)
    cf_run_arithmetics(backend, c, result);
  else
    cf_run_call(backend, c, result);
  result->milliseconds = cf_now_ms() - from;
}
