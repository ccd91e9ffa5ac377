/* The asynchronous plugin with what came with ABI 1.2: memory allocated and given back in the order of a stream, waits
 * across devices, a set of dtypes, questions about a call, calls that are announced. With the option minor=1 it is the
 * same plugin of 1.1, and with across=0 its streams know the events of their own device only. */
#define ASYNC_IS_PART
#include "ordered.h"

#include "async.c"

static ordered_counters counters;
static uint32_t minor, across;

/* --- memory --- */

static graft_status allocate(graft_device *device, graft_allocation *request) {
  counters.stream_allocations += GRAFT_HAS(request, graft_allocation, stream) && request->stream;
  if (request->kind != GRAFT_MEMORY_DEVICE) return GRAFT_UNIMPLEMENTED;
  graft_status status = mem_allocate(device, request);
  counters.buffers += !status;
  return status;
}

static graft_status release(graft_device *device, graft_buffer *buffer) {
  counters.plain_releases++;
  counters.buffers--;
  return mem_release(device, buffer);
}

static void run_release(command *c) {
  graft_buffer *buffer = c->owned;
  memset(buffer->memory, 0xdd, buffer->bytes); /* so that a later use is seen */
  mem_release(NULL, buffer);
  counters.buffers--;
}

static graft_status release_on(graft_stream *stream, graft_buffer *buffer) {
  command *c = command_new(run_release);
  c->owned = buffer;
  counters.ordered_releases++;
  submit(stream, c);
  return GRAFT_OK;
}

/* --- streams --- */

static graft_status wait_counted(graft_stream *stream, graft_event *event) {
  counters.waits++;
  return st_wait(stream, event);
}

static graft_status block_counted(graft_event *event) {
  counters.blocks++;
  return ev_synchronize(event);
}

/* --- ops --- */

static void run_pause(command *c) {
  (void)c;
  usleep(20000);
}

static uint64_t element_count(const graft_tensor_desc *t) {
  uint64_t n = 1;
  for (int32_t i = 0; i < t->dl.ndim; i++) n *= (uint64_t)t->dl.shape[i];
  return n;
}

/* Slow, so that what is done to its memory too early shows. */
static graft_status slow_neg(const graft_exec *exec, const graft_args_neg *args) {
  uint64_t n = element_count(args->self);
  if (args->self->dl.dtype != GRAFT_F32) {
    counters.other_negs++;
    return GRAFT_UNIMPLEMENTED;
  }
  counters.negs++;
  counters.warm_negs += exec->memo != NULL;
  counters.long_negs += n > ORDERED_LONGEST;
  counters.in_place_negs += n == ORDERED_APART && args->self->dl.data == args->out->dl.data;
  counters.flags = exec->flags;
  counters.version = args->self->storage_version;
  submit(exec->stream, command_new(run_pause));
  return neg(exec, args);
}

/* Its capabilities say that it reads less than it does. */
static graft_status short_abs(const graft_exec *exec, const graft_args_abs *args) {
  if (args->self->dl.dtype != GRAFT_F32) return GRAFT_UNIMPLEMENTED;
  counters.abs_calls++;
  st_synchronize(exec->stream);
  for (uint64_t i = 0; i < element_count(args->self); i++) {
    float value;
    memcpy(&value, first_byte(args->self) + i * sizeof value, sizeof value);
    value = value < 0 ? -value : value;
    memcpy(first_byte(args->out) + i * sizeof value, &value, sizeof value);
  }
  return GRAFT_OK;
}

static graft_status counted_cauchy(const graft_exec *exec, const graft_args_cauchy *args) {
  (void)exec, (void)args;
  counters.draws++;
  return GRAFT_OK;
}

static graft_status ordered_caps(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  graft_op_caps known = {.struct_size = caps->struct_size};
  switch (op_id) {
    case GRAFT_OP_ABS: known.args_size_known = offsetof(graft_args_abs, out); break;
    case GRAFT_OP_CAUCHY: break;
    default: return op_caps(device, op_id, caps);
  }
  memcpy(caps, &known, caps->struct_size < sizeof known ? caps->struct_size : sizeof known);
  return GRAFT_OK;
}

static graft_status ordered_query(const graft_exec *exec, const graft_args *head, graft_op_caps *caps) {
  const graft_args_neg *args = (const graft_args_neg *)(const void *)head;
  (void)exec;
  counters.queries++;
  if (args->self->dl.dtype != GRAFT_F32) return GRAFT_UNIMPLEMENTED; /* abs has the same args */
  if (head->op_id != GRAFT_OP_NEG) return GRAFT_OK;
  counters.buffers_seen += args->self->dl.data || args->out->dl.data;
  uint64_t n = element_count(args->self);
  if (n == ORDERED_APART) caps->flags &= ~(graft_cap_flags)GRAFT_CAP_IN_PLACE;
  return n > ORDERED_LONGEST ? GRAFT_UNIMPLEMENTED : GRAFT_OK;
}

static graft_status ordered_prepare(const graft_exec *exec, const graft_args *head) {
  const graft_args_neg *args = (const graft_args_neg *)(const void *)head;
  void *kept;
  counters.prepares++;
  if (head->op_id != GRAFT_OP_NEG) return GRAFT_UNIMPLEMENTED;
  counters.buffers_seen += args->self->dl.data || args->out->dl.data;
  return exec->device->self->host->memo_publish(exec, malloc(1), free, &kept);
}

/* --- the plugin --- */

static graft_status ordered_device(void *self, int32_t index, graft_device_key key, void *value, size_t capacity,
                                   size_t *size) {
  static const uint32_t yes = 1, kinds = 1u << GRAFT_MEMORY_DEVICE;
  static const uint64_t dtypes = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F32) | GRAFT_DTYPE_BIT(GRAFT_NUMBER_I32);
  static const uint64_t no_f32 = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F16);
  switch (key) {
    case GRAFT_DEVICE_UNCACHED: return answer(&yes, sizeof yes, value, capacity, size);
    case GRAFT_DEVICE_MEMORY_KINDS: return answer(&kinds, sizeof kinds, value, capacity, size);
    case GRAFT_DEVICE_WAITS_ACROSS: return answer(&across, sizeof across, value, capacity, size);
    case GRAFT_DEVICE_DTYPES: return answer(index ? &no_f32 : &dtypes, sizeof dtypes, value, capacity, size);
    default: return device_query(self, index, key, value, capacity, size);
  }
}

static graft_status ordered_extension(void *self, const char *name, uint32_t minimum, const void **table) {
  (void)self, (void)minimum;
  if (strcmp(name, ORDERED_EXTENSION) != 0) return GRAFT_UNIMPLEMENTED;
  *table = &counters;
  return GRAFT_OK;
}

graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  async_instance *self;
  minor = GRAFT_ABI_MINOR;
  across = 1;
  for (; options && *options; options++) {
    int old = strcmp(*options, "minor=1") == 0, apart = strcmp(*options, "across=0") == 0;
    if (!old && !apart) return refuse_options(host, options);
    if (old) minor = 1;
    if (apart) across = 0;
  }
  graft_status status = async_open(host, "ordered", &self);
  if (status) return status;
  self->memory.allocate = allocate;
  self->memory.release = release;
  self->memory.release_on = release_on;
  self->stream.stream_wait = wait_counted;
  self->stream.event_synchronize = block_counted;
  self->core.neg = slow_neg;
  self->core.abs = short_abs;
  static const graft_train_ops train = {.struct_size = sizeof train, .cauchy = counted_cauchy};
  self->plugin.train = &train;
  self->plugin.abi_minor = minor;
  self->plugin.device_query = ordered_device;
  self->plugin.op_caps = ordered_caps;
  self->plugin.op_query = ordered_query;
  self->plugin.prepare = ordered_prepare;
  self->plugin.extension = ordered_extension;
  *plugin = &self->plugin;
  return GRAFT_OK;
}
