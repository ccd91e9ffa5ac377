/* Dropout and its gradient in groups of the OpenCL backend: the numbers that the calls draw one by one, to the bit, and
 * the generator where these leave it. */
#include "opencl_groups.h"

#define ADDED(a, b) CALL(ADD_TENSOR, T(a), T(b))

/* What is kept; *mask receives which elements these are. */
static graft_tensor *dropped(graft_tensor *t, double p, graft_tensor **mask) {
  graft_tensor *both[2] = {NULL, NULL};
  OK(graft_call(GRAFT_OP_NATIVE_DROPOUT, (graft_value[]){T(t), graft_value_float(p), graft_value_bool(true)}, 3, both,
                2));
  *mask = later(both[1]);
  return later(both[0]);
}

/* --- programs: in: two matrices of one shape --- */

static void residual(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *mask;
  out[0] = retained(ADDED(dropped(CALL(TANH, T(in[0])), 0.3, &mask), in[1]));
  out[1] = retained(mask);
}

/* The layout of the sum is that of what comes first. */
static void behind(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *mask;
  out[0] = retained(ADDED(in[1], dropped(CALL(TANH, T(in[0])), 0.3, &mask)));
}

/* The second one draws behind the first. */
static void twice(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *mask;
  out[0] = retained(ADDED(dropped(CALL(RELU, T(in[0])), 0.5, &mask), in[1]));
  out[1] = retained(dropped(CALL(NEG, T(out[0])), 0.1, &mask));
}

/* Everything, and nothing. */
static void at_the_ends(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *mask;
  out[0] = retained(CALL(NEG, T(dropped(in[0], 1, &mask))));
  out[1] = retained(CALL(NEG, T(dropped(in[1], 0, &mask))));
}

/* A number that is drawn elsewhere, and stands between the two. */
static void around_another(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *mask, *first = dropped(CALL(NEG, T(in[0])), 0.3, &mask);
  out[0] = retained(CALL(BERNOULLI_P, T(in[1]), graft_value_float(0.5)));
  out[1] = retained(ADDED(dropped(CALL(NEG, T(in[1])), 0.3, &mask), first));
}

static void gradient(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *mask;
  out[0] = retained(dropped(CALL(TANH, T(in[0])), 0.25, &mask));
  graft_tensor *grad = CALL(NATIVE_DROPOUT_BACKWARD, T(in[1]), T(mask), graft_value_float(1 / 0.75));
  out[1] = retained(CALL(NEG, T(grad)));
}

static void rows(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *mask, *kept = ADDED(dropped(in[0], 0.3, &mask), in[1]);
  out[0] = retained(CALL(SUB_TENSOR, T(kept), T(CALL(AMAX, T(kept), INTS(-1), graft_value_bool(true)))));
}

static void columns(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *mask, *kept = ADDED(dropped(in[0], 0.3, &mask), in[1]);
  out[0] = retained(CALL(SUM_DIM_INTLIST, T(kept), INTS(0), graft_value_bool(true)));
}

/* What is drawn counts as a tensor of the kernel: a group ends where it has no room for more. */
enum { ADDENDS = 8, DRAWS = 4 };
static void many(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *mask, *sum = CALL(TANH, T(in[0]));
  for (int i = 1; i < ADDENDS; i++) sum = ADDED(sum, in[i]);
  for (int i = 0; i < DRAWS; i++) sum = CALL(NEG, T(dropped(sum, 0.3, &mask)));
  out[0] = retained(sum);
}

typedef struct drawing {
  const char *name;
  calls_fn calls;
  uint32_t outputs, nodes; /* nodes: that are in groups at least */
} drawing;
static const drawing programs_of[] = {
    {"residual", residual, 2, 3},       {"twice", twice, 2, 5},
    {"at the ends", at_the_ends, 2, 4}, {"around another", around_another, 2, 3},
    {"gradient", gradient, 2, 4},       {"rows", rows, 1, 2},
    {"columns", columns, 1, 2},
};

/* Of so many elements that vectors, and blocks of four numbers, have tails; rows that begin within a block; many rows.
 */
static const int64_t sizes_of[][2] = {{1, 3}, {7, 13}, {3, 4001}, {65, 64}, {300, 130}};

static void compare_drawn(const drawing *p, graft_dtype dtype, int64_t rows_of, int64_t columns_of) {
  char name[96];
  snprintf(name, sizeof name, "%s, %d bytes, %d x %d", p->name, (int)dt_bytes(dtype), (int)rows_of, (int)columns_of);
  graft_tensor *in[] = {sized(dtype, rows_of, columns_of, 1), sized(dtype, rows_of, columns_of, 2)};
  const way w = {
      p->calls, NULL, 2, p->outputs, rows_of > 1 ? p->nodes : 1, 1, .at_least = true, .seed = 20 + (uint64_t)rows_of};
  compare(name, &w, in, in);
  release_all(in, 2);
}

START_TEST(of_f32) {
  if (!device) return;
  for (size_t s = 0; s < ROWS(sizes_of); s++)
    compare_drawn(&programs_of[_i], GRAFT_F32, sizes_of[s][0], sizes_of[s][1]);
}
END_TEST

START_TEST(of_half_types) {
  if (!device) return;
  compare_drawn(&programs_of[_i], GRAFT_BF16, 7, 13);
  compare_drawn(&programs_of[_i], GRAFT_F16, 65, 64);
}
END_TEST

/* Memory that a kernel has no right to shows once the driver's optimizer has been at it: of rows that begin within a
 * block. */
START_TEST(of_optimized_rows) {
  if (!device) return;
  for (size_t p = 0; p < ROWS(programs_of); p++) {
    if (programs_of[p].calls == rows) compare_drawn(&programs_of[p], GRAFT_F32, 7, 13);
  }
}
END_TEST

/* Numbers belong to places in the tensor, however elements lie beside them. What is to be dropped is contiguous where
 * its call is in a group. */
START_TEST(of_any_layout) {
  if (!device) return;
  for (int layout = 0; layout < LAYOUTS; layout++) {
    graft_tensor *in[] = {matrix(GRAFT_F32, 0, 1), matrix(GRAFT_F32, layout, 2)}, *turned[] = {in[1], in[0]};
    const way w = {residual, NULL, 2, 2, 3, 1, .seed = 5};
    const way any = {residual, NULL, 2, 2, 0, 0, .at_least = true, .seed = 6};
    const way other = {behind, NULL, 2, 1, 0, 0, .at_least = true, .seed = 7};
    compare("layouts", &w, in, in);
    compare("layouts of the sum", &other, in, in);
    compare("layouts of what is dropped", &any, turned, turned);
    release_all(in, 2);
  }
}
END_TEST

/* Numbers of elements side by side are then some apart: as many as there are columns. */
START_TEST(of_a_sum_that_is_turned) {
  if (!device) return;
  for (int64_t columns_of = 2; columns_of <= 5; columns_of++) {
    enum { LINES_OF = 67 };
    const int64_t sizes[] = {LINES_OF, columns_of}, strides[] = {1, LINES_OF};
    graft_tensor *all = sized(GRAFT_F32, columns_of, LINES_OF, 2);
    graft_tensor *in[] = {sized(GRAFT_F32, LINES_OF, columns_of, 1), NULL};
    OK(tns_new(all->storage, device, GRAFT_F32, 2, sizes, strides, 0, &in[1]));
    const way w = {behind, NULL, 2, 1, 3, 1, .seed = 7};
    compare("turned", &w, in, in);
    graft_tensor_release(all);
    release_all(in, 2);
  }
}
END_TEST

/* Two words make a number of f64: such a call runs alone. */
START_TEST(of_f64_alone) {
  if (!device) return;
  graft_tensor *in[] = {sized(GRAFT_F64, 7, 13, 1), sized(GRAFT_F64, 7, 13, 2)};
  const way w = {residual, NULL, 2, 2, 0, 0, .seed = 5};
  compare("f64", &w, in, in);
  release_all(in, 2);
}
END_TEST

START_TEST(of_more_than_a_kernel_takes) {
  if (!device) return;
  graft_tensor *in[ADDENDS];
  for (uint32_t i = 0; i < ADDENDS; i++) in[i] = sized(GRAFT_F32, 7, 13, i);
  const way w = {many, NULL, ADDENDS, 1, ADDENDS + 2 * DRAWS, 2, .seed = 5};
  compare("many", &w, in, in);
  release_all(in, ADDENDS);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(of_f32, ROWS(programs_of)),
                              EACH(of_half_types, ROWS(programs_of)),
                              ONCE(of_any_layout),
                              ONCE(of_a_sum_that_is_turned),
                              ONCE(of_f64_alone),
                              ONCE(of_more_than_a_kernel_takes),
                              {0}};
  const suite_test optimized[] = {ONCE(of_optimized_rows), {0}};
  const suite_options cpus = on_one_device(open_for_cpus), gpus = on_one_device(open_for_gpus);
  setenv("GRAFT_OPENCL_OPTIMIZE", "always", 1);
  int failed = run_suite("opencl_draws_optimized", optimized, cpus);
  setenv("GRAFT_OPENCL_OPTIMIZE", "no", 1);
  failed = run_suite("opencl_draws", tests, cpus) || failed;
  return run_suite("opencl_draws_of_gpus", tests, gpus) || failed;
}
