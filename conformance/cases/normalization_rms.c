/* Root mean square normalization: the mean of squares is a sum of positive terms, rstd half its relative error and a
 * square root and a division more; what follows are products. */
#include <math.h>

#include "conformance/cases/families.h"

/* Elements that share a statistic. */
static int64_t cf_rms_width(const cf_check *k, const cf_array *x) {
  const cf_array *rstd =
      k->call->text.schema->nrets && k->call->schema->args[0].name[0] == 'i' ? &k->outs[1] : cf_arg_array(k, "rstd");
  return rstd->numel ? x->numel / rstd->numel : 1;
}

static void cf_l_rms_norm(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  long double n = (long double)cf_rms_width(k, &k->in[0]), u = cf_u_acc(k->dtypes[out]);
  long double relative = (cf_growth(n) + 4) / 2 + 4;
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = (relative + (out ? 0 : 3)) * u * fabsl(o->v[i].re) + cf_ulp(k->dtypes[out], o->v[i].re) / 2;
}

/* The absolute terms: of x r |g w| + |x| r^3 mean|g w x|, of the weight the sum of |g x r|. */
static void cf_rms_terms(const cf_array *x, const cf_array *g, const cf_array *w, const cf_array *rstd, bool of_weight,
                         long double *terms) {
  int64_t width = rstd->numel ? x->numel / rstd->numel : 1;
  for (int64_t r = 0; r < rstd->numel; r++) {
    long double scale = fabsl(rstd->v[r].re), mean = 0;
    for (int64_t k = 0; k < width; k++) {
      long double gx = fabsl(g->v[r * width + k].re * x->v[r * width + k].re);
      if (of_weight) terms[k] += gx * scale;
      mean += gx * (w ? fabsl(w->v[k].re) : 1) / (long double)width;
    }
    for (int64_t k = 0; !of_weight && k < width; k++) {
      long double gw = fabsl(g->v[r * width + k].re) * (w ? fabsl(w->v[k].re) : 1);
      terms[r * width + k] = scale * gw + fabsl(x->v[r * width + k].re) * scale * scale * scale * mean;
    }
  }
}

static void cf_l_rms_norm_backward(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out], *x = cf_arg_array(k, "input"), *rstd = cf_arg_array(k, "rstd");
  cf_rms_terms(x, cf_arg_array(k, "grad_out"), cf_arg_array(k, "weight"), rstd, out == 1, limits);
  long double n = (long double)(out ? rstd->numel : cf_rms_width(k, x));
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = (cf_growth(n) + 10) * cf_u_acc(k->dtypes[out]) * limits[i] + cf_ulp(k->dtypes[out], o->v[i].re) / 2;
}

/* rstd comes from forward, up to growth(n) / 2 + 6 off for rows of up to 1025: 40, times its third power. */
static void cf_g_rms_norm(const cf_check *k, uint32_t in, long double *terms) {
  const cf_array *w = cf_arg_array(k, "weight");
  const cf_array *x = &k->in[0], *rstd = &k->outs[1];
  bool of_weight = w && &k->in[in] == w;
  cf_rms_terms(x, &k->g[0], w, rstd, of_weight, terms);
  int64_t width = rstd->numel ? x->numel / rstd->numel : 1;
  for (int64_t i = 0; !of_weight && k->g[1].v && i < x->numel; i++) {
    long double r = rstd->v[i / width].re;
    terms[i] += fabsl(k->g[1].v[i / width].re * r * r * r * x->v[i].re) / (long double)width;
  }
}

static const cf_op cf_normalization_rms_ops[] = {
    {"aten::_fused_rms_norm",
     CF_TEXTS("s T[13,33] [33] T[33] 1e-05", "m T[3,13,17] [13,17] _ 1e-05", "m T[5,129] [129] T[129] 1e-06",
              "m T[1,1025] [1025] T[1025] 1e-05", "m T[0,3] [3] T[3] 1e-05", "f T[2,3,5,17] [17] T[17] 1e-05"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_rms_norm), CF_VALUES, CF_ORDERED, CF_G_CUSTOM(cf_g_rms_norm, 160)},
    {"aten::_fused_rms_norm_backward",
     CF_TEXTS("s T[13,33] T[13,33] [33] f32[13,1]+ T[33] [1,1]", "m T[5,129] T[5,129] [129] f32[5,1]+ _ [1,0]",
              "m T[129,5] T[129,5] [5] f32[129,1]+ T[5] [0,1]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_rms_norm_backward), CF_VALUES, CF_ORDERED, CF_G_NONE},
};

CF_FAMILY(normalization_rms, "normalization_rms");
