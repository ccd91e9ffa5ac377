/* Captures: what a launch gives is what the calls give, to the bit, in the memory that they named; what is refused
 * leaves everything as it was. On the reference device, OpenCL and a plugin that runs groups. */
#include <pthread.h>

#include "dispatch/dispatch.h"
#include "graft/bridge.h"
#include "graph_programs.h"
#include "suite.h"

enum { N = 40, STEPS = 10 };

static graft_rt_device *device_at_turn(int turn) {
  return turn == 1 ? device_at(test_plugin("groups"), NULL, 0) : device_of(turn);
}

static graft_tensor *values(graft_rt_device *device, int64_t rows, int64_t columns, uint32_t seed) {
  const program_input in = {.dtype = GRAFT_F32, .ndim = 2, .sizes = {rows, columns}};
  return new_input(device, &in, seed);
}

static void expect_equal(graft_tensor *is, graft_tensor *expected) {
  const program p = {.name = "capture"};
  expect_same(&p, "tensor", 0, is, expected);
}

static graft_graph_capture *begin(graft_rt_device *device, graft_graph_pool *pool) {
  graft_graph_capture *capture;
  OK(graft_graph_capture_begin(device, pool, &capture));
  return capture;
}

static graft_memory_statistics statistics(graft_rt_device *device) {
  graft_memory_statistics now = {.struct_size = sizeof now};
  OK(graft_memory_stats(device, &now));
  return now;
}

/* --- what a launch does --- */

/* Strides, casts, numbers, a decomposition, copies: into one tensor. */
static graft_tensor *chain(graft_tensor *x) {
  graft_tensor *turned, *half, *wide, *sum;
  OK(graft_op_permute(x, (const int64_t[]){1, 0}, 2, &turned));
  OK(graft_tensor_to(later(turned), NULL, GRAFT_F16, &half));
  OK(graft_tensor_to(later(half), NULL, GRAFT_F32, &wide));
  graft_tensor *scaled = CALL(MUL_TENSOR, T(later(wide)), NUMBER(1.5));
  sum = CALL(ADD_TENSOR, T(CALL(TANH, T(scaled))), T(CALL(CLONE, T(turned))));
  return CALL(GELU, T(sum));
}

START_TEST(a_launch_reads_new_contents) {
  graft_rt_device *device = device_at_turn(_i);
  if (!device) return;
  graft_tensor *x = values(device, 5, 7, 1), *other = values(device, 5, 7, 9), *first = retained(chain(x));
  graft_tensor *second = retained(chain(other));
  graft_graph_capture *capture = begin(device, NULL);
  ck_assert(graft_stream_is_captured(graft_stream_current(device)));
  graft_tensor *out = retained(chain(x));
  sweep();
  OK(graft_graph_capture_end(capture));
  ck_assert(!graft_stream_is_captured(graft_stream_current(device)));
  ck_assert_uint_gt(graft_graph_capture_count(capture), 4);
  for (int turn = 0; turn < 3; turn++) {
    OK(graft_graph_capture_launch(capture));
    expect_equal(out, first);
    OK(graft_tensor_copy(x, other));
    OK(graft_graph_capture_launch(capture));
    expect_equal(out, second);
    graft_tensor *back = values(device, 5, 7, 1);
    OK(graft_tensor_copy(x, back));
    graft_tensor_release(back);
  }
  graft_graph_capture_destroy(capture);
  expect_equal(out, second);
  release_all((graft_tensor *[]){x, other, first, second, out}, 5);
}
END_TEST

/* Calls run nothing meanwhile, and what they write in place is written once a launch. */
START_TEST(captured_calls_do_not_run) {
  graft_rt_device *device = device_at_turn(_i);
  if (!device) return;
  graft_tensor *x = values(device, 3, 4, 1), *before = values(device, 3, 4, 1);
  graft_graph_capture *capture = begin(device, NULL);
  for (int i = 0; i < 3; i++) WRITE(x, ADD_TENSOR, T(x), NUMBER(1));
  OK(graft_graph_capture_end(capture));
  expect_equal(x, before);
  const uint64_t version = graft_tensor_version(x);
  OK(graft_graph_capture_launch(capture));
  ck_assert_uint_gt(graft_tensor_version(x), version); /* a plugin may have cached what it made of the old contents */
  for (int i = 0; i < 3; i++) WRITE(before, ADD_TENSOR, T(before), NUMBER(1));
  expect_equal(x, before);
  graft_graph_capture_destroy(capture);
  release_all((graft_tensor *[]){x, before}, 2);
}
END_TEST

START_TEST(random_ops_draw_on) {
  graft_rt_device *device = device_at_turn(_i);
  if (!device) return;
  graft_tensor *x = values(device, 9, 9, 1), *eager[STEPS], *mask, *out, *more;
  graft_generator *generator = graft_generator_default(device);
  uint64_t seed, offset, after[STEPS];
  graft_generator_seed(generator, 42);
  for (int i = 0; i < STEPS; i++) {
    OK(graft_op_native_dropout(x, 0.5, &(const bool){true}, &out, &mask));
    OK(graft_op_native_dropout(later(out), 0.25, &(const bool){true}, &eager[i], &more));
    later(mask), later(more);
    graft_generator_state(generator, &seed, &after[i]);
  }
  graft_generator_seed(generator, 42);
  graft_graph_capture *capture = begin(device, NULL);
  OK(graft_op_native_dropout(x, 0.5, &(const bool){true}, &out, &mask));
  OK(graft_op_native_dropout(later(out), 0.25, &(const bool){true}, &out, &more));
  later(mask), later(more);
  OK(graft_graph_capture_end(capture));
  graft_generator_state(generator, &seed, &offset);
  ck_assert_uint_eq(offset, 0);
  for (int i = 0; i < STEPS; i++) {
    OK(graft_graph_capture_launch(capture));
    expect_equal(out, eager[i]);
    graft_generator_state(generator, &seed, &offset);
    ck_assert_uint_eq(offset, after[i]);
  }
  graft_graph_capture_destroy(capture);
  sweep();
  release_all(eager, STEPS);
  release_all((graft_tensor *[]){x, out}, 2);
}
END_TEST

/* --- training --- */

typedef struct network {
  graft_tensor *x, *y, *first, *second;
} network;

static network new_network(graft_rt_device *device) {
  network n = {values(device, 6, 8, 1), values(device, 6, 3, 2), values(device, 8, 5, 3), values(device, 5, 3, 4)};
  OK(graft_tensor_set_requires_grad(n.first, true));
  OK(graft_tensor_set_requires_grad(n.second, true));
  return n;
}

static void update(graft_tensor *weight) {
  bool before = graft_grad_mode_set(false);
  graft_tensor *step = CALL(MUL_TENSOR, T(graft_tensor_grad(weight)), NUMBER(0.05));
  WRITE(weight, SUB_TENSOR, T(weight), T(step));
  graft_grad_mode_set(before);
  OK(graft_tensor_set_grad(weight, NULL));
}

static graft_tensor *train(const network *n) {
  graft_tensor *hidden = CALL(RELU, T(CALL(MM, T(n->x), T(n->first)))), *loss;
  graft_tensor *guess = CALL(MM, T(hidden), T(n->second));
  OK(graft_op_mse_loss(guess, n->y, 1, &loss));
  OK(graft_backward(&loss, NULL, 1, 0));
  update(n->first);
  update(n->second);
  return loss;
}

static void release_network(const network *n) {
  release_all((graft_tensor *[]){n->x, n->y, n->first, n->second}, 4);
}

START_TEST(a_training_step_is_captured) {
  graft_rt_device *device = device_at_turn(_i);
  if (!device) return;
  network eager = new_network(device), captured = new_network(device);
  graft_graph_capture *capture = begin(device, NULL);
  graft_tensor *loss = train(&captured);
  sweep();
  OK(graft_graph_capture_end(capture));
  for (int i = 0; i < STEPS; i++) {
    graft_tensor *expected = train(&eager);
    OK(graft_graph_capture_launch(capture));
    expect_equal(loss, expected);
    expect_equal(captured.first, eager.first);
    expect_equal(captured.second, eager.second);
    graft_tensor_release(expected);
    sweep();
  }
  graft_graph_capture_destroy(capture);
  graft_tensor_release(loss);
  release_network(&eager);
  release_network(&captured);
}
END_TEST

/* --- memory --- */

START_TEST(inputs_are_held_and_values_stay) {
  graft_rt_device *device = device_at_turn(_i);
  if (!device) return;
  graft_tensor *x = values(device, N, N, 1), *expected = CALL(EXP, T(CALL(MUL_TENSOR, T(x), NUMBER(2))));
  retained(expected);
  sweep();
  graft_graph_capture *capture = begin(device, NULL);
  graft_tensor *out = retained(CALL(EXP, T(CALL(MUL_TENSOR, T(x), NUMBER(2)))));
  sweep();
  OK(graft_graph_capture_end(capture));
  graft_tensor_release(x); /* the capture reads it still */
  graft_tensor *others[8];
  for (uint32_t i = 0; i < 8; i++) others[i] = values(device, N, N, i);
  OK(graft_graph_capture_launch(capture));
  expect_equal(out, expected);
  for (uint32_t i = 0; i < 8; i++) {
    graft_tensor *untouched = values(device, N, N, i);
    expect_equal(others[i], untouched); /* nobody else has memory of the capture */
    graft_tensor_release(untouched);
  }
  OK(graft_memory_empty_cache(device));
  OK(graft_graph_capture_launch(capture));
  expect_equal(out, expected);
  graft_graph_capture_destroy(capture);
  expect_equal(out, expected); /* outlives the capture */
  release_all(others, 8);
  release_all((graft_tensor *[]){out, expected}, 2);
}
END_TEST

/* What a capture frees it takes again, and all of it is anybody's once the pool has ended. */
START_TEST(a_pool_is_reused_and_ends) {
  graft_rt_device *device = device_at_turn(_i);
  if (!device) return;
  const int64_t size = 1 << 19;
  graft_tensor *x;
  OK(graft_tensor_empty(device, GRAFT_F32, 1, &size, &x));
  OK(graft_memory_empty_cache(device));
  const int64_t before = statistics(device).reserved_bytes.current;
  graft_graph_pool *pool;
  OK(graft_graph_pool_create(device, &pool));
  graft_graph_capture *captures[2];
  for (int c = 0; c < 2; c++) {
    captures[c] = begin(device, pool);
    for (int i = 0; i < 8; i++) {
      CALL(ADD_TENSOR, T(x), NUMBER(1));
      sweep();
    }
    OK(graft_graph_capture_end(captures[c]));
  }
  const int64_t held = statistics(device).reserved_bytes.current - before;
  ck_assert_msg(held >= 4 * size && held <= 12 * size, "%lld bytes are held", (long long)held);
  graft_graph_pool_release(pool);
  graft_graph_capture_destroy(captures[0]);
  OK(graft_memory_empty_cache(device));
  ck_assert_int_eq(statistics(device).reserved_bytes.current - before, held);
  OK(graft_graph_capture_launch(captures[1]));
  graft_graph_capture_destroy(captures[1]);
  OK(graft_memory_empty_cache(device));
  ck_assert_int_eq(statistics(device).reserved_bytes.current, before);
  graft_tensor_release(x);
}
END_TEST

/* --- streams and threads --- */

static void *add_one(void *context) {
  graft_tensor *x = context;
  graft_tensor *out = x;
  graft_status status = graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){T(x), NUMBER(1)}, 2, &out, 1);
  return status ? (void *)graft_last_error() : NULL;
}

/* Another thread's work on another stream runs; on the captured one, or on one that waits for it, it does not. */
START_TEST(streams_are_captured) {
  graft_rt_device *device = device_at_turn(_i);
  if (!device) return;
  graft_rt_stream *captured, *joined;
  graft_rt_event *event;
  graft_tensor *x = values(device, 3, 4, 1), *y = values(device, 3, 4, 1), *one = values(device, 3, 4, 1);
  OK(graft_stream_create(device, 0, 0, &captured));
  OK(graft_stream_create(device, 0, 0, &joined));
  OK(graft_event_create(device, 0, &event));
  WRITE(one, ADD_TENSOR, T(one), NUMBER(1));
  graft_stream_set_current(captured);
  graft_graph_capture *capture = begin(device, NULL), *second;
  assert_says(graft_graph_capture_begin(device, NULL, &second), GRAFT_INVALID_ARGUMENT, "under way");
  pthread_t thread;
  void *failure;
  ck_assert(!pthread_create(&thread, NULL, add_one, y) && !pthread_join(thread, &failure) && !failure);
  WRITE(x, ADD_TENSOR, T(x), NUMBER(0.5));
  OK(graft_event_record(event, captured));
  OK(graft_stream_wait(joined, event));
  graft_stream_set_current(joined);
  ck_assert(graft_stream_is_captured(joined));
  WRITE(x, ADD_TENSOR, T(x), NUMBER(0.5));
  graft_stream_set_current(captured);
  OK(graft_graph_capture_end(capture));
  ck_assert(!graft_stream_is_captured(joined));
  ck_assert_uint_eq(graft_graph_capture_count(capture), 2);
  graft_stream_set_current(joined);
  OK(graft_graph_capture_launch(capture));
  OK(graft_device_synchronize(device));
  expect_equal(x, one);
  expect_equal(y, one);
  graft_graph_capture_destroy(capture);
  OK(graft_event_destroy(event));
  OK(graft_stream_destroy(captured));
  OK(graft_stream_destroy(joined));
  release_all((graft_tensor *[]){x, y, one}, 3);
}
END_TEST

/* --- refusals --- */

static void to_host(graft_tensor *x, graft_tensor *out) {
  float got[12];
  (void)out;
  assert_says(graft_tensor_to_host(x, got), GRAFT_INVALID_ARGUMENT, "copying to the host");
}
static void from_host(graft_tensor *x, graft_tensor *out) {
  graft_tensor *made = out;
  assert_says(graft_tensor_from_host(graft_tensor_device(x), GRAFT_F32, 1, (int64_t[]){2}, (float[]){1, 2}, &made),
              GRAFT_INVALID_ARGUMENT, "copying from the host");
  ck_assert_ptr_eq(made, out);
}
static void item(graft_tensor *x, graft_tensor *out) {
  graft_scalar value;
  (void)x;
  assert_says(graft_tensor_item(later(retained(out)), &value), GRAFT_INVALID_ARGUMENT, "copying to the host");
}
static void nonzero(graft_tensor *x, graft_tensor *out) {
  graft_tensor *made = NULL;
  (void)out;
  graft_status status = graft_op_nonzero(x, &made);
  ck_assert_msg(status == GRAFT_INVALID_ARGUMENT && strstr(graft_last_error(), "nonzero"), "%s", graft_last_error());
  ck_assert_ptr_null(made);
}
static void own_generator(graft_tensor *x, graft_tensor *out) {
  graft_generator *own;
  (void)out;
  OK(graft_generator_create(graft_tensor_device(x), &own));
  const graft_value args[] = {T(x), NUMBER(0), NUMBER(1), {GRAFT_VALUE_GENERATOR, 0, {.generator = own}}};
  graft_tensor *made = NULL;
  graft_status status = graft_call(GRAFT_OP_UNIFORM, args, 4, &made, 1);
  ck_assert_msg(status == GRAFT_INVALID_ARGUMENT, "%s", graft_last_error());
  graft_generator_destroy(own);
}

static void (*const refused[])(graft_tensor *, graft_tensor *) = {to_host, from_host, item, nonzero, own_generator};

/* Each ends the capture; all is as it was behind its end, and another capture works. */
START_TEST(what_waits_is_refused) {
  graft_rt_device *device = device_at_turn(_i % DEVICES);
  if (!device) return;
  graft_tensor *x = values(device, 3, 4, 1), *one = values(device, 1, 1, 1), *like = values(device, 3, 4, 1);
  graft_tensor *found;
  OK(graft_op_nonzero(x, &found));
  const dsp_route way = dsp_last_route();
  graft_tensor_release(found);
  const int64_t blocks = statistics(device).active.current;
  graft_graph_capture *capture = begin(device, NULL);
  CALL(MUL_TENSOR, T(x), NUMBER(3));
  refused[_i / DEVICES](x, one);
  graft_tensor *more = NULL;
  assert_says(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(x), NUMBER(2)}, 2, &more, 1), GRAFT_INVALID_ARGUMENT,
              "the capture has ended: ");
  ck_assert_ptr_null(more);
  sweep();
  assert_says(graft_graph_capture_end(capture), GRAFT_INVALID_ARGUMENT, "the capture has ended: ");
  ck_assert(!graft_stream_is_captured(graft_stream_current(device)));
  assert_says(graft_graph_capture_launch(capture), GRAFT_INVALID_ARGUMENT, "the capture has ended: ");
  graft_graph_capture_destroy(capture);
  ck_assert_int_eq(statistics(device).active.current, blocks);
  expect_equal(x, like);
  capture = begin(device, NULL);
  graft_tensor *twice = retained(CALL(MUL_TENSOR, T(x), NUMBER(2)));
  sweep();
  OK(graft_graph_capture_end(capture));
  OK(graft_graph_capture_launch(capture));
  WRITE(like, MUL_TENSOR, T(like), NUMBER(2));
  expect_equal(twice, like);
  graft_graph_capture_destroy(capture);
  OK(graft_op_nonzero(x, &found)); /* refused once, its plan is as it was */
  ck_assert_int_eq(dsp_last_route(), way);
  release_all((graft_tensor *[]){x, one, like, twice, found}, 5);
}
END_TEST

/* What a plugin does not serve leaves the device. */
START_TEST(host_memory_is_refused) {
  graft_rt_device *device = device_of(1);
  graft_tensor *x = values(device, 3, 4, 1), *out = NULL;
  graft_graph_capture *capture = begin(device, NULL);
  assert_says(graft_op_sin(x, &out), GRAFT_INVALID_ARGUMENT, "aten::sin: it runs in host memory");
  ck_assert_ptr_null(out);
  ck_assert_int_eq(graft_graph_capture_end(capture), GRAFT_INVALID_ARGUMENT);
  graft_graph_capture_destroy(capture);
  OK(graft_op_sin(x, &out));
  release_all((graft_tensor *[]){x, out}, 2);
}
END_TEST

START_TEST(misuse_is_told) {
  graft_rt_device *device = reference();
  graft_tensor *x = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *bad = host(GRAFT_F32, 2, (float[]){1, 2}), *out = NULL;
  graft_graph *graph;
  graft_graph_capture *capture;
  OK(graft_graph_create(device, &graph));
  OK(graft_graph_record_begin(graph));
  assert_says(graft_graph_capture_begin(device, NULL, &capture), GRAFT_INVALID_ARGUMENT, "records a graph");
  OK(graft_graph_record_end(graph));
  graft_graph_destroy(graph);
  capture = begin(device, NULL);
  assert_says(graft_graph_capture_launch(capture), GRAFT_INVALID_ARGUMENT, "under way");
  /* A call that is wrong by itself ends nothing. */
  ck_assert_int_eq(graft_op_add_Tensor(x, bad, graft_scalar_int(1), &out), GRAFT_INVALID_ARGUMENT);
  WRITE(x, ADD_TENSOR, T(x), NUMBER(1));
  OK(graft_graph_capture_end(capture));
  assert_says(graft_graph_capture_end(capture), GRAFT_INVALID_ARGUMENT, "not under way");
  OK(graft_graph_capture_launch(capture));
  expect_values(x, 3, (float[]){2, 3, 4});
  graft_graph_capture *outer = begin(device, NULL);
  assert_says(graft_graph_capture_launch(capture), GRAFT_INVALID_ARGUMENT, "is captured");
  graft_graph_capture_destroy(outer); /* without its end */
  ck_assert(!graft_stream_is_captured(graft_stream_current(device)));
  OK(graft_graph_capture_launch(capture));
  expect_values(x, 3, (float[]){3, 4, 5});
  graft_graph_capture_destroy(capture);
  release_all((graft_tensor *[]){x, bad}, 2);
}
END_TEST

/* --- graphs in captures --- */

/* A run of a compiled graph, groups included, is captured like calls are, and the graph may end before the capture. */
START_TEST(runs_of_graphs_are_captured) {
  graft_rt_device *device = device_at_turn(_i);
  if (!device) return;
  graft_tensor *x = values(device, 4, 6, 1), *in, *expected = retained(CALL(EXP, T(CALL(SIN, T(x))))), *out;
  sweep();
  graft_graph *graph;
  graft_graph_exec *exec;
  OK(graft_graph_create(device, &graph));
  OK(graft_graph_input_like(graph, "x", x, &in));
  OK(graft_graph_record_begin(graph));
  graft_tensor *result = retained(CALL(EXP, T(CALL(SIN, T(in)))));
  WRITE(in, ADD_TENSOR, T(in), NUMBER(1));
  OK(graft_graph_record_end(graph));
  sweep();
  OK(graft_graph_output(graph, "out", result));
  OK(graft_graph_compile(graph, device, NULL, &exec));
  graft_graph_exec_info info;
  OK(graft_graph_exec_query(exec, &info, sizeof info));
  ck_assert_int_eq(info.groups > 0, !(device == reference()));
  graft_graph_capture *capture = begin(device, NULL);
  OK(graft_graph_run(exec, &x, 1, &out, 1));
  OK(graft_graph_capture_end(capture));
  graft_graph_exec_destroy(exec);
  OK(graft_graph_capture_launch(capture));
  expect_equal(out, expected);
  graft_tensor *next = retained(CALL(EXP, T(CALL(SIN, T(x)))));
  OK(graft_graph_capture_launch(capture));
  expect_equal(out, next);
  sweep();
  graft_graph_capture_destroy(capture);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, in, expected, result, out, next}, 6);
}
END_TEST

/* --- stand-ins --- */

static graft_status launch_with(graft_graph_capture *capture, graft_tensor *in, graft_tensor *given_in,
                                graft_tensor *out, graft_tensor *given_out) {
  const graft_graph_stand_in items[] = {{in, given_in, 0}, {out, given_out, 1}};
  return graft_graph_capture_launch_with(capture, items, 2);
}

/* What lies from element `offset` of a larger tensor on. */
static graft_tensor *inside(graft_rt_device *device, int64_t offset, uint32_t seed) {
  graft_tensor *whole = values(device, 20, 20, seed), *part;
  OK(graft_op_as_strided(whole, (const int64_t[]){5, 7}, 2, (const int64_t[]){7, 1}, 2, &offset, &part));
  graft_tensor_release(whole);
  return part;
}

static void expect_launch(graft_graph_capture *capture, graft_tensor *x, graft_tensor *out, graft_tensor *given) {
  graft_tensor *expected = retained(chain(given)), *result = retained(CALL(CLONE, T(out))),
               *kept = retained(CALL(CLONE, T(given)));
  const uint64_t version = graft_tensor_version(result);
  OK(launch_with(capture, x, given, out, result));
  expect_equal(result, expected);
  expect_equal(given, kept);
  ck_assert_uint_gt(graft_tensor_version(result), version);
  sweep();
  release_all((graft_tensor *[]){expected, result, kept}, 3);
}

/* Another tensor for each launch, where plans hold for its alignment and where they do not, and the captured one again.
 */
START_TEST(other_tensors_stand_in) {
  graft_rt_device *device = device_at_turn(_i);
  if (!device) return;
  graft_tensor *x = values(device, 5, 7, 1), *first = retained(chain(x));
  graft_tensor *given[] = {values(device, 5, 7, 2), inside(device, 64, 3), inside(device, 3, 4),
                           values(device, 5, 7, 5)};
  graft_graph_capture *capture = begin(device, NULL);
  graft_tensor *out = retained(chain(x));
  sweep();
  OK(graft_graph_capture_end(capture));
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < 4; i++) expect_launch(capture, x, out, given[i]);
  }
  graft_tensor *own = values(device, 5, 7, 1);
  OK(graft_tensor_copy(x, own));
  OK(graft_graph_capture_launch(capture));
  expect_equal(out, first);
  graft_graph_capture_destroy(capture);
  release_all(given, 4);
  release_all((graft_tensor *[]){x, first, out, own}, 4);
}
END_TEST

/* What a plugin keeps of the contents of a tensor that it has seen, as of a weight, is not taken for another one's. */
START_TEST(a_stand_in_has_contents_of_its_own) {
  graft_rt_device *device = device_at_turn(_i);
  if (!device) return;
  graft_tensor *x = values(device, 64, 64, 1), *y = values(device, 64, 64, 2), *out;
  OK(graft_op_mm(y, x, &out));
  graft_tensor_release(out);
  graft_graph_capture *capture = begin(device, NULL);
  OK(graft_op_mm(y, x, &out));
  OK(graft_graph_capture_end(capture));
  for (uint32_t seed = 3; seed < 6; seed++) {
    graft_tensor *given = values(device, 64, 64, seed), *expected, *result = values(device, 64, 64, 9);
    OK(graft_op_mm(y, given, &expected));
    OK(launch_with(capture, x, given, out, result));
    expect_equal(result, expected);
    OK(graft_tensor_copy(given, y)); /* its memory, with other contents */
    OK(launch_with(capture, x, given, out, result));
    graft_tensor_release(expected);
    OK(graft_op_mm(y, given, &expected));
    expect_equal(result, expected);
    release_all((graft_tensor *[]){given, expected, result}, 3);
  }
  graft_graph_capture_destroy(capture);
  release_all((graft_tensor *[]){x, y, out}, 3);
}
END_TEST

START_TEST(a_stand_in_is_checked) {
  graft_rt_device *device = device_at_turn(_i);
  if (!device) return;
  graft_tensor *x = values(device, 5, 7, 1), *other = values(device, 5, 7, 2), *wide = values(device, 7, 5, 3);
  graft_tensor *part = inside(device, 64, 4), *written = values(device, 5, 7, 5);
  graft_graph_capture *capture = begin(device, NULL);
  graft_tensor *out = retained(CALL(EXP, T(x)));
  WRITE(written, ADD_TENSOR, T(written), NUMBER(1));
  OK(graft_graph_capture_end(capture));
  const struct {
    graft_graph_stand_in item;
    const char *text;
  } refused_items[] = {{{x, wide, 0}, "sizes and strides must be the same"},
                       {{NULL, other, 0}, "captured is NULL"},
                       {{x, NULL, 0}, "given is NULL"},
                       {{part, other, 0}, "a part of its memory"},
                       {{written, other, 0}, "captured calls write there"}};
  for (int i = 0; i < ROWS(refused_items); i++) {
    assert_says(graft_graph_capture_launch_with(capture, &refused_items[i].item, 1), GRAFT_INVALID_ARGUMENT,
                refused_items[i].text);
  }
  const graft_graph_stand_in twice[] = {{x, other, 0}, {x, other, 0}};
  assert_says(graft_graph_capture_launch_with(capture, twice, 2), GRAFT_INVALID_ARGUMENT, "items 0 and 1");
  graft_graph_capture_destroy(capture);
  release_all((graft_tensor *[]){x, other, wide, part, written, out}, 6);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(a_launch_reads_new_contents, DEVICES),
                              EACH(captured_calls_do_not_run, DEVICES),
                              EACH(random_ops_draw_on, DEVICES),
                              EACH(a_training_step_is_captured, DEVICES),
                              EACH(inputs_are_held_and_values_stay, DEVICES),
                              EACH(a_pool_is_reused_and_ends, DEVICES),
                              EACH(streams_are_captured, DEVICES),
                              EACH(what_waits_is_refused, DEVICES * ROWS(refused)),
                              ONCE(host_memory_is_refused),
                              ONCE(misuse_is_told),
                              EACH(runs_of_graphs_are_captured, DEVICES),
                              EACH(other_tensors_stand_in, DEVICES),
                              EACH(a_stand_in_has_contents_of_its_own, DEVICES),
                              EACH(a_stand_in_is_checked, DEVICES),
                              {0}};
  return run_suite("graph capture", tests, (suite_options){.timeout_s = 60});
}
