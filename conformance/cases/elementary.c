/* The part of the pointwise family that is elementary functions, rounding and signs, logic and bits, remainders, and
 * bounds and weights that are tensors. Ulps are those that OpenCL C grants in single precision. */
#include <math.h>

#include "conformance/cases/families.h"

/* ---- derivatives: the sum of the absolute terms of f'(x), with the cancellation in 1 - x x ---- */

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

/* ---- terms of gradients of several operands, all of one shape ---- */

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
/* g - g w, g w, g b - g a */
static void cf_t_lerp(const cf_check *k, uint32_t in, long double *terms) {
  for (int64_t i = 0; i < k->in[in].numel; i++) {
    long double a = fabsl(k->in[0].v[i].re), b = fabsl(k->in[1].v[i].re), w = fabsl(k->in[2].v[i].re);
    terms[i] = fabsl(k->g[0].v[i].re) * (in == 0 ? 1 + w : in == 1 ? w : a + b);
  }
}

/* a + w (b - a), or a (1 - w) + w b: 1 ulp + 2u (|a| + |w| (|a| + |b|)). */
static void cf_l_lerp_tensor(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *a = &k->in[0], *b = &k->in[1], *w = &k->in[2], *o = &k->outs[out];
  for (int64_t i = 0; i < o->numel; i++) { /* b and w broadcast over leading dims */
    long double x = fabsl(a->v[i % a->numel].re), y = fabsl(b->v[i % b->numel].re), by = fabsl(w->v[i % w->numel].re);
    limits[i] = cf_ulp(k->dtypes[out], o->v[i].re) + 2 * cf_u_acc(k->dtypes[out]) * (x + by * (x + y));
  }
}

/* ---- rows ---- */

#define CF_SPECIAL_WIDE (CF_SPECIAL | CF_WIDE | CF_INPLACE)
#define CF_CLAMPS       (CF_SPECIAL_WIDE | CF_ANY_ZERO)
#define CF_TO_FLOAT     (CF_FLOATS | CF_BIT(I64) | CF_BIT(I32) | CF_BIT(U8))
/* Texts of ops of one tensor, and of two of one shape, with the same arguments behind. */
#define CF_ONE(rest)                                                                             \
  CF_TEXTS("m T[33,17]" rest, "s T[129]" rest, "m T[]" rest, "m T[0]" rest, "m T[3,13,17]" rest, \
           "f T[2,1,3,2,2,3]" rest, "f T[1025]" rest)
#define CF_TWO                                                                                              \
  CF_TEXTS("m T[33,17] T[33,17]", "s T[129] T[129]", "m T[] T[]", "m T[0] T[0]", "m T[3,13,17] T[3,13,17]", \
           "f T[1025] T[1025]")
#define CF_MEETING                                                                                              \
  CF_TEXTS("m T[33,17] T[17]", "s T[129] T[129]", "m T[13,1] T[17]", "m T[33] 2", "m T[] T[33]", "m T[0] T[0]", \
           "m T[3,1,17] T[13,1]", "f T[2,3,1,17] T[3,13,1]")
/* A smooth function, exact to n ulp, its derivative to m roundings of the terms. */
#define CF_SMOOTH(name, n, domain, kappa, m) \
  { "aten::" name, CF_ONE(""), CF_TO_FLOAT, CF_R_ULPS(n), domain, CF_SPECIAL | CF_INPLACE, CF_G_KAPPA(kappa, m) }
#define CF_EXACTLY(name, texts, dtypes, domain, flags) \
  { "aten::" name, texts, dtypes, CF_R_EXACT, domain, flags, CF_G_NONE }

static const cf_op cf_elementary_ops[] = {
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
    {"aten::atan2", CF_TWO, CF_TO_FLOAT, CF_R_ULPS(6), CF_NONZERO, CF_SPECIAL | CF_INPLACE,
     CF_G_CUSTOM(cf_t_atan2, 10)},
    {"aten::hypot", CF_TWO, CF_FLOATS, CF_R_ULPS(4), CF_NONZERO, CF_SPECIAL | CF_INPLACE, CF_G_CUSTOM(cf_t_hypot, 16)},
    {"aten::copysign.Tensor", CF_TWO, CF_TO_FLOAT, CF_R_EXACT, CF_NONZERO, CF_SPECIAL_WIDE, CF_G_SELECT(1)},

    CF_EXACTLY("ceil", CF_ONE(""), CF_REALS, CF_VALUES, CF_SPECIAL_WIDE),
    CF_EXACTLY("trunc", CF_ONE(""), CF_REALS, CF_VALUES, CF_SPECIAL_WIDE),
    CF_EXACTLY("round", CF_ONE(""), CF_REALS, CF_VALUES, CF_SPECIAL_WIDE),
    CF_EXACTLY("sign", CF_ONE(""), CF_ANY_DTYPE, CF_VALUES, CF_CLAMPS),
    CF_EXACTLY("sgn", CF_ONE(""), CF_ANY_DTYPE, CF_VALUES, CF_CLAMPS),
    {"aten::sgn", CF_ONE(""), CF_COMPLEX, CF_R_ULPS(6), CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    CF_EXACTLY("signbit", CF_ONE(""), CF_ANY_DTYPE, CF_VALUES, CF_WIDE),
    CF_EXACTLY("isinf", CF_ONE(""), CF_ANY_DTYPE, CF_VALUES, CF_SPECIAL | CF_WIDE),

    CF_EXACTLY("logical_or", CF_MEETING, CF_ANY_DTYPE, CF_VALUES, CF_SPECIAL | CF_WIDE),
    CF_EXACTLY("logical_xor", CF_MEETING, CF_ANY_DTYPE, CF_VALUES, CF_SPECIAL | CF_WIDE),
    CF_EXACTLY("logical_xor", CF_TEXTS("m bool[33,17] T[33,17]", "m T[33,17] f32[17]", "m i64[13,1] T[17]"),
               CF_ANY_DTYPE, CF_VALUES, CF_SPECIAL),
    CF_EXACTLY("bitwise_or.Tensor", CF_TWO, CF_INTS | CF_BOOLS, CF_VALUES, CF_WIDE | CF_INPLACE),
    CF_EXACTLY("bitwise_xor.Tensor", CF_TWO, CF_INTS | CF_BOOLS, CF_VALUES, CF_WIDE | CF_INPLACE),
    CF_EXACTLY("bitwise_and.Scalar", CF_ONE(" 5"), CF_INTS, CF_VALUES, CF_WIDE | CF_INPLACE),
    CF_EXACTLY("bitwise_or.Scalar", CF_ONE(" 5"), CF_INTS, CF_VALUES, CF_WIDE | CF_INPLACE),
    CF_EXACTLY("bitwise_xor.Scalar", CF_ONE(" 5"), CF_INTS, CF_VALUES, CF_WIDE | CF_INPLACE),
    CF_EXACTLY("bitwise_left_shift.Tensor",
               CF_TEXTS("m T[33,17] 3", "s T[129] T[129]<9", "m T[33,17] T[17]<66", "m T[13,1] -1", "m T[] T[]<8",
                        "m T[0] T[0]"),
               CF_INTS, CF_VALUES, 0),
    CF_EXACTLY("bitwise_right_shift.Tensor",
               CF_TEXTS("m T[33,17] 3", "s T[129] T[129]<9", "m T[33,17] T[17]<66", "m T[13,1] -1", "m T[] T[]<8",
                        "m T[0] T[0]"),
               CF_INTS, CF_VALUES, 0),

    {"aten::remainder.Tensor", CF_MEETING, CF_REALS, CF_R_ROUNDED, CF_NONZERO, CF_INPLACE, CF_G_NONE},
    {"aten::remainder.Scalar", CF_ONE(" -3"), CF_FLOATS | CF_BIT(I64) | CF_BIT(I32), CF_R_ROUNDED, CF_VALUES,
     CF_INPLACE, CF_G_SELECT(1)},
    CF_EXACTLY("fmod.Scalar", CF_ONE(" 3"), CF_REALS, CF_VALUES, CF_INPLACE),
    CF_EXACTLY("floor_divide", CF_MEETING, CF_REALS, CF_NONZERO, CF_INPLACE | CF_ANY_ZERO),
    CF_EXACTLY("div.Scalar_mode",
               CF_TEXTS("m T[33,17] 0.5 'trunc'", "s T[129] 3 'floor'", "m T[] 2 'trunc'", "m T[0] 2 'floor'"),
               CF_FLOATS, CF_VALUES, CF_INPLACE | CF_ANY_ZERO),
    CF_EXACTLY("div.Scalar_mode", CF_TEXTS("m T[33,17] 3 'trunc'", "m T[129] 3 'floor'"), CF_INTS, CF_VALUES, CF_WIDE),

    {"aten::clamp.Tensor",
     CF_TEXTS("m T[33,17] T[17] T[33,1]", "s T[129] T[129] T[129]", "m T[33,17] _ T[17]", "m T[1025] T[1025] _",
              "m T[] T[] T[]", "m T[0] T[0] T[0]", "f T[2,3,1,17] T[3,13,1] T[17]"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    {"aten::clamp_min", CF_ONE(" 1"), CF_REALS, CF_R_EXACT, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    {"aten::clamp_min.Tensor", CF_MEETING, CF_REALS, CF_R_EXACT, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    {"aten::lerp.Tensor",
     CF_TEXTS("m T[33,17] T[33,17] T[33,17]", "s T[129] T[129] T[129]", "m T[] T[] T[]", "m T[0] T[0] T[0]"), CF_FLOATS,
     CF_R_CUSTOM(cf_l_lerp_tensor), CF_VALUES, CF_INPLACE, CF_G_CUSTOM(cf_t_lerp, 6)},
    {"aten::lerp.Tensor", CF_TEXTS("m T[33,17] T[17] T[17]", "m T[33,17] T[17] T[]"), CF_FLOATS,
     CF_R_CUSTOM(cf_l_lerp_tensor), CF_VALUES, 0, CF_G_NONE},
};

CF_FAMILY(elementary, "elementary");
