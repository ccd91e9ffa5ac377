/* One case from beginning to end. */
#ifndef GRAFT_CF_RUN_H
#define GRAFT_CF_RUN_H

#include "conformance/run/result.h"

typedef struct cf_backend {
  graft_rt_device *device;
  bool flushes; /* denormals of f32 may become 0 */
  uint64_t seed;
  const char *dump; /* folder for .npy files; NULL: none */
} cf_backend;

void cf_run(const cf_backend *backend, const cf_case *c, cf_result *result);

/* Its kinds. The result comes as CF_PASS, the call filled. */
void cf_run_forward(const cf_backend *backend, cf_call *call, cf_result *result);
void cf_run_gradient(const cf_backend *backend, cf_call *call, cf_result *result);
void cf_run_adjoint(cf_call *call, cf_result *result);
void cf_run_range(const cf_backend *backend, cf_call *call, cf_result *result);

#endif
