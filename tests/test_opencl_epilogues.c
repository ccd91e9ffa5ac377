/* Pointwise calls that the OpenCL backend makes in the kernel of the matrix product before them give, to the bit, what
 * the calls give one by one: bias, activation, residual, conversions, values that are seen in between. */
#include "opencl_groups.h"

#define ADDED(a, b) CALL(ADD_TENSOR, T(a), T(b))
#define TIMES(a, b) CALL(MUL_TENSOR, T(a), b)

/* --- programs: in: a, b, a row, a matrix of the result's shape --- */

static void bias_gelu(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  out[0] = retained(CALL(GELU, T(ADDED(CALL(MM, T(in[0]), T(in[1])), in[2]))));
}

/* What a gradient takes is seen, too. */
static void linear_relu(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *product = CALL(ADDMM, T(in[2]), T(in[0]), T(in[1]));
  out[0] = retained(product);
  out[1] = retained(CALL(GT_SCALAR, T(product), NUMBER(0)));
  out[2] = retained(CALL(RELU, T(product)));
}

static void silu_residual(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  out[0] = retained(ADDED(CALL(SILU, T(TIMES(CALL(MM, T(in[0]), T(in[1])), NUMBER(0.3)))), in[3]));
}

/* The residual is written over. */
static void onto_residual(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *product = CALL(MM, T(in[0]), T(in[1]));
  WRITE(in[3], ADD_TENSOR, T(in[3]), T(product));
  out[0] = retained(TIMES(in[3], NUMBER(2)));
}

/* Rounded on the way, and given in another dtype. */
static void with_casts(graft_tensor **in, graft_tensor **out, const void *what) {
  const graft_dtype dtype = *(const graft_dtype *)what == GRAFT_F32 ? GRAFT_BF16 : GRAFT_F32;
  graft_tensor *product = cast(CALL(MM, T(in[0]), T(in[1])), dtype);
  graft_tensor *row = cast(in[2], dtype);
  out[0] = retained(row);
  out[1] = retained(CALL(TANH, T(ADDED(TIMES(product, NUMBER(1.7)), row))));
}

/* The result is turned, so that rows of the kernel's are columns. */
static void turned(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *a = CALL(PERMUTE, T(in[1]), INTS(1, 0)), *b = CALL(PERMUTE, T(in[0]), INTS(1, 0));
  graft_tensor *product = CALL(MM, T(a), T(b)), *column = CALL(PERMUTE, T(in[2]), INTS(1, 0));
  out[0] = retained(CALL(SIGMOID, T(ADDED(product, column))));
  out[1] = retained(ADDED(out[0], CALL(PERMUTE, T(in[3]), INTS(1, 0))));
}

/* As a layer has it: three dimensions around a product of two. */
static void of_three(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *product = CALL(MM, T(in[0]), T(in[1]));
  const int64_t rows = in[0]->sizes[0], columns = in[1]->sizes[1];
  graft_tensor *wide = CALL(VIEW, T(product), INTS(1, rows, columns));
  out[0] = retained(CALL(RELU, T(ADDED(wide, in[2]))));
}

static void batched(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *a = CALL(UNSQUEEZE, T(in[0]), INT(0)), *b = CALL(UNSQUEEZE, T(in[1]), INT(0));
  graft_tensor *product = CALL(BMM, T(a), T(b));
  out[0] = retained(ADDED(CALL(TANH, T(TIMES(product, NUMBER(0.125)))), in[3]));
}

/* What a backward computes again, of what the gradient behind the product reads, too: a CPU's kernel makes both. */
static void accompanied(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  out[0] = retained(CALL(GELU, T(in[3])));
  out[1] = retained(CALL(GELU_BACKWARD, T(CALL(MM, T(in[0]), T(in[1]))), T(in[3])));
}

typedef struct followed {
  const char *name;
  calls_fn calls;
  uint32_t outputs, nodes;
} followed;
static bool of_cpus = true; /* the kernels at hand; of GPUs, nothing accompanies another call */

static const followed programs_of[] = {
    {"bias, gelu", bias_gelu, 1, 3},        {"addmm, relu", linear_relu, 3, 3}, {"silu, residual", silu_residual, 1, 4},
    {"onto residual", onto_residual, 1, 3}, {"casts", with_casts, 2, 5},        {"turned", turned, 2, 4},
    {"three dimensions", of_three, 1, 3},   {"batched", batched, 1, 4},         {"accompanied", accompanied, 2, 2},
};

/* m, k, n: one element; smaller than any tile; tails of each; few rows; few columns; a long K; more than a tile. */
static const int64_t sizes_of[][3] = {{1, 1, 1},    {3, 5, 7},     {37, 70, 45},  {2, 300, 205},
                                      {150, 40, 3}, {9, 2500, 17}, {130, 33, 150}};

static void compare_product(const followed *p, graft_dtype dtype, const int64_t *size) {
  char name[96];
  snprintf(name, sizeof name, "%s, %d bytes, %d x %d x %d", p->name, (int)dt_bytes(dtype), (int)size[0], (int)size[1],
           (int)size[2]);
  graft_tensor *in[4], *same[4];
  for (int i = 0; i < 2; i++) {
    graft_tensor **to = i ? same : in;
    to[0] = sized(dtype, size[0], size[1], 1);
    to[1] = sized(dtype, size[1], size[2], 2);
    to[2] = sized(dtype, 1, size[2], 3);
    to[3] = sized(dtype, size[0], size[2], 4);
  }
  const uint32_t nodes = p->nodes + (of_cpus && p->calls == accompanied);
  const way w = {p->calls, &dtype, 4, p->outputs, nodes, 1, .at_least = true};
  compare(name, &w, in, same);
  release_all(in, 4);
  release_all(same, 4);
}

START_TEST(of_f32) {
  if (!device) return;
  for (size_t s = 0; s < ROWS(sizes_of); s++) compare_product(&programs_of[_i], GRAFT_F32, sizes_of[s]);
}
END_TEST

START_TEST(of_other_dtypes) {
  if (!device) return;
  compare_product(&programs_of[_i], GRAFT_BF16, sizes_of[2]);
  compare_product(&programs_of[_i], GRAFT_F16, sizes_of[3]);
  if (programs_of[_i].calls != with_casts) compare_product(&programs_of[_i], GRAFT_F64, sizes_of[2]);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(of_f32, ROWS(programs_of)), EACH(of_other_dtypes, ROWS(programs_of)), {0}};
  setenv("GRAFT_OPENCL_OPTIMIZE", "no", 1); /* tiles take PoCL's optimizer long */
  const int failed = run_suite("opencl_epilogues", tests, on_one_device(open_for_cpus));
  of_cpus = false;
  return run_suite("opencl_epilogues_of_gpus", tests, on_one_device(open_for_gpus)) || failed;
}
