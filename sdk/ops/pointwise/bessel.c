/* Bessel functions of the orders 0 and 1. Numbers in brackets are equations of the Digital Library of Mathematical
 * Functions, dlmf.nist.gov. */
#include "ops/pointwise/pointwise.h"

#define PI 3.141592653589793238462643383279502884L

/* e^-x I_n(x) for x >= 0: by the power series (10.25.2), whose terms are positive, and far out by Hankel's expansion
 * (10.40.1), which there is right to e^-2x. */
static long double scaled(int n, long double x) {
  static const long double FAR = 40, ENOUGH = 1e-21L;
  long double sum = 1, term = 1;
  if (x < FAR) {
    for (int k = 1; term > ENOUGH * sum; k++) sum += term *= x * x / 4 / (k * (k + n));
    return (n ? sum * x / 2 : sum) * expl(-x);
  }
  for (int k = 1; fabsl(term) > ENOUGH; k++) sum += term *= ((2 * k - 1) * (2 * k - 1) - 4 * n * n) / (8 * k * x);
  return sum / sqrtl(2 * PI * x);
}
static long double modified(int n, long double x) {
  return isinf(x) ? x : scaled(n, x) * expl(x);
}
REAL(i0, modified(0, fabsl(x)))
REAL(i0e, scaled(0, fabsl(x)))
REAL(i1, copysignl(modified(1, fabsl(x)), x))
REAL(i1e, copysignl(scaled(1, fabsl(x)), x))
REAL(j0, isinf(x) ? 0 : j0l(x))
REAL(j1, isinf(x) ? 0 : j1l(x))
REAL(spherical_j0, isinf(x) ? 0 : x == 0 ? 1 : sinl(x) / x)

/* --- gradients (10.29.3): I0' = I1, I1' = I0 - I1 / x, which is 1/2 at 0 --- */

static graft_tensor *first_slope(fx *s, graft_tensor *x, graft_tensor *y, graft_tensor *zeroth, bool is_scaled) {
  graft_tensor *zero = fx_is(s, GRAFT_OP_EQ_TENSOR, x, 0);
  graft_tensor *slope = fx_sub(s, zeroth, fx_div(s, y, fx_where(s, zero, fx_int(1), fx_tensor(x))));
  if (is_scaled) slope = fx_sub(s, slope, fx_mul(s, y, fx_sign(s, x)));
  return fx_where(s, zero, fx_float(0.5), fx_tensor(slope));
}
GRADIENT(i0, fx_mul(s, g, fx_special_i1(s, x)))
GRADIENT(i0e, fx_mul(s, g, fx_sub(s, fx_special_i1e(s, x), fx_mul(s, y, fx_sign(s, x)))))
GRADIENT(i1, fx_mul(s, g, first_slope(s, x, y, fx_i0(s, x), false)))
GRADIENT(i1e, fx_mul(s, g, first_slope(s, x, y, fx_special_i0e(s, x), true)))

/* J and j have no gradient in PyTorch, either. */
#define BESSEL_J(op, kernel) PW(PRIMS_##op, "b", 0, NULL, 0, .promo = PW_FLOAT, .refuse = PW_NO_COMPLEX, RO(kernel))

static const op_def defs[] = {
    PW_UNARY(I0, 0, PW_FLOAT, PW_NO_COMPLEX, RO(i0), i0, SAVE_X),
    PW_UNARY(SPECIAL_I0E, 0, PW_FLOAT, PW_NO_COMPLEX, RO(i0e), i0e, SAVE_X | SAVE_OUT),
    PW_UNARY(SPECIAL_I1, 0, PW_FLOAT, PW_NO_COMPLEX, RO(i1), i1, SAVE_X | SAVE_OUT),
    PW_UNARY(SPECIAL_I1E, 0, PW_FLOAT, PW_NO_COMPLEX, RO(i1e), i1e, SAVE_X | SAVE_OUT),
    BESSEL_J(BESSEL_J0, j0),
    BESSEL_J(BESSEL_J1, j1),
    BESSEL_J(SPHERICAL_BESSEL_J0, spherical_j0),
};
OP_TABLE(pointwise_bessel, defs)
