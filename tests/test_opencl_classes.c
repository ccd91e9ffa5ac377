/* A cross entropy and its gradient on the OpenCL backend: the calls that give them are one where nobody sees what is
 * between them, and give what they give one by one, to the bit. */
#include "opencl_groups.h"

enum { LOGITS, TARGETS, GRAD, WEIGHTS, ALL, INPUTS };
enum { EACH_ROW, MEAN, IGNORED = 2 };

typedef struct entropy {
  const char *name;
  int64_t reduction;
  bool weighted, seen; /* seen: what is between the calls comes out, too */
} entropy;

static bool on_cpus;
static const entropy entropies[] = {
    {"mean", MEAN, false, false},         {"weighted mean", MEAN, true, false}, {"sum", MEAN + 1, true, false},
    {"each row", EACH_ROW, false, false}, {"seen between", MEAN, true, true},
};

static graft_value weight_of(const entropy *e, graft_tensor **in) {
  return T(e->weighted ? in[WEIGHTS] : NULL);
}

static void gradient(graft_tensor **in, graft_tensor **out, const void *what) {
  const entropy *e = what;
  const graft_value weight = weight_of(e, in);
  graft_tensor *both[2] = {NULL, NULL};
  graft_tensor *result = CALL(LOG_SOFTMAX, T(in[LOGITS]), INT(1), graft_value_bool(false));
  const graft_value args[] = {T(result), T(in[TARGETS]), weight, INT(e->reduction), INT(IGNORED)};
  OK(graft_call(GRAFT_OP_NLL_LOSS_FORWARD, args, ROWS(args), both, 2));
  later(both[0]);
  graft_tensor *between = CALL(NLL_LOSS_BACKWARD, T(in[GRAD]), T(result), T(in[TARGETS]), weight, INT(e->reduction),
                               INT(IGNORED), T(later(both[1])));
  out[0] = retained(CALL(LOG_SOFTMAX_BACKWARD_DATA, T(between), T(result), INT(1),
                         (graft_value){GRAFT_VALUE_DTYPE, 0, {.i = graft_tensor_dtype(in[LOGITS])}}));
  if (e->seen) out[1] = retained(between);
}

/* The loss, and the sum of weights, whose logarithm nobody sees; the sum is seen where the loss is weighted. */
static void loss(graft_tensor **in, graft_tensor **out, const void *what) {
  const entropy *e = what;
  graft_tensor *both[2] = {NULL, NULL};
  graft_tensor *logarithm = CALL(LOG_SOFTMAX, T(in[LOGITS]), INT(1), graft_value_bool(false));
  const graft_value args[] = {T(logarithm), T(in[TARGETS]), weight_of(e, in), INT(e->reduction), INT(IGNORED)};
  OK(graft_call(GRAFT_OP_NLL_LOSS_FORWARD, args, ROWS(args), both, 2));
  out[0] = both[0];
  if (e->weighted)
    out[1] = both[1];
  else
    later(both[1]);
  if (e->seen) out[2] = retained(logarithm);
}

/* The gradient, for which the logarithm is made again; the sum of weights is given. */
static void gradient_alone(graft_tensor **in, graft_tensor **out, const void *what) {
  const entropy *e = what;
  graft_tensor *logarithm = CALL(LOG_SOFTMAX, T(in[LOGITS]), INT(1), graft_value_bool(false));
  graft_tensor *between = CALL(NLL_LOSS_BACKWARD, T(in[GRAD]), T(logarithm), T(in[TARGETS]), weight_of(e, in),
                               INT(e->reduction), INT(IGNORED), T(in[ALL]));
  out[0] = retained(CALL(LOG_SOFTMAX_BACKWARD_DATA, T(between), T(logarithm), INT(1),
                         (graft_value){GRAFT_VALUE_DTYPE, 0, {.i = graft_tensor_dtype(in[LOGITS])}}));
  if (e->seen) out[1] = retained(logarithm);
}

/* The gradient takes the place of what it is of: what a call reads, another writes. */
static void gradient_in_place(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)out;
  const entropy *e = what;
  graft_tensor *logarithm = CALL(LOG_SOFTMAX, T(in[LOGITS]), INT(1), graft_value_bool(false));
  graft_tensor *between = CALL(NLL_LOSS_BACKWARD, T(in[GRAD]), T(logarithm), T(in[TARGETS]), weight_of(e, in),
                               INT(e->reduction), INT(IGNORED), T(in[ALL]));
  WRITE(in[LOGITS], LOG_SOFTMAX_BACKWARD_DATA, T(between), T(logarithm), INT(1),
        (graft_value){GRAFT_VALUE_DTYPE, 0, {.i = graft_tensor_dtype(in[LOGITS])}});
}

static graft_tensor *targets(int64_t rows, int64_t classes) {
  graft_tensor *t;
  int64_t *values = calloc((size_t)rows, sizeof *values);
  for (int64_t i = 0; i < rows; i++) values[i] = (i * 7 + 1) % classes;
  if (rows > 3) values[3] = IGNORED;
  OK(graft_tensor_from_host(device, GRAFT_I64, 1, &rows, values, &t));
  free(values);
  return t;
}

static graft_tensor *one(graft_dtype dtype, uint32_t seed) {
  graft_tensor *list = filled_with(plain_value_at, dtype, 1, seed), *number;
  OK(tns_new(list->storage, device, dtype, 0, NULL, NULL, 0, &number));
  graft_tensor_release(list);
  return number;
}

/* How many of its calls go together. */
static int together(void (*program)(graft_tensor **, graft_tensor **, const void *), const entropy *e) {
  if (program == gradient) return e->seen ? 0 : 2;
  if (program == loss) return e->seen || !on_cpus || e->reduction == EACH_ROW ? 0 : 2;
  return on_cpus && !e->seen ? 3 : 2;
}

static void compare_program(const char *name, void (*program)(graft_tensor **, graft_tensor **, const void *),
                            const entropy *e, graft_tensor **in) {
  const int count = together(program, e), outputs = 1 + e->seen + (program == loss && e->weighted);
  const way w = {program, e, INPUTS, outputs, count, count > 0, .at_least = false};
  compare(name, &w, in, in);
}

static void compare_entropy(const entropy *e, graft_dtype dtype, int64_t rows, int64_t classes) {
  char name[96];
  snprintf(name, sizeof name, "%s, %d bytes, %d x %d", e->name, (int)dt_bytes(dtype), (int)rows, (int)classes);
  const int64_t row_count = e->reduction == EACH_ROW ? rows : 1;
  graft_tensor *in[INPUTS] = {
      sized(dtype, rows, classes, 1), targets(rows, classes),
      e->reduction == EACH_ROW ? filled_with(plain_value_at, dtype, row_count, 2) : one(dtype, 2),
      filled_with(plain_value_at, dtype, classes, 3), one(dtype, 4)};
  compare_program(name, gradient, e, in);
  compare_program(name, loss, e, in);
  compare_program(name, gradient_alone, e, in);
  release_all(in, INPUTS);
}

START_TEST(one_kernel_and_the_same_bits) {
  static const int64_t sizes[][2] = {{1, 5}, {7, 13}, {65, 64}, {5, 4001}};
  if (!device) return;
  for (size_t s = 0; s < ROWS(sizes); s++) compare_entropy(&entropies[_i], GRAFT_F32, sizes[s][0], sizes[s][1]);
  compare_entropy(&entropies[_i], GRAFT_BF16, 7, 130);
  compare_entropy(&entropies[_i], GRAFT_F16, 9, 33);
  compare_entropy(&entropies[_i], GRAFT_F64, 7, 13);
}
END_TEST

START_TEST(what_is_read_is_not_written) {
  enum { ROWS_OF = 7, CLASSES = 13 };
  const entropy *e = &entropies[0];
  if (!device) return;
  graft_tensor *ways[2][INPUTS];
  for (int i = 0; i < 2; i++) {
    graft_tensor *in[INPUTS] = {sized(GRAFT_F32, ROWS_OF, CLASSES, 1), targets(ROWS_OF, CLASSES), one(GRAFT_F32, 2),
                                filled_with(plain_value_at, GRAFT_F32, CLASSES, 3), one(GRAFT_F32, 4)};
    memcpy(ways[i], in, sizeof in);
  }
  const way w = {gradient_in_place, e, INPUTS, 0, 2, 1, .at_least = false};
  compare("in place", &w, ways[0], ways[1]);
  for (int i = 0; i < 2; i++) release_all(ways[i], INPUTS);
}
END_TEST

int main(void) {
  const suite_test tests[] = {
      EACH(one_kernel_and_the_same_bits, ROWS(entropies)), ONCE(what_is_read_is_not_written), {0}};
  setenv("GRAFT_OPENCL_OPTIMIZE", "no", 1);
  on_cpus = true;
  const int failed = run_suite("opencl_classes", tests, on_one_device(open_for_cpus));
  on_cpus = false;
  return run_suite("opencl_classes_of_gpus", tests, on_one_device(open_for_gpus)) || failed;
}
