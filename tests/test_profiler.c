/* Records of what ran on a device, through libgraft: by the plugin of threads, and by the OpenCL backend. */
#include <string.h>
#include <time.h>

#include "bad_input.h"
#include "graft/graft.h"
#include "marks.h"
#include "suite.h"

enum { ITEMS = 4096, BYTES = ITEMS * sizeof(float), RECORDS_MAX = 256 };

typedef struct taken {
  graft_profile_record records[RECORDS_MAX];
  char names[RECORDS_MAX][64];
  size_t count;
} taken;

static taken all;

static void take(void *context, const graft_profile_record *record) {
  taken *t = context;
  ck_assert_uint_lt(t->count, RECORDS_MAX);
  t->records[t->count] = *record;
  snprintf(t->names[t->count++], sizeof *t->names, "%s", record->name);
}

static void drain(graft_rt_device *device) {
  uint64_t lost = 77;
  all.count = 0;
  OK(graft_profiler_drain(device, take, &all, &lost));
  ck_assert_uint_eq(lost, 0);
}

/* The record of that kind, which must be the only one. */
static const graft_profile_record *only(graft_record_kind kind) {
  const graft_profile_record *found = NULL;
  for (size_t i = 0; i < all.count; i++) {
    if (all.records[i].kind != kind) continue;
    ck_assert_msg(!found, "two records of kind %u", (unsigned)kind);
    found = &all.records[i];
  }
  ck_assert_msg(found, "no record of kind %u among %zu", (unsigned)kind, all.count);
  return found;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A copy there, neg, and a copy back, on the current stream. */
static void work(graft_rt_device *device) {
  static float host[ITEMS];
  const int64_t sizes[] = {ITEMS};
  graft_tensor *from, *to = NULL;
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, sizes, host, &from));
  OK(graft_op_neg(from, &to));
  OK(graft_tensor_to_host(to, host));
  graft_tensor_release(from);
  graft_tensor_release(to);
}

static graft_rt_device *device_number(int number) {
  return number ? device_at(OPENCL, NULL, 0) : device_at(test_plugin("async"), NULL, 0);
}

enum { SECOND = 1000000000 }; /* in ns */

START_TEST(kernels_and_copies_leave_records) {
  if (_i && !has_opencl()) return;
  graft_rt_device *device = device_number(_i);
  graft_rt_stream *stream;
  work(device); /* programs are built here */
  OK(graft_stream_create(device, 0, 0, &stream));
  graft_stream_set_current(stream);
  OK(graft_profiler_start(device));
  ck_assert_uint_eq(graft_profiler_correlate(UINT64_C(5) << 40), 0);
  uint64_t began = now_ns();
  work(device);
  OK(graft_device_synchronize(device));
  uint64_t took = now_ns() - began;
  ck_assert_uint_eq(graft_profiler_correlate(0), UINT64_C(5) << 40);
  OK(graft_profiler_stop(device));
  work(device);
  OK(graft_device_synchronize(device));
  drain(device);
  ck_assert_uint_eq(all.count, 3);
  const graft_profile_record *kernel = only(GRAFT_RECORD_KERNEL), *there = only(GRAFT_RECORD_COPY_FROM_HOST),
                             *back = only(GRAFT_RECORD_COPY_TO_HOST);
  ck_assert_uint_eq(kernel->op_id, GRAFT_OP_NEG);
  ck_assert_uint_eq(there->op_id, 0);
  ck_assert_uint_eq(kernel->bytes, 0);
  ck_assert_uint_eq(there->bytes, BYTES);
  ck_assert_uint_eq(back->bytes, BYTES);
  ck_assert_str_eq(all.names[kernel - all.records], _i ? "pointwise" : "negate");
  for (size_t i = 0; i < all.count; i++) {
    const graft_profile_record *r = &all.records[i];
    ck_assert_uint_eq(r->struct_size, sizeof *r);
    ck_assert_uint_eq(r->correlation, UINT64_C(5) << 40);
    ck_assert_uint_eq(r->stream, all.records[0].stream);
    ck_assert_uint_ge(r->end_ns, r->begin_ns);
    ck_assert_uint_le(r->end_ns - r->begin_ns, took);
    /* By the host's clock, to which the device's is brought; no more is asked of the two than that they are not others.
     */
    ck_assert_uint_ge(r->begin_ns + SECOND, began);
    ck_assert_uint_le(r->end_ns, began + took + SECOND);
  }
  ck_assert_uint_gt(kernel->end_ns, kernel->begin_ns);
  drain(device);
  ck_assert_uint_eq(all.count, 0);
  graft_stream_destroy(stream);
}
END_TEST

START_TEST(streams_are_told_apart_and_stay_in_order) {
  if (_i && !has_opencl()) return;
  graft_rt_device *device = device_number(_i);
  graft_rt_stream *streams[2];
  for (int i = 0; i < 2; i++) OK(graft_stream_create(device, 0, 0, &streams[i]));
  work(device);
  /* From a stream's own queue to one with times, and back, with work before and behind. */
  for (int round = 0; round < 3; round++) {
    OK(graft_profiler_start(device));
    for (int i = 0; i < 4; i++) {
      graft_stream_set_current(streams[i % 2]);
      work(device);
    }
    OK(graft_profiler_stop(device));
    drain(device);
    ck_assert_uint_eq(all.count, 12);
    for (size_t i = 3; i < all.count; i++) {
      const graft_profile_record *r = &all.records[i], *before = &all.records[i % 3 ? i - 1 : i - 3];
      ck_assert_int_eq(r->stream == before->stream, i % 3 != 0);
      if (i % 3) ck_assert_uint_ge(r->begin_ns, before->end_ns);
    }
    work(device);
  }
  for (int i = 0; i < 2; i++) graft_stream_destroy(streams[i]);
}
END_TEST

START_TEST(a_plugin_without_records_says_so) {
  graft_rt_device *device = graft_device_reference();
  ck_assert_int_eq(graft_profiler_start(device), GRAFT_UNIMPLEMENTED);
  ck_assert_msg(strstr(graft_last_error(), "\"graft.profiler\""), "%s", graft_last_error());
  ck_assert_int_eq(graft_profiler_stop(device), GRAFT_UNIMPLEMENTED);
  ck_assert_int_eq(graft_profiler_drain(device, take, &all, NULL), GRAFT_UNIMPLEMENTED);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(kernels_and_copies_leave_records, 2),
                              EACH(streams_are_told_apart_and_stay_in_order, 2),
                              ONCE(a_plugin_without_records_says_so),
                              {0}};
  return run_suite("profiler", tests, (suite_options){.timeout_s = 60});
}
