/* Sums, products, quotients, powers, bounds and choices. */
#include <math.h>

#include "conformance/cases/pointwise/pointwise.h"

static long double cf_k_reciprocal(long double x) {
  return 1 / (x * x);
}

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

/* 1 ulp and the errors of either form, twice as many where a product is one of complex numbers. */
static void cf_l_lerp(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out], *a = &k->in[0], *b = &k->in[1], *weight = cf_arg_array(k, "weight");
  dt_value w = cf_arg_complex(k->call, "weight", 1);
  long double u = cf_u_acc(k->dtypes[out]);
  bool complex = dt_is_complex(k->dtypes[out]);
  for (int64_t i = 0; i < o->numel; i++) { /* b and the weight broadcast over leading dims */
    long double x = cf_modulus(a->v[i % a->numel]), y = cf_modulus(b->v[i % b->numel]);
    if (weight) w = weight->v[i % weight->numel];
    long double terms = cf_lerp_terms(x, y, cf_modulus(w), cf_modulus((dt_value){1 - w.re, -w.im}));
    limits[i] = cf_ulp(k->dtypes[out], cf_modulus(o->v[i])) + (complex ? 2 : 1) * u * terms;
  }
}

/* g - g w, g w, g b - g a */
static void cf_t_lerp(const cf_check *k, uint32_t in, long double *terms) {
  for (int64_t i = 0; i < k->in[in].numel; i++) {
    long double a = cf_modulus(k->in[0].v[i]), b = cf_modulus(k->in[1].v[i]), w = cf_modulus(k->in[2].v[i]);
    terms[i] = cf_modulus(k->g[0].v[i]) * (in == 0 ? 1 + w : in == 1 ? w : a + b);
  }
}

/* a + x b / c, of which the quotient is right to 4 ulp, twice u each. */
static void cf_l_addcdiv(const cf_check *k, uint32_t out, long double *limits) {
  graft_dtype dtype = k->dtypes[out];
  for (int64_t i = 0; i < k->outs[out].numel; i++)
    limits[i] = cf_ulp(dtype, cf_modulus(k->outs[out].v[i])) + 10 * cf_u(dtype) * cf_modulus(k->absolute[out].v[i]);
}

/* a + x b with a complex number x, or a + x b c or a + x b / c: of products sqrt 5 u each. */
static void cf_l_complex_terms(const cf_check *k, uint32_t out, long double *limits) {
  graft_dtype dtype = k->dtypes[out];
  for (int64_t i = 0; i < k->outs[out].numel; i++)
    limits[i] = cf_ulp(dtype, cf_modulus(k->outs[out].v[i])) + 14 * cf_u(dtype) * cf_modulus(k->absolute[out].v[i]);
}

/* A power of complex numbers has a modulus, which is a power of moduli (hypot 4 ulp, times the exponent), and an
 * angle, whose error is a few times u of itself. */
static void cf_power_limits(const cf_check *k, uint32_t out, long double *limits, const dt_value *base,
                            const dt_value *exponent) {
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    dt_value a = base ? base[i] : cf_arg_complex(k->call, "self", 1),
             b = exponent ? exponent[i] : cf_arg_complex(k->call, "exponent", 1);
    long double angle = cf_modulus(b) * (fabsl(atan2l(a.im, a.re)) + fabsl(logl(cf_modulus(a))));
    limits[i] = (32 + 8 * cf_modulus(b) + 12 * angle) * cf_ulp(k->dtypes[out], cf_modulus(k->outs[out].v[i]));
  }
}
static void cf_l_complex_pow(const cf_check *k, uint32_t out, long double *limits) {
  cf_power_limits(k, out, limits, k->in[0].v, k->in[1].v);
}
static void cf_l_complex_pow_number(const cf_check *k, uint32_t out, long double *limits) {
  cf_power_limits(k, out, limits, k->in[0].v, NULL);
}
static void cf_l_complex_pow_of_number(const cf_check *k, uint32_t out, long double *limits) {
  cf_power_limits(k, out, limits, NULL, k->in[0].v);
}

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
#define CF_R_COMPLEX_TERMS \
  { .klass = CF_CUSTOM, .limit = cf_l_complex_terms, .absolute = true }
static const char *const cf_alpha[] = {"m T[33,17] T[33,17] alpha=2", "s T[33,17] T[17] alpha=-3",
                                       "m T[1025] T[1025] alpha=2", NULL};

static const cf_op cf_arithmetic_ops[] = {
    CF_U("abs", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE, CF_G_SELECT(1)),
    {"aten::abs", CF_ONE_COMPLEX(""), CF_COMPLEX, CF_R_ULPS(4), CF_VALUES, CF_WIDE, CF_G_SELECT(20)},
    CF_U("neg", CF_REALS | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE, CF_G_SELECT(1)),
    CF_U("reciprocal", CF_TO_FLOAT | CF_COMPLEX, CF_R_DIVISION, CF_NONZERO, CF_SPECIAL_WIDE,
         CF_G_KAPPA(cf_k_reciprocal, 8)),
    CF_B("add.Tensor", CF_ANY_DTYPE | CF_COMPLEX, CF_R_SCALED, CF_VALUES, CF_SPECIAL_WIDE, CF_G_LINEAR(1)),
    {"aten::add.Tensor", cf_alpha, CF_REALS | CF_COMPLEX, CF_R_SCALED, CF_VALUES, CF_INPLACE, CF_G_LINEAR(2)},
    CF_N("add.Scalar", CF_REALS | CF_COMPLEX, CF_R_SCALED, CF_SPECIAL_WIDE, CF_G_LINEAR(1)),
    CF_B("sub.Tensor", CF_REALS | CF_COMPLEX, CF_R_SCALED, CF_VALUES, CF_SPECIAL_WIDE | CF_DIFFERENCE, CF_G_LINEAR(1)),
    {"aten::sub.Tensor", cf_alpha, CF_REALS | CF_COMPLEX, CF_R_SCALED, CF_VALUES, CF_INPLACE | CF_DIFFERENCE,
     CF_G_LINEAR(2)},
    CF_N("sub.Scalar", CF_REALS | CF_COMPLEX, CF_R_SCALED, CF_SPECIAL_WIDE, CF_G_LINEAR(1)),
    CF_B("mul.Tensor", CF_ANY_DTYPE | CF_COMPLEX, CF_R_ROUNDED, CF_VALUES, CF_SPECIAL_WIDE, CF_G_LINEAR(1)),
    {"aten::mul.Scalar", CF_TEXTS("s T[33,17] 0.1", "m T[1025] 3", "m T[] 2.5", "m T[0] 2"), CF_FLOATS | CF_COMPLEX,
     CF_R_ROUNDED, CF_VALUES, CF_SPECIAL_WIDE, CF_G_LINEAR(2)},
    CF_B("div.Tensor", CF_TO_FLOAT, CF_R_DIVISION, CF_NONZERO, CF_SPECIAL_WIDE, CF_G_LINEAR(6)),
    {"aten::div.Scalar", CF_TEXTS("s T[33,17] 3", "m T[1025] 0.1", "m T[] 2.5", "m T[0] 2"), CF_FLOATS | CF_COMPLEX,
     CF_R_DIVISION, CF_VALUES, CF_SPECIAL_WIDE, CF_G_LINEAR(4)},
    {"prims::div", CF_TWO(""), CF_REALS | CF_COMPLEX, CF_R_DIVISION, CF_NONZERO, CF_SPECIAL_WIDE, CF_G_LINEAR(6)},
    CF_EXACTLY("gcd", CF_MEETING, CF_INTS, CF_VALUES, CF_WIDE),
    CF_EXACTLY("lcm", CF_TWIN_PAIR, CF_INTS, CF_VALUES, 0),
    /* The least number, which has no size in its dtype, and all sizes of an unsigned one. */
    CF_EXACTLY("gcd", CF_TEXTS("m T[129]=-128 T[129]<-128..128", "m T[129]<-128..128 T[129]=-128"), CF_BIT(I8),
               CF_VALUES, 0),
    CF_EXACTLY("gcd", CF_TEXTS("m T[33]=-2147483648 T[33]<-99..99"), CF_BIT(I32), CF_VALUES, 0),
    CF_EXACTLY("gcd", CF_TEXTS("m T[1025]<0..256 T[1025]<0..256"), CF_BIT(U8), CF_VALUES, 0),
    CF_EXACTLY("lcm", CF_TEXTS("m T[129]=-128 T[129]<-128..128"), CF_BIT(I8), CF_VALUES, 0),
    CF_EXACTLY("lcm", CF_TEXTS("m T[1025]<0..256 T[1025]<0..256"), CF_BIT(U8), CF_VALUES, 0),
    {"aten::div.Tensor_mode",
     CF_TEXTS("s T[33,17] T[33,17] 'floor'", "m T[33,17] T[33,17] 'trunc'", "m T[1025] T[1025] 'floor'",
              "m T[129] T[129] 'trunc'", "m T[] T[] 'floor'", "m T[0] T[0] 'trunc'"),
     CF_REALS, CF_R_CUSTOM(cf_l_div_mode), CF_NONZERO, CF_INPLACE | CF_ANY_ZERO, CF_G_NONE},
    /* without a mode */
    {"aten::div.Tensor_mode", CF_TEXTS("s T[33,17] T[33,17]", "m T[129] T[]"), CF_REALS, CF_R_ULPS(2), CF_NONZERO,
     CF_INPLACE, CF_G_SELECT(4)},
    CF_EXACTLY("div.Scalar_mode",
               CF_TEXTS("m T[33,17] 0.5 'trunc'", "s T[129] 3 'floor'", "m T[] 2 'trunc'", "m T[0] 2 'floor'"),
               CF_FLOATS, CF_VALUES, CF_INPLACE | CF_ANY_ZERO),
    CF_EXACTLY("div.Scalar_mode", CF_TEXTS("m T[33,17] 3 'trunc'", "m T[129] 3 'floor'"), CF_INTS, CF_VALUES, CF_WIDE),
    {"aten::div.Scalar_mode", CF_TEXTS("m T[33,17] 0.5", "m T[129] 3"), CF_REALS, CF_R_ULPS(2), CF_VALUES, 0,
     CF_G_SELECT(4)},
    CF_EXACTLY("floor_divide", CF_MEETING, CF_REALS, CF_NONZERO, CF_INPLACE | CF_ANY_ZERO),
    {"aten::remainder.Tensor", CF_MEETING, CF_REALS, CF_R_ROUNDED, CF_NONZERO, CF_INPLACE, CF_G_NONE},
    {"aten::remainder.Scalar", CF_ONE(" -3"), CF_FLOATS | CF_BIT(I64) | CF_BIT(I32), CF_R_ROUNDED, CF_VALUES,
     CF_INPLACE, CF_G_SELECT(1)},
    {"aten::fmod.Tensor", cf_same_shape, CF_REALS, CF_R_EXACT, CF_NONZERO, CF_INPLACE, CF_G_NONE},
    CF_EXACTLY("fmod.Scalar", CF_ONE(" 3"), CF_REALS, CF_VALUES, CF_INPLACE),
    {"aten::pow.Tensor_Scalar",
     CF_TEXTS("m T[33,17] 2", "m T[33,17] 0.5", "s T[1025] 3", "m T[33] 2.5", "m T[] 2", "m T[0] 2", "m T[129] -1.5"),
     CF_FLOATS, CF_R_ULPS(16), CF_POSITIVE, CF_INPLACE, CF_G_SELECT(40)},
    {"aten::pow.Tensor_Tensor", cf_same_shape, CF_FLOATS, CF_R_ULPS(16), CF_POSITIVE, CF_INPLACE, CF_G_SELECT(80)},
    {"aten::pow.Tensor_Tensor", CF_TEXTS("m T[33,17]<10 T[33,17]<10"), CF_FLOATS, CF_R_ULPS(16), CF_VALUES,
     CF_SPECIAL | CF_WIDE, CF_G_NONE},
    {"aten::pow.Tensor_Scalar", CF_TEXTS("m T[31] 0.5", "m T[33] -1", "m T[31] 3", "m T[33] -7"), CF_FLOATS,
     CF_R_ULPS(16), CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    /* Powers of denormals that are none. */
    {"aten::pow.Tensor_Scalar", CF_TEXTS("m T[129] 0.3"), CF_FLOATS, CF_R_ULPS(16), CF_VALUES, CF_SPECIAL | CF_WIDE,
     CF_G_NONE},
    {"aten::pow.Tensor_Tensor", CF_TEXTS("m T[33,17]+ T[17]+"), CF_BIT(I64) | CF_BIT(I32), CF_R_EXACT, CF_POSITIVE, 0,
     CF_G_NONE},
    {"aten::pow.Scalar", CF_TEXTS("m 2.5 T[33,17]", "s 2 T[1025]", "m 0.5 T[]", "m 2.5 T[0]"), CF_FLOATS, CF_R_ULPS(16),
     CF_VALUES, 0, CF_G_SELECT(80)},
    {"aten::pow.Tensor_Scalar", CF_TEXTS("m T[33,17] 2.5", "m T[13] 2", "m T[129] -1.5", "m T[] 0.5", "m T[0] 3"),
     CF_COMPLEX, CF_R_CUSTOM(cf_l_complex_pow_number), CF_NONZERO, CF_INPLACE, CF_G_SELECT(120)},
    {"aten::pow.Tensor_Tensor", CF_TEXTS("m T[33,17] T[33,17]", "m T[] T[]", "m T[0] T[0]"), CF_COMPLEX,
     CF_R_CUSTOM(cf_l_complex_pow), CF_NONZERO, 0, CF_G_SELECT(240)},
    {"aten::pow.Scalar", CF_TEXTS("m 2.5 T[33,17]", "m 0.5 T[]", "m 2 T[0]", "m -1.5 T[13,3]"), CF_COMPLEX,
     CF_R_CUSTOM(cf_l_complex_pow_of_number), CF_VALUES, 0, CF_G_SELECT(160)},
    /* 0 to the power of 0 is 1, which a logarithm of 0 doesn't give. */
    {"aten::pow.Tensor_Tensor", CF_TEXTS("m T[5]=0 T[5]=0"), CF_COMPLEX, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::pow.Tensor_Scalar", CF_TEXTS("m T[33] true", "m T[33] false"), CF_BOOLS, CF_R_EXACT, CF_VALUES, 0,
     CF_G_NONE},
    {"aten::pow.Tensor_Scalar", CF_TEXTS("m T[5]=0 0"), CF_COMPLEX, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::pow.Scalar", CF_TEXTS("m 0 T[5]=0"), CF_COMPLEX, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::pow.Scalar", CF_TEXTS("m 0 T[13]"), CF_FLOATS, CF_R_EXACT, CF_POSITIVE, 0, CF_G_SELECT(1)},
    {"aten::where.self",
     CF_TEXTS("m bool[33,17] T[33,17] T[33,17]", "m bool[33,1] T[17] 2", "m bool[33,17] f32[17] T[33,17]"), CF_COMPLEX,
     CF_R_EXACT, CF_VALUES, CF_WIDE, CF_G_SELECT(1)},
    /* Numbers with an imaginary part, and of real tensors complex ones. */
    {"aten::add.Tensor", CF_TEXTS("m T[33,17] T[17] alpha=0.5-2j"), CF_COMPLEX, CF_R_COMPLEX_TERMS, CF_VALUES,
     CF_INPLACE, CF_G_LINEAR(3)},
    {"aten::sub.Tensor", CF_TEXTS("m T[33,17] T[17] alpha=0.5-2j"), CF_COMPLEX, CF_R_COMPLEX_TERMS, CF_VALUES,
     CF_INPLACE | CF_DIFFERENCE, CF_G_LINEAR(3)},
    {"aten::add.Scalar", CF_TEXTS("m T[33,17] 0.5-2j", "m T[129] 2j alpha=0.5-2j"), CF_COMPLEX, CF_R_COMPLEX_TERMS,
     CF_VALUES, CF_INPLACE, CF_G_LINEAR(1)},
    {"aten::sub.Scalar", CF_TEXTS("m T[33,17] 0.5-2j", "m T[129] 2j alpha=0.5-2j"), CF_COMPLEX, CF_R_COMPLEX_TERMS,
     CF_VALUES, CF_INPLACE | CF_DIFFERENCE, CF_G_LINEAR(1)},
    {"aten::mul.Scalar", CF_TEXTS("m T[33,17] 0.5-2j"), CF_COMPLEX | CF_FLOATS, CF_R_ROUNDED, CF_VALUES, CF_WIDE,
     CF_G_LINEAR(3)},
    {"aten::div.Scalar", CF_TEXTS("m T[33,17] 0.5-2j"), CF_COMPLEX | CF_FLOATS, CF_R_DIVISION, CF_VALUES, 0,
     CF_G_LINEAR(6)},
    {"aten::pow.Tensor_Scalar", CF_TEXTS("m T[33,17] 1.5-0.5j"), CF_COMPLEX, CF_R_CUSTOM(cf_l_complex_pow_number),
     CF_NONZERO, CF_INPLACE, CF_G_SELECT(160)},
    {"aten::pow.Scalar", CF_TEXTS("m 1.5-0.5j T[33,17]"), CF_COMPLEX, CF_R_CUSTOM(cf_l_complex_pow_of_number),
     CF_VALUES, 0, CF_G_SELECT(160)},
    {"aten::masked_fill.Scalar", CF_TEXTS("m T[33,17] bool[17] 0.5-2j"), CF_COMPLEX, CF_R_EXACT, CF_VALUES,
     CF_SPECIAL_WIDE, CF_G_SELECT(1)},
    {"aten::addcmul", CF_TEXTS("m T[33,17] T[17] T[33,1] 0.5-2j"), CF_COMPLEX, CF_R_COMPLEX_TERMS, CF_VALUES,
     CF_INPLACE, CF_G_LINEAR(6)},
    {"aten::addcdiv", CF_TEXTS("m T[33,17] T[33,17] T[33,17] 0.5-2j"), CF_COMPLEX, CF_R_COMPLEX_TERMS, CF_NONZERO,
     CF_INPLACE, CF_G_LINEAR(8)},
    {"aten::lerp.Scalar", CF_TEXTS("m T[33,17] T[17] 0.25-0.5j", "m T[129] T[129] 0.75+2j"), CF_COMPLEX,
     CF_R_CUSTOM(cf_l_lerp), CF_VALUES, CF_INPLACE, CF_G_LINEAR(6)},
    /* Complex numbers meet real ones. */
    {"aten::add.Tensor", CF_TEXTS("m f32[33,17] T[17]", "m T[33,17] i64[17]", "m bool[33,17] T[17]", "m f32[33,1] T[]"),
     CF_BIT(C64), CF_R_SCALED, CF_VALUES, 0, CF_G_LINEAR(1)},
    {"aten::add.Tensor",
     CF_TEXTS("m f32[33,17] T[17]", "m T[33,17] c64[17]", "m bf16[33,17] T[17]", "m f64[33,1] T[17]"), CF_BIT(C128),
     CF_R_SCALED, CF_VALUES, 0, CF_G_LINEAR(1)},
    {"aten::div.Tensor", CF_TEXTS("m 0.5-2j T[33,17]", "m T[33,17] 0.5-2j"), CF_BIT(F32) | CF_BIT(F64), CF_R_DIVISION,
     CF_NONZERO, 0, CF_G_LINEAR(6)},
    {"aten::where.self", CF_TEXTS("m bool[33,17] 0.5-2j T[33,17]"), CF_BIT(C64), CF_R_EXACT, CF_VALUES, 0,
     CF_G_SELECT(1)},
    /* Truth values meet whole numbers, which decide the dtype though they have no dimensions. */
    {"aten::add.Tensor", CF_TEXTS("m bool[33,17] 2", "s bool[33,17] T[]", "m bool[0] -3", "m bool[17] T[33,17]"),
     CF_BIT(I64), CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::mul.Tensor", CF_TEXTS("m bool[33,17] 2", "m bool[33,17] T[]", "m bool[17] T[33,17]"), CF_BIT(I64),
     CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::div.Tensor", CF_TEXTS("m T[33,17] T[33,17]", "m T[13,1] T[17]", "m T[33] 2", "m T[] T[33]", "m T[0] T[0]"),
     CF_COMPLEX, CF_R_DIVISION, CF_NONZERO, CF_WIDE | CF_INPLACE, CF_G_LINEAR(6)},
    {"aten::div.Tensor", CF_TEXTS("m f32[33,17]+ T[17]", "m T[33,17] bf16[17]+", "m bool[17] T[33,17]"), CF_BIT(C64),
     CF_R_DIVISION, CF_NONZERO, 0, CF_G_NONE},
    CF_B("maximum", CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE | CF_ANY_ZERO, CF_G_SELECT(1)),
    CF_B("minimum", CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE | CF_ANY_ZERO, CF_G_SELECT(1)),
    {"aten::fmax", CF_TWO(""), CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE | CF_ANY_ZERO, CF_G_SELECT(1)},
    {"aten::fmin", CF_TWIN_PAIR, CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE | CF_ANY_ZERO, CF_G_SELECT(1)},
    {"aten::clamp",
     CF_TEXTS("s T[33,17] 0 1", "m T[33,17] _ 1", "m T[1025] 1 _", "m T[] 0 1", "m T[0] 0 1", "f T[2,1,3,2,2,3] 0 1",
              "m T[33,17] -2 3"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE | CF_ANY_ZERO, CF_G_SELECT(1)},
    {"aten::clamp.Tensor",
     CF_TEXTS("m T[33,17] T[17] T[33,1]", "s T[129] T[129] T[129]", "m T[33,17] _ T[17]", "m T[1025] T[1025] _",
              "m T[] T[] T[]", "m T[0] T[0] T[0]", "f T[2,3,1,17] T[3,13,1] T[17]"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    {"aten::clamp_min", CF_ONE(" 1"), CF_REALS, CF_R_EXACT, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    {"aten::clamp_min", CF_TEXTS("m T[33,17] -2"), CF_REALS, CF_R_EXACT, CF_VALUES, 0, CF_G_SELECT(1)},
    {"aten::clamp_min.Tensor", CF_MEETING, CF_REALS, CF_R_EXACT, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    {"aten::add.Tensor", CF_TEXTS("m T[2,1,3,1,2,2,1,3] T[1,2,3,1,1,2,3,1]"), CF_BIT(F32), CF_R_SCALED, CF_VALUES, 0,
     CF_G_LINEAR(2)},
    {"aten::add.Tensor", CF_TEXTS("s " CF_MOST_DIMS " T[2,3]"), CF_BIT(F32), CF_R_SCALED, CF_VALUES, CF_FLAT,
     CF_G_LINEAR(1)},
    /* Large enough for a program of their own: whole vectors and a rest, rows that begin at vectors, and rows that
       don't. */
    {"aten::add.Tensor", CF_TEXTS("m T[40003] T[40003]", "m T[200,208] T[208]", "m T[201,203] T[203]"),
     CF_BIT(BF16) | CF_BIT(F16) | CF_BIT(F32) | CF_BIT(I64) | CF_BIT(I8), CF_R_SCALED, CF_VALUES, 0, CF_G_NONE},
    {"aten::where.self",
     CF_TEXTS("m bool[40003] T[40003] T[40003]", "m bool[200,208] T[208] T[200,208]", "m bool[201,203] 2 T[201,203]"),
     CF_BIT(BF16) | CF_BIT(F32), CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::maximum", CF_TEXTS("m T[40003] T[40003]", "m T[201,203] T[203]"), CF_BIT(BOOL), CF_R_EXACT, CF_VALUES, 0,
     CF_G_NONE},
    {"aten::where.self", CF_TEXTS("m bool[1,2,1,1,2,1,2,3] T[2,1,3,1,2,2,1,3] T[1,2,3,1,1,2,2,1]"), CF_BIT(F32),
     CF_R_EXACT, CF_VALUES, 0, CF_G_SELECT(1)},
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
    {"aten::addcmul", cf_ternary, CF_FLOATS | CF_COMPLEX, CF_R_ALPHA, CF_VALUES, CF_INPLACE, CF_G_LINEAR(4)},
    /* Numbers in each place, beside tensors of two dtypes. */
    {"aten::addcmul", CF_TEXTS("m 2.5 T[33,17] i64[17]<9", "m T[33,17] 2.5 i64[17]<9", "m T[33,17] i64[17]<9 2.5"),
     CF_BIT(F32), CF_R_ALPHA, CF_VALUES, 0, CF_G_LINEAR(4)},
    {"aten::addcdiv", cf_ternary, CF_FLOATS, CF_R_ALPHA, CF_NONZERO, CF_INPLACE, CF_G_LINEAR(8)},
    {"aten::addcdiv",
     CF_TEXTS("m T[33,17] T[33,17] T[33,17]", "m T[1025] T[1025] T[1025] 2", "m T[] T[] T[]"),
     CF_COMPLEX,
     {.klass = CF_CUSTOM, .limit = cf_l_addcdiv, .absolute = true},
     CF_NONZERO,
     CF_INPLACE,
     CF_G_LINEAR(16)},
    {"aten::lerp.Scalar",
     CF_TEXTS("m T[33,17] T[33,17] 0.3", "s T[33,17] T[17] 0.75", "m T[1025] T[1025] 0.5", "m T[] T[] 0.3",
              "m T[0] T[0] 0.3"),
     CF_FLOATS | CF_COMPLEX, CF_R_CUSTOM(cf_l_lerp), CF_VALUES, CF_INPLACE, CF_G_LINEAR(4)},
    {"aten::lerp.Tensor",
     CF_TEXTS("m T[33,17] T[33,17] T[33,17]", "s T[129] T[129] T[129]", "m T[] T[] T[]", "m T[0] T[0] T[0]"),
     CF_FLOATS | CF_COMPLEX, CF_R_CUSTOM(cf_l_lerp), CF_VALUES, CF_INPLACE, CF_G_CUSTOM(cf_t_lerp, 6)},
    /* From -1/2 down it is said by the other end, which infinities tell. */
    {"aten::lerp.Scalar", CF_TEXTS("m T[1025] T[1025] -0.75"), CF_FLOATS, CF_R_CUSTOM(cf_l_lerp), CF_VALUES, CF_SPECIAL,
     CF_G_NONE},
    {"aten::lerp.Tensor", CF_TEXTS("m T[33,17] T[17] T[17]", "m T[33,17] T[17] T[]"), CF_FLOATS, CF_R_CUSTOM(cf_l_lerp),
     CF_VALUES, 0, CF_G_NONE},
    /* Of whole numbers, which f32 holds, and one that is not. */
    {"aten::add.Scalar", CF_TEXTS("m T[33,17] 2.5"), CF_INTS, CF_R_SCALED, CF_VALUES, 0, CF_G_NONE},
    {"aten::sub.Scalar", CF_TEXTS("m T[33,17] -0.25"), CF_INTS, CF_R_SCALED, CF_VALUES, 0, CF_G_NONE},
    {"aten::add.Tensor", CF_TEXTS("m T[33,17] -2.5"), CF_INTS, CF_R_SCALED, CF_VALUES, 0, CF_G_NONE},
    {"aten::mul.Scalar", CF_TEXTS("m T[33,17] 2.5", "m T[129] -3"), CF_INTS, CF_R_ROUNDED, CF_VALUES, 0, CF_G_NONE},
    {"aten::mul.Tensor", CF_TEXTS("m T[33,17] -2.5"), CF_INTS, CF_R_ROUNDED, CF_VALUES, 0, CF_G_NONE},
    CF_EXACTLY("clamp", CF_TEXTS("m T[33,17] 0.5 2.5"), CF_INTS, CF_VALUES, 0),
    CF_EXACTLY("clamp_min", CF_TEXTS("m T[33,17] 1.5"), CF_INTS, CF_VALUES, 0),
    CF_EXACTLY("fmod.Scalar", CF_TEXTS("m T[33,17] 2.5"), CF_INTS, CF_VALUES, 0),
    {"aten::remainder.Scalar", CF_TEXTS("m T[33,17] -2.5"), CF_INTS, CF_R_ROUNDED, CF_VALUES, 0, CF_G_NONE},
    /* One that is cut. */
    CF_EXACTLY("masked_fill.Scalar", CF_TEXTS("m T[33,17] bool[17] 2.75"), CF_INTS, CF_VALUES, 0),
    CF_EXACTLY("masked_fill.Scalar", CF_TEXTS("m T[33,17] bool[17] -2.75"), CF_SIGNED, CF_VALUES, 0),
};

CF_TOPIC(pointwise_arithmetic, "pointwise", cf_arithmetic_ops);
