/* Records of what ran on a device. The plugin keeps them; here they get the host's clock, and each submission is marked
 * with who made it: see dev_mark. */
#include <string.h>

#include "device/internal.h"
#include "graft/profiler.h"

/* One number goes through the plugin: the stream's above the thread's. */
enum { THREAD_BITS = 48 };
#define THREAD_MASK ((UINT64_C(1) << THREAD_BITS) - 1)

static _Thread_local uint64_t thread_correlation;

uint64_t graft_profiler_correlate(uint64_t correlation) {
  uint64_t before = thread_correlation;
  thread_correlation = correlation & THREAD_MASK;
  return before;
}

void dev_mark_submission(const graft_profiler_api *profiler, graft_rt_stream *stream, uint32_t op_id) {
  profiler->mark(stream->handle, op_id, atomic_load(&stream->id) << THREAD_BITS | thread_correlation);
}

/* The plugin's table, whole. */
static graft_status table_of(graft_rt_device *device, const graft_profiler_api **table) {
  const void *found = NULL;
  void *self;
  graft_status status = graft_device_extension(device, GRAFT_EXTENSION_PROFILER, GRAFT_PROFILER_VERSION, &found, &self);
  if (status == GRAFT_UNIMPLEMENTED) {
    return err_about(status, device->text, "the plugin does not record what runs: it has no extension \"%s\"",
                     GRAFT_EXTENSION_PROFILER);
  }
  if (status) return status;
  const graft_profiler_api *api = found;
  if (api && GRAFT_HAS(api, graft_profiler_api, clock) && api->start && api->stop && api->mark && api->drain) {
    *table = api;
    return GRAFT_OK;
  }
  return err_about(GRAFT_INTERNAL, device->text, "the plugin's table \"%s\" is not whole", GRAFT_EXTENSION_PROFILER);
}

static graft_status read_clock(graft_rt_device *device, const graft_profiler_api *api, dev_moment *moment) {
  err_clear();
  return dev_status(device, api->clock(device->handle, &moment->device_ns, &moment->host_ns), "reading its clock");
}

graft_status graft_profiler_start(graft_rt_device *device) {
  if (!device) return err_null(__func__, "device");
  const graft_profiler_api *api;
  dev_moment began;
  graft_status status = table_of(device, &api);
  if (!status) status = read_clock(device, api, &began);
  if (status) return status;
  pthread_mutex_lock(&device->streams_lock);
  device->profile_began = began;
  pthread_mutex_unlock(&device->streams_lock);
  atomic_store(&device->profiler, api); /* first: what is recorded is marked */
  err_clear();
  status = api->start(device->handle);
  if (status) atomic_store(&device->profiler, NULL);
  return dev_status(device, status, "starting to record");
}

graft_status graft_profiler_stop(graft_rt_device *device) {
  if (!device) return err_null(__func__, "device");
  const graft_profiler_api *api;
  graft_status status = table_of(device, &api);
  if (status) return status;
  err_clear();
  status = api->stop(device->handle);
  atomic_store(&device->profiler, NULL);
  return dev_status(device, status, "ending to record");
}

/* --- records --- */

/* The way of `take` through the plugin. */
typedef struct drain {
  graft_profile_take_fn take;
  void *context;
  dev_moment from;
  double rate; /* nanoseconds of the host in one of the device */
} drain;

/* Clocks drift apart, which shows over long times only; over short ones a rate would be noise. */
static double rate_between(dev_moment from, dev_moment to) {
  const uint64_t least = 100 * UINT64_C(1000000);
  if (to.device_ns < from.device_ns + least || to.host_ns < from.host_ns + least) return 1;
  return (double)(to.host_ns - from.host_ns) / (double)(to.device_ns - from.device_ns);
}

static uint64_t on_host(const drain *d, uint64_t device_ns) {
  double since = device_ns >= d->from.device_ns ? (double)(device_ns - d->from.device_ns)
                                                : -(double)(d->from.device_ns - device_ns);
  return d->from.host_ns + (uint64_t)(int64_t)(since * d->rate);
}

static void take_record(void *context, const graft_profiler_record *record) {
  const drain *d = context;
  if (record->struct_size < GRAFT_SIZE_TO(graft_profiler_record, end_ns)) return;
  graft_profile_record taken = {.struct_size = sizeof taken,
                                .kind = record->kind,
                                .op_id = record->op_id,
                                .correlation = record->correlation & THREAD_MASK,
                                .stream = record->correlation >> THREAD_BITS,
                                .name = record->name ? record->name : "",
                                .bytes = record->bytes,
                                .begin_ns = on_host(d, record->begin_ns),
                                .end_ns = on_host(d, record->end_ns)};
  d->take(d->context, &taken);
}

graft_status graft_profiler_drain(graft_rt_device *device, graft_profile_take_fn take, void *context, uint64_t *lost) {
  if (!device) return err_null(__func__, "device");
  if (!take) return err_null(__func__, "take");
  const graft_profiler_api *api;
  dev_moment now;
  graft_status status = table_of(device, &api);
  if (!status) status = read_clock(device, api, &now);
  if (status) return status;
  pthread_mutex_lock(&device->streams_lock);
  drain d = {take, context, device->profile_began, rate_between(device->profile_began, now)};
  pthread_mutex_unlock(&device->streams_lock);
  uint64_t unkept = 0;
  err_clear();
  status = dev_status(device, api->drain(device->handle, take_record, &d, &unkept), "fetching records");
  if (!status && lost) *lost = unkept;
  return status;
}
