/* The allocator as applications see it: graft/memory.h, but for pinned memory. */
#include <string.h>

#include "base/error.h"
#include "memory/internal.h"

graft_status graft_memory_stats(graft_rt_device *device, graft_memory_statistics *statistics) {
  if (!device) return err_null(__func__, "device");
  if (!statistics) return err_null(__func__, "statistics");
  size_t given = statistics->struct_size;
  if (given < sizeof given) {
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_memory_stats: struct_size is %zu; set it to sizeof of the struct",
                   given);
  }
  if (dev_forked(device)) return dev_forked_error(device);
  mem_allocator *allocator = device->allocator;
  pthread_mutex_lock(&allocator->lock);
  graft_memory_statistics stats = allocator->stats;
  pthread_mutex_unlock(&allocator->lock);
  stats.struct_size = given;
  memcpy(statistics, &stats, given < sizeof stats ? given : sizeof stats);
  return GRAFT_OK;
}

void graft_memory_reset_peak(graft_rt_device *device) {
  if (err_is_null(device, __func__, "device")) return;
  if (dev_forked(device)) return;
  mem_allocator *allocator = device->allocator;
  graft_memory_statistics *stats = &allocator->stats;
  graft_memory_stat *all[] = {
      &stats->allocation,      &stats->segment,        &stats->active,       &stats->inactive_split,
      &stats->allocated_bytes, &stats->reserved_bytes, &stats->active_bytes, &stats->inactive_split_bytes,
      &stats->requested_bytes};
  pthread_mutex_lock(&allocator->lock);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) all[i]->peak = all[i]->current;
  pthread_mutex_unlock(&allocator->lock);
}

graft_status graft_memory_empty_cache(graft_rt_device *device) {
  if (!device) return err_null(__func__, "device");
  if (dev_forked(device)) return dev_forked_error(device);
  mem_poll(device->allocator, true);
  mem_release_cached(device->allocator);
  mem_pinned_poll(device->allocator, true);
  mem_pinned_release_cached(device->allocator);
  return GRAFT_OK;
}

void graft_memory_set_limit(graft_rt_device *device, uint64_t bytes) {
  if (err_is_null(device, __func__, "device")) return;
  if (dev_forked(device)) return;
  pthread_mutex_lock(&device->allocator->lock);
  device->allocator->limit = bytes;
  pthread_mutex_unlock(&device->allocator->lock);
}
