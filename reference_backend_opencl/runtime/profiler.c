/* Records of commands: see profiler.h. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/ocl.h"

enum {
  RECORDS_MAX = 1 << 20, /* kept at most; more are counted as lost */
  NAME_MAX_BYTES = 48,
  CLOCK_TRIES = 8
};

typedef struct record {
  cl_event event;
  uint64_t correlation, bytes;
  uint32_t op_id;
  graft_record_kind kind;
  char name[NAME_MAX_BYTES];
} record;

struct ocl_profiler {
  pthread_mutex_t lock; /* guards what follows */
  record *items;        /* in the order of submission */
  size_t count, room;
  uint64_t lost;
};

ocl_profiler *ocl_profiler_new(void) {
  ocl_profiler *profiler = calloc(1, sizeof *profiler);
  if (profiler) pthread_mutex_init(&profiler->lock, NULL);
  return profiler;
}

static void forget(ocl_profiler *profiler) {
  for (size_t i = 0; i < profiler->count; i++) clReleaseEvent(profiler->items[i].event);
  free(profiler->items);
  profiler->items = NULL;
  profiler->count = profiler->room = 0;
  profiler->lost = 0;
}

void ocl_profiler_free(ocl_profiler *profiler) {
  if (!profiler) return;
  forget(profiler);
  pthread_mutex_destroy(&profiler->lock);
  free(profiler);
}

/* ---- Submitting ---- */

/* What the one queue is given from now on comes after what the other was given before. */
static cl_int chain(cl_command_queue before, cl_command_queue after) {
  cl_event marker;
  cl_int error = clEnqueueMarkerWithWaitList(before, 0, NULL, &marker);
  if (error != CL_SUCCESS) return error;
  error = clFlush(before);
  if (error == CL_SUCCESS) error = clEnqueueBarrierWithWaitList(after, 1, &marker, NULL);
  clReleaseEvent(marker);
  return error;
}

void ocl_profiler_switch(graft_stream *stream, bool timed) {
  graft_device *device = stream->device;
  cl_int error = CL_SUCCESS;
  if (timed && !stream->timed_queue) {
    stream->timed_queue = clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &error);
  }
  cl_command_queue next = timed ? stream->timed_queue : stream->own_queue;
  if (error == CL_SUCCESS) error = chain(stream->queue, next);
  if (error != CL_SUCCESS) return; /* goes on without times; these commands count as lost */
  stream->queue = next;
  stream->switched = timed;
}

static record *next_record(ocl_profiler *profiler) {
  if (profiler->count == RECORDS_MAX) return NULL;
  if (profiler->count == profiler->room) {
    size_t room = profiler->room ? 2 * profiler->room : 256;
    record *grown = realloc(profiler->items, room * sizeof *grown);
    if (!grown) return NULL;
    profiler->items = grown;
    profiler->room = room;
  }
  return &profiler->items[profiler->count++];
}

void ocl_profiler_keep(const ocl_command *command, cl_event event, cl_kernel kernel) {
  const graft_stream *stream = command->stream;
  ocl_profiler *profiler = stream->device->profiler;
  record made = {event, stream->correlation, command->bytes, stream->op_id, command->kind, ""};
  if (kernel) clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof made.name, made.name, NULL);
  pthread_mutex_lock(&profiler->lock);
  record *kept = next_record(profiler);
  if (kept)
    *kept = made;
  else
    profiler->lost++;
  pthread_mutex_unlock(&profiler->lock);
  if (!kept) clReleaseEvent(event);
}

/* ---- The extension ---- */

static graft_status start(graft_device *device) {
  pthread_mutex_lock(&device->profiler->lock);
  forget(device->profiler);
  pthread_mutex_unlock(&device->profiler->lock);
  atomic_store(&device->recording, true);
  return GRAFT_OK;
}

static graft_status stop(graft_device *device) {
  atomic_store(&device->recording, false);
  return GRAFT_OK;
}

static graft_status mark(graft_stream *stream, uint32_t op_id, uint64_t correlation) {
  stream->op_id = op_id;
  stream->correlation = correlation;
  return GRAFT_OK;
}

/* False while the command is not done. */
static bool is_done(const record *record) {
  cl_int state = CL_COMPLETE;
  return clGetEventInfo(record->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) != CL_SUCCESS ||
         state <= CL_COMPLETE;
}

/* False where there are no times: of a command that failed, or on a queue without. */
static bool hand_over(const record *record, void (*take)(void *, const graft_profiler_record *), void *context) {
  cl_ulong begin, end;
  if (clGetEventProfilingInfo(record->event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, NULL) != CL_SUCCESS ||
      clGetEventProfilingInfo(record->event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) != CL_SUCCESS) {
    return false;
  }
  take(context, &(const graft_profiler_record){.struct_size = sizeof(graft_profiler_record),
                                               .kind = record->kind,
                                               .op_id = record->op_id,
                                               .correlation = record->correlation,
                                               .name = *record->name ? record->name : NULL,
                                               .bytes = record->bytes,
                                               .begin_ns = begin,
                                               .end_ns = end});
  return true;
}

static graft_status drain(graft_device *device, void (*take)(void *, const graft_profiler_record *), void *context,
                          uint64_t *lost) {
  ocl_profiler *profiler = device->profiler;
  pthread_mutex_lock(&profiler->lock);
  size_t kept = 0;
  for (size_t i = 0; i < profiler->count; i++) {
    record *record = &profiler->items[i];
    if (!is_done(record)) {
      profiler->items[kept++] = *record;
      continue;
    }
    if (!hand_over(record, take, context)) profiler->lost++;
    clReleaseEvent(record->event);
  }
  profiler->count = kept;
  *lost = profiler->lost;
  profiler->lost = 0;
  pthread_mutex_unlock(&profiler->lock);
  return GRAFT_OK;
}

static uint64_t host_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* When a marker of its own was reached, by the device and, as the middle of what can be seen of it, by the host. */
static cl_int read_clocks(cl_command_queue queue, uint64_t *device_ns, uint64_t *host_ns, uint64_t *window) {
  cl_event marker;
  cl_ulong reached = 0;
  uint64_t before = host_clock();
  cl_int error = clEnqueueMarkerWithWaitList(queue, 0, NULL, &marker);
  if (error != CL_SUCCESS) return error;
  error = clWaitForEvents(1, &marker);
  uint64_t after = host_clock();
  if (error == CL_SUCCESS) {
    error = clGetEventProfilingInfo(marker, CL_PROFILING_COMMAND_END, sizeof reached, &reached, NULL);
  }
  clReleaseEvent(marker);
  *device_ns = reached;
  *host_ns = before + (after - before) / 2;
  *window = after - before;
  return error;
}

/* OpenCL has a question for this from 2.1 on, which few drivers answer. */
static graft_status clock_pair(graft_device *device, uint64_t *device_ns, uint64_t *host_ns) {
  cl_int error;
  cl_command_queue queue = clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &error);
  uint64_t best = UINT64_MAX, at_device = 0, at_host = 0;
  for (int i = 0; i < CLOCK_TRIES && error == CL_SUCCESS; i++) {
    uint64_t device_now, host_now, window;
    error = read_clocks(queue, &device_now, &host_now, &window);
    if (error != CL_SUCCESS || window >= best) continue;
    best = window;
    at_device = device_now;
    at_host = host_now;
  }
  if (queue) clReleaseCommandQueue(queue);
  if (error != CL_SUCCESS) {
    return ocl_fail(device->plugin, GRAFT_INTERNAL, "reading the device's clock: %s", ocl_error_name(error));
  }
  *device_ns = at_device;
  *host_ns = at_host;
  return GRAFT_OK;
}

const graft_profiler_api ocl_profiler_api = {
    .struct_size = sizeof ocl_profiler_api,
    .start = start,
    .stop = stop,
    .mark = mark,
    .drain = drain,
    .clock = clock_pair,
};
