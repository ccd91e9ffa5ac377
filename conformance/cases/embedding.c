#include <math.h>

#include "conformance/cases/rows.h"

/* A sum of as many rows as the bag has, each times its weight; a mean divides it once more. */
static void cf_l_bag(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  int64_t width = o->ndim == 2 ? o->sizes[1] : 1;
  for (int64_t i = 0; out == 0 && i < o->numel; i++) {
    long double n = k->outs[2].v[i / width].re;
    limits[i] = cf_limit_of(k, 0, i, (cf_growth(n) + 2) * cf_modulus(k->absolute[0].v[i]));
  }
}

#define CF_R_BAG \
  { .klass = CF_CUSTOM, .limit = cf_l_bag, .absolute = true }

/* A norm, the quotient by it, and a product; what is not named or short stays as it is. */
static void cf_l_embedding_renorm(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out], *x = &k->in[0];
  double p = cf_arg_number(k->call, "norm_type", 2);
  long double roundings = cf_norm_roundings(p, (long double)x->sizes[1]) + 4;
  for (int64_t i = 0; i < o->numel; i++)
    if (o->v[i].re != x->v[i].re) limits[i] = cf_limit_of(k, out, i, roundings * fabsl(o->v[i].re));
}

static const cf_op cf_embedding_ops[] = {
    {"aten::embedding",
     CF_TEXTS("s T[33,17] i64[5,3]<33", "m T[129,1] i64[]<129", "m T[3,17] i64[0]<3", "m T[33,17] i32[5,3]<33",
              "m T[33,40] i64[13,3]<33", "f T[1025,33] i64[17,13]<1025"),
     CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    /* padding_idx: the row that it names gets no gradient, so that the VJP is not the adjoint of the forward. */
    {"aten::embedding", CF_TEXTS("m T[33,17] i64[13]<33 3", "m T[3,5] i64[13]<3 0"), CF_FLOATS, CF_R_EXACT, CF_VALUES,
     CF_NO_ADJOINT, CF_G_LINEAR(0)},
    {"aten::embedding_dense_backward",
     CF_TEXTS("s T[5,3,17] i64[5,3]<33 33 -1 false", "m T[129,3] i64[129]<5 5 2 false",
              "m T[13,17] i64[13]<4 33 -1 false"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(0)},
    /* Divided by how often the row is there. Not expanded: equal terms, each of them divided, round alike. */
    {"aten::embedding_dense_backward",
     CF_TEXTS("m T[129,3] i64[129]<5 5 -1 true"),
     CF_FLOATS,
     {.klass = CF_SUM, .terms = CF_TERMS_ONES, .ulps = 2},
     CF_VALUES,
     CF_ORDERED | CF_FLAT,
     CF_G_NONE},
    /* Offsets `<N!` rise by one: small bags and a large one. `=0`: empty bags, and all in the last. */
    {"aten::_embedding_bag",
     CF_TEXTS("s T[33,17] i64[13]<33 i64[5]<33!", "m T[129,1] i64[65]<129 i64[3]=0",
              "m T[7,5] i32[33]<7 i32[9]<33! false 0 false _ true 2",
              "m T[33,17] i64[13]<33 i64[5]<33! false 0 false T[13]",
              "m T[7,5] i64[33]<7 i64[9]<33! false 0 false T[33] true",
              "m T[7,5] i64[33]<7 i64[9]<33! false 0 false _ false 0"),
     CF_FLOATS, CF_R_BAG, CF_VALUES, CF_ORDERED | CF_NO_ADJOINT, CF_G_LINEAR(2)},
    /* Means: ones give a gradient 1 / size a term, which counts none. Where indices are expanded, all 65 terms are
     * equal and round alike, so that they have the bound of any sum, n u. */
    {"aten::_embedding_bag",
     CF_TEXTS("m T[33,17] i64[13]<33 i64[5]<33! false 1", "m T[3,17] i64[0]<3 i64[4]=0 false 1",
              "m T[129,33] i64[65]<129 i64[3]=0 false 1 false _ false 3"),
     CF_FLOATS,
     CF_R_BAG,
     CF_VALUES,
     CF_ORDERED | CF_NO_ADJOINT,
     {.kind = CF_GRAD_ABS, .steps = 2, .inner = 2 + 65}},
    {"aten::_embedding_bag",
     CF_TEXTS("m T[33,17] i64[13]<33 i64[5]<33! false 2", "m T[129,1] i64[65]<129 i64[3]=0 false 2",
              "m T[7,5] i32[33]<7 i32[9]<33! false 2 false _ true 2", "m T[3,17] i64[0]<3 i64[4]=0 false 2"),
     CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_ORDERED | CF_NO_ADJOINT | CF_SPECIAL, CF_G_SELECT(0)},
    /* A bag an index, but for the last case, where offset2bag and the sizes say otherwise than the offsets, which only
     * gradients of dense weights pass over. */
    {"aten::_embedding_bag_backward",
     CF_TEXTS("m T[13,17] i64[13]<5 i64[13]<13! i64[13]<13! i64[13]=1 i64[13]=0 5 false 0 false _",
              "m T[13,17] i64[13]<5 i64[13]<13! i64[13]<13! i64[13]=1 i64[13]=0 5 false 1 false _ 2",
              "m T[13,17] i64[13]<5 i64[13]<13! i64[13]<13! i64[13]=1 i64[13]=0 5 false 0 false T[13]",
              "m T[13,17] i64[13]<7 i64[13]<13! i64[13]<13! i64[13]=1 i64[13]=0 7 false 0 false _"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::_embedding_bag_dense_backward",
     CF_TEXTS("m T[13,17] i64[13]<5 i64[13]<13! i64[13]=1 i64[13]=0 5 false 0 _",
              "m T[13,17] i64[65]<5 i64[65]<13 i64[13]=5 i64[13]=0 5 false 0 T[65]",
              "m T[13,17] i64[65]<5 i64[65]<13 i64[13]=5 i64[13]=0 5 false 0 _ 2"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::_embedding_bag_dense_backward",
     CF_TEXTS("m T[13,17] i64[65]<5 i64[65]<13 i64[13]=5 i64[13]=0 5 true 0 _"),
     CF_FLOATS,
     {.klass = CF_SUM, .terms = CF_TERMS_ONES, .ulps = 2},
     CF_VALUES,
     CF_ORDERED | CF_FLAT,
     CF_G_NONE},
    {"aten::_embedding_bag_dense_backward",
     CF_TEXTS("m T[13,17] i64[65]<7 i64[65]<13 i64[13]=5 i64[13]=0 7 false 1 _"),
     CF_FLOATS,
     {.klass = CF_SUM, .terms = CF_TERMS_ONES, .ulps = 2},
     CF_VALUES,
     CF_ORDERED,
     CF_G_NONE},
    {"aten::_embedding_bag_backward",
     CF_TEXTS("m T[13,17] i64[13]<5 i64[13]<13! i64[13]<13! i64[13]=1 i64[13]=0 5 true 0 false _"),
     CF_FLOATS,
     {.klass = CF_SUM, .terms = CF_TERMS_ONES, .ulps = 2},
     CF_VALUES,
     CF_ORDERED | CF_FLAT,
     CF_G_NONE},
    {"aten::_embedding_bag_per_sample_weights_backward",
     CF_TEXTS("m T[13,17] T[5,17] i64[13]<5 i64[13]<13! i64[13]<13! 0",
              "m T[13,129] T[5,129] i64[13]<5 i64[13]<13! i64[13]<13! 0 2"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::embedding_renorm",
     CF_TEXTS("s T[33,17] i64[13]<33 3.0 2.0", "m T[129,5] i64[3,5]<129 2.0 1.0", "s T[13,33] i32[5]<13 1.5 inf",
              "m T[5,17] i64[3]=-2 4.0 3.0", "s T[5,17] i64[0]<5 1.0 2.0"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_embedding_renorm), CF_VALUES, CF_ORDERED, CF_G_NONE},
};

CF_TOPIC(embedding, "embedding", cf_embedding_ops);
