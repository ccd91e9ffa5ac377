#include "tensor/transfer.h"

#include <stdlib.h>

#include "base/error.h"
#include "graft/memory.h"
#include "tensor/capture.h"
#include "tensor/copy_host.h"

/* The bytes of a dense tensor in its buffer. */
typedef struct range {
  graft_buffer *buffer;
  uint64_t offset, bytes;
} range;

static range range_of(const graft_tensor *t) {
  return (range){t->storage->buffer, tns_first_byte(t), (uint64_t)t->numel * dt_bytes(t->dtype)};
}

static bool fits_granularity(const graft_rt_device *device, range r) {
  uint64_t unit = device->copy_granularity;
  return unit <= 1 || (r.offset % unit == 0 && r.bytes % unit == 0);
}

void *tns_host_data(const graft_tensor *tensor) {
  return (char *)tensor->storage->host_pointer + tensor->offset * (int64_t)dt_bytes(tensor->dtype);
}

graft_status tns_transfer_inside(graft_tensor *to, graft_tensor *from) {
  graft_rt_device *device = to->device;
  range t = range_of(to), f = range_of(from);
  if (!fits_granularity(device, t) || !fits_granularity(device, f)) return GRAFT_UNIMPLEMENTED;
  tns_capture *capture = tns_capture_of(device);
  if (capture) return capture->copy_bytes(capture, to, from);
  graft_rt_stream *stream = graft_stream_current(device);
  err_clear();
  pthread_mutex_lock(&stream->lock);
  dev_mark(stream, 0);
  graft_status status = device->backend->memory.copy(stream->handle, t.buffer, t.offset, f.buffer, f.offset, t.bytes);
  pthread_mutex_unlock(&stream->lock);
  return status ? dev_status(device, status, "copying inside the device") : GRAFT_OK;
}

/* --- to and from the host; memory/ sees to granularity, staging and waiting --- */

static graft_status device_read(graft_tensor *from, void *host) {
  range r = range_of(from);
  return mem_to_host(graft_stream_current(from->device), host, r.buffer, r.offset, r.bytes);
}

static graft_status device_write(graft_tensor *to, const void *host) {
  range r = range_of(to);
  tns_capture *capture = to->numel == 1 ? tns_capture_of(to->device) : NULL;
  if (capture) return capture->put_number(capture, to, host);
  return mem_from_host(graft_stream_current(to->device), r.buffer, r.offset, host, r.bytes);
}

static graft_status through_host(graft_tensor *to, graft_tensor *from) {
  void *host;
  graft_status status = graft_pinned_allocate(from->device, range_of(from).bytes, &host);
  if (status) return status;
  status = device_read(from, host);
  if (!status) status = device_write(to, host);
  graft_status freed = graft_pinned_free(from->device, host);
  return status ? status : freed;
}

/* From the first to the last byte of a tensor with gaps. */
static range span_of(const graft_tensor *t) {
  range r = range_of(t);
  r.bytes = (uint64_t)tns_extent_bytes(t->dtype, t->ndim, t->sizes, t->strides, 0);
  return r;
}

graft_status tns_copy_staged(graft_tensor *to, graft_tensor *from, bool conj, bool neg) {
  graft_rt_stream *stream = graft_stream_current(to->device);
  range t = span_of(to), f = span_of(from);
  char *memory = malloc(t.bytes + f.bytes);
  if (!memory) {
    return err_set(GRAFT_OUT_OF_MEMORY, "copy: no %llu bytes of host memory", (unsigned long long)(t.bytes + f.bytes));
  }
  char *host_to = memory, *host_from = memory + t.bytes;
  graft_status status = mem_to_host(stream, host_from, f.buffer, f.offset, f.bytes);
  /* What lies in the gaps goes back as it came. */
  bool gaps = !tns_is_dense(to->ndim, to->sizes, to->strides);
  if (!status && gaps) status = mem_to_host(stream, host_to, t.buffer, t.offset, t.bytes);
  if (!status) {
    tns_copy_elements(to, host_to, from, host_from, conj, neg);
    status = mem_from_host(stream, t.buffer, t.offset, host_to, t.bytes);
  }
  free(memory);
  return status;
}

/* --- between peers --- */

static bool are_peers(graft_rt_device *to, graft_rt_device *from) {
  if (to->backend != from->backend || !to->backend->memory.copy_peer) return false;
  int32_t count = 0;
  if (graft_backend_device_count(to->backend, &count)) return false;
  size_t room = (size_t)count * sizeof(int32_t), size = 0;
  int32_t *peers = malloc(room);
  bool found = false;
  if (peers && !graft_device_query(to, GRAFT_DEVICE_PEERS, peers, room, &size)) {
    for (size_t i = 0; i < size / sizeof *peers; i++) found |= peers[i] == from->index;
  }
  free(peers);
  return found;
}

/* Makes later work on `stream` wait for what `first` holds now; blocks where an event can't say so across devices. */
static graft_status follow(graft_rt_stream *stream, graft_rt_stream *first) {
  graft_rt_event *event;
  graft_status status = graft_event_create(first->device, 0, &event);
  if (status) return status;
  status = graft_event_record(event, first);
  if (!status && graft_stream_wait(stream, event)) status = graft_event_synchronize(event);
  graft_event_destroy(event);
  return status;
}

static graft_status copy_peer(graft_tensor *to, graft_tensor *from) {
  graft_rt_stream *stream = graft_stream_current(to->device), *other = graft_stream_current(from->device);
  dev_capture *capture = dev_capture_of(stream) ? dev_capture_of(stream) : dev_capture_of(other);
  if (capture) return capture->refuse(capture, "copying between devices");
  range t = range_of(to), f = range_of(from);
  graft_status status = follow(stream, other);
  if (status) return status;
  err_clear();
  pthread_mutex_lock(&stream->lock);
  dev_mark(stream, 0);
  status = to->device->backend->memory.copy_peer(stream->handle, to->device->handle, t.buffer, t.offset,
                                                 from->device->handle, f.buffer, f.offset, t.bytes);
  pthread_mutex_unlock(&stream->lock);
  if (status == GRAFT_UNIMPLEMENTED) return status;
  if (status) return dev_status(to->device, status, "copying between devices");
  return follow(other, stream); /* the source's memory is reused in the order of its own stream */
}

graft_status tns_transfer_across(graft_tensor *to, graft_tensor *from) {
  if (from->device->is_reference) return device_write(to, tns_host_data(from));
  if (to->device->is_reference) return device_read(from, tns_host_data(to));
  if (are_peers(to->device, from->device) && fits_granularity(to->device, range_of(to)) &&
      fits_granularity(from->device, range_of(from))) {
    graft_status status = copy_peer(to, from);
    if (status != GRAFT_UNIMPLEMENTED) return status;
  }
  return through_host(to, from);
}

/* --- without waiting --- */

graft_status tns_copy_unwaited(graft_tensor *to, graft_tensor *from) {
  bool reads = to->device->is_reference;
  graft_tensor *there = reads ? from : to, *here = reads ? to : from;
  graft_rt_device *device = there->device;
  if (device->is_reference || !here->device->is_reference || !to->numel) return GRAFT_UNIMPLEMENTED;
  if (to->dtype != from->dtype || to->flags != from->flags || !tns_dense_alike(to, from)) return GRAFT_UNIMPLEMENTED;
  void *host = tns_host_data(here);
  range r = range_of(there);
  if (!fits_granularity(device, r) || !mem_is_pinned(device, host, r.bytes)) return GRAFT_UNIMPLEMENTED;
  if (dev_forked(device)) return dev_forked_error(device);
  if (tns_capture_of(device)) return GRAFT_UNIMPLEMENTED;
  graft_rt_stream *stream = graft_stream_current(device);
  graft_status status = mem_pinned_record(device, host, stream);
  if (status) return status;
  const graft_memory_api *memory = &device->backend->memory;
  err_clear();
  pthread_mutex_lock(&stream->lock);
  dev_mark(stream, 0);
  status = reads ? memory->copy_to_host(stream->handle, host, r.buffer, r.offset, r.bytes, 0)
                 : memory->copy_from_host(stream->handle, r.buffer, r.offset, host, r.bytes, 0);
  pthread_mutex_unlock(&stream->lock);
  return dev_status(device, status, reads ? "copying to the host" : "copying from the host");
}
