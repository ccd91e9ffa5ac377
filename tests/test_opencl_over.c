/* What needs little memory on the OpenCL backend: results of groups and of softmax over what they are made of. */
#include "opencl_groups.h"

enum { LINES = 256, WIDTH = 1024, ENTRIES = LINES * WIDTH, BYTES = 4 * ENTRIES };
enum { A, B, TARGET, GRAD, TOTAL_WEIGHT, GIVEN };

static graft_tensor *in_a_chain(graft_tensor **in) {
  return CALL(MUL_TENSOR, T(CALL(NEG, T(CALL(EXP, T(in[A]))))), T(in[B]));
}
static graft_tensor *without_its_mean(graft_tensor **in) {
  return CALL(SUB_TENSOR, T(in[A]), T(CALL(MEAN_DIM, T(in[A]), INTS(1), graft_value_bool(true))));
}
static graft_tensor *softmax(graft_tensor **in) {
  return CALL(SOFTMAX, T(in[A]), INT(1), graft_value_bool(false));
}
static graft_tensor *log_softmax(graft_tensor **in) {
  return CALL(LOG_SOFTMAX, T(in[A]), INT(1), graft_value_bool(false));
}
static graft_tensor *entropy(graft_tensor **in) {
  enum { MEAN = 1, IGNORED = -100 };
  graft_tensor *between = CALL(NLL_LOSS_BACKWARD, T(in[GRAD]), T(in[A]), T(in[TARGET]), T(NULL), INT(MEAN),
                               INT(IGNORED), T(in[TOTAL_WEIGHT]));
  return CALL(LOG_SOFTMAX_BACKWARD_DATA, T(between), T(in[A]), INT(1),
              (graft_value){GRAFT_VALUE_DTYPE, 0, {.i = GRAFT_F32}});
}

static const struct over_row {
  const char *name;
  graft_tensor *(*run)(graft_tensor **in);
} rows[] = {{"a chain", in_a_chain},
            {"a row and its mean", without_its_mean},
            {"softmax", softmax},
            {"its logarithm", log_softmax},
            {"the gradient of a cross entropy", entropy}};

static void fill_in(graft_tensor **in) {
  const int64_t lines = LINES;
  int64_t targets[LINES];
  for (int i = 0; i < LINES; i++) targets[i] = i * 3;
  for (int i = A; i <= B; i++) in[i] = sized(GRAFT_F32, LINES, WIDTH, (uint32_t)i + 1);
  OK(graft_tensor_from_host(device, GRAFT_I64, 1, &lines, targets, &in[TARGET]));
  for (int i = GRAD; i <= TOTAL_WEIGHT; i++)
    OK(graft_tensor_from_host(device, GRAFT_F32, 0, NULL, (const float[]){LINES - (float)i}, &in[i]));
}

static graft_graph_exec *compiled_for(const struct over_row *row, graft_tensor **like) {
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *in[GIVEN], *out;
  OK(graft_graph_create(device, &graph));
  for (uint32_t i = 0; i < GIVEN; i++)
    OK(graft_graph_input_like(graph, (const char[]){(char)('a' + i), 0}, like[i], &in[i]));
  OK(graft_graph_input_donate(graph, A));
  OK(graft_graph_record_begin(graph));
  out = retained(row->run(in));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "out", out));
  OK(graft_graph_compile(graph, device, NULL, &exec));
  sweep();
  release_all(in, GIVEN);
  graft_tensor_release(out);
  graft_graph_destroy(graph);
  return exec;
}

static graft_memory_stat allocated(void) {
  graft_memory_statistics now = {.struct_size = sizeof now};
  OK(graft_memory_stats(device, &now));
  return now.allocated_bytes;
}

static void expect_equal(graft_tensor *is, graft_tensor *expected, const char *name) {
  float *x = malloc(BYTES), *y = malloc(BYTES);
  OK(graft_tensor_to_host(is, x));
  OK(graft_tensor_to_host(expected, y));
  ck_assert_msg(!memcmp(x, y, BYTES), "%s: other values", name);
  free(x);
  free(y);
}

START_TEST(results_lie_over_what_is_read_no_more) {
  const struct over_row *row = &rows[_i];
  if (!device) return;
  for (int held = 0; held < 2; held++) {
    graft_tensor *in[GIVEN], *own[GIVEN], *out = NULL;
    fill_in(in);
    fill_in(own);
    graft_graph_exec *exec = compiled_for(row, in);
    graft_tensor *expected = retained(row->run(own)), *kept = held ? retained(in[A]) : NULL;
    sweep();
    const int64_t before = allocated().current;
    graft_memory_reset_peak(device);
    OK(graft_graph_run_letting_go(exec, in, GIVEN, (const uint8_t[GIVEN]){1}, &out, 1));
    const int64_t more = allocated().peak - before;
    ck_assert_msg(held ? more >= BYTES : more < BYTES, "%s%s: %lld bytes more", row->name, held ? ", held" : "",
                  (long long)more);
    expect_equal(out, expected, row->name);
    if (kept) expect_equal(kept, own[A], row->name);
    release_all((graft_tensor *[]){kept, out, expected}, 3);
    release_all(own, GIVEN);
    release_all(in + 1, GIVEN - 1);
    graft_graph_exec_destroy(exec);
  }
}
END_TEST

int main(void) {
  return run_suite("opencl_over", (suite_test[]){EACH(results_lie_over_what_is_read_no_more, ROWS(rows)), {0}},
                   on_one_device(open_for_cpus));
}
