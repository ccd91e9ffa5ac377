/* Programs that are kept beside the driver, where it keeps them itself. For that PoCL compiles all kernels of a
 * program, used or not. */
#ifndef GRAFT_TESTS_OPENCL_KEPT_H
#define GRAFT_TESTS_OPENCL_KEPT_H

#include "reference_backend_opencl/include/graft_opencl.h"
#include "suite.h"

static inline void keep_programs(graft_rt_device *device) {
  const void *table;
  void *plugin;
  OK(graft_device_extension(device, GRAFT_OPENCL_PROGRAMS, GRAFT_OPENCL_PROGRAMS_VERSION, &table, &plugin));
  OK(((const graft_opencl_programs_api *)table)->keep_all(plugin));
}

#endif
