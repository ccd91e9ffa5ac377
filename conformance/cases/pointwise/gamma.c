/* Gamma functions and what is made of them. */
#include <math.h>

#include "conformance/cases/pointwise/pointwise.h"

#define CF_PI 3.14159265358979323846L

/* Terms of what gamma functions are computed by: a recurrence up to 10, the expansion there, and reflection, where pi x
 * is rounded before its sine is taken. */
static long double cf_lgamma_terms(long double x) {
  long double product = 0, y = x;
  if (x < 0.5L)
    return cf_lgamma_terms(1 - x) + fabsl(logl(CF_PI / fabsl(sinl(CF_PI * x)))) + fabsl(CF_PI * x / tanl(CF_PI * x));
  for (; y < 10; y += 1) product += fabsl(logl(y));
  return (y - 0.5L) * logl(y) + y + 1 + product;
}

static long double cf_digamma_terms(long double x) {
  long double sum = 0, y = x, s = sinl(CF_PI * x);
  if (x < 0) return cf_digamma_terms(1 - x) + fabsl(CF_PI * cosl(CF_PI * x) / s) + fabsl(CF_PI * x) * CF_PI / (s * s);
  for (; y < 10; y += 1) sum += 1 / y;
  return sum + logl(y) + 0.5L / y;
}

static long double cf_trigamma_terms(long double x) {
  long double sum = 0, y = x, s = CF_PI / sinl(CF_PI * x);
  if (x < 0.5L) return cf_trigamma_terms(1 - x) + s * s * (1 + 2 * fabsl(CF_PI * x / tanl(CF_PI * x)));
  for (; y < 10; y += 1) sum += 1 / (y * y);
  return sum + 1 / y + 1 / (y * y);
}

/* ---- limits of results ---- */

/* `n` roundings of the terms at the first input, and half an ulp; in f64 terms of special functions come out exact. */
static void cf_term_limit(const cf_check *k, uint32_t out, long double *limits, long double (*terms)(long double),
                          long double n) {
  const cf_array *x = &k->in[0], *o = &k->outs[out];
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit_of(k, out, i, n * terms(x->v[i].re));
}

/* log 3 ulp, which is 6 u, and the roundings of the sum. */
static void cf_l_lgamma(const cf_check *k, uint32_t out, long double *l) {
  cf_term_limit(k, out, l, cf_lgamma_terms, 12);
}

static void cf_l_digamma(const cf_check *k, uint32_t out, long double *l) {
  cf_term_limit(k, out, l, cf_digamma_terms, 12);
}

/* Of many dims: a sum over x - j/2, each of which is rounded. */
static void cf_l_mvlgamma(const cf_check *k, uint32_t out, long double *limits) {
  int64_t p = cf_arg_int(k->call, "p", 1);
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double sum = (long double)(p * (p - 1)) / 4 * logl(CF_PI);
    for (int64_t j = 0; j < p; j++) {
      long double x = k->in[0].v[i].re - (long double)j / 2;
      sum += cf_lgamma_terms(x) + fabsl(x) * cf_digamma_terms(x);
    }
    limits[i] = cf_limit_of(k, out, i, (12 + (long double)p) * sum);
  }
}

/* The parts of the exponent in x^a e^-x / Gamma(a), eight roundings each, make errors of the smaller of both functions;
 * the other is what is left of 1. */
static long double cf_incomplete_terms(long double a, long double x) {
  return 1 + fabsl(a * logl(x)) + x + fabsl(lgammal(a));
}

/* A power series of positive terms: about five factors of three roundings in a term that counts. Or a continued
 * fraction, whose n-th step is still of the size e^(-4 sqrt(n x)): a product of as many factors as that takes, of five
 * roundings each, which add up as those of a sum do. */
static long double cf_incomplete_steps(graft_dtype dtype, long double x) {
  long double digits = -logl(cf_u_acc(dtype)) / 4;
  return 16 + 5 * cf_growth(digits * digits / fmaxl(x, 1));
}

static void cf_l_incomplete(const cf_check *k, uint32_t out, long double *limits) {
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double a = k->in[0].v[i % k->in[0].numel].re, x = k->in[1].v[i % k->in[1].numel].re, o = k->outs[out].v[i].re;
    long double roundings = 8 * cf_incomplete_terms(a, x) + cf_incomplete_steps(k->dtypes[out], x);
    long double smaller = fminl(o, 1 - o) * roundings;
    limits[i] = cf_limit_of(k, out, i, (isfinite(smaller) ? smaller : 0) + 4 * o);
  }
}

/* Powers of 16 ulp, and a dozen sums; a rounding of q + k makes s as many of all powers but the first. */
static void cf_l_zeta(const cf_check *k, uint32_t out, long double *limits) {
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double s = k->in[0].v[i % k->in[0].numel].re, q = k->in[1].v[i % k->in[1].numel].re, o = k->outs[out].v[i].re;
    limits[i] = isfinite(o) ? cf_limit_of(k, out, i, 48 * fabsl(o) + s * fabsl(o - powl(q, -s))) : 0;
  }
}

/* ---- terms of gradients ---- */

/* (g, x) to g times the sum of digamma(x - j/2) */
static void cf_t_mvlgamma(const cf_check *k, uint32_t in, long double *terms) {
  int64_t p = cf_arg_int(k->call, "p", 1);
  for (int64_t i = 0; i < k->in[in].numel; i++) {
    for (int64_t j = 0; j < p; j++) {
      long double x = k->in[0].v[i].re - (long double)j / 2;
      terms[i] += fabsl(k->g[0].v[i].re) * (cf_digamma_terms(x) + fabsl(x) * cf_trigamma_terms(x));
    }
  }
}

/* g x^(a - 1) e^-x / Gamma(a), for x */
static void cf_t_incomplete(const cf_check *k, uint32_t in, long double *terms) {
  for (int64_t i = 0; i < k->in[in].numel; i++) {
    long double a = k->in[0].v[i].re, x = k->in[1].v[i].re, g = fabsl(k->g[0].v[i].re);
    terms[i] = g * expl((a - 1) * logl(x) - x - lgammal(a)) * (cf_incomplete_terms(a, x) + fabsl(logl(x)));
  }
}

/* ---- rows ---- */

/* The first operand has no gradient: it is of one dtype in the rows that ask for the second's. */
#define CF_INCOMPLETE(n, texts, rule)                                                                              \
  {"aten::" n, texts, CF_FLOATS, rule, CF_POSITIVE, CF_SPECIAL | CF_INPLACE, CF_G_NONE}, {                         \
    "aten::" n, CF_TEXTS("m f32[33,17] T[33,17]", "m f32[] T[]"), CF_BIT(F32) | CF_BIT(F64), rule, CF_POSITIVE, 0, \
        CF_G_CUSTOM(cf_t_incomplete, 16)                                                                           \
  }

/* Orders near the argument, which have an expansion of their own. */
#define CF_INCOMPLETE_NEAR(n)                                                             \
  {                                                                                       \
    "aten::" n, CF_TEXTS("m T[33,17]<20..60 T[33,17]<20..60"), CF_BIT(F32) | CF_BIT(F64), \
        CF_R_CUSTOM(cf_l_incomplete), CF_POSITIVE, 0, CF_G_NONE                           \
  }

static const cf_op cf_gamma_ops[] = {
    {"aten::lgamma", CF_ONE(""), CF_TO_FLOAT, CF_R_CUSTOM(cf_l_lgamma), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_KAPPA(cf_digamma_terms, 12)},
    {"aten::digamma", CF_ONE(""), CF_TO_FLOAT, CF_R_CUSTOM(cf_l_digamma), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_KAPPA(cf_trigamma_terms, 24)},
    /* s + 1 roundings a term, and the sum of at most 30 positive ones */
    {"aten::polygamma", CF_TEXTS("m 0 T[33,17]"), CF_FLOATS, CF_R_CUSTOM(cf_l_digamma), CF_VALUES, 0, CF_G_NONE},
    {"aten::polygamma", CF_TEXTS("m 1 T[33,17]", "s 2 T[129]", "m 3 T[33]", "m 1 T[0]", "m 2 T[]"), CF_TO_FLOAT,
     CF_R_ULPS(24), CF_POSITIVE, 0, CF_G_SELECT(26)},
    {"aten::mvlgamma", CF_TEXTS("m T[33,17]+ 1", "m T[129] 2", "m T[33] 4", "m T[] 3", "m T[0] 2"), CF_TO_FLOAT,
     CF_R_CUSTOM(cf_l_mvlgamma), CF_POSITIVE, CF_SPECIAL | CF_INPLACE, CF_G_CUSTOM(cf_t_mvlgamma, 24)},
    CF_INCOMPLETE("igamma", CF_TWO(""), CF_R_CUSTOM(cf_l_incomplete)),
    CF_INCOMPLETE("igammac", CF_TWIN_PAIR, CF_R_CUSTOM(cf_l_incomplete)),
    CF_INCOMPLETE_NEAR("igamma"),
    CF_INCOMPLETE_NEAR("igammac"),
    {"aten::special_zeta", CF_TWO(""), CF_FLOATS, CF_R_CUSTOM(cf_l_zeta), CF_ABOVE_ONE, CF_INPLACE, CF_G_NONE},
    {"aten::special_zeta", CF_TEXTS("m f32[33,17] T[33,17]", "m f32[] T[]"), CF_BIT(F32) | CF_BIT(F64),
     CF_R_CUSTOM(cf_l_zeta), CF_ABOVE_ONE, 0, CF_G_SELECT(60)},
    {"aten::special_zeta", CF_TEXTS("m i64[33]<9 T[33]"), CF_FLOATS, CF_R_CUSTOM(cf_l_zeta), CF_POSITIVE, 0, CF_G_NONE},
};

CF_TOPIC(pointwise_gamma, "pointwise", cf_gamma_ops);
