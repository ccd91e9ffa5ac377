/* The device that is looked at, and how. */
#ifndef GRAFT_CF_BACKEND_H
#define GRAFT_CF_BACKEND_H

#include <stdbool.h>

#include "conformance/run/arithmetics.h"
#include "graft/runtime.h"

typedef struct cf_backend {
  graft_rt_device *device;
  bool flushes; /* denormals of f32 may become 0 */
  uint64_t seed;
  const cf_arithmetics *arithmetics; /* NULL: it has one */
  const char *dump;                  /* folder for .npy files; NULL: none */
} cf_backend;

#endif
