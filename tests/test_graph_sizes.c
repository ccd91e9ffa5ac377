/* Graphs with open sizes: at any sizes a recorded program gives what its calls give there, to the bit; what can't be is
 * said. */
#include <pthread.h>

#include "graph_programs.h"
#include "suite.h"

/* A program of tensors and of sizes n and m, which are numbers when it is called and names when it is recorded. */
typedef struct sized_program {
  const char *name;
  int32_t ninputs;
  int32_t ndim[3];
  const char *dims[3][3]; /* "n", "m", or digits */
  void (*run)(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m);
  uint32_t noutputs;
  int learns; /* the input that requires grad, from 1 on; 0: none */
} sized_program;

static graft_graph *recorded; /* NULL: calls run */

/* A formula, as a name or as a number. */
static int64_t of(graft_size_op op, int64_t a, int64_t b) {
  if (recorded) {
    int64_t size;
    OK(graft_graph_size_of(recorded, op, a, b, &size));
    return size;
  }
  const int64_t quotient = b ? a / b - (a % b && (a < 0) != (b < 0)) : 0;
  switch (op) {
    case GRAFT_SIZE_ADD: return a + b;
    case GRAFT_SIZE_SUB: return a - b;
    case GRAFT_SIZE_MUL: return a * b;
    case GRAFT_SIZE_DIV: return quotient;
    case GRAFT_SIZE_MOD: return a - quotient * b;
    case GRAFT_SIZE_MIN: return a < b ? a : b;
    default: return a > b ? a : b;
  }
}

/* --- programs --- */

static void pointwise(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  (void)n, (void)m;
  graft_tensor *x = CALL(ADD_TENSOR, T(CALL(MUL_TENSOR, T(in[0]), T(in[1]))), NUMBER(1));
  out[0] = retained(CALL(TANH, T(x)));
  out[1] = retained(CALL(SUM_DIM_INTLIST, T(x), INTS(0)));
}

static void viewed(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  graft_tensor *flat = CALL(VIEW, T(in[0]), INTS(of(GRAFT_SIZE_MUL, n, m)));
  graft_tensor *turned = CALL(PERMUTE, T(CALL(VIEW, T(flat), INTS(n, m))), INTS(1, 0));
  out[0] = retained(CALL(EXP, T(turned)));
  out[1] = retained(turned);
}

static void sliced(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  (void)m;
  const int64_t half = of(GRAFT_SIZE_DIV, n, 2);
  graft_tensor *first = CALL(SLICE_TENSOR, T(in[0]), INT(0), INT(0), INT(half));
  graft_tensor *rest = CALL(SLICE_TENSOR, T(in[0]), INT(0), INT(half), INT(n));
  out[0] = retained(CALL(CAT, graft_value_tensors((graft_tensor *[]){rest, first}, 2), INT(0)));
  out[1] = retained(CALL(EXPAND, T(CALL(SUM_DIM_INTLIST, T(in[0]), INTS(0))),
                         INTS(of(GRAFT_SIZE_MAX, half, 2), of(GRAFT_SIZE_SUB, of(GRAFT_SIZE_ADD, m, 7), 7))));
}

static void counted(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  const graft_value end = graft_value_scalar(graft_scalar_int(n)), type = {GRAFT_VALUE_DTYPE, 0, {.dtype = GRAFT_F32}};
  graft_tensor *places =
      CALL(ARANGE_START_STEP, graft_value_scalar(graft_scalar_int(0)), end, graft_value_scalar(graft_scalar_int(1)),
           type, {0}, {GRAFT_VALUE_DEVICE, 0, {.device = in[0]->device}});
  graft_tensor *column = CALL(VIEW, T(places), INTS(n, 1));
  graft_tensor *scaled = CALL(MUL_TENSOR, T(CALL(ADD_TENSOR, T(in[0]), T(column))),
                              graft_value_scalar(graft_scalar_int(of(GRAFT_SIZE_MOD, m, 4))));
  out[0] = retained(scaled);
}

static graft_tensor *constant; /* of ten numbers */

static void of_a_constant(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  (void)m;
  graft_tensor *c = constant;
  graft_tensor *part = CALL(SLICE_TENSOR, T(c), INT(0), INT(0), INT(of(GRAFT_SIZE_MIN, n, 10)));
  graft_tensor *all = CALL(SUM_DIM_INTLIST, T(part), INTS(0));
  out[0] = retained(CALL(MUL_TENSOR, T(in[0]), T(all)));
  out[1] = retained(CALL(ADD_TENSOR, T(out[0]), T(CALL(SELECT_INT, T(c), INT(0), INT(3)))));
}

static void written(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  (void)m;
  graft_tensor *x = CALL(MUL_TENSOR, T(in[0]), NUMBER(2));
  graft_tensor *last = CALL(SELECT_INT, T(x), INT(0), INT(of(GRAFT_SIZE_SUB, n, 1)));
  WRITE(last, ADD_TENSOR, T(last), NUMBER(5));
  OK(graft_tensor_copy(CALL(SELECT_INT, T(in[0]), INT(0), INT(0)), last));
  out[0] = retained(x);
  out[1] = retained(in[0]);
}

static void drawn(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  const graft_value args[] = {INTS(n, m), {0}, {0}, {GRAFT_VALUE_DEVICE, 0, {.device = in[0]->device}}};
  out[0] = retained(CALL(ADD_TENSOR, T(calls(GRAFT_OP_RAND, args, 4)), T(in[0])));
  out[1] = retained(calls(GRAFT_OP_RAND, args, 4));
}

/* The mean's gradient divides by the size; that of what is broadcast is summed; a size of 1 decides which. */
static void learned(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  (void)n, (void)m;
  graft_tensor *guess = CALL(ADD_TENSOR, T(CALL(MUL_TENSOR, T(in[0]), T(in[1]))), T(in[1]));
  graft_tensor *loss = CALL(MEAN, T(CALL(MUL_TENSOR, T(guess), T(guess))));
  OK(graft_backward(&loss, NULL, 1, 0));
  bool before = graft_grad_mode_set(false);
  graft_tensor *scaled = CALL(MUL_TENSOR, T(graft_tensor_grad(in[1])), NUMBER(0.1));
  WRITE(in[1], SUB_TENSOR, T(in[1]), T(scaled));
  graft_grad_mode_set(before);
  out[0] = retained(loss);
  out[1] = retained(graft_tensor_grad(in[1]));
}

static void differentiated(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  graft_tensor *row = CALL(SUM_DIM_INTLIST, T(CALL(VIEW, T(CALL(EXP, T(in[1]))), INTS(of(GRAFT_SIZE_MUL, n, m)))),
                           graft_value_ints(NULL, 0));
  OK(graft_grad(&row, NULL, 1, &in[1], 1, 0, &out[0]));
  out[1] = retained(CALL(MUL_TENSOR, T(out[0]), T(in[0])));
}

static const sized_program programs[] = {
    {"pointwise", 2, {2, 2}, {{"n", "m"}, {"n", "m"}}, pointwise, 2, 0},
    {"broadcast", 2, {2, 1}, {{"n", "m"}, {"m"}}, pointwise, 2, 0},
    {"broadcast by the other", 2, {2, 2}, {{"n", "1"}, {"n", "m"}}, pointwise, 2, 0},
    {"views", 1, {2}, {{"n", "m"}}, viewed, 2, 0},
    {"slices", 1, {2}, {{"n", "m"}}, sliced, 2, 0},
    {"counts", 1, {2}, {{"n", "m"}}, counted, 1, 0},
    {"a constant", 1, {2}, {{"n", "m"}}, of_a_constant, 2, 0},
    {"writes", 1, {2}, {{"n", "m"}}, written, 2, 0},
    {"draws", 1, {2}, {{"n", "m"}}, drawn, 2, 0},
    {"a step", 2, {2, 1}, {{"n", "m"}, {"m"}}, learned, 2, 2},
    {"a step, of a column", 2, {2, 2}, {{"n", "m"}, {"n", "1"}}, learned, 2, 2},
    {"gradients", 2, {2, 2}, {{"n", "m"}, {"n", "m"}}, differentiated, 2, 2},
};

/* --- both ways --- */

static void input_sizes(const sized_program *p, int i, int64_t n, int64_t m, int64_t *sizes) {
  for (int d = 0; d < p->ndim[i]; d++) {
    const char *dim = p->dims[i][d];
    sizes[d] = *dim == 'n' ? n : *dim == 'm' ? m : atoi(dim);
  }
}

static void make_sized(const sized_program *p, int64_t n, int64_t m, graft_tensor **in) {
  for (int i = 0; i < p->ninputs; i++) {
    program_input like = {GRAFT_F32, p->ndim[i], {0}, {0}, 0};
    input_sizes(p, i, n, m, like.sizes);
    in[i] = new_input(reference(), &like, (uint32_t)i + 1);
  }
}

static graft_graph *record_sized(const sized_program *p, int64_t n, int64_t m) {
  graft_graph *graph;
  graft_tensor *in[3], *out[3];
  char name[] = "a";
  int64_t sizes[3], open[2];
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_size(graph, "n", n, 0, 1000, &open[0]));
  OK(graft_graph_size(graph, "m", m, 0, 1000, &open[1]));
  for (int i = 0; i < p->ninputs; i++, name[0]++) {
    input_sizes(p, i, open[0], open[1], sizes);
    OK(graft_graph_input(graph, name, GRAFT_F32, p->ndim[i], sizes, NULL, &in[i]));
    if (p->learns == i + 1) OK(graft_tensor_set_requires_grad(in[i], true));
  }
  recorded = graph;
  OK(graft_graph_record_begin(graph));
  p->run(in, out, open[0], open[1]);
  OK(graft_graph_record_end(graph));
  recorded = NULL;
  for (uint32_t i = 0; i < p->noutputs; i++, name[0]++) OK(graft_graph_output(graph, name, out[i]));
  sweep();
  release_all(in, (uint32_t)p->ninputs);
  release_all(out, p->noutputs);
  return graph;
}

static void compare_at(const sized_program *p, graft_graph_exec *exec, int64_t n, int64_t m) {
  const program as = {.name = p->name};
  graft_tensor *in[3], *calls_in[3], *out[3] = {0}, *calls_out[3] = {0};
  graft_generator *generator = graft_generator_default(reference());
  make_sized(p, n, m, in);
  make_sized(p, n, m, calls_in);
  if (p->learns) OK(graft_tensor_set_requires_grad(calls_in[p->learns - 1], true));
  graft_generator_seed(generator, 7);
  p->run(calls_in, calls_out, n, m);
  graft_generator_seed(generator, 7);
  graft_status status = graft_graph_run(exec, in, (uint32_t)p->ninputs, out, p->noutputs);
  ck_assert_msg(!status, "%s at %d, %d: %s", p->name, (int)n, (int)m, graft_last_error());
  for (uint32_t i = 0; i < p->noutputs; i++) expect_same(&as, "output", i, out[i], calls_out[i]);
  for (int i = 0; i < p->ninputs; i++) expect_same(&as, "input", (uint32_t)i, in[i], calls_in[i]);
  sweep();
  release_all(in, (uint32_t)p->ninputs);
  release_all(calls_in, (uint32_t)p->ninputs);
  release_all(out, p->noutputs);
  release_all(calls_out, p->noutputs);
}

/* Recorded at one size, a graph holds at all: also at 1, where what is broadcast is another, and at 0. */
START_TEST(all_sizes_are_served) {
  const sized_program *p = &programs[_i];
  static const int64_t sizes[][2] = {{4, 3}, {1, 3}, {4, 1}, {1, 1}, {17, 33}, {2, 5}, {4, 3}, {0, 3}, {5, 0}};
  static const int64_t examples[][2] = {{4, 3}, {1, 1}, {3, 1}, {1, 4}};
  constant = host(GRAFT_F32, 10, (float[]){1, 2, 4, 8, 16, 32, 64, 128, 256, 512});
  for (size_t e = 0; e < sizeof examples / sizeof *examples; e++) {
    graft_graph *graph = record_sized(p, examples[e][0], examples[e][1]);
    graft_graph_exec *exec;
    graft_status status = graft_graph_compile(graph, reference(), e ? NULL : "none", &exec);
    ck_assert_msg(!status, "%s: %s", p->name, graft_last_error());
    graft_graph_destroy(graph);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      if (!sizes[i][0] && p->run == written) continue; /* there is no last row */
      compare_at(p, exec, sizes[i][0], sizes[i][1]);
    }
    graft_graph_exec_destroy(exec);
  }
  graft_tensor_release(constant);
}
END_TEST

/* --- what is kept --- */

START_TEST(the_latest_sizes_are_kept) {
  graft_graph *graph = record_sized(&programs[0], 4, 3);
  graft_graph_exec *exec;
  graft_graph_exec_info info;
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  OK(graft_graph_exec_query(exec, &info, sizeof info));
  ck_assert_uint_eq(info.sizes_made, 1);
  for (int64_t n = 1; n < 40; n++) compare_at(&programs[0], exec, n, 3);
  OK(graft_graph_exec_query(exec, &info, sizeof info));
  ck_assert_uint_eq(info.sizes_made, 16);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
}
END_TEST

static graft_graph_exec *shared;

static void *run_some(void *context) {
  const int64_t first = *(int64_t *)context;
  for (int64_t i = 0; i < 60; i++) {
    const int64_t n = 1 + (first + i * 7) % 23, sizes[] = {n, 2};
    graft_tensor *in[2], *out[2];
    float *values = calloc((size_t)n * 2, sizeof *values), is[2];
    for (int64_t k = 0; k < n * 2; k++) values[k] = 1;
    for (int k = 0; k < 2; k++)
      if (graft_tensor_from_host(reference(), GRAFT_F32, 2, sizes, values, &in[k])) return "no input";
    free(values);
    if (graft_graph_run(shared, in, 2, out, 2)) return "no run";
    if (graft_tensor_to_host(out[1], is) || is[0] != 2 * (float)n || is[1] != 2 * (float)n) return "another sum";
    release_all(in, 2);
    release_all(out, 2);
  }
  return NULL;
}

START_TEST(threads_share_it) {
  graft_graph *graph = record_sized(&programs[0], 4, 3);
  pthread_t threads[4];
  int64_t first[4] = {0, 5, 11, 19};
  OK(graft_graph_compile(graph, reference(), NULL, &shared));
  for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, run_some, &first[i]), 0);
  for (int i = 0; i < 4; i++) {
    void *problem;
    ck_assert_int_eq(pthread_join(threads[i], &problem), 0);
    ck_assert_msg(!problem, "%s", (char *)problem);
  }
  graft_graph_exec_destroy(shared);
  graft_graph_destroy(graph);
}
END_TEST

/* --- what is refused --- */

static graft_tensor *zeros(int64_t rows, int64_t columns) {
  graft_tensor *t;
  float *values = calloc((size_t)(rows * columns) + 1, sizeof *values);
  OK(graft_tensor_from_host(reference(), GRAFT_F32, 2, (int64_t[]){rows, columns}, values, &t));
  free(values);
  return t;
}

START_TEST(inputs_must_agree) {
  graft_graph *graph = record_sized(&programs[0], 4, 3);
  graft_graph_exec *exec;
  graft_tensor *out[2];
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  const struct {
    graft_tensor *in[2];
    const char *text;
  } rows[] = {
      {{zeros(5, 3), zeros(4, 3)},
       "input b: dimension 0 is 4; expected 5, which is n, where n = 5, m = 3 by other inputs"},
      {{zeros(5, 3), zeros(5, 2)}, "input b: dimension 1 is 2; expected 3, which is m"},
      {{zeros(1001, 1), zeros(1001, 1)}, "input a: dimension 0 is 1001, and the size n goes from 0 to 1000"},
      {{later(host(GRAFT_F32, 1, (float[]){1})), zeros(1, 1)},
       "input a is f32[1]; the graph was recorded for 2 dimensions"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_says(graft_graph_run(exec, rows[i].in, 2, out, 2), GRAFT_INVALID_ARGUMENT, rows[i].text);
    graft_tensor_release(rows[i].in[1]);
    if (i < 3) graft_tensor_release(rows[i].in[0]);
  }
  sweep();
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
}
END_TEST

/* A number that was given plainly stays what it is; where that can't be, the run says so. */
START_TEST(plain_numbers_stay) {
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *x, *y = NULL, *in, *out = NULL;
  int64_t n, formula;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_size(graph, "n", 4, 1, 100, &n));
  OK(graft_graph_size_of(graph, GRAFT_SIZE_ADD, n, 1, &formula));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 2, (int64_t[]){n, formula}, NULL, &x));
  OK(graft_graph_record_begin(graph));
  OK(graft_call(GRAFT_OP_VIEW, ARGS(T(x), INTS(2, 10)), &y, 1));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "y", y));
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  in = zeros(4, 5);
  OK(graft_graph_run(exec, &in, 1, &out, 1));
  release_all((graft_tensor *[]){in, out, x, y}, 4);
  in = zeros(5, 6);
  assert_says(graft_graph_run(exec, &in, 1, &out, 1), GRAFT_INVALID_ARGUMENT, "call 0 of the graph, made for n = 5");
  assert_says(graft_graph_run(exec, &in, 1, &out, 1), GRAFT_INVALID_ARGUMENT, "aten::view");
  graft_tensor_release(in);
  in = zeros(5, 5);
  assert_says(graft_graph_run(exec, &in, 1, &out, 1), GRAFT_INVALID_ARGUMENT,
              "input x: dimension 1 is 5; expected 6, which is n + 1, where n = 5");
  graft_tensor_release(in);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
}
END_TEST

START_TEST(what_is_not_followed_is_refused) {
  graft_graph *graph;
  graft_tensor *x, *y = NULL, *apart;
  graft_graph_exec *exec;
  int64_t n, m, size;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_size(graph, "n", 4, 1, 100, &n));
  assert_says(graft_graph_size(graph, "n", 4, 1, 100, &m), GRAFT_INVALID_ARGUMENT, "has a size named n");
  assert_says(graft_graph_size(graph, "m", 0, 1, 100, &m), GRAFT_INVALID_ARGUMENT,
              "no example of a size from 1 to 100");
  assert_says(graft_graph_size(graph, "m", 2, -1, 3, &m), GRAFT_INVALID_ARGUMENT, "expected 0 or more");
  assert_says(graft_graph_size(graph, "", 2, 1, 3, &m), GRAFT_INVALID_ARGUMENT, "name is empty");
  assert_says(graft_graph_size_of(graph, GRAFT_SIZE_DIV, n, 0, &size), GRAFT_INVALID_ARGUMENT, "n // 0");
  assert_says(graft_graph_size_of(graph, 99, n, 1, &size), GRAFT_INVALID_ARGUMENT, "99");
  assert_says(graft_graph_size_of(graph, GRAFT_SIZE_MUL, n, INT64_MAX, &size), GRAFT_INVALID_ARGUMENT, "n = 4");
  OK(graft_graph_size(graph, "m", 2, 1, 100, &m));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_size(graph, "k", 4, 1, 100, &size)); /* there is one already, so that calls are kept from the start */
  OK(graft_tensor_set_requires_grad(x, true));
  OK(graft_graph_record_begin(graph));
  OK(graft_tensor_detach(x, &apart));
  assert_says(graft_call(GRAFT_OP_EXP, ARGS(T(apart)), &y, 1), GRAFT_INVALID_ARGUMENT, "aten::exp");
  assert_says(graft_tensor_set_grad(x, NULL), GRAFT_UNIMPLEMENTED, "open sizes");
  OK(graft_call(GRAFT_OP_EXP, ARGS(T(x)), &y, 1));
  OK(graft_graph_record_end(graph));
  assert_says(graft_graph_output(graph, "apart", apart), GRAFT_INVALID_ARGUMENT, "apart");
  OK(graft_graph_output(graph, "y", y));
  assert_says(graft_graph_compile(graph, reference(), NULL, &exec), GRAFT_INVALID_ARGUMENT,
              "the size m is no dimension");
  release_all((graft_tensor *[]){x, y, apart}, 3);
  graft_graph_destroy(graph);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(all_sizes_are_served, ROWS(programs)),
                              ONCE(the_latest_sizes_are_kept),
                              ONCE(threads_share_it),
                              ONCE(inputs_must_agree),
                              ONCE(plain_numbers_stay),
                              ONCE(what_is_not_followed_is_refused),
                              {0}};
  return run_suite("graph_sizes", tests, (suite_options){.timeout_s = 60});
}
