/* Special functions, and complex numbers by their parts. */
#include <math.h>

#include "conformance/cases/pointwise/pointwise.h"

#define CF_PI 3.14159265358979323846L

/* ---- derivatives: the sum of the absolute terms of f'(x) ---- */

static long double cf_k_sinc(long double a) { /* (cos x - sin x / x) / a at x = pi a, itself rounded */
  long double x = CF_PI * a, s = fabsl(sinl(x));
  return a == 0 ? 0 : (fabsl(cosl(x)) + fabsl(s / x) + fabsl(x) * s) / fabsl(a);
}

static long double cf_k_entr(long double x) { /* 1 + log x */
  return 1 + fabsl(logl(x));
}

static long double cf_k_erfcx(long double x) { /* 2 x y - 2 / sqrt(pi) */
  return 2 * fabsl(x) * expl(x * x) * erfcl(x) + 1.13L;
}

/* ---- limits of results ---- */

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

/* exp 3 ulp and erfc 16, or a continued fraction; what is lost of x x, where exp is taken of it. */
static void cf_l_erfcx(const cf_check *k, uint32_t out, long double *limits) {
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double x = k->in[0].v[i].re, square = x < 0 ? 2 * x * x : fminl(x * x, 26), o = k->outs[out].v[i].re;
    limits[i] = isfinite(o) ? cf_limit_of(k, out, i, (48 + square) * o) : 0;
  }
}

/* log(erfcx / 2) - x x / 2, erfcx 16 ulp and log 3; or log(1 - w), w = erfc(y) / 2, 16 ulp and what the roundings of y,
 * the constant's and the product's, do to it: 2 y y = x x times as much each. */
static void cf_l_log_ndtr(const cf_check *k, uint32_t out, long double *limits) {
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double x = k->in[0].v[i].re, w = erfcl(x * 0.70710678118654752440L) / 2, o = fabsl(k->outs[out].v[i].re);
    limits[i] = isfinite(o)
                    ? cf_limit_of(k, out, i, x < -1 ? 40 + 2 * x * x + 6 * o : (32 + 2 * x * x) * w / (1 - w) + 6 * o)
                    : 0;
  }
}

/* As erfinv, of 1 - 2 p or of 2 p, whichever is small. */
static void cf_l_ndtri(const cf_check *k, uint32_t out, long double *limits) {
  graft_dtype dtype = k->dtypes[out];
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double p = k->in[0].v[i].re, rest = 2 * fminl(p, 1 - p), o = k->outs[out].v[i].re, u = cf_u_acc(dtype);
    limits[i] = 4 * cf_ulp(dtype, o) + 32 * u * 1.2533141373155003L * expl(o * o / 2) * fminl(rest, 1 - rest);
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

/* ---- rows ---- */

#define CF_PARTS (CF_BIT(F32) | CF_BIT(F64))

static const cf_op cf_special_ops[] = {
    {"aten::xlogy.Tensor", CF_TWO(""), CF_TO_FLOAT, CF_R_ULPS(8), CF_POSITIVE, CF_SPECIAL_WIDE, CF_G_SELECT(10)},
    {"aten::special_xlog1py", CF_TWIN_PAIR, CF_TO_FLOAT, CF_R_ULPS(6), CF_POSITIVE, CF_SPECIAL_WIDE, CF_G_SELECT(10)},
    {"aten::logit", CF_ONE(""), CF_FLOATS, CF_R_CUSTOM(cf_l_logit), CF_PROBABILITY, CF_INPLACE, CF_G_SELECT(6)},
    {"aten::logit", CF_TEXTS("m T[33,17] 0.125"), CF_FLOATS, CF_R_CUSTOM(cf_l_logit), CF_PROBABILITY, 0,
     CF_G_SELECT(6)},
    {"aten::logit_backward", CF_TWO(""), CF_FLOATS, CF_R_ULPS(4), CF_PROBABILITY, CF_INPLACE, CF_G_NONE},
    {"aten::logit_backward", CF_TEXTS("m T[33,17] T[33,17] 0.125"), CF_FLOATS, CF_R_ULPS(4), CF_PROBABILITY,
     CF_ANY_ZERO, CF_G_NONE},
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
    {"aten::special_erfcx", CF_ONE(""), CF_TO_FLOAT, CF_R_CUSTOM(cf_l_erfcx), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_KAPPA(cf_k_erfcx, 60)},
    {"aten::special_log_ndtr", CF_TWIN, CF_TO_FLOAT, CF_R_CUSTOM(cf_l_log_ndtr), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_SELECT(60)},
    /* The gradient is exp(y y / 2); see erfinv. */
    {"aten::special_ndtri", CF_ONE(""), CF_TO_FLOAT & ~CF_BIT(U8), CF_R_CUSTOM(cf_l_ndtri), CF_PROBABILITY,
     CF_SPECIAL | CF_INPLACE, CF_G_SELECT(300)},
    /* The gradient is exp(y y): of y's error, 16 u (2 + y y), it makes 2 y times as much, where y y is 14 at most. */
    {"aten::erfinv", CF_ONE(""), CF_TO_FLOAT & ~CF_BIT(U8), CF_R_CUSTOM(cf_l_erfinv), CF_UNIT, CF_SPECIAL | CF_INPLACE,
     CF_G_SELECT(300)},
};

CF_TOPIC(pointwise_special, "pointwise", cf_special_ops);
