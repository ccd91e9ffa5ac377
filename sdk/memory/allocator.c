/* The caching allocator: what a request becomes, which free part serves it, what happens when there is none. The policy
 * is PyTorch's, so that its users find the behaviour and the statistics they know, but for the size of large segments:
 * see shared_segment. */
#include "memory/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "memory/internal.h"

bool mem_is_uncached(void) {
  const char *value = err_getenv("GRAFT_NO_MEMORY_CACHING");
  return value && *value && strcmp(value, "0") != 0;
}

static uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

static uint64_t max_u64(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static uint64_t min_u64(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* --- sizes --- */

static bool is_divided(const mem_allocator *allocator) {
  return !allocator->device->indivisible && !allocator->uncached;
}

/* A buffer that is never divided is reused for another size only within its class: eighths of a power of two. */
static uint64_t class_bytes(uint64_t bytes) {
  uint64_t step = 1;
  while (step * 16 < bytes) step *= 2;
  return round_up(bytes, step);
}

static uint64_t block_bytes(const mem_allocator *allocator, uint64_t bytes) {
  if (allocator->uncached) return round_up(bytes, allocator->device->copy_granularity);
  if (!allocator->device->indivisible) return round_up(bytes, allocator->unit);
  return round_up(class_bytes(round_up(bytes, MEM_MIN_BLOCK)), allocator->unit);
}

static uint64_t exact_segment(const mem_allocator *allocator, uint64_t bytes) {
  return round_up(bytes, allocator->device->granularity);
}

/* What requests between 1 and 5 MiB share grows with what is held, up to 20 MiB. Always 20 MiB, and shared up to 10
 * MiB, a program with 64 MiB in use held up to 1.42 times that (tests/benchmarks/allocation_trace); so it is 1.22. */
static uint64_t shared_segment(const mem_allocator *allocator, uint64_t bytes) {
  uint64_t half = (uint64_t)allocator->stats.reserved_bytes.current / 2;
  return round_up(max_u64(bytes, min_u64(half, MEM_LARGE_SEGMENT)), MEM_LARGE_ROUND);
}

/* [locked] */
static uint64_t segment_bytes(const mem_allocator *allocator, uint64_t bytes, bool small) {
  const graft_rt_device *device = allocator->device;
  if (!is_divided(allocator)) return exact_segment(allocator, bytes);
  uint64_t wanted = small                      ? MEM_SMALL_SEGMENT
                    : bytes < MEM_LARGE_SHARED ? shared_segment(allocator, bytes)
                                               : round_up(bytes, MEM_LARGE_ROUND);
  if (wanted > device->max_allocation) wanted = device->max_allocation / device->granularity * device->granularity;
  return exact_segment(allocator, max_u64(wanted, bytes));
}

static bool worth_splitting(const mem_allocator *allocator, const mem_part *part, uint64_t bytes) {
  if (!is_divided(allocator)) return false;
  uint64_t rest = part->block.bytes - bytes;
  return part->segment->small ? rest >= allocator->unit : rest > MEM_SMALL_MAX;
}

/* --- taking a part --- */

static mem_part *find_fit(mem_allocator *allocator, mem_pool *pool, uint64_t bytes, bool small) {
  mem_part *part = mem_tree_at_least(&pool->free[small], bytes);
  if (part && !is_divided(allocator) && part->block.bytes > exact_segment(allocator, bytes)) return NULL;
  return part;
}

static void count_block(mem_allocator *allocator, const mem_part *part, int64_t sign) {
  int64_t bytes = sign * (int64_t)part->block.bytes;
  mem_stat_add(&allocator->stats.allocation, sign);
  mem_stat_add(&allocator->stats.allocated_bytes, bytes);
  mem_stat_add(&allocator->stats.requested_bytes, sign * (int64_t)part->requested);
}

static void count_active(mem_allocator *allocator, const mem_part *part, int64_t sign) {
  mem_stat_add(&allocator->stats.active, sign);
  mem_stat_add(&allocator->stats.active_bytes, sign * (int64_t)part->block.bytes);
}

/* Hands out a part that is in no set, without what it has too much. [locked] */
static void hand_out(mem_allocator *allocator, mem_part *part, uint64_t bytes, uint64_t requested) {
  /* A block that can't be divided for want of host memory is handed out whole. */
  if (worth_splitting(allocator, part, bytes)) mem_part_split(allocator, part, bytes);
  part->requested = requested;
  count_block(allocator, part, 1);
  count_active(allocator, part, 1);
}

/* [unlocked] */
static mem_part *try_cached(mem_allocator *allocator, graft_rt_stream *stream, uint64_t bytes, uint64_t requested) {
  bool small = bytes <= MEM_SMALL_MAX;
  pthread_mutex_lock(&allocator->lock);
  mem_pool *pool = mem_pool_for(allocator, stream);
  mem_part *part = pool ? find_fit(allocator, pool, bytes, small) : NULL;
  if (part) {
    mem_part_remove(allocator, part);
    hand_out(allocator, part, bytes, requested);
  }
  pthread_mutex_unlock(&allocator->lock);
  return part;
}

/* Puts a new segment into the books and hands out its beginning. [unlocked] */
static graft_status adopt(mem_allocator *allocator, mem_segment *segment, graft_rt_stream *stream, uint64_t bytes,
                          uint64_t requested, mem_part **part) {
  pthread_mutex_lock(&allocator->lock);
  segment->pool = mem_pool_for(allocator, stream);
  segment->small = bytes <= MEM_SMALL_MAX;
  segment->next = allocator->segments;
  if (segment->next) segment->next->prev = segment;
  allocator->segments = segment;
  allocator->stats.num_device_alloc++;
  hand_out(allocator, segment->first, bytes, requested);
  pthread_mutex_unlock(&allocator->lock);
  *part = segment->first;
  return GRAFT_OK;
}

static graft_status grow(mem_allocator *allocator, uint64_t segment, graft_rt_stream *stream, uint64_t bytes,
                         uint64_t requested, mem_part **part) {
  pthread_mutex_lock(&allocator->lock);
  bool has_pool = mem_pool_for(allocator, stream) != NULL;
  pthread_mutex_unlock(&allocator->lock);
  if (!has_pool) return err_about(GRAFT_OUT_OF_MEMORY, allocator->device->text, "no host memory for a pool");
  mem_segment *made;
  graft_status status = mem_segment_new(allocator, segment, stream, &made);
  return status ? status : adopt(allocator, made, stream, bytes, requested, part);
}

/* --- out of memory --- */

/* "1.5 GiB" in one of a few buffers of the caller's expression. */
static const char *size_text(char *buffer, size_t capacity, uint64_t bytes) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = (double)bytes;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++) value /= 1024;
  snprintf(buffer, capacity, unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
  return buffer;
}

static graft_status out_of_memory(mem_allocator *allocator, uint64_t bytes) {
  pthread_mutex_lock(&allocator->lock);
  allocator->stats.num_ooms++;
  uint64_t used = (uint64_t)allocator->stats.allocated_bytes.current;
  uint64_t held = (uint64_t)allocator->stats.reserved_bytes.current, limit = allocator->limit;
  pthread_mutex_unlock(&allocator->lock);
  char texts[4][32], more[96] = "";
  if (bytes > allocator->device->max_allocation) {
    snprintf(more, sizeof more, "; its largest buffer is %s",
             size_text(texts[3], sizeof texts[3], allocator->device->max_allocation));
  } else if (limit) {
    snprintf(more, sizeof more, "; the limit is %s", size_text(texts[3], sizeof texts[3], limit));
  }
  return err_about(
      GRAFT_OUT_OF_MEMORY, allocator->device->text,
      "out of memory: %s asked for, %s in use, %s held from the device%s; free tensors or use smaller ones",
      size_text(texts[0], sizeof texts[0], bytes), size_text(texts[1], sizeof texts[1], used),
      size_text(texts[2], sizeof texts[2], held), more);
}

/* The device has no more: wait for what other streams still use, give back what is cached, and ask again, at last for
 * no more than is needed. */
static graft_status grow_after_release(mem_allocator *allocator, uint64_t segment, graft_rt_stream *stream,
                                       uint64_t bytes, uint64_t requested, mem_part **part) {
  pthread_mutex_lock(&allocator->lock);
  allocator->stats.num_alloc_retries++;
  pthread_mutex_unlock(&allocator->lock);
  mem_poll(allocator, true);
  *part = try_cached(allocator, stream, bytes, requested);
  if (*part) return GRAFT_OK;
  mem_release_cached(allocator);
  graft_status status = grow(allocator, segment, stream, bytes, requested, part);
  uint64_t exact = exact_segment(allocator, bytes);
  if (status == GRAFT_OUT_OF_MEMORY && exact < segment) status = grow(allocator, exact, stream, bytes, requested, part);
  return status == GRAFT_OUT_OF_MEMORY ? out_of_memory(allocator, requested) : status;
}

/* --- the interface --- */

/* A block without memory still has an identity. */
static graft_status empty_block(mem_allocator *allocator, mem_block **block) {
  pthread_mutex_lock(&allocator->lock);
  mem_part *part = mem_part_take(allocator);
  pthread_mutex_unlock(&allocator->lock);
  if (!part) return err_about(GRAFT_OUT_OF_MEMORY, allocator->device->text, "no host memory for a block");
  *block = &part->block;
  return GRAFT_OK;
}

graft_status mem_allocate(graft_rt_device *device, graft_rt_stream *stream, uint64_t bytes, mem_block **block) {
  if (dev_forked(device)) return dev_forked_error(device);
  mem_allocator *allocator = device->allocator;
  if (!stream) stream = device->default_stream;
  if (bytes == 0) return empty_block(allocator, block);
  if (bytes > MEM_REQUEST_MAX) return out_of_memory(allocator, bytes);
  uint64_t rounded = block_bytes(allocator, bytes);
  if (exact_segment(allocator, rounded) > device->max_allocation) return out_of_memory(allocator, bytes);

  mem_poll(allocator, false);
  if (allocator->uncached && !allocator->ordered) mem_release_cached(allocator);
  bool cached = !allocator->ordered || dev_capture_of(stream);
  mem_part *part = !cached ? NULL : try_cached(allocator, stream, rounded, bytes);
  if (!part) {
    pthread_mutex_lock(&allocator->lock);
    uint64_t segment = segment_bytes(allocator, rounded, rounded <= MEM_SMALL_MAX);
    pthread_mutex_unlock(&allocator->lock);
    graft_status status = grow(allocator, segment, stream, rounded, bytes, &part);
    if (status == GRAFT_OUT_OF_MEMORY) status = grow_after_release(allocator, segment, stream, rounded, bytes, &part);
    if (status) return status;
  }
  *block = &part->block;
  return GRAFT_OK;
}

/* A part that nobody uses any more goes back to its set. [locked] */
static void retire(mem_allocator *allocator, mem_part *part) {
  count_active(allocator, part, -1);
  mem_part_release(allocator, part);
}

static void append_waiting(mem_allocator *allocator, mem_part *part) {
  part->right = NULL;
  *allocator->waiting_end = part;
  allocator->waiting_end = &part->right;
}

/* Whether a part's segment is given back in the order of its stream. */
static bool ends_in_order(mem_allocator *allocator, const mem_part *part) {
  if (!allocator->ordered || !part->segment) return false;
  pthread_mutex_lock(&allocator->lock);
  bool captured = part->segment->pool->captured;
  pthread_mutex_unlock(&allocator->lock);
  return !captured;
}

void mem_free(mem_block *block) {
  if (!block || dev_forked(block->device)) return;
  mem_part *part = (mem_part *)block;
  mem_allocator *allocator = block->device->allocator;
  if (part->uses) mem_uses_fence(allocator, &part->uses);
  const bool in_order = ends_in_order(allocator, part);
  if (in_order) mem_segment_end(allocator, part->segment);
  pthread_mutex_lock(&allocator->lock);
  if (!part->segment) {
    mem_part_return(allocator, part);
  } else {
    count_block(allocator, part, -1);
    if (in_order) {
      count_active(allocator, part, -1);
      mem_segment_drop(allocator, part->segment);
    } else if (part->uses) {
      append_waiting(allocator, part);
    } else {
      retire(allocator, part);
    }
  }
  pthread_mutex_unlock(&allocator->lock);
}

bool mem_has_recorded(mem_block *block) {
  pthread_mutex_lock(&block->device->allocator->lock);
  const bool has = ((const mem_part *)block)->uses != NULL;
  pthread_mutex_unlock(&block->device->allocator->lock);
  return has;
}

bool mem_is_of_stream(mem_block *block, graft_rt_stream *stream) {
  const mem_part *part = (const mem_part *)block;
  pthread_mutex_lock(&block->device->allocator->lock);
  const mem_pool *pool = part->segment ? part->segment->pool : NULL;
  const bool own = pool && !part->uses && pool->stream == stream && !pool->captured;
  pthread_mutex_unlock(&block->device->allocator->lock);
  return own;
}

graft_status mem_record_stream(mem_block *block, graft_rt_stream *stream) {
  graft_rt_device *device = block->device;
  if (dev_forked(device)) return dev_forked_error(device);
  mem_part *part = (mem_part *)block;
  if (stream->device != device) {
    return err_set(GRAFT_INVALID_ARGUMENT, "memory of %s can't be used on a stream of %s", device->text,
                   stream->device->text);
  }
  graft_status status = GRAFT_OK;
  pthread_mutex_lock(&device->allocator->lock);
  const mem_pool *pool = part->segment ? part->segment->pool : NULL;
  const dev_capture *capture = dev_capture_of(stream);
  bool own = pool && (capture ? pool == capture->pool : pool->stream == stream && !pool->captured);
  if (pool && !own) {
    status = mem_use_add(device->allocator, &part->uses, stream);
  }
  pthread_mutex_unlock(&device->allocator->lock);
  return status;
}

/* Brings back what other streams are done with. The list is taken off meanwhile, so that the lock need not be held. */
void mem_poll(mem_allocator *allocator, bool wait) {
  pthread_mutex_lock(&allocator->lock);
  mem_part *list = allocator->waiting;
  allocator->waiting = NULL;
  allocator->waiting_end = &allocator->waiting;
  pthread_mutex_unlock(&allocator->lock);
  if (!list) return;

  mem_part *done = NULL, *left = NULL, **left_end = &left, *next;
  mem_busy busy = {.count = 0};
  for (mem_part *part = list; part; part = next) {
    next = part->right;
    part->right = NULL;
    if (mem_uses_done(allocator, &part->uses, wait ? NULL : &busy)) {
      part->right = done;
      done = part;
    } else {
      *left_end = part;
      left_end = &part->right;
    }
  }

  pthread_mutex_lock(&allocator->lock);
  for (; done; done = next) {
    next = done->right;
    done->right = NULL;
    retire(allocator, done);
  }
  if (left) { /* in front of what came meanwhile */
    *left_end = allocator->waiting;
    if (!allocator->waiting) allocator->waiting_end = left_end;
    allocator->waiting = left;
  }
  pthread_mutex_unlock(&allocator->lock);
}

void mem_stream_closing(graft_rt_stream *stream) {
  mem_allocator *allocator = stream->device->allocator;
  pthread_mutex_lock(&allocator->lock);
  mem_pool *from = allocator->pools;
  while (from && (from->stream != stream || from->captured)) from = from->next;
  mem_pool *to = from ? mem_pool_of(allocator, stream->device->default_stream) : NULL;
  if (to) mem_pool_move(allocator, from, to);
  pthread_mutex_unlock(&allocator->lock);
}

graft_status mem_create(graft_rt_device *device, mem_allocator **allocator) {
  mem_allocator *made = calloc(1, sizeof *made);
  if (!made) return err_about(GRAFT_OUT_OF_MEMORY, device->text, "no host memory for its allocator");
  pthread_mutex_init(&made->lock, NULL);
  made->device = device;
  made->uncached = mem_is_uncached() || device->uncached;
  made->ordered = device->uncached && device->backend->memory.release_on;
  made->random = 2463534242u;
  made->waiting_end = &made->waiting;
  made->unit = max_u64(max_u64(MEM_MIN_BLOCK, device->alignment), device->copy_granularity);
  *allocator = made;
  return GRAFT_OK;
}

int64_t mem_blocks(mem_allocator *allocator) {
  mem_poll(allocator, true);
  pthread_mutex_lock(&allocator->lock);
  int64_t blocks = allocator->stats.active.current + mem_pinned_in_use(allocator);
  pthread_mutex_unlock(&allocator->lock);
  return blocks;
}

void mem_settle(mem_allocator *allocator) {
  mem_poll(allocator, true);
  mem_pinned_poll(allocator, true);
  mem_uses_end(allocator);
}

void mem_destroy(mem_allocator *allocator) {
  mem_pinned_release_cached(allocator);
  mem_release_cached(allocator);
  pthread_mutex_destroy(&allocator->lock);
  for (void *slab = allocator->slabs, *next; slab; slab = next) {
    memcpy(&next, slab, sizeof next);
    free(slab);
  }
  for (mem_pool *pool = allocator->pools, *next; pool; pool = next) {
    next = pool->next;
    free(pool);
  }
  for (mem_segment *segment = allocator->spare_segments, *next; segment; segment = next) {
    next = segment->next;
    free(segment);
  }
  free(allocator->pinned);
  free(allocator);
}
