/* Graphs: what a recorded program gives is what its calls give, to the bit, whichever passes run; what can't be
 * recorded is refused; passes do what they are for. */
#include <pthread.h>
#include <stdio.h>

#include "graft/bridge.h"
#include "graph/graph.h"
#include "graph_programs.h"
#include "heap.h"
#include "null_device.h"
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
    {"self_transposed", {F32(4, 4)}, self_transposed, 1, 2},
    {"statistics", {F32(2, 3, 4), F32(3), F32(3), F32(3), F32(3)}, statistics, 1, 0},
    {"same_then_written", {F32(3, 4)}, same_then_written, 2, 6},
    {"gradients", {F32(4, 3), F32(2, 4)}, gradients, 2, 0},
    {"training", {F32(4, 3), F32(3), F32(2, 4)}, training, 2, 0},
};

static const char *const choices[] = {NULL, "none", "-dead", "-cse", "-fold", "-inplace", "-memory", "-cse,-memory"};

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

/* --- what is bound --- */

static graft_rt_device *reference(void) {
  return graft_device_reference();
}

static graft_tensor *host(graft_dtype dtype, int64_t n, const void *values) {
  graft_tensor *t;
  OK(graft_tensor_from_host(reference(), dtype, 1, &n, values, &t));
  return t;
}

static void assert_says(graft_status is, graft_status expected, const char *text) {
  ck_assert_msg(is == expected, "status %d, expected %d: %s", is, expected, graft_last_error());
  ck_assert_msg(strstr(graft_last_error(), text) != NULL, "\"%s\" does not say \"%s\"", graft_last_error(), text);
}

/* out = a * 2; a += b */
static graft_graph_exec *two_inputs(int64_t n) {
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *a, *b, *out = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "a", GRAFT_F32, 1, &n, NULL, &a));
  OK(graft_graph_input(graph, "b", GRAFT_F32, 1, &n, NULL, &b));
  OK(graft_graph_call(graph, GRAFT_OP_MUL_TENSOR, (graft_value[]){T(a), NUMBER(2)}, 2, &out, 1));
  OK(graft_graph_call(graph, GRAFT_OP_ADD_TENSOR, (graft_value[]){T(a), T(b)}, 2, &a, 1));
  OK(graft_graph_output(graph, "out", out));
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  ck_assert_uint_eq(graft_graph_node_count(graph), 2);
  ck_assert_uint_eq(graft_graph_input_count(graph), 2);
  ck_assert_uint_eq(graft_graph_output_count(graph), 1);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){a, b, out}, 3);
  return exec;
}

static void expect_values(graft_tensor *t, int n, const float *expected) {
  float is[16];
  ck_assert_int_eq(t->numel, n);
  OK(graft_tensor_to_host(t, is));
  for (int i = 0; i < n; i++)
    ck_assert_msg(is[i] == expected[i], "element %d is %g, expected %g", i, is[i], expected[i]);
}

START_TEST(inputs_are_checked) {
  graft_graph_exec *exec = two_inputs(3);
  graft_tensor *a = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *wide = host(GRAFT_F64, 3, (double[]){1, 2, 3});
  graft_tensor *longer = host(GRAFT_F32, 4, (float[]){1, 2, 3, 4}), *out = NULL, *apart, *leaf;
  assert_says(graft_graph_run(exec, &a, 1, &out, 1), GRAFT_INVALID_ARGUMENT, "2 inputs");
  assert_says(graft_graph_run(exec, (graft_tensor *[]){a, a}, 2, &out, 0), GRAFT_INVALID_ARGUMENT, "1 outputs");
  assert_says(graft_graph_run(exec, (graft_tensor *[]){a, NULL}, 2, &out, 1), GRAFT_INVALID_ARGUMENT,
              "input b is NULL");
  assert_says(graft_graph_run(exec, (graft_tensor *[]){a, wide}, 2, &out, 1), GRAFT_INVALID_ARGUMENT, "input b is f64");
  assert_says(graft_graph_run(exec, (graft_tensor *[]){longer, a}, 2, &out, 1), GRAFT_INVALID_ARGUMENT, "input a is");
  const int64_t size = 3, two = 2, one = 1;
  graft_tensor *six = host(GRAFT_F32, 6, (float[]){1, 2, 3, 4, 5, 6});
  OK(tns_new(six->storage, reference(), GRAFT_F32, 1, &size, &two, 0, &apart));
  assert_says(graft_graph_run(exec, (graft_tensor *[]){a, apart}, 2, &out, 1), GRAFT_INVALID_ARGUMENT, "strides");
  /* What is written shares nothing with another input; what is read may. */
  graft_tensor *left, *right;
  OK(tns_new(six->storage, reference(), GRAFT_F32, 1, &size, &one, 0, &left));
  OK(tns_new(six->storage, reference(), GRAFT_F32, 1, &size, &one, 2, &right));
  assert_says(graft_graph_run(exec, (graft_tensor *[]){left, right}, 2, &out, 1), GRAFT_INVALID_ARGUMENT,
              "share memory");
  assert_says(graft_graph_run(exec, (graft_tensor *[]){a, a}, 2, &out, 1), GRAFT_INVALID_ARGUMENT, "share memory");
  OK(graft_tensor_detach(a, &leaf));
  OK(graft_tensor_set_requires_grad(leaf, true));
  assert_says(graft_graph_run(exec, (graft_tensor *[]){left, leaf}, 2, &out, 1), GRAFT_INVALID_ARGUMENT,
              "requires grad");
  ck_assert_ptr_null(out);
  expect_values(a, 3, (float[]){1, 2, 3});
  bool grad = graft_grad_mode_set(false);
  OK(graft_graph_run(exec, (graft_tensor *[]){left, leaf}, 2, &out, 1));
  graft_grad_mode_set(grad);
  assert_says(GRAFT_OK, GRAFT_OK, "requires grad"); /* what goes well leaves the text of what did not */
  expect_values(six, 6, (float[]){2, 4, 6, 4, 5, 6});
  expect_values(out, 3, (float[]){2, 4, 6});
  graft_graph_exec_destroy(exec);
  release_all((graft_tensor *[]){a, wide, longer, out, apart, leaf, six, left, right}, 9);
}
END_TEST

/* Plans are for aligned inputs; another one takes the long way, to the same end. */
START_TEST(inputs_may_begin_anywhere) {
  graft_graph_exec *exec = two_inputs(3);
  graft_tensor *six = host(GRAFT_F32, 6, (float[]){9, 1, 2, 3, 4, 5}), *b = host(GRAFT_F32, 3, (float[]){1, 1, 1});
  graft_tensor *at, *out = NULL;
  const int64_t size = 3, one = 1;
  OK(tns_new(six->storage, reference(), GRAFT_F32, 1, &size, &one, 1, &at));
  uint64_t version = graft_tensor_version(six);
  OK(graft_graph_run(exec, (graft_tensor *[]){at, b}, 2, &out, 1));
  ck_assert_uint_gt(graft_tensor_version(six), version);
  expect_values(six, 6, (float[]){9, 2, 3, 4, 4, 5});
  expect_values(out, 3, (float[]){2, 4, 6});
  graft_graph_exec_destroy(exec);
  release_all((graft_tensor *[]){six, b, at, out}, 4);
}
END_TEST

/* --- what is recorded --- */

START_TEST(constants_are_values) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *c = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *x, *first = NULL, *second = NULL, *out[3];
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_add_Tensor(x, c, graft_scalar_int(1), &first));
  OK(graft_graph_record_end(graph));
  OK(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(c), NUMBER(10)}, 2, &c, 1));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_add_Tensor(x, c, graft_scalar_int(1), &second)); /* the same tensor with other values */
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "first", first));
  OK(graft_graph_output(graph, "second", second));
  OK(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(c), NUMBER(10)}, 2, &c, 1));
  graft_tensor_release(c);
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  graft_graph_destroy(graph); /* what was compiled stays */
  graft_tensor *in = host(GRAFT_F32, 3, (float[]){0, 0, 1});
  OK(graft_graph_run(exec, &in, 1, out, 2));
  expect_values(out[0], 3, (float[]){1, 2, 4});
  expect_values(out[1], 3, (float[]){10, 20, 31});
  graft_graph_exec_destroy(exec);
  release_all((graft_tensor *[]){x, first, second, in, out[0], out[1]}, 6);
}
END_TEST

/* A constant that comes out is the caller's to write to. */
START_TEST(constants_come_out_as_copies) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *c = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *x, *sum = NULL, *view = NULL, *out[2];
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_exp(c, &view)); /* folded */
  OK(graft_op_add_Tensor(x, view, graft_scalar_int(1), &sum));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "sum", sum));
  OK(graft_graph_output(graph, "constant", view));
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  for (int i = 0; i < 2; i++) {
    OK(graft_graph_run(exec, &c, 1, out, 2));
    float values[3];
    OK(graft_tensor_to_host(out[1], values));
    ck_assert_msg(values[0] > 2.7f && values[0] < 2.8f, "%g", values[0]);
    OK(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(out[1]), NUMBER(10)}, 2, &out[1], 1));
    release_all(out, 2);
  }
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){c, x, sum, view}, 4);
}
END_TEST

/* What a rule reads of the thread is as it was when the call was recorded. */
START_TEST(the_default_dtype_is_kept) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *x, *third = NULL, *out = NULL, *in = host(GRAFT_I64, 3, (int64_t[]){1, 2, 3});
  OK(graft_default_dtype_set(GRAFT_F64));
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_I64, 1, &n, NULL, &x));
  OK(graft_graph_call(graph, GRAFT_OP_DIV_TENSOR, (graft_value[]){T(x), NUMBER(3)}, 2, &third, 1));
  OK(graft_graph_output(graph, "third", third));
  OK(graft_default_dtype_set(GRAFT_F32));
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  OK(graft_graph_run(exec, &in, 1, &out, 1));
  double is[3];
  ck_assert_int_eq(out->dtype, GRAFT_F64);
  OK(graft_tensor_to_host(out, is));
  ck_assert(is[0] == 1.0 / 3);
  ck_assert_int_eq(graft_default_dtype_get(), GRAFT_F32);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, third, out, in}, 4);
}
END_TEST

/* A value that backward needs and that was written over is found while recording, too. */
START_TEST(stale_values_are_found) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_tensor *x, *y = NULL, *sum = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_tensor_set_requires_grad(x, true));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_exp(x, &y));
  OK(graft_op_sum_dim_IntList(y, NULL, 0, false, GRAFT_DTYPE_NONE, &sum));
  bool grad = graft_grad_mode_set(false);
  OK(graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){T(y), NUMBER(1)}, 2, &y, 1));
  graft_grad_mode_set(grad);
  assert_says(graft_backward(&sum, NULL, 1, 0), GRAFT_INVALID_ARGUMENT, "changed in place");
  OK(graft_graph_record_end(graph));
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, y, sum}, 3);
}
END_TEST

START_TEST(refusals_name_the_op) {
  const int64_t n = 3;
  graft_graph *graph, *other;
  graft_tensor *x, *y, *t = NULL, *c = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *leaf;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_create(reference(), &other));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_input(other, "y", GRAFT_F32, 1, &n, NULL, &y));
  assert_says(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &t), GRAFT_INVALID_ARGUMENT, "named x");
  assert_says(graft_graph_record_end(graph), GRAFT_INVALID_ARGUMENT, "does not record");
  OK(graft_graph_record_begin(graph));
  assert_says(graft_graph_record_begin(other), GRAFT_INVALID_ARGUMENT, "already");
  assert_says(graft_graph_record_end(other), GRAFT_INVALID_ARGUMENT, "does not record");
  graft_graph_exec *exec = NULL;
  assert_says(graft_graph_compile(other, reference(), NULL, &exec), GRAFT_INVALID_ARGUMENT, "records a graph");
  const graft_value written[] = {T(c), NUMBER(1)};
  assert_says(graft_call(GRAFT_OP_ADD_TENSOR, written, 2, &c, 1), GRAFT_INVALID_ARGUMENT, "aten::add.Tensor");
  assert_says(graft_op_exp(y, &t), GRAFT_INVALID_ARGUMENT, "another graph");
  OK(graft_tensor_detach(c, &leaf));
  OK(graft_tensor_set_requires_grad(leaf, true));
  assert_says(graft_op_exp(leaf, &t), GRAFT_INVALID_ARGUMENT, "requires grad");
  assert_says(graft_op_mm(x, x, &t), GRAFT_INVALID_ARGUMENT, "aten::mm");
  ck_assert_uint_eq(graft_graph_node_count(graph), 0); /* none of these left anything */
  OK(graft_op_exp(x, &t));
  OK(graft_graph_record_end(graph));
  ck_assert_uint_eq(graft_graph_node_count(graph), 1);
  expect_values(c, 3, (float[]){1, 2, 3});
  /* Values of a graph are none outside. */
  float values[3];
  assert_says(graft_tensor_to_host(t, values), GRAFT_INVALID_ARGUMENT, "value of a graph");
  assert_says(graft_tensor_copy(c, t), GRAFT_INVALID_ARGUMENT, "value of a graph");
  graft_tensor *none = NULL;
  assert_says(graft_op_exp(t, &none), GRAFT_INVALID_ARGUMENT, "no memory");
  assert_says(graft_graph_output(other, "t", t), GRAFT_INVALID_ARGUMENT, "another one");
  assert_says(graft_graph_output(graph, "c", c), GRAFT_INVALID_ARGUMENT, "no value of this graph");
  assert_says(graft_graph_compile(graph, reference(), "-cse,fold", &exec), GRAFT_INVALID_ARGUMENT, "\"fold\"");
  graft_graph_destroy(graph);
  graft_graph_destroy(other);
  release_all((graft_tensor *[]){x, y, t, c, leaf}, 5);
}
END_TEST

static graft_status read_item(graft_tensor *x) {
  graft_scalar value;
  graft_tensor *one = NULL;
  graft_status status = graft_op_select_int(x, 0, 0, &one);
  if (!status) status = graft_tensor_item(one, &value);
  graft_tensor_release(one);
  return status;
}
static graft_status read_all(graft_tensor *x) {
  float values[3];
  return graft_tensor_to_host(x, values);
}
static graft_status bring(graft_tensor *x) {
  graft_tensor *t;
  return graft_tensor_from_host(x->device, GRAFT_F32, 1, x->sizes, (float[]){1, 2, 3}, &t);
}
static graft_status find_nonzero(graft_tensor *x) {
  graft_tensor *t = NULL;
  return graft_op_nonzero(x, &t);
}

static const struct {
  graft_status (*call)(graft_tensor *x);
  const char *name;
} ends[] = {{read_item, "graft_tensor_item"},
            {read_all, "graft_tensor_to_host"},
            {bring, "graft_tensor_from_host"},
            {find_nonzero, "aten::nonzero"}};

START_TEST(what_depends_on_values_ends_it) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_graph_exec *exec = NULL;
  graft_tensor *x, *t = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_record_begin(graph));
  assert_says(ends[_i].call(x), GRAFT_UNIMPLEMENTED, ends[_i].name);
  assert_says(graft_op_exp(x, &t), GRAFT_INVALID_ARGUMENT, ends[_i].name);
  assert_says(graft_graph_record_end(graph), GRAFT_INVALID_ARGUMENT, ends[_i].name);
  assert_says(graft_graph_record_begin(graph), GRAFT_INVALID_ARGUMENT, ends[_i].name);
  assert_says(graft_graph_compile(graph, reference(), NULL, &exec), GRAFT_INVALID_ARGUMENT, ends[_i].name);
  graft_graph_destroy(graph);
  OK(graft_tensor_from_host(reference(), GRAFT_F32, 1, &n, (float[]){1, 2, 3}, &t)); /* calls run again */
  release_all((graft_tensor *[]){x, t}, 2);
}
END_TEST

/* A graph that goes while it is recorded leaves the thread as it was. */
START_TEST(destroying_ends_recording) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_tensor *x, *y = NULL, *t;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_exp(x, &y));
  graft_graph_destroy(graph);
  OK(graft_tensor_from_host(reference(), GRAFT_F32, 1, &n, (float[]){1, 2, 3}, &t));
  release_all((graft_tensor *[]){x, y, t}, 3);
}
END_TEST

START_TEST(a_failing_node_is_named) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *x, *index, *plus = NULL, *taken = NULL, *out = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_input(graph, "index", GRAFT_I64, 1, &n, NULL, &index));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_exp(x, &plus));
  OK(graft_op_index_select(plus, 0, index, &taken));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "taken", taken));
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  graft_tensor *in[] = {host(GRAFT_F32, 3, (float[]){1, 2, 3}), host(GRAFT_I64, 3, (int64_t[]){0, 7, 1})};
  assert_says(graft_graph_run(exec, in, 2, &out, 1), GRAFT_OUT_OF_RANGE,
              "graph node 1: reference:0: aten::index_select");
  ck_assert_ptr_null(out);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, index, plus, taken, in[0], in[1]}, 6);
}
END_TEST

/* A graph, compiled or not, keeps its device open as a tensor does. */
START_TEST(keeps_its_device_open) {
  graft_rt_device *device = null_device(NULL);
  graft_rt_backend *backend = device->backend;
  graft_graph *graph;
  graft_graph_exec *exec;
  OK(graft_graph_create(device, &graph));
  assert_says(graft_backend_close(backend), GRAFT_INVALID_ARGUMENT, "in use");
  OK(graft_graph_compile(graph, device, NULL, &exec));
  graft_graph_destroy(graph);
  assert_says(graft_backend_close(backend), GRAFT_INVALID_ARGUMENT, "in use");
  graft_graph_exec_destroy(exec);
  OK(graft_backend_close(backend));
}
END_TEST

/* A graph that was recorded for one device runs on another one: the values are those of that device's calls. */
START_TEST(compiles_for_another_device) {
  const int64_t n = 3;
  graft_rt_device *device = device_of(1 + _i);
  if (!device) return;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *c = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *x, *sum = NULL, *made = NULL, *moved, *out = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_full(&n, 1, graft_scalar_float(10), GRAFT_F32, reference(), &made));
  OK(graft_op_add_Tensor(x, c, graft_scalar_int(1), &sum));
  OK(graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){T(sum), T(made)}, 2, &sum, 1));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "sum", sum));
  OK(graft_graph_compile(graph, device, NULL, &exec));
  graft_graph_destroy(graph);
  assert_says(graft_graph_run(exec, &c, 1, &out, 1), GRAFT_INVALID_ARGUMENT, "on reference:0");
  OK(graft_tensor_to(c, device, GRAFT_DTYPE_NONE, &moved));
  OK(graft_graph_run(exec, &moved, 1, &out, 1));
  ck_assert_ptr_eq(out->device, device);
  expect_values(out, 3, (float[]){12, 14, 16});
  graft_graph_exec_destroy(exec);
  release_all((graft_tensor *[]){c, x, sum, made, moved, out}, 6);
}
END_TEST

/* --- memory that can't be had --- */

/* All of it: two inputs, a constant, a call in place, a view, a draw, and two runs. */
static graft_status make_and_run(void) {
  const int64_t n = 3;
  graft_graph *graph = NULL;
  graft_graph_exec *exec = NULL;
  graft_tensor *in[2] = {NULL}, *c = NULL, *sum = NULL, *twice = NULL, *out[2] = {NULL}, *x = NULL;
  graft_status status = graft_tensor_from_host(reference(), GRAFT_F32, 1, &n, (float[]){1, 2, 3}, &c);
  if (!status) status = graft_graph_create(reference(), &graph);
  for (int i = 0; i < 2 && !status; i++)
    status = graft_graph_input(graph, i ? "b" : "a", GRAFT_F32, 1, &n, NULL, &in[i]);
  if (!status) status = graft_graph_record_begin(graph);
  bool began = !status;
  if (!status) status = graft_op_add_Tensor(in[0], c, graft_scalar_int(1), &sum);
  if (!status) status = graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(in[1]), T(sum)}, 2, &in[1], 1);
  if (!status) status = graft_op_exp(c, &twice);
  if (!status) status = graft_op_add_Tensor(sum, twice, graft_scalar_int(1), &x);
  if (began) graft_graph_record_end(graph);
  if (!status) status = graft_graph_output(graph, "x", x);
  if (!status) status = graft_graph_output(graph, "b", in[1]);
  if (!status) status = graft_graph_compile(graph, reference(), NULL, &exec);
  graft_tensor *given[2] = {NULL};
  for (int i = 0; i < 2 && !status; i++)
    status = graft_tensor_from_host(reference(), GRAFT_F32, 1, &n, (float[]){1, 2, 3}, &given[i]);
  if (!status) status = graft_graph_run(exec, given, 2, out, 2);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){in[0], in[1], c, sum, twice, x, given[0], given[1], out[0], out[1]}, 10);
  return status;
}

/* Each request fails once: an error, and nothing is left behind. */
START_TEST(memory_runs_out_anywhere) {
  OK(make_and_run());
  const int64_t before = atomic_load(&reference()->storages);
  uint64_t failed = 0;
  for (uint64_t at = 1;; at++) {
    heap_failing = heap_calls + at;
    graft_status status = make_and_run();
    bool reached = heap_calls >= heap_failing;
    heap_failing = 0;
    ck_assert_int_eq(atomic_load(&reference()->storages), before);
    if (!reached) break;
    failed += status != GRAFT_OK;
    ck_assert_msg(!status || status == GRAFT_OUT_OF_MEMORY, "request %llu: %s", (unsigned long long)at,
                  graft_last_error());
    OK(make_and_run());
  }
  ck_assert_uint_gt(failed, 50);
}
END_TEST

/* --- many at once --- */

static void *run_often(void *context) {
  graft_graph_exec *exec = context;
  for (int i = 0; i < 200; i++) {
    graft_tensor *in[] = {host(GRAFT_F32, 3, (float[]){(float)i, 2, 3}), host(GRAFT_F32, 3, (float[]){1, 1, 1})}, *out;
    OK(graft_graph_run(exec, in, 2, &out, 1));
    expect_values(out, 3, (float[]){(float)(2 * i), 4, 6});
    expect_values(in[0], 3, (float[]){(float)(i + 1), 3, 4});
    release_all((graft_tensor *[]){in[0], in[1], out}, 3);
  }
  return NULL;
}

START_TEST(two_threads_run_it) {
  graft_graph_exec *exec = two_inputs(3);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, run_often, exec), 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  graft_graph_exec_destroy(exec);
}
END_TEST

/* --- the memory plan --- */

typedef struct plan_row {
  const char *name;
  gr_usage usages[6];
  uint32_t count;
  uint64_t alignment, most;
  gr_spot spots[6];
  uint64_t arenas[3]; /* up to the first 0 */
} plan_row;

static const plan_row plans[] = {
    {"none", {{0, 0, 0}}, 0, 64, 1000, {{0, 0}}, {0}},
    {"of no bytes", {{0, 0, 3}}, 1, 64, 1000, {{GR_NONE, 0}}, {0}},
    {"one behind the other", {{10, 0, 1}, {10, 2, 3}}, 2, 1, 1000, {{0, 0}, {0, 0}}, {10}},
    {"both ends count", {{10, 0, 1}, {10, 1, 3}}, 2, 1, 1000, {{0, 0}, {0, 10}}, {20}},
    {"aligned", {{10, 0, 1}, {10, 1, 3}}, 2, 64, 1000, {{0, 0}, {0, 64}}, {128}},
    {"largest first", {{10, 0, 2}, {30, 1, 2}, {20, 2, 3}}, 3, 1, 1000, {{0, 50}, {0, 0}, {0, 30}}, {60}},
    {"the smallest gap", /* behind 40 bytes there is a gap of 20, behind 30 more one of 15 */
     {{40, 0, 9}, {20, 0, 1}, {35, 0, 9}, {15, 0, 1}, {33, 0, 9}, {14, 2, 3}},
     6,
     1,
     1000,
     {{0, 0}, {0, 108}, {0, 40}, {0, 128}, {0, 75}, {0, 108}},
     {143}},
    {"no larger than allowed", {{60, 0, 1}, {60, 0, 1}, {30, 0, 1}}, 3, 1, 100, {{0, 0}, {1, 0}, {0, 60}}, {90, 60}},
    {"one is too large", {{200, 0, 1}, {30, 0, 1}}, 2, 1, 100, {{0, 0}, {1, 0}}, {200, 30}},
};

START_TEST(memory_is_planned) {
  const plan_row *row = &plans[_i];
  gr_spot spots[6];
  uint64_t *arenas;
  uint32_t narenas, expected = 0;
  OK(gr_plan_memory(row->usages, row->count, row->alignment, row->most, spots, &arenas, &narenas));
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
    OK(gr_plan_memory(usages, COUNT, 32, 2000, spots, &arenas, &narenas));
    for (int i = 0; i < COUNT; i++) {
      if (!usages[i].bytes) continue;
      ck_assert_uint_eq(spots[i].offset % 32, 0);
      ck_assert_uint_le(spots[i].offset + usages[i].bytes, arenas[spots[i].arena]);
      ck_assert_uint_le(arenas[spots[i].arena], 2000);
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
  const suite_test tests[] = {EACH(runs_as_calls_do, ROWS(programs) * DEVICES),
                              ONCE(inputs_are_checked),
                              ONCE(inputs_may_begin_anywhere),
                              ONCE(constants_are_values),
                              ONCE(constants_come_out_as_copies),
                              ONCE(the_default_dtype_is_kept),
                              ONCE(stale_values_are_found),
                              ONCE(refusals_name_the_op),
                              EACH(what_depends_on_values_ends_it, ROWS(ends)),
                              ONCE(destroying_ends_recording),
                              ONCE(a_failing_node_is_named),
                              EACH(compiles_for_another_device, DEVICES - 1),
                              ONCE(memory_runs_out_anywhere),
                              ONCE(keeps_its_device_open),
                              ONCE(two_threads_run_it),
                              EACH(memory_is_planned, ROWS(plans)),
                              ONCE(plans_keep_values_apart),
                              ONCE(values_share_memory),
                              ONCE(the_environment_takes_passes_out),
                              {0}};
  return run_suite("graph", tests, (suite_options){.timeout_s = 60});
}
