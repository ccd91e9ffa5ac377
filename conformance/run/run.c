#include "conformance/run/run.h"

#include <string.h>
#include <time.h>

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

static void cf_run_call(const cf_backend *backend, cf_call *call, cf_result *result) {
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

void cf_run(const cf_backend *backend, const cf_case *c, cf_result *result) {
  cf_call call;
  double from = cf_now_ms();
  memset(result, 0, sizeof *result);
  result->c = *c;
  if (!cf_call_open(c, &call)) {
    cf_fail(result, "the row cannot be read: %s", graft_last_error());
    return;
  }
  cf_run_call(backend, &call, result);
  cf_call_close(&call);
  result->milliseconds = cf_now_ms() - from;
}
