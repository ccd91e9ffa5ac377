/* Copies between host memory and the device. A small copy from pageable memory goes through pinned memory, so that the
 * call need not wait for the stream; a device that copies whole words only is given whole words. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "memory/internal.h"

#define STAGED_MAX       (UINT64_C(4) << 20)  /* of one copy */
#define STAGED_TOTAL_MAX (UINT64_C(64) << 20) /* beyond it copies wait instead */

static graft_status copy_from(graft_rt_stream *stream, graft_buffer *to, uint64_t offset, const void *host,
                              uint64_t bytes, graft_copy_flags flags) {
  err_clear();
  pthread_mutex_lock(&stream->lock);
  dev_mark(stream, 0);
  graft_status status = stream->device->backend->memory.copy_from_host(stream->handle, to, offset, host, bytes, flags);
  pthread_mutex_unlock(&stream->lock);
  return dev_status(stream->device, status, "copying from the host");
}

static graft_status copy_to(graft_rt_stream *stream, void *host, graft_buffer *from, uint64_t offset, uint64_t bytes) {
  err_clear();
  pthread_mutex_lock(&stream->lock);
  dev_mark(stream, 0);
  graft_status status = stream->device->backend->memory.copy_to_host(stream->handle, host, from, offset, bytes, 0);
  pthread_mutex_unlock(&stream->lock);
  if (status) return dev_waited(stream, status, "copying to the host");
  return graft_stream_synchronize(stream);
}

/* Whether staging pays: it costs a copy by the processor, and saves waiting for the stream. */
static bool worth_staging(graft_rt_device *device, uint64_t bytes) {
  if (!(device->memory_kinds >> GRAFT_MEMORY_PINNED & 1) || bytes > STAGED_MAX) return false;
  return mem_pinned_has_room(device->allocator, bytes, STAGED_TOTAL_MAX);
}

static graft_status copy_staged(graft_rt_stream *stream, graft_buffer *to, uint64_t offset, const void *host,
                                uint64_t bytes) {
  void *stage;
  graft_status status = graft_pinned_allocate(stream->device, bytes, &stage);
  if (status) return status;
  memcpy(stage, host, bytes);
  status = mem_pinned_record(stream->device, stage, stream);
  if (!status) status = copy_from(stream, to, offset, stage, bytes, 0);
  graft_pinned_free(stream->device, stage);
  return status;
}

/* The source is free on return: staged, or the plugin sees to it. */
static graft_status copy_from_aligned(graft_rt_stream *stream, graft_buffer *to, uint64_t offset, const void *host,
                                      uint64_t bytes) {
  if (worth_staging(stream->device, bytes) && copy_staged(stream, to, offset, host, bytes) == GRAFT_OK) return GRAFT_OK;
  return copy_from(stream, to, offset, host, bytes, GRAFT_COPY_SOURCE_REUSABLE);
}

/* The whole words around a range. Blocks consist of whole words, so that these lie in the buffer. */
typedef struct words {
  uint64_t offset, bytes;
} words;

static words words_around(const graft_rt_device *device, uint64_t offset, uint64_t bytes) {
  uint64_t word = device->copy_granularity, start = offset / word * word;
  return (words){start, (offset + bytes + word - 1) / word * word - start};
}

static bool is_whole(const graft_rt_device *device, uint64_t offset, uint64_t bytes) {
  return ((offset | bytes) & (device->copy_granularity - 1)) == 0;
}

static graft_status from_host_by_words(graft_rt_stream *stream, graft_buffer *to, uint64_t offset, const void *host,
                                       uint64_t bytes) {
  const graft_rt_device *device = stream->device;
  uint64_t word = device->copy_granularity;
  words around = words_around(device, offset, bytes);
  char *copy = malloc(around.bytes);
  if (!copy)
    return err_about(GRAFT_OUT_OF_MEMORY, device->text, "no host memory to copy %llu bytes",
                     (unsigned long long)around.bytes);
  /* What is beside the range in the first and the last word stays as it is. */
  uint64_t last = around.bytes - word;
  graft_status status = copy_to(stream, copy, to, around.offset, word);
  if (!status && last) status = copy_to(stream, copy + last, to, around.offset + last, word);
  if (!status) {
    memcpy(copy + (offset - around.offset), host, bytes);
    status = copy_from_aligned(stream, to, around.offset, copy, around.bytes);
  }
  free(copy);
  return status;
}

static graft_status to_host_by_words(graft_rt_stream *stream, void *host, graft_buffer *from, uint64_t offset,
                                     uint64_t bytes) {
  words around = words_around(stream->device, offset, bytes);
  char *copy = malloc(around.bytes);
  if (!copy)
    return err_about(GRAFT_OUT_OF_MEMORY, stream->device->text, "no host memory to copy %llu bytes",
                     (unsigned long long)around.bytes);
  graft_status status = copy_to(stream, copy, from, around.offset, around.bytes);
  if (!status) memcpy(host, copy + (offset - around.offset), bytes);
  free(copy);
  return status;
}

graft_status mem_from_host(graft_rt_stream *stream, graft_buffer *to, uint64_t offset, const void *host,
                           uint64_t bytes) {
  if (dev_forked(stream->device)) return dev_forked_error(stream->device);
  if (bytes == 0) return GRAFT_OK;
  if (dev_capture_of(stream)) return dev_capture_of(stream)->refuse(dev_capture_of(stream), "copying from the host");
  if (!is_whole(stream->device, offset, bytes)) return from_host_by_words(stream, to, offset, host, bytes);
  return copy_from_aligned(stream, to, offset, host, bytes);
}

graft_status mem_to_host(graft_rt_stream *stream, void *host, graft_buffer *from, uint64_t offset, uint64_t bytes) {
  if (dev_forked(stream->device)) return dev_forked_error(stream->device);
  if (bytes == 0) return GRAFT_OK;
  if (dev_capture_of(stream)) return dev_capture_of(stream)->refuse(dev_capture_of(stream), "copying to the host");
  if (!is_whole(stream->device, offset, bytes)) return to_host_by_words(stream, host, from, offset, bytes);
  return copy_to(stream, host, from, offset, bytes);
}
