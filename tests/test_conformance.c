/* The suite's own pieces: arithmetic of tolerances, ids, waivers, levels, exit statuses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/cases/cases.h"
#include "conformance/conformance.h"
#include "conformance/judge/tolerance.h"
#include "conformance/report/report.h"
#include "conformance/run/call.h"
#include "conformance/run/case.h"
#include "conformance/run/oracle.h"
#include "dispatch/dispatch.h"
#include "dtypes.h"
#include "heap.h"
#include "suite.h"

/* ---- formats ---- */

START_TEST(ulp_of_every_format) {
  ck_assert(cf_ulp(GRAFT_F32, 1.0L) == 0x1p-23L);
  ck_assert(cf_ulp(GRAFT_F32, 1.5L) == 0x1p-23L);
  ck_assert(cf_ulp(GRAFT_F32, 2.0L) == 0x1p-22L);
  ck_assert(cf_ulp(GRAFT_F16, 1.0L) == 0x1p-10L);
  ck_assert(cf_ulp(GRAFT_BF16, -1.0L) == 0x1p-7L);
  ck_assert(cf_ulp(GRAFT_F64, 1.0L) == 0x1p-52L);
  ck_assert(cf_ulp(GRAFT_C64, 1.0L) == 0x1p-23L);
  ck_assert(cf_ulp(GRAFT_I64, 1.0L) == 0);
}
END_TEST

START_TEST(ulp_of_denormals_is_that_of_the_smallest_normal) {
  ck_assert(cf_ulp(GRAFT_F32, 0) == 0x1p-149L);
  ck_assert(cf_ulp(GRAFT_F32, 0x1p-140L) == 0x1p-149L);
  ck_assert(cf_ulp(GRAFT_F16, 0x1p-20L) == 0x1p-24L);
}
END_TEST

START_TEST(sums_of_half_types_accumulate_in_f32) {
  ck_assert(cf_u_acc(GRAFT_F16) == 0x1p-24L);
  ck_assert(cf_u_acc(GRAFT_BF16) == 0x1p-24L);
  ck_assert(cf_u_acc(GRAFT_F64) == 0x1p-53L);
  ck_assert(cf_growth(1) == 1 && cf_growth(4) == 4 && cf_growth(100) == 20 && cf_growth(0) == 0);
}
END_TEST

/* ---- comparison ---- */

static cf_verdict compare_how(graft_dtype dtype, long double r, long double o, const cf_comparison *how) {
  int64_t one = 1;
  cf_array a, b;
  cf_verdict v = {.ok = true};
  cf_array_new(&a, dtype, 1, &one);
  cf_array_new(&b, GRAFT_WIDE, 1, &one);
  a.v[0].re = r, b.v[0].re = o;
  cf_compare(&a, &b, how, &v);
  cf_array_free(&a);
  cf_array_free(&b);
  return v;
}

static cf_verdict compare_one(graft_dtype dtype, long double r, long double o, long double limit, bool exact,
                              bool any_zero, bool flushes) {
  cf_comparison how = {.limits = &limit, .exact = exact, .any_zero = any_zero, .flushes = flushes, .what = "result"};
  return compare_how(dtype, r, o, &how);
}

START_TEST(a_limit_is_a_limit) {
  ck_assert(compare_one(GRAFT_F32, 1.0L, 1.0L + 1e-7L, 2e-7L, false, false, false).ok);
  cf_verdict v = compare_one(GRAFT_F32, 1.0L, 1.0L + 1e-7L, 0.5e-7L, false, false, false);
  ck_assert(!v.ok && v.ratio > 1.9 && v.ratio < 2.1);
  ck_assert(strstr(v.text, "result[0]") != NULL);
}
END_TEST

START_TEST(nan_matches_nan_and_nothing_else) {
  ck_assert(compare_one(GRAFT_F32, NAN, NAN, 1, false, false, false).ok);
  ck_assert(!compare_one(GRAFT_F32, 1, NAN, 1e9L, false, false, false).ok);
  ck_assert(!compare_one(GRAFT_F32, NAN, 1, 1e9L, false, false, false).ok);
  ck_assert(compare_one(GRAFT_F32, NAN, NAN, 0, true, false, false).ok);
}
END_TEST

START_TEST(a_limit_that_is_no_number_excuses_nothing) {
  static const long double limits[] = {NAN, INFINITY};
  for (int i = 0; i < 2; i++) {
    cf_verdict v = compare_one(GRAFT_F32, 1, 2, limits[i], false, false, false);
    ck_assert(!v.ok && v.ratio > 1);
    ck_assert(!compare_one(GRAFT_F32, INFINITY, 2, limits[i], false, false, false).ok);
    ck_assert(compare_one(GRAFT_F32, 2, 2, limits[i], false, false, false).ok);
    ck_assert(compare_one(GRAFT_F32, INFINITY, INFINITY, limits[i], false, false, false).ok);
  }
}
END_TEST

START_TEST(an_element_that_no_rule_judges_may_be_anything) {
  static const long double results[] = {NAN, INFINITY, -INFINITY, 0, 1e30L};
  for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
    ck_assert(compare_one(GRAFT_F32, results[i], 2, CF_UNJUDGED, false, false, false).ok);
    ck_assert(compare_one(GRAFT_F32, results[i], INFINITY, CF_UNJUDGED, false, false, false).ok);
    ck_assert(!compare_one(GRAFT_F32, results[i], 2, -2, false, false, false).ok);
    ck_assert(!compare_one(GRAFT_F32, results[i], 2, CF_UNJUDGED, true, false, false).ok);
  }
}
END_TEST

START_TEST(overflow_is_right_where_the_limit_reaches) {
  ck_assert(compare_one(GRAFT_F16, INFINITY, 65519.0L, 4, false, false, false).ok);
  ck_assert(!compare_one(GRAFT_F16, INFINITY, 60000.0L, 4, false, false, false).ok);
  ck_assert(!compare_one(GRAFT_F16, -INFINITY, 65519.0L, 4, false, false, false).ok);
  ck_assert(compare_one(GRAFT_F16, INFINITY, 70000.0L, 0, true, false, false).ok);
}
END_TEST

START_TEST(exact_means_rounded_once) {
  long double third = 1.0L / 3;
  ck_assert(compare_one(GRAFT_F32, (float)third, third, 0, true, false, false).ok);
  ck_assert(!compare_one(GRAFT_F32, nextafterf((float)third, 1), third, 0, true, false, false).ok);
  ck_assert(!compare_one(GRAFT_F32, 0.0L, -0.0L, 0, true, false, false).ok);
  ck_assert(compare_one(GRAFT_F32, 0.0L, -0.0L, 0, true, true, false).ok);
}
END_TEST

/* Just beyond the middle between two f16, by less than f32 tells. */
START_TEST(what_is_f64_may_be_rounded_to_f32_first) {
  const long double value = 1.71533203125L + 5e-8L, low = 1.71484375L, high = 1.7158203125L;
  const cf_comparison once = {.exact = true, .what = "result"};
  const cf_comparison twice = {.exact = true, .through_f32 = true, .what = "result"};
  ck_assert(compare_how(GRAFT_F16, high, value, &once).ok);
  ck_assert(!compare_how(GRAFT_F16, low, value, &once).ok);
  ck_assert(compare_how(GRAFT_F16, high, value, &twice).ok);
  ck_assert(compare_how(GRAFT_F16, low, value, &twice).ok);
  ck_assert(!compare_how(GRAFT_F16, low - 0x1p-10L, value, &twice).ok);
}
END_TEST

static bool complex_passes(dt_value r, dt_value o) {
  int64_t one = 1;
  long double limit = 2 * cf_ulp(GRAFT_F32, cf_modulus(o));
  cf_array a, b;
  cf_verdict v = {.ok = true};
  cf_array_new(&a, GRAFT_C64, 1, &one);
  cf_array_new(&b, GRAFT_WIDE_COMPLEX, 1, &one);
  a.v[0] = r, b.v[0] = o;
  cf_compare(&a, &b, &(cf_comparison){.limits = &limit, .what = "result"}, &v);
  cf_array_free(&a);
  cf_array_free(&b);
  return v.ok;
}

/* (1e30 + 1e30 i)^2 is 2e60 i: PyTorch says nan + inf i, and where it multiplies and adds at once -inf + inf i. */
START_TEST(one_infinite_part_makes_a_product_that_overflows) {
  ck_assert(complex_passes((dt_value){NAN, INFINITY}, (dt_value){0, 2e60L}));
  ck_assert(complex_passes((dt_value){-INFINITY, INFINITY}, (dt_value){0, 2e60L}));
  ck_assert(complex_passes((dt_value){0, INFINITY}, (dt_value){0, 2e60L}));
  ck_assert(complex_passes((dt_value){INFINITY, INFINITY}, (dt_value){3e38L, 3e38L})); /* its modulus is too large */
  ck_assert(!complex_passes((dt_value){0, NAN}, (dt_value){0, 2e60L}));
  ck_assert(!complex_passes((dt_value){NAN, NAN}, (dt_value){0, 2e60L}));
  ck_assert(!complex_passes((dt_value){1e38L, INFINITY}, (dt_value){-1e38L, 2e60L}));
  ck_assert(!complex_passes((dt_value){NAN, INFINITY}, (dt_value){1e38L, 1e38L}));
  ck_assert(!complex_passes((dt_value){INFINITY, 0}, (dt_value){1e38L, 0}));
  ck_assert(!complex_passes((dt_value){NAN, INFINITY}, (dt_value){0, INFINITY}));
}
END_TEST

/* The sizes of i i and 1 1 sum to 2, although (0 + 1i) (0 + 1i) + 1 is 0: sizes have no imaginary part. */
START_TEST(sizes_of_complex_terms_do_not_cancel) {
  cf_array a;
  int64_t one = 1;
  graft_tensor *t = NULL;
  cf_array_new(&a, GRAFT_C64, 1, &one);
  a.v[0] = (dt_value){-3, 4};
  ck_assert(cf_oracle_tensor(&a, CF_ABSOLUTE, (cf_precision){0}, &t) == GRAFT_OK);
  cf_array_free(&a);
  ck_assert(cf_array_read(&a, t));
  ck_assert(a.v[0].re == 5 && a.v[0].im == 0);
  cf_array_free(&a);
  graft_tensor_release(t);
}
END_TEST

START_TEST(denormals_may_be_flushed_where_the_device_says_so) {
  ck_assert(compare_one(GRAFT_F32, 0, 0x1p-130L, 0, true, true, true).ok);
  ck_assert(!compare_one(GRAFT_F32, 0, 0x1p-130L, 0, true, true, false).ok);
  ck_assert(!compare_one(GRAFT_F32, 0, 0x1p-126L, 0, true, true, true).ok);
}
END_TEST

/* ---- cases ---- */

typedef struct walk {
  uint32_t count, capacity;
  char (*ids)[CF_ID_BYTES];
} walk;

static bool collect(void *context, const cf_case *c, const char *id) {
  walk *w = context;
  (void)c;
  if (w->count == w->capacity) {
    w->capacity = w->capacity ? 2 * w->capacity : 4096;
    w->ids = realloc(w->ids, w->capacity * sizeof *w->ids);
    ck_assert_ptr_nonnull(w->ids);
  }
  snprintf(w->ids[w->count++], CF_ID_BYTES, "%s", id);
  return true;
}

static int by_text(const void *a, const void *b) {
  return strcmp(a, b);
}

START_TEST(ids_are_unique_and_need_no_quotes) {
  cf_selection all = {.level = CF_FULL};
  walk w = {0};
  cf_menu(&all, collect, &w);
  ck_assert_uint_gt(w.count, 5000);
  qsort(w.ids, w.count, sizeof *w.ids, by_text);
  for (uint32_t i = 0; i < w.count; i++) {
    ck_assert_msg(strpbrk(w.ids[i], " '\"*?[](){}<>|&;$`\\!") == NULL, "%s", w.ids[i]);
    ck_assert_msg(i == 0 || strcmp(w.ids[i], w.ids[i - 1]) != 0, "twice: %s", w.ids[i]);
  }
  free(w.ids);
}
END_TEST

START_TEST(ids_come_back) {
  cf_selection some = {.level = CF_FULL, .ops = "aten.mm.default"};
  walk w = {0};
  cf_menu(&some, collect, &w);
  ck_assert_uint_gt(w.count, 20);
  for (uint32_t i = 0; i < w.count; i += 7) {
    cf_case c;
    char id[CF_ID_BYTES];
    ck_assert_msg(cf_case_find(w.ids[i], &c), "%s", w.ids[i]);
    ck_assert(cf_case_id(&c, id));
    ck_assert_str_eq(id, w.ids[i]);
  }
  cf_case c;
  ck_assert(cf_case_find("aten.mm.default/f32/33x17,17x129/transposed/uniform/0", &c));
  ck_assert(!cf_case_find("aten.mm.default/f32/33x17,17x129/sideways/uniform/0", &c));
  ck_assert(!cf_case_find("", &c));
  free(w.ids);
}
END_TEST

static uint32_t count_of(cf_selection s) {
  walk w = {0};
  cf_menu(&s, collect, &w);
  free(w.ids);
  return w.count;
}

/* What is broken must show at the level that is run when none is named. */
START_TEST(smoke_leaves_no_op_out) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  for (size_t i = 0; i < count; i++) {
    const cf_selection must = {.level = CF_MUSTPASS, .ops = all[i].name}, smoke = {.ops = all[i].name};
    ck_assert_msg(!count_of(must) || count_of(smoke), "%s has cases at mustpass, and none at smoke", all[i].name);
  }
}
END_TEST

START_TEST(levels_grow_and_shards_divide) {
  uint32_t smoke = count_of((cf_selection){.level = CF_SMOKE}), must = count_of((cf_selection){.level = CF_MUSTPASS});
  ck_assert_uint_lt(smoke, must);
  ck_assert_uint_lt(must, count_of((cf_selection){.level = CF_FULL}));
  uint32_t parts = 0;
  for (uint32_t i = 1; i <= 3; i++) parts += count_of((cf_selection){.level = CF_SMOKE, .shard = i, .shards = 3});
  ck_assert_uint_eq(parts, smoke);
  uint32_t only = count_of((cf_selection){.level = CF_SMOKE, .grad = 1}), none = count_of((cf_selection){.grad = -1});
  ck_assert_uint_eq(only + none, smoke);
  ck_assert_uint_eq(count_of((cf_selection){.ops = "aten::nothing"}), 0);
  uint32_t mm = count_of((cf_selection){.ops = "aten.mm"}), tops = count_of((cf_selection){.ops = "aten::top*"});
  ck_assert(mm && tops);
  ck_assert_uint_eq(count_of((cf_selection){.ops = "aten::nothing,aten.mm,,aten::top*"}), mm + tops);
}
END_TEST

START_TEST(every_row_can_be_read) {
  for (uint32_t topic = 0; topic < cf_topic_count; topic++)
    for (uint32_t i = 0; i < cf_topics[topic]->count; i++) {
      const cf_op *op = &cf_topics[topic]->ops[i];
      const op_schema *schema = op_schema_find(op->name);
      ck_assert_msg(schema != NULL, "no op is called %s", op->name);
      for (uint32_t t = 0; op->texts[t]; t++) {
        cf_case c = {.topic = (uint16_t)topic, .op = (uint16_t)i, .text = (uint16_t)t, .op_id = schema->id};
        cf_call call;
        for (int n = 0; n < ABI_DTYPES && !c.dtype; n++)
          if (op->dtypes & 1u << n) c.dtype = dtypes[n];
        ck_assert_msg(cf_call_open(&c, &call), "%s: %s: %s", op->name, op->texts[t], graft_last_error());
        cf_call_close(&call);
      }
    }
}
END_TEST

static bool has_dtype_argument(const op_schema *schema) {
  for (uint32_t a = 0; a < schema->nargs; a++)
    if (schema->args[a].kind == OPK_DTYPE) return true;
  return false;
}

/* What an op puts out for f32 and is of no floating dtype is a mask, indices or counts, and nothing else is. */
static void check_results_of(const cf_case *c) {
  graft_tensor *tensors[CF_MAX_TENSORS] = {NULL}, *items[CF_MAX_TENSORS];
  graft_value args[OP_MAX_ARGS];
  graft_meta outs[CF_MAX_TENSORS];
  uint32_t count = 0;
  cf_call call;
  ck_assert(cf_call_open(c, &call));
  for (uint32_t i = 0; i < call.ntensors; i++) {
    const txt_tensor *t = &call.specs[i];
    ck_assert(!tns_new(NULL, graft_device_reference(), t->dtype, t->ndim, t->sizes, t->strides, 0, &tensors[i]));
  }
  cf_call_args(&call, graft_device_reference(), tensors, args, items);
  graft_status status =
      graft_infer(call.schema->id, args, call.schema->nargs, outs, sizeof *outs, CF_MAX_TENSORS, &count);
  for (uint32_t i = 0; !status && count == call.schema->nrets && i < count; i++) {
    const op_ret *ret = &call.schema->rets[i];
    bool value = dt_is_float(outs[i].dtype) || dt_is_complex(outs[i].dtype), marked = ret->flags & OPR_NO_VALUE;
    ck_assert_msg(!outs[i].dtype || value != marked, "%s: %s is %s, and the op's notes %s", call.schema->name,
                  ret->name, graft_dtype_name(outs[i].dtype), marked ? "have novalue" : "lack novalue");
  }
  for (uint32_t i = 0; i < call.ntensors; i++) graft_tensor_release(tensors[i]);
  cf_call_close(&call);
}

START_TEST(masks_and_indices_are_noted) {
  for (uint32_t topic = 0; topic < cf_topic_count; topic++)
    for (uint32_t i = 0; i < cf_topics[topic]->count; i++) {
      const op_schema *schema = op_schema_find(cf_topics[topic]->ops[i].name);
      cf_case c = {.topic = (uint16_t)topic, .op = (uint16_t)i, .op_id = schema->id, .dtype = GRAFT_F32};
      bool floats = cf_topics[topic]->ops[i].dtypes & CF_BIT(F32);
      if (schema->route == OPROUTE_SLOT && floats && !has_dtype_argument(schema)) check_results_of(&c);
    }
}
END_TEST

START_TEST(values_are_those_of_the_dtype) {
  cf_case c;
  cf_call call;
  ck_assert(cf_case_find("aten.index_select.default/bf16/33x17,=1,i64.5d17/contiguous/uniform/0", &c));
  ck_assert(cf_call_open(&c, &call));
  cf_call_fill(&call, 7, true);
  for (int64_t i = 0; i < call.in[0].numel; i++)
    ck_assert(call.in[0].v[i].re == dt_round(GRAFT_BF16, call.in[0].v[i].re));
  for (int64_t i = 0; i < call.in[1].numel; i++) ck_assert(call.in[1].v[i].re >= 0 && call.in[1].v[i].re < 17);
  cf_call_close(&call);
}
END_TEST

/* The gradient of a sort that takes equal elements in another order is moved among them, and nowhere else. */
START_TEST(gradients_may_change_places_among_ties) {
  enum { LENGTH = 17 };
  cf_case c;
  cf_call call;
  cf_array one, other, beside;
  ck_assert(cf_case_find("aten.sort.default/f32/33x17,=1/contiguous/uniform/0/vjp", &c));
  ck_assert(cf_call_open(&c, &call) && cf_call_fill(&call, 7, true));
  const cf_array *x = &call.in[0];
  cf_array *const all[] = {&one, &other, &beside};
  for (int i = 0; i < 3; i++) ck_assert(cf_array_new(all[i], GRAFT_F32, x->ndim, x->sizes));
  for (int64_t i = 0; i < x->numel; i++) {
    int64_t k = i % LENGTH;
    call.in[0].v[i].re = k % 4 == 3 ? NAN : (long double)(k % 4); /* 0 1 2 NaN 0 1 ... */
    one.v[i].re = beside.v[i].re = (long double)((i * 7) % 101);
    other.v[i - k + (k < 16 ? (k + 4) % 16 : k)].re = one.v[i].re; /* to the next of the same value */
  }
  cf_order_ties(&call, &one, &beside);
  cf_order_ties(&call, &other, NULL);
  for (int64_t i = 0; i < x->numel; i++) ck_assert(one.v[i].re == other.v[i].re && one.v[i].re == beside.v[i].re);
  other.v[0].re = one.v[1].re; /* to another value */
  other.v[1].re = one.v[0].re;
  cf_order_ties(&call, &other, NULL);
  bool same = true;
  for (int64_t i = 0; i < LENGTH; i++) same = same && one.v[i].re == other.v[i].re;
  ck_assert(!same);
  for (int i = 0; i < 3; i++) cf_array_free(all[i]);
  cf_call_close(&call);
}
END_TEST

/* Answers of _unique2 for 1 NaN 1 NaN 0, of which more than one is right. */
static const struct {
  const char *arguments;
  double values[4], inverse[5], counts[4];
  bool right;
} uniques[] = {
    {"33x17,=true,=true,=true", {0, 1, NAN, NAN}, {1, 2, 1, 3, 0}, {1, 2, 1, 1}, true},
    {"33x17,=true,=true,=true", {0, 1, NAN, NAN}, {1, 3, 1, 2, 0}, {1, 2, 1, 1}, true},
    {"33x17,=true,=true,=true", {0, 1, NAN, NAN}, {1, 2, 1, 2, 0}, {1, 2, 1, 1}, false}, /* one NaN for both */
    {"33x17,=true,=true,=true", {0, 1, NAN, NAN}, {1, 2, 0, 3, 0}, {1, 2, 1, 1}, false},
    {"33x17,=true,=true,=true", {0, 1, NAN, NAN}, {1, 2, 1, 4, 0}, {1, 2, 1, 1}, false},
    {"33x17,=true,=true,=true", {0, 1, NAN, NAN}, {1, 2, 1, 3, 0}, {2, 1, 1, 1}, false},
    {"33x17,=true,=true,=true", {1, 0, NAN, NAN}, {0, 2, 0, 3, 1}, {2, 1, 1, 1}, false}, /* not sorted */
    {"33x17,=true,=true,=true", {0, 1, 1, NAN}, {1, 3, 1, 3, 0}, {1, 2, 1, 1}, false},
    {"3x13x17,=false,=true", {NAN, 1, NAN, 0}, {1, 0, 1, 2, 3}, {0}, true},
    {"3x13x17,=false,=true", {NAN, 1, 2, 0}, {1, 0, 1, 0, 3}, {0}, false},
};

static void set_values(cf_array *a, int64_t count, const double *values) {
  ck_assert(cf_array_new(a, GRAFT_F64, 1, &count));
  for (int64_t i = 0; i < count; i++) a->v[i].re = values[i];
}

START_TEST(unique_values_are_judged_by_what_they_are) {
  char id[CF_ID_BYTES];
  cf_case c;
  cf_call call;
  cf_array x, results[3], oracle;
  cf_verdict verdict = {.ok = true};
  snprintf(id, sizeof id, "aten._unique2.default/f32/%s/contiguous/uniform/0", uniques[_i].arguments);
  ck_assert(cf_case_find(id, &c) && cf_call_open(&c, &call));
  set_values(&x, 5, (const double[]){1, NAN, 1, NAN, 0});
  set_values(&oracle, 4, (const double[]){0, 1, NAN, NAN});
  set_values(&results[0], 4, uniques[_i].values);
  set_values(&results[1], 5, uniques[_i].inverse);
  set_values(&results[2], 4, uniques[_i].counts);
  const cf_check check = {.call = &call, .in = &x, .nouts = 3, .outs = &oracle};
  cf_case_op(&c)->rule.property(&check, results, &verdict);
  ck_assert_msg(verdict.ok == uniques[_i].right, "%s", verdict.text);
  cf_array *const all[] = {&x, &oracle, &results[0], &results[1], &results[2]};
  for (int i = 0; i < ROWS(all); i++) cf_array_free(all[i]);
  cf_call_close(&call);
}
END_TEST

/* ---- waivers ---- */

static cf_waivers *waivers_of(const char *text) {
  char path[] = "/tmp/graft-waivers-XXXXXX";
  cf_waivers *w = NULL;
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
  graft_status s = cf_waivers_read(path, &w);
  unlink(path);
  return s == GRAFT_OK ? w : NULL;
}

START_TEST(a_waiver_excuses_until_its_day) {
  cf_waivers *w = waivers_of("# known\naten.mm.*/f16/* https://example.org/1 2030-01-31\n");
  ck_assert_ptr_nonnull(w);
  cf_result r = {.outcome = CF_FAIL};
  cf_waivers_apply(w, "2030-01-31", "aten.mm.default/f16/x", &r);
  ck_assert_int_eq(r.outcome, CF_WAIVED);
  r.outcome = CF_FAIL;
  cf_waivers_apply(w, "2030-02-01", "aten.mm.default/f16/x", &r);
  ck_assert_int_eq(r.outcome, CF_FAIL);
  cf_waivers_apply(w, "2030-01-31", "aten.mm.default/f32/x", &r);
  ck_assert_int_eq(r.outcome, CF_FAIL);
  cf_waivers_free(w);
}
END_TEST

START_TEST(a_waived_case_that_passes_fails) {
  cf_waivers *w = waivers_of("* https://example.org/1 2030-01-31\n");
  cf_result r = {.outcome = CF_PASS};
  cf_waivers_apply(w, "2029-01-01", "aten.mm.default/f16/x", &r);
  ck_assert_int_eq(r.outcome, CF_FAIL);
  ck_assert(strstr(r.text, "https://example.org/1") != NULL);
  cf_waivers_free(w);
}
END_TEST

START_TEST(a_waiver_of_no_case_is_named) {
  cf_waivers *w = waivers_of(
      "aten.mm.* https://example.org/1 2030-01-31\naten.nm.* https://example.org/2 2030-01-31\n"
      "aten.mm.default/* https://example.org/3 2020-01-31\n");
  cf_result r = {.outcome = CF_FAIL};
  ck_assert_uint_eq(cf_waivers_say_idle(w, "waivers"), 3);
  cf_waivers_apply(w, "2029-01-01", "aten.mm.default/f16/x", &r);
  ck_assert_uint_eq(cf_waivers_say_idle(w, "waivers"), 1); /* one whose day has passed matches, too */
  cf_waivers_free(w);
}
END_TEST

START_TEST(a_bad_waiver_is_named) {
  ck_assert_ptr_null(waivers_of("aten.mm.* soon\n"));
  ck_assert(strstr(graft_last_error(), ":1: expected PATTERN LINK YYYY-MM-DD") != NULL);
  ck_assert_ptr_null(waivers_of("a b 2030-1-1\n"));
}
END_TEST

/* ---- exit status ---- */

START_TEST(status_follows_what_ran) {
  cf_report r = {.slots_selected = 10, .executed = 5};
  r.all.run = 5, r.all.passed = 5;
  ck_assert_int_eq(cf_report_status(&r), 0);
  r.all.failed = 1;
  ck_assert_int_eq(cf_report_status(&r), 1);
  r.all.failed = 0, r.executed = 0;
  ck_assert_int_eq(cf_report_status(&r), 3);
  r.slots_selected = 0; /* views only: the host runs them */
  ck_assert_int_eq(cf_report_status(&r), 0);
  r.all.run = 0;
  ck_assert_int_eq(cf_report_status(&r), 3);
  r.all.run = 5, r.done = 5, r.total = 7; /* two never ran */
  ck_assert_int_eq(cf_report_status(&r), 1);
}
END_TEST

START_TEST(a_late_fault_is_the_cases) {
  cf_result r = {.outcome = CF_PASS};
  ck_assert(!cf_settle(&r, GRAFT_OK, ""));
  ck_assert_int_eq(r.outcome, CF_PASS);
  ck_assert(cf_settle(&r, GRAFT_STREAM_FAILED, "index 9"));
  ck_assert_int_eq(r.outcome, CF_FAIL);
  ck_assert_ptr_nonnull(strstr(r.text, "index 9"));
  cf_result wrong = {.outcome = CF_FAIL, .text = "element 3"}; /* keeps its own text */
  ck_assert(cf_settle(&wrong, GRAFT_DEVICE_LOST, "gone"));
  ck_assert_str_eq(wrong.text, "element 3");
}
END_TEST

START_TEST(fallback_is_not_a_pass_by_the_plugin) {
  cf_result r = {.outcome = CF_PASS, .route = DSP_ROUTE_PLUGIN};
  ck_assert_str_eq(cf_result_word(&r), "pass");
  r.fallback = 1;
  ck_assert_str_eq(cf_result_word(&r), "fallback");
  r.fallback = 0, r.route = DSP_ROUTE_DECOMPOSITION;
  ck_assert_str_eq(cf_result_word(&r), "decomposed");
  r.route = DSP_ROUTE_HOST; /* a view */
  ck_assert_str_eq(cf_result_word(&r), "host");
  r.outcome = CF_CRASH;
  ck_assert_str_eq(cf_result_word(&r), "fail");
}
END_TEST

static int command(const char *a, const char *b, const char *c, const char *d) {
  const char *argv[] = {"conformance", a, b, c, d, NULL};
  int argc = 1;
  while (argv[argc]) argc++;
  freopen("/dev/null", "w", stdout);
  freopen("/dev/null", "w", stderr);
  return cf_main_conformance(argc, (char **)(uintptr_t)argv);
}

START_TEST(status_of_the_command) {
  static const struct {
    const char *args[4];
    int status;
  } rows[] = {
      {{"-b", "reference", "--op", "aten::add.Tensor"}, 0},
      {{"-b", "no_such_plugin", "--op", "aten::add.Tensor"}, 2},
      {{"-b", "/nowhere/libnothing.so", "--op", "aten::add.Tensor"}, 2},
      {{"-b", "reference", "-d", "7"}, 2},
      {{"-b", "reference", "--op", "aten::nothing"}, 3},
      {{"--waivers", "/nowhere/waivers", NULL, NULL}, 2},
  };
  ck_assert_int_eq(command(rows[_i].args[0], rows[_i].args[1], rows[_i].args[2], rows[_i].args[3]), rows[_i].status);
}
END_TEST

/* ---- no memory ---- */

/* The result is wrong, so that a pass would be one for want of memory: each allocation fails once. */
START_TEST(no_memory_is_no_pass) {
  static const struct {
    const char *bug, *id;
  } rows[] = {
      {"bug=truncated", "aten.mul.Tensor/f32/33x17,33x17/contiguous/uniform/0"},
      {"bug=f16_sums", "aten.mm.default/f32/33x17,17x129/contiguous/uniform/0"},
      {"bug=half_gradient", "aten.sigmoid.default/f32/33x17/contiguous/uniform/0/vjp"},
      {"bug=no_largest", "aten.topk.default/f32/33x17,=5,=1/contiguous/uniform/0"},
      {"bug=not_deterministic", "aten.cumsum.default/f32/33x17,=1/deterministic/uniform/0"},
      {"bug=no_statistics",
       "aten.native_batch_norm.default/f32/5x6x7x3,6,6,6,6+,=true,=0.1,=1e-05/contiguous/uniform/0"},
  };
  cf_options options = {
      .backend = GRAFT_BINARY_DIR "/lib/graft_mutants.so", .plugin_options = {rows[_i].bug}, .plugin_option_count = 1};
  cf_backend backend = {0};
  cf_result result = {0};
  cf_case c;
  setenv("GRAFT_FALLBACK", "allow", 1);
  ck_assert_msg(cf_case_find(rows[_i].id, &c), "%s", rows[_i].id);
  ck_assert_msg(cf_backend_open(&options, &backend) == GRAFT_OK, "%s", graft_last_error());
  cf_run(&backend, &c, &result);
  ck_assert_int_eq(result.outcome, CF_FAIL);
  for (uint64_t n = 1;; n++) {
    heap_calls = 0;
    heap_failing = n;
    cf_run(&backend, &c, &result);
    heap_failing = 0;
    if (heap_calls < n) break;
    ck_assert_msg(result.outcome != CF_PASS, "%s passes where allocation %u fails", rows[_i].id, (unsigned)n);
  }
  ck_assert_int_eq(result.outcome, CF_FAIL);
}
END_TEST

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "conformance") == 0) return cf_main_conformance(argc - 1, argv + 1);
  const suite_test tests[] = {ONCE(ulp_of_every_format),
                              ONCE(ulp_of_denormals_is_that_of_the_smallest_normal),
                              ONCE(sums_of_half_types_accumulate_in_f32),
                              ONCE(a_limit_is_a_limit),
                              ONCE(nan_matches_nan_and_nothing_else),
                              ONCE(a_limit_that_is_no_number_excuses_nothing),
                              ONCE(an_element_that_no_rule_judges_may_be_anything),
                              ONCE(overflow_is_right_where_the_limit_reaches),
                              ONCE(exact_means_rounded_once),
                              ONCE(what_is_f64_may_be_rounded_to_f32_first),
                              ONCE(one_infinite_part_makes_a_product_that_overflows),
                              ONCE(sizes_of_complex_terms_do_not_cancel),
                              ONCE(denormals_may_be_flushed_where_the_device_says_so),
                              ONCE(ids_are_unique_and_need_no_quotes),
                              ONCE(ids_come_back),
                              ONCE(smoke_leaves_no_op_out),
                              ONCE(levels_grow_and_shards_divide),
                              ONCE(every_row_can_be_read),
                              ONCE(masks_and_indices_are_noted),
                              ONCE(values_are_those_of_the_dtype),
                              ONCE(gradients_may_change_places_among_ties),
                              EACH(unique_values_are_judged_by_what_they_are, ROWS(uniques)),
                              ONCE(a_waiver_excuses_until_its_day),
                              ONCE(a_waiver_of_no_case_is_named),
                              ONCE(a_waived_case_that_passes_fails),
                              ONCE(a_bad_waiver_is_named),
                              ONCE(status_follows_what_ran),
                              ONCE(a_late_fault_is_the_cases),
                              ONCE(fallback_is_not_a_pass_by_the_plugin),
                              EACH(status_of_the_command, 6),
                              EACH(no_memory_is_no_pass, 6),
                              {0}};
  return run_suite("conformance", tests, (suite_options){.timeout_s = 120});
}
