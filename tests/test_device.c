/* Devices of a plugin: properties, streams, events, generators, what the host does for it; use after fork. */
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "device/internal.h"
#include "heap.h"
#include "null_device.h"
#include "own_folder.h"
#include "suite.h"

/* --- properties --- */

START_TEST(properties_have_defaults) {
  graft_rt_device *device = null_device(NULL);
  ck_assert_uint_eq(device->alignment, 64);
  ck_assert_uint_eq(device->granularity, 512);
  ck_assert_uint_eq(device->copy_granularity, 1);
  ck_assert_int_eq(device->dlpack_type, 12);
  ck_assert_uint_eq(device->memory_kinds, 1);
  char name[64];
  size_t size;
  ck_assert_int_eq(graft_device_query(device, GRAFT_DEVICE_NAME, name, sizeof name, &size), GRAFT_OK);
  ck_assert_str_eq(name, "a device that does nothing");
  ck_assert_int_eq(graft_device_query(device, GRAFT_DEVICE_NAME, name, 3, &size), GRAFT_INVALID_ARGUMENT);
  ck_assert_uint_eq(size, 27);
  ck_assert_int_eq(graft_device_query(device, 4711, name, sizeof name, &size), GRAFT_UNIMPLEMENTED);
}
END_TEST

START_TEST(extensions_can_be_asked_for) {
  graft_rt_device *device = null_device(NULL);
  const void *table = NULL;
  void *self = NULL;
  ck_assert_int_eq(graft_device_extension(device, NULL_EXTENSION, 1, &table, &self), GRAFT_OK);
  ck_assert_ptr_nonnull(table);
  ck_assert_ptr_eq(self, device->backend->plugin.self);
  table = NULL;
  ck_assert_int_eq(graft_device_extension(device, "no.such", 1, &table, &self), GRAFT_UNIMPLEMENTED);
  ck_assert_ptr_null(table);
}
END_TEST

START_TEST(reference_is_there) {
  graft_rt_device *device, *reference = graft_device_reference();
  ck_assert_ptr_nonnull(reference);
  ck_assert_int_eq(graft_device_find("reference", &device), GRAFT_OK);
  ck_assert_ptr_eq(device, reference);
  ck_assert_str_eq(graft_device_text(reference), "reference:0");
  ck_assert_int_eq(graft_device_find("reference:x", &device), GRAFT_INVALID_ARGUMENT);
}
END_TEST

/* --- streams and events --- */

START_TEST(current_stream_is_per_thread_and_device) {
  graft_rt_device *device = null_device(NULL), *other;
  ck_assert_int_eq(graft_backend_device(device->backend, 1, &other), GRAFT_OK);
  ck_assert_ptr_eq(graft_stream_current(device), device->default_stream);
  graft_rt_stream *stream;
  ck_assert_int_eq(graft_stream_create(device, 5, 0, &stream), GRAFT_OK);
  graft_stream_set_current(stream);
  ck_assert_ptr_eq(graft_stream_current(device), stream);
  ck_assert_ptr_eq(graft_stream_current(other), other->default_stream);
  ck_assert_ptr_eq(graft_stream_device(stream), device);
  ck_assert_int_eq(graft_stream_destroy(stream), GRAFT_OK);
  ck_assert_ptr_eq(graft_stream_current(device), device->default_stream);
  /* The struct is used again; the old pointer is not the new stream. */
  graft_stream_set_current(device->default_stream);
  ck_assert_int_eq(graft_stream_create(device, 0, 0, &stream), GRAFT_OK);
  ck_assert_ptr_eq(graft_stream_current(device), device->default_stream);
  ck_assert_int_eq(graft_stream_destroy(stream), GRAFT_OK);
  ck_assert_int_eq(graft_stream_destroy(device->default_stream), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(counters_of(device).released_busy, 0);
}
END_TEST

START_TEST(events_follow_the_stream) {
  const char *lazy[] = {"lazy=1", NULL};
  graft_rt_device *device = null_device(lazy);
  graft_rt_event *event;
  ck_assert_int_eq(graft_event_create(device, 0, &event), GRAFT_OK);
  ck_assert_int_eq(graft_event_query(event), GRAFT_OK); /* never recorded counts as done */
  ck_assert_int_eq(graft_event_record(event, device->default_stream), GRAFT_OK);
  ck_assert_int_eq(graft_event_query(event), GRAFT_NOT_READY);
  ck_assert_int_eq(graft_stream_query(device->default_stream), GRAFT_NOT_READY);
  ck_assert_int_eq(graft_stream_wait(device->default_stream, event), GRAFT_OK);
  ck_assert_int_eq(graft_event_synchronize(event), GRAFT_OK);
  ck_assert_int_eq(graft_event_query(event), GRAFT_OK);
  ck_assert_int_eq(graft_stream_query(device->default_stream), GRAFT_NOT_READY);
  ck_assert_int_eq(graft_device_synchronize(device), GRAFT_OK);
  ck_assert_int_eq(graft_stream_query(device->default_stream), GRAFT_OK);
  double time;
  ck_assert_int_eq(graft_event_elapsed(event, event, &time), GRAFT_UNIMPLEMENTED);
  ck_assert_int_eq(graft_event_create(device, GRAFT_EVENT_TIMING, &event), GRAFT_UNIMPLEMENTED);
  assert_text("timing");
  ck_assert_int_eq(graft_event_destroy(event), GRAFT_OK);
}
END_TEST

START_TEST(a_destroyed_event_is_used_again_once_done) {
  graft_rt_device *device = null_device(OPTIONS("lazy=1"));
  graft_rt_event *first, *second, *third;
  ck_assert_int_eq(graft_event_create(device, 0, &first), GRAFT_OK);
  ck_assert_int_eq(graft_event_record(first, device->default_stream), GRAFT_OK);
  ck_assert_int_eq(graft_event_destroy(first), GRAFT_OK); /* does not wait */
  ck_assert_int_eq(graft_stream_query(device->default_stream), GRAFT_NOT_READY);
  ck_assert_int_eq(graft_event_create(device, 0, &second), GRAFT_OK);
  ck_assert_ptr_ne(second, first);
  ck_assert_int_eq(graft_device_synchronize(device), GRAFT_OK);
  ck_assert_int_eq(graft_event_create(device, 0, &third), GRAFT_OK);
  ck_assert_ptr_eq(third, first);
  ck_assert_int_eq(counters_of(device).events, 2);
  graft_event_destroy(second);
  graft_event_destroy(third);
}
END_TEST

START_TEST(events_carry_times_where_asked) {
  graft_rt_device *device = null_device(OPTIONS("timing=1"));
  graft_rt_stream *stream;
  graft_rt_event *from, *to;
  double time = -1;
  ck_assert_int_eq(graft_stream_create(device, 0, GRAFT_STREAM_TIMING, &stream), GRAFT_OK);
  ck_assert_int_eq(graft_event_create(device, GRAFT_EVENT_TIMING, &from), GRAFT_OK);
  ck_assert_int_eq(graft_event_create(device, GRAFT_EVENT_TIMING, &to), GRAFT_OK);
  ck_assert_int_eq(graft_event_elapsed(from, to, &time), GRAFT_NOT_READY);
  ck_assert_int_eq(graft_event_record(from, stream), GRAFT_OK);
  ck_assert_int_eq(graft_event_record(to, stream), GRAFT_OK);
  ck_assert_int_eq(graft_event_elapsed(from, to, &time), GRAFT_OK);
  ck_assert(time > 0);
  ck_assert_int_eq(graft_event_destroy(from), GRAFT_OK);
  ck_assert_int_eq(graft_event_destroy(to), GRAFT_OK);
  ck_assert_int_eq(counters_of(device).events, 0);
  ck_assert_int_eq(graft_stream_destroy(stream), GRAFT_OK);
}
END_TEST

START_TEST(faults_are_explained) {
  graft_rt_device *device = null_device(NULL);
  const graft_plugin *plugin = &device->backend->plugin;
  const void *table;
  plugin->extension(plugin->self, NULL_EXTENSION, 1, &table);
  const null_test_api *test = table;
  test->fault(plugin->self, 1);
  ck_assert_int_eq(graft_stream_synchronize(device->default_stream), GRAFT_STREAM_FAILED);
  assert_text(
      "null:0: waiting for a stream: a fault made for a test (what "
      "this stream did from there on may be wrong; it takes new work)");
  ck_assert_int_eq(graft_device_synchronize(device), GRAFT_STREAM_FAILED);
  test->fault(plugin->self, 0);
  ck_assert_int_eq(graft_device_synchronize(device), GRAFT_OK);
}
END_TEST

START_TEST(unknown_statuses_are_internal) {
  graft_rt_device *device = null_device(NULL);
  err_clear();
  ck_assert_int_eq(dev_status(device, 77, "adding"), GRAFT_INTERNAL);
  assert_text("null:0: adding: the plugin returned the unknown status 77");
  err_clear();
  ck_assert_int_eq(dev_status(device, GRAFT_INTERNAL, "adding"), GRAFT_INTERNAL);
  assert_text("null:0: adding: the plugin says INTERNAL");
  err_about(GRAFT_INTERNAL, "null:0", "told already");
  dev_status(device, GRAFT_INTERNAL, "adding");
  ck_assert_str_eq(graft_last_error(), "null:0: told already");
}
END_TEST

START_TEST(generators) {
  graft_generator *own, *common = graft_generator_default(graft_device_reference());
  uint64_t seed, offset;
  graft_generator_seed(common, 42);
  dev_generator_draw(common, 8, &seed, &offset);
  ck_assert_uint_eq(seed, 42);
  ck_assert_uint_eq(offset, 0);
  graft_generator_state(common, &seed, &offset);
  ck_assert_uint_eq(offset, 8);
  ck_assert_int_eq(graft_generator_create(graft_device_reference(), &own), GRAFT_OK);
  graft_generator_set_state(own, 7, 16);
  dev_generator_draw(own, 4, &seed, &offset);
  ck_assert_uint_eq(seed, 7);
  ck_assert_uint_eq(offset, 16);
  graft_generator_destroy(own);
}
END_TEST

/* --- the host's functions --- */

START_TEST(cache_directory) {
  graft_rt_device *device = null_device(NULL);
  const graft_host *host = &device->backend->host;
  char root[] = OWN_FOLDER, path[256], expected[128];
  folder_make(root);
  snprintf(expected, sizeof expected, "%s/deep/er", root);
  setenv("GRAFT_CACHE_DIR", expected, 1);
  size_t length = 0;
  ck_assert_int_eq(host->cache_directory(host->context, path, sizeof path, &length), GRAFT_OK);
  strcat(expected, "/null");
  ck_assert_str_eq(path, expected);
  ck_assert_uint_eq(length, strlen(expected));
  struct stat info;
  ck_assert_int_eq(stat(path, &info), 0);
  ck_assert_uint_eq(info.st_mode & 0777, 0700);
  ck_assert_int_eq(host->cache_directory(host->context, path, 4, &length), GRAFT_OK);
  ck_assert_str_eq(path, "");
  ck_assert_uint_eq(length, strlen(expected));
  chmod(expected, 0777);
  ck_assert_int_eq(host->cache_directory(host->context, path, sizeof path, &length), GRAFT_UNIMPLEMENTED);
  setenv("GRAFT_CACHE_DIR", "/dev/null/x", 1);
  ck_assert_int_eq(host->cache_directory(host->context, path, sizeof path, &length), GRAFT_UNIMPLEMENTED);
  setenv("GRAFT_CACHE_DIR", "none", 1);
  ck_assert_int_eq(host->cache_directory(host->context, path, sizeof path, &length), GRAFT_UNIMPLEMENTED);
  folder_remove(root);
  const void *table;
  ck_assert_int_eq(host->extension(host->context, "graft.graph", 1, &table), GRAFT_UNIMPLEMENTED);
}
END_TEST

/* --- fork and threads --- */

/* Runs in a child; its exit status is the number of what went wrong. */
static int child_of_used_driver(graft_rt_device *device, mem_block *block, graft_rt_stream *stream,
                                graft_rt_event *event) {
  int64_t calls = counters_of(device).calls;
  mem_block *another;
  graft_rt_device *second;
  if (mem_allocate(device, NULL, 64, &another) != GRAFT_FORKED) return 1;
  if (!strstr(graft_last_error(), "forked")) return 2;
  if (graft_device_synchronize(device) != GRAFT_FORKED) return 3;
  if (graft_backend_device(device->backend, 1, &second) != GRAFT_FORKED) return 4;
  if (graft_event_query(event) != GRAFT_FORKED) return 5;
  mem_free(block);
  if (graft_stream_destroy(stream) != GRAFT_OK) return 6;
  if (graft_event_destroy(event) != GRAFT_OK) return 7;
  if (counters_of(device).calls != calls) return 8; /* something entered the plugin */
  if (mem_allocate(graft_device_reference(), NULL, 64, &another) != GRAFT_OK) return 9;
  mem_free(another);
  return 0;
}

static int wait_for(pid_t child) {
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

START_TEST(a_used_driver_does_not_survive_fork) {
  graft_device_reference();
  graft_rt_device *device = null_device(NULL);
  mem_block *block;
  graft_rt_stream *stream;
  graft_rt_event *event;
  ck_assert_int_eq(mem_allocate(device, NULL, 64, &block), GRAFT_OK);
  ck_assert_int_eq(graft_stream_create(device, 0, 0, &stream), GRAFT_OK);
  ck_assert_int_eq(graft_event_create(device, 0, &event), GRAFT_OK);
  pid_t child = fork();
  if (child == 0) _exit(child_of_used_driver(device, block, stream, event));
  ck_assert_int_eq(wait_for(child), 0);
  ck_assert_int_eq(graft_device_synchronize(device), GRAFT_OK); /* the parent goes on */
  ck_assert_int_eq(graft_event_destroy(event), GRAFT_OK);
  ck_assert_int_eq(graft_stream_destroy(stream), GRAFT_OK);
  mem_free(block);
}
END_TEST

START_TEST(an_opened_plugin_survives_fork_until_its_driver_is_used) {
  graft_rt_backend *backend;
  ck_assert_int_eq(graft_backend_open(test_plugin("null"), NULL, &backend), GRAFT_OK);
  pid_t child = fork();
  if (child == 0) {
    graft_rt_device *device;
    _exit(graft_backend_device(backend, 0, &device) == GRAFT_OK ? 0 : 1);
  }
  ck_assert_int_eq(wait_for(child), 0);
  graft_rt_device *device;
  ck_assert_int_eq(graft_backend_device(backend, 0, &device), GRAFT_OK);
}
END_TEST

static graft_rt_device *late_device;
static mem_block *late_block;
static graft_rt_stream *late_stream;

/* Registered before the driver was used, so that it runs when nothing may be called any more. */
static void late(void) {
  int64_t calls = counters_of(late_device).calls;
  mem_block *block;
  mem_free(late_block);
  if (graft_stream_destroy(late_stream) != GRAFT_OK) _exit(1);
  if (mem_allocate(late_device, NULL, 64, &block) != GRAFT_FORKED) _exit(2);
  if (!strstr(graft_last_error(), "exiting")) _exit(3);
  if (counters_of(late_device).calls != calls) _exit(4);
  _exit(42);
}

START_TEST(nothing_is_called_once_exit_has_begun) {
  pid_t child = fork();
  if (child == 0) {
    atexit(late);
    late_device = null_device(NULL);
    if (mem_allocate(late_device, NULL, 64, &late_block)) _exit(5);
    if (graft_stream_create(late_device, 0, 0, &late_stream)) _exit(6);
    exit(0);
  }
  ck_assert_int_eq(wait_for(child), 42);
}
END_TEST

static void *open_device(void *result) {
  *(graft_rt_device **)result = null_device(NULL);
  return NULL;
}

START_TEST(threads_get_one_device) {
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  graft_rt_device *devices[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, open_device, &devices[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 1; i < THREADS; i++) ck_assert_ptr_eq(devices[i], devices[0]);
  ck_assert_int_eq(counters_of(devices[0]).devices, 1);
}
END_TEST

static void count_device(void *context, graft_rt_device *device) {
  (void)device;
  ++*(int *)context;
}

/* A thread has a current stream on each of as many devices as there are. */
START_TEST(many_devices_have_current_streams) {
  enum { DEVICES = 40 };
  graft_rt_device *devices[DEVICES];
  graft_rt_stream *streams[DEVICES];
  for (int i = 0; i < DEVICES; i++) {
    char capacity[32]; /* another option is another backend */
    snprintf(capacity, sizeof capacity, "capacity=%d", 1000000 + i);
    devices[i] = null_device(OPTIONS(capacity));
    ck_assert_int_eq(graft_stream_create(devices[i], 0, 0, &streams[i]), GRAFT_OK);
    graft_stream_set_current(streams[i]);
  }
  for (int i = 0; i < DEVICES; i++) ck_assert_ptr_eq(graft_stream_current(devices[i]), streams[i]);
  for (int i = 0; i < DEVICES; i++) graft_stream_set_current(devices[i]->default_stream);
  for (int i = 0; i < DEVICES; i++) ck_assert_ptr_eq(graft_stream_current(devices[i]), devices[i]->default_stream);
}
END_TEST

START_TEST(each_device_is_visited) {
  int before = 0, after = 0;
  ck_assert_ptr_nonnull(graft_device_reference()); /* comes with any device */
  dev_each(count_device, &before);
  null_device(NULL);
  dev_each(count_device, &after);
  ck_assert_int_eq(after, before + 1);
}
END_TEST

/* --- without memory --- */

/* A new backend's device, of whose opening one request for host memory fails. False: it has fewer, and opened. */
static bool fail_to_open(uint64_t request, char *text, size_t capacity) {
  graft_rt_backend *backend;
  graft_rt_device *device = NULL;
  OK(graft_backend_open(test_plugin("null"), OPTIONS("capacity=4000000"), &backend)); /* no other test's */
  heap_failing = heap_calls + request;
  const graft_status status = graft_backend_device(backend, 0, &device);
  heap_failing = 0;
  if (status) {
    snprintf(text, capacity, "%s", graft_last_error());
    ck_assert_msg(status == GRAFT_OUT_OF_MEMORY && !device, "request %d: %s", (int)request, text);
    assert_text(backend->name);
    assert_text("no host memory");
    OK(graft_backend_device(backend, 0, &device));
  }
  const null_counters counters = counters_of(device);
  ck_assert_int_eq(counters.devices, 1); /* what was begun was ended */
  ck_assert_int_eq(counters.streams, 1);
  const float one = 1;
  graft_tensor *from, *to = NULL;
  OK(graft_tensor_from_host(device, GRAFT_F32, 0, NULL, &one, &from));
  OK(graft_op_neg(from, &to));
  graft_tensor_release(from);
  graft_tensor_release(to);
  OK(graft_backend_close(backend));
  return status != GRAFT_OK;
}

/* What opening asks for, in its order; a stream's struct is kept for the next stream. */
START_TEST(a_device_that_lacks_host_memory_opens_once_there_is_some) {
  static const char *const lacks[] = {"for its devices", "to open the device", "for its allocator",
                                      "for what is known of its ops"};
  char text[512] = "";
  ck_assert(!fail_to_open(100, text, sizeof text));
  for (int i = 0; i < ROWS(lacks); i++) {
    ck_assert_msg(fail_to_open((uint64_t)i + 1, text, sizeof text), "nothing is asked for %s", lacks[i]);
    ck_assert_msg(strstr(text, lacks[i]) != NULL, "\"%s\" does not say \"%s\"", text, lacks[i]);
  }
  ck_assert(!fail_to_open(ROWS(lacks) + 1, text, sizeof text));
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(properties_have_defaults),
                              ONCE(extensions_can_be_asked_for),
                              ONCE(reference_is_there),
                              ONCE(current_stream_is_per_thread_and_device),
                              ONCE(events_follow_the_stream),
                              ONCE(a_destroyed_event_is_used_again_once_done),
                              ONCE(events_carry_times_where_asked),
                              ONCE(faults_are_explained),
                              ONCE(unknown_statuses_are_internal),
                              ONCE(generators),
                              ONCE(cache_directory),
                              ONCE(many_devices_have_current_streams),
                              ONCE(each_device_is_visited),
                              ONCE(a_device_that_lacks_host_memory_opens_once_there_is_some),
                              ONCE(a_used_driver_does_not_survive_fork),
                              ONCE(an_opened_plugin_survives_fork_until_its_driver_is_used),
                              ONCE(nothing_is_called_once_exit_has_begun),
                              ONCE(threads_get_one_device),
                              {0}};
  return run_suite("device", tests, (suite_options){0});
}
