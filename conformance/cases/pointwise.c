#include <math.h>

#include "conformance/cases/families.h"

/* ---- derivatives: the sum of the absolute terms of f'(x) ---- */

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
static long double cf_k_tanh(long double x) {
  return 1 + tanhl(x) * tanhl(x);
} /* 1 - y y */
static long double cf_k_reciprocal(long double x) {
  return 1 / (x * x);
}

static long double cf_k_sigmoid(long double x) { /* y (1 - y) */
  long double y = 1 / (1 + expl(-x));
  return y * (1 + y);
}

static long double cf_k_erf(long double x) { /* the exponent's rounding grows with x x */
  return 1.1283791670955126L * expl(-x * x) * (1 + x * x);
}

static long double cf_k_gelu(long double x) { /* Phi(x) + x phi(x), Phi = (1 + erf) / 2; the tanh form alike */
  long double phi = 0.3989422804014327L * expl(-x * x / 2);
  return 0.5L * (1 + fabsl(erfl(x * 0.7071067811865476L))) + fabsl(x) * phi * (1 + x * x);
}

static long double cf_k_silu(long double x) { /* s (1 + x (1 - s)) */
  long double s = 1 / (1 + expl(-x));
  return s * (1 + fabsl(x) * (1 + s));
}

/* ---- backward slots: (grad, x or y) -> grad f' ---- */

static void cf_slot_limit(const cf_check *k, uint32_t out, long double *limits, long double (*terms)(long double),
                          long double roundings) {
  const cf_array *g = &k->in[0], *x = &k->in[1], *o = &k->outs[out];
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = roundings * cf_u_acc(k->dtypes[out]) * fabsl(g->v[i].re) * terms(x->v[i].re) +
                cf_ulp(k->dtypes[out], o->v[i].re) / 2;
}
static long double cf_k_sigmoid_of_y(long double y) {
  return fabsl(y) + y * y;
}
static long double cf_k_tanh_of_y(long double y) {
  return 1 + y * y;
}
static void cf_l_sigmoid_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_slot_limit(k, out, l, cf_k_sigmoid_of_y, 4);
}
static void cf_l_tanh_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_slot_limit(k, out, l, cf_k_tanh_of_y, 4);
}
/* erf 16 ulp and exp 3 ulp, twice u each, and the roundings of the formula. */
static void cf_l_gelu_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_slot_limit(k, out, l, cf_k_gelu, 40);
}
/* sigmoid 4 ulp, used twice. */
static void cf_l_silu_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_slot_limit(k, out, l, cf_k_silu, 20);
}

/* ---- division that ends on a whole number ---- */

/* Where the quotient lies within its own rounding of a whole number, either neighbour is right. */
static void cf_l_div_mode(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out], *a = &k->in[0], *b = &k->in[1];
  graft_dtype dtype = k->dtypes[out];
  bool rounded = cf_arg_number(k->call, "rounding_mode", -1) == -1 && k->call->text.args[2].kind == GRAFT_VALUE_STR;
  for (int64_t i = 0; i < o->numel; i++) {
    if (!rounded) {
      limits[i] = cf_ulp(dtype, o->v[i].re);
      continue;
    }
    bool same = a->numel == o->numel && b->numel == o->numel;
    long double q = same ? a->v[i].re / b->v[i].re : o->v[i].re;
    bool near = fabsl(q - rintl(q)) <= 2 * cf_u(dtype) * fabsl(q);
    limits[i] = near ? fmaxl(1, cf_ulp(dtype, q)) : cf_ulp(dtype, q) / 2;
  }
}

/* a + w (b - a), or a (1 - w) + w b: 1 ulp + 2u (|a| + |w| (|a| + |b|)). */
static void cf_lerp_limit(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out], *a = &k->in[0], *b = &k->in[1];
  long double w = fabs(cf_arg_number(k->call, "weight", 1)), u = cf_u_acc(k->dtypes[out]);
  for (int64_t i = 0; i < o->numel; i++) { /* b broadcasts over leading dims */
    long double x = fabsl(a->v[i % a->numel].re), y = fabsl(b->v[i % b->numel].re);
    limits[i] = cf_ulp(k->dtypes[out], o->v[i].re) + 2 * u * (x + w * (x + y));
  }
}

#define CF_SPECIAL_WIDE (CF_SPECIAL | CF_WIDE | CF_INPLACE)
#define CF_TO_FLOAT     (CF_FLOATS | CF_BIT(I64) | CF_BIT(I32) | CF_BIT(U8))
#define CF_U(n, dtypes, rule, domain, flags, ...) \
  { "aten::" n, cf_unary, dtypes, rule, domain, flags, __VA_ARGS__ }
#define CF_B(n, dtypes, rule, domain, flags, ...) \
  { "aten::" n, cf_binary, dtypes, rule, domain, flags, __VA_ARGS__ }
#define CF_N(n, dtypes, rule, flags, ...) \
  { "aten::" n, cf_number, dtypes, rule, CF_VALUES, flags, __VA_ARGS__ }
#define CF_COMPARE(n)                                                                      \
  CF_B(n ".Tensor", CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE), \
      CF_N(n ".Scalar", CF_REALS, CF_R_EXACT, CF_SPECIAL | CF_WIDE, CF_G_NONE)

static const char *const cf_same_shape[] = {
    "m T[33,17] T[33,17]", "s T[1025] T[1025]",         "m T[] T[]", "m T[0] T[0]",
    "m T[129] T[129]",     "f T[2,3,1,17] T[2,3,1,17]", NULL};
static const char *const cf_ternary[] = {"m T[33,17] T[33,17] T[33,17]",
                                         "s T[33,17] T[17] T[33,1]",
                                         "m T[1025] T[1025] T[1025] 2",
                                         "m T[13] T[13] T[13] -0.5",
                                         "m T[] T[] T[]",
                                         "m T[0] T[0] T[0]",
                                         "f T[2,3,1,17] T[3,13,1] T[17]",
                                         NULL};
static const char *const cf_alpha[] = {"m T[33,17] T[33,17] alpha=2", "s T[33,17] T[17] alpha=-3",
                                       "m T[1025] T[1025] alpha=2", NULL};

static const cf_op cf_pointwise_ops[] = {
    CF_U("abs", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE, CF_G_SELECT(1)),
    CF_U("neg", CF_REALS | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE, CF_G_SELECT(1)),
    CF_U("exp", CF_TO_FLOAT, CF_R_ULPS(3), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_exp, 10)),
    CF_U("log", CF_TO_FLOAT, CF_R_ULPS(3), CF_POSITIVE, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_log, 4)),
    CF_U("sqrt", CF_TO_FLOAT, CF_R_DIVISION, CF_POSITIVE, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_sqrt, 8)),
    CF_U("rsqrt", CF_TO_FLOAT, CF_R_ULPS(2), CF_POSITIVE, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_rsqrt, 18)),
    CF_U("sin", CF_TO_FLOAT, CF_R_ULPS(4), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_sin, 10)),
    CF_U("cos", CF_TO_FLOAT, CF_R_ULPS(4), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_cos, 10)),
    CF_U("tanh", CF_TO_FLOAT, CF_R_ULPS(5), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_tanh, 24)),
    CF_U("sigmoid", CF_TO_FLOAT, CF_R_ULPS(4), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_sigmoid, 20)),
    CF_U("erf", CF_TO_FLOAT, CF_R_ULPS(16), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_erf, 10)),
    CF_U("relu", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE | CF_ANY_ZERO, CF_G_SELECT(1)),
    {"aten::gelu",
     CF_TEXTS("s T[33,17]", "s T[33,17] 'tanh'", "m T[1025]", "m T[1025] 'tanh'", "m T[]", "m T[0]", "m T[3,13,17]",
              "f T[2,1,3,2,2,3]"),
     CF_FLOATS, CF_R_GATED(4), CF_VALUES, CF_INPLACE, CF_G_KAPPA(cf_k_gelu, 40)},
    CF_U("silu", CF_FLOATS, CF_R_GATED(4), CF_VALUES, CF_INPLACE, CF_G_KAPPA(cf_k_silu, 24)),
    CF_U("reciprocal", CF_TO_FLOAT, CF_R_DIVISION, CF_NONZERO, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_reciprocal, 8)),
    CF_U("floor", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE, CF_G_NONE),
    CF_U("isnan", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE),
    CF_U("logical_not", CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE),
    CF_U("bitwise_not", CF_INTS | CF_BOOLS, CF_R_EXACT, CF_VALUES, CF_WIDE, CF_G_NONE),

    CF_B("add.Tensor", CF_ANY_DTYPE | CF_COMPLEX, CF_R_SCALED, CF_VALUES, CF_SPECIAL_WIDE, CF_G_LINEAR(1)),
    {"aten::add.Tensor", cf_alpha, CF_REALS, CF_R_SCALED, CF_VALUES, CF_INPLACE, CF_G_LINEAR(2)},
    CF_N("add.Scalar", CF_REALS, CF_R_SCALED, CF_SPECIAL_WIDE, CF_G_LINEAR(1)),
    CF_B("sub.Tensor", CF_REALS | CF_COMPLEX, CF_R_SCALED, CF_VALUES, CF_SPECIAL_WIDE | CF_DIFFERENCE, CF_G_LINEAR(1)),
    {"aten::sub.Tensor", cf_alpha, CF_REALS, CF_R_SCALED, CF_VALUES, CF_INPLACE | CF_DIFFERENCE, CF_G_LINEAR(2)},
    CF_N("sub.Scalar", CF_REALS, CF_R_SCALED, CF_SPECIAL_WIDE, CF_G_LINEAR(1)),
    CF_B("mul.Tensor", CF_ANY_DTYPE | CF_COMPLEX, CF_R_ROUNDED, CF_VALUES, CF_SPECIAL_WIDE, CF_G_LINEAR(1)),
    {"aten::mul.Scalar", CF_TEXTS("s T[33,17] 0.1", "m T[1025] 3", "m T[] 2.5", "m T[0] 2"), CF_FLOATS, CF_R_ROUNDED,
     CF_VALUES, CF_SPECIAL_WIDE, CF_G_LINEAR(2)},
    CF_B("div.Tensor", CF_TO_FLOAT, CF_R_DIVISION, CF_NONZERO, CF_SPECIAL_WIDE, CF_G_LINEAR(6)),
    {"aten::div.Scalar", CF_TEXTS("s T[33,17] 3", "m T[1025] 0.1", "m T[] 2.5", "m T[0] 2"), CF_FLOATS, CF_R_DIVISION,
     CF_VALUES, CF_SPECIAL_WIDE, CF_G_LINEAR(4)},
    {"aten::div.Tensor_mode",
     CF_TEXTS("s T[33,17] T[33,17] 'floor'", "m T[33,17] T[33,17] 'trunc'", "m T[1025] T[1025] 'floor'",
              "m T[129] T[129] 'trunc'", "m T[] T[] 'floor'", "m T[0] T[0] 'trunc'"),
     CF_REALS, CF_R_CUSTOM(cf_l_div_mode), CF_NONZERO, CF_INPLACE | CF_ANY_ZERO, CF_G_NONE},
    {"aten::pow.Tensor_Scalar",
     CF_TEXTS("m T[33,17] 2", "m T[33,17] 0.5", "s T[1025] 3", "m T[33] 2.5", "m T[] 2", "m T[0] 2", "m T[129] -1.5"),
     CF_FLOATS, CF_R_ULPS(16), CF_POSITIVE, CF_INPLACE, CF_G_SELECT(40)},
    {"aten::pow.Tensor_Tensor", cf_same_shape, CF_FLOATS, CF_R_ULPS(16), CF_POSITIVE, CF_INPLACE, CF_G_SELECT(80)},
    {"aten::pow.Tensor_Tensor", CF_TEXTS("m T[33,17]<10 T[33,17]<10"), CF_FLOATS, CF_R_ULPS(16), CF_VALUES, 0,
     CF_G_NONE},
    {"aten::pow.Tensor_Tensor", CF_TEXTS("m T[33,17]+ T[17]+"), CF_BIT(I64) | CF_BIT(I32), CF_R_EXACT, CF_POSITIVE, 0,
     CF_G_NONE},
    {"aten::pow.Scalar", CF_TEXTS("m 2.5 T[33,17]", "s 2 T[1025]", "m 0.5 T[]", "m 2.5 T[0]"), CF_FLOATS, CF_R_ULPS(16),
     CF_VALUES, 0, CF_G_SELECT(80)},
    CF_B("maximum", CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE | CF_ANY_ZERO, CF_G_SELECT(1)),
    CF_B("minimum", CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE | CF_ANY_ZERO, CF_G_SELECT(1)),
    {"aten::fmod.Tensor", cf_same_shape, CF_REALS, CF_R_EXACT, CF_NONZERO, CF_INPLACE, CF_G_NONE},
    {"aten::where.self",
     CF_TEXTS("s bool[33,17] T[33,17] T[33,17]", "m bool[17] T[33,17] T[33,1]", "m bool[1025] T[1025] T[1025]",
              "m bool[33,1] T[17] 2", "m bool[] T[] T[]", "m bool[0] T[0] T[0]", "f bool[2,3,1,17] T[3,13,1] T[17]"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_SELECT(1)},
    {"aten::masked_fill.Scalar",
     CF_TEXTS("s T[33,17] bool[33,17] 2", "m T[33,17] bool[17] 3", "m T[17] bool[33,1] 2", "m T[1025] bool[1025] 1",
              "m T[] bool[] 2", "m T[0] bool[0] 2", "f T[2,3,1,17] bool[3,13,1] 2"),
     CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE, CF_G_SELECT(1)},
    {"aten::masked_fill.Scalar",
     CF_TEXTS("m T[33,17] bool[33,17] -inf", "m T[13] bool[13] 0.1", "m T[13] bool[13] nan"), CF_FLOATS, CF_R_EXACT,
     CF_VALUES, CF_SPECIAL_WIDE | CF_NO_ADJOINT, CF_G_SELECT(1)},
    {"aten::masked_fill.Tensor",
     CF_TEXTS("m T[33,17] bool[33,17] T[]", "m T[33,17] bool[17] T[]", "m T[17] bool[33,1] T[]",
              "m T[1025] bool[1025] T[]", "m T[] bool[] T[]", "m T[0] bool[0] T[]"),
     CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE, CF_G_SELECT(1)},
    {"aten::clamp",
     CF_TEXTS("s T[33,17] 0 1", "m T[33,17] _ 1", "m T[1025] 1 _", "m T[] 0 1", "m T[0] 0 1", "f T[2,1,3,2,2,3] 0 1"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE | CF_ANY_ZERO, CF_G_SELECT(1)},
    CF_COMPARE("eq"),
    CF_COMPARE("ne"),
    CF_COMPARE("lt"),
    CF_COMPARE("le"),
    CF_COMPARE("gt"),
    CF_COMPARE("ge"),
    CF_B("logical_and", CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE),
    CF_B("bitwise_and.Tensor", CF_INTS | CF_BOOLS, CF_R_EXACT, CF_VALUES, CF_WIDE, CF_G_NONE),
    {"aten::addcmul", cf_ternary, CF_FLOATS, CF_R_ALPHA, CF_VALUES, CF_INPLACE, CF_G_LINEAR(4)},
    {"aten::addcdiv", cf_ternary, CF_FLOATS, CF_R_ALPHA, CF_NONZERO, CF_INPLACE, CF_G_LINEAR(8)},
    {"aten::lerp.Scalar",
     CF_TEXTS("m T[33,17] T[33,17] 0.3", "s T[33,17] T[17] 0.75", "m T[1025] T[1025] 0.5", "m T[] T[] 0.3",
              "m T[0] T[0] 0.3"),
     CF_FLOATS, CF_R_CUSTOM(cf_lerp_limit), CF_VALUES, CF_INPLACE, CF_G_LINEAR(4)},

    {"aten::sigmoid_backward", CF_TEXTS("m T[33,17] T[33,17]", "s T[1025] T[1025]", "m T[0] T[0]", "m T[] T[]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_sigmoid_backward), CF_PROBABILITY, CF_INPLACE, CF_G_NONE},
    {"aten::tanh_backward", CF_TEXTS("m T[33,17] T[33,17]", "s T[1025] T[1025]", "m T[0] T[0]", "m T[] T[]"), CF_FLOATS,
     CF_R_CUSTOM(cf_l_tanh_backward), CF_UNIT, CF_INPLACE, CF_G_NONE},
    {"aten::gelu_backward", CF_TEXTS("m T[33,17] T[33,17]", "s T[1025] T[1025] 'tanh'", "m T[0] T[0]", "m T[] T[]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_gelu_backward), CF_VALUES, CF_INPLACE, CF_G_NONE},
    {"aten::silu_backward", CF_TEXTS("m T[33,17] T[33,17]", "s T[1025] T[1025]", "m T[0] T[0]", "m T[] T[]"), CF_FLOATS,
     CF_R_CUSTOM(cf_l_silu_backward), CF_VALUES, CF_INPLACE, CF_G_NONE},
    {"aten::threshold_backward",
     CF_TEXTS("m T[33,17] T[33,17] 0", "s T[1025] T[1025] 1", "m T[0] T[0] 0", "m T[] T[] 0"), CF_FLOATS, CF_R_EXACT,
     CF_VALUES, CF_INPLACE | CF_ANY_ZERO, CF_G_NONE},
};

CF_FAMILY(pointwise, "pointwise");
