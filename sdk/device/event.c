/* Events. One that its owner destroys may still stand in a stream, and the plugin is promised that none it destroys
 * does; nor must its owner wait. So it is kept, and given out again once it is done. */
#include <stdlib.h>

#include "device/internal.h"

struct graft_rt_event {
  graft_rt_device *device;
  graft_event *handle;
  graft_event_flags flags;
  _Atomic(uint64_t) captured; /* the id of the capture that it was recorded in; 0: in none */
  graft_rt_event *next;
};

static void keep(graft_rt_event *event) {
  graft_rt_device *device = event->device;
  event->next = NULL;
  pthread_mutex_lock(&device->streams_lock);
  graft_rt_event **end = device->events ? &device->last_event->next : &device->events;
  *end = device->last_event = event;
  pthread_mutex_unlock(&device->streams_lock);
}

/* The event kept longest, if it is done. Only plain ones are kept: one with a time would remember an old record. One
 * whose stream failed would tell its next owner of that failure. */
static graft_rt_event *take_kept(graft_rt_device *device) {
  pthread_mutex_lock(&device->streams_lock);
  graft_rt_event *event = device->events;
  if (event) device->events = event->next;
  pthread_mutex_unlock(&device->streams_lock);
  if (!event) return NULL;
  graft_status status = device->backend->stream.event_query(event->handle);
  if (status == GRAFT_OK) return event;
  if (status == GRAFT_NOT_READY) {
    keep(event);
  } else {
    device->backend->stream.event_destroy(event->handle);
    free(event);
  }
  return NULL;
}

void dev_events_destroy(graft_rt_device *device) {
  while (device->events) {
    graft_rt_event *event = device->events;
    device->events = event->next;
    device->backend->stream.event_destroy(event->handle);
    free(event);
  }
}

graft_status graft_event_create(graft_rt_device *device, graft_event_flags flags, graft_rt_event **event) {
  if (!device) return err_null(__func__, "device");
  if (!event) return err_null(__func__, "event");
  if (dev_forked(device)) return dev_forked_error(device);
  graft_status status = dev_check_flags(device, "event", flags, device->event_flags);
  if (status) return status;
  graft_rt_event *made = flags ? NULL : take_kept(device);
  if (made) {
    atomic_store(&made->captured, 0);
    device->events_out++;
    *event = made;
    return GRAFT_OK;
  }
  made = calloc(1, sizeof *made);
  if (!made) return err_about(GRAFT_OUT_OF_MEMORY, device->text, "no host memory for an event");
  made->device = device;
  made->flags = flags;
  err_clear();
  status = device->backend->stream.event_create(device->handle, flags, &made->handle);
  if (status) {
    status = dev_status(device, status, "creating an event");
  } else if (!made->handle) {
    status = err_about(GRAFT_INTERNAL, device->text, "creating an event: the plugin said OK and gave no event");
  }
  if (status) {
    free(made);
    return status;
  }
  device->events_out++;
  *event = made;
  return GRAFT_OK;
}

graft_status graft_event_destroy(graft_rt_event *event) {
  if (!event) return GRAFT_OK;
  graft_rt_device *device = event->device;
  device->events_out--;
  if (dev_forked(device)) {
    free(event);
    return GRAFT_OK;
  }
  if (!event->flags) {
    keep(event);
    return GRAFT_OK;
  }
  const graft_stream_api *api = &device->backend->stream;
  if (api->event_query(event->handle) == GRAFT_NOT_READY) api->event_synchronize(event->handle);
  err_clear();
  graft_status status = dev_status(device, api->event_destroy(event->handle), "destroying an event");
  free(event);
  return status;
}

graft_status graft_event_record(graft_rt_event *event, graft_rt_stream *stream) {
  if (!event) return err_null(__func__, "event");
  if (!stream) return err_null(__func__, "stream");
  graft_rt_device *device = event->device;
  if (dev_forked(device)) return dev_forked_error(device);
  if (stream->device != device) {
    return err_set(GRAFT_INVALID_ARGUMENT, "an event of %s can't be recorded on a stream of %s", device->text,
                   stream->device->text);
  }
  const dev_capture *capture = dev_capture_of(stream);
  atomic_store(&event->captured, capture ? capture->id : 0);
  err_clear();
  graft_status status = dev_event_record(event->handle, stream);
  return status ? dev_stream_status(device, stream, status, "recording an event") : GRAFT_OK;
}

graft_status graft_stream_wait(graft_rt_stream *stream, graft_rt_event *event) {
  if (!stream) return err_null(__func__, "stream");
  if (!event) return err_null(__func__, "event");
  graft_rt_device *device = stream->device;
  if (dev_forked(device)) return dev_forked_error(device);
  /* Another device's event means nothing to this one, unless the plugin says so: the host waits in its stead. */
  bool known = event->device == device || (event->device->backend == device->backend && device->waits_across);
  if (!known) return graft_event_synchronize(event);
  const uint64_t captured = atomic_load(&event->captured);
  if (captured) dev_capture_join(stream, captured);
  err_clear();
  pthread_mutex_lock(&stream->lock);
  graft_status status = device->backend->stream.stream_wait(stream->handle, event->handle);
  pthread_mutex_unlock(&stream->lock);
  return status ? dev_stream_status(device, stream, status, "making a stream wait") : GRAFT_OK;
}

graft_status graft_event_query(graft_rt_event *event) {
  if (!event) return err_null(__func__, "event");
  graft_rt_device *device = event->device;
  if (dev_forked(device)) return dev_forked_error(device);
  err_clear();
  graft_status status = device->backend->stream.event_query(event->handle);
  if (status == GRAFT_NOT_READY) return status;
  return status ? dev_stream_status(device, NULL, status, "querying an event") : GRAFT_OK;
}

graft_status graft_event_synchronize(graft_rt_event *event) {
  if (!event) return err_null(__func__, "event");
  graft_rt_device *device = event->device;
  if (dev_forked(device)) return dev_forked_error(device);
  err_clear();
  graft_status status = device->backend->stream.event_synchronize(event->handle);
  return status ? dev_stream_status(device, NULL, status, "waiting for an event") : GRAFT_OK;
}

graft_status graft_event_elapsed(graft_rt_event *from, graft_rt_event *to, double *milliseconds) {
  if (!from) return err_null(__func__, "from");
  if (!to) return err_null(__func__, "to");
  if (!milliseconds) return err_null(__func__, "milliseconds");
  graft_rt_device *device = from->device;
  if (dev_forked(device)) return dev_forked_error(device);
  if (to->device != device) {
    return err_set(GRAFT_INVALID_ARGUMENT, "the time between events of %s and %s can't be told", device->text,
                   to->device->text);
  }
  if (!device->backend->stream.event_elapsed) {
    return err_about(GRAFT_UNIMPLEMENTED, device->text, "the plugin does not measure time");
  }
  double time = 0;
  err_clear();
  graft_status status = device->backend->stream.event_elapsed(from->handle, to->handle, &time);
  if (status) return dev_status(device, status, "measuring the time between events");
  *milliseconds = time;
  return GRAFT_OK;
}
