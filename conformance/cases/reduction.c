#include <math.h>
#include <stdlib.h>

#include "conformance/cases/rows.h"

/* ---- rows along the reduced dims ---- */

/* Which output element each input element goes to. Reduced dims: argument `dim`, absent or empty: all. */
static int64_t *cf_reduced_to(const cf_check *k) {
  const cf_array *x = &k->in[0];
  int64_t *to = calloc((size_t)x->numel + 1, sizeof *to);
  const op_schema *schema = k->call->text.schema;
  const graft_value *dims = NULL;
  for (uint32_t a = 0; a < schema->nargs; a++)
    if (schema->args[a].kind == OPK_INTS) dims = &k->call->text.args[a];
  bool reduced[GRAFT_MAX_DIMS], all = !dims || dims->kind != GRAFT_VALUE_INTS || dims->count == 0;
  for (int32_t d = 0; d < x->ndim; d++) reduced[d] = all;
  for (uint32_t i = 0; !all && i < dims->count; i++)
    if (x->ndim) reduced[(dims->as.ints[i] + x->ndim) % x->ndim] = true;
  for (int64_t i = 0; to && i < x->numel; i++) {
    int64_t rest = i, step = 1;
    for (int32_t d = x->ndim - 1; d >= 0; d--) {
      int64_t c = rest % x->sizes[d];
      rest /= x->sizes[d];
      if (reduced[d]) continue;
      to[i] += c * step;
      step *= x->sizes[d];
    }
  }
  return to;
}

/* var = sum (x - m)^2 / (n - c). First order: m is off by growth(n) u mean|x|, each difference by u|x - m| and that,
 * each square and the sum as usual. */
static void cf_spread_limits(const cf_check *k, uint32_t out, long double *limits, bool root) {
  const cf_array *x = &k->in[0], *o = &k->outs[out];
  int64_t *to = cf_reduced_to(k), m = o->numel;
  dt_value *mean = calloc((size_t)m + 1, sizeof *mean);
  long double *size = calloc((size_t)m + 1, sizeof *size), *spread = calloc((size_t)m + 1, sizeof *spread);
  long double n = m ? (long double)x->numel / (long double)m : 0, u = cf_u_acc(k->dtypes[out]);
  if (to && mean && size && spread) {
    for (int64_t i = 0; i < x->numel; i++) {
      mean[to[i]].re += x->v[i].re / n, mean[to[i]].im += x->v[i].im / n;
      size[to[i]] += cf_modulus(x->v[i]) / n;
    }
    for (int64_t i = 0; i < x->numel; i++)
      spread[to[i]] += hypotl(x->v[i].re - mean[to[i]].re, x->v[i].im - mean[to[i]].im);
    long double divisor = n - cf_arg_number(k->call, "correction", 1);
    for (int64_t i = 0; i < m; i++) {
      long double shift = (cf_growth(n) + 1) * u * size[i];
      long double v = fabsl(o->v[i].re), square = root ? v * v : v;
      long double error = (cf_growth(n) + 4) * u * square + (2 * spread[i] + n * shift) * shift / fmaxl(divisor, 1);
      if (root) error = error < square ? v - sqrtl(square - error) : fmaxl(v, sqrtl(square + error) - v);
      limits[i] = error + (root ? 2 * u * v : 0) + cf_ulp(k->dtypes[out], v) / 2;
      /* shift squared counts where all values are the same; the root itself may err by an ulp */
    }
  }
  free(to), free(mean), free(size), free(spread);
}

/* The mean beside them: a sum and a division. */
static void cf_mean_limits(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *x = &k->in[0], *o = &k->outs[out];
  int64_t *to = cf_reduced_to(k);
  long double n = o->numel ? (long double)x->numel / (long double)o->numel : 0;
  for (int64_t i = 0; to && i < x->numel; i++) limits[to[i]] += cf_modulus(x->v[i]) / n;
  for (int64_t i = 0; to && i < o->numel; i++)
    limits[i] = cf_limit_of(k, out, i, cf_growth(n) * limits[i] + 2 * cf_modulus(o->v[i]));
  free(to);
}

static void cf_l_var(const cf_check *k, uint32_t out, long double *limits) {
  if (out)
    cf_mean_limits(k, out, limits);
  else
    cf_spread_limits(k, out, limits, false);
}

static void cf_l_std(const cf_check *k, uint32_t out, long double *limits) {
  if (out)
    cf_mean_limits(k, out, limits);
  else
    cf_spread_limits(k, out, limits, true);
}

/* log(sum of e) + max, e = exp(x - max) as in softmax: the relative error of the sum is the logarithm's absolute one;
 * 3 ulp of the logarithm and a last addition. */
static void cf_l_logsumexp(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *x = &k->in[0], *o = &k->outs[out];
  int64_t *to = cf_reduced_to(k), m = o->numel;
  long double *most = calloc((size_t)m + 1, sizeof *most), *sum = calloc((size_t)m + 1, sizeof *sum);
  long double n = m ? (long double)x->numel / (long double)m : 0;
  if (to && most && sum) {
    for (int64_t i = 0; i < m; i++) most[i] = -INFINITY;
    for (int64_t i = 0; i < x->numel; i++) most[to[i]] = fmaxl(most[to[i]], x->v[i].re);
    for (int64_t i = 0; i < x->numel; i++) {
      long double d = most[to[i]] - x->v[i].re, e = expl(-d);
      sum[to[i]] += e, limits[to[i]] += e * (d + 6);
    }
    for (int64_t i = 0; i < m; i++)
      limits[i] =
          cf_limit_of(k, out, i, cf_growth(n) + limits[i] / sum[i] + 6 * fabsl(logl(sum[i])) + fabsl(o->v[i].re));
  }
  free(to), free(most), free(sum);
}

/* Its gradient: g exp(x - result), where the difference has the result's rounding, too. */
static void cf_g_logsumexp(const cf_check *k, uint32_t in, long double *terms) {
  const cf_array *x = &k->in[in], *g = &k->g[0];
  int64_t *to = cf_reduced_to(k);
  long double *sum = calloc((size_t)g->numel + 1, sizeof *sum);
  for (int64_t i = 0; to && sum && i < x->numel; i++) sum[to[i]] += expl(x->v[i].re);
  for (int64_t i = 0; to && sum && i < x->numel; i++) {
    long double result = logl(sum[to[i]]);
    terms[i] = fabsl(g->v[to[i]].re) * expl(x->v[i].re - result) * (1 + fabsl(result) + fabsl(x->v[i].re));
  }
  free(to), free(sum);
}

/* d var / d x = 2 g (x - m) / (n - c); for the root, that over 2 std, whose own error has the variance's terms. With
 * the mean beside it g / n is added. */
static void cf_spread_terms(const cf_check *k, uint32_t in, long double *terms, bool root) {
  const cf_array *x = &k->in[in], *g = &k->g[0], *o = &k->outs[0];
  int64_t *to = cf_reduced_to(k);
  long double *size = calloc((size_t)g->numel + 1, sizeof *size);
  long double n = g->numel ? (long double)x->numel / (long double)g->numel : 0;
  long double divisor = fmaxl(1, n - cf_arg_number(k->call, "correction", 1));
  for (int64_t i = 0; to && size && i < x->numel; i++) size[to[i]] += cf_modulus(x->v[i]) / n;
  for (int64_t i = 0; to && size && i < x->numel; i++) {
    long double std = root ? fabsl(o->v[to[i]].re) : 1, far = cf_modulus(x->v[i]) + size[to[i]];
    terms[i] = (root ? 1 : 2) * cf_modulus(g->v[to[i]]) * far / divisor / (std > 0 ? std : 1);
    if (root && std > 0) terms[i] *= 1 + size[to[i]] / std;
    if (k->nouts > 1) terms[i] += cf_modulus(k->g[1].v[to[i]]) / n;
  }
  free(to), free(size);
}
static void cf_g_var(const cf_check *k, uint32_t in, long double *terms) {
  cf_spread_terms(k, in, terms, false);
}
static void cf_g_std(const cf_check *k, uint32_t in, long double *terms) {
  cf_spread_terms(k, in, terms, true);
}

static void cf_l_norm(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  double p = fabs(cf_arg_number(k->call, "ord", cf_arg_number(k->call, "p", 2)));
  long double n = o->numel ? (long double)k->in[0].numel / (long double)o->numel : 1;
  long double moduli = dt_is_complex(k->in[0].dtype) && p != 2 && p != 0 ? 8 : 0; /* hypot: 4 ulp */
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = cf_limit_of(k, out, i, (cf_norm_roundings(p, n) + moduli) * fabsl(o->v[i].re));
}

/* A count may differ by the elements that lie at an edge of their part, within the roundings of (x - min) bins / (max -
 * min). */
static void cf_l_histc(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *x = &k->in[0];
  int64_t bins = k->outs[out].numel;
  long double low = cf_arg_number(k->call, "min", 0), high = cf_arg_number(k->call, "max", 0);
  for (int64_t i = 0; low == high && i < x->numel; i++) { /* those of the data */
    low = high = x->v[i].re;
    for (int64_t j = i + 1; j < x->numel; j++) low = fminl(low, x->v[j].re), high = fmaxl(high, x->v[j].re);
  }
  if (low == high) low -= 1, high += 1;
  for (int64_t i = 0; i < x->numel; i++) {
    long double at = (x->v[i].re - low) * (long double)bins / (high - low), edge = roundl(at);
    if (fabsl(at - edge) > 4 * cf_u_acc(k->dtypes[out]) * (1 + fabsl(at))) continue;
    if (edge >= 0 && edge < (long double)bins) limits[(int64_t)edge] += 1;
    if (edge > 0 && edge <= (long double)bins) limits[(int64_t)edge - 1] += 1;
  }
  for (int64_t i = 0; i < bins; i++) limits[i] += cf_limit_of(k, out, i, 0);
}

static const char *const cf_norm_texts[] = {"s T[33,17] 2 [1]",        "m T[33,17] 1 [0]",      "m T[1025]",
                                            "m T[33,17] inf [1] true", "m T[13,129] 3 [1]",     "m T[3,13,17] 2 [0,2]",
                                            "m T[33,17] 0 [1]",        "m T[0] 2 [0]",          "m T[33,17] 1.1 [1]",
                                            "f T[129,1025] 2 [1]",     "m T[3,13,17] 2 [-1,0]", NULL};
#define CF_NARROWED(n, of, dtypes, dim, flags)                                                                 \
  {                                                                                                            \
    "aten::" n, CF_TEXTS("m T[129,2]" of " " dim " dtype=f16", "m T[129,2]" of " " dim " dtype=bf16"), dtypes, \
        CF_R_EXACT, CF_VALUES, CF_NATIVE | (flags), CF_G_NONE                                                  \
  }
#define CF_NARROWED_FLOATS(n, dim, flags) CF_NARROWED(n, "", CF_BIT(F32) | CF_BIT(F64), dim, flags)
#define CF_NARROWED_INTS(n, dim)          CF_NARROWED(n, "<100003", CF_BIT(I32) | CF_BIT(I64), dim, 0)
/* Twins of ops that are run early on begin at mustpass. */
static const char *const cf_spread_texts[] = {"m T[33,17] [1]",
                                              "m T[33,17] [0] correction=0",
                                              "m T[33,17]",
                                              "m T[1025] [0] correction=2",
                                              "m T[65,40] [0]", /* columns and rows of whole vectors */
                                              "m T[7,1032] [1]",
                                              "m T[3,13,17] [0,2] keepdim=true",
                                              "f T[129,1025] [1]",
                                              "m T[3,13,17] [-1,0]",
                                              NULL};
static const char *const cf_one_std_texts[] = {"s T[33,17] [1]",
                                               "m T[33,17] [0] correction=0",
                                               "m T[1025] [0] correction=2",
                                               "m T[3,13,17] [0,2] keepdim=true",
                                               "m T[33,17]",
                                               "f T[129,1025] [1]",
                                               "f T[49,3] [0]",
                                               "m T[3,13,17] [-1,0]",
                                               NULL};
static const char *const cf_min_texts[] = {"m T[33,17]", "m T[1025]", "m T[]", "m T[3,13,17]", "f T[129,1025]", NULL};
static const char *const cf_numbers_texts[] = {
    "s T[33,17] [1]", "m T[33,17] [0]", "m T[1025] [0] true", "m T[3,13,17] [1]",    "m T[0] [0]", "m T[] []",
    "m T[33,17] _",   "m T[3,0,2] [1]", "f T[129,1025] [1]",  "m T[3,13,17] [-1,0]", NULL};
static const char *const cf_old_norm_texts[] = {
    "m T[33,17] _ [1]", "m T[33,17] 1 [0]", "m T[1025] 2 [0]",     "m T[33,17] inf [1] true", "m T[3,13,17] 3 [0,2]",
    "m T[33,17] 0 [1]", "m T[0] 2 [0]",     "f T[129,1025] 2 [1]", "m T[3,13,17] 2 [-1,0]",   NULL};
static const char *const cf_lse_texts[] = {"s T[33,17] [1]",
                                           "m T[33,17] [0] true",
                                           "m T[7,1041] [0]",
                                           "m T[1025] [0]",
                                           "m T[3,13,17] [0,2]",
                                           "m T[13,129] [-1]",
                                           "s T[] [0]",
                                           "m T[3,0] [1]",
                                           "f T[129,1025] [1]",
                                           "m T[3,13,17] [-1,0]",
                                           NULL};
static const char *const cf_minmax_texts[] = {"m T[33,17] dim=1",
                                              "m T[33,17]",
                                              "m T[1025] dim=0",
                                              "m T[33,17] dim=0 keepdim=true",
                                              "m T[3,13,17] dim=1",
                                              "m T[] dim=0",
                                              "f T[129,1025] dim=1",
                                              "m T[3,13,17] dim=-2",
                                              NULL};
static const char *const cf_extremum_texts[] = {"m T[33,17] 1",   "m T[33,17] 0 true", "m T[1025] 0",
                                                "m T[3,13,17] 1", "m T[13,129] -1",    "m T[] 0",
                                                "m T[0,3] 1",     "f T[129,1025] 1",   NULL};
static const char *const cf_any_texts[] = {"m T[33,17]", "m T[1025]=0", "m T[]", "m T[0]", "m T[3,13,17]=2", NULL};
static const char *const cf_any_dims_texts[] = {
    "m T[33,17] [1]", "m T[33,17]=0 [0] true", "m T[3,13,17] [0,2]",  "m T[33,17] _",
    "m T[] []",       "m T[3,0] [1]",          "m T[3,13,17] [-1,0]", NULL};
static const char *const cf_mean_texts[] = {"m T[33,17]", "m T[1025]", "m T[]", "m T[3,13,17]", "f T[129,1025]", NULL};
static const char *const cf_whole_texts[] = {"s T[33,17]", "m T[1025]", "m T[]", "m T[3,13,17]", "f T[129,1025]", NULL};
static const char *const cf_count_texts[] = {"s T[33,17] 1",    "m T[33,17]", "m T[1025] 0", "m T[3,13,17] 1",
                                             "m T[] 0",         "m T[0]",     "m T[3,0] 1",  "f T[129,1025] 1",
                                             "m T[3,13,17] -3", NULL};
static const char *const cf_true_texts[] = {
    "s T[33,17] 1",       "m T[33,17]=1 0 true", "m T[1025] 0", "m T[3,13,17]=1 1", "m T[] 0", "m T[3,0] 1",
    "f T[2,3,1,3,2,3] 3", "m T[3,13,17]=1 -2",   NULL};
static const char *const cf_all_texts[] = {"s T[33,17]", "m T[1025]=1", "m T[]", "m T[0]", "m T[3,13,17]=2", NULL};
static const char *const cf_extreme_texts[] = {"m T[33,17] [1]",
                                               "s T[33,17] [0]",
                                               "m T[33,17]",
                                               "m T[1025] [0] true",
                                               "m T[3,13,17] [1]",
                                               "m T[] []",
                                               "m T[13,129] [-1]",
                                               "m T[2,3,13,17] [0,2]",
                                               "m T[0,3] [1]",
                                               "f T[2,3,1,3,2,3] [0,3,5]",
                                               "f T[129,1025] [1]",
                                               "m T[3,13,17] [-1,0]",
                                               NULL};
static const char *const cf_arg_texts[] = {"m T[33,17] 1",    "s T[33,17]", "m T[33,17] 0 true", "m T[1025] 0",
                                           "m T[3,13,17] 1",  "s T[] _",    "m T[13,129] -1",    "m T[0,3] 1",
                                           "f T[129,1025] 1", NULL};
static const char *const cf_dim_texts[] = {"s T[33,17] 1",   "m T[33,17] 0 true",  "m T[1025] 0",
                                           "m T[3,13,17] 1", "m T[13,129] -1",     "m T[3,0] 1",
                                           "m T[0,3] 1",     "f T[2,3,1,3,2,3] 3", NULL};
static const char *const cf_prod_texts[] = {"s T[33]", "m T[13,3]", "m T[]", "m T[0]", "m T[3,3,3]", NULL};
static const char *const cf_prod_dim_texts[] = {
    "s T[13,17] 1", "m T[17,13] 0 true",  "m T[13] 0",       "m T[3,13,17] 1",
    "m T[3,0] 1",   "f T[2,3,1,3,2,3] 3", "m T[3,13,17] -2", NULL};
/* For vectors and teams of work-items: tails, lines in two dims, steps over three. */
static const char *const cf_vector_texts[] = {
    "m T[40007] [0]",      "m T[19,1032] [1]",        "m T[19,1041] [1]", "m T[1101,33] [1]",   "m T[2601,13] [1]",
    "m T[5,7,1032] [0,2]", "m T[3,5,3,40] [0,1,3]",   "m T[131,264] [0]", "m T[5,33,72] [0,1]", "m T[9,70,8] [1]",
    "m T[33,35,37] [1]",   "m T[5,9,7,9,17] [0,2,4]", "m T[300,7,3] [1]", "m T[2001,5] [0]",    NULL};
static const char *const cf_var_texts[] = {"s T[33,17] [1]",
                                           "s T[33,17] [0] correction=0",
                                           "m T[33,17]",
                                           "m T[1025] [0] correction=2",
                                           "m T[3,13,17] [0,2] keepdim=true",
                                           "m T[13,129] [-1]",
                                           "m T[1101,33] [1]",
                                           "f T[2,3,1,3,2,3] [0,3,5]",
                                           "f T[129,1025] [1]",
                                           "m T[3,13,17] [-1,0]",
                                           NULL};

/* The product of the others, from both sides in log2 n steps each, every one of them a tensor of the tested dtype. */
#define CF_G_PRODUCT \
  { .kind = CF_GRAD_SELECT, .steps = 16, .inner = 40 }

static const cf_op cf_reduction_ops[] = {
    {"aten::sum.dim_IntList", cf_reduce_dims, CF_ANY_DTYPE | CF_COMPLEX, CF_R_SUM(CF_TERMS_RATIO), CF_VALUES,
     CF_SPECIAL | CF_WIDE | CF_ORDERED, CF_G_LINEAR(0)},
    {"aten::sum.dim_IntList",
     CF_TEXTS("s T[17,33] [0]", "m T[67,1041] [0]", "m T[2,3,1,2,2,3,3,2] [1,4,6]", "m T[2,3,1,2,2,3,3,2] [0,3,5]"),
     CF_BIT(F32), CF_R_SUM(CF_TERMS_RATIO), CF_VALUES, CF_ORDERED,
     CF_G_LINEAR(0)}, /* along columns: of the reductions by a dim, the one in smoke */
    /* Vectors with and without a remainder, rows that begin where no vector may, several dimensions, and so many
     * elements that what a work-item adds up takes more than one stretch; short rows, of which it takes some together;
     * of those not in f32, where a sum term by term, which is right, loses more than the limit. */
    {"aten::sum.dim_IntList", cf_vector_texts, CF_BIT(F32) | CF_BIT(BF16) | CF_BIT(F64) | CF_BIT(U8) | CF_BIT(C64),
     CF_R_SUM(CF_TERMS_RATIO), CF_VALUES, 0, CF_G_NONE},
    {"aten::sum.dim_IntList", CF_TEXTS("m T[400003] [0]", "f T[4300003] [0]", "f T[2100,2052] [0]"),
     CF_BIT(I32) | CF_BIT(F64), CF_R_SUM(CF_TERMS_RATIO), CF_VALUES, 0, CF_G_NONE},
    {"aten::amin", CF_TEXTS("m T[19,1032] [1]", "m T[131,264] [0]", "m T[1101,33] [1]", "m T[40013] [0]"),
     CF_BIT(F16) | CF_BIT(BF16) | CF_BIT(I8) | CF_BIT(I64), CF_R_EXACT, CF_VALUES, CF_ANY_ZERO, CF_G_NONE},
    {"aten::mean.dim", cf_reduce_dims, CF_FLOATS | CF_COMPLEX, CF_R_SUM(CF_TERMS_RATIO), CF_VALUES,
     CF_SPECIAL | CF_WIDE | CF_ORDERED, CF_G_LINEAR(2)},
    {"aten::amax", cf_extreme_texts, CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO,
     CF_G_SELECT(4)},
    {"aten::amin", cf_extreme_texts, CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO,
     CF_G_SELECT(4)},
    {"aten::amax", CF_TEXTS("m T[3,1041,2] [0,2]", "m T[2,3,1041] [0,1]", "m T[2,3,1,2,2,3,3,2] [1,4,6]"), CF_BIT(F32),
     CF_R_EXACT, CF_VALUES, CF_ANY_ZERO, CF_G_SELECT(4)},
    {"aten::argmax", cf_arg_texts, CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    {"aten::argmax", CF_TEXTS("m T[40009]"), CF_BIT(F32) | CF_BIT(I64), CF_R_EXACT, CF_VALUES, 0,
     CF_G_NONE}, /* in parts */
    {"aten::argmin", cf_arg_texts, CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    {"aten::var.correction", cf_var_texts, CF_FLOATS | CF_COMPLEX, CF_R_CUSTOM(cf_l_var), CF_VALUES, CF_ORDERED,
     CF_G_CUSTOM(cf_g_var, 72)},
    {"aten::var.correction", CF_TEXTS("m T[19,1032] [1]", "m T[131,264] [0]", "m T[5,7,1032] [0,2]", "m T[40009] [0]"),
     CF_BIT(F32) | CF_BIT(BF16), CF_R_CUSTOM(cf_l_var), CF_VALUES, 0, CF_G_NONE},
    {"aten::any.dim", cf_dim_texts, CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    {"aten::any", cf_any_texts, CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    {"aten::any.dims", cf_any_dims_texts, CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE,
     CF_G_NONE},
    {"aten::mean", cf_mean_texts, CF_FLOATS | CF_COMPLEX, CF_R_SUM(CF_TERMS_RATIO), CF_VALUES,
     CF_SPECIAL | CF_WIDE | CF_ORDERED, CF_G_LINEAR(2)},
    {"aten::prod", cf_prod_texts, CF_REALS | CF_COMPLEX, {.klass = CF_PROD}, CF_NONZERO, 0, CF_G_PRODUCT},
    {"aten::prod.dim_int", cf_prod_dim_texts, CF_REALS | CF_COMPLEX, {.klass = CF_PROD}, CF_NONZERO, 0, CF_G_PRODUCT},
    /* Where the result is bool, elements are truths before they are added or multiplied. */
    {"aten::prod.dim_int",
     CF_TEXTS("m T[13,17] 1 dtype=bool", "m T[3,0] 1 dtype=bool", "f T[3,13,2] 0 true dtype=bool"),
     CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::prod", CF_TEXTS("m T[33] dtype=bool"), CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL,
     CF_G_NONE},
    {"aten::sum.dim_IntList", CF_TEXTS("m T[13,17] [1] dtype=bool", "m T[3,0] [1] dtype=bool"),
     CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::sum.dim_IntList", CF_TEXTS("s " CF_MOST_DIMS " [2,15]"), CF_BIT(F32), CF_R_SUM(CF_TERMS_RATIO), CF_VALUES,
     CF_FLAT, CF_G_LINEAR(0)},
    /* Elements are of the dtype that is asked for before they are added: wider ones, from each class to each. */
    {"aten::sum.dim_IntList",
     CF_TEXTS("m T[33,17] [0] dtype=f32", "m T[13,33] [1] dtype=f32", "m T[3,0] [1] dtype=f32"),
     CF_BIT(F16) | CF_BIT(BF16) | CF_BIT(I32) | CF_BIT(U8) | CF_BIT(BOOL), CF_R_SUM(CF_TERMS_RATIO), CF_VALUES, 0,
     CF_G_LINEAR(0)},
    {"aten::sum.dim_IntList", CF_TEXTS("m T[13,33] [1] dtype=f64"), CF_BIT(F32) | CF_BIT(F16) | CF_BIT(I64),
     CF_R_SUM(CF_TERMS_RATIO), CF_VALUES, 0, CF_G_LINEAR(0)},
    {"aten::sum.dim_IntList", CF_TEXTS("m T[13,33] [1] dtype=c64"),
     CF_BIT(F32) | CF_BIT(BF16) | CF_BIT(I32) | CF_BIT(BOOL), CF_R_SUM(CF_TERMS_RATIO), CF_VALUES, 0, CF_G_LINEAR(0)},
    {"aten::sum.dim_IntList", CF_TEXTS("m T[13,33] [1] dtype=c128"), CF_BIT(C64) | CF_BIT(F64) | CF_BIT(I64),
     CF_R_SUM(CF_TERMS_RATIO), CF_VALUES, 0, CF_G_LINEAR(0)},
    {"aten::sum.dim_IntList", CF_TEXTS("m T[13,33] [1] dtype=i64"),
     CF_BIT(F32) | CF_BIT(BF16) | CF_BIT(I32) | CF_BIT(U8) | CF_BIT(BOOL), CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::sum.dim_IntList", CF_TEXTS("m T[13,33]<9 [1] dtype=f16", "m T[13,33]<9 [1] dtype=i16"),
     CF_BIT(I32) | CF_BIT(U8) | CF_BIT(BOOL), CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    /* And narrower ones: each is rounded before two are added, which a half type's accumulator then does exactly. */
    CF_NARROWED_FLOATS("sum.dim_IntList", "[1]", CF_SPECIAL | CF_WIDE),
    CF_NARROWED_FLOATS("mean.dim", "[1]", CF_SPECIAL),
    CF_NARROWED_FLOATS("prod.dim_int", "1", CF_SPECIAL),
    CF_NARROWED_INTS("sum.dim_IntList", "[1]"),
    CF_NARROWED_INTS("mean.dim", "[1]"),
    CF_NARROWED_INTS("prod.dim_int", "1"),
    {"aten::mean.dim", CF_TEXTS("m T[13,33] [1] dtype=f32", "m T[33,17] [0] dtype=f32"),
     CF_BIT(F16) | CF_BIT(I32) | CF_BIT(BOOL), CF_R_SUM(CF_TERMS_RATIO), CF_VALUES, 0, CF_G_LINEAR(2)},
    {"aten::mean.dim", CF_TEXTS("m T[13,33] [1] dtype=c64", "m T[13,33] [1] dtype=f64"), CF_BIT(F32) | CF_BIT(I32),
     CF_R_SUM(CF_TERMS_RATIO), CF_VALUES, 0, CF_G_LINEAR(2)},
    {"aten::mean", CF_TEXTS("m T[13,33] dtype=f32", "m T[1025] dtype=c64"), CF_BIT(F16) | CF_BIT(I32) | CF_BIT(BOOL),
     CF_R_SUM(CF_TERMS_RATIO), CF_VALUES, 0, CF_G_LINEAR(2)},
    {"aten::nansum", CF_TEXTS("m T[13,33] [1] dtype=f32", "m T[13,33] [1] dtype=f64"), CF_BIT(F16) | CF_BIT(I32),
     CF_R_SUM(CF_TERMS_RATIO), CF_VALUES, CF_SPECIAL, CF_G_LINEAR(0)},
    {"aten::prod.dim_int",
     CF_TEXTS("m T[13,17] 1 dtype=f32", "m T[13,17] 1 dtype=f64", "m T[13,17] 1 dtype=c64"),
     CF_BIT(F16) | CF_BIT(I32) | CF_BIT(BOOL),
     {.klass = CF_PROD},
     CF_NONZERO,
     0,
     CF_G_NONE},
    {"aten::prod",
     CF_TEXTS("m T[33] dtype=f32", "m T[33] dtype=f64"),
     CF_BIT(F16) | CF_BIT(I32),
     {.klass = CF_PROD},
     CF_NONZERO,
     0,
     CF_G_NONE},
    {"aten::linalg_vector_norm", CF_TEXTS("m T[33,17] 2 [1] dtype=f32", "m T[33,17] 3 [1] dtype=f64"),
     CF_BIT(F16) | CF_BIT(BF16), CF_R_CUSTOM(cf_l_norm), CF_NONZERO, 0, CF_G_NONE},
    {"aten::linalg_vector_norm", CF_TEXTS("m T[33,17] 2 [1] dtype=c128"), CF_BIT(C64), CF_R_CUSTOM(cf_l_norm),
     CF_NONZERO, 0, CF_G_NONE},
    {"aten::linalg_vector_norm", cf_norm_texts, CF_FLOATS, CF_R_CUSTOM(cf_l_norm), CF_NONZERO, CF_ORDERED,
     CF_G_SELECT(80)},
    {"aten::linalg_vector_norm",
     CF_TEXTS("m T[33,17] 2 [1]", "m T[33,17] 3 [1]", "m T[33,17] 1 [0]", "m T[1025]", "m T[0] 2 [0]",
              "m T[33,17] inf [1] true", "s T[33,17] -inf [1]", "m T[33,17] 0 [1]", "m T[129] -1.5",
              "m T[33,17] 1.1 [1]"), /* which f32 does not hold */
     CF_COMPLEX, CF_R_CUSTOM(cf_l_norm), CF_NONZERO, 0, CF_G_SELECT(96)},
    {"aten::all.dim", cf_true_texts, CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    {"aten::all", cf_all_texts, CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    {"aten::max", cf_whole_texts, CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO,
     CF_G_SELECT(4)},
    {"aten::min", cf_min_texts, CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO,
     CF_G_SELECT(4)},
    {"aten::max.dim", cf_extremum_texts, CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_SELECT(4)},
    {"aten::max.dim", CF_TEXTS("m T[300,70] 0", "s T[2,301,3] 1", "m T[5000,3]<9 0", "m T[70,2,33]<3 0"),
     CF_BIT(F32) | CF_BIT(BF16) | CF_BIT(I64), CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::min.dim", cf_extremum_texts, CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_SELECT(4)},
    {"aten::aminmax", cf_minmax_texts, CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO,
     CF_G_SELECT(5)},
    {"aten::std.correction", cf_one_std_texts, CF_FLOATS | CF_COMPLEX, CF_R_CUSTOM(cf_l_std), CF_VALUES, CF_ORDERED,
     CF_G_CUSTOM(cf_g_std, 80)},
    {"aten::var_mean.correction", cf_spread_texts, CF_FLOATS | CF_COMPLEX, CF_R_CUSTOM(cf_l_var), CF_VALUES, CF_ORDERED,
     CF_G_CUSTOM(cf_g_var, 72)},
    {"aten::std_mean.correction", cf_spread_texts, CF_FLOATS | CF_COMPLEX, CF_R_CUSTOM(cf_l_std), CF_VALUES, CF_ORDERED,
     CF_G_CUSTOM(cf_g_std, 80)},
    {"aten::norm.ScalarOpt_dim", cf_old_norm_texts, CF_FLOATS | CF_COMPLEX, CF_R_CUSTOM(cf_l_norm), CF_NONZERO,
     CF_ORDERED, CF_G_SELECT(80)},
    {"aten::nansum", cf_numbers_texts, CF_ANY_DTYPE, CF_R_SUM(CF_TERMS_RATIO), CF_VALUES,
     CF_SPECIAL | CF_WIDE | CF_ORDERED, CF_G_LINEAR(0)},
    CF_NARROWED_FLOATS("nansum", "[1]", CF_SPECIAL | CF_WIDE),
    CF_NARROWED_INTS("nansum", "[1]"),
    {"aten::count_nonzero", cf_count_texts, CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE,
     CF_G_NONE},
    {"aten::logsumexp", cf_lse_texts, CF_FLOATS, CF_R_CUSTOM(cf_l_logsumexp), CF_VALUES, CF_ORDERED,
     CF_G_CUSTOM(cf_g_logsumexp, 12)},
    {"aten::histc",
     CF_TEXTS("s T[33,17] 10 -2 2", "m T[1025] 7", "m T[129] 5 0 1", "s T[] 3", "s T[0] 4", "m T[13]=2 4",
              "m T[20001] 31", "m T[129] 5000 -1 1"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_histc), CF_VALUES, 0, CF_G_NONE},
    {"aten::histc",
     CF_TEXTS("m T[33,17] 10 -5 90", "m T[1025] 7", "m T[129] 13 0 26", "m T[0] 3", "m T[20001] 5 -3 3",
              "m T[33] 5000 -9 9"),
     CF_BIT(I64) | CF_BIT(I32), CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    /* quotients that f32 does not hold */
    {"aten::histc", CF_TEXTS("m T[1025]<1000003 100003 0 1000003"), CF_BIT(I64) | CF_BIT(I32), CF_R_EXACT, CF_VALUES,
     CF_FLAT, CF_G_NONE},
    {"aten::bincount",
     CF_TEXTS("s T[129]<17", "m T[1025]<100", "m T[33]<5 _ 20", "s T[0] _ 3", "m T[1]=0", "m T[20001]<3",
              "s T[33]<5 _ 5000", "m T[35003]<100"),
     CF_INTS, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::bincount",
     CF_TEXTS("m i64[1025]<100 T[1025]", "m i64[33]<5000 T[33] 9000", "m i64[20001]<20001 T[20001]", "m i64[0] T[0] 3",
              "m i64[35003]<1500 T[35003]",
              "m i64[20001]<1500 T[20001] 16384"), /* stretches, and as many bins as one has */
     CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, 0, CF_G_NONE},
    {"prims::prod",
     CF_TEXTS("s T[33,17] [1]", "m T[33,17] [0]", "m T[3,5,7] [0,2]", "m T[129] _", "m T[3,5] []", "m T[0,3] [0]",
              "m T[3,5,7] [-1,0]"),
     CF_REALS,
     {.klass = CF_PROD},
     CF_NONZERO,
     CF_ORDERED,
     CF_G_NONE},
    {"prims::xor_sum",
     CF_TEXTS("s T[33,17] [1]", "m T[33,17] [0]", "m T[3,5,7] [0,2]", "m T[1025] _", "m T[0,3] [0]",
              "m T[3,5,7] [-1,0]"),
     CF_INTS, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"prims::xor_sum", CF_TEXTS("m T[33,17] [1] output_dtype=i64", "m T[33,17] [0] output_dtype=i32"),
     CF_BIT(I32) | CF_BIT(U8), CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"prims::prod",
     CF_TEXTS("m T[13,17] [1] output_dtype=f32", "m T[13,17] [1] output_dtype=f64"),
     CF_BIT(F16) | CF_BIT(I32),
     {.klass = CF_PROD},
     CF_NONZERO,
     0,
     CF_G_NONE},
    {"aten::equal",
     CF_TEXTS("s T[33,17] T[33,17]", "m T[33,17]<3 T[33,17]<3", "m T[33,17]=2 T[33,17]=2", "m T[13]=1 T[1,13]=1",
              "m T[3,5] T[5,3]", "m T[]=3 T[]=3", "m T[0] T[0]"),
     CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    /* Offsets `<N!` rise by one and leave out the first element and the last ones. */
    {"aten::segment_reduce",
     CF_TEXTS("s T[33,17] 'sum' lengths=i64[3]=11", "m T[1025] 'sum' lengths=i64[3]<300 unsafe=true initial=0.5",
              "s T[3,13,17] 'sum' offsets=i64[3,5]<13! axis=1", "m T[12,5] 'sum' lengths=i32[4]=3",
              "m T[0,5] 'sum' lengths=i64[3]=0", "m T[5,12] 'sum' lengths=i64[5,4]=3 axis=1",
              "m T[3,12,5] 'sum' lengths=i64[3,4]=3 axis=-2"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(0)},
    {"aten::segment_reduce",
     CF_TEXTS("m T[33,17] 'mean' lengths=i64[3]=11", "s T[3,12,5] 'mean' lengths=i64[3,4]=3 axis=1 initial=2",
              "m T[33] 'mean' offsets=i64[5]<33!", "m T[0,5] 'mean' lengths=i64[3]=0"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_RATIO), CF_VALUES, CF_ORDERED, CF_G_LINEAR(2)},
    {"aten::segment_reduce",
     CF_TEXTS("m T[33,17] 'max' lengths=i64[3]=11", "s T[1025] 'min' lengths=i64[3]<300 unsafe=true",
              "m T[3,13,17] 'max' offsets=i64[3,5]<13! axis=1", "m T[12,5] 'min' lengths=i64[4]=3 initial=0.5",
              "m T[0,5] 'max' lengths=i64[3]=0"),
     CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(4)},
    {"aten::segment_reduce",
     CF_TEXTS("m T[33,17] 'prod' lengths=i64[3]=11", "m T[12,5] 'prod' lengths=i64[4]=3 initial=0.5",
              "m T[33] 'prod' offsets=i64[5]<33!"),
     CF_FLOATS,
     {.klass = CF_PROD},
     CF_NONZERO,
     CF_ORDERED,
     CF_G_PRODUCT},
    /* ends that are not whole */
    {"aten::histc", CF_TEXTS("m T[33,17] 10 -1.5 3.75"), CF_BIT(I64) | CF_BIT(I32), CF_R_EXACT, CF_VALUES, CF_FLAT,
     CF_G_NONE},
};

CF_TOPIC(reduction, "reduction", cf_reduction_ops);
