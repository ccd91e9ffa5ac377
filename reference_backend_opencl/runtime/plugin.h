/* The instance: what the host holds of this backend, and what is the user's choice. */
#ifndef OCL_PLUGIN_H
#define OCL_PLUGIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "graft/abi/plugin.h"
#include "graft_opencl.h"
#include "runtime/cl.h"
#include "runtime/op.h"

/* One OpenCL device that the selection lets through. */
typedef struct ocl_candidate {
  cl_platform_id platform;
  cl_device_id id;
} ocl_candidate;

typedef struct ocl_counters {
  atomic_uint_fast64_t programs_built, programs_loaded, build_nanoseconds, launches, programs_with_header;
} ocl_counters;

struct ocl_plugin {
  graft_plugin api; /* what the host holds; api.self is this struct */
  const graft_host *host;
  ocl_registry *registry;
  ocl_counters counters;
  atomic_uint_fast64_t compile_nanoseconds; /* of build_nanoseconds, those without what came from disk */
  char *selection;                          /* the user's choice of device, or NULL */
  bool cpu_kernels, gpu_kernels;            /* the user's choice of kernels, whatever the device is */
  bool portable;                            /* none that only one vendor's devices have */
  atomic_bool keeps_all;                    /* what a driver keeps is kept here, too */
  bool unoptimized;                         /* kernels are compiled quickly, and run slowly */
  bool always_optimized;                    /* small calls' as well, the first time */

  pthread_mutex_t lock; /* guards what follows, filled at the first question about devices */
  bool probed;
  graft_status probe_status;
  char *probe_error;
  ocl_candidate *candidates;
  int32_t count;
};

/* Finds the devices once (select.c). Later calls repeat the first answer, its error text included. */
graft_status ocl_probe(ocl_plugin *plugin);

/* Extension "graft.graph": kernels/pointwise/groups.c. */
extern const graft_graph_api ocl_graph_api;

#endif
