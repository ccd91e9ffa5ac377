/* Programs of tensors and of sizes that are open when they are recorded, for the tests of graphs with open sizes. */
#ifndef GRAFT_TESTS_SIZED_PROGRAMS_H
#define GRAFT_TESTS_SIZED_PROGRAMS_H

#include "graph_programs.h"

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
static inline int64_t of(graft_size_op op, int64_t a, int64_t b) {
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

static inline void pointwise(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  (void)n, (void)m;
  graft_tensor *x = CALL(ADD_TENSOR, T(CALL(MUL_TENSOR, T(in[0]), T(in[1]))), NUMBER(1));
  out[0] = retained(CALL(TANH, T(x)));
  out[1] = retained(CALL(SUM_DIM_INTLIST, T(x), INTS(0)));
}

static inline void viewed(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  graft_tensor *flat = CALL(VIEW, T(in[0]), INTS(of(GRAFT_SIZE_MUL, n, m)));
  graft_tensor *turned = CALL(PERMUTE, T(CALL(VIEW, T(flat), INTS(n, m))), INTS(1, 0));
  out[0] = retained(CALL(EXP, T(turned)));
  out[1] = retained(turned);
}

static inline void sliced(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  (void)m;
  const int64_t half = of(GRAFT_SIZE_DIV, n, 2);
  graft_tensor *first = CALL(SLICE_TENSOR, T(in[0]), INT(0), INT(0), INT(half));
  graft_tensor *rest = CALL(SLICE_TENSOR, T(in[0]), INT(0), INT(half), INT(n));
  out[0] = retained(CALL(CAT, graft_value_tensors((graft_tensor *[]){rest, first}, 2), INT(0)));
  out[1] = retained(CALL(EXPAND, T(CALL(SUM_DIM_INTLIST, T(in[0]), INTS(0))),
                         INTS(of(GRAFT_SIZE_MAX, half, 2), of(GRAFT_SIZE_SUB, of(GRAFT_SIZE_ADD, m, 7), 7))));
}

static inline void counted(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
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

static inline void of_a_constant(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  (void)m;
  graft_tensor *c = constant;
  graft_tensor *part = CALL(SLICE_TENSOR, T(c), INT(0), INT(0), INT(of(GRAFT_SIZE_MIN, n, 10)));
  graft_tensor *all = CALL(SUM_DIM_INTLIST, T(part), INTS(0));
  out[0] = retained(CALL(MUL_TENSOR, T(in[0]), T(all)));
  out[1] = retained(CALL(ADD_TENSOR, T(out[0]), T(CALL(SELECT_INT, T(c), INT(0), INT(3)))));
}

static inline void written(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  (void)m;
  graft_tensor *x = CALL(MUL_TENSOR, T(in[0]), NUMBER(2));
  graft_tensor *last = CALL(SELECT_INT, T(x), INT(0), INT(of(GRAFT_SIZE_SUB, n, 1)));
  WRITE(last, ADD_TENSOR, T(last), NUMBER(5));
  OK(graft_tensor_copy(CALL(SELECT_INT, T(in[0]), INT(0), INT(0)), last));
  out[0] = retained(x);
  out[1] = retained(in[0]);
}

static inline void drawn(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
  const graft_value args[] = {INTS(n, m), {0}, {0}, {GRAFT_VALUE_DEVICE, 0, {.device = in[0]->device}}};
  out[0] = retained(CALL(ADD_TENSOR, T(calls(GRAFT_OP_RAND, args, 4)), T(in[0])));
  out[1] = retained(calls(GRAFT_OP_RAND, args, 4));
}

/* The mean's gradient divides by the size; that of what is broadcast is summed; a size of 1 decides which. */
static inline void learned(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
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

static inline void differentiated(graft_tensor **in, graft_tensor **out, int64_t n, int64_t m) {
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

static inline void input_sizes(const sized_program *p, int i, int64_t n, int64_t m, int64_t *sizes) {
  for (int d = 0; d < p->ndim[i]; d++) {
    const char *dim = p->dims[i][d];
    sizes[d] = *dim == 'n' ? n : *dim == 'm' ? m : atoi(dim);
  }
}

static inline void make_sized(const sized_program *p, int64_t n, int64_t m, graft_tensor **in) {
  for (int i = 0; i < p->ninputs; i++) {
    program_input like = {GRAFT_F32, p->ndim[i], {0}, {0}, 0};
    input_sizes(p, i, n, m, like.sizes);
    in[i] = new_input(reference(), &like, (uint32_t)i + 1);
  }
}

static inline graft_graph *record_sized(const sized_program *p, int64_t n, int64_t m) {
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

static inline void compare_at(const sized_program *p, graft_graph_exec *exec, int64_t n, int64_t m) {
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

/* Where each program is run; and where it is recorded. */
static const int64_t run_sizes[][2] = {{4, 3}, {1, 3}, {4, 1}, {1, 1}, {17, 33}, {2, 5}, {4, 3}, {0, 3}, {5, 0}};
static const int64_t recorded_sizes[][2] = {{4, 3}, {1, 1}, {3, 1}, {1, 4}};

static inline void compare_at_all(const sized_program *p, graft_graph_exec *exec) {
  for (size_t i = 0; i < sizeof run_sizes / sizeof *run_sizes; i++) {
    if (!run_sizes[i][0] && p->run == written) continue; /* there is no last row */
    compare_at(p, exec, run_sizes[i][0], run_sizes[i][1]);
  }
}

static inline void make_constant(void) {
  constant = host(GRAFT_F32, 10, (float[]){1, 2, 4, 8, 16, 32, 64, 128, 256, 512});
}

#endif
