/* The lies about ops: capabilities, slots, memos, and what came with minor 2. A part of liar.c. */

static int self_gathers(uint32_t op_id) {
  return op_id == GRAFT_OP_GATHER && (tells("index_taken") || tells("index_older_host"));
}

static graft_status lying_caps(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  static uint32_t drift;
  if (tells("caps_none")) return GRAFT_UNIMPLEMENTED;
  if (tells("caps_unknown")) op_id = GRAFT_OP_NEG;
  if (tells("state_ignored") && op_id == GRAFT_OP_RAND) op_id = GRAFT_OP_NEG;
  if (tells("any_text") && op_id == GRAFT_OP_GELU) op_id = GRAFT_OP_NEG;
  int gathers = self_gathers(op_id);
  if (gathers) op_id = GRAFT_OP_NEG;
  if (tells("caps_short") && caps->struct_size < sizeof *caps) return GRAFT_INVALID_ARGUMENT;
  graft_status status = op_caps(device, op_id, caps);
  if (status) return status;
  if (tells("caps_overrun")) caps->max_ndim = 4;
  if (tells("caps_drift")) caps->max_ndim = ++drift;
  if (tells("caps_expanded")) caps->flags |= GRAFT_CAP_EXPANDED;
  if (gathers) caps->flags = tells("index_older_host") ? GRAFT_CAP_HOST_CHECKS_INDICES : 0;
  if (tells("caps_exclude")) caps->output_dtypes = GRAFT_DTYPE_BIT(GRAFT_NUMBER_BOOL);
  return GRAFT_OK;
}

/* Runs ahead of the host: releases at once, and computes when it is to compile. */
static graft_status release_early(graft_stream *stream, graft_buffer *buffer) {
  (void)stream;
  memset(buffer->memory, 0xdd, buffer->bytes);
  return GRAFT_OK;
}

static void run_pause(command *c) {
  (void)c;
  usleep(1000);
}

/* So that an early release is before it, however fast the worker is. */
static graft_status copy_late(graft_stream *stream, graft_buffer *to, uint64_t to_offset, graft_buffer *from,
                              uint64_t from_offset, uint64_t bytes) {
  submit(stream, command_new(run_pause));
  return mem_copy(stream, to, to_offset, from, from_offset, bytes);
}

static graft_status wait_at_home(graft_stream *stream, graft_event *event) {
  (void)stream, (void)event;
  return GRAFT_OK;
}

static graft_status say_more(void *self, int32_t index, graft_device_key key, void *value, size_t capacity,
                             size_t *size) {
  static const uint32_t yes = 1;
  static const uint64_t halves = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F16);
  if (key == GRAFT_DEVICE_UNCACHED || key == GRAFT_DEVICE_WAITS_ACROSS)
    return answer(&yes, sizeof yes, value, capacity, size);
  if (key == GRAFT_DEVICE_DTYPES && tells("dtypes")) return answer(&halves, sizeof halves, value, capacity, size);
  return device_query(self, index, key, value, capacity, size);
}

static graft_status f32_caps(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  graft_status status = op_caps(device, op_id, caps);
  if (!status) caps->input_dtypes = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F32);
  return status;
}

static graft_status run_ahead(const graft_exec *exec, const graft_args *args) {
  return args->op_id == GRAFT_OP_NEG ? neg(exec, (const graft_args_neg *)(const void *)args) : GRAFT_UNIMPLEMENTED;
}

/* Says that its memos ignore numbers, and keeps one in them; or refuses a number. */
static graft_status add_by_memo(const graft_exec *exec, const graft_args_add_Tensor *args) {
  const graft_host *host = exec->device->self->host;
  void *kept = exec->memo;
  if (tells("number_refused") && args->alpha->value.i == 3) return GRAFT_UNIMPLEMENTED;
  if (!kept) {
    int64_t *mine = malloc(sizeof *mine);
    *mine = args->alpha->value.i;
    graft_status status = host->memo_publish(exec, mine, free, &kept);
    if (status) return status;
  }
  st_synchronize(exec->stream);
  const char *self = first_byte(args->self), *other = first_byte(args->other);
  for (int i = 0; i < 25; i++) {
    float a, b;
    memcpy(&a, self + i * (int)sizeof a, sizeof a);
    memcpy(&b, other + i * (int)sizeof b, sizeof b);
    a += (float)*(int64_t *)kept * b;
    memcpy(first_byte(args->out) + i * (int)sizeof a, &a, sizeof a);
  }
  return GRAFT_OK;
}

static graft_status careless_caps(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  if (op_id != GRAFT_OP_ADD_TENSOR) return op_caps(device, op_id, caps);
  graft_status status = op_caps(device, GRAFT_OP_NEG, caps);
  caps->flags |= GRAFT_CAP_MEMO_IGNORES_SCALARS;
  return status;
}

static void spring(void *memo) {
  (void)memo;
  raise(SIGSEGV);
}

static graft_status neg_with_a_trap(const graft_exec *exec, const graft_args_neg *args) {
  void *kept;
  if (!exec->memo) exec->device->self->host->memo_publish(exec, exec->device, spring, &kept);
  return neg(exec, args);
}

static void newer_lie(async_instance *self) {
  self->plugin.device_query = say_more;
  self->memory.release_on = release_early;
  if (tells("on_stream")) self->memory.copy = copy_late;
  if (tells("across")) self->stream.stream_wait = wait_at_home;
  if (tells("dtypes")) self->plugin.op_caps = f32_caps;
  if (tells("prepare_runs")) self->plugin.prepare = run_ahead;
  if (tells("number_kept") || tells("number_refused")) {
    self->core.add_Tensor = add_by_memo;
    self->plugin.op_caps = careless_caps;
  }
  if (tells("close_memo")) self->core.neg = neg_with_a_trap;
}

static void die(void) {
  raise(SIGSEGV);
}

static graft_status lying_neg(const graft_exec *exec, const graft_args_neg *args) {
  char *out = first_byte(args->out), *in = first_byte(args->self);
  if (tells("slot_crash")) raise(SIGSEGV);
  if (tells("slot_hang")) idle(NULL);
  if (tells("slot_garbage")) return 4711;
  if (tells("slot_fails")) {
    exec->device->self->host->set_error(exec->device->self->host->context, "the pump is dry");
    return GRAFT_INTERNAL;
  }
  if (tells("args_size") && args->head.struct_size != sizeof *args) return GRAFT_INVALID_ARGUMENT;
  if (tells("op_query")) return args->self->dl.dtype == GRAFT_F16 ? GRAFT_OK : neg(exec, args);
  if (tells("slot_silent")) return GRAFT_OK;
  char last = out[24 * sizeof(float)];
  graft_status status = neg(exec, args);
  st_synchronize(exec->stream);
  if (tells("slot_leaves")) out[24 * sizeof(float)] = last;
  if (tells("slot_overrun")) memset(out + 25 * sizeof(float), 0, sizeof(float));
  if (tells("slot_input")) memset(in, 0, sizeof(float));
  if (tells("slot_memo")) {
    const graft_host *host = exec->device->self->host;
    void *kept;
    if (exec->memo)
      memset(out, 0, sizeof(float));
    else
      host->memo_publish(exec, malloc(8), free, &kept);
  }
  return tells("slot_side_effect") ? GRAFT_UNIMPLEMENTED : status;
}

/* Slots that serve no call, whatever it asks for, but say so only where they are honest. */
static graft_status any_rand(const graft_exec *exec, const graft_args_rand *args) {
  (void)exec, (void)args;
  return GRAFT_OK;
}

static graft_status any_gelu(const graft_exec *exec, const graft_args_gelu *args) {
  (void)exec, (void)args;
  return GRAFT_OK;
}

static graft_status any_gather(const graft_exec *exec, const graft_args_gather *args) {
  (void)exec, (void)args;
  return GRAFT_OK;
}

static void op_lie(async_instance *self) {
  if (tells("exit_crash")) atexit(die);
  self->core.neg = lying_neg;
  if (tells("state_ignored")) self->core.rand = any_rand;
  if (tells("any_text")) self->core.gelu = any_gelu;
  if (self_gathers(GRAFT_OP_GATHER)) self->core.gather = any_gather;
  self->plugin.op_caps = lying_caps;
}
