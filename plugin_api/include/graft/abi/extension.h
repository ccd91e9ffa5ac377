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

#define GRAFT_EXTENSION_GRAPH         "graft.graph" /* compile a graph of ops to one executable; no version yet */
#define GRAFT_EXTENSION_COLLECTIVE    "graft.collective" /* all-reduce and friends; no version yet */
#define GRAFT_EXTENSION_PROFILER      "graft.profiler"   /* times of what ran on the device; no version yet */
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

#ifdef __cplusplus
}
#endif

#endif
