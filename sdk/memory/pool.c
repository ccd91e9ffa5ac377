/* Pools: the free parts of a stream's memory, or of what captures share. */
#include <stdlib.h>

#include "base/error.h"
#include "memory/internal.h"

mem_pool *mem_pool_new(mem_allocator *allocator, graft_rt_stream *stream) {
  mem_pool *pool = allocator->pools;
  while (pool && pool->stream) pool = pool->next;
  if (!pool) {
    pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pool->next = allocator->pools;
    allocator->pools = pool;
  }
  pool->stream = stream;
  return pool;
}

mem_pool *mem_pool_of(mem_allocator *allocator, graft_rt_stream *stream) {
  for (mem_pool *pool = allocator->pools; pool; pool = pool->next) {
    if (pool->stream == stream && !pool->captured) return pool;
  }
  return mem_pool_new(allocator, stream);
}

mem_pool *mem_pool_for(mem_allocator *allocator, graft_rt_stream *stream) {
  const dev_capture *capture = dev_capture_of(stream);
  return capture ? capture->pool : mem_pool_of(allocator, stream);
}

void mem_pool_move(mem_allocator *allocator, mem_pool *from, mem_pool *to) {
  for (mem_segment *segment = allocator->segments; segment; segment = segment->next) {
    if (segment->pool != from) continue;
    for (mem_part *part = segment->first; part; part = part->next) {
      if (part->free) mem_tree_remove(&from->free[segment->small], part);
    }
    segment->pool = to;
    for (mem_part *part = segment->first; part; part = part->next) {
      if (part->free) mem_tree_insert(&to->free[segment->small], part, part->priority);
    }
  }
  from->stream = NULL;
}

/* --- for captures --- */

graft_status mem_pool_create(graft_rt_device *device, mem_pool **pool) {
  if (dev_forked(device)) return dev_forked_error(device);
  mem_allocator *allocator = device->allocator;
  pthread_mutex_lock(&allocator->lock);
  /* The default stream's is what it becomes in the end: see mem_pool_release. */
  mem_pool *made =
      mem_pool_of(allocator, device->default_stream) ? mem_pool_new(allocator, device->default_stream) : NULL;
  if (made) made->captured = true;
  pthread_mutex_unlock(&allocator->lock);
  if (!made) return err_about(GRAFT_OUT_OF_MEMORY, device->text, "no host memory for a pool");
  *pool = made;
  return GRAFT_OK;
}

void mem_pool_release(graft_rt_device *device, mem_pool *pool) {
  if (dev_forked(device)) return;
  /* Launches on any stream may still use what the default stream is about to have. */
  dev_wait_for_work(device);
  mem_allocator *allocator = device->allocator;
  pthread_mutex_lock(&allocator->lock);
  mem_pool *to = mem_pool_of(allocator, device->default_stream);
  pool->captured = false;
  mem_pool_move(allocator, pool, to);
  pthread_mutex_unlock(&allocator->lock);
}

bool mem_is_of_pool(const mem_block *block, const mem_pool *pool) {
  const mem_part *part = (const mem_part *)block;
  mem_allocator *allocator = block->device->allocator;
  pthread_mutex_lock(&allocator->lock);
  bool is = part->segment && part->segment->pool == pool;
  pthread_mutex_unlock(&allocator->lock);
  return is;
}
