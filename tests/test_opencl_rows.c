/* Reductions that the OpenCL backend fuses with pointwise calls before and behind them give, to the bit, what the calls
 * give one by one: softmax, norms, losses and gradients written out, over rows and columns of all lengths. */
#include "opencl_groups.h"

#define YES                \
  (graft_value) {          \
    GRAFT_VALUE_BOOL, 0, { \
      .i = 1               \
    }                      \
  }
#define NO                 \
  (graft_value) {          \
    GRAFT_VALUE_BOOL, 0, { \
      .i = 0               \
    }                      \
  }
#define ADDED(a, b)         CALL(ADD_TENSOR, T(a), b)
#define MINUS(a, b)         CALL(SUB_TENSOR, T(a), T(b))
#define TIMES(a, b)         CALL(MUL_TENSOR, T(a), b)
#define OVER(a, b)          CALL(DIV_TENSOR, T(a), T(b))
#define ALONG(op, x, dim)   CALL(op, T(x), INTS(dim), YES)
#define WITHOUT(op, x, dim) CALL(op, T(x), INTS(dim), NO)

/* --- programs --- */

static void softmax(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *e = CALL(EXP, T(MINUS(in[0], ALONG(AMAX, in[0], -1))));
  out[0] = retained(OVER(e, ALONG(SUM_DIM_INTLIST, e, -1)));
}

/* With what the gradient takes from it, and the most and the sum as results of their own. */
static void log_softmax(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *most = ALONG(AMAX, in[0], -1), *moved = MINUS(in[0], most);
  graft_tensor *sum = ALONG(SUM_DIM_INTLIST, CALL(EXP, T(moved)), -1);
  graft_tensor *logs = MINUS(moved, CALL(LOG, T(sum)));
  graft_tensor *total = ALONG(SUM_DIM_INTLIST, in[1], -1);
  out[0] = retained(logs);
  out[1] = retained(MINUS(in[1], TIMES(CALL(EXP, T(logs)), T(total))));
  out[2] = retained(most);
  out[3] = retained(sum);
}

/* in: x, weight, bias: the mean of squares, and the variance by its op. */
static void layer_norm(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *mean = ALONG(MEAN_DIM, in[0], -1), *centred = MINUS(in[0], mean);
  graft_tensor *variance = ALONG(MEAN_DIM, TIMES(centred, T(centred)), -1);
  graft_tensor *root = CALL(RSQRT, T(ADDED(variance, NUMBER(1e-5))));
  out[0] = retained(ADDED(TIMES(TIMES(centred, T(root)), T(in[1])), T(in[2])));
  graft_tensor *other = CALL(VAR_CORRECTION, T(in[0]), INTS(-1), NUMBER(1), YES);
  out[1] = retained(OVER(centred, CALL(SQRT, T(ADDED(other, NUMBER(1e-5))))));
  out[2] = retained(root);
}

static void rms_norm(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *squares = CALL(POW_TENSOR_SCALAR, T(in[0]), NUMBER(2));
  graft_tensor *root = CALL(RSQRT, T(ADDED(ALONG(MEAN_DIM, squares, -1), NUMBER(1e-6))));
  out[0] = retained(TIMES(TIMES(in[0], T(root)), T(in[1])));
}

/* The gradient of layer_norm for x, from gradient, x, weight. */
static void norm_backward(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *mean = ALONG(MEAN_DIM, in[0], -1), *centred = MINUS(in[0], mean);
  graft_tensor *root = CALL(RSQRT, T(ADDED(ALONG(MEAN_DIM, TIMES(centred, T(centred)), -1), NUMBER(1e-5))));
  graft_tensor *hat = TIMES(centred, T(root)), *g = TIMES(in[2], T(in[1]));
  graft_tensor *along = ALONG(MEAN_DIM, TIMES(g, T(hat)), -1);
  graft_tensor *rest = MINUS(MINUS(g, ALONG(MEAN_DIM, g, -1)), TIMES(hat, T(along)));
  out[0] = retained(TIMES(rest, T(root)));
}

/* Sums without what is spread again, and what is made of them for each row; in halves, with conversions. */
static void sums(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *product = TIMES(in[0], T(in[1]));
  out[0] = retained(CALL(SQRT, T(CALL(ABS, T(WITHOUT(SUM_DIM_INTLIST, product, -1))))));
  out[1] = retained(WITHOUT(AMIN, product, -1));
  out[2] = retained(CALL(LINALG_VECTOR_NORM, T(product), NUMBER(2), INTS(-1)));
  out[3] = retained(CALL(ANY_DIM, T(CALL(GT_TENSOR, T(in[0]), T(in[1]))), INT(-1)));
}

/* The gradient of a bias, its values kept for a product: over the first dimension. */
static void bias_gradient(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *mask = CALL(GT_TENSOR, T(in[0]), T(in[1]));
  graft_tensor *g = CALL(WHERE_SELF, T(mask), T(TIMES(in[0], T(in[2]))), T(in[1]));
  out[0] = retained(g);
  out[1] = retained(CALL(NEG, T(WITHOUT(SUM_DIM_INTLIST, g, 0))));
  out[2] = retained(ALONG(AMAX, g, 0));
}

/* Columns brought to a mean of 0 and a deviation of 1, with an exponential that is made again. */
static void batch_norm(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *x = CALL(TANH, T(in[0])), *centred = MINUS(x, ALONG(MEAN_DIM, x, 0));
  graft_tensor *root = CALL(RSQRT, T(ADDED(ALONG(MEAN_DIM, TIMES(centred, T(centred)), 0), NUMBER(1e-5))));
  out[0] = retained(ADDED(TIMES(TIMES(centred, T(root)), T(in[1])), T(in[2])));
}

/* A norm in f32 whatever comes in, as mixed precision has it, and sums of what was rounded to f16. */
static void with_casts(graft_tensor **in, graft_tensor **out, const void *what) {
  const graft_dtype dtype = *(const graft_dtype *)what;
  graft_tensor *wide = cast(in[0], GRAFT_F32), *narrow = cast(TIMES(wide, NUMBER(0.7)), GRAFT_F16);
  graft_tensor *root = CALL(RSQRT, T(ADDED(ALONG(MEAN_DIM, TIMES(wide, T(wide)), -1), NUMBER(1e-5))));
  out[0] = retained(TIMES(cast(TIMES(wide, T(root)), dtype), T(in[1])));
  out[1] = retained(cast(WITHOUT(SUM_DIM_INTLIST, narrow, -1), GRAFT_F64));
}

/* Of all elements: that no dims are given and that all are is the same. */
static void of_all(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *x = CALL(TANH, T(in[0]));
  out[0] = retained(CALL(NEG, T(CALL(SUM_DIM_INTLIST, T(x), INTS(0, 1), NO))));
  out[1] = retained(CALL(NEG, T(CALL(PROD, T(x)))));
}

/* An input is written, once before any reduction and once behind all, and is read both as it was and as it is then. */
static void with_writes(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *most = ALONG(AMAX, in[0], -1), *moved = MINUS(in[0], most);
  WRITE(in[0], MUL_TENSOR, T(in[0]), NUMBER(-2));
  graft_tensor *sum = ALONG(SUM_DIM_INTLIST, CALL(EXP, T(moved)), -1);
  out[0] = retained(MINUS(moved, CALL(LOG, T(sum))));
  out[1] = retained(OVER(in[0], sum));
  WRITE(in[1], ADD_TENSOR, T(in[1]), T(sum));
}

/* The second factor lies in no one run along the two dims. */
static void with_a_turned_factor(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *sum = CALL(SUM_DIM_INTLIST, T(TIMES(in[0], T(in[1]))), INTS(1, 2), NO);
  out[0] = retained(CALL(SQRT, T(CALL(ABS, T(sum)))));
}

/* --- their inputs --- */

typedef struct fused_program {
  const char *name;
  calls_fn calls;
  uint32_t whole, rows, outputs; /* inputs: matrices, then rows that are broadcast */
  uint32_t nodes, teams;         /* of one group; with a GPU's kernels at least so many, where no line is cut */
  bool columns;
} fused_program;

static const fused_program programs_of[] = {
    {"softmax", softmax, 1, 0, 1, 5, 5, false},
    {"log_softmax", log_softmax, 2, 0, 4, 10, 10, false},
    {"layer_norm", layer_norm, 1, 2, 3, 13, 13, false},
    {"rms_norm", rms_norm, 1, 1, 1, 6, 6, false},
    {"norm_backward", norm_backward, 2, 1, 1, 15, 15, false},
    {"sums", sums, 2, 0, 4, 8, 7, false},
    {"bias_gradient", bias_gradient, 2, 1, 3, 6, 5, true},
    {"batch_norm", batch_norm, 1, 2, 1, 10, 5, true},
};

/* Rows shorter than a vector, of some vectors and a rest, of some segments, and so long that subtotals come together;
 * and columns that are so. */
static const int64_t of_rows[][2] = {{5, 3}, {7, 16}, {4, 205}, {6, 4205}, {3, 17000}, {517, 33}, {1, 70}};
static const int64_t of_columns[][2] = {{3, 5}, {16, 7}, {205, 40}, {4205, 6}, {1100, 205}, {33, 517}, {70, 64}};

static bool teams;      /* with a GPU's kernels */
static bool many_cores; /* which part a line between them */

enum { LEAST_OF_MANY_CORES = 2 };

/* `nodes`: that are in groups, with a GPU's kernels at least. */
static void compare_sized(const fused_program *p, graft_dtype dtype, int64_t rows, int64_t columns, uint32_t nodes) {
  graft_tensor *in[4];
  const uint32_t count = p->whole + p->rows;
  char name[96];
  snprintf(name, sizeof name, "%s, %s, %d x %d", p->name,
           dt_bytes(dtype) == 2   ? "bf16"
           : dt_bytes(dtype) == 4 ? "f32"
                                  : "f64",
           (int)rows, (int)columns);
  for (uint32_t i = 0; i < count; i++) in[i] = sized(dtype, i < p->whole ? rows : 1, columns, i + 1);
  const way w = {p->calls, NULL, count, p->outputs, nodes, 1, .at_least = teams || many_cores};
  compare(name, &w, in, in);
  release_all(in, count);
}

static void compare_program(const fused_program *p, graft_dtype dtype, int64_t rows, int64_t columns) {
  const uint32_t least = rows == 1 || rows > 1000 || columns > 1000 || p->columns ? 2 : p->teams;
  compare_sized(p, dtype, rows, columns, teams ? least : many_cores ? LEAST_OF_MANY_CORES : p->nodes);
}

START_TEST(rows_and_columns) {
  if (!device) return;
  const fused_program *p = &programs_of[_i];
  for (size_t s = 0; s < ROWS(of_rows); s++) {
    const int64_t *sizes = p->columns ? of_columns[s] : of_rows[s];
    compare_program(p, GRAFT_F32, sizes[0], sizes[1]);
  }
}
END_TEST

START_TEST(other_dtypes) {
  if (!device) return;
  compare_program(&programs_of[_i], GRAFT_BF16, 5, 205);
  if (programs_of[_i].calls != layer_norm) compare_program(&programs_of[_i], GRAFT_F64, 4, 70); /* its variance */
}
END_TEST

/* With a GPU's kernels work-items hold no line that is so long, and none is cut yet. */
START_TEST(lines_that_are_not_held) {
  if (!device) return;
  const fused_program *p = &programs_of[_i];
  if (p->teams == p->nodes) compare_sized(p, GRAFT_BF16, 3, 8 * 256 * 5 + 8, p->nodes);
}
END_TEST

START_TEST(conversions_around_reductions) {
  if (!device) return;
  const graft_dtype dtypes[] = {GRAFT_BF16, GRAFT_F32};
  const way w = {with_casts, &dtypes[_i], 2, 2, teams ? 6 : _i ? 10 : 12, 1, .at_least = teams};
  graft_tensor *in[] = {sized(dtypes[_i], 4, 205, 1), sized(dtypes[_i], 1, 205, 2)};
  compare("conversions", &w, in, in);
  release_all(in, 2);
}
END_TEST

START_TEST(writes_to_what_is_reduced) {
  if (!device) return;
  const way w = {with_writes, NULL, 2, 2, teams ? 6 : 9, 1, .at_least = teams};
  graft_tensor *in[] = {sized(GRAFT_F32, 5, 1205, 1), sized(GRAFT_F32, 5, 1, 2)};
  graft_tensor *same[] = {sized(GRAFT_F32, 5, 1205, 1), sized(GRAFT_F32, 5, 1, 2)};
  compare("writes", &w, in, same);
  release_all(in, 2);
  release_all(same, 2);
}
END_TEST

START_TEST(dims_that_are_named_and_all_are_the_same) {
  if (!device) return;
  const way w = {of_all, NULL, 1, 2, teams ? 2 : 5, 1, .at_least = false};
  graft_tensor *in[] = {sized(GRAFT_F32, 5, 13, 1)};
  compare("all", &w, in, in);
  release_all(in, 1);
}
END_TEST

START_TEST(what_lines_cannot_see_runs_alone) {
  if (!device) return;
  const int64_t sizes[] = {3, 5, 7}, strides[] = {35, 7, 1}, turned[] = {35, 1, 5};
  graft_tensor *all = sized(GRAFT_F32, 15, 7, 1), *in[2];
  OK(tns_new(all->storage, device, GRAFT_F32, 3, sizes, strides, 0, &in[0]));
  OK(tns_new(all->storage, device, GRAFT_F32, 3, sizes, turned, 0, &in[1]));
  const way w = {with_a_turned_factor, NULL, 2, 1, 3, 1, .at_least = false};
  compare("turned", &w, in, in);
  graft_tensor_release(all);
  release_all(in, 2);
}
END_TEST

/* How many nodes are in groups where lines are not cut is what a processor of two cores says, as PoCL has it then. */
static void open_for_two_cores(void) {
  setenv("POCL_MAX_PTHREAD_COUNT", "2", 1);
  open_for_cpus();
}

static void open_for_many_cores(void) {
  many_cores = true;
  setenv("POCL_MAX_PTHREAD_COUNT", "16", 1);
  open_for_cpus();
}

static void open_for_teams(void) {
  teams = true;
  open_for_gpus();
}

int main(void) {
  const suite_test tests[] = {ONCE(writes_to_what_is_reduced),
                              EACH(conversions_around_reductions, 2),
                              ONCE(what_lines_cannot_see_runs_alone),
                              ONCE(dims_that_are_named_and_all_are_the_same),
                              EACH(rows_and_columns, ROWS(programs_of)),
                              EACH(other_dtypes, ROWS(programs_of)),
                              EACH(lines_that_are_not_held, ROWS(programs_of)),
                              {0}};
  const suite_test of_many_cores[] = {EACH(rows_and_columns, ROWS(programs_of)), {0}};
  int failed = run_suite("opencl_rows", tests, on_one_device(open_for_two_cores));
  failed |= run_suite("opencl_rows_of_many_cores", of_many_cores, on_one_device(open_for_many_cores));
  setenv("GRAFT_OPENCL_OPTIMIZE", "no", 1); /* these kernels take PoCL's optimizer long */
  return run_suite("opencl_rows_of_teams", tests, on_one_device(open_for_teams)) || failed;
}
