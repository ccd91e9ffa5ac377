/* Segments: buffers held from the plugin. Nothing here holds the allocator's lock while the plugin is called. */
#include "base/error.h"
#include "memory/internal.h"

static void give_back(mem_allocator *allocator, mem_segment *segment) {
  graft_rt_device *device = allocator->device;
  if (segment->buffer) device->backend->memory.release(device->handle, segment->buffer);
  mem_address_release(segment->address, segment->reserved);
}

/* Counts bytes as reserved if the limit admits them. */
static bool admit(mem_allocator *allocator, uint64_t bytes) {
  pthread_mutex_lock(&allocator->lock);
  uint64_t reserved = (uint64_t)allocator->stats.reserved_bytes.current;
  bool admitted = !allocator->limit || (reserved <= allocator->limit && bytes <= allocator->limit - reserved);
  if (admitted) {
    mem_stat_add(&allocator->stats.reserved_bytes, (int64_t)bytes);
    mem_stat_add(&allocator->stats.segment, 1);
  }
  pthread_mutex_unlock(&allocator->lock);
  return admitted;
}

/* Undoes admit as if it had not been, and keeps the struct for the next one. */
static void withdraw(mem_allocator *allocator, uint64_t bytes, mem_segment *segment) {
  pthread_mutex_lock(&allocator->lock);
  graft_memory_stat *stats[] = {&allocator->stats.reserved_bytes, &allocator->stats.segment};
  int64_t amounts[] = {(int64_t)bytes, 1};
  for (int i = 0; i < 2; i++) {
    /* The peak stays where it was unless this very request set it, which no one has seen. */
    bool at_peak = stats[i]->peak == stats[i]->current;
    stats[i]->current -= amounts[i];
    stats[i]->allocated -= amounts[i];
    if (at_peak) stats[i]->peak -= amounts[i];
  }
  if (segment) mem_segment_return(allocator, segment);
  pthread_mutex_unlock(&allocator->lock);
}

/* Asks the plugin for the buffer of a segment. */
static graft_status allocate(mem_allocator *allocator, uint64_t bytes, graft_rt_stream *stream, mem_segment *segment) {
  graft_rt_device *device = allocator->device;
  graft_allocation request = {.struct_size = sizeof request, .bytes = bytes, .kind = GRAFT_MEMORY_DEVICE};
  err_clear();
  if (allocator->ordered) {
    pthread_mutex_lock(&stream->lock);
    request.stream = stream->handle;
  }
  graft_status status = device->backend->memory.allocate(device->handle, &request);
  if (allocator->ordered) pthread_mutex_unlock(&stream->lock);
  if (status) return dev_status(device, status, "allocating memory");
  if (!request.buffer) {
    return err_about(GRAFT_INTERNAL, device->text, "allocating memory: the plugin said OK and gave no buffer");
  }
  segment->buffer = request.buffer;
  segment->bytes = bytes;
  segment->host_pointer = request.host_pointer;
  segment->address = request.device_address ? request.device_address : (uint64_t)(uintptr_t)request.host_pointer;
  if (!segment->address) status = mem_address_reserve(bytes, device->alignment, &segment->address, &segment->reserved);
  if (status) give_back(allocator, segment);
  return status;
}

graft_status mem_segment_new(mem_allocator *allocator, uint64_t bytes, graft_rt_stream *stream, mem_segment **segment) {
  const char *who = allocator->device->text;
  if (!admit(allocator, bytes)) {
    return err_about(GRAFT_OUT_OF_MEMORY, who, "the limit of %llu bytes is reached",
                     (unsigned long long)allocator->limit);
  }
  pthread_mutex_lock(&allocator->lock);
  mem_segment *made = mem_segment_take(allocator);
  mem_part *part = made ? mem_part_take(allocator) : NULL;
  pthread_mutex_unlock(&allocator->lock);
  graft_status status = part ? allocate(allocator, bytes, stream, made)
                             : err_about(GRAFT_OUT_OF_MEMORY, who, "no host memory to note a segment");
  if (status) {
    withdraw(allocator, bytes, made);
    if (!part) return status;
    pthread_mutex_lock(&allocator->lock);
    mem_part_return(allocator, part);
    pthread_mutex_unlock(&allocator->lock);
    return status;
  }
  part->segment = made;
  part->block.buffer = made->buffer;
  part->block.bytes = bytes;
  part->block.address = made->address;
  part->block.host_pointer = made->host_pointer;
  made->first = part;
  *segment = made;
  return GRAFT_OK;
}

static void unlink_segment(mem_allocator *allocator, mem_segment *segment) {
  if (segment->prev) segment->prev->next = segment->next;
  if (!segment->prev) allocator->segments = segment->next;
  if (segment->next) segment->next->prev = segment->prev;
}

static void count_gone(mem_allocator *allocator, mem_segment *segment) {
  mem_stat_add(&allocator->stats.reserved_bytes, -(int64_t)segment->bytes);
  mem_stat_add(&allocator->stats.segment, -1);
  allocator->stats.num_device_free++;
  mem_segment_return(allocator, segment);
}

void mem_segment_end(mem_allocator *allocator, mem_segment *segment) {
  graft_rt_device *device = allocator->device;
  pthread_mutex_lock(&allocator->lock);
  graft_rt_stream *stream = segment->pool->stream;
  pthread_mutex_unlock(&allocator->lock);
  mem_uses_follow(allocator, &segment->first->uses, stream);
  pthread_mutex_lock(&stream->lock);
  graft_status status = device->backend->memory.release_on(stream->handle, segment->buffer);
  pthread_mutex_unlock(&stream->lock);
  if (!status) segment->buffer = NULL;
  if (status) dev_wait_for_work(device); /* a stream that failed has no order */
  give_back(allocator, segment);
}

void mem_segment_drop(mem_allocator *allocator, mem_segment *segment) {
  mem_part_return(allocator, segment->first);
  unlink_segment(allocator, segment);
  count_gone(allocator, segment);
}

/* Takes out the segments that are free as a whole. [locked] */
static mem_segment *take_unused(mem_allocator *allocator) {
  mem_segment *unused = NULL, *next;
  for (mem_segment *segment = allocator->segments; segment; segment = next) {
    next = segment->next;
    if (!segment->first->free || segment->first->next || segment->pool->captured) continue;
    mem_part_remove(allocator, segment->first);
    mem_part_return(allocator, segment->first);
    unlink_segment(allocator, segment);
    segment->next = unused;
    unused = segment;
  }
  return unused;
}

void mem_release_cached(mem_allocator *allocator) {
  pthread_mutex_lock(&allocator->lock);
  mem_segment *unused = take_unused(allocator);
  pthread_mutex_unlock(&allocator->lock);
  if (!unused) return;
  /* Free means free in the order of its stream: the work before may still be running. A failed stream has no work. */
  dev_wait_for_work(allocator->device);
  for (mem_segment *segment = unused; segment; segment = segment->next) give_back(allocator, segment);
  pthread_mutex_lock(&allocator->lock);
  while (unused) {
    mem_segment *segment = unused;
    unused = segment->next;
    count_gone(allocator, segment);
  }
  pthread_mutex_unlock(&allocator->lock);
}
