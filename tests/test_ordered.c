/* What the host does with a plugin that has what came with ABI 1.2: tests/plugins/ordered.c. */
#include <string.h>

#include "graft/bridge.h"
#include "graft/dlpack.h"
#include "graft/graft.h"
#include "null_device.h"
#include "plugins/ordered.h"
#include "suite.h"

static graft_rt_device *open_device(int32_t index, const char *const *options) {
  graft_rt_backend *backend;
  graft_rt_device *device;
  OK(graft_backend_open(test_plugin("ordered"), options, &backend));
  OK(graft_backend_device(backend, index, &device));
  return device;
}

static ordered_counters *seen_by(graft_rt_device *device) {
  const void *table;
  const graft_plugin *plugin = &device->backend->plugin;
  ck_assert_int_eq(plugin->extension(plugin->self, ORDERED_EXTENSION, 1, &table), GRAFT_OK);
  return (ordered_counters *)(uintptr_t)table;
}

static graft_tensor *tensor(graft_rt_device *device, graft_dtype dtype, int64_t n, const void *values) {
  graft_tensor *t;
  OK(graft_tensor_from_host(device, dtype, 1, &n, values, &t));
  return t;
}

static const float three[] = {1, -2, 3}, negated[] = {-1, 2, -3};

/* Copies are no matter here: the plugin has no kernel for them. */
static uint64_t fallbacks(void) {
  graft_fallback_info rows[64];
  size_t count = graft_fallbacks(rows, sizeof *rows, 64);
  uint64_t sum = 0;
  for (size_t i = 0; i < count && i < 64; i++)
    if (rows[i].op_id != GRAFT_OP_TO_COPY) sum += rows[i].count;
  return sum;
}

/* --- memory --- */

START_TEST(memory_goes_in_the_order_of_its_stream) {
  graft_rt_device *device = open_device(0, NULL);
  ordered_counters *seen = seen_by(device);
  graft_tensor *x = tensor(device, GRAFT_F32, 3, three), *out = NULL;
  int allocations = seen->stream_allocations;
  OK(graft_op_neg(x, &out));
  graft_tensor_release(x); /* while neg has not begun */
  ck_assert_int_eq(seen->stream_allocations, allocations + 1);
  ck_assert_int_eq(seen->ordered_releases, 1);
  expect(out, 3, negated);
  graft_tensor_release(out);
  OK(graft_device_synchronize(device));
  ck_assert_int_eq(seen->ordered_releases, 2);
  ck_assert_int_eq(seen->plain_releases, 0);
  ck_assert_int_eq(seen->buffers, 0);
  graft_memory_statistics stats = {.struct_size = sizeof stats};
  OK(graft_memory_stats(device, &stats));
  ck_assert_int_eq(stats.reserved_bytes.current, 0);
  ck_assert_int_eq(stats.active.current, 0);
}
END_TEST

START_TEST(memory_waits_for_other_streams) {
  graft_rt_device *device = open_device(0, NULL);
  ordered_counters *seen = seen_by(device);
  graft_rt_stream *other;
  graft_tensor *x = tensor(device, GRAFT_F32, 3, three), *out = NULL;
  OK(graft_device_synchronize(device));
  OK(graft_stream_create(device, 0, 0, &other));
  graft_stream_set_current(other);
  OK(graft_op_neg(x, &out));
  OK(graft_storage_record_stream(graft_tensor_storage(x), other));
  graft_tensor_release(x);
  ck_assert_int_eq(seen->blocks, 0);
  expect(out, 3, negated);
  graft_tensor_release(out);
  OK(graft_stream_destroy(other));
  OK(graft_device_synchronize(device));
  ck_assert_int_eq(seen->buffers, 0);
  ck_assert_int_eq(seen->plain_releases, 0);
}
END_TEST

/* --- events --- */

static void wait_across(const char *const *options, int waits, int blocks) {
  graft_rt_device *one = open_device(0, options), *other = open_device(1, options);
  ordered_counters *seen = seen_by(one);
  graft_tensor *x = tensor(one, GRAFT_F32, 3, three), *out = NULL;
  graft_rt_event *event;
  OK(graft_op_neg(x, &out));
  OK(graft_event_create(one, 0, &event));
  OK(graft_event_record(event, graft_stream_current(one)));
  int waits_before = seen->waits, blocks_before = seen->blocks;
  OK(graft_stream_wait(graft_stream_current(other), event));
  ck_assert_int_eq(seen->waits - waits_before, waits);
  ck_assert_int_eq(seen->blocks - blocks_before, blocks);
  OK(graft_stream_synchronize(graft_stream_current(other)));
  ck_assert_int_eq(graft_event_query(event), GRAFT_OK);
  OK(graft_event_destroy(event));
  graft_tensor *there = NULL;
  OK(graft_tensor_to(out, other, GRAFT_DTYPE_NONE, &there));
  expect(there, 3, negated);
  graft_tensor_release(there);
  graft_tensor_release(out);
  graft_tensor_release(x);
}

START_TEST(streams_wait_across_devices) {
  wait_across(NULL, 1, 0);
}
END_TEST

START_TEST(the_host_waits_where_streams_can_not) {
  wait_across(OPTIONS("across=0"), 0, 1);
}
END_TEST

/* --- dtypes --- */

static const uint16_t halves[] = {0x3c00, 0xc000, 0x4200}; /* 1, -2, 3 */

/* How often neg was called, in f32 and in other dtypes, and what left the device. */
static void neg_of(graft_rt_device *device, graft_dtype dtype, const void *values, int negs, int others,
                   uint64_t left) {
  ordered_counters *seen = seen_by(device);
  int negs_before = seen->negs, others_before = seen->other_negs;
  uint64_t left_before = fallbacks();
  graft_tensor *x = tensor(device, dtype, 3, values), *out = NULL;
  OK(graft_op_neg(x, &out));
  ck_assert_int_eq(seen->negs - negs_before, negs);
  ck_assert_int_eq(seen->other_negs - others_before, others);
  ck_assert_uint_eq(fallbacks() - left_before, left);
  graft_tensor_release(x);
  graft_tensor_release(out);
}

START_TEST(halves_are_widened_where_f32_is_there) {
  neg_of(open_device(0, NULL), GRAFT_F16, halves, 1, 0, 0);
  neg_of(open_device(1, NULL), GRAFT_F16, halves, 0, 0, 1);
  neg_of(open_device(1, OPTIONS("minor=1")), GRAFT_F16, halves, 1, 1, 0); /* of 1.1: nobody read the set */
}
END_TEST

static int draws_of(graft_rt_device *device) {
  ordered_counters *seen = seen_by(device);
  int before = seen->draws;
  graft_tensor *x = tensor(device, GRAFT_F32, 3, three), *out = NULL;
  OK(graft_op_cauchy(x, 0, 1, NULL, &out));
  graft_tensor_release(x);
  graft_tensor_release(out);
  return seen->draws - before;
}

START_TEST(slots_from_before_their_meaning_are_not_called) {
  ck_assert_int_eq(draws_of(open_device(0, NULL)), 1);
  ck_assert_int_eq(draws_of(open_device(0, OPTIONS("minor=1"))), 0);
}
END_TEST

/* histc of whole numbers is composed of ops in f64. */
static uint64_t histogram(const char *const *options) {
  graft_rt_device *device = open_device(0, options);
  const int32_t values[] = {0, 1, 1, 3};
  graft_tensor *x = tensor(device, GRAFT_I32, 4, values), *out = NULL;
  uint64_t before = fallbacks();
  OK(graft_op_histc(x, 4, graft_scalar_int(0), graft_scalar_int(3), &out));
  uint64_t left = fallbacks() - before;
  int32_t counts[4];
  OK(graft_tensor_to_host(out, counts));
  ck_assert_msg(counts[0] == 1 && counts[1] == 2 && counts[2] == 0 && counts[3] == 1, "%d %d %d %d", counts[0],
                counts[1], counts[2], counts[3]);
  graft_tensor_release(out);
  out = NULL;
  OK(graft_op_histc(x, 4, graft_scalar_int(0), graft_scalar_int(3), &out)); /* and remembers the way */
  graft_tensor_release(out);
  graft_tensor_release(x);
  return left;
}

START_TEST(nothing_is_composed_of_dtypes_that_are_not_there) {
  ck_assert_uint_eq(histogram(NULL), 1);
  ck_assert_uint_gt(histogram(OPTIONS("minor=1")), 1);
}
END_TEST

/* --- questions --- */

START_TEST(op_query_decides) {
  graft_rt_device *device = open_device(0, NULL);
  ordered_counters *seen = seen_by(device);
  float many[ORDERED_LONGEST + 1] = {1, 2};
  graft_tensor *x = tensor(device, GRAFT_F32, ORDERED_LONGEST + 1, many), *out = NULL;
  OK(graft_op_neg(x, &out));
  OK(graft_tensor_to_host(out, many));
  ck_assert_float_eq(many[1], -2);
  ck_assert_int_eq(seen->queries, 1);
  ck_assert_int_eq(seen->long_negs, 0);
  graft_tensor_release(x);
  graft_tensor_release(out);
  x = tensor(device, GRAFT_F32, ORDERED_APART, many);
  const graft_value self = {GRAFT_VALUE_TENSOR, 0, {.tensor = x}};
  graft_tensor *same = x;
  for (int i = 0; i < 3; i++) OK(graft_call(GRAFT_OP_NEG, &self, 1, &same, 1));
  ck_assert_int_eq(seen->queries, 2); /* once a plan */
  ck_assert_int_eq(seen->negs, 3);
  ck_assert_int_eq(seen->in_place_negs, 0);
  ck_assert_int_eq(seen->buffers_seen, 0);
  expect(x, ORDERED_APART, (float[]){1, 2, 0, 0, 0});
  graft_tensor_release(x);
}
END_TEST

START_TEST(calls_that_are_announced_are_prepared) {
  graft_rt_device *device = open_device(0, NULL);
  ordered_counters *seen = seen_by(device);
  graft_tensor *x = tensor(device, GRAFT_F32, 3, three), *out = NULL;
  const graft_value args[] = {{GRAFT_VALUE_TENSOR, 0, {.tensor = x}}};
  OK(graft_prepare(GRAFT_OP_NEG, args, 1));
  ck_assert_int_eq(seen->prepares, 1);
  ck_assert_int_eq(seen->negs, 0);
  ck_assert_int_eq(seen->buffers_seen, 0);
  OK(graft_op_neg(x, &out));
  expect(out, 3, negated);
  ck_assert_int_eq(seen->negs, 1);
  ck_assert_int_eq(seen->warm_negs, 1);
  ck_assert_int_eq(graft_prepare(0, args, 1), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(graft_prepare(GRAFT_OP_NEG, args, 2), GRAFT_INVALID_ARGUMENT);
  graft_tensor_release(x);
  graft_tensor_release(out);
}
END_TEST

/* A slot that does not read so far is not called with what lies there. */
START_TEST(args_that_are_not_read_are_not_sent) {
  graft_rt_device *device = open_device(0, NULL);
  graft_tensor *x = tensor(device, GRAFT_F32, 3, three), *out = NULL;
  OK(graft_op_abs(x, &out));
  expect(out, 3, (float[]){1, 2, 3});
  ck_assert_int_eq(seen_by(device)->abs_calls, 0);
  graft_tensor_release(x);
  graft_tensor_release(out);
}
END_TEST

START_TEST(tf32_is_allowed_by_the_application_alone) {
  graft_rt_device *device = open_device(0, NULL);
  for (int i = 0; i < 4; i++) {
    graft_exec_flags flags = i % 2 ? GRAFT_EXEC_ALLOW_TF32 : 0;
    graft_exec_flags_set(flags);
    graft_tensor *x = tensor(device, GRAFT_F32, 3, three), *out = NULL;
    OK(graft_op_neg(x, &out));
    ck_assert_uint_eq(seen_by(device)->flags, flags);
    graft_tensor_release(x);
    graft_tensor_release(out);
  }
  graft_exec_flags_set(0);
}
END_TEST

/* --- versions --- */

static uint64_t version_seen(graft_tensor *x) {
  graft_tensor *out = NULL;
  OK(graft_op_neg(x, &out));
  graft_tensor_release(out);
  return seen_by(graft_tensor_device(x))->version;
}

START_TEST(what_is_handed_out_has_no_version) {
  graft_rt_device *device = open_device(0, NULL);
  struct DLManagedTensorVersioned *managed;
  for (int way = 0; way < 2; way++) {
    graft_tensor *x = tensor(device, GRAFT_F32, 3, three);
    uint64_t version = version_seen(x);
    ck_assert_uint_gt(version, 0);
    ck_assert_uint_eq(version_seen(x), version);
    if (way) {
      ck_assert_ptr_nonnull(graft_storage_host_pointer(graft_tensor_storage(x)));
    } else {
      graft_tensor *again;
      OK(graft_tensor_to_dlpack(x, &managed));
      OK(graft_tensor_from_dlpack(managed, &again));
      graft_tensor_release(again);
    }
    ck_assert_uint_eq(version_seen(x), 0);
    ck_assert_uint_gt(graft_tensor_version(x), 0); /* which autograd counts by */
    graft_tensor_release(x);
  }
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(memory_goes_in_the_order_of_its_stream),
                              ONCE(memory_waits_for_other_streams),
                              ONCE(streams_wait_across_devices),
                              ONCE(the_host_waits_where_streams_can_not),
                              ONCE(halves_are_widened_where_f32_is_there),
                              ONCE(nothing_is_composed_of_dtypes_that_are_not_there),
                              ONCE(slots_from_before_their_meaning_are_not_called),
                              ONCE(op_query_decides),
                              ONCE(calls_that_are_announced_are_prepared),
                              ONCE(args_that_are_not_read_are_not_sent),
                              ONCE(tf32_is_allowed_by_the_application_alone),
                              ONCE(what_is_handed_out_has_no_version),
                              {0}};
  return run_suite("ordered", tests, (suite_options){.timeout_s = 60});
}
