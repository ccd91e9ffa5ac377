#include <math.h>

#include "conformance/cases/families.h"

/* Box-Muller: r cos(2 pi u), r sin(2 pi u) with r = sqrt(-2 ln(1 - u1)): log 3 ulp and sqrt 1 ulp in r, sin and cos 4
 * ulp, and the rounding of 2 pi u, up to 2 pi, which near a zero of cos or sin counts against r. The pair's own length
 * is r. */
static void cf_l_randn(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  graft_dtype dtype = k->dtypes[out];
  for (int64_t i = 0; i < o->numel; i++) {
    int64_t pair = i ^ 1;
    long double other = pair < o->numel ? o->v[pair].re : 6; /* |x| < 6 for the last of an odd count */
    long double r = hypotl(o->v[i].re, other);
    limits[i] = 24 * cf_u_acc(dtype) * r + 1.5L * cf_ulp(dtype, o->v[i].re); /* the oracle is rounded to dtype, too */
  }
}

/* x / (1 - p), or x times the rounded scale. */
static void cf_l_dropout(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = 1.5L * cf_ulp(k->dtypes[out], o->v[i].re) + 2 * cf_u_acc(k->dtypes[out]) * fabsl(o->v[i].re);
}

static const cf_op cf_random_ops[] = {
    {"aten::rand", CF_TEXTS("s [33,17] dtype=T", "m [1025] dtype=T", "m [] dtype=T", "m [0] dtype=T", "m [3] dtype=T"),
     CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_FLAT | CF_NATIVE, CF_G_NONE},
    {"aten::randn", CF_TEXTS("s [33,17] dtype=T", "m [1025] dtype=T", "m [] dtype=T", "m [0] dtype=T", "m [3] dtype=T"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_randn), CF_VALUES, CF_FLAT | CF_NATIVE, CF_G_NONE},
    {"aten::randperm", CF_TEXTS("s 33 dtype=T", "m 1025 dtype=T", "m 1 dtype=T", "m 0 dtype=T"), CF_BIT(I64),
     CF_R_EXACT, CF_VALUES, CF_FLAT | CF_NATIVE, CF_G_NONE},
    {"aten::uniform", CF_TEXTS("s T[33,17]", "m T[1025]", "m T[]", "m T[0]", "m T[3,13]"), CF_FLOATS, CF_R_EXACT,
     CF_VALUES, CF_NATIVE, CF_G_NONE},
    {"aten::native_dropout",
     CF_TEXTS("s T[33,17] 0.5 true", "s T[33,17] 0.3 true", "m T[1025] 0.1 true", "m T[33] 0.5 false", "m T[] 0.5 true",
              "m T[0] 0.5 true", "m T[3,13,17] 0.75 true"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_dropout), CF_VALUES, CF_NATIVE, CF_G_SELECT(6)},
    {"aten::native_dropout_backward",
     CF_TEXTS("s T[33,17] bool[33,17] 2.0", "m T[1025] bool[1025] 1.25", "m T[0] bool[0] 2.0"), CF_FLOATS,
     CF_R_CUSTOM(cf_l_dropout), CF_VALUES, 0, CF_G_NONE},
};

const cf_family cf_random_family = {"random", cf_random_ops, sizeof cf_random_ops / sizeof *cf_random_ops};
