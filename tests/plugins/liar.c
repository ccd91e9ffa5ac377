/* The asynchronous plugin with one rule broken, as the environment variable GRAFT_LIE says; without it, it keeps them
 * all. A lie changes a function of an instance. `graft check` must name each. */
#define ASYNC_IS_PART
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <sys/stat.h>

#include "async.c"
#include "custom_ops.c"

static const char *lie; /* which is told */

static int tells(const char *name) {
  return lie && !strcmp(lie, name);
}

/* --- opening --- */

static void *idle(void *unused) {
  (void)unused;
  for (;;) pause();
  return NULL;
}

static void open_thread(async_instance *self) {
  (void)self;
  pthread_t thread;
  pthread_create(&thread, NULL, idle, NULL);
}

/* But for a test that failed, which leaves nothing behind. */
static void open_forever(void) {
  fputs("liar: opening\n", stderr);
  alarm(60);
  for (;;) pause();
}

static pid_t opener; /* who touched the driver; 0: nobody */

static graft_status count_in_opener(void *self, int32_t *count) {
  return !opener || getpid() == opener ? device_count(self, count) : GRAFT_INTERNAL;
}

static void open_driver(async_instance *self) {
  opener = getpid();
  self->plugin.device_count = count_in_opener;
}

static int closed;

static graft_status close_all(void *self) {
  closed = 1;
  return pl_close(self);
}

static graft_status allocate_while_open(graft_device *device, graft_allocation *request) {
  return closed ? GRAFT_DEVICE_LOST : mem_allocate(device, request);
}

static void shared_state(async_instance *self) {
  self->plugin.close = close_all;
  self->memory.allocate = allocate_while_open;
}

static const graft_host *latest_host;

static graft_status allocate_latest_host(graft_device *device, graft_allocation *request) {
  graft_status status = mem_allocate(device, request);
  if (status) latest_host->set_error(latest_host->context, "no memory");
  return status;
}

static void host_crossed(async_instance *self) {
  latest_host = self->host;
  self->memory.allocate = allocate_latest_host;
}

static graft_status any_extension(void *self, const char *name, uint32_t minimum, const void **table) {
  (void)name, (void)minimum;
  *table = self;
  return GRAFT_OK;
}

static graft_status drifting_extension(void *self, const char *name, uint32_t minimum, const void **table) {
  static graft_native_handle_api handles[64];
  static unsigned asked;
  (void)self;
  if (strcmp(name, GRAFT_EXTENSION_NATIVE_HANDLE) != 0 || minimum > GRAFT_NATIVE_HANDLE_VERSION)
    return GRAFT_UNIMPLEMENTED;
  handles[asked % 64].struct_size = sizeof *handles;
  *table = &handles[asked++ % 64];
  return GRAFT_OK;
}

static void extension_drifts(async_instance *self) {
  self->plugin.extension = drifting_extension;
}

static graft_status extension_of_opener(void *self, const char *name, uint32_t minimum, const void **table) {
  (void)self, (void)name, (void)minimum, (void)table;
  opener = getpid();
  return GRAFT_UNIMPLEMENTED;
}

static void extension_driver(async_instance *self) {
  self->plugin.extension = extension_of_opener;
  self->plugin.device_count = count_in_opener;
}

static void extension_any(async_instance *self) {
  self->plugin.extension = any_extension;
}
static void vendor_text(async_instance *self) {
  self->plugin.vendor = "caf\xe9";
}

/* --- the process --- */

static void take_signal(int number) {
  (void)number;
}

static void change_process(async_instance *self) {
  (void)self;
  if (tells("rounding")) fesetround(FE_UPWARD);
  if (tells("signal")) signal(SIGFPE, take_signal);
  if (tells("locale")) setlocale(LC_ALL, "C.UTF-8");
  if (tells("folder") && chdir("/")) abort();
  if (tells("umask")) umask(0);
}

/* --- devices --- */

static graft_status growing_count(void *self, int32_t *count) {
  static int32_t number;
  (void)self;
  *count = ++number;
  return GRAFT_OK;
}

static void count_changes(async_instance *self) {
  self->plugin.device_count = growing_count;
}

static graft_status lying_query(void *self, int32_t index, graft_device_key key, void *value, size_t capacity,
                                size_t *size) {
  static const uint64_t odd = 48, many = 1u << 20, few = 1;
  static const uint32_t narrow = 64;
  static uint64_t drifting = 64;
  if (key == GRAFT_DEVICE_ALIGNMENT && tells("property_sense")) return answer(&odd, 8, value, capacity, size);
  if (key == GRAFT_DEVICE_ALIGNMENT && tells("property_size")) return answer(&narrow, 4, value, capacity, size);
  if (key == GRAFT_DEVICE_ALIGNMENT && tells("property_drifts")) {
    drifting *= 2;
    return answer(&drifting, 8, value, capacity, size);
  }
  if (key == GRAFT_DEVICE_FREE_MEMORY && tells("amounts")) return answer(&many, 8, value, capacity, size);
  if (key == GRAFT_DEVICE_TOTAL_MEMORY && tells("amounts")) return answer(&few, 8, value, capacity, size);
  if (key == 0 && tells("unknown_key")) return answer(&narrow, 4, value, capacity, size);
  graft_status status = device_query(self, index, key, value, capacity, size);
  if (status == GRAFT_INVALID_ARGUMENT && capacity && tells("capacity")) memset(value, 0, capacity);
  return status;
}

static void query_lie(async_instance *self) {
  self->plugin.device_query = lying_query;
}

static graft_status one_device(void *self, int32_t index, graft_device **device) {
  static graft_device only;
  (void)index;
  only.self = self;
  *device = &only;
  return GRAFT_OK;
}

static graft_status keep_device(graft_device *device) {
  (void)device;
  return GRAFT_OK;
}

static void same_device(async_instance *self) {
  self->plugin.device_open = one_device;
  self->plugin.device_close = keep_device;
}

static graft_status fail_to_close(graft_device *device) {
  (void)device;
  return GRAFT_INTERNAL;
}

static void device_close_fails(async_instance *self) {
  self->plugin.device_close = fail_to_close;
}

/* --- memory --- */

static graft_status lying_allocate(graft_device *device, graft_allocation *request) {
  static char *common;
  graft_allocation honest = *request;
  uint64_t size = request->struct_size;
  if (tells("memory_flags")) honest.flags = 0;
  if (tells("memory_kinds")) honest.kind = GRAFT_MEMORY_DEVICE;
  if (tells("too_much") && honest.bytes > UINT64_C(1) << 40) honest.bytes = 4096;
  graft_status status = mem_allocate(device, &honest);
  if (status) return status;
  request->buffer = honest.buffer;
  request->host_pointer = honest.host_pointer;
  if (tells("own_copy")) request->host_pointer = aligned_alloc(65536, (honest.bytes + 65535) / 65536 * 65536);
  if (tells("alignment")) request->host_pointer = (char *)request->host_pointer + 8;
  if (tells("newer_request")) memset((char *)request + size, 0, 8);
  if (tells("allocate_shared")) {
    if (!common) common = malloc(64 << 20);
    honest.buffer->memory = common;
  }
  return GRAFT_OK;
}

static graft_status lying_release(graft_device *device, graft_buffer *buffer) {
  if (tells("allocate_shared")) return GRAFT_OK;
  return tells("release_fails") ? GRAFT_INTERNAL : mem_release(device, buffer);
}

static void memory_lie(async_instance *self) {
  self->memory.allocate = lying_allocate;
  self->memory.release = lying_release;
}

/* --- copies --- */

static graft_status lying_from_host(graft_stream *stream, graft_buffer *to, uint64_t offset, const void *from,
                                    uint64_t bytes, graft_copy_flags flags) {
  if (tells("copy_flags")) flags &= GRAFT_COPY_SOURCE_REUSABLE;
  if (tells("source_kept")) flags &= ~(uint32_t)GRAFT_COPY_SOURCE_REUSABLE;
  if (tells("offset_32")) offset = (uint32_t)offset;
  if (tells("from_host_short") && bytes % 16 == 1 && bytes > 1) bytes--;
  return mem_from_host(stream, to, offset, from, bytes, flags);
}

static graft_status lying_to_host(graft_stream *stream, void *to, graft_buffer *from, uint64_t offset, uint64_t bytes,
                                  graft_copy_flags flags) {
  if (tells("copy_flags")) flags = 0;
  if (tells("offset_32")) offset = (uint32_t)offset;
  if (tells("to_host_wide") && bytes == 1025) bytes += 7;
  return mem_to_host(stream, to, from, offset, bytes, flags);
}

static void crash(command *c) {
  (void)c;
  raise(SIGSEGV);
}

static graft_status lying_copy(graft_stream *stream, graft_buffer *to, uint64_t to_offset, graft_buffer *from,
                               uint64_t from_offset, uint64_t bytes) {
  if (tells("copy_crash")) submit(stream, command_new(crash));
  if (tells("copy_beside") && to_offset && from_offset) to_offset--, from_offset--, bytes++;
  return mem_copy(stream, to, to_offset, from, from_offset, bytes);
}

static void run_fill_late(command *c) {
  usleep(2000);
  memcpy(c->pattern, c->source, c->pattern_bytes);
  run_fill(c);
}

static graft_status lying_fill(graft_stream *stream, graft_buffer *to, uint64_t offset, uint64_t bytes,
                               const void *pattern, uint32_t pattern_bytes) {
  if (tells("fill_tail") && bytes / pattern_bytes > 16) bytes -= bytes / pattern_bytes % 2 * pattern_bytes;
  if (!tells("fill_pattern")) return mem_fill(stream, to, offset, bytes, pattern, pattern_bytes);
  command *c = command_new(run_fill_late);
  c->to = to->memory + offset;
  c->bytes = bytes;
  c->pattern_bytes = pattern_bytes;
  c->source = pattern;
  submit(stream, c);
  return GRAFT_OK;
}

static graft_status peer_backwards(graft_stream *stream, graft_device *to_device, graft_buffer *to, uint64_t to_offset,
                                   graft_device *from_device, graft_buffer *from, uint64_t from_offset,
                                   uint64_t bytes) {
  (void)to_device, (void)from_device;
  return mem_copy(stream, to, from_offset, from, to_offset, bytes);
}

static void copy_lie(async_instance *self) {
  self->memory.copy_from_host = lying_from_host;
  self->memory.copy_to_host = lying_to_host;
  self->memory.copy = lying_copy;
  self->memory.fill = lying_fill;
  if (tells("peer")) self->memory.copy_peer = peer_backwards;
}

/* --- streams --- */

static graft_status lying_synchronize(graft_stream *stream) {
  if (tells("synchronize_early")) return GRAFT_OK;
  if (tells("synchronize_hangs")) idle(NULL);
  return st_synchronize(stream);
}

static graft_status lying_stream_query(graft_stream *stream) {
  (void)stream;
  return tells("query_early") ? GRAFT_OK : GRAFT_NOT_READY;
}

static graft_status lying_create(graft_device *device, int32_t priority, graft_stream_flags flags,
                                 graft_stream **stream) {
  if (tells("priorities") && priority) return GRAFT_INVALID_ARGUMENT;
  if (tells("stream_flags")) flags &= GRAFT_STREAM_TIMING;
  if (tells("stream_hints") && flags >> 16) return GRAFT_INVALID_ARGUMENT;
  return st_create(device, priority, flags, stream);
}

static graft_status lying_failure(graft_device *device, graft_stream *stream, char *text, size_t capacity,
                                  size_t *length, graft_failure_scope *scope) {
  graft_status status = st_failure(device, stream, text, capacity, length, scope);
  strcpy(text, "no failure");
  return status;
}

/* Fills overtake what was submitted before. */
static graft_status fill_first(graft_stream *stream, graft_buffer *to, uint64_t offset, uint64_t bytes,
                               const void *pattern, uint32_t pattern_bytes) {
  (void)stream;
  command c = {.to = to->memory + offset, .bytes = bytes, .pattern_bytes = pattern_bytes};
  memcpy(c.pattern, pattern, pattern_bytes);
  run_fill(&c);
  return GRAFT_OK;
}

/* All streams copy through one piece of memory. */
static void run_copy_through(command *c) {
  static char scratch[1 << 20];
  if (c->bytes > sizeof scratch) {
    run_copy(c);
    return;
  }
  memcpy(scratch, c->from, c->bytes);
  usleep(300);
  memcpy(c->to, scratch, c->bytes);
}

static graft_status copy_through(graft_stream *stream, graft_buffer *to, uint64_t to_offset, graft_buffer *from,
                                 uint64_t from_offset, uint64_t bytes) {
  command *c = command_new(run_copy_through);
  c->to = to->memory + to_offset;
  c->from = from->memory + from_offset;
  c->bytes = bytes;
  submit(stream, c);
  return GRAFT_OK;
}

static void stream_lie(async_instance *self) {
  self->stream.create = lying_create;
  if (tells("synchronize_early") || tells("synchronize_hangs")) self->stream.synchronize = lying_synchronize;
  if (tells("query_early") || tells("query_never")) self->stream.query = lying_stream_query;
  if (tells("failure_text")) self->stream.failure = lying_failure;
  if (tells("order")) self->memory.fill = fill_first;
  if (tells("two_streams")) self->memory.copy = copy_through;
}

/* --- events --- */

static graft_status event_is_done(graft_event *event) {
  (void)event;
  return GRAFT_OK;
}

static graft_status query_recorded(graft_event *event) {
  return event->latest ? ev_query(event) : GRAFT_NOT_READY;
}

static graft_status wait_for_nothing(graft_stream *stream, graft_event *event) {
  (void)stream, (void)event;
  return GRAFT_OK;
}

static void run_wait_late(command *c) {
  record *r = latest_of(c->event);
  if (r) record_await(r);
  record_drop(r);
}

static graft_status wait_late(graft_stream *stream, graft_event *event) {
  command *c = command_new(run_wait_late);
  c->event = event;
  submit(stream, c);
  return GRAFT_OK;
}

static graft_status record_once(graft_event *event, graft_stream *stream) {
  return event->latest ? GRAFT_OK : ev_record(event, stream);
}

static graft_status any_time(graft_event *from, graft_event *to, double *milliseconds) {
  (void)from, (void)to;
  *milliseconds = 1;
  return GRAFT_OK;
}

static graft_status create_any_event(graft_device *device, graft_event_flags flags, graft_event **event) {
  return ev_create(device, flags & GRAFT_EVENT_TIMING, event);
}

static void event_lie(async_instance *self) {
  graft_stream_api *api = &self->stream;
  if (tells("event_early")) api->event_query = api->event_synchronize = event_is_done;
  if (tells("never_recorded")) api->event_query = query_recorded;
  if (tells("wait_nothing")) api->stream_wait = wait_for_nothing;
  if (tells("wait_late")) api->stream_wait = wait_late;
  if (tells("record_once")) api->event_record = record_once;
  if (tells("elapsed") || tells("untimed")) api->event_elapsed = any_time;
  if (tells("event_flags")) api->event_create = create_any_event;
}

/* --- the profiler --- */

static graft_status start_and_keep(graft_device *device) {
  device->recording = 1;
  return GRAFT_OK;
}

static graft_status keep_on(graft_device *device) {
  (void)device;
  return GRAFT_OK;
}

static graft_status mark_nothing(graft_stream *stream, uint32_t op_id, uint64_t correlation) {
  (void)stream, (void)op_id, (void)correlation;
  return GRAFT_OK;
}

static void (*lied_to)(void *, const graft_profiler_record *);

static void take_changed(void *context, const graft_profiler_record *record) {
  graft_profiler_record changed = *record;
  if (tells("profiler_bytes")) changed.bytes /= 2;
  if (tells("profiler_kind")) changed.kind = GRAFT_RECORD_KERNEL;
  if (tells("profiler_twice")) lied_to(context, &changed);
  if (tells("profiler_backwards")) changed.end_ns = changed.begin_ns - 1;
  lied_to(context, &changed);
}

static graft_status drain_changed(graft_device *device, void (*take)(void *, const graft_profiler_record *),
                                  void *context, uint64_t *lost) {
  lied_to = take;
  return profiler_drain(device, take_changed, context, lost);
}

static graft_status drain_and_keep(graft_device *device, void (*take)(void *, const graft_profiler_record *),
                                   void *context, uint64_t *lost) {
  for (timed *t = device->records; t; t = t->next) take(context, &t->record);
  *lost = 0;
  return GRAFT_OK;
}

static graft_status clock_ahead(graft_device *device, uint64_t *device_ns, uint64_t *host_ns) {
  profiler_clock(device, device_ns, host_ns);
  *device_ns += UINT64_C(1000000000);
  return GRAFT_OK;
}

static graft_status clock_of_seconds(graft_device *device, uint64_t *device_ns, uint64_t *host_ns) {
  profiler_clock(device, device_ns, host_ns);
  *host_ns /= 1000000000u;
  return GRAFT_OK;
}

static void profiler_lie(async_instance *self) {
  (void)self;
  if (tells("profiler_remembers")) profiler_api.start = start_and_keep;
  if (tells("profiler_goes_on")) profiler_api.stop = keep_on;
  if (tells("profiler_no_mark")) profiler_api.mark = mark_nothing;
  if (tells("profiler_keeps")) profiler_api.drain = drain_and_keep;
  if (tells("profiler_ahead")) profiler_api.clock = clock_ahead;
  if (tells("profiler_seconds")) profiler_api.clock = clock_of_seconds;
  if (tells("profiler_part")) profiler_api.clock = NULL;
  if (tells("profiler_bytes") || tells("profiler_kind") || tells("profiler_twice") || tells("profiler_backwards"))
    profiler_api.drain = drain_changed;
}

#include "liar_custom.c"
#include "liar_groups.c"

#include "liar_capture.c"
#include "liar_ops.c"

/* --- which lie changes what --- */

static const struct {
  const char *names;
  void (*apply)(async_instance *self);
} lies[] = {
    {" open_thread ", open_thread},
    {" open_driver ", open_driver},
    {" shared_state ", shared_state},
    {" host_crossed ", host_crossed},
    {" profiler_remembers profiler_goes_on profiler_no_mark profiler_keeps profiler_ahead profiler_seconds ",
     profiler_lie},
    {" profiler_part profiler_bytes profiler_kind profiler_twice profiler_backwards ", profiler_lie},
    {" custom_part custom_schema custom_name custom_id custom_low_id custom_gradient custom_other_gradient "
     "custom_keyword custom_twice custom_half_named custom_nothing "
     "custom_no_infer custom_beyond custom_values custom_changes custom_caps_any custom_caps_none ",
     custom_lie},
    {" custom_no_slot custom_no_schema custom_no_row custom_taken custom_long_name custom_dtype custom_dims "
     "custom_size custom_huge custom_status custom_gradient_shape custom_many ",
     custom_lie},
    {" groups_beyond groups_over groups_overrun groups_drift groups_stolen groups_circle groups_part groups_no_run "
     "groups_empty "
     "groups_kept groups_destroyed groups_wrong groups_silent groups_wide groups_refuses ",
     groups_lie},
    {" capture_stays capture_runs capture_short capture_nothing capture_once capture_late capture_turned capture_part "
     "capture_no_launch capture_kept ",
     capture_lie},
    {" extension_any ", extension_any},
    {" extension_drifts ", extension_drifts},
    {" extension_driver ", extension_driver},
    {" rounding signal locale folder umask ", change_process},
    {" vendor_text ", vendor_text},
    {" count_changes ", count_changes},
    {" property_sense property_size property_drifts amounts unknown_key capacity ", query_lie},
    {" same_device ", same_device},
    {" device_close_fails ", device_close_fails},
    {" memory_flags memory_kinds own_copy too_much alignment newer_request allocate_shared release_fails ", memory_lie},
    {" copy_flags source_kept offset_32 from_host_short to_host_wide copy_crash copy_beside fill_tail fill_pattern "
     "peer ",
     copy_lie},
    {" synchronize_early synchronize_hangs query_early query_never priorities stream_flags stream_hints failure_text "
     "order two_streams ",
     stream_lie},
    {" on_stream across dtypes prepare_runs number_kept number_refused close_memo ", newer_lie},
    {" event_early never_recorded wait_nothing wait_late record_once elapsed untimed event_flags ", event_lie},
    {" caps_none caps_unknown caps_overrun caps_short caps_drift caps_expanded caps_exclude state_ignored any_text "
     "args_size "
     "index_taken index_older_host op_query "
     "slot_overrun slot_input slot_memo slot_silent slot_leaves slot_side_effect slot_crash "
     "slot_hang slot_garbage slot_fails exit_crash ",
     op_lie},
};

static void apply_lie(async_instance *self) {
  char word[64];
  snprintf(word, sizeof word, " %s ", lie);
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    if (strstr(lies[i].names, word)) lies[i].apply(self);
  }
}

graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  static int opened;
  async_instance *self;
  lie = getenv("GRAFT_LIE");
  if (tells("open_hangs")) open_forever();
  if (tells("open_once") && opened++) return GRAFT_INTERNAL;
  if (tells("newer_host") && host->struct_size != sizeof *host) return GRAFT_INCOMPATIBLE;
  if (tells("options") && options) return GRAFT_INVALID_ARGUMENT;
  graft_status status = tells("any_option") ? GRAFT_OK : refuse_options(host, options);
  if (!status) status = async_open(host, "liar", &self);
  if (status) return status;
  acme_join(self);
  if (lie) apply_lie(self);
  *plugin = &self->plugin;
  return GRAFT_OK;
}
