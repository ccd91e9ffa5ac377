/* The asynchronous plugin, and an op that draws: rand in f32, from philox.state too. For captures that a plugin records
 * itself (async_capture.c). RECORDER_FAILS=begin|end|launch|destroy, read at each call: that function fails;
 * "slot": no slot takes GRAFT_EXEC_CAPTURING when it comes, though it said so; "nothing": end gives no record. */
#define ASYNC_IS_PART
#include "async.c"

/* ops/core/ref.h has it, and buffers of its own. */
void ref_philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]);

/* What a test asks for, in this order. */
static struct { atomic_int launches, recordings, begins, dropped, destroyed, destroyed_busy; } counts;
static atomic_int under_way; /* launches */

static bool fails(const char *what) {
  const char *asked = getenv("RECORDER_FAILS");
  return asked && !strcmp(asked, what);
}

static void run_rand(command *c) {
  uint64_t from[2], added = 0; /* seed and offset */
  memcpy(from, c->pattern, sizeof from);
  if (c->from) memcpy(&added, c->from, sizeof added);
  const uint32_t key[2] = {(uint32_t)from[0], (uint32_t)(from[0] >> 32)};
  for (uint64_t i = 0; i < c->bytes / sizeof(float); i++) {
    const uint64_t block = (from[1] + added + i) / 4; /* offsets are multiples of 4 */
    uint32_t words[4];
    ref_philox_block((const uint32_t[]){(uint32_t)block, (uint32_t)(block >> 32), 0, 0}, key, words);
    const float value = (float)(words[i % 4] >> 8) * 0x1p-24f;
    memcpy(c->to + i * sizeof value, &value, sizeof value);
  }
}

static graft_status draw(const graft_exec *exec, const graft_args_rand *args) {
  if (args->out->dl.dtype != GRAFT_F32) return GRAFT_UNIMPLEMENTED;
  if (exec->flags & GRAFT_EXEC_CAPTURING && fails("slot")) return GRAFT_UNIMPLEMENTED;
  command *c = command_new(run_rand);
  c->bytes = sizeof(float);
  for (int32_t i = 0; i < args->out->dl.ndim; i++) c->bytes *= (uint64_t)args->out->dl.shape[i];
  c->to = first_byte(args->out);
  if (args->philox->state) c->from = first_byte(args->philox->state);
  memcpy(c->pattern, &args->philox->seed, 8);
  memcpy(c->pattern + 8, &args->philox->offset, 8);
  submit(exec->stream, c);
  return GRAFT_OK;
}

/* neg by way of a workspace, which a record keeps. */
static graft_status neg_twice(const graft_exec *exec, const graft_args_neg *args) {
  const async_instance *self = exec->device->self;
  graft_buffer *buffer;
  uint64_t offset, bytes = sizeof(float);
  if (args->self->dl.dtype != GRAFT_F32) return GRAFT_UNIMPLEMENTED;
  for (int32_t i = 0; i < args->out->dl.ndim; i++) bytes *= (uint64_t)args->out->dl.shape[i];
  graft_status status = self->host->workspace(exec, bytes, 0, &buffer, &offset);
  if (status) return status;
  graft_status copied = mem_copy(exec->stream, buffer, offset, args->self->dl.data, args->self->dl.byte_offset, bytes);
  graft_tensor_desc inside = *args->self;
  inside.dl.data = buffer;
  inside.dl.byte_offset = offset;
  graft_args_neg call = *args;
  call.self = &inside;
  return copied ? copied : neg(exec, &call);
}

static graft_status caps_of(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  if (op_id != GRAFT_OP_RAND) return op_caps(device, op_id, caps);
  graft_op_caps known = {
      .struct_size = caps->struct_size, .flags = GRAFT_CAP_PHILOX_STATE, .exec_flags_known = GRAFT_EXEC_CAPTURING};
  memcpy(caps, &known, caps->struct_size < sizeof known ? caps->struct_size : sizeof known);
  return GRAFT_OK;
}

static graft_status count_begin(graft_stream *stream) {
  counts.begins++;
  return fails("begin") ? GRAFT_INTERNAL : capture_begin(stream);
}

static graft_status count_end(graft_stream *stream, graft_captured **captured) {
  const bool refused = fails("end"), drops = !captured || refused || fails("nothing");
  if (captured) counts.recordings++;
  if (!captured) counts.dropped++;
  graft_status status = capture_end(stream, drops ? NULL : captured);
  return refused ? GRAFT_INTERNAL : status;
}

/* Late, so that who does not wait comes before. */
static void run_done(command *c) {
  (void)c;
  usleep(20000);
  under_way--;
}

static graft_status count_launch(graft_captured *captured, graft_stream *stream) {
  if (fails("launch")) return GRAFT_INTERNAL;
  counts.launches++;
  under_way++;
  graft_status status = capture_launch(captured, stream);
  submit(stream, command_new(run_done));
  return status;
}

static graft_status count_destroy(graft_captured *captured) {
  counts.destroyed++;
  if (under_way) counts.destroyed_busy++;
  graft_status status = capture_destroy(captured);
  return fails("destroy") ? GRAFT_INTERNAL : status;
}

/* The counts. */
static graft_status tell(void *self, int32_t index, graft_device_key key, void *value, size_t capacity, size_t *size) {
  if (key == GRAFT_DEVICE_VENDOR_KEYS) {
    const int32_t now[] = {counts.launches, counts.recordings, counts.begins,
                           counts.dropped,  counts.destroyed,  counts.destroyed_busy};
    return answer(now, sizeof now, value, capacity, size);
  }
  return device_query(self, index, key, value, capacity, size);
}

graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  async_instance *self;
  graft_status status = refuse_options(host, options);
  if (!status) status = async_open(host, "recorder", &self);
  if (status) return status;
  self->core.rand = draw;
  self->core.neg = neg_twice;
  self->plugin.op_caps = caps_of;
  self->plugin.op_query = NULL;
  self->plugin.device_query = tell;
  capture_api.begin = count_begin;
  capture_api.end = count_end;
  capture_api.launch = count_launch;
  capture_api.destroy = count_destroy;
  *plugin = &self->plugin;
  return GRAFT_OK;
}
