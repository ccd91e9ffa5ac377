#include <math.h>

#include "conformance/cases/families.h"

/* (x - y)^2: the difference and the square round, then a sum of positive terms and a division. */
static void cf_l_mse(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  long double n = o->numel ? (long double)k->in[0].numel / (long double)o->numel : 1, u = cf_u_acc(k->dtypes[out]);
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = (cf_growth(n) + 4) * u * fabsl(o->v[i].re) + cf_ulp(k->dtypes[out], o->v[i].re) / 2;
}

/* ---- losses of pairs: the sum of the absolute terms of an element, of which `n` are rounded; then a sum of those ----
 */

typedef long double (*cf_pair_fn)(long double x, long double y, long double z);
static void cf_pair_limit(const cf_check *k, uint32_t out, long double *limits, cf_pair_fn terms, const char *number,
                          long double n) {
  const cf_array *x = &k->in[0], *y = &k->in[1], *o = &k->outs[out], *w = cf_arg_array(k, "weight");
  long double z = cf_arg_number(k->call, number, 1), total = 0, u = cf_u_acc(k->dtypes[out]);
  bool each = cf_arg_int(k->call, "reduction", 1) == 0, mean = cf_arg_int(k->call, "reduction", 1) == 1;
  for (int64_t i = 0; i < x->numel; i++) {
    long double term = terms(x->v[i].re, y->v[i].re, z) * (w ? fabsl(w->v[i % w->numel].re) : 1);
    total += term;
    if (each) limits[i] = n * u * term + cf_ulp(k->dtypes[out], o->v[i].re) / 2;
  }
  if (each) return;
  if (mean) total /= (long double)x->numel;
  limits[0] = (cf_growth((long double)x->numel) + n) * u * total + cf_ulp(k->dtypes[out], o->v[0].re) / 2;
}

static long double cf_smooth_terms(long double x, long double y, long double z) {
  long double d = fabsl(x - y);
  return d < z ? d * d / (2 * z) : d + z / 2;
}
static void cf_l_smooth(const cf_check *k, uint32_t out, long double *l) {
  cf_pair_limit(k, out, l, cf_smooth_terms, "beta", 6);
}
static long double cf_huber_terms(long double x, long double y, long double z) {
  long double d = fabsl(x - y);
  return d <= z ? d * d / 2 : z * (d + z / 2);
}
static void cf_l_huber(const cf_check *k, uint32_t out, long double *l) {
  cf_pair_limit(k, out, l, cf_huber_terms, "delta", 6);
}
/* (1 - y) log(1 - x) + y log(x): logarithms 3 ulp, kept above -100 */
static long double cf_entropy_terms(long double x, long double y, long double z) {
  (void)z;
  return fabsl(1 - y) * fminl(fabsl(log1pl(-x)), 100) + fabsl(y) * fminl(fabsl(logl(x)), 100);
}
static void cf_l_entropy(const cf_check *k, uint32_t out, long double *l) {
  cf_pair_limit(k, out, l, cf_entropy_terms, "", 12);
}
/* Of self: (x - y) / (x (1 - x)). Of target: log(1 - x) - log(x), where 1 - x is rounded. */
static void cf_t_entropy(const cf_check *k, uint32_t in, long double *terms) {
  const cf_array *x = &k->in[0], *y = &k->in[1], *w = cf_arg_array(k, "weight");
  bool each = cf_arg_int(k->call, "reduction", 1) == 0, mean = cf_arg_int(k->call, "reduction", 1) == 1;
  for (int64_t i = 0; i < k->in[in].numel && in < 2; i++) {
    long double p = x->v[i].re, g = fabsl(k->g[0].v[each ? i : 0].re) * (w ? fabsl(w->v[i % w->numel].re) : 1);
    if (mean) g /= (long double)x->numel;
    long double slope = fabsl(p - y->v[i].re) / fmaxl(p * (1 - p), 1e-12L);
    terms[i] = g * (in ? fabsl(log1pl(-p)) + fabsl(logl(p)) + 1 : slope);
  }
}

/* reduction: 0 none, 1 mean, 2 sum */
static const cf_op cf_loss_ops[] = {
    {"aten::nll_loss_forward",
     CF_TEXTS("s T[13,5] i64[13]<5 T[5]+ 1 -100", "m T[13,5] i64[13]<5 _ 2 -100", "m T[129,3] i64[129]<3 T[3]+ 0 -100",
              "m T[33,17] i64[33]<17 _ 1 3", "m T[5] i64[]<5 _ 1 -100"),
     CF_FLOATS,
     {.klass = CF_SUM, .terms = CF_TERMS_RATIO, .ulps = 3},
     CF_VALUES,
     CF_ORDERED,
     CF_G_LINEAR(4)},
    {"aten::nll_loss_backward",
     CF_TEXTS("s T[] T[13,5] i64[13]<5 T[5]+ 1 -100 T[]+", "m T[] T[13,5] i64[13]<5 _ 2 -100 T[]+",
              "m T[129] T[129,3] i64[129]<3 T[3]+ 0 -100 T[]+"),
     CF_FLOATS, CF_R_ULPS(3), CF_VALUES, 0, CF_G_NONE},
    {"aten::nll_loss2d_forward",
     CF_TEXTS("s T[3,5,7,3] i64[3,7,3]<5 T[5]+ 1 -100", "m T[3,5,7,3] i64[3,7,3]<5 _ 2 -100",
              "m T[2,17,13,3] i64[2,13,3]<17 T[17]+ 0 -100", "m T[2,3,33,17] i64[2,33,17]<3 _ 1 2",
              "m T[1,3,1,1] i64[1,1,1]<3 _ 1 -100"),
     CF_FLOATS,
     {.klass = CF_SUM, .terms = CF_TERMS_RATIO, .ulps = 3},
     CF_VALUES,
     CF_ORDERED,
     CF_G_LINEAR(4)},
    {"aten::nll_loss2d_backward",
     CF_TEXTS("m T[] T[3,5,7,3] i64[3,7,3]<5 T[5]+ 1 -100 T[]+", "m T[] T[3,5,7,3] i64[3,7,3]<5 _ 2 -100 T[]+",
              "m T[2,13,3] T[2,17,13,3] i64[2,13,3]<17 T[17]+ 0 -100 T[]+",
              "m T[] T[2,3,33,17] i64[2,33,17]<3 _ 1 2 T[]+"),
     CF_FLOATS, CF_R_ULPS(3), CF_VALUES, 0, CF_G_NONE},
    {"aten::mse_loss",
     CF_TEXTS("s T[13,17] T[13,17]", "m T[13,17] T[13,17] 0", "m T[1025] T[1025] 2", "m T[3,13,17] T[3,13,17]",
              "m T[] T[]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_mse), CF_VALUES, CF_ORDERED, CF_G_SELECT(6)},
    {"aten::mse_loss_backward",
     CF_TEXTS("s T[] T[13,17] T[13,17] 1", "m T[13,17] T[13,17] T[13,17] 0", "m T[] T[1025] T[1025] 2"), CF_FLOATS,
     CF_R_ULPS(4), CF_VALUES, 0, CF_G_NONE},
    {"aten::smooth_l1_loss",
     CF_TEXTS("m T[13,17] T[13,17]", "s T[129] T[129] 0 0.5", "m T[1025] T[1025] 2 0.25", "m T[3,13,17] T[3,13,17] 1 2",
              "m T[] T[]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_smooth), CF_VALUES, CF_ORDERED, CF_G_SELECT(6)},
    {"aten::smooth_l1_loss_backward",
     CF_TEXTS("m T[] T[13,17] T[13,17] 1 0.5", "s T[129] T[129] T[129] 0 1", "m T[] T[1025] T[1025] 2 0.25"), CF_FLOATS,
     CF_R_ULPS(5), CF_VALUES, 0, CF_G_NONE},
    {"aten::huber_loss",
     CF_TEXTS("m T[13,17] T[13,17]", "s T[129] T[129] 0 0.5", "m T[1025] T[1025] 2 0.25", "m T[3,13,17] T[3,13,17] 1 2",
              "m T[] T[]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_huber), CF_VALUES, CF_ORDERED, CF_G_SELECT(6)},
    {"aten::huber_loss_backward",
     CF_TEXTS("m T[] T[13,17] T[13,17] 1 0.5", "s T[129] T[129] T[129] 0 1", "m T[] T[1025] T[1025] 2 0.25"), CF_FLOATS,
     CF_R_ULPS(5), CF_VALUES, 0, CF_G_NONE},
    {"aten::binary_cross_entropy",
     CF_TEXTS("m T[13,17] T[13,17]", "s T[129] T[129] _ 0", "m T[33,17] T[33,17] T[33,17]+ 1",
              "m T[33,17] T[33,17] T[17]+ 0", "m T[1025] T[1025] _ 2", "m T[] T[]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_entropy), CF_PROBABILITY, CF_ORDERED, CF_G_CUSTOM(cf_t_entropy, 12)},
    {"aten::binary_cross_entropy_backward",
     CF_TEXTS("m T[] T[13,17] T[13,17] _ 1", "s T[129] T[129] T[129] _ 0", "m T[] T[33,17] T[33,17] T[33,17]+ 1",
              "m T[13,17] T[13,17] T[13,17] T[17]+ 0", "m T[] T[1025] T[1025] _ 2"),
     CF_FLOATS, CF_R_ULPS(8), CF_PROBABILITY, 0, CF_G_NONE},
};

CF_FAMILY(loss, "loss");
