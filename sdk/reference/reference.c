/* See reference.h. */
#include "reference/reference.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ops/core/op.h"
#include "ops/core/ref.h"

struct graft_device {
  int unused;
};
struct graft_stream {
  graft_stream_flags flags;
};
struct graft_event {
  graft_event_flags flags;
  bool recorded, timed;
  struct timespec time;
};
static graft_device the_device;

/* --- memory --- */

static graft_status ref_allocate(graft_device *device, graft_allocation *request) {
  (void)device;
  bool import = request->kind == GRAFT_MEMORY_IMPORT;
  if (request->flags & 0xffff) return GRAFT_INVALID_ARGUMENT; /* none is defined */
  if (request->kind != GRAFT_MEMORY_DEVICE && request->kind != GRAFT_MEMORY_PINNED && !import)
    return GRAFT_UNIMPLEMENTED;
  uint64_t alignment = request->alignment > 64 ? request->alignment : 64;
  uint64_t bytes = (request->bytes + alignment - 1) / alignment * alignment;
  graft_buffer *buffer = calloc(1, sizeof *buffer);
  if (!buffer) return GRAFT_OUT_OF_MEMORY;
  buffer->imported = import;
  buffer->data = import ? request->host_pointer : aligned_alloc(alignment, bytes);
  if (!buffer->data) {
    free(buffer);
    return err_set(GRAFT_OUT_OF_MEMORY, "no %llu bytes of host memory", (unsigned long long)bytes);
  }
  request->buffer = buffer;
  request->host_pointer = buffer->data;
  request->device_address = (uint64_t)(uintptr_t)buffer->data;
  return GRAFT_OK;
}

static graft_status ref_release(graft_device *device, graft_buffer *buffer) {
  (void)device;
  if (!buffer->imported) free(buffer->data);
  free(buffer);
  return GRAFT_OK;
}

static bool unknown_flags(graft_copy_flags flags) {
  return flags & 0xffff & ~(uint32_t)GRAFT_COPY_SOURCE_REUSABLE;
}

static graft_status ref_copy_from_host(graft_stream *stream, graft_buffer *to, uint64_t offset, const void *from,
                                       uint64_t bytes, graft_copy_flags flags) {
  (void)stream;
  if (unknown_flags(flags)) return GRAFT_INVALID_ARGUMENT;
  memcpy(to->data + offset, from, bytes);
  return GRAFT_OK;
}

static graft_status ref_copy_to_host(graft_stream *stream, void *to, graft_buffer *from, uint64_t offset,
                                     uint64_t bytes, graft_copy_flags flags) {
  (void)stream;
  if (unknown_flags(flags)) return GRAFT_INVALID_ARGUMENT;
  memcpy(to, from->data + offset, bytes);
  return GRAFT_OK;
}

static graft_status ref_copy(graft_stream *stream, graft_buffer *to, uint64_t to_offset, graft_buffer *from,
                             uint64_t from_offset, uint64_t bytes) {
  (void)stream;
  memcpy(to->data + to_offset, from->data + from_offset, bytes);
  return GRAFT_OK;
}

static graft_status ref_fill(graft_stream *stream, graft_buffer *to, uint64_t offset, uint64_t bytes,
                             const void *pattern, uint32_t pattern_bytes) {
  (void)stream;
  for (uint64_t i = 0; i + pattern_bytes <= bytes; i += pattern_bytes) {
    memcpy(to->data + offset + i, pattern, pattern_bytes);
  }
  return GRAFT_OK;
}

static const graft_memory_api memory_api = {.struct_size = sizeof memory_api,
                                            .allocate = ref_allocate,
                                            .release = ref_release,
                                            .copy_from_host = ref_copy_from_host,
                                            .copy_to_host = ref_copy_to_host,
                                            .copy = ref_copy,
                                            .fill = ref_fill};

/* --- streams and events --- */

static graft_status ref_stream_create(graft_device *device, int32_t priority, graft_stream_flags flags,
                                      graft_stream **stream) {
  (void)device, (void)priority;
  if (flags & 0xffff & ~(uint32_t)GRAFT_STREAM_TIMING) return GRAFT_INVALID_ARGUMENT;
  graft_stream *made = calloc(1, sizeof *made);
  if (!made) return GRAFT_OUT_OF_MEMORY;
  made->flags = flags;
  *stream = made;
  return GRAFT_OK;
}

static graft_status ref_stream_destroy(graft_stream *stream) {
  free(stream);
  return GRAFT_OK;
}

static graft_status ref_stream_done(graft_stream *stream) {
  (void)stream;
  return GRAFT_OK;
}

static graft_status ref_event_create(graft_device *device, graft_event_flags flags, graft_event **event) {
  (void)device;
  if (flags & 0xffff & ~(uint32_t)GRAFT_EVENT_TIMING) return GRAFT_INVALID_ARGUMENT;
  graft_event *made = calloc(1, sizeof *made);
  if (!made) return GRAFT_OUT_OF_MEMORY;
  made->flags = flags;
  *event = made;
  return GRAFT_OK;
}

static graft_status ref_event_destroy(graft_event *event) {
  free(event);
  return GRAFT_OK;
}

static graft_status ref_event_record(graft_event *event, graft_stream *stream) {
  event->recorded = true;
  event->timed = (event->flags & GRAFT_EVENT_TIMING) && (stream->flags & GRAFT_STREAM_TIMING);
  clock_gettime(CLOCK_MONOTONIC, &event->time);
  return GRAFT_OK;
}

static graft_status ref_stream_wait(graft_stream *stream, graft_event *event) {
  (void)stream, (void)event;
  return GRAFT_OK;
}

static graft_status ref_event_done(graft_event *event) {
  (void)event;
  return GRAFT_OK;
}

static graft_status ref_event_elapsed(graft_event *from, graft_event *to, double *milliseconds) {
  if (!(from->flags & to->flags & GRAFT_EVENT_TIMING)) return GRAFT_UNIMPLEMENTED;
  if (!from->recorded || !to->recorded) return GRAFT_NOT_READY;
  if (!from->timed || !to->timed) return GRAFT_UNIMPLEMENTED;
  *milliseconds =
      (double)(to->time.tv_sec - from->time.tv_sec) * 1e3 + (double)(to->time.tv_nsec - from->time.tv_nsec) * 1e-6;
  return GRAFT_OK;
}

static graft_status ref_failure(graft_device *device, graft_stream *stream, char *text, size_t capacity, size_t *length,
                                graft_failure_scope *scope) {
  (void)device, (void)stream;
  if (capacity) *text = 0;
  *length = 0;
  *scope = GRAFT_FAILURE_NONE;
  return GRAFT_OK;
}

static const graft_stream_api stream_api = {.struct_size = sizeof stream_api,
                                            .create = ref_stream_create,
                                            .destroy = ref_stream_destroy,
                                            .query = ref_stream_done,
                                            .synchronize = ref_stream_done,
                                            .event_create = ref_event_create,
                                            .event_destroy = ref_event_destroy,
                                            .event_record = ref_event_record,
                                            .stream_wait = ref_stream_wait,
                                            .event_query = ref_event_done,
                                            .event_synchronize = ref_event_done,
                                            .event_elapsed = ref_event_elapsed,
                                            .failure = ref_failure};

/* --- ops --- */

static graft_core_ops core;
static graft_prims_ops prims; /* those that equal no op of the other tables */
static graft_train_ops train;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void build_tables(void) {
  core.struct_size = sizeof core;
  prims.struct_size = sizeof prims;
  train.struct_size = sizeof train;
  size_t count;
  const op_schema *all = op_schema_all(&count);
  for (size_t i = 0; i < count; i++) {
    const op_def *def = op_def_of(all[i].id);
    if (!def || !def->reference || all[i].route != OPROUTE_SLOT) continue;
    char *const tables[] = {[OPT_CORE] = (char *)&core, [OPT_PRIMS] = (char *)&prims, [OPT_TRAIN] = (char *)&train};
    memcpy(tables[all[i].table] + all[i].slot_offset, &def->reference, sizeof def->reference);
  }
}

const graft_core_ops *ref_core(void) {
  pthread_once(&tables_once, build_tables);
  return &core;
}

const graft_prims_ops *ref_prims(void) {
  pthread_once(&tables_once, build_tables);
  return &prims;
}

const graft_train_ops *ref_train(void) {
  pthread_once(&tables_once, build_tables);
  return &train;
}

static graft_status ref_op_caps(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  (void)device;
  const op_def *def = op_def_of(op_id);
  bool custom = op_id >= GRAFT_OP_VENDOR_IDS; /* the function of a plugin: as little as that of any plugin's op */
  if (custom || !def || !def->reference) return GRAFT_UNIMPLEMENTED;
  graft_op_caps mine = {.struct_size = caps->struct_size, .exec_flags_known = GRAFT_EXEC_DETERMINISTIC};
  mine.flags = GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED | GRAFT_CAP_HOST_VALUE | GRAFT_CAP_EMPTY |
               GRAFT_CAP_DETERMINISTIC | GRAFT_CAP_INDEX_I32 | GRAFT_CAP_MEMO_IGNORES_SCALARS;
  /* Elementwise kernels read each element before they write it. */
  if (def->flags & (OP_ELEMENTWISE | OP_READS_FIRST)) mine.flags |= GRAFT_CAP_IN_PLACE;
  if (op_schema_of(op_id)->philox_offset) mine.flags |= GRAFT_CAP_PHILOX_STATE;
  memcpy(caps, &mine, caps->struct_size < sizeof mine ? caps->struct_size : sizeof mine); /* what fits */
  return GRAFT_OK;
}

/* --- the plugin --- */

static graft_status answer(const void *from, size_t bytes, void *value, size_t capacity, size_t *size) {
  *size = bytes;
  if (bytes > capacity) return GRAFT_INVALID_ARGUMENT;
  memcpy(value, from, bytes);
  return GRAFT_OK;
}

static graft_status ref_device_query(void *self, int32_t index, graft_device_key key, void *value, size_t capacity,
                                     size_t *size) {
  (void)self, (void)index;
  static const char name[] = "reference (host memory)";
  static const uint32_t one = 1, cpu = GRAFT_DEVICE_KIND_CPU, timing = GRAFT_EVENT_TIMING;
  static const uint32_t kinds = 1u << GRAFT_MEMORY_DEVICE | 1u << GRAFT_MEMORY_PINNED | 1u << GRAFT_MEMORY_IMPORT;
  static const uint64_t all = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F8_E5M2 + 1) - 1; /* of the ABI, up to the last number */
  static const int32_t dlpack_cpu = 1;
  switch (key) {
    case GRAFT_DEVICE_NAME: return answer(name, sizeof name, value, capacity, size);
    case GRAFT_DEVICE_KIND: return answer(&cpu, sizeof cpu, value, capacity, size);
    case GRAFT_DEVICE_UNIFIED_MEMORY: return answer(&one, sizeof one, value, capacity, size);
    case GRAFT_DEVICE_DTYPES:
    case GRAFT_DEVICE_DENORMALS: return answer(&all, sizeof all, value, capacity, size);
    case GRAFT_DEVICE_DLPACK_TYPE: return answer(&dlpack_cpu, sizeof dlpack_cpu, value, capacity, size);
    case GRAFT_DEVICE_STREAM_FLAGS:
    case GRAFT_DEVICE_EVENT_FLAGS: return answer(&timing, sizeof timing, value, capacity, size);
    case GRAFT_DEVICE_MEMORY_KINDS: return answer(&kinds, sizeof kinds, value, capacity, size);
    default: return GRAFT_UNIMPLEMENTED;
  }
}

static graft_status ref_close(void *self) {
  (void)self;
  return GRAFT_OK;
}

static graft_status ref_device_count(void *self, int32_t *count) {
  (void)self;
  *count = 1;
  return GRAFT_OK;
}

static graft_status ref_device_open(void *self, int32_t index, graft_device **device) {
  (void)self;
  if (index) return GRAFT_INVALID_ARGUMENT;
  *device = &the_device;
  return GRAFT_OK;
}

static graft_status ref_device_close(graft_device *device) {
  (void)device;
  return GRAFT_OK;
}

graft_status ref_plugin_open(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  ref_host_set(host);
  if (options && *options) {
    char text[256];
    snprintf(text, sizeof text, "reference: the option \"%.128s\" is not known; it takes none", *options);
    host->set_error(host->context, text);
    return GRAFT_INVALID_ARGUMENT;
  }
  static graft_plugin made = {.struct_size = sizeof made,
                              .abi_major = GRAFT_ABI_MAJOR,
                              .abi_minor = GRAFT_ABI_MINOR,
                              .name = "reference",
                              .vendor = "Graft",
                              .version = "1",
                              .close = ref_close,
                              .device_count = ref_device_count,
                              .device_query = ref_device_query,
                              .device_open = ref_device_open,
                              .device_close = ref_device_close,
                              .memory = &memory_api,
                              .stream = &stream_api,
                              .op_caps = ref_op_caps};
  made.core = ref_core();
  made.prims = ref_prims();
  made.train = ref_train();
  *plugin = &made;
  return GRAFT_OK;
}
