/* Shapes, dtypes and strides, or refusals, as PyTorch has them (tests/fixtures) against graft_infer. Run alone with
 * GRAFT_FIXTURES_OP='aten::add.*'; see fixtures/reader.h. */

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
  if (same_as_any(expected, got)) {
    tally->agreed[0]++;
  } else {
    bool refused = strcmp(got, "error") == 0;
    fixture_disagree(tally, 0, "%s\n    got %s%s%s\n", line, got, refused ? ": " : "",
                     refused ? graft_last_error() : "");
  }
  txt_free(&call);
}

static void judge_file(const char *path) {
  size_t size;
  char *text = fixture_read(path, &size);
  ck_assert_msg(text != NULL, "%s can't be read", path);
  for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = 0;
    judge_line(line);
  }
  free(text);
}

START_TEST(test_meta) {
  static const char *const kinds[] = {"lines"};
  ck_assert_msg(fixture_each(".meta.zst", judge_file) > 0, "no fixtures in %s; `./run fixtures` makes them",
                GRAFT_FIXTURES_DIR);
  unsigned bad = fixture_report(kinds, 1);
  ck_assert_msg(bad == 0, "%u disagreements with PyTorch", bad);
}
END_TEST

int main(void) {
  fixture_name_crashes();
  const suite_test tests[] = {ONCE(test_meta), {0}};
  return run_suite("fixtures_meta", tests, (suite_options){.timeout_s = 600, .one_process = true});
}
