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

/* Up to 1 some 20 terms that hardly cancel, the logarithm's 3 ulp among them. Beyond a sum of 24 positive terms, whose
 * exponents, about 1 where they count, have ten roundings and those of sinh; and two exponentials of 3 ulp. */
static void cf_l_modified_k(const cf_check *k, uint32_t out, long double *limits) {
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double o = fabsl(k->outs[out].v[i].re);
    limits[i] = isfinite(o) ? cf_limit_of(k, out, i, 64 * o) : 0;
  }
}

/* As J, but for a logarithm of 3 ulp times J, and the pole of the order 1, whose quotient is rounded thrice. */
static void cf_l_bessel_y(const cf_check *k, uint32_t out, long double *limits) {
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double x = k->in[0].v[i].re, height = fminl(1, sqrtl(0.6366197723675814L / x)), o = k->outs[out].v[i].re;
    long double terms = (1 + fabsl(logl(fminl(x, 20) / 2))) * height;
    limits[i] = isfinite(o) && x < INFINITY ? cf_limit_of(k, out, i, (24 + x) * terms + 4 * fabsl(o)) : 0;
  }
}

/* On the right of what decays as e^-zeta, on the left of waves that fall with the fourth root: of the angle zeta four
 * roundings. Up to 10 a Taylor series whose terms exceed the result as much as e^sqrt(x) at its ends, half a unit off.
 */
static void cf_l_airy(const cf_check *k, uint32_t out, long double *limits) {
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double x = k->in[0].v[i].re, size = fabsl(x), zeta = 2 * size * sqrtl(size) / 3, o = k->outs[out].v[i].re;
    long double height = x < 0 ? fminl(1, 0.5641895835477563L / sqrtl(sqrtl(size))) : fabsl(o);
    long double roundings = 16 + 4 * zeta + (size < 11 ? 6 * expl(sqrtl(size)) : 0);
    limits[i] = isfinite(x) ? cf_limit_of(k, out, i, roundings * height) : 0;
  }
}

/* ---- rows ---- */

/* Where the expansions at infinity are used, too. */
#define CF_FAR CF_TEXTS("m T[33,17]", "m T[129]", "m T[]", "m T[0]", "m T[33,17]<60")
#define CF_ALONE(n, texts, rule) \
  { "aten::special_" n, texts, CF_TO_FLOAT, CF_R_CUSTOM(rule), CF_VALUES, CF_SPECIAL | CF_INPLACE, CF_G_NONE }

#define CF_I(n, texts, kappa) \
  { "aten::" n, texts, CF_TO_FLOAT, CF_R_CUSTOM(cf_l_modified), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(kappa, 60) }

static const cf_op cf_bessel_ops[] = {
    CF_I("i0", CF_ONE(""), cf_k_i0),
    CF_I("special_i0e", CF_TWIN, cf_k_i0e),
    CF_I("special_i1", CF_TWIN, cf_k_i1),
    CF_I("special_i1e", CF_TWIN, cf_k_i1e),
    CF_ALONE("modified_bessel_i0", CF_TWIN, cf_l_modified),
    CF_ALONE("modified_bessel_i1", CF_TWIN, cf_l_modified),
    CF_ALONE("modified_bessel_k0", CF_ONE(""), cf_l_modified_k),
    CF_ALONE("modified_bessel_k1", CF_TWIN, cf_l_modified_k),
    CF_ALONE("scaled_modified_bessel_k0", CF_TWIN, cf_l_modified_k),
    CF_ALONE("scaled_modified_bessel_k1", CF_FAR, cf_l_modified_k),
    CF_ALONE("bessel_j0", CF_ONE(""), cf_l_bessel_j),
    CF_ALONE("bessel_j1", CF_FAR, cf_l_bessel_j),
    CF_ALONE("bessel_y0", CF_FAR, cf_l_bessel_y),
    CF_ALONE("bessel_y1", CF_FAR, cf_l_bessel_y),
    CF_ALONE("airy_ai", CF_ONE(""), cf_l_airy),
    CF_ALONE("airy_ai", CF_TEXTS("m T[33,17]<-40..20"), cf_l_airy),
    /* sin 4 ulp and a quotient */
    {"aten::special_spherical_bessel_j0", CF_TWIN, CF_TO_FLOAT, CF_R_ULPS(6), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_NONE},
};

CF_TOPIC(pointwise_bessel, "pointwise", cf_bessel_ops);
