/* Large values that lie over one that ends where they begin: which do, what memory a run then takes, and that nobody
 * who still holds what was there sees another value. */
#include "graph/exec.h"
#include "graph_programs.h"
#include "suite.h"

enum { BYTES = 1 << 20, N = BYTES / 4 };

static graft_rt_device *grouping(const char *option) {
  graft_rt_device *device = device_at(test_plugin("groups"), (const char *const[]){option, NULL}, 0);
  ck_assert_msg(device, "%s", graft_last_error());
  return device;
}

static graft_tensor *filled(graft_rt_device *device, float first) {
  const int64_t n = N;
  graft_tensor *t;
  float *values = malloc(BYTES);
  for (int i = 0; i < N; i++) values[i] = first + (float)i / N;
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, &n, values, &t));
  free(values);
  return t;
}

static void expect_memory(graft_tensor *is, graft_tensor *expected, const char *name, const char *what) {
  float *x = malloc(BYTES), *y = malloc(BYTES);
  OK(graft_tensor_to_host(is, x));
  OK(graft_tensor_to_host(expected, y));
  ck_assert_msg(!memcmp(x, y, BYTES), "%s: %s has other values", name, what);
  free(x);
  free(y);
}

/* --- programs of a and b, of which a is donated --- */

static graft_tensor *in_a_chain(graft_tensor **in) {
  return CALL(MUL_TENSOR, T(CALL(NEG, T(CALL(ABS, T(in[0]))))), T(in[1]));
}
static graft_tensor *read_again(graft_tensor **in) {
  graft_tensor *early = CALL(NEG, T(in[0])), *late = CALL(ABS, T(early));
  return CALL(ADD_TENSOR, T(late), T(early));
}
static graft_tensor *read_elsewhere(graft_tensor **in) {
  graft_tensor *early = CALL(NEG, T(in[0]));
  return CALL(ADD_TENSOR, T(early), T(CALL(FLIP, T(early), INTS(0))));
}
static graft_tensor *by_lines(graft_tensor **in) {
  graft_tensor *rows = CALL(VIEW, T(in[0]), INTS(4, N / 4)),
               *weights = CALL(SOFTMAX, T(rows), INT(1), graft_value_bool(false));
  return CALL(MUL_TENSOR, T(CALL(VIEW, T(weights), INTS(N))), T(in[1]));
}

/* Most values of BYTES that a run needs beside its inputs, the output included: `held` where somebody else holds a. */
static const struct over_row {
  const char *name, *option, *passes;
  graft_tensor *(*run)(graft_tensor **in);
  int64_t alone, held;
} rows[] = {
    {"a chain", "groups=none", NULL, in_a_chain, 0, 1},
    {"a chain, apart", "groups=none", "-inplace", in_a_chain, 1, 2},
    {"read once more", "groups=none", NULL, read_again, 1, 2},
    {"read in another order", "groups=none", NULL, read_elsewhere, 1, 2},
    {"by lines, which the slots do not take", "groups=none", NULL, by_lines, 1, 1},
    {"a group", "groups=over", NULL, in_a_chain, 0, 1},
    {"a group, apart", "groups=over", "-inplace", in_a_chain, 1, 1},
    {"a group that does not say so", "groups=runs", NULL, in_a_chain, 1, 1},
    {"a group with what is read once more", "groups=over", NULL, read_again, 0, 1},
};

static graft_graph_exec *compiled(graft_rt_device *device, const struct over_row *row) {
  const int64_t n = N;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *in[2], *out;
  OK(graft_graph_create(device, &graph));
  for (uint32_t i = 0; i < 2; i++)
    OK(graft_graph_input(graph, (const char[]){(char)('a' + i), 0}, GRAFT_F32, 1, &n, NULL, &in[i]));
  OK(graft_graph_input_donate(graph, 0));
  OK(graft_graph_record_begin(graph));
  out = retained(row->run(in));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "out", out));
  OK(graft_graph_compile(graph, device, row->passes, &exec));
  sweep();
  release_all(in, 2);
  graft_tensor_release(out);
  graft_graph_destroy(graph);
  return exec;
}

static graft_memory_stat allocated(graft_rt_device *device) {
  graft_memory_statistics now = {.struct_size = sizeof now};
  OK(graft_memory_stats(device, &now));
  return now.allocated_bytes;
}

START_TEST(large_values_lie_over_others) {
  const struct over_row *row = &rows[_i];
  graft_rt_device *device = grouping(row->option);
  graft_graph_exec *exec = compiled(device, row);
  for (int held = 0; held < 2; held++) {
    graft_tensor *in[] = {filled(device, 1), filled(device, 2)}, *own[] = {filled(device, 1), filled(device, 2)};
    graft_tensor *expected = retained(row->run(own)), *kept = held ? retained(in[0]) : NULL, *out = NULL;
    sweep();
    const int64_t before = allocated(device).current;
    graft_memory_reset_peak(device);
    OK(graft_graph_run_letting_go(exec, in, 2, (const uint8_t[]){1, 0}, &out, 1));
    const int64_t more = allocated(device).peak - before, values = held ? row->held : row->alone;
    ck_assert_msg(more == values * BYTES, "%s%s: %lld bytes more; expected %lld", row->name, held ? ", held" : "",
                  (long long)more, (long long)(values * BYTES));
    expect_memory(out, expected, row->name, "the output");
    if (kept) expect_memory(kept, own[0], row->name, "the input");
    expect_memory(in[1], own[1], row->name, "the other input");
    release_all((graft_tensor *[]){kept, out, expected, own[0], own[1], in[1]}, 6);
  }
  graft_graph_exec_destroy(exec);
}
END_TEST

int main(void) {
  return run_suite("graph_over", (suite_test[]){EACH(large_values_lie_over_others, ROWS(rows)), {0}},
                   (suite_options){.timeout_s = 120});
}
