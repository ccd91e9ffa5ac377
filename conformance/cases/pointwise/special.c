/* Special functions, and complex numbers by their parts. */
#include <math.h>

#include "conformance/cases/pointwise/pointwise.h"

#define CF_PI 3.14159265358979323846L

/* ---- derivatives: the sum of the absolute terms of f'(x) ---- */

static long double cf_k_sinc(long double a) { /* (cos x - sin x / x) / a at x = pi a, itself rounded */
  long double x = CF_PI * a, s = fabsl(sinl(x));
  return a == 0 ? 0 : (fabsl(cosl(x)) + fabsl(s / x) + fabsl(x) * s) / fabsl(a);
}

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

static long double cf_k_entr(long double x) { /* 1 + log x */
  return 1 + fabsl(logl(x));
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

/* Beyond the log's 3 ulp: the quotient's two roundings, which are absolute in the logarithm. */
static void cf_l_logit(const cf_check *k, uint32_t out, long double *limits) {
  graft_dtype dtype = k->dtypes[out];
  for (int64_t i = 0; i < k->outs[out].numel; i++)
    limits[i] = (cf_mantissa(dtype) < 24 ? 1 : 3) * cf_ulp(dtype, k->outs[out].v[i].re) + 3 * cf_u_acc(dtype);
}

/* sin 4 ulp and a division; pi a is rounded, of which the sine makes u |pi a| at most, and the division u. */
static void cf_l_sinc(const cf_check *k, uint32_t out, long double *limits) {
  graft_dtype dtype = k->dtypes[out];
  for (int64_t i = 0; i < k->outs[out].numel; i++)
    limits[i] = (cf_mantissa(dtype) < 24 ? 1 : 6) * cf_ulp(dtype, k->outs[out].v[i].re) + 2 * cf_u_acc(dtype);
}

/* m + t, t = log(1 + exp(-d)): exp 3 ulp, log 2 ulp, the rounding of d; then one of the sum. */
static void cf_l_logaddexp(const cf_check *k, uint32_t out, long double *limits) {
  graft_dtype dtype = k->dtypes[out];
  const cf_array *a = &k->in[0], *b = &k->in[1];
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double d = fabsl(a->v[i % a->numel].re - b->v[i % b->numel].re), e = expl(-d * 0.69L);
    limits[i] = cf_ulp(dtype, k->outs[out].v[i].re) + 16 * cf_u_acc(dtype) * 1.45L * (log1pl(e) + d * e);
    if (isnan(limits[i])) limits[i] = 0; /* infinite operands */
  }
}

/* Newton's step on erf or erfc, 16 ulp each, whichever is small there: their error over the slope of erf. */
static void cf_l_erfinv(const cf_check *k, uint32_t out, long double *limits) {
  graft_dtype dtype = k->dtypes[out];
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double y = fabsl(k->in[0].v[i].re), o = k->outs[out].v[i].re, u = cf_u_acc(dtype);
    limits[i] = 4 * cf_ulp(dtype, o) + 32 * u * 0.8862269254527580L * expl(o * o) * fminl(y, 1 - y);
    if (!isfinite(o)) limits[i] = 0;
  }
}

/* ---- terms of gradients ---- */

/* Re and Im of g times cos and sin, for the angle times the modulus. */
static void cf_t_polar(const cf_check *k, uint32_t in, long double *terms) {
  for (int64_t i = 0; i < k->in[in].numel; i++) {
    long double size = in ? fabsl(k->in[0].v[i].re) : 1;
    terms[i] = size * (fabsl(k->g[0].v[i].re) + fabsl(k->g[0].v[i].im));
  }
}

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

/* ---- rows ---- */

#define CF_PARTS (CF_BIT(F32) | CF_BIT(F64))

static const cf_op cf_special_ops[] = {
    {"aten::xlogy.Tensor", CF_TWO(""), CF_TO_FLOAT, CF_R_ULPS(8), CF_POSITIVE, CF_SPECIAL_WIDE, CF_G_SELECT(10)},
    {"aten::logit", CF_ONE(""), CF_FLOATS, CF_R_CUSTOM(cf_l_logit), CF_PROBABILITY, CF_INPLACE, CF_G_SELECT(6)},
    {"aten::logit", CF_TEXTS("m T[33,17] 0.125"), CF_FLOATS, CF_R_CUSTOM(cf_l_logit), CF_PROBABILITY, 0,
     CF_G_SELECT(6)},
    {"aten::logit_backward", CF_TWO(""), CF_FLOATS, CF_R_ULPS(4), CF_PROBABILITY, CF_INPLACE, CF_G_NONE},
    {"aten::logit_backward", CF_TEXTS("m T[33,17] T[33,17] 0.125"), CF_FLOATS, CF_R_ULPS(4), CF_PROBABILITY,
     CF_ANY_ZERO, CF_G_NONE},
    {"aten::lgamma", CF_ONE(""), CF_TO_FLOAT, CF_R_CUSTOM(cf_l_lgamma), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_KAPPA(cf_digamma_terms, 12)},
    {"aten::digamma", CF_ONE(""), CF_TO_FLOAT, CF_R_CUSTOM(cf_l_digamma), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_KAPPA(cf_trigamma_terms, 24)},
    /* s + 1 roundings a term, and the sum of at most 30 positive ones */
    {"aten::polygamma", CF_TEXTS("m 0 T[33,17]"), CF_FLOATS, CF_R_CUSTOM(cf_l_digamma), CF_VALUES, 0, CF_G_NONE},
    {"aten::polygamma", CF_TEXTS("m 1 T[33,17]", "s 2 T[129]", "m 3 T[33]", "m 1 T[0]", "m 2 T[]"), CF_TO_FLOAT,
     CF_R_ULPS(24), CF_POSITIVE, 0, CF_G_SELECT(26)},
    {"aten::angle", CF_ONE(""), CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_SELECT(0)},
    {"aten::angle", CF_TEXTS("m T[33,17]", "m T[129]"), CF_COMPLEX, CF_R_ULPS(6), CF_VALUES, 0, CF_G_SELECT(8)},
    {"aten::polar", CF_TWO(""), CF_PARTS, CF_R_ULPS(6), CF_VALUES, 0, CF_G_CUSTOM(cf_t_polar, 12)},
    {"aten::complex", CF_TWO(""), CF_PARTS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_SELECT(1)},
    {"aten::logaddexp", CF_TWO(""), CF_FLOATS, CF_R_CUSTOM(cf_l_logaddexp), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_SELECT(16)},
    {"aten::logaddexp2", CF_TWO(""), CF_FLOATS, CF_R_CUSTOM(cf_l_logaddexp), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_SELECT(18)},
    {"aten::sinc", CF_ONE(""), CF_TO_FLOAT, CF_R_CUSTOM(cf_l_sinc), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_KAPPA(cf_k_sinc, 16)},
    /* log 3 ulp and a product */
    {"aten::special_entr", CF_ONE(""), CF_TO_FLOAT, CF_R_ULPS(8), CF_POSITIVE, CF_SPECIAL | CF_WIDE | CF_INPLACE,
     CF_G_KAPPA(cf_k_entr, 10)},
    {"aten::mvlgamma", CF_TEXTS("m T[33,17]+ 1", "m T[129] 2", "m T[33] 4", "m T[] 3", "m T[0] 2"), CF_TO_FLOAT,
     CF_R_CUSTOM(cf_l_mvlgamma), CF_POSITIVE, CF_SPECIAL | CF_INPLACE, CF_G_CUSTOM(cf_t_mvlgamma, 24)},
    /* The gradient is exp(y y): of y's error, 16 u (2 + y y), it makes 2 y times as much, where y y is 14 at most. */
    {"aten::erfinv", CF_ONE(""), CF_TO_FLOAT & ~CF_BIT(U8), CF_R_CUSTOM(cf_l_erfinv), CF_UNIT, CF_SPECIAL | CF_INPLACE,
     CF_G_SELECT(300)},
};

CF_TOPIC(pointwise_special, "pointwise", cf_special_ops);
