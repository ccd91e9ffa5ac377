/* Distances: a norm of differences, of which each is rounded. */
#include <math.h>

#include "conformance/cases/rows.h"

static long double cf_coordinates(const cf_check *k) {
  const cf_array *x = &k->in[0];
  if (cf_arg_array(k, "grad")) x = &k->in[1];
  return (long double)x->sizes[x->ndim - 1];
}

static void cf_l_distance(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  long double roundings = cf_norm_roundings(cf_arg_number(k->call, "p", 2), cf_coordinates(k)) + 1;
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit_of(k, out, i, roundings * o->v[i].re);
}

/* A coordinate's slope: a quotient by the distance, to the power of p - 1 (pow 16 ulp). */
static long double cf_slope_roundings(double p, long double coordinates) {
  if (isinf(p) || p < 1 || p == 1) return 2;
  long double base = cf_norm_roundings(p, coordinates) + 4;
  return p == 2 ? base : fabsl((long double)p - 1) * base + 34;
}

static long double cf_slope(long double d, long double distance, double p) {
  d = fabsl(d);
  if (d == 0 || distance == 0 || p == 0) return 0;
  if (p == 1) return 1;
  return isinf(p) ? d == distance : powl(d / distance, (long double)p - 1);
}

/* The pairs that point `i` of `of` is in: the sum of their absolute terms for one coordinate. pdist's pairs lie in rows
 * of a triangle. */
typedef struct cf_sets {
  const cf_array *x, *others, *distances, *g;
  int64_t points, count, width;
  bool within, across; /* within: others are x itself, pairs once; across: distances are [count, points] */
} cf_sets;

static int64_t cf_pair_at(const cf_sets *s, int64_t batch, int64_t i, int64_t j) {
  int64_t low = i < j ? i : j, high = i < j ? j : i;
  if (s->within) return low * s->points - low * (low + 1) / 2 + high - low - 1;
  return batch * s->points * s->count + (s->across ? j * s->points + i : i * s->count + j);
}

static long double cf_pull(const cf_sets *s, int64_t batch, int64_t i, int64_t m, double p) {
  long double sum = 0;
  for (int64_t j = 0; j < s->count; j++) {
    if (s->within && i == j) continue;
    int64_t at = cf_pair_at(s, batch, i, j);
    long double d =
        s->x->v[(batch * s->points + i) * s->width + m].re - s->others->v[(batch * s->count + j) * s->width + m].re;
    sum += fabsl(s->g->v[at].re) * cf_slope(d, fabsl(s->distances->v[at].re), p);
  }
  return sum;
}

static void cf_pulls(const cf_check *k, const cf_sets *s, long double *sums) {
  double p = cf_arg_number(k->call, "p", 2);
  for (int64_t e = 0; e < s->x->numel; e++) {
    int64_t point = e / s->width;
    sums[e] = cf_pull(s, point / s->points, point % s->points, e % s->width, p) *
              (cf_growth((long double)s->count) + cf_slope_roundings(p, (long double)s->width) + 2);
  }
}

static cf_sets cf_sets_of(const cf_array *x, const cf_array *others, const cf_array *distances, const cf_array *g,
                          bool across) {
  return (cf_sets){.x = x,
                   .others = others,
                   .distances = distances,
                   .g = g,
                   .points = x->sizes[x->ndim - 2],
                   .count = others->sizes[others->ndim - 2],
                   .width = x->sizes[x->ndim - 1],
                   .within = x == others,
                   .across = across};
}

static void cf_g_distance(const cf_check *k, uint32_t in, long double *terms) {
  const cf_array *x = &k->in[in], *others = k->call->ntensors > 1 ? &k->in[1 - in] : x;
  cf_sets s = cf_sets_of(x, others, &k->outs[0], &k->g[0], in == 1);
  cf_pulls(k, &s, terms);
}

static void cf_l_distance_backward(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *pdist = cf_arg_array(k, "pdist"), *x = &k->in[1];
  cf_sets s = cf_sets_of(x, pdist ? x : &k->in[2], pdist ? pdist : cf_arg_array(k, "cdist"), &k->in[0], false);
  cf_pulls(k, &s, limits);
  for (int64_t i = 0; i < k->outs[out].numel; i++) limits[i] = cf_limit_of(k, out, i, limits[i]);
}

static const cf_op cf_distance_ops[] = {
    {"aten::_cdist_forward",
     CF_TEXTS("s T[13,5] T[17,5] 2 _", "m T[13,5] T[17,5] 1 _", "s T[3,13,33] T[3,17,33] 3 _", "m T[5,3] T[3,3] 0 _",
              "m T[13,17] T[5,17] 1.5 1", "m T[6,300] T[17,300] 2 _", "s T[13,5] T[17,5] inf 0", "m T[3,0] T[5,0] 2 _",
              "m T[0,3] T[5,3] 2 _", "f T[33,129] T[17,129] 2.5 2"),
     CF_BIT(F32) | CF_BIT(F64), CF_R_CUSTOM(cf_l_distance), CF_VALUES, CF_ORDERED, CF_G_PROPAGATED(cf_g_distance)},
    /* Sets that are broadcast, each along other dims of the stack. */
    {"aten::_cdist_forward",
     CF_TEXTS("m T[2,1,13,5] T[3,7,5] 2 _", "m T[2,1,3,1,13,5] T[3,1,2,7,5] 1 _", "m T[3,13,5] T[2,1,7,5] 3 _"),
     CF_BIT(F32) | CF_BIT(F64), CF_R_CUSTOM(cf_l_distance), CF_VALUES, CF_ORDERED, CF_G_NONE},
    /* What is no number counts for none at p = 0, either. */
    {"aten::_cdist_forward", CF_TEXTS("m T[33,3] T[13,3] 0 _"), CF_BIT(F32) | CF_BIT(F64), CF_R_EXACT, CF_VALUES,
     CF_SPECIAL, CF_G_NONE},
    {"aten::_pdist_forward", CF_TEXTS("m T[33,3] 0"), CF_BIT(F32) | CF_BIT(F64), CF_R_EXACT, CF_VALUES, CF_SPECIAL,
     CF_G_NONE},
    {"aten::_cdist_backward",
     CF_TEXTS("m T[13,17] T[13,5] T[17,5] 2 T[13,17]+", "m T[3,13,7] T[3,13,5] T[3,7,5] 1 T[3,13,7]+"),
     CF_BIT(F32) | CF_BIT(F64), CF_R_CUSTOM(cf_l_distance_backward), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::_pdist_forward",
     CF_TEXTS("s T[13,5] 2", "m T[13,5] 1", "m T[17,33] 3", "m T[5,3] 0", "m T[13,17] 1.5", "m T[13,5] inf",
              "m T[3,0] 2", "m T[1,3] 2", "m T[0,3] 2"),
     CF_BIT(F32) | CF_BIT(F64), CF_R_CUSTOM(cf_l_distance), CF_VALUES, CF_ORDERED, CF_G_PROPAGATED(cf_g_distance)},
    {"aten::_pdist_backward", CF_TEXTS("m T[78] T[13,5] 2 T[78]+", "m T[21] T[7,33] 1 T[21]+"),
     CF_BIT(F32) | CF_BIT(F64), CF_R_CUSTOM(cf_l_distance_backward), CF_VALUES, CF_ORDERED, CF_G_NONE},
};

CF_TOPIC(linalg_distances, "linalg", cf_distance_ops);
