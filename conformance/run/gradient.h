/* Cases of an op's gradient. The result comes as CF_PASS, the call filled. */
#ifndef GRAFT_CF_GRADIENT_H
#define GRAFT_CF_GRADIENT_H

#include "conformance/judge/call.h"
#include "conformance/run/backend.h"
#include "conformance/run/result.h"

void cf_run_gradient(const cf_backend *backend, cf_call *call, cf_result *result);
/* Of the formula itself, without a backend. */
void cf_run_adjoint(cf_call *call, cf_result *result);

#endif
