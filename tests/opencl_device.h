/* An OpenCL device of a test's own, and how many programs it has made. */
#ifndef GRAFT_TESTS_OPENCL_DEVICE_H
#define GRAFT_TESTS_OPENCL_DEVICE_H

#include "bad_input.h"
#include "reference_backend_opencl/include/graft_opencl.h"
#include "suite.h"

static graft_rt_device *device;

static inline void open_device(void) {
  device = has_opencl() ? device_at(OPENCL, NULL, 0) : NULL;
}

/* Its instance's counts, of which the first `size` bytes are asked for. */
static inline graft_status ask_statistics(size_t size, graft_opencl_statistics *now) {
  const void *table = NULL;
  void *self;
  OK(graft_device_extension(device, GRAFT_OPENCL_STATISTICS, 1, &table, &self));
  now->struct_size = size;
  return ((const graft_opencl_statistics_api *)table)->query(self, now);
}

static inline graft_opencl_statistics statistics(void) {
  graft_opencl_statistics now = {0};
  OK(ask_statistics(sizeof now, &now));
  return now;
}

static inline uint64_t programs(void) {
  const graft_opencl_statistics now = statistics();
  return now.programs_built + now.programs_loaded;
}

#endif
