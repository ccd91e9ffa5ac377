/* What no other implementation is asked for: numbers that follow from an identity, and what a rule tells a kernel. */
#include <math.h>

#include "bad_input.h"
#include "graft/graft.h"
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

int main(void) {
  const suite_test tests[] = {ONCE(digamma_far_left_of_zero), {0}};
  return run_suite("special", tests, (suite_options){0});
}
