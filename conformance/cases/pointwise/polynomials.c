/* Orthogonal polynomials. */
#include <math.h>
#include <string.h>

#include "conformance/cases/pointwise/pointwise.h"
#include "conformance/judge/compare.h"

/* p_1 = start_x x + start; p_(k+1) = (((x + k_x k) x + one + k_one k) p_k - (before + k_before k) p_(k-1)) /
 * (1 + divisor k). */
typedef struct cf_polynomial {
  const char *name; /* how that of the op ends */
  double start_x, start, x, k_x, one, k_one, before, k_before, divisor;
} cf_polynomial;

static const cf_polynomial cf_polynomials[] = {
    {"_t", 1, 0, 2, 0, 0, 0, 1, 0, 0},   {"_u", 2, 0, 2, 0, 0, 0, 1, 0, 0}, {"_v", 2, -1, 2, 0, 0, 0, 1, 0, 0},
    {"_w", 2, 1, 2, 0, 0, 0, 1, 0, 0},   {"_h", 2, 0, 2, 0, 0, 0, 0, 2, 0}, {"_he", 1, 0, 1, 0, 0, 0, 0, 1, 0},
    {"_l", -1, 1, -1, 0, 1, 2, 0, 1, 1}, {"_p", 1, 0, 1, 2, 0, 0, 0, 1, 1},
};

static const cf_polynomial *cf_polynomial_of(const char *op) {
  const char *end = strrchr(op, '_');
  for (size_t i = 0; i < sizeof cf_polynomials / sizeof *cf_polynomials; i++)
    if (strcmp(end, cf_polynomials[i].name) == 0) return &cf_polynomials[i];
  return NULL;
}

/* The roundings of Chebyshev's polynomials of an angle: that comes with eleven (asin 4 ulp, root, sum, product), sine
 * and cosine with eight, those they are divided by with as many and with those of their angle. */
static long double cf_angle_roundings(char kind, long double n, long double x, long double rest, long double result) {
  long double half = asinl(sqrtl(rest)), below = 1, turns = kind == 't' ? 2 * n : kind == 'u' ? 2 * n + 2 : 2 * n + 1;
  if (kind == 'u') below = sinl(2 * half);
  if (kind == 'v' || kind == 'w') below = (kind == 'w') == (x >= 0) ? sinl(half) : cosl(half);
  if (below == 0) return 4 * fabsl(result);
  return 12 * turns * half / below + 8 + 24 * fabsl(result);
}

enum { CF_DEGREES = 256 };

/* Those of the recurrence: each step's own, of factor, product, difference and quotient, times what the result moves
 * with it. That follows the recurrence from the other end. */
static long double cf_recurrence_roundings(const cf_polynomial *p, int n, long double x, bool is_shifted) {
  long double value[CF_DEGREES + 2] = {1, p->start_x * x + p->start}, own[CF_DEGREES + 2] = {0}, sum = 0,
                                 grown = is_shifted;
  own[1] = fabsl(p->start_x * x) * grown + fabsl(value[1]);
  for (int k = 1; k < n; k++) {
    long double by = (p->x + p->k_x * k) * x, one = p->one + p->k_one * k, divisor = 1 + p->divisor * k;
    long double left = (by + one) * value[k], right = (p->before + p->k_before * k) * value[k - 1];
    value[k + 1] = (left - right) / divisor;
    own[k + 1] = (2 * fabsl(left) + grown * fabsl(by * value[k]) + fabsl(right)) / divisor + 3 * fabsl(value[k + 1]);
  }
  long double moves = 1, next = 0;
  for (int k = n; k > 0; k--) {
    sum += fabsl(moves) * own[k];
    long double by = p->x + p->k_x * (k - 1), one = p->one + p->k_one * (k - 1);
    long double here = moves * (by * x + one) / (1 + p->divisor * (k - 1));
    here -= next * (p->before + p->k_before * k) / (1 + p->divisor * k);
    next = moves;
    moves = here;
  }
  return sum;
}

/* Whether the recurrence passes the end of the dtype's range in one order of its operations and stays below it in
 * another (product, difference, quotient; a fused multiply-add has no product), or passes it by a rounding. From there
 * on there are infinities and NaN in the one and numbers, or other infinities, in the other. Where all of a step's
 * numbers pass it, all that follows is known, but for the next step's other product: NaN where that passes it, too, and
 * is rounded by itself. */
static bool cf_leaves_range_by_order(const cf_polynomial *p, long double n, long double x, graft_dtype dtype) {
  static const long double SLACK = 1e-3L;
  long double most = cf_max(dtype), before = 1, now = p->start_x * x + p->start;
  for (long double k = 1; k < n && k < CF_DEGREES && !isnan(now); k++) {
    long double product = ((p->x + p->k_x * k) * x + p->one + p->k_one * k) * now;
    long double other = (p->before + p->k_before * k) * before, next = (product - other) / (1 + p->divisor * k);
    if (fabsl(now) > most) return n == k + 1 && fabsl(other) > most * (1 - SLACK);
    long double largest = fmaxl(fmaxl(fabsl(product), fabsl(other)), fabsl(product - other));
    if (largest > most * (1 - SLACK) && fabsl(next) < most * (1 + SLACK)) return true;
    before = now, now = next;
  }
  return false;
}

static void cf_l_polynomial(const cf_check *k, uint32_t out, long double *limits) {
  const char *op = k->call->op->name;
  const cf_polynomial *p = cf_polynomial_of(op);
  bool is_shifted = strstr(op, "shifted") != NULL;
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double a = k->in[0].v[i % k->in[0].numel].re, n = truncl(k->in[1].v[i % k->in[1].numel].re);
    long double o = k->outs[out].v[i].re, x = is_shifted ? 2 * a - 1 : a, roundings = 0;
    long double rest = !is_shifted ? (1 - fabsl(x)) / 2 : x < 0 ? a : 1 - a;
    bool is_by_angle = n > 6 && fabsl(x) <= 1 && strstr(op, "chebyshev");
    if (is_by_angle)
      roundings = cf_angle_roundings(p->name[1], n, x, rest, o);
    else if (n > 0 && n < CF_DEGREES && isfinite(o))
      roundings = cf_recurrence_roundings(p, (int)n, x, is_shifted);
    limits[i] = isfinite(o) ? cf_limit_of(k, out, i, roundings) : 0;
    if (!is_by_angle && cf_leaves_range_by_order(p, n, x, dt_accumulate(k->dtypes[out]))) limits[i] = CF_UNJUDGED;
  }
}

/* ---- rows ---- */

#define CF_SMALL   (CF_BIT(F16) | CF_BIT(BF16))
#define CF_TO_WIDE (CF_TO_FLOAT & ~CF_SMALL)

/* The oracle goes where the recurrence overflows in the tested dtype. Half types overflow in the end alone. */
#define CF_POLYNOMIAL(n, texts)                                                                                        \
  {"aten::special_" n, texts, CF_TO_WIDE, CF_R_CUSTOM(cf_l_polynomial), CF_VALUES, CF_SPECIAL | CF_NATIVE, CF_G_NONE}, \
  {                                                                                                                    \
    "aten::special_" n, CF_TEXTS("m T[33,17] T[33,17]<12"), CF_SMALL, CF_R_CUSTOM(cf_l_polynomial), CF_VALUES, 0,      \
        CF_G_NONE                                                                                                      \
  }
#define CF_FIRST                                                                                           \
  CF_TEXTS("s T[33,17] T[33,17]<12", "m T[129] T[129]", "m T[] T[]", "m T[0] T[0]", "m T[33,17] T[17]<12", \
           "f T[33,17] T[33,17]<99")
#define CF_OTHER \
  CF_TEXTS("m T[33,17] T[33,17]<12", "m T[129] T[129]", "m T[] T[]", "m T[0] T[0]", "f T[33,17] T[33,17]<99")

/* Of f32 there are none above 128. */
#define CF_HIGH_DEGREES(n)                                                                                        \
  {                                                                                                               \
    "aten::special_" n, CF_TEXTS("m T[33] T[33]<120..140"), CF_BIT(F32), CF_R_CUSTOM(cf_l_polynomial), CF_VALUES, \
        CF_NATIVE, CF_G_NONE                                                                                      \
  }

/* Where the value is known whatever the degree, nobody walks up to it. */
#define CF_AT(n, x)                                                                             \
  {                                                                                             \
    "aten::special_" n, CF_TEXTS("m T[5]=" x " T[5]=1099511627776"), CF_BIT(F32) | CF_BIT(F64), \
        CF_R_CUSTOM(cf_l_polynomial), CF_VALUES, CF_NATIVE, CF_G_NONE                           \
  }

static const cf_op cf_polynomial_ops[] = {
    CF_POLYNOMIAL("chebyshev_polynomial_t", CF_FIRST),
    CF_POLYNOMIAL("chebyshev_polynomial_u", CF_OTHER),
    CF_POLYNOMIAL("chebyshev_polynomial_v", CF_OTHER),
    CF_POLYNOMIAL("chebyshev_polynomial_w", CF_OTHER),
    CF_POLYNOMIAL("shifted_chebyshev_polynomial_t", CF_OTHER),
    CF_POLYNOMIAL("shifted_chebyshev_polynomial_u", CF_OTHER),
    CF_POLYNOMIAL("shifted_chebyshev_polynomial_v", CF_OTHER),
    CF_POLYNOMIAL("shifted_chebyshev_polynomial_w", CF_OTHER),
    CF_POLYNOMIAL("hermite_polynomial_h", CF_OTHER),
    CF_POLYNOMIAL("hermite_polynomial_he", CF_OTHER),
    CF_HIGH_DEGREES("hermite_polynomial_h"),
    CF_HIGH_DEGREES("hermite_polynomial_he"),
    CF_POLYNOMIAL("laguerre_polynomial_l", CF_OTHER),
    CF_POLYNOMIAL("legendre_polynomial_p", CF_OTHER),
    CF_AT("laguerre_polynomial_l", "0"),
    CF_AT("legendre_polynomial_p", "1"),
    CF_AT("legendre_polynomial_p", "-1"),
};

CF_TOPIC(pointwise_polynomials, "pointwise", cf_polynomial_ops);
