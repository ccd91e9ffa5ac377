/* Cases of an index out of range. The result comes as CF_PASS, the call filled. */
#ifndef GRAFT_CF_RANGE_H
#define GRAFT_CF_RANGE_H

#include "conformance/judge/call.h"
#include "conformance/run/backend.h"
#include "conformance/run/result.h"

void cf_run_range(const cf_backend *backend, cf_call *call, cf_result *result);

#endif
