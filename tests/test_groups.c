/* Groups of calls that a plugin runs as one: what it is shown, what memory they need, what is refused and how. */
#include <math.h>

#include "graph/exec.h"
#include "graph_programs.h"
#include "heap.h"
#include "plugins/groups.h"
#include "suite.h"

static graft_rt_device *grouping(const char *option) {
  graft_rt_device *device = device_at(test_plugin("groups"), (const char *const[]){option, NULL}, 0);
  ck_assert_msg(device, "%s", graft_last_error());
  return device;
}

static const groups_seen *seen_by(graft_rt_device *device) {
  const void *table = NULL;
  void *self;
  OK(graft_device_extension(device, GROUPS_SEEN, 1, &table, &self));
  return ((const groups_api *)table)->seen;
}

static graft_tensor *numbers(graft_rt_device *device, int64_t n, const float *values) {
  graft_tensor *t;
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, &n, values, &t));
  return t;
}

/* out = relu(tanh(a + b)), with an op in the middle of which no plugin is shown the args where `draws`. */
static graft_graph *three_calls(graft_rt_device *device, bool draws) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_tensor *a, *b, *sum, *bent = NULL, *drawn = NULL, *out = NULL;
  OK(graft_graph_create(device, &graph));
  OK(graft_graph_input(graph, "a", GRAFT_F32, 1, &n, NULL, &a));
  OK(graft_graph_input(graph, "b", GRAFT_F32, 1, &n, NULL, &b));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_add_Tensor(a, b, graft_scalar_none(), &sum));
  if (draws)
    OK(graft_call(GRAFT_OP_BERNOULLI_P, (graft_value[]){T(sum), {GRAFT_VALUE_FLOAT, 0, {.f = 1}}}, 2, &drawn, 1));
  OK(graft_op_tanh(sum, &bent));
  OK(graft_op_relu(bent, &out));
  if (draws) OK(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(out), T(drawn)}, 2, &out, 1));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "out", out));
  release_all((graft_tensor *[]){a, b, sum, bent, out, drawn}, 6);
  return graph;
}

static graft_graph_exec_info info_of(const graft_graph_exec *exec) {
  graft_graph_exec_info info;
  OK(graft_graph_exec_query(exec, &info, sizeof info));
  return info;
}

static void expect_run(graft_graph_exec *exec, graft_tensor *a, graft_tensor *b) {
  graft_tensor *out = NULL;
  OK(graft_graph_run(exec, (graft_tensor *[]){a, b}, 2, &out, 1));
  float is[3], x[3], y[3];
  OK(graft_tensor_to_host(out, is));
  OK(graft_tensor_to_host(a, x));
  OK(graft_tensor_to_host(b, y));
  for (int i = 0; i < 3; i++) {
    long double bent = tanhl((long double)(x[i] + y[i]));
    ck_assert_msg(is[i] == (bent > 0 ? (float)bent : 0), "element %d is %g", i, is[i]);
  }
  graft_tensor_release(out);
}

START_TEST(values_inside_need_no_memory) {
  graft_rt_device *device = grouping("groups=runs");
  const groups_seen *seen = seen_by(device);
  graft_graph *graph = three_calls(device, false);
  graft_graph_exec *exec, *apart;
  OK(graft_graph_compile(graph, device, NULL, &exec));
  OK(graft_graph_compile(graph, device, "-fuse,-inplace", &apart));
  const graft_graph_exec_info info = info_of(exec), other = info_of(apart);
  ck_assert_uint_eq(info.groups, 1);
  ck_assert_uint_eq(info.grouped_nodes, 3);
  ck_assert_uint_eq(info.nodes, 3);
  ck_assert_uint_eq(info.arena_bytes, 0);
  ck_assert_uint_eq(info.value_bytes, 0);
  ck_assert_uint_eq(other.groups, 0);
  ck_assert_uint_gt(other.value_bytes, 0);
  ck_assert_uint_eq(seen->queries, 1); /* none where the pass is left out */
  ck_assert_uint_eq(seen->nodes, 3);
  ck_assert_uint_eq(seen->seen, 3);
  ck_assert_uint_eq(seen->inputs, 2);
  ck_assert_uint_eq(seen->outputs, 1);
  ck_assert_uint_eq(seen->inside, 2);
  graft_tensor *a = numbers(device, 3, (float[]){1, -2, 0.5f}), *b = numbers(device, 3, (float[]){1, 1, 0.25f});
  for (uint32_t i = 1; i <= 2; i++) {
    expect_run(exec, a, b);
    ck_assert_uint_eq(seen->runs, i);
  }
  expect_run(apart, a, b);
  ck_assert_uint_eq(seen->runs, 2);
  graft_graph_exec_destroy(exec);
  ck_assert_uint_eq(seen->destroyed, 1);
  graft_graph_exec_destroy(apart);
  ck_assert_uint_eq(seen->destroyed, 1);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){a, b}, 2);
}
END_TEST

/* Its nodes then run one by one, as the plans of slots are for aligned memory, too. */
START_TEST(inputs_may_begin_anywhere) {
  graft_rt_device *device = grouping("groups=runs");
  const groups_seen *seen = seen_by(device);
  graft_graph *graph = three_calls(device, false);
  graft_graph_exec *exec;
  OK(graft_graph_compile(graph, device, NULL, &exec));
  graft_tensor *four = numbers(device, 4, (float[]){9, 1, -2, 0.5f}), *b = numbers(device, 3, (float[]){1, 1, 0.25f});
  graft_tensor *a;
  const int64_t size = 3, one = 1;
  OK(tns_new(four->storage, device, GRAFT_F32, 1, &size, &one, 1, &a));
  const int64_t before = atomic_load(&device->storages);
  for (int i = 0; i < 2; i++) expect_run(exec, a, b);
  ck_assert_uint_eq(seen->runs, 0);
  ck_assert_int_eq(atomic_load(&device->storages), before);
  expect_run(exec, b, b);
  ck_assert_uint_eq(seen->runs, 1);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){four, a, b}, 3);
}
END_TEST

START_TEST(a_group_that_is_refused_runs_call_by_call) {
  static const char *const options[] = {"groups=refused", "groups=failing", "groups=empty", "groups=none"};
  graft_rt_device *device = grouping(options[_i]);
  graft_graph *graph = three_calls(device, false);
  graft_graph_exec *exec;
  OK(graft_graph_compile(graph, device, NULL, &exec));
  ck_assert_uint_eq(info_of(exec).groups, 0);
  ck_assert_uint_eq(info_of(exec).failed_groups,
                    _i == 1 || _i == 2 ? 1 : 0); /* failing, and empty, which is no answer */
  graft_tensor *a = numbers(device, 3, (float[]){1, -2, 0.5f}), *b = numbers(device, 3, (float[]){1, 1, 0.25f});
  expect_run(exec, a, b);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){a, b}, 2);
}
END_TEST

/* --- lies --- */

static const struct {
  const char *option, *says;
  bool draws;
} lies[] = {
    {"groups=beyond", "puts node 0 (aten::add.Tensor) into group 4; expected 0, for none, to 3", false},
    {"groups=circle", "takes nodes 0 (aten::add.Tensor) to 2 (aten::relu) as group 1, which can't run at once", false},
    {"groups=both", "which can't run at once", false},
    {"groups=stolen", "takes node 1 (aten::bernoulli.p) into group 1, and was not offered that one", true},
    {"groups=short", "the plugin's table \"graft.graph\" is not whole", false},
};

START_TEST(a_wrong_answer_is_an_error_that_names_the_plugin) {
  graft_rt_device *device = grouping(lies[_i].option);
  graft_graph *graph = three_calls(device, lies[_i].draws);
  graft_graph_exec *exec = NULL;
  assert_says(graft_graph_compile(graph, device, NULL, &exec), GRAFT_INTERNAL, lies[_i].says);
  ck_assert_msg(strstr(graft_last_error(), "groups"), "no plugin in \"%s\"", graft_last_error());
  ck_assert_ptr_null(exec);
  OK(graft_graph_compile(graph, device, "-fuse", &exec)); /* nobody is asked */
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
}
END_TEST

START_TEST(a_group_that_does_not_run_is_an_error) {
  graft_rt_device *device = grouping("groups=unrun");
  graft_graph *graph = three_calls(device, false);
  graft_graph_exec *exec;
  OK(graft_graph_compile(graph, device, NULL, &exec));
  graft_tensor *a = numbers(device, 3, (float[]){1, -2, 0.5f}), *out = NULL;
  const int64_t before = atomic_load(&device->storages);
  assert_says(graft_graph_run(exec, (graft_tensor *[]){a, a}, 2, &out, 1), GRAFT_INTERNAL, "graph nodes 0 to 2");
  ck_assert_ptr_null(out);
  ck_assert_int_eq(atomic_load(&device->storages), before);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  graft_tensor_release(a);
}
END_TEST

/* --- the order --- */

/* What a plugin leaves out in the middle is run before the group, or behind it; the group's nodes follow each other. */
START_TEST(groups_go_around_what_is_left_out) {
  graft_rt_device *device = grouping("groups=spread");
  const int64_t n = 3;
  graft_graph *graph;
  graft_tensor *a, *v[7] = {NULL};
  OK(graft_graph_create(device, &graph));
  OK(graft_graph_input(graph, "a", GRAFT_F32, 1, &n, NULL, &a));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_neg(a, &v[0]));
  OK(graft_op_exp(a, &v[1])); /* left out, and needed by the group */
  OK(graft_op_add_Tensor(v[0], v[1], graft_scalar_none(), &v[2]));
  OK(graft_op_sin(v[2], &v[3]));
  OK(graft_op_cos(v[2], &v[4])); /* left out, and needs the group */
  OK(graft_op_tanh(v[3], &v[5]));
  OK(graft_op_relu(v[5], &v[6]));
  OK(graft_graph_record_end(graph));
  for (int i = 0; i < 7; i++) OK(graft_graph_output(graph, (const char[]){(char)('p' + i), 0}, v[i]));
  graft_graph_exec *exec;
  OK(graft_graph_compile(graph, device, "-late", &exec)); /* which would change the order, too */
  static const uint32_t expected[] = {GRAFT_OP_EXP,  GRAFT_OP_NEG,  GRAFT_OP_ADD_TENSOR, GRAFT_OP_SIN,
                                      GRAFT_OP_TANH, GRAFT_OP_RELU, GRAFT_OP_COS};
  for (uint32_t i = 0; i < 7; i++) ck_assert_uint_eq(exec->graph->nodes[i]->schema->id, expected[i]);
  ck_assert_uint_eq(exec->ngroups, 1);
  ck_assert_uint_eq(exec->groups[0].first, 1);
  ck_assert_uint_eq(exec->groups[0].end, 6);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all(v, 7);
  graft_tensor_release(a);
}
END_TEST

/* --- calls that draw --- */

/* Three draws with calls between them: one group has all or, of version 1, each other call is one. */
static graft_graph *draws_of(graft_rt_device *device) {
  const int64_t n = 5;
  graft_graph *graph;
  graft_tensor *a, *bent = NULL, *dropped[2] = {NULL, NULL}, *drawn = NULL, *sum = NULL, *last[2] = {NULL, NULL};
  const graft_value half = graft_value_float(0.5), yes = graft_value_bool(true);
  OK(graft_graph_create(device, &graph));
  OK(graft_graph_input(graph, "a", GRAFT_F32, 1, &n, NULL, &a));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_tanh(a, &bent));
  OK(graft_call(GRAFT_OP_NATIVE_DROPOUT, (graft_value[]){T(bent), half, yes}, 3, dropped, 2));
  OK(graft_call(GRAFT_OP_BERNOULLI_P, (graft_value[]){T(dropped[0]), half}, 2, &drawn, 1));
  OK(graft_op_add_Tensor(dropped[0], drawn, graft_scalar_none(), &sum));
  OK(graft_call(GRAFT_OP_NATIVE_DROPOUT, (graft_value[]){T(sum), half, yes}, 3, last, 2));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "sum", sum));
  OK(graft_graph_output(graph, "last", last[0]));
  release_all((graft_tensor *[]){a, bent, dropped[0], dropped[1], drawn, sum, last[0], last[1]}, 8);
  return graph;
}

/* What two runs give, one after the other, from a seed on. */
static void run_twice(graft_graph_exec *exec, graft_tensor *a, float results[2][2][5], uint64_t *drawn) {
  graft_generator *generator = graft_generator_default(exec->device);
  graft_generator_seed(generator, 77);
  for (int run = 0; run < 2; run++) {
    graft_tensor *out[2] = {NULL, NULL};
    OK(graft_graph_run(exec, &a, 1, out, 2));
    for (int i = 0; i < 2; i++) OK(graft_tensor_to_host(out[i], results[run][i]));
    release_all(out, 2);
  }
  graft_generator_state(generator, NULL, drawn);
}

/* The same from launches of what a run was captured as. */
static void launch_twice(graft_graph_exec *exec, graft_tensor *a, float results[2][2][5]) {
  graft_graph_capture *capture;
  graft_tensor *out[2] = {NULL, NULL};
  OK(graft_graph_capture_begin(exec->device, NULL, &capture));
  OK(graft_graph_run(exec, &a, 1, out, 2));
  OK(graft_graph_capture_end(capture));
  graft_generator_seed(graft_generator_default(exec->device), 77);
  for (int run = 0; run < 2; run++) {
    OK(graft_graph_capture_launch(capture));
    for (int i = 0; i < 2; i++) OK(graft_tensor_to_host(out[i], results[run][i]));
  }
  graft_graph_capture_destroy(capture);
  release_all(out, 2);
}

static const struct {
  const char *option, *passes;
  uint32_t grouped_nodes;
} drawing_ways[] = {{"groups=runs", "-fuse", 0}, {"groups=runs", NULL, 5}, {"groups=first", NULL, 2}};

START_TEST(draws_in_groups_are_those_of_the_calls) {
  float expected[2][2][5], is[2][2][5];
  uint64_t all = 0, drawn;
  for (size_t w = 0; w < ROWS(drawing_ways); w++) {
    graft_rt_device *device = grouping(drawing_ways[w].option);
    graft_graph *graph = draws_of(device);
    graft_graph_exec *exec;
    OK(graft_graph_compile(graph, device, drawing_ways[w].passes, &exec));
    ck_assert_uint_eq(info_of(exec).grouped_nodes, drawing_ways[w].grouped_nodes);
    graft_tensor *a = numbers(device, 5, (float[]){1, -2, 0.5f, 3, -0.25f});
    run_twice(exec, a, w ? is : expected, w ? &drawn : &all);
    if (w) ck_assert(!memcmp(is, expected, sizeof is) && drawn == all);
    launch_twice(exec, a, is);
    ck_assert_mem_eq(is, expected, sizeof is);
    graft_graph_exec_destroy(exec);
    graft_graph_destroy(graph);
    graft_tensor_release(a);
  }
  ck_assert(memcmp(expected[0], expected[1], sizeof expected[0])); /* the second run draws on */
}
END_TEST

/* --- memory that can't be had --- */

/* A graph with two groups, which is compiled and run. */
static graft_status make_and_run(graft_rt_device *device) {
  const int64_t n = 3;
  graft_graph *graph = NULL;
  graft_graph_exec *exec = NULL;
  graft_tensor *a = NULL, *v[5] = {NULL}, *given = NULL, *out = NULL;
  graft_status status = graft_graph_create(device, &graph);
  if (!status) status = graft_graph_input(graph, "a", GRAFT_F32, 1, &n, NULL, &a);
  if (!status) status = graft_graph_record_begin(graph);
  const bool began = !status;
  if (!status) status = graft_op_neg(a, &v[0]);
  if (!status) status = graft_op_exp(a, &v[1]);
  if (!status) status = graft_op_add_Tensor(v[0], v[1], graft_scalar_none(), &v[2]);
  if (!status) status = graft_tensor_to(v[2], NULL, GRAFT_F64, &v[3]);
  if (!status) status = graft_op_cos(v[3], &v[4]);
  if (began) graft_graph_record_end(graph);
  if (!status) status = graft_graph_output(graph, "out", v[4]);
  if (!status) status = graft_graph_compile(graph, device, NULL, &exec);
  if (!status) status = graft_tensor_from_host(device, GRAFT_F32, 1, &n, (float[]){1, 2, 3}, &given);
  if (!status) status = graft_graph_run(exec, &given, 1, &out, 1);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all(v, 5);
  release_all((graft_tensor *[]){a, given, out}, 3);
  return status;
}

/* Each request of the host fails once: an error, and nothing is left behind. */
START_TEST(memory_runs_out_anywhere) {
  graft_rt_device *device = grouping("groups=spread");
  const groups_seen *seen = seen_by(device);
  OK(make_and_run(device));
  ck_assert_uint_gt(seen->runs, 0);
  const int64_t before = atomic_load(&device->storages);
  uint64_t failed = 0;
  for (uint64_t at = 1;; at++) {
    heap_failing = heap_calls + at;
    graft_status status = make_and_run(device);
    bool reached = heap_calls >= heap_failing;
    heap_failing = 0;
    ck_assert_int_eq(atomic_load(&device->storages), before);
    ck_assert_uint_eq(seen->compiled, seen->destroyed);
    if (!reached) break;
    failed += status != GRAFT_OK;
    ck_assert_msg(!status || status == GRAFT_OUT_OF_MEMORY, "request %llu: %s", (unsigned long long)at,
                  graft_last_error());
    OK(make_and_run(device));
  }
  ck_assert_uint_gt(failed, 50);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(values_inside_need_no_memory),
                              ONCE(inputs_may_begin_anywhere),
                              EACH(a_group_that_is_refused_runs_call_by_call, 4),
                              EACH(a_wrong_answer_is_an_error_that_names_the_plugin, ROWS(lies)),
                              ONCE(a_group_that_does_not_run_is_an_error),
                              ONCE(groups_go_around_what_is_left_out),
                              ONCE(draws_in_groups_are_those_of_the_calls),
                              ONCE(memory_runs_out_anywhere),
                              {0}};
  return run_suite("groups", tests, (suite_options){.timeout_s = 60});
}
