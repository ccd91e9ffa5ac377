/* Pointwise calls that the OpenCL backend makes in the kernel of the gradient of a layer norm before them give, to the
 * bit, what the calls give one by one, as do the gradients of weight and bias beside it: residuals, conversions, values
 * that are seen in between. On a GPU that gradient runs alone, and what follows it is a group of its own. */
#include "opencl_groups.h"

#define ADDED(a, b) CALL(ADD_TENSOR, T(a), T(b))

typedef struct gradients {
  graft_tensor *of_input, *of_weight, *of_bias;
} gradients;

enum { OF_RESULT, INPUT, RESIDUAL, WEIGHT, TURNED, INPUTS };

/* Of the norm of each row, behind the norm itself. */
static gradients gradients_of(graft_tensor **in, bool weighted) {
  static const uint8_t wanted[] = {1, 1, 1};
  const int64_t columns = in[INPUT]->sizes[1];
  graft_tensor *norm[3] = {NULL}, *made[3] = {NULL};
  const graft_value weight = T(weighted ? CALL(VIEW, T(in[WEIGHT]), INTS(columns)) : NULL);
  const graft_value shape = graft_value_ints(&columns, 1);
  OK(graft_call(GRAFT_OP_NATIVE_LAYER_NORM,
                (graft_value[]){T(in[INPUT]), shape, weight, weight, graft_value_float(1e-5)}, 5, norm, 3));
  for (int i = 0; i < 3; i++) later(norm[i]);
  OK(graft_call(GRAFT_OP_NATIVE_LAYER_NORM_BACKWARD,
                (graft_value[]){T(in[OF_RESULT]),
                                T(in[INPUT]),
                                shape,
                                T(norm[1]),
                                T(norm[2]),
                                weight,
                                weight,
                                {GRAFT_VALUE_MASK, 3, {.mask = wanted}}},
                8, made, 3));
  for (int i = 0; i < 3; i++) {
    if (made[i]) later(made[i]);
  }
  return (gradients){made[0], made[1], made[2]};
}

/* --- programs --- */

static void residual(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  const gradients g = gradients_of(in, true);
  out[0] = retained(ADDED(in[RESIDUAL], g.of_input));
  out[1] = retained(g.of_weight);
  out[2] = retained(g.of_bias);
}

/* Nobody asks for the sums. */
static void alone(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  out[0] = retained(CALL(TANH, T(ADDED(gradients_of(in, true).of_input, in[RESIDUAL]))));
}

/* One of the sums is seen, the other one is not. */
static void of_bias(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  const gradients g = gradients_of(in, true);
  out[0] = retained(g.of_bias);
  out[1] = retained(ADDED(g.of_input, in[RESIDUAL]));
}

static void unweighted(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  out[0] = retained(ADDED(gradients_of(in, false).of_input, in[RESIDUAL]));
}

/* What the norm gives is seen, too, and what is made of it in another class of dtypes. */
static void seen(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  const gradients g = gradients_of(in, true);
  out[0] = retained(g.of_weight);
  out[1] = retained(g.of_input);
  out[2] = retained(CALL(GT_SCALAR, T(g.of_input), NUMBER(0)));
  out[3] = retained(ADDED(CALL(RELU, T(g.of_input)), in[RESIDUAL]));
}

/* The residual is written over. */
static void onto_residual(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  const gradients g = gradients_of(in, true);
  WRITE(in[RESIDUAL], ADD_TENSOR, T(in[RESIDUAL]), T(g.of_input));
  out[0] = retained(CALL(MUL_TENSOR, T(in[RESIDUAL]), NUMBER(2)));
  out[1] = retained(g.of_weight);
}

/* What is written last does not lie in order. */
static void onto_turned(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  const gradients g = gradients_of(in, true);
  graft_tensor *turned = CALL(PERMUTE, T(in[TURNED]), INTS(1, 0));
  WRITE(turned, ADD_TENSOR, T(turned), T(g.of_input));
  out[0] = retained(g.of_bias);
}

/* Rounded on the way, and given in another dtype. */
static void with_casts(graft_tensor **in, graft_tensor **out, const void *what) {
  const graft_dtype dtype = *(const graft_dtype *)what == GRAFT_F32 ? GRAFT_BF16 : GRAFT_F32;
  const gradients g = gradients_of(in, true);
  graft_tensor *scaled = CALL(MUL_TENSOR, T(g.of_input), NUMBER(1.7));
  out[0] = retained(CALL(TANH, T(cast(scaled, dtype))));
  out[1] = retained(g.of_bias);
}

/* Rows and elements of several dimensions, of what is written and read out of order. */
static void in_other_dimensions(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  const gradients g = gradients_of(in, true);
  const int64_t rows = in[INPUT]->sizes[0], columns = in[INPUT]->sizes[1];
  graft_tensor *wide = CALL(VIEW, T(g.of_input), INTS(1, rows, 1, columns));
  graft_tensor *column = CALL(SELECT_INT, T(in[RESIDUAL]), INT(1), INT(0));
  graft_tensor *spread = CALL(VIEW, T(column), INTS(1, rows, 1, 1));
  out[0] = retained(ADDED(wide, spread));
  out[1] = retained(CALL(PERMUTE, T(out[0]), INTS(3, 0, 1, 2)));
}

/* What is made of the sums, and a sum of what follows, are no part of it. */
static void with_others(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  const gradients g = gradients_of(in, true);
  graft_tensor *sum = ADDED(in[RESIDUAL], g.of_input);
  out[0] = retained(CALL(NEG, T(g.of_weight)));
  out[1] = retained(sum);
  out[2] = retained(CALL(SUM_DIM_INTLIST, T(sum), INTS(0), graft_value_bool(false)));
}

typedef struct followed {
  const char *name;
  calls_fn calls;
  uint32_t outputs, nodes; /* nodes: that follow the gradient */
} followed;
static const followed programs_of[] = {
    {"residual", residual, 3, 1},       {"alone", alone, 1, 2},      {"of bias", of_bias, 2, 1},
    {"unweighted", unweighted, 1, 1},   {"seen", seen, 4, 3},        {"onto residual", onto_residual, 2, 2},
    {"onto turned", onto_turned, 1, 1}, {"casts", with_casts, 2, 3}, {"other dimensions", in_other_dimensions, 2, 1},
    {"with others", with_others, 3, 1},
};

/* Rows and their elements: fewer than a vector, with a tail, more than a block of sums; one row, whose gradient of a
 * weight is in the shape of the input's, runs alone. */
static const int64_t sizes_of[][2] = {{2, 1}, {5, 7}, {37, 70}, {3, 2305}, {150, 40}, {1, 45}};
static bool of_cpus = true; /* the kernels at hand */

static void compare_norm(const followed *p, graft_dtype dtype, const int64_t *size) {
  char name[96];
  snprintf(name, sizeof name, "%s, %d bytes, %d x %d", p->name, (int)dt_bytes(dtype), (int)size[0], (int)size[1]);
  graft_tensor *in[INPUTS], *same[INPUTS];
  for (int way = 0; way < 2; way++) {
    graft_tensor **to = way ? same : in;
    for (uint32_t i = 0; i < INPUTS; i++) {
      const int64_t rows = i == WEIGHT ? 1 : i == TURNED ? size[1] : size[0];
      to[i] = sized(dtype, rows, i == TURNED ? size[0] : size[1], i + 1);
    }
  }
  const uint32_t with_norm = of_cpus && size[0] > 1, nodes = p->nodes + with_norm;
  const way w = {p->calls, &dtype, INPUTS, p->outputs, nodes > 1 ? nodes : 0, nodes > 1, .at_least = size[0] > 1};
  compare(name, &w, in, same);
  release_all(in, INPUTS);
  release_all(same, INPUTS);
}

START_TEST(of_f32) {
  if (!device) return;
  for (size_t s = 0; s < ROWS(sizes_of); s++) compare_norm(&programs_of[_i], GRAFT_F32, sizes_of[s]);
}
END_TEST

START_TEST(of_other_dtypes) {
  if (!device) return;
  compare_norm(&programs_of[_i], GRAFT_BF16, sizes_of[2]);
  compare_norm(&programs_of[_i], GRAFT_F16, sizes_of[1]);
  if (programs_of[_i].calls != with_casts) compare_norm(&programs_of[_i], GRAFT_F64, sizes_of[2]);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(of_f32, ROWS(programs_of)), EACH(of_other_dtypes, ROWS(programs_of)), {0}};
  setenv("GRAFT_OPENCL_OPTIMIZE", "no", 1);
  const int failed = run_suite("opencl_norms", tests, on_one_device(open_for_cpus));
  of_cpus = false;
  return run_suite("opencl_norms_of_gpus", tests, on_one_device(open_for_gpus)) || failed;
}
