/* What the files of device/ share among themselves. */
#ifndef GRAFT_SDK_DEVICE_INTERNAL_H
#define GRAFT_SDK_DEVICE_INTERNAL_H

#include "base/error.h"
#include "device/device.h"

/* FORKED unless the backend's driver may be used here. Notes the first use. */
graft_status dev_enter(graft_rt_backend *backend);

/* INVALID_ARGUMENT, for a backend that was closed. */
graft_status dev_closed_error(const graft_rt_backend *backend);

/* Called when a plugin or its driver may have registered handlers of exit: those run in reverse, and ours, after which
 * nothing is called any more, must come before them. */
void dev_watch_exit(void);

/* The default stream of a device that is being opened. */
graft_status dev_stream_create_default(graft_rt_device *device);
/* The end of a device, opened as far as it was, and parts of it. */
void dev_free(graft_rt_device *device);
void dev_events_destroy(graft_rt_device *device); /* those kept for later */
void dev_streams_destroy(graft_rt_device *device);

/* dev_status; for STREAM_FAILED and DEVICE_LOST with the plugin's own account of it. `stream` may be NULL. */
graft_status dev_stream_status(graft_rt_device *device, graft_rt_stream *stream, graft_status status, const char *what);
/* Must-understand flags go to a plugin only if it says that it knows them. */
graft_status dev_check_flags(const graft_rt_device *device, const char *what, uint32_t flags, uint32_t known);

#define DEV_DEFAULT_SEED UINT64_C(67280421310721)
void dev_generator_init(graft_generator *generator);

#endif
