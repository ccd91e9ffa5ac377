#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/cases/rows.h"
#include "conformance/judge/compare.h"

/* ---- unique values ---- */

static bool cf_unique_says(cf_verdict *v, int64_t at, const char *what) {
  v->ok = false, v->ratio = INFINITY, v->index = at;
  snprintf(v->text, sizeof v->text, "%s at element %lld", what, (long long)at);
  return false;
}

/* The oracle's values, in its order where they are sorted, and each once but for NaN, which is no other NaN's equal. */
static bool cf_unique_values(const cf_array *values, const cf_array *oracle, bool sorted, cf_verdict *v) {
  if (values->ndim != 1 || values->numel != oracle->numel)
    return cf_unique_says(v, values->numel, "there are more or fewer values than the oracle's");
  for (int64_t i = 0; i < values->numel; i++) {
    int64_t times = 0, expected = 0;
    for (int64_t k = 0; k < values->numel; k++) {
      times += cf_equal(values->v[k].re, values->v[i].re);
      expected += cf_equal(oracle->v[k].re, values->v[i].re);
    }
    bool here = !sorted || cf_equal(values->v[i].re, oracle->v[i].re);
    if (times != expected || !here) return cf_unique_says(v, i, "not the oracle's value");
  }
  return true;
}

/* Each element leads to its value, and each NaN to one of its own: which, is free. */
static bool cf_unique_inverse(const cf_array *x, const cf_array *values, const cf_array *inverse, cf_verdict *v) {
  bool *used = calloc((size_t)values->numel + 1, sizeof *used), right = used != NULL;
  if (!used) cf_verdict_fail(v, "no memory to check the indices");
  if (right && inverse->numel != x->numel) right = cf_unique_says(v, inverse->numel, "not an index for each element");
  for (int64_t i = 0; right && i < x->numel; i++) {
    long double at = inverse->v[i].re;
    bool inside = at >= 0 && at < (long double)values->numel, again = inside && isnan(x->v[i].re) && used[(int64_t)at];
    if (!inside || again || !cf_equal(values->v[(int64_t)at].re, x->v[i].re))
      right = cf_unique_says(v, i, again ? "the index of another NaN" : "not the index of its value");
    else
      used[(int64_t)at] = true;
  }
  free(used);
  return right;
}

static bool cf_unique_counts(const cf_array *x, const cf_array *values, const cf_array *counts, cf_verdict *v) {
  if (counts->numel != values->numel) return cf_unique_says(v, counts->numel, "not a count for each value");
  for (int64_t i = 0; i < values->numel; i++) {
    int64_t times = isnan(values->v[i].re);
    for (int64_t k = 0; k < x->numel; k++) times += x->v[k].re == values->v[i].re;
    if (counts->v[i].re != times) return cf_unique_says(v, i, "not the count of its value");
  }
  return true;
}

static void cf_unique_property(const cf_check *check, const cf_array *results, cf_verdict *v) {
  const cf_call *call = check->call;
  const cf_array *x = &check->in[0], *values = &results[OUT_unique2_out0], *inverse = &results[OUT_unique2_out1],
                 *counts = &results[OUT_unique2_out2];
  if (!cf_unique_values(values, &check->outs[OUT_unique2_out0], cf_arg_bool(call, "sorted", true), v)) return;
  if (cf_arg_bool(call, "return_inverse", false) && !cf_unique_inverse(x, values, inverse, v)) return;
  if (cf_arg_bool(call, "return_counts", false)) cf_unique_counts(x, values, counts, v);
}

/* ---- rows ---- */

static const cf_op cf_sorting_ops[] = {
    {"aten::sort",
     CF_TEXTS("s T[33,17] 1", "m T[33,17] 0 true", "m T[1025]", "m T[3,13,17] 1", "m T[]", "m T[0]",
              "m T[5,129] -1 true"),
     CF_REALS, CF_R_PERMUTED, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(0)},
    {"aten::sort.stable",
     CF_TEXTS("s T[33,17] true 1", "m T[33,17] true 0 true", "m T[1025] true", "m T[3,13,17] true 1", "m T[] true",
              "m T[0] true", "m T[3,13,17] true -2"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(0)},
    {"aten::sort.stable", CF_TEXTS("s " CF_MOST_DIMS " true 15"), CF_BIT(F32), CF_R_EXACT, CF_VALUES, CF_FLAT,
     CF_G_LINEAR(0)},
    {"aten::sort.stable", CF_TEXTS("m T[33,17] false 1", "m T[129] _"), CF_REALS, CF_R_PERMUTED, CF_VALUES, CF_ANY_ZERO,
     CF_G_SELECT(0)},
    /* Lines of several tiles, and one of several blocks with several tiles each; and that cores sort in parts. */
    {"aten::sort.stable",
     CF_TEXTS("m T[33001] true", "m T[2,5003] true 1 true", "m T[4999,3] true 0", "m T[70001] true 0 true"),
     CF_BIT(F32) | CF_BIT(F16) | CF_BIT(I64) | CF_BIT(U8), CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO,
     CF_G_NONE},
    {"aten::sort.stable", CF_TEXTS("m T[2,2049] true", "m T[3,200] true", "m T[4096] true 0 true"),
     CF_BIT(F32) | CF_BIT(BF16) | CF_BIT(I16) | CF_BIT(F64), CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_ANY_ZERO,
     CF_G_NONE},
    {"aten::topk",
     CF_TEXTS("s T[33,17] 5 1", "m T[33,17] 3 0 false", "m T[1025] 17", "m T[3,13,17] 13 1", "m T[5] 0", "s T[] 1",
              "m T[5,129] 129 -1", "m T[33,17] 17 1 true false"),
     CF_REALS, CF_R_PERMUTED, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(0)},
    {"aten::topk", CF_TEXTS("m T[3,5003] 7", "m T[4999,2] 4500 0 false"), CF_BIT(F32) | CF_BIT(F16) | CF_BIT(I64),
     CF_R_PERMUTED, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_NONE},
    {"aten::kthvalue",
     CF_TEXTS("s T[33,17] 5 1", "m T[33,17] 3 0 true", "m T[1025] 1000", "m T[3,13,17] 13 1", "m T[] 1", "m T[0,5] 2",
              "m T[5,129] 129 -1 true", "m T[2,5003] 2500", "m T[2,9001] 33", "m T[5003,3] 2 0"),
     CF_REALS, CF_R_PERMUTED, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(0)},
    {"aten::median", CF_TEXTS("s T[33,17]", "m T[1025]", "m T[3,13,17]", "m T[]", "m T[2,1]", "m T[9001]"), CF_REALS,
     CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(2)},
    {"aten::nanmedian", CF_TEXTS("m T[33,17]", "m T[1025]", "m T[]", "m T[2,1]"), CF_REALS, CF_R_EXACT, CF_VALUES,
     CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(2)},
    /* So many that a processor finds it digit by digit; equal elements that may differ in their bits are looked for. */
    {"aten::median", CF_TEXTS("m T[40009]", "m T[40009]=0"), CF_REALS, CF_R_EXACT, CF_VALUES,
     CF_SPECIAL | CF_ANY_ZERO | CF_FLAT, CF_G_NONE},
    {"aten::nanmedian", CF_TEXTS("m T[40009]", "m T[3,13337]=0"), CF_REALS, CF_R_EXACT, CF_VALUES,
     CF_SPECIAL | CF_ANY_ZERO | CF_FLAT, CF_G_NONE},
    {"aten::median", CF_TEXTS("m T[0]", "m T[3,0]"), CF_FLOATS, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::nanmedian", CF_TEXTS("m T[0]", "m T[3,0]"), CF_FLOATS, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::mode",
     CF_TEXTS("s T[33,17] 1", "m T[33,17] 0 true", "m T[1025]", "m T[3,13,17] 1", "m T[]", "m T[0,5] 1",
              "m T[5,129] -1 true"),
     CF_ANY_DTYPE, CF_R_PERMUTED, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(0)},
    {"aten::isin.Tensor_Tensor",
     CF_TEXTS("s T[33,17] T[13]", "m T[1025] T[3]", "m T[33,17] T[1025] invert=true", "m T[] T[5]", "m T[0] T[3]",
              "m T[33,17]<40 T[129]<40", "m T[5001] T[1024] invert=true", "m T[13] T[0]", "m T[129] T[3000]",
              "m T[33] f32[5]"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::isin.Tensor_Tensor", CF_TEXTS("m T[33,17] T[1031]"), CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL,
     CF_G_NONE},
    {"aten::isin.Tensor_Tensor", CF_TEXTS("m T[33,17] T[129]"), CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::bucketize.Tensor",
     CF_TEXTS("m T[33,17] T[1]", "m T[1025] T[33]=1", "m T[33] T[13]=0 right=true", "m T[] T[3]=0", "m T[3,13] T[0]",
              "m T[129] T[5]=1 out_int32=true"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::searchsorted.Tensor",
     CF_TEXTS("s T[1] T[33,17]", "m T[33]=1 T[1025]", "s T[3,13]=0 T[3,17] right=true", "m T[5]=1 T[13] side='right'",
              "m T[3]=2 T[]", "s T[4] T[129] sorter=i64[4]=2", "m T[33]=1 T[129] out_int32=true side='left'"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::_unique2",
     CF_TEXTS("s T[33,17] true true true", "m T[1025]", "m T[3,13,17] false true", "m T[129] true false true",
              "m T[] true true", "s T[0] true true true", "m T[5001]<1000 true true true"),
     CF_ANY_DTYPE,
     {.klass = CF_EXACT, .property = cf_unique_property, .covers = 7},
     CF_VALUES,
     CF_SPECIAL | CF_ANY_ZERO,
     CF_G_NONE},
    {"aten::unique_consecutive",
     CF_TEXTS("s T[33,17] true true", "m T[1025] true true", "s T[129]", "s T[33,3] false false 0", "m T[3,13] dim=1",
              "m T[] true true", "m T[0] true true", "m T[5001]<3 true true", "m T[5001,2]<2 true true 0",
              "m T[3,13]<3 true true -2"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_ANY_ZERO, CF_G_NONE},
    {"aten::unique_dim",
     CF_TEXTS("s T[33,3] 0", "m T[3,33] 1", "m T[129,1] 0", "m T[17,2,2] 0", "m T[0,3] 0", "m T[13] 0",
              "m T[33,2] 0 true true true", "m T[2,5001,2]<4 1", "m T[129,33]<2 0", "m T[13,2]<3 -2"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_ANY_ZERO, CF_G_NONE},
};

CF_TOPIC(sorting, "sorting", cf_sorting_ops);
