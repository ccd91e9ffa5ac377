/* The exponential of f32 that the OpenCL backend makes itself on processors, at the ends of its range: with the
 * instruction of AVX-512, where there is one, and without, and with the same bits in each lane of a vector and behind
 * the last one. The suite's values are those of a menu, seldom next to an end. */
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "bad_input.h"
#include "suite.h"

static const float ends[] = {0,
                             -0.0f,
                             FLT_TRUE_MIN,
                             1,
                             -1,
                             0x1.62e42ep-2f, /* half of ln(2), where another power of 2 begins, and the next number */
                             0x1.62e43p-2f,
                             -0x1.62e43p-2f,
                             0x1.62e42ep6f, /* the last one below infinity */
                             0x1.62e43p6f,
                             1e5f,
                             0x1p40f,
                             FLT_MAX,
                             INFINITY,
                             -0x1.5d58ap6f, /* around the least normal number */
                             -0x1.5d589ep6f,
                             -0x1.5d58a2p6f,
                             -100,
                             -0x1.9d1d9ep6f, /* around half of the least denormal */
                             -0x1.9fe368p6f,
                             -0x1.9fe36ap6f,
                             -104,
                             -0x1.a00002p6f,
                             -1e5f,
                             -0x1p40f,
                             -FLT_MAX,
                             -INFINITY};
enum { ENDS = ROWS(ends), LARGE = 65536 + 13 };

static int64_t steps_between(float a, float b) {
  int32_t of_a, of_b;
  memcpy(&of_a, &a, sizeof a);
  memcpy(&of_b, &b, sizeof b);
  return llabs((int64_t)of_a - of_b); /* neither is below 0 */
}

/* Right to a number next to it; 0, 1 and infinity are what they are. */
static bool is_right(float x, float ours) {
  const float expected = (float)exp((double)x);
  const bool is_exact = x == 0 || isinf(expected) || x <= -104;
  return !signbit(ours) && !isnan(ours) && steps_between(ours, expected) <= !is_exact;
}

static void take_exp(graft_rt_device *device, const float *values, int64_t count, float *results) {
  graft_tensor *from = NULL, *to = NULL;
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, &count, values, &from));
  OK(graft_op_exp(from, &to));
  OK(graft_tensor_to_host(to, results));
  graft_tensor_release(from);
  graft_tensor_release(to);
}

/* One number, a vector and what is behind it, and so many that the program is another. */
START_TEST(ends_are_right_in_each_lane) {
  static const int64_t counts[] = {1, 29, LARGE};
  static float values[LARGE + ENDS], results[LARGE];
  const char *const options[] = {_i ? "kernels=portable" : "kernels=cpu", NULL};
  if (!has_opencl()) return;
  graft_rt_device *device = device_at(OPENCL, options, 0);
  ck_assert_msg(device, "%s", graft_last_error());
  for (int i = 0; i < LARGE + ENDS; i++) values[i] = ends[i % ENDS];
  for (int64_t first = 0; first < ENDS; first++) {
    for (int c = 0; c < ROWS(counts); c++) {
      take_exp(device, values + first, counts[c], results);
      for (int64_t i = 0; i < counts[c]; i++) {
        const float x = values[first + i];
        ck_assert_msg(is_right(x, results[i]), "exp(%a) is %a, at %d of %d", x, results[i], (int)i, (int)counts[c]);
        const float before = i < ENDS ? results[i] : results[i - ENDS];
        ck_assert_msg(results[i] == before, "exp(%a) is %a and %a, at %d", x, before, results[i], (int)i);
      }
    }
  }
}
END_TEST

/* Of any sign and with any bits. */
START_TEST(nan_stays) {
  static const uint32_t bits[] = {0x7fc00000u, 0xffc00000u, 0x7fc12345u, 0xffffffffu, 0x7f812345u};
  float values[17], results[17];
  const char *const options[] = {_i ? "kernels=portable" : "kernels=cpu", NULL};
  if (!has_opencl()) return;
  graft_rt_device *device = device_at(OPENCL, options, 0);
  ck_assert_msg(device, "%s", graft_last_error());
  for (int i = 0; i < 17; i++) memcpy(&values[i], &bits[i % ROWS(bits)], sizeof *values);
  take_exp(device, values, 17, results);
  for (int i = 0; i < 17; i++) ck_assert_msg(isnan(results[i]), "exp(NaN) is %a, at %d", results[i], i);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(ends_are_right_in_each_lane, 2), EACH(nan_stays, 2), {0}};
  return run_suite("opencl_exp", tests, (suite_options){.timeout_s = 120});
}
