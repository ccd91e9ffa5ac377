/* What the OpenCL reference backend offers beyond the ABI: extension tables, asked for with
 * graft_plugin.extension(self, GRAFT_OPENCL_STATISTICS, 1, &table). Tests use the statistics to see that programs come
 * from the cache; benchmarks, to keep the time spent in the OpenCL compiler out of their numbers. */
#ifndef GRAFT_OPENCL_H
#define GRAFT_OPENCL_H

#include "graft/abi/base.h"

#define GRAFT_OPENCL_STATISTICS         "opencl.statistics"
#define GRAFT_OPENCL_STATISTICS_VERSION 1

/* Counts since the instance was opened, over all its devices. Zero-filled and sized by the caller. */
typedef struct graft_opencl_statistics {
  size_t struct_size;
  uint64_t programs_built;    /* compiled from source */
  uint64_t programs_loaded;   /* taken from the cache on disk */
  uint64_t build_nanoseconds; /* spent in both */
  uint64_t launches;          /* kernels enqueued */
  /* Of programs_built, those that needed the driver's own header of OpenCL C's functions, on a driver that can do
   * without (kernels/core/declarations.cl): a function is missing there. Callers with a smaller struct_size do not get
   * it. */
  uint64_t programs_with_header;
} graft_opencl_statistics;

typedef struct graft_opencl_statistics_api {
  size_t struct_size;
  graft_status (*query)(void *self, graft_opencl_statistics *statistics); /* thread-safe */
} graft_opencl_statistics_api;

#define GRAFT_OPENCL_PROGRAMS         "opencl.programs"
#define GRAFT_OPENCL_PROGRAMS_VERSION 1

typedef struct graft_opencl_programs_api {
  size_t struct_size;
  /* From now on the instance keeps all that it compiles in the host's cache directory. Otherwise it leaves that to a
   * driver that has a cache of its own and compiles a program once more to give its binary, as PoCL does: the first use
   * of a program then takes half the time, and a later process a few milliseconds more. Thread-safe. */
  graft_status (*keep_all)(void *self);
} graft_opencl_programs_api;

#endif
