/* The caching allocator; on the null plugin, whose memory is the host's. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include "heap.h"
#include "memory/internal.h"
#include "null_device.h"
#include "suite.h"

#define MIB (UINT64_C(1) << 20)

static graft_memory_statistics stats_of(graft_rt_device *device) {
  graft_memory_statistics stats = {.struct_size = sizeof stats};
  ck_assert_int_eq(graft_memory_stats(device, &stats), GRAFT_OK);
  return stats;
}

/* Walks all segments: parts follow each other without gaps, no free ones side by side, sums equal the statistics. */
static void check_books(graft_rt_device *device) {
  mem_allocator *a = device->allocator;
  int64_t reserved = 0, segments = 0, held = 0, split = 0, split_bytes = 0;
  for (mem_segment *segment = a->segments; segment; segment = segment->next) {
    uint64_t offset = 0;
    segments++;
    reserved += (int64_t)segment->bytes;
    for (mem_part *part = segment->first; part; part = part->next) {
      ck_assert_uint_eq(part->block.offset, offset);
      ck_assert_uint_eq(part->block.address, segment->address + offset);
      ck_assert_ptr_eq(part->block.buffer, segment->buffer);
      offset += part->block.bytes;
      ck_assert(!(part->free && part->next && part->next->free));
      if (!part->free) held += (int64_t)part->block.bytes;
      if (part->free && (part->prev || part->next)) split++, split_bytes += (int64_t)part->block.bytes;
      if (part->next) ck_assert_ptr_eq(part->next->prev, part);
    }
    ck_assert_uint_eq(offset, segment->bytes);
  }
  graft_memory_statistics stats = stats_of(device);
  ck_assert_int_eq(stats.segment.current, segments);
  ck_assert_int_eq(stats.reserved_bytes.current, reserved);
  ck_assert_int_eq(stats.active_bytes.current, held);
  ck_assert_int_eq(stats.inactive_split.current, split);
  ck_assert_int_eq(stats.inactive_split_bytes.current, split_bytes);
}

START_TEST(sizes_become_segments) {
  static const struct {
    uint64_t asked, segment;
  } rows[] = {{1, 2 * MIB},       {MIB, 2 * MIB},       {MIB + 1, 2 * MIB},       {3 * MIB, 4 * MIB},
              {5 * MIB, 6 * MIB}, {10 * MIB, 10 * MIB}, {10 * MIB + 1, 12 * MIB}, {33 * MIB, 34 * MIB}};
  graft_rt_device *device = null_device(NULL);
  int64_t before = stats_of(device).reserved_bytes.current;
  mem_block *block = take(device, NULL, rows[_i].asked);
  ck_assert_int_eq(stats_of(device).reserved_bytes.current - before, (int64_t)rows[_i].segment);
  ck_assert_uint_lt(block->bytes - rows[_i].asked, MIB + 512); /* the rest of a large segment is cut off above 1 MiB */
  check_books(device);
  mem_free(block);
  check_books(device);
}
END_TEST

START_TEST(shared_segments_grow) {
  graft_rt_device *device = null_device(NULL);
  mem_block *blocks[40];
  for (int i = 0; i < 40; i++) blocks[i] = take(device, NULL, 2 * MIB);
  check_books(device);
  int64_t largest = 0;
  for (mem_segment *s = device->allocator->segments; s; s = s->next) {
    if ((int64_t)s->bytes > largest) largest = (int64_t)s->bytes;
  }
  ck_assert_int_eq(largest, 20 * MIB);
  ck_assert_int_lt(stats_of(device).segment.current, 12);
  for (int i = 0; i < 40; i++) mem_free(blocks[i]);
  check_books(device);
}
END_TEST

START_TEST(best_fit_split_and_merge) {
  graft_rt_device *device = null_device(NULL);
  mem_block *a = take(device, NULL, 1000), *b = take(device, NULL, 5000), *c = take(device, NULL, 1000);
  ck_assert_uint_eq(a->bytes, 1024);
  ck_assert_ptr_eq(a->buffer, b->buffer);
  ck_assert_uint_eq(b->offset, 1024);
  ck_assert_uint_eq(c->offset, 1024 + 5120);
  uint64_t hole = b->offset;
  mem_free(b);
  check_books(device);
  mem_block *d = take(device, NULL, 4000); /* fits into the hole better than behind */
  ck_assert_uint_eq(d->offset, hole);
  check_books(device);
  mem_free(a);
  mem_free(c);
  mem_free(d);
  check_books(device);
  graft_memory_statistics stats = stats_of(device);
  ck_assert_int_eq(stats.inactive_split.current, 0);
  ck_assert_int_eq(stats.allocated_bytes.current, 0);
  ck_assert_int_eq(stats.requested_bytes.peak, 7000);
  ck_assert_int_eq(stats.requested_bytes.allocated, 11000);
  ck_assert_int_eq(stats.allocation.peak, 3);
  ck_assert_int_eq(stats.allocation.freed, 4);
  ck_assert_int_eq(stats.num_device_alloc, 1);
  graft_memory_reset_peak(device);
  ck_assert_int_eq(stats_of(device).allocation.peak, 0);
}
END_TEST

START_TEST(zero_bytes) {
  graft_rt_device *device = null_device(NULL);
  mem_block *block = take(device, NULL, 0);
  ck_assert_ptr_null(block->buffer);
  ck_assert_uint_eq(block->bytes, 0);
  ck_assert_ptr_eq(block->device, device);
  ck_assert_int_eq(mem_record_stream(block, device->default_stream), GRAFT_OK);
  mem_free(block);
  mem_free(NULL);
  ck_assert_int_eq(counters_of(device).allocate_calls, 0);
}
END_TEST

START_TEST(streams_have_their_own_memory) {
  graft_rt_device *device = null_device(OPTIONS("lazy=1"));
  graft_rt_stream *stream;
  ck_assert_int_eq(graft_stream_create(device, 0, 0, &stream), GRAFT_OK);
  mem_block *a = take(device, NULL, 4096);
  uint64_t address = a->address;
  mem_free(a);
  mem_block *b = take(device, stream, 4096);
  ck_assert_uint_ne(b->address, address);
  mem_block *c = take(device, NULL, 4096);
  ck_assert_uint_eq(c->address, address);
  mem_free(c);
  /* What a destroyed stream leaves is the default stream's. */
  mem_block *d = take(device, stream, 3 * MIB);
  uint64_t left = d->address;
  mem_free(d);
  ck_assert_int_eq(graft_stream_destroy(stream), GRAFT_OK);
  check_books(device);
  d = take(device, NULL, 3 * MIB);
  ck_assert_uint_eq(d->address, left);
  mem_free(d);
  mem_free(b); /* allocated on a stream that is gone */
  check_books(device);
  ck_assert_int_eq(counters_of(device).released_busy, 0);
}
END_TEST

START_TEST(memory_waits_for_other_streams) {
  graft_rt_device *device = null_device(OPTIONS("lazy=1"));
  graft_rt_stream *one, *two;
  ck_assert_int_eq(graft_stream_create(device, 0, 0, &one), GRAFT_OK);
  ck_assert_int_eq(graft_stream_create(device, 0, 0, &two), GRAFT_OK);
  mem_block *a = take(device, NULL, 4096), *b = take(device, NULL, 4096);
  uint64_t address = a->address;
  ck_assert_int_eq(mem_record_stream(a, one), GRAFT_OK);
  ck_assert_int_eq(mem_record_stream(a, one), GRAFT_OK);
  ck_assert_int_eq(mem_record_stream(a, two), GRAFT_OK);
  ck_assert_int_eq(mem_record_stream(a, device->default_stream), GRAFT_OK);
  mem_free(a);
  graft_memory_statistics stats = stats_of(device);
  ck_assert_int_eq(stats.allocation.current, 1);
  ck_assert_int_eq(stats.active.current, 2);
  ck_assert_int_eq(counters_of(device).events, 2);
  a = take(device, NULL, 4096);
  ck_assert_uint_ne(a->address, address);
  ck_assert_int_eq(graft_stream_synchronize(one), GRAFT_OK);
  mem_block *c = take(device, NULL, 4096);
  ck_assert_uint_ne(c->address, address);
  ck_assert_int_eq(graft_stream_synchronize(two), GRAFT_OK);
  mem_block *d = take(device, NULL, 4096);
  ck_assert_uint_eq(d->address, address);
  check_books(device);
  mem_free(a), mem_free(b), mem_free(c), mem_free(d);
  ck_assert_int_eq(stats_of(device).active.current, 0);
}
END_TEST

START_TEST(events_are_used_again) {
  graft_rt_device *device = null_device(NULL);
  graft_rt_stream *stream;
  ck_assert_int_eq(graft_stream_create(device, 0, 0, &stream), GRAFT_OK);
  for (int i = 0; i < 1000; i++) {
    mem_block *block = take(device, NULL, 4096);
    ck_assert_int_eq(mem_record_stream(block, stream), GRAFT_OK);
    mem_free(block);
  }
  ck_assert_int_le(counters_of(device).events, 2);
}
END_TEST

START_TEST(out_of_memory_releases_the_cache) {
  graft_rt_device *device = null_device(OPTIONS("capacity=67108864", "lazy=1"));
  mem_block *a = take(device, NULL, 30 * MIB), *b = take(device, NULL, 30 * MIB), *block;
  mem_free(a);
  graft_rt_stream *stream;
  ck_assert_int_eq(graft_stream_create(device, 0, 0, &stream), GRAFT_OK);
  mem_record_stream(b, stream);
  mem_free(b);
  block = take(device, NULL, 60 * MIB);
  graft_memory_statistics stats = stats_of(device);
  ck_assert_int_eq(stats.num_alloc_retries, 1);
  ck_assert_int_eq(stats.num_ooms, 0);
  ck_assert_int_eq(stats.num_device_free, 2);
  mem_block *more = (void *)1;
  ck_assert_int_eq(mem_allocate(device, NULL, 10 * MIB, &more), GRAFT_OUT_OF_MEMORY);
  ck_assert_ptr_eq(more, (void *)1);
  ck_assert_ptr_nonnull(strstr(graft_last_error(), "null:0: out of memory: 10.00 MiB asked for, 60.00 MiB in use"));
  ck_assert_int_eq(stats_of(device).num_ooms, 1);
  ck_assert_int_eq(stats_of(device).reserved_bytes.peak, 60 * MIB); /* a refused request leaves no mark */
  more = take(device, NULL, 2 * MIB); /* no room for a whole segment: no more than is needed */
  check_books(device);
  mem_free(block);
  mem_free(more);
  ck_assert_int_eq(graft_memory_empty_cache(device), GRAFT_OK);
  ck_assert_int_eq(stats_of(device).reserved_bytes.current, 0);
  null_counters counters = counters_of(device);
  ck_assert_int_eq(counters.buffers, 0);
  ck_assert_int_eq(counters.released_busy, 0);
}
END_TEST

START_TEST(limit) {
  graft_rt_device *device = null_device(NULL);
  graft_memory_set_limit(device, 40 * MIB);
  mem_block *a = take(device, NULL, 30 * MIB), *b;
  ck_assert_int_eq(mem_allocate(device, NULL, 12 * MIB, &b), GRAFT_OUT_OF_MEMORY);
  ck_assert_ptr_nonnull(strstr(graft_last_error(), "the limit is 40.00 MiB"));
  mem_free(a);
  b = take(device, NULL, 38 * MIB);
  graft_memory_set_limit(device, 0);
  a = take(device, NULL, 100 * MIB);
  mem_free(a);
  mem_free(b);
}
END_TEST

START_TEST(impossible_sizes) {
  graft_rt_device *device = null_device(OPTIONS("max_allocation=8388608"));
  mem_block *block;
  ck_assert_int_eq(mem_allocate(device, NULL, UINT64_MAX, &block), GRAFT_OUT_OF_MEMORY);
  ck_assert_int_eq(mem_allocate(device, NULL, UINT64_MAX - 511, &block), GRAFT_OUT_OF_MEMORY);
  ck_assert_int_eq(mem_allocate(device, NULL, 9 * MIB, &block), GRAFT_OUT_OF_MEMORY);
  ck_assert_ptr_nonnull(strstr(graft_last_error(), "largest buffer is 8.00 MiB"));
  ck_assert_int_eq(counters_of(device).allocate_calls, 0);
  mem_block *blocks[20];
  for (int i = 0; i < 20; i++) blocks[i] = take(device, NULL, 2 * MIB); /* no segment is larger than the device has */
  for (int i = 0; i < 20; i++) mem_free(blocks[i]);
  check_books(device);
}
END_TEST

START_TEST(alignment_and_granularity) {
  graft_rt_device *device = null_device(OPTIONS("alignment=4096", "granularity=3000", "copy_granularity=16"));
  mem_block *blocks[50];
  for (int i = 0; i < 50; i++) {
    blocks[i] = take(device, NULL, (uint64_t)i * 700 + 1);
    ck_assert_uint_eq(blocks[i]->offset % 4096, 0);
    ck_assert_uint_eq(blocks[i]->address % 4096, 0);
  }
  for (int i = 0; i < 50; i++) mem_free(blocks[i]);
  mem_block *large = take(device, NULL, 21 * MIB);
  check_books(device);
  mem_free(large);
}
END_TEST

START_TEST(indivisible_devices) {
  graft_rt_device *device = null_device(OPTIONS("indivisible=1"));
  mem_block *a = take(device, NULL, 1000), *b = take(device, NULL, 1000);
  ck_assert_ptr_ne(a->buffer, b->buffer);
  ck_assert_uint_eq(a->offset, 0);
  graft_buffer *buffer = a->buffer;
  mem_free(a);
  a = take(device, NULL, 1010);
  ck_assert_ptr_eq(a->buffer, buffer);
  mem_block *large = take(device, NULL, 100000);
  mem_free(large);
  mem_block *small = take(device, NULL, 3000); /* does not take the large one */
  ck_assert_uint_lt(small->bytes, 4096);
  ck_assert_int_eq(counters_of(device).buffers, 4);
  check_books(device);
  mem_free(a), mem_free(b), mem_free(small);
}
END_TEST

static const char *const uncached[] = {"1", "yes", "00"}, *const cached[] = {"0", ""};

START_TEST(caching_stays) {
  setenv("GRAFT_NO_MEMORY_CACHING", cached[_i], 1);
  graft_rt_device *device = null_device(OPTIONS("granularity=1"));
  mem_block *a = take(device, NULL, 1001), *b = take(device, NULL, 7);
  ck_assert_uint_ne(a->bytes, 1001);
  ck_assert_ptr_eq(a->buffer, b->buffer);
  mem_free(a), mem_free(b);
}
END_TEST

START_TEST(without_caching) {
  setenv("GRAFT_NO_MEMORY_CACHING", uncached[_i], 1);
  graft_rt_device *device = null_device(OPTIONS("granularity=1"));
  uint64_t before = counters_of(device).buffers;
  mem_block *a = take(device, NULL, 1001), *b = take(device, NULL, 7);
  ck_assert_uint_eq(a->bytes, 1001);
  ck_assert_uint_eq(b->bytes, 7);
  ck_assert_ptr_ne(a->buffer, b->buffer);
  ck_assert_uint_eq(counters_of(device).buffers, before + 2);
  mem_free(a);
  a = take(device, NULL, 7); /* what was freed went back before */
  ck_assert_uint_eq(counters_of(device).buffers, before + 2);
  check_books(device);
  mem_free(a), mem_free(b);
}
END_TEST

/* --- addresses --- */

static sigjmp_buf fault;
static void on_fault(int signal) {
  siglongjmp(fault, signal);
}

START_TEST(addresses) {
  static const char *const kinds[] = {"address=host", "address=device", "address=none"};
  graft_rt_device *device = null_device(OPTIONS(kinds[_i], "alignment=65536"));
  mem_block *a = take(device, NULL, 70000), *b = take(device, NULL, 5000);
  ck_assert_uint_ne(a->address, 0);
  ck_assert_uint_eq(a->address % 65536, 0);
  ck_assert(b->address >= a->address + a->bytes || a->address >= b->address + b->bytes);
  ck_assert_int_eq(a->host_pointer != NULL, _i == 0);
  if (_i == 0) ck_assert_uint_eq(a->address, (uint64_t)(uintptr_t)a->host_pointer);
  if (_i == 2) { /* an accidental read by the host faults at once */
    signal(SIGSEGV, on_fault);
    if (sigsetjmp(fault, 1) == 0) {
      ck_abort_msg("%d was read", *(volatile int *)(uintptr_t)a->address);
    }
    signal(SIGSEGV, SIG_DFL);
  }
  mem_free(a);
  mem_free(b);
  ck_assert_int_eq(graft_memory_empty_cache(device), GRAFT_OK);
}
END_TEST

/* --- statistics --- */

START_TEST(statistics_grow_by_size) {
  graft_rt_device *device = null_device(NULL);
  mem_block *block = take(device, NULL, 64);
  struct {
    graft_memory_statistics stats;
    char behind[64];
  } room;
  memset(&room, 0x55, sizeof room);
  room.stats.struct_size = GRAFT_SIZE_TO(graft_memory_statistics, allocation);
  ck_assert_int_eq(graft_memory_stats(device, &room.stats), GRAFT_OK);
  ck_assert_int_eq(room.stats.allocation.current, 1);
  ck_assert_int_eq(room.stats.segment.current, 0x5555555555555555);
  room.stats.struct_size = sizeof room;
  ck_assert_int_eq(graft_memory_stats(device, &room.stats), GRAFT_OK);
  ck_assert_int_eq(room.stats.num_device_alloc, 1);
  ck_assert_int_eq(room.behind[0], 0x55);
  room.stats.struct_size = 0;
  ck_assert_int_eq(graft_memory_stats(device, &room.stats), GRAFT_INVALID_ARGUMENT);
  mem_free(block);
}
END_TEST

/* --- many steps --- */

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

enum { SLOTS = 200 };

/* One random step on a table of blocks: frees what is there, or allocates. Blocks carry their owner's mark. */
static void random_step(graft_rt_device *device, graft_rt_stream *const *streams, int count, mem_block **slots,
                        uint64_t *state) {
  uint64_t slot = next_random(state) % SLOTS;
  if (slots[slot]) {
    if (next_random(state) % 4 == 0) mem_record_stream(slots[slot], streams[next_random(state) % (uint64_t)count]);
    if (slots[slot]->host_pointer) {
      ck_assert_ptr_eq(*(void **)slots[slot]->host_pointer, &slots[slot]);
      *(void **)slots[slot]->host_pointer = NULL;
    }
    mem_free(slots[slot]);
    slots[slot] = NULL;
    return;
  }
  static const uint64_t ranges[] = {4096, 65536, MIB, 4 * MIB, 12 * MIB};
  uint64_t bytes = 8 + next_random(state) % ranges[next_random(state) % 5];
  slots[slot] = take(device, streams[next_random(state) % (uint64_t)count], bytes);
  if (slots[slot]->host_pointer) *(void **)slots[slot]->host_pointer = &slots[slot];
}

START_TEST(random_steps_keep_the_books) {
  graft_rt_device *device = null_device(_i ? OPTIONS("lazy=1", "indivisible=1") : OPTIONS("lazy=1"));
  graft_rt_stream *streams[3] = {device->default_stream};
  ck_assert_int_eq(graft_stream_create(device, 0, 0, &streams[1]), GRAFT_OK);
  ck_assert_int_eq(graft_stream_create(device, 0, 0, &streams[2]), GRAFT_OK);
  mem_block *slots[SLOTS] = {0};
  uint64_t state = 1;
  for (int step = 0; step < 20000; step++) {
    random_step(device, streams, 3, slots, &state);
    if (step % 64 == 0) test_api(device)->finish(device->backend->plugin.self);
    if (step % 500 == 0) check_books(device);
    if (step % 5000 == 4999) ck_assert_int_eq(graft_memory_empty_cache(device), GRAFT_OK);
  }
  for (int i = 0; i < SLOTS; i++) mem_free(slots[i]);
  ck_assert_int_eq(graft_memory_empty_cache(device), GRAFT_OK);
  check_books(device);
  null_counters counters = counters_of(device);
  ck_assert_int_eq(counters.buffers, 0);
  ck_assert_int_eq(counters.bytes, 0);
  ck_assert_int_eq(counters.released_busy, 0);
  ck_assert_int_eq(stats_of(device).active.current, 0);
}
END_TEST

START_TEST(a_steady_state_asks_the_system_for_nothing) {
  graft_rt_device *device = null_device(NULL);
  graft_rt_stream *stream;
  ck_assert_int_eq(graft_stream_create(device, 0, 0, &stream), GRAFT_OK);
  uint64_t heap = 0, failed = 0;
  int64_t calls = 0;
  for (int step = 0; step < 1000; step++) {
    mem_block *blocks[100];
    for (int i = 0; i < 100; i++) { /* asserts of Check go to the heap, too: none in here */
      uint64_t bytes = (uint64_t)(i * 7919) % 300000;
      failed |= mem_allocate(device, i % 3 ? device->default_stream : stream, bytes, &blocks[i]);
    }
    for (int i = 0; i < 100 && !failed; i++) {
      if (i % 5 == 0) mem_record_stream(blocks[i], stream);
      mem_free(blocks[i]);
    }
    if (step == 10) calls = counters_of(device).allocate_calls, heap = heap_calls;
  }
  uint64_t heap_after = heap_calls;
  ck_assert_uint_eq(failed, 0);
  ck_assert_uint_eq(heap_after, heap);
  ck_assert_int_eq(counters_of(device).allocate_calls, calls);
}
END_TEST

/* --- threads --- */

typedef struct worker {
  graft_rt_device *device;
  uint64_t seed;
} worker;

static void *work(void *context) {
  worker *w = context;
  graft_rt_stream *stream;
  ck_assert_int_eq(graft_stream_create(w->device, 0, 0, &stream), GRAFT_OK);
  graft_rt_stream *streams[2] = {stream, w->device->default_stream};
  mem_block *slots[SLOTS] = {0};
  uint64_t state = w->seed;
  for (int step = 0; step < 5000; step++) {
    random_step(w->device, streams, 2, slots, &state);
    if (step % 1000 == 999) ck_assert_int_eq(graft_memory_empty_cache(w->device), GRAFT_OK);
  }
  for (int i = 0; i < SLOTS; i++) mem_free(slots[i]);
  ck_assert_int_eq(graft_stream_destroy(stream), GRAFT_OK);
  return NULL;
}

START_TEST(threads) {
  enum { THREADS = 4 };
  graft_rt_device *device = null_device(NULL);
  pthread_t ids[THREADS];
  worker workers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){device, (uint64_t)i + 1};
    pthread_create(&ids[i], NULL, work, &workers[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
  ck_assert_int_eq(graft_memory_empty_cache(device), GRAFT_OK);
  check_books(device);
  ck_assert_int_eq(counters_of(device).buffers, 0);
}
END_TEST

START_TEST(an_allocator_ends_with_nothing_left) {
  graft_rt_device *device = null_device(OPTIONS("pinned=1"));
  graft_rt_stream *stream;
  ck_assert_int_eq(graft_stream_create(device, 0, 0, &stream), GRAFT_OK);
  mem_block *block = take(device, NULL, 5 * MIB);
  mem_record_stream(block, stream);
  mem_free(block);
  void *pinned;
  ck_assert_int_eq(graft_pinned_allocate(device, 100, &pinned), GRAFT_OK);
  graft_pinned_free(device, pinned);
  mem_settle(device->allocator);
  mem_destroy(device->allocator);
  null_counters counters = counters_of(device);
  ck_assert_int_eq(counters.buffers, 0);
  ck_assert_int_eq(counters.events, 0);
  ck_assert_int_eq(mem_create(device, &device->allocator), GRAFT_OK);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(sizes_become_segments, 8),
                              ONCE(shared_segments_grow),
                              ONCE(best_fit_split_and_merge),
                              ONCE(zero_bytes),
                              ONCE(streams_have_their_own_memory),
                              ONCE(memory_waits_for_other_streams),
                              ONCE(events_are_used_again),
                              ONCE(alignment_and_granularity),
                              ONCE(indivisible_devices),
                              EACH(without_caching, ROWS(uncached)),
                              EACH(caching_stays, ROWS(cached)),
                              EACH(addresses, 3),
                              ONCE(statistics_grow_by_size),
                              ONCE(out_of_memory_releases_the_cache),
                              ONCE(limit),
                              ONCE(impossible_sizes),
                              EACH(random_steps_keep_the_books, 2),
                              ONCE(a_steady_state_asks_the_system_for_nothing),
                              ONCE(threads),
                              ONCE(an_allocator_ends_with_nothing_left),
                              {0}};
  return run_suite("memory", tests, (suite_options){.timeout_s = 60});
}
