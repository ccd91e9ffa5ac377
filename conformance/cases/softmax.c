#include <math.h>
#include <stdlib.h>

#include "conformance/cases/rows.h"

/* One row along the dim: its largest value, and sums over e = exp(x - max). */
typedef struct cf_soft_row {
  long double most, sum, errors; /* errors: the sum of those of e */
} cf_soft_row;

/* e = exp(-d) in the dtype in which sums run: the difference d rounds by u d, which is relative in e; exp adds 3 ulp,
 * those of a denormal where e is one. */
static long double cf_soft_error(graft_dtype dtype, long double d) {
  graft_dtype sums = dt_is_half(dtype) ? GRAFT_F32 : dtype;
  if (isinf(d)) return 0; /* what is masked is 0 exactly */
  return cf_u(sums) * d * expl(-d) + 3 * cf_ulp(sums, expl(-d));
}

static cf_soft_row cf_soft(const cf_array *x, graft_dtype dtype, cf_axis a, int64_t at) {
  cf_soft_row r = {-INFINITY, 0, 0};
  for (int64_t i = 0; i < a.length; i++) r.most = fmaxl(r.most, x->v[at + i * a.inner].re);
  for (int64_t i = 0; i < a.length; i++) {
    long double d = fabsl(x->v[at + i * a.inner].re - r.most);
    r.sum += expl(-d), r.errors += cf_soft_error(dtype, d);
  }
  return r;
}

/* y = e / sum: the errors of e, of the sum and of the division. log: d - log(sum). */
static void cf_soft_limits_of(const cf_check *k, const cf_array *x, uint32_t out, long double *limits, bool logarithm) {
  const cf_array *o = &k->outs[out];
  cf_axis a = cf_axis_of(x, cf_arg_int(k->call, "dim", -1));
  long double u = cf_u_acc(k->dtypes[out]), growth = cf_growth((long double)a.length);
  for (int64_t row = 0; row < a.outer * a.inner; row++) {
    int64_t at = row / a.inner * a.length * a.inner + row % a.inner;
    cf_soft_row r = cf_soft(x, k->dtypes[out], a, at);
    long double sum_error = u * growth + r.errors / r.sum;
    for (int64_t i = 0; i < a.length; i++) {
      int64_t n = at + i * a.inner;
      long double d = fabsl(x->v[n].re - r.most), y = fabsl(o->v[n].re), half = cf_ulp(k->dtypes[out], y) / 2;
      limits[n] = logarithm ? u * d + sum_error + 6 * u * fabsl(logl(r.sum)) + u * y + half
                            : cf_soft_error(k->dtypes[out], d) / r.sum + y * (sum_error + 2 * u) + half;
    }
  }
}
static void cf_soft_limits(const cf_check *k, uint32_t out, long double *limits, bool logarithm) {
  cf_soft_limits_of(k, &k->in[0], out, limits, logarithm);
}

/* Those of the input with -infinity where it is masked. */
static void cf_l_masked_softmax(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *x = &k->in[0], *mask = cf_arg_array(k, "mask");
  int64_t kind = mask->ndim == 2 && x->ndim == 4 ? cf_arg_int(k->call, "mask_type", 2) : 2;
  cf_array left = *x;
  left.v = calloc((size_t)x->numel + 1, sizeof *left.v);
  for (int64_t i = 0; left.v && i < x->numel; i++) {
    int64_t last = x->ndim ? x->sizes[x->ndim - 1] : 1;
    int64_t at = kind == 0 ? i % (last * last) : kind == 1 ? i / (x->numel / x->sizes[0]) * last + i % last : i;
    left.v[i] = mask->v[at].re != 0 ? (dt_value){-INFINITY, 0} : x->v[i];
  }
  if (left.v) cf_soft_limits_of(k, &left, out, limits, false);
  free(left.v);
}

static void cf_l_softmax(const cf_check *k, uint32_t out, long double *l) {
  cf_soft_limits(k, out, l, false);
}
static void cf_l_log_softmax(const cf_check *k, uint32_t out, long double *l) {
  cf_soft_limits(k, out, l, true);
}

/* The sum of the absolute terms: y (g - sum(g y)), and g - exp(y) sum(g). */
static void cf_soft_backward_terms(const cf_array *g, const cf_array *y, cf_axis a, bool logarithm,
                                   long double *terms) {
  for (int64_t row = 0; row < a.outer * a.inner; row++) {
    int64_t at = row / a.inner * a.length * a.inner + row % a.inner;
    long double sum = 0;
    for (int64_t i = 0; i < a.length; i++) {
      int64_t n = at + i * a.inner;
      sum += fabsl(g->v[n].re) * (logarithm ? 1 : fabsl(y->v[n].re));
    }
    for (int64_t i = 0; i < a.length; i++) {
      int64_t n = at + i * a.inner;
      long double size = fabsl(g->v[n].re), p = y->v[n].re;
      terms[n] = logarithm ? size + expl(p) * sum : fabsl(p) * (size + sum);
    }
  }
}

/* The slots: exp 3 ulp, the sum, and four roundings. */
static void cf_soft_backward_limits(const cf_check *k, uint32_t out, long double *limits, bool logarithm) {
  const cf_array *o = &k->outs[out];
  cf_axis a = cf_axis_of(o, cf_arg_int(k->call, "dim", -1));
  cf_soft_backward_terms(&k->in[0], &k->in[1], a, logarithm, limits);
  long double factor = cf_growth((long double)a.length) + (logarithm ? 10 : 4);
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit_of(k, out, i, factor * limits[i]);
}
static void cf_l_softmax_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_soft_backward_limits(k, out, l, false);
}
static void cf_l_log_softmax_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_soft_backward_limits(k, out, l, true);
}

/* Gradients: the same terms with the forward's own y. Its error is that of the forward rule, at most growth(n) + max d
 * + 14 in u for inputs in [-2, 2], where d <= 4; with the sum over rows of up to 1025 that makes 90 roundings. */
static void cf_g_softmax(const cf_check *k, uint32_t in, long double *terms) {
  (void)in;
  cf_soft_backward_terms(&k->g[0], &k->outs[0], cf_axis_of(&k->in[0], cf_arg_int(k->call, "dim", -1)), false, terms);
}
static void cf_g_log_softmax(const cf_check *k, uint32_t in, long double *terms) {
  (void)in;
  cf_axis a = cf_axis_of(&k->in[0], cf_arg_int(k->call, "dim", -1));
  cf_soft_backward_terms(&k->g[0], &k->outs[0], a, true, terms);
  for (int64_t i = 0; i < k->outs[0].numel; i++)
    terms[i] *= 1 + fabsl(k->outs[0].v[i].re) / 8; /* y's ulp, through exp */
}

static const char *const cf_soft_texts[] = {"s T[33,17] 1 false",       "m T[33,17] 0 false",    "m T[1025] 0 false",
                                            "m T[3,13,17] 1 false",     "m T[3,300,50] 1 false", "m T[] 0 false",
                                            "m T[0,3] 1 false",         "m T[13,129] -1 false",  "m T[5,1] 1 false",
                                            "f T[2,3,1,3,2,3] 3 false", "f T[129,1025] 1 false", NULL};
static const char *const cf_row_texts[] = {"m T[70,16] 1 false",   "m T[300,3] 1 false",  "m T[5,100] 1 false",
                                           "m T[3,1028] 1 false",  "m T[3,4099] 1 false", "m T[2,9001] 1 false",
                                           "m T[1,32768] 1 false", "m T[4100,8] 1 false", NULL};
static const char *const cf_soft_backward_texts[] = {
    "s T[33,17] T[33,17] 1 T",       "m T[33,17] T[33,17] 0 T",       "m T[1025] T[1025] 0 T",
    "m T[3,13,17] T[3,13,17] 1 T",   "m T[3,300,50] T[3,300,50] 1 T", "m T[0,3] T[0,3] 1 T",
    "f T[129,1025] T[129,1025] 1 T", "m T[3,13,17] T[3,13,17] -2 T",  NULL};

static const cf_op cf_softmax_ops[] = {
    {"aten::_softmax", cf_soft_texts, CF_FLOATS, CF_R_CUSTOM(cf_l_softmax), CF_VALUES, CF_WIDE | CF_INPLACE,
     CF_G_CUSTOM(cf_g_softmax, 90)},
    {"aten::_log_softmax", cf_soft_texts, CF_FLOATS, CF_R_CUSTOM(cf_l_log_softmax), CF_VALUES, CF_WIDE | CF_INPLACE,
     CF_G_CUSTOM(cf_g_log_softmax, 90)},
    /* Rows that a GPU's work-items hold in registers, from few of them to so many that they are too long for it; and
     * those of a CPU's that are one vector, or kept aside, and too many to be a small call's. */
    {"aten::_softmax", CF_TEXTS("s " CF_MOST_DIMS " 15 false"), CF_BIT(F32), CF_R_CUSTOM(cf_l_softmax), CF_VALUES,
     CF_FLAT, CF_G_NONE},
    {"aten::_softmax", cf_row_texts, CF_BIT(F32) | CF_BIT(BF16), CF_R_CUSTOM(cf_l_softmax), CF_VALUES, CF_INPLACE,
     CF_G_NONE},
    {"aten::_softmax", CF_TEXTS("m T[9,4099] 1 false"), CF_BIT(BF16), CF_R_CUSTOM(cf_l_softmax), CF_VALUES, 0,
     CF_G_NONE},
    {"aten::_log_softmax", CF_TEXTS("m T[3,1028] 1 false", "m T[2,9001] 1 false", "m T[4100,8] 1 false"),
     CF_BIT(F32) | CF_BIT(BF16), CF_R_CUSTOM(cf_l_log_softmax), CF_VALUES, 0, CF_G_NONE},
    {"aten::_softmax_backward_data",
     CF_TEXTS("m T[70,16] T[70,16] 1 T", "m T[3,1028] T[3,1028] 1 T", "m T[2,4097] T[2,4097] 1 T",
              "m T[4100,8] T[4100,8] 1 T"),
     CF_BIT(F32) | CF_BIT(BF16), CF_R_CUSTOM(cf_l_softmax_backward), CF_UNIT, 0, CF_G_NONE},
    {"aten::_safe_softmax",
     CF_TEXTS("m T[33,17] 1", "m T[33,17] 0", "m T[1025] 0", "m T[3,13,17] 1", "m T[] 0", "m T[0,3] 1", "m T[5,1] 1",
              "m T[3,13,17] -2"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_softmax), CF_VALUES, CF_WIDE, CF_G_CUSTOM(cf_g_softmax, 90)},
    /* Rows of which nothing is left are 0. */
    {"aten::_safe_softmax", CF_TEXTS("m T[33,17]~masked 1", "m T[33,17]~masked 0", "m T[5,1025]~masked 1"), CF_FLOATS,
     CF_R_CUSTOM(cf_l_softmax), CF_VALUES, 0, CF_G_NONE},
    {"aten::_safe_softmax", CF_TEXTS("m T[33,17] 1 dtype=f32", "m T[33,17] 0 dtype=f64"), CF_BIT(F16) | CF_BIT(BF16),
     CF_R_CUSTOM(cf_l_softmax), CF_VALUES, 0, CF_G_NONE},
    {"aten::_softmax_backward_data", cf_soft_backward_texts, CF_FLOATS, CF_R_CUSTOM(cf_l_softmax_backward), CF_UNIT, 0,
     CF_G_NONE},
    {"aten::_log_softmax_backward_data", cf_soft_backward_texts, CF_FLOATS, CF_R_CUSTOM(cf_l_log_softmax_backward),
     CF_UNIT, 0, CF_G_NONE},
    {"aten::_masked_softmax",
     CF_TEXTS("s T[33,17] bool[33,17]", "m T[33,17] bool[33,17] 0", "m T[2,3,11,11] bool[2,11] -1 1",
              "m T[2,3,5,5] bool[5,5] _ 0", "s T[2,3,5,5] bool[5,5] 2 0", "m T[2,2,5,5] bool[2,2,5,5] 3 2",
              "m T[] bool[]=0", "m T[0,3] bool[0,3] 1", "m T[1025] bool[1025] 0"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_masked_softmax), CF_VALUES, 0, CF_G_CUSTOM(cf_g_softmax, 90)},
    /* Rows of which nothing is left are NaN. */
    {"aten::_masked_softmax",
     CF_TEXTS("m T[5,3] bool[5,3]=1 1", "m T[2,3,5,5] bool[2,5]=1 _ 1", "m T[2,3,7,7] bool[2,7] 1 1"), CF_FLOATS,
     CF_R_CUSTOM(cf_l_masked_softmax), CF_VALUES, 0, CF_G_NONE},
    {"aten::_masked_softmax_backward",
     CF_TEXTS("s T[33,17] T[33,17] bool[33,17] 1", "m T[33,17] T[33,17] bool[33,17] 0",
              "m T[3,13,17] T[3,13,17] bool[3,13,17]", "m T[5,3] T[5,3] bool[5,3]=1 1", "m T[0,3] T[0,3] bool[0,3] 1",
              "m T[3,13,17] T[3,13,17] bool[3,13,17] -2"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_softmax_backward), CF_UNIT, 0, CF_G_NONE},
};

CF_TOPIC(softmax, "softmax", cf_softmax_ops);
