/* What the host does with slots, streams and events that behave as few do: on the plugin of tests/plugins/slots.c. */
#include <complex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/state.h"
#include "graft/bridge.h"
#include "graft/graft.h"
#include "null_device.h"
#include "plugins/slots.h"
#include "suite.h"

static graft_rt_device *device_of(int32_t index) {
  graft_rt_backend *backend;
  graft_rt_device *device;
  OK(graft_backend_open(test_plugin("slots"), NULL, &backend));
  OK(graft_backend_device(backend, index, &device));
  return device;
}

static slots_counters *seen_by(graft_rt_device *device) {
  const void *table;
  const graft_plugin *plugin = &device->backend->plugin;
  ck_assert_int_eq(plugin->extension(plugin->self, SLOTS_EXTENSION, 1, &table), GRAFT_OK);
  return (slots_counters *)(uintptr_t)table;
}

static graft_tensor *vector(graft_rt_device *device, int64_t n, const float *values) {
  graft_tensor *t;
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, &n, values, &t));
  return t;
}

static graft_tensor *part(graft_tensor *t, int64_t from, int64_t to) {
  graft_tensor *view = NULL;
  OK(graft_op_slice_Tensor(t, 0, &from, &to, 1, &view));
  return view;
}

static void release(graft_tensor **tensors, int count) {
  for (int i = 0; i < count; i++) graft_tensor_release(tensors[i]);
}

static uint64_t all_fallbacks(void) {
  graft_fallback_info rows[256];
  size_t count = graft_fallbacks(rows, sizeof *rows, 256);
  uint64_t sum = 0;
  for (size_t i = 0; i < count && i < 256; i++) sum += rows[i].count;
  return sum;
}

/* --- devices --- */

START_TEST(a_kept_plan_checks_the_device_of_an_output) {
  graft_rt_device *one = device_of(0), *other = device_of(1);
  const float values[] = {1, 2, 3};
  graft_tensor *a = vector(one, 3, values), *here = vector(one, 3, values);
  graft_tensor *first = vector(other, 3, values), *there = vector(other, 3, values); /* aligned as `here` is */
  for (int i = 0; i < 2; i++) {
    OK(graft_call(GRAFT_OP_NEG, (graft_value[]){graft_value_tensor(a)}, 1, &here, 1));
    ck_assert_int_eq(graft_call(GRAFT_OP_NEG, (graft_value[]){graft_value_tensor(a)}, 1, &there, 1),
                     GRAFT_INVALID_ARGUMENT);
    assert_text("the given output 0 is on");
    graft_value full[] = {graft_value_ints((int64_t[]){3}, 1), graft_value_int(7), {0}, {0}, {0}};
    full[2] = (graft_value){GRAFT_VALUE_DTYPE, 0, {.dtype = GRAFT_F32}};
    full[4] = (graft_value){GRAFT_VALUE_DEVICE, 0, {.device = one}};
    OK(graft_call(GRAFT_OP_FULL, full, 5, &here, 1));
    ck_assert_int_eq(graft_call(GRAFT_OP_FULL, full, 5, &there, 1), GRAFT_INVALID_ARGUMENT);
    assert_text("the given output 0 is on");
  }
  expect(there, 3, values);
  expect(here, 3, (float[]){7, 7, 7});
  release((graft_tensor *[]){a, here, first, there}, 4);
}
END_TEST

START_TEST(full_like_goes_to_the_device_it_is_told) {
  graft_rt_device *devices[] = {device_of(0), device_of(1), graft_device_reference()};
  for (int from = 0; from < 3; from++) {
    graft_tensor *x;
    OK(graft_tensor_from_host(devices[from], GRAFT_F32, 2, (int64_t[]){2, 3}, (float[6]){0}, &x));
    for (int to = 0; to < 3; to++) {
      graft_tensor *out = NULL;
      OK(graft_op_full_like(x, graft_scalar_int(2), GRAFT_DTYPE_NONE, devices[to], GRAFT_FORMAT_PRESERVE, &out));
      ck_assert_ptr_eq(graft_tensor_device(out), devices[to]);
      ck_assert_int_eq(graft_tensor_ndim(out), 2);
      expect(out, 6, (float[]){2, 2, 2, 2, 2, 2});
      graft_tensor_release(out);
    }
    graft_tensor_release(x);
  }
}
END_TEST

/* --- ways --- */

enum { THREADS = 3, SHAPES = 60 };
typedef struct racer {
  pthread_barrier_t *start;
  graft_tensor **matrices;
  int failures;
} racer;

static void *multiply(void *argument) {
  racer *r = argument;
  for (int i = 0; i < SHAPES; i++) {
    graft_tensor *out = NULL;
    pthread_barrier_wait(r->start);
    r->failures += graft_op_mm(r->matrices[i], r->matrices[i], &out) != GRAFT_OK;
    graft_tensor_release(out);
  }
  return NULL;
}

START_TEST(threads_move_a_plan_on_once) {
  graft_rt_device *device = device_of(0);
  graft_tensor *matrices[SHAPES];
  static const float zeros[SHAPES * SHAPES];
  for (int64_t i = 0; i < SHAPES; i++)
    OK(graft_tensor_from_host(device, GRAFT_F32, 2, (int64_t[]){i + 1, i + 1}, zeros, &matrices[i]));
  pthread_barrier_t start;
  pthread_t threads[THREADS];
  racer racers[THREADS];
  pthread_barrier_init(&start, NULL, THREADS);
  for (int k = 0; k < THREADS; k++) {
    racers[k] = (racer){&start, matrices, 0};
    pthread_create(&threads[k], NULL, multiply, &racers[k]);
  }
  for (int k = 0; k < THREADS; k++) {
    pthread_join(threads[k], NULL);
    ck_assert_int_eq(racers[k].failures, 0);
  }
  pthread_barrier_destroy(&start);
  release(matrices, SHAPES);
}
END_TEST

START_TEST(a_slot_that_fails_leaves_no_output) {
  graft_rt_device *device = device_of(0);
  graft_tensor *a = vector(device, 3, (float[]){1, 0, 2}), *out = NULL;
  graft_memory_statistics before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
  OK(graft_memory_stats(device, &before));
  for (int i = 0; i < 10; i++) {
    ck_assert_int_eq(graft_op_nonzero(a, &out), GRAFT_INTERNAL);
    ck_assert_ptr_null(out);
  }
  OK(graft_memory_stats(device, &after));
  ck_assert_int_eq(after.allocated_bytes.current, before.allocated_bytes.current);
  graft_tensor_release(a);
}
END_TEST

START_TEST(memos_that_come_too_late_are_destroyed_behind_the_slot) {
  graft_rt_device *device = device_of(0);
  slots_counters *seen = seen_by(device);
  graft_tensor *a = vector(device, 3, (float[]){1, 2, 3});
  for (int i = 0; i < 2; i++) {
    graft_tensor *out = NULL;
    OK(graft_op_neg(a, &out));
    expect(out, 3, (float[]){-1, -2, -3});
    ck_assert_int_eq(seen->memos, 1);
    ck_assert_int_eq(seen->early_memos, 0);
    graft_tensor_release(out);
  }
  graft_tensor_release(a);
}
END_TEST

START_TEST(an_empty_batch_stays_on_the_device) {
  graft_rt_device *device = device_of(0);
  graft_tensor *grad, *x, *weight, *outs[3] = {NULL};
  for (int transposed = 0; transposed < 2; transposed++) {
    for (int64_t groups = 1; groups <= 2; groups++) {
      int64_t in = 4, out = 4, per_group[] = {4, 4 / groups, 3, 3};
      OK(graft_tensor_empty(device, GRAFT_F32, 4, (int64_t[]){0, out, transposed ? 10 : 6, transposed ? 10 : 6},
                            &grad));
      OK(graft_tensor_empty(device, GRAFT_F32, 4, (int64_t[]){0, in, 8, 8}, &x));
      OK(graft_tensor_empty(device, GRAFT_F32, 4, per_group, &weight));
      uint64_t before = all_fallbacks();
      OK(graft_op_convolution_backward(grad, x, weight, &out, 1, (int64_t[]){1, 1}, 2, (int64_t[]){0, 0}, 2,
                                       (int64_t[]){1, 1}, 2, transposed, (int64_t[]){0, 0}, 2, groups,
                                       (const uint8_t[]){1, 1, 1}, &outs[0], &outs[1], &outs[2]));
      ck_assert_uint_eq(all_fallbacks(), before);
      ck_assert_int_eq(graft_tensor_numel(outs[0]), 0);
      float got[4 * 4 * 9];
      OK(graft_tensor_to_host(outs[1], got));
      for (int64_t i = 0; i < graft_tensor_numel(weight); i++) ck_assert(got[i] == 0);
      expect(outs[2], 4, (float[]){0, 0, 0, 0});
      release(outs, 3);
      release((graft_tensor *[]){grad, x, weight}, 3);
      memset(outs, 0, sizeof outs);
    }
  }
}
END_TEST

/* --- numbers --- */

/* One plan for all numbers where the plugin's memos ignore them; one each where they do not. */
START_TEST(memos_know_whose_numbers_they_serve) {
  enum { NUMBERS = 100 };
  graft_rt_device *device = device_of(0);
  slots_counters *seen = seen_by(device);
  graft_tensor *a = vector(device, 3, (float[]){1, 2, 3}), *b = vector(device, 3, (float[]){5, 2, -1});
  for (int again = 0; again < 2; again++) {
    for (int i = 0; i < NUMBERS; i++) {
      float w = (float)i / 8;
      graft_tensor *mixed = NULL, *sum = NULL;
      OK(graft_op_lerp_Scalar(a, b, graft_scalar_float(w), &mixed));
      expect(mixed, 3, (float[]){1 + 4 * w, 2, 3 - 4 * w});
      OK(graft_op_addcmul(a, a, b, graft_scalar_float(w), &sum));
      expect(sum, 3, (float[]){1 + 5 * w, 2 + 4 * w, 3 - 3 * w});
      release((graft_tensor *[]){mixed, sum}, 2);
    }
  }
  ck_assert_int_eq(seen->lerp_memos, 1);
  ck_assert_int_eq(seen->addcmul_memos, NUMBERS);
  ck_assert_int_eq(seen->wrong_memos, 0);
  /* A whole number is another case: its dtype may have a say in the result's. */
  graft_tensor *mixed = NULL;
  OK(graft_op_lerp_Scalar(a, b, graft_scalar_int(1), &mixed));
  expect(mixed, 3, (float[]){5, 2, -1});
  ck_assert_int_eq(seen->lerp_memos, 2);
  release((graft_tensor *[]){a, b, mixed}, 3);
}
END_TEST

/* Where the allocator puts a block is no part of the case; where a view begins in one is. */
START_TEST(a_plan_serves_wherever_blocks_lie) {
  enum { BLOCKS = 40 };
  graft_rt_device *device = device_of(0);
  slots_counters *seen = seen_by(device);
  graft_tensor *kept[BLOCKS], *shifted = NULL;
  float values[17] = {1, 2, 3};
  for (int i = 0; i < BLOCKS; i++) kept[i] = vector(device, 16, values);
  for (int i = 0; i + 1 < BLOCKS; i++) {
    graft_tensor *mixed = NULL;
    OK(graft_op_lerp_Scalar(kept[i], kept[i + 1], graft_scalar_float(0.5), &mixed));
    graft_tensor_release(mixed);
  }
  ck_assert_int_eq(seen->lerp_memos, 1);
  graft_tensor *longer = vector(device, 17, values), *mixed = NULL;
  OK(graft_op_slice_Tensor(longer, 0, (int64_t[]){1}, (int64_t[]){17}, 1, &shifted));
  OK(graft_op_lerp_Scalar(shifted, kept[0], graft_scalar_float(0.5), &mixed));
  ck_assert_int_eq(seen->lerp_memos, 2);
  release(kept, BLOCKS);
  release((graft_tensor *[]){longer, shifted, mixed}, 3);
}
END_TEST

/* A cache that is full forgets what was not asked for in the longest time, and keeps what is in use. */
START_TEST(the_oldest_plans_are_forgotten) {
  graft_rt_device *device = device_of(0);
  slots_counters *seen = seen_by(device);
  graft_tensor *a = vector(device, 1, (float[]){1});
  const int plans = 3 * DSP_MAX_PLANS;
  for (int i = 0; i < plans; i++) {
    graft_tensor *sum = NULL, *mixed = NULL;
    OK(graft_op_addcmul(a, a, a, graft_scalar_float(i), &sum));
    if (i % 100 == 0) OK(graft_op_lerp_Scalar(a, a, graft_scalar_float(0.5), &mixed));
    release((graft_tensor *[]){sum, mixed}, 2);
  }
  ck_assert_int_eq(seen->addcmul_memos, plans);
  ck_assert_int_ge(seen->addcmul_memos_gone, plans - DSP_MAX_PLANS);
  ck_assert_int_le(seen->addcmul_memos_gone, plans - DSP_MAX_PLANS / 2);
  ck_assert_int_eq(seen->lerp_memos, 1);
  ck_assert_int_eq(seen->lerp_memos_gone, 0);
  graft_tensor_release(a);
}
END_TEST

START_TEST(numbers_in_host_memory_keep_their_bits) {
  graft_rt_device *device = device_of(0);
  float _Complex values[] = {1, I}, number = 2 + 3 * I, got[2];
  graft_tensor *x, *k, *conjugate = NULL, *out = NULL;
  OK(graft_tensor_from_host(device, GRAFT_C64, 1, (int64_t[]){2}, values, &x));
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_C64, 0, NULL, &number, &k));
  OK(graft_op_prims_conj(k, &conjugate));
  ck_assert(graft_tensor_is_conj(conjugate));
  OK(graft_op_mul_Tensor(x, conjugate, &out));
  ck_assert_int_eq(dsp_last_route(), DSP_ROUTE_PLUGIN);
  OK(graft_tensor_to_host(out, got));
  ck_assert(got[0] == 2 - 3 * I && got[1] == 3 + 2 * I);
  release((graft_tensor *[]){x, k, conjugate, out}, 4);
}
END_TEST

/* --- lists --- */

static void add_one(graft_tensor **items, uint32_t count) {
  graft_value args[] = {graft_value_tensors(items, count), graft_value_int(1)};
  OK(graft_call(GRAFT_OP_FOREACH_ADD_SCALAR, args, 2, items, count));
}

START_TEST(items_that_share_memory_go_in_order) {
  graft_rt_device *devices[] = {device_of(0), graft_device_reference()};
  slots_counters *seen = seen_by(devices[0]);
  static const float zeros[8];
  for (int d = 0; d < 2; d++) {
    graft_tensor *p = vector(devices[d], 8, zeros), *q = vector(devices[d], 8, zeros),
                 *r = vector(devices[d], 8, zeros);
    graft_tensor *apart[] = {part(q, 0, 5), part(r, 3, 8)}, *across[] = {part(p, 0, 5), part(p, 3, 8)};
    int calls = seen->list_calls;
    add_one(apart, 2); /* a plan of the same shapes */
    ck_assert_int_eq(seen->list_calls, calls + !d);
    for (int i = 0; i < 2; i++) add_one(across, 2);
    expect(p, 8, (float[]){2, 2, 2, 4, 4, 2, 2, 2});
    add_one((graft_tensor *[]){p, p}, 2);
    expect(p, 8, (float[]){4, 4, 4, 6, 6, 4, 4, 4});
    OK(graft_call(GRAFT_OP_FOREACH_NEG, (graft_value[]){graft_value_tensors(across, 2)}, 1, across,
                  2)); /* never more than made of other ops */
    expect(p, 8, (float[]){-4, -4, -4, 6, 6, -4, -4, -4});
    ck_assert_int_eq(seen->list_calls, calls + !d);
    add_one(apart, 2);
    ck_assert_int_eq(seen->list_calls, calls + 2 * !d);
    expect(q, 8, (float[]){2, 2, 2, 2, 2, 0, 0, 0});
    release((graft_tensor *[]){p, q, r, apart[0], apart[1], across[0], across[1]}, 7);
  }
}
END_TEST

/* Item 1 reads what item 0 wrote. */
START_TEST(items_read_what_others_wrote) {
  graft_rt_device *device = device_of(0);
  const float ones[] = {1, 1, 1, 1};
  graft_tensor *a = vector(device, 4, ones), *b = vector(device, 4, ones), *c = vector(device, 4, ones);
  for (int i = 0; i < 2; i++) {
    graft_tensor *self[] = {a, b}, *apart[] = {c, c}, *chained[] = {c, a};
    graft_value args[] = {graft_value_tensors(self, 2), graft_value_tensors(i ? chained : apart, 2)};
    OK(graft_call(GRAFT_OP_FOREACH_ADD_LIST, args, 2, self, 2));
  }
  expect(a, 4, (float[]){3, 3, 3, 3});
  expect(b, 4, (float[]){5, 5, 5, 5});
  /* Of one item, some elements are one memory location: refused, as for the op of one tensor. */
  graft_tensor *head = part(a, 0, 3), *tail = part(a, 1, 4);
  graft_value lists[] = {graft_value_tensors(&head, 1), graft_value_tensors(&tail, 1)};
  ck_assert_int_eq(graft_call(GRAFT_OP_FOREACH_ADD_LIST, lists, 2, &head, 1), GRAFT_INVALID_ARGUMENT);
  assert_text("clone()");
  release((graft_tensor *[]){a, b, c, head, tail}, 5);
}
END_TEST

START_TEST(outputs_that_overlap_are_refused) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  graft_tensor *x, *p = vector(graft_device_reference(), 4, values), *outs[] = {part(p, 0, 3), part(p, 1, 4)};
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F32, 2, (int64_t[]){3, 2}, values, &x));
  graft_tensor *apart[] = {NULL, NULL};
  graft_value args[] = {graft_value_tensor(x), graft_value_ints((int64_t[]){1}, 1)};
  OK(graft_call(GRAFT_OP_VAR_MEAN_CORRECTION, args, 2, apart, 2));
  OK(graft_call(GRAFT_OP_VAR_MEAN_CORRECTION, args, 2, apart, 2));
  ck_assert_int_eq(graft_call(GRAFT_OP_VAR_MEAN_CORRECTION, args, 2, outs, 2), GRAFT_INVALID_ARGUMENT);
  assert_text("clone()");
  expect(p, 4, values);
  release((graft_tensor *[]){x, p, outs[0], outs[1], apart[0], apart[1]}, 6);
}
END_TEST

START_TEST(long_lists_on_one_storage) {
  enum { ITEMS = 1500 };
  static float zeros[ITEMS * 2];
  static graft_tensor *items[ITEMS];
  graft_tensor *flat = vector(graft_device_reference(), ITEMS * 2, zeros);
  for (int i = 0; i < ITEMS; i++) items[i] = part(flat, 2 * i, 2 * i + 2);
  ck_assert_int_eq(dsp_written_overlap(op_schema_of(GRAFT_OP_FOREACH_NEG),
                                       &(graft_value){GRAFT_VALUE_TENSORS, ITEMS, {.tensors = items}}, 1, items, ITEMS),
                   TNS_OVERLAP_NONE);
  graft_tensor *last = items[ITEMS - 1];
  items[ITEMS - 1] = part(flat, 1, 3);
  ck_assert_int_eq(dsp_written_overlap(op_schema_of(GRAFT_OP_FOREACH_NEG),
                                       &(graft_value){GRAFT_VALUE_TENSORS, ITEMS, {.tensors = items}}, 1, items, ITEMS),
                   TNS_OVERLAP_PARTIAL);
  release(items, ITEMS);
  release((graft_tensor *[]){flat, last}, 2);
}
END_TEST

/* --- streams and events --- */

typedef struct freeing {
  pthread_barrier_t *turn;
  graft_tensor *tensor;
  int times;
} freeing;

static void *free_tensors(void *argument) {
  freeing *f = argument;
  for (int i = 0; i < f->times; i++) {
    pthread_barrier_wait(f->turn);
    graft_tensor_release(f->tensor);
    pthread_barrier_wait(f->turn);
  }
  return NULL;
}

START_TEST(freed_memory_leaves_destroyed_streams_alone) {
  graft_rt_device *device = device_of(0);
  pthread_barrier_t turn;
  pthread_t thread;
  freeing f = {&turn, NULL, 400};
  pthread_barrier_init(&turn, NULL, 2);
  pthread_create(&thread, NULL, free_tensors, &f);
  for (int i = 0; i < f.times; i++) {
    graft_rt_stream *stream;
    OK(graft_stream_create(device, 0, 0, &stream));
    OK(graft_tensor_empty(device, GRAFT_F32, 1, (int64_t[]){64}, &f.tensor));
    OK(graft_storage_record_stream(graft_tensor_storage(f.tensor), stream));
    pthread_barrier_wait(&turn);
    OK(graft_stream_destroy(stream));
    pthread_barrier_wait(&turn);
  }
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&turn);
  ck_assert_int_eq(seen_by(device)->late_records, 0);
}
END_TEST

/* Masks and indices come whatever the sets of dtypes say. */
START_TEST(capabilities_speak_of_values) {
  graft_rt_device *device = device_of(0);
  const float values[] = {1, 5, 3};
  graft_tensor *x = vector(device, 3, values), *out[5] = {NULL};
  int before = seen_by(device)->beside_calls;
  OK(graft_op_eq_Tensor(x, x, &out[0]));
  OK(graft_op_max_dim(x, 0, false, &out[1], &out[2]));
  OK(graft_op_native_dropout(x, 0.5, NULL, &out[3], &out[4]));
  ck_assert_int_eq(seen_by(device)->beside_calls - before, 3);
  int64_t index = -1;
  bool same[3] = {false};
  OK(graft_tensor_to_host(out[2], &index));
  OK(graft_tensor_to_host(out[0], same));
  ck_assert_int_eq(index, 1);
  ck_assert(same[0] && same[1] && same[2]);
  release(out, 5);
  graft_tensor_release(x);
}
END_TEST

/* --- indices --- */

static graft_tensor *indices(graft_rt_device *device, int64_t n, const int64_t *values) {
  graft_tensor *t;
  OK(graft_tensor_from_host(device, GRAFT_I64, 1, &n, values, &t));
  return t;
}

START_TEST(the_host_checks_indices_where_a_slot_asks) {
  graft_rt_device *device = device_of(0);
  slots_counters *seen = seen_by(device);
  graft_tensor *x, *good = indices(device, 3, (int64_t[]){2, 0, 2}), *past = indices(device, 3, (int64_t[]){2, 3, 1});
  graft_tensor *below = indices(device, 3, (int64_t[]){2, 0, -1}), *out = NULL;
  OK(graft_tensor_from_host(device, GRAFT_F32, 2, (int64_t[]){3, 2}, (float[]){1, 2, 3, 4, 5, 6}, &x));
  OK(graft_op_index_select(x, 0, good, &out));
  expect(out, 6, (float[]){5, 6, 1, 2, 5, 6});
  graft_tensor_release(out);
  int calls = seen->index_calls;
  ck_assert_int_gt(calls, 0);
  for (int i = 0; i < 2; i++) { /* the plan is kept: it is no matter of the first call */
    out = NULL;
    ck_assert_int_eq(graft_op_index_select(x, 0, past, &out), GRAFT_OUT_OF_RANGE);
    assert_text("aten::index_select: element 1 of index is 3; expected an index from 0 to 2");
    ck_assert_int_eq(graft_op_index_select(x, 0, below, &out), GRAFT_OUT_OF_RANGE);
    ck_assert_ptr_null(out);
  }
  ck_assert_int_eq(seen->index_calls, calls);
  release((graft_tensor *[]){x, good, past, below}, 4);
}
END_TEST

START_TEST(the_host_checks_each_index_of_a_list) {
  graft_rt_device *device = device_of(0);
  slots_counters *seen = seen_by(device);
  graft_tensor *x, *out = NULL;
  graft_tensor *rows = indices(device, 2, (int64_t[]){2, -3}), *columns = indices(device, 2, (int64_t[]){-1, 0});
  OK(graft_tensor_from_host(device, GRAFT_F32, 2, (int64_t[]){3, 2}, (float[]){1, 2, 3, 4, 5, 6}, &x));
  OK(graft_op_index_Tensor(x, (graft_tensor *[]){rows, columns}, 2, &out));
  expect(out, 2, (float[]){6, 1});
  graft_tensor_release(out);
  out = NULL;
  int calls = seen->index_calls;
  ck_assert_int_eq(graft_op_index_Tensor(x, (graft_tensor *[]){columns, rows}, 2, &out), GRAFT_OUT_OF_RANGE);
  assert_text("element 0 of indices is 2; expected an index from -2 to 1");
  ck_assert_int_eq(seen->index_calls, calls);
  release((graft_tensor *[]){x, rows, columns}, 3);
}
END_TEST

START_TEST(a_slot_that_does_not_ask_reads_its_indices_itself) {
  graft_rt_device *device = device_of(0);
  slots_counters *seen = seen_by(device);
  graft_tensor *x = vector(device, 3, (float[]){1, 2, 3}), *past = indices(device, 1, (int64_t[]){3}), *out = NULL;
  int calls = seen->index_calls;
  ck_assert_int_eq(graft_op_take(x, past, &out), GRAFT_OUT_OF_RANGE);
  ck_assert_int_eq(seen->index_calls, calls + 1); /* it was the slot that said so */
  release((graft_tensor *[]){x, past}, 2);
}
END_TEST

START_TEST(a_new_event_knows_no_failure) {
  graft_rt_device *device = device_of(0);
  slots_counters *seen = seen_by(device);
  graft_rt_event *failed, *fresh;
  OK(graft_event_create(device, 0, &failed));
  seen->failing = 1;
  OK(graft_event_record(failed, graft_stream_current(device)));
  seen->failing = 0;
  ck_assert_int_eq(graft_event_query(failed), GRAFT_STREAM_FAILED);
  OK(graft_event_destroy(failed));
  OK(graft_event_create(device, 0, &fresh));
  OK(graft_event_query(fresh));
  OK(graft_event_destroy(fresh));
}
END_TEST

int main(void) {
  setenv("GRAFT_FALLBACK", "allow", 1);
  const suite_test tests[] = {ONCE(a_kept_plan_checks_the_device_of_an_output),
                              ONCE(full_like_goes_to_the_device_it_is_told),
                              ONCE(threads_move_a_plan_on_once),
                              ONCE(a_slot_that_fails_leaves_no_output),
                              ONCE(memos_that_come_too_late_are_destroyed_behind_the_slot),
                              ONCE(an_empty_batch_stays_on_the_device),
                              ONCE(memos_know_whose_numbers_they_serve),
                              ONCE(a_plan_serves_wherever_blocks_lie),
                              ONCE(the_oldest_plans_are_forgotten),
                              ONCE(numbers_in_host_memory_keep_their_bits),
                              ONCE(items_that_share_memory_go_in_order),
                              ONCE(items_read_what_others_wrote),
                              ONCE(outputs_that_overlap_are_refused),
                              ONCE(long_lists_on_one_storage),
                              ONCE(freed_memory_leaves_destroyed_streams_alone),
                              ONCE(capabilities_speak_of_values),
                              ONCE(the_host_checks_indices_where_a_slot_asks),
                              ONCE(the_host_checks_each_index_of_a_list),
                              ONCE(a_slot_that_does_not_ask_reads_its_indices_itself),
                              ONCE(a_new_event_knows_no_failure),
                              {0}};
  return run_suite("slots", tests, (suite_options){.timeout_s = 60});
}
