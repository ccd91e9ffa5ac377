/* libgraft: backends, devices, streams and events of the host.
 *
 * A backend is one instance of a plugin. Discovery reads manifests only; the library is opened by
 * graft_backend_open or the first use of one of its devices. The backend "reference" is built in: its device
 * "reference:0" lives in host memory and computes every op that libgraft knows, slowly and carefully.
 *
 * Handles of this header live as long as the process, or until graft_backend_close, and are thread-safe unless a line
 * says otherwise. A stream is used by one thread at a time. Everything that takes a stream is asynchronous unless its
 * name says synchronize. */
#ifndef GRAFT_RUNTIME_H
#define GRAFT_RUNTIME_H

#include "graft/abi/device.h"
#include "graft/abi/stream.h"
#include "graft/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graft_rt_backend graft_rt_backend;
typedef struct graft_rt_device graft_rt_device;
typedef struct graft_rt_stream graft_rt_stream;
typedef struct graft_rt_event graft_rt_event;
typedef struct graft_generator graft_generator;

/* The version of libgraft, "MAJOR.MINOR.PATCH". */
GRAFT_EXPORT const char *graft_version(void);

/* What discovery found: one row a manifest, usable or not. Rows and strings belong to libgraft and stay valid. A later
 * libgraft may append fields: struct_size says how far its rows go. */
typedef struct graft_backend_info {
  size_t struct_size;
  const char *name;
  const char *vendor;
  const char *version;
  const char *manifest; /* path, NULL for the built-in reference backend */
  const char *library;  /* path */
  const char *problem;  /* NULL: usable; else why it is refused and what to do */
} graft_backend_info;

/* Lists what discovery found, sorted by name: *infos receives an array of pointers to rows, *count their number. Reads
 * the manifests on the first call. */
GRAFT_EXPORT graft_status graft_backends(const graft_backend_info *const **infos, size_t *count);

/* Opens a backend by name, or by the path of a library or of a manifest when `name_or_path` holds a slash; opening the
 * same one again gives the same handle. `options` is a NULL-terminated list of "key=value" or NULL. Errors:
 * INCOMPATIBLE, INVALID_ARGUMENT (no such plugin; the text lists those found), or what the plugin says. */
GRAFT_EXPORT graft_status graft_backend_open(const char *name_or_path, GRAFT_NULLABLE const char *const *options,
                                             graft_rt_backend **backend);

/* Ends a backend: waits for its work, destroys what libgraft keeps of it, its streams among it, closes its devices and
 * the instance of the plugin. All its handles are invalid from then on, those of its devices, streams and default
 * generators too; that of the backend itself only says that it was closed. Opening does not count: whoever closes
 * ends the backend for all who opened it. Nobody else may use the backend meanwhile. Its library stays loaded, and
 * opening it again makes a new instance with a new handle. Errors, after which it is open as before: INVALID_ARGUMENT
 * while there is a tensor (also one that history saved), storage, event or pinned block of its devices, and for
 * "reference"; FORKED. INVALID_ARGUMENT, too, where it was closed. (0.x: may still change.) */
GRAFT_EXPORT graft_status graft_backend_close(graft_rt_backend *backend);

GRAFT_EXPORT const char *graft_backend_name(const graft_rt_backend *backend) GRAFT_NULL_GIVES(NULL);

/* How many devices a backend has. Starts its driver. */
GRAFT_EXPORT graft_status graft_backend_device_count(graft_rt_backend *backend, int32_t *count);

/* A device of a backend; opened at the first call. */
GRAFT_EXPORT graft_status graft_backend_device(graft_rt_backend *backend, int32_t index, graft_rt_device **device);

/* A device by text: "opencl", "opencl:1", "reference". */
GRAFT_EXPORT graft_status graft_device_find(const char *text, graft_rt_device **device);

/* The reference device: host memory. NULL, and the reason in graft_last_error, where there is no memory to open it;
 * never once there is a device. */
GRAFT_EXPORT graft_rt_device *graft_device_reference(void);

/* "opencl:0". Valid for ever. */
GRAFT_EXPORT const char *graft_device_text(const graft_rt_device *device) GRAFT_NULL_GIVES(NULL);

/* One property, as graft_plugin.device_query gives it. */
GRAFT_EXPORT graft_status graft_device_query(graft_rt_device *device, graft_device_key key, void *value,
                                             size_t capacity, GRAFT_NULLABLE size_t *size);

/* A table that the device's plugin offers beyond the ABI, as graft_plugin.extension gives it; *self is what its
 * functions take first. Both are valid until the backend is closed. UNIMPLEMENTED: the plugin has none of that name and
 * version. */
GRAFT_EXPORT graft_status graft_device_extension(graft_rt_device *device, const char *name, uint32_t minimum_version,
                                                 const void **table, void **self);

/* Blocks until all streams of the device are done; reports a fault that sticks to one of them. */
GRAFT_EXPORT graft_status graft_device_synchronize(graft_rt_device *device);

/* Streams. Every device has a default stream; each thread has a current stream for each device, at first the default
 * one. A created stream is destroyed by its creator, when its work is done. After a fault of its own (an index out of
 * range) a stream refuses work until somebody waits for it: synchronize, or a copy to the host, reports the fault, and
 * from then on the stream takes new work. */
GRAFT_EXPORT graft_status graft_stream_create(graft_rt_device *device, int32_t priority, graft_stream_flags flags,
                                              graft_rt_stream **stream);
GRAFT_EXPORT graft_status graft_stream_destroy(GRAFT_NULLABLE graft_rt_stream *stream);
GRAFT_EXPORT graft_rt_stream *graft_stream_current(graft_rt_device *device) GRAFT_NULL_GIVES(NULL);
GRAFT_EXPORT void graft_stream_set_current(graft_rt_stream *stream) GRAFT_NULL_GIVES(nothing);
GRAFT_EXPORT graft_status graft_stream_query(graft_rt_stream *stream);
GRAFT_EXPORT graft_status graft_stream_synchronize(graft_rt_stream *stream);
GRAFT_EXPORT graft_rt_device *graft_stream_device(const graft_rt_stream *stream) GRAFT_NULL_GIVES(NULL);

GRAFT_EXPORT graft_status graft_event_create(graft_rt_device *device, graft_event_flags flags, graft_rt_event **event);
GRAFT_EXPORT graft_status graft_event_destroy(GRAFT_NULLABLE graft_rt_event *event);
GRAFT_EXPORT graft_status graft_event_record(graft_rt_event *event, graft_rt_stream *stream);
GRAFT_EXPORT graft_status graft_stream_wait(graft_rt_stream *stream, graft_rt_event *event);
GRAFT_EXPORT graft_status graft_event_query(graft_rt_event *event);
GRAFT_EXPORT graft_status graft_event_synchronize(graft_rt_event *event);
GRAFT_EXPORT graft_status graft_event_elapsed(graft_rt_event *from, graft_rt_event *to, double *milliseconds);

/* Random numbers: each device has a default generator; see graft_philox in graft/abi/exec.h for what it draws. */
GRAFT_EXPORT graft_generator *graft_generator_default(graft_rt_device *device) GRAFT_NULL_GIVES(NULL);
/* Seeds it, with offset 0. */
GRAFT_EXPORT void graft_generator_seed(graft_generator *generator, uint64_t seed) GRAFT_NULL_GIVES(nothing);
GRAFT_EXPORT void graft_generator_state(graft_generator *generator, GRAFT_NULLABLE uint64_t *seed,
                                        GRAFT_NULLABLE uint64_t *offset) GRAFT_NULL_GIVES(nothing);
GRAFT_EXPORT void graft_generator_set_state(graft_generator *generator, uint64_t seed, uint64_t offset)
    GRAFT_NULL_GIVES(nothing);
GRAFT_EXPORT graft_status graft_generator_create(graft_rt_device *device, graft_generator **generator);
GRAFT_EXPORT void graft_generator_destroy(GRAFT_NULLABLE graft_generator *generator);

#ifdef __cplusplus
}
#endif

#endif
