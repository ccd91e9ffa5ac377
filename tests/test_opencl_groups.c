/* Pointwise calls that the OpenCL backend fuses give, to the bit, what they give one by one: ops by their names,
 * dtypes, conversions in between, layouts, numbers that each run brings; and what is too large is cut. */
#include <pthread.h>

#include "opencl_groups.h"

/* --- ops by name --- */

static const char *const float_ops[] = {
    "abs",   "neg",     "sign",    "relu", "floor",    "ceil",     "trunc",      "round",       "exp",
    "expm1", "log",     "log1p",   "log2", "log10",    "sqrt",     "rsqrt",      "reciprocal",  "asin",
    "acos",  "atan",    "sinh",    "cosh", "tanh",     "asinh",    "acosh",      "atanh",       "erf",
    "gelu",  "sigmoid", "silu",    "exp2", "erfc",     "frac",     "isnan",      "hardswish",   "hardsigmoid",
    "elu",   "isinf",   "signbit", "celu", "softplus", "hardtanh", "leaky_relu", "logical_not", "hardshrink",
};
static const char *const float_pairs[] = {
    "add.Tensor",   "sub.Tensor",  "mul.Tensor",   "div.Tensor",        "maximum",          "minimum",
    "fmax",         "fmin",        "atan2",        "pow.Tensor_Tensor", "eq.Tensor",        "ne.Tensor",
    "lt.Tensor",    "ge.Tensor",   "hypot",        "copysign.Tensor",   "fmod.Tensor",      "remainder.Tensor",
    "xlogy.Tensor", "logical_and", "floor_divide", "heaviside",         "sigmoid_backward", "tanh_backward",
};
static const char *const whole_pairs[] = {
    "add.Tensor",        "sub.Tensor",
    "mul.Tensor",        "maximum",
    "minimum",           "bitwise_and.Tensor",
    "bitwise_or.Tensor", "bitwise_xor.Tensor",
    "eq.Tensor",         "lt.Tensor",
    "gt.Tensor",         "bitwise_left_shift.Tensor",
    "logical_xor",       "gcd",
    "pow.Tensor_Tensor", "heaviside",
};

/* RESULTS ops of a list, each of a value that only the group has. */
typedef struct list {
  const char *const *names;
  int count;
  bool pairs;
} list;

static void call_list(graft_tensor **in, graft_tensor **out, const void *what) {
  const list *l = what;
  graft_tensor *t = CALL(MAXIMUM, T(in[0]), T(in[1])), *u = CALL(MINIMUM, T(in[1]), T(in[0]));
  for (int i = 0; i < l->count; i++) {
    char name[64];
    snprintf(name, sizeof name, "aten::%s", l->names[i]);
    const op_schema *schema = op_schema_find(name);
    ck_assert_msg(schema, "%s", name);
    const graft_value args[] = {T(t), T(u)};
    OK(graft_call(schema->id, args, l->pairs ? 2 : 1, &out[i], 1));
  }
}

static void compare_list(const char *const *names, int count, bool pairs, graft_dtype dtype, int layout) {
  for (int at = 0; at < count; at += RESULTS) {
    const list l = {names + at, count - at < RESULTS ? count - at : RESULTS, pairs};
    const uint32_t nodes = (uint32_t)l.count + 1 + pairs; /* without pairs the minimum is dead */
    const way w = {call_list, &l, 2, (uint32_t)l.count, nodes, 1, .at_least = false};
    graft_tensor *in[] = {matrix(dtype, layout, 1), matrix(dtype, (layout + 3) % LAYOUTS, 2)};
    compare(names[at], &w, in, in);
    release_all(in, 2);
  }
}

static const graft_dtype float_dtypes[] = {GRAFT_F32, GRAFT_BF16, GRAFT_F16, GRAFT_F64};
static const graft_dtype whole_dtypes[] = {GRAFT_I64, GRAFT_I32, GRAFT_U8, GRAFT_I16};

/* Each program takes its time to compile: all ops of f32, and some of each other dtype. */
START_TEST(ops_of_floats) {
  if (!device) return;
  compare_list(float_ops, _i ? 2 * RESULTS : ROWS(float_ops), false, float_dtypes[_i], _i);
}
END_TEST

START_TEST(pairs_of_floats) {
  if (!device) return;
  compare_list(float_pairs, _i ? RESULTS : ROWS(float_pairs), true, float_dtypes[_i], (_i + 2) % LAYOUTS);
}
END_TEST

START_TEST(pairs_of_whole_numbers) {
  if (!device) return;
  compare_list(whole_pairs, _i ? RESULTS : ROWS(whole_pairs), true, whole_dtypes[_i], (_i + 4) % LAYOUTS);
}
END_TEST

/* --- what stands between ops --- */

/* Each rounding counts, and what is compared chooses. */
static void convert(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *half = CALL(MUL_TENSOR, T(cast(in[0], GRAFT_F16)), T(cast(in[1], GRAFT_F16)));
  graft_tensor *brain = CALL(TANH, T(cast(half, GRAFT_BF16)));
  graft_tensor *whole = CALL(ADD_TENSOR, T(cast(CALL(MUL_TENSOR, T(brain), NUMBER(10)), GRAFT_I32)), T(in[2]));
  graft_tensor *mask = CALL(GT_TENSOR, T(cast(whole, GRAFT_F32)), T(in[0]));
  out[0] = retained(CALL(WHERE_SELF, T(mask), T(cast(half, GRAFT_F32)), T(cast(brain, GRAFT_F32))));
  out[1] = retained(cast(mask, GRAFT_F64));
  out[2] = retained(CALL(BITWISE_NOT, T(CALL(LOGICAL_NOT, T(whole)))));
}

START_TEST(conversions_between_ops) {
  if (!device) return;
  const way w = {convert, NULL, 3, 3, 16, 1, .at_least = false};
  graft_tensor *in[] = {matrix(GRAFT_F32, 0, 1), matrix(GRAFT_F32, 1, 2), matrix(GRAFT_I32, 0, 3)};
  compare("conversions", &w, in, in);
  release_all(in, 3);
}
END_TEST

/* Rows and columns that are broadcast, a view that is written, and a value that is read before and after. */
static void write_and_spread(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *before = CALL(MUL_TENSOR, T(in[0]), T(in[1]));
  WRITE(in[0], ADD_TENSOR, T(in[0]), T(in[2]));
  WRITE(in[0], TANH, T(in[0]));
  out[0] = retained(CALL(SUB_TENSOR, T(before), T(in[0])));
}

START_TEST(writes_to_inputs_and_broadcasts) {
  if (!device) return;
  const int64_t row[] = {1, COLUMNS}, column[] = {ROWS_OF_X, 1}, strides[] = {1, 1};
  for (int layout = 0; layout < LAYOUTS; layout++) {
    if (layout == 3) continue; /* elements that share memory are not written */
    graft_tensor *in[3] = {matrix(GRAFT_F32, layout, 1)}, *same[3] = {matrix(GRAFT_F32, layout, 1)};
    graft_tensor *a = filled(GRAFT_F32, COLUMNS, 5), *b = filled(GRAFT_F32, ROWS_OF_X, 6);
    OK(tns_new(a->storage, device, GRAFT_F32, 2, row, strides, 0, &in[1]));
    OK(tns_new(b->storage, device, GRAFT_F32, 2, column, strides, 0, &in[2]));
    same[1] = in[1], same[2] = in[2];
    const way w = {write_and_spread, NULL, 3, 1, 4, 1, .at_least = false};
    compare("writes", &w, in, same);
    release_all((graft_tensor *[]){in[0], in[1], in[2], same[0], a, b}, 6);
  }
}
END_TEST

/* A number in host memory is another one in each run; scalars are the calls' own. */
static void with_numbers(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *t = CALL(MUL_TENSOR, T(in[0]), T(in[1]));
  t = CALL(ADD_TENSOR, T(t), T(in[1]), NUMBER(0.3));
  t = CALL(CLAMP, T(t), NUMBER(-1.7));
  out[0] = retained(CALL(POW_TENSOR_SCALAR, T(t), NUMBER(1.5)));
}

START_TEST(numbers_of_each_run) {
  if (!device || NOTHING_RUNS) return;
  const way w = {with_numbers, NULL, 2, 1, 4, 1, .at_least = false};
  graft_tensor *x = matrix(GRAFT_F32, 0, 1), *like = NULL;
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F32, 0, NULL, (float[]){1}, &like));
  graft_graph_exec *exec = compiled(&w, (graft_tensor *[]){x, like});
  for (int i = 0; i < 3; i++) {
    graft_tensor *number, *expected = NULL, *out = NULL;
    OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F32, 0, NULL, (float[]){0.7f * (float)(i + 1)}, &number));
    graft_tensor *in[] = {x, number};
    with_numbers(in, &expected, NULL);
    sweep();
    OK(graft_graph_run(exec, in, 2, &out, 1));
    expect_same(&(const program){.name = "numbers"}, "output", 0, out, expected);
    release_all((graft_tensor *[]){number, expected, out}, 3);
  }
  graft_graph_exec_destroy(exec);
  release_all((graft_tensor *[]){x, like}, 2);
}
END_TEST

/* --- sizes of groups --- */

enum { LONG_CHAIN = 70 };

static void long_chain(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *t = in[0];
  for (int i = 0; i < LONG_CHAIN; i++) t = CALL(SUB_TENSOR, T(t), T(in[i % 2]));
  out[0] = retained(t);
}

/* As many as there may be in one, and the rest. */
START_TEST(what_is_too_large_is_cut) {
  if (!device) return;
  const way w = {long_chain, NULL, 2, 1, LONG_CHAIN, 3, .at_least = false};
  graft_tensor *in[] = {matrix(GRAFT_F32, 0, 1), matrix(GRAFT_F32, 0, 2)};
  compare("a long chain", &w, in, in);
  const uint64_t before = programs();
  compare("again", &w, in, in);
  ck_assert_uint_eq(programs(), before); /* nothing was built or loaded */
  release_all(in, 2);
}
END_TEST

static void apart(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *t = CALL(EXP, T(in[0])), *turned = CALL(PERMUTE, T(t), INTS(1, 0));
  out[0] = retained(CALL(NEG, T(turned))); /* another view of what the group writes */
  graft_tensor *sum = CALL(CUMSUM, T(t), INT(1));
  out[1] = retained(CALL(TANH, T(CALL(MUL_TENSOR, T(t), T(sum))))); /* which needs sums along it */
}

START_TEST(what_does_not_fit_runs_alone) {
  if (!device) return;
  const way w = {apart, NULL, 1, 2, 2, 1, .at_least = false};
  graft_tensor *in[] = {matrix(GRAFT_F32, 0, 1)};
  compare("apart", &w, in, in);
  release_all(in, 1);
}
END_TEST

/* Two calls that give each other nothing, behind some that run alone and with others of these between them. */
typedef struct two_calls {
  const char *name;
  int apart;
  bool readers; /* of one tensor */
  uint32_t groups;
} two_calls;

static const two_calls twos[] = {
    {"neighbours", 1, false, 1},           {"neighbours that read one", 1, true, 1},  {"far apart", 12, false, 0},
    {"readers of one apart", 12, true, 1}, {"readers of one far apart", 40, true, 0},
};

static graft_tensor *alone(graft_tensor *t, int count) {
  for (int i = 0; i < count; i++) t = CALL(CUMSUM, T(t), INT(1));
  return t;
}

static void call_two(graft_tensor **in, graft_tensor **out, const void *what) {
  const two_calls *two = what;
  enum { BEFORE = 4 };
  graft_tensor *t = alone(in[0], BEFORE);
  out[0] = retained(CALL(EXP, T(t)));
  out[1] = retained(alone(t, two->apart - 1));
  out[2] = retained(CALL(NEG, T(two->readers ? t : in[1])));
}

START_TEST(calls_that_need_not_each_other) {
  if (!device) return;
  const two_calls *two = &twos[_i];
  const way w = {call_two, two, 2, 3, 2 * two->groups, two->groups, .passes = "-late"};
  graft_tensor *in[] = {matrix(GRAFT_F32, 0, 1), matrix(GRAFT_F32, 0, 2)};
  compare(two->name, &w, in, in);
  release_all(in, 2);
}
END_TEST

/* --- several threads --- */

typedef struct shared {
  graft_graph_exec *exec;
  graft_tensor *in[2], *expected;
} shared;

static void *run_often(void *context) {
  const shared *s = context;
  graft_rt_stream *stream;
  OK(graft_stream_create(device, 0, 0, &stream));
  graft_stream_set_current(stream);
  for (int i = 0; i < 50; i++) {
    graft_tensor *out = NULL;
    OK(graft_graph_run(s->exec, (graft_tensor **)s->in, 2, &out, 1));
    expect_same(&(const program){.name = "threads"}, "output", 0, out, s->expected);
    graft_tensor_release(out);
  }
  graft_stream_destroy(stream);
  return NULL;
}

START_TEST(threads_run_one_on_streams_of_theirs) {
  if (!device || NOTHING_RUNS) return;
  const way w = {long_chain, NULL, 2, 1, LONG_CHAIN, 3, .at_least = false};
  shared s = {.in = {matrix(GRAFT_F32, 0, 1), matrix(GRAFT_F32, 0, 2)}};
  s.exec = compiled(&w, s.in);
  long_chain(s.in, &s.expected, NULL);
  sweep();
  OK(graft_device_synchronize(device));
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, run_often, &s), 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  graft_graph_exec_destroy(s.exec);
  release_all((graft_tensor *[]){s.in[0], s.in[1], s.expected}, 3);
}
END_TEST

static void open_once(void) {
  if (!device && !NOTHING_RUNS) open_device();
  if (!device && NOTHING_RUNS) open_with(NULL);
}

int main(void) {
  const suite_test tests[] = {EACH(ops_of_floats, ROWS(float_dtypes)),
                              EACH(pairs_of_floats, ROWS(float_dtypes)),
                              EACH(pairs_of_whole_numbers, ROWS(whole_dtypes)),
                              ONCE(conversions_between_ops),
                              ONCE(writes_to_inputs_and_broadcasts),
                              ONCE(numbers_of_each_run),
                              ONCE(what_is_too_large_is_cut),
                              ONCE(what_does_not_fit_runs_alone),
                              EACH(calls_that_need_not_each_other, ROWS(twos)),
                              ONCE(threads_run_one_on_streams_of_theirs),
                              {0}};
  return run_suite("opencl_groups", tests, on_one_device(open_once));
}
