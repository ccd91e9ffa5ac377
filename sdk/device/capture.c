/* Streams whose work is captured. One of them is named when it begins; others join by waiting for an event that was
 * recorded in one of them. Which work that is and where it goes, dispatch/ knows. */
#include "device/internal.h"

static _Atomic(uint64_t) last_id;

graft_status dev_capture_begin(dev_capture *capture, graft_rt_stream *stream) {
  graft_rt_device *device = stream->device;
  graft_status status = GRAFT_OK;
  capture->device = device;
  capture->id = atomic_fetch_add(&last_id, 1) + 1;
  pthread_mutex_lock(&device->streams_lock);
  if (device->capture)
    status = err_about(GRAFT_INVALID_ARGUMENT, device->text, "a capture is under way on the device; end it first");
  if (!status) {
    device->capture = capture;
    atomic_store(&stream->capture, capture);
  }
  pthread_mutex_unlock(&device->streams_lock);
  return status;
}

void dev_capture_end(dev_capture *capture) {
  graft_rt_device *device = capture->device;
  pthread_mutex_lock(&device->streams_lock);
  if (device->capture == capture) device->capture = NULL;
  for (graft_rt_stream *stream = device->streams; stream; stream = stream->next) {
    dev_capture *own = capture;
    atomic_compare_exchange_strong(&stream->capture, &own, NULL);
  }
  pthread_mutex_unlock(&device->streams_lock);
}

void dev_capture_join(graft_rt_stream *stream, uint64_t id) {
  graft_rt_device *device = stream->device;
  pthread_mutex_lock(&device->streams_lock);
  if (device->capture && device->capture->id == id) atomic_store(&stream->capture, device->capture);
  pthread_mutex_unlock(&device->streams_lock);
}
