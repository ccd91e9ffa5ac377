/* Captures that the plugin records itself, by its extension "graft.capture": a launch gives what the calls give, to the
 * bit, and the plugin is asked once. */
#include "bad_input.h"
#include "dispatch/dispatch.h"
#include "heap.h"
#include "suite.h"

enum { N = 24, TURNS = 6 };

static graft_rt_device *device;

static void open_recorder(void) {
  device = device_at(test_plugin("recorder"), NULL, 0);
}

typedef struct counts {
  int32_t launches, recordings, begins, dropped, destroyed, destroyed_busy;
} counts;

static counts told(void) {
  counts now = {0};
  size_t size = 0;
  OK(graft_device_query(device, GRAFT_DEVICE_VENDOR_KEYS, &now, sizeof now, &size));
  return now;
}

static graft_tensor *counted(float first) {
  const int64_t size = N;
  float values[N];
  graft_tensor *made;
  for (int i = 0; i < N; i++) values[i] = first + (float)i;
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, &size, values, &made));
  return made;
}

static void expect(graft_tensor *is, const float *expected) {
  float values[N];
  OK(graft_tensor_to_host(is, values));
  ck_assert_mem_eq(values, expected, sizeof values);
}

static graft_tensor *drawn(void) {
  const int64_t size = N;
  graft_tensor *made = NULL;
  OK(graft_op_rand(&size, 1, GRAFT_F32, device, &made));
  return made;
}

/* A call with a workspace, a copy, a number. */
START_TEST(a_record_is_launched) {
  graft_tensor *x = counted(1), *copy = counted(0), *y = NULL;
  const counts before = told();
  graft_graph_capture *capture;
  OK(graft_graph_capture_begin(device, NULL, &capture));
  OK(graft_op_neg(x, &y));
  OK(graft_tensor_copy(copy, y));
  OK(graft_graph_capture_end(capture));
  ck_assert_int_eq(told().recordings, before.recordings); /* at the first launch */
  for (int turn = 0; turn < TURNS; turn++) {
    float expected[N];
    graft_tensor *next = counted((float)turn);
    for (int i = 0; i < N; i++) expected[i] = -(float)(turn + i);
    OK(graft_tensor_copy(x, next));
    OK(graft_graph_capture_launch(capture));
    /* Its workspace is nobody else's meanwhile. */
    graft_tensor *other = counted(77);
    expect(y, expected);
    expect(copy, expected);
    graft_tensor_release(other);
    graft_tensor_release(next);
  }
  ck_assert_int_eq(told().recordings - before.recordings, 1);
  ck_assert_int_eq(told().launches - before.launches, TURNS);
  graft_graph_capture_destroy(capture);
  graft_tensor_release(x), graft_tensor_release(y), graft_tensor_release(copy);
}
END_TEST

/* Draws come from where the generator stands, also after it has got another seed. */
START_TEST(records_draw_on) {
  float expected[2 * TURNS][2][N];
  uint64_t seed, offset, after;
  graft_generator *generator = graft_generator_default(device);
  for (int turn = 0; turn < 2 * TURNS; turn++) {
    if (turn % TURNS == 0) graft_generator_seed(generator, 5 + (uint64_t)turn);
    for (int i = 0; i < 2; i++) {
      graft_tensor *values = drawn();
      OK(graft_tensor_to_host(values, expected[turn][i]));
      graft_tensor_release(values);
    }
  }
  graft_generator_state(generator, &seed, &after);
  const counts before = told();
  graft_graph_capture *capture;
  OK(graft_graph_capture_begin(device, NULL, &capture));
  graft_tensor *first = drawn(), *second = drawn();
  OK(graft_graph_capture_end(capture));
  for (int turn = 0; turn < 2 * TURNS; turn++) {
    if (turn % TURNS == 0) graft_generator_seed(generator, 5 + (uint64_t)turn);
    OK(graft_graph_capture_launch(capture));
    expect(first, expected[turn][0]);
    expect(second, expected[turn][1]);
  }
  graft_generator_state(generator, &seed, &offset);
  ck_assert_uint_eq(offset, after);
  ck_assert_int_eq(told().recordings - before.recordings, 2); /* one a seed */
  ck_assert_int_eq(told().launches - before.launches, 2 * TURNS);
  graft_graph_capture_destroy(capture);
  graft_tensor_release(first), graft_tensor_release(second);
}
END_TEST

/* --- what fails --- */

static void fail_at(const char *what) {
  if (what)
    setenv("RECORDER_FAILS", what, 1);
  else
    unsetenv("RECORDER_FAILS");
}

static graft_graph_capture *capture_drawn(graft_tensor **out) {
  graft_graph_capture *capture;
  OK(graft_graph_capture_begin(device, NULL, &capture));
  *out = drawn();
  OK(graft_graph_capture_end(capture));
  return capture;
}

/* Of a generator with that seed. */
static void draw_expected(uint64_t seed, float *expected) {
  graft_generator_seed(graft_generator_default(device), seed);
  graft_tensor *values = drawn();
  OK(graft_tensor_to_host(values, expected));
  graft_tensor_release(values);
}

static const struct {
  const char *at;
  int32_t recordings, dropped;
} refusals[] = {{"begin", 0, 0}, {"slot", 0, 1}, {"end", 1, 0}, {"nothing", 1, 0}};

/* No record: nobody hears of it, the calls are made one by one, and the plugin is not asked again. */
START_TEST(a_refusal_costs_the_record_only) {
  float expected[N];
  draw_expected(9, expected);
  const counts before = told();
  graft_tensor *out;
  graft_graph_capture *capture = capture_drawn(&out);
  fail_at(refusals[_i].at);
  for (int turn = 0; turn < 3; turn++) {
    graft_generator_seed(graft_generator_default(device), 9);
    OK(graft_graph_capture_launch(capture));
    expect(out, expected);
    fail_at(NULL);
  }
  const counts after = told();
  ck_assert_int_eq(after.launches, before.launches);
  ck_assert_int_eq(after.begins - before.begins, 1);
  ck_assert_int_eq(after.recordings - before.recordings, refusals[_i].recordings);
  ck_assert_int_eq(after.dropped - before.dropped, refusals[_i].dropped);
  ck_assert_int_eq(after.destroyed, before.destroyed);
  graft_graph_capture_destroy(capture);
  graft_tensor_release(out);
}
END_TEST

enum { REQUESTS_MOST = 512 };

/* A first launch, whose request number `failing` gets nothing. False: it makes fewer. */
static bool launch_without(graft_tensor *x, uint64_t failing) {
  float expected[N];
  graft_tensor *y = NULL;
  graft_graph_capture *capture;
  for (int i = 0; i < N; i++) expected[i] = -(float)(i + 3);
  OK(graft_graph_capture_begin(device, NULL, &capture));
  OK(graft_op_neg(x, &y));
  OK(graft_graph_capture_end(capture));
  heap_failing = heap_calls + failing;
  const graft_status status = graft_graph_capture_launch(capture);
  const bool failed = heap_calls >= heap_failing;
  heap_failing = 0;
  ck_assert_msg(!status || (failed && status == GRAFT_OUT_OF_MEMORY), "request %d: %s", (int)failing,
                graft_last_error());
  OK(graft_graph_capture_launch(capture));
  expect(y, expected);
  graft_graph_capture_destroy(capture);
  graft_tensor_release(y);
  return failed;
}

/* Where memory is missing to keep what a record needs, its calls are made one by one. */
START_TEST(missing_memory_costs_the_record_only) {
  graft_tensor *x = counted(3);
  uint64_t request = 1;
  while (launch_without(x, request) && request < REQUESTS_MOST) request++;
  ck_assert_uint_gt(request, 1);
  ck_assert_uint_lt(request, REQUESTS_MOST);
  graft_tensor_release(x);
}
END_TEST

/* The caller hears of it, nothing is tried in its place, and the record stays. What it would have drawn is drawn. */
START_TEST(a_launch_that_fails) {
  float expected[N];
  graft_tensor *out;
  graft_generator *generator = graft_generator_default(device);
  uint64_t seed, offset, after;
  draw_expected(9, expected);
  graft_graph_capture *capture = capture_drawn(&out);
  graft_generator_seed(generator, 9);
  OK(graft_graph_capture_launch(capture));
  expect(out, expected);
  const counts before = told();
  fail_at("launch");
  graft_generator_seed(generator, 9);
  ck_assert_int_eq(graft_graph_capture_launch(capture), GRAFT_INTERNAL);
  ck_assert_msg(strstr(graft_last_error(), "launching what was captured") != NULL, "%s", graft_last_error());
  graft_generator_state(generator, &seed, &offset);
  expect(out, expected);
  fail_at(NULL);
  graft_generator_seed(generator, 9);
  OK(graft_graph_capture_launch(capture));
  graft_generator_state(generator, &seed, &after);
  ck_assert_uint_eq(offset, after);
  expect(out, expected);
  ck_assert_int_eq(told().begins, before.begins);
  ck_assert_int_eq(told().destroyed, before.destroyed);
  ck_assert_int_eq(told().launches - before.launches, 1);
  graft_graph_capture_destroy(capture);
  graft_tensor_release(out);
}
END_TEST

/* It goes once no launch is under way: with the capture, and where the generator has got another seed. */
START_TEST(a_record_goes_when_its_launches_are_done) {
  float expected[N];
  graft_tensor *out;
  draw_expected(11, expected);
  const counts before = told();
  graft_graph_capture *capture = capture_drawn(&out);
  if (_i) fail_at("destroy"); /* which nobody hears of */
  for (uint64_t seed = 10; seed < 12; seed++) {
    graft_generator_seed(graft_generator_default(device), seed);
    OK(graft_graph_capture_launch(capture));
  }
  expect(out, expected);
  OK(graft_graph_capture_launch(capture));
  ck_assert_int_eq(told().destroyed - before.destroyed, 1);
  graft_graph_capture_destroy(capture);
  ck_assert_int_eq(told().destroyed - before.destroyed, 2);
  ck_assert_int_eq(told().recordings - before.recordings, 2);
  ck_assert_int_eq(told().destroyed_busy, 0);
  fail_at(NULL);
  graft_tensor_release(out);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(a_record_is_launched),
                              ONCE(records_draw_on),
                              ONCE(missing_memory_costs_the_record_only),
                              EACH(a_refusal_costs_the_record_only, ROWS(refusals)),
                              ONCE(a_launch_that_fails),
                              EACH(a_record_goes_when_its_launches_are_done, 2),
                              {0}};
  return run_suite("record", tests, (suite_options){.setup = open_recorder, .timeout_s = 60});
}
