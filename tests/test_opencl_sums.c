/* Long sums of the OpenCL backend are made in stretches, whose subtotals come together, so that rounding errors don't
 * grow with the whole length. Of equal numbers all errors have one sign: in f32 the sum of 65,536 of them one by one is
 * off by ten times as much as is let through here. The suite, whose limit lets errors have either sign, can't ask for
 * that. */
#include "opencl_groups.h"

enum { LENGTH = 65536, STRETCH = 64, LINES = 3 };

#define VALUE 0.1f

static graft_tensor *equal_numbers(graft_dtype dtype, int64_t rows, int64_t columns) {
  const int64_t sizes[] = {rows, columns}, count = rows * columns;
  unsigned char *bytes = malloc((size_t)count * dt_bytes(dtype));
  graft_tensor *t;
  ck_assert_ptr_nonnull(bytes);
  for (int64_t i = 0; i < count; i++) dt_store(dtype, bytes + i * (int64_t)dt_bytes(dtype), (dt_value){VALUE, -VALUE});
  OK(graft_tensor_from_host(device, dtype, 2, sizes, bytes, &t));
  free(bytes);
  return later(t);
}

/* ---- what is summed: t has LENGTH elements along dim ---- */

static graft_tensor *so_far(graft_tensor *t, int64_t dim) {
  return CALL(CUMSUM, T(t), INT(dim));
}
static graft_tensor *at_the_end(graft_tensor *t, int64_t dim) {
  return CALL(SUM_DIM_INTLIST, T(t), INTS(dim), graft_value_bool(true));
}
static graft_tensor *product(graft_tensor *t, int64_t dim) {
  graft_tensor *ones = CALL(FULL_LIKE, T(t), NUMBER(1)), *turned = CALL(PERMUTE, T(ones), INTS(1, 0));
  return dim ? CALL(MM, T(t), T(turned)) : CALL(MM, T(turned), T(t));
}

typedef struct long_sum {
  const char *name;
  graft_tensor *(*of)(graft_tensor *t, int64_t dim);
  graft_dtype dtype;
  bool runs; /* element i of a line is the sum of the first i + 1 */
} long_sum;
static const long_sum sums_of[] = {
    {"cumsum, f32", so_far, GRAFT_F32, true},   {"cumsum, c64", so_far, GRAFT_C64, true},
    {"sum, f32", at_the_end, GRAFT_F32, false}, {"sum, c64", at_the_end, GRAFT_C64, false},
    {"mm, f32", product, GRAFT_F32, false},
};

/* As many roundings as a sum of subtotals has, each a half of an ulp: a stretch's, and one for each stretch. */
static double limit_of(int64_t length) {
  return (STRETCH + (double)length / STRETCH) * 0x1p-24;
}

static void expect_near(const char *name, int64_t dim, int64_t i, double is, double expected, int64_t length) {
  ck_assert_msg(fabs(is - expected) <= limit_of(length) * fabs(expected),
                "%s, dim %d: element %d is %.9g, expected %.9g", name, (int)dim, (int)i, is, expected);
}

static void sum_along(const long_sum *sum, int64_t dim) {
  graft_tensor *t = dim ? equal_numbers(sum->dtype, LINES, LENGTH) : equal_numbers(sum->dtype, LENGTH, LINES);
  graft_tensor *out = sum->of(t, dim);
  const size_t bytes = dt_bytes(sum->dtype);
  unsigned char *results = malloc((size_t)out->numel * bytes);
  ck_assert_ptr_nonnull(results);
  OK(graft_tensor_to_host(out, results));
  for (int64_t i = 0; i < out->numel; i++) {
    const dt_value is = dt_load(sum->dtype, results + (size_t)i * bytes);
    const int64_t length = sum->runs ? (dim ? i % LENGTH : i / LINES) + 1 : LENGTH;
    expect_near(sum->name, dim, i, (double)is.re, (double)VALUE * (double)length, length);
    if (dt_is_complex(sum->dtype))
      expect_near(sum->name, dim, i, (double)is.im, -(double)VALUE * (double)length, length);
  }
  free(results);
  sweep();
}

START_TEST(along_rows_and_columns) {
  if (!device) return;
  for (int64_t dim = 0; dim < 2; dim++) sum_along(&sums_of[_i], dim);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(along_rows_and_columns, ROWS(sums_of)), {0}};
  setenv("GRAFT_OPENCL_OPTIMIZE", "no", 1);
  const int failed = run_suite("opencl_sums", tests, on_one_device(open_for_cpus));
  return run_suite("opencl_sums_of_gpus", tests, on_one_device(open_for_gpus)) || failed;
}
