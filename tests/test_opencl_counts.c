/* bincount on the OpenCL backend, with its kernels for CPUs and with those for GPUs: the greatest number is found
 * wherever it stands, and weights are added up in the order of their places, to the bit. */
#include <string.h>

#include "bad_input.h"
#include "suite.h"

static graft_rt_device *with_kernels(int row) {
  const char *const options[] = {row ? "kernels=gpu" : "kernels=cpu", NULL};
  graft_rt_device *device = has_opencl() ? device_at(OPENCL, options, 0) : NULL;
  ck_assert_msg(device || !has_opencl(), "%s", graft_last_error());
  return device;
}

enum { LONG = 9001 }; /* some chunks of a work-group, and a tail */

START_TEST(the_greatest_number_may_stand_anywhere) {
  static const int64_t places[] = {0, 1, 255, 256, 4095, 4096, 4097, 8191, 8192, LONG - 1};
  static int64_t numbers[LONG];
  graft_rt_device *device = with_kernels(_i);
  if (!device) return;
  for (int i = 0; i < LONG; i++) numbers[i] = 1;
  for (int p = 0; p < ROWS(places); p++) {
    graft_tensor *x, *out = NULL;
    int64_t counts[8];
    numbers[places[p]] = 7;
    OK(graft_tensor_from_host(device, GRAFT_I64, 1, (int64_t[]){LONG}, numbers, &x));
    OK(graft_op_bincount(x, NULL, 0, &out));
    ck_assert_int_eq(graft_tensor_numel(out), 8);
    OK(graft_tensor_to_host(out, counts));
    for (int bin = 0; bin < 8; bin++) ck_assert_int_eq(counts[bin], bin == 1 ? LONG - 1 : bin == 7);
    graft_tensor_release(x);
    graft_tensor_release(out);
    numbers[places[p]] = 1;
  }
}
END_TEST

/* So different in size that another order gives other bits. */
START_TEST(weights_are_added_up_in_order) {
  enum { BINS = 37 };
  static int64_t numbers[LONG];
  static float weights[LONG], expected[BINS], sums[BINS];
  graft_rt_device *device = with_kernels(_i);
  graft_tensor *x, *w, *out = NULL;
  uint32_t state = 1;
  if (!device) return;
  memset(expected, 0, sizeof expected);
  for (int i = 0; i < LONG; i++) {
    state = state * 1664525 + 1013904223;
    numbers[i] = i == LONG - 1 ? BINS - 1 : state >> 16 & 15;
    weights[i] = (float)(state >> 8) * (i % 3 ? 1e-3f : 1.0f);
    expected[numbers[i]] += weights[i];
  }
  OK(graft_tensor_from_host(device, GRAFT_I64, 1, (int64_t[]){LONG}, numbers, &x));
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){LONG}, weights, &w));
  OK(graft_op_bincount(x, w, 0, &out));
  ck_assert_int_eq(graft_tensor_numel(out), BINS);
  OK(graft_tensor_to_host(out, sums));
  ck_assert_mem_eq(sums, expected, sizeof sums);
  graft_tensor_release(x);
  graft_tensor_release(w);
  graft_tensor_release(out);
}
END_TEST

int main(void) {
  const suite_test tests[] = {
      EACH(the_greatest_number_may_stand_anywhere, 2), EACH(weights_are_added_up_in_order, 2), {0}};
  return run_suite("opencl_counts", tests, (suite_options){.timeout_s = 120});
}
