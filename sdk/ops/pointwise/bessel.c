/* Bessel functions of the orders 0 and 1, and Airy's. Numbers in brackets are equations of the Digital Library of
 * Mathematical Functions, dlmf.nist.gov. */
#include <pthread.h>

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
/* e^x K_n(x). Up to 1 by the power series (10.31.2) of K_0 and the Wronskian (10.28.2). Beyond from the integral of
 * e^-x(cosh t - 1) cosh nt (10.32.9) by the trapezoidal rule, whose error is that integral with 2 pi i / step for n. */
static long double scaled_k(int n, long double x) {
  static const long double EULER = 0.577215664901532860606512090082402431L;
  if (!(x > 0)) return x == 0 ? INFINITY : NAN;
  if (isinf(x)) return 0;
  long double sum = 0, term = 1;
  if (x <= 1) {
    long double harmonic = 0, up = expl(x), zeroth = scaled(0, x) * up;
    for (int k = 1; k < 16; k++) sum += (term *= x * x / 4 / (k * k)) * (harmonic += 1.0L / k);
    sum -= (logl(x / 2) + EULER) * zeroth;
    return up * (n ? (1 / x - scaled(1, x) * up * sum) / zeroth : sum);
  }
  long double step = fminl(0.125L, 0.5L / sqrtl(x));
  for (int j = 1; term > 1e-21L; j++) {
    long double half = sinhl(j * step / 2), turn = 2 * half * half; /* cosh t - 1 */
    term = expl(-x * turn) * (n ? 1 + turn : 1);
    sum += term;
  }
  return (sum + 0.5L) * step;
}

/* Where the integral of airy_ai is looked at, and what each place counts: the same for all numbers. With
 * t = e^(u - e^-u) the trapezoidal rule has all digits. */
enum { AIRY_FROM = -64, AIRY_TO = 68, AIRY_PLACES = AIRY_TO - AIRY_FROM + 1 };
static struct { long double t, weight; } airy_places[AIRY_PLACES];
static pthread_once_t airy_once = PTHREAD_ONCE_INIT;

static void make_airy_places(void) {
  for (int i = 0; i < AIRY_PLACES; i++) {
    const long double u = (AIRY_FROM + i) / 16.0L, fall = expl(-u), t = expl(u - fall);
    airy_places[i].t = t;
    airy_places[i].weight = t * (1 + fall) * expl(-t) * powl(t, -1 / 6.0L);
  }
}

/* Near 0 by the power series (9.4.1); else from an integral (9.5.8), on the right at x itself, on the left (9.2.14) at
 * the root of x that lies in the upper half. */
static long double airy_ai(long double x) {
  static const long double AT_0 = 0.355028053887817239260063186004183177L,
                           SLOPE = -0.258819403792806798405183560189203963L;
  if (isnan(x) || isinf(x)) return isnan(x) ? x : 0;
  if (fabsl(x) <= 1) {
    long double sum = 0, first = AT_0, second = SLOPE * x;
    for (int k = 1; k < 36; k += 3) {
      sum += first + second;
      first *= x * x * x / ((k + 1) * (k + 2));
      second *= x * x * x / ((k + 2) * (k + 3));
    }
    return sum;
  }
  long double size = fabsl(x), zeta = 2 * size * sqrtl(size) / 3;
  ref_complex w = x > 0 ? zeta : zeta * I, sum = 0;
  pthread_once(&airy_once, make_airy_places);
  for (int i = 0; i < AIRY_PLACES; i++) sum += airy_places[i].weight * cpowl(2 + airy_places[i].t / w, -1 / 6.0L);
  sum *= cexpl(-w) * cpowl(w, -1 / 6.0L) / (16 * sqrtl(PI) * powl(48, 1 / 6.0L) * tgammal(5 / 6.0L));
  return x > 0 ? creall(sum) : 2 * creall(cexpl(I * PI / 3) * sum);
}
REAL(i0, modified(0, fabsl(x)))
REAL(i0e, scaled(0, fabsl(x)))
REAL(i1, copysignl(modified(1, fabsl(x)), x))
REAL(i1e, copysignl(scaled(1, fabsl(x)), x))
REAL(j0, isinf(x) ? 0 : j0l(x))
REAL(j1, isinf(x) ? 0 : j1l(x))
REAL(y0, isinf(x) && x > 0 ? 0 : y0l(x))
REAL(y1, isinf(x) && x > 0 ? 0 : y1l(x))
REAL(k0, scaled_k(0, x) * expl(-x))
REAL(k1, scaled_k(1, x) * expl(-x))
REAL(scaled_k0, scaled_k(0, x))
REAL(scaled_k1, scaled_k(1, x))
REAL(airy_ai, airy_ai(x))
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

/* PyTorch has no gradient of these, either. */
#define ALONE(op, kernel) PW(SPECIAL_##op, "b", 0, NULL, 0, .promo = PW_FLOAT, .refuse = PW_NO_COMPLEX, RO(kernel))

static const op_def defs[] = {
    PW_UNARY(I0, 0, PW_FLOAT, PW_NO_COMPLEX, RO(i0), i0, SAVE_X),
    PW_UNARY(SPECIAL_I0E, 0, PW_FLOAT, PW_NO_COMPLEX, RO(i0e), i0e, SAVE_X | SAVE_OUT),
    PW_UNARY(SPECIAL_I1, 0, PW_FLOAT, PW_NO_COMPLEX, RO(i1), i1, SAVE_X | SAVE_OUT),
    PW_UNARY(SPECIAL_I1E, 0, PW_FLOAT, PW_NO_COMPLEX, RO(i1e), i1e, SAVE_X | SAVE_OUT),
    ALONE(MODIFIED_BESSEL_I0, i0),
    ALONE(MODIFIED_BESSEL_I1, i1),
    ALONE(MODIFIED_BESSEL_K0, k0),
    ALONE(MODIFIED_BESSEL_K1, k1),
    ALONE(SCALED_MODIFIED_BESSEL_K0, scaled_k0),
    ALONE(SCALED_MODIFIED_BESSEL_K1, scaled_k1),
    ALONE(BESSEL_J0, j0),
    ALONE(BESSEL_J1, j1),
    ALONE(BESSEL_Y0, y0),
    ALONE(BESSEL_Y1, y1),
    ALONE(SPHERICAL_BESSEL_J0, spherical_j0),
    ALONE(AIRY_AI, airy_ai),
};
OP_TABLE(pointwise_bessel, defs)
