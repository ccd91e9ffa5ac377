/* The end of a backend that was used: nothing is left, and all goes in the order that plugins are promised. Run as it
 * is, and under valgrind: CMakeLists.txt. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "device/device.h"
#include "graft/bridge.h"
#include "graft/graft.h"
#include "null_device.h"
#include "plugin/loader.h"
#include "suite.h"

/* --- the async plugin, seen through --- */

enum { NOTHING, MEMO, EVENT, STREAM, BUFFER, DEVICE, INSTANCE, KINDS };
static atomic_int alive[KINDS], ended[KINDS]; /* of each kind: those there are, and how many ended while closing */
static atomic_bool closing;
static atomic_int latest, early; /* while closing: the kind that ended last, and one that ended before its time */

static void begins(int kind) {
  alive[kind]++;
}

static void ends(int kind) {
  alive[kind]--;
  if (!closing) return;
  ended[kind]++;
  if (kind < latest) early = latest;
  latest = kind;
}

static graft_plugin real, seen;
static graft_memory_api memory;
static graft_stream_api stream;
static graft_core_ops core;
static const graft_host *the_host;

static graft_status allocate(graft_device *device, graft_allocation *request) {
  graft_status status = real.memory->allocate(device, request);
  if (!status) begins(BUFFER);
  return status;
}
static graft_status release(graft_device *device, graft_buffer *buffer) {
  ends(BUFFER);
  return real.memory->release(device, buffer);
}
static graft_status stream_create(graft_device *device, int32_t priority, graft_stream_flags flags,
                                  graft_stream **made) {
  begins(STREAM);
  return real.stream->create(device, priority, flags, made);
}
static graft_status stream_destroy(graft_stream *old) {
  ends(STREAM);
  return real.stream->destroy(old);
}
static graft_status event_create(graft_device *device, graft_event_flags flags, graft_event **made) {
  begins(EVENT);
  return real.stream->event_create(device, flags, made);
}
static graft_status event_destroy(graft_event *old) {
  ends(EVENT);
  return real.stream->event_destroy(old);
}
static graft_status device_open(void *self, int32_t index, graft_device **device) {
  begins(DEVICE);
  return real.device_open(self, index, device);
}
static graft_status device_close(graft_device *device) {
  ends(DEVICE);
  return real.device_close(device);
}
static graft_status close_instance(void *self) {
  ends(INSTANCE);
  return real.close(self);
}

static void memo_ends(void *memo) {
  ends(MEMO);
  free(memo);
}

static graft_status neg_with_memo(const graft_exec *exec, const graft_args_neg *args) {
  void *kept;
  if (!exec->memo) {
    begins(MEMO);
    graft_status status = the_host->memo_publish(exec, malloc(1), memo_ends, &kept);
    if (status) return status;
  }
  return real.core->neg(exec, args);
}

static graft_status open_seen(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  void *library = dlopen(test_plugin("async"), RTLD_NOW | RTLD_NODELETE);
  ck_assert_msg(library != NULL, "%s", dlerror());
  graft_plugin_open_v1_fn entry;
  *(void **)&entry = dlsym(library, GRAFT_PLUGIN_ENTRY);
  const graft_plugin *opened;
  graft_status status = entry(host, options, &opened);
  if (status) return status;
  the_host = host;
  real = seen = *opened;
  memory = *real.memory;
  stream = *real.stream;
  core = *real.core;
  memory.allocate = allocate, memory.release = release;
  stream.create = stream_create, stream.destroy = stream_destroy;
  stream.event_create = event_create, stream.event_destroy = event_destroy;
  core.neg = neg_with_memo;
  seen.device_open = device_open, seen.device_close = device_close, seen.close = close_instance;
  seen.memory = &memory, seen.stream = &stream, seen.core = &core;
  begins(INSTANCE);
  *plugin = &seen;
  return GRAFT_OK;
}

/* --- its use and its end --- */

/* A closed backend stays, as a name of nothing. */
static graft_rt_backend *volatile opened[3];

static graft_rt_backend *open_backend(void) {
  static int count;
  graft_rt_backend *backend;
  OK(plg_negotiate(open_seen, test_plugin("async"), NULL, NULL, &backend));
  return opened[count++] = backend;
}

static graft_tensor *negated(graft_rt_device *device, int64_t n) {
  float *values = calloc((size_t)n, sizeof *values);
  graft_tensor *x, *y = NULL;
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, &n, values, &x));
  OK(graft_op_neg(x, &y));
  graft_tensor_release(x);
  free(values);
  return y;
}

/* Memory of two streams and that one of them used of the other's, events, pinned memory, plans. */
static void use(graft_rt_device *device) {
  graft_rt_stream *other;
  graft_rt_event *event;
  void *pinned;
  OK(graft_stream_create(device, 0, 0, &other));
  OK(graft_event_create(device, 0, &event));
  graft_tensor *first = negated(device, 1000), *second = NULL;
  OK(graft_event_record(event, graft_stream_current(device)));
  OK(graft_stream_wait(other, event));
  graft_stream_set_current(other);
  OK(graft_op_neg(first, &second));
  OK(graft_storage_record_stream(graft_tensor_storage(first), other));
  graft_tensor *third = negated(device, 3000000);
  graft_tensor_release(first);
  graft_tensor_release(second);
  graft_tensor_release(third);
  OK(graft_event_destroy(event));
  OK(graft_pinned_allocate(device, 4096, &pinned));
  OK(graft_pinned_free(device, pinned));
}

START_TEST(a_backend_ends_in_order) {
  graft_rt_backend *backend = open_backend();
  graft_rt_device *device;
  OK(graft_backend_device(backend, 0, &device));
  use(device);
  for (int kind = MEMO; kind < KINDS; kind++) ck_assert_msg(alive[kind] > 0, "there is nothing of kind %d", kind);
  closing = true;
  OK(graft_backend_close(backend));
  ck_assert_msg(!early, "of kind %d something ended after kind %d", latest, early);
  for (int kind = MEMO; kind < KINDS; kind++) {
    ck_assert_msg(alive[kind] == 0, "%d of kind %d are left", alive[kind], kind);
    ck_assert_msg(ended[kind] > 0, "none of kind %d ended", kind);
  }
  closing = false;
}
END_TEST

START_TEST(a_backend_in_use_stays_open) {
  graft_rt_backend *backend = open_backend();
  graft_rt_device *device;
  OK(graft_backend_device(backend, 0, &device));
  graft_tensor *kept = negated(device, 10);
  ck_assert_int_eq(graft_backend_close(backend), GRAFT_INVALID_ARGUMENT);
  assert_text("1 tensors (or history that saved them) of it are in use");
  ck_assert_int_eq(alive[INSTANCE], 1);
  graft_tensor_release(kept);
  OK(graft_backend_close(backend));
  ck_assert_int_eq(alive[INSTANCE], 0);
  ck_assert_int_eq(graft_backend_device(backend, 0, &device), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(graft_backend_close(graft_device_reference()->backend), GRAFT_INVALID_ARGUMENT);
}
END_TEST

/* What the blocks of the allocator do not tell: tensors without elements, events, pinned memory; and events that
 * autograd keeps for itself. */
START_TEST(what_keeps_a_backend_open) {
  graft_rt_backend *backend = open_backend();
  graft_rt_device *device;
  OK(graft_backend_device(backend, 0, &device));
  graft_tensor *empty;
  OK(graft_tensor_empty(device, GRAFT_F32, 1, (int64_t[]){0}, &empty));
  ck_assert_int_eq(graft_backend_close(backend), GRAFT_INVALID_ARGUMENT);
  assert_text("1 tensors");
  graft_tensor_release(empty);
  graft_rt_event *event;
  OK(graft_event_create(device, 0, &event));
  ck_assert_int_eq(graft_backend_close(backend), GRAFT_INVALID_ARGUMENT);
  assert_text("1 events");
  OK(graft_event_destroy(event));
  void *pinned;
  OK(graft_pinned_allocate(device, 64, &pinned));
  ck_assert_int_eq(graft_backend_close(backend), GRAFT_INVALID_ARGUMENT);
  assert_text("1 blocks of memory");
  OK(graft_pinned_free(device, pinned));

  graft_rt_stream *other, *home = graft_stream_current(device);
  OK(graft_stream_create(device, 0, 0, &other));
  graft_tensor *leaf, *y = NULL;
  OK(graft_tensor_from_host(device, GRAFT_F32, 0, NULL, (float[]){1}, &leaf));
  OK(graft_tensor_set_requires_grad(leaf, true));
  graft_stream_set_current(other);
  OK(graft_op_neg(leaf, &y));
  graft_stream_set_current(home);
  OK(graft_backward(&y, NULL, 1, 0));
  ck_assert_int_eq(graft_backend_close(backend), GRAFT_INVALID_ARGUMENT);
  assert_text("history");
  graft_tensor_release(y);
  graft_tensor_release(leaf);
  OK(graft_backend_close(backend));
  ck_assert_int_eq(alive[EVENT], 0);
  ck_assert_int_eq(alive[INSTANCE], 0);
}
END_TEST

/* A handle that is left of a closed backend. */
static void refused_as_closed(graft_rt_backend *backend) {
  graft_rt_device *device = NULL;
  int32_t count = -7;
  ck_assert_int_eq(graft_backend_close(backend), GRAFT_INVALID_ARGUMENT);
  assert_text("was closed");
  ck_assert_int_eq(graft_backend_device(backend, 0, &device), GRAFT_INVALID_ARGUMENT);
  assert_text("was closed");
  ck_assert_int_eq(graft_backend_device_count(backend, &count), GRAFT_INVALID_ARGUMENT);
  ck_assert(!device && count == -7);
}

/* By the name that a user gives: the same path opens another instance. */
START_TEST(a_closed_backend_opens_again) {
  graft_rt_backend *first, *second;
  graft_rt_device *device;
  OK(graft_backend_open(test_plugin("null"), NULL, &first));
  OK(graft_backend_device(first, 0, &device));
  OK(graft_backend_close(first));
  refused_as_closed(first);
  OK(graft_backend_open(test_plugin("null"), NULL, &second));
  ck_assert_ptr_ne(first, second);
  refused_as_closed(first);
  OK(graft_backend_device(second, 0, &device));
  graft_tensor *t;
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){2}, (float[]){3, 4}, &t));
  expect(t, 2, (float[]){3, 4});
  graft_tensor_release(t);
  OK(graft_backend_close(second));
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(a_backend_ends_in_order),
                              ONCE(a_backend_in_use_stays_open),
                              ONCE(what_keeps_a_backend_open),
                              ONCE(a_closed_backend_opens_again),
                              {0}};
  return run_suite("close", tests, (suite_options){.timeout_s = 120, .one_process = true});
}
