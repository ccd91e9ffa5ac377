/* Graphs with open sizes: at any sizes a recorded program gives what its calls give there, to the bit; what can't be is
 * said. */
#include <pthread.h>

#include "sized_programs.h"
#include "suite.h"

/* Recorded at one size, a graph holds at all: also at 1, where what is broadcast is another, and at 0. */
START_TEST(all_sizes_are_served) {
  const sized_program *p = &programs[_i];
  make_constant();
  for (size_t e = 0; e < sizeof recorded_sizes / sizeof *recorded_sizes; e++) {
    graft_graph *graph = record_sized(p, recorded_sizes[e][0], recorded_sizes[e][1]);
    graft_graph_exec *exec;
    graft_status status = graft_graph_compile(graph, reference(), e ? NULL : "none", &exec);
    ck_assert_msg(!status, "%s: %s", p->name, graft_last_error());
    graft_graph_destroy(graph);
    compare_at_all(p, exec);
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

static graft_tensor *whole_numbers(void) {
  graft_tensor *t;
  OK(graft_tensor_from_host(reference(), GRAFT_I32, 2, (int64_t[]){2, 2}, (int32_t[]){1, 2, 3, 4}, &t));
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
      {{zeros(5, 3), zeros(4, 3)}, "input b: dimension 0 is 4; expected 5, which is n, where n = 5 by other inputs"},
      {{zeros(5, 3), zeros(5, 2)}, "input b: dimension 1 is 2; expected 3, which is m, where m = 3 by other inputs"},
      {{zeros(1001, 1), zeros(1001, 1)}, "input a: dimension 0 is 1001, and the size n goes from 0 to 1000"},
      {{later(host(GRAFT_F32, 1, (float[]){1})), zeros(1, 1)},
       "input a is f32[1]; the graph was recorded for f32[n,m]"},
      {{later(whole_numbers()), zeros(1, 1)}, "input a is i32[2,2]; the graph was recorded for f32[n,m]"},
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

/* Of x[n,n+1], n at most `most`: a view [2,10] of it, which there is where n is 4 alone. */
static graft_graph *plainly_viewed(int64_t most) {
  graft_graph *graph;
  graft_tensor *x, *y = NULL;
  int64_t n, formula;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_size(graph, "n", 4, 1, most, &n));
  OK(graft_graph_size_of(graph, GRAFT_SIZE_ADD, n, 1, &formula));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 2, (int64_t[]){n, formula}, NULL, &x));
  OK(graft_graph_record_begin(graph));
  OK(graft_call(GRAFT_OP_VIEW, ARGS(T(x), INTS(2, 10)), &y, 1));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "y", y));
  release_all((graft_tensor *[]){x, y}, 2);
  return graph;
}

/* A number that was given plainly stays what it is; where that can't be, the run says so. */
START_TEST(plain_numbers_stay) {
  graft_graph *graph = plainly_viewed(100);
  graft_graph_exec *exec;
  graft_tensor *in = zeros(4, 5), *out = NULL;
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  OK(graft_graph_run(exec, &in, 1, &out, 1));
  release_all((graft_tensor *[]){in, out}, 2);
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

/* --- why a run failed --- */

static void expect_failure(graft_status status, graft_graph_failure failure, const char *text) {
  ck_assert_msg(status && strstr(graft_last_error(), text), "%s: %s", text, graft_last_error());
  ck_assert_uint_eq(graft_graph_last_failure(), failure);
}

/* A run of x[rows,columns], handed over or not. */
static graft_status run_at(graft_graph_exec *exec, int64_t rows, int64_t columns, bool hands_over) {
  graft_tensor *in = zeros(rows, columns), *out = NULL;
  graft_status status =
      hands_over ? graft_graph_run_letting_go(exec, &in, 1, NULL, &out, 1) : graft_graph_run(exec, &in, 1, &out, 1);
  release_all((graft_tensor *[]){in, out}, 2);
  return status;
}

START_TEST(a_run_says_what_failed) {
  const bool over = _i;
  graft_graph *graph = plainly_viewed(100), *other = record_sized(&programs[0], 4, 3);
  graft_graph_exec *exec, *second;
  graft_tensor *none = NULL;
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  OK(run_at(exec, 4, 5, over));
  ck_assert_uint_eq(graft_graph_last_failure(), GRAFT_GRAPH_NO_FAILURE);
  expect_failure(run_at(exec, 5, 5, over), GRAFT_GRAPH_INPUTS_FAILED, "expected 6");
  expect_failure(run_at(exec, 101, 102, over), GRAFT_GRAPH_INPUTS_FAILED, "goes from 1 to 100");
  OK(graft_graph_compile(other, reference(), NULL, &second)); /* is no run */
  ck_assert_uint_eq(graft_graph_last_failure(), GRAFT_GRAPH_INPUTS_FAILED);
  expect_failure(run_at(exec, 5, 6, over), GRAFT_GRAPH_SIZES_FAILED, "made for n = 5");
  expect_failure(graft_graph_run(exec, &none, 1, NULL, 1), GRAFT_GRAPH_INPUTS_FAILED, "outputs");
  OK(run_at(exec, 4, 5, over));
  ck_assert_uint_eq(graft_graph_last_failure(), GRAFT_GRAPH_NO_FAILURE);
  expect_failure(graft_graph_run(NULL, &none, 1, &none, 1), GRAFT_GRAPH_INPUTS_FAILED, "exec");
  graft_graph_exec_destroy(second);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(other);
  graft_graph_destroy(graph);
}
END_TEST

/* One whose strides are others than those that the graph was told; shapes agree. */
START_TEST(a_run_says_that_an_input_lies_otherwise) {
  graft_graph *graph = record_sized(&programs[0], 4, 3);
  graft_graph_exec *exec;
  graft_tensor *in[2] = {zeros(5, 2), NULL}, *out[2];
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  OK(graft_op_permute(later(zeros(2, 5)), (int64_t[]){1, 0}, 2, &in[1]));
  expect_failure(graft_graph_run(exec, in, 2, out, 2), GRAFT_GRAPH_INPUTS_FAILED, "input b is f32[5,2]");
  release_all(in, 2);
  sweep();
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
}
END_TEST

/* --- which inputs a run takes --- */

/* Shapes, as far as they are given, and how such a tensor lies. */
typedef struct candidate {
  int64_t sizes[3], strides[3];
  int ndim;
  graft_dtype dtype;
  bool conjugate;
} candidate;

static const candidate candidates[] = {
    {{5, 6}, {6, 1}, 2, GRAFT_F32, 0},
    {{4, 5}, {5, 1}, 2, GRAFT_F32, 0},
    {{5, 6}, {1, 5}, 2, GRAFT_F32, 0},
    {{5, 6}, {7, 1}, 2, GRAFT_F32, 0},
    {{5, 5}, {5, 1}, 2, GRAFT_F32, 0},
    {{5, 7}, {7, 1}, 2, GRAFT_F32, 0},
    {{1, 2}, {9, 1}, 2, GRAFT_F32, 0},
    {{1, 2}, {1, 1}, 2, GRAFT_F32, 0},
    {{1, 2}, {2, 2}, 2, GRAFT_F32, 0},
    {{0, 1}, {1, 1}, 2, GRAFT_F32, 0},
    {{0, 1}, {3, 9}, 2, GRAFT_F32, 0},
    {{101, 102}, {102, 1}, 2, GRAFT_F32, 0},
    {{5, 6}, {6, 1}, 2, GRAFT_I32, 0},
    {{5, 6}, {6, 1}, 2, GRAFT_C64, 0},
    {{5, 6}, {6, 1}, 2, GRAFT_C64, 1},
    {{5, 6, 1}, {6, 1, 1}, 3, GRAFT_F32, 0},
    {{30}, {1}, 1, GRAFT_F32, 0},
    {{0}, {0}, 0, GRAFT_F32, 0},
    {{2, 3}, {3, 1}, 2, GRAFT_F32, 0},
    {{2, 3}, {1, 2}, 2, GRAFT_F32, 0},
    {{100, 101}, {101, 1}, 2, GRAFT_F32, 0},
    {{5, 6}, {12, 2}, 2, GRAFT_F32, 0},
    {{5, 6}, {12, 1}, 2, GRAFT_F32, 0},
    {{2, 3}, {6, 1}, 2, GRAFT_F32, 0},
};

static graft_tensor *like(const candidate *c) {
  graft_tensor *memory, *t;
  OK(graft_tensor_empty(reference(), c->dtype, 1, (int64_t[]){20000}, &memory));
  OK(graft_op_as_strided(later(memory), c->sizes, (uint32_t)c->ndim, c->strides, (uint32_t)c->ndim, NULL, &t));
  if (c->conjugate) OK(graft_op_prims_conj(later(t), &t));
  return t;
}

typedef enum form { CONTIGUOUS, STRIDED, FIXED, FORMS } form;

/* x[n,n+1], contiguous or with rows that are 2 (n + 1) apart; or one of the sizes that it is recorded at, turned. */
static graft_graph *copies(form f) {
  graft_graph *graph;
  graft_tensor *x, *y = NULL;
  int64_t n = 2, columns = 3, apart = 2;
  OK(graft_graph_create(reference(), &graph));
  if (f != FIXED) {
    OK(graft_graph_size(graph, "n", 4, 0, 100, &n));
    OK(graft_graph_size_of(graph, GRAFT_SIZE_ADD, n, 1, &columns));
    OK(graft_graph_size_of(graph, GRAFT_SIZE_MUL, columns, 2, &apart));
  }
  const int64_t rows_apart[] = {apart, 1}, turned[] = {1, 2};
  const int64_t *strides[FORMS] = {NULL, rows_apart, turned};
  OK(graft_graph_input(graph, "x", GRAFT_F32, 2, (int64_t[]){n, columns}, strides[f], &x));
  OK(graft_graph_record_begin(graph));
  OK(graft_call(GRAFT_OP_CLONE, ARGS(T(x)), &y, 1));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "y", y));
  release_all((graft_tensor *[]){x, y}, 2);
  return graph;
}

/* An answer is what a run says. */
START_TEST(what_fits_is_what_runs) {
  graft_graph *graph = copies((form)_i);
  graft_graph_exec *exec;
  uint32_t fit = 0;
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
    graft_tensor *in = like(&candidates[i]), *out = NULL;
    const bool fits = graft_graph_exec_fits(exec, &in, 1);
    const graft_status status = graft_graph_run(exec, &in, 1, &out, 1);
    ck_assert_msg(fits == !status, "candidate %zu fits: %d, and runs: %s", i, fits, graft_last_error());
    fit += fits;
    release_all((graft_tensor *[]){in, out}, 2);
    sweep();
  }
  ck_assert_uint_eq(fit, ((const uint32_t[FORMS]){8, 6, 1})[_i]);
  graft_tensor *none = NULL;
  ck_assert(!graft_graph_exec_fits(exec, &none, 1));
  ck_assert(!graft_graph_exec_fits(exec, NULL, 0));
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
}
END_TEST

/* Two inputs must agree, and it is not said of sizes at which a call can't be made. */
START_TEST(what_fits_together) {
  graft_graph *graph = record_sized(&programs[0], 4, 3), *plain = plainly_viewed(100);
  graft_graph_exec *exec, *of_plain;
  graft_tensor *in[] = {zeros(5, 3), zeros(5, 3)}, *other[] = {in[0], zeros(4, 3)}, *x = zeros(5, 6);
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  OK(graft_graph_compile(plain, reference(), NULL, &of_plain));
  ck_assert(graft_graph_exec_fits(exec, in, 2));
  ck_assert(!graft_graph_exec_fits(exec, in, 1));
  ck_assert(!graft_graph_exec_fits(exec, other, 2));
  ck_assert(graft_graph_exec_fits(of_plain, &x, 1));
  graft_tensor *empty[] = {zeros(0, 5), later(zeros(5, 0))}, *out[2]; /* whose strides say nothing */
  OK(graft_op_permute(empty[1], (int64_t[]){1, 0}, 2, &empty[1]));
  ck_assert(graft_graph_exec_fits(exec, empty, 2));
  OK(graft_graph_run(exec, empty, 2, out, 2));
  release_all(empty, 2);
  release_all(out, 2);
  sweep();
  release_all((graft_tensor *[]){in[0], in[1], other[1], x}, 4);
  graft_graph_exec_destroy(exec);
  graft_graph_exec_destroy(of_plain);
  graft_graph_destroy(graph);
  graft_graph_destroy(plain);
}
END_TEST

START_TEST(a_capture_takes_sizes_that_have_run) {
  graft_graph *graph = record_sized(&programs[0], 4, 3);
  graft_graph_exec *exec;
  graft_graph_capture *capture;
  graft_tensor *in[2] = {zeros(5, 3), zeros(5, 3)}, *out[2];
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  OK(graft_graph_capture_begin(reference(), NULL, &capture));
  expect_failure(graft_graph_run(exec, in, 2, out, 2), GRAFT_GRAPH_CAPTURE_FAILED, "that it has not run at");
  OK(graft_graph_capture_end(capture));
  graft_graph_capture_destroy(capture);
  OK(graft_graph_run(exec, in, 2, out, 2));
  release_all(out, 2);
  OK(graft_graph_capture_begin(reference(), NULL, &capture));
  OK(graft_graph_run(exec, in, 2, out, 2));
  ck_assert_uint_eq(graft_graph_last_failure(), GRAFT_GRAPH_NO_FAILURE);
  OK(graft_graph_capture_end(capture));
  graft_graph_capture_destroy(capture);
  release_all(in, 2);
  release_all(out, 2);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
}
END_TEST

START_TEST(a_run_says_that_memory_is_short) {
  graft_graph *graph = record_sized(&programs[0], 4, 3);
  graft_graph_exec *exec;
  graft_tensor *in[2] = {zeros(900, 900), zeros(900, 900)}, *out[2];
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  OK(graft_graph_run(exec, in, 2, out, 2));
  release_all(out, 2);
  graft_memory_empty_cache(reference());
  graft_memory_set_limit(reference(), 1);
  graft_status status = graft_graph_run(exec, in, 2, out, 2);
  graft_memory_set_limit(reference(), 0);
  ck_assert_int_eq(status, GRAFT_OUT_OF_MEMORY);
  ck_assert_uint_eq(graft_graph_last_failure(), GRAFT_GRAPH_CALLS_FAILED);
  release_all(in, 2);
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
  for (int64_t off = -1; off <= 1; off += 2) { /* a name is no number to reckon with */
    const char *said = "is no size of the graph, and looks as if it were computed of one";
    assert_says(graft_op_slice_Tensor(x, 0, NULL, (int64_t[]){n + off}, 1, &y), GRAFT_INVALID_ARGUMENT, said);
    assert_says(graft_op_full((int64_t[]){m + off}, 1, graft_scalar_int(1), GRAFT_F32, reference(), &y),
                GRAFT_INVALID_ARGUMENT, said);
  }
  assert_says(graft_op_mul_Scalar(x, graft_scalar_int(n + 1), &y), GRAFT_INVALID_ARGUMENT, "graft_graph_size_of");
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
                              EACH(a_run_says_what_failed, 2),
                              ONCE(a_run_says_that_an_input_lies_otherwise),
                              EACH(what_fits_is_what_runs, FORMS),
                              ONCE(what_fits_together),
                              ONCE(a_capture_takes_sizes_that_have_run),
                              ONCE(a_run_says_that_memory_is_short),
                              ONCE(what_is_not_followed_is_refused),
                              {0}};
  return run_suite("graph_sizes", tests, (suite_options){.timeout_s = 60});
}
