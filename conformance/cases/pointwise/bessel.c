/* Bessel functions. */
#include <math.h>

#include "conformance/cases/pointwise/pointwise.h"

/* e^-|x| I0(x), the mean of e^(|x| (cos t - 1)); for sizes of terms only, by 64 of them. */
static long double cf_scaled_i0(long double x) {
  long double sum = 0;
  for (int k = 0; k < 64; k++) sum += expl(fabsl(x) * (cosl(6.283185307179586L * k / 64) - 1));
  return sum / 64;
}

/* ---- derivatives: bounds of the sum of the absolute terms, by I1 < I0 and I1 <= I0 |x| / 2 ---- */

static long double cf_k_i0(long double x) { /* I1 */
  return expl(fabsl(x)) * cf_scaled_i0(x) * fminl(1, fabsl(x) / 2);
}

static long double cf_k_i0e(long double x) { /* I1 - sign I0 */
  return cf_scaled_i0(x) * 2;
}

static long double cf_k_i1(long double x) { /* I0 - I1 / x */
  return expl(fabsl(x)) * cf_scaled_i0(x) * 1.5L;
}

static long double cf_k_i1e(long double x) { /* I0 - I1 (sign + 1 / x) */
  return cf_scaled_i0(x) * 2.5L;
}

/* ---- limits ---- */

/* Of the power series, up to 20: about |x| / 2 factors of a term count, of three roundings each. Two exponentials of
 * 3 ulp, and eight roundings of an expansion. */
static void cf_l_modified(const cf_check *k, uint32_t out, long double *limits) {
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double size = fminl(fabsl(k->in[0].v[i].re), 20), o = fabsl(k->outs[out].v[i].re);
    limits[i] = isfinite(o) ? cf_limit_of(k, out, i, (20 + 1.5L * size) * o) : 0;
  }
}

/* Errors are those of waves of height min(1, sqrt(2 / (pi x))): sine and cosine 4 ulp each, eight roundings, and that
 * of the angle, x less some eighths of a turn. */
static void cf_l_bessel_j(const cf_check *k, uint32_t out, long double *limits) {
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double size = fabsl(k->in[0].v[i].re), height = fminl(1, sqrtl(0.6366197723675814L / size));
    limits[i] = isfinite(size) ? cf_limit_of(k, out, i, (24 + size) * height) : 0;
  }
}

/* ---- rows ---- */

#define CF_I(n, texts, kappa) \
  { "aten::" n, texts, CF_TO_FLOAT, CF_R_CUSTOM(cf_l_modified), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(kappa, 60) }

static const cf_op cf_bessel_ops[] = {
    CF_I("i0", CF_ONE(""), cf_k_i0),
    CF_I("special_i0e", CF_TWIN, cf_k_i0e),
    CF_I("special_i1", CF_TWIN, cf_k_i1),
    CF_I("special_i1e", CF_TWIN, cf_k_i1e),
    {"prims::bessel_j0", CF_ONE(""), CF_TO_FLOAT, CF_R_CUSTOM(cf_l_bessel_j), CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"prims::bessel_j1", CF_TWIN, CF_TO_FLOAT, CF_R_CUSTOM(cf_l_bessel_j), CF_VALUES, CF_SPECIAL, CF_G_NONE},
    /* sin 4 ulp and a quotient */
    {"prims::spherical_bessel_j0", CF_TWIN, CF_TO_FLOAT, CF_R_ULPS(6), CF_VALUES, CF_SPECIAL, CF_G_NONE},
};

CF_TOPIC(pointwise_bessel, "pointwise", cf_bessel_ops);
