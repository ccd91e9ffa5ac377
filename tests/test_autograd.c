/* Each rule of graft/autograd.h on the reference device: life of graphs, leaves, hooks, modes, in place, streams. */
#include <pthread.h>

#include "gradients.h"
#include "graft/abi/op_ids.h"
#include "suite.h"

/* a op= b; the status is the call's. */
static graft_status in_place(uint32_t op_id, graft_tensor *a, graft_tensor *b) {
  graft_value args[2] = {{.kind = GRAFT_VALUE_TENSOR, .as.tensor = a}, {.kind = GRAFT_VALUE_TENSOR, .as.tensor = b}};
  return graft_call(op_id, args, b ? 2 : 1, &a, 1);
}

/* --- graph life --- */

START_TEST(freed_graph) {
  graft_tensor *x = leaf(NUMBER(2)), *y = mul(x, x);
  OK(backward(y, GRAFT_BACKWARD_RETAIN_GRAPH));
  OK(backward(y, 0));
  GRAD_IS(x, 8);
  FAILS(backward(y, 0), "aten::mul.Tensor", "freed", "RETAIN_GRAPH");
  GRAD_IS(x, 8);
}
END_TEST

START_TEST(no_values_no_freeing) {
  graft_tensor *x = leaf(NUMBER(2)), *y = add(x, x);
  OK(backward(y, 0));
  OK(backward(y, 0));
  GRAD_IS(x, 4);
}
END_TEST

START_TEST(long_chain) {
  enum { LENGTH = 100000 };
  graft_tensor *x = leaf(NUMBER(1)), *one = NUMBER(1), *at = x;
  graft_tensor_retain(at);
  for (int i = 0; i < LENGTH; i++) {
    graft_tensor *next = NULL;
    OK(graft_op_add_Tensor(at, one, graft_scalar_int(1), &next));
    graft_tensor_release(at);
    at = next;
  }
  OK(backward(at, 0));
  GRAD_IS(x, 1);
  graft_tensor_release(at);
}
END_TEST

/* More results than a word has bits. */
START_TEST(many_results) {
  enum { MANY = 70 };
  double values[MANY];
  int64_t count = MANY, sizes[MANY];
  graft_tensor *parts[MANY] = {NULL};
  for (int i = 0; i < MANY; i++) values[i] = i, sizes[i] = 1;
  graft_tensor *x = leaf(tensor_of(GRAFT_F64, 1, &count, values));
  OK(graft_op_split_with_sizes(x, sizes, MANY, 0, parts));
  for (int i = 0; i < MANY; i++) keep(parts[i]);
  graft_tensor *y = sum(mul(parts[33], parts[MANY - 1])), *grad = NULL;
  OK(graft_grad(&y, NULL, 1, &x, 1, GRAFT_BACKWARD_CREATE_GRAPH, &grad));
  keep(grad);
  OK(graft_tensor_to_host(grad, values));
  ck_assert_double_eq(values[33], MANY - 1);
  ck_assert_double_eq(values[MANY - 1], 33);
  OK(backward(sum(mul(grad, grad)), 0)); /* of the other of the two: 2 x */
  OK(graft_tensor_to_host(graft_tensor_grad(x), values));
  ck_assert_double_eq(values[33], 66);
  ck_assert_double_eq(values[0], 0);
}
END_TEST

START_TEST(history_outlives_tensors) {
  graft_tensor *x = leaf(NUMBER(3)), *y = NULL, *z = NULL;
  OK(graft_op_mul_Tensor(x, x, &y));
  OK(graft_op_mul_Tensor(y, x, &z));
  graft_tensor_release(y);
  keep(z);
  OK(backward(z, 0));
  GRAD_IS(x, 27);
}
END_TEST

/* --- leaves --- */

START_TEST(accumulation) {
  graft_tensor *a = leaf(VECTOR(1, 2));
  OK(backward(sum(mul(a, a)), 0));
  graft_tensor *first = graft_tensor_grad(a);
  OK(backward(sum(a), 0));
  GRAD_IS(a, 3, 5);
  ck_assert_ptr_eq(graft_tensor_grad(a), first); /* added in place */
  OK(graft_tensor_set_grad(a, NULL));
  ck_assert_ptr_null(graft_tensor_grad(a));
}
END_TEST

START_TEST(gradients_are_not_shared) {
  graft_tensor *a = leaf(VECTOR(1, 2)), *b = leaf(VECTOR(3, 4)), *g = VECTOR(5, 6), *y = add(a, b);
  OK(graft_backward(&y, &g, 1, 0));
  GRAD_IS(a, 5, 6);
  GRAD_IS(b, 5, 6);
  uint64_t ids[] = {graft_tensor_storage_id(graft_tensor_grad(a)), graft_tensor_storage_id(graft_tensor_grad(b)),
                    graft_tensor_storage_id(g)};
  ck_assert(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
}
END_TEST

START_TEST(set_grad_is_checked) {
  graft_tensor *a = leaf(VECTOR(1, 2));
  FAILS(graft_tensor_set_grad(a, VECTOR(1, 2, 3)), "set_grad", "f64[3]", "f64[2]");
  OK(graft_tensor_set_grad(a, VECTOR(10, 20)));
  OK(backward(sum(a), 0));
  GRAD_IS(a, 11, 21);
  FAILS(graft_tensor_set_grad(mul(a, a), VECTOR(1, 2)), "set_grad", "aten::mul.Tensor");
}
END_TEST

START_TEST(requires_grad_is_checked) {
  const int64_t numbers[] = {1, 2};
  graft_tensor *ints = tensor_of(GRAFT_I64, 1, (const int64_t[]){2}, numbers), *a = leaf(VECTOR(1, 2));
  FAILS(graft_tensor_set_requires_grad(ints, true), "i64");
  FAILS(graft_tensor_set_requires_grad(mul(a, a), false), "leaf", "detach");
  graft_tensor *y = sum(mul(a, a));
  OK(graft_tensor_set_requires_grad(a, false));
  ck_assert(!graft_tensor_requires_grad(mul(a, a)));
  OK(backward(y, GRAFT_BACKWARD_RETAIN_GRAPH));
  ck_assert_ptr_null(graft_tensor_grad(a));
  FAILS(backward(sum(VECTOR(1, 2)), 0), "does not require grad");
}
END_TEST

START_TEST(unused_input) {
  graft_tensor *a = leaf(NUMBER(2)), *b = leaf(NUMBER(3)), *y = mul(a, a), *z = mul(b, b);
  graft_tensor *inputs[] = {b, a, y}, *results[] = {NULL, NULL, NULL};
  OK(graft_grad(&y, NULL, 1, inputs, 3, 0, results));
  keep(results[1]), keep(results[2]);
  ck_assert_ptr_null(results[0]);
  IS(results[1], 4);
  IS(results[2], 1);
  ck_assert_ptr_null(graft_tensor_grad(a)); /* grad does not collect */
  graft_tensor *c = NUMBER(1);
  FAILS(graft_grad(&z, NULL, 1, &c, 1, 0, results), "input 0", "does not require grad");
}
END_TEST

START_TEST(only_what_leads_to_an_input_runs) {
  graft_tensor *a = leaf(NUMBER(2)), *b = leaf(NUMBER(3)), *results[] = {NULL};
  graft_tensor *side = mul(b, b), *y = mul(mul(a, a), side);
  OK(graft_grad(&y, NULL, 1, &a, 1, 0, results));
  IS(keep(results[0]), 36);
  OK(backward(side, 0)); /* was not touched, so not freed */
  GRAD_IS(b, 6);
}
END_TEST

/* --- hooks --- */

typedef struct hook_log {
  int calls;
  double seen;
  double factor; /* not 0: replace by the gradient times it */
  graft_status status;
} hook_log;

static graft_status log_hook(void *context, graft_tensor *grad, graft_tensor **replacement) {
  hook_log *log = context;
  graft_scalar value;
  log->calls++;
  if (log->status) return log->status;
  OK(graft_tensor_item(grad, &value));
  log->seen = value.value.f;
  if (log->factor != 0) OK(graft_op_mul_Scalar(grad, graft_scalar_float(log->factor), replacement));
  return GRAFT_OK;
}

START_TEST(hooks) {
  graft_tensor *a = leaf(NUMBER(2)), *y = mul(a, a), *z = mul(y, y);
  hook_log inner = {.factor = 10}, outer = {.factor = 0}, removed = {.factor = 100};
  uint64_t handle;
  OK(graft_tensor_add_hook(y, log_hook, &inner, NULL));
  OK(graft_tensor_add_hook(a, log_hook, &removed, &handle));
  OK(graft_tensor_add_hook(a, log_hook, &outer, NULL));
  OK(graft_tensor_remove_hook(a, handle));
  FAILS(graft_tensor_remove_hook(a, handle), "hook");
  OK(backward(z, 0));
  ck_assert_int_eq(inner.calls, 1);
  ck_assert_double_eq(inner.seen, 8);
  ck_assert_int_eq(outer.calls, 1); /* once, with the sum of both paths */
  ck_assert_double_eq(outer.seen, 80 * 4);
  ck_assert_int_eq(removed.calls, 0);
  GRAD_IS(a, 320);
  FAILS(graft_tensor_add_hook(NUMBER(1), log_hook, &outer, NULL), "does not require grad");
}
END_TEST

START_TEST(hook_failure_stops) {
  graft_tensor *a = leaf(NUMBER(2)), *y = mul(a, a);
  hook_log log = {.status = GRAFT_INTERNAL};
  OK(graft_tensor_add_hook(a, log_hook, &log, NULL));
  ck_assert_int_eq(backward(y, 0), GRAFT_INTERNAL);
  ck_assert_ptr_null(graft_tensor_grad(a));
}
END_TEST

static graft_status bad_hook(void *context, graft_tensor *grad, graft_tensor **replacement) {
  (void)grad;
  *replacement = context;
  graft_tensor_retain(*replacement);
  return GRAFT_OK;
}

START_TEST(hook_replacement_is_checked) {
  graft_tensor *a = leaf(NUMBER(2)), *y = mul(a, a);
  OK(graft_tensor_add_hook(a, bad_hook, VECTOR(1, 2), NULL));
  FAILS(backward(y, 0), "hook", "f64[2]");
}
END_TEST

/* --- modes --- */

START_TEST(no_grad) {
  graft_tensor *a = leaf(NUMBER(2));
  ck_assert(graft_grad_mode());
  ck_assert(graft_grad_mode_set(false));
  graft_tensor *y = mul(a, a);
  OK(in_place(GRAFT_OP_ADD_TENSOR, a, NUMBER(1)));
  ck_assert(!graft_grad_mode_set(true));
  ck_assert(!graft_tensor_requires_grad(y));
  ck_assert(graft_tensor_requires_grad(a));
  IS(a, 3);
}
END_TEST

START_TEST(inference_mode) {
  graft_tensor *a = leaf(NUMBER(2));
  ck_assert(!graft_inference_mode_set(true));
  ck_assert(!graft_grad_mode());
  graft_tensor *y = mul(a, a);
  OK(in_place(GRAFT_OP_ADD_TENSOR, y, y));
  ck_assert(graft_inference_mode_set(false));
  ck_assert(graft_grad_mode());
  ck_assert(!graft_tensor_requires_grad(y));
  FAILS(in_place(GRAFT_OP_ADD_TENSOR, y, y), "aten::add.Tensor", "inference mode");
  FAILS(graft_tensor_set_requires_grad(y, true), "inference mode");
  IS(y, 8);
}
END_TEST

START_TEST(modes_are_restored_by_backward) {
  graft_tensor *a = leaf(NUMBER(2)), *y = mul(a, a);
  graft_grad_mode_set(false);
  OK(backward(y, GRAFT_BACKWARD_CREATE_GRAPH));
  ck_assert(!graft_grad_mode());
  graft_grad_mode_set(true);
  ck_assert(graft_tensor_requires_grad(graft_tensor_grad(a)));
  OK(graft_tensor_set_grad(a, NULL));
}
END_TEST

START_TEST(detach) {
  graft_tensor *a = leaf(NUMBER(2)), *y = mul(a, a), *plain = NULL;
  OK(graft_tensor_detach(y, &plain));
  keep(plain);
  ck_assert(!graft_tensor_requires_grad(plain));
  ck_assert_uint_eq(graft_tensor_storage_id(plain), graft_tensor_storage_id(y));
  OK(backward(mul(plain, a), 0));
  GRAD_IS(a, 4);
}
END_TEST

START_TEST(anomaly) {
  graft_tensor *a = leaf(NUMBER(0)), *y = NULL;
  OK(graft_op_sqrt(a, &y));
  graft_tensor *z = mul(keep(y), NUMBER(0)); /* 0 * inf in the backward of sqrt */
  ck_assert(!graft_anomaly_mode_set(true));
  FAILS(backward(z, 0), "aten::sqrt", "NaN");
  ck_assert(graft_anomaly_mode_set(false));
}
END_TEST

/* --- in place --- */

START_TEST(in_place_has_new_history) {
  graft_tensor *a = leaf(VECTOR(1, 2)), *b = leaf(VECTOR(3, 4));
  graft_tensor *y = mul(a, a);
  uint64_t version = graft_tensor_version(y);
  OK(in_place(GRAFT_OP_ADD_TENSOR, y, b));
  ck_assert_uint_gt(graft_tensor_version(y), version);
  OK(backward(sum(y), 0));
  GRAD_IS(a, 2, 4);
  GRAD_IS(b, 1, 1);
}
END_TEST

START_TEST(in_place_on_a_constant) {
  graft_tensor *a = leaf(VECTOR(1, 2)), *y = VECTOR(5, 6);
  OK(in_place(GRAFT_OP_ADD_TENSOR, y, a));
  ck_assert(graft_tensor_requires_grad(y));
  OK(backward(sum(mul(y, y)), 0));
  GRAD_IS(a, 12, 16);
}
END_TEST

START_TEST(in_place_cycle_is_none) {
  graft_tensor *a = leaf(VECTOR(1, 2)), *x = mul(a, a), *y = mul(x, VECTOR(2, 2));
  OK(in_place(GRAFT_OP_ADD_TENSOR, x, y)); /* x holds y's history, which saved x: freed all the same (teardown) */
  ck_assert(graft_tensor_requires_grad(x));
}
END_TEST

START_TEST(changed_saved_value) {
  graft_tensor *a = leaf(VECTOR(1, 2)), *x = add(a, a), *y = sum(mul(x, x));
  OK(in_place(GRAFT_OP_ADD_TENSOR, x, VECTOR(1, 1)));
  FAILS(backward(y, 0), "aten::mul.Tensor", "self", "f64[2]", "in place", "version");
}
END_TEST

START_TEST(changed_saved_result) {
  graft_tensor *a = leaf(VECTOR(1, 2)), *x = exp_of(a);
  OK(in_place(GRAFT_OP_ADD_TENSOR, x, VECTOR(1, 1)));
  FAILS(backward(sum(x), 0), "aten::exp", "result", "version");
}
END_TEST

START_TEST(changed_value_that_is_not_read) {
  graft_tensor *a = leaf(VECTOR(1, 2)), *x = add(a, a), *y = sum(mul(x, VECTOR(3, 4)));
  OK(in_place(GRAFT_OP_ADD_TENSOR, x, VECTOR(1, 1))); /* the gradient of y needs the constant only */
  OK(backward(y, 0));
  GRAD_IS(a, 6, 8);
}
END_TEST

START_TEST(in_place_product) {
  graft_tensor *a = leaf(VECTOR(1, 2)), *x = add(a, a);
  OK(in_place(GRAFT_OP_MUL_TENSOR, x, VECTOR(3, 4)));
  OK(backward(sum(x), 0));
  GRAD_IS(a, 6, 8);
  graft_tensor *b = leaf(VECTOR(3, 4)), *z = add(a, a);
  OK(in_place(GRAFT_OP_MUL_TENSOR, z, b));
  FAILS(backward(sum(z), 0), "aten::mul.Tensor", "wrote over");
}
END_TEST

START_TEST(refused_writes) {
  graft_tensor *a = leaf(VECTOR(1, 2)), *c = VECTOR(1, 1), *x = add(a, a), *one = NUMBER(1);
  FAILS(in_place(GRAFT_OP_ADD_TENSOR, a, c), "aten::add.Tensor", "leaf");
  graft_tensor *part = select0(x, 0);
  FAILS(in_place(GRAFT_OP_ADD_TENSOR, part, one), "view");
  FAILS(in_place(GRAFT_OP_ADD_TENSOR, x, c), "share");
  graft_tensor *constant = VECTOR(1, 2), *row = select0(constant, 0);
  FAILS(in_place(GRAFT_OP_ADD_TENSOR, row, leaf(NUMBER(1))), "share");
  OK(in_place(GRAFT_OP_ADD_TENSOR, row, one));
  graft_tensor *out = x;
  FAILS(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){graft_value_tensor(a), graft_value_tensor(c)}, 2, &out, 1),
        "history");
  IS(a, 1, 2);
  IS(x, 2, 4);
}
END_TEST

/* --- streams and threads --- */

START_TEST(streams) {
  graft_rt_device *device = graft_device_reference();
  graft_rt_stream *home = graft_stream_current(device), *streams[2];
  graft_tensor *x = leaf(NUMBER(2)), *at = x, *gradient = NULL;
  for (int i = 0; i < 2; i++) OK(graft_stream_create(device, 0, 0, &streams[i]));
  for (int i = 0; i < 6; i++) {
    graft_stream_set_current(i % 3 == 2 ? home : streams[i % 3]);
    at = mul(at, x);
  }
  graft_stream_set_current(home);
  OK(backward(at, GRAFT_BACKWARD_RETAIN_GRAPH)); /* x^7, there and back between three streams */
  GRAD_IS(x, 7 * 64);
  ck_assert_ptr_eq(graft_stream_current(device), home);
  for (int i = 0; i < 2; i++) OK(graft_stream_destroy(streams[i]));
  OK(graft_grad(&at, NULL, 1, &x, 1, 0, &gradient)); /* the streams are gone: on the current one */
  IS(keep(gradient), 7 * 64);
}
END_TEST

static void *train(void *shared) {
  for (int i = 0; i < 200; i++) {
    graft_tensor *x = leaf(NUMBER(2)), *y = mul(mul(x, x), shared);
    OK(backward(y, 0));
    GRAD_IS(x, 12);
    release_kept();
  }
  return NULL;
}

START_TEST(threads) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  graft_tensor *shared = leaf(NUMBER(3));
  for (int i = 0; i < THREADS; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, train, shared), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  GRAD_IS(shared, 4 * 200 * THREADS);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(freed_graph),
                              ONCE(no_values_no_freeing),
                              ONCE(long_chain),
                              ONCE(many_results),
                              ONCE(history_outlives_tensors),
                              ONCE(accumulation),
                              ONCE(gradients_are_not_shared),
                              ONCE(set_grad_is_checked),
                              ONCE(requires_grad_is_checked),
                              ONCE(unused_input),
                              ONCE(only_what_leads_to_an_input_runs),
                              ONCE(hooks),
                              ONCE(hook_failure_stops),
                              ONCE(hook_replacement_is_checked),
                              ONCE(no_grad),
                              ONCE(inference_mode),
                              ONCE(modes_are_restored_by_backward),
                              ONCE(detach),
                              ONCE(anomaly),
                              ONCE(in_place_has_new_history),
                              ONCE(in_place_on_a_constant),
                              ONCE(in_place_cycle_is_none),
                              ONCE(changed_saved_value),
                              ONCE(changed_saved_result),
                              ONCE(changed_value_that_is_not_read),
                              ONCE(in_place_product),
                              ONCE(refused_writes),
                              ONCE(streams),
                              ONCE(threads),
                              {0}};
  return run_suite("autograd", tests, (suite_options){.setup = setup, .teardown = teardown, .timeout_s = 60});
}
