/* Attention. A score's error is that of a dot product; a weight's is its score's, that of logsumexp and of exp; results
 * are sums over weights. In absolute terms, so that dropout's mask need not be known: it only takes terms away. */
#include "conformance/judge/near.h"

#include <stdlib.h>

#include "conformance/cases/rows.h"

typedef struct cf_attention_call {
  const cf_check *k;
  const cf_array *q, *key, *v, *bias;
  int64_t batch, heads, rows, columns, width, value_width;
  int64_t bias_stride[4];
  long double scale, keep, u;
  bool causal;
} cf_attention_call;

static cf_attention_call cf_attention_of(const cf_check *k, long double u) {
  cf_attention_call a = {.k = k,
                         .q = cf_arg_array(k, "query"),
                         .key = cf_arg_array(k, "key"),
                         .v = cf_arg_array(k, "value"),
                         .bias = cf_arg_array(k, "attn_bias"),
                         .u = u};
  a.batch = a.q->sizes[0], a.heads = a.q->sizes[1], a.rows = a.q->sizes[2], a.width = a.q->sizes[3];
  a.columns = a.key->sizes[2], a.value_width = a.v->sizes[3];
  a.scale = cf_arg_number(k->call, "scale", 1 / sqrt((double)a.width));
  a.causal = cf_arg_int(k->call, "is_causal", 0) != 0;
  long double dropout = cf_arg_number(k->call, "dropout_p", 0);
  a.keep = dropout < 1 ? 1 / (1 - dropout) : 0;
  int64_t stride = 1;
  for (int32_t d = a.bias ? a.bias->ndim - 1 : -1; d >= 0; d--) {
    if (a.bias->sizes[d] != 1) a.bias_stride[4 - a.bias->ndim + d] = stride;
    stride *= a.bias->sizes[d];
  }
  return a;
}

/* The dot product of two rows: its value, and the error of its sum. */
static cf_near cf_dot_of(const cf_attention_call *a, const cf_array *x, int64_t x_row, const cf_array *y, int64_t y_row,
                         int64_t width) {
  cf_near sum = {0, 0};
  for (int64_t e = 0; e < width; e++) {
    long double term = x->v[x_row * width + e].re * y->v[y_row * width + e].re;
    sum.v += term, sum.e += fabsl(term);
  }
  sum.e *= (cf_growth((long double)width) + 1) * a->u;
  return sum;
}

static int64_t cf_bias_at(const cf_attention_call *a, int64_t row, int64_t j) {
  int64_t head = row / a->rows;
  const int64_t *s = a->bias_stride;
  return head / a->heads * s[0] + head % a->heads * s[1] + row % a->rows * s[2] + j * s[3];
}

static cf_near cf_score_of(const cf_attention_call *a, int64_t row, int64_t j) {
  if (a->causal && j > row % a->rows) return (cf_near){-INFINITY, 0};
  cf_near dot = cf_dot_of(a, a->q, row, a->key, row / a->rows * a->columns + j, a->width);
  cf_near s = cf_near_mul(a->u, (cf_near){a->scale, a->u * fabsl(a->scale)}, dot);
  if (!a->bias) return s;
  long double bias = a->bias->v[cf_bias_at(a, row, j)].re;
  return isinf(bias) ? (cf_near){bias, 0} : cf_near_add(a->u, s, cf_exactly(bias));
}

/* logsumexp of a row from its scores: their errors by weight, the sum's and the logarithm's. Scores are shifted by the
 * largest, at times by a lesser one first. */
static cf_near cf_lse_of(const cf_attention_call *a, const cf_near *scores) {
  cf_near lse = {-INFINITY, 0};
  long double most = -INFINITY, sum = 0, error = 0;
  for (int64_t j = 0; j < a->columns; j++) most = fmaxl(most, scores[j].v);
  if (isinf(most)) return lse;
  for (int64_t j = 0; j < a->columns; j++) {
    if (isinf(scores[j].v)) continue;
    long double w = expl(scores[j].v - most);
    sum += w, error += w * (scores[j].e + a->u * (most - scores[j].v));
  }
  lse.v = most + logl(sum);
  long double relative = error / sum + (cf_growth((long double)a->columns) + 14) * a->u;
  lse.e = relative + a->u * (6 * fabsl(logl(sum)) + fabsl(most) + fabsl(lse.v));
  return lse;
}

/* exp(score - lse) */
static cf_near cf_weight_of_score(const cf_attention_call *a, cf_near score, cf_near lse) {
  if (isinf(score.v) || isinf(lse.v)) return cf_exactly(0);
  return cf_near_exp(a->u, cf_near_sub(a->u, score, lse));
}

/* All weights of a row. */
static void cf_weights_of(const cf_attention_call *a, int64_t row, const cf_near *given_lse, cf_near *weights,
                          cf_near *lse) {
  for (int64_t j = 0; j < a->columns; j++) weights[j] = cf_score_of(a, row, j);
  *lse = given_lse ? *given_lse : cf_lse_of(a, weights);
  for (int64_t j = 0; j < a->columns; j++) weights[j] = cf_weight_of_score(a, weights[j], *lse);
}

static void cf_l_attention(const cf_check *k, uint32_t out, long double *limits) {
  graft_dtype dtype = k->dtypes[out];
  cf_attention_call a = cf_attention_of(k, cf_u_acc(dtype));
  cf_near *weights = calloc((size_t)a.columns + 1, sizeof *weights), lse;
  const cf_array *o = &k->outs[out];
  for (int64_t row = 0; weights && out < 2 && row < a.batch * a.heads * a.rows; row++) {
    cf_weights_of(&a, row, NULL, weights, &lse);
    if (out == 1) limits[row] = lse.e + cf_ulp(dtype, lse.v) / 2;
    for (int64_t e = 0; out == 0 && e < a.value_width; e++) {
      long double error = 0, size = 0;
      for (int64_t j = 0; j < a.columns; j++) {
        long double v = fabsl(a.v->v[(row / a.rows * a.columns + j) * a.value_width + e].re) * a.keep;
        error += weights[j].e * v, size += weights[j].v * v;
      }
      int64_t at = row * a.value_width + e;
      limits[at] = error + (cf_growth((long double)a.columns) + 10) * a.u * size + cf_ulp(dtype, o->v[at].re) / 2;
    }
  }
  free(weights);
}

/* ---- backward ---- */

typedef struct cf_attention_back {
  cf_attention_call a;
  const cf_array *grad, *out, *lse; /* of out and lse each number may be off by stored_u of itself */
  long double stored_u, lse_u;
  bool own_lse; /* logsumexp as forward computes it: its error as well */
} cf_attention_back;

static cf_near cf_delta_of(const cf_attention_back *b, int64_t row) {
  cf_near delta = cf_dot_of(&b->a, b->grad, row, b->out, row, b->a.value_width);
  for (int64_t e = 0; e < b->a.value_width; e++) {
    int64_t at = row * b->a.value_width + e;
    delta.e += b->stored_u * fabsl(b->grad->v[at].re * b->out->v[at].re);
  }
  return delta;
}

/* Adds |factor| x the error and u x the size of a term of a sum of n. */
static void cf_count(const cf_attention_call *a, long double *limit, cf_near term, long double factor, int64_t n) {
  *limit += fabsl(factor) * (term.e + (cf_growth((long double)n) + 3) * a->u * fabsl(term.v));
}

enum { CF_TO_QUERY, CF_TO_KEY, CF_TO_VALUE, CF_TO_BIAS };

static void cf_attention_row(const cf_attention_back *b, int64_t row, int which, cf_near *weights,
                             long double *limits) {
  const cf_attention_call *a = &b->a;
  cf_near given = cf_exactly(b->lse->v[row].re), lse;
  given.e = isinf(given.v) ? 0 : b->lse_u * fabsl(given.v);
  cf_weights_of(a, row, b->own_lse ? NULL : &given, weights, &lse);
  cf_near delta = cf_delta_of(b, row);
  int64_t first = row / a->rows * a->columns, everywhere = a->batch * a->heads * a->rows * a->columns;
  for (int64_t j = 0; j < a->columns; j++) {
    cf_near dot = cf_dot_of(a, b->grad, row, a->v, first + j, a->value_width);
    dot.e += a->keep * (dot.e + 2 * a->u * fabsl(dot.v)), dot.v = fabsl(dot.v) * a->keep + fabsl(delta.v);
    dot.e += delta.e + a->u * dot.v;
    cf_near slope = cf_near_mul(a->u, weights[j], dot);
    for (int64_t e = 0; which == CF_TO_QUERY && e < a->width; e++)
      cf_count(a, &limits[row * a->width + e], slope, a->scale * a->key->v[(first + j) * a->width + e].re, a->columns);
    for (int64_t e = 0; which == CF_TO_KEY && e < a->width; e++)
      cf_count(a, &limits[(first + j) * a->width + e], slope, a->scale * a->q->v[row * a->width + e].re, a->rows);
    for (int64_t e = 0; which == CF_TO_VALUE && e < a->value_width; e++)
      cf_count(a, &limits[(first + j) * a->value_width + e], weights[j],
               a->keep * b->grad->v[row * a->value_width + e].re, a->rows);
    if (which == CF_TO_BIAS) cf_count(a, &limits[cf_bias_at(a, row, j)], slope, 1, everywhere / a->bias->numel);
  }
}

static void cf_attention_rows(const cf_attention_back *b, int which, long double *limits) {
  const cf_attention_call *a = &b->a;
  cf_near *weights = calloc((size_t)a->columns + 1, sizeof *weights);
  for (int64_t row = 0; weights && row < a->batch * a->heads * a->rows; row++) {
    cf_attention_row(b, row, which, weights, limits);
  }
  free(weights);
}

static void cf_l_attention_backward(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  cf_attention_back b = {cf_attention_of(k, cf_u_acc(k->dtypes[out])),
                         cf_arg_array(k, "grad_out"),
                         cf_arg_array(k, "out"),
                         cf_arg_array(k, "logsumexp"),
                         0,
                         0,
                         false};
  cf_attention_rows(&b, (int)out, limits);
  for (int64_t i = 0; i < o->numel; i++) limits[i] += cf_limit_of(k, out, i, 0);
}

/* Gradients: as for recurrent cells, the propagated error for a unit roundoff of 1. */
static void cf_g_attention(const cf_check *k, uint32_t in, long double *terms) {
  const long double small = 0x1p-40L;
  cf_attention_back b = {cf_attention_of(k, small), &k->g[0], &k->outs[0], &k->outs[1], small, small, true};
  const cf_array *of = &k->in[in];
  int which = of == b.a.q ? CF_TO_QUERY : of == b.a.key ? CF_TO_KEY : of == b.a.v ? CF_TO_VALUE : CF_TO_BIAS;
  cf_attention_rows(&b, which, terms);
  for (int64_t i = 0; i < of->numel; i++) terms[i] /= small;
}

#define CF_FORWARD "aten::_scaled_dot_product_fused_attention_overrideable"

static const cf_op cf_attention_ops[] = {
    {CF_FORWARD,
     CF_TEXTS("s T[2,3,5,16] T[2,3,13,16] T[2,3,13,16]", "m T[1,2,17,8] T[1,2,17,8] T[1,2,17,8] _ 0.0 true",
              "m T[2,3,5,16] T[2,3,13,16] T[2,3,13,7] T[5,13]",
              "s T[2,3,5,3] T[2,3,33,3] T[2,3,33,3] T[2,1,5,33] 0.0 true scale=0.5",
              "m T[1,1,1,1] T[1,1,1,1] T[1,1,1,1]", "m T[2,2,3,33] T[2,2,129,33] T[2,2,129,33] T[1,2,1,129]",
              "s T[0,3,5,4] T[0,3,7,4] T[0,3,7,4]", "m T[1,2,37,20] T[1,2,70,20] T[1,2,70,13]",
              "m T[2,1,45,9] T[2,1,45,9] T[2,1,45,9] _ 0.0 true", "m T[1,1,12,5] T[1,1,9,5] T[1,1,9,3] T[12,9]",
              "f T[2,4,65,64] T[2,4,65,64] T[2,4,65,64] _ 0.0 true"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_attention), CF_VALUES, CF_ORDERED, CF_G_PROPAGATED(cf_g_attention)},
    /* Enough for a GPU's tiles, and few rows of many columns. */
    {CF_FORWARD,
     CF_TEXTS("m T[1,1,70,20] T[1,1,90,20] T[1,1,90,13] T[70,90] 0.0 true", "s T[2,2,3,33] T[2,2,257,33] T[2,2,257,9]",
              "m T[1,2,5,40] T[1,2,200,40] T[1,2,200,40] _ 0.25 true"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_attention), CF_VALUES, CF_NO_ADJOINT, CF_G_NONE},
    {CF_FORWARD "_backward",
     CF_TEXTS("m T[1,1,70,13] T[1,1,70,20] T[1,1,90,20] T[1,1,90,13] T[70,90] [1,1,1,1] T[1,1,70,13] f32[1,1,70]+ _ _ "
              "70 90 0.25 true i64[]=77 i64[]=8",
              "m T[1,1,90,16] T[1,1,90,16] T[1,1,70,16] T[1,1,70,16] _ [0,1,1,0] T[1,1,90,16] f32[1,1,90]+ _ _ 90 70 "
              "0.0 false i64[]=0 i64[]=0"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_attention_backward), CF_UNIT, CF_ORDERED, CF_G_NONE},
    /* Each call draws another mask, so that no two make a difference quotient. */
    {CF_FORWARD,
     CF_TEXTS("m T[2,3,5,16] T[2,3,13,16] T[2,3,13,16] _ 0.25",
              "m T[1,2,17,8] T[1,2,17,8] T[1,2,17,8] T[17,17] 0.5 true"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_attention), CF_VALUES, CF_NO_ADJOINT, CF_G_PROPAGATED(cf_g_attention)},
    /* Ends of a GPU's tiles of f32: of rows, columns and widths, more than one tile of each, and heads. */
    {CF_FORWARD,
     CF_TEXTS("m T[2,2,67,64] T[2,2,67,64] T[2,2,67,64] _ 0.0 true",
              "m T[1,3,131,31] T[1,3,45,31] T[1,3,45,64] T[3,1,45] 0.25",
              "m T[2,1,16,62] T[2,1,100,62] T[2,1,100,35] T[16,100]"),
     CF_BIT(F32), CF_R_CUSTOM(cf_l_attention), CF_VALUES, CF_NO_ADJOINT, CF_G_NONE},
    {CF_FORWARD "_backward",
     CF_TEXTS(
         "m T[2,2,67,64] T[2,2,67,64] T[2,2,67,64] T[2,2,67,64] _ [1,1,1,0] T[2,2,67,64] f32[2,2,67]+ _ _ 67 67 0.0 "
         "true i64[]=0 i64[]=0",
         "m T[1,3,131,64] T[1,3,131,31] T[1,3,45,31] T[1,3,45,64] T[3,1,45] [1,1,1,1] T[1,3,131,64] f32[1,3,131]+ _ _ "
         "131 45 0.25 false i64[]=77 i64[]=8",
         "s T[2,1,16,35] T[2,1,16,62] T[2,1,100,62] T[2,1,100,35] T[16,100] [0,0,1,0] T[2,1,16,35] f32[2,1,16]+ _ _ 16 "
         "100 0.0 false i64[]=0 i64[]=0"),
     CF_BIT(F32), CF_R_CUSTOM(cf_l_attention_backward), CF_UNIT, CF_ORDERED, CF_G_NONE},
    /* Rows of which nothing is seen, and rows of which only the last column is: of few rows, of vectors and of each
     * kind of a GPU's tiles. */
    {CF_FORWARD,
     CF_TEXTS("m T[1,2,5,8] T[1,2,7,8] T[1,2,7,8] T[5,7]~masked", "m T[1,1,12,5] T[1,1,9,5] T[1,1,9,3] T[12,9]~masked"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_attention), CF_VALUES, CF_ORDERED | CF_NO_ADJOINT, CF_G_PROPAGATED(cf_g_attention)},
    {CF_FORWARD,
     CF_TEXTS("m T[1,1,40,48] T[1,1,40,48] T[1,1,40,48] T[40,40]~masked",
              "m T[1,1,40,72] T[1,1,40,72] T[1,1,40,72] T[40,40]~masked",
              "m T[2,2,4,33] T[2,2,160,33] T[2,2,160,33] T[4,160]~masked"),
     CF_BIT(F32), CF_R_CUSTOM(cf_l_attention), CF_VALUES, CF_NO_ADJOINT, CF_G_PROPAGATED(cf_g_attention)},
    /* Enough for tiles of tensor cores, and their ends. */
    {CF_FORWARD,
     CF_TEXTS("m T[1,1,136,64] T[1,1,136,64] T[1,1,136,64] _ 0.0 true",
              "m T[2,1,70,72] T[2,1,90,72] T[2,1,90,40] T[70,90]",
              "m T[1,1,100,128] T[1,1,48,128] T[1,1,48,128] _ 0.25", "f T[1,1,70,256] T[1,1,70,256] T[1,1,70,256]"),
     CF_BIT(F16) | CF_BIT(BF16), CF_R_CUSTOM(cf_l_attention), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {CF_FORWARD "_backward",
     CF_TEXTS(
         "m T[1,1,136,64] T[1,1,136,64] T[1,1,136,64] T[1,1,136,64] _ [1,1,1,1] T[1,1,136,64] f32[1,1,136]+ _ _ "
         "136 136 0.0 true i64[]=0 i64[]=0",
         "m T[2,1,70,40] T[2,1,70,72] T[2,1,90,72] T[2,1,90,40] T[70,90] [1,1,1,0] T[2,1,70,40] f32[2,1,70]+ "
         "_ _ 70 90 0.25 false i64[]=77 i64[]=8",
         "m T[1,1,100,128] T[1,1,100,128] T[1,1,48,128] T[1,1,48,128] _ [0,1,0,0] T[1,1,100,128] f32[1,1,100]+ _ _ "
         "100 48 0.0 false i64[]=0 i64[]=0"),
     CF_BIT(F16) | CF_BIT(BF16), CF_R_CUSTOM(cf_l_attention_backward), CF_UNIT, CF_ORDERED, CF_G_NONE},
    {CF_FORWARD "_backward",
     CF_TEXTS(
         "s T[2,3,5,16] T[2,3,5,16] T[2,3,13,16] T[2,3,13,16] _ [1,1,1,1] T[2,3,5,16] f32[2,3,5]+ _ _ 5 13 0.0 false "
         "i64[]=0 "
         "i64[]=0",
         "m T[1,2,17,8] T[1,2,17,8] T[1,2,17,8] T[1,2,17,8] T[2,1,17] [1,1,1,1] T[1,2,17,8] f32[1,2,17]+ _ _ 17 17 0.0 "
         "true i64[]=0 i64[]=0",
         "m T[2,3,5,7] T[2,3,5,16] T[2,3,13,16] T[2,3,13,7] T[2,1,1,13] [0,1,0,1] T[2,3,5,7] f32[2,3,5]+ _ _ 5 13 0.5 "
         "false i64[]=77 i64[]=8 scale=0.25",
         "m T[2,3,5,7] T[2,3,5,16] T[2,3,13,16] T[2,3,13,7] T[5,13] [1,0,0,0] T[2,3,5,7] f32[2,3,5]+ _ _ 5 13 0.25 "
         "false i64[]=12345 i64[]=40"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_attention_backward), CF_UNIT, CF_ORDERED, CF_G_NONE},
};

CF_TOPIC(attention, "attention", cf_attention_ops);
