/* Elementary functions. Ulps are those that OpenCL C grants in single precision. */
#include <math.h>

#include "conformance/cases/pointwise/pointwise.h"

/* ---- derivatives: the sum of the absolute terms of f'(x), with the cancellation in 1 - x x ---- */

static long double cf_k_exp(long double x) {
  return expl(x);
}

static long double cf_k_log(long double x) {
  return 1 / fabsl(x);
}

static long double cf_k_sqrt(long double x) {
  return 0.5L / sqrtl(x);
}

static long double cf_k_rsqrt(long double x) {
  return 0.5L / (x * sqrtl(x));
}

static long double cf_k_sin(long double x) {
  return fabsl(cosl(x));
}

static long double cf_k_cos(long double x) {
  return fabsl(sinl(x));
}

static long double cf_k_erf(long double x) { /* the exponent's rounding grows with x x */
  return 1.1283791670955126L * expl(-x * x) * (1 + x * x);
}

static long double cf_k_asin(long double x) {
  return (1 + x * x) / ((1 - x * x) * sqrtl(1 - x * x));
}

static long double cf_k_acosh(long double x) {
  return 1 / sqrtl((x - 1) * (x + 1));
}

static long double cf_k_asinh(long double x) {
  return 1 / sqrtl(x * x + 1);
}

static long double cf_k_atan(long double x) {
  return 1 / (x * x + 1);
}

static long double cf_k_atanh(long double x) {
  return (1 + x * x) / ((1 - x * x) * (1 - x * x));
}

static long double cf_k_cosh(long double x) {
  return fabsl(sinhl(x));
}

static long double cf_k_sinh(long double x) {
  return coshl(x);
}

static long double cf_k_tan(long double x) {
  return 1 + tanl(x) * tanl(x);
}

static long double cf_k_exp2(long double x) {
  return exp2l(x);
}

static long double cf_k_expm1(long double x) {
  return fabsl(expm1l(x)) + 1;
}

static long double cf_k_log1p(long double x) {
  return (1 + fabsl(x)) / ((1 + x) * (1 + x));
}

static long double cf_k_log2(long double x) {
  return 1.4426950408889634L / fabsl(x);
}

static long double cf_k_log10(long double x) {
  return 0.4342944819032518L / fabsl(x);
}

static long double cf_k_erfc(long double x) { /* the exponent's rounding grows with x x */
  return 1.1283791670955126L * expl(-x * x) * (1 + x * x);
}

/* ---- terms of gradients of two operands, both of one shape ---- */

/* g x / (x x + y y), with x the other operand */
static void cf_t_atan2(const cf_check *k, uint32_t in, long double *terms) {
  for (int64_t i = 0; i < k->in[in].numel; i++) {
    long double y = k->in[0].v[i].re, x = k->in[1].v[i].re, g = fabsl(k->g[0].v[i].re);
    terms[i] = g * fabsl(in ? y : x) / (x * x + y * y);
  }
}

/* g x / hypot */
static void cf_t_hypot(const cf_check *k, uint32_t in, long double *terms) {
  for (int64_t i = 0; i < k->in[in].numel; i++)
    terms[i] = fabsl(k->g[0].v[i].re * k->in[in].v[i].re) / hypotl(k->in[0].v[i].re, k->in[1].v[i].re);
}

/* ---- rows ---- */

/* A smooth function, exact to n ulp, its derivative to m roundings of the terms. */
#define CF_SMOOTH(name, n, domain, kappa, m) \
  { "aten::" name, CF_ONE(""), CF_TO_FLOAT, CF_R_ULPS(n), domain, CF_SPECIAL | CF_INPLACE, CF_G_KAPPA(kappa, m) }

static const cf_op cf_elementary_ops[] = {
    CF_U("exp", CF_TO_FLOAT, CF_R_ULPS(3), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_exp, 10)),
    CF_U("log", CF_TO_FLOAT, CF_R_ULPS(3), CF_POSITIVE, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_log, 4)),
    CF_U("sqrt", CF_TO_FLOAT, CF_R_DIVISION, CF_POSITIVE, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_sqrt, 8)),
    CF_U("rsqrt", CF_TO_FLOAT, CF_R_ULPS(2), CF_POSITIVE, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_rsqrt, 18)),
    CF_U("sin", CF_TO_FLOAT, CF_R_ULPS(4), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_sin, 10)),
    CF_U("cos", CF_TO_FLOAT, CF_R_ULPS(4), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_cos, 10)),
    CF_U("erf", CF_TO_FLOAT, CF_R_ULPS(16), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_erf, 10)),
    CF_SMOOTH("acos", 4, CF_UNIT, cf_k_asin, 10),
    CF_SMOOTH("acosh", 4, CF_ABOVE_ONE, cf_k_acosh, 12),
    CF_SMOOTH("asin", 4, CF_UNIT, cf_k_asin, 10),
    CF_SMOOTH("asinh", 4, CF_VALUES, cf_k_asinh, 10),
    CF_SMOOTH("atan", 5, CF_VALUES, cf_k_atan, 8),
    CF_SMOOTH("atanh", 5, CF_UNIT, cf_k_atanh, 8),
    CF_SMOOTH("cosh", 4, CF_VALUES, cf_k_cosh, 10),
    CF_SMOOTH("sinh", 4, CF_VALUES, cf_k_sinh, 10),
    CF_SMOOTH("tan", 5, CF_VALUES, cf_k_tan, 28),
    CF_SMOOTH("exp2", 3, CF_VALUES, cf_k_exp2, 10),
    CF_SMOOTH("expm1", 3, CF_VALUES, cf_k_expm1, 10),
    CF_SMOOTH("log1p", 2, CF_POSITIVE, cf_k_log1p, 6),
    CF_SMOOTH("log2", 3, CF_POSITIVE, cf_k_log2, 6),
    CF_SMOOTH("log10", 3, CF_POSITIVE, cf_k_log10, 6),
    CF_SMOOTH("erfc", 16, CF_VALUES, cf_k_erfc, 12),
    {"prims::cbrt", CF_TWIN, CF_TO_FLOAT, CF_R_ULPS(2), CF_VALUES, CF_SPECIAL_WIDE, CF_G_NONE},
    {"aten::atan2", CF_TWO(""), CF_TO_FLOAT, CF_R_ULPS(6), CF_NONZERO, CF_SPECIAL | CF_INPLACE,
     CF_G_CUSTOM(cf_t_atan2, 10)},
    {"aten::hypot", CF_TWO(""), CF_FLOATS, CF_R_ULPS(4), CF_NONZERO, CF_SPECIAL | CF_INPLACE,
     CF_G_CUSTOM(cf_t_hypot, 16)},
};

CF_TOPIC(pointwise_elementary, "pointwise", cf_elementary_ops);
