/* A plugin whose streams are threads: work is done later, in order, beside the caller. It is what the contracts of
 * streams and events can be seen on, as a device would keep them; memory is the host's. It has copies, fills, times,
 * records of them, the one op neg in f32 (with op_query), chains of it as groups, and records of its work. liar.c
 * includes it and changes what it does. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fill.h"
#include "graft/abi/plugin.h"

typedef struct async_instance {
  graft_plugin plugin;
  graft_memory_api memory;
  graft_stream_api stream;
  graft_core_ops core;
  const graft_host *host;
} async_instance;

typedef struct timed timed; /* async_profiler.c */

struct graft_device {
  async_instance *self;
  pthread_mutex_t lock; /* guards what follows */
  int recording;
  timed *records;
};

struct graft_buffer {
  uint64_t bytes;
  char *memory;
};

/* One record of an event; shared, freed with the last who holds it. */
typedef struct record {
  atomic_int references;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int is_done, timed;
  struct timespec time;
} record;

struct graft_event {
  graft_event_flags flags;
  pthread_mutex_t lock; /* guards latest */
  record *latest;
};

typedef struct command {
  struct command *next;
  uint64_t number; /* in its stream, from 1 */
  void (*run)(struct command *);
  char *to;
  const char *from;
  void *owned;
  uint64_t bytes;
  uint32_t pattern_bytes;
  char pattern[16];
  record *record;
  timed *timed;
  graft_event *event; /* for lies */
  const void *source; /* likewise */
} command;

struct graft_stream {
  graft_device *device;
  graft_stream_flags flags;
  uint32_t op_id; /* as mark said, with the next */
  uint64_t correlation;
  pthread_t thread;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t changed;
  command *first, *last;
  uint64_t submitted, done;
  int ends;
  command *kept, **kept_end; /* while it is recorded: async_capture.c */
};

/* --- a stream's queue --- */

#include "async_profiler.c"

static void *serve(void *argument) {
  graft_stream *stream = argument;
  pthread_mutex_lock(&stream->lock);
  for (;;) {
    while (!stream->first && !stream->ends) pthread_cond_wait(&stream->changed, &stream->lock);
    command *c = stream->first;
    if (!c) break;
    pthread_mutex_unlock(&stream->lock);
    if (c->timed)
      run_timed(stream, c);
    else
      c->run(c);
    pthread_mutex_lock(&stream->lock);
    stream->first = c->next;
    if (!stream->first) stream->last = NULL;
    stream->done = c->number;
    pthread_cond_broadcast(&stream->changed);
    free(c);
  }
  pthread_mutex_unlock(&stream->lock);
  return NULL;
}

static command *command_new(void (*run)(command *)) {
  command *c = calloc(1, sizeof *c);
  if (!c) abort();
  c->run = run;
  return c;
}

static void submit(graft_stream *stream, command *c) {
  pthread_mutex_lock(&stream->lock);
  if (stream->kept_end) {
    *stream->kept_end = c;
    stream->kept_end = &c->next;
    pthread_mutex_unlock(&stream->lock);
    return;
  }
  c->number = ++stream->submitted;
  if (stream->last)
    stream->last->next = c;
  else
    stream->first = c;
  stream->last = c;
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->lock);
}

/* --- memory --- */

static graft_status fail(const graft_device *device, graft_status status, const char *text) {
  device->self->host->set_error(device->self->host->context, text);
  return status;
}

static graft_status mem_allocate(graft_device *device, graft_allocation *request) {
  if (request->kind != GRAFT_MEMORY_DEVICE && request->kind != GRAFT_MEMORY_PINNED) return GRAFT_UNIMPLEMENTED;
  if (request->flags & 0xffff) return GRAFT_INVALID_ARGUMENT;
  if (request->bytes > UINT64_C(1) << 40) return fail(device, GRAFT_OUT_OF_MEMORY, "async: more than there is");
  uint64_t alignment = request->alignment > 64 ? request->alignment : 64;
  graft_buffer *buffer = calloc(1, sizeof *buffer);
  if (!buffer) return GRAFT_OUT_OF_MEMORY;
  buffer->bytes = request->bytes;
  buffer->memory = aligned_alloc(alignment, (request->bytes + alignment - 1) / alignment * alignment);
  if (!buffer->memory) {
    free(buffer);
    return fail(device, GRAFT_OUT_OF_MEMORY, "async: no memory for a buffer");
  }
  request->buffer = buffer;
  request->host_pointer = buffer->memory;
  return GRAFT_OK;
}

static graft_status mem_release(graft_device *device, graft_buffer *buffer) {
  (void)device;
  free(buffer->memory);
  free(buffer);
  return GRAFT_OK;
}

static void run_copy(command *c) {
  memcpy(c->to, c->from, c->bytes);
  free(c->owned);
}

static void submit_copy(graft_stream *stream, char *to, const char *from, uint64_t bytes, void *owned,
                        graft_record_kind kind) {
  command *c = command_new(run_copy);
  c->to = to;
  c->from = from;
  c->bytes = bytes;
  c->owned = owned;
  profile(stream, c, kind, NULL);
  submit(stream, c);
}

static graft_status mem_from_host(graft_stream *stream, graft_buffer *to, uint64_t offset, const void *from,
                                  uint64_t bytes, graft_copy_flags flags) {
  if (flags & 0xffff & ~(uint32_t)GRAFT_COPY_SOURCE_REUSABLE) return GRAFT_INVALID_ARGUMENT;
  void *owned = NULL;
  if (flags & GRAFT_COPY_SOURCE_REUSABLE) {
    owned = malloc(bytes);
    if (!owned) return GRAFT_OUT_OF_MEMORY;
    from = memcpy(owned, from, bytes);
  }
  submit_copy(stream, to->memory + offset, from, bytes, owned, GRAFT_RECORD_COPY_FROM_HOST);
  return GRAFT_OK;
}

static graft_status mem_to_host(graft_stream *stream, void *to, graft_buffer *from, uint64_t offset, uint64_t bytes,
                                graft_copy_flags flags) {
  if (flags & 0xffff) return GRAFT_INVALID_ARGUMENT;
  submit_copy(stream, to, from->memory + offset, bytes, NULL, GRAFT_RECORD_COPY_TO_HOST);
  return GRAFT_OK;
}

static graft_status mem_copy(graft_stream *stream, graft_buffer *to, uint64_t to_offset, graft_buffer *from,
                             uint64_t from_offset, uint64_t bytes) {
  submit_copy(stream, to->memory + to_offset, from->memory + from_offset, bytes, NULL, GRAFT_RECORD_COPY);
  return GRAFT_OK;
}

/* One device has no other memory than the other. */
static graft_status mem_copy_peer(graft_stream *stream, graft_device *to_device, graft_buffer *to, uint64_t to_offset,
                                  graft_device *from_device, graft_buffer *from, uint64_t from_offset, uint64_t bytes) {
  (void)to_device, (void)from_device;
  return mem_copy(stream, to, to_offset, from, from_offset, bytes);
}

static void run_fill(command *c) {
  fill_with(c->to, c->bytes, c->pattern, c->pattern_bytes);
}

static graft_status mem_fill(graft_stream *stream, graft_buffer *to, uint64_t offset, uint64_t bytes,
                             const void *pattern, uint32_t pattern_bytes) {
  command *c = command_new(run_fill);
  c->to = to->memory + offset;
  c->bytes = bytes;
  c->pattern_bytes = pattern_bytes;
  memcpy(c->pattern, pattern, pattern_bytes);
  profile(stream, c, GRAFT_RECORD_FILL, NULL);
  submit(stream, c);
  return GRAFT_OK;
}

/* --- streams --- */

static graft_status st_create(graft_device *device, int32_t priority, graft_stream_flags flags, graft_stream **stream) {
  (void)priority;
  if (flags & 0xffff & ~(uint32_t)GRAFT_STREAM_TIMING) return GRAFT_INVALID_ARGUMENT;
  graft_stream *made = calloc(1, sizeof *made);
  if (!made) return fail(device, GRAFT_OUT_OF_MEMORY, "async: no memory for a stream");
  made->device = device;
  made->flags = flags;
  pthread_mutex_init(&made->lock, NULL);
  pthread_cond_init(&made->changed, NULL);
  if (pthread_create(&made->thread, NULL, serve, made)) {
    free(made);
    return fail(device, GRAFT_OUT_OF_MEMORY, "async: no thread for a stream");
  }
  *stream = made;
  return GRAFT_OK;
}

static graft_status st_destroy(graft_stream *stream) {
  pthread_mutex_lock(&stream->lock);
  stream->ends = 1;
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->lock);
  pthread_join(stream->thread, NULL);
  pthread_mutex_destroy(&stream->lock);
  pthread_cond_destroy(&stream->changed);
  free(stream);
  return GRAFT_OK;
}

static graft_status st_flush(graft_stream *stream) {
  (void)stream; /* nothing is held back */
  return GRAFT_OK;
}

static graft_status st_query(graft_stream *stream) {
  pthread_mutex_lock(&stream->lock);
  graft_status status = stream->done == stream->submitted ? GRAFT_OK : GRAFT_NOT_READY;
  pthread_mutex_unlock(&stream->lock);
  return status;
}

static graft_status st_synchronize(graft_stream *stream) {
  pthread_mutex_lock(&stream->lock);
  uint64_t submitted = stream->submitted;
  while (stream->done < submitted) pthread_cond_wait(&stream->changed, &stream->lock);
  pthread_mutex_unlock(&stream->lock);
  return GRAFT_OK;
}

/* --- events: each record is an object of its own, which waits and commands share --- */

static record *record_hold(record *r) {
  if (r) atomic_fetch_add(&r->references, 1);
  return r;
}

static void record_drop(record *r) {
  if (!r || atomic_fetch_sub(&r->references, 1) > 1) return;
  pthread_mutex_destroy(&r->lock);
  pthread_cond_destroy(&r->changed);
  free(r);
}

static void record_await(record *r) {
  pthread_mutex_lock(&r->lock);
  while (!r->is_done) pthread_cond_wait(&r->changed, &r->lock);
  pthread_mutex_unlock(&r->lock);
}

static int record_is_done(record *r) {
  pthread_mutex_lock(&r->lock);
  int done = r->is_done;
  pthread_mutex_unlock(&r->lock);
  return done;
}

static record *latest_of(graft_event *event) {
  pthread_mutex_lock(&event->lock);
  record *r = record_hold(event->latest);
  pthread_mutex_unlock(&event->lock);
  return r;
}

static graft_status ev_create(graft_device *device, graft_event_flags flags, graft_event **event) {
  if (flags & 0xffff & ~(uint32_t)GRAFT_EVENT_TIMING) return GRAFT_INVALID_ARGUMENT;
  graft_event *made = calloc(1, sizeof *made);
  if (!made) return fail(device, GRAFT_OUT_OF_MEMORY, "async: no memory for an event");
  made->flags = flags;
  pthread_mutex_init(&made->lock, NULL);
  *event = made;
  return GRAFT_OK;
}

static graft_status ev_destroy(graft_event *event) {
  record_drop(event->latest);
  pthread_mutex_destroy(&event->lock);
  free(event);
  return GRAFT_OK;
}

static void run_record(command *c) {
  record *r = c->record;
  pthread_mutex_lock(&r->lock);
  r->is_done = 1;
  clock_gettime(CLOCK_MONOTONIC, &r->time);
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
  record_drop(r);
}

static graft_status ev_record(graft_event *event, graft_stream *stream) {
  record *r = calloc(1, sizeof *r);
  if (!r) return GRAFT_OUT_OF_MEMORY;
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->changed, NULL);
  atomic_store(&r->references, 2);
  r->timed = (event->flags & stream->flags & GRAFT_EVENT_TIMING) != 0;
  pthread_mutex_lock(&event->lock);
  record_drop(event->latest);
  event->latest = r;
  pthread_mutex_unlock(&event->lock);
  command *c = command_new(run_record);
  c->record = r;
  submit(stream, c);
  return GRAFT_OK;
}

static void run_wait(command *c) {
  record_await(c->record);
  record_drop(c->record);
}

static graft_status st_wait(graft_stream *stream, graft_event *event) {
  record *r = latest_of(event);
  if (!r) return GRAFT_OK;
  command *c = command_new(run_wait);
  c->record = r;
  submit(stream, c);
  return GRAFT_OK;
}

static graft_status ev_query(graft_event *event) {
  record *r = latest_of(event);
  graft_status status = !r || record_is_done(r) ? GRAFT_OK : GRAFT_NOT_READY;
  record_drop(r);
  return status;
}

static graft_status ev_synchronize(graft_event *event) {
  record *r = latest_of(event);
  if (r) record_await(r);
  record_drop(r);
  return GRAFT_OK;
}

static graft_status ev_elapsed(graft_event *from, graft_event *to, double *milliseconds) {
  if (!(from->flags & to->flags & GRAFT_EVENT_TIMING)) return GRAFT_UNIMPLEMENTED;
  record *a = latest_of(from), *b = latest_of(to);
  graft_status status = GRAFT_NOT_READY;
  if (a && b && a->timed && b->timed && record_is_done(a) && record_is_done(b)) {
    *milliseconds =
        (double)(b->time.tv_sec - a->time.tv_sec) * 1e3 + (double)(b->time.tv_nsec - a->time.tv_nsec) * 1e-6;
    status = GRAFT_OK;
  }
  record_drop(a);
  record_drop(b);
  return status;
}

static graft_status st_failure(graft_device *device, graft_stream *stream, char *text, size_t capacity, size_t *length,
                               graft_failure_scope *scope) {
  (void)device, (void)stream;
  if (capacity) *text = 0;
  *length = 0;
  *scope = GRAFT_FAILURE_NONE;
  return GRAFT_OK;
}

/* --- one op --- */

static void run_neg(command *c) {
  for (uint64_t i = 0; i < c->bytes; i += sizeof(float)) {
    float value;
    memcpy(&value, c->from + i, sizeof value);
    value = -value;
    memcpy(c->to + i, &value, sizeof value);
  }
}

static char *first_byte(const graft_tensor_desc *t) {
  return t->dl.data->memory + t->dl.byte_offset;
}

static graft_status neg(const graft_exec *exec, const graft_args_neg *args) {
  if (args->self->dl.dtype != GRAFT_F32) return GRAFT_UNIMPLEMENTED;
  command *c = command_new(run_neg);
  c->bytes = sizeof(float);
  for (int32_t i = 0; i < args->out->dl.ndim; i++) c->bytes *= (uint64_t)args->out->dl.shape[i];
  c->from = first_byte(args->self);
  c->to = first_byte(args->out);
  profile(exec->stream, c, GRAFT_RECORD_KERNEL, "negate");
  submit(exec->stream, c);
  return GRAFT_OK;
}

#include "async_groups.c"

#include "async_capture.c"

static graft_status op_caps(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  (void)device;
  if (op_id != GRAFT_OP_NEG) return GRAFT_UNIMPLEMENTED;
  graft_op_caps known = {
      .struct_size = caps->struct_size, .flags = GRAFT_CAP_IN_PLACE, .exec_flags_known = GRAFT_EXEC_CAPTURING};
  memcpy(caps, &known, caps->struct_size < sizeof known ? caps->struct_size : sizeof known);
  return GRAFT_OK;
}

static graft_status op_query(const graft_exec *exec, const graft_args *args, graft_op_caps *caps) {
  const graft_args_neg *call = (const graft_args_neg *)(const void *)args;
  if (args->op_id != GRAFT_OP_NEG || call->self->dl.dtype != GRAFT_F32) return GRAFT_UNIMPLEMENTED;
  return op_caps(exec->device, args->op_id, caps);
}

/* --- devices: two that are alike --- */

static graft_status device_count(void *self, int32_t *count) {
  (void)self;
  *count = 2;
  return GRAFT_OK;
}

static graft_status answer(const void *from, size_t bytes, void *value, size_t capacity, size_t *size) {
  *size = bytes;
  if (capacity < bytes) return GRAFT_INVALID_ARGUMENT;
  memcpy(value, from, bytes);
  return GRAFT_OK;
}

static graft_status device_query(void *self, int32_t index, graft_device_key key, void *value, size_t capacity,
                                 size_t *size) {
  static const char name[] = "threads of this machine";
  static const uint32_t timing = GRAFT_EVENT_TIMING, kinds = 1u << GRAFT_MEMORY_DEVICE | 1u << GRAFT_MEMORY_PINNED;
  static const int32_t priorities[2] = {-1, 1};
  int32_t peer = 1 - index;
  (void)self;
  switch (key) {
    case GRAFT_DEVICE_NAME: return answer(name, sizeof name, value, capacity, size);
    case GRAFT_DEVICE_STREAM_FLAGS:
    case GRAFT_DEVICE_EVENT_FLAGS: return answer(&timing, sizeof timing, value, capacity, size);
    case GRAFT_DEVICE_MEMORY_KINDS: return answer(&kinds, sizeof kinds, value, capacity, size);
    case GRAFT_DEVICE_PEERS: return answer(&peer, sizeof peer, value, capacity, size);
    case GRAFT_DEVICE_PRIORITIES: return answer(priorities, sizeof priorities, value, capacity, size);
    default: return GRAFT_UNIMPLEMENTED;
  }
}

static graft_status device_open(void *self, int32_t index, graft_device **device) {
  if (index < 0 || index > 1) return GRAFT_INVALID_ARGUMENT;
  graft_device *made = calloc(1, sizeof *made);
  if (!made) return GRAFT_OUT_OF_MEMORY;
  made->self = self;
  pthread_mutex_init(&made->lock, NULL);
  *device = made;
  return GRAFT_OK;
}

static graft_status device_close(graft_device *device) {
  profiler_start(device); /* forgets all */
  pthread_mutex_destroy(&device->lock);
  free(device);
  return GRAFT_OK;
}

/* --- the plugin --- */

static graft_status pl_close(void *self) {
  free(self);
  return GRAFT_OK;
}

static graft_status extension(void *self, const char *name, uint32_t minimum, const void **table) {
  (void)self;
  bool profiler = strcmp(name, GRAFT_EXTENSION_PROFILER) == 0 && minimum <= GRAFT_PROFILER_VERSION;
  bool graph = strcmp(name, GRAFT_EXTENSION_GRAPH) == 0 && minimum <= GRAFT_GRAPH_VERSION;
  bool capture = strcmp(name, GRAFT_EXTENSION_CAPTURE) == 0 && minimum <= GRAFT_CAPTURE_VERSION;
  if (!profiler && !graph && !capture) return GRAFT_UNIMPLEMENTED;
  *table = profiler ? (const void *)&profiler_api : graph ? (const void *)&graph_api : &capture_api;
  return GRAFT_OK;
}

/* It takes no options. */
static graft_status refuse_options(const graft_host *host, const char *const *options) {
  char text[256];
  if (!options || !*options) return GRAFT_OK;
  snprintf(text, sizeof text, "the option \"%.128s\" is not known", *options);
  host->set_error(host->context, text);
  return GRAFT_INVALID_ARGUMENT;
}

/* An instance that keeps every rule. */
static graft_status async_open(const graft_host *host, const char *name, async_instance **made) {
  async_instance *self = calloc(1, sizeof *self);
  if (!self) return GRAFT_OUT_OF_MEMORY;
  self->host = host;
  self->memory =
      (graft_memory_api){sizeof self->memory, mem_allocate, mem_release, mem_from_host, mem_to_host, mem_copy,
                         mem_copy_peer,       mem_fill,     NULL};
  self->stream = (graft_stream_api){sizeof self->stream, st_create,  st_destroy, st_flush, st_query, st_synchronize,
                                    ev_create,           ev_destroy, ev_record,  st_wait,  ev_query, ev_synchronize,
                                    ev_elapsed,          st_failure};
  self->core = (graft_core_ops){.struct_size = sizeof self->core, .neg = neg};
  self->plugin = (graft_plugin){.struct_size = sizeof self->plugin,
                                .abi_major = GRAFT_ABI_MAJOR,
                                .abi_minor = GRAFT_ABI_MINOR,
                                .self = self,
                                .name = name,
                                .vendor = "Graft",
                                .version = "1.0.0",
                                .close = pl_close,
                                .device_count = device_count,
                                .device_query = device_query,
                                .device_open = device_open,
                                .device_close = device_close,
                                .memory = &self->memory,
                                .stream = &self->stream,
                                .core = &self->core,
                                .op_caps = op_caps,
                                .op_query = op_query,
                                .extension = extension};
  *made = self;
  return GRAFT_OK;
}

#ifndef ASYNC_IS_PART
graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  async_instance *self;
  graft_status status = refuse_options(host, options);
  if (!status) status = async_open(host, "async", &self);
  if (!status) *plugin = &self->plugin;
  return status;
}
#endif
