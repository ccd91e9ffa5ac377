/* Work of other streams on memory: while it is handed out, only the streams are noted; when it is freed, an event is
 * put on each, and the memory waits until they are done. */
#include "base/error.h"
#include "memory/internal.h"

#define SLAB 64

static mem_use *take(mem_allocator *allocator) {
  if (!allocator->spare_uses) {
    mem_use *slab = mem_slab_new(allocator, SLAB, sizeof *slab);
    if (!slab) return NULL;
    for (int i = 0; i < SLAB; i++) {
      slab[i].next = allocator->spare_uses;
      allocator->spare_uses = &slab[i];
    }
  }
  mem_use *use = allocator->spare_uses;
  allocator->spare_uses = use->next;
  return use;
}

/* Takes the first use off a list. [unlocked] */
static void drop(mem_allocator *allocator, mem_use **uses) {
  mem_use *use = *uses;
  *uses = use->next;
  pthread_mutex_lock(&allocator->lock);
  use->next = allocator->spare_uses;
  allocator->spare_uses = use;
  pthread_mutex_unlock(&allocator->lock);
}

graft_status mem_use_add(mem_allocator *allocator, mem_use **uses, graft_rt_stream *stream) {
  uint64_t id = atomic_load_explicit(&stream->id, memory_order_relaxed);
  for (mem_use *use = *uses; use; use = use->next) {
    if (use->stream == stream && use->stream_id == id) return GRAFT_OK;
  }
  mem_use *use = take(allocator);
  if (!use) return err_about(GRAFT_OUT_OF_MEMORY, allocator->device->text, "no host memory to note a stream");
  use->stream = stream;
  use->stream_id = id;
  use->next = *uses;
  *uses = use;
  return GRAFT_OK;
}

void mem_uses_fence(mem_allocator *allocator, mem_use **uses) {
  while (*uses) {
    mem_use *use = *uses;
    if (dev_stream_fence(allocator->device, use->stream, use->stream_id, &use->event)) {
      uses = &(*uses)->next;
    } else {
      drop(allocator, uses);
    }
  }
}

static bool is_busy(const mem_busy *busy, const graft_rt_stream *stream) {
  for (int i = 0; i < busy->count; i++) {
    if (busy->streams[i] == stream) return true;
  }
  return false;
}

static void note_busy(mem_busy *busy, const graft_rt_stream *stream) {
  if (busy->count < (int)(sizeof busy->streams / sizeof *busy->streams)) busy->streams[busy->count++] = stream;
}

bool mem_uses_done(mem_allocator *allocator, mem_use **uses, mem_busy *busy) {
  const graft_stream_api *api = &allocator->device->backend->stream;
  for (; *uses; drop(allocator, uses)) {
    mem_use *use = *uses;
    if (atomic_load(&use->stream->id) != use->stream_id) continue; /* destroyed, so done */
    if (!busy) {
      api->event_synchronize(use->event); /* a failure also means that the work is over */
      continue;
    }
    if (is_busy(busy, use->stream)) return false;
    if (api->event_query(use->event) == GRAFT_NOT_READY) {
      note_busy(busy, use->stream);
      return false;
    }
  }
  return true;
}

void mem_uses_follow(mem_allocator *allocator, mem_use **uses, graft_rt_stream *stream) {
  const graft_stream_api *api = &allocator->device->backend->stream;
  for (; *uses; drop(allocator, uses)) {
    mem_use *use = *uses;
    if (atomic_load(&use->stream->id) != use->stream_id) continue; /* destroyed, so done */
    pthread_mutex_lock(&stream->lock);
    graft_status status = api->stream_wait(stream->handle, use->event);
    pthread_mutex_unlock(&stream->lock);
    if (status) api->event_synchronize(use->event);
  }
}

void mem_uses_end(mem_allocator *allocator) {
  const graft_stream_api *api = &allocator->device->backend->stream;
  for (mem_use *use = allocator->spare_uses; use; use = use->next) {
    if (use->event) api->event_destroy(use->event);
  }
  allocator->spare_uses = NULL;
}
