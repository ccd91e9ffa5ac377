#include <math.h>

#include "conformance/cases/rows.h"
#include "ops/pointwise/pointwise.h"
#include "ops/random/random.h"

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

/* mean + std times such a number, whose pairs are then those of (x - mean) / std; one more rounding of each part. */
static void cf_l_normal(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  graft_dtype dtype = k->dtypes[out];
  long double mean = cf_arg_number(k->call, "mean", 0), std = cf_arg_number(k->call, "std", 1), u = cf_u_acc(dtype);
  for (int64_t i = 0; i < o->numel; i++) {
    long double x = o->v[i].re - mean, other = (i ^ 1) < o->numel ? o->v[i ^ 1].re - mean : 6 * std;
    limits[i] = 26 * u * hypotl(x, other) + 2 * u * fabsl(mean) + 1.5L * cf_ulp(dtype, o->v[i].re);
  }
}

/* e to the power of such a number: its error, as one of the exponent, and exp 3 ulp. */
static void cf_l_log_normal(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  graft_dtype dtype = k->dtypes[out];
  long double mean = cf_arg_number(k->call, "mean", 1), std = cf_arg_number(k->call, "std", 2), u = cf_u_acc(dtype);
  for (int64_t i = 0; i < o->numel; i++) {
    long double x = logl(o->v[i].re) - mean, other = (i ^ 1) < o->numel ? logl(o->v[i ^ 1].re) - mean : 6 * std;
    if (!isfinite(x) || !isfinite(other)) x = 0, other = 6 * std; /* beyond the dtype's range */
    long double exponent = 26 * u * hypotl(x, other) + 2 * u * (fabsl(mean) + fabsl(x));
    limits[i] = (exponent + 6 * u) * fabsl(o->v[i].re) + 1.5L * cf_ulp(dtype, o->v[i].re);
  }
}

/* The sine over the cosine of an exact multiple of pi, 4 ulp each, their quotient, the product and the sum. */
static void cf_l_cauchy(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  graft_dtype dtype = k->dtypes[out];
  long double median = cf_arg_number(k->call, "median", 0), u = cf_u_acc(dtype);
  for (int64_t i = 0; i < o->numel; i++) {
    long double size = isfinite(o->v[i].re) ? fabsl(o->v[i].re) : cf_max(dtype);
    limits[i] = 24 * u * (size + fabsl(median)) + 1.5L * cf_ulp(dtype, size);
  }
}

/* A quotient of logarithms, 2 ulp each, rounded up: where it all but is a whole number, that or the next. */
static void cf_l_geometric(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  for (int64_t i = 0; i < o->numel; i++) limits[i] = 1 + cf_ulp(k->dtypes[out], o->v[i].re);
}

/* x / (1 - p), or x times the rounded scale. */
static void cf_l_dropout(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = 1.5L * cf_ulp(k->dtypes[out], o->v[i].re) + 2 * cf_u_acc(k->dtypes[out]) * fabsl(o->v[i].re);
}

/* x times a slope, which is bit-equal where it is drawn (the noise) and else the rounded mean slope. */
static void cf_l_rrelu(const cf_check *k, uint32_t out, long double *limits) {
  if (out == 0) return cf_l_dropout(k, out, limits);
  for (int64_t i = 0; i < k->outs[0].numel; i++) limits[i] = 0;
}

/* z as in randn, 24 u radius; y = 1 + c z and its cube, a logarithm over the shape, exp 3 ulp, pow in its place 16.
 * Where rounding decides an attempt, either answer is right, and nothing is said. */
static void cf_l_gamma(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *shapes = &k->in[0], *o = &k->outs[out];
  graft_dtype dtype = k->dtypes[out];
  const graft_philox stream = {
      .struct_size = sizeof stream, .seed = CF_PHILOX_SEED ^ k->call->c->variant, .offset = CF_PHILOX_OFFSET};
  long double u = cf_u_acc(dtype);
  for (int64_t i = 0; i < o->numel; i++) {
    rnd_gamma g = rnd_gamma_of(&stream, dtype, shapes->v[i].re, (uint64_t)i);
    long double roundings = 3 * (g.c * (24 * g.radius + 2) + 2) / g.y + 4 * fabsl(g.boost) + 24;
    limits[i] = fabsl(o->v[i].re) * roundings * u + 1.5L * cf_ulp(dtype, o->v[i].re);
    if (g.slack < u) limits[i] = cf_max(dtype) / 2;
  }
}

/* Each formula's terms by their size: logarithms and powers 16 ulp. */
static long double cf_slope_of_series(long double a, long double x) {
  long double factor = 1, divisor = a, sum = 1 / a, squares = 1 / (a * a);
  for (int i = 1; i <= 5; i++) {
    factor *= x / i, divisor += 1;
    sum += factor / divisor, squares += factor / (divisor * divisor);
  }
  long double digamma = fabsl(pw_digamma(a)) + 1 / a;
  return ((fabsl(logl(x)) + digamma) * sum + squares) * x * expl(x) * (64 + 8 * fabsl(logl(x)) * (a + 1));
}

static long double cf_slope_of_saddle(long double a, long double x, long double slope) {
  long double square = 1440 * a * a + 6 * x * (53 + 120 * x) + 65 * x * x / a + a * (107 + 3600 * x);
  if (x >= 0.89L * a && x <= 1.11L * a) return 16 * (1 + 24 * a * (1 + 12 * a)) * square / (1244160 * a * a * a * a);
  long double ratio = fabsl(logl(x / a)), root = sqrtl(8 * a), away = fabsl(a - x), w = x - a - a * logl(x / a);
  long double power = powl(w, -1.5L), moved = 1.5L * 4 * (x + a + a * ratio) / w + 20;
  long double term = ratio * (8 * root / away + moved * power) + 4 * (root / away + power) +
                     16 * sqrtl(2 / a) * (a + x) / (away * away);
  return 2 * x * term / root + 8 * fabsl(slope);
}

/* e to the power of p / q, with the terms of both. */
static long double cf_slope_of_quotient(long double a, long double x, long double slope) {
  long double u = fabsl(logl(x / a)), v = fabsl(logl(a)), exponent = fabsl(logl(slope));
  return slope * (16 + 24 * (1 + exponent) * (1 + u + u * u) * (1 + v));
}

static void cf_l_gamma_grad(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *shapes = &k->in[0], *x = &k->in[1], *o = &k->outs[out];
  for (int64_t i = 0; i < o->numel; i++) {
    long double a = shapes->v[i].re, at = x->v[i].re, slope = o->v[i].re, terms;
    if (at < 0.8L)
      terms = cf_slope_of_series(a, at);
    else
      terms = a > 8 ? cf_slope_of_saddle(a, at, slope) : cf_slope_of_quotient(a, at, slope);
    limits[i] = cf_limit_of(k, out, i, terms);
  }
}

static const cf_op cf_random_ops[] = {
    {"aten::rand", CF_TEXTS("s [33,17] dtype=T", "m [1025] dtype=T", "m [] dtype=T", "m [0] dtype=T", "m [3] dtype=T"),
     CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_FLAT | CF_NATIVE, CF_G_NONE},
    {"aten::randn", CF_TEXTS("s [33,17] dtype=T", "m [1025] dtype=T", "m [] dtype=T", "m [0] dtype=T", "m [3] dtype=T"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_randn), CF_VALUES, CF_FLAT | CF_NATIVE, CF_G_NONE},
    {"aten::randperm",
     CF_TEXTS("s 33 dtype=T", "m 1025 dtype=T", "s 20001 dtype=T", "m 1 dtype=T", "m 0 dtype=T", "f 300001 dtype=T"),
     CF_BIT(I64), CF_R_EXACT, CF_VALUES, CF_FLAT | CF_NATIVE, CF_G_NONE},
    {"aten::randperm.generator",
     CF_TEXTS("m 33 generator=_ dtype=T", "m 1025 generator=_ dtype=T", "m 0 generator=_ dtype=T"), CF_BIT(I64),
     CF_R_EXACT, CF_VALUES, CF_FLAT | CF_NATIVE, CF_G_NONE},
    {"aten::uniform",
     CF_TEXTS("s T[33,17]", "m T[1025]", "m T[]", "m T[0]", "m T[3,13]", "m T[33,17] -2.5 0.75", "m T[129] 3 3"),
     CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_NATIVE, CF_G_NONE},
    {"aten::native_dropout",
     CF_TEXTS("s T[33,17] 0.5 true", "m T[33,17] 0.3 true", "m T[1025] 0.1 true", "s T[33] 0.5 false", "m T[] 0.5 true",
              "m T[0] 0.5 true", "m T[3,13,17] 0.75 true", "m T[13] 0.0 true", "s T[13] 1.0 true", "m T[33,17] 0.5 _"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_dropout), CF_VALUES, CF_NATIVE, CF_G_SELECT(6)},
    {"aten::native_dropout_backward",
     CF_TEXTS("s T[33,17] bool[33,17] 2.0", "m T[1025] bool[1025] 1.25", "m T[0] bool[0] 2.0"), CF_FLOATS,
     CF_R_CUSTOM(cf_l_dropout), CF_VALUES, 0, CF_G_SELECT(2)},
    {"aten::normal.float_float",
     CF_TEXTS("s 0.5 2.0 [33,17] dtype=T", "m -3.0 0.25 [1025] dtype=T", "m 1.0 0.0 [13] dtype=T",
              "m 0.0 1.0 [] dtype=T", "m 0.0 1.0 [0] dtype=T"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_normal), CF_VALUES, CF_FLAT | CF_NATIVE, CF_G_NONE},
    /* log1p 2 ulp, a division, and the oracle's own rounding to the tested dtype */
    {"aten::exponential", CF_TEXTS("s T[33,17]", "m T[1025] 2.5", "m T[] 1.0", "m T[0]", "m T[3,13] 0.75"), CF_FLOATS,
     CF_R_ULPS(4), CF_VALUES, CF_NATIVE, CF_G_NONE},
    {"aten::cauchy", CF_TEXTS("s T[33,17]", "m T[1025] 2.5 0.5", "m T[] 1.0", "m T[0]", "m T[3,13] -1.0 2.0"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_cauchy), CF_VALUES, CF_NATIVE, CF_G_NONE},
    {"aten::geometric", CF_TEXTS("s T[33,17] 0.25", "m T[1025] 0.3", "m T[] 0.5", "m T[0] 0.5", "m T[3,13] 0.9"),
     CF_REALS, CF_R_CUSTOM(cf_l_geometric), CF_VALUES, CF_NATIVE, CF_G_NONE},
    {"aten::log_normal", CF_TEXTS("m T[33,17]", "m T[1025] 0.5 0.25", "m T[] 1.0", "m T[0]", "m T[3,13] -1.0 0.5"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_log_normal), CF_VALUES, CF_NATIVE, CF_G_NONE},
    /* Its gradient is not that of the same attempt, but of the distribution. */
    {"aten::_standard_gamma", CF_TEXTS("s T[33,17]", "m T[1025]", "m T[]", "m T[0]", "m T[129]=1", "m T[129]=30"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_gamma), CF_POSITIVE, CF_NATIVE, CF_G_NONE},
    {"aten::_standard_gamma_grad",
     CF_TEXTS("s T[33,17] T[33,17]", "m T[1025]=12 T[1025]", "m T[33]=20 T[33]=21", "m T[33,17]=5 T[33,17]",
              "m T[129] T[129]=0.125", "m T[129]=30 T[129]=7", "m T[] T[]", "m T[0] T[0]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_gamma_grad), CF_POSITIVE, 0, CF_G_NONE},
    {"prims::uniform",
     CF_TEXTS("m [33,17] low=0 high=1 dtype=T stride=[17,1]", "s [1025] low=-2.0 high=3 dtype=T stride=[1]",
              "m [] low=0 high=1 dtype=T stride=[]", "m [0] low=0 high=1 dtype=T stride=[1]"),
     CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_FLAT | CF_NATIVE, CF_G_NONE},
    {"aten::bernoulli.p", CF_TEXTS("s T[33,17] 0.5", "m T[1025] 0.3", "m T[33] 0.0", "m T[] 1.0", "m T[0] 0.5"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_NATIVE, CF_G_NONE},
    {"aten::bernoulli.Tensor",
     CF_TEXTS("m T[33,17] f32[33,17]", "m T[129] f32[129]<2", "m T[1025] f64[1025]", "m T[33,17] f16[17]",
              "m T[3,13,17] f32[13,1]", "m T[] f32[]"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_PROBABILITY, CF_NATIVE, CF_G_NONE},
    {"aten::random.from", CF_TEXTS("s T[33,17] 0 100", "m T[1025] 3 _", "m T[13] 5 6", "m T[] 0 2", "m T[0] 0 9"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_NATIVE, CF_G_NONE},
    {"aten::random.from",
     CF_TEXTS("m T[33,17] -9223372036854775808 _", "m T[129] -5 9223372036854775807",
              "m T[129] -4611686018427387904 _"),
     CF_BIT(I64), CF_R_EXACT, CF_VALUES, CF_NATIVE, CF_G_NONE},
    {"aten::randint.low",
     CF_TEXTS("m 0 100 [33,17] dtype=T", "m 3 9 [1025] dtype=T", "m 0 2 [] dtype=T", "m 5 6 [13] dtype=T"), CF_REALS,
     CF_R_EXACT, CF_VALUES, CF_FLAT | CF_NATIVE, CF_G_NONE},
    {"aten::randint.low", CF_TEXTS("m 0 100 [10007] dtype=T"), CF_BIT(F32) | CF_BIT(I64), CF_R_EXACT, CF_VALUES,
     CF_FLAT | CF_NATIVE, CF_G_NONE}, /* more than a work-item draws */
    {"aten::rrelu_with_noise",
     CF_TEXTS("m T[33,17] T[33,17] 0.125 0.3333333333333333 true", "m T[1025] T[1025] 0.1 0.9 true",
              "m T[3,13,17] T[3,13,17] -0.5 0.25 true", "m T[33] T[33] 0.25 0.25 true", "m T[] T[] 0.125 0.5 true",
              "m T[0] T[0] 0.125 0.5 true", "m T[33,17] T[33,17]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_rrelu), CF_VALUES, CF_NATIVE | CF_INPLACE, CF_G_SELECT(4)},
    {"aten::rrelu_with_noise_backward",
     CF_TEXTS("m T[33,17] T[33,17] T[33,17] 0.125 0.5 true false", "m T[1025] T[1025] T[1025] 0.1 0.9 false false",
              "m T[3,13,17] T[3,13,17] T[3,13,17] 0.125 0.5 false true"),
     CF_FLOATS, CF_R_ULPS(2), CF_VALUES, 0, CF_G_NONE},
    {"aten::multinomial",
     CF_TEXTS("s T[3,129] 5 true", "m T[33] 4", "m T[1025] 1", "s T[13,17] 17", "m T[5,33] 129 true", "m T[1] 1"),
     CF_FLOATS, CF_R_EXACT, CF_POSITIVE, CF_NATIVE, CF_G_NONE},
};

CF_TOPIC(random, "random", cf_random_ops);
