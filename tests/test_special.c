/* What no other implementation is asked for: numbers that follow from an identity, and what a rule tells a kernel. */
#include <math.h>

#include "bad_input.h"
#include "graft/graft.h"
#include "ops/core/schema.h"
#include "suite.h"

/* psi(1 - x) - psi(x) = pi / tan(pi x), and far from 0 psi(y) is log y - 1/2y to all digits: tan's period of 1 comes
 * off without a loss, however many of them there are. Far left of 0 stored results of others have no digits to compare.
 */
START_TEST(digamma_far_left_of_zero) {
  const double x = -0x1p40 - 0.25, y = 1 - x, pi = 3.14159265358979323846;
  const double expected = log(y) - 0.5 / y + pi;
  graft_tensor *in, *out = NULL;
  double got = 0;
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F64, 0, NULL, &x, &in));
  OK(graft_op_digamma(in, &out));
  OK(graft_tensor_to_host(out, &got));
  ck_assert_msg(fabs(got - expected) <= 1e-14 * expected, "%.17g, not %.17g", got, expected);
  graft_tensor_release(in);
  graft_tensor_release(out);
}
END_TEST

/* exp(A) of 2 x 2 is e^m (cosh q + sinh q (A - m) / q), where m is half of A's trace and q^2 the negative determinant
 * of A - m: of matrices small and large, with real and imaginary q. */
static const double exponents[][4] = {{1, 2, 3, -4}, {0, 1, -1, 0}, {-3, 1, -2, -1}, {0, 1, 0, 0}};

static void exponential_of(const double *a, double *result) {
  const double middle = (a[0] + a[3]) / 2, half = (a[0] - a[3]) / 2, square = half * half + a[1] * a[2];
  const double q = sqrt(fabs(square)), even = square > 0 ? cosh(q) : cos(q);
  const double odd = q == 0 ? 1 : (square > 0 ? sinh(q) : sin(q)) / q;
  const double less[] = {half, a[1], a[2], -half};
  for (int i = 0; i < 4; i++) result[i] = exp(middle) * ((i == 0 || i == 3 ? even : 0) + odd * less[i]);
}

START_TEST(exponentials_of_small_and_large_matrices) {
  static const double scales[] = {0x1p-20, 1, 8, 64};
  for (int k = 0; k < ROWS(scales); k++) {
    double values[4], expected[4], got[4], most = 0;
    graft_tensor *in, *out = NULL;
    for (int i = 0; i < 4; i++) values[i] = exponents[_i][i] * scales[k];
    exponential_of(values, expected);
    OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F64, 2, (int64_t[]){2, 2}, values, &in));
    OK(graft_op_linalg_matrix_exp(in, &out));
    OK(graft_tensor_to_host(out, got));
    for (int i = 0; i < 4; i++) most = fmax(most, fabs(expected[i]));
    for (int i = 0; i < 4; i++)
      ck_assert_msg(fabs(got[i] - expected[i]) <= 1e-13 * most, "matrix %d times %g: element %d is %.17g, not %.17g",
                    _i, scales[k], i, got[i], expected[i]);
    graft_tensor_release(in);
    graft_tensor_release(out);
  }
}
END_TEST

/* As LAPACK has it: NaN is no pivot, and what is below one of 0 is taken off all the same. */
START_TEST(nan_below_a_pivot_of_zero) {
  static const double a[] = {0, 1, NAN, 1};
  double lu[4];
  int32_t info = 0;
  graft_tensor *in, *out = NULL, *pivots = NULL, *infos = NULL;
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F64, 2, (int64_t[]){2, 2}, a, &in));
  OK(graft_op_linalg_lu_factor_ex(in, true, false, &out, &pivots, &infos));
  OK(graft_tensor_to_host(out, lu));
  OK(graft_tensor_to_host(infos, &info));
  ck_assert(lu[0] == 0 && lu[1] == 1 && isnan(lu[2]) && isnan(lu[3]) && info == 1);
  graft_tensor *all[] = {in, out, pivots, infos};
  for (int i = 0; i < ROWS(all); i++) graft_tensor_release(all[i]);
}
END_TEST

/* What a factorization of a matrix times a power of 2 is: each result is that of the matrix, times the power or not.
 * Thresholds that are not in proportion to the matrix show where it is tiny or huge. */
enum { SIDE = 4, RESULTS = 3 };
static const struct factorization {
  const char *line;
  bool scales[RESULTS]; /* the results */
} factorizations[] = {{"aten::linalg_eig f64[4,4]", {true, false}},
                      {"aten::_linalg_eigh f64[4,4]", {true, false}},
                      {"aten::_linalg_svd f64[4,4]", {false, true, false}},
                      {"aten::linalg_qr f64[4,4]", {false, true}}};

static graft_status fill_scaled(void *context, uint32_t index, graft_tensor *tensor) {
  static const double matrix[SIDE * SIDE] = {2, -1, 0.5, 3, -1, 1, 4, -2, 0.5, 4, -3, 1.5, 3, -2, 1.5, 0.25};
  double data[SIDE * SIDE];
  graft_tensor *filled = NULL;
  (void)index;
  for (int i = 0; i < SIDE * SIDE; i++) data[i] = matrix[i] * *(const double *)context;
  graft_status status =
      graft_tensor_from_host(graft_device_reference(), GRAFT_F64, 2, (int64_t[]){SIDE, SIDE}, data, &filled);
  if (!status) status = graft_tensor_copy(tensor, filled);
  graft_tensor_release(filled);
  return status;
}

/* The results, as real numbers one after the other; how many of the first RESULTS each has in `counts`. */
static void factorize(const char *line, double scale, double values[RESULTS][2 * SIDE * SIDE], int64_t *counts) {
  txt_call call;
  graft_tensor *outs[RESULTS + 1] = {NULL};
  graft_meta metas[RESULTS + 1];
  uint32_t n = 0;
  OK(txt_parse_call(line, NULL, &call));
  OK(txt_make(&call, graft_device_reference(), fill_scaled, &scale));
  OK(graft_infer(call.schema->id, call.args, call.nargs, metas, sizeof *metas, RESULTS + 1, &n));
  OK(graft_call(call.schema->id, call.args, call.nargs, outs, n));
  for (uint32_t i = 0; i < n; i++) {
    bool complex_numbers = graft_tensor_dtype(outs[i]) == GRAFT_C128;
    counts[i] = graft_tensor_numel(outs[i]) * (complex_numbers ? 2 : 1);
    OK(graft_tensor_to_host(outs[i], values[i]));
    graft_tensor_release(outs[i]);
  }
  txt_free(&call);
}

START_TEST(factorizations_scale_with_their_matrix) {
  static const int powers[] = {-500, -60, 60, 500};
  const struct factorization *f = &factorizations[_i];
  double plain[RESULTS][2 * SIDE * SIDE], scaled[RESULTS][2 * SIDE * SIDE];
  int64_t counts[RESULTS] = {0};
  factorize(f->line, 1, plain, counts);
  for (int k = 0; k < ROWS(powers); k++) {
    double scale = ldexp(1, powers[k]);
    factorize(f->line, scale, scaled, counts);
    for (int i = 0; i < RESULTS; i++)
      for (int64_t j = 0; j < counts[i]; j++) {
        double expected = plain[i][j] * (f->scales[i] ? scale : 1), size = f->scales[i] ? scale : 1;
        ck_assert_msg(fabs(scaled[i][j] - expected) <= 1e-13 * size, "%s times 2^%d: result %d is %g, expected %g",
                      f->line, powers[k], i, scaled[i][j], expected);
      }
  }
}
END_TEST

/* The reference kernels are what backends are held against: right to a hundredth of an ulp before they round to f64, on
 * both sides of where they change their method. */
static const struct special_value {
  const char *op;
  int inputs;
  double input[2];
  long double expected;
} special_values[] = {
#include "special_values.inc"
};

START_TEST(special_functions_round_once) {
  const struct special_value *row = &special_values[_i];
  graft_value args[2];
  graft_tensor *in[2] = {NULL, NULL}, *out = NULL;
  double got = 0, least = nextafter(fabs((double)row->expected), 0), ulp = fabs((double)row->expected) - least;
  for (int i = 0; i < row->inputs; i++) {
    OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F64, 0, NULL, &row->input[i], &in[i]));
    args[i] = (graft_value){GRAFT_VALUE_TENSOR, 0, {.tensor = in[i]}};
  }
  OK(graft_call(op_schema_find(row->op)->id, args, (uint32_t)row->inputs, &out, 1));
  OK(graft_tensor_to_host(out, &got));
  long double error = fabsl((long double)got - row->expected) / (long double)ulp;
  ck_assert_msg(error <= 0.51L, "%s of %.17g, %.17g is %.17g, not %.20Lg: off by %.2Lf ulp", row->op, row->input[0],
                row->input[1], got, row->expected, error);
  graft_tensor_release(in[0]);
  graft_tensor_release(in[1]);
  graft_tensor_release(out);
}
END_TEST

/* A reference kernel sums in long double and rounds once, whatever the dtype: that of f32 is that of f64, rounded. */
enum { LINE = 1025 };
static const char *const rounded_once[] = {
    "cumsum T[1025] 0", "logcumsumexp T[1025] 0", "cumprod T[1025] 0",         "sum.dim_IntList T[1025] [0]",
    "prod T[1025]",     "mm T[25,41] T[41,25]",   "var.correction T[1025] [0]"};

static graft_status fill_line(void *context, uint32_t index, graft_tensor *tensor) {
  float values[LINE];
  double wide[LINE];
  uint32_t state = 12345 + index;
  int64_t n = graft_tensor_numel(tensor);
  graft_tensor *filled = NULL;
  (void)context;
  for (int64_t i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    wide[i] = values[i] = 0.5f + (float)(state >> 8) * 0x1p-24f;
  }
  bool is_wide = graft_tensor_dtype(tensor) == GRAFT_F64;
  graft_status status =
      graft_tensor_from_host(graft_device_reference(), graft_tensor_dtype(tensor), graft_tensor_ndim(tensor),
                             graft_tensor_sizes(tensor), is_wide ? (const void *)wide : values, &filled);
  if (!status) status = graft_tensor_copy(tensor, filled);
  graft_tensor_release(filled);
  return status;
}

static int64_t run_line(const char *text, const char *dtype, void *results) {
  char line[128] = "aten::", *to = line + strlen(line);
  txt_call call;
  graft_tensor *out = NULL;
  for (; *text; text++) to += sprintf(to, *text == 'T' ? "%s" : "%.1s", *text == 'T' ? dtype : text);
  OK(txt_parse_call(line, NULL, &call));
  OK(txt_make(&call, graft_device_reference(), fill_line, NULL));
  OK(graft_call(call.schema->id, call.args, call.nargs, &out, 1));
  OK(graft_tensor_to_host(out, results));
  int64_t n = graft_tensor_numel(out);
  graft_tensor_release(out);
  txt_free(&call);
  return n;
}

START_TEST(reference_kernels_round_once) {
  static float narrow[LINE];
  static double wide[LINE];
  int64_t n = run_line(rounded_once[_i], "f32", narrow);
  ck_assert_int_eq(run_line(rounded_once[_i], "f64", wide), n);
  for (int64_t i = 0; i < n; i++)
    ck_assert_msg(narrow[i] == (float)wide[i], "%s: element %lld is %.9g, expected %.9g", rounded_once[_i],
                  (long long)i, narrow[i], wide[i]);
}
END_TEST

/* One operation of f64 is C's own: by way of long double a few in ten thousand would be rounded twice. */
enum { PAIRS = 1 << 16 };
static double of_add(double a, double b) {
  return a + b;
}
static double of_sub(double a, double b) {
  return a - b;
}
static double of_mul(double a, double b) {
  return a * b;
}
static double of_div(double a, double b) {
  return a / b;
}
static double of_sqrt(double a, double b) {
  (void)b;
  return sqrt(a);
}
static double of_reciprocal(double a, double b) {
  (void)b;
  return 1 / a;
}
static const struct operation {
  const char *op;
  double (*expected)(double a, double b);
  uint32_t inputs;
} operations[] = {{"aten::add.Tensor", of_add, 2}, {"aten::sub.Tensor", of_sub, 2},
                  {"aten::mul.Tensor", of_mul, 2}, {"aten::div.Tensor", of_div, 2},
                  {"aten::sqrt", of_sqrt, 1},      {"aten::reciprocal", of_reciprocal, 1}};

START_TEST(double_arithmetic_rounds_once) {
  static double x[2][PAIRS], got[PAIRS];
  const struct operation *of = &operations[_i];
  const int64_t size = PAIRS;
  uint64_t state = 1;
  graft_value args[2];
  graft_tensor *in[2] = {NULL, NULL}, *out = NULL;
  for (int64_t i = 0; i < 2 * size; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x[i % 2][i / 2] = ldexp((double)(state >> 11) * 0x1p-53 + 0.5, i % 2 ? -(int)(i % 11) : 0);
  }
  for (uint32_t i = 0; i < of->inputs; i++) {
    OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F64, 1, &size, x[i], &in[i]));
    args[i] = (graft_value){GRAFT_VALUE_TENSOR, 0, {.tensor = in[i]}};
  }
  OK(graft_call(op_schema_find(of->op)->id, args, of->inputs, &out, 1));
  OK(graft_tensor_to_host(out, got));
  for (int64_t i = 0; i < size; i++)
    ck_assert_msg(got[i] == of->expected(x[0][i], x[1][i]), "%s of %a, %a is %a, not %a", of->op, x[0][i], x[1][i],
                  got[i], of->expected(x[0][i], x[1][i]));
  graft_tensor_release(in[0]);
  graft_tensor_release(in[1]);
  graft_tensor_release(out);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(digamma_far_left_of_zero),
                              EACH(special_functions_round_once, ROWS(special_values)),
                              EACH(exponentials_of_small_and_large_matrices, ROWS(exponents)),
                              ONCE(nan_below_a_pivot_of_zero),
                              EACH(factorizations_scale_with_their_matrix, ROWS(factorizations)),
                              EACH(double_arithmetic_rounds_once, ROWS(operations)),
                              EACH(reference_kernels_round_once, ROWS(rounded_once)),
                              {0}};
  return run_suite("special", tests, (suite_options){0});
}
