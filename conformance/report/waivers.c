#include "conformance/report/waivers.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conformance/run/case.h"

typedef struct cf_waiver {
  uint32_t line;
  char pattern[CF_ID_BYTES], link[256], until[16];
  bool matched; /* some case, whatever came of it */
} cf_waiver;

struct cf_waivers {
  uint32_t count, capacity;
  cf_waiver *items;
};

static bool cf_is_date(const char *text) {
  static const char form[] = "dddd-dd-dd";
  for (size_t i = 0; i < sizeof form; i++) {
    bool digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == 'd' ? !digit : text[i] != form[i]) return false;
  }
  struct tm day = {0};
  sscanf(text, "%d-%d-%d", &day.tm_year, &day.tm_mon, &day.tm_mday);
  day.tm_year -= 1900, day.tm_mon -= 1;
  struct tm there = day;
  timegm(&there); /* moves what is no day to one that is */
  return there.tm_year == day.tm_year && there.tm_mon == day.tm_mon && there.tm_mday == day.tm_mday;
}

static graft_status cf_waiver_line(cf_waivers *w, const char *path, uint32_t number, char *line) {
  line[strcspn(line, "#\n")] = 0;
  char *pattern = strtok(line, " \t"), *link = strtok(NULL, " \t"), *until = strtok(NULL, " \t");
  if (!pattern) return GRAFT_OK;
  if (!link || !until || strtok(NULL, " \t") || !cf_is_date(until))
    return err_set(GRAFT_INVALID_ARGUMENT, "%s:%u: expected PATTERN LINK YYYY-MM-DD, a day that there is", path,
                   number);
  if (w->count == w->capacity) {
    uint32_t capacity = w->capacity ? 2 * w->capacity : 16;
    cf_waiver *items = realloc(w->items, capacity * sizeof *items);
    if (!items) return err_set(GRAFT_OUT_OF_MEMORY, "no memory for the waivers of %s", path);
    w->items = items, w->capacity = capacity;
  }
  cf_waiver *item = &w->items[w->count++];
  item->line = number;
  item->matched = false;
  snprintf(item->pattern, sizeof item->pattern, "%s", pattern);
  snprintf(item->link, sizeof item->link, "%s", link);
  snprintf(item->until, sizeof item->until, "%s", until);
  return GRAFT_OK;
}

graft_status cf_waivers_read(const char *path, cf_waivers **waivers) {
  FILE *f = fopen(path, "r");
  if (!f) return err_set(GRAFT_INVALID_ARGUMENT, "waivers %s: %s", path, strerror(errno));
  cf_waivers *w = calloc(1, sizeof *w);
  char line[1024];
  graft_status s = w ? GRAFT_OK : err_set(GRAFT_OUT_OF_MEMORY, "no memory for the waivers of %s", path);
  for (uint32_t n = 1; s == GRAFT_OK && fgets(line, sizeof line, f); n++) s = cf_waiver_line(w, path, n, line);
  if (s == GRAFT_OK && ferror(f)) s = err_set(GRAFT_INVALID_ARGUMENT, "waivers %s: %s", path, strerror(errno));
  fclose(f);
  if (s != GRAFT_OK)
    cf_waivers_free(w);
  else
    *waivers = w;
  return s;
}

/* The first that is in force; all are told whether they match. */
static const cf_waiver *cf_waiver_for(cf_waivers *w, const char *today, const char *id) {
  const cf_waiver *found = NULL;
  for (uint32_t i = 0; w && i < w->count; i++) {
    cf_waiver *item = &w->items[i];
    if (fnmatch(item->pattern, id, 0) != 0) continue;
    item->matched = true;
    if (!found && strcmp(today, item->until) <= 0) found = item; /* ISO dates sort as text */
  }
  return found;
}

void cf_waivers_apply(cf_waivers *waivers, const char *today, const char *id, cf_result *r) {
  const cf_waiver *w = cf_waiver_for(waivers, today, id);
  if (!w || r->outcome == CF_UNSUPPORTED) return;
  r->waiver_line = w->line;
  if (r->outcome != CF_PASS) {
    r->outcome = CF_WAIVED;
    return;
  }
  r->outcome = CF_FAIL, r->waiver_stale = 1;
  snprintf(r->text, sizeof r->text, "passes, but is waived (%s): remove the waiver on line %u", w->link, w->line);
}

uint32_t cf_waivers_say_idle(const cf_waivers *waivers, const char *path) {
  uint32_t idle = 0;
  for (uint32_t i = 0; waivers && i < waivers->count; i++) {
    const cf_waiver *item = &waivers->items[i];
    if (item->matched) continue;
    printf("idle waiver: %s:%u: no case is called '%s': remove it, or mend the pattern\n", path, item->line,
           item->pattern);
    idle++;
  }
  return idle;
}

const char *cf_waivers_link(const cf_waivers *waivers, uint32_t line) {
  for (uint32_t i = 0; waivers && i < waivers->count; i++)
    if (waivers->items[i].line == line) return waivers->items[i].link;
  return "";
}

void cf_waivers_free(cf_waivers *w) {
  if (!w) return;
  free(w->items);
  free(w);
}
