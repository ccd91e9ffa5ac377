/* Where the values of a graph lie: the plan as a table, its promise for any table, what graphs take; nodes that move so
 * that values live shorter; and passes that are left out. */
#include "graph/graph.h"
#include "graph_programs.h"
#include "suite.h"

/* --- the memory plan --- */

typedef struct plan_row {
  const char *name;
  gr_usage usages[6];
  uint32_t count;
  uint64_t alignment, most;
  gr_spot spots[6];
  uint64_t arenas[3]; /* up to the first 0 */
  gr_donor donors[2]; /* likewise; they are the first arenas */
} plan_row;

static const plan_row plans[] = {
    {"none", {{0, 0, 0}}, 0, 64, 1000, {{0, 0}}, {0}, {{0, 0}}},
    {"of no bytes", {{0, 0, 3}}, 1, 64, 1000, {{GR_NONE, 0}}, {0}, {{0, 0}}},
    {"one behind the other", {{10, 0, 1}, {10, 2, 3}}, 2, 1, 1000, {{0, 0}, {0, 0}}, {10}, {{0, 0}}},
    {"both ends count", {{10, 0, 1}, {10, 1, 3}}, 2, 1, 1000, {{0, 0}, {0, 10}}, {20}, {{0, 0}}},
    {"aligned", {{10, 0, 1}, {10, 1, 3}}, 2, 64, 1000, {{0, 0}, {0, 64}}, {128}, {{0, 0}}},
    {"largest first", {{10, 0, 2}, {30, 1, 2}, {20, 2, 3}}, 3, 1, 1000, {{0, 50}, {0, 0}, {0, 30}}, {60}, {{0, 0}}},
    {"the smallest gap", /* behind 40 bytes there is a gap of 20, behind 30 more one of 15 */
     {{40, 0, 9}, {20, 0, 1}, {35, 0, 9}, {15, 0, 1}, {33, 0, 9}, {14, 2, 3}},
     6,
     1,
     1000,
     {{0, 0}, {0, 108}, {0, 40}, {0, 128}, {0, 75}, {0, 108}},
     {143},
     {{0, 0}}},
    {"no larger than allowed",
     {{60, 0, 1}, {60, 0, 1}, {30, 0, 1}},
     3,
     1,
     100,
     {{0, 0}, {1, 0}, {0, 60}},
     {90, 60},
     {{0, 0}}},
    {"one is too large", {{200, 0, 1}, {30, 0, 1}}, 2, 1, 100, {{0, 0}, {1, 0}}, {200, 30}, {{0, 0}}},
    {"a donor is there from its node on", {{10, 3, 4}, {10, 2, 2}}, 2, 1, 1000, {{0, 0}, {1, 0}}, {30, 10}, {{30, 3}}},
    {"a donor does not grow",
     {{31, 3, 4}, {20, 3, 4}, {11, 4, 5}},
     3,
     1,
     1000,
     {{1, 0}, {0, 0}, {1, 31}},
     {30, 42},
     {{30, 3}}},
    {"a donor holds what fills it", {{30, 3, 4}, {10, 5, 6}}, 2, 64, 1000, {{0, 0}, {0, 0}}, {30}, {{30, 3}}},
    {"the first donor with room",
     {{30, 3, 4}, {20, 3, 4}, {20, 3, 3}},
     3,
     1,
     1000,
     {{1, 0}, {0, 0}, {2, 0}},
     {25, 40, 20},
     {{25, 0}, {40, 2}}},
    {"a donor beside a limit", {{60, 0, 1}, {60, 0, 1}}, 2, 1, 50, {{0, 0}, {1, 0}}, {70, 60}, {{70, 0}}},
};

START_TEST(memory_is_planned) {
  const plan_row *row = &plans[_i];
  gr_spot spots[6];
  uint64_t *arenas;
  uint32_t narenas, expected = 0;
  gr_room room = {.donors = row->donors, .alignment = row->alignment, .most = row->most};
  while (room.ndonors < 2 && row->donors[room.ndonors].bytes) room.ndonors++;
  OK(gr_plan_memory(row->usages, row->count, &room, spots, &arenas, &narenas));
  while (expected < 3 && row->arenas[expected]) expected++;
  ck_assert_msg(narenas == expected, "%s: %u arenas", row->name, narenas);
  for (uint32_t i = 0; i < row->count; i++) {
    ck_assert_msg(spots[i].arena == row->spots[i].arena && spots[i].offset == row->spots[i].offset,
                  "%s: value %u is in arena %u at %llu", row->name, i, spots[i].arena,
                  (unsigned long long)spots[i].offset);
  }
  for (uint32_t i = 0; i < narenas; i++) ck_assert_uint_eq(arenas[i], row->arenas[i]);
  free(arenas);
}
END_TEST

/* Whatever the usages: no two that live at once overlap. */
START_TEST(plans_keep_values_apart) {
  enum { COUNT = 60 };
  uint32_t state = 12345;
  for (int round = 0; round < 200; round++) {
    gr_usage usages[COUNT];
    gr_spot spots[COUNT];
    for (int i = 0; i < COUNT; i++) {
      uint32_t draws[3];
      for (int d = 0; d < 3; d++) draws[d] = (state = state * 1664525u + 1013904223u) >> 8;
      usages[i] = (gr_usage){draws[0] % 500, draws[1] % 40, 0};
      usages[i].last = usages[i].first + draws[2] % 10;
    }
    uint64_t *arenas;
    uint32_t narenas;
    gr_donor donors[4];
    for (uint32_t i = 0; i < ROWS(donors); i++) donors[i] = (gr_donor){100 * (i + 1), 8 * (4 - i)};
    const gr_room room = {donors, round % 2 ? ROWS(donors) : 0, 32, 2000};
    OK(gr_plan_memory(usages, COUNT, &room, spots, &arenas, &narenas));
    for (int i = 0; i < COUNT; i++) {
      if (!usages[i].bytes) continue;
      ck_assert_uint_eq(spots[i].offset % 32, 0);
      ck_assert_uint_le(spots[i].offset + usages[i].bytes, arenas[spots[i].arena]);
      ck_assert_uint_le(arenas[spots[i].arena], 2000);
      if (spots[i].arena < room.ndonors) ck_assert_uint_ge(usages[i].first, donors[spots[i].arena].from);
      for (int j = 0; j < i; j++) {
        bool together = usages[i].first <= usages[j].last && usages[j].first <= usages[i].last;
        bool apart = spots[i].arena != spots[j].arena || spots[i].offset + usages[i].bytes <= spots[j].offset ||
                     spots[j].offset + usages[j].bytes <= spots[i].offset;
        ck_assert_msg(!together || apart || !usages[j].bytes, "values %d and %d overlap", i, j);
      }
    }
    free(arenas);
  }
}
END_TEST

/* x, then eight times + 1: two places are enough, and one where each is written over its operand. */
START_TEST(values_share_memory) {
  const int64_t n = 1024;
  const struct {
    const char *passes;
    uint64_t bytes;
  } rows[] = {{NULL, 4096}, {"-inplace", 8192}, {"-memory", 0}};
  graft_graph *graph;
  graft_tensor *x[10] = {0};
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x[0]));
  OK(graft_graph_record_begin(graph));
  for (int i = 0; i < 9; i++) OK(graft_op_exp(x[i], &x[i + 1]));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "out", x[9]));
  for (int i = 0; i < ROWS(rows); i++) {
    graft_graph_exec *exec;
    graft_graph_exec_info info;
    OK(graft_graph_compile(graph, reference(), rows[i].passes, &exec));
    OK(graft_graph_exec_query(exec, &info, sizeof info));
    ck_assert_msg(info.arena_bytes == rows[i].bytes, "%s: %llu bytes", rows[i].passes,
                  (unsigned long long)info.arena_bytes);
    graft_graph_exec_destroy(exec);
  }
  graft_graph_destroy(graph);
  release_all(x, 10);
}
END_TEST

/* x, then four times exp: values of 1 MiB are in no arena, and two of them are there at once; or one, over which the
 * others are written. */
static const struct {
  const char *passes;
  int64_t values;
} large_rows[] = {{NULL, 1}, {"-inplace", 2}};

START_TEST(large_values_come_and_go) {
  enum { VALUES = 4, BYTES = 1 << 20 };
  const int64_t n = BYTES / 4;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_graph_exec_info info;
  graft_memory_statistics before, after;
  graft_tensor *x[VALUES + 1] = {0}, *in, *out;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x[0]));
  OK(graft_graph_record_begin(graph));
  for (int i = 0; i < VALUES; i++) OK(graft_op_exp(x[i], &x[i + 1]));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "out", x[VALUES]));
  OK(graft_graph_compile(graph, reference(), large_rows[_i].passes, &exec));
  OK(graft_graph_exec_query(exec, &info, sizeof info));
  ck_assert_uint_eq(info.arena_bytes, 0);
  OK(graft_tensor_empty(reference(), GRAFT_F32, 1, &n, &in));
  OK(graft_call(GRAFT_OP_ZERO, ARGS(T(in)), &in, 1));
  graft_memory_reset_peak(reference());
  before.struct_size = after.struct_size = sizeof before;
  OK(graft_memory_stats(reference(), &before));
  OK(graft_graph_run(exec, &in, 1, &out, 1));
  OK(graft_memory_stats(reference(), &after));
  ck_assert_int_eq(after.allocated_bytes.peak - before.allocated_bytes.current, large_rows[_i].values * BYTES);
  release_all((graft_tensor *[]){in, out}, 2);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all(x, VALUES + 1);
}
END_TEST

/* --- nodes that run late --- */

/* A program of two inputs of 256 elements, and the numbers of its calls in the order in which they run. */
typedef struct late_row {
  const char *name;
  void (*run)(graft_tensor **in, graft_tensor **out);
  uint32_t noutputs, count, order[8];
} late_row;

/* Work in between that needs nothing of the rest: three calls. */
static graft_tensor *meanwhile(graft_tensor *x) {
  return CALL(TANH, T(CALL(COS, T(CALL(SIN, T(x))))));
}
static void read_much_later(graft_tensor **in, graft_tensor **out) {
  graft_tensor *early = CALL(EXP, T(in[0]));
  out[0] = retained(CALL(MUL_TENSOR, T(meanwhile(in[1])), T(early)));
}
static void read_in_a_chain(graft_tensor **in, graft_tensor **out) {
  graft_tensor *early = CALL(NEG, T(CALL(EXP, T(in[0]))));
  out[0] = retained(CALL(MUL_TENSOR, T(meanwhile(in[1])), T(early)));
}
static void made_of_what_is_larger(graft_tensor **in, graft_tensor **out) {
  graft_tensor *early = TOTAL(CALL(EXP, T(in[0])));
  out[0] = retained(CALL(MUL_TENSOR, T(meanwhile(in[1])), T(early)));
}
static void made_of_what_stays(graft_tensor **in, graft_tensor **out) {
  graft_tensor *large = CALL(EXP, T(in[0])), *early = TOTAL(large);
  graft_tensor *other = CALL(SIN, T(large));
  out[0] = retained(CALL(MUL_TENSOR, T(other), T(early)));
  out[1] = retained(CALL(MUL_TENSOR, T(large), T(out[0])));
}
static void made_of_what_is_written(graft_tensor **in, graft_tensor **out) {
  graft_tensor *early = CALL(EXP, T(in[0]));
  graft_tensor *other = CALL(SIN, T(in[1]));
  WRITE(in[0], MUL_TENSOR, T(in[0]), T(in[1]));
  out[0] = retained(CALL(MUL_TENSOR, T(CALL(COS, T(other))), T(early)));
}
static void written_later(graft_tensor **in, graft_tensor **out) {
  graft_tensor *early = CALL(EXP, T(in[0]));
  graft_tensor *other = CALL(SIN, T(in[1]));
  WRITE(early, MUL_TENSOR, T(early), T(in[1]));
  out[0] = retained(CALL(MUL_TENSOR, T(CALL(COS, T(other))), T(early)));
}
static void drawn(graft_tensor **in, graft_tensor **out) {
  graft_tensor *early = CALL(BERNOULLI_P, T(in[0]), (graft_value){GRAFT_VALUE_FLOAT, 0, {.f = 0.5}});
  out[0] = retained(CALL(MUL_TENSOR, T(meanwhile(in[1])), T(early)));
}
static void seen_outside(graft_tensor **in, graft_tensor **out) {
  out[0] = retained(CALL(EXP, T(in[0])));
  out[1] = retained(meanwhile(in[1]));
}

static const late_row late_rows[] = {
    {"read much later", read_much_later, 1, 5, {1, 2, 3, 0, 4}},
    {"a chain that is read much later", read_in_a_chain, 1, 6, {2, 3, 4, 0, 1, 5}},
    {"made of what is larger", made_of_what_is_larger, 1, 6, {0, 1, 2, 3, 4, 5}},
    {"made of what stays", made_of_what_stays, 2, 5, {0, 2, 1, 3, 4}},
    {"made of what is written", made_of_what_is_written, 1, 5, {0, 2, 1, 3, 4}},
    {"written later", written_later, 1, 5, {0, 2, 1, 3, 4}},
    {"drawn", drawn, 1, 5, {0, 1, 2, 3, 4}},
    {"seen outside", seen_outside, 2, 4, {1, 2, 3, 0}},
};

START_TEST(nodes_run_late) {
  const late_row *row = &late_rows[_i];
  const int64_t n = 256;
  graft_graph *graph;
  graft_tensor *in[2], *out[2] = {NULL};
  gr_node *before[8];
  OK(graft_graph_create(reference(), &graph));
  for (int i = 0; i < 2; i++)
    OK(graft_graph_input(graph, (const char[]){(char)('a' + i), 0}, GRAFT_F32, 1, &n, NULL, &in[i]));
  OK(graft_graph_record_begin(graph));
  row->run(in, out);
  OK(graft_graph_record_end(graph));
  for (uint32_t i = 0; i < row->noutputs; i++)
    OK(graft_graph_output(graph, (const char[]){(char)('p' + i), 0}, out[i]));
  ck_assert_uint_eq(graph->nnodes, row->count);
  for (uint32_t i = 0; i < row->count; i++) before[i] = graph->nodes[i];
  OK(gr_pass_late(graph));
  ck_assert_uint_eq(graph->nnodes, row->count);
  for (uint32_t i = 0; i < row->count; i++) {
    uint32_t was = 0;
    while (before[was] != graph->nodes[i]) was++;
    ck_assert_msg(was == row->order[i], "%s: call %u runs at place %u", row->name, was, i);
  }
  sweep();
  release_all(in, 2);
  release_all(out, 2);
  graft_graph_destroy(graph);
}
END_TEST

START_TEST(the_environment_takes_passes_out) {
  graft_graph_exec_info info;
  const int64_t n = 3;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *x, *y = NULL, *z = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_exp(x, &y));
  OK(graft_op_exp(y, &z));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "y", y));
  setenv("GRAFT_GRAPH_PASSES", "-dead", 1);
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  OK(graft_graph_exec_query(exec, &info, sizeof info));
  ck_assert_uint_eq(info.nodes, 2);
  graft_graph_exec_destroy(exec);
  setenv("GRAFT_GRAPH_PASSES", "dead", 1);
  assert_says(graft_graph_compile(graph, reference(), NULL, &exec), GRAFT_INVALID_ARGUMENT, "GRAFT_GRAPH_PASSES");
  unsetenv("GRAFT_GRAPH_PASSES");
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  OK(graft_graph_exec_query(exec, &info, sizeof info));
  ck_assert_uint_eq(info.nodes, 1);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, y, z}, 3);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(memory_is_planned, ROWS(plans)),
                              ONCE(plans_keep_values_apart),
                              ONCE(values_share_memory),
                              EACH(large_values_come_and_go, ROWS(large_rows)),
                              EACH(nodes_run_late, ROWS(late_rows)),
                              ONCE(the_environment_takes_passes_out),
                              {0}};
  return run_suite("graph_memory", tests, (suite_options){.timeout_s = 60});
}
