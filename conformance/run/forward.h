/* Cases of an op's results. The result comes as CF_PASS, the call filled. */
#ifndef GRAFT_CF_FORWARD_H
#define GRAFT_CF_FORWARD_H

#include "conformance/judge/call.h"
#include "conformance/run/backend.h"
#include "conformance/run/result.h"

void cf_run_forward(const cf_backend *backend, cf_call *call, cf_result *result);

#endif
