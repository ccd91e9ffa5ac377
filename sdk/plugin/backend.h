/* plugin/: discovery, loading and negotiation of plugins.
 *
 * Internal to libgraft. Depends on base/ only. Begin reading in registry.c (what is there), then load.c (one
 * plugin). */
#ifndef GRAFT_SDK_BACKEND_H
#define GRAFT_SDK_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "graft/abi/plugin.h"
#include "graft/runtime.h"

/* Host-side copies of a plugin's tables: as large as this host knows them, missing tail fields NULL, so that the rest
 * of libgraft never asks GRAFT_HAS. */
struct graft_rt_backend {
  char *name;
  char *path; /* of the library, NULL for the built-in one */
  graft_plugin plugin;
  graft_memory_api memory;
  graft_stream_api stream;
  void *core, *prims, *train; /* graft_core_ops and so on, completed with NULLs; NULL where there is no table */
  graft_host host;
  pthread_mutex_t lock; /* guards the three below */
  int32_t device_count; /* -1: not yet asked */
  bool closed;          /* its instance has ended; the handle says so */
  graft_rt_device **devices;
  struct graft_rt_backend *next;
  char *key;                    /* path and options: the same again gives this handle */
  _Atomic(uint32_t) generation; /* of the process that first used the driver (see device/fork.c), 0: not yet used */
  bool is_reference;
};

/* The built-in reference backend, opened at the first call for which there is memory. */
graft_status plg_reference(graft_rt_backend **backend);

/* The backends opened so far, linked by `next`; the list only grows, at its head. */
graft_rt_backend *plg_opened(void);

/* The backend's name and options open another instance from now on. */
void plg_forget(graft_rt_backend *backend);

/* Whether the ABI names it. */
bool plg_status_is_known(graft_status status);
/* Turns a plugin's status into one of ours (unknown positive: INTERNAL) and completes the thread's error text, or gives
 * it a text when the plugin gave none: `who` heads it, `what` says what was being done. */
graft_status plg_status_of(const char *who, graft_status status, const char *what);

#endif
