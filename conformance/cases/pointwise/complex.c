/* Elementary functions of complex numbers. Limits are beside the modulus: what OpenCL C grants of the real functions
 * that a formula is made of (hypot 4 ulp, exp 3, log 3, log1p 2, sin and cos 4, tan 5, sinh and cosh 4, asinh 4, atan2
 * 6), and its roundings. Wide exponents are those where moduli and squares of the parts leave the range. */
#include <complex.h>
#include <math.h>

#include "conformance/cases/pointwise/pointwise.h"

typedef long double complex cf_complex;

static cf_complex cf_z(dt_value v) {
  return v.re + v.im * I;
}

/* ---- limits of results ---- */

/* 2^z turns by y log 2, which is rounded. */
static void cf_l_exp2(const cf_check *k, uint32_t out, long double *limits) {
  for (int64_t i = 0; i < k->outs[out].numel; i++)
    limits[i] = (8 + fabsl(k->in[0].v[i].im)) * cf_ulp(k->dtypes[out], cf_modulus(k->outs[out].v[i]));
}

/* 1 / (1 + e): e is right to 8 ulp, which counts by e / (1 + e) = 1 - s; and a division. Of x times that, s is out / x.
 */
static void cf_gate_limits(const cf_check *k, uint32_t out, long double *limits, bool of_x) {
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    cf_complex s = cf_z(k->outs[out].v[i]);
    if (of_x) s /= cf_z(k->in[0].v[i]);
    limits[i] = (6 + 9 * cabsl(1 - s)) * cf_ulp(k->dtypes[out], cf_modulus(k->outs[out].v[i]));
  }
}
static void cf_l_gate(const cf_check *k, uint32_t out, long double *limits) {
  cf_gate_limits(k, out, limits, false);
}
static void cf_l_gated(const cf_check *k, uint32_t out, long double *limits) {
  cf_gate_limits(k, out, limits, true);
}

/* sin 9 ulp and a division; pi z is rounded, of which the sine makes u cosh(pi y) where it is 0, and its modulus u |pi
 * y| of itself. */
static void cf_l_complex_sinc(const cf_check *k, uint32_t out, long double *limits) {
  const long double pi = 3.14159265358979323846L;
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double y = pi * fabsl(k->in[0].v[i].im), ulp = cf_ulp(k->dtypes[out], cf_modulus(k->outs[out].v[i]));
    limits[i] = (14 + 2 * y) * ulp + 2 * cf_u(k->dtypes[out]) * coshl(y);
  }
}

/* m + log(1 + w), w the exponential of the difference: 8 ulp of w and the difference's rounding, by w / (1 + w); 8 ulp
 * of the logarithm; a rounding of the sum. */
static void cf_l_complex_logaddexp(const cf_check *k, uint32_t out, long double *limits) {
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    cf_complex a = cf_z(k->in[0].v[i]), b = cf_z(k->in[1].v[i]), d = creall(a) < creall(b) ? a - b : b - a;
    cf_complex w = cexpl(d), t = clogl(1 + w);
    long double terms = (18 + cabsl(d)) * cabsl(w / (1 + w)) + 16 * cabsl(t);
    limits[i] = cf_u(k->dtypes[out]) * terms + cf_ulp(k->dtypes[out], cf_modulus(k->outs[out].v[i]));
  }
}

/* ---- derivatives: the sum of the absolute terms of f'(z), with the cancellation in 1 - z z and the like ---- */

static long double cf_c_expm1(cf_complex z) {
  return cabsl(cexpl(z) - 1) + 1;
}
static long double cf_c_tan(cf_complex z) {
  return 1 + cabsl(ctanl(z) * ctanl(z));
}
static long double cf_c_tanh(cf_complex z) {
  return 1 + cabsl(ctanhl(z) * ctanhl(z));
}
static long double cf_c_asin(cf_complex z) {
  return (1 + cabsl(z * z)) / cabsl((1 - z * z) * csqrtl(1 - z * z));
}
static long double cf_c_asinh(cf_complex z) {
  return cf_c_asin(z * I);
}
static long double cf_c_atanh(cf_complex z) {
  return (1 + cabsl(z * z)) / cabsl((1 - z * z) * (1 - z * z));
}
static long double cf_c_atan(cf_complex z) {
  return cf_c_atanh(z * I);
}
static long double cf_c_sigmoid(cf_complex z) { /* s (1 - s), s itself off by 1 - s */
  cf_complex s = 1 / (1 + cexpl(-z));
  return cabsl(s) * (1 + cabsl(s)) * (1 + cabsl(1 - s));
}
static long double cf_c_silu(cf_complex z) { /* s (1 + z (1 - s)) */
  cf_complex s = 1 / (1 + cexpl(-z));
  return cabsl(s) * (1 + cabsl(z) * (1 + cabsl(s))) * (1 + cabsl(1 - s));
}

#define CF_COMPLEX_TERMS(name)                                                  \
  static void cf_t_##name(const cf_check *k, uint32_t in, long double *terms) { \
    for (int64_t i = 0; i < k->in[in].numel; i++)                               \
      terms[i] = cf_modulus(k->g[0].v[i]) * cf_c_##name(cf_z(k->in[in].v[i]));  \
  }
CF_COMPLEX_TERMS(expm1)
CF_COMPLEX_TERMS(tan)
CF_COMPLEX_TERMS(tanh)
CF_COMPLEX_TERMS(asin)
CF_COMPLEX_TERMS(asinh)
CF_COMPLEX_TERMS(atan)
CF_COMPLEX_TERMS(atanh)
CF_COMPLEX_TERMS(sigmoid)
CF_COMPLEX_TERMS(silu)

/* ---- backward slots: (g, z or y) ---- */

static void cf_l_complex_silu_backward(const cf_check *k, uint32_t out, long double *limits) {
  for (int64_t i = 0; i < k->outs[out].numel; i++)
    limits[i] = cf_limit_of(k, out, i, 60 * cf_modulus(k->in[0].v[i]) * cf_c_silu(cf_z(k->in[1].v[i])));
}
static void cf_l_complex_sigmoid_backward(const cf_check *k, uint32_t out, long double *limits) { /* g (1 - y) y */
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double y = cf_modulus(k->in[1].v[i]);
    limits[i] = cf_limit_of(k, out, i, 6 * cf_modulus(k->in[0].v[i]) * (1 + y) * y);
  }
}
static void cf_l_complex_tanh_backward(const cf_check *k, uint32_t out, long double *limits) { /* g (1 - y y) */
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double y = cf_modulus(k->in[1].v[i]);
    limits[i] = cf_limit_of(k, out, i, 6 * cf_modulus(k->in[0].v[i]) * (1 + y * y));
  }
}

/* ---- rows ---- */

/* Inputs are on no branch cut: which side a rounded one is on would be open. */
#define CF_OF_COMPLEX(name, rule, flags, ...) \
  { "aten::" name, CF_ONE_COMPLEX(""), CF_COMPLEX, rule, CF_NONZERO, flags, __VA_ARGS__ }
/* Far from 0 in each direction, where one of two exponentials is all that counts, or none does. */
#define CF_FAR_COMPLEX(name, rule) \
  { "aten::" name, CF_TEXTS("m T[33,17]<-80..80"), CF_COMPLEX, rule, CF_VALUES, 0, CF_G_NONE }
#define CF_PAIR(name, limit_, domain)                                                                            \
  {                                                                                                              \
    "aten::" name, CF_TEXTS("m T[33,17] T[33,17]", "m T[] T[]", "m T[0] T[0]"), CF_COMPLEX, CF_R_CUSTOM(limit_), \
        domain, 0, CF_G_NONE                                                                                     \
  }

static const cf_op cf_complex_ops[] = {
    CF_OF_COMPLEX("exp", CF_R_ULPS(8), CF_INPLACE, CF_G_SELECT(24)),
    CF_OF_COMPLEX("exp2", CF_R_CUSTOM(cf_l_exp2), 0, CF_G_SELECT(32)),
    CF_OF_COMPLEX("expm1", CF_R_ULPS(26), 0, CF_G_CUSTOM(cf_t_expm1, 60)),
    CF_OF_COMPLEX("log", CF_R_ULPS(8), CF_WIDE | CF_INPLACE, CF_G_SELECT(10)),
    CF_OF_COMPLEX("log2", CF_R_ULPS(10), CF_WIDE, CF_G_SELECT(14)),
    CF_OF_COMPLEX("log10", CF_R_ULPS(10), CF_WIDE, CF_G_SELECT(14)),
    CF_OF_COMPLEX("log1p", CF_R_ULPS(8), CF_WIDE, CF_G_SELECT(16)),
    CF_OF_COMPLEX("sqrt", CF_R_ULPS(6), CF_WIDE | CF_INPLACE, CF_G_SELECT(24)),
    CF_OF_COMPLEX("rsqrt", CF_R_ULPS(12), CF_WIDE, CF_G_SELECT(100)),
    CF_OF_COMPLEX("sin", CF_R_ULPS(9), 0, CF_G_SELECT(30)),
    CF_OF_COMPLEX("cos", CF_R_ULPS(9), 0, CF_G_SELECT(30)),
    CF_OF_COMPLEX("sinh", CF_R_ULPS(9), 0, CF_G_SELECT(30)),
    CF_OF_COMPLEX("cosh", CF_R_ULPS(9), 0, CF_G_SELECT(30)),
    CF_OF_COMPLEX("tan", CF_R_ULPS(40), 0, CF_G_CUSTOM(cf_t_tan, 160)),
    CF_OF_COMPLEX("tanh", CF_R_ULPS(40), CF_INPLACE, CF_G_CUSTOM(cf_t_tanh, 160)),
    CF_OF_COMPLEX("asin", CF_R_ULPS(20), CF_WIDE, CF_G_CUSTOM(cf_t_asin, 40)),
    CF_OF_COMPLEX("acos", CF_R_ULPS(20), CF_WIDE, CF_G_CUSTOM(cf_t_asin, 40)),
    CF_OF_COMPLEX("atan", CF_R_ULPS(20), CF_WIDE, CF_G_CUSTOM(cf_t_atan, 20)),
    CF_OF_COMPLEX("asinh", CF_R_ULPS(20), CF_WIDE, CF_G_CUSTOM(cf_t_asinh, 40)),
    CF_OF_COMPLEX("acosh", CF_R_ULPS(20), CF_WIDE, CF_G_SELECT(60)),
    CF_OF_COMPLEX("atanh", CF_R_ULPS(20), CF_WIDE, CF_G_CUSTOM(cf_t_atanh, 20)),
    CF_OF_COMPLEX("sigmoid", CF_R_CUSTOM(cf_l_gate), CF_INPLACE, CF_G_CUSTOM(cf_t_sigmoid, 60)),
    CF_OF_COMPLEX("silu", CF_R_CUSTOM(cf_l_gated), CF_INPLACE, CF_G_CUSTOM(cf_t_silu, 80)),
    CF_OF_COMPLEX("sinc", CF_R_CUSTOM(cf_l_complex_sinc), 0, CF_G_NONE),
    CF_FAR_COMPLEX("exp", CF_R_ULPS(8)),
    CF_FAR_COMPLEX("expm1", CF_R_ULPS(26)),
    CF_FAR_COMPLEX("sin", CF_R_ULPS(9)),
    CF_FAR_COMPLEX("cos", CF_R_ULPS(9)),
    CF_FAR_COMPLEX("sinh", CF_R_ULPS(9)),
    CF_FAR_COMPLEX("cosh", CF_R_ULPS(9)),
    CF_FAR_COMPLEX("tan", CF_R_ULPS(40)),
    CF_FAR_COMPLEX("tanh", CF_R_ULPS(40)),
    CF_FAR_COMPLEX("sigmoid", CF_R_CUSTOM(cf_l_gate)),
    CF_FAR_COMPLEX("silu", CF_R_CUSTOM(cf_l_gated)),
    CF_PAIR("logaddexp", cf_l_complex_logaddexp, CF_NONZERO),
    CF_PAIR("sigmoid_backward", cf_l_complex_sigmoid_backward, CF_VALUES),
    CF_PAIR("tanh_backward", cf_l_complex_tanh_backward, CF_VALUES),
    CF_PAIR("silu_backward", cf_l_complex_silu_backward, CF_VALUES),
};

CF_TOPIC(pointwise_complex, "pointwise", cf_complex_ops);
