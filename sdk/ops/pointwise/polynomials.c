/* Orthogonal polynomials of the degree n, which is cut to a whole number. They are 0 for n < 0 and for what is no
 * number, and PyTorch's recurrence otherwise, with what that gives once its numbers have left the range of the dtype:
 * infinities, and NaN two degrees on. Numbers in brackets are equations of the Digital Library of Mathematical
 * Functions, dlmf.nist.gov. */
#include "ops/pointwise/pointwise.h"

/* p_1 = start_x x + start, and p_(k+1) of p_k and p_(k-1): numbers that grow with k have a part of each (18.9.1). */
typedef struct recurrence {
  long double start_x, start;
  long double x, k_x, one, k_one; /* (x + k_x k) x + one + k_one k, times p_k */
  long double before, k_before;   /* less as many p_(k-1) */
  long double k_divisor;          /* over 1 + k_divisor k */
} recurrence;

typedef enum kind { T, U, V, W, H, HE, L, P } kind;
static const recurrence recurrences[] = {
    [T] = {.start_x = 1, .x = 2, .before = 1},
    [U] = {.start_x = 2, .x = 2, .before = 1},
    [V] = {.start_x = 2, .start = -1, .x = 2, .before = 1},
    [W] = {.start_x = 2, .start = 1, .x = 2, .before = 1},
    [H] = {.start_x = 2, .x = 2, .k_before = 2},
    [HE] = {.start_x = 1, .x = 1, .k_before = 1},
    [L] = {.start_x = -1, .start = 1, .x = -1, .one = 1, .k_one = 2, .k_before = 1, .k_divisor = 1},
    [P] = {.start_x = 1, .x = 1, .k_x = 2, .k_before = 1, .k_divisor = 1},
};

static long double in_range(const pw_context *c, long double value) {
  return isinf(dt_round(dt_accumulate(c->compute), value)) ? copysignl(INFINITY, value) : value;
}

static long double by_recurrence(const recurrence *r, long double n, long double x, const pw_context *c) {
  long double before = 1, now = in_range(c, r->start_x * x + r->start);
  if (n == 0) return 1;
  for (long double k = 1; k < n && !isnan(now); k++) {
    long double factor = (r->x + r->k_x * k) * x + r->one + r->k_one * k;
    long double product = in_range(c, factor * now), other = in_range(c, (r->before + r->k_before * k) * before);
    long double next = in_range(c, product - other) / (1 + r->k_divisor * k);
    before = now;
    now = next;
  }
  return now;
}

/* Chebyshev's of cos t (18.5.1) to (18.5.4), of half the angle of |x|, whose sine squared is `rest`: V and W of -x are
 * W and V of x. */
static long double by_angle(kind kind, long double n, bool is_left, long double rest) {
  long double half = asinl(sqrtl(rest)), sign = is_left && fmodl(n, 2) != 0 ? -1 : 1;
  if (is_left && kind >= V) kind = kind == V ? W : V;
  if (kind == T) return sign * cosl(2 * n * half);
  if (kind == V) return sign * cosl((2 * n + 1) * half) / cosl(half);
  if (kind == U) return sign * (half == 0 ? n + 1 : sinl((2 * n + 2) * half) / sinl(2 * half));
  return sign * (half == 0 ? 2 * n + 1 : sinl((2 * n + 1) * half) / sinl(half));
}

static long double polynomial(kind kind, bool is_shifted, const long double *v, const pw_context *c) {
  static const long double BY_ANGLE_FROM = 7;
  long double x = is_shifted ? in_range(c, 2 * v[0] - 1) : v[0], n = truncl(v[1]);
  if (!(n >= 0 && n < 0x1p63L)) return 0;
  if (kind <= W && n >= BY_ANGLE_FROM && fabsl(x) <= 1) {
    long double shifted_rest = x < 0 ? v[0] : 1 - v[0];
    return by_angle(kind, n, x < 0, is_shifted ? shifted_rest : (1 - fabsl(x)) / 2);
  }
  if (kind == P && fabsl(x) == 1) return x < 0 && fmodl(n, 2) != 0 ? -1 : 1;
  if (kind == L && x == 0) return 1;
  long double most = dt_accumulate(c->compute) == GRAFT_F32 ? 128 : 512;
  if ((kind == H || kind == HE) && n > most) return NAN; /* as PyTorch has it */
  return by_recurrence(&recurrences[kind], n, x, c);
}

REAL(chebyshev_t, polynomial(T, false, v, c))
REAL(chebyshev_u, polynomial(U, false, v, c))
REAL(chebyshev_v, polynomial(V, false, v, c))
REAL(chebyshev_w, polynomial(W, false, v, c))
REAL(shifted_chebyshev_t, polynomial(T, true, v, c))
REAL(shifted_chebyshev_u, polynomial(U, true, v, c))
REAL(shifted_chebyshev_v, polynomial(V, true, v, c))
REAL(shifted_chebyshev_w, polynomial(W, true, v, c))
REAL(hermite_h, polynomial(H, false, v, c))
REAL(hermite_he, polynomial(HE, false, v, c))
REAL(laguerre_l, polynomial(L, false, v, c))
REAL(legendre_p, polynomial(P, false, v, c))

/* PyTorch has no gradient of these, either. */
#define POLYNOMIAL(op, kernel) \
  PW(SPECIAL_##op, "bb", 0, NULL, 0, .promo = PW_FLOAT, .refuse = PW_NO_COMPLEX, RO(kernel))

static const op_def defs[] = {
    POLYNOMIAL(CHEBYSHEV_POLYNOMIAL_T, chebyshev_t),
    POLYNOMIAL(CHEBYSHEV_POLYNOMIAL_U, chebyshev_u),
    POLYNOMIAL(CHEBYSHEV_POLYNOMIAL_V, chebyshev_v),
    POLYNOMIAL(CHEBYSHEV_POLYNOMIAL_W, chebyshev_w),
    POLYNOMIAL(SHIFTED_CHEBYSHEV_POLYNOMIAL_T, shifted_chebyshev_t),
    POLYNOMIAL(SHIFTED_CHEBYSHEV_POLYNOMIAL_U, shifted_chebyshev_u),
    POLYNOMIAL(SHIFTED_CHEBYSHEV_POLYNOMIAL_V, shifted_chebyshev_v),
    POLYNOMIAL(SHIFTED_CHEBYSHEV_POLYNOMIAL_W, shifted_chebyshev_w),
    POLYNOMIAL(HERMITE_POLYNOMIAL_H, hermite_h),
    POLYNOMIAL(HERMITE_POLYNOMIAL_HE, hermite_he),
    POLYNOMIAL(LAGUERRE_POLYNOMIAL_L, laguerre_l),
    POLYNOMIAL(LEGENDRE_POLYNOMIAL_P, legendre_p),
};
OP_TABLE(pointwise_polynomials, defs)
