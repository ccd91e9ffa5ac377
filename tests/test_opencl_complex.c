/* Functions of complex numbers with a part that is infinite, NaN or 0 on the OpenCL backend, with its kernels for CPUs
 * and with those for GPUs: the reference's, whose rules are those of PyTorch. The suite asks for no such numbers where
 * a function computes. */
#include <math.h>
#include <stdio.h>

#include "bad_input.h"
#include "suite.h"
#include "tensor/dtype.h"

/* Neither sinc, whose zeros lie between two numbers, nor silu, a quotient whose zeros have any sign. */
static const char *const functions[] = {"exp",   "exp2", "expm1", "log",   "log2",  "log10",   "log1p",      "sqrt",
                                        "rsqrt", "sin",  "cos",   "sinh",  "cosh",  "tan",     "tanh",       "asin",
                                        "acos",  "atan", "asinh", "acosh", "atanh", "sigmoid", "reciprocal", "sgn"};
static const double parts[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 1.0, -2.0};
enum { PARTS = ROWS(parts), NUMBERS = PARTS * PARTS };

static dt_value number(int64_t i) {
  return (dt_value){parts[i / PARTS], parts[i % PARTS]};
}

static graft_status put_numbers(void *context, uint32_t index, graft_tensor *t) {
  char data[16 * NUMBERS];
  const graft_dtype dtype = graft_tensor_dtype(t);
  (void)context, (void)index;
  for (int64_t i = 0; i < NUMBERS; i++) dt_store(dtype, data + i * (int64_t)dt_bytes(dtype), number(i));
  return put_elements(t, data);
}

static void take_values(const char *function, graft_dtype dtype, graft_rt_device *device, dt_value *values) {
  char line[64], data[16 * NUMBERS];
  graft_tensor *out = NULL;
  txt_call call;
  snprintf(line, sizeof line, "aten::%s %s[%d]", function, graft_dtype_name(dtype), NUMBERS);
  ck_assert_msg(!txt_parse_call(line, NULL, &call), "%s: %s", line, graft_last_error());
  OK(txt_make(&call, device, put_numbers, NULL));
  OK(graft_call(call.schema->id, call.args, call.nargs, &out, 1));
  OK(graft_tensor_to_host(out, data));
  for (int64_t i = 0; i < NUMBERS; i++) values[i] = dt_load(dtype, data + i * (int64_t)dt_bytes(dtype));
  graft_tensor_release(out);
  txt_free(&call);
}

static bool is_same(long double ours, long double expected, bool is_signed) {
  if (isnan(expected)) return isnan(ours);
  if (is_signed && !signbit(ours) != !signbit(expected)) return false;
  if (isinf(expected)) return isinf(ours);
  return fabsl(fabsl(ours) - fabsl(expected)) <= 0x1p-18L * fabsl(expected);
}

/* Beside NaN, and of a number with two infinite parts, the sign of 0 and of infinity is open. */
static bool is_right(dt_value x, dt_value ours, dt_value expected) {
  const bool is_signed = !isnan(expected.re) && !isnan(expected.im) && !(isinf(x.re) && isinf(x.im));
  return is_same(ours.re, expected.re, is_signed) && is_same(ours.im, expected.im, is_signed);
}

START_TEST(parts_that_are_not_finite) {
  static dt_value ours[NUMBERS], expected[NUMBERS];
  const graft_dtype dtype = _i & 1 ? GRAFT_C128 : GRAFT_C64;
  const char *const options[] = {_i & 2 ? "kernels=gpu" : "kernels=cpu", "optimize=no", NULL};
  graft_rt_device *device = has_opencl() ? device_at(OPENCL, options, 0) : NULL;
  int wrong = 0;
  if (!has_opencl()) return;
  ck_assert_msg(device, "%s", graft_last_error());
  for (int f = 0; f < ROWS(functions); f++) {
    take_values(functions[f], dtype, graft_device_reference(), expected);
    take_values(functions[f], dtype, device, ours);
    for (int64_t i = 0; i < NUMBERS; i++) {
      const dt_value x = number(i);
      if (is_right(x, ours[i], expected[i])) continue;
      fprintf(stderr, "%s of %Lg %+Lgi is %Lg %+Lgi, not %Lg %+Lgi\n", functions[f], x.re, x.im, ours[i].re, ours[i].im,
              expected[i].re, expected[i].im);
      wrong++;
    }
  }
  ck_assert_int_eq(wrong, 0);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(parts_that_are_not_finite, 4), {0}};
  return run_suite("opencl_complex", tests, (suite_options){.timeout_s = 300});
}
