#include <math.h>

#include "conformance/cases/rows.h"

/* (x - y)^2: the difference and the square round, then a sum of positive terms and a division. */
static void cf_l_mse(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  long double n = o->numel ? (long double)k->in[0].numel / (long double)o->numel : 1;
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit_of(k, out, i, (cf_growth(n) + 4) * fabsl(o->v[i].re));
}

/* ---- losses of pairs: the sum of an element's absolute terms, of which `n` are rounded; then a sum of those ---- */

typedef long double (*cf_pair_fn)(long double x, long double y, long double z);
static void cf_pair_limit(const cf_check *k, uint32_t out, long double *limits, cf_pair_fn terms, const char *number,
                          long double n) {
  const cf_array *x = &k->in[0], *y = &k->in[1], *w = cf_arg_array(k, "weight");
  long double z = cf_arg_number(k->call, number, 1), total = 0;
  bool each = cf_arg_int(k->call, "reduction", 1) == 0, mean = cf_arg_int(k->call, "reduction", 1) == 1;
  for (int64_t i = 0; i < x->numel; i++) {
    long double term = terms(x->v[i].re, y->v[i].re, z) * (w ? fabsl(w->v[i % w->numel].re) : 1);
    total += term;
    if (each) limits[i] = cf_limit_of(k, out, i, n * term);
  }
  if (each) return;
  if (mean) total /= (long double)x->numel;
  limits[0] = cf_limit_of(k, out, 0, (cf_growth((long double)x->numel) + n) * total);
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

/* g y / (1 + exp(x y)): an error of the product x y counts by its own size; exp 3 ulp, four more roundings */
static void cf_l_soft(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *x = &k->in[1], *y = &k->in[2], *o = &k->outs[out];
  for (int64_t i = 0; i < o->numel; i++) {
    long double product = fabsl(x->v[i % x->numel].re * y->v[i % y->numel].re);
    limits[i] = cf_limit_of(k, out, i, (10 + product) * fabsl(o->v[i].re));
  }
}

/* ---- losses of rows of scores: distances margin - x[class] + x[d], of which three roundings are in each ---- */

/* Of a row the absolute terms of class d against `class`: of the loss, or of its slope by x[d]. */
static long double cf_margin_term(const cf_check *k, const long double *sizes, int64_t class, int64_t d, bool slope) {
  const cf_array *w = cf_arg_array(k, "weight");
  long double z = fabsl((long double)cf_arg_number(k->call, "margin", 1)) + sizes[class] + sizes[d];
  long double weight = w ? fabsl(w->v[class].re) : 1;
  bool squared = cf_arg_number(k->call, "p", 1) == 2;
  return d == class ? 0 : weight * (squared ? (slope ? 2 * z : z * z) : slope ? 1 : z);
}

enum { CF_MARGIN_CLASSES = 256 };

/* A row's terms: *loss their sum, slopes[d] those of each class. All classes of a list count, be they in it twice. */
static void cf_margin_row(const cf_check *k, int64_t row, int64_t classes, long double *loss, long double *slopes) {
  const cf_array *x = cf_arg_array(k, "self"), *target = cf_arg_array(k, "target");
  long double sizes[CF_MARGIN_CLASSES];
  int64_t rows = x->ndim == 2 ? x->sizes[0] : 1, each = target->numel / rows;
  *loss = 0;
  for (int64_t d = 0; d < classes; d++) sizes[d] = fabsl(x->v[row * classes + d].re), slopes[d] = 0;
  for (int64_t j = 0; j < each; j++) {
    int64_t class = (int64_t)target->v[row * each + j].re;
    if (class < 0) return; /* it ends the list */
    for (int64_t d = 0; d < classes; d++) {
      long double slope = cf_margin_term(k, sizes, class, d, true);
      *loss += cf_margin_term(k, sizes, class, d, false) / (long double)classes;
      slopes[d] += slope / (long double)classes;
      slopes[class] += slope / (long double)classes;
    }
  }
}

static void cf_l_margin(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *x = cf_arg_array(k, "self"), *o = &k->outs[out];
  int64_t classes = x->ndim ? x->sizes[x->ndim - 1] : 1, rows = x->numel / classes;
  int64_t mode = cf_arg_int(k->call, "reduction", 1);
  long double slopes[CF_MARGIN_CLASSES], loss, total = 0;
  for (int64_t i = 0; i < o->numel; i++) limits[i] = 0; /* is_target: exact */
  if (out) return;
  for (int64_t row = 0; row < rows; row++) {
    cf_margin_row(k, row, classes, &loss, slopes);
    total += loss;
    if (o->numel == rows && mode == 0)
      limits[row] = cf_limit_of(k, out, row, (cf_growth((long double)classes * classes) + 8) * loss);
  }
  if (mode == 0) return;
  long double n = (long double)(classes * classes * rows);
  limits[0] = cf_limit_of(k, out, 0, (cf_growth(n) + 8) * total / (mode == 1 ? (long double)rows : 1));
}

/* The same of a gradient, with the cotangent g[i] of row i, or g[0] of all. */
static void cf_margin_slopes(const cf_check *k, const cf_array *g, long double *terms) {
  const cf_array *x = cf_arg_array(k, "self");
  int64_t classes = x->ndim ? x->sizes[x->ndim - 1] : 1, rows = x->numel / classes;
  long double loss, mean = cf_arg_int(k->call, "reduction", 1) == 1 ? (long double)rows : 1;
  for (int64_t row = 0; row < rows; row++) {
    cf_margin_row(k, row, classes, &loss, terms + row * classes);
    for (int64_t d = 0; d < classes; d++) terms[row * classes + d] *= fabsl(g->v[g->numel > 1 ? row : 0].re) / mean;
  }
}
static void cf_t_margin(const cf_check *k, uint32_t in, long double *terms) {
  if (in == 0) cf_margin_slopes(k, &k->g[0], terms);
}
static void cf_l_margin_slope(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  cf_margin_slopes(k, &k->in[0], limits);
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = cf_limit_of(k, out, i, (cf_growth((long double)o->sizes[o->ndim - 1]) + 6) * limits[i]);
}

/* ---- connectionist temporal classification ----
 * A step joins at most three log likelihoods: the difference of two and its exponential (3 ulp) weigh less than 4u in
 * all, their sum 2u, its logarithm (3 ulp of at most 1.1) 3u; the largest and the class's own are then added, each a
 * rounding of a log likelihood of at most `size`. Errors of the step before pass on by weights that add up to 1. */
static long double cf_ctc_size(const cf_check *k, int64_t n) {
  const cf_array *p = cf_arg_array(k, "log_probs");
  long double size = 0;
  for (int64_t t = 0; t < p->sizes[0]; t++) {
    long double most = 0;
    for (int64_t c = 0; c < p->sizes[2]; c++)
      most = fmaxl(most, fabsl(p->v[(t * p->sizes[1] + n) * p->sizes[2] + c].re));
    size += most + 1.1L;
  }
  return size;
}

static long double cf_ctc_walk(long double steps, long double size) {
  return cf_growth(steps) * (9 + 2 * size);
}

static void cf_l_ctc(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out], *p = cf_arg_array(k, "log_probs");
  int64_t batch = p->sizes[1], each = batch ? o->numel / batch : 1;
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = cf_limit_of(k, out, i, cf_ctc_walk((long double)p->sizes[0] + 1, cf_ctc_size(k, i / each)));
}

/* log of alpha beta / p, of what passes through a class: both walks, a sum over the states, the sums in between. */
static long double cf_ctc_share(const cf_check *k, int64_t n, long double states) {
  long double size = cf_ctc_size(k, n);
  return 3 * cf_ctc_walk((long double)cf_arg_array(k, "log_probs")->sizes[0] + 1, size) + 6 * cf_growth(states) +
         4 * size + 16;
}

/* g (exp(p) - share), where a share is at most 1. */
static void cf_g_ctc(const cf_check *k, uint32_t in, long double *terms) {
  const cf_array *p = cf_arg_array(k, "log_probs");
  if (&k->in[in] != p) return;
  for (int64_t i = 0; i < p->numel; i++) {
    int64_t n = i / p->sizes[2] % p->sizes[1];
    terms[i] = fabsl(k->g[0].v[n].re) * (4 * expl(p->v[i].re) + cf_ctc_share(k, n, (long double)k->outs[1].sizes[2]));
  }
}

static void cf_l_ctc_backward(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out], *p = cf_arg_array(k, "log_probs"), *g = cf_arg_array(k, "grad");
  for (int64_t i = 0; i < o->numel; i++) {
    int64_t n = i / p->sizes[2] % p->sizes[1];
    long double chance = fabsl(g->v[n].re) * expl(p->v[i].re), share = fabsl(o->v[i].re) + chance;
    limits[i] = cf_limit_of(
        k, out, i, 4 * chance + share * cf_ctc_share(k, n, (long double)cf_arg_array(k, "log_alpha")->sizes[2]));
  }
}

/* reduction: 0 none, 1 mean, 2 sum. Those of the losses that bend at a distance: */
static const char *const cf_bent_texts[] = {"m T[13,17] T[13,17]",
                                            "s T[129] T[129] 0 0.5",
                                            "m T[1025] T[1025] 2 0.25",
                                            "m T[3,13,17] T[3,13,17] 1 2",
                                            "m T[] T[]",
                                            NULL};
static const char *const cf_bent_slope_texts[] = {"m T[] T[13,17] T[13,17] 1 0.5", "s T[129] T[129] T[129] 0 1",
                                                  "m T[] T[1025] T[1025] 2 0.25", NULL};
static const cf_op cf_loss_ops[] = {
    /* No target is the blank, which PyTorch takes for granted. */
    {"aten::_ctc_loss",
     CF_TEXTS("s T[17,3,5] i64[3,4]<4 [17,9,13] [4,2,3] 4", "m T[9,2,4] i64[5]<3 [9,7] [2,3] 3",
              "m T[33,2,3] i32[2,13]<2 [33,33] [13,5] 2", "m T[5,3,3] i64[3,2]<2 [5,0,0] [0,1,0] 2 true",
              "m T[3,2,5] i64[2,4]<4 [2,3] [4,3] 4 true", "m T[5,1,3] i64[1,2]=1 [5] [2]",
              "f T[129,5,33] i64[5,17]<32 "
              "[129,100,1,64,77] [17,5,1,17,0] 32"),
     CF_BIT(F32) | CF_BIT(F64), CF_R_CUSTOM(cf_l_ctc), CF_VALUES, CF_NO_ADJOINT, CF_G_PROPAGATED(cf_g_ctc)},
    {"aten::_ctc_loss_backward",
     CF_TEXTS("m T[3] T[5,3,5] i64[3,3]<4 [5,4,3] [3,2,1] T[3] T[3,5,7] 4",
              "m T[2] T[9,2,4] i64[5]<3 [9,0] [2,3] T[2] "
              "T[2,9,7] 3 true",
              "m T[3] T[5,3,6] i64[3,4]<4 [5,4,3] [4,2,1] T[3] T[3,5,9] 5"),
     CF_BIT(F32) | CF_BIT(F64), CF_R_CUSTOM(cf_l_ctc_backward), CF_VALUES, 0, CF_G_NONE},
    {"aten::nll_loss_forward",
     CF_TEXTS("s T[13,5] i64[13]<5 T[5]+ 1 -100", "m T[13,5] i64[13]<5 _ 2 -100", "m T[129,3] i64[129]<3 T[3]+ 0 -100",
              "m T[33,17] i64[33]<17 _ 1 3", "m T[5] i64[]<5 _ 1 -100"),
     CF_FLOATS,
     {.klass = CF_SUM, .terms = CF_TERMS_RATIO, .ulps = 3},
     CF_VALUES,
     CF_ORDERED,
     CF_G_LINEAR(4)},
    {"aten::nll_loss_backward",
     CF_TEXTS("s T[] T[13,5] i64[13]<5 T[5]+ 1 -100 T[]+", "m T[33] T[33,5] i64[33]<5?-100 T[5]+ 0 -100 T[]+",
              "m T[] T[13,5] i64[13]<5 _ 2 -100 T[]+", "m T[129] T[129,3] i64[129]<3 T[3]+ 0 -100 T[]+",
              "m T[] T[13,5] i64[13]<5 _ 1 3 T[]+"),
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
              "m T[2,13,3] T[2,17,13,3] i64[2,13,3]<17?-100 T[17]+ 0 -100 T[]+",
              "m T[] T[2,3,33,17] i64[2,33,17]<3 _ 1 2 T[]+"),
     CF_FLOATS, CF_R_ULPS(3), CF_VALUES, 0, CF_G_NONE},
    {"aten::mse_loss",
     CF_TEXTS("s T[13,17] T[13,17]", "m T[13,17] T[13,17] 0", "m T[1025] T[1025] 2", "m T[3,13,17] T[3,13,17]",
              "m T[] T[]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_mse), CF_VALUES, CF_ORDERED, CF_G_SELECT(6)},
    /* more than a work-group takes */
    {"aten::mse_loss", CF_TEXTS("m T[40009] T[40009] 0"), CF_BIT(F32), CF_R_CUSTOM(cf_l_mse), CF_VALUES, 0,
     CF_G_SELECT(6)},
    {"aten::mse_loss_backward",
     CF_TEXTS("s T[] T[13,17] T[13,17] 1", "m T[13,17] T[13,17] T[13,17] 0", "m T[] T[1025] T[1025] 2"), CF_FLOATS,
     CF_R_ULPS(4), CF_VALUES, 0, CF_G_NONE},
    {"aten::smooth_l1_loss", cf_bent_texts, CF_FLOATS, CF_R_CUSTOM(cf_l_smooth), CF_VALUES, CF_ORDERED, CF_G_SELECT(6)},
    {"aten::smooth_l1_loss_backward", cf_bent_slope_texts, CF_FLOATS, CF_R_ULPS(5), CF_VALUES, 0, CF_G_NONE},
    {"aten::huber_loss", cf_bent_texts, CF_FLOATS, CF_R_CUSTOM(cf_l_huber), CF_VALUES, CF_ORDERED, CF_G_SELECT(6)},
    {"aten::huber_loss_backward", cf_bent_slope_texts, CF_FLOATS, CF_R_ULPS(5), CF_VALUES, 0, CF_G_NONE},
    {"aten::binary_cross_entropy",
     CF_TEXTS("m T[13,17] T[13,17]", "s T[129] T[129] _ 0", "m T[33,17] T[33,17] T[33,17]+ 1",
              "m T[33,17] T[33,17] T[17]+ 0", "m T[1025] T[1025] _ 2", "m T[] T[]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_entropy), CF_PROBABILITY, CF_ORDERED, CF_G_CUSTOM(cf_t_entropy, 12)},
    /* More than a work-group takes. Not expanded: equal terms round alike, which adds up. */
    {"aten::binary_cross_entropy", CF_TEXTS("m T[5009] T[5009] T[5009]+ 1"), CF_BIT(F32), CF_R_CUSTOM(cf_l_entropy),
     CF_PROBABILITY, CF_ORDERED | CF_FLAT, CF_G_CUSTOM(cf_t_entropy, 12)},
    {"aten::binary_cross_entropy_backward",
     CF_TEXTS("m T[] T[13,17] T[13,17] _ 1", "s T[129] T[129] T[129] _ 0", "m T[] T[33,17] T[33,17] T[33,17]+ 1",
              "m T[13,17] T[13,17] T[13,17] T[17]+ 0", "m T[] T[1025] T[1025] _ 2"),
     CF_FLOATS, CF_R_ULPS(8), CF_PROBABILITY, 0, CF_G_NONE},
    {"aten::soft_margin_loss_backward",
     CF_TEXTS("m T[] T[13,17] T[13,17] 1", "m T[129] T[129] T[129] 0", "m T[] T[1025] T[1025] 2",
              "m T[13,17] T[13,17] T[17] 0"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_soft), CF_VALUES, 0, CF_G_NONE},
    {"aten::multi_margin_loss",
     CF_TEXTS("m T[13,5] i64[13]<5 1 1 T[5]+ 1", "m T[129,3] i64[129]<3 2 0.5 _ 0",
              "m T[33,17] i64[33]<17 2 1 T[17]+ 2", "m T[1025,3] i64[1025]<3", "m T[5] i64[]<5"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_margin), CF_VALUES, 0, CF_G_CUSTOM(cf_t_margin, 12)},
    {"aten::multi_margin_loss_backward",
     CF_TEXTS("m T[] T[13,5] i64[13]<5 1 1 T[5]+ 1", "m T[129] T[129,3] i64[129]<3 2 0.5 _ 0",
              "m T[] T[33,17] i64[33]<17 2 1 T[17]+ 2"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_margin_slope), CF_VALUES, 0, CF_G_NONE},
    {"aten::multilabel_margin_loss_forward",
     CF_TEXTS("m T[13,5] i64[13,5]<5 1", "m T[129,3] i64[129,3]<2 0", "m T[33,17] i64[33,17]<9 2", "m T[5] i64[5]<3 1",
              "m T[13,5] i64[13,5]<5?-1 1", "m T[33,17] i64[33,17]<17?-1 0"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_margin), CF_VALUES, 0, CF_G_CUSTOM(cf_t_margin, 12)},
    {"aten::multilabel_margin_loss_backward",
     CF_TEXTS("m T[] T[13,5] i64[13,5]<5 1 T[13,5]<2", "m T[129] T[129,3] i64[129,3]<2 0 T[129,3]<2",
              "m T[] T[33,17] i64[33,17]<9 2 T[33,17]<2", "m T[13] T[13,5] i64[13,5]<5?-1 0 T[13,5]<2"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_margin_slope), CF_VALUES, 0, CF_G_NONE},
};

CF_TOPIC(loss, "loss", cf_loss_ops);
