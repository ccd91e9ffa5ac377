/* What ran on a device and when: extension "graft.profiler". Commands have times only on a queue that was made for it,
 * so while records are kept a stream takes its commands to a second queue, and then back to its own. */
#ifndef OCL_PROFILER_H
#define OCL_PROFILER_H

#include "runtime/stream.h"

extern const graft_profiler_api ocl_profiler_api;

ocl_profiler *ocl_profiler_new(void);
void ocl_profiler_free(ocl_profiler *profiler);

/* A command that a stream is about to be given, in a call that the host serialises by stream:
 *     cl_event event = NULL;
 *     ocl_command command = ocl_command_begin(stream, GRAFT_RECORD_FILL, bytes);
 *     error = clEnqueue...(command.queue, ..., command.recorded ? &event : NULL);
 *     ocl_command_end(&command, event, NULL); */
typedef struct ocl_command {
  graft_stream *stream;
  cl_command_queue queue;
  uint64_t bytes;
  graft_record_kind kind;
  bool recorded;
} ocl_command;

/* Takes the stream to its queue with times, or back. */
void ocl_profiler_switch(graft_stream *stream, bool timed);
/* Keeps a record of the command; takes the reference to the event. `kernel` gives the name, or is NULL. */
void ocl_profiler_keep(const ocl_command *command, cl_event event, cl_kernel kernel);

static inline ocl_command ocl_command_begin(graft_stream *stream, graft_record_kind kind, uint64_t bytes) {
  bool recorded = atomic_load_explicit(&stream->device->recording, memory_order_relaxed);
  if (recorded != stream->switched && !stream->timing) ocl_profiler_switch(stream, recorded);
  return (ocl_command){stream, stream->queue, bytes, kind, recorded};
}

/* Takes the reference to the event; NULL where there is none. */
static inline void ocl_command_end(const ocl_command *command, cl_event event, cl_kernel kernel) {
  if (event && command->recorded)
    ocl_profiler_keep(command, event, kernel);
  else if (event)
    clReleaseEvent(event);
}

#endif
