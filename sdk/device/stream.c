/* Streams, and which one a thread uses. Calls that name one stream are serialised by its lock, except
 * those that the ABI says are thread-safe: query, synchronize and event_*. */
#include <stdlib.h>
#include <string.h>

#include "device/internal.h"

/* Structs of destroyed streams, kept for the next ones: see graft_rt_stream.id. */
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static graft_rt_stream *spare;
static _Atomic(uint64_t) last_id;

/* Recursive, because a slot that runs under the lock may ask the host for memory, which may use its stream. */
static void init_lock(pthread_mutex_t *lock) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

static graft_rt_stream *take_struct(void) {
  pthread_mutex_lock(&spare_lock);
  graft_rt_stream *stream = spare;
  if (stream) spare = stream->next;
  pthread_mutex_unlock(&spare_lock);
  if (stream) return stream;
  stream = calloc(1, sizeof *stream);
  if (stream) {
    init_lock(&stream->lock);
    pthread_rwlock_init(&stream->exchange, NULL);
  }
  return stream;
}

static void return_struct(graft_rt_stream *stream) {
  pthread_mutex_lock(&spare_lock);
  stream->next = spare;
  spare = stream;
  pthread_mutex_unlock(&spare_lock);
}

/* The plugin's account of a failure; false when it gives none. */
static bool ask_failure(graft_rt_device *device, graft_stream *stream, char *text, size_t capacity,
                        graft_failure_scope *scope) {
  size_t length = 0;
  *text = 0;
  *scope = GRAFT_FAILURE_NONE;
  graft_status asked = device->backend->stream.failure(device->handle, stream, text, capacity, &length, scope);
  text[capacity - 1] = 0;
  return !asked && *text;
}

graft_status dev_stream_status(graft_rt_device *device, graft_rt_stream *stream, graft_status status,
                               const char *what) {
  static const char *const scopes[] = {"", " (the stream takes no work until somebody has waited for it)",
                                       " (every stream of the device is unusable)",
                                       " (only a new process can use the device)"};
  if (status != GRAFT_STREAM_FAILED && status != GRAFT_DEVICE_LOST) return dev_status(device, status, what);
  char text[1024];
  graft_failure_scope scope;
  if (stream) pthread_rwlock_rdlock(&stream->exchange);
  bool told = ask_failure(device, stream ? stream->handle : NULL, text, sizeof text, &scope);
  if (stream) pthread_rwlock_unlock(&stream->exchange);
  if (!told) return dev_status(device, status, what);
  bool known = scope >= GRAFT_FAILURE_NONE && scope <= GRAFT_FAILURE_PROCESS;
  return err_about(status, device->text, "%s: %s%s", what, text, known ? scopes[scope] : "");
}

/* --- life of a stream --- */

static graft_status new_handle(graft_rt_device *device, int32_t priority, graft_stream_flags flags,
                               graft_stream **handle) {
  *handle = NULL;
  err_clear();
  graft_status status = device->backend->stream.create(device->handle, priority, flags, handle);
  if (status) return dev_status(device, status, "creating a stream");
  if (*handle) return GRAFT_OK;
  return err_about(GRAFT_INTERNAL, device->text, "creating a stream: the plugin said OK and gave no stream");
}

static graft_status stream_new(graft_rt_device *device, int32_t priority, graft_stream_flags flags,
                               graft_rt_stream **stream) {
  graft_rt_stream *made = take_struct();
  if (!made) return err_about(GRAFT_OUT_OF_MEMORY, device->text, "no host memory for a stream");
  graft_status status = new_handle(device, priority, flags, &made->handle);
  if (status) {
    return_struct(made);
    return status;
  }
  made->device = device;
  made->priority = priority;
  made->flags = flags;
  atomic_store(&made->capture, NULL);
  atomic_store(&made->id, atomic_fetch_add(&last_id, 1) + 1);
  pthread_mutex_lock(&device->streams_lock);
  made->next = device->streams;
  device->streams = made;
  pthread_mutex_unlock(&device->streams_lock);
  *stream = made;
  return GRAFT_OK;
}

/* From here on nobody else uses the handle: those who noted the stream by its id look at it under the same lock. */
static graft_stream *retire_handle(graft_rt_stream *stream) {
  pthread_rwlock_wrlock(&stream->exchange);
  atomic_store(&stream->id, 0);
  graft_stream *handle = stream->handle;
  stream->handle = NULL;
  pthread_rwlock_unlock(&stream->exchange);
  return handle;
}

static void unlink_stream(graft_rt_stream *stream) {
  pthread_mutex_lock(&stream->device->streams_lock);
  graft_rt_stream **at = &stream->device->streams;
  while (*at && *at != stream) at = &(*at)->next;
  if (*at) *at = stream->next;
  pthread_mutex_unlock(&stream->device->streams_lock);
}

static graft_status wait_for_stream(graft_rt_stream *stream) {
  pthread_rwlock_rdlock(&stream->exchange);
  graft_status status = stream->device->backend->stream.synchronize(stream->handle);
  pthread_rwlock_unlock(&stream->exchange);
  return status;
}

graft_status dev_stream_create_default(graft_rt_device *device) {
  return stream_new(device, 0, 0, &device->default_stream);
}

void dev_streams_destroy(graft_rt_device *device) {
  while (device->streams) {
    graft_rt_stream *stream = device->streams;
    device->streams = stream->next;
    device->backend->stream.destroy(retire_handle(stream));
    return_struct(stream);
  }
  device->default_stream = NULL;
}

graft_status dev_check_flags(const graft_rt_device *device, const char *what, uint32_t flags, uint32_t known) {
  uint32_t unknown = flags & 0xffffu & ~known;
  if (!unknown) return GRAFT_OK;
  return err_about(GRAFT_UNIMPLEMENTED, device->text, "the plugin does not know the %s flag 0x%x%s", what, unknown,
                   unknown & GRAFT_EVENT_TIMING ? " (timing)" : "");
}

graft_status graft_stream_create(graft_rt_device *device, int32_t priority, graft_stream_flags flags,
                                 graft_rt_stream **stream) {
  if (!device) return err_null(__func__, "device");
  if (!stream) return err_null(__func__, "stream");
  if (dev_forked(device)) return dev_forked_error(device);
  graft_status status = dev_check_flags(device, "stream", flags, device->stream_flags);
  if (status) return status;
  int32_t range[2] = {0, 0};
  size_t size = 0;
  const graft_plugin *plugin = &device->backend->plugin;
  if (priority && (plugin->device_query(plugin->self, device->index, GRAFT_DEVICE_PRIORITIES, range, sizeof range,
                                        &size) != GRAFT_OK ||
                   size != sizeof range)) {
    memset(range, 0, sizeof range);
  }
  /* Lowest and highest; a driver may count either way. */
  int32_t least = range[0] < range[1] ? range[0] : range[1], most = range[0] < range[1] ? range[1] : range[0];
  priority = priority < least ? least : priority > most ? most : priority;
  return stream_new(device, priority, flags, stream);
}

graft_status graft_stream_destroy(graft_rt_stream *stream) {
  if (!stream) return GRAFT_OK;
  graft_rt_device *device = stream->device;
  if (dev_forked(device)) return GRAFT_OK;
  if (stream == device->default_stream) {
    return err_about(GRAFT_INVALID_ARGUMENT, device->text, "the default stream is not destroyed");
  }
  /* The plugin is promised that no work refers to it. A failed stream has none, either. */
  wait_for_stream(stream);
  unlink_stream(stream);
  dev_hooks.stream_closing(stream);
  graft_stream *handle = retire_handle(stream);
  device->backend->stream.synchronize(handle); /* an event that the allocator put there meanwhile */
  err_clear();
  graft_status status = device->backend->stream.destroy(handle);
  return_struct(stream);
  return dev_status(device, status, "destroying a stream");
}

/* --- the current stream of a thread --- */

typedef struct current {
  graft_rt_device *device;
  graft_rt_stream *stream;
  uint64_t id; /* of the stream when it was made current: tells whether it was destroyed since */
} current;

static _Thread_local current *currents;
static _Thread_local int current_count, current_room;
static pthread_key_t currents_key; /* gives them back when the thread ends */
static pthread_once_t currents_once = PTHREAD_ONCE_INIT;

static void make_currents_key(void) {
  pthread_key_create(&currents_key, free);
}

static bool grow_currents(void) {
  pthread_once(&currents_once, make_currents_key);
  int room = current_room ? current_room * 2 : 4;
  current *grown = realloc(currents, (size_t)room * sizeof *grown);
  if (!grown) return false;
  currents = grown;
  current_room = room;
  pthread_setspecific(currents_key, grown);
  return true;
}

graft_rt_stream *graft_stream_current(graft_rt_device *device) {
  if (err_is_null(device, __func__, "device")) return NULL;
  for (int i = 0; i < current_count; i++) {
    if (currents[i].device != device) continue;
    if (atomic_load_explicit(&currents[i].stream->id, memory_order_relaxed) == currents[i].id) {
      return currents[i].stream;
    }
    currents[i] = currents[--current_count];
    break;
  }
  return device->default_stream;
}

void graft_stream_set_current(graft_rt_stream *stream) {
  if (err_is_null(stream, __func__, "stream")) return;
  graft_rt_device *device = stream->device;
  int at = 0;
  while (at < current_count && currents[at].device != device) at++;
  if (stream == device->default_stream) { /* needs no entry */
    if (at < current_count) currents[at] = currents[--current_count];
    return;
  }
  if (at == current_room && !grow_currents()) {
    err_log(GRAFT_LOG_ERROR, "%s: no host memory to note a thread's current stream; it keeps the one it had",
            device->text);
    return;
  }
  currents[at] = (current){device, stream, atomic_load(&stream->id)};
  if (at == current_count) current_count++;
}

/* --- waiting --- */

graft_rt_device *graft_stream_device(const graft_rt_stream *stream) {
  if (err_is_null(stream, __func__, "stream")) return NULL;
  return stream->device;
}

/* A failed stream stays failed, by the rules of the ABI, so a new one takes its place. Not while a call of it runs in
 * another thread: that one is told of the failure, too, and comes by here. [lock and exchange held] */
static bool replace_failed(graft_rt_stream *stream, char *text, size_t capacity) {
  graft_rt_device *device = stream->device;
  graft_stream *fresh, *failed = stream->handle;
  graft_failure_scope scope;
  if (!ask_failure(device, failed, text, capacity, &scope) || scope != GRAFT_FAILURE_STREAM) return false;
  if (new_handle(device, stream->priority, stream->flags, &fresh)) return false;
  stream->handle = fresh;
  device->backend->stream.destroy(failed);
  return true;
}

graft_status dev_waited(graft_rt_stream *stream, graft_status status, const char *what) {
  char text[1024];
  bool replaced = false;
  if (status == GRAFT_STREAM_FAILED && pthread_mutex_trylock(&stream->lock) == 0) {
    if (pthread_rwlock_trywrlock(&stream->exchange) == 0) {
      replaced = replace_failed(stream, text, sizeof text);
      pthread_rwlock_unlock(&stream->exchange);
    }
    pthread_mutex_unlock(&stream->lock);
  }
  if (!replaced) return dev_stream_status(stream->device, stream, status, what);
  return err_about(status, stream->device->text,
                   "%s: %s (what this stream did from there on may be wrong; it takes new work)", what, text);
}

static graft_status query_handle(graft_rt_stream *stream) {
  pthread_rwlock_rdlock(&stream->exchange);
  graft_status status = stream->device->backend->stream.query(stream->handle);
  pthread_rwlock_unlock(&stream->exchange);
  return status;
}

graft_status dev_event_record(graft_event *event, graft_rt_stream *stream) {
  pthread_rwlock_rdlock(&stream->exchange);
  graft_status status = stream->device->backend->stream.event_record(event, stream->handle);
  pthread_rwlock_unlock(&stream->exchange);
  return status;
}

bool dev_stream_fence(graft_rt_device *device, graft_rt_stream *stream, uint64_t id, graft_event **event) {
  const graft_stream_api *api = &device->backend->stream;
  bool recorded = false;
  pthread_rwlock_rdlock(&stream->exchange);
  if (atomic_load(&stream->id) == id) {
    graft_status status = *event ? GRAFT_OK : api->event_create(device->handle, 0, event);
    recorded = !status && *event && !api->event_record(*event, stream->handle);
    if (!recorded) api->synchronize(stream->handle); /* without an event, or on a failed stream */
  }
  pthread_rwlock_unlock(&stream->exchange);
  return recorded;
}

graft_status graft_stream_query(graft_rt_stream *stream) {
  if (!stream) return err_null(__func__, "stream");
  graft_rt_device *device = stream->device;
  if (dev_forked(device)) return dev_forked_error(device);
  err_clear();
  graft_status status = query_handle(stream);
  if (status == GRAFT_NOT_READY) return status; /* an answer, no failure */
  return status ? dev_stream_status(device, stream, status, "querying a stream") : GRAFT_OK;
}

graft_status graft_stream_synchronize(graft_rt_stream *stream) {
  if (!stream) return err_null(__func__, "stream");
  if (dev_forked(stream->device)) return dev_forked_error(stream->device);
  err_clear();
  graft_status status = wait_for_stream(stream);
  return status ? dev_waited(stream, status, "waiting for a stream") : GRAFT_OK;
}

graft_status graft_device_synchronize(graft_rt_device *device) {
  if (!device) return err_null(__func__, "device");
  if (dev_forked(device)) return dev_forked_error(device);
  graft_status first = GRAFT_OK;
  /* Held meanwhile, so that no stream is destroyed under us; only making and destroying streams waits for it. */
  pthread_mutex_lock(&device->streams_lock);
  for (graft_rt_stream *stream = device->streams; stream; stream = stream->next) {
    err_clear();
    graft_status status = wait_for_stream(stream);
    if (status && !first) first = dev_waited(stream, status, "waiting for the device");
  }
  pthread_mutex_unlock(&device->streams_lock);
  return first;
}

void dev_wait_for_work(graft_rt_device *device) {
  if (dev_forked(device)) return;
  pthread_mutex_lock(&device->streams_lock);
  for (graft_rt_stream *stream = device->streams; stream; stream = stream->next) wait_for_stream(stream);
  pthread_mutex_unlock(&device->streams_lock);
}
