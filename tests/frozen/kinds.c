/* A plugin with a slot of each kind that the tables have, on the devices of plugin.c: numbers, lists and tensors that
 * may be absent, random numbers, outputs of unknown shape, memos, workspace, an extension, timed events, two devices
 * that copy to each other. It is compiled against each frozen copy of the headers, and the binaries that
 * build_binary.sh made of it when a minor was released are loaded as they are. What a later minor adds goes under its
 * number. */
#include <graft/abi/plugin.h>
#include <math.h>
#include <stdatomic.h>
#include <time.h>

#include "kinds.h"

static graft_status plain_open(const graft_host *host, const char *const *options, const graft_plugin **plugin);
#define graft_plugin_open_v1 plain_open
#include "plugin.c"
#undef graft_plugin_open_v1

static kinds_seen seen = {.struct_size = sizeof seen};

#include "kinds_ops.h"

/* --- what the ops offer --- */

typedef struct offer {
  uint32_t op_id;
  graft_cap_flags flags;
  uint32_t max_ndim;
  int takes_others; /* inputs of other dtypes than f32 */
} offer;

static const offer offers[] = {
    {.op_id = GRAFT_OP_MUL_TENSOR,
     .flags = GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED | GRAFT_CAP_MIXED_DTYPE |
              GRAFT_CAP_IN_PLACE | GRAFT_CAP_HOST_VALUE | GRAFT_CAP_EMPTY,
     .takes_others = 1},
    {.op_id = GRAFT_OP_ADD_TENSOR, .flags = GRAFT_CAP_IN_PLACE},
    {.op_id = GRAFT_OP_ARANGE_START_STEP},
    {.op_id = GRAFT_OP_ARGMAX},
    {.op_id = GRAFT_OP_CAT},
    {.op_id = GRAFT_OP_CLAMP, .flags = GRAFT_CAP_IN_PLACE},
    {.op_id = GRAFT_OP_EQUAL},
    {.op_id = GRAFT_OP_FOREACH_ADD_SCALARLIST, .flags = GRAFT_CAP_IN_PLACE},
    {.op_id = GRAFT_OP_FUSED_SGD, .flags = GRAFT_CAP_IN_PLACE},
    {.op_id = GRAFT_OP_GELU},
    {.op_id = GRAFT_OP_INDEX_TENSOR, .flags = GRAFT_CAP_INDEX_I32, .takes_others = 1},
    {.op_id = GRAFT_OP_MM},
    {.op_id = GRAFT_OP_NATIVE_DROPOUT},
    {.op_id = GRAFT_OP_NATIVE_LAYER_NORM_BACKWARD},
    {.op_id = GRAFT_OP_NONZERO},
    {.op_id = GRAFT_OP_PRIMS_AS_STRIDED_SCATTER},
    {.op_id = GRAFT_OP_PRIMS_FMAX},
    {.op_id = GRAFT_OP_PRIMS_SIN},
    {.op_id = GRAFT_OP_RELU, .flags = GRAFT_CAP_IN_PLACE},
    {.op_id = GRAFT_OP_RRELU_WITH_NOISE},
    {.op_id = GRAFT_OP_SUM_DIM_INTLIST, .max_ndim = MOST_DIMS},
};

/* The dtype sets speak of masks and indices too, as hosts of the first minors hold them against those. */
static graft_status kinds_caps(graft_device *device, uint32_t op_id, graft_op_caps *out) {
  const uint64_t real = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F32);
  const uint64_t found = GRAFT_DTYPE_BIT(GRAFT_NUMBER_I64) | GRAFT_DTYPE_BIT(GRAFT_NUMBER_BOOL);
  (void)device;
  for (size_t i = 0; i < sizeof offers / sizeof *offers; i++) {
    if (offers[i].op_id != op_id) continue;
    graft_op_caps mine = {.struct_size = out->struct_size,
                          .input_dtypes = offers[i].takes_others ? 0 : real,
                          .output_dtypes = real | found,
                          .flags = offers[i].flags | GRAFT_CAP_DETERMINISTIC,
                          .max_ndim = offers[i].max_ndim};
    memcpy(out, &mine, out->struct_size < sizeof mine ? out->struct_size : sizeof mine);
    return GRAFT_OK;
  }
  return GRAFT_UNIMPLEMENTED;
}

/* Whether the slot would say UNIMPLEMENTED. */
static int serves(const graft_args *args) {
  switch (args->op_id) {
    case GRAFT_OP_ARANGE_START_STEP: return serves_arange((const graft_args_arange_start_step *)args);
    case GRAFT_OP_FOREACH_ADD_SCALARLIST: return are_f32(&((const graft_args_foreach_add_ScalarList *)args)->self);
    case GRAFT_OP_FUSED_SGD: return serves_sgd((const graft_args_fused_sgd *)args);
    case GRAFT_OP_GELU: return serves_gelu((const graft_args_gelu *)args);
    case GRAFT_OP_INDEX_TENSOR: return serves_index((const graft_args_index_Tensor *)args);
    case GRAFT_OP_MUL_TENSOR: return serves_mul((const graft_args_mul_Tensor *)args);
    case GRAFT_OP_NATIVE_DROPOUT: return serves_dropout((const graft_args_native_dropout *)args);
    case GRAFT_OP_NONZERO: return serves_nonzero((const graft_args_nonzero *)args);
    case GRAFT_OP_RRELU_WITH_NOISE: return serves_rrelu((const graft_args_rrelu_with_noise *)args);
    default: return 1;
  }
}

static graft_status kinds_query(const graft_exec *exec, const graft_args *args, graft_op_caps *caps) {
  return serves(args) ? kinds_caps(exec->device, args->op_id, caps) : GRAFT_UNIMPLEMENTED;
}

static graft_status kinds_prepare(const graft_exec *exec, const graft_args *args) {
  (void)exec, (void)args;
  return GRAFT_OK;
}

/* --- devices: two, with timed events, pinned memory and copies between them --- */

typedef struct timed_event {
  graft_event base;
  int has_time;
  double ms;
} timed_event;

typedef struct timed_stream {
  graft_stream base;
  int is_timed;
} timed_stream;

static graft_status timed_stream_create(graft_device *device, int32_t priority, graft_stream_flags flags,
                                        graft_stream **stream) {
  (void)priority;
  if (has_unknown(flags, GRAFT_STREAM_TIMING)) return GRAFT_INVALID_ARGUMENT;
  timed_stream *made = calloc(1, sizeof *made);
  if (!made) return fail(device->self, GRAFT_OUT_OF_MEMORY, "frozen: no memory for a stream");
  made->is_timed = flags & GRAFT_STREAM_TIMING;
  seen.timed_streams += (unsigned)made->is_timed;
  *stream = &made->base;
  return GRAFT_OK;
}

static graft_status timed_event_create(graft_device *device, graft_event_flags flags, graft_event **event) {
  if (has_unknown(flags, GRAFT_EVENT_TIMING)) return GRAFT_INVALID_ARGUMENT;
  timed_event *made = calloc(1, sizeof *made);
  if (!made) return fail(device->self, GRAFT_OUT_OF_MEMORY, "frozen: no memory for an event");
  made->base.unused = flags & GRAFT_EVENT_TIMING;
  *event = &made->base;
  return GRAFT_OK;
}

static graft_status timed_event_record(graft_event *event, graft_stream *stream) {
  timed_event *mine = (timed_event *)event;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  mine->has_time = mine->base.unused && ((timed_stream *)stream)->is_timed;
  mine->ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
  seen.timed_events += (unsigned)mine->has_time;
  return GRAFT_OK;
}

static graft_status event_elapsed(graft_event *from, graft_event *to, double *milliseconds) {
  const timed_event *first = (timed_event *)from, *last = (timed_event *)to;
  if (!from->unused || !to->unused) return GRAFT_UNIMPLEMENTED;
  if (first->ms == 0 || last->ms == 0) return GRAFT_NOT_READY;
  if (!first->has_time || !last->has_time) return GRAFT_UNIMPLEMENTED;
  *milliseconds = last->ms - first->ms;
  return GRAFT_OK;
}

static graft_status counted_wait(graft_stream *stream, graft_event *event) {
  seen.waits++;
  return stream_wait(stream, event);
}

static graft_status allocate_kinds(graft_device *device, graft_allocation *request) {
  if (request->kind != GRAFT_MEMORY_PINNED) return allocate(device, request);
  graft_allocation plain = *request;
  plain.kind = GRAFT_MEMORY_DEVICE;
  graft_status status = allocate(device, &plain);
  if (status) return status;
  request->buffer = plain.buffer;
  request->host_pointer = plain.buffer->data;
  seen.pinned_blocks++;
  return GRAFT_OK;
}

static graft_status copy_peer(graft_stream *stream, graft_device *to_device, graft_buffer *to, uint64_t to_offset,
                              graft_device *from_device, graft_buffer *from, uint64_t from_offset, uint64_t bytes) {
  (void)to_device, (void)from_device;
  seen.peer_copies++;
  return copy(stream, to, to_offset, from, from_offset, bytes);
}

static const graft_memory_api memory_kinds = {
    .struct_size = sizeof memory_kinds,
    .allocate = allocate_kinds,
    .release = release,
    .copy_from_host = copy_from_host,
    .copy_to_host = copy_to_host,
    .copy = copy,
    .copy_peer = copy_peer,
    .fill = fill,
};

static const graft_stream_api timed_streams = {
    .struct_size = sizeof timed_streams,
    .create = timed_stream_create,
    .destroy = stream_destroy,
    .flush = stream_done,
    .query = stream_done,
    .synchronize = stream_done,
    .event_create = timed_event_create,
    .event_destroy = event_destroy,
    .event_record = timed_event_record,
    .stream_wait = counted_wait,
    .event_query = event_done,
    .event_synchronize = event_done,
    .event_elapsed = event_elapsed,
    .failure = failure,
};

enum { DEVICES = 2 };

static graft_status two_devices(void *self, int32_t *count) {
  (void)self;
  *count = DEVICES;
  return GRAFT_OK;
}

static graft_status query_kinds(void *self, int32_t index, graft_device_key key, void *value, size_t capacity,
                                size_t *size) {
  static const uint32_t timing = GRAFT_STREAM_TIMING, kinds = 1u << GRAFT_MEMORY_DEVICE | 1u << GRAFT_MEMORY_PINNED;
  static const int32_t peers[DEVICES] = {1, 0};
  static const uint64_t dtypes = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F32) | GRAFT_DTYPE_BIT(GRAFT_NUMBER_F64) |
                                 GRAFT_DTYPE_BIT(GRAFT_NUMBER_I32) | GRAFT_DTYPE_BIT(GRAFT_NUMBER_I64);
  if (index < 0 || index >= DEVICES) return GRAFT_INVALID_ARGUMENT;
  switch (key) {
    case GRAFT_DEVICE_STREAM_FLAGS:
    case GRAFT_DEVICE_EVENT_FLAGS: return answer(&timing, sizeof timing, value, capacity, size);
    case GRAFT_DEVICE_MEMORY_KINDS: return answer(&kinds, sizeof kinds, value, capacity, size);
    case GRAFT_DEVICE_PEERS: return answer(&peers[index], sizeof *peers, value, capacity, size);
    case GRAFT_DEVICE_DTYPES: return answer(&dtypes, sizeof dtypes, value, capacity, size);
    default: return device_query(self, index, key, value, capacity, size);
  }
}

static graft_status open_kinds(void *self, int32_t index, graft_device **device) {
  return index < 0 || index >= DEVICES ? GRAFT_INVALID_ARGUMENT : device_open(self, 0, device);
}

/* --- the plugin --- */

static graft_status native_device(graft_device *device, void **handle) {
  *handle = device;
  return GRAFT_OK;
}

static graft_status extension(void *self, const char *name, uint32_t minimum, const void **table) {
  static const graft_native_handle_api handles = {
      .struct_size = sizeof handles, .api = "frozen", .device = native_device};
  (void)self;
  if (minimum > 1) return GRAFT_UNIMPLEMENTED;
  if (strcmp(name, KINDS_EXTENSION) == 0) {
    *table = &seen;
    return GRAFT_OK;
  }
  if (strcmp(name, GRAFT_EXTENSION_NATIVE_HANDLE) != 0) return GRAFT_UNIMPLEMENTED;
  *table = &handles;
  return GRAFT_OK;
}

static void read_options(const char *const *options) {
  for (; options && *options; options++) {
    if (strncmp(*options, "count=", 6) == 0) seen.options = (unsigned long long)atoi(*options + 6);
  }
}

graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  const graft_plugin *made;
  graft_status status = plain_open(host, options, &made);
  if (status) return status;
  instance *self = made->self;
  self->table.name = "kinds";
  self->table.device_count = two_devices;
  self->table.device_query = query_kinds;
  self->table.device_open = open_kinds;
  self->table.memory = &memory_kinds;
  self->table.stream = &timed_streams;
  self->table.core = &core_slots;
  self->table.prims = &prims_slots;
  self->table.train = &train_slots;
  self->table.op_caps = kinds_caps;
  self->table.op_query = kinds_query;
  self->table.prepare = kinds_prepare;
  self->table.extension = extension;
  read_options(options);
  char folder[512];
  size_t length;
  const void *offered;
  host->log(host->context, GRAFT_LOG_DEBUG, "kinds: opened");
  (void)host->cache_directory(host->context, folder, sizeof folder, &length);
  (void)host->extension(host->context, KINDS_EXTENSION, 1, &offered); /* hosts have none */
  *plugin = made;
  return GRAFT_OK;
}
