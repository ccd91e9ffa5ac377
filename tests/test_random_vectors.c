/* What ops draw, against the numbers of fixtures/random_vectors.h: on the reference device and, where it is there, on
 * OpenCL's. test_random.c has the stream itself. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures/random_vectors.h"
#include "graft/abi/op_ids.h"
#include "graft/graft.h"
#include "suite.h"

enum { REFERENCE, OPENCL, DEVICES };

static graft_rt_device *device;
static const int64_t count = VECTOR_COUNT;

#define OK(call) ck_assert_msg(!(call), "%s: %s", #call, graft_last_error())

/* False where there is no such device; then nothing is tested. */
static bool use(int which) {
  if (which == REFERENCE) return (device = graft_device_reference()) != NULL;
  if (!graft_device_find("opencl", &device)) return true;
  printf("skipped on OpenCL: %s\n", graft_last_error());
  return false;
}

static void begin_at(uint64_t offset) {
  graft_generator_set_state(graft_generator_default(device), VECTOR_SEED, offset);
}

static void begin(void) {
  begin_at(VECTOR_OFFSET);
}

static void expect_advance(uint64_t words) {
  uint64_t seed, offset;
  graft_generator_state(graft_generator_default(device), &seed, &offset);
  ck_assert_uint_eq(offset, VECTOR_OFFSET + words);
}

/* The words that n elements take, of one or two each. */
static uint64_t words_for(int64_t n, int each) {
  return 4 * (uint64_t)((n * each + 3) / 4);
}

static graft_tensor *tensor(graft_dtype dtype, int32_t ndim, const int64_t *sizes, const double *values) {
  graft_tensor *wide, *t;
  OK(graft_tensor_from_host(device, GRAFT_F64, ndim, sizes, values, &wide));
  OK(graft_tensor_to(wide, device, dtype, &t));
  graft_tensor_release(wide);
  return t;
}

static graft_tensor *vector_of(graft_dtype dtype, int64_t n, double value) {
  double values[64];
  for (int64_t i = 0; i < n; i++) values[i] = value;
  return tensor(dtype, 1, &n, values);
}

/* Within `limit` of what is expected, relative to numbers above 1; the tensor is released. */
static void expect_near(graft_tensor *t, const double *expected, int64_t n, double limit) {
  double got[64];
  graft_tensor *on_host, *wide;
  ck_assert_ptr_nonnull(t);
  ck_assert_int_eq(graft_tensor_numel(t), n);
  OK(graft_tensor_to(t, graft_device_reference(), 0, &on_host));
  OK(graft_tensor_to(on_host, graft_device_reference(), GRAFT_F64, &wide));
  OK(graft_tensor_to_host(wide, got));
  for (int64_t i = 0; i < n; i++) {
    ck_assert_msg(fabs(got[i] - expected[i]) <= limit * fmax(1, fabs(expected[i])),
                  "%s, %s: element %d is %.17g, not %.17g", graft_device_text(device),
                  graft_dtype_name(graft_tensor_dtype(t)), (int)i, got[i], expected[i]);
  }
  graft_tensor_release(wide);
  graft_tensor_release(on_host);
  graft_tensor_release(t);
}

static void expect_exactly(graft_tensor *t, const double *expected, int64_t n) {
  expect_near(t, expected, n, 0);
}

static void expect_integers(graft_tensor *t, const int64_t *expected, int64_t n) {
  int64_t got[64];
  graft_tensor *wide;
  ck_assert_ptr_nonnull(t);
  ck_assert_int_eq(graft_tensor_numel(t), n);
  OK(graft_tensor_to(t, device, GRAFT_I64, &wide));
  OK(graft_tensor_to_host(wide, got));
  for (int64_t i = 0; i < n; i++) {
    ck_assert_msg(got[i] == expected[i], "%s, %s: element %d is %lld, not %lld", graft_device_text(device),
                  graft_dtype_name(graft_tensor_dtype(t)), (int)i, (long long)got[i], (long long)expected[i]);
  }
  graft_tensor_release(wide);
  graft_tensor_release(t);
}

/* What two roundings, a logarithm or an angle may be off by, the latter to 1e-6 of an f32's result and 1e-14 of an
 * f64's: Python's functions differ in the last bit, too. */
static double limit_of(graft_dtype dtype) {
  return dtype == GRAFT_F64 ? 1e-14 : 1e-6;
}

START_TEST(uniform) {
  static const struct {
    graft_dtype dtype;
    const double *expected;
    int words;
  } rows[] = {{GRAFT_F32, vector_rand_f32, 1},
              {GRAFT_F64, vector_rand_f64, 2},
              {GRAFT_F16, vector_rand_f16, 1},
              {GRAFT_BF16, vector_rand_bf16, 1}};
  if (!use(_i)) return;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    graft_tensor *out = NULL, *like = vector_of(rows[i].dtype, count, 0);
    begin();
    OK(graft_op_rand(&count, 1, rows[i].dtype, device, &out));
    expect_advance(words_for(count, rows[i].words));
    expect_exactly(out, rows[i].expected, count);
    out = NULL;
    begin();
    OK(graft_op_uniform(like, 0, 1, NULL, &out));
    expect_advance(words_for(count, rows[i].words));
    expect_exactly(out, rows[i].expected, count);
    graft_tensor_release(like);
  }
  for (int wide = 0; wide < 2; wide++) {
    graft_tensor *out = NULL, *like = vector_of(wide ? GRAFT_F64 : GRAFT_F32, count, 0);
    begin();
    OK(graft_op_uniform(like, -2, 3, NULL, &out));
    expect_near(out, wide ? vector_uniform_f64 : vector_uniform_f32, count, wide ? 1e-15 : 3e-7);
    graft_tensor_release(like);
  }
}
END_TEST

START_TEST(normal) {
  if (!use(_i)) return;
  for (int wide = 0; wide < 2; wide++) {
    graft_dtype dtype = wide ? GRAFT_F64 : GRAFT_F32;
    graft_tensor *out = NULL;
    begin();
    OK(graft_op_randn(&count, 1, dtype, device, &out));
    expect_advance(words_for(count, 1 + wide));
    expect_near(out, wide ? vector_randn_f64 : vector_randn_f32, count, limit_of(dtype));
    out = NULL;
    begin();
    OK(graft_op_normal_float_float(0.5, 2, &count, 1, NULL, dtype, device, &out));
    expect_advance(words_for(count, 1 + wide));
    expect_near(out, wide ? vector_normal_f64 : vector_normal_f32, count, 2 * limit_of(dtype));
  }
}
END_TEST

/* The parts of a complex number are two elements. */
START_TEST(complex_normal) {
  if (!use(_i)) return;
  for (int scaled = 0; scaled < 2; scaled++) {
    graft_tensor *out = NULL, *parts = NULL;
    begin();
    if (scaled) {
      OK(graft_op_normal_float_float(0.5, 2, &count, 1, NULL, GRAFT_C64, device, &out));
    } else {
      OK(graft_op_randn(&count, 1, GRAFT_C64, device, &out));
    }
    expect_advance(words_for(2 * count, 1));
    OK(graft_op_view_as_real(out, &parts));
    expect_near(parts, scaled ? vector_normal_c64 : vector_randn_c64, 2 * count, 2e-6);
    graft_tensor_release(out);
  }
}
END_TEST

/* u < p: one element's u is p itself. */
START_TEST(bernoulli) {
  static const graft_dtype dtypes[] = {GRAFT_F32, GRAFT_F16, GRAFT_I64, GRAFT_BOOL, GRAFT_F64};
  if (!use(_i)) return;
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    bool wide = dtypes[i] == GRAFT_F64;
    graft_tensor *out = NULL, *like = vector_of(dtypes[i], count, 0), *chances;
    begin();
    OK(graft_op_bernoulli_p(like, wide ? *vector_bernoulli_f64_p : *vector_bernoulli_f32_p, NULL, &out));
    expect_advance(words_for(count, 1 + wide));
    expect_integers(out, wide ? vector_bernoulli_f64 : vector_bernoulli_f32, count);
    chances = tensor(GRAFT_F64, 1, &count, wide ? vector_bernoulli_Tensor_f64_p : vector_bernoulli_Tensor_f32_p);
    out = NULL;
    begin();
    OK(graft_op_bernoulli_Tensor(like, chances, NULL, &out));
    expect_advance(words_for(count, 1 + wide));
    expect_integers(out, wide ? vector_bernoulli_Tensor_f64 : vector_bernoulli_Tensor_f32, count);
    graft_tensor_release(chances);
    graft_tensor_release(like);
  }
}
END_TEST

/* u < 1 - p in f64, where p is such that one element decides it otherwise as a real number. */
START_TEST(dropout) {
  static const graft_dtype dtypes[] = {GRAFT_F32, GRAFT_F16, GRAFT_BF16, GRAFT_F64};
  if (!use(_i)) return;
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    bool wide = dtypes[i] == GRAFT_F64;
    const int64_t *kept = wide ? vector_dropout_f64 : vector_dropout_f32;
    double scaled[VECTOR_COUNT];
    for (int k = 0; k < VECTOR_COUNT; k++) scaled[k] = kept[k] ? 3 / (1 - *vector_dropout_p) : 0;
    graft_tensor *in = vector_of(dtypes[i], count, 3), *out = NULL, *mask = NULL;
    begin();
    OK(graft_op_native_dropout(in, *vector_dropout_p, &(const bool){true}, &out, &mask));
    expect_advance(words_for(count, 1 + wide));
    expect_integers(mask, kept, count);
    expect_near(out, scaled, count, wide ? 1e-15 : dtypes[i] == GRAFT_F32 ? 1e-7 : 1.0 / 128);
    out = mask = NULL;
    OK(graft_op_native_dropout(in, *vector_dropout_p, &(const bool){false}, &out, &mask));
    expect_advance(words_for(count, 1 + wide));
    graft_tensor_release(out);
    graft_tensor_release(mask);
    graft_tensor_release(in);
  }
}
END_TEST

START_TEST(exponential) {
  if (!use(_i)) return;
  for (int wide = 0; wide < 2; wide++) {
    graft_dtype dtype = wide ? GRAFT_F64 : GRAFT_F32;
    graft_tensor *out = NULL, *like = vector_of(dtype, count, 0);
    begin();
    OK(graft_op_exponential(like, 1.5, NULL, &out));
    expect_advance(words_for(count, 1 + wide));
    expect_near(out, wide ? vector_exponential_f64 : vector_exponential_f32, count, limit_of(dtype));
    graft_tensor_release(like);
  }
  graft_tensor *out = NULL, *like = vector_of(GRAFT_F32, 4, 0);
  begin_at(VECTOR_ZERO_OFFSET);
  OK(graft_op_exponential(like, 1.5, NULL, &out));
  float got[4];
  OK(graft_tensor_to_host(out, got));
  ck_assert(fabs(got[3] / vector_exponential_zero[3] - 1) < 1e-6);
  expect_near(out, vector_exponential_zero, 4, 1e-6);
  graft_tensor_release(like);
}
END_TEST

START_TEST(distributions) {
  if (!use(_i)) return;
  for (int wide = 0; wide < 2; wide++) {
    graft_dtype dtype = wide ? GRAFT_F64 : GRAFT_F32;
    graft_tensor *out = NULL, *like = vector_of(dtype, count, 0);
    begin();
    OK(graft_op_cauchy(like, 0.5, 2, NULL, &out));
    expect_advance(words_for(count, 1 + wide));
    expect_near(out, wide ? vector_cauchy_f64 : vector_cauchy_f32, count, 4 * limit_of(dtype));
    begin();
    OK(graft_op_geometric(like, 0.125, NULL, &out));
    expect_near(out, wide ? vector_geometric_f64 : vector_geometric_f32, count, 0);
    begin();
    OK(graft_op_log_normal(like, 0.25, 0.5, NULL, &out));
    expect_near(out, wide ? vector_log_normal_f64 : vector_log_normal_f32, count, 2 * limit_of(dtype));
    graft_tensor_release(like);
  }
}
END_TEST

START_TEST(gammas) {
  if (!use(_i)) return;
  for (int wide = 0; wide < 2; wide++) {
    graft_tensor *out = NULL, *shapes = tensor(wide ? GRAFT_F64 : GRAFT_F32, 1, &count, vector_gamma_shapes);
    begin();
    OK(graft_op_standard_gamma(shapes, NULL, &out));
    expect_advance(4 * (uint64_t)count);
    expect_near(out, wide ? vector_gamma_f64 : vector_gamma_f32, count, wide ? 1e-13 : 1e-5);
    graft_tensor_release(shapes);
  }
  graft_tensor *out = NULL, *shapes = vector_of(GRAFT_F32, 64, 1);
  begin();
  OK(graft_op_standard_gamma(shapes, NULL, &out));
  expect_near(out, vector_gamma_many, 64, 1e-5);
  graft_tensor_release(shapes);
}
END_TEST

START_TEST(slopes) {
  static const struct {
    graft_dtype dtype;
    const double *noise;
  } rows[] = {{GRAFT_F32, vector_rrelu_f32},
              {GRAFT_F64, vector_rrelu_f64},
              {GRAFT_F16, vector_rrelu_f16},
              {GRAFT_BF16, vector_rrelu_bf16}};
  if (!use(_i)) return;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double inputs[VECTOR_COUNT], outputs[VECTOR_COUNT];
    for (int k = 0; k < VECTOR_COUNT; k++) {
      inputs[k] = k % 3 ? -2 : 2;
      outputs[k] = inputs[k] * rows[i].noise[k]; /* twice a number is exact */
    }
    graft_tensor *in = tensor(rows[i].dtype, 1, &count, inputs), *noise = vector_of(rows[i].dtype, count, 0);
    graft_tensor *out = NULL;
    begin();
    OK(graft_op_rrelu_with_noise(in, noise, graft_scalar_float(0.1), graft_scalar_float(0.7), true, NULL, &out));
    expect_advance(words_for(count, rows[i].dtype == GRAFT_F64 ? 2 : 1));
    expect_exactly(out, outputs, count);
    expect_exactly(noise, rows[i].noise, count);
    graft_tensor_release(in);
  }
}
END_TEST

START_TEST(integers) {
  static const graft_dtype dtypes[] = {GRAFT_I64, GRAFT_I32, GRAFT_I8, GRAFT_F32, GRAFT_F64};
  const int64_t to = 17;
  if (!use(_i)) return;
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    graft_tensor *out = NULL, *like = vector_of(dtypes[i], count, 0);
    begin();
    OK(graft_op_random_from(like, -5, &to, NULL, &out));
    expect_advance(words_for(count, 2));
    expect_integers(out, vector_random_from, count);
    graft_tensor_release(like);
  }
  graft_tensor *out = NULL, *like = vector_of(GRAFT_I64, count, 0);
  begin();
  OK(graft_op_random_from(like, 3, NULL, NULL, &out));
  expect_integers(out, vector_random_from_open, count);
  out = NULL;
  begin();
  OK(graft_op_random_from(like, INT64_MIN, NULL, NULL, &out));
  expect_integers(out, vector_random_from_all, count);
  graft_tensor_release(like);
  for (int i = 0; i < 2; i++) {
    out = NULL;
    begin();
    OK(graft_op_randint_low(0, 1000, &count, 1, i ? GRAFT_I16 : GRAFT_I64, device, &out));
    expect_advance(words_for(count, 2));
    expect_integers(out, vector_randint, count);
  }
}
END_TEST

START_TEST(permutation) {
  if (!use(_i)) return;
  graft_tensor *out = NULL;
  begin();
  OK(graft_op_randperm(count, GRAFT_I64, device, &out));
  expect_advance(words_for(count, 2));
  expect_integers(out, vector_randperm, count);
}
END_TEST

START_TEST(choices) {
  static const double weights[] = {1, 0, 2, 5, 0.25, 0, 3, 0, 0.5, 0};
  static const graft_dtype dtypes[] = {GRAFT_F32, GRAFT_F64, GRAFT_F16};
  if (!use(_i)) return;
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    graft_tensor *p = tensor(dtypes[i], 2, (int64_t[]){2, 5}, weights), *out = NULL;
    begin();
    OK(graft_op_multinomial(p, 7, true, NULL, &out));
    expect_advance(words_for(14, 2));
    expect_integers(out, vector_multinomial, 14);
    out = NULL;
    begin();
    OK(graft_op_multinomial(p, 5, false, NULL, &out));
    expect_advance(words_for(10, 2));
    expect_integers(out, vector_multinomial_once, 10);
    graft_tensor_release(p);
  }
}
END_TEST

/* All weights are 1/4 and the values are the unit vectors: a row of the result is a row of what was kept. The backward
 * draws the same: the gradient of a value is the sum of what was kept of it. */
START_TEST(attention) {
  enum { HEADS = 2, ROWS = 3, COLUMNS = 4, ALL = HEADS * ROWS * COLUMNS };
  enum { OUTPUT = 0, LOGSUMEXP = 1, SEED = 6, OFFSET = 7, OUTS = 9 };
  static const graft_dtype dtypes[] = {GRAFT_F32, GRAFT_F16, GRAFT_F64};
  const int64_t query_sizes[] = {1, HEADS, ROWS, COLUMNS}, key_sizes[] = {1, HEADS, COLUMNS, COLUMNS};
  double zeros[32] = {0}, units[32] = {0}, ones[ALL], kept[ALL], sums[32] = {0};
  for (int i = 0; i < 32; i++) units[i] = i % 16 / 4 == i % 4;
  for (int i = 0; i < ALL; i++) {
    ones[i] = 1;
    kept[i] = vector_dropout_attention[i] ? 0.25 / (1 - *vector_dropout_p) : 0;
  }
  for (int i = 0; i < 32; i++) {
    for (int row = 0; row < ROWS; row++) sums[i] += kept[(i / 16 * ROWS + row) * COLUMNS + i % 16 / 4];
  }
  if (!use(_i)) return;
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    double limit = dtypes[i] == GRAFT_F64 ? 1e-15 : dtypes[i] == GRAFT_F32 ? 1e-6 : 1.0 / 512;
    graft_tensor *query = tensor(dtypes[i], 4, query_sizes, zeros), *key = tensor(dtypes[i], 4, key_sizes, zeros);
    graft_tensor *value = tensor(dtypes[i], 4, key_sizes, units), *grad = tensor(dtypes[i], 4, query_sizes, ones);
    graft_tensor *outs[OUTS] = {NULL}, *grads[4] = {NULL};
    const graft_value args[] = {{.kind = GRAFT_VALUE_TENSOR, .as.tensor = query},
                                {.kind = GRAFT_VALUE_TENSOR, .as.tensor = key},
                                {.kind = GRAFT_VALUE_TENSOR, .as.tensor = value},
                                {.kind = GRAFT_VALUE_NONE},
                                {.kind = GRAFT_VALUE_FLOAT, .as.f = *vector_dropout_p}};
    begin();
    OK(graft_call(GRAFT_OP_SCALED_DOT_PRODUCT_FUSED_ATTENTION_OVERRIDEABLE, args, 5, outs, OUTS));
    expect_advance(words_for(ALL, 1));
    uint64_t seed, offset;
    OK(graft_tensor_to_host(outs[SEED], &seed));
    OK(graft_tensor_to_host(outs[OFFSET], &offset));
    ck_assert_uint_eq(seed, VECTOR_SEED);
    ck_assert_uint_eq(offset, VECTOR_OFFSET);
    OK(graft_op_scaled_dot_product_fused_attention_overrideable_backward(
        grad, query, key, value, NULL, (const uint8_t[]){0, 0, 1, 0}, outs[OUTPUT], outs[LOGSUMEXP], NULL, NULL, ROWS,
        COLUMNS, *vector_dropout_p, false, outs[SEED], outs[OFFSET], NULL, &grads[0], &grads[1], &grads[2], &grads[3]));
    expect_advance(words_for(ALL, 1));
    expect_near(outs[OUTPUT], kept, ALL, limit);
    expect_near(grads[2], sums, 32, limit);
    for (int k = LOGSUMEXP; k < OUTS; k++) graft_tensor_release(outs[k]);
    graft_tensor_release(query);
    graft_tensor_release(key);
    graft_tensor_release(value);
    graft_tensor_release(grad);
  }
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(uniform, DEVICES),        EACH(normal, DEVICES),
                              EACH(complex_normal, DEVICES), EACH(bernoulli, DEVICES),
                              EACH(dropout, DEVICES),        EACH(exponential, DEVICES),
                              EACH(distributions, DEVICES),  EACH(gammas, DEVICES),
                              EACH(slopes, DEVICES),         EACH(integers, DEVICES),
                              EACH(permutation, DEVICES),    EACH(choices, DEVICES),
                              EACH(attention, DEVICES),      {0}};
  return run_suite("random vectors", tests, (suite_options){.timeout_s = 120});
}
