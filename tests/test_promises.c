/* What the ABI's headers promise a plugin, as a plugin sees it: on that of tests/plugins/promises.c. */
#include <stdlib.h>

#include "graft/graft.h"
#include "null_device.h"
#include "plugins/promises.h"
#include "suite.h"

static graft_rt_device *device, *other;
static promises_seen *seen;

static void open_devices(void) {
  graft_rt_backend *backend;
  const void *table;
  void *self;
  setenv("GRAFT_FALLBACK", "allow", 1); /* copies that are no slots of it; those leave a note */
  OK(graft_backend_open(test_plugin("promises"), NULL, &backend));
  OK(graft_backend_device(backend, 0, &device));
  OK(graft_backend_device(backend, 1, &other));
  OK(graft_device_extension(device, PROMISES_EXTENSION, 1, &table, &self));
  seen = (promises_seen *)(uintptr_t)table;
}

static graft_tensor *tensor(graft_rt_device *on, int32_t ndim, const int64_t *sizes) {
  static const float values[64] = {1, 2, 3, 4, 5, 6, 7, 8};
  graft_tensor *t;
  OK(graft_tensor_from_host(on, GRAFT_F32, ndim, sizes, values, &t));
  return t;
}

static void release(graft_tensor **tensors, int count) {
  for (int i = 0; i < count; i++) graft_tensor_release(tensors[i]);
}

static void expect_dims(const promises_tensor *got, int32_t ndim, const int64_t *shape, const int64_t *strides) {
  ck_assert_int_eq(got->ndim, ndim);
  for (int32_t d = 0; d < ndim; d++) {
    ck_assert_int_eq(got->shape[d], shape[d]);
    ck_assert_int_eq(got->strides[d], strides[d]);
  }
}

/* --- exec.h --- */

START_TEST(elementwise_dims_come_merged_and_permuted) {
  graft_tensor *x = tensor(device, 4, (int64_t[]){2, 1, 3, 4}), *turned = NULL, *out = NULL;
  OK(graft_op_add_Tensor(x, x, graft_scalar_int(1), &out));
  expect_dims(&seen->self, 1, (int64_t[]){24}, (int64_t[]){1});
  expect_dims(&seen->out, 1, (int64_t[]){24}, (int64_t[]){1});
  graft_tensor_release(out);
  out = NULL;
  OK(graft_op_permute(x, (int64_t[]){3, 2, 1, 0}, 4, &turned)); /* all operands alike, and so the result's strides */
  OK(graft_op_add_Tensor(turned, turned, graft_scalar_int(1), &out));
  ck_assert_int_eq(graft_tensor_sizes(out)[0], 4);
  expect_dims(&seen->other, 1, (int64_t[]){24}, (int64_t[]){1});
  release((graft_tensor *[]){x, turned, out}, 3);
}
END_TEST

START_TEST(expanded_inputs_come_where_strided_ones_do) {
  graft_tensor *x = tensor(device, 2, (int64_t[]){3, 4}), *row = tensor(device, 1, (int64_t[]){4});
  graft_tensor *sum = NULL, *product = NULL;
  OK(graft_op_add_Tensor(x, row, graft_scalar_int(1), &sum));
  expect_dims(&seen->other, 2, (int64_t[]){3, 4}, (int64_t[]){0, 1});
  OK(graft_op_mul_Tensor(x, row, &product));
  ck_assert_int_ne(seen->other.strides[0], 0);
  expect_dims(&seen->other, seen->out.ndim, seen->out.shape, seen->out.strides);
  release((graft_tensor *[]){x, row, sum, product}, 4);
}
END_TEST

START_TEST(random_ops_see_dims_as_they_are) {
  graft_tensor *x = tensor(device, 3, (int64_t[]){2, 1, 3}), *out = NULL;
  OK(graft_op_uniform(x, 0, 1, NULL, &out));
  expect_dims(&seen->out, 3, (int64_t[]){2, 1, 3}, (int64_t[]){3, 3, 1});
  release((graft_tensor *[]){x, out}, 2);
}
END_TEST

/* --- host.h --- */

START_TEST(a_call_may_ask_eight_times_for_workspace) {
  graft_tensor *x = tensor(device, 1, (int64_t[]){4}), *out = NULL;
  OK(graft_op_abs(x, &out));
  for (int i = 0; i < PROMISES_WORKSPACES - 1; i++) ck_assert_int_eq(seen->workspaces[i], GRAFT_OK);
  ck_assert_int_eq(seen->no_bytes, GRAFT_OK);
  ck_assert_ptr_null(seen->no_bytes_buffer);
  ck_assert(seen->workspaces_apart);
  release((graft_tensor *[]){x, out}, 2);
}
END_TEST

START_TEST(an_output_without_elements_has_no_buffer) {
  graft_tensor *x = tensor(device, 1, (int64_t[]){4}), *out = NULL;
  seen->empty_output = (graft_buffer *)(void *)seen;
  OK(graft_op_nonzero(x, &out));
  ck_assert_ptr_null(seen->empty_output);
  release((graft_tensor *[]){x, out}, 2);
}
END_TEST

/* --- memory.h, stream.h --- */

/* neg is still running when the copy is asked for, and the copy when its source is written again. */
START_TEST(copies_between_devices_have_their_source_in_order) {
  graft_tensor *x = tensor(device, 1, (int64_t[]){4}), *there = NULL, *turned = NULL, *again;
  OK(graft_op_neg(x, &turned));
  OK(graft_tensor_to(turned, other, 0, &there));
  ck_assert_int_eq(seen->peer_copies, 1);
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){4}, (float[]){9, 9, 9, 9}, &again));
  OK(graft_tensor_copy(turned, again));
  expect(there, 4, (float[]){-1, -2, -3, -4});
  expect(turned, 4, (float[]){9, 9, 9, 9});
  release((graft_tensor *[]){x, there, turned, again}, 4);
}
END_TEST

/* The plugin has not said GRAFT_DEVICE_WAITS_ACROSS, so the host waits itself. */
START_TEST(streams_wait_for_events_of_their_own_device) {
  graft_tensor *x = tensor(device, 1, (int64_t[]){4}), *out = NULL;
  graft_rt_event *event;
  OK(graft_op_neg(x, &out)); /* takes a while */
  OK(graft_event_create(device, 0, &event));
  OK(graft_event_record(event, graft_stream_current(device)));
  OK(graft_stream_wait(graft_stream_current(other), event));
  ck_assert_int_eq(seen->foreign_waits, 0);
  ck_assert_int_eq(graft_event_query(event), GRAFT_OK);
  OK(graft_event_destroy(event));
  release((graft_tensor *[]){x, out}, 2);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(elementwise_dims_come_merged_and_permuted),
                              ONCE(expanded_inputs_come_where_strided_ones_do),
                              ONCE(random_ops_see_dims_as_they_are),
                              ONCE(a_call_may_ask_eight_times_for_workspace),
                              ONCE(an_output_without_elements_has_no_buffer),
                              ONCE(copies_between_devices_have_their_source_in_order),
                              ONCE(streams_wait_for_events_of_their_own_device),
                              {0}};
  return run_suite("promises", tests, (suite_options){.setup = open_devices});
}
