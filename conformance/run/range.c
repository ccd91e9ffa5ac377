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

static void cf_consider(const cf_call *call, const cf_spoilt *spoilt, int64_t size, int64_t *least) {
  if (size < *least && cf_refuses(call, spoilt, size)) *least = size;
}

/* The least index that is refused. What an index addresses has the size of a tensor, of a dim of one, of two (an
 * image), or that of a number of the call (num_weights); one more where it addresses what lies between elements. */
static int64_t cf_size_addressed(const cf_call *call, const cf_spoilt *spoilt) {
  int64_t least = INT64_MAX;
  for (uint32_t a = 0; a < call->schema->nargs; a++)
    if (call->args[a].kind == GRAFT_VALUE_INT) cf_consider(call, spoilt, call->args[a].as.i, &least);
  for (uint32_t i = 0; i < call->ntensors; i++) {
    const cf_array *x = &call->in[i];
    for (int32_t d = 0; d < x->ndim; d++) {
      cf_consider(call, spoilt, x->sizes[d], &least);
      if (d > 0) cf_consider(call, spoilt, x->sizes[d - 1] * x->sizes[d], &least);
    }
    cf_consider(call, spoilt, x->numel, &least);
    cf_consider(call, spoilt, x->numel + 1, &least);
  }
  return least;
}

static bool cf_spoil(cf_call *call, cf_result *result, const cf_spoilt *spoilt) {
  int64_t size = cf_size_addressed(call, spoilt);
  long double index = size;
  if (size == INT64_MAX) return cf_fail(result, "the reference refuses no index of %s", spoilt->name);
  if (call->c->mode == CF_RANGE_BELOW) index = cf_refuses(call, spoilt, -1) ? -1 : -(long double)size - 1;
  if (call->c->mode == CF_RANGE_FAR) index = 0x1p32L + (long double)(size > 1);
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

/* One run on the current stream. */
static bool cf_range_run(cf_attempt *s, int run, const cf_spoilt *spoilt) {
  graft_tensor *outs[CF_MAX_TENSORS] = {0};
  if (run) s->zone = 0;
  bool ok = cf_attempt_prepare(s, run, outs) && cf_judge_status(s, cf_attempt_call(s, outs), spoilt) &&
            cf_attempt_collect(s, run, outs);
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
