/* Page-locked host memory, cached by powers of two; ordinary memory where the device offers none. What copies still use
 * waits for them, as device memory does. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "memory/internal.h"

#define PINNED_MIN_LOG2 12 /* a page */

struct mem_pinned {
  void *pointer;
  graft_buffer *buffer; /* NULL: ordinary memory */
  uint64_t bytes;
  int log2;
  bool used;
  mem_use *uses;
  mem_pinned *next;
};

static int log2_of(uint64_t bytes) {
  int log2 = PINNED_MIN_LOG2;
  while (UINT64_C(1) << log2 < bytes) log2++;
  return log2;
}

/* --- the list of all, by address. [locked] --- */

/* The position of the first one that begins behind `pointer`. */
static size_t behind(const mem_allocator *allocator, const void *pointer) {
  size_t low = 0, high = allocator->pinned_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if ((uintptr_t)allocator->pinned[middle]->pointer <= (uintptr_t)pointer) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static mem_pinned *containing(const mem_allocator *allocator, const void *pointer) {
  size_t position = behind(allocator, pointer);
  if (position == 0) return NULL;
  mem_pinned *memory = allocator->pinned[position - 1];
  return (uintptr_t)pointer - (uintptr_t)memory->pointer < memory->bytes ? memory : NULL;
}

static bool enlist(mem_allocator *allocator, mem_pinned *memory) {
  if (allocator->pinned_count == allocator->pinned_capacity) {
    size_t capacity = allocator->pinned_capacity ? allocator->pinned_capacity * 2 : 16;
    mem_pinned **all = calloc(capacity, sizeof(mem_pinned *));
    if (!all) return false;
    if (allocator->pinned_count) memcpy(all, allocator->pinned, allocator->pinned_count * sizeof *all);
    free(allocator->pinned);
    allocator->pinned = all;
    allocator->pinned_capacity = capacity;
  }
  size_t position = behind(allocator, memory->pointer);
  memmove(&allocator->pinned[position + 1], &allocator->pinned[position],
          (allocator->pinned_count - position) * sizeof *allocator->pinned);
  allocator->pinned[position] = memory;
  allocator->pinned_count++;
  allocator->pinned_bytes += memory->bytes;
  return true;
}

static void delist(mem_allocator *allocator, const mem_pinned *memory) {
  size_t position = behind(allocator, memory->pointer) - 1;
  allocator->pinned_count--;
  allocator->pinned_bytes -= memory->bytes;
  memmove(&allocator->pinned[position], &allocator->pinned[position + 1],
          (allocator->pinned_count - position) * sizeof *allocator->pinned);
}

/* --- getting it and giving it back. [unlocked] --- */

static bool pin(graft_rt_device *device, mem_pinned *memory) {
  if (!(device->memory_kinds >> GRAFT_MEMORY_PINNED & 1)) return false;
  uint64_t unit = device->granularity;
  graft_allocation request = {
      .struct_size = sizeof request, .bytes = (memory->bytes + unit - 1) / unit * unit, .kind = GRAFT_MEMORY_PINNED};
  if (device->backend->memory.allocate(device->handle, &request) || !request.buffer) return false;
  if (!request.host_pointer) { /* of no use to the host */
    device->backend->memory.release(device->handle, request.buffer);
    return false;
  }
  memory->buffer = request.buffer;
  memory->pointer = request.host_pointer;
  return true;
}

static void give_back(graft_rt_device *device, mem_pinned *memory) {
  if (memory->buffer) {
    device->backend->memory.release(device->handle, memory->buffer);
  } else {
    free(memory->pointer);
  }
  free(memory);
}

static graft_status make(mem_allocator *allocator, int log2, mem_pinned **memory) {
  graft_rt_device *device = allocator->device;
  mem_pinned *made = calloc(1, sizeof *made);
  if (!made) return err_about(GRAFT_OUT_OF_MEMORY, device->text, "no host memory for a pinned block");
  made->log2 = log2;
  made->bytes = UINT64_C(1) << log2;
  if (!pin(device, made) && posix_memalign(&made->pointer, 4096, made->bytes) != 0) {
    free(made);
    return err_about(GRAFT_OUT_OF_MEMORY, device->text, "no host memory for %llu bytes of pinned memory",
                     (unsigned long long)UINT64_C(1) << log2);
  }
  pthread_mutex_lock(&allocator->lock);
  bool enlisted = enlist(allocator, made);
  pthread_mutex_unlock(&allocator->lock);
  if (!enlisted) {
    give_back(device, made);
    return err_about(GRAFT_OUT_OF_MEMORY, device->text, "no host memory to note a pinned block");
  }
  *memory = made;
  return GRAFT_OK;
}

static void retire(mem_allocator *allocator, mem_pinned *memory) {
  memory->next = allocator->pinned_free[memory->log2];
  allocator->pinned_free[memory->log2] = memory;
}

void mem_pinned_poll(mem_allocator *allocator, bool wait) {
  pthread_mutex_lock(&allocator->lock);
  mem_pinned *list = allocator->pinned_waiting, *next;
  allocator->pinned_waiting = NULL;
  pthread_mutex_unlock(&allocator->lock);
  for (mem_pinned *memory = list; memory; memory = next) {
    next = memory->next;
    /* The newest stands first, so that a busy stream says nothing about those behind it: each is asked. */
    mem_busy busy = {.count = 0};
    bool done = mem_uses_done(allocator, &memory->uses, wait ? NULL : &busy);
    pthread_mutex_lock(&allocator->lock);
    if (done) {
      retire(allocator, memory);
    } else {
      memory->next = allocator->pinned_waiting;
      allocator->pinned_waiting = memory;
    }
    pthread_mutex_unlock(&allocator->lock);
  }
}

void mem_pinned_release_cached(mem_allocator *allocator) {
  pthread_mutex_lock(&allocator->lock);
  mem_pinned *unused = NULL;
  for (int log2 = 0; log2 < 64; log2++) {
    while (allocator->pinned_free[log2]) {
      mem_pinned *memory = allocator->pinned_free[log2];
      allocator->pinned_free[log2] = memory->next;
      delist(allocator, memory);
      memory->next = unused;
      unused = memory;
    }
  }
  pthread_mutex_unlock(&allocator->lock);
  for (mem_pinned *next; unused; unused = next) {
    next = unused->next;
    give_back(allocator->device, unused);
  }
}

int64_t mem_pinned_in_use(const mem_allocator *allocator) {
  int64_t count = 0;
  for (size_t i = 0; i < allocator->pinned_count; i++) count += allocator->pinned[i]->used;
  return count;
}

/* --- the interface --- */

graft_status graft_pinned_allocate(graft_rt_device *device, uint64_t bytes, void **pointer) {
  if (!device) return err_null(__func__, "device");
  if (!pointer) return err_null(__func__, "pointer");
  if (dev_forked(device)) return dev_forked_error(device);
  if (bytes > MEM_REQUEST_MAX) {
    return err_about(GRAFT_OUT_OF_MEMORY, device->text, "%llu bytes of pinned memory are more than there can be",
                     (unsigned long long)bytes);
  }
  mem_allocator *allocator = device->allocator;
  mem_pinned_poll(allocator, false);
  int log2 = log2_of(bytes);
  pthread_mutex_lock(&allocator->lock);
  mem_pinned *memory = allocator->pinned_free[log2];
  if (memory) allocator->pinned_free[log2] = memory->next;
  pthread_mutex_unlock(&allocator->lock);
  graft_status status = memory ? GRAFT_OK : make(allocator, log2, &memory);
  if (status) return status;
  memory->used = true;
  *pointer = memory->pointer;
  return GRAFT_OK;
}

graft_status graft_pinned_free(graft_rt_device *device, void *pointer) {
  if (!device) return err_null(__func__, "device");
  if (!pointer || dev_forked(device)) return GRAFT_OK;
  mem_allocator *allocator = device->allocator;
  pthread_mutex_lock(&allocator->lock);
  mem_pinned *memory = containing(allocator, pointer);
  bool known = memory && memory->pointer == pointer && memory->used;
  if (known) memory->used = false;
  pthread_mutex_unlock(&allocator->lock);
  if (!known) {
    return err_about(GRAFT_INVALID_ARGUMENT, device->text, "%p is no pinned memory of this device, or is free already",
                     pointer);
  }
  mem_uses_fence(allocator, &memory->uses);
  pthread_mutex_lock(&allocator->lock);
  if (memory->uses) {
    memory->next = allocator->pinned_waiting;
    allocator->pinned_waiting = memory;
  } else {
    retire(allocator, memory);
  }
  pthread_mutex_unlock(&allocator->lock);
  return GRAFT_OK;
}

graft_status mem_pinned_record(graft_rt_device *device, const void *pointer, graft_rt_stream *stream) {
  if (dev_forked(device)) return dev_forked_error(device);
  mem_allocator *allocator = device->allocator;
  pthread_mutex_lock(&allocator->lock);
  mem_pinned *memory = containing(allocator, pointer);
  graft_status status = memory && memory->used ? mem_use_add(allocator, &memory->uses, stream) : GRAFT_OK;
  pthread_mutex_unlock(&allocator->lock);
  return status;
}

bool mem_is_pinned(graft_rt_device *device, const void *pointer, uint64_t bytes) {
  if (dev_forked(device)) return false;
  mem_allocator *allocator = device->allocator;
  pthread_mutex_lock(&allocator->lock);
  const mem_pinned *memory = containing(allocator, pointer);
  bool inside = memory && memory->used && memory->buffer &&
                bytes <= memory->bytes - ((uintptr_t)pointer - (uintptr_t)memory->pointer);
  pthread_mutex_unlock(&allocator->lock);
  return inside;
}

bool mem_pinned_has_room(mem_allocator *allocator, uint64_t bytes, uint64_t limit) {
  pthread_mutex_lock(&allocator->lock);
  bool room = allocator->pinned_free[log2_of(bytes)] || allocator->pinned_bytes < limit;
  pthread_mutex_unlock(&allocator->lock);
  return room;
}
