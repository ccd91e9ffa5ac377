/* What a kept plugin (kinds.c, built when its minor was released) sees of today's host: kinds_test PLUGIN. Each kind of
 * slot is called through libgraft, gives the right numbers, and was sent what its capabilities ask for. */
#include "kinds.h"

#include <stdlib.h>

#include "null_device.h"
#include "suite.h"

static const char *path;
static graft_rt_device *device;
static kinds_seen *seen;

static graft_rt_device *device_of(int32_t index) {
  graft_rt_backend *backend;
  graft_rt_device *opened;
  OK(graft_backend_open(path, OPTIONS("count=7"), &backend));
  OK(graft_backend_device(backend, index, &opened));
  return opened;
}

static void open_device(void) {
  const void *table;
  void *self;
  device = device_of(0);
  OK(graft_device_extension(device, KINDS_EXTENSION, 1, &table, &self));
  seen = (kinds_seen *)(uintptr_t)table;
}

static graft_tensor *vector(int64_t n, const float *values) {
  graft_tensor *t;
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, &n, values, &t));
  return t;
}

static graft_tensor *matrix(int64_t rows, int64_t columns, const float *values) {
  graft_tensor *t;
  OK(graft_tensor_from_host(device, GRAFT_F32, 2, (int64_t[]){rows, columns}, values, &t));
  return t;
}

static graft_tensor *of_dtype(graft_dtype dtype, int64_t n, const void *values) {
  graft_tensor *t;
  OK(graft_tensor_from_host(device, dtype, 1, &n, values, &t));
  return t;
}

/* The tensor is taken over. */
static void expect_and_release(graft_tensor *t, int64_t n, const float *values) {
  expect(t, n, values);
  graft_tensor_release(t);
}

static void release(graft_tensor **tensors, int count) {
  for (int i = 0; i < count; i++) graft_tensor_release(tensors[i]);
}

#define CALLED_ONCE(slot) ck_assert_uint_eq(seen->calls[slot], 1)

START_TEST(it_is_opened_with_its_options) {
  const void *table;
  void *self;
  ck_assert_uint_eq(seen->struct_size, sizeof *seen);
  ck_assert_uint_eq(seen->options, 7);
  OK(graft_device_extension(device, GRAFT_EXTENSION_NATIVE_HANDLE, 1, &table, &self));
  ck_assert_str_eq(((const graft_native_handle_api *)table)->api, "frozen");
  ck_assert_int_eq(graft_device_extension(device, GRAFT_EXTENSION_NATIVE_HANDLE, 2, &table, &self),
                   GRAFT_UNIMPLEMENTED);
}
END_TEST

START_TEST(operands_come_as_its_capabilities_ask) {
  graft_tensor *x = vector(3, (float[]){1, 2, 3}), *out = NULL, *by = of_dtype(GRAFT_I64, 3, (int64_t[]){2, 3, 4});
  graft_tensor *number = of_dtype(GRAFT_F32, 1, (float[]){5}), *wide = NULL;
  OK(graft_op_mul_Tensor(x, by, &out));
  expect_and_release(out, 3, (float[]){2, 6, 12});
  ck_assert_uint_eq(seen->mixed, 1);
  OK(graft_op_expand(number, (int64_t[]){3}, 1, false, &wide));
  out = NULL;
  OK(graft_op_mul_Tensor(x, wide, &out));
  expect_and_release(out, 3, (float[]){5, 10, 15});
  ck_assert_uint_eq(seen->expanded, 1);
  OK(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){graft_value_tensor(x), graft_value_tensor(x)}, 2, &x, 1));
  expect(x, 3, (float[]){1, 4, 9});
  ck_assert_uint_ge(seen->in_place, 1);
  out = NULL;
  OK(graft_op_mul_Scalar(x, graft_scalar_float(0.5), &out));
  expect_and_release(out, 3, (float[]){0.5f, 2, 4.5f});
  ck_assert_uint_ge(seen->host_values, 1);
  ck_assert_uint_eq(seen->calls[KINDS_MUL], 4);
  release((graft_tensor *[]){x, by, number, wide}, 4);
}
END_TEST

START_TEST(numbers_and_lists_may_be_absent) {
  graft_tensor *x = matrix(2, 2, (float[]){-2, -1, 1, 2}), *out = NULL;
  const graft_scalar none = {0}, half = graft_scalar_float(0.5);
  OK(graft_op_clamp(x, none, half, &out));
  expect_and_release(out, 4, (float[]){-2, -1, 0.5f, 0.5f});
  ck_assert_uint_eq(seen->absent_arguments, 1);
  out = NULL;
  OK(graft_op_sum_dim_IntList(x, NULL, 0, false, 0, &out));
  expect_and_release(out, 1, (float[]){0});
  out = NULL;
  OK(graft_op_sum_dim_IntList(x, (int64_t[]){-1}, 1, true, 0, &out));
  expect_and_release(out, 2, (float[]){-3, 3});
  out = NULL;
  OK(graft_op_argmax(x, NULL, false, &out));
  ck_assert_uint_ge(seen->absent_arguments, 2);
  graft_scalar found;
  OK(graft_tensor_item(out, &found));
  ck_assert_int_eq(found.value.i, 3);
  release((graft_tensor *[]){x, out}, 2);
  CALLED_ONCE(KINDS_CLAMP);
  CALLED_ONCE(KINDS_ARGMAX);
  ck_assert_uint_eq(seen->calls[KINDS_SUM], 2);
}
END_TEST

START_TEST(tensors_come_in_lists) {
  graft_tensor *x = matrix(2, 2, (float[]){1, 2, 3, 4}), *out = NULL, *added[2] = {NULL, NULL};
  graft_tensor *wide = of_dtype(GRAFT_I64, 3, (int64_t[]){1, -2, 1}), *beyond = of_dtype(GRAFT_I64, 1, (int64_t[]){2});
  OK(graft_op_cat((graft_tensor *[]){x, x}, 2, 1, &out));
  expect_and_release(out, 8, (float[]){1, 2, 1, 2, 3, 4, 3, 4});
  out = NULL;
  OK(graft_op_index_Tensor(x, (graft_tensor *[]){NULL, wide}, 2, &out));
  expect_and_release(out, 6, (float[]){2, 1, 2, 4, 3, 4});
  ck_assert_uint_eq(seen->absent_items, 1);
  out = NULL;
  ck_assert_int_ne(graft_op_index_Tensor(x, (graft_tensor *[]){beyond}, 1, &out), GRAFT_OK);
  ck_assert_ptr_null(out);
  ck_assert_uint_eq(seen->index_errors, 1);
  assert_text("an index beyond its dim");
  const graft_scalar numbers[] = {graft_scalar_float(0.5), graft_scalar_int(2)};
  OK(graft_op_foreach_add_ScalarList((graft_tensor *[]){x, x}, 2, numbers, 2, added));
  expect_and_release(added[0], 4, (float[]){1.5f, 2.5f, 3.5f, 4.5f});
  expect_and_release(added[1], 4, (float[]){3, 4, 5, 6});
  release((graft_tensor *[]){x, wide, beyond}, 3);
  CALLED_ONCE(KINDS_CAT);
  CALLED_ONCE(KINDS_INDEX);
  CALLED_ONCE(KINDS_FOREACH_ADD);
}
END_TEST

START_TEST(lists_are_written) {
  graft_tensor *x = vector(2, (float[]){1, 2}), *grad = vector(2, (float[]){0.5f, 1}), *outs[3] = {NULL, NULL, NULL};
  OK(graft_op_fused_sgd(&x, 1, &grad, 1, (graft_tensor *[]){NULL}, 0, 0, 0, 0.5, 0, false, false, true, NULL, NULL,
                        &outs[0], &outs[1], &outs[2]));
  expect_and_release(outs[0], 2, (float[]){0.75f, 1.5f});
  expect_and_release(outs[1], 2, (float[]){0.5f, 1});
  release((graft_tensor *[]){x, grad}, 2);
  CALLED_ONCE(KINDS_SGD);
}
END_TEST

START_TEST(outputs_are_found_or_not_wanted) {
  graft_tensor *x = matrix(2, 2, (float[]){0, 2, 0, 4}), *out = NULL;
  OK(graft_op_nonzero(x, &out));
  ck_assert_int_eq(graft_tensor_sizes(out)[0], 2);
  graft_tensor_release(out);
  ck_assert_uint_eq(seen->outputs_found, 1);
  graft_tensor *mean = vector(2, (float[]){1, 2}), *rstd = vector(2, (float[]){1, 0.5f}),
               *grads[3] = {NULL, NULL, NULL};
  OK(graft_op_native_layer_norm_backward(x, x, (int64_t[]){2}, 1, mean, rstd, NULL, NULL, (uint8_t[]){1, 0, 0},
                                         &grads[0], &grads[1], &grads[2]));
  ck_assert_ptr_null(grads[2]);
  ck_assert_uint_eq(seen->unwanted_outputs, 2);
  release((graft_tensor *[]){x, mean, rstd, grads[0]}, 4);
  CALLED_ONCE(KINDS_LAYER_NORM_BACKWARD);
}
END_TEST

START_TEST(random_numbers_are_those_of_the_stream) {
  graft_tensor *ones = vector(4, (float[]){1, 1, 1, 1}), *out = NULL, *mask = NULL, *noise = NULL;
  graft_generator_seed(graft_generator_default(device), 0);
  OK(graft_op_native_dropout(ones, 0.5, NULL, &out, &mask));
  /* the block of counter 0 under key 0: the largest bit of a word says whether u < 0.5 */
  static const uint32_t words[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  float kept[4];
  for (int i = 0; i < 4; i++) kept[i] = words[i] >> 31 ? 0 : 2;
  expect(out, 4, kept);
  graft_tensor *negative = vector(4, (float[]){-1, -1, -1, 1}), *result = NULL;
  OK(graft_tensor_empty(device, GRAFT_F32, 1, (int64_t[]){4}, &noise));
  OK(graft_op_rrelu_with_noise(negative, noise, graft_scalar_float(0.25), graft_scalar_float(0.5), true, NULL,
                               &result));
  release((graft_tensor *[]){ones, out, mask, noise, negative, result}, 6);
  CALLED_ONCE(KINDS_DROPOUT);
  CALLED_ONCE(KINDS_RRELU);
}
END_TEST

START_TEST(a_memo_and_workspace_serve_a_product) {
  graft_tensor *x = matrix(2, 2, (float[]){1, 2, 3, 4});
  for (int i = 0; i < 3; i++) {
    graft_tensor *out = NULL;
    OK(graft_op_mm(x, x, &out));
    expect_and_release(out, 4, (float[]){7, 10, 15, 22});
  }
  ck_assert_uint_eq(seen->memos_made, 1);
  ck_assert_uint_eq(seen->memos_found, 2);
  ck_assert_uint_eq(seen->workspaces, 3);
  graft_tensor_release(x);
}
END_TEST

START_TEST(the_other_tables_are_called) {
  graft_tensor *x = vector(4, (float[]){0, 0, 0, 0}), *src = vector(2, (float[]){1, 2}), *out = NULL;
  OK(graft_op_prims_as_strided_scatter(x, src, (int64_t[]){2}, 1, (int64_t[]){2}, 1, 1, &out));
  expect_and_release(out, 4, (float[]){0, 1, 0, 2});
  CALLED_ONCE(KINDS_AS_STRIDED_SCATTER);
  out = NULL;
  OK(graft_op_sin(x, &out)); /* the prim stands for it */
  expect_and_release(out, 4, (float[]){0, 0, 0, 0});
  CALLED_ONCE(KINDS_SIN);
  out = NULL;
  OK(graft_op_gelu(x, "tanh", &out));
  expect_and_release(out, 4, (float[]){0, 0, 0, 0});
  CALLED_ONCE(KINDS_GELU);
  out = NULL;
  OK(graft_op_arange_start_step(graft_scalar_float(1), graft_scalar_float(4), graft_scalar_float(1), GRAFT_F32, device,
                                &out));
  expect_and_release(out, 3, (float[]){1, 2, 3});
  CALLED_ONCE(KINDS_ARANGE);
  release((graft_tensor *[]){x, src}, 2);
}
END_TEST

START_TEST(streams_events_and_peers_work) {
  graft_rt_device *other = device_of(1);
  graft_rt_stream *stream;
  graft_rt_event *first, *last;
  double ms = -1;
  OK(graft_stream_create(device, 0, GRAFT_STREAM_TIMING, &stream));
  OK(graft_event_create(device, GRAFT_EVENT_TIMING, &first));
  OK(graft_event_create(device, GRAFT_EVENT_TIMING, &last));
  OK(graft_event_record(first, stream));
  OK(graft_event_record(last, stream));
  OK(graft_stream_wait(graft_stream_current(device), last));
  OK(graft_event_elapsed(first, last, &ms));
  ck_assert(ms >= 0);
  ck_assert_uint_eq(seen->timed_streams, 1);
  ck_assert_uint_eq(seen->timed_events, 2);
  ck_assert_uint_eq(seen->waits, 1);
  OK(graft_event_destroy(first));
  OK(graft_event_destroy(last));
  OK(graft_stream_destroy(stream));
  graft_tensor *x = vector(2, (float[]){1, 2}), *there;
  OK(graft_tensor_to(x, other, 0, &there));
  expect(there, 2, (float[]){1, 2});
  ck_assert_uint_eq(seen->peer_copies, 1);
  release((graft_tensor *[]){x, there}, 2);
  void *pinned;
  OK(graft_pinned_allocate(device, 64, &pinned));
  ck_assert_uint_eq(seen->pinned_blocks, 1);
  OK(graft_pinned_free(device, pinned));
}
END_TEST

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  path = argv[1];
  setenv("GRAFT_FALLBACK", "error", 1);
  const suite_test tests[] = {ONCE(it_is_opened_with_its_options),
                              ONCE(operands_come_as_its_capabilities_ask),
                              ONCE(numbers_and_lists_may_be_absent),
                              ONCE(tensors_come_in_lists),
                              ONCE(lists_are_written),
                              ONCE(outputs_are_found_or_not_wanted),
                              ONCE(random_numbers_are_those_of_the_stream),
                              ONCE(a_memo_and_workspace_serve_a_product),
                              ONCE(the_other_tables_are_called),
                              ONCE(streams_events_and_peers_work),
                              {0}};
  return run_suite("a kept plugin", tests, (suite_options){.setup = open_device});
}
