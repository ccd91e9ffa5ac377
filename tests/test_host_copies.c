/* Copies from and to host memory, staged where they must be, and pinned memory; on the null plugin. */
#include "graft/memory.h"
#include "null_device.h"
#include "suite.h"

/* --- copies --- */

static void fill_pattern(unsigned char *bytes, size_t count, unsigned seed) {
  for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)(seed + i * 7);
}

static void check_copies(graft_rt_device *device) {
  enum { SIZE = 4096 };
  static const struct {
    uint64_t offset, bytes;
  } ranges[] = {{0, SIZE}, {3, 5}, {15, 2}, {16, 16}, {17, 100}, {0, 1}, {SIZE - 1, 1}, {1000, 0}};
  unsigned char model[SIZE], piece[SIZE], back[SIZE];
  graft_rt_stream *stream = device->default_stream;
  mem_block *block = take(device, NULL, SIZE);
  fill_pattern(model, SIZE, 1);
  ck_assert_int_eq(mem_from_host(stream, block->buffer, block->offset, model, SIZE), GRAFT_OK);
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    uint64_t offset = ranges[i].offset, bytes = ranges[i].bytes;
    fill_pattern(piece, SIZE, 100 + (unsigned)i);
    memcpy(model + offset, piece, bytes);
    ck_assert_int_eq(mem_from_host(stream, block->buffer, block->offset + offset, piece, bytes), GRAFT_OK);
    memset(piece, 0, SIZE); /* the source is free on return */
    ck_assert_int_eq(mem_to_host(stream, back, block->buffer, block->offset, SIZE), GRAFT_OK);
    ck_assert_mem_eq(back, model, SIZE);
    memset(back, 0xee, SIZE);
    ck_assert_int_eq(mem_to_host(stream, back, block->buffer, block->offset + offset, bytes), GRAFT_OK);
    ck_assert_mem_eq(back, model + offset, bytes);
    ck_assert_uint_eq(back[bytes < SIZE ? bytes : 0], bytes < SIZE ? 0xee : model[0]); /* not one byte more */
  }
  ck_assert_int_eq(counters_of(device).unaligned, 0);
  mem_free(block);
}

START_TEST(copies) {
  static const char *const words[] = {"copy_granularity=1", "copy_granularity=4", "copy_granularity=16"};
  static const char *const pinned[] = {"pinned=0", "pinned=1"};
  graft_rt_device *device = null_device(OPTIONS(words[_i % 3], pinned[_i / 3], "lazy=1"));
  check_copies(device);
  null_counters counters = counters_of(device);
  ck_assert_int_eq(counters.copies_reusable == 0, _i / 3);
  ck_assert_int_eq(counters.copies_kept != 0, _i / 3);
}
END_TEST

START_TEST(copies_beyond_a_buffer_are_errors) {
  graft_rt_device *device = null_device(NULL);
  mem_block *block = take(device, NULL, 64);
  char bytes[64] = {0};
  ck_assert_int_eq(mem_from_host(device->default_stream, block->buffer, 100 << 20, bytes, 64), GRAFT_INVALID_ARGUMENT);
  ck_assert_ptr_nonnull(strstr(graft_last_error(), "null:0: copying from the host"));
  mem_free(block);
}
END_TEST

/* --- pinned memory --- */

START_TEST(pinned_memory) {
  graft_rt_device *device = null_device(OPTIONS(_i ? "pinned=1" : "pinned=0", "lazy=1"));
  void *a, *b, *c;
  ck_assert_int_eq(graft_pinned_allocate(device, 5000, &a), GRAFT_OK);
  memset(a, 1, 5000);
  ck_assert_int_eq(mem_is_pinned(device, (char *)a + 10, 4000), _i);
  ck_assert(!mem_is_pinned(device, &a, sizeof a));
  ck_assert_int_eq(graft_pinned_free(device, (char *)a + 1), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(graft_pinned_free(device, &a), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(graft_pinned_free(device, a), GRAFT_OK);
  ck_assert_int_eq(graft_pinned_free(device, a), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(graft_pinned_allocate(device, 8000, &b), GRAFT_OK);
  ck_assert_ptr_eq(a, b);
  ck_assert_int_eq(mem_pinned_record(device, (char *)b + 100, device->default_stream), GRAFT_OK);
  ck_assert_int_eq(mem_pinned_record(device, &a, device->default_stream), GRAFT_OK);
  ck_assert_int_eq(graft_pinned_free(device, b), GRAFT_OK);
  ck_assert_int_eq(graft_pinned_allocate(device, 8000, &c), GRAFT_OK);
  ck_assert_ptr_ne(c, b); /* a copy still reads it */
  ck_assert_int_eq(graft_device_synchronize(device), GRAFT_OK);
  ck_assert_int_eq(graft_pinned_allocate(device, 8000, &a), GRAFT_OK);
  ck_assert_ptr_eq(a, b);
  ck_assert_int_eq(counters_of(device).buffers, _i ? 2 : 0);
  ck_assert_int_eq(graft_pinned_free(device, a), GRAFT_OK);
  ck_assert_int_eq(graft_pinned_free(device, c), GRAFT_OK);
  ck_assert_int_eq(graft_memory_empty_cache(device), GRAFT_OK);
  ck_assert_int_eq(counters_of(device).buffers, 0);
  ck_assert_int_eq(graft_pinned_allocate(device, UINT64_MAX, &a), GRAFT_OUT_OF_MEMORY);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(copies, 6), ONCE(copies_beyond_a_buffer_are_errors), EACH(pinned_memory, 2), {0}};
  return run_suite("host_copies", tests, (suite_options){0});
}
