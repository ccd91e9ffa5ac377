/* A part of async.c: its extension "graft.profiler". The device has the host's clock. */

/* What is kept of a command; belongs to the device's list, or after `forgotten` to its command. */
struct timed {
  struct timed *next;
  graft_profiler_record record;
  int is_done, forgotten;
};

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Before a command is submitted. */
static void profile(graft_stream *stream, command *c, graft_record_kind kind, const char *name) {
  graft_device *device = stream->device;
  pthread_mutex_lock(&device->lock);
  timed *t = device->recording ? calloc(1, sizeof *t) : NULL;
  if (t) {
    t->record = (graft_profiler_record){.struct_size = sizeof t->record,
                                        .kind = kind,
                                        .op_id = stream->op_id,
                                        .correlation = stream->correlation,
                                        .name = name,
                                        .bytes = kind == GRAFT_RECORD_KERNEL ? 0 : c->bytes};
    timed **end = &device->records;
    while (*end) end = &(*end)->next;
    *end = t;
  }
  pthread_mutex_unlock(&device->lock);
  c->timed = t;
}

/* Runs a command that is recorded. */
static void run_timed(graft_stream *stream, command *c) {
  timed *t = c->timed;
  t->record.begin_ns = now_ns();
  c->run(c);
  pthread_mutex_lock(&stream->device->lock);
  t->record.end_ns = now_ns();
  t->is_done = 1;
  if (t->forgotten) free(t);
  pthread_mutex_unlock(&stream->device->lock);
}

static graft_status profiler_start(graft_device *device) {
  pthread_mutex_lock(&device->lock);
  for (timed *t = device->records, *next; t; t = next) {
    next = t->next;
    if (t->is_done)
      free(t);
    else
      t->forgotten = 1;
  }
  device->records = NULL;
  device->recording = 1;
  pthread_mutex_unlock(&device->lock);
  return GRAFT_OK;
}

static graft_status profiler_stop(graft_device *device) {
  pthread_mutex_lock(&device->lock);
  device->recording = 0;
  pthread_mutex_unlock(&device->lock);
  return GRAFT_OK;
}

static graft_status profiler_mark(graft_stream *stream, uint32_t op_id, uint64_t correlation) {
  stream->op_id = op_id;
  stream->correlation = correlation;
  return GRAFT_OK;
}

static graft_status profiler_drain(graft_device *device, void (*take)(void *, const graft_profiler_record *),
                                   void *context, uint64_t *lost) {
  pthread_mutex_lock(&device->lock);
  for (timed **at = &device->records; *at;) {
    timed *t = *at;
    if (!t->is_done) {
      at = &t->next;
      continue;
    }
    *at = t->next;
    take(context, &t->record);
    free(t);
  }
  pthread_mutex_unlock(&device->lock);
  *lost = 0;
  return GRAFT_OK;
}

static graft_status profiler_clock(graft_device *device, uint64_t *device_ns, uint64_t *host_ns) {
  (void)device;
  *device_ns = *host_ns = now_ns();
  return GRAFT_OK;
}

/* Not const: liar.c changes it. */
static graft_profiler_api profiler_api = {sizeof profiler_api, profiler_start, profiler_stop,
                                          profiler_mark,       profiler_drain, profiler_clock};
