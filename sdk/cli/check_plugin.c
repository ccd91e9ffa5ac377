/* The plugin under check, and the small host that it sees. */
#include <dirent.h>
#include <dlfcn.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "check.h"
#include "plugin/backend.h"
#include "reference/reference.h"

/* --- the host's functions --- */

static void host_log(void *context, graft_log_level level, const char *message) {
  (void)context;
  err_log(level, "%s", message ? message : "");
}

static void host_set_error(void *context, const char *message) {
  ck_session *session = context;
  snprintf(session->error, sizeof session->error, "%s", message ? message : "");
}

static graft_status host_workspace(const graft_exec *exec, uint64_t bytes, uint64_t alignment, graft_buffer **buffer,
                                   uint64_t *byte_offset) {
  (void)alignment; /* a whole buffer has the device's own, which is the most that a plugin asks for */
  *buffer = ck_buffer(exec->host_context, bytes);
  *byte_offset = 0;
  return GRAFT_OK;
}

/* No op whose output depends on data is called here. */
static graft_status host_output_shape(const graft_exec *exec, graft_output *output, int32_t ndim, const int64_t *shape,
                                      const graft_tensor_desc **desc) {
  (void)exec, (void)output, (void)ndim, (void)shape, (void)desc;
  return GRAFT_INVALID_ARGUMENT;
}

/* Kept to the end, never handed out again: each call here is a new one. */
static graft_status host_memo_publish(const graft_exec *exec, void *value, void (*destroy)(void *value),
                                      void **winner) {
  ck_session *session = exec->host_context;
  if (session->memo_count == CK_OBJECTS_MAX) return GRAFT_OUT_OF_MEMORY;
  session->memos[session->memo_count++] = (struct ck_memo){value, destroy};
  *winner = value;
  return GRAFT_OK;
}

static graft_status host_cache_directory(void *context, char *path, size_t capacity, size_t *length) {
  (void)context, (void)path, (void)capacity, (void)length;
  return GRAFT_UNIMPLEMENTED;
}

static graft_status host_extension(void *context, const char *name, uint32_t minimum, const void **table) {
  (void)context, (void)name, (void)minimum, (void)table;
  return GRAFT_UNIMPLEMENTED;
}

void ck_session_init(ck_session *session, const ck_target *target) {
  memset(session, 0, sizeof *session);
  session->target = target;
  session->host = (graft_host){.struct_size = sizeof(graft_host),
                               .abi_major = GRAFT_ABI_MAJOR,
                               .abi_minor = GRAFT_ABI_MINOR,
                               .context = session,
                               .log = host_log,
                               .set_error = host_set_error,
                               .workspace = host_workspace,
                               .output_shape = host_output_shape,
                               .memo_publish = host_memo_publish,
                               .cache_directory = host_cache_directory,
                               .extension = host_extension};
}

/* --- statuses --- */

static _Thread_local const ck_session *speaking; /* whose error text explains a status */

const char *ck_status_text(graft_status status) {
  static _Thread_local char text[48];
  if (plg_status_is_known(status)) return graft_status_name(status);
  snprintf(text, sizeof text, "the unknown status %d", status);
  return text;
}

void ck_is(graft_status got, graft_status expected) {
  if (got == expected) return;
  const char *text = speaking ? speaking->error : "";
  ck_fail("expected %s, got %s%s%s", graft_status_name(expected), ck_status_text(got), *text ? ": " : "", text);
}

/* --- the process --- */

void ck_process_now(ck_process *process) {
  memset(process, 0, sizeof *process);
  fegetenv(&process->arithmetic);
  for (int number = 1; number < 32; number++) {
    struct sigaction action;
    if (!sigaction(number, NULL, &action)) process->handlers[number] = action.sa_handler;
  }
  sigprocmask(SIG_SETMASK, NULL, &process->blocked);
  snprintf(process->locale, sizeof process->locale, "%s", setlocale(LC_ALL, NULL));
  if (!getcwd(process->folder, sizeof process->folder)) process->folder[0] = 0;
  process->umask = umask(077);
  umask(process->umask);
}

/* The control bits of x87 and SSE; the flags of what was inexact are for anybody to raise. */
static bool same_arithmetic(const fenv_t *a, const fenv_t *b) {
#ifdef __x86_64__
  return a->__control_word == b->__control_word && (a->__mxcsr & ~0x3fu) == (b->__mxcsr & ~0x3fu);
#else
  fenv_t now;
  fegetenv(&now);
  fesetenv(a);
  int one = fegetround();
  fesetenv(b);
  int other = fegetround();
  fesetenv(&now);
  return one == other;
#endif
}

void ck_same_process(const ck_process *before) {
  ck_process now;
  ck_process_now(&now);
  if (!same_arithmetic(&now.arithmetic, &before->arithmetic))
    ck_fail("rounding, flushing to zero or traps of floating-point numbers were changed");
  for (int number = 1; number < 32; number++) {
    if (now.handlers[number] != before->handlers[number])
      ck_fail("the handler of signal %d (%s) was changed", number, strsignal(number));
    if (sigismember(&now.blocked, number) != sigismember(&before->blocked, number))
      ck_fail("signal %d (%s) was blocked or let through", number, strsignal(number));
  }
  if (strcmp(now.locale, before->locale) != 0) ck_fail("the locale is \"%s\" now", now.locale);
  if (strcmp(now.folder, before->folder) != 0) ck_fail("the working directory is \"%s\" now", now.folder);
  if (now.umask != before->umask) ck_fail("the umask is %03o now", (unsigned)now.umask);
}

/* --- opening --- */

const void *ck_extension(ck_session *s, const char *name, uint32_t version, const char *none) {
  const void *table = NULL;
  if (!s->plugin.extension) ck_skip("the plugin has no `extension`");
  ck_doing("asking for \"%s\"", name);
  graft_status status = s->plugin.extension(s->plugin.self, name, version, &table);
  if (status == GRAFT_UNIMPLEMENTED) ck_skip("%s", none);
  ck_is(status, GRAFT_OK);
  return table;
}

void ck_since(const ck_session *session, uint32_t minor) {
  if (session->plugin.abi_minor < minor) {
    ck_skip("a rule of ABI %d.%u; the plugin is of %d.%u", GRAFT_ABI_MAJOR, minor, GRAFT_ABI_MAJOR,
            session->plugin.abi_minor);
  }
}

int ck_thread_count(void) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (const struct dirent *entry; tasks && (entry = readdir(tasks));) count += entry->d_name[0] != '.';
  if (tasks) closedir(tasks);
  return count;
}

void ck_load(ck_session *session) {
  speaking = session;
  session->threads_before = ck_thread_count();
  ck_process_now(&session->before);
  ck_doing("dlopen");
  if (!session->target->path) {
    session->entry = ref_plugin_open;
    return;
  }
  void *library = dlopen(session->target->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) ck_fail("%s", dlerror());
  void *entry = dlsym(library, GRAFT_PLUGIN_ENTRY);
  if (!entry) ck_fail("the library does not export " GRAFT_PLUGIN_ENTRY);
  memcpy(&session->entry, &entry, sizeof entry);
}

void ck_enter(ck_session *session) {
  if (!session->entry) ck_load(session);
  CK_CALL(GRAFT_OK, session->entry(&session->host, session->target->options, &session->raw), GRAFT_PLUGIN_ENTRY);
  if (!session->raw) ck_fail("it said OK and gave no plugin");
}

/* Copies a sized struct; what the plugin lacks stays zero. Fields are 8 bytes, so only whole ones count. */
static void copy_sized(void *to, size_t bytes, const void *from) {
  size_t given;
  memcpy(&given, from, sizeof given);
  memset(to, 0, bytes);
  memcpy(to, from, given < bytes ? given - given % 8 : bytes);
}

void ck_adopt(ck_session *session) {
  if (!session->raw) ck_enter(session);
  copy_sized(&session->plugin, sizeof session->plugin, session->raw);
  copy_sized(&session->memory, sizeof session->memory, session->plugin.memory);
  copy_sized(&session->stream, sizeof session->stream, session->plugin.stream);
}

uint64_t ck_property(ck_session *session, graft_device_key key, size_t bytes, uint64_t otherwise) {
  uint64_t value = 0;
  size_t size = 0;
  ck_doing("device_query(%u)", key);
  graft_status status =
      session->plugin.device_query(session->plugin.self, session->target->device, key, &value, bytes, &size);
  if (status == GRAFT_UNIMPLEMENTED) return otherwise;
  ck_is(status, GRAFT_OK);
  if (size != bytes) ck_fail("the answer has %zu bytes, expected %zu", size, bytes);
  return value;
}

void ck_open_device(ck_session *s) {
  if (!s->plugin.struct_size) ck_adopt(s);
  CK_CALL(GRAFT_OK, s->plugin.device_count(s->plugin.self, &s->device_count), "device_count");
  if (s->target->device >= s->device_count) ck_fail("there is no device %d of %d", s->target->device, s->device_count);
  CK_CALL(GRAFT_OK, s->plugin.device_open(s->plugin.self, s->target->device, &s->device), "device_open(%d)",
          s->target->device);
  if (!s->device) ck_fail("it said OK and gave no device");
  s->granularity = ck_property(s, GRAFT_DEVICE_GRANULARITY, 8, 512);
  s->copy_granularity = ck_property(s, GRAFT_DEVICE_COPY_GRANULARITY, 8, 1);
  s->max_allocation = ck_property(s, GRAFT_DEVICE_MAX_ALLOCATION, 8, UINT64_MAX);
  s->memory_kinds = (uint32_t)ck_property(s, GRAFT_DEVICE_MEMORY_KINDS, 4, 1u << GRAFT_MEMORY_DEVICE);
  s->memory_flags = (uint32_t)ck_property(s, GRAFT_DEVICE_MEMORY_FLAGS, 4, 0);
  s->stream_flags = (uint32_t)ck_property(s, GRAFT_DEVICE_STREAM_FLAGS, 4, 0);
  s->event_flags = (uint32_t)ck_property(s, GRAFT_DEVICE_EVENT_FLAGS, 4, 0);
  if (!s->granularity || !s->copy_granularity) ck_fail("a granularity of 0");
}

void ck_reach(ck_session *session, ck_stage stage) {
  speaking = session;
  if (stage >= CK_LIBRARY) ck_load(session);
  if (stage >= CK_TABLE) ck_enter(session);
  if (stage >= CK_PLUGIN) ck_adopt(session);
  if (stage >= CK_DEVICE) ck_open_device(session);
}

/* --- closing: memos, events, streams, buffers, the device, the instance --- */

static bool holds(const ck_objects *objects, const void *item) {
  for (size_t i = 0; i < objects->count; i++)
    if (objects->items[i] == item) return true;
  return false;
}

void ck_close(ck_session *s) {
  speaking = s;
  for (size_t i = 0; i < s->streams.count; i++)
    if (!holds(&s->failed_streams, s->streams.items[i])) ck_synchronize(s, s->streams.items[i]);
  for (size_t i = 0; i < s->memo_count; i++) {
    ck_doing("destroying a memo");
    if (s->memos[i].destroy) s->memos[i].destroy(s->memos[i].value);
  }
  for (size_t i = 0; i < s->events.count; i++) {
    CK_CALL(GRAFT_OK, s->stream.event_destroy(s->events.items[i]), "event_destroy");
  }
  for (size_t i = 0; i < s->streams.count; i++) {
    CK_CALL(GRAFT_OK, s->stream.destroy(s->streams.items[i]), "stream.destroy");
  }
  for (size_t i = 0; i < s->buffers.count; i++) {
    CK_CALL(GRAFT_OK, s->memory.release(s->device, s->buffers.items[i]), "memory.release");
  }
  s->memo_count = s->events.count = s->streams.count = s->failed_streams.count = s->buffers.count = 0;
  if (s->device) CK_CALL(GRAFT_OK, s->plugin.device_close(s->device), "device_close");
  s->device = NULL;
  if (s->plugin.close) CK_CALL(GRAFT_OK, s->plugin.close(s->plugin.self), "close");
  s->plugin = (graft_plugin){0};
  s->raw = NULL;
}

/* --- objects --- */

static void keep(ck_objects *objects, void *item) {
  if (objects->count == CK_OBJECTS_MAX) ck_fail("the check made too many objects");
  objects->items[objects->count++] = item;
}

graft_buffer *ck_buffer(ck_session *s, uint64_t bytes) {
  uint64_t rounded = (bytes + s->granularity - 1) / s->granularity * s->granularity;
  graft_allocation request = {.struct_size = sizeof request, .bytes = rounded ? rounded : s->granularity};
  CK_CALL(GRAFT_OK, s->memory.allocate(s->device, &request), "allocate %llu bytes", (unsigned long long)request.bytes);
  if (!request.buffer) ck_fail("it said OK and gave no buffer");
  keep(&s->buffers, request.buffer);
  return request.buffer;
}

graft_stream *ck_stream(ck_session *s, graft_stream_flags flags) {
  graft_stream *stream = NULL;
  CK_CALL(GRAFT_OK, s->stream.create(s->device, 0, flags, &stream), "stream.create, flags 0x%x", flags);
  if (!stream) ck_fail("it said OK and gave no stream");
  keep(&s->streams, stream);
  return stream;
}

void ck_stream_has_failed(ck_session *s, graft_stream *stream) {
  keep(&s->failed_streams, stream);
}

graft_event *ck_event(ck_session *s, graft_event_flags flags) {
  graft_event *event = NULL;
  CK_CALL(GRAFT_OK, s->stream.event_create(s->device, flags, &event), "event_create, flags 0x%x", flags);
  if (!event) ck_fail("it said OK and gave no event");
  keep(&s->events, event);
  return event;
}

void ck_synchronize(ck_session *s, graft_stream *stream) {
  CK_CALL(GRAFT_OK, s->stream.synchronize(stream), "synchronize a stream");
}

void ck_fill_all(ck_session *s, graft_stream *stream, graft_buffer *buffer, uint64_t bytes, unsigned char value) {
  unsigned char pattern[16];
  memset(pattern, value, sizeof pattern);
  CK_CALL(GRAFT_OK, s->memory.fill(stream, buffer, 0, bytes, pattern, sizeof pattern), "fill of %llu bytes",
          (unsigned long long)bytes);
}

void ck_record(ck_session *s, graft_event *event, graft_stream *stream) {
  CK_CALL(GRAFT_OK, s->stream.event_record(event, stream), "event_record");
}

void ck_write(ck_session *s, graft_stream *stream, graft_buffer *to, uint64_t offset, const void *from,
              uint64_t bytes) {
  CK_CALL(GRAFT_OK, s->memory.copy_from_host(stream, to, offset, from, bytes, 0),
          "copy_from_host of %llu bytes to offset %llu", (unsigned long long)bytes, (unsigned long long)offset);
  ck_synchronize(s, stream);
}

void ck_read(ck_session *s, graft_stream *stream, graft_buffer *from, uint64_t offset, void *to, uint64_t bytes) {
  CK_CALL(GRAFT_OK, s->memory.copy_to_host(stream, to, from, offset, bytes, 0),
          "copy_to_host of %llu bytes from offset %llu", (unsigned long long)bytes, (unsigned long long)offset);
  ck_synchronize(s, stream);
}

/* --- bytes --- */

void *ck_alloc(size_t bytes) {
  void *memory = malloc(bytes ? bytes : 1);
  if (!memory) ck_skip("no host memory for %zu bytes", bytes);
  return memory;
}

void ck_pattern(void *bytes, size_t count, unsigned seed) {
  uint32_t state = seed * 2654435761u + 12345;
  for (size_t i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    ((unsigned char *)bytes)[i] = (unsigned char)(state >> 24);
  }
}

void ck_same(const void *got, const void *expected, size_t count, const char *format, ...) {
  const unsigned char *a = got, *b = expected;
  if (!memcmp(a, b, count)) return;
  char what[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  ck_doing("%s", what);
  size_t i = 0;
  while (a[i] == b[i]) i++;
  ck_fail("byte %zu of %zu is 0x%02x, expected 0x%02x", i, count, a[i], b[i]);
}
