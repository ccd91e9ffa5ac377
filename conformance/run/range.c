/* An index out of range: the call says OUT_OF_RANGE, or the next wait that its stream has failed, and nothing outside a
 * tensor is read or written.
 * Whether a kernel read beside an input is seen by running it twice with other bytes there: its results must not
 * differ. */
#include "conformance/run/range.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/judge/tolerance.h"
#include "conformance/run/attempt.h"
#include "conformance/run/call.h"
#include "conformance/run/case.h"
#include "conformance/run/fill.h"
#include "conformance/run/oracle.h"
#include "dispatch/dispatch.h"

typedef struct cf_spoilt { /* the element that is out of range */
  cf_array *indices;
  int64_t at;
  const char *name; /* of the argument */
} cf_spoilt;

/* ---- which index is out of range ---- */

/* Whether the reference refuses an index there. */
static bool cf_refuses(const cf_call *call, const cf_spoilt *spoilt, long double index) {
  cf_array outs[CF_MAX_TENSORS] = {{0}};
  spoilt->indices->v[spoilt->at].re = index;
  graft_status s = cf_oracle_run(call, CF_AS_IS, false, cf_call_outs(call), outs, NULL);
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) cf_array_free(&outs[i]);
  err_clear();
  return s == GRAFT_OUT_OF_RANGE;
}

/* Where among the items of its list tensor `spec` stands; absent items count. */
static uint32_t cf_item_of(const cf_call *call, uint32_t spec) {
  const graft_value *v = &call->args[call->spec_arg[spec]];
  uint32_t before = 0, item = 0;
  if (v->kind != GRAFT_VALUE_TENSORS) return 0;
  while (before < spec && call->spec_arg[spec - before - 1] == call->spec_arg[spec]) before++;
  for (; item < v->count; item++)
    if (v->as.tensors[item] && before-- == 0) break;
  return item;
}

/* What the op's description says that an index may be. */
static bool cf_range_of(const cf_call *call, uint32_t spec, op_range *range) {
  cf_side side;
  if (cf_oracle_open(call, CF_AS_IS, false, &side) != GRAFT_OK) return false;
  for (uint32_t a = 0; a < call->schema->nargs; a++)
    if (side.args[a].kind == GRAFT_VALUE_NONE && call->schema->args[a].fallback)
      side.args[a] = *call->schema->args[a].fallback;
  bool known = op_index_range(call->schema, side.args, call->spec_arg[spec], cf_item_of(call, spec), range);
  cf_side_close(&side);
  return known;
}

/* Spoils one element. The reference refuses it, too, or one of the two is wrong. */
static bool cf_spoil(cf_call *call, cf_result *result, const cf_spoilt *spoilt) {
  op_range range;
  if (!cf_range_of(call, call->c->variant, &range)) return cf_fail(result, "no range of %s is known", spoilt->name);
  int64_t past = range.high, below = range.low - 1;
  if (!op_in_range(&range, past - 1) && past > range.low)
    return cf_fail(result, "the range of %s is empty", spoilt->name);
  if (range.passes && past == range.passed) past++;
  if (range.passes && below == range.passed) below--;
  long double far = 0x1p32L + (long double)(range.high > 1);
  long double index = call->c->mode == CF_RANGE_PAST ? past : call->c->mode == CF_RANGE_BELOW ? below : far;
  if (!cf_refuses(call, spoilt, index))
    return cf_fail(result, "the reference takes %.0Lf for an index of %s", index, spoilt->name);
  return true;
}

/* ---- what the backend makes of it ---- */

static bool cf_judge_status(const cf_attempt *s, graft_status status, const cf_spoilt *spoilt) {
  if (status == GRAFT_OUT_OF_RANGE || status == GRAFT_STREAM_FAILED) return true;
  /* That it is OUT_OF_RANGE, and not another refusal, is a rule of ABI 1.2. */
  if (status == GRAFT_INVALID_ARGUMENT && s->backend->device->backend->plugin.abi_minor < 2) return true;
  if (status != GRAFT_OK) return cf_succeeded(s->result, status, "expected OUT_OF_RANGE");
  return cf_fail(s->result, "%.0Lf is taken for an index of %s (element %lld)", spoilt->indices->v[spoilt->at].re,
                 spoilt->name, (long long)spoilt->at);
}

/* Several ops that compose one may fail each, and each wait tells one failure. What a stream tells for ever is red
 * below. */
static void cf_wait_out(graft_rt_device *device) {
  enum { FAILURES_MOST = 8 };
  graft_status status = GRAFT_OUT_OF_RANGE;
  for (int i = 0; i < FAILURES_MOST && (status == GRAFT_OUT_OF_RANGE || status == GRAFT_STREAM_FAILED); i++)
    status = graft_device_synchronize(device);
  if (status == GRAFT_OK) err_clear();
}

/* One run on the current stream. */
static bool cf_range_run(cf_attempt *s, int run, const cf_spoilt *spoilt) {
  graft_tensor *outs[CF_MAX_TENSORS] = {0};
  if (run) s->zone = 0;
  bool ok = cf_attempt_prepare(s, run, outs);
  graft_status status = ok ? cf_attempt_call(s, outs) : GRAFT_OK;
  if (ok && s->absent) {
    ok = cf_has_no_way(s->result);
  } else if (ok) {
    ok = cf_judge_status(s, status, spoilt);
    cf_wait_out(s->backend->device);
    ok = ok && cf_attempt_collect(s, run, outs);
  }
  cf_attempt_release(s, outs);
  return ok;
}

/* Zones of NaN in one run, of zeros in the other. Where the order of a sum is free, only NaN tells. What several ops
 * compose goes on with an intermediate result that the failed one left unwritten, so it tells nothing. */
static bool cf_check_unread(cf_attempt *s) {
  if (s->result->route != DSP_ROUTE_PLUGIN && s->result->route != DSP_ROUTE_EQUAL) return true;
  bool ordered = s->call->op->flags & CF_ORDERED;
  for (uint32_t i = 0; i < s->nouts; i++) {
    const cf_array *a = &s->results[0][i], *b = &s->results[1][i];
    for (int64_t k = 0; k < a->numel && k < b->numel; k++) {
      bool same =
          cf_mantissa(a->dtype) && ordered ? isnan(a->v[k].re) == isnan(b->v[k].re) : cf_same_value(a->v[k], b->v[k]);
      if (!same)
        return cf_fail(s->result, "output %u: element %lld was read from outside the tensors", i, (long long)k);
    }
  }
  return true;
}

/* On a stream of its own, which keeps a fault that comes late. */
static void cf_range_attempt(cf_attempt *s, const cf_spoilt *spoilt) {
  graft_rt_device *device = s->backend->device;
  graft_rt_stream *usual = graft_stream_current(device), *stream;
  if (!cf_succeeded(s->result, graft_stream_create(device, 0, 0, &stream), "a stream")) return;
  graft_stream_set_current(stream);
  if (cf_attempt_begin(s) && cf_range_run(s, 0, spoilt) && cf_range_run(s, 1, spoilt)) cf_check_unread(s);
  cf_attempt_end(s);
  graft_stream_set_current(usual);
  graft_stream_destroy(stream);
}

void cf_run_range(const cf_backend *backend, cf_call *call, cf_result *result) {
  char id[CF_ID_BYTES];
  uint32_t spec = call->c->variant;
  cf_spoilt spoilt = {.indices = &call->in[spec], .name = call->schema->args[call->spec_arg[spec]].name};
  cf_case_id(call->c, id);
  spoilt.at = (int64_t)(cf_hash(id) % (uint64_t)spoilt.indices->numel);
  cf_attempt *s = calloc(1, sizeof *s);
  if (!s) {
    cf_fail(result, "no memory for the case");
    return;
  }
  *s = (cf_attempt){.backend = backend, .call = call, .result = result, .zone = CF_ZONE, .one_poison = true};
  if (cf_spoil(call, result, &spoilt)) cf_range_attempt(s, &spoilt);
  free(s);
}
