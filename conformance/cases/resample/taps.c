/* Adaptive average pooling, upsampling and padding. Padding and nearest neighbours move values. The others are sums
 * whose weights come from positions: a position is off by three roundings of itself at most, up to the dim's size,
 * which moves the result by as much times the difference of neighbours. */
#include <math.h>
#include <string.h>

#include "conformance/cases/rows.h"

/* Of the dims that are resampled: the sizes of the side that is read by forward, and of the other. */
typedef struct cf_sides {
  const cf_array *in, *out;
  int32_t dims;
} cf_sides;

static cf_sides cf_sides_of(const cf_check *k, const cf_array *other) {
  const char *name = k->call->text.schema->name;
  bool backward = strstr(name, "_backward") != NULL;
  const cf_array *x = &k->in[0];
  cf_sides s = {backward ? other : x, backward ? x : other, 0};
  s.dims = strstr(name, "3d") ? 3 : strstr(name, "2d") ? 2 : 1;
  return s;
}

/* The most elements of the side `many` that meet in one of the other, counting `each` beyond the exact share. */
static long double cf_meeting(const cf_sides *s, const cf_array *many, const cf_array *one, int scale, int each) {
  long double n = 1;
  for (int32_t d = 1; d <= s->dims; d++) {
    int64_t a = many->sizes[many->ndim - d], b = one->sizes[one->ndim - d];
    n *= (long double)((scale * a + b - 1) / b + each);
  }
  return n;
}

/* Of what is finite: a finite result has no other terms. */
static long double cf_largest(const cf_array *a) {
  long double most = 0;
  for (int64_t i = 0; i < a->numel; i++)
    if (isfinite(cf_modulus(a->v[i]))) most = fmaxl(most, cf_modulus(a->v[i]));
  return most;
}

/* What an interpolation weighs neighbours with. Cubic filters have negative weights, so that the op on absolute values
 * is no sum of absolute terms: `norm` bounds that of the weights. Antialiased filters divide by the sum of their
 * weights, which is at least half of the filter's width, where an edge cuts it: what moves their weights counts twice
 * for that, and again for the sum itself. */
typedef struct cf_filter {
  int width;          /* elements under it; of an antialiased one, times as many as two steps have elements */
  long double norm;   /* the sum of absolute weights along a dim, at most */
  long double slope;  /* how far all weights move, when the position moves by one */
  long double rounds; /* roundings of all weights' polynomials, relative to 1, beyond the eight of a weight's product */
} cf_filter;

static cf_filter cf_filter_of(const cf_check *k) {
  const char *name = k->call->text.schema->name;
  bool cubic = strstr(name, "bicubic") != NULL;
  if (strstr(name, "_aa")) return cubic ? (cf_filter){8, 1.5L, 48, 320} : (cf_filter){4, 1, 16, 16};
  return cubic ? (cf_filter){4, 1.375L, 4.2L, 48} : (cf_filter){2, 1, 2, 0};
}

/* What three roundings of positions come to, over all dims. */
static long double cf_position_error(const cf_sides *s, const cf_filter *f) {
  long double sum = 0;
  for (int32_t d = 1; d <= s->dims; d++) sum += 3 * f->slope * (long double)(s->in->sizes[s->in->ndim - d] + 1);
  return sum * powl(f->norm, s->dims - 1);
}

static void cf_l_adaptive(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  cf_sides s = cf_sides_of(k, o);
  bool backward = s.in == o;
  long double n = backward ? cf_meeting(&s, s.out, s.in, 1, 1) : cf_meeting(&s, s.in, s.out, 1, 1);
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = cf_limit_of(k, out, i, (cf_growth(n) + 6) * cf_modulus(k->absolute[out].v[i]));
}

static void cf_l_linear(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  cf_sides s = cf_sides_of(k, o);
  cf_filter f = cf_filter_of(k);
  bool backward = s.in == o, antialiased = strstr(k->call->text.schema->name, "_aa") != NULL;
  long double n = backward || antialiased
                      ? cf_meeting(&s, backward ? s.out : s.in, backward ? s.in : s.out, f.width, f.width)
                      : powl(f.width, s.dims);
  long double most = cf_largest(&k->in[0]) * (backward ? n : powl(f.norm, s.dims));
  long double moved = (cf_position_error(&s, &f) + f.rounds) * most;
  for (int64_t i = 0; i < o->numel; i++) {
    long double terms = f.norm > 1 ? most : cf_modulus(k->absolute[out].v[i]);
    limits[i] = cf_limit_of(k, out, i, moved + (cf_growth(n) + 8) * terms);
  }
}

/* Gradients are one call of the other direction: the same errors, as multiples of u. */
static void cf_g_linear(const cf_check *k, uint32_t in, long double *terms) {
  cf_sides s = cf_sides_of(k, &k->outs[0]);
  cf_filter f = cf_filter_of(k);
  bool backward = s.in == &k->outs[0];
  long double n = backward ? powl(f.norm, s.dims) : cf_meeting(&s, s.out, s.in, f.width, f.width);
  long double each = n * cf_largest(&k->g[0]) * (cf_position_error(&s, &f) + f.rounds + 8);
  for (int64_t i = 0; i < k->in[in].numel; i++) terms[i] = each;
}

#define CF_MOVES (CF_FLOATS | CF_BIT(I64) | CF_BIT(C64))
#define CF_MOVED(n, dtypes, ...)                                                                          \
  {                                                                                                       \
    "aten::" n, CF_TEXTS(__VA_ARGS__), dtypes, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, \
        CF_G_LINEAR(0)                                                                                    \
  }
#define CF_MOVED_BACK(n, ...)                                                                                 \
  {                                                                                                           \
    "aten::" n "_backward", CF_TEXTS(__VA_ARGS__), CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, \
        CF_G_LINEAR(0)                                                                                        \
  }
#define CF_PROPAGATES(f) \
  { .klass = CF_CUSTOM, .limit = (f), .absolute = true }
#define CF_LINEAR(n, ...)                                                                              \
  {                                                                                                    \
    "aten::" n, CF_TEXTS(__VA_ARGS__), CF_FLOATS, CF_PROPAGATES(cf_l_linear), CF_VALUES, CF_ORDERED, { \
      .kind = CF_GRAD_CUSTOM, .terms = cf_g_linear, .inner = 1                                         \
    }                                                                                                  \
  }
#define CF_LINEAR_BACK(n, ...) CF_LINEAR(n "_backward", __VA_ARGS__)
#define CF_ADAPTIVE(n, gradient, ...) \
  { "aten::" n, CF_TEXTS(__VA_ARGS__), CF_FLOATS, CF_PROPAGATES(cf_l_adaptive), CF_VALUES, CF_ORDERED, gradient }
#define CF_INFINITE(n, ...) \
  { "aten::" n, CF_TEXTS(__VA_ARGS__), CF_FLOATS, CF_PROPAGATES(cf_l_linear), CF_VALUES, CF_FLAT, CF_G_NONE }
#define CF_WITH_BYTES (CF_FLOATS | CF_BIT(U8))
/* So many elements that GPUs make them of several planes at a time, and one plane more than these. */
#define CF_PLANES(n, rule, ...) \
  { "aten::" n, CF_TEXTS(__VA_ARGS__), CF_BIT(F32) | CF_BIT(BF16), rule, CF_VALUES, CF_FLAT, CF_G_NONE }

static const cf_op cf_resample_ops[] = {
    CF_ADAPTIVE("_adaptive_avg_pool2d", CF_G_LINEAR(8), "s T[2,3,13,17] [5,3]", "m T[2,3,13,17] [1,1]",
                "m T[3,3,5] [7,9]", "m T[1,2,33,1] [3,1]", "f T[2,5,33,17] [7,7]"),
    CF_ADAPTIVE("_adaptive_avg_pool2d_backward", CF_G_LINEAR(8), "s T[2,3,5,3] T[2,3,13,17]",
                "m T[2,3,1,1] T[2,3,13,17]", "m T[3,7,9] T[3,3,5]"),
    CF_ADAPTIVE("_adaptive_avg_pool3d", CF_G_LINEAR(9), "s T[2,3,5,7,6] [2,3,4]", "m T[3,4,5,6] [1,1,1]"),
    CF_ADAPTIVE("_adaptive_avg_pool3d_backward", CF_G_LINEAR(9), "s T[2,3,2,3,4] T[2,3,5,7,6]",
                "m T[2,3,4,5,6] T[2,3,9,7,8]"),
    CF_MOVED("upsample_nearest1d", CF_WITH_BYTES, "s T[2,3,13] [33]", "m T[1,3,17] [5] 2.5"),
    CF_MOVED_BACK("upsample_nearest1d", "s T[2,3,33] [33] [2,3,13]", "m T[1,3,5] [5] [1,3,17] 0.3"),
    CF_MOVED("upsample_nearest2d", CF_WITH_BYTES, "s T[2,3,5,7] [10,14]", "m T[2,3,5,7] [13,17]",
             "m T[1,2,13,17] [5,3]", "m T[2,3,5,7] [12,17] 2.5 2.5"),
    CF_MOVED_BACK("upsample_nearest2d", "s T[2,3,10,14] [10,14] [2,3,5,7]", "m T[2,3,13,17] [13,17] [2,3,5,7]",
                  "m T[1,2,5,3] [5,3] [1,2,13,17]", "m T[1,2,5,3] [5,3] [1,2,13,17] 0.4 0.2"),
    CF_PLANES("upsample_nearest2d", CF_R_EXACT, "m T[1,9,24,30] [180,181]"),
    CF_MOVED("upsample_nearest3d", CF_WITH_BYTES, "s T[2,3,3,5,2] [6,7,5]", "m T[1,2,7,5,6] [3,5,4] 0.5 1.25 0.7"),
    CF_MOVED_BACK("upsample_nearest3d", "s T[2,3,6,7,5] [6,7,5] [2,3,3,5,2]",
                  "m T[1,2,3,5,4] [3,5,4] [1,2,7,5,6] 0.5 1.25 0.7"),
    CF_MOVED("_upsample_nearest_exact2d", CF_WITH_BYTES, "s T[2,3,5,7] [10,17]", "m T[1,2,13,17] [5,3]",
             "m T[1,2,13,17] [5,3] 0.4 0.2"),
    CF_MOVED_BACK("_upsample_nearest_exact2d", "s T[2,3,10,17] [10,17] [2,3,5,7]",
                  "m T[1,2,5,3] [5,3] [1,2,13,17] 0.4 0.2"),
    CF_MOVED("_upsample_nearest_exact1d", CF_WITH_BYTES, "s T[2,3,13] [33]", "m T[1,3,17] [5] 2.5",
             "m T[1,3,17] [17] 0.3"),
    CF_MOVED("_upsample_nearest_exact3d", CF_WITH_BYTES, "m T[2,3,3,5,2] [6,7,5]",
             "m T[1,2,7,5,6] [3,5,4] 0.5 1.25 0.7"),
    CF_MOVED_BACK("_upsample_nearest_exact1d", "s T[2,3,33] [33] [2,3,13]", "m T[1,3,5] [5] [1,3,17] 0.3"),
    CF_MOVED_BACK("_upsample_nearest_exact3d", "m T[2,3,6,7,5] [6,7,5] [2,3,3,5,2]",
                  "m T[1,2,3,5,4] [3,5,4] [1,2,7,5,6] 0.5 1.25 0.7"),
    CF_LINEAR("upsample_linear1d", "s T[2,3,13] [33] false", "m T[2,3,13] [33] true", "m T[1,1,17] [5] false 0.3"),
    CF_LINEAR_BACK("upsample_linear1d", "s T[2,3,33] [33] [2,3,13] false", "m T[2,3,33] [33] [2,3,13] true",
                   "m T[1,1,5] [5] [1,1,17] false 0.3"),
    CF_LINEAR("upsample_bilinear2d", "s T[2,3,5,7] [10,14] false", "m T[2,3,5,7] [13,17] true",
              "m T[1,2,13,17] [5,3] false", "m T[2,3,5,7] [12,17] false 2.5 2.5", "m T[1,1,1,1] [3,3] true"),
    CF_LINEAR_BACK("upsample_bilinear2d", "s T[2,3,10,14] [10,14] [2,3,5,7] false",
                   "m T[2,3,13,17] [13,17] [2,3,5,7] true", "m T[1,2,5,3] [5,3] [1,2,13,17] false",
                   "m T[1,2,5,3] [5,3] [1,2,13,17] false 0.4 0.2"),
    CF_PLANES("upsample_bilinear2d_backward", CF_PROPAGATES(cf_l_linear),
              "m T[1,9,180,181] [180,181] [1,9,190,179] false"),
    CF_LINEAR("upsample_trilinear3d", "s T[2,3,3,5,2] [6,7,5] false", "m T[1,2,3,5,2] [6,7,5] true",
              "s T[1,2,7,5,6] [3,5,4] false 0.5 1.25 0.7"),
    CF_LINEAR_BACK("upsample_trilinear3d", "s T[2,3,6,7,5] [6,7,5] [2,3,3,5,2] false",
                   "m T[1,2,6,7,5] [6,7,5] [1,2,3,5,2] true", "m T[1,2,3,5,4] [3,5,4] [1,2,7,5,6] false 0.5 1.25 0.7"),
    CF_LINEAR("upsample_bicubic2d", "s T[2,3,5,7] [10,14] false", "m T[2,3,5,7] [13,17] true",
              "m T[1,2,13,17] [5,3] false", "m T[2,3,5,7] [12,17] false 2.5 2.5", "m T[1,1,1,1] [3,3] true"),
    CF_LINEAR_BACK("upsample_bicubic2d", "m T[2,3,10,14] [10,14] [2,3,5,7] false",
                   "m T[2,3,13,17] [13,17] [2,3,5,7] true", "m T[1,2,5,3] [5,3] [1,2,13,17] false",
                   "m T[1,2,5,3] [5,3] [1,2,13,17] false 0.4 0.2"),
    CF_LINEAR("_upsample_bilinear2d_aa", "s T[1,2,13,17] [5,3] false", "m T[2,3,13,7] [3,17] true",
              "m T[2,3,5,7] [12,17] false 2.5 2.5", "m T[1,1,33,3] [1,1] true"),
    CF_LINEAR_BACK("_upsample_bilinear2d_aa", "m T[1,2,5,3] [5,3] [1,2,13,17] false",
                   "m T[2,3,13,17] [13,17] [2,3,5,7] true", "m T[1,2,5,3] [5,3] [1,2,13,17] false 0.4 0.2"),
    CF_LINEAR("_upsample_bicubic2d_aa", "m T[1,2,13,17] [5,3] false", "m T[2,3,13,7] [3,17] true",
              "m T[2,3,5,7] [12,17] false 2.5 2.5", "m T[1,1,33,3] [1,1] true"),
    CF_LINEAR_BACK("_upsample_bicubic2d_aa", "m T[1,2,5,3] [5,3] [1,2,13,17] false",
                   "m T[2,3,13,17] [13,17] [2,3,5,7] true", "m T[1,2,5,3] [5,3] [1,2,13,17] false 0.4 0.2"),
    /* An infinity times a weight of 0 is NaN; positions are exact, between elements or on them. */
    CF_INFINITE("upsample_linear1d", "m T[2,3,5]+^ [9] true", "m T[2,3,17]+^ [34] false",
                "m T[2,3,17]+^ [17] false 1.03"),
    CF_INFINITE("upsample_linear1d_backward", "m T[2,3,9]+^ [9] [2,3,5] true", "m T[2,3,17]+^ [17] [2,3,17] false"),
    CF_INFINITE("upsample_bilinear2d", "m T[2,3,5,5]+^ [9,9] true", "m T[2,3,5,9]+^ [9,9] true",
                "m T[2,3,9,5]+^ [9,10] false", "m T[2,3,5,7]+^ [5,7] true", "m T[2,3,5,7] [5,7] false 1.1 1.1"),
    /* Stretches of a row that a CPU makes apart, and in each so many elements at once. */
    CF_PLANES("upsample_bilinear2d", CF_PROPAGATES(cf_l_linear), "m T[1,2,3,41] [4,300] false",
              "m T[1,2,3,150] [4,520] true", "m T[1,2,3,90] [4,119] false"),
    CF_INFINITE("upsample_bilinear2d_backward", "m T[2,3,9,9]+^ [9,9] [2,3,5,9] true",
                "m T[2,3,5,7]+^ [5,7] [2,3,5,7] false"),
    CF_INFINITE("upsample_trilinear3d", "m T[1,2,3,5,5]+^ [5,9,5] true", "m T[1,2,3,5,7]+^ [3,10,7] false"),
    CF_INFINITE("upsample_bicubic2d", "m T[2,3,5,9]+^ [9,9] true", "m T[2,3,5,7]+^ [5,7] false"),
    CF_INFINITE("upsample_bicubic2d_backward", "m T[2,3,9,9]+^ [9,9] [2,3,5,9] true",
                "m T[2,3,5,7]+^ [5,7] [2,3,5,7] false"),
    CF_MOVED("reflection_pad1d", CF_MOVES, "s T[2,3,13] [3,5]", "m T[3,17] [-2,4]"),
    CF_MOVED_BACK("reflection_pad1d", "s T[2,3,21] T[2,3,13] [3,5]"),
    CF_MOVED("reflection_pad2d", CF_MOVES, "s T[2,3,5,7] [1,2,3,4]", "m T[3,5,7] [0,6,-1,1]", "m T[2,7,43] [2,3,1,1]"),
    CF_MOVED_BACK("reflection_pad2d", "s T[2,3,12,10] T[2,3,5,7] [1,2,3,4]"),
    CF_MOVED("reflection_pad3d", CF_MOVES, "s T[2,3,3,5,4] [1,2,3,4,1,0]", "m T[2,3,6,5,4] [1,2,3,4,5,0]"),
    CF_MOVED_BACK("reflection_pad3d", "s T[2,3,4,12,7] T[2,3,3,5,4] [1,2,3,4,1,0]",
                  "m T[2,3,11,12,7] T[2,3,6,5,4] [1,2,3,4,5,0]"),
    CF_MOVED("replication_pad1d", CF_MOVES, "s T[2,3,13] [3,15]", "m T[3,17] [-2,4]"),
    CF_MOVED_BACK("replication_pad1d", "s T[2,3,31] T[2,3,13] [3,15]"),
    CF_MOVED("replication_pad2d", CF_MOVES, "s T[2,3,5,7] [1,2,3,14]", "m T[3,5,7] [0,6,-1,1]"),
    CF_MOVED_BACK("replication_pad2d", "s T[2,3,22,10] T[2,3,5,7] [1,2,3,14]"),
    CF_MOVED("replication_pad3d", CF_MOVES, "s T[2,3,3,5,4] [1,2,3,4,1,0]", "m T[2,3,6,5,4] [1,2,3,4,5,0]"),
    CF_MOVED_BACK("replication_pad3d", "s T[2,3,4,12,7] T[2,3,3,5,4] [1,2,3,4,1,0]",
                  "m T[2,3,11,12,7] T[2,3,6,5,4] [1,2,3,4,5,0]"),
};

CF_TOPIC(resample_taps, "resample", cf_resample_ops);
