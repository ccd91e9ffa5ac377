/* The asynchronous plugin, noting what the headers promise a plugin: what elementwise ops see of their dims, where
 * expanded inputs come, what workspace there is, that copies between devices and waits for events come in an order. Its
 * neg and its copies between devices take a while, so that an order that is missing shows. */
#define ASYNC_IS_PART
#include "promises.h"

#include "async.c"

static promises_seen seen;

static void note(promises_tensor *to, const graft_tensor_desc *from) {
  to->ndim = from->dl.ndim;
  for (int32_t d = 0; d < from->dl.ndim && d < PROMISES_DIMS; d++) {
    to->shape[d] = from->dl.shape[d];
    to->strides[d] = from->dl.strides[d];
  }
}

/* --- ops: none computes but neg --- */

static void run_pause(command *c) {
  (void)c;
  usleep(20000);
}

static graft_status slow_neg(const graft_exec *exec, const graft_args_neg *args) {
  submit(exec->stream, command_new(run_pause));
  return neg(exec, args);
}

static graft_status note_add(const graft_exec *exec, const graft_args_add_Tensor *args) {
  (void)exec;
  note(&seen.self, args->self);
  note(&seen.other, args->other);
  note(&seen.out, args->out);
  return GRAFT_OK;
}

static graft_status note_mul(const graft_exec *exec, const graft_args_mul_Tensor *args) {
  (void)exec;
  note(&seen.self, args->self);
  note(&seen.other, args->other);
  note(&seen.out, args->out);
  return GRAFT_OK;
}

static graft_status note_uniform(const graft_exec *exec, const graft_args_uniform *args) {
  (void)exec;
  note(&seen.out, args->out);
  return GRAFT_OK;
}

static graft_status ask_for_workspace(const graft_exec *exec, const graft_args_abs *args) {
  enum { BYTES = 100, ALIGNMENT = 64 };
  const graft_host *host = exec->device->self->host;
  char *places[PROMISES_WORKSPACES] = {NULL};
  (void)args;
  seen.workspaces_apart = 1;
  for (int i = 0; i < PROMISES_WORKSPACES - 1; i++) {
    graft_buffer *buffer = NULL;
    uint64_t offset = 0;
    seen.workspaces[i] = host->workspace(exec, BYTES, i % 2 ? ALIGNMENT : 0, &buffer, &offset);
    if (seen.workspaces[i]) continue;
    places[i] = buffer->memory + offset;
    if (offset % ALIGNMENT) seen.workspaces_apart = 0;
    for (int k = 0; k < i; k++) {
      if (places[k] && places[i] < places[k] + BYTES && places[k] < places[i] + BYTES) seen.workspaces_apart = 0;
    }
  }
  uint64_t offset;
  seen.no_bytes_buffer = (graft_buffer *)(void *)&seen;
  seen.no_bytes = host->workspace(exec, 0, 0, &seen.no_bytes_buffer, &offset); /* the last one */
  return GRAFT_OK;
}

static graft_status find_nothing(const graft_exec *exec, const graft_args_nonzero *args) {
  const graft_tensor_desc *out;
  graft_status status =
      exec->device->self->host->output_shape(exec, args->out, 2, (int64_t[]){0, args->self->dl.ndim}, &out);
  seen.empty_output = status ? (graft_buffer *)(void *)&seen : out->dl.data;
  return status;
}

static graft_status promises_caps(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  graft_op_caps known = {.struct_size = caps->struct_size};
  (void)device;
  if (op_id == GRAFT_OP_ADD_TENSOR) known.flags = GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED;
  if (op_id == GRAFT_OP_MUL_TENSOR) known.flags = GRAFT_CAP_EXPANDED; /* without STRIDED it does not count */
  memcpy(caps, &known, caps->struct_size < sizeof known ? caps->struct_size : sizeof known);
  return GRAFT_OK;
}

/* --- whose streams and events are whose --- */

enum { OBJECTS = 1024 };
static struct {
  const void *object;
  const graft_device *device;
} owners[OBJECTS];
static int owner_count;
static pthread_mutex_t owners_lock = PTHREAD_MUTEX_INITIALIZER;

static void own(const void *object, const graft_device *device) {
  pthread_mutex_lock(&owners_lock);
  if (owner_count == OBJECTS) abort();
  owners[owner_count].object = object;
  owners[owner_count++].device = device;
  pthread_mutex_unlock(&owners_lock);
}

/* The last who made it: an address may be used again. */
static const graft_device *owner_of(const void *object) {
  const graft_device *device = NULL;
  pthread_mutex_lock(&owners_lock);
  for (int i = 0; i < owner_count; i++) {
    if (owners[i].object == object) device = owners[i].device;
  }
  pthread_mutex_unlock(&owners_lock);
  return device;
}

static graft_status own_stream(graft_device *device, int32_t priority, graft_stream_flags flags,
                               graft_stream **stream) {
  graft_status status = st_create(device, priority, flags, stream);
  if (!status) own(*stream, device);
  return status;
}

static graft_status own_event(graft_device *device, graft_event_flags flags, graft_event **event) {
  graft_status status = ev_create(device, flags, event);
  if (!status) own(*event, device);
  return status;
}

static graft_status wait_noted(graft_stream *stream, graft_event *event) {
  seen.foreign_waits += owner_of(stream) != owner_of(event);
  return st_wait(stream, event);
}

static graft_status slow_copy_peer(graft_stream *stream, graft_device *to_device, graft_buffer *to, uint64_t to_offset,
                                   graft_device *from_device, graft_buffer *from, uint64_t from_offset,
                                   uint64_t bytes) {
  seen.peer_copies++;
  submit(stream, command_new(run_pause));
  return mem_copy_peer(stream, to_device, to, to_offset, from_device, from, from_offset, bytes);
}

/* --- the plugin --- */

static graft_status promises_extension(void *self, const char *name, uint32_t minimum, const void **table) {
  (void)self;
  if (strcmp(name, PROMISES_EXTENSION) != 0 || minimum > 1) return GRAFT_UNIMPLEMENTED;
  *table = &seen;
  return GRAFT_OK;
}

graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  static graft_train_ops train = {.struct_size = sizeof train, .uniform = note_uniform};
  async_instance *self;
  graft_status status = refuse_options(host, options);
  if (!status) status = async_open(host, "promises", &self);
  if (status) return status;
  self->memory.copy_peer = slow_copy_peer;
  self->stream.create = own_stream;
  self->stream.event_create = own_event;
  self->stream.stream_wait = wait_noted;
  self->core.abs = ask_for_workspace;
  self->core.add_Tensor = note_add;
  self->core.mul_Tensor = note_mul;
  self->core.neg = slow_neg;
  self->core.nonzero = find_nothing;
  self->plugin.train = &train;
  self->plugin.op_caps = promises_caps;
  self->plugin.op_query = NULL;
  self->plugin.extension = promises_extension;
  *plugin = &self->plugin;
  return GRAFT_OK;
}
