/* Streams and events. A stream is one in-order queue; an event is the marker it last recorded. Profiling costs each
 * command something, so only a stream created with TIMING has it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ocl.h"

/* ---- Failures ---- */

/* Errors that speak of one request, and leave the queue as it was. */
static graft_status passing_failure(cl_int error) {
  switch (error) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY: return GRAFT_OUT_OF_MEMORY;
    case CL_INVALID_VALUE:
    case CL_MEM_COPY_OVERLAP: return GRAFT_INVALID_ARGUMENT;
    default: return GRAFT_OK;
  }
}

/* Among the sticky errors, beside the negative ones of OpenCL: a kernel reported a fault. */
#define KERNEL_FAULT 1

static void describe(graft_stream *stream, int error, char *text, size_t capacity) {
  if (error == KERNEL_FAULT) {
    ocl_fault_text(atomic_load(&stream->faults), text, capacity);
  } else {
    snprintf(text, capacity, "%s: %s", stream->failed_call, ocl_error_name(error));
  }
}

graft_status ocl_stream_check(graft_stream *stream) {
  int error = atomic_load_explicit(&stream->failure, memory_order_acquire);
  if (error == CL_SUCCESS) return GRAFT_OK;
  graft_status status = error == CL_DEVICE_NOT_AVAILABLE ? GRAFT_DEVICE_LOST : GRAFT_STREAM_FAILED;
  char text[256];
  describe(stream, error, text, sizeof text);
  return ocl_fail(stream->device->plugin, status, "%s", text);
}

static void make_sticky(graft_stream *stream, cl_int error, const char *call) {
  pthread_mutex_lock(&stream->failure_lock);
  if (atomic_load(&stream->failure) == CL_SUCCESS) {
    stream->failed_call = call;
    atomic_store_explicit(&stream->failure, error, memory_order_release);
  }
  pthread_mutex_unlock(&stream->failure_lock);
}

void ocl_stream_submitted(graft_stream *stream) {
  atomic_fetch_add_explicit(&stream->submitted, 1, memory_order_release);
}

graft_status ocl_stream_result(graft_stream *stream, cl_int error, const char *call) {
  if (error == CL_SUCCESS) {
    ocl_stream_submitted(stream);
    return GRAFT_OK;
  }
  graft_status status = passing_failure(error);
  if (status != GRAFT_OK) return ocl_fail(stream->device->plugin, status, "%s: %s", call, ocl_error_name(error));
  make_sticky(stream, error, call);
  return ocl_stream_check(stream);
}

/* After a wait: OK, or what the kernels that it waited for found. */
static graft_status check_faults(graft_stream *stream) {
  if (ocl_faults_seen(atomic_load_explicit(&stream->faults, memory_order_acquire))) {
    make_sticky(stream, KERNEL_FAULT, "a kernel");
  }
  return ocl_stream_check(stream);
}

static graft_status failure(graft_device *device, graft_stream *stream, char *text, size_t capacity, size_t *length,
                            graft_failure_scope *scope) {
  char message[256] = "";
  int error = stream ? atomic_load_explicit(&stream->failure, memory_order_acquire) : CL_SUCCESS;
  (void)device; /* OpenCL has no state of a device to ask for: a lost one shows on its streams */
  if (error != CL_SUCCESS) describe(stream, error, message, sizeof message);
  if (text && capacity > 0) snprintf(text, capacity, "%s", message);
  if (length) *length = strlen(message);
  if (scope) {
    *scope = error == CL_SUCCESS                ? GRAFT_FAILURE_NONE
             : error == CL_DEVICE_NOT_AVAILABLE ? GRAFT_FAILURE_DEVICE
                                                : GRAFT_FAILURE_STREAM;
  }
  return GRAFT_OK;
}

/* ---- Streams ---- */

static graft_status create(graft_device *device, int32_t priority, graft_stream_flags flags, graft_stream **out) {
  if ((flags & 0xffffu & ~GRAFT_STREAM_TIMING) || priority != 0) {
    return ocl_fail(device->plugin, GRAFT_INVALID_ARGUMENT, "unknown stream flags 0x%x or priority %d", flags,
                    priority);
  }
  graft_stream *stream = calloc(1, sizeof *stream);
  if (!stream) return GRAFT_OUT_OF_MEMORY;
  stream->device = device;
  stream->timing = flags & GRAFT_STREAM_TIMING;
  cl_int error;
  stream->own_queue =
      clCreateCommandQueue(device->context, device->id, stream->timing ? CL_QUEUE_PROFILING_ENABLE : 0, &error);
  stream->queue = stream->own_queue;
  if (error != CL_SUCCESS) {
    free(stream);
    return ocl_fail(device->plugin, GRAFT_INTERNAL, "clCreateCommandQueue: %s", ocl_error_name(error));
  }
  pthread_mutex_init(&stream->failure_lock, NULL);
  pthread_mutex_init(&stream->progress_lock, NULL);
  ocl_exit_watch(stream);
  *out = stream;
  return GRAFT_OK;
}

static graft_status destroy(graft_stream *stream) {
  ocl_exit_forget(stream);
  if (stream->progress) clReleaseEvent(stream->progress);
  clReleaseCommandQueue(stream->own_queue);
  if (stream->timed_queue) clReleaseCommandQueue(stream->timed_queue);
  ocl_faults_release(atomic_load(&stream->faults));
  pthread_mutex_destroy(&stream->failure_lock);
  pthread_mutex_destroy(&stream->progress_lock);
  free(stream);
  return GRAFT_OK;
}

static graft_status flush(graft_stream *stream) {
  graft_status status = ocl_stream_check(stream);
  if (status != GRAFT_OK) return status;
  cl_int error = clFlush(stream->queue);
  return error == CL_SUCCESS ? GRAFT_OK : ocl_stream_result(stream, error, "clFlush");
}

/* OK or NOT_READY; a command that failed leaves a negative number as its marker's state. */
static graft_status marker_state(cl_event marker, cl_int *error) {
  cl_int state = CL_COMPLETE;
  *error = clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
  if (*error == CL_SUCCESS && state < 0) *error = state;
  return *error == CL_SUCCESS && state != CL_COMPLETE ? GRAFT_NOT_READY : GRAFT_OK;
}

/* A marker behind all that was submitted up to now, the caller's own reference. Who asks again and again shares one:
 * as long as the last one was not reached, nothing after it was, either. */
static cl_int progress_marker(graft_stream *stream, cl_event *marker, uint64_t *reach) {
  cl_int error = CL_SUCCESS, failed = CL_SUCCESS;
  pthread_mutex_lock(&stream->progress_lock);
  uint64_t submitted = atomic_load(&stream->submitted);
  if (stream->progress && (stream->progress_reach != submitted || stream->lent) &&
      marker_state(stream->progress, &failed) == GRAFT_OK && failed == CL_SUCCESS) {
    clReleaseEvent(stream->progress);
    stream->progress = NULL;
  }
  if (!stream->progress) {
    error = ocl_faults_read(stream);
    if (error == CL_SUCCESS) error = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &stream->progress);
    if (error == CL_SUCCESS) error = clFlush(stream->queue);
    stream->progress_reach = submitted;
  }
  if (error == CL_SUCCESS) error = clRetainEvent(stream->progress);
  *marker = stream->progress;
  *reach = stream->progress_reach;
  pthread_mutex_unlock(&stream->progress_lock);
  return error;
}

/* The first `reach` commands are done. Whoever sees the stream idle asks for no faults, so that they come first. */
static graft_status finish(graft_stream *stream, uint64_t reach) {
  graft_status status = check_faults(stream);
  if (status == GRAFT_OK) atomic_store(&stream->finished, reach);
  return status;
}

static graft_status query(graft_stream *stream) {
  graft_status status = ocl_stream_check(stream);
  if (status != GRAFT_OK) return status;
  /* A marker takes its time even in an empty queue. */
  if (ocl_stream_is_idle(stream)) return GRAFT_OK;
  uint64_t submitted = atomic_load(&stream->submitted), reach;
  cl_event marker;
  cl_int error = progress_marker(stream, &marker, &reach);
  if (error != CL_SUCCESS) return ocl_stream_result(stream, error, "clEnqueueMarkerWithWaitList");
  status = marker_state(marker, &error);
  clReleaseEvent(marker);
  if (error != CL_SUCCESS) return ocl_stream_result(stream, error, "a command of the stream");
  if (status != GRAFT_OK || reach < submitted) return GRAFT_NOT_READY;
  return finish(stream, reach);
}

static graft_status synchronize(graft_stream *stream) {
  graft_status status = ocl_stream_check(stream);
  if (status != GRAFT_OK) {
    /* What another thread had submitted before it could know: a failed stream is one without work. */
    if (atomic_load(&stream->failure) == KERNEL_FAULT) clFinish(stream->queue);
    return status;
  }
  if (ocl_stream_is_idle(stream)) return GRAFT_OK;
  uint64_t submitted = atomic_load(&stream->submitted);
  cl_int error = ocl_faults_read(stream);
  if (error == CL_SUCCESS) error = clFinish(stream->queue);
  if (error != CL_SUCCESS) return ocl_stream_result(stream, error, "clFinish");
  return finish(stream, submitted);
}

/* ---- Events ---- */

static graft_status event_create(graft_device *device, graft_event_flags flags, graft_event **out) {
  if (flags & 0xffffu & ~GRAFT_EVENT_TIMING) {
    return ocl_fail(device->plugin, GRAFT_INVALID_ARGUMENT, "unknown event flags 0x%x", flags);
  }
  graft_event *event = calloc(1, sizeof *event);
  if (!event) return GRAFT_OUT_OF_MEMORY;
  event->device = device;
  event->flags = flags;
  pthread_mutex_init(&event->lock, NULL);
  *out = event;
  return GRAFT_OK;
}

static graft_status event_destroy(graft_event *event) {
  if (event->latest) clReleaseEvent(event->latest);
  ocl_faults_release(event->faults);
  pthread_mutex_destroy(&event->lock);
  free(event);
  return GRAFT_OK;
}

static graft_status event_record(graft_event *event, graft_stream *stream) {
  graft_status status = ocl_stream_check(stream);
  if (status != GRAFT_OK) return status;
  cl_event marker = NULL;
  cl_int error = ocl_faults_read(stream);
  if (error == CL_SUCCESS) error = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &marker);
  if (error == CL_SUCCESS) error = clFlush(stream->queue); /* another queue may come to wait for it */
  if (error != CL_SUCCESS) {
    if (marker) clReleaseEvent(marker);
    return ocl_stream_result(stream, error, "clEnqueueMarkerWithWaitList");
  }
  pthread_mutex_lock(&event->lock);
  cl_event before = event->latest;
  ocl_faults *faults_before = event->faults;
  event->latest = marker;
  event->timed = stream->timing;
  event->faults = ocl_faults_retain(atomic_load(&stream->faults));
  pthread_mutex_unlock(&event->lock);
  if (before) clReleaseEvent(before);
  ocl_faults_release(faults_before);
  return GRAFT_OK;
}

/* The latest record with a reference of the caller's own, or NULL. */
static cl_event latest_record(graft_event *event, bool *timed) {
  pthread_mutex_lock(&event->lock);
  cl_event latest = event->latest;
  if (latest) clRetainEvent(latest);
  *timed = event->timed;
  pthread_mutex_unlock(&event->lock);
  return latest;
}

static graft_status stream_wait(graft_stream *stream, graft_event *event) {
  graft_status status = ocl_stream_check(stream);
  bool timed;
  cl_event latest = latest_record(event, &timed);
  if (!latest || status != GRAFT_OK) {
    if (latest) clReleaseEvent(latest);
    return status;
  }
  cl_int error = clEnqueueBarrierWithWaitList(stream->queue, 1, &latest, NULL);
  clReleaseEvent(latest);
  return ocl_stream_result(stream, error, "clEnqueueBarrierWithWaitList");
}

/* Once what an event waited for has been done: OK, or what the kernels before it found, or what `call` said of them. */
static graft_status event_result(graft_event *event, cl_int error, const char *call) {
  char text[256];
  pthread_mutex_lock(&event->lock);
  bool fault = ocl_faults_seen(event->faults);
  if (fault) ocl_fault_text(event->faults, text, sizeof text);
  pthread_mutex_unlock(&event->lock);
  if (error == CL_SUCCESS && !fault) return GRAFT_OK;
  if (!fault) snprintf(text, sizeof text, "%s: %s", call, ocl_error_name(error));
  return ocl_fail(event->device->plugin, GRAFT_STREAM_FAILED, "%s", text);
}

static graft_status event_query(graft_event *event) {
  bool timed;
  cl_event latest = latest_record(event, &timed);
  if (!latest) return GRAFT_OK;
  cl_int error;
  graft_status status = marker_state(latest, &error);
  clReleaseEvent(latest);
  return status == GRAFT_OK ? event_result(event, error, "a command before the event") : status;
}

static graft_status event_synchronize(graft_event *event) {
  bool timed;
  cl_event latest = latest_record(event, &timed);
  if (!latest) return GRAFT_OK;
  cl_int error = clWaitForEvents(1, &latest);
  clReleaseEvent(latest);
  return event_result(event, error, "clWaitForEvents");
}

/* When the marker was reached, in nanoseconds of the device's clock. */
static graft_status reached_at(graft_event *event, cl_ulong *nanoseconds) {
  if (!(event->flags & GRAFT_EVENT_TIMING)) return GRAFT_UNIMPLEMENTED;
  bool timed;
  cl_event latest = latest_record(event, &timed);
  if (!latest) return GRAFT_NOT_READY;
  cl_int error;
  graft_status status = timed ? marker_state(latest, &error) : GRAFT_UNIMPLEMENTED;
  if (status == GRAFT_OK && error == CL_SUCCESS) {
    error = clGetEventProfilingInfo(latest, CL_PROFILING_COMMAND_END, sizeof *nanoseconds, nanoseconds, NULL);
  }
  clReleaseEvent(latest);
  return status != GRAFT_OK || error == CL_SUCCESS ? status : event_result(event, error, "clGetEventProfilingInfo");
}

static graft_status event_elapsed(graft_event *from, graft_event *to, double *milliseconds) {
  cl_ulong begin, end;
  graft_status first = reached_at(from, &begin), second = reached_at(to, &end);
  if (first == GRAFT_UNIMPLEMENTED || second == GRAFT_UNIMPLEMENTED) return GRAFT_UNIMPLEMENTED;
  if (first != GRAFT_OK) return first;
  if (second != GRAFT_OK) return second;
  *milliseconds = ((double)end - (double)begin) * 1e-6;
  return GRAFT_OK;
}

const graft_stream_api ocl_stream_api = {
    .struct_size = sizeof ocl_stream_api,
    .create = create,
    .destroy = destroy,
    .flush = flush,
    .query = query,
    .synchronize = synchronize,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .stream_wait = stream_wait,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_elapsed = event_elapsed,
    .failure = failure,
};
