/* Captures that the plugin records itself, by its extension "graft.capture": a launch gives what the calls give, to the
 * bit, and the plugin is asked once. */
#include "bad_input.h"
#include "dispatch/dispatch.h"
#include "suite.h"

enum { N = 24, TURNS = 6 };

static graft_rt_device *device;

static void open_recorder(void) {
  device = device_at(test_plugin("recorder"), NULL, 0);
}

typedef struct counts {
  int32_t launches, recordings;
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

/* A slot that can't after all: its calls are made one by one. */
START_TEST(a_refusal_costs_the_record_only) {
  graft_generator *generator = graft_generator_default(device);
  float expected[N];
  const counts before = told();
  graft_generator_seed(generator, 9);
  graft_tensor *values = drawn();
  OK(graft_tensor_to_host(values, expected));
  graft_graph_capture *capture;
  OK(graft_graph_capture_begin(device, NULL, &capture));
  graft_tensor *out = drawn();
  OK(graft_graph_capture_end(capture));
  for (int turn = 0; turn < 2; turn++) {
    graft_generator_seed(generator, 9);
    OK(graft_graph_capture_launch(capture));
    expect(out, expected);
  }
  ck_assert_int_eq(told().launches, before.launches);
  graft_graph_capture_destroy(capture);
  graft_tensor_release(values), graft_tensor_release(out);
}
END_TEST

static void open_refusing(void) {
  setenv("RECORDER_REFUSES", "1", 1);
  open_recorder();
}

int main(void) {
  const suite_test tests[] = {ONCE(a_record_is_launched), ONCE(records_draw_on), {0}};
  const suite_test refusing[] = {ONCE(a_refusal_costs_the_record_only), {0}};
  int failed = run_suite("record", tests, (suite_options){.setup = open_recorder, .timeout_s = 60});
  return failed | run_suite("record, refused", refusing, (suite_options){.setup = open_refusing, .timeout_s = 60});
}
