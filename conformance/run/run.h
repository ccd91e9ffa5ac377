/* One case from beginning to end. */
#ifndef GRAFT_CF_RUN_H
#define GRAFT_CF_RUN_H

#include "conformance/run/backend.h"
#include "conformance/run/result.h"

/* Calls forward.h, gradient.h or range.h. */
void cf_run(const cf_backend *backend, const cf_case *c, cf_result *result);

#endif
