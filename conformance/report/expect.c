#include "conformance/report/expect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/report/file.h"
#include "conformance/run/case.h"
#include "dispatch/dispatch.h"

enum { CF_KEY_BYTES = 128, CF_LINE_BYTES = 1 << 16, CF_NOT_RUN = '-', CF_WRONG = 'x' };

/* A case of the level's whole menu. */
typedef struct cf_expect_case {
  char key[CF_KEY_BYTES]; /* its op, dtype and kind: "aten::abs f32 contiguous" */
  cf_case c;
  uint32_t line; /* of the file, 0: it has none */
  char expected, now;
} cf_expect_case;

/* A kind of cases that the file has more of than the menu. */
typedef struct cf_vanished {
  char key[CF_KEY_BYTES];
  uint32_t line, count;
} cf_vanished;

struct cf_expect {
  const cf_options *options;
  cf_expect_case *cases;     /* in the menu's order */
  cf_expect_case **selected; /* NULL: a way that was asked for, of which nothing is expected */
  cf_expect_case **sorted;
  cf_vanished *vanished;
  uint32_t count, capacity, vanished_count;
  bool incomplete; /* no memory for all */
};

/* ---- how a case was served ---- */

static const struct {
  char letter;
  int worse; /* than those of a lower number */
  const char *meaning;
} cf_ways[] = {
    {'p', 0, "the plugin's slot"},
    {'h', 0, "the host, which moves no byte"},
    {'d', 1, "the plugin's other ops"},
    {'f', 2, "host memory, at least in part"},
    {'u', 3, "nothing"},
};
enum { CF_WAYS = sizeof cf_ways / sizeof *cf_ways };

/* Its place in cf_ways; -1: nothing is known of it. */
static int cf_way_of(char letter) {
  for (int i = 0; i < CF_WAYS; i++)
    if (cf_ways[i].letter == letter) return i;
  return -1;
}

static char cf_letter(const cf_result *r) {
  if (r->outcome == CF_UNSUPPORTED) return 'u';
  if (r->outcome != CF_PASS) return CF_WRONG;
  if (strcmp(cf_result_word(r), "fallback") == 0) return 'f';
  if (r->route == DSP_ROUTE_DECOMPOSITION) return 'd';
  return r->route == DSP_ROUTE_PLUGIN || r->route == DSP_ROUTE_EQUAL ? 'p' : 'h';
}

/* ---- the menu ---- */

static void cf_expect_key(const cf_case *c, char key[CF_KEY_BYTES]) {
  const char *layout = cf_layout_name(c->layout), *mode = cf_mode_name(c->mode);
  int n = snprintf(key, CF_KEY_BYTES, "%s %s ", op_schema_of(c->op_id)->name, graft_dtype_name(c->dtype));
  size_t room = CF_KEY_BYTES - (size_t)n;
  if (c->mode == CF_FORWARD)
    snprintf(key + n, room, "%s", layout);
  else if (c->layout == CF_CONTIGUOUS)
    snprintf(key + n, room, "%s", mode);
  else
    snprintf(key + n, room, "%s/%s", mode, layout);
}

static bool cf_expect_add(void *context, const cf_case *c, const char *id) {
  cf_expect *e = context;
  (void)id;
  if (e->count == e->capacity) {
    uint32_t capacity = e->capacity ? 2 * e->capacity : 1024;
    cf_expect_case *cases = realloc(e->cases, capacity * sizeof *cases);
    if (!cases) return e->incomplete = true, false;
    e->cases = cases, e->capacity = capacity;
  }
  cf_expect_case *item = &e->cases[e->count++];
  *item = (cf_expect_case){.c = *c, .expected = CF_NOT_RUN, .now = CF_NOT_RUN};
  cf_expect_key(c, item->key);
  return true;
}

static int cf_by_key(const void *a, const void *b) {
  const cf_expect_case *x = *(cf_expect_case *const *)a, *y = *(cf_expect_case *const *)b;
  int order = strcmp(x->key, y->key);
  return order ? order : x < y ? -1 : x > y;
}

/* The selected cases are some of the menu's, in its order. */
static bool cf_expect_index(cf_expect *e, const cf_cases *selected) {
  e->selected = calloc((size_t)selected->count + 1, sizeof *e->selected);
  e->sorted = calloc((size_t)e->count + 1, sizeof *e->sorted);
  if (!e->selected || !e->sorted) return false;
  uint32_t next = 0;
  for (uint32_t i = 0; i < e->count; i++) {
    e->sorted[i] = &e->cases[i];
    while (next < selected->count && selected->items[next].way != DSP_ROUTE_NONE) next++;
    bool here = next < selected->count && memcmp(&selected->items[next], &e->cases[i].c, sizeof(cf_case)) == 0;
    if (here) e->selected[next++] = &e->cases[i];
  }
  while (next < selected->count && selected->items[next].way != DSP_ROUTE_NONE) next++;
  qsort(e->sorted, e->count, sizeof *e->sorted, cf_by_key);
  return next == selected->count;
}

/* Where the cases of a key begin in `sorted`, or would. */
static uint32_t cf_expect_find(const cf_expect *e, const char *key) {
  uint32_t low = 0, high = e->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (strcmp(e->sorted[middle]->key, key) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* ---- reading ---- */

static graft_status cf_note_vanished(cf_expect *e, const char *key, uint32_t line, uint32_t count) {
  cf_vanished *more = realloc(e->vanished, (e->vanished_count + 1) * sizeof *more);
  if (!more) return err_set(GRAFT_OUT_OF_MEMORY, "no memory for what %s expects", e->options->expect);
  e->vanished = more;
  cf_vanished *v = &e->vanished[e->vanished_count++];
  *v = (cf_vanished){.line = line, .count = count};
  snprintf(v->key, sizeof v->key, "%s", key);
  return GRAFT_OK;
}

/* "contiguous:pp" of a line. */
static graft_status cf_expect_kind(cf_expect *e, uint32_t line, const char *op, const char *dtype, char *kind) {
  char key[CF_KEY_BYTES], *letters = strchr(kind, ':');
  bool good = letters && letters[1] && strspn(letters + 1, "phdfux-") == strlen(letters + 1);
  if (good) *letters++ = 0;
  good = good && snprintf(key, sizeof key, "%s %s %s", op, dtype, kind) < (int)sizeof key;
  if (!good)
    return err_set(GRAFT_INVALID_ARGUMENT, "%s:%u: '%s': expected a kind of cases and letters, contiguous:pp",
                   e->options->expect, line, kind);
  uint32_t at = cf_expect_find(e, key);
  for (; *letters && at < e->count && strcmp(e->sorted[at]->key, key) == 0; at++) {
    e->sorted[at]->line = line;
    e->sorted[at]->expected = *letters++;
  }
  return *letters ? cf_note_vanished(e, key, line, (uint32_t)strlen(letters)) : GRAFT_OK;
}

static graft_status cf_expect_line(cf_expect *e, uint32_t number, char *line, bool *leveled) {
  const char *path = e->options->expect;
  bool whole = strlen(line) + 1 < CF_LINE_BYTES;
  line[strcspn(line, "#\n")] = 0;
  char *rest, *op = strtok_r(line, " ", &rest), *dtype = strtok_r(NULL, " ", &rest);
  if (!op && whole) return GRAFT_OK;
  if (!op || !dtype || !whole)
    return err_set(GRAFT_INVALID_ARGUMENT, "%s:%u: expected an op, a dtype and kinds of cases, or a level", path,
                   number);
  if (strcmp(op, "level") == 0) {
    *leveled = true;
    if (cf_level_parse(dtype) == (int)e->options->selection.level) return GRAFT_OK;
    return err_set(GRAFT_INVALID_ARGUMENT, "%s was written at level %s; run it with --level %s", path, dtype, dtype);
  }
  if (!*leveled)
    return err_set(GRAFT_INVALID_ARGUMENT, "%s:%u: expected `level smoke` or another before the ops", path, number);
  graft_status s = GRAFT_OK;
  for (char *kind = strtok_r(NULL, " ", &rest); kind && s == GRAFT_OK; kind = strtok_r(NULL, " ", &rest))
    s = cf_expect_kind(e, number, op, dtype, kind);
  return s;
}

static graft_status cf_expect_read(cf_expect *e) {
  const char *path = e->options->expect;
  bool leveled = false;
  FILE *f = fopen(path, "r");
  if (!f) return err_set(GRAFT_INVALID_ARGUMENT, "--expect %s: %s", path, strerror(errno));
  char *line = malloc(CF_LINE_BYTES);
  graft_status s = line ? GRAFT_OK : err_set(GRAFT_OUT_OF_MEMORY, "no memory for %s", path);
  for (uint32_t n = 1; s == GRAFT_OK && fgets(line, CF_LINE_BYTES, f); n++) s = cf_expect_line(e, n, line, &leveled);
  if (s == GRAFT_OK && ferror(f)) s = err_set(GRAFT_INVALID_ARGUMENT, "--expect %s: %s", path, strerror(errno));
  if (s == GRAFT_OK && !leveled) s = err_set(GRAFT_INVALID_ARGUMENT, "--expect %s: it has no line `level ...`", path);
  free(line);
  fclose(f);
  return s;
}

graft_status cf_expect_open(const cf_options *options, const cf_cases *selected, cf_expect **expect) {
  const cf_selection whole = {.level = options->selection.level, .ways = CF_CHOSEN_WAY};
  cf_expect *e = calloc(1, sizeof *e);
  if (!e) return err_set(GRAFT_OUT_OF_MEMORY, "no memory for what is expected");
  e->options = options;
  cf_menu(&whole, cf_expect_add, e);
  graft_status s = GRAFT_OK;
  if (e->incomplete || !cf_expect_index(e, selected)) s = err_set(GRAFT_OUT_OF_MEMORY, "no memory for the menu");
  if (s == GRAFT_OK && options->write_expect) s = cf_file_probe("--write-expect", options->write_expect);
  if (s == GRAFT_OK && options->expect) s = cf_expect_read(e);
  if (s == GRAFT_OK)
    *expect = e;
  else
    cf_expect_close(e);
  return s;
}

void cf_expect_close(cf_expect *e) {
  if (!e) return;
  free(e->cases);
  free(e->selected);
  free(e->sorted);
  free(e->vanished);
  free(e);
}

/* ---- judging ---- */

void cf_expect_note(cf_expect *e, uint32_t index, cf_result *r) {
  cf_expect_case *item = e->selected[index];
  if (!item) return;
  item->now = cf_letter(r);
  int expected = cf_way_of(item->expected), now = cf_way_of(item->now);
  if (expected < 0 || now < 0 || cf_ways[now].worse <= cf_ways[expected].worse) return;
  char said[sizeof r->text];
  snprintf(said, sizeof said, "%s", r->text);
  cf_fail(r, "support was lost: computed by %s; %s:%u expects %s%s%s", cf_ways[now].meaning, e->options->expect,
          item->line, cf_ways[expected].meaning, *said ? ": " : "", said);
}

uint32_t cf_expect_summary(const cf_expect *e) {
  uint32_t vanished = 0, lacking = 0;
  if (!e->options->expect) return 0;
  for (uint32_t i = 0; i < e->vanished_count; i++) {
    const cf_vanished *v = &e->vanished[i];
    vanished += v->count;
    printf("vanished: %s: %s:%u has %u case%s of it that the suite has no more\n", v->key, e->options->expect, v->line,
           v->count, v->count == 1 ? "" : "s");
  }
  for (uint32_t i = 0; i < e->count; i++) lacking += !e->cases[i].line && cf_way_of(e->cases[i].now) >= 0;
  if (lacking)
    printf("%s does not have %u of these cases yet: --write-expect %s\n", e->options->expect, lacking,
           e->options->expect);
  return vanished;
}

/* ---- writing ---- */

static size_t cf_op_and_dtype(const char *key) {
  return (size_t)(strrchr(key, ' ') - key);
}

static bool cf_same_line(const cf_expect_case *a, const cf_expect_case *b) {
  size_t n = cf_op_and_dtype(a->key);
  return n == cf_op_and_dtype(b->key) && strncmp(a->key, b->key, n) == 0;
}

/* One kind, from `at` in `sorted`; returns where the next begins. `line` is the last case whose line was begun. */
static uint32_t cf_write_kind(FILE *f, const cf_expect *e, uint32_t at, const cf_expect_case **line) {
  const cf_expect_case *first = e->sorted[at];
  uint32_t end = at;
  bool run = false;
  for (; end < e->count && strcmp(e->sorted[end]->key, first->key) == 0; end++)
    run |= e->sorted[end]->now != CF_NOT_RUN;
  if (!run || first->c.mode == CF_ADJOINT) return end; /* an adjoint case runs no plugin */
  size_t head = cf_op_and_dtype(first->key);
  if (!*line || !cf_same_line(*line, first)) fprintf(f, "%s%.*s", *line ? "\n" : "", (int)head, first->key);
  *line = first;
  fprintf(f, "%s:", first->key + head);
  for (; at < end; at++) putc(e->sorted[at]->now, f);
  return end;
}

static void cf_write_expect(FILE *f, const void *context) {
  const cf_expect *e = context;
  const cf_expect_case *line = NULL;
  fputs(
      "# Who computes what, as `graft conformance --write-expect` found it; --expect turns what is lost red.\n"
      "# A letter a case:",
      f);
  for (int i = 0; i < CF_WAYS; i++) fprintf(f, " %c %s;", cf_ways[i].letter, cf_ways[i].meaning);
  fprintf(f, " %c wrong; %c not run.\nlevel %s\n", CF_WRONG, CF_NOT_RUN,
          cf_level_name((int)e->options->selection.level));
  for (uint32_t at = 0; at < e->count;) at = cf_write_kind(f, e, at, &line);
  if (line) putc('\n', f);
}

graft_status cf_expect_write(const cf_expect *e) {
  return e->options->write_expect ? cf_file_write(e->options->write_expect, cf_write_expect, e) : GRAFT_OK;
}
