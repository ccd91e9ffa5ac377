/* A plugin that does nothing, correctly: memory is the host's, an op returns at once and computes nothing. It is what
 * host time is measured on and what the allocator and the loader are tested with; -DBROKEN_<WHAT> makes it break one
 * rule.
 *
 * Options: capacity=BYTES granularity=BYTES alignment=BYTES copy_granularity=BYTES max_allocation=BYTES indivisible=1
 * pinned=1 timing=1, address=host|device|none (none: buffers have neither pointer nor address), lazy=1 (work ends only
 * when someone waits for it). */
#include "null.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"

#ifndef PLUGIN_NAME
#define PLUGIN_NAME "null"
#endif

typedef enum address_kind { ADDRESS_HOST, ADDRESS_DEVICE, ADDRESS_NONE } address_kind;

typedef struct instance {
  graft_plugin plugin;
  const graft_host *host;
  uint64_t capacity, granularity, alignment, copy_granularity, max_allocation;
  int indivisible, pinned, timing, lazy;
  address_kind address;
  atomic_int fail;
  atomic_long unfinished; /* work that is submitted and not done, over all streams */
  pthread_mutex_t lock;   /* guards all_streams */
  graft_stream *all_streams;
  _Atomic(int64_t) allocate_calls, release_calls, fill_calls, buffers, streams, events, devices, bytes;
  _Atomic(int64_t) copies_reusable, copies_kept, unaligned, released_busy, calls;
} instance;

struct graft_device {
  instance *self;
};

struct graft_buffer {
  instance *self;
  uint64_t bytes;
  char *memory;
};

struct graft_stream {
  instance *self;
  graft_stream_flags flags;
  atomic_long submitted, done;
  graft_stream *next;
};

struct graft_event {
  instance *self;
  graft_event_flags flags;
  atomic_int timed; /* the latest record lies on a stream with TIMING */
  _Atomic(graft_stream *) stream;
  atomic_long at;
};

/* --- work: a number that grows; done at once unless lazy --- */

static void finish(graft_stream *stream, long upto) {
  long done = atomic_load(&stream->done);
  while (done < upto && !atomic_compare_exchange_weak(&stream->done, &done, upto)) continue;
  if (done < upto) atomic_fetch_sub(&stream->self->unfinished, upto - done);
}

static long submit(graft_stream *stream) {
  long number = atomic_fetch_add(&stream->submitted, 1) + 1;
  atomic_fetch_add(&stream->self->unfinished, 1);
  if (!stream->self->lazy) finish(stream, number);
  return number;
}

static graft_status health(instance *self) {
  return atomic_load(&self->fail) ? GRAFT_STREAM_FAILED : GRAFT_OK;
}

/* --- memory --- */

static graft_status mem_allocate(graft_device *device, graft_allocation *request) {
  instance *self = device->self;
  self->calls++;
  self->allocate_calls++;
  if (request->flags & 0xffff) return GRAFT_INVALID_ARGUMENT;
  if (request->kind != GRAFT_MEMORY_DEVICE && !(request->kind == GRAFT_MEMORY_PINNED && self->pinned)) {
    return GRAFT_UNIMPLEMENTED;
  }
  if (request->bytes == 0 || request->bytes % self->granularity || request->bytes > self->max_allocation) {
    self->host->set_error(self->host->context, "null: a size that this device does not take");
    return GRAFT_INVALID_ARGUMENT;
  }
  if ((uint64_t)self->bytes + request->bytes > self->capacity) return GRAFT_OUT_OF_MEMORY;
  graft_buffer *buffer = calloc(1, sizeof *buffer);
  uint64_t alignment = request->alignment ? request->alignment : self->alignment;
  if (alignment < 64) alignment = 64;
  uint64_t rounded = (request->bytes + alignment - 1) / alignment * alignment;
  if (buffer) buffer->memory = aligned_alloc(alignment, rounded);
  if (!buffer || !buffer->memory) {
    free(buffer);
    return GRAFT_OUT_OF_MEMORY;
  }
  buffer->self = self;
  buffer->bytes = request->bytes;
  self->bytes += (int64_t)request->bytes;
  self->buffers++;
  request->buffer = buffer;
  if (self->address == ADDRESS_HOST || request->kind == GRAFT_MEMORY_PINNED) request->host_pointer = buffer->memory;
  if (self->address == ADDRESS_DEVICE) request->device_address = (uint64_t)(uintptr_t)buffer->memory;
  return GRAFT_OK;
}

static graft_status mem_release(graft_device *device, graft_buffer *buffer) {
  instance *self = device->self;
  self->calls++;
  self->release_calls++;
  if (atomic_load(&self->unfinished)) self->released_busy++;
  self->bytes -= (int64_t)buffer->bytes;
  self->buffers--;
  free(buffer->memory);
  free(buffer);
  return GRAFT_OK;
}

static graft_status check_range(graft_buffer *buffer, uint64_t offset, uint64_t bytes) {
  instance *self = buffer->self;
  self->calls++;
  if (offset % self->copy_granularity || bytes % self->copy_granularity) self->unaligned++;
  return offset <= buffer->bytes && bytes <= buffer->bytes - offset ? GRAFT_OK : GRAFT_INVALID_ARGUMENT;
}

static graft_status mem_from_host(graft_stream *stream, graft_buffer *to, uint64_t offset, const void *from,
                                  uint64_t bytes, graft_copy_flags flags) {
  if (check_range(to, offset, bytes)) return GRAFT_INVALID_ARGUMENT;
  if (flags & 0xffff & ~(uint32_t)GRAFT_COPY_SOURCE_REUSABLE) return GRAFT_INVALID_ARGUMENT;
  if (flags & GRAFT_COPY_SOURCE_REUSABLE) {
    stream->self->copies_reusable++;
  } else {
    stream->self->copies_kept++;
  }
  memcpy(to->memory + offset, from, bytes);
  submit(stream);
  return GRAFT_OK;
}

static graft_status mem_to_host(graft_stream *stream, void *to, graft_buffer *from, uint64_t offset, uint64_t bytes,
                                graft_copy_flags flags) {
  if (check_range(from, offset, bytes) || flags & 0xffff) return GRAFT_INVALID_ARGUMENT;
  memcpy(to, from->memory + offset, bytes);
  submit(stream);
  return GRAFT_OK;
}

static graft_status mem_copy(graft_stream *stream, graft_buffer *to, uint64_t to_offset, graft_buffer *from,
                             uint64_t from_offset, uint64_t bytes) {
  if (check_range(to, to_offset, bytes) || check_range(from, from_offset, bytes)) return GRAFT_INVALID_ARGUMENT;
  memcpy(to->memory + to_offset, from->memory + from_offset, bytes);
  submit(stream);
  return GRAFT_OK;
}

static graft_status mem_fill(graft_stream *stream, graft_buffer *to, uint64_t offset, uint64_t bytes,
                             const void *pattern, uint32_t pattern_bytes) {
  if (check_range(to, offset, bytes) || bytes % pattern_bytes) return GRAFT_INVALID_ARGUMENT;
  stream->self->fill_calls++;
  fill_with(to->memory + offset, bytes, pattern, pattern_bytes);
  submit(stream);
  return GRAFT_OK;
}

/* --- streams and events --- */

static graft_status st_create(graft_device *device, int32_t priority, graft_stream_flags flags, graft_stream **stream) {
  (void)priority;
  instance *self = device->self;
  self->calls++;
  if (flags & 0xffff & ~(self->timing ? GRAFT_STREAM_TIMING : 0u)) return GRAFT_INVALID_ARGUMENT;
  graft_stream *made = calloc(1, sizeof *made);
  if (!made) return GRAFT_OUT_OF_MEMORY;
  made->self = self;
  made->flags = flags;
  self->streams++;
  pthread_mutex_lock(&self->lock);
  made->next = self->all_streams;
  self->all_streams = made;
  pthread_mutex_unlock(&self->lock);
  *stream = made;
  return GRAFT_OK;
}

static graft_status st_destroy(graft_stream *stream) {
  stream->self->calls++;
  if (atomic_load(&stream->submitted) != atomic_load(&stream->done)) stream->self->released_busy++;
  stream->self->streams--;
  /* Stays in the list of all: an event may outlive its stream. */
  return GRAFT_OK;
}

static graft_status st_query(graft_stream *stream) {
  stream->self->calls++;
  if (health(stream->self)) return health(stream->self);
  return atomic_load(&stream->submitted) == atomic_load(&stream->done) ? GRAFT_OK : GRAFT_NOT_READY;
}

static graft_status st_synchronize(graft_stream *stream) {
  stream->self->calls++;
  finish(stream, atomic_load(&stream->submitted));
  return health(stream->self);
}

static graft_status ev_create(graft_device *device, graft_event_flags flags, graft_event **event) {
  instance *self = device->self;
  self->calls++;
  if (flags & 0xffff & ~(self->timing ? GRAFT_EVENT_TIMING : 0u)) return GRAFT_INVALID_ARGUMENT;
  graft_event *made = calloc(1, sizeof *made);
  if (!made) return GRAFT_OUT_OF_MEMORY;
  made->self = self;
  made->flags = flags;
  self->events++;
  *event = made;
  return GRAFT_OK;
}

static graft_status ev_destroy(graft_event *event) {
  event->self->calls++;
  event->self->events--;
  free(event);
  return GRAFT_OK;
}

static graft_status ev_record(graft_event *event, graft_stream *stream) {
  event->self->calls++;
  if (health(event->self)) return health(event->self);
  atomic_store(&event->stream, stream);
  atomic_store(&event->timed, (stream->flags & GRAFT_STREAM_TIMING) != 0);
  atomic_store(&event->at, submit(stream));
  return GRAFT_OK;
}

static graft_status st_wait(graft_stream *stream, graft_event *event) {
  (void)event;
  stream->self->calls++;
  submit(stream);
  return GRAFT_OK;
}

static graft_status ev_query(graft_event *event) {
  event->self->calls++;
  graft_stream *stream = atomic_load(&event->stream);
  if (health(event->self)) return health(event->self);
  if (!stream) return GRAFT_OK;
  return atomic_load(&stream->done) >= atomic_load(&event->at) ? GRAFT_OK : GRAFT_NOT_READY;
}

static graft_status ev_synchronize(graft_event *event) {
  event->self->calls++;
  graft_stream *stream = atomic_load(&event->stream);
  if (stream) finish(stream, atomic_load(&event->at));
  return health(event->self);
}

static graft_status ev_elapsed(graft_event *from, graft_event *to, double *milliseconds) {
  if (!(from->flags & to->flags & GRAFT_EVENT_TIMING)) return GRAFT_UNIMPLEMENTED;
  if (!atomic_load(&from->timed) || !atomic_load(&to->timed)) return GRAFT_NOT_READY;
  *milliseconds = (double)(atomic_load(&to->at) - atomic_load(&from->at));
  return GRAFT_OK;
}

static graft_status st_failure(graft_device *device, graft_stream *stream, char *text, size_t capacity, size_t *length,
                               graft_failure_scope *scope) {
  (void)stream;
  const char *why = atomic_load(&device->self->fail) ? "a fault made for a test" : "";
  *length = strlen(why);
  *scope = *why ? GRAFT_FAILURE_STREAM : GRAFT_FAILURE_NONE;
  snprintf(text, capacity, "%s", why);
  return GRAFT_OK;
}

/* --- ops --- */

static graft_status add_tensor(const graft_exec *exec, const graft_args_add_Tensor *args) {
  (void)exec, (void)args;
  return GRAFT_OK;
}

static graft_status convolution(const graft_exec *exec, const graft_args_convolution *args) {
  (void)exec, (void)args;
  return GRAFT_OK;
}

static graft_status op_caps(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  (void)device;
  if (op_id != GRAFT_OP_ADD_TENSOR && op_id != GRAFT_OP_CONVOLUTION) return GRAFT_UNIMPLEMENTED;
  graft_op_caps known = {
      .input_dtypes = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F32) | GRAFT_DTYPE_BIT(GRAFT_NUMBER_I64),
      .output_dtypes = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F32) | GRAFT_DTYPE_BIT(GRAFT_NUMBER_I64),
      .flags = GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_IN_PLACE | GRAFT_CAP_HOST_VALUE,
  };
  known.struct_size = caps->struct_size;
#ifdef UNKNOWN_ANSWERS /* what a later minor may add */
  known.input_dtypes |= GRAFT_DTYPE_BIT(40);
  known.output_dtypes |= GRAFT_DTYPE_BIT(40);
  known.flags |= 0x40008000;
  known.exec_flags_known |= 0x4000;
#endif
  memcpy(caps, &known, caps->struct_size < sizeof known ? caps->struct_size : sizeof known);
  return GRAFT_OK;
}

/* --- the plugin --- */

static graft_status pl_close(void *self) {
  for (graft_stream *stream = ((instance *)self)->all_streams, *next; stream; stream = next) {
    next = stream->next;
    free(stream);
  }
  free(self);
  return GRAFT_OK;
}

static graft_status device_count(void *self, int32_t *count) {
  (void)self;
#if defined BROKEN_NO_DEVICE
  *count = 0;
#elif defined BROKEN_BAD_COUNT
  *count = -5;
#else
  *count = 2;
#endif
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
  (void)index;
  const instance *i = self;
  uint64_t wide = 0;
  uint32_t word = 0;
#ifdef UNKNOWN_ANSWERS
  if (key == GRAFT_DEVICE_DTYPES || key == GRAFT_DEVICE_DENORMALS)
    wide = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F32) | GRAFT_DTYPE_BIT(40);
  if (key == GRAFT_DEVICE_KIND) word = 77;
  if (key == GRAFT_DEVICE_MEMORY_KINDS)
    word = 1u << GRAFT_MEMORY_DEVICE | 1u << 9 | 1u << GRAFT_MEMORY_VENDOR_KINDS | 1u << 31;
  if (key >= GRAFT_DEVICE_VENDOR_KEYS) word = 1;
  if (wide) return answer(&wide, sizeof wide, value, capacity, size);
  if (word) return answer(&word, sizeof word, value, capacity, size);
#endif
  switch (key) {
    case GRAFT_DEVICE_NAME: return answer("a device that does nothing", 27, value, capacity, size);
    case GRAFT_DEVICE_ALIGNMENT: wide = i->alignment; break;
    case GRAFT_DEVICE_GRANULARITY: wide = i->granularity; break;
    case GRAFT_DEVICE_COPY_GRANULARITY: wide = i->copy_granularity; break;
    case GRAFT_DEVICE_MAX_ALLOCATION: wide = i->max_allocation; break;
    case GRAFT_DEVICE_TOTAL_MEMORY: wide = i->capacity; break;
    case GRAFT_DEVICE_INDIVISIBLE: word = (uint32_t)i->indivisible; break;
    case GRAFT_DEVICE_MEMORY_KINDS:
      word = 1u << GRAFT_MEMORY_DEVICE | (uint32_t)i->pinned << GRAFT_MEMORY_PINNED;
      break;
    case GRAFT_DEVICE_STREAM_FLAGS: word = i->timing ? GRAFT_STREAM_TIMING : 0; break;
    case GRAFT_DEVICE_EVENT_FLAGS: word = i->timing ? GRAFT_EVENT_TIMING : 0; break;
    default: return GRAFT_UNIMPLEMENTED;
  }
  return wide ? answer(&wide, sizeof wide, value, capacity, size) : answer(&word, sizeof word, value, capacity, size);
}

static graft_status device_open(void *self, int32_t index, graft_device **device) {
  (void)index;
  instance *i = self;
#if defined BROKEN_DEVICE_OPEN
  i->host->set_error(i->host->context, "the fan is not turning");
  return GRAFT_DEVICE_LOST;
#elif defined BROKEN_NO_HANDLE
  (void)device;
  return GRAFT_OK;
#endif
  graft_device *made = calloc(1, sizeof *made);
  if (!made) return GRAFT_OUT_OF_MEMORY;
  made->self = i;
  i->devices++;
  *device = made;
  return GRAFT_OK;
}

static graft_status device_close(graft_device *device) {
  device->self->devices--;
  free(device);
  return GRAFT_OK;
}

static void test_counters(void *self, null_counters *counters) {
  instance *i = self;
  *counters = (null_counters){i->allocate_calls, i->release_calls, i->fill_calls, i->buffers,         i->streams,
                              i->events,         i->devices,       i->bytes,      i->copies_reusable, i->copies_kept,
                              i->unaligned,      i->released_busy, i->calls};
}

static void test_finish(void *self) {
  instance *i = self;
  pthread_mutex_lock(&i->lock);
  for (graft_stream *s = i->all_streams; s; s = s->next) finish(s, atomic_load(&s->submitted));
  pthread_mutex_unlock(&i->lock);
}

static void test_fault(void *self, int on) {
  atomic_store(&((instance *)self)->fail, on);
}

static const null_test_api test_api = {sizeof test_api, test_counters, test_finish, test_fault};

static graft_status extension(void *self, const char *name, uint32_t minimum, const void **table) {
  (void)self, (void)minimum;
  if (strcmp(name, NULL_EXTENSION) != 0) return GRAFT_UNIMPLEMENTED;
  *table = &test_api;
  return GRAFT_OK;
}

/* What a newer plugin has at the end of its structs: a field that this host does not know. */
typedef struct long_memory {
  graft_memory_api known;
  void *unknown;
} long_memory;
typedef struct long_stream {
  graft_stream_api known;
  void *unknown;
} long_stream;
typedef struct long_core {
  graft_core_ops known;
  void *unknown;
} long_core;

static long_memory memory = {
    {sizeof(graft_memory_api), mem_allocate, mem_release, mem_from_host, mem_to_host, mem_copy, NULL, mem_fill, NULL},
    &memory};
static long_stream stream = {
    {sizeof(graft_stream_api), st_create, st_destroy, NULL, st_query, st_synchronize, ev_create, ev_destroy, ev_record,
     st_wait, ev_query, ev_synchronize, ev_elapsed, st_failure},
    &stream};
static long_core core = {{.struct_size = sizeof(graft_core_ops), .add_Tensor = add_tensor, .convolution = convolution},
                         &core};

static const graft_plugin *plugin_of(instance *self);

/* Reads "key=number"; false where the key is not known. */
static int read_option(instance *self, const char *option) {
  struct {
    const char *key;
    uint64_t *wide;
    int *flag;
  } keys[] = {{"capacity=", &self->capacity, NULL},
              {"granularity=", &self->granularity, NULL},
              {"alignment=", &self->alignment, NULL},
              {"copy_granularity=", &self->copy_granularity, NULL},
              {"max_allocation=", &self->max_allocation, NULL},
              {"indivisible=", NULL, &self->indivisible},
              {"pinned=", NULL, &self->pinned},
              {"timing=", NULL, &self->timing},
              {"lazy=", NULL, &self->lazy}};
  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
    size_t length = strlen(keys[k].key);
    if (strncmp(option, keys[k].key, length) != 0) continue;
    uint64_t number = strtoull(option + length, NULL, 10);
    if (keys[k].wide) *keys[k].wide = number;
    if (keys[k].flag) *keys[k].flag = (int)number;
    return 1;
  }
  if (strcmp(option, "address=device") == 0) self->address = ADDRESS_DEVICE;
  if (strcmp(option, "address=none") == 0) self->address = ADDRESS_NONE;
  return strncmp(option, "address=", 8) == 0;
}

static graft_status refuse_option(const graft_host *host, const char *option) {
  char text[256];
  snprintf(text, sizeof text, "the option \"%.128s\" is not known", option);
  host->set_error(host->context, text);
  return GRAFT_INVALID_ARGUMENT;
}

#if defined BROKEN_EXPORT
GRAFT_EXPORT void null_helper(void);
void null_helper(void) {}
#elif defined BROKEN_IMPORT /* weak, so that the library loads all the same */
extern const char *graft_version(void) __attribute__((weak));
#endif

#if defined BROKEN_NO_ENTRY
#define ENTRY null_has_no_entry
GRAFT_EXPORT graft_status ENTRY(const graft_host *, const char *const *, const graft_plugin **);
#elif defined BROKEN_OTHER_ENTRY
#define ENTRY graft_plugin_open_v2
GRAFT_EXPORT graft_status ENTRY(const graft_host *, const char *const *, const graft_plugin **);
#else
#define ENTRY graft_plugin_open_v1
#endif

graft_status ENTRY(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
#if defined BROKEN_OPEN
  host->set_error(host->context, "the licence has run out");
  return GRAFT_INTERNAL;
#elif defined BROKEN_STATUS
  return -7;
#elif defined BROKEN_NO_PLUGIN
  return GRAFT_OK;
#endif
  instance *self = calloc(1, sizeof *self + sizeof(void *));
  if (!self) return GRAFT_OUT_OF_MEMORY;
  pthread_mutex_init(&self->lock, NULL);
  self->host = host;
  self->capacity = UINT64_C(1) << 40;
  self->max_allocation = UINT64_C(1) << 40;
  self->granularity = 512;
  self->alignment = 64;
  self->copy_granularity = 1;
  for (; options && *options; options++) {
    if (read_option(self, *options)) continue;
    free(self);
    return refuse_option(host, *options);
  }
  static instance *volatile kept; /* an instance so broken that it can't be closed is no leak */
  kept = self;
  *plugin = plugin_of(kept);
  return GRAFT_OK;
}

static const graft_plugin *plugin_of(instance *self) {
  graft_plugin *p = &self->plugin;
  *p = (graft_plugin){
      .struct_size = sizeof *p,
      .abi_major = GRAFT_ABI_MAJOR,
      .abi_minor = GRAFT_ABI_MINOR,
      .self = self,
      .name = PLUGIN_NAME,
      .vendor = "Graft",
      .version = "1.0.0",
      .close = pl_close,
      .device_count = device_count,
      .device_query = device_query,
      .device_open = device_open,
      .device_close = device_close,
      .memory = &memory.known,
      .stream = &stream.known,
      .core = &core.known,
      .op_caps = op_caps,
      .extension = extension,
  };
#if defined BROKEN_IMPORT
  if (graft_version) p->version = graft_version();
#elif defined BROKEN_MAJOR
  p->abi_major = GRAFT_ABI_MAJOR + 1;
#elif defined BROKEN_SIZE_ZERO
  p->struct_size = 0;
#elif defined BROKEN_SIZE_SMALL
  p->struct_size = offsetof(graft_plugin, device_close);
#elif defined BROKEN_FUNCTION
  p->device_open = NULL;
#elif defined BROKEN_MEMORY_FUNCTION
  memory.known.fill = NULL;
#elif defined BROKEN_STREAM_FUNCTION
  stream.known.event_record = NULL;
#elif defined BROKEN_STREAM_SIZE
  stream.known.struct_size = offsetof(graft_stream_api, failure);
#elif defined BROKEN_NO_MEMORY
  p->memory = NULL;
#elif defined BROKEN_CORE_SIZE
  core.known.struct_size = 0;
#elif defined BROKEN_NAME
  p->name = "no/name";
#elif defined SHORT_STRUCTS /* an older plugin: every struct ends before its last optional field */
  p->struct_size = offsetof(graft_plugin, extension);
  core.known.struct_size = sizeof(graft_core_ops) - sizeof(void *);
#elif defined LONG_STRUCTS  /* a newer one: every struct has one more field */
  p->struct_size = sizeof *p + sizeof(void *);
  memory.known.struct_size = sizeof memory;
  stream.known.struct_size = sizeof stream;
  core.known.struct_size = sizeof core;
  p->abi_minor = GRAFT_ABI_MINOR + 7;
#endif
  return p;
}
