/* libgraft: what ran on a device and when, by the plugin's extension "graft.profiler".
 *
 * Between start and stop the plugin keeps a record of each kernel, copy and fill; drain hands them over, with times on
 * the clock of the host. While no records are kept nothing is spent on it. Thread-safe; one profiler at a time. */
#ifndef GRAFT_PROFILER_H
#define GRAFT_PROFILER_H

#include "graft/abi/extension.h"
#include "graft/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A later libgraft may append fields: struct_size says how far they go. */
typedef struct graft_profile_record {
  size_t struct_size;
  graft_record_kind kind;
  uint32_t op_id;       /* GRAFT_OP_*: the op whose slot submitted it, by which graft_op_name names it; 0: none */
  uint64_t correlation; /* of the thread that submitted it: graft_profiler_correlate */
  uint64_t stream;      /* a number of the stream, not used for another one of the process within 65535 */
  const char *name;     /* the kernel's; valid until `take` returns; "" where the plugin gives none */
  uint64_t bytes;       /* that are copied or filled; 0 for a kernel */
  uint64_t begin_ns;    /* when it began to run and when it was done, on CLOCK_MONOTONIC */
  uint64_t end_ns;
} graft_profile_record;

/* Keeps records of what is submitted to the device from now on, and forgets those that nobody has drained. Errors:
 * UNIMPLEMENTED where the plugin keeps none. */
GRAFT_EXPORT graft_status graft_profiler_start(graft_rt_device *device);

/* Keeps no more; those that are kept can still be drained. */
GRAFT_EXPORT graft_status graft_profiler_stop(graft_rt_device *device);

typedef void (*graft_profile_take_fn)(void *context, const graft_profile_record *record);

/* Calls take for each record of what is done, and forgets it; synchronize the device first to have all. `take` calls
 * nothing of libgraft. *lost receives how many were not kept for want of memory, or have no times. Errors:
 * UNIMPLEMENTED as for start. */
GRAFT_EXPORT graft_status graft_profiler_drain(graft_rt_device *device, graft_profile_take_fn take,
                                               GRAFT_NULLABLE void *context, GRAFT_NULLABLE uint64_t *lost);

/* The number that goes into the records of what this thread submits from now on: its low 48 bits. 0 at first. Returns
 * what it was. */
GRAFT_EXPORT uint64_t graft_profiler_correlate(uint64_t correlation);

#ifdef __cplusplus
}
#endif

#endif
