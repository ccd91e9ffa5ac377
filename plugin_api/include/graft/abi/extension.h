/* Graft plugin ABI: names and versions of extensions.
 *
 * Growth that is not a field or an op goes through a named extension: a struct with struct_size, asked for by name and
 * least version through the `extension` function of either side. A party that does not know a name, or only lesser
 * versions of it, answers GRAFT_UNIMPLEMENTED and leaves *table alone. Names that begin with "graft." are
 * Graft's; a vendor's begin with its own name and a dot.
 *
 * A table is constant: asked again, the same pointer to the same contents, valid until close (a host's: for as long as
 * the instance). Asking touches no driver, so it may come before any device is opened. A version only appends to the
 * one before. A plugin has one table for all of its devices; a function that one of them can't serve answers
 * GRAFT_UNIMPLEMENTED for it. Functions take the handle they are about; those that are about the whole instance take
 * graft_plugin.self (of a host's table: graft_host.context) first. */
#ifndef GRAFT_ABI_EXTENSION_H
#define GRAFT_ABI_EXTENSION_H

#include "graft/abi/exec.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRAFT_EXTENSION_GRAPH         "graft.graph"      /* compile a graph of ops to one executable; no version yet */
#define GRAFT_EXTENSION_COLLECTIVE    "graft.collective" /* all-reduce and friends; no version yet */
#define GRAFT_EXTENSION_PROFILER      "graft.profiler"   /* times of what ran on the device */
#define GRAFT_EXTENSION_IPC           "graft.ipc"        /* memory shared between processes; no version yet */
#define GRAFT_EXTENSION_NATIVE_HANDLE "graft.native_handle"

/* Version 1 of "graft.native_handle", offered by a plugin: the driver's own objects behind Graft's handles, for code
 * that knows the vendor's API. The handle stays the plugin's. Any pointer may be NULL: not offered. Thread-safe. */
#define GRAFT_NATIVE_HANDLE_VERSION 1
typedef struct graft_native_handle_api {
  size_t struct_size;
  const char *api; /* such as "opencl", "cuda", "level_zero" */
  graft_status (*device)(graft_device *device, void **handle) GRAFT_TABLE_NOEXCEPT;
  graft_status (*stream)(graft_stream *stream, void **handle) GRAFT_TABLE_NOEXCEPT;
  graft_status (*buffer)(graft_buffer *buffer, void **handle) GRAFT_TABLE_NOEXCEPT;
} graft_native_handle_api;

/* Version 1 of "graft.profiler", offered by a plugin: what ran on a device and when. Between start and stop it keeps a
 * record of each kernel, copy and fill that a stream of the device was given there; at other times it spends nothing on
 * this. All functions of the table are there, and thread-safe; the host serialises mark with the calls that name its
 * stream. */
#define GRAFT_PROFILER_VERSION 1

typedef uint32_t graft_record_kind;
enum {
  GRAFT_RECORD_KERNEL = 0,
  GRAFT_RECORD_COPY = 1, /* from buffer to buffer */
  GRAFT_RECORD_COPY_FROM_HOST = 2,
  GRAFT_RECORD_COPY_TO_HOST = 3,
  GRAFT_RECORD_FILL = 4
};

/* One command, or one part of it where the plugin divides a copy or a fill. */
typedef struct graft_profiler_record {
  size_t struct_size;
  graft_record_kind kind; /* one that the host does not know counts as a kernel */
  uint32_t op_id;         /* these two as the stream's latest mark before the command had them */
  uint64_t correlation;
  const char *name;  /* such as the kernel's; UTF-8, lives until `take` returns; NULL: it has none */
  uint64_t bytes;    /* that are copied or filled; 0 for a kernel */
  uint64_t begin_ns; /* when it began to run and when it was done, on the device's clock */
  uint64_t end_ns;
} graft_profiler_record;

typedef struct graft_profiler_api {
  size_t struct_size;
  /* Keeps records of what is submitted from now on, and forgets those that nobody has drained. */
  graft_status (*start)(graft_device *device) GRAFT_TABLE_NOEXCEPT;
  /* Keeps no more; those that are kept can still be drained. OK also where nothing was started. */
  graft_status (*stop)(graft_device *device) GRAFT_TABLE_NOEXCEPT;
  /* Goes into the records of what the stream is given from now on, until the next mark: the op that it is part of
   * (GRAFT_OP_*, 0: none), and a number of the host's. Both are 0 at first. */
  graft_status (*mark)(graft_stream *stream, uint32_t op_id, uint64_t correlation) GRAFT_TABLE_NOEXCEPT;
  /* Hands over, and forgets, the records of all that is done; those of one stream in the order of submission. `take`
   * calls nothing of the plugin. *lost receives how many could not be kept since the latest drain or start. */
  graft_status (*drain)(graft_device *device, void (*take)(void *context, const graft_profiler_record *record),
                        void *context, uint64_t *lost) GRAFT_TABLE_NOEXCEPT;
  /* One moment of this call, as near as the plugin can tell, on the device's clock and on the host's CLOCK_MONOTONIC. A
   * command that is submitted later begins later on the device's clock, too. */
  graft_status (*clock)(graft_device *device, uint64_t *device_ns, uint64_t *host_ns) GRAFT_TABLE_NOEXCEPT;
} graft_profiler_api;

#ifdef __cplusplus
}
#endif

#endif
