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
static graft_rt_backend *volatile opened[2];

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
  OK(dev_close_backend(backend));
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
  ck_assert_int_eq(dev_close_backend(backend), GRAFT_INVALID_ARGUMENT);
  assert_text("1 tensors still have memory of it");
  ck_assert_int_eq(alive[INSTANCE], 1);
  graft_tensor_release(kept);
  OK(dev_close_backend(backend));
  ck_assert_int_eq(alive[INSTANCE], 0);
  ck_assert_int_eq(graft_backend_device(backend, 0, &device), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(dev_close_backend(graft_device_reference()->backend), GRAFT_INVALID_ARGUMENT);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(a_backend_ends_in_order), ONCE(a_backend_in_use_stays_open), {0}};
  return run_suite("close", tests, (suite_options){.timeout_s = 120, .one_process = true});
}
