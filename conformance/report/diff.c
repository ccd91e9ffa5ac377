/* `graft report diff A B`: what became of a backend between two runs, from their results.jsonl. */
#include <argp.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "conformance/conformance.h"
#include "conformance/report/file.h"
#include "conformance/report/report.h"

/* ---- a run ---- */

typedef struct cf_line {
  char *id, *op, *status;
  double milliseconds;
} cf_line;

typedef struct cf_lines {
  cf_line *items; /* by id */
  uint32_t count, capacity;
  char about[768]; /* what was run, when, and on what; empty: the file does not say */
} cf_lines;

static void cf_lines_free(cf_lines *lines) {
  for (uint32_t i = 0; i < lines->count; i++)
    free(lines->items[i].id), free(lines->items[i].op), free(lines->items[i].status);
  free(lines->items);
}

static int cf_by_id(const void *a, const void *b) {
  return strcmp(((const cf_line *)a)->id, ((const cf_line *)b)->id);
}

static char *cf_text_of(const cJSON *object, const char *key) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
  return text ? strdup(text) : NULL;
}

static void cf_describe_run(cf_lines *lines, const cJSON *object) {
  static const char *const keys[] = {"plugin", "device", "level", "began", "command"};
  size_t length = 0;
  for (size_t i = 0; i < sizeof keys / sizeof *keys && length < sizeof lines->about; i++) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, keys[i]));
    if (!text) continue;
    length += (size_t)snprintf(lines->about + length, sizeof lines->about - length, "%s%s%s", length ? ", " : "",
                               strcmp(keys[i], "level") == 0 ? "level " : "", text);
  }
}

/* A line without an id says what was run. */
static graft_status cf_take_line(cf_lines *lines, const char *path, uint32_t number, const char *text) {
  cJSON *object = cJSON_Parse(text);
  if (!cJSON_IsObject(object)) {
    cJSON_Delete(object);
    return err_set(GRAFT_INVALID_ARGUMENT, "%s:%u: no line of a report's results.jsonl", path, number);
  }
  graft_status s = GRAFT_OK;
  if (cJSON_HasObjectItem(object, "id")) {
    if (lines->count == lines->capacity) {
      uint32_t capacity = lines->capacity ? 2 * lines->capacity : 1024;
      cf_line *items = realloc(lines->items, capacity * sizeof *items);
      if (items) lines->items = items, lines->capacity = capacity;
    }
    const cJSON *ms = cJSON_GetObjectItemCaseSensitive(object, "ms");
    cf_line line = {cf_text_of(object, "id"), cf_text_of(object, "op"), cf_text_of(object, "status"),
                    cJSON_IsNumber(ms) ? ms->valuedouble : 0};
    bool whole = line.id && line.op && line.status;
    if (!whole || lines->count == lines->capacity) {
      s = err_set(GRAFT_INVALID_ARGUMENT, "%s:%u: expected \"id\", \"op\" and \"status\"", path, number);
      free(line.id), free(line.op), free(line.status);
    } else {
      lines->items[lines->count++] = line;
    }
  }
  if (!cJSON_HasObjectItem(object, "id")) cf_describe_run(lines, object);
  cJSON_Delete(object);
  return s;
}

/* `path` is a results.jsonl, or the folder of a report. */
static graft_status cf_read_lines(const char *path, cf_lines *lines) {
  char file[1024];
  struct stat info;
  bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
  snprintf(file, sizeof file, "%s%s", path, folder ? "/results.jsonl" : "");
  FILE *f = fopen(file, "r");
  if (!f) return err_set(GRAFT_INVALID_ARGUMENT, "%s: %s", file, strerror(errno));
  char *text = NULL;
  size_t room = 0;
  graft_status s = GRAFT_OK;
  uint32_t read = 0;
  while (s == GRAFT_OK && getline(&text, &room, f) > 0) s = cf_take_line(lines, file, ++read, text);
  if (s == GRAFT_OK && !read) s = err_set(GRAFT_INVALID_ARGUMENT, "%s: no line: not a report's results.jsonl", file);
  free(text);
  fclose(f);
  if (lines->count) qsort(lines->items, lines->count, sizeof *lines->items, cf_by_id);
  return s;
}

/* ---- what became of a case ---- */

typedef enum cf_change { CF_SAME, CF_NEWLY_FAILING, CF_NEWLY_PASSING, CF_COVERAGE_LOST, CF_COVERAGE_WON } cf_change;

static const char *const cf_change_titles[] = {"", "Newly failing", "Newly passing", "Coverage lost", "Coverage won"};

/* How far from the plugin's own work; -1: red. */
static int cf_distance(const char *status) {
  static const struct {
    const char *status;
    int distance;
  } rows[] = {{"pass", 0}, {"host", 0}, {"decomposed", 1}, {"fallback", 2}, {"unsupported", 3}, {"waived", 3}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].status, status) == 0) return rows[i].distance;
  return -1;
}

/* A case that one of them lacks is NULL there. */
static cf_change cf_change_of(const cf_line *a, const cf_line *b) {
  int before = a ? cf_distance(a->status) : 4, now = b ? cf_distance(b->status) : 4;
  if (now < 0) return before < 0 ? CF_SAME : CF_NEWLY_FAILING;
  if (before < 0) return b ? CF_NEWLY_PASSING : CF_COVERAGE_LOST;
  return now > before ? CF_COVERAGE_LOST : now < before ? CF_COVERAGE_WON : CF_SAME;
}

/* An op's time over the cases that both ran. */
typedef struct cf_op_time {
  const char *op;
  double before, now;
} cf_op_time;

typedef struct cf_changed {
  cf_change change;
  const cf_line *before, *now;
} cf_changed;

typedef struct cf_diff {
  const char *names[2], *about[2];
  cf_changed *items;
  uint32_t count, of[CF_COVERAGE_WON + 1];
  cf_op_time *times;
  uint32_t time_count;
} cf_diff;

/* Times are those of whole cases, building included: what is short says nothing. */
static bool cf_is_slower(const cf_op_time *t) {
  return t->before > 0 && t->now > 1.5 * t->before && t->now - t->before > 5;
}

static void cf_add_time(cf_diff *d, const cf_line *a, const cf_line *b) {
  uint32_t i = d->time_count;
  while (i > 0 && strcmp(d->times[i - 1].op, a->op) != 0) i--; /* ids sort by op: it is the last one, mostly */
  if (i == 0) d->times[d->time_count] = (cf_op_time){.op = a->op}, i = ++d->time_count;
  d->times[i - 1].before += a->milliseconds;
  d->times[i - 1].now += b->milliseconds;
}

static bool cf_compare_runs(cf_diff *d, const cf_lines *a, const cf_lines *b) {
  d->items = calloc((size_t)a->count + b->count + 1, sizeof *d->items);
  d->times = calloc((size_t)a->count + 1, sizeof *d->times);
  if (!d->items || !d->times) return false;
  for (uint32_t i = 0, k = 0; i < a->count || k < b->count;) {
    int order = i == a->count ? 1 : k == b->count ? -1 : strcmp(a->items[i].id, b->items[k].id);
    cf_changed c = {.before = order <= 0 ? &a->items[i++] : NULL, .now = order >= 0 ? &b->items[k++] : NULL};
    if (c.before && c.now) cf_add_time(d, c.before, c.now);
    c.change = cf_change_of(c.before, c.now);
    d->of[c.change]++;
    if (c.change != CF_SAME) d->items[d->count++] = c;
  }
  return true;
}

static uint32_t cf_slower_ops(const cf_diff *d) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < d->time_count; i++) n += cf_is_slower(&d->times[i]);
  return n;
}

/* ---- telling it ---- */

static const char *cf_status_in(const cf_line *line) {
  return line ? line->status : "not there";
}

static void cf_diff_text(FILE *f, const cf_diff *d) {
  fprintf(f, "%s -> %s: %u newly failing, %u newly passing, %u of coverage lost, %u won, %u ops slower\n", d->names[0],
          d->names[1], d->of[CF_NEWLY_FAILING], d->of[CF_NEWLY_PASSING], d->of[CF_COVERAGE_LOST],
          d->of[CF_COVERAGE_WON], cf_slower_ops(d));
  for (int i = 0; i < 2; i++)
    if (d->about[i][0]) fprintf(f, "  %s: %s\n", d->names[i], d->about[i]);
  for (int change = CF_NEWLY_FAILING; change <= CF_COVERAGE_LOST; change++) {
    if (d->of[change]) fprintf(f, "\n%s\n", cf_change_titles[change]);
    for (uint32_t i = 0; i < d->count; i++)
      if ((int)d->items[i].change == change)
        fprintf(f, "  %-11s -> %-11s %s\n", cf_status_in(d->items[i].before), cf_status_in(d->items[i].now),
                (d->items[i].now ? d->items[i].now : d->items[i].before)->id);
  }
  if (cf_slower_ops(d)) fputs("\nSlower by 1.5 and more\n", f);
  for (uint32_t i = 0; i < d->time_count; i++)
    if (cf_is_slower(&d->times[i]))
      fprintf(f, "  %9.1f -> %9.1f ms  %s\n", d->times[i].before, d->times[i].now, d->times[i].op);
}

static void cf_html_cell_of(FILE *f, const char *text) {
  fputs("<td>", f);
  cf_escape_xml(f, text);
}

static void cf_diff_changes(FILE *f, const cf_diff *d, cf_change change) {
  if (!d->of[change]) return;
  fprintf(f, "<h2>%s: %u</h2><table><tr><th>case<th>before<th>now", cf_change_titles[change], d->of[change]);
  for (uint32_t i = 0; i < d->count; i++) {
    const cf_changed *c = &d->items[i];
    if (c->change != change) continue;
    fputs("<tr>", f);
    cf_html_cell_of(f, (c->now ? c->now : c->before)->id);
    cf_html_cell_of(f, cf_status_in(c->before));
    cf_html_cell_of(f, cf_status_in(c->now));
  }
  fputs("</table>", f);
}

static void cf_diff_html(FILE *f, const void *context) {
  const cf_diff *d = context;
  fputs(
      "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">"
      "<title>Graft conformance: two runs</title><style>:root{color-scheme:light dark}"
      "body{max-width:1100px;margin:32px auto;padding:0 24px;font:14px/1.5 system-ui,sans-serif}"
      "td,th{padding:2px 18px 2px 0;text-align:left;vertical-align:top}td:first-child{font:12px ui-monospace,monospace;"
      "overflow-wrap:anywhere}</style><main><h1>Two runs</h1><p>",
      f);
  for (int i = 0; i < 2; i++) {
    fputs(i ? "<br>→ " : "", f);
    cf_escape_xml(f, d->names[i]);
    fputs(": <code>", f);
    cf_escape_xml(f, d->about[i]);
    fputs("</code>", f);
  }
  if (!d->count && !cf_slower_ops(d)) fputs("<p>Nothing has changed.", f);
  for (cf_change change = CF_NEWLY_FAILING; change <= CF_COVERAGE_WON; change++) cf_diff_changes(f, d, change);
  if (cf_slower_ops(d)) fputs("<h2>Slower by 1.5 and more</h2><table><tr><th>op<th>before, ms<th>now, ms", f);
  for (uint32_t i = 0; i < d->time_count; i++) {
    if (!cf_is_slower(&d->times[i])) continue;
    fputs("<tr>", f);
    cf_html_cell_of(f, d->times[i].op);
    fprintf(f, "<td>%.1f<td>%.1f", d->times[i].before, d->times[i].now);
  }
  fputs("</table></main></html>\n", f);
}

/* ---- graft report ---- */

typedef struct cf_report_arguments {
  const char *words[3], *html;
  uint32_t count;
} cf_report_arguments;

static error_t cf_parse_report(int key, char *arg, struct argp_state *state) {
  cf_report_arguments *a = state->input;
  switch (key) {
    case 'h': a->html = arg; return 0;
    case ARGP_KEY_ARG:
      if (a->count == 3) argp_usage(state);
      a->words[a->count++] = arg;
      return 0;
    case ARGP_KEY_END:
      if (a->count != 3 || strcmp(a->words[0], "diff") != 0) argp_usage(state);
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

int cf_main_report(int argc, char **argv) {
  static const struct argp_option options[] = {{"html", 'h', "FILE", 0, "write it as a page, too", 0}, {0}};
  static const struct argp argp = {
      options,
      cf_parse_report,
      "diff A B",
      "What became of a backend between two runs of the conformance suite: cases that newly "
      "fail or pass, coverage that was lost, ops that became slower.\v"
      "A and B are folders that `graft conformance --report` wrote, or their results.jsonl. "
      "Exit status: 0 nothing is worse, 1 something newly fails or coverage was lost, 2 usage "
      "or a file that can't be read.\n",
      NULL,
      NULL,
      NULL};
  cf_report_arguments a = {0};
  cf_lines runs[2] = {{0}, {0}};
  argp_err_exit_status = 2;
  if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0) return 2;
  cf_diff d = {.names = {a.words[1], a.words[2]}, .about = {runs[0].about, runs[1].about}};
  graft_status s = cf_read_lines(a.words[1], &runs[0]);
  if (s == GRAFT_OK) s = cf_read_lines(a.words[2], &runs[1]);
  if (s == GRAFT_OK && !cf_compare_runs(&d, &runs[0], &runs[1]))
    s = err_set(GRAFT_OUT_OF_MEMORY, "no memory to compare them");
  if (s == GRAFT_OK && a.html) s = cf_file_write(a.html, cf_diff_html, &d);
  if (s == GRAFT_OK)
    cf_diff_text(stdout, &d);
  else
    fprintf(stderr, "graft report: %s\n", graft_last_error());
  int status = s != GRAFT_OK ? 2 : d.of[CF_NEWLY_FAILING] || d.of[CF_COVERAGE_LOST] ? 1 : 0;
  free(d.items), free(d.times);
  for (int i = 0; i < 2; i++) cf_lines_free(&runs[i]);
  return status;
}
