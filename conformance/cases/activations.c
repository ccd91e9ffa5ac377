/* The part of the pointwise family that networks are made of, and special functions. The second text of an op is the
 * one that smoke runs: one program an op. */
#include <math.h>

#include "conformance/cases/families.h"

#define CF_PI 3.14159265358979323846L

/* ---- derivatives: the sum of the absolute terms of f'(x) ---- */

static long double cf_sigmoid(long double x) {
  return 1 / (1 + expl(-x));
}

static long double cf_k_hardswish(long double x) { /* x / 3 + 1/2, or 1 */
  return fabsl(x) / 3 + 1;
}
static long double cf_k_mish(long double x) { /* t + x s (1 - t t), t = tanh(softplus) */
  long double t = tanhl(log1pl(expl(x)));
  return t + fabsl(x) * cf_sigmoid(x) * (1 + t * t);
}
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
static long double cf_trigamma_terms(long double x) {
  long double sum = 0, y = x, s = CF_PI / sinl(CF_PI * x);
  if (x < 0.5L) return cf_trigamma_terms(1 - x) + s * s * (1 + 2 * fabsl(CF_PI * x / tanl(CF_PI * x)));
  for (; y < 10; y += 1) sum += 1 / (y * y);
  return sum + 1 / y + 1 / (y * y);
}

/* ---- limits of results ---- */

/* `n` roundings of the terms at the first input, and half an ulp; in f64 the terms of special functions come out exact.
 */
static void cf_term_limit(const cf_check *k, uint32_t out, long double *limits, long double (*terms)(long double),
                          long double n) {
  const cf_array *x = &k->in[0], *o = &k->outs[out];
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = n * cf_u_acc(k->dtypes[out]) * terms(x->v[i].re) + cf_ulp(k->dtypes[out], o->v[i].re) / 2;
}
/* log 3 ulp, which is 6 u, and the roundings of the sum. */
static void cf_l_lgamma(const cf_check *k, uint32_t out, long double *l) {
  cf_term_limit(k, out, l, cf_lgamma_terms, 12);
}
static void cf_l_digamma(const cf_check *k, uint32_t out, long double *l) {
  cf_term_limit(k, out, l, cf_digamma_terms, 12);
}

/* g f'(x) */
static void cf_slot_terms(const cf_check *k, uint32_t out, long double *limits, long double (*terms)(long double),
                          long double n) {
  const cf_array *g = &k->in[0], *x = &k->in[1], *o = &k->outs[out];
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] =
        n * cf_u_acc(k->dtypes[out]) * fabsl(g->v[i].re) * terms(x->v[i].re) + cf_ulp(k->dtypes[out], o->v[i].re) / 2;
}
static void cf_l_hardswish_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_slot_terms(k, out, l, cf_k_hardswish, 4);
}
/* exp 3 ulp in each of tanh's two places, sigmoid 4 ulp. */
static void cf_l_mish_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_slot_terms(k, out, l, cf_k_mish, 32);
}

/* output as softplus: 4 ulp + 2u |x|; buffer is one exp */
static void cf_l_log_sigmoid(const cf_check *k, uint32_t out, long double *limits) {
  graft_dtype dtype = k->dtypes[out];
  bool half = cf_mantissa(dtype) < 24;
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double ulp = cf_ulp(dtype, k->outs[out].v[i].re), size = fabsl(k->in[0].v[i].re);
    limits[i] = out ? (half ? 1 : 3) * ulp : (half ? 1 : 4) * ulp + 2 * cf_u_acc(dtype) * size;
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

/* (g, x, w) to (g or w g, 0 or x g), for cotangents of both; all of one shape */
static void cf_t_prelu(const cf_check *k, uint32_t in, long double *terms) {
  for (int64_t i = 0; i < k->in[in].numel; i++) {
    long double g = fabsl(k->in[0].v[i].re), x = fabsl(k->in[1].v[i].re), w = fabsl(k->in[2].v[i].re);
    long double first = fabsl(k->g[0].v[i].re), second = fabsl(k->g[1].v[i].re);
    terms[i] = in == 0 ? first * fmaxl(1, w) + second * x : in == 1 ? g * second : g * first;
  }
}

/* Of element i of the whole tensor: where its half-tensor element is, and where its partner is. */
typedef struct cf_gate {
  int64_t half, partner;
  bool is_gate;
} cf_gate;
static cf_gate cf_gate_of(const cf_array *whole, int64_t dim, int64_t i) {
  cf_axis x = cf_axis_of(whole, dim);
  int64_t run = x.length * x.inner, at = i % run, half = run / 2;
  bool is_gate = at >= half;
  return (cf_gate){i / run * half + at % half, is_gate ? i - half : i + half, is_gate};
}
/* g s, and g a s (1 - s) */
static long double cf_glu_term(const cf_array *whole, const cf_array *g, int64_t dim, int64_t i) {
  cf_gate at = cf_gate_of(whole, dim, i);
  long double s = cf_sigmoid(whole->v[at.is_gate ? i : at.partner].re), size = fabsl(g->v[at.half].re);
  return at.is_gate ? size * fabsl(whole->v[at.partner].re) * s * (1 + s) : size * s;
}
static void cf_t_glu(const cf_check *k, uint32_t in, long double *terms) {
  int64_t dim = cf_arg_int(k->call, "dim", -1);
  for (int64_t i = 0; i < k->in[in].numel; i++) terms[i] = cf_glu_term(&k->in[0], &k->g[0], dim, i);
}
/* sigmoid 4 ulp, used twice. */
static void cf_l_glu_backward(const cf_check *k, uint32_t out, long double *limits) {
  int64_t dim = cf_arg_int(k->call, "dim", -1);
  for (int64_t i = 0; i < k->outs[out].numel; i++)
    limits[i] = 20 * cf_u_acc(k->dtypes[out]) * cf_glu_term(&k->in[1], &k->in[0], dim, i) +
                cf_ulp(k->dtypes[out], k->outs[out].v[i].re) / 2;
}

/* ---- rows ---- */

#define CF_SPECIAL_WIDE (CF_SPECIAL | CF_WIDE | CF_INPLACE)
#define CF_CLAMPS       (CF_SPECIAL_WIDE | CF_ANY_ZERO)
#define CF_TO_FLOAT     (CF_FLOATS | CF_BIT(I64) | CF_BIT(I32) | CF_BIT(U8))
#define CF_PARTS        (CF_BIT(F32) | CF_BIT(F64))
/* Texts of ops of one tensor, and of two of one shape, with the same arguments behind. */
#define CF_ONE(rest)                                                                             \
  CF_TEXTS("m T[33,17]" rest, "s T[129]" rest, "m T[]" rest, "m T[0]" rest, "m T[3,13,17]" rest, \
           "f T[2,1,3,2,2,3]" rest, "f T[1025]" rest)
#define CF_TWO(rest)                                                                                 \
  CF_TEXTS("m T[33,17] T[33,17]" rest, "s T[129] T[129]" rest, "m T[] T[]" rest, "m T[0] T[0]" rest, \
           "m T[3,13,17] T[3,13,17]" rest, "f T[1025] T[1025]" rest)
#define CF_SOME(...) CF_TEXTS(__VA_ARGS__)

static const cf_op cf_activations_ops[] = {
    {"aten::elu", CF_ONE(""), CF_FLOATS, CF_R_GATED(4), CF_VALUES, CF_INPLACE, CF_G_SELECT(14)},
    {"aten::elu", CF_SOME("m T[33,17] 0.5 1.5 2"), CF_FLOATS, CF_R_GATED(4), CF_VALUES, 0, CF_G_SELECT(14)},
    {"aten::elu_backward",
     CF_TEXTS("m T[33,17] 0.5 1.5 2 false T[33,17]", "s T[129] 1 1 1 false T[129]", "m T[129] 0.5 1.5 2 true T[129]",
              "m T[] 1 1 1 true T[]", "m T[0] 1 1 1 false T[0]"),
     CF_FLOATS, CF_R_ULPS(10), CF_VALUES, CF_INPLACE, CF_G_NONE},
    {"aten::celu", CF_ONE(" 0.5"), CF_FLOATS, CF_R_GATED(4), CF_VALUES, CF_INPLACE, CF_G_SELECT(14)},
    {"aten::hardtanh", CF_ONE(" -0.5 0.75"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    {"aten::hardtanh", CF_SOME("m T[33,17] 1 3", "m T[1025] 0 6"), CF_INTS, CF_R_EXACT, CF_VALUES, CF_WIDE, CF_G_NONE},
    {"aten::hardtanh_backward", CF_TWO(" -0.5 0.75"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_INPLACE | CF_ANY_ZERO,
     CF_G_NONE},
    {"aten::leaky_relu", CF_ONE(" 0.1"), CF_FLOATS, CF_R_ROUNDED, CF_VALUES, CF_SPECIAL_WIDE, CF_G_SELECT(2)},
    {"aten::leaky_relu_backward", CF_TWO(" 0.1 false"), CF_FLOATS, CF_R_ROUNDED, CF_VALUES, CF_INPLACE, CF_G_NONE},
    {"aten::leaky_relu_backward", CF_SOME("m T[33,17] T[33,17] 0.25 true"), CF_FLOATS, CF_R_ROUNDED, CF_VALUES, 0,
     CF_G_NONE},
    {"aten::hardswish", CF_ONE(""), CF_FLOATS, CF_R_ULPS(3), CF_VALUES, CF_INPLACE, CF_G_KAPPA(cf_k_hardswish, 4)},
    {"aten::hardswish_backward", CF_TWO(""), CF_FLOATS, CF_R_CUSTOM(cf_l_hardswish_backward), CF_VALUES, CF_INPLACE,
     CF_G_NONE},
    {"aten::hardsigmoid", CF_ONE(""), CF_FLOATS, CF_R_ULPS(2), CF_VALUES, CF_SPECIAL_WIDE, CF_G_SELECT(2)},
    {"aten::hardsigmoid_backward", CF_TWO(""), CF_FLOATS, CF_R_ULPS(1), CF_VALUES, CF_INPLACE | CF_ANY_ZERO, CF_G_NONE},
    {"aten::softplus", CF_ONE(""), CF_FLOATS, CF_R_GATED(4), CF_VALUES, CF_INPLACE, CF_G_SELECT(16)},
    {"aten::softplus", CF_SOME("m T[33,17] 2 0.5"), CF_FLOATS, CF_R_GATED(4), CF_VALUES, 0, CF_G_SELECT(16)},
    {"aten::softplus_backward", CF_TWO(" 2 0.5"), CF_FLOATS, CF_R_ULPS(10), CF_VALUES, CF_INPLACE, CF_G_NONE},
    {"aten::log_sigmoid_forward", CF_ONE(""), CF_FLOATS, CF_R_CUSTOM(cf_l_log_sigmoid), CF_VALUES, CF_NO_ADJOINT,
     CF_G_SELECT(14)}, /* buffer has no gradient, as in PyTorch */
    {"aten::log_sigmoid_backward",
     CF_TEXTS("m T[33,17] T[33,17] T[33,17]+", "s T[129] T[129] T[129]+", "m T[] T[] T[]+", "m T[0] T[0] T[0]+"),
     CF_FLOATS, CF_R_ULPS(4), CF_VALUES, CF_INPLACE, CF_G_NONE},
    {"aten::mish", CF_ONE(""), CF_FLOATS, CF_R_GATED(4), CF_VALUES, CF_INPLACE, CF_G_KAPPA(cf_k_mish, 32)},
    {"aten::mish_backward", CF_TWO(""), CF_FLOATS, CF_R_CUSTOM(cf_l_mish_backward), CF_VALUES, CF_INPLACE, CF_G_NONE},
    {"aten::threshold", CF_ONE(" 0.25 7"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE, CF_G_SELECT(1)},
    {"aten::threshold", CF_SOME("m T[33,17] 1 3", "m T[129] 0 5"), CF_INTS, CF_R_EXACT, CF_VALUES, CF_WIDE, CF_G_NONE},
    {"aten::hardshrink", CF_ONE(" 0.5"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    {"aten::hardshrink_backward", CF_TWO(" 0.5"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_INPLACE | CF_ANY_ZERO,
     CF_G_NONE},
    {"aten::softshrink", CF_ONE(" 0.5"), CF_FLOATS, CF_R_ROUNDED, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    {"aten::softshrink_backward", CF_TWO(" 0.5"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_INPLACE | CF_ANY_ZERO,
     CF_G_NONE},
    {"aten::_prelu_kernel",
     CF_TEXTS("m T[33,17] T[33,17]", "s T[33,17] T[17]", "m T[3,13,17] T[13,1]", "m T[] T[]", "m T[0] T[0]",
              "f T[2,3,1,17] T[3,1,1]"),
     CF_FLOATS, CF_R_ROUNDED, CF_VALUES, CF_INPLACE, CF_G_SELECT(2)},
    {"aten::_prelu_kernel_backward",
     CF_TEXTS("m T[33,17] T[33,17] T[33,17]", "s T[129] T[129] T[129]", "m T[] T[] T[]", "m T[0] T[0] T[0]"), CF_FLOATS,
     CF_R_ROUNDED, CF_VALUES, CF_ANY_ZERO, CF_G_CUSTOM(cf_t_prelu, 4)},
    {"aten::_prelu_kernel_backward", CF_SOME("m T[33,17] T[33,17] T[17]", "m T[3,13,17] T[3,13,17] T[13,1]"), CF_FLOATS,
     CF_R_ROUNDED, CF_VALUES, CF_ANY_ZERO, CF_G_NONE},
    {"aten::glu",
     CF_TEXTS("m T[33,34]", "s T[13,34]", "m T[13,34] 1", "m T[4,3,17] 0", "m T[3,8,17] -2", "m T[0,4]", "m T[258]",
              "f T[2,3,2,4,2,3] 3"),
     CF_FLOATS, CF_R_ULPS(9), CF_VALUES, 0, CF_G_CUSTOM(cf_t_glu, 20)},
    {"aten::glu_backward",
     CF_TEXTS("m T[33,17] T[33,34] 1", "s T[13,17] T[13,34] -1", "m T[2,3,17] T[4,3,17] 0", "m T[3,4,17] T[3,8,17] 1",
              "m T[0,2] T[0,4] 1"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_glu_backward), CF_VALUES, 0, CF_G_NONE},

    {"aten::isneginf", CF_ONE(""), CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    {"aten::isposinf", CF_ONE(""), CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    {"aten::nan_to_num", CF_ONE(""), CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_INPLACE | CF_NATIVE,
     CF_G_SELECT(1)},
    {"aten::nan_to_num", CF_SOME("m T[33,17] 1.5 2 -3", "m T[129] nan=7"), CF_FLOATS, CF_R_EXACT, CF_VALUES,
     CF_SPECIAL | CF_NATIVE, CF_G_SELECT(1)},
    {"aten::xlogy.Tensor", CF_TWO(""), CF_TO_FLOAT, CF_R_ULPS(8), CF_POSITIVE, CF_SPECIAL_WIDE, CF_G_SELECT(10)},
    {"aten::logit", CF_ONE(""), CF_FLOATS, CF_R_CUSTOM(cf_l_logit), CF_PROBABILITY, CF_INPLACE, CF_G_SELECT(6)},
    {"aten::logit", CF_SOME("m T[33,17] 0.125"), CF_FLOATS, CF_R_CUSTOM(cf_l_logit), CF_PROBABILITY, 0, CF_G_SELECT(6)},
    {"aten::logit_backward", CF_TWO(""), CF_FLOATS, CF_R_ULPS(4), CF_PROBABILITY, CF_INPLACE, CF_G_NONE},
    {"aten::logit_backward", CF_SOME("m T[33,17] T[33,17] 0.125"), CF_FLOATS, CF_R_ULPS(4), CF_PROBABILITY, CF_ANY_ZERO,
     CF_G_NONE},
    {"aten::lgamma", CF_ONE(""), CF_TO_FLOAT, CF_R_CUSTOM(cf_l_lgamma), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_KAPPA(cf_digamma_terms, 12)},
    {"aten::digamma", CF_ONE(""), CF_TO_FLOAT, CF_R_CUSTOM(cf_l_digamma), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_KAPPA(cf_trigamma_terms, 24)},
    /* s + 1 roundings a term, at most 17 positive terms */
    {"aten::polygamma", CF_SOME("m 0 T[33,17]"), CF_FLOATS, CF_R_CUSTOM(cf_l_digamma), CF_VALUES, 0, CF_G_NONE},
    {"aten::polygamma", CF_TEXTS("m 1 T[33,17]", "s 2 T[129]", "m 3 T[33]", "m 1 T[0]", "m 2 T[]"), CF_TO_FLOAT,
     CF_R_ULPS(24), CF_POSITIVE, 0, CF_G_SELECT(26)},
    {"aten::angle", CF_ONE(""), CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_SELECT(0)},
    {"aten::angle", CF_SOME("m T[33,17]", "m T[129]"), CF_COMPLEX, CF_R_ULPS(6), CF_VALUES, 0, CF_G_SELECT(8)},
    {"aten::polar", CF_TWO(""), CF_PARTS, CF_R_ULPS(6), CF_VALUES, 0, CF_G_CUSTOM(cf_t_polar, 12)},
    {"aten::complex", CF_TWO(""), CF_PARTS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_SELECT(1)},
    {"aten::logaddexp", CF_TWO(""), CF_FLOATS, CF_R_CUSTOM(cf_l_logaddexp), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_SELECT(16)},
    {"aten::logaddexp2", CF_TWO(""), CF_FLOATS, CF_R_CUSTOM(cf_l_logaddexp), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_SELECT(18)},
    {"aten::frac", CF_ONE(""), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    {"aten::heaviside", CF_TWO(""), CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_INPLACE, CF_G_NONE},
    {"aten::sinc", CF_ONE(""), CF_TO_FLOAT, CF_R_CUSTOM(cf_l_sinc), CF_VALUES, CF_SPECIAL | CF_INPLACE,
     CF_G_KAPPA(cf_k_sinc, 16)},
    /* The gradient is exp(y y): of y's error, 16 u (2 + y y), it makes 2 y times as much, where y y is 14 at most. */
    {"aten::erfinv", CF_ONE(""), CF_TO_FLOAT & ~CF_BIT(U8), CF_R_CUSTOM(cf_l_erfinv), CF_UNIT, CF_SPECIAL | CF_INPLACE,
     CF_G_SELECT(300)},
};

CF_FAMILY(activations, "activations");
