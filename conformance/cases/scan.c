#include <complex.h>
#include <math.h>

#include "conformance/cases/rows.h"

/* A product of n factors has n roundings at most, in the order of the line or another; of complex numbers each counts
 * twice, beside the modulus. */
static void cf_l_cumprod(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  cf_axis a = cf_axis_of(&k->in[0], cf_arg_int(k->call, "dim", 0));
  bool is_complex = dt_is_complex(k->dtypes[out]);
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = cf_limit_of(k, out, i, (is_complex ? 2 : 1) * (long double)a.length * cf_modulus(o->v[i]));
}

/* log(exp(a) + exp(b)): the difference, its exponential (3 ulp, at most 1) and log1p (2 ulp, at most 0.7) weigh less
 * than 4u, and the larger one is added, a rounding of the sum so far. That is at most the largest element so far and
 * the logarithm of their count. Errors so far pass on by weights that add up to 1; of complex numbers, whose functions
 * are right to 8 ulp, by the share of the sum's terms that do not cancel. */
static void cf_l_logcumsumexp(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *x = &k->in[0];
  cf_axis a = cf_axis_of(x, cf_arg_int(k->call, "dim", 0));
  bool is_complex = dt_is_complex(x->dtype);
  for (int64_t line = 0; line < a.outer * a.inner; line++) {
    int64_t start = line / a.inner * a.length * a.inner + line % a.inner;
    long double most = 0, sizes = 0;
    long double complex sum = 0;
    for (int64_t i = 0; i < a.length; i++) {
      int64_t at = start + i * a.inner;
      if (isfinite(x->v[at].re)) most = fmaxl(most, cf_modulus(x->v[at]));
      sizes += expl(x->v[at].re);
      sum += cexpl(x->v[at].re + x->v[at].im * I);
      long double terms = is_complex ? (20 + most) * sizes / cabsl(sum) : 4 + most;
      limits[at] = cf_limit_of(k, out, at, cf_growth((long double)i + 1) * (terms + logl((long double)i + 1)));
    }
  }
}

/* The sum of |g| exp(x - out) from the element on. */
static void cf_g_logcumsumexp(const cf_check *k, uint32_t in, long double *terms) {
  const cf_array *o = &k->outs[0], *x = &k->in[in];
  cf_axis a = cf_axis_of(x, cf_arg_int(k->call, "dim", 0));
  for (int64_t line = 0; line < a.outer * a.inner; line++) {
    int64_t start = line / a.inner * a.length * a.inner + line % a.inner;
    for (int64_t j = 0; j < a.length; j++) {
      long double sum = 0;
      for (int64_t i = j; i < a.length; i++)
        sum += fabsl(k->g[0].v[start + i * a.inner].re) *
               expl(x->v[start + j * a.inner].re - o->v[start + i * a.inner].re);
      terms[start + j * a.inner] = sum;
    }
  }
}

#define CF_EXTREMUM(name, level)                                                                              \
  {                                                                                                           \
    name,                                                                                                     \
        CF_TEXTS(level " T[33,17] 1", "m T[33,17] 0", "m T[1025] 0", "m T[3,13,17] 1", "m T[] 0", "m T[0] 0", \
                 "f T[2,3,1,3,2,3] 3", "f T[129,1025] 1", "m T[3,13,17] -2"),                                 \
        CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, {                            \
      .kind = CF_GRAD_SELECT, .steps = 1, .inner = 64                                                         \
    }                                                                                                         \
  } /* an element may gather a line of 1025: 2 sqrt n */

static const cf_op cf_scan_ops[] = {
    {"aten::cumsum",
     CF_TEXTS("s T[33,17] 1", "s T[33,17] 0", "m T[1025] 0", "m T[3,13,17] 1", "m T[] 0", "m T[0] 0", "m T[13,129] -1",
              "f T[2,3,1,3,2,3] 3", "f T[129,1025] 1"),
     CF_ANY_DTYPE | CF_COMPLEX, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ORDERED, CF_G_LINEAR(1)},
    {"aten::cumsum", CF_TEXTS("m T[2,1,3,1,2,2,1,3] 2", "m T[5001] 0", "m T[2,2049,3] 1", "f T[270001] 0"), CF_BIT(F32),
     CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(1)},
    {"aten::cumprod",
     CF_TEXTS("s T[33,17] 1", "m T[17,13] 0", "m T[33] 0", "m T[3,13,17] 1", "m T[] 0", "m T[0] 0", "m T[3,13,17] -2",
              "f T[2,3,1,3,2,3] 3"),
     CF_REALS | CF_COMPLEX,
     CF_R_CUSTOM(cf_l_cumprod),
     CF_NONZERO,
     CF_ORDERED,
     {.kind = CF_GRAD_ABS, .steps = 6, .inner = 80}},
    /* A gradient is a scan of logarithms again, of numbers up to twice as large: in a line of 129 a relative error of
     * 2 * 2 sqrt(129) (4 + 2 * 7 + log(129)) u, and the roundings beside it. */
    {"aten::logcumsumexp",
     CF_TEXTS("s T[33,17] 1", "m T[33,17] 0", "m T[129] 0", "m T[3,13,17] 1", "m T[] 0", "m T[0] 0", "m T[13,129] -1",
              "f T[2,3,1,3,2,3] 3"),
     CF_FLOATS,
     CF_R_CUSTOM(cf_l_logcumsumexp),
     CF_VALUES,
     CF_ORDERED,
     {.kind = CF_GRAD_CUSTOM, .terms = cf_g_logcumsumexp, .steps = 1, .inner = 1100}},
    {"aten::logcumsumexp", CF_TEXTS("m T[33,17] 1", "m T[33,17] 0", "m T[129] 0", "m T[] 0"), CF_COMPLEX,
     CF_R_CUSTOM(cf_l_logcumsumexp), CF_VALUES, 0, CF_G_NONE},
    {"aten::logcumsumexp", CF_TEXTS("m T[1025] 0", "f T[129,1025] 1"), CF_FLOATS, CF_R_CUSTOM(cf_l_logcumsumexp),
     CF_VALUES, CF_ORDERED | CF_SPECIAL, CF_G_NONE},
    CF_EXTREMUM("aten::cummax", "s"),
    CF_EXTREMUM("aten::cummin", "m"),
    {"aten::cummax", CF_TEXTS("m T[5001] 0", "m T[2,2049,3] 1", "f T[270001] 0"), CF_BIT(F32) | CF_BIT(I64), CF_R_EXACT,
     CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::cummax", CF_TEXTS("m " CF_MOST_DIMS " 15"), CF_BIT(F32), CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::cumsum", CF_TEXTS("m T[5001] 0"), CF_COMPLEX | CF_INTS | CF_BIT(F16), CF_R_SUM(CF_TERMS_ONES), CF_VALUES, 0,
     CF_G_NONE},
    {"aten::cumsum", CF_TEXTS("m T[127,259] 1"), CF_INTS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, 0, CF_G_NONE},
    {"aten::logcumsumexp", CF_TEXTS("m T[5001] 0", "s T[33,1037] 1"), CF_FLOATS, CF_R_CUSTOM(cf_l_logcumsumexp),
     CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::cumprod", CF_TEXTS("m T[5001] 0", "m T[127,259] 1"), CF_INTS, CF_R_EXACT, CF_NONZERO, 0, CF_G_NONE},
    {"aten::cumsum", CF_TEXTS("s " CF_MOST_DIMS " 15"), CF_BIT(F32), CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_FLAT,
     CF_G_LINEAR(1)},
    /* Elements are of the dtype that is asked for before they are added or multiplied. */
    {"aten::cumsum", CF_TEXTS("m T[33,17] 1 dtype=f32", "m T[1025] 0 dtype=f64", "m T[13,33] 0 dtype=c64"),
     CF_BIT(F16) | CF_BIT(BF16) | CF_BIT(I32) | CF_BIT(BOOL), CF_R_SUM(CF_TERMS_ONES), CF_VALUES, 0, CF_G_LINEAR(1)},
    {"aten::cumsum", CF_TEXTS("m T[33,17] 1 dtype=i64", "m T[33,17]<9 0 dtype=i16"),
     CF_BIT(F32) | CF_BIT(I32) | CF_BIT(U8) | CF_BIT(BOOL), CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::cumprod", CF_TEXTS("m T[17,13] 1 dtype=f32", "m T[17,13] 0 dtype=f64"), CF_BIT(F16) | CF_BIT(I32),
     CF_R_CUSTOM(cf_l_cumprod), CF_NONZERO, 0, CF_G_NONE},
    /* Of narrower ones, two of which are added exactly. (f64 may be rounded twice, to f32 first: then the sums differ.)
     */
    {"aten::cumsum", CF_TEXTS("m T[129,2] 1 dtype=f16", "m T[129,2] 1 dtype=bf16"), CF_BIT(F32), CF_R_EXACT, CF_VALUES,
     CF_SPECIAL | CF_WIDE | CF_NATIVE | CF_ANY_ZERO, CF_G_NONE},
    {"aten::cumprod", CF_TEXTS("m T[129,2] 1 dtype=f16", "m T[129,2] 1 dtype=bf16"), CF_BIT(F32), CF_R_EXACT, CF_VALUES,
     CF_SPECIAL | CF_NATIVE | CF_ANY_ZERO, CF_G_NONE},
    {"aten::cumsum", CF_TEXTS("m T[129,2]<100003 1 dtype=f16", "m T[129,2]<100003 1 dtype=bf16"),
     CF_BIT(I32) | CF_BIT(I64), CF_R_EXACT, CF_VALUES, CF_NATIVE, CF_G_NONE},
    {"aten::cumprod", CF_TEXTS("m T[129,2]<100003 1 dtype=f16", "m T[129,2]<100003 1 dtype=bf16"),
     CF_BIT(I32) | CF_BIT(I64), CF_R_EXACT, CF_VALUES, CF_NATIVE, CF_G_NONE},
    {"aten::_cummax_helper",
     CF_TEXTS("m T[33,17] T[33,17] i64[33,17] 1", "m T[33,17] T[33,17] i64[33,17] 0", "m T[129] T[129] i64[129] 0",
              "m T[3,13,17] T[3,13,17] i64[3,13,17] -2"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_NONE},
};

CF_TOPIC(scan, "scan", cf_scan_ops);
