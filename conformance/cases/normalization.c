/* Layer, group and batch normalization: one analysis for the three, which differ in which elements share a mean and
 * which share a weight; and root mean square normalization. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cases/rows.h"

/* Which statistic and which weight an element belongs to: cf_stat_of and cf_weight_of. */
typedef struct cf_geometry {
  int64_t numel, stats, weights;
  int kind; /* 0 layer, 1 group, 2 batch */
  int64_t inner, channels, group_channels;
} cf_geometry;

static cf_geometry cf_layer_geometry(const cf_check *k, const cf_array *x) {
  const op_schema *schema = k->call->text.schema;
  int64_t row = 1;
  for (uint32_t a = 0; a < schema->nargs; a++) {
    const graft_value *v = &k->call->text.args[a];
    if (strcmp(schema->args[a].name, "normalized_shape") != 0) continue;
    for (uint32_t i = 0; i < v->count; i++) row *= v->as.ints[i];
  }
  return (cf_geometry){x->numel, row ? x->numel / row : 0, row, 0, row, 0, 0};
}

static cf_geometry cf_group_geometry(const cf_check *k, const cf_array *x) {
  int64_t n = cf_arg_int(k->call, "N", 1), c = cf_arg_int(k->call, "C", 1), inner = cf_arg_int(k->call, "HxW", 1);
  int64_t groups = cf_arg_int(k->call, "group", 1);
  return (cf_geometry){x->numel, n * groups, c, 1, inner, c, c / groups};
}

static cf_geometry cf_batch_geometry(const cf_check *k, const cf_array *x) {
  (void)k;
  int64_t c = x->ndim > 1 ? x->sizes[1] : 1, inner = 1;
  for (int32_t d = 2; d < x->ndim; d++) inner *= x->sizes[d];
  return (cf_geometry){x->numel, c, c, 2, inner, c, 1};
}

static int64_t cf_stat_of(const cf_geometry *g, int64_t i) {
  if (g->kind == 0) return i / g->inner;
  if (g->kind == 1) return i / g->inner / g->group_channels;
  return i / g->inner % g->channels;
}

static int64_t cf_weight_of(const cf_geometry *g, int64_t i) {
  return g->kind == 0 ? i % g->inner : i / g->inner % g->channels;
}

/* ---- forward ---- */

typedef struct cf_moments { /* of one statistic, exact, with their first-order errors in absolute terms */
  long double mean, size, var, spread, rstd, mean_error, rstd_relative;
} cf_moments;

/* mean: a sum. var: the mean of squares of differences, each off by u of itself and by the mean's error. rstd: half the
 * relative error of var + eps, and 2 ulp of rsqrt. */
static cf_moments *cf_moments_of(const cf_array *x, const cf_geometry *g, long double u, double eps) {
  cf_moments *m = calloc((size_t)g->stats + 1, sizeof *m);
  long double n = g->stats ? (long double)g->numel / (long double)g->stats : 1;
  for (int64_t i = 0; m && i < g->numel; i++) {
    cf_moments *s = &m[cf_stat_of(g, i)];
    s->mean += x->v[i].re / n, s->size += fabsl(x->v[i].re) / n;
  }
  for (int64_t i = 0; m && i < g->numel; i++) {
    cf_moments *s = &m[cf_stat_of(g, i)];
    long double d = x->v[i].re - s->mean;
    s->var += d * d / n, s->spread += fabsl(d) / n;
  }
  for (int64_t i = 0; m && i < g->stats; i++) {
    cf_moments *s = &m[i];
    s->rstd = 1 / sqrtl(s->var + eps);
    s->mean_error = (cf_growth(n) + 1) * u * s->size;
    long double var_error = (cf_growth(n) + 4) * u * s->var + (2 * s->spread + s->mean_error) * s->mean_error;
    s->rstd_relative = 0.5L * var_error / (s->var + eps) + 5 * u;
  }
  return m;
}

/* y = (x - m) r w + b. */
static void cf_norm_value_limits(const cf_check *k, const cf_geometry *g, const cf_moments *m, long double *limits) {
  const cf_array *x = &k->in[0], *w = cf_arg_array(k, "weight"), *b = cf_arg_array(k, "bias"), *o = &k->outs[0];
  long double u = cf_u_acc(k->dtypes[0]);
  for (int64_t i = 0; i < g->numel; i++) {
    const cf_moments *s = &m[cf_stat_of(g, i)];
    int64_t c = cf_weight_of(g, i);
    long double scale = s->rstd * (w ? fabsl(w->v[c].re) : 1), shift = b ? fabsl(b->v[c].re) : 0;
    long double d = fabsl(x->v[i].re - s->mean), size = fabsl(x->v[i].re) + fabsl(s->mean);
    /* x r - m r with a fused multiply-add is right, too: its terms are those of |x| and |m|. */
    long double error = scale * (2 * u * size + s->mean_error) + scale * d * (s->rstd_relative + 3 * u);
    limits[i] = error + 2 * u * (scale * d + shift) + cf_ulp(k->dtypes[0], o->v[i].re) / 2;
  }
}

static void cf_norm_limits(const cf_check *k, uint32_t out, cf_geometry g, long double *limits) {
  graft_dtype dtype = k->dtypes[out < k->nouts ? out : 0];
  cf_moments *m = cf_moments_of(&k->in[0], &g, cf_u_acc(dtype), cf_arg_number(k->call, "eps", 0));
  if (!m) return;
  if (out == 0) cf_norm_value_limits(k, &g, m, limits);
  for (int64_t i = 0; out == 1 && i < g.stats; i++) limits[i] = m[i].mean_error + cf_ulp(dtype, m[i].mean) / 2;
  for (int64_t i = 0; out == 2 && i < g.stats; i++)
    limits[i] = m[i].rstd_relative * m[i].rstd + cf_ulp(dtype, m[i].rstd) / 2;
  free(m);
}

static void cf_l_layer_norm(const cf_check *k, uint32_t out, long double *l) {
  cf_norm_limits(k, out, cf_layer_geometry(k, &k->in[0]), l);
}
static void cf_l_group_norm(const cf_check *k, uint32_t out, long double *l) {
  cf_norm_limits(k, out, cf_group_geometry(k, &k->in[0]), l);
}

/* Running statistics: (1 - momentum) old + momentum new. */
static void cf_running_limits(const cf_check *k, const cf_geometry *g, uint32_t spec, long double *limits) {
  bool is_var = cf_arg_array(k, "running_var") == &k->in[spec];
  graft_dtype dtype = k->in[spec].dtype;
  long double u = cf_u_acc(dtype), p = fabs(cf_arg_number(k->call, "momentum", 0.1));
  long double n = g->stats ? (long double)g->numel / (long double)g->stats : 1;
  cf_moments *m = cf_moments_of(&k->in[0], g, u, 0);
  for (int64_t i = 0; m && i < g->stats; i++) {
    long double old = fabsl(k->in[spec].v[i].re), correction = n > 1 ? n / (n - 1) : 1;
    long double now = is_var ? m[i].var * correction : fabsl(m[i].mean);
    long double var_error = ((cf_growth(n) + 6) * u * m[i].var + 2 * m[i].spread * m[i].mean_error) * correction;
    long double error = p * (is_var ? var_error : m[i].mean_error);
    limits[i] = error + 4 * u * (old + p * now) + cf_ulp(dtype, old + p * now);
  }
  free(m);
}

/* In evaluation the running statistics take the place of the moments, and are exact. */
static void cf_eval_limits(const cf_check *k, uint32_t out, const cf_geometry *g, long double *limits) {
  const cf_array *mean = cf_arg_array(k, "running_mean"), *var = cf_arg_array(k, "running_var");
  cf_moments *m = calloc((size_t)g->stats + 1, sizeof *m);
  long double u = cf_u_acc(k->dtypes[0]), eps = cf_arg_number(k->call, "eps", 0);
  for (int64_t i = 0; m && mean && var && i < g->stats; i++) {
    m[i].mean = mean->v[i].re, m[i].rstd = 1 / sqrtl(var->v[i].re + eps), m[i].rstd_relative = 6 * u;
  }
  if (m && out == 0) cf_norm_value_limits(k, g, m, limits);
  for (int64_t i = 0; m && out == 2 && i < k->outs[2].numel; i++)
    limits[i] = m[i].rstd_relative * m[i].rstd + cf_ulp(k->dtypes[2], m[i].rstd) / 2;
  free(m);
}

static void cf_l_batch_norm(const cf_check *k, uint32_t out, long double *l) {
  cf_geometry g = cf_batch_geometry(k, &k->in[0]);
  bool training = cf_arg_int(k->call, "training", 1) != 0;
  if (out >= CF_MAX_TENSORS) {
    if (training) cf_running_limits(k, &g, out - CF_MAX_TENSORS, l);
    return;
  }
  if (training)
    cf_norm_limits(k, out, g, l);
  else
    cf_eval_limits(k, out, &g, l);
}

static void cf_l_batch_norm_fixed(const cf_check *k, uint32_t out, long double *l) {
  cf_geometry g = cf_batch_geometry(k, &k->in[0]);
  cf_eval_limits(k, out, &g, l);
}

/* ---- backward ---- */

/* gx = r (g w - mean(g w) - xh mean(g w xh)), gw = sum g xh, gb = sum g: sums of absolute terms, where xh counts with
 * |x| + |m| for its difference. `which` 0, 1, 2. */
static void cf_norm_terms(const cf_array *x, const cf_array *gy, const cf_array *w, const cf_geometry *g,
                          const cf_moments *m, int which, bool fixed, long double *terms) {
  long double n = g->stats ? (long double)g->numel / (long double)g->stats : 1;
  long double *a = calloc((size_t)g->stats + 1, sizeof *a), *b = calloc((size_t)g->stats + 1, sizeof *b);
  for (int64_t i = 0; a && b && i < g->numel; i++) {
    int64_t s = cf_stat_of(g, i), c = cf_weight_of(g, i);
    long double d = fabsl(gy->v[i].re), h = m[s].rstd * (fabsl(x->v[i].re) + fabsl(m[s].mean));
    long double dw = d * (w ? fabsl(w->v[c].re) : 1);
    a[s] += dw / n, b[s] += dw * h / n;
    if (which == 1) terms[c] += d * h;
    if (which == 2) terms[c] += d;
  }
  for (int64_t i = 0; a && b && which == 0 && i < g->numel; i++) {
    int64_t s = cf_stat_of(g, i);
    long double dw = fabsl(gy->v[i].re) * (w ? fabsl(w->v[cf_weight_of(g, i)].re) : 1);
    long double h = m[s].rstd * (fabsl(x->v[i].re) + fabsl(m[s].mean));
    terms[i] = m[s].rstd * (dw + (fixed ? 0 : a[s] + h * b[s]));
  }
  free(a), free(b);
}

static int cf_norm_which(const cf_check *k, uint32_t in) {
  if (&k->in[in] == cf_arg_array(k, "weight")) return 1;
  return &k->in[in] == cf_arg_array(k, "bias") ? 2 : 0;
}

static void cf_norm_gradient(const cf_check *k, uint32_t in, cf_geometry g, bool fixed, long double *terms) {
  cf_moments *m = cf_moments_of(&k->in[0], &g, 0, cf_arg_number(k->call, "eps", 0));
  const cf_array *mean = cf_arg_array(k, "running_mean"), *var = cf_arg_array(k, "running_var");
  for (int64_t i = 0; m && fixed && mean && var && i < g.stats; i++) {
    m[i].mean = mean->v[i].re, m[i].rstd = 1 / sqrtl(var->v[i].re + cf_arg_number(k->call, "eps", 0));
  }
  if (m) cf_norm_terms(&k->in[0], &k->g[0], cf_arg_array(k, "weight"), &g, m, cf_norm_which(k, in), fixed, terms);
  free(m);
  /* Cotangents of the mean and rstd outputs add their own terms. */
  int which = cf_norm_which(k, in);
  long double n = g.stats ? (long double)g.numel / (long double)g.stats : 1;
  for (uint32_t o = 1; which == 0 && o < k->nouts; o++)
    for (int64_t i = 0; k->g[o].v && k->g[o].numel == g.stats && i < g.numel; i++) {
      long double r = o == 2 ? fabsl(k->outs[2].v[cf_stat_of(&g, i)].re) : 1;
      terms[i] += fabsl(k->g[o].v[cf_stat_of(&g, i)].re) * (o == 2 ? r * r * r * (fabsl(k->in[0].v[i].re) + 1) : 1) / n;
    }
}

static void cf_g_layer_norm(const cf_check *k, uint32_t in, long double *t) {
  cf_norm_gradient(k, in, cf_layer_geometry(k, &k->in[0]), false, t);
}
static void cf_g_group_norm(const cf_check *k, uint32_t in, long double *t) {
  cf_norm_gradient(k, in, cf_group_geometry(k, &k->in[0]), false, t);
}
static void cf_g_batch_norm(const cf_check *k, uint32_t in, long double *t) {
  cf_norm_gradient(k, in, cf_batch_geometry(k, &k->in[0]), cf_arg_int(k->call, "training", 1) == 0, t);
}

static void cf_g_batch_norm_fixed(const cf_check *k, uint32_t in, long double *t) {
  cf_norm_gradient(k, in, cf_batch_geometry(k, &k->in[0]), true, t);
}

/* The backward slots take mean and rstd as they are. */
static void cf_norm_slot(const cf_check *k, uint32_t out, cf_geometry g, const char *mean, const char *rstd, bool fixed,
                         long double *limits) {
  cf_moments *m = calloc((size_t)g.stats + 1, sizeof *m);
  const cf_array *mu = cf_arg_array(k, mean), *r = cf_arg_array(k, rstd), *o = &k->outs[out];
  for (int64_t i = 0; m && i < g.stats; i++) {
    m[i].mean = mu ? mu->v[i].re : 0, m[i].rstd = r ? fabsl(r->v[i].re) : 1;
    if (fixed && r) m[i].rstd = 1 / sqrtl(r->v[i].re + cf_arg_number(k->call, "eps", 0));
  }
  if (m) cf_norm_terms(&k->in[1], &k->in[0], cf_arg_array(k, "weight"), &g, m, (int)out, fixed, limits);
  long double n = o->numel ? (long double)g.numel / (long double)(out == 0 ? g.stats : o->numel) : 1;
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit_of(k, out, i, (3 * cf_growth(n) + 10) * limits[i]);
  free(m);
}

static void cf_l_layer_norm_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_norm_slot(k, out, cf_layer_geometry(k, &k->in[1]), "mean", "rstd", false, l);
}
static void cf_l_group_norm_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_norm_slot(k, out, cf_group_geometry(k, &k->in[1]), "mean", "rstd", false, l);
}
static void cf_l_batch_norm_backward(const cf_check *k, uint32_t out, long double *l) {
  bool train = cf_arg_int(k->call, "train", 1) != 0;
  cf_norm_slot(k, out, cf_batch_geometry(k, &k->in[1]), train ? "save_mean" : "running_mean",
               train ? "save_invstd" : "running_var", !train, l);
}

/* ---- root mean square normalization ---- */

/* The mean of squares is a sum of positive terms, rstd half its relative error and a square root and a division more;
 * what follows are products. */

/* Elements that share a statistic. */
static int64_t cf_rms_width(const cf_check *k, const cf_array *x) {
  const cf_array *rstd =
      k->call->text.schema->nrets && k->call->schema->args[0].name[0] == 'i' ? &k->outs[1] : cf_arg_array(k, "rstd");
  return rstd->numel ? x->numel / rstd->numel : 1;
}

static void cf_l_rms_norm(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  long double n = (long double)cf_rms_width(k, &k->in[0]), relative = (cf_growth(n) + 4) / 2 + (out ? 4 : 7);
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit_of(k, out, i, relative * fabsl(o->v[i].re));
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
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit_of(k, out, i, (cf_growth(n) + 10) * limits[i]);
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

/* ---- norms that are set ----
 * |v| is a sum of squares and a root; of w and what is shortened a quotient by it, and a product. */

static long double cf_slice_size(const cf_array *v, int64_t dim) {
  return v->ndim && v->sizes[dim] ? (long double)v->numel / (long double)v->sizes[dim] : 1;
}

static void cf_l_weight_norm(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  long double roundings = cf_norm_roundings(2, cf_slice_size(&k->in[0], cf_arg_int(k->call, "dim", 0))) + 3;
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit_of(k, out, i, roundings * fabsl(o->v[i].re));
}

/* gv = g / |v| (gw - v (gw . v) / |v|^2) and gg = (gw . v) / |v|: the absolute terms, of slice s along dim. */
typedef struct cf_lengths {
  long double norm, dots;
} cf_lengths;

static int64_t cf_slice_of(const cf_array *v, int64_t dim, int64_t i) {
  cf_axis a = cf_axis_of(v, dim);
  return i / a.inner % a.length;
}

static void cf_weight_terms(const cf_array *gw, const cf_array *v, const cf_array *g, const cf_array *norms,
                            int64_t dim, bool of_g, long double *terms) {
  int64_t slices = v->sizes[dim];
  cf_lengths *of = calloc((size_t)slices + 1, sizeof *of);
  for (int64_t i = 0; of && i < v->numel; i++) {
    cf_lengths *l = &of[cf_slice_of(v, dim, i)];
    l->norm += v->v[i].re * v->v[i].re;
    l->dots += fabsl(gw->v[i].re * v->v[i].re);
  }
  for (int64_t s = 0; of && s < slices; s++) {
    of[s].norm = norms ? fabsl(norms->v[s].re) : sqrtl(of[s].norm);
    if (of_g) terms[s] = of[s].dots / of[s].norm;
  }
  for (int64_t i = 0; of && !of_g && i < v->numel; i++) {
    int64_t s = cf_slice_of(v, dim, i);
    long double across = fabsl(gw->v[i].re) + fabsl(v->v[i].re) * of[s].dots / (of[s].norm * of[s].norm);
    terms[i] = fabsl(g->v[s].re) / of[s].norm * across;
  }
  free(of);
}

static void cf_g_weight_norm(const cf_check *k, uint32_t in, long double *terms) {
  cf_weight_terms(&k->g[0], &k->in[0], &k->in[1], NULL, cf_arg_int(k->call, "dim", 0), in == 1, terms);
}

static void cf_l_weight_norm_backward(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out], *v = &k->in[1];
  int64_t dim = cf_arg_int(k->call, "dim", 0);
  cf_weight_terms(&k->in[0], v, &k->in[2], &k->in[3], dim, out == 1, limits);
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = cf_limit_of(k, out, i, (cf_growth(cf_slice_size(v, dim)) + 10) * limits[i]);
}

static void cf_l_renorm(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  double p = cf_arg_number(k->call, "p", 2);
  long double roundings = cf_norm_roundings(p, cf_slice_size(&k->in[0], cf_arg_int(k->call, "dim", 0))) + 4;
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit_of(k, out, i, roundings * fabsl(o->v[i].re));
}

/* bound / norm (g - slope (g . x) / norm), or g where the slice is not above the bound. */
static void cf_g_renorm(const cf_check *k, uint32_t in, long double *terms) {
  const cf_array *x = &k->in[in], *g = &k->g[0];
  int64_t dim = cf_arg_int(k->call, "dim", 0);
  double p = cf_arg_number(k->call, "p", 2), bound = cf_arg_number(k->call, "maxnorm", 1);
  cf_lengths *of = calloc((size_t)x->sizes[dim] + 1, sizeof *of);
  for (int64_t i = 0; of && i < x->numel; i++) {
    cf_lengths *l = &of[cf_slice_of(x, dim, i)];
    l->norm = isinf(p) ? fmaxl(l->norm, fabsl(x->v[i].re)) : l->norm + powl(fabsl(x->v[i].re), (long double)p);
    l->dots += fabsl(g->v[i].re * x->v[i].re);
  }
  for (int64_t i = 0; of && i < x->numel; i++) {
    const cf_lengths *l = &of[cf_slice_of(x, dim, i)];
    long double norm = isinf(p) ? l->norm : powl(l->norm, 1 / (long double)p);
    long double slope = isinf(p) ? 1 : powl(fabsl(x->v[i].re) / norm, (long double)p - 1);
    terms[i] = fabsl(g->v[i].re);
    if (norm > (long double)bound * 0.999L)
      terms[i] = terms[i] * fmaxl(1, bound / norm) + bound / norm * slope * l->dots / norm;
  }
  free(of);
}

#define CF_NORM(n, limit, gradient, ...) \
  { "aten::" n, CF_TEXTS(__VA_ARGS__), CF_FLOATS, CF_R_CUSTOM(limit), CF_VALUES, CF_ORDERED, gradient }

#define CF_HALVES (CF_BIT(F16) | CF_BIT(BF16))

static const cf_op cf_normalization_ops[] = {
    CF_NORM("native_layer_norm", cf_l_layer_norm, CF_G_CUSTOM(cf_g_layer_norm, 160),
            "s T[13,33] [33] T[33] T[33] 1e-05", "s T[3,13,17] [13,17] _ _ 1e-05", "m T[5,129] [129] T[129] _ 1e-05",
            "m T[1,1025] [1025] T[1025] T[1025] 1e-05", "m T[0,3] [3] T[3] T[3] 1e-05",
            "m T[70,16] [16] T[16] T[16] 1e-05", "m T[3,1032] [1032] T[1032] T[1032] 1e-05",
            "m T[2,9001] [9001] T[9001] T[9001] 1e-05", "f T[2,3,1,17] [17] T[17] T[17] 1e-05"),
    CF_NORM("native_group_norm", cf_l_group_norm, CF_G_CUSTOM(cf_g_group_norm, 160),
            "s T[2,6,13] T[6] T[6] 2 6 13 3 1e-05", "m T[2,6,5,7] _ _ 2 6 35 2 1e-05",
            "m T[3,4,17] T[4] T[4] 3 4 17 4 1e-05", "m T[2,4,1073] T[4] T[4] 2 4 1073 2 1e-05",
            "m T[1,4,33] T[4] _ 1 4 33 1 1e-05"),
    CF_NORM("native_batch_norm", cf_l_batch_norm, CF_G_CUSTOM(cf_g_batch_norm, 160),
            "s T[5,6,7,3] T[6] T[6] T[6] T[6]+ true 0.1 1e-05", "s T[5,6,7] T[6] T[6] T[6] T[6]+ false 0.1 1e-05",
            "m T[13,3] T[3] T[3] T[3] T[3]+ true 0.25 1e-05", "m T[5,6,7] _ _ T[6] T[6]+ true 0.1 1e-05",
            "m T[5,6,7] T[6] T[6] _ _ true 0.1 1e-05", "m T[2,3,1073] T[3] T[3] T[3] T[3]+ true 0.1 1e-05",
            "f T[3,5,13,17] T[5] T[5] T[5] T[5]+ true 0.1 1e-05"),
    CF_NORM("_native_batch_norm_legit", cf_l_batch_norm, CF_G_CUSTOM(cf_g_batch_norm, 160),
            "m T[5,6,7,3] T[6] T[6] T[6] T[6]+ true 0.1 1e-05", "m T[5,6,7] T[6] T[6] T[6] T[6]+ false 0.1 1e-05",
            "m T[13,3] _ _ T[3] T[3]+ true 0.25 1e-05"),
    CF_NORM("_native_batch_norm_legit.no_stats", cf_l_batch_norm, CF_G_CUSTOM(cf_g_batch_norm, 160),
            "m T[5,6,7] T[6] T[6] true 0.1 1e-05", "m T[13,3] _ _ true 0.1 1e-05"),
    CF_NORM("_native_batch_norm_legit_no_training", cf_l_batch_norm_fixed, CF_G_CUSTOM(cf_g_batch_norm_fixed, 160),
            "m T[5,6,7] T[6] T[6] T[6] T[6]+ 0.1 1e-05", "m T[13,3] _ _ T[3] T[3]+ 0.1 1e-05"),
    CF_NORM("native_layer_norm_backward", cf_l_layer_norm_backward, CF_G_NONE,
            "s T[13,33] T[13,33] [33] T[13,1] T[13,1]+ T[33] T[33] [1,1,1]",
            "m T[5,129] T[5,129] [129] T[5,1] T[5,1]+ _ _ [1,0,0]",
            "m T[13,33] T[13,33] [33] T[13,1] T[13,1]+ T[33] T[33] [0,1,1]",
            "m T[70,16] T[70,16] [16] T[70,1] T[70,1]+ T[16] T[16] [1,1,1]",
            "m T[600,5] T[600,5] [5] T[600,1] T[600,1]+ T[5] T[5] [1,1,1]",
            "m T[3,1032] T[3,1032] [1032] T[3,1] T[3,1]+ T[1032] T[1032] [1,1,1]",
            "m T[2,9001] T[2,9001] [9001] T[2,1] T[2,1]+ T[9001] T[9001] [1,1,1]"),
    {"aten::native_layer_norm_backward",
     CF_TEXTS("m T[13,33] T[13,33] [33] f32[13,1] f32[13,1]+ f32[33] f32[33] [1,1,1]",
              "m T[13,33] T[13,33] [33] f32[13,1] T[13,1]+ T[33] T[33] [1,1,1]"),
     CF_HALVES, CF_R_CUSTOM(cf_l_layer_norm_backward), CF_VALUES, CF_ORDERED, CF_G_NONE},
    CF_NORM("native_group_norm_backward", cf_l_group_norm_backward, CF_G_NONE,
            "s T[2,6,13] T[2,6,13] T[2,3] T[2,3]+ T[6] 2 6 13 3 [1,1,1]",
            "m T[2,6,35] T[2,6,35] T[2,2] T[2,2]+ _ 2 6 35 2 [1,0,0]",
            "m T[3,4,7] T[3,4,7] T[3,2] T[3,2]+ T[4] 3 4 7 2 [1,1,1]",
            "m T[2,4,1073] T[2,4,1073] T[2,2] T[2,2]+ T[4] 2 4 1073 2 [1,1,1]"),
    CF_NORM("native_batch_norm_backward", cf_l_batch_norm_backward, CF_G_NONE,
            "s T[5,6,7] T[5,6,7] T[6] T[6] T[6]+ T[6] T[6]+ true 1e-05 [1,1,1]",
            "m T[5,6,7] T[5,6,7] T[6] T[6] T[6]+ T[6] T[6]+ false 1e-05 [1,1,1]",
            "s T[13,3] T[13,3] _ _ _ T[3] T[3]+ true 1e-05 [1,0,0]",
            "m T[2,3,1073] T[2,3,1073] T[3] T[3] T[3]+ T[3] T[3]+ true 1e-05 [1,1,1]",
            "m T[5,6,7] T[5,6,7] T[6] T[6] T[6]+ _ _ false 1e-05 [1,1,1]"),

    /* Parameters and statistics in f32 beside inputs of half types. */
    {"aten::native_layer_norm", CF_TEXTS("m T[13,33] [33] f32[33] f32[33] 1e-05", "m T[5,129] [129] f32[129] _ 1e-05"),
     CF_HALVES, CF_R_CUSTOM(cf_l_layer_norm), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::native_group_norm", CF_TEXTS("m T[2,6,13] f32[6] f32[6] 2 6 13 3 1e-05"), CF_HALVES,
     CF_R_CUSTOM(cf_l_group_norm), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::native_batch_norm",
     CF_TEXTS("m T[5,6,7] f32[6] f32[6] f32[6] f32[6]+ true 0.1 1e-05",
              "m T[5,6,7] f32[6] f32[6] f32[6] f32[6]+ false 0.1 1e-05"),
     CF_HALVES, CF_R_CUSTOM(cf_l_batch_norm), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::_fused_rms_norm", CF_TEXTS("m T[13,33] [33] f32[33] 1e-05"), CF_HALVES, CF_R_CUSTOM(cf_l_rms_norm),
     CF_VALUES, CF_ORDERED, CF_G_NONE},

    {"aten::_fused_rms_norm",
     CF_TEXTS("s T[13,33] [33] T[33] 1e-05", "m T[3,13,17] [13,17] _ 1e-05", "m T[5,129] [129] T[129] 1e-06",
              "m T[1,1025] [1025] T[1025] 1e-05", "m T[0,3] [3] T[3] 1e-05", "m T[70,16] [16] T[16] 1e-05",
              "m T[3,1032] [1032] T[1032] 1e-05", "s T[2,9001] [9001] T[9001] 1e-05", "f T[2,3,5,17] [17] T[17] 1e-05"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_rms_norm), CF_VALUES, CF_ORDERED, CF_G_CUSTOM(cf_g_rms_norm, 160)},
    {"aten::_fused_rms_norm_backward",
     CF_TEXTS("s T[13,33] T[13,33] [33] f32[13,1]+ T[33] [1,1]", "m T[5,129] T[5,129] [129] f32[5,1]+ _ [1,0]",
              "m T[129,5] T[129,5] [5] f32[129,1]+ T[5] [0,1]", "m T[4200,17] T[4200,17] [17] f32[4200,1]+ T[17] [0,1]",
              "m T[70,16] T[70,16] [16] f32[70,1]+ T[16] [1,1]", "m T[3,1032] T[3,1032] [1032] f32[3,1]+ T[1032] [1,1]",
              "m T[2,5001] T[2,5001] [5001] f32[2,1]+ T[5001] [1,1]", "m T[5,3] T[5,3] [3] f32[5,1]+ T[3] [0,1]",
              "m T[0,3] T[0,3] [3] f32[0,1]+ T[3] [1,1]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_rms_norm_backward), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::_weight_norm_interface",
     CF_TEXTS("s T[13,33] T[13,1] 0", "m T[5,3,17] T[1,1,17] 2", "m T[33,3,5,5] T[33,1,1,1] 0", "m T[17] T[17] 0",
              "m T[3,129] T[129] 1"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_weight_norm), CF_NONZERO, CF_ORDERED, CF_G_CUSTOM(cf_g_weight_norm, 80)},
    {"aten::_weight_norm_interface_backward",
     CF_TEXTS("m T[13,33] T[13,33] T[13,1] T[13,1]+ 0", "m T[5,3,17] T[5,3,17] T[1,1,17] T[1,1,17]+ 2"),
     CF_BIT(F32) | CF_BIT(F64), CF_R_CUSTOM(cf_l_weight_norm_backward), CF_NONZERO, CF_ORDERED, CF_G_NONE},
    {"aten::renorm",
     CF_TEXTS("s T[13,33] 2 0 5.0", "m T[13,33] 1 1 8.0", "m T[3,13,17] 3 1 2.0", "m T[13,17] 2 -1 1000.0",
              "m T[5,17] 0.5 0 3.0", "m T[0,3] 2 0 1.0", "m T[3,0] 2 0 1.0"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_renorm), CF_NONZERO, CF_ORDERED, CF_G_CUSTOM(cf_g_renorm, 160)},
};

CF_TOPIC(normalization, "normalization", cf_normalization_ops);
