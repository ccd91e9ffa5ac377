/* Shapes, dtypes and strides, or refusals, as PyTorch has them (tests/fixtures) against graft_infer. Run alone with
 * GRAFT_FIXTURES_OP='aten::add.*'; see fixtures/reader.h. */

#include <math.h>

#include "dispatch/plan.h"
#include "fixtures/reader.h"
#include "suite.h"

enum { MOST_OUTS = 64 };

/* What graft_infer gives, in the form of the fixtures: "f32[2,3]:3,1 | i64[2]:1", or "error". */
static void infer(txt_call *call, char *got, size_t capacity) {
  graft_meta metas[MOST_OUTS] = {{0}};
  uint32_t count = 0;
  size_t used = 0;
  got[0] = 0;
  graft_status status = txt_make(call, graft_device_reference(), NULL, NULL);
  if (status == GRAFT_OK)
    status = graft_infer(call->schema->id, call->args, call->nargs, metas, sizeof *metas, MOST_OUTS, &count);
  if (status != GRAFT_OK) {
    snprintf(got, capacity, "error");
    return;
  }
  for (uint32_t i = 0; i < count && used + 2 < capacity; i++) {
    char meta[256];
    txt_format_meta(&metas[i], meta, sizeof meta);
    used += (size_t)snprintf(got + used, capacity - used, "%s%s", i ? " | " : "", meta);
  }
}

/* A refusal names an op, the call's or one that it is made of, and says what is wrong in words: three at least. */
static bool says_why(const char *text) {
  char name[128];
  const char *words = strstr(text, ": ");
  snprintf(name, sizeof name, "%.*s", words ? (int)(words - text) : 0, text);
  const char *second = op_schema_find(name) ? strchr(words + 2, ' ') : NULL;
  return second && strchr(second + 1, ' ') && !strchr(words, '%');
}

/* One expected result, up to " or " or the end, output by output. What PyTorch does not produce ("_": masked out) is
 * not compared, since infer has no word for it. */
static bool same(const char *expected, const char *got) {
  for (;;) {
    size_t n = strcspn(expected, " "), m = strcspn(got, " ");
    bool masked = n == 1 && *expected == '_';
    if (!masked && (n != m || memcmp(expected, got, n) != 0)) return false;
    expected += n, got += m;
    bool more = strncmp(expected, " | ", 3) == 0;
    if (!more || !*got) return !more && !*got;
    expected += 3, got += 3;
  }
}

/* "A or B" stands where PyTorch's meta and eager kernels differ in strides that address nothing. */
static bool same_as_any(const char *expected, const char *got) {
  for (const char *at = expected; at; at = strstr(at, " or ")) {
    if (at != expected) at += 4;
    if (same(at, got)) return true;
  }
  return false;
}

static void judge_line(const char *line) {
  txt_call call;
  const char *expected;
  char got[4096];
  fixture_current = line;
  ck_assert_msg(txt_parse_call(line, &expected, &call) == GRAFT_OK && expected, "%s", graft_last_error());
  if (!fixture_wanted(call.schema)) return txt_free(&call);
  fixture_tally *tally = fixture_tally_of(call.schema);
  if (!fixture_has_rule(call.schema)) {
    tally->disagreed[0]++;
    return txt_free(&call);
  }
  infer(&call, got, sizeof got);
  bool refused = strcmp(got, "error") == 0;
  if (refused && !says_why(graft_last_error())) {
    fixture_disagree(tally, 0, "%s\n    is refused without a reason: %s\n", line, graft_last_error());
  } else if (same_as_any(expected, got)) {
    tally->agreed[0]++;
  } else {
    fixture_disagree(tally, 0, "%s\n    got %s%s%s\n", line, got, refused ? ": " : "",
                     refused ? graft_last_error() : "");
  }
  txt_free(&call);
}

/* Puts another value in the place of a number, of the same kind and dtype. */
typedef struct number {
  double real;
  int64_t whole;
} number;

static void set_number(graft_scalar *number, struct number value) {
  if (number->dtype == GRAFT_I64) number->value.i = value.whole;
  if (number->dtype == GRAFT_BOOL) number->value.i = value.whole != 0;
  if (number->dtype == GRAFT_F64) number->value.f = value.real;
  if (number->dtype == GRAFT_C128) number->value.c[0] = value.real;
}

enum { MOST_NUMBERS = 64 };

static void set_numbers(const txt_call *call, uint64_t late, number value, graft_value *args, graft_scalar *list) {
  memcpy(args, call->args, call->nargs * sizeof *args);
  for (uint32_t i = 0; i < call->nargs; i++) {
    graft_value *v = &args[i];
    if (!(late >> i & 1)) continue;
    if (v->kind == GRAFT_VALUE_FLOAT) v->as.f = value.real;
    if (v->kind == GRAFT_VALUE_INT) v->as.i = value.whole;
    if (v->kind == GRAFT_VALUE_SCALAR) set_number(&v->as.scalar, value);
    if (v->kind != GRAFT_VALUE_SCALARS || v->count > MOST_NUMBERS) continue;
    memcpy(list, v->as.scalars, v->count * sizeof *list);
    for (uint32_t n = 0; n < v->count; n++) set_number(&list[n], value);
    v->as.scalars = list;
  }
}

/* All that a rule says, as text. */
static void rule_says(const op_schema *schema, const graft_value *args, uint32_t nargs, char *text, size_t capacity) {
  graft_meta metas[MOST_OUTS] = {{0}};
  arena lists = {NULL, NULL, NULL};
  op_call call = {.lists = &lists};
  graft_status status = dsp_infer(&call, schema, args, nargs);
  size_t used = (size_t)snprintf(text, capacity, "%d", status);
  uint32_t count = status ? 0 : op_flat_count(&call);
  if (!status) op_flat_outputs(&call, metas, NULL, MOST_OUTS);
  if (!status) {
    used += (size_t)snprintf(text + used, capacity - used, " %x %d %d %d %llu", call.compute, call.decompose_only,
                             call.no_decompose, call.dynamic, (unsigned long long)call.draws);
  }
  for (uint32_t i = 0; i < count && i < MOST_OUTS && used + 256 < capacity; i++) {
    char meta[256];
    txt_format_meta(&metas[i], meta, sizeof meta);
    used += (size_t)snprintf(text + used, capacity - used, " %s", meta);
  }
  arena_free(&lists);
}

static unsigned late_lines;

/* OP_LATE_NUMBERS: whatever the numbers are, the rule says the same. */
static void judge_numbers(const char *line) {
  static const number values[] = {{0, 0},  {1, 1}, {-3, -3}, {2.5, 300}, {1e30, INT64_MAX}, {-1e-30, INT64_MIN},
                                  {NAN, 2}};
  const graft_rt_device *reference = graft_device_reference();
  txt_call call;
  const char *expected;
  fixture_current = line;
  ck_assert_msg(txt_parse_call(line, &expected, &call) == GRAFT_OK, "%s", graft_last_error());
  uint64_t late = dsp_late_numbers((graft_rt_device *)reference, call.schema, op_def_of(call.schema->id));
  if (late && !txt_make(&call, graft_device_reference(), NULL, NULL)) {
    char as_written[4096], got[4096];
    rule_says(call.schema, call.args, call.nargs, as_written, sizeof as_written);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
      graft_value args[OP_MAX_ARGS];
      graft_scalar list[MOST_NUMBERS];
      set_numbers(&call, late, values[i], args, list);
      rule_says(call.schema, args, call.nargs, got, sizeof got);
      ck_assert_msg(strcmp(got, as_written) == 0, "%s\nwith numbers of %g: %s\nas written: %s", line, values[i].real,
                    got, as_written);
    }
    late_lines++;
  }
  txt_free(&call);
}

static void (*judge)(const char *line);

static void judge_file(const char *path) {
  size_t size;
  char *text = fixture_read(path, &size);
  ck_assert_msg(text != NULL, "%s can't be read", path);
  for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = 0;
    judge(line);
  }
  free(text);
}

START_TEST(late_numbers_do_not_show) {
  judge = judge_numbers;
  fixture_each(".meta.zst", judge_file);
  ck_assert_uint_gt(late_lines, 1000);
}
END_TEST

START_TEST(test_meta) {
  static const char *const kinds[] = {"lines"};
  judge = judge_line;
  ck_assert_msg(fixture_each(".meta.zst", judge_file) > 0, "no fixtures in %s; `./run fixtures` makes them",
                GRAFT_FIXTURES_DIR);
  unsigned bad = fixture_report(kinds, 1);
  ck_assert_msg(bad == 0, "%u disagreements with PyTorch", bad);
}
END_TEST

int main(void) {
  fixture_name_crashes();
  const suite_test tests[] = {ONCE(test_meta), ONCE(late_numbers_do_not_show), {0}};
  return run_suite("fixtures_meta", tests, (suite_options){.timeout_s = 600, .one_process = true});
}
