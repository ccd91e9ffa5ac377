/* Whether every op that libgraft has a rule for is tested: a row in conformance/cases, a call in the fixtures, and a
 * gradient case where it has a gradient. What the host does alone (views) never reaches a backend and has no row. */
#include <stdio.h>
#include <string.h>

#include "conformance/cases/cases.h"
#include "conformance/run/call.h"
#include "conformance/run/menu.h"
#include "dispatch/plan.h"
#include "fixtures/files.h"
#include "graft/graft.h"
#include "ops/core/op.h"
#include "suite.h"

enum { CASE = 1, FIXTURE = 2, GRADIENT = 4 };
static const struct {
  int what;
  const char *name;
} kinds[] = {{CASE, "case in conformance/cases"},
             {FIXTURE, "call in tests/fixtures"},
             {GRADIENT, "gradient case in conformance/cases"}};

/* What is not asked of an op, and why. */
#define SECOND   "a second derivative without a limit of its own; the fixtures hold it by the second gradients of its op"
#define QUOTIENT "a quotient beside a whole number has another slope in another precision; the fixtures hold it in f64"
#define DRAWN    "the result does not depend on the argument: the gradient is 0"
static const struct exemption {
  const char *op;
  int what;
  const char *why;
} exemptions[] = {
    {"aten::_log_softmax_backward_data", GRADIENT, SECOND},
    {"aten::_softmax_backward_data", GRADIENT, SECOND},
    {"aten::binary_cross_entropy_backward", GRADIENT, SECOND},
    {"aten::elu_backward", GRADIENT, SECOND},
    {"aten::gelu_backward", GRADIENT, SECOND},
    {"aten::glu_backward", GRADIENT, SECOND},
    {"aten::hardswish_backward", GRADIENT, SECOND},
    {"aten::huber_loss_backward", GRADIENT, SECOND},
    {"aten::log_sigmoid_backward", GRADIENT, SECOND},
    {"aten::logit_backward", GRADIENT, SECOND},
    {"aten::mish_backward", GRADIENT, SECOND},
    {"aten::mse_loss_backward", GRADIENT, SECOND},
    {"aten::native_batch_norm_backward", GRADIENT, SECOND},
    {"aten::native_group_norm_backward", GRADIENT, SECOND},
    {"aten::native_layer_norm_backward", GRADIENT, SECOND},
    {"aten::nll_loss2d_backward", GRADIENT, SECOND},
    {"aten::nll_loss_backward", GRADIENT, SECOND},
    {"aten::rrelu_with_noise_backward", GRADIENT, SECOND},
    {"aten::sigmoid_backward", GRADIENT, SECOND},
    {"aten::silu_backward", GRADIENT, SECOND},
    {"aten::smooth_l1_loss_backward", GRADIENT, SECOND},
    {"aten::soft_margin_loss_backward", GRADIENT, SECOND},
    {"aten::softplus_backward", GRADIENT, SECOND},
    {"aten::tanh_backward", GRADIENT, SECOND},
    {"aten::fmod.Scalar", GRADIENT, QUOTIENT},
    {"aten::fmod.Tensor", GRADIENT, QUOTIENT},
    {"aten::remainder.Tensor", GRADIENT, QUOTIENT},
    {"aten::bernoulli.Tensor", GRADIENT, DRAWN},
    {"aten::bernoulli.p", GRADIENT, DRAWN},
    {"aten::exponential", GRADIENT, DRAWN},
    {"aten::random.from", GRADIENT, DRAWN},
    {"aten::uniform", GRADIENT, DRAWN},
    {"aten::cauchy", GRADIENT, DRAWN},
    {"aten::geometric", GRADIENT, DRAWN},
    {"aten::log_normal", GRADIENT, DRAWN},
    {"aten::_standard_gamma", GRADIENT, "its formula is one op, which the fixtures have"},
    {"prims::uniform", FIXTURE, "its call names a device"},
    {"prims::xor_sum", FIXTURE, "PyTorch has it in generated code only"},
    {"aten::_foreach_add.Scalar", GRADIENT, "1 throughout; the fixtures have it"},
};

enum { OPS = 1024 };
static int found[OPS]; /* by row of the schema table */

static void find(const char *name, size_t length, int what) {
  char text[128];
  size_t count;
  const op_schema *all = op_schema_all(&count);
  ck_assert_uint_lt(length, sizeof text);
  snprintf(text, sizeof text, "%.*s", (int)length, name);
  const op_schema *schema = op_schema_find(text);
  ck_assert_msg(schema, "%s is no op", text);
  found[schema - all] |= what;
}

static void find_cases(void) {
  for (uint32_t t = 0; t < cf_topic_count; t++)
    for (uint32_t i = 0; i < cf_topics[t]->count; i++) {
      const cf_op *row = &cf_topics[t]->ops[i];
      find(row->name, strlen(row->name), row->grad.kind == CF_GRAD_NONE ? CASE : CASE | GRADIENT);
    }
}

static void find_fixtures(const char *path) {
  size_t size;
  char *text = fixture_read(path, &size);
  ck_assert_msg(text != NULL, "%s can't be read", path);
  for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = 0;
    if (*line) find(line, strcspn(line, " "), FIXTURE);
  }
  free(text);
}

/* The calls of the arrays, quoted in the header of the file. */
static void find_values(const char *path) {
  size_t size;
  char *data = fixture_read(path, &size);
  ck_assert_msg(data != NULL && size > 8, "%s can't be read", path);
  for (char *at = data + 8; (at = strchr(at, '"')) != NULL; at++)
    if (!strncmp(at, "\"aten::", 7) || !strncmp(at, "\"prims::", 8) || !strncmp(at, "\"graft::", 8))
      find(at + 1, strcspn(at + 1, " \"\\"), FIXTURE);
  free(data);
}

static int wanted_of(const op_def *def) {
  if (!def) return 0;
  if (def->host) return FIXTURE;
  return CASE | FIXTURE | (def->vjp ? GRADIENT : 0);
}

static const struct exemption *exempt(const op_schema *schema, int what) {
  for (size_t i = 0; i < sizeof exemptions / sizeof *exemptions; i++)
    if (!strcmp(exemptions[i].op, schema->name) && exemptions[i].what & what) return &exemptions[i];
  return NULL;
}

START_TEST(ops_are_covered) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  int wrong = 0, rules = 0;
  ck_assert_uint_le(count, OPS);
  find_cases();
  ck_assert_int_gt(fixture_each(".meta.zst", find_fixtures), 0);
  ck_assert_int_gt(fixture_each(".values.zst", find_values), 0);
  for (size_t i = 0; i < count; i++) {
    int wanted = wanted_of(op_def_of(all[i].id));
    rules += wanted != 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      bool missing = (wanted & kinds[k].what) && !(found[i] & kinds[k].what);
      const struct exemption *e = exempt(&all[i], kinds[k].what);
      if (missing == (e != NULL)) continue;
      fprintf(stderr, e ? "%s has a %s now: take the exemption out\n" : "%s has no %s\n", all[i].name, kinds[k].name);
      wrong++;
    }
  }
  ck_assert_int_gt(rules, 0);
  ck_assert_msg(wrong == 0, "%d things are missing, or no longer", wrong);
}
END_TEST

/* What comes as indices do, and is none, or one that forward has checked. */
static const char *const no_index[] = {"offsets", "offset2bag", "bag_size", "maximum_indices"};

static bool is_no_index(const op_schema *schema, const char *name) {
  bool backward = strstr(schema->name, "_embedding_bag_") && strstr(schema->name, "_backward");
  for (size_t i = 0; backward && i < sizeof no_index / sizeof *no_index; i++)
    if (!strcmp(no_index[i], name)) return true;
  return false;
}

START_TEST(index_arguments_have_a_range) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  int wrong = 0, indices = 0;
  for (size_t i = 0; i < count; i++) {
    const op_def *def = op_def_of(all[i].id);
    for (uint32_t a = 0; def && a < all[i].nargs; a++) {
      bool tensors = all[i].args[a].kind == OPK_TENSOR || all[i].args[a].kind == OPK_TENSORS;
      if (!tensors || op_role(&all[i], def, a) != 'i') continue;
      indices++;
      if ((all[i].args[a].index != NULL) != is_no_index(&all[i], all[i].args[a].name)) continue;
      fprintf(stderr, "%s: its description has no index=%s, or the argument holds no indices\n", all[i].name,
              all[i].args[a].name);
      wrong++;
    }
  }
  ck_assert_int_gt(indices, 0);
  ck_assert_msg(wrong == 0, "%d index arguments without a range", wrong);
}
END_TEST

/* ---- arguments that may be absent, flags, and words ---- */

/* What the mustpass cases of an op have said of each argument: a bit an argument, and a word's in `words`. */
static struct said {
  uint64_t given, absent, yes, no, imaginary;
  bool complex; /* some case has a complex tensor */
  uint32_t words[OP_MAX_ARGS];
} said[OPS];

static void note_value(struct said *s, const op_arg *arg, uint32_t a, const graft_value *given) {
  bool absent = given->kind == GRAFT_VALUE_NONE;
  const graft_value *v = absent && arg->fallback ? arg->fallback : given;
  /* What asks for truths says nothing of conversions. */
  if (v->kind == GRAFT_VALUE_DTYPE && v->as.dtype == GRAFT_BOOL) return;
  *(absent ? &s->absent : &s->given) |= UINT64_C(1) << a;
  if (arg->kind == OPK_BOOL && v->kind == GRAFT_VALUE_BOOL) *(v->as.i ? &s->yes : &s->no) |= UINT64_C(1) << a;
  for (uint32_t w = 0; v->kind == GRAFT_VALUE_STR && arg->strings && arg->strings[w]; w++)
    if (!strcmp(arg->strings[w], v->as.str)) s->words[a] |= 1u << w;
}

/* A scalar with an imaginary part. */
static bool is_imaginary(const graft_value *v) {
  return v->kind == GRAFT_VALUE_SCALAR && dt_is_complex(v->as.scalar.dtype) && v->as.scalar.value.c[1] != 0;
}

static bool note_said(void *context, const cf_case *c, const char *id) {
  cf_call call;
  size_t count;
  (void)context, (void)id;
  if (c->mode > CF_VJP || !cf_call_open(c, &call)) return true;
  struct said *s = &said[call.schema - op_schema_all(&count)];
  for (uint32_t a = 0; a < call.schema->nargs; a++) {
    note_value(s, &call.schema->args[a], a, &call.args[a]);
    if (is_imaginary(&call.args[a])) s->imaginary |= UINT64_C(1) << a;
  }
  s->complex |= dt_is_complex(c->dtype);
  cf_call_close(&call);
  return true;
}

/* Not said by any case, and why. The name of an op may be left out. */
static const struct unsaid {
  const char *op, *argument, *why;
} unsaid[] = {
    {NULL, "check_errors", "errors are read by the host, and come from the reference"},
    {NULL, "half_to_float", "of CUDA's autocast; its own case is another dtype"},
    {NULL, "sparse", "a property of the gradient in PyTorch, which sparse tensors of the bridge have"},
    {"aten::gather", "sparse_grad", "as sparse"},
    {"aten::embedding", "scale_grad_by_freq", "forward ignores it; the gradient's op has a case"},
    {"aten::_embedding_bag", "scale_grad_by_freq", "forward ignores it; the gradient's ops have cases"},
    {"aten::_linalg_svd", "driver", "of CUDA's libraries, and ignored"},
    {"aten::linalg_lstsq", "driver", "gelsy has the cases of those for matrices of any rank"},
    {"aten::_native_batch_norm_legit.no_stats", "training", "without statistics it is training"},
    {"aten::_scaled_dot_product_fused_attention_overrideable", "return_debug_mask", "PyTorch never asks"},
    {"aten::_scaled_dot_product_fused_attention_overrideable_backward", "cum_seq_q", "of nested tensors"},
    {"aten::_scaled_dot_product_fused_attention_overrideable_backward", "cum_seq_k", "of nested tensors"},
    {"aten::_scaled_mm", "use_fast_accum", "leave to be less exact, which nobody takes"},
    {"aten::_grouped_mm", "bias", "PyTorch refuses it"},
    {"aten::segment_reduce", "indices", "PyTorch refuses it"},
    {"aten::isin.Tensor_Tensor", "assume_unique", "a promise about the input; without it all is right, too"},
    {"aten::unique_dim", "sorted", "false leaves the order open; PyTorch sorts nevertheless"},
    {"aten::_fused_adamw.tensor_lr", "grad_scale", "absent in the other fused optimizers"},
    {"aten::_fused_adamw.tensor_lr", "found_inf", "absent in the other fused optimizers"},
    {"aten::_fused_rms_norm", "eps", "absent it is the dtype's, in fixtures"},
};

/* Numbers that are real also where tensors are complex: PyTorch refuses others. */
static const char *const real_numbers[] = {"correction", "ord", "p"};

static bool is_real_number(const char *argument) {
  bool found = false;
  for (int i = 0; i < ROWS(real_numbers); i++) found |= !strcmp(real_numbers[i], argument);
  return found;
}

static bool is_unsaid(const char *op, const char *argument) {
  for (int i = 0; i < ROWS(unsaid); i++)
    if ((!unsaid[i].op || !strcmp(unsaid[i].op, op)) && !strcmp(unsaid[i].argument, argument)) return true;
  return false;
}

static int lacks(const op_schema *schema, const op_arg *arg, bool lacking, const char *what) {
  if (!lacking || is_unsaid(schema->name, arg->name)) return 0;
  fprintf(stderr, "%s: no case at mustpass has %s %s\n", schema->name, arg->name, what);
  return 1;
}

static bool takes_tensors(const op_schema *schema) {
  for (uint32_t a = 0; a < schema->nargs; a++) {
    if (schema->args[a].kind == OPK_TENSOR || schema->args[a].kind == OPK_TENSORS) return true;
  }
  return false;
}

static int count_unsaid(const op_schema *schema, const struct said *s) {
  int wrong = 0;
  for (uint32_t a = 0; a < schema->nargs; a++) {
    const op_arg *arg = &schema->args[a];
    uint64_t bit = UINT64_C(1) << a;
    if (arg->flags & OPA_DROPPED || arg->kind > OPK_DTYPE) continue;
    if (arg->flags & OPA_OPTIONAL) {
      bool has_default = arg->kind != OPK_DTYPE || takes_tensors(schema); /* a program's, which cases leave alone */
      wrong += lacks(schema, arg, has_default && !(s->absent & bit), "absent");
      wrong += lacks(schema, arg, !(s->given & bit), "given");
    }
    if (arg->kind == OPK_BOOL) {
      wrong += lacks(schema, arg, !(s->yes & bit), "true");
      wrong += lacks(schema, arg, !(s->no & bit), "false");
    }
    if (arg->kind == OPK_SCALAR && s->complex && !is_real_number(arg->name))
      wrong += lacks(schema, arg, !(s->imaginary & bit), "complex");
    for (uint32_t w = 0; arg->kind == OPK_STR && arg->strings && arg->strings[w]; w++)
      wrong += lacks(schema, arg, !(s->words[a] >> w & 1), arg->strings[w]);
  }
  return wrong;
}

START_TEST(arguments_come_in_all_their_kinds) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  const cf_selection mustpass = {.level = CF_MUSTPASS};
  int wrong = 0, ops = 0;
  cf_menu(&mustpass, note_said, NULL);
  for (size_t i = 0; i < count; i++) {
    const op_def *def = op_def_of(all[i].id);
    if (!def || def->host || all[i].equal || !(said[i].given | said[i].absent)) continue;
    wrong += count_unsaid(&all[i], &said[i]);
    ops++;
  }
  ck_assert_int_gt(ops, 400);
  ck_assert_msg(wrong == 0, "%d arguments are never so", wrong);
}
END_TEST

/* Which index arguments have a case with an index out of range: a bit an argument, by row of the schema table. */
static uint64_t spoilt[OPS];

static bool note_spoilt(void *context, const cf_case *c, const char *id) {
  cf_call call;
  size_t count;
  (void)context, (void)id;
  if (c->mode < CF_RANGE_PAST || !cf_call_open(c, &call)) return true;
  spoilt[call.schema - op_schema_all(&count)] |= UINT64_C(1) << call.spec_arg[c->variant];
  cf_call_close(&call);
  return true;
}

START_TEST(index_arguments_have_a_range_case) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  const cf_selection mustpass = {.level = CF_MUSTPASS};
  int wrong = 0;
  cf_menu(&mustpass, note_spoilt, NULL);
  for (size_t i = 0; i < count; i++) {
    for (uint32_t a = 0; op_def_of(all[i].id) && a < all[i].nargs; a++) {
      bool tensors = all[i].args[a].kind == OPK_TENSOR || all[i].args[a].kind == OPK_TENSORS;
      if (!tensors || !all[i].args[a].index || spoilt[i] >> a & 1) continue;
      fprintf(stderr, "%s: no case has an index of %s out of range\n", all[i].name, all[i].args[a].name);
      wrong++;
    }
  }
  ck_assert_msg(wrong == 0, "%d index arguments without such a case", wrong);
}
END_TEST

/* ---- the dtype that a rule computes in ---- */

/* Whether an argument is a half type's value that a rule may have converted before it is computed with. */
static bool takes_values(const op_call *call) {
  for (uint32_t a = 0; a < call->schema->nargs; a++) {
    const char role = op_role(call->schema, call->def, a);
    if ((role != 'b' && role != 'v') || call->args[a].kind != GRAFT_VALUE_TENSOR) continue;
    const graft_tensor *t = call->args[a].as.tensor;
    if (t->dtype == GRAFT_BF16 && t->numel) return true;
  }
  return false;
}

/* Ops with cases in a half type whose rule names no dtype to compute in: by row of the schema table. */
static bool unnamed[OPS];

static bool note_compute(void *context, const cf_case *c, const char *id) {
  dsp_room room;
  arena lists = ARENA_IN(room.bytes);
  op_call made = {.lists = &lists};
  cf_call call;
  size_t count;
  (void)context, (void)id;
  if (c->mode != CF_FORWARD || c->dtype != GRAFT_BF16 || !cf_call_open(c, &call)) return true;
  const bool widens = !(op_def_of(call.text.schema->id)->flags & OP_NO_WIDEN);
  txt_call *text = &call.text;
  if (widens && !unnamed[text->schema - op_schema_all(&count)] &&
      !txt_make(text, graft_device_reference(), NULL, NULL) &&
      !dsp_infer(&made, text->schema, text->args, text->schema->nargs))
    unnamed[text->schema - op_schema_all(&count)] = !made.compute && takes_values(&made);
  arena_free(&lists);
  cf_call_close(&call);
  return true;
}

/* A half type is computed in f32 where a device has no slot for it: for that its rule has to say that it is one. */
START_TEST(what_is_widened_says_in_which_dtype) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  const cf_selection mustpass = {.level = CF_MUSTPASS};
  int wrong = 0;
  cf_menu(&mustpass, note_compute, NULL);
  for (size_t i = 0; i < count; i++) {
    if (!unnamed[i]) continue;
    fprintf(stderr, "%s: its rule names no dtype to compute in\n", all[i].name);
    wrong++;
  }
  ck_assert_msg(wrong == 0, "%d rules name no dtype to compute in", wrong);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(ops_are_covered),
                              ONCE(arguments_come_in_all_their_kinds),
                              ONCE(index_arguments_have_a_range),
                              ONCE(index_arguments_have_a_range_case),
                              ONCE(what_is_widened_says_in_which_dtype),
                              {0}};
  return run_suite("coverage", tests, (suite_options){.timeout_s = 100});
}
