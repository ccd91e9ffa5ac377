/* The end of a backend, in the order that plugins are promised: memos, events, streams, buffers, the device; at last
 * the instance. */
#include <stdlib.h>

#include "device/internal.h"

void dev_free(graft_rt_device *device) {
  if (device->allocator) dev_wait_for_work(device);
  if (device->dispatch) dev_hooks.dispatch_destroy(device->dispatch);
  if (device->allocator) dev_hooks.allocator_settle(device->allocator);
  dev_events_destroy(device);
  dev_streams_destroy(device);
  if (device->allocator) dev_hooks.allocator_destroy(device->allocator);
  if (device->handle) device->backend->plugin.device_close(device->handle);
  pthread_mutex_destroy(&device->streams_lock);
  pthread_mutex_destroy(&device->generator.lock);
  free(device);
}

static graft_status check_device(graft_rt_device *device) {
  dev_hooks.device_closing(device);
  const struct {
    const char *what;
    int64_t count;
  } held[] = {{"tensors (or history that saved them)", atomic_load(&device->storages)},
              {"events", atomic_load(&device->events_out)},
              {"blocks of memory", dev_hooks.allocator_blocks(device->allocator)}};
  for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
    if (!held[i].count) continue;
    return err_about(GRAFT_INVALID_ARGUMENT, device->text, "%lld %s of it are in use; release them, then close",
                     (long long)held[i].count, held[i].what);
  }
  return GRAFT_OK;
}

/* [locked] */
static graft_status check_unused(const graft_rt_backend *backend) {
  graft_status status = GRAFT_OK;
  for (int32_t i = 0; i < backend->device_count && !status; i++) {
    if (backend->devices[i]) status = check_device(backend->devices[i]);
  }
  return status;
}

graft_status dev_closed_error(const graft_rt_backend *backend) {
  return err_about(GRAFT_INVALID_ARGUMENT, backend->name, "the backend was closed; open it again for a new handle");
}

graft_status graft_backend_close(graft_rt_backend *backend) {
  if (!backend) return err_null(__func__, "backend");
  if (backend->is_reference) return err_about(GRAFT_INVALID_ARGUMENT, backend->name, "the built-in backend stays open");
  graft_status status = dev_enter(backend);
  if (status) return status;
  pthread_mutex_lock(&backend->lock);
  status = backend->closed ? dev_closed_error(backend) : check_unused(backend);
  if (!status) {
    for (int32_t i = 0; i < backend->device_count; i++) {
      if (backend->devices[i]) dev_free(backend->devices[i]);
    }
    free(backend->devices);
    backend->devices = NULL;
    backend->device_count = 0;
    backend->closed = true;
    plg_forget(backend);
    err_clear();
    status = plg_status_of(backend->name, backend->plugin.close(backend->plugin.self), "closing");
  }
  pthread_mutex_unlock(&backend->lock);
  return status;
}
