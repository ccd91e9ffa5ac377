/* Fourier transforms. Of a line of n points each stage of a transform is off by eta of the line's norm, and there are
 * log2(n) stages: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., theorem 24.2, eta being
 * u (1 + 4 sqrt 2) where each weight is off by u; here 7. All n results have the norm sqrt(n) |x| together and
 * share the error evenly, rounding errors being independent, so that each one may be off by log2(n) 7 u |x|, times what
 * the result is scaled by. A dim whose size has a prime above 7 is transformed as a convolution (Bluestein): three
 * transforms of the next power of two above 2 n. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cases/rows.h"

typedef struct cf_transform_of {
  const int64_t *dims;
  uint32_t count;
  long double stages, scale;
} cf_transform_of;

static bool cf_is_smooth(int64_t n) {
  for (int64_t p = 2; p <= 7; p++)
    while (n > 1 && n % p == 0) n /= p;
  return n == 1;
}

/* `full` has all points of each dim. */
static cf_transform_of cf_transform_read(const cf_check *k, const cf_array *full) {
  const op_schema *schema = k->call->text.schema;
  cf_transform_of t = {0};
  long double points = 1;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    const graft_value *v = &k->call->text.args[i];
    if (strcmp(schema->args[i].name, "dim") == 0) t.dims = v->as.ints, t.count = v->count;
  }
  for (uint32_t i = 0; i < t.count; i++) {
    int64_t n = full->sizes[t.dims[i]];
    points *= (long double)n;
    t.stages += cf_is_smooth(n) ? log2l((long double)n) : 3 * (log2l((long double)n) + 2);
  }
  int64_t by = cf_arg_int(k->call, "normalization", 0);
  t.scale = by == 0 ? 1 : by == 1 ? 1 / sqrtl(points) : 1 / points;
  return t;
}

/* Which batch, of those that the dims beside the transformed ones make, an element lies in. */
static int64_t cf_batch_of(const cf_array *a, const cf_transform_of *t, int64_t i) {
  int64_t batch = 0, weight = 1;
  for (int32_t d = a->ndim - 1; d >= 0; i /= a->sizes[d], d--) {
    bool transformed = false;
    for (uint32_t j = 0; j < t->count; j++) transformed |= t->dims[j] == d;
    if (transformed) continue;
    batch += i % a->sizes[d] * weight;
    weight *= a->sizes[d];
  }
  return batch;
}

/* What each element of `to` may be off by in units of u, as the transform of `from`; `each`: an element of `from`
 * counts as so many. */
static void cf_transform_errors(const cf_transform_of *t, const cf_array *from, const cf_array *to, long double each,
                                long double *errors) {
  long double *norms = calloc((size_t)from->numel + 1, sizeof *norms);
  for (int64_t i = 0; norms && i < from->numel; i++) {
    long double modulus = cf_modulus(from->v[i]);
    norms[cf_batch_of(from, t, i)] += each * modulus * modulus;
  }
  for (int64_t i = 0; i < to->numel; i++)
    errors[i] = norms ? (7 * t->stages + 2) * t->scale * sqrtl(norms[cf_batch_of(to, t, i)]) : 0;
  free(norms);
}

static bool cf_from_half(const cf_check *k) {
  return strstr(k->call->text.schema->name, "c2r") != NULL;
}

/* Of c2r, half of the bins are there. */
static void cf_l_fft(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *to = &k->outs[out], *from = &k->in[0];
  bool half = cf_from_half(k);
  cf_transform_of t = cf_transform_read(k, half ? to : from);
  cf_transform_errors(&t, from, to, half ? 2 : 1, limits);
  for (int64_t i = 0; i < to->numel; i++) limits[i] = cf_limit_of(k, out, i, limits[i]);
}

/* The gradient is a transform of the cotangent, of which bins that stand for two count twice. */
static void cf_g_fft(const cf_check *k, uint32_t input, long double *terms) {
  bool half = cf_from_half(k);
  cf_transform_of t = cf_transform_read(k, half ? &k->g[0] : &k->in[input]);
  cf_transform_errors(&t, &k->g[0], &k->in[input], half ? 4 : 1, terms);
}

#define CF_TRANSFORM_REALS (CF_BIT(F32) | CF_BIT(F64))

static const cf_op cf_fft_ops[] = {
    {"aten::_fft_c2c",
     CF_TEXTS("s T[13,60] [1] 0 true", "s T[3,37] [1] 0 false", "m T[60,13] [0] 2 false", "m T[5,7,11] [2,0] 1 true",
              "m T[1] [0] 0 true", "m T[2,3] [1] 0 false", "s T[129] [0] 1 false", "m T[17,1025] [1] 0 true",
              "m T[33,31,3] [1] 0 true", "m T[4096] [0] 0 false", "m T[3,2520] [1] 1 true",
              /* Large enough for a kernel of this size alone: of one pass, of several, along outer dims. */
              "s T[41,1000] [1] 0 true", "m T[5,8192] [1] 0 false", "s T[120,300] [0] 0 true",
              "s T[3,7,2048] [2,0] 1 true", "m T[9,49,5] [0,1,2] 0 true", "m T[11,3840] [1] 0 true",
              "m T[7,10,512] [1] 1 false",
              /* Lanes that share a line: 16, 4, whose points are no whole squares (8: 41 x 1000). */
              "m T[47,720] [1] 0 true", "m T[67,500] [1] 0 false",
              /* So large with another prime: along lines and beside each other. */
              "m T[75,448] [1] 0 true", "m T[448,80] [0] 0 true", "m T[49,704] [1] 0 false", "f T[5000,2] [0] 0 true",
              "m T[16384] [0] 0 true", "f T[2,1031] [1] 0 true", "m T[5,7,11] [-1,0] 0 true"),
     CF_COMPLEX, CF_R_CUSTOM(cf_l_fft), CF_VALUES, CF_ORDERED, CF_G_PROPAGATED(cf_g_fft)},
    {"aten::_fft_r2c",
     CF_TEXTS("s T[13,60] [1] 0 true", "m T[60,13] [0] 2 false", "m T[5,7,11] [2,0] 1 true", "m T[1] [0] 0 true",
              "m T[5,7,12] [0,2] 0 false", "m T[129] [0] 1 true", "m T[17,1025] [1] 0 true", "m T[4096] [0] 0 true",
              "m T[3,2520] [1] 0 false", "m T[17,2048] [1] 0 true", "s T[600,61] [0] 0 false", "s T[5,7680] [1] 1 true",
              "m T[25,1440] [1] 0 true", "m T[67,1000] [1] 0 true", "m T[75,448] [1] 0 true", "m T[49,704] [1] 0 false",
              "f T[16384] [0] 0 true", "f T[2,1031] [1] 0 false", "m T[5,7,11] [-1,0] 0 true"),
     CF_TRANSFORM_REALS, CF_R_CUSTOM(cf_l_fft), CF_VALUES, CF_ORDERED, CF_G_PROPAGATED(cf_g_fft)},
    {"aten::_fft_c2r",
     CF_TEXTS("s T[13,31] [1] 0 60", "s T[3,31] [1] 0 61", "s T[31,13] [0] 2 61", "s T[5,7,6] [0,2] 1 11",
              "m T[5,7,6] [0,2] 1 10", "m T[1] [0] 0 1", "m T[65] [0] 0 129", "m T[2] [0] 1 2",
              "m T[17,513] [1] 0 1025", "m T[2049] [0] 0 4096", "m T[17,1025] [1] 0 2048", "s T[301,61] [0] 1 600",
              "f T[8193] [0] 0 16384", "f T[2,516] [1] 0 1031", "m T[5,7,11] [-1,0] 0 9"),
     CF_COMPLEX, CF_R_CUSTOM(cf_l_fft), CF_VALUES, CF_ORDERED, CF_G_PROPAGATED(cf_g_fft)},
};

CF_TOPIC(fft, "fft", cf_fft_ops);
