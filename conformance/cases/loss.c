#include <math.h>

#include "conformance/cases/families.h"

/* (x - y)^2: the difference and the square round, then a sum of positive terms and a division. */
static void cf_l_mse(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  long double n = o->numel ? (long double)k->in[0].numel / (long double)o->numel : 1, u = cf_u_acc(k->dtypes[out]);
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = (cf_growth(n) + 4) * u * fabsl(o->v[i].re) + cf_ulp(k->dtypes[out], o->v[i].re) / 2;
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
     CF_TEXTS("s T[13,17] T[13,17]", "s T[13,17] T[13,17] 0", "m T[1025] T[1025] 2", "m T[3,13,17] T[3,13,17]",
              "m T[] T[]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_mse), CF_VALUES, CF_ORDERED, CF_G_SELECT(6)},
    {"aten::mse_loss_backward",
     CF_TEXTS("s T[] T[13,17] T[13,17] 1", "m T[13,17] T[13,17] T[13,17] 0", "m T[] T[1025] T[1025] 2"), CF_FLOATS,
     CF_R_ULPS(4), CF_VALUES, 0, CF_G_NONE},
};

CF_FAMILY(loss, "loss");
