/* Graft plugin ABI: streams and events.
 *
 * A stream runs its work in the order of submission. The host serialises calls that name one stream; query,
 * synchronize and the event functions are thread-safe all the same. A plugin may hold submitted work back until flush,
 * query, synchronize or event_record. What a slot submits elsewhere is joined to exec->stream before it returns.
 *
 * A fault of the device sticks to its stream: synchronize, query and the event functions report GRAFT_STREAM_FAILED (or
 * GRAFT_DEVICE_LOST) from then on, and `failure` says why. destroy comes when no submitted work refers to the object,
 * or the device is lost, and then it succeeds; it never blocks on another stream. */
#ifndef GRAFT_ABI_STREAM_H
#define GRAFT_ABI_STREAM_H

#include "graft/abi/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t graft_event_flags;
enum {
  GRAFT_EVENT_TIMING = 0x1 /* elapsed time is wanted; also a stream flag: events recorded on it carry times */
};

typedef uint32_t graft_stream_flags;
enum { GRAFT_STREAM_TIMING = 0x1 };

typedef int32_t graft_failure_scope;
enum {
  GRAFT_FAILURE_NONE = 0,
  GRAFT_FAILURE_STREAM = 1, /* this stream is unusable, others go on */
  GRAFT_FAILURE_DEVICE = 2, /* every stream of the device is */
  GRAFT_FAILURE_PROCESS = 3 /* only a new process can use the device */
};

typedef struct graft_stream_api {
  size_t struct_size;

  /* Creates a stream; priority lies in GRAFT_DEVICE_PRIORITIES. Mandatory. */
  graft_status (*create)(graft_device *device, int32_t priority, graft_stream_flags flags,
                         graft_stream **stream) GRAFT_TABLE_NOEXCEPT;
  /* Destroys it. Mandatory. */
  graft_status (*destroy)(graft_stream *stream) GRAFT_TABLE_NOEXCEPT;
  /* Makes sure that what was submitted starts without further calls. Optional: NULL means nothing is held back. */
  graft_status (*flush)(graft_stream *stream) GRAFT_TABLE_NOEXCEPT;
  /* OK when all submitted work is done, NOT_READY when not. Flushes. Mandatory. */
  graft_status (*query)(graft_stream *stream) GRAFT_TABLE_NOEXCEPT;
  /* Blocks until all submitted work is done. Mandatory. */
  graft_status (*synchronize)(graft_stream *stream) GRAFT_TABLE_NOEXCEPT;

  /* Creates an event; one never recorded counts as done. An event may outlive the streams it was recorded on and then
   * counts as done, too. Mandatory, as is event_destroy. */
  graft_status (*event_create)(graft_device *device, graft_event_flags flags, graft_event **event) GRAFT_TABLE_NOEXCEPT;
  graft_status (*event_destroy)(graft_event *event) GRAFT_TABLE_NOEXCEPT;
  /* Puts the event behind everything submitted to the stream so far, replacing an earlier record. Mandatory. */
  graft_status (*event_record)(graft_event *event, graft_stream *stream) GRAFT_TABLE_NOEXCEPT;
  /* Makes later work on the stream wait for the event's latest record at the time of this call. The event is one of the
   * stream's device, or of any device of the instance where the stream's device says GRAFT_DEVICE_WAITS_ACROSS; a host
   * waits itself for others. Mandatory. */
  graft_status (*stream_wait)(graft_stream *stream, graft_event *event) GRAFT_TABLE_NOEXCEPT;
  /* OK when done, NOT_READY when not. Mandatory. */
  graft_status (*event_query)(graft_event *event) GRAFT_TABLE_NOEXCEPT;
  /* Blocks until done. Mandatory. */
  graft_status (*event_synchronize)(graft_event *event) GRAFT_TABLE_NOEXCEPT;
  /* The time in milliseconds between two events that were both created with GRAFT_EVENT_TIMING, recorded on streams
   * created with GRAFT_STREAM_TIMING and are done; NOT_READY while one is not done or was never recorded, UNIMPLEMENTED
   * without TIMING. Optional. */
  graft_status (*event_elapsed)(graft_event *from, graft_event *to, double *milliseconds) GRAFT_TABLE_NOEXCEPT;

  /* Why a stream, or with stream NULL a device, failed: text as UTF-8 (cut to capacity, NUL included; *length receives
   * the full length without it) and how far the failure reaches. OK with scope NONE where nothing failed. Mandatory. */
  graft_status (*failure)(graft_device *device, graft_stream *stream, char *text, size_t capacity, size_t *length,
                          graft_failure_scope *scope) GRAFT_TABLE_NOEXCEPT;
} graft_stream_api;

#ifdef __cplusplus
}
#endif

#endif
