/* Streams, events, and what sticks to them when something fails. */
#ifndef OCL_STREAM_H
#define OCL_STREAM_H

#include "runtime/device.h"
#include "runtime/fault.h"

struct graft_stream {
  graft_device *device;
  /* Where commands go, and where others wait: its own queue, or for the profiler the one with times. Each begins after
   * the other at every change, and both live as long as the stream. */
  _Atomic(cl_command_queue) queue;
  cl_command_queue own_queue, timed_queue; /* the latter NULL at first */
  bool timing, switched;                   /* its own queue has times, too; queue is timed_queue */
  uint32_t op_id;                          /* what the profiler's records of the next commands say */
  uint64_t correlation;
  atomic_int failure;      /* the cl error that sticks, CL_SUCCESS while there is none */
  const char *failed_call; /* which call it came from; written once, before `failure` */
  pthread_mutex_t failure_lock;
  _Atomic(ocl_faults *) faults; /* NULL until a kernel that may report is launched */
  atomic_bool faults_unread;
  atomic_uint_fast64_t submitted,
      finished;                  /* commands, counted once they are in the queue: equal when all are known done */
  atomic_bool lent;              /* somebody else has the queue, whose commands are not counted */
  pthread_mutex_t progress_lock; /* guards the two below, which answer query */
  cl_event progress;             /* the last marker put for it, NULL at first */
  uint64_t progress_reach;       /* `submitted` when it was */
  graft_stream *next_watched;    /* exit.c has it */
};

struct graft_event {
  graft_device *device;
  graft_event_flags flags;
  pthread_mutex_t lock; /* guards the two below: recording and asking may meet */
  cl_event latest;
  bool timed;
  ocl_faults *faults; /* of the stream it was recorded on */
};

extern const graft_stream_api ocl_stream_api;

/* Turns what `call` returned on a stream into a status. What only this command lacked (memory) is a plain failure; what
 * says that the queue or the device is broken sticks to the stream. */
graft_status ocl_stream_result(graft_stream *stream, cl_int error, const char *call);
/* Counts a submitted command; ocl_stream_result does so, too. */
void ocl_stream_submitted(graft_stream *stream);
/* OK, or the status of the fault that sticks. First thing in every call that submits. */
graft_status ocl_stream_check(graft_stream *stream);

/* Whether all that the stream was given is known to be done. */
static inline bool ocl_stream_is_idle(graft_stream *stream) {
  return atomic_load(&stream->finished) == atomic_load(&stream->submitted) && !atomic_load(&stream->lent);
}

#endif
