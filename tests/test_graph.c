/* Graphs: what a recorded program gives is what its calls give, to the bit, whichever passes run, and
 * also when it went through a file. */
#include "graph_files.h"
#include "suite.h"

/* --- programs --- */

static void chain(graft_tensor **in, graft_tensor **out) {
  graft_tensor *x = CALL(ADD_TENSOR, T(CALL(MUL_TENSOR, T(in[0]), T(in[1]))), NUMBER(1));
  CALL(EXP, T(x)); /* dead */
  out[0] = retained(CALL(RELU, T(CALL(SUB_TENSOR, T(CALL(TANH, T(x))), T(in[1])))));
}

static void writes_input(graft_tensor **in, graft_tensor **out) {
  graft_tensor *before = CALL(ADD_TENSOR, T(in[0]), NUMBER(1));
  WRITE(in[0], ADD_TENSOR, T(in[0]), T(in[1]));
  graft_tensor *after = CALL(ADD_TENSOR, T(in[0]), NUMBER(1)); /* not the same: in[0] was written */
  out[0] = retained(before);
  out[1] = retained(after);
}

static void writes_through_view(graft_tensor **in, graft_tensor **out) {
  graft_tensor *row = CALL(SELECT_INT, T(in[0]), INT(0), INT(1));
  WRITE(row, MUL_TENSOR, T(row), NUMBER(3));
  out[0] = retained(CALL(MUL_TENSOR, T(in[0]), T(in[0])));
}

static void output_is_input(graft_tensor **in, graft_tensor **out) {
  WRITE(in[0], ADD_TENSOR, T(in[0]), NUMBER(2));
  out[0] = retained(in[0]);
  out[1] = retained(CALL(PERMUTE, T(in[0]), INTS(1, 0)));
  out[2] = retained(out[1]);
}

static void views_of_a_value(graft_tensor **in, graft_tensor **out) {
  graft_tensor *x = CALL(MUL_TENSOR, T(in[0]), NUMBER(2));
  graft_tensor *turned = CALL(PERMUTE, T(CALL(UNSQUEEZE, T(x), INT(0))), INTS(2, 0, 1));
  WRITE(x, ADD_TENSOR, T(x), NUMBER(1)); /* shows in the view */
  out[0] = retained(CALL(EXP, T(turned)));
  out[1] = retained(turned);
}

static void in_place_on_value(graft_tensor **in, graft_tensor **out) {
  graft_tensor *x = CALL(MUL_TENSOR, T(in[0]), NUMBER(2)), *first = CALL(SELECT_INT, T(x), INT(0), INT(0));
  graft_tensor *y = CALL(ADD_TENSOR, T(x), T(x));
  WRITE(first, ADD_TENSOR, T(first), NUMBER(5));
  out[0] = retained(CALL(ADD_TENSOR, T(x), T(y)));
}

static void expanded(graft_tensor **in, graft_tensor **out) {
  out[0] = retained(CALL(ADD_TENSOR, T(in[0]), T(in[1])));
  out[1] = retained(CALL(MM, T(in[0]), T(in[1])));
}

static void nothing(graft_tensor **in, graft_tensor **out) {
  out[0] = retained(CALL(ADD_TENSOR, T(in[0]), NUMBER(1)));
  out[1] = retained(CALL(SUM_DIM_INTLIST, T(in[0]), INTS(0)));
}

static void random_draws(graft_tensor **in, graft_tensor **out) {
  const graft_value args[] = {INTS(3, 5), {0}, {0}, {GRAFT_VALUE_DEVICE, 0, {.device = in[0]->device}}};
  graft_tensor *x = calls(GRAFT_OP_RAND, args, 4), *y = calls(GRAFT_OP_RAND, args, 4); /* two, not one */
  calls(GRAFT_OP_RANDN, args, 4);                                                      /* dead, and draws */
  out[0] = retained(CALL(ADD_TENSOR, T(CALL(MUL_TENSOR, T(x), T(in[0]))), T(y)));
  out[1] = retained(CALL(SUB_TENSOR, T(out[0]), T(calls(GRAFT_OP_RAND, args, 4))));
}

static void same_twice(graft_tensor **in, graft_tensor **out) {
  graft_tensor *x = CALL(EXP, T(in[0])), *y = CALL(EXP, T(in[0])), *z = CALL(EXP, T(in[0]));
  out[0] = retained(x); /* two results that the caller may write to */
  out[1] = retained(y);
  out[2] = retained(CALL(ADD_TENSOR, T(z), T(x)));
}

static void conjugates(graft_tensor **in, graft_tensor **out) {
  graft_tensor *c = CALL(PRIMS_CONJ, T(in[0]));
  out[0] = retained(CALL(MUL_TENSOR, T(c), T(in[0])));
  out[1] = retained(c);
  out[2] = retained(CALL(ADD_TENSOR, T(CALL(SELECT_INT, T(CALL(VIEW_AS_REAL, T(in[0]))), INT(1), INT(1))), NUMBER(1)));
}

static void conversions(graft_tensor **in, graft_tensor **out) {
  graft_tensor *half, *back;
  OK(graft_tensor_to(in[0], NULL, GRAFT_F16, &half));
  later(half);
  OK(graft_tensor_to(CALL(MUL_TENSOR, T(half), T(half)), NULL, GRAFT_F64, &back));
  out[0] = back;
  out[1] = retained(CALL(DIV_TENSOR, T(in[1]), NUMBER(3))); /* integers become the default dtype */
  graft_tensor *copy;
  OK(graft_tensor_empty(in[0]->device, GRAFT_BF16, in[0]->ndim, in[0]->sizes, &copy));
  OK(graft_tensor_copy(copy, in[0]));
  out[2] = copy;
}

static void makes_constants(graft_tensor **in, graft_tensor **out) {
  const graft_value range[] = {NUMBER(0), NUMBER(12), NUMBER(1),
                               {0},       {0},        {GRAFT_VALUE_DEVICE, 0, {.device = in[0]->device}}};
  graft_tensor *steps = CALL(VIEW, T(calls(GRAFT_OP_ARANGE_START_STEP, range, 6)), INTS(3, 4));
  graft_tensor *scale = CALL(EXP, T(CALL(MUL_TENSOR, T(steps), NUMBER(-0.25))));
  out[0] = retained(CALL(MUL_TENSOR, T(in[0]), T(scale)));
  out[1] = retained(scale); /* the caller may write to it */
}

static void norm(graft_tensor **in, graft_tensor **out) {
  const graft_value args[] = {T(in[0]),
                              T(in[1]),
                              T(in[2]),
                              T(in[3]),
                              T(in[4]),
                              graft_value_bool(true),
                              graft_value_float(0.1),
                              graft_value_float(1e-5)};
  OK(graft_call(GRAFT_OP_NATIVE_BATCH_NORM, args, 8, out, 3)); /* writes the running statistics */
}

static void lists(graft_tensor **in, graft_tensor **out) {
  graft_tensor *items[] = {in[0], in[1]}, *outs[] = {in[0], in[1]};
  graft_tensor *sums[2] = {NULL, NULL};
  const graft_value both[] = {graft_value_tensors(items, 2), NUMBER(2)};
  OK(graft_call(GRAFT_OP_FOREACH_MUL_SCALAR, both, 2, outs, 2)); /* in place */
  OK(graft_call(GRAFT_OP_FOREACH_ADD_SCALAR, both, 2, sums, 2));
  out[0] = sums[0];
  out[1] = retained(CALL(CAT, graft_value_tensors(sums, 2), INT(0)));
  later(sums[1]);
}

/* Results that are copied to what was there, and what keeps them from being written there at once. */
static void copied_back(graft_tensor **in, graft_tensor **out) {
  graft_tensor *sum = CALL(ADD_TENSOR, T(in[0]), T(in[1]));
  OK(graft_tensor_copy(in[0], sum));
  out[0] = retained(CALL(EXP, T(sum)));
}
static void copied_back_into_a_part(graft_tensor **in, graft_tensor **out) {
  graft_tensor *row = CALL(SELECT_INT, T(in[0]), INT(0), INT(2));
  OK(graft_tensor_copy(row, CALL(MUL_TENSOR, T(in[1]), T(in[1]))));
  out[0] = retained(CALL(EXP, T(in[0])));
}
static void looked_at_before_it_is_copied_back(graft_tensor **in, graft_tensor **out) {
  graft_tensor *sum = CALL(ADD_TENSOR, T(in[0]), T(in[1]));
  out[0] = retained(CALL(EXP, T(in[0])));
  OK(graft_tensor_copy(in[0], sum));
}
static void copied_back_turned(graft_tensor **in, graft_tensor **out) {
  graft_tensor *sum = CALL(ADD_TENSOR, T(CALL(PERMUTE, T(in[0]), INTS(1, 0))), T(in[1]));
  OK(graft_tensor_copy(in[0], sum));
  out[0] = retained(CALL(EXP, T(in[0])));
}
static void copied_back_then_written(graft_tensor **in, graft_tensor **out) {
  graft_tensor *sum = CALL(ADD_TENSOR, T(in[0]), T(in[1]));
  OK(graft_tensor_copy(in[0], sum));
  WRITE(in[0], MUL_TENSOR, T(in[0]), NUMBER(2));
  out[0] = retained(CALL(EXP, T(sum)));
}
static void copied_back_and_seen(graft_tensor **in, graft_tensor **out) {
  out[0] = retained(CALL(ADD_TENSOR, T(in[0]), T(in[1])));
  OK(graft_tensor_copy(in[0], out[0]));
}
static void copy_lists_back(graft_tensor **in, graft_tensor **out, bool crossed) {
  graft_tensor *sums[2] = {NULL, NULL};
  const graft_value both[] = {graft_value_tensors(in, 2), NUMBER(2)};
  OK(graft_call(GRAFT_OP_FOREACH_ADD_SCALAR, both, 2, sums, 2));
  for (int i = 0; i < 2; i++) OK(graft_tensor_copy(in[i], sums[crossed ? 1 - i : i]));
  for (int i = 0; i < 2; i++) later(sums[i]);
  out[0] = retained(CALL(EXP, T(in[0])));
}
static void lists_copied_back(graft_tensor **in, graft_tensor **out) {
  copy_lists_back(in, out, false);
}
static void lists_copied_back_crossed(graft_tensor **in, graft_tensor **out) {
  copy_lists_back(in, out, true);
}

/* Gradients of a leaf that is made here, as of an input that requires grad. */
static void gradients(graft_tensor **in, graft_tensor **out) {
  graft_tensor *w, *loss;
  OK(graft_tensor_detach(in[0], &w));
  OK(graft_tensor_set_requires_grad(w, true));
  graft_tensor *y = CALL(TANH, T(CALL(MM, T(in[1]), T(w))));
  loss = TOTAL(CALL(MUL_TENSOR, T(y), T(y)));
  OK(graft_backward(&loss, NULL, 1, 0));
  out[0] = retained(graft_tensor_grad(w));
  graft_tensor *z = TOTAL(CALL(EXP, T(w))), *first = NULL, *second = NULL;
  OK(graft_grad(&z, NULL, 1, &w, 1, GRAFT_BACKWARD_CREATE_GRAPH, &first));
  graft_tensor *s = TOTAL(later(first));
  OK(graft_grad(&s, NULL, 1, &w, 1, 0, &second));
  out[1] = second;
  OK(graft_tensor_set_grad(w, NULL));
  graft_tensor_release(w);
}

/* Two steps of descent. */
static void training(graft_tensor **in, graft_tensor **out) {
  for (int step = 0; step < 2; step++) {
    graft_tensor *w, *b, *loss;
    OK(graft_tensor_detach(in[0], &w));
    OK(graft_tensor_detach(in[1], &b));
    OK(graft_tensor_set_requires_grad(w, true));
    OK(graft_tensor_set_requires_grad(b, true));
    graft_tensor *y = CALL(RELU, T(CALL(ADD_TENSOR, T(CALL(MM, T(in[2]), T(w))), T(b))));
    loss = CALL(MEAN, T(CALL(MUL_TENSOR, T(y), T(y))));
    OK(graft_backward(&loss, NULL, 1, 0));
    bool grad = graft_grad_mode_set(false);
    WRITE(in[0], SUB_TENSOR, T(in[0]), T(CALL(MUL_TENSOR, T(graft_tensor_grad(w)), NUMBER(0.125))));
    WRITE(in[1], SUB_TENSOR, T(in[1]), T(CALL(MUL_TENSOR, T(graft_tensor_grad(b)), NUMBER(0.125))));
    graft_grad_mode_set(grad);
    out[step] = retained(loss);
    later(w);
    later(b);
  }
  for (int step = 0; step < 2; step++) {
    graft_tensor *plain;
    OK(graft_tensor_detach(out[step], &plain));
    graft_tensor_release(out[step]);
    out[step] = plain;
  }
}

static void self_transposed(graft_tensor **in, graft_tensor **out) {
  graft_tensor *x = CALL(MUL_TENSOR, T(in[0]), NUMBER(2));
  out[0] = retained(CALL(ADD_TENSOR, T(x), T(CALL(PERMUTE, T(x), INTS(1, 0)))));
}

/* Only what the op writes besides its results is looked at. */
static void statistics(graft_tensor **in, graft_tensor **out) {
  graft_tensor *unused[3] = {0};
  norm(in, unused);
  for (int i = 0; i < 3; i++) later(unused[i]);
  out[0] = retained(CALL(EXP, T(in[3])));
}

static void same_then_written(graft_tensor **in, graft_tensor **out) {
  graft_tensor *x = CALL(EXP, T(in[0])), *y = CALL(EXP, T(in[0]));
  WRITE(y, ADD_TENSOR, T(y), NUMBER(1));
  out[0] = retained(CALL(MUL_TENSOR, T(x), T(y)));
  const graft_value args[] = {INTS(3, 4), NUMBER(2), {0}, {0}, {GRAFT_VALUE_DEVICE, 0, {.device = in[0]->device}}};
  graft_tensor *c = calls(GRAFT_OP_FULL, args, 5);
  WRITE(c, ADD_TENSOR, T(c), T(in[0]));
  out[1] = retained(c);
}

static graft_tensor *filled(graft_rt_device *device, int64_t rows, int64_t columns, double number) {
  graft_tensor *t;
  OK(graft_tensor_empty(device, GRAFT_F32, 2, (int64_t[]){rows, columns}, &t));
  WRITE(t, FILL_SCALAR, T(t), NUMBER(number));
  return later(t);
}

/* Of the first one an element is enough; the product needs all of the second; the third is seen. */
static void fills(graft_tensor **in, graft_tensor **out) {
  graft_tensor *spread = filled(in[0]->device, 3, 4, 0.3), *whole = filled(in[0]->device, 4, 2, 0.7);
  graft_tensor *turned = CALL(PERMUTE, T(spread), INTS(1, 0));
  out[0] = retained(CALL(MUL_TENSOR, T(in[0]), T(spread)));
  out[1] = retained(CALL(ADD_TENSOR, T(CALL(PERMUTE, T(out[0]), INTS(1, 0))), T(turned)));
  out[2] = retained(CALL(MM, T(in[0]), T(whole)));
  out[3] = retained(filled(in[0]->device, 2, 2, 0.9));
}

#define F32(...) \
  { GRAFT_F32, sizeof((int[]){__VA_ARGS__}) / sizeof(int), {__VA_ARGS__}, {0}, 0 }
#define OF(dtype, ...) \
  { dtype, sizeof((int[]){__VA_ARGS__}) / sizeof(int), {__VA_ARGS__}, {0}, 0 }

static const program programs[] = {
    {"chain", {F32(3, 4), F32(4)}, chain, 1, 5},
    {"writes_input", {F32(3, 4), F32(3, 4)}, writes_input, 2, 3},
    {"writes_through_view", {F32(3, 4)}, writes_through_view, 1, 2},
    {"output_is_input", {F32(3, 4)}, output_is_input, 3, 1},
    {"views_of_a_value", {F32(3, 4)}, views_of_a_value, 2, 3},
    {"in_place_on_value", {F32(3, 4)}, in_place_on_value, 1, 4},
    {"expanded", {{GRAFT_F32, 2, {4, 4}, {0, 1}, 4 * 4}, {GRAFT_F32, 2, {4, 4}, {1, 5}, 20 * 4}}, expanded, 2, 2},
    {"nothing", {F32(0, 4)}, nothing, 2, 0},
    {"random_draws", {F32(3, 5)}, random_draws, 2, 7},
    {"same_twice", {F32(3, 4)}, same_twice, 3, 3},
    {"conjugates", {OF(GRAFT_C64, 3)}, conjugates, 3, 2},
    {"conversions", {F32(3, 4), OF(GRAFT_I64, 5)}, conversions, 3, 5},
    {"makes_constants", {F32(3, 4)}, makes_constants, 2, 1},
    {"norm", {F32(2, 3, 4), F32(3), F32(3), F32(3), F32(3)}, norm, 3, 0},
    {"lists", {F32(3, 4), F32(2, 4)}, lists, 2, 0},
    {"copied_back", {F32(3, 4), F32(3, 4)}, copied_back, 1, 2},
    {"copied_back_into_a_part", {F32(3, 4), F32(4)}, copied_back_into_a_part, 1, 2},
    {"looked_at_before", {F32(3, 4), F32(3, 4)}, looked_at_before_it_is_copied_back, 1, 3},
    {"copied_back_turned", {F32(4, 4), F32(4, 4)}, copied_back_turned, 1, 3},
    {"copied_back_then_written", {F32(3, 4), F32(3, 4)}, copied_back_then_written, 1, 4},
    {"copied_back_and_seen", {F32(3, 4), F32(3, 4)}, copied_back_and_seen, 1, 2},
    {"lists_copied_back", {F32(3, 4), F32(3, 4)}, lists_copied_back, 1, 2},
    {"lists_copied_back_crossed", {F32(3, 4), F32(3, 4)}, lists_copied_back_crossed, 1, 4},
    {"self_transposed", {F32(4, 4)}, self_transposed, 1, 2},
    {"statistics", {F32(2, 3, 4), F32(3), F32(3), F32(3), F32(3)}, statistics, 1, 0},
    {"same_then_written", {F32(3, 4)}, same_then_written, 2, 6},
    {"fills", {F32(3, 4)}, fills, 4, 0},
    {"gradients", {F32(4, 3), F32(2, 4)}, gradients, 2, 0},
    {"training", {F32(4, 3), F32(3), F32(2, 4)}, training, 2, 0},
};

static const char *const choices[] = {NULL,    "none",  "-dead",    "-cse",    "-fold",       "-direct",
                                      "-late", "-fuse", "-inplace", "-memory", "-cse,-memory"};

static void compare_run(const program *p, graft_graph_exec *exec, graft_rt_device *device) {
  graft_generator *generator = graft_generator_default(device);
  graft_tensor *own[MOST], *in[MOST], *expected[MOST] = {0}, *out[MOST] = {0};
  const uint32_t ninputs = count_inputs(p);
  make_inputs(p, device, own);
  make_inputs(p, device, in);
  uint64_t seed, offset[2];
  graft_generator_set_state(generator, 7, 32);
  run_calls(p, own, expected);
  graft_generator_state(generator, &seed, &offset[0]);
  graft_generator_set_state(generator, 7, 32);
  OK(graft_graph_run(exec, in, ninputs, out, p->noutputs));
  graft_generator_state(generator, &seed, &offset[1]);
  ck_assert_uint_eq(offset[0], offset[1]);
  for (uint32_t i = 0; i < p->noutputs; i++) expect_same(p, "output", i, out[i], expected[i]);
  for (uint32_t i = 0; i < ninputs; i++) expect_same(p, "input", i, in[i], own[i]);
  /* Which of them are one memory. */
  for (uint32_t i = 0; i < p->noutputs; i++) {
    for (uint32_t j = 0; j < ninputs; j++)
      ck_assert_msg((out[i]->storage == in[j]->storage) == (expected[i]->storage == own[j]->storage),
                    "%s: output %u and input %u", p->name, i, j);
    for (uint32_t j = 0; j < i; j++)
      ck_assert_msg((out[i]->storage == out[j]->storage) == (expected[i]->storage == expected[j]->storage),
                    "%s: outputs %u and %u", p->name, i, j);
  }
  release_all(own, ninputs);
  release_all(in, ninputs);
  release_all(expected, p->noutputs);
  release_all(out, p->noutputs);
}

static void run_both_ways(const program *p, graft_rt_device *device, int nchoices) {
  graft_tensor *like[MOST];
  make_inputs(p, device, like);
  const int64_t before = atomic_load(&device->storages);
  graft_graph *graph = record(p, device, like);
  for (int c = 0; c < nchoices; c++) {
    graft_graph_exec *exec;
    OK(graft_graph_compile(graph, device, choices[c], &exec));
    for (int n = 0; n < 2; n++) compare_run(p, exec, device);
    graft_graph_exec_info info;
    OK(graft_graph_exec_query(exec, &info, sizeof info));
    if (!c && p->nodes) ck_assert_msg(info.nodes == p->nodes, "%s: %u nodes are left", p->name, info.nodes);
    ck_assert_uint_le(info.arena_bytes, info.value_bytes + 4096);
    graft_graph_exec_destroy(exec);
  }
  graft_graph *back = through_file(graph, device, p->name);
  graft_graph_exec *exec;
  OK(graft_graph_compile(back, device, NULL, &exec));
  compare_run(p, exec, device);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(back);
  graft_graph_destroy(graph);
  ck_assert_int_eq(atomic_load(&device->storages), before);
  release_all(like, count_inputs(p));
}

/* On the reference device, one that most ops leave, and OpenCL. */
START_TEST(runs_as_calls_do) {
  graft_rt_device *device = device_of(_i % DEVICES);
  if (device) run_both_ways(&programs[_i / DEVICES], device, device->is_reference ? ROWS(choices) : 2);
}
END_TEST

/* On a plugin that takes groups: of what follows each other; around what it leaves out; and that refuses them all. */
static const char *const groupings[] = {"groups=runs", "groups=spread", "groups=refused"};
enum { GROUPINGS = sizeof groupings / sizeof *groupings };

START_TEST(runs_in_groups_as_calls_do) {
  graft_rt_device *device = device_at(test_plugin("groups"), (const char *const[]){groupings[_i % GROUPINGS], NULL}, 0);
  ck_assert_msg(device, "%s", graft_last_error());
  run_both_ways(&programs[_i / GROUPINGS], device, ROWS(choices));
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(runs_as_calls_do, ROWS(programs) * DEVICES),
                              EACH(runs_in_groups_as_calls_do, ROWS(programs) * GROUPINGS),
                              {0}};
  /* One process: PoCL reads ten megabytes in each that compiles. */
  return run_suite("graph", tests,
                   (suite_options){.setup = files_begin, .teardown = files_end, .shared_process = true});
}
